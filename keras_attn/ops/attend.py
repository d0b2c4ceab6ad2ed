"""Scaled dot-product attention, softmax(Q K^T) V, by the best kernel."""

from collections.abc import Callable
from typing import Any, NamedTuple

from keras import ops

from keras_attn import checks
from keras_attn.backend import (
    batched_matmul,
    fused_attention,
    is_statically_false,
    zero_masked,
)
from keras_attn.ops.blockwise import attend_blockwise
from keras_attn.ops.plan import (
    check_bias_and_dropout,
    check_cap_and_sinks,
    choose_kernel,
)
from keras_attn.ops.position_bias import PositionBias, as_tensors, four_axes
from keras_attn.ops.positions import default_positions
from keras_attn.ops.ring import attend_ring
from keras_attn.ops.score_softmax import hidden, softmax, softmax_with_sinks
from keras_attn.ops.scores import head_scores
from keras_attn.ops.visibility import (
    Visibility,
    has_visible_key,
    is_key_padding_only,
)
from keras_attn.typing import Tensor, TensorLike


def attend(
    query: TensorLike,
    key: TensorLike,
    value: TensorLike,
    visibility: Visibility | None = None,
    bias: TensorLike | None = None,
    scale: float | None = None,
    dropout: Callable[..., Any] | None = None,
    return_weights: bool = False,
    kernel: str | None = None,
    soft_cap: float | None = None,
    sinks: TensorLike | None = None,
) -> Tensor:
    """Computes scaled dot-product attention.

        Attention(Q, K, V) = softmax(scale Q K^T + bias) V

    with scale = 1 / sqrt(H) by default (Vaswani et al. 2017, sec. 3.2.1, eq. 1,
    https://arxiv.org/abs/1706.03762). The softmax is over the visible keys, in
    float32. The plain kernel, `_plain` below, follows the equation line by
    line; the other kernels are tested against it. The ring kernel runs where
    the active `keras.distribution` splits sequences. A soft cap c replaces
    scale Q K^T by c tanh(scale Q K^T / c) (Gemma 2, sec. 2,
    https://arxiv.org/abs/2408.00118). Sinks add one key with a score per head
    and a value of zero, so that weights sum to less than 1 (Xiao et al. 2023,
    https://arxiv.org/abs/2309.17453, learned as in gpt-oss). Only the plain
    kernel has either. Masked queries, keys and
    values, NaN included, affect neither a visible row nor a gradient. The
    blockwise and the ring kernel have only a first derivative, in reverse mode
    on JAX.

    Args:
        query: float (B, T, N, H).
        key: float (B, S, K, H), K dividing N.
        value: float (B, S, K, W).
        visibility: `Visibility`. Default: every query sees every key.
        bias: float broadcastable to (B, N, T, S), or a `PositionBias`, added
            to the scores.
        scale: float. Default 1 / sqrt(H).
        dropout: `WeightDropout`, or any callable (B, N, T, S) -> (B, N, T, S),
            applied to the weights.
        return_weights: bool. Whether to return the weights too.
        kernel: `"fused"`, `"blockwise"`, `"plain"` or `"ring"` to force a
            kernel; default None: the choice of `attention_plan`.
        soft_cap: float > 0. The bound of the scores without the bias. Default
            None: no bound.
        sinks: float (N,). The score of the sink of each head. Default None: no
            sinks.

    Returns:
        Float (B, T, N, W) in the dtype of `query`, zero in fully masked rows;
        with `return_weights` a pair of it and the weights (B, N, T, S) before
        dropout, at least float32.

    Raises:
        ValueError: if a rank is not 4, if lengths, widths or numbers of heads
            do not match, if a forced kernel cannot run the call, or if the
            devices that split sequences do not divide their length.

    Examples:
        >>> x = keras.random.normal((1, 3, 2, 4), seed=0)
        >>> see = keras_attn.ops.Visibility(causal=True)
        >>> y, weights = keras_attn.ops.attend(
        ...     x, x, x, see, return_weights=True)
        >>> tuple(y.shape), float(weights[0, 0, 0, 0])
        ((1, 3, 2, 4), 1.0)
    """
    visibility = Visibility() if visibility is None else visibility
    checks.instance("visibility", visibility, Visibility, "a `Visibility`")
    for name, given in (("query", query), ("key", key), ("value", value)):
        checks.floats(name, checks.tensor(name, given))
    check_bias_and_dropout(bias, dropout)
    checks.boolean("return_weights", return_weights)
    if len(getattr(scale, "shape", ())):
        checks.rank("scale", scale, 0)
    elif scale is not None and not hasattr(scale, "shape"):
        checks.real("scale", scale)
    query, key, value = map(ops.convert_to_tensor, (query, key, value))
    _check_shapes(query, key, value)
    check_cap_and_sinks(soft_cap, sinks, query.shape[2])
    _check_visibility(visibility, query, key)
    if hasattr(bias, "shape"):
        expected = query.shape[0], query.shape[2], query.shape[1], key.shape[1]
        check_pairs("bias", bias, expected, least_rank=0)
    if visibility.query_positions is not None:
        query = zero_masked(query, visibility.query_positions >= 0)
    if visibility.key_positions is not None:
        token_mask = visibility.key_positions >= 0
        key = zero_masked(key, token_mask)
        value = zero_masked(value, token_mask)
    attended = attend_sanitized(
        query,
        key,
        value,
        visibility,
        bias=bias,
        scale=scale,
        dropout=dropout,
        return_weights=return_weights,
        kernel=kernel,
        # With key padding only, fully masked rows average zeroed values.
        zero_fully_masked=not is_key_padding_only(visibility),
        soft_cap=soft_cap,
        sinks=sinks,
    )
    if return_weights:
        return attended.output, attended.weights
    return attended.output


