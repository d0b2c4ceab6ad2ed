"""Fixture of the built site."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]


def build_site(folder, *, config="mkdocs.yml"):
    """Runs the same strict build as `make docs`."""
    return subprocess.run(
        [
            *(sys.executable, "-m", "mkdocs", "build", "--strict"),
            *("--config-file", str(config), "--site-dir", str(folder)),
        ],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The folder of the site, built strictly from the committed pages."""
    folder = tmp_path_factory.mktemp("site")
    result = build_site(folder)
    assert result.returncode == 0, result.stderr
    return folder
