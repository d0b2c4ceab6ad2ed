"""`generate` on ragged data sets: order, batches, programs, progress."""

import functools
import sys

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.decoding import BeamSearch, GreedySearch, Sampling, generate
from keras_attn.decoding.row_batches import in_order, row_batches
from keras_attn.decoding.token_rows import few_lengths, padded, token_rows
from tests.decoding.markov import Markov
from tests.decoding.markov_cases import by_brute_force, markov
from tests.helpers.brute_force import assert_same
from tests.helpers.cases import once
from tests.helpers.tiny_models import (
    SOURCE,
    talkative_transformer,
    tiny_transformer,
)

COMPILED = keras.backend.backend() in ("jax", "tensorflow")
# Unordered lengths that are padded to two batch lengths.
LENGTHS = (3, 20, 1, 17, 8)
RNG = np.random.default_rng(3)
ROWS = [RNG.integers(3, 11, size=length).tolist() for length in LENGTHS]


@pytest.fixture(scope="module")
def model():
    return talkative_transformer(seed=8)


@pytest.mark.parametrize(
    "strategy", [BeamSearch(3, 2), *once([GreedySearch()])]
)
def test_rows_are_decoded_in_order_as_if_alone(model, strategy):
    weights = isinstance(strategy, BeamSearch)
    together = model.generate(
        ROWS, 5, strategy, batch_size=2, return_weights=weights
    )
    if weights:
        # As long as the longest source.
        assert together.weights.shape == (5, 2, 1, 2, 5, 20)
    for row, source in enumerate(ROWS):
        alone = model.generate([source], 5, strategy, return_weights=weights)
        np.testing.assert_array_equal(alone.tokens[0], together.tokens[row])
        np.testing.assert_array_equal(alone.lengths[0], together.lengths[row])
        np.testing.assert_allclose(
            alone.scores[0], together.scores[row], rtol=1e-5, atol=1e-5
        )
        if weights:
            found, length = together.weights[row], len(source)
            assert alone.weights.shape[-1] == length
            np.testing.assert_allclose(
                found[..., :length], alone.weights[0], atol=1e-5
            )
            assert not found[..., length:].any()
    # Results differ, so their order is tested.
    assert len(np.unique(together.scores[:, 0].round(3))) == len(ROWS)


def test_samples_do_not_depend_on_the_other_rows():
    model = markov()
    strategy = Sampling(seed=4, num_return_sequences=3)
    together = generate(model, ROWS, 4, strategy, batch_size=2)
    for row, source in enumerate(ROWS):
        alone = generate(model, [source], 4, strategy)
        np.testing.assert_array_equal(alone.tokens[0], together.tokens[row])
        np.testing.assert_allclose(
            alone.scores[0], together.scores[row], rtol=1e-5
        )


def test_accepted_forms_of_ragged_rows(model):
    expected = model.generate(ROWS, max_new_tokens=5)
    wide = np.zeros((5, 37), "int64")
    for target, row in zip(wide, ROWS, strict=True):
        target[: len(row)] = row
    for form in (
        [np.array(row, "uint8") for row in ROWS],
        [ops.convert_to_tensor(np.array(row, "int32")) for row in ROWS],
        tuple(ROWS),
        [[*row, 0, 0] for row in ROWS],
        wide,
        ops.convert_to_tensor(wide.astype("int32")),
    ):
        found = model.generate(form, max_new_tokens=5)
        np.testing.assert_array_equal(found.tokens, expected.tokens)
        np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-6)
    with_weights = model.generate(wide, max_new_tokens=5, return_weights=True)
    assert with_weights.weights.shape[-1] == 37


def test_prefixes_match_their_ragged_rows(model):
    prefix = [[3 + row] for row in range(5)]
    decoded = model.generate(ROWS, max_new_tokens=5, prefix=prefix)
    assert decoded.tokens[:, 0, 0].tolist() == [3, 4, 5, 6, 7]


def test_a_ragged_list_needs_no_layer():
    model = markov()
    rows = [[3, 2], [4], [5, 6, 7, 2], [9, 2], [8, 2]]
    firsts = np.array([row[:1] for row in rows])
    for form in (rows, [np.array(row) for row in rows]):
        decoded = generate(model, form, 4, "greedy", batch_size=2)
        assert_same(decoded, by_brute_force(model, firsts, 4))


def test_tuple_of_arrays_is_not_a_ragged_list():
    class TwoInputs(Markov):
        def start_decoding(self, inputs, max_new_tokens):
            first, second = inputs
            both = ops.stack([first, second], axis=1)
            return super().start_decoding(both, max_new_tokens)

    table = ops.convert_to_numpy(markov().variables[0])
    first, second = np.array([3, 4, 5], "int32"), np.zeros(3, "int32")
    model = TwoInputs(table)
    decoded = generate(model, (first, second), 4, "greedy")
    assert_same(decoded, by_brute_force(model, first[:, None], 4))


@pytest.mark.every_backend
@pytest.mark.parametrize("batch_size", [1, 4, 32])
def test_twenty_lengths_compile_four_programs(batch_size):
    lengths = RNG.permutation(np.linspace(1, 300, 20).astype(int))
    assert len(set(lengths)) == 20
    prompts = [RNG.integers(3, 9, size=length).tolist() for length in lengths]
    model = markov()
    generate(model, prompts, 3, "greedy", batch_size=batch_size)
    for prompt in prompts if batch_size == 1 else ():
        generate(model, [prompt], 3, "greedy", batch_size=batch_size)
    shapes = set(model.sources)
    assert len(shapes) <= 4
    assert {rows for rows, _ in shapes} == {min(batch_size, 20)}
    if COMPILED:
        # Python runs once per compiled program.
        assert len(model.sources) == len(shapes)


