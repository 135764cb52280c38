# SPDX-License-Identifier: Apache-2.0
"""`thock settings`: open the window, or show and change single settings here.

While the companion runs it is the only one that writes the file; without it the file is changed.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from typing import Any, TypeVar

import click

from app.commands.speech import CommandError, in_words
from app.ipc.client import IpcClient
from app.ipc.protocol import IpcError, NotRunningError, RefusedError
from app.places import PAGES, Place
from engine.texts import Text

Values = dict[str, Any]
T = TypeVar("T")

_PAGE = click.option(
    "--page", type=click.Choice(PAGES), default=Place.KEYBOARD.value, show_default=True,
    help="The page to open.",
)  # fmt: skip


@click.group(invoke_without_command=True)
@_PAGE
@click.pass_context
def command(ctx: click.Context, page: str) -> None:
    """Open the settings window; or get, set and reset single settings, such as `suggest.count`."""
    if ctx.invoked_subcommand is None:
        _open(page)


@command.command("open")
@_PAGE
def open_window(page: str) -> None:
    """Open the settings window."""
    _open(page)


@command.command("get")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="For scripts.")
def get(name: str | None, as_json: bool) -> None:
    """Print the setting NAME, or all of them."""
    values, problems = _values()
    for place, text in problems:
        click.echo(f"{in_words(place)}: {in_words(text)}" if place else in_words(text), err=True)
    found = _find(values, name) if name else values
    if as_json:
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
        return
    for place, value in _flat(found, name or ""):
        click.echo(_text(value) if place == name else f"{place} = {_text(value)}")


@command.command("set", context_settings={"ignore_unknown_options": True})  # -1 is a value
@click.argument("name")
@click.argument("value")
def set_(name: str, value: str) -> None:
    """Set NAME to VALUE, at once and for good."""
    _change(name, _parsed(value))


@command.command()
@click.argument("name")
def reset(name: str) -> None:
    """Set NAME, or a whole group, to the default again."""
    _find(_values()[0], name)
    _change(name, None)


@command.command()
def path() -> None:
    """Print the place of the settings file."""
    from app.config.paths import settings_file

    click.echo(settings_file())


def _open(page: str) -> None:
    try:
        with IpcClient() as client:
            client.request("show", page=page)
        return
    except NotRunningError:
        pass
    except (IpcError, OSError) as error:
        raise CommandError(str(error)) from error
    from app.lifecycle.window import NoWindowError, window_command

    try:
        subprocess.Popen(
            window_command(page), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
    except (NoWindowError, OSError) as error:
        raise CommandError(str(error)) from error


def _values() -> tuple[Values, list[tuple[str, str]]]:
    def from_file() -> tuple[Values, list[tuple[str, str]]]:
        from app.choices import settings_store

        loaded = settings_store().load()
        values = loaded.settings.model_dump(mode="json")
        return values, [(problem.place, problem.text) for problem in loaded.problems]

    def from_companion(client: IpcClient) -> tuple[Values, list[tuple[str, str]]]:
        answer = client.request("get-settings")
        return answer["values"], [(place, text) for place, text in answer["problems"]]

    return _either(from_companion, from_file)


def _change(name: str, value: Any) -> None:
    changes: Any = value
    for part in reversed(name.split(".")):
        changes = {part: changes}

    def in_file() -> None:
        from app.choices import settings_store
        from app.config.problems import SettingsError

        try:
            settings_store().change(changes)
        except SettingsError as error:
            raise CommandError(str(error)) from error

    def in_companion(client: IpcClient) -> None:
        client.request("change-settings", changes=changes)

    _either(in_companion, in_file)


def _either(with_companion: Callable[[IpcClient], T], without: Callable[[], T]) -> T:
    try:
        with IpcClient() as client:
            return with_companion(client)
    except NotRunningError:
        return without()
    except RefusedError as error:
        raise CommandError(str(error)) from error
    except (IpcError, OSError) as error:
        raise CommandError(str(error)) from error


def _find(values: Values, name: str) -> Any:
    found: Any = values
    for part in name.split("."):
        if not isinstance(found, dict) or part not in found:
            raise CommandError(
                Text("there is no setting {name!r}; `thock settings get` lists all.", name=name)
            )
        found = found[part]
    return found


def _flat(value: Any, place: str) -> list[tuple[str, Any]]:
    if not isinstance(value, dict) or not value:
        return [(place, value)]
    return [
        pair
        for key, inner in value.items()
        for pair in _flat(inner, f"{place}.{key}" if place else key)
    ]


def _parsed(text: str) -> Any:
    """JSON where it is some (3, true, [1, 2]), else the text itself: `chat` needs no quotes."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "none" if value is None else json.dumps(value, ensure_ascii=False)
