// SPDX-License-Identifier: GPL-2.0-or-later
// The sizes and parts of the core, taken from what QMK says of this board. Each can be set in the keymap's
// config.h instead.
#pragma once

#include <stdint.h>

// One report of QMK's raw HID interface (RAW_EPSIZE).
#define THOCK_REPORT_LENGTH 32

#ifdef OLED_ENABLE
#    include "oled_driver.h"
#    define THOCK_DISPLAY_WIDTH OLED_DISPLAY_WIDTH
#    define THOCK_DISPLAY_HEIGHT OLED_DISPLAY_HEIGHT
#else
#    define THOCK_ENABLE_TEXT 0
#    define THOCK_ENABLE_BITMAP 0
#endif

#ifdef RGB_MATRIX_ENABLE
#    define THOCK_LED_COUNT RGB_MATRIX_LED_COUNT
#else
#    define THOCK_ENABLE_LIGHTS 0
#endif

// 2.5 KiB of RAM on an ATmega32U4: no room for two pictures.
#ifdef __AVR__
#    ifndef THOCK_ENABLE_BITMAP
#        define THOCK_ENABLE_BITMAP 0
#    endif
#    ifndef THOCK_RING_SIZE
#        define THOCK_RING_SIZE 16
#    endif
#endif

// raw_hid_send() may wait for the host: at most one KEY frame in a turn of the main loop.
#ifndef THOCK_FRAMES_PER_TASK
#    define THOCK_FRAMES_PER_TASK 1
#endif

// Keys may be kept from the computer only where the person can see that they are.
#ifndef THOCK_ENABLE_CAPTURE
#    if defined(OLED_ENABLE) || defined(RGB_MATRIX_ENABLE)
#        define THOCK_ENABLE_CAPTURE 1
#    endif
#endif

#if defined(THOCK_ALL_REPORTS) && defined(THOCK_VIA_CHANNEL)
#    error "THOCK_ALL_REPORTS needs no THOCK_VIA_CHANNEL"
#endif

// The module must see VIA's own commands: Vial does not show them, nor does VIA's custom channel. It costs 0.9 KiB of
// flash; a keymap on AVR that has not so much left sets it to 0.
#if defined(VIA_ENABLE) && (defined(THOCK_ALL_REPORTS) || (!defined(VIAL_ENABLE) && !defined(THOCK_VIA_CHANNEL)))
#    ifndef THOCK_ENABLE_VIA_FORM
#        define THOCK_ENABLE_VIA_FORM 1
#    endif
#endif

// VIA's custom channel has no place for reports that nobody asked for.
#ifdef THOCK_VIA_CHANNEL
#    undef THOCK_ENABLE_POLL
#    define THOCK_ENABLE_POLL 1
#endif
