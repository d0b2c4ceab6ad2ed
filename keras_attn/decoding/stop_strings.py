"""Stop strings as an automaton that reads tokens."""

import weakref
from typing import Any

import numpy as np
from keras import ops

from keras_attn import checks
from keras_attn.backend import gather_rows
from keras_attn.typing import Tensor, TensorLike

# Entries of a table: 1 GiB.
_MOST_ENTRIES = 2**28
# Tables kept per tokenizer.
_MOST_TABLES = 8

_tables: Any = weakref.WeakKeyDictionary()


def check_stop_strings(stop_strings: Any, tokenizer: Any) -> tuple[str, ...]:
    """Returns stop strings as a tuple, which may be empty.

    Args:
        stop_strings: str, list of str, or None.
        tokenizer: object with `token_bytes` and `decode`, or None.

    Raises:
        ValueError: other arguments, or stop strings without a tokenizer.
    """
    if tokenizer is not None and (
        isinstance(tokenizer, type)
        or not callable(getattr(tokenizer, "token_bytes", None))
        or not callable(getattr(tokenizer, "decode", None))
    ):
        raise ValueError(
            "`tokenizer` must have the methods `token_bytes` and `decode`, as "
            "those of `keras_attn.text` have. "
            f"Received: tokenizer={checks.shown(tokenizer)}"
        )
    if stop_strings is None:
        return ()
    expected = "`stop_strings` must be a str or a list of str, none of it empty"
    if isinstance(stop_strings, str):
        stop_strings = [stop_strings]
    if not isinstance(stop_strings, (list, tuple)):
        raise ValueError(f"{expected}. Received: {checks.shown(stop_strings)}")
    for string in stop_strings:
        if not isinstance(string, str) or not string:
            raise ValueError(f"{expected}. Received: {checks.shown(string)}")
        if any("\ud800" <= character <= "\udfff" for character in string):
            raise ValueError(
                "`stop_strings` must have no lone surrogates. "
                f"Received: {string!a}"
            )
    if stop_strings and tokenizer is None:
        raise ValueError(
            "`stop_strings` need the `tokenizer` that decodes the tokens. "
            "Received: tokenizer=None"
        )
    return tuple(stop_strings)


def stop_table(stop_strings: tuple[str, ...], tokenizer: Any) -> Any:
    """Returns the transitions of an automaton that finds stop strings.

    The automaton is that of Aho and Corasick 1975, over bytes of UTF-8: state 0
    is the start, and the last state, which it never leaves, means that the text
    contains a string.

    Args:
        stop_strings: tuple of str, at least one.
        tokenizer: object with `token_bytes`.

    Returns:
        NumPy int32 (S, V), the state after each token.

    Raises:
        ValueError: stop strings that are too long for a table.
    """
    tables = _tables.setdefault(tokenizer, {})
    key = tuple(sorted({*stop_strings}))
    if key not in tables:
        if len(tables) >= _MOST_TABLES:
            del tables[next(iter(tables))]
        tables[key] = _token_transitions(
            _byte_transitions([string.encode() for string in key]),
            tokenizer.token_bytes(),
        )
    return tables[key]


def next_states(states: TensorLike, table: TensorLike, size: int) -> Tensor:
    """Returns the states after each possible token.

    Args:
        states: int32 (B, k).
        table: int32 (S, V'), of `stop_table`.
        size: int. V, the tokens of the model. Those that the tokenizer does not
            have lead to the start.

    Returns:
        Int32 (B, k, V).
    """
    found = gather_rows(table, states)
    known = found.shape[-1]
    if known >= size:
        return found[..., :size]
    return ops.pad(found, [(0, 0), (0, 0), (0, size - known)])


def state_after(
    states: TensorLike, table: TensorLike, tokens: TensorLike
) -> Tensor:
    """Returns the states (B, k) after one token (B, k) each."""
    known = table.shape[1]
    index = states * known + ops.clip(tokens, 0, known - 1)
    found = gather_rows(ops.reshape(table, (-1,)), index)
    has_text = ops.logical_and(tokens >= 0, tokens < known)
    return ops.where(has_text, found, 0)


def _byte_transitions(strings):
    """Returns the states after each byte, int32 (S, 256)."""
    children: list[dict[int, int]] = [{}]
    ends = set()
    for string in strings:
        state = 0
        for byte in string:
            if byte not in children[state]:
                children[state][byte] = len(children)
                children.append({})
            state = children[state][byte]
        ends.add(state)
    count = len(children)
    table = np.zeros((count, 256), "int32")
    fallbacks = [0] * count
    queue = [0]
    for state in queue:
        fallback = fallbacks[state]
        if state:
            table[state] = table[fallback]
        if fallback in ends:
            ends.add(state)
        for byte, child in children[state].items():
            # Of depth 1: the start. Otherwise where the fallback goes.
            fallbacks[child] = int(table[fallback, byte]) if state else 0
            table[state, byte] = child
            queue.append(child)
    # All states in which a string has ended become the last one.
    others = [state for state in range(count) if state not in ends]
    last = len(others)
    renamed = np.full(count, last, "int32")
    renamed[others] = np.arange(last)
    return np.concatenate(
        [renamed[table[others]], np.full((1, 256), last, "int32")]
    )


def _token_transitions(table, tokens):
    """Returns the states after each token, int32 (S, V)."""
    count, size = len(table), len(tokens)
    if count * size > _MOST_ENTRIES:
        raise ValueError(
            "`stop_strings` must have fewer bytes: they need a table of "
            f"{_MOST_ENTRIES} entries at most. Received: {count} states for "
            f"{size} tokens"
        )
    lengths = np.array([len(token) for token in tokens])
    order = np.argsort(-lengths, kind="stable")
    states = np.repeat(np.arange(count, dtype="int32")[:, None], size, axis=1)
    for position in range(int(lengths.max())):
        longer = order[lengths[order] > position]
        column = np.array([tokens[i][position] for i in longer])
        states[:, longer] = table[states[:, longer], column]
    return states
