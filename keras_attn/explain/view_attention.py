"""view_attention: attention to walk through, in a notebook or on a page."""

import base64
import html
import json
import pathlib
import secrets

import numpy as np

from keras_attn.explain.view_parts import BODY, PAGE, SCRIPT, STYLE


class AttentionView:
    """Holds a piece of HTML that shows attention, and needs nothing else.

    A notebook shows it where it is the last value of a cell.

    Args:
        html: str. The piece: no page around it, nothing to load.
        title: str.

    Examples:
        >>> keras_attn.explain.AttentionView("<p>x</p>", "x").html
        '<p>x</p>'
    """

    def __init__(self, html, title):
        self.html = html
        self.title = title

    def _repr_html_(self):
        return self.html

    def save(self, path):
        """Writes it as a page of its own.

        Args:
            path: path of an HTML file; a failed write leaves the old one.
        """
        path = pathlib.Path(path)
        page = PAGE.format(title=html.escape(self.title), body=self.html)
        partial = path.with_name(f".{path.name}.partial")
        partial.write_text(page, encoding="utf-8")
        partial.replace(path)


def view_attention(maps, row=0, title="Attention"):
    """Makes attention to walk through: choose a layer, a head and a token.

    One token at a time, with the weight of everything that it looks at; or, for
    a token that is looked at, of everything that looks at it. By mouse, finger
    or keyboard, light and dark, without a connection. Weights are shown to
    1/255.

    Args:
        maps: list of `AttentionMap`, as `attention_maps` returns them. Where
            they have no tokens, places are numbered.
        row: int in [0, B). Which row of the batch is shown.
        title: str. What stands above it.

    Returns:
        `AttentionView`: a notebook shows it, `save(path)` writes a page, `html`
        is the piece to put into another page.

    Raises:
        ValueError: no maps, or a row that they do not have.

    Examples:
        >>> maps = [keras_attn.explain.AttentionMap(
        ...     "encoder", 0, (0,), np.eye(2)[None, None],
        ...     [["the", "cat"]], [["the", "cat"]])]
        >>> view = keras_attn.explain.view_attention(maps)
        >>> "<script>" in view.html, "http" in view.html
        (True, False)
    """
    if not maps:
        raise ValueError("`maps` must not be empty. Received: maps=[]")
    rows = min(len(one.weights) for one in maps)
    if not 0 <= row < rows:
        raise ValueError(
            f"`row` must lie in [0, {rows}), the rows of the maps. "
            f"Received: row={row}"
        )
    data = json.dumps([_packed(one, row) for one in maps], ensure_ascii=False)
    name = f"keras-attn-{secrets.token_hex(4)}"
    # Nothing in a token may end the script.
    data = data.replace("<", "\\u003c")
    body = BODY.format(name=name, title=html.escape(title))
    script = SCRIPT.replace("NAME", name).replace("DATA", data)
    style = STYLE.replace("NAME", name)
    return AttentionView(f"{style}{body}{script}", title)


def _packed(one, row):
    weights, queries, keys = one.of(row)
    _, asking, looked_at = weights.shape
    name = one.layer if not one.call else f"{one.layer}, call {one.call}"
    rounded = np.clip(np.round(255 * weights), 0, 255).astype("uint8")
    return {
        "name": name,
        "heads": list(one.heads),
        "queries": _names(queries, asking),
        "keys": _names(keys, looked_at),
        "weights": base64.b64encode(rounded.tobytes()).decode(),
    }


def _names(tokens, count):
    if tokens is None:
        return [str(place) for place in range(count)]
    return [token or "·" for token in tokens]
