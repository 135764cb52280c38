# SPDX-License-Identifier: Apache-2.0
"""Texts that try a tokeniser: hand-written snippets and a seeded generator, 2,600 strings in all.

`corpus()` gives the same strings on every machine and Python version: it uses random.Random with a
fixed seed and only its `random()`-based methods, whose results Python keeps stable. Code points for
random text are taken from blocks that have been assigned since Unicode 6 (2010), so that libraries
with different Unicode tables agree on what is a letter, a digit or a space.
"""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

SEED = 20_261_129

PROSE = (
    "The quick brown fox jumps over the lazy dog, then naps until a quarter past four.",
    "I'll say it's fine; they've said we'd better, but you're sure he'll come? I'm not, and can't be.",
    "I'LL SAY IT'S FINE. THEY'VE SAID WE'D BETTER. Rock 'n' roll wasn't dead in '77.",
    "“Curly quotes”, ‘single ones’, an em dash—like this—and an ellipsis… it’s all there.",
    "Der Tastendruck löst eine Unterbrechung aus; größer, schöner, Maßstab, Äpfel, Übermut.",
    "Le cœur a ses raisons que la raison ne connaît point ; l’été, où ça ? Là-bas, déjà vu.",
    "El pingüino comió ñandú y bebió café en Málaga, ¿verdad? ¡Claro que sí!",
    "Zażółć gęślą jaźń. Pchnąć w tę łódź jeża lub ośm skrzyń fig.",
    "Příliš žluťoučký kůň úpěl ďábelské ódy.",
    "Pijamalı hasta yağız şoföre çabucak güvendi. İstanbul'da ılık bir gün, IĞDIR.",
    "Съешь же ещё этих мягких французских булок да выпей чаю.",
    "Жебракують філософи при ґанку церкви в Гадячі, ще й шатро їхнє п'яне знаємо.",
    "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία. Το κουμπί πατήθηκε.",
    "Տառերը և թվերը գրվում են ձախից աջ։",
    "עטלף אבק נס דרך מזגן שהתפוצץ כי חם. המקלדת מוכנה.",
    "صِفْ خَلْقَ خَوْدٍ كَمِثْلِ الشَّمْسِ إِذْ بَزَغَتْ. لوحة المفاتيح جاهزة ١٢٣.",
    "چو عضوی به درد آورد روزگار، دگر عضوها را نماند قرار.",
    "ऋषियों को सताने वाले दुष्ट राक्षसों के राजा रावण का सर्वनाश। मूल्य ₹१२३।",
    "আমি বাংলায় গান গাই, আমি বাংলার গান গাই।",
    "யாமறிந்த மொழிகளிலே தமிழ்மொழி போல் இனிதாவது எங்கும் காணோம்.",
    "เป็นมนุษย์สุดประเสริฐเลิศคุณค่า กว่าบรรดาฝูงสัตว์เดรัจฉาน",
    "Tôi có thể ăn thủy tinh mà không hại gì; đường phố Hà Nội đẹp lắm.",
    "いろはにほへと ちりぬるを。キーボードを押すと、画面に文字が出る。",
    "東京都渋谷区でＡＩが漢字とカタカナとひらがなを混ぜて書く、価格は１２，３４５円。",
    "我能吞下玻璃而不伤身体。键盘上的小模型只用几毫秒就回答了。",
    "天地玄黃，宇宙洪荒。日月盈昃，辰宿列張。",
    "다람쥐 헌 쳇바퀴에 타고파. 키보드가 대답했다.",
    "ምንም እንኳን ቢዘገይም ቁልፉ ተጫነ።",
    "მელას ცეცხლი ეკიდა, მაგრამ მაინც იცინოდა.",
    "ᚠᛇᚻ᛫ᛒᛦᚦ᛫ᚠᚱᚩᚠᚢᚱ᛫ᚠᛁᚱᚪ᛫ᚷᛖᚻᚹᛦᛚᚳᚢᛗ",
)

