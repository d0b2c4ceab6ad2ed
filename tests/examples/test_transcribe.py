"""examples/transcribe.py: predictions, files, bad input."""

import wave

import numpy as np
import pytest

from keras_attn.datasets import encode_morse
from tests.helpers.programs import results, run

pytestmark = pytest.mark.one_backend

TEXTS = [f"{first}{second}" for first in "ETAN" for second in "IMSO"] * 4


def write_wav(path, samples, rate=8000):
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, rate, 0, "NONE", ""))
        file.writeframes(samples.astype("<i2").tobytes())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """WAV files, some of which are too short; the second line is bad."""
    path = tmp_path_factory.mktemp("data")
    lines = ["missing\tABC"]
    for number, text in enumerate(TEXTS):
        options = {"wpm": 25, "snr": 10.0, "seed": number}
        write_wav(path / f"{number}.wav", encode_morse(text, **options).samples)
        lines.insert(number and number + 1, f"{number}\t{text}\tann")
    for count in range(50, 53):
        write_wav(path / f"short{count}.wav", np.arange(count))
        lines.append(f"short{count}\tSOS")
    (path / "transcripts.tsv").write_text("\n".join(lines), "utf-8")
    return path


@pytest.fixture(scope="module")
def trained(folder, tmp_path_factory):
    """The options of an uninterrupted training, its folder and its output."""
    options = ("train", "--data", folder, "--quick", "--epochs", 2)
    out = tmp_path_factory.mktemp("transcribe")
    return options, out, run("transcribe", *options, "--out", out)


def test_quick_training_on_synthetic_digits(tmp_path):
    options = ("--quick", "--audio", "digits", "--out", tmp_path)
    done = run("transcribe", "train", *options)
    rate = results(tmp_path)["character_error_rate"]
    assert f"character error rate {rate:.2%} of 8 recordings" in done.stdout
    assert "word error rate" in done.stdout
    command = done.stdout.split("transcribe.py ")[-1].split()
    assert run("transcribe", *command).stdout.startswith(f"{command[-1]}\t")


def test_prediction_from_a_folder_and_from_typed_names(trained, tmp_path):
    _, out, _ = trained
    paths = [tmp_path / f"{name}.wav" for name in "ab"]
    for path in paths:
        write_wav(path, encode_morse("SET").samples)
    predict = ("predict", "--out", out)
    found = run("transcribe", *predict, "--input", tmp_path).stdout
    assert [line.split("\t")[0] for line in found.splitlines()] == list(
        map(str, paths)
    )
    typed = run("transcribe", *predict, stdin=f"nowhere.wav\n{paths[1]}\n")
    assert typed.stdout == found.splitlines()[1] + "\n"
    assert "nowhere.wav" in typed.stderr
    write_wav(tmp_path / "c.wav", encode_morse("SET").samples, rate=16000)
    again = run("transcribe", *predict, "--input", tmp_path, status=1)
    assert "c.wav must have 8,000 Hz" in again.stderr


def test_recordings_too_short_for_their_texts_keep_the_loss_finite(trained):
    assert np.isfinite(results(trained[1])["validation_loss"])


def test_bad_lines_are_reported_and_counted(trained, folder, tmp_path):
    options, _, done = trained
    where = f"{folder / 'transcripts.tsv'}, line 2: expected"
    assert where in done.stderr and "Skipped 1 bad line." in done.stderr
    strict = (*options, "--strict", "--out", tmp_path)
    assert where in run("transcribe", *strict, status=1).stderr
