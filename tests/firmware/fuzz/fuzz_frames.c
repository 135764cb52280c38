/* SPDX-License-Identifier: Apache-2.0
 * Frames that suit the board, frames that nearly do, and noise. */
#include "fuzz.h"

uint16_t crc_of(const uint8_t *data, unsigned length)
{
    static uint16_t table[256];
    uint16_t crc = 0xFFFF;

    if (table[1] == 0) {
        for (unsigned byte = 0; byte < 256; byte++) {
            uint32_t value = byte << 8;
            for (int bit = 0; bit < 8; bit++) {
                value = value & 0x8000 ? value << 1 ^ 0x1021 : value << 1;
            }
            table[byte] = (uint16_t)value;
        }
    }
    for (unsigned i = 0; i < length; i++) {
        crc = (uint16_t)((uint32_t)crc << 8 ^ table[(crc >> 8 ^ data[i]) & 0xFF]);
    }
    return crc;
}

static void make_crc_right(uint8_t *report, unsigned length)
{
    uint16_t crc = crc_of(report, length - 2);

    report[length - 2] = (uint8_t)crc;
    report[length - 1] = (uint8_t)(crc >> 8);
}

static uint8_t plausible_lights(const thock_config_t *config, uint8_t *payload, uint8_t room)
{
    payload[0] = byte_below(6);
    if (payload[0] == 2) {
        payload[1] = byte_below(config->led_count + 2u);
        payload[2] = byte_below(64) == 0;
        return (uint8_t)(3 + 3 * byte_below(room / 3u));
    }
    if (payload[0] == 4) { /* keys: row, column and a colour each */
        return (uint8_t)(1 + 5 * byte_below(room / 5u + 1));
    }
    payload[1] = byte_below(4);
    return payload[0] == 1 ? 5 : 1;
}

/* A payload that often, but not always, suits its type and the board. */
static uint8_t plausible_payload(const thock_config_t *config, uint8_t type, uint8_t *payload, uint8_t room)
{
    uint8_t length = byte_below(room + 1u);

    for (uint8_t i = 0; i < room; i++) {
        payload[i] = (uint8_t)any();
    }
    switch (type) {
    case HELLO:
        payload[4] = byte_below(3);
        payload[5] = byte_below(3);
        return 6;
    case TEXT:
        payload[0] = byte_below(config->panel_height / 8u + 2);
        payload[1] = byte_below(config->panel_width / 6u + 2);
        for (uint8_t i = 2; i < room; i++) {
            payload[i] = (uint8_t)(0x20 + byte_below(below(64) ? 0x5F : 0x61));
        }
        return length < config->panel_width / 6 + 4 ? length : (uint8_t)(config->panel_width / 6 + 4 - payload[1]);
    case BITMAP:
        payload[0] = byte_below(config->panel_height / 8u + 2);
        payload[1] = byte_below(config->panel_width + 2u);
        return length;
    case LIGHTS:
        return plausible_lights(config, payload, room);
    case POLL:
        return below(8) == 0;
    case ACCEPT:
        payload[0] = byte_below(config->panel_height / 8u + 2);
        payload[1] = byte_below(config->panel_width / 6u + 2);
        payload[2] = byte_below(config->panel_width / 6u + 2);
        return below(8) ? 3 : length;
    case SUBSCRIBE:
        payload[0] = byte_below(below(8) == 0 ? 36 : 16);
        if (config->via_version != 0 && below(4)) {
            payload[0] |= WANT_VIA_FORM;
        }
        return 1;
    default: /* STATUS, RELEASE: one small number */
        payload[0] = byte_below(below(8) == 0 ? 18 : 6);
        return 1;
    }
}

static void make_noise(uint8_t *report, uint8_t length)
{
    for (uint8_t i = 0; i < length; i++) {
        report[i] = (uint8_t)any();
    }
    if (below(2)) { /* half of it with our magic, a quarter with a right checksum */
        report[0] = 0xE7;
        report[1] = 0x4C;
        if (below(2)) {
            make_crc_right(report, length);
        }
    }
}

void make_frame(const bench_t *bench)
{
    static const uint8_t FREQUENT[] = {SUBSCRIBE, SUBSCRIBE, TEXT, TEXT, BITMAP, BITMAP, LIGHTS, STATUS, POLL, ACCEPT};
    const thock_config_t *config = &bench->core->config;
    uint8_t *report = bench->report;
    uint8_t length = config->report_length;
    uint8_t type = below(8) ? FREQUENT[below(sizeof FREQUENT)] : byte_below(16);
    uint32_t way = below(16);

    if (way == 0) {
        make_noise(report, length);
        return;
    }
    memset(report, 0, length);
    report[0] = 0xE7;
    report[1] = 0x4C;
    report[2] = (uint8_t)(1 << 4 | type);
    report[3] = below(64) ? (uint8_t)(1 + (below(64) == 0)) : (uint8_t)any();
    report[4] = (uint8_t)any();
    report[5] = (uint8_t)(below(4) << 6 | plausible_payload(config, type, report + 6, (uint8_t)(length - 8)));
    if (type == RELEASE && below(8) != 0) {
        report[6] &= 7; /* few releases end the subscription that the other frames need */
    }
    make_crc_right(report, length);
    if (way < 5) { /* mutated; in half of them the checksum is made right again */
        for (uint32_t changes = 1 + below(4); changes != 0; changes--) {
            report[below(length)] ^= (uint8_t)(1u << below(8));
        }
        if (way < 3) {
            make_crc_right(report, length);
        }
    }
}

bool is_ours(const bench_t *bench)
{
    const uint8_t *report = bench->report;
    uint8_t length = bench->core->config.report_length;

    return report[0] == 0xE7 && report[1] == 0x4C && (report[5] & 0x3F) <= length - 8 &&
           crc_of(report, length - 2u) == (report[length - 2] | report[length - 1] << 8);
}
