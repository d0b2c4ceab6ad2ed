"""A drawing of boxes, arrows and text, written as SVG."""

import re
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

from tools.diagrams.palette import opacity, own_style

# Sizes of text. On a window of 390 pixels a drawing of 520 units is 358 wide.
SIZE, SMALL = 17, 16
_LEVEL = 0.78


class Box(NamedTuple):
    """The place of a box.

    Args:
        x: float. Its center.
        y: float. Its center.
        width: float.
        height: float.
    """

    x: float
    y: float
    width: float
    height: float

    def top(self, share=0.5):
        """Returns a point of the upper edge; `share` 0 is its left end."""
        return self.x + (share - 0.5) * self.width, self.y - self.height / 2

    def bottom(self, share=0.5):
        """Returns a point of the lower edge; `share` 0 is its left end."""
        return self.x + (share - 0.5) * self.width, self.y + self.height / 2

    def left(self, share=0.5):
        """Returns a point of the left edge; `share` 0 is its upper end."""
        return self.x - self.width / 2, self.y + (share - 0.5) * self.height

    def right(self, share=0.5):
        """Returns a point of the right edge; `share` 0 is its upper end."""
        return self.x + self.width / 2, self.y + (share - 0.5) * self.height


class Drawing:
    """A drawing. Coordinates count from the upper left corner.

    In a text, `_a`, `_{ab}`, `^a` and `^{ab}` lower and raise what follows; `~`
    is an underscore.

    Args:
        width: float. At most 520, so that the text is legible on a phone.
        height: float.
    """

    def __init__(self, width, height):
        self.width, self.height = width, height
        self.linked = False
        self._parts = []
        self._classes = set()

    def box(
        self,
        x,
        y,
        width,
        height,
        text="",
        role="token",
        *,
        size=SIZE,
        bold=False,
        href=None,
        label=None,
        round_=6,
        dashed=False,
        shade=None,
    ):
        """Draws a box with centered text.

        Args:
            x: float. Its center.
            y: float. Its center.
            width: float.
            height: float.
            text: str. Several lines are possible.
            role: str. A role of the palette: the meaning of the color.
            size: float. Size of the text.
            bold: bool.
            href: str, or None. Where the box leads, from the folder of the
                diagrams.
            label: str, or None. Name of the link, if its text is no name.
            round_: float. Radius of the corners.
            dashed: bool. Whether the outline is dashed.
            shade: float, or None. A weight from 0 to 1 that sets how dark the
                box is, in the color of weights.

        Returns:
            Its `Box`.
        """
        rect = (
            f'x="{_n(x - width / 2)}" y="{_n(y - height / 2)}" '
            f'width="{_n(width)}" height="{_n(height)}" rx="{_n(round_)}"'
        )
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        if shade is None:
            kind = self._class(role)
            shape = f'<rect {kind} {rect} stroke-width="1.5"{dash}/>'
        else:
            shape = (
                f"<rect {self._class('shade')} {rect} "
                f'fill-opacity="{opacity(shade):.3f}"/>'
                f'<rect {self._class("grid")} {rect} stroke-width="1"/>'
            )
        inner = shape + self._lines(x, y, text, size, "middle", bold=bold)
        group = f'<g class="box">{inner}</g>'
        if href:
            self.linked = True
            named = f" aria-label={quoteattr(label)}" if label else ""
            group = f"<a href={quoteattr(href)}{named}>{group}</a>"
        self._parts.append(group)
        return Box(x, y, width, height)

    def text(
        self, x, y, text, *, size=SIZE, anchor="middle", muted=False, bold=False
    ):
        """Draws text, vertically centered at y.

        Args:
            x: float. Its center, start or end.
            y: float. Its center.
            text: str. Several lines are possible.
            size: float.
            anchor: str, `"middle"`, `"start"` or `"end"`.
            muted: bool. Whether the color is that of secondary text.
            bold: bool.
        """
        kind = "muted" if muted else None
        self._parts.append(self._lines(x, y, text, size, anchor, kind, bold))

    def arrow(self, *points, role=None, head=True, dashed=False, width=1.8):
        """Draws a line through points, with a head at its end.

        Args:
            *points: pairs of floats.
            role: str, or None. The role that sets the color.
            head: bool.
            dashed: bool.
            width: float.
        """
        stroke = f"{role}-stroke" if role else "stroke"
        fill = f"{role}-head" if role else "head"
        path = [tuple(map(float, point)) for point in points]
        tip = ""
        if head:
            (x0, y0), (x1, y1) = path[-2:]
            length = ((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5
            ux, uy = (x1 - x0) / length, (y1 - y0) / length
            long, half = 6 + 2 * width, 2 + 1.4 * width
            bx, by = x1 - ux * long, y1 - uy * long
            corners = [
                (x1, y1),
                (bx - uy * half, by + ux * half),
                (bx + uy * half, by - ux * half),
            ]
            tip = f'<path {self._class(fill)} d="M{_path(corners)}Z"/>'
            path[-1] = (x1 - ux * (long - 1), y1 - uy * (long - 1))
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self._parts.append(
            f'<path {self._class(stroke)} d="M{_path(path)}" '
            f'stroke-width="{_n(width)}"{dash}/>{tip}'
        )

    def line(self, *points, role=None, dashed=False, width=1.8):
        """Draws a line through points, without a head; see `arrow`."""
        self.arrow(*points, role=role, head=False, dashed=dashed, width=width)

    def circle(self, x, y, radius, text="", role="token", *, size=SIZE):
        """Draws a circle with centered text; returns its `Box`."""
        return self.box(
            x, y, 2 * radius, 2 * radius, text, role, size=size, round_=radius
        )

    def frame(self, x, y, width, height, text="", *, size=SMALL):
        """Draws a dashed frame; its text is inside, at the top left.

        Args:
            x: float. The left edge.
            y: float. The upper edge.
            width: float.
            height: float.
            text: str.
            size: float. Size of the text.
        """
        self._parts.append(
            f'<rect {self._class("stroke")} x="{_n(x)}" y="{_n(y)}" '
            f'width="{_n(width)}" height="{_n(height)}" rx="8" '
            'stroke-width="1.2" stroke-dasharray="4 4"/>'
        )
        if text:
            self.text(
                x + 10, y + 16, text, size=size, anchor="start", muted=True
            )

    def shape(self, path, role, *, width=1.5):
        """Draws a filled path, such as `M0 0L9 9Z`, in the color of a role."""
        self._parts.append(
            f'<path {self._class(role)} d="{path}" stroke-width="{_n(width)}"/>'
        )

    def mask(self, x, y, cell, allowed, *, texts=None, shades=None, size=SMALL):
        """Draws a table of queries (rows) and keys (columns).

        A cell that is not allowed is gray and has a diagonal line.

        Args:
            x: float. The left edge.
            y: float. The upper edge.
            cell: float. Width and height of a cell.
            allowed: bool array (T, S).
            texts: list of lists of str, or None. The text of each cell.
            shades: float array (T, S), or None. The weights that set how dark
                allowed cells are. Default: all are equally dark.
            size: float. Size of the texts.
        """
        for t, row in enumerate(allowed):
            for s, open_ in enumerate(row):
                left, top = x + s * cell, y + t * cell
                text = texts[t][s] if texts else ""
                weight = 0.55 if shades is None else float(shades[t][s])
                self.box(
                    left + cell / 2,
                    top + cell / 2,
                    cell,
                    cell,
                    text,
                    "masked",
                    size=size,
                    round_=0,
                    shade=weight if open_ else None,
                )
                if not open_ and not text:
                    self.line(
                        (left + 0.3 * cell, top + 0.7 * cell),
                        (left + 0.7 * cell, top + 0.3 * cell),
                        role="masked",
                    )

    def vector(self, x, y, number, role, *, cell=13, down=False):
        """Draws a vector as a row (or column) of cells; returns its `Box`."""
        length = number * cell
        width, height = (cell, length) if down else (length, cell)
        cuts = "".join(
            (
                f"M{_n(x - width / 2)} {_n(y - height / 2 + i * cell)}"
                f"h{_n(width)}"
            )
            if down
            else (
                f"M{_n(x - width / 2 + i * cell)} {_n(y - height / 2)}"
                f"v{_n(height)}"
            )
            for i in range(1, number)
        )
        self._parts.append(
            f'<rect {self._class(role)} x="{_n(x - width / 2)}" '
            f'y="{_n(y - height / 2)}" width="{_n(width)}" '
            f'height="{_n(height)}" stroke-width="1.5"/>'
            f'<path {self._class(f"{role}-stroke")} d="{cuts}" '
            'stroke-width="1"/>'
        )
        return Box(x, y, width, height)

    def svg(self, name, title, description):
        """Returns the file.

        Args:
            name: str. Name of the file, which makes the ids in it unique.
            title: str.
            description: str. What the drawing shows, for readers who cannot
                see it.

        Returns:
            Str.
        """
        size = f"{_n(self.width)} {_n(self.height)}"
        # Parts of an image cannot be links.
        role = "group" if self.linked else "img"
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="diagram" '
            f'viewBox="0 0 {size}" width="{_n(self.width)}" '
            f'height="{_n(self.height)}" role="{role}" '
            f'aria-labelledby="{name}-title" aria-describedby="{name}-desc">\n'
            f'<title id="{name}-title">{escape(title)}</title>\n'
            f'<desc id="{name}-desc">{escape(description)}</desc>\n'
            f"<style>\n{own_style(self._classes)}\n</style>\n"
            '<rect class="page" width="100%" height="100%"/>\n'
            + "\n".join(self._parts)
            + "\n</svg>\n"
        )

    def _class(self, name):
        self._classes |= {name, name.removesuffix("-stroke")}
        return f'class="{name}"'

    def _lines(self, x, y, text, size, anchor, kind=None, bold=False):
        if not text:
            return ""
        lines = text.split("\n")
        step = 1.25 * size
        first = y - step * (len(lines) - 1) / 2 + 0.35 * size
        style = f' class="{kind}"' if kind else ""
        style += ' font-weight="bold"' if bold else ""
        if kind:
            self._classes.add(f"text.{kind}")
        return "".join(
            f'<text{style} x="{_n(x)}" y="{_n(first + i * step)}" '
            f'font-size="{_n(size)}" text-anchor="{anchor}">'
            f"{_spans(line, size)}</text>"
            for i, line in enumerate(lines)
        )


def _spans(line, size):
    parts, shift = [], 0
    for mark, inner, single, plain in re.findall(
        r"([_^])(?:\{([^}]*)\}|(\S))|([^_^]+)", line
    ):
        wanted = {"_": 0.25 * size, "^": -0.36 * size, "": 0}[mark]
        small = f' font-size="{_n(_LEVEL * size)}"' if mark else ""
        move = wanted - shift
        text = escape(inner or single or plain).replace("~", "_")
        if move or small:
            dy = f' dy="{_n(move)}"' if move else ""
            text = f"<tspan{dy}{small}>{text}</tspan>"
        parts.append(text)
        shift = wanted
    return "".join(parts)


def _path(points):
    return "L".join(f"{_n(x)} {_n(y)}" for x, y in points)


def _n(value):
    text = f"{float(value):.1f}".removesuffix(".0")
    return "0" if text == "-0" else text
