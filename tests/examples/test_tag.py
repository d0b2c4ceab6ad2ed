"""examples/tag.py: predictions, files, bad input."""

import json

import pytest

from tests.helpers.programs import run

pytestmark = pytest.mark.one_backend

TAGS = "B-name", "I-name", "O", "O", "B-city"
SENTENCES = [
    [*zip((first, last, verb, "in", city), TAGS, strict=True)]
    for first in ("Ann", "Bob", "Eve", "Max")
    for last in ("Lee", "Roy", "Kim")
    for verb in ("sings", "eats", "sleeps")
    for city in ("Oslo", "Rome", "Lima", "Bern")
]
SMALL = ("--width", 32, "--epochs", 4)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A file with BIO tags, the second line of which is bad."""
    path = tmp_path_factory.mktemp("data") / "names.conll"
    blocks = ["\n".join(map("\t".join, sentence)) for sentence in SENTENCES]
    path.write_text("\n\n".join(["Zoe\tB-name\nsings", *blocks]), "utf-8")
    return path


@pytest.fixture(scope="module")
def trained(data, tmp_path_factory):
    """The folder of a training on the file, and its output."""
    out = tmp_path_factory.mktemp("tag")
    return out, run("tag", "train", "--data", data, *SMALL, "--out", out)


def test_files_are_tagged_and_bad_lines_counted(trained, data, tmp_path):
    out, done = trained
    assert f"{data}, line 2: expected a word and a tag" in done.stderr
    assert "Skipped 1 bad line." in done.stderr
    f1 = json.loads((out / "results.json").read_text())["scores"]["F1"]
    assert f1 > 0.5 and f"F1 {f1:.2%}" in done.stdout
    strict = ("--data", data, "--strict", "--out", tmp_path)
    assert "line 2" in run("tag", "train", *strict, status=1).stderr


def test_prediction_from_a_file_and_from_standard_input(trained, tmp_path):
    out, _ = trained
    lines = tmp_path / "lines.txt"
    lines.write_text("Ann Lee sings in Rome.\n\nBob eats\n", "utf-8")
    columns = ("--columns", "--tokenized", "--input", lines)
    found = run("tag", "predict", "--out", out, *columns).stdout
    first, empty, second = found.removesuffix("\n\n").split("\n\n")
    words = [line.split("\t")[0] for line in first.split("\n")]
    assert words == "Ann Lee sings in Rome.".split()
    assert empty == "" and second.startswith("Bob\t")
    typed = run("tag", "predict", "--out", out, stdin=lines.read_text()).stdout
    words = [
        [pair.split("/")[0] for pair in line.split()]
        for line in typed.splitlines()
    ]
    assert words == ["Ann Lee sings in Rome .".split(), ["Bob", "eats"]]
