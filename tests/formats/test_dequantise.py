# SPDX-License-Identifier: Apache-2.0
"""Every tensor type against a scalar reading of llama.cpp's block layouts, and against gguf-py."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import pytest

from engine.errors import ModelFileError
from engine.formats.dequantise import PIECE_WEIGHTS, dequantise
from engine.formats.mapped_file import MappedFile
from engine.formats.tensors import LAYOUTS, StoredTensor, TensorType, stored_size


def stored(path: Path, kind: TensorType, shape: tuple[int, ...], data: bytes) -> StoredTensor:
    """A tensor at an odd offset, since nothing promises alignment to its element size."""
    path.write_bytes(b"\0\0\0" + data)
    size = stored_size(kind, shape)
    assert size == len(data)
    return StoredTensor(MappedFile(path), "t", kind, shape, 3, size)


def half(data: bytes) -> float:
    return float(struct.unpack("<e", data)[0])


# Scalar decoders, written from dequantize_row_* in ggml-quants.c.


def q4_0(b: bytes) -> list[float]:
    d, qs = half(b[:2]), b[2:]
    return [((q & 15) - 8) * d for q in qs] + [((q >> 4) - 8) * d for q in qs]


def q4_1(b: bytes) -> list[float]:
    d, m, qs = half(b[:2]), half(b[2:4]), b[4:]
    return [(q & 15) * d + m for q in qs] + [(q >> 4) * d + m for q in qs]


def five_bits(high: bytes, qs: bytes) -> list[int]:
    qh = int.from_bytes(high, "little")
    low = [(q & 15) | ((qh >> j & 1) << 4) for j, q in enumerate(qs)]
    return low + [(q >> 4) | ((qh >> (j + 16) & 1) << 4) for j, q in enumerate(qs)]


def q5_0(b: bytes) -> list[float]:
    return [(q - 16) * half(b[:2]) for q in five_bits(b[2:6], b[6:])]


def q5_1(b: bytes) -> list[float]:
    return [q * half(b[:2]) + half(b[2:4]) for q in five_bits(b[4:8], b[8:])]


def q8_0(b: bytes) -> list[float]:
    return [q * half(b[:2]) for q in struct.unpack("<32b", b[2:])]


def scale_min(j: int, q: bytes) -> tuple[int, int]:
    """get_scale_min_k4"""
    if j < 4:
        return q[j] & 63, q[j + 4] & 63
    return (q[j + 4] & 15) | ((q[j - 4] >> 6) << 4), (q[j + 4] >> 4) | ((q[j] >> 6) << 4)


def q45_k(b: bytes, five: bool) -> list[float]:
    d, dmin, scales = half(b[:2]), half(b[2:4]), b[4:16]
    qh, qs = (b[16:48], b[48:]) if five else (bytes(32), b[16:])
    out: list[float] = []
    for group in range(8):
        sc, m = scale_min(group, scales)
        for i in range(32):
            byte = qs[32 * (group // 2) + i]
            q = (byte >> 4 if group % 2 else byte & 15) | ((qh[i] >> group & 1) << 4)
            out.append(d * sc * q - dmin * m)
    return out


def q6_k(b: bytes) -> list[float]:
    out = [0.0] * 256
    d, scales = half(b[208:]), struct.unpack("<16b", b[192:208])
    for n in range(2):
        ql, qh, sc = b[64 * n :], b[128 + 32 * n :], scales[8 * n :]
        for i in range(32):
            quants = (
                (ql[i] & 15) | ((qh[i] >> 0 & 3) << 4),
                (ql[i + 32] & 15) | ((qh[i] >> 2 & 3) << 4),
                (ql[i] >> 4) | ((qh[i] >> 4 & 3) << 4),
                (ql[i + 32] >> 4) | ((qh[i] >> 6 & 3) << 4),
            )
            for part, q in enumerate(quants):
                out[128 * n + 32 * part + i] = d * sc[i // 16 + 2 * part] * (q - 32)
    return out


DECODERS: dict[TensorType, Callable[[bytes], list[float]]] = {
    TensorType.F32: lambda b: [struct.unpack("<f", b)[0]],
    TensorType.F16: lambda b: [half(b)],
    TensorType.BF16: lambda b: [struct.unpack("<f", b"\0\0" + b)[0]],
    TensorType.Q4_0: q4_0,
    TensorType.Q4_1: q4_1,
    TensorType.Q5_0: q5_0,
    TensorType.Q5_1: q5_1,
    TensorType.Q8_0: q8_0,
    TensorType.Q4_K: lambda b: q45_k(b, five=False),
    TensorType.Q5_K: lambda b: q45_k(b, five=True),
    TensorType.Q6_K: q6_k,
}


def random_blocks(kind: TensorType, count: int, seed: int) -> bytes:
    """Random bytes with moderate scales (exponent bits 0b01111 of a float16, or 0x3F of the others)."""
    layout = LAYOUTS[kind]
    blocks = np.random.default_rng(seed).integers(0, 256, (count, layout.size), dtype=np.uint8)
    width = np.dtype(layout.scale_type).itemsize
    for scale in layout.scales:
        top = blocks[:, scale + width - 1]
        top[:] = (top & 0x83) | 0x3C
    return blocks.tobytes()


@pytest.mark.parametrize("kind", TensorType)
def test_agrees_with_the_layouts_and_with_gguf(kind: TensorType, tmp_path: Path) -> None:
    layout = LAYOUTS[kind]
    rows, columns = 6, 512
    data = random_blocks(kind, rows * columns // layout.weights, seed=int(kind))
    found = dequantise(stored(tmp_path / "w", kind, (rows, columns), data))
    assert found.shape == (rows, columns)
    assert found.dtype == np.float32

    blocks = [data[i : i + layout.size] for i in range(0, len(data), layout.size)]
    by_hand = [value for block in blocks for value in DECODERS[kind](block)]
    np.testing.assert_allclose(found.reshape(-1), by_hand, rtol=1e-6, atol=1e-6)

    raw = np.frombuffer(data, np.uint8).reshape(rows, -1)
    theirs = gguf.quants.dequantize(raw, gguf.GGMLQuantizationType(int(kind)))
    np.testing.assert_array_equal(found, theirs)


def test_literal_values(tmp_path: Path) -> None:
    """A few blocks worked out on paper, so that the decoders above cannot share a mistake with us."""
    one, two = struct.pack("<e", 1.0), struct.pack("<e", 2.0)
    values = dequantise(stored(tmp_path / "a", TensorType.Q4_0, (1, 32), two + b"\x9f" + bytes(15)))
    assert (values[0, 0], values[0, 16], values[0, 1]) == (14.0, 2.0, -16.0)  # 15-8, 9-8, 0-8
    block = one + two + b"\x21" + bytes(15)
    values = dequantise(stored(tmp_path / "b", TensorType.Q4_1, (1, 32), block))
    assert (values[0, 0], values[0, 16], values[0, 1]) == (3.0, 4.0, 2.0)
    block = one + struct.pack("<I", 1 | 1 << 16) + b"\x21" + bytes(15)
    values = dequantise(stored(tmp_path / "c", TensorType.Q5_0, (1, 32), block))
    assert (values[0, 0], values[0, 16], values[0, 1]) == (1.0, 2.0, -16.0)
    values = dequantise(stored(tmp_path / "d", TensorType.Q8_0, (1, 32), two + b"\x80" + bytes(31)))
    assert (values[0, 0], values[0, 1]) == (-256.0, 0.0)
    # Q4_K: group 0 has scale 3 and min 2; group 4 takes bits from bytes 8, 0 and 4 of the scales.
    scales = bytes([3 | 1 << 6, 0, 0, 0, 2 | 2 << 6, 0, 0, 0, 5 | 7 << 4, 0, 0, 0])
    quants = bytearray(128)
    quants[0], quants[64] = 4, 6
    block = one + one + scales + bytes(quants)
    values = dequantise(stored(tmp_path / "e", TensorType.Q4_K, (1, 256), block))
    assert values[0, 0] == 3 * 4 - 2
    assert values[0, 128] == (5 | 1 << 4) * 6 - (7 | 2 << 4)
    # Q6_K: quant 0 is 0b11_1111 - 32 = 31, scaled by -3.
    block = b"\x0f" + bytes(127) + b"\x03" + bytes(63) + b"\xfd" + bytes(15) + two
    values = dequantise(stored(tmp_path / "f", TensorType.Q6_K, (1, 256), block))
    assert (values[0, 0], values[0, 1]) == (31 * -3 * 2.0, -32 * -3 * 2.0)


@pytest.mark.parametrize("kind", TensorType)
@pytest.mark.parametrize("bits", ["nan", "inf", "-inf"])
def test_nan_and_infinity_are_refused_in_every_scale(
    kind: TensorType, bits: str, tmp_path: Path
) -> None:
    layout = LAYOUTS[kind]
    count = 2048 // layout.weights
    width = np.dtype(layout.scale_type).itemsize
    bad = {"<u4": struct.pack("<f", float(bits))}.get(layout.scale_type, b"")
    if layout.scale_type == "<u2":
        short = kind is TensorType.BF16
        bad = struct.pack("<f", float(bits))[2:] if short else struct.pack("<e", float(bits))
    for number, scale in enumerate(layout.scales):
        data = bytearray(random_blocks(kind, count, seed=1))
        place = (count - 1) * layout.size + scale
        data[place : place + width] = bad
        tensor = stored(tmp_path / f"w{number}", kind, (1, 2048), bytes(data))
        with pytest.raises(ModelFileError, match="NaN or infinity") as caught:
            dequantise(tensor)
        assert caught.value.field == "tensor t"
        assert f"near weight {2048 - layout.weights}" in str(caught.value)


def test_a_tensor_larger_than_one_piece(tmp_path: Path) -> None:
    shape = (3, PIECE_WEIGHTS // 2 + 32)
    expected = np.random.default_rng(5).standard_normal(shape).astype(np.float32)
    found = dequantise(stored(tmp_path / "w", TensorType.F32, shape, expected.tobytes()))
    np.testing.assert_array_equal(found, expected)


def test_the_largest_scales_stay_finite(tmp_path: Path) -> None:
    """Why looking at the scales is enough: no block of finite scales gives infinity."""
    for kind in TensorType:
        layout = LAYOUTS[kind]
        block = np.full(layout.size, 0xFF, np.uint8)
        width = np.dtype(layout.scale_type).itemsize
        largest = int(layout.exponent) - 1  # sign 0, largest exponent and fraction
        for scale in layout.scales:
            block[scale : scale + width] = np.frombuffer(
                largest.to_bytes(width, "little"), np.uint8
            )
        tensor = stored(tmp_path / kind.name, kind, (1, layout.weights), block.tobytes())
        assert np.isfinite(dequantise(tensor)).all(), kind.name


def test_a_file_that_was_cut_short_after_opening(tmp_path: Path) -> None:
    """Reading the mapping would end the process with SIGBUS."""
    tensor = stored(tmp_path / "w", TensorType.F32, (4096,), bytes(4 * 4096))
    with open(tmp_path / "w", "r+b") as file:
        file.truncate(100)
    with pytest.raises(ModelFileError, match="cut short"):
        dequantise(tensor)
