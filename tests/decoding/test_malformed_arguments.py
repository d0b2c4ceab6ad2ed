"""Arguments of the strategies and of searches that are out of range."""

import keras
import numpy as np
import pytest

from keras_attn import decoding
from keras_attn.decoding import (
    BeamSearch,
    GreedySearch,
    MinP,
    Sampling,
    Strategy,
)
from keras_attn.models import GPT, Transformer
from tests.helpers.tree import Tree

pytestmark = pytest.mark.one_backend
NAN = float("nan")
ODD = [None, "abc", 1.5, NAN, float("inf"), [3], {}, object(), 1j, len]
INTS = [*ODD, True, 0, -1, 2**31, 2**70, np.float32(2), np.array([2])]


@pytest.fixture(scope="module")
def model():
    return Transformer(
        20, num_layers=1, num_heads=1, hidden_dim=4, intermediate_dim=4
    )


@pytest.fixture(scope="module")
def gpt():
    return GPT(20, num_layers=1, num_heads=1, hidden_dim=4)


def expect(name):
    return pytest.raises(ValueError, match=rf"(?s)`{name}`.*Received: ")


@pytest.mark.parametrize("value", INTS, ids=repr)
def test_max_new_tokens(model, value):
    inputs = np.array([[3, 4, 5]])
    for method in (model.generate, model.stream, model.start_decoding):
        if method == model.start_decoding and isinstance(value, np.ndarray):
            continue
        with expect("max_new_tokens"):
            method(inputs, value)
    for function in (decoding.generate, decoding.stream):
        with expect("max_new_tokens"):
            function(model, inputs, value, "greedy")


OPTIONS = {
    "batch_size": [None, "abc", 1.5, NAN, [3], {}, True, 0, -1],
    "return_weights": [None, "abc", 1.5, NAN, [3], {}, 0, 2],
    "verbose": [None, "abc", 1.5, NAN, [3], {}, 2],
    "strategy": [None, "abc", 1.5, NAN, [3], {}, True, GreedySearch, "Greedy"],
    "prefix": [
        *["abc", b"a", 1.5, NAN, {}, {"x": 1}, {3}, True, len, object()],
        *[["a"], [None], [1.5], [True], [NAN], [[[3]]], [[3], 4], [3, [4]]],
        *[[2], [2**40], [-1], [[3], [4]], [3] * 10, np.array(3)],
        *[np.ones((1, 1)), np.ones((1, 1, 1), int)],
    ],
}


@pytest.mark.parametrize(
    "name, value",
    [(name, value) for name, values in OPTIONS.items() for value in values],
    ids=repr,
)
def test_options_of_generate(model, name, value):
    with expect(name):
        model.generate([[3, 4, 5]], 3, **{name: value})
    arguments = {"strategy": "greedy", name: value}
    if value != [2**40]:  # this function does not know the vocabulary
        with expect(name):
            decoding.generate(model, [[3, 4, 5]], 3, **arguments)


WIDTHS = [*INTS, 10**9]
ARGUMENTS = {
    "suppress_tokens": [
        *[None, "abc", b"a", 1.5, NAN, True, 3, {}, {"a": 1}, object()],
        *[[1.5], [-1], ["a"], [None], [True], [[1]], [NAN]],
    ],
    "min_new_tokens": [*ODD, True, -1, np.float32(2)],
    "num_beams": WIDTHS,
    "num_return_sequences": WIDTHS,
    "length_penalty": [
        *[None, "abc", NAN, float("inf"), [3], 1j, True, 2**2000, -(2**2000)],
    ],
    "length_penalty_type": [None, "abc", 1.5, NAN, [3], {}, True],
    "early_stopping": [None, "abc", 1.5, NAN, [3], {}, 2],
    "coverage_penalty": [None, "abc", NAN, [3], 1j, True, -1.0, 1e39],
    "temperature": [
        *[None, "abc", NAN, float("inf"), [3], 1j, True, 0, -1.0, 2**2000],
        *[1e-46, 1e39],
    ],
    "top_k": ["abc", 1.5, NAN, [3], {}, True, 0, -1],
    "top_p": ["abc", NAN, [3], 1j, True, 0, -0.5, 1.5],
    "seed": ["abc", 1.5, NAN, [3], {}, True, -1],
    "rules": [
        *[None, "abc", 1.5, {}, True, MinP(0.1), MinP, [MinP], ["min_p"]],
        *[[None], [len], [[MinP(0.1)]]],
    ],
}
CASES = [
    (strategy, name, value)
    for strategy in (GreedySearch, Sampling, BeamSearch)
    for name in strategy().get_config()
    for value in ARGUMENTS[name]
]


