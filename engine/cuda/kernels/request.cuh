// SPDX-License-Identifier: Apache-2.0
// What the host hands to every kernel, and what a block remembers of the request that it works on.
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

// Mirrors engine/cuda/params.py, field by field; 8-byte fields first, so that there is no padding.
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
    const uint4* control;     // host memory: .x != 0 asks the kernel to leave; .y: the newest request
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
// PING: answer at once, compute nothing. REPLACEABLE: not to be computed if a newer request is there;
// PASSED_OVER, in the reply: it was not.
constexpr u32 WANT_LOGITS = 1, ALL_LOGITS = 2, PING = 4, REPLACEABLE = 8, PASSED_OVER = 16;
constexpr int INBOX_EXIT = REQUEST_UNITS;  // last unit of the inbox

struct Request {
    u32 number, tokens, position, program, top, flags;
};

// What all threads of a block share, in every kernel.
struct Shared {
    Request request;
    int leave, failed;
    u64 started;
    u64 best[WARPS];
    u64 winner;
    float sums[WARPS];
    int tokens[MAX_TOKENS];
};

DEVICE u32 tag_for(const Request& r, int layer) { return r.number * (LAYERS + 1) + layer + 1; }
