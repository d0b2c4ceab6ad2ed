"""A Transformer with a cache, in plain PyTorch tensors."""

import math

import numpy as np
import torch
from torch.nn import functional

from benchmarks.decoding import task, weights
from benchmarks.harness.device import torch_device


class Model:
    """A Transformer in plain tensors, with the cache of its decoder.

    Args:
        case: dict of sizes.
        drawn: nest of arrays, from `weights.draw`.
    """

    def __init__(self, case, drawn):
        self.heads, self.width = case["heads"], case["width"]
        self.layers, self.new = case["layers"], case["new"]
        self.table = _tensor(drawn["table"])
        self.scale = math.sqrt(self.width)
        self.positions = _tensor(
            weights.positions(max(case["length"], case["new"]), self.width)
        )
        self.bias = _tensor(task.logits_bias(case))
        self.encoder = [_tensors(layer) for layer in drawn["encoder"]]
        self.decoder = [_tensors(layer) for layer in drawn["decoder"]]

    def start(self, sources, beams):
        """Encodes sources, int64 (B, S), and allocates the caches."""
        rows, length = sources.shape
        token_mask = (sources != task.PAD)[:, None, None]
        self.mask = None if token_mask.all() else token_mask
        x = functional.embedding(sources, self.table)
        x = torch.add(self.positions[:length], x, alpha=self.scale)
        for layer in self.encoder:
            attention = layer["self"]
            parts = _dense(x, attention, "qkv").view(
                rows, length, 3, self.heads, -1
            )
            mixed = functional.scaled_dot_product_attention(
                *parts.permute(2, 0, 3, 1, 4), attn_mask=self.mask
            )
            x = _add_and_norm(
                attention, x, mixed.transpose(1, 2).reshape(x.shape)
            )
            x = _network(layer["network"], x)
        # (2, B, N, S, H) per layer.
        self.memory = [
            _dense(x, layer["cross"], "kv")
            .view(rows, length, 2, self.heads, -1)
            .permute(2, 0, 3, 1, 4)
            .contiguous()
            for layer in self.decoder
        ]
        # Slots first, so that the written part is contiguous.
        shape = self.new, self.layers, 2, rows * beams, self.width
        self.cache, self.spare = (
            torch.empty(shape, device=sources.device) for _ in range(2)
        )
        self.beams = beams

    def step(self, ids, slot):
        """Returns the logits after int64 (R,): float (R, V)."""
        rows = len(ids)
        x = functional.embedding(ids, self.table)
        x = torch.add(self.positions[slot], x, alpha=self.scale)
        for number, layer in enumerate(self.decoder):
            attention = layer["self"]
            parts = _dense(x, attention, "qkv").view(rows, 3, self.width)
            self.cache[slot, number].copy_(parts[:, 1:].transpose(0, 1))
            keys, values = (
                self.cache[: slot + 1, number, which]
                .view(slot + 1, rows, self.heads, -1)
                .permute(1, 2, 0, 3)
                for which in (0, 1)
            )
            query = parts[:, 0].view(rows, self.heads, 1, -1)
            mixed = functional.scaled_dot_product_attention(query, keys, values)
            x = _add_and_norm(attention, x, mixed.view(rows, -1))
            attention = layer["cross"]
            query = _dense(x, attention, "q").view(
                -1, self.beams, self.heads, self.width // self.heads
            )
            mixed = functional.scaled_dot_product_attention(
                query.transpose(1, 2),
                *self.memory[number],
                attn_mask=self.mask,
            )
            x = _add_and_norm(
                attention, x, mixed.transpose(1, 2).reshape(rows, -1)
            )
            x = _network(layer["network"], x)
        return torch.addmm(self.bias, x, self.table.T)

    def reorder(self, rows, slots):
        """Reorders the cache by int64 (R,) indices of hypotheses."""
        torch.index_select(self.cache[:slots], 3, rows, out=self.spare[:slots])
        self.cache, self.spare = self.spare, self.cache


def _dense(x, weights, name):
    return functional.linear(x, weights[name], weights[f"{name}_bias"])


def _add_and_norm(weights, x, mixed):
    return _norm(weights, _dense(mixed, weights, "o").add_(x))


def _network(weights, x):
    inner = _dense(x, weights, "in").relu_()
    return _norm(weights, _dense(inner, weights, "out").add_(x))


def _norm(weights, x):
    return functional.layer_norm(
        x, x.shape[-1:], weights["scale"], weights["shift"]
    )


def _tensor(array):
    return torch.from_numpy(array).to(torch_device())


def _tensors(layer):
    """Returns the layer as tensors, with fused projections of one input."""
    made = {}
    for sublayer, parts in layer.items():
        made[sublayer] = tensors = dict(parts)
        for joined in ("qkv", "kv") if "q" in parts else ():
            for end in ("", "_bias"):
                tensors[joined + end] = np.concatenate(
                    [parts[name + end] for name in joined], axis=-1
                )
        for name, array in tensors.items():
            # `linear` takes weights as (outputs, inputs).
            tensors[name] = _tensor(np.ascontiguousarray(array.T))
    return made
