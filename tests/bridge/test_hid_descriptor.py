# SPDX-License-Identifier: Apache-2.0
"""Report descriptors: real ones give their lengths, damaged ones an error."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware_bridge.transport.hid_descriptor import (
    Collection,
    DescriptorError,
    parse_report_descriptor,
)
from tests.vm.descriptors import BOOT_KEYBOARD, raw_hid

# QMK's shared endpoint: mouse, system control, consumer and NKRO keyboard behind report ids 2 to 6
# (tmk_core/protocol/usb_descriptor.c), shortened to its mouse and consumer parts.
SHARED = bytes.fromhex(
    "05010902a10185020901a1000509190129081500250195087501810205010930093115812 57f95027508810609381581"
    "257f950175088106050c0a38021581257f950175088106c0c0".replace(" ", "")
    + "050c0901a101850419012aa0021501 26a00295017510 8100c0".replace(" ", "")
)


@pytest.mark.parametrize("length", [32, 64, 255])
def test_raw_hid_has_its_length(length: int) -> None:
    assert parse_report_descriptor(raw_hid(length)) == [
        Collection(0xFF60, 0x61, length, length, has_report_ids=False)
    ]


def test_the_boot_keyboard_is_no_raw_hid() -> None:
    assert parse_report_descriptor(BOOT_KEYBOARD) == [
        Collection(0x01, 0x06, 8, 1, has_report_ids=False)
    ]


def test_report_ids_are_seen_and_do_not_count_as_bytes() -> None:
    assert parse_report_descriptor(SHARED) == [
        Collection(0x01, 0x02, 5, 0, has_report_ids=True),
        Collection(0x0C, 0x01, 2, 0, has_report_ids=True),
    ]


def test_a_four_byte_usage_brings_its_page() -> None:
    descriptor = bytes.fromhex("0b610060ffa101c0")
    assert parse_report_descriptor(descriptor) == [
        Collection(0xFF60, 0x61, 0, 0, has_report_ids=False)
    ]


def test_push_and_pop_keep_the_sizes() -> None:
    # report size 8, count 4, push, count 60, pop, input: 4 bytes
    descriptor = bytes.fromhex("0501 0906 a101 7508 9504 a4 953c b4 8102 c0".replace(" ", ""))
    assert parse_report_descriptor(descriptor)[0].input_bytes == 4


def test_long_items_are_skipped() -> None:
    long_item = bytes((0xFE, 3, 0x81)) + b"\x95\x20\x81"
    assert parse_report_descriptor(long_item + raw_hid()) == parse_report_descriptor(raw_hid())


def test_partial_bytes_count_as_whole_ones() -> None:
    descriptor = bytes.fromhex("0501 0906 a101 7501 9509 8102 c0".replace(" ", ""))
    assert parse_report_descriptor(descriptor)[0].input_bytes == 2


@pytest.mark.parametrize(
    "descriptor",
    [
        raw_hid()[:-1],  # not closed
        raw_hid()[:2],  # ends inside an item
        b"\xc0",  # closed but not opened
        b"\xb4",  # pop without push
        b"\xfe",  # ends inside a long item
        bytes.fromhex("a10177ffffffff97ffffffff8102c0"),  # a report of 2^61 bytes
    ],
)
def test_damaged_descriptors_are_refused(descriptor: bytes) -> None:
    with pytest.raises(DescriptorError):
        parse_report_descriptor(descriptor)


@given(st.binary(max_size=200))
def test_any_bytes_give_collections_or_an_error(descriptor: bytes) -> None:
    try:
        collections = parse_report_descriptor(descriptor)
    except DescriptorError:
        return
    for collection in collections:
        assert 0 <= collection.usage_page <= 0xFFFF
        assert 0 <= collection.input_bytes <= 4096
