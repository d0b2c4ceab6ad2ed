"""The page on equations names files and tests that are there."""

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


def test_every_row_is_read():
    page = (ROOT / "docs/equations.md").read_text("utf-8")
    # Two lines are the head of the table.
    assert len(ROWS) == len(re.findall(r"^\|", page, re.MULTILINE)) - 2 > 20


@pytest.mark.parametrize(("file", "test", "name"), ROWS)
def test_file_and_test_are_there(file, test, name):
    assert (ROOT / file).is_file()
    assert f"\ndef {name}(" in (ROOT / test).read_text("utf-8")
