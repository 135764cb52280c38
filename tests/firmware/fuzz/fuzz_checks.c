/* SPDX-License-Identifier: Apache-2.0
 * What must always hold. */
#include "fuzz.h"

bool is_polled(const bench_t *bench)
{
    return bench->core->config.features & THOCK_FEATURE_POLL;
}

void check_key_frame(const bench_t *bench, const uint8_t *report, uint8_t seq)
{
    unsigned length = report[5] & 0x3F;
    unsigned events = (length - 3) / 7;

    CHECK(bench->core->client != 0 && report[3] == bench->core->client);
    CHECK(report[4] == seq);
    CHECK(length == 3 + 7 * events && events >= 1 && events <= 3);
    CHECK(!bench->via_form || length <= bench->core->config.report_length - 10u);
    CHECK((report[6] | report[7] << 8) == bench->next_index);
    CHECK(report[8] == bench->dropped);
    for (unsigned event = 0; event < events; event++) {
        uint8_t kind = report[9 + 7 * event];

        CHECK(kind <= 0x11 && (kind & 0x0F) <= 7 && (kind < 0x10 || kind >> 1 == 8));
    }
}

/* Its events have left the ring. */
void count_key_frame(bench_t *bench, const uint8_t *report)
{
    bench->next_key_seq++;
    bench->next_index = (uint16_t)(bench->next_index + ((report[5] & 0x3F) - 3) / 7);
    bench->dropped = 0;
}

#define UNCHANGED(member) CHECK(memcmp(&before->member, &core->member, sizeof core->member) == 0)

static void check_output_untouched(const thock_t *before, const thock_t *core, bool done, uint8_t type)
{
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

/* Between two states of one core: a frame of this type may have changed only what belongs to it. */
void check_untouched(const thock_t *before, const thock_t *core, bool done, uint8_t type)
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
    UNCHANGED(began_ms);
    if (!done || type != POLL) {
        UNCHANGED(ring);
        UNCHANGED(ring_head);
        UNCHANGED(ring_count);
        UNCHANGED(first_index);
    }
    CHECK(!core->capturing || before->capturing); /* no frame begins a capture */
    if (!done || type != SUBSCRIBE) {
        UNCHANGED(capturing);
    }
    if (!done || (type != ACCEPT && type != TEXT && type != BITMAP && type != RELEASE && type != SUBSCRIBE)) {
        UNCHANGED(offer_count);
    }
    check_output_untouched(before, core, done, type);
}

bool press_waits(const bench_t *bench)
{
    const thock_t *core = bench->core;

    for (unsigned i = 0; i < core->ring_count; i++) {
        const uint8_t *event = core->ring[(core->ring_head + i) % THOCK_RING_SIZE];

        if ((event[0] & 0x0F) == 1 || ((event[0] & 0x0F) == 3 && event[1] >= 16)) {
            return true;
        }
    }
    return false;
}

void check_consistent(const bench_t *bench)
{
    const thock_t *core = bench->core;
    unsigned cells = core->host_width / 6u * (core->host_height / 8u);
    unsigned bytes = core->host_width * (core->host_height / 8u);

    CHECK(core->ring_head < THOCK_RING_SIZE && core->ring_count <= THOCK_RING_SIZE);
    CHECK(core->client != 0 || (core->ring_count == 0 && core->events == 0 && core->status == THOCK_IDLE));
    CHECK(core->client != 0 || (!thock_display_taken(core) && !core->capturing && core->offer_count == 0));
    CHECK(core->capturing == bench->capturing && core->offer_count == bench->offered);
    CHECK(core->typed_since == bench->typed_since);
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

void fetch_dirty_pages(bench_t *bench)
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
void check_panel(bench_t *bench)
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

void check_leds(const bench_t *bench)
{
    uint8_t rgb[3];
    uint16_t count = bench->core->config.led_count;

    CHECK(!thock_led_color(bench->core, count, bench->now, rgb));
    CHECK(!thock_led_color(bench->core, 0xFFFF, bench->now, rgb));
    for (uint16_t led = 0; led < count; led++) {
        (void)thock_led_color(bench->core, led, bench->now, rgb);
    }
}
