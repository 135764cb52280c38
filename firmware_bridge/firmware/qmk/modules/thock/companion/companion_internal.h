// SPDX-License-Identifier: GPL-2.0-or-later
// Shared by the module's own files.
#pragma once

#include "quantum.h"
#include "community_modules.h"
#include "companion.h"
#include "thock.h"

// Numbers of macro events: the companion keys, then VIA's macros, then QMK's dynamic macro keys (docs/PROTOCOL.md).
#define COMPANION_FIRST_VIA_MACRO 16
#define COMPANION_FIRST_DYNAMIC_MACRO 144

typedef struct {
    thock_t core;
    bool    ready;
    bool    suspended;
} companion_t;

extern companion_t companion;

// companion_link.c
bool companion_send(void *context, const uint8_t *report, uint8_t length);
#ifdef RGB_MATRIX_ENABLE
uint16_t companion_led_of_key(void *context, uint8_t row, uint8_t column);
#endif
void companion_receive_one(uint32_t now);
void companion_forget_reports(void);

// companion_keys.c
void companion_type_one(void);
void companion_stop_typing(void);

// companion_output.c
void companion_panel_size(uint8_t *width, uint8_t *height);
bool companion_display_is_lit(void);
void companion_capture_key_at(uint8_t row, uint8_t column);
#ifdef THOCK_SPLIT_SYNC
void companion_split_init(void);
bool companion_tell_other_half(const uint8_t *report);
#endif

// companion_link.c, for the handler on the other half; may run in an interrupt
bool companion_store(const uint8_t *report, uint8_t length);
