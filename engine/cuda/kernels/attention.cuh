// SPDX-License-Identifier: Apache-2.0
// Attention of a few tokens over one key-value head. Positions are cut into chunks of 32 at multiples of
// 32; each (row, chunk) gives a maximum, a sum and a mix, and chunks are merged in order. The
// cuts depend on absolute positions only, so a token's result never depends on its neighbours.
//
// Keys and values of earlier requests come from the float16 cache; those of this request come tagged
// from the blocks that make them, and are rounded to float16 before use, exactly as the cache holds them.
#pragma once
#include "matmul.cuh"

struct AttentionWork {
    int layer, head;      // key-value head
    int first, count;     // tokens of this request
};

struct AttentionMemory {
    u16* keys;            // (BLOCK_POSITIONS, KV_STRIDE)
    u16* values;
    float* queries;       // (MAX_ROWS, HEAD_DIM), scaled
    float* chunks;        // (MAX_ROWS, BLOCK_CHUNKS, CHUNK_STRIDE): mix, maximum, sum
    float* running;       // (MAX_ROWS, CHUNK_STRIDE)
};

DEVICE AttentionMemory attention_memory(u8* scratch) {
    AttentionMemory m;
    m.keys = reinterpret_cast<u16*>(scratch);
    m.values = m.keys + BLOCK_POSITIONS * KV_STRIDE;
    m.queries = reinterpret_cast<float*>(scratch + KV_BYTES);
    m.chunks = m.queries + MAX_ROWS * HEAD_DIM;
    m.running = m.chunks + MAX_ROWS * BLOCK_CHUNKS * CHUNK_STRIDE;
    return m;
}

constexpr int ROW_PIECES = HEAD_DIM / 8;  // 16-byte pieces of a float16 row
constexpr int PAIRS = HEAD_DIM / 2;
constexpr int PAIRS_PER_LANE = ceil_div(PAIRS, 32);

DEVICE uint4* cache_piece(const Params& p, const AttentionWork& w, int which, int position, int piece) {
    const u64 row = ((u64)(w.layer * KV_HEADS + w.head) * 2 + which) * p.max_context + position;
    return reinterpret_cast<uint4*>(p.cache + row * HEAD_DIM) + piece;
}

DEVICE u32 half_pair(float low, float high) {
    return (u32)float_to_half(high) << 16 | float_to_half(low);
}

// Fill keys and values for positions start .. start + BLOCK_POSITIONS; beyond `last` with zeros.
DEVICE void stage_block(
    const Params& p, const Shared& s, const AttentionWork& w, const AttentionMemory& m, int start,
    int last, const Abort& abort, bool& ok) {
    constexpr int PIECES = BLOCK_POSITIONS * 2 * ROW_PIECES;
    const int position = s.request.position;
#pragma unroll 4
    for (int i = thread_index(); i < PIECES; i += THREADS) {
        const int piece = i % ROW_PIECES, which = i / ROW_PIECES % 2, row = i / (2 * ROW_PIECES);
        if (start + row >= position && start + row <= last) continue;
        uint4 v = make_uint4(0, 0, 0, 0);
        if (start + row < position) v = load_unit(cache_piece(p, w, which, start + row, piece));
        u16* to = (which ? m.values : m.keys) + row * KV_STRIDE + piece * 8;
        *reinterpret_cast<uint4*>(to) = v;
    }
    const u32 tag = tag_for(s.request, w.layer);
    const int begin = max(position, start), end = min(last + 1, start + BLOCK_POSITIONS);
    for (int i = thread_index(); i < (end - begin) * 2 * ROW_PIECES; i += THREADS) {
        const int piece = i % ROW_PIECES, which = i / ROW_PIECES % 2;
        const int at = begin + i / (2 * ROW_PIECES), token = at - position;
        const uint4* unit = p.new_kv +
            (((u64)w.layer * MAX_TOKENS + token) * 2 + which) * (KV_DIM / 4) +
            (w.head * HEAD_DIM) / 4 + piece * 2;
        const float4 a = await_unit(unit, tag, abort, ok), b = await_unit(unit + 1, tag, abort, ok);
        const uint4 v = make_uint4(
            half_pair(a.x, a.y), half_pair(a.z, a.w), half_pair(b.x, b.y), half_pair(b.z, b.w));
        u16* to = (which ? m.values : m.keys) + (at - start) * KV_STRIDE + piece * 8;
        *reinterpret_cast<uint4*>(to) = v;
        if (token >= w.first && token < w.first + w.count)
            store_unit(cache_piece(p, w, which, at, piece), v);
    }
}

