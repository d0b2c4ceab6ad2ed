"""F4: encoder and decoder blocks: sublayer + residual + norm."""

from keras_attn.blocks.decoder_block import DecoderBlock
from keras_attn.blocks.encoder_block import EncoderBlock
from keras_attn.blocks.residual import Residual

__all__ = ["DecoderBlock", "EncoderBlock", "Residual"]
