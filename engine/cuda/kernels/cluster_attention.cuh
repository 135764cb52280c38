// SPDX-License-Identifier: Apache-2.0
// Attention in a cluster: one block a piece (key-value head, a few tokens). Keys and values of earlier
// requests come from the cache, those of earlier clusters of this request tagged through memory, those of
// this one straight from the blocks that made them.
#pragma once
#include "cluster_product.cuh"

constexpr int ROW_COPIES = 2 * ROW_PIECES;  // 16-byte pieces of a position's keys and values
constexpr int AT_ONCE = 2;                  // pieces a thread waits for together

DEVICE AttentionMemory attention_memory(const Memory& m) {
    AttentionMemory a;
    a.keys = m.keys;
    a.values = a.keys + BLOCK_POSITIONS * KV_STRIDE;
    a.queries = m.queries;
    a.chunks = reinterpret_cast<float*>(m.x);
    return a;
}

struct Place {
    int row, which, piece;
    u16* to;
};

DEVICE Place place_of(const AttentionMemory& a, int i) {
    Place r;
    r.piece = i % ROW_PIECES, r.which = i / ROW_PIECES % 2, r.row = i / ROW_COPIES;
    r.to = (r.which ? a.values : a.keys) + r.row * KV_STRIDE + r.piece * 8;
    return r;
}

// Before a layer, if everything fits one block of positions: the rows behind this cluster's are zero.
DEVICE void clear_rest(const Memory& m) {
    const ClusterShared& s = *m.shared;
    const AttentionMemory a = attention_memory(m);
    const int end = s.request.position + s.task.first + s.task.live;
    const int all = (ceil_div(end, CHUNK) * CHUNK - end) * ROW_COPIES;
#pragma unroll 1
    for (int i = threadIdx.x; i < all; i += THREADS)
        *reinterpret_cast<uint4*>(place_of(a, i).to + end * KV_STRIDE) = make_uint4(0, 0, 0, 0);
}

// Start copies of what earlier requests left for the block of positions at `start`.
DEVICE void stage_history(const Params& p, const Memory& m, const AttentionWork& w, int start, int position) {
    const AttentionMemory a = attention_memory(m);
    const int all = min(position - start, BLOCK_POSITIONS) * ROW_COPIES;
#pragma unroll 1
    for (int i = threadIdx.x; i < all; i += THREADS) {
        const Place r = place_of(a, i);
        copy_unit(shared_address(r.to), cache_piece(p, w, r.which, start + r.row, r.piece));
    }
}

// Positions of earlier clusters of this request, begin .. end (absolute), into the block of positions at
// `start`.
DEVICE bool stage_earlier(
    const uint4* new_kv, u16* keys, u32 tag, int position, int start, int begin, int end, u32* abort_word,
    u64 deadline) {
    const Abort abort = {abort_word, deadline};
    const int all = (end - begin) * ROW_COPIES;
    bool ok = true;
#pragma unroll 1
    for (int base = threadIdx.x; base < all; base += AT_ONCE * THREADS) {
        float4 low[AT_ONCE], high[AT_ONCE];
        for (u32 spins = 0; ok; ok = may_wait(abort, spins)) {
            bool ready = true;
#pragma unroll
            for (int k = 0; k < AT_ONCE; ++k) {
                const int i = base + k * THREADS, row = i / ROW_COPIES, which = i / ROW_PIECES % 2;
                if (i >= all) break;
                const uint4* unit =
                    new_kv + ((begin + row - position) * 2 + which) * (KV_DIM / 4) + i % ROW_PIECES * 2;
                low[k] = as_floats(load_unit(unit));
                high[k] = as_floats(load_unit(unit + 1));
            }
#pragma unroll
            for (int k = 0; k < AT_ONCE; ++k)
                if (base + k * THREADS < all)
                    ready = ready && tag_of(as_words(low[k])) == tag && tag_of(as_words(high[k])) == tag;
            if (ready) break;
        }
#pragma unroll
        for (int k = 0; k < AT_ONCE; ++k) {
            const int i = base + k * THREADS, row = i / ROW_COPIES, which = i / ROW_PIECES % 2;
            if (i >= all) break;
            const uint2 x = halves_of(values_of(as_words(low[k]))), y = halves_of(values_of(as_words(high[k])));
            *reinterpret_cast<uint4*>(
                keys + (which * BLOCK_POSITIONS + begin - start + row) * KV_STRIDE + i % ROW_PIECES * 8) =
                make_uint4(x.x, x.y, y.x, y.y);
        }
    }
    return ok;
}

