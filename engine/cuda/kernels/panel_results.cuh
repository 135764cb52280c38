// SPDX-License-Identifier: Apache-2.0
// What the model does with the sums of a panel. A warp has one tile of 16 rows from the product to the last store; its
// lanes hold rows g and g + 8 for tokens 2t and 2t + 1 of each group of 8.
#pragma once
#include "panel_multiply.cuh"

// What an epilogue needs of memory, asked for before the product: weight scales of this lane's rows g and g + 8, and
// the norm weights that follow.
struct Constants {
    float low, high, norm_low, norm_high;
};

DEVICE int tile_of(const Item& item) { return item.first + min(thread_index() / 32, item.count - 1); }

DEVICE Constants constants_of(const Params& p, int op, int layer, int tile) {
    Constants r = {};
    const int g = (thread_index() & 31) >> 2;
    const float* scales = p.scales[op] + (u64)(layer * CUTS[op].tiles + tile) * TILE_ROWS + g;
    r.low = __ldg(scales);
    r.high = __ldg(scales + 8);
    if (op == OP_OUT || op == OP_DOWN) {
        // The norm that follows: the feed-forward one, the next layer's, or the last.
        const int norm = 2 * layer + (op == OP_OUT ? 1 : 2);
        const float* weights = (norm < 2 * LAYERS ? p.norms + norm * DIM : p.final_norm) + tile * TILE_ROWS + g;
        r.norm_low = __ldg(weights);
        r.norm_high = __ldg(weights + 8);
    }
    return r;
}

// Where this lane works in an epilogue.
struct Rows : Constants {
    int layer, tile;  // of the matrix
    bool live;        // the panel has this tile

