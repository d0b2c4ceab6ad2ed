"""RISE: masks, expectations by enumeration, and invalid arguments."""

import itertools

import keras
import numpy as np
import pytest

from keras_attn.explain import FrameMasks, PatchMasks, TokenMasks, rise
from keras_attn.explain.perturbations import _upsampled
from keras_attn.models import Bert, SequenceClassifier
from tests.helpers.contract import randomize

MASK = 1


def by_enumeration(function, ids, masks):
    """E[f(M(x)) M] / p over all masks, each with its probability."""
    p, total = masks.probability, 0.0
    for seen in itertools.product((0.0, 1.0), repeat=len(ids)):
        seen = np.array([seen], "float32")
        probability = (p**seen * (1 - p) ** (1 - seen)).prod()
        score = np.asarray(function(masks.apply(ids, seen)))[0]
        total = total + probability * np.multiply.outer(score, seen[0])
    return total / p


@pytest.mark.parametrize("probability", [0.5, 0.8])
def test_converges_to_the_expectation(probability):
    draw = np.random.default_rng(0)
    table = draw.random((6, 9))
    pairs = draw.random((9, 9))

    def function(ids):
        """A score per token and position, plus one per pair of neighbors."""
        alone = table[np.arange(6), ids].sum(axis=1)
        return alone + pairs[ids[:, 1:], ids[:, :-1]].sum(axis=1)

    ids = np.array([5, 7, 2, 8, 3, 0])
    masks = TokenMasks(MASK, probability)
    expected = by_enumeration(function, ids, masks)
    errors = [
        np.abs(
            rise(function, ids, masks, number, 256, seed=2, verbose=0)
            - expected
        ).max()
        for number in (100, 10_000)
    ]
    # Scores of about 10, each visible or not: 10 / sqrt(N p) / 2.
    assert errors[1] < 0.25 < 10 * errors[0]


def test_sequence_classifier():
    encoder = Bert(
        9,
        num_layers=1,
        num_heads=2,
        hidden_dim=8,
        intermediate_dim=16,
        max_sequence_length=8,
    )
    model = SequenceClassifier(encoder, 3)
    randomize(model)
    ids = np.array([2, 5, 6, 7, 3], "int32")
    masks = TokenMasks(MASK, keep_ids=(2, 3))

    def probabilities(ids):
        logits = model(ids.astype("int32"), training=False)
        return keras.ops.convert_to_numpy(keras.ops.softmax(logits))

    found = rise(probabilities, ids, masks, 4000, 500, verbose=0)
    assert found.shape == (3, 5)
    expected = by_enumeration(probabilities, ids, masks)
    np.testing.assert_allclose(found, expected, atol=0.05)
    # The model itself returns logits.
    logits = rise(model, ids, masks, 8, 3, verbose=0)
    by_hand = rise(
        lambda ids: keras.ops.convert_to_numpy(model(ids, training=False)),
        ids,
        masks,
        8,
        verbose=0,
    )
    np.testing.assert_allclose(logits, by_hand, atol=1e-5)


def by_masks(function, inputs, masks, drawn, probabilities):
    """E[f(M(x)) M] / p over given masks and their probabilities."""
    scores = np.asarray(function(masks.apply(inputs, drawn)))
    weighted = scores * probabilities.reshape((-1,) + (1,) * (scores.ndim - 1))
    return np.tensordot(weighted, drawn, (0, 0)) / masks.probability


