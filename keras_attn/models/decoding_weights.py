"""The weights of a decoder in the form that its steps read fastest."""

from typing import Any, NamedTuple


class DecodingWeights(NamedTuple):
    """Holds what a decoder of blocks prepares once for many steps.

    Args:
        blocks: tuple, for each block of the decoder what it prepares.
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
        """Prepares the weights of a stack and of its output.

        Args:
            blocks: list of `DecoderBlock`.
            embedding: `TokenEmbedding` whose matrix makes the logits, or None.
        """
        matrix = () if embedding is None else embedding.output_matrix()
        return cls(tuple(block.prepare_weights() for block in blocks), matrix)

    @classmethod
    def unprepared(cls, count):
        """Returns what stands for the weights of `count` blocks as they are."""
        return cls(((),) * count, ())
