// SPDX-License-Identifier: Apache-2.0
// Weights on their way. The courier, a warp that does nothing else, keeps copies in flight from memory into a
// ring of slots of each computing warp, in the order in which that warp will need them; so they move
// whatever the warp is waiting for.
#pragma once
#include "cluster_state.cuh"

// ---------------------------------------------------------------- the courier

// What lane `warp` of the courier still has to ask for.
struct Order {
    const u8* from;
    int steps;         // left of the item at hand; 0: nothing more
    int layer, index;
    u32 data, full, read;  // the warp's slots and their barriers
    int slot;
    u32 turns;         // a bit a slot: parity of its next use
    Tiles head;        // kept here: once the last copy is under way, the next program may be written any time
};

DEVICE void next_item(Order& o, const Params& p, u8* base, int warp) {
    const ClusterShared& s = *reinterpret_cast<ClusterShared*>(base);
    o.steps = 0;
    if (o.layer < LAYERS) {
        const Item item = s.items[warp][o.index];
        const Cut& cut = CUTS[item.op];
        o.steps = item.end - item.begin;
        o.from = p.codes[item.op] +
            ((u64)(o.layer * cut.tiles + item.tile) * cut.steps + item.begin) * TILE_BYTES;
        if (++o.index == s.item_at[warp][4]) ++o.layer, o.index = 0;
        return;
    }
    const int at = warp + o.index * WARPS;
    if (at >= o.head.count) return;
    ++o.index;
    o.steps = DIM / STEP;
    o.from = p.codes[OP_HEAD] + (u64)(o.head.first + at) * (DIM / STEP) * TILE_BYTES;
}

// Start copies of the constants of a layer into `to`.
DEVICE void fetch_constants(const Params& p, u8* base, int index, u32 to, u32 barrier) {
    const ClusterShared& s = *reinterpret_cast<ClusterShared*>(base);
    constexpr int TILE = TILE_ROWS * 4;
    u32 bytes = 0;
    for (int op = 0; op < 4; ++op) bytes += s.work[op].count * TILE * (op == OP_OUT || op == OP_DOWN ? 2 : 1);
    barrier_expect(barrier, bytes);
#pragma unroll 1
    for (int op = 0; op < 4; ++op) {
        const Work& w = s.work[op];
        const float* scales = p.scales[op] + (u64)(index * CUTS[op].tiles + w.first) * TILE_ROWS;
        fetch(to + w.scales * TILE, scales, w.count * TILE, barrier);
        if (op != OP_OUT && op != OP_DOWN) continue;
        // The norm that follows: the feed-forward one, the next layer's, or the last.
        const int norm = 2 * index + (op == OP_OUT ? 1 : 2);
        const float* weights = norm < 2 * LAYERS ? p.norms + norm * DIM : p.final_norm;
        const u32 place = to + (op == OP_OUT ? OUT_NORM : DOWN_NORM) * TILE;
        fetch(place, weights + w.first * TILE_ROWS, w.count * TILE, barrier);
    }
}

// One request: everything that this block will read of the weights, then nothing more. `turns`: of the slots
// of this lane's warp; `layers`: layers served before.
DEVICE void carry(const Params& p, u8* base, const Plan& plan, u32& turns, u32 layers) {
    ClusterShared& s = *reinterpret_cast<ClusterShared*>(base);
    const int lane = threadIdx.x & 31;
    const bool works = s.task.live > 0;
    Order o = {};
    o.turns = turns;
    if (lane < WARPS && (works || !s.task.all)) {
        o.data = shared_address(base + plan.stream) + lane * (plan.slots * SLOT_BYTES);
        o.full = shared_address(s.stream[lane]);
        o.read = shared_address(s.stream_read[lane]);
        o.layer = works && s.item_at[lane][4] > 0 ? 0 : LAYERS;
        o.head = tiles_of(base, OP_HEAD);
        next_item(o, p, base, lane);
    }
    int constants = lane == WARPS && works ? 0 : LAYERS;  // next layer whose constants are to be fetched
#pragma unroll 1
    while (__any_sync(0xffffffffu, o.steps > 0 || constants < LAYERS)) {
        if (o.steps > 0 && barrier_tested(o.read + 8 * o.slot, (o.turns >> o.slot & 1u) ^ 1u)) {
            const int steps = min(CHUNK_STEPS, o.steps);
            barrier_expect(o.full + 8 * o.slot, steps * TILE_BYTES);
            fetch(o.data + o.slot * SLOT_BYTES, o.from, steps * TILE_BYTES, o.full + 8 * o.slot);
            o.turns ^= 1u << o.slot;
            o.from += steps * TILE_BYTES;
            o.steps -= steps;
            if (++o.slot == plan.slots) o.slot = 0;
            if (o.steps == 0) next_item(o, p, base, lane);
        }
        if (constants < LAYERS) {
            const u32 turn = layers + constants, buffer = turn & 1;
            if (barrier_tested(shared_address(&s.constants_read[buffer]), (turn >> 1 & 1u) ^ 1u)) {
                fetch_constants(
                    p, base, constants, shared_address(base + plan.constants) + buffer * CONSTANT_BYTES,
                    shared_address(&s.constants[buffer]));
                ++constants;
            }
        }
    }
    turns = o.turns;
}

