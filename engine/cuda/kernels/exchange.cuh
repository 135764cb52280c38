// SPDX-License-Identifier: Apache-2.0
// How blocks hand activations to each other: no barriers, no flags. Each 16-byte unit carries four
// values and the 32-bit tag of the step that made it; a reader polls the data until the tag is right.
//
// A value is a float cut to 15 mantissa bits ("f24"); its low byte is one byte of the tag. A tag is never
// used twice (request number * (LAYERS + 1) + layer + 1), so what an
// earlier step left in the buffer cannot be taken for new data.
#pragma once
#include "ptx.cuh"

struct Abort {
    u32* word;       // set by whoever runs out of time; everyone else reads it and leaves
    u64 deadline;    // of %globaltimer, ns
};

constexpr u32 ABORT_TIMEOUT = 1;

// Returns false when the wait must end: the abort word is set, or the deadline has passed.
DEVICE bool may_wait(const Abort& abort, u32& spins) {
    if ((++spins & 127u) != 0) return true;
    if (load_word(abort.word) != 0) return false;
    if (now_ns() < abort.deadline) return true;
    store_flag(abort.word, ABORT_TIMEOUT);
    return false;
}

// One byte permutation a value: bytes 1 to 3 of the float, and one byte of the tag.
DEVICE uint4 tagged(float4 v, u32 tag) {
    return make_uint4(
        __byte_perm(__float_as_uint(v.x), tag, 0x3214), __byte_perm(__float_as_uint(v.y), tag, 0x3215),
        __byte_perm(__float_as_uint(v.z), tag, 0x3216), __byte_perm(__float_as_uint(v.w), tag, 0x3217));
}

DEVICE float4 as_floats(uint4 v) {
    return make_float4(
        __uint_as_float(v.x), __uint_as_float(v.y), __uint_as_float(v.z), __uint_as_float(v.w));
}

DEVICE uint4 as_words(float4 v) {
    return make_uint4(
        __float_as_uint(v.x), __float_as_uint(v.y), __float_as_uint(v.z), __float_as_uint(v.w));
}

DEVICE u32 tag_of(uint4 unit) {
    return __byte_perm(__byte_perm(unit.x, unit.y, 0x0040), __byte_perm(unit.z, unit.w, 0x0040), 0x5410);
}

DEVICE float4 values_of(uint4 unit) {
    return make_float4(
        __uint_as_float(unit.x & 0xffffff00u), __uint_as_float(unit.y & 0xffffff00u),
        __uint_as_float(unit.z & 0xffffff00u), __uint_as_float(unit.w & 0xffffff00u));
}

DEVICE void publish(uint4* unit, float4 v, u32 tag) { store_unit(unit, tagged(v, tag)); }

// Wait for one unit. On a timeout the values are garbage and `ok` turns false.
DEVICE float4 await_unit(const uint4* unit, u32 tag, const Abort& abort, bool& ok) {
    uint4 raw = load_unit(unit);
    for (u32 spins = 0; tag_of(raw) != tag; raw = load_unit(unit)) {
        if (!may_wait(abort, spins)) {
            ok = false;
            break;
        }
    }
    return values_of(raw);
}
