"""packed_batches: every sentence once, first fit, hardly any padding."""

import keras
import numpy as np
import pytest

from keras_attn.models import GPT, Transformer
from keras_attn.text import packed_batches, token_batches
from keras_attn.text.packed_batches import first_fit
from keras_attn.training import SequenceCrossentropy
from tests.text.test_token_batches import SOURCE, TARGET, Digits

CAPACITY = 20


def make(source=SOURCE, target=TARGET, **options):
    options = {"tokens_per_batch": 80, "max_length": CAPACITY} | options
    return packed_batches(source, target, Digits(), **options)


def text(ids):
    assert (ids > 2).all()
    return "".join(str(i - 3) for i in ids)


def read(batches):
    """Returns the pairs of batches, and the composition of their rows."""
    rows = []
    for (source, target), labels in batches:
        for side in (source, target):
            for one in side.values():
                assert one.dtype == np.int32
        for x, s, y, t, z in zip(
            *source.values(), *target.values(), labels, strict=True
        ):
            rows.append([])
            assert ((x == 0) == (s == 0)).all()
            assert ((y == 0) == (t == 0)).all() and ((z == 0) == (t == 0)).all()
            assert s.max() == t.max()
            for number in range(1, s.max() + 1):
                *ids, end = x[s == number]
                start, *target_ids = y[t == number]
                assert (start, end) == (1, 2)
                assert z[t == number].tolist() == [*target_ids, 2]
                # One run, after that of the last sentence.
                assert np.ptp(np.flatnonzero(s == number)) == len(ids)
                rows[-1].append(
                    (text(np.array(ids)), text(np.array(target_ids)))
                )
    return rows


def naive(lengths, capacity):
    """First fit, by loops over all rows."""
    rooms, rows, offsets = [], [], []
    for pair in lengths.T:
        rooms.append([capacity] * len(pair))
        number = next(
            number
            for number, room in enumerate(rooms)
            if all(n <= r for n, r in zip(pair, room, strict=True))
        )
        if number < len(rooms) - 1:
            rooms.pop()
        rows.append(number)
        offsets.append([capacity - r for r in rooms[number]])
        rooms[number] = [
            r - n for n, r in zip(pair, rooms[number], strict=True)
        ]
    return rows, offsets, len(rooms)


@pytest.mark.one_backend
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("sides", [1, 2])
def test_first_fit_is_that_of_loops(seed, sides):
    random = np.random.default_rng(seed)
    lengths = random.integers(1 + seed % 3, 12, (sides, 150))
    found = first_fit(lengths, 12)
    rows, offsets, count = naive(lengths, 12)
    assert found.rows.tolist() == rows
    assert found.offsets.T.tolist() == offsets
    assert found.count == count


@pytest.mark.one_backend
@pytest.mark.parametrize("shuffle", [False, True])
def test_every_pair_occurs_once_in_one_shape(shuffle):
    data = make(shuffle=shuffle)
    batches = list(data)
    found = [pair for row in read(batches) for pair in row]
    assert sorted(found) == sorted(zip(SOURCE, TARGET, strict=True))
    shapes = {x["token_ids"].shape for (x, _), _ in batches}
    assert shapes == {(4, CAPACITY)}
    if not shuffle:
        rows = read(list(data))
        assert rows[0][0] == (SOURCE[0], TARGET[0])


@pytest.mark.one_backend
def test_report_is_that_of_the_batches():
    data = make(max_length=12, tokens_per_batch=60)
    batches, report = list(data), data.report
    dropped = [
        max(map(len, pair)) > 11 for pair in zip(SOURCE, TARGET, strict=True)
    ]
    assert report.dropped == sum(dropped) > 0
    assert report.pairs + report.dropped == len(SOURCE)
    assert report.batches == len(batches) == len(data)
    assert report.shapes == ((5, 12, 12),)
    sides = [np.stack([b[0][i]["token_ids"] for b in batches]) for i in (0, 1)]
    assert report.source_tokens == (sides[0] > 0).sum()
    assert report.target_tokens == (sides[1] > 0).sum()
    padding = np.mean([side == 0 for side in sides])
    assert report.padding_fraction == pytest.approx(padding)
    padded = token_batches(
        SOURCE, TARGET, Digits(), tokens_per_batch=60, buckets=1
    )
    long = make(max_length=100, tokens_per_batch=100).report
    assert long.padding_fraction < padded.report.padding_fraction / 3


