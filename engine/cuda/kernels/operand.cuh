// SPDX-License-Identifier: Apache-2.0
// Inputs of a matrix product: wait for them, normalise, and quantise each token to e4m3 with its own
// scale. Every block does this for itself: cheaper than one more exchange.
#pragma once
#include "state.cuh"

// Below this the scale would leave the normal range of float32; such a token is all zeros in effect.
constexpr float AMAX_FLOOR = 1e-20f;
constexpr float E4M3_MAX = 448.0f;

DEVICE float4 multiply4(float4 a, float4 b) {
    return make_float4(a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w);
}

DEVICE float4 embedding_unit(const Params& p, int token, int unit) {
    const uint2 raw = *reinterpret_cast<const uint2*>(p.embed + (u64)token * DIM + unit * 4);
    const float2 a = half2_to_float2(raw.x), b = half2_to_float2(raw.y);
    return make_float4(a.x, a.y, b.x, b.y);
}

template <int OP>
DEVICE const uint4* input_row(const Params& p, int token) {
    const uint4* base = OP == OP_OUT ? p.mixed
        : OP == OP_GATE_UP           ? p.x_ffn
        : OP == OP_DOWN              ? p.gated
                                     : p.x_attention;
    return base + (u64)token * Shape<OP>::UNITS;
}

// Values lane, lane + 32, ... (units of four) of one token, before the norm.
template <int OP>
DEVICE void read_input(
    float4 (&v)[ceil_div(Shape<OP>::UNITS, 32)], const Params& p, const Shared& s, int layer,
    int token, const Abort& abort, bool& ok) {
    constexpr int UNITS = Shape<OP>::UNITS;
    if (OP == OP_QKV && layer == 0) {
        const int lane = thread_index() & 31;
#pragma unroll
        for (int i = 0; i < ceil_div(UNITS, 32); ++i)
            v[i] = lane + 32 * i < UNITS ? embedding_unit(p, s.tokens[token], lane + 32 * i)
                                         : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        return;
    }
    const u32 tag = tag_for(s.request, OP == OP_QKV || OP == OP_HEAD ? layer - 1 : layer);
    await_row<UNITS>(v, input_row<OP>(p, token), tag, abort, ok);
}

// One warp quantises one token into row `column` of the operand.
// x * norm_weight * rms is quantised; the codes need no rms (it cancels), only the scale does.
template <int OP>
DEVICE void quantise_token(
    u8* operand, float* token_scale, const Params& p, const Shared& s, int layer, int token,
    int column, const Abort& abort, bool& ok) {
    constexpr int UNITS = Shape<OP>::UNITS;
    constexpr int PER_LANE = ceil_div(UNITS, 32);
    constexpr bool NORM = OP == OP_QKV || OP == OP_GATE_UP || OP == OP_HEAD;
    const int lane = thread_index() & 31;
    const float4* weight = reinterpret_cast<const float4*>(
        OP == OP_HEAD ? p.final_norm : p.norms + (2 * layer + (OP == OP_GATE_UP)) * DIM);
    float4 g[PER_LANE];
    if (NORM) {
#pragma unroll
        for (int i = 0; i < PER_LANE; ++i)
            if (lane + 32 * i < UNITS) g[i] = __ldg(weight + lane + 32 * i);
    }
    float4 v[PER_LANE];
    read_input<OP>(v, p, s, layer, token, abort, ok);
    float squares = 0.0f, largest = 0.0f;
#pragma unroll
    for (int i = 0; i < PER_LANE; ++i) {
        if (lane + 32 * i >= UNITS) continue;
        if (NORM) {
            squares += v[i].x * v[i].x + v[i].y * v[i].y + v[i].z * v[i].z + v[i].w * v[i].w;
            v[i] = multiply4(v[i], g[i]);
        }
        largest = fmaxf(
            largest,
            fmaxf(fmaxf(fabsf(v[i].x), fabsf(v[i].y)), fmaxf(fabsf(v[i].z), fabsf(v[i].w))));
    }
    largest = fmaxf(warp_max(largest), AMAX_FLOOR);
    const float rms = NORM ? 1.0f / sqrtf(warp_sum(squares) / (float)DIM + NORM_EPS) : 1.0f;
    const float inverse = E4M3_MAX / largest;
#pragma unroll
    for (int i = 0; i < PER_LANE; ++i) {
        if (lane + 32 * i >= UNITS) continue;
        const float4 q = make_float4(
            v[i].x * inverse, v[i].y * inverse, v[i].z * inverse, v[i].w * inverse);
        *reinterpret_cast<u32*>(operand + column * OPERAND_STRIDE + 4 * (lane + 32 * i)) =
            to_e4m3x4(q);
    }
    if (lane == 0) token_scale[column] = largest / E4M3_MAX * rms;
}

template <int OP>
DEVICE void quantise_inputs(
    u8* operand, float* token_scale, const Params& p, Shared& s, int layer, int first, int count,
    const Abort& abort) {
    bool ok = true;
    for (int column = thread_index() / 32; column < count; column += WARPS)
        quantise_token<OP>(
            operand, token_scale, p, s, layer, first + column, column, abort, ok);
    if (!ok) s.failed = 1;
}
