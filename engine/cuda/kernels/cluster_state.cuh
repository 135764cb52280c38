// SPDX-License-Identifier: Apache-2.0
// The kernel whose clusters work apart: a cluster of CLUSTER blocks takes some tokens through all layers.
// Activations never leave the cluster: each block keeps the whole input of the product at hand in its own
// shared memory, and whoever makes a part of it stores it into all of them.
//
// Numbers: weights e4m3 with one scale a row, activations float16, sums float32. The host defines, beside
// what ptx.cuh lists, CLUSTER, SLOTS_FEW and SLOTS_MANY.
#pragma once
#include "attend.cuh"
#include "dsmem.cuh"

static_assert(GROUP == 0, "one scale a row");

constexpr int FEW = TILE_TOKENS, MANY = TILE_TOKENS * WIDE;  // tokens that a cluster takes, by program
constexpr int COURIER = WARPS, SCALER = WARPS + 1;           // warps that do not compute
constexpr int ALL_THREADS = THREADS + 64;
constexpr int CHUNK_STEPS = 6;  // of a weight stream: what one barrier counts
constexpr int MAX_SLICES = 4;
constexpr int SLOT_BYTES = CHUNK_STEPS * TILE_BYTES;
constexpr int MAX_SLOTS = max_of(SLOTS_FEW, SLOTS_MANY);

// One matrix product: 16-row tiles, each in `slices` parts along K of which a warp takes one.
struct Cut {
    int steps, tiles;
    int most;    // tiles of one block
    int slices;  // added in order; depends on the model alone
};

// `together`: tiles that one block must have all of.
static __host__ __device__ constexpr Cut cut(int columns, int rows, int together = 1) {
    const int tiles = ceil_div(rows, TILE_ROWS), most = ceil_div(tiles / together, CLUSTER) * together;
    const int slices = max_of(1, min_of(min_of(WARPS / most, MAX_SLICES), columns / STEP / CHUNK_STEPS));
    return {columns / STEP, tiles, most, slices};
}

constexpr Cut QKV_CUT = cut(DIM, Q_DIM + 2 * KV_DIM), OUT_CUT = cut(Q_DIM, DIM),
              GATE_UP_CUT = cut(DIM, 2 * FFN, 2), DOWN_CUT = cut(FFN, DIM);
__constant__ Cut CUTS[4] = {QKV_CUT, OUT_CUT, GATE_UP_CUT, DOWN_CUT};

static __host__ __device__ constexpr int items(Cut c) { return c.most * c.slices; }
constexpr int PARTIALS =
    max_of(max_of(items(QKV_CUT), items(OUT_CUT)), max_of(items(GATE_UP_CUT), items(DOWN_CUT)));
constexpr int MAX_ITEMS = ceil_div(items(QKV_CUT), WARPS) + ceil_div(items(OUT_CUT), WARPS) +
    ceil_div(items(GATE_UP_CUT), WARPS) + ceil_div(items(DOWN_CUT), WARPS);

// An input lies in tiles of 16 columns: for each token 32 bytes of float16, then, in the input of a norm, the
// sums of squares of each token's 16 values. What one block makes of it is a row of tiles: one copy.
DEVICE int wide_tile(int tokens) { return tokens * 32; }
static __host__ __device__ constexpr int norm_tile(int tokens) { return tokens * 32 + ceil_div(tokens, 4) * 16; }
constexpr int PARTIAL_STRIDE = 20;  // floats a token: 16 rows + 4 against bank conflicts
constexpr int NORM_TILES = DIM / TILE_ROWS;

// Constants of a layer for this block's tiles, 16 floats each: scales by product, then the norm weights
// that follow OUT and DOWN.
constexpr int QKV_SCALES = 0, OUT_SCALES = QKV_SCALES + QKV_CUT.most, GATE_UP_SCALES = OUT_SCALES + OUT_CUT.most,
              DOWN_SCALES = GATE_UP_SCALES + GATE_UP_CUT.most, OUT_NORM = DOWN_SCALES + DOWN_CUT.most,
              DOWN_NORM = OUT_NORM + OUT_CUT.most, CONSTANT_TILES = DOWN_NORM + DOWN_CUT.most;

