// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

// The split transaction that gives the other half a copy of every frame; needs module API 1.1.2.
#ifdef THOCK_SPLIT_SYNC
#    define SPLIT_TRANSACTION_IDS_MODULE_COMPANION THOCK_SPLIT_FRAME
#endif
