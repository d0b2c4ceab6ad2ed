"""Checks of attention layers."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from keras_attn import checks
from keras_attn.testing.check_failure import compare, require
from keras_attn.testing.running import Check, chosen_names, run_checks, takes
from keras_attn.testing.sequences import (
    COMMON,
    Sequences,
    check_causality,
    check_decoding,
    padded_by_one,
)

QUERY, VALUE = "query", "value"


def check_attention_layer(
    layer: keras.layers.Layer,
    only: tuple[str, ...] | None = None,
    except_for: tuple[str, ...] = (),
    hidden_dim: int = 8,
    causal: bool = False,
    decode: Callable[..., Any] | None = None,
    tolerance: float = 1e-5,
) -> tuple[str, ...]:
    """Checks the properties of an attention layer.

    The layer is called as those of Keras are:

        layer(query, value, use_causal_mask=..., attention_mask=...)

    or, if the first argument of its `call` is `inputs`, like
    `keras.layers.Attention`:

        layer([query, value], mask=..., use_causal_mask=...)

    with the implicit masks that an embedding creates, and with only those
    keyword arguments that `call` has. Weights get noise during the checks and
    are restored afterwards; an unbuilt layer is built. The checks are

    - `batch_invariance`: a row does not depend on the other rows.
    - `serialization`: config and `.keras` file restore the layer.
    - `padding_invariance`: padding after both sequences, with implicit masks,
      changes no output of a token.
    - `mask_arguments`: `query_mask` and `value_mask`, or `mask` of a list, give
      the same as implicit masks. Needs these arguments.
    - `attention_mask`: keys that it masks have no influence. Needs it.
    - `fully_masked_rows`: queries without a visible key return zeros.
    - `causality`: with `use_causal_mask`, or in every call of a `causal` layer,
      later tokens have no influence.
    - `cached_decoding`: `decode` equals the causal pass. Needs `decode`.
    - `dtype_policies`: under mixed_bfloat16 and mixed_float16, output and
      weights have the right dtype, and the output is that of float32, finite
      for fully masked rows too.
    - `symbolic_shapes`: shapes and dtypes of symbolic calls are the real ones.
    - `zero_length_axes`: without rows, queries or keys, the output has the
      right shape; without keys it is zero.
    - `host_reads`: a call reads no tensor on the host.
    - `implicit_masks`: a call leaves those of its inputs unchanged, and the
      output has that of the query.

    Args:
        layer: a `keras.layers.Layer`.
        only: tuple of str. The checks to run. Default None: all that apply.
        except_for: tuple of str. Checks that do not run. Default: none.
        hidden_dim: int. Features of queries and values. Default 8.
        causal: bool. Whether the layer is causal in every call, without
            `use_causal_mask`. Default False.
        decode: function of the layer and float x (B, T, D) that calls the layer
            on the tokens of x one by one, with a cache, and returns the outputs
            (B, T, D). Default None.
        tolerance: float. Rounding errors, relative to the largest output or, if
            that is below 1, absolute. Default 1e-5.

    Returns:
        Tuple of str, the names of the checks that ran.

    Raises:
        CheckFailure: an `AssertionError`, for the first property that does not
            hold.
        ValueError: `layer` is no layer, an unknown check, or one in `only` that
            does not apply.

    Examples:
        >>> layer = keras_attn.layers.MultiHeadAttention(2, 4)
        >>> names = keras_attn.testing.check_attention_layer(
        ...     layer, except_for=("serialization",))
        >>> names[:3]
        ('batch_invariance', 'padding_invariance', 'mask_arguments')
    """
    names = chosen_names(_CHECKS, only, except_for)
    check_arguments(layer, "layer", causal, decode, tolerance)
    checks.integer("hidden_dim", hidden_dim, 1, 2**16)
    subject = _AttentionLayer(
        layer, (QUERY, VALUE), hidden_dim, tolerance, causal, decode
    )
    return run_checks(subject, _CHECKS, *names)


def check_arguments(
    layer: Any,
    name: str,
    causal: bool,
    decode: Callable[..., Any],
    tolerance: float,
) -> None:
    """Checks the arguments that attention layers and blocks share."""
    checks.instance(name, layer, keras.layers.Layer, "a Keras layer")
    checks.boolean("causal", causal)
    if decode is not None and not callable(decode):
        raise ValueError(
            "`decode` must be a function of the layer and its inputs. "
            f"Received: decode={checks.shown(decode)}"
        )
    checks.positive("tolerance", tolerance)


class _AttentionLayer(Sequences):
    def shapes(self, size):
        """Shapes of the inputs; of a pair, those of self-attention."""
        return super().shapes((*size, size[1]) if len(size) == 2 else size)

    @property
    def takes_list(self):
        """Whether the layer is called like `keras.layers.Attention`."""
        return takes(self.layer, "inputs") and not takes(self.layer, VALUE)

    def apply(self, layer, tensors, **arguments):
        if takes(layer, "training"):
            arguments["training"] = False
        if self.takes_list:
            return layer(list(tensors), **arguments)
        return layer(*tensors, **arguments)

    @property
    def causal_arguments(self):
        """Keyword arguments of a causal call."""
        if takes(self.layer, "use_causal_mask"):
            return {"use_causal_mask": True}
        return {}

    def mask_arguments(self, masks):
        """Keyword arguments with masks of queries and values."""
        if self.takes_list:
            return {"mask": [np.array(mask) for mask in masks]}
        return {"query_mask": masks[0], "value_mask": masks[1]}


def _mask_arguments(subject, size):
    arrays = subject.draw(size)
    padded, masks = padded_by_one(subject, arrays)
    names = " and ".join(f"`{n}`" for n in subject.mask_arguments(masks))
    output = subject.output(padded, **subject.mask_arguments(masks))
    compare(
        output[:, : size[1]],
        subject.output(arrays),
        subject.tolerance,
        f"a padded position after each sequence, with {names}, must not change "
        "the outputs of tokens",
    )
    compare(
        output,
        subject.output(padded, masks),
        subject.tolerance,
        f"{names} must give the same as implicit masks",
    )


def _lacks_mask_arguments(subject):
    if subject.takes_list:
        given = takes(subject.layer, "mask")
    else:
        given = takes(subject.layer, "query_mask", "value_mask")
    return "" if given else "call arguments `query_mask` and `value_mask`"


def _attention_mask(subject, size):
    query, value = subject.draw(size)
    changed = value.copy()
    changed[:, -1] = subject.draw(size, seed=1)[1][:, -1]
    mask = np.ones(size, "bool")
    mask[..., -1] = False
    compare(
        subject.output([query, changed], attention_mask=mask),
        subject.output([query, value], attention_mask=mask),
        subject.tolerance,
        "the last key, which `attention_mask` masks, must not change the "
        "output",
    )


def _two_keys(subject):
    return (1, 1, 2), subject.most


def _lacks_attention_mask(subject):
    given = takes(subject.layer, "attention_mask")
    return "" if given else "a call argument `attention_mask`"


def _fully_masked_rows(subject, size):
    arrays = subject.draw(size)
    mask = np.ones((size[0], size[2]), "bool")
    mask[0] = False
    output = subject.output(arrays, [None, mask])
    compare(
        output[0],
        0,
        0.0,
        "queries must return zeros if the implicit mask of `value` masks all "
        "keys",
    )
    compare(
        output[1:],
        subject.output(arrays)[1:],
        subject.tolerance,
        "a fully masked row must not change other rows",
    )
    if not _lacks_attention_mask(subject):
        mask = np.ones(size, "bool")
        mask[:, 0] = False
        output = subject.output(arrays, attention_mask=mask)
        compare(
            output[:, 0],
            0,
            0.0,
            "queries must return zeros if `attention_mask` masks all keys",
        )


def _causality(subject, size):
    query = subject.draw(size)[0]
    arrays = [query, query]
    check_causality(subject, arrays, **subject.causal_arguments)


def _lacks_causality(subject):
    if subject.causal or subject.causal_arguments:
        return ""
    return "a call argument `use_causal_mask`, or `causal=True`"


def _cached_decoding(subject, size):
    query = subject.draw(size)[0]
    output = subject.output([query, query], **subject.causal_arguments)
    check_decoding(subject, [query], output)


def _lacks_decoding(subject):
    return _lacks_causality(subject) or (
        "" if subject.decode else "an argument `decode`"
    )


def _square(subject):
    """Self-attention: rows and length only."""
    return subject.least[:2], subject.most[:2]


def _zero_length_axes(subject, size):
    COMMON["zero_length_axes"].run(subject, size)
    arrays = subject.draw((size[0], size[1], 0))
    require(
        not subject.output(arrays).any(),
        "the output without keys must be zero",
    )


# In the order in which they run: those that others rely on come first.
_CHECKS = {
    "batch_invariance": COMMON["batch_invariance"],
    "serialization": COMMON["serialization"],
    "padding_invariance": COMMON["padding_invariance"],
    "mask_arguments": Check(
        _mask_arguments, least_too=False, needs=_lacks_mask_arguments
    ),
    "attention_mask": Check(
        _attention_mask, needs=_lacks_attention_mask, sizes=_two_keys
    ),
    "fully_masked_rows": Check(_fully_masked_rows),
    "causality": Check(_causality, sizes=_square, needs=_lacks_causality),
    "cached_decoding": Check(
        _cached_decoding, sizes=_square, needs=_lacks_decoding, least_too=False
    ),
    "dtype_policies": COMMON["dtype_policies"],
    "symbolic_shapes": COMMON["symbolic_shapes"],
    "zero_length_axes": Check(_zero_length_axes, least_too=False),
    "host_reads": COMMON["host_reads"],
    "implicit_masks": COMMON["implicit_masks"],
}
ATTENTION_LAYER_CHECKS = tuple(_CHECKS)
"""The names of the checks of `check_attention_layer`, in their order."""
