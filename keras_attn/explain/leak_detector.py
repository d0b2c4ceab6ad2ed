"""Detection of layers whose outputs at real positions depend on padding."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
from keras import ops, tree

from keras_attn.backend import concrete
from keras_attn.explain.layer_watch import Watcher
from keras_attn.explain.padded_batch import noise_like
from keras_attn.explain.report import Leak
from keras_attn.typing import TensorLike

if TYPE_CHECKING:
    from keras_attn.explain.padded_batch import PaddedBatch


@dataclasses.dataclass
class Call:
    """The inputs and outputs of one layer call.

    Args:
        order: int. Its number among all calls.
        inputs: list of NumPy array or None (not numeric, or unknown).
        outputs: list of the same; None until the call returns.
        unmasked_since: tuple of str. Where the masks that this call is missing
            were last seen.
    """

    order: int
    inputs: list[Any]
    outputs: list[Any] | None = None
    unmasked_since: tuple[Any, ...] = ()


class Recorder(Watcher):
    """Records every call."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: dict[Any, Any] = {}
        # The source of the last mask of each shape (B, T).
        self._mask_sources = {}

    def entered(
        self, key: Any, layer: Any, args: Any, kwargs: dict[str, Any]
    ) -> tuple[Any, Any]:
        """Records the inputs."""
        leaves = tree.flatten((args, kwargs))
        if not self.stack:
            self._note_masks(leaves, "the inputs")
        call = Call(len(self.calls), [_array(x) for x in leaves])
        if not _is_given_a_mask(args, kwargs):
            call.unmasked_since = self._missing_mask_sources(leaves)
        self.calls[key] = call
        return args, kwargs

    def left(self, key: Any, layer: Any, outputs: Any) -> Any:
        """Records the outputs."""
        leaves = tree.flatten(outputs)
        self._note_masks(leaves, f"`{layer.name}`")
        self.calls[key].outputs = [_array(x) for x in leaves]
        return outputs

    def _note_masks(self, leaves, source):
        # Private: Keras does not export its `get_keras_mask`,
        # as of Keras 3.15.1.
        for leaf in leaves:
            mask = getattr(leaf, "_keras_mask", None)
            if mask is not None:
                self._mask_sources[tuple(mask.shape)] = source

    def _missing_mask_sources(self, leaves):
        """Returns the sources of the masks that features (B, T, ...) lack."""
        sources = [
            self._mask_sources.get(tuple(leaf.shape[:2]))
            for leaf in leaves
            if len(getattr(leaf, "shape", ())) > 2
            and getattr(leaf, "_keras_mask", None) is None
        ]
        return tuple(dict.fromkeys(filter(None, sources)))


