"""The backend's own fused attention kernel, where it has one that serves."""

import keras

if keras.backend.backend() == "torch":
    import torch


def fused_obstacle(*, bias, weights_wanted, dropout):
    """Says why the fused kernel cannot serve a call, or None where it can.

    Args:
        bias: bool. An additive bias is given.
        weights_wanted: bool. The caller wants the weights back.
        dropout: bool. Attention weights are dropped in this call.

    Returns:
        A str with the reason, or None.
    """
    name = keras.backend.backend()
    if name != "torch":
        return f"the {name} backend offers no fused attention here"
    if weights_wanted:
        return "a fused kernel never holds the weights that were asked for"
    if dropout:
        return "dropout on the weights needs the weights"
    if bias:
        return "PyTorch leaves its flash path for a bias that needs gradients"
    return None


def fused_attention(query, key, value, mask=None, causal=False, scale=1.0):
    """Computes softmax(scale Q K^T) V in the backend's fused kernel.

    Rows whose mask is False everywhere come out as zeros, with zero
    gradients: PyTorch's kernels would give NaN or the mean of the values,
    depending on the path taken.

    Args:
        query: float (B, T, N, H).
        key: float (B, S, K, H), K dividing N.
        value: float (B, S, K, W).
        mask: bool broadcastable to (B, N, T, S), rank 4, or None.
        causal: bool. Query t sees keys 0..t; only where T == S.
        scale: float. Factor on the scores.

    Returns:
        Float (B, T, N, W).
    """
    if keras.backend.backend() != "torch":
        raise ValueError(
            "The fused kernel was forced, but "
            + fused_obstacle(bias=False, weights_wanted=False, dropout=False)
        )
    shared_heads = query.shape[2] != key.shape[2]
    row_sees = None
    if mask is not None:
        row_sees = mask.any(dim=-1, keepdim=True)
        mask = mask | ~row_sees
        mask = mask.expand(
            query.shape[0], mask.shape[1], query.shape[1], key.shape[1]
        )
    output = torch.nn.functional.scaled_dot_product_attention(
        query.transpose(1, 2),
        key.transpose(1, 2),
        value.transpose(1, 2),
        attn_mask=mask,
        is_causal=causal,
        scale=scale,
        enable_gqa=shared_heads,
    )
    if row_sees is not None:
        output = torch.where(row_sees, output, torch.zeros_like(output))
    return output.transpose(1, 2)
