"""The weights of a model, in the form in which steps read them fastest."""

import weakref

from keras_attn.backend import kept_values


def step_weights(model):
    """Returns what the model's `prepare_weights` makes, () if it has none."""
    if not hasattr(model, "prepare_weights"):
        return ()
    # Not the model itself: what is kept for it would keep it alive for ever.
    owner, model = model, weakref.proxy(model)
    return kept_values(
        lambda: model.prepare_weights(), owner.variables, owner, "step_weights"
    )
