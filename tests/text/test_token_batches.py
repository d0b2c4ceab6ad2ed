"""token_batches: every pair once, in few shapes, in a reproducible order."""

import itertools

import keras
import numpy as np
import pytest

from keras_attn.text import SubwordTokenizer, token_batches


class Digits:
    """A tokenizer with readable ids: digit d is id d + 3."""

    pad_id, start_id, end_id, vocabulary_size = 0, 1, 2, 13

    def encode(self, texts):
        return [[int(digit) + 3 for digit in text] for text in texts]


def texts(count=200, seed=0):
    random = np.random.default_rng(seed)
    lengths = random.integers(0, 15, (2, count))
    return [
        ["".join(map(str, random.integers(0, 10, n))) for n in side]
        for side in lengths
    ]


SOURCE, TARGET = texts()


def batches(dataset):
    """The batches of one epoch as NumPy arrays."""
    found = []
    for (source, target), labels in dataset:
        assert source.dtype == target.dtype == labels.dtype == np.int32
        found.append((source, target, labels))
    return found


def pairs(found):
    """Decodes the texts of batches."""
    read = []
    for source, target, labels in found:
        for x, y, z in zip(source, target, labels, strict=True):
            if not x.any():
                assert not y.any() and not z.any()
                continue
            n, m = (x > 0).sum(), (y > 0).sum()
            assert x[n - 1] == 2 and y[0] == 1 and z[m - 1] == 2
            assert (x[:n] > 0).all() and (y[:m] > 0).all()
            assert (z[:m] > 0).all() and not z[m:].any()
            np.testing.assert_array_equal(y[1:m], z[: m - 1])
            assert (x[: n - 1] > 2).all() and (y[1:m] > 2).all()
            read.append(
                (
                    "".join(str(i - 3) for i in x[: n - 1]),
                    "".join(str(i - 3) for i in y[1:m]),
                )
            )
    return read


def make(**options):
    options = {"tokens_per_batch": 64, "max_length": 16} | options
    return token_batches(SOURCE, TARGET, Digits(), **options)


