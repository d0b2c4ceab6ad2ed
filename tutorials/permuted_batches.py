"""Batches of pairs of sentences in an order that is drawn anew each time."""

from length_batches import LengthBatches

from keras_attn.text import permute_tokens


def permuted_batches(pairs, tokenizer, length, batch_size, seed=0):
    """Gives batches of what `XLNet` reads and shall guess.

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
        return permuted(pairs, tokenizer, length, draw)

    batch_size = min(batch_size, len(pairs))
    return LengthBatches(
        pairs, [length] * len(pairs), batch_size, make, 1, seed
    )


def permuted(pairs, tokenizer, length, draw):
    """Packs pairs and draws an order of their pieces.

    Args:
        pairs: list of `keras_attn.text.SentencePair`.
        tokenizer: `keras_attn.text.WordPieceTokenizer`.
        length: int. T, ids of a row.
        draw: int or `numpy.random.Generator`, for the orders.

    Returns:
        Dict of NumPy arrays that the model reads, and int32 (B, P), the pieces
        that it shall guess.
    """
    inputs = tokenizer.pack(
        [pair.first for pair in pairs],
        [pair.second for pair in pairs],
        length,
        pad_to_length=True,
    )
    drawn = permute_tokens(
        inputs["token_ids"], tokenizer.special_ids, seed=draw
    )
    inputs |= {"order": drawn.order, "target_positions": drawn.target_positions}
    return inputs, drawn.labels
