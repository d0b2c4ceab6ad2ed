"""The site builds strictly, documents the public API and is self-contained."""

import html.parser
import importlib
import pathlib
import re
import sys
import urllib.parse

import pytest

import keras_attn
from tests.site.conftest import ROOT, build_site

pytestmark = pytest.mark.one_backend

DOCS = ROOT / "docs"


def public_names():
    """Yields (path, value) of every public name."""
    for package in keras_attn.__all__:
        if callable(getattr(keras_attn, package)):
            yield f"keras_attn.{package}", getattr(keras_attn, package)
            continue
        module = importlib.import_module(f"keras_attn.{package}")
        names = getattr(module, "__all__", None) or [
            name
            for name, value in vars(module).items()
            if not name.startswith("_")
            and getattr(value, "__module__", None) == module.__name__
        ]
        for name in names:
            yield f"{module.__name__}.{name}", getattr(module, name)


def resolve(path):
    """Returns the object at a dotted path, or None.

    A module takes precedence over a function of the same name, as on the site.
    """
    value = keras_attn
    names = path.split(".")
    for length in range(2, len(names) + 1):
        module = sys.modules.get(".".join(names[:length]))
        value = module or getattr(value, names[length - 1], None)
    return value


def undocumented(pages):
    """Lists public names without an entry in the HTML of the API pages.

    An entry under another name of the same object counts.
    """
    entries = re.findall(r'<h\d id="(keras_attn\.[\w.]+)"', pages)
    objects = {id(resolve(path)) for path in entries}
    return [path for path, value in public_names() if id(value) not in objects]


@pytest.fixture(scope="module")
def api(site):
    """The HTML of all API pages."""
    pages = sorted((site / "api").glob("*.html"))
    return "\n".join(page.read_text(encoding="utf-8") for page in pages)


def test_every_public_name_is_documented(api):
    assert undocumented(api) == []


@pytest.mark.parametrize(
    "path",
    [
        "keras_attn.layers.MultiHeadAttention",
        "keras_attn.cache.append",
        "keras_attn.ops.attend",
        "keras_attn.training.Perplexity",
    ],
)
def test_undocumented_name_is_found(api, path):
    # A function in a module of the same name may have an entry under either.
    entry = re.compile(rf'id="{path}(\.{path.rpartition(".")[2]})?"')
    assert entry.search(api)
    assert undocumented(entry.sub('id="gone"', api)) == [path]


def test_entry_shows_docstring_sections(api):
    entry = api.partition('id="keras_attn.layers.MultiHeadAttention"')[2]
    titles = re.findall(r'doc-section-title">([^<]*)<', entry)
    assert titles[:5] == [
        "Parameters:",
        "Call arguments",
        "Returns:",
        "Raises:",
        "Examples:",
    ]


def test_strict_build_fails_on_broken_links(tmp_path):
    docs = tmp_path / "docs"
    docs.mkdir()
    pages = {
        "index.md": "# Start\n",
        "dead.md": "[page](nowhere.md)\n\n[anchor](index.md#nowhere)\n\n"
        "[file](nowhere.zip)\n",
        "lost.md": "# A page missing from the navigation\n",
    }
    for name, text in pages.items():
        (docs / name).write_text(text, encoding="utf-8")
    config = tmp_path / "mkdocs.yml"
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    text = text.replace("docs_dir: docs", f"docs_dir: {docs}")
    text = text.replace("tools/site/", f"{ROOT}/tools/site/")
    text = text.replace("paths: [.]", f"paths: [{ROOT}]")
    nav = "nav:\n  - index.md\n  - Dead: dead.md\n"
    text, changed = re.subn(r"(?ms)^nav:\n.*?(?=^\w)", nav, text)
    assert changed == 1
    config.write_text(text, encoding="utf-8")
    result = build_site(tmp_path / "site", config=config)
    assert result.returncode != 0
    for named in ("nowhere.md", "#nowhere", "nowhere.zip", "lost.md"):
        assert named in result.stderr


