"""The cache against NumPy arrays."""

import keras
import numpy as np
import pytest
from keras import ops, tree

from keras_attn import cache as kv
from keras_attn.backend import compiled
from tests.helpers.ops_cases import normal, values

ROWS, LENGTH, LAYERS, HEADS = 2, 5, 2, 3


def empty(dtype="float32"):
    return kv.empty(ROWS, LENGTH, LAYERS, HEADS, 4, 6, dtype)


def tokens(count, layer=0, seed=0):
    keys = normal(ROWS, count, HEADS, 4, seed=10 * seed + layer)
    values = normal(ROWS, count, HEADS, 6, seed=10 * seed + layer + 5)
    return keys, values


def write(cache, count, seed):
    positions, cache = kv.open_slots(cache, count)
    for layer in range(LAYERS):
        keys, layer_values = tokens(
            count * cache.positions.shape[1] // kv.slots(cache), layer, seed
        )
        cache = kv.append(
            cache,
            layer,
            ops.convert_to_tensor(keys),
            ops.convert_to_tensor(layer_values),
        )
    return positions, kv.close_slots(cache, count)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_empty(dtype):
    cache = empty(dtype)
    keys, layer_values, _ = kv.read(cache, 1, HEADS)
    assert tuple(keys.shape) == (ROWS, LENGTH, HEADS, 4)
    assert tuple(layer_values.shape) == (ROWS, LENGTH, HEADS, 6)
    assert len(cache.keys) == len(cache.values) == LAYERS
    for tensor in (*cache.keys, *cache.values):
        assert keras.backend.standardize_dtype(tensor.dtype) == dtype
    assert values(cache.positions).tolist() == [[-1] * LENGTH] * ROWS
    assert int(cache.cursor) == 0
    assert kv.slots(cache) == LENGTH


def check_steps(step):
    """Writes 2, 1 and 2 tokens and checks all slots after each write."""
    expected = [np.zeros((ROWS, LENGTH, HEADS, 4 + 6))] * LAYERS
    expected = [array.copy() for array in expected]
    cache, cursor = empty(), 0
    for seed, count in enumerate([2, 1, 2]):
        positions, cache = step(cache, count, seed)
        slots = list(range(cursor, cursor + count))
        assert values(positions).tolist() == [slots] * ROWS
        for layer in range(LAYERS):
            both = np.concatenate(tokens(count, layer, seed), axis=-1)
            expected[layer][:, slots] = both
        cursor += count
        assert int(cache.cursor) == cursor
        for layer in range(LAYERS):
            keys, layer_values, known = kv.read(cache, layer, HEADS)
            np.testing.assert_array_equal(
                np.concatenate([values(keys), values(layer_values)], -1),
                expected[layer].astype("float32"),
            )
            row = [*range(cursor), *[-1] * (LENGTH - cursor)]
            assert values(known).tolist() == [row] * ROWS


def test_steps():
    check_steps(write)


def test_compiled_steps():
    program = compiled(
        lambda cache, count, seed: write(cache, len(count), len(seed)), []
    )

    def step(cache, count, seed):
        # Lengths of tuples are static in a compiled function.
        return program(cache, (0,) * count, (0,) * seed)

    check_steps(step)


def test_layers_are_independent():
    cache = empty()
    _, cache = kv.open_slots(cache, 1)
    keys, layer_values = map(ops.convert_to_tensor, tokens(1))
    cache = kv.append(cache, 1, keys, layer_values)
    assert not values(kv.read(cache, 0, HEADS)[0]).any()
    assert values(kv.read(cache, 1, HEADS)[0])[:, 0].all()


def test_positions_count_the_tokens_of_each_row():
    """Rows of different lengths share slots but not positions."""
    cache = empty()
    known = np.int32([[-1, 0, -1, -1, -1], [0, 1, -1, -1, -1]])
    cache = cache._replace(
        positions=ops.convert_to_tensor(known),
        cursor=ops.convert_to_tensor(2, dtype="int32"),
    )
    positions, cache = kv.open_slots(cache, 2)
    assert values(positions).tolist() == [[1, 2], [2, 3]]
    assert values(cache.positions).tolist() == [
        [-1, 0, 1, 2, -1],
        [0, 1, 2, 3, -1],
    ]


