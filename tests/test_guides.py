"""The programs of the guides run and print the documented output."""

import importlib.util
import os
import pathlib
import re
import runpy

import keras
import pytest

from tests.helpers.cases import spread
from tests.helpers.examples import blocks, run, said
from tests.helpers.processes import Process

ROOT = pathlib.Path(__file__).parents[1]
GUIDES = ROOT / "docs" / "guides"
BACKEND = keras.backend.backend()


def without_numbers(report):
    """Normalizes percentages and column widths of a report."""
    report = re.sub(r"(?<![<.\d] )(?<![\d.])\d[\d.e+]* %", "# %", report)
    return [re.sub(" +", " ", line.strip()) for line in report.splitlines()]


def reports_in(page):
    """Returns the title and report of every section of a page with a report."""
    found = re.findall(
        r"^#+ ([^\n]*)\n(?:(?!^#).)*?^```text\n(.*?)^```$",
        page,
        re.DOTALL | re.MULTILINE,
    )
    return [(title, without_numbers(report)) for title, report in found]


def printed_by(output):
    """Returns the titles and reports that the program prints."""
    parts = re.split(r"^## (.*)\n", output, flags=re.MULTILINE)[1:]
    return [
        (title, without_numbers(report.strip()))
        for title, report in zip(parts[::2], parts[1::2], strict=True)
    ]


def run_program(path, environment):
    """Runs a program, in a process of its own."""
    os.environ.update(environment)
    runpy.run_path(str(path), run_name="__main__")


@pytest.mark.one_backend
def test_the_doctor_on_a_tutorial():
    program = GUIDES / "doctor_on_a_tutorial.py"
    status, output = Process(run_program, program, {}).wait()
    assert status == 0, output[-3000:]
    printed = printed_by(output)
    assert len(printed) == 3
    page = (GUIDES / "doctor.md").read_text(encoding="utf-8")
    assert reports_in(page) == printed


# What a program of `distributed_processes` prints, and its backend.
PROCESSES = [
    pytest.param(name, marks=pytest.mark.one_backend(needed))
    for name, needed in (("fsdp", "torch"), ("worker_fit", "tensorflow"))
    if BACKEND == needed
]


@pytest.mark.parametrize("name", PROCESSES)
def test_the_page_shows_what_a_program_of_processes_prints(name):
    program = f"distributed_processes/{name}.py"
    page = (GUIDES / "distributed_processes.md").read_text(encoding="utf-8")
    shown = page.partition(f"]({program})")[2]
    environments = [{}]
    if name == "worker_fit":
        load = runpy.run_path(str(GUIDES / program))
        environments = load["environments"]()
    processes = [
        Process(run_program, GUIDES / program, environment)
        for environment in environments
    ]
    for process in processes:
        status, output = process.wait()
        assert status == 0, output
        lines = [line for line in output.splitlines() if " " in line]
        expected = blocks("text", shown)[0].splitlines()
        found = [line for line in lines if line in expected]
        assert found == expected, output


def test_a_different_report_is_detected():
    page = "## Here\n\nText.\n\n```text\nmoved   12 %  a\n```\n"
    assert reports_in(page) == [("Here", ["moved # % a"])]
    assert reports_in(page) == printed_by("## Here\n\nmoved 1.2e+03 % a\n\n")
    assert reports_in(page) != printed_by("## Here\n\nmoved 12 % b\n\n")
    assert reports_in(page) != printed_by("## Here\n\nmoved < 0.01 % a\n\n")


# These need models of the reader or of a tutorial, or published weights. A test
# of distribution runs the page that needs eight devices.
NOT_RUN = {"distributed.md", "doctor.md", "export.md", "pretrained.md"}
PAGES = {
    path.name: path.read_text(encoding="utf-8")
    for path in sorted(GUIDES.glob("*.md"))
}
RUN = {
    name: blocks("python", page)
    for name, page in PAGES.items()
    if name not in NOT_RUN and blocks("python", page)
}


def table(page, first):
    """Returns the rows of the table with a given first column, as dicts."""
    found = re.search(rf"^\| {first} \|.*\n(?:\|.*\n)*", page, re.MULTILINE)
    head, _, *rows = (
        [cell.strip() for cell in line.strip("|\n").split("|")]
        for line in found[0].splitlines()
    )
    return [dict(zip(head, row, strict=True)) for row in rows]


# Packages that a guide or a script imports on every backend.
IMPORTS = {
    "fully_masked_transformers": "torch",
    "add_a_family.md": "torch transformers",
    "export_from_torch": "tensorflow onnxscript",
    "migrating.md": "torch",
    "text.md": "tensorflow",
}


def skip_without_packages(name):
    for package in IMPORTS.get(name, "").split():
        pytest.importorskip(package)


@pytest.fixture
def in_a_folder(tmp_path, monkeypatch):
    """Runs a test in an empty folder."""
    monkeypatch.chdir(tmp_path)


