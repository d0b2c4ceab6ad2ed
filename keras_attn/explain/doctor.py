"""doctor: finds where padding leaks into a Keras model."""

import warnings

import keras
import numpy as np
from keras import tree

from keras_attn import checks
from keras_attn.backend import random_state, set_random_state
from keras_attn.explain.arguments import real_number
from keras_attn.explain.layer_watch import Watcher, watched
from keras_attn.explain.leak_detector import Judge, PadNoise, Recorder, Scale
from keras_attn.explain.padded_batch import PaddedBatch
from keras_attn.explain.report import Leak, Probe, Report
from keras_attn.typing import Nest

# Relative to the largest value; well above rounding errors.
_TOLERANCES = {"float16": 1e-2, "bfloat16": 5e-2}
_TOLERANCE = 1e-4
# Number of padded positions that are appended to sequences.
_MORE = 3


def doctor(
    model: keras.Model,
    inputs: Nest,
    mask: Nest | None = None,
    pad_id: int = 0,
    tolerance: float | None = None,
) -> Report:
    """Finds where padding leaks into a Keras model.

    The outputs at real positions must not depend on the padded contents, the
    length of the padding or the other rows of the batch. `doctor` changes each
    of these separately and compares the outputs of the model and of every layer
    at real positions. A layer is reported if its outputs change although its
    inputs do not: changes from earlier layers are undone before the next layer
    is called, so each layer is tested separately.

    The model is called eagerly, with `training=False`; its weights, seeds and
    all other variables are restored. Every change takes two calls, and there is
    one change per row, so use a few short rows. Untrained weights show leaks
    as well as trained ones, unless they are zeros.

    Args:
        model: `keras.Model` or a layer: functional, sequential or subclassed.
        inputs: inputs of the model, arrays or tensors: integer ids (B, T),
            float features (B, T, ...), or a dict, list or tuple of these. At
            least one row must be padded.
        mask: bool (B, T), True where there is a token, or a nest of these with
            the structure of `inputs`; passed to the model as implicit Keras
            masks. Default None: taken from the tensors, from boolean inputs and
            those whose names end in "mask", and otherwise from `pad_id`.
        pad_id: int. The padding id. Default 0.
        tolerance: float in [0, 1). Largest accepted change at a real position,
            relative to the largest value. Default 1e-4 in float32, 1e-2 in
            float16, 5e-2 in bfloat16.

    Returns:
        `keras_attn.explain.Report`: true if no leak was found. `leaks` are the
        names of the layers, and `print` shows a table.

    Raises:
        ValueError: `model` is not a Keras model or layer, is not deterministic
            or returns nothing but NaN; `inputs` are not arrays or have no
            padding; or `tolerance` is out of range.

    Examples:
        >>> ids = keras.Input((None,), dtype="int32")
        >>> x = keras.layers.Embedding(9, 8, mask_zero=True)(ids)
        >>> pooled = keras.ops.mean(x, axis=1)  # of padding too
        >>> model = keras.Model(ids, keras.layers.Dense(2)(pooled), name="mean")
        >>> report = keras_attn.doctor(model, np.array([[3, 4, 5], [6, 0, 0]]))
        >>> bool(report), report.leaks
        (False, ['mean'])
        >>> pooled = keras.layers.GlobalAveragePooling1D()(x)
        >>> model = keras.Model(ids, keras.layers.Dense(2)(pooled))
        >>> print(keras_attn.doctor(model, np.array([[3, 4, 5], [6, 0, 0]])))
        No leak: no real position moved by more than 0.01 %.
        <BLANKLINE>
        changed                          output moved  first leaking layer
        inputs: 3 more padded positions     < 0.01 %  -
        inputs: other padded contents       < 0.01 %  -
        batch: each row by itself           < 0.01 %  -
    """
    if not isinstance(model, keras.layers.Layer):
        raise ValueError(
            "`model` must be a Keras model or layer. Received: "
            f"{type(model).__name__}"
        )
    if isinstance(pad_id, bool) or not isinstance(pad_id, (int, np.integer)):
        raise ValueError(
            "`pad_id` must be an integer. "
            f"Received: pad_id={checks.shown(pad_id)}"
        )
    if tolerance is not None:
        real_number("tolerance", tolerance)
        if not 0 <= tolerance < 1:
            raise ValueError(
                "`tolerance` must lie in [0, 1). "
                f"Received: tolerance={checks.shown(tolerance)}"
            )
    batch = PaddedBatch(inputs, mask, pad_id)
    return _Examination(model, batch, tolerance).report()


