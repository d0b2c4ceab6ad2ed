"""The tutorial that implements multi-head attention."""

import json

import keras
import multi_head_settings
import numpy as np
import pytest
import two_places
from grid_plots import draw_grids

from tests.tutorials.programs import complaint, printed, runner

pytestmark = pytest.mark.one_backend("jax")

run = runner("multi_head", multi_head_settings.Settings)


def test_quick_run_matches_the_library(tmp_path):
    said = printed(run, QUICK=1, OUT=tmp_path)
    results = json.loads((tmp_path / "results.json").read_text("utf-8"))
    assert [*results["differences"]] == [
        "self-attention",
        "causal",
        "padding",
        "cross-attention",
        "two key heads",
    ]
    assert 0 < max(results["differences"].values()) < 1e-5
    assert 0 < results["gradient"] < 1e-5
    assert results["kept a token"] == {"2": 32}
    assert str(tmp_path / "results.json") in said
    assert "What to try next" in said


@pytest.mark.parametrize(
    "values, answer",
    [
        ({"STEPS": "none"}, "STEPS must be a positive number"),
        ({"WIDTH": "30"}, "WIDTH must be a multiple of 4"),
    ],
)
def test_invalid_input_exits_with_one_line_and_status_2(
    values, answer, monkeypatch, capsys
):
    assert answer in complaint(run, monkeypatch, capsys, **values)


def test_settings():
    read, whole = multi_head_settings.read, multi_head_settings.is_default
    assert whole(read({}))
    assert whole(read({"ROUNDS": "1", "LONGEST": "64"}))
    assert not whole(read({"QUICK": "1"})) and not whole(read({"STEPS": "3"}))


def test_circles_match_a_loop():
    data = two_places.draw(20, 7, 5, (-2, 3, 0), seed=3)
    assert data.tokens.shape == (20, 7) and data.answers.shape == (20, 7, 3)
    assert set(np.unique(data.tokens)) == set(range(5))
    for tokens, answers in zip(*data, strict=True):
        for position in range(7):
            assert answers[position].tolist() == [
                tokens[(position - 2) % 7],
                tokens[(position + 3) % 7],
                tokens[position],
            ]
    again, other = (two_places.draw(20, 7, 5, (1,), seed=s) for s in (3, 4))
    assert (again.tokens == data.tokens).all()
    assert (other.tokens != data.tokens).any()


def test_attention_mass_by_distance():
    length, distances = 6, (-2, 3)
    weights = np.zeros((2, length, length))
    for position in range(length):
        weights[0, position, (position - 2) % length] = 1
        weights[1, position, (position + 3) % length] = 0.25
        weights[1, position, position] = 0.75
    found = two_places.mass(weights, distances)
    np.testing.assert_allclose(found, [[1, 0], [0, 0.25]])


def test_attention_model_shares_layers():
    model, looker = two_places.learner(6, 5, 2, num_heads=2, width=8)
    ids = two_places.draw(3, 6, 5, (1,)).tokens
    weights = looker.predict_on_batch(ids)
    assert weights.shape == (3, 2, 6, 6)
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)
    assert model.predict_on_batch(ids).shape == (3, 6, 2, 5)
    paths = {weight.path for weight in looker.weights}
    assert paths < {weight.path for weight in model.weights}
    # The number of weights does not depend on the number of heads.
    one = two_places.learner(6, 5, 2, num_heads=1, width=8).model
    assert one.count_params() == model.count_params()


def test_grid_plot():
    table = np.array([[0.0, 1.0, np.nan], [0.5, 0.5, 0.0]])
    figure = draw_grids(
        {"a": table, "b": table.T, "c": table > 0.2},
        rows={"a": ["x", "y"]},
        numbers=True,
        across=2,
    )
    first, second, third, blank = figure.axes
    texts = [text.get_text() for text in first.texts]
    assert texts == ["0.00", "1.00", "×", "0.50", "0.50", "0.00"]
    assert [label.get_text() for label in first.get_yticklabels()] == ["x", "y"]
    assert second.images[0].get_array().shape == (3, 2)
    assert third.get_title() == "c" and not blank.axison


def test_answers_to_the_exercises():
    from keras_attn.layers import MultiHeadAttention

    for heads, width in ((8, 64), (16, 32)):
        layer = MultiHeadAttention(heads, width)
        layer.build((None, 4, 512), (None, 4, 512))
        assert layer.count_params() == 1_050_624
        kernels = [w.shape for w in layer.weights if w.path.endswith("kernel")]
        assert tuple(kernels[0]) == (512, heads, width)
        assert tuple(kernels[-1]) == (heads, width, 512)
    query, key = np.random.default_rng(0).normal(size=(2, 3, 5, 2, 4))
    scores = np.einsum("btnh,bsnh->bnts", query, key)
    for b, n in np.ndindex(3, 2):
        np.testing.assert_allclose(
            scores[b, n], query[b, :, n] @ key[b, :, n].T
        )


def test_one_head_fails_and_two_heads_succeed():
    shares = {}
    distances = (-1, 2)
    train = two_places.draw(300 * 32, 8, 6, distances, seed=1)
    test = two_places.draw(128, 8, 6, distances, seed=2)
    for heads in (1, 2):
        model, _ = two_places.learner(8, 6, 2, heads, 16, seed=1)
        model.compile(
            keras.optimizers.Adam(2e-2),
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        )
        model.fit(train.tokens, train.answers, batch_size=32, verbose=0)
        logits = model.predict(test.tokens, verbose=0)
        shares[heads] = (logits.argmax(-1) == test.answers).mean()
    assert shares[1] < 0.75 and shares[2] > 0.95
