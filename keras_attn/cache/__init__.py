"""F2: what a decoder keeps from step to step, and all that touches it."""

from keras_attn.cache.kv_cache import (
    KVCache,
    append,
    close_slots,
    empty,
    full,
    open_slots,
    read,
    sight,
    slots,
    sources,
)
from keras_attn.cache.rows import branched, extended, reorder

__all__ = [
    "KVCache",
    "append",
    "branched",
    "close_slots",
    "empty",
    "extended",
    "full",
    "open_slots",
    "read",
    "reorder",
    "sight",
    "slots",
    "sources",
]
