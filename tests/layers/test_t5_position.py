"""T5Position compared with the buckets and the attention of T5."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.layers import MultiHeadAttention, T5Position
from tests.helpers.contract import randomize
from tests.helpers.ops_cases import assert_close, assert_differs, normal, values
from tests.helpers.weight_gradients import layer_gradients, weighted_sum
from tests.layers import transformers_twin as twins
from tests.layers.position_cases import bias_of

torch = pytest.importorskip("torch")

from transformers.models.t5.modeling_t5 import T5Attention

pytestmark = pytest.mark.every_backend

FAR = 8_192
SHAPES = [
    (32, 128, True),
    (32, 128, False),
    (64, 256, True),
    (16, 100, False),
    (8, 20, True),
    (10, 50, True),
    (4, 2, True),
    (2, 9, False),
    (3, 30, False),
]
every_shape = pytest.mark.parametrize(
    ("buckets", "distance", "bidirectional"), SHAPES
)


def their_buckets(distances, buckets, distance, bidirectional):
    return T5Attention._relative_position_bucket(
        torch.tensor(distances), bidirectional, buckets, distance
    ).numpy()


@every_shape
@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_all_buckets(buckets, distance, bidirectional, dtype):
    """All distances up to 8,192 in both directions and precisions."""
    position = T5Position(1, buckets, distance, bidirectional, dtype=dtype)
    position.table.assign(np.arange(buckets)[:, None])
    keys = np.arange(2 * FAR + 1)
    found = bias_of(position, [[FAR]], keys[None])
    assert found.dtype == "float32"
    expected = their_buckets(keys - FAR, buckets, distance, bidirectional)
    np.testing.assert_array_equal(found[0, 0, 0], expected)
    moved = bias_of(position, [[FAR + 70_000]], keys[None] + 70_000)
    np.testing.assert_array_equal(moved, found)
    # Wrong result: swapped directions.
    swapped = bias_of(position, keys[:, None][::-1], [[FAR]])[:, 0, 0, 0]
    np.testing.assert_array_equal(swapped, expected)
    assert (expected != expected[::-1]).any()


def test_integer_bucket_boundaries():
    """At integer boundaries, a logarithm may round to the wrong side."""
    position = T5Position(1)
    position.table.assign(np.arange(32)[:, None])
    found = bias_of(position, np.int32([[0, 0]]), np.int32([[15, 16, 31, 32]]))
    assert found[0, 0, 0].tolist() == [25, 26, 27, 28]


@every_shape
def test_equals_compute_bias(buckets, distance, bidirectional):
    position = randomize(T5Position(3, buckets, distance, bidirectional))
    layer = MultiHeadAttention(3, 4, attention_position=position)
    layer.build((None, None, 6), (None, None, 6))
    twin, _ = twins.t5(layer, 6)
    with torch.no_grad():
        expected = twin.compute_bias(5, 40).numpy()
    queries, keys = np.arange(5)[None], np.arange(40)[None]
    assert_close(bias_of(position, queries, keys), expected, 0)


@pytest.mark.parametrize("bidirectional", [True, False])
def test_equals_the_attention_of_t5(bidirectional):
    """Values and gradients, including those of the table."""
    batch, length, width = 2, 9, 6
    layer = MultiHeadAttention(
        2,
        4,
        use_bias=False,
        causal=not bidirectional,
        attention_position=T5Position(2, 8, 6, bidirectional),
    )
    layer.build((None, None, width), (None, None, width))
    randomize(layer)
    x = normal(batch, length, width, seed=2)
    upstream = normal(batch, length, width, seed=3)
    twin, run = twins.t5(layer, width)
    tensor = torch.tensor(x, requires_grad=True)
    mask = np.tri(length, dtype="bool") | bidirectional
    expected = run(tensor, mask[None, None])
    (expected * torch.tensor(upstream)).sum().backward()

    assert_close(values(layer(x, x)), expected.detach().numpy())
    (at_x,), at_weights = layer_gradients(
        layer, lambda x: weighted_sum(layer(x, x), upstream), x
    )
    assert_close(at_x, tensor.grad.numpy())
    (table,) = [at_weights[name] for name in at_weights if "table" in name]
    assert_close(table, twin.relative_attention_bias.weight.grad.numpy())
    assert np.abs(table).max() > 0.01
    for name, found in twins.gradients(twin, "{}", 4**-0.5).items():
        array = at_weights[f"{name}/kernel"]
        assert_close(array, np.reshape(found, array.shape))


def test_table_is_not_autocast():
    layer = MultiHeadAttention(
        2, 4, attention_position=T5Position(2, dtype="mixed_bfloat16")
    )
    layer.build((None, None, 6), (None, None, 6))
    parameters = layer.attention_position.bias().parameters
    assert keras.backend.standardize_dtype(parameters.dtype) == "float32"
    exact = randomize(layer).attention_position
    inside = []

    class Spy(keras.layers.Layer):
        def call(self, x):
            inside.append(exact.bias().parameters)
            return x

    Spy(dtype="mixed_bfloat16")(ops.zeros((1, 1)))
    dtype = keras.backend.standardize_dtype(inside[0].dtype)
    assert dtype == "float32"


def test_positions_per_row():
    position = randomize(T5Position(2, 8, 6))
    queries, keys = np.int32([[0, 5], [2, -1]]), np.int32([[3, 1, 0]])
    bias = bias_of(position, queries, keys)
    assert bias.shape == (2, 2, 2, 3)
    for row in range(2):
        alone = bias_of(position, queries[row : row + 1], keys)
        assert_close(bias[row], alone[0], 0)
    assert_differs(bias[0], bias[1])


def test_equal_layers_have_equal_bias_functions():
    one, other = (T5Position(2).bias().function for _ in range(2))
    assert one == other
    assert hash(one) == hash(other)
    assert one != T5Position(2, 16).bias().function
    assert one != T5Position(2, bidirectional=False).bias().function


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"num_heads": 0}, "`num_heads` must be a positive integer"),
        ({"num_buckets": 7}, "even number >= 4.*num_buckets=7"),
        ({"num_buckets": 2}, "even number >= 4.*num_buckets=2"),
        ({"num_buckets": 1, "bidirectional": False}, "at least 2"),
        ({"max_distance": 8}, "more than 8, .*max_distance=8"),
        (
            {"max_distance": 16, "bidirectional": False},
            "more than 16, .*max_distance=16",
        ),
        ({"max_distance": 0}, "`max_distance` must be at least 1"),
    ],
)
def test_invalid_arguments_raise(kwargs, message):
    with pytest.raises(ValueError, match=message):
        T5Position(**{"num_heads": 2, **kwargs})