CODE = (
    "def f(x: int) -> int:\n    return x**2 + 1  # 1st power\n",
    "class Key(enum.Enum):\n\tA = 0x04\n\tB = 0x05\n\n\n    def __str__(self): return f'{self.name!r}'\n",
    "for (int i = 0; i < 0x7F; ++i) { buf[i] ^= crc16(buf, i) & 0xFFu; }\r\n",
    "#define MAX(a,b) ((a)>(b)?(a):(b))\n#include <stdint.h>\n",
    "fn main() -> Result<(), Box<dyn Error>> { let v: Vec<_> = (0..10).map(|x| x << 2).collect(); Ok(()) }",
    "const go = async ({a, ...b}) => (await fetch(`/api/${a}?q=${b}`)).json() ?? null;",
    "<div class=\"row\" id='r1'><!-- note --><p>&nbsp;&lt;b&gt;</p></div>",
    "SELECT k.id, COUNT(*) AS n FROM keys k WHERE k.t >= '2026-11-29' GROUP BY 1 HAVING n > 100;",
    'if [[ -n "$HOME" ]]; then echo "${PATH//:/\\n}" | sort -u >> /tmp/x.log 2>&1; fi',
    '{"name": "thock", "values": [1, 2.5, -3e-7, true, null], "nested": {"a\\u00e9": "\\n"}}',
    "rows:\n  - name: oled\n    size: 128x32\n    on: yes\n",
    "\\begin{equation} \\sum_{i=1}^{n} x_i^2 \\le \\left(\\frac{a}{b}\\right)^{2} \\end{equation}",
    "0:  b480  push {r7}\n2:  af00  add  r7, sp, #0\n",
    "diff --git a/x.py b/x.py\n@@ -1,3 +1,4 @@\n-    old = 1\n+    new = 2\n",
    "https://example.org/path/to/page.html?id=123&lang=en#top someone+tag@example.co.uk",
    "d41d8cd98f00b204e9800998ecf8427e SGVsbG8sIHdvcmxkIQ== v1.2.3-rc.4+build.5",
    "    \t  mixed indent\n        \n\n\n  trailing   \n",
    "camelCaseIdentifier snake_case_identifier SCREAMING_CASE kebab-case $var @decorator #hashtag",
)

EMOJI = (
    "👍🏽", "👨‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪🇯🇵🇺🇸", "❤️", "☃", "1️⃣", "#️⃣", "👩🏾‍🚀", "🧑‍💻", "🤷🏻‍♀️", "😀", "🎉",
    "⌨️", "🖥️", "🫠", "🐈‍⬛", "👁️‍🗨️", "©", "™", "↔️", "🀄", "🕵️‍♂️", "🏴󠁧󠁢󠁥󠁮󠁧󠁿",
)  # fmt: skip

SPECIALS = (
    "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|begin_of_text|>", "<s>", "</s>",
    "<unk>", "<|start_header_id|>", "<0x0A>", "<|im_", "im_end|>", "<|", "|>", "[INST]", "<<SYS>>",
    "<think>", "▁", "▁▁", "Ġ", "Ċ", "<repo_name>",
)  # fmt: skip

_SPACES = " \t\n\r\u00a0\u3000\u2009\u2028\u0085\u000b\u000c\u200b\u1680"
_MARKS = "\u0301\u0308\u0327\u0323\u0342\u05b0\u064e\u0e31\u20dd\u0f71\u3099\u094d"
_DIGITS = "0123456789٠١٢٣٤٥٦٧٨٩०१२३四五六²³¹½¾ⅣⅫ①⑳０１２３"
_PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~¿¡«»、。「」！？…‰€£¥°±×÷→∑√∞≠≤"
_BLOCKS = (
    (0x20, 0x7E), (0xA0, 0x24F), (0x250, 0x2AF), (0x300, 0x36F), (0x386, 0x3CE), (0x400, 0x45F),
    (0x561, 0x587), (0x5D0, 0x5EA), (0x621, 0x64A), (0x905, 0x939), (0xE01, 0xE3A), (0x10D0, 0x10F0),
    (0x1100, 0x1159), (0x1E00, 0x1EFF), (0x2010, 0x205E), (0x20A0, 0x20B8), (0x2100, 0x2189),
    (0x2190, 0x23F3), (0x2500, 0x26CD), (0x3041, 0x3096), (0x30A1, 0x30FA), (0x4E00, 0x9FA5),
    (0xAC00, 0xD7A3), (0xE000, 0xE0FF), (0xF900, 0xFA2D), (0xFE30, 0xFE44), (0xFF01, 0xFF9D),
    (0x1D400, 0x1D454), (0x1F300, 0x1F320), (0x1F600, 0x1F610), (0x20000, 0x200FF),
    (0x0, 0x1F), (0x7F, 0x9F),
)  # fmt: skip


def corpus(count: int = 2_600) -> list[str]:
    """The first `count` strings; none holds a surrogate, all are at most about 1,200 characters."""
    rng = random.Random(SEED)
    fixed = ["", " ", "\n", "a", "0", *PROSE, *CODE, *EMOJI, *SPECIALS]
    fixed += [unicodedata.normalize("NFD", text) for text in PROSE]
    fixed += [" ".join(PROSE[:8]), "".join(CODE), "".join(EMOJI), "".join(SPECIALS)]
    makers = (
        _code, _prose, _emoji, _number, _white, _punctuation, _special, _marks, _right_to_left,
        _random, _runs, _contraction, _mixed, _mixed,
    )  # fmt: skip
    made = [makers[i % len(makers)](rng) for i in range(count - len(fixed))]
    return fixed + made


