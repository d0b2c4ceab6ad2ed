# ruff: noqa: RUF001
"""Twenty thousand texts in many scripts, for comparisons of tokenizers."""

import functools
import unicodedata

import babel
import numpy as np

from tests.text.samples import HARD, SCRIPTS, UNSEEN

# A locale for each of these scripts: Latin, Cyrillic, Greek, Arabic, Hebrew,
# Devanagari, Bengali, Tamil, Thai, Georgian, Armenian, Ethiopic, Khmer, Han,
# Kana, Hangul.
LOCALES = "en de tr vi cs ru uk el ar he hi bn ta th ka".split()
LOCALES += "hy am km zh ja ko lt fa".split()
HARD_CASES = [
    "👩‍👩‍👧‍👦 family 👍🏽, flag 🇪🇸🇫🇷 and ❤️‍🔥!",
    "ΟΔΥΣΣΕΥΣ, Ὀδυσσεύς ΑΣ.",
    "İstanbul ISPARTA ıiIİ DİYARBAKIR",
    "ẞ ß SS ǅ ﬁ ﬀ ½ ① ㎏ Ⅷ ªº",
    "漢字かな交じり文 2024年１２月 汉字 한글漢字",
    "\u00e9 e\u0301 \u1e9b\u0323 a\u0327\u0301 o\u0308\u0304",
    "\u200b\u200c\u200d\u2060\ufeff\u00ad soft\u00adhyphen",
    "a\u0000b\u0007c\u001bd\u007fe\u0085f\u009fg",
    "x" * 101,
    "ab" * 80 + " cd",
    "ж" * 130,
    "字" * 120,
    "don't can't we're I'll it's o'clock 'tis",
    "http://a.example/b?c=d&e=f#g user@host.example",
    "C++ / C# & F# <tag attr='x'> {json: [1, 2.5e-3]}",
    "``quoted'' ''twice''  and `once'",
    "\u2581under\u2581line \u2581 ",
    ">>fr<< language code >>de<<",
    "tabs\tand\nlines\r\nand\u2028more\u2029\u3000wide\u00a0hard",
    "[MASK] [mask] [SEP][CLS]x <mask> </s><s> <pad> <unk> <|endoftext|>",
    "<extra_id_0> text <extra_id_1> <new> NEW <new>more the<new>",
    "क्षत्रिय ज्ञान कि की \u0915\u094d\u200d\u0937",
    "שָׁלוֹם עֲלֵיכֶם ـــعربي ﷺ ١٢٣٤",
]


@functools.cache
def texts(count=20_000):
    """Returns the same list of different texts in each call."""
    random = np.random.default_rng(0)
    names = training_lines()
    lines = [line for lines in SCRIPTS.values() for line in lines]
    parts = [*HARD_CASES, *lines, *UNSEEN, *(t for t in HARD if len(t) < 200)]
    found = dict.fromkeys([*HARD_CASES, *HARD[:-2], *lines, *UNSEEN])
    characters = _characters()
    makers = [
        lambda: " ".join(_choice(random, names, 2)),
        lambda: _sentence(random, names),
        lambda: "".join(_choice(random, characters, 6)),
        lambda: _cut(random, parts) + _cut(random, names),
        lambda: "".join(_cut(random, parts) for _ in range(2)),
    ]
    while len(found) < count:
        found[makers[random.integers(len(makers))]()] = None
    return list(found)


@functools.cache
def training_lines():
    """Returns names in the languages of the texts."""
    return [name for locale in LOCALES for name in _names(locale)][::3]


def scripts(given):
    """Returns the scripts of texts, the first words of character names."""
    letters = {c for text in given for c in text if c.isalpha()}
    return {unicodedata.name(c, "?").split(" ")[0] for c in letters}


def _choice(random, items, most):
    return [items[i] for i in random.integers(len(items), size=most)]


def _cut(random, parts):
    part = parts[random.integers(len(parts))]
    begin = random.integers(3) * random.integers(5)
    return part[begin : begin + random.integers(1, 16)]


def _sentence(random, names):
    subject, other = _choice(random, names, 2)
    verb = _choice(random, ["is near", "lies in", "n'est pas", "ist nicht"], 1)[
        0
    ]
    end = _choice(random, [".", "!", "?", " ...", ", 12,345.67", "…"], 1)[0]
    text = f"{subject} {verb} {other}{end}"
    return text.upper() if random.integers(8) == 0 else text


def _names(locale):
    """Returns names of places, languages and months from Babel."""
    data = babel.Locale.parse(locale)
    months = data.months["format"]["wide"].values()
    days = data.days["format"]["wide"].values()
    return [
        *data.territories.values(),
        *data.languages.values(),
        *months,
        *days,
    ]


def _characters():
    found = []
    for code in range(0x20, 0x2FFFF):
        category = unicodedata.category(chr(code))
        if category not in ("Cs", "Cn", "Co") and code % 7 < 3:
            found.append(chr(code))
    return [*found, *" .,'-!?" * 200]
