"""Malformed calls of the explain package name the argument."""

import re
from types import SimpleNamespace

import keras
import numpy as np
import pytest

from keras_attn import decoding, explain, models
from keras_attn.explain import AttentionMap

pytestmark = pytest.mark.one_backend

NAN = float("nan")
WEIGHTS = np.full((1, 2, 3, 3), 1 / 3, "float32")
IDS = np.array([[5, 6, 0]])
MASKS = explain.TokenMasks(1)
HOLED = WEIGHTS.copy()
HOLED[0, 0, 1, 1] = NAN
INFINITE = np.full_like(WEIGHTS, np.inf)
DEEP = []
for _ in range(10_000):
    DEEP = [DEEP]


def attention_map(**changed):
    given = {
        "layer": "encoder",
        "call": 0,
        "heads": (0, 1),
        "weights": WEIGHTS,
        "query_tokens": [list("abc")],
        "key_tokens": None,
    }
    return AttentionMap(**(given | changed))


@pytest.fixture(scope="module")
def given():
    """Valid arguments of every function."""
    model = models.GPT(
        9, num_layers=1, num_heads=2, hidden_dim=4, max_sequence_length=6
    )
    items = list(model.stream([[5, 6]], 2))
    return {
        "attention_maps": {"model": model, "inputs": IDS},
        "doctor": {"model": model, "inputs": np.array([[5, 6], [7, 0]])},
        "view_attention": {"maps": [attention_map()]},
        "rollout": {"maps": [WEIGHTS]},
        "head_entropy": {"weights": WEIGHTS},
        "head_distance": {"weights": WEIGHTS},
        "padding_attention": {
            "weights": WEIGHTS,
            "padding_mask": np.array([[True, True, False]]),
        },
        "rise": {
            "function": lambda ids: ids.sum(axis=1),
            "inputs": IDS[0],
            "masks": MASKS,
            "num_masks": 2,
            "verbose": 0,
        },
        "deletion_and_insertion": {
            "function": lambda ids: ids.sum(axis=1),
            "inputs": IDS[0],
            "saliency": np.ones(3),
            "masks": MASKS,
        },
        "plot_attention": {"weights": WEIGHTS},
        "plot_beam": {"items": items},
        "PatchMasks": {},
        "FrameMasks": {},
        "TokenMasks": {"mask_id": 1},
        "AttentionView": {"html": "", "title": ""},
    }


NO_NUMBERS = (None, "abc", object(), [[1.0], [1.0, 2.0]], 1j * WEIGHTS, DEEP)
NO_WEIGHTS = (*NO_NUMBERS, WEIGHTS[0, 0, 0], -WEIGHTS, HOLED, INFINITE)
NO_INDEX = (None, "0", 1.0, True, NAN, -1, 2**31)
NO_MASKS = (None, "tokens", object(), explain.TokenMasks, explain.PatchMasks())

