"""Corrects the words of lines from a file or the keyboard."""

import re

import keras
from letters import Letters
from program_lines import input_lines, saved_folder
from spelling_suggestions import LONGEST, replaced, suggest

# Letters, and what stands between letters of one word.
WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")


def run(folder, path="", count=5, sure=0.5):
    """Loads a model and corrects every line.

    Args:
        folder: path of the folder that a training wrote.
        path: file of lines, plain or .gz; empty: the keyboard.
        count: int. Suggestions for a word.
        sure: float. The least probability at which a word is replaced.

    Raises:
        ValueError: no model in the folder, or a file that cannot be read.
    """
    folder = saved_folder(folder, "model.keras", "letters.json")
    lines = input_lines(path)
    model = keras.saving.load_model(folder / "model.keras", compile=False)
    letters = Letters.load(folder / "letters.json")
    # What is typed is answered line by line, a file as a whole.
    for part in [lines] if path else ([line] for line in lines):
        for text in correct(model, letters, part, count, sure):
            print(text, flush=True)


def correct(model, letters, lines, count=5, sure=0.5):
    """Yields lines with their words corrected, and suggestions below.

    Words are looked up in lower case, and get their capitals back. Those with
    a character that the model never saw, and very long ones, are left alone.

    Args:
        model: `keras_attn.models.Transformer` over letters.
        letters: `Letters`.
        lines: list of str.
        count: int. Suggestions for a word.
        sure: float. The least probability at which a word is replaced.

    Yields:
        Str: for each line what became of it, then, behind two spaces, a line
        for each word that the model would write otherwise.
    """
    known = set(letters.characters)
    words = sorted(
        {
            word.lower()
            for line in lines
            for word in WORD.findall(line)
            if known.issuperset(word.lower()) and len(word) < LONGEST
        }
    )
    found = dict(zip(words, suggest(model, letters, words, count), strict=True))

    def write(match):
        word = match[0]
        suggestions = found.get(word.lower(), [])
        return with_capitals(word, replaced(word.lower(), suggestions, sure))

    for line in lines:
        yield WORD.sub(write, line)
        for word in dict.fromkeys(map(str.lower, WORD.findall(line))):
            if word in found and found[word][0].word != word:
                said = ", ".join(f"{s} {p:.2f}" for s, p in found[word])
                yield f"  {word}: {said}"


def with_capitals(word, correction):
    """Returns a correction with the capitals of the word that it replaces.

    Args:
        word: str, as it stood in the text.
        correction: str; that of the word in lower case.

    Returns:
        Str.

    Examples:
    >>> [with_capitals(w, "their") for w in ("Thier", "THIER", "thier")]
    ['Their', 'THEIR', 'their']
    """
    if correction == word.lower():
        return word
    if len(word) > 1 and word.isupper():
        return correction.upper()
    if word[0].isupper():
        return correction[:1].upper() + correction[1:]
    return correction
