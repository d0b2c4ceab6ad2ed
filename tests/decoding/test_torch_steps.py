"""How a model's steps run on PyTorch: captured, compiled, or as they are."""

import shutil

import keras
import numpy as np
import pytest

from keras_attn.decoding import BeamSearch, generate, stream
from tests.decoding.tree import Tree

TORCH = keras.backend.backend() == "torch"
torch_only = pytest.mark.skipif(not TORCH, reason="others compile the loop")
SOURCES = np.array([[0], [1]], "int32")


class Looking(Tree):
    """A tree whose steps look at values."""

    def decode_step(self, tokens, state):
        """Counts on NumPy how many tokens there are, and steps."""
        self.seen = int(keras.ops.convert_to_numpy(tokens).size)
        return super().decode_step(tokens, state)


@torch_only
@pytest.mark.parametrize("search", [generate, stream])
def test_a_step_that_looks_at_values_is_told_the_way_out(search):
    model = Looking.random(2, size=6, length=3)
    with pytest.raises(RuntimeError, match='`torch_steps` is "plain"'):
        list(search(model, SOURCES, 3, "greedy"))


@torch_only
def test_plain_steps_run_as_they_are(captures):
    wanted = generate(
        Tree.random(2, size=6, length=3), SOURCES, 3, BeamSearch(3, 2)
    )
    assert len(captures) == 2  # the start and the turn
    model = Looking.random(2, size=6, length=3)
    model.torch_steps = "plain"
    found = generate(model, SOURCES, 3, BeamSearch(3, 2))
    assert len(captures) == 2 and model.seen == 6 and model.steps > 1
    for one, other in zip(found[:3], wanted[:3], strict=True):
        np.testing.assert_array_equal(one, other)
    *_, last = stream(model, SOURCES, 3, BeamSearch(3, 2))
    np.testing.assert_array_equal(last.tokens, wanted.tokens)


# PyTorch's compiler warns of parts of its own.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@torch_only
@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no compiler")
def test_compiled_steps_find_the_same():
    strategy = BeamSearch(2, 2, min_new_tokens=2)
    wanted = generate(Tree.random(2, 6, 3), SOURCES, 3, strategy)
    model = Tree.random(2, 6, 3)
    model.torch_steps = "compiled"
    for _ in range(2):
        found = generate(model, SOURCES, 3, strategy)
        np.testing.assert_array_equal(found.tokens, wanted.tokens)
        np.testing.assert_allclose(found.scores, wanted.scores, rtol=1e-5)
    model.variables[0].assign(-keras.ops.convert_to_numpy(model.variables[0]))
    other = generate(model, SOURCES, 3, strategy)
    assert (other.scores != found.scores).all()


@pytest.mark.parametrize("search", [generate, stream])
def test_another_way_is_refused(search):
    model = Tree.random(2, size=6, length=3)
    model.torch_steps = "fast"
    with pytest.raises(ValueError, match=r"`torch_steps` must be one of.*fast"):
        list(search(model, SOURCES, 3, "greedy"))
