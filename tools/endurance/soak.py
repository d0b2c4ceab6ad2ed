"""Generates, trains and predicts with random sizes, for half an hour.

Memory that grows with every call, or a program that is compiled for every new
size, shows up after minutes only. And an answer that depends on the calls
before it, on a cache or on padding, shows up if every answer is compared with
one that was computed in another way.
"""

import collections
import gc
import itertools
import pathlib
import sys
import time

import keras
import numpy as np
from keras import ops

from keras_attn.models import GPT, Transformer
from keras_attn.training import SequenceCrossentropy

VOCABULARY, LONGEST = 40, 24
ROWS, LENGTHS, NEW_TOKENS = (1, 3, 8), (4, 9, 16, 24), (4, 8, 16)
# Most tokens of the longest text to be continued or translated.
LONGEST_TEXTS = 4, 8, 16, LONGEST
# Rows of the data from which batches are drawn, in four equal parts: texts that
# are longer than one of `LONGEST_TEXTS` and not longer than the next.
POOL = 32
SIZES = {
    "num_layers": 2,
    "num_heads": 2,
    "hidden_dim": 32,
    "intermediate_dim": 64,
    "dropout": 0.0,
    "attention_dropout": 0.0,
}
# Of the minutes: the shortest time until all sizes have occurred, and the
# longest, after which no program may be new.
WARMUP, LONGEST_WARMUP = 0.25, 0.5
# In MB per minute.
MOST_GROWTH = 1.0
# Seconds between two looks at the memory.
EVERY = 5.0


