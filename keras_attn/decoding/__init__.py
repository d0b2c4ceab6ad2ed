"""Decoding strategies and the loop that runs them."""

from keras_attn.decoding.allowed_tokens import (
    AllowedSequences,
    AllowedTokens,
    ForcedWords,
    LogitBias,
)
from keras_attn.decoding.beam_search import BeamSearch
from keras_attn.decoding.constrained_beam_search import ConstrainedBeamSearch
from keras_attn.decoding.diverse_beam_search import DiverseBeamSearch
from keras_attn.decoding.generate import generate
from keras_attn.decoding.greedy_search import GreedySearch
from keras_attn.decoding.logits_rule import LogitsRule
from keras_attn.decoding.loop import Choice, SearchSpec
from keras_attn.decoding.penalties import (
    FrequencyPenalty,
    NoRepeatNGram,
    PresencePenalty,
    RepetitionPenalty,
)
from keras_attn.decoding.probability_filters import (
    EpsilonCutoff,
    MinP,
    Temperature,
    TypicalP,
)
from keras_attn.decoding.protocol import Decoded, DecodingState
from keras_attn.decoding.sampling import Sampling
from keras_attn.decoding.single_sequence_strategy import SingleSequenceStrategy
from keras_attn.decoding.speculative import (
    PromptLookup,
    SpeculativeCounts,
    SpeculativeDecoding,
)
from keras_attn.decoding.strategy import ActiveHypotheses, Strategy
from keras_attn.decoding.stream import StreamedToken, stream

__all__ = [
    "ActiveHypotheses",
    "AllowedSequences",
    "AllowedTokens",
    "BeamSearch",
    "Choice",
    "ConstrainedBeamSearch",
    "Decoded",
    "DecodingState",
    "DiverseBeamSearch",
    "EpsilonCutoff",
    "ForcedWords",
    "FrequencyPenalty",
    "GreedySearch",
    "LogitBias",
    "LogitsRule",
    "MinP",
    "NoRepeatNGram",
    "PresencePenalty",
    "PromptLookup",
    "RepetitionPenalty",
    "Sampling",
    "SearchSpec",
    "SingleSequenceStrategy",
    "SpeculativeCounts",
    "SpeculativeDecoding",
    "Strategy",
    "StreamedToken",
    "Temperature",
    "TypicalP",
    "generate",
    "stream",
]
