"""The diagrams are up to date, legible, described and used."""

import html
import re
import types
from xml.etree import ElementTree

import numpy as np
import pytest
from mkdocs.exceptions import PluginError

from tests.site.conftest import check_link
from tools.diagrams import (
    FOLDER,
    ROOT,
    STYLE,
    discover,
    draw,
    gallery,
    palette,
    words,
)
from tools.site.diagrams import on_post_page
from tools.site.tab import VARIANTS, Tab

pytestmark = pytest.mark.one_backend

DIAGRAMS = discover()
FILES = {name: FOLDER / f"{name}.svg" for name in DIAGRAMS}
SVG = "{http://www.w3.org/2000/svg}"
# Width of a page's text in a window of 390 pixels, and the smallest text there.
PHONE, LEAST = 358, 11
AGAIN = "run .venv/bin/python -m tools.diagrams"


def test_files_are_up_to_date():
    assert {path.stem for path in FOLDER.glob("*.svg")} == set(DIAGRAMS), AGAIN
    for name, function in DIAGRAMS.items():
        assert FILES[name].read_text("utf-8") == draw(function), AGAIN
    assert STYLE.read_text("utf-8") == palette.site_style(), AGAIN
    assert gallery.PAGE.read_text("utf-8") == gallery.gallery(), AGAIN


@pytest.mark.parametrize("name", DIAGRAMS)
def test_file_is_described_and_large_enough(name):
    root = ElementTree.parse(FILES[name]).getroot()
    title, description = words(DIAGRAMS[name])
    assert root.find(f"{SVG}title").text == title
    assert root.find(f"{SVG}desc").text == description
    assert len(title) < 60 < len(description)
    # Links are not reachable inside an image.
    linked = root.find(f".//{SVG}a") is not None
    assert root.get("role") == ("group" if linked else "img")
    ids = {element.get("id") for element in root.iter()} - {None}
    assert ids == {f"{name}-title", f"{name}-desc"}
    assert root.get("aria-labelledby") == f"{name}-title"
    assert root.get("aria-describedby") == f"{name}-desc"
    width, height = map(float, root.get("viewBox").split()[2:])
    assert (root.get("width"), root.get("height")) == (
        f"{width:g}",
        f"{height:g}",
    )
    shown = "\n".join(
        "".join(text.itertext()) for text in root.iter(f"{SVG}text")
    )
    for number in re.findall(r"\d+\.\d+", description):
        assert number.lstrip("0") in shown, f"{number} is not drawn"
    sizes = [float(text.get("font-size")) for text in root.iter(f"{SVG}text")]
    assert all(size * min(1, PHONE / width) >= LEAST - 0.01 for size in sizes)


def luminance(color):
    """Relative luminance of WCAG 2; a color is three numbers from 0 to 1."""
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
        for c in color
    ]
    return np.dot((0.2126, 0.7152, 0.0722), linear)


def parse(color):
    return [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]


def contrast(one, other):
    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", [palette.LIGHT, palette.DARK])
def test_contrast(scheme):
    page, text = parse(scheme.page), parse(scheme.text)
    assert set(scheme.roles) == set(palette.ROLES)
    assert contrast(page, text) >= 7
    assert contrast(page, parse(scheme.muted)) >= 4.5
    assert contrast(page, parse(scheme.line)) >= 3
    for fill, stroke in scheme.roles.values():
        assert contrast(parse(fill), text) >= 4.5
        assert contrast(parse(stroke), page) >= 3
    share, shade = palette.opacity(1), np.array(parse(scheme.shade))
    darkest = share * shade + (1 - share) * np.array(page)
    assert contrast(darkest, text) >= 4.5


def test_contrast_is_that_of_wcag():
    assert contrast(parse("#000000"), parse("#ffffff")) == pytest.approx(21)
    assert contrast(parse("#777777"), parse("#ffffff")) == pytest.approx(
        4.48, abs=0.01
    )


