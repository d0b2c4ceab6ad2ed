"""hidden_states, logit_lens and patch: what each layer knows."""

import contextlib
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_attn import checks
from keras_attn.backend import no_gradients
from keras_attn.explain.arguments import number_array
from keras_attn.explain.layer_watch import Watcher, watched
from keras_attn.models import GPT, Encoder
from keras_attn.typing import Tensor, TensorLike


def hidden_states(model: keras.Model, inputs: TensorLike) -> list[Tensor]:
    """Returns the hidden states of a model after each block.

    The states are those of `output_hidden_states` of transformers: the
    embeddings that enter the first block, then the output of each block. If the
    model has a final norm, the last state is its output, not its input.

    Args:
        model: a `GPT`, `Encoder` or `Bert`.
        inputs: inputs of the model.

    Returns:
        List of L + 1 float32 (B, T, D), for L blocks.

    Raises:
        ValueError: another model, or inputs that it does not accept.

    Examples:
        >>> model = keras_attn.models.GPT(
        ...     20, num_layers=2, num_heads=2, hidden_dim=8,
        ...     max_sequence_length=9)
        >>> states = keras_attn.explain.hidden_states(
        ...     model, np.array([[5, 6, 7]]))
        >>> len(states), states[0].shape
        (3, (1, 3, 8))
    """
    model = _checked_model(model)
    states = _raw_states(model, inputs)
    with _undisturbed():
        states[-1] = _normalized(model, states[-1])
    return [_to_numpy(state) for state in states]


def logit_lens(model: keras.Model, inputs: TensorLike) -> Tensor:
    """Predicts the tokens from each hidden state, as if it were the last.

        logits_l = Output(Norm(h_l))

    nostalgebraist 2020, "interpreting GPT: the logit lens". The final norm, if
    there is one, and the output layer are applied to the state of each layer.
    The last logits of a `GPT` are those of the model. An `Encoder` or `Bert`
    has no output layer of its own: its logits are computed with the embedding
    matrix (`token_logits`).

    Args:
        model: a `GPT`, `Encoder` or `Bert`. An `Encoder` without
            `embedding_dim`.
        inputs: inputs of the model.

    Returns:
        Float32 (L + 1, B, T, V), for the embeddings and the L blocks.

    Raises:
        ValueError: another model, or inputs that it does not accept.

    Examples:
        >>> model = keras_attn.models.GPT(
        ...     20, num_layers=2, num_heads=2, hidden_dim=8,
        ...     max_sequence_length=9)
        >>> keras_attn.explain.logit_lens(model, np.array([[5, 6, 7]])).shape
        (3, 1, 3, 20)
    """
    model = _checked_model(model)
    if isinstance(model, Encoder) and model.embedding_dim is not None:
        raise ValueError(
            "`model` must have embeddings as wide as its hidden states. "
            f"Received: embedding_dim={model.embedding_dim}, "
            f"hidden_dim={model.hidden_dim}"
        )
    states = _raw_states(model, inputs)
    output = model.token_logits if isinstance(model, Encoder) else model._logits
    with _undisturbed():
        return np.stack(
            [_to_numpy(output(_normalized(model, state))) for state in states]
        )


