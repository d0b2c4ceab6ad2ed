"""`doctor` names the layers that leak padding, and no others."""

import concurrent.futures
import dataclasses
import random
import re

import keras
import numpy as np
import pytest
from keras import layers, ops

import keras_attn
from keras_attn.layers import MultiHeadAttention
from keras_attn.ops import Visibility
from tests.helpers.cases import once
from tests.helpers.tiny_models import SOURCE, TARGET, tiny_transformer

IDS = np.array([[3, 4, 5, 6, 0, 0], [6, 7, 0, 0, 0, 0], [3, 4, 5, 6, 7, 8]])
REAL = IDS != 0
X = np.random.default_rng(0).normal(size=(3, 6, 8)).astype("float32")
KINDS = {"theirs": layers.MultiHeadAttention, "ours": MultiHeadAttention}


class Subclassed(keras.Model):
    """Embedding, then attention, sum and norm twice."""

    def __init__(self, attention, **kwargs):
        super().__init__(**kwargs)
        self.embedding = layers.Embedding(9, 8, mask_zero=True)
        self.attentions = [
            attention(2, 4, name=f"attention_{n}") for n in range(2)
        ]
        self.sums = [layers.Add() for _ in range(2)]
        self.norms = [layers.LayerNormalization() for _ in range(2)]

    def call(self, ids):
        x = self.embedding(ids)
        for attention, add, norm in zip(
            self.attentions, self.sums, self.norms, strict=True
        ):
            x = norm(add([x, attention(x, x)]))
        return x


def functional(attention, length=None):
    ids = keras.Input((length,), dtype="int32")
    x = layers.Embedding(9, 8, mask_zero=True)(ids)
    for n in range(2):
        y = attention(2, 4, name=f"attention_{n}")(x, x)
        x = layers.LayerNormalization()(layers.Add()([x, y]))
    return keras.Model(ids, x, name="stack")


