"""Pretrained weights. Requires the extra `keras-attn[pretrained]`."""

from keras_attn.pretrained.load import load
from keras_attn.pretrained.register import register_family
from keras_attn.pretrained.save import save

__all__ = ["load", "register_family", "save"]
