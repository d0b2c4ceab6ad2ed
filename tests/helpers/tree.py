"""A model with a free choice of p(next token | all tokens before)."""

import keras
import numpy as np
from keras import ops

from keras_attn.decoding import DecodingState


class Tree:
    """Looks the next token up by all the tokens before it.

    Implements the decoding protocol and nothing else. Each source names one of
    K trees by its first token. `hypothesis` is the node where each row stands:
    beam search that does not reorder it gets the wrong probabilities.

    Args:
        table: float (K, nodes, V). Logits at every node; node 0 is the root.
        children: int (nodes, V). Where each token leads.
        pad_id: int.
        start_id: int.
        end_id: int.
    """

    def __init__(self, table, children, pad_id=0, start_id=1, end_id=2):
        self.pad_id, self.start_id, self.end_id = pad_id, start_id, end_id
        self.variables = [keras.Variable(table, dtype="float32")]
        # Converting the variable in `log_probs` would copy all trees each time.
        self.logits = np.array(table, "float32").astype("float64")
        self.children = np.asarray(children, "int32")
        self.memory_shapes = set()
        self.steps = 0

    @classmethod
    def random(cls, count, size, length, seed=0, scale=1.0, **ids):
        """Makes `count` trees in which `length` tokens can be taken."""
        nodes = sum(size**depth for depth in range(length))
        rng = np.random.default_rng(seed)
        table = rng.normal(size=(count, nodes, size)) * scale
        children = np.arange(nodes * size).reshape(nodes, size) + 1
        return cls(table, np.minimum(children, nodes - 1), **ids)

    @classmethod
    def of(cls, probabilities, size, **ids):
        """Makes one tree of {tokens before: {next token: probability}}.

        The rest of the probability goes to pad, which is never generated. After
        tokens that are not listed the logits are NaN.
        """
        nodes = {before: node for node, before in enumerate(probabilities)}
        table = np.zeros((len(nodes) + 1, size))
        table[-1] = np.nan
        children = np.full(table.shape, len(nodes))
        for before, following in probabilities.items():
            row = table[nodes[before]]
            row[0] = max(0.0, 1 - sum(following.values()))
            for token, probability in following.items():
                row[token] = probability
                longer = (*before, token)
                children[nodes[before], token] = nodes.get(longer, len(nodes))
        with np.errstate(divide="ignore"):
            return cls(np.log(table)[None], children, **ids)

    def start_decoding(self, inputs, max_new_tokens):
        """Starts before the root of each source's tree."""
        rows = ops.shape(inputs)[0]
        tokens = ops.full((rows, 1), self.start_id, dtype="int32")
        before = {"node": ops.full((rows,), -1, dtype="int32")}
        return DecodingState(inputs[:, 0], before, tokens)

    def decode_step(self, tokens, state):
        """Goes to the next nodes."""
        self.steps += 1
        self.memory_shapes.add(tuple(state.memory.shape))
        trees, nodes, size = self.variables[0].shape
        node = state.hypothesis["node"]
        children = ops.reshape(ops.convert_to_tensor(self.children), (-1,))
        index = ops.maximum(node, 0) * size + tokens[:, 0]
        node = ops.where(node < 0, 0, ops.take(children, index, axis=0))
        beams = node.shape[0] // state.memory.shape[0]
        tree = ops.repeat(state.memory, beams, axis=0)
        rows = ops.reshape(self.variables[0], (trees * nodes, size))
        logits = ops.take(rows, tree * nodes + node, axis=0)[:, None]
        return logits, state._replace(hypothesis={"node": node})

    def log_probs(self, source, prefix):
        """The same in float64 NumPy, for one row and its tokens so far.

        It uses the logits that were given to the constructor.
        """
        tree = self.logits[source[0]]
        node = 0
        for token in prefix:
            node = self.children[node, token]
        logits = tree[node]
        most = logits.max()
        return logits - most - np.log(np.exp(logits - most).sum())
