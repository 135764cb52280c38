// SPDX-License-Identifier: GPL-2.0-or-later
// Shim: see README.md in this folder.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum qk_keycode_ranges {
    QK_BASIC_MAX                = 0x00FF,
    QK_MODS_MAX                 = 0x1FFF,
    QK_MOD_TAP_MAX              = 0x3FFF,
    QK_LAYER_TAP_MAX            = 0x4FFF,
    QK_LAYER_MOD                = 0x5000,
    QK_ONE_SHOT_MOD             = 0x52A0,
    QK_ONE_SHOT_MOD_MAX         = 0x52BF,
    QK_PERSISTENT_DEF_LAYER_MAX = 0x52FF,
    QK_AUDIO                    = 0x7480,
    QK_AUDIO_MAX                = 0x74BF,
    QK_MACRO                    = 0x7700,
    QK_MACRO_MAX                = 0x777F,
    QK_COMMUNITY_MODULE         = 0x77C0,
    QK_COMMUNITY_MODULE_MAX     = 0x77FF,
    QK_LIGHTING                 = 0x7800,
    QK_LIGHTING_MAX             = 0x78FF,
};

enum qk_keycode_defines {
    KC_A                            = 0x0004,
    KC_SYSTEM_POWER                 = 0x00A5,
    KC_LEFT_CTRL                    = 0x00E0,
    KC_RIGHT_GUI                    = 0x00E7,
    QK_BOOTLOADER                   = 0x7C00,
    QK_REBOOT                       = 0x7C01,
    QK_DYNAMIC_MACRO_RECORD_START_1 = 0x7C53,
    QK_DYNAMIC_MACRO_PLAY_2         = 0x7C57,
};

typedef struct {
    uint8_t col;
    uint8_t row;
} keypos_t;

typedef enum keyevent_type_t { TICK_EVENT = 0, KEY_EVENT = 1, ENCODER_CW_EVENT = 2, ENCODER_CCW_EVENT = 3, COMBO_EVENT = 4 } keyevent_type_t;

typedef struct {
    keypos_t        key;
    uint16_t        time;
    keyevent_type_t type;
    bool            pressed;
} keyevent_t;

typedef struct {
    bool    interrupted : 1;
    bool    reserved2 : 1;
    bool    reserved1 : 1;
    bool    reserved0 : 1;
    uint8_t count : 4;
} tap_t;

typedef struct keyrecord_t {
    keyevent_t event;
#ifndef NO_ACTION_TAPPING
    tap_t tap;
#endif
} keyrecord_t;

typedef union {
    uint8_t raw;
    struct {
        bool    num_lock : 1;
        bool    caps_lock : 1;
        bool    scroll_lock : 1;
        bool    compose : 1;
        bool    kana : 1;
        uint8_t reserved : 3;
    };
} led_t;

uint8_t  get_mods(void);
void     set_mods(uint8_t mods);
void     clear_mods(void);
void     clear_weak_mods(void);
uint8_t  get_oneshot_mods(void);
void     clear_oneshot_mods(void);
void     send_char(char ascii_code);
led_t    host_keyboard_led_state(void);
uint32_t last_input_activity_elapsed(void);
bool     is_keyboard_master(void);
