// SPDX-License-Identifier: Apache-2.0
// Sums of a panel: weights from their ring, one step after the other, times the tokens of the input ring.
#pragma once
#include "panel_stream.cuh"
#include "panel_wgmma.cuh"

constexpr bool FEW_BY_WARPS = true;  // see multiply_few

// Where a computing thread is in both rings.
struct Places {
    Place weights, inputs;
};

DEVICE void release_slot(u32 read, int slot) {
    __syncwarp();
    if ((thread_index() & 31) == 0) barrier_arrive(read + 8 * slot);
}

template <int PLAN>
DEVICE void take_weights(uint4 (&raw)[STAGE_STEPS], const Memory& m, Place& at) {
    const Ring ring = weights_of(m, plan(PLAN));
    await_ring(ring.full + 8 * at.slot, at.parity);
    const int thread = thread_index();
    const u32 from =
        ring.data + at.slot * WEIGHT_STAGE + thread / 32 * (STAGE_STEPS * TILE_BYTES) + (thread & 31) * 16;
#pragma unroll
    for (int i = 0; i < STAGE_STEPS; ++i) raw[i] = load_shared(from + i * TILE_BYTES);
    release_slot(ring.read, at.slot);
    next_slot(at, ring.slots);
}

// The next BATCH stages: their weights are in `raw`, and those of the BATCH after them will be if `more`.
template <int WIDTH, int PLAN, int BATCH>
DEVICE void multiply_batch(
    float (&d)[WIDTH / 2], uint4 (&raw)[BATCH][STAGE_STEPS], const Memory& m, Places& at, bool more) {
    const Ring ring = inputs_of(m, plan(PLAN));
    Fragment f[BATCH][STAGE_STEPS];
    u64 input[BATCH];
#pragma unroll
    for (int k = 0; k < BATCH; ++k)
#pragma unroll
        for (int i = 0; i < STAGE_STEPS; ++i) f[k][i] = fragment_of(raw[k][i]);
    Place done = at.inputs;
#pragma unroll
    for (int k = 0; k < BATCH; ++k) {
        await_ring(ring.full + 8 * at.inputs.slot, at.inputs.parity);
        input[k] = input_descriptor(ring.data + at.inputs.slot * input_stage(PLAN), WIDTH);
        next_slot(at.inputs, ring.slots);
    }
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < BATCH; ++k)
#pragma unroll
        for (int i = 0; i < STAGE_STEPS; ++i) {
            wgmma(d, f[k][i].first, input[k] + 4 * i * WIDTH);
            wgmma(d, f[k][i].second, input[k] + (4 * i + 2) * WIDTH);
        }
    wgmma_commit();
    if (more)  // while the tensor cores work
#pragma unroll
        for (int k = 0; k < BATCH; ++k) take_weights<PLAN>(raw[k], m, at.weights);
    wgmma_wait(d);
    __syncwarp();
#pragma unroll
    for (int k = 0; k < BATCH; ++k) {
        if ((thread_index() & 31) == 0) barrier_arrive(ring.read + 8 * done.slot);
        next_slot(done, ring.slots);
    }
}

