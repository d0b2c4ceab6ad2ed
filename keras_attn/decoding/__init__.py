"""F3: decoding strategies; they know the decoding protocol and no layer."""

from keras_attn.decoding.beam_search import BeamSearch
from keras_attn.decoding.generate import generate
from keras_attn.decoding.greedy_search import GreedySearch
from keras_attn.decoding.protocol import Decoded, DecodingState
from keras_attn.decoding.sampling import Sampling
from keras_attn.decoding.strategy import Live
from keras_attn.decoding.stream import Streamed, stream

__all__ = [
    "BeamSearch",
    "Decoded",
    "DecodingState",
    "GreedySearch",
    "Live",
    "Sampling",
    "Streamed",
    "generate",
    "stream",
]
