/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
 * The session: who is subscribed, what is answered, what ends by itself. */
#include "thock_internal.h"

#include <string.h>

#define KNOWN_EVENTS \
    (THOCK_FEATURE_KEYS | THOCK_FEATURE_MACROS | THOCK_WANT_CAPTURE | THOCK_WANT_ACCEPT | THOCK_WANT_VIA_FORM)

#if THOCK_ENABLE_STATUS
uint8_t thock_set_status(thock_t *core, const thock_frame_t *frame)
{
    if (frame->length != 1) {
        return THOCK_NAK_LENGTH;
    }
    if (frame->payload[0] > THOCK_ERROR) {
        return THOCK_NAK_RANGE;
    }
    if (core->status != frame->payload[0]) {
        core->status = frame->payload[0];
        thock_status_changed(core);
    }
    return THOCK_DONE;
}
#endif

uint8_t thock_status(const thock_t *core)
{
#if THOCK_ENABLE_STATUS
    return core->status;
#else
    (void)core;
    return THOCK_IDLE;
#endif
}

static void reset_status(thock_t *core)
{
#if THOCK_ENABLE_STATUS
    if (core->status != THOCK_IDLE) {
        core->status = THOCK_IDLE;
        thock_status_changed(core);
    }
#else
    (void)core;
#endif
}

static void end_subscription(thock_t *core)
{
    core->client = 0;
    core->events = 0;
    thock_others_reset(core);
    thock_events_reset(core);
    thock_capture_reset(core);
    thock_display_reset(core);
    thock_lights_reset(core);
    reset_status(core);
}

bool thock_init(thock_t *core, const thock_config_t *config, const thock_hooks_t *hooks, const uint8_t *uid,
                uint8_t build)
{
    memset(core, 0, sizeof *core);
    if (config->report_length < 32 || config->report_length > THOCK_REPORT_LENGTH || config->rotation > 3 ||
        config->led_count > THOCK_LED_COUNT || !thock_display_fits(config)) {
        return false;
    }
    core->config = *config;
    core->config.features &= thock_possible_features(config, hooks);
    core->hooks = hooks;
    memcpy(core->uid, uid, THOCK_UID_BYTES);
    core->build = build;
    end_subscription(core);
    return true;
}

void thock_forget_host(thock_t *core)
{
    core->reply_waits = false;
    thock_others_forget(core);
    end_subscription(core);
}

bool thock_subscribed(const thock_t *core)
{
    return core->client != 0;
}

/* The difference is right across the wrap of the clock; half of its range stands for "the clock went back". */
static void end_if_silent(thock_t *core, uint32_t now_ms)
{
    uint32_t silent_ms = now_ms - core->subscribed_ms;

    if (core->client != 0 && silent_ms >= THOCK_TIMEOUT_MS && silent_ms < 0x80000000u) {
        end_subscription(core);
    }
}

static bool send_waiting_reply(thock_t *core)
{
    if (core->reply_waits) {
        core->reply_waits = !thock_send(core, core->reply);
    }
    return !core->reply_waits;
}

static void answer(thock_t *core, const thock_frame_t *frame, uint8_t reason)
{
    uint8_t length = core->config.report_length;
    uint8_t *payload = core->reply + THOCK_HEAD_BYTES;

    thock_frame_begin(core->reply, length, reason == THOCK_DONE ? THOCK_TYPE_ACK : THOCK_TYPE_NAK, frame->client,
                      frame->seq);
    payload[0] = frame->type;
    if (reason != THOCK_DONE) {
        payload[1] = reason;
        thock_frame_end(core->reply, length, 2);
    } else if (frame->type == THOCK_TYPE_SUBSCRIBE) {
        thock_put_u16(payload + 1, core->began_ms);
        thock_frame_end(core->reply, length, 3);
    } else {
        thock_frame_end(core->reply, length, 1);
    }
}

