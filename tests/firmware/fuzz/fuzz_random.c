/* SPDX-License-Identifier: Apache-2.0
 * Numbers that are the same on every machine for one seed. */
#include "fuzz.h"

static uint64_t random_state;

void set_seed(unsigned long value)
{
    random_state = value;
}

/* splitmix64 (Steele, Lea, Flood 2014) */
uint32_t any(void)
{
    uint64_t z = random_state += 0x9E3779B97F4A7C15u;

    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (uint32_t)(z >> 32);
}

uint32_t below(uint32_t limit)
{
    return any() % limit;
}

uint8_t byte_below(uint32_t limit)
{
    return (uint8_t)below(limit);
}

void *allocated(size_t size)
{
    void *block = calloc(1, size != 0 ? size : 1);

    CHECK(block != NULL);
    return block;
}
