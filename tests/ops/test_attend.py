"""`attend`: values, weights and gradients against float64 loops."""

import numpy as np
import pytest
from keras import ops

from keras_attn.ops import Visibility, attend
from keras_attn.ops.attend import attend_sanitized
from tests.helpers import reference
from tests.helpers.gradients import gradient
from tests.helpers.ops_cases import (
    BATCH,
    CASES,
    HEADS,
    KERNELS,
    LENGTH,
    MUTANTS,
    assert_close,
    assert_differs,
    inputs,
    mutants,
    normal,
    spread,
    values,
    visibility,
)

every_kernel = pytest.mark.parametrize("kernel", KERNELS)
# One key head per query head, per two query heads, and one for all.
every_grouping = pytest.mark.parametrize("key_heads", [4, 2, 1])


def run(arrays, see=None, **kwargs):
    tensors = [ops.convert_to_tensor(array) for array in arrays]
    return attend(*tensors, see, **kwargs)


def gradients(arrays, see=None, **kwargs):
    """Returns the gradients of sum(cotangent * output), and the cotangent."""
    cotangent = normal(*arrays[0].shape[:3], arrays[2].shape[-1], seed=9)

    def loss(query, key, value):
        output = attend(query, key, value, see, **kwargs)
        return ops.sum(ops.multiply(output, cotangent))

    return gradient(loss, *arrays), cotangent


@pytest.mark.every_backend
@every_kernel
@pytest.mark.parametrize("name", CASES)
def test_values(name, kernel):
    case = CASES[name]
    arrays = inputs()
    output = values(run(arrays, visibility(case), kernel=kernel))
    expected, _ = reference.scaled_dot_attention(*arrays, spread(case))
    assert_close(output, expected)
    for wrong in mutants(case).values():
        expected, _ = reference.scaled_dot_attention(*arrays, spread(wrong))
        assert_differs(output, expected)


@pytest.mark.every_backend
@every_kernel
@pytest.mark.parametrize("name", CASES)
def test_gradients(name, kernel):
    case = CASES[name]
    arrays = inputs()
    actual, cotangent = gradients(arrays, visibility(case), kernel=kernel)
    expected = reference.scaled_dot_attention_gradients(
        *arrays, cotangent, spread(case)
    )
    for one, other in zip(actual, expected, strict=False):
        assert_close(one, other)
    for wrong in mutants(case).values():
        expected = reference.scaled_dot_attention_gradients(
            *arrays, cotangent, spread(wrong)
        )
        assert_differs(actual[2], expected[2])


@pytest.mark.every_backend
@every_kernel
@every_grouping
@pytest.mark.parametrize("name", ["causal", "mask of rows and heads"])
def test_grouped_heads(name, key_heads, kernel):
    case = CASES[name]
    arrays = inputs(key_heads=key_heads)
    see = visibility(case)
    output = values(run(arrays, see, kernel=kernel))
    expected, _ = reference.scaled_dot_attention(*arrays, spread(case))
    assert_close(output, expected)
    actual, cotangent = gradients(arrays, see, kernel=kernel)
    expected = reference.scaled_dot_attention_gradients(
        *arrays, cotangent, spread(case)
    )
    for one, other in zip(actual, expected, strict=False):
        assert_close(one, other)


@every_kernel
def test_adjacent_heads_share_a_key_head(kernel):
    arrays = inputs(key_heads=2)
    output = values(run(arrays, kernel=kernel))
    # Mutant: query heads 0 and 2 share a key head.
    swapped = [arrays[0][:, :, [0, 2, 1, 3]], *arrays[1:]]
    expected, _ = reference.scaled_dot_attention(*swapped)
    assert_differs(output, expected[:, :, [0, 2, 1, 3]])


@every_kernel
@pytest.mark.parametrize("case", [{}, {"causal": True}, {"window": 2}])
def test_fewer_queries_than_keys(case, kernel):
    arrays = inputs(queries=3)
    mask = spread(case, lengths=(3, LENGTH))
    output = values(run(arrays, visibility(case), kernel=kernel))
    assert_close(output, reference.scaled_dot_attention(*arrays, mask)[0])
    actual, cotangent = gradients(arrays, visibility(case), kernel=kernel)
    expected = reference.scaled_dot_attention_gradients(
        *arrays, cotangent, mask
    )
    for one, other in zip(actual, expected, strict=False):
        assert_close(one, other)


