# SPDX-License-Identifier: Apache-2.0
"""The Python session answers byte for byte as the C core does, whatever the host sends."""

from __future__ import annotations

import ast
import functools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firmware_bridge.firmware.virtual_core import BoardConfig, FirmwareCore
from firmware_bridge.protocol.capabilities import Feature
from firmware_bridge.protocol.frames import Frame, FrameType, encode
from firmware_bridge.protocol.messages import EventKinds, SetStatus, Status
from tests.helpers.bench import Bench, with_crc
from tests.helpers.kmk_board import KMK, KmkBoard

FEATURES = (Feature(63) & ~Feature.BITMAP) | Feature.CAPTURE | Feature.ACCEPT
UID = b"parity"

board = BoardConfig(panel_width=126 + 2, panel_height=16, led_count=5, features=FEATURES, uid=UID)


RIGHT: dict[int, st.SearchStrategy[bytes]] = {
    0: st.sampled_from((b"\1\2\3\4\1\1", b"\1\2\3\4\0\2", b"\1\2\3\4\2\2", b"\1\2\3\4\0\0")),
    1: st.one_of(st.just(15), st.integers(0, 33)).map(lambda wanted: bytes((wanted,))),
    3: st.tuples(st.integers(0, 2), st.integers(0, 22), st.sampled_from((b"", b"text", b"x" * 21)))
    .map(lambda run: bytes(run[:2]) + run[2]),
    5: st.one_of(
        st.sampled_from((b"\0", b"\3", b"\4", b"\0\0")),
        st.tuples(st.integers(0, 3), *[st.integers(0, 255)] * 3).map(lambda fill: b"\1" + bytes(fill)),
        st.integers(0, 6).map(lambda led: bytes((2, led, 0, 1, 2, 3, 4, 5, 6))),
    ),
    6: st.integers(0, 6).map(lambda status: bytes((status,))),
    7: st.sampled_from((1, 2, 4, 7, 8, 16)).map(lambda what: bytes((what,))),
    11: st.tuples(st.integers(0, 2), st.integers(0, 21), st.integers(0, 22)).map(bytes),
}  # fmt: skip
SUBSCRIBE = encode(Frame(FrameType.SUBSCRIBE, 7, 0, b"\x0f"), 32)
WAITS = st.sampled_from((0, 0, 0, 1, 700, 2999, 3000))


@st.composite
def frames(draw: st.DrawFn) -> tuple[int, bytes]:
    """(milliseconds before it, report): mostly one that the board can do, sometimes any."""
    kind = draw(st.sampled_from((0, 1, 1, 3, 3, 3, 5, 5, 6, 7, 11, 11, *range(16))))
    rarely = draw(st.integers(0, 9))
    payload = draw(st.binary(max_size=24) if rarely == 0 else RIGHT.get(kind, st.just(b"")))
    client = draw(st.sampled_from((8, 0, 9))) if rarely == 1 else 7
    frame = Frame(FrameType.HELLO, client, draw(st.integers(0, 255)), payload, draw(st.booleans()),
                  draw(st.booleans()))  # fmt: skip
    report = bytearray(encode(frame, 32))
    report[2] = (2 if rarely == 2 else 1) << 4 | kind
    return draw(WAITS), with_crc(report)


def make_session(send: Any) -> Any:
    with KmkBoard().installed() as load:
        session = load("thock_session").Session
        return session(send, UID, 21, 2, 5, ring_size=32, capture=True, accept=True)


