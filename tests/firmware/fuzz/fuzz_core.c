/* SPDX-License-Identifier: Apache-2.0
 * Feeds the firmware core with random and mutated frames and checks what must always hold.
 *
 *     fuzz_core FRAMES [SEED]
 *
 * Built by test_core_build.py with AddressSanitizer and UndefinedBehaviorSanitizer. A broken rule prints the
 * seed and the number of the frame and exits with 1; a memory error ends the program by itself. */
#include "fuzz.h"

#define FRAMES_PER_BOARD 4000u
/* All features but POLL, all, and those of a board without capture, accept key and lights of keys. A board whose VIA
 * has no version lacks VIA form. */
#define PUSHES 1791
#define POLLED 2047
#define BARE 63
#define VIA 0x0109

static const thock_config_t BOARDS[] = {
    {32, 128, 32, 0, 104, PUSHES, VIA}, {32, 128, 32, 1, 16, POLLED, 0},   {32, 128, 32, 2, 1, BARE, VIA},
    {32, 128, 32, 3, 256, PUSHES, 0},   {32, 128, 64, 0, 104, POLLED, VIA}, {32, 128, 64, 1, 16, PUSHES, VIA},
    {32, 128, 64, 2, 9, BARE, 0},       {32, 128, 64, 3, 8, PUSHES, 0},    {64, 64, 128, 0, 70, POLLED, VIA},
    {64, 64, 128, 1, 70, PUSHES, 0},    {63, 128, 128, 3, 7, PUSHES, VIA}, {32, 8, 8, 1, 1, PUSHES, VIA},
    {32, 0, 0, 2, 0, POLLED, 0},        {40, 64, 48, 0, 0, PUSHES, VIA},   {32, 128, 32, 0, 16, 21, 0},
    {33, 40, 16, 2, 16, 1066, VIA},
};
#define BOARD_COUNT (sizeof BOARDS / sizeof BOARDS[0])

unsigned long frame_number;
unsigned long seed;
static unsigned long acks[16];
static unsigned long naks[8];
static unsigned long key_frames;

static bool take(void *context, const uint8_t *sent, uint8_t length)
{
    bench_t *bench = context;
    const uint8_t *report;
    uint8_t payload;
    uint8_t type;

    CHECK(length == bench->core->config.report_length);
    if (is_late_answer(bench, sent)) {
        return bench->link_open;
    }
    CHECK(crc_of(sent, length - 2u) == (sent[length - 2] | sent[length - 1] << 8));
    report = plain_of(bench, sent);
    payload = report[5] & 0x3F;
    type = report[2] & 0x0F;
    CHECK(report[0] == 0xE7 && report[1] == 0x4C && report[2] >> 4 == 1);
    CHECK(payload <= length - (report == sent ? 8 : 10));
    check_silence(bench, report);
    if (bench->link_open) {
        bench->sent_at = bench->now;
    }
    for (unsigned unused = 6u + payload; unused < length - 2u; unused++) {
        CHECK(report[unused] == 0);
    }
    if (type == KEY && !is_polled(bench)) {
        CHECK(bench->in_task && bench->owed == 0);
        CHECK(bench->now - bench->subscribed_at < 3000);
        CHECK((report != sent) == bench->via_form);
        check_key_frame(bench, report, bench->next_key_seq);
        if (bench->link_open) {
            count_key_frame(bench, report);
            key_frames++;
        }
        return bench->link_open;
    }
    CHECK(type == HELLO || type == ACK || type == NAK || type == KEY);
    CHECK(type != HELLO || payload == 24);
    CHECK(type != ACK || payload == (report[6] == SUBSCRIBE ? 3 : 1));
    CHECK(type != NAK || (payload == 2 && report[7] >= 1 && report[7] <= 7));
    CHECK(bench->owed != 0 && report[4] == bench->owed_seq[0]);
    if (bench->link_open) {
        bench->owed--;
        bench->owed_seq[0] = bench->owed_seq[1];
    }
    return bench->link_open;
}

/* What the model forgets when there is no subscription, or another one. */
static void expect_new_numbers(bench_t *bench)
{
    bench->next_index = 0;
    bench->next_key_seq = 0;
    bench->dropped = 0;
    bench->capturing = false;
    bench->offered = 0;
    forget_beginner(bench);
}

/* The frame could be done: the board has what it speaks to. */
static bool board_has(const thock_config_t *config, uint8_t type)
{
    static const uint16_t NEEDED[] = {[TEXT] = THOCK_FEATURE_TEXT,     [BITMAP] = THOCK_FEATURE_BITMAP,
                                      [LIGHTS] = THOCK_FEATURE_LIGHTS, [STATUS] = THOCK_FEATURE_STATUS,
                                      [POLL] = THOCK_FEATURE_POLL,     [ACCEPT] = THOCK_FEATURE_ACCEPT};

    if (type == HELLO || type == SUBSCRIBE || type == RELEASE) {
        return true;
    }
    if ((type == TEXT || type == BITMAP || type == ACCEPT) && config->panel_width == 0) {
        return false;
    }
    return type <= ACCEPT && (type != LIGHTS || config->led_count != 0) && config->features & NEEDED[type];
}