@pytest.mark.parametrize("rows", [[1, 0], [1, 1], [0, 1, 1, 0]])
def test_reorder_before_expand_beams(rows):
    _, cache = write(empty(), 3, 1)
    before = [
        tree.map_structure(values, kv.read(cache, i, HEADS)) for i in (0, 1)
    ]
    after = kv.reorder(cache, ops.convert_to_tensor(rows, dtype="int32"))
    for layer in range(LAYERS):
        for one, other in zip(
            kv.read(after, layer, HEADS), before[layer], strict=True
        ):
            np.testing.assert_array_equal(values(one), other[rows])
    assert int(after.cursor) == 3


WIDTH = 3


def histories(cache, layer, count=1):
    """Returns the keys and values that each hypothesis sees, by position."""
    keys, layer_values, positions = map(values, kv.read(cache, layer, HEADS))
    seen = values(kv.beam_mask(cache, count))[:, 0]
    assert seen.shape == (ROWS, WIDTH * count, keys.shape[1])
    assert (seen[:, ::count] == seen[:, count - 1 :: count]).all()
    both = np.concatenate([keys, layer_values], axis=-1)
    return [
        [
            dict(
                zip(
                    positions[source, token_mask],
                    both[source, token_mask],
                    strict=True,
                )
            )
            for token_mask in seen[source, ::count] & (positions[source] >= 0)
        ]
        for source in range(ROWS)
    ]


def check_reordered(step):
    """Writes two tokens, then three that each continue other hypotheses."""
    rng = np.random.default_rng(0)
    cache = kv.expand_beams(step(empty(), 2, 1)[1], WIDTH)
    prompt = np.concatenate(tokens(2, 1, 1), axis=-1)
    expected = [[list(prompt[row])] * WIDTH for row in range(ROWS)]
    for number in (2, 3, 4):
        cache = kv.grown(cache, 2)
        origins = rng.integers(0, WIDTH, (ROWS, WIDTH))
        rows = origins + WIDTH * np.arange(ROWS)[:, None]
        rows = ops.convert_to_tensor(rows.reshape(-1).astype("int32"))
        cache = kv.reorder(cache, rows)
        positions, cache = step(cache, 1, number)
        assert values(positions).tolist() == [[number]] * ROWS * WIDTH
        fresh = np.concatenate(tokens(WIDTH, 1, number), axis=-1)
        expected = [
            [
                [*expected[row][origin], fresh[row, own]]
                for own, origin in enumerate(origins[row])
            ]
            for row in range(ROWS)
        ]
        found = histories(cache, layer=1, count=number - 1)
        for row in range(ROWS):
            for own in range(WIDTH):
                history = found[row][own]
                assert sorted(history) == list(range(number + 1))
                for position, key in history.items():
                    np.testing.assert_array_equal(
                        key, expected[row][own][position]
                    )


def test_prompt_with_padding_in_between():
    token_mask = np.array([[1, 1, 0], [0, 1, 0]], "bool")
    positions, cache = kv.open_slots(
        empty(), 3, ops.convert_to_tensor(token_mask)
    )
    assert values(positions).tolist() == [[0, 1, -1], [-1, 0, -1]]
    cache = kv.close_slots(cache, 3)
    positions, cache = kv.open_slots(cache, 1)
    assert values(positions).tolist() == [[2], [1]]
    assert values(cache.positions).tolist() == [
        [0, 1, -1, 2, -1],
        [-1, 0, -1, 1, -1],
    ]


def test_reordered_hypotheses_keep_their_history():
    check_reordered(write)


def test_beam_mask_is_none_before_expand_beams():
    assert kv.beam_mask(empty(), 2) is None


def test_expand_beams_accepts_any_nest():
    nest = {"node": ops.convert_to_tensor([4, 5]), "step": ops.zeros(())}
    nest = kv.expand_beams(nest, 2)
    assert values(nest["node"]).tolist() == [4, 4, 5, 5]
    assert nest["step"].shape == ()


def test_reorder_accepts_any_nest():
    state = {
        "recurrent": (ops.convert_to_tensor(np.eye(3)),),
        "step": ops.convert_to_tensor(7),
    }
    after = kv.reorder(state, ops.convert_to_tensor([2, 0], dtype="int32"))
    np.testing.assert_array_equal(
        values(after["recurrent"][0]), np.eye(3)[[2, 0]]
    )
    assert int(after["step"]) == 7


