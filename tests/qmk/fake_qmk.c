// SPDX-License-Identifier: GPL-2.0-or-later
// A QMK that is just enough to run the module: it calls the hooks in QMK's order (shims/README.md) with a clock that
// only the test moves. Commands come as lines on standard input, what happens goes out as lines; "." ends each answer.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "quantum.h"
#include "community_modules.h"
#include "companion.h"
#include "hardware_id.h"
#include "raw_hid.h"
#include "timer.h"
#ifdef OLED_ENABLE
#    include "fake_oled.h"
#endif
#ifdef RGB_MATRIX_ENABLE
#    include "rgb_matrix.h"
#endif
#ifdef SPLIT_KEYBOARD
#    include "split_util.h"
#    include "transactions.h"
#endif

#define QUEUE 256

void usb_report(uint8_t *data, uint8_t length); // fake_usb.c

static uint32_t now;
static uint32_t last_activity;
static unsigned mods, oneshot;
static bool     caps_lock, master = true, connected = true, rpc_works = true, rgb_on = true;

static uint8_t  reports[QUEUE][32];
static unsigned report_count;
typedef struct {
    uint16_t    keycode;
    keyrecord_t record;
} queued_key_t;
static queued_key_t keys[QUEUE];
static unsigned     key_count;

static void print_bytes(const char *name, const uint8_t *bytes, unsigned count) {
    printf("%s ", name);
    for (unsigned i = 0; i < count; i++) {
        printf("%02x", bytes[i]);
    }
    printf("\n");
}

static unsigned parse_bytes(const char *text, uint8_t *bytes, unsigned room) {
    unsigned count = 0, value;

    while (count < room && sscanf(text + 2 * count, "%2x", &value) == 1) {
        bytes[count++] = (uint8_t)value;
    }
    return count;
}

// ------------------------------------------------------------------ what QMK offers

uint32_t timer_read32(void) {
    return now;
}

uint32_t timer_elapsed32(uint32_t last) {
    return now - last;
}

uint32_t last_input_activity_elapsed(void) {
    return now - last_activity;
}

bool is_keyboard_master(void) {
    return master;
}

hardware_id_t get_hardware_id(void) {
    return (hardware_id_t){{0x01234567, 0x89ABCDEF, 0x02468ACE, 0}};
}

led_t host_keyboard_led_state(void) {
    return (led_t){.caps_lock = caps_lock};
}

uint8_t get_mods(void) {
    return (uint8_t)mods;
}

void set_mods(uint8_t value) {
    mods = value;
}

void clear_mods(void) {
    mods = 0;
}

void clear_weak_mods(void) {}

uint8_t get_oneshot_mods(void) {
    return (uint8_t)oneshot;
}

void clear_oneshot_mods(void) {
    oneshot = 0;
}

void send_char(char character) {
    printf("char %02x %02x\n", (unsigned char)character, mods | oneshot);
}

void raw_hid_send(uint8_t *data, uint8_t length) {
    print_bytes("out", data, length);
}

// ------------------------------------------------------------------ raw HID, as the three builds of QMK have it

#if defined(VIA_ENABLE)

#    if defined(THOCK_VIA_CHANNEL) || defined(KEYCHRON)
// As on Keychron boards: the keyboard owns this hook and answers AA itself.
bool via_command_kb(uint8_t *data, uint8_t length) {
    (void)length;
    if (data[0] == 0xAA) {
        printf("keychron\n");
        return true;
    }
    return false;
}
#    elif !defined(VIAL_ENABLE)
__attribute__((weak)) bool via_command_kb(uint8_t *data, uint8_t length) {
    (void)data, (void)length;
    return false;
}
#    else
__attribute__((weak)) void raw_hid_receive_kb(uint8_t *data, uint8_t length) {
    (void)length;
    data[0] = 0xFF;
}
#    endif
#    if !defined(THOCK_VIA_CHANNEL) && !defined(VIAL_ENABLE)
__attribute__((weak)) void via_custom_value_command_kb(uint8_t *data, uint8_t length) {
    (void)length;
    data[0] = 0xFF;
}
#    endif

void raw_hid_receive(uint8_t *data, uint8_t length) {
#    if !defined(VIAL_ENABLE)
    if (via_command_kb(data, length)) {
        return;
    }
#    endif
    switch (data[0]) {
        case 0x01:
            data[1] = 0;
            data[2] = 0x0C;
            break;
#    if !defined(VIAL_ENABLE)
        case 0x07 ... 0x09:
            via_custom_value_command_kb(data, length);
            break;
        default:
            data[0] = 0xFF;
            break;
#    else
        default:
            raw_hid_receive_kb(data, length);
            break;
#    endif
    }
    print_bytes("via", data, length);
}
#endif

// ------------------------------------------------------------------ RGB matrix

#ifdef RGB_MATRIX_ENABLE
led_config_t   g_led_config;
static uint8_t leds[RGB_MATRIX_LED_COUNT][3];

void rgb_matrix_set_color(int index, uint8_t red, uint8_t green, uint8_t blue) {
    if (index < 0 || index >= RGB_MATRIX_LED_COUNT) {
        abort();
    }
    leds[index][0] = red;
    leds[index][1] = green;
    leds[index][2] = blue;
}

// The board's own effect is a dim white.
static void rgb_matrix_task(void) {
    memset(leds, rgb_on ? 9 : 0, sizeof leds);
    if (rgb_on) {
        (void)rgb_matrix_indicators_companion();
    }
}
#endif

// ------------------------------------------------------------------ split

