"""Attention, position encoding and embedding layers."""

from keras_attn.layers.alibi_position import ALiBiPosition
from keras_attn.layers.attention_position import AttentionPosition
from keras_attn.layers.character_embedding import CharacterEmbedding
from keras_attn.layers.dropout import Dropout
from keras_attn.layers.feed_forward import FeedForward
from keras_attn.layers.glimpse_sensor import GlimpseSensor
from keras_attn.layers.log_mel_spectrogram import LogMelSpectrogram
from keras_attn.layers.mixture_of_experts import MixtureOfExperts
from keras_attn.layers.multi_head_attention import MultiHeadAttention
from keras_attn.layers.positional_embedding import PositionalEmbedding
from keras_attn.layers.reinforce import Reinforce
from keras_attn.layers.rotary_position import RotaryPosition
from keras_attn.layers.scored_attention import ScoredAttention
from keras_attn.layers.t5_position import T5Position
from keras_attn.layers.token_embedding import TokenEmbedding
from keras_attn.layers.transformer_xl_position import TransformerXLPosition
from keras_attn.layers.xlnet_position import XLNetPosition

__all__ = [
    "ALiBiPosition",
    "AttentionPosition",
    "CharacterEmbedding",
    "Dropout",
    "FeedForward",
    "GlimpseSensor",
    "LogMelSpectrogram",
    "MixtureOfExperts",
    "MultiHeadAttention",
    "PositionalEmbedding",
    "Reinforce",
    "RotaryPosition",
    "ScoredAttention",
    "T5Position",
    "TokenEmbedding",
    "TransformerXLPosition",
    "XLNetPosition",
]
