// SPDX-License-Identifier: Apache-2.0
// Attention of a few tokens over one key-value head, on tensor cores: up to 16 rows (token, query head)
// at once. Positions are cut into chunks of 32 at multiples of 32, one warp each; each (row, chunk)
// gives a maximum, a sum and a mix, and chunks are merged in order. The cuts depend on absolute
// positions only and rows of an MMA do not mix, so a token's result never depends on its neighbours.
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
    u16* queries;         // (MAX_ROWS, KV_STRIDE), scaled
    float* chunks;        // (MAX_ROWS, BLOCK_CHUNKS, CHUNK_STRIDE): mix, maximum, sum
};

DEVICE AttentionMemory attention_memory(u8* scratch) {
    AttentionMemory m;
    m.keys = reinterpret_cast<u16*>(scratch);
    m.values = m.keys + BLOCK_POSITIONS * KV_STRIDE;
    m.queries = m.values + BLOCK_POSITIONS * KV_STRIDE;
    m.chunks = reinterpret_cast<float*>(m.queries + MAX_ROWS * KV_STRIDE);
    return m;
}

constexpr int ROW_PIECES = HEAD_DIM / 8;  // 16-byte pieces of a float16 row
constexpr int ROW_UNITS = HEAD_DIM / 4;   // tagged units of a row
constexpr int CACHED_PER_THREAD = ceil_div(BLOCK_POSITIONS * 2 * ROW_PIECES, THREADS);
constexpr int AT_ONCE = 2;  // pieces a thread waits for together
constexpr int MERGED_PER_THREAD = ceil_div(MAX_ROWS * ROW_UNITS, THREADS);

DEVICE uint4* cache_piece(const Params& p, const AttentionWork& w, int which, int position, int piece) {
    const u32 row = ((w.layer * KV_HEADS + w.head) * 2 + which) * p.max_context + position;
    return reinterpret_cast<uint4*>(p.cache + (u64)row * HEAD_DIM) + piece;
}

DEVICE u32 half_pair(float low, float high) {
    return (u32)float_to_half(high) << 16 | float_to_half(low);
}

// Cached rows of this block of positions; zeros beyond `last`, up to a whole chunk.
DEVICE void stage_cached(
    const Params& p, const AttentionWork& w, const AttentionMemory& m, int start, int position,
    int last) {
    uint4 v[CACHED_PER_THREAD];
    const int thread = thread_index();
#pragma unroll
    for (int k = 0; k < CACHED_PER_THREAD; ++k) {
        const int i = thread + k * THREADS;
        const int piece = i % ROW_PIECES, which = i / ROW_PIECES % 2, row = i / (2 * ROW_PIECES);
        v[k] = make_uint4(0, 0, 0, 0);
        if (row < BLOCK_POSITIONS && start + row < position)
            v[k] = load_unit(cache_piece(p, w, which, start + row, piece));
    }
#pragma unroll
    for (int k = 0; k < CACHED_PER_THREAD; ++k) {
        const int i = thread + k * THREADS;
        const int piece = i % ROW_PIECES, which = i / ROW_PIECES % 2, row = i / (2 * ROW_PIECES);
        const bool fresh = start + row >= position && start + row <= last;
        if (row >= BLOCK_POSITIONS || fresh) continue;
        *reinterpret_cast<uint4*>((which ? m.values : m.keys) + row * KV_STRIDE + piece * 8) = v[k];
    }
}

// What this request still has to deliver: units of queries, then pieces (two units) of keys and values.
struct Fresh {
    int queries, pieces, begin, start, position;  // begin: first fresh position of this block
    u32 tag;
};

// First unit of thing `i`.
DEVICE const uint4* fresh_unit(const Params& p, const AttentionWork& w, const Fresh& f, int i) {
    if (i < f.queries) {
        const int unit = i % ROW_UNITS, row = i / ROW_UNITS;
        const int token = w.first + row / REPEAT, head = w.head * REPEAT + row % REPEAT;
        return p.queries + (token * Q_DIM + head * HEAD_DIM) / 4 + unit;
    }
    const int j = i - f.queries, piece = j % ROW_PIECES, which = j / ROW_PIECES % 2;
    const int token = f.begin + j / (2 * ROW_PIECES) - f.position;
    return p.new_kv + ((w.layer * MAX_TOKENS + token) * 2 + which) * (KV_DIM / 4) +
        w.head * ROW_UNITS + piece * 2;
}

