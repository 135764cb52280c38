# SPDX-License-Identifier: Apache-2.0
"""The udev rules file; tests/vm/test_vm_udev.py has it in front of a real udevd."""

from __future__ import annotations

import re

import pytest

from firmware_bridge.discovery.udev_rules import RawInterface, render_udev_rules

BOARD = RawInterface(0xFEED, 0x00AB, 1, "Board")


def rules(text: str) -> list[str]:
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def test_each_keyboard_has_two_rules_between_the_guards() -> None:
    assert rules(render_udev_rules([BOARD])) == [
        'ACTION=="remove", GOTO="thock_end"',
        'SUBSYSTEM!="hidraw", GOTO="thock_end"',
        'ATTRS{idVendor}=="feed", ATTRS{idProduct}=="00ab", ENV{THOCK_feed_00ab}="1"',
        'ENV{THOCK_feed_00ab}=="1", ATTRS{bInterfaceNumber}=="01", TAG+="uaccess"',
        'LABEL="thock_end"',
    ]


def test_the_order_and_repetition_of_keyboards_do_not_matter() -> None:
    other = RawInterface(0x1209, 1, 2)
    text = render_udev_rules([BOARD, other])
    assert text == render_udev_rules([other, BOARD, other])
    assert text.count('uaccess"\n') == 2


def test_no_rule_opens_a_whole_device_or_everybodys_access() -> None:
    text = "\n".join(rules(render_udev_rules([BOARD])))
    assert "MODE" not in text
    assert "GROUP" not in text
    for line in text.splitlines():
        assert ("uaccess" in line) == ("bInterfaceNumber" in line)


def test_a_name_cannot_leave_its_comment() -> None:
    text = render_udev_rules([RawInterface(1, 1, 1, 'x\n\u2028KERNEL=="*", MODE="0666"\\')])
    assert rules(text) == rules(render_udev_rules([RawInterface(1, 1, 1)]))
    assert not re.search(r"\\\n", text)


@pytest.mark.parametrize(
    "device",
    [
        RawInterface(0, 1, 1),
        RawInterface(1, 0, 1),
        RawInterface(1, 0x10000, 1),
        RawInterface(1, 1, -1),
        RawInterface(1, 1, 256),
    ],
)
def test_numbers_that_would_open_too_much_are_refused(device: RawInterface) -> None:
    with pytest.raises(ValueError, match="a rule needs"):
        render_udev_rules([device])


def test_a_file_without_keyboards_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        render_udev_rules([])
