"""Gradients of an answer at the vectors of all tokens, on any backend.

An encoder reads ids, which have no gradient; their vectors have one. A twin of
the model gets a table with a row for each place of each sentence, so that no
two places share a vector. One step of gradient descent with a learning rate of
1 moves that table by minus its gradient: the trick of `input_gradients`.
Nothing else learns: on TensorFlow, a step of a loss that is linear in the
outputs may pass a gradient on through weights that it has moved already.
"""

import keras
import numpy as np
from input_gradients import Projection

from keras_attn.models import Encoder, TokenClassifier
from keras_attn.training import freeze

_TABLE = "token_embedding"
_DROPOUTS = "dropout", "attention_dropout", "activation_dropout"


def gradient_times_input(model, tokens, directions):
    """Returns how much each token speaks for an answer, at first order.

        g[b, s] = e[b, s] . d (sum over t of directions[b, t] . logits[b, t])
                  / d e[b, s]

    with e the vector of a token, before anything is added to it.

    Args:
        model: `TokenClassifier` of an `Encoder`. It stays as it is.
        tokens: int (B, T). Padding has the id 0.
        directions: float (B, T, classes).

    Returns:
        Float32 (B, T), 0 at padding.

    Raises:
        ValueError: `directions` do not have a row for each token.
    """
    tokens = np.asarray(tokens)
    directions = np.asarray(directions, "float32")
    if directions.shape != (*tokens.shape, model.num_classes):
        raise ValueError(
            "`directions` must be of shape (B, T, classes), here "
            f"{(*tokens.shape, model.num_classes)}. "
            f"Received: {directions.shape}"
        )
    twin, table = _twin(model, tokens)
    before = _copied(table)[1:]
    twin.compile(keras.optimizers.SGD(1.0), Projection())
    rows = 1 + np.arange(tokens.size, dtype="int32").reshape(tokens.shape)
    twin.train_on_batch(np.where(tokens == 0, 0, rows), directions)
    gradient = before - keras.ops.convert_to_numpy(table)[1:]
    found = (gradient * before).sum(-1).reshape(tokens.shape)
    return np.where(tokens == 0, 0, found).astype("float32")


def _twin(model, tokens):
    """Returns a model of a row a place, and the table of these rows."""
    config = model.encoder.get_config() | dict.fromkeys(_DROPOUTS, 0.0)
    config |= {"vocabulary_size": 1 + tokens.size}
    twin = TokenClassifier(
        Encoder.from_config(config), model.num_classes, dropout=0.0
    )
    for mine, its in zip(model.weights, twin.weights, strict=True):
        if _TABLE in its.path:
            vectors = _copied(mine)
            its.assign(np.concatenate([vectors[:1], vectors[tokens.ravel()]]))
            table = its
        else:
            its.assign(_copied(mine))
    freeze(twin, f"^(?!.*{_TABLE})")
    return twin, table


def _copied(weight):
    """Returns a weight's numbers, which a training step leaves alone."""
    return np.array(keras.ops.convert_to_numpy(weight))