def every_mask(masks, size):
    """All binary grids at all shifts, and their probabilities."""
    axes, grid, step = len(size), masks.grid, []
    drawn, probabilities = [], []
    cells = [min(c, s) for c, s in zip(grid, size, strict=True)]
    step = [-(-s // c) for s, c in zip(size, cells, strict=True)]
    p = masks.probability
    for seen in itertools.product((0.0, 1.0), repeat=int(np.prod(cells))):
        whole = np.array(seen, "float32").reshape(1, *cells)
        probability = np.prod(np.where(np.array(seen) > 0, p, 1 - p))
        for shifts in itertools.product(*map(range, step)):
            mask = whole
            for axis in range(axes):
                mask = _upsampled(
                    mask,
                    axis + 1,
                    cells[axis],
                    size[axis],
                    step[axis],
                    np.array([shifts[axis]]),
                )
            drawn.append(mask[0])
            probabilities.append(probability / np.prod(step))
    return np.stack(drawn), np.array(probabilities)


def corner(images):
    """The brightness of the first corner, if the last one is dark."""
    return images[:, :2, :2].mean(axis=(1, 2)) * (1 - images[:, -1, -1])


def loud(frames):
    """Two outputs for each of two bands, from the loudness of both halves."""
    first, second = frames[:, :4].mean(axis=1), frames[:, 4:].mean(axis=1)
    return np.stack([np.tanh(second - first), first * second], axis=1)


@pytest.mark.parametrize(
    "masks, inputs, function",
    [
        (PatchMasks(2, 0.4), np.random.default_rng(1).random((5, 6)), corner),
        (FrameMasks(3), np.random.default_rng(2).random((8, 2)), loud),
    ],
    ids=["images", "frames"],
)
def test_soft_masks_converge_to_the_expectation(masks, inputs, function):
    drawn, probabilities = every_mask(masks, inputs.shape[: masks.axes])
    assert probabilities.sum() == pytest.approx(1)
    expected = by_masks(function, inputs, masks, drawn, probabilities)
    found = rise(function, inputs, masks, 30_000, 4096, seed=1, verbose=0)
    assert found.shape == expected.shape
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found, expected, atol=0.03 * scale)
    assert np.ptp(expected) > 0.2 * scale  # the map is not flat


def test_outputs_of_a_sequence():
    """Each output of shape (T, V) has its own map."""
    ids = np.array([5, 6, 7])

    def copies(ids):
        return np.eye(9)[ids]  # step t predicts the token at position t

    found = rise(copies, ids, TokenMasks(MASK), 4000, 512, verbose=0)
    assert found.shape == (3, 9, 3)
    for step in range(3):
        of_token = found[step, ids[step]]
        assert of_token.argmax() == step
        # The own token is visible in all masks that count, others in half.
        np.testing.assert_allclose(
            of_token, np.where(np.arange(3) == step, 1, 0.5), atol=0.05
        )


@pytest.mark.parametrize("batch_size", [48, 64, 100, 1000])
def test_batch_size(batch_size):
    sizes = []

    def function(ids):
        sizes.append(len(ids))
        return ids.sum(axis=1)

    rise(function, np.array([5, 6]), TokenMasks(MASK), 210, batch_size, 0, 0)
    whole, rest = divmod(210, batch_size)
    assert sizes == [batch_size] * whole + [rest] * (rest > 0)


def test_only_the_seed_determines_the_map(capsys):
    image = np.random.default_rng(0).random((9, 7, 2)).astype("float32")

    def function(images):
        return images.reshape(len(images), -1)[:, ::13]

    def found(**kwargs):
        return rise(function, image, PatchMasks(3), 70, **kwargs)

    first = found(batch_size=7, seed=1, verbose=0)
    assert first.shape == (10, 9, 7)
    np.testing.assert_allclose(
        found(batch_size=70, seed=1, verbose=0), first, atol=1e-5
    )
    assert np.abs(found(seed=2, verbose=0) - first).max() > 0.01
    assert capsys.readouterr().err == ""
    found(seed=1)
    assert "70 of 70 masks" in capsys.readouterr().err


@pytest.mark.parametrize("grid, size", [(2, 8), (7, 7), (3, 10)])
def test_masks_are_bilinearly_upsampled_grids(grid, size):
    """Compared with crops of PyTorch's bilinear upsampling."""
    torch = pytest.importorskip("torch")
    cells = np.random.default_rng(0).random((4, grid)).astype("float32")
    step = -(-size // grid)
    whole = torch.nn.functional.interpolate(
        torch.from_numpy(cells)[:, None],
        size=(grid + 1) * step,
        mode="linear",
        align_corners=False,
    )[:, 0].numpy()
    shifts = np.arange(4) % step
    found = _upsampled(cells, 1, grid, size, step, shifts)
    expected = [
        row[shift : shift + size]
        for row, shift in zip(whole, shifts, strict=True)
    ]
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize(
    "masks, shape, positions",
    [
        (PatchMasks((3, 4), 0.3), (11, 17, 3), (11, 17)),
        (PatchMasks(7), (5, 4), (5, 4)),
        (FrameMasks(5, 0.7), (40, 3), (40,)),
        (TokenMasks(MASK, 0.2), (12,), (12,)),
    ],
)
def test_every_position_is_visible_equally_often(masks, shape, positions):
    drawn = masks.draw(np.random.default_rng(0), shape, 4000)
    assert drawn.shape == (4000, *positions)
    assert drawn.min() >= 0 and drawn.max() <= 1
    np.testing.assert_allclose(drawn.mean(axis=0), masks.probability, atol=0.04)


def test_replacement_of_hidden_positions():
    seen = np.zeros((1, 2, 3), "float32")
    seen[0, 0] = 1
    image = np.ones((2, 3, 2), "float32")
    found = PatchMasks(baseline=0.5).apply(image, seen)
    assert (found[0, 0] == 1).all() and (found[0, 1] == 0.5).all()
    ids = np.array([5, 0, 7])
    hidden = TokenMasks(MASK).apply(ids, np.zeros((1, 3)))
    assert hidden.tolist() == [[1, 0, 1]]


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"num_masks": 0}, "`num_masks`"),
        ({"batch_size": 0}, "`batch_size`"),
        ({"inputs": np.array(3)}, "`inputs` must have at least 1 axes"),
        ({"function": lambda ids: 3.0}, "`function` must return scores for"),
        ({"function": lambda ids: {}}, "`function` must return one float"),
    ],
)
def test_invalid_arguments_raise(arguments, message):
    given = {
        "function": lambda ids: ids.sum(axis=1),
        "inputs": np.array([5, 6]),
        "masks": TokenMasks(MASK),
        "verbose": 0,
    }
    with pytest.raises(ValueError, match=message):
        rise(**(given | arguments))


def test_invalid_masks_raise():
    with pytest.raises(ValueError, match="`probability` must lie in"):
        TokenMasks(MASK, 1.0)
    with pytest.raises(ValueError, match="`grid` must be an int"):
        PatchMasks((1, 2, 3))
    with pytest.raises(ValueError, match="`grid`"):
        PatchMasks(0)
