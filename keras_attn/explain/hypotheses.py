"""What a model reads to see again how it wrote what it wrote."""

import keras
import numpy as np

from keras_attn.models.left_to_right import LeftToRight


def hypothesis_inputs(model, inputs, decoded):
    """Returns what a model is called with to read all that was generated.

    Args:
        model: a model that generates.
        inputs: what `generate` was called with, B sources or prompts.
        decoded: `keras_attn.decoding.Decoded`, of t sequences a source.

    Returns:
        For B t rows, those of a source side by side: int32 ids, prompts with
        what was added and padding behind; or a pair of sources and targets,
        these with the start token in front and the last one left out.

    Raises:
        ValueError: a model that cannot generate, or other sources than those
            of `decoded`.
    """
    if not hasattr(model, "start_decoding"):
        raise ValueError(
            "`model` must be one that generates where `decoded` is given. "
            f"Received: {type(model).__name__}"
        )
    tokens = np.asarray(decoded.tokens)
    sources, count, length = tokens.shape
    if isinstance(model, LeftToRight):
        prompts = _rows(model, inputs)
        _check(prompts, sources)
        lengths = np.asarray(decoded.lengths)
        texts = [
            np.concatenate([prompt, tokens[b, h, : lengths[b, h]]])
            for b, prompt in enumerate(prompts)
            for h in range(count)
        ]
        fill = 0 if model.pad_id is None else model.pad_id
        ids = np.full((len(texts), max(map(len, texts))), fill, "int32")
        for row, text in zip(ids, texts, strict=True):
            row[: len(text)] = text
        return ids
    inputs = keras.ops.convert_to_numpy(inputs)
    _check(inputs, sources)
    taken = np.full((sources * count, length), model.start_id, "int32")
    taken[:, 1:] = tokens.reshape(-1, length)[:, :-1]
    return np.repeat(inputs, count, axis=0), taken


def _rows(model, inputs):
    """Returns the ids of each prompt, without padding."""
    if isinstance(inputs, dict):
        mask = keras.ops.convert_to_numpy(inputs["padding_mask"]).astype(bool)
        ids = keras.ops.convert_to_numpy(inputs["token_ids"])
        return [row[seen] for row, seen in zip(ids, mask, strict=True)]
    return [
        row[row != model.pad_id] if model.pad_id is not None else row
        for row in map(np.asarray, inputs)
    ]


def _check(rows, sources):
    if len(rows) != sources:
        raise ValueError(
            f"`inputs` must be the {sources} that `decoded` was generated "
            f"from. Received: {len(rows)}"
        )