# A warning from Keras: composite layers cannot be quantized themselves.
@pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize`")
@pytest.mark.parametrize(
    "name", ["kernels.md", *spread(sorted(RUN.keys() - {"kernels.md"}))]
)
def test_the_code_of_a_guide(name, capsys, in_a_folder):
    """All blocks of a page, in order, in one namespace."""
    skip_without_packages(name)
    names = {"__name__": "__main__"}
    outcomes = [run(code, names, capsys, name) for code in RUN[name]]
    assert sum(len(expected) for expected, _ in outcomes) >= 2
    for code, (expected, printed) in zip(RUN[name], outcomes, strict=True):
        assert printed == expected, code
    if name == "kernels.md":
        chosen = {title: plan.kernel for title, plan in names["plans"].items()}
        rows = table(PAGES[name], "call")
        assert chosen == {row["call"]: row[BACKEND] for row in rows}


@pytest.mark.one_backend
def test_the_guide_on_maps_has_the_figures_of_the_tutorial():
    guide = " ".join(PAGES["looking_inside.md"].split())
    printed, sorting = (
        (ROOT / "docs" / "tutorials" / name / "index.md").read_text("utf-8")
        for name in ("looking_inside", "sorting")
    )
    for row in table(PAGES["looking_inside.md"], "map"):
        line = rf"^{row['map']} +{row['deletion']} +{row['insertion']}$"
        assert re.search(line, printed, re.MULTILINE), row
    idle = re.search(r"^in (\S+)% of the sentences", printed, re.M)[1]
    assert f"In {idle} % of the sentences the word" in guide
    word, weight, change = re.search(
        r"^weight on '(.*)': (\S+)%, effect (\S+)$", printed, re.M
    ).groups()
    moved = f"hiding that word changes the output by {float(change):.3f}"
    assert f"{weight} % of the weight lies on *{word}*, and {moved}" in guide
    sorts = re.search(r"^attention is largest .*: (\S+)%$", sorting, re.M)[1]
    assert f"written next in {sorts} % of 256 cases" in guide


def test_every_guide_is_run_or_listed():
    assert PAGES.keys() - RUN.keys() - NOT_RUN == {"why.md"}


def test_said_parses_expected_output():
    code = "print(1)  # 1\nx = 2  # no\nprint(x)\n# 2\n# 3\n    print(4)  # 4\n"
    assert said(code) == ["1", "2", "3"]


# Those in `NEEDS` show PyTorch itself and run with that backend only.
WHY = sorted((GUIDES / "why").glob("*.py"))
NEEDS = {
    "attentions_empty": "torch",
    "fully_masked_torch": "torch",
    "export_from_torch": "torch",
    "tgt_is_causal": "torch",
}


def test_the_list_of_failures_names_every_script():
    rows = table(PAGES["why.md"], "failure")
    numbers = [int(row["failure"].partition(".")[0]) for row in rows]
    assert numbers == list(range(1, 14))
    links = [re.findall(r"\((\S+\.py)\)", row["shown by"]) for row in rows]
    assert all(links)
    scripts = [f"why/{path.name}" for path in WHY]
    assert sorted(link for row in links for link in row) == [
        "doctor_on_a_tutorial.py",
        *scripts,
    ]


def shown(page, script):
    """Returns a script's documented output by backend; None: for all."""
    section = page.partition(f"](why/{script}.py)")[2]
    section = re.split(r"^## |\]\(why/", section, flags=re.MULTILINE)[0]
    found = {}
    for block in blocks("text", section):
        backend = re.search(r"^keras .* on (\w+)$", block, re.MULTILINE)
        found[backend and backend[1]] = block
    return found


def without_versions(text):
    """Returns the lines without version numbers and backend."""
    text = re.sub(r"^([\w-]+) \d[\w.]*( on \w+)?$", r"\1", text, flags=re.M)
    return text.splitlines()


@pytest.mark.captured_steps
@pytest.mark.parametrize(
    "script",
    [p for p in WHY if NEEDS.get(p.stem, BACKEND) == BACKEND],
    ids=lambda path: path.stem,
)
def test_the_page_shows_what_a_script_prints(script, capsys):
    skip_without_packages(script.stem)
    reports = shown(PAGES["why.md"], script.stem)
    expected = reports.get(BACKEND) or next(iter(reports.values()))
    runpy.run_path(str(script), run_name="__main__")
    printed = without_versions(capsys.readouterr().out)
    expected = without_versions(expected)
    if "for want of KerasHub" in "".join(printed):
        assert importlib.util.find_spec("keras_hub") is None
        expected = [
            line for line in expected if not line.startswith("keras-hub")
        ]
        theirs = [line.startswith("theirs:") for line in expected].index(True)
        assert printed[theirs].endswith("pip install keras-hub")
        expected[theirs] = printed[theirs]
    assert printed == expected, "Has a newer version fixed it?"
    assert any("ours:" in line for line in printed)
