"""Decoding of a whole data set with compiled programs."""

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import keras

from keras_attn import checks
from keras_attn.backend import compiled, programs_of, row_shards, to_numpy
from keras_attn.decoding.arguments import (
    CACHE_DTYPES,
    check_length,
    search_arguments,
)
from keras_attn.decoding.loop import Search, check_numbers, run
from keras_attn.decoding.prepared_weights import prepared_weights
from keras_attn.decoding.progress import progress
from keras_attn.decoding.protocol import Decoded, fill_id
from keras_attn.decoding.row_batches import (
    fitted,
    in_order,
    row_batches,
    taken,
)
from keras_attn.decoding.speculative import (
    Speculation,
    SpeculativeCounts,
    single_calls,
)
from keras_attn.decoding.speculative_loop import (
    check_speculative_numbers,
    speculative_program,
)
from keras_attn.ops.capture import refuse_capture
from keras_attn.typing import Nest

if TYPE_CHECKING:
    from keras_attn.decoding.strategy import Strategy


def generate(
    model: keras.Model,
    inputs: Nest,
    max_new_tokens: int,
    strategy: "Strategy | Speculation | str",
    batch_size: int = 32,
    prefix: Any = None,
    return_weights: bool = False,
    verbose: int | str = "auto",
    stop_strings: str | Sequence[str] | None = None,
    tokenizer: Any = None,
    cache_dtype: str | None = None,
) -> Decoded:
    """Decodes every row of `inputs` with one strategy.

    Rows are decoded in batches, and the search is compiled once per batch
    shape; the last batch is filled with copies of its last row. Token ids may
    be ragged: rows of similar length then share a batch, the longest come
    first, and each batch is padded to one of a few lengths (16, 32, 96, 320,
    1024, ...). The result of a row does not depend on the other rows, and
    results are in the order of the inputs.

    Args:
        model: object that implements the decoding protocol.
        inputs: nest of NumPy arrays for its `start_decoding`, one row per
            source, such as int32 (B, S); or a list of B rows of token ids, each
            a list or a 1-D array, of any length. (Pass several 1-D arrays as a
            tuple or a dict: a list of them is read as rows.)
        max_new_tokens: int >= 1. Maximum number of generated tokens, end
            included.
        strategy: a strategy object, or `"greedy"`, `"beam"` or `"sample"` for
            one with default arguments; or, with a `GPT`, `SpeculativeDecoding`
            or `PromptLookup`.
        batch_size: int >= 1. Rows decoded together.
        prefix: token ids that the sequences begin with: one list for all rows,
            or one list per row; or an int array, (P,) or (B, P), with shorter
            rows padded with `pad_id`. They count in the scores and lengths.
            Default None.
        return_weights: bool. Whether to return the attention weights of the
            model's `align`; those of ragged rows are zero after the row.
            Default False.
        verbose: `"auto"`, 0 or 1. Whether to show a progress bar: on a terminal
            if there are several batches, never, or always. Default `"auto"`.
        stop_strings: str or list of str. A sequence ends with the token that
            completes one of them in the generated text, in which the prefix
            counts and the prompt does not. The text is that of the tokens'
            bytes, special tokens included; `min_new_tokens` does not delay the
            end. Default None.
        tokenizer: tokenizer of `keras_attn.text`, or an object with its methods
            `token_bytes` and `decode`, needed by `stop_strings`. Default None.
        cache_dtype: `"int8"` rounds the keys and values of the model's caches
            to 8 bits, with a scale per token and head, after `start_decoding`
            and in each step. Default None: they have the dtype of the model.

    Returns:
        `Decoded` of NumPy arrays.

    Raises:
        ValueError: arguments out of range, no rows, arrays with different
            numbers of rows, an unknown strategy, an invalid prefix,
            `return_weights` with a model without `align`, `cache_dtype` with a
            model without a `KVCache`, or a model that returns NaN or infinite
            logits; the message names the first such step, from 1.
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
    check_length(max_new_tokens)
    checks.positive_int("batch_size", batch_size, most=None)
    checks.boolean("return_weights", return_weights)
    checks.choice("verbose", verbose, ("auto", 0, 1))
    checks.choice("cache_dtype", cache_dtype, CACHE_DTYPES)
    refuse_capture("generate")
    if return_weights and not hasattr(model, "align"):
        raise ValueError(
            "`return_weights` needs a model that offers `align`. "
            f"Received: {type(model).__name__}"
        )
    speculation = strategy if isinstance(strategy, Speculation) else None
    if speculation is not None:
        speculation.check(model)
        strategy = speculation.drawing(max_new_tokens)
    strategy, arguments, stops = search_arguments(
        model,
        inputs,
        max_new_tokens,
        strategy,
        prefix,
        batch_size,
        stop_strings,
        tokenizer,
    )
    limit = getattr(model, "max_sequence_length", None)
    if speculation is not None:
        limit = speculation.check_room(arguments[0], max_new_tokens, limit)
    leaves = keras.tree.flatten(arguments[0])
    count = len(leaves[0])
    shards = row_shards()
    size = -(-min(batch_size, count) // shards) * shards
    batches = row_batches(arguments[0], size)
    # Once: Keras collects them layer by layer, which takes as long as a step
    # (as of Keras 3.15.1).
    programs = programs_of(model, model.variables)
    has_stops = bool(stop_strings)
    options = (
        model,
        programs,
        strategy,
        max_new_tokens,
        has_stops,
        cache_dtype,
    )
    # A single token is not worth a draft.
    drafts = speculation is not None and max_new_tokens > 1
    if drafts:
        search, weights = speculative_program(speculation, *options)
    else:
        search = _search_program(*options)
        weights = prepared_weights(model, programs)
    if return_weights:
        align = _align_program(model, programs)
    show = progress(verbose, count, len(batches))
    parts = []
    for chosen in batches:
        batch = taken(arguments, chosen, fill_id(model), limit)
        *decoded, failed_step = search(*batch, weights, stops)
        if return_weights:
            decoded.append(align(batch[0], *decoded))
        parts.append([to_numpy(x) for x in decoded])
        check = check_speculative_numbers if drafts else check_numbers
        check(to_numpy(failed_step))
        show(min(len(parts) * size, count))
    found = in_order(parts, batches, count)
    if drafts:
        decoded = Decoded(*found[:3], speculation=SpeculativeCounts(*found[3:]))
    else:
        decoded = Decoded(*found)
    if speculation is not None and not drafts:
        decoded = decoded._replace(speculation=single_calls(decoded))
    ragged = [leaf for leaf in leaves if leaf.dtype == object]
    if return_weights and ragged:
        longest = max(len(row) for leaf in ragged for row in leaf)
        decoded = decoded._replace(weights=fitted(decoded.weights, longest))
    return decoded


def _search_program(
    model, programs, strategy, max_new_tokens, has_stops, cache_dtype
):
    """Returns the compiled program of a search."""
    # Proxies: the program would keep its owner alive forever.
    model, kept = weakref.proxy(model), weakref.proxy(programs)
    found = Search(
        strategy,
        model,
        max_new_tokens,
        has_stops=has_stops,
        cache_dtype=cache_dtype,
    )
    key = found.key("search")

    def search(inputs, prefix, uniforms, weights, stops):
        return run(
            strategy,
            model,
            inputs,
            max_new_tokens,
            prefix,
            uniforms,
            weights,
            stops,
            kept,
            cache_dtype,
        )

    return compiled(search, programs.variables, programs, key)


def _align_program(model, programs):
    """Returns the compiled program of the alignment of a search's results."""
    model = weakref.proxy(model)

    def align(inputs, tokens, scores, lengths):
        return model.align(inputs, tokens, lengths)

    return compiled(align, programs.variables, programs, "align")
