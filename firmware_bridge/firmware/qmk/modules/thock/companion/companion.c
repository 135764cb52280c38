// SPDX-License-Identifier: GPL-2.0-or-later
// Thock companion for QMK: start, main loop and suspend. The protocol itself is in thock.c and its neighbours.
#include "companion_internal.h"

#include <string.h>

#include "hardware_id.h"
#include "timer.h"
#if THOCK_ENABLE_VIA_FORM
#    include "via.h"
#endif

ASSERT_COMMUNITY_MODULES_MIN_API_VERSION(1, 1, 0);
#ifdef THOCK_SPLIT_SYNC
ASSERT_COMMUNITY_MODULES_MIN_API_VERSION(1, 1, 2);
#endif

#ifndef THOCK_BUILD
#    define THOCK_BUILD 1
#endif

companion_t companion;

#ifdef RGB_MATRIX_ENABLE
static const thock_hooks_t HOOKS = {companion_send, NULL, companion_led_of_key};
#else
static const thock_hooks_t HOOKS = {companion_send, NULL, NULL};
#endif

// 16 bytes into 6, so that every byte of the hardware id counts (FNV-1a, 32 bit, then rotated further).
__attribute__((weak)) void thock_companion_uid(uint8_t *uid) {
    hardware_id_t  id   = get_hardware_id();
    const uint8_t *from = (const uint8_t *)&id;
    uint32_t       hash = 2166136261u;

    for (uint8_t i = 0; i < sizeof id; i++) {
        hash = (hash ^ from[i]) * 16777619u;
    }
    for (uint8_t i = 0; i < THOCK_UID_BYTES; i++) {
        hash   = (hash ^ i) * 16777619u;
        uid[i] = (uint8_t)(hash >> 24);
    }
}

bool thock_companion_capturing(void) {
    return thock_capturing(&companion.core);
}

void keyboard_post_init_companion(void) {
    uint8_t        uid[THOCK_UID_BYTES];
    thock_config_t config;

    keyboard_post_init_companion_kb();
    memset(&config, 0, sizeof config);
    config.report_length = THOCK_REPORT_LENGTH;
    companion_panel_size(&config.panel_width, &config.panel_height); // QMK's driver turns the picture itself
#if THOCK_ENABLE_LIGHTS
    config.led_count = THOCK_LED_COUNT;
#endif
#if THOCK_ENABLE_VIA_FORM
    config.via_version = VIA_PROTOCOL_VERSION;
#endif
    config.features = UINT16_MAX; // thock_init() takes out what this build lacks
    thock_companion_uid(uid);
    companion.ready = thock_init(&companion.core, &config, &HOOKS, uid, THOCK_BUILD);
#ifdef THOCK_SPLIT_SYNC
    companion_split_init();
#endif
}

// QMK runs this after keyboard_task() in every turn of its main loop; on a split board on both halves.
void housekeeping_task_companion(void) {
    uint32_t now = timer_read32();

    housekeeping_task_companion_kb();
    if (!companion.ready || companion.suspended) {
        return;
    }
    companion_receive_one(now);
    thock_task(&companion.core, now);
    companion_type_one();
}

// QMK calls this again and again while the computer sleeps.
void suspend_power_down_companion(void) {
    suspend_power_down_companion_kb();
    if (companion.ready && !companion.suspended) {
        companion.suspended = true;
        companion_forget_reports();
        companion_stop_typing();
        thock_forget_host(&companion.core);
    }
}

void suspend_wakeup_init_companion(void) {
    suspend_wakeup_init_companion_kb();
    companion_forget_reports(); // what came in between belongs to a session that is over
    companion.suspended = false;
}
