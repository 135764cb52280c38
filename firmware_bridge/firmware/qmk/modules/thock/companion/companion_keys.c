// SPDX-License-Identifier: GPL-2.0-or-later
// Keys: what is reported, what is kept from the computer, and what the companion's own keys do.
#include "companion_internal.h"

#include <string.h>

#include "timer.h"

enum { KEY_NEXT_MODE, KEY_ASK, KEY_PAUSE, KEY_CANCEL, KEY_ACCEPT, KEY_CAPTURE_HOLD, KEY_CAPTURE_TOGGLE, COMPANION_KEYS };

// What a keycode means for text: `code` is a usage of HID page 7, a QMK keycode above FF, or 0; `mods` are bits in the
// order of the HID modifier byte. `held`: the modifiers themselves are the key.
typedef struct {
    uint16_t code;
    uint8_t  mods;
    bool     held;
} meaning_t;

// Keys of the matrix that went down while captured: their releases belong to the host too, whenever they come.
static uint8_t swallowed[(MATRIX_ROWS * MATRIX_COLS + 7) / 8];

// QMK's 5 bits: control, shift, alt, gui, and whether the right ones are meant.
static uint8_t hid_mods(uint16_t qmk_mods) {
    uint8_t shift = qmk_mods & 0x10 ? 4 : 0;

    return (uint8_t)((qmk_mods & 0x0F) << shift);
}

// QMK's basic keycodes are usages of HID page 7 up to A4 and from E0; between them they are QMK's own (media, mouse).
static uint16_t usage_of(uint16_t keycode) {
    uint8_t basic = (uint8_t)keycode;

    return (basic >= KC_A && basic < KC_SYSTEM_POWER) || (basic >= KC_LEFT_CTRL && basic <= KC_RIGHT_GUI) ? basic : 0;
}

static bool was_tapped(const keyrecord_t *record) {
#ifndef NO_ACTION_TAPPING
    return record->tap.count > 0;
#else
    (void)record;
    return false;
#endif
}

static uint8_t oneshot_mods(void) {
#ifndef NO_ACTION_ONESHOT
    return get_oneshot_mods();
#else
    return 0;
#endif
}

static meaning_t meaning_of(uint16_t keycode, const keyrecord_t *record) {
    meaning_t meaning = {keycode, 0, false};

    if (keycode <= QK_BASIC_MAX) {
        meaning.code = usage_of(keycode);
    } else if (keycode <= QK_MODS_MAX) {
        meaning.code = usage_of(keycode);
        meaning.mods = hid_mods(keycode >> 8);
    } else if (keycode <= QK_MOD_TAP_MAX && was_tapped(record)) {
        meaning.code = usage_of(keycode);
    } else if (keycode <= QK_MOD_TAP_MAX) {
        meaning.code = 0;
        meaning.mods = hid_mods(keycode >> 8);
        meaning.held = true;
    } else if (keycode <= QK_LAYER_TAP_MAX && was_tapped(record)) {
        meaning.code = usage_of(keycode);
    }
    if (meaning.code >= KC_A && meaning.code < KC_SYSTEM_POWER) {
        meaning.mods |= oneshot_mods();
    }
    return meaning;
}

static void tell(const keyrecord_t *record, uint16_t code, bool pressed, bool captured, uint32_t now) {
    keypos_t key = record->event.key;

    if (captured) {
        (void)thock_captured_key_event(&companion.core, key.row, key.col, code, pressed, now);
    } else {
        (void)thock_key_event(&companion.core, key.row, key.col, code, pressed, now);
    }
}

static void tell_mods(const keyrecord_t *record, uint8_t mods, bool pressed, bool captured, uint32_t now) {
    for (uint16_t usage = KC_LEFT_CTRL; mods != 0; usage++, mods >>= 1) {
        if (mods & 1) {
            tell(record, usage, pressed, captured, now);
        }
    }
}

// A key with modifiers of its own goes out as QMK types it: modifiers down, key down, modifiers up; later key up.
static void report_key(meaning_t meaning, const keyrecord_t *record, bool captured) {
    bool     pressed = record->event.pressed;
    uint32_t now     = timer_read32();

    if (meaning.held) {
        tell_mods(record, meaning.mods, pressed, captured, now);
        return;
    }
    if (meaning.code == 0) {
        return;
    }
    if (pressed) {
        tell_mods(record, meaning.mods, true, captured, now);
    }
    tell(record, meaning.code, pressed, captured, now);
    if (pressed) {
        tell_mods(record, meaning.mods, false, captured, now);
    }
}

// Keys that reach no text keep working while others are captured: layers, lights, sound, media, reset.
static bool may_type(uint16_t keycode, meaning_t meaning) {
    if (keycode <= QK_LAYER_TAP_MAX) {
        return meaning.held || (meaning.code != 0 && meaning.code <= QK_BASIC_MAX);
    }
    if (keycode >= QK_LAYER_MOD && keycode <= QK_PERSISTENT_DEF_LAYER_MAX) {
        return keycode >= QK_ONE_SHOT_MOD && keycode <= QK_ONE_SHOT_MOD_MAX;
    }
    return !(keycode >= QK_AUDIO && keycode <= QK_AUDIO_MAX) && !(keycode >= QK_LIGHTING && keycode <= QK_LIGHTING_MAX) &&
           keycode != QK_BOOTLOADER && keycode != QK_REBOOT;
}

