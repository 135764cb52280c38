// SPDX-License-Identifier: Apache-2.0
// One phase of matrix products: out[16 rows of each tile, tokens] = W x, with W streamed from memory
// straight into registers in fragment order.
//
// A tile is cut into slices along K, one warp a slice. Slices meet in shared memory and are added in
// order. A warp requests its first AHEAD fragments before the activations arrive.
#pragma once
#include "codes.cuh"

constexpr int AHEAD = 8;  // fragments in flight a lane; a multiple of every SEGMENT

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
    for (int i = 0; i < AHEAD; ++i)
        if (slice.begin + i < slice.end) a[i] = load_weights(at + i * TILE_BYTES);
}

// Accumulate one slice for NT tiles of 8 tokens. `acc` gets the FP32 sum of promoted segments.
template <int NT>
DEVICE void multiply_slice(
    float (&acc)[NT][4], uint4 (&a)[AHEAD], const Slice& slice, const u8* operand) {
    const int lane = thread_index() & 31, g = lane >> 2, t = lane & 3;
    Accumulator part[NT];
#pragma unroll
    for (int n = 0; n < NT; ++n) {
        part[n].clear();
#pragma unroll
        for (int c = 0; c < 4; ++c) acc[n][c] = 0.0f;
    }
    const u8* b = operand + g * OPERAND_STRIDE + CODE_BYTES * (4 * t + slice.begin * STEP);
    const u8* ahead = slice.codes + (u64)(slice.begin + AHEAD) * TILE_BYTES;
#pragma unroll 1
    for (int left = slice.end - slice.begin, base = slice.begin; left > 0;
         left -= AHEAD, base += AHEAD, b += AHEAD * STEP * CODE_BYTES, ahead += AHEAD * TILE_BYTES) {
#pragma unroll
        for (int i = 0; i < AHEAD; ++i) {
            if (i >= left) break;
            const Fragment w = fragment_of(a[i]);
            if (i + AHEAD < left) a[i] = load_weights(ahead + i * TILE_BYTES);
#pragma unroll
            for (int n = 0; n < NT; ++n)
                part[n].add(w, b + 8 * n * OPERAND_STRIDE + i * STEP * CODE_BYTES);
            if (i % SEGMENT == SEGMENT - 1 || i + 1 == left) {
                float low = 1.0f, high = 1.0f;
                if (GROUP != 0) {
                    const int group = (base + i) / SEGMENT / SEGMENTS_PER_GROUP;
                    low = __ldg(slice.scales + group * TILE_ROWS + g);
                    high = __ldg(slice.scales + group * TILE_ROWS + g + 8);
                }
#pragma unroll
                for (int n = 0; n < NT; ++n) {
#pragma unroll
                    for (int c = 0; c < 4; ++c)
                        acc[n][c] += GROUP == 0 ? part[n].sum(c) : part[n].sum(c) * (c < 2 ? low : high);
                    part[n].clear();
                }
            }
        }
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

DEVICE float4 add4(float4 a, float4 b) {
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

DEVICE float4 scale4(float4 v, float4 rows, float token) {
    return make_float4(
        v.x * rows.x * token, v.y * rows.y * token, v.z * rows.z * token, v.w * rows.w * token);
}

// The eight outputs of one epilogue thread: rows 4j .. 4j+3 (`low`) and 8+4j .. 8+4j+3 (`high`).
struct Outputs {
    float4 low, high;
};

// `at`: slice 0 of this thread's rows; slices are `stride` floats apart.
DEVICE Outputs add_slices(const float* at, int slices, int stride) {
    Outputs r;
    r.low = *reinterpret_cast<const float4*>(at);
    r.high = *reinterpret_cast<const float4*>(at + 8);
#pragma unroll 4
    for (int slice = 1; slice < slices; ++slice) {
        at += stride;
        r.low = add4(r.low, *reinterpret_cast<const float4*>(at));
        r.high = add4(r.high, *reinterpret_cast<const float4*>(at + 8));
    }
    return r;
}
