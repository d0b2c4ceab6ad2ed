"""Runs a strategy over a whole set of inputs, as compiled programs."""

import weakref

import keras
import numpy as np

from keras_attn import checks
from keras_attn.backend import compiled
from keras_attn.decoding.greedy_search import GreedySearch
from keras_attn.decoding.protocol import Decoded
from keras_attn.ops import refuse_capture

_programs = weakref.WeakKeyDictionary()


def generate(model, inputs, max_length, strategy, batch_size=32):
    """Decodes every row of `inputs` with one strategy.

    Rows go through in batches of equal shape, so that one compiled program
    serves them all; the last batch is filled up with copies of its last row.

    Args:
        model: what offers the decoding protocol.
        inputs: int32 NumPy array (B, S).
        max_length: int >= 1. The most tokens generated, end included.
        strategy: `"greedy"` or a strategy object.
        batch_size: int >= 1. Rows decoded together.

    Returns:
        `Decoded` of NumPy arrays.

    Raises:
        ValueError: arguments out of range or an unknown strategy.
        RuntimeError: inside `capture_weights`.

    Examples:
        >>> model = keras_attn.models.Transformer(
        ...     12, num_layers=1, num_heads=1, hidden_dim=4, intermediate_dim=4)
        >>> ids = np.array([[5, 2], [6, 2], [7, 2]], "int32")
        >>> keras_attn.decoding.generate(
        ...     model, ids, 3, "greedy", batch_size=2).tokens.shape
        (3, 1, 3)
    """
    checks.positive_int("max_length", max_length)
    checks.positive_int("batch_size", batch_size)
    refuse_capture("generate")
    if isinstance(strategy, str):
        checks.choice("strategy", strategy, ("greedy",))
        strategy = GreedySearch()
    elif not hasattr(strategy, "search"):
        raise ValueError(
            "`strategy` must be a name or a strategy of `keras_attn.decoding`. "
            f"Received: strategy={strategy!r}"
        )
    rows = len(inputs)
    size = min(batch_size, rows)
    filled = -(-rows // size) * size
    inputs = np.concatenate(
        [inputs, np.repeat(inputs[-1:], filled - rows, axis=0)]
    )
    program = _program(model, strategy, max_length)
    parts = []
    for first in range(0, filled, size):
        batch = inputs[first : first + size]
        decoded = program(keras.ops.convert_to_tensor(batch))
        parts.append([keras.ops.convert_to_numpy(x) for x in decoded[:3]])
    tokens, scores, lengths = (
        np.concatenate(column)[:rows] for column in zip(*parts, strict=True)
    )
    return Decoded(tokens, scores, lengths)


def _program(model, strategy, max_length):
    """Compiles once for a model, its variables and dtypes, and a strategy."""
    programs = _programs.setdefault(model, {})
    variables = model.variables
    key = (
        type(strategy),
        repr(strategy.get_config()),
        max_length,
        tuple((id(v), v.dtype) for v in variables),
    )
    if key not in programs:
        # Not the model itself: the program would keep its key alive for ever.
        model = weakref.proxy(model)

        def function(inputs):
            return tuple(strategy.search(model, inputs, max_length)[:3])

        programs[key] = compiled(function, variables)
    return programs[key]
