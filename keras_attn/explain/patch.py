"""patch: activation patching by layer and position."""

from collections.abc import Callable
from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from keras_attn import checks
from keras_attn.explain.arguments import number_array
from keras_attn.explain.block_states import (
    Recorder,
    find_stack,
    recorded,
    to_numpy,
)
from keras_attn.models import GPT, Transformer, TransformerXL
from keras_attn.typing import Nest, Tensor, TensorLike


class PatchScores(NamedTuple):
    """Scores of a model with one hidden state replaced.

    Args:
        scores: float32 (L + 1, T). By layer, from the embeddings, and position.
        clean: float. The score of the clean inputs.
        corrupted: float. That of the corrupted inputs, without a patch.

    Examples:
        >>> scores = np.array([[1.0, 3.0], [1.0, 2.0]])
        >>> keras_attn.explain.PatchScores(scores, 3.0, 1.0).restored
        array([[0. , 1. ],
               [0. , 0.5]])
    """

    scores: Any
    clean: float
    corrupted: float

    @property
    def restored(self) -> Tensor:
        """How much of the difference between the inputs a patch restores.

            (scores - corrupted) / (clean - corrupted)

        float (L + 1, T): 0 if it has no effect, 1 if the score is that of the
        clean inputs. ValueError if clean and corrupted inputs have one score.
        """
        difference = self.clean - self.corrupted
        if not difference:
            raise ValueError(
                "`clean` and `corrupted` must have different scores. "
                f"Received: {self.clean} for both"
            )
        return (self.scores - self.corrupted) / difference


def patch(
    model: keras.Model,
    clean: Nest,
    corrupted: Nest,
    score: Callable[[Any], TensorLike] | None = None,
    stack: str | None = None,
    batch_size: int = 32,
) -> PatchScores:
    """Patches activations: replaces one hidden state, by layer and position.

    The model reads the corrupted inputs, but its hidden state at one layer and
    position is that of the clean inputs (Meng et al. 2022, sec. 2,
    https://arxiv.org/abs/2202.05262; Wang et al. 2022,
    https://arxiv.org/abs/2211.00593). If the score returns to that of the clean
    inputs, the state carries the information that the corrupted ones lack. The
    states are those of `hidden_states`, before a final norm.

    A batch has rows for several layers and positions. All batches have the same
    shape.

    Args:
        model: as for `hidden_states`.
        clean: inputs of the model, one sequence: (1, T).
        corrupted: inputs with the same structure and shapes.
        score: callable that takes the outputs of the model for R rows and
            returns a number for each, (R,). Default None, for language models:
            the logit at the last position of the most likely next token after
            the clean inputs, minus that after the corrupted ones.
        stack: `"encoder"` or `"decoder"`, of a `Transformer`: whose states are
            replaced. Default None: the decoder's, or those of the only stack.
        batch_size: int. R, the rows of a call. Default 32.

    Returns:
        `PatchScores`.

    Raises:
        ValueError: another model, or a stack that it does not have; inputs that
            it does not accept, with more than one row or of other shapes;
            scores of another shape; or no `score` for a model that needs one.

    Examples:
        >>> model = keras_attn.models.GPT(
        ...     20, num_layers=2, num_heads=2, hidden_dim=8,
        ...     max_sequence_length=9)
        >>> patched = keras_attn.explain.patch(
        ...     model, np.array([[5, 6, 7]]), np.array([[9, 6, 7]]),
        ...     lambda logits: logits[:, -1, 8])
        >>> patched.scores.shape
        (3, 3)
    """
    found = find_stack(model, stack)
    if score is not None and not callable(score):
        raise ValueError(
            "`score` must be callable, or None. "
            f"Received: score of type {type(score).__name__}"
        )
    checks.positive_int("batch_size", batch_size)
    clean, corrupted = (
        _one_row(model, name, inputs)
        for name, inputs in (("clean", clean), ("corrupted", corrupted))
    )
    if _shapes(clean) != _shapes(corrupted):
        raise ValueError(
            "`corrupted` must have the structure and shapes of `clean`. "
            f"Received: {_shapes(corrupted)} and {_shapes(clean)}"
        )
    recorder = Recorder(found)
    ends = [
        recorded(model, clean, recorder),
        recorded(model, corrupted, Recorder(found)),
    ]
    states = recorder.states
    if score is None:
        score = _logit_difference(model, *ends)
    of_clean, of_corrupted = (float(_scores(score, x, 1)[0]) for x in ends)
    size = len(states), states[0].shape[1]
    layers, positions = (index.ravel() for index in np.indices(size))
    scores = np.empty(len(layers), "float32")
    count = min(batch_size, len(scores))
    rows = keras.tree.map_structure(
        lambda array: np.repeat(array, count, axis=0), corrupted
    )
    for start in range(0, len(scores), count):
        # The last batch is filled with patches of the first.
        chosen = np.arange(start, start + count) % len(scores)
        patcher = _Patcher(found, states, layers[chosen], positions[chosen])
        outputs = recorded(model, rows, patcher)
        scores[chosen] = _scores(score, outputs, count)
    return PatchScores(scores.reshape(size), of_clean, of_corrupted)


class _Patcher(Recorder):
    """Replaces, in each row, the state of one layer at one position."""

    def __init__(self, stack, states, layers, positions):
        super().__init__(stack)
        self._clean = states
        numbers = np.arange(states[0].shape[1])
        self._layers, self._positions = layers, positions[:, None] == numbers

    def at(self, layer, state):
        here = (self._layers == layer)[:, None] & self._positions
        if not here.any():
            return state
        return ops.where(here[..., None], self._clean[layer], state)


def _scores(score, outputs, rows):
    scores = number_array("score(outputs)", score(outputs))
    if scores.shape != (rows,):
        raise ValueError(
            f"`score` must return a number for each of {rows} rows. "
            f"Received: shape {scores.shape}"
        )
    return scores


def _logit_difference(model, clean, corrupted):
    """Returns the default score."""
    if not isinstance(model, (GPT, Transformer, TransformerXL)):
        raise ValueError(
            "`score` must be given for a model that predicts no next token. "
            f"Received: score=None for {type(model).__name__}"
        )
    right, wrong = (
        int(to_numpy(x)[0, -1].argmax()) for x in (clean, corrupted)
    )
    if right == wrong:
        raise ValueError(
            "`score` must be given if the most likely next token is the same "
            "after `clean` and `corrupted`. "
            f"Received: score=None, and token {right} for both"
        )
    return lambda logits: logits[:, -1, right] - logits[:, -1, wrong]


def _one_row(model, name, inputs):
    if inputs is None:
        raise ValueError(
            f"`{name}` must be inputs of the model. Received: {name}=None"
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


def _shapes(inputs):
    return keras.tree.map_structure(lambda array: array.shape, inputs)
