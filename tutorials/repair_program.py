"""Trains a repairer alone, and repairs with a saved one: TASK=repair."""

import json
import random

import answers_settings
import corpora
import keras
import program_settings
from phrase_questions import question_splits
from phrase_slips import slip
from program_lines import input_lines, saved_folder
from questions import cut
from repairer import Repairer, compare, train_repairer
from repairs import read_repairs

_HELD_OUT = 10  # One of so many training pairs is for validation.
FILES = "repairer.keras", "repairer.json"


def run(settings):
    """Repairs lines with a saved model, or trains one, scores and saves it.

    Args:
        settings: `answers_settings.Settings`.

    Raises:
        ValueError: data or a model that cannot be read.
    """
    if settings.model:
        repair_lines(settings.model, settings.input)
        return
    train, validation, test = splits(settings)
    keras.utils.set_random_seed(settings.seed)
    settings.out.mkdir(parents=True, exist_ok=True)
    print(f"{len(train):,} pairs to learn from, {len(test):,} to test on")
    repairer, history, backup = train_repairer(
        train, validation, settings, identity(settings, train)
    )
    results = {}
    for name, part in (("validation", validation), ("test", test)):
        sources, targets = map(list, zip(*part, strict=True))
        repaired = repairer.repair(sources)
        results[name] = compare(sources, targets, repaired)
        print(f"{name}: {len(part):,} pairs")
        for way, found in results[name].items():
            print(
                f"  {way:<15} exact match {found['exact match']:6.1%}   "
                f"BLEU {found['BLEU']:5.2f}"
            )
    for source, target, said in list(
        zip(sources, targets, repaired, strict=True)
    )[:8]:
        print(f"  {' '.join(source)}\n    -> {' '.join(said)}")
        if said != target:
            print(f"       (meant: {' '.join(target)})")
    repairer.save(settings.out)
    results["loss"] = history
    results["settings"] = {k: str(v) for k, v in settings._asdict().items()}
    (settings.out / "results-repair.json").write_text(
        json.dumps(results, indent=1), encoding="utf-8"
    )
    backup.remove()
    print(f"The model is in {settings.out}; MODEL={settings.out} repairs lines")


def splits(settings):
    """Returns training, validation and test pairs.

    Args:
        settings: `answers_settings.Settings`.

    Returns:
        Tuple of three lists of (disfluent, fluent), lists of str. One in ten
        training pairs of a corpus is for validation.
    """
    if not settings.data:
        sizes = (32, 32) if settings.quick else ()
        return grammar_pairs(
            settings, question_splits(settings.questions, *sizes)
        )
    train, test = map(read_repairs, answers_settings.files(settings.data))
    if settings.quick:
        train, test = train[:200], test[:20]
    validation, train = (
        train[::_HELD_OUT],
        [pair for number, pair in enumerate(train) if number % _HELD_OUT],
    )
    return train, validation, test


def grammar_pairs(settings, questions):
    """Makes pairs of questions of the phrase grammar.

    Args:
        settings: `answers_settings.Settings`.
        questions: `phrase_questions.QuestionSplits`.

    Returns:
        Tuple of three lists of (disfluent, fluent).
    """
    draw = random.Random(settings.seed)
    return tuple(
        [(slip(draw, question), question.asked) for question in part]
        for part in questions
    )


def identity(settings, pairs):
    """Returns what a run must share with one it goes on from."""
    texts = [(" ".join(one), " ".join(other)) for one, other in pairs]
    return program_settings.identity(settings, "task", "backup", "epochs") | {
        "backend": keras.backend.backend(),
        "pairs": corpora.fingerprint(texts),
    }


def repair_lines(folder, path=""):
    """Repairs lines of a file or the keyboard with a saved model.

    Args:
        folder: path of the folder that a training wrote.
        path: file of one question a line; empty: the keyboard.

    Raises:
        ValueError: no model in the folder, or a file that cannot be read.
    """
    repairer = Repairer.load(saved_folder(folder, *FILES))
    lines = input_lines(path)
    # What is typed is answered line by line, a file as a whole.
    for part in [lines] if path else ([line] for line in lines):
        texts = [cut(line.lower()) for line in part if line.strip()]
        for words in repairer.repair(texts):
            print(" ".join(words), flush=True)
