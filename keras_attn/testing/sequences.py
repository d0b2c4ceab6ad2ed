"""Checks of layers of sequences: attention layers and blocks.

A subject calls a layer on one or two sequences of vectors. Sizes are (rows,
length) or (rows, length, length of the second sequence).
"""

import json
import os
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops, tree

from keras_attn.backend.host_reads import list_host_reads
from keras_attn.ops.visibility import implicit_mask
from keras_attn.testing.check_failure import (
    compare,
    dtype_of,
    require,
    values,
)
from keras_attn.testing.running import Check, copy_of, custom_objects, takes
from keras_attn.typing import TensorLike

# Relative error of a float16 or bfloat16 output.
HALF_PRECISION = 0.1


class Sequences:
    """A layer, called on random sequences of vectors.

    Args:
        layer: the layer. It is called once, on inputs of the largest size, so
            that it has weights.
        names: tuple of str, the names of its sequences.
        width: int. Features of each vector.
        tolerance: float. Rounding error of outputs, relative to their size.
        causal: bool. Whether the layer is causal in every call.
        decode: function of the layer and its sequences, or None.
    """

    def __init__(
        self,
        layer: Any,
        names: tuple[str, ...],
        width: int,
        tolerance: float,
        causal: bool,
        decode: Callable[..., Any] | None,
    ) -> None:
        self.layer = layer
        self.names = names
        self.width = width
        self.tolerance = tolerance
        self.causal = causal
        self.decode = decode
        self.least: tuple[int, ...] = (1,) * (1 + len(names))
        self.most: tuple[int, ...] = (2, 3, 4)[: 1 + len(names)]
        self.call(self.draw(self.most))

    def shapes(self, size: Any) -> dict[str, Any]:
        """Dict of the names of the sequences to their shapes."""
        return {
            name: (size[0], length, self.width)
            for name, length in zip(self.names, size[1:], strict=True)
        }

    def draw(self, size: Any, seed: int = 0) -> list[Any]:
        """Returns random float32 arrays of a size."""
        random = np.random.default_rng(seed)
        return [
            random.normal(size=shape).astype("float32")
            for shape in self.shapes(size).values()
        ]

    def call(
        self,
        arrays: Any,
        masks: Sequence[TensorLike] | None = None,
        layer: Any = None,
        **arguments: Any,
    ) -> Any:
        """Calls the layer.

        Args:
            arrays: the sequences, arrays or symbolic tensors.
            masks: list of bool arrays (rows, length), or None for a sequence
                without one: the implicit masks. Default: none.
            layer: a copy of the layer. Default: the layer itself.
            **arguments: keyword arguments of the call.

        Returns:
            The output.
        """
        layer = self.layer if layer is None else layer
        tensors = self.tensors(arrays, masks)
        return self.apply(layer, tensors, **arguments)

    def apply(self, layer: Any, tensors: Any, **arguments: Any) -> Any:
        """Calls a layer on tensors; subclasses follow other conventions."""
        if takes(layer, "training"):
            arguments["training"] = False
        return layer(*tensors, **arguments)

    def tensors(self, arrays: Any, masks: Any = None) -> Any:
        """Converts arrays to tensors that carry masks."""
        # Self-attention passes one tensor twice.
        made = {
            id(x): x
            if isinstance(x, keras.KerasTensor)
            else ops.convert_to_tensor(x)
            for x in arrays
        }
        tensors = [made[id(x)] for x in arrays]
        for tensor, mask in zip(tensors, masks or (), strict=False):
            if mask is not None:
                # Private: not exported, as of Keras 3.15.1.
                tensor._keras_mask = ops.convert_to_tensor(mask)
        return tensors

    def output(
        self,
        arrays: Any,
        masks: Any = None,
        layer: Any = None,
        **arguments: Any,
    ) -> Any:
        """Returns the first output of a call, as a float32 NumPy array."""
        return values(first(self.call(arrays, masks, layer, **arguments)))


def first(output: TensorLike) -> Any:
    """Returns the output itself, or the first of several."""
    return output[0] if isinstance(output, (list, tuple)) else output


def _padding_invariance(subject, size):
    arrays = subject.draw(size)
    padded, masks = padded_by_one(subject, arrays)
    compare(
        subject.output(padded, masks)[:, : size[1]],
        subject.output(arrays),
        subject.tolerance,
        "a padded position after each sequence, with implicit masks, must not "
        "change the outputs of tokens",
    )