    MEMBER Rows(const Constants& constants, const Item& item, int layer)
        : Constants(constants), layer(layer), tile(tile_of(item)), live(thread_index() / 32 < item.count) {}
};

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
DEVICE void publish_residual(
    const Params& p, const Memory& m, const Rows& rows, int op, int group, int width, float4 residual) {
    const PanelShared& s = m.shared();
    const int lane = thread_index() & 31, g = lane >> 2, token = 8 * group + 2 * (lane & 3), tokens = s.request.tokens;
    float a = residual.x * residual.x + residual.z * residual.z;
    float b = residual.y * residual.y + residual.w * residual.w;
#pragma unroll
    for (int offset = 4; offset < 32; offset <<= 1) {
        a += __shfl_xor_sync(0xffffffffu, a, offset);
        b += __shfl_xor_sync(0xffffffffu, b, offset);
    }
    if (g == 0) {
        float* squares = m.squares() + thread_index() / 32 * MAX_TOKENS + token;
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

// After publish_residual of all groups of a panel that this block has: the panel's parts for the scaler. All threads meet
// before the next panel's.
DEVICE void publish_squares(const Params& p, const Memory& m, const Item& item, int slices, int which) {
    block_sync();
    const int token = thread_index();
    if (token >= (int)m.shared().request.tokens || token / 8 % slices != item.slice) return;
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < PANEL; ++i)
        if (i < item.count) sum += m.squares()[i * MAX_TOKENS + token];
    squares_of(p, which)[item.panel * MAX_TOKENS + token] = sum;
}

// `turns`: cosine and sine for the first token, and for the second.
DEVICE void finish_qkv(const Params& p, const Memory& m, const Rows& rows, int group, float4 v, float4 turns) {
    constexpr int Q_TILES = Q_DIM / TILE_ROWS, KV_TILES = KV_DIM / TILE_ROWS, HEAD_TILES = HEAD_DIM / TILE_ROWS;
    const PanelShared& s = m.shared();
    const int lane = thread_index() & 31, g = lane >> 2, tokens = s.request.tokens, position = s.request.position;
    if (HAS_BIAS) {
        const float* bias = p.bias + (u64)rows.layer * (Q_DIM + 2 * KV_DIM) + rows.tile * TILE_ROWS + g;
        const float low = __ldg(bias), high = __ldg(bias + 8);
        v.x += low, v.y += low, v.z += high, v.w += high;
    }
    if (rows.tile < Q_TILES + KV_TILES) {
        rotate(v.x, v.z, turns.x, turns.y);
        rotate(v.y, v.w, turns.z, turns.w);
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
    if (!rows.live || w.token >= (int)m.shared().request.tokens) return;
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

// Of item (panel, slice) of a product.
DEVICE u32 part_at(const Item& item, int slices, int slice, int group, int groups) {
    return (((item.panel * slices + slice) * groups + group) * PANEL + thread_index() / 32) * 32 +
        (thread_index() & 31);
}

template <int WIDTH>
DEVICE void store_parts(const Params& p, const Item& item, int slices, int tokens, const float (&d)[WIDTH / 2]) {
    constexpr int ALL = WIDTH == MANY ? GROUPS : SOME / 8;
    const u32 at = part_at(item, slices, item.slice, 0, ALL);
#pragma unroll
    for (int n = 0; n < WIDTH / 8; ++n) {
        const float4 v = make_float4(d[4 * n], d[4 * n + 1], d[4 * n + 2], d[4 * n + 3]);
        if (8 * n < tokens && WIDTH == MANY) counted_parts(p)[at + n * PANEL * 32] = v;
        if (8 * n < tokens && WIDTH != MANY) store_flagged(flagged_parts(p) + at + n * PANEL * 32, flagged(v));
    }
}

// All slices of one cell added in order, once they are there; and zero in their place for the next product.
template <int SLICES>
DEVICE float4 take_flagged(const Params& p, const Memory& m, const Item& item, int group) {
    uint4* at = flagged_parts(p) + part_at(item, SLICES, 0, group, SOME / 8);
    constexpr int STRIDE = SOME / 8 * PANEL * 32;
    const Abort abort = {p.abort, m.shared().deadline};
    uint4 raw[SLICES];
    for (u32 spins = 0;;) {
        bool all = true;
#pragma unroll
        for (int i = 0; i < SLICES; ++i) raw[i] = load_flagged(at + i * STRIDE);
#pragma unroll
        for (int i = 0; i < SLICES; ++i) all = all && arrived(raw[i]);
        if (all) break;
        if (!may_wait(abort, spins)) {
            m.shared().failed = 1;
            break;
        }
    }
    float4 v = unflagged(raw[0]);
#pragma unroll
    for (int i = 0; i < SLICES; ++i) {
        if (i > 0) v = add4(v, unflagged(raw[i]));
        at[i * STRIDE] = make_uint4(0, 0, 0, 0);
    }
    return v;
}

DEVICE float4 take_flagged(const Params& p, const Memory& m, const Item& item, int op, int group) {
    const int slices = CUTS[op].slices;
    if (slices == QKV_CUT.slices) return take_flagged<QKV_CUT.slices>(p, m, item, group);
    if (slices == OUT_CUT.slices) return take_flagged<OUT_CUT.slices>(p, m, item, group);
    if (slices == DOWN_CUT.slices) return take_flagged<DOWN_CUT.slices>(p, m, item, group);
    return take_flagged<GATE_UP_CUT.slices>(p, m, item, group);
}

// What an epilogue needs beside the sums, as two pairs of floats: rotations of the two tokens, or the residual.
struct Beside {
    const float *first, *second;
};

DEVICE Beside beside_of(const Params& p, const Memory& m, const Rows& rows, int op, int group) {
    constexpr int TURNED = (Q_DIM + KV_DIM) / TILE_ROWS, HEAD_TILES = HEAD_DIM / TILE_ROWS;
    const PanelShared& s = m.shared();
    const int lane = thread_index() & 31;
    if (op == OP_OUT || op == OP_DOWN) {
        const float* at = reinterpret_cast<const float*>(residual_cells(p) + (rows.tile * GROUPS + group) * 32 + lane);
        return {at, at + 2};
    }
    const int token = 8 * group + 2 * (lane & 3), last = (int)s.request.tokens - 1;
    const int pair = op == OP_QKV && rows.tile < TURNED ? rows.tile % HEAD_TILES * 8 + (lane >> 2) : 0;
    const float* table = p.rope + 2 * pair;
    const u64 row = s.request.position;
    return {table + (row + min(token, last)) * HEAD_DIM, table + (row + min(token + 1, last)) * HEAD_DIM};
}

DEVICE float4 load_beside(const Beside& beside) {
    float4 v;
    asm volatile("ld.global.cg.v2.f32 {%0, %1}, [%2];" : "=f"(v.x), "=f"(v.y) : "l"(beside.first) : "memory");
    asm volatile("ld.global.cg.v2.f32 {%0, %1}, [%2];" : "=f"(v.z), "=f"(v.w) : "l"(beside.second) : "memory");
    return v;
}

// `v`: all slices added.
DEVICE void finish_cell(
    const Params& p, const Memory& m, const Rows& rows, int op, int group, int width, float4 v, float4 beside) {
    const bool narrow = op == OP_QKV || op == OP_GATE_UP;
    v = scaled(v, rows, narrow ? m.shared().scale : nullptr, group);
    if (op == OP_QKV) {
        finish_qkv(p, m, rows, group, v, beside);
    } else if (op == OP_GATE_UP) {
        finish_gate_up(p, m, rows, group, width, v);
    } else {
        v = add4(beside, v);
        if (rows.live) residual_cells(p)[(rows.tile * GROUPS + group) * 32 + (thread_index() & 31)] = v;
        publish_residual(p, m, rows, op, group, width, v);
    }
}

// Parts of many tokens: copied into the input ring, which is empty, as many groups at once as it holds. Each thread
// reads what itself has copied. Rolled loops: code that runs once a product is paid for by fetching it.
DEVICE void finish_counted(const Params& p, const Memory& m, const Rows& rows, const Item& item, int op) {
    const int slices = CUTS[op].slices, groups = ceil_div(m.shared().request.tokens, 8);
    const u32 cells = shared_address(m.base() + plan(MANY).input) + thread_index() * 16;
    const int turn = max(1, CELLS / (slices + 1)) * slices;
#pragma unroll 1
    for (int first = item.slice; first < groups; first += turn) {
        const int end = min(groups, first + turn);
        u32 to = cells;
#pragma unroll 1
        for (int group = first; group < end; group += slices) {
            const Beside beside = beside_of(p, m, rows, op, group);
            copy_pair(to, beside.first);
            copy_pair(to + 8, beside.second);
            to += THREADS * 16;
            const float4* from = counted_parts(p) + part_at(item, slices, 0, group, GROUPS);
#pragma unroll 1
            for (int i = 0; i < slices; ++i, from += GROUPS * PANEL * 32, to += THREADS * 16) copy_unit(to, from);
        }
        await_copies();
        u32 at = cells;
#pragma unroll 1
        for (int group = first; group < end; group += slices) {
            const float4 beside = as_floats(load_shared(at));
            float4 v = as_floats(load_shared(at += THREADS * 16));
#pragma unroll 1
            for (int i = 1; i < slices; ++i) v = add4(v, as_floats(load_shared(at += THREADS * 16)));
            at += THREADS * 16;
            finish_cell(p, m, rows, op, group, MANY, v, beside);
        }
    }
}

// This block's part of a panel of which all slices are there or, but for many tokens, on their way.
template <int WIDTH>
DEVICE void finish_slices(const Params& p, const Memory& m, const Rows& rows, const Item& item, int op) {
    const int slices = CUTS[op].slices, groups = ceil_div(m.shared().request.tokens, 8);
    if (WIDTH == MANY) {
        finish_counted(p, m, rows, item, op);
    } else {
#pragma unroll 1
        for (int group = item.slice; group < groups; group += slices) {
            const float4 beside = load_beside(beside_of(p, m, rows, op, group));
            finish_cell(p, m, rows, op, group, WIDTH, take_flagged(p, m, item, op, group), beside);
        }
    }
    if (op == OP_OUT || op == OP_DOWN) publish_squares(p, m, item, slices, op == OP_OUT);
}

// GATE_UP whole in one slice: straight from the sums. Those of many tokens go through the input ring, so that the code
// is there once.
template <int WIDTH>
DEVICE void finish_sums(const Params& p, const Memory& m, const Rows& rows, const float (&d)[WIDTH / 2]) {
    constexpr int TURN = min_of(WIDTH / 8, 8);
    const float4 none = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    const int groups = ceil_div(m.shared().request.tokens, 8);
    float4* cells = reinterpret_cast<float4*>(m.base() + plan(WIDTH).input) + thread_index();
    if (TURN > 1) block_sync();  // other warps may still be reading the ring
#pragma unroll
    for (int first = 0; first < WIDTH / 8; first += TURN) {
        if (TURN > 1) {
#pragma unroll
            for (int n = 0; n < TURN; ++n) {
                const int at = 4 * (first + n);
                cells[n * THREADS] = make_float4(d[at], d[at + 1], d[at + 2], d[at + 3]);
            }
#pragma unroll 1
            for (int n = 0; n < TURN && first + n < groups; ++n)
                finish_cell(p, m, rows, OP_GATE_UP, first + n, WIDTH, cells[n * THREADS], none);
        } else {
            finish_cell(p, m, rows, OP_GATE_UP, 0, WIDTH, make_float4(d[0], d[1], d[2], d[3]), none);
        }
    }
}
