// SPDX-License-Identifier: Apache-2.0
// A matrix product over panels, and what the model does with its sums. A warp has one tile of 16 rows from the
// first product to the last store; its lanes hold rows g and g + 8 for tokens 2t and 2t + 1 of each group of 8.
#pragma once
#include "panel_stream.cuh"
#include "panel_wgmma.cuh"

struct Rings {
    Carrier weights, inputs;
};

DEVICE void release_slot(Carrier& c) {
    __syncwarp();
    if ((thread_index() & 31) == 0) barrier_arrive(c.read + 8 * c.slot);
    next_slot(c);
}

DEVICE void take_weights(uint4 (&raw)[STAGE_STEPS], Carrier& c) {
    await_ring(c.full + 8 * c.slot, turn_of(c));
    const u32 at = c.data + c.slot * WEIGHT_STAGE + thread_index() / 32 * (STAGE_STEPS * TILE_BYTES) +
        (thread_index() & 31) * 16;
#pragma unroll
    for (int i = 0; i < STAGE_STEPS; ++i) raw[i] = load_shared(at + i * TILE_BYTES);
    release_slot(c);
}

// Sums over `stages` stages. `slot_bytes`: of the input ring. A warp without a tile computes what nobody reads.
template <int WIDTH>
DEVICE void multiply(float (&d)[WIDTH / 2], Rings& r, int stages, int slot_bytes) {
#pragma unroll
    for (int i = 0; i < WIDTH / 2; ++i) d[i] = 0.0f;
    uint4 raw[STAGE_STEPS];
    take_weights(raw, r.weights);
#pragma unroll 1
    for (int left = stages; left > 0; --left) {
        Fragment f[STAGE_STEPS];
#pragma unroll
        for (int i = 0; i < STAGE_STEPS; ++i) f[i] = fragment_of(raw[i]);
        await_ring(r.inputs.full + 8 * r.inputs.slot, turn_of(r.inputs));
        u64 input = input_descriptor(r.inputs.data + r.inputs.slot * slot_bytes, WIDTH);
        wgmma_fence();
#pragma unroll
        for (int i = 0; i < STAGE_STEPS; ++i) {
            wgmma(d, f[i].first, input);
            wgmma(d, f[i].second, input + 2 * WIDTH);
            input += 4 * WIDTH;
        }
        wgmma_commit();
        if (left > 1) take_weights(raw, r.weights);  // while the tensor cores work
        wgmma_wait();
        release_slot(r.inputs);
    }
}

// ---------------------------------------------------------------- results

// Where this lane works in an epilogue, and its rows' constants.
struct Rows {
    int layer, tile;    // of the matrix
    bool live;          // the panel has this tile
    float low, high;    // weight scales of rows g and g + 8
    float norm_low, norm_high;
};

DEVICE Rows rows_of(const Params& p, int op, int layer, const Item& item) {
    const int warp = thread_index() / 32, g = (thread_index() & 31) >> 2;
    Rows r = {};
    r.layer = layer;
    r.tile = item.first + min(warp, item.count - 1);
    r.live = warp < item.count;
    const float* scales = p.scales[op] + (u64)(layer * CUTS[op].tiles + r.tile) * TILE_ROWS + g;
    r.low = __ldg(scales);
    r.high = __ldg(scales + 8);
    if (op == OP_OUT || op == OP_DOWN) {
        // The norm that follows: the feed-forward one, the next layer's, or the last.
        const int norm = 2 * layer + (op == OP_OUT ? 1 : 2);
        const float* weights = (norm < 2 * LAYERS ? p.norms + norm * DIM : p.final_norm) + r.tile * TILE_ROWS + g;
        r.norm_low = __ldg(weights);
        r.norm_high = __ldg(weights + 8);
    }
    return r;
}

// Float16 of the two rows with this lane's neighbour (g ^ 1) swapped so that each has two rows for one token: rows
// g & ~1 and the next in `low`, 8 further on in `high`.
struct Words {
    u32 low, high;
    int token;
};

