/* SPDX-License-Identifier: Apache-2.0
 * Feeds the firmware core with random and mutated frames and checks what must always hold.
 *
 *     fuzz_core FRAMES [SEED]
 *
 * Built by test_core_build.py with AddressSanitizer and UndefinedBehaviorSanitizer. A broken rule prints the
 * seed and the number of the frame and exits with 1; a memory error ends the program by itself. */
#include "thock.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FRAMES_PER_BOARD 4000u

enum { HELLO, SUBSCRIBE, KEY, TEXT, BITMAP, LIGHTS, STATUS, RELEASE, ACK, NAK };

static const thock_config_t BOARDS[] = {
    {32, 128, 32, 0, 104, 63}, {32, 128, 32, 1, 16, 63}, {32, 128, 32, 2, 1, 63},  {32, 128, 32, 3, 256, 63},
    {32, 128, 64, 0, 104, 63}, {32, 128, 64, 1, 16, 63}, {32, 128, 64, 2, 9, 63},  {32, 128, 64, 3, 8, 63},
    {64, 64, 128, 0, 70, 63},  {64, 64, 128, 1, 70, 63}, {63, 128, 128, 3, 7, 63}, {32, 8, 8, 1, 1, 63},
    {32, 0, 0, 2, 0, 63},      {40, 64, 48, 0, 0, 63},   {32, 128, 32, 0, 16, 21}, {32, 40, 16, 2, 16, 42},
};
#define BOARD_COUNT (sizeof BOARDS / sizeof BOARDS[0])

typedef struct {
    thock_t *core;
    uint8_t *report; /* of exactly report_length bytes, so that reading past it is seen */
    uint8_t *page;   /* of exactly panel_width bytes */
    uint8_t *panel;  /* what a panel shows that fetches dirty pages only */
    uint32_t now;
    uint32_t subscribed_at;
    bool in_task;
    bool link_open;
    unsigned owed; /* answers that did not go out yet */
    uint16_t next_index;
    uint8_t next_key_seq;
    uint8_t dropped;
} bench_t;

static uint64_t random_state;
static unsigned long frame_number;
static unsigned long seed;
static unsigned long acks[16];
static unsigned long naks[8];
static unsigned long key_frames;

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: seed %lu, frame %lu: %s\n", __FILE__, __LINE__, seed, frame_number, #condition);   \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

/* splitmix64 (Steele, Lea, Flood 2014) */
static uint32_t any(void)
{
    uint64_t z = random_state += 0x9E3779B97F4A7C15u;

    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (uint32_t)(z >> 32);
}

static uint32_t below(uint32_t limit)
{
    return any() % limit;
}

static uint8_t byte_below(uint32_t limit)
{
    return (uint8_t)below(limit);
}

static void *allocated(size_t size)
{
    void *block = calloc(1, size != 0 ? size : 1);

    CHECK(block != NULL);
    return block;
}

static uint16_t crc_of(const uint8_t *data, unsigned length)
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

static void check_key_frame(bench_t *bench, const uint8_t *report, unsigned length)
{
    unsigned events = (length - 3) / 7;

    CHECK(bench->in_task && bench->owed == 0);
    CHECK(bench->core->client != 0 && report[3] == bench->core->client);
    CHECK(bench->now - bench->subscribed_at < 3000);
    CHECK(length == 3 + 7 * events && events >= 1 && events <= 3);
    CHECK(report[4] == bench->next_key_seq);
    CHECK((report[6] | report[7] << 8) == bench->next_index);
    CHECK(report[8] == bench->dropped);
    for (unsigned event = 0; event < events; event++) {
        CHECK(report[9 + 7 * event] <= 3);
    }
    if (bench->link_open) {
        bench->next_key_seq++;
        bench->next_index = (uint16_t)(bench->next_index + events);
        bench->dropped = 0;
        key_frames++;
    }
}