@pytest.mark.parametrize("strategy, name, value", CASES, ids=repr)
def test_arguments_of_strategies(strategy, name, value):
    with expect(name):
        strategy(**{name: value})


@pytest.mark.parametrize(
    "strategy, length",
    [
        (Sampling(num_return_sequences=2**16), 2**13),
        (BeamSearch(2**16), 8),
        (BeamSearch(1000), 10**6),
    ],
)
def test_searches_that_need_too_much_memory(gpt, strategy, length):
    with expect("max_new_tokens"):
        decoding.generate(gpt, [[3, 4, 5]], length, strategy)
    with expect("max_new_tokens"):
        decoding.stream(gpt, [[3, 4, 5]], length, strategy)


@pytest.mark.parametrize("length_penalty", [1e300, -1e300])
def test_length_penalties_that_float32_cannot_hold(length_penalty):
    tree = Tree.random(1, 6, 3)
    strategy = BeamSearch(length_penalty=length_penalty)
    with expect("length_penalty"):
        decoding.generate(tree, np.array([[0]], "int32"), 3, strategy)


@pytest.mark.parametrize("model", [None, "abc", 3, keras.layers.Dense(3)])
def test_models_without_the_protocol(model):
    for function in (decoding.generate, decoding.stream):
        with expect("model"):
            function(model, np.array([[3]]), 3, "greedy")


@pytest.mark.parametrize("name", ["pad_id", "start_id", "end_id"])
@pytest.mark.parametrize("value", ["a", 1.5, True, -1, ["a"], [2, -1]])
def test_special_ids_of_a_model(name, value):
    tree = Tree.random(1, 6, 3)
    setattr(tree, name, value)
    with expect(name):
        decoding.generate(tree, np.array([[0]]), 3, "greedy")


def test_strategies_without_methods():
    tree = Tree.random(1, 6, 3)
    with pytest.raises(NotImplementedError, match="must define `init_state`"):
        decoding.generate(tree, np.array([[0]]), 3, Strategy())


@pytest.mark.parametrize(
    "inputs, message",
    [
        (None, "must be rows"),
        ("abc", "not text"),
        ([], "must have shape"),
        (np.array([[5, 2**40]]), "must lie in"),
        (np.array([3, 4]), "must have shape"),
        (np.ones((1, 2)), "must hold integers"),
        ({"x": 1}, ""),
        (keras.KerasTensor((None, 3), dtype="int32"), "must have values"),
    ],
    ids=repr,
)
def test_start_decoding(model, gpt, inputs, message):
    for owner in (model, gpt):
        with pytest.raises(ValueError, match=rf"`\w+` .*{message}"):
            owner.start_decoding(inputs, 3)


def test_decode_step(model):
    state = model.start_decoding(np.array([[3, 4]]), 3)
    for tokens in (None, "a", [[3]], np.ones((1, 1)), np.array([3]), 3):
        with expect("tokens"):
            model.decode_step(tokens, state)
    for other in (None, (), {}, "a", np.ones(3)):
        with expect("state"):
            model.decode_step(np.array([[3]]), other)


def test_align(model):
    ids, tokens = np.array([[3, 4]]), np.array([[[3, 4]]])
    lengths = np.array([[2]])
    for wrong in (None, "abc", {}, np.ones((1, 2))):
        with expect("inputs"):
            model.align(wrong, tokens, lengths)
    for wrong in (None, "abc", np.array([[3]]), np.ones((1, 1, 2))):
        with expect("tokens"):
            model.align(ids, wrong, lengths)
    for wrong in (None, "abc", np.array([2]), np.ones((1, 1))):
        with expect("lengths"):
            model.align(ids, tokens, wrong)
    # NumPy's int64 is not TensorFlow's int32.
    expected, found = (
        keras.ops.convert_to_numpy(
            model.align(*(x.astype(dtype) for x in (ids, tokens, lengths)))
        )
        for dtype in ("int32", "int64")
    )
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "inputs",
    [
        *["abc", None, 3, {}, [], [["a"]], np.array(["a"]), np.zeros((0, 2))],
        *[(np.ones((2, 2), int), np.ones((3, 2), int)), {"a": None}],
        *[np.array([[5, 2**40]]), np.array([[-1, 5]]), [[5, 30]]],
        keras.KerasTensor((2, 3), dtype="int32"),
    ],
    ids=repr,
)
def test_inputs_of_the_function(model, inputs):
    for function in (decoding.generate, decoding.stream):
        with expect("inputs"):
            function(model, inputs, 3, "greedy")


def test_huge_batches_of_few_rows_are_accepted(model):
    decoded = decoding.generate(
        model, np.array([[3, 4]], "uint64"), 2, "greedy", batch_size=2**40
    )
    assert decoded.tokens.shape == (1, 1, 2)
