"""The speech recognition program: a quick run, its files, invalid input."""

import json

import numpy as np
import pytest
import sound_files
import speech_settings

from tests.tutorials.programs import complaint, printed, runner

pytestmark = pytest.mark.one_backend("torch")

run = runner("speech", speech_settings.Settings)
SPEAKERS = "ann", "bob", "cleo"


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    """A folder of digits of three speakers, with one tone per digit."""
    folder = tmp_path_factory.mktemp("digits")
    times = np.arange(1600) / 8000
    for number, speaker in enumerate(SPEAKERS):
        for digit in range(10):
            pitch = 300 + 100 * digit + 20 * number
            sound_files.write_wav(
                folder / f"{digit}_{speaker}_0.wav",
                np.sin(2 * np.pi * pitch * times),
            )
    return folder


@pytest.fixture(scope="module")
def listened(recordings, tmp_path_factory):
    """The folder of a run with one held-out speaker, and its printed output."""
    out = tmp_path_factory.mktemp("speech")
    return out, printed(
        run, QUICK=1, DATA=recordings, SPEAKER="bob", SOUNDS=16, OUT=out
    )


def test_run_on_recordings_holds_out_one_speaker(listened):
    out, said = listened
    results = json.loads((out / "results.json").read_text("utf-8"))
    found = results["bob"]
    assert set(SPEAKERS) & set(results) == {"bob"}
    assert found["tests"] == 10 and 0 <= found["right"] <= 1
    assert "Without bob" in said and "What to try next" in said
    for name in ("bob/model.keras", "bob/sound.json", "alignment.png"):
        assert (out / name).stat().st_size > 100
    assert not (out / "bob" / "backup").exists()


def test_saved_model_transcribes_a_folder(
    listened, recordings, monkeypatch, capsys
):
    with pytest.raises(SystemExit) as leaving:
        run(monkeypatch, MODEL=listened[0] / "bob", INPUT=recordings)
    assert leaving.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    names = [line.split("\t")[0] for line in lines]
    assert len(set(names)) == 30 and "7_cleo_0" in names


@pytest.mark.parametrize(
    "values, answer",
    [
        ({"DATA": "nowhere"}, "nowhere"),
        ({"EPOCHS": "0"}, "EPOCHS must be a positive number"),
        ({"MODEL": "nowhere"}, "MODEL must be a folder with"),
    ],
)
def test_invalid_input_exits_with_one_line_and_status_2(
    values, answer, monkeypatch, capsys
):
    said = complaint(run, monkeypatch, capsys, **values)
    assert answer in said


def test_unknown_speaker_is_an_error(recordings, tmp_path, monkeypatch, capsys):
    with pytest.raises(SystemExit):
        run(monkeypatch, DATA=recordings, SPEAKER="dan", OUT=tmp_path)
    assert "SPEAKER must be one of ann, bob, cleo" in capsys.readouterr().err
