"""Runs a strategy over a whole set of inputs, as compiled programs."""

import weakref

import keras

from keras_attn import checks
from keras_attn.backend import compiled
from keras_attn.decoding.arguments import search_arguments
from keras_attn.decoding.loop import run
from keras_attn.decoding.prepared_weights import prepared_weights
from keras_attn.decoding.progress import progress
from keras_attn.decoding.protocol import Decoded, fill_id
from keras_attn.decoding.row_batches import (
    fitted,
    in_order,
    row_batches,
    taken,
)
from keras_attn.ops.capture import refuse_capture


def generate(
    model,
    inputs,
    max_new_tokens,
    strategy,
    batch_size=32,
    prefix=None,
    return_weights=False,
    verbose="auto",
):
    """Decodes every row of `inputs` with one strategy.

    Rows go through in batches, each compiled once for its shape; the last one
    is filled up with copies of its last row. Token ids may be ragged: then rows
    of like length share a batch, the longest come first, and a batch is padded
    to one of few lengths (16, 32, 96, 320, 1024, ...). A row's answer is the
    one that it gets alone, and stands where the row stood.

    Args:
        model: what offers the decoding protocol.
        inputs: nest of NumPy arrays for its `start_decoding`, one row a source;
            such as int32 (B, S). Or a list of B rows of token ids, each a list
            or a 1-D array, of any lengths. (Of several 1-D arrays make a tuple
            or a dict: a list of them is read as rows.)
        max_new_tokens: int >= 1. The most tokens generated, end included.
        strategy: a strategy object, or `"greedy"`, `"beam"` or `"sample"`: one
            with its default arguments.
        batch_size: int >= 1. Rows decoded together.
        prefix: token ids that the sequences begin with: a list for all rows, or
            one list for each row; or an int array, (P,) or (B, P), with
            `pad_id` behind shorter ones. They are part of the sequences, of
            their scores and lengths. Default None.
        return_weights: bool. Whether to return the weights of the model's
            `align`; those of ragged rows are zero behind the row. Default
            False.
        verbose: `"auto"`, 0 or 1. Whether to show a progress bar: on a terminal
            where there are several batches, never, or always. Default
            `"auto"`.

    Returns:
        `Decoded` of NumPy arrays.

    Raises:
        ValueError: arguments out of range, no row, arrays of different numbers
            of rows, an unknown strategy, a prefix that cannot be generated, or
            weights of a model without `align`.
        RuntimeError: inside `capture_weights`.

    Examples:
        >>> model = keras_attn.models.Transformer(
        ...     12, num_layers=1, num_heads=1, hidden_dim=4, intermediate_dim=4)
        >>> ids = [[5, 2], [6, 7, 8, 2], [7, 2]]
        >>> decoded = keras_attn.decoding.generate(
        ...     model, ids, 3, "beam", batch_size=2, prefix=[8])
        >>> decoded.tokens[:, 0, 0]
        array([8, 8, 8], dtype=int32)
    """
    checks.positive_int("max_new_tokens", max_new_tokens)
    checks.positive_int("batch_size", batch_size)
    checks.choice("verbose", verbose, ("auto", 0, 1))
    refuse_capture("generate")
    if return_weights and not hasattr(model, "align"):
        raise ValueError(
            "`return_weights` needs a model that offers `align`. "
            f"Received: {type(model).__name__}"
        )
    strategy, arguments = search_arguments(
        model, inputs, max_new_tokens, strategy, prefix
    )
    leaves = keras.tree.flatten(arguments[0])
    count = len(leaves[0])
    size = min(batch_size, count)
    batches = row_batches(arguments[0], size)
    # Keras gathers them layer by layer, which takes as long as a step.
    variables = model.variables
    search = _program(model, variables, strategy, max_new_tokens)
    if return_weights:
        align = _program(model, variables, None, max_new_tokens)
    weights = prepared_weights(model, variables)
    limit = getattr(model, "max_sequence_length", None)
    show = progress(verbose, count, len(batches))
    parts = []
    for chosen in batches:
        batch = taken(arguments, chosen, fill_id(model), limit)
        decoded = search(*batch, weights)
        if return_weights:
            decoded = (*decoded, align(batch[0], *decoded))
        parts.append([keras.ops.convert_to_numpy(x) for x in decoded])
        show(min(len(parts) * size, count))
    decoded = Decoded(*in_order(parts, batches, count))
    ragged = [leaf for leaf in leaves if leaf.dtype == object]
    if return_weights and ragged:
        longest = max(len(row) for leaf in ragged for row in leaf)
        decoded = decoded._replace(weights=fitted(decoded.weights, longest))
    return decoded


def _program(model, variables, strategy, max_new_tokens):
    """Returns the compiled program of a task.

    The task is a search, or, without a strategy, the alignment of its results.
    """
    config = repr(strategy and strategy.program_config())
    key = type(strategy), config, max_new_tokens
    owner = model
    # Not the model itself: the program would keep its owner alive for ever.
    model = weakref.proxy(model)

    def search(inputs, prefix, uniforms, weights):
        found = run(
            strategy, model, inputs, max_new_tokens, prefix, uniforms, weights
        )
        return tuple(found[:3])

    def align(inputs, tokens, scores, lengths):
        return model.align(inputs, tokens, lengths)

    function = align if strategy is None else search
    return compiled(function, variables, owner, key)