DEVICE Words paired(float4 v, int group) {
    const int lane = thread_index() & 31;
    const bool odd = lane >> 2 & 1;
    const u32 a = half_pair(v.x, v.z), b = half_pair(v.y, v.w);
    const u32 got = __shfl_xor_sync(0xffffffffu, odd ? a : b, 4), mine = odd ? b : a;
    const u32 first = odd ? got : mine, second = odd ? mine : got;
    return {__byte_perm(first, second, 0x5410), __byte_perm(first, second, 0x7632),
            8 * group + 2 * (lane & 3) + odd};
}

// Where columns 4i + 2h and the next of 16 columns lie, as a word: the order in which a register of weights has them.
DEVICE int state_word(int sixteen, int half, int token, int i, int width) {
    return ((2 * sixteen + half) * width + token) * 4 + i;
}

// The input of the next norm: residual times norm weight times a power of two, and its sums of squares.
DEVICE void finish_residual(
    const Params& p, const Memory& m, const Rows& rows, int op, int group, int width, float4 residual) {
    const PanelShared& s = *m.shared;
    const int lane = thread_index() & 31, g = lane >> 2, token = 8 * group + 2 * (lane & 3), tokens = s.request.tokens;
    float a = residual.x * residual.x + residual.z * residual.z;
    float b = residual.y * residual.y + residual.w * residual.w;
#pragma unroll
    for (int offset = 4; offset < 32; offset <<= 1) {
        a += __shfl_xor_sync(0xffffffffu, a, offset);
        b += __shfl_xor_sync(0xffffffffu, b, offset);
    }
    if (g == 0) {
        float* squares = m.squares + thread_index() / 32 * MAX_TOKENS + token;
        squares[0] = a;
        squares[1] = b;
    }
    const float first = s.power[token], second = s.power[token + 1];
    const Words w = paired(
        make_float4(
            residual.x * rows.norm_low * first, residual.y * rows.norm_low * second,
            residual.z * rows.norm_high * first, residual.w * rows.norm_high * second),
        group);
    if (!rows.live || w.token >= tokens) return;
    const bool head = op == OP_DOWN && rows.layer == LAYERS - 1 && !all_of(m);
    if (head && w.token != tokens - 1) return;
    u32* to = reinterpret_cast<u32*>(op == OP_OUT ? p.x_ffn : p.x_attention) + (head ? HEAD_INPUT : 0);
    const int half = g >> 1 & 1, at = head ? 0 : w.token, wide = head ? FEW : width;
    to[state_word(rows.tile, half, at, g >> 2, wide)] = w.low;
    to[state_word(rows.tile, half, at, 2 + (g >> 2), wide)] = w.high;
}

// After finish_residual of all groups of a panel that this block has: the panel's parts for the scaler.
DEVICE void publish_squares(const Params& p, const Memory& m, const Item& item, int slices, int which) {
    block_sync();
    const int token = thread_index();
    if (token < (int)m.shared->request.tokens && token / 8 % slices == item.slice) {
        float sum = 0.0f;
        for (int i = 0; i < item.count; ++i) sum += m.squares[i * MAX_TOKENS + token];
        squares_of(p, which)[item.panel * MAX_TOKENS + token] = sum;
    }
    block_sync();
}

DEVICE void finish_qkv(const Params& p, const Memory& m, const Rows& rows, int group, float4 v) {
    constexpr int Q_TILES = Q_DIM / TILE_ROWS, KV_TILES = KV_DIM / TILE_ROWS, HEAD_TILES = HEAD_DIM / TILE_ROWS;
    const PanelShared& s = *m.shared;
    const int lane = thread_index() & 31, g = lane >> 2, tokens = s.request.tokens, position = s.request.position;
    if (HAS_BIAS) {
        const float* bias = p.bias + (u64)rows.layer * (Q_DIM + 2 * KV_DIM) + rows.tile * TILE_ROWS + g;
        const float low = __ldg(bias), high = __ldg(bias + 8);
        v.x += low, v.y += low, v.z += high, v.w += high;
    }
    if (rows.tile < Q_TILES + KV_TILES) {
        const int pair = rows.tile % HEAD_TILES * 8 + g, token = 8 * group + 2 * (lane & 3);
        const float2* table = reinterpret_cast<const float2*>(p.rope) + pair;
        const float2 a = __ldg(table + (u64)(position + min(token, tokens - 1)) * (HEAD_DIM / 2));
        const float2 b = __ldg(table + (u64)(position + min(token + 1, tokens - 1)) * (HEAD_DIM / 2));
        rotate(v.x, v.z, a.x, a.y);
        rotate(v.y, v.w, b.x, b.y);
    }
    const bool query = rows.tile < Q_TILES;
    const float scale = query ? rsqrtf((float)HEAD_DIM) : 1.0f;
    const Words w = paired(make_float4(v.x * scale, v.y * scale, v.z * scale, v.w * scale), group);
    if (!rows.live || w.token >= tokens) return;
    u16* to;
    if (query) {
        to = reinterpret_cast<u16*>(p.queries) + w.token * Q_DIM + rows.tile * TILE_ROWS;
    } else {
        const int value = rows.tile >= Q_TILES + KV_TILES, tile = rows.tile - Q_TILES - value * KV_TILES;
        const u64 row = (u64)((rows.layer * KV_HEADS + tile / HEAD_TILES) * 2 + value) * p.max_context + position;
        to = p.cache + (row + w.token) * HEAD_DIM + tile % HEAD_TILES * TILE_ROWS;
    }
    *reinterpret_cast<u32*>(to + (g & ~1)) = w.low;
    *reinterpret_cast<u32*>(to + 8 + (g & ~1)) = w.high;
}

