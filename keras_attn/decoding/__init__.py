"""F3: decoding strategies; they know the decoding protocol and no layer."""

from keras_attn.decoding.generate import generate
from keras_attn.decoding.greedy_search import GreedySearch
from keras_attn.decoding.protocol import Decoded, DecodingState

__all__ = ["Decoded", "DecodingState", "GreedySearch", "generate"]
