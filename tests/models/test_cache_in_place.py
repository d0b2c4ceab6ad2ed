"""The compiled decoding loop writes each cache once per step."""

import re

import keras
import numpy as np
import pytest

import keras_attn
from keras_attn.decoding import BeamSearch, GreedySearch
from keras_attn.decoding.loop import run

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "jax",
    reason="inspects the HLO that JAX compiles",
)
if keras.backend.backend() == "jax":
    import jax

LAYERS, HEADS, WIDTH, LENGTH = 2, 4, 32, 24
# XLA's defaults, whatever XLA_FLAGS sets for the tests.
OPTIONS = {
    "xla_backend_optimization_level": 3,
    "xla_llvm_disable_expensive_passes": False,
    "xla_cpu_use_fusion_emitters": True,
}


def _program(strategy, rows, window):
    """Returns the compiled HLO text of a complete search."""
    model = keras_attn.models.Transformer(
        50,
        num_layers=LAYERS,
        num_heads=HEADS,
        hidden_dim=WIDTH,
        intermediate_dim=64,
        sliding_window=window,
    )

    def search(ids):
        found = run(strategy, model, ids, LENGTH, None, None, (), ())
        return tuple(found[:3])

    ids = np.full((rows, 7), 5, "int32")
    return (
        jax.jit(search).lower(ids).compile(compiler_options=OPTIONS).as_text()
    )


@pytest.mark.parametrize(
    ("num_beams", "rows", "window"), [(1, 1, None), (4, 3, None), (4, 3, 5)]
)
def test_step_does_not_copy_the_cache(num_beams, rows, window):
    strategy = GreedySearch() if num_beams == 1 else BeamSearch(num_beams)
    text = _program(strategy, rows, window)
    (name,) = set(re.findall(r"body=(%\S+?),", text))
    body = re.search(rf"^{re.escape(name)} .*?^}}", text, re.M | re.S)[0]
    features, slots = WIDTH // HEADS, num_beams * (window or LENGTH)
    for shape in ((features, slots), (slots, features)):
        buffer = re.escape(f"f32[{rows * HEADS},{shape[0]},{shape[1]}]")
        made = re.findall(rf"(\S+) = {buffer}\S* (\S+?)\(", body)
        # Reading the loop state is not a copy.
        made = [name for name, how in made if how != "get-tuple-element"]
        assert len(made) == LAYERS, made
        assert all("dynamic-update-slice" in name for name in made), made
