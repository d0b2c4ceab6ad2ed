"""The blocks of a model and what follows them, for `keras_attn.explain`."""

from collections.abc import Callable
from typing import Any, NamedTuple


class BlockStack(NamedTuple):
    """The blocks of a model, and what follows them.

    Args:
        blocks: list of layers. One that is shared is called several times.
        normalize: callable, the final norm; the identity if there is none.
        logits: callable, all that follows the last block, from its output to
            logits (B, T, V). None if the model has none for each token.
    """

    blocks: list[Any]
    normalize: Callable[[Any], Any]
    logits: Callable[[Any], Any] | None


def make_stack(
    blocks: list[Any],
    norm: Callable[[Any], Any] | None,
    output: Callable[[Any], Any] | None = None,
) -> BlockStack:
    """Returns the `BlockStack` of blocks, a final norm and an output layer.

    Args:
        blocks: list of layers.
        norm: the final norm, or None.
        output: callable, from the output of the norm to logits, or None.
    """

    def normalize(x):
        return x if norm is None else norm(x)

    def logits(x):
        return output(normalize(x))

    return BlockStack(blocks, normalize, None if output is None else logits)