@pytest.mark.parametrize("extra", [0, 3])
def test_grown(extra):
    _, cache = write(empty(), 3, 1)
    before = [
        tree.map_structure(values, kv.read(cache, i, HEADS)) for i in (0, 1)
    ]
    cache, other = kv.grown((cache, {"other": ops.ones((2, 5))}), extra)
    assert values(other["other"]).tolist() == [[1.0] * LENGTH] * ROWS
    assert int(cache.cursor) == 3
    for layer in range(LAYERS):
        keys, layer_values, positions = map(
            values, kv.read(cache, layer, HEADS)
        )
        for one, other in (
            (keys, before[layer][0]),
            (layer_values, before[layer][1]),
        ):
            np.testing.assert_array_equal(one[:, :LENGTH], other)
            assert not one[:, LENGTH:].any()
            assert one.shape[1] == LENGTH + extra
        assert positions.tolist() == [[0, 1, 2] + [-1] * (2 + extra)] * ROWS


def test_grown_cache_accepts_more_tokens():
    _, cache = write(empty(), LENGTH, 1)
    positions, cache = write(kv.grown(cache, 2), 2, 2)
    assert values(positions).tolist() == [[5, 6]] * ROWS
    assert values(cache.positions).tolist() == [list(range(7))] * ROWS
    keys, layer_values = tokens(2, layer=1, seed=2)
    found, found_values, _ = map(values, kv.read(cache, 1, HEADS))
    np.testing.assert_array_equal(found[:, 5:], keys)
    np.testing.assert_array_equal(found_values[:, 5:], layer_values)


def test_negative_count_raises():
    with pytest.raises(ValueError, match="`count` must be at least 0"):
        kv.grown(empty(), -1)


def test_from_projections():
    keys, layer_values = map(ops.convert_to_tensor, tokens(3))
    positions = ops.convert_to_tensor(np.int32([[0, 1, 2], [0, 1, -1]]))
    cache = kv.from_projections([keys], [layer_values], positions)
    assert int(cache.cursor) == 3
    for one, other in zip(
        kv.read(cache, 0, HEADS), (keys, layer_values, positions), strict=True
    ):
        np.testing.assert_array_equal(values(one), values(other))


POSITIONS = np.zeros((ROWS, 5), "int32")
KEYS = np.ones((ROWS, 5, HEADS, 4), "float32")
TOKEN = np.ones((ROWS, 1, HEADS, 4), "float32")
NO_COUNT = (None, True, -1, 1.5, "4", 2**40, np.ones((2, 2), "int32"))
NO_CACHE = (None, 3, "cache", {}, POSITIONS)
NO_LAYER = (None, True, -1, LAYERS, 0.5, "0")
NO_FEATURES = (None, 3, TOKEN[0], TOKEN[1:], TOKEN[..., :3], TOKEN > 0)

# Function, argument, wrong values.
WRONG = [
    *(
        ("empty", name, NO_COUNT)
        for name in "rows length layers heads key_dim value_dim".split()
    ),
    ("empty", "dtype", (None, 3, "int32", "float", [])),
    ("empty", "sliding_window", (0, True, 2.5, "3", [3], [3, 0], [])),
    ("from_projections", "keys", (None, [], KEYS, [KEYS[1:]], [KEYS > 0])),
    ("from_projections", "values", (None, [], KEYS, [KEYS] * 2, [3])),
    ("from_projections", "positions", (None, 3, POSITIONS[0], POSITIONS + 0.5)),
    ("slots", "cache", NO_CACHE),
    ("sources", "cache", NO_CACHE),
    ("open_slots", "cache", NO_CACHE),
    ("open_slots", "count", (*NO_COUNT, 0, LENGTH + 1)),
    ("open_slots", "token_mask", (3, [[True]], np.ones((ROWS, 2), bool))),
    ("append", "cache", NO_CACHE),
    ("append", "layer", NO_LAYER),
    ("append", "keys", NO_FEATURES),
    ("append", "values", NO_FEATURES),
    ("close_slots", "cache", NO_CACHE),
    ("close_slots", "count", NO_COUNT),
    ("read", "cache", NO_CACHE),
    ("read", "layer", NO_LAYER),
    ("read", "heads", (None, True, 0, 1.5, "4", 1000)),
    ("beam_mask", "cache", NO_CACHE),
    ("beam_mask", "count", NO_COUNT),
    ("beam_mask", "layer", NO_LAYER[1:]),
    ("expand_beams", "hypothesis", (None, 3, "abc", {"a": [None]})),
    ("expand_beams", "width", (*NO_COUNT, 0)),
    ("reorder", "hypothesis", (None, 3, "abc", {"a": [None]})),
    ("reorder", "rows", (None, 0, [0, 1], POSITIONS, np.zeros(2))),
    ("grown", "count", NO_COUNT),
    ("quantized", "hypothesis", (None, 3, "abc", {"a": [None]}, POSITIONS)),
]


