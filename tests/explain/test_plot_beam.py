"""plot_beam: hypotheses, layout and invalid arguments."""

import io
import itertools
import sys
from typing import Any, NamedTuple

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from keras_attn.decoding import BeamSearch, stream
from keras_attn.explain import plot_beam
from keras_attn.explain.beam_growth import beam_growth
from tests.helpers.tree import Tree

ONE = np.zeros((1, 1), "int32")
NAMES = ["<pad>", "<s>", "</s>", "the", "a", "dog", "barks"]
THE, A, DOG, BARKS, END = 3, 4, 5, 6, 2


@pytest.fixture(scope="module")
def items():
    tree = Tree.of(
        {
            (): {THE: 0.5, A: 0.4, DOG: 0.1},
            (THE,): {DOG: 0.5, BARKS: 0.3, END: 0.2},
            (A,): {DOG: 0.9, END: 0.1},
            (THE, DOG): {END: 0.6, BARKS: 0.4},
            (A, DOG): {END: 0.2, BARKS: 0.8},
            (DOG,): {END: 0.01},
            (THE, BARKS): {END: 0.01},
            (A, DOG, BARKS): {END: 1.0},
            (THE, DOG, BARKS): {END: 1.0},
        },
        size=7,
    )
    strategy = BeamSearch(3, 2, length_penalty=0)
    return list(stream(tree, ONE, 5, strategy))


def by_fate(growth):
    return [[(h.tokens, h.fate, h.place) for h in step] for step in growth]


def test_fate_of_every_hypothesis(items):
    growth = beam_growth(items)
    assert by_fate(growth) == [
        [
            ((THE,), "continued", 0),
            ((A,), "continued", 0),
            ((DOG,), "dropped", 0),
        ],
        [
            ((A, DOG), "continued", 0),
            ((THE, DOG), "continued", 0),
            ((THE, BARKS), "dropped", 0),
        ],
        [
            ((A, DOG, BARKS), "continued", 0),
            ((THE, DOG, BARKS), "dropped", 0),
            ((THE, DOG, END), "returned", 2),
        ],
        [((A, DOG, BARKS, END), "returned", 1)],
    ]
    scores = {h.tokens: h.score for step in growth for h in step}
    for tokens, probability in {
        (THE,): 0.5,
        (A, DOG): 0.36,
        (THE, DOG, END): 0.15,
        (A, DOG, BARKS, END): 0.288,
    }.items():
        assert abs(scores[tokens] - np.log(probability)) < 1e-5


class Found(NamedTuple):
    tokens: Any
    scores: Any
    lengths: Any
    step: int = 0
    active: Any = None


def padded(*rows):
    tokens = np.zeros((1, 2, 3), "int32")
    scores = np.full((1, 2), -np.inf)
    lengths = np.zeros((1, 2), "int32")
    for beam, (row, score) in enumerate(rows):
        tokens[0, beam, : len(row)] = row
        scores[0, beam], lengths[0, beam] = score, len(row)
    return Found(tokens, scores, lengths)


def test_a_result_that_is_surpassed_later():
    first = padded(([END], -2.0))
    second = padded(([THE, END], -1.0))
    items = [
        first._replace(step=1, active=padded(([THE], -0.5), ([A], -0.7))),
        second._replace(step=2, active=padded()),
    ]
    assert by_fate(beam_growth(items)) == [
        [
            ((THE,), "continued", 0),
            ((A,), "dropped", 0),
            ((END,), "surpassed", 0),
        ],
        [((THE, END), "returned", 1)],
    ]


def test_steps_of_other_sources_are_left_out():
    tree = Tree.random(3, size=6, length=4, seed=1, scale=2.0)
    sources = np.array([[0], [1], [2]], "int32")
    strategy = BeamSearch(2, 2, length_penalty=0)
    together = list(stream(tree, sources, 4, strategy))
    for row in range(3):
        alone = list(stream(tree, sources[row : row + 1], 4, strategy))
        assert by_fate(beam_growth(together, row)) == by_fate(
            beam_growth(alone)
        )


