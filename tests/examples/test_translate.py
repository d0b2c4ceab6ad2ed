"""examples/translate.py: predictions, files, bad input."""

import signal

import pytest

from tests.examples.test_programs import PROGRAMS
from tests.helpers.programs import results, run, stop_after_checkpoint

pytestmark = pytest.mark.one_backend

PAIRS = [
    (f"the {size} {animal} {verb}", f"el {tier} {gross} {tut}")
    for size, gross in (("big", "grande"), ("small", "pequeño"))
    for animal, tier in (("dog", "perro"), ("cat", "gato"), ("bird", "pájaro"))
    for verb, tut in (("eats", "come"), ("sleeps", "duerme"), ("runs", "corre"))
] * 3


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "pairs.tsv"
    lines = [
        f"{source} {number}\t{target} {number}"
        for number, (source, target) in enumerate(PAIRS * 2)
    ]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def test_prediction_from_a_file_and_from_standard_input(train_once, tmp_path):
    out, _ = train_once("translate", *PROGRAMS["translate"].options)
    lines = tmp_path / "lines.txt"
    lines.write_text("this cat is large\n\nthe dog eats\n", "utf-8")
    from_file = run("translate", "predict", "--out", out, "--input", lines)
    translations = from_file.stdout.split("\n")[:-1]
    assert len(translations) == 3 and translations[1] == ""
    # The model knows no capital letters.
    typed = "This CAT is large\n\nthe dog eats\n"
    typed = run("translate", "predict", "--out", out, stdin=typed)
    found = typed.stdout.split("\n")[:-1]
    # An untrained model writes until the limit, which depends on the batch.
    for one, other in zip(found, translations[::2], strict=True):
        assert one.startswith(other) or other.startswith(one)


def test_ctrl_c_saves_the_training_and_prints_how_to_resume(pairs, tmp_path):
    options = ("--data", pairs, "--quick", "--preset", "tiny", "--epochs", 6)
    options = (*options, "--out", tmp_path)
    status, output = stop_after_checkpoint(
        "translate", "train", *options, how=signal.SIGINT
    )
    assert status == 130
    assert output.rstrip().endswith("--resume")
    assert not (tmp_path / "model.keras").exists()
    run("translate", "train", *options, "--resume")
    assert results(tmp_path)["batches"] == 6


def test_bad_lines_are_reported_and_counted(pairs, tmp_path):
    bad = tmp_path / "bad.tsv"
    bad.write_text(f"no tab here\n{pairs.read_text('utf-8')}", "utf-8")
    options = ("--data", bad, "--quick", "--preset", "tiny", "--epochs", 1)
    options = (*options, "--out", tmp_path / "out")
    done = run("translate", "train", *options)
    assert f"{bad}, line 1: expected" in done.stderr
    assert "Skipped 1 bad line." in done.stderr
    strict = run("translate", "train", *options, "--strict", status=1)
    assert f"translate.py: {bad}, line 1: expected" in strict.stderr
