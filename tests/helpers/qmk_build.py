# SPDX-License-Identifier: Apache-2.0
"""Compiles the QMK module against the header shims, as QMK's build would, with any compiler."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "tests" / "qmk"
FIRMWARE = ROOT / "firmware_bridge" / "firmware"
MODULE = FIRMWARE / "qmk" / "modules" / "thock" / "companion"
CORE = FIRMWARE / "core"
SHIMS = HERE / "shims"

WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Werror")
SANITIZERS = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
BOARD = ("-DMATRIX_ROWS=4", "-DMATRIX_COLS=6", "-DRAW_ENABLE", "-DDYNAMIC_MACRO_ENABLE")
OLED = ("-DOLED_ENABLE",)
RGB = ("-DRGB_MATRIX_ENABLE", "-DRGB_MATRIX_LED_COUNT=24")

PLAIN: tuple[str, ...] = ()
VIA = ("-DVIA_ENABLE",)
VIAL = ("-DVIA_ENABLE", "-DVIAL_ENABLE")
CHANNEL = ("-DVIA_ENABLE", "-DTHOCK_VIA_CHANNEL")
# What post_rules.mk adds for THOCK_ALL_REPORTS.
ALL_REPORTS = ("-DTHOCK_ALL_REPORTS", "-Wl,--wrap=raw_hid_receive")
KEYCHRON = (*VIA, "-DKEYCHRON")  # a board that owns via_command_kb
ACCEPT = ("-DTHOCK_ENABLE_ACCEPT=1",)
SPLIT = ("-DSPLIT_KEYBOARD", "-DTHOCK_SPLIT_SYNC")

# name, result, arguments, condition: the hooks of module API 1.1.0 that the module may use
_HOOKS = (
    ("keyboard_post_init", "void", "void", ""),
    ("pre_process_record", "bool", "uint16_t keycode, keyrecord_t *record", ""),
    ("process_record", "bool", "uint16_t keycode, keyrecord_t *record", ""),
    ("housekeeping_task", "void", "void", ""),
    ("suspend_power_down", "void", "void", ""),
    ("suspend_wakeup_init", "void", "void", ""),
    ("rgb_matrix_indicators", "bool", "void", "defined(RGB_MATRIX_ENABLE)"),
)


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A compiler with the options that choose its target."""

    compiler: tuple[str, ...]
    standard: str = "-std=gnu11"

    def need(self) -> None:
        if shutil.which(self.compiler[0]) is None:
            pytest.skip(f"{self.compiler[0]} is not installed")


HOST = Toolchain(("gcc",))
CLANG = Toolchain(("clang",))
AVR = Toolchain(("avr-gcc", "-mmcu=atmega32u4"))
CORTEX_M0 = Toolchain(("arm-none-eabi-gcc", "-mcpu=cortex-m0plus", "-mthumb"))


def run(*command: str | Path, cwd: Path) -> str:
    """Standard output of a command that must succeed."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command[0]}: {done.stdout}{done.stderr}"
    return done.stdout


def write_community_modules(folder: Path, api: tuple[int, int, int] = (1, 1, 2)) -> None:
    """What QMK generates from qmk_module.json: keycodes, declarations, weak hooks of the keyboard."""
    keys = json.loads((MODULE / "qmk_module.json").read_text())["keycodes"]
    lines = ["// made by a test", "#pragma once", "#include <stdbool.h>", "#include <stdint.h>"]
    lines += ["enum {"]
    lines += [
        f"    {key['key']}{' = QK_COMMUNITY_MODULE' if number == 0 else ''},"
        for number, key in enumerate(keys)
    ]
    lines += [f"    {alias} = {key['key']}," for key in keys for alias in key["aliases"]]
    lines += ["};"]
    version = api[0] << 24 | api[1] << 16 | api[2]
    lines += [
        "#define ASSERT_COMMUNITY_MODULES_MIN_API_VERSION(major, minor, patch) "
        "_Static_assert(((uint32_t)(major) << 24 | (uint32_t)(minor) << 16 | (patch)) "
        f'<= {version}u, "module API")'
    ]
    weak = ['#include "quantum.h"', '#include "community_modules.h"']
    for name, result, arguments, condition in _HOOKS:
        guard = [f"#if {condition}"] if condition else []
        end = ["#endif"] if condition else []
        lines += guard
        lines += [f"{result} {name}_companion{kb}({arguments});" for kb in ("", "_kb")]
        lines += end
        unused = "".join(
            f" (void){word.strip('*')};" for word in ("keycode", "*record") if word in arguments
        )
        body = f"{unused}{' return true;' if result == 'bool' else ''}"
        weak += guard
        weak += [f"__attribute__((weak)) {result} {name}_companion_kb({arguments}) {{{body} }}"]
        weak += end
    (folder / "community_modules.h").write_text("\n".join(lines) + "\n")
    (folder / "community_modules.c").write_text("\n".join(weak) + "\n")


def module_sources() -> list[Path]:
    """What rules.mk names, and the file that QMK adds by itself."""
    names = [
        word
        for line in (MODULE / "rules.mk").read_text().splitlines()
        if line.startswith("SRC +=")
        for word in line.split()
        if word.endswith(".c")
    ]
    found = [MODULE / name if (MODULE / name).exists() else CORE / name for name in names]
    return [MODULE / "companion.c", *found]


def compile_module(
    folder: Path, toolchain: Toolchain, options: tuple[str, ...], *extra: str | Path
) -> None:
    """Run the compiler over the module and `extra`; a warning of the module is an error."""
    toolchain.need()
    write_community_modules(folder)
    run(
        *toolchain.compiler, toolchain.standard, *WARNINGS, *BOARD, *options,
        '-DTHOCK_CONFIG_HEADER="thock_board.h"', "-include", MODULE / "config.h",
        f"-I{folder}", f"-I{MODULE}", f"-I{CORE}", f"-I{SHIMS}",
        *module_sources(), folder / "community_modules.c", *extra, cwd=folder,
    )  # fmt: skip
