// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "oled_driver.h"

#define OLED_BYTES (OLED_DISPLAY_WIDTH * OLED_DISPLAY_HEIGHT / 8)

extern uint8_t fake_oled_panel[OLED_BYTES];
extern bool    fake_oled_turned;
extern uint8_t fake_oled_own_screen;

void fake_oled_task(void);