static bool take(void *context, const uint8_t *report, uint8_t length)
{
    bench_t *bench = context;
    uint8_t payload = report[5] & 0x3F;
    uint8_t type = report[2] & 0x0F;

    CHECK(length == bench->core->config.report_length);
    CHECK(report[0] == 0xE7 && report[1] == 0x4C && report[2] >> 4 == 1);
    CHECK(crc_of(report, length - 2u) == (report[length - 2] | report[length - 1] << 8));
    CHECK(payload <= length - 8);
    for (unsigned unused = 6u + payload; unused < length - 2u; unused++) {
        CHECK(report[unused] == 0);
    }
    if (type == KEY) {
        check_key_frame(bench, report, payload);
        return bench->link_open;
    }
    CHECK(type == HELLO || type == ACK || type == NAK);
    CHECK(type != HELLO || payload == 24);
    CHECK(type != NAK || (payload == 2 && report[7] >= 1 && report[7] <= 7));
    CHECK(bench->owed != 0);
    if (bench->link_open) {
        bench->owed--;
    }
    return bench->link_open;
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
        payload[0] = byte_below(5);
        if (payload[0] == 2) {
            payload[1] = byte_below(config->led_count + 2u);
            payload[2] = byte_below(64) == 0;
            return (uint8_t)(3 + 3 * byte_below(room / 3u));
        }
        payload[1] = byte_below(4);
        return payload[0] == 1 ? 5 : 1;
    default: /* SUBSCRIBE, STATUS, RELEASE: one small number */
        payload[0] = byte_below(below(8) == 0 ? 18 : type == SUBSCRIBE ? 4 : 6);
        return 1;
    }
}