class Scale:
    """Stores the real positions of each array of each call.

    Args:
        batch: `PaddedBatch`.
        calls: dict of `Call`, of that batch.
        counts: dict, the number of calls of each layer.
    """

    def __init__(
        self,
        batch: "PaddedBatch",
        calls: dict[Any, Any],
        counts: dict[Any, Any],
    ) -> None:
        self.batch = batch
        self.calls = calls
        self._counts = counts
        self._axes = {}
        self._per_step = set()
        self._unknown = list(range(len(batch.sequences)))

    def learn(
        self,
        sequence: int,
        more: int,
        calls: dict[Any, Any],
        counts: dict[Any, Any],
    ) -> None:
        """Finds the position axes: those that grew with a sequence.

        Args:
            sequence: int. Index of the lengthened sequence.
            more: int. Number of added positions.
            calls: dict of `Call`, of the lengthened batch.
            counts: dict, the number of calls of each layer.
        """
        first = len(self._unknown) == len(self.batch.sequences)
        self._unknown.remove(sequence)
        length = self.batch.sequences[sequence].length
        # A layer that is called once per position sees one position at a time.
        self._per_step |= {
            layer
            for layer, count in self._counts.items()
            if counts.get(layer) != count
        }
        for key, call in self.calls.items():
            if key in calls:
                # Lengthening one tells sequences of equal length apart.
                now = calls[key].unmasked_since
                call.unmasked_since = tuple(
                    source
                    for source in now
                    if first or source in call.unmasked_since
                )
            for slot, array, longer in _side_by_side(call, calls.get(key)):
                if array is None or longer is None:
                    continue
                if array.ndim != longer.ndim:
                    continue
                for axis, (size, now) in enumerate(
                    zip(array.shape, longer.shape, strict=True)
                ):
                    if size == now:
                        continue
                    fits = axis > 0 and (size, now) == (length, length + more)
                    axes = self._axes.setdefault((key, slot), {})
                    # Neither positions nor constant: not comparable.
                    axes[axis] = sequence if fits else None

    def moved(
        self,
        key: Any,
        slot: TensorLike,
        array: TensorLike,
        base_rows: slice = slice(None),
    ) -> tuple[Any, Any]:
        """Compares an array with that of the unchanged batch.

        Args:
            key: identifies the call.
            slot: ("inputs" or "outputs", number).
            array: NumPy array.
            base_rows: slice. The rows of the batch that the array is of.

        Returns:
            The largest difference at real positions, relative to the largest
            value there, and `array` with the real positions restored; (0, None)
            if the two cannot be compared.
        """
        base = getattr(self.calls[key], slot[0])[slot[1]]
        selected = self._selected(key, slot, base)
        if selected is None:
            return 0.0, None
        base, selected = base[base_rows], selected[base_rows]
        if array.ndim != base.ndim or any(
            now < size
            for now, size in zip(array.shape, base.shape, strict=True)
        ):
            return 0.0, None
        inner = tuple(slice(size) for size in base.shape)
        now, before = array[inner][selected], base[selected]
        if not now.size:
            return 0.0, None
        restored = array.copy()
        restored[inner] = np.where(selected, base, array[inner])
        return _distance(now, before), restored

    def _selected(self, key, slot, base):
        """Returns the real positions of an array, bool, or None."""
        if base is None or base.ndim == 0 or len(base) != self.batch.rows:
            return None
        if key[0] in self._per_step:
            return None
        axes = dict(self._axes.get((key, slot), {}))
        if None in axes.values():
            return None
        selected = np.broadcast_to(
            self.batch.whole.reshape(-1, *[1] * (base.ndim - 1)), base.shape
        )
        pairs = [*axes.items(), *self._axes_by_length(base, axes)]
        for axis, sequence in pairs:
            real = self.batch.sequences[sequence].real
            shape = [1] * base.ndim
            shape[0], shape[axis] = real.shape
            selected = selected & real.reshape(shape)
        return selected

    def _axes_by_length(self, base, known):
        """Yields axes by length alone, for sequences not lengthened."""
        for sequence in self._unknown:
            length = self.batch.sequences[sequence].length
            if 1 not in known and base.ndim > 1 and base.shape[1] == length:
                yield 1, sequence
            elif base.ndim == 4:
                # Attention weights, (B, N, T, S).
                for axis in (2, 3):
                    if axis not in known and base.shape[axis] == length:
                        yield axis, sequence


class Judge(Watcher):
    """Compares every call with that of the unchanged batch, and restores it.

    Real positions that have changed are restored before the next layer sees
    them, so that each layer is tested separately.

    Args:
        scale: `Scale`.
        tolerance: callable that takes a dtype and returns a float.
        rows: slice. The rows of the batch that are run.
    """

    def __init__(
        self,
        scale: Scale,
        tolerance: Callable[..., Any],
        rows: slice = slice(None),
    ) -> None:
        super().__init__()
        self.leaks: list[Any] = []
        self._scale = scale
        self._tolerance = tolerance
        self._rows = rows

    def entered(
        self, key: Any, layer: Any, args: Any, kwargs: dict[str, Any]
    ) -> Any:
        """Compares the inputs; a change is a leak in the calling layer."""
        if not self.stack:
            return args, kwargs
        return self._restored(
            key,
            "inputs",
            (args, kwargs),
            self.stack,
            f" (its own code, before {layer.name})",
        )

    def left(self, key: Any, layer: Any, outputs: Any) -> Any:
        """Compares the outputs; a change is a leak in this layer."""
        return self._restored(key, "outputs", outputs, [*self.stack, layer], "")

    def _restored(self, key, kind, nest, stack, detail):
        call = self._scale.calls.get(key)
        leaves = tree.flatten(nest)
        if call is None or len(leaves) != len(getattr(call, kind)):
            return nest
        worst = 0.0
        for number, leaf in enumerate(leaves):
            array = _array(leaf)
            if array is None:
                continue
            moved, restored = self._scale.moved(
                key, (kind, number), array, self._rows
            )
            if restored is None:
                continue
            if moved > self._tolerance(leaf.dtype):
                worst = max(worst, moved)
            if moved:
                leaves[number] = like(restored, leaf)
        if worst:
            names = [around.name for around in stack]
            where = "/".join(names[1:]) or names[0]
            since = "" if detail else ", ".join(call.unmasked_since)
            self.leaks.append(
                Leak(names[-1], where + detail, worst, call.order, since)
            )
        return tree.pack_sequence_as(nest, leaves)


