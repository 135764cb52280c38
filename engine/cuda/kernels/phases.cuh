// SPDX-License-Identifier: Apache-2.0
// What happens to the outputs of each matrix product, and the phase that puts the parts together.
#pragma once
#include "matmul.cuh"

// Where one epilogue thread works, and what it loads from memory before the sums are ready.
struct Cell {
    bool mine;
    int slot, tile, column, token, j;  // slot: tile of this instruction; j: 0 or 1, which four rows
    float4 scale_low, scale_high, extra_low, extra_high;  // extra: rotation, or embedding
    uint4* to;  // unit of `low`; that of `high` is two further on
    u32 tag;
};

// First unit that tile `tile` of this product fills for `token`; the head has none.
DEVICE uint4* output_unit(const Params& p, const Work& work, int token, int tile) {
    constexpr int Q_TILES = Q_DIM / TILE_ROWS, KV_TILES = KV_DIM / TILE_ROWS;
    if (work.op == OP_GATE_UP) return p.gated + token * (FFN / 4) + tile * 2;
    if (work.op != OP_QKV) return (work.op == OP_OUT ? p.x_ffn : p.x_attention) + token * (DIM / 4) + tile * 4;
    if (tile < Q_TILES) return p.queries + token * (Q_DIM / 4) + tile * 4;
    const int value = tile >= Q_TILES + KV_TILES;
    return p.new_kv + ((work.layer * MAX_TOKENS + token) * 2 + value) * (KV_DIM / 4) +
        (tile - Q_TILES - value * KV_TILES) * 4;
}

template <int NT>
DEVICE Cell cell_of(
    const Params& p, const GridShared& s, const Work& work, int pass, int first_token, int tokens) {
    constexpr int COLUMNS = NT * TILE_TOKENS;
    const int thread = thread_index(), at = thread / (2 * COLUMNS);
    const Product& product = PRODUCTS[work.op];
    Cell c;
    c.column = thread / 2 % COLUMNS;
    c.j = thread & 1;
    c.slot = pass * product.tiles_at_once + at;
    c.tile = work.first + c.slot;
    c.token = first_token + c.column;
    c.mine = at < product.tiles_at_once && c.slot < work.count && c.column < tokens;
    c.scale_low = c.scale_high = make_float4(1.0f, 1.0f, 1.0f, 1.0f);
    if (!c.mine) return c;
    c.to = output_unit(p, work, c.token, c.tile) + c.j;
    c.tag = tag_for(s.request, work.layer);
    if (GROUP == 0) {
        const float* scales = p.scales[work.op] + (work.layer * product.tiles + c.tile) * TILE_ROWS;
        c.scale_low = load4(scales + 4 * c.j);
        c.scale_high = load4(scales + 8 + 4 * c.j);
    }
    if (work.op == OP_QKV) {
        const int pair = rotary_pair(c.tile, c.j);
        if (pair >= 0) {
            const float* turn = p.rope + ((s.request.position + c.token) * (HEAD_DIM / 2) + pair) * 2;
            c.extra_low = load4(turn);
            c.extra_high = load4(turn + 4);
        }
    }
    if (work.op == OP_OUT && work.layer == 0) {
        c.extra_low = embedding_unit(p, s.tokens[c.token], c.tile * 4 + c.j);
        c.extra_high = embedding_unit(p, s.tokens[c.token], c.tile * 4 + 2 + c.j);
    }
    return c;
}

DEVICE void finish_qkv(const Params& p, int layer, const Cell& c, Outputs y) {
    if (HAS_BIAS) {
        const float* bias = p.bias + (u64)layer * (Q_DIM + 2 * KV_DIM) + c.tile * TILE_ROWS + 4 * c.j;
        y.low = add4(y.low, load4(bias));
        y.high = add4(y.high, load4(bias + 8));
    }
    if (rotary_pair(c.tile, c.j) >= 0) {
        rotate(y.low.x, y.high.x, c.extra_low.x, c.extra_low.y);
        rotate(y.low.y, y.high.y, c.extra_low.z, c.extra_low.w);
        rotate(y.low.z, y.high.z, c.extra_high.x, c.extra_high.y);
        rotate(y.low.w, y.high.w, c.extra_high.z, c.extra_high.w);
    }
    publish(c.to, y.low, c.tag);
    publish(c.to + 2, y.high, c.tag);
}

