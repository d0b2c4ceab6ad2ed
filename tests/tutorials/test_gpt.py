"""The GPT tutorial: quick runs, saved models, invalid input."""

import json

import character_losses
import gpt_plots
import gpt_settings
import keras
import numpy as np
import pytest
from continuation import continued

from keras_attn.decoding import Sampling
from keras_attn.models import GPT
from tests.tutorials.programs import complaint, printed, runner

pytestmark = pytest.mark.one_backend("torch")

run = runner("gpt", gpt_settings.Settings)


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """The folder of a quick run, and its printed output."""
    folder = tmp_path_factory.mktemp("gpt")
    return folder, printed(run, QUICK=1, OUT=folder)


def test_quick_run_prints_results_and_next_steps(quick):
    folder, said = quick
    results = json.loads((folder / "results.json").read_text("utf-8"))
    assert results["steps"] == 6
    assert len(results["counting"]) == 7
    assert 0 < results["loss"] < 6
    assert [*results["knobs"]] == ["temperature", "top-p, at τ = 1"]
    assert not (folder / "backup").exists()
    assert f"MODEL={folder}" in said and "What to try next" in said
    assert "largest difference" in said


def test_saved_model_continues_texts(quick, tmp_path, monkeypatch, capsys):
    lines = tmp_path / "lines.txt"
    lines.write_text("The old\n\nMy sister", encoding="utf-8")
    with pytest.raises(SystemExit) as leaving:
        run(monkeypatch, MODEL=quick[0], INPUT=lines)
    assert leaving.value.code == 0
    said = capsys.readouterr().out
    assert said.startswith("The old") and "\n\nMy sister" in said
    assert len(said) == len("The old" + "My sister") + 2 * 200 + 4


def test_user_text(tmp_path, monkeypatch, capsys):
    text = tmp_path / "text.txt"
    text.write_text("To be, or not to be: that is é.\n" * 40, encoding="utf-8")
    out = tmp_path / "out"
    run(monkeypatch, QUICK=1, DATA=text, ROTARY=0, OUT=out)
    said = capsys.readouterr().out
    assert "1,152 characters to learn from, 128 kept" in said
    assert json.loads((out / "results.json").read_text("utf-8"))["loss"] > 0


@pytest.mark.parametrize(
    "values, answer",
    [
        ({"DATA": "nowhere"}, "There is no file nowhere."),
        ({"DATA": __file__, "CONTEXT": "99999"}, "more than ten times CONTEXT"),
        ({"WIDTH": "20", "HEADS": "4"}, "WIDTH must be a multiple of twice"),
        ({"CONTEXT": "4"}, "CONTEXT must be at least 8"),
        ({"STEPS": "0"}, "STEPS must be a positive number"),
        ({"MODEL": "nowhere"}, "MODEL must be a folder with"),
    ],
)
def test_invalid_input_exits_with_one_line_and_status_2(
    values, answer, monkeypatch, capsys
):
    said = complaint(run, monkeypatch, capsys, **values)
    assert answer in said


def small():
    keras.utils.set_random_seed(1)
    return GPT(
        7,
        num_layers=1,
        num_heads=1,
        hidden_dim=8,
        max_sequence_length=8,
        pad_id=None,
        start_id=None,
        end_id=None,
    )


def test_character_losses_match_a_loop():
    model = small()
    ids = np.random.default_rng(0).integers(0, 7, 30)
    found = character_losses.character_losses(model, ids, 8, batch_size=3)
    half = character_losses.overlapping_losses(model, ids, 8, batch_size=2)
    assert found.shape == (29,) and len(half) % 4 == 0
    for position in range(29):
        for start, losses, index in (
            (position // 8 * 8, found, position),
            # The block with this position in its second half.
            (position // 4 * 4 - 4, half, position - 4),
        ):
            if start < 0 or index >= len(losses):
                continue
            logits = model(ids[None, start : position + 1])
            logs = keras.ops.convert_to_numpy(keras.ops.log_softmax(logits))
            expected = -logs[0, -1, ids[position + 1]]
            assert losses[index] == pytest.approx(expected, abs=1e-5)


def test_generation_continues_beyond_the_context():
    model = small()
    prompts = [np.array([1, 2, 3, 4, 5, 6, 1, 2, 3, 4]), np.array([2])]
    ids = continued(model, prompts, 11, 8, Sampling(top_k=1, seed=0))
    assert ids.shape == (2, 11)
    for prompt, row in zip(prompts, ids, strict=True):
        whole = [*prompt]
        for start in range(0, 11, 4):
            read = whole[-4:]
            for token in row[start : start + 4]:
                logits = model(np.array([read]))
                assert int(keras.ops.argmax(logits[0, -1])) == token
                read = [*read, int(token)]
            whole += row[start : start + 4].tolist()


def test_top_p_matches_the_library():
    random = np.random.default_rng(0)
    p = random.dirichlet(np.full(9, 0.4), size=50)
    kept = gpt_plots.in_nucleus(p, 0.8)
    for row, keep in zip(p, kept, strict=True):
        order = np.argsort(-row)
        count = int(np.searchsorted(np.cumsum(row[order]), 0.8) + 1)
        assert set(np.flatnonzero(keep)) == set(order[:count])
