"""attention_maps: the attention weights of a model's layers."""

import contextlib
import re
from collections.abc import Sequence
from typing import Any

import keras

from keras_attn import checks
from keras_attn.backend import no_gradients
from keras_attn.decoding import Decoded
from keras_attn.explain.arguments import index, is_list
from keras_attn.explain.attention_map import AttentionMap
from keras_attn.explain.hypotheses import hypothesis_inputs
from keras_attn.explain.token_names import TokenNames
from keras_attn.ops import capture_weights
from keras_attn.typing import TensorLike


def attention_maps(
    model: keras.Model,
    inputs: TensorLike,
    layers: str | Sequence[str] | None = None,
    heads: int | Sequence[int] | None = None,
    tokens: Any = None,
    decoded: Decoded | None = None,
    vectors: bool = False,
) -> list[AttentionMap]:
    """Returns the attention weights of a model's layers.

    The model is called once, with `training=False`. Only the selected layers
    use the unfused path that materializes the weights; the other layers, and
    later calls of the model, are not affected.

    A generated sequence is passed to the model as a whole, without its last
    token. The weights with which a token was predicted are in the row of the
    token before it; for an `XLNet`, in the row of the token itself in the
    second call of a layer, the query stream.

    Args:
        model: a keras_attn model, or any Keras model with keras_attn attention
            layers.
        inputs: inputs of the model; if `decoded` is given, the inputs of
            `generate`.
        layers: str or list of str. Regular expressions; a layer is selected if
            one of them matches in its path. Default None: all.
        heads: int or list of int. Indices of the heads. Default None: all.
        tokens: callable that takes a list of ids and returns a list of their
            names, such as `SubwordTokenizer.pieces`; or a list of B lists of
            str, a name for each token; or a pair of either, for models with a
            source and a target (a single callable is used for both; lists must
            be a pair). Default None: no names.
        decoded: `keras_attn.decoding.Decoded` that `generate` returned for
            these inputs. The maps then have a row for each of the t sequences
            of each source, B t in all, those of a source adjacent.
        vectors: bool. Whether the maps of `MultiHeadAttention` also have the
            queries and the keys, which `view_attention` then shows. Default
            False.

    Returns:
        List of `AttentionMap`, in the order of the calls.

    Raises:
        ValueError: no layer matches; a head that a layer does not have; tokens
            that do not fit; `decoded` with a model that cannot generate; or
            `vectors` that is no bool.

    Examples:
        >>> model = keras_attn.models.GPT(
        ...     20, num_layers=2, num_heads=2, hidden_dim=8,
        ...     max_sequence_length=9)
        >>> maps = keras_attn.explain.attention_maps(
        ...     model, np.array([[5, 6, 7]]), layers="block_1/",
        ...     tokens=[["a", "b", "c"]])
        >>> [(one.layer, one.weights.shape) for one in maps]
        [('block_1/self_attention', (1, 2, 3, 3))]
    """
    checks.instance("model", model, keras.layers.Layer, "a Keras model")
    _check_patterns(layers)
    multiplied = {} if checks.boolean("vectors", vectors) else None
    if inputs is None:
        raise ValueError(
            "`inputs` must be the inputs of the model. Received: inputs=None"
        )
    if decoded is not None:
        checks.instance("decoded", decoded, Decoded, "a `Decoded`")
        inputs = hypothesis_inputs(model, inputs, decoded)
    names = TokenNames(tokens, inputs, model)
    with contextlib.ExitStack() as around:
        if getattr(model, "built", False):
            # Do not change the model's state.
            around.enter_context(keras.StatelessScope())
        around.enter_context(no_gradients())
        captured = around.enter_context(capture_weights(layers, multiplied))
        model(inputs, training=False)
    if not captured:
        called = f"{type(model).__name__} {model.name!r}"
        if layers is not None:
            raise ValueError(
                "`layers` must match the path of a keras_attn attention layer "
                "of the model. "
                f"Received: layers={checks.shown(layers)} for {called}"
            )
        raise ValueError(
            "`model` must have a keras_attn attention layer. "
            f"Received: {called}"
        )
    found = []
    for (path, call), weights in captured.items():
        weights = keras.ops.convert_to_numpy(weights).astype("float32")
        chosen = _heads(heads, path, weights.shape[1])
        pair = multiplied.get((path, call)) if vectors else None
        found.append(
            AttentionMap(
                path,
                call,
                chosen,
                weights[:, list(chosen)],
                *names.of(path, call, weights.shape),
                *([] if pair is None else _of_heads(pair, chosen)),
            )
        )
    return found


def _heads(heads, path, count):
    if heads is None:
        return tuple(range(count))
    if not is_list(heads) and not isinstance(heads, range):
        heads = [heads]
    if not len(heads):
        raise ValueError(
            "`heads` must hold an index of a head, or be None. "
            f"Received: heads={heads}"
        )
    what = f"those of {path}"
    return tuple(index("heads", head, count, what) for head in heads)


def _of_heads(pair, chosen):
    """Returns queries and keys of some heads, (B, N, T, H) and (B, N, S, H)."""
    query, key = (keras.ops.convert_to_numpy(x).astype("float32") for x in pair)
    shared_by = query.shape[2] // key.shape[2]
    key = key.repeat(shared_by, axis=2)
    return [x[:, :, list(chosen)].transpose(0, 2, 1, 3) for x in (query, key)]


def _check_patterns(layers):
    patterns = [layers] if isinstance(layers, str) else layers
    if patterns is None:
        return
    if not isinstance(patterns, (list, tuple)) or not all(
        isinstance(pattern, str) for pattern in patterns
    ):
        raise ValueError(
            "`layers` must be a regular expression (str) or a list of them. "
            f"Received: layers={checks.shown(layers)}"
        )
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(
                "`layers` must be regular expressions. "
                f"Received: {checks.shown(pattern)} "
                f"({error})"
            ) from error
