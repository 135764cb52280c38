// SPDX-License-Identifier: Apache-2.0
// The kernel for large models on sm_90a: all blocks work together on each product, by panels of 192 rows that
// tensor cores take from registers (wgmma), with all tokens at once. Weights run ahead of everything else.
//
// Numbers: weights e4m3 with one scale a row, activations float16, sums float32. What depends on the order of
// sums depends on the model alone: a product's cut along K, the parts of a norm, the chunks of attention.
// The host defines, beside what ptx.cuh lists, SPREAD, SHARED_LIMIT, PROGRAM_UNITS, TAIL_BYTES, TEAMS_FEW, _SOME and
// _MANY (teams that attend), and HOST_CUTS, HOST_PARTS_BYTES and HOST_STATE_BYTES, which are asserted.
#pragma once
#include "attend.cuh"
#include "dsmem.cuh"

static_assert(GROUP == 0, "one scale a row");
static_assert(HEAD_DIM == 64 || HEAD_DIM == 128, "attention holds a row of a head in the registers of four lanes");

constexpr int FEW = 8, SOME = 32, MANY = 128;  // tokens that a request is computed for, by program
constexpr int PANEL = WARPS;                   // tiles of a panel: a warp each, from its product to its epilogue
constexpr int COURIER = WARPS, LOADER = WARPS + 1, SCALER = WARPS + 2;  // warps that do not compute
constexpr int ALL_THREADS = THREADS + 128;               // helpers are a warpgroup: registers are given by those
constexpr int HELPER_REGISTERS = 32, WORKER_REGISTERS = 160;
constexpr int TEAMS = 3, TEAM_THREADS = 128;  // warpgroups; in attention each has its own work
constexpr int STAGE_STEPS = 2;                // what one barrier counts
constexpr int STAGE_COLUMNS = STAGE_STEPS * STEP;
constexpr int MAX_SLICES = 12, LEAST_STAGES = 4;
constexpr int MAX_SLOTS = 32;
constexpr int WEIGHT_STAGE = PANEL * STAGE_STEPS * TILE_BYTES;

// One matrix product: panels of up to 12 tiles, each in `slices` parts along K that are added in order.
struct Cut {
    int stages, tiles, panels, slices;
};

// `levelled`: with one slice, panels are made smaller until all blocks have some.
static __host__ __device__ constexpr int panels_of(int tiles, bool levelled) {
    const int panels = ceil_div(tiles, PANEL);
    if (!levelled || 2 * panels <= SPREAD) return panels;
    return ceil_div(tiles, ceil_div(tiles, ceil_div(panels, SPREAD) * SPREAD));
}

static __host__ __device__ constexpr Cut cut(int columns, int rows, bool levelled) {
    const int tiles = ceil_div(rows, TILE_ROWS), panels = panels_of(tiles, levelled), stages = columns / STAGE_COLUMNS;
    return {stages, tiles, panels,
            max_of(1, min_of(min_of(SPREAD / panels, MAX_SLICES), stages / LEAST_STAGES))};
}

constexpr Cut QKV_CUT = cut(DIM, Q_DIM + 2 * KV_DIM, true), OUT_CUT = cut(Q_DIM, DIM, false),
              GATE_UP_CUT = cut(DIM, 2 * FFN, true), DOWN_CUT = cut(FFN, DIM, false),
              HEAD_CUT = {DIM / STAGE_COLUMNS, ceil_div(VOCAB, TILE_ROWS), ceil_div(VOCAB, TILE_ROWS * PANEL), 1};
__constant__ Cut CUTS[5] = {QKV_CUT, OUT_CUT, GATE_UP_CUT, DOWN_CUT, HEAD_CUT};
static_assert(DIM % STAGE_COLUMNS == 0 && Q_DIM % STAGE_COLUMNS == 0 && FFN % STAGE_COLUMNS == 0, "whole stages");

// ---------------------------------------------------------------- what blocks exchange

