// SPDX-License-Identifier: Apache-2.0
// The forward pass by clusters: each takes its tokens through all layers, then all blocks together compute
// the head for the last token. Launch with cluster size CLUSTER, all blocks resident at once.
#include "cluster_attention.cuh"
#include "mailbox.cuh"

constexpr int HALVES_PER_UNIT = 6;  // beside the tag
constexpr int HEAD_UNITS = ceil_div(DIM, HALVES_PER_UNIT);

// The program of this block, and what follows from it for this request.
DEVICE void read_program(const Params& p, u8* base) {
    ClusterShared& s = *reinterpret_cast<ClusterShared*>(base);
    const int4* program = p.programs + ((u64)s.request.program * gridDim.x + blockIdx.x) * p.program_length;
    for (int i = threadIdx.x; i < PROGRAM_UNITS; i += THREADS) program_of(base)[i] = __ldg(program + i);
    block_sync();
    const int width = width_of(base), tokens = s.request.tokens;
    // Many tokens are spread evenly over all clusters.
    const int share = width == FEW ? FEW : ceil_div(tokens, (int)gridDim.x / CLUSTER);
    const int first = blockIdx.x / CLUSTER * share, live = max(0, min(share, tokens - first));
    if (threadIdx.x == 0)
        s.task = {first, live, live > 0 && first + live == tokens, (s.request.flags & ALL_LOGITS) != 0,
                  (int)s.request.position + first + live <= BLOCK_POSITIONS, false};
    if (threadIdx.x < 4) {
        constexpr int SCALES[4] = {QKV_SCALES, OUT_SCALES, GATE_UP_SCALES, DOWN_SCALES};
        const int op = threadIdx.x;
        // What other blocks send. OUT and DOWN, which make the inputs of norms, have the same tiles of a block.
        const int norms = (NORM_TILES - tiles_of(base, OP_OUT).count) * norm_tile(live);
        const int gated = live * FFN * 2 - tiles_of(base, OP_GATE_UP).count / 2 * wide_tile(live);
        const int bytes[4] = {norms, live * Q_DIM * 2, norms, gated};
        const Tiles tiles = tiles_of(base, op);
        const int cells = tiles.count * live * 2, spread = op == OP_QKV ? spread_of(cells) : 0;
        s.work[op] = {tiles.first, tiles.count, 65536 / tiles.count + 1, spread, cells << spread,
                      CUTS[op].slices, SCALES[op], (u32)bytes[op]};
    }
    const int warp = threadIdx.x / 32;
    if ((threadIdx.x & 31) == 0) {
        int count = 0;
#pragma unroll 1
        for (int op = 0; op < OP_HEAD; ++op) {
            const Cut& cut = CUTS[op];
            const Tiles tiles = tiles_of(base, op);
            s.item_at[warp][op] = count;
            for (int item = warp; item < tiles.count * cut.slices; item += WARPS) {
                const int slice = item % cut.slices;
                s.items[warp][count++] = {
                    op, tiles.first + item / cut.slices, (u16)(slice * cut.steps / cut.slices),
                    (u16)((slice + 1) * cut.steps / cut.slices), item};
            }
        }
        s.item_at[warp][OP_HEAD] = count;
    }
    if (threadIdx.x < KV_HEADS) {
        u32 ranks = 0;
        for (int token = 0; token < live; ++token) ranks |= 1u << owner_of(base, threadIdx.x, token).rank;
        s.head_ranks[threadIdx.x] = ranks;
    }
    block_sync();
}

// The residual and the first input, from the embedding.
DEVICE void embed(const Params& p, const Memory& m, int columns) {
    ClusterShared& s = *m.shared;
    const Task& task = s.task;
    const int tile_bytes = norm_tile(task.live);
    for (int i = threadIdx.x; i < task.live * NORM_TILES; i += THREADS) {
        const int token = i / NORM_TILES, tile = i % NORM_TILES, id = s.tokens[task.first + token];
        float4 v[4];
        for (int k = 0; k < 4; ++k) v[k] = embedding_unit(p, id, tile * 4 + k);
        reinterpret_cast<float*>(m.x + tile * tile_bytes + task.live * 32)[token] =
            (sum_of_squares(v[0]) + sum_of_squares(v[2])) + (sum_of_squares(v[1]) + sum_of_squares(v[3]));
    }
    for (int i = threadIdx.x; i < columns; i += THREADS) s.power[i] = 1.0f;
    block_sync();
    scale_tokens(m, threadIdx.x / 32 * 4, WARPS * 4);
    block_sync();
    const Tiles mine = tiles_of(m.base, OP_OUT);
    for (int i = threadIdx.x; i < task.live * DIM / 4; i += THREADS) {
        const int token = i / (DIM / 4), unit = i % (DIM / 4), tile = unit / 4;
        const float4 v = embedding_unit(p, s.tokens[task.first + token], unit);
        const float4 norm = load4(p.norms + 4 * unit);
        reinterpret_cast<uint2*>(m.x + tile * tile_bytes + token * 32)[unit % 4] =
            halves_of(scale4(v, norm, s.power[token]));
        if (tile >= mine.first && tile < mine.first + mine.count)
            reinterpret_cast<float4*>(m.tail + ((tile - mine.first) * columns + token) * TILE_ROWS)[unit % 4] = v;
    }
    for (int i = threadIdx.x; i < task.live * HEAD_DIM / 4; i += THREADS)
        reinterpret_cast<float4*>(m.rope)[i] =
            load4(p.rope + (u64)(s.request.position + task.first) * HEAD_DIM + 4 * i);
    // This input is scaled by the power itself.
    if (threadIdx.x < task.live) s.scale[threadIdx.x] *= reciprocal_power(s.power[threadIdx.x]);
    block_sync();
}

