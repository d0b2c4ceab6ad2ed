"""Functional attention: kernels, masks, positions, scores."""

from keras_attn.ops.attend import attend
from keras_attn.ops.capture import capture_weights
from keras_attn.ops.plan import AttentionPlan, attention_plan
from keras_attn.ops.position_bias import PositionBias
from keras_attn.ops.positions import packed_positions, positions_from_mask
from keras_attn.ops.relative import relative_shift
from keras_attn.ops.scores import scaled_dot_scores
from keras_attn.ops.sinusoids import sinusoid
from keras_attn.ops.visibility import Visibility
from keras_attn.ops.weight_dropout import WeightDropout

__all__ = [
    "AttentionPlan",
    "PositionBias",
    "Visibility",
    "WeightDropout",
    "attend",
    "attention_plan",
    "capture_weights",
    "packed_positions",
    "positions_from_mask",
    "relative_shift",
    "scaled_dot_scores",
    "sinusoid",
]
