"""Booking dialogues with values marked in them, as questions about a turn.

RESTAURANTS-8K (Coope et al. 2020, https://arxiv.org/abs/2005.08866) has turns
of users, and in each the values of at most five slots. Here every slot of
every turn is a question, its name; most have no answer.
"""

import hashlib
import json

import corpora
from questions import Question, cut, places

SLOTS = "people", "time", "date", "first_name", "last_name"


def read_turns(path):
    """Reads turns, and makes a question of each slot.

    Args:
        path: path of a JSON file, plain or `.gz`: a list of turns, each with
            the text as `userInput.text`, perhaps `context.requestedSlots`, a
            list of slots that the system has just asked for, and `labels`, a
            list of `slot` and `valueSpan`; of that, `startIndex`, in
            characters, is 0 where it is missing, and `endIndex` is past the
            last one.

    Returns:
        List of `Question`, those of a turn one behind the other, in the order
        of `SLOTS`. The words of a question are those of the slot's name, and
        behind "requested" those of the slots that were asked for.

    Raises:
        CorpusError: no such turns; the message names the file and the turn.

    Examples:
        A turn `{"userInput": {"text": "8pm"}, "context": {"requestedSlots":
        ["time"]}, ...}` is asked "people requested time", "time requested
        time", and so on.
    """
    questions = []
    for number, turn in enumerate(_turns(path), 1):
        try:
            text = turn["userInput"]["text"]
            requested = turn.get("context", {}).get("requestedSlots", [])
            spans = {
                label["slot"]: _span(text, label["valueSpan"])
                for label in turn.get("labels", [])
            }
            unknown = {*spans, *requested}.difference(SLOTS)
            if unknown:
                raise ValueError(f"no slot is called {min(unknown)!r}")
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise corpora.CorpusError(
                f"Turn {number:,} of {path} cannot be read: "
                f"{type(error).__name__}, {error}"
            ) from error
        words = cut(text)
        behind = _names(slot for slot in SLOTS if slot in requested)
        if behind:
            behind = ["requested", *behind]
        if words:
            questions += [
                Question([*_names([slot]), *behind], words, spans.get(slot))
                for slot in SLOTS
            ]
    if not questions:
        raise corpora.CorpusError(f"{path}: there is no turn with words.")
    return questions


def split_by_passage(questions, parts=10):
    """Splits questions so that no passage is on two sides.

    Args:
        questions: list of `Question`.
        parts: int. One of so many passages is held out, whichever these are:
            the passage alone decides. Default 10.

    Returns:
        Tuple (training, validation) of lists.
    """
    training, validation = [], []
    for question in questions:
        text = " ".join(question.passage).lower().encode("utf-8")
        held = int(hashlib.sha256(text).hexdigest(), 16) % parts == 0
        (validation if held else training).append(question)
    return training, validation


def _turns(path):
    try:
        turns = json.loads("\n".join(corpora.read_lines(path)))
    except json.JSONDecodeError as error:
        raise corpora.CorpusError(f"{path} is not JSON: {error}.") from error
    if not isinstance(turns, list):
        raise corpora.CorpusError(
            f"{path} must hold a list of turns. "
            f"Received: {type(turns).__name__}"
        )
    return turns


def _span(text, value):
    """Returns the first and the last word that a span of characters touches."""
    begin, end = value.get("startIndex", 0), value["endIndex"]
    touched = [
        number
        for number, (first, past) in enumerate(places(text))
        if first < end and past > begin
    ]
    if not touched or end > len(text):
        raise ValueError(f"no words from {begin} to {end} of {text[:60]!r}")
    return touched[0], touched[-1]


def _names(slots):
    """Returns the words of the names of slots."""
    return [word for slot in slots for word in slot.split("_")]
