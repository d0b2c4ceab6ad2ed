"""The page check finds each kind of problem, on one small page each."""

import shutil

import pytest

from tests.site.conftest import ROOT
from tools.site.browser import BrowserError
from tools.site.check import check, heard
from tools.site.server import serve
from tools.site.tab import VARIANTS, Tab

pytestmark = pytest.mark.one_backend

ASSETS = ROOT / "docs" / "assets"
PIXEL = (
    "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIB"
    "RAA7"
)
PAGE = """<!doctype html>
<html><head><meta charset="utf-8"><title>a page</title>
<link rel="icon" href="data:,">
<meta name="viewport" content="width=device-width,initial-scale=1">
<link rel="stylesheet" href="katex/katex.min.css">{head}</head>
<body {attributes}><article>{body}</article>
<script>window.document$ = {{subscribe: (render) => render()}};</script>
{scripts}</body></html>
"""
SCRIPTS = (
    '<script src="katex/katex.min.js"></script><script src="math.js"></script>'
)
FORMULA = r'<span class="arithmatex">\(\sqrt{x}\)</span>'


@pytest.fixture(scope="module")
def complaints(browser, tmp_path_factory):
    """Checks a page built from the given parts."""
    folder = tmp_path_factory.mktemp("pages")
    shutil.copytree(ASSETS / "katex", folder / "katex")
    shutil.copy(ASSETS / "js" / "math.js", folder)
    tabs = {variant: Tab(browser, variant) for variant in VARIANTS}

    def of(body, variant=VARIANTS[2], head="", attributes="", scripts=SCRIPTS):
        page = PAGE.format(
            body=body, head=head, attributes=attributes, scripts=scripts
        )
        # A unique name, because the browser caches pages.
        name = f"page-{len(list(folder.iterdir()))}.html"
        (folder / name).write_text(page, encoding="utf-8")
        return check(tabs[variant], address + name)

    with serve(folder) as address:
        yield of
    for tab in tabs.values():
        tab.close()


GOOD = {
    "text, picture, formula": f'<p>1 $ or 2 $</p><img src="{PIXEL}">{FORMULA}',
    "a table that scrolls": '<div style="overflow-x: auto">'
    '<div style="width: 3000px">wide</div></div>',
    "code that contains TeX": r"<pre>$$\frac{1}{2}$$</pre>",
    "a warning": "<script>console.warn('so what')</script>",
    "an external link": '<a href="https://example.org">link</a>',
}


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.name)
@pytest.mark.parametrize("body", GOOD.values(), ids=GOOD)
def test_good_page_has_no_problems(complaints, body, variant):
    assert complaints(body, variant) == []


BAD = {
    "a broken image": ('<img src="none.png">', "image not shown: none.png"),
    "a broken lazy image": (
        '<p style="height: 9000px"></p><img loading="lazy" src="none.png">',
        "image not shown: none.png",
    ),
    "a missing file": (
        '<link rel="stylesheet" href="none.css">',
        "status 404",
    ),
    "a wide table": (
        f"<table><tr>{'<td>inseparable</td>' * 40}</tr></table>",
        "pixels wide, its window 390",
    ),
    "a wide image": (
        f'<img width="800" height="9" src="{PIXEL}">',
        "pixels wide, its window 390",
    ),
    "something wide that is cut off": (
        '<div style="overflow: hidden"><p style="width: 900px">cut</p></div>',
        'wider than the window: <p style="width: 900px">',
    ),
    "a formula that KaTeX cannot read": (
        r'<span class="arithmatex">\(\frac{1\)</span>',
        "formula not rendered",
    ),
    "an unmarked formula": ("<p>$$x^2$$</p>", "formula not rendered"),
    "an unmarked inline formula": (
        r"<p>so \(x\) is</p>",
        "formula not rendered",
    ),
    "a script from another host": (
        '<script src="https://example.org/x.js"></script>',
        "request to another host: https://example.org/x.js",
    ),
    "an image from another host": (
        '<img src="https://example.org/x.png">',
        "request to another host: https://example.org/x.png",
    ),
    "a fetch from another host": (
        "<script>fetch('https://example.org/stars').catch(() => 0)</script>",
        "request to another host: https://example.org/stars",
    ),
    "a socket": (
        "<script>new WebSocket('ws://127.0.0.1:1/')</script>",
        "opens a socket",
    ),
    "an error on the console": (
        "<script>console.error('so bad', 3)</script>",
        "console: so bad 3",
    ),
    "a script that throws": (
        "<script>throw new Error('at once')</script>",
        "script error: Error: at once",
    ),
    "a rejected promise": (
        "<script>Promise.reject(new Error('later'))</script>",
        "script error: Error: later",
    ),
}


@pytest.mark.parametrize("body, expected", BAD.values(), ids=BAD)
def test_problem_is_found(complaints, body, expected):
    assert any(expected in complaint for complaint in complaints(body))


def test_formula_without_katex_is_found(complaints):
    assert complaints(FORMULA, scripts="") == [
        r"formula not rendered: \(\sqrt{x}\)"
    ]


def test_width_is_checked_per_window(complaints):
    body = '<p style="width: 800px">wide</p>'
    assert complaints(body, VARIANTS[0]) == []
    assert complaints(body, VARIANTS[2])


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.name)
def test_wrong_color_scheme_is_found(complaints, variant):
    schemes = {True: "slate", False: "default"}
    for dark, scheme in schemes.items():
        found = complaints(
            "", variant, attributes=f'data-md-color-scheme="{scheme}"'
        )
        assert bool(found) is (dark is not variant.dark)


def test_worker_request_to_another_host_is_found(browser, tmp_path):
    (tmp_path / "index.html").write_text("<title>a</title>", encoding="utf-8")
    (tmp_path / "worker.js").write_text(
        "fetch('https://example.org/w').catch(() => postMessage('done'))",
        encoding="utf-8",
    )
    tab = Tab(browser, VARIANTS[0])
    with serve(tmp_path) as address:
        tab.open(f"{address}index.html")
        tab.evaluate(
            "new Promise((d) => { new Worker('worker.js').onmessage = d })"
        )
        found = list(heard(tab.events, address.split("/")[2]))
    tab.close()
    assert "request to another host: https://example.org/w" in found


def test_unavailable_page_raises(browser, tmp_path):
    with serve(tmp_path) as address:
        pass
    tab = Tab(browser, VARIANTS[0])
    with pytest.raises(BrowserError, match="ERR_CONNECTION_REFUSED"):
        tab.open(address)
    with pytest.raises(BrowserError, match="the script threw: Error: no"):
        tab.evaluate("throw new Error('no')")
    tab.close()
