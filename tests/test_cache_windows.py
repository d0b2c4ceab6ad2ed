"""Caches of layers with sliding windows, against lists of tokens."""

import numpy as np
import pytest
from keras import ops, tree

import keras_attn
from keras_attn import cache as kv
from keras_attn.decoding import BeamSearch, Sampling, loop
from keras_attn.layers import ALiBiPosition, RotaryPosition
from tests.helpers.contract import randomize
from tests.helpers.ops_cases import values

ROWS, HEADS, SIZE = 2, 2, 3
WINDOWS = [3, None, 8]


class Histories:
    """A cache beside one list of tokens per hypothesis."""

    def __init__(self, length):
        self.rng = np.random.default_rng(0)
        self.cache = kv.empty(
            ROWS, length, len(WINDOWS), HEADS, SIZE, SIZE, "float32", WINDOWS
        )
        self.beams = 1
        self.tokens = [[] for _ in range(ROWS)]

    def write(self, count, mask=None):
        """Writes tokens and checks what each of them sees in each layer."""
        width, rows = self.beams, ROWS * self.beams
        given = None if mask is None else ops.convert_to_tensor(mask)
        positions, self.cache = kv.open_slots(self.cache, count, given)
        fresh = self.rng.normal(size=(rows, count, HEADS, SIZE))
        fresh = fresh.astype("float32")
        shape = ROWS, width * count, HEADS, SIZE
        for row in range(rows):
            kept = fresh[row] if mask is None else fresh[row][mask[row]]
            self.tokens[row] = [*self.tokens[row], *kept]
        positions = values(positions)
        for layer, window in enumerate(WINDOWS):
            new = fresh.reshape(shape) * (layer + 1)
            self.cache = kv.append(
                self.cache,
                layer,
                ops.convert_to_tensor(new),
                ops.convert_to_tensor(-new),
            )
            seen = self.seen(layer, count)
            for row in range(rows):
                for position in positions[row][positions[row] >= 0]:
                    self.check(seen[row], row, layer, position, window)
        self.cache = kv.close_slots(self.cache, count)
        for layer, window in enumerate(WINDOWS):
            seen = self.seen(layer, 1)
            for row, tokens in enumerate(self.tokens):
                self.check(seen[row], row, layer, len(tokens) - 1, window)

    def seen(self, layer, count):
        """The keys and values of each hypothesis, a dict by position."""
        keys, found, positions = map(values, kv.read(self.cache, layer, HEADS))
        np.testing.assert_array_equal(found, -keys)
        mask = kv.beam_mask(self.cache, count, layer)
        if mask is None:
            mask = np.ones((ROWS, 1, self.beams * count, keys.shape[1]), bool)
        mask = values(mask)[:, 0, ::count] & (positions >= 0)[:, None]
        return [
            [
                (position, key)
                for position, key in zip(
                    positions[source][own], keys[source][own], strict=True
                )
            ]
            for source in range(ROWS)
            for own in mask[source]
        ]

    def check(self, seen, row, layer, position, window):
        first = 0 if window is None else max(position - window + 1, 0)
        kept = [pair for pair in seen if first <= pair[0] <= position]
        assert sorted(p for p, _ in kept) == list(range(first, position + 1))
        for p, key in kept:
            expected = self.tokens[row][p] * (layer + 1)
            np.testing.assert_array_equal(key, expected)

    def expand(self, width):
        self.cache = kv.expand_beams(self.cache, width)
        self.beams = width
        self.tokens = [t for t in self.tokens for _ in range(width)]

    def reorder(self, rows):
        rows = np.int32(rows)
        self.cache = kv.reorder(self.cache, ops.convert_to_tensor(rows))
        self.tokens = [self.tokens[row] for row in rows]

    def grow(self, count):
        self.cache = kv.grown(self.cache, count)

    def slots(self):
        found = [
            kv.read(self.cache, layer, HEADS)[2].shape[1] // self.beams
            for layer in range(len(WINDOWS))
        ]
        assert kv.slots(self.cache) == found[1]
        return found


RAGGED = np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]], bool)


