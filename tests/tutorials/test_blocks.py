"""The tutorial on encoder and decoder blocks."""

import json

import blocks_settings
import depth_gradients
import keras
import numpy as np
import pytest
import reversed_digits
from reversed_digits import END, PAD, START, VOCABULARY

from keras_attn.blocks import DecoderBlock, EncoderBlock
from tests.tutorials.programs import complaint, printed, runner

pytestmark = pytest.mark.one_backend("torch")

run = runner("blocks", blocks_settings.Settings)


def test_quick_run_matches_the_library(tmp_path):
    said = printed(run, QUICK=1, OUT=tmp_path)
    results = json.loads((tmp_path / "results.json").read_text("utf-8"))
    kinds = {name.partition(",")[0] for name in results["differences"]}
    assert kinds == {
        *("relu", "gelu", "silu"),
        *("encoder block", "decoder block", "Transformer"),
    }
    assert 0 < max(results["differences"].values()) < 1e-4
    assert [*results["depths"]] == ["pre"]
    assert [len(x) for x in results["depths"]["pre"].values()] == [3] * 4
    assert [*results["right"]] == ["pre, warmup"]
    assert len(results["losses"]["pre, warmup"]) == 2
    assert str(tmp_path / "results.json") in said
    assert "What to try next" in said


@pytest.mark.parametrize(
    "values, answer",
    [
        ({"STEPS": "none"}, "STEPS must be a positive number"),
        ({"WIDTH": "30", "HEADS": "4"}, "WIDTH must be an even multiple"),
        ({"DIGITS": "1"}, "DIGITS must be at least 2"),
    ],
)
def test_invalid_input_exits_with_one_line_and_status_2(
    values, answer, monkeypatch, capsys
):
    assert answer in complaint(run, monkeypatch, capsys, **values)


def test_settings():
    read, whole = blocks_settings.read, blocks_settings.is_default
    assert whole(read({})) and whole(read({"OUT": "elsewhere"}))
    assert not whole(read({"QUICK": "1"})) and not whole(read({"SEED": "2"}))


def test_targets_are_reversed_digits():
    data = reversed_digits.draw(300, 5, seed=1)
    assert all(rows.shape == (300, 6) for rows in data)
    lengths = set()
    for source, reads, says in zip(*data, strict=True):
        digits = source[source > END]
        lengths.add(len(digits))
        gap = [PAD] * (5 - len(digits))
        backwards = digits[::-1].tolist()
        assert source.tolist() == [*digits, END, *gap]
        assert reads.tolist() == [START, *backwards, *gap]
        assert says.tolist() == [*backwards, END, *gap]
        assert reversed_digits.text(source)[::-1] == reversed_digits.text(says)
    assert lengths == {3, 4, 5}
    assert data.sources.max() == VOCABULARY - 1
    again, other = (reversed_digits.draw(300, 5, seed=s) for s in (1, 2))
    assert (again.sources == data.sources).all()
    assert (other.sources != data.sources).any()
    with pytest.raises(ValueError, match="Received: longest=1"):
        reversed_digits.draw(3, 1)


def test_gradients_of_stacked_matrices():
    """y = x A_1 A_2 A_3: all gradients are matrix products."""
    random = np.random.default_rng(0)
    inputs, direction = random.normal(size=(2, 2, 3, 4))
    stack = [keras.layers.Dense(4, use_bias=False) for _ in range(3)]
    for layer in stack:
        layer.build((None, None, 4))
    matrices = [layer.get_weights()[0].astype("float64") for layer in stack]
    found = depth_gradients.measure(stack, inputs, direction)
    streams, back = [inputs], [direction]
    for matrix in matrices:
        streams.append(streams[-1] @ matrix)
    for matrix in reversed(matrices):
        back.insert(0, back[0] @ matrix.T)
    for position in range(4):
        norm = np.linalg.norm(back[position], axis=-1).mean()
        assert found.gradients[position] == pytest.approx(norm, rel=1e-4)
        size = np.sqrt((streams[position] ** 2).mean())
        assert found.sizes[position] == pytest.approx(size, rel=1e-4)
        cosines = [
            a @ b / np.linalg.norm(a) / np.linalg.norm(b)
            for row in streams[position]
            for i, a in enumerate(row)
            for j, b in enumerate(row)
            if i != j
        ]
        assert found.alike[position] == pytest.approx(
            np.mean(cosines), abs=1e-4
        )
        unit = [x / np.linalg.norm(x, axis=-1, keepdims=True) for x in streams]
        kept = (unit[position] * unit[0]).sum(-1).mean()
        assert found.kept[position] == pytest.approx(kept, abs=1e-4)
    for layer, matrix in zip(stack, matrices, strict=True):
        np.testing.assert_array_equal(layer.get_weights()[0], matrix)


def test_answers_to_the_exercises():
    encoder, decoder = (
        kind(num_heads=8, intermediate_dim=2048)
        for kind in (EncoderBlock, DecoderBlock)
    )
    width = (None, None, 512)
    encoder.build(width)
    decoder.build(width, width)

    def count(block, part):
        return sum(
            int(np.prod(weight.shape))
            for weight in block.weights
            if part in weight.path
        )

    assert count(encoder, "self_attention") == 1_050_624
    assert count(encoder, "/feed_forward") == 2_099_712
    assert count(encoder, "norm") == 2048
    more = decoder.count_params() - encoder.count_params()
    assert more == 1_051_648
