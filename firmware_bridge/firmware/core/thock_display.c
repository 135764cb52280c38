/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
 * The two pictures (text cells, bitmap pages), the status glyph over them, and the turn to the panel. */
#include "thock_internal.h"

#include <string.h>

#if THOCK_HAS_DISPLAY

#define CELL_WIDTH 6

bool thock_display_fits(const thock_config_t *config)
{
    uint8_t width = config->panel_width;
    uint8_t height = config->panel_height;

    if (width == 0 && height == 0) {
        return true;
    }
    return width != 0 && height != 0 && width % 8 == 0 && height % 8 == 0 && width <= 128 && height <= 128 &&
           (uint16_t)(width * (height / 8)) <= THOCK_PICTURE_BYTES;
}

static bool turned_sideways(const thock_t *core)
{
    return core->config.rotation & 1;
}

static void mark_all(thock_t *core)
{
    core->dirty_pages = (uint16_t)((1ul << (core->config.panel_height / 8)) - 1);
}

/* A host page is a panel page too unless the picture lies on its side. */
static void mark_host_page(thock_t *core, uint8_t page)
{
    if (turned_sideways(core)) {
        mark_all(core);
    } else if (core->config.rotation == 0) {
        core->dirty_pages |= (uint16_t)(1u << page);
    } else {
        core->dirty_pages |= (uint16_t)(1u << (core->host_height / 8 - 1 - page));
    }
}

void thock_display_reset(thock_t *core)
{
    bool sideways = turned_sideways(core);

    core->host_width = sideways ? core->config.panel_height : core->config.panel_width;
    core->host_height = sideways ? core->config.panel_width : core->config.panel_height;
    core->shown = THOCK_SHOWN_NOTHING;
    thock_offer_reset(core);
#if THOCK_ENABLE_TEXT
    memset(core->text, ' ', sizeof core->text);
    memset(core->text_back, ' ', sizeof core->text_back);
#endif
#if THOCK_ENABLE_BITMAP
    memset(core->bitmap, 0, sizeof core->bitmap);
    memset(core->bitmap_back, 0, sizeof core->bitmap_back);
#endif
    mark_all(core);
}

bool thock_display_taken(const thock_t *core)
{
    return core->host_width != 0 &&
           (core->shown != THOCK_SHOWN_NOTHING || thock_status(core) != THOCK_IDLE || thock_capturing(core));
}

uint16_t thock_display_dirty(const thock_t *core)
{
    return core->dirty_pages;
}

void thock_status_changed(thock_t *core)
{
    if (core->shown == THOCK_SHOWN_NOTHING) {
        mark_all(core); /* the display was taken from the board, or is given back */
    } else {
        mark_host_page(core, 0);
    }
}

/* The picture `back` is complete: it becomes the visible one, `row_bytes` for each host page. */
static void complete(thock_t *core, uint8_t *front, const uint8_t *back, uint8_t row_bytes, uint8_t shown)
{
    uint8_t pages = core->host_height / 8;

    thock_offer_renewed(core);
    for (uint8_t page = 0; page < pages; page++) {
        if (memcmp(front, back, row_bytes) != 0) {
            memcpy(front, back, row_bytes);
            mark_host_page(core, page);
        }
        front += row_bytes;
        back += row_bytes;
    }
    if (core->shown != shown) {
        core->shown = shown;
        mark_all(core);
    }
}

