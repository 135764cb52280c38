# SPDX-License-Identifier: Apache-2.0
"""Words that are left in English in a Chinese text. What may stay is listed here, and nothing else may."""

from __future__ import annotations

import re

# Names, units and terms that Chinese writes so too; case matters.
_NAMES = """
Thock Python PyTorch Qt PySide PySide6 Linux Windows macOS Debian Fedora Wayland X11 GTK KDE GNOME Ctrl
Alt Shift Tab Enter Esc AI GPU CPU CUDA NVRTC NVIDIA FP8 MB GB MiB KiB KB ms UTF ASCII LANG SHA PID HID
USB OLED LED LEDs VIA Vial Viable VialRGB QMK KMK ZMK RGB OpenRGB SDK CircuitPython XKB libxkbcommon
libxkbcommon0 FF60 Keychron Lemokey Link libhmk udev dialout uucp hidapi pynput jeepney pip wheel GGUF
GGML BPE gpt2 llama llama3 Unigram ByteLevel SentencePiece safetensors float32 silu linear default dtype
data_offsets NaN JSON TOML YAML HTTP IP API OpenAI Hugging Face SmolLM2 pickle LRU token tokens Colemak
Dvorak AZERTY QWERTY QWERTZ English Apache MIT LGPL BSD PSF MPL ZIP PNG zip gcc python3-dev Ctrl-C
architectures decoder
"""
# Values that are typed as they are: of settings and options, in files, names of packages.
_TYPED = """
auto virtual fake fixed rhythm think chat suggest react cpu us true false resident lease launch smollm2
thock doctor load-model merges hid toml gguf https firefox code ls ld cuda-python python3-gi
python3-gobject libayatana-appindicator-gtk3 gir1 wl-clipboard xclip nvrtcCreateProgram nvrtcVersion pt-
br
"""
KEPT = frozenset(_NAMES.split()) | frozenset(_TYPED.split())
# What is no word of a language: commands, keys, names of settings and files, addresses, versions, fields.
NO_WORDS = (
    r"\b(?:L?GPL|MIT|BSD|MPL|Apache)[\w.+-]*(?: (?:OR|AND|WITH) [\w.+-]+)*",
    r"`[^`]*`",
    r"<[^<>]*>",
    r"\{[^{}]*\}",
    r"--[a-z-]+",
    r"https?://\S+",
    r"[\w.~*/-]*/[\w.~*/-]+",
    r"\b[\w-]+(?:\.[\w-]+)+(?:\(\.*\))?",
    r"\b[A-Z_]{3,}(?:=\S+)?\b",
    r"\b\w+_\w+\b",
    r"\b0x\w+\b",
    r"\b(?:Ctrl|Alt|Shift|Meta)\+\S+",
    r"\bpip (?:un)?install [^，。；：）]*",
)


def english_left(text: str, *more: str) -> list[str]:
    """The words of `text` that should be Chinese; `more` are names of the test's own."""
    for name in sorted(more, key=len, reverse=True):
        text = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", " ", text)
    for pattern in NO_WORDS:
        text = re.sub(pattern, " ", text)
    words = re.findall(r"[A-Za-z][A-Za-z0-9'-]*[A-Za-z0-9]", text)
    return [word for word in words if word not in KEPT]
