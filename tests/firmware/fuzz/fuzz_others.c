/* SPDX-License-Identifier: Apache-2.0
 * Other programs that talk to the keyboard, and what they may meet. */
#include "fuzz.h"

#define MUTE_MS 100u
#define HOLD_MS 3000u

unsigned long late_answers;

bool wants_via_form(const bench_t *bench, uint8_t client)
{
    return bench->via_form && bench->core->client != 0 && bench->core->client == client;
}

/* A frame with its fields where a plain one has them; valid until the next call. */
const uint8_t *plain_of(const bench_t *bench, const uint8_t *report)
{
    static uint8_t plain[THOCK_REPORT_LENGTH];
    unsigned length = bench->core->config.report_length;

    if (report[0] == 0xE7) {
        return report;
    }
    CHECK(report[0] == 0x01 && (report[1] << 8 | report[2]) == bench->core->config.via_version && report[3] == 0x4C);
    memset(plain, 0, sizeof plain);
    plain[0] = 0xE7;
    memcpy(plain + 1, report + 3, length - 5);
    return plain;
}

/* Whether a frame of this type, which comes now, counts as lost. */
bool is_muted(const bench_t *bench, uint8_t type, bool expires)
{
    bool is_young = bench->now - bench->other_at < MUTE_MS;

    if (bench->late && !(bench->link_open && !is_young)) {
        return true;
    }
    return (type != HELLO || bench->owed != 0) && !expires && wants_via_form(bench, bench->core->client) &&
           bench->others != 0 && is_young;
}

/* `report` is plain, and goes out now. */
void check_silence(const bench_t *bench, const uint8_t *report)
{
    uint32_t since = bench->now - bench->other_at;
    uint8_t type = report[2] & 0x0F;

    CHECK(!bench->late);
    if (type == HELLO || (type == NAK && report[6] == HELLO) || bench->others == 0) {
        return;
    }
    CHECK(type != KEY || is_polled(bench) || since >= HOLD_MS);
    CHECK(!wants_via_form(bench, bench->core->client) || since >= MUTE_MS);
}

/* True: the report is VIA's answer, and its time has come. */
bool is_late_answer(bench_t *bench, const uint8_t *report)
{
    if (!bench->late || report[0] != 0x01) {
        return false;
    }
    CHECK(memcmp(report, bench->late_report, bench->core->config.report_length) == 0);
    CHECK(bench->now - bench->other_at >= MUTE_MS);
    if (bench->link_open) {
        bench->late = false;
        late_answers++;
    }
    return true;
}

void forget_others_in_time(bench_t *bench)
{
    if (bench->now - bench->other_at >= HOLD_MS) {
        bench->others = 0;
    }
}

void forget_beginner(bench_t *bench)
{
    bench->via_form = false;
    if (bench->others == 1) {
        bench->others = 0;
    }
}

static void ask(bench_t *bench, uint8_t length)
{
    static const uint8_t FIRST[] = {0x01, 0x01, 0x0D, 0xE7};
    uint8_t *report = allocated(length);
    bool begins;
    bool in_use = wants_via_form(bench, bench->core->client);
    bool had_late = bench->late;

    for (uint8_t i = 0; i < length; i++) {
        report[i] = (uint8_t)any();
    }
    report[0] = below(8) ? FIRST[below(sizeof FIRST)] : (uint8_t)any();
    begins = report[0] == 0x01;
    bench->late = thock_other_request(bench->core, report, length, bench->now);
    if (in_use || !begins) {
        bench->others = begins && bench->others != 2 ? 1 : 2;
        bench->other_at = bench->now;
        bench->owed = in_use ? 0 : bench->owed;
    }
    CHECK(bench->owed == (bench->core->reply_waits ? 1u : 0u));
    /* Two must not wait, and only of a young frame; most of those are of this very millisecond. */
    CHECK(!bench->late || (begins && in_use && !had_late && length == bench->core->config.report_length &&
                           bench->now - bench->sent_at < 50));
    if (bench->late) {
        memcpy(bench->late_report, report, length);
        bench->late_report[1] = (uint8_t)(bench->core->config.via_version >> 8);
        bench->late_report[2] = (uint8_t)bench->core->config.via_version;
    }
    free(report);
}

void others_ask(bench_t *bench)
{
    uint8_t length = bench->core->config.report_length;

    ask(bench, below(8) ? length : (uint8_t)(1 + byte_below(length)));
    while (below(2)) {
        ask(bench, length);
    }
}
