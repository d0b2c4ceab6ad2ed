"""Data, measures and plots of the tutorial on model interpretation."""

import keras
import morse_letters
import number_pairs
import numpy as np
import pronouns
import pytest
import sorted_numbers
from token_gradients import gradient_times_input
from token_strips import Strips, draw_strips

from keras_attn.models import Encoder, TokenClassifier
from tests.helpers.contract import randomize

one_backend = pytest.mark.one_backend


@one_backend
def test_last_word_determines_the_referent():
    for words, right in (
        (("animal", "street", "tired"), "animal"),
        (("animal", "street", "wide"), "street"),
        (("box", "bag", "big"), "box"),
        (("box", "bag", "small"), "bag"),
    ):
        one = pronouns.of_words(*words)
        text = pronouns.words(one.tokens[0])
        assert text[-2:] == [words[-1], "."]
        assert text[one.it[0]] == "it"
        assert text[one.right[0]] == right
        assert {text[one.right[0]], text[one.wrong[0]]} == set(words[:2])
        assert text[one.deciding[0]] == words[-1]
        labels = one.labels[0]
        assert pronouns.VOCABULARY[labels[one.it[0]]] == right
        assert np.count_nonzero(labels) == 1


@one_backend
@pytest.mark.parametrize("kept", [False, True])
def test_drawn_sentences_match_their_annotations(kept):
    drawn = pronouns.draw(400, seed=3, kept=kept)
    suits = {
        **dict.fromkeys(pronouns.OF_ANIMALS, pronouns.ANIMALS),
        **dict.fromkeys(pronouns.OF_PLACES, pronouns.PLACES),
        **dict.fromkeys(pronouns.OF_INNER + pronouns.OF_OUTER, pronouns.THINGS),
    }
    starts = set()
    for row in range(400):
        text = pronouns.words(drawn.tokens[row])
        right, wrong = text[drawn.right[row]], text[drawn.wrong[row]]
        adjective = text[drawn.deciding[row]]
        assert text[drawn.it[row]] == "it" and right in suits[adjective]
        if right in pronouns.THINGS:
            first = text.index("into") > drawn.right[row]
            assert first == (adjective in pronouns.OF_INNER)
            assert wrong in pronouns.THINGS
        starts.add(text[0])
    assert starts == {"the", "because"}
    again = pronouns.draw(400, seed=3, kept=kept)
    np.testing.assert_array_equal(drawn.tokens, again.tokens)


@one_backend
def test_held_out_noun_pairs_are_not_in_training():
    def pairs(drawn):
        return {
            frozenset(
                pronouns.VOCABULARY[drawn.tokens[row, position]]
                for position in (drawn.right[row], drawn.wrong[row])
            )
            for row in range(len(drawn.tokens))
        }

    learned, kept = (pairs(pronouns.draw(2000, 0, kept)) for kept in (0, 1))
    assert len(kept) > 10 and not learned & kept
    # Each noun occurs in training.
    assert set().union(*kept) <= set().union(*learned)


@one_backend
def test_words_are_masked_except_it():
    drawn = pronouns.draw(200, seed=1)
    hidden = pronouns.hide(drawn, seed=2)
    changed = hidden != drawn.tokens
    assert (hidden[changed] == pronouns.HIDDEN).all()
    assert 0.3 < changed[drawn.tokens != 0].mean() < 0.6
    rows = np.arange(200)
    assert (hidden[rows, drawn.it] == pronouns.IT).all()
    assert (hidden[drawn.tokens == 0] == 0).all()


@one_backend
def test_pairs_of_numbers():
    pairs = number_pairs.of_numbers([(10, 4), (52, 57), (8, 8), (831, 838)])
    assert [number_pairs.SIGNS[i] for i in pairs.answers] == list("><=<")
    assert number_pairs.text(pairs.tokens[0]) == list("?10:4")
    assert number_pairs.first_difference(pairs).tolist() == [-1, 1, -1, 2]
    with pytest.raises(ValueError, match="at most 3 digits"):
        number_pairs.of_numbers([(1000, 4)])


@one_backend
def test_every_digit_decides_some_pairs():
    pairs = number_pairs.draw(4000, seed=5)
    for row in range(50):
        text = "".join(number_pairs.text(pairs.tokens[row]))
        assert text == "?{}:{}".format(*pairs.numbers[row])
        first, second = pairs.numbers[row]
        sign = number_pairs.SIGNS[pairs.answers[row]]
        assert eval(f"{first} {sign.replace('=', '==')} {second}")
    assert np.bincount(pairs.answers).min() > 300
    decides = number_pairs.first_difference(pairs)
    three = (pairs.numbers >= 100).all(-1)
    assert min((decides[three] == digit).sum() for digit in range(3)) > 50
    hidden = number_pairs.hide(pairs, seed=1)
    changed = hidden != pairs.tokens
    assert (hidden[changed] == number_pairs.HIDDEN).all()
    assert (pairs.tokens[changed] >= number_pairs.ZERO).all()


