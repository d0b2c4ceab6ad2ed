"""Transformer config and file round trips."""

import keras
import numpy as np
import pytest

from keras_attn.layers import RotaryPosition, T5Position
from keras_attn.models import Transformer
from keras_attn.models.compile_config import portable_compile_config
from keras_attn.training import (
    SequenceCrossentropy,
    TokenAccuracy,
    WarmupSchedule,
)
from tests.helpers.arrays import to_numpy
from tests.helpers.tiny_models import LABELS, SOURCE, TARGET, tiny_transformer

FORMS = {
    "paper": {},
    "pre-norm": {
        "normalize_first": True,
        "gated": True,
        "position_embedding": "learned",
        "max_sequence_length": 6,
        "tie_word_embeddings": False,
        "target_vocabulary_size": 13,
    },
    "Marian's": {
        "position_embedding_layout": "halves",
        "scale_embedding": False,
        "output_bias": True,
        "num_decoder_layers": 2,
        "num_decoder_heads": 4,
        "decoder_intermediate_dim": 20,
    },
    "relative": {"position_embedding": None, "relative": True, "num_layers": 2},
}


@pytest.mark.parametrize("form", FORMS)
def test_weights_exist_before_the_first_call(form):
    model = tiny_transformer(random=False, **FORMS[form])
    assert model.built
    before = [v.path for v in model.variables]
    assert len(set(before)) == len(before)
    model((SOURCE, TARGET), training=True)
    assert [v.path for v in model.variables] == before
    for variable in model.trainable_weights:
        assert np.isfinite(to_numpy(variable)).all()


@pytest.mark.parametrize("form", FORMS)
def test_keras_file_round_trip(form, tmp_path):
    model = tiny_transformer(**FORMS[form])
    path = tmp_path / "model.keras"
    model.save(path)
    loaded = keras.saving.load_model(path)
    assert isinstance(loaded, Transformer)
    assert loaded.get_config() == model.get_config()
    np.testing.assert_array_equal(
        to_numpy(loaded((SOURCE, TARGET))), to_numpy(model((SOURCE, TARGET)))
    )


def test_positions_of_each_layer_round_trip(tmp_path):
    source = T5Position(2, 8, 6, name="source_relative")
    target = T5Position(2, 8, 6, bidirectional=False, name="target_relative")
    model = tiny_transformer(
        num_layers=3,
        position_embedding=None,
        encoder_attention_position=[source, RotaryPosition(10.0), source],
        decoder_attention_position=[target, None, target],
    )
    path = tmp_path / "model.keras"
    model.save(path)
    loaded = keras.saving.load_model(path)
    assert loaded.get_config() == model.get_config()
    # The layers that share a table of biases still share it.
    assert len(loaded.weights) == len(model.weights)
    first, none, last = loaded.decoder_attention_position
    assert first is last and none is None
    first, rotary, last = loaded.encoder_attention_position
    assert first is last and rotary.max_wavelength == 10.0
    np.testing.assert_array_equal(
        to_numpy(loaded((SOURCE, TARGET))), to_numpy(model((SOURCE, TARGET)))
    )


@pytest.mark.parametrize("form", FORMS)
def test_weights_file_round_trip(form, tmp_path):
    model = tiny_transformer(**FORMS[form])
    other = tiny_transformer(random=False, **FORMS[form])
    path = tmp_path / "model.weights.h5"
    model.save_weights(path)
    other.load_weights(path)
    for mine, theirs in zip(model.weights, other.weights, strict=True):
        np.testing.assert_array_equal(to_numpy(mine), to_numpy(theirs))


def test_config_has_every_argument():
    config = {
        "source_vocabulary_size": 11,
        "target_vocabulary_size": 13,
        "num_layers": 1,
        "num_heads": 2,
        "hidden_dim": 8,
        "intermediate_dim": 12,
        "dropout": 0.4,
        "attention_dropout": 0.1,
        "activation_dropout": 0.2,
        "activation": "gelu",
        "gated": True,
        "normalize_first": True,
        "epsilon": 1e-3,
        "position_embedding": "learned",
        "position_embedding_layout": "halves",
        "max_sequence_length": 6,
        "scale_embedding": False,
        "tie_word_embeddings": False,
        "output_bias": False,
        "num_decoder_layers": 2,
        "num_decoder_heads": 4,
        "decoder_intermediate_dim": 20,
        "pad_id": 4,
        "start_id": 5,
        "end_id": 6,
        "name": "all_but_the_defaults",
    }
    model = Transformer(**config)
    restored = Transformer.from_config(model.get_config()).get_config()
    assert restored == model.get_config()
    assert {name: restored[name] for name in config} == config


def test_arguments_are_passed_to_the_blocks():
    model = Transformer(
        11,
        num_layers=2,
        num_heads=2,
        hidden_dim=8,
        intermediate_dim=12,
        dropout=0.4,
        attention_dropout=0.1,
        activation_dropout=0.2,
        activation="gelu",
        gated=True,
        normalize_first=True,
        epsilon=1e-3,
        dtype="mixed_bfloat16",
    )
    blocks = [*model._encoder_blocks, *model._decoder_blocks]
    assert len(blocks) == 4
    for block in blocks:
        config = block.get_config()
        for name in (
            "num_heads",
            "intermediate_dim",
            "dropout",
            "attention_dropout",
            "activation_dropout",
            "activation",
            "gated",
            "normalize_first",
            "epsilon",
            "dtype",
        ):
            assert config[name] == model.get_config()[name], name


def test_training_resumes_from_a_compiled_file(tmp_path):
    model = tiny_transformer()
    model.compile(
        keras.optimizers.Adam(WarmupSchedule(8, 10)),
        SequenceCrossentropy(label_smoothing=0.1),
        weighted_metrics=[TokenAccuracy()],
    )
    model.fit((SOURCE, TARGET), LABELS, epochs=2, verbose=0)
    path = tmp_path / "model.keras"
    model.save(path)
    loaded = keras.saving.load_model(path)
    assert int(loaded.optimizer.iterations) == 2
    histories = [
        m.fit((SOURCE, TARGET), LABELS, epochs=2, verbose=0).history
        for m in (model, loaded)
    ]
    assert set(histories[0]) == {"loss", "token_accuracy"}
    # Step, moments and schedule are all restored.
    np.testing.assert_allclose(
        histories[1]["loss"], histories[0]["loss"], rtol=1e-5
    )


def test_compile_config_is_backend_independent():
    model = tiny_transformer()
    model.compile("adam", SequenceCrossentropy(), jit_compile=False)
    config = model.get_compile_config()
    assert config["jit_compile"] == "auto"
    assert config["optimizer"]["module"] == "keras.optimizers"
    written = {
        "optimizer": {
            "module": "keras.optimizers",
            "class_name": "LossScaleOptimizer",
            "config": {
                "inner_optimizer": {
                    "module": "keras.src.backend.torch.optimizers.torch_adam",
                    "class_name": "Adam",
                    "registered_name": "Adam",
                    "config": {"learning_rate": 0.1},
                }
            },
        },
        "loss_weights": None,
        "metrics": [["accuracy"]],
        "jit_compile": True,
    }
    portable = portable_compile_config(written)
    inner = portable["optimizer"]["config"]["inner_optimizer"]
    assert inner == {
        "module": "keras.optimizers",
        "class_name": "Adam",
        "registered_name": None,
        "config": {"learning_rate": 0.1},
    }
    assert portable["metrics"] == [["accuracy"]]
    # The argument itself is unchanged.
    assert written["jit_compile"] is True
    assert portable_compile_config(None) is None