class _Examination:
    """The probes of one model on one batch."""

    def __init__(self, model, batch, tolerance):
        self.model = model
        self.batch = batch
        self.given = tolerance
        self.refused = []
        self.random = np.random.default_rng(0)

    def report(self):
        before = _State(self.model)
        try:
            # This call may build the model.
            self._run(self.batch, Watcher())
            before.restore()
            self.state = _State(self.model)
            recorder = Recorder()
            _check_numbers(self._run(self.batch, recorder))
            self.scale = Scale(self.batch, recorder.calls, recorder.counts())
            self._check_repeats()
            longer = self._learn_axes()
            probes = [
                *self._lengths(longer),
                *self._contents(),
                *self._rows(),
            ]
            probes = [probe for probe in probes if probe is not None]
        finally:
            before.restore()
        if not probes:
            raise ValueError(
                "`model` must take one of the changed batches, or there is "
                f"nothing to compare. Received: {'; '.join(self.refused)}"
            )
        return Report(probes, self.refused, self._tolerance("float32"))

    def _tolerance(self, dtype):
        if self.given is not None:
            return self.given
        name = keras.backend.standardize_dtype(dtype)
        if "float" not in name:
            return 0.0
        return max(
            _TOLERANCE,
            _TOLERANCES.get(name, 0),
            _TOLERANCES.get(self.model.compute_dtype, 0),
        )

    def _run(self, batch, watcher):
        """Returns the outputs of the model; a list of tensors."""
        with watched(watcher), warnings.catch_warnings():
            # The report covers lost masks. (The text as of Keras 3.15.1.)
            warnings.filterwarnings(
                "ignore", "Layer .* was passed an input with a mask"
            )
            outputs = self.model(batch.tensors(), training=False)
        return tree.flatten(outputs)

    def _again(self, batch, watcher):
        """Runs the model from the state of the first run."""
        self.state.restore()
        return self._run(batch, watcher)

    def _attempt(self, change, batch, watcher):
        """Returns the outputs, or None if the model rejects the batch."""
        try:
            return self._again(batch, watcher)
        # A model may reject a longer or a single-row batch with any error; the
        # report lists it.
        except Exception as error:
            said = (str(error).strip() or "no reason given").splitlines()[0]
            self.refused.append(f"{change}: {type(error).__name__}: {said}")
            return None

    def _moved(self, outputs, rows=slice(None)):
        """Compares the model's outputs at real positions with the first run.

        Returns:
            The largest difference, and whether any exceeds its tolerance.
        """
        worst, past = 0.0, False
        for number, output in enumerate(outputs):
            array = keras.ops.convert_to_numpy(
                keras.ops.cast(output, "float32")
            )
            key, slot = (id(self.model), 0), ("outputs", number)
            moved, known = self.scale.moved(key, slot, array, rows)
            worst = max(worst, moved)
            past |= moved > self._tolerance(output.dtype)
            note = f"output {number} of the model: it has no real positions"
            if known is None and note not in self.refused:
                self.refused.append(note)
        return worst, past

    def _check_repeats(self):
        moved, past = self._moved(self._again(self.batch, Watcher()))
        if past:
            raise ValueError(
                "`model` must return the same outputs for the same inputs with "
                "training=False. Received: a model whose output changed by "
                f"{moved:.2g} of its largest value"
            )

    def _learn_axes(self):
        """Lengthens each sequence; returns the batches the model accepted."""
        longer = []
        for number, sequences in enumerate(self.batch.sequences):
            change = f"{sequences.name}: {_MORE} more padded positions"
            batch = self.batch.lengthened(sequences, _MORE)
            recorder = Recorder()
            if self._attempt(change, batch, recorder) is None:
                continue
            self.scale.learn(number, _MORE, recorder.calls, recorder.counts())
            longer.append((change, batch))
        return longer

    def _lengths(self, longer):
        for change, batch in longer:
            yield self._probe(change, batch)

    def _contents(self):
        for sequences in self.batch.sequences:
            change = f"{sequences.name}: other padded contents"
            if sequences.real.all():
                continue
            if sequences.contents:
                batch = self.batch.other_contents(sequences, self.random)
                yield self._probe(change, batch)
                continue
            seed = int(self.random.integers(2**31))

            def noise(watcher, sequences=sequences, seed=seed):
                return PadNoise(
                    watcher,
                    [self.batch.leaves[i].array for i in sequences.ids],
                    sequences.real,
                    np.random.default_rng(seed),
                )

            trial = noise(Watcher())
            self._again(self.batch, trial)
            if not trial.done:
                self.refused.append(
                    f"{change}: no layer makes features (B, T, ...) of these "
                    "ids"
                )
                continue
            yield self._probe(change, self.batch, noise)

    def _rows(self):
        if self.batch.rows == 1:
            self.refused.append("batch: each row by itself: there is one only")
            return
        change = "batch: each row by itself"
        probes = []
        for row in np.flatnonzero(self.batch.whole):
            rows = slice(row, row + 1)
            probe = self._probe(change, self.batch.row(row), rows=rows)
            if probe is not None:
                probes.append(probe)
        if not probes:
            return
        leaks = [leak for probe in probes for leak in probe.leaks]
        leaks.sort(key=lambda leak: leak.order)
        moved = max((probe.max_change for probe in probes), default=0.0)
        yield Probe(change, moved, tuple(leaks))

    def _probe(
        self, change, batch, wrap=lambda watcher: watcher, rows=slice(None)
    ):
        outputs = self._attempt(change, batch, wrap(Watcher()))
        if outputs is None:
            return None
        judge = Judge(self.scale, self._tolerance, rows)
        self._again(batch, wrap(judge))
        moved, past = self._moved(outputs, rows)
        if past and not judge.leaks:
            # Many layers, each of them below its tolerance.
            order = len(self.scale.calls)
            judge.leaks.append(
                Leak(self.model.name, "all layers together", moved, order)
            )
        return Probe(change, moved, tuple(judge.leaks))


def _check_numbers(outputs):
    """Raises ValueError if an output is NaN everywhere: all NaN are equal."""
    for number, output in enumerate(outputs):
        array = keras.ops.convert_to_numpy(keras.ops.cast(output, "float32"))
        if array.size and np.isnan(array).all():
            raise ValueError(
                "`model` must return numbers, or there is nothing to compare. "
                f"Received: output {number} is NaN everywhere"
            )


class _State:
    """The variables of a model, and the random state of the process."""

    def __init__(self, model):
        self._variables = [
            (v, np.array(keras.ops.convert_to_numpy(v)))
            for v in model.variables
            if v.dtype != "string"
        ]
        self._random = random_state()

    def restore(self):
        """Restores variables that have changed."""
        for variable, before in self._variables:
            now = keras.ops.convert_to_numpy(variable)
            if not np.array_equal(
                now, before, equal_nan=before.dtype.kind == "f"
            ):
                variable.assign(before)
        set_random_state(self._random)
