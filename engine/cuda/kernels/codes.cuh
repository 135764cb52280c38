// SPDX-License-Identifier: Apache-2.0
// Inputs quantised once for all: one block quantises a token and publishes its codes, the others only
// load them. One exchange more, but a fraction of the work in each block; worth it from two tokens on.
// The codes are those that a block would have computed for itself, bit for bit.
//
// A row of codes is ceil(K / 12) units of twelve codes and the tag, then one unit with the scale.
#pragma once
#include "operand.cuh"

constexpr int CODE_ROW_UNITS = ceil_div(K_MAX, 12) + 1;  // of the widest input
constexpr int LOADS = 4;                                 // units a thread waits for together

// Units of a row of `units` * 4 values, the scale included.
DEVICE int code_units(int units) { return (units + 2) / 3 + 1; }

DEVICE uint4* code_row(const Params& p, int op, int token) {
    return p.codes_shared + (op * MAX_TOKENS + token) * CODE_ROW_UNITS;
}

// Quantise tokens first .. first + count for product `op` of this layer, and publish them.
DEVICE bool run_quantise(
    const Params& p, const Smem& m, int op, int layer, int first, int count, const Abort& abort) {
    constexpr int PUBLISHED = 2;  // row of token_scale
    GridShared& s = *m.shared;
    const Input in = input_of(p, s, op, layer);
    const u32 tag = tag_for(s.request, layer);
    const u32* words = reinterpret_cast<const u32*>(m.scratch);
    block_sync();  // the scratch may still be read by the instruction before
    quantise_tokens<true>(m.scratch, PUBLISHED, p, s, in, first, count, abort);
    block_sync();
    if (s.failed) return false;
    const int row_units = code_units(in.units);
    for (int column = 0; column < count; ++column) {
        uint4* row = code_row(p, op, first + column);
        const u32* from = words + column * (K_MAX / 4);
        for (int i = thread_index(); i < row_units; i += THREADS) {
            uint4 v = make_uint4(__float_as_uint(s.token_scale[PUBLISHED][column]), 0, 0, tag);
            if (i < row_units - 1) {
                v.x = from[3 * i];
                v.y = 3 * i + 1 < in.units ? from[3 * i + 1] : 0;
                v.z = 3 * i + 2 < in.units ? from[3 * i + 2] : 0;
            }
            store_unit(row + i, v);
        }
    }
    block_sync();  // the next instruction fills the scratch
    return true;
}

// Fill the operand with `count` published tokens from `first`.
DEVICE void load_codes(
    u8* operand, int parity, const Params& p, GridShared& s, int op, int layer, int first, int count,
    const Abort& abort) {
    const int units = PRODUCTS[op].units, row_units = code_units(units);
    const u32 reciprocal = (1u << 24) / row_units + 1;  // i / row_units by one multiplication
    const u32 tag = tag_for(s.request, layer);
    const uint4* rows = code_row(p, op, first);
    const int all = count * row_units;
    bool ok = true;
#pragma unroll 1
    for (int base = thread_index(); base - (base & 31) < all; base += LOADS * THREADS) {
        uint4 v[LOADS];
        for (u32 spins = 0; ok; ok = may_wait(abort, spins)) {
            bool ready = true;
#pragma unroll
            for (int k = 0; k < LOADS; ++k) {
                const u32 i = base + k * THREADS, column = (u64)i * reciprocal >> 24;
                if (i < all) v[k] = load_unit(rows + column * CODE_ROW_UNITS + (i - column * row_units));
            }
#pragma unroll
            for (int k = 0; k < LOADS; ++k)
                if (base + k * THREADS < all) ready = ready && v[k].w == tag;
            if (__all_sync(0xffffffffu, ready)) break;
        }
#pragma unroll
        for (int k = 0; k < LOADS; ++k) {
            const u32 i = base + k * THREADS, column = (u64)i * reciprocal >> 24;
            if (i >= all) break;
            const int unit = i - column * row_units;
            if (unit == row_units - 1) {
                s.token_scale[parity][column] = __uint_as_float(v[k].x);
                continue;
            }
            u8* row = operand + column * OPERAND_STRIDE;
            store_word(row, 3 * unit, v[k].x);
            if (3 * unit + 1 < units) store_word(row, 3 * unit + 1, v[k].y);
            if (3 * unit + 2 < units) store_word(row, 3 * unit + 2, v[k].z);
        }
    }
    if (!ok) s.failed = 1;
}
