"""The weights of a model, in the form in which steps read them fastest."""

import weakref

from keras_attn.backend import cached_until_update


def prepared_weights(model, variables):
    """Returns what a model's `prepare_weights` makes, () where it has none.

    Args:
        model: what offers the decoding protocol.
        variables: list, its variables.
    """
    if not hasattr(model, "prepare_weights"):
        return ()
    # Not the model itself: what is kept for it would keep it alive for ever.
    owner, model = model, weakref.proxy(model)
    return cached_until_update(
        lambda: model.prepare_weights(), variables, owner, "prepared_weights"
    )
