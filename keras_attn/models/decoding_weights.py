"""Decoder weights prepared for fast decoding steps."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

if TYPE_CHECKING:
    from keras_attn.blocks.decoder_block import DecoderBlock
    from keras_attn.layers.token_embedding import TokenEmbedding


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
    def of(
        cls,
        blocks: "Sequence[DecoderBlock]",
        embedding: "TokenEmbedding | None",
    ) -> Self:
        """Prepares the weights of a stack of blocks and of its output.

        Args:
            blocks: list of `DecoderBlock`.
            embedding: `TokenEmbedding` whose matrix gives the logits, or None.
        """
        matrix = () if embedding is None else embedding.output_matrix()
        return cls(tuple(block.prepare_weights() for block in blocks), matrix)
