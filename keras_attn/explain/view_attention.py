"""view_attention: interactive attention maps in HTML."""

import base64
import html
import json
import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from keras_attn import checks
from keras_attn.atomic_files import whole_file
from keras_attn.explain.arguments import index
from keras_attn.explain.attention_map import checked_maps, token_text
from keras_attn.explain.view_parts import BODY, PAGE, SCRIPT, STYLE
from keras_attn.typing import PathLike

if TYPE_CHECKING:
    from keras_attn.explain.attention_map import AttentionMap


# In half precision, a weight may be rounded up past 1.
_MOST = 1.01


class AttentionView:
    """A self-contained HTML view of attention weights.

    A notebook displays it if it is the last value of a cell.

    Args:
        html: str. An HTML fragment without external resources.
        title: str.

    Raises:
        ValueError: an argument that is not a str.

    Examples:
        >>> keras_attn.explain.AttentionView("<p>x</p>", "x").html
        '<p>x</p>'
    """

    def __init__(self, html: str, title: str) -> None:
        self.html: str = token_text(checks.string("html", html))
        self.title: str = checks.string("title", title)

    def _repr_html_(self):
        return self.html

    def save(self, path: PathLike) -> None:
        """Writes a complete HTML page, atomically.

        Args:
            path: path of an HTML file in an existing folder. A failed write
                leaves the old file.
        """
        checks.path("path", path)
        title = html.escape(token_text(self.title))
        page = PAGE.format(title=title, body=self.html)
        with whole_file(path) as partial:
            partial.write_text(page, encoding="utf-8")


def view_attention(
    maps: "Sequence[AttentionMap]", row: int = 0, title: str = "Attention"
) -> AttentionView:
    """Creates an interactive view: select a layer, a head and a token.

    All heads of all layers are small pictures, with queries as rows and keys as
    columns; a picture selects its layer and head. For a query, the view shows
    the weight of every key; for a key, its weight in every query. Maps with
    queries and keys also have a table that can be opened: for the selected
    token and each of the others, the vector, its product with that of the
    selected token, number by number, the scaled sum, and the weight. The sum is
    the score, without the bias of an attention position and without the mask.

    The view works with mouse, touch or keyboard, in light and dark themes, and
    offline. Weights are rounded to 1/255, numbers of vectors to 1/127 of the
    largest one. Each token has its own text direction, so right-to-left tokens
    do not reorder their neighbors.

    Args:
        maps: list of `AttentionMap`, as `attention_maps` returns them. Without
            tokens, positions are numbered. Weights lie in [0, 1]; tokens may
            also be ids.
        row: int in [0, B). Row of the batch.
        title: str. Title above the view.

    Returns:
        `AttentionView`: a notebook displays it, `save(path)` writes a page,
        `html` is a fragment to embed in another page.

    Raises:
        ValueError: no maps or something else; weights that are NaN or not in
            [0, 1]; heads, tokens or vectors that do not fit them; or `row` out
            of range.

    Examples:
        >>> maps = [keras_attn.explain.AttentionMap(
        ...     "encoder", 0, (0,), np.eye(2)[None, None],
        ...     [["the", "cat"]], [["the", "cat"]])]
        >>> view = keras_attn.explain.view_attention(maps)
        >>> "<script>" in view.html, "http" in view.html
        (True, False)
    """
    maps = checked_maps(maps)
    most = max(one.weights.max(initial=0) for one in maps)
    if most > _MOST:
        raise ValueError(
            "`maps` must have weights in [0, 1]. "
            f"Received: weights up to {most}"
        )
    rows = min(len(one.weights) for one in maps)
    row = index("row", row, rows, "the rows of the maps")
    title = token_text(checks.string("title", title))
    data = json.dumps([_packed(one, row) for one in maps], ensure_ascii=False)
    name = f"keras-attn-{secrets.token_hex(4)}"
    # A token must not be able to close the script element.
    data = data.replace("<", "\\u003c")
    body = BODY.format(name=name, title=html.escape(title))
    script = SCRIPT.replace("NAME", name).replace("DATA", data)
    style = STYLE.replace("NAME", name)
    return AttentionView(f"{style}{body}{script}", title)


def _packed(one, row):
    weights, queries, keys = one.of(row)
    _, num_queries, num_keys = weights.shape
    name = one.layer if not one.call else f"{one.layer}, call {one.call}"
    rounded = np.clip(np.round(255 * weights), 0, 255).astype("uint8")
    packed = {
        "name": token_text(name),
        "heads": list(one.heads),
        "queries": _names(queries, num_queries),
        "keys": _names(keys, num_keys),
        "weights": base64.b64encode(rounded.tobytes()).decode(),
    }
    if one.queries is None:
        return packed
    pair = (one.queries[row, :, :num_queries], one.keys[row, :, :num_keys])
    return packed | {"vectors": [_rounded(vectors) for vectors in pair]}


def _rounded(vectors):
    """Returns vectors as int8 in base64, with the value of a step."""
    step = float(np.abs(vectors).max(initial=0)) / 127 or 1.0
    rounded = np.round(vectors / step).astype("int8")
    return {
        "size": vectors.shape[2],
        "step": step,
        "values": base64.b64encode(rounded.tobytes()).decode(),
    }


def _names(tokens, count):
    if tokens is None:
        return [str(position) for position in range(count)]
    return [token or "\N{MIDDLE DOT}" for token in tokens]
