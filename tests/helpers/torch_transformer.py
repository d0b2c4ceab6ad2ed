"""torch.nn.Transformer in float64 with the weights of a `Transformer`."""

import numpy as np
import pytest

from tests.helpers import torch_twin
from tests.helpers.arrays import named_arrays
from tests.helpers.reference import positions_from_mask, sinusoid
from tests.helpers.torch_position import added_to_scores

torch = pytest.importorskip("torch")


class TorchTransformer:
    """PyTorch reference of `keras_attn.models.Transformer`.

    Each of the three uses of the embedding matrix has a separate copy here, so
    that tests can inspect each contribution to its gradient.

    Args:
        model: `Transformer` without dropout.
    """

    def __init__(self, model):
        self.model = model
        self.leaves = []  # (name of our weight, copy of it)
        self.arrays = named_arrays(model)
        shared = model.target_vocabulary_size is None
        names = [
            f"{'token' if shared else side}_embedding/table/embeddings"
            for side in ("source", "target", "target")
        ]
        self.source_matrix, self.target_matrix, self.output_matrix = (
            self._leaf(name) for name in names
        )
        self.output, self.bias, self.tables = None, None, {}
        if not model.tie_word_embeddings:
            self.output = self._leaf("output/kernel")
        if model.output_bias:
            names = "output/bias", f"{names[-1].split('/')[0]}/logits_bias"
            self.bias = self._leaf(names[model.tie_word_embeddings])
        if model.position_embedding == "learned":
            for side in ("source", "target"):
                name = f"{side}_positions/table/embeddings"
                self.tables[side] = self._leaf(name)
        self.relative = {
            side: self._leaf(f"{side}_relative/table")
            for side in ("encoder", "decoder")
            if getattr(model, f"{side}_attention_position") is not None
        }
        self.transformer = self._stacks()

    def __call__(self, source, target):
        """Returns logits, float64 (B, T, V)."""
        model = self.model
        source_mask = source != model.pad_id
        target_mask = target != model.pad_id
        target_mask[:, 0] |= model.start_id == model.pad_id
        hidden = self.transformer(
            self._embed("source", self.source_matrix, source, source_mask),
            self._embed("target", self.target_matrix, target, target_mask),
            src_mask=self._added("encoder", source_mask),
            tgt_mask=self._added("decoder", target_mask, causal=True),
            memory_key_padding_mask=torch_twin.tensor(~source_mask),
        )
        matrix = self.output_matrix.T if self.output is None else self.output
        logits = hidden @ matrix
        return logits if self.bias is None else logits + self.bias

    def gradients(self):
        """Returns {name: gradient} after a backward pass."""
        found = torch_twin.gradients_of(self.transformer)
        for name, leaf in self.leaves:
            if leaf.grad is not None:
                found[name] = found.get(name, 0) + leaf.grad.numpy()
        return found

    def in_torch_layout(self, named):
        """Converts {our name: array} to the layout of `gradients`."""
        named = dict(named)
        arrays = {}
        for side, layer in (
            ("encoder", torch_twin.as_encoder_layer),
            ("decoder", torch_twin.as_decoder_layer),
        ):
            for index in range(len(getattr(self.model, f"_{side}_blocks"))):
                ours = _pop_prefix(f"{side}_block_{index}/", named)
                for name, array in layer(ours).items():
                    arrays[f"{side}.layers.{index}.{name}"] = array
            norm = _pop_prefix(f"{side}_norm/", named)
            if norm:
                arrays[f"{side}.norm.weight"] = norm["gamma"]
                arrays[f"{side}.norm.bias"] = norm["beta"]
        return arrays | named

    def _leaf(self, name):
        leaf = torch_twin.tensor(self.arrays[name], requires_grad=True)
        self.leaves.append((name, leaf))
        return leaf

    def _embed(self, side, matrix, ids, token_mask):
        positions = positions_from_mask(token_mask)
        width = self.model.hidden_dim
        if side in self.tables:
            rows = torch_twin.tensor(np.maximum(positions, 0))
            added = self.tables[side][rows]
        elif self.model.position_embedding is None:
            added = 0
        else:
            table = sinusoid(
                positions, width, self.model.position_embedding_layout
            )
            added = torch_twin.tensor(table)
        scale = width**0.5 if self.model.scale_embedding else 1.0
        return matrix[torch_twin.tensor(ids)] * scale + added

    def _added(self, side, token_mask, causal=False):
        position = getattr(self.model, f"{side}_attention_position")
        blocks = getattr(self.model, f"_{side}_blocks")
        return added_to_scores(
            token_mask,
            blocks[0].num_heads,
            position,
            self.relative.get(side),
            causal,
        )

    def _stacks(self):
        model = self.model
        encoders = map(torch_twin.encoder_layer, model._encoder_blocks)
        decoders = map(torch_twin.decoder_layer, model._decoder_blocks)
        encoders, decoders = list(encoders), list(decoders)
        transformer = torch.nn.Transformer(
            model.hidden_dim,
            model.num_heads,
            custom_encoder=torch.nn.TransformerEncoder(
                encoders[0], model.num_layers, enable_nested_tensor=False
            ),
            custom_decoder=torch.nn.TransformerDecoder(
                decoders[0], len(decoders)
            ),
            batch_first=True,
        )
        # After the constructor, which reinitializes every weight.
        transformer.encoder.layers = torch.nn.ModuleList(encoders)
        transformer.decoder.layers = torch.nn.ModuleList(decoders)
        for side in ("encoder", "decoder"):
            # The post-norm blocks of the paper need no final norm.
            norm = self._norm(side) if model.normalize_first else None
            getattr(transformer, side).norm = norm
        return transformer

    def _norm(self, side):
        norm = torch.nn.LayerNorm(
            self.model.hidden_dim,
            eps=self.model.epsilon,
            dtype=torch.float64,
            device="cpu",
        )
        norm.load_state_dict(
            {
                "weight": torch_twin.tensor(self.arrays[f"{side}_norm/gamma"]),
                "bias": torch_twin.tensor(self.arrays[f"{side}_norm/beta"]),
            }
        )
        return norm


def _pop_prefix(prefix, named):
    """Pops the arrays under `prefix`, and strips it from their names."""
    names = [name for name in named if name.startswith(prefix)]
    return {name.removeprefix(prefix): named.pop(name) for name in names}
