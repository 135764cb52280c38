// SPDX-License-Identifier: Apache-2.0
// Attention by teams of four warps: up to 16 rows (token, query head) of one key-value head. Chunks of 32 positions
// go to the warps in turn; each warp keeps a running maximum, sum and mix, and the four are merged in order. Who
// takes a chunk depends on its position only and rows of an MMA do not mix, so a token's result never depends on
// its neighbours. Nothing is staged: four lanes read 64 bytes of a row, and since a product may take its columns
// in any order, what they hold are fragments.
#pragma once
#include "panel_product.cuh"

constexpr int TEAM_WARPS = TEAM_THREADS / 32;
constexpr int BLOCKS32 = HEAD_DIM / 32;

// 8x8 float16, a register a lane, transposed.
DEVICE u32 transposed(u32 v) {
    u32 r;
    asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r) : "r"(v));
    return r;
}

DEVICE uint4 load_row(const u16* p) { return *reinterpret_cast<const uint4*>(p); }

struct Mixed {
    float mix[BLOCKS32][4][4];  // columns 32 j + 8 t + 2 i and the next; rows g and g + 8
    float largest[2], sum[2];
};

// One chunk. `query`: rows g and g + 8 at this lane's 8 columns; `keys`, `values` likewise, of position 0. Loads are
// asked for together, as many as there are registers: in the FIRST chunk the mix is not there yet.
template <bool FIRST>
DEVICE void mix_chunk(
    Mixed& r, const u16* const (&query)[2], const u16* keys, const u16* values, int start, int last,
    const int (&limit)[2]) {
    constexpr int TOGETHER = FIRST ? BLOCKS32 : 1;
    const int lane = thread_index() & 31, g = lane >> 2, t = lane & 3;
    u32 row[4];
#pragma unroll
    for (int n = 0; n < 4; ++n) row[n] = min(start + 8 * n + g, last) * HEAD_DIM;
    float scores[4][4];
#pragma unroll
    for (int n = 0; n < 4; ++n)
#pragma unroll
        for (int c = 0; c < 4; ++c) scores[n][c] = 0.0f;
#pragma unroll
    for (int from = 0; from < BLOCKS32; from += TOGETHER) {
        uint4 a[TOGETHER], b[TOGETHER], k[TOGETHER][4];
#pragma unroll
        for (int j = 0; j < TOGETHER; ++j) {
            a[j] = load_row(query[0] + 32 * (from + j));
            b[j] = load_row(query[1] + 32 * (from + j));
#pragma unroll
            for (int n = 0; n < 4; ++n) k[j][n] = load_row(keys + row[n] + 32 * (from + j));
        }
#pragma unroll
        for (int j = 0; j < TOGETHER; ++j) {
            const u32 first[4] = {a[j].x, b[j].x, a[j].y, b[j].y}, second[4] = {a[j].z, b[j].z, a[j].w, b[j].w};
#pragma unroll
            for (int n = 0; n < 4; ++n) {
                mma_f16(scores[n], first, make_uint2(k[j][n].x, k[j][n].y));
                mma_f16(scores[n], second, make_uint2(k[j][n].z, k[j][n].w));
            }
        }
    }
    uint4 v[TOGETHER][4];
    if (FIRST)  // while the weights are computed
#pragma unroll
        for (int j = 0; j < TOGETHER; ++j)
#pragma unroll
            for (int n = 0; n < 4; ++n) v[j][n] = load_row(values + row[n] + 32 * j);
    u32 weights[4][2];
    float keep[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        float largest = r.largest[i], sum = 0.0f;
#pragma unroll
        for (int n = 0; n < 4; ++n)
#pragma unroll
            for (int c = 0; c < 2; ++c) {
                float& score = scores[n][2 * i + c];
                if (start + 8 * n + 2 * t + c > limit[i]) score = NEG_INF;
                largest = fmaxf(largest, score);
            }
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 1));
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 2));
        const float from = largest == NEG_INF ? 0.0f : largest;
        keep[i] = __expf(r.largest[i] - from);
        r.largest[i] = largest;
