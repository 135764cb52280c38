// SPDX-License-Identifier: Apache-2.0
// This block's part of a product or of the head: sums, then results.
#pragma once
#include "panel_results.cuh"

// Before the first use of a norm's scales, and once a norm at any rate: nobody may miss one. Norms take turns.
DEVICE void await_scales(const Memory& m, int op) {
    await_ring(shared_address(&m.shared().scaled), op == OP_GATE_UP ? 1u : 0u);
}

// Between two items: the loader may use the input ring again.
DEVICE void free_inputs(const Memory& m) {
    block_sync();
    if (thread_index() == 0) barrier_arrive(shared_address(&m.shared().finished));
}

// This block's items of one product. What is needed after the sums is read again then: registers are scarce.
template <int WIDTH>
DEVICE void run_product(const Params& p, const Memory& m, Places& at, int op, int layer) {
    const bool narrow = op == OP_QKV || op == OP_GATE_UP;
#pragma unroll 1
    for (int i = 0; i < items_of(m, op).count; ++i) {
        if (i > 0) free_inputs(m);
        float d[WIDTH / 2];
        Item item = item_at(m, items_of(m, op).at + i);
        const Constants constants = constants_of(p, op, layer, tile_of(item));
        multiply<WIDTH, WIDTH>(d, m, at, item.end - item.begin);
        item = item_at(m, items_of(m, op).at + i);
        const int tokens = m.shared().request.tokens, slices = CUTS[op].slices;
        if (op == OP_GATE_UP && GATE_UP_CUT.slices == 1) {
            const Rows rows(constants, item, layer);
            await_scales(m, op);
            finish_sums<WIDTH>(p, m, rows, d);
            continue;
        }
        store_parts<WIDTH>(p, item, slices, tokens, d);
        const bool mine = 8 * item.slice < tokens;  // or others add up
        if (WIDTH == MANY) {
            block_sync();
            if (thread_index() == 0) {
                u32* counter = counter_of(p, m.shared().request.number, panel_index(layer, op, item.panel));
                add_release(counter, 1);
                if (mine) await_count(p, m, counter, slices);
            }
            if (mine) block_sync();
        }
        if (!mine) continue;
        if (narrow) await_scales(m, op);
        finish_slices<WIDTH>(p, m, Rows(constants, item, layer), item, op);
    }
    if (narrow) await_scales(m, op);
    arrive_count(
        counter_of(p, m.shared().request.number, phase_index(layer, op == OP_QKV ? PHASE_QKV : op + 1)));
}

// Logits of this block's tiles, of the last token or of all.
template <int WIDTH, int PLAN>
DEVICE void run_head(const Params& p, const Memory& m, Places& at, bool all) {
    const PanelShared& s = m.shared();
    const Items items = items_of(m, OP_HEAD);
    const int lane = thread_index() & 31, g = lane >> 2, tokens = s.request.tokens;
    int local = 0;  // tiles before this item
#pragma unroll 1
    for (int i = 0; i < items.count; ++i) {
        const Item item = item_at(m, items.at + i);
        const Rows rows(constants_of(p, OP_HEAD, 0, tile_of(item)), item, 0);
        float d[WIDTH / 2];
        multiply<WIDTH, PLAN>(d, m, at, item.end - item.begin);
        await_scales(m, OP_HEAD);
#pragma unroll
        for (int n = 0; n < WIDTH / 8; ++n)
#pragma unroll
            for (int c = 0; c < 4; ++c) {
                const int column = 8 * n + 2 * (lane & 3) + (c & 1), row = g + (c < 2 ? 0 : 8);
                if (!rows.live || column >= (all ? tokens : 1)) continue;
                const int id = rows.tile * TILE_ROWS + row;
                const float logit = d[4 * n + c] * (c < 2 ? rows.low : rows.high) * s.scale[all ? column : tokens - 1];
                if (id < VOCAB) p.logits[all ? (u64)column * VOCAB + id : id] = logit;
                if (!all) m.tail()[(local + thread_index() / 32) * TILE_ROWS + row] = logit;
            }
        local += item.count;
    }
    await_scales(m, OP_HEAD);
}
