"""The programs of the guides run, and print what their pages say."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]
GUIDES = ROOT / "docs" / "guides"


def without_numbers(report):
    """A report whose shares and widths are of no account."""
    report = re.sub(r"(?<![<.\d] )(?<![\d.])\d[\d.e+]* %", "# %", report)
    return [re.sub(" +", " ", line.strip()) for line in report.splitlines()]


def reports_in(page):
    """Title and report of every section of a page that shows one."""
    found = re.findall(
        r"^#+ ([^\n]*)\n(?:(?!^#).)*?^```text\n(.*?)^```$",
        page,
        re.DOTALL | re.MULTILINE,
    )
    return [(title, without_numbers(report)) for title, report in found]


def printed_by(output):
    """Title and report of everything that the program prints."""
    parts = re.split(r"^## (.*)\n", output, flags=re.MULTILINE)[1:]
    return [
        (title, without_numbers(report.strip()))
        for title, report in zip(parts[::2], parts[1::2], strict=True)
    ]


@pytest.mark.one_backend
def test_the_doctor_on_a_tutorial():
    result = subprocess.run(
        [sys.executable, str(GUIDES / "doctor_on_a_tutorial.py")],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    printed = printed_by(result.stdout)
    assert len(printed) == 3
    page = (GUIDES / "doctor.md").read_text(encoding="utf-8")
    assert reports_in(page) == printed


def test_another_finding_is_noticed():
    page = "## Here\n\nText.\n\n```text\nmoved   12 %  a\n```\n"
    assert reports_in(page) == [("Here", ["moved # % a"])]
    assert reports_in(page) == printed_by("## Here\n\nmoved 1.2e+03 % a\n\n")
    assert reports_in(page) != printed_by("## Here\n\nmoved 12 % b\n\n")
    assert reports_in(page) != printed_by("## Here\n\nmoved < 0.01 % a\n\n")
