# SPDX-License-Identifier: Apache-2.0
"""Builds `firmware_bridge._core`: the firmware core, unchanged, as a Python extension module.

setuptools finds it through `cffi_modules`; from a checkout, `python firmware_bridge/firmware/build_core.py`
builds in place. The sizes here are maximums: each virtual keyboard chooses its own when it starts.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from cffi import FFI

ROOT = Path(__file__).resolve().parents[2]
# setuptools wants sources relative to the project; relative paths also hold in the folder of build_in_place.
CORE = Path("firmware_bridge") / "firmware" / "core"
SOURCES = (
    "thock",
    "thock_caps",
    "thock_capture",
    "thock_display",
    "thock_events",
    "thock_font",
    "thock_lights",
    "thock_others",
    "thock_wire",
)
MAXIMUMS = {
    "THOCK_REPORT_LENGTH": 64,
    "THOCK_DISPLAY_WIDTH": 128,
    "THOCK_DISPLAY_HEIGHT": 128,
    "THOCK_LED_COUNT": 256,
    "THOCK_RING_SIZE": 32,
    "THOCK_ENABLE_CAPTURE": 1,
    "THOCK_ENABLE_ACCEPT": 1,
    "THOCK_ENABLE_POLL": 1,
    "THOCK_ENABLE_VIA_FORM": 1,
}

_DECLARATIONS = """
#define THOCK_RING_SIZE ...
#define THOCK_ACCEPT_BYTES ...

typedef struct {
    uint8_t report_length;
    uint8_t panel_width;
    uint8_t panel_height;
    uint8_t rotation;
    uint16_t led_count;
    uint16_t features;
    uint16_t via_version;
} thock_config_t;

typedef struct {
    bool (*send)(void *context, const uint8_t *report, uint8_t length);
    void *context;
    uint16_t (*led_of_key)(void *context, uint8_t row, uint8_t column);
} thock_hooks_t;

typedef struct { ...; } thock_t;

bool thock_init(thock_t *core, const thock_config_t *config, const thock_hooks_t *hooks,
                const uint8_t *uid, uint8_t build);
bool thock_receive(thock_t *core, const uint8_t *report, uint8_t length, uint32_t now_ms);
bool thock_other_request(thock_t *core, const uint8_t *report, uint8_t length, uint32_t now_ms);
void thock_task(thock_t *core, uint32_t now_ms);
bool thock_subscribed(const thock_t *core);
uint8_t thock_status(const thock_t *core);
bool thock_key_event(thock_t *core, uint8_t row, uint8_t column, uint16_t keycode, bool pressed,
                     uint32_t now_ms);
bool thock_macro_event(thock_t *core, uint8_t number, bool pressed, uint32_t now_ms);
bool thock_begin_capture(thock_t *core, uint32_t now_ms);
void thock_end_capture(thock_t *core, uint32_t now_ms);
bool thock_capturing(const thock_t *core);
bool thock_captured_key_event(thock_t *core, uint8_t row, uint8_t column, uint16_t keycode, bool pressed,
                              uint32_t now_ms);
uint8_t thock_accept(thock_t *core, uint8_t *text, uint32_t now_ms);
bool thock_display_taken(const thock_t *core);
uint16_t thock_display_dirty(const thock_t *core);
bool thock_render_page(thock_t *core, uint8_t page, uint8_t *out);
bool thock_led_color(const thock_t *core, uint16_t led, uint32_t now_ms, uint8_t *rgb);

extern "Python" bool send_report(void *context, const uint8_t *report, uint8_t length);
extern "Python" uint16_t led_of_key(void *context, uint8_t row, uint8_t column);
"""

ffibuilder = FFI()
ffibuilder.cdef(_DECLARATIONS)
ffibuilder.set_source(
    "firmware_bridge._core",
    '#include "thock.h"',
    sources=[str(CORE / f"{name}.c") for name in SOURCES],
    include_dirs=[str(CORE)],
    depends=[str(CORE / name) for name in ("thock.h", "thock_config.h", "thock_internal.h")],
    define_macros=[(name, str(value)) for name, value in MAXIMUMS.items()],
    extra_compile_args=[] if sys.platform == "win32" else ["-std=c99", "-O2"],
)


def build_in_place() -> None:
    """Compile in a temporary folder, so that only the extension module lands in the checkout."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / CORE, Path(folder) / CORE)
        built = Path(ffibuilder.compile(tmpdir=folder))
        new = ROOT / "firmware_bridge" / f"{built.name}.new"
        shutil.copy(built, new)
        new.replace(new.with_suffix(""))  # programs that run go on with the old one


if __name__ == "__main__":
    build_in_place()