DEVICE void store_fresh(
    const Params& p, const AttentionWork& w, const AttentionMemory& m, const Fresh& f, int i, float4 x,
    float4 y) {
    if (i < f.queries) {
        const float scale = rsqrtf((float)HEAD_DIM);
        *reinterpret_cast<uint2*>(m.queries + i / ROW_UNITS * KV_STRIDE + i % ROW_UNITS * 4) =
            make_uint2(half_pair(x.x * scale, x.y * scale), half_pair(x.z * scale, x.w * scale));
        return;
    }
    const int j = i - f.queries, piece = j % ROW_PIECES, which = j / ROW_PIECES % 2;
    const int at = f.begin + j / (2 * ROW_PIECES), token = at - f.position;
    const uint4 v = make_uint4(
        half_pair(x.x, x.y), half_pair(x.z, x.w), half_pair(y.x, y.y), half_pair(y.z, y.w));
    *reinterpret_cast<uint4*>((which ? m.values : m.keys) + (at - f.start) * KV_STRIDE + piece * 8) = v;
    if (token >= w.first && token < w.first + w.count)
        store_unit(cache_piece(p, w, which, at, piece), v);
}

// Queries (in the first block of positions) and this request's keys and values.
DEVICE bool stage_new(
    const Params& p, const Shared& s, const AttentionWork& w, const AttentionMemory& m, int start,
    int last, const Abort& abort) {
    Fresh f;
    f.position = s.request.position;
    f.tag = tag_for(s.request, w.layer);
    f.start = start;
    f.begin = max(f.position, start);
    f.pieces = max(0, min(last + 1, start + BLOCK_POSITIONS) - f.begin) * 2 * ROW_PIECES;
    f.queries = start == 0 ? w.count * REPEAT * ROW_UNITS : 0;
    const int all = f.queries + f.pieces;
    bool ok = true;
#pragma unroll 1
    for (int base = thread_index(); base - (base & 31) < all; base += AT_ONCE * THREADS) {
        float4 low[AT_ONCE], high[AT_ONCE];
        for (u32 spins = 0; ok; ok = may_wait(abort, spins)) {
            bool ready = true;
#pragma unroll
            for (int k = 0; k < AT_ONCE; ++k) {
                const int i = base + k * THREADS;
                if (i >= all) break;
                const uint4* unit = fresh_unit(p, w, f, i);
                low[k] = as_floats(load_unit(unit));
                high[k] = as_floats(load_unit(unit + (i >= f.queries)));
            }
#pragma unroll
            for (int k = 0; k < AT_ONCE; ++k)
                if (base + k * THREADS < all)
                    ready = ready && tag_of(as_words(low[k])) == f.tag &&
                        tag_of(as_words(high[k])) == f.tag;
            if (__all_sync(0xffffffffu, ready)) break;
        }
#pragma unroll
        for (int k = 0; k < AT_ONCE; ++k)
            if (base + k * THREADS < all)
                store_fresh(
                    p, w, m, f, base + k * THREADS, values_of(as_words(low[k])),
                    values_of(as_words(high[k])));
    }
    return ok;
}

DEVICE u32 load_pair(const u16* p) { return *reinterpret_cast<const u32*>(p); }

// Four 8x8 matrices of float16, transposed: lane i gives the address of row i % 8 of matrix i / 8.
DEVICE void load_transposed(u32 (&r)[4], const u16* row) {
    const u32 address = (u32)__cvta_generic_to_shared(row);
    asm volatile(
        "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
        : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
        : "r"(address)
        : "memory");
}

