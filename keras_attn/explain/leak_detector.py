"""Whether the real positions of layers stand still, call by call."""

import dataclasses

import keras
import numpy as np
from keras import ops, tree

from keras_attn.backend import concrete
from keras_attn.explain.layer_watch import Watcher
from keras_attn.explain.padded_batch import noise_like
from keras_attn.explain.report import Leak


@dataclasses.dataclass
class Call:
    """What went into one call of a layer, and what came out.

    Args:
        order: int. Its number among all calls.
        inputs: list of NumPy array or None (what is no number, or unknown).
        outputs: list, likewise; None until the call is over.
        unmasked_since: tuple of str. Where masks were last seen that this call
            was made without.
    """

    order: int
    inputs: list
    outputs: list | None = None
    unmasked_since: tuple = ()


class Recorder(Watcher):
    """Writes every call down."""

    def __init__(self):
        super().__init__()
        self.calls = {}
        # Who gave the last mask of each shape (B, T).
        self._givers = {}

    def entered(self, key, layer, args, kwargs):
        """Writes the inputs down."""
        leaves = tree.flatten((args, kwargs))
        if not self.stack:
            self._note_masks(leaves, "the inputs")
        call = Call(len(self.calls), [_array(x) for x in leaves])
        if not _is_given_a_mask(args, kwargs):
            call.unmasked_since = self._givers_of_missing(leaves)
        self.calls[key] = call
        return args, kwargs

    def left(self, key, layer, outputs):
        """Writes the outputs down."""
        leaves = tree.flatten(outputs)
        self._note_masks(leaves, f"`{layer.name}`")
        self.calls[key].outputs = [_array(x) for x in leaves]
        return outputs

    def _note_masks(self, leaves, giver):
        for leaf in leaves:
            mask = getattr(leaf, "_keras_mask", None)
            if mask is not None:
                self._givers[tuple(mask.shape)] = giver

    def _givers_of_missing(self, leaves):
        """Who gave the last masks for features (B, T, ...) without one."""
        givers = [
            self._givers.get(tuple(leaf.shape[:2]))
            for leaf in leaves
            if len(getattr(leaf, "shape", ())) > 2
            and getattr(leaf, "_keras_mask", None) is None
        ]
        return tuple(dict.fromkeys(filter(None, givers)))


class Scale:
    """Where the real positions of each array of each call are.

    Args:
        batch: `PaddedBatch`.
        calls: dict of `Call`, of that batch.
        counts: dict, how often each layer was called.
    """

    def __init__(self, batch, calls, counts):
        self.batch = batch
        self.calls = calls
        self._counts = counts
        self._axes = {}
        self._per_step = set()
        self._unknown = list(range(len(batch.sequences)))

    def learn(self, sequence, more, calls, counts):
        """Learns which axes count positions: those that grew with them.

        Args:
            sequence: int. Which of the batch's sequences was lengthened.
            more: int. By how many positions.
            calls: dict of `Call`, of the lengthened batch.
            counts: dict, how often each layer was called.
        """
        first = len(self._unknown) == len(self.batch.sequences)
        self._unknown.remove(sequence)
        length = self.batch.sequences[sequence].length
        # A layer that is called once a position sees one position at a time.
        self._per_step |= {
            layer
            for layer, count in self._counts.items()
            if counts.get(layer) != count
        }
        for key, call in self.calls.items():
            if key in calls:
                # Sequences of one length are told apart where one is longer.
                now = calls[key].unmasked_since
                call.unmasked_since = tuple(
                    giver
                    for giver in now
                    if first or giver in call.unmasked_since
                )
            for place, array, longer in _side_by_side(call, calls.get(key)):
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
                    axes = self._axes.setdefault((key, place), {})
                    # Neither positions nor anything that stays: not comparable.
                    axes[axis] = sequence if fits else None

    def moved(self, key, place, array, base_rows=slice(None)):
        """Returns how far an array is from that of the unchanged batch.

        Args:
            key: which call.
            place: ("inputs" or "outputs", number).
            array: NumPy array.
            base_rows: slice. The rows of the batch that the array is of.

        Returns:
            The largest difference at real positions, as a share of the largest
            value there, and `array` with the real positions as they should be;
            (0, None) where the two cannot be compared.
        """
        base = getattr(self.calls[key], place[0])[place[1]]
        selected = self._selected(key, place, base)
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
        healed = array.copy()
        healed[inner] = np.where(selected, base, array[inner])
        return _distance(now, before), healed

    def _selected(self, key, place, base):
        """The real positions of an array, bool in its shape, or None."""
        if base is None or base.ndim == 0 or len(base) != self.batch.rows:
            return None
        if key[0] in self._per_step:
            return None
        axes = dict(self._axes.get((key, place), {}))
        if None in axes.values():
            return None
        selected = np.broadcast_to(
            self.batch.whole.reshape(-1, *[1] * (base.ndim - 1)), base.shape
        )
        pairs = [*axes.items(), *self._guessed(base, axes)]
        for axis, sequence in pairs:
            real = self.batch.sequences[sequence].real
            shape = [1] * base.ndim
            shape[0], shape[axis] = real.shape
            selected = selected & real.reshape(shape)
        return selected

    def _guessed(self, base, known):
        """Axes by their length only, of sequences that cannot be lengthened."""
        for sequence in self._unknown:
            length = self.batch.sequences[sequence].length
            if 1 not in known and base.ndim > 1 and base.shape[1] == length:
                yield 1, sequence
            elif base.ndim == 4:
                # Weights of attention, (B, N, T, S).
                for axis in (2, 3):
                    if axis not in known and base.shape[axis] == length:
                        yield axis, sequence


