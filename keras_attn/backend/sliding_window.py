"""A causal window in PyTorch's fused kernel, band by band."""

import keras

if keras.backend.backend() == "torch":
    import torch


def fused_bands(query, key, value, window, **options):
    """Computes attention under a causal window, in time linear in the sequence.

    Query t sees keys t - window + 1 to t. A band of queries is handed to the
    kernel with the keys that some of it may see, so that no mask has the size
    T x T. Where there is a gradient the keys are copied, no more than six times
    over.

    Args:
        query: float tensor of PyTorch (B, N, T, H).
        key: float (B, K, T, H).
        value: float (B, K, T, W).
        window: int >= 1.
        **options: `scale` and `enable_gqa` of PyTorch's
            `scaled_dot_product_attention`.

    Returns:
        Float (B, N, T, W).
    """
    # A narrow window hides more of narrow bands; the kernel likes wide ones,
    # and under a wide window each key belongs to few of them.
    band = 128 if window <= 256 else max(256, 128 * -(-window // 512))
    back = -(-(window - 1) // band)
    heads = query.shape[1]
    added = _band_mask(query, window, band, back)
    learns = torch.is_grad_enabled() and (
        key.requires_grad or value.requires_grad
    )
    stretches = _joined if learns else _cut
    outputs = []
    for number, (queries, keys, values) in enumerate(
        zip(
            query.split(band, 2),
            stretches(key, band, back),
            stretches(value, band, back),
            strict=True,
        )
    ):
        hidden = None
        if number or window < band:
            first = max(back - number, 0) * band
            hidden = added[: queries.shape[2], first : first + keys.shape[2]]
            hidden = hidden.expand(query.shape[0], 1, -1, -1)
        if key.shape[1] == 1:
            keys, values = (x.expand(-1, heads, -1, -1) for x in (keys, values))
        outputs.append(
            torch.nn.functional.scaled_dot_product_attention(
                queries,
                keys,
                values,
                attn_mask=hidden,
                is_causal=hidden is None,
                **options,
            )
        )
    return torch.cat(outputs, 2)


def _band_mask(query, window, band, back):
    """What is added to the scores of a band and of the keys up to its end."""
    place = torch.arange((back + 1) * band, device=query.device)
    distance = place[back * band :, None] - place
    seen = (distance >= 0) & (distance < window)
    hidden = torch.full((), -torch.inf, device=query.device, dtype=query.dtype)
    return torch.where(seen, torch.zeros_like(hidden), hidden)


def _cut(x, band, back):
    """For each band its own and the bands before it, without a copy."""
    ends = range(band, x.shape[2] + band, band)
    return [x[:, :, max(0, end - (back + 1) * band) : end] for end in ends]


def _joined(x, band, back):
    """The same in copies: the gradient of a cut is as long as the whole."""
    bands = x.split(band, 2)
    return [
        torch.cat(bands[max(0, number - back) : number + 1], 2)
        for number in range(len(bands))
    ]