def test_few_lengths():
    found = [few_lengths(length) for length in range(1, 5000)]
    assert set(found) == {16, 32, 96, 320, 1024, 3072, 9216}
    assert all(np.diff(found) >= 0)
    assert all(
        length <= few <= max(16, 3.4 * length)
        for length, few in enumerate(found, start=1)
    )
    assert few_lengths(33, limit=40) == 40
    assert few_lengths(16, limit=40) == 16


def test_batch_length_is_limited_by_the_position_table():
    model = talkative_transformer(
        seed=8, position_embedding="learned", max_sequence_length=20
    )
    together = model.generate(ROWS, max_new_tokens=5)
    alone = model.generate(ROWS[1:2], max_new_tokens=5)
    np.testing.assert_array_equal(alone.tokens[0], together.tokens[1])


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_batches_have_rows_of_similar_length_longest_first(size):
    rows = token_rows(ROWS, pad_id=0)
    batches = row_batches(rows, size)
    assert {len(chosen) for chosen in batches} == {size}
    order = np.concatenate(batches)
    assert (np.diff([len(rows[number]) for number in order]) <= 0).all()
    assert sorted(order[:5]) == list(range(5))
    assert (order[5:] == order[4]).all()
    parts = [(chosen * 10, chosen[:, None] * [[1, 1]]) for chosen in batches]
    tens, pairs = in_order(parts, batches, 5)
    assert tens.tolist() == [0, 10, 20, 30, 40]
    assert pairs.tolist() == [[n, n] for n in range(5)]


def test_rows_of_equal_length_keep_their_order():
    chosen = np.concatenate(row_batches(np.zeros((5, 2)), 2))
    assert chosen.tolist() == [0, 1, 2, 3, 4, 4]


def test_only_trailing_padding_is_removed():
    # Left and inner padding is part of the row.
    rows = token_rows([[0, 5, 0, 6, 0, 0], [7]], pad_id=0)
    assert [row.tolist() for row in rows] == [[0, 5, 0, 6], [7]]
    ids = padded(rows, pad_id=0)
    assert ids.shape == (2, 16) and ids.dtype == "int32"
    assert ids[0, :6].tolist() == [0, 5, 0, 6, 0, 0]


def shown(capsys, monkeypatch, terminal, **arguments):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal, raising=False)
    generate(markov(), ROWS, 3, "greedy", **arguments)
    return capsys.readouterr()


def test_progress_is_shown_for_several_batches_on_a_terminal(
    capsys, monkeypatch
):
    show = functools.partial(shown, capsys, monkeypatch)
    for terminal, arguments in (
        (True, {"batch_size": 2}),
        (True, {"batch_size": 2, "verbose": 1}),
        (False, {"verbose": 1}),
    ):
        out = show(terminal, **arguments).out
        assert "5/5" in out and "sentences/s: " in out, (terminal, arguments)
    for terminal, arguments in (
        (True, {}),
        (False, {"batch_size": 2}),
        (True, {"batch_size": 2, "verbose": 0}),
    ):
        assert show(terminal, **arguments) == ("", ""), (terminal, arguments)


@pytest.mark.parametrize(
    "rows, message",
    [
        ([[5, 6], []], "`inputs` must hold a token in every row.*: nothing in"),
        ([[5, 6], [0, 0]], "`inputs` must hold a token.*padding in row 1"),
        ([], "`inputs` must hold at least one row.*none"),
        ([[5, 6], [4, 11]], r"`inputs` must lie in \[0, 11\).*from 4 to 11"),
        ([[5, -6], [4]], r"`inputs` must lie in \[0, 11\).*from -6 to 5"),
        ([[5, 2**40], [4]], r"`inputs` must lie in \[0, 11\)"),
        ([[5, 6.5], [4]], r"`inputs` must hold integers.*float64 in row 0"),
        ([[True], [4]], r"`inputs` must hold integers.*bool in row 0"),
        ([[5], ["a"]], r"`inputs` must be rows of token ids.*'a'.*for row 1"),
        ([[5], "a"], r"`inputs` must be rows of token ids, not text.*'a'"),
        ([5, 6], r"`inputs` must be rows of token ids.*5 for row 0"),
        ([[5], [[6]]], r"`inputs` must be rows of token ids.*for row 1"),
    ],
)
def test_invalid_rows_raise(model, rows, message):
    with pytest.raises(ValueError, match=message):
        model.generate(rows, max_new_tokens=3)


@pytest.mark.parametrize(
    "inputs, message",
    [
        ([], "`inputs` must hold at least one row.*none"),
        ([[5], []], "`inputs` must hold a token in every row.*row 1"),
        ([[5], [-1]], r"`inputs` must lie in \[0\).*from -1"),
        (np.zeros((0, 3), "int32"), "`inputs` must hold at least one row.*0"),
        (np.int32(3), "`inputs` must hold at least one row"),
        (
            (np.ones((2, 3)), np.ones((4, 3))),
            r"`inputs` .*same number in each array.*\[2, 4\] rows",
        ),
    ],
)
def test_invalid_inputs_of_a_custom_model_raise(inputs, message):
    with pytest.raises(ValueError, match=message):
        generate(markov(), inputs, 3, "greedy")


@pytest.mark.parametrize("verbose", ["always", 2, None])
def test_invalid_verbosity_raises(model, verbose):
    with pytest.raises(ValueError, match="`verbose` must be one of 'auto', 0"):
        model.generate(SOURCE, max_new_tokens=3, verbose=verbose)


def test_row_longer_than_the_position_table_raises():
    model = tiny_transformer(
        position_embedding="learned", max_sequence_length=6
    )
    with pytest.raises(ValueError, match=r"`inputs` must not exceed.*=6.*7"):
        model.generate([[5], [5] * 7], max_new_tokens=3)
