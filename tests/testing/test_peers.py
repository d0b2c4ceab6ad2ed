"""The guide's table of what the layers of Keras and KerasHub fail."""

import pathlib
import re
import runpy

import keras
import pytest

GUIDES = pathlib.Path(__file__).parents[2] / "docs" / "guides"
PROGRAM = runpy.run_path(str(GUIDES / "testing_peers.py"))
PAGE = (GUIDES / "testing.md").read_text(encoding="utf-8")
TITLES = {"jax": "JAX", "tensorflow": "TensorFlow", "torch": "PyTorch"}


def listed(cell, backend):
    """The names in a cell that hold on a backend."""
    names = []
    for part in cell.split(";"):
        on = re.match(r" *on ([\w, ]+?) `", part)
        if on is None or TITLES[backend] in on[1]:
            names += re.findall(r"`(\w+)`", part)
    return names


def rows():
    """Dict of layers to the cells of their row."""
    table = PAGE.partition("\n| layer | fails | does not apply |\n")[2]
    lines = table.partition("\n\n")[0].splitlines()[1:]
    cells = [[c.strip(" `") for c in line.split("|")[1:-1]] for line in lines]
    return {
        first: [f"`{cell}`" if cell else "" for cell in others]
        for first, *others in cells
    }


# The library's other tests run on PyTorch too, where nothing is compiled.
@pytest.mark.one_backend
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", rows())
def test_the_table_is_what_the_program_finds(name):
    peers = {peer: arguments for peer, *arguments in PROGRAM["peers"]()}
    if name not in peers:
        pytest.skip("KerasHub is not installed")
    found = {
        check: result
        for check, (result, _) in PROGRAM["outcomes"](*peers[name]).items()
    }
    fails, without = rows()[name]
    backend = keras.backend.backend()
    expected = dict.fromkeys(found, "passes")
    expected |= dict.fromkeys(listed(fails, backend), "fails")
    expected |= dict.fromkeys(listed(without, backend), "-")
    assert found == expected, "Has a newer version fixed it?"


@pytest.mark.one_backend
def test_a_cell_names_backends():
    cell = "`causality`; on JAX, PyTorch `host_reads`"
    assert listed(cell, "torch") == ["causality", "host_reads"]
    assert listed(cell, "tensorflow") == ["causality"]
    assert len(rows()) == 8