// ---------------------------------------------------------------- a computing warp

struct Stream {
    u32 data, full, read;
    int slot, slots;
    u32 turns;  // a bit a slot: parity of its next use
};

// At the start of a request; `turns` stays.
DEVICE void restart(Stream& st, u8* base, const Plan& plan) {
    ClusterShared& s = *reinterpret_cast<ClusterShared*>(base);
    const int warp = threadIdx.x / 32;
    st.data = shared_address(base + plan.stream) + warp * (plan.slots * SLOT_BYTES) + (threadIdx.x & 31) * 16;
    st.full = shared_address(s.stream[warp]);
    st.read = shared_address(s.stream_read[warp]);
    st.slot = 0;
    st.slots = plan.slots;
}

// Tokens of one input for this lane: `at` is its column of token 0 in tile 0; `live[n]`: it has a token in n.
template <int NT>
struct Input {
    const u8* at;
    int tile;  // bytes
    bool live[NT];
};

template <int NT>
DEVICE Input<NT> input_of(const u8* base, int tile, int tokens) {
    const int lane = threadIdx.x & 31;
    Input<NT> r;
    r.at = base + lane * 8;
    r.tile = tile;
#pragma unroll
    for (int n = 0; n < NT; ++n) r.live[n] = 8 * n + lane / 4 < tokens;
    return r;
}

template <int NT>
struct Sums {
    Accumulator part[NT];
};

// Products of one 16x32 tile of weights with all tokens; `b`: this lane's column of the first 16.
template <int NT>
DEVICE void multiply_step(Sums<NT>& sums, uint4 weights, const u8* b, const Input<NT>& input) {
    const Fragment w = fragment_of(weights);
#pragma unroll
    for (int n = 0; n < NT; ++n) {
        uint2 first = make_uint2(0, 0), second = make_uint2(0, 0);
        if (NT > 1 || input.live[n]) {  // columns without a token cost bandwidth too
            first = *reinterpret_cast<const uint2*>(b + 256 * n);
            second = *reinterpret_cast<const uint2*>(b + 256 * n + input.tile);
        }
        mma_f16(sums.part[n].even, w.first, first);
        mma_f16(sums.part[n].odd, w.second, second);
    }
}

// One chunk: CHUNK_STEPS steps, straight, or the first `steps` of them.
template <int NT>
DEVICE void multiply_chunk(Sums<NT>& sums, Stream& st, const u8* b, const Input<NT>& input, int steps) {
    const u32 barrier = 8 * st.slot;
#pragma unroll 1
    while (!barrier_passed(st.full + barrier, st.turns >> st.slot & 1u)) {
    }
    const u32 at = st.data + st.slot * SLOT_BYTES;
    if (steps == CHUNK_STEPS) {
        uint4 a[CHUNK_STEPS];
#pragma unroll
        for (int i = 0; i < CHUNK_STEPS; ++i) a[i] = load_shared(at + i * TILE_BYTES);
#pragma unroll
        for (int i = 0; i < CHUNK_STEPS; ++i, b += 2 * input.tile) multiply_step<NT>(sums, a[i], b, input);
    } else {
#pragma unroll 1
        for (int i = 0; i < steps; ++i, b += 2 * input.tile)
            multiply_step<NT>(sums, load_shared(at + i * TILE_BYTES), b, input);
    }
    __syncwarp();
    if ((threadIdx.x & 31) == 0) barrier_arrive(st.read + barrier);
    st.turns ^= 1u << st.slot;
    st.slot = st.slot + 1 == st.slots ? 0 : st.slot + 1;
}

// Sums of one tile over steps begin .. end, for NT tiles of 8 tokens.
template <int NT>
DEVICE void multiply_item(float (&out)[NT][4], Stream& st, const Input<NT>& input, int begin, int end) {
    Sums<NT> sums;
#pragma unroll
    for (int n = 0; n < NT; ++n) sums.part[n].clear();
    const u8* b = input.at + begin * 2 * input.tile;
#pragma unroll 1
    for (int at = begin; at < end; at += CHUNK_STEPS, b += CHUNK_STEPS * 2 * input.tile)
        multiply_chunk<NT>(sums, st, b, input, min(CHUNK_STEPS, end - at));
#pragma unroll
    for (int n = 0; n < NT; ++n)
#pragma unroll
        for (int c = 0; c < 4; ++c) out[n][c] = sums.part[n].sum(c);
}
