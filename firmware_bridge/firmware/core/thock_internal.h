/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
 * Shared by the core's own files; a board includes thock.h only. */
#ifndef THOCK_INTERNAL_H
#define THOCK_INTERNAL_H

#include "thock.h"

#ifdef __AVR__
/* On AVR constant tables stay in RAM unless they are read with their own instruction. */
#include <avr/pgmspace.h>
#define THOCK_FLASH PROGMEM
#define THOCK_READ(place) pgm_read_byte(place)
#else
#define THOCK_FLASH
#define THOCK_READ(place) (*(place))
#endif

#define THOCK_VERSION 1
#define THOCK_TIMEOUT_MS 3000u
#define THOCK_VIA_VERSION 0x01 /* VIA's question for its version, with which every program begins */
#define THOCK_HEAD_BYTES 6
#define THOCK_FRAME_OVERHEAD 8
#define THOCK_FLAG_FIRST 0x80
#define THOCK_FLAG_LAST 0x40
#define THOCK_LENGTH_MASK 0x3F

enum {
    THOCK_TYPE_HELLO = 0, /* from the host; CAPS from the keyboard */
    THOCK_TYPE_SUBSCRIBE = 1,
    THOCK_TYPE_KEY = 2,
    THOCK_TYPE_TEXT = 3,
    THOCK_TYPE_BITMAP = 4,
    THOCK_TYPE_LIGHTS = 5,
    THOCK_TYPE_STATUS = 6,
    THOCK_TYPE_RELEASE = 7,
    THOCK_TYPE_ACK = 8,
    THOCK_TYPE_NAK = 9,
    THOCK_TYPE_POLL = 10,
    THOCK_TYPE_ACCEPT = 11
};

/* Bits of SUBSCRIBE that are not features of the same number; KEYS and MACROS are. */
enum { THOCK_WANT_CAPTURE = 4, THOCK_WANT_ACCEPT = 8, THOCK_WANT_VIA_FORM = 16 };

/* The kind byte of an event: bit 0 pressed, bits 3..1 one of these, bit 4 captured. */
enum { THOCK_EVENT_KEY = 0 << 1, THOCK_EVENT_MACRO = 1 << 1, THOCK_EVENT_CAPTURE = 2 << 1, THOCK_EVENT_ACCEPT = 3 << 1 };
#define THOCK_EVENT_CAPTURED 0x10
#define THOCK_FIRST_OWN_MACRO 16 /* macros of the keymap, which may type; below are the companion keys */

enum {
    THOCK_DONE = 0, /* not on the wire: the frame gets ACK */
    THOCK_NAK_VERSION = 1,
    THOCK_NAK_TYPE = 2,
    THOCK_NAK_LENGTH = 3,
    THOCK_NAK_RANGE = 4,
    THOCK_NAK_BUSY = 5,
    THOCK_NAK_NOT_SUBSCRIBED = 6,
    THOCK_NAK_UNSUPPORTED = 7
};

enum { THOCK_SHOWN_NOTHING = 0, THOCK_SHOWN_TEXT = 1, THOCK_SHOWN_BITMAP = 2 };

/* A frame whose magic, length and CRC were found right. */
typedef struct {
    uint8_t version;
    uint8_t type;
    uint8_t client;
    uint8_t seq;
    uint8_t flags;
    uint8_t length;
    const uint8_t *payload;
} thock_frame_t;

/* thock_wire.c: `report` and its `length` in bytes. */
bool thock_parse(const uint8_t *report, uint8_t length, thock_frame_t *frame);
void thock_frame_begin(uint8_t *report, uint8_t length, uint8_t type, uint8_t client, uint8_t seq);
void thock_frame_end(uint8_t *report, uint8_t length, uint8_t payload_length);
/* Give a whole frame of at most `length` - 10 bytes of payload VIA form. */
void thock_put_in_via_form(uint8_t *report, uint8_t length, uint16_t via_version);
void thock_put_u16(uint8_t *place, uint16_t value);
uint16_t thock_get_u16(const uint8_t *place);

/* thock_caps.c: what can be offered of the features in `config`; CAPS as the answer to HELLO, in `reply`. */
uint16_t thock_possible_features(const thock_config_t *config, const thock_hooks_t *hooks);
void thock_answer_hello(thock_t *core, const thock_frame_t *frame);

/* Each takes a frame of its type from the subscribed client and gives THOCK_DONE or a NAK reason. */
uint8_t thock_text(thock_t *core, const thock_frame_t *frame);
uint8_t thock_bitmap(thock_t *core, const thock_frame_t *frame);
uint8_t thock_lights(thock_t *core, const thock_frame_t *frame);
uint8_t thock_set_status(thock_t *core, const thock_frame_t *frame);
uint8_t thock_offer(thock_t *core, const thock_frame_t *frame);

/* Back to how the board was before a host came; harmless where the board has no such part. */
void thock_events_reset(thock_t *core);
void thock_display_reset(thock_t *core);
void thock_lights_reset(thock_t *core);
void thock_capture_reset(thock_t *core);
void thock_offer_reset(thock_t *core);

/* A key was pressed: the picture is about the text before it, and so is what was offered. */
void thock_offer_outdated(thock_t *core, uint16_t keycode);

/* Another picture was completed: it knows of all keys but those in the ring. */
void thock_offer_renewed(thock_t *core);

/* thock_events.c: whether the ring holds a press of a key or of a macro of the keymap. */
bool thock_press_waits(const thock_t *core);

/* thock_others.c. Whether events wait for the sake of other programs. */
bool thock_events_held(const thock_t *core, uint32_t now_ms);
/* At the beginning of whatever may send. */
void thock_others_task(thock_t *core, uint32_t now_ms);
/* The host is forgotten and nothing is answered any more. */
void thock_others_forget(thock_t *core);
#if THOCK_ENABLE_VIA_FORM
/* Whether frames for this client have VIA form. */
bool thock_wants_via_form(const thock_t *core, uint8_t client);
/* Whether a frame of this type is not answered, and none sent. */
bool thock_is_mute(const thock_t *core, uint8_t type, uint32_t now_ms);
/* The way out for every frame; false: no room now. */
bool thock_send(thock_t *core, const uint8_t *report);
/* The subscription ended. */
void thock_others_reset(thock_t *core);
#else
#define thock_wants_via_form(core, client) ((void)(core), (void)(client), false)
#define thock_is_mute(core, type, now_ms) ((void)(core), (void)(type), (void)(now_ms), false)
#define thock_send(core, report) ((core)->hooks->send((core)->hooks->context, report, (core)->config.report_length))
#define thock_others_reset(core) ((void)(core))
#endif

bool thock_display_fits(const thock_config_t *config);
void thock_status_changed(thock_t *core);
void thock_events_send(thock_t *core, uint32_t now_ms);

/* Put an event into the ring for a client that wants this kind; `spare` places stay free. THOCK_ENABLE_EVENTS. */
bool thock_put_event(thock_t *core, uint8_t wanted, uint8_t spare, uint8_t kind, uint8_t row, uint8_t column,
                     uint16_t keycode, uint32_t now_ms);
/* Make `report` a KEY frame with the oldest events and take them off the ring; false: there are none. THOCK_ENABLE_POLL. */
bool thock_take_events(thock_t *core, uint8_t *report, uint8_t seq);

#if THOCK_ENABLE_TEXT
extern const uint8_t thock_font[95][5];
#endif
#if THOCK_HAS_DISPLAY && THOCK_ENABLE_STATUS
extern const uint8_t thock_status_glyphs[5][6];
#endif

#endif