def patch(
    model: keras.Model,
    clean: TensorLike,
    corrupted: TensorLike,
    score: Callable[[Any], TensorLike],
    batch_size: int = 32,
) -> Tensor:
    """Scores a model with one hidden state replaced, by layer and position.

    Activation patching (Meng et al. 2022, https://arxiv.org/abs/2202.05262;
    Wang et al. 2022, https://arxiv.org/abs/2211.00593): the model reads the
    corrupted inputs, but its hidden state at one layer and position is that of
    the clean inputs. Where the score returns to that of the clean inputs, the
    state carries what was lost. Each layer costs as much as a call with T rows.

    Args:
        model: a `GPT`, `Encoder` or `Bert`.
        clean: inputs of the model, one sequence, (1, T).
        corrupted: inputs of the same structure and shapes.
        score: callable that takes the outputs of the model for R rows and
            returns a number for each, (R,).
        batch_size: int. The most rows of one call. Default 32.

    Returns:
        Float32 (L + 1, T): the scores with a patch in the embeddings that enter
        the first block, or in the output of one of the L blocks.

    Raises:
        ValueError: another model; inputs that it does not accept, that differ
            in shape or are more than one sequence; or scores of another shape.

    Examples:
        >>> model = keras_attn.models.GPT(
        ...     20, num_layers=2, num_heads=2, hidden_dim=8,
        ...     max_sequence_length=9)
        >>> keras_attn.explain.patch(
        ...     model, np.array([[5, 6, 7]]), np.array([[9, 6, 7]]),
        ...     lambda logits: logits[:, -1, 8]).shape
        (3, 3)
    """
    model = _checked_model(model)
    if not callable(score):
        raise ValueError(
            "`score` must be callable. "
            f"Received: score of type {type(score).__name__}"
        )
    checks.positive_int("batch_size", batch_size)
    clean, corrupted = (
        _one_sequence(model, name, inputs)
        for name, inputs in (("clean", clean), ("corrupted", corrupted))
    )
    if _shapes(clean) != _shapes(corrupted):
        raise ValueError(
            "`corrupted` must have the inputs and shapes of `clean`. "
            f"Received: {_shapes(corrupted)} and {_shapes(clean)}"
        )
    states = _raw_states(model, clean)
    length = states[0].shape[1]
    scores = np.empty((len(states), length), "float32")
    for layer, state in enumerate(states):
        for start in range(0, length, batch_size):
            positions = np.arange(start, min(start + batch_size, length))
            rows = _repeated(corrupted, len(positions))
            at = positions[:, None] == np.arange(length)
            outputs = _call(model, rows, _Patcher(model, layer, at, state))
            found = number_array("score(outputs)", score(outputs))
            if found.shape != positions.shape:
                raise ValueError(
                    "`score` must return one number for each of "
                    f"{len(positions)} rows. Received: shape {found.shape}"
                )
            scores[layer, positions] = found
    return scores


class _Recorder(Watcher):
    """Sees the states between the blocks; `at` may change one of them."""

    def __init__(self, model):
        super().__init__()
        self.blocks = {id(block) for block in model._blocks}
        self.states = []

    def at(self, number, state):
        self.states.append(state)
        return state

    def entered(self, key, layer, args, kwargs):
        if id(layer) in self.blocks and not self.states:
            args = (self.at(0, args[0]), *args[1:])
        return args, kwargs

    def left(self, key, layer, outputs):
        # All layers may share one block, so states are counted, not blocks.
        if id(layer) in self.blocks:
            return self.at(len(self.states), outputs)
        return outputs


class _Patcher(_Recorder):
    """Replaces one state where `mask`, bool (R, T), is True."""

    def __init__(self, model, layer, mask, state):
        super().__init__(model)
        self.layer, self.mask, self.state = layer, mask[:, :, None], state

    def at(self, number, state):
        if number == self.layer:
            clean = ops.cast(self.state, state.dtype)
            state = ops.where(self.mask, clean, state)
        return super().at(number, state)


@contextlib.contextmanager
def _undisturbed():
    """Scope in which a call neither changes a model nor records gradients."""
    with keras.StatelessScope(), no_gradients():
        yield


def _call(model, inputs, watcher):
    with _undisturbed(), watched(watcher):
        return model(inputs, training=False)


def _raw_states(model, inputs):
    """Returns L + 1 tensors, none of them after the final norm."""
    if inputs is None:
        raise ValueError(
            "`inputs` must be the inputs of the model. Received: inputs=None"
        )
    recorder = _Recorder(model)
    _call(model, inputs, recorder)
    return recorder.states


def _normalized(model, state):
    return state if model._norm is None else model._norm(state)


def _to_numpy(tensor):
    return ops.convert_to_numpy(tensor).astype("float32")


def _checked_model(model):
    if not isinstance(model, (GPT, Encoder)):
        raise ValueError(
            "`model` must be a `GPT`, `Encoder` or `Bert`. "
            f"Received: {type(model).__name__}"
        )
    return model


def _one_sequence(model, name, inputs):
    if inputs is None:
        raise ValueError(
            f"`{name}` must be the inputs of the model. Received: {name}=None"
        )
    inputs = keras.tree.map_structure(
        ops.convert_to_numpy, model.check_inputs(inputs)
    )
    for array in keras.tree.flatten(inputs):
        if array.shape[0] != 1:
            raise ValueError(
                f"`{name}` must be one sequence, of shape (1, T). "
                f"Received: shape {array.shape}"
            )
    return inputs


def _repeated(inputs, rows):
    return keras.tree.map_structure(
        lambda array: np.repeat(array, rows, axis=0), inputs
    )


def _shapes(inputs):
    if not isinstance(inputs, dict):
        inputs = {"token_ids": inputs}
    return {name: inputs[name].shape for name in sorted(inputs)}
