// SPDX-License-Identifier: Apache-2.0
// The warps that do not compute. The courier keeps weights on their way, as far ahead as its ring holds, through
// all products and layers; the loader brings activations once they are there; the scaler finds 1 / rms.
#pragma once
#include "panel_state.cuh"

// ---------------------------------------------------------------- weights

// A place in a ring. Each request begins at slot 0 with barriers that nobody has used.
struct Place {
    int slot;
    u32 parity;
};

DEVICE void next_slot(Place& at, int slots) {
    if (++at.slot == slots) at.slot = 0, at.parity ^= 1u;
}

// Shared addresses of a ring.
struct Ring {
    u32 data, full, read;
    int slots;
};

DEVICE Ring weights_of(const Memory& m, const Plan& plan) {
    return {shared_address(m.base() + plan.weights), shared_address(m.shared().weights_full),
            shared_address(m.shared().weights_read), plan.weight_slots};
}

DEVICE Ring inputs_of(const Memory& m, const Plan& plan) {
    return {shared_address(m.base() + plan.input), shared_address(m.shared().input_full),
            shared_address(m.shared().input_read), plan.input_slots};
}

// As `fetch`, of what nobody reads again before all other weights have passed: L2 keeps what blocks exchange.
DEVICE void fetch_once(u32 to, const void* from, u32 bytes, u32 barrier) {
    asm volatile(
        "{\n\t.reg .b64 policy;\n\tcreatepolicy.fractional.L2::evict_first.b64 policy, 1.0;\n\t"
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], "
        "policy;\n\t}" ::"r"(to),
        "l"(from), "r"(bytes), "r"(barrier)
        : "memory");
}

// One thread. A stage of all tiles of an item lies together (engine/cuda/panel_schedule.py, `arrange`).
DEVICE void carry_items(
    const Params& p, const Memory& m, const Ring& ring, Place& at, Place& landed, int op, int layer) {
    constexpr int BYTES = STAGE_STEPS * TILE_BYTES;
    const Items items = items_of(m, op);
    const Cut& cut = CUTS[op];
#pragma unroll 1
    for (int i = 0; i < items.count; ++i) {
        const Item item = item_at(m, items.at + i);
        const int bytes = item.count * BYTES;
        const u8* from = p.codes[op] + (u64)(layer * cut.tiles + item.first) * cut.stages * BYTES + item.begin * bytes;
#pragma unroll 1
        for (int stage = item.begin; stage < item.end; ++stage, from += bytes) {
            const u32 full = ring.full + 8 * at.slot;
            await_ring(ring.read + 8 * at.slot, at.parity ^ 1u);
            // Behind by STAGES_AWAY, no more than there are slots: the barrier is not used anew before.
            if (landed.slot >= 0) await_ring(ring.full + 8 * landed.slot, landed.parity);
            if (++landed.slot == ring.slots) landed.slot = 0, landed.parity ^= 1u;
            barrier_expect(full, bytes);
            fetch_once(ring.data + at.slot * WEIGHT_STAGE, from, bytes, full);
            next_slot(at, ring.slots);
        }
    }
}

DEVICE void run_courier(const Params& p, const Memory& m, const Plan& plan) {
    const Ring ring = weights_of(m, plan);
    Place at = {}, landed = {-STAGES_AWAY, 0};
#pragma unroll 1
    for (int layer = 0; layer < LAYERS; ++layer)
#pragma unroll 1
        for (int op = OP_QKV; op <= OP_DOWN; ++op) carry_items(p, m, ring, at, landed, op, layer);
    carry_items(p, m, ring, at, landed, OP_HEAD, 0);
}

// ---------------------------------------------------------------- activations

// Which phase makes the input of `op`.
DEVICE int source_of(int op, int layer) {
    if (op == OP_QKV) return layer == 0 ? 0 : phase_index(layer - 1, PHASE_DOWN);
    if (op == OP_HEAD) return phase_index(LAYERS - 1, PHASE_DOWN);
    return phase_index(layer, op == OP_OUT ? PHASE_ATTENTION : op == OP_GATE_UP ? PHASE_OUT : PHASE_GATE_UP);
}