class Attended(NamedTuple):
    """Result of `attend_sanitized`.

    Args:
        output: float (B, T, N, W) in the dtype of `query`.
        weights: float (B, N, T, S) before dropout, at least float32, if
            requested, else None.
        sees_key: bool (B, T), a size-1 batch axis allowed, if requested: the
            queries that see a key in at least one head. None if all do.
    """

    output: Any
    weights: Any
    sees_key: Any


def attend_sanitized(
    query: TensorLike,
    key: TensorLike,
    value: TensorLike,
    visibility: Visibility,
    *,
    bias: TensorLike | None = None,
    scale: float | None = None,
    dropout: Callable[..., Any] | None = None,
    return_weights: bool = False,
    kernel: str | None = None,
    zero_fully_masked: bool = True,
    return_sees_key: bool = False,
    soft_cap: float | None = None,
    sinks: TensorLike | None = None,
) -> Attended:
    """Computes `attend` for inputs that are finite in masked rows.

    A layer zeros masked inputs once, before its projections, because a NaN
    would reach the gradient of their weights. Doing it again would be wasteful.

    Args:
        query: float (B, T, N, H), finite in masked rows.
        key: float (B, S, K, H), finite in masked rows.
        value: float (B, S, K, W), finite in masked rows.
        visibility: `Visibility`.
        bias: as for `attend`.
        scale: as for `attend`.
        dropout: as for `attend`.
        return_weights: as for `attend`.
        kernel: as for `attend`.
        zero_fully_masked: bool. Whether fully masked rows return zeros. If
            False they are finite but arbitrary, and the caller sets them.
        return_sees_key: bool. Whether to return which queries see a key.
        soft_cap: as for `attend`.
        sinks: as for `attend`.

    Returns:
        `Attended`.

    Raises:
        ValueError: if a forced kernel cannot run the call.

    Examples:
        >>> from keras_attn.ops.attend import attend_sanitized
        >>> x = keras.random.normal((1, 3, 2, 4), seed=0)
        >>> see = keras_attn.ops.Visibility(causal=True)
        >>> tuple(attend_sanitized(x, x, x, see).output.shape)
        (1, 3, 2, 4)
    """
    if is_empty(query, key):
        return _attend_nothing(query, key, value, return_weights)
    bias = as_tensors(bias)
    if visibility.attention_mask is not None:
        check_pairs(
            "attention_mask",
            visibility.attention_mask,
            (query.shape[0], query.shape[2], query.shape[1], key.shape[1]),
        )
    plan = choose_kernel(
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
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    lengths = ops.shape(query)[1], ops.shape(key)[1]
    if plan.kernel in ("blockwise", "ring"):
        in_blocks = attend_ring if plan.kernel == "ring" else attend_blockwise
        output = in_blocks(query, key, value, visibility, bias, scale, dropout)
        sees_key = None
        if return_sees_key:
            sees_key = has_visible_key(visibility, *lengths)
        return Attended(output, None, sees_key)
    if isinstance(bias, PositionBias):
        bias = _bias_tensor(bias, visibility, *lengths)
    mask = None if plan.causal_only else visibility.to_mask(*lengths)
    sees_key = _sees_key(visibility, mask, lengths)
    fully_masked = None if sees_key is None else ops.logical_not(sees_key)
    if fully_masked is not None and is_statically_false(fully_masked):
        sees_key = fully_masked = None
    weights = None
    if plan.kernel == "fused":
        output = fused_attention(
            query,
            key,
            value,
            mask,
            fully_masked,
            causal=plan.causal_only,
            scale=scale,
            bias=None if bias is None else four_axes(bias),
            window=visibility.window if plan.causal_only else None,
        )
    else:
        output, weights = _plain(
            query, key, value, mask, bias, scale, dropout, soft_cap, sinks
        )
    if fully_masked is not None and zero_fully_masked:
        # (B, N, T, 1) to (B, T, N, 1)
        output = ops.where(ops.transpose(fully_masked, (0, 2, 1, 3)), 0, output)
    if not return_weights:
        weights = None
    elif mask is not None:
        weights = ops.where(mask, weights, 0)
    if sees_key is not None and return_sees_key:
        # (B, N, T, 1) to (B, T)
        sees_key = ops.any(sees_key, axis=(1, 3))
    return Attended(output, weights, sees_key if return_sees_key else None)


def _sees_key(visibility, mask, lengths):
    """Returns the queries that see a key, bool (B, N, T, 1), size 1 allowed.

    None if all do, whatever the values of the tensors.
    """
    if visibility.attention_mask is not None:
        return ops.any(mask, axis=-1, keepdims=True)
    sees_key = has_visible_key(visibility, *lengths)
    return None if sees_key is None else sees_key[:, None, :, None]


def _bias_tensor(bias, visibility, query_length, key_length):
    query, key = visibility.query_positions, visibility.key_positions
    return bias.function(
        bias.parameters,
        default_positions(query_length) if query is None else query,
        default_positions(key_length) if key is None else key,
    )


def _plain(query, key, value, mask, bias, scale, dropout, soft_cap, sinks):
    # scale Q K^T + bias
    scores = head_scores(query, key, scale)
    if soft_cap is not None:
        scores = soft_cap * ops.tanh(scores / soft_cap)
    if bias is not None:
        scores = scores + ops.cast(bias, scores.dtype)
    # softmax(...)
    scores = hidden(scores, mask)
    if sinks is None:
        weights = softmax(scores)
    else:
        weights = softmax_with_sinks(scores, sinks)
    used = weights if dropout is None else dropout(weights)
    # ... V
    return _attend(ops.cast(used, value.dtype), value), weights


def _attend(weights, value):
    heads, key_heads = weights.shape[1], value.shape[2]
    batch, _, queries, keys = ops.shape(weights)
    value = ops.transpose(value, (0, 2, 1, 3))
    if heads != key_heads:
        together = heads // key_heads * queries
        weights = ops.reshape(weights, (batch, key_heads, together, keys))
    output = batched_matmul(weights, value)
    if heads != key_heads:
        width = value.shape[3]
        output = ops.reshape(output, (batch, heads, queries, width))
    return ops.transpose(output, (0, 2, 1, 3))


def is_empty(query: TensorLike, key: TensorLike) -> bool:
    """Returns whether there is no query or no key.

    Args:
        query: tensor (B, T, ...).
        key: tensor (B, S, ...).

    Returns:
        Bool. False if it depends on sizes that are unknown in compiled code.
    """
    return 0 in (*query.shape[:2], key.shape[1])


def _attend_nothing(query, key, value, return_weights):
    """Returns zeros, the output of queries without a key, as `Attended`."""
    groups = query.shape[2] // key.shape[2]
    key, value = (ops.repeat(x, groups, axis=2) for x in (key, value))
    weights = ops.einsum("btnh,bsnh->bnts", query, key)  # no elements
    output = ops.einsum("bnts,bsnw->btnw", weights, value)
    sees_key = ops.zeros(ops.shape(query)[:2], "bool")
    return Attended(
        ops.cast(output, query.dtype),
        ops.cast(weights, "float32") if return_weights else None,
        sees_key,
    )


def check_pairs(
    name: str,
    tensor: TensorLike,
    expected: tuple[Any, ...] | None,
    least_rank: int = 4,
) -> None:
    """Checks that a mask or bias broadcasts to (B, N, T, S).

    Args:
        name: str. Name of the argument, for error messages.
        tensor: tensor of a rank in [least_rank, 4].
        expected: tuple, the shape (B, N, T, S), with None for unknown sizes.
        least_rank: int.

    Raises:
        ValueError: another shape.
    """
    shape = tuple(tensor.shape)
    if not least_rank <= len(shape) <= 4 or any(
        None not in (size, other) and size not in (1, other)
        for size, other in zip(shape[::-1], expected[::-1], strict=False)
    ):
        raise ValueError(
            f"`{name}` must fit the shape (batch, heads, query length, "
            f"key length), {expected}. Received: {shape}"
        )


def _check_visibility(visibility, query, key):
    """Checks that positions, order and segment ids fit the tensors."""
    for side, like in (("query", query), ("key", key)):
        for what in ("positions", "order", "segment_ids"):
            name = f"{side}_{what}"
            given = getattr(visibility, name)
            if given is not None:
                checks.per_token(name, given, *like.shape[:2])


def _check_shapes(query, key, value):
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        if len(tensor.shape) != 4:
            raise ValueError(
                f"`{name}` must have shape (batch, length, heads, width). "
                f"Received: {tuple(tensor.shape)}"
            )
    if not checks.fits(query.shape[:1], key.shape[:1]):
        raise ValueError(
            "`query` and `key` must have the same batch. Received: "
            f"{tuple(query.shape)} and {tuple(key.shape)}"
        )
    if not checks.fits(key.shape[:2], value.shape[:2]):
        raise ValueError(
            "`key` and `value` must have the same batch and length. Received: "
            f"{tuple(key.shape)} and {tuple(value.shape)}"
        )
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(
            "`query` and `key` must have the same width. Received: "
            f"{query.shape[-1]} and {key.shape[-1]}"
        )
    if key.shape[2] != value.shape[2] or query.shape[2] % key.shape[2]:
        raise ValueError(
            "`key` and `value` must have the same number of heads, and it must "
            f"divide that of `query`. Received: query {query.shape[2]}, key "
            f"{key.shape[2]}, value {value.shape[2]} heads"
        )
