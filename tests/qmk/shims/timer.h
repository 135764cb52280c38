// SPDX-License-Identifier: GPL-2.0-or-later
// Shim: see README.md in this folder.
#pragma once

#include <stdint.h>

uint32_t timer_read32(void);
uint32_t timer_elapsed32(uint32_t last);
