"""examples/translate.py: train, predict, evaluate, resume, bad input."""

import signal

import pytest

from tests.examples.programs import results, run, stop_after_checkpoint

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


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder of a quick training on synthetic pairs, and its output."""
    out = tmp_path_factory.mktemp("translate")
    arguments = ("--quick", "--preset", "tiny", "--epochs", 2, "--out", out)
    return out, run("translate", "train", *arguments)


def test_training_writes_its_files_and_prints_the_next_command(trained):
    out, done = trained
    bleu = results(out)["bleu"]
    for name in ("model.keras", "training.png", "attention.png"):
        assert (out / name).stat().st_size > 1000
    assert f"\nBLEU {bleu:.2f}\n" in done.stdout
    assert "400 train pairs" in done.stdout
    assert f"translate.py predict --out {out}" in done.stdout
    assert "tokens/s" in done.stderr  # the progress line
    assert not (out / "backup").exists()


def test_prediction_from_a_file_and_from_standard_input(trained, tmp_path):
    out, _ = trained
    lines = tmp_path / "lines.txt"
    lines.write_text("this cat is large\n\nthe dog eats\n", "utf-8")
    from_file = run("translate", "predict", "--out", out, "--input", lines)
    translations = from_file.stdout.split("\n")[:-1]
    assert len(translations) == 3 and translations[1] == ""
    typed = run(
        "translate", "predict", "--out", out, stdin=lines.read_text("utf-8")
    )
    found = typed.stdout.split("\n")[:-1]
    # An untrained model writes until the limit, which depends on the batch.
    for one, other in zip(found, translations[::2], strict=True):
        assert one.startswith(other) or other.startswith(one)
    # The model knows no capital letters.
    lines.write_text("This CAT is large\n", "utf-8")
    folded = run("translate", "predict", "--out", out, "--input", lines)
    assert folded.stdout.startswith(translations[0][:20])


def test_evaluation_repeats_the_score_of_the_training(trained, tmp_path):
    out, done = trained
    score = done.stdout.split("\nBLEU ")[1].split()[0]
    again = run("translate", "evaluate", "--out", out)
    assert f"\nBLEU {score}\n" in again.stdout


@pytest.fixture(scope="module")
def whole(pairs, tmp_path_factory):
    """The options and the results of an uninterrupted training."""
    options = ("--data", pairs, "--quick", "--preset", "tiny", "--epochs", 6)
    out = tmp_path_factory.mktemp("whole")
    run("translate", "train", *options, "--out", out)
    return options, results(out)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_resumed_training_equals_an_uninterrupted_one(how, whole, tmp_path):
    options, expected = whole
    options = (*options, "--out", tmp_path)
    status, output = stop_after_checkpoint(
        "translate", "train", *options, how=how
    )
    if how == signal.SIGINT:
        assert status == 130
        assert output.rstrip().endswith("--resume")
    else:
        assert status == -how
    assert not (tmp_path / "model.keras").exists()
    refused = run("translate", "train", *options, status=1)
    assert "continue it with --resume" in refused.stderr
    run("translate", "train", *options, "--resume")
    found = results(tmp_path)
    assert found["batches"] == expected["batches"] == 6
    for name in ("validation_loss", "bleu"):
        assert found[name] == pytest.approx(expected[name], rel=1e-4)


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
