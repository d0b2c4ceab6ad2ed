# ruff: noqa: RUF001
"""Short texts in ten scripts, and texts that are hard to round-trip."""

import functools
import unicodedata

import numpy as np

SCRIPTS = {
    "latin": [
        "Où est la bibliothèque, s'il vous plaît ?",
        "Der Bär läuft über die große Straße.",
        "El niño comió piñones en la montaña.",
        "Příliš žluťoučký kůň úpěl ďábelské ódy.",
    ],
    "cyrillic": [
        "Где находится библиотека?",
        "Съешь ещё этих мягких французских булок.",
        "Мы живём в маленьком городе.",
    ],
    "greek": ["Πού είναι η βιβλιοθήκη;", "Καλημέρα σε όλους τους φίλους μου."],
    "arabic": ["أين توجد المكتبة؟", "أَهْلًا وَسَهْلًا بِكُمْ فِي المَدِينَة."],
    "hebrew": ["איפה נמצאת הספרייה?", "בְּרֵאשִׁית בָּרָא אֱלֹהִים."],
    "devanagari": ["पुस्तकालय कहाँ है?", "मैं हिन्दी सीख रहा हूँ।"],
    "thai": ["ห้องสมุดอยู่ที่ไหน", "ฉันกำลังเรียนภาษาไทย"],
    "chinese": ["图书馆在哪里？", "我正在学习中文。", "圖書館在哪裡？"],
    "japanese": ["図書館はどこですか。", "わたしはコーヒーをのみます。"],
    "korean": ["도서관이 어디에 있습니까?", "저는 한국어를 배우고 있습니다."],
}

# Scripts that no tokenizer of these tests has seen in training.
UNSEEN = ["გამარჯობა", "ᚠᚢᚦᚨᚱᚲ", "ሰላም ለዓለም", "𓀀𓁐", "བཀྲ་ཤིས།", "𝒳 ≠ 𝟘"]

HARD = [
    "",
    " ",
    "   ",
    " leading",
    "trailing ",
    "  double  spaces  ",
    "\t",
    "\n",
    "\r\n",
    "\ttab\tand\nnew\rline\r\n",
    "\v\f\x1c\x85\u2028\u2029",
    "\x00",
    "a\x00b\x00",
    "".join(map(chr, range(32))),
    "\x7f\x80\x9f",
    # sentencepiece's space character, and the escape character.
    "\u2581",
    "\u2581\u2581 a\u2581b \u2581",
    "\x1a",
    "\x1a0",
    "\x1a1",
    "\x1a\u2581\x1a1\u25810\x1a0",
    # Text that looks like a special token or a byte.
    "<s>",
    "</s><pad><unk><s>",
    "<0x41><0x00>",
    # Marks, joiners, directions, the ends of the code space.
    "\ufeffbom",
    "e\u0301 \u00e9 \u1e9b\u0323",
    "\u200f\u202eab\u202c\u00ad",
    "\u00a0\u3000\u2003",
    "\ufffd\ufffe\uffff\U0010ffff",
    "\u2047 \ufffd",
    "😀 👩‍👩‍👧‍👦 🇪🇸 👍🏽 ❤️",
    "12345 67,890.00",
    "x" * 5000,
    " word" * 2000,
]


def varied_texts(parts, count, seed=0):
    """Random texts of these parts, hard texts, spaces and any characters."""
    random = np.random.default_rng(seed)
    spaces = [" ", "  ", "\n", "\t", "\r\n", "\xa0", "\u2003", "\x0b", "\x85"]
    texts = [*HARD, *UNSEEN, *parts]
    parts = [*HARD, *UNSEEN, *parts]
    while len(texts) < count:
        text = []
        for _ in range(random.integers(1, 9)):
            kind = random.integers(4)
            if kind == 0:
                text.append(spaces[random.integers(len(spaces))])
            elif kind == 1:
                text += random.choice(_assigned(), 3).tolist()
            else:
                part = parts[random.integers(len(parts))]
                text.append(part[: random.integers(1, 20)])
        texts.append("".join(text))
    return texts


@functools.cache
def _assigned():
    """Returns all assigned characters, as an array to sample from."""
    letters = map(chr, range(0x2FFFF))
    return np.array(
        [
            letter
            for letter in letters
            if unicodedata.category(letter)[0] != "C"
            # Without characters whose category differs between Unicode tables.
            and unicodedata.ucd_3_2_0.category(letter)
            == unicodedata.category(letter)
        ]
    )
