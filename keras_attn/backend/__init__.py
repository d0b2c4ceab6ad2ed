"""F0: the only place that asks which backend runs."""

from keras_attn.backend.cache_write import write_rows
from keras_attn.backend.compiling import compiled
from keras_attn.backend.dense import apply_dense
from keras_attn.backend.dropout import dropout
from keras_attn.backend.fused import fused_attention, fused_obstacle
from keras_attn.backend.inspection import concrete
from keras_attn.backend.randomness import random_state, set_random_state
from keras_attn.backend.smoothed_nll import smoothed_nll
from keras_attn.backend.step_skipping import skip_steps, stop_skipping

__all__ = [
    "apply_dense",
    "compiled",
    "concrete",
    "dropout",
    "fused_attention",
    "fused_obstacle",
    "random_state",
    "set_random_state",
    "skip_steps",
    "smoothed_nll",
    "stop_skipping",
    "write_rows",
]
