"""read_restaurants8k: turns of booking dialogues with the values of slots."""

from keras_attn import checks
from keras_attn.datasets.data_files import parse_record, read_json, require
from keras_attn.datasets.dialogues import DialogueTurn, Slot
from keras_attn.typing import PathLike


def read_restaurants8k(path: PathLike) -> list[DialogueTurn]:
    """Reads turns of users who book a table, with the values they give.

    The JSON format of Restaurants-8k (Coope et al. 2020,
    https://arxiv.org/abs/2005.08866,
    https://github.com/PolyAI-LDN/task-specific-datasets): a list of turns, each
    with the text `userInput.text`, the slots `context.requestedSlots` that the
    system asked for, and `labels`, a list of `slot` and `valueSpan`. A span
    without `startIndex` begins at 0. The data set has 8,198 turns for training
    and 3,731 for the test.

    Args:
        path: str or `os.PathLike`. The file, plain or `.gz`.

    Returns:
        List of `DialogueTurn`. Some texts are repeated: split by them, with
        `split_by_hash(turns)`.

    Raises:
        DataFileError: the file cannot be read, is not in this format or has no
            turns, or a span is not in the text.

    Examples:
        >>> import json, pathlib, tempfile
        >>> turn = {
        ...     "userInput": {"text": "At 6."},
        ...     "context": {"requestedSlots": ["time"]},
        ...     "labels": [{
        ...         "slot": "time",
        ...         "valueSpan": {"startIndex": 3, "endIndex": 4}}]}
        >>> path = pathlib.Path(tempfile.mkdtemp(), "test.json")
        >>> _ = path.write_text(json.dumps([turn]))
        >>> keras_attn.datasets.read_restaurants8k(path)[0].slots
        (Slot(name='time', value='6', start=3),)
    """
    content = read_json(path)
    path = checks.path("path", path)
    turns = [
        parse_record(path, f"turn {number}", _turn, turn)
        for number, turn in enumerate(
            parse_record(path, "top level", _turns, content), 1
        )
    ]
    return require(path, turns, "turn")


def _turns(content):
    if not isinstance(content, list):
        kind = type(content).__name__
        raise ValueError(f"expected a list of turns, received {kind}")
    return content


def _turn(turn):
    text = checks.string("text", turn["userInput"]["text"])
    requested = turn.get("context", {}).get("requestedSlots", [])
    for name in checks.iterable("requestedSlots", requested, "a list of str"):
        checks.string("requestedSlots", name)
    labels = checks.iterable("labels", turn.get("labels", []), "a list")
    slots = [_slot(text, label) for label in labels]
    slots.sort(key=lambda slot: slot.start)
    return DialogueTurn(text, tuple(requested), tuple(slots))


def _slot(text, label):
    name, span = checks.string("slot", label["slot"]), label["valueSpan"]
    start = checks.integer("startIndex", span.get("startIndex", 0))
    end = checks.integer("endIndex", span["endIndex"])
    if not 0 <= start < end <= len(text):
        raise ValueError(
            f"expected a span in the {len(text)} characters of "
            f"{checks.shown(text)}, received {start} to {end}"
        )
    return Slot(name, text[start:end], start)
