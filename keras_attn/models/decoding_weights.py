"""Decoder weights prepared for fast decoding steps."""

from typing import Any, NamedTuple


class DecodingWeights(NamedTuple):
    """Weights that a stack of decoder blocks prepares once for many steps.

    Args:
        blocks: tuple, for the `weights` of a `keras_attn.cache.DecodingStep`:
            the prepared weights of each block. Default (): not prepared.
        output_matrix: float (D, V), from `TokenEmbedding.output_matrix`.
            Default (): not prepared.
    """

    blocks: Any = ()
    output_matrix: Any = ()

    @classmethod
    def of(cls, blocks, embedding):
        """Prepares the weights of a stack of blocks and of its output.

        Args:
            blocks: list of `DecoderBlock`.
            embedding: `TokenEmbedding` whose matrix gives the logits, or None.
        """
        matrix = () if embedding is None else embedding.output_matrix()
        return cls(tuple(block.prepare_weights() for block in blocks), matrix)
