"""examples/correct_spelling.py: train, predict, evaluate, resume, bad input."""

import re

import pytest

from tests.examples.programs import (
    assert_equal_results,
    results,
    run,
    stop_and_resume,
)

pytestmark = pytest.mark.one_backend

WORDS = [a + b + c for a in "bdfklmp" for b in ("a", "ee", "o") for c in "nrst"]


@pytest.fixture(scope="module")
def options(tmp_path_factory):
    """Options of a training on files, a line of which is bad."""
    folder = tmp_path_factory.mktemp("data")
    misspellings, words = folder / "misspellings.txt", folder / "words.txt"
    lines = [f"{word[0]}{word}->{word}" for word in WORDS if "ee" in word]
    misspellings.write_text("\n".join(["no arrow", *lines]), "utf-8")
    words.write_text("\n".join(WORDS), "utf-8")
    files = ("--data", misspellings, "--words", words)
    return (*files, "--quick", "--epochs", 6)


@pytest.fixture(scope="module")
def trained(options, tmp_path_factory):
    """The folder of an uninterrupted training, and what it printed."""
    out = tmp_path_factory.mktemp("spelling")
    return out, run("correct_spelling", "train", *options, "--out", out)


def test_quick_training_on_common_words(tmp_path):
    done = run("correct_spelling", "train", "--quick", "--out", tmp_path)
    assert "test_known.tsv: 12 misspellings of 12 words" in done.stdout
    assert "threshold  corrected  miscorrected  false alarms" in done.stdout
    assert f"correct_spelling.py predict --out {tmp_path}" in done.stdout
    assert "batches/s" in done.stderr
    for name in ("model.keras", "training.png", "attention.png"):
        assert (tmp_path / name).stat().st_size > 1000
    # With a lower threshold, no fewer words are changed.
    rates = results(tmp_path)["scores"]["test_new"]
    changed = [sum(rates[t][:2]) for t in ("0.0", "0.5", "0.99")]
    assert changed == sorted(changed, reverse=True)
    assert not (tmp_path / "backup").exists()


def test_bad_lines_are_reported_and_counted(trained, options, tmp_path):
    _, done = trained
    path = options[1]
    assert f"{path}, line 1: expected `wrong->right`" in done.stderr
    assert "Skipped 1 bad line." in done.stderr
    assert re.search(r"train: \d+ misspellings, \d+ words", done.stdout)
    strict = (*options, "--strict", "--out", tmp_path)
    done = run("correct_spelling", "train", *strict, status=1)
    assert "line 1: expected `wrong->right`" in done.stderr


def test_prediction_leaves_unsure_words(trained, tmp_path):
    out, _ = trained
    text = "Dan, ddan?\n\n42 Éé DAN's\n"
    lines = tmp_path / "lines.txt"
    lines.write_text(text, "utf-8")
    unsure = ("--out", out, "--threshold", 1.01)
    found = run("correct_spelling", "predict", *unsure, "--input", lines)
    assert found.stdout == text
    assert (
        run("correct_spelling", "predict", *unsure, stdin=text).stdout == text
    )
    sure = ("--out", out, "--threshold", 0, "--suggestions", 2)
    found = run("correct_spelling", "predict", *sure, stdin=text).stdout
    first, *suggestions = found.split("\n\n")[0].split("\n")
    assert re.fullmatch(r"[A-Z]\w*, \w+\?", first)
    for line in suggestions:
        assert re.fullmatch(r"  d?dan: \w+ \d\.\d\d, \w+ \d\.\d\d", line)
    assert found.split("\n\n")[1].startswith("42 Éé ")  # unknown characters


def test_evaluation_repeats_the_scores_of_the_training(trained):
    out, done = trained
    start = done.stdout.index("test_known.tsv: ")
    scores = done.stdout[start:].split("\n\n")[0]
    assert (
        run("correct_spelling", "evaluate", "--out", out).stdout
        == scores + "\n"
    )


def test_resumed_training_equals_an_uninterrupted_one(
    trained, options, tmp_path
):
    options = ("train", *options, "--out", tmp_path)
    other = {"changed": ("--noise", 3), "message": "noise was 2 and is 3"}
    stop_and_resume("correct_spelling", *options, **other)
    names = "batches", "validation_loss"
    assert_equal_results(tmp_path, trained[0], *names)