#if THOCK_ENABLE_TEXT
uint8_t thock_text(thock_t *core, const thock_frame_t *frame)
{
    uint8_t columns = core->host_width / CELL_WIDTH;
    uint8_t row = frame->payload[0];
    uint8_t column = frame->payload[1];
    const uint8_t *characters = frame->payload + 2;
    uint8_t count = (uint8_t)(frame->length - 2);
    uint8_t *cells;

    if (frame->length < 2) {
        return THOCK_NAK_LENGTH;
    }
    if (row >= core->host_height / 8 || column >= columns || count > columns - column) {
        return THOCK_NAK_RANGE;
    }
    for (uint8_t i = 0; i < count; i++) {
        if (characters[i] < 0x20 || characters[i] > 0x7E) {
            return THOCK_NAK_RANGE;
        }
    }
    if (frame->flags & THOCK_FLAG_FIRST) {
        memset(core->text_back, ' ', sizeof core->text_back);
    }
    cells = core->text_back + (uint16_t)(row * columns) + column;
    memcpy(cells, characters, count);
    memset(cells + count, ' ', (uint8_t)(columns - column - count));
    if (frame->flags & THOCK_FLAG_LAST) {
        complete(core, core->text, core->text_back, columns, THOCK_SHOWN_TEXT);
    }
    return THOCK_DONE;
}

static void text_columns(const thock_t *core, uint8_t page, uint8_t x, uint8_t count, uint8_t *out)
{
    uint8_t columns = core->host_width / CELL_WIDTH;
    uint8_t cell = x / CELL_WIDTH;
    uint8_t inside = x % CELL_WIDTH;
    const uint8_t *row = core->text + (uint16_t)(page * columns);

    for (uint8_t i = 0; i < count; i++) {
        /* The last column of a cell and the pixels right of the last cell are empty. */
        out[i] = 0;
        if (cell < columns && inside < CELL_WIDTH - 1) {
            out[i] = THOCK_READ(&thock_font[row[cell] - 0x20][inside]);
        }
        if (++inside == CELL_WIDTH) {
            inside = 0;
            cell++;
        }
    }
}
#endif

#if THOCK_ENABLE_BITMAP
uint8_t thock_bitmap(thock_t *core, const thock_frame_t *frame)
{
    uint8_t width = core->host_width;
    uint8_t page = frame->payload[0];
    uint8_t x = frame->payload[1];
    uint8_t count = (uint8_t)(frame->length - 2);

    if (frame->length < 2) {
        return THOCK_NAK_LENGTH;
    }
    if (page >= core->host_height / 8 || x >= width || count > width - x) {
        return THOCK_NAK_RANGE;
    }
    if (frame->flags & THOCK_FLAG_FIRST) {
        memcpy(core->bitmap_back, core->bitmap, sizeof core->bitmap);
    }
    memcpy(core->bitmap_back + (uint16_t)(page * width) + x, frame->payload + 2, count);
    if (frame->flags & THOCK_FLAG_LAST) {
        complete(core, core->bitmap, core->bitmap_back, width, THOCK_SHOWN_BITMAP);
    }
    return THOCK_DONE;
}
#endif

#if THOCK_ENABLE_STATUS || THOCK_ENABLE_CAPTURE
/* A glyph over a character cell of the first row: 1 is the last cell (status), 2 the one before it (capture). */
static void lay_glyph(const thock_t *core, uint8_t from_right, const uint8_t *glyph, uint8_t x, uint8_t count, uint8_t *out)
{
    uint8_t start = (uint8_t)((core->host_width / CELL_WIDTH - from_right) * CELL_WIDTH);

    for (uint8_t i = 0; i < CELL_WIDTH; i++) {
        uint8_t place = (uint8_t)(start + i);
        if (place >= x && place - x < count) {
            out[place - x] = THOCK_READ(&glyph[i]);
        }
    }
}
#endif

#if THOCK_ENABLE_CAPTURE
/* A filled disc, as recorders show it. */
THOCK_FLASH static const uint8_t CAPTURE_GLYPH[CELL_WIDTH] = {0x3C, 0x7E, 0x7E, 0x7E, 0x3C, 0x00};
#endif

