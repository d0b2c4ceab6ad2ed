"""Packed rows: inputs with several sentences in a row."""

from typing import Any

from keras import ops

from keras_attn import checks
from keras_attn.models.input_checks import check_ids
from keras_attn.ops import packed_positions
from keras_attn.typing import Nest, Tensor, TensorLike

PACKING_IDS = "packing_ids"
_MOST = 2**31 - 1


def check_packing_ids(
    ids: TensorLike, shape: tuple[Any, ...], name: str = PACKING_IDS
) -> Tensor:
    """Checks the packing ids of rows.

    Args:
        ids: array, nest of lists, tensor or symbolic tensor.
        shape: tuple. The shape of the token ids.
        name: str. Name of the argument, for error messages.

    Returns:
        The ids; lists come back as an int32 array.

    Raises:
        ValueError: another shape, or ids that are not integers from 0 on.

    Examples:
        >>> from keras_attn.models.packing import check_packing_ids
        >>> check_packing_ids([[1, 1, 2, 0]], (1, 4)).tolist()
        [[1, 1, 2, 0]]
    """
    ids = check_ids(name, ids, _MOST)
    if not checks.fits(tuple(ids.shape), tuple(shape)):
        raise ValueError(
            f"`{name}` must have an id for each token of {tuple(shape)}. "
            f"Received: shape {tuple(ids.shape)}"
        )
    return ids


def sentence_positions(
    packing_ids: TensorLike, token_mask: TensorLike | None = None
) -> Tensor:
    """Computes positions that restart at each sentence of a packed row.

    Args:
        packing_ids: int32 (B, T), from 1 on at tokens, 0 at padding.
        token_mask: bool (B, T), True at tokens. Default: True except where
            `packing_ids` is 0.

    Returns:
        Int32 (B, T), -1 at padding.

    Examples:
        >>> from keras_attn.models.packing import sentence_positions
        >>> ids = np.array([[1, 1, 1, 2, 2, 0]])
        >>> keras.ops.convert_to_numpy(sentence_positions(ids)).tolist()
        [[0, 1, 2, 0, 1, -1]]
    """
    packing_ids = ops.convert_to_tensor(packing_ids)
    inside = packing_ids > 0
    if token_mask is not None:
        inside = ops.logical_and(inside, token_mask)
    return packed_positions(packing_ids, inside)


def sentence_starts(packing_ids: TensorLike) -> Tensor:
    """Returns bool (B, T), True where a sentence of a packed row starts.

    Args:
        packing_ids: int32 (B, T).

    Examples:
        >>> from keras_attn.models.packing import sentence_starts
        >>> ids = np.array([[1, 1, 2, 0]])
        >>> keras.ops.convert_to_numpy(sentence_starts(ids)).tolist()
        [[True, False, True, False]]
    """
    return ops.equal(sentence_positions(packing_ids), 0)


def ids_and_packing(inputs: Nest) -> tuple[Any, Any]:
    """Returns token ids, and packing ids or None, of one side of a pair."""
    if is_packed(inputs):
        return inputs["token_ids"], inputs[PACKING_IDS]
    # Sources of a subclass may be another dict.
    return inputs, None


def split_pair(inputs: Nest) -> tuple[Nest, list[Any] | None]:
    """Splits a pair of dicts into pairs of token ids and packing ids.

    Args:
        inputs: pair of ids, or of dicts with `"token_ids"` and `"packing_ids"`.

    Returns:
        The pair of ids, and the pair of packing ids or None.

    Raises:
        ValueError: one side is a dict and the other is not, or a dict has
            other keys.
    """
    pair = isinstance(inputs, (list, tuple)) and len(inputs) == 2
    dicts = [isinstance(one, dict) for one in inputs] if pair else []
    if not any(dicts):
        return inputs, None
    expected = {"token_ids", PACKING_IDS}
    if not all(dicts) or any(one.keys() != expected for one in inputs):
        received = " and ".join(
            f"a dict of {', '.join(map(str, one))}"
            if isinstance(one, dict)
            else "ids"
            for one in inputs
        )
        raise ValueError(
            "`inputs` must be a pair of ids or a pair of dicts of token_ids "
            f"and {PACKING_IDS}. Received: {received}"
        )
    return (
        [one["token_ids"] for one in inputs],
        [one[PACKING_IDS] for one in inputs],
    )


def is_packed(inputs: Nest) -> bool:
    """Returns whether inputs, or their shapes, have packing ids."""
    return isinstance(inputs, dict) and PACKING_IDS in inputs


def refuse_packing(inputs: Nest, reason: str) -> None:
    """Raises ValueError if a dict of inputs has packing ids.

    Args:
        inputs: any inputs.
        reason: str. What needs one sentence per row, for the error message.
    """
    if is_packed(inputs):
        raise ValueError(
            f"`{PACKING_IDS}` must be left out, because {reason}. "
            f"Received: {PACKING_IDS}"
        )
