// SPDX-License-Identifier: Apache-2.0
// Inputs of a matrix product: wait for them, normalise, and quantise each token to e4m3 with its own
// scale. Every block does this for itself: cheaper than one more exchange.
//
// A row is cut into WARPS parts, one warp each, whatever the number of tokens; so the sum of squares
// is always added in the same order.
#pragma once
#include "state.cuh"
#include "values.cuh"

// Below this the scale would leave the normal range of float32; such a token is all zeros in effect.
constexpr float AMAX_FLOOR = 1e-20f;
constexpr float E4M3_MAX = 448.0f;
constexpr int BATCH = 8;  // units of four values that a lane holds: 8 tokens, or 8 units of one token

// Where the inputs of a product lie.
struct Input {
    const uint4* rows;  // tagged units of token 0; null: the embedding
    const float* norm;  // null: none
    int units;          // a row
    u32 tag;
};

DEVICE Input input_of(const Params& p, const GridShared& s, int op, int layer) {
    Input in;
    in.units = PRODUCTS[op].units;
    in.rows = op == OP_OUT ? p.mixed : op == OP_GATE_UP ? p.x_ffn : op == OP_DOWN ? p.gated : p.x_attention;
    if (op == OP_QKV && layer == 0) in.rows = nullptr;
    in.norm = p.norms + (2 * layer + (op == OP_GATE_UP)) * DIM;
    if (op == OP_HEAD) in.norm = p.final_norm;
    if (op == OP_OUT || op == OP_DOWN) in.norm = nullptr;
    // The residual comes from the layer before; the head's instruction is of layer 0 for its weights.
    in.tag = tag_for(s.request, op == OP_HEAD ? LAYERS - 1 : op == OP_QKV ? layer - 1 : layer);
    return in;
}

// The units of one lane: unit(j) of token(j), j < count. Either one unit of up to BATCH tokens
// (a narrow row), or up to BATCH units of one token (WIDE_ROW).
template <bool WIDE_ROW>
struct Lane {
    int token, unit, end, tokens;  // first token and unit; end of this warp's part

    MEMBER int token_of(int j) const { return WIDE_ROW ? token : token + j; }
    MEMBER int unit_of(int j) const { return WIDE_ROW ? unit + 32 * j : unit; }
    MEMBER bool has(int j) const { return unit_of(j) < end && (WIDE_ROW || j < tokens); }
};

// All loads are issued before the first look at a tag; then all again until every tag is right.
template <bool WIDE_ROW>
DEVICE bool read_units(
    float4 (&v)[BATCH], const Params& p, const GridShared& s, const Input& in,
    const Lane<WIDE_ROW>& lane, const Abort& abort) {
    if (in.rows == nullptr) {
#pragma unroll
        for (int j = 0; j < BATCH; ++j)
            if (lane.has(j)) v[j] = embedding_unit(p, s.tokens[lane.token_of(j)], lane.unit_of(j));
        return true;
    }
    bool ok = true;
    for (u32 spins = 0; ok; ok = may_wait(abort, spins)) {
        bool ready = true;
#pragma unroll
        for (int j = 0; j < BATCH; ++j)
            if (lane.has(j))
                v[j] = as_floats(load_unit(in.rows + lane.token_of(j) * in.units + lane.unit_of(j)));
#pragma unroll
        for (int j = 0; j < BATCH; ++j)
            if (lane.has(j)) ready = ready && tag_of(as_words(v[j])) == in.tag;
        if (__all_sync(0xffffffffu, ready)) break;
    }
#pragma unroll
    for (int j = 0; j < BATCH; ++j) v[j] = values_of(as_words(v[j]));
    return ok;
}

DEVICE u32 largest_bits(float4 v) {
    return __float_as_uint(fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w))));
}