# Function, argument, wrong values.
WRONG = [
    ("attention_maps", "model", (None, "gpt", len, models.GPT)),
    ("attention_maps", "inputs", (None,)),
    ("attention_maps", "layers", (3, b"x", [None], "(", ["a", "*"], "other")),
    ("attention_maps", "heads", ("0", 1.5, [NAN], -1, 2, [], [True], 2**40)),
    (
        "attention_maps",
        "tokens",
        (
            3,
            "abc",
            [["a"] * 4],
            [["a"], ["b"]],
            [3],
            [None],
            lambda ids: None,
            np.array(1),
        ),
    ),
    ("attention_maps", "decoded", (3, np.ones((1, 2)), (1, 2))),
    ("doctor", "model", (None, "gpt", len, models.GPT)),
    (
        "doctor",
        "inputs",
        (None, "text", [[3, 0]], np.array([["a", ""]]), 3, DEEP),
    ),
    ("doctor", "tolerance", (NAN, -1.0, 1.0, float("inf"), "0.1", True)),
    ("doctor", "pad_id", (None, "0", 1.5, NAN, True)),
    (
        "doctor",
        "mask",
        (
            "abc",
            np.ones((2, 3)),
            3.5,
            np.full((2, 2), -1e9),
            [],
            {},
            [None],
            DEEP,
        ),
    ),
    ("view_attention", "maps", (None, [], attention_map(), [WEIGHTS], 3, "a")),
    ("view_attention", "row", (*NO_INDEX, 1)),
    ("view_attention", "title", (None, 3, b"x")),
    ("rollout", "maps", (None, [], attention_map(), WEIGHTS, [None], ["a"])),
    ("rollout", "residual", (None, "1", NAN, -0.1, 1.1, True)),
    ("head_entropy", "weights", NO_WEIGHTS),
    ("head_distance", "weights", NO_WEIGHTS),
    ("padding_attention", "weights", NO_WEIGHTS),
    (
        "padding_attention",
        "padding_mask",
        (None, "abc", np.ones(3), np.full((1, 3), -1e9), np.ones((1, 4))),
    ),
    ("rise", "function", (None, "f", 3, lambda ids: ids * NAN)),
    (
        "rise",
        "inputs",
        (None, "abc", np.ones(3), np.zeros(0, int), np.int32(3)),
    ),
    (
        "rise",
        "masks",
        (*NO_MASKS[:-1], explain.FrameMasks(baseline=np.ones(2))),
    ),
    ("rise", "num_masks", (0, -1, 1.5, None, NAN, 2**40)),
    ("rise", "batch_size", (0, -1, 1.5, None)),
    ("rise", "seed", (-1, 1.5, None, "a")),
    ("rise", "verbose", ("loud", 2, None, np.ones(2))),
    ("deletion_and_insertion", "function", (None, "f", 3)),
    ("deletion_and_insertion", "inputs", (None, "abc", np.ones(3))),
    (
        "deletion_and_insertion",
        "saliency",
        (None, "abc", np.ones(2), np.ones((3, 1)), np.full(3, NAN)),
    ),
    ("deletion_and_insertion", "masks", NO_MASKS[:-1]),
    ("deletion_and_insertion", "steps", (0, -1, 1.5, 4, 10**9)),
    ("deletion_and_insertion", "batch_size", (0, 1.5)),
    ("plot_attention", "weights", (*NO_WEIGHTS, [attention_map(), 3], [])),
    ("plot_attention", "query_tokens", ("abc", 3, ["a"], [["a"]], np.array(1))),
    ("plot_attention", "key_tokens", ("abc", 3, ["a"] * 4)),
    ("plot_attention", "head", ("0", 1.5, True, -1, 2)),
    ("plot_attention", "row", (*NO_INDEX, 1)),
    ("plot_attention", "vmax", (0, -1, NAN, "1", float("inf"))),
    ("plot_attention", "cmap", (3, "no such map", None)),
    ("plot_attention", "title", (3, b"x")),
    ("plot_attention", "ax", (3, "ax", [3, 4], SimpleNamespace())),
    ("plot_beam", "items", (None, [], [3], 3, "abc", [None])),
    ("plot_beam", "row", (*NO_INDEX, 1)),
    ("plot_beam", "token_names", (3, [], {}, "")),
    ("plot_beam", "title", (3, b"x")),
    ("PatchMasks", "grid", (0, -1, 1.5, None, "7", (1, 2, 3), (0, 1), [1])),
    ("PatchMasks", "probability", (0, 1, -1, NAN, None, "x", True)),
    ("PatchMasks", "baseline", (None, "x", NAN, float("inf"), 1j, [], DEEP)),
    ("FrameMasks", "grid", (0, 1.5, None, (1, 2), [1])),
    ("TokenMasks", "mask_id", NO_INDEX),
    (
        "TokenMasks",
        "keep_ids",
        (3, None, "abc", "", b"a", {}, np.array(1), [1.5], [True], [[1]]),
    ),
    ("AttentionView", "html", (None, 3, b"x")),
    ("AttentionView", "title", (None, 3, b"x")),
]
CALLS = [
    pytest.param(function, name, value, id=f"{function}-{name}-{number}")
    for function, name, values in WRONG
    for number, value in enumerate(values)
]


@pytest.mark.parametrize("function, name, value", CALLS)
def test_wrong_arguments_raise(function, name, value, given):
    with pytest.raises(ValueError) as error:
        getattr(explain, function)(**(given[function] | {name: value}))
    message = str(error.value)
    assert f"`{name}`" in message and ". Received: " in message, message
    assert "\n" not in message and len(message) < 400


def test_the_valid_arguments_are_accepted(given):
    for name, arguments in given.items():
        assert getattr(explain, name)(**arguments) is not None


