# SPDX-License-Identifier: Apache-2.0
"""Every message survives its payload, and no payload crashes a parser."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware_bridge.errors import FrameError
from firmware_bridge.lights.overlay import LightEffect, Rgb
from firmware_bridge.protocol.capabilities import Capabilities, Feature
from firmware_bridge.protocol.frames import FrameType
from firmware_bridge.protocol.key_messages import KeyRecord, KeyReport, RecordKind
from firmware_bridge.protocol.light_messages import (
    LightsFill,
    LightsForget,
    LightsKeys,
    LightsOff,
    LightsRun,
    colours_per_run,
    unpack_lights,
)
from firmware_bridge.protocol.messages import (
    Ack,
    BitmapRun,
    Caps,
    EventKinds,
    Hello,
    Message,
    Nak,
    NakReason,
    Offer,
    Parts,
    Poll,
    Release,
    SetStatus,
    Status,
    Subscribe,
    TextRun,
)

U8 = st.integers(0, 0xFF)
U16 = st.integers(0, 0xFFFF)
U32 = st.integers(0, 0xFFFF_FFFF)
ASCII = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=22)
COLOURS = st.builds(Rgb, U8, U8, U8)


@st.composite
def capabilities(draw: st.DrawFn) -> Capabilities:
    display = draw(st.booleans())
    return Capabilities(
        protocol_low=draw(st.integers(0, 15)),
        protocol_high=draw(st.integers(0, 15)),
        report_length=draw(U8),
        uid=draw(st.binary(min_size=6, max_size=6)),
        width=draw(st.integers(1, 255)) if display else 0,
        height=draw(st.integers(1, 31)) * 8 if display else 0,
        rotation=draw(st.integers(0, 3)),
        columns=draw(U8),
        rows=draw(U8),
        led_count=draw(U16),
        features=Feature(draw(st.integers(0, 511))),
        ring_size=draw(U8),
        build=draw(U8),
    )


KEY_RECORDS = st.one_of(
    st.builds(KeyRecord, st.booleans(), st.just(RecordKind.KEY), U8, U8, U16, U16, st.booleans()),
    st.builds(
        KeyRecord, st.booleans(), st.sampled_from(RecordKind), U8, st.just(0), st.just(0), U16
    ),
)
MESSAGES: st.SearchStrategy[Message] = st.one_of(
    st.builds(Hello, U32, U8, U8),
    st.builds(Caps, U32, capabilities()),
    st.builds(Subscribe, st.builds(EventKinds, st.integers(0, 15))),
    st.builds(KeyReport, U16, U8, st.lists(KEY_RECORDS, min_size=1, max_size=3).map(tuple)),
    st.builds(TextRun, U8, U8, ASCII),
    st.builds(BitmapRun, U8, U8, st.binary(max_size=22)),
    st.builds(SetStatus, st.sampled_from(Status)),
    st.builds(Release, st.builds(Parts, st.integers(0, 15))),
    st.builds(Ack, st.sampled_from(FrameType)),
    st.builds(Nak, st.integers(0, 15), st.sampled_from(NakReason)),
    st.just(Poll()),
    st.builds(Offer, U8, U8, U8),
    st.just(LightsOff()),
    st.just(LightsForget()),
    st.builds(LightsFill, st.sampled_from(LightEffect), COLOURS),
    st.builds(LightsRun, U16, st.lists(COLOURS, min_size=1, max_size=7).map(tuple)),
    st.builds(LightsKeys, st.lists(st.tuples(U8, U8, COLOURS), min_size=1, max_size=4).map(tuple)),
)
KEYBOARD_MESSAGES = (Caps, KeyReport, Ack, Nak)
PARSERS: tuple[Callable[[bytes], Message], ...] = (
    Hello.unpack,
    Caps.unpack,
    Subscribe.unpack,
    KeyReport.unpack,
    TextRun.unpack,
    BitmapRun.unpack,
    SetStatus.unpack,
    Poll.unpack,
    Offer.unpack,
    Release.unpack,
    Ack.unpack,
    Nak.unpack,
    unpack_lights,
)


def parse(message: Message, payload: bytes) -> Message:
    if message.type is FrameType.LIGHTS:
        return unpack_lights(payload)
    parser: Callable[[bytes], Message] = type(message).unpack  # type: ignore[attr-defined]
    return parser(payload)


@given(MESSAGES)
def test_a_message_survives_its_payload(message: Message) -> None:
    payload = message.pack()
    assert len(payload) <= 24
    assert parse(message, payload) == message


@given(st.sampled_from(PARSERS), st.binary(max_size=63))
def test_any_payload_is_a_message_or_a_frame_error(
    parser: Callable[[bytes], Message], payload: bytes
) -> None:
    try:
        message = parser(payload)
    except FrameError:
        return
    assert parse(message, message.pack()) == message


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (TextRun(0, 0, "the secret"), "secret"),
        (BitmapRun(0, 0, b"secret"), "secret"),
        (KeyRecord(True, RecordKind.KEY, 91, 92, 93, 5), "9"),
    ],
)
def test_repr_shows_no_content(message: object, text: str) -> None:
    assert text not in repr(message)


def test_text_outside_the_font_is_refused_without_being_shown() -> None:
    with pytest.raises(FrameError) as caught:
        TextRun(0, 0, "ключ").pack()
    assert "ключ" not in str(caught.value)
    with pytest.raises(FrameError):
        TextRun.unpack(b"\0\0\x7f")


@pytest.mark.parametrize(
    "message",
    [Hello(1 << 32, 1, 1), TextRun(256, 0, ""), BitmapRun(0, -1, b""), LightsRun(65536, ())],
)
def test_numbers_out_of_range_are_refused(message: Message) -> None:
    with pytest.raises(FrameError):
        message.pack()


def test_seven_colours_fit_a_qmk_report() -> None:
    assert colours_per_run(24) == 7


def test_features_of_later_firmware_are_ignored() -> None:
    board = Capabilities(1, 1, 32, bytes(6), 128, 32, 0, 21, 4, 0, Feature.TEXT, 32, 1)
    payload = bytearray(Caps(5, board).pack())
    payload[21] = 0x80
    assert Caps.unpack(bytes(payload)).capabilities.features is Feature.TEXT