// Activations lie as wgmma reads them: (columns / 8, width, 8) float16, see `state_word`. `x_attention` holds the
// input of QKV, and behind it that of the head; `new_kv` the parts of sums, `codes_shared` what follows here.
constexpr int GROUPS = MAX_TOKENS / 8, NORM_TILES = DIM / TILE_ROWS, NORM_PANELS = ceil_div(NORM_TILES, PANEL);
constexpr int HEAD_INPUT = DIM * MAX_TOKENS / 2;                   // words
constexpr int RESIDUAL_WORDS = DIM * MAX_TOKENS;                   // (tiles, GROUPS, lanes, 4)
constexpr int SQUARES_WORDS = 2 * NORM_PANELS * MAX_TOKENS;        // (by which norm, panels, tokens)
constexpr int COUNTER_WORDS = 8;                                   // a sector each

// Counters of a request. Each request finds its own at zero: it clears those of the next one, which nobody can
// be using, since a request starts when all blocks are done with the one before.
enum Phase : int { PHASE_QKV = 0, PHASE_ATTENTION = 1, PHASE_OUT = 2, PHASE_GATE_UP = 3, PHASE_DOWN = 4, PHASES = 5 };

constexpr int MOST_ITEMS = max_of(
    max_of(QKV_CUT.panels * QKV_CUT.slices, OUT_CUT.panels * OUT_CUT.slices),
    max_of(GATE_UP_CUT.panels * GATE_UP_CUT.slices, DOWN_CUT.panels * DOWN_CUT.slices));
constexpr int PER_LAYER = PHASES + QKV_CUT.panels + OUT_CUT.panels + GATE_UP_CUT.panels + DOWN_CUT.panels;
constexpr int COUNTERS = 1 + LAYERS * PER_LAYER;  // the first: the embedding
__constant__ int PANELS_AT[4] = {
    PHASES, PHASES + QKV_CUT.panels, PHASES + QKV_CUT.panels + OUT_CUT.panels,
    PHASES + QKV_CUT.panels + OUT_CUT.panels + GATE_UP_CUT.panels};

constexpr int HOST_CUT[8] = {HOST_CUTS};
static_assert(
    HOST_CUT[0] == QKV_CUT.panels && HOST_CUT[1] == QKV_CUT.slices && HOST_CUT[2] == OUT_CUT.panels &&
        HOST_CUT[3] == OUT_CUT.slices && HOST_CUT[4] == GATE_UP_CUT.panels && HOST_CUT[5] == GATE_UP_CUT.slices &&
        HOST_CUT[6] == DOWN_CUT.panels && HOST_CUT[7] == DOWN_CUT.slices,
    "panel_shape.py cuts as this file does");
static_assert((u64)MOST_ITEMS * (GROUPS + SOME / 8) * PANEL * 32 * 16 == HOST_PARTS_BYTES, "room for parts of sums");
static_assert(
    (RESIDUAL_WORDS + SQUARES_WORDS + MAX_TOKENS + 2 * COUNTERS * COUNTER_WORDS) * 4 == HOST_STATE_BYTES,
    "room for residual, squares, powers and counters");

// Parts of sums: (item, group, tile of the panel, lane). Of many tokens they are counted by panel; of few or some,
// in a place of their own, each word is there when it is not zero, see `flagged`.
DEVICE float4* counted_parts(const Params& p) { return reinterpret_cast<float4*>(p.new_kv); }
DEVICE uint4* flagged_parts(const Params& p) { return p.new_kv + (u64)MOST_ITEMS * GROUPS * PANEL * 32; }
DEVICE float4* residual_cells(const Params& p) { return reinterpret_cast<float4*>(p.codes_shared); }
DEVICE float* squares_of(const Params& p, int which) {
    return reinterpret_cast<float*>(p.codes_shared) + RESIDUAL_WORDS + which * (NORM_PANELS * MAX_TOKENS);
}
DEVICE float* first_powers(const Params& p) {
    return reinterpret_cast<float*>(p.codes_shared) + RESIDUAL_WORDS + SQUARES_WORDS;
}
DEVICE u32* counter_of(const Params& p, u32 number, int index) {
    return reinterpret_cast<u32*>(p.codes_shared) + RESIDUAL_WORDS + SQUARES_WORDS + MAX_TOKENS +
        ((number & 1) * COUNTERS + index) * COUNTER_WORDS;
}
DEVICE int phase_index(int layer, int phase) { return 1 + layer * PER_LAYER + phase; }
DEVICE int panel_index(int layer, int op, int panel) { return 1 + layer * PER_LAYER + PANELS_AT[op] + panel; }