#pragma unroll
        for (int n = 0; n < 4; ++n) {
            const float a = __expf(scores[n][2 * i] - from), b = __expf(scores[n][2 * i + 1] - from);
            sum += a + b;
            weights[n][i] = half_pair(a, b);
        }
        sum += __shfl_xor_sync(0xffffffffu, sum, 1);
        sum += __shfl_xor_sync(0xffffffffu, sum, 2);
        r.sum[i] = r.sum[i] * keep[i] + sum;
    }
#pragma unroll
    for (int j = 0; j < BLOCKS32; ++j) {
        const int at = FIRST ? j : 0;
        if (!FIRST)
#pragma unroll
            for (int n = 0; n < 4; ++n) v[0][n] = load_row(values + row[n] + 32 * j);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
#pragma unroll
            for (int c = 0; c < 4; ++c) r.mix[j][i][c] = FIRST ? 0.0f : r.mix[j][i][c] * keep[c / 2];
#pragma unroll
            for (int k = 0; k < 2; ++k) {
                const u32 a[4] = {
                    weights[2 * k][0], weights[2 * k][1], weights[2 * k + 1][0], weights[2 * k + 1][1]};
                const uint4 low = v[at][2 * k], high = v[at][2 * k + 1];
                const u32 x = i == 0 ? low.x : i == 1 ? low.y : i == 2 ? low.z : low.w;
                const u32 y = i == 0 ? high.x : i == 1 ? high.y : i == 2 ? high.z : high.w;
                mma_f16(r.mix[j][i], a, make_uint2(transposed(x), transposed(y)));
            }
        }
    }
}

DEVICE void team_sync() {
    asm volatile("barrier.sync %0, %1;" ::"r"(2 + thread_index() / TEAM_THREADS), "n"(TEAM_THREADS) : "memory");
}

// Tokens first .. first + count of the request and key-value head `head`. `scratch`: TEAM_BYTES of this team. A function
// of its own: inlined, it would share registers with those that the tensor cores keep.
static __device__ __noinline__ void attend_piece(
    const Params& p, const PanelShared& s, u8* scratch, int layer, int head, int first, int count, int width) {
    const int warp = thread_index() / 32 % TEAM_WARPS, lane = thread_index() & 31, g = lane >> 2, t = lane & 3;
    const int position = s.request.position, rows = count * REPEAT, last = position + first + count - 1;
    const u16* keys = p.cache + (u64)((layer * KV_HEADS + head) * 2) * p.max_context * HEAD_DIM + 8 * t;
    const u16* values = keys + p.max_context * HEAD_DIM;
    const u16* query[2];
    int limit[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const int row = min(g + 8 * i, rows - 1), token = first + row / REPEAT;
        query[i] = reinterpret_cast<const u16*>(p.queries) + token * Q_DIM +
            (head * REPEAT + row % REPEAT) * HEAD_DIM + 8 * t;
        limit[i] = position + token;
    }
    Mixed r;
#pragma unroll
    for (int i = 0; i < 2; ++i) r.largest[i] = NEG_INF, r.sum[i] = 0.0f;
    const int begin = warp * CHUNK;
    if (begin <= last) {
        mix_chunk<true>(r, query, keys, values, begin, last, limit);
    } else {
#pragma unroll
        for (int j = 0; j < BLOCKS32; ++j)
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int c = 0; c < 4; ++c) r.mix[j][i][c] = 0.0f;
    }
#pragma unroll 1
    for (int start = begin + TEAM_WARPS * CHUNK; start <= last; start += TEAM_WARPS * CHUNK)
        mix_chunk<false>(r, query, keys, values, start, last, limit);
    float* mixes = reinterpret_cast<float*>(scratch);
    float* sums = mixes + TEAM_WARPS * MAX_ROWS * MIX_STRIDE;  // maximum and sum
    if (t == 0)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            float* at = sums + (warp * MAX_ROWS + g + 8 * i) * 2;
            at[0] = r.largest[i], at[1] = r.sum[i];
        }
    u32* mixed = reinterpret_cast<u32*>(p.mixed);