// Row = (token - first) * REPEAT + query head of this key-value head.
DEVICE void stage_queries(
    const Params& p, const Shared& s, const AttentionWork& w, const AttentionMemory& m,
    const Abort& abort, bool& ok) {
    constexpr int UNITS = HEAD_DIM / 4;
    const float scale = 1.0f / sqrtf((float)HEAD_DIM);
    const u32 tag = tag_for(s.request, w.layer);
    for (int i = thread_index(); i < w.count * REPEAT * UNITS; i += THREADS) {
        const int unit = i % UNITS, row = i / UNITS;
        const int token = w.first + row / REPEAT, head = w.head * REPEAT + row % REPEAT;
        const float4 v = await_unit(
            p.queries + ((u64)token * Q_DIM + head * HEAD_DIM) / 4 + unit, tag, abort, ok);
        *reinterpret_cast<float4*>(m.queries + row * HEAD_DIM + 4 * unit) =
            make_float4(v.x * scale, v.y * scale, v.z * scale, v.w * scale);
    }
    for (int row = thread_index(); row < w.count * REPEAT; row += THREADS) {
        m.running[row * CHUNK_STRIDE + HEAD_DIM] = NEG_INF;
        m.running[row * CHUNK_STRIDE + HEAD_DIM + 1] = 0.0f;
    }
    for (int i = thread_index(); i < w.count * REPEAT * HEAD_DIM; i += THREADS)
        m.running[i / HEAD_DIM * CHUNK_STRIDE + i % HEAD_DIM] = 0.0f;
}

DEVICE float score(const u16* key, const float* query) {
    float sum = 0.0f;
#pragma unroll
    for (int piece = 0; piece < ROW_PIECES; ++piece) {
        const uint4 k = *reinterpret_cast<const uint4*>(key + piece * 8);
        const float4 a = *reinterpret_cast<const float4*>(query + piece * 8);
        const float4 b = *reinterpret_cast<const float4*>(query + piece * 8 + 4);
        const float2 k0 = half2_to_float2(k.x), k1 = half2_to_float2(k.y);
        const float2 k2 = half2_to_float2(k.z), k3 = half2_to_float2(k.w);
        sum = fmaf(a.x, k0.x, sum), sum = fmaf(a.y, k0.y, sum);
        sum = fmaf(a.z, k1.x, sum), sum = fmaf(a.w, k1.y, sum);
        sum = fmaf(b.x, k2.x, sum), sum = fmaf(b.y, k2.y, sum);
        sum = fmaf(b.z, k3.x, sum), sum = fmaf(b.w, k3.y, sum);
    }
    return sum;
}

// One warp, one row, one chunk; positions past `limit` are masked.
DEVICE void attend_chunk(const AttentionMemory& m, int row, int chunk, int start, int limit) {
    const int lane = thread_index() & 31;
    const int at = chunk * CHUNK + lane;
    const float raw = score(m.keys + at * KV_STRIDE, m.queries + row * HEAD_DIM);
    const float masked = start + at <= limit ? raw : NEG_INF;
    const float largest = warp_max(masked);
    float* out = m.chunks + (row * BLOCK_CHUNKS + chunk) * CHUNK_STRIDE;
    if (lane == 0) out[HEAD_DIM] = largest;
    if (largest == NEG_INF) return;
    const float weight = masked == NEG_INF ? 0.0f : __expf(masked - largest);
    const float sum = warp_sum(weight);
    if (lane == 0) out[HEAD_DIM + 1] = sum;
    float2 mix[PAIRS_PER_LANE];
#pragma unroll
    for (int i = 0; i < PAIRS_PER_LANE; ++i) mix[i] = make_float2(0.0f, 0.0f);
#pragma unroll 8
    for (int j = 0; j < CHUNK; ++j) {
        const float wj = __shfl_sync(0xffffffffu, weight, j);
        const u32* value = reinterpret_cast<const u32*>(m.values + (chunk * CHUNK + j) * KV_STRIDE);
#pragma unroll
        for (int i = 0; i < PAIRS_PER_LANE; ++i) {
            if (lane + 32 * i >= PAIRS) continue;
            const float2 v = half2_to_float2(value[lane + 32 * i]);
            mix[i].x = fmaf(wj, v.x, mix[i].x);
            mix[i].y = fmaf(wj, v.y, mix[i].y);
        }
    }
#pragma unroll
    for (int i = 0; i < PAIRS_PER_LANE; ++i)
        if (lane + 32 * i < PAIRS)
            *reinterpret_cast<float2*>(out + 2 * (lane + 32 * i)) = mix[i];
}

