"""read_disfl_qa: questions with a slip of the tongue, and what was meant."""

from keras_attn import checks
from keras_attn.datasets.data_files import parse_record, read_json, require
from keras_attn.datasets.disfluent_questions import DisfluentQuestion
from keras_attn.typing import PathLike


def read_disfl_qa(path: PathLike) -> list[DisfluentQuestion]:
    """Reads questions in which the speaker corrects a wrong word.

    The JSON format of Disfl-QA (Gupta et al. 2021,
    https://arxiv.org/abs/2106.04016,
    https://github.com/google-research-datasets/Disfl-QA): an object whose
    values have the texts `disfluent` and `original`. The questions are from
    version 2.0 of SQuAD, whose paragraphs are not in the files: 7,182 for
    training, 1,000 for validation, and 3,643 for the test.

    Args:
        path: str or `os.PathLike`. The file, plain or `.gz`.

    Returns:
        List of `DisfluentQuestion`, in the order of the file. `context` is "".

    Raises:
        DataFileError: the file cannot be read, is not in this format or has no
            questions.

    Examples:
        >>> import json, pathlib, tempfile
        >>> texts = {
        ...     "disfluent": "Who sang no wait who danced?",
        ...     "original": "Who danced?"}
        >>> path = pathlib.Path(tempfile.mkdtemp(), "dev.json")
        >>> _ = path.write_text(json.dumps({"56ddde6b": texts}))
        >>> keras_attn.datasets.read_disfl_qa(path)[0].question
        'Who danced?'
    """
    content = read_json(path)
    path = checks.path("path", path)
    items = parse_record(path, "top level", lambda: content.items())
    questions = [
        parse_record(path, f"question {checks.shown(key)}", _question, texts)
        for key, texts in items
    ]
    return require(path, questions, "question")


def _question(texts):
    disfluent = checks.string("disfluent", texts["disfluent"])
    original = checks.string("original", texts["original"])
    return DisfluentQuestion(disfluent, original, "")
