// SPDX-License-Identifier: GPL-2.0-or-later
// Shim: see README.md in this folder.
#pragma once

#include <stdint.h>

#define NO_LED 255

typedef struct {
    uint8_t matrix_co[MATRIX_ROWS][MATRIX_COLS];
} led_config_t;

extern led_config_t g_led_config;

void rgb_matrix_set_color(int index, uint8_t red, uint8_t green, uint8_t blue);
