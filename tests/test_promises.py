"""The guarantees of the library, end to end, each with mutants that break it.

A mutant is the library with one of its rules removed: a check that does not
detect it would not detect a bug either.
"""

import dataclasses
import functools
import importlib
import re

import keras
import numpy as np
import pytest
from keras import ops

import keras_attn
from keras_attn import checks
from keras_attn.blocks import DecoderBlock, EncoderBlock
from keras_attn.decoding import BeamSearch, beam_search, generate
from keras_attn.decoding.constraints import Constraints
from keras_attn.layers import (
    FeedForward,
    MultiHeadAttention,
    PositionalEmbedding,
    ScoredAttention,
    TokenEmbedding,
)
from keras_attn.training import SequenceCrossentropy
from tests.helpers.arrays import to_numpy
from tests.helpers.contract import randomize
from tests.helpers.decoding_reference import (
    assert_equals,
    everything,
    gnmt,
    may_follow,
)
from tests.helpers.tiny_models import (
    SOURCE,
    TARGET,
    talkative_transformer,
    tiny_transformer,
)
from tests.helpers.tree import Tree
from tests.helpers.weight_gradients import layer_gradients, weighted_sum

# By name: `keras_attn.ops.attend` is the function.
attend = importlib.import_module("keras_attn.ops.attend")
attention_inputs = importlib.import_module("keras_attn.layers.attention_inputs")
transformer = importlib.import_module("keras_attn.models.transformer")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 4, 8)).astype("float32")
UPSTREAM = RNG.normal(size=X.shape).astype("float32")


# Guarantee 1: a cached step-by-step decode equals the full pass.


def check_steps_equal_the_full_pass():
    model = tiny_transformer(num_layers=2)
    target = np.array([[1, 9, 4], [1, 7, 3]], "int32")
    expected = to_numpy(model((SOURCE, target)))
    state = model.start_decoding(ops.convert_to_tensor(SOURCE), 3)
    for step in range(3):
        tokens = ops.convert_to_tensor(target[:, step : step + 1])
        logits, state = model.decode_step(tokens, state)
        np.testing.assert_allclose(
            to_numpy(logits)[:, 0], expected[:, step], atol=1e-5
        )


def test_steps_equal_the_full_pass():
    check_steps_equal_the_full_pass()


@pytest.mark.parametrize("name", ["close_slots", "append"])
def test_a_broken_cache_is_detected(monkeypatch, name):
    # Slots that are overwritten, or never written.
    monkeypatch.setattr(
        keras_attn.cache, name, lambda cache, *args: cache, raising=True
    )
    with pytest.raises(AssertionError):
        check_steps_equal_the_full_pass()


# Guarantee 2: padded or fully masked queries return zeros.


def check_fully_masked_queries_return_zeros(dtype, kernel=None):
    policy = dtype if dtype == "float32" else f"mixed_{dtype}"
    layer = MultiHeadAttention(
        2, 4, flash_attention={None: None, "plain": False}[kernel], dtype=policy
    )
    layer.build(X.shape, X.shape)
    randomize(layer)
    query_mask = np.array([[1, 1, 0, 1], [1, 1, 1, 1]], "bool")
    key_mask = np.array([[0, 1, 1, 1], [0, 0, 0, 0]], "bool")
    allowed = np.ones((2, 2, 4, 4), "bool")
    allowed[0, 0, 0] = False  # fully masked in one head only
    allowed[0, :, 1] = False  # fully masked in both heads
    allowed[0, :, 3, 1:] = False  # sees a single key, which is padding
    fully_masked = np.array([[0, 1, 1, 1], [1, 1, 1, 1]], "bool")
    query = np.where(query_mask[..., None], X, np.nan)
    value = np.where(key_mask[..., None], X, np.nan)

    def loss(query, value):
        output = layer(
            query,
            value,
            query_mask=query_mask,
            value_mask=key_mask,
            attention_mask=allowed,
        )
        return weighted_sum(output, UPSTREAM)

    output = layer(
        query,
        value,
        query_mask=query_mask,
        value_mask=key_mask,
        attention_mask=allowed,
    )
    output = to_numpy(ops.cast(output, "float32"))
    assert (output[fully_masked] == 0).all()
    assert (output[~fully_masked] != 0).all() and np.isfinite(output).all()
    (at_query, at_value), at_weights = layer_gradients(
        layer, loss, query, value
    )
    assert (at_query[fully_masked] == 0).all()
    assert (at_value[~key_mask] == 0).all()
    assert (at_value[0, 1:] != 0).any()
    for name, gradient in at_weights.items():
        assert np.isfinite(gradient).all(), name
    # They do not contribute to the gradient of the output bias either.
    np.testing.assert_allclose(
        at_weights["attention_output/bias"],
        UPSTREAM[~fully_masked].sum(0),
        rtol=1e-5 if dtype == "float32" else 2e-2,
    )


