# SPDX-License-Identifier: Apache-2.0
"""Questions and their answers among reports of all kinds."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware_bridge.neighbours import QuietTimes
from firmware_bridge.via.conversation import (
    Conversation,
    EchoError,
    NoAnswerError,
    NotViaError,
    OtherProgramError,
    UnhandledError,
)
from firmware_bridge.via.viable import ViableError
from tests.helpers.peers import make_peer
from tests.helpers.transports import ScriptedTransport
from tests.helpers.via_lab import ANSWER_S, ViaLab
from tests.helpers.via_peers import ViableBoard, ViaBoard

BRIGHTNESS = b"\3\1"


def board(brightness: int = 77) -> ViaBoard:
    peer = ViaBoard(12)
    peer.lights[3].value = brightness
    return peer


def test_every_version_from_9_to_13_is_known_and_no_other() -> None:
    for version in range(9, 14):
        assert ViaLab(ViaBoard(version)).conversation.version() == version
    for version in (0, 7, 8, 14, 0x0B00):
        with pytest.raises(NotViaError):
            ViaLab(ViaBoard(version)).conversation.version()


@given(st.lists(st.binary(min_size=32, max_size=32), max_size=6))
def test_the_answer_is_found_among_any_other_reports(noise: list[bytes]) -> None:
    peer = board()

    def noisy(report: bytes) -> Iterable[bytes]:
        yield from (other for other in noise if other[:3] != report[:3])
        yield from peer(report)

    lab = ViaLab(peer)
    talk = Conversation(ScriptedTransport(noisy), answer_s=1, quiet=QuietTimes(0, 0, rows=()))
    assert talk.get(BRIGHTNESS, 1) == b"\x4d"
    assert talk.stats.foreign == len([n for n in noise if n[:3] != b"\x08\3\1"])
    assert len(lab.requests) == 1


def test_reports_from_before_are_thrown_away() -> None:
    transport = ScriptedTransport(board())
    talk = Conversation(transport, answer_s=ANSWER_S, quiet=QuietTimes(rows=()))
    transport._queue.append(b"\x08\3\1\x11".ljust(32, b"\0"))
    assert talk.get(BRIGHTNESS, 1) == b"\x4d"
    assert talk.stats.foreign == 1


def test_a_lost_answer_is_asked_for_again_and_a_late_one_is_nobodys_else() -> None:
    peer = board()
    held: list[bytes] = []

    def slow(report: bytes) -> Iterable[bytes]:
        answers = list(peer(report))
        if len(peer.writes) <= 2:
            held.extend(answers)
            return
        yield from answers
        yield from held
        held.clear()

    talk = Conversation(ScriptedTransport(slow), answer_s=ANSWER_S)
    assert talk.get(BRIGHTNESS, 1) == b"\x4d"
    assert talk.stats.retries == 2
    assert talk.get(BRIGHTNESS, 1) == b"\x4d"
    assert (talk.stats.stale, talk.stats.foreign) == (2, 0)


def test_silence_is_given_up_after_two_repeats() -> None:
    lab = ViaLab(make_peer("silent receiver"))
    with pytest.raises(NoAnswerError):
        lab.conversation.get(BRIGHTNESS, 1)
    assert len(lab.requests) == 3


def test_the_default_waits_half_a_second() -> None:
    clock = [0.0]

    class Waiting(ScriptedTransport):
        def read(self, timeout_s: float) -> None:
            clock[0] += timeout_s

    lab = ViaLab(make_peer("silent receiver"))
    talk = Conversation(Waiting(lab.peer), clock=lambda: clock[0])
    with pytest.raises(NoAnswerError):
        talk.get(BRIGHTNESS, 1)
    assert clock[0] == pytest.approx(1.5, abs=0.01)


def test_what_the_firmware_does_not_know_is_told_at_once() -> None:
    lab = ViaLab(ViaBoard(12, (2,)))
    with pytest.raises(UnhandledError):
        lab.conversation.get(BRIGHTNESS, 1)
    assert len(lab.requests) == 1


@pytest.mark.parametrize("size", [1, 2])
def test_an_echo_is_told_from_a_value(size: int) -> None:
    lab = ViaLab(make_peer("echo"))
    with pytest.raises(EchoError):
        lab.conversation.get(BRIGHTNESS, size)
    peer = board(0xA5)  # the value may look like our pattern
    assert ViaLab(peer).conversation.get(BRIGHTNESS, 1) == b"\xa5"


def test_nothing_is_said_while_another_program_talks() -> None:
    lab = ViaLab(board())
    talk = Conversation(lab.transport, quiet=QuietTimes(0.01, 0.2, stay_s=0.2))
    answers = [bytes((0x12, 0, offset, 28)).ljust(32, b"\0") for offset in (0, 28)]
    lab.transport._queue.extend(answers)
    with pytest.raises(OtherProgramError, match="VIA is using the keyboard") as caught:
        talk.get(BRIGHTNESS, 1)
    assert caught.value.program == "VIA"
    assert lab.requests == []
    with pytest.raises(OtherProgramError):
        talk.set(BRIGHTNESS, b"\1")
    while talk.silent_until > talk._clock():
        talk.listen(0.05)
    assert talk.get(BRIGHTNESS, 1) == b"\x4d"


def test_listening_notices_another_program() -> None:
    lab = ViaLab(board())
    lab.transport._queue.append(b"\x01\0\x0c".ljust(32, b"\0"))
    lab.transport._queue.append(b"\x11\4".ljust(32, b"\0"))
    lab.conversation.listen(0.01)
    with pytest.raises(OtherProgramError):
        lab.conversation.listen(0.01)


def test_one_stray_answer_only_delays_the_next_question() -> None:
    lab = ViaLab(board())
    talk = Conversation(lab.transport, answer_s=ANSWER_S, quiet=QuietTimes(0.05, 5))
    lab.transport._queue.append(b"\x01\0\x0c".ljust(32, b"\0"))
    assert talk.get(BRIGHTNESS, 1) == b"\x4d"
    assert talk.silent_until < talk._clock()


class Shared(ViableBoard):
    """Every answer is preceded by one of another client's."""

    def __call__(self, report: bytes):  # type: ignore[no-untyped-def]
        for answer in super().__call__(report):
            yield b"\xdd\7\7\7\7" + answer[5:]
            yield answer