@every_kernel
@pytest.mark.parametrize("width", [1, 2, 8])
def test_value_width(width, kernel):
    query, key, _ = inputs()
    arrays = query, key, normal(BATCH, LENGTH, HEADS, width)
    output = values(run(arrays, kernel=kernel))
    assert_close(output, reference.scaled_dot_attention(*arrays)[0])


@every_kernel
@pytest.mark.parametrize("scale", [1.0, 0.1])
def test_scale(scale, kernel):
    arrays = inputs()
    output = values(run(arrays, kernel=kernel, scale=scale))
    expected, _ = reference.scaled_dot_attention(*arrays, scale=scale)
    assert_close(output, expected)
    assert_differs(output, reference.scaled_dot_attention(*arrays)[0])


@pytest.mark.every_backend
@pytest.mark.parametrize("name", ["causal, holes", "mask of rows and heads"])
@pytest.mark.parametrize("key_heads", [4, 2])
def test_weights(name, key_heads):
    case = CASES[name]
    arrays = inputs(key_heads=key_heads)
    output, weights = run(arrays, visibility(case), return_weights=True)
    expected = reference.scaled_dot_attention(*arrays, spread(case))
    assert_close(values(output), expected[0])
    assert_close(values(weights), expected[1])
    mask = spread(case)
    assert (values(weights)[~mask] == 0).all()
    total = values(weights).sum(-1)
    assert_close(total, mask.any(-1).astype("float32"))


@pytest.mark.every_backend
@every_kernel
@pytest.mark.parametrize(
    "shape",
    [(BATCH, HEADS, LENGTH, LENGTH), (1, HEADS, 1, LENGTH), (LENGTH, LENGTH)],
)
@pytest.mark.parametrize("name", ["causal", "holes"])
def test_bias(name, shape, kernel):
    case, arrays, bias = CASES[name], inputs(), normal(*shape, seed=5)
    see, mask = visibility(case), spread(CASES[name])
    tensor = ops.convert_to_tensor(bias)
    output = values(run(arrays, see, bias=tensor, kernel=kernel))
    expected, _ = reference.scaled_dot_attention(*arrays, mask, bias)
    assert_close(output, expected)
    unbiased, _ = reference.scaled_dot_attention(*arrays, mask)
    assert_differs(output, unbiased)


BIASED = [kernel for kernel in KERNELS if kernel != "fused"]


@pytest.mark.every_backend
@pytest.mark.parametrize("kernel", BIASED)
@pytest.mark.parametrize(
    "shape",
    [
        (BATCH, HEADS, LENGTH, LENGTH),
        (1, HEADS, 1, LENGTH),
        (BATCH, 1, LENGTH, 1),
        (LENGTH, LENGTH),
    ],
)
@pytest.mark.parametrize("key_heads", [4, 2])
def test_bias_gradient(shape, key_heads, kernel):
    case, arrays = CASES["causal, holes"], inputs(key_heads=key_heads)
    bias = normal(*shape, seed=5)
    cotangent = normal(BATCH, LENGTH, HEADS, 6, seed=9)
    see = visibility(case)

    def loss(query, key, value, bias):
        output = attend(query, key, value, see, bias=bias, kernel=kernel)
        return ops.sum(ops.multiply(output, cotangent))

    actual = gradient(loss, *arrays, bias)
    whole = np.broadcast_to(bias, (BATCH, HEADS, LENGTH, LENGTH))
    expected = list(
        reference.scaled_dot_attention_gradients(
            *arrays, cotangent, spread(case), whole
        )
    )
    expected[3] = summed_to(expected[3], shape)
    for one, other in zip(actual, expected, strict=True):
        assert_close(one, other)


def summed_to(slope, shape):
    """Sums a gradient over the axes that were broadcast from `shape`."""
    missing = slope.ndim - len(shape)
    slope = slope.sum(tuple(range(missing)))
    axes = tuple(axis for axis, size in enumerate(shape) if size == 1)
    return slope.sum(axes, keepdims=True)


def test_dropout_does_not_change_returned_weights():
    arrays = inputs()
    see = visibility(CASES["causal"])
    plain, kept = run(arrays, see, return_weights=True)
    output, weights = run(
        arrays, see, dropout=lambda weights: 2 * weights, return_weights=True
    )
    assert_close(values(output), 2 * values(plain))
    assert_close(values(weights), values(kept))


