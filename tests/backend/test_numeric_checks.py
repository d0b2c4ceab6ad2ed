"""NaN without constants, and `tf.debugging.enable_check_numerics`."""

import keras
import numpy as np
import pytest

from keras_attn.backend import nan_where
from keras_attn.models import GPT
from keras_attn.ops import attend
from keras_attn.ops.visibility import make_visibility
from keras_attn.training import Perplexity, SequenceCrossentropy
from tests.helpers.contract import randomize
from tests.helpers.tiny_models import (
    LABELS,
    SOURCE,
    TARGET,
    tiny_transformer,
)

tensorflow_only = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="only TensorFlow has it"
)


@pytest.fixture
def checked():
    """Enables the check in a test."""
    tf = pytest.importorskip("tensorflow")
    tf.debugging.enable_check_numerics()
    yield tf
    tf.debugging.disable_check_numerics()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_nan_where(dtype):
    x = keras.ops.cast([[1.5, -2.0], [0.0, 3.0]], dtype)
    condition = keras.ops.convert_to_tensor([[False], [True]])
    found = nan_where(condition, x)
    assert keras.backend.standardize_dtype(found.dtype) == dtype
    found = keras.ops.convert_to_numpy(keras.ops.cast(found, "float32"))
    np.testing.assert_array_equal(found, [[1.5, -2.0], [np.nan, np.nan]])


def tiny_gpt():
    model = GPT(
        11,
        num_layers=1,
        num_heads=2,
        hidden_dim=8,
        intermediate_dim=12,
        max_sequence_length=8,
        dropout=0.0,
        attention_dropout=0.0,
    )
    return randomize(model)


@tensorflow_only
def test_fit_and_generate_pass_the_check():
    tf = pytest.importorskip("tensorflow")
    results = []
    for enable in (False, True):
        model = tiny_transformer()
        model.compile(
            keras.optimizers.SGD(0.1),
            SequenceCrossentropy(0.1),
            metrics=[Perplexity()],
        )
        if enable:
            tf.debugging.enable_check_numerics()
        try:
            history = model.fit(
                (SOURCE, TARGET), LABELS, epochs=2, verbose=0
            ).history
            decoded = model.generate(SOURCE, max_new_tokens=3, strategy="beam")
        finally:
            tf.debugging.disable_check_numerics()
        results.append((history["loss"], history["perplexity"], decoded))
    for found, expected in zip(results[1][:2], results[0][:2], strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5)
    np.testing.assert_array_equal(results[1][2].tokens, results[0][2].tokens)


@tensorflow_only
def test_the_check_still_finds_nan(checked):
    tf = checked
    model = tiny_gpt()
    model.compile("sgd", SequenceCrossentropy())
    model.generate(TARGET[:, :2], max_new_tokens=2)
    labels = LABELS.copy()
    labels[0, 0] = 99
    with pytest.raises(tf.errors.InvalidArgumentError, match="NaN"):
        model.evaluate(TARGET, labels, verbose=0)
    model.evaluate(TARGET, LABELS, verbose=0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="NaN"):
        keras.ops.log(keras.ops.convert_to_tensor(-1.0))


@tensorflow_only
def test_blockwise_attention_passes_the_check(checked):
    tf = checked
    rng = np.random.default_rng(0)
    query = tf.constant(rng.normal(size=(1, 6, 1, 4)).astype("float32"))
    causal = make_visibility(6, 6, causal=True)

    @tf.function
    def slope(query):
        with tf.GradientTape() as tape:
            tape.watch(query)
            output = attend(query, query, query, causal, kernel="blockwise")
            total = tf.reduce_sum(output**2)
        return tape.gradient(total, query)

    found = slope(query)
    checked.debugging.disable_check_numerics()
    np.testing.assert_allclose(found, slope(query), atol=1e-6)
