"""`MultiHeadAttention` of this library or Keras, including projections."""

import keras
from keras import ops

import keras_attn
from benchmarks.attention import task

_LIBRARIES = {"keras": keras, "keras_attn": keras_attn}


def prepare(case, library):
    """Returns a callable that runs steps."""
    width = case["heads"] * case["width"]
    options = {}
    if case["mask"] == "window":
        options["sliding_window"] = task.WINDOW
    layer = _LIBRARIES[library].layers.MultiHeadAttention(
        case["heads"], case["width"], **options
    )
    shape = case["rows"], case["length"], width
    layer.build(shape, shape)
    token_mask = ops.convert_to_tensor(task.tokens_there(case))
    call = {}
    if case["mask"] == "padded":
        call["value_mask"] = token_mask
    if case["mask"] in ("causal", "window"):
        call["use_causal_mask"] = True

    def function(x):
        return layer(x, x, **call)

    (x,) = task.heads(case, 1)
    return task.runner(function, [x.reshape(shape)], case["backward"])
