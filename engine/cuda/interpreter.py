# SPDX-License-Identifier: Apache-2.0
"""Runs a Schedule as the device does, in numpy: the executable spec of the persistent kernel.

Blocks take turns; an instruction runs when every piece that it reads has been made for this layer. A
piece that is read without having been made, or overwritten while still needed, is an error, so a
schedule that passes here has its data dependencies right, not only its counts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.cuda import rotary, spec
from engine.cuda.errors import ScheduleError
from engine.cuda.schedule import Block, Instruction, Schedule
from engine.cuda.shape import PRODUCTS, Op, ProductShape, product_shape
from engine.fp8.model import Matrix, PackedModel

_INPUT = {
    Op.QKV: "x_attention",
    Op.OUT: "mixed",
    Op.GATE_UP: "x_ffn",
    Op.DOWN: "gated",
    Op.HEAD: "x_attention",
}


class _Buffer:
    """One exchange buffer: a value and the layer that made it, per element."""

    def __init__(self, tokens: int, width: int) -> None:
        self.values = np.zeros((tokens, width), dtype=np.float32)
        self._layer = np.full((tokens, width), -1, dtype=np.int64)

    def publish(self, token: int, columns: slice, values: spec.Floats, layer: int) -> None:
        self.values[token, columns] = spec.f24(values)
        self._layer[token, columns] = layer

    def ready(self, token: int, columns: slice, layer: int) -> bool:
        """Raises ScheduleError if a later layer has overwritten what this one needs."""
        made = self._layer[token, columns]
        if (made > layer).any():
            raise ScheduleError("a block overwrote data that another one still needs")
        return bool((made == layer).all())


class Interpreter:
    """One model with a KV cache of `max_context` positions."""

    def __init__(self, model: PackedModel, max_context: int) -> None:
        self._model = model
        self._config = config = model.config
        self._shapes = {op: product_shape(config, model.grouping, op) for op in PRODUCTS}
        self._rope = rotary.table(config, max_context, model.rope_factors)
        self.cache = np.zeros(
            (config.n_layers, config.n_kv_heads, 2, max_context, config.head_dim), np.float16
        )

    def run(self, schedule: Schedule, tokens: Sequence[int], position: int) -> NDArray[np.float32]:
        """Logits, float32: (1, vocab) of the last token, or (tokens, vocab) with all_logits.

        Raises:
            ScheduleError: the schedule stalls, or its data dependencies are wrong.
        """
        return _Run(self, self._model, schedule, tokens, position).finish()

    @property
    def shapes(self) -> dict[Op, ProductShape]:
        return self._shapes

    @property
    def rope(self) -> spec.Floats:
        return self._rope


class _Run:
    def __init__(
        self,
        owner: Interpreter,
        model: PackedModel,
        schedule: Schedule,
        tokens: Sequence[int],
        position: int,
    ) -> None:
        config = model.config
        self._owner, self._model, self._config = owner, model, config
        self._schedule, self._tokens, self._position = schedule, tokens, position
        count, query = len(tokens), config.n_heads * config.head_dim
        self._kv = config.n_kv_heads * config.head_dim
        widths = {
            "x_attention": config.dim,
            "x_ffn": config.dim,
            "queries": query,
            "mixed": query,
            "gated": config.ffn_dim,
        }
        self._buffers = {name: _Buffer(count, width) for name, width in widths.items()}
        self._new_kv = [_Buffer(count, 2 * self._kv) for _ in range(config.n_layers)]
        self._codes: dict[tuple[Op, int, int], tuple[NDArray[np.float64], np.float32]] = {}
        self._residual = np.zeros((count, config.dim), dtype=np.float32)
        rows = count if schedule.all_logits else 1
        self._logits = np.full((rows, config.vocab_size), np.nan, dtype=np.float32)

    def finish(self) -> NDArray[np.float32]:
        at = [0] * len(self._schedule.blocks)
        moved = True
        while moved:
            moved = False
            for index, block in enumerate(self._schedule.blocks):
                if at[index] < len(block.instructions) and self._try(
                    block, block.instructions[at[index]]
                ):
                    at[index] += 1
                    moved = True
        for index, block in enumerate(self._schedule.blocks):
            if at[index] < len(block.instructions):
                raise ScheduleError(
                    f"block {index} waits for ever at {block.instructions[at[index]]}"
                )
        if np.isnan(self._logits).any():
            raise ScheduleError("some logits were never computed")
        return self._logits

    def _range(self, block: Block, op: Op) -> range:
        count = len(self._tokens)
        if op is Op.HEAD and not self._schedule.all_logits:
            return range(count - 1, count)
        width = self._schedule.width
        return range(min(block.group * width, count), min((block.group + 1) * width, count))

    def _try(self, block: Block, ins: Instruction) -> bool:
        tokens = self._range(block, ins.op)
        if ins.op is Op.ATTENTION:
            begin, end = ins.token_range
            return self._attention(ins, tokens[begin:end])
        if ins.op is Op.QUANTISE:
            begin, end = ins.token_range
            return self._quantise(Op(ins.first), ins.layer, tokens[begin:end])
        return self._product(ins, tokens)

    def _inputs(
        self, op: Op, layer: int, tokens: range
    ) -> list[tuple[NDArray[np.float64], np.float32]] | None:
        """Quantised inputs of a product, or None while they are not there."""
        embedded = op is Op.QKV and layer == 0
        source = self._buffers[_INPUT[op]]
        needed = {Op.QKV: layer - 1, Op.HEAD: self._config.n_layers - 1}.get(op, layer)
        if not embedded and not all(source.ready(t, slice(None), needed) for t in tokens):
            return None
        return [
            spec.quantise_token(
                self._embedding(t) if embedded else source.values[t], *self._norm(op, layer)
            )
            for t in tokens
        ]

    def _quantise(self, op: Op, layer: int, tokens: range) -> bool:
        inputs = self._inputs(op, layer, tokens)
        if inputs is None:
            return False
        for token, codes in zip(tokens, inputs, strict=True):
            self._codes[op, layer, token] = codes
        return True

    def _shared(
        self, op: Op, layer: int, tokens: range
    ) -> list[tuple[NDArray[np.float64], np.float32]] | None:
        found = [self._codes.get((op, layer, t)) for t in tokens]
        there = [codes for codes in found if codes is not None]
        return there if len(there) == len(found) else None

    def _product(self, ins: Instruction, tokens: range) -> bool:
        if not tokens:
            return True
        shared = self._schedule.shared_inputs and ins.op is not Op.HEAD
        find = self._shared if shared else self._inputs
        inputs = find(ins.op, ins.layer, tokens)
        if inputs is None:
            return False
        tiles = slice(ins.first, ins.first + ins.count)
        matrix = self._model.matrices[Matrix(ins.op.name.lower())]
        outputs = spec.product(matrix, self._owner.shapes[ins.op], ins.layer, tiles, inputs)
        rows = slice(ins.first * 16, (ins.first + ins.count) * 16)
        for token, output in zip(tokens, outputs, strict=True):
            self._store(ins, token, rows, output)
        return True

    def _embedding(self, token: int) -> spec.Floats:
        row: spec.Floats = self._model.embed[self._tokens[token]].astype(np.float32)
        return row

    def _norm(self, op: Op, layer: int) -> tuple[spec.Floats | None, float]:
        if op in (Op.OUT, Op.DOWN):
            return None, 0.0
        if op is Op.HEAD:
            return self._model.final_norm, self._config.norm_eps
        return self._model.norms[layer, int(op is Op.GATE_UP)], self._config.norm_eps

    def _store(self, ins: Instruction, token: int, rows: slice, output: spec.Floats) -> None:
        if ins.op is Op.QKV:
            self._store_qkv(ins.layer, token, rows, output)
        elif ins.op in (Op.OUT, Op.DOWN):
            first = ins.op is Op.OUT and ins.layer == 0
            before = (self._embedding(token) if first else self._residual[token])[rows]
            self._residual[token, rows] = before + output
            name = "x_ffn" if ins.op is Op.OUT else "x_attention"
            self._buffers[name].publish(token, rows, self._residual[token, rows], ins.layer)
        elif ins.op is Op.GATE_UP:
            half = slice(rows.start // 2, rows.stop // 2)
            self._buffers["gated"].publish(token, half, spec.silu_gate(output), ins.layer)
        else:
            row = token if self._schedule.all_logits else 0
            end = min(rows.stop, self._config.vocab_size)
            self._logits[row, rows.start : end] = output[: end - rows.start]

    def _store_qkv(self, layer: int, token: int, rows: slice, output: spec.Floats) -> None:
        if self._model.bias is not None:
            output = output + self._model.bias[layer, rows]
        query = self._config.n_heads * self._config.head_dim
        table = self._owner.rope[self._position + token]
        rotary_end = query + self._kv
        turned = output.copy()
        head_tiles = self._config.head_dim // 16
        for start in range(rows.start, min(rows.stop, rotary_end), 16):
            at = slice(start - rows.start, start - rows.start + 16)
            pair = start // 16 % head_tiles * 8
            turned[at] = spec.rotate(output[at], table[pair : pair + 8])
        split = max(0, min(query - rows.start, output.size))
        if split:
            to = slice(rows.start, rows.start + split)
            self._buffers["queries"].publish(token, to, turned[:split], layer)
        if split < output.size:
            to = slice(rows.start + split - query, rows.stop - query)
            self._new_kv[layer].publish(token, to, turned[split:], layer)

    def _attention(self, ins: Instruction, tokens: range) -> bool:
        if not tokens:
            return True
        config, layer, head = self._config, ins.layer, ins.first
        size, repeat = config.head_dim, config.n_heads // config.n_kv_heads
        keys = slice(head * size, (head + 1) * size)
        values = slice(self._kv + keys.start, self._kv + keys.stop)
        query = slice(head * repeat * size, (head + 1) * repeat * size)
        new, queries = self._new_kv[layer], self._buffers["queries"]
        if not all(queries.ready(t, query, layer) for t in tokens):
            return False
        if not all(
            new.ready(t, part, layer) for t in range(tokens.stop) for part in (keys, values)
        ):
            return False
        cache = self._owner.cache[layer, head]
        staged = cache.copy()
        for which, part in enumerate((keys, values)):
            for t in range(tokens.stop):
                staged[which, self._position + t] = spec.to_half(new.values[t, part])
        for t in tokens:
            at = self._position + t
            cache[:, at] = staged[:, at]
            for i in range(repeat):
                one = slice(query.start + i * size, query.start + (i + 1) * size)
                mixed = spec.attend(
                    queries.values[t, one], staged[0, : at + 1], staged[1, : at + 1]
                )
                self._buffers["mixed"].publish(t, one, mixed, layer)
        return True
