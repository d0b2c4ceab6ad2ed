"""Measures of the tutorial on recurrent translators."""

import doctest
import itertools
import math
import types

import length_scores
import matplotlib
import numpy as np
import planted_slips
import pytest
import recurrent_settings
import translation_arms
from arm_plots import draw_alignments, draw_by_length
from length_scores import length_groups, scores_by_length
from planted_slips import plant_slips, right_behind
from rising_sampling import RisingSampling
from translation_arms import (
    ARMS,
    build_arm,
    equal_widths,
    parameters,
    read_arms,
)

pytestmark = pytest.mark.one_backend

RUN = recurrent_settings.Settings()


@pytest.mark.parametrize(
    "module", [length_scores, planted_slips, translation_arms]
)
def test_docstring_examples(module):
    found = doctest.testmod(module)
    assert found.attempted and not found.failed


@pytest.mark.parametrize("name", ARMS)
def test_parameter_formula_matches_the_models(name):
    run = RUN._replace(layers=2, blocks=2)
    model = build_arm(name, 8, 11, run)
    assert parameters(name, 8, 11, run) == model.count_params()


@pytest.mark.parametrize(
    "base", [RUN, RUN._replace(**recurrent_settings.CORPUS)]
)
def test_arms_have_equal_parameter_counts(base):
    widths = equal_widths(ARMS, base.vocabulary, base)
    assert widths["additive"] == base.width
    counts = {
        name: parameters(name, width, base.vocabulary, base)
        for name, width in widths.items()
    }
    for name, count in counts.items():
        assert abs(count / counts["additive"] - 1) < 0.02
        step = 2 if name != "transformer" else base.heads
        assert widths[name] % step == 0
        for other in (widths[name] - step, widths[name] + step):
            # Adjacent widths are not closer.
            nearer = parameters(name, other, base.vocabulary, base)
            assert abs(nearer - counts["additive"]) >= abs(
                count - counts["additive"]
            )
    # The width compensates for the parameters of attention.
    assert widths["none"] > widths["additive"]


def test_widths_of_a_quick_run():
    run = RUN._replace(**recurrent_settings.QUICK)
    assert set(equal_widths(ARMS, run.vocabulary, run)) == {*ARMS}


def test_unreachable_parameter_count_raises():
    with pytest.raises(ValueError, match=r"WIDTH must be such .* WIDTH=2:"):
        equal_widths(["transformer"], 50, RUN._replace(width=2))


@pytest.mark.parametrize(
    "text", ["", "none,none", "none,dot", "none,,general", " , "]
)
def test_invalid_arms_raise(text):
    with pytest.raises(ValueError, match="ARMS must name some of none, add"):
        read_arms(text)


def test_groups_contain_every_length_once():
    draw = np.random.default_rng(0)
    for count in range(1, 8):
        lengths = draw.integers(1, 20, draw.integers(1, 60)).tolist()
        groups = length_groups(lengths, count)
        assert 1 <= len(groups) <= count
        assert groups[0][0] == min(lengths) and groups[-1][1] == max(lengths)
        for (_, end), (start, _) in itertools.pairwise(groups):
            assert start == end + 1
        for length in lengths:
            assert sum(a <= length <= b for a, b in groups) == 1


def test_groups_have_similar_sizes():
    lengths = np.random.default_rng(1).integers(0, 1000, 6000).tolist()
    found = np.array(lengths)
    for start, end in length_groups(lengths, 6):
        assert 950 < ((found >= start) & (found <= end)).sum() < 1050


@pytest.mark.parametrize("lengths, count", [([], 3), ([1], 0)])
def test_invalid_groups_raise(lengths, count):
    with pytest.raises(ValueError, match="`lengths` must not be empty"):
        length_groups(lengths, count)


def test_scores_are_computed_per_length():
    right = "the cat sat on the mat"
    translations = [right, "a b c d e", right, right]
    references = [[right, "x"], ["f g h i j"], ["x", right], ["a cat is here"]]
    found = scores_by_length(
        translations, references, [6, 5, 6, 9], [(1, 4), (5, 5), (6, 8), (5, 9)]
    )
    assert [row["sentences"] for row in found] == [0, 1, 2, 4]
    assert [row["words"] for row in found][2] == (6, 8)
    assert math.isnan(found[0]["bleu"]) and math.isnan(found[0]["right"])
    assert found[1]["right"] == 0 and found[1]["bleu"] < 1
    assert found[2]["right"] == 1
    assert found[2]["bleu"] == pytest.approx(100)
    assert found[3]["right"] == 0.5