@pytest.mark.parametrize(
    "changed, name",
    [
        ({"weights": HOLED}, "maps"),
        ({"weights": -WEIGHTS}, "maps"),
        ({"weights": 6 * WEIGHTS}, "maps"),
        ({"weights": None}, "maps"),
        ({"weights": WEIGHTS[0]}, "maps"),
        ({"heads": (0,)}, "maps"),
        ({"heads": None}, "maps"),
        ({"heads": ("0", "1")}, "maps"),
        ({"layer": None}, "layer"),
        ({"call": "0"}, "call"),
        ({"query_tokens": [list("abcd")]}, "query_tokens"),
        ({"query_tokens": [list("abc")] * 2}, "query_tokens"),
        ({"query_tokens": ["abc"]}, "query_tokens"),
        ({"query_tokens": list("abc")}, "query_tokens"),
        ({"key_tokens": 3}, "key_tokens"),
        ({"key_tokens": [None]}, "key_tokens"),
    ],
)
def test_wrong_maps_raise(changed, name):
    with pytest.raises(ValueError, match=f"`{name}` .*Received: "):
        explain.view_attention([attention_map(**changed)])


GENERATOR = np.random.default_rng(0)
PATCHES = np.ones((2, 4, 4), "float32")


@pytest.mark.parametrize("random", [None, 3, np.random, "generator"])
def test_masks_are_drawn_by_a_generator(random):
    for masks in (explain.PatchMasks(), MASKS):
        with pytest.raises(ValueError, match="`random` must be"):
            masks.draw(random, (4, 4), 2)


@pytest.mark.parametrize("shape", [None, 3, "abc", (), (0, 4), (1.5, 2), [-1]])
def test_masks_of_no_shape(shape):
    for masks in (explain.PatchMasks(), MASKS):
        with pytest.raises(ValueError, match="`shape` must be"):
            masks.draw(GENERATOR, shape, 2)


@pytest.mark.parametrize("count", [None, 0, -1, 1.5, True, 2**40])
def test_counts_of_masks(count):
    for masks in (explain.PatchMasks(), MASKS):
        with pytest.raises(ValueError, match="`count` must be"):
            masks.draw(GENERATOR, (4, 4), count)


@pytest.mark.parametrize(
    "inputs, drawn, name",
    [
        (None, PATCHES, "inputs"),
        ("abc", PATCHES, "inputs"),
        (np.ones((4, 4)), None, "masks"),
        (np.ones((4, 4)), "abc", "masks"),
        (np.ones((4, 4)), PATCHES[:, :3], "masks"),
        (np.ones(4), PATCHES, "masks"),
        (3, PATCHES, "masks"),
    ],
)
def test_masks_that_do_not_fit(inputs, drawn, name):
    with pytest.raises(ValueError, match=f"`{name}` must be"):
        explain.PatchMasks().apply(inputs, drawn)
    with pytest.raises(ValueError, match="`masks` must be of shape"):
        MASKS.apply(IDS[0], PATCHES[0])


@pytest.mark.parametrize("path", [None, 3, b"x", "", [], "a\0b"])
def test_paths_of_a_view(path):
    with pytest.raises(ValueError, match="`path` must be a path"):
        explain.AttentionView("", "").save(path)


@pytest.mark.parametrize("row", NO_INDEX)
def test_rows_of_a_map(row):
    with pytest.raises(ValueError, match="`row` must"):
        attention_map().of(row)


def test_a_model_that_returns_nan():
    ids = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(9, 2, mask_zero=True)(ids)
    model = keras.Model(ids, keras.layers.Rescaling(NAN)(x))
    with pytest.raises(ValueError, match="`model` must return numbers"):
        explain.doctor(model, IDS)


def test_tokens_that_do_not_fit_the_source():
    decoded = decoding.Decoded(np.ones((1, 1, 2)), np.ones((1, 1)), None)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    with pytest.raises(ValueError, match="`model` must be a generative model"):
        explain.attention_maps(model, IDS, decoded=decoded)


def test_messages_end_with_what_was_received():
    with pytest.raises(ValueError) as error:
        explain.rollout([WEIGHTS], residual=NAN)
    assert re.fullmatch(
        r"`residual` must be a number\. Received: residual=nan",
        str(error.value),
    )


def test_a_model_without_attention():
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    with pytest.raises(ValueError, match="`model` must have a keras_attn att"):
        explain.attention_maps(model, np.ones((1, 3)))
