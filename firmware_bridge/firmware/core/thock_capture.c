/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
 * Two keys of the person: capture (keys to the host only) and accept (type what the display shows). */
#include "thock_internal.h"

#include <string.h>

#if THOCK_ENABLE_CAPTURE

bool thock_capturing(const thock_t *core)
{
    return core->capturing;
}

void thock_capture_reset(thock_t *core)
{
    if (core->capturing) {
        core->capturing = false;
        thock_status_changed(core);
    }
}

bool thock_begin_capture(thock_t *core, uint32_t now_ms)
{
    if (core->capturing) {
        return true;
    }
    /* One place stays free for the end of this capture; a beginning that finds none is told as dropped. */
    if (!thock_put_event(core, THOCK_WANT_CAPTURE, 1, THOCK_EVENT_CAPTURE | 1, 0, 0, 0, now_ms)) {
        return false;
    }
    core->capturing = true;
    thock_status_changed(core);
    return true;
}

void thock_end_capture(thock_t *core, uint32_t now_ms)
{
    if (core->capturing) {
        (void)thock_put_event(core, THOCK_WANT_CAPTURE, 0, THOCK_EVENT_CAPTURE, 0, 0, 0, now_ms);
        thock_capture_reset(core);
    }
}

bool thock_captured_key_event(thock_t *core, uint8_t row, uint8_t column, uint16_t keycode, bool pressed,
                              uint32_t now_ms)
{
    return thock_put_event(core, THOCK_FEATURE_KEYS, core->capturing ? 1 : 0,
                           (uint8_t)(THOCK_EVENT_KEY | THOCK_EVENT_CAPTURED | (pressed ? 1 : 0)), row, column, keycode,
                           now_ms);
}

#else

bool thock_capturing(const thock_t *core)
{
    (void)core;
    return false;
}

void thock_capture_reset(thock_t *core)
{
    (void)core;
}

bool thock_begin_capture(thock_t *core, uint32_t now_ms)
{
    (void)core, (void)now_ms;
    return false;
}

void thock_end_capture(thock_t *core, uint32_t now_ms)
{
    (void)core, (void)now_ms;
}

bool thock_captured_key_event(thock_t *core, uint8_t row, uint8_t column, uint16_t keycode, bool pressed,
                              uint32_t now_ms)
{
    (void)core, (void)row, (void)column, (void)keycode, (void)pressed, (void)now_ms;
    return false;
}

#endif

#if THOCK_ENABLE_ACCEPT

void thock_offer_reset(thock_t *core)
{
    core->offer_count = 0;
}

/* Modifiers (HID usages E0..E7) and layer keys (QMK 4000..52FF) type nothing by themselves, and a person may need one to
 * reach the accept key. A macro may type anything; it comes here as 0. */
void thock_offer_outdated(thock_t *core, uint16_t keycode)
{
    bool is_modifier = keycode >= 0xE0 && keycode <= 0xE7;
    bool is_layer_key = keycode >= 0x4000 && keycode <= 0x52FF;

    if (!is_modifier && !is_layer_key) {
        thock_offer_reset(core);
        core->typed_since = true;
    }
}

void thock_offer_renewed(thock_t *core)
{
    thock_offer_reset(core);
    core->typed_since = core->typed_since && thock_press_waits(core);
}

uint8_t thock_offer(thock_t *core, const thock_frame_t *frame)
{
    uint8_t columns = core->host_width / 6;
    uint8_t row = frame->payload[0];
    uint8_t column = frame->payload[1];
    uint8_t count = frame->payload[2];

    if (frame->length != 3) {
        return THOCK_NAK_LENGTH;
    }
    if (core->typed_since && count != 0) {
        return THOCK_NAK_BUSY; /* it was sent before the host knew of the key */
    }
    if (core->shown != THOCK_SHOWN_TEXT || row >= core->host_height / 8 || column >= columns ||
        count > columns - column) {
        return THOCK_NAK_RANGE;
    }
    core->offer_row = row;
    core->offer_column = column;
    core->offer_count = count;
    core->offer_seq = frame->seq;
    return THOCK_DONE;
}

/* True: every character of the offer is on the panel, none under the status glyph or still on its way. */
static bool offer_is_visible(const thock_t *core)
{
    bool under_glyph = core->offer_row == 0 && core->offer_column + core->offer_count == core->host_width / 6 &&
                       thock_status(core) != THOCK_IDLE;

    return core->shown == THOCK_SHOWN_TEXT && core->dirty_pages == 0 && !under_glyph;
}

uint8_t thock_accept(thock_t *core, uint8_t *text, uint32_t now_ms)
{
    uint8_t count = 0;

    if (core->events & THOCK_WANT_ACCEPT && !thock_capturing(core) && offer_is_visible(core)) {
        count = core->offer_count;
        memcpy(text, core->text + (uint16_t)(core->offer_row * (core->host_width / 6)) + core->offer_column, count);
    }
    thock_offer_reset(core);
    /* The host must know what was typed: without a place for the event nothing is. */
    if (!thock_put_event(core, THOCK_WANT_ACCEPT, thock_capturing(core) ? 1 : 0, THOCK_EVENT_ACCEPT | 1, count,
                         count != 0 ? core->offer_seq : 0, 0, now_ms)) {
        return 0;
    }
    return count;
}

#else

void thock_offer_reset(thock_t *core)
{
    (void)core;
}

void thock_offer_outdated(thock_t *core, uint16_t keycode)
{
    (void)core, (void)keycode;
}

void thock_offer_renewed(thock_t *core)
{
    (void)core;
}

uint8_t thock_accept(thock_t *core, uint8_t *text, uint32_t now_ms)
{
    (void)core, (void)text, (void)now_ms;
    return 0;
}

#endif
