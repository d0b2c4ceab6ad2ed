"""Answers questions of a file or the keyboard with a saved model."""

import json
import sys

import keras
from answer_reader import read
from program_lines import input_lines, saved_folder
from question_table import QuestionTable
from questions import Question, cut, words_of

FILES = "model.keras", "words.json", "results.json"


def run(folder, path=""):
    """Loads a model and answers the question of every line.

    Args:
        folder: path of the folder that a training wrote.
        path: file of lines `question<tab>passage`, plain or .gz; empty: the
            keyboard.

    Raises:
        ValueError: no model in the folder, or a file that cannot be read.
    """
    folder = saved_folder(folder, *FILES)
    lines = input_lines(path)
    if path:
        questions = [question_of(line) for line in lines if line.strip()]
    model = keras.saving.load_model(folder / "model.keras", compile=False)
    table = QuestionTable.load(folder / "words.json")
    results = json.loads((folder / "results.json").read_text("utf-8"))
    rule = results["longest"], results["threshold"]
    if path:
        for text in answer(model, table, questions, *rule):
            print(text)
        return
    for line in lines:
        try:
            question = question_of(line)
        except ValueError as error:
            print(error, file=sys.stderr)
            continue
        print(*answer(model, table, [question], *rule, 1), flush=True)


def question_of(line):
    """Makes a question of a line `question<tab>passage`.

    Args:
        line: str.

    Returns:
        `Question` without a span.

    Raises:
        ValueError: the line has no tab, or nothing on one side of it.
    """
    asked, _, passage = line.partition("\t")
    question = Question(cut(asked.replace("?", " ")), cut(passage), None)
    if not question.asked or not question.passage:
        raise ValueError(
            "A line must be a question, a tab and a passage. "
            f"Received: {line.strip()[:60]!r}"
        )
    return question


def answer(model, table, questions, longest, threshold, batch_size=64):
    """Answers questions.

    Args:
        model: `keras_attn.models.SpanExtractor`.
        table: `QuestionTable`.
        questions: list of `Question`.
        longest: int. Words of the longest answer.
        threshold: float, in nats. A score up to it means that there is none.
        batch_size: int.

    Returns:
        List of str: the answer and its probability, or "no answer" and its.
    """
    texts = []
    readings = read(model, table, questions, longest, batch_size)
    for question, one in zip(questions, readings, strict=True):
        if one.score > threshold:
            words = words_of(question.passage, one.span)
            texts.append(f"{words} ({one.probability:.0%})")
        else:
            none = one.start[0] * one.end[0]
            texts.append(f"no answer ({none:.0%})")
    return texts