// True: this event goes to the host only. A release goes where its press went, so that no key sticks on the computer;
// events without a place in the matrix (combos, encoders) cannot be remembered, so their releases go to the computer.
static bool is_captured(uint16_t keycode, meaning_t meaning, const keyrecord_t *record) {
    keypos_t key       = record->event.key;
    bool     in_matrix = record->event.type == KEY_EVENT && key.row < MATRIX_ROWS && key.col < MATRIX_COLS;
    uint16_t place     = (uint16_t)(key.row * MATRIX_COLS + key.col);
    uint8_t  bit       = (uint8_t)(1u << (place % 8));
    bool     captured;

    if (record->event.pressed) {
        captured = thock_capturing(&companion.core) && may_type(keycode, meaning);
        if (in_matrix && captured) {
            swallowed[place / 8] |= bit;
        }
        return captured;
    }
    captured = in_matrix && (swallowed[place / 8] & bit);
    if (captured) {
        swallowed[place / 8] = (uint8_t)(swallowed[place / 8] & ~bit);
    }
    return captured;
}

#if THOCK_ENABLE_ACCEPT
static uint8_t typing[THOCK_ACCEPT_BYTES];
static uint8_t typing_count;
static uint8_t typing_next;

// What is typed must be what is shown: not on a dark display, and not where Caps Lock turns letters over.
static void accept_pressed(uint32_t now) {
    if (!companion_display_is_lit() || host_keyboard_led_state().caps_lock || typing_next < typing_count) {
        return;
    }
    typing_next  = 0;
    typing_count = thock_accept(&companion.core, typing, now);
}

// One character in a turn of the main loop, without the modifiers that the person happens to hold.
void companion_type_one(void) {
    uint8_t mods;

    if (typing_next >= typing_count) {
        return;
    }
    mods = get_mods();
    clear_mods();
    clear_weak_mods();
#    ifndef NO_ACTION_ONESHOT
    clear_oneshot_mods();
#    endif
    send_char((char)typing[typing_next++]);
    set_mods(mods);
    if (typing_next == typing_count) {
        companion_stop_typing();
    }
}

void companion_stop_typing(void) {
    memset(typing, 0, sizeof typing);
    typing_count = 0;
    typing_next  = 0;
}
#else
static void accept_pressed(uint32_t now) {
    (void)now;
}

void companion_type_one(void) {}

void companion_stop_typing(void) {}
#endif

// Capture begins with a key under the person's finger and in no other way.
static void capture_key(uint8_t key, const keyrecord_t *record, uint32_t now) {
    bool pressed = record->event.pressed;

    if (pressed && !thock_capturing(&companion.core)) {
        companion_stop_typing();
        companion_capture_key_at(record->event.key.row, record->event.key.col);
        (void)thock_begin_capture(&companion.core, now);
    } else if (pressed ? key == KEY_CAPTURE_TOGGLE : key == KEY_CAPTURE_HOLD) {
        thock_end_capture(&companion.core, now);
    }
}

static void companion_key(uint8_t key, const keyrecord_t *record) {
    uint32_t now = timer_read32();

    if (key >= KEY_CAPTURE_HOLD) {
        capture_key(key, record, now);
        return;
    }
    (void)thock_macro_event(&companion.core, key, record->event.pressed, now);
    if (key == KEY_ACCEPT && record->event.pressed) {
        accept_pressed(now);
    }
}

bool process_record_companion(uint16_t keycode, keyrecord_t *record) {
    meaning_t meaning;
    bool      captured;
    uint8_t   number;

    if (!process_record_companion_kb(keycode, record)) {
        return false;
    }
    if (!companion.ready) {
        return true;
    }
    if (keycode >= THOCK_NEXT_MODE && keycode < THOCK_NEXT_MODE + COMPANION_KEYS) {
        companion_key((uint8_t)(keycode - THOCK_NEXT_MODE), record);
        return false;
    }
    meaning  = meaning_of(keycode, record);
    captured = is_captured(keycode, meaning, record);
    if (keycode >= QK_MACRO && keycode <= QK_MACRO_MAX) {
        number = (uint8_t)(COMPANION_FIRST_VIA_MACRO + (keycode - QK_MACRO));
        (void)thock_macro_event(&companion.core, number, record->event.pressed, timer_read32());
    } else {
        report_key(meaning, record, captured);
    }
    return !captured;
}

// QMK's dynamic macro keys are used up before process_record reaches a module; this hook comes before them.
bool pre_process_record_companion(uint16_t keycode, keyrecord_t *record) {
    if (!pre_process_record_companion_kb(keycode, record)) {
        return false;
    }
#ifdef DYNAMIC_MACRO_ENABLE
    if (companion.ready && keycode >= QK_DYNAMIC_MACRO_RECORD_START_1 && keycode <= QK_DYNAMIC_MACRO_PLAY_2) {
        uint8_t number = (uint8_t)(COMPANION_FIRST_DYNAMIC_MACRO + (keycode - QK_DYNAMIC_MACRO_RECORD_START_1));
        (void)thock_macro_event(&companion.core, number, record->event.pressed, timer_read32());
    }
#endif
    return true;
}
