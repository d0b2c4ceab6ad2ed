"""Logits of cached steps against a full forward pass."""

import numpy as np
import pytest
from keras import ops

from keras_attn.cache import reorder
from tests.helpers.arrays import to_numpy
from tests.helpers.tiny_models import SOURCE, tiny_transformer

TARGET = np.array([[1, 9, 4], [1, 7, 3]], "int32")


PRE_NORM = {
    "normalize_first": True,
    "position_embedding": "learned",
    "max_sequence_length": 6,
}
RELATIVE = {"position_embedding": None, "relative": True}


@pytest.mark.every_backend
@pytest.mark.parametrize(
    "form, beams",
    [({}, 1), (PRE_NORM, 1), (PRE_NORM, 2), (RELATIVE, 1), (RELATIVE, 2)],
)
def test_steps_equal_the_full_pass(form, beams):
    model = tiny_transformer(num_layers=2, **form)
    state = model.start_decoding(ops.convert_to_tensor(SOURCE), 6)
    assert to_numpy(state.tokens).tolist() == [[1], [1]]
    # The beams of one source are adjacent and share its memory.
    source = np.repeat(SOURCE, beams, axis=0)
    target = np.repeat(TARGET, beams, axis=0)
    target[1:, 2] = 10
    rows = ops.convert_to_tensor(np.repeat([0, 1], beams).astype("int32"))
    if beams > 1:
        reordered = reorder(state.hypothesis, rows)
        state = state._replace(hypothesis=reordered)
    expected = to_numpy(model((source, target)))
    for step in range(target.shape[1]):
        tokens = ops.convert_to_tensor(target[:, step : step + 1])
        logits, state = model.decode_step(tokens, state)
        np.testing.assert_allclose(
            to_numpy(logits)[:, 0], expected[:, step], atol=1e-5, rtol=1e-5
        )


def test_reordered_hypotheses_continue_correctly():
    model = tiny_transformer(num_layers=2)
    state = model.start_decoding(ops.convert_to_tensor(SOURCE[[0, 0]]), 6)
    expected = to_numpy(model((SOURCE[[0, 0]], TARGET[[1, 0]])))
    for step in range(1):
        tokens = ops.convert_to_tensor(TARGET[:, step : step + 1])
        _, state = model.decode_step(tokens, state)
    swapped = reorder(state.hypothesis, ops.convert_to_tensor([1, 0]))
    state = state._replace(hypothesis=swapped)
    for step in range(1, 3):
        tokens = ops.convert_to_tensor(TARGET[[1, 0], step : step + 1])
        logits, state = model.decode_step(tokens, state)
        np.testing.assert_allclose(
            to_numpy(logits)[:, 0], expected[:, step], atol=1e-5, rtol=1e-5
        )