def test_a_viable_board_is_asked_under_our_id_and_anew_when_it_ran_out() -> None:
    lab = ViaLab(Shared())
    talk = Conversation(lab.transport, answer_s=ANSWER_S, quiet=QuietTimes(0, 0))
    talk.use_client_ids()
    talk.set(BRIGHTNESS, b"\x4d")
    assert talk.get(BRIGHTNESS, 1) == b"\x4d"
    assert lab.requests[-1][:5] == b"\xdd\1\0\5\0"
    assert isinstance(lab.peer, Shared)
    lab.peer.expire()
    assert talk.get(BRIGHTNESS, 1) == b"\x4d"
    assert lab.requests[-1][:5] == b"\xdd\2\0\5\0"
    assert talk.stats.stale == 0


def test_a_request_that_does_not_fit_a_viable_frame_is_refused() -> None:
    lab = ViaLab(ViableBoard())
    lab.conversation.use_client_ids()
    with pytest.raises(ValueError, match="27 bytes"):
        lab.conversation.set(BRIGHTNESS, bytes(24))


def test_a_bootstrap_that_only_comes_back_gives_no_id() -> None:
    with pytest.raises(ViableError):
        ViaLab(make_peer("echo")).conversation.use_client_ids()
    with pytest.raises(NoAnswerError):
        ViaLab(make_peer("silent receiver")).conversation.use_client_ids()


def test_a_viable_board_that_does_not_pass_via_on_is_told() -> None:
    class Deaf(ViableBoard):
        def answer(self, data: bytearray) -> bool:
            if data[0] == 0xDD and any(data[1:5]):
                data[5:7] = b"\xff\3"
                return True
            return super().answer(data)

    lab = ViaLab(Deaf())
    lab.conversation.use_client_ids()
    with pytest.raises(ViableError, match="error 3"):
        lab.conversation.get(BRIGHTNESS, 1)
