"""Key-value cache for decoding."""

from keras_attn.cache.decoding_step import DecodingStep
from keras_attn.cache.kv_cache import (
    KVCache,
    append,
    beam_mask,
    close_slots,
    crop,
    empty,
    free_slots,
    from_projections,
    open_slots,
    read,
    slots,
    sources,
)
from keras_attn.cache.rows import expand_beams, grown, quantized, reorder

__all__ = [
    "DecodingStep",
    "KVCache",
    "append",
    "beam_mask",
    "close_slots",
    "crop",
    "empty",
    "expand_beams",
    "free_slots",
    "from_projections",
    "grown",
    "open_slots",
    "quantized",
    "read",
    "reorder",
    "slots",
    "sources",
]