# Lists texts outside the drawing or their box, texts on other texts, and lines
# through a text.
PROBE = """
[...document.querySelectorAll("svg")].flatMap((svg) => {
  const found = [];
  const size = svg.viewBox.baseVal;
  const say = (what, text) =>
    found.push(`${svg.dataset.name}: ${text.textContent}: ${what}`);
  const within = (a, b, gap) =>
    a.x >= b.x + gap && a.y >= b.y && a.x + a.width <= b.x + b.width - gap &&
    a.y + a.height <= b.y + b.height;
  const meet = (a, b) =>
    a.x < b.x + b.width && b.x < a.x + a.width &&
    a.y + 2 < b.y + b.height && b.y + 2 < a.y + a.height;
  const texts = [...svg.querySelectorAll("text")].map((t) => [t, t.getBBox()]);
  const lines = [...svg.querySelectorAll("path[class$=stroke]")];
  const points = lines.flatMap((line) => {
    const number = line.getTotalLength() / 3 + 1;
    return Array.from({length: number}, (_, i) => line.getPointAtLength(3 * i));
  });
  texts.forEach(([text, box], i) => {
    if (!within(box, size, 2)) say("outside the drawing", text);
    const group = text.closest("g.box");
    if (group && !within(box, group.querySelector("rect").getBBox(), 1)) {
      say("wider than its box", text);
    }
    for (const [other, place] of texts.slice(i + 1)) {
      if (meet(box, place)) say(`on ${other.textContent}`, text);
    }
    const crossed = points.some((p) =>
      p.x > box.x + 1 && p.x < box.x + box.width - 1 &&
      p.y > box.y + 3 && p.y < box.y + box.height - 3);
    if (crossed) say("crossed by a line", text);
  });
  return found;
})
"""


@pytest.fixture
def layout(browser, tmp_path):
    """Lists the problems of the layout of diagrams, a dict from name to SVG."""
    tab = Tab(browser, VARIANTS[0])

    def problems(drawn):
        page = tmp_path / "page.html"
        body = "".join(
            svg.replace("<svg ", f'<svg data-name="{name}" ', 1)
            for name, svg in drawn.items()
        )
        page.write_text(f"<!doctype html><meta charset=utf-8>{body}", "utf-8")
        tab.open(page.as_uri())
        return tab.evaluate(PROBE)

    yield problems
    tab.close()


# A reader may have none of the fonts; DejaVu Sans is wider than they are.
@pytest.mark.parametrize("font", ["Helvetica", "DejaVu Sans"])
def test_texts_are_neither_clipped_nor_covered(layout, font):
    drawn = {
        name: path.read_text("utf-8").replace("Helvetica", f"'{font}'")
        for name, path in FILES.items()
    }
    assert layout(drawn) == []


def test_layout_problems_are_found(layout):
    one = FILES["causal_mask"].read_text("utf-8").partition("<style>")[0]
    text = '<text x="9" y="{}" font-size="17" class="{}">words</text>'
    bad = {
        "outside": one + text.format(5, "a") + "</svg>",
        "wide": one
        + '<g class="box"><rect x="9" y="9" width="20" height="40"/>'
        + text.format(30, "a")
        + "</g></svg>",
        "overlap": one + 2 * text.format(30, "a") + "</svg>",
        "crossed": one
        + text.format(30, "a")
        + '<path class="stroke" d="M0 25L99 25"/></svg>',
    }
    found = layout(bad)
    assert [problem.partition(":")[0] for problem in found] == list(bad)


def test_each_diagram_is_used_and_described():
    assert len(DIAGRAMS) >= 30
    shown = gallery.uses()
    assert [name for name, pages in shown.items() if not pages] == []
    for pages in shown.values():
        assert all(len(alt) > 10 for _, alt in pages)


def test_pages_of_the_site_contain_the_diagrams(site):
    for name, pages in gallery.uses().items():
        for page in ("diagrams.md", *(page for page, _ in pages)):
            path = (site / page).with_suffix(".html")
            text = path.read_text("utf-8")
            assert f'id="{name}-title"' in text
            assert f"{name}.svg" not in text


def test_page_may_not_show_a_diagram_twice():
    page = types.SimpleNamespace(url="guides/masks.html")
    config = types.SimpleNamespace(docs_dir=ROOT / "docs")
    image = '<img alt="" src="../diagrams/causal_mask.svg" />'
    once = on_post_page(f"<p>{image}</p>", page, config)
    assert once.startswith("<p><svg ") and once.rstrip().endswith(
        "</svg>\n</p>"
    )
    with pytest.raises(PluginError, match="causal_mask"):
        on_post_page(2 * image, page, config)


def test_links_in_diagrams_have_a_target(site):
    checked = 0
    for path in sorted(site.rglob("*.html")):
        for svg in re.findall(
            r'<svg [^>]*class="diagram".*?</svg>', path.read_text("utf-8"), re.S
        ):
            for href in re.findall(r'<a href="([^"]*)"', svg):
                check_link(site, path, html.unescape(href))
                checked += 1
    assert checked > 20
