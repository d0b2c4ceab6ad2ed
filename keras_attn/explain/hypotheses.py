"""What a model reads to see again how it wrote what it wrote."""

import keras
import numpy as np

from keras_attn.models import XLNet
from keras_attn.models.causal_lm import CausalLM


def hypothesis_inputs(model, inputs, decoded):
    """Returns what a model is called with to read all that was generated.

    The last token of a sequence is left out: nothing was chosen behind it.

    Args:
        model: a model that generates.
        inputs: what `generate` was called with, B sources or prompts.
        decoded: `keras_attn.decoding.Decoded`, of t sequences a source.

    Returns:
        For B t rows, those of a source side by side: a dict of prompts with
        what was added, `"token_ids"` and `"padding_mask"`, and for an `XLNet`
        the order from left to right and the places that were guessed; or a
        pair of sources and targets, these with the start token in front.

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
    lengths = np.asarray(decoded.lengths).ravel()
    sources, count, _ = tokens.shape
    written = [
        row[:length]
        for row, length in zip(
            tokens.reshape(sources * count, -1), lengths, strict=True
        )
    ]
    read = model.read_sources(inputs)
    if isinstance(model, CausalLM):
        prompts = _repeated(read["token_ids"], sources, count)
        if isinstance(model, XLNet):
            return _guesses(model, prompts, written)
        return _rows(
            model,
            [
                np.concatenate([prompt, text[:-1]])
                for prompt, text in zip(prompts, written, strict=True)
            ],
        )
    if hasattr(read, "dtype") and read.dtype.hasobject:
        read = _rows(model, list(read))["token_ids"]
    taken = [[model.start_id, *text[:-1]] for text in written]
    return (
        keras.tree.map_structure(
            lambda part: _repeated(part, sources, count), read
        ),
        _rows(model, taken)["token_ids"],
    )


def _guesses(model, prompts, written):
    """Returns the inputs of an XLNet, a guess for each token written."""
    pairs = list(zip(prompts, written, strict=True))
    inputs = _rows(model, [np.concatenate(pair) for pair in pairs])
    rows, length = inputs["token_ids"].shape
    places = np.full((rows, max(1, *map(len, written))), -1, "int32")
    for row, (prompt, text) in zip(places, pairs, strict=True):
        row[: len(text)] = len(prompt) + np.arange(len(text))
    order = np.tile(np.arange(length, dtype="int32"), (rows, 1))
    return inputs | {"order": order, "target_positions": places}


def _rows(model, texts):
    """Returns rows with padding behind, and where there are tokens."""
    lengths = np.array([len(text) for text in texts])
    there = np.arange(lengths.max()) < lengths[:, None]
    fill = 0 if model.pad_id is None else model.pad_id
    ids = np.full(there.shape, fill, "int32")
    ids[there] = np.concatenate(texts)
    return {"token_ids": ids, "padding_mask": there}


def _repeated(rows, sources, count):
    if len(rows) != sources:
        raise ValueError(
            f"`inputs` must be the {sources} that `decoded` was generated "
            f"from. Received: {len(rows)}"
        )
    return np.repeat(rows, count, axis=0)
