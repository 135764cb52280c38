// SPDX-License-Identifier: GPL-2.0-or-later
// What the person sees: the OLED, the lights, and the copy of both on the other half of a split board.
#include "companion_internal.h"

#include <string.h>

#ifdef OLED_ENABLE
#    include "oled_driver.h"
#endif
#ifdef RGB_MATRIX_ENABLE
#    include "rgb_matrix.h"
#    include "timer.h"
#endif
#ifdef THOCK_SPLIT_SYNC
#    include "split_util.h"
#    include "transactions.h"
#endif

#ifdef OLED_ENABLE

// The display goes dark this long after the last key, however often the picture changes; 0: never.
#    ifndef THOCK_OLED_OFF_MS
#        define THOCK_OLED_OFF_MS 120000u
#    endif

// Pages drawn in one call. Split boards call rarely (OLED_UPDATE_INTERVAL is 50 ms there), others in every turn.
#    ifndef THOCK_OLED_PAGES_PER_CALL
#        if defined(OLED_UPDATE_INTERVAL) && OLED_UPDATE_INTERVAL > 0
#            define THOCK_OLED_PAGES_PER_CALL 4
#        else
#            define THOCK_OLED_PAGES_PER_CALL 1
#        endif
#    endif

#    define LONGER_SIDE (OLED_DISPLAY_WIDTH > OLED_DISPLAY_HEIGHT ? OLED_DISPLAY_WIDTH : OLED_DISPLAY_HEIGHT)

static bool drawn;  // our picture is on the display
static bool darkened; // the display is off because of has_rested()

// The driver's buffer is as wide as the display is to the person, who may see it turned by 90 degrees.
void companion_panel_size(uint8_t *width, uint8_t *height) {
    bool upright = oled_max_lines() * 8 == OLED_DISPLAY_HEIGHT;

    *width  = upright ? OLED_DISPLAY_WIDTH : OLED_DISPLAY_HEIGHT;
    *height = upright ? OLED_DISPLAY_HEIGHT : OLED_DISPLAY_WIDTH;
}

static bool has_rested(void) {
#    if THOCK_OLED_OFF_MS > 0
#        if defined(SPLIT_KEYBOARD) && !defined(SPLIT_ACTIVITY_ENABLE)
    if (!is_keyboard_master()) {
        return false; // this half is not told about keys
    }
#        endif
    return last_input_activity_elapsed() >= THOCK_OLED_OFF_MS;
#    else
    return false;
#    endif
}

bool companion_display_is_lit(void) {
    return is_oled_on() && !has_rested();
}

static void draw_page(uint8_t page) {
    uint8_t columns[LONGER_SIDE];

    if (thock_render_page(&companion.core, page, columns)) {
        oled_set_cursor(0, page);
        oled_write_raw((const char *)columns, companion.core.config.panel_width);
    }
}

bool thock_companion_render_oled(void) {
    uint16_t dirty;
    uint8_t  budget = THOCK_OLED_PAGES_PER_CALL;

    if (!companion.ready || !thock_display_taken(&companion.core)) {
        if (drawn) {
            drawn = false;
            oled_clear();
        }
        return false;
    }
    drawn = true;
    if (has_rested()) {
        darkened = true;
        oled_off(); // and draw nothing: a changed picture would light it again
        return true;
    }
    if (darkened) {
        darkened = false;
        oled_on(); // QMK does so too, but not with OLED_TIMEOUT 0
    }
    dirty = thock_display_dirty(&companion.core);
    for (uint8_t page = 0; dirty != 0 && budget != 0; page++, dirty >>= 1) {
        if (dirty & 1) {
            draw_page(page);
            budget--;
        }
    }
    return true;
}

// A keymap with an oled_task_user() of its own replaces this and calls thock_companion_render_oled() there.
__attribute__((weak)) bool oled_task_user(void) {
    return !thock_companion_render_oled();
}

#else

void companion_panel_size(uint8_t *width, uint8_t *height) {
    *width  = 0;
    *height = 0;
}

bool companion_display_is_lit(void) {
    return false;
}

bool thock_companion_render_oled(void) {
    return false;
}

#endif

#ifdef RGB_MATRIX_ENABLE

static keypos_t capture_key;

void companion_capture_key_at(uint8_t row, uint8_t column) {
    capture_key.row = row;
    capture_key.col = column;
}

uint16_t companion_led_of_key(void *context, uint8_t row, uint8_t column) {
    uint8_t led = NO_LED;

    (void)context;
    if (row < MATRIX_ROWS && column < MATRIX_COLS) {
        led = g_led_config.matrix_co[row][column];
    }
    return led == NO_LED ? (uint16_t)THOCK_NO_LED : led;
}

// The key that captures is red while it does, whatever lies over the other LEDs.
static void light_capture_key(void) {
    if (thock_capturing(&companion.core) && capture_key.row < MATRIX_ROWS && capture_key.col < MATRIX_COLS) {
        uint8_t led = g_led_config.matrix_co[capture_key.row][capture_key.col];
        if (led != NO_LED) {
            rgb_matrix_set_color(led, 255, 0, 0);
        }
    }
}

// QMK calls this when an effect has drawn a whole frame, before it goes to the LEDs. Nothing is stored, so the board's own
// lighting is back as soon as we stop. The hook with led_min and led_max would save no work here, and the type of its
// arguments changed with module API 1.1.4.
bool rgb_matrix_indicators_companion(void) {
    uint32_t now = timer_read32();
    uint8_t  rgb[3];

    if (!rgb_matrix_indicators_companion_kb()) {
        return false;
    }
    if (companion.ready && thock_subscribed(&companion.core)) {
        for (uint16_t led = 0; led < RGB_MATRIX_LED_COUNT; led++) {
            if (thock_led_color(&companion.core, led, now, rgb)) {
                rgb_matrix_set_color((int)led, rgb[0], rgb[1], rgb[2]);
            }
        }
        light_capture_key();
    }
    return true;
}

#else

void companion_capture_key_at(uint8_t row, uint8_t column) {
    (void)row, (void)column;
}

#endif

#ifdef THOCK_SPLIT_SYNC

// Runs on the other half, on some boards in an interrupt: it only stores the frame.
static void take_frame(uint8_t size, const void *frame, uint8_t answer_size, void *answer) {
    (void)answer_size, (void)answer;
    (void)companion_store(frame, size);
}

void companion_split_init(void) {
    transaction_register_rpc(THOCK_SPLIT_FRAME, take_frame);
}

// The other half runs the same core on the same frames, so it shows the same text and lights. Without another half
// there is nobody to tell, which is no failure.
bool companion_tell_other_half(const uint8_t *report) {
    return !is_transport_connected() || transaction_rpc_send(THOCK_SPLIT_FRAME, THOCK_REPORT_LENGTH, report);
}

#endif
