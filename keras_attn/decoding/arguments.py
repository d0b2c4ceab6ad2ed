"""Checks of the arguments of `generate` and `stream`."""

import copy
import inspect
import json
from typing import Any

import keras
import numpy as np

from keras_attn import checks
from keras_attn.backend import gather_texts, processes_share_rows
from keras_attn.decoding.beam_search import BeamSearch
from keras_attn.decoding.greedy_search import GreedySearch
from keras_attn.decoding.logits_rule import check_rules
from keras_attn.decoding.prefix import forced_prefix
from keras_attn.decoding.protocol import end_ids, fill_id
from keras_attn.decoding.sampling import Sampling
from keras_attn.decoding.single_sequence_strategy import (
    SingleSequenceStrategy,
)
from keras_attn.decoding.speculative import Speculation
from keras_attn.decoding.stop_strings import (
    check_stop_strings,
    stop_table,
)
from keras_attn.decoding.strategy import (
    Strategy,
    check_methods,
    undefined,
    whole,
)
from keras_attn.decoding.token_rows import (
    are_token_rows,
    check_form,
    token_rows,
)
from keras_attn.typing import Nest

# Tokens of all sequences of a batch: 1 GiB.
_MOST_TOKENS = 2**28
# Cache slots that the hypotheses of a batch mask for each other: 8 GiB.
_MOST_MASKED_SLOTS = 2**33

CACHE_DTYPES = None, "int8"
_IDS = "pad_id", "start_id", "end_id"
_BY_NAME = {"greedy": GreedySearch, "beam": BeamSearch, "sample": Sampling}


def check_length(max_new_tokens: int) -> int:
    """Returns `max_new_tokens` if it is possible, else raises ValueError."""
    checks.positive_int("max_new_tokens", max_new_tokens)
    return checks.integer("max_new_tokens", max_new_tokens, 1, _MOST_TOKENS)


def search_arguments(
    model: keras.Model,
    inputs: Nest,
    max_new_tokens: int,
    strategy: "Strategy | str",
    prefix: Any,
    batch_size: int | None = None,
    stop_strings: Any = None,
    tokenizer: Any = None,
) -> tuple[Any, Any, Any]:
    """Checks the arguments of `generate` and prepares the arrays of a search.

    Args:
        model: object that implements the decoding protocol.
        inputs: nest of arrays with one row per source, or a list of rows of
            token ids, of any length.
        max_new_tokens: int >= 1. L.
        strategy: a strategy object, or its name.
        prefix: as for `generate`.
        batch_size: int >= 1. Rows decoded together. Default None: all.
        stop_strings: as for `generate`. Default None.
        tokenizer: as for `generate`. Default None.

    Returns:
        A copy of the strategy; the arrays of a search, with one row per
        source: inputs (ragged rows as an object array), prefix, int32 (B, L) or
        None, and what the strategy's `draw_uniforms` returns; and the tensor of
        `stop_table`, or () without stop strings.

    Raises:
        ValueError: an invalid model, strategy, inputs or prefix, or a search
            that needs too much memory.
    """
    check_length(max_new_tokens)
    _check_model(model)
    strategy = _strategy(strategy, max_new_tokens)
    stop_strings = check_stop_strings(stop_strings, tokenizer)
    if stop_strings:
        _check_parameter(strategy, "stop_strings", "ends")
    inputs = _arrays(inputs, model)
    count = len(keras.tree.flatten(inputs)[0])
    rows = count if batch_size is None else min(batch_size, count)
    _check_size(strategy, rows, max_new_tokens)
    prefix = forced_prefix(prefix, count, max_new_tokens, model)
    drawn = inputs
    if isinstance(inputs, dict):
        # What was computed from the tokens differs in the last digits.
        drawn = {name: inputs[name] for name in inputs if name != "state"}
    uniforms = strategy.draw_uniforms(drawn, max_new_tokens, fill_id(model))
    arrays = inputs, prefix, uniforms
    if processes_share_rows():
        sizes = max_new_tokens, rows, stop_strings
        _check_processes(strategy, arrays, sizes)
    # Copies: programs keep them, and are compiled for further shapes later.
    strategy = copy.copy(strategy)
    strategy.rules = tuple(map(copy.copy, strategy.rules))
    stops: Any = ()
    if stop_strings:
        table = stop_table(stop_strings, tokenizer)
        stops = keras.ops.convert_to_tensor(table)
    return strategy, arrays, stops


def _check_processes(strategy, arrays, sizes):
    """Raises ValueError in all processes unless all have the same arguments."""
    # Ragged rows are objects, and so are tuples of ids.
    rows = [
        [np.asarray(row).tolist() for row in leaf]
        for leaf in keras.tree.flatten(arrays)
        if leaf is not None
    ]
    rules = [_plain(vars(rule)) for rule in strategy.rules]
    strategy = copy.copy(strategy)
    # Not in the config, which would serialize them.
    strategy.rules = ()
    options = _plain(strategy.get_config())
    facts = type(strategy).__name__, options, rules, sizes, rows
    texts = gather_texts(json.dumps(facts))
    for index, text in enumerate(texts):
        if text != texts[0]:
            raise ValueError(
                "`inputs`, `prefix`, `max_new_tokens`, `stop_strings` and "
                "`strategy` with its seed must be equal in all processes, "
                "which decode the rows together. Received: other arguments in "
                f"process {index} than in process 0"
            )


