# SPDX-License-Identifier: Apache-2.0
"""The QMK module under the compilers of real boards: no warnings, and what it costs."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.helpers.qmk_build import (
    ACCEPT,
    ALL_REPORTS,
    AVR,
    BOARD,
    CHANNEL,
    CLANG,
    CORE,
    CORTEX_M0,
    HERE,
    HOST,
    MODULE,
    OLED,
    PLAIN,
    RGB,
    SHIMS,
    SPLIT,
    VIA,
    VIAL,
    WARNINGS,
    Toolchain,
    compile_module,
    module_sources,
    run,
    write_community_modules,
)

CONFIGURATIONS = {
    "plain": PLAIN,
    "via": VIA,
    "vial": VIAL,
    "channel": CHANNEL,
    "vial, all reports": VIAL + ALL_REPORTS[:1],
    "via, all reports": VIA + ALL_REPORTS[:1],
}
TARGETS = {"avr": AVR, "cortex-m0": CORTEX_M0, "gcc": HOST, "clang": CLANG}
LTO = ("-Os", "-flto")


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
@pytest.mark.parametrize("target", TARGETS)
def test_compiles_without_warnings(target: str, configuration: str, tmp_path: Path) -> None:
    lto = LTO if target == "avr" else ("-Os",)
    compile_module(
        tmp_path, TARGETS[target], CONFIGURATIONS[configuration] + OLED + RGB + ACCEPT, *lto, "-c"
    )


@pytest.mark.parametrize(
    "options",
    [
        PLAIN,
        RGB,
        ("-DTHOCK_DISABLE_RAW_HID_HANDLER",),
        (*OLED, "-DNO_ACTION_TAPPING", "-DNO_ACTION_ONESHOT", *ACCEPT),
        (*OLED, "-DTHOCK_ENABLE_POLL=1", "-DTHOCK_OLED_OFF_MS=0"),
        OLED + RGB + SPLIT + VIA + ACCEPT,
        OLED + SPLIT + VIAL,
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("target", ["avr", "cortex-m0"])
def test_compiles_with_parts_left_out(
    target: str, options: tuple[str, ...], tmp_path: Path
) -> None:
    compile_module(tmp_path, TARGETS[target], options, "-Os", "-c")


def test_an_older_qmk_is_refused_by_the_compiler(tmp_path: Path) -> None:
    write_community_modules(tmp_path, (1, 0, 1))
    with pytest.raises(AssertionError, match="module API"):
        run(
            "gcc", "-std=gnu11", *BOARD, '-DTHOCK_CONFIG_HEADER="thock_board.h"',
            f"-I{tmp_path}", f"-I{MODULE}", f"-I{CORE}", f"-I{SHIMS}",
            "-c", MODULE / "companion.c", cwd=tmp_path,
        )  # fmt: skip


def linked_size(
    folder: Path, toolchain: Toolchain, options: tuple[str, ...], link: tuple[str, ...], whole: bool
) -> tuple[int, int]:
    """(flash, RAM) in bytes of size_board.c, with or without the module."""
    folder.mkdir()
    board = HERE / "size_board.c"
    elf = folder / "board.elf"
    if whole:
        compile_module(folder, toolchain, (*options, "-DCOUNT_MODULE"), *link, board, "-o", elf)
    else:
        toolchain.need()
        write_community_modules(folder)
        run(
            *toolchain.compiler, toolchain.standard, *WARNINGS, *BOARD, *options, *link,
            f"-I{folder}", f"-I{SHIMS}", board, "-o", elf, cwd=folder,
        )  # fmt: skip
    table = run(toolchain.compiler[0].replace("gcc", "size"), elf, cwd=folder)
    found = re.search(r"(\d+)\s+(\d+)\s+(\d+)\s+\d+\s+\w+\s+\S+board\.elf", table)
    assert found is not None
    text, data, bss = map(int, found.groups())
    return text + data, data + bss


def cost(
    folder: Path, toolchain: Toolchain, options: tuple[str, ...], link: tuple[str, ...]
) -> tuple[int, int]:
    toolchain.need()
    with_module = linked_size(folder / "with", toolchain, options, link, True)
    without = linked_size(folder / "without", toolchain, options, link, False)
    return with_module[0] - without[0], with_module[1] - without[1]


@pytest.mark.parametrize(
    ("name", "options", "flash_limit", "ram_limit"),
    [
        ("plain, no display, no lights", PLAIN, 4096, 400),
        ("VIA, OLED 128x32", VIA + OLED, 7168, 600),
        ("Vial, OLED 128x32", VIAL + OLED, 7168, 600),
        ("VIA channel, OLED 128x32, accept key", CHANNEL + OLED + ACCEPT, 8192, 640),
        ("VIA, OLED 128x32, 24 LEDs, accept key", VIA + OLED + RGB + ACCEPT, 8704, 720),
    ],
)
def test_cost_on_an_atmega32u4_with_lto(
    name: str, options: tuple[str, ...], flash_limit: int, ram_limit: int, tmp_path: Path
) -> None:
    """28 KiB of flash and 2.5 KiB of RAM are there; QMK alone wants most of both."""
    flash, ram = cost(tmp_path, AVR, options, (*LTO, "-Wl,--gc-sections"))
    print(f"atmega32u4, {name}: {flash} bytes of flash, {ram} bytes of RAM")
    assert 0 < flash <= flash_limit
    assert 0 < ram <= ram_limit


@pytest.mark.parametrize(
    ("name", "options", "flash_limit", "ram_limit"),
    [
        ("VIA, OLED 128x32, 24 LEDs, accept key", VIA + OLED + RGB + ACCEPT, 10240, 2048),
        (
            "Vial, OLED 128x64, 24 LEDs",
            VIAL + OLED + RGB + ("-DOLED_DISPLAY_HEIGHT=64",),
            9216,
            3584,
        ),
    ],
)
def test_cost_on_a_cortex_m0(
    name: str, options: tuple[str, ...], flash_limit: int, ram_limit: int, tmp_path: Path
) -> None:
    link = (
        "-Os",
        "-ffunction-sections",
        "-fdata-sections",
        "-Wl,--gc-sections",
        "--specs=nosys.specs",
    )
    flash, ram = cost(tmp_path, CORTEX_M0, options, link)
    print(f"cortex-m0plus, {name}: {flash} bytes of flash, {ram} bytes of RAM")
    assert 0 < flash <= flash_limit
    assert 0 < ram <= ram_limit


@pytest.mark.parametrize("target", ["avr", "cortex-m0"])
@pytest.mark.parametrize("configuration", [VIA, VIAL], ids=["via", "vial"])
def test_the_linker_gives_every_report_to_the_module(
    target: str, configuration: tuple[str, ...], tmp_path: Path
) -> None:
    """QMK's USB code calls the wrapper, which calls what the build has for reports."""
    toolchain = TARGETS[target]
    link = ("--specs=nosys.specs",) if target == "cortex-m0" else ()
    compile_module(
        tmp_path, toolchain, (*configuration, *ALL_REPORTS, "-DCOUNT_MODULE"), "-Os", *link,
        HERE / "size_board.c", HERE / "fake_usb.c", "-o", tmp_path / "board.elf",
    )  # fmt: skip
    tool = toolchain.compiler[0].replace("gcc", "objdump")
    code = run(tool, "-d", tmp_path / "board.elf", cwd=tmp_path)
    bodies = dict(re.findall(r"<(\w+)>:\n(.*?)(?:\n\n|$)", code, re.DOTALL))
    assert "<__wrap_raw_hid_receive>" in bodies["usb_report"]
    assert "<raw_hid_receive>" in bodies["__wrap_raw_hid_receive"]


