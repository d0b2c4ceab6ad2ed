"""Random turns, and the split of each."""

import functools
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from keras_attn.datasets.booking_grammar import templates, values
from keras_attn.datasets.booking_grammar.templates import (
    ANSWERS,
    BOOKINGS,
    CORRECTIONS,
    FIELDS,
    HELD_OUT_WORDINGS,
    NAMES,
    OTHERS,
)
from keras_attn.datasets.phrase_grammar.held_out import hash_fraction
from keras_attn.typing import TensorLike

if TYPE_CHECKING:
    from keras_attn.datasets.stable_random import StableRandom


_REQUESTS = tuple(ANSWERS)
_ANSWER_WEIGHTS = tuple(5 if len(request) == 1 else 3 for request in _REQUESTS)
_ORDINALS = {1: "st", 2: "nd", 3: "rd"}
_QUESTION = re.compile(
    "(actually, )?(can|could|may|do|does|is|are|have you|would|what|when|"
    "where|which|how|on which|any chance) "
)


class TurnSampler:
    """Draws turns.

    Args:
        random: `StableRandom`.
    """

    def __init__(self, random: "StableRandom") -> None:
        self._random = random

    def turn(self, kind: str) -> tuple[Any, ...]:
        """Returns a tuple (text, requested, spans).

        `kind` is "booking", "answer", "correction" or "other"; `spans` is a
        list of (slot, value, start).
        """
        random = self._random
        if kind == "answer":
            requested = random.choice(_REQUESTS, _ANSWER_WEIGHTS)
            wordings = ANSWERS[requested]
            if random.happens(0.25):
                # Often the value alone.
                wordings = wordings[:1]
        else:
            wordings = {
                "booking": BOOKINGS,
                "correction": CORRECTIONS,
                "other": OTHERS,
            }[kind]
            is_first = random.happens(0.8 if kind == "booking" else 0.4)
            requested = () if is_first else random.choice(_REQUESTS)
        sentences = [self._expand(random.choice(wordings))]
        body = _text(sentences[0])
        is_question = _QUESTION.match(body)
        may_be_polite = kind != "other" and "please" not in body
        if may_be_polite and random.happens(0.25):
            is_wish = kind != "answer" and random.happens(0.5)
            polite = templates.IF_POSSIBLE if is_wish else templates.PLEASE
            sentences[0] += self._expand(polite)
        sentences[0].append(("?" if is_question else ".", None))
        if random.happens({"booking": 0.5, "other": 0.2}.get(kind, 0.1)):
            mark = random.choice((",", "!", "."))
            greeting = [*self._expand(templates.GREETINGS), (mark, None)]
            if mark == ",":
                sentences[0] = [*greeting, (" ", None), *sentences[0]]
            else:
                sentences.insert(0, greeting)
        if kind == "booking" and random.happens(0.3):
            name = self._expand(random.choice(NAMES))
            sentences.append([*name, (".", None)])
        if random.happens(0.15):
            mark = random.choice((".", "!"))
            sentences.append([*self._expand(templates.THANKS), (mark, None)])
        return self._join(sentences, requested)

    def _join(self, sentences, requested):
        style = self._random.random()
        if self._random.happens(0.4):
            sentences[-1].pop()
        text, spans = "", []
        for sentence in sentences:
            text += " " if text else ""
            for index, (part, slot) in enumerate(sentence):
                if style < 0.2:
                    part = part.lower()
                elif style < 0.85 and index == 0:
                    part = part[0].upper() + part[1:]
                if slot is not None:
                    spans.append((slot, part, len(text)))
                text += part
        return text, requested, spans

    def _expand(self, template):
        """Returns a list of pieces (text, slot), none of them empty."""
        pieces = []
        self._append(_parse(template), pieces)
        return [piece for piece in pieces if piece[0]]

    def _append(self, parts, pieces):
        for part in parts:
            if isinstance(part, str):
                pieces.append((part, None))
            elif isinstance(part, tuple):
                pieces += self._field(part[0])
            else:
                self._append(self._random.choice(part), pieces)

    def _field(self, name):
        random = self._random
        if name in FIELDS:
            return self._expand(random.choice(FIELDS[name]))
        if name in _VALUES:
            return _VALUES[name](random)
        if name.startswith("old_"):
            name = {"old_time": "clear_time"}.get(name) or name[4:]
            return [(_text(_VALUES[name](random)), None)]
        if name == "phone":
            digits = [random.integer(10) for _ in range(7)]
            return [("555 {}{}{} {}{}{}{}".format(*digits), None)]
        if name == "age":
            age = 18 + random.integer(73)
            last = 0 if age // 10 == 1 else age % 10
            return [(f"{age}{_ORDINALS.get(last, 'th')}", None)]
        return self._details(has_people=name == "details")

    def _details(self, has_people):
        """Returns some of the number of people, the date and the time."""
        random = self._random
        options = [
            random.choice(("{on_date}", "{on_date}", "for {date}")),
            random.choice(
                ("at {time}", "at {time}", "at [around|about] {time}")
            ),
        ]
        if has_people:
            options.append(random.choice(("for {people}", "for {party}")))
        count = 1 + random.integer(len(options))
        return self._expand(" ".join(random.sample(options, count)))


_VALUES = {
    name: getattr(values, name)
    for name in (
        *("first_name", "last_name", "people", "party", "time", "clear_time"),
        *("date", "on_date"),
    )
}


def split_of(text: str, spans: Callable[..., Any]) -> Any:
    """Returns the split of a turn.

    Test turns have a held-out value or wording. Of the others, 5 % by their
    text are for validation.
    """
    lower = text.lower()
    if any(wording in lower for wording in HELD_OUT_WORDINGS):
        return "test"
    if any(is_held_out(slot, value.lower()) for slot, value, _ in spans):
        return "test"
    is_validation = hash_fraction("booking turn", lower) < 0.05
    return "validation" if is_validation else "train"


@functools.cache
def is_held_out(slot: TensorLike, value: TensorLike) -> bool:
    """Whether a value, in lower case, is in test turns only."""
    return hash_fraction("slot", slot, value) < 0.08


def _text(pieces):
    return "".join(text for text, _ in pieces)


_parse = functools.cache(templates.parse)
