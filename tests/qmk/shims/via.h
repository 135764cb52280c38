// SPDX-License-Identifier: GPL-2.0-or-later
// Shim: see README.md in this folder.
#pragma once

#define VIA_PROTOCOL_VERSION 0x000C