@pytest.mark.parametrize("buckets", [1, 2, 3, 5])
@pytest.mark.parametrize("shuffle", [False, True])
def test_every_pair_occurs_once_in_at_most_buckets_shapes(buckets, shuffle):
    dataset = make(buckets=buckets, shuffle=shuffle)
    found = batches(dataset)
    assert sorted(pairs(found)) == sorted(zip(SOURCE, TARGET, strict=True))
    shapes = {(*x.shape, y.shape[1]) for x, y, _ in found}
    assert shapes == set(dataset.report.shapes)
    assert len(shapes) <= buckets
    for x, y, z in found:
        assert x.shape[0] == y.shape[0] and y.shape == z.shape
        assert x.shape[0] == max(64 // max(x.shape[1], y.shape[1]), 1)


@pytest.mark.parametrize("multiple", [2, 3, 8])
def test_rows_are_a_multiple(multiple):
    dataset = make(buckets=3, rows_multiple_of=multiple)
    found = batches(dataset)
    assert sorted(pairs(found)) == sorted(zip(SOURCE, TARGET, strict=True))
    assert {x.shape[0] % multiple for x, _, _ in found} == {0}
    for rows, source, target in dataset.report.shapes:
        fitting = 64 // max(source, target) // multiple * multiple
        assert rows == max(fitting, multiple)


def test_the_report_matches_the_batches():
    dataset = make()
    found, report = batches(dataset), dataset.report
    assert len(dataset) == report.batches == len(found)
    assert (report.pairs, report.dropped) == (len(SOURCE), 0)
    source = sum((x > 0).sum() for x, _, _ in found)
    target = sum((y > 0).sum() for _, y, _ in found)
    assert (report.source_tokens, report.target_tokens) == (source, target)
    ids = sum(x.size + y.size for x, y, _ in found)
    assert report.padding_fraction == pytest.approx(1 - (source + target) / ids)
    line = str(report)
    assert "200 pairs in" in line and "\n" not in line


def test_long_pairs_are_dropped_and_counted():
    dataset = make(max_length=8)
    kept = [
        (s, t)
        for s, t in zip(SOURCE, TARGET, strict=True)
        if max(len(s), len(t)) + 1 <= 8
    ]
    assert 0 < len(kept) < len(SOURCE)
    assert sorted(pairs(batches(dataset))) == sorted(kept)
    assert dataset.report.pairs == len(kept)
    assert dataset.report.dropped == len(SOURCE) - len(kept)
    assert f"({len(SOURCE) - len(kept)} too long" in str(dataset.report)
    assert all(max(shape[1:]) <= 8 for shape in dataset.report.shapes)


def test_a_small_token_budget_gives_batches_of_one():
    dataset = token_batches(["123456"], ["1"], Digits(), tokens_per_batch=2)
    ((source, target, labels),) = batches(dataset)
    assert source.tolist() == [[4, 5, 6, 7, 8, 9, 2]]
    assert target.tolist() == [[1, 4]] and labels.tolist() == [[4, 2]]
    assert dataset.report.padding_fraction == 0


def test_without_shuffle_pairs_stay_in_order():
    both = list(zip(SOURCE, TARGET, strict=True))
    assert pairs(batches(make(shuffle=False, buckets=1))) == both
    found = pairs(batches(make(shuffle=False)))
    shapes = [max(shape[1:]) for shape in make().report.shapes]
    bucket = [
        next(k for k, n in enumerate(shapes) if max(map(len, pair)) < n)
        for pair in both
    ]
    order = np.argsort(bucket, kind="stable")
    # The second batch is the first one of the longest bucket.
    long = [i for i in order if bucket[i] == len(shapes) - 1]
    rows, moved = make().report.shapes[0][0], make().report.shapes[-1][0]
    rest = [i for i in order if i not in long[:moved]]
    order = [*rest[:rows], *long[:moved], *rest[rows:]]
    assert found == [both[i] for i in order]


def flat(dataset):
    return [x.tolist() for batch in batches(dataset) for x in batch]


def test_each_epoch_has_its_own_reproducible_order():
    first, again = make(seed=7), make(seed=7)
    epochs = [flat(first) for _ in range(3)]
    assert epochs == [flat(again) for _ in range(3)]
    assert epochs[0] != epochs[1] != epochs[2] != epochs[0]
    # The pairs are shuffled too, not only the batches.
    assert sorted(map(str, epochs[0])) != sorted(map(str, epochs[1]))
    assert flat(make(seed=7, initial_epoch=2)) == epochs[2]
    assert flat(make(seed=8)) != epochs[0]


def test_the_order_is_the_same_in_another_process():
    # Recorded from another process.
    digits = [str(digit) for digit in range(8)]
    dataset = token_batches(
        digits, digits, Digits(), tokens_per_batch=4, seed=3, initial_epoch=5
    )
    found = ["".join(s for s, _ in pairs([b])) for b in batches(dataset)]
    assert found == ["40", "51", "26", "37"]


def test_batches_of_all_buckets_mix_when_shuffled():
    shapes = [batch[0].shape for batch in batches(make())]
    changes = sum(a != b for a, b in itertools.pairwise(shapes))
    assert changes > 2 * len(set(shapes))


def test_without_labels_for_predict():
    dataset = make(labels=False, shuffle=False, buckets=1)
    with_labels = batches(make(shuffle=False, buckets=1))
    for ((source, target),), (x, y, _) in zip(
        dataset, with_labels, strict=True
    ):
        np.testing.assert_array_equal(source, x)
        np.testing.assert_array_equal(target, y)
    model = tiny_model()
    rows = sum(len(x) for x, _, _ in with_labels)
    width = dataset.report.shapes[0][2]
    assert model.predict(dataset, verbose=0).shape == (rows, width, 13)


def test_a_pair_of_tokenizers():
    class Letters(Digits):
        start_id, end_id = 11, 12

        def encode(self, texts):
            return [[ord(letter) - 87 for letter in text] for text in texts]

    dataset = token_batches(
        ["12", "3"],
        ["abc", ""],
        (Digits(), Letters()),
        shuffle=False,
        tokens_per_batch=8,
        buckets=1,
    )
    ((source, target, labels),) = batches(dataset)
    assert source.tolist() == [[4, 5, 2], [6, 2, 0]]
    assert target.tolist() == [[11, 10, 11, 12], [11, 0, 0, 0]]
    assert labels.tolist() == [[10, 11, 12, 12], [12, 0, 0, 0]]


def test_with_a_real_tokenizer():
    source, target = ["¿Dónde está?", "Sí."], ["Where is it?", "Yes. 猫"]
    tokenizer = SubwordTokenizer.train_from_lines(source + target, 320)
    dataset = token_batches(
        source,
        target,
        tokenizer,
        buckets=1,
        shuffle=False,
        tokens_per_batch=64,
    )
    ((x, y, labels),) = batches(dataset)
    assert tokenizer.decode(x)[:2] == source
    assert tokenizer.decode(y)[:2] == tokenizer.decode(labels)[:2] == target


def tiny_model():
    source = keras.Input((None,), dtype="int32")
    target = keras.Input((None,), dtype="int32")
    embed = keras.layers.Embedding(13, 8)
    mean = keras.ops.mean(embed(source), axis=1, keepdims=True)
    logits = keras.layers.Dense(13)(embed(target) + mean)
    return keras.Model([source, target], logits)


def test_fit_reads_every_batch_in_few_shapes():
    dataset = make(max_length=8, buckets=3)
    shapes, steps = [], []

    class Spy(keras.layers.Layer):
        def call(self, x):
            shapes.append(tuple(x.shape))
            return x

    class Steps(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            steps.append(0)

        def on_train_batch_end(self, batch, logs=None):
            steps[-1] += 1

    base = tiny_model()
    model = keras.Model(base.inputs, Spy()(base.outputs[0]))
    model.compile(
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    )
    shapes.clear()
    history = model.fit(
        dataset, epochs=2, shuffle=False, verbose=0, callbacks=[Steps()]
    )
    assert steps == [len(dataset)] * 2
    # The progress bar knows the number of steps before the first epoch ends.
    assert history.params["steps"] == len(dataset)
    assert np.isfinite(history.history["loss"]).all()
    # `fit` read two epochs, on every backend: the next one is number 2.
    assert flat(dataset) == flat(make(max_length=8, initial_epoch=2))

    expected = {(n, t, 13) for n, _, t in dataset.report.shapes}
    if keras.backend.backend() == "tensorflow":
        # One trace for all lengths; XLA compiles it once per shape.
        expected = {(None, None, 13)}
    assert set(shapes) == expected
    if keras.backend.backend() != "torch":  # eager: calls the layer each time
        assert len(shapes) <= 2 * len(expected)


def test_a_partial_read_restarts_the_same_epoch():
    dataset = make()
    first = flat(make())
    for count in (1, 3, len(dataset) - 1):
        part = list(itertools.islice(dataset, count))
        assert [x[0][0].tolist() for x in part] == first[: 3 * count : 3]
    assert flat(dataset) == first
    assert flat(dataset) == flat(make(initial_epoch=1))


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: token_batches([], [], Digits()), "at least one"),
        (lambda: token_batches(["1"], [], Digits()), "1 sources, 0 targets"),
        (lambda: token_batches("12", ["1"], Digits()), "`source` must be"),
        (lambda: token_batches(["1"], "1", Digits()), "`target` must be"),
        (lambda: make(max_length=0), "max_length"),
        (lambda: make(buckets=0), "buckets"),
        (lambda: make(seed=-1), "`seed` must be an integer, at least 0"),
        (lambda: make(initial_epoch=0.5), "`initial_epoch` must be"),
        (lambda: make(tokens_per_batch=0.5), "tokens_per_batch"),
        (
            lambda: token_batches(["123"], ["1"], Digits(), max_length=3),
            "shortest pair of length 4",
        ),
        (
            lambda: token_batches(["1"], ["1"], (Digits(),) * 3),
            "a tuple of length 3",
        ),
    ],
)  # fmt: skip
def test_invalid_arguments_raise(call, message):
    with pytest.raises(ValueError, match=message) as info:
        call()
    assert "\n" not in str(info.value)


def test_tokenizers_must_have_the_same_padding_id():
    class Other(Digits):
        pad_id = 5

    with pytest.raises(ValueError, match="pad_id=0 for the source, 5"):
        token_batches(["1"], ["1"], (Digits(), Other()))
