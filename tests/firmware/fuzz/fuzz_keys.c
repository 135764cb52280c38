/* SPDX-License-Identifier: Apache-2.0
 * What a person does: keys, macros, captures and the accept key. */
#include "fuzz.h"

unsigned long captures;
unsigned long accepted;

/* An event went to the core: was it taken as it must be? While keys are captured a place is kept for the end. */
static void check_taken(bench_t *bench, uint8_t count, bool wanted, bool taken, uint8_t spare)
{
    CHECK(taken == (wanted && count + spare < THOCK_RING_SIZE));
    CHECK(bench->core->ring_count == count + taken);
    if (wanted && !taken && bench->dropped < 255) {
        bench->dropped++;
    }
}

/* What was offered is about the text before this key. */
static void outdate_offer(bench_t *bench)
{
    bench->offered = 0;
    bench->typed_since = true;
}

static void press_key(bench_t *bench)
{
    thock_t *core = bench->core;
    uint8_t count = core->ring_count;
    uint32_t kind = below(4);
    bool wanted = core->events & (kind == 0 ? THOCK_FEATURE_MACROS : THOCK_FEATURE_KEYS);
    bool pressed = any() & 1;
    uint8_t row = (uint8_t)any();
    uint8_t column = (uint8_t)any();
    uint16_t code = (uint16_t)any();
    bool taken;

    if (kind == 0) {
        taken = thock_macro_event(core, row, pressed, bench->now);
        if (pressed && row >= 16) { /* a macro of the keymap, which may type */
            outdate_offer(bench);
        }
    } else if (bench->capturing || kind == 1) {
        taken = thock_captured_key_event(core, row, column, code, pressed, bench->now);
    } else {
        taken = thock_key_event(core, row, column, code, pressed, bench->now);
        if (pressed && (code < 0xE0 || code > 0xE7) && (code < 0x4000 || code > 0x52FF)) {
            outdate_offer(bench);
        }
    }
    check_taken(bench, count, wanted, taken, bench->capturing);
}

static void press_capture_key(bench_t *bench)
{
    thock_t *core = bench->core;
    uint8_t count = core->ring_count;

    if (bench->capturing) {
        thock_end_capture(core, bench->now);
        CHECK(core->ring_count == count + 1); /* its end is always told */
        bench->capturing = false;
    } else {
        bool begun = thock_begin_capture(core, bench->now);

        check_taken(bench, count, core->events & WANT_CAPTURE, begun, 1);
        bench->capturing = begun;
        captures += begun;
    }
    CHECK(thock_capturing(core) == bench->capturing);
}

/* A board draws its panel before a person can read it; one that did not draw everything types nothing. */
static void press_accept_key(bench_t *bench)
{
    thock_t *core = bench->core;
    uint8_t count = core->ring_count;
    uint8_t columns = core->host_width / 6;
    uint16_t place = (uint16_t)(core->offer_row * columns + core->offer_column);
    bool wanted = core->events & WANT_ACCEPT;
    bool told = wanted && count + bench->capturing < THOCK_RING_SIZE;
    bool under_glyph = core->status != THOCK_IDLE && core->offer_row == 0 &&
                       core->offer_column + bench->offered == columns;
    bool visible;
    uint8_t typed;

    if (below(4)) {
        fetch_dirty_pages(bench);
    }
    visible = thock_display_dirty(core) == 0 && !under_glyph && !bench->capturing;
    memset(bench->typed, 0, THOCK_ACCEPT_BYTES);
    typed = thock_accept(core, bench->typed, bench->now);
    CHECK(typed == (told && visible ? bench->offered : 0));
    for (uint8_t i = 0; i < typed; i++) {
        CHECK(bench->typed[i] == core->text[place + i]);
        CHECK(bench->typed[i] >= 0x20 && bench->typed[i] <= 0x7E);
    }
    check_taken(bench, count, wanted, told, bench->capturing);
    bench->offered = 0;
    accepted += typed != 0;
}

void press_keys(bench_t *bench)
{
    bool offered = bench->offered != 0;

    /* An offer is rare, and over with the next key: the accept key often comes first. */
    if (offered && below(2)) {
        press_accept_key(bench);
        return;
    }
    for (uint32_t events = below(4); events != 0; events--) {
        press_key(bench);
    }
    if (below(16) == 0) {
        press_capture_key(bench);
    }
    if (below(16) == 0) {
        press_accept_key(bench);
    }
}
