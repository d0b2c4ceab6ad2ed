"""examples/answer.py: predictions, files, bad input."""

import json

import pytest

from tests.helpers.programs import results, run

pytestmark = pytest.mark.one_backend

TEXT = "{a} lives in {b}. {c} lives in {d} since {n}."
NAMES, CITIES = ("Ann", "Bob", "Eve", "Max"), ("Oslo", "Rome", "Lima", "Bern")


def paragraph(n):
    """A context with two questions, one of which has an answer."""
    a, c = NAMES[n % 4], NAMES[(n + 1 + n // 4) % 4]
    b, d = CITIES[n // 16 % 4], CITIES[n // 5 % 4]
    context = TEXT.format(a=a, b=b, c=c, d=d, n=n)
    answer = {"text": f"in {b}", "answer_start": context.index(f"in {b}")}
    where = {"id": f"{n}a", "question": f"Where does {a} live?"}
    when = {"id": f"{n}b", "question": f"When does {a} leave?"}
    rows = [
        where | {"answers": [answer]},
        when | {"is_impossible": True, "answers": []},
    ]
    return {"context": context, "qas": rows}


@pytest.fixture(scope="module")
def options(tmp_path_factory):
    """Options of a training on a file."""
    path = tmp_path_factory.mktemp("data") / "train.json"
    data = [{"paragraphs": [paragraph(n) for n in range(80)]}]
    path.write_text(json.dumps({"data": data}), "utf-8")
    return ("--data", path, "--quick", "--epochs", 6, "--max-length", 24)


@pytest.fixture(scope="module")
def trained(options, tmp_path_factory):
    """The folder of an uninterrupted training, and what it printed."""
    out = tmp_path_factory.mktemp("answer")
    return out, run("answer", "train", *options, "--out", out)


def test_quick_training_on_synthetic_dialogues(tmp_path):
    options = ("--quick", "--format", "restaurants8k", "--out", tmp_path)
    run("answer", "train", *options)
    assert results(tmp_path)["scores"]["all"]["questions"] == 32


def test_prediction_from_files_and_from_standard_input(
    trained, options, tmp_path
):
    out, _ = trained
    text, lines = "Ann lives in Oslo.", tmp_path / "lines.txt"
    lines.write_text(
        f"{text}\nWhere does Ann live?\n\nWho?\tNobody knows.\n", "utf-8"
    )
    low = ("--out", out, "--threshold", -1e9)
    found = run("answer", "predict", *low, "--input", lines).stdout
    typed = run("answer", "predict", *low, stdin=lines.read_text()).stdout
    rows = [line.split("\t") for line in found.splitlines()]
    assert [row[0] for row in rows] == ["Where does Ann live?", "Who?"]
    assert rows[0][1] in text and rows[1][1] in "Nobody knows."
    assert [line.split("\t")[:2] for line in typed.splitlines()] == [
        row[:2] for row in rows
    ]
    high = ("--out", out, "--threshold", 1e9, "--input", options[1])
    found = run("answer", "predict", *high).stdout.splitlines()
    assert len(found) == 160
    assert all(line.split("\t")[1] == "(no answer)" for line in found)


def test_bad_input_is_reported(options, tmp_path):
    bad = tmp_path / "bad.json"
    text = options[1].read_text("utf-8").replace("Oslo", "Paris", 1)
    bad.write_text(text, "utf-8")
    done = run("answer", "train", "--data", bad, "--out", tmp_path, status=1)
    assert f"{bad}: question '0a': expected the answer" in done.stderr
