"""Freezing, unfreezing and LoRA adapters."""

import keras
import numpy as np
import pytest

from keras_attn.models import Bert, SequenceClassifier
from keras_attn.training import (
    enable_lora,
    freeze,
    layerwise_lr_multipliers,
    unfreeze,
)
from tests.helpers.contract import randomize

IDS = np.array([[2, 5, 6, 3], [2, 8, 3, 0]], "int32")
LABELS = np.array([0, 1])


def classifier():
    encoder = Bert(
        11,
        2,
        2,
        8,
        12,
        dropout=0.0,
        attention_dropout=0.0,
        max_sequence_length=8,
    )
    return randomize(SequenceClassifier(encoder, 2, dropout=0.0), scale=0.3)


def moved(model, steps=3):
    """Trains and returns the paths of the weights that changed."""
    model.compile(
        keras.optimizers.Adam(0.01),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    before = {w.path: keras.ops.convert_to_numpy(w) + 0 for w in model.weights}
    model.fit(IDS, LABELS, epochs=steps, verbose=0)
    return {
        w.path
        for w in model.weights
        if not np.array_equal(keras.ops.convert_to_numpy(w), before[w.path])
    }


def test_all_weights_learn_by_default():
    model = classifier()
    learned = moved(model)
    # A key bias does not change the softmax.
    still = {w.path for w in model.weights} - learned
    assert all(path.endswith("key/bias") for path in still)


def test_frozen_weights_do_not_change():
    model = classifier()
    frozen = freeze(model, "embedding|positions|block_0/")
    assert frozen and all(
        "embedding" in path or "positions" in path or "block_0/" in path
        for path in frozen
    )
    learned = moved(model)
    assert not learned & set(frozen)
    assert {"block_1/feed_forward/inner/kernel", "output/kernel"} <= learned
    assert freeze(model, "embedding") == []


def test_unfrozen_weights_learn():
    model = classifier()
    assert len(freeze(model)) == len(model.weights)
    assert model.trainable_weights == []
    assert unfreeze(model, "^output/") == ["output/kernel", "output/bias"]
    assert moved(model) == {"output/kernel", "output/bias"}


def test_only_adapters_learn():
    model = classifier()
    before = keras.ops.convert_to_numpy(model(IDS))
    found = enable_lora(model, 2, also_train="^output/")
    assert found == [
        f"block_{i}/self_attention/{part}"
        for i in (0, 1)
        for part in ("query", "value")
    ]
    np.testing.assert_allclose(
        keras.ops.convert_to_numpy(model(IDS)), before, atol=1e-6
    )
    sizes = sum(int(np.prod(w.shape)) for w in model.trainable_weights)
    # (8, 2, r) and (r, 4) in each of four layers, and the head.
    assert sizes == 4 * (8 * 2 * 2 + 2 * 4) + 8 * 2 + 2
    learned = moved(model, steps=5)
    assert {p for p in learned if "lora" not in p} == {
        "output/kernel",
        "output/bias",
    }
    assert len(learned) == 2 + 2 * 4


def test_adapters_of_other_layers():
    model = classifier()
    found = enable_lora(model, 1, "feed_forward|token_embedding")
    assert "token_embedding/table" in found
    assert "block_1/feed_forward/outer" in found
    learned = moved(model)
    assert learned and all("lora" in path for path in learned)


@pytest.mark.parametrize(
    "function, arguments, message",
    [
        (freeze, ["nothing"], "`pattern` must be found in a path, such as '"),
        (unfreeze, ["("], r"`pattern` must be a regular expression.*'\('"),
        (enable_lora, [0], "`rank` must be at least 1"),
        (enable_lora, [2, "norm$"], "`pattern` must be found in a path"),
        (enable_lora, [2, "query", "x"], "`also_train` must be found"),
    ],
)
def test_invalid_arguments_raise(function, arguments, message):
    model = classifier()
    before = [weight.trainable for weight in model.weights]
    with pytest.raises(ValueError, match=message):
        function(model, *arguments)
    assert [weight.trainable for weight in model.weights] == before


def test_second_adapter_raises():
    model = classifier()
    enable_lora(model, 2)
    with pytest.raises(ValueError, match=r"must have no adapters yet.*query"):
        enable_lora(model, 2)


@pytest.mark.one_backend
@pytest.mark.parametrize("change", [freeze, unfreeze])
@pytest.mark.parametrize("pattern", [None, 1, b"d", ["a"]])
def test_patterns_of_another_type_raise(change, pattern):
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    with pytest.raises(ValueError, match="`pattern` must be a str"):
        change(model, pattern)


@pytest.mark.one_backend
@pytest.mark.parametrize(
    "call",
    [
        freeze,
        unfreeze,
        lambda model: enable_lora(model, 2),
        lambda model: layerwise_lr_multipliers(model, 0.5),
    ],
)
def test_invalid_models_raise(call):
    for model in (None, "a", 3):
        with pytest.raises(ValueError, match="`model` must be a Keras model"):
            call(model)
    with pytest.raises(ValueError, match="`model` must be built"):
        call(keras.Sequential([keras.layers.Dense(1)]))
