"""Checks of every page of the site in Chromium."""

import os
import pathlib

import pytest

from tools.site.__main__ import look
from tools.site.check import check, heard
from tools.site.server import serve
from tools.site.tab import VARIANTS, Tab

pytestmark = pytest.mark.one_backend

# Every page is checked in a small window, where tables and listings must not be
# too wide, and in light mode. In other variants, only layout and colors differ:
# one page of each kind is checked there. The theme makes the navigation and the
# contrast of text alike on all pages: they too are checked on those pages only.
SOME_OF_EACH = {
    "index.html",
    "api/explain.html",
    "benchmarks.html",
    "guides/masks.html",
    "install.html",
    "tutorials/translate/index.html",
    "tutorials/xlnet/index.html",
}
# SCREENSHOTS=folder saves a screenshot of every page.
PICTURES = os.environ.get("SCREENSHOTS")


# Both widths and both schemes, but not all combinations, which add nothing.
@pytest.mark.parametrize("name", ["phone-light", "desktop-dark"])
def test_pages_have_no_problems(site, browser, name):
    if PICTURES:
        pathlib.Path(PICTURES).mkdir(parents=True, exist_ok=True)
    (variant,) = (one for one in VARIANTS if one.name == name)
    every = {p.relative_to(site).as_posix() for p in site.rglob("*.html")}
    assert len(every) > 15 and every > SOME_OF_EACH
    pages = SOME_OF_EACH if variant.dark else every
    found = look(site, browser, variant, PICTURES, pages, SOME_OF_EACH)
    assert found.keys() == pages
    assert {page: wrong for page, wrong in found.items() if wrong} == {}


@pytest.fixture
def tab(browser):
    """A desktop tab in light mode."""
    tab = Tab(browser, VARIANTS[0])
    yield tab
    tab.close()


def test_formulas_and_images_are_rendered(site, tab):
    with serve(site) as address:
        assert check(tab, f"{address}tutorials/translate/index.html") == []
        count = "document.querySelectorAll('{}').length"
        assert tab.evaluate(count.format("article .katex")) >= 2
        assert tab.evaluate(count.format("article img")) == 6


SEARCH = """
(async () => {
  const field = document.querySelector("[data-md-component=search-query]");
  field.focus();
  field.value = "WORDS";
  field.dispatchEvent(new Event("input", {bubbles: true}));
  field.dispatchEvent(new KeyboardEvent("keyup", {bubbles: true}));
  const links = ".md-search-result__item a";
  document.querySelectorAll(links).forEach((link) => link.remove());
  for (let i = 0; i < 100; i++) {
    await new Promise((done) => setTimeout(done, 100));
    const found = [...document.querySelectorAll(links)].map((a) => a.href);
    if (found.length) return found;
  }
  return [];
})()
"""


# What readers look for, and a page that they must find.
SEARCHES = {
    "MultiHeadAttention": "api/layers.html",
    "GQA": "glossary.html",
    "MQA": "glossary.html",
    "BPE": "glossary.html",
    "FlashAttention": "glossary.html",
    "KV cache": "api/cache.html",
    "RoPE": "glossary.html",
    "teacher forcing": "tutorials/recurrent/index.html",
    "exposure bias": "tutorials/recurrent/index.html",
    "Colab": "tutorials/index.html",
}


def test_search_works_without_other_hosts(site, tab):
    with serve(site) as address:
        tab.open(f"{address}index.html")
        host = address.split("/")[2]
        for text, page in SEARCHES.items():
            found = tab.evaluate(SEARCH.replace("WORDS", text))
            places = [link.removeprefix(address) for link in found]
            assert any(place.startswith(page) for place in places), (
                text,
                places,
            )
    assert list(heard(tab.events, host)) == []


def test_dark_mode_can_be_chosen(site, tab):
    scheme = "document.body.dataset.mdColorScheme"
    with serve(site) as address:
        tab.open(f"{address}index.html")
        assert tab.evaluate(scheme) == "default"
        tab.evaluate("document.querySelector('[for=__palette_1]').click()")
        assert tab.evaluate(scheme) == "slate"
        # The choice persists on the next page.
        tab.open(f"{address}install.html")
        assert tab.evaluate(scheme) == "slate"
