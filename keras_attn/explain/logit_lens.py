"""logit_lens: predictions from the states between the blocks."""

import keras
import numpy as np

from keras_attn.explain.block_states import (
    find_stack,
    states_of,
    to_numpy,
    undisturbed,
)
from keras_attn.typing import Nest, Tensor


def logit_lens(model: keras.Model, inputs: Nest) -> Tensor:
    """Predicts from each hidden state as if no block followed it.

        logits_l = Output(Norm(h_l))

    nostalgebraist 2020, "interpreting GPT: the logit lens",
    https://www.lesswrong.com/posts/AcKRB8wDpdaN6v6ru. Norm and Output, learned
    for the last state, are the final norm, if there is one, and the output
    layer. The logits of the last state are those of the model.

    Args:
        model: a model with logits for each token: a `GPT`, `TransformerXL`,
            `Transformer`, `TokenClassifier` or `BertPretrainer`.
        inputs: inputs of the model.

    Returns:
        NumPy float32 (L + 1, B, T, V), for the embeddings and the L blocks; of
        a `Transformer`, those of its decoder. V is the number of classes of a
        `TokenClassifier`.

    Raises:
        ValueError: another model, or inputs that it does not accept.

    Examples:
        >>> model = keras_attn.models.GPT(
        ...     20, num_layers=2, num_heads=2, hidden_dim=8,
        ...     max_sequence_length=9)
        >>> keras_attn.explain.logit_lens(model, np.array([[5, 6, 7]])).shape
        (3, 1, 3, 20)
    """
    stack = find_stack(model, None)
    if stack.logits is None:
        raise ValueError(
            "`model` must have logits for each token, like a `GPT`, "
            "`TransformerXL`, `Transformer`, `TokenClassifier` or "
            f"`BertPretrainer`. Received: {type(model).__name__}"
        )
    states = states_of(model, inputs, stack)
    with undisturbed():
        return np.stack([to_numpy(stack.logits(state)) for state in states])
