"""All programs of examples: quick training, evaluation, resume."""

from typing import NamedTuple

import pytest

from tests.helpers.programs import (
    assert_equal_results,
    run,
    run_process,
    stop_and_resume,
)

pytestmark = pytest.mark.one_backend


class Program(NamedTuple):
    """A program, and what a quick training on its synthetic data prints."""

    printed: str
    plot: str
    rate: str = "batches/s"
    options: tuple = ("--epochs", 3)
    equal: tuple = ("batches", "validation_loss")
    # An option with which it cannot resume, and the message.
    changed: tuple = ("--seed", 7)
    message: str = "seed was 1 and is 7"
    next: str = "predict"


PROGRAMS = {
    "answer": Program(
        "128 train, 32 validation, 32 test questions", "answer.png"
    ),
    "caption": Program(
        "64 train captions, 8 validation captions, 8 test captions",
        "attention.png",
        equal=("batches", "validation_loss", "bleu", "relation"),
        message="seed was '1' and is '7'",
    ),
    "classify": Program(
        "128 train, 32 validation, 32 test texts",
        "confusion.png",
        options=("--epochs", 3, "--layers", 1, "--width", 64),
        changed=("--rate", 0.1),
        message="rate was 'None' and is '0.1'",
    ),
    "correct_spelling": Program(
        "test_known.tsv: 12 misspellings of 12 words", "attention.png"
    ),
    "language_model": Program(
        "3,001 train characters, 3,002 tokens\n",
        "attention.png",
        "tokens/s",
        ("--model", "transformer-xl", "--memory", 9, "--steps", 20),
        ("bits_per_character",),
        next="generate",
    ),
    "tag": Program(
        "300 train, 40 validation, 40 test sentences",
        "confusion.png",
        "tokens/s",
        changed=("--unknown-rate", 0.5),
        message="unknown_rate was 0.2 and is 0.5",
    ),
    "transcribe": Program(
        "48 train recordings, 8 validation recordings",
        "alignment.png",
        options=("--epochs", 2),
        equal=("batches", "validation_loss", "character_error_rate"),
    ),
    "translate": Program(
        "400 train pairs, 40 validation pairs, 20 test pairs",
        "attention.png",
        "tokens/s",
        ("--preset", "tiny", "--epochs", 2),
        ("batches", "validation_loss", "bleu"),
    ),
}


@pytest.fixture(scope="module", params=PROGRAMS)
def trained(request, train_once):
    """The name of a program, its folder, and what its training printed."""
    name = request.param
    return name, *train_once(name, *PROGRAMS[name].options)


def test_quick_training_writes_its_files_and_prints_the_next_command(trained):
    name, out, done = trained
    program = PROGRAMS[name]
    for file in ("model.keras", "training.png", program.plot):
        assert (out / file).stat().st_size > 1000
    assert program.printed in done.stdout
    assert f"{name}.py {program.next} --out {out}" in done.stdout
    assert program.rate in done.stderr  # the progress line
    assert not (out / "backup").exists()


def test_evaluation_repeats_the_scores_of_the_training(trained):
    name, out, done = trained
    again = run(name, "evaluate", "--out", out).stdout.splitlines()
    assert any(c.isdigit() for c in again[-1])
    assert {*again} <= {*done.stdout.splitlines()}


def test_resumed_training_equals_an_uninterrupted_one(trained, tmp_path):
    name, out, _ = trained
    program = PROGRAMS[name]
    options = ("--quick", *program.options, "--out", tmp_path)
    other = {"changed": program.changed, "message": program.message}
    stop_and_resume(name, "train", *options, **other)
    assert_equal_results(tmp_path, out, *program.equal)


@pytest.mark.parametrize(
    "trained", ["caption", "tag", "transcribe"], indirect=True
)
def test_a_new_process_loads_the_model(trained, tmp_path):
    name, out, _ = trained
    status, output = run_process(
        name, "predict", "--out", out, stdin="one line\n"
    )
    assert status == 0, output
