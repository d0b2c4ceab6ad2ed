"""F0: the only place that asks which backend runs."""

from keras_attn.backend.cache_write import write_rows
from keras_attn.backend.compiling import compiled
from keras_attn.backend.fused import fused_attention, fused_obstacle
from keras_attn.backend.inspection import concrete

__all__ = [
    "compiled",
    "concrete",
    "fused_attention",
    "fused_obstacle",
    "write_rows",
]
