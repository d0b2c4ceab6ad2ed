"""examples/correct_spelling.py: predictions, files, bad input."""

import re

import pytest

from tests.helpers.programs import results, run

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


def test_a_lower_threshold_changes_no_fewer_words(trained):
    out, done = trained
    assert "threshold  corrected  miscorrected  false alarms" in done.stdout
    rates = results(out)["scores"]["test_new"]
    changed = [sum(rates[t][:2]) for t in ("0.0", "0.5", "0.99")]
    assert changed == sorted(changed, reverse=True)


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
    typed = run("correct_spelling", "predict", *unsure, stdin=text)
    assert typed.stdout == text
    sure = ("--out", out, "--threshold", 0, "--suggestions", 2)
    found = run("correct_spelling", "predict", *sure, stdin=text).stdout
    first, *suggestions = found.split("\n\n")[0].split("\n")
    assert re.fullmatch(r"[A-Z]\w*, \w+\?", first)
    for line in suggestions:
        assert re.fullmatch(r"  d?dan: \w+ \d\.\d\d, \w+ \d\.\d\d", line)
    assert found.split("\n\n")[1].startswith("42 Éé ")  # unknown characters
