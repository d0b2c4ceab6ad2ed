"""Transformer blocks: sublayers with residual connection and layer norm."""

from keras_attn.blocks.decoder_block import DecoderBlock
from keras_attn.blocks.encoder_block import EncoderBlock
from keras_attn.blocks.residual import Residual
from keras_attn.blocks.segment_block import SegmentBlock
from keras_attn.blocks.two_stream_block import TwoStreamBlock

__all__ = [
    "DecoderBlock",
    "EncoderBlock",
    "Residual",
    "SegmentBlock",
    "TwoStreamBlock",
]