def texts(figure):
    return [text.get_text() for text in figure.axes[0].texts]


def test_all_labels_are_drawn(items):
    figure = plot_beam(items, NAMES, title="Two beams")
    assert isinstance(figure, Figure)
    assert figure.get_suptitle() == "Two beams"
    found = texts(figure)
    for text in (
        "start",
        "step 1",
        "step 4",
        "barks",
        "−0.69",
        "no. 1: −1.24",
        "no. 2: −1.90",
        "active",
        "dropped",
        "finished, returned",
    ):
        assert text in found, text
    assert "finished, surpassed later" not in found
    assert found.count("</s>") == 2
    by_id = plot_beam(items, dict(enumerate(NAMES)))
    assert texts(by_id) == found
    assert texts(plot_beam(items, lambda i: NAMES[i])) == found
    assert "6" in texts(plot_beam(items))


def test_nothing_overlaps_or_is_cut_off(items):
    long = [f"{name}$_{'n' * (3 * i)}" for i, name in enumerate(NAMES)]
    for names in (NAMES, long):
        figure = plot_beam(items, names, title="A title of some length")
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        renderer = canvas.get_renderer()
        page = figure.bbox
        shown = [*figure.axes[0].texts, figure._suptitle]
        boxes = [text.get_window_extent(renderer) for text in shown]
        for box in boxes:
            assert box.x0 >= 0 and box.x1 <= page.x1
            assert box.y0 >= 0 and box.y1 <= page.y1
        for one, other in itertools.combinations(boxes, 2):
            assert not one.overlaps(other)
        frames = [
            patch.get_window_extent(renderer)
            for patch in figure.axes[0].patches
        ]
        for one, other in itertools.combinations(frames, 2):
            assert not one.overlaps(other)
        # All texts are inside their boxes.
        for box in boxes[:-1]:
            inside = [f for f in frames if f.x0 <= box.x0 and box.x1 <= f.x1]
            assert inside or box.y0 > max(f.y1 for f in frames)


def luminance(color):
    parts = [
        c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4
        for c in to_rgb(color)
    ]
    return np.dot(parts, [0.2126, 0.7152, 0.0722])


def test_text_has_enough_contrast(items):
    figure = plot_beam(items, NAMES)
    light = min(
        luminance(patch.get_facecolor()[:3]) for patch in figure.axes[0].patches
    )
    dark = max(luminance(text.get_color()) for text in figure.axes[0].texts)
    assert (light + 0.05) / (dark + 0.05) > 4.5


def test_the_thick_line_leads_to_the_best_result(items):
    figure = plot_beam(items, NAMES)
    thick = [line for line in figure.axes[0].lines if line.get_linewidth() > 2]
    assert len(thick) == 4
    for one, other in itertools.pairwise(thick):
        assert one.get_ydata()[1] == other.get_ydata()[0]
    assert len(figure.axes[0].lines) == 10


def test_tokens_are_drawn_literally(items):
    names = ["", "", "$x$", "a\nb", " ", "▁dog", "é"]
    figure = plot_beam(items, names)
    assert {"$x$", "a\\nb", "▁dog", "é"} <= set(texts(figure))
    figure.savefig(io.BytesIO(), format="png")


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"row": 1}, r"`row` must lie in \[0, 1\)"),
        ({"row": -1}, r"`row` must lie in \[0, 1\)"),
        ({"row": "0"}, "`row` must be an int"),
        ({"token_names": NAMES[:4]}, "`token_names` must name every id"),
        ({"token_names": {3: "the"}}, "`token_names` must name every id"),
        ({"token_names": 3}, "`token_names` must name every id"),
    ],
)
def test_invalid_arguments_raise(items, arguments, message):
    with pytest.raises(ValueError, match=message):
        plot_beam(items, **arguments)


@pytest.mark.parametrize("items", [[], [3]])
def test_items_that_are_not_a_stream_raise(items):
    with pytest.raises(ValueError, match="`items` must hold the items of a"):
        plot_beam(items)


def test_missing_matplotlib_names_the_extra(monkeypatch, items):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install keras-attn\[explain\]"):
        plot_beam(items)
