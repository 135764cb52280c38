// SPDX-License-Identifier: Apache-2.0
// The warps that do not compute. The courier keeps weights on their way, as far ahead as its ring holds, through
// all products and layers; the loader brings activations once they are there; the scaler finds 1 / rms.
#pragma once
#include "panel_state.cuh"

// ---------------------------------------------------------------- weights

struct Carrier {
    u32 data, full, read;
    int slot, slots;
    u32 turns;  // a bit a slot: parity of its next use
};

DEVICE Carrier weights_of(const Memory& m, const Plan& plan, u32 turns) {
    return {shared_address(m.base + plan.weights), shared_address(m.shared->weights_full),
            shared_address(m.shared->weights_read), 0, plan.weight_slots, turns};
}

DEVICE Carrier inputs_of(const Memory& m, const Plan& plan, u32 turns) {
    return {shared_address(m.base + plan.input), shared_address(m.shared->input_full),
            shared_address(m.shared->input_read), 0, plan.input_slots, turns};
}

DEVICE u32 turn_of(const Carrier& c) { return c.turns >> c.slot & 1u; }

DEVICE void next_slot(Carrier& c) {
    c.turns ^= 1u << c.slot;
    c.slot = c.slot + 1 == c.slots ? 0 : c.slot + 1;
}

// A lane a tile.
DEVICE void carry_items(const Params& p, const Memory& m, Carrier& c, int op, int layer) {
    constexpr int BYTES = STAGE_STEPS * TILE_BYTES;
    const int lane = thread_index() & 31;
    const Items items = items_of(m, op);
    const Cut& cut = CUTS[op];
#pragma unroll 1
    for (int i = 0; i < items.count; ++i) {
        const Item item = item_at(m, items.at + i);
        const u64 row = (u64)(layer * cut.tiles + item.first + min(lane, item.count - 1));
        const u8* from = p.codes[op] + (row * cut.stages + item.begin) * BYTES;
#pragma unroll 1
        for (int stage = item.begin; stage < item.end; ++stage, from += BYTES) {
            await_ring(c.read + 8 * c.slot, turn_of(c) ^ 1u);
            if (lane == 0) barrier_expect(c.full + 8 * c.slot, item.count * BYTES);
            __syncwarp();
            if (lane < item.count)
                fetch(c.data + c.slot * WEIGHT_STAGE + lane * BYTES, from, BYTES, c.full + 8 * c.slot);
            next_slot(c);
        }
    }
}

DEVICE void run_courier(const Params& p, const Memory& m, const Plan& plan, u32& turns) {
    Carrier c = weights_of(m, plan, turns);
#pragma unroll 1
    for (int layer = 0; layer < LAYERS; ++layer)
#pragma unroll 1
        for (int op = OP_QKV; op <= OP_DOWN; ++op) carry_items(p, m, c, op, layer);
    carry_items(p, m, c, OP_HEAD, 0);
    turns = c.turns;
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
    const Params& p, const Memory& m, Carrier& c, int op, int layer, int width, const Abort& abort) {
    const Items items = items_of(m, op);
    if (items.count == 0) return;
    const bool all = all_of(m);
    const int slot_bytes = input_stage(width), bytes = op == OP_HEAD && !all ? input_stage(FEW) : slot_bytes;
    await_count(
        *m.shared, counters_of(p, m.shared->request.number) + source_of(op, layer) * COUNTER_WORDS, gridDim.x,
        abort);
    fence_async();
#pragma unroll 1
    for (int i = 0; i < items.count; ++i) {
        const Item item = item_at(m, items.at + i);
        const u8* from = input_address(p, op, all) + (u64)item.begin * bytes;
#pragma unroll 1
        for (int stage = item.begin; stage < item.end; ++stage, from += bytes) {
            await_ring(c.read + 8 * c.slot, turn_of(c) ^ 1u);
            barrier_expect(c.full + 8 * c.slot, bytes);
            fetch(c.data + c.slot * slot_bytes, from, bytes, c.full + 8 * c.slot);
            next_slot(c);
        }
    }
}

DEVICE void run_loader(
    const Params& p, const Memory& m, const Plan& plan, int width, u32& turns, const Abort& abort) {
    Carrier c = inputs_of(m, plan, turns);
#pragma unroll 1
    for (int layer = 0; layer < LAYERS; ++layer)
#pragma unroll 1
        for (int op = OP_QKV; op <= OP_DOWN; ++op) load_items(p, m, c, op, layer, width, abort);
    load_items(p, m, c, OP_HEAD, 0, width, abort);
    turns = c.turns;
}

// ---------------------------------------------------------------- scales

// The power of two at or below v, and its reciprocal: exact to multiply by.
DEVICE float power_of_two(float v) { return __uint_as_float(__float_as_uint(v) & 0x7f800000u); }
DEVICE float reciprocal_power(float power) { return __uint_as_float(0x7f000000u - __float_as_uint(power)); }

DEVICE float load_float(const float* p) {
    float v;
    asm volatile("ld.global.cg.f32 %0, [%1];" : "=f"(v) : "l"(p) : "memory");
    return v;
}

// A lane a token: parts of its sum of squares in the order of the panels. Norm 0 is that of the first layer's
// attention, then they take turns; the last is the final one.
DEVICE void run_scaler(const Params& p, const Memory& m, const Abort& abort) {
    PanelShared& s = *m.shared;
    const int lane = thread_index() & 31, tokens = s.request.tokens;
    u32* counters = counters_of(p, s.request.number);
#pragma unroll 1
    for (int norm = 0; norm <= 2 * LAYERS; ++norm) {
        const int source =
            norm == 0 ? 0 : phase_index((norm - 1) / 2, norm & 1 ? PHASE_OUT : PHASE_DOWN);
        if (lane == 0) await_count(s, counters + source * COUNTER_WORDS, gridDim.x, abort);
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
