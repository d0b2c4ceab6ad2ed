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


def pytest_terminal_summary(terminalreporter):
    """Reports how many assertions of the tutorials a quick run leaves out."""
    counts = [
        value.split()
        for report in terminalreporter.getreports("passed")
        for key, value in report.user_properties
        if key == "assertions"
    ]
    if counts:
        total, skipped = (sum(int(row[i]) for row in counts) for i in (1, 2))
        terminalreporter.write_line(
            f"{len(counts)} tutorials ran with QUICK=1: {total} assertions, "
            f"{skipped} of them on trained quality, not run"
        )
