"""`scan` against a NumPy loop, values and gradients."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.backend import compiled, scan
from tests.helpers.gradients import gradient

rng = np.random.default_rng(0)
STATE = rng.normal(size=(2, 3)).astype("float32")


def step(state, x):
    """Step whose outputs have another structure than its state."""
    hidden, count = state
    hidden = ops.tanh(hidden * x["gain"] + x["added"])
    return (hidden, count + 1), {"sum": ops.sum(hidden, axis=-1), "n": count}


def inputs(length):
    draw = np.random.default_rng(length).normal
    return {
        "gain": draw(size=(length, 2, 3)).astype("float32"),
        "added": draw(size=(length, 2, 1)).astype("float32"),
    }


def by_numpy(length):
    hidden, sums, given = STATE, [], inputs(length)
    for gain, added in zip(given["gain"], given["added"], strict=True):
        hidden = np.tanh(hidden * gain + added)
        sums.append(hidden.sum(-1))
    return hidden, np.array(sums)


def run(state, given):
    return scan(step, (state, ops.zeros((), "int32")), given)


@pytest.mark.parametrize("length", [1, 2, 5])
@pytest.mark.parametrize("compiling", [False, True])
def test_matches_loop(compiling, length):
    given = {k: ops.convert_to_tensor(x) for k, x in inputs(length).items()}
    program = compiled(run, []) if compiling else run
    (hidden, count), found = program(ops.convert_to_tensor(STATE), given)
    expected, sums = by_numpy(length)
    np.testing.assert_allclose(ops.convert_to_numpy(hidden), expected, 1e-5)
    np.testing.assert_allclose(
        ops.convert_to_numpy(found["sum"]), sums, 1e-5, 1e-6
    )
    assert int(count) == length
    assert ops.convert_to_numpy(found["n"]).tolist() == [*range(length)]


def test_gradients_match_finite_differences():
    given = inputs(4)

    def total(state, gain):
        parts = {"gain": gain, "added": ops.convert_to_tensor(given["added"])}
        (hidden, _), outputs = run(state, parts)
        return ops.sum(hidden) + ops.sum(ops.square(outputs["sum"]))

    found = gradient(total, STATE, given["gain"])
    for number, array in enumerate((STATE, given["gain"])):
        for index in list(np.ndindex(array.shape))[::5]:
            moved = []
            for sign in (1, -1):
                arrays = [STATE.copy(), given["gain"].copy()]
                arrays[number][index] += sign * 1e-2
                moved.append(float(total(*map(ops.convert_to_tensor, arrays))))
            np.testing.assert_allclose(
                found[number][index], (moved[0] - moved[1]) / 2e-2, atol=2e-3
            )


def test_unknown_length():
    """As in `fit` with batches of varying length."""

    @keras.saving.register_keras_serializable(package="tests")
    class Total(keras.layers.Layer):
        def call(self, x):
            x = ops.transpose(x, (1, 0, 2))
            _, sums = scan(
                lambda total, now: (total + now, total + now), x[0] * 0, x
            )
            return ops.transpose(sums, (1, 0, 2))

        def compute_output_shape(self, shape):
            return shape

    x = keras.Input((None, 3))
    model = keras.Model(x, Total()(x))
    for length in (4, 2):
        array = rng.normal(size=(2, length, 3)).astype("float32")
        np.testing.assert_allclose(
            model.predict(array, verbose=0), array.cumsum(1), 1e-5, 1e-6
        )