class Loads(html.parser.HTMLParser):
    """Collects the URLs that a page loads."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        """Collects sources and resource links, but not hyperlinks."""
        attributes = dict(attrs)
        if tag == "link" and attributes.get("rel") not in ("next", "prev"):
            self.found.append(attributes["href"])
        if tag != "a":
            self.found += [attributes.get("src"), attributes.get("data")]
        self.found += re.findall(r"url\(([^)]*)\)", attributes.get("style", ""))


def loaded_elsewhere(text, suffix):
    """Returns URLs of other hosts that a page or a style sheet loads."""
    if suffix == ".css":
        found = re.findall(r"url\(\s*['\"]?([^)'\"]*)", text)
        found += re.findall(r"@import\s+['\"]([^'\"]*)", text)
    else:
        reader = Loads()
        reader.feed(text)
        found = filter(None, reader.found)
    return [url for url in found if urllib.parse.urlsplit(url).netloc]


def test_nothing_is_loaded_from_another_host(site):
    found = {
        path.relative_to(site).as_posix(): loaded_elsewhere(
            path.read_text(encoding="utf-8"), path.suffix
        )
        for path in site.rglob("*")
        if path.suffix in (".css", ".html")
    }
    assert len(found) > 20
    assert {path: urls for path, urls in found.items() if urls} == {}


@pytest.mark.parametrize(
    "text, suffix",
    [
        ('<script src="https://a.org/x.js"></script>', ".html"),
        ('<img alt="" src="//a.org/x.png">', ".html"),
        ('<link rel="preconnect" href="https://a.org">', ".html"),
        ('<p style="background: url(https://a.org/x.png)">', ".html"),
        ("a { background: url('https://a.org/x.png') }", ".css"),
        ('@import "https://a.org/x.css";', ".css"),
    ],
)
def test_resource_of_another_host_is_found(text, suffix):
    assert len(loaded_elsewhere(text, suffix)) == 1


def test_hyperlinks_and_local_files_are_allowed():
    page = '<a href="https://a.org">a</a><img src="x.png"><p style="color:red">'
    assert loaded_elsewhere(page, ".html") == []


def test_pages_are_small(site):
    pages = {path: path.stat().st_size for path in site.rglob("*.html")}
    assert max(pages.values()) < 3_000_000
    home = site / "index.html"
    reader = Loads()
    reader.feed(home.read_text("utf-8"))
    files = {site / url.partition("#")[0] for url in filter(None, reader.found)}
    sizes = [path.stat().st_size for path in files if path.is_file()]
    # Without the index of the search.
    assert len(sizes) > 8 and sum(sizes) + pages[home] < 600_000


def test_downloads_of_the_tutorials_are_generated(site):
    pages = sorted((site / "tutorials").glob("*/index.html"))
    assert len(pages) >= 20
    for page in pages:
        text = page.read_text(encoding="utf-8")
        for kind in ("ipynb", "py"):
            file = f"{page.parent.name}.{kind}"
            assert f'href="{file}"' in text
            assert (page.parent / file).stat().st_size > 1000


def test_katex_is_vendored_with_its_license(site):
    katex = site / "assets" / "katex"
    assert "MIT" in (katex / "LICENSE").read_text(encoding="utf-8")
    sheet = (katex / "katex.min.css").read_text(encoding="utf-8")
    fonts = set(re.findall(r"url\((fonts/[^)]*)\)", sheet))
    assert len(fonts) == 20
    assert all((katex / font).is_file() for font in fonts)


def test_benchmarks_page_includes_every_table():
    page = (DOCS / "benchmarks.md").read_text(encoding="utf-8")
    included = re.findall(r'--8<-- "docs/benchmarks/(.+)"', page)
    tables = (DOCS / "benchmarks").glob("*.md")
    assert included == sorted(included, key=included.index)
    assert set(included) == {path.name for path in tables}


def test_only_the_built_site_folder_is_ignored():
    lines = pathlib.Path(ROOT / ".gitignore").read_text("utf-8").splitlines()
    assert "/site/" in lines and "site/" not in lines
