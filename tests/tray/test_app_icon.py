# SPDX-License-Identifier: Apache-2.0
"""The files of the program's icon are what the program draws; THOCK_REWRITE_GOLDENS=1 writes them."""

from __future__ import annotations

import os
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from PIL import Image, ImageChops

from app.tray.icons import app_icon

ASSETS = Path(__file__).parents[2] / "assets"
SIZES = (16, 22, 24, 32, 48, 64, 128, 256, 512)


@pytest.mark.parametrize("size", SIZES)
def test_the_files_are_drawn_by_the_program(size: int) -> None:
    path = ASSETS / "icons" / f"thock-{size}.png"
    drawn = app_icon(size)
    if os.environ.get("THOCK_REWRITE_GOLDENS") == "1":
        drawn.save(path, optimize=True)
    with Image.open(path) as kept:
        difference = ImageChops.difference(drawn, kept.convert("RGBA"))
    # Another Pillow may round an edge otherwise.
    assert max(high for _low, high in difference.getextrema()) <= 8  # type: ignore[misc,union-attr]


def test_the_metadata_is_well_formed_and_names_what_there_is() -> None:
    root = ET.parse(ASSETS / "packaging" / "org.thock.Thock.metainfo.xml").getroot()
    assert root.findtext("id") == "org.thock.Thock"
    assert root.findtext("project_license") == "Apache-2.0"
    desktop = root.findtext("launchable")
    assert desktop is not None
    entry = (ASSETS / "packaging" / desktop).read_text()
    assert "Exec=thock\n" in entry
    assert "Icon=thock\n" in entry
    assert "Name[zh_CN]=" not in entry or "Comment[zh_CN]=" in entry


def test_the_vector_icon_is_well_formed() -> None:
    assert ET.parse(ASSETS / "icons" / "thock.svg").getroot().tag.endswith("svg")
