"""Decoding that returns the results after every step."""

import weakref
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import keras
import numpy as np

from keras_attn import checks
from keras_attn.backend import compiled, programs_of, to_numpy
from keras_attn.decoding.arguments import CACHE_DTYPES, search_arguments
from keras_attn.decoding.loop import LoopConstants, Search, check_numbers
from keras_attn.decoding.prepared_weights import prepared_weights
from keras_attn.decoding.protocol import end_ids, fill_id
from keras_attn.decoding.row_batches import taken
from keras_attn.decoding.stop_strings import check_stop_strings
from keras_attn.decoding.text_streams import TextStreams
from keras_attn.ops.capture import refuse_capture
from keras_attn.typing import TensorLike

if TYPE_CHECKING:
    from keras_attn.decoding.strategy import ActiveHypotheses, Strategy


class StreamedToken(NamedTuple):
    """Results after one decoding step.

    With greedy search and sampling, `tokens`, `scores` and `lengths` are all
    sequences so far, whether or not they have ended; with beam search, the t
    best finished ones, best first. In the last item they are what `generate`
    returns.

    Args:
        step: int. Number of tokens generated; 1 in the first item.
        tokens: NumPy int32 (B, t, L), padded with `pad_id`.
        scores: NumPy float32 (B, t), as in `Decoded`; -inf: there is no such
            sequence yet.
        lengths: NumPy int32 (B, t), in tokens; 0 if there is no sequence.
        active: `ActiveHypotheses` of NumPy arrays, the k sequences per source
            that are still extended. `active.parents` are the indices of the
            hypotheses of the previous item that they extend; the other
            hypotheses of that item have ended or were pruned. The last item has
            no active hypotheses.
        texts: list of B lists of t str, if `stream` has a tokenizer: the text
            of each sequence that has been decided since the previous item.
            Text is decided when no further token can change it, and when it
            cannot be the beginning of a stop string, which is left out. All
            pieces together are the text that the tokenizer decodes. With beam
            search, text is decided when all hypotheses of the row agree on it.
            Default None.

    Examples:
        >>> keras_attn.decoding.StreamedToken._fields
        ('step', 'tokens', 'scores', 'lengths', 'active', 'texts')
    """

    step: int
    tokens: np.ndarray
    scores: np.ndarray
    lengths: np.ndarray
    active: "ActiveHypotheses"
    texts: list[list[str]] | None = None


def stream(
    model: keras.Model,
    inputs: TensorLike,
    max_new_tokens: int,
    strategy: "Strategy | str",
    prefix: Any = None,
    stop_strings: str | Sequence[str] | None = None,
    tokenizer: Any = None,
    cache_dtype: str | None = None,
) -> Iterator[StreamedToken]:
    """Decodes all rows of `inputs` together and yields every step.

    Args:
        model: object that implements the decoding protocol.
        inputs: as for `generate`.
        max_new_tokens: int >= 1. Maximum number of generated tokens, end
            included.
        strategy: as for `generate`.
        prefix: as for `generate`. Default None.
        stop_strings: as for `generate`. Default None.
        tokenizer: as for `generate`. The items then also have `texts`. Default
            None.
        cache_dtype: as for `generate`. Default None.

    Returns:
        Iterator of `StreamedToken`. Each step is computed when its item is
        requested.

    Raises:
        ValueError: as for `generate`, at the call and not at the first item;
            for NaN or infinite logits, instead of the item of that step.
        RuntimeError: inside `capture_weights`.

    Examples:
        >>> model = keras_attn.models.Transformer(
        ...     12, num_layers=1, num_heads=1, hidden_dim=4, intermediate_dim=4)
        >>> items = keras_attn.decoding.stream(
        ...     model, np.array([[5, 6, 2]], "int32"), 3, "beam")
        >>> for item in items:
        ...     found = item.active.tokens[0, :, : item.step].tolist()
        >>> item.step <= 3, item.tokens.shape
        (True, (1, 1, 3))
    """
    checks.choice("cache_dtype", cache_dtype, CACHE_DTYPES)
    refuse_capture("stream")
    strategy, arguments, stops = search_arguments(
        model,
        inputs,
        max_new_tokens,
        strategy,
        prefix,
        stop_strings=stop_strings,
        tokenizer=tokenizer,
    )
    count = len(keras.tree.flatten(arguments[0])[0])
    limit = getattr(model, "max_sequence_length", None)
    arguments = taken(arguments, np.arange(count), fill_id(model), limit)
    texts = None
    if tokenizer is not None:
        texts = TextStreams(
            tokenizer,
            check_stop_strings(stop_strings, tokenizer),
            end_ids(model.end_id),
            strategy.reorders,
        )
    programs = programs_of(model, model.variables)
    # Proxies: the programs would keep the model alive.
    search = Search(
        strategy,
        weakref.proxy(model),
        max_new_tokens,
        weakref.proxy(programs),
        bool(stop_strings),
        cache_dtype,
    )
    start, step_fn = (
        compiled(function, programs.variables, programs, search.key(name))
        for name, function in zip(
            ("start", "step_and_read"),
            search.captured(search.step_and_read),
            strict=True,
        )
    )
    run = search, start, step_fn, stops, texts
    return _steps(model, programs, *run, *arguments)


def _steps(
    model,
    programs,
    search,
    start,
    step_fn,
    stops,
    texts,
    inputs,
    prefix,
    uniforms,
):
    spec = search.spec
    loop, memory, prompt = start(inputs)
    weights = prepared_weights(model, programs)
    constants = LoopConstants(memory, prefix, uniforms, weights, prompt, stops)
    step = 0
    lengths = search.lengths()
    for present, length in zip([lengths[0], *lengths], lengths, strict=False):
        loop = search.lengthened(loop, present, length)
        extra = [(0, 0), (0, 0), (0, spec.max_new_tokens - length)]
        while step < length:
            loop, found, active = step_fn(loop, constants)
            step += 1
            going, failed_step, found, active = keras.tree.map_structure(
                _array, (loop.going, loop.failed_step, found, active)
            )
            check_numbers(failed_step)
            tokens, live_tokens = (
                np.pad(tokens, extra, constant_values=spec.pad_id)
                for tokens in (found[0], active.tokens)
            )
            active = active._replace(tokens=live_tokens)
            new = None
            if texts is not None:
                new = texts.new(tokens, found[2], active)
            yield StreamedToken(step, tokens, *found[1:], active, new)
            if not going:
                return


def _array(tensor):
    # A copy: on PyTorch the array would share the tensor's memory.
    return np.array(to_numpy(tensor))
