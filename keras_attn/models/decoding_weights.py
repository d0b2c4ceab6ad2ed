"""Decoder weights prepared for fast decoding steps."""

from typing import Any, NamedTuple


class DecodingWeights(NamedTuple):
    """Weights that a stack of decoder blocks prepares once for many steps.

    Args:
        blocks: tuple, the prepared weights of each decoder block.
        output_matrix: float (D, V), or (), from `TokenEmbedding`.

    Examples:
        >>> from keras_attn.models.decoding_weights import DecodingWeights
        >>> DecodingWeights.unprepared(2)
        DecodingWeights(blocks=((), ()), output_matrix=())
    """

    blocks: Any
    output_matrix: Any

    @classmethod
    def of(cls, blocks, embedding):
        """Prepares the weights of a stack of blocks and of its output.

        Args:
            blocks: list of `DecoderBlock`.
            embedding: `TokenEmbedding` whose matrix gives the logits, or None.
        """
        matrix = () if embedding is None else embedding.output_matrix()
        return cls(tuple(block.prepare_weights() for block in blocks), matrix)

    @classmethod
    def unprepared(cls, count):
        """Returns placeholders for `count` blocks with unprepared weights."""
        return cls(((),) * count, ())
