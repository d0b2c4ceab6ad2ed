"""Checks of Transformer blocks."""

from collections.abc import Callable
from typing import Any

import numpy as np

from keras_attn import checks
from keras_attn.testing.attention_layer import check_arguments
from keras_attn.testing.check_failure import compare, require
from keras_attn.testing.running import Check, chosen_names, run_checks
from keras_attn.testing.sequences import COMMON, Sequences


def check_block(
    block: Any,
    only: tuple[str, ...] | None = None,
    except_for: tuple[str, ...] = (),
    hidden_dim: int = 8,
    causal: bool = False,
    memory: bool = False,
    decode: Callable[..., Any] | None = None,
    tolerance: float = 1e-5,
) -> tuple[str, ...]:
    """Checks the properties of a block of a Transformer.

    The block is called on one sequence of vectors, or on a sequence and the
    output of an encoder:

        block(inputs)
        block(inputs, memory)

    by position, with the implicit masks that an embedding creates. Weights get
    noise during the checks and are restored afterwards; an unbuilt block is
    built. The checks are those of `check_attention_layer` with the same name,
    but

    - `fully_masked_rows`: a row that is all padding gives finite outputs and
      changes no other row; nor does a `memory` that is all padding, whose
      contents have no influence.
    - `causality` needs `causal=True`.
    - `cached_decoding` needs `causal=True` and `decode`.
    - `zero_length_axes`: without rows, positions or memory, the output has the
      right shape.

    `mask_arguments` and `attention_mask` are checks of attention layers only.

    Args:
        block: a `keras.layers.Layer`.
        only: tuple of str. The checks to run. Default None: all that apply.
        except_for: tuple of str. Checks that do not run. Default: none.
        hidden_dim: int. Features of the vectors. Default 8.
        causal: bool. Whether positions attend to earlier ones only. Default
            False.
        memory: bool. Whether to pass a memory. Default False.
        decode: function of the block, float x (B, T, D) and, with `memory`,
            float memory (B, S, D), that calls the block on the tokens of x one
            by one, with a cache, and returns the outputs (B, T, D). Default
            None.
        tolerance: float. Rounding errors, relative to the largest output or, if
            that is below 1, absolute. Default 1e-5.

    Returns:
        Tuple of str, the names of the checks that ran.

    Raises:
        CheckFailure: an `AssertionError`, for the first property that does not
            hold.
        ValueError: `block` is no layer, an unknown check, or one in `only` that
            does not apply.

    Examples:
        >>> block = keras_attn.blocks.DecoderBlock(
        ...     num_heads=2, intermediate_dim=16)
        >>> keras_attn.testing.check_block(
        ...     block, only=("causality", "batch_invariance"), causal=True)
        ('causality', 'batch_invariance')
    """
    names = chosen_names(_CHECKS, only, except_for)
    check_arguments(block, "block", causal, decode, tolerance)
    checks.integer("hidden_dim", hidden_dim, 1, 2**16)
    checks.boolean("memory", memory)
    inputs = ("inputs", "memory") if memory else ("inputs",)
    subject = Sequences(block, inputs, hidden_dim, tolerance, causal, decode)
    return run_checks(subject, _CHECKS, *names)


def _fully_masked_rows(subject, size):
    arrays = subject.draw(size)
    expected = subject.output(arrays)
    for index, name in enumerate(subject.names):
        mask = np.ones((size[0], size[1 + index]), "bool")
        mask[0] = False
        masks = [None] * len(arrays)
        masks[index] = mask
        output = subject.output(arrays, masks)
        require(
            np.isfinite(output).all(),
            f"outputs must be finite if all of `{name}` is padding",
        )
        compare(
            output[1:],
            expected[1:],
            subject.tolerance,
            f"a row of `{name}` that is all padding must not change other rows",
        )
        if name == "memory":
            changed = [arrays[0], 9 * arrays[1]]
            compare(
                subject.output(changed, masks)[0],
                output[0],
                subject.tolerance,
                "the contents of a `memory` that is all padding must not "
                "change the output",
            )


_FIRST = ("batch_invariance", "serialization", "padding_invariance")
_CHECKS = {
    **{name: COMMON[name] for name in _FIRST},
    "fully_masked_rows": Check(_fully_masked_rows),
    **{name: check for name, check in COMMON.items() if name not in _FIRST},
}
BLOCK_CHECKS = tuple(_CHECKS)
"""The names of the checks of `check_block`, in their order."""