static void make_frame(const bench_t *bench)
{
    static const uint8_t FREQUENT[] = {SUBSCRIBE, SUBSCRIBE, TEXT, TEXT, BITMAP, BITMAP, LIGHTS, STATUS};
    const thock_config_t *config = &bench->core->config;
    uint8_t *report = bench->report;
    uint8_t length = config->report_length;
    uint8_t type = below(8) ? FREQUENT[below(sizeof FREQUENT)] : byte_below(16);
    uint32_t way = below(16);

    if (way == 0) { /* noise, half of it with our magic, a quarter with a right checksum */
        for (uint8_t i = 0; i < length; i++) {
            report[i] = (uint8_t)any();
        }
        if (below(2)) {
            report[0] = 0xE7;
            report[1] = 0x4C;
            if (below(2)) {
                make_crc_right(report, length);
            }
        }
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

static bool is_ours(const bench_t *bench)
{
    const uint8_t *report = bench->report;
    uint8_t length = bench->core->config.report_length;

    return report[0] == 0xE7 && report[1] == 0x4C && (report[5] & 0x3F) <= length - 8 &&
           crc_of(report, length - 2u) == (report[length - 2] | report[length - 1] << 8);
}

#define UNCHANGED(member) CHECK(memcmp(&before->member, &core->member, sizeof core->member) == 0)

/* Between two states of one core: a frame of this type may have changed only what belongs to it. */
static void check_untouched(const thock_t *before, const thock_t *core, bool done, uint8_t type)
{
    UNCHANGED(config);
    UNCHANGED(uid);
    UNCHANGED(build);
    if (before->client != core->client) {
        return; /* a subscription began or ended: everything may be new */
    }
    if (!done || type != SUBSCRIBE) {
        UNCHANGED(events);
        UNCHANGED(subscribed_ms);
    }
    if (type == HELLO) {
        return;
    }
    UNCHANGED(ring);
    UNCHANGED(ring_head);
    UNCHANGED(ring_count);
    UNCHANGED(first_index);
    if (!done || (type != TEXT && type != RELEASE)) {
        UNCHANGED(text);
        UNCHANGED(text_back);
    }
    if (!done || (type != BITMAP && type != RELEASE)) {
        UNCHANGED(bitmap);
        UNCHANGED(bitmap_back);
    }
    if (!done || (type != LIGHTS && type != RELEASE)) {
        UNCHANGED(fill_on);
        UNCHANGED(fill);
        UNCHANGED(led_on);
        UNCHANGED(leds);
    }
    if (!done || (type != STATUS && type != RELEASE)) {
        UNCHANGED(status);
    }
}

static void check_consistent(const thock_t *core)
{
    unsigned cells = core->host_width / 6u * (core->host_height / 8u);
    unsigned bytes = core->host_width * (core->host_height / 8u);

    CHECK(core->ring_head < THOCK_RING_SIZE && core->ring_count <= THOCK_RING_SIZE);
    CHECK(core->client != 0 || (core->ring_count == 0 && core->events == 0 && core->status == THOCK_IDLE));
    CHECK(core->client != 0 || !thock_display_taken(core));
    CHECK(core->dirty_pages >> (core->config.panel_height / 8) == 0);
    CHECK(core->status <= THOCK_ERROR && core->shown <= 2);
    for (unsigned i = 0; i < THOCK_TEXT_CELLS; i++) {
        CHECK(core->text[i] >= 0x20 && core->text[i] <= 0x7E);
        CHECK(i < cells || core->text_back[i] == ' ');
    }
    for (unsigned i = bytes; i < THOCK_PICTURE_BYTES; i++) {
        CHECK(core->bitmap_back[i] == 0);
    }
    for (unsigned led = core->config.led_count; led < THOCK_LED_COUNT; led++) {
        CHECK(!(core->led_on[led / 8] >> led % 8 & 1));
    }
}

static void fetch_dirty_pages(bench_t *bench)
{
    uint16_t dirty = thock_display_dirty(bench->core);
    unsigned width = bench->core->config.panel_width;

    for (uint8_t page = 0; page < 16; page++) {
        if (dirty >> page & 1) {
            CHECK(thock_render_page(bench->core, page, bench->page));
            memcpy(bench->panel + page * width, bench->page, width);
        }
    }
    CHECK(thock_display_dirty(bench->core) == 0);
}

/* A panel that fetched only dirty pages shows what a whole redraw shows. */
static void check_panel(bench_t *bench)
{
    unsigned width = bench->core->config.panel_width;
    uint8_t pages = bench->core->config.panel_height / 8;

    fetch_dirty_pages(bench);
    for (uint8_t page = 0; page < pages; page++) {
        CHECK(thock_render_page(bench->core, page, bench->page));
        CHECK(memcmp(bench->panel + page * width, bench->page, width) == 0);
    }
    CHECK(!thock_render_page(bench->core, pages, bench->page));
    CHECK(!thock_render_page(bench->core, 255, bench->page));
}

static void check_leds(const bench_t *bench)
{
    uint8_t rgb[3];
    uint16_t count = bench->core->config.led_count;

    CHECK(!thock_led_color(bench->core, count, bench->now, rgb));
    CHECK(!thock_led_color(bench->core, 0xFFFF, bench->now, rgb));
    for (uint16_t led = 0; led < count; led++) {
        (void)thock_led_color(bench->core, led, bench->now, rgb);
    }
}

static void expect_new_numbers(bench_t *bench)
{
    bench->next_index = 0;
    bench->next_key_seq = 0;
    bench->dropped = 0;
}

/* The frame could be done: the board has what it speaks to. */
static bool board_has(const thock_config_t *config, uint8_t type)
{
    switch (type) {
    case TEXT:
        return config->panel_width != 0 && config->features & THOCK_FEATURE_TEXT;
    case BITMAP:
        return config->panel_width != 0 && config->features & THOCK_FEATURE_BITMAP;
    case LIGHTS:
        return config->led_count != 0 && config->features & THOCK_FEATURE_LIGHTS;
    case STATUS:
        return config->features & THOCK_FEATURE_STATUS;
    default:
        return type == HELLO || type == SUBSCRIBE || type == RELEASE;
    }
}

/* Counts what was answered; true: with ACK or CAPS. */
static bool was_done(const uint8_t *reply)
{
    uint8_t type = reply[2] & 0x0F;

    if (type == NAK) {
        naks[reply[7]]++;
    } else {
        acks[type == HELLO ? HELLO : reply[6]]++;
    }
    return type != NAK;
}

static void receive(bench_t *bench)
{
    static thock_t before;
    thock_t *core = bench->core;
    uint32_t silent = bench->now - core->subscribed_ms;
    bool expires = core->client != 0 && silent >= 3000 && silent < 0x80000000u;
    bool compare = !expires && below(16) == 0;
    bool ours = is_ours(bench);
    uint8_t version = bench->report[2] >> 4;
    uint8_t type = bench->report[2] & 0x0F;
    bool echo = version == 1 && (type == KEY || type == ACK || type == NAK);
    bool blocked = bench->owed == 1 && !bench->link_open;
    bool handled = ours && !echo && !blocked;
    bool done;

    if (compare) {
        before = *core;
    }
    if (handled) {
        bench->owed++;
    }
    CHECK(thock_receive(core, bench->report, core->config.report_length, bench->now) == ours);
    CHECK(bench->owed == (core->reply_waits ? 1u : 0u));
    done = handled && was_done(core->reply);
    CHECK(!done || board_has(&core->config, type));
    if (!thock_subscribed(core) || (expires && ours)) {
        expect_new_numbers(bench);
    }
    if (done && type == SUBSCRIBE) {
        bench->subscribed_at = bench->now;
    }
    if (compare) {
        check_untouched(&before, core, done, type);
    }
}

static void receive_wrong_length(bench_t *bench)
{
    uint8_t length = byte_below(bench->core->config.report_length);
    uint8_t *report = allocated(length);

    memcpy(report, bench->report, length);
    CHECK(!thock_receive(bench->core, report, length, bench->now));
    free(report);
}

static void press_keys(bench_t *bench)
{
    thock_t *core = bench->core;

    for (uint32_t events = below(4); events != 0; events--) {
        uint8_t count = core->ring_count;
        bool macro = below(4) == 0;
        bool wanted = core->events & (macro ? THOCK_FEATURE_MACROS : THOCK_FEATURE_KEYS);
        bool pressed = any() & 1;
        uint8_t place = (uint8_t)any();
        bool taken = macro ? thock_macro_event(core, place, pressed, bench->now)
                           : thock_key_event(core, place, (uint8_t)any(), (uint16_t)any(), pressed, bench->now);

        CHECK(taken == (wanted && count < THOCK_RING_SIZE));
        CHECK(core->ring_count == count + taken);
        if (wanted && !taken && bench->dropped < 255) {
            bench->dropped++;
        }
    }
}

static void run_task(bench_t *bench)
{
    bench->in_task = true;
    thock_task(bench->core, bench->now);
    bench->in_task = false;
    CHECK(bench->owed == (bench->core->reply_waits ? 1u : 0u));
    CHECK(!thock_subscribed(bench->core) || bench->now - bench->subscribed_at < 3000);
    if (!thock_subscribed(bench->core)) {
        expect_new_numbers(bench);
    }
}

static void let_time_pass(bench_t *bench)
{
    switch (below(512)) {
    case 0:
        bench->now += 3000;
        break;
    case 1: /* weeks; the core asks for a task at least once in 24 days */
        bench->now += any() >> 1;
        run_task(bench);
        break;
    default:
        bench->now += below(20);
    }
}

static void one_step(bench_t *bench)
{
    bench->link_open = bench->link_open ? below(64) != 0 : below(16) == 0;
    make_frame(bench);
    receive(bench);
    if (below(64) == 0) {
        receive_wrong_length(bench);
    }
    press_keys(bench);
    if (below(2)) {
        run_task(bench);
    }
    if (below(32) == 0) {
        check_consistent(bench->core);
        check_panel(bench);
        check_leds(bench);
    } else if (below(8) == 0) {
        fetch_dirty_pages(bench);
    }
    let_time_pass(bench);
}

static uint16_t any_led(void *context, uint8_t row, uint8_t column)
{
    (void)context;
    return (uint16_t)(row * 31 + column * 7); /* also numbers that no board has */
}

static void run_board(const thock_config_t *config, unsigned long frames)
{
    static const uint8_t UID[THOCK_UID_BYTES] = {1, 2, 3, 4, 5, 6};
    bench_t bench = {0};
    thock_hooks_t hooks = {take, &bench, any_led};

    bench.core = allocated(sizeof *bench.core);
    bench.report = allocated(config->report_length);
    bench.page = allocated(config->panel_width);
    bench.panel = allocated((size_t)config->panel_width * config->panel_height / 8);
    bench.now = below(2) ? any() : 0u - below(10000);
    CHECK(thock_init(bench.core, config, &hooks, UID, 1));
    for (unsigned long frame = 0; frame < frames; frame++, frame_number++) {
        one_step(&bench);
    }
    free(bench.panel);
    free(bench.page);
    free(bench.report);
    free(bench.core);
}

int main(int argc, char **argv)
{
    unsigned long total = argc > 1 ? strtoul(argv[1], NULL, 10) : 300000;

    seed = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
    random_state = seed;
    for (unsigned long board = 0; frame_number < total; board++) {
        unsigned long left = total - frame_number;
        run_board(&BOARDS[board % BOARD_COUNT], left < FRAMES_PER_BOARD ? left : FRAMES_PER_BOARD);
    }
    printf("%lu frames, %lu key frames; done by type:", frame_number, key_frames);
    for (unsigned type = HELLO; type <= RELEASE; type++) {
        printf(" %lu", acks[type]);
        CHECK(type == KEY || acks[type] != 0);
    }
    printf("; refused by reason:");
    for (unsigned reason = 1; reason <= 7; reason++) {
        printf(" %lu", naks[reason]);
        CHECK(naks[reason] != 0);
    }
    printf("\n");
    CHECK(key_frames != 0);
    return 0;
}
