// SPDX-License-Identifier: GPL-2.0-or-later
// What a keymap or a keyboard may call or replace.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// For boards that own the raw HID hook: define THOCK_DISABLE_RAW_HID_HANDLER and give every report to one of these.

// True: the report is ours and is answered later, through raw_hid_send(). False: it belongs to someone else.
bool thock_companion_handle_command(uint8_t *data, uint8_t length);

// The same where the caller sends `data` back to the host afterwards (Vial): true: `data` is the answer now.
bool thock_companion_answer_in_place(uint8_t *data, uint8_t length);

// The same for VIA's custom channel 0x4C, inside via_custom_value_command_kb(): true: `data` is the answer now.
bool thock_companion_answer_channel(uint8_t *data, uint8_t length);

// Draws what changed, at most a few pages; for oled_task_user(). False: the display is not ours now, draw your own screen.
bool thock_companion_render_oled(void);

// Writes the 6 bytes by which the computer knows this board. The weak default folds QMK's hardware id.
void thock_companion_uid(uint8_t *uid);

// True while keys go to the computer's companion only.
bool thock_companion_capturing(void);