@pytest.mark.parametrize(
    ("lto", "has_raw_hid", "missing"),
    [("no", True, ""), ("yes", True, "LTO_ENABLE"), ("no", False, "quantum/raw_hid.c")],
)
def test_where_the_linker_would_wrap_nothing_the_build_says_so(
    lto: str, has_raw_hid: bool, missing: str, tmp_path: Path
) -> None:
    if shutil.which("make") is None:
        pytest.skip("make is not installed")  # of QMK's build, not of ours; CI installs it
    if has_raw_hid:
        (tmp_path / "quantum").mkdir()
        (tmp_path / "quantum" / "raw_hid.c").touch()
    (tmp_path / "Makefile").write_text(
        f"include {MODULE / 'post_rules.mk'}\nall:\n\t@echo $(OPT_DEFS) $(EXTRALDFLAGS)\n"
    )
    made = subprocess.run(
        ["make", "THOCK_ALL_REPORTS=yes", f"LTO_ENABLE={lto}"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (made.returncode != 0) is bool(missing)
    assert missing in made.stderr
    if not missing:
        assert made.stdout.split() == list(ALL_REPORTS)


def test_every_source_of_the_module_and_the_core_is_built() -> None:
    """A file that rules.mk forgets would fail only in a real QMK build."""
    assert {path.name for path in module_sources()} == {
        path.name for folder in (MODULE, CORE) for path in folder.glob("*.c")
    }


@pytest.mark.parametrize(
    "parts",
    [
        ("CAPTURE", "ACCEPT", "POLL"),
        ("CAPTURE",),
        ("ACCEPT",),
        ("POLL",),
    ],
    ids="+".join,
)
@pytest.mark.parametrize("without", ["", "STATUS", "BITMAP", "LIGHTS"])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_the_cores_later_parts_compile_in_any_mixture(
    compiler: str, without: str, parts: tuple[str, ...], tmp_path: Path
) -> None:
    Toolchain((compiler,)).need()
    switches = [f"-DTHOCK_ENABLE_{part}=1" for part in parts]
    switches += [f"-DTHOCK_ENABLE_{without}=0"] if without else []
    run(
        compiler, "-std=c99", *WARNINGS, "-Wshadow", "-Wpedantic", "-O1", *switches, "-c",
        *sorted(CORE.glob("*.c")), cwd=tmp_path,
    )  # fmt: skip
