"""PyTorch float64 reference of `RecurrentSeq2Seq`, one token at a time."""

import pytest

from tests.helpers import torch_twin
from tests.helpers.arrays import named_arrays

torch = pytest.importorskip("torch")


class TorchRecurrent:
    """PyTorch reference of `RecurrentSeq2Seq`, with PyTorch's own cells.

    Rows are read without their padding, so nothing here needs a mask.

    Args:
        model: `RecurrentSeq2Seq` without dropout.
    """

    def __init__(self, model):
        self.model = model
        self.leaves = {
            name: torch_twin.tensor(array, requires_grad=True)
            for name, array in named_arrays(model).items()
            if not name.endswith("sampling_probability")
        }

    def __call__(self, source, target):
        """Returns logits (T, V), and weights (T, S) or None, of one row.

        Args:
            source: list of int, without padding.
            target: list of int.
        """
        memory, states = self._encode(source)
        leaves, fed = self.leaves, torch.zeros_like(states[0][0])
        logits, weights = [], []
        for token in target:
            x = self._embed("decoder/token", token)
            if self.model.input_feeding:
                x = torch.cat([x, fed])
            for layer, state in enumerate(states):
                states[layer] = self._cell(f"decoder/cell_{layer}", x, state)
                x = states[layer][0]
            if self.model.attention is not None:
                attention_weights = torch.softmax(self._scores(x, memory), 0)
                weights.append(attention_weights)
                context_and_query = torch.cat([attention_weights @ memory, x])
                x = torch.tanh(
                    context_and_query @ leaves["decoder/mixing/kernel"]
                )
            fed = x
            logits.append(
                x @ leaves["decoder/output/kernel"]
                + leaves["decoder/output/bias"]
            )
        return torch.stack(logits), torch.stack(weights) if weights else None

    def gradients(self):
        """Returns {name: gradient} after a backward pass."""
        return {k: leaf.grad.numpy() for k, leaf in self.leaves.items()}

    def _encode(self, source):
        outputs = [self._embed("source_embedding", token) for token in source]
        last = []
        for index in range(self.model.num_layers):
            name, cell = f"encoder_{index}", f"{self.model.cell}_cell"
            if self.model.bidirectional:
                forward, backward = (
                    self._read(f"{name}/{direction}_{name}/{cell}", inputs)
                    for direction, inputs in (
                        ("forward", outputs),
                        ("backward", outputs[::-1]),
                    )
                )
                last.append(
                    tuple(
                        map(
                            torch.cat,
                            zip(forward[-1], backward[-1], strict=True),
                        )
                    )
                )
                pairs = zip(forward, backward[::-1], strict=True)
                outputs = [torch.cat([a[0], b[0]]) for a, b in pairs]
            else:
                states = self._read(f"{name}/{cell}", outputs)
                last.append(states[-1])
                outputs = [state[0] for state in states]
        return torch.stack(outputs), last

    def _read(self, name, inputs):
        width = self.leaves[f"{name}/recurrent_kernel"].shape[0]
        zero = torch.zeros(width, dtype=torch.float64)
        state = (zero, zero) if self.model.cell == "lstm" else (zero,)
        states = []
        for x in inputs:
            state = self._cell(name, x, state)
            states.append(state)
        return states

    def _cell(self, name, x, state):
        kernel, recurrent, bias = (
            self.leaves[f"{name}/{part}"]
            for part in ("kernel", "recurrent_kernel", "bias")
        )
        x, state = x[None], [part[None] for part in state]
        if self.model.cell == "lstm":
            zeros = torch.zeros_like(bias)
            h, c = torch.lstm_cell(x, state, kernel.T, recurrent.T, bias, zeros)
            return h[0], c[0]
        # Keras: update, reset, new. PyTorch: reset, update, new.
        order = (
            torch.arange(bias.shape[1]).reshape(3, -1)[[1, 0, 2]].reshape(-1)
        )
        h = torch.gru_cell(
            x,
            state[0],
            kernel[:, order].T,
            recurrent[:, order].T,
            bias[0, order],
            bias[1, order],
        )
        return (h[0],)

    def _scores(self, query, keys):
        name = "decoder/attention/score"
        if self.model.attention == "dot":
            return keys @ query
        if self.model.attention == "general":
            return keys @ (query @ self.leaves[f"{name}/query/kernel"])
        hidden = torch.tanh(
            query @ self.leaves[f"{name}/query/kernel"]
            + keys @ self.leaves[f"{name}/key/kernel"]
        )
        return hidden @ self.leaves[f"{name}/scale"]

    def _embed(self, name, token):
        scale = self.model.hidden_dim**0.5
        return self.leaves[f"{name}/table/embeddings"][token] * scale