@every_kernel
def test_large_negative_scores(kernel):
    query = np.full((1, 2, 1, 4), 100.0, "float32")
    key = np.stack([query[0] * -3, query[0] * -3.01])[None, :, 0]
    value = normal(1, 2, 1, 3)
    output = values(run((query, key, value), kernel=kernel))
    assert_close(output[0, 0], value[0, 0])


@pytest.mark.every_backend
@every_kernel
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_scores_beyond_half_precision(dtype, kernel):
    # 64 * 64 * 64 overflows float16, and all scores are negative.
    query = ops.full((1, 3, 1, 64), 64.0, dtype)
    value = ops.cast(normal(1, 3, 1, 4), dtype)
    output = attend(query, -query, value, kernel=kernel)
    mean = values(value).mean(1, keepdims=True)
    expected = np.broadcast_to(mean, (1, 3, 1, 4))
    assert_close(values(output), expected, 1e-2)


@pytest.mark.every_backend
@every_kernel
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", ["causal, holes", "no token", "strict order"])
def test_half_precision(name, dtype, kernel):
    arrays = [ops.cast(array, dtype) for array in inputs()]
    case = CASES[name]
    output = attend(*arrays, visibility(case), kernel=kernel)
    assert output.dtype == arrays[0].dtype
    expected, weights = reference.scaled_dot_attention(
        *(values(array) for array in arrays), spread(case)
    )
    assert_close(values(output), expected, 2e-2)
    fully_masked = ~weights.any(-1).swapaxes(1, 2)
    assert (values(output)[fully_masked] == 0).all()


@pytest.mark.every_backend
@every_kernel
@pytest.mark.parametrize("name", ["two paddings", "causal, cached", "packed"])
def test_kernels_and_functions_agree(name, kernel):
    arrays = [ops.convert_to_tensor(array) for array in inputs()]
    see = visibility(CASES[name])
    chosen = values(attend(*arrays, see))
    assert_close(values(attend(*arrays, see, kernel=kernel)), chosen, 1e-6)
    clean = attend_sanitized(*arrays, see, kernel=kernel)
    assert_close(values(clean.output), chosen, 1e-6)
    weighted, _ = attend(*arrays, see, return_weights=True)
    assert_close(values(weighted), chosen, 1e-6)


@every_kernel
@pytest.mark.parametrize("name", sorted(CASES))
def test_sees_key_is_false_where_all_heads_are_fully_masked(name, kernel):
    arrays = [ops.convert_to_tensor(array) for array in inputs()]
    attended = attend_sanitized(
        *arrays, visibility(CASES[name]), kernel=kernel, return_sees_key=True
    )
    _, weights = reference.scaled_dot_attention(
        *(values(array) for array in arrays), spread(CASES[name])
    )
    expected = (weights > 0).any((1, 3))
    found = attended.sees_key
    found = np.ones_like(expected) if found is None else values(found)
    np.testing.assert_array_equal(
        np.broadcast_to(found, expected.shape), expected
    )


def test_default_visibility_is_everything():
    arrays = inputs(queries=2)
    output = values(run(arrays))
    assert_close(output, reference.scaled_dot_attention(*arrays)[0])
    assert_close(output, values(run(arrays, Visibility())))


def test_every_case_has_a_mutant():
    assert {name for name, _ in MUTANTS} == set(CASES)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((2, 3, 4), (2, 3, 1, 4), (2, 3, 1, 4)), "`query` must have shape"),
        (((2, 3, 1, 4), (2, 3, 4), (2, 3, 1, 4)), "`key` must have shape"),
        (((2, 3, 1, 4), (2, 3, 1, 4), (3, 4)), "`value` must have shape"),
        (((2, 3, 1, 4), (2, 3, 1, 5), (2, 3, 1, 4)), "same width.* 4 and 5"),
        (((2, 3, 4, 4), (2, 3, 3, 4), (2, 3, 3, 4)), "divide .*query 4"),
        (((2, 3, 4, 4), (2, 3, 2, 4), (2, 3, 4, 4)), "same number of heads"),
    ],
)
def test_invalid_shapes_raise(shapes, message):
    with pytest.raises(ValueError, match=message):
        attend(*(ops.ones(shape) for shape in shapes))
