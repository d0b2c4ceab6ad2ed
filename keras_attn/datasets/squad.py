"""read_squad: questions about paragraphs, with their answers."""

from keras_attn import checks
from keras_attn.datasets.data_files import parse_record, read_json, require
from keras_attn.datasets.question import Answer, Question
from keras_attn.typing import PathLike


def read_squad(path: PathLike) -> list[Question]:
    r"""Reads questions in the JSON format of SQuAD, versions 1.1 and 2.0.

    Each answer is checked to be at its offset in the context. In version 2.0
    (Rajpurkar et al. 2018, https://arxiv.org/abs/1806.03822), questions with
    `is_impossible` have no answer. Some questions have several answers, from
    different annotators; equal ones are listed once.

    Args:
        path: str or `os.PathLike`. The file, plain or `.gz`.

    Returns:
        List of `Question`, in the order of the file. Questions about the same
        paragraph share its text: split by it, with
        `split_by_hash(questions, key=lambda question: question.context)`.

    Raises:
        DataFileError: the file cannot be read, is not in this format or has no
            questions, or an answer is not at its offset.

    Examples:
        >>> import json, pathlib, tempfile
        >>> answer = {"text": "in Oslo", "answer_start": 9}
        >>> question = {
        ...     "id": "1", "question": "Where is she?", "answers": [answer]}
        >>> paragraph = {"context": "Ann sits in Oslo.", "qas": [question]}
        >>> data = {"version": "1.1", "data": [{"paragraphs": [paragraph]}]}
        >>> path = pathlib.Path(tempfile.mkdtemp(), "dev.json")
        >>> _ = path.write_text(json.dumps(data))
        >>> keras_attn.datasets.read_squad(path)[0].answers
        (Answer(text='in Oslo', start=9),)
    """
    content = read_json(path)
    path = checks.path("path", path)
    questions = []
    paragraphs = parse_record(path, "top level", _paragraphs, content)
    for number, paragraph in enumerate(paragraphs, 1):
        where = f"paragraph {number}"
        context, rows = parse_record(path, where, _context, paragraph)
        for row in rows:
            name = row.get("id") if isinstance(row, dict) else row
            where = f"question {checks.shown(name)}"
            questions.append(parse_record(path, where, _question, row, context))
    return require(path, questions, "question")


def _paragraphs(content):
    articles = content["data"]
    return [row for article in articles for row in article["paragraphs"]]


def _context(paragraph):
    return checks.string("context", paragraph["context"]), [*paragraph["qas"]]


def _question(row, context):
    question = checks.string("question", row["question"])
    impossible = row.get("is_impossible", False)
    if checks.boolean("is_impossible", impossible):
        return Question(question, context, ())
    answers = {}
    for answer in row["answers"]:
        text = checks.string("text", answer["text"])
        start = checks.integer("answer_start", answer["answer_start"])
        found = context[start : start + len(text)]
        if start < 0 or not text or found != text:
            raise ValueError(
                f"expected the answer {checks.shown(text)} at character "
                f"{start}, received {checks.shown(found)}"
            )
        # A dict is an ordered set.
        answers[Answer(text, start)] = None
    if not answers:
        raise ValueError("expected at least one answer, received none")
    return Question(question, context, tuple(answers))