/* A client that says HELLO again starts over, as after a restart of the host under the same number. */
static uint8_t hello(thock_t *core, const thock_frame_t *frame)
{
    if (frame->length != 6) {
        return THOCK_NAK_LENGTH;
    }
    if (frame->payload[4] > THOCK_VERSION || frame->payload[5] < THOCK_VERSION) {
        return THOCK_NAK_VERSION;
    }
    if (frame->client == core->client) {
        end_subscription(core);
    }
    return THOCK_DONE;
}

static uint8_t subscribe(thock_t *core, const thock_frame_t *frame, uint32_t now_ms)
{
    uint8_t events;
    uint16_t needed;

    if (frame->length != 1) {
        return THOCK_NAK_LENGTH;
    }
    events = frame->payload[0];
    if (events & ~KNOWN_EVENTS) {
        return THOCK_NAK_RANGE;
    }
    needed = events & (THOCK_FEATURE_KEYS | THOCK_FEATURE_MACROS);
    needed |= events & THOCK_WANT_CAPTURE ? THOCK_FEATURE_CAPTURE : 0;
    needed |= events & THOCK_WANT_ACCEPT ? THOCK_FEATURE_ACCEPT : 0;
    needed |= events & THOCK_WANT_VIA_FORM ? THOCK_FEATURE_VIA_FORM : 0;
    if ((needed & core->config.features) != needed) {
        return THOCK_NAK_UNSUPPORTED;
    }
    /* What the host no longer allows ends here: no key stays swallowed, no old offer comes back to life. */
    if (!(events & THOCK_WANT_CAPTURE)) {
        thock_capture_reset(core);
    }
    if (!(events & THOCK_WANT_ACCEPT)) {
        thock_offer_reset(core);
    }
    if (core->client == 0) {
        core->began_ms = (uint16_t)now_ms;
    }
    core->client = frame->client;
    core->events = events;
    core->subscribed_ms = now_ms;
    return THOCK_DONE;
}

static uint8_t release(thock_t *core, const thock_frame_t *frame)
{
    uint8_t what;

    if (frame->length != 1) {
        return THOCK_NAK_LENGTH;
    }
    what = frame->payload[0];
    if (what > 15) {
        return THOCK_NAK_RANGE;
    }
    if (what & 8) {
        end_subscription(core);
        return THOCK_DONE;
    }
    if (what & 1) {
        thock_display_reset(core);
    }
    if (what & 2) {
        thock_lights_reset(core);
    }
    if (what & 4) {
        reset_status(core);
    }
    return THOCK_DONE;
}

/* The feature bit that a type of frame needs; 0: none. TEXT to STATUS have their bits in the order of their types. */
static uint8_t needed_feature(uint8_t type)
{
    if (type < THOCK_TYPE_TEXT || type > THOCK_TYPE_STATUS) {
        return 0;
    }
    return (uint8_t)(1u << (type - 1));
}

/* POLL and ACCEPT came later: a board without them answers as firmware that never knew them. */
static bool known_type(const thock_t *core, uint8_t type)
{
    if (type == THOCK_TYPE_POLL) {
        return core->config.features & THOCK_FEATURE_POLL;
    }
    if (type == THOCK_TYPE_ACCEPT) {
        return core->config.features & THOCK_FEATURE_ACCEPT;
    }
    return type <= THOCK_TYPE_NAK;
}

static uint8_t obey_late_type(thock_t *core, const thock_frame_t *frame)
{
    if (core->client == 0) {
        return THOCK_NAK_NOT_SUBSCRIBED;
    }
#if THOCK_ENABLE_ACCEPT
    if (frame->type == THOCK_TYPE_ACCEPT) {
        return core->events & THOCK_WANT_ACCEPT ? thock_offer(core, frame) : THOCK_NAK_NOT_SUBSCRIBED;
    }
#endif
    return frame->length == 0 ? THOCK_DONE : THOCK_NAK_LENGTH;
}

