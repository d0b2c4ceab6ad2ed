"""Batches of pairs of sentences with masks in them, hidden anew each time."""

import numpy as np
from length_batches import LengthBatches

from keras_attn.text import mask_tokens


def masked_batches(pairs, tokenizer, length, batch_size, seed=0):
    """Gives batches of what `BertPretrainer` reads and shall say.

    Args:
        pairs: list of `keras_attn.text.SentencePair`.
        tokenizer: `keras_attn.text.WordPieceTokenizer`.
        length: int. T, ids of a row.
        batch_size: int.
        seed: int.

    Returns:
        `LengthBatches`, all of one length.
    """

    def make(pairs, length, draw):
        return masked(pairs, tokenizer, length, draw)

    batch_size = min(batch_size, len(pairs))
    return LengthBatches(
        pairs, [length] * len(pairs), batch_size, make, 1, seed
    )


def masked(pairs, tokenizer, length, draw):
    """Packs pairs and hides some of their pieces.

    Args:
        pairs: list of `keras_attn.text.SentencePair`.
        tokenizer: `keras_attn.text.WordPieceTokenizer`.
        length: int. T, ids of a row.
        draw: int or `numpy.random.Generator`, for what is hidden.

    Returns:
        Two dicts of NumPy arrays: what the model reads, and what it shall say.
    """
    inputs = tokenizer.pack(
        [pair.first for pair in pairs],
        [pair.second for pair in pairs],
        length,
        pad_to_length=True,
    )
    hidden = mask_tokens(
        inputs["token_ids"],
        tokenizer.vocabulary_size,
        tokenizer.mask_id,
        tokenizer.special_ids,
        seed=draw,
    )
    inputs |= {
        "token_ids": hidden.token_ids,
        "masked_positions": hidden.positions,
    }
    # Class 0 of the second task: the second sentence follows.
    follows = [[int(not pair.is_next)] for pair in pairs]
    return inputs, {
        "token_logits": hidden.labels,
        "next_sentence_logits": np.array(follows, "int32"),
    }
