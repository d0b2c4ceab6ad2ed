"""The tutorial on masks and positions."""

import json
import runpy

import keras
import masks_settings
import numpy as np
import packed_rows
import pytest
from mask_plots import draw_batches, draw_levels, draw_tables

import keras_attn
import keras_attn.layers as ours
from tests.tutorials.programs import complaint, printed, runner

pytestmark = pytest.mark.one_backend("torch")

run = runner("masks", masks_settings.Settings)
SENTENCES = [[3, 4, 5], [6, 7], [8, 9, 1, 2], [5]]


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """A quick run: variables, printed lines and results."""
    folder, found = tmp_path_factory.mktemp("masks"), {}
    original = runpy.run_path

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            runpy, "run_path", lambda *a, **k: found.update(original(*a, **k))
        )
        said = printed(run, QUICK=1, OUT=folder)
    return found, said, json.loads((folder / "results.json").read_text("utf-8"))


def test_quick_run_shows_that_padding_does_not_change_results(ran):
    _, said, results = ran
    moved = results["alone and in a batch"]
    assert [*moved] == ["right", "left", "right, no mask"]
    assert max(moved["right"], moved["left"]) < 1e-5
    assert moved["right, no mask"] > 1e-2
    assert results["the mask survives"]["keras_attn"]
    assert [*results["moved"]] == [*results["another order"]]
    assert "not one bit changed" in said and "What to try next" in said


def test_keras_handles_masks_as_described(ran):
    found, _, results = ran
    assert not results["the mask survives"]["keras"]
    for layers, leaks in ((keras.layers, ["second_look"]), (ours, [])):
        model = found["TwoLooks"](layers.MultiHeadAttention)
        report = keras_attn.doctor(model, found["first"].ids[1:3])
        assert report.leaks == leaks


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("window", [None, 2])
@pytest.mark.parametrize("packed", [False, True])
def test_visibility_rule_matches_a_loop(ran, causal, window, packed):
    sees = ran[0]["sees"]
    p = np.array([-1, 0, 1, -1, 0, 1, 2] if packed else [-1, 0, 1, -1, 2, 3, 4])
    segments = np.array([0, 1, 1, 0, 2, 2, 2]) if packed else None
    found = sees(p, causal=causal, window=window, segments=segments)
    for t, s in np.ndindex(7, 7):
        expected = p[t] >= 0 and p[s] >= 0
        expected &= not causal or p[t] >= p[s]
        expected &= window is None or abs(p[t] - p[s]) < window
        expected &= segments is None or segments[t] == segments[s]
        assert found[t, s] == expected


def test_answers_to_the_exercises(ran):
    sees, bucket = ran[0]["sees"], ran[0]["bucket"]
    assert sees(np.array([-1, 0, 1, -1, 2]), causal=True).sum() == 6
    packed = np.array([0, 1, 0, 1, 2]), np.array([1, 1, 2, 2, 2])
    assert sees(packed[0], causal=True, segments=packed[1]).sum() == 9
    p = np.arange(9)
    ahead = (p[None] >= p[:, None]) & (p[None] - p[:, None] < 3)
    reach = np.linalg.matrix_power(ahead.astype(int), 3)[0] > 0
    assert np.flatnonzero(reach).tolist() == list(range(7))
    for slope, far in ((1 / 2, 10), (1 / 256, 1179)):
        assert np.exp(-slope * far) < 0.01 < np.exp(-slope * (far - 1))
    assert bucket(np.array([-7, 7, -8, 500])).tolist() == [7, 23, 8, 31]


@pytest.mark.parametrize(
    "values, answer",
    [
        ({"WINDOW": "0"}, "WINDOW must be a positive number"),
        ({"WINDOW": "13"}, "WINDOW must be at most 12"),
        ({"SHIFT": "51"}, "SHIFT must be at most 50"),
    ],
)
def test_invalid_input_exits_with_one_line_and_status_2(
    values, answer, monkeypatch, capsys
):
    assert answer in complaint(run, monkeypatch, capsys, **values)


@pytest.mark.parametrize("side", ["right", "left"])
def test_padded_rows_have_one_sentence_each(side):
    rows = packed_rows.padded(SENTENCES, 5, side)
    assert rows.ids.shape == rows.segments.shape == (4, 5)
    for row, sentence in enumerate(SENTENCES):
        gap = [0] * (5 - len(sentence))
        expected = sentence + gap if side == "right" else gap + sentence
        assert rows.ids[row].tolist() == expected
        assert rows.there[row].tolist() == [i > 0 for i in expected]
        assert rows.ids[rows.places[row]].tolist() == sentence


def test_packed_rows_keep_order_and_sentence_ids():
    rows = packed_rows.packed(SENTENCES, 5)
    assert rows.ids.tolist() == [[3, 4, 5, 6, 7], [8, 9, 1, 2, 5]]
    assert rows.segments.tolist() == [[1, 1, 1, 2, 2], [1, 1, 1, 1, 2]]
    wide = packed_rows.packed(SENTENCES, 6)
    assert wide.ids.tolist() == [[3, 4, 5, 6, 7, 0], [8, 9, 1, 2, 5, 0]]
    assert wide.segments[:, -1].tolist() == [0, 0]
    for sentence, place in zip(SENTENCES, wide.places, strict=True):
        assert wide.ids[place].tolist() == sentence


@pytest.mark.parametrize("layout", [packed_rows.padded, packed_rows.packed])
def test_too_long_sentence_raises(layout):
    with pytest.raises(ValueError, match=r"at least 4.*Received: length=3"):
        layout(SENTENCES, 3)


def test_plots_are_labeled():
    ids = np.array([[1, 2, 0]])
    figure = draw_batches({"b": (ids, np.array([[0, 1, -1]]))}, ["", "x", "y"])
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert texts == ["x 0", "y 1", "-1"]
    bars = draw_levels({"one": {"a": 0.0, "b": 2.0}}, "moved").axes[0].patches
    assert [bar.get_height() for bar in bars] == [1e-9, 2.0]
    table = np.random.default_rng(0).normal(size=(30, 4))
    panels = draw_tables({"t": table}).axes
    curve = panels[2].lines[1].get_ydata()  # from position 10
    np.testing.assert_allclose(curve, table[10:] @ table[10])
