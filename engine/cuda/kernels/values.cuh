// SPDX-License-Identifier: Apache-2.0
// Arithmetic on four values at a time, and what an epilogue does with the sums of a product; for both kernels.
#pragma once
#include "request.cuh"

DEVICE float4 multiply4(float4 a, float4 b) {
    return make_float4(a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w);
}

DEVICE float4 load4(const float* p) { return __ldg(reinterpret_cast<const float4*>(p)); }

DEVICE float4 embedding_unit(const Params& p, int token, int unit) {
    const uint2 raw = *reinterpret_cast<const uint2*>(p.embed + (u64)token * DIM + unit * 4);
    const float2 a = half2_to_float2(raw.x), b = half2_to_float2(raw.y);
    return make_float4(a.x, a.y, b.x, b.y);
}

DEVICE float sum_of_squares(float4 v) { return v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w; }

DEVICE float4 add4(float4 a, float4 b) {
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

DEVICE float4 scale4(float4 v, float4 rows, float token) {
    return make_float4(
        v.x * rows.x * token, v.y * rows.y * token, v.z * rows.z * token, v.w * rows.w * token);
}

// The power of two at or below v, and its reciprocal: exact to multiply by.
DEVICE float power_of_two(float v) { return __uint_as_float(__float_as_uint(v) & 0x7f800000u); }
DEVICE float reciprocal_power(float power) { return __uint_as_float(0x7f000000u - __float_as_uint(power)); }

// The eight outputs of one epilogue thread: rows 4j .. 4j+3 (`low`) and 8+4j .. 8+4j+3 (`high`).
struct Outputs {
    float4 low, high;
};

// Rotary tile: rows g and g+8 are a pair. Returns pair index of the first row, or -1 (a value tile).
DEVICE int rotary_pair(int tile, int j) {
    constexpr int HEAD_TILES = HEAD_DIM / TILE_ROWS;
    if (tile >= (Q_DIM + KV_DIM) / TILE_ROWS) return -1;
    return tile % HEAD_TILES * 8 + 4 * j;
}

DEVICE void rotate(float& first, float& second, float cosine, float sine) {
    const float a = first * cosine - second * sine;
    second = second * cosine + first * sine;
    first = a;
}

DEVICE float silu(float v) { return __fdividef(v, 1.0f + __expf(-v)); }