def padded_by_one(subject: Any, arrays: Any) -> tuple[Any, Any]:
    """Adds a position to each sequence.

    Returns:
        The longer sequences and their masks, which are False for it.
    """
    padded, masks = [], []
    ones = (len(arrays[0]), *(1 for _ in arrays))
    for x, noise in zip(arrays, subject.draw(ones, seed=1), strict=True):
        padded.append(np.concatenate([x, 2 * noise], axis=1))
        masks.append(np.ones(padded[-1].shape[:2], "bool"))
        masks[-1][:, -1] = False
    return padded, masks


def _causality(subject, size):
    check_causality(subject, subject.draw(size))


def check_causality(subject: Sequences, arrays: Any, **arguments: Any) -> None:
    """Changes the last token of the first sequence.

    Args:
        subject: `Sequences`.
        arrays: the sequences of a call.
        **arguments: keyword arguments of the call.
    """
    changed = [x.copy() for x in arrays]
    for x, other in zip(changed, arrays, strict=True):
        if other is arrays[0]:
            x[:, -1] += 1
    before = subject.output(arrays, **arguments)
    after = subject.output(changed, **arguments)
    compare(
        after[:, :-1],
        before[:, :-1],
        subject.tolerance,
        "a change of the last token must not change earlier outputs",
    )
    require(
        not np.array_equal(after[:, -1], before[:, -1]),
        "a change of the last token must change its own output: each token "
        "attends to itself",
    )


def _cached_decoding(subject, size):
    arrays = subject.draw(size)
    check_decoding(subject, arrays, subject.output(arrays))


def check_decoding(subject: Any, arrays: Any, expected: str) -> None:
    """Compares cached decoding with the output of a full pass."""
    tensors = subject.tensors(arrays)
    compare(
        values(subject.decode(subject.layer, *tensors)),
        expected,
        subject.tolerance,
        "decoding token by token with a cache must equal the full causal pass",
    )


def _batch_invariance(subject, size):
    arrays = subject.draw(size)
    together = subject.output(arrays)
    for row in range(size[0]):
        compare(
            subject.output([x[row : row + 1] for x in arrays]),
            together[row : row + 1],
            subject.tolerance,
            "the output of a row must not depend on the other rows",
        )


def _dtype_policies(subject, size):
    arrays = subject.draw(size)
    masks = [np.ones(x.shape[:2], "bool") for x in arrays]
    masks[-1][0, 1:] = False
    # What is at padded positions is not compared.
    tokens = masks[0].copy()
    expected = subject.output(arrays, masks)[tokens]
    for dtype in ("bfloat16", "float16"):
        policy = f"mixed_{dtype}"
        layer = copy_of(subject.layer, dtype=policy)
        subject.call(arrays, masks, layer)
        weights = subject.layer.get_weights()
        layer.set_weights(weights)
        output = first(subject.call(arrays, masks, layer))
        require(
            dtype_of(output) == dtype,
            f"under the policy {policy} the output must have the dtype "
            f"{dtype}, not {dtype_of(output)}",
        )
        wrong = {dtype_of(v) for v in layer.trainable_weights} - {"float32"}
        require(
            not wrong,
            f"under the policy {policy} the weights must have the dtype "
            f"float32, not {', '.join(wrong)}",
        )
        compare(
            values(output)[tokens],
            expected,
            HALF_PRECISION,
            f"under the policy {policy} the output must be that of float32, "
            "up to rounding",
        )
        masks[-1][0] = False
        output = subject.output(arrays, masks, layer)
        require(
            np.isfinite(output).all(),
            f"under the policy {policy} the output for a fully masked "
            "sequence must be finite",
        )
        masks[-1][0, 0] = True


def _serialization(subject, size):
    arrays = subject.draw(size)
    expected = subject.output(arrays)
    layer = subject.layer
    with custom_objects(layer):
        serialized = keras.saving.serialize_keras_object(layer)
        serialized = json.loads(json.dumps(serialized))
        restored = keras.saving.deserialize_keras_object(serialized)
        subject.call(arrays, layer=restored)
        restored.set_weights(layer.get_weights())
        compare(
            subject.output(arrays, layer=restored),
            expected,
            subject.tolerance,
            "a layer made from the config, with the same weights, must give "
            "the same output",
        )
        inputs = [keras.Input(x.shape[1:], dtype="float32") for x in arrays]
        model = keras.Model(inputs, first(subject.call(inputs)))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.keras")
            model.save(path)
            loaded = keras.saving.load_model(path)
    output = loaded([ops.convert_to_tensor(x) for x in arrays])
    compare(
        values(first(output)),
        expected,
        subject.tolerance,
        "a model loaded from a .keras file must give the same output",
    )


