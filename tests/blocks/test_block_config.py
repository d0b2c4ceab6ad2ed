"""The hyper-parameters that blocks and models share."""

import dataclasses
import inspect

import keras
import numpy as np
import pytest

from keras_attn.blocks import DecoderBlock, EncoderBlock
from keras_attn.blocks.block import Block
from keras_attn.blocks.block_config import BlockConfig

one_backend = pytest.mark.one_backend
FIELDS = {field.name: field for field in dataclasses.fields(BlockConfig)}


@one_backend
def test_blocks_have_an_argument_for_each_field():
    parameters = inspect.signature(Block.__init__).parameters
    for name, field in FIELDS.items():
        default = parameters[name].default
        if field.default is dataclasses.MISSING:
            assert default is inspect.Parameter.empty, name
        else:
            assert default == field.default, name


@one_backend
@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"num_heads": 0}, "`num_heads` must be a positive integer.*0"),
        ({"intermediate_dim": 1.5}, "`intermediate_dim` must be .*1.5"),
        ({"key_dim": -1}, "`key_dim` must be a positive integer.*-1"),
        ({"num_key_value_heads": 0}, "`num_key_value_heads` must be .*0"),
        ({"sliding_window": 0}, "`sliding_window` must be a positive.*0"),
        ({"dropout": 1.0}, "`dropout` must .*1.0"),
        ({"attention_dropout": -0.1}, "`attention_dropout` must .*-0.1"),
        ({"activation_dropout": 2}, "`activation_dropout` must .*2"),
    ],
)
def test_invalid_values_raise(arguments, message):
    valid = {"num_heads": 2, "intermediate_dim": 4}
    with pytest.raises(ValueError, match=message):
        BlockConfig(**valid | arguments)
    with pytest.raises(ValueError, match=message):
        EncoderBlock(**valid | arguments)


@one_backend
def test_with_options_takes_only_fields():
    kwargs = {"key_dim": 3, "name": "model"}
    config = BlockConfig.with_options(kwargs, num_heads=2, intermediate_dim=4)
    assert (config.key_dim, kwargs) == (3, {"name": "model"})
    with pytest.raises(TypeError, match="num_heads"):
        BlockConfig.with_options({}, intermediate_dim=4)


@one_backend
def test_head_dim():
    config = BlockConfig(num_heads=2, intermediate_dim=4)
    assert config.head_dim(6) == 3
    assert dataclasses.replace(config, key_dim=5).head_dim(7) == 5
    with pytest.raises(ValueError, match=r"`num_heads` must divide.*2 and 7"):
        config.head_dim(7)


@one_backend
def test_config_round_trip():
    config = BlockConfig(num_heads=2, intermediate_dim=4, activation="gelu")
    assert config.activation is keras.activations.gelu
    assert config.get_config()["activation"] == "gelu"
    assert BlockConfig(**config.get_config()) == config


def test_a_block_has_the_fields_as_attributes():
    block = DecoderBlock(num_heads=2, intermediate_dim=4, sliding_window=3)
    for name in FIELDS:
        assert getattr(block, name) == getattr(block._block_config, name)
    assert block.sliding_window == 3
    assert block(np.ones((1, 5, 8), "float32")).shape == (1, 5, 8)
