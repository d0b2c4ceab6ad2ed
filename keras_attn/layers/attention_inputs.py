"""Preparation of the inputs of an attention layer."""

from typing import TYPE_CHECKING, Any

from keras import ops

from keras_attn import checks
from keras_attn.backend import bool_mask, zero_masked
from keras_attn.ops import packed_positions, positions_from_mask
from keras_attn.ops.visibility import implicit_mask, make_visibility
from keras_attn.typing import Tensor, TensorLike

if TYPE_CHECKING:
    from keras_attn.layers.attention_axes import AttentionAxes
    from keras_attn.ops.visibility import Visibility


# The arguments of a call that are masks.
MASKS = "query_mask", "value_mask", "key_mask", "attention_mask"
# Those that are tensors.
TENSORS = (
    *("query", "value", "key"),
    *MASKS,
    *("query_positions", "key_positions"),
    *("query_segment_ids", "key_segment_ids"),
)


def read_inputs(
    axes: "AttentionAxes",
    inputs: tuple[Any, ...],
    *,
    masks: tuple[Any, ...],
    positions: tuple[Any, ...] | None,
    segments: tuple[Any, ...] | None,
    attention_mask: TensorLike | None,
    counted: bool = False,
    **rule: Any,
) -> "tuple[Tensor, Tensor, Tensor, Visibility]":
    """Prepares the call arguments of an attention layer.

    Args:
        axes: `AttentionAxes`.
        inputs: query, value and key, with the caller's axes.
        masks: bool masks of query, value and key. None means the implicit mask.
        positions: int32 positions of the queries and of the keys, or None.
        segments: int32 segment ids of the queries and of the keys, or None.
        attention_mask: as for the layer, or None.
        counted: bool. Positions count the tokens that are not masked, even if
            query and key are different sequences.
        **rule: `causal`, `window` and `relative` of `make_visibility`.

    Returns:
        Query, value and key, each (batch, length, features), zero at masked
        positions, and the `Visibility`.
    """
    query_mask, value_mask, key_mask = (
        axes.fold_there(name, mask, like)
        for name, mask, like in zip(
            MASKS[:3],
            bool_masks(MASKS[:3], filled_masks(inputs, masks)),
            inputs,
            strict=True,
        )
    )
    query_positions, key_positions, query_segment_ids, key_segment_ids = (
        axes.fold_there(name, integers(name, given), like)
        for name, given, like in zip(
            (
                "query_positions",
                "key_positions",
                "query_segment_ids",
                "key_segment_ids",
            ),
            (*positions, *segments),
            inputs[:2] * 2,
            strict=True,
        )
    )
    key_mask = both(value_mask, key_mask)
    one_sequence = (
        query_mask is key_mask and query_segment_ids is key_segment_ids
    )
    if counted and not one_sequence:
        query_positions = _count(query_positions, query_mask, query_segment_ids)
        key_positions = _count(key_positions, key_mask, key_segment_ids)
    query, value, key = (axes.fold(x) for x in inputs)
    visibility = make_visibility(
        ops.shape(query)[1],
        ops.shape(value)[1],
        query_mask=query_mask,
        key_mask=key_mask,
        query_positions=query_positions,
        key_positions=key_positions,
        query_segment_ids=query_segment_ids,
        key_segment_ids=key_segment_ids,
        attention_mask=axes.fold_mask(attention_mask),
        **rule,
    )
    # Before the projections, because 0 * NaN is NaN in the gradient of their
    # kernels too.
    query = clean(query, visibility.query_positions)
    one_mask = visibility.query_positions is visibility.key_positions
    if inputs[1] is inputs[0] and one_mask:
        value = query
    else:
        value = clean(value, visibility.key_positions)
    if inputs[2] is inputs[1]:
        key = value
    else:
        key = clean(key, visibility.key_positions)
    return query, value, key, visibility


def integers(name: str, tensor: TensorLike) -> Any:
    """Checks that positions or segment ids are integers; passes None."""
    return None if tensor is None else checks.integers(name, tensor)


def filled_masks(inputs: TensorLike, masks: Any) -> tuple[Any, Any, Any]:
    """Fills in the implicit masks; a redundant key mask becomes None."""
    query_mask, value_mask, key_mask = (
        implicit_mask(x) if mask is None else mask
        for x, mask in zip(inputs, masks, strict=True)
    )
    # If value and key are one tensor, its implicit mask applies once, and not
    # in addition to an explicit mask.
    shared = inputs[2] is inputs[1] and key_mask is implicit_mask(inputs[2])
    if shared or key_mask is value_mask:
        key_mask = None
    return query_mask, value_mask, key_mask


def bool_masks(names: Any, masks: Any) -> Any:
    """Converts masks to bool; equal objects stay equal, and None is None."""
    converted = []
    for index, (name, mask) in enumerate(zip(names, masks, strict=True)):
        # No `id`: a program of `torch.compile` would be bound to this one
        # object and compiled again for every new mask (as of PyTorch 2.13.0).
        same = [n for n in range(index) if masks[n] is mask]
        if mask is not None:
            mask = converted[same[0]] if same else bool_mask(name, mask)
        converted.append(mask)
    return converted


def both(first: TensorLike | None, second: TensorLike | None) -> Tensor | None:
    """Computes the logical and of two masks; None masks nothing."""
    if first is None or second is None:
        return second if first is None else first
    return ops.logical_and(first, second)


def clean(x: TensorLike, positions: TensorLike) -> Tensor:
    """Zeros the positions without a token."""
    if positions is None:
        return x
    return zero_masked(x, positions >= 0)


def _count(positions, mask, segments):
    if positions is not None:
        return positions
    if segments is not None:
        return packed_positions(segments, mask)
    return None if mask is None else positions_from_mask(mask)
