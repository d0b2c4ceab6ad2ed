"""What PyTorch's blocks add to their scores: padding, the future, T5's bias."""

import pytest

from tests.blocks import torch_twin

torch = pytest.importorskip("torch")

from transformers.models.t5.modeling_t5 import T5Attention


def added_to_scores(token_mask, heads, position=None, table=None, causal=False):
    """Returns float64 (B N, T, T): -inf for what is hidden, and T5's bias.

    Args:
        token_mask: bool (B, T), where tokens are: each row's first ones.
        heads: int. N.
        position: `T5Position`, or None.
        table: float64 (buckets, N), its weights.
        causal: bool. Whether later tokens are hidden.
    """
    rows, length = token_mask.shape
    places = torch.arange(length)
    distance = places[None] - places[:, None]
    bias = torch.zeros(heads, length, length).double()
    if position is not None:
        buckets = T5Attention._relative_position_bucket(
            distance,
            position.bidirectional,
            position.num_buckets,
            position.max_distance,
        )
        bias = table[buckets].permute(2, 0, 1)
    hidden = torch_twin.tensor(~token_mask)[:, None, None]
    if causal:
        hidden = hidden | (distance > 0)
    bias = bias[None].masked_fill(hidden, -float("inf"))
    return bias.expand(rows, -1, -1, -1).flatten(0, 1)
