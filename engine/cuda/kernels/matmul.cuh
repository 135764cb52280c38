// SPDX-License-Identifier: Apache-2.0
// One phase of matrix products: out[16 rows of each tile, tokens] = W x, with W streamed from memory
// straight into registers in fragment order.
//
// A tile is cut into slices along K, one warp a slice. Slices meet in shared memory and are added in
// order. A warp holds its first AHEAD fragments before the activations arrive.
#pragma once
#include "operand.cuh"

constexpr int AHEAD = 8;  // fragments in flight a lane; a multiple of every SEGMENT

struct Work {
    int layer, first, count;  // row tiles first .. first + count
};

struct Slice {
    int tile, begin, end;  // steps; begin == end: this warp has nothing
    const u8* codes;       // of step 0, this lane
};

template <int OP>
DEVICE Slice slice_of(const Params& p, const Work& work, int pass) {
    using S = Shape<OP>;
    const int warp = thread_index() / 32, lane = thread_index() & 31;
    const int local = pass * S::TILES_AT_ONCE + warp / S::SLICES, slice = warp % S::SLICES;
    Slice r;
    const bool mine = warp < S::TILES_AT_ONCE * S::SLICES && local < work.count;
    r.tile = work.first + local;
    r.begin = mine ? slice * S::SEGMENTS / S::SLICES * S::SEGMENT : 0;
    r.end = mine ? min((slice + 1) * S::SEGMENTS / S::SLICES * S::SEGMENT, S::STEPS) : 0;
    r.codes = p.codes[OP] + ((u64)(work.layer * S::TILES + r.tile) * S::STEPS) * TILE_BYTES + lane * 16;
    return r;
}

DEVICE void load_ahead(uint4 (&a)[AHEAD], const Slice& slice) {
#pragma unroll
    for (int i = 0; i < AHEAD; ++i)
        if (slice.begin + i < slice.end)
            a[i] = load_weights(slice.codes + (u64)(slice.begin + i) * TILE_BYTES);
}

// Accumulate one slice for NT tiles of 8 tokens. `acc` gets the FP32 sum of promoted segments.
template <int OP, int NT>
DEVICE void multiply_slice(
    float (&acc)[NT][4], uint4 (&a)[AHEAD], const Slice& slice, const u8* operand,
    const float* scales) {
    using S = Shape<OP>;
    const int lane = thread_index() & 31, g = lane >> 2, t = lane & 3;
    float part[NT][4];
#pragma unroll
    for (int n = 0; n < NT; ++n)
#pragma unroll
        for (int c = 0; c < 4; ++c) acc[n][c] = part[n][c] = 0.0f;
    for (int base = slice.begin; base < slice.end; base += AHEAD) {
#pragma unroll
        for (int i = 0; i < AHEAD; ++i) {
            const int step = base + i;
            if (step < slice.end) {
                const uint4 w = a[i];
                if (step + AHEAD < slice.end)
                    a[i] = load_weights(slice.codes + (u64)(step + AHEAD) * TILE_BYTES);
#pragma unroll
                for (int n = 0; n < NT; ++n) {
                    const u8* b = operand + (8 * n + g) * OPERAND_STRIDE + step * STEP + 4 * t;
                    mma_e4m3(
                        part[n], w, *reinterpret_cast<const u32*>(b),
                        *reinterpret_cast<const u32*>(b + 16));
                }
                if (i % S::SEGMENT == S::SEGMENT - 1 || step + 1 == slice.end) {
                    float low = 1.0f, high = 1.0f;
                    if (GROUP != 0) {
                        const int group = step / S::SEGMENT / S::SEGMENTS_PER_GROUP;
                        low = __ldg(scales + group * TILE_ROWS + g);
                        high = __ldg(scales + group * TILE_ROWS + g + 8);
                    }
#pragma unroll
                    for (int n = 0; n < NT; ++n) {
                        acc[n][0] += GROUP == 0 ? part[n][0] : part[n][0] * low;
                        acc[n][1] += GROUP == 0 ? part[n][1] : part[n][1] * low;
                        acc[n][2] += GROUP == 0 ? part[n][2] : part[n][2] * high;
                        acc[n][3] += GROUP == 0 ? part[n][3] : part[n][3] * high;
                        part[n][0] = part[n][1] = part[n][2] = part[n][3] = 0.0f;
                    }
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

template <int SLICES>
DEVICE Outputs add_slices(const float* partials, int tile_slot, int column, int j, int columns) {
    Outputs r;
#pragma unroll 4
    for (int slice = 0; slice < SLICES; ++slice) {
        const float* at = partials +
            ((tile_slot * SLICES + slice) * columns + column) * PARTIAL_STRIDE + 4 * j;
        const float4 low = *reinterpret_cast<const float4*>(at);
        const float4 high = *reinterpret_cast<const float4*>(at + 8);
        r.low = slice == 0 ? low : add4(r.low, low);
        r.high = slice == 0 ? high : add4(r.high, high);
    }
    return r;
}
