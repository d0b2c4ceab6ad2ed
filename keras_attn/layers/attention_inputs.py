"""Reading what a caller of an attention layer hands over."""

from keras import ops

from keras_attn import checks
from keras_attn.backend import zero_hidden
from keras_attn.ops import implicit_mask


def integers(name, tensor):
    """Returns positions or segments where they are integers, or None."""
    return None if tensor is None else checks.integers(name, tensor)


def filled_masks(inputs, masks):
    """Fills in the implicit masks; a mask that says nothing new is None."""
    query_mask, value_mask, key_mask = (
        implicit_mask(x) if mask is None else mask
        for x, mask in zip(inputs, masks, strict=True)
    )
    # Of one tensor the implicit mask counts once, and not beside a given one.
    shared = inputs[2] is inputs[1] and key_mask is implicit_mask(inputs[2])
    if shared or key_mask is value_mask:
        key_mask = None
    return query_mask, value_mask, key_mask


def both(first, second):
    """Returns the mask of what two masks leave there; None is everything."""
    if first is None or second is None:
        return second if first is None else first
    return ops.logical_and(ops.cast(first, "bool"), ops.cast(second, "bool"))


def clean(x, positions):
    """Puts zeros where there is no token."""
    if positions is None:
        return x
    return zero_hidden(x, positions >= 0)
