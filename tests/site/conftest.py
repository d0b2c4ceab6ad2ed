"""Fixture of the built site."""

import os
import pathlib
import posixpath
import subprocess
import sys
from urllib.parse import urlsplit

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


def check_link(site, path, href):
    """Fails if a link of a page has no target on the site.

    The strict build does not see links in diagrams, nor anchors in docstrings.
    """
    url = urlsplit(href)
    folder = path.relative_to(site).parent.as_posix()
    target = site / posixpath.normpath(posixpath.join(folder, url.path))
    target = target if url.path else path
    assert target.is_file(), f"{path}: {href}"
    text = target.read_text("utf-8")
    assert not url.fragment or f'id="{url.fragment}"' in text, href


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
