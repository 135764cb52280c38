// SPDX-License-Identifier: Apache-2.0
// Attention of a few tokens over one key-value head, on tensor cores: up to 16 rows (token, query head)
// at once. Positions are cut into chunks of 32 at multiples of 16, one warp each; each (row, chunk)
// gives a maximum, a sum and a mix, and chunks are merged in order. The cuts depend on absolute
// positions only and rows of an MMA do not mix, so a token's result never depends on its neighbours.
#pragma once
#include "values.cuh"

// Attention works on blocks of positions, cut into chunks of 32, one warp a chunk.
constexpr int CHUNK = 32;
constexpr int BLOCK_POSITIONS = HEAD_DIM <= 64 ? 128 : 64;
constexpr int BLOCK_CHUNKS = BLOCK_POSITIONS / CHUNK;
constexpr int MAX_ROWS = 16;                // (token, head) rows of one attention instruction
constexpr int KV_STRIDE = HEAD_DIM + 8;     // halves
constexpr int CHUNK_STRIDE = HEAD_DIM + 2;  // values, maximum, sum

struct AttentionWork {
    int layer, head;      // key-value head
    int first, count;     // tokens of this request
};

struct AttentionMemory {
    u16* keys;            // (BLOCK_POSITIONS, KV_STRIDE)
    u16* values;
    u16* queries;         // (MAX_ROWS, KV_STRIDE), scaled
    float* chunks;        // (MAX_ROWS, BLOCK_CHUNKS, CHUNK_STRIDE): mix, maximum, sum
};

constexpr int ROW_PIECES = HEAD_DIM / 8;  // 16-byte pieces of a float16 row
constexpr int ROW_UNITS = HEAD_DIM / 4;   // tagged units of a row

DEVICE uint4* cache_piece(const Params& p, const AttentionWork& w, int which, int position, int piece) {
    const u32 row = ((w.layer * KV_HEADS + w.head) * 2 + which) * p.max_context + position;
    return reinterpret_cast<uint4*>(p.cache + (u64)row * HEAD_DIM) + piece;
}

DEVICE u32 half_pair(float low, float high) {
    return (u32)float_to_half(high) << 16 | float_to_half(low);
}

// Four 8x8 matrices of float16: lane i gives the address of row i % 8 of matrix i / 8.
DEVICE void load_matrices(u32 (&r)[4], const u16* row) {
    const u32 address = (u32)__cvta_generic_to_shared(row);
    asm volatile(
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
        : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
        : "r"(address)
        : "memory");
}

// The same, transposed: lane i gives the address of row i % 8 of matrix i / 8.
DEVICE void load_transposed(u32 (&r)[4], const u16* row) {
    const u32 address = (u32)__cvta_generic_to_shared(row);
    asm volatile(
        "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
        : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
        : "r"(address)
        : "memory");
}

// One warp: all rows against the positions of `chunk`.
DEVICE void attend_chunk(
    const AttentionMemory& m, const AttentionWork& w, int chunk, int start, int position) {
    const int lane = thread_index() & 31, g = lane >> 2, t = lane & 3;
    float scores[CHUNK / 8][4];
#pragma unroll
    for (int n = 0; n < CHUNK / 8; ++n)
#pragma unroll
        for (int c = 0; c < 4; ++c) scores[n][c] = 0.0f;
    const u16* query = m.queries + (lane & 15) * KV_STRIDE + (lane >> 4) * 8;
    const u16* key = m.keys + (chunk * CHUNK + (lane >> 4) * 8 + (lane & 7)) * KV_STRIDE + (lane >> 3 & 1) * 8;
#pragma unroll
    for (int k = 0; k < HEAD_DIM; k += 16) {
        u32 a[4];
        load_matrices(a, query + k);
#pragma unroll
        for (int n = 0; n < CHUNK / 8; n += 2) {
            u32 b[4];
            load_matrices(b, key + n * 8 * KV_STRIDE + k);
            mma_f16(scores[n], a, make_uint2(b[0], b[1]));
            mma_f16(scores[n + 1], a, make_uint2(b[2], b[3]));
        }
    }
    // Registers 0, 1 are row g, registers 2, 3 row g + 8; columns 8n + 2t and the next.
    float largest[2] = {NEG_INF, NEG_INF}, sum[2] = {0.0f, 0.0f};
#pragma unroll
    for (int n = 0; n < CHUNK / 8; ++n)
#pragma unroll
        for (int c = 0; c < 4; ++c) {
            const int row = g + 8 * (c / 2), limit = position + w.first + row / REPEAT;
            if (start + chunk * CHUNK + 8 * n + 2 * t + c % 2 > limit) scores[n][c] = NEG_INF;
            largest[c / 2] = fmaxf(largest[c / 2], scores[n][c]);
        }
    u32 weights[CHUNK / 8][2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        largest[r] = fmaxf(largest[r], __shfl_xor_sync(0xffffffffu, largest[r], 1));
        largest[r] = fmaxf(largest[r], __shfl_xor_sync(0xffffffffu, largest[r], 2));
        const float from = largest[r] == NEG_INF ? 0.0f : largest[r];
#pragma unroll
        for (int n = 0; n < CHUNK / 8; ++n) {
            const float a = __expf(scores[n][2 * r] - from), b = __expf(scores[n][2 * r + 1] - from);
            sum[r] += a + b;
            weights[n][r] = half_pair(a, b);
        }
        sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], 1);
        sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], 2);
    }
    float mix[HEAD_DIM / 8][4];
