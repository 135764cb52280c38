// SPDX-License-Identifier: GPL-2.0-or-later
// QMK's OLED driver as far as the module sees it: a buffer in which blocks get dirty, one of which goes to the panel in
// each turn, and a time-out that starts anew with every change (drivers/oled/oled_driver.c).
#include "fake_oled.h"

#include <stdlib.h>
#include <string.h>

#include "oled_driver.h"
#include "timer.h"

#define OLED_BLOCKS 16

static uint8_t  oled_buffer[OLED_BYTES];
uint8_t         fake_oled_panel[OLED_BYTES];
static unsigned oled_cursor, oled_dirty;
static bool     oled_lit = true;
bool            fake_oled_turned;
static uint32_t oled_timeout = 60000;
static unsigned in_oled_task_writes;
uint8_t         fake_oled_own_screen; // what the board's own oled_task_kb draws; 0: nothing

static unsigned width(void) {
    return fake_oled_turned ? OLED_DISPLAY_HEIGHT : OLED_DISPLAY_WIDTH;
}

uint8_t oled_max_lines(void) {
    return (uint8_t)(OLED_BYTES * 8 / width() / 8);
}

static void oled_put(unsigned index, uint8_t byte) {
    if (index >= OLED_BYTES) {
        abort();
    }
    if (oled_buffer[index] != byte) {
        oled_buffer[index] = byte;
        oled_dirty |= 1u << (index / (OLED_BYTES / OLED_BLOCKS));
    }
}

void oled_clear(void) {
    memset(oled_buffer, 0, sizeof oled_buffer);
    oled_dirty = (1u << OLED_BLOCKS) - 1;
}

void oled_set_cursor(uint8_t col, uint8_t line) {
    oled_cursor = line * width() + col * 6u;
}

void oled_write_raw(const char *data, uint16_t size) {
    in_oled_task_writes++;
    for (unsigned i = 0; i < size; i++) {
        oled_put(oled_cursor + i, (uint8_t)data[i]);
    }
}

bool oled_on(void) {
    oled_timeout = timer_read32() + 60000;
    oled_lit     = true;
    return true;
}

bool oled_off(void) {
    oled_lit = false;
    return true;
}

bool is_oled_on(void) {
    return oled_lit;
}

void fake_oled_task(void) {
    in_oled_task_writes = 0;
    oled_set_cursor(0, 0);
    if (oled_task_user() && fake_oled_own_screen != 0) {
        for (unsigned i = 0; i < OLED_BYTES; i++) {
            oled_put(i, fake_oled_own_screen);
        }
    }
    if (in_oled_task_writes > 4) {
        abort(); // the work of one call must stay bounded
    }
    for (unsigned block = 0; block < OLED_BLOCKS; block++) {
        if (oled_dirty >> block & 1) {
            unsigned size = OLED_BYTES / OLED_BLOCKS;
            oled_on();
            memcpy(fake_oled_panel + block * size, oled_buffer + block * size, size);
            oled_dirty &= ~(1u << block);
            break; // OLED_UPDATE_PROCESS_LIMIT is 1
        }
    }
    if (oled_lit && (int32_t)(timer_read32() - oled_timeout) >= 0) {
        oled_off();
    }
}
