# SPDX-License-Identifier: Apache-2.0
"""What rendering a chat template may cost, and the rewriting that makes the template pay.

A template is a program from a stranger: it can loop inside loops, double a string or build a list
that holds itself a million times. So everything that can cost time or memory is paid for from a
budget that is fixed for one rendering:

- a turn of a loop, a call, an operator, a filter and a comparison cost `STEP` each;
- every text or list that is made, compared, searched, filtered, called with or printed costs its
  length, lists counted with all that is inside them; before it is made, wherever it can grow.
"""

from __future__ import annotations

from collections.abc import Iterable, MappingView
from typing import Any

from jinja2 import Undefined, nodes
from jinja2.exceptions import TemplateAssertionError, TemplateRuntimeError
from jinja2.visitor import NodeTransformer

STEP = 64
PRINTED = 16  # per character of the prompt, since it is tokenised afterwards
BUDGET = 1 << 23  # under 1 s and 32 MiB of text; a turn of 1,000 characters costs about 22,000


class TooExpensive(TemplateRuntimeError):
    """The budget of one rendering is used up."""


class Budget:
    """What one rendering may still cost."""

    def __init__(self, units: int = BUDGET) -> None:
        self._left = units

    def spend(self, units: int) -> None:
        """Pay for `units`, or raise TooExpensive."""
        self._left -= units
        if self._left < 0:
            raise TooExpensive("too expensive")

    def charge(self, value: Any) -> Any:
        """Pay for one step and for the whole of `value`, and hand it back.

        A list that holds one list twice is paid for twice. That is what bounds printing, comparing
        and converting it; and since each list is paid for when it is made, no walk is long.
        """
        self.spend(STEP)
        waiting = [value]
        while waiting:
            item = waiting.pop()
            if isinstance(item, str):
                self.spend(len(item))
            elif isinstance(item, list | tuple):
                self.spend(8 * len(item))
                waiting.extend(item)
            elif isinstance(item, dict):
                self.spend(16 * len(item))
                waiting.extend(item.keys())
                waiting.extend(item.values())
            elif isinstance(item, range | MappingView):
                self.spend(8 * len(item))
        return value

    def repeat(self, value: Any, times: int) -> None:
        """Pay for `times` copies of `value`."""
        before = self._left
        self.charge(value)
        self.spend((before - self._left) * max(times - 1, 0))

    def join(self, parts: Iterable[Any], between: str = "") -> str:
        """The texts of `parts`, joined; paid for before it is built."""
        texts = [part if isinstance(part, str) else plain_text(part) for part in parts]
        self.spend(STEP + sum(map(len, texts)) + len(texts) * (8 + len(between)))
        return between.join(texts)

    def replace(self, text: str, old: str, new: str, count: int = -1) -> str:
        """`text.replace`, paid for before it is built."""
        found = text.count(old)
        self.spend(STEP + len(text) + found * len(new))
        return text.replace(old, new, count)


def plain_text(value: Any) -> str:
    """What `{{ value }}` prints. Lists and mappings are refused: no chat template prints one bare."""
    if isinstance(value, str | int | float | Undefined) or value is None:
        return str(value)
    raise TemplateRuntimeError("prints a value that is no text")


class Meter(NodeTransformer):
    """Rewrites a template so that it pays for what it does."""

    def _wrap(self, node: nodes.Expr, name: str = "charged") -> nodes.Filter:
        return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)

    def visit_For(self, node: nodes.For) -> nodes.Node:
        if node.recursive:
            raise TemplateAssertionError("recursive loops are not supported", node.lineno)
        self.generic_visit(node)
        node.iter = self._wrap(node.iter, "metered")  # type: ignore[arg-type]
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        return self._wrap(nodes.Tuple(node.nodes, "load", lineno=node.lineno), "concatenated")

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:
        self.generic_visit(node)
        node.expr = self._wrap(node.expr)
        for operand in node.ops:
            operand.expr = self._wrap(operand.expr)
        return node

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:
        self.generic_visit(node)
        if isinstance(node.arg, nodes.Slice):
            node.node = self._wrap(node.node)  # a slice is a copy
        else:
            node.arg = self._wrap(node.arg)  # a key is hashed, all of it
        return node

    def _visit_literal(self, node: nodes.Expr) -> nodes.Node:
        self.generic_visit(node)
        return node if getattr(node, "ctx", "load") != "load" else self._wrap(node)

    visit_List = visit_Dict = visit_Tuple = _visit_literal

    def _visit_operation(self, node: nodes.Filter | nodes.Test) -> nodes.Node:
        self.generic_visit(node)
        if node.node is not None:
            node.node = self._wrap(node.node)
        node.args = [self._wrap(argument) for argument in node.args]
        return node

    visit_Filter = visit_Test = _visit_operation