DEVICE void load_columns(u32 (&r)[4], u32 address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

// A copy that the compiler takes for another value: it lies in registers in a loop even if the original does not.
DEVICE Place in_registers(Place at) {
    asm volatile("" : "+r"(at.slot), "+r"(at.parity));
    return at;
}

// BATCH stages of few tokens. Their products are one chain of instructions; other warps fill the gaps.
template <int PLAN, int BATCH>
DEVICE void multiply_few_batch(float (&d)[4], const Memory& m, Place& weights, Place& inputs, u32 offset) {
    const Ring w = weights_of(m, plan(PLAN)), x = inputs_of(m, plan(PLAN));
    uint4 raw[BATCH][STAGE_STEPS];
    u32 input[BATCH][STAGE_STEPS][4];
    Place at_weights = weights, at_inputs = inputs;
#pragma unroll
    for (int k = 0; k < BATCH; ++k) {
        await_ring(w.full + 8 * weights.slot, weights.parity);
#pragma unroll
        for (int i = 0; i < STAGE_STEPS; ++i)
            raw[k][i] = load_shared(w.data + weights.slot * WEIGHT_STAGE + offset + i * TILE_BYTES);
        next_slot(weights, w.slots);
    }
#pragma unroll
    for (int k = 0; k < BATCH; ++k) {
        await_ring(x.full + 8 * inputs.slot, inputs.parity);
#pragma unroll
        for (int i = 0; i < STAGE_STEPS; ++i)
            load_columns(
                input[k][i], x.data + inputs.slot * input_stage(PLAN) + i * (STEP * FEW * 2) + (offset & 511));
        next_slot(inputs, x.slots);
    }
    __syncwarp();
    const bool first = (offset & 511) == 0;  // lane 0
#pragma unroll
    for (int k = 0; k < BATCH; ++k) {
        if (first) barrier_arrive(w.read + 8 * at_weights.slot);
        if (first) barrier_arrive(x.read + 8 * at_inputs.slot);
        next_slot(at_weights, w.slots);
        next_slot(at_inputs, x.slots);
    }
#pragma unroll
    for (int k = 0; k < BATCH; ++k)
#pragma unroll
        for (int i = 0; i < STAGE_STEPS; ++i) {
            const Fragment f = fragment_of(raw[k][i]);
            mma_f16(d, f.first, make_uint2(input[k][i][0], input[k][i][1]));
            mma_f16(d, f.second, make_uint2(input[k][i][2], input[k][i][3]));
        }
}

// Few tokens by the tensor cores of a warp: they give the bits of those of a warpgroup (prefix and rest on a device
// tell), and with 8 tokens those would wait for their operands most of the time.
template <int PLAN>
DEVICE void multiply_few(float (&d)[4], const Memory& m, Places& at, int stages) {
    constexpr int BATCH = 4;
    static_assert(plan(PLAN).weight_slots >= BATCH && plan(PLAN).input_slots >= BATCH, "the rings hold a batch");
    Place weights = in_registers(at.weights), inputs = in_registers(at.inputs);
    const u32 offset = thread_index() / 32 * (STAGE_STEPS * TILE_BYTES) + (thread_index() & 31) * 16;
#pragma unroll 1
    for (; stages >= BATCH; stages -= BATCH) multiply_few_batch<PLAN, BATCH>(d, m, weights, inputs, offset);
#pragma unroll 1
    for (; stages > 0; --stages) multiply_few_batch<PLAN, 1>(d, m, weights, inputs, offset);
    at = {weights, inputs};
}

// Sums over `stages` stages in rings of plan PLAN. A warp without a tile computes what nobody reads. With some
// tokens a stage is short, so two are taken together.
template <int WIDTH, int PLAN>
DEVICE void multiply(float (&d)[WIDTH / 2], const Memory& m, Places& at, int stages) {
    constexpr int BATCH = WIDTH == MANY ? 1 : 2;
#pragma unroll
    for (int i = 0; i < WIDTH / 2; ++i) d[i] = 0.0f;
    if constexpr (WIDTH == FEW && FEW_BY_WARPS) {
        multiply_few<PLAN>(d, m, at, stages);
    } else {
        Places place = {in_registers(at.weights), in_registers(at.inputs)};
        uint4 raw[BATCH][STAGE_STEPS];
        if (stages >= BATCH)
#pragma unroll
            for (int k = 0; k < BATCH; ++k) take_weights<PLAN>(raw[k], m, place.weights);
#pragma unroll 1
        for (; stages >= BATCH; stages -= BATCH)
            multiply_batch<WIDTH, PLAN, BATCH>(d, raw, m, place, stages >= 2 * BATCH);
        if (BATCH > 1 && stages > 0) {
            uint4 rest[1][STAGE_STEPS];
            take_weights<PLAN>(rest[0], m, place.weights);
            multiply_batch<WIDTH, PLAN, 1>(d, rest, m, place, false);
        }
        at = place;
    }
}
