// SPDX-License-Identifier: Apache-2.0
// The forward pass of a large model by panels (panel_state.cuh). Launch with one block a multiprocessor, all
// resident at once.
#include "panel_attention.cuh"
#include "mailbox.cuh"

// The program of this block; and the counters of the next request back to zero.
DEVICE void prepare(const Params& p, const Memory& m) {
    const PanelShared& s = m.shared();
    uint4* next = reinterpret_cast<uint4*>(counter_of(p, s.request.number + 1, 0));
    constexpr int UNITS = COUNTERS * COUNTER_WORDS / 4;
    for (int i = blockIdx.x * THREADS + thread_index(); i < UNITS; i += gridDim.x * THREADS)
        next[i] = make_uint4(0, 0, 0, 0);
    if (s.request.flags & PING) return;
    int4* program = reinterpret_cast<int4*>(m.base() + STATE_BYTES);
    const int4* from = p.programs + ((u64)s.request.program * gridDim.x + blockIdx.x) * p.program_length;
    for (int i = thread_index(); i < PROGRAM_UNITS; i += THREADS) program[i] = __ldg(from + i);
}

// 1 / rms of a token's embedding, for the power of two that its first input is scaled by.
DEVICE float embedding_scale(const Params& p, int id) {
    const int lane = thread_index() & 31;
    float sum = 0.0f;
#pragma unroll 4
    for (int unit = lane; unit < DIM / 4; unit += 32) sum += sum_of_squares(embedding_unit(p, id, unit));
    return rsqrtf(warp_sum(sum) * (1.0f / DIM) + NORM_EPS);
}

// The residual and the first input, by those who will add to them in OUT.
DEVICE void embed(const Params& p, const Memory& m, int width) {
    PanelShared& s = m.shared();
    const Items items = items_of(m, OP_OUT);
    const int warp = thread_index() / 32, lane = thread_index() & 31, g = lane >> 2, tokens = s.request.tokens;
    constexpr int SLICES = OUT_CUT.slices;
#pragma unroll 1
    for (int i = 0; i < items.count; ++i) {
        const Item item = item_at(m, items.at + i);
#pragma unroll 1
        for (int token = warp; token < tokens; token += WARPS) {
            if (token / 8 % SLICES != item.slice) continue;
            const float power = power_of_two(embedding_scale(p, s.tokens[token]));
            if (lane == 0) s.power[token] = power;
            if (lane == 0 && item.panel == 0) first_powers(p)[token] = power;
        }
        block_sync();
        const float* norm = p.norms + tile_of(item) * TILE_ROWS + g;
        // Of a layer before all others: this input is never the head's.
        const Rows rows({1.0f, 1.0f, __ldg(norm), __ldg(norm + 8)}, item, -1);
#pragma unroll 1
        for (int group = item.slice; 8 * group < tokens; group += SLICES) {
            const int token = 8 * group + 2 * (lane & 3), row = rows.tile * TILE_ROWS + g;
            const u16* a = p.embed + (u64)s.tokens[min(token, tokens - 1)] * DIM + row;
            const u16* b = p.embed + (u64)s.tokens[min(token + 1, tokens - 1)] * DIM + row;
            const float4 v =
                make_float4(half_to_float(a[0]), half_to_float(b[0]), half_to_float(a[8]), half_to_float(b[8]));
            if (rows.live) residual_cells(p)[(rows.tile * GROUPS + group) * 32 + lane] = v;
            publish_residual(p, m, rows, OP_DOWN, group, width, v);
        }
        publish_squares(p, m, item, SLICES, 0);
    }
    arrive_count(counter_of(p, s.request.number, 0));
}

template <int WIDTH>
DEVICE void run_request(const Params& p, const Memory& m) {
    constexpr Plan PLAN = plan(WIDTH);
    Places at = {};
    embed(p, m, WIDTH);
#pragma unroll 1
    for (int layer = 0; layer < LAYERS; ++layer)
#pragma unroll 1
        for (int op = OP_QKV; op <= OP_DOWN; ++op) {
            if (op == OP_QKV) prefetch_history(p, m, layer);
            run_product<WIDTH>(p, m, at, op, layer);
            if (op == OP_QKV) run_attention(p, m, PLAN, layer, WIDTH);
        }
    if (all_of(m)) {
        run_head<WIDTH, WIDTH>(p, m, at, true);
        return;
    }
    run_head<FEW, WIDTH>(p, m, at, false);
    rank_local(p, m.shared(), m.tail(), m.program()[0].z, m.program()[0].w);
}

