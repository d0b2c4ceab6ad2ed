"""write_squad: writes questions in the format of SQuAD."""

import json
from collections.abc import Sequence

from keras_attn import checks
from keras_attn.datasets.question import Question
from keras_attn.typing import PathLike


def write_squad(path: PathLike, questions: Sequence[Question]) -> None:
    """Writes questions in the JSON format of SQuAD 2.0.

    `read_squad` reads them back, each with its answers.

    Args:
        path: str or `os.PathLike`. The file, which is replaced.
        questions: list of `Question`.

    Raises:
        ValueError: an argument has another type.
        OSError: the file cannot be written.

    Examples:
        >>> import pathlib, tempfile
        >>> from keras_attn import datasets
        >>> path = pathlib.Path(tempfile.mkdtemp(), "test.json")
        >>> questions = datasets.make_questions(5)
        >>> datasets.write_squad(path, questions)
        >>> datasets.read_squad(path) == questions
        True
    """
    path, expected = checks.path("path", path), "a list of `Question`"
    paragraphs = []
    questions = checks.iterable("questions", questions, expected)
    for number, item in enumerate(questions):
        checks.instance("questions", item, Question, expected)
        row = {
            "id": str(number),
            "question": item.question,
            "answers": [
                {"text": text, "answer_start": start}
                for text, start in item.answers
            ],
            "is_impossible": not item.answers,
        }
        paragraphs.append({"context": item.context, "qas": [row]})
    content = {"version": "2.0", "data": [{"paragraphs": paragraphs}]}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(content, file, ensure_ascii=False, indent=1)
