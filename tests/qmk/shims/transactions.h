// SPDX-License-Identifier: GPL-2.0-or-later
// Shim: see README.md in this folder.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// QMK collects these names from the SPLIT_TRANSACTION_IDS_... macros of keyboard, keymap and modules.
enum { SPLIT_TRANSACTION_IDS_MODULE_COMPANION = 1 };

typedef void (*slave_callback_t)(uint8_t initiator2target_buffer_size, const void *initiator2target_buffer, uint8_t target2initiator_buffer_size, void *target2initiator_buffer);

void transaction_register_rpc(int8_t transaction_id, slave_callback_t callback);
bool transaction_rpc_exec(int8_t transaction_id, uint8_t initiator2target_buffer_size, const void *initiator2target_buffer, uint8_t target2initiator_buffer_size, void *target2initiator_buffer);

#define transaction_rpc_send(transaction_id, initiator2target_buffer_size, initiator2target_buffer) transaction_rpc_exec(transaction_id, initiator2target_buffer_size, initiator2target_buffer, 0, NULL)