class Soak:
    """Calls models with random sizes and checks every answer.

    Args:
        seed: int. Seed of weights, data and calls.

    Attributes:
        calls: `collections.Counter` of the calls by kind.
    """

    def __init__(self, seed):
        keras.utils.set_random_seed(seed)
        self.calls = collections.Counter()
        self._random = random = np.random.default_rng(seed)
        positions = {"max_sequence_length": LONGEST + max(NEW_TOKENS)}
        self._gpt = GPT(VOCABULARY, end_id=None, **SIZES, **positions)
        self._student = GPT(VOCABULARY, end_id=None, **SIZES, **positions)
        self._translator = Transformer(VOCABULARY, **SIZES)
        self._student.compile(
            keras.optimizers.Adam(1e-3), SequenceCrossentropy()
        )
        shape = POOL, LONGEST
        # Without the ids of padding, start and end.
        self._tokens, self._source = random.integers(3, VOCABULARY, (2, *shape))
        ends = np.repeat(LONGEST_TEXTS, POOL // 4)
        starts = np.repeat((0, *LONGEST_TEXTS[:-1]), POOL // 4)
        self._lengths = random.integers(starts + 1, ends + 1)
        self._source[np.arange(LONGEST) >= self._lengths[:, None]] = 0
        self._expected = {
            "continue": continuations(
                lambda ids: self._gpt(ids),
                self._tokens,
                self._lengths,
                never=[self._gpt.pad_id, self._gpt.start_id],
            ),
            "translate": continuations(
                lambda ids: self._translator((self._source, ids)),
                np.full((POOL, 1), self._translator.start_id),
                np.ones(POOL, "int64"),
                never=[self._translator.pad_id, self._translator.start_id],
                end_id=self._translator.end_id,
            ),
            "predict": to_numpy(self._gpt(self._tokens)),
        }
        texts = list(itertools.product(ROWS, LONGEST_TEXTS, NEW_TOKENS))
        batches = list(itertools.product(ROWS, LENGTHS))
        self._kinds = (
            *((kind, texts) for kind in (self._continue, self._translate)),
            *((kind, batches) for kind in (self._predict, self._fit)),
        )
        every = [(kind, size) for kind, sizes in self._kinds for size in sizes]
        self._first = [every[i] for i in random.permutation(len(every))]

    def call(self):
        """Makes a call, one of each kind and size first, then random ones.

        Programs are thus compiled before the calls whose memory counts.

        Raises:
            AssertionError: the answer is not the expected one.
        """
        if self._first:
            kind, size = self._first.pop()
        else:
            kind, sizes = self._kinds[self._random.integers(len(self._kinds))]
            size = sizes[self._random.integers(len(sizes))]
        kind(*size)
        self.calls[kind.__name__[1:]] += 1

    def _texts(self, count, longest):
        """Draws rows of texts, the longest of which has such a length."""
        some = np.nonzero(self._lengths <= longest)[0]
        # The last quarter of them is longer than the next smaller length.
        first = self._random.choice(some[-POOL // 4 :])
        others = self._random.permutation(some[some != first])
        return np.append(first, others[: count - 1])

    def _continue(self, rows, longest, count):
        rows = self._texts(rows, longest)
        prompts = [self._tokens[row, : self._lengths[row]] for row in rows]
        found = self._gpt.generate([p.tolist() for p in prompts], count)
        expected = self._expected["continue"][rows, :count]
        np.testing.assert_array_equal(found.tokens[:, 0], expected)

    def _translate(self, rows, longest, count):
        rows = self._texts(rows, longest)
        sources = [self._source[row, : self._lengths[row]] for row in rows]
        found = self._translator.generate([s.tolist() for s in sources], count)
        expected = self._expected["translate"][rows, :count]
        np.testing.assert_array_equal(found.tokens[:, 0], expected)

    def _drawn(self, count):
        return self._random.permutation(POOL)[:count]

    def _predict(self, rows, length):
        rows = self._drawn(rows)
        found = self._gpt.predict(
            self._tokens[rows, :length], batch_size=len(rows), verbose=0
        )
        expected = self._expected["predict"][rows, :length]
        np.testing.assert_allclose(found, expected, atol=1e-4)

    def _fit(self, rows, length):
        """Compares the loss of a step with that of the model's logits."""
        rows = self._drawn(rows)
        ids = self._tokens[rows, :length]
        labels = np.roll(self._tokens, -1, axis=1)[rows, :length]
        logits = self._student.predict(ids, batch_size=len(rows), verbose=0)
        history = self._student.fit(
            ids, labels, batch_size=len(rows), verbose=0
        )
        (loss,) = history.history["loss"]
        # A small loss is the difference of large numbers.
        np.testing.assert_allclose(
            loss, cross_entropy(logits, labels), rtol=1e-4, atol=1e-5
        )


def to_numpy(x):
    """Converts a tensor of any backend, or an array."""
    return ops.convert_to_numpy(ops.stop_gradient(ops.convert_to_tensor(x)))


def cross_entropy(logits, labels):
    """Mean of -log softmax(logits)[label], in float64."""
    logits = logits.astype("float64")
    logits -= logits.max(-1, keepdims=True)
    normalizer = np.log(np.exp(logits).sum(-1))
    picked = np.take_along_axis(logits, labels[..., None], -1)[..., 0]
    return (normalizer - picked).mean()


def continuations(model, tokens, lengths, never, end_id=None):
    """Greedy search without a cache: a whole pass over all tokens per step.

    Args:
        model: function from ids (B, T) to logits (B, T, V).
        tokens: int (B, T). The start of each row, of `lengths` tokens.
        lengths: int (B,).
        never: list of int. Ids that `generate` never chooses.
        end_id: int, or None: a continuation has no end.

    Returns:
        int (B, n): the next tokens, as many as any call generates; 0 after the
        end.
    """
    rows = np.arange(len(tokens))
    ids = np.pad(tokens, ((0, 0), (0, max(NEW_TOKENS))), constant_values=1)
    # Later tokens do not change what comes before them.
    found = []
    for step in range(max(NEW_TOKENS)):
        logits = to_numpy(model(ids))[rows, lengths + step - 1].copy()
        logits[:, never] = -np.inf
        found.append(logits.argmax(-1))
        ids[rows, lengths + step] = found[-1]
    found = np.stack(found, 1)
    ended = np.cumsum(found == end_id, axis=1) - (found == end_id) > 0
    return np.where(ended, 0, found)


def resident_megabytes():
    """Returns the memory of this process that is in RAM. Only on Linux."""
    pages = pathlib.Path("/proc/self/statm").read_text("ascii").split()[1]
    return int(pages) * 4096 / 1e6


def programs():
    """Returns the number of compiled programs that are alive."""
    backend = keras.config.backend()
    if backend == "jax":
        import jax

        return len(jax.local_devices()[0].client.live_executables())
    if backend == "tensorflow":
        import tensorflow as tf

        kind = tf.types.experimental.ConcreteFunction
    else:
        import torch

        kind = torch.fx.GraphModule
    return sum(issubclass(type(x), kind) for x in gc.get_objects())


def soak(minutes, seed):
    """Runs the test and prints its progress every minute.

    Args:
        minutes: float.
        seed: int.

    Returns:
        Dict of plain values: `minutes`, `calls` by kind, and `samples`, a list
        of (minutes since the start, megabytes, programs).

    Raises:
        AssertionError: an answer was not the expected one.
    """
    run, start = Soak(seed), time.monotonic()
    samples, told = [], 0
    while (passed := time.monotonic() - start) < 60 * minutes:
        run.call()
        if not samples or passed >= 60 * samples[-1][0] + EVERY:
            # Keras's `predict` leaves cycles of objects on TensorFlow (as of
            # Keras 3.15.1), which are no growth.
            gc.collect()
            samples.append((passed / 60, resident_megabytes(), programs()))
        if passed >= 60 * told:
            told += 1
            print(
                "minute {:.0f}: {:.0f} MB, {} programs, ".format(*samples[-1])
                + f"{run.calls.total()} calls",
                file=sys.stderr,
                flush=True,
            )
    return {
        "minutes": minutes,
        "calls": dict(sorted(run.calls.items())),
        "samples": [(round(t, 2), round(mb, 1), n) for t, mb, n in samples],
    }


def after_warmup(report):
    """Returns the samples from the end of the warmup on.

    A size that is rarely drawn may come late, and a program takes memory: the
    warmup ends with the last program of the first half, but not before a
    quarter of the time.
    """
    minutes, samples = report["minutes"], report["samples"]
    early = [one for one in samples if one[0] <= LONGEST_WARMUP * minutes]
    most = max(count for *_, count in early)
    compiled = next(time for time, _, count in early if count == most)
    start = max(WARMUP * minutes, compiled)
    return [sample for sample in samples if sample[0] >= start]


def growth(report):
    """Returns the slope of the memory after the warmup, in MB per minute."""
    minutes, megabytes, _ = zip(*after_warmup(report), strict=True)
    return float(np.polyfit(minutes, megabytes, 1)[0])


def problems(report):
    """Returns what is wrong with a report, a list of sentences."""
    found = []
    slope = growth(report)
    if slope >= MOST_GROWTH:
        found.append(
            f"memory must grow by less than {MOST_GROWTH} MB per minute after "
            f"the warmup, and grew by {slope:.2f}"
        )
    half = LONGEST_WARMUP * report["minutes"]
    before, after = (
        [n for time, _, n in report["samples"] if (time > half) is late]
        for late in (False, True)
    )
    if max(after) > max(before):
        found.append(
            f"programs must not become more after half of the time, and became "
            f"{max(after)} from {max(before)}"
        )
    return found
