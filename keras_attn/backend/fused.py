"""The backend's fused attention kernel, where it has one."""

import keras
from keras import ops

from keras_attn.backend.inspection import known_size
from keras_attn.backend.program_ops import pad
from keras_attn.backend.sliding_window import sliding_window_attention
from keras_attn.typing import Tensor, TensorLike

if keras.backend.backend() == "torch":
    import torch
elif keras.backend.backend() == "jax":
    import jax

# The widest heads of cuDNN's kernel on every GPU that has it, as of JAX 0.10.2.
_CUDNN_WIDTH = 128
# Number of queries from which PyTorch is faster with contiguous heads, the copy
# included (as of PyTorch 2.13.0).
_COPY_FROM = 512


def fused_obstacle(
    query: TensorLike,
    value_width: int,
    *,
    bias: TensorLike | None = None,
    bias_dtype: str | None = None,
    masked: bool = False,
    weights: bool = False,
    dropout: bool = False,
) -> str | None:
    """Returns why the fused kernel cannot run a call, or None if it can.

    Args:
        query: float (B, T, N, H), or anything with its `shape` and `dtype`.
        value_width: int. W.
        bias: float tensor added to the scores, or the parameters that the bias
            is computed from, or None.
        bias_dtype: str. The dtype of the bias, or None.
        masked: bool. Keys are masked by more than the causal order; a window
            counts.
        weights: bool. The attention weights are returned.
        dropout: bool. Dropout is applied to the attention weights.

    Returns:
        A str with the reason, or None.
    """
    name = keras.backend.backend()
    # TensorFlow has no such kernel, as of TensorFlow 2.21.0 and Keras 3.15.1.
    if name not in ("jax", "torch"):
        return f"the {name} backend offers no fused attention"
    if weights:
        return "a fused kernel never holds the weights that were asked for"
    if dropout:
        return "dropout on the weights needs the weights"
    if name == "torch":
        # With one, PyTorch falls back to plain attention, as of PyTorch 2.13.0.
        if getattr(bias, "requires_grad", False) and torch.is_grad_enabled():
            return "PyTorch's kernel has no gradient for the bias"
        return _rounds(query, bias_dtype)
    if jax.default_backend() != "gpu":
        return f"JAX has no fused attention on the {jax.default_backend()}"
    if masked or bias_dtype is not None:
        return (
            "cuDNN's kernel takes lengths that a mask or a bias would not fit"
        )
    dtype = keras.backend.standardize_dtype(query.dtype)
    if dtype not in ("bfloat16", "float16"):
        return f"cuDNN's kernel takes half precision, not {dtype}"
    widths = query.shape[-1], value_width
    if any(width % 8 or width > _CUDNN_WIDTH for width in widths):
        return (
            f"cuDNN's kernel takes widths that are multiples of 8 up to "
            f"{_CUDNN_WIDTH}, not {widths[0]} and {widths[1]}"
        )
    return None


def _rounds(query, bias_dtype):
    """Returns why a bias of this dtype does not fit, or None.

    Only PyTorch's CPU kernel takes a bias of another dtype than the query's
    (pytorch/pytorch#191612, as of PyTorch 2.13.0).
    """
    device = getattr(query, "device", None)
    if bias_dtype is None or device is None or device.type == "cpu":
        return None
    dtype = keras.backend.standardize_dtype(query.dtype)
    if bias_dtype == dtype:
        return None
    return f"PyTorch's kernel would take the {bias_dtype} bias for {dtype}"


def fused_attention(
    query: TensorLike,
    key: TensorLike,
    value: TensorLike,
    mask: TensorLike | None = None,
    fully_masked: TensorLike | None = None,
    causal: bool = False,
    scale: float = 1.0,
    bias: TensorLike | None = None,
    window: int | None = None,
) -> Tensor:
    """Computes softmax(scale Q K^T + bias) V with the backend's fused kernel.

    Args:
        query: float (B, T, N, H).
        key: float (B, S, K, H), K dividing N.
        value: float (B, S, K, W).
        mask: bool broadcastable to (B, N, T, S), rank 4, or None.
        fully_masked: bool broadcastable to (B, N, T, 1), rank 4: the rows in
            which the mask is False everywhere, or None if there are none. Their
            outputs and gradients are finite; some kernels would return NaN.
        causal: bool. Query t sees keys 0..t; requires T == S.
        scale: float. Factor on the scores.
        bias: float broadcastable to (B, N, T, S), rank 4, or None. On PyTorch
            it has no gradient, and on a GPU it must have the dtype of `query`.
        window: int or None. Query t sees keys t - window + 1..t. PyTorch only,
            with `causal` and neither mask nor bias.

    Returns:
        Float (B, T, N, W).
    """
    # Rows of -inf gave NaN (pytorch/pytorch#103749), but do not on a CPU
    # as of PyTorch 2.13.0.
    if mask is not None and fully_masked is not None:
        mask = ops.logical_or(mask, fully_masked)
    widths = query.shape[-1], value.shape[-1]
    # Fused kernels take one width for all three, as of PyTorch 2.13.0.
    query, key, value = (_widened(x, max(widths)) for x in (query, key, value))
    if keras.backend.backend() == "torch":
        output = _torch(query, key, value, mask, causal, scale, bias, window)
    else:
        output = _jax(query, key, value, mask, causal, scale, bias)
    return output[..., : widths[1]] if widths[1] < widths[0] else output


def _widened(x, width):
    missing = width - x.shape[-1]
    return pad(x, [(0, 0)] * 3 + [(0, missing)]) if missing else x


def _torch(query, key, value, mask, causal, scale, bias, window):
    heads, key_heads = query.shape[2], key.shape[2]
    query, key, value = (x.transpose(1, 2) for x in (query, key, value))
    if (known_size(query.shape[2]) or 0) >= _COPY_FROM:
        query, key, value = (x.contiguous() for x in (query, key, value))
    options = {"scale": scale, "enable_gqa": 1 < key_heads < heads}
    if window is not None and window < query.shape[2]:
        output = sliding_window_attention(query, key, value, window, **options)
        return output.transpose(1, 2)
    if key_heads == 1:
        # Kernels may not support a single key head with `enable_gqa`; the one
        # for CPUs does, as of PyTorch 2.13.0.
        key, value = (x.expand(-1, heads, -1, -1) for x in (key, value))
    added = bias
    if mask is not None:
        # Not a boolean mask, which PyTorch expands to size T x S in memory,
        # whatever its strides (as of PyTorch 2.13.0).
        masked = torch.full((), -torch.inf, device=mask.device)
        added = torch.where(mask, 0.0 if bias is None else bias, masked)
    if added is not None:
        dtype = query.dtype if bias is None else torch.float32
        added = added.to(torch.promote_types(dtype, query.dtype))
        shape = query.shape[0], added.shape[1], query.shape[2], key.shape[2]
        added = added.expand(shape)
    output = torch.nn.functional.scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=added,
        is_causal=causal,
        **options,
    )
    return output.transpose(1, 2)


def _jax(query, key, value, mask, causal, scale, bias):
    return jax.nn.dot_product_attention(
        query,
        key,
        value,
        bias=bias,
        mask=mask,
        scale=scale,
        is_causal=causal,
        implementation="cudnn",
    )
