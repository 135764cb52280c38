// SPDX-License-Identifier: Apache-2.0
// The best tokens of one row of logits: each block ranks its own rows, block 0 ranks the winners.
// Ties go to the lowest id; padded rows of the vocabulary never take part.
#pragma once
#include "request.cuh"

// Larger logit first, then lower id: one unsigned comparison decides. 0 is below every key.
DEVICE u64 key_of(float logit, u32 id) {
    const u32 bits = __float_as_uint(logit);
    const u32 ordered = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return (u64)ordered << 32 | (0xffffffffu - id);
}

DEVICE u32 id_of(u64 key) { return 0xffffffffu - (u32)key; }

DEVICE float logit_of(u64 key) {
    const u32 ordered = (u32)(key >> 32);
    return __uint_as_float(ordered & 0x80000000u ? ordered & 0x7fffffffu : ~ordered);
}

// Largest key of the block, in every thread.
DEVICE u64 block_max(Shared& s, u64 key) {
    key = warp_max(key);
    if ((thread_index() & 31) == 0) s.best[thread_index() / 32] = key;
    block_sync();
    if (thread_index() < 32) {
        key = warp_max(thread_index() < WARPS ? s.best[thread_index()] : 0);
        if (thread_index() == 0) s.winner = key;
    }
    block_sync();
    return s.winner;
}

DEVICE float block_sum(Shared& s, float v) {
    v = warp_sum(v);
    if ((thread_index() & 31) == 0) s.sums[thread_index() / 32] = v;
    block_sync();
    float sum = 0.0f;
    for (int i = 0; i < WARPS; ++i) sum += s.sums[i];
    block_sync();
    return sum;
}

// Unit 0 of a block's row: largest logit, sum of exp(logit - largest); unit 1 + i: logit, id.
DEVICE void rank_local(const Params& p, Shared& s, const float* local, int first_tile, int tiles) {
    block_sync();
    const u32 tag = s.request.number;
    const int count = min(tiles * TILE_ROWS, VOCAB - first_tile * TILE_ROWS);
    uint4* row = p.candidates + (u64)blockIdx.x * (MAX_TOP + 1);
    u64 below = ~0ull;
    for (u32 rank = 0; rank < s.request.top; ++rank) {
        u64 best = 0;
        for (int i = thread_index(); i < count; i += THREADS) {
            const u64 key = key_of(local[i], first_tile * TILE_ROWS + i);
            best = key < below && key > best ? key : best;
        }
        best = block_max(s, best);
        if (rank == 0) {
            const float largest = logit_of(best);
            float sum = 0.0f;
            for (int i = thread_index(); i < count; i += THREADS) sum += __expf(local[i] - largest);
            sum = block_sum(s, sum);
            if (thread_index() == 0)
                store_unit(
                    row, make_uint4(
                             __float_as_uint(best ? largest : NEG_INF), __float_as_uint(sum), 0, tag));
        }
        if (thread_index() == 0)
            store_unit(row + 1 + rank, make_uint4((u32)best, (u32)(best >> 32), 0, tag));
        below = best;
    }
}

DEVICE uint4 await_candidate(const uint4* unit, u32 tag, const Abort& abort, bool& ok) {
    uint4 v = load_unit(unit);
    for (u32 spins = 0; v.w != tag; v = load_unit(unit)) {
        if (!may_wait(abort, spins)) {
            ok = false;
            break;
        }
    }
    return v;
}

// Block 0: logarithm of the sum of exp over the vocabulary, blocks in fixed order.
DEVICE float merge_sums(const Params& p, Shared& s, const Abort& abort, bool& ok) {
    float largest = NEG_INF, sum = 0.0f;
    for (u32 block = thread_index(); block < gridDim.x; block += THREADS) {
        const uint4 v =
            await_candidate(p.candidates + (u64)block * (MAX_TOP + 1), s.request.number, abort, ok);
        const float theirs = __uint_as_float(v.x), both = fmaxf(largest, theirs);
        if (both == NEG_INF) continue;
        sum = sum * __expf(largest - both) + __uint_as_float(v.y) * __expf(theirs - both);
        largest = both;
    }
    const float all = logit_of(block_max(s, key_of(largest, 0)));
    return all + __logf(block_sum(s, largest == NEG_INF ? 0.0f : sum * __expf(largest - all)));
}

// Block 0: the `top` best of all blocks, written to the reply. Returns false on a timeout.
DEVICE bool rank_global(const Params& p, Shared& s, uint4* reply, const Abort& abort) {
    bool ok = true;
    const u32 tag = s.request.number, top = s.request.top;
    const float norm = merge_sums(p, s, abort, ok);
    u64 below = ~0ull;
    for (u32 rank = 0; rank < top; ++rank) {
        u64 best = 0;
        for (u32 i = thread_index(); i < gridDim.x * top; i += THREADS) {
            const uint4 v = await_candidate(
                p.candidates + (u64)(i / top) * (MAX_TOP + 1) + 1 + i % top, tag, abort, ok);
            const u64 key = (u64)v.y << 32 | v.x;
            best = key < below && key > best ? key : best;
        }
        best = block_max(s, best);
        if (thread_index() == 0) {
            const float logit = logit_of(best);
            store_unit_system(
                reply + 2 + rank,
                make_uint4(id_of(best), __float_as_uint(logit), __float_as_uint(logit - norm), tag));
        }
        below = best;
    }
    if (!ok) s.failed = 1;
    block_sync();
    return !s.failed;
}
