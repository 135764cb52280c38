# SPDX-License-Identifier: Apache-2.0
"""Jinja2 for chat templates from strangers: sandboxed as in transformers, and metered.

Jinja's sandbox keeps a template away from Python's internals; `template_budget` bounds its time and
memory. What cannot be priced is left out: filters, methods and globals that no chat template needs
(`center`, `format`, `lipsum`, ...), recursive loops, powers of large numbers, `%` on text. Templates
are compiled without constant folding, which would run parts of them before there is a budget.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from types import BuiltinMethodType
from typing import Any

from jinja2 import Template, ext, filters, nodes, pass_context
from jinja2.exceptions import SecurityError, TemplateRuntimeError
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace

from engine.template_budget import PRINTED, STEP, Budget, Meter, TooExpensive, plain_text

_MAX_INTEGER_BITS = 128

_FILTERS = (
    "abs", "capitalize", "count", "d", "default", "dictsort", "first", "float", "int", "items",
    "last", "length", "list", "lower", "reject", "rejectattr", "reverse", "select", "selectattr",
    "sort", "title", "unique", "upper",
)  # fmt: skip
_METHODS: dict[type, frozenset[str]] = {
    str: frozenset(
        (
            "capitalize", "casefold", "count", "endswith", "find", "index", "isalnum", "isalpha",
            "isdecimal", "isdigit", "islower", "isnumeric", "isspace", "isupper", "join", "lower",
            "lstrip", "partition", "removeprefix", "removesuffix", "replace", "rfind", "rindex",
            "rpartition", "rsplit", "rstrip", "split", "splitlines", "startswith", "strip", "title",
            "upper",
        )
    ),
    dict: frozenset(("get", "items", "keys", "values")),
    list: frozenset(("count", "index")),
    tuple: frozenset(("count", "index")),
}  # fmt: skip


class TemplateRefusal(TemplateRuntimeError):
    """The template itself called `raise_exception`; the message is its own."""


class _Generation(ext.Extension):
    """`{% generation %}` marks the assistant's own words for training; here it changes nothing."""

    tags = {"generation"}  # noqa: RUF012 - the type that jinja2 declares

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class _Namespace(Namespace):
    """A namespace without underscore names, which could reach Python's internals."""

    def __setitem__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            raise SecurityError("a namespace has no names with an underscore in front")
        super().__setitem__(name, value)