@one_backend
@pytest.mark.parametrize("share", [0.0, 0.9])
def test_numbers_and_their_sorted_digits(share):
    rows = sorted_numbers.draw(300, 6, seed=4, hidden=share)
    holes = rows.sources == sorted_numbers.HIDDEN
    assert holes.any() == (share > 0)
    for source, target, label in zip(*rows, strict=True):
        seen = sorted(source[source >= sorted_numbers.ZERO].tolist())
        assert len(set(seen)) == len(seen)
        assert target[0] == sorted_numbers.START
        assert target[1 : 1 + len(seen)].tolist() == seen
        assert label[: len(seen) + 1].tolist() == [*seen, sorted_numbers.END]
        assert not target[1 + len(seen) :].any()
        assert not label[1 + len(seen) :].any()
    names = sorted_numbers.text(rows.labels[0])
    assert names[-1] == "end" and names[:-1] == [
        str(i - sorted_numbers.ZERO) for i in rows.labels[0, : len(names) - 1]
    ]


@one_backend
def test_two_letter_sounds():
    sounds = morse_letters.draw(12, seed=2, snr=60.0)
    assert sounds.samples.shape == (12, 14_400)
    loud = morse_letters.loudness(sounds.samples)
    assert loud.shape == (12, morse_letters.FRAMES, 1)
    for row in range(12):
        first, last = sounds.spans[row]
        assert sounds.texts[row][0] == morse_letters.LETTERS[sounds.labels[row]]
        frames = loud[row, :, 0]
        start, stop = round(first / 80), round(last / 80)
        assert frames[: start - 1].max() < 0.1  # silence before it
        assert frames[start + 1] > 0.5 and frames[stop - 2] > 0.5
        # Followed by a gap of three dots, at least 43 ms.
        assert frames[stop + 1 : stop + 11].max() < 0.1
    assert not morse_letters.loudness(np.zeros((1, 14_400), "float32")).any()


def test_gradient_times_input_matches_finite_differences():
    vocabulary = 9
    model = TokenClassifier(
        Encoder(vocabulary, 1, 2, 8, 16, dropout=0.3), vocabulary, dropout=0.3
    )
    randomize(model)
    tokens = np.array([[3, 4, 3, 5], [6, 7, 0, 0]], "int32")
    directions = np.random.default_rng(0).normal(size=(2, 4, vocabulary))
    directions[1, 2:] = 0
    before = [keras.ops.convert_to_numpy(w).copy() for w in model.weights]
    found = gradient_times_input(model, tokens, directions)
    assert found.shape == (2, 4) and not found[1, 2:].any()
    for weight, old in zip(model.weights, before, strict=True):
        np.testing.assert_array_equal(keras.ops.convert_to_numpy(weight), old)

    def said(row):
        logits = keras.ops.convert_to_numpy(model(tokens[row : row + 1]))[0]
        return float((logits * directions[row]).sum())

    # Tokens 4, 6 and 7 occur once each: scale their rows slightly.
    (table,) = (w for w in model.weights if "token_embedding" in w.path)
    vectors = keras.ops.convert_to_numpy(table).copy()
    for row, position in ((0, 1), (0, 3), (1, 0), (1, 1)):
        step, values = 3e-3, []
        for sign in (1, -1):
            moved = vectors.copy()
            moved[tokens[row, position]] *= 1 + sign * step
            table.assign(moved)
            values.append(said(row))
        table.assign(vectors)
        slope = (values[0] - values[1]) / (2 * step)
        np.testing.assert_allclose(found[row, position], slope, 2e-2, 2e-3)
    # Both occurrences of token 3 together.
    values = []
    for sign in (1, -1):
        moved = vectors.copy()
        moved[3] *= 1 + sign * step
        table.assign(moved)
        values.append(said(0))
    slope = (values[0] - values[1]) / (2 * step)
    np.testing.assert_allclose(found[0, [0, 2]].sum(), slope, 2e-2, 2e-3)


def test_invalid_directions_raise():
    model = TokenClassifier(Encoder(9, 1, 1, 4, 8), 5)
    with pytest.raises(ValueError, match=r"here \(1, 2, 5\)"):
        gradient_times_input(model, [[3, 4]], np.zeros((1, 2, 4)))


@one_backend
def test_strip_plots_show_their_values():
    one = Strips(list("abc"), {"x": [0.1, 0.2, 0.3], "y": [0, 0.5, 1]}, "t")
    other = Strips(list("ab"), {"z": [0.4, -0.5]}, "u")
    figure = draw_strips([[one, other]], maximum=0.8, colormap="RdBu")
    first, second, bar = figure.axes
    assert first.get_title() == "t" and bar.get_ylabel() == "weight"
    assert [label.get_text() for label in first.get_yticklabels()] == ["x", "y"]
    assert [label.get_text() for label in second.get_xticklabels()] == [
        "a",
        "b",
    ]
    np.testing.assert_allclose(
        first.images[0].get_array(), [[0.1, 0.2, 0.3], [0, 0.5, 1]]
    )
    assert second.images[0].get_clim() == (-0.8, 0.8)
    plain = draw_strips([[one]])
    assert plain.axes[0].images[0].get_clim() == (0, 1)
