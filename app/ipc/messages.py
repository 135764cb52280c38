# SPDX-License-Identifier: Apache-2.0
"""The messages of protocol version 1. `id` joins an answer to its request; events have none.

What a person typed or read travels in Ask, Reply, ReplyChanged and ScreenChanged only; `repr` hides it.
"""

from __future__ import annotations

import enum
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter

from app.companion.asked import ReplyEnd
from app.companion.messages import MAX_ASK_CHARS
from app.places import Place, known_page
from app.settings import ModeName
from engine.messages import Told


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class Topic(enum.StrEnum):
    """What a visitor may be told of, from now on."""

    STATE = "state"
    SCREEN = "screen"
    REPLY = "reply"
    SETTINGS = "settings"
    KEY = "key"  # the next key only


# ---------------------------------------------------------------- requests (visitor -> companion)


class _Request(_Message):
    model_config = ConfigDict(strict=True)

    id: int = Field(ge=0, le=1 << 53)


class Hello(_Request):
    """The first request. `client` names the program, for the log."""

    type: Literal["hello"] = "hello"
    protocol: int
    client: Literal["command", "settings"]


class GetStatus(_Request):
    """Answered by Status."""

    type: Literal["status"] = "status"


class GetReply(_Request):
    """The last answer of the model in full; answered by Reply."""

    type: Literal["reply"] = "reply"


class Show(_Request):
    """Bring the window to the front, at a page."""

    type: Literal["show"] = "show"
    page: Annotated[str, AfterValidator(known_page)] = Place.STATUS.value


class Ask(_Request):
    """Ask the model, in whatever mode the person is; answered by Asked."""

    type: Literal["ask"] = "ask"
    text: str = Field(repr=False, min_length=1, max_length=MAX_ASK_CHARS)


class Cancel(_Request):
    """Stop the answer under way."""

    type: Literal["cancel"] = "cancel"


class Pause(_Request):
    """Read no keys; for `minutes`, or until Resume."""

    type: Literal["pause"] = "pause"
    minutes: float | None = Field(default=None, gt=0, le=24 * 60)


class Resume(_Request):
    type: Literal["resume"] = "resume"


class SetMode(_Request):
    """Until the next start; the setting `mode` stays as it is."""

    type: Literal["set-mode"] = "set-mode"
    mode: ModeName


class SetProfile(_Request):
    """Work by the profile `name` until the next start; null: by the one that fits."""

    type: Literal["set-profile"] = "set-profile"
    name: str | None = Field(default=None, max_length=64)


class GetSettings(_Request):
    """Answered by SettingsValues."""

    type: Literal["get-settings"] = "get-settings"


class ChangeSettings(_Request):
    """Part of the tree: `{"suggest": {"count": 2}}`; null sets the default again. Stored and applied at
    once; answered by SettingsValues, or refused with the reason for each setting."""

    type: Literal["change-settings"] = "change-settings"
    changes: dict[str, Any]


class Subscribe(_Request):
    """From now on, send these topics and no others: the present value at once, then each new one."""

    type: Literal["subscribe"] = "subscribe"
    topics: frozenset[Topic]


class Forget(_Request):
    """Wipe everything that was typed and answered, in the engine too."""

    type: Literal["forget"] = "forget"


class LoadModel(_Request):
    """Start the engine with the model of the settings."""

    type: Literal["load-model"] = "load-model"


class UnloadModel(_Request):
    """End the engine; its memory is free again."""

    type: Literal["unload-model"] = "unload-model"


class Quit(_Request):
    """End the companion."""

    type: Literal["quit"] = "quit"


Request = (
    GetStatus | GetReply | Show | Ask | Cancel | Pause | Resume | SetMode | SetProfile | GetSettings
    | ChangeSettings | Subscribe | Forget | LoadModel | UnloadModel | Quit
)  # fmt: skip
REQUESTS: TypeAdapter[Request] = TypeAdapter(Annotated[Request, Field(discriminator="type")])
HELLO: TypeAdapter[Hello] = TypeAdapter(Hello)


# ----------------------------------------------------------------- answers (companion -> visitor)


class Done(_Message):
    type: Literal["done"] = "done"
    id: int


