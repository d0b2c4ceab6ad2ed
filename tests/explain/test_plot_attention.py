"""plot_attention: maps, labels and invalid arguments."""

import io
import itertools
import sys

import keras
import numpy as np
import pytest
from matplotlib import font_manager
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from keras_attn.explain import AttentionMap, plot_attention
from keras_attn.explain.label_fonts import label_fonts


def attention(*shape, seed=0):
    scores = 2 * np.random.default_rng(seed).normal(size=shape)
    weights = np.exp(scores)
    return weights / weights.sum(-1, keepdims=True)


def drawn(figure):
    """Returns the arrays of the maps, without the color bar."""
    return [np.asarray(a.images[0].get_array()) for a in figure.axes[:-1]]


def words(count, letter="w"):
    return [f"{letter}{i}" for i in range(count)]


def tick_labels(axis):
    return [text.get_text() for text in axis.get_ticklabels()]


@pytest.mark.parametrize(
    "shape", [(4, 6), (1, 4, 6), (3, 4, 6), (1, 3, 4, 6), (1, 1, 4, 6)]
)
def test_every_head_is_drawn(shape):
    weights = attention(*shape)
    figure = plot_attention(weights)
    assert isinstance(figure, Figure)
    expected = weights.reshape(-1, 4, 6)
    found = drawn(figure)
    assert len(found) == len(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    titles = [a.get_title() for a in figure.axes[:-1]]
    count = len(expected)
    assert titles == (
        [f"head {i}" for i in range(count)] if count > 1 else [""]
    )


def test_one_head():
    weights = attention(3, 4, 6)
    figure = plot_attention(keras.ops.convert_to_tensor(weights), head=2)
    np.testing.assert_allclose(drawn(figure), weights[2:], rtol=1e-5)
    assert figure.axes[0].get_title() == "head 2"


def test_one_color_scale_and_one_color_bar():
    weights = attention(5, 4, 4)
    figure = plot_attention(weights)
    limits = {a.images[0].get_clim() for a in figure.axes[:-1]}
    assert len(figure.axes) == 6
    assert limits == {(0.0, float(weights.max().astype("float32")))}
    limits = plot_attention(weights, vmax=1.0).axes[0].images[0].get_clim()
    assert limits == (0.0, 1.0)


def test_all_zeros_can_be_drawn():
    figure = plot_attention(np.zeros((2, 2)))
    assert figure.axes[0].images[0].get_clim() == (0.0, 1.0)


def test_queries_are_rows_and_keys_are_columns():
    weights = np.zeros((3, 4))
    weights[0, 3] = 1.0
    queries, keys = words(3, "q"), words(4, "k")
    figure = plot_attention(weights, queries, keys, title="Title")
    axes = figure.axes[0]
    assert tick_labels(axes.yaxis) == queries
    assert tick_labels(axes.xaxis) == keys
    assert axes.yaxis_inverted()
    assert figure.get_suptitle() == "Title"
    # The first query gives the last key the largest weight.
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    picture = np.asarray(canvas.buffer_rgba())
    across, up = axes.transData.transform((3, 0)).astype(int)
    color = axes.images[0].get_cmap()(1.0, bytes=True)[:3]
    # Rounded twice.
    np.testing.assert_allclose(picture[-up, across, :3], color, atol=1)
    for tick in axes.xaxis.get_major_ticks():
        assert tick.label2.get_visible() and not tick.label1.get_visible()
        assert tick.label2.get_rotation() == 90


def overlap(texts, renderer):
    boxes = [text.get_window_extent(renderer) for text in texts]
    return any(a.overlaps(b) for a, b in itertools.pairwise(boxes))


@pytest.mark.parametrize(
    "shape",
    [(3, 3), (60, 60), (400, 40), (2, 60, 60), (8, 9, 9), (5, 1, 30)],
)
def test_labels_are_readable(shape):
    queries, keys = words(shape[-2]), words(shape[-1])
    figure = plot_attention(attention(*shape), queries, keys, title="Title")
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    axes = figure.axes[0]
    rows = [tick.label1 for tick in axes.yaxis.get_major_ticks()]
    columns = [tick.label2 for tick in axes.xaxis.get_major_ticks()]
    assert not overlap(rows, renderer)
    assert not overlap(columns, renderer)
    assert min(text.get_fontsize() for text in rows + columns) >= 5
    if max(shape) <= 60:
        assert [text.get_text() for text in rows] == queries
        assert [text.get_text() for text in columns] == keys
    # Everything is inside the figure, whose size is bounded.
    for text in (*rows, *columns):
        box = text.get_window_extent(renderer)
        assert box.x0 >= 0 and box.y0 >= 0
        assert box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1
    assert max(figure.get_size_inches()) < 40


def test_tokens_are_drawn_literally():
    tokens = ["$x$", "a\nb", b"caf\xc3\xa9", 7]
    figure = plot_attention(attention(4, 4), tokens, tokens)
    assert tick_labels(figure.axes[0].yaxis) == ["$x$", "a\\nb", "café", "7"]
    first = figure.axes[0].yaxis.get_major_ticks()[0].label1
    assert not first.get_parse_math()
    figure.savefig(io.BytesIO(), format="png")


def test_draws_into_given_axes():
    page = Figure(layout="constrained")
    left, right = page.subplots(1, 2)
    weights = attention(2, 4, 4)
    assert plot_attention(weights, words(4), words(4), 0, ax=left) is page
    np.testing.assert_allclose(left.images[0].get_array(), weights[0])
    assert not right.images

    page = Figure(layout="constrained")
    panels = page.subplots(2, 2)
    weights = attention(4, 3, 3)
    plot_attention(weights, ax=panels)
    for panel, weight in zip(panels.flat, weights, strict=True):
        np.testing.assert_allclose(panel.images[0].get_array(), weight)
    with pytest.raises(ValueError, match="`ax` must be one for each"):
        plot_attention(weights, ax=left)


@pytest.mark.parametrize(
    "weights, arguments, message",
    [
        (attention(5), {}, "`weights` must be of shape"),
        (attention(2, 3, 4, 4), {}, "`weights` must be of shape"),
        (np.zeros((2, 0)), {}, "`weights` must be of shape"),
        (-attention(3, 3), {}, "`weights` must be finite and not"),
        (attention(3, 3) * np.nan, {}, "`weights` must be finite and not"),
        (attention(3, 3), {"head": 1}, r"`head` must lie in \[0, 1\)"),
        (attention(2, 3, 3), {"head": -1}, r"`head` must lie in \[0, 2\)"),
        (attention(2, 3, 3), {"head": "0"}, "`head` must be an int"),
        (attention(3, 4), {"query_tokens": words(4)}, "name the 3 positions"),
        (attention(3, 4), {"key_tokens": words(3)}, "name the 4 positions"),
        (attention(3, 4), {"key_tokens": "four"}, "must be a list of tokens"),
        (attention(3, 4), {"vmax": 0}, "`vmax` must be positive"),
    ],
)
def test_invalid_arguments_raise(weights, arguments, message):
    with pytest.raises(ValueError, match=message):
        plot_attention(weights, **arguments)


def test_missing_matplotlib_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install keras-attn\[explain\]"):
        plot_attention(attention(2, 2))


def layers():
    """Two layers with the same tokens, and one with other tokens and heads."""
    names, others = [words(4), words(3)], [words(5, "v"), words(2, "v")]
    return [
        AttentionMap("first", 0, (0, 3), attention(2, 2, 4, 4), names, names),
        AttentionMap("next", 1, (0, 3), attention(2, 2, 4, 4), names, names),
        AttentionMap("cross", 0, (1,), attention(2, 1, 4, 5), names, others),
    ]


def test_an_attention_map_has_its_tokens_and_heads():
    one = layers()[0]
    figure = plot_attention(one, row=1)
    np.testing.assert_allclose(drawn(figure), one.weights[1, :, :3, :3], 1e-6)
    assert [a.get_title() for a in figure.axes[:2]] == ["head 0", "head 3"]
    assert tick_labels(figure.axes[0].yaxis) == words(3)
    figure = plot_attention(one, head=3, query_tokens=words(4, "q"))
    np.testing.assert_allclose(drawn(figure), one.weights[0, 1:], 1e-6)
    assert tick_labels(figure.axes[0].yaxis) == words(4, "q")
    with pytest.raises(ValueError, match=r"`head` must be one of \[0, 3\]"):
        plot_attention(one, head=1)
    with pytest.raises(ValueError, match=r"`row` must lie in \[0, 2\)"):
        plot_attention(one, row=2)


def test_all_layers():
    maps = layers()
    figure = plot_attention(maps, title="All")
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    expected = [w for one in maps for w in one.weights[0]]
    found = drawn(figure)
    assert [f.shape for f in found] == [(4, 4)] * 4 + [(4, 5)]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    titles = [a.get_title() for a in figure.axes[:-1]]
    assert titles == ["head 0", "head 3"] * 2 + ["head 1"]
    named = [a.get_ylabel() for a in figure.axes[:-1]]
    assert named == ["first", "", "next, call 1", "", "cross"]
    # One color scale; keys are labeled if they differ from those above.
    limits = {a.images[0].get_clim() for a in figure.axes[:-1]}
    assert len(limits) == 1
    shown = [
        a.xaxis.get_major_ticks()[0].label2.get_visible()
        for a in figure.axes[:-1]
    ]
    assert shown == [True, True, False, False, True]
    boxes = [a.get_position() for a in figure.axes]
    assert not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))
    (one,) = drawn(plot_attention(maps[2:], head=1))
    np.testing.assert_allclose(one, maps[2].weights[0, 0], rtol=1e-6)
    with pytest.raises(ValueError, match="must be given in their maps"):
        plot_attention(maps, words(4))
    page = Figure()
    with pytest.raises(ValueError, match="`ax` can be given for one layer"):
        plot_attention(maps, ax=page.subplots(1, 2))


def test_other_scripts_use_fonts_that_cover_them():
    """A character missing in matplotlib's default font but not in another."""
    default, other = (
        set(font_manager.get_font(font_manager.findfont(name)).get_charmap())
        for name in ("DejaVu Sans", "STIXGeneral")
    )
    character = chr(min(other - default))
    assert len(label_fonts(["abc"])) == 1
    families = label_fonts(["a", character])
    assert len(families) == 2
    path = font_manager.findfont(families[1])
    assert ord(character) in font_manager.get_font(path).get_charmap()
    figure = plot_attention(attention(2, 2), ["a", character], ["b", "c"])
    label = figure.axes[0].yaxis.get_major_ticks()[1].label1
    assert label.get_fontfamily() == families
    figure.savefig(io.BytesIO(), format="png")
