# SPDX-License-Identifier: Apache-2.0
"""How weights are stored: types, block layouts, and where each tensor stands in its file.

Block layouts: ggml-common.h of llama.cpp (block_q4_0 and so on).
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from engine.errors import ModelFileError
from engine.formats.mapped_file import MappedFile
from engine.texts import Text


class TensorType(enum.IntEnum):
    """The tensor types that Thock reads, with their numbers in GGUF (ggml_type)."""

    F32 = 0
    F16 = 1
    Q4_0 = 2
    Q4_1 = 3
    Q5_0 = 6
    Q5_1 = 7
    Q8_0 = 8
    Q4_K = 12
    Q5_K = 13
    Q6_K = 14
    BF16 = 30


@dataclass(frozen=True, slots=True)
class BlockLayout:
    """One block: its weights, its bytes, and where floats stand whose exponent may be all ones."""

    weights: int
    size: int
    scales: tuple[int, ...]
    scale_type: str = "<u2"
    exponent: int = 0x7C00  # float16


LAYOUTS = {
    TensorType.F32: BlockLayout(1, 4, (0,), "<u4", 0x7F80_0000),
    TensorType.F16: BlockLayout(1, 2, (0,)),
    TensorType.BF16: BlockLayout(1, 2, (0,), "<u2", 0x7F80),
    TensorType.Q4_0: BlockLayout(32, 18, (0,)),
    TensorType.Q4_1: BlockLayout(32, 20, (0, 2)),
    TensorType.Q5_0: BlockLayout(32, 22, (0,)),
    TensorType.Q5_1: BlockLayout(32, 24, (0, 2)),
    TensorType.Q8_0: BlockLayout(32, 34, (0,)),
    TensorType.Q4_K: BlockLayout(256, 144, (0, 2)),
    TensorType.Q5_K: BlockLayout(256, 176, (0, 2)),
    TensorType.Q6_K: BlockLayout(256, 210, (208,)),
}


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """Where one tensor stands in a file. `offset` and `size` are bytes, `shape` is row-major."""

    file: MappedFile
    name: str
    type: TensorType
    shape: tuple[int, ...]
    offset: int
    size: int

    @property
    def field(self) -> str:
        """How messages call it."""
        return Text("tensor {name}", name=self.name)


def stored_size(kind: TensorType, shape: tuple[int, ...]) -> int | None:
    """Bytes that a tensor takes; None if its rows are no whole number of blocks."""
    layout = LAYOUTS[kind]
    if shape[-1] % layout.weights:
        return None
    blocks = shape[-1] // layout.weights
    for length in shape[:-1]:
        blocks *= length
    return blocks * layout.size


def check_placement(tensors: Iterable[StoredTensor], padding: int | None = None) -> None:
    """Refuse tensors that reach past the end of their file or into each other.

    `tensors` are all tensors of one file. If `padding` is given, a gap of that many bytes or more
    between two of them is refused as well: one of them was meant to be larger.

    Raises:
        ModelFileError: naming the tensor.
    """
    in_order = sorted(tensors, key=lambda tensor: tensor.offset)
    for tensor in in_order:
        end = tensor.offset + tensor.size
        if end > tensor.file.size:
            reason = Text(
                "ends at byte {end}, the file at {file_size}; is it complete?",
                end=end,
                file_size=tensor.file.size,
            )
            raise ModelFileError(tensor.file.path, tensor.field, reason)
    for first, second in pairwise(in_order):
        if first.offset + first.size > second.offset:
            reason = Text("lies over tensor {first_name}", first_name=first.name)
            raise ModelFileError(second.file.path, second.field, reason)
        gap = second.offset - first.offset - first.size
        if padding is not None and gap >= padding:
            reason = Text(
                "ends {gap} bytes before the next tensor, its type or shape is wrong", gap=gap
            )
            raise ModelFileError(first.file.path, first.field, reason)
