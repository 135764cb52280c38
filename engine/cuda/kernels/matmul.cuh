// SPDX-License-Identifier: Apache-2.0
// One phase of matrix products: out[16 rows of each tile, tokens] = W x, with W streamed from memory
// straight into registers in fragment order.
//
// A tile is cut into slices along K, one warp a slice. Slices meet in shared memory and are added in
// order. A warp requests its first AHEAD fragments before the activations arrive.
#pragma once
#include "codes.cuh"

constexpr int STRAIGHT = 4;  // steps between branches; a multiple of every SEGMENT
constexpr int AHEAD = 2 * STRAIGHT;  // fragments in flight a lane

struct Work {
    int op, layer, first, count;  // row tiles first .. first + count
};

struct Slice {
    int begin, end;       // steps; begin == end: this warp has nothing
    const u8* codes;      // of step 0, this lane
    const float* scales;  // of this tile
};

DEVICE Slice slice_of(const Params& p, const Work& work, int pass) {
    const int warp = thread_index() / 32, lane = thread_index() & 31;
    const Product& product = PRODUCTS[work.op];
    const WarpWork mine = product.work[warp];
    const int local = pass * product.tiles_at_once + mine.slot;
    const int tile = work.layer * product.tiles + work.first + local;
    Slice r;
    r.begin = mine.begin;
    r.end = local < work.count ? (int)mine.end : (int)mine.begin;
    r.codes = p.codes[work.op] + (u64)(tile * product.steps) * TILE_BYTES + lane * 16;
    r.scales = p.scales[work.op] + (u64)(tile * product.groups) * TILE_ROWS;
    return r;
}

DEVICE void load_ahead(uint4 (&a)[AHEAD], const Slice& slice) {
    const u8* at = slice.codes + (u64)slice.begin * TILE_BYTES;
#pragma unroll
    for (int i = 0; i < AHEAD; ++i) {
        a[i] = make_uint4(0, 0, 0, 0);
        if (slice.begin + i < slice.end) a[i] = load_weights(at + i * TILE_BYTES);
    }
}

// FP32 sums and the tensor cores' own, which are added to them and cleared after each segment.
template <int NT>
struct Sums {
    float acc[NT][4];
    Accumulator part[NT];
};

// STRAIGHT steps without a branch between them, so that loads, conversions and products overlap.
// Missing steps at the end have zero weights and read the operand of the first: they add zero.
template <int NT>
DEVICE void multiply_steps(
    Sums<NT>& sums, uint4 (&a)[AHEAD], int at, int left, int step, const u8* b, const u8* ahead,
    const Slice& slice) {
    const int g = (thread_index() & 31) >> 2;
#pragma unroll
    for (int i = 0; i < STRAIGHT; ++i) {
        const Fragment w = fragment_of(a[at + i]);
        a[at + i] = make_uint4(0, 0, 0, 0);
        if (at + i + AHEAD < left) a[at + i] = load_weights(ahead + (at + i) * TILE_BYTES);
        const u8* column = b + (at + i < left ? at + i : 0) * (STEP * CODE_BYTES);
#pragma unroll
        for (int n = 0; n < NT; ++n) sums.part[n].add(w, column + 8 * n * OPERAND_STRIDE);
        if (i % SEGMENT != SEGMENT - 1) continue;
        float low = 1.0f, high = 1.0f;
        if (GROUP != 0) {
            const int group = min(step + at + i, slice.end - 1) / SEGMENT / SEGMENTS_PER_GROUP;
            low = __ldg(slice.scales + group * TILE_ROWS + g);
            high = __ldg(slice.scales + group * TILE_ROWS + g + 8);
        }
#pragma unroll
        for (int n = 0; n < NT; ++n) {
#pragma unroll
            for (int c = 0; c < 4; ++c) {
                const float sum = sums.part[n].sum(c);
                sums.acc[n][c] += GROUP == 0 ? sum : sum * (c < 2 ? low : high);
            }
            sums.part[n].clear();
        }
    }
}

// Accumulate one slice for NT tiles of 8 tokens.
template <int NT>
DEVICE void multiply_slice(Sums<NT>& sums, uint4 (&a)[AHEAD], const Slice& slice, const u8* operand) {
    const int lane = thread_index() & 31, g = lane >> 2, t = lane & 3;
#pragma unroll
    for (int n = 0; n < NT; ++n) {
        sums.part[n].clear();
#pragma unroll
        for (int c = 0; c < 4; ++c) sums.acc[n][c] = 0.0f;
    }
    const u8* b = operand + g * OPERAND_STRIDE + CODE_BYTES * (4 * t + slice.begin * STEP);
    const u8* ahead = slice.codes + (u64)(slice.begin + AHEAD) * TILE_BYTES;
#pragma unroll 1
    for (int step = slice.begin; step < slice.end; step += AHEAD) {
        const int left = slice.end - step;
        multiply_steps<NT>(sums, a, 0, left, step, b, ahead, slice);
        if (left > STRAIGHT) multiply_steps<NT>(sums, a, STRAIGHT, left, step, b, ahead, slice);
        b += AHEAD * STEP * CODE_BYTES;
        ahead += AHEAD * TILE_BYTES;
    }
}

// Partial sums of one warp: [token][16 rows], PARTIAL_STRIDE floats a token.
template <int NT>
DEVICE void store_partial(float* partial, const float (&acc)[NT][4]) {
    const int lane = thread_index() & 31, g = lane >> 2, t = lane & 3;
#pragma unroll
    for (int n = 0; n < NT; ++n) {
        float* at = partial + (8 * n + 2 * t) * PARTIAL_STRIDE + g;
        at[0] = acc[n][0];
        at[PARTIAL_STRIDE] = acc[n][1];
        at[8] = acc[n][2];
        at[PARTIAL_STRIDE + 8] = acc[n][3];
    }
}

// `at`: slice 0 of this thread's rows; slices are `stride` floats apart. Six loads at a time, then
// the sums in order; slices that do not exist count as zero.
DEVICE Outputs add_slices(const float* at, int slices, int stride) {
    constexpr int TOGETHER = WARPS / 2;
    Outputs r = {make_float4(0.0f, 0.0f, 0.0f, 0.0f), make_float4(0.0f, 0.0f, 0.0f, 0.0f)};
#pragma unroll 1
    for (int first = 0; first < slices; first += TOGETHER) {
        float4 low[TOGETHER], high[TOGETHER];
#pragma unroll
        for (int i = 0; i < TOGETHER; ++i) {
            low[i] = high[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            if (first + i >= slices) continue;
            low[i] = *reinterpret_cast<const float4*>(at + i * stride);
            high[i] = *reinterpret_cast<const float4*>(at + i * stride + 8);
        }
#pragma unroll
        for (int i = 0; i < TOGETHER; ++i) {
            r.low = add4(r.low, low[i]);
            r.high = add4(r.high, high[i]);
        }
        at += TOGETHER * stride;
    }
    return r;
}
