"""PyTorch float64 reference of `Encoder` and its heads."""

import pytest

from tests.helpers import torch_twin
from tests.helpers.arrays import named_arrays
from tests.helpers.reference import positions_from_mask, sinusoid
from tests.helpers.torch_position import added_to_scores

torch = pytest.importorskip("torch")


class TorchEncoder:
    """PyTorch reference of an `Encoder` and its classification heads.

    Args:
        model: `Encoder`, `TokenClassifier` or `SpanExtractor`, without dropout.
    """

    def __init__(self, model):
        self.encoder = getattr(model, "encoder", model)
        self.leaves = {
            name: torch_twin.tensor(array, requires_grad=True)
            for name, array in named_arrays(model).items()
            if not name.startswith("block_")
        }
        self.layers = [
            torch_twin.encoder_layer(block) for block in self.encoder._blocks
        ]

    def encode(self, token_ids, character_ids=None, segment_ids=None):
        """Returns float64 (B, T, D), and bool (B, T), True at tokens."""
        token_mask = token_ids != self.encoder.pad_id
        width = self.encoder.hidden_dim
        table = self.leaves["token_embedding/table/embeddings"]
        x = table[torch_twin.tensor(token_ids)] * width**0.5
        if segment_ids is not None:
            table = self.leaves["segment_embedding/table/embeddings"]
            x = x + table[torch_twin.tensor(segment_ids)] * width**0.5
        if character_ids is not None:
            x = x + self._words(character_ids)
        positions = positions_from_mask(token_mask)
        if self.encoder.position_embedding == "sinusoidal":
            x = x + torch_twin.tensor(sinusoid(positions, width))
        elif self.encoder.position_embedding == "learned":
            rows = self.leaves["positions/table/embeddings"]
            x = x + rows[torch_twin.tensor(positions).clamp(min=0)]
        added = added_to_scores(
            token_mask,
            self.encoder.num_heads,
            self.encoder.attention_position,
            self.leaves.get("relative/table"),
        )
        for layer in self.layers:
            x = layer(x, src_mask=added)
        if self.encoder.normalize_first:
            x = torch.nn.functional.layer_norm(
                x,
                (width,),
                self.leaves["norm/gamma"],
                self.leaves["norm/beta"],
                self.encoder.epsilon,
            )
        return x, torch_twin.tensor(token_mask)

    def dense(self, name, x):
        """Applies a dense layer of the head."""
        return x @ self.leaves[f"{name}/kernel"] + self.leaves[f"{name}/bias"]

    def gradients(self):
        """Returns {name: gradient} after a backward pass."""
        found = {
            name: leaf.grad.numpy()
            for name, leaf in self.leaves.items()
            if leaf.grad is not None
        }
        for index, layer in enumerate(self.layers):
            for name, array in torch_twin.gradients_of(layer).items():
                found[f"{index}.{name}"] = array
        return found

    def in_torch_layout(self, named):
        """Converts {our name: array} to the layout of `gradients`."""
        found = {k: v for k, v in named.items() if not k.startswith("block_")}
        for index in range(len(self.layers)):
            prefix = f"block_{index}/"
            ours = {
                name.removeprefix(prefix): array
                for name, array in named.items()
                if name.startswith(prefix)
            }
            for name, array in torch_twin.as_encoder_layer(ours).items():
                found[f"{index}.{name}"] = array
        return found

    def _words(self, character_ids):
        rows, words, length = character_ids.shape
        token_mask = torch_twin.tensor(character_ids != self.encoder.pad_id)
        name = "character_embedding"
        x = self.leaves[f"{name}/table/embeddings"]
        x = x[torch_twin.tensor(character_ids)] * token_mask[..., None]
        x = x.reshape(rows * words, length, -1).transpose(1, 2)
        parts = []
        for size in self.encoder._character_embedding.kernel_sizes:
            before = (size - 1) // 2
            kernel = self.leaves[f"{name}/window_{size}/kernel"]
            bias = self.leaves[f"{name}/window_{size}/bias"]
            padded = torch.nn.functional.pad(x, (before, size - 1 - before))
            found = torch.nn.functional.conv1d(
                padded, kernel.permute(2, 1, 0), bias
            ).tanh()
            found = found.reshape(rows, words, -1, length)
            found = found.masked_fill(~token_mask[:, :, None], -1.0)
            parts.append(found.amax(-1))
        y = torch.cat(parts, -1) @ self.leaves[f"{name}/output/kernel"]
        y = y + self.leaves[f"{name}/output/bias"]
        return y * token_mask.any(-1)[..., None]
