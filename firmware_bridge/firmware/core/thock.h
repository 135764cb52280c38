/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
 *
 * Thock firmware core: the keyboard's end of docs/PROTOCOL.md in portable C99.
 *
 * No allocation, no operating system, no globals: all state is in one thock_t that the board owns.
 * Call everything from one context (the main loop); the send hook must not call back into the core.
 * `now_ms` is the board's 32-bit millisecond clock. It may wrap. A value that lies behind an earlier
 * one counts as no time passed; thock_task() must run at least once in 24 days.
 *
 * The display is pulled: the core keeps the pictures and says which pages of the panel changed; the
 * board fetches a page when it has time for its bus. Frames draw into a back picture that nobody sees;
 * the frame with LAST copies it to the visible one. A group that never got its LAST is forgotten when
 * the next group begins with FIRST: a TEXT group then starts from an empty picture, a BITMAP group
 * from the bitmap that was completed last.
 *
 * LEDs are pulled too: the board asks for every LED whether an overlay colour lies over its own. */
#ifndef THOCK_H
#define THOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "thock_config.h"

#ifdef __cplusplus
extern "C" {
#endif

#define THOCK_PICTURE_BYTES (THOCK_DISPLAY_WIDTH * THOCK_DISPLAY_HEIGHT / 8)
#define THOCK_TEXT_CELLS (THOCK_DISPLAY_WIDTH * THOCK_DISPLAY_HEIGHT / 48)
#define THOCK_EVENT_BYTES 7
#define THOCK_UID_BYTES 6
#define THOCK_NO_LED 0xFFFFu
#define THOCK_ACCEPT_BYTES (THOCK_DISPLAY_WIDTH > THOCK_DISPLAY_HEIGHT ? THOCK_DISPLAY_WIDTH / 6 : THOCK_DISPLAY_HEIGHT / 6)

enum {
    THOCK_FEATURE_KEYS = 1,
    THOCK_FEATURE_MACROS = 2,
    THOCK_FEATURE_TEXT = 4,
    THOCK_FEATURE_BITMAP = 8,
    THOCK_FEATURE_LIGHTS = 16,
    THOCK_FEATURE_STATUS = 32,
    THOCK_FEATURE_CAPTURE = 64,
    THOCK_FEATURE_ACCEPT = 128,
    THOCK_FEATURE_POLL = 256, /* KEY frames go out as answers to POLL only */
    THOCK_FEATURE_KEY_LIGHTS = 512, /* LIGHTS can name keys instead of LEDs */
    THOCK_FEATURE_VIA_FORM = 1024 /* frames that begin like VIA's answer to the question for its version */
};

enum {
    THOCK_IDLE = 0,
    THOCK_LISTENING = 1,
    THOCK_THINKING = 2,
    THOCK_STREAMING = 3,
    THOCK_PAUSED = 4,
    THOCK_ERROR = 5
};

/* What this board has. Features that were not compiled in, or that need a display or LEDs that the
 * board lacks, are taken out by thock_init(). */
typedef struct {
    uint8_t report_length; /* bytes, 32..THOCK_REPORT_LENGTH */
    uint8_t panel_width;   /* pixels as wired, a multiple of 8; 0: no display */
    uint8_t panel_height;  /* pixels as wired, a multiple of 8; 0: no display */
    uint8_t rotation;      /* quarter turns clockwise from the host's picture to the panel, 0..3 */
    uint16_t led_count;    /* 0..THOCK_LED_COUNT */
    uint16_t features;     /* THOCK_FEATURE_... */
    uint16_t via_version;  /* what VIA on this board says when it is asked for its version; 0: there is no VIA */
} thock_config_t;

typedef struct {
    /* Hand one report to the link to the host; false: no room now, the core tries again later. */
    bool (*send)(void *context, const uint8_t *report, uint8_t length);
    void *context;
    /* The number of the LED under the key at this row and column, THOCK_NO_LED if there is none. NULL: the
     * board cannot tell. */
    uint16_t (*led_of_key)(void *context, uint8_t row, uint8_t column);
} thock_hooks_t;

typedef struct thock {
    thock_config_t config;
    const thock_hooks_t *hooks;
    uint8_t uid[THOCK_UID_BYTES];
    uint8_t build;

    uint8_t client; /* who is subscribed; 0: nobody */
    uint8_t events; /* which kinds of events the client wants */
    uint16_t began_ms;      /* clock when the subscription began, by which the host knows it again */
    uint32_t subscribed_ms; /* clock of the last SUBSCRIBE */
    bool reply_waits;
    uint8_t reply[THOCK_REPORT_LENGTH];

    uint8_t others;    /* what other programs did lately */
    uint16_t other_ms; /* clock of their last request; this and the next two wrap, and are looked at in each turn */
#if THOCK_ENABLE_VIA_FORM
    bool answer_late; /* `reply` is VIA's answer for another program, and waits */
    bool sent_any;
    uint16_t now_ms;
    uint16_t sent_ms; /* clock of the last frame */
#endif

#if THOCK_ENABLE_EVENTS
    uint8_t ring[THOCK_RING_SIZE][THOCK_EVENT_BYTES]; /* as they go over the wire */
    uint8_t ring_head;                                /* place of the oldest event */
    uint8_t ring_count;
    uint8_t dropped;
    uint8_t key_seq;
    uint16_t first_index; /* index of the oldest event */
#endif

#if THOCK_HAS_DISPLAY
    uint8_t host_width; /* pixels, as the host sees them */
    uint8_t host_height;
    uint8_t shown;        /* which picture is visible */
    uint16_t dirty_pages; /* bit n: page n of the panel changed */
#endif
#if THOCK_ENABLE_TEXT
    uint8_t text[THOCK_TEXT_CELLS];
    uint8_t text_back[THOCK_TEXT_CELLS];
#endif
#if THOCK_ENABLE_BITMAP
    uint8_t bitmap[THOCK_PICTURE_BYTES];
    uint8_t bitmap_back[THOCK_PICTURE_BYTES];
#endif

#if THOCK_ENABLE_LIGHTS
    bool fill_on;
    uint8_t fill_effect;
    uint8_t fill[3];
    uint8_t led_on[(THOCK_LED_COUNT + 7) / 8];
    uint8_t leds[THOCK_LED_COUNT][3];
#endif

#if THOCK_ENABLE_STATUS
    uint8_t status;
#endif
#if THOCK_ENABLE_CAPTURE
    bool capturing;
#endif
#if THOCK_ENABLE_ACCEPT
    uint8_t offer_row; /* the piece of the visible text that the accept key types */
    uint8_t offer_column;
    uint8_t offer_count; /* 0: none */
    uint8_t offer_seq;   /* of its frame */
    bool typed_since;    /* a key was pressed that the picture cannot know of yet */
#endif
} thock_t;

/* False: the config asks for more than was compiled in. The core then answers nothing.
 * `hooks` must outlive the core; `config` and `uid` (THOCK_UID_BYTES) are copied. */
bool thock_init(thock_t *core, const thock_config_t *config, const thock_hooks_t *hooks, const uint8_t *uid,
                uint8_t build);

/* One report from the host. True: it was a frame of ours and is done, the answer included; false: it
 * belongs to other firmware (VIA, Vial), the core did nothing. A frame is left undone, as if it had been lost,
 * while the answer to an earlier one still waits for the send hook; the host asks again. */
bool thock_receive(thock_t *core, const uint8_t *report, uint8_t length, uint32_t now_ms);

/* True: the report is a frame of ours, whatever it asks for, and thock_receive() would take it. Changes nothing. */
bool thock_is_frame(const thock_t *core, const uint8_t *report, uint8_t length);

/* A report from the host that is no frame of ours: another program talks to the keyboard, and must not find our frames
 * among its answers. Events are held for 3 s. True: it is the question for VIA's version, and the core answers it
 * itself, a little later, through the send hook; false: it is for the other firmware to answer. */
bool thock_other_request(thock_t *core, const uint8_t *report, uint8_t length, uint32_t now_ms);

/* Forget the host and give everything back at once, as after 3 s of silence; an answer that waits is dropped too. */
void thock_forget_host(thock_t *core);

/* Call it in every turn of the main loop: sends what waits, ends a subscription that was not renewed. */
void thock_task(thock_t *core, uint32_t now_ms);

/* True while a host is subscribed. */
bool thock_subscribed(const thock_t *core);

/* What the host said that it is doing, THOCK_IDLE.. THOCK_ERROR; THOCK_IDLE without a host. */
uint8_t thock_status(const thock_t *core);

/* A key or a macro key went down or up. True: the event waits for the host; false: nobody asked for it, or
 * the ring is full, in which case the host is told how many were lost. */
bool thock_key_event(thock_t *core, uint8_t row, uint8_t column, uint16_t keycode, bool pressed, uint32_t now_ms);
bool thock_macro_event(thock_t *core, uint8_t number, bool pressed, uint32_t now_ms);

/* Capture: between begin and end, keys go to the host only; the board swallows them and reports each with
 * thock_captured_key_event(). Only a key that the person pressed may begin it, and it ends with the subscription.
 * False from begin: the host did not ask for captures, or could not be told now. */
bool thock_begin_capture(thock_t *core, uint32_t now_ms);
void thock_end_capture(thock_t *core, uint32_t now_ms);
bool thock_capturing(const thock_t *core);
bool thock_captured_key_event(thock_t *core, uint8_t row, uint8_t column, uint16_t keycode, bool pressed,
                              uint32_t now_ms);

/* The accept key was pressed: writes the characters that it types (20..7E, at most THOCK_ACCEPT_BYTES) into `text`,
 * tells the host how many, and gives that number. They are a piece of the text that the panel shows; 0: the host
 * offered none, or a key was pressed since, or the panel does not show it, or keys are being captured. An offer is
 * good for one press. */
uint8_t thock_accept(thock_t *core, uint8_t *text, uint32_t now_ms);

/* True while the display belongs to the host: a picture was completed, or the status is not idle.
 * Otherwise the board draws its own screen. */
bool thock_display_taken(const thock_t *core);

/* Bit n: page n of the panel (8 rows of pixels) differs from what thock_render_page() gave last. */
uint16_t thock_display_dirty(const thock_t *core);

/* Write page `page` of the panel into `out` (panel_width bytes, SSD1306 layout: bit 0 is the top pixel) and take
 * it off the dirty pages. Empty while the display is not taken. False: the panel has no such page. */
bool thock_render_page(thock_t *core, uint8_t page, uint8_t *out);

/* True: `rgb` (3 bytes) holds the overlay's colour of this LED now; false: the board's own colour stays. */
bool thock_led_color(const thock_t *core, uint16_t led, uint32_t now_ms, uint8_t *rgb);

#ifdef __cplusplus
}
#endif

#endif
