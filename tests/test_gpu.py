"""What changes on a GPU: kernels, precision and where tensors live."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.training import SequenceCrossentropy
from tests.models.tiny import (
    LABELS,
    SOURCE,
    TARGET,
    tiny_transformer,
    untrained_transformer,
)
from tests.test_across_backends import (
    assert_same_numbers,
    computed,
    stored_numbers,
)

pytestmark = pytest.mark.gpu


def test_same_numbers_as_on_the_cpu():
    # Matrix products may run in TensorFloat-32, which keeps ten bits.
    assert_same_numbers(computed(), stored_numbers(), 1e-3, 1e-3)


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_learns_in_mixed_precision(policy):
    model = untrained_transformer(dtype=policy)
    model.compile(keras.optimizers.Adam(0.02), SequenceCrossentropy())
    history = model.fit((SOURCE, TARGET), LABELS, epochs=40, verbose=0)
    losses = history.history["loss"]
    assert np.isfinite(losses).all()
    assert losses[-1] < losses[0] / 4
    decoded = model.generate(SOURCE, max_length=4)
    np.testing.assert_array_equal(decoded.tokens[:, 0, :3], LABELS)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_padding_changes_nothing_in_half_precision(dtype):
    model = tiny_transformer(dtype=f"mixed_{dtype}")
    logits, padded = (
        ops.convert_to_numpy(ops.cast(model((source, target)), "float32"))
        for source, target in (
            (SOURCE[:1], TARGET[:1]),
            (np.pad(SOURCE, ((0, 0), (4, 0))), TARGET),
        )
    )
    np.testing.assert_allclose(padded[:1], logits, atol=0.05)
