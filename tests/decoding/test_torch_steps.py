"""Decoding steps on PyTorch: captured, compiled or eager."""

import shutil

import keras
import numpy as np
import pytest

from keras_attn.decoding import BeamSearch, generate, stream
from tests.helpers.tree import Tree

pytestmark = pytest.mark.captured_steps

TORCH = keras.backend.backend() == "torch"
torch_only = pytest.mark.skipif(
    not TORCH, reason="other backends compile the loop"
)
SOURCES = np.array([[0], [1]], "int32")


class ReadsValues(Tree):
    """A tree whose steps read the values of tensors."""

    def decode_step(self, tokens, state):
        """Counts the tokens with NumPy before the step."""
        self.seen = int(keras.ops.convert_to_numpy(tokens).size)
        return super().decode_step(tokens, state)


@torch_only
@pytest.mark.parametrize("search", [generate, stream])
def test_error_for_reading_values_suggests_plain_steps(search):
    model = ReadsValues.random(2, size=6, length=3)
    with pytest.raises(RuntimeError, match='`torch_steps` is "plain"'):
        list(search(model, SOURCES, 3, "greedy"))


@torch_only
def test_plain_steps_run_eagerly(captures):
    expected = generate(
        Tree.random(2, size=6, length=3), SOURCES, 3, BeamSearch(3, 2)
    )
    assert len(captures) == 2  # the start and the step
    model = ReadsValues.random(2, size=6, length=3)
    model.torch_steps = "plain"
    found = generate(model, SOURCES, 3, BeamSearch(3, 2))
    assert len(captures) == 2 and model.seen == 6 and model.steps > 1
    for one, other in zip(found[:3], expected[:3], strict=True):
        np.testing.assert_array_equal(one, other)
    *_, last = stream(model, SOURCES, 3, BeamSearch(3, 2))
    np.testing.assert_array_equal(last.tokens, expected.tokens)


# torch.compile emits deprecation warnings about its own code.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@torch_only
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
def test_compiled_steps_give_the_same_result():
    strategy = BeamSearch(2, 2, min_new_tokens=2)
    expected = generate(Tree.random(2, 6, 3), SOURCES, 3, strategy)
    model = Tree.random(2, 6, 3)
    model.torch_steps = "compiled"
    for _ in range(2):
        found = generate(model, SOURCES, 3, strategy)
        np.testing.assert_array_equal(found.tokens, expected.tokens)
        np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-5)
    model.variables[0].assign(-keras.ops.convert_to_numpy(model.variables[0]))
    other = generate(model, SOURCES, 3, strategy)
    assert (other.scores != found.scores).all()


@pytest.mark.parametrize("search", [generate, stream])
def test_invalid_torch_steps_raises(search):
    model = Tree.random(2, size=6, length=3)
    model.torch_steps = "fast"
    with pytest.raises(ValueError, match=r"`torch_steps` must be one of.*fast"):
        list(search(model, SOURCES, 3, "greedy"))
