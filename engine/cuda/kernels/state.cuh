// SPDX-License-Identifier: Apache-2.0
// The kernel whose blocks all work together: cut of its products and plan of its shared memory.
#pragma once
#include "attend.cuh"

struct GridShared : Shared {
    int shared_inputs, group;
    float token_scale[3][TILE_TOKENS * WIDE];  // by parity of the product; 2: being published
    u32 largest[TILE_TOKENS * WIDE];           // bits of the largest magnitude
    float squares[WARPS][TILE_TOKENS * WIDE];
};

// FP32 promotion after at most 128 columns, and at each end of a scale group.
constexpr int SEGMENT = GROUP == 32 ? 1 : GROUP == 64 || GROUP == 192 ? 2 : 4;

// What one warp does in a pass over one matrix: tile `slot` of the pass, steps begin .. end.
// begin == end: nothing.
struct WarpWork {
    u16 slot, begin, end, unused;
};

// One matrix product. The phases share one body of code that reads this table: five copies
// of it would not fit the instruction cache, and cost more than the arithmetic.
struct Product {
    int units;          // of the input: K / 4
    int steps;          // K / 32
    int tiles;          // of 16 rows
    int slices;         // parts along K, one warp each, added in order
    int tiles_at_once;  // of one pass
    int groups;         // weight scales a row
    WarpWork work[WARPS];
};

static __host__ __device__ constexpr Product product(int columns, int rows) {
    Product p = {};
    p.units = columns / 4;
    p.steps = columns / STEP;
    p.tiles = ceil_div(rows, TILE_ROWS);
    p.groups = GROUP == 0 ? 1 : ceil_div(columns, max_of(GROUP, 1));
    const int segments = ceil_div(p.steps, SEGMENT);
    // The cut depends on K alone, never on tokens or blocks, so that every schedule adds
    // the same numbers in the same order.
    p.slices = min_of(segments, min_of(WARPS, max_of(1, p.steps / 4)));
    p.tiles_at_once = min_of(4, WARPS / p.slices);
    for (int warp = 0; warp < p.tiles_at_once * p.slices; ++warp) {
        const int slice = warp % p.slices;
        p.work[warp].slot = warp / p.slices;
        p.work[warp].begin = slice * segments / p.slices * SEGMENT;
        p.work[warp].end = min_of((slice + 1) * segments / p.slices * SEGMENT, p.steps);
    }
    return p;
}

__constant__ Product PRODUCTS[5] = {
    product(DIM, Q_DIM + 2 * KV_DIM), product(Q_DIM, DIM), product(DIM, 2 * FFN),
    product(FFN, DIM), product(DIM, VOCAB)};
constexpr int SEGMENTS_PER_GROUP = GROUP == 192 ? 3 : 1;

constexpr int K_MAX = max_of(DIM, max_of(Q_DIM, FFN));
// Lanes of a fragment then hit all banks once: 8 rows of 4 lanes, 4 or 8 bytes each.
constexpr int OPERAND_STRIDE = ceil_div(CODE_BYTES * K_MAX, 128) * 128 + 16 * CODE_BYTES;
constexpr int PARTIAL_STRIDE = 20;          // floats a token: 16 rows + 4 against bank conflicts

constexpr int OPERAND_BYTES = TILE_TOKENS * WIDE * OPERAND_STRIDE;
constexpr int PARTIAL_BYTES = 2 * WARPS * TILE_TOKENS * WIDE * PARTIAL_STRIDE * 4;
constexpr int KV_BYTES = 2 * BLOCK_POSITIONS * KV_STRIDE * 2;
constexpr int QUERY_BYTES = MAX_ROWS * KV_STRIDE * 2;
constexpr int CHUNK_BYTES = MAX_ROWS * BLOCK_CHUNKS * CHUNK_STRIDE * 4;
// A block runs a matrix product or attention, never both: they share the same bytes.
constexpr int SCRATCH_BYTES =
    ceil_div(max_of(OPERAND_BYTES + PARTIAL_BYTES, KV_BYTES + QUERY_BYTES + CHUNK_BYTES), 16) * 16;
constexpr int SHARED_BYTES = ceil_div((int)sizeof(GridShared), 16) * 16;
static_assert(SCRATCH_BYTES == HOST_SCRATCH_BYTES && SHARED_BYTES == HOST_SHARED_BYTES, "engine/cuda/shape.py");

// Shared memory: Shared | scratch | program | residual (tiles, tokens, 16) | head logits (tiles, 16)
struct Smem {
    GridShared* shared;
    u8* scratch;
    int4* program;
    float* residual;
};
