"""`torch.nn.Transformer` in a hand-written training loop."""

import contextlib
import math

import torch
from torch import nn

from benchmarks.harness.device import torch_device
from benchmarks.training_step import task


class Model(nn.Module):
    """Embedding, sinusoids, `nn.Transformer` and tied output embedding.

    Args:
        case: dict of sizes.
        dropout: float in [0, 1).
    """

    def __init__(self, case, dropout=task.DROPOUT):
        super().__init__()
        width = case["width"]
        self.table = nn.Embedding(case["vocabulary"], width)
        nn.init.normal_(self.table.weight, std=width**-0.5)
        self.transformer = nn.Transformer(
            width,
            case["heads"],
            case["layers"],
            case["layers"],
            case["inner"],
            dropout,
            batch_first=True,
        )
        self.dropout = nn.Dropout(dropout)
        self.scale = math.sqrt(width)
        self.register_buffer("positions", _sinusoid(case["length"], width))
        later = torch.ones(case["length"], case["length"], dtype=torch.bool)
        self.register_buffer("later", torch.triu(later, diagonal=1))

    def embed(self, ids):
        """Returns float (B, T, D)."""
        return self.dropout(self.table(ids) * self.scale + self.positions)

    def forward(self, source, target):
        """Returns the logits, float (B, T, V)."""
        source_padding = source == task.PAD
        x = self.transformer(
            self.embed(source),
            self.embed(target),
            tgt_mask=self.later,
            tgt_is_causal=True,
            src_key_padding_mask=source_padding,
            memory_key_padding_mask=source_padding,
            tgt_key_padding_mask=target == task.PAD,
        )
        return x @ self.table.weight.T


def prepare(case, **options):
    """Returns a callable that runs training steps."""
    device = torch_device()
    model = Model(case, **options).to(device)
    optimizer = torch.optim.Adam(model.parameters(), task.RATE)
    loss_of = nn.CrossEntropyLoss(
        ignore_index=task.PAD, label_smoothing=task.SMOOTHING
    )
    data = [
        [torch.from_numpy(part).long().to(device) for part in batch]
        for batch in zip(*task.batches(case), strict=True)
    ]

    def run(steps):
        for step in range(steps):
            source, target, labels = data[step % len(data)]
            optimizer.zero_grad()
            with _precision(case, device):
                logits = model(source, target)
                loss = loss_of(logits.flatten(0, 1), labels.flatten())
            loss.backward()
            optimizer.step()
        return loss.item()

    return run


def _precision(case, device):
    """Returns a context in which products have the dtype of the case."""
    if case.get("dtype", "float32") == "float32":
        return contextlib.nullcontext()
    return torch.autocast(device, getattr(torch, case["dtype"]))


def _sinusoid(length, width):
    positions = torch.arange(length)[:, None]
    rates = 10000.0 ** (-torch.arange(0, width, 2) / width)
    angles = positions * rates
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)
