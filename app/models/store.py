# SPDX-License-Identifier: Apache-2.0
"""Where models lie: one folder, one entry per model.

An entry is `<name>.gguf` or a folder `<name>` in Hugging Face layout; either may be a link to a place
that the person chose. Entries appear by rename only, so a broken download is never taken for a model.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_data_path

from app.models.errors import ModelExistsError, ModelStoreError, UnknownModelError
from engine.texts import Text, system_reason

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_SUFFIX = ".gguf"
_PARTIAL = ".partial-"
_ABANDONED_S = 86_400  # longer than any download takes


@dataclass(frozen=True, slots=True)
class InstalledModel:
    """One entry. `size` counts the bytes of the file, or of all files of the folder."""

    name: str
    path: Path
    size: int
    linked: bool

    @property
    def target(self) -> Path:
        """The file or folder itself."""
        return self.path.resolve()

    @property
    def broken(self) -> bool:
        """A link whose target is gone."""
        return not self.path.exists()


def default_models_folder() -> Path:
    """`models` in the platform's data folder for Thock."""
    return user_data_path("thock", appauthor=False) / "models"


class ModelStore:
    """The entries of one folder, which is created when the first model is added."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or default_models_folder()

    def list(self) -> list[InstalledModel]:
        """Every entry, by name."""
        if not self.folder.is_dir():
            return []
        return [
            self._describe(path)
            for path in sorted(self.folder.iterdir())
            if not path.name.startswith(".") and (path.suffix == _SUFFIX or path.is_dir())
        ]

    def find(self, name_or_path: str) -> InstalledModel:
        """An entry by name, or any file or folder by path.

        Raises:
            UnknownModelError: neither; the message lists what there is.
        """
        models = self.list()
        for model in models:
            if model.name == name_or_path:
                if model.broken:
                    raise UnknownModelError(
                        Text(
                            "model {model_name} is a link to {os}, which is gone. Put it back, or run `thock "
                            "model remove {model_name2}`.",
                            model_name=repr(model.name),
                            os=os.readlink(model.path),
                            model_name2=model.name,
                        )
                    )
                return model
        path = Path(name_or_path)
        if name_or_path and (path.is_file() or (path / "config.json").is_file()):
            return self._describe(path)
        known = ", ".join(m.name for m in models) or Text("none")
        raise UnknownModelError(
            Text(
                "no model {name_or_path}. Installed: {known}. `thock model add smollm2` fetches the "
                "default one.",
                name_or_path=repr(name_or_path),
                known=known,
            )
        )

    def add_path(
        self, source: Path, *, name: str | None = None, copy: bool = False
    ) -> InstalledModel:
        """Link (or copy) a GGUF file or a Hugging Face folder into the store.

        Raises:
            ModelStoreError: the path is neither, or the name is taken or not usable.
        """
        try:
            source = source.expanduser().resolve(strict=True)
        except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle, Python < 3.13
            raise UnknownModelError(
                Text("{source}: no such file or folder.", source=source)
            ) from error
        if source.is_file() and source.suffix.lower() != _SUFFIX:
            raise ModelStoreError(
                Text(
                    "{source}: not a .gguf file. Thock takes GGUF files, and folders with config.json, "
                    "tokenizer.json and safetensors.",
                    source=source,
                )
            )
        if source.is_dir() and not (source / "config.json").is_file():
            raise ModelStoreError(
                Text(
                    "{source}: holds no config.json, so it is no Hugging Face model.", source=source
                )
            )
        if not source.is_dir() and not source.is_file():
            raise ModelStoreError(Text("{source}: neither a file nor a folder.", source=source))
        place = self._free_place(name or source.stem, folder=source.is_dir())
        with self.staging(place) as partial:
            if copy and source.is_dir():
                shutil.copytree(source, partial)
            elif copy:
                shutil.copyfile(source, partial)
            else:
                _link(source, partial)
        return self._describe(place)

    def place_for_file(self, name: str) -> Path:
        """Where a single-file model of that name will lie.

        Raises:
            ModelExistsError, ModelStoreError: the name is taken, or not usable.
        """
        return self._free_place(name, folder=False)

    @contextmanager
    def staging(self, place: Path) -> Iterator[Path]:
        """A path beside `place` to write to; renamed to `place` on success, removed on failure.

        Raises:
            ModelStoreError: the disk is full, or the folder may not be written.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._sweep()
            with tempfile.TemporaryDirectory(prefix=_PARTIAL, dir=self.folder) as scratch:
                partial = Path(scratch) / place.name
                yield partial
                os.replace(partial, place)
        except OSError as error:
            raise ModelStoreError(
                Text(
                    "{folder}: {error}. Nothing was changed; free some space or check the permissions, "
                    "then try again.",
                    folder=self.folder,
                    error=system_reason(error),
                )
            ) from error

    def remove(self, name: str) -> InstalledModel:
        """Delete an entry; of a link only the link. Returns what was removed."""
        for model in self.list():
            if model.name == name:
                try:
                    if model.linked or model.path.is_file():
                        model.path.unlink()
                    else:
                        shutil.rmtree(model.path)
                except OSError as error:
                    raise ModelStoreError(
                        Text(
                            "{model_path}: {error}; {name} was not removed.",
                            model_path=model.path,
                            error=system_reason(error),
                            name=name,
                        )
                    ) from error
                return model
        raise UnknownModelError(Text("no model {name} is installed.", name=repr(name)))

    def _sweep(self) -> None:
        """Remove what was begun long ago by a program that was killed; nobody sees it otherwise."""
        for path in self.folder.glob(f"{_PARTIAL}*"):
            with suppress(FileNotFoundError):  # another program has just ended its own
                if time.time() - path.stat().st_mtime > _ABANDONED_S:
                    shutil.rmtree(path, ignore_errors=True)

    def _free_place(self, name: str, *, folder: bool) -> Path:
        name = name.lower()
        if not _NAME.fullmatch(name):
            raise ModelStoreError(
                Text(
                    "{name} is no usable name: letters, digits, '.', '_' and '-' only. Use --name.",
                    name=repr(name),
                )
            )
        if any(model.name == name for model in self.list()):
            raise ModelExistsError(
                Text(
                    "model {name} is installed already. Use --name, or remove it first.",
                    name=repr(name),
                )
            )
        return self.folder / (name if folder else name + _SUFFIX)

    def _describe(self, path: Path) -> InstalledModel:
        name = path.stem if path.suffix.lower() == _SUFFIX else path.name
        if path.is_dir():  # a model folder is flat; anything else is not measured
            size = sum(f.stat().st_size for f in path.iterdir() if f.is_file())
        else:
            size = path.stat().st_size if path.exists() else 0
        return InstalledModel(name=name, path=path, size=size, linked=path.is_symlink())


def _link(source: Path, place: Path) -> None:
    try:
        place.symlink_to(source, target_is_directory=source.is_dir())
    except OSError as error:
        # Windows needs a privilege for links; a hard link or a copy serves as well.
        raise ModelStoreError(
            Text(
                "cannot link to {source}: {error}. Use --copy instead.",
                source=source,
                error=system_reason(error),
            )
        ) from error
