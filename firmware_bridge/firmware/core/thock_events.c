/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
 * Key and macro events: a ring that is emptied as fast as the link takes KEY frames. */
#include "thock_internal.h"

#include <string.h>

#if THOCK_ENABLE_EVENTS

#define EVENTS_PER_FRAME 3
#define KEY_HEAD_BYTES 3
#define VIA_FORM_BYTES 2 /* that VIA form is longer */

void thock_events_reset(thock_t *core)
{
    memset(core->ring, 0, sizeof core->ring); /* what the person typed is not kept */
    core->ring_head = 0;
    core->ring_count = 0;
    core->dropped = 0;
    core->key_seq = 0;
    core->first_index = 0;
}

static uint8_t place_after(uint8_t place, uint8_t steps)
{
    uint16_t after = (uint16_t)(place + steps);

    return (uint8_t)(after < THOCK_RING_SIZE ? after : after - THOCK_RING_SIZE);
}

bool thock_put_event(thock_t *core, uint8_t wanted, uint8_t spare, uint8_t kind, uint8_t row, uint8_t column,
                     uint16_t keycode, uint32_t now_ms)
{
    uint8_t *event;

    if (!(core->events & wanted)) {
        return false;
    }
    if (core->ring_count + spare >= THOCK_RING_SIZE) {
        if (core->dropped < 255) {
            core->dropped++;
        }
        return false;
    }
    event = core->ring[place_after(core->ring_head, core->ring_count)];
    core->ring_count++;
    event[0] = kind;
    event[1] = row;
    event[2] = column;
    thock_put_u16(event + 3, keycode);
    thock_put_u16(event + 5, (uint16_t)now_ms);
    return true;
}

/* While keys are captured one place stays free, so that the end of the capture always reaches the host. */
static uint8_t spare_places(const thock_t *core)
{
    return thock_capturing(core) ? 1 : 0;
}

bool thock_press_waits(const thock_t *core)
{
    for (uint8_t i = 0; i < core->ring_count; i++) {
        const uint8_t *event = core->ring[place_after(core->ring_head, i)];
        uint8_t kind = event[0] & 0x0F;

        if (kind == (THOCK_EVENT_KEY | 1) || (kind == (THOCK_EVENT_MACRO | 1) && event[1] >= THOCK_FIRST_OWN_MACRO)) {
            return true;
        }
    }
    return false;
}

bool thock_key_event(thock_t *core, uint8_t row, uint8_t column, uint16_t keycode, bool pressed, uint32_t now_ms)
{
    if (pressed) {
        thock_offer_outdated(core, keycode);
    }
    return thock_put_event(core, THOCK_FEATURE_KEYS, spare_places(core),
                           (uint8_t)(THOCK_EVENT_KEY | (pressed ? 1 : 0)), row, column, keycode, now_ms);
}

bool thock_macro_event(thock_t *core, uint8_t number, bool pressed, uint32_t now_ms)
{
    if (pressed && number >= THOCK_FIRST_OWN_MACRO) {
        thock_offer_outdated(core, 0);
    }
    return thock_put_event(core, THOCK_FEATURE_MACROS, spare_places(core),
                           (uint8_t)(THOCK_EVENT_MACRO | (pressed ? 1 : 0)), number, 0, 0, now_ms);
}

/* Makes `report` a KEY frame with the oldest events, which stay in the ring; how many. */
static uint8_t key_frame(const thock_t *core, uint8_t *report, uint8_t seq)
{
    uint8_t length = core->config.report_length;
    uint8_t *payload = report + THOCK_HEAD_BYTES;
    bool via_form = thock_wants_via_form(core, core->client);
    uint8_t room = (uint8_t)(length - THOCK_FRAME_OVERHEAD - KEY_HEAD_BYTES - (via_form ? VIA_FORM_BYTES : 0));
    uint8_t most = room < EVENTS_PER_FRAME * THOCK_EVENT_BYTES ? EVENTS_PER_FRAME - 1 : EVENTS_PER_FRAME;
    uint8_t count = core->ring_count < most ? core->ring_count : most;

    thock_frame_begin(report, length, THOCK_TYPE_KEY, core->client, seq);
    thock_put_u16(payload, core->first_index);
    payload[2] = core->dropped;
    for (uint8_t i = 0; i < count; i++) {
        memcpy(payload + KEY_HEAD_BYTES + i * THOCK_EVENT_BYTES, core->ring[place_after(core->ring_head, i)],
               THOCK_EVENT_BYTES);
    }
    thock_frame_end(report, length, (uint8_t)(KEY_HEAD_BYTES + count * THOCK_EVENT_BYTES));
#if THOCK_ENABLE_VIA_FORM
    if (via_form) {
        thock_put_in_via_form(report, length, core->config.via_version);
    }
#endif
    return count;
}

static void drop_oldest(thock_t *core, uint8_t count)
{
    core->ring_head = place_after(core->ring_head, count);
    core->ring_count = (uint8_t)(core->ring_count - count);
    core->first_index = (uint16_t)(core->first_index + count);
    core->dropped = 0;
}

/* Sends the oldest events; they leave the ring only when the link took them. */
static bool send_batch(thock_t *core)
{
    uint8_t report[THOCK_REPORT_LENGTH];
    uint8_t count = key_frame(core, report, core->key_seq);

    if (!thock_send(core, report)) {
        return false;
    }
    drop_oldest(core, count);
    core->key_seq++;
    return true;
}

#if THOCK_ENABLE_POLL
bool thock_take_events(thock_t *core, uint8_t *report, uint8_t seq)
{
    if (core->ring_count == 0) {
        return false;
    }
    drop_oldest(core, key_frame(core, report, seq));
    return true;
}
#endif

void thock_events_send(thock_t *core, uint32_t now_ms)
{
#if THOCK_ENABLE_POLL
    if (core->config.features & THOCK_FEATURE_POLL) {
        return;
    }
#endif
    if (thock_events_held(core, now_ms)) {
        return;
    }
    for (uint8_t sent = 0; sent < THOCK_FRAMES_PER_TASK && core->ring_count != 0; sent++) {
        if (!send_batch(core)) {
            return;
        }
    }
}

#else

void thock_events_reset(thock_t *core)
{
    (void)core;
}

bool thock_press_waits(const thock_t *core)
{
    (void)core;
    return false;
}

bool thock_key_event(thock_t *core, uint8_t row, uint8_t column, uint16_t keycode, bool pressed, uint32_t now_ms)
{
    (void)row, (void)column, (void)now_ms;
    if (pressed) {
        thock_offer_outdated(core, keycode);
    }
    return false;
}

bool thock_macro_event(thock_t *core, uint8_t number, bool pressed, uint32_t now_ms)
{
    (void)now_ms;
    if (pressed && number >= THOCK_FIRST_OWN_MACRO) {
        thock_offer_outdated(core, 0);
    }
    return false;
}

void thock_events_send(thock_t *core, uint32_t now_ms)
{
    (void)core, (void)now_ms;
}

#endif
