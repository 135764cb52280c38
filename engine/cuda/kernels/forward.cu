// SPDX-License-Identifier: Apache-2.0
// The whole forward pass of a Llama-family decoder in one kernel that stays on the device as long as
// the host allows: one request (launch), a short stay (lease), or until told (resident). All blocks
// must be resident at once: launch cooperatively, one block a multiprocessor.
#include "phases.cuh"
#include "attention.cuh"
#include "mailbox.cuh"

// Program of a block: word 0 = {instructions, group, 0, 0}; then {op, layer, first, count} each.
// Attention: first = key-value head, count = first token | end token << 16, within the group.
struct Range {
    int first, count;
};

// Tokens that an instruction works on. The head takes the last token, or all of the block's group.
DEVICE Range tokens_of(const Shared& s, int op) {
    const int tokens = (int)s.request.tokens;
    const bool all = s.request.flags & ALL_LOGITS;
    if (op == OP_HEAD && !all) return {tokens - 1, 1};
    const int width = tokens <= TILE_TOKENS ? TILE_TOKENS : TILE_TOKENS * WIDE;
    const int first = s.group * width;
    return {first, max(0, min(width, tokens - first))};
}

template <int OP>
DEVICE void prefetch_work(const Params& p, int4 ins) {
    using S = Shape<OP>;
    const u64 tile = (u64)S::STEPS * TILE_BYTES;
    const u8* from = p.codes[OP] + ((u64)ins.y * S::TILES + ins.z) * tile;
    for (u64 at = thread_index() * 128ull; at < ins.w * tile; at += THREADS * 128ull)
        prefetch_l2(from + at);
}

DEVICE void prefetch(const Params& p, int4 ins) {
    if (ins.x == OP_QKV) prefetch_work<OP_QKV>(p, ins);
    if (ins.x == OP_OUT) prefetch_work<OP_OUT>(p, ins);
    if (ins.x == OP_GATE_UP) prefetch_work<OP_GATE_UP>(p, ins);
    if (ins.x == OP_DOWN) prefetch_work<OP_DOWN>(p, ins);
    if (ins.x == OP_HEAD) prefetch_work<OP_HEAD>(p, ins);
}

template <int OP>
DEVICE bool dispatch(
    const Params& p, const Smem& m, int4 ins, int parity, const Abort& abort) {
    const Work work = {ins.y, ins.z, ins.w};
    const Range r = tokens_of(*m.shared, OP);
    if (r.count == 0) return true;
    if (WIDE == 1 || r.count <= TILE_TOKENS)
        return run_phase<OP, 1>(p, m, work, r.first, r.count, parity, abort);
    return run_phase<OP, WIDE>(p, m, work, r.first, r.count, parity, abort);
}

DEVICE bool execute(
    const Params& p, const Smem& m, int4 ins, int parity, const Abort& abort) {
    if (ins.x == OP_QKV) return dispatch<OP_QKV>(p, m, ins, parity, abort);
    if (ins.x == OP_OUT) return dispatch<OP_OUT>(p, m, ins, parity, abort);
    if (ins.x == OP_GATE_UP) return dispatch<OP_GATE_UP>(p, m, ins, parity, abort);
    if (ins.x == OP_DOWN) return dispatch<OP_DOWN>(p, m, ins, parity, abort);
    if (ins.x == OP_HEAD) return dispatch<OP_HEAD>(p, m, ins, parity, abort);
    const Range r = tokens_of(*m.shared, OP_ATTENTION);
    const int begin = ins.w & 0xffff, end = min(ins.w >> 16, r.count);
    if (begin >= end) return true;
    const AttentionWork work = {ins.y, ins.z, r.first + begin, end - begin};
    return run_attention(p, m, work, abort);
}

constexpr int PREFETCH_DISTANCE = 4;  // instructions; most of a layer

DEVICE bool run_program(const Params& p, const Smem& m, const Abort& abort) {
    Shared& s = *m.shared;
    const int4* program =
        p.programs + ((u64)s.request.program * gridDim.x + blockIdx.x) * p.program_length;
    for (u32 i = thread_index(); i < p.program_length; i += THREADS) m.program[i] = __ldg(program + i);
    __syncthreads();
    const int count = m.program[0].x;
    if (thread_index() == 0) s.group = m.program[0].y;
    __syncthreads();
    const int4* ins = m.program + 1;
    const bool rank = !(s.request.flags & ALL_LOGITS);
    bool ranked = false;
    for (int i = 1; i < min(PREFETCH_DISTANCE, count); ++i) prefetch(p, ins[i]);
    for (int i = 0; i < count; ++i) {
        if (i + PREFETCH_DISTANCE < count) prefetch(p, ins[i + PREFETCH_DISTANCE]);
        if (!execute(p, m, ins[i], i & 1, abort)) return false;
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
    m.shared = reinterpret_cast<Shared*>(memory);
    m.scratch = memory + SHARED_BYTES;
    m.program = reinterpret_cast<int4*>(m.scratch + SCRATCH_BYTES);
    m.residual = reinterpret_cast<float*>(m.program + p.program_length);
    Shared& s = *m.shared;
    const u64 arrived = now_ns();
    u64 since = arrived;
    Abort abort = {p.abort, arrived + p.wait_ns};
    for (u32 served = 0; served < p.request_limit; ++served) {
        const u32 number = p.first_request + served;
        if (!receive(p, s, number, arrived, since, abort)) return;
        if (!run_program(p, m, abort)) return;
        __syncthreads();
        const bool counted = blockIdx.x == 0 && (s.request.flags & (WANT_LOGITS | ALL_LOGITS));
        if (blockIdx.x == 0) reply(p, s, abort);
        if (thread_index() == 0 && !counted) add_release(p.done, 1);
        since = now_ns();
    }
}