// The residual stays in float32 in the block that owns the tile; others get its rounded copy.
DEVICE void finish_residual(
    const Work& work, const Cell& c, Outputs y, float* residual, int columns) {
    float4* at = reinterpret_cast<float4*>(residual + (c.slot * columns + c.column) * TILE_ROWS) + c.j;
    const bool first = work.op == OP_OUT && work.layer == 0;
    const float4 low = add4(first ? c.extra_low : at[0], y.low);
    const float4 high = add4(first ? c.extra_high : at[2], y.high);
    at[0] = low;
    at[2] = high;
    publish(c.to, low, c.tag);
    publish(c.to + 2, high, c.tag);
}

DEVICE void finish_gate_up(const Cell& c, Outputs y) {
    const float4 v = make_float4(
        silu(y.low.x) * y.high.x, silu(y.low.y) * y.high.y, silu(y.low.z) * y.high.z,
        silu(y.low.w) * y.high.w);
    publish(c.to, v, c.tag);
}

DEVICE void finish_head(const Params& p, const GridShared& s, const Cell& c, Outputs y, float* local) {
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

DEVICE void finish(
    const Params& p, const GridShared& s, const Work& work, const Cell& c, Outputs y, float* tail,
    int columns) {
    if (work.op == OP_QKV)
        finish_qkv(p, work.layer, c, y);
    else if (work.op == OP_GATE_UP)
        finish_gate_up(c, y);
    else if (work.op == OP_HEAD)
        finish_head(p, s, c, y, tail);
    else
        finish_residual(work, c, y, tail, columns);
}

// One instruction: tiles work.first .. for `tokens` tokens from `first_token`. What comes from memory
// is requested before the wait for the activations. Returns false when that wait was given up.
template <int NT>
DEVICE bool run_phase(
    const Params& p, const Smem& m, const Work& work, int first_token, int tokens, int parity,
    const Abort& abort) {
    constexpr int COLUMNS = NT * TILE_TOKENS;
    constexpr int STRIDE = COLUMNS * PARTIAL_STRIDE;  // floats of one warp's partial sums
    static_assert(4 * 2 * COLUMNS <= THREADS, "one epilogue thread a cell");
    GridShared& s = *m.shared;
    u8* operand = m.scratch;
    float* partials = reinterpret_cast<float*>(m.scratch + OPERAND_BYTES);
    const float* token_scale = s.token_scale[parity];
    const int warp = thread_index() / 32;
    const int slices = PRODUCTS[work.op].slices, at_once = PRODUCTS[work.op].tiles_at_once;
    uint4 a[AHEAD];
    Slice slice = slice_of(p, work, 0);
    load_ahead(a, slice);
    Cell c;  // early where registers allow: then it costs nothing but the wait
    if (NT == 1) c = cell_of<NT>(p, s, work, 0, first_token, tokens);
    // Wide phases always share their inputs: one copy less of the longer code (see `execute`).
    if (NT > 1 || (s.shared_inputs && work.op != OP_HEAD))
        load_codes(operand, parity, p, s, work.op, work.layer, first_token, tokens, abort);
    else
        quantise_tokens<false>(
            operand, parity, p, s, input_of(p, s, work.op, work.layer), first_token, tokens, abort);
    if (NT > 1) c = cell_of<NT>(p, s, work, 0, first_token, tokens);
    block_sync();
    if (s.failed) return false;
#pragma unroll 1
    for (int pass = 0; pass * at_once < work.count; ++pass) {
        float* sums = partials + (pass & 1) * (WARPS * STRIDE);
        if (slice.begin < slice.end) {
            Sums<NT> products;
            multiply_slice<NT>(products, a, slice, operand);
            store_partial<NT>(sums + warp * STRIDE, products.acc);
        }
        const bool more = (pass + 1) * at_once < work.count;
        if (more) {
            slice = slice_of(p, work, pass + 1);
            load_ahead(a, slice);
        }
        block_sync();
        if (c.mine) {
            const int slot = c.slot - pass * at_once;
            Outputs y = add_slices(
                sums + slot * slices * STRIDE + c.column * PARTIAL_STRIDE + 4 * c.j, slices, STRIDE);
            y.low = scale4(y.low, c.scale_low, token_scale[c.column]);
            y.high = scale4(y.high, c.scale_high, token_scale[c.column]);
            finish(p, s, work, c, y, m.residual, COLUMNS);
        }
        if (more) c = cell_of<NT>(p, s, work, pass + 1, first_token, tokens);
    }
    return true;
}
