"""Every page of the site, as Chromium shows it."""

import os
import pathlib

import pytest

from tools.site.__main__ import look
from tools.site.check import check, heard
from tools.site.server import serve
from tools.site.tab import VARIANTS, Tab

pytestmark = pytest.mark.one_backend

LOOKED_AT = [v for v in VARIANTS if v.name in ("desktop-light", "phone-dark")]
# What is between a reader and a page is looked for on every page in light, and
# in dark, where only colours differ, on one of each kind.
SOME_OF_EACH = {
    "index.html",
    "api/explain.html",
    "benchmarks.html",
    "guides/masks.html",
    "install.html",
    "tutorials/translate/index.html",
    "tutorials/xlnet/index.html",
}
# SCREENSHOTS=folder keeps a picture of every page, to be looked at.
PICTURES = os.environ.get("SCREENSHOTS")


# Both widths and both schemes; which goes with which changes no page.
@pytest.mark.parametrize("variant", LOOKED_AT, ids=lambda v: v.name)
def test_nothing_is_wrong_with_any_page(site, browser, variant):
    if PICTURES:
        pathlib.Path(PICTURES).mkdir(parents=True, exist_ok=True)
    reach = SOME_OF_EACH if variant.dark else None
    assert reach is None or all((site / page).is_file() for page in reach)
    found = look(site, browser, variant, PICTURES, reach)
    assert len(found) == len(list(site.rglob("*.html"))) > 15
    assert {page: wrong for page, wrong in found.items() if wrong} == {}


@pytest.fixture
def tab(browser):
    """A tab as wide as a desktop's, light."""
    tab = Tab(browser, VARIANTS[0])
    yield tab
    tab.close()


def test_there_are_formulas_and_pictures(site, tab):
    with serve(site) as address:
        assert check(tab, f"{address}tutorials/translate/index.html") == []
        count = "document.querySelectorAll('{}').length"
        assert tab.evaluate(count.format("article .katex")) >= 2
        assert tab.evaluate(count.format("article img")) == 5


SEARCH = """
(async () => {
  const field = document.querySelector("[data-md-component=search-query]");
  field.focus();
  field.value = "MultiHeadAttention";
  field.dispatchEvent(new Event("input", {bubbles: true}));
  field.dispatchEvent(new KeyboardEvent("keyup", {bubbles: true}));
  const links = ".md-search-result__item a";
  for (let i = 0; i < 100; i++) {
    await new Promise((done) => setTimeout(done, 100));
    const found = [...document.querySelectorAll(links)].map((a) => a.href);
    if (found.length) return found;
  }
  return [];
})()
"""


def test_the_search_finds_a_layer_without_another_host(site, tab):
    with serve(site) as address:
        tab.open(f"{address}index.html")
        found = tab.evaluate(SEARCH)
        host = address.split("/")[2]
    wanted = f"{address}api/layers.html"
    assert any(link.startswith(wanted) for link in found), found
    assert list(heard(tab.events, host)) == []


def test_the_reader_can_choose_dark(site, tab):
    scheme = "document.body.dataset.mdColorScheme"
    with serve(site) as address:
        tab.open(f"{address}index.html")
        assert tab.evaluate(scheme) == "default"
        tab.evaluate("document.querySelector('[for=__palette_1]').click()")
        assert tab.evaluate(scheme) == "slate"
        # It is remembered on the next page.
        tab.open(f"{address}install.html")
        assert tab.evaluate(scheme) == "slate"