def random_text(rng: random.Random, longest: int = 40) -> str:
    """Letters from all over Unicode, each block as likely as any other."""
    letters = []
    for _ in range(_below(rng, longest) + 1):
        low, high = _pick(rng, _BLOCKS)
        letters.append(chr(low + _below(rng, high - low + 1)))
    return "".join(letters)


def _below(rng: random.Random, limit: int) -> int:
    return int(rng.random() * limit)


def _pick(rng: random.Random, choices: Sequence[T]) -> T:
    return choices[_below(rng, len(choices))]


def _some(rng: random.Random, choices: Sequence[str], most: int) -> str:
    return "".join(_pick(rng, choices) for _ in range(_below(rng, most) + 1))


def _cut(rng: random.Random, text: str) -> str:
    """A piece of `text` that may begin and end inside a word."""
    start = _below(rng, len(text))
    return text[start : start + 1 + _below(rng, 80)]


def _code(rng: random.Random) -> str:
    return _cut(rng, _pick(rng, CODE)) + _pick(rng, ("", "\n", "\n\n", "\t", "  "))


def _prose(rng: random.Random) -> str:
    text = _cut(rng, _pick(rng, PROSE))
    return _pick(rng, (text, text.upper(), text.title(), " " + text, text + " "))


def _emoji(rng: random.Random) -> str:
    return _pick(rng, ("", " ", "ok")).join(_pick(rng, EMOJI) for _ in range(1 + _below(rng, 6)))


def _number(rng: random.Random) -> str:
    plain = str(_below(rng, 10 ** (1 + _below(rng, 18))))
    forms = (plain, f"{int(plain):,}", f"-{plain}.{plain[:3]}e-{plain[:2]}", f"0x{int(plain):X}")
    return _pick(rng, (*forms, _some(rng, _DIGITS, 12), f"a{plain}b {plain}\n{plain}"))


def _white(rng: random.Random) -> str:
    run = _some(rng, _SPACES, 6) * (1 + _below(rng, 4))
    return _pick(rng, (run, f"x{run}y", f"{run}word", f"word{run}", f"1{run}2{run}."))


def _punctuation(rng: random.Random) -> str:
    return _some(rng, _PUNCTUATION, 8) + _pick(rng, ("", "\n", "\r\n\r\n", " a", "a", " "))


def _special(rng: random.Random) -> str:
    return _pick(rng, ("", " ", "hi", "\n")).join(_pick(rng, SPECIALS) for _ in range(3))


def _marks(rng: random.Random) -> str:
    letters = _cut(rng, _pick(rng, PROSE))[:12]
    return "".join(letter + _some(rng, _MARKS, 2) * _below(rng, 3) for letter in letters)


def _right_to_left(rng: random.Random) -> str:
    text = _pick(rng, PROSE[18:21])
    return f"{_cut(rng, text)} {_pick(rng, CODE)[:8]} \u202b{_cut(rng, text)}\u202c\u200f{plain_ascii(rng)}"


def plain_ascii(rng: random.Random, most: int = 12) -> str:
    """Printable ASCII, as typed in a hurry."""
    return "".join(chr(0x20 + _below(rng, 95)) for _ in range(_below(rng, most) + 1))


def _random(rng: random.Random) -> str:
    return random_text(rng)


def _runs(rng: random.Random) -> str:
    unit = _pick(
        rng, (" ", "a", "=", "-", ".", "\n", "ab", "  a", "あ", "👍", "0", "\t", "aA", "_")
    )
    return plain_ascii(rng, 3) + unit * (1 + _below(rng, 40)) + plain_ascii(rng, 3)


def _contraction(rng: random.Random) -> str:
    ends = ("'s", "'S", "'t", "'RE", "'ve", "'m", "'LL", "'d", "’s", "'ſ", "''s", "'", " 's", "'x")
    return " ".join(
        _pick(rng, ("we", "I", "12", "é", "", "a_")) + _pick(rng, ends) for _ in range(4)
    )


def _mixed(rng: random.Random) -> str:
    makers = (_code, _prose, _emoji, _number, _white, _punctuation, _special, _marks, _random)
    return "".join(_pick(rng, makers)(rng) for _ in range(2 + _below(rng, 3)))
