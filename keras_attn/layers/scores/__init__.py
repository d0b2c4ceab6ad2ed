"""The six scores of `ScoredAttention`, a layer each."""

from keras_attn.layers.scores.additive_score import AdditiveScore
from keras_attn.layers.scores.cosine_score import CosineScore
from keras_attn.layers.scores.dot_score import DotScore, ScaledDotScore
from keras_attn.layers.scores.general_score import GeneralScore
from keras_attn.layers.scores.location_score import LocationScore

SCORES = {
    "dot": DotScore,
    "scaled_dot": ScaledDotScore,
    "general": GeneralScore,
    "additive": AdditiveScore,
    "location": LocationScore,
    "cosine": CosineScore,
}