// Barriers that count what other blocks store here. Each passes once a layer; the first four by product.
enum Arrival : int { AT_QKV = 0, AT_OUT = 1, AT_GATE_UP = 2, AT_DOWN = 3, AT_ATTENTION = 4, ARRIVALS = 5 };

// Who arrives: the thread that says how many bytes to expect and, where send_made brings the input, the warp
// that has copied this block's own part.
static __host__ __device__ constexpr u32 arrivals_at(int which) {
    return which == AT_OUT || which == AT_ATTENTION ? 1 : 2;
}

// What one warp computes of a product: steps begin .. end of a tile.
struct Item {
    int op, tile;
    u16 begin, end;
    int partial;  // where its sums go
};

// A product in this request, for this block.
struct Work {
    int first, count;  // tiles
    int reciprocal;    // 65536 / count, rounded up
    int spread;        // QKV: log2 of the threads that share a cell of the epilogue
    int threads;       // cells times that
    int slices, scales;
    u32 bytes;         // of the input, but for what this block copies to itself
};

// What this cluster has to do for a request.
struct Task {
    int first, live;  // tokens first .. first + live of the request
    bool last;        // among them is the request's last
    bool all;         // logits of every token
    bool near;        // all positions up to this cluster's fit one block of them
    bool exit;        // no request: leave
};

struct ClusterShared : Shared {
    u64 arrivals[ARRIVALS];
    u64 constants[2], constants_read[2];  // by parity of the layer
    u64 stream[WARPS][MAX_SLOTS], stream_read[WARPS][MAX_SLOTS];
    Work work[4];
    Item items[WARPS][MAX_ITEMS];  // of one layer
    int item_at[WARPS][5];         // first item of each product, and the end
    Task task;
    u64 deadline;
    u32 head_ranks[KV_HEADS];      // which blocks attend to a key-value head in this request, a bit each
    float scale[MANY];             // 1 / rms of a token, over the power of two that its input was scaled by
    float power[MANY];             // that power for the next input
};

constexpr int PROGRAM_UNITS = 3 + ceil_div(KV_HEADS * MANY, 8);  // see engine/cuda/cluster_schedule.py

// Shared memory for `columns` tokens. `x` holds the input of QKV or GATE_UP, and the chunks of attention
// between the two; `wide` that of OUT or DOWN, and behind the former the keys and values.
constexpr int STATE_BYTES = ceil_div((int)sizeof(ClusterShared), 16) * 16;
constexpr int KV_BYTES = 2 * BLOCK_POSITIONS * KV_STRIDE * 2;
// Of the rows of one piece of attention.
static __host__ __device__ constexpr int chunk_bytes(int columns) {
    const int parts = max_of(1, min_of(columns, CLUSTER / KV_HEADS));
    return ceil_div(columns, parts) * REPEAT * BLOCK_CHUNKS * CHUNK_STRIDE * 4;
}
constexpr int CONSTANT_BYTES = CONSTANT_TILES * TILE_ROWS * 4;
constexpr int QUERY_BYTES = MAX_ROWS * KV_STRIDE * 2;

struct Plan {
    int columns, slots;
    // Offsets.
    int stream, x, wide, kv, partials, made, made_wide, fresh, queries, rope, constants, program, tail;
};

static __host__ __device__ constexpr Plan plan(int columns, int slots) {
    Plan r = {};
    r.columns = columns;
    r.slots = slots;
    r.program = STATE_BYTES;
    r.stream = r.program + PROGRAM_UNITS * 16;
    r.x = r.stream + WARPS * slots * SLOT_BYTES;
    r.wide = r.x + ceil_div(max_of(NORM_TILES * norm_tile(columns), chunk_bytes(columns)), 16) * 16;
    r.kv = r.wide + columns * Q_DIM * 2;
    r.partials = r.wide + max_of(columns * FFN * 2, columns * Q_DIM * 2 + KV_BYTES);
    r.made = r.partials + PARTIALS * columns * PARTIAL_STRIDE * 4;
    r.made_wide = r.made + OUT_CUT.most * norm_tile(columns);
    // What GATE_UP makes has been sent when QKV of the next layer fills `fresh`, and the other way round.
    r.fresh = r.made_wide;
    r.queries = r.fresh + max_of(GATE_UP_CUT.most * columns * 16, columns * 2 * KV_STRIDE * 2);
    r.rope = r.queries + QUERY_BYTES;
    r.constants = r.rope + columns * HEAD_DIM * 4;
    r.tail = r.constants + 2 * CONSTANT_BYTES;
    return r;
}