/* Counts what was answered; true: with ACK, CAPS or events. */
static bool was_done(const uint8_t *reply)
{
    uint8_t type = reply[2] & 0x0F;

    if (type == NAK) {
        naks[reply[7]]++;
    } else if (type == KEY) {
        acks[POLL]++;
    } else {
        acks[type == HELLO ? HELLO : reply[6]]++;
    }
    return type != NAK;
}

/* What a frame that was done changes in the model. */
static void follow(bench_t *bench, uint8_t type, const uint8_t *reply)
{
    const thock_t *core = bench->core;
    const uint8_t *payload = bench->report + 6;
    bool last = bench->report[5] & 0x40;

    if (type == SUBSCRIBE) {
        bench->subscribed_at = bench->now;
        CHECK((reply[7] | reply[8] << 8) == bench->began);
        bench->via_form = payload[0] & WANT_VIA_FORM;
        bench->capturing = bench->capturing && payload[0] & WANT_CAPTURE;
    }
    if (type == ACCEPT) {
        bench->offered = payload[2];
        CHECK(payload[2] == 0 || (core->shown == 1 && !bench->typed_since));
    } else if ((type == SUBSCRIBE && !(payload[0] & WANT_ACCEPT)) || ((type == TEXT || type == BITMAP) && last) ||
               (type == RELEASE && payload[0] & 9)) {
        bench->offered = 0;
    }
    if ((type == TEXT || type == BITMAP) && last) {
        bench->typed_since = bench->typed_since && press_waits(bench);
    }
    if ((reply[2] & 0x0F) == KEY) {
        check_key_frame(bench, reply, bench->report[4]);
        count_key_frame(bench, reply);
        key_frames++;
    }
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
    bool handled = ours && !echo && !blocked && !is_muted(bench, type, expires);
    bool via_form;
    const uint8_t *reply;
    bool done;

    if (compare) {
        before = *core;
    }
    if (expires && ours) {
        expect_new_numbers(bench);
    }
    if (core->client == 0 || (expires && ours)) {
        bench->began = (uint16_t)bench->now;
    }
    via_form = wants_via_form(bench, bench->report[3]);
    if (handled) {
        bench->owed_seq[bench->owed++] = bench->report[4];
    }
    CHECK(thock_receive(core, bench->report, core->config.report_length, bench->now) == ours);
    CHECK(bench->owed == (core->reply_waits ? 1u : 0u));
    reply = handled ? plain_of(bench, core->reply) : NULL;
    done = handled && was_done(reply);
    CHECK(!done || board_has(&core->config, type));
    if (done) {
        follow(bench, type, reply);
    }
    via_form = via_form || wants_via_form(bench, bench->report[3]);
    CHECK(!handled || (reply != core->reply) == (via_form && (reply[2] & 0x0F) != HELLO));
    if (!thock_subscribed(core)) {
        expect_new_numbers(bench);
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

static void run_task(bench_t *bench)
{
    forget_others_in_time(bench);
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
    if (below(512) == 0) { /* seldom: each holds the events for hundreds of steps */
        others_ask(bench);
    }
    if (below(2)) {
        run_task(bench);
    }
    if (below(32) == 0) {
        check_consistent(bench);
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
    bench.typed = allocated(THOCK_ACCEPT_BYTES);
    bench.now = below(2) ? any() : 0u - below(10000);
    CHECK(thock_init(bench.core, config, &hooks, UID, 1));
    for (unsigned long frame = 0; frame < frames; frame++, frame_number++) {
        one_step(&bench);
    }
    free(bench.typed);
    free(bench.panel);
    free(bench.page);
    free(bench.report);
    free(bench.core);
}

int main(int argc, char **argv)
{
    unsigned long total = argc > 1 ? strtoul(argv[1], NULL, 10) : 300000;

    seed = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
    set_seed(seed);
    for (unsigned long board = 0; frame_number < total; board++) {
        unsigned long left = total - frame_number;
        run_board(&BOARDS[board % BOARD_COUNT], left < FRAMES_PER_BOARD ? left : FRAMES_PER_BOARD);
    }
    printf("%lu frames, %lu key frames, %lu captures, %lu times typed, %lu late answers; done by type:", frame_number,
           key_frames, captures, accepted, late_answers);
    for (unsigned type = HELLO; type <= ACCEPT; type++) {
        printf(" %lu", acks[type]);
        CHECK(type == KEY || type == ACK || type == NAK || acks[type] != 0);
    }
    printf("; refused by reason:");
    for (unsigned reason = 1; reason <= 7; reason++) {
        printf(" %lu", naks[reason]);
        CHECK(naks[reason] != 0);
    }
    printf("\n");
    CHECK(key_frames != 0 && captures != 0 && accepted != 0 && late_answers != 0);
    return 0;
}
