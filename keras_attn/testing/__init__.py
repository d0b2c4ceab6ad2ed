"""Checks of your own attention layers, blocks and generative models."""

from keras_attn.testing.attention_layer import (
    ATTENTION_LAYER_CHECKS,
    check_attention_layer,
)
from keras_attn.testing.block import BLOCK_CHECKS, check_block
from keras_attn.testing.check_failure import CheckFailure
from keras_attn.testing.generative_model import (
    GENERATIVE_MODEL_CHECKS,
    check_generative_model,
)
from keras_attn.testing.host_reads import host_reads

__all__ = [
    "ATTENTION_LAYER_CHECKS",
    "BLOCK_CHECKS",
    "GENERATIVE_MODEL_CHECKS",
    "CheckFailure",
    "check_attention_layer",
    "check_block",
    "check_generative_model",
    "host_reads",
]
