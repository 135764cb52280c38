/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
 * What the board says about itself: the answer to HELLO. */
#include "thock_internal.h"

#include <string.h>

static const uint8_t NONCE_MASK[4] = {0x54, 0x4F, 0x43, 0x4B}; /* 4B434F54, little endian */

uint16_t thock_possible_features(const thock_config_t *config, const thock_hooks_t *hooks)
{
    uint16_t features = 0;

    (void)config, (void)hooks;
#if THOCK_ENABLE_EVENTS
    features |= THOCK_FEATURE_KEYS | THOCK_FEATURE_MACROS;
#endif
    if (config->panel_width != 0) {
#if THOCK_ENABLE_TEXT
        features |= THOCK_FEATURE_TEXT;
#endif
#if THOCK_ENABLE_BITMAP
        features |= THOCK_FEATURE_BITMAP;
#endif
    }
#if THOCK_ENABLE_LIGHTS
    if (config->led_count != 0) {
        features |= THOCK_FEATURE_LIGHTS;
        if (hooks->led_of_key != NULL) {
            features |= THOCK_FEATURE_KEY_LIGHTS;
        }
    }
#endif
#if THOCK_ENABLE_STATUS
    features |= THOCK_FEATURE_STATUS;
#endif
#if THOCK_ENABLE_CAPTURE
    features |= THOCK_FEATURE_CAPTURE;
#endif
#if THOCK_ENABLE_ACCEPT
    if (config->panel_width != 0) {
        features |= THOCK_FEATURE_ACCEPT;
    }
#endif
#if THOCK_ENABLE_POLL
    features |= THOCK_FEATURE_POLL;
#endif
#if THOCK_ENABLE_VIA_FORM
    if (config->via_version != 0) {
        features |= THOCK_FEATURE_VIA_FORM;
    }
#endif
    return features;
}

void thock_answer_hello(thock_t *core, const thock_frame_t *frame)
{
    uint8_t length = core->config.report_length;
    uint8_t *payload = core->reply + THOCK_HEAD_BYTES;

    thock_frame_begin(core->reply, length, THOCK_TYPE_HELLO, frame->client, frame->seq);
    for (uint8_t i = 0; i < 4; i++) {
        payload[i] = frame->payload[i] ^ NONCE_MASK[i];
    }
    payload[4] = THOCK_VERSION << 4 | THOCK_VERSION;
    payload[5] = length;
    memcpy(payload + 6, core->uid, THOCK_UID_BYTES);
#if THOCK_HAS_DISPLAY
    if (core->host_width != 0) {
        payload[12] = 1;
        payload[13] = core->host_width;
        payload[14] = core->host_height;
        payload[15] = core->config.rotation;
        payload[16] = core->host_width / 6;
        payload[17] = core->host_height / 8;
    }
#endif
    thock_put_u16(payload + 18, core->config.led_count);
    thock_put_u16(payload + 20, core->config.features);
#if THOCK_ENABLE_EVENTS
    payload[22] = THOCK_RING_SIZE;
#endif
    payload[23] = core->build;
    thock_frame_end(core->reply, length, 24);
}