/* Bytes x .. x + count - 1 of a page of what the host sees. */
static void host_columns(const thock_t *core, uint8_t page, uint8_t x, uint8_t count, uint8_t *out)
{
    memset(out, 0, count);
#if THOCK_ENABLE_TEXT
    if (core->shown == THOCK_SHOWN_TEXT) {
        text_columns(core, page, x, count, out);
    }
#endif
#if THOCK_ENABLE_BITMAP
    if (core->shown == THOCK_SHOWN_BITMAP) {
        memcpy(out, core->bitmap + (uint16_t)(page * core->host_width) + x, count);
    }
#endif
#if THOCK_ENABLE_STATUS
    if (page == 0 && core->status != THOCK_IDLE) {
        lay_glyph(core, 1, thock_status_glyphs[core->status - 1], x, count, out);
    }
#endif
#if THOCK_ENABLE_CAPTURE
    if (page == 0 && core->capturing) {
        lay_glyph(core, 2, CAPTURE_GLYPH, x, count, out);
    }
#endif
}

static uint8_t mirrored(uint8_t byte)
{
    byte = (uint8_t)(byte << 4 | byte >> 4);
    byte = (uint8_t)((byte & 0x33) << 2 | (byte >> 2 & 0x33));
    return (uint8_t)((byte & 0x55) << 1 | (byte >> 1 & 0x55));
}

static void render_upside_down(const thock_t *core, uint8_t page, uint8_t *out)
{
    uint8_t width = core->host_width;

    host_columns(core, (uint8_t)(core->host_height / 8 - 1 - page), 0, width, out);
    for (uint8_t left = 0, right = (uint8_t)(width - 1); left < right; left++, right--) {
        uint8_t swapped = mirrored(out[left]);
        out[left] = mirrored(out[right]);
        out[right] = swapped;
    }
}

/* A panel page is made of host blocks of 8x8 pixels that are turned one by one: the block at x = 8 * page (from the
 * left at one quarter turn, from the right at three) of every host page. */
static void render_sideways(const thock_t *core, uint8_t page, uint8_t *out)
{
    bool clockwise = core->config.rotation == 1;
    uint8_t host_pages = core->host_height / 8;
    uint8_t x = (uint8_t)(clockwise ? 8 * page : core->host_width - 8 - 8 * page);
    uint8_t block[8];

    for (uint8_t host_page = 0; host_page < host_pages; host_page++) {
        uint8_t *turned = out + 8 * (clockwise ? host_pages - 1 - host_page : host_page);
        host_columns(core, host_page, x, 8, block);
        memset(turned, 0, 8);
        for (uint8_t column = 0; column < 8; column++) {
            uint8_t bits = clockwise ? mirrored(block[column]) : block[column];
            uint8_t line = (uint8_t)(1u << (clockwise ? column : 7 - column));
            for (uint8_t i = 0; i < 8; i++, bits >>= 1) {
                if (bits & 1) {
                    turned[i] |= line;
                }
            }
        }
    }
}

bool thock_render_page(thock_t *core, uint8_t page, uint8_t *out)
{
    if (page >= core->config.panel_height / 8) {
        return false;
    }
    if (turned_sideways(core)) {
        render_sideways(core, page, out);
    } else if (core->config.rotation == 0) {
        host_columns(core, page, 0, core->host_width, out);
    } else {
        render_upside_down(core, page, out);
    }
    core->dirty_pages &= (uint16_t)~(1u << page);
    return true;
}

#else

bool thock_display_fits(const thock_config_t *config)
{
    return config->panel_width == 0 && config->panel_height == 0;
}

void thock_display_reset(thock_t *core)
{
    (void)core;
}

bool thock_display_taken(const thock_t *core)
{
    (void)core;
    return false;
}

uint16_t thock_display_dirty(const thock_t *core)
{
    (void)core;
    return 0;
}

void thock_status_changed(thock_t *core)
{
    (void)core;
}

bool thock_render_page(thock_t *core, uint8_t page, uint8_t *out)
{
    (void)core, (void)page, (void)out;
    return false;
}

#endif