#ifdef SPLIT_KEYBOARD
static slave_callback_t split_callback;

bool is_transport_connected(void) {
    return connected;
}

void transaction_register_rpc(int8_t id, slave_callback_t callback) {
    (void)id;
    split_callback = callback;
}

bool transaction_rpc_exec(int8_t id, uint8_t size, const void *bytes, uint8_t answer_size, void *answer) {
    (void)id, (void)answer_size, (void)answer;
    if (rpc_works) {
        print_bytes("rpc", bytes, size);
    }
    return rpc_works;
}
#endif

// ------------------------------------------------------------------ the main loop

static void action_exec(queued_key_t *key) {
    if (pre_process_record_companion(key->keycode, &key->record) && process_record_companion(key->keycode, &key->record)) {
        printf("type %04x %d\n", key->keycode, key->record.event.pressed);
    }
}

static void turn(void) {
    for (unsigned i = 0; i < report_count; i++) {
#ifdef THOCK_DISABLE_RAW_HID_HANDLER
        printf("handled %d\n", thock_companion_handle_command(reports[i], 32));
#else
        usb_report(reports[i], 32);
#endif
    }
    report_count = 0;
    for (unsigned i = 0; i < key_count; i++) {
        last_activity = now;
        action_exec(&keys[i]);
    }
#ifdef RGB_MATRIX_ENABLE
    rgb_matrix_task();
#endif
#ifdef OLED_ENABLE
    fake_oled_task();
    if (key_count != 0) {
        oled_on();
    }
#endif
    key_count = 0;
    housekeeping_task_companion();
}

static void set(const char *name, unsigned value) {
    if (strcmp(name, "caps_lock") == 0) {
        caps_lock = value;
    } else if (strcmp(name, "mods") == 0) {
        mods = value;
    } else if (strcmp(name, "oneshot") == 0) {
        oneshot = value;
    } else if (strcmp(name, "master") == 0) {
        master = value;
    } else if (strcmp(name, "connected") == 0) {
        connected = value;
    } else if (strcmp(name, "rpc_works") == 0) {
        rpc_works = value;
    } else if (strcmp(name, "rgb_on") == 0) {
        rgb_on = value;
    } else if (strcmp(name, "now") == 0) {
        now           = value;
        last_activity = value;
#ifdef OLED_ENABLE
        oled_on();
    } else if (strcmp(name, "turned") == 0) {
        fake_oled_turned = value;
    } else if (strcmp(name, "own_screen") == 0) {
        fake_oled_own_screen = (uint8_t)value;
#endif
    } else {
        abort();
    }
}

static void queue_key(const char *line) {
    unsigned     row, column, keycode, pressed, taps, type;
    queued_key_t key = {0};

    if (key_count == QUEUE || sscanf(line, "key %u %u %x %u %u %u", &row, &column, &keycode, &pressed, &taps, &type) != 6) {
        abort();
    }
    key.keycode              = (uint16_t)keycode;
    key.record.event.key.row = (uint8_t)row;
    key.record.event.key.col = (uint8_t)column;
    key.record.event.pressed = pressed;
    key.record.event.type    = (keyevent_type_t)type;
    key.record.event.time    = (uint16_t)now;
    key.record.tap.count     = taps & 15;
    keys[key_count++]        = key;
}

static void command(const char *line) {
    char     name[32];
    unsigned value;

    if (sscanf(line, "turn %u", &value) == 1) {
        now += value;
        turn();
    } else if (strncmp(line, "hid ", 4) == 0) {
        if (report_count == QUEUE || parse_bytes(line + 4, reports[report_count], 32) != 32) {
            abort();
        }
        report_count++;
    } else if (strncmp(line, "key ", 4) == 0) {
        queue_key(line);
    } else if (sscanf(line, "set %31s %u", name, &value) == 2) {
        set(name, value);
    } else if (strcmp(line, "start") == 0) {
        keyboard_post_init_companion();
    } else if (strcmp(line, "suspend") == 0) {
        suspend_power_down_companion();
    } else if (strcmp(line, "wake") == 0) {
        suspend_wakeup_init_companion();
    } else if (strcmp(line, "capturing") == 0) {
        printf("capturing %d\n", thock_companion_capturing());
#ifdef OLED_ENABLE
    } else if (strcmp(line, "oled") == 0) {
        printf("lit %d\n", is_oled_on());
        print_bytes("panel", fake_oled_panel, sizeof fake_oled_panel);
#endif
#ifdef RGB_MATRIX_ENABLE
    } else if (strcmp(line, "leds") == 0) {
        print_bytes("leds", leds[0], sizeof leds);
#endif
#ifdef SPLIT_KEYBOARD
    } else if (strncmp(line, "rpc ", 4) == 0) {
        uint8_t  bytes[32];
        unsigned count = parse_bytes(line + 4, bytes, 32);
        split_callback((uint8_t)count, bytes, 0, NULL);
#endif
    } else {
        abort();
    }
}

int main(void) {
    char line[256];

#ifdef RGB_MATRIX_ENABLE
    for (uint8_t row = 0; row < MATRIX_ROWS; row++) {
        for (uint8_t column = 0; column < MATRIX_COLS; column++) {
            g_led_config.matrix_co[row][column] = (uint8_t)(row * MATRIX_COLS + column);
        }
    }
    g_led_config.matrix_co[3][5] = NO_LED;
#endif
    while (fgets(line, sizeof line, stdin) != NULL) {
        line[strcspn(line, "\r\n")] = 0;
        command(line);
        printf(".\n");
        fflush(stdout);
    }
    return 0;
}
