# SPDX-License-Identifier: Apache-2.0
"""Turns of a chat -> token ids, by the template in the model file.

What a person typed must not become a control token: `<|im_end|>` in a turn would end the turn. So the
template is rendered twice, once with the turns and once with a stand-in for each of their letters.
Control tokens in the second text can only come from the template. If the first text has exactly the
same ones, it is the prompt. If not, the turns name or influence control tokens; then the second text
is the prompt, and the letters are put back after control tokens have been found.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jinja2

from engine.errors import TemplateError
from engine.formats.source import TokenizerSpec
from engine.messages import Turn
from engine.template_budget import TooExpensive
from engine.template_sandbox import MeteredEnvironment, TemplateRefusal
from engine.texts import Text
from engine.tokenizer import Tokenizer

# For models whose file has no template: ChatML where the vocabulary has its two tokens, else plain
# lines that a base model continues in a sensible way.
CHATML = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
PLAIN = (
    "{% for message in messages %}{% if message.role == 'system' %}{{ message.content }}\n\n"
    "{% else %}{{ message.role | capitalize }}: {{ message.content }}\n{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}Assistant:{% endif %}"
)

_MAX_SOURCE = 1 << 16  # characters; published ones have up to 20,000
_STAND_INS = 0xF0000  # Supplementary Private Use Areas A and B, 131,068 code points
_STAND_INS_END = 0x10FFFE

# What running a template can raise: jinja2's own errors, and those of Python's operators, methods
# and compiler. Anything else is a fault of ours.
_FAILURES = (
    jinja2.TemplateError,
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    SyntaxError,
    TypeError,
    ValueError,
)


class ChatTemplate:
    """One model's chat template, compiled. Used by one thread at a time.

    Rendering is bounded in time and memory, see `template_budget`: under a second at worst.
    """

    def __init__(self, source: str | None) -> None:
        """Compile `source`; None stands for a model without a template.

        Raises:
            TemplateError: no Jinja2 template, or one that uses what Thock does not run.
        """
        self._environment = MeteredEnvironment()
        self._programs: dict[str, jinja2.Template] = {}
        self._source = source
        for each in (CHATML, PLAIN) if source is None else (source,):
            self._programs[each] = self._compile(each)

    @classmethod
    def from_spec(cls, spec: TokenizerSpec) -> ChatTemplate:
        """The template of a model file, or the fallback for a file without one."""
        return cls(spec.chat_template or None)

    def encode(
        self, turns: Sequence[Turn], tokenizer: Tokenizer, add_generation_prompt: bool = True
    ) -> list[int]:
        """The prompt for `turns` as token ids, with one BOS if the model wants one.

        A template may look into the turns, but one that fails on unknown words is refused.

        Raises:
            TemplateError: the template refuses these turns, fails on them, or costs too much.
        """
        source = self._choose(tokenizer)
        prompt = add_generation_prompt
        letters = _stand_ins(turns, source)
        hidden = [(turn.role, turn.content.translate(letters)) for turn in turns]
        pieces = tokenizer.split_control(self._render(source, hidden, tokenizer, prompt))
        spoken = [(turn.role, turn.content) for turn in turns]
        if not any(_control(tokenizer.split_control(content)) for _, content in spoken):
            visible = tokenizer.split_control(self._render(source, spoken, tokenizer, prompt))
            if _control(visible) == _control(pieces):
                return tokenizer.with_bos(tokenizer.encode_pieces(visible))
        back = {code: chr(letter) for letter, code in letters.items()}
        restored = [p if isinstance(p, int) else p.translate(back) for p in pieces]
        return tokenizer.with_bos(tokenizer.encode_pieces(restored))

    def _choose(self, tokenizer: Tokenizer) -> str:
        """The template's source; for a model without one, the fallback that fits its vocabulary."""
        if self._source is not None:
            return self._source
        chatml = all(tokenizer.special_id(t) is not None for t in ("<|im_start|>", "<|im_end|>"))
        return CHATML if chatml else PLAIN

    def _compile(self, source: str) -> jinja2.Template:
        if len(source) > _MAX_SOURCE:
            raise TemplateError(
                Text(
                    "the chat template has more than {max_source} characters",
                    max_source=_MAX_SOURCE,
                )
            )
        try:
            return self._environment.compile_metered(source)
        except jinja2.TemplateSyntaxError as error:
            reason = Text("line {lineno}: {message}", lineno=error.lineno, message=error.message)
        except _FAILURES as error:
            reason = Text(type(error).__name__)
        raise TemplateError(Text("the chat template cannot be compiled: {reason}", reason=reason))

    def _render(
        self,
        source: str,
        messages: Sequence[tuple[str, str]],
        tokenizer: Tokenizer,
        add_generation_prompt: bool,
    ) -> str:
        variables: dict[str, Any] = {
            "messages": [{"role": role, "content": content} for role, content in messages],
            "add_generation_prompt": add_generation_prompt,
            "tools": None,
            "documents": None,
        }
        named = {"bos_token": tokenizer.bos_id, "eos_token": next(iter(tokenizer.eos_ids), None)}
        for name, token in named.items():
            if token is not None:
                variables[name] = tokenizer.token_bytes(token).decode("utf-8", "replace")
        # No exception may carry what a turn says, not even as its context: raised outside `except`.
        try:
            return self._environment.render(self._programs[source], variables)
        except TemplateRefusal:
            # Its words are not passed on: a hostile template could choose them by what a turn says.
            reason = Text("the chat template refuses these turns")
        except TooExpensive:
            reason = Text("the chat template takes too much time or memory")
        except _FAILURES as error:
            reason = Text("the chat template fails with {error}", error=type(error).__name__)
        raise TemplateError(reason)


def _control(pieces: Sequence[str | int]) -> list[int]:
    return [piece for piece in pieces if isinstance(piece, int)]


def _stand_ins(turns: Sequence[Turn], source: str) -> dict[int, int]:
    """A code point for each letter of the turns, white space apart, that the template never writes.

    White space stays, so that templates can trim it.
    """
    letters = {letter for turn in turns for letter in turn.content if not letter.isspace()}
    taken = set(source)
    free = (code for code in range(_STAND_INS, _STAND_INS_END) if chr(code) not in taken)
    table = dict(zip(map(ord, letters), free, strict=False))
    if len(table) < len(letters):
        raise TemplateError("the turns hold too many different characters")
    return table
