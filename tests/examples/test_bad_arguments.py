"""Messages of the example programs for bad options and missing files."""

import pytest

from tests.helpers.programs import ROOT, run

pytestmark = pytest.mark.one_backend

PROGRAMS = sorted(path.stem for path in (ROOT / "examples").glob("*.py"))
# A program, its arguments, the message, and the exit status.
BAD = [
    ("classify", ["train", "--data", "missing.csv"], "missing.csv: no such"),
    ("classify", ["train", "--model", "nowhere"], "must be a folder with"),
    ("caption", ["train", "--data", "missing"], "missing"),
    ("compare_seq2seq", ["evaluate"], "test.tsv: no such file"),
    ("language_model", ["train", "--memory", "9"], "`--memory` must be at"),
    ("language_model", ["train", "--data", "missing.txt"], "no such file"),
    ("language_model", ["generate"], "has no model"),
    ("transcribe", ["train", "--data", "missing"], "missing"),
    ("translate", ["train", "--data", "missing.tsv"], "missing.tsv"),
    *(
        (program, ["predict"], "has no model")
        for program in PROGRAMS
        if program not in ("chat", "compare_seq2seq", "language_model")
    ),
]


@pytest.mark.parametrize("program, arguments, message", BAD)
def test_bad_arguments(program, arguments, message, tmp_path):
    done = run(program, *arguments, "--out", tmp_path, status=1)
    assert message in done.stderr
    assert done.stderr.startswith(f"{ROOT}/examples/{program}.py: ")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("program", PROGRAMS)
def test_unknown_options_are_named(program):
    done = run(program, "train", "--wdith", 8, status=2)
    assert "unrecognized arguments: --wdith" in done.stderr
    done = run(program, "train", "--backend", "theano", status=2)
    assert "invalid choice: 'theano'" in done.stderr
