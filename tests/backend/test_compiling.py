"""Compiled functions match the function and see updated weights."""

import keras
import numpy as np
from keras import ops

from keras_attn.backend import compiled
from tests.helpers.ops_cases import assert_close, normal, values


def test_nested_arguments_and_results():
    def function(x, nest):
        return {"sum": x + nest["y"], "pair": (x, 2 * nest["y"])}

    x, y = normal(2, 3, seed=1), normal(2, 3, seed=2)
    result = compiled(function, [])(
        ops.convert_to_tensor(x), {"y": ops.convert_to_tensor(y)}
    )
    assert_close(values(result["sum"]), x + y)
    assert_close(values(result["pair"][1]), 2 * y)


def test_assign_updates_weights():
    layer = keras.layers.Dense(3)
    layer.build((None, 2))
    program = compiled(layer, layer.variables)
    x = ops.convert_to_tensor(normal(4, 2))
    before = values(program(x))
    layer.kernel.assign(2 * layer.kernel)
    assert_close(values(program(x)), 2 * before)
    assert np.abs(before).max() > 0.1


def test_new_shapes():
    program = compiled(lambda x: ops.sum(x, axis=1), [])
    for length in (2, 3):
        result = program(ops.ones((1, length)))
        assert values(result).tolist() == [length]


def test_result_requires_no_gradient():
    layer = keras.layers.Dense(3)
    layer.build((None, 2))
    result = compiled(layer, layer.variables)(ops.ones((1, 2)))
    assert not getattr(result, "requires_grad", False)