@settings(max_examples=250, deadline=None)
@given(
    st.lists(frames(), max_size=25),
    st.lists(st.sampled_from((0, 0, 1, 40)), min_size=1, max_size=5),
    st.lists(st.sampled_from((None, "accept", "accept", "begin", "end")), min_size=1, max_size=7),
    st.integers(0, 2**29 - 1),
)
def test_same_answers_same_lights_same_text(
    sequence: list[tuple[int, bytes]], keys: list[int], own: list[str | None], now: int
) -> None:
    from_c: list[bytes] = []
    from_python: list[bytes] = []

    def take(reports: list[bytes], report: bytes) -> bool:
        reports.append(bytes(report))
        return True

    core = FirmwareCore(board, functools.partial(take, from_c))
    session = make_session(functools.partial(take, from_python))
    passed = 0
    for number, (wait, report) in enumerate([(0, SUBSCRIBE), *sequence]):
        passed += wait
        ticks = (now + passed) % 2**29
        assert core.receive(report, now + passed) == session.receive(report, ticks)
        for key in range(keys[number % len(keys)]):
            if core.capturing:
                core.captured_key_event(1, key, 4, True, ticks)
                session.captured_key(1, key, 4, True, ticks)
            core.key_event(1, key, 0xE0 + key, True, ticks)
            session.key(1, key, 0xE0 + key, True, ticks)
            core.macro_event(key, key % 3 == 0, ticks)
            session.macro(key, key % 3 == 0, ticks)
        match own[number % len(own)]:
            case "accept":
                assert core.accept(ticks) == session.accept(ticks)
            case "begin":
                assert core.begin_capture(ticks) == session.begin_capture(ticks)
            case "end":
                core.end_capture(ticks)
                session.end_capture(ticks)
        assert core.capturing == session.capturing
        for _ in range(4):  # the C core sends up to 4 frames in one task
            session.task(ticks)
        core.task(now + passed)
        # the widths differ by 2 pixels, which hold no character
        assert [without_width(r) for r in from_python] == [without_width(r) for r in from_c]
        colours = [session.lights.color(led, now + passed) for led in range(5)]
        assert colours == [
            None if c is None else (c.red, c.green, c.blue) for c in core.led_colors(now + passed)
        ]
        assert core.status == session.status
        taken = session.text is not None or session.status != 0 or session.capturing
        assert core.display_taken == taken
        if session.text is not None:
            assert core.panel() == drawn(session.text, session.status, session.capturing)
        core.panel()
        session.changed = False  # both have drawn what there is
        from_c.clear()
        from_python.clear()


def without_width(report: bytes) -> bytes:
    is_caps = report[2] & 15 == 0 and len(report) == 32
    return report[:19] + report[20:30] if is_caps else report


def drawn(rows: list[str], status: int, capturing: bool) -> Any:
    bench = Bench(board)
    bench.subscribe(EventKinds(15))
    if capturing:
        bench.core.begin_capture(0)
    bench.show(*rows)
    bench.do(SetStatus(Status(status)))
    return bench.core.panel()


def test_an_answer_waits_while_the_port_is_full() -> None:
    open_now = [False]
    sent: list[bytes] = []

    def send(report: bytes) -> bool:
        if open_now[0]:
            sent.append(bytes(report))
        return open_now[0]

    session = make_session(send)
    first = encode(Frame(FrameType.SUBSCRIBE, 7, 1, b"\3"), 32)
    second = encode(Frame(FrameType.STATUS, 7, 2, b"\2"), 32)
    assert session.receive(first, 0)
    assert session.receive(second, 0)
    assert (session.status, sent) == (0, [])
    open_now[0] = True
    session.task(1)
    assert [report[4] for report in sent] == [1]


@pytest.mark.parametrize("name", sorted(path.name for path in KMK.glob("*.py")))
def test_nothing_is_used_that_circuitpython_lacks(name: str) -> None:
    """Checked on the syntax tree: no imports but those of the board and KMK, and nothing is evaluated."""
    allowed = {
        "usb_cdc", "supervisor", "microcontroller", "kmk.keys", "kmk.modules", "kmk.extensions.rgb",
        "thock_lights", "thock_own_keys", "thock_session", "thock_typist", "thock_wire",
    }  # fmt: skip
    tree = ast.parse((KMK / name).read_text())
    for node in ast.walk(tree):
        assert not isinstance(
            node, ast.Match | ast.AnnAssign | ast.AsyncFunctionDef | ast.JoinedStr
        )
        if isinstance(node, ast.ImportFrom):
            assert node.module in allowed
        elif isinstance(node, ast.Import):
            assert {alias.name for alias in node.names} <= allowed
        elif isinstance(node, ast.Name):
            assert node.id not in ("eval", "exec", "compile", "__import__", "getattr_static")


def test_the_files_are_small() -> None:
    """A board with 192 KiB of RAM has about 100 KiB left for KMK, keymap and this."""
    sizes = {path.name: path.stat().st_size for path in Path(KMK).glob("*.py")}
    print("KMK module, bytes:", sizes)
    assert sum(sizes.values()) < 38 * 1024
