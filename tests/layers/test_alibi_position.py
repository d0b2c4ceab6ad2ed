"""ALiBiPosition against BLOOM, MPT and the paper."""

import numpy as np
import pytest

from keras_attn.layers import ALiBiPosition
from keras_attn.ops import Visibility, attend
from tests.helpers import reference
from tests.helpers.gradients import gradient
from tests.helpers.ops_cases import assert_close, assert_differs, normal, values
from tests.helpers.weight_gradients import weighted_sum
from tests.layers.position_cases import bias_of

torch = pytest.importorskip("torch")

from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.mpt.modeling_mpt import build_mpt_alibi_tensor

pytestmark = pytest.mark.every_backend

HEADS = [1, 2, 3, 6, 8, 12, 20]
every_count = pytest.mark.parametrize("heads", HEADS)


def slopes(heads):
    """Returns the negated bias at distance 1."""
    return -bias_of(ALiBiPosition(heads), [[0]], [[1]])[0, :, 0, 0]


def test_slopes_of_the_paper():
    """Sec. 3: 1/2, 1/4, ..., 1/256 for 8 heads."""
    assert slopes(8).tolist() == [2.0**-n for n in range(1, 9)]
    sixteen = [2.0 ** (-n / 2) for n in range(1, 17)]
    assert_close(slopes(16), sixteen, 1e-7)


@every_count
def test_equals_bloom(heads):
    """The bias of BLOOM is m p_s, which differs by a constant per row."""
    length = 9
    ones = torch.ones(1, length, dtype=torch.long)
    theirs = build_alibi_tensor(ones, heads, torch.float32).numpy()
    position_ids = np.arange(length)[None]
    ours = bias_of(ALiBiPosition(heads), position_ids, position_ids)[0]
    for query in range(length):
        visible = slice(query + 1)
        row = theirs[:, 0, visible] - theirs[:, 0, query : query + 1]
        assert_close(ours[:, query, visible], row)


@every_count
def test_equals_mpt(heads):
    theirs = build_mpt_alibi_tensor(heads, 9).numpy()
    last = bias_of(ALiBiPosition(heads), [[8]], np.arange(9)[None])[0]
    assert_close(last, theirs)


@pytest.mark.parametrize("heads", [8, 12])
def test_outputs_and_gradients_with_bloom_bias(heads):
    length, width = 6, 4
    arrays = [normal(2, length, heads, width, seed=seed) for seed in range(3)]
    upstream = normal(2, length, heads, width, seed=3)
    ones = torch.ones(2, length, dtype=torch.long)
    alibi = build_alibi_tensor(ones, heads, torch.float32).numpy()
    alibi = alibi.reshape(2, heads, 1, length)
    mask = np.tri(length, dtype="bool")
    visibility = Visibility(causal=True)
    bias = ALiBiPosition(heads).bias()
    expected, _ = reference.scaled_dot_attention(*arrays, mask, alibi)
    assert_close(values(attend(*arrays, visibility, bias)), expected)
    wrong, _ = reference.scaled_dot_attention(*arrays, mask, -alibi)
    assert_differs(expected, wrong)

    found = gradient(
        lambda *x: weighted_sum(attend(*x, visibility, bias), upstream), *arrays
    )
    exact = reference.scaled_dot_attention_gradients(
        *arrays, upstream, mask, alibi
    )
    for one, other in zip(found, exact[:3], strict=True):
        assert_close(one, other)


def test_bias_is_symmetric():
    position_ids = np.arange(7)[None]
    bias = bias_of(ALiBiPosition(6), position_ids, position_ids)
    np.testing.assert_array_equal(bias, bias.swapaxes(2, 3))
    assert (np.diff(bias[0, :, 0]) < 0).all()


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_bias_is_exact_at_large_distances(dtype):
    """Every distance up to 8,192, under a half-precision policy too."""
    position = ALiBiPosition(8, dtype=dtype)
    bias = bias_of(position, [[8_192]], np.arange(8_193)[None])
    assert bias.dtype == "float32"
    exact = -(2.0 ** -np.arange(1, 9))[:, None] * np.arange(8_192, -1, -1)
    np.testing.assert_array_equal(bias[0, :, 0], exact)
    shifted = bias_of(position, [[100_000]], 91_808 + np.arange(8_193)[None])
    np.testing.assert_array_equal(shifted, bias)


def test_positions_per_row():
    queries, keys = np.int32([[0, 5], [2, -1]]), np.int32([[3, 1, 0]])
    bias = bias_of(ALiBiPosition(1), queries, keys)
    slope = 2.0**-8
    assert (bias / -slope)[:, 0].tolist() == [
        [[3, 1, 0], [2, 4, 5]],
        [[1, 1, 2], [4, 2, 1]],
    ]


def test_equal_layers_have_equal_bias_functions():
    """A kernel is compiled once for all layers with the same slopes."""
    one, other = ALiBiPosition(6).bias(), ALiBiPosition(6).bias()
    assert one == other
    assert hash(one.function) == hash(other.function)
    assert one != ALiBiPosition(5).bias()
    assert one.parameters is None


@pytest.mark.parametrize("heads", [0, 2.0, True, None])
def test_invalid_arguments_raise(heads):
    with pytest.raises(ValueError, match="`num_heads` must be a positive int"):
        ALiBiPosition(heads)
