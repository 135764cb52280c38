// SPDX-License-Identifier: Apache-2.0
// What happens to the outputs of each matrix product, and the phase that puts the parts together.
#pragma once
#include "matmul.cuh"

// Where one epilogue thread works, and everything it can load before the sums are ready.
struct Cell {
    bool mine;
    int slot, tile, column, token, j;  // slot: tile of this instruction; j: 0 or 1, which four rows
    float4 scale_low, scale_high, extra_low, extra_high;  // extra: bias, rotation or residual
};

DEVICE float4 load4(const float* p) { return __ldg(reinterpret_cast<const float4*>(p)); }

// Rotary tile: rows g and g+8 are a pair. Returns pair index of the first row, or -1 (a value tile).
DEVICE int rotary_pair(int tile, int j) {
    constexpr int HEAD_TILES = HEAD_DIM / TILE_ROWS;
    if (tile >= (Q_DIM + KV_DIM) / TILE_ROWS) return -1;
    return tile % HEAD_TILES * 8 + 4 * j;
}

template <int OP, int NT>
DEVICE Cell cell_of(
    const Params& p, const Shared& s, const Work& work, int pass, int first_token, int tokens,
    const float* residual) {
    using S = Shape<OP>;
    constexpr int COLUMNS = NT * TILE_TOKENS;
    Cell c;
    const int at = thread_index() / (2 * COLUMNS);
    c.column = thread_index() / 2 % COLUMNS;
    c.j = thread_index() & 1;
    c.slot = pass * S::TILES_AT_ONCE + at;
    c.tile = work.first + c.slot;
    c.token = first_token + c.column;
    c.mine = at < S::TILES_AT_ONCE && c.slot < work.count && c.column < tokens;
    if (!c.mine) return c;
    c.scale_low = c.scale_high = make_float4(1.0f, 1.0f, 1.0f, 1.0f);
    if (GROUP == 0) {
        const float* scales = p.scales[OP] + (u64)(work.layer * S::TILES + c.tile) * TILE_ROWS;
        c.scale_low = load4(scales + 4 * c.j);
        c.scale_high = load4(scales + 8 + 4 * c.j);
    }
    if (OP == OP_QKV) {
        const int pair = rotary_pair(c.tile, c.j);
        if (pair >= 0) {
            const float* at = p.rope + ((u64)(s.request.position + c.token) * (HEAD_DIM / 2) + pair) * 2;
            c.extra_low = load4(at);
            c.extra_high = load4(at + 4);
        }
    }
    if (OP == OP_OUT && work.layer == 0) {
        c.extra_low = embedding_unit(p, s.tokens[c.token], c.tile * 4 + c.j);
        c.extra_high = embedding_unit(p, s.tokens[c.token], c.tile * 4 + 2 + c.j);
    } else if (OP == OP_OUT || OP == OP_DOWN) {
        const float* at = residual + (c.slot * COLUMNS + c.column) * RESIDUAL_FLOATS + 4 * c.j;
        c.extra_low = *reinterpret_cast<const float4*>(at);
        c.extra_high = *reinterpret_cast<const float4*>(at + 8);
    }
    return c;
}

DEVICE void rotate(float& first, float& second, float cosine, float sine) {
    const float a = first * cosine - second * sine;
    second = second * cosine + first * sine;
    first = a;
}

DEVICE void finish_qkv(const Params& p, const Shared& s, int layer, const Cell& c, Outputs y) {
    if (HAS_BIAS) {
        const float* bias = p.bias + (u64)layer * Shape<OP_QKV>::ROWS + c.tile * TILE_ROWS + 4 * c.j;
        y.low = add4(y.low, load4(bias));
        y.high = add4(y.high, load4(bias + 8));
    }
    if (rotary_pair(c.tile, c.j) >= 0) {
        rotate(y.low.x, y.high.x, c.extra_low.x, c.extra_low.y);
        rotate(y.low.y, y.high.y, c.extra_low.z, c.extra_low.w);
        rotate(y.low.z, y.high.z, c.extra_high.x, c.extra_high.y);
        rotate(y.low.w, y.high.w, c.extra_high.z, c.extra_high.w);
    }
    const u32 tag = tag_for(s.request, layer);
    constexpr int Q_TILES = Q_DIM / TILE_ROWS, KV_TILES = KV_DIM / TILE_ROWS;
    uint4* unit;
    if (c.tile < Q_TILES) {
        unit = p.queries + (u64)c.token * (Q_DIM / 4) + c.tile * 4;
    } else {
        const int kv_tile = c.tile - Q_TILES, which = kv_tile / KV_TILES;
        unit = p.new_kv + (((u64)layer * MAX_TOKENS + c.token) * 2 + which) * (KV_DIM / 4) +
            (kv_tile % KV_TILES) * 4;
    }
    publish(unit + c.j, y.low, tag);
    publish(unit + 2 + c.j, y.high, tag);
}

