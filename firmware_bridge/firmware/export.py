# SPDX-License-Identifier: Apache-2.0
"""Copies what goes into a keyboard's firmware to where its build expects it.

    python -m firmware_bridge.firmware.export qmk ~/qmk_userspace
    python -m firmware_bridge.firmware.export kmk /media/CIRCUITPY

docs/firmware/ says what to do then.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

_HERE = Path(__file__).parent
_CORE = _HERE / "core"
_QMK_MODULE = Path("modules") / "thock" / "companion"
_KMK = _HERE / "kmk"


def qmk_files() -> list[Path]:
    """The module with the core beside it, flat: QMK looks for sources in the module's own folder."""
    module = sorted(path for path in (_HERE / "qmk" / _QMK_MODULE).iterdir() if path.is_file())
    core = sorted((*_CORE.glob("*.c"), *_CORE.glob("*.h"), *_CORE.glob("LICENSE*")))
    return [*module, *core]


def kmk_files() -> list[Path]:
    return sorted(_KMK.glob("*.py"))


def export(kind: str, target: Path) -> list[Path]:
    """Copy the files of `kind` ("qmk" or "kmk") below the folder `target`; the copies.

    Raises:
        FileNotFoundError: there is no such folder; it is not made, so that a typing mistake is noticed.
        OSError: a file cannot be written.
    """
    if not target.is_dir():
        raise FileNotFoundError(f"no folder {target}")
    files, folder = (qmk_files(), target / _QMK_MODULE) if kind == "qmk" else (kmk_files(), target)
    folder.mkdir(parents=True, exist_ok=True)
    return [Path(shutil.copyfile(path, folder / path.name)) for path in files]


def main(arguments: list[str] | None = None) -> int:
    """The command line; 0, or 1 with a message on standard error."""
    parser = argparse.ArgumentParser(prog="firmware_bridge.firmware.export", description=__doc__)
    parser.add_argument("kind", choices=("qmk", "kmk"))
    parser.add_argument(
        "target", type=Path, help="userspace or qmk_firmware folder; the board's drive"
    )
    chosen = parser.parse_args(arguments)
    try:
        copies = export(chosen.kind, chosen.target)
    except OSError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{len(copies)} files in {copies[0].parent}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