class MeteredEnvironment(ImmutableSandboxedEnvironment):
    """The environment of one chat template. One rendering at a time."""

    intercepted_binops = frozenset(("+", "-", "*", "/", "//", "%", "**"))

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[_Generation, ext.loopcontrols],
            optimized=False,
            finalize=self._print,
        )
        self.budget = Budget()
        self.filters = {name: filters.FILTERS[name] for name in _FILTERS} | {
            "charged": self._charged,
            "concatenated": self._concatenated,
            "join": self._join,
            "map": _map,
            "metered": self._metered,
            "replace": self._replace,
            "safe": plain_text,  # nothing is escaped, so nothing has to be marked as safe
            "string": plain_text,
            "tojson": self._tojson,
            "trim": self._trim,
        }
        self.globals = {
            "dict": _dict,
            "namespace": _Namespace,
            "raise_exception": _raise_exception,
            "range": self._range,
            "strftime_now": _strftime_now,
        }

    def compile_metered(self, source: str) -> Template:
        """Compile `source` so that it pays for what it does.

        Raises:
            jinja2.TemplateError, RecursionError, SyntaxError, ValueError, MemoryError: no template.
        """
        tree = Meter().visit(self.parse(source))
        return Template.from_code(self, self.compile(tree), self.make_globals(None))

    def render(self, template: Template, variables: Mapping[str, Any]) -> str:
        """Render `template` with a full budget.

        Raises:
            TooExpensive: the budget did not suffice.
            TemplateRefusal: the template called `raise_exception`.
            jinja2.TemplateError and the errors of Python's operators: the template is wrong.
        """
        self.budget = Budget()
        pieces = []
        for piece in template.generate(variables):
            self.budget.spend(PRINTED * len(piece))
            pieces.append(piece)
        return "".join(pieces)

    # What compiled templates call. Names and signatures are jinja2's.

    def concat(self, parts: Iterable[str]) -> str:
        return self.budget.join(parts)

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        budget = __self.budget
        budget.charge(args)
        budget.charge(kwargs)
        if not isinstance(__obj, BuiltinMethodType):
            return super().call(__context, __obj, *args, **kwargs)
        owner, name = __obj.__self__, __obj.__name__
        if name not in _METHODS.get(type(owner), ()):
            raise SecurityError("calls a method that is not supported")
        budget.charge(owner)
        if isinstance(owner, str):
            if name == "join":
                (parts,) = args
                return budget.join(parts, owner)
            if name == "replace":
                return budget.replace(owner, *args)
            __self._price_search(owner, args)
        return budget.charge(super().call(__context, __obj, *args, **kwargs))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        for side in (left, right):
            if isinstance(side, int) and side.bit_length() > _MAX_INTEGER_BITS:
                raise TooExpensive("too large a number")
        if operator == "*":
            for value, times in ((left, right), (right, left)):
                if isinstance(value, str | list | tuple) and isinstance(times, int):
                    self.budget.repeat(value, times)
        elif operator == "%" and isinstance(left, str):
            raise SecurityError("formats with %, which is not supported")
        elif operator == "**" and not (isinstance(right, int | float) and abs(right) <= 64):
            raise TooExpensive("too large a power")
        self.budget.charge((left, right))
        return super().call_binop(context, operator, left, right)

    def wrap_str_format(self, value: Any) -> None:
        """No `str.format`: left as it is, `call` refuses it."""

    @pass_context  # tells jinja2 not to print constants while it compiles
    def _print(self, context: Context, value: Any) -> str:
        text = plain_text(value)
        self.budget.spend(STEP + len(text))
        return text

    def _charged(self, value: Any) -> Any:
        return self.budget.charge(value)

    def _metered(self, values: Iterable[Any]) -> Iterator[Any]:
        for value in values:
            self.budget.spend(STEP)
            yield value

    def _concatenated(self, parts: tuple[Any, ...]) -> str:
        return self.budget.join(parts)

    def _range(self, *bounds: int) -> range:
        numbers = range(*bounds)
        self.budget.charge(numbers)
        return numbers

    def _join(self, value: Iterable[Any], d: Any = "", attribute: str | int | None = None) -> str:
        if attribute is not None:
            value = map(filters.make_attrgetter(self, attribute), value)
        return self.budget.join(value, plain_text(d))

    def _replace(self, value: Any, old: str, new: str, count: int | None = None) -> str:
        return self.budget.replace(plain_text(value), old, new, -1 if count is None else count)

    def _trim(self, value: Any, chars: str | None = None) -> str:
        text = plain_text(value)
        self._price_search(text, (chars,))
        return text.strip(chars)

    def _price_search(self, text: str, arguments: Iterable[Any]) -> None:
        """Pay for a search backwards or for a set of characters: its time is a product of lengths."""
        for argument in arguments:
            if isinstance(argument, str):
                self.budget.spend(len(text) * len(argument) // 8)

    def _tojson(
        self,
        value: Any,
        ensure_ascii: bool = False,
        indent: int | None = None,
        separators: tuple[str, str] | None = None,
        sort_keys: bool = False,
    ) -> str:
        """As transformers has it: no HTML escapes, text as it is."""
        if indent is not None and not (isinstance(indent, int) and 0 <= indent <= 16):
            raise TooExpensive("too wide an indent")
        encoder = json.JSONEncoder(
            ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
        )
        pieces = []
        for piece in encoder.iterencode(value):
            self.budget.spend(8 + len(piece))
            pieces.append(piece)
        return "".join(pieces)


@pass_context
def _map(context: Context, value: Iterable[Any], *names: str, **options: Any) -> Iterator[Any]:
    """`map(attribute=...)`, or a filter that makes nothing longer."""
    if names and (len(names) > 1 or names[0] not in ("lower", "string", "trim", "upper")):
        raise SecurityError("maps a filter that is not supported")
    yield from filters.FILTERS["map"](context, value, *names, **options)


def _dict(*args: Any, **kwargs: Any) -> dict[Any, Any]:
    return dict(*args, **kwargs)


def _raise_exception(message: Any) -> None:
    raise TemplateRefusal(plain_text(message))


def _strftime_now(form: str) -> str:
    """The time as `form` says. No field widths: glibc would fill `%999999999Y`."""
    if len(form) > 128 or re.search(r"%[-_0^#]*[0-9]", form):
        raise TooExpensive("too wide a date")
    return datetime.now().strftime(form)