template <int OP>
DEVICE void finish_residual(
    const Params& p, const Shared& s, int layer, const Cell& c, Outputs y, float* residual,
    int columns) {
    const float4 low = add4(c.extra_low, y.low), high = add4(c.extra_high, y.high);
    float* at = residual + (c.slot * columns + c.column) * RESIDUAL_FLOATS + 4 * c.j;
    *reinterpret_cast<float4*>(at) = low;
    *reinterpret_cast<float4*>(at + 8) = high;
    uint4* unit = (OP == OP_OUT ? p.x_ffn : p.x_attention) + (u64)c.token * (DIM / 4) + c.tile * 4;
    publish(unit + c.j, low, tag_for(s.request, layer));
    publish(unit + 2 + c.j, high, tag_for(s.request, layer));
}

DEVICE float silu(float v) { return v / (1.0f + __expf(-v)); }

DEVICE void finish_gate_up(const Params& p, const Shared& s, int layer, const Cell& c, Outputs y) {
    const float4 v = make_float4(
        silu(y.low.x) * y.high.x, silu(y.low.y) * y.high.y, silu(y.low.z) * y.high.z,
        silu(y.low.w) * y.high.w);
    publish(
        p.gated + (u64)c.token * (FFN / 4) + c.tile * 2 + c.j, v, tag_for(s.request, layer));
}

DEVICE void finish_head(const Params& p, const Shared& s, const Cell& c, Outputs y, float* local) {
    const float low[4] = {y.low.x, y.low.y, y.low.z, y.low.w};
    const float high[4] = {y.high.x, y.high.y, y.high.z, y.high.w};
    const bool all = s.request.flags & ALL_LOGITS;
    float* row = p.logits + (all ? (u64)c.token * VOCAB : 0);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int id = c.tile * TILE_ROWS + 4 * c.j + i;
        if (id < VOCAB) row[id] = low[i];
        if (id + 8 < VOCAB) row[id + 8] = high[i];
        if (!all) {
            local[c.slot * TILE_ROWS + 4 * c.j + i] = low[i];
            local[c.slot * TILE_ROWS + 8 + 4 * c.j + i] = high[i];
        }
    }
}

// One instruction: tiles work.first .. for `tokens` tokens from `first_token`. The first weights are
// requested before the wait for the activations. Returns false when that wait was given up.
// Not inlined: one register allocation for all phases together spills.
template <int OP, int NT>
DEVICE bool run_phase(
    const Params& p, const Smem& m, const Work& work, int first_token, int tokens, int parity,
    const Abort& abort) {
    using S = Shape<OP>;
    constexpr int COLUMNS = NT * TILE_TOKENS;
    constexpr int PARTIALS = WARPS * COLUMNS * PARTIAL_STRIDE;
    static_assert(S::TILES_AT_ONCE * 2 * COLUMNS <= THREADS, "one epilogue thread a cell");
    Shared& s = *m.shared;
    u8* operand = m.scratch;
    float* partials = reinterpret_cast<float*>(m.scratch + OPERAND_BYTES);
    float* token_scale = s.token_scale[parity];
    const int warp = thread_index() / 32;
    uint4 a[AHEAD];
    load_ahead(a, slice_of<OP>(p, work, 0));
    quantise_inputs<OP>(operand, token_scale, p, s, work.layer, first_token, tokens, abort);
    __syncthreads();
    if (s.failed) return false;
    for (int pass = 0; pass * S::TILES_AT_ONCE < work.count; ++pass) {
        float* sums = partials + (pass & 1) * PARTIALS;
        const Cell c = cell_of<OP, NT>(p, s, work, pass, first_token, tokens, m.residual);
        const Slice slice = slice_of<OP>(p, work, pass);
        if (slice.begin < slice.end) {
            float acc[NT][4];
            multiply_slice<OP, NT>(
                acc, a, slice, operand,
                p.scales[OP] + (u64)(work.layer * S::TILES + slice.tile) * S::GROUPS * TILE_ROWS);
            store_partial<NT>(sums + warp * COLUMNS * PARTIAL_STRIDE, acc);
        }
        load_ahead(a, slice_of<OP>(p, work, pass + 1));
        __syncthreads();
        if (!c.mine) continue;
        Outputs y = add_slices<S::SLICES>(
            sums, c.slot - pass * S::TILES_AT_ONCE, c.column, c.j, COLUMNS);
        y.low = scale4(y.low, c.scale_low, token_scale[c.column]);
        y.high = scale4(y.high, c.scale_high, token_scale[c.column]);
        if (OP == OP_QKV) finish_qkv(p, s, work.layer, c, y);
        if (OP == OP_OUT || OP == OP_DOWN)
            finish_residual<OP>(p, s, work.layer, c, y, m.residual, COLUMNS);
        if (OP == OP_GATE_UP) finish_gate_up(p, s, work.layer, c, y);
        if (OP == OP_HEAD) finish_head(p, s, c, y, m.residual);
    }
    return true;
}
