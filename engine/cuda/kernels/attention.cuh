// SPDX-License-Identifier: Apache-2.0
// Attention in the grid kernel. Keys and values of earlier requests come from the float16 cache; those of
// this request come tagged from the blocks that make them, and are rounded to float16 before use, exactly
// as the cache holds them.
#pragma once
#include "matmul.cuh"

DEVICE AttentionMemory attention_memory(u8* scratch) {
    AttentionMemory m;
    m.keys = reinterpret_cast<u16*>(scratch);
    m.values = m.keys + BLOCK_POSITIONS * KV_STRIDE;
    m.queries = m.values + BLOCK_POSITIONS * KV_STRIDE;
    m.chunks = reinterpret_cast<float*>(m.queries + MAX_ROWS * KV_STRIDE);
    return m;
}

constexpr int CACHED_PER_THREAD = ceil_div(BLOCK_POSITIONS * 2 * ROW_PIECES, THREADS);
constexpr int AT_ONCE = 2;  // pieces a thread waits for together
constexpr int MERGED_PER_THREAD = ceil_div(MAX_ROWS * ROW_UNITS, THREADS);

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
    const Params& p, const GridShared& s, const AttentionWork& w, const AttentionMemory& m, int start,
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

DEVICE bool run_attention(
    const Params& p, const Smem& smem, const AttentionWork& w, const Abort& abort) {
    GridShared& s = *smem.shared;
    const AttentionMemory m = attention_memory(smem.scratch);
    const int thread = thread_index(), rows = w.count * REPEAT, position = s.request.position;
    const int last = position + w.first + w.count - 1;
    Merged merged[MERGED_PER_THREAD];
#pragma unroll
    for (int k = 0; k < MERGED_PER_THREAD; ++k)
        merged[k] = {make_float4(0.0f, 0.0f, 0.0f, 0.0f), NEG_INF, 0.0f};
#pragma unroll 1
    for (int start = 0; start <= last; start += BLOCK_POSITIONS) {
        block_sync();  // the scratch holds partial sums of the product before, or the block before
        stage_cached(p, w, m, start, position, last);
        if (!stage_new(p, s, w, m, start, last, abort)) s.failed = 1;
        block_sync();
        if (s.failed) return false;
        const int chunks = ceil_div(min(BLOCK_POSITIONS, last + 1 - start), CHUNK);
        if (thread / 32 < chunks) attend_chunk(m, w, thread / 32, start, position);
        block_sync();
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
    block_sync();
    return true;
}
