"""Scan: a recurrence over the time axis."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops, tree

from keras_attn.typing import Nest

if keras.backend.backend() == "tensorflow":
    import tensorflow as tf


def scan(step: Callable[..., Any], state: Nest, inputs: Nest) -> Any:
    """Applies a step to each time step in order, as one compiled loop.

    On TensorFlow, `keras.ops.scan` requires outputs of the state's structure
    (keras-team/keras#19681, as of Keras 3.15.1). Here they may be any nest.

    Args:
        step: takes a state and the inputs of a time step; returns the next
            state, of the same structure, shapes and dtypes, and the outputs.
        state: nest of tensors.
        inputs: nest of tensors (T, ...), T >= 1.

    Returns:
        The last state and the nest of stacked outputs, each (T, ...).
    """
    if keras.backend.backend() == "jax":
        return ops.scan(step, state, inputs)
    if keras.backend.backend() == "tensorflow":
        return _by_arrays(step, state, inputs)
    times = zip(*(ops.unstack(x) for x in tree.flatten(inputs)), strict=True)
    outputs = []
    for time in times:
        state, output = step(state, tree.pack_sequence_as(inputs, time))
        outputs.append(output)
    return state, tree.map_structure(lambda *x: ops.stack(x), *outputs)


def _by_arrays(step, state, inputs):
    flat = tree.flatten(inputs)
    count = flat[0].shape[0] or tf.shape(flat[0])[0]

    def at(time):
        return tree.pack_sequence_as(inputs, [x[time] for x in flat])

    # The first step determines the structure of the outputs.
    state, first = step(state, at(0))
    if isinstance(count, int) and count == 1:
        return state, tree.map_structure(lambda x: x[None], first)
    arrays = [
        tf.TensorArray(x.dtype, count, element_shape=x.shape).write(0, x)
        for x in tree.flatten(first)
    ]

    def body(time, carried, arrays):
        carried = tree.pack_sequence_as(state, carried)
        following, output = step(carried, at(time))
        arrays = [
            array.write(time, x)
            for array, x in zip(arrays, tree.flatten(output), strict=True)
        ]
        return time + 1, tree.flatten(following), arrays

    _, carried, arrays = tf.while_loop(
        lambda time, *_: time < count,
        body,
        (tf.constant(1), tree.flatten(state), arrays),
        maximum_iterations=count - 1,
    )
    outputs = tree.pack_sequence_as(first, [x.stack() for x in arrays])
    return tree.pack_sequence_as(state, carried), outputs
