"""Captured steps match the function and see updated weights."""

import threading
from typing import Any, NamedTuple

import keras
import numpy as np
import pytest
from keras import ops

from tests.helpers.captured import captured_step

TORCH = keras.backend.backend() == "torch"
torch_only = pytest.mark.skipif(
    not TORCH, reason="other backends compile the loop"
)
if TORCH:
    import torch


class State(NamedTuple):
    rows: Any
    cursor: Any
    other: Any = None


def _tensor(values, dtype="float32"):
    return ops.convert_to_tensor(np.asarray(values, dtype))


def _run(step, *args):
    return keras.tree.map_structure(
        lambda x: None if x is None else ops.convert_to_numpy(x), step(*args)
    )


@pytest.mark.skipif(TORCH, reason="PyTorch captures")
def test_other_backends_return_function_unchanged():
    def step(x):
        return x

    assert captured_step(step, []) is step


@torch_only
def test_only_conversions_that_change_a_tensor_are_traced():
    from keras_attn.backend.capturing.tracing import trace

    weight = keras.Variable(np.ones(2, "float32"))

    def step(x):
        total = ops.add(ops.multiply(x, weight), x)
        return [ops.cast(ops.cast(total, "float32"), "float16")]

    x = _tensor([1.0, 2.0])
    module = trace(step, [weight], [x], "`step`")
    targets = [n.target for n in module.graph.nodes if n.op == "call_function"]
    assert [str(target) for target in targets] == [
        "aten.multiply.Tensor",
        "aten.add.Tensor",
        "aten.to.dtype",
    ]
    (found,) = module([weight.value], [x])
    assert found.dtype == torch.float16
    np.testing.assert_array_equal(ops.convert_to_numpy(found), [2.0, 4.0])


@torch_only
def test_nested_arguments_and_results(captures):
    def step(tokens, state):
        return {
            "b": [state.rows + tokens, None],
            "a": State(state.other["x"] * 2, state.cursor + 1),
        }

    def arguments(value):
        state = State(_tensor([1.0, 2]), _tensor(3, "int32"))
        return _tensor([value]), state._replace(other={"x": _tensor([value])})

    run = captured_step(step, [])
    for value in (5.0, 7.0):
        found = _run(run, *arguments(value))
        expected = _run(step, *arguments(value))
        assert set(found) == set(expected)
        np.testing.assert_array_equal(found["b"][0], expected["b"][0])
        assert found["b"][1] is None
        assert isinstance(found["a"], State)
        np.testing.assert_array_equal(found["a"].rows, [2 * value])
        assert found["a"].cursor == 4 and found["a"].other is None
    assert len(captures) == 1


@torch_only
def test_same_tensor_passed_twice_is_two_arguments():
    def step(first, second):
        return first - second

    run = captured_step(step, [])
    x = _tensor([3.0])
    assert _run(run, x, x) == 0
    assert _run(run, x, _tensor([1.0])) == 2
    assert _run(run, _tensor([1.0]), x) == -2


@torch_only
def test_writes_are_in_place():
    def step(buffer, start):
        before = ops.sum(buffer)
        buffer.index_copy_(0, start[None], ops.ones((1, 2)))
        # The same expression again: it must see the write in between.
        return before, ops.sum(buffer), buffer

    run = captured_step(step, [])
    buffer = ops.zeros((4, 2))
    pointer = buffer.data_ptr()
    for slot in range(3):
        before, after, buffer = run(buffer, _tensor(slot, "int64"))
        assert (float(before), float(after)) == (2 * slot, 2 * slot + 2)
        assert buffer.data_ptr() == pointer


@torch_only
def test_returned_constants_are_created_in_every_step():
    def step(x):
        return ops.zeros((2,)), ops.zeros((2,)), x + 1

    run = captured_step(step, [])
    first, second, x = run(_tensor([0.0]))
    with torch.inference_mode():
        first += 1
    assert float(second[0]) == 0
    assert float(run(x)[0][0]) == 0


@torch_only
def test_buffer_created_in_step_is_new_in_every_step():
    def step(x):
        buffer = torch.zeros(3)
        buffer.add_(x)
        return buffer + 0

    run = captured_step(step, [])
    for _ in range(3):
        np.testing.assert_array_equal(_run(run, _tensor(2.0)), [2, 2, 2])


@torch_only
def test_run_uses_current_weights():
    weight = keras.Variable([1.0, 2.0])

    def step(x):
        return x * ops.exp(weight)

    for values in ([1.0, 2.0], [3.0, 4.0]):
        weight.assign(values)
        found = _run(captured_step(step, [weight]), _tensor([1.0, 1.0]))
        np.testing.assert_allclose(found, np.exp(values), rtol=1e-6)


