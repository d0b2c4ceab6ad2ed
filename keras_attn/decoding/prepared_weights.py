"""Weights of a model in the form that decoding steps read fastest."""

import weakref
from typing import TYPE_CHECKING, Any

from keras_attn.backend import cached_until_update

if TYPE_CHECKING:
    from keras_attn.backend.owned_programs import OwnedPrograms


def prepared_weights(model: Any, programs: "OwnedPrograms") -> Any:
    """Returns the model's `prepare_weights()`, or () if it has none.

    Args:
        model: object that implements the decoding protocol.
        programs: its `OwnedPrograms`.
    """
    if not hasattr(model, "prepare_weights"):
        return ()
    # A proxy: the cached weights would keep their owner alive forever.
    model = weakref.proxy(model)
    return cached_until_update(
        lambda: model.prepare_weights(), programs, "prepared_weights"
    )