// Fill rows `column` .. of the operand with up to BATCH tokens (one, if the row is wide), and their
// scales. There is a barrier half-way; the caller needs another before it reads the operand.
// WORDS: rows of plain codes, four a word, instead of operand rows.
template <bool WIDE_ROW, bool WORDS>
DEVICE void quantise_batch(
    u8* operand, int parity, const Params& p, GridShared& s, const Input& in, int first, int column,
    int tokens, const Abort& abort) {
    const int warp = thread_index() / 32, thread = thread_index() & 31;
    const int part = (in.units + WARPS - 1) / WARPS;
    const Lane<WIDE_ROW> lane = {
        first + column, warp * part + thread, min((warp + 1) * part, in.units), tokens};
    const bool norm = in.norm != nullptr;
    float4 g = make_float4(1.0f, 1.0f, 1.0f, 1.0f);
    if (!WIDE_ROW && norm && lane.has(0)) g = load4(in.norm + 4 * lane.unit);
    float4 v[BATCH];
    if (!read_units(v, p, s, in, lane, abort)) s.failed = 1;
    float squares = 0.0f;
    u32 largest = 0;
#pragma unroll
    for (int j = 0; j < BATCH; ++j) {
        if (!WIDE_ROW && j >= tokens) break;
        if (!lane.has(j)) v[j] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (norm) {
            squares += sum_of_squares(v[j]);
            if (WIDE_ROW && lane.has(j)) g = load4(in.norm + 4 * lane.unit_of(j));
            v[j] = multiply4(v[j], g);
        }
        largest = max(largest, largest_bits(v[j]));
        if (WIDE_ROW && j + 1 < BATCH) continue;
        // Magnitudes compare like their bits, and a maximum has no order: one instruction a warp.
        largest = __reduce_max_sync(0xffffffffu, largest);
        if (norm) squares = warp_sum(squares);
        if (thread == 0) {
            const int at = WIDE_ROW ? column : column + j;
            atomicMax(&s.largest[at], largest);
            if (norm) s.squares[warp][at] = squares;
        }
        squares = 0.0f;
        largest = 0;
    }
    block_sync();
    if (warp == WARPS - 1 && thread < tokens) {
        const int at = column + thread;
        float sum = 0.0f;
        for (int w = 0; norm && w < WARPS; ++w) sum += s.squares[w][at];
        const float rms = norm ? rsqrtf(sum * (1.0f / DIM) + NORM_EPS) : 1.0f;
        s.token_scale[parity][at] =
            fmaxf(__uint_as_float(s.largest[at]), AMAX_FLOOR) * (1.0f / E4M3_MAX) * rms;
    }
    // x * norm * rms is what is quantised; the codes need no rms (it cancels), only the scale does.
#pragma unroll
    for (int j = 0; j < BATCH; ++j) {
        if (!WIDE_ROW && j >= tokens) break;
        const int at = WIDE_ROW ? column : column + j;
        const float inverse =
            __fdividef(E4M3_MAX, fmaxf(__uint_as_float(s.largest[at]), AMAX_FLOOR));
        if (!lane.has(j)) continue;
        const u32 codes = to_e4m3x4(
            make_float4(v[j].x * inverse, v[j].y * inverse, v[j].z * inverse, v[j].w * inverse));
        if (WORDS)
            reinterpret_cast<u32*>(operand)[at * (K_MAX / 4) + lane.unit_of(j)] = codes;
        else
            store_word(operand + at * OPERAND_STRIDE, lane.unit_of(j), codes);
    }
}

template <bool WORDS>
DEVICE void quantise_tokens(
    u8* operand, int parity, const Params& p, GridShared& s, const Input& in, int first, int count,
    const Abort& abort) {
    if (thread_index() < TILE_TOKENS * WIDE) s.largest[thread_index()] = 0;
    block_sync();
    if (K_MAX / 4 > WARPS * 32 && in.units > WARPS * 32) {
#pragma unroll 1
        for (int column = 0; column < count; ++column)
            quantise_batch<true, WORDS>(operand, parity, p, s, in, first, column, 1, abort);
        return;
    }
#pragma unroll 1
    for (int column = 0; column < count; column += BATCH)
        quantise_batch<false, WORDS>(
            operand, parity, p, s, in, first, column, min(BATCH, count - column), abort);
}
