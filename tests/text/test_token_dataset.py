"""TokenDataset: epochs, `fit`, workers, adapters, mapped files."""

import itertools
import pickle

import keras
import numpy as np
import pytest

from keras_attn.text import (
    TokenDataset,
    token_batches,
    token_blocks,
    token_streams,
)
from keras_attn.training import SequenceCrossentropy, TrainingBackup
from tests.text.test_token_batches import Digits, make, tiny_model

IDS = np.arange(100, 201)


def blocks(**kwargs):
    return token_blocks(IDS, 8, 4, seed=3, **kwargs)


def flat(batches):
    """Returns all arrays of some batches as lists."""
    return [
        np.asarray(x).tolist()
        for batch in batches
        for x in keras.tree.flatten(batch)
    ]


def test_reading_the_last_batch_ends_the_epoch():
    dataset = blocks()
    for epoch in range(3):
        assert dataset.epoch == epoch
        found = flat(dataset)
        assert found == flat(blocks(initial_epoch=epoch))
    partly = flat(itertools.islice(dataset, len(dataset) - 1))
    assert dataset.epoch == 3
    assert flat(dataset)[: len(partly)] == partly


def test_indices_are_those_of_the_current_epoch():
    dataset = blocks()
    expected = [flat([batch]) for batch in blocks()]
    assert [flat([dataset[i]]) for i in range(len(dataset))] == expected
    assert flat([dataset[-1]]) == expected[-1]
    assert dataset.epoch == 0
    dataset.on_epoch_end()
    assert dataset.epoch == 1
    # No batch was read.
    dataset.on_epoch_end()
    assert dataset.epoch == 1
    assert flat([dataset[0]]) == flat([next(iter(blocks(initial_epoch=1)))])
    for index in len(dataset), -len(dataset) - 1:
        with pytest.raises(IndexError, match="`index` must be in"):
            dataset[index]


def test_fit_continues_where_a_backup_ended(tmp_path):
    losses = []
    for epochs in ([4], [2, 4]):
        for number in epochs:
            keras.utils.set_random_seed(0)
            dataset = make(buckets=3)
            model = tiny_model()
            model.compile("sgd", SequenceCrossentropy())
            backup = TrainingBackup(tmp_path / str(epochs), data=dataset)
            history = model.fit(
                dataset,
                epochs=number,
                shuffle=False,
                verbose=0,
                callbacks=[backup],
            )
            assert dataset.epoch == number
        losses.append(history.history["loss"])
    np.testing.assert_allclose(*losses, rtol=1e-5)


def test_a_pickled_dataset_has_the_same_batches():
    for dataset in (
        make(initial_epoch=2),
        blocks(initial_epoch=2),
        blocks(shuffle=False),
        token_streams([IDS, IDS + 100], 4, 2, initial_epoch=2),
    ):
        copy = pickle.loads(pickle.dumps(dataset))
        assert flat(copy) == flat(dataset)


def test_tf_dataset():
    pytest.importorskip("tensorflow")
    dataset = make()
    found = dataset.to_tf_dataset()
    assert int(found.cardinality()) == len(dataset)
    both = flat(found.repeat(2).prefetch(2).as_numpy_iterator())
    assert both == flat(make()) + flat(make(initial_epoch=1))
    assert dataset.epoch == 2
    (source, _), labels = found.element_spec
    assert source.shape.as_list() == labels.shape.as_list() == [None, None]
    inputs, _ = next(iter(token_streams([IDS], 4, 2).to_tf_dataset()))
    assert inputs.keys() == {"token_ids", "document_starts"}


@pytest.mark.parametrize("workers", [0, 1])
def test_torch_loader(workers):
    torch = pytest.importorskip("torch")
    if keras.backend.backend() == "jax" and workers:
        pytest.skip("JAX must not be forked")
    dataset = make()
    loader = dataset.to_torch_loader(num_workers=workers)
    assert len(loader) == len(dataset)
    for epoch in range(2):
        batches = list(loader)
        assert all(
            isinstance(x, torch.Tensor) for x in keras.tree.flatten(batches)
        )
        assert flat(batches) == flat(make(initial_epoch=epoch))
    assert dataset.epoch == 2


@pytest.mark.parametrize("adapter", ["to_tf_dataset", "to_torch_loader"])
def test_fit_takes_the_adapters(adapter):
    pytest.importorskip("tensorflow")
    pytest.importorskip("torch")
    if (keras.backend.backend(), adapter) == ("tensorflow", "to_torch_loader"):
        pytest.skip("Keras takes no nests from a loader on TensorFlow")
    losses = []
    for adapted in False, True:
        keras.utils.set_random_seed(0)
        dataset = make(buckets=2)
        data = getattr(dataset, adapter)() if adapted else dataset
        model = tiny_model()
        model.compile("sgd", SequenceCrossentropy())
        history = model.fit(data, epochs=2, shuffle=False, verbose=0)
        losses.append(history.history["loss"])
        assert dataset.epoch == 2
    np.testing.assert_allclose(*losses, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["uint16", "int64"])
@pytest.mark.parametrize("shuffle", [False, True])
def test_mapped_files_stay_in_the_file(dtype, shuffle, tmp_path):
    np.save(tmp_path / "ids.npy", IDS.astype(dtype))
    mapped = np.load(tmp_path / "ids.npy", mmap_mode="r")
    for make_dataset in token_blocks, token_streams:
        found = make_dataset(mapped, 8, 4, seed=3, shuffle=shuffle)
        expected = make_dataset(IDS, 8, 4, seed=3, shuffle=shuffle)
        assert flat(found) == flat(expected)
        batch = keras.tree.flatten(found[0])
        assert {x.dtype for x in batch} == {np.dtype("int32")}
        # Pickling would copy it.
        kept = found._draw
        while not isinstance(kept, np.memmap):
            kept = getattr(kept, "args", None) or kept
            kept = kept[0]
        assert np.shares_memory(kept, mapped)
    mapped = np.lib.format.open_memmap(
        tmp_path / "bad.npy", "w+", "int64", (100,)
    )
    mapped[50] = -1
    for make_dataset in token_blocks, token_streams:
        with pytest.raises(ValueError, match="must lie in"):
            make_dataset(mapped, 8, 4)


def test_the_first_batches_differ_in_every_axis_that_varies():
    # The sides have their lengths in opposite orders.
    source = ["1" * n for n in (2, 2, 5, 2)] * 8
    target = ["1" * n for n in (1, 4, 3, 9)] * 8
    dataset = token_batches(
        source, target, Digits(), tokens_per_batch=40, buckets=4
    )
    shapes = dataset.report.shapes
    assert len(shapes) > 2
    first, second = (
        (*x.shape, y.shape[1]) for (x, y), _ in (dataset[0], dataset[1])
    )
    for axis, sizes in enumerate(zip(*shapes, strict=True)):
        assert (first[axis] != second[axis]) == (len(set(sizes)) > 1)
    model = tiny_model()
    model.compile("sgd", SequenceCrossentropy())
    model.fit(dataset, epochs=2, shuffle=False, verbose=0)


def test_invalid_arguments_raise():
    with pytest.raises(ValueError, match="`num_batches` must be"):
        TokenDataset(lambda epoch: None, 0)
    with pytest.raises(ValueError, match="`epoch` must be"):
        blocks().set_epoch(-1)
