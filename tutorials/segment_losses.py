"""What each character of a text costs a model that remembers."""

import keras
import numpy as np

from keras_attn.text import token_streams


def segment_losses(model, ids, segment, memory, rows=16):
    """Returns the loss of every character of a text, read segment by segment.

    The text is cut into rows that are read side by side; only the first
    segment of each begins without a memory.

    Args:
        model: `TransformerXL`.
        ids: int (N,), the text.
        segment: int. T, the characters of a segment.
        memory: int. M, the characters that are remembered, as in the training
            or not.
        rows: int. Rows, at most one for every segment.

    Returns:
        Float (N - 1,), nats, of all characters but the first, and int (N - 1,),
        how many characters of its segment stood before each, itself left out.
    """
    rows = max(1, min(rows, len(ids) // segment))
    reader = model.with_memory(memory, rows)
    losses, places = [], []
    stream = token_streams(
        np.asarray(ids), segment, rows, shuffle=False, pad_id=0
    )
    for inputs, labels in stream.as_numpy_iterator():
        logits = reader.predict_on_batch(inputs)
        logs = keras.ops.convert_to_numpy(keras.ops.log_softmax(logits))
        known = np.maximum(labels, 0)
        found = -np.take_along_axis(logs, known[..., None], -1)[..., 0]
        losses.append(np.where(labels < 0, np.nan, found))
        places.append(np.broadcast_to(np.arange(segment), labels.shape))
    # Rows one behind the other are the text.
    losses = np.concatenate(losses, axis=1).ravel()
    places = np.concatenate(places, axis=1).ravel()
    known = ~np.isnan(losses)
    return losses[known], places[known]


def bits(losses):
    """Returns the mean of losses in nats as bits."""
    return float(np.mean(losses) / np.log(2))
