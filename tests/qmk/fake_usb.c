// SPDX-License-Identifier: GPL-2.0-or-later
// QMK's USB driver, in a file of its own as there: the linker wraps calls from one object file into another only.
#include "raw_hid.h"

void usb_report(uint8_t *data, uint8_t length);

void usb_report(uint8_t *data, uint8_t length) {
#ifdef THOCK_DISABLE_RAW_HID_HANDLER
    (void)data, (void)length;
#else
    raw_hid_receive(data, length);
#endif
}
