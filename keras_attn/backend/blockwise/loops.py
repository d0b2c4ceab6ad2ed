"""Blockwise attention as compiled loops, for JAX and TensorFlow."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import keras

from keras_attn.backend.blockwise.layout import (
    from_query_blocks,
    key_blocks,
    metadata_blocks,
    query_blocks,
)
from keras_attn.backend.blockwise.online_softmax import Operands
from keras_attn.typing import TensorLike

if TYPE_CHECKING:
    from keras_attn.backend.blockwise.online_softmax import Blocking


if keras.backend.backend() == "jax":
    from keras_attn.backend.blockwise.jax_program import run
elif keras.backend.backend() == "tensorflow":
    from keras_attn.backend.blockwise.tensorflow_program import run


def by_loops(
    blocking: "Blocking",
    query: TensorLike,
    key: TensorLike,
    value: TensorLike,
    *,
    bias: TensorLike,
    query_metadata: TensorLike,
    key_metadata: TensorLike,
    spans: Callable[..., Any],
    mask: TensorLike,
    seed: Any,
) -> Any:
    """Splits the tensors into blocks and runs the compiled program.

    Args and returns as for `blockwise_attention`.
    """
    operands = Operands(
        query_blocks(query, blocking.query_block, blocking.key_heads),
        key_blocks(key, blocking.key_block),
        key_blocks(value, blocking.key_block),
        bias,
        metadata_blocks(query_metadata, blocking.query_block),
        metadata_blocks(key_metadata, blocking.key_block),
        *spans(),
        mask,
        seed,
    )
    output = run(blocking, operands)
    return from_query_blocks(output, blocking.query_block, blocking.key_heads)