class PadNoise(Watcher):
    """Replaces the embeddings of padding by noise, before another watcher.

    A padding id has no other contents to try, so the noise replaces the output
    of the first layer that turns ids into floats.

    Args:
        watcher: `Watcher` that sees the result.
        ids: list of int (B, T), inputs of the model.
        real: bool (B, T).
        random: `numpy.random.Generator`.
    """

    def __init__(
        self,
        watcher: Watcher,
        ids: Sequence[TensorLike],
        real: TensorLike,
        random: np.random.Generator,
    ) -> None:
        super().__init__()
        self.done: int = 0
        self._watcher = watcher
        self._ids = ids
        self._real = real
        self._random = random

    def call(
        self,
        layer: Any,
        function: Callable[..., Any],
        args: Any,
        kwargs: dict[str, Any],
    ) -> Any:
        """Calls a layer and adds noise to its output if it embeds the ids."""

        def changed(layer, *args, **kwargs):
            done = self.done
            outputs = function(layer, *args, **kwargs)
            # An inner layer has already done it.
            if self.done > done or not self._reads_ids(args, kwargs):
                return outputs
            return tree.map_structure(self._noisy, outputs)

        return self._watcher.call(layer, changed, args, kwargs)

    def _reads_ids(self, args, kwargs):
        for leaf in tree.flatten((args, kwargs)):
            array = _array(leaf)
            if array is not None and any(
                array.shape == ids.shape and (array == ids).all()
                for ids in self._ids
            ):
                return True
        return False

    def _noisy(self, tensor):
        array = _array(tensor)
        shape = self._real.shape
        if array is None or array.dtype.kind != "f" or array.ndim < 3:
            return tensor
        if array.shape[:2] != shape:
            return tensor
        array = np.array(array)
        hidden = ~self._real
        array[hidden] = noise_like(array, self._random)[hidden]
        self.done += 1
        return like(array, tensor)


def like(array: TensorLike, tensor: TensorLike) -> Any:
    """Converts a NumPy array to a tensor with another's dtype and mask."""
    new = ops.convert_to_tensor(array)
    new = ops.cast(new, tensor.dtype)
    mask = getattr(tensor, "_keras_mask", None)
    if mask is not None:
        new._keras_mask = mask
    return new


def _is_given_a_mask(args, kwargs):
    """Whether a call has a mask among its arguments, not on its tensors."""
    named = [x for name, x in kwargs.items() if name.endswith("mask")]
    return any(hasattr(x, "shape") for x in tree.flatten(named)) or any(
        keras.backend.standardize_dtype(x.dtype) == "bool"
        for x in tree.flatten(args)
        if hasattr(x, "dtype") and len(getattr(x, "shape", ())) > 1
    )


def _array(x):
    """Returns a numeric tensor as a NumPy array, else None."""
    if not hasattr(x, "dtype") or not hasattr(x, "shape"):
        return None
    array = x if isinstance(x, np.ndarray) else concrete(x, anywhere=True)
    if array is None or array.dtype == bool:
        return None
    # NumPy has no bfloat16.
    return array if array.dtype.kind in "iuf" else array.astype("float32")


def _side_by_side(call, other):
    """Yields (slot, array, array of the other call)."""
    if other is None:
        return
    for kind in ("inputs", "outputs"):
        ours, theirs = getattr(call, kind), getattr(other, kind)
        if len(ours or ()) == len(theirs or ()):
            for number, pair in enumerate(zip(ours, theirs, strict=True)):
                yield (kind, number), *pair


def _distance(now, before):
    """Returns the largest difference, relative to the largest value."""
    now, before = now.astype("float64"), before.astype("float64")
    finite = np.isfinite(before)
    largest = np.abs(before[finite]).max(initial=0.0) or 1.0
    same = (now == before) | (np.isnan(now) & np.isnan(before))
    if same.all():
        return 0.0
    if not (np.isfinite(now[~same]).all() and finite[~same].all()):
        return float("inf")
    return float(np.abs(now[~same] - before[~same]).max() / largest)
