# SPDX-License-Identifier: Apache-2.0
"""The pixel fonts that are part of the program (assets/fonts)."""

from __future__ import annotations

from importlib import resources

from firmware_bridge.display.pixel_font import PixelFont


class Typefaces:
    """Fonts for Simplified Chinese, kana and Latin. No file is read before its first character is drawn.

    large: 12 pixels high, columns of 6. medium: 10 pixels, columns of 5. small: 8 pixels, proportional.
    """

    def __init__(self) -> None:
        folder = resources.files("assets") / "fonts"
        self.small = PixelFont(folder / "fusion-pixel-8px-proportional-sc.woff2", 8)
        self.medium = PixelFont(
            folder / "fusion-pixel-10px-monospaced-sc.woff2", 10, fallback=self.small
        )
        self.large = PixelFont(
            folder / "fusion-pixel-12px-monospaced-sc.woff2", 12, fallback=self.small
        )

    def forget(self) -> None:
        """Forget which characters were drawn."""
        for font in (self.small, self.medium, self.large):
            font.forget()