#pragma unroll
    for (int n = 0; n < HEAD_DIM / 8; ++n)
#pragma unroll
        for (int c = 0; c < 4; ++c) mix[n][c] = 0.0f;
    const u16* value = m.values + (chunk * CHUNK + (lane & 15)) * KV_STRIDE + (lane >> 4) * 8;
#pragma unroll
    for (int k = 0; k < CHUNK / 16; ++k) {
        const u32 a[4] = {
            weights[2 * k][0], weights[2 * k][1], weights[2 * k + 1][0], weights[2 * k + 1][1]};
#pragma unroll
        for (int n = 0; n < HEAD_DIM / 8; n += 2) {
            u32 b[4];
            load_transposed(b, value + 16 * k * KV_STRIDE + 8 * n);
            mma_f16(mix[n], a, make_uint2(b[0], b[1]));
            mma_f16(mix[n + 1], a, make_uint2(b[2], b[3]));
        }
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        const int row = g + 8 * r;
        if (row >= w.count * REPEAT) continue;
        float* out = m.chunks + (row * BLOCK_CHUNKS + chunk) * CHUNK_STRIDE;
#pragma unroll
        for (int n = 0; n < HEAD_DIM / 8; ++n)
            *reinterpret_cast<float2*>(out + 8 * n + 2 * t) =
                make_float2(mix[n][2 * r], mix[n][2 * r + 1]);
        if (t == 0) out[HEAD_DIM] = largest[r], out[HEAD_DIM + 1] = sum[r];
    }
}

// What one thread has merged so far: four values of one row.
struct Merged {
    float4 mix;
    float largest, sum;
};

// Add the chunks of one block of positions. Their weights do not depend on each other, so the loads overlap.
DEVICE void merge_chunks(Merged& r, const float* part, int unit, int chunks) {
    float largest[BLOCK_CHUNKS], both = r.largest;
#pragma unroll
    for (int i = 0; i < BLOCK_CHUNKS; ++i) {
        largest[i] = i < chunks ? part[i * CHUNK_STRIDE + HEAD_DIM] : NEG_INF;
        both = fmaxf(both, largest[i]);
    }
    if (both == NEG_INF) return;
    const float keep = __expf(r.largest - both);
    r.sum *= keep;
    r.mix.x *= keep, r.mix.y *= keep, r.mix.z *= keep, r.mix.w *= keep;
#pragma unroll
    for (int i = 0; i < BLOCK_CHUNKS; ++i) {
        if (i >= chunks) break;
        const float* at = part + i * CHUNK_STRIDE;
        const float take = __expf(largest[i] - both);
        const float2 a = *reinterpret_cast<const float2*>(at + 4 * unit);
        const float2 b = *reinterpret_cast<const float2*>(at + 4 * unit + 2);
        r.sum = fmaf(at[HEAD_DIM + 1], take, r.sum);
        r.mix.x = fmaf(a.x, take, r.mix.x), r.mix.y = fmaf(a.y, take, r.mix.y);
        r.mix.z = fmaf(b.x, take, r.mix.z), r.mix.w = fmaf(b.y, take, r.mix.w);
    }
    r.largest = both;
}