@torch_only
def test_runs_share_one_graph_per_shape(captures):
    def step(x):
        return x + 1

    for rows in (1, 3, 1, 3):
        run = captured_step(step, [])
        np.testing.assert_array_equal(
            _run(run, ops.zeros((rows,))), np.ones(rows)
        )
    assert len(captures) == 2
    run(ops.zeros((3,), "float64"))
    assert len(captures) == 3
    with torch.autocast("cpu", torch.bfloat16):
        captured_step(step, [])(ops.zeros((3,)))
    assert len(captures) == 4


@torch_only
def test_branching_on_values_raises():
    def step(x):
        return x + 1 if x[0] > 0 else x

    with pytest.raises(RuntimeError, match=r"step` cannot be .* the values"):
        captured_step(step, [])(_tensor([1.0]))


@torch_only
def test_random_numbers_raise():
    def step(x):
        return x + torch.rand(2)

    with pytest.raises(RuntimeError, match="must not draw random numbers"):
        captured_step(step, [])(_tensor([1.0]))


@torch_only
def test_closed_over_tensor_raises():
    table = _tensor([5.0])

    def step(x):
        return x + table

    with pytest.raises(RuntimeError, match="from its arguments or from its"):
        captured_step(step, [])(_tensor([1.0]))


@torch_only
def test_argument_that_is_not_a_tensor_raises():
    with pytest.raises(RuntimeError, match=r"nests of tensors.*: int"):
        captured_step(lambda x, n: x, [])(_tensor([1.0]), 3)


@torch_only
def test_fused_product_and_bias_matches_layer():
    keras.utils.set_random_seed(1)
    dense = keras.layers.Dense(3)
    dense.build((None, None, 4))
    dense.bias.assign([1.0, 2.0, 3.0])
    x = keras.random.normal((2, 5, 4))
    found = _run(captured_step(dense.call, dense.variables), x)
    np.testing.assert_allclose(
        found, ops.convert_to_numpy(dense(x)), rtol=1e-6, atol=1e-6
    )


@torch_only
def test_threads_share_graphs(captures):
    def step(x):
        return ops.exp(x) + 1

    found = {}

    def work(number):
        run = captured_step(step, [])
        found[number] = [
            float(run(_tensor([number + k]))[0]) for k in range(20)
        ]

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(4):
        expected = np.exp(np.arange(number, number + 20.0)) + 1
        np.testing.assert_allclose(found[number], expected, rtol=1e-6)
    assert len(captures) == 1


@torch_only
def test_fixed_arguments_may_change_between_runs(captures):
    def step(x, mask):
        return ops.where(mask[:, None, None], x, 0) + 1

    x = ops.ones((2, 1, 3))
    run = captured_step(step, [], fixed=1)
    # A mask that masks nothing, for which `plain_step` runs, and another.
    for seen in ([True, True], [True, False]):
        mask = _tensor(seen, "bool")
        expected = np.ones((2, 1, 3)) + np.asarray(seen)[:, None, None]
        for _ in range(2):
            np.testing.assert_array_equal(_run(run, x, mask), expected)
    assert len(captures) == 1


@torch_only
def test_results_as_next_arguments(captures):
    def step(state, added):
        return State(state.rows + added, state.cursor + 1)

    run = captured_step(step, [], fixed=1)
    added = _tensor([2.0])
    for rows in (1, 3):
        state = State(ops.ones((rows,)), _tensor(0, "int32"))
        for number in range(1, 4):
            state = run(state, added)
            found = ops.convert_to_numpy(state.rows)
            np.testing.assert_array_equal(found, np.full(rows, 1 + 2 * number))
            assert int(state.cursor) == number
    assert len(captures) == 2


@torch_only
@pytest.mark.parametrize("tokens", [1, 2])
def test_dropping_the_token_axis_matches_function(tokens):
    keras.utils.set_random_seed(2)
    layers = [
        keras.layers.Dense(5, activation="gelu"),
        keras.layers.LayerNormalization(),
        keras.layers.Dense(4),
    ]
    x = keras.random.normal((3, tokens, 4))
    gate = keras.random.normal((4,))

    def step(x, gate):
        y = x
        for layer in layers:
            y = layer(y)
        return ops.where(y > 0, (y + x) * gate, 0.0)[:, -1]

    expected = ops.convert_to_numpy(step(x, gate))
    variables = [variable for layer in layers for variable in layer.variables]
    found = _run(captured_step(step, variables), x, gate)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
