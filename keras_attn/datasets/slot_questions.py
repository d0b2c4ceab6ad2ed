"""slot_questions: the slots of dialogues as questions."""

from collections.abc import Sequence

from keras_attn import checks
from keras_attn.datasets.dialogues import DialogueTurn
from keras_attn.datasets.question import Answer, Question


def slot_questions(turns: Sequence[DialogueTurn]) -> list[Question]:
    """Turns the slots of dialogues into questions about their texts.

    There is one question for each turn and each slot name: the name, then
    "requested" and the slots that the system asked for. A model that extracts
    answers can so be trained to fill slots, as by Namazifar et al. 2021,
    https://arxiv.org/abs/2011.03023.

    Args:
        turns: list of `DialogueTurn`, such as those of `make_dialogues` and
            `read_restaurants8k`.

    Returns:
        List of `Question`, as many as turns times distinct slot names, in the
        order of the turns, then of the names.

    Raises:
        ValueError: `turns` is not a list of `DialogueTurn`.

    Examples:
        >>> from keras_attn.datasets import DialogueTurn, Slot
        >>> turn = DialogueTurn("At 6.", ("time",), (Slot("time", "6", 3),))
        >>> keras_attn.datasets.slot_questions([turn])[0].question
        'time requested time'
    """
    expected = "a list of `DialogueTurn`"
    turns = list(checks.iterable("turns", turns, expected))
    for turn in turns:
        checks.instance("turns", turn, DialogueTurn, expected)
    questions = []
    names = sorted({slot.name for turn in turns for slot in turn.slots})
    for text, requested, slots in turns:
        for name in names:
            words = [name, *(["requested", *requested] if requested else [])]
            answers = tuple(
                Answer(slot.value, slot.start)
                for slot in slots
                if slot.name == name
            )
            question = " ".join(words).replace("_", " ")
            questions.append(Question(question, text, answers))
    return questions
