// SPDX-License-Identifier: GPL-2.0-or-later
// Shim: see README.md in this folder.
#pragma once

#include <stdint.h>

typedef struct hardware_id_t {
    uint32_t data[4];
} hardware_id_t;

hardware_id_t get_hardware_id(void);
