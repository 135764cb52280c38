// SPDX-License-Identifier: GPL-2.0-or-later
// Reports in and out. Which hook brings them depends on who else listens: nobody, VIA or Vial.
#include "companion_internal.h"

#include <string.h>

#include "raw_hid.h"
#include "timer.h"
#ifdef THOCK_SPLIT_SYNC
#    include "split_util.h"
#endif

#define REPORT_BYTES THOCK_REPORT_LENGTH
#define TYPE_POLL 10
#define FRAME_MAGIC 0xE7
#define VIA_CUSTOM_SET_VALUE 0x07
#define VIA_CUSTOM_GET_VALUE 0x08
#define VIA_CHANNEL 0x4C
#define VIA_UNHANDLED 0xFF

// Reports that wait for housekeeping. One writer (USB, or the split interrupt on the other half), one reader.
#ifdef __AVR__
#    define INBOX_PLACES 2
#else
#    define INBOX_PLACES 4
#endif

static uint8_t          inbox[INBOX_PLACES][REPORT_BYTES];
static volatile uint8_t inbox_written; // reports ever stored, wraps
static volatile uint8_t inbox_read;    // reports ever taken, wraps

static uint8_t *answer_here; // where the answer goes while a report is answered in place

#ifdef THOCK_SPLIT_SYNC
static uint8_t frame_type(const uint8_t *report) {
    return report[2] & 0x0F;
}
#endif

bool companion_store(const uint8_t *report, uint8_t length) {
    uint8_t written = inbox_written;

    if (length != REPORT_BYTES || (uint8_t)(written - inbox_read) >= INBOX_PLACES) {
        return false;
    }
    memcpy(inbox[written % INBOX_PLACES], report, REPORT_BYTES);
    inbox_written = (uint8_t)(written + 1);
    return true;
}

void companion_forget_reports(void) {
    memset(inbox, 0, sizeof inbox);
    inbox_read = inbox_written;
}

// The core's way to the host. raw_hid_send() drops or waits as the platform likes and does not say which.
bool companion_send(void *context, const uint8_t *report, uint8_t length) {
    uint8_t copy[REPORT_BYTES];

    (void)context;
    if (answer_here != NULL) {
        memcpy(answer_here, report, length);
        return true;
    }
#ifdef THOCK_SPLIT_SYNC
    if (!is_keyboard_master()) {
        return true; // this half only listens
    }
#endif
    if (companion.suspended) {
        return false;
    }
    memcpy(copy, report, length);
    raw_hid_send(copy, length);
    return true;
}

void companion_receive_one(uint32_t now) {
    uint8_t report[REPORT_BYTES];

    if (inbox_written == inbox_read) {
        return;
    }
    memcpy(report, inbox[inbox_read % INBOX_PLACES], REPORT_BYTES);
    inbox_read = (uint8_t)(inbox_read + 1);
#ifdef THOCK_SPLIT_SYNC
    // A frame that the other half did not take is not done here either: the host asks again.
    if (is_keyboard_master() && frame_type(report) != TYPE_POLL && !companion_tell_other_half(report)) {
        return;
    }
#endif
    (void)thock_receive(&companion.core, report, REPORT_BYTES, now);
}

// A report that finds no place is lost, as on a busy wire; the host asks again.
bool thock_companion_handle_command(uint8_t *data, uint8_t length) {
    if (!companion.ready) {
        return false;
    }
    if (!thock_is_frame(&companion.core, data, length)) {
        return thock_other_request(&companion.core, data, length, timer_read32());
    }
    (void)companion_store(data, length);
    return true;
}

// The caller sends `data` back as soon as it has control again, so the frame is done here and now. That is work in
// memory only, but for the copy to the other half of a split board.
bool thock_companion_answer_in_place(uint8_t *data, uint8_t length) {
    uint8_t report[REPORT_BYTES];

    if (!companion.ready || !thock_is_frame(&companion.core, data, length)) {
        return false;
    }
    memcpy(report, data, REPORT_BYTES);
#ifdef THOCK_SPLIT_SYNC
    if (frame_type(report) != TYPE_POLL) {
        (void)companion_tell_other_half(report);
    }
#endif
    answer_here = data;
    (void)thock_receive(&companion.core, report, REPORT_BYTES, timer_read32());
    answer_here = NULL;
    return true;
}

// On the channel the first byte of a frame is VIA's command instead of ours. The CRC is that of the frame with its own
// first byte.
bool thock_companion_answer_channel(uint8_t *data, uint8_t length) {
    uint8_t command = data[0];

    if (length != REPORT_BYTES || data[1] != VIA_CHANNEL) {
        return false;
    }
    if (command != VIA_CUSTOM_SET_VALUE && command != VIA_CUSTOM_GET_VALUE) {
        return false;
    }
    data[0] = FRAME_MAGIC;
    if (!thock_companion_answer_in_place(data, length)) {
        data[0] = command;
        return false;
    }
    data[0] = command;
    return true;
}

#ifndef THOCK_DISABLE_RAW_HID_HANDLER
#    if defined(THOCK_ALL_REPORTS)

// The linker gives us what QMK's USB code hands to raw_hid_receive(), and that function under another name
// (`--wrap`, post_rules.mk). So whoever owns it, and whatever hooks it has, we see each report first.
void __real_raw_hid_receive(uint8_t *data, uint8_t length);
void __wrap_raw_hid_receive(uint8_t *data, uint8_t length);

void __wrap_raw_hid_receive(uint8_t *data, uint8_t length) {
    if (!thock_companion_handle_command(data, length)) {
        __real_raw_hid_receive(data, length);
    }
}

#    elif defined(THOCK_VIA_CHANNEL)

// via.c calls this for channels that it does not know, and sends the buffer afterwards.
void via_custom_value_command_kb(uint8_t *data, uint8_t length) {
    if (!thock_companion_answer_channel(data, length)) {
        data[0] = VIA_UNHANDLED;
    }
}

#    elif defined(VIAL_ENABLE)

// Vial calls this for commands that it does not know, and sends the buffer afterwards.
void raw_hid_receive_kb(uint8_t *data, uint8_t length) {
    if (!thock_companion_answer_in_place(data, length)) {
        data[0] = VIA_UNHANDLED;
    }
}

#    elif defined(VIA_ENABLE)

// VIA calls this before it looks itself; true: nothing is left for it to do.
bool via_command_kb(uint8_t *data, uint8_t length) {
    return thock_companion_handle_command(data, length);
}

#    else

void raw_hid_receive(uint8_t *data, uint8_t length) {
    (void)thock_companion_handle_command(data, length);
}

#    endif
#endif
