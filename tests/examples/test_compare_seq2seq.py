"""examples/compare_seq2seq.py: train, evaluate, resume, bad input."""

import signal

import pytest

from tests.helpers.programs import results, run, stop_after_checkpoint

pytestmark = pytest.mark.one_backend

PROGRAM = "compare_seq2seq"
PAIRS = [
    (f"the {size} {animal} {verb} {n}", f"el {tier} {gross} {tut} {n}")
    for size, gross in (("big", "grande"), ("small", "pequeño"))
    for animal, tier in (("dog", "perro"), ("cat", "gato"), ("bird", "pájaro"))
    for verb, tut in (("eats", "come"), ("sleeps", "duerme"), ("runs", "corre"))
    for n in range(12)
]
TWO_EPOCHS = ("--quick", "--models", "plain", "luong", "--epochs", 2)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """A file of pairs, the second line of which is bad."""
    path = tmp_path_factory.mktemp("data") / "pairs.tsv"
    lines = ["\t".join(pair) for pair in PAIRS]
    lines.insert(1, "no tab here")
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


@pytest.fixture(scope="module")
def trained(pairs, tmp_path_factory):
    """The folder of an uninterrupted training, and its output."""
    out = tmp_path_factory.mktemp("compare")
    options = ("--data", pairs, *TWO_EPOCHS, "--out", out)
    return out, run(PROGRAM, "train", *options)


def test_quick_training_writes_its_files(tmp_path):
    done = run(PROGRAM, "train", "--quick", "--out", tmp_path)
    found = results(tmp_path)
    sizes = [found[name]["parameters"] for name in ("bahdanau", "transformer")]
    assert max(sizes) < 1.03 * min(sizes)
    assert "150 train pairs, 20 validation pairs, 12 test pairs" in done.stdout
    for name in ("bahdanau", "transformer"):
        assert f"{name}: width" in done.stdout
        for file in ("model.keras", "training.png", "attention.png"):
            assert (tmp_path / name / file).stat().st_size > 1000
        assert not (tmp_path / name / "backup").exists()
    assert (tmp_path / "bleu.png").stat().st_size > 1000
    assert "tokens/s" in done.stderr


def test_a_trained_model_can_translate(trained, tmp_path):
    _, done = trained
    command = done.stdout.split("translate.py ")[-1].split()
    assert command[:2] == ["predict", "--out"]
    lines = tmp_path / "lines.txt"
    lines.write_text("the dog eats 1\n\n", "utf-8")
    found = run("translate", *command, "--input", lines).stdout
    assert found.count("\n") == 2 and found.endswith("\n\n")


def test_evaluation_repeats_the_scores_of_the_training(trained):
    out, done = trained
    table = run(PROGRAM, "evaluate", "--out", out).stdout
    assert table.startswith("BLEU by words") and table.count("\n") == 3
    assert table in done.stdout
    for name in ("plain", "luong"):
        assert f"{results(out)[name]['bleu']:.2f}" in table


def test_bad_lines_are_reported_and_counted(trained, pairs, tmp_path):
    _, done = trained
    assert f"{pairs}, line 2: expected" in done.stderr
    assert "Skipped 1 bad line." in done.stderr
    options = ("--data", pairs, "--quick", "--strict", "--out", tmp_path)
    strict = run(PROGRAM, "train", *options, status=1)
    assert f"{PROGRAM}.py: {pairs}, line 2: expected" in strict.stderr


def test_resumed_training_equals_an_uninterrupted_one(trained, pairs, tmp_path):
    # The first --out is where the checkpoint is awaited, that of the second
    # model; the last one counts.
    options = ("--data", pairs, *TWO_EPOCHS, "--out", tmp_path)
    wait = ("--out", tmp_path / "luong")
    status, _ = stop_after_checkpoint(PROGRAM, "train", *wait, *options)
    assert status == -signal.SIGKILL
    assert (tmp_path / "plain" / "model.keras").is_file()
    refused = run(PROGRAM, "train", *options, status=1)
    assert "continue it with --resume" in refused.stderr
    run(PROGRAM, "train", *options, "--resume")
    expected, found = results(trained[0]), results(tmp_path)
    for name in ("plain", "luong"):
        for score in ("validation_loss", "bleu"):
            value = pytest.approx(expected[name][score], rel=1e-4)
            assert found[name][score] == value
