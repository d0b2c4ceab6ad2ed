"""The captured decoding step of the Transformer equals the plain one."""

import gc
import weakref

import keras
import numpy as np
import pytest
from keras import ops

import keras_attn
from tests.helpers.captured import captured_step

pytestmark = [
    pytest.mark.captured_steps,
    pytest.mark.skipif(
        keras.backend.backend() != "torch",
        reason="other backends compile the loop",
    ),
]
if keras.backend.backend() == "torch":
    import torch

STEPS = 9
SOURCE = np.array([[5, 6, 7, 8, 0], [9, 5, 2, 0, 0]], "int32")


def _model(**kwargs):
    config = {
        "num_layers": 2,
        "num_heads": 2,
        "hidden_dim": 16,
        "intermediate_dim": 32,
    }
    return keras_attn.models.Transformer(30, **(config | kwargs))


def _logits(model, captured, source=SOURCE):
    """Returns the logits of STEPS greedy steps."""
    with torch.no_grad():
        step = model.decode_step
        if captured:
            step = captured_step(step, model.variables)
        state = model.start_decoding(ops.convert_to_tensor(source), STEPS)
        tokens, found = state.tokens, []
        for _ in range(STEPS):
            logits, state = step(tokens, state)
            found.append(ops.convert_to_numpy(ops.cast(logits, "float32")))
            tokens = ops.cast(ops.argmax(logits[:, -1:], axis=-1), "int32")
    return np.concatenate(found, axis=1)


def _check(model, source=SOURCE, tolerance=1e-6):
    expected = _logits(model, False, source)
    found = _logits(model, True, source)
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)
    return found


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"normalize_first": True, "gated": True, "activation": "gelu"},
        {"tie_word_embeddings": False, "target_vocabulary_size": 12},
        {"position_embedding": "learned", "max_sequence_length": 16},
        {"dtype": "mixed_bfloat16"},
        {"dtype": "bfloat16"},
        {"dtype": "float16"},
        {"dropout": 0.5, "attention_dropout": 0.5, "activation_dropout": 0.5},
    ],
    ids=str,
)
def test_captured_step_equals_plain_step(config):
    _check(_model(**config))


def test_changed_weights_need_no_new_capture(captures):
    model = _model()
    first = _check(model)
    model.set_weights([value * 1.5 for value in model.get_weights()])
    second = _check(model)
    assert np.abs(first - second).max() > 0.01
    model.compile("sgd", "mse")
    model.train_on_batch((SOURCE, SOURCE), np.ones((2, 5, 30)))
    assert np.abs(_check(model) - second).max() > 0
    assert len(captures) == 1


def test_lora_is_captured_again(captures):
    model = _model()
    before = _check(model)
    denses = [
        layer
        for layer in model._flatten_layers()
        if hasattr(layer, "enable_lora") and hasattr(layer, "lora_enabled")
    ]
    assert denses
    for layer in denses:
        layer.enable_lora(2)
    for variable in model.trainable_variables:
        if "lora" in variable.name:
            variable.assign(keras.random.normal(variable.shape))
    assert np.abs(_check(model) - before).max() > 0.01
    assert len(captures) == 2


# Keras's quantized embedding transposes its scales with `x.T`.
@pytest.mark.filterwarnings("ignore:.*does not have a `quantize` method")
@pytest.mark.filterwarnings("ignore:(?s).*The use of `x.T`")
def test_quantization_is_captured_again(captures):
    model = _model()
    before = _check(model)
    model.quantize("int8")
    after = _check(model)
    assert 0 < np.abs(after - before).max() < 1
    assert len(captures) == 2


def test_another_dtype_policy_is_captured_again(captures):
    model = _model()
    _check(model)
    for layer in model._flatten_layers():
        layer.dtype_policy = "mixed_bfloat16"
    _check(model)
    assert len(captures) == 2


def test_models_and_batches_do_not_share_graphs(captures):
    models = [_model(), _model()]
    for _ in range(2):
        for model in models:
            _check(model)
            _check(model, SOURCE[:1])
    assert len(captures) == 4


def test_cache_is_not_copied():
    model = _model()
    with torch.no_grad():
        step = captured_step(model.decode_step, model.variables)
        state = model.start_decoding(ops.convert_to_tensor(SOURCE), STEPS)
        addresses = [
            x.data_ptr() for x in state.hypothesis.keys + state.memory.values
        ]
        for _ in range(3):
            _, state = step(state.tokens, state)
        assert addresses == [
            x.data_ptr() for x in state.hypothesis.keys + state.memory.values
        ]


def test_captured_and_plain_steps_can_alternate():
    model = _model()
    expected = _logits(model, False)
    with torch.no_grad():
        steps = (
            captured_step(model.decode_step, model.variables),
            (model.decode_step),
        )
        state = model.start_decoding(ops.convert_to_tensor(SOURCE), STEPS)
        tokens, found = state.tokens, []
        for index in range(STEPS):
            logits, state = steps[index % 2](tokens, state)
            found.append(ops.convert_to_numpy(logits))
            tokens = ops.cast(ops.argmax(logits[:, -1:], axis=-1), "int32")
    np.testing.assert_allclose(np.concatenate(found, 1), expected, atol=1e-6)


@pytest.mark.parametrize("strategy", ["greedy", "beam"])
def test_generate_equals_plain_steps(strategy, captures):
    model = _model()
    found = [model.generate(SOURCE, 12, strategy) for _ in range(2)]
    assert captures == ["`Search.start`", "`Search.step`"]
    model.torch_steps = "plain"
    expected = model.generate(SOURCE, 12, strategy)
    assert len(captures) == 2
    for decoded in found:
        np.testing.assert_array_equal(decoded.tokens, expected.tokens)
        np.testing.assert_allclose(decoded.scores, expected.scores, rtol=1e-6)


def test_graphs_do_not_keep_the_model_alive():
    model = _model()
    _logits(model, True)
    reference = weakref.ref(model)
    del model
    gc.collect()
    assert reference() is None
