"""Runs a strategy over a whole set of inputs, as compiled programs."""

import weakref

import keras
import numpy as np

from keras_attn import checks
from keras_attn.backend import compiled
from keras_attn.decoding.beam_search import BeamSearch
from keras_attn.decoding.greedy_search import GreedySearch
from keras_attn.decoding.prefix import forced_prefix
from keras_attn.decoding.protocol import Decoded
from keras_attn.decoding.sampling import Sampling
from keras_attn.decoding.strategy import Strategy
from keras_attn.ops import refuse_capture

_BY_NAME = {"greedy": GreedySearch, "beam": BeamSearch, "sample": Sampling}

_programs = weakref.WeakKeyDictionary()


def generate(
    model,
    inputs,
    max_length,
    strategy,
    batch_size=32,
    prefix=None,
    return_weights=False,
):
    """Decodes every row of `inputs` with one strategy.

    Rows go through in batches of equal shape, so that one compiled program
    serves them all; the last batch is filled up with copies of its last row.
    A row's answer is the one that it gets alone.

    Args:
        model: what offers the decoding protocol.
        inputs: nest of NumPy arrays for its `start_decoding`, one row a source;
            such as int32 (B, S).
        max_length: int >= 1. The most tokens generated, end included.
        strategy: a strategy object, or `"greedy"`, `"beam"` or `"sample"`: one
            with its default arguments.
        batch_size: int >= 1. Rows decoded together.
        prefix: token ids that the sequences begin with: a list for all rows, or
            one list for each row; or an int array, (P,) or (B, P), with
            `pad_id` behind shorter ones. They are part of the sequences, of
            their scores and lengths. Default None.
        return_weights: bool. Whether to return the weights of the model's
            `align`. Default False.

    Returns:
        `Decoded` of NumPy arrays.

    Raises:
        ValueError: arguments out of range, an unknown strategy, a prefix that
            cannot be generated, or weights of a model without `align`.
        RuntimeError: inside `capture_weights`.

    Examples:
        >>> model = keras_attn.models.Transformer(
        ...     12, num_layers=1, num_heads=1, hidden_dim=4, intermediate_dim=4)
        >>> ids = np.array([[5, 2], [6, 2], [7, 2]], "int32")
        >>> decoded = keras_attn.decoding.generate(
        ...     model, ids, 3, "beam", batch_size=2, prefix=[8])
        >>> decoded.tokens[:, 0, 0]
        array([8, 8, 8], dtype=int32)
    """
    checks.positive_int("max_length", max_length)
    checks.positive_int("batch_size", batch_size)
    refuse_capture("generate")
    strategy = _strategy(strategy, max_length)
    if return_weights and not hasattr(model, "align"):
        raise ValueError(
            "`return_weights` needs a model that offers `align`. "
            f"Received: {type(model).__name__}"
        )
    rows = len(keras.tree.flatten(inputs)[0])
    arguments = (
        inputs,
        forced_prefix(prefix, rows, max_length, model),
        strategy.draw(inputs, max_length, model.pad_id),
    )
    size = min(batch_size, rows)
    search = _program(model, strategy, max_length)
    align = _program(model, None, max_length) if return_weights else None
    parts = []
    for first in range(0, rows, size):
        # Past the end, the last row again.
        chosen = np.minimum(np.arange(first, first + size), rows - 1)
        batch = keras.tree.map_structure(
            lambda array, chosen=chosen: (
                None
                if array is None
                else keras.ops.convert_to_tensor(array[chosen])
            ),
            arguments,
        )
        decoded = search(*batch)
        if return_weights:
            decoded = (*decoded, align(batch[0], *decoded))
        parts.append([keras.ops.convert_to_numpy(x) for x in decoded])
    return Decoded(
        *(np.concatenate(column)[:rows] for column in zip(*parts, strict=True))
    )


def _strategy(strategy, max_length):
    if isinstance(strategy, str):
        checks.choice("strategy", strategy, tuple(_BY_NAME))
        strategy = _BY_NAME[strategy]()
    elif not isinstance(strategy, Strategy):
        raise ValueError(
            "`strategy` must be a name or a strategy of `keras_attn.decoding`. "
            f"Received: strategy={strategy!r}"
        )
    if strategy.min_length > max_length:
        raise ValueError(
            f"`min_length` must not exceed max_length={max_length}. "
            f"Received: min_length={strategy.min_length}"
        )
    return strategy


def _program(model, strategy, max_length):
    """Compiles once for a model, its variables and dtypes, and a task.

    The task is a search, or, without a strategy, the alignment of its results.
    """
    programs = _programs.setdefault(model, {})
    variables = model.variables
    key = (
        type(strategy),
        repr(strategy and strategy.program_config()),
        max_length,
        tuple((id(v), v.dtype) for v in variables),
    )
    if key not in programs:
        # Not the model itself: the program would keep its key alive for ever.
        model = weakref.proxy(model)

        def search(inputs, prefix, draws):
            found = strategy.search(model, inputs, max_length, prefix, draws)
            return tuple(found[:3])

        def align(inputs, tokens, scores, lengths):
            return model.align(inputs, tokens, lengths)

        function = align if strategy is None else search
        programs[key] = compiled(function, variables)
    return programs[key]