// One warp: all rows against the 32 positions of `chunk`.
DEVICE void attend_chunk(
    const AttentionMemory& m, const AttentionWork& w, int chunk, int start, int position) {
    const int lane = thread_index() & 31, g = lane >> 2, t = lane & 3;
    float scores[CHUNK / 8][4];
#pragma unroll
    for (int n = 0; n < CHUNK / 8; ++n)
#pragma unroll
        for (int c = 0; c < 4; ++c) scores[n][c] = 0.0f;
    const u16* query = m.queries + g * KV_STRIDE + 2 * t;
    const u16* key = m.keys + (chunk * CHUNK + g) * KV_STRIDE + 2 * t;
#pragma unroll
    for (int k = 0; k < HEAD_DIM; k += 16) {
        const u32 a[4] = {
            load_pair(query + k), load_pair(query + 8 * KV_STRIDE + k), load_pair(query + k + 8),
            load_pair(query + 8 * KV_STRIDE + k + 8)};
#pragma unroll
        for (int n = 0; n < CHUNK / 8; ++n) {
            const u16* at = key + n * 8 * KV_STRIDE + k;
            mma_f16(scores[n], a, make_uint2(load_pair(at), load_pair(at + 8)));
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

DEVICE void merge_chunks(Merged& r, const float* part, int unit, int chunks) {
    for (int chunk = 0; chunk < chunks; ++chunk, part += CHUNK_STRIDE) {
        const float theirs = part[HEAD_DIM];
        if (theirs == NEG_INF) continue;
        const float both = fmaxf(r.largest, theirs);
        const float keep = __expf(r.largest - both), take = __expf(theirs - both);
        const float2 a = *reinterpret_cast<const float2*>(part + 4 * unit);
        const float2 b = *reinterpret_cast<const float2*>(part + 4 * unit + 2);
        r.sum = fmaf(r.sum, keep, part[HEAD_DIM + 1] * take);
        r.mix.x = fmaf(r.mix.x, keep, a.x * take), r.mix.y = fmaf(r.mix.y, keep, a.y * take);
        r.mix.z = fmaf(r.mix.z, keep, b.x * take), r.mix.w = fmaf(r.mix.w, keep, b.y * take);
        r.largest = both;
    }
}

DEVICE bool run_attention(
    const Params& p, const Smem& smem, const AttentionWork& w, const Abort& abort) {
    Shared& s = *smem.shared;
    const AttentionMemory m = attention_memory(smem.scratch);
    const int thread = thread_index(), rows = w.count * REPEAT, position = s.request.position;
    const int last = position + w.first + w.count - 1;
    Merged merged[MERGED_PER_THREAD];
#pragma unroll
    for (int k = 0; k < MERGED_PER_THREAD; ++k)
        merged[k] = {make_float4(0.0f, 0.0f, 0.0f, 0.0f), NEG_INF, 0.0f};
#pragma unroll 1
    for (int start = 0; start <= last; start += BLOCK_POSITIONS) {
        __syncthreads();  // the scratch holds partial sums of the product before, or the block before
        stage_cached(p, w, m, start, position, last);
        if (!stage_new(p, s, w, m, start, last, abort)) s.failed = 1;
        __syncthreads();
        if (s.failed) return false;
        const int chunks = ceil_div(min(BLOCK_POSITIONS, last + 1 - start), CHUNK);
        if (thread / 32 < chunks) attend_chunk(m, w, thread / 32, start, position);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < MERGED_PER_THREAD; ++k) {
            const int i = thread + k * THREADS, row = i / ROW_UNITS;
            if (row < rows)
                merge_chunks(
                    merged[k], m.chunks + row * BLOCK_CHUNKS * CHUNK_STRIDE, i % ROW_UNITS, chunks);
        }
    }
#pragma unroll
    for (int k = 0; k < MERGED_PER_THREAD; ++k) {
        const int i = thread + k * THREADS, unit = i % ROW_UNITS, row = i / ROW_UNITS;
        if (row >= rows) continue;
        const int token = w.first + row / REPEAT, head = w.head * REPEAT + row % REPEAT;
        const float inverse = __fdividef(1.0f, merged[k].sum);
        const float4 v = merged[k].mix;
        publish(
            p.mixed + (token * Q_DIM + head * HEAD_DIM) / 4 + unit,
            make_float4(v.x * inverse, v.y * inverse, v.z * inverse, v.w * inverse),
            tag_for(s.request, w.layer));
    }
    __syncthreads();
    return true;
}
