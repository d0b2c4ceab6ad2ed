"""plot_beam: the hypotheses of a beam search, step by step."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from keras_attn import checks
from keras_attn.explain.attention_map import token_text
from keras_attn.explain.beam_growth import beam_growth

if TYPE_CHECKING:
    from keras_attn.decoding.stream import StreamedToken


# Inches: height of a box and of a row, padding inside a box, gap between
# columns, minimum box width; then header, title, footer and margin.
_BOX, _ROW, _INSIDE, _BETWEEN, _NARROW = 0.4, 0.52, 0.08, 0.34, 0.42
_ABOVE, _TITLE, _BELOW, _MARGIN = 0.34, 0.34, 0.5, 0.12
_TOKEN, _SCORE = 10, 8  # points
_POINTS_PER_INCH = 72


class _Look(NamedTuple):
    face: str
    edge: str
    text: str
    line: str  # the style of the box's outline
    label: str  # the legend's text


_LOOKS = {
    "continued": _Look("#e8f0fb", "#1f4e9c", "#10264d", "-", "active"),
    "dropped": _Look("#f4f4f4", "#8a8a8a", "#555555", ":", "dropped"),
    "returned": _Look(
        "#dff3e1", "#1e7b34", "#0d3d19", "-", "finished, returned"
    ),
    "surpassed": _Look(
        "#fdf1dc", "#a86a00", "#5c3a00", "--", "finished, surpassed later"
    ),
}


def plot_beam(
    items: "Iterable[StreamedToken]",
    token_names: Any = None,
    row: int = 0,
    title: str | None = None,
) -> Any:
    """Draws the hypotheses of a beam search, step by step.

    One column per step. A box is a hypothesis: its last token, and below it its
    log-probability in nats or, if it is finished, its rank and score among the
    results. Active hypotheses are sorted by probability, most likely at the
    top; those that finished at the step are below them. Lines connect a
    hypothesis to those that continue it; the thick line leads to the best
    result. The figure is independent of pyplot: save it with
    `figure.savefig(path)`.

    Args:
        items: iterable of `keras_attn.decoding.StreamedToken`: all that
            `model.stream(..., strategy=BeamSearch(...))` yields.
        token_names: callable that takes an id and returns a str, or a list or
            dict of str by id. Default: the ids.
        row: int in [0, B). The source to draw. Default 0.
        title: str, above the figure. Default: none.

    Returns:
        The `matplotlib.figure.Figure`.

    Raises:
        ImportError: matplotlib is not installed.
        ValueError: no items, `row` out of range, or an id without a name.

    Examples:
        >>> model = keras_attn.models.Transformer(
        ...     12, num_layers=1, num_heads=1, hidden_dim=4, intermediate_dim=4)
        >>> items = model.stream([[5, 6, 2]], max_new_tokens=3, strategy="beam")
        >>> figure = keras_attn.explain.plot_beam(items, title="A beam of 4")
        >>> figure.get_suptitle()
        'A beam of 4'
    """
    figure_class = _figure_class()
    if title is not None:
        title = token_text(checks.string("title", title))
    growth = beam_growth(items, row)
    if not growth:
        raise ValueError(
            f"`items` must have a hypothesis of row {row}. Received: none"
        )
    names = _names(token_names, growth)
    columns = _columns(growth, names)
    rows = max([1, *(len(step) for step in growth)])
    right = columns[-1][1]
    top = _TITLE if title is not None else 0.0
    legend = _legend([_LOOKS[fate] for fate in _fates(growth)])
    width = max(right + _MARGIN, legend[-1][1] + _MARGIN, _title_width(title))
    height = _BELOW + rows * _ROW + _ABOVE + top
    figure = figure_class(figsize=(width, height))
    axes = figure.add_axes((0, 0, 1, 1))
    # One data unit is one inch, so that the measured widths apply.
    axes.set(xlim=(0, width), ylim=(-_BELOW, height - _BELOW))
    axes.axis("off")
    if title is not None:
        figure.suptitle(title, y=1 - 0.06 / height, va="top", fontsize=12)
    _draw(axes, growth, names, columns, rows * _ROW)
    for (left, end), fate in zip(legend, _fates(growth), strict=True):
        look = _LOOKS[fate]
        _box(axes, left, end, -0.29, 0.22, look)
        _text(axes, (left + end) / 2, -0.29, look.label, _SCORE, look)
    return figure


def _figure_class():
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "`plot_beam` needs matplotlib: pip install keras-attn[explain]"
        ) from error
    return Figure


def _names(token_names, growth):
    """Returns {id: printable name} of all tokens that are drawn."""
    ids = {h.tokens[-1] for step in growth for h in step}
    if token_names is None:
        token_names = str
    elif isinstance(token_names, (str, bytes)):
        raise ValueError(
            "`token_names` must be a callable, a list or a dict of texts. "
            f"Received: token_names={checks.shown(token_names)}"
        )
    try:
        names = {
            i: token_names(i) if callable(token_names) else token_names[i]
            for i in ids
        }
    except (LookupError, TypeError) as error:
        raise ValueError(
            f"`token_names` must name every id of the stream: {sorted(ids)}. "
            f"Received: {checks.shown(token_names)}"
        ) from error
    return {
        i: "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(name))
        for i, name in names.items()
    }


def _fates(growth):
    present = {h.fate for step in growth for h in step}
    return [fate for fate in _LOOKS if fate in present]


def _second_line(hypothesis):
    score = f"{hypothesis.score:.2f}"
    if hypothesis.place:
        score = f"no. {hypothesis.place}: {score}"
    return score.replace("-", "\N{MINUS SIGN}")


def _columns(growth, names):
    """Returns the left and right edges of each column, in inches."""
    texts = [[("start", _TOKEN)]]
    for number, step in enumerate(growth, start=1):
        texts.append([(f"step {number}", _SCORE)])
        for hypothesis in step:
            texts[-1].append((names[hypothesis.tokens[-1]], _TOKEN))
            texts[-1].append((_second_line(hypothesis), _SCORE))
    columns, left = [], _MARGIN
    for column in texts:
        width = max(_width(*text) for text in column) + 2 * _INSIDE
        columns.append((left, left + max(width, _NARROW)))
        left = columns[-1][1] + _BETWEEN
    return columns


def _legend(looks):
    edges, left = [], _MARGIN
    for look in looks:
        end = left + _width(look.label, _SCORE) + 2 * _INSIDE
        edges.append((left, end))
        left = end + 0.15
    return edges


def _title_width(title):
    return 0.0 if title is None else _width(title, 12) + 2 * _MARGIN


def _width(text, points):
    """Returns the width of a text, in inches."""
    from matplotlib.textpath import TextPath

    if not text.strip():
        return 0.0
    path = TextPath((0, 0), text.replace("$", "S"), size=points)
    return path.get_extents().x1 / _POINTS_PER_INCH


def _draw(axes, growth, names, columns, top):
    best = next((h.tokens for step in growth for h in step if h.place == 1), ())
    start = _Look("#ffffff", "#1f4e9c", "#10264d", "-", "")
    heights = {(): top - _ROW / 2}
    _box(axes, *columns[0], heights[()], _BOX, start)
    _text(axes, sum(columns[0]) / 2, heights[()], "start", _TOKEN, start)
    for number, step in enumerate(growth):
        left, right = columns[number + 1]
        middle = (left + right) / 2
        heading = f"step {number + 1}"
        _text(axes, middle, top + 0.12, heading, _SCORE, _LOOKS["dropped"])
        for rank, hypothesis in enumerate(step):
            tokens, look = hypothesis.tokens, _LOOKS[hypothesis.fate]
            y = heights[tokens] = top - (rank + 0.5) * _ROW
            thick = tokens == best[: number + 1]
            axes.plot(
                [columns[number][1], left],
                [heights[tokens[:-1]], y],
                color=_LOOKS["returned"].edge if thick else look.edge,
                linewidth=2.2 if thick else 0.9,
                linestyle="-" if thick else look.line,
                zorder=2 if thick else 1,
            )
            _box(axes, left, right, y, _BOX, look)
            _text(axes, middle, y + 0.09, names[tokens[-1]], _TOKEN, look)
            _text(axes, middle, y - 0.1, _second_line(hypothesis), _SCORE, look)


def _box(axes, left, right, middle, height, look):
    from matplotlib.patches import Rectangle

    axes.add_patch(
        Rectangle(
            (left, middle - height / 2),
            right - left,
            height,
            facecolor=look.face,
            edgecolor=look.edge,
            linestyle=look.line,
            linewidth=1.0,
            zorder=3,
        )
    )


def _text(axes, x, y, text, points, look):
    axes.text(
        x,
        y,
        text,
        fontsize=points,
        color=look.text,
        ha="center",
        va="center",
        parse_math=False,
        zorder=4,
    )