// How often the barriers of this block have passed, over all requests of the launch.
struct Passed {
    u32 layers, attention;
};

template <int NT>
DEVICE void run_layers(
    const Params& p, const Memory& m, Stream& st, Passed& passed, const Abort& abort) {
    ClusterShared& s = *m.shared;
    const Piece piece = piece_of(m.base);
    const int begin = piece.begin, end = min(piece.end, s.task.live);
    const bool attends = piece.head >= 0 && begin < end;
    embed(p, m, NT * TILE_TOKENS);
#pragma unroll 1
    for (int index = 0; index < LAYERS; ++index, ++passed.layers) {
        const Layer layer = {
            index, passed.layers, m.constants + (passed.layers & 1) * (CONSTANT_TILES * TILE_ROWS)};
        const AttentionWork work = {index, piece.head, s.task.first + begin, end - begin};
        if (attends && s.request.position > 0) stage_history(p, m, work, 0, s.request.position);
        if (attends && s.task.near) clear_rest(m);
#pragma unroll 1
        for (int op = OP_QKV; op <= OP_DOWN; ++op) {
            run_product<NT>(p, m, st, op, layer, abort);
            if (op == OP_QKV && attends) run_attention(p, m, work, passed.attention++, abort);
        }
    }
    await_arrival(s, AT_QKV, passed.layers - 1, s.work[OP_QKV].bytes, abort);
    scale_tokens(m, threadIdx.x / 32 * 4, WARPS * 4);
    block_sync();
}

// Hand the last token's normalised state to all blocks: six halves a unit, then a unit with its scale.
DEVICE void publish_state(const Params& p, const Memory& m) {
    const ClusterShared& s = *m.shared;
    const Task& task = s.task;
    const u32 tag = tag_for(s.request, LAYERS - 1);
    const u8* row = m.x + (task.live - 1) * 32;
    const int tile = norm_tile(task.live);
    for (int i = threadIdx.x * CLUSTER + cluster_rank(); i <= HEAD_UNITS; i += THREADS * CLUSTER) {
        uint4 v = make_uint4(__float_as_uint(s.scale[task.live - 1]), 0, 0, tag);
        u32* words = &v.x;
        for (int k = 0; k < 3 && i < HEAD_UNITS; ++k) {
            const int word = min(3 * i + k, DIM / 2 - 1);
            words[k] = *reinterpret_cast<const u32*>(row + word / 8 * tile + word % 8 * 4);
        }
        store_unit(p.x_attention + i, v);
    }
}

DEVICE void await_state(const Params& p, const Memory& m, const Abort& abort) {
    ClusterShared& s = *m.shared;
    const u32 tag = tag_for(s.request, LAYERS - 1);
    bool ok = true;
    for (int i = threadIdx.x; i <= HEAD_UNITS; i += THREADS) {
        const uint4 v = await_candidate(p.x_attention + i, tag, abort, ok);
        u32* at = reinterpret_cast<u32*>(m.wide) + 3 * i;
        if (i < HEAD_UNITS)
            at[0] = v.x, at[1] = v.y, at[2] = v.z;
        else
            s.scale[0] = __uint_as_float(v.x);
    }
    if (!ok) s.failed = 1;
    block_sync();
}

// Logits of `live` tokens whose inputs are rows of `input`; the last token's also into m.tail.
template <int NT>
DEVICE void run_head(
    const Params& p, const Memory& m, Stream& st, const Input<NT>& input, int first_token, int live, bool all) {
    const ClusterShared& s = *m.shared;
    const Tiles tiles = tiles_of(m.base, OP_HEAD);
    const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
#pragma unroll 1
    for (int slot = threadIdx.x / 32; slot < tiles.count; slot += WARPS) {
        const int row = (tiles.first + slot) * TILE_ROWS + g;
        const float low = __ldg(p.scales[OP_HEAD] + row), high = __ldg(p.scales[OP_HEAD] + row + 8);
        float sums[NT][4];
        multiply_item<NT>(sums, st, input, 0, DIM / STEP);
#pragma unroll
        for (int n = 0; n < NT; ++n)
#pragma unroll
            for (int c = 0; c < 4; ++c) {
                const int token = 8 * n + 2 * t + (c & 1), id = row + (c < 2 ? 0 : 8);
                if (token >= live) continue;
                const float logit = sums[n][c] * (c < 2 ? low : high) * s.scale[token];
                if (id < VOCAB) p.logits[all ? (u64)(first_token + token) * VOCAB + id : id] = logit;
                if (!all) m.tail[slot * TILE_ROWS + g + (c < 2 ? 0 : 8)] = logit;
            }
    }
}

