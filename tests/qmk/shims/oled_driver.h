// SPDX-License-Identifier: GPL-2.0-or-later
// Shim: see README.md in this folder.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#ifndef OLED_DISPLAY_WIDTH
#    define OLED_DISPLAY_WIDTH 128
#endif
#ifndef OLED_DISPLAY_HEIGHT
#    define OLED_DISPLAY_HEIGHT 32
#endif

#if !defined(OLED_UPDATE_INTERVAL) && defined(SPLIT_KEYBOARD)
#    define OLED_UPDATE_INTERVAL 50
#endif

uint8_t oled_max_lines(void);
void    oled_clear(void);
void    oled_set_cursor(uint8_t col, uint8_t line);
void    oled_write_raw(const char *data, uint16_t size);
bool    oled_on(void);
bool    oled_off(void);
bool    is_oled_on(void);
bool    oled_task_user(void);