constexpr Plan FEW_PLAN = plan(FEW, SLOTS_FEW), MANY_PLAN = plan(MANY, SLOTS_MANY);
static_assert(
    FEW_PLAN.tail == HOST_FEW_BYTES && MANY_PLAN.tail == HOST_MANY_BYTES, "engine/cuda/cluster_shape.py");

struct Memory {
    u8* base;
    ClusterShared* shared;
    u8 *x, *wide;
    float* partials;
    u8 *made, *made_wide;  // what this block has made of x or wide, for the others to have
    u16 *keys, *fresh, *queries;
    float* rope;       // (columns, HEAD_DIM / 2, 2)
    float* constants;  // (2, CONSTANT_TILES, 16)
    float* tail;       // residual of this block's tiles (tile, columns, 16), or logits (tile, 16)
};

DEVICE Memory memory_of(u8* base, const Plan& plan) {
    Memory m;
    m.base = base;
    m.shared = reinterpret_cast<ClusterShared*>(base);
    m.x = base + plan.x;
    m.wide = base + plan.wide;
    m.keys = reinterpret_cast<u16*>(base + plan.kv);
    m.partials = reinterpret_cast<float*>(base + plan.partials);
    m.made = base + plan.made;
    m.made_wide = base + plan.made_wide;
    m.fresh = reinterpret_cast<u16*>(base + plan.fresh);
    m.queries = reinterpret_cast<u16*>(base + plan.queries);
    m.rope = reinterpret_cast<float*>(base + plan.rope);
    m.constants = reinterpret_cast<float*>(base + plan.constants);
    m.tail = reinterpret_cast<float*>(base + plan.tail);
    return m;
}

// The program of this block, as the host wrote it.
DEVICE int4* program_of(u8* base) { return reinterpret_cast<int4*>(base + STATE_BYTES); }

struct Tiles {
    int first, count;
};

DEVICE Tiles tiles_of(u8* base, int op) {
    const int* words = reinterpret_cast<const int*>(program_of(base));
    return {words[2 * op], words[2 * op + 1]};
}

DEVICE int width_of(u8* base) { return program_of(base)[2].w >> 16; }

// What this block attends to: tokens begin .. end of a group and one key-value head; head < 0: nothing.
struct Piece {
    int head, begin, end;
};

DEVICE Piece piece_of(u8* base) {
    const int4 v = program_of(base)[2];
    return {v.z, v.w & 0xff, v.w >> 8 & 0xff};
}

// Which block attends for (key-value head, token), and that block's first token.
struct Owner {
    u32 rank;
    int begin;
};

DEVICE Owner owner_of(u8* base, int head, int token) {
    const u32 v = reinterpret_cast<const u16*>(program_of(base) + 3)[head * MANY + token];
    return {v & 0xff, (int)(v >> 8)};
}

// The slow half of a wait.
DEVICE bool may_go_on(u32* abort, u64 deadline) {
    if (load_word(abort) != 0) return false;
    if (now_ns() < deadline) return true;
    store_flag(abort, ABORT_TIMEOUT);
    return false;
}

DEVICE void await_barrier(ClusterShared& s, u32 barrier, u32 parity, const Abort& abort) {
    u32 spins = 0;
#pragma unroll 1
    while (!barrier_passed(barrier, parity)) {
        if ((++spins & 255u) != 0 || may_go_on(abort.word, abort.deadline)) continue;
        s.failed = 1;
        break;
    }
}

// Wait until all `bytes` for one product have arrived. `passed` counts the earlier uses of this barrier.
DEVICE void await_arrival(ClusterShared& s, int which, u32 passed, u32 bytes, const Abort& abort) {
    const u32 barrier = shared_address(&s.arrivals[which]);
    if (threadIdx.x == 0) barrier_expect(barrier, bytes);
    await_barrier(s, barrier, passed & 1u, abort);
}

// Threads that share one of `cells` cells of an epilogue, as a power of two: they lie side by side, and each
// sends to some of the blocks. Up to 4 with many cells, since each reads all the sums.
DEVICE int spread_of(int cells) {
    int spread = cells > 16 ? 2 : 4;
    while (spread > 0 && cells << spread > THREADS) --spread;
    return spread;
}