template <int NT>
DEVICE void run_request(
    const Params& p, u8* base, const Plan& plan, Stream& st, Passed& passed, const Abort& abort) {
    const Memory m = memory_of(base, plan);
    ClusterShared& s = *m.shared;
    const bool works = s.task.live > 0;
    restart(st, base, plan);
    if (works) run_layers<NT>(p, m, st, passed, abort);
    if (s.task.all) {
        if (!works) return;
        const Input<NT> input = input_of<NT>(m.x, norm_tile(s.task.live), s.task.live);
        run_head<NT>(p, m, st, input, s.task.first, s.task.live, true);
        return;
    }
    if (s.task.last) publish_state(p, m);
    await_state(p, m, abort);
    run_head<1>(p, m, st, input_of<1>(m.wide, wide_tile(1), 1), 0, 1, false);
    const Tiles head = tiles_of(base, OP_HEAD);
    rank_local(p, s, m.tail, head.first, head.count);
}

// All threads of the block, from different places of the program: see meet_scaler.
DEVICE void meet_helpers() { asm volatile("barrier.sync 1, %0;" ::"n"(ALL_THREADS) : "memory"); }

// The warps that do not compute: weights and constants, and scales, of one request after the other.
DEVICE void run_helper(const Params& p, u8* base) {
    const ClusterShared& s = *reinterpret_cast<ClusterShared*>(base);
    u32 turns = 0, layers = 0;
#pragma unroll 1
    while (true) {
        meet_helpers();
        if (s.task.exit) return;
        const bool works = s.task.live > 0;  // the next request may be there when this one is served
        const bool many = WIDE > 1 && width_of(base) > FEW;
        const Plan plan = many ? MANY_PLAN : FEW_PLAN;
        if (threadIdx.x / 32 == COURIER) {
            carry(p, base, plan, turns, layers);
        } else {
            const Abort abort = {p.abort, s.deadline};
            run_scaler(memory_of(base, plan), layers, abort);
        }
        if (works) layers += LAYERS;
    }
}

// One request, on the plan that its program is for.
DEVICE void compute(const Params& p, u8* base, Stream& stream, Passed& passed, const Abort& abort) {
    ClusterShared& s = *reinterpret_cast<ClusterShared*>(base);
    if (threadIdx.x == 0) s.deadline = abort.deadline;
    read_program(p, base);
    meet_helpers();
    if (WIDE > 1 && width_of(base) > FEW)
        run_request<WIDE>(p, base, MANY_PLAN, stream, passed, abort);
    else
        run_request<1>(p, base, FEW_PLAN, stream, passed, abort);
}

DEVICE void run_requests(const Params& p, u8* base) {
    ClusterShared& s = *reinterpret_cast<ClusterShared*>(base);
    const u64 arrived = now_ns();
    u64 since = arrived;
    Abort abort = {p.abort, arrived + p.wait_ns};
    Stream stream = {};
    Passed passed = {0, 0};
#pragma unroll 1
    for (u32 served = 0; served < p.request_limit; ++served) {
        const u32 number = p.first_request + served;
        if (!receive(p, s, number, arrived, since, abort)) break;
        if (!(s.request.flags & PING)) compute(p, base, stream, passed, abort);
        block_sync();
        if (s.failed) break;
        const bool counted = blockIdx.x == 0 && (s.request.flags & (WANT_LOGITS | ALL_LOGITS));
        if (blockIdx.x == 0) reply(p, s, abort);
        if (threadIdx.x == 0 && !counted) add_release(p.done, 1);
        since = now_ns();
    }
    block_sync();
    if (threadIdx.x == 0) s.task.exit = true;
    meet_helpers();
}

extern "C" __global__ void __launch_bounds__(ALL_THREADS, 1) thock_cluster(const __grid_constant__ Params p) {
    extern __shared__ __align__(128) u8 memory[];
    ClusterShared& s = *reinterpret_cast<ClusterShared*>(memory);
    if (threadIdx.x == 0) {
        for (int i = 0; i < ARRIVALS; ++i) barrier_init(shared_address(&s.arrivals[i]), arrivals_at(i));
        for (int i = 0; i < 2; ++i) {
            barrier_init(shared_address(&s.constants[i]));
            barrier_init(shared_address(&s.constants_read[i]));
        }
        for (int i = 0; i < WARPS * MAX_SLOTS; ++i) {
            barrier_init(shared_address(&s.stream[0][i]));
            barrier_init(shared_address(&s.stream_read[0][i]));
        }
        fence_barrier_init();
    }
    cluster_sync();
    if (threadIdx.x >= THREADS)
        run_helper(p, memory);
    else
        run_requests(p, memory);
    cluster_sync();  // nobody stores into a block that has left
}
