/* SPDX-License-Identifier: Apache-2.0
 * Shared by the fuzzer's files. */
#ifndef FUZZ_H
#define FUZZ_H

#include "thock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HELLO, SUBSCRIBE, KEY, TEXT, BITMAP, LIGHTS, STATUS, RELEASE, ACK, NAK, POLL, ACCEPT };
enum { WANT_CAPTURE = 4, WANT_ACCEPT = 8, WANT_VIA_FORM = 16 };

/* A core, its surroundings, and what must be true of it. */
typedef struct {
    thock_t *core;
    uint8_t *report; /* of exactly report_length bytes, so that reading past it is seen */
    uint8_t *page;   /* of exactly panel_width bytes */
    uint8_t *panel;  /* what a panel shows that fetches dirty pages only */
    uint8_t *typed;  /* of exactly THOCK_ACCEPT_BYTES bytes */
    uint32_t now;
    uint32_t subscribed_at;
    uint16_t began; /* by which the board names the subscription */
    bool in_task;
    bool link_open;
    unsigned owed;       /* answers that did not go out yet */
    uint8_t owed_seq[2]; /* their numbers, the oldest first */
    uint16_t next_index;
    uint8_t next_key_seq;
    uint8_t dropped;
    bool capturing;
    uint8_t offered;  /* characters that the accept key would type */
    bool typed_since; /* a key was pressed that the picture does not know of */
    bool via_form;    /* the subscribed client asked for it */
    uint8_t others;   /* 1: another program asked for VIA's version only; 2: it talks */
    uint32_t other_at;
    uint32_t sent_at; /* of the last frame */
    bool late;        /* VIA's answer waits */
    uint8_t late_report[THOCK_REPORT_LENGTH];
} bench_t;

extern unsigned long frame_number;
extern unsigned long seed;

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: seed %lu, frame %lu: %s\n", __FILE__, __LINE__, seed, frame_number, #condition);   \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

/* fuzz_random.c */
void set_seed(unsigned long value);
uint32_t any(void);
uint32_t below(uint32_t limit);
uint8_t byte_below(uint32_t limit);
void *allocated(size_t size);

/* fuzz_frames.c: makes bench->report a frame that often, but not always, suits the board. */
void make_frame(const bench_t *bench);
bool is_ours(const bench_t *bench);
uint16_t crc_of(const uint8_t *data, unsigned length);

/* fuzz_checks.c */
bool is_polled(const bench_t *bench);
void check_key_frame(const bench_t *bench, const uint8_t *report, uint8_t seq);
void count_key_frame(bench_t *bench, const uint8_t *report);
void check_untouched(const thock_t *before, const thock_t *core, bool done, uint8_t type);
void check_consistent(const bench_t *bench);
void check_panel(bench_t *bench);
bool press_waits(const bench_t *bench);
void check_leds(const bench_t *bench);
void fetch_dirty_pages(bench_t *bench);

/* fuzz_others.c: other programs on the interface. */
extern unsigned long late_answers;
void others_ask(bench_t *bench);
bool wants_via_form(const bench_t *bench, uint8_t client);
const uint8_t *plain_of(const bench_t *bench, const uint8_t *report);
bool is_muted(const bench_t *bench, uint8_t type, bool expires);
void check_silence(const bench_t *bench, const uint8_t *report);
bool is_late_answer(bench_t *bench, const uint8_t *report);
void forget_others_in_time(bench_t *bench);
void forget_beginner(bench_t *bench); /* the subscription ended */

/* fuzz_keys.c: what a person does. */
extern unsigned long captures;
extern unsigned long accepted;
void press_keys(bench_t *bench);

#endif
