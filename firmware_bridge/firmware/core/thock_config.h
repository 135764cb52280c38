/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
 *
 * Sizes and parts of the core, fixed when it is compiled. Each can be set with -D or in a board's own
 * header named by THOCK_CONFIG_HEADER. The sizes are the most that thock_init() may ask for. */
#ifndef THOCK_CONFIG_H
#define THOCK_CONFIG_H

#ifdef THOCK_CONFIG_HEADER
#include THOCK_CONFIG_HEADER
#endif

/* Bytes of one report: 32 on QMK; at most 71, because a frame's length field has 6 bits. */
#ifndef THOCK_REPORT_LENGTH
#define THOCK_REPORT_LENGTH 32
#endif

/* The panel in pixels, as it is wired. Their product bounds the RAM of the pictures. */
#ifndef THOCK_DISPLAY_WIDTH
#define THOCK_DISPLAY_WIDTH 128
#endif
#ifndef THOCK_DISPLAY_HEIGHT
#define THOCK_DISPLAY_HEIGHT 32
#endif

/* LEDs that the overlay can colour one by one: 3 bytes and a bit of RAM each. */
#ifndef THOCK_LED_COUNT
#define THOCK_LED_COUNT 128
#endif

/* Key events that wait for the host: 7 bytes of RAM each, at most 255. */
#ifndef THOCK_RING_SIZE
#define THOCK_RING_SIZE 32
#endif

/* KEY frames that one thock_task() may send. */
#ifndef THOCK_FRAMES_PER_TASK
#define THOCK_FRAMES_PER_TASK 4
#endif

/* Parts that a small board leaves out, 0 or 1. BITMAP costs the most RAM: two whole pictures. */
#ifndef THOCK_ENABLE_EVENTS
#define THOCK_ENABLE_EVENTS 1
#endif
#ifndef THOCK_ENABLE_TEXT
#define THOCK_ENABLE_TEXT 1
#endif
#ifndef THOCK_ENABLE_BITMAP
#define THOCK_ENABLE_BITMAP 1
#endif
#ifndef THOCK_ENABLE_LIGHTS
#define THOCK_ENABLE_LIGHTS 1
#endif
#ifndef THOCK_ENABLE_STATUS
#define THOCK_ENABLE_STATUS 1
#endif

/* Parts that a board asks for, 0 or 1. CAPTURE: a key that sends the keys after it to the host only. ACCEPT: a key that
 * types a piece of the text on the display. POLL: key events go out as answers only, never by themselves. VIA_FORM: frames
 * that the VIA app may take for the answer to its first question. */
#ifndef THOCK_ENABLE_CAPTURE
#define THOCK_ENABLE_CAPTURE 0
#endif
#ifndef THOCK_ENABLE_ACCEPT
#define THOCK_ENABLE_ACCEPT 0
#endif
#ifndef THOCK_ENABLE_POLL
#define THOCK_ENABLE_POLL 0
#endif
#ifndef THOCK_ENABLE_VIA_FORM
#define THOCK_ENABLE_VIA_FORM 0
#endif

#define THOCK_HAS_DISPLAY (THOCK_ENABLE_TEXT || THOCK_ENABLE_BITMAP)

#if THOCK_REPORT_LENGTH < 32 || THOCK_REPORT_LENGTH > 71
#error "THOCK_REPORT_LENGTH must be 32..71: CAPS needs 24 bytes of payload, the length field has 6 bits"
#endif
#if THOCK_RING_SIZE < 1 || THOCK_RING_SIZE > 255
#error "THOCK_RING_SIZE must be 1..255"
#endif
#if (THOCK_ENABLE_CAPTURE || THOCK_ENABLE_ACCEPT || THOCK_ENABLE_POLL) && !THOCK_ENABLE_EVENTS
#error "THOCK_ENABLE_CAPTURE, _ACCEPT and _POLL need THOCK_ENABLE_EVENTS"
#endif
#if THOCK_ENABLE_CAPTURE && THOCK_RING_SIZE < 3
#error "THOCK_ENABLE_CAPTURE needs THOCK_RING_SIZE >= 3: a place is kept for the end of a capture"
#endif
#if THOCK_ENABLE_ACCEPT && !THOCK_ENABLE_TEXT
#error "THOCK_ENABLE_ACCEPT needs THOCK_ENABLE_TEXT: only shown text can be accepted"
#endif
#if THOCK_LED_COUNT < 1 || THOCK_LED_COUNT > 4096
#error "THOCK_LED_COUNT must be 1..4096; a board without LEDs sets THOCK_ENABLE_LIGHTS to 0"
#endif
#if THOCK_DISPLAY_WIDTH < 8 || THOCK_DISPLAY_WIDTH > 128 || THOCK_DISPLAY_WIDTH % 8 != 0
#error "THOCK_DISPLAY_WIDTH must be a multiple of 8, 8..128"
#endif
#if THOCK_DISPLAY_HEIGHT < 8 || THOCK_DISPLAY_HEIGHT > 128 || THOCK_DISPLAY_HEIGHT % 8 != 0
#error "THOCK_DISPLAY_HEIGHT must be a multiple of 8, 8..128"
#endif

#endif
