"""examples/answer.py: train, predict, evaluate, resume, bad input."""

import json

import pytest

from tests.examples.programs import (
    assert_equal_results,
    results,
    run,
    stop_and_resume,
)

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


@pytest.mark.parametrize("kind", ["squad", "restaurants8k"])
def test_quick_training_on_synthetic_data(kind, tmp_path):
    options = ("--quick", "--format", kind, "--out", tmp_path)
    done = run("answer", "train", *options)
    assert "128 train, 32 validation, 32 test questions" in done.stdout
    assert f"answer.py predict --out {tmp_path}" in done.stdout
    assert "batches/s" in done.stderr
    for name in ("model.keras", "training.png", "answer.png"):
        assert (tmp_path / name).stat().st_size > 1000
    scores = results(tmp_path)["scores"]
    assert scores["all"]["questions"] == 32
    assert not (tmp_path / "backup").exists()


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


def test_evaluation_repeats_the_scores_of_the_training(trained):
    out, done = trained
    scores = done.stdout[done.stdout.index("all: ") :].split("\n\n")[0]
    assert run("answer", "evaluate", "--out", out).stdout == scores + "\n"


def test_resumed_training_equals_an_uninterrupted_one(
    trained, options, tmp_path
):
    options = ("train", *options, "--out", tmp_path)
    other = {"changed": ("--seed", 7), "message": "seed was 1 and is 7"}
    stop_and_resume("answer", *options, **other)
    names = "batches", "validation_loss"
    assert_equal_results(tmp_path, trained[0], *names)


def test_bad_input_is_reported(options, tmp_path):
    bad = tmp_path / "bad.json"
    text = options[1].read_text("utf-8").replace("Oslo", "Paris", 1)
    bad.write_text(text, "utf-8")
    done = run("answer", "train", "--data", bad, "--out", tmp_path, status=1)
    assert f"{bad}: question '0a': expected the answer" in done.stderr