DEVICE const u8* input_address(const Params& p, int op, bool all) {
    if (op == OP_HEAD && !all) return reinterpret_cast<const u8*>(p.x_attention) + HEAD_INPUT * 4;
    const uint4* at = op == OP_OUT ? p.mixed : op == OP_GATE_UP ? p.x_ffn : op == OP_DOWN ? p.gated : p.x_attention;
    return reinterpret_cast<const u8*>(at);
}

// One thread.
DEVICE void load_items(
    const Params& p, const Memory& m, const Ring& ring, Place& at, u32& finished, int op, int layer, int width) {
    const Items items = items_of(m, op);
    if (items.count == 0) return;
    const bool all = all_of(m);
    const int slot_bytes = input_stage(width), bytes = op == OP_HEAD && !all ? input_stage(FEW) : slot_bytes;
    await_count(p, m, counter_of(p, m.shared().request.number, source_of(op, layer)), gridDim.x);
    fence_async();
#pragma unroll 1
    for (int i = 0; i < items.count; ++i) {
        const Item item = item_at(m, items.at + i);
        const u8* from = input_address(p, op, all) + (u64)item.begin * bytes;
        if (i > 0 && op != OP_HEAD) {  // what follows the sums uses the ring
            await_ring(shared_address(&m.shared().finished), finished);
            finished ^= 1u;
            fence_async();
        }
#pragma unroll 1
        for (int stage = item.begin; stage < item.end; ++stage, from += bytes) {
            const u32 full = ring.full + 8 * at.slot;
            await_ring(ring.read + 8 * at.slot, at.parity ^ 1u);
            barrier_expect(full, bytes);
            fetch(ring.data + at.slot * slot_bytes, from, bytes, full);
            next_slot(at, ring.slots);
        }
    }
}

DEVICE void run_loader(const Params& p, const Memory& m, const Plan& plan, int width) {
    const Ring ring = inputs_of(m, plan);
    Place at = {};
    u32 finished = 0;
#pragma unroll 1
    for (int layer = 0; layer < LAYERS; ++layer)
#pragma unroll 1
        for (int op = OP_QKV; op <= OP_DOWN; ++op) load_items(p, m, ring, at, finished, op, layer, width);
    load_items(p, m, ring, at, finished, OP_HEAD, 0, width);
}

// ---------------------------------------------------------------- scales

DEVICE float load_float(const float* p) {
    float v;
    asm volatile("ld.global.cg.f32 %0, [%1];" : "=f"(v) : "l"(p) : "memory");
    return v;
}

// A lane a token: parts of its sum of squares in the order of the panels. Norm 0 is that of the first layer's
// attention, then they take turns; the last is the final one.
DEVICE void run_scaler(const Params& p, const Memory& m) {
    PanelShared& s = m.shared();
    const int lane = thread_index() & 31, tokens = s.request.tokens;
#pragma unroll 1
    for (int norm = 0; norm <= 2 * LAYERS; ++norm) {
        const int source =
            norm == 0 ? 0 : phase_index((norm - 1) / 2, norm & 1 ? PHASE_OUT : PHASE_DOWN);
        if (lane == 0) await_count(p, m, counter_of(p, s.request.number, source), gridDim.x);
        __syncwarp();
        const float* squares = squares_of(p, norm & 1);
#pragma unroll 1
        for (int token = lane; token < tokens; token += 32) {
            float sum = 0.0f;
#pragma unroll
            for (int panel = 0; panel < NORM_PANELS; ++panel) sum += load_float(squares + panel * MAX_TOKENS + token);
            const float inverse = rsqrtf(sum * (1.0f / DIM) + NORM_EPS);
            const float power = norm == 0 ? load_float(first_powers(p) + token) : s.power[token];
            s.scale[token] = inverse * reciprocal_power(power);
            s.power[token] = power_of_two(inverse);
        }
        __syncwarp();
        if (lane == 0) barrier_arrive(shared_address(&s.scaled));
    }
}