// One warp, one row: add the chunks of this block of positions to the running result, in order.
DEVICE void merge_chunks(const AttentionMemory& m, int row, int chunks) {
    const int lane = thread_index() & 31;
    float* running = m.running + row * CHUNK_STRIDE;
    float largest = running[HEAD_DIM], sum = running[HEAD_DIM + 1];
    float2 mix[PAIRS_PER_LANE];
#pragma unroll
    for (int i = 0; i < PAIRS_PER_LANE; ++i)
        if (lane + 32 * i < PAIRS)
            mix[i] = *reinterpret_cast<float2*>(running + 2 * (lane + 32 * i));
    for (int chunk = 0; chunk < chunks; ++chunk) {
        const float* part = m.chunks + (row * BLOCK_CHUNKS + chunk) * CHUNK_STRIDE;
        const float theirs = part[HEAD_DIM];
        if (theirs == NEG_INF) continue;
        const float both = fmaxf(largest, theirs);
        const float keep = __expf(largest - both), take = __expf(theirs - both);
        sum = fmaf(sum, keep, part[HEAD_DIM + 1] * take);
        largest = both;
#pragma unroll
        for (int i = 0; i < PAIRS_PER_LANE; ++i) {
            if (lane + 32 * i >= PAIRS) continue;
            const float2 v = *reinterpret_cast<const float2*>(part + 2 * (lane + 32 * i));
            mix[i].x = fmaf(mix[i].x, keep, v.x * take);
            mix[i].y = fmaf(mix[i].y, keep, v.y * take);
        }
    }
    __syncwarp();
    if (lane == 0) running[HEAD_DIM] = largest, running[HEAD_DIM + 1] = sum;
#pragma unroll
    for (int i = 0; i < PAIRS_PER_LANE; ++i)
        if (lane + 32 * i < PAIRS)
            *reinterpret_cast<float2*>(running + 2 * (lane + 32 * i)) = mix[i];
}

DEVICE bool run_attention(
    const Params& p, const Smem& smem, const AttentionWork& w, const Abort& abort) {
    Shared& s = *smem.shared;
    const AttentionMemory m = attention_memory(smem.scratch);
    const int warp = thread_index() / 32, rows = w.count * REPEAT;
    const int last = s.request.position + w.first + w.count - 1;
    __syncthreads();  // the scratch still holds the partial sums of the product before
    for (int start = 0; start <= last; start += BLOCK_POSITIONS) {
        bool ok = true;
        stage_block(p, s, w, m, start, last, abort, ok);
        if (start == 0) stage_queries(p, s, w, m, abort, ok);
        if (!ok) s.failed = 1;
        __syncthreads();
        if (s.failed) return false;
        const int chunks = ceil_div(min(BLOCK_POSITIONS, last + 1 - start), CHUNK);
        for (int unit = warp; unit < rows * chunks; unit += WARPS) {
            const int row = unit / chunks, token = w.first + row / REPEAT;
            attend_chunk(m, row, unit % chunks, start, (int)s.request.position + token);
        }
        __syncthreads();
        for (int row = warp; row < rows; row += WARPS) merge_chunks(m, row, chunks);
        __syncthreads();
    }
    constexpr int UNITS = HEAD_DIM / 4;
    for (int i = thread_index(); i < rows * UNITS; i += THREADS) {
        const int unit = i % UNITS, row = i / UNITS;
        const int token = w.first + row / REPEAT, head = w.head * REPEAT + row % REPEAT;
        const float* at = m.running + row * CHUNK_STRIDE;
        const float inverse = 1.0f / at[HEAD_DIM + 1];
        const float4 v = make_float4(
            at[4 * unit] * inverse, at[4 * unit + 1] * inverse, at[4 * unit + 2] * inverse,
            at[4 * unit + 3] * inverse);
        publish(
            p.mixed + ((u64)token * Q_DIM + head * HEAD_DIM) / 4 + unit, v,
            tag_for(s.request, w.layer));
    }
    __syncthreads();
    return true;
}
