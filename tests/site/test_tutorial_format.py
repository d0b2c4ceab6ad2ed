"""Every tutorial is one file with the same parts."""

import ast
import re
import sys
import tomllib

import pytest

from tools.tutorials import lists
from tools.tutorials.build import ROOT
from tools.tutorials.run import notebook_of
from tools.tutorials.scripts import FOLDER, discover

pytestmark = pytest.mark.one_backend

SCRIPTS = discover()
QUICK = 'QUICK = os.environ.get("QUICK", "0") != "0"'
PARTS = (
    "](NAME-",  # what is built, a picture
    "**You will learn**",
    "**Prerequisites**",
    "**Time**:",
    "**Published result**",
    "\n## Setup\n\nIn a checkout, `make .venv/made` installs",
    "\n## Summary\n",
    "\n## Exercises\n",
    "\n**Next**: ",
)


@pytest.fixture(params=SCRIPTS)
def name(request):
    return request.param


def test_folder_has_tutorials_and_their_index_only():
    found = {path.name for path in FOLDER.iterdir()} - {"__pycache__"}
    assert found == {lists.INDEX.name, *(f"{name}.py" for name in SCRIPTS)}


def test_length(name):
    assert len(SCRIPTS[name].read_text("utf-8").splitlines()) <= 600


def test_imports_are_installed_with_the_package(name):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    extra = project["project"]["optional-dependencies"]["examples"]
    extra = {re.match(r"[\w-]+", one)[0].replace("-", "_") for one in extra}
    allowed = {"keras", "keras_attn", "matplotlib", "numpy"} | extra
    allowed.add("sklearn")  # of scikit-learn
    imported = set()
    for node in ast.walk(ast.parse(SCRIPTS[name].read_text("utf-8"))):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            imported.add(node.module.partition(".")[0])
    assert imported - sys.stdlib_module_names <= allowed


def test_parts_are_in_order(name):
    text = lists.prose(SCRIPTS[name])
    places = [text.find(part.replace("NAME", name)) for part in PARTS]
    assert -1 not in places, PARTS[places.index(-1)]
    assert places == sorted(places)
    summary, _, _ = text[places[-3] :].partition("\n## Exercises\n")
    assert 1 <= len(re.findall(r"^- ", summary, re.MULTILINE)) <= 5


def test_setup_has_the_quick_setting(name):
    cells = notebook_of(SCRIPTS[name]).cells
    code = [cell.source for cell in cells if cell.cell_type == "code"]
    # The first cell sets up matplotlib in a notebook.
    assert QUICK in code[1]
    assert 'os.environ.setdefault("KERAS_BACKEND", "jax")' in code[1]