def slips_of(rows, length, seed=0):
    """Returns inputs, labels, logits, slips and their positions."""
    draw = np.random.default_rng(seed)
    reads, says = (np.zeros((len(rows), length), "int32") for _ in range(2))
    for number, row in enumerate(rows):
        reads[number, : len(row) + 1] = [1, *row]
        says[number, : len(row) + 1] = [*row, 2]
    logits = draw.normal(size=(len(rows), length, 12))
    return (
        reads,
        says,
        logits,
        *plant_slips(reads, says, logits, [0, 1, 2], seed),
    )


def test_slip_is_the_most_likely_wrong_word():
    draw = np.random.default_rng(3)
    rows = [draw.integers(3, 12, size=draw.integers(1, 8)) for _ in range(200)]
    reads, says, logits, slipped, positions = slips_of(rows, 9)
    for number, row in enumerate(rows):
        changed = np.flatnonzero(slipped[number] != reads[number])
        assert changed.tolist() == [positions[number]]
        position = int(positions[number])
        assert 1 <= position <= len(row)
        before = logits[number, position - 1]
        words = [w for w in range(3, 12) if w != says[number, position - 1]]
        best = max(words, key=lambda word: before[word])
        assert slipped[number, position] == best
    assert (reads[:, 0] == 1).all()
    # A slip can be at any position of a row.
    long = [number for number, row in enumerate(rows) if len(row) == 7]
    assert len({int(positions[number]) for number in long}) > 3


def test_empty_row_has_no_slip():
    with pytest.raises(ValueError, match=r"a word in each row.*none in row 1"):
        slips_of([[3, 4], []], 4)


def test_correct_tokens_after_a_slip_are_counted():
    says = np.array([[5, 6, 7, 2], [5, 2, 0, 0]])
    said = np.array([[5, 6, 3, 2], [5, 2, 0, 0]])
    shares = right_behind(np.eye(8)[said], says, np.array([1, 1]), 4)
    # Two rows, then one wrong and one correct; no row is longer.
    np.testing.assert_array_equal(shares[:3], [1, 0, 1])
    assert np.isnan(shares[3])


def test_sampling_probability_increases_to_its_last_value():
    found = []
    probability = types.SimpleNamespace(assign=found.append)
    callback = RisingSampling(0.6, 3)
    callback.set_model(types.SimpleNamespace(sampling_probability=probability))
    for epoch in range(4):
        callback.on_epoch_begin(epoch)
    np.testing.assert_allclose(found, [0.2, 0.4, 0.6, 0.6])


@pytest.mark.parametrize("last, epochs", [(1.5, 2), (-0.1, 2), (0.5, 0)])
def test_invalid_sampling_raises(last, epochs):
    with pytest.raises(ValueError, match=r"`last` must lie in \[0, 1\]"):
        RisingSampling(last, epochs)


def test_plots_have_a_curve_and_a_map_per_model():
    scores = {
        name: [
            {"words": (3, 5), "bleu": 90.0, "right": 0.8},
            {"words": (6, 6), "bleu": 50.0, "right": 0.4},
        ]
        for name in ("none", "additive")
    }
    figure = draw_by_length(scores)
    assert isinstance(figure, matplotlib.figure.Figure)
    left, right = figure.axes
    assert [len(panel.lines) for panel in (left, right)] == [2, 2]
    labels = [text.get_text() for text in left.get_xticklabels()]
    assert labels == ["3 to 5", "6"]
    assert right.lines[0].get_ydata().tolist() == [80, 40]
    weights = np.full((2, 3), 1 / 3)
    figure = draw_alignments(
        ["a", "b", "</s>"],
        {"one": (["x", "y"], weights), "two": (["x", "y"], weights)},
    )
    titles = [panel.get_title() for panel in figure.axes]
    assert titles[:2] == ["one", "two"]
    with pytest.raises(ValueError, match="`found` must hold at least one"):
        draw_alignments(["a"], {})