@pytest.mark.one_backend
def test_epochs_have_the_same_rows_in_another_order():
    data = make()
    first, second = read(list(data)), read(list(data))
    assert data.epoch == 2
    assert first != second and sorted(first) == sorted(second)
    resumed = make(initial_epoch=1)
    assert read(list(resumed)) == second
    assert read(list(make(seed=1))) != first
    plain = make(shuffle=False)
    assert read(list(plain)) == read(list(plain))


@pytest.mark.one_backend
def test_shards_are_parts_of_the_batches():
    whole = make(rows_multiple_of=2, seed=3)
    parts = [make(shard=(i, 2), seed=3) for i in range(2)]
    assert {part.report for part in parts} == {whole.report}
    for batch, *halves in zip(whole, *parts, strict=True):
        joined = np.concatenate([labels for _, labels in halves])
        np.testing.assert_array_equal(joined, batch[1])


@pytest.mark.one_backend
def test_texts_without_a_target():
    data = make(["123", "4", "56789"], None, shuffle=False, max_length=6)
    (inputs, labels) = next(iter(data))
    count = 13
    assert inputs["token_ids"][:2].tolist() == [
        [1, 4, 5, 6, 1, 7],
        [1, 8, 9, 10, 11, 12],
    ]
    assert inputs["packing_ids"][:2].tolist() == [[1] * 4 + [2] * 2, [1] * 6]
    assert labels[:2].tolist() == [[4, 5, 6, 2, 7, 2], [8, 9, 10, 11, 12, 2]]
    assert str(data.report) == (
        "3 texts in 1 batches an epoch: 12 tokens, 84.6 % padding; shapes "
        f"{count} x 6"
    )


# Each backend trains on packed rows in tests/models/test_packing.py.
@pytest.mark.one_backend
def test_fit_and_equal_losses():
    """One batch of either kind has the same loss, before and after a step."""
    sizes = {"num_layers": 1, "num_heads": 2, "hidden_dim": 8, "dropout": 0.0}
    kinds = (
        make(SOURCE[:9], TARGET[:9], tokens_per_batch=400),
        token_batches(
            SOURCE[:9],
            TARGET[:9],
            Digits(),
            tokens_per_batch=400,
            buckets=1,
        ),
    )
    losses = []
    for data in kinds:
        assert len(data) == 1
        keras.utils.set_random_seed(0)
        model = Transformer(13, intermediate_dim=16, **sizes)
        model.compile(keras.optimizers.SGD(0.5), SequenceCrossentropy())
        history = model.fit(data, epochs=2, shuffle=False, verbose=0)
        losses.append(history.history["loss"])
    np.testing.assert_allclose(*losses, rtol=1e-5)
    assert losses[0][1] < losses[0][0]


def test_gpt_learns_from_packed_texts():
    data = make(SOURCE[:9], None, tokens_per_batch=400)
    model = GPT(13, 1, 2, 8, max_sequence_length=CAPACITY)
    model.compile("adam", SequenceCrossentropy())
    history = model.fit(data, shuffle=False, verbose=0).history
    assert np.isfinite(history["loss"]).all()


@pytest.mark.one_backend
@pytest.mark.parametrize(
    "options, message",
    [
        ({"target": TARGET[1:]}, "`source` and `target` must be of equal"),
        ({"source": [], "target": []}, "`source` and `target`"),
        ({"max_length": 0}, "`max_length` must be"),
        ({"source": ["12"], "target": ["1"], "max_length": 2}, "`max_length`"),
        ({"rows_multiple_of": 0}, "`rows_multiple_of` must be"),
        ({"shard": (2, 2)}, "`shard` must"),
        ({"shuffle": 1}, "`shuffle` must be"),
    ],
)
def test_invalid_arguments_raise(options, message):
    with pytest.raises(ValueError, match=message):
        make(**options)


@pytest.mark.one_backend
def test_texts_without_a_target_need_one_tokenizer():
    with pytest.raises(ValueError, match="one tokenizer if `target` is None"):
        packed_batches(["1"], None, (Digits(), Digits()))
