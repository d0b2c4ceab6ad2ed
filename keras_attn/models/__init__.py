"""F5: whole models."""

from keras_attn.models.doors import check_ids
from keras_attn.models.transformer import Transformer

__all__ = ["Transformer", "check_ids"]