@pytest.mark.parametrize("kernel", [None, "plain"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_fully_masked_queries_return_zeros(dtype, kernel):
    check_fully_masked_queries_return_zeros(dtype, kernel)


@pytest.mark.parametrize(
    "module, name, mutant",
    [
        (attend, "_sees_key", lambda *args: None),
        (attention_inputs, "clean", lambda x, positions: x),
    ],
    ids=["sees_key", "clean"],
)
def test_unmasked_outputs_are_detected(monkeypatch, module, name, mutant):
    monkeypatch.setattr(module, name, mutant)
    with pytest.raises(AssertionError):
        check_fully_masked_queries_return_zeros("float32")


# Guarantee 3: padding never changes the outputs.


def check_padding_does_not_change_logits():
    model = tiny_transformer()
    alone = to_numpy(model((SOURCE, TARGET)))[0]
    # The first sentence, padded on the right, and on the left and in between.
    source = np.zeros((2, 6), "int32")
    target = np.zeros((2, 5), "int32")
    source[[[0], [1]], [[0, 1, 2, 3], [1, 2, 4, 5]]] = SOURCE[0]
    target[[[0], [1]], [[0, 1, 2], [1, 2, 4]]] = TARGET[0]
    together = to_numpy(model((source, target)))
    for row in range(2):
        np.testing.assert_allclose(
            together[row][target[row] != 0], alone, atol=1e-5, rtol=1e-5
        )


def test_padding_does_not_change_logits():
    check_padding_does_not_change_logits()


def _without_key_mask(
    visibility, *lengths, to_mask=keras_attn.ops.Visibility.to_mask
):
    visibility = dataclasses.replace(visibility, key_positions=None)
    return to_mask(visibility, *lengths)


def _by_index(mask):
    index = ops.arange(ops.shape(mask)[1], dtype="int32")[None]
    return ops.where(mask, index, -1)


@pytest.mark.parametrize(
    "module, name, mutant",
    [
        (keras_attn.ops.Visibility, "to_mask", _without_key_mask),
        (transformer, "positions_from_mask", _by_index),
    ],
    ids=["padding is seen", "padding is counted"],
)
def test_a_padding_leak_is_detected(monkeypatch, module, name, mutant):
    monkeypatch.setattr(module, name, mutant)
    with pytest.raises(AssertionError):
        check_padding_does_not_change_logits()


def check_padding_does_not_change_translations():
    model = talkative_transformer(seed=8, num_layers=2)
    # The long row adds padding to the others.
    rows = [*SOURCE, np.arange(17) % 8 + 3]
    together = model.generate(rows, max_new_tokens=5)
    alone = model.generate(SOURCE[1:, :2], max_new_tokens=5)
    np.testing.assert_array_equal(alone.tokens[0], together.tokens[1])
    np.testing.assert_array_equal(alone.lengths[0], together.lengths[1])
    np.testing.assert_allclose(
        alone.scores[0], together.scores[1], atol=1e-5, rtol=1e-5
    )


def test_padding_does_not_change_translations():
    check_padding_does_not_change_translations()


def test_a_padding_leak_in_translation_is_detected(monkeypatch):
    # Treats the padding of the sources as tokens.
    monkeypatch.setattr(
        transformer, "positions_from_mask", lambda mask: _by_index(mask | True)
    )
    with pytest.raises(AssertionError):
        check_padding_does_not_change_translations()


# Guarantee 4: beam search follows its rules exactly.


def check_beam_search_finds_the_optimum():
    trees = Tree.random(30, size=6, length=3)
    sources = np.arange(30, dtype="int32")[:, None]
    decoded = generate(trees, sources, 3, BeamSearch(6**3, 4))
    expected = [
        everything(
            functools.partial(trees.log_probs, source),
            may_follow(trees),
            3,
            trees.end_id,
            functools.partial(gnmt, alpha=0.6),
        )
        for source in sources
    ]
    assert_equals(decoded, expected)


def test_beam_search_finds_the_optimum():
    check_beam_search_finds_the_optimum()


def _without_reordering(hypothesis, rows):
    return hypothesis


_merged = beam_search.merged


def _drops_early_ends(finished, tokens, scores, length):
    late = ops.where(ops.equal(length, 3), scores, -np.inf)
    return _merged(finished, tokens, late, length)


def _renormalized(self, log_probs, step, alive):
    return ops.log_softmax(_allow(self, log_probs, step, alive))


_allow = Constraints.allow


@pytest.mark.parametrize(
    "owner, name, mutant",
    [
        (keras_attn.cache, "reorder", _without_reordering),
        (beam_search, "merged", _drops_early_ends),
        (beam_search, "divisors", lambda length, *args: np.ones(length, "f")),
        (Constraints, "_never", lambda self, ids: ids == self.start_id),
        (Constraints, "allow", _renormalized),
    ],
    ids=["order", "early ends", "length", "pad", "renormalized"],
)
def test_a_broken_search_rule_is_detected(monkeypatch, owner, name, mutant):
    monkeypatch.setattr(owner, name, mutant)
    with pytest.raises(AssertionError):
        check_beam_search_finds_the_optimum()


# Guarantee 5: every layer, model, loss, metric and schedule is registered.


def public_classes():
    """Every Keras object that the library offers."""
    kinds = (
        keras.layers.Layer,
        keras.losses.Loss,
        keras.metrics.Metric,
        keras.optimizers.schedules.LearningRateSchedule,
    )
    for package in ("layers", "models", "training", "blocks"):
        module = getattr(keras_attn, package)
        for name in module.__all__:
            value = getattr(module, name)
            if isinstance(value, type) and issubclass(value, kinds):
                yield value


def check_is_registered(value):
    name = keras.saving.get_registered_name(value)
    assert name == f"keras_attn>{value.__name__}"
    assert keras.saving.get_registered_object(name) is value


@pytest.mark.parametrize(
    "value", sorted(set(public_classes()), key=lambda value: value.__name__)
)
def test_every_class_is_registered(value):
    check_is_registered(value)


def test_an_unregistered_class_is_detected():
    class Forgotten(keras.layers.Layer):
        pass

    with pytest.raises(AssertionError):
        check_is_registered(Forgotten)


# Guarantee 6: invalid arguments raise immediately, with a one-sentence message.

BAD_CALLS = {
    "a query without features": lambda: MultiHeadAttention(2, 4)(
        X[0, 0], X[0, 0]
    ),
    "heads that do not divide": lambda: EncoderBlock(
        num_heads=3, intermediate_dim=4
    )(X),
    "a block's rank": lambda: EncoderBlock(num_heads=2, intermediate_dim=4)(
        X[0]
    ),
    "a memory's rank": lambda: DecoderBlock(num_heads=2, intermediate_dim=4)(
        X, X[0]
    ),
    "a probability": lambda: FeedForward(4, dropout=1.5),
    "a kind of positions": lambda: PositionalEmbedding("rotary"),
    "past the table": lambda: PositionalEmbedding(
        "learned", max_sequence_length=3
    )(X),
    "an odd width": lambda: PositionalEmbedding()(X[..., :7]),
    "a score": lambda: ScoredAttention("euclid"),
    "keys of another width": lambda: ScoredAttention("dot")(X, X[..., 1:]),
    "float ids": lambda: TokenEmbedding(5, 4)(X[..., 0]),
    "float labels": lambda: SequenceCrossentropy()(X[..., 0], X),
    "an id out of range": lambda: tiny_transformer()((SOURCE + 9, TARGET)),
    "an empty batch": lambda: tiny_transformer()((SOURCE[:0], TARGET[:0])),
    "an empty prompt": lambda: tiny_transformer().generate(SOURCE[:, :0]),
    "an empty row": lambda: tiny_transformer().generate([[5, 6], []]),
    "a row without a list": lambda: tiny_transformer().generate([[5], 6]),
    "verbosity": lambda: tiny_transformer().generate(SOURCE, verbose=2),
    "a prompt of padding": lambda: tiny_transformer().generate(SOURCE * 0),
    "an id of a prompt": lambda: tiny_transformer().generate(SOURCE + 9),
    "more beams than its width": lambda: BeamSearch(
        num_beams=2, num_return_sequences=3
    ),
    "a forced id": lambda: tiny_transformer().generate(SOURCE, prefix=[11]),
    "more tokens than positions": lambda: tiny_transformer(
        position_embedding="learned", max_sequence_length=6
    ).generate(SOURCE, max_new_tokens=7),
}


def check_invalid_call_raises(call):
    try:
        call()
    except ValueError as error:
        message = str(error)
    except Exception as error:
        raise AssertionError(f"raised {error!r}") from error
    else:
        raise AssertionError("raised nothing")
    # What was expected and received; Keras adds lines around it.
    assert re.search(r"^.*\S\. Received: .+$", message, re.MULTILINE), message


@pytest.mark.parametrize("what", BAD_CALLS)
def test_invalid_arguments_raise(what):
    check_invalid_call_raises(BAD_CALLS[what])


@pytest.mark.parametrize(
    "name, what",
    [
        ("choice", "a kind of positions"),
        ("integers", "float labels"),
        ("fraction", "a probability"),
    ],
)
def test_a_missing_check_is_detected(monkeypatch, name, what):
    monkeypatch.setattr(checks, name, lambda name, value, *args: value)
    with pytest.raises(AssertionError):
        check_invalid_call_raises(BAD_CALLS[what])
