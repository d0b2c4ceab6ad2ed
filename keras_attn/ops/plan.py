"""Choice of the kernel for a call of `attend`."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import keras

from keras_attn import checks
from keras_attn.backend import (
    blockwise_pays,
    fused_obstacle,
    is_torch_program,
    known_size,
    sequence_split,
)
from keras_attn.ops.position_bias import PositionBias
from keras_attn.ops.visibility import Visibility
from keras_attn.typing import TensorLike

if TYPE_CHECKING:
    from keras_attn.ops.weight_dropout import WeightDropout


KERNELS = ("ring", "fused", "blockwise", "plain")


class AttentionPlan(NamedTuple):
    """The kernel chosen for a call, and why faster ones were rejected.

    Args:
        kernel: `"fused"`, `"blockwise"`, `"plain"` or `"ring"`.
        reason: str. Why this kernel was chosen.
        causal_only: bool. Whether keys are masked only by the causal order and
            possibly a window, which the fused kernel supports without a mask.
        rejected: tuple of pairs of str. Kernels that would be preferred, and
            why they cannot run.

    Examples:
        >>> plan = keras_attn.ops.AttentionPlan("plain", "it was asked for")
        >>> print(plan)
        plain: it was asked for
    """

    kernel: str
    reason: str
    causal_only: bool = False
    rejected: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        lines = [f"{self.kernel}: {self.reason}"]
        lines += [f"not {name}: {why}" for name, why in self.rejected]
        return "\n".join(lines)


def attention_plan(
    query: TensorLike,
    key: TensorLike,
    visibility: Visibility | None = None,
    bias: TensorLike | None = None,
    dropout: "WeightDropout | None" = None,
    return_weights: bool = False,
    kernel: str | None = None,
    value: TensorLike | None = None,
    soft_cap: float | None = None,
    sinks: TensorLike | None = None,
) -> AttentionPlan:
    """Chooses the kernel for a call of `attend`; `attend` runs this plan.

    Args:
        query: float (B, T, N, H), or anything with that `shape` and a `dtype`.
        key: float (B, S, K, H), or anything with that `shape` and a `dtype`.
        visibility: `Visibility`. Default: every query sees every key.
        bias: float broadcastable to (B, N, T, S), a `PositionBias`, or None.
        dropout: `WeightDropout`, any callable on the weights, or None.
        return_weights: bool. Whether the weights are returned.
        kernel: `"fused"`, `"blockwise"`, `"plain"` or `"ring"` to force a
            kernel; default None: choose one.
        value: float (B, S, K, W), or anything with that `shape`; default `key`.
        soft_cap: float > 0, as for `attend`, or None.
        sinks: float (N,), as for `attend`, or None.

    Returns:
        An `AttentionPlan`.

    Raises:
        ValueError: if the forced kernel cannot run the call, with the reason,
            if the devices that split sequences do not divide their length, or
            if `visibility` is not a `Visibility`.

    Examples:
        >>> x = keras.ops.ones((1, 2, 1, 4))
        >>> plan = keras_attn.ops.attention_plan(
        ...     x, x, keras_attn.ops.Visibility(), return_weights=True)
        >>> plan.kernel
        'plain'
    """
    value = key if value is None else value
    for name, x in (("query", query), ("key", key), ("value", value)):
        checks.rank(name, checks.floats(name, checks.tensor(name, x)), 4)
    check_bias_and_dropout(bias, dropout)
    checks.boolean("return_weights", return_weights)
    check_cap_and_sinks(soft_cap, sinks, query.shape[2])
    return choose_kernel(
        query,
        key,
        visibility,
        bias,
        dropout,
        return_weights,
        kernel,
        value,
        soft_cap,
        sinks,
    )


def check_cap_and_sinks(
    soft_cap: float | None, sinks: TensorLike | None, heads: int
) -> None:
    """Raises ValueError for a soft cap or sinks that cannot be applied."""
    if soft_cap is not None:
        checks.positive("soft_cap", soft_cap)
    if sinks is not None:
        checks.floats("sinks", checks.tensor("sinks", sinks))
        if tuple(sinks.shape) != (heads,):
            raise ValueError(
                f"`sinks` must have shape ({heads},), one score per head. "
                f"Received: sinks of shape {tuple(sinks.shape)}"
            )


def check_bias_and_dropout(bias: TensorLike, dropout: Any) -> None:
    """Raises ValueError for a bias or a dropout that cannot be applied."""
    if isinstance(bias, PositionBias):
        if not callable(bias.function):
            raise ValueError(
                "`bias` must have a callable `function`. Received: function of "
                f"type {type(bias.function).__name__}"
            )
    elif bias is not None:
        checks.tensor("bias", bias, "a tensor or a `PositionBias`")
        checks.no_complex("bias", bias)
        if "bool" in str(bias.dtype):
            raise ValueError(
                "`bias` must hold numbers that are added to scores; pass a "
                "mask as `attention_mask` of the `visibility`. Received: bias "
                "of dtype bool"
            )
        if len(bias.shape) > 4:
            raise ValueError(
                "`bias` must broadcast to (batch, heads, query length, key "
                f"length). Received: bias of shape {tuple(bias.shape)}"
            )
    if dropout is not None and not callable(dropout):
        raise ValueError(
            "`dropout` must be a `WeightDropout` or a callable. "
            f"Received: dropout of type {type(dropout).__name__}"
        )


def choose_kernel(
    query: TensorLike,
    key: TensorLike,
    visibility: Visibility | None = None,
    bias: TensorLike | None = None,
    dropout: Callable[..., Any] | None = None,
    return_weights: bool = False,
    kernel: str | None = None,
    value: TensorLike | None = None,
    soft_cap: float | None = None,
    sinks: TensorLike | None = None,
) -> AttentionPlan:
    """Computes `attention_plan` of arguments that are known to fit."""
    visibility = Visibility() if visibility is None else visibility
    if not isinstance(visibility, Visibility):
        raise ValueError(
            "`visibility` must be a `Visibility` or None; `value` is given by "
            f"name. Received: visibility={type(visibility).__name__}"
        )
    if kernel is not None:
        checks.choice("kernel", kernel, (None, *KERNELS))
    lengths = query.shape[1], key.shape[1]
    of_positions = isinstance(bias, PositionBias)
    # Flags may be given as 0 and 1, which kernels do not accept.
    causal_only = bool(bias is None and _causal_only(visibility, lengths))
    lengths = tuple(map(known_size, lengths))
    obstacles = {
        "fused": fused_obstacle(
            query,
            (key if value is None else value).shape[-1],
            bias=bias.parameters if of_positions else bias,
            bias_dtype=_bias_dtype(bias),
            masked=not _sees_all(visibility)
            and not (causal_only and visibility.window is None),
            weights=return_weights,
            dropout=dropout is not None,
        ),
        "blockwise": _blockwise_obstacle(lengths, return_weights, dropout),
        "plain": None,
    }
    for obstacle, given in (
        ("it cannot cap scores", soft_cap),
        ("it has no attention sinks", sinks),
    ):
        if given is not None:
            obstacles["fused"] = obstacles["blockwise"] = obstacle
    split = sequence_split()
    obstacles["ring"] = _ring_obstacle(
        split, lengths, obstacles["blockwise"], kernel
    )
    if kernel is not None:
        if obstacles[kernel]:
            raise ValueError(
                f"`kernel` must be one that can run this call: the {kernel} "
                f"kernel was forced, but {obstacles[kernel]}. "
                f"Received: kernel={kernel!r}"
            )
        fused_causal = causal_only and kernel == "fused"
        return AttentionPlan(kernel, "it was asked for", fused_causal)
    large_tensor = _large_tensor(visibility, of_positions, causal_only)
    long = None not in lengths and blockwise_pays(
        *lengths,
        dense=_sees_all(visibility),
        # An unknown batch size counts as one row.
        heads=(query.shape[0] or 1) * query.shape[2],
    )
    if (
        not obstacles["fused"]
        and long
        and large_tensor
        and not obstacles["blockwise"]
    ):
        obstacles["fused"] = f"it would need {large_tensor} of {_size(lengths)}"
    if not long and not obstacles["blockwise"]:
        obstacles["blockwise"] = (
            f"{_size(lengths)} scores per head are few: it would be slower"
        )
    reasons = {
        "ring": "the sequence is split over devices",
        "fused": "the backend has one",
        "blockwise": f"{_size(lengths)} scores a head need not be held",
        "plain": "no other kernel serves",
    }
    rejected = []
    for choice in KERNELS if split else KERNELS[1:]:
        if not obstacles[choice]:
            break
        rejected.append((choice, obstacles[choice]))
    return AttentionPlan(
        choice,
        reasons[choice],
        causal_only and choice == "fused",
        tuple(rejected),
    )


def _blockwise_obstacle(lengths, weights, dropout):
    if weights:
        return "a blockwise kernel never holds the weights that were asked for"
    if dropout is not None and not hasattr(dropout, "seed"):
        return "it needs a `WeightDropout`, to drop the same weights twice"
    if None in lengths:
        return "the lengths are not known at compile time"
    return None


def _ring_obstacle(split, lengths, blockwise_obstacle, kernel):
    """Returns why sequences cannot stay split over devices, or None.

    Raises:
        ValueError: queries and keys of one sequence whose length the devices do
            not divide.
    """
    if split is None:
        return "no layout of the active distribution splits sequences"
    if blockwise_obstacle:
        return blockwise_obstacle
    devices = split.devices
    if not any(length % devices for length in lengths):
        return None
    query_length, key_length = lengths
    if kernel is None and query_length == key_length > 1:
        raise ValueError(
            f"`query` must have a length that is a multiple of {devices}, the "
            f"number of devices of the mesh axis {split.context!r} that splits "
            f"sequences; pad the sequences. Received: {query_length} tokens"
        )
    return (
        f"the {devices} devices that split sequences do not divide the lengths "
        f"{query_length} and {key_length}"
    )


def _causal_only(v, lengths):
    return (
        v.causal
        and not v.strict
        and v.attention_mask is None
        and v.query_segment_ids is None
        and v.query_order is None
        and v.key_order is None
        and v.query_positions is v.key_positions
        and (v.query_positions is None or v.padding == "right")
        # Fused kernels align the causal triangle to the top left
        # (as of JAX 0.10.2 and PyTorch 2.13.0).
        and lengths[0] == lengths[1] is not None
    )


def _bias_dtype(bias):
    if bias is None:
        return None
    if isinstance(bias, PositionBias):
        return "float32"
    return keras.backend.standardize_dtype(bias.dtype)


def _sees_all(v):
    tensors = (
        v.query_positions,
        v.key_positions,
        v.query_segment_ids,
        v.attention_mask,
    )
    masked = any(tensor is not None for tensor in tensors)
    return not masked and not v.causal and v.window is None


def _large_tensor(v, of_positions, causal_only):
    """Returns the tensor of size T x S a fused kernel would need, or None."""
    if of_positions:
        return "a bias"
    given = v.attention_mask
    if given is not None and 1 not in given.shape[2:]:
        # It exists already.
        return None
    by_pairs = (
        v.causal or v.window is not None or v.query_segment_ids is not None
    )
    return "a mask" if by_pairs and not causal_only else None


def _size(lengths):
    # Lengths that vary are symbols, which Dynamo cannot format
    # (as of PyTorch 2.13.0).
    if is_torch_program():
        return "T x S"
    return " x ".join("?" if n is None else f"{n:,}" for n in lengths)
