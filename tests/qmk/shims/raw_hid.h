// SPDX-License-Identifier: GPL-2.0-or-later
// Shim: see README.md in this folder.
#pragma once

#include <stdint.h>

void raw_hid_receive(uint8_t *data, uint8_t length);
void raw_hid_send(uint8_t *data, uint8_t length);

#ifdef VIA_ENABLE
#    include <stdbool.h>
bool via_command_kb(uint8_t *data, uint8_t length);
void via_custom_value_command_kb(uint8_t *data, uint8_t length);
#endif
#ifdef VIAL_ENABLE
void raw_hid_receive_kb(uint8_t *data, uint8_t length);
#endif
