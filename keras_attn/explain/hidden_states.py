"""hidden_states: the states between the blocks of a model."""

import keras

from keras_attn.explain.block_states import (
    find_stack,
    states_of,
    to_numpy,
    undisturbed,
)
from keras_attn.typing import Nest, Tensor


def hidden_states(
    model: keras.Model, inputs: Nest, stack: str | None = None
) -> list[Tensor]:
    """Returns the hidden states of a model: its embeddings, and each block's.

    They are those of `output_hidden_states` of transformers: the input of the
    first block, then the output of each block. If there is a norm after the
    last block, the last state is its output, that from which the logits are
    computed. (For ViT, transformers returns it before the norm.)

    The model is called once, with `training=False`.

    Args:
        model: a `GPT`, `TransformerXL`, `Encoder`, `Bert`, `VisionTransformer`
            or `Transformer`; or a model with a head on one of them, such as a
            `TokenClassifier`.
        inputs: inputs of the model.
        stack: `"encoder"` or `"decoder"`, of a `Transformer`. Default None: the
            decoder, or the only stack.

    Returns:
        List of L + 1 NumPy float32 (B, T, D), for L blocks.

    Raises:
        ValueError: another model, a stack that it does not have, or inputs that
            it does not accept.

    Examples:
        >>> model = keras_attn.models.GPT(
        ...     20, num_layers=2, num_heads=2, hidden_dim=8,
        ...     max_sequence_length=9)
        >>> states = keras_attn.explain.hidden_states(
        ...     model, np.array([[5, 6, 7]]))
        >>> len(states), states[0].shape
        (3, (1, 3, 8))
    """
    found = find_stack(model, stack)
    states = states_of(model, inputs, found)
    with undisturbed():
        states[-1] = found.normalize(states[-1])
    return [to_numpy(state) for state in states]