def _symbolic_shapes(subject, size):
    arrays = subject.draw(size)
    options = [{}]
    if takes(subject.layer, "return_attention_scores"):
        options.append({"return_attention_scores": True})
    for arguments in options:
        real = tree.flatten(subject.call(arrays, **arguments))
        for lengths in ("known", "unknown"):
            inputs = [
                keras.Input(
                    (x.shape[1] if lengths == "known" else None, x.shape[2])
                )
                for x in arrays
            ]
            symbolic = tree.flatten(subject.call(inputs, **arguments))
            compare_specs(symbolic, real, f"for inputs of {lengths} length")


def compare_specs(
    symbolic: Sequence[TensorLike], real: Sequence[TensorLike], when: str
) -> None:
    """Compares symbolic outputs with real ones.

    Args:
        symbolic: list of `KerasTensor`.
        real: list of tensors.
        when: str, for the message.
    """
    require(
        len(symbolic) == len(real),
        f"{when}, a symbolic call must have as many outputs as a real one: "
        f"{len(symbolic)} instead of {len(real)}",
    )
    for promised, output in zip(symbolic, real, strict=True):
        shape = tuple(output.shape)
        fits = len(promised.shape) == len(shape) and all(
            a in (None, b) for a, b in zip(promised.shape, shape, strict=True)
        )
        require(
            fits,
            f"{when}, the symbolic shape must be that of the real output: "
            f"{promised.shape} instead of {shape}",
        )
        require(
            promised.shape[-1:] == shape[-1:] or "unknown" in when,
            f"{when}, the symbolic width must be known",
        )
        require(
            dtype_of(promised) == dtype_of(output),
            f"{when}, the symbolic dtype must be that of the real output: "
            f"{dtype_of(promised)} instead of {dtype_of(output)}",
        )


def _zero_length_axes(subject, size):
    """One axis at a time has length 0."""
    width = subject.output(subject.draw(size)).shape[-1]
    for axis in range(len(size)):
        empty = tuple(0 if i == axis else n for i, n in enumerate(size))
        output = subject.output(subject.draw(empty))
        expected = (*empty[:2], width)
        name = ("batch", *subject.names)[axis]
        require(
            output.shape == expected,
            f"for {'an empty' if not axis else 'no positions in'} "
            f"`{name}` the output must have the shape {expected}, not "
            f"{output.shape}",
        )
        require(
            np.isfinite(output).all(),
            f"for no positions in `{name}` the output must be finite",
        )


def _host_reads(subject, size):
    for masks in (None, [np.ones((size[0], n), "bool") for n in size[1:]]):
        tensors = subject.tensors(subject.draw(size), masks)
        subject.apply(subject.layer, tensors)
        with list_host_reads() as found:
            subject.apply(subject.layer, tensors)
        require_no_reads(found)


def require_no_reads(found: Any) -> None:
    """Raises `Mismatch` if tensors were read on the host."""
    require(
        not found,
        "a call must not read values of tensors on the host, which waits for "
        f"an accelerator: {'; '.join(dict.fromkeys(found[:3]))}",
    )


def _implicit_masks(subject, size):
    arrays = subject.draw(size)
    masks = [np.ones(x.shape[:2], "bool") for x in arrays]
    masks[0][0, -1] = False
    tensors = subject.tensors(arrays, masks)
    given = [implicit_mask(x) for x in tensors]
    output = first(subject.apply(subject.layer, tensors))
    for name, x, mask in zip(subject.names, tensors, given, strict=True):
        require(
            implicit_mask(x) is mask,
            f"a call must not change the implicit mask of `{name}`",
        )
    passed = implicit_mask(output)
    require(
        passed is not None
        and np.array_equal(ops.convert_to_numpy(passed), masks[0]),
        f"the output must have the implicit mask of `{subject.names[0]}`",
    )


def _lacks_decode(subject):
    return "" if subject.decode else "an argument `decode`"


def _lacks_causality(subject):
    return "" if subject.causal else "`causal=True`"


def _lacks_causal_decode(subject):
    return _lacks_causality(subject) or _lacks_decode(subject)


COMMON = {
    "batch_invariance": Check(_batch_invariance, least_too=False),
    "serialization": Check(_serialization, least_too=False),
    "padding_invariance": Check(_padding_invariance),
    "causality": Check(_causality, needs=_lacks_causality),
    "cached_decoding": Check(
        _cached_decoding, least_too=False, needs=_lacks_causal_decode
    ),
    "dtype_policies": Check(_dtype_policies, least_too=False),
    "symbolic_shapes": Check(_symbolic_shapes),
    "zero_length_axes": Check(_zero_length_axes, least_too=False),
    "host_reads": Check(_host_reads, least_too=False),
    "implicit_masks": Check(_implicit_masks, least_too=False),
}
