"""Positions from masks and segments, and sinusoids of large positions."""

import hypothesis
import keras
import numpy as np
import pytest
from hypothesis import strategies as st
from keras import ops

from keras_attn.ops import packed_positions, positions_from_mask, sinusoid
from keras_attn.ops.positions import default_positions
from keras_attn.ops.sinusoids import sine_and_cosine
from tests.helpers import reference
from tests.helpers.ops_cases import assert_close, assert_differs, values

pytestmark = pytest.mark.every_backend

every_layout = pytest.mark.parametrize("layout", ["interleaved", "halves"])


def table(positions, width, layout="interleaved"):
    positions = ops.convert_to_tensor(np.int32(positions))
    return values(sinusoid(positions, width, layout))


def test_default_positions():
    positions = default_positions(4)
    assert keras.backend.standardize_dtype(positions.dtype) == "int32"
    assert values(positions).tolist() == [[0, 1, 2, 3]]


@pytest.mark.parametrize("dtype", ["bool", "int32", "float32"])
def test_positions_from_mask(dtype):
    mask = np.random.default_rng(0).random((6, 7)) < 0.6
    mask[0], mask[1] = True, False
    positions = positions_from_mask(ops.cast(mask, dtype))
    assert keras.backend.standardize_dtype(positions.dtype) == "int32"
    np.testing.assert_array_equal(
        values(positions), reference.positions_from_mask(mask)
    )


def test_packed_positions():
    segments = np.int32([[1, 1, 1, 2, 2, 3], [0, 0, 4, 4, 4, 0]])
    mask = np.array([[1, 1, 1, 1, 1, 1], [0, 0, 1, 0, 1, 0]], "bool")
    positions = packed_positions(
        ops.convert_to_tensor(segments), ops.convert_to_tensor(mask)
    )
    assert keras.backend.standardize_dtype(positions.dtype) == "int32"
    assert values(positions).tolist() == [
        [0, 1, 2, 0, 1, 0],
        [-1, -1, 0, -1, 1, -1],
    ]


@hypothesis.given(
    st.lists(
        st.lists(
            st.tuples(st.integers(-1, 2), st.booleans()), min_size=7, max_size=7
        ),
        min_size=2,
        max_size=2,
    ),
    st.booleans(),
)
def test_packed_positions_match_loop(rows, masked):
    segments = np.int32([[segment for segment, _ in row] for row in rows])
    mask = np.array([[is_token for _, is_token in row] for row in rows])
    mask = mask if masked else None
    positions = packed_positions(
        ops.convert_to_tensor(segments),
        None if mask is None else ops.convert_to_tensor(mask),
    )
    np.testing.assert_array_equal(
        values(positions), reference.packed_positions(segments, mask)
    )


@pytest.mark.parametrize("length", [1, 2, 300])
def test_packed_positions_of_any_length(length):
    segments = np.int32([np.arange(length) // 7, np.zeros(length)])
    positions = values(packed_positions(ops.convert_to_tensor(segments)))
    np.testing.assert_array_equal(
        positions, [np.arange(length) % 7, np.arange(length)]
    )


@pytest.mark.parametrize("base", [7.5, 10000.0, 1e6])
def test_sine_and_cosine_of_other_wavelengths(base):
    positions, width = np.int32([[0, 1, 255, 256, 8_192, 131_071, -1]]), 6
    found = sine_and_cosine(ops.convert_to_tensor(positions), width, base)
    frequencies = base ** -(np.arange(0, width, 2) / width)
    angles = np.maximum(positions, 0)[..., None] * frequencies
    for part, expected in zip(found, (np.sin, np.cos), strict=True):
        assert_close(values(part), expected(angles), 1e-6)


@every_layout
@pytest.mark.parametrize("width", [2, 8, 64])
def test_sinusoid(layout, width):
    positions = [[0, 1, 2, 3, -1], [-1, -1, 300, 0, 255]]
    actual = table(positions, width, layout)
    assert actual.dtype == "float32"
    expected = reference.sinusoid(positions, width, layout)
    assert_close(actual, expected, 1e-6)
    assert (actual[0, 4] == 0).all()
    if width > 2:
        other = {"halves": "interleaved", "interleaved": "halves"}[layout]
        assert_differs(
            actual, reference.sinusoid(positions, width, other), 1e-2
        )


def test_sinusoid_of_large_positions():
    """Every position up to 100,000, to 1e-6."""
    width = 16
    positions = np.arange(100_001, dtype="int32")
    angles = positions[:, None] / 10000.0 ** (np.arange(0, width, 2) / width)
    actual = table(positions[None], width, "halves")[0]
    expected = np.concatenate([np.sin(angles), np.cos(angles)], axis=-1)
    assert_close(actual, expected, 1e-6)
    # Mutant: the formula computed in float32.
    frequency = np.float32(10000.0 ** (-np.arange(0, width, 2) / width))
    mutant = np.sin(np.float32(positions)[:, None] * frequency)
    assert mutant.dtype == "float32"
    assert_differs(mutant, expected[:, : width // 2])


@every_layout
def test_largest_position(layout):
    last = 131_071
    actual = table([[last]], 8, layout)
    assert_close(actual, reference.sinusoid([[last]], 8, layout), 1e-6)


def test_table_from_the_lecture():
    """20 words x 512 features, in both layouts."""
    words = np.arange(20)[None]
    pairs = table(words, 512)[0]
    halves = table(words, 512, "halves")[0]
    assert pairs.shape == halves.shape == (20, 512)
    assert_close(pairs[0], np.tile([0.0, 1.0], 256))
    assert_close(halves[0], np.repeat([0.0, 1.0], 256))
    sine = pytest.approx(0.8415, abs=5e-5)
    cosine = pytest.approx(0.5403, abs=5e-5)
    assert pairs[1, 0] == sine
    assert pairs[1, 1] == cosine
    assert halves[1, 0] == sine
    assert halves[1, 256] == cosine
    # The lowest frequency: 19 / 10000^(510 / 512).
    assert pairs[19, 510] == pytest.approx(0.0019696, abs=5e-7)
    assert halves[19, 255] == pairs[19, 510]
    assert_close(pairs[:, 0::2], halves[:, :256], 0)
    assert_close(pairs[:, 1::2], halves[:, 256:], 0)
    # sin^2 + cos^2 = 1 at every frequency.
    assert_close((pairs**2).sum(-1), np.full(20, 256.0))


def test_shift_is_a_rotation():
    """PE[p + 7] is a linear function of PE[p] (the paper's reason)."""
    width = 8
    near, far = (table([[p]], width, "halves")[0, 0] for p in (41_000, 41_007))
    angle = 7 / 10000.0 ** (np.arange(0, width, 2) / width)
    sine, cosine = near[: width // 2], near[width // 2 :]
    rotated = sine * np.cos(angle) + cosine * np.sin(angle)
    assert_close(far[: width // 2], rotated, 1e-6)


def test_odd_width_raises():
    with pytest.raises(ValueError, match=r"`width` must be even.*width=7"):
        table([[0]], 7)


def test_unknown_layout_raises():
    with pytest.raises(ValueError, match="`layout` must be one of"):
        table([[0]], 8, "sines first")
