"""doctor: finds where padding leaks into a Keras model."""

import warnings

import keras
import numpy as np
from keras import tree

from keras_attn.backend import random_state, set_random_state
from keras_attn.explain.layer_watch import Watcher, watched
from keras_attn.explain.leak_detector import Judge, PadNoise, Recorder, Scale
from keras_attn.explain.padded_batch import PaddedBatch
from keras_attn.explain.report import Leak, Probe, Report

# What rounding does to a share of the largest value, and a good deal more.
_TOLERANCES = {"float16": 1e-2, "bfloat16": 5e-2}
_TOLERANCE = 1e-4
# Positions by which sequences are lengthened.
_MORE = 3


def doctor(model, inputs, mask=None, pad_id=0, tolerance=None):
    """Finds where padding leaks into a Keras model, ours or any other.

    A sentence must mean the same whatever pads it, however long the padding is
    and whoever else is in the batch. Each of these is changed in turn, and the
    outputs of the model, and of every layer on the way, are compared with what
    they were, at real positions only. A layer is to blame where it moves while
    what it is called with stands still: what an earlier layer let in is put
    right before the next one sees it, so each answers for itself.

    The model is called eagerly, without training; its weights, seeds and all
    other variables are as before afterwards. Every change costs two calls, and
    there is one for each row: a few short rows will do. Freshly made weights
    show a leak as trained ones do, unless they are zeros.

    Args:
        model: `keras.Model`, or a layer: functional, sequential or subclassed.
        inputs: what it is called with, in arrays or tensors: integer ids
            (B, T), float features (B, T, ...), or a dict, list or tuple of
            such. Some row must be padded.
        mask: bool (B, T), True where there is a token, or a nest of such like
            `inputs`; given to the model as implicit Keras masks. Default None:
            read from the tensors, from boolean inputs and those whose names
            end in "mask", and, where there is none, from `pad_id`.
        pad_id: int. The id that is no token. Default 0.
        tolerance: float. How far a real position may move, as a share of the
            largest value. Default 1e-4 in float32, 1e-2 in float16, 5e-2 in
            bfloat16.

    Returns:
        `keras_attn.explain.Report`: true where no leak was found. Its `leaks`
        are the names of the layers, and `print` shows it as a table.

    Raises:
        ValueError: `model` is no Keras model or layer, or gives another answer
            each time; `inputs` are no arrays, or nothing in them is padding.

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
            # The first call may build the model.
            self._run(self.batch, Watcher())
            before.restore()
            self.state = _State(self.model)
            recorder = Recorder()
            self._run(self.batch, recorder)
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
            # The report says what comes of it.
            warnings.filterwarnings(
                "ignore", "Layer .* was passed an input with a mask"
            )
            outputs = self.model(batch.tensors(), training=False)
        return tree.flatten(outputs)

    def _again(self, batch, watcher):
        """Runs the model from the state in which it was first run."""
        self.state.restore()
        return self._run(batch, watcher)

    def _attempt(self, change, batch, watcher):
        """Returns the outputs, or None where the model refuses the batch."""
        try:
            return self._again(batch, watcher)
        # A model may refuse a batch that is longer, or of a single row, with
        # any error there is; the report says which.
        except Exception as error:
            said = (str(error).strip() or "no reason given").splitlines()[0]
            self.refused.append(f"{change}: {type(error).__name__}: {said}")
            return None

    def _moved(self, outputs, rows=slice(None)):
        """How far real positions of the model's outputs are from the first.

        Returns:
            The largest difference, and whether one is past its tolerance.
        """
        worst, past = 0.0, False
        for number, output in enumerate(outputs):
            array = keras.ops.convert_to_numpy(
                keras.ops.cast(output, "float32")
            )
            key, place = (id(self.model), 0), ("outputs", number)
            moved, known = self.scale.moved(key, place, array, rows)
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
                "`model` must give the same answer to the same inputs when it "
                "is not in training. Received: a model whose output moved by "
                f"{moved:.2g} of its largest value"
            )

    def _learn_axes(self):
        """Lengthens each sequence; returns the batches that were taken."""
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
            # Many layers, each of them by less than is held against it.
            order = len(self.scale.calls)
            judge.leaks.append(
                Leak(self.model.name, "all layers together", moved, order)
            )
        return Probe(change, moved, tuple(judge.leaks))


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
        """Puts back what has changed."""
        for variable, before in self._variables:
            now = keras.ops.convert_to_numpy(variable)
            if not np.array_equal(
                now, before, equal_nan=before.dtype.kind == "f"
            ):
                variable.assign(before)
        set_random_state(self._random)
