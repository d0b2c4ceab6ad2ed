"""What a language model has read, to be continued later."""

import weakref
from typing import Any, NamedTuple

import numpy as np
from keras import ops, tree

from keras_attn import cache as kv
from keras_attn import checks
from keras_attn.backend import compiled, programs_of, to_numpy
from keras_attn.decoding.token_rows import few_lengths, padded
from keras_attn.models.prompts import prompt_rows
from keras_attn.typing import Nest

# Their rotation of a key depends on tokens that come later.
_BY_LENGTH = "dynamic", "longrope"


class PromptState(NamedTuple):
    """The tokens that a model has read, with their keys and values.

    Plain arrays: they can be used several times, and stored. They hold all
    tokens, also those that have left the sliding window of a layer: the next
    tokens of each row are moved after its own, which needs their positions.

    Args:
        tokens: NumPy object array (B,) of int32 arrays, all tokens of each row.
            The last ones may not be read yet, among them always the very last.
        keys: tuple of NumPy float (B, L, K, H), one per layer.
        values: tuple of NumPy float (B, L, K, H), one per layer.
        positions: NumPy int32 (B, L), -1 without a token.

    Examples:
        >>> model = keras_attn.models.GPT(
        ...     100, num_layers=2, num_heads=2, hidden_dim=16,
        ...     max_sequence_length=32)
        >>> state = model.read([[7, 8, 9], [5]])
        >>> [row.tolist() for row in state.tokens]
        [[7, 8, 9], [5]]
        >>> decoded = model.generate([[4, 6], [3]], 4, state=state)
        >>> len(decoded.state.tokens[0])
        9
    """

    tokens: Any
    keys: Any
    values: Any
    positions: Any


def check_state(state: Any, num_layers: int, heads: int, head_dim: int) -> None:
    """Checks the state that a call continues.

    Args:
        state: `PromptState`.
        num_layers: int. Of the model.
        heads: int. K.
        head_dim: int. H.

    Raises:
        ValueError: `state` is no `PromptState`, or one of another model.
    """
    checks.instance("state", state, PromptState, "a `PromptState`")
    shape = len(state.tokens), None, heads, head_dim
    arrays = [*state.keys, *state.values]
    if len(state.keys) != num_layers or not all(
        checks.fits(array.shape, shape) for array in arrays
    ):
        raise ValueError(
            "`state` must be of a model with the same layers and heads: "
            f"{num_layers} layers with {heads} heads of {head_dim} "
            f"features. Received: {len(state.keys)} layers with keys of shape "
            f"{[array.shape for array in state.keys[:1]]}"
        )


def read_tokens(model: Any, inputs: Nest, state: Any, read: Any) -> PromptState:
    """Reads all tokens but the last one of each row.

    Args:
        model: `GPT`.
        inputs: the next tokens of each row, as for `generate`; None: no others
            than those of the state that are not read yet.
        state: `PromptState` of this model, or None.
        read: function of the model, int32 ids (B, T), int32 lengths (B,), and
            the keys, values and positions of a state or (), that returns those
            of all tokens.

    Returns:
        The next `PromptState`.

    Raises:
        ValueError: other arguments, or positions that depend on the length.
    """
    _check_positions(model)
    tokens: Any = None
    if state is not None:
        tokens = state.tokens
    if inputs is not None or state is None:
        rows = prompt_rows(inputs, model.pad_id, model.vocabulary_size)
        if tokens is None:
            tokens = rows
        elif len(rows) != len(tokens):
            raise ValueError(
                f"`inputs` must have the {len(tokens)} rows of `state`. "
                f"Received: {len(rows)} rows"
            )
        else:
            joined = np.empty(len(rows), object)
            for index, row in enumerate(rows):
                joined[index] = np.concatenate([tokens[index], row])
            tokens = joined
    longest = max(map(len, tokens))
    limit = model.max_sequence_length
    if limit is not None and longest > limit:
        raise ValueError(
            "`inputs` must not exceed the position table of "
            f"max_sequence_length={limit} rows, together with the tokens of "
            f"`state`. Received: {longest} tokens"
        )
    done = np.zeros(len(tokens), int)
    before: Any = ()
    if state is not None:
        done = (state.positions >= 0).sum(1)
        before = state.keys, state.values, state.positions
    rest = [row[n:-1] for row, n in zip(tokens, done, strict=True)]
    lengths = np.array([len(row) for row in rest], "int32")
    if state is not None and not lengths.any():
        return state._replace(tokens=tokens)
    arguments = padded(rest, 0, limit), lengths, before
    arguments = tree.map_structure(ops.convert_to_tensor, arguments)
    found = _program(model, read)(*arguments)
    found = tree.map_structure(to_numpy, found)
    return PromptState(tokens, *_compact(*found, limit))


def cache_of(state: Nest, slots: int, dtype: str) -> kv.KVCache:
    """Returns the cache of keys, values and positions, with more slots."""
    keys, values, positions = state
    keys, values = (
        [ops.cast(part, dtype) for part in parts] for parts in (keys, values)
    )
    return kv.grown(kv.from_projections(keys, values, positions), slots)


def _program(model, read):
    programs = programs_of(model, model.variables)
    # A proxy: the program would keep the model alive.
    model = weakref.proxy(model)

    def read_of_model(ids, lengths, before):
        return read(model, ids, lengths, before)

    return compiled(read_of_model, programs.variables, programs, "read")


def _compact(keys, values, positions, limit):
    """Moves the tokens of each row to the slots of their positions."""
    length = few_lengths(max(int(positions.max()) + 1, 1), limit)
    rows, slots = np.nonzero(positions >= 0)
    targets = positions[rows, slots]

    def moved(array, fill=0):
        shape = len(array), length, *array.shape[2:]
        found = np.full(shape, fill, array.dtype)
        found[rows, targets] = array[rows, slots]
        return found

    return (
        tuple(map(moved, keys)),
        tuple(map(moved, values)),
        moved(positions, -1),
    )


def _check_positions(model):
    positions = model.attention_position
    if not isinstance(positions, (list, tuple)):
        positions = [positions]
    for position in positions:
        scaling = getattr(position, "scaling", None) or {}
        kind = scaling.get("rope_type", scaling.get("type"))
        if kind in _BY_LENGTH:
            raise ValueError(
                "`state` needs positions that do not depend on the tokens that "
                f"follow. Received: a model with rope_type={kind!r}"
            )
