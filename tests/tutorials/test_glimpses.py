"""The glimpse tutorial: a quick run, its files, saved model, invalid input."""

import json

import keras
import numpy as np
import pytest
from glimpses_settings import Settings

from tests.tutorials.programs import complaint, printed, runner

pytestmark = pytest.mark.one_backend("jax")

run = runner("glimpses", Settings)


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """The folder of a quick run, and its printed output."""
    folder = tmp_path_factory.mktemp("glimpses")
    return folder, printed(run, QUICK=1, OUT=folder)


def test_quick_run_prints_results_and_next_steps(quick):
    folder, said = quick
    results = json.loads((folder / "results.json").read_text("utf-8"))
    assert "1,198 digits to train on, 200 to validate, 399 to test" in said
    assert results["settings"]["glimpses"] == "2"
    for name in ("chosen", "random"):
        assert len(results["accuracy"][name]) == 2
        assert np.isfinite(results["curves"][name]["loss"]).all()
    assert not any((folder / "backup").glob("*/*.npz"))
    assert (folder / "paths.png").stat().st_size > 1000
    assert f"MODEL={folder}" in said and "What to try next" in said


@pytest.mark.parametrize("suffix", [".npy", ".png"])
def test_saved_model_reads_a_file(quick, suffix, tmp_path, monkeypatch, capsys):
    canvases = np.load(quick[0] / "canvases.npy")[:1]
    path = tmp_path / f"canvas{suffix}"
    if suffix == ".npy":
        np.save(path, canvases)
    else:
        from matplotlib.image import imsave

        canvases = np.round(canvases * 255).astype("uint8")
        imsave(path, canvases[0], cmap="gray", vmin=0, vmax=255)
        canvases = canvases / np.float32(255)
    with pytest.raises(SystemExit) as leaving:
        run(monkeypatch, MODEL=quick[0], INPUT=path, OUT=tmp_path / "out")
    assert leaving.value.code == 0
    model = keras.saving.load_model(quick[0] / "model.keras", compile=False)
    seen = model.predict(canvases[..., None], verbose=0)
    guesses = seen["logits"].argmax(-1)[0]
    said = capsys.readouterr().out.splitlines()[0]
    assert said.startswith(f"0: {guesses[-1]} (")
    assert said.endswith(f"look by look {' '.join(map(str, guesses))}")
    assert (tmp_path / "out" / "looks.png").stat().st_size > 1000


@pytest.mark.parametrize(
    "values, answer",
    [
        ({"DATA": "nowhere.npz"}, "DATA must be an .npz file"),
        ({"GLIMPSES": "1"}, "GLIMPSES must be at least 2"),
        ({"SIDE": "20"}, "SIDE must be at least 32"),
        ({"STEPS": "0"}, "STEPS must be a positive number"),
        ({"MODEL": "nowhere"}, "MODEL must be a folder with"),
    ],
)
def test_invalid_input_exits_with_one_line_and_status_2(
    values, answer, monkeypatch, capsys
):
    assert answer in complaint(run, monkeypatch, capsys, **values)


@pytest.mark.parametrize(
    "stored, answer",
    [
        (None, "INPUT must name a .npy or .png file"),
        (np.zeros((2, 49, 9)), "pictures of at most 48x48 pixels"),
        (np.zeros(5), "pictures of at most 48x48 pixels"),
        (np.full((9, 9), 1.5), "whole numbers from 0 to 255, or others from"),
        (np.full((9, 9), np.nan), "whole numbers from 0 to 255, or others"),
        ("text", "INPUT must be a .npy or .png file"),
    ],
)
def test_invalid_picture_is_an_error(
    quick, stored, answer, tmp_path, monkeypatch, capsys
):
    values = {"MODEL": quick[0], "OUT": tmp_path}
    if stored is not None:
        values["INPUT"] = tmp_path / "input.npy"
        if isinstance(stored, str):
            values["INPUT"].write_text(stored, "utf-8")
        else:
            np.save(values["INPUT"], stored)
    assert answer in complaint(run, monkeypatch, capsys, **values)
