/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
 * The colour overlay. It is asked for, never written anywhere, so the board's own settings stay as they are. */
#include "thock_internal.h"

#include <string.h>

#if THOCK_ENABLE_LIGHTS

enum { LIGHTS_OFF = 0, LIGHTS_FILL = 1, LIGHTS_SINGLE = 2, LIGHTS_FORGET_SINGLE = 3, LIGHTS_KEYS = 4 };
enum { EFFECT_SOLID = 0, EFFECT_BREATHE = 1, EFFECT_PULSE = 2 };

/* Brightness of an effect, 0..255. Both periods divide 2^32, so nothing jumps when the clock wraps, and the phase
 * hangs on the clock alone, so a host that repeats itself cannot make it flicker. Changes of direction: breathe 2 in
 * 4.096 s, pulse 2 in 1.024 s; the protocol allows 3 per second (WCAG 2.2, criterion 2.3.1). */
static uint8_t brightness(uint8_t effect, uint32_t now_ms)
{
    uint16_t wave;

    if (effect == EFFECT_BREATHE) {
        wave = (uint16_t)((now_ms & 4095u) >> 3);
    } else if (effect == EFFECT_PULSE) {
        wave = (uint16_t)((now_ms & 1023u) >> 1);
    } else {
        return 255;
    }
    if (wave > 255) {
        wave = (uint16_t)(511 - wave);
    }
    /* Squared, because the eye takes equal ratios for equal steps; lifted by 24, so never quite dark. */
    wave = (uint16_t)((uint16_t)(wave * wave) >> 8);
    return (uint8_t)(wave + 24 - ((wave * 24) >> 8));
}

void thock_lights_reset(thock_t *core)
{
    core->fill_on = false;
    memset(core->led_on, 0, sizeof core->led_on);
}

static void set_led(thock_t *core, uint16_t led, const uint8_t *rgb)
{
    memcpy(core->leds[led], rgb, 3);
    core->led_on[led / 8] = (uint8_t)(core->led_on[led / 8] | 1u << (led % 8));
}

static uint8_t single_leds(thock_t *core, const thock_frame_t *frame)
{
    const uint8_t *rgb = frame->payload + 3;
    uint8_t count = (uint8_t)((frame->length - 3) / 3);
    uint16_t led;

    if (frame->length < 6 || frame->length % 3 != 0) {
        return THOCK_NAK_LENGTH;
    }
    led = thock_get_u16(frame->payload + 1);
    if (led >= core->config.led_count || count > core->config.led_count - led) {
        return THOCK_NAK_RANGE;
    }
    for (uint8_t i = 0; i < count; i++, led++) {
        set_led(core, led, rgb + 3 * i);
    }
    return THOCK_DONE;
}

/* Keys without an LED are passed over: the host need not know which these are. */
static uint8_t single_keys(thock_t *core, const thock_frame_t *frame)
{
    if (frame->length < 6 || frame->length % 5 != 1) {
        return THOCK_NAK_LENGTH;
    }
    for (uint8_t i = 1; i < frame->length; i = (uint8_t)(i + 5)) {
        const uint8_t *key = frame->payload + i;
        uint16_t led = core->hooks->led_of_key(core->hooks->context, key[0], key[1]);
        if (led < core->config.led_count) {
            set_led(core, led, key + 2);
        }
    }
    return THOCK_DONE;
}

uint8_t thock_lights(thock_t *core, const thock_frame_t *frame)
{
    uint8_t kind = frame->payload[0];

    if (frame->length < 1) {
        return THOCK_NAK_LENGTH;
    }
    if (kind == LIGHTS_SINGLE) {
        return single_leds(core, frame);
    }
    if (kind == LIGHTS_KEYS && core->config.features & THOCK_FEATURE_KEY_LIGHTS) {
        return single_keys(core, frame);
    }
    if (kind > LIGHTS_FORGET_SINGLE) {
        return THOCK_NAK_RANGE;
    }
    if (frame->length != (kind == LIGHTS_FILL ? 5 : 1)) {
        return THOCK_NAK_LENGTH;
    }
    if (kind == LIGHTS_FILL) {
        if (frame->payload[1] > EFFECT_PULSE) {
            return THOCK_NAK_RANGE;
        }
        core->fill_on = true;
        core->fill_effect = frame->payload[1];
        memcpy(core->fill, frame->payload + 2, 3);
    } else if (kind == LIGHTS_OFF) {
        thock_lights_reset(core);
    } else {
        memset(core->led_on, 0, sizeof core->led_on);
    }
    return THOCK_DONE;
}

bool thock_led_color(const thock_t *core, uint16_t led, uint32_t now_ms, uint8_t *rgb)
{
    uint16_t scale;

    if (led >= core->config.led_count) {
        return false;
    }
    if (core->led_on[led / 8] >> (led % 8) & 1) {
        memcpy(rgb, core->leds[led], 3);
        return true;
    }
    if (!core->fill_on) {
        return false;
    }
    scale = (uint16_t)(brightness(core->fill_effect, now_ms) + 1);
    for (uint8_t i = 0; i < 3; i++) {
        rgb[i] = (uint8_t)((uint16_t)(core->fill[i] * scale) >> 8);
    }
    return true;
}

#else

void thock_lights_reset(thock_t *core)
{
    (void)core;
}

bool thock_led_color(const thock_t *core, uint16_t led, uint32_t now_ms, uint8_t *rgb)
{
    (void)core, (void)led, (void)now_ms, (void)rgb;
    return false;
}

#endif
