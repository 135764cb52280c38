# SPDX-License-Identifier: Apache-2.0
"""Pictures of every page and of the first steps: `python -m tests.helpers.settings_pictures FOLDER`.

Qt takes its scale from the environment (QT_SCALE_FACTOR) once, so each scale is a process of its own. What
is cut off is printed, and makes the exit status 1.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from PySide6.QtWidgets import QWidget

from app.i18n import Language
from app.settings import Appearance
from app.settings_window.assistant import Assistant
from app.settings_window.first_steps import Step
from app.settings_window.main import make_application
from app.settings_window.ports import CompanionView, Presence
from tests.helpers.settings_desk import SettingsDesk, settle
from tests.helpers.settings_layout import cut_off

LOOKS = [(language, appearance) for language in Language for appearance in ("light", "dark")]


def draw_all(folder: Path) -> list[str]:
    """All pictures into `folder`; what is cut off."""
    app = make_application()
    problems = []
    for language, appearance in LOOKS:
        with tempfile.TemporaryDirectory() as scratch:
            desk = SettingsDesk(Path(scratch), language, Appearance(appearance))
            desk.edits.change(("profiles",), {"work": {"applications": ["code"], "mode": "chat"}})
            desk.window.show()
            for name, widget in _scenes(desk):
                app.processEvents()
                scale = round(widget.devicePixelRatio() * 100)
                file = folder / f"{name}-{language.value}-{appearance}-{scale}.png"
                assert widget.grab().save(str(file)), file
                problems += [f"{file.name}: {problem}" for problem in cut_off(widget)]
            desk.close()
    return problems


def _scenes(desk: SettingsDesk) -> Iterator[tuple[str, QWidget]]:
    for page in desk.pages():
        settle(0.08)
        yield page.place.value, desk.window
    desk.window.navigation.search.setText("answer")  # English is found in every language
    yield "search", desk.window
    desk.window.navigation.search.clear()
    desk.computer.folder.joinpath("small-chat.gguf").unlink()
    desk.companion.become(CompanionView(presence=Presence.HERE, mode="suggest", engine="ready"))
    desk.app.start_assistant()
    assistant = desk.app.assistant
    assert isinstance(assistant, Assistant)
    while Step.PERMISSION not in assistant.steps:
        settle()
    while True:
        settle(0.08)
        yield f"first-steps-{assistant.step.value}", assistant
        if assistant.steps[-1] is assistant.step:
            return
        assistant.go_on()


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    found = draw_all(target)
    print("\n".join(found))
    sys.exit(bool(found))