// ---------------------------------------------------------------- what a block remembers

struct PanelShared : Shared {
    u64 weights_full[MAX_SLOTS], weights_read[MAX_SLOTS];
    u64 input_full[MAX_SLOTS], input_read[MAX_SLOTS];
    u64 scaled;       // passes once a norm
    u64 finished;     // passes between two items of a product: the input ring is free again
    u64 deadline;
    int exit;
    float scale[MAX_TOKENS];  // 1 / rms of a token, over the power of two that its input was scaled by
    float power[MAX_TOKENS];  // that power for the next input
};

constexpr int STATE_BYTES = ceil_div((int)sizeof(PanelShared), 16) * 16;
constexpr int TILE_SQUARES_BYTES = PANEL * MAX_TOKENS * 4;
constexpr int FIXED_BYTES = ceil_div(STATE_BYTES + PROGRAM_UNITS * 16 + TILE_SQUARES_BYTES + TAIL_BYTES, 128) * 128;

// A team merges what its warps have mixed, 64 columns at a time: (4, 16, MIX_STRIDE) and (4, 16, 2) floats.
constexpr int MIX_STRIDE = 72;
constexpr int TEAM_BYTES = (4 * MAX_ROWS * MIX_STRIDE + 4 * MAX_ROWS * 2) * 4;

static __host__ __device__ constexpr int input_stage(int width) { return STAGE_COLUMNS * width * 2; }

// Shared memory: PanelShared | program | squares by tile | head logits | input ring | weight ring. Attention and
// epilogues use the input ring, in which nothing is on its way then.
struct Plan {
    int input_slots, weight_slots, input, weights;
};

// Cells of a thread that lie in the input ring on their way to an epilogue, and teams that attend: both at most.
constexpr int CELLS = 14;
static __host__ __device__ constexpr int teams_of(int width) {
    return width == FEW ? TEAMS_FEW : width == SOME ? TEAMS_SOME : TEAMS_MANY;
}
static __host__ __device__ constexpr int cells_of(int width) { return width == MANY ? CELLS : width / 8; }

static __host__ __device__ constexpr Plan plan(int width) {
    const int inputs = (width == FEW ? 16 : width == SOME ? 8 : 5) * input_stage(width);
    const int others = max_of(teams_of(width) * TEAM_BYTES, cells_of(width) * THREADS * 16);
    const int region = ceil_div(max_of(inputs, others), 1024) * 1024;
    return {min_of(region / input_stage(width), MAX_SLOTS),
            min_of((SHARED_LIMIT - FIXED_BYTES - region) / WEIGHT_STAGE, MAX_SLOTS), FIXED_BYTES,
            FIXED_BYTES + region};
}
// Stages of weights on their way to a block at once. Memory needs about 1 us of its bandwidth asked for, 5 MB; with
// whole rings, 26 MB, what blocks say to each other waits behind weights: an exchange of sums took 4.2 us, not 2.5.
constexpr int STAGES_AWAY = 4;
static_assert(
    plan(FEW).weight_slots >= STAGES_AWAY && plan(SOME).weight_slots >= STAGES_AWAY &&
        plan(MANY).weight_slots >= STAGES_AWAY,
    "room for weights on their way");

// Shared memory has fixed addresses: an object of this type costs no register.
struct Memory {
    MEMBER u8* base() const {
        extern __shared__ __align__(128) u8 memory[];
        return memory;
    }
    MEMBER PanelShared& shared() const { return *reinterpret_cast<PanelShared*>(base()); }
    MEMBER const int4* program() const { return reinterpret_cast<const int4*>(base() + STATE_BYTES); }
    // (PANEL, MAX_TOKENS)
    MEMBER float* squares() const { return reinterpret_cast<float*>(base() + STATE_BYTES + PROGRAM_UNITS * 16); }
    // Logits of this block's tiles, (tiles, 16).
    MEMBER float* tail() const {
        return reinterpret_cast<float*>(base() + STATE_BYTES + PROGRAM_UNITS * 16 + TILE_SQUARES_BYTES);
    }
};