// Positions of this cluster, begin .. end, then zeros up to a whole chunk.
DEVICE void stage_own(const Memory& m, int start, int begin, int end, int group_start) {
    const AttentionMemory a = attention_memory(m);
    const int whole = start + ceil_div(end - start, CHUNK) * CHUNK;
#pragma unroll 1
    for (int i = threadIdx.x; i < (whole - begin) * ROW_COPIES; i += THREADS) {
        const Place r = place_of(a, i);
        const int at = begin + r.row;
        uint4 v = make_uint4(0, 0, 0, 0);
        if (at < end)
            v = *reinterpret_cast<const uint4*>(
                m.fresh + ((at - group_start) * 2 + r.which) * KV_STRIDE + r.piece * 8);
        *reinterpret_cast<uint4*>(r.to + (begin - start) * KV_STRIDE) = v;
    }
}

// A thread's cell: four values of one row. Threads that share one send it to different blocks.
struct Mixing {
    int row, unit, lane, spread;
};

DEVICE Mixing mixing_of(int rows) {
    static_assert(MAX_ROWS * ROW_UNITS <= THREADS, "one thread a cell");
    const int shift = spread_of(rows * ROW_UNITS), cell = threadIdx.x >> shift;
    return {cell / ROW_UNITS, cell % ROW_UNITS, (int)threadIdx.x & ((1 << shift) - 1), 1 << shift};
}

// One block of positions whose rows up to `end` have been staged, `end` being absolute.
DEVICE void attend_block(
    const Memory& m, const AttentionWork& w, Merged& merged, const Mixing& mine, int start, int end) {
    const AttentionMemory a = attention_memory(m);
    const int warp = threadIdx.x / 32, chunks = ceil_div(end - start, CHUNK);
    await_copies();
    block_sync();
    if (warp < chunks) attend_chunk(a, w, warp, start, m.shared->request.position);
    block_sync();
    if (mine.row < w.count * REPEAT)
        merge_chunks(merged, a.chunks + mine.row * BLOCK_CHUNKS * CHUNK_STRIDE, mine.unit, chunks);
}

DEVICE void send_mix(const Memory& m, const AttentionWork& w, const Merged& merged, const Mixing& mine) {
    ClusterShared& s = *m.shared;
    __syncwarp();  // all threads of a cell have read the chunks
    if (mine.row >= w.count * REPEAT) return;
    const float inverse = __fdividef(1.0f, merged.sum);
    const float4 v = merged.mix;
    const uint2 mixed = halves_of(make_float4(v.x * inverse, v.y * inverse, v.z * inverse, v.w * inverse));
    const int token = w.first - s.task.first + mine.row / REPEAT;
    const int column = (w.head * REPEAT + mine.row % REPEAT) * HEAD_DIM + 4 * mine.unit;
    const u32 to = shared_address(m.wide) + column / TILE_ROWS * wide_tile(s.task.live) + token * 32 +
        column % TILE_ROWS * 2;
    const u32 barrier = shared_address(&s.arrivals[AT_OUT]);
#pragma unroll 1
    for (int rank = mine.lane; rank < CLUSTER; rank += mine.spread)
        send(at_rank(to, rank), mixed, at_rank(barrier, rank));
}

DEVICE const uint4* new_rows(const Params& p, const AttentionWork& w) {
    return p.new_kv + (u64)w.layer * MAX_TOKENS * 2 * (KV_DIM / 4) + w.head * ROW_UNITS;
}

// stage_history has been called for the first block of positions, and clear_rest if that is all.
DEVICE void run_attention(
    const Params& p, const Memory& m, const AttentionWork& w, u32 passed, const Abort& abort) {
    ClusterShared& s = *m.shared;
    const int position = s.request.position, group_start = position + s.task.first;
    const int last = position + w.first + w.count - 1;
    const Mixing mine = mixing_of(w.count * REPEAT);
    Merged merged = {make_float4(0.0f, 0.0f, 0.0f, 0.0f), NEG_INF, 0.0f};
    await_arrival(
        s, AT_ATTENTION, passed, w.count * REPEAT * HEAD_DIM * 2 + s.task.live * 2 * HEAD_DIM * 2, abort);
#pragma unroll 1
    for (int start = 0; start <= last; start += BLOCK_POSITIONS) {
        const int end = min(last + 1, start + BLOCK_POSITIONS), earlier = max(position, start);
        if (start > 0) {
            block_sync();  // the block before has been read
            stage_history(p, m, w, start, position);
        }
        if (earlier < min(group_start, end) &&
            !stage_earlier(
                new_rows(p, w), m.keys, tag_for(s.request, w.layer), position, start, earlier,
                min(group_start, end), p.abort, abort.deadline))
            s.failed = 1;
        if (!s.task.near) stage_own(m, start, min(max(group_start, start), end), end, group_start);
        attend_block(m, w, merged, mine, start, end);
    }
    send_mix(m, w, merged, mine);
}
