"""Checks of the arguments of `generate` and `stream`."""

import copy

import keras
import numpy as np

from keras_attn import checks
from keras_attn.decoding.beam_search import BeamSearch
from keras_attn.decoding.greedy_search import GreedySearch
from keras_attn.decoding.prefix import forced_prefix
from keras_attn.decoding.protocol import fill_id
from keras_attn.decoding.sampling import Sampling
from keras_attn.decoding.strategy import Strategy
from keras_attn.decoding.token_rows import are_token_rows, token_rows

_BY_NAME = {"greedy": GreedySearch, "beam": BeamSearch, "sample": Sampling}


def search_arguments(model, inputs, max_new_tokens, strategy, prefix):
    """Checks the arguments of `generate` and prepares the arrays of a search.

    Args:
        model: object that implements the decoding protocol.
        inputs: nest of arrays with one row per source, or a list of rows of
            token ids, of any length.
        max_new_tokens: int >= 1. L.
        strategy: a strategy object, or its name.
        prefix: as for `generate`.

    Returns:
        A copy of the strategy, and the arrays of a search, with one row per
        source: inputs (ragged rows as an object array); prefix, int32 (B, L) or
        None; and what the strategy's `draw_uniforms` returns.

    Raises:
        ValueError: an invalid strategy, invalid inputs or an invalid prefix.
    """
    strategy = _strategy(strategy, max_new_tokens)
    inputs = _arrays(inputs, fill_id(model))
    count = len(keras.tree.flatten(inputs)[0])
    prefix = forced_prefix(prefix, count, max_new_tokens, model)
    uniforms = strategy.draw_uniforms(inputs, max_new_tokens, fill_id(model))
    # A copy: programs keep it, and are compiled for further shapes later.
    return copy.copy(strategy), (inputs, prefix, uniforms)


def _strategy(strategy, max_new_tokens):
    if isinstance(strategy, str):
        checks.choice("strategy", strategy, tuple(_BY_NAME))
        strategy = _BY_NAME[strategy]()
    elif not isinstance(strategy, Strategy):
        raise ValueError(
            "`strategy` must be a name or a strategy of `keras_attn.decoding`. "
            f"Received: strategy={strategy!r}"
        )
    if strategy.min_new_tokens > max_new_tokens:
        raise ValueError(
            "`min_new_tokens` must not exceed "
            f"max_new_tokens={max_new_tokens}. "
            f"Received: min_new_tokens={strategy.min_new_tokens}"
        )
    return strategy


def _arrays(inputs, pad_id):
    """Returns a nest of NumPy arrays with the same number of rows."""
    if are_token_rows(inputs):
        return token_rows(inputs, pad_id)
    inputs = keras.tree.map_structure(
        lambda leaf: (
            leaf
            if isinstance(leaf, np.ndarray)
            else keras.ops.convert_to_numpy(leaf)
        ),
        inputs,
    )
    leaves = keras.tree.flatten(inputs)
    counts = {len(leaf) if leaf.ndim else 0 for leaf in leaves}
    if len(counts) != 1 or 0 in counts:
        raise ValueError(
            "`inputs` must hold at least one row, the same number in each "
            "array. "
            f"Received: arrays of {sorted(counts)} rows"
        )
    return inputs
