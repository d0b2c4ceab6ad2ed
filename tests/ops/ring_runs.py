"""Attention of split sequences on eight virtual devices, and on one."""

import os
import pickle

import keras
import numpy as np

from benchmarks import context_parallel
from keras_attn import layers, models, training
from keras_attn.ops import (
    PositionBias,
    Visibility,
    WeightDropout,
    attend,
    attention_plan,
    positions_from_mask,
)
from keras_attn.training.token_loss import OutputLayer

AXES = "batch", "context", "model"
ROWS, LENGTH, WIDTH = 2, 1024, 64
NAMES = "padding", "all masks", "window", "tensor", "T5"


class Numbers:
    """Random tensors."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)

    def normal(self, *shape):
        return self.random.normal(size=shape).astype("float32")

    def heads(self, length, *counts):
        """Returns tensors (2, T, N, 4) for each N."""
        return [self.normal(2, length, count, 4) for count in counts]


def visibilities(rows, length):
    """Returns a `Visibility` by name; padding is on both sides."""
    mask = np.ones((rows, length), bool)
    mask[0, -length // 3 :] = False
    mask[1, :3] = False
    positions = positions_from_mask(mask)
    padding = {
        "query_positions": positions,
        "key_positions": positions,
        "padding": "any",
    }
    segments = np.repeat(np.arange(3), -(-length // 3))[None, :length]
    segments = np.repeat(segments.astype("int32"), rows, axis=0)
    random = np.random.default_rng(0)
    return {
        "causal": Visibility(causal=True),
        "padding": Visibility(**padding),
        "all masks": Visibility(
            **padding,
            causal=True,
            window=6,
            query_segment_ids=segments,
            key_segment_ids=segments,
            attention_mask=random.random((1, 1, length, length)) > 0.2,
        ),
    }


def cases():
    """Returns mesh, tensors, `Visibility` and bias of each call, by name."""
    see, numbers = visibilities(2, 16), Numbers(0)
    # The devices cannot split two heads of keys four ways.
    grouped = numbers.heads(16, 4, 2, 2)
    heads = numbers.heads(16, 4, 4, 4)
    # A part of 129 tokens has blocks of 65.
    long = numbers.heads(258, 1, 1, 1)
    of_keys, of_pairs = (
        numbers.normal(1, 4, 1, 16),
        numbers.normal(2, 1, 16, 16),
    )
    found = (
        ((1, 8, 1), grouped, see["padding"], None),
        ((1, 2, 4), grouped, see["all masks"], of_keys),
        ((1, 2, 1), long, Visibility(window=100), None),
        ((2, 2, 2), heads, see["causal"], of_pairs),
        ((2, 2, 2), heads, see["causal"], t5_bias()),
    )
    return dict(zip(NAMES, found, strict=True))


def t5_bias():
    keras.utils.set_random_seed(0)
    bias = layers.T5Position(4, max_distance=20).bias()
    return bias._replace(parameters=np.asarray(bias.parameters))


def distribution(mesh):
    """Returns a distribution whose second axis splits sequences."""
    count = int(np.prod(mesh))
    device_mesh = keras.distribution.DeviceMesh(
        mesh, AXES, keras.distribution.list_devices()[:count]
    )
    layout_map = models.GPT.get_layout_map(
        device_mesh, context_parallel_dim_name="context"
    )
    return keras.distribution.ModelParallel(layout_map=layout_map)


def gradients(tensors, visibility, bias):
    """Returns the output, and the gradients of tensors and bias."""
    import jax

    of_positions = isinstance(bias, PositionBias)
    parameters = bias.parameters if of_positions else bias
    upstream = Numbers(1).normal(*tensors[0].shape)

    def output(tensors, parameters):
        given = (
            bias._replace(parameters=parameters)
            if of_positions
            else (parameters)
        )
        return attend(*tensors, visibility, bias=given)

    @jax.jit
    def program(tensors, parameters, upstream):
        y, pull_back = jax.vjp(output, tensors, parameters)
        return y, pull_back(upstream)

    return jax.device_get(program(tensors, parameters, upstream))


def values():
    """Returns outputs and gradients of each case on many devices and on one."""
    import jax

    found = {}
    for name, (mesh, tensors, visibility, bias) in cases().items():
        runs = []
        for scope in (distribution(mesh), None):
            keras.distribution.set_distribution(scope)
            plan = attention_plan(*tensors[:2], visibility, bias)
            run = jax.tree.leaves(gradients(tensors, visibility, bias))
            runs.append((plan.kernel, run))
        found[name] = runs
    return found


def dropped():
    """Returns the fraction of weights that dropout keeps, for each query."""
    import jax

    keras.distribution.set_distribution(distribution((2, 2, 2)))
    dropout = WeightDropout(0.5, np.array([1, 2], "uint32"))
    x = np.zeros((2, 32, 4, 4), "float32")
    program = jax.jit(lambda x, value: attend(x, x, value, dropout=dropout))
    return np.asarray(program(x, np.ones_like(x)))[..., 0] / 2


def losses():
    """Returns the loss of hidden states and gradients, on many and on one."""
    import jax

    numbers = Numbers(0)
    hidden, matrix = numbers.normal(4, 40, 8), numbers.normal(24, 8)
    labels = np.random.default_rng(0).integers(0, 24, (4, 40), "int32")
    loss = training.SequenceCrossentropy(pad_id=0)

    def total(hidden, matrix):
        layer = OutputLayer(matrix, None, False)
        value, scores = loss.of_hidden_states(labels, hidden, layer)
        return value, (scores.nats, scores.hits)

    runs = []
    for scope in (distribution((2, 2, 2)), None):
        keras.distribution.set_distribution(scope)
        program = jax.jit(jax.value_and_grad(total, (0, 1), has_aux=True))
        runs.append(jax.tree.leaves(jax.device_get(program(hidden, matrix))))
    return runs


def errors():
    """Returns messages of lengths that do not divide."""
    keras.distribution.set_distribution(distribution((1, 8, 1)))
    x = Numbers(0).normal(1, 12, 1, 4)
    found = {"plan": str(attention_plan(x[:, :4], x))}
    for name, arguments in (
        ("length", {}),
        ("forced", {"kernel": "ring"}),
    ):
        try:
            attend(x, x, x, **arguments)
        except ValueError as error:
            found[name] = str(error)
    found["weights"] = attend(x, x, x, return_weights=True)[1].shape
    return found


def memory():
    """Returns the bytes of a training step that a device has and sends."""
    keras.distribution.set_distribution(None)
    return {
        devices: context_parallel.measure(devices, LENGTH, WIDTH, 1, 1, ROWS)
        for devices in (1, 8)
    }


def write(path):
    """Writes what the functions of this module return."""
    given = os.environ.get("XLA_FLAGS", "")
    os.environ["XLA_FLAGS"] = " ".join((given, *context_parallel.FLAGS))
    functions = values, losses, dropped, errors, memory
    found = {function.__name__: function() for function in functions}
    path.write_bytes(pickle.dumps(found))
