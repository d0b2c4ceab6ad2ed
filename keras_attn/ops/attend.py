"""One attention call: softmax(Q K^T) V, by the kernel that serves best."""

from keras import ops

from keras_attn import checks
from keras_attn.backend import (
    batched_matmul,
    fused_attention,
    is_statically_false,
    zero_masked,
)
from keras_attn.ops.blockwise import attend_blockwise
from keras_attn.ops.plan import attention_plan
from keras_attn.ops.position_bias import PositionBias, as_tensors, four_axes
from keras_attn.ops.positions import default_positions
from keras_attn.ops.score_softmax import hidden, softmax
from keras_attn.ops.scores import scaled_dot_scores
from keras_attn.ops.visibility import (
    Visibility,
    has_visible_key,
    is_key_padding_only,
)


def attend(
    query,
    key,
    value,
    visibility=None,
    bias=None,
    scale=None,
    dropout=None,
    return_weights=False,
    kernel=None,
):
    """Mixes values by the softmax similarity of queries and keys.

        Attention(Q, K, V) = softmax(scale Q K^T + bias) V

    with a scale of 1 / sqrt(H) unless another is given (Vaswani et al. 2017,
    sec. 3.2.1, eq. 1, https://arxiv.org/abs/1706.03762; the plain kernel,
    `_plain` below, is the equation line by line, the others are held to its
    numbers), the softmax over the visible keys, in float32. Whatever stands at
    hidden queries, keys and values, NaN included, reaches neither a visible row
    nor a gradient. The blockwise kernel has a first derivative only, in reverse
    mode on JAX.

    Args:
        query: float (B, T, N, H).
        key: float (B, S, K, H), K dividing N.
        value: float (B, S, K, W).
        visibility: `Visibility`. Default: every query sees every key.
        bias: float broadcastable to (B, N, T, S), or a `PositionBias`, added
            to the scores.
        scale: float. Default 1 / sqrt(H).
        dropout: `WeightDropout`, or any callable (B, N, T, S) -> (B, N, T, S),
            put on the weights.
        return_weights: bool. Return the weights too.
        kernel: `"fused"`, `"blockwise"` or `"plain"` to force a kernel;
            default None: the choice of `attention_plan`.

    Returns:
        Float (B, T, N, W) in the dtype of `query`, zero in rows that see
        nothing; with `return_weights` a pair of it and the weights
        (B, N, T, S) before dropout, float32 at least.

    Raises:
        ValueError: ranks other than 4, lengths, widths or head counts that do
            not fit, or a forced kernel that cannot serve.

    Examples:
        >>> x = keras.random.normal((1, 3, 2, 4), seed=0)
        >>> see = keras_attn.ops.Visibility(causal=True)
        >>> y, weights = keras_attn.ops.attend(
        ...     x, x, x, see, return_weights=True)
        >>> tuple(y.shape), float(weights[0, 0, 0, 0])
        ((1, 3, 2, 4), 1.0)
    """
    visibility = Visibility() if visibility is None else visibility
    query, key, value = map(ops.convert_to_tensor, (query, key, value))
    _check_shapes(query, key, value)
    if visibility.query_positions is not None:
        query = zero_masked(query, visibility.query_positions >= 0)
    if visibility.key_positions is not None:
        there = visibility.key_positions >= 0
        key = zero_masked(key, there)
        value = zero_masked(value, there)
    return attend_sanitized(
        query,
        key,
        value,
        visibility,
        bias=bias,
        scale=scale,
        dropout=dropout,
        return_weights=return_weights,
        kernel=kernel,
        # A row without a key mixes nothing but the zeros put here.
        zero_fully_masked=not is_key_padding_only(visibility),
    )


def attend_sanitized(
    query,
    key,
    value,
    visibility,
    *,
    bias=None,
    scale=None,
    dropout=None,
    return_weights=False,
    kernel=None,
    zero_fully_masked=True,
):
    """Does the work of `attend` for a caller whose hidden rows are finite.

    A layer cleans its input once, where its projections would otherwise carry
    a NaN into the gradient of their weights; cleaning again would be waste.

    Args:
        query: float (B, T, N, H), finite at hidden rows.
        key: float (B, S, K, H), likewise.
        value: float (B, S, K, W), likewise.
        visibility: `Visibility`.
        bias: as for `attend`.
        scale: as for `attend`.
        dropout: as for `attend`.
        return_weights: as for `attend`.
        kernel: as for `attend`.
        zero_fully_masked: bool. Whether rows that see nothing come out as
            zeros; False: as anything finite, for a caller who sets them
            himself.

    Returns:
        What `attend` returns.

    Raises:
        ValueError: a forced kernel cannot serve.

    Examples:
        >>> from keras_attn.ops.attend import attend_sanitized
        >>> x = keras.random.normal((1, 3, 2, 4), seed=0)
        >>> see = keras_attn.ops.Visibility(causal=True)
        >>> tuple(attend_sanitized(x, x, x, see).shape)
        (1, 3, 2, 4)
    """
    bias = as_tensors(bias)
    plan = attention_plan(
        query, key, visibility, bias, dropout, return_weights, kernel, value
    )
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    if plan.kernel == "blockwise":
        return attend_blockwise(
            query, key, value, visibility, bias, scale, dropout
        )
    lengths = ops.shape(query)[1], ops.shape(key)[1]
    if isinstance(bias, PositionBias):
        bias = _spread(bias, visibility, *lengths)
    mask = None if plan.causal_only else visibility.to_mask(*lengths)
    fully_masked = _blind(visibility, mask, lengths)
    if fully_masked is not None and is_statically_false(fully_masked):
        fully_masked = None
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
        output, weights = _plain(query, key, value, mask, bias, scale, dropout)
    if fully_masked is not None and zero_fully_masked:
        # (B, N, T, 1) to (B, T, N, 1)
        output = ops.where(ops.transpose(fully_masked, (0, 2, 1, 3)), 0, output)
    if not return_weights:
        return output
    return output, weights if mask is None else ops.where(mask, weights, 0)


def _blind(visibility, mask, lengths):
    """Which rows see nothing, bool (B, N, T, 1), size-1 axes allowed, or None.

    None where it is known before any value that all see something.
    """
    if visibility.attention_mask is not None:
        return ops.logical_not(ops.any(mask, axis=-1, keepdims=True))
    seen = has_visible_key(visibility, *lengths)
    return None if seen is None else ops.logical_not(seen)[:, None, :, None]


def _spread(bias, visibility, query_length, key_length):
    query, key = visibility.query_positions, visibility.key_positions
    return bias.function(
        bias.parameters,
        default_positions(query_length) if query is None else query,
        default_positions(key_length) if key is None else key,
    )


def _plain(query, key, value, mask, bias, scale, dropout):
    # scale Q K^T + bias
    scores = scaled_dot_scores(query, key, scale)
    if bias is not None:
        scores = scores + ops.cast(bias, scores.dtype)
    # softmax(...)
    weights = softmax(hidden(scores, mask))
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


def _check_shapes(query, key, value):
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        if len(tensor.shape) != 4:
            raise ValueError(
                f"`{name}` must have shape (batch, length, heads, width). "
                f"Received: {tuple(tensor.shape)}"
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
