"""Additive attention masks for PyTorch: padding, causal mask and T5 bias."""

import pytest

from tests.helpers import torch_twin

torch = pytest.importorskip("torch")

from transformers.models.t5.modeling_t5 import T5Attention


def added_to_scores(token_mask, heads, position=None, table=None, causal=False):
    """Returns float64 (B N, T, T): -inf at masked positions, plus T5's bias.

    Args:
        token_mask: bool (B, T), True at tokens, which come first in each row.
        heads: int. N.
        position: `T5Position`, or None.
        table: float64 (buckets, N), the weights of `position`.
        causal: bool. Whether later tokens are masked.
    """
    rows, length = token_mask.shape
    positions = torch.arange(length)
    distance = positions[None] - positions[:, None]
    bias = torch.zeros(heads, length, length).double()
    if position is not None:
        buckets = T5Attention._relative_position_bucket(
            distance,
            position.bidirectional,
            position.num_buckets,
            position.max_distance,
        )
        bias = table[buckets].permute(2, 0, 1)
    masked = torch_twin.tensor(~token_mask)[:, None, None]
    if causal:
        masked = masked | (distance > 0)
    bias = bias[None].masked_fill(masked, -float("inf"))
    return bias.expand(rows, -1, -1, -1).flatten(0, 1)