// The program of a block, as engine/cuda/panel_schedule.py encodes it: two units, then items by product, then
// pieces of attention by team.
struct Items {
    int at, count;
};

DEVICE int width_of(const Memory& m) { return m.program()[0].x; }
DEVICE bool all_of(const Memory& m) { return m.program()[0].y != 0; }

DEVICE Items items_of(const Memory& m, int op) {
    const u32 counts = m.program()[1].x;
    int at = 2;
    for (int i = 0; i < op; ++i) at += counts >> 8 * i & 0xff;
    return {at, op == OP_HEAD ? m.program()[1].y : (int)(counts >> 8 * op & 0xff)};
}

DEVICE Items pieces_of(const Memory& m, int team) {
    const Items head = items_of(m, OP_HEAD);
    int at = head.at + head.count;
    for (int i = 0; i < team; ++i) at += m.program()[1].z >> 8 * i & 0xff;
    return {at, m.program()[1].z >> 8 * team & 0xff};
}

// One panel (or, in the head, up to 12 tiles) over the stages begin .. end.
struct Item {
    int first, count, slice, begin, end, panel;
};

DEVICE Item item_at(const Memory& m, int at) {
    const int4 v = m.program()[at];
    return {v.x, v.y & 0xffff, v.y >> 16, v.z & 0xffff, v.z >> 16, v.w};
}

// ---------------------------------------------------------------- waits

DEVICE void fence_gpu() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }

// Between ordinary accesses and those of bulk copies, either way.
DEVICE void fence_async() { asm volatile("fence.proxy.async;" ::: "memory"); }

// One thread. After a failure nobody waits any more, but all go through the motions: the rings stay in step.
DEVICE void await_count(const Params& p, const Memory& m, const u32* counter, u32 target) {
    PanelShared& s = m.shared();
    const Abort abort = {p.abort, s.deadline};
    u32 spins = 0;
    while (load_word_acquire(counter) < target)
        if (!may_wait(abort, spins)) {
            s.failed = 1;
            break;
        }
}

// Waits within the block need no deadline of their own: whoever fills or empties the ring has one.
DEVICE void await_ring(u32 barrier, u32 parity) {
#pragma unroll 1
    while (!barrier_passed(barrier, parity)) {
    }
}

DEVICE void barrier_end(u32 barrier) { asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(barrier) : "memory"); }

// Computing threads: what all of them have stored is there for who sees the count, and for bulk copies after a
// fence_async of whoever starts them.
DEVICE void arrive_count(u32* counter) {
    block_sync();
    if (thread_index() == 0) add_release(counter, 1);
}

// No sum has the bits of this NaN, so that no word is zero.
DEVICE uint4 flagged(float4 v) {
    return make_uint4(
        ~__float_as_uint(v.x), ~__float_as_uint(v.y), ~__float_as_uint(v.z), ~__float_as_uint(v.w));
}
DEVICE bool arrived(uint4 v) { return v.x != 0 && v.y != 0 && v.z != 0 && v.w != 0; }
DEVICE float4 unflagged(uint4 v) {
    return make_float4(
        __uint_as_float(~v.x), __uint_as_float(~v.y), __uint_as_float(~v.z), __uint_as_float(~v.w));
}
DEVICE uint4 load_flagged(const uint4* p) {
    uint4 v;
    asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(p)
                 : "memory");
    return v;
}
DEVICE void store_flagged(uint4* p, uint4 v) {
    asm volatile("st.relaxed.gpu.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(v.x), "r"(v.y), "r"(v.z),
                 "r"(v.w)
                 : "memory");
}

// As `copy_unit`, 8 bytes, through L1 as ordinary loads are.
DEVICE void copy_pair(u32 to, const void* from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(to), "l"(from) : "memory");
}
