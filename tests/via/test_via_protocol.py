# SPDX-License-Identifier: Apache-2.0
"""The one check that every request to firmware of others passes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from firmware_bridge.via.conversation import Conversation
from firmware_bridge.via.protocol import ForbiddenRequestError, check_request
from tests.helpers.peers import make_peer
from tests.helpers.via_lab import ViaLab
from tests.helpers.via_peers import FORBIDDEN, ForbiddenWriteError

# The bytes that the design forbids as commands; Keychron's own are not VIA's.
NEVER = sorted(
    set(FORBIDDEN) | {0x00, 0x02, 0x03, 0x04, 0x0C, 0x11, 0x13, 0x15, 0xA8, 0xDF, 0xE7, 0xFF}
)
VALUES = (1, 2, 3, 5, 0x4C, 0x09, 0x0A, 0x80, 0x81, 0x82, 0x83, 0x41, 0x42)
rest = st.binary(min_size=31, max_size=31)


@given(st.sampled_from(NEVER), rest)
def test_no_request_with_a_forbidden_command_is_ever_written(command: int, tail: bytes) -> None:
    lab = ViaLab(make_peer("echo"))
    request = bytes((command,)) + tail
    with pytest.raises(ForbiddenRequestError):
        lab.conversation.ask(request)
    wrapped = b"\xdd\1\2\3\4\xfe" + request[:26]
    with pytest.raises(ForbiddenRequestError):
        lab.conversation.ask(wrapped)
    assert lab.requests == []


@given(st.binary(min_size=32, max_size=32))
@example(b"\x07\x09".ljust(32, b"\0"))
@example(b"\x08\x0a".ljust(32, b"\0"))
@example(b"\xfe\x06".ljust(32, b"\0"))
@example(b"\xdd\1\0\0\0\xdf\x0e".ljust(32, b"\0"))
@example(b"\xdd\1\0\0\0\xfe\xdd\1\0\0\0\xfe\x0a".ljust(32, b"\0"))
def test_what_passes_is_on_the_short_list(report: bytes) -> None:
    try:
        check_request(report)
    except ForbiddenRequestError:
        return
    inner = report[6:] if report[0] == 0xDD and any(report[1:5]) else report
    allowed: dict[int, Callable[[int], bool]] = {
        0x01: lambda second: True,
        0x07: lambda second: second in VALUES,
        0x08: lambda second: second in VALUES or second in (0x40, 0x43),
        0xFE: lambda second: second in (0, 5),
        0xDD: lambda second: inner is report,
    }
    assert allowed[inner[0]](inner[1])
    make_peer("echo")(report)  # springs no trap


@pytest.mark.parametrize(
    "head", [b"\x07\x09\xff", b"\x07\x0a\1", b"\x08\x09", b"\x08\x0a", b"\x07\x05\1"]
)
def test_value_ids_may_have_the_numbers_of_forbidden_commands(head: bytes) -> None:
    check_request(head.ljust(32, b"\0"))


@pytest.mark.parametrize("report", [b"", b"\x01"])
def test_a_fragment_is_no_request(report: bytes) -> None:
    with pytest.raises(ForbiddenRequestError):
        check_request(report)


def test_the_refusal_shows_two_bytes_only() -> None:
    with pytest.raises(ForbiddenRequestError, match="0a ab is not") as caught:
        check_request(b"\x0a\xab\xcd" + bytes(29))
    assert "cd" not in str(caught.value)


def test_the_trap_of_the_peers_closes() -> None:
    peer = make_peer("echo")
    with pytest.raises(ForbiddenWriteError, match="EEPROM"):
        list(peer(b"\x0a"))
    with pytest.raises(ForbiddenWriteError, match="bootloader"):
        list(peer(b"\xdd\1\0\0\0\xfe\x0b"))
    with pytest.raises(ForbiddenWriteError, match="unlock"):
        list(peer(b"\xfe\x06"))
    assert len(peer.trapped) == 3


def test_short_requests_are_checked_as_they_are_sent() -> None:
    lab = ViaLab(make_peer("echo"))
    Conversation(lab.transport).ask(b"\x01")
    assert lab.requests == [b"\x01".ljust(32, b"\0")]