// All threads of the block, from different places of the program: no `bar.sync`, which is for all on the same way.
DEVICE void meet_helpers() { asm volatile("barrier.sync 1, %0;" ::"n"(ALL_THREADS) : "memory"); }

// The ring plan of a program.
DEVICE Plan plan_for(int width) { return width == FEW ? plan(FEW) : width == SOME ? plan(SOME) : plan(MANY); }

DEVICE void run_helper(const Params& p, const Memory& m) {
    const PanelShared& s = m.shared();
#pragma unroll 1
    while (true) {
        meet_helpers();
        if (s.exit) return;
        const int width = width_of(m), warp = thread_index() / 32;
        const Plan plan = plan_for(width);
        const bool first = (thread_index() & 31) == 0;
        if (warp == COURIER && first)
            run_courier(p, m, plan);
        else if (warp == SCALER)
            run_scaler(p, m);
        else if (warp == LOADER && first)
            run_loader(p, m, plan, width);
        __syncwarp();
    }
}

// A warp. Nobody is using the barriers: the helpers have not been told of the request yet.
DEVICE void reset_barriers(PanelShared& s, bool fresh) {
    const int lane = thread_index();
    if (lane >= 32) return;
    const u32 barriers[4] = {shared_address(s.weights_full + lane), shared_address(s.weights_read + lane),
                             shared_address(s.input_full + lane), shared_address(s.input_read + lane)};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        if (!fresh) barrier_end(barriers[i]);
        barrier_init(barriers[i], i & 1 ? WARPS : 1);
    }
    if (lane != 0) return;
    const u32 others[2] = {shared_address(&s.scaled), shared_address(&s.finished)};
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        if (!fresh) barrier_end(others[i]);
        barrier_init(others[i]);
    }
}

DEVICE void run_requests(const Params& p, const Memory& m) {
    PanelShared& s = m.shared();
    const u64 arrived = now_ns();
    u64 since = arrived;
    Abort abort = {p.abort, arrived + p.wait_ns};
#pragma unroll 1
    for (u32 served = 0; served < p.request_limit; ++served) {
        const u32 number = p.first_request + served;
        if (!receive(p, s, number, arrived, since, abort)) break;
        if (thread_index() == 0) s.deadline = abort.deadline;
        prepare(p, m);
        if (!(s.request.flags & PING)) {
            fence_gpu();  // what other blocks cleared before this request
            if (served > 0) reset_barriers(s, false);
            fence_barrier_init();
            block_sync();
            meet_helpers();
            if (width_of(m) == FEW)
                run_request<FEW>(p, m);
            else if (width_of(m) == SOME)
                run_request<SOME>(p, m);
            else
                run_request<MANY>(p, m);
        }
        block_sync();
        if (s.failed) break;
        const bool counted = blockIdx.x == 0 && (s.request.flags & (WANT_LOGITS | ALL_LOGITS));
        if (blockIdx.x == 0) reply(p, s, abort);
        if (thread_index() == 0 && !counted) add_release(p.done, 1);
        since = now_ns();
    }
    block_sync();
    if (thread_index() == 0) s.exit = 1;
    meet_helpers();
}

extern "C" __global__ void __launch_bounds__(ALL_THREADS, 1) thock_panel(const __grid_constant__ Params p) {
    const Memory m = {};
    PanelShared& s = m.shared();
    static_assert(MAX_SLOTS == 32, "a lane a slot");
    reset_barriers(s, true);
    if (thread_index() == 0) s.exit = 0;
    fence_barrier_init();
    __syncthreads();
    if (threadIdx.x >= THREADS) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(HELPER_REGISTERS));
        run_helper(p, m);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(WORKER_REGISTERS));
        run_requests(p, m);
    }
}
