"""Causal sliding-window attention with PyTorch's fused kernel, in bands."""

from typing import Any

import keras

from keras_attn.typing import Tensor, TensorLike

if keras.backend.backend() == "torch":
    import torch


def sliding_window_attention(
    query: TensorLike,
    key: TensorLike,
    value: TensorLike,
    window: int,
    **options: Any,
) -> Tensor:
    """Computes attention under a causal window, in time linear in the sequence.

    Query t sees keys t - window + 1 to t. The kernel takes no window
    (as of PyTorch 2.13.0). It is called per band of queries, with the keys that
    some query of the band may see, so that no mask has size T x T. If gradients
    are recorded, keys and values are copied, at most six times over.

    Args:
        query: PyTorch float tensor (B, N, T, H).
        key: float (B, K, T, H).
        value: float (B, K, T, W).
        window: int >= 1.
        **options: `scale` and `enable_gqa` of PyTorch's
            `scaled_dot_product_attention`.

    Returns:
        Float (B, N, T, W).
    """
    # A narrow window masks less of narrow bands. The kernel is faster on wide
    # bands, and with a wide window each key is in fewer of them.
    band = 128 if window <= 256 else max(256, 128 * -(-window // 512))
    back = -(-(window - 1) // band)
    heads = query.shape[1]
    added = _band_mask(query, window, band, back)
    learns = torch.is_grad_enabled() and (
        key.requires_grad or value.requires_grad
    )
    slices = _copies if learns else _views
    outputs = []
    for number, (queries, keys, values) in enumerate(
        zip(
            query.split(band, 2),
            slices(key, band, back),
            slices(value, band, back),
            strict=True,
        )
    ):
        mask = None
        if number or window < band:
            first = max(back - number, 0) * band
            mask = added[: queries.shape[2], first : first + keys.shape[2]]
            mask = mask.expand(query.shape[0], 1, -1, -1)
        # As in `fused_attention`: not needed on a CPU as of PyTorch 2.13.0.
        if key.shape[1] == 1:
            keys, values = (x.expand(-1, heads, -1, -1) for x in (keys, values))
        outputs.append(
            torch.nn.functional.scaled_dot_product_attention(
                queries,
                keys,
                values,
                attn_mask=mask,
                is_causal=mask is None,
                **options,
            )
        )
    return torch.cat(outputs, 2)


def _band_mask(query, window, band, back):
    """Returns the additive mask of a band, for the keys up to its end."""
    position = torch.arange((back + 1) * band, device=query.device)
    distance = position[back * band :, None] - position
    visible = (distance >= 0) & (distance < window)
    masked = torch.full((), -torch.inf, device=query.device, dtype=query.dtype)
    return torch.where(visible, torch.zeros_like(masked), masked)


def _views(x, band, back):
    """Returns, per band, a view of itself and the `back` bands before it."""
    ends = range(band, x.shape[2] + band, band)
    return [x[:, :, max(0, end - (back + 1) * band) : end] for end in ends]


def _copies(x, band, back):
    """Same as `_views`, copied: a view's gradient is as long as all of `x`."""
    bands = x.split(band, 2)
    return [
        torch.cat(bands[max(0, number - back) : number + 1], 2)
        for number in range(len(bands))
    ]