def test_ragged_rows():
    known = Histories(6)
    assert known.slots() == [3, 6, 6]
    known.write(5, RAGGED)
    known.write(1)
    known.grow(6)
    assert known.slots() == [3, 12, 8]
    known.write(1)
    known.write(4, np.array([[0, 1, 0, 1], [1, 1, 1, 0]], bool))
    known.reorder([1, 0])
    known.grow(8)
    assert known.slots() == [3, 20, 8]
    known.write(1, np.array([[1], [0]], bool))
    known.write(5)
    known.write(1)


def test_beams():
    known = Histories(7)
    known.write(5, RAGGED)
    known.expand(2)
    known.write(1)
    known.reorder([1, 1, 2, 3])
    known.write(1)
    known.grow(3)
    assert known.slots() == [3, 10, 8]
    known.reorder([1, 0, 3, 3])
    known.write(2)
    known.reorder([0, 0, 2, 3])
    known.write(1)
    with pytest.raises(ValueError, match="`token_mask` must be None"):
        kv.open_slots(known.cache, 1, ops.ones((4, 1), "bool"))


def test_memory_is_bounded_by_the_window():
    sizes = []
    for length in 8, 800:
        cache = kv.empty(4, length, 2, 2, 16, 16, "float32", 4)
        parts = [*tree.flatten(cache.keys), *tree.flatten(cache.values)]
        sizes.append(sum(4 * int(np.prod(part.shape)) for part in parts))
        cache = kv.grown(cache, length)
        parts = [*tree.flatten(cache.keys), *tree.flatten(cache.values)]
        sizes.append(sum(4 * int(np.prod(part.shape)) for part in parts))
        # The positions of tokens and ring, and the cursor.
        others = tree.flatten((cache.positions, cache.rings, cache.cursor))
        numbers = sum(int(np.prod(part.shape)) for part in others)
        assert numbers == 4 * (2 * length + 4) + 1
    # Keys and values: layers, rows, slots, heads, features, bytes.
    assert sizes == [2 * 2 * 4 * 4 * 2 * 16 * 4] * 4


VOCABULARY, PROMPTS = 13, [[3, 4, 5, 6, 7, 8, 9], [5], [7, 8, 9]]
STRATEGIES = {
    "greedy": "greedy",
    "beams": BeamSearch(3, num_return_sequences=2),
    "samples": Sampling(seed=3, num_return_sequences=2),
}
POSITIONS = {
    "rotary": lambda: {"attention_position": RotaryPosition()},
    "alibi": lambda: {"attention_position": ALiBiPosition(2)},
    "sinusoidal": lambda: {"position_embedding": "sinusoidal"},
}


@pytest.mark.every_backend
@pytest.mark.parametrize(
    ("windows", "positions", "strategy"),
    [
        ([3, None], "rotary", "beams"),
        (3, "sinusoidal", "greedy"),
        ([6, 3], "alibi", "samples"),
    ],
)
def test_searches_equal_those_of_full_caches(
    windows, positions, strategy, monkeypatch
):
    """Prompts below and above the windows, and windows that fill later."""
    monkeypatch.setattr(loop, "FIRST_LENGTH", 3)
    options = {"position_embedding": None} | POSITIONS[positions]()
    model = keras_attn.models.GPT(
        VOCABULARY,
        num_layers=2,
        num_heads=2,
        hidden_dim=4,
        intermediate_dim=4,
        sliding_window=windows,
        end_id=None,
        **options,
    )
    randomize(model)
    empty, found = kv.empty, []

    def without_windows(*sizes):
        assert sizes[7] == model.sliding_window
        return empty(*sizes[:7])

    for make in (empty, without_windows):
        monkeypatch.setattr(kv, "empty", make)
        # Not the same program again.
        model = keras_attn.models.GPT.from_config(model.get_config())
        randomize(model)
        found.append(model.generate(PROMPTS, 6, STRATEGIES[strategy]))
    assert (found[0].tokens == found[1].tokens).all()
    np.testing.assert_allclose(found[0].scores, found[1].scores, atol=1e-5)


def test_a_ring_cannot_be_cropped():
    cache = kv.empty(2, 8, 2, 1, 4, 4, "float32", sliding_window=[None, 3])
    with pytest.raises(ValueError, match=r"in every layer.*windows of 3"):
        kv.crop(cache, np.array([0, 1], "int32"))
    cache = kv.empty(2, 3, 2, 1, 4, 4, "float32", sliding_window=[None, 3])
    assert values(kv.crop(cache, np.array([0, 0], "int32")).cursor).max() == 0
