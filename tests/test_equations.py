"""The page of equations refers to files and tests that exist."""

import pathlib
import re

import pytest

pytestmark = pytest.mark.one_backend

ROOT = pathlib.Path(__file__).parents[1]
ROWS = re.findall(
    r"^\| .+? \| .+? \| `(.+?)`<br>`(.+?)`<br>`(.+?)` \| .+? \|$",
    (ROOT / "docs/equations.md").read_text("utf-8"),
    re.MULTILINE,
)


def test_every_row_is_parsed():
    page = (ROOT / "docs/equations.md").read_text("utf-8")
    # Two lines are the header of the table.
    assert len(ROWS) == len(re.findall(r"^\|", page, re.MULTILINE)) - 2 > 20


@pytest.mark.parametrize(("file", "test", "name"), ROWS)
def test_file_and_test_exist(file, test, name):
    assert (ROOT / file).is_file()
    assert f"\ndef {name}(" in (ROOT / test).read_text("utf-8")