// Rows g are of the gate, rows g + 8 of what it gates.
DEVICE void finish_gate_up(const Params& p, const Memory& m, const Rows& rows, int group, int width, float4 v) {
    const int g = (thread_index() & 31) >> 2;
    const Words w = paired(make_float4(silu(v.x) * v.z, silu(v.y) * v.w, 0.0f, 0.0f), group);
    if (!rows.live || w.token >= (int)m.shared->request.tokens) return;
    reinterpret_cast<u32*>(p.gated)[state_word(
        rows.tile >> 1, g >> 1 & 1, w.token, 2 * (rows.tile & 1) + (g >> 2), width)] = w.low;
}

// Sums of rows g (x, y) and g + 8 (z, w) to outputs. `scales`: of tokens, or null.
DEVICE float4 scaled(float4 v, const Rows& rows, const float* scales, int group) {
    float a = 1.0f, b = 1.0f;
    if (scales != nullptr) {
        const int token = 8 * group + 2 * (thread_index() & 3);
        a = scales[token], b = scales[token + 1];
    }
    return make_float4(v.x * rows.low * a, v.y * rows.low * b, v.z * rows.high * a, v.w * rows.high * b);
}

// Parts of a sum: (panel, slice, group, tile of the panel, lane).
DEVICE float4* partial_at(const Params& p, const Item& item, int slices, int slice, int group) {
    return partial_cells(p) +
        ((u64)((item.panel * slices + slice) * GROUPS + group) * PANEL + thread_index() / 32) * 32 + (thread_index() & 31);
}

// The groups of 8 tokens of which this block adds up the slices, and what becomes of them.
DEVICE void finish_slices(const Params& p, const Memory& m, const Rows& rows, const Item& item, int op, int width) {
    const PanelShared& s = *m.shared;
    const int slices = CUTS[op].slices, tokens = s.request.tokens;
    const bool narrow = op == OP_QKV || op == OP_GATE_UP;
#pragma unroll 1
    for (int group = item.slice; 8 * group < tokens; group += slices) {
        float4 part[MAX_SLICES];
#pragma unroll
        for (int i = 0; i < MAX_SLICES; ++i)
            if (i < slices) part[i] = load_cell(partial_at(p, item, slices, i, group));
        float4* at = residual_cells(p) + (rows.tile * GROUPS + group) * 32 + (thread_index() & 31);
        float4 before = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (!narrow) before = load_cell(at);
        float4 v = part[0];
#pragma unroll
        for (int i = 1; i < MAX_SLICES; ++i)
            if (i < slices) v = add4(v, part[i]);
        v = scaled(v, rows, narrow ? s.scale : nullptr, group);
        if (op == OP_QKV) {
            finish_qkv(p, m, rows, group, v);
        } else if (op == OP_GATE_UP) {
            finish_gate_up(p, m, rows, group, width, v);
        } else {
            v = add4(before, v);
            if (rows.live) *at = v;
            finish_residual(p, m, rows, op, group, width, v);
        }
    }
    if (!narrow) publish_squares(p, m, item, slices, op == OP_OUT);
}

