"""make_dialogues: turns of a booking dialogue with the values of slots."""

from typing import NamedTuple

from keras_attn.datasets import sampling
from keras_attn.datasets.booking_grammar.turns import TurnSampler, split_of

_KINDS = {"booking": 3, "answer": 4, "correction": 1, "other": 2}


class Slot(NamedTuple):
    """A value that the user gives, and its position.

    Args:
        name: str. "date", "time", "people", "first_name" or "last_name".
        value: str. `text[start : start + len(value)]` of the turn.
        start: int. Index of its first character in the text.

    Examples:
        >>> keras_attn.datasets.Slot("time", "7 pm", 3).value
        '7 pm'
    """

    name: str
    value: str
    start: int


class DialogueTurn(NamedTuple):
    """What a user writes, and the values in it.

    Args:
        text: str.
        requested: tuple of str. The names of the slots that the system asked
            for in the turn before.
        slots: tuple of `Slot`, in the order of the text. Empty if the user
            gives no value.

    Examples:
        >>> from keras_attn.datasets import DialogueTurn, Slot
        >>> turn = DialogueTurn("At 6.", ("time",), (Slot("time", "6", 3),))
        >>> name, value, start = turn.slots[0]
        >>> turn.text[start : start + len(value)]
        '6'
    """

    text: str
    requested: tuple[str, ...]
    slots: "tuple[Slot, ...]"


def make_dialogues(
    n: int, *, seed: int = 0, split: str = "train"
) -> list[DialogueTurn]:
    """Makes turns of users who book a table, with the values of five slots.

    For span extraction, in the form of Restaurants-8k (Coope et al. 2020,
    https://arxiv.org/abs/2005.08866): which part of the text is the date, the
    time, the number of people, the first name or the last name? Each turn is
    one example, without the turns before it; a slot has at most one value per
    turn. 30 % of the turns are requests, 40 % answers to a question of the
    system, 10 % corrections, and 20 % have no value.

    What the system asked for matters: "6" is a time or a number of people,
    and "Thomas" a first or a last name. Some numbers, dates and times are not
    values, such as those of birthdays, of phone numbers, and of what is
    corrected ("not 7 pm but 8 pm").

    Texts have 1 to 32 words, with capitals and punctuation or without, from
    about 650 different words and many numbers. Billions of them are distinct.

    Test turns have a held-out value (8 % of the values of each slot) or one of
    22 held-out wordings ("any chance of a table"), which are in no other split.
    5 % of the other turns, by their text, are for validation.

    Args:
        n: int >= 0. Number of turns.
        seed: int >= 0. Default 0.
        split: "train", "validation" or "test". Default "train".

    Returns:
        List of n distinct `DialogueTurn`.

    Raises:
        ValueError: an argument is invalid.

    Examples:
        >>> turns = keras_attn.datasets.make_dialogues(9)
        >>> turns[5].text
        "we're 5 adults and 3 kids, and we would like to come at 12 o'clock"
        >>> for name, value, start in turns[5].slots:
        ...     print(name, "|", value, "|", start)
        people | 5 adults and 3 kids | 6
        time | 12 o'clock | 56
        >>> turns[8].text, turns[8].requested, turns[8].slots
        ('6', ('people',), (Slot(name='people', value='6', start=0),))
    """
    sampling.check_arguments(n, seed, split)
    return sampling.take_distinct(n, _candidates(seed, split))


def _candidates(seed, split):
    random = sampling.named_random(seed, "dialogues")
    sampler = TurnSampler(random)
    kinds, weights = tuple(_KINDS), tuple(_KINDS.values())
    while True:
        # The frequencies of the kinds are the same in all splits.
        kind = random.choice(kinds, weights)
        while True:
            text, requested, spans = sampler.turn(kind)
            if split_of(text, spans) == split:
                break
            yield None
        slots = tuple(Slot(*span) for span in spans)
        yield (text, requested), DialogueTurn(text, requested, slots)