static uint8_t obey(thock_t *core, const thock_frame_t *frame, uint32_t now_ms)
{
    uint8_t feature = needed_feature(frame->type);

    if (frame->version != THOCK_VERSION) {
        return THOCK_NAK_VERSION;
    }
    if (!known_type(core, frame->type)) {
        return THOCK_NAK_TYPE;
    }
    if (frame->client == 0) {
        return THOCK_NAK_RANGE;
    }
    if (frame->type == THOCK_TYPE_HELLO) {
        return hello(core, frame);
    }
    if (core->client != 0 && core->client != frame->client) {
        return THOCK_NAK_BUSY;
    }
    if (feature != 0 && core->client == 0) {
        return THOCK_NAK_NOT_SUBSCRIBED;
    }
    if (feature != 0 && !(core->config.features & feature)) {
        return THOCK_NAK_UNSUPPORTED;
    }
    if (frame->type > THOCK_TYPE_NAK) {
        return obey_late_type(core, frame);
    }
    switch (frame->type) {
    case THOCK_TYPE_SUBSCRIBE:
        return subscribe(core, frame, now_ms);
#if THOCK_ENABLE_TEXT
    case THOCK_TYPE_TEXT:
        return thock_text(core, frame);
#endif
#if THOCK_ENABLE_BITMAP
    case THOCK_TYPE_BITMAP:
        return thock_bitmap(core, frame);
#endif
#if THOCK_ENABLE_LIGHTS
    case THOCK_TYPE_LIGHTS:
        return thock_lights(core, frame);
#endif
#if THOCK_ENABLE_STATUS
    case THOCK_TYPE_STATUS:
        return thock_set_status(core, frame);
#endif
    default:
        return release(core, frame);
    }
}

/* Makes core->reply the answer to a frame that was found `reason`. */
static void make_reply(thock_t *core, const thock_frame_t *frame, uint8_t reason, bool via_form)
{
    if (frame->type == THOCK_TYPE_HELLO && reason == THOCK_DONE) {
        thock_answer_hello(core, frame);
        return;
    }
#if THOCK_ENABLE_POLL
    if (frame->type == THOCK_TYPE_POLL && reason == THOCK_DONE && thock_take_events(core, core->reply, frame->seq)) {
        return;
    }
#endif
    answer(core, frame, reason);
#if THOCK_ENABLE_VIA_FORM
    if (via_form) {
        thock_put_in_via_form(core->reply, core->config.report_length, core->config.via_version);
    }
#else
    (void)via_form;
#endif
}

bool thock_is_frame(const thock_t *core, const uint8_t *report, uint8_t length)
{
    thock_frame_t frame;

    return length != 0 && length == core->config.report_length && thock_parse(report, length, &frame);
}

bool thock_receive(thock_t *core, const uint8_t *report, uint8_t length, uint32_t now_ms)
{
    thock_frame_t frame;
    uint8_t reason;
    bool via_form;

    if (length == 0 || length != core->config.report_length || !thock_parse(report, length, &frame)) {
        return false;
    }
    end_if_silent(core, now_ms);
    /* A link that echoes what we send must not make us talk to ourselves. */
    if (frame.version == THOCK_VERSION &&
        (frame.type == THOCK_TYPE_KEY || frame.type == THOCK_TYPE_ACK || frame.type == THOCK_TYPE_NAK)) {
        return true;
    }
    thock_others_task(core, now_ms);
    if (thock_is_mute(core, frame.type, now_ms) || !send_waiting_reply(core)) {
        return true;
    }
    via_form = thock_wants_via_form(core, frame.client);
    reason = obey(core, &frame, now_ms);
    via_form = via_form || thock_wants_via_form(core, frame.client);
    make_reply(core, &frame, reason, via_form);
    core->reply_waits = true;
    (void)send_waiting_reply(core);
    return true;
}

void thock_task(thock_t *core, uint32_t now_ms)
{
    end_if_silent(core, now_ms);
    thock_others_task(core, now_ms);
    if (!thock_is_mute(core, THOCK_TYPE_KEY, now_ms) && send_waiting_reply(core)) {
        thock_events_send(core, now_ms);
    }
}