class Refused(_Message):
    """Nothing was done. `problems`: setting and reason. `id` is null when the request had none."""

    type: Literal["refused"] = "refused"
    id: int | None
    code: Literal["protocol", "version", "settings", "unavailable", "internal"]
    reason: Told
    problems: tuple[tuple[Told, Told], ...] = ()


class Board(_Message):
    """The connected keyboard; no serial number. Sizes in pixels, characters and LEDs."""

    name: str
    width: int
    height: int
    rotation: int
    columns: int
    rows: int
    led_count: int
    build: int


class StateReport(_Message):
    """The companion's state without content.

    `paused_s`: seconds until it resumes by itself; null: never, or not paused. `profile` is empty while none
    holds; somebody chose it, or it fits. `keyboard_away` tells which other program has the keyboard;
    `is_left_open`: for as long as nobody sends Resume.
    """

    mode: ModeName
    status: str
    is_paused: bool
    paused_s: float | None
    is_busy: bool
    engine: str
    engine_detail: Told
    model: str
    keyboard: Board | None
    dropped: int
    error: Told
    latency_ms: float | None
    profile: str = ""
    is_profile_chosen: bool = False
    keyboard_away: Told = ""
    is_left_open: bool = False


class Status(_Message):
    type: Literal["status"] = "status"
    id: int
    state: StateReport


class Asked(_Message):
    """`question` is its number, see ReplyChanged."""

    type: Literal["asked"] = "asked"
    id: int
    question: int


class Reply(_Message):
    type: Literal["reply"] = "reply"
    id: int
    text: str = Field(repr=False)


class SettingsValues(_Message):
    """All settings, defaults too, and what was wrong with the file when it was read."""

    type: Literal["settings"] = "settings"
    id: int
    values: dict[str, Any]
    path: str
    problems: tuple[tuple[Told, Told], ...] = ()


Answer = Done | Refused | Status | Asked | Reply | SettingsValues


# ------------------------------------------------------------------ events (companion -> visitor)


class Lights(_Message):
    """`fill` and the values of `leds` are (red, green, blue); `effect` a name of LightEffect."""

    fill: tuple[int, int, int] | None
    effect: str
    leds: dict[int, tuple[int, int, int]] = Field(repr=False)


class TextScreen(_Message):
    kind: Literal["text"] = "text"
    rows: tuple[str, ...] = Field(repr=False)


class BitmapScreen(_Message):
    """`pages` is base64 of SSD1306 pages, see firmware_bridge.display.frame."""

    kind: Literal["bitmap"] = "bitmap"
    width: int
    height: int
    pages: str = Field(repr=False)


class Screen(_Message):
    """What the keyboard was told last. `display` is null while it shows its own screen."""

    display: Annotated[TextScreen | BitmapScreen, Field(discriminator="kind")] | None
    status: int
    lights: Lights


class StateChanged(_Message):
    type: Literal["state-changed"] = "state-changed"
    state: StateReport


class ScreenChanged(_Message):
    """`keyboard` is null while none is connected."""

    type: Literal["screen-changed"] = "screen-changed"
    keyboard: Board | None
    screen: Screen


class ReplyChanged(_Message):
    """The reply to the newest question that was asked by Ask; its number, 0 before the first.

    `end` is null while the reply is under way; `reason` says why it failed.
    """

    type: Literal["reply-changed"] = "reply-changed"
    question: int
    text: str = Field(repr=False)
    end: ReplyEnd | None
    reason: Told


class SettingsChanged(_Message):
    type: Literal["settings-changed"] = "settings-changed"
    values: dict[str, Any]


class KeySeen(_Message):
    """The key that a subscriber of `key` waited for; it is told no other one until it subscribes again."""

    type: Literal["key-seen"] = "key-seen"
    row: int | None = Field(repr=False)
    column: int | None = Field(repr=False)
    keycode: int | None = Field(repr=False)
    macro: int | None


class PageWanted(_Message):
    """The settings window is to come to the front; needs no subscription."""

    type: Literal["page-wanted"] = "page-wanted"
    page: str


Event = StateChanged | ScreenChanged | ReplyChanged | SettingsChanged | KeySeen | PageWanted
EVENTS: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="type")])
