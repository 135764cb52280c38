// SPDX-License-Identifier: Apache-2.0
// The whole forward pass of a Llama-family decoder in one kernel that stays on the device as long as
// the host allows: one request (launch), a short stay (lease), or until told (resident). All blocks
// must be resident at once: launch cooperatively, one block a multiprocessor.
#include "phases.cuh"
#include "attention.cuh"
#include "mailbox.cuh"

// Program of a block: word 0 = {instructions, group, shared inputs, 0}; then {op, layer, first, count}.
// Attention: first = key-value head, count = first token | end token << 16, within the group.
// Quantise: first = product whose input it is, count as for attention.
struct Range {
    int first, count;
};

// Tokens that an instruction works on. The head takes the last token, or all of the block's group.
DEVICE Range tokens_of(const GridShared& s, int op) {
    const int tokens = (int)s.request.tokens;
    const bool all = s.request.flags & ALL_LOGITS;
    if (op == OP_HEAD && !all) return {tokens - 1, 1};
    const int width = tokens <= TILE_TOKENS ? TILE_TOKENS : TILE_TOKENS * WIDE;
    const int first = s.group * width;
    return {first, max(0, min(width, tokens - first))};
}

// Ask L2 for what instruction `ins` will read: weights and scales, or cached keys and values.
DEVICE void prefetch(const Params& p, const GridShared& s, int4 ins) {
    const u32 step = THREADS * 128u, offset = thread_index() * 128u;
    if (ins.x == OP_QUANTISE) return;
    if (ins.x == OP_ATTENTION) {
        const u64 row = (u64)(ins.y * KV_HEADS + ins.z) * 2 * p.max_context;
        const u8* keys = reinterpret_cast<const u8*>(p.cache + row * HEAD_DIM);
        const u32 bytes = s.request.position * HEAD_DIM * 2, values = p.max_context * HEAD_DIM * 2;
#pragma unroll 1
        for (u32 at = offset; at < bytes; at += step) {
            prefetch_l2(keys + at);
            prefetch_l2(keys + values + at);
        }
        return;
    }
    const Product& product = PRODUCTS[ins.x];
    const u32 bytes = ins.w * product.steps * TILE_BYTES;
    const u64 first = ins.y * product.tiles + ins.z;
    const u8* codes = p.codes[ins.x] + first * (product.steps * TILE_BYTES);
#pragma unroll 1
    for (u32 at = offset; at < bytes; at += step) prefetch_l2(codes + at);
    const u32 row_bytes = product.groups * TILE_ROWS * 4;
    const u8* scales = reinterpret_cast<const u8*>(p.scales[ins.x]) + first * row_bytes;
#pragma unroll 1
    for (u32 at = offset; at < ins.w * row_bytes; at += step) prefetch_l2(scales + at);
    if (ins.x == OP_QKV && offset < 2 * DIM * 4)
        prefetch_l2(reinterpret_cast<const u8*>(p.norms + 2 * ins.y * DIM) + offset);
}

DEVICE bool execute(const Params& p, const Smem& m, int4 ins, int parity, const Abort& abort) {
    const Range r = tokens_of(*m.shared, ins.x);
    if (ins.x == OP_ATTENTION || ins.x == OP_QUANTISE) {
        const int begin = ins.w & 0xffff, end = min(ins.w >> 16, r.count);
        if (begin >= end) return true;
        if (ins.x == OP_QUANTISE)
            return run_quantise(p, m, ins.z, ins.y, r.first + begin, end - begin, abort);
        const AttentionWork work = {ins.y, ins.z, r.first + begin, end - begin};
        return run_attention(p, m, work, abort);
    }
    if (r.count == 0) return true;
    const Work work = {ins.x, ins.y, ins.z, ins.w};
    if (WIDE > 1 && r.count > TILE_TOKENS && ins.x != OP_HEAD)
        return run_phase<WIDE>(p, m, work, r.first, r.count, parity, abort);
    // More than one turn only for the logits of all tokens of a long request.
#pragma unroll 1
    for (int at = 0; at < r.count; at += TILE_TOKENS, parity ^= 1)
        if (!run_phase<1>(p, m, work, r.first + at, min(TILE_TOKENS, r.count - at), parity, abort))
            return false;
    return true;
}

constexpr int PREFETCH_DISTANCE = 4;  // instructions; most of a layer

DEVICE bool run_program(const Params& p, const Smem& m, const Abort& abort) {
    GridShared& s = *m.shared;
    const int4* program =
        p.programs + ((u64)s.request.program * gridDim.x + blockIdx.x) * p.program_length;
    for (u32 i = thread_index(); i < p.program_length; i += THREADS) m.program[i] = __ldg(program + i);
    block_sync();
    const int count = m.program[0].x;
    if (thread_index() == 0) {
        s.group = m.program[0].y;
        s.shared_inputs = m.program[0].z;
    }
    block_sync();
    const int4* ins = m.program + 1;
    const bool rank = !(s.request.flags & ALL_LOGITS);
    bool ranked = false;
    int parity = 0;
#pragma unroll 1
    for (int i = 1; i < min(PREFETCH_DISTANCE, count); ++i) prefetch(p, s, ins[i]);
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
        if (!execute(p, m, ins[i], parity, abort)) return false;
        parity ^= ins[i].x <= OP_HEAD;
        // Once the results are out: others wait for those, nobody waits for this.
        if (i + PREFETCH_DISTANCE < count) prefetch(p, s, ins[i + PREFETCH_DISTANCE]);
        if (ins[i].x == OP_HEAD && rank) {
            rank_local(p, s, m.residual, ins[i].z, ins[i].w);
            ranked = true;
        }
    }
    if (rank && !ranked) rank_local(p, s, m.residual, 0, 0);  // no rows: an empty candidate
    return true;
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) thock_forward(const __grid_constant__ Params p) {
    extern __shared__ __align__(16) u8 memory[];
    Smem m;
    m.shared = reinterpret_cast<GridShared*>(memory);
    m.scratch = memory + SHARED_BYTES;
    m.program = reinterpret_cast<int4*>(m.scratch + SCRATCH_BYTES);
    m.residual = reinterpret_cast<float*>(m.program + p.program_length);
    GridShared& s = *m.shared;
    const u64 arrived = now_ns();
    u64 since = arrived;
    Abort abort = {p.abort, arrived + p.wait_ns};
    for (u32 served = 0; served < p.request_limit; ++served) {
        const u32 number = p.first_request + served;
        if (!receive(p, s, number, arrived, since, abort)) return;
        if (!(s.request.flags & PING) && !run_program(p, m, abort)) return;
        block_sync();
        const bool counted = blockIdx.x == 0 && (s.request.flags & (WANT_LOGITS | ALL_LOGITS));
        if (blockIdx.x == 0) reply(p, s, abort);
        if (thread_index() == 0 && !counted) add_release(p.done, 1);
        since = now_ns();
    }
}
