"""Accessibility checks find barriers and nothing else."""

import pytest

from tools.site.barriers import barriers
from tools.site.server import serve
from tools.site.tab import VARIANTS, Tab

pytestmark = pytest.mark.one_backend

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>a page</title>
<link rel="icon" href="data:,"></head>
<body>{outside}<main><article><h1>A page</h1>{body}</article></main></body>
</html>
"""
PIXEL = (
    "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIB"
    "RAA7"
)
BAD = {
    "image-alt": f'<img src="{PIXEL}">',
    "color-contrast": '<p style="color: #bbb; background: #fff">pale</p>',
    "button-name": "<button></button>",
    "select-name": "<select><option>one</option></select>",
    "scrollable-region-focusable": (
        f'<pre style="overflow: auto; width: 9em"><code>{"long " * 99}</code>'
        "</pre>"
    ),
}


@pytest.fixture(scope="module")
def found(browser, tmp_path_factory):
    folder = tmp_path_factory.mktemp("barriers")
    tab = Tab(browser, VARIANTS[0])

    def of(body, whole=True, outside=""):
        name = f"page-{len(list(folder.iterdir()))}.html"
        text = PAGE.format(body=body, outside=outside)
        (folder / name).write_text(text, encoding="utf-8")
        tab.open(address + name)
        return barriers(tab, whole)

    with serve(folder) as address:
        yield of
    tab.close()


@pytest.mark.parametrize("rule", BAD)
def test_barrier_is_found(found, rule):
    (barrier,) = found(BAD[rule])
    assert barrier.startswith(f"{rule}: ") and "1 times, first " in barrier


def test_the_article_alone_is_checked_without_contrast(found):
    button = BAD["button-name"]
    assert found(BAD["color-contrast"], whole=False, outside=button) == []
    (barrier,) = found(BAD["image-alt"], whole=False, outside=button)
    assert barrier.startswith("image-alt: ")
    assert len(found(BAD["image-alt"], outside=button)) == 2


def test_accessible_page_has_no_barriers(found):
    body = f'<p>text</p><img src="{PIXEL}" alt="a dot"><a href="#x">on</a>'
    assert found(body) == []
