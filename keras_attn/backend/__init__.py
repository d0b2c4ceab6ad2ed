"""F0: the only place that asks which backend runs."""

from keras_attn.backend.blockwise import blockwise_attention, blockwise_pays
from keras_attn.backend.blockwise.online_softmax import Blocking
from keras_attn.backend.cache_layout import (
    KEY_SLOTS_AXIS,
    VALUE_SLOTS_AXIS,
    keys_by_head,
    keys_by_slot,
    no_keys,
    no_values,
    values_by_head,
    values_by_slot,
)
from keras_attn.backend.cache_write import write_rows
from keras_attn.backend.captured_step import Capturing
from keras_attn.backend.compiling import compiled
from keras_attn.backend.dense import apply_dense
from keras_attn.backend.dropout import (
    drawn_seed,
    dropout,
    kept_seed,
    seeded_dropout,
)
from keras_attn.backend.fused import fused_attention, fused_obstacle
from keras_attn.backend.head_product import head_product
from keras_attn.backend.hidden_rows import surely_false, zero_hidden
from keras_attn.backend.inspection import concrete
from keras_attn.backend.joined_dense import apply_joined, joined_dense
from keras_attn.backend.kept_values import kept_values
from keras_attn.backend.largest import first_of_largest, largest
from keras_attn.backend.no_gradients import no_gradients
from keras_attn.backend.norm_of_sum import norm_of_sum
from keras_attn.backend.randomness import random_state, set_random_state
from keras_attn.backend.repeating import repeated
from keras_attn.backend.scanning import scanned
from keras_attn.backend.smoothed_nll import smoothed_nll
from keras_attn.backend.step_skipping import skip_steps, stop_skipping
from keras_attn.backend.taking import take_along, take_rows
from keras_attn.backend.turned import turned

__all__ = [
    "KEY_SLOTS_AXIS",
    "VALUE_SLOTS_AXIS",
    "Blocking",
    "Capturing",
    "apply_dense",
    "apply_joined",
    "blockwise_attention",
    "blockwise_pays",
    "compiled",
    "concrete",
    "drawn_seed",
    "dropout",
    "first_of_largest",
    "fused_attention",
    "fused_obstacle",
    "head_product",
    "joined_dense",
    "kept_seed",
    "kept_values",
    "keys_by_head",
    "keys_by_slot",
    "largest",
    "no_gradients",
    "no_keys",
    "no_values",
    "norm_of_sum",
    "random_state",
    "repeated",
    "scanned",
    "seeded_dropout",
    "set_random_state",
    "skip_steps",
    "smoothed_nll",
    "stop_skipping",
    "surely_false",
    "take_along",
    "take_rows",
    "turned",
    "values_by_head",
    "values_by_slot",
    "write_rows",
    "zero_hidden",
]