class SelfAttention(layers.Layer):
    """A sublayer with one input, for `Sequential`."""

    def __init__(self, attention, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.attention = attention(2, 4)
        self.add = layers.Add()

    def call(self, x):
        return self.add([x, self.attention(x, x)])


def sequential(attention):
    stack = [SelfAttention(attention, name=f"attention_{n}") for n in range(2)]
    return keras.Sequential([layers.Embedding(9, 8, mask_zero=True), *stack])


STACKS = {
    "functional": functional,
    "sequential": sequential,
    "subclassed": Subclassed,
}


# `Sequential` restores the mask between the layers.
@pytest.mark.parametrize("stack", ["functional", *once(["subclassed"])])
def test_the_second_keras_attention_leaks(stack):
    report = keras_attn.doctor(STACKS[stack](KINDS["theirs"]), IDS)
    assert not report
    # The leak is reported in the layer that misses the mask, not in the one
    # that erased it.
    first = report.probes[0].leaks[0]
    assert (first.layer, first.location) == ("attention_1", "attention_1")
    assert report.leaks == ["attention_1"]
    moved = {probe.change: probe.max_change for probe in report.probes}
    assert moved["inputs: 3 more padded positions"] > 0.01
    assert moved["inputs: other padded contents"] > 0.01
    assert moved["batch: each row by itself"] < 1e-4
    assert report.refused == []


@pytest.mark.parametrize(
    "stack", ["functional", *once(["sequential", "subclassed"])]
)
def test_keras_attn_attention_does_not_leak(stack):
    report = keras_attn.doctor(STACKS[stack](KINDS["ours"]), IDS)
    assert report and report.leaks == [] and report.refused == []
    assert len(report.probes) == 3
    assert all(probe.max_change < 1e-4 for probe in report.probes)


@pytest.mark.parametrize("dtype", ["mixed_bfloat16", *once(["mixed_float16"])])
def test_mixed_precision(dtype):
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(dtype)
    try:
        ours, theirs = (functional(KINDS[kind]) for kind in ("ours", "theirs"))
    finally:
        keras.config.set_dtype_policy(before)
    assert keras_attn.doctor(ours, IDS)
    assert keras_attn.doctor(theirs, IDS).leaks == ["attention_1"]


def test_the_report_is_a_table():
    keras.utils.set_random_seed(1)
    report = keras_attn.doctor(functional(KINDS["theirs"]), IDS)
    lines = re.sub(r"(?<![\d.])\d+ %", "# %", str(report)).splitlines()
    layer = "attention_1"
    lines = [re.sub(" +", " ", line) for line in lines]
    assert lines == [
        "Padding leaks, first in `attention_1`.",
        "",
        "changed output moved first leaking layer",
        f"inputs: 3 more padded positions # % {layer}",
        f"inputs: other padded contents # % {layer}",
        "batch: each row by itself < 0.01 % -",
        "",
        "Every layer that lets padding in, by itself:",
        f" {layer} # %",
        "",
        "Called without a mask, though there had been one (`x + y` loses it,",
        "keras.layers.Add keeps it); it was last seen behind:",
        f" {layer} `attention_0`",
    ]
    assert repr(report) == "Report(leaks=['attention_1'])"


# Two sequences, each with its own padding.


def test_a_transformer():
    report = keras_attn.doctor(tiny_transformer(num_layers=2), (SOURCE, TARGET))
    assert report and report.refused == [], str(report)
    assert len(report.probes) >= 3


def test_a_transformer_that_ignores_masks(monkeypatch):
    to_mask = Visibility.to_mask

    def without_key_mask(visibility, *lengths):
        visibility = dataclasses.replace(visibility, key_positions=None)
        return to_mask(visibility, *lengths)

    model = tiny_transformer()
    monkeypatch.setattr(Visibility, "to_mask", without_key_mask)
    report = keras_attn.doctor(model, (SOURCE, TARGET))
    # The decoder block leaks too: it is tested with a clean memory.
    assert report.leaks == ["encoder_block_0", "decoder_block_0"]


def seq2seq(attention):
    """Two attentions to one memory; in Keras, the second has lost its mask."""
    source = keras.Input((None,), dtype="int32", name="source")
    target = keras.Input((None,), dtype="int32", name="target")
    memory = layers.Embedding(9, 8, mask_zero=True)(source)
    x = layers.Embedding(9, 8, mask_zero=True)(target)
    for n in range(2):
        y = attention(2, 4, name=f"cross_{n}")(x, memory)
        x = layers.LayerNormalization()(layers.Add()([x, y]))
    return keras.Model((source, target), layers.Dense(9)(x))


@pytest.mark.parametrize("columns", [4, *once([6])])
def test_the_second_attention_to_one_memory(columns):
    """Also if both sides have the same length."""
    source, target = IDS, np.array(IDS[::-1, :columns])
    target[1, 1:] = 0
    report = keras_attn.doctor(seq2seq(KINDS["theirs"]), (source, target))
    assert report.leaks == ["cross_1"]
    by_change = {probe.change: probe for probe in report.probes}
    assert by_change["inputs[0]: other padded contents"].leaks
    assert not by_change["inputs[1]: other padded contents"].leaks
    assert keras_attn.doctor(seq2seq(KINDS["ours"]), (source, target))


# Masks that are passed in other ways.


class Masked(keras.Model):
    """Features and a mask in a dict; the mask is used or ignored."""

    def __init__(self, uses_mask):
        super().__init__(name="masked")
        self.uses_mask = uses_mask
        self.attention = MultiHeadAttention(2, 4, name="attention")

    def call(self, inputs):
        x, mask = inputs["features"], inputs["padding_mask"]
        return self.attention(x, x, value_mask=mask if self.uses_mask else None)


@pytest.mark.parametrize("dtype", ["bool", *once(["int32"])])
def test_a_mask_in_a_dict(dtype):
    inputs = {"features": X, "padding_mask": REAL.astype(dtype)}
    report = keras_attn.doctor(Masked(True), inputs)
    assert report and len(report.probes) == 3, str(report)
    assert keras_attn.doctor(Masked(False), inputs).leaks == ["attention"]


class Segments(keras.Model):
    """Ids, segments and a mask, as BERT is called."""

    def __init__(self, leaky):
        super().__init__(name="segments")
        self.leaky = leaky
        self.tokens = layers.Embedding(9, 8)
        self.segments = layers.Embedding(2, 8, name="segments_table")
        self.attention = MultiHeadAttention(2, 4, name="attention")

    def call(self, inputs):
        segments = self.segments(inputs["segment_ids"])
        x = self.tokens(inputs["token_ids"]) + segments
        mask = inputs["padding_mask"]
        y = self.attention(x, x, query_mask=mask, value_mask=mask)
        if self.leaky:
            y = y + ops.mean(segments, axis=1, keepdims=True)
        return y[:, 0]


def test_segment_ids_are_not_token_ids():
    inputs = {
        "token_ids": IDS,
        "segment_ids": np.array([[0, 0, 1, 1, 0, 0]] * 3),
        "padding_mask": REAL,
    }
    report = keras_attn.doctor(Segments(False), inputs)
    assert report and report.refused == [], str(report)
    assert [probe.change for probe in report.probes] == [
        "token_ids: 3 more padded positions",
        "token_ids: other padded contents",
        "batch: each row by itself",
    ]
    assert keras_attn.doctor(Segments(True), inputs).leaks == ["segments"]


def features(layer):
    x = keras.Input((None, 8))
    return keras.Model(x, layer(x))


def test_explicit_masks():
    rnn = features(layers.LSTM(4, return_sequences=True))
    assert keras_attn.doctor(rnn, X, mask=REAL)
    convolution = features(layers.Conv1D(4, 3, padding="same", name="wide"))
    report = keras_attn.doctor(convolution, X, mask=REAL)
    assert report.leaks == ["wide"]
    # As a nest like the inputs, and as the Keras mask of a tensor.
    listed = keras.Model([convolution.input], convolution.output)
    assert keras_attn.doctor(listed, [X], mask=[REAL]).leaks == ["wide"]
    carrying = ops.convert_to_tensor(X)
    carrying._keras_mask = ops.convert_to_tensor(REAL)
    assert keras_attn.doctor(convolution, carrying).leaks == ["wide"]
    assert carrying._keras_mask is not None


# Various outputs and layers.


def embedded(*stack, length=None, mask_zero=True):
    ids = keras.Input((length,), dtype="int32")
    x = layers.Embedding(9, 8, mask_zero=mask_zero)(ids)
    for layer in stack:
        x = layer(x)
    return keras.Model(ids, x, name="model")


def test_pooled_outputs():
    pooling = layers.GlobalAveragePooling1D(name="pool")
    assert keras_attn.doctor(embedded(pooling, layers.Dense(2)), IDS)
    model = embedded(pooling, layers.Dense(2), mask_zero=False)
    assert keras_attn.doctor(model, IDS).leaks == ["pool"]
    # Not a layer: the model itself.
    model = embedded(lambda x: ops.mean(x, axis=1), layers.Dense(2, name="top"))
    (leak, *_) = keras_attn.doctor(model, IDS).probes[0].leaks
    assert (leak.layer, leak.location) == (
        "model",
        "model (its own code, before top)",
    )


class Sum(keras.Model):
    """Attention after a sum of embeddings."""

    def __init__(self, add):
        super().__init__()
        self.tokens = layers.Embedding(9, 8, mask_zero=True, name="tokens")
        self.positions = layers.Embedding(9, 8, name="positions")
        self.add = add
        self.attention = MultiHeadAttention(2, 4, name="attention")

    def call(self, ids):
        positions = self.positions(ops.arange(ids.shape[1])[None])
        x = self.add([self.tokens(ids), ops.repeat(positions, len(ids), 0)])
        return self.attention(x, x)


def test_a_mask_lost_by_a_sum():
    report = keras_attn.doctor(Sum(sum), IDS)
    (leak,) = {leak for probe in report.probes[:1] for leak in probe.leaks}
    assert (leak.layer, leak.unmasked_since) == ("attention", "`tokens`")
    assert str(report).endswith(
        "(`x + y` loses it,\nkeras.layers.Add keeps it); it was last "
        "seen behind:\n  attention  `tokens`"
    )
    # In a functional model, and with a mask from the inputs.
    ids = keras.Input((None,), dtype="int32")
    x = layers.Embedding(9, 8, mask_zero=True)(ids)
    y = x + layers.Dense(8, name="dense")(x)
    pool = layers.GlobalAveragePooling1D(name="pool")
    report = keras_attn.doctor(keras.Model(ids, pool(y)), IDS)
    assert report.probes[0].leaks[0].unmasked_since == "`dense`"
    x = keras.Input((None, 8))
    report = keras_attn.doctor(keras.Model(x, pool(x + 1)), X, mask=REAL)
    assert report.probes[0].leaks[0].unmasked_since == "the inputs"


class PassesMask(keras.Model):
    """A leaking layer after a sum, with the mask passed in different ways."""

    def __init__(self, call_with):
        super().__init__()
        self.tokens = layers.Embedding(9, 8, mask_zero=True, name="tokens")
        self.leaking = IgnoresMask(name="leaking")
        self.call_with = call_with

    def call(self, ids):
        x = self.tokens(ids)
        return self.call_with(self.leaking, x + x, ids != 0)


class IgnoresMask(layers.Layer):
    """A mean over all positions, whatever the mask."""

    def call(self, x, mask=None):
        return ops.mean(x, axis=1)


@pytest.mark.parametrize(
    ("call_with", "since"),
    [
        (lambda layer, x, mask: layer(x), "`tokens`"),
        (lambda layer, x, mask: layer(x, mask), ""),
        (lambda layer, x, mask: layer(x, mask=mask), ""),
        (lambda layer, x, mask: layer(x, mask=[mask]), ""),
        (lambda layer, x, mask: layer(x, mask=None), "`tokens`"),
    ],
)
def test_an_explicit_mask_is_not_missing(call_with, since):
    report = keras_attn.doctor(PassesMask(call_with), IDS)
    leaks = [x for probe in report.probes for x in probe.leaks]
    assert {x.layer for x in leaks} == {"leaking"}
    assert {x.unmasked_since for x in leaks} == {since}


def test_sequences_of_equal_length_are_not_confused():
    """A sequence without a mask has not lost that of the other one."""
    source = keras.Input((None,), dtype="int32")
    target = keras.Input((None,), dtype="int32")
    memory = layers.Embedding(9, 8, name="bare")(source)
    x = layers.Embedding(9, 8, mask_zero=True, name="masked")(target)
    x = layers.GlobalAveragePooling1D(name="right")(x)
    y = layers.GlobalAveragePooling1D(name="wrong")(memory)
    model = keras.Model((source, target), layers.Add()([x, y]))
    report = keras_attn.doctor(model, (IDS, IDS[::-1]))
    leaks = [x for probe in report.probes for x in probe.leaks]
    assert {x.layer for x in leaks} == {"wrong"}
    assert not any(x.unmasked_since for x in leaks)


def test_no_lost_mask_with_a_mask_or_without_any():
    wide = layers.Conv1D(4, 3, padding="same")
    wide.supports_masking = True
    for model in (
        # A leak despite the mask.
        embedded(wide),
        # No mask at all.
        embedded(layers.GlobalAveragePooling1D(), mask_zero=False),
    ):
        report = keras_attn.doctor(model, IDS)
        assert report.leaks
        assert not any(leak.unmasked_since for leak in report.probes[0].leaks)
        assert "Called without a mask" not in str(report)


def test_layers_are_tested_separately():
    model = embedded(
        layers.Conv1D(8, 3, padding="same", name="first"),
        layers.Dense(8),
        layers.Conv1D(8, 1, name="harmless"),
        layers.Conv1D(8, 3, padding="same", name="second"),
        mask_zero=False,
    )
    assert keras_attn.doctor(model, IDS).leaks == ["first", "second"]


def test_recurrent_layers():
    model = embedded(
        layers.Bidirectional(layers.GRU(4, return_sequences=True)),
        layers.TimeDistributed(layers.Dense(4)),
        layers.LSTM(4),
    )
    assert keras_attn.doctor(model, IDS)
    model = embedded(
        layers.Bidirectional(
            layers.GRU(4, return_sequences=True), name="both_ways"
        ),
        mask_zero=False,
    )
    assert keras_attn.doctor(model, IDS).leaks == ["both_ways"]


class Loop(keras.Model):
    """A cell in a Python loop, called on one position at a time."""

    def __init__(self):
        super().__init__()
        self.embedding = layers.Embedding(9, 8)
        self.cell = layers.GRUCell(8)

    def call(self, ids):
        x = self.embedding(ids)
        state = ops.zeros((ops.shape(x)[0], 8))
        outputs = []
        for t in range(x.shape[1]):
            output, (state,) = self.cell(x[:, t], [state])
            outputs.append(output)
        return ops.stack(outputs, axis=1)


def test_a_cell_in_a_loop():
    assert keras_attn.doctor(Loop(), IDS)


def test_a_layer_in_a_nested_model():
    inner = features(layers.Conv1D(8, 3, padding="same", name="wide"))
    inner.name = "inner"
    report = keras_attn.doctor(embedded(inner, mask_zero=False), IDS)
    assert report.leaks == ["wide"]
    assert report.probes[0].leaks[0].location == "inner/wide"


class Centered(layers.Layer):
    def call(self, x):
        return x - ops.mean(x, axis=0, keepdims=True)


def test_leaks_across_rows():
    report = keras_attn.doctor(
        embedded(Centered(name="centered"), mask_zero=False), IDS
    )
    assert report.leaks == ["centered"]
    assert [bool(probe.leaks) for probe in report.probes][-1]


def test_a_model_of_fixed_length():
    assert keras_attn.doctor(functional(KINDS["ours"], length=6), IDS)
    report = keras_attn.doctor(functional(KINDS["theirs"], length=6), IDS)
    assert report.leaks == ["attention_1"]
    (refused,) = report.refused
    assert refused.startswith("inputs: 3 more padded positions: ValueError: ")
    assert f"Not probed:\n  {refused}" in str(report)
    flat = layers.Flatten(name="flat"), layers.Dense(2)
    report = keras_attn.doctor(embedded(*flat, length=6, mask_zero=False), IDS)
    assert report.leaks == ["flat"]


# Side effects.


def test_variables_and_random_state_are_restored():
    model = embedded(
        layers.BatchNormalization(),
        layers.Dropout(0.5, seed=1),
        layers.Dense(2),
    )
    model.compile("adam", "mse")
    model.fit(IDS, np.zeros((3, 6, 2)), verbose=0)
    before = [np.array(ops.convert_to_numpy(v)) for v in model.variables]
    iterations = int(model.optimizer.iterations)
    original = layers.Layer.__call__
    keras.utils.set_random_seed(5)
    drawn = random.random()
    keras.utils.set_random_seed(5)
    keras_attn.doctor(model, IDS)
    assert random.random() == drawn
    assert layers.Layer.__call__ is original
    assert int(model.optimizer.iterations) == iterations
    for variable, array in zip(model.variables, before, strict=True):
        np.testing.assert_array_equal(ops.convert_to_numpy(variable), array)


class Noisy(layers.Layer):
    """Counts its calls, so that its outputs change between calls."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.count = self.add_weight(
            shape=(), initializer="zeros", trainable=False
        )
        self.called = 0

    def call(self, x):
        self.called += 1
        self.count.assign(self.count + 1)
        return x * (1 + self.called) + self.count


def test_state_is_restored_after_an_error():
    original = layers.Layer.__call__
    layer = Noisy()
    model = embedded(layer, mask_zero=False)
    with pytest.raises(ValueError, match="must return the same outputs"):
        keras_attn.doctor(model, IDS)
    assert layers.Layer.__call__ is original
    assert float(ops.convert_to_numpy(layer.count)) == 0
    with pytest.raises(ValueError):
        keras_attn.doctor(functional(KINDS["ours"], length=4), IDS)
    assert layers.Layer.__call__ is original


class TwoOutputs(keras.Model):
    """One bfloat16 output without a leak, one float32 output with a leak."""

    def __init__(self, first):
        super().__init__()
        self.first = first

    def call(self, x):
        still = ops.cast(x[..., :1], "bfloat16")
        # A leak below the tolerance of bfloat16.
        leaky = x + 3e-4 * ops.mean(x, axis=1, keepdims=True)
        return (still, leaky) if self.first else (leaky, still)


@pytest.mark.parametrize("first", [True, False])
def test_each_output_has_its_own_tolerance(first):
    report = keras_attn.doctor(TwoOutputs(first), X, mask=REAL)
    assert not report


def test_equal_names_in_nested_dicts():
    class Pair(keras.Model):
        def call(self, inputs):
            return inputs["left"]["x"] + 1, inputs["right"]["x"] + 1

    mask = {"left": {"x": REAL}, "right": {"x": None}}
    inputs = {"left": {"x": X}, "right": {"x": X[:, :2]}}
    report = keras_attn.doctor(Pair(), inputs, mask=mask)
    assert report
    assert any("left/x" in probe.change for probe in report.probes)


def test_two_threads_take_turns():
    original = layers.Layer.__call__
    models = [functional(KINDS[kind]) for kind in ("theirs", "ours") * 2]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        reports = list(pool.map(lambda m: keras_attn.doctor(m, IDS), models))
    assert [bool(report) for report in reports] == [False, True] * 2
    assert layers.Layer.__call__ is original


@pytest.mark.parametrize(
    "model, inputs, kwargs, message",
    [
        (len, IDS, {}, "`model` must be a Keras model"),
        (Loop, IDS[2:], {}, "must have padding"),
        (Loop, X, {}, "must have padding"),
        (Loop, IDS, {"pad_id": 1}, "must have padding"),
        (Loop, [[3, 4, 0]], {}, "must be an array or tensor"),
        (Loop, (IDS, IDS[:2]), {}, "equal batch sizes"),
        (Loop, X, {"mask": REAL[:2]}, r"`mask` must be of shape \(B, T\)"),
        (Loop, {"a": X}, {"mask": {"b": REAL}}, r"`mask` must be of shape"),
    ],
)
def test_invalid_arguments_raise(model, inputs, kwargs, message):
    model = model() if model is Loop else model
    with pytest.raises(ValueError, match=message) as error:
        keras_attn.doctor(model, inputs, **kwargs)
    assert re.search(r"\. Received: .+$", str(error.value))
