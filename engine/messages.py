# SPDX-License-Identifier: Apache-2.0
"""What the companion and the engine child say to each other: JSON objects, one per frame.

Commands go to the child, events come back. `request` joins an event to the command that caused it.
Key content travels in these messages only; `repr` hides it, so that no log or traceback can leak it.
"""

from __future__ import annotations

import enum
from typing import Annotated, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    TypeAdapter,
)

from engine.texts import from_wire, to_wire

PROTOCOL_VERSION = 5
MAX_MESSAGE_BYTES = 1 << 20
MAX_TEXT = 32_768
MAX_REPLY_TOKENS = 4096
DEFAULT_WINDOW = 128  # tokens of typed text that suggestions are made from


Told = Annotated[str, PlainValidator(from_wire), PlainSerializer(to_wire, when_used="json")]
"""For the person: a Text stays one on its way."""


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class Turn(_Message):
    """One turn of a chat, in the words of the model's template."""

    role: Literal["system", "user", "assistant"]
    content: str = Field(repr=False, max_length=MAX_TEXT)


# ---------------------------------------------------------------- commands (companion -> engine)


class Device(enum.StrEnum):
    """What computes. AUTO: the GPU if it can run the model, else the CPU."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"
    REMOTE = "remote"


class Residency(enum.StrEnum):
    """How long the kernel of the GPU engine stays on the card.

    LAUNCH: one launch for a request. LEASE: a bounded time, and shortly after the last request no more.
    RESIDENT: until the model is unloaded; refused on a card whose driver ends long kernels.
    """

    LAUNCH = "launch"
    LEASE = "lease"
    RESIDENT = "resident"


class RemoteServer(_Message):
    """A server with the OpenAI API that the person named. `url` ends before `/chat/completions`.

    An empty `model` takes the first one that the server offers. `key_file` holds the API key, nothing else.
    """

    url: str
    model: str = ""
    key_file: str | None = None


class LoadModel(_Message):
    """Load a model file or folder, or connect to `server` (REMOTE); answered by ModelLoaded or Failed.

    `window` is how many tokens of a text suggestions are made from, at most. `reason` says why `device` is
    not the one that the person chose; it comes back as ModelLoaded.note. `residency` is for the GPU. `title` is
    what the model is to be called; empty: as its file says.
    """

    type: Literal["load-model"] = "load-model"
    request: int
    path: str
    max_context: int = Field(default=2048, ge=16, le=1 << 17)
    window: int = Field(default=DEFAULT_WINDOW, ge=2, le=1 << 17)
    device: Device = Device.AUTO
    server: RemoteServer | None = None
    residency: Residency = Residency.LAUNCH
    title: str = Field(default="", max_length=256)
    reason: Told = ""


class Suggest(_Message):
    """Up to `count` continuations of `text` by one word each, or with `words` by phrases of up to so
    many words where that saves more keys; answered by SuggestionsReady.

    If `text` ends inside a word, each candidate completes that word: `text` is what to append.
    A newer Suggest cancels those that wait, and the one that runs unless its text only grew: that
    answer still tells how the word may go on, and a fast typist would never see one otherwise. One for
    phrases is always cancelled: it is meant for the time when nobody types.
    """

    type: Literal["suggest"] = "suggest"
    request: int
    text: str = Field(repr=False, max_length=MAX_TEXT)
    count: int = Field(default=3, ge=1, le=8)
    words: int = Field(default=1, ge=1, le=3)


class _Ask(_Message):
    """Wants a reply of at most `max_tokens`: ReplyGrew for each new piece of text, then ReplyFinished.

    `begun` are the reply's first tokens, from ReplyReady, whose text the person sees already: the
    reply goes on after them, so that it can never contradict what is shown.
    """

    request: int
    max_tokens: int = Field(default=64, ge=1, le=MAX_REPLY_TOKENS)
    begun: list[int] = Field(default=[], max_length=MAX_REPLY_TOKENS, repr=False)


class Chat(_Ask):
    """Answer `turns`."""

    type: Literal["chat"] = "chat"
    turns: list[Turn]


class Complete(_Ask):
    """Go on writing `text`."""

    type: Literal["complete"] = "complete"
    text: str = Field(repr=False, max_length=MAX_TEXT)


Ask = Annotated[Chat | Complete, Field(discriminator="type")]


class Prepare(_Message):
    """Compute the reply to `ask` before anybody asks: its first token at once, then `ahead` more after a
    rest of `rest_ms`. Answered by ReplyReady, at once for the first token and then now and again, the last
    time for all that is known; then by Prepared.

    It has the last place: every other command is carried out before it, and one that comes while it
    runs stops it before its next token. So does a newer Prepare. `context` stands for what is asked
    and comes back as it is; `request` of `ask` means nothing here.
    """

    type: Literal["prepare"] = "prepare"
    request: int
    context: str = Field(max_length=128)
    ask: Ask
    ahead: int = Field(default=8, ge=0, le=64)
    rest_ms: float = Field(default=0.0, ge=0, le=60_000)


class Choose(_Message):
    """Pick one of `labels` as the answer to `turns` by its first token; answered by LabelChosen."""

    type: Literal["choose"] = "choose"
    request: int
    turns: list[Turn]
    labels: list[str] = Field(min_length=2, max_length=32)


class Cancel(_Message):
    """Stop `request` before its next token. It is answered all the same (reason `cancelled`)."""

    type: Literal["cancel"] = "cancel"
    request: int


class Forget(_Message):
    """Drop the KV cache and every token held; answered by Forgotten."""

    type: Literal["forget"] = "forget"
    request: int


class Shutdown(_Message):
    """End the child."""

    type: Literal["shutdown"] = "shutdown"


# ------------------------------------------------------------------ events (engine -> companion)


class Hello(_Message):
    """First frame of the child. A parent of another protocol version closes the connection."""

    type: Literal["hello"] = "hello"
    protocol: int
    pid: int


class ModelLoaded(_Message):
    """`backend` computes; `note` is for the person: why it is another than the chosen one, or what it
    lacks. Comes a second time, for the same LoadModel, when the GPU fails and the CPU takes over.
    `window` is less than was asked for where the context has no room for it.
    """

    type: Literal["model-loaded"] = "model-loaded"
    request: int
    name: str
    parameters: int
    context_length: int
    window: int = DEFAULT_WINDOW
    backend: str
    seconds: float
    note: Told = ""


class Candidate(_Message):
    """`text` is to be appended as it is; `probability` is the model's, 0..1."""

    text: str = Field(repr=False)
    probability: float