class Judge(Watcher):
    """Compares every call with that of the unchanged batch, and heals it.

    Real positions that have moved are put back before the next layer sees
    them, so that each layer answers for itself only.

    Args:
        scale: `Scale`.
        tolerance: callable that takes a dtype and returns a float.
        rows: slice. The rows of the batch that are run.
    """

    def __init__(self, scale, tolerance, rows=slice(None)):
        super().__init__()
        self.leaks = []
        self._scale = scale
        self._tolerance = tolerance
        self._rows = rows

    def entered(self, key, layer, args, kwargs):
        """Whoever calls the layer answers for what it is called with."""
        if not self.stack:
            return args, kwargs
        return self._healed(
            key,
            "inputs",
            (args, kwargs),
            self.stack,
            f" (its own code, before {layer.name})",
        )

    def left(self, key, layer, outputs):
        """The layer answers for what it returns."""
        return self._healed(key, "outputs", outputs, [*self.stack, layer], "")

    def _healed(self, key, kind, nest, stack, detail):
        call = self._scale.calls.get(key)
        leaves = tree.flatten(nest)
        if call is None or len(leaves) != len(getattr(call, kind)):
            return nest
        worst = 0.0
        for number, leaf in enumerate(leaves):
            array = _array(leaf)
            if array is None:
                continue
            moved, healed = self._scale.moved(
                key, (kind, number), array, self._rows
            )
            if healed is None:
                continue
            if moved > self._tolerance(leaf.dtype):
                worst = max(worst, moved)
            if moved:
                leaves[number] = like(healed, leaf)
        if worst:
            names = [around.name for around in stack]
            where = "/".join(names[1:]) or names[0]
            since = "" if detail else ", ".join(call.unmasked_since)
            self.leaks.append(
                Leak(names[-1], where + detail, worst, call.order, since)
            )
        return tree.pack_sequence_as(nest, leaves)


class PadNoise(Watcher):
    """Puts noise where padding was embedded, in front of another watcher.

    Where padding is an id, it has no other contents; but what an id becomes
    has: the first layer that makes floats of it.

    Args:
        watcher: `Watcher` that sees what comes then.
        ids: list of int (B, T), as the model is given them.
        real: bool (B, T).
        random: `numpy.random.Generator`.
    """

    def __init__(self, watcher, ids, real, random):
        super().__init__()
        self.done = 0
        self._watcher = watcher
        self._ids = ids
        self._real = real
        self._random = random

    def call(self, layer, function, args, kwargs):
        """Calls a layer, and changes what it returns where it embeds."""

        def changed(layer, *args, **kwargs):
            done = self.done
            outputs = function(layer, *args, **kwargs)
            # An inner layer has done it.
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


def like(array, tensor):
    """Returns a tensor of a NumPy array, with the dtype and mask of another."""
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
    """The numbers of a tensor as NumPy array; None where there are none."""
    if not hasattr(x, "dtype") or not hasattr(x, "shape"):
        return None
    array = x if isinstance(x, np.ndarray) else concrete(x, anywhere=True)
    if array is None or array.dtype == bool:
        return None
    # NumPy has no bfloat16 of its own.
    return array if array.dtype.kind in "iuf" else array.astype("float32")


def _side_by_side(call, other):
    """Yields (place, array, array of the other call)."""
    if other is None:
        return
    for kind in ("inputs", "outputs"):
        ours, theirs = getattr(call, kind), getattr(other, kind)
        if len(ours or ()) == len(theirs or ()):
            for number, pair in enumerate(zip(ours, theirs, strict=True)):
                yield (kind, number), *pair


def _distance(now, before):
    """The largest difference, as a share of the largest value."""
    now, before = now.astype("float64"), before.astype("float64")
    finite = np.isfinite(before)
    largest = np.abs(before[finite]).max(initial=0.0) or 1.0
    same = (now == before) | (np.isnan(now) & np.isnan(before))
    if same.all():
        return 0.0
    if not (np.isfinite(now[~same]).all() and finite[~same].all()):
        return float("inf")
    return float(np.abs(now[~same] - before[~same]).max() / largest)
