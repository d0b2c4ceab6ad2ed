"""A `tf.data` pipeline over prepared rows, in a new order each epoch."""

import numpy as np

from keras_attn import checks
from keras_attn.text import _tensorflow

_BATCHES_AHEAD = 8


def check_epochs(seed, initial_epoch):
    """Raises ValueError unless both are integers, at least 0."""
    for name, value in (("seed", seed), ("initial_epoch", initial_epoch)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ValueError(
                f"`{name}` must be an integer, at least 0. "
                f"Received: {name}={checks.shown(value)}"
            )


def batch_order(buckets, shuffle, seed, epoch):
    """Returns the batches of an epoch.

    Args:
        buckets: list of Bucket.
        shuffle: bool. Whether to shuffle pairs and batches.
        seed: int.
        epoch: int.

    Returns:
        list of tuple (bucket number, rows): rows, int (bucket.rows,), are
        indices into the pairs of the bucket; -1 is a padding row.
    """
    batches = []
    random = np.random.default_rng([seed, epoch])
    for number, bucket in enumerate(buckets):
        rows = np.full(bucket.batches * bucket.rows, -1)
        size = len(bucket.pairs)
        rows[:size] = random.permutation(size) if shuffle else np.arange(size)
        for part in rows.reshape(bucket.batches, bucket.rows):
            batches.append((number, part))
    if shuffle:
        random.shuffle(batches)
    return batches


def batch_stream(batches, count, sides, epoch):
    """Creates a dataset of batches that are reordered every epoch.

    An epoch ends when its last batch is read. A partial read, as Keras does on
    some backends to build a model (as of Keras 3.15.1), does not advance the
    epoch.

    Args:
        batches: function of the epoch number that returns its batches, an
            iterable of tuples of int32 arrays (rows, length).
        count: int. Batches per epoch.
        sides: int. Arrays per batch.
        epoch: int. The number of the first epoch.

    Returns:
        A tf.data.Dataset of tuples of int32 (rows, length), one per side, and a
        function that sets the number of the next epoch.
    """
    tf = _tensorflow.tensorflow()

    def prepare():
        for step, batch in enumerate(batches(epoch), 1):
            yield batch, step == count

    def set_epoch(number):
        nonlocal epoch
        epoch = number

    def next_epoch():
        set_epoch(epoch + 1)
        return np.True_

    def read(batch, last):
        # Not in `prepare`, which runs some batches ahead.
        done = tf.cond(
            last,
            lambda: tf.numpy_function(next_epoch, [], tf.bool),
            lambda: False,
        )
        with tf.control_dependencies([done]):
            return tuple(tf.identity(ids) for ids in batch)

    ids = tf.TensorSpec((None, None), tf.int32)
    signature = ((ids,) * sides, tf.TensorSpec((), tf.bool))
    dataset = (
        tf.data.Dataset.from_generator(prepare, output_signature=signature)
        .apply(tf.data.experimental.assert_cardinality(count))
        .prefetch(_BATCHES_AHEAD)
        .map(read)
    )
    options = tf.data.Options()
    # `read` must not run ahead of the reader, as it would by default
    # (as of TensorFlow 2.21.0).
    options.experimental_optimization.inject_prefetch = False
    # There is nothing to tune, and the tuning thread sleeps for 10 ms, then 20,
    # 40, ...: the end of an epoch sometimes waited for it, up to as long as the
    # epoch itself had taken (as of TensorFlow 2.21.0).
    options.autotune.enabled = False
    return dataset.with_options(options), set_epoch
