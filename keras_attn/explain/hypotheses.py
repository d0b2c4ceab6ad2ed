"""Model inputs that reproduce the decoding of generated sequences."""

from typing import TYPE_CHECKING

import keras
import numpy as np

from keras_attn.models import XLNet
from keras_attn.models.causal_lm import CausalLM
from keras_attn.typing import TensorLike

if TYPE_CHECKING:
    from keras_attn.decoding.protocol import Decoded


def hypothesis_inputs(
    model: keras.Model, inputs: TensorLike, decoded: "Decoded"
) -> keras.Model:
    """Returns model inputs that contain the generated sequences.

    The last token of a sequence is left out: no token was predicted after it.

    Args:
        model: a generative model.
        inputs: the inputs of `generate`, B sources or prompts.
        decoded: `keras_attn.decoding.Decoded`, of t sequences per source.

    Returns:
        For B t rows, those of a source adjacent: a dict of `"token_ids"`, the
        prompts and generated tokens, and `"padding_mask"`, and for an `XLNet`
        the left-to-right order and the target positions; or a pair of sources
        and targets, the targets after the start token.

    Raises:
        ValueError: a model that cannot generate, or a number of sources other
            than that of `decoded`.
    """
    if not hasattr(model, "start_decoding"):
        raise ValueError(
            "`model` must be a generative model if `decoded` is given. "
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
            return _xlnet_inputs(model, prompts, written)
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


def _xlnet_inputs(model, prompts, written):
    """Returns the inputs of an XLNet, a target for each generated token."""
    pairs = list(zip(prompts, written, strict=True))
    inputs = _rows(model, [np.concatenate(pair) for pair in pairs])
    rows, length = inputs["token_ids"].shape
    targets = np.full((rows, max(1, *map(len, written))), -1, "int32")
    for row, (prompt, text) in zip(targets, pairs, strict=True):
        row[: len(text)] = len(prompt) + np.arange(len(text))
    order = np.tile(np.arange(length, dtype="int32"), (rows, 1))
    return inputs | {"order": order, "target_positions": targets}


def _rows(model, texts):
    """Returns right-padded rows and their padding mask."""
    lengths = np.array([len(text) for text in texts])
    mask = np.arange(lengths.max()) < lengths[:, None]
    fill = 0 if model.pad_id is None else model.pad_id
    ids = np.full(mask.shape, fill, "int32")
    ids[mask] = np.concatenate(texts)
    return {"token_ids": ids, "padding_mask": mask}


def _repeated(rows, sources, count):
    if len(rows) != sources:
        raise ValueError(
            f"`inputs` must be the {sources} that `decoded` was generated "
            f"from. Received: {len(rows)}"
        )
    return np.repeat(rows, count, axis=0)
