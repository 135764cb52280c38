// SPDX-License-Identifier: Apache-2.0
// How a request comes in and a reply goes out, without the host doing more than writing memory.
// Block 0 watches host memory and passes each request on to the others through device memory; a watch
// by every block would be an uncached read over PCIe for each of them.
//
// Request slot: unit 0 = tokens | flags << 16, position, program | top << 16, number; then three tokens
// a unit, each with the number. A unit is one 16-byte access: a torn request cannot be taken for a whole one.
// Requests are served in the order of their numbers; engine/cuda/mailbox_interpreter.py is this file in Python.
#pragma once
#include "select.cuh"

DEVICE void take_header(Request& r, uint4 unit) {
    r.tokens = unit.x & 0xffffu;
    r.flags = unit.x >> 16;
    r.position = unit.y;
    r.program = unit.z & 0xffffu;
    r.top = unit.z >> 16;
    r.number = unit.w;
}

DEVICE u32 token_units(u32 tokens) { return (tokens + TOKENS_PER_UNIT - 1) / TOKENS_PER_UNIT; }

// Thread 0 of block 0. Returns false when it is time to leave.
DEVICE bool watch_host(const Params& p, Request& r, u32 number, u64 arrived, u64 since) {
    const uint4* slot = p.requests + (u64)(number % p.ring) * REQUEST_UNITS;
    for (u32 spins = 0;; ++spins) {
        const uint4 unit = load_unit_system(slot);
        if (unit.w == number) {
            take_header(r, unit);
            return true;
        }
        if ((spins & 15u) == 15u) {
            const u64 now = now_ns();
            if (now - arrived > p.stay_ns || now - since > p.idle_ns) return false;
            if (load_unit_system(p.control).x != 0 || load_word(p.abort) != 0) return false;
        }
        // A request in the first 20 us is answered at once; afterwards spare the bus and the power.
        sleep_ns(spins < 32 ? 100 : 400);
    }
}

// Thread 0 of block 0, before anybody else sees the request. Passed over, it is a ping: every block counts it
// as any other request. Only those that ask for it cost a look at host memory.
DEVICE void pass_over(const Params& p, Request& r) {
    if (!(r.flags & REPLACEABLE) || (int)(load_unit_system(p.control).y - r.number) <= 0) return;
    r.flags = PING | PASSED_OVER;
    r.tokens = 0;
}

// Thread 0 of every other block.
DEVICE bool watch_inbox(const Params& p, Request& r, u32 number) {
    for (u32 spins = 0;; ++spins) {
        const uint4 unit = load_unit(p.inbox);
        if (unit.w == number) {
            take_header(r, unit);
            return true;
        }
        if ((spins & 15u) == 15u) {
            if (load_unit(p.inbox + INBOX_EXIT).x == p.launch_id) return false;
            if (load_word(p.abort) != 0) return false;
        }
        if (spins > 64) sleep_ns(spins < 4096 ? 50 : 400);
    }
}

DEVICE bool await_token_unit(
    uint4& v, const uint4* unit, u32 number, bool from_host, const Abort& abort) {
    for (u32 spins = 0;;) {
        v = from_host ? load_unit_system(unit) : load_unit(unit);
        if (v.w == number) return true;
        if (!may_wait(abort, spins)) return false;
    }
}

// All threads. Waits for request `number`; false: leave the kernel.
DEVICE bool receive(const Params& p, Shared& s, u32 number, u64 arrived, u64 since, Abort& abort) {
    const bool gate = blockIdx.x == 0;
    block_sync();
    if (thread_index() == 0) {
        s.failed = 0;
        bool go = true;
        if (gate) {
            // Nobody may still read what the next request will overwrite.
            const u32 target = (number - 1) * gridDim.x;
            abort.deadline = now_ns() + p.wait_ns;
            for (u32 spins = 0; go && load_word_acquire(p.done) != target;) go = may_wait(abort, spins);
        }
        go = go && (gate ? watch_host(p, s.request, number, arrived, since)
                         : watch_inbox(p, s.request, number));
        if (gate && go) pass_over(p, s.request);
        s.leave = !go;
        s.started = now_ns();
        if (gate && !go) store_unit(p.inbox + INBOX_EXIT, make_uint4(p.launch_id, 0, 0, 0));
    }
    block_sync();
    if (s.leave) return false;
    abort.deadline = s.started + p.wait_ns;
    const Request& r = s.request;
    const uint4* from = gate ? p.requests + (u64)(number % p.ring) * REQUEST_UNITS : p.inbox;
    for (u32 i = thread_index(); i < token_units(r.tokens); i += THREADS) {
        uint4 v;
        if (!await_token_unit(v, from + 1 + i, number, gate, abort)) s.failed = 1;
        if (gate) store_unit(p.inbox + 1 + i, v);
        const u32 at = i * TOKENS_PER_UNIT, ids[3] = {v.x, v.y, v.z};
        for (u32 k = 0; k < TOKENS_PER_UNIT && at + k < r.tokens; ++k) s.tokens[at + k] = ids[k];
    }
    if (gate && thread_index() == 0)
        store_unit(
            p.inbox, make_uint4(
                         r.tokens | r.flags << 16, r.position, r.program | r.top << 16, r.number));
    block_sync();
    return !s.failed;
}

// Block 0, after the last phase: rank, stamp, and ring back. The header unit comes last.
DEVICE void reply(const Params& p, Shared& s, const Abort& abort) {
    const u32 number = s.request.number;
    uint4* slot = p.replies + (u64)(number % p.ring) * REPLY_UNITS;
    const bool ranked = s.request.flags & (ALL_LOGITS | PING) || rank_global(p, s, slot, abort);
    if (!ranked) return;
    if (thread_index() != 0) return;
    if (s.request.flags & (WANT_LOGITS | ALL_LOGITS)) {
        // The host will copy the logits: every block's stores must be out. This block counts as done.
        u32 spins = 0;
        add_release(p.done, 1);
        while (load_word_acquire(p.done) != number * gridDim.x)
            if (!may_wait(abort, spins)) return;
    }
    const u64 spent = now_ns() - s.started;
    store_unit_system(slot + 1, make_uint4((u32)spent, (u32)(spent >> 32), 0, number));
    fence_system();
    store_unit_system(
        slot, make_uint4(s.request.tokens, s.request.top, s.request.flags & PASSED_OVER, number));
}
