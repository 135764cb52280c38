/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
 * Frames: docs/PROTOCOL.md, section Frame. */
#include "thock_internal.h"

#include <string.h>

/* CRC-16/CCITT-FALSE: polynomial 1021, start FFFF, no reflection, no final XOR (check value 29B1). */
static uint16_t crc16(const uint8_t *data, uint8_t length)
{
    uint16_t crc = 0xFFFFu;
    for (uint8_t i = 0; i < length; i++) {
        /* The eight shifts of one byte at once: x^16 = x^12 + x^5 + 1. */
        uint8_t x = (uint8_t)((crc >> 8) ^ data[i]);
        x = (uint8_t)(x ^ (x >> 4));
        crc = (uint16_t)((uint16_t)(crc << 8) ^ (uint16_t)((uint16_t)x << 12) ^ (uint16_t)((uint16_t)x << 5) ^ x);
    }
    return crc;
}

uint16_t thock_get_u16(const uint8_t *place)
{
    return (uint16_t)(place[0] | (uint16_t)((uint16_t)place[1] << 8));
}

void thock_put_u16(uint8_t *place, uint16_t value)
{
    place[0] = (uint8_t)value;
    place[1] = (uint8_t)(value >> 8);
}

bool thock_parse(const uint8_t *report, uint8_t length, thock_frame_t *frame)
{
    uint8_t checked = (uint8_t)(length - 2);

    if (report[0] != 0xE7 || report[1] != 0x4C) {
        return false;
    }
    frame->length = report[5] & THOCK_LENGTH_MASK;
    if (frame->length > length - THOCK_FRAME_OVERHEAD) {
        return false;
    }
    if (crc16(report, checked) != thock_get_u16(report + checked)) {
        return false;
    }
    frame->version = report[2] >> 4;
    frame->type = report[2] & 0x0F;
    frame->client = report[3];
    frame->seq = report[4];
    frame->flags = report[5] & (THOCK_FLAG_FIRST | THOCK_FLAG_LAST);
    frame->payload = report + THOCK_HEAD_BYTES;
    return true;
}

void thock_frame_begin(uint8_t *report, uint8_t length, uint8_t type, uint8_t client, uint8_t seq)
{
    memset(report, 0, length);
    report[0] = 0xE7;
    report[1] = 0x4C;
    report[2] = (uint8_t)(THOCK_VERSION << 4 | type);
    report[3] = client;
    report[4] = seq;
}

void thock_frame_end(uint8_t *report, uint8_t length, uint8_t payload_length)
{
    uint8_t checked = (uint8_t)(length - 2);

    /* Whatever the keyboard sends is a whole group in one frame. */
    report[5] = (uint8_t)(THOCK_FLAG_FIRST | THOCK_FLAG_LAST | payload_length);
    thock_put_u16(report + checked, crc16(report, checked));
}

#if THOCK_ENABLE_VIA_FORM
/* The first three bytes are VIA's answer to the question for its version, then comes the frame without its first byte. */
void thock_put_in_via_form(uint8_t *report, uint8_t length, uint16_t via_version)
{
    uint8_t checked = (uint8_t)(length - 2);

    memmove(report + 3, report + 1, (size_t)(checked - 3));
    report[0] = THOCK_VIA_VERSION;
    report[1] = (uint8_t)(via_version >> 8);
    report[2] = (uint8_t)via_version;
    thock_put_u16(report + checked, crc16(report, checked));
}
#endif