struct Scaled {
    u32 passed;  // norms of which the scales have been waited for
    bool current;
};

// Before the first use of a norm's scales, and once a norm at any rate: nobody may miss one.
DEVICE void await_scales(PanelShared& s, Scaled& scales) {
    if (!scales.current) await_ring(shared_address(&s.scaled), scales.passed & 1u);
    if (!scales.current) ++scales.passed;
    scales.current = true;
}

// This block's items of one product.
template <int WIDTH>
DEVICE void run_product(
    const Params& p, const Memory& m, Rings& r, Scaled& scales, int op, int layer, const Abort& abort) {
    PanelShared& s = *m.shared;
    const Items items = items_of(m, op);
    const int slices = CUTS[op].slices, tokens = s.request.tokens;
    const bool narrow = op == OP_QKV || op == OP_GATE_UP;
    u32* counters = counters_of(p, s.request.number);
    if (narrow) scales.current = false;
#pragma unroll 1
    for (int i = 0; i < items.count; ++i) {
        const Item item = item_at(m, items.at + i);
        const Rows rows = rows_of(p, op, layer, item);
        float d[WIDTH / 2];
        multiply<WIDTH>(d, r, item.end - item.begin, input_stage(WIDTH));
        if (op == OP_GATE_UP && GATE_UP_CUT.slices == 1) {
            await_scales(s, scales);
#pragma unroll
            for (int n = 0; n < WIDTH / 8; ++n)
                if (8 * n < tokens) {
                    const float4 v = make_float4(d[4 * n], d[4 * n + 1], d[4 * n + 2], d[4 * n + 3]);
                    finish_gate_up(p, m, rows, n, WIDTH, scaled(v, rows, s.scale, n));
                }
            continue;
        }
        float4* to = partial_at(p, item, slices, item.slice, 0);
#pragma unroll
        for (int n = 0; n < WIDTH / 8; ++n)
            if (8 * n < tokens) to[n * PANEL * 32] = make_float4(d[4 * n], d[4 * n + 1], d[4 * n + 2], d[4 * n + 3]);
        u32* counter = counters + panel_index(layer, op, item.panel) * COUNTER_WORDS;
        block_sync();
        if (thread_index() == 0) add_release(counter, 1);
        if (8 * item.slice >= tokens) continue;  // others add up
        if (thread_index() == 0) await_count(s, counter, slices, abort);
        if (narrow) await_scales(s, scales);
        block_sync();
        finish_slices(p, m, rows, item, op, WIDTH);
    }
    if (narrow) await_scales(s, scales);
    arrive_count(counters + phase_index(layer, op == OP_QKV ? PHASE_QKV : op + 1) * COUNTER_WORDS);
}

// Logits of this block's tiles, of the last token or of all.
template <int WIDTH>
DEVICE void run_head(const Params& p, const Memory& m, Rings& r, Scaled& scales, bool all, int slot_bytes) {
    PanelShared& s = *m.shared;
    const Items items = items_of(m, OP_HEAD);
    const int lane = thread_index() & 31, g = lane >> 2, tokens = s.request.tokens;
    scales.current = false;
    int local = 0;  // tiles before this item
#pragma unroll 1
    for (int i = 0; i < items.count; ++i) {
        const Item item = item_at(m, items.at + i);
        const Rows rows = rows_of(p, OP_HEAD, 0, item);
        float d[WIDTH / 2];
        multiply<WIDTH>(d, r, item.end - item.begin, slot_bytes);
        await_scales(s, scales);
#pragma unroll
        for (int n = 0; n < WIDTH / 8; ++n)
#pragma unroll
            for (int c = 0; c < 4; ++c) {
                const int column = 8 * n + 2 * (lane & 3) + (c & 1), row = g + (c < 2 ? 0 : 8);
                if (!rows.live || column >= (all ? tokens : 1)) continue;
                const int id = rows.tile * TILE_ROWS + row;
                const float logit = d[4 * n + c] * (c < 2 ? rows.low : rows.high) * s.scale[all ? column : tokens - 1];
                if (id < VOCAB) p.logits[all ? (u64)column * VOCAB + id : id] = logit;
                if (!all) m.tail[(local + thread_index() / 32) * TILE_ROWS + row] = logit;
            }
        local += item.count;
    }
    await_scales(s, scales);
}
