// SPDX-License-Identifier: Apache-2.0
// A matrix product of a cluster: this block's tiles, then what the model does with their sums, then the
// results as float16 into the shared memory of every block that needs them.
#pragma once
#include "stream.cuh"

DEVICE uint2 halves_of(float4 v) { return make_uint2(half_pair(v.x, v.y), half_pair(v.z, v.w)); }

// Compute threads and the scaler, from different places of the program. `bar.sync` is `barrier.sync.aligned`, which
// is for barriers that all who meet in them reach on the same way.
DEVICE void meet_scaler() { asm volatile("barrier.sync 2, %0;" ::"n"(THREADS + 32) : "memory"); }

// 1 / rms of tokens first, first + step, ... from the sums of squares that lie in `x`, 8 lanes a token; then
// what follows from it.
DEVICE void scale_tokens(const Memory& m, int first, int step) {
    ClusterShared& s = *m.shared;
    const int live = s.task.live, tile = norm_tile(live), lane = threadIdx.x & 31;
#pragma unroll 1
    for (int base = first; base < live; base += step) {
        const int token = min(base + lane / 8, live - 1);
        const u8* at = m.x + live * 32 + token * 4;
        float sum = 0.0f;
#pragma unroll
        for (int i = 0; i < ceil_div(NORM_TILES, 8); ++i)
            if (8 * i + lane % 8 < NORM_TILES)
                sum += *reinterpret_cast<const float*>(at + (8 * i + lane % 8) * tile);
#pragma unroll
        for (int offset = 4; offset > 0; offset >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
        const float inverse = rsqrtf(sum * (1.0f / DIM) + NORM_EPS);
        const float power = s.power[token];
        __syncwarp();
        if (lane % 8 != 0 || base + lane / 8 >= live) continue;
        s.scale[token] = inverse * reciprocal_power(power);
        s.power[token] = power_of_two(inverse);
    }
}

// A warp that does nothing but this, while the others multiply. `turn`: layers served before.
DEVICE void run_scaler(const Memory& m, u32 turn, const Abort& abort) {
    ClusterShared& s = *m.shared;
    if (s.task.live == 0) return;
#pragma unroll 1
    for (int i = 1; i < 2 * LAYERS; ++i) {
        const bool qkv = (i & 1) == 0;
        const u32 passed = turn + i / 2 - qkv;
        await_barrier(s, shared_address(&s.arrivals[qkv ? AT_QKV : AT_GATE_UP]), passed & 1u, abort);
        scale_tokens(m, 0, 4);
        meet_scaler();
    }
}

// Where one epilogue thread works: rows 4j .. 4j+3 and 8+4j .. of a tile, for one token. In QKV several
// threads share a cell: each sends it to every `spread`th block from `lane` on.
struct Cell {
    int slot, tile, token, j, lane;  // slot: tile of this block
    bool real;
};

// In one register, so that it can be found before the input arrives.
DEVICE u32 packed_cell(const Work& w, int index) {
    const bool real = index < w.threads;
    const u32 cell = real ? index >> w.spread : 0, lane = index & ((1 << w.spread) - 1);
    const u32 token = (cell >> 1) * w.reciprocal >> 16, slot = (cell >> 1) - token * w.count;
    return slot | token << 8 | lane << 16 | (cell & 1) << 24 | (u32)real << 25;
}

DEVICE Cell cell_of(const Work& w, u32 packed) {
    const int slot = packed & 0xff;
    return {slot, w.first + slot, (int)(packed >> 8 & 0xff), (int)(packed >> 24 & 1), (int)(packed >> 16 & 0xff),
            (packed >> 25 & 1) != 0};
}

struct Layer {
    int index;
    u32 turn;                // layers of this launch before it
    const float* constants;  // of this layer, CONSTANT_TILES * 16
};

DEVICE float4 constant_rows(const Layer& layer, int tile, int row) {
    return *reinterpret_cast<const float4*>(layer.constants + tile * TILE_ROWS + row);
}

// For clusters that attend to later tokens.
DEVICE void publish_row(uint4* unit, uint2 low, uint2 high, u32 tag) {
    const float2 a = half2_to_float2(low.x), b = half2_to_float2(low.y);
    const float2 d = half2_to_float2(high.x), e = half2_to_float2(high.y);
    publish(unit, make_float4(a.x, a.y, b.x, b.y), tag);
    publish(unit + 2, make_float4(d.x, d.y, e.x, e.y), tag);
}

// Keys and values of this request for later ones, and for later clusters.
DEVICE void keep(
    const Params& p, const ClusterShared& s, int layer, int head, int value, int column, int token, uint2 low,
    uint2 high) {
    const u64 row = (u64)((layer * KV_HEADS + head) * 2 + value) * p.max_context + s.request.position + token;
    uint2* cached = reinterpret_cast<uint2*>(p.cache + row * HEAD_DIM + column);
    cached[0] = low;
    cached[2] = high;
    if (s.task.last) return;
    uint4* unit = p.new_kv +
        ((u64)(layer * MAX_TOKENS + token) * 2 + value) * (KV_DIM / 4) + (head * HEAD_DIM + column) / 4;
    publish_row(unit, low, high, tag_for(s.request, layer));
}

DEVICE void finish_qkv(const Params& p, const Memory& m, const Work& w, int layer, const Cell& c, Outputs y) {
    constexpr int Q_TILES = Q_DIM / TILE_ROWS, KV_TILES = KV_DIM / TILE_ROWS, HEAD_TILES = HEAD_DIM / TILE_ROWS;
    ClusterShared& s = *m.shared;
    if (HAS_BIAS) {
        const float* bias = p.bias + (u64)layer * (Q_DIM + 2 * KV_DIM) + c.tile * TILE_ROWS + 4 * c.j;
        y.low = add4(y.low, load4(bias));
        y.high = add4(y.high, load4(bias + 8));
    }
    const int pair = rotary_pair(c.tile, c.j);
    if (pair >= 0) {
        const float4* turn = reinterpret_cast<const float4*>(m.rope + (c.token * (HEAD_DIM / 2) + pair) * 2);
        const float4 a = turn[0], b = turn[1];
        rotate(y.low.x, y.high.x, a.x, a.y);
        rotate(y.low.y, y.high.y, a.z, a.w);
        rotate(y.low.z, y.high.z, b.x, b.y);
        rotate(y.low.w, y.high.w, b.z, b.w);
    }
    const u32 barrier = shared_address(&s.arrivals[AT_ATTENTION]);
    const int column = c.tile % HEAD_TILES * TILE_ROWS + 4 * c.j;  // within the head
    if (c.tile < Q_TILES) {
        if (c.lane != 0) return;
        const float4 scale = make_float4(1.0f, 1.0f, 1.0f, 1.0f);
        const int head = c.tile / HEAD_TILES;
        const Owner owner = owner_of(m.base, head / REPEAT, c.token);
        const int row = (c.token - owner.begin) * REPEAT + head % REPEAT;
        const u32 to = at_rank(shared_address(m.queries + row * KV_STRIDE + column), owner.rank);
        const u32 there = at_rank(barrier, owner.rank);
        send(to, halves_of(scale4(y.low, scale, rsqrtf((float)HEAD_DIM))), there);
        send(to + 16, halves_of(scale4(y.high, scale, rsqrtf((float)HEAD_DIM))), there);
        return;
    }
    const int value = c.tile >= Q_TILES + KV_TILES;
    const int head = (c.tile - Q_TILES - value * KV_TILES) / HEAD_TILES;
    const uint2 low = halves_of(y.low), high = halves_of(y.high);
    const int token = s.task.first + c.token;
    // Straight to where attention wants them, if that is known here.
    const u16* row = s.task.near
        ? m.keys + (value * BLOCK_POSITIONS + s.request.position + token) * KV_STRIDE
        : m.fresh + (c.token * 2 + value) * KV_STRIDE;
    const u32 to = shared_address(row + column), ranks = s.head_ranks[head];
#pragma unroll 1
    for (int rank = c.lane; rank < CLUSTER; rank += 1 << w.spread) {
        if (!(ranks >> rank & 1u)) continue;
        const u32 there = at_rank(to, rank), at = at_rank(barrier, rank);
        send(there, low, at);
        send(there + 16, high, at);
    }
    if (c.lane == 0) keep(p, s, layer, head, value, column, token, low, high);
}

// The input of the next norm: residual times norm weight times a power of two, and its sum of squares.
template <int NT>
DEVICE void finish_residual(const Memory& m, int op, const Layer& layer, const Cell& c, Outputs y) {
    const ClusterShared& s = *m.shared;
    const int live = s.task.live;
    float4* at = reinterpret_cast<float4*>(m.tail + (c.slot * NT * TILE_TOKENS + c.token) * TILE_ROWS) + c.j;
    const float4 low = add4(at[0], y.low), high = add4(at[2], y.high);
    float squares = sum_of_squares(low) + sum_of_squares(high);
    squares += __shfl_xor_sync(0xffffffffu, squares, 1);  // the other half of the tile
    if (!c.real) return;
    at[0] = low;
    at[2] = high;
    const int norm = (op == OP_OUT ? OUT_NORM : DOWN_NORM) + c.slot;
    const float power = s.power[c.token];
    u8* tile = m.made + c.slot * norm_tile(live);
    uint2* to = reinterpret_cast<uint2*>(tile + c.token * 32) + c.j;
    to[0] = halves_of(scale4(low, constant_rows(layer, norm, 4 * c.j), power));
    to[2] = halves_of(scale4(high, constant_rows(layer, norm, 4 * c.j + 8), power));
    if (c.j == 0) reinterpret_cast<float*>(tile + live * 32)[c.token] = squares;
}

DEVICE void finish_gate_up(const Memory& m, const Cell& c, Outputs y) {
    u8* tile = m.made_wide + (c.slot >> 1) * wide_tile(m.shared->task.live) + c.token * 32;
    reinterpret_cast<uint2*>(tile)[(c.slot & 1) * 2 + c.j] = halves_of(make_float4(
        silu(y.low.x) * y.high.x, silu(y.low.y) * y.high.y, silu(y.low.z) * y.high.z,
        silu(y.low.w) * y.high.w));
}

// What this block has made, to all blocks; each warp serves one or two of them. A bulk copy out of shared memory
// is for the memory of another block; for this one a warp copies, and its arrival takes the place of the bytes.
DEVICE void send_made(const Memory& m, int op, const Work& w) {
    ClusterShared& s = *m.shared;
    const bool wide = op == OP_GATE_UP;
    const int tile = wide ? wide_tile(s.task.live) : norm_tile(s.task.live);
    const int first = wide ? w.first / 2 : w.first, count = wide ? w.count / 2 : w.count;
    const u32 from = shared_address(wide ? m.made_wide : m.made);
    const u32 to = shared_address(wide ? m.wide : m.x) + first * tile;
    const u32 barrier = shared_address(&s.arrivals[(op + 1) % 4]);
    const int own = cluster_rank(), warp = threadIdx.x / 32, lane = threadIdx.x & 31;
#pragma unroll
    for (int rank = warp; rank < CLUSTER; rank += WARPS)
        if (lane == 0 && rank != own) send_bulk(at_rank(to, rank), from, count * tile, at_rank(barrier, rank));
    if (warp != own % WARPS) return;
#pragma unroll 1
    for (int i = lane * 16; i < count * tile; i += 32 * 16) store_shared(to + i, load_shared(from + i));
    __syncwarp();  // lane 0 releases what the others have stored
    if (lane == 0) barrier_arrive(barrier);
}

// Sums of all cells of this block's tiles, and what becomes of them. `c`: the first one of this thread.
template <int NT>
DEVICE void finish(const Params& p, const Memory& m, int op, const Work& w, const Layer& layer, u32 packed) {
    constexpr int STRIDE = NT * TILE_TOKENS * PARTIAL_STRIDE;
    const ClusterShared& s = *m.shared;
    const bool narrow = op == OP_QKV || op == OP_GATE_UP;
    constexpr int MOST = max_of(max_of(QKV_CUT.most, OUT_CUT.most), max_of(GATE_UP_CUT.most, DOWN_CUT.most));
    constexpr bool ONCE = MOST * NT * TILE_TOKENS * 2 <= THREADS;  // one cell a thread
#pragma unroll 1
    for (int base = threadIdx.x; (base & ~31) < w.threads; base += THREADS) {
        if (!ONCE && base >= THREADS) packed = packed_cell(w, base);
        const Cell c = cell_of(w, packed);
        const float4 low_scale = constant_rows(layer, w.scales + c.slot, 4 * c.j);
        const float4 high_scale = constant_rows(layer, w.scales + c.slot, 4 * c.j + 8);
        const float scale = narrow ? s.scale[c.token] : 1.0f;
        const float* at = m.partials + c.slot * w.slices * STRIDE + c.token * PARTIAL_STRIDE + 4 * c.j;
        Outputs y = {*reinterpret_cast<const float4*>(at), *reinterpret_cast<const float4*>(at + 8)};
#pragma unroll
        for (int slice = 1; slice < MAX_SLICES; ++slice) {
            if (slice >= w.slices) break;
            y.low = add4(y.low, *reinterpret_cast<const float4*>(at + slice * STRIDE));
            y.high = add4(y.high, *reinterpret_cast<const float4*>(at + slice * STRIDE + 8));
        }
        y.low = scale4(y.low, low_scale, scale);
        y.high = scale4(y.high, high_scale, scale);
        if (!narrow)
            finish_residual<NT>(m, op, layer, c, y);
        else if (c.real && op == OP_QKV)
            finish_qkv(p, m, w, layer.index, c, y);
        else if (c.real)
            finish_gate_up(m, c, y);
        if (ONCE) break;
    }
    if (op == OP_QKV) return;
    fence_copies();
    block_sync();
    send_made(m, op, w);
}

// Partial sums of one item: [token][16 rows], PARTIAL_STRIDE floats a token.
template <int NT>
DEVICE void store_partial(float* partial, const float (&sums)[NT][4]) {
    const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
#pragma unroll
    for (int n = 0; n < NT; ++n) {
        float* at = partial + (8 * n + 2 * t) * PARTIAL_STRIDE + g;
        at[0] = sums[n][0];
        at[PARTIAL_STRIDE] = sums[n][1];
        at[8] = sums[n][2];
        at[PARTIAL_STRIDE + 8] = sums[n][3];
    }
}

// One product of one layer. Its input is complete when barrier `op` has passed; the first is there already.
template <int NT>
DEVICE void run_product(
    const Params& p, const Memory& m, Stream& st, int op, const Layer& layer, const Abort& abort) {
    ClusterShared& s = *m.shared;
    const int warp = threadIdx.x / 32, end = s.item_at[warp][op + 1], live = s.task.live;
    int at = s.item_at[warp][op];
    const bool narrow = op == OP_QKV || op == OP_GATE_UP, first = op == OP_QKV && layer.index == 0;
    const Input<NT> input =
        input_of<NT>(narrow ? m.x : m.wide, narrow ? norm_tile(live) : wide_tile(live), live);
    const u32 cell = packed_cell(s.work[op], threadIdx.x);
    if (!first) await_arrival(s, op, op == OP_QKV ? layer.turn - 1 : layer.turn, s.work[op].bytes, abort);
#pragma unroll 1
    for (; at < end; ++at) {
        const Item item = s.items[warp][at];
        float sums[NT][4];
        multiply_item<NT>(sums, st, input, item.begin, item.end);
        store_partial<NT>(m.partials + item.partial * (NT * TILE_TOKENS * PARTIAL_STRIDE), sums);
    }
    if (op == OP_QKV)
        await_barrier(s, shared_address(&s.constants[layer.turn & 1]), layer.turn >> 1 & 1u, abort);
    const Work w = s.work[op];
    if (narrow && !first)
        meet_scaler();
    else
        block_sync();
    if (op == OP_QKV && threadIdx.x == 0 && layer.turn > 0)
        barrier_arrive(shared_address(&s.constants_read[(layer.turn & 1) ^ 1]));
    finish<NT>(p, m, op, w, layer, cell);
}
