"""Decoding that shows what it has after every step."""

import weakref
from typing import Any, NamedTuple

import keras
import numpy as np

from keras_attn import checks
from keras_attn.backend import compiled
from keras_attn.decoding.arguments import search_arguments
from keras_attn.decoding.loop import LoopConstants, Search
from keras_attn.decoding.prepared_weights import prepared_weights
from keras_attn.decoding.protocol import fill_id
from keras_attn.decoding.row_batches import taken
from keras_attn.ops.capture import refuse_capture


class StreamedToken(NamedTuple):
    """Holds what there is after one step of the decoding.

    Of greedy search and sampling `tokens`, `scores` and `lengths` are the
    sequences so far, growing ones and ended ones in their places; of beam
    search the t best that have ended, best first. In the last item they are
    what `generate` returns.

    Args:
        step: int. How many tokens were chosen; 1 in the first item.
        tokens: NumPy int32 (B, t, L), `pad_id` behind what there is.
        scores: NumPy float32 (B, t), as in `Decoded`; -inf: there is no such
            sequence yet.
        lengths: NumPy int32 (B, t), in tokens; 0 where there is no sequence.
        active: `ActiveHypotheses` of NumPy arrays, the k sequences of each
            source that are continued. `active.parents` says which of the k live
            ones of the item before each of them continues: those that nobody
            continues have ended, or were given up. In the last item none is
            alive.

    Examples:
        >>> keras_attn.decoding.StreamedToken._fields
        ('step', 'tokens', 'scores', 'lengths', 'active')
    """

    step: int
    tokens: Any
    scores: Any
    lengths: Any
    active: Any


def stream(model, inputs, max_new_tokens, strategy, prefix=None):
    """Decodes all rows of `inputs` together, and shows every step.

    Args:
        model: what offers the decoding protocol.
        inputs: as for `generate`.
        max_new_tokens: int >= 1. The most tokens generated, end included.
        strategy: as for `generate`.
        prefix: as for `generate`. Default None.

    Returns:
        Iterator of `StreamedToken`. A step is computed when its item is asked
        for; an iterator that is given up computes no more.

    Raises:
        ValueError: what `generate` raises, at once and not at the first item.
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
    checks.positive_int("max_new_tokens", max_new_tokens)
    refuse_capture("stream")
    strategy, arguments = search_arguments(
        model, inputs, max_new_tokens, strategy, prefix
    )
    count = len(keras.tree.flatten(arguments[0])[0])
    limit = getattr(model, "max_sequence_length", None)
    arguments = taken(arguments, np.arange(count), fill_id(model), limit)
    # Not the model itself: the programs would keep it alive.
    search = Search(strategy, weakref.proxy(model), max_new_tokens)
    variables = model.variables
    start, step_fn = (
        compiled(function, variables, model, search.key(name))
        for name, function in zip(
            ("start", "step_and_read"),
            search.captured(search.step_and_read),
            strict=True,
        )
    )
    return _steps(model, variables, search, start, step_fn, *arguments)


def _steps(model, variables, search, start, step_fn, inputs, prefix, uniforms):
    spec = search.spec
    loop, memory = start(inputs)
    constants = LoopConstants(
        memory, prefix, uniforms, prepared_weights(model, variables)
    )
    step = 0
    lengths = search.lengths()
    for present, length in zip([lengths[0], *lengths], lengths, strict=False):
        loop = search.lengthened(loop, present, length)
        extra = [(0, 0), (0, 0), (0, spec.max_new_tokens - length)]
        while step < length:
            loop, found, active = step_fn(loop, constants)
            step += 1
            going, found, active = keras.tree.map_structure(
                _array, (loop.going, found, active)
            )
            tokens, live_tokens = (
                np.pad(tokens, extra, constant_values=spec.pad_id)
                for tokens in (found[0], active.tokens)
            )
            active = active._replace(tokens=live_tokens)
            yield StreamedToken(step, tokens, *found[1:], active)
            if not going:
                return


def _array(tensor):
    # A copy: PyTorch's array would be its tensor's memory.
    return np.array(keras.ops.convert_to_numpy(tensor))
