// SPDX-License-Identifier: GPL-2.0-or-later
// The smallest board around the module: linked with and without it, the difference is what the module costs.
// Without COUNT_MODULE the hooks are empty. Sinks are volatile, so that link-time optimisation keeps every call.
#include "quantum.h"
#include "community_modules.h"
#include "hardware_id.h"
#include "raw_hid.h"
#include "timer.h"
#ifdef OLED_ENABLE
#    include "oled_driver.h"
#endif
#ifdef RGB_MATRIX_ENABLE
#    include "rgb_matrix.h"
led_config_t g_led_config;
#endif

volatile uint8_t sink;
static uint8_t   report[32];

#define KEPT __attribute__((noinline, noclone, used))

KEPT void raw_hid_send(uint8_t *data, uint8_t length) {
    for (uint8_t i = 0; i < length; i++) {
        sink = data[i];
    }
}

KEPT uint32_t timer_read32(void) {
    return sink;
}

KEPT uint32_t timer_elapsed32(uint32_t last) {
    return sink - last;
}

KEPT uint32_t last_input_activity_elapsed(void) {
    return sink;
}

KEPT hardware_id_t get_hardware_id(void) {
    return (hardware_id_t){{sink, sink, sink, sink}};
}

KEPT led_t host_keyboard_led_state(void) {
    return (led_t){.raw = sink};
}

KEPT uint8_t get_mods(void) {
    return sink;
}

KEPT void set_mods(uint8_t mods) {
    sink = mods;
}

KEPT void clear_mods(void) {
    sink = 0;
}

KEPT void clear_weak_mods(void) {
    sink = 1;
}

KEPT uint8_t get_oneshot_mods(void) {
    return sink;
}

KEPT void clear_oneshot_mods(void) {
    sink = 2;
}

KEPT void send_char(char ascii_code) {
    sink = (uint8_t)ascii_code;
}

KEPT bool is_keyboard_master(void) {
    return sink;
}

#ifdef THOCK_ALL_REPORTS
void usb_report(uint8_t *data, uint8_t length); // fake_usb.c

KEPT void raw_hid_receive(uint8_t *data, uint8_t length) {
    sink = (uint8_t)(data[0] + length);
}
#endif

#ifdef OLED_ENABLE
KEPT uint8_t oled_max_lines(void) {
    return sink;
}

KEPT void oled_clear(void) {
    sink = 3;
}

KEPT void oled_set_cursor(uint8_t col, uint8_t line) {
    sink = (uint8_t)(col + line);
}

KEPT void oled_write_raw(const char *data, uint16_t size) {
    sink = (uint8_t)((uint8_t)*data + size);
}

KEPT bool oled_on(void) {
    return sink;
}

KEPT bool oled_off(void) {
    return sink;
}

KEPT bool is_oled_on(void) {
    return sink;
}
#endif

#ifdef RGB_MATRIX_ENABLE
KEPT void rgb_matrix_set_color(int index, uint8_t red, uint8_t green, uint8_t blue) {
    sink = (uint8_t)(index + red + green + blue);
}
#endif

#ifdef COUNT_MODULE
static void run_hooks(void) {
    keyrecord_t record = {.event = {.type = KEY_EVENT, .pressed = sink, .key = {sink, sink}}};

    keyboard_post_init_companion();
    while (sink) {
#    if defined(THOCK_ALL_REPORTS)
        usb_report(report, sizeof report);
#    elif defined(THOCK_VIA_CHANNEL)
        via_custom_value_command_kb(report, sizeof report);
#    elif defined(VIAL_ENABLE)
        raw_hid_receive_kb(report, sizeof report);
#    elif defined(VIA_ENABLE)
        sink = via_command_kb(report, sizeof report);
#    else
        raw_hid_receive(report, sizeof report);
#    endif
        sink = pre_process_record_companion(sink, &record);
        sink = process_record_companion(sink, &record);
#    ifdef RGB_MATRIX_ENABLE
        sink = rgb_matrix_indicators_companion();
#    endif
#    ifdef OLED_ENABLE
        sink = oled_task_user();
#    endif
        housekeeping_task_companion();
        suspend_power_down_companion();
        suspend_wakeup_init_companion();
    }
}
#else
static void run_hooks(void) {
    raw_hid_send(report, sizeof report);
}
#endif

int main(void) {
    for (uint8_t i = 0; i < sizeof report; i++) {
        report[i] = sink;
    }
    run_hooks();
    return sink;
}