@pytest.mark.one_backend
@pytest.mark.parametrize(
    ("function", "name", "values"), WRONG, ids=[f"{w[0]}-{w[1]}" for w in WRONG]
)
def test_wrong_arguments_raise(function, name, values):
    sizes = dict.fromkeys(["rows", "length", "layers", "heads"], 2)
    given = {
        "empty": {**sizes, "key_dim": 4, "value_dim": 4, "dtype": "float32"},
        "from_projections": {
            "keys": [KEYS],
            "values": [KEYS],
            "positions": POSITIONS,
        },
        "open_slots": {"count": 1},
        "append": {
            "layer": 0,
            "keys": TOKEN,
            "values": np.ones((ROWS, 1, HEADS, 6)),
        },
        "close_slots": {"count": 1},
        "read": {"layer": 0, "heads": HEADS},
        "beam_mask": {"count": 1},
        "expand_beams": {"width": 2},
        "reorder": {"rows": np.array([0, 1], "int32")},
        "grown": {"count": 1},
    }.get(function, {})
    if function not in ("empty", "from_projections"):
        nest = ("expand_beams", "reorder", "grown", "quantized")
        given = {"hypothesis" if function in nest else "cache": empty()} | given
    for value in values:
        with pytest.raises(ValueError) as error:
            getattr(kv, function)(**(given | {name: value}))
        message = str(error.value)
        assert f"`{name}`" in message and "Received: " in message, message


def test_cropped_rows_continue_as_if_nothing_had_been_there():
    """Another number of tokens is removed from each row, and read again."""
    rng = np.random.default_rng(3)
    keys = rng.normal(size=(2, 5, 2, 3)).astype("float32")
    wrong = rng.normal(size=(2, 3, 2, 3)).astype("float32")

    def appended(state, tokens):
        count = tokens.shape[1]
        positions, state = kv.open_slots(state, count)
        state = kv.append(state, 0, tokens, 2 * tokens)
        return positions, kv.close_slots(state, count)

    state = kv.empty(2, 8, 1, 2, 3, 3, "float32")
    _, state = appended(state, keys[:, :2])
    _, state = appended(state, wrong)
    # The first row keeps its tokens, the second none of the wrong ones.
    state = kv.crop(state, np.array([0, 3], "int32"))
    positions, state = appended(state, keys[:, 2:])
    assert ops.convert_to_numpy(positions).tolist() == [[5, 6, 7], [2, 3, 4]]
    assert ops.convert_to_numpy(kv.free_slots(state)).tolist() == [0, 3]
    found, doubled, positions = map(values, kv.read(state, 0, 2))
    first = np.concatenate([keys[0, :2], wrong[0], keys[0, 2:]])
    np.testing.assert_array_equal(found[0], first)
    np.testing.assert_array_equal(found[1, :5], keys[1])
    np.testing.assert_array_equal(doubled[1, :5], 2 * keys[1])
    assert positions[1].tolist() == [0, 1, 2, 3, 4, -1, -1, -1]
    with pytest.raises(ValueError, match="after `crop`"):
        kv.expand_beams(state, 2)
    rows = ops.convert_to_tensor(np.array([1, 0, 1], "int32"))
    state = kv.reorder(state, rows)
    free = ops.convert_to_numpy(kv.free_slots(state))
    assert free.tolist() == [3, 0, 3]
    with pytest.raises(ValueError, match="`count` must be a scalar"):
        kv.crop(state, np.zeros(2, "int32"))