#pragma unroll
    for (int part = 0; part < HEAD_DIM / 64; ++part) {
#pragma unroll
        for (int j = 0; j < 2; ++j)
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                float* at = mixes + (warp * MAX_ROWS + g + 8 * i) * MIX_STRIDE + 32 * j + 8 * t;
#pragma unroll
                for (int k = 0; k < 4; ++k)
                    *reinterpret_cast<float2*>(at + 2 * k) = make_float2(
                        r.mix[2 * part + j][k][2 * i], r.mix[2 * part + j][k][2 * i + 1]);
            }
        team_sync();
#pragma unroll 1
        for (int i = thread_index() % TEAM_THREADS; i < rows * 16; i += TEAM_THREADS) {
            const int row = i / 16, unit = i % 16;
            float largest = NEG_INF, total = 0.0f;
            float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
            for (int w = 0; w < TEAM_WARPS; ++w) largest = fmaxf(largest, sums[(w * MAX_ROWS + row) * 2]);
#pragma unroll
            for (int w = 0; w < TEAM_WARPS; ++w) {
                const float* of = sums + (w * MAX_ROWS + row) * 2;
                const float take = __expf(of[0] - largest);
                const float4 v =
                    *reinterpret_cast<const float4*>(mixes + (w * MAX_ROWS + row) * MIX_STRIDE + 4 * unit);
                total = fmaf(of[1], take, total);
                sum.x = fmaf(v.x, take, sum.x), sum.y = fmaf(v.y, take, sum.y);
                sum.z = fmaf(v.z, take, sum.z), sum.w = fmaf(v.w, take, sum.w);
            }
            const float inverse = __fdividef(1.0f, total);
            const int token = first + row / REPEAT;
            const int column = (head * REPEAT + row % REPEAT) * HEAD_DIM + 64 * part + 4 * unit;
            mixed[state_word(column / 16, 0, token, unit % 4, width)] = half_pair(sum.x * inverse, sum.y * inverse);
            mixed[state_word(column / 16, 1, token, unit % 4, width)] = half_pair(sum.z * inverse, sum.w * inverse);
        }
        team_sync();
    }
}

// Ask L2 for the keys and values of earlier requests that this block will read: of a large model not all stay there.
DEVICE void prefetch_history(const Params& p, const Memory& m, int layer) {
    const Items pieces = pieces_of(m, thread_index() / TEAM_THREADS);
    const u32 bytes = m.shared().request.position * HEAD_DIM * 2;
#pragma unroll 1
    for (int i = 0; i < pieces.count; ++i) {
        const u64 row = (u64)((layer * KV_HEADS + m.program()[pieces.at + i].x) * 2) * p.max_context;
        const u8* keys = reinterpret_cast<const u8*>(p.cache + row * HEAD_DIM);
        const u8* values = keys + (u64)p.max_context * HEAD_DIM * 2;
#pragma unroll 1
        for (u32 at = thread_index() % TEAM_THREADS * 128; at < bytes; at += TEAM_THREADS * 128) {
            prefetch_l2(keys + at);
            prefetch_l2(values + at);
        }
    }
}

// This block's pieces, once all queries, keys and values are there.
DEVICE void run_attention(const Params& p, const Memory& m, const Plan& plan, int layer, int width) {
    const PanelShared& s = m.shared();
    const int team = thread_index() / TEAM_THREADS, tokens = s.request.tokens;
    const Items pieces = pieces_of(m, team);
    if (pieces.count > 0) {
        if (thread_index() % TEAM_THREADS == 0)
            await_count(p, m, counter_of(p, s.request.number, phase_index(layer, PHASE_QKV)), gridDim.x);
        team_sync();
    }
#pragma unroll 1
    for (int i = 0; i < pieces.count; ++i) {
        const int4 piece = m.program()[pieces.at + i];
        const int count = min(piece.z, tokens) - piece.y;
        if (count > 0)
            attend_piece(p, s, m.base() + plan.input + team * TEAM_BYTES, layer, piece.x, piece.y, count, width);
    }
    arrive_count(counter_of(p, s.request.number, phase_index(layer, PHASE_ATTENTION)));
}