def _plain(options):
    """Returns the options that JSON can compare."""
    return {
        name: value
        for name, value in options.items()
        if isinstance(value, (int, float, str, type(None)))
    }


def _check_model(model):
    """Raises ValueError unless a model implements the decoding protocol."""
    if isinstance(model, type):
        raise ValueError(
            "`model` must be a model, not a class. "
            f"Received: model={model.__name__}"
        )
    # Not `variables`: Keras would collect them once more.
    for name in ("start_decoding", "decode_step", *_IDS):
        if not hasattr(model, name):
            raise ValueError(
                "`model` must implement the decoding protocol of "
                "`keras_attn.decoding.DecodingState`. "
                f"Received: {type(model).__name__} without `{name}`"
            )
    for name in _IDS:
        given = getattr(model, name)
        numbers = end_ids(given) if name == "end_id" else (given,)
        if given is not None and not all(
            whole(number) and 0 <= number < 2**31 for number in numbers
        ):
            raise ValueError(
                f"`{name}` of the model must be a token id, an integer >= 0, "
                f"or None. Received: {name}={checks.shown(given)}"
            )


def _check_size(strategy, rows, max_new_tokens):
    """Raises ValueError if a search needs too much memory."""
    width = strategy.num_hypotheses
    tokens = rows * width * max_new_tokens
    masked = tokens * width if strategy.reorders else 0
    if tokens > _MOST_TOKENS or masked > _MOST_MASKED_SLOTS:
        raise ValueError(
            "`max_new_tokens` must be smaller, or the number of sequences that "
            "`strategy` keeps per row, or that of the rows decoded together: "
            "the search would need too much memory. Received: "
            f"max_new_tokens={max_new_tokens}, {width} sequences per row and "
            f"{rows} rows"
        )


def _strategy(strategy, max_new_tokens):
    if isinstance(strategy, str):
        checks.choice("strategy", strategy, tuple(_BY_NAME))
        strategy = _BY_NAME[strategy]()
    elif isinstance(strategy, Speculation):
        raise ValueError(
            "`strategy` must not be speculative in `stream`, which yields one "
            "token of each row at a time; use `generate`. "
            f"Received: {type(strategy).__name__}"
        )
    elif not isinstance(strategy, Strategy):
        raise ValueError(
            "`strategy` must be a name or a strategy of `keras_attn.decoding`. "
            f"Received: strategy={checks.shown(strategy)}"
        )
    check_methods(strategy)
    _check_next_token(strategy)
    _check_rules(strategy)
    if strategy.min_new_tokens > max_new_tokens:
        raise ValueError(
            "`min_new_tokens` must not exceed "
            f"max_new_tokens={max_new_tokens}. "
            f"Received: min_new_tokens={strategy.min_new_tokens}"
        )
    return strategy


def _check_rules(strategy):
    if check_rules(strategy.rules):
        _check_parameter(strategy, "rules", "scores")


def _check_parameter(strategy, needed_by, name):
    parameters = inspect.signature(strategy.choose).parameters
    kinds = {parameter.kind for parameter in parameters.values()}
    if name not in parameters and inspect.Parameter.VAR_KEYWORD not in kinds:
        raise ValueError(
            f"`{needed_by}` need a strategy whose `choose` has the argument "
            f"`{name}`. Received: {type(strategy).__name__} without it"
        )


def _check_next_token(strategy):
    base, kind = SingleSequenceStrategy, type(strategy)
    if (
        issubclass(kind, base)
        and kind.choose is base.choose
        and kind.get_next_token is base.get_next_token
    ):
        raise undefined(strategy, "get_next_token")


def _arrays(inputs, model):
    """Returns a nest of NumPy arrays with the same number of rows."""
    size = getattr(model, "source_vocabulary_size", None)
    if are_token_rows(inputs):
        return token_rows(inputs, fill_id(model), size)
    leaves = keras.tree.flatten(checks.nest("inputs", inputs))
    for leaf in leaves or [None]:
        check_form("inputs", leaf)
        checks.tensor(
            "inputs",
            leaf,
            "an array, a nest of arrays, or rows of ids",
            objects=True,
        )
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
    for leaf in leaves:
        _check_values(leaf, size if leaf is inputs else None)
    # PyTorch has no arithmetic of unsigned integers above 8 bits.
    return keras.tree.map_structure(
        lambda leaf: (
            leaf.astype("int32")
            if leaf.dtype.kind == "u" and leaf.itemsize > 1
            else leaf
        ),
        inputs,
    )


def _check_values(leaf, vocabulary_size):
    """Raises ValueError for values that no tensor or embedding can hold."""
    if leaf.dtype.kind in "iu" and leaf.size:
        low, high = int(leaf.min()), int(leaf.max())
        least = -(2**31) if vocabulary_size is None else 0
        most = vocabulary_size or 2**31
        if low < least or high >= most:
            raise ValueError(
                f"`inputs` must lie in [{least}, {most}). "
                f"Received: ids from {low} to {high}"
            )
    elif leaf.dtype.kind not in "iufbO" or (
        leaf.dtype.kind == "O"
        and not all(
            isinstance(row, np.ndarray) and row.dtype.kind in "iufb"
            for row in leaf
        )
    ):
        raise ValueError(
            "`inputs` must hold integers, floats or bools. "
            f"Received: an array of dtype {leaf.dtype}"
        )
