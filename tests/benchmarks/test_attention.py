"""The contestants of the attention table compute the same."""

import importlib

import keras
import numpy as np
import pytest

from benchmarks.attention import plan, task

HERE = [
    one for one in plan.CONTESTANTS if one.backend == keras.backend.backend()
]
OPS = [one for one in HERE if not one.options and "nn." not in one.name]


def result(contestant, case):
    module = importlib.import_module(contestant.module)
    return module.prepare(case, **(contestant.options or {}))(2)


@pytest.mark.parametrize("case", plan.QUICK_CASES, ids=lambda c: c["mask"])
def test_every_op_gives_the_same_sum_of_outputs_and_gradients(case):
    sums = [result(one, case) for one in OPS]
    assert len(sums) >= 2
    np.testing.assert_allclose(sums, sums[0], rtol=1e-4, atol=1e-3)
    forward = result(OPS[0], {**case, "backward": False})
    assert abs(forward - sums[0]) > 1e-3


@pytest.mark.parametrize("case", plan.QUICK_CASES[1:3], ids=lambda c: c["mask"])
def test_every_layer_runs(case):
    layers = [one for one in HERE if one not in OPS]
    assert len(layers) >= 2
    for layer in layers:
        assert np.isfinite(result(layer, case))


def test_the_masks_are_what_the_notes_say():
    case = {**plan.CASES[0], "rows": 3, "length": 1000}
    there = task.tokens_there(case)
    assert there[0].all()
    assert there[-1].sum() == 500
    assert (np.diff(there.sum(1)) < 0).all()
    window = task.dense_mask({**case, "mask": "window"})[0, 0]
    assert window[900].sum() == task.WINDOW
    assert not window[900, 901]
    assert task.flops({**case, "mask": "causal"}) * 2 == task.flops(case)