class SuggestionsReady(_Message):
    type: Literal["suggestions-ready"] = "suggestions-ready"
    request: int
    candidates: list[Candidate]
    reused: int
    computed: int
    milliseconds: float
    cancelled: bool = False


class ReplyGrew(_Message):
    """`text` is the new piece only; it never ends inside a character."""

    type: Literal["reply-grew"] = "reply-grew"
    request: int
    text: str = Field(repr=False)


class ReplyReady(_Message):
    """The beginning of the reply to `context`, all of it that is known: `text`, never half a character,
    and its `tokens`. `is_whole`: the model ended it there.
    """

    type: Literal["reply-ready"] = "reply-ready"
    request: int
    context: str
    text: str = Field(repr=False)
    tokens: list[int] = Field(repr=False)
    is_whole: bool = False


class Prepared(_Message):
    """Nothing more is computed for this Prepare. `computed` and `wasted` are rows of the KV cache since
    the Prepared before: computed ahead, and dropped before any answer used them.
    """

    type: Literal["prepared"] = "prepared"
    request: int
    computed: int
    wasted: int
    cancelled: bool = False


class ReplyFinished(_Message):
    type: Literal["reply-finished"] = "reply-finished"
    request: int
    reason: Literal["stop", "length", "cancelled"]
    tokens: int
    first_token_ms: float
    milliseconds: float


class LabelChosen(_Message):
    type: Literal["label-chosen"] = "label-chosen"
    request: int
    label: str
    probability: float
    milliseconds: float
    cancelled: bool = False


class Forgotten(_Message):
    type: Literal["forgotten"] = "forgotten"
    request: int


class Alive(_Message):
    """The child gets on with `request`: sent about once a second while it computes. A child that says nothing
    for long, though something was asked of it, hangs.
    """

    type: Literal["alive"] = "alive"
    request: int


class Failed(_Message):
    """`code` is EngineError.code, or `internal`; `message` holds no key content."""

    type: Literal["failed"] = "failed"
    request: int
    code: str
    message: Told


Command = LoadModel | Suggest | Chat | Complete | Prepare | Choose | Cancel | Forget | Shutdown
Event = (
    Hello
    | ModelLoaded
    | SuggestionsReady
    | ReplyGrew
    | ReplyReady
    | Prepared
    | ReplyFinished
    | LabelChosen
    | Forgotten
    | Alive
    | Failed
)

COMMANDS: TypeAdapter[Command] = TypeAdapter(Annotated[Command, Field(discriminator="type")])
EVENTS: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="type")])
