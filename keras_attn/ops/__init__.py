"""F1: pure functions of tensors."""

from keras_attn.ops.angles import sine_and_cosine, sinusoid
from keras_attn.ops.attend import attend, attend_clean
from keras_attn.ops.capture import (
    bar_capture,
    capture_weights,
    capturing,
    record,
    refuse_capture,
)
from keras_attn.ops.plan import AttentionPlan, attention_plan
from keras_attn.ops.position_bias import PositionBias
from keras_attn.ops.positions import (
    default_positions,
    packed_positions,
    positions_from_mask,
)
from keras_attn.ops.relative import distance_waves, relative_shift
from keras_attn.ops.scores import scaled_dot_scores
from keras_attn.ops.visibility import (
    Visibility,
    describe,
    implicit_mask,
    only_keys_hidden,
    sees_something,
    slot_offset,
    visible,
)
from keras_attn.ops.weight_dropout import WeightDropout

__all__ = [
    "AttentionPlan",
    "PositionBias",
    "Visibility",
    "WeightDropout",
    "attend",
    "attend_clean",
    "attention_plan",
    "bar_capture",
    "capture_weights",
    "capturing",
    "default_positions",
    "describe",
    "distance_waves",
    "implicit_mask",
    "only_keys_hidden",
    "packed_positions",
    "positions_from_mask",
    "record",
    "refuse_capture",
    "relative_shift",
    "scaled_dot_scores",
    "sees_something",
    "sine_and_cosine",
    "sinusoid",
    "slot_offset",
    "visible",
]
