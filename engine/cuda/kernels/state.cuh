// SPDX-License-Identifier: Apache-2.0
// What the host hands to the kernel, the program of a block, and the plan of shared memory.
#pragma once
#include "exchange.cuh"

enum Op : int {
    OP_QKV = 0,
    OP_OUT = 1,
    OP_GATE_UP = 2,
    OP_DOWN = 3,
    OP_HEAD = 4,
    OP_ATTENTION = 5,
    OP_QUANTISE = 6
};

// Mirrors engine/cuda/launch.py, field by field; 8-byte fields first, so that there is no padding.
struct Params {
    const u8* codes[5];       // by Op: (layers, tiles, steps, 32, 16)
    const float* scales[5];   // by Op: (layers, tiles, groups, 16)
    const float* bias;        // (layers, qkv rows), packed order
    const u16* embed;         // (vocab, dim) float16
    const float* norms;       // (layers, 2, dim)
    const float* final_norm;  // (dim,)
    const float* rope;        // (max_context, head_dim / 2, 2): cosine, sine
    u16* cache;               // (layers, kv heads, 2, max_context, head_dim) float16
    uint4* x_attention;       // residual entering attention, (MAX_TOKENS, dim / 4)
    uint4* x_ffn;             // residual entering the feed-forward part
    uint4* queries;           // (MAX_TOKENS, q_dim / 4)
    uint4* new_kv;            // (layers, MAX_TOKENS, 2, kv_dim / 4): this request's keys and values
    uint4* mixed;             // output of attention, (MAX_TOKENS, q_dim / 4)
    uint4* gated;             // silu(gate) * up, (MAX_TOKENS, ffn / 4)
    uint4* codes_shared;      // (4, MAX_TOKENS, CODE_ROW_UNITS): inputs quantised once for all
    uint4* inbox;             // the request, as block 0 passes it on
    uint4* candidates;        // (blocks, MAX_TOP + 1)
    float* logits;            // (MAX_TOKENS, vocab)
    u32* done;                // blocks that finished, summed over all requests
    u32* abort;
    const uint4* requests;    // host memory: (ring, REQUEST_UNITS)
    uint4* replies;           // host memory: (ring, REPLY_UNITS)
    const uint4* control;     // host memory: .x != 0 asks the kernel to leave
    const int4* programs;     // (programs, blocks, program_length)
    u64 wait_ns;              // longest wait inside a request
    u64 stay_ns;              // longest stay of this launch
    u64 idle_ns;              // leave this long after the last request
    u32 first_request;
    u32 request_limit;
    u32 launch_id;
    u32 ring;
    u32 max_context;
    u32 program_length;
};

constexpr int MAX_TOP = 16;
constexpr int TOKENS_PER_UNIT = 3;
constexpr int REQUEST_UNITS = 1 + ceil_div(MAX_TOKENS, TOKENS_PER_UNIT);
constexpr int REPLY_UNITS = 2 + MAX_TOP;
constexpr u32 WANT_LOGITS = 1, ALL_LOGITS = 2;
constexpr int INBOX_EXIT = REQUEST_UNITS;  // last unit of the inbox

struct Request {
    u32 number, tokens, position, program, top, flags;
};

// What all threads of a block share beside the big arrays.
struct Shared {
    Request request;
    int leave, failed, shared_inputs, group;
    u64 started;
    float token_scale[3][TILE_TOKENS * WIDE];  // by parity of the product; 2: being published
    u32 largest[TILE_TOKENS * WIDE];           // bits of the largest magnitude
    float squares[WARPS][TILE_TOKENS * WIDE];
    u64 best[WARPS];
    u64 winner;
    float sums[WARPS];
    int tokens[MAX_TOKENS];
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

// Attention works on blocks of positions, cut into chunks of 32, one warp a chunk.
constexpr int CHUNK = 32;
constexpr int BLOCK_POSITIONS = HEAD_DIM <= 64 ? 128 : 64;
constexpr int BLOCK_CHUNKS = BLOCK_POSITIONS / CHUNK;
constexpr int MAX_ROWS = 16;                // (token, head) rows of one attention instruction
constexpr int KV_STRIDE = HEAD_DIM + 8;     // halves
constexpr int CHUNK_STRIDE = HEAD_DIM + 2;  // values, maximum, sum

constexpr int OPERAND_BYTES = TILE_TOKENS * WIDE * OPERAND_STRIDE;
constexpr int PARTIAL_BYTES = 2 * WARPS * TILE_TOKENS * WIDE * PARTIAL_STRIDE * 4;
constexpr int KV_BYTES = 2 * BLOCK_POSITIONS * KV_STRIDE * 2;
constexpr int QUERY_BYTES = MAX_ROWS * KV_STRIDE * 2;
constexpr int CHUNK_BYTES = MAX_ROWS * BLOCK_CHUNKS * CHUNK_STRIDE * 4;
// A block runs a matrix product or attention, never both: they share the same bytes.
constexpr int SCRATCH_BYTES =
    ceil_div(max_of(OPERAND_BYTES + PARTIAL_BYTES, KV_BYTES + QUERY_BYTES + CHUNK_BYTES), 16) * 16;
constexpr int SHARED_BYTES = ceil_div((int)sizeof(Shared), 16) * 16;
static_assert(SCRATCH_BYTES == HOST_SCRATCH_BYTES && SHARED_BYTES == HOST_SHARED_BYTES, "engine/cuda/shape.py");

// Shared memory: Shared | scratch | program | residual (tiles, tokens, 16) | head logits (tiles, 16)
struct Smem {
    Shared* shared;
    u8* scratch;
    int4* program;
    float* residual;
};

DEVICE u32 tag_for(const Request& r, int layer) { return r.number * (LAYERS + 1) + layer + 1; }
