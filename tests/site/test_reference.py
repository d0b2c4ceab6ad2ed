"""The reference, tutorials and equations are linked with each other."""

import html
import inspect
import pathlib
import posixpath
import re

import griffe
import pytest

from tests.helpers.public_api import public_objects
from tests.site.conftest import ROOT, check_link
from tools.site import reference, related
from tools.site.docstrings import NoAnnotations, links

pytestmark = pytest.mark.one_backend

PUBLIC = public_objects()
CLASSES = [name for name, value in PUBLIC.items() if inspect.isclass(value)]


def test_definitions_are_the_public_names():
    assert related.definitions().keys() == PUBLIC.keys()
    assert related.entries().keys() == PUBLIC.keys()


def test_tables_name_what_exists():
    known = PUBLIC.keys() | {name.partition(".")[0] for name in PUBLIC}
    assert known > related.TAUGHT_IN.keys() | related.TESTED_IN.keys()
    tests = [related.tests_of(name) for name in CLASSES]
    assert [path for path in tests if not (ROOT / path).is_file()] == []


def test_tests_have_the_name_of_the_module_or_mention_the_name():
    found = related.tests_of("layers.Dropout")
    assert found == "tests/layers/test_dropout.py"
    found = related.tests_of("explain.head_entropy")
    assert found == "tests/explain/test_rollout.py"
    # Its tests only have the name of the function that returns it.
    found = related.tests_of("datasets.AlignedPair")
    assert found == related.tests_of("datasets.make_aligned_pairs")


def test_equations_list_the_public_names_of_their_file():
    page = (related.DOCS / "equations.md").read_text("utf-8")
    files = re.findall(r"(?m)^\| .*? \| `(keras_attn/.*?)\.py`<br>", page)
    listed = [*related.equations(page).values()]
    for file, names in zip(files, listed, strict=True):
        module = file.replace("/", ".")
        defined = {
            name
            for name, path in related.definitions().items()
            if path.rpartition(".")[0] == module
        }
        assert PUBLIC.keys() >= {*names} >= defined, file


def test_every_class_is_taught_in_a_tutorial_or_a_guide():
    assert {name for name in CLASSES if not related.taught_in(name)} == set()


PAGE = """
# Title

```sh
# No section.
```

## *First*

```python
from keras_attn.layers import Dropout, FeedForward as Network
import keras_attn

FeedForward = None
```

??? example "Folded"

    ```python
    keras_attn.explain.rise(Network(8))
    ```

## Second

```python
Network(4), keras_attn.ops.attend, other.layers.Dropout
```

```python
an excerpt
```
"""


def test_uses_finds_the_first_section():
    assert related.uses(PAGE) == {
        "explain.rise": "*First*",
        "layers.FeedForward": "*First*",
        "ops.attend": "Second",
    }


def test_links_of_a_name():
    tests = "tests/layers/test_feed_forward.py"
    line, attributes, _ = links("layers.FeedForward").split("\n")
    assert line.split(" · ") == [
        "[Equation]"
        '(../equations.md#feed-forward-network "Feed-forward network")',
        f'[Tests]({related.source(tests)} "{tests}")',
        "[Tutorial](../tutorials/blocks/index.md#feed-forward-network"
        ' "Encoder and decoder, block by block")',
    ]
    assert "data-search-exclude" in attributes
    assert links("ops.PositionBias").startswith("[Tests]")


def test_pages_show_the_types_of_the_docstrings_only():
    code = '"""F.\n\n    Args:\n        x: even.\n    """'
    code = f"def f(x: int) -> int:\n    {code}"
    for extensions, expected in [((), "int"), ((NoAnnotations(),), "None")]:
        module = griffe.visit(
            "m",
            pathlib.Path("m.py"),
            code,
            extensions=griffe.Extensions(*extensions),
            docstring_parser="google",
        )
        function = module["f"]
        (section,) = function.docstring.parsed[1:]
        assert str(section.value[0].annotation) == expected
        assert str(function.returns) == expected


def test_table_follows_the_introduction():
    page = "# Page\n\nText.\n\n::: a.b.f\n\n## More\n\n::: a.g\n"
    found = reference.with_table(page, lambda path: f"{path}|")
    assert found == (
        "# Page\n\nText.\n\n| name | summary |\n| --- | --- |\n"
        "| [`f`](#a.b.f) | a.b.f\\| |\n| [`g`](#a.g) | a.g\\| |\n\n"
        "::: a.b.f\n\n## More\n\n::: a.g\n"
    )


@pytest.fixture(scope="module")
def api(site):
    """Dict from path to HTML of the API pages."""
    pages = sorted((site / "api").glob("*.html"))
    return {
        path: path.read_text("utf-8") for path in pages if path.stem != "index"
    }


ROW = re.compile(
    r'<td><a href="#([\w.]+)"><code>(\w+)</code></a></td>\n<td>(.+)</td>'
)


def plain(text):
    return re.sub("[`*]", "", text)


def test_each_page_starts_with_a_table_of_its_names(api):
    for path, page in api.items():
        start, *rest = re.split(r"<h2 ", page)
        rows = ROW.findall(start)
        public = [n for n in PUBLIC if n.startswith(f"{path.stem}.")]
        assert sorted(f"{path.stem}.{row[1]}" for row in rows) == sorted(public)
        found = [re.match('id="(.*?)"', entry)[1] for entry in rest]
        entries = [one for one in found if one.startswith("keras_attn.")]
        assert [anchor for anchor, *_ in rows] == entries
        for _, name, summary in rows:
            value = PUBLIC[f"{path.stem}.{name}"]
            if inspect.isclass(value) or inspect.isroutine(value):
                shown = html.unescape(re.sub("<.*?>", "", summary))
                first = inspect.getdoc(value).partition("\n")[0]
                assert plain(shown) == plain(first)


def related_links(api):
    """Yields name, path of the page, anchor, and a dict of links by label."""
    for path, page in api.items():
        for entry in re.split(r"<h2 ", page)[1:]:
            anchor = re.match('id="(.*?)"', entry)[1]
            if anchor.startswith("keras_attn."):
                line = re.findall(r'<p class="related".*?>(.*?)</p>', entry)
                assert len(line) == 1, anchor
                found = re.findall(r'<a href="(.*?)".*?>(\w+)</a>', line[0])
                name = f"{path.stem}.{anchor.rpartition('.')[2]}"
                yield name, path, anchor, {kind: url for url, kind in found}


def test_each_class_links_to_equation_tests_and_tutorial_and_back(api, site):
    source = related.source("")
    pages = {}
    for name, path, anchor, found in related_links(api):
        if name in CLASSES:
            assert found.keys() >= {"Tests"}
            assert found.keys() & {"Tutorial", "Guide"}, name
        for kind, href in found.items():
            if kind == "Tests":
                assert (ROOT / href.removeprefix(source)).is_file()
                continue
            check_link(site, path, href)
            if kind == "Guide":
                continue
            target, _, section = href.partition("#")
            target = site / posixpath.normpath(f"api/{target}")
            if target not in pages:
                pages[target] = target.read_text("utf-8")
            page = pages[target]
            if kind == "Equation":
                page = page.partition(f'<span id="{section}"')[2]
                page = page.partition("</td>")[0]
            else:
                page = page.partition('<h2 id="reference"')[2]
                page = page.partition("<h2 ")[0]
            assert re.search(rf'"[./]*api/{path.name}#{anchor}"', page), name
    assert len(pages) > 20
