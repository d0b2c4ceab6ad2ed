"""Building a small tutorial; a failing one keeps the old page."""

import json

import keras
import pytest

from tools.site.downloads import downloads
from tools.tutorials import stamp as stamps
from tools.tutorials.build import build, rewrite
from tools.tutorials.failure import BuildError
from tools.tutorials.run import run
from tools.tutorials.scripts import digest

pytestmark = pytest.mark.one_backend

BACKEND = keras.backend.backend()
SCRIPT = """# %% [markdown]
# # Learn
#
# What there is to learn.

# %%
import os
import sys

import keras
from matplotlib.figure import Figure

print(keras.backend.backend(), os.environ.get("QUICK"))
print(sorted(os.listdir()), "MINUTES" in os.environ)
print("not on the page", file=sys.stderr)

# %%
bar = keras.utils.Progbar(3)
for step in range(3):
    bar.update(step + 1)

# %% alt="A line that rises"
figure = Figure(figsize=(2, 1))
figure.subplots().plot([1, 2])
figure
"""


@pytest.fixture
def script(tmp_path):
    folder = tmp_path / "tutorials"
    folder.mkdir()
    (folder / "learn.py").write_text(SCRIPT, encoding="utf-8")
    return folder / "learn.py"


def test_build_and_rewrite_a_page(script, tmp_path, monkeypatch):
    monkeypatch.setenv("MINUTES", "1")
    monkeypatch.setenv("QUICK", "1")
    messages = []
    page = build(script, BACKEND, pages=tmp_path / "pages", say=messages.append)
    text = page.read_text(encoding="utf-8")
    # Settings of the environment do not affect the page, and the tutorial runs
    # in an empty folder.
    assert f"```{{.text .output}}\n{BACKEND} None\n[] False\n```" in text
    assert "\nnot on the page" not in text
    assert "matplotlib inline" not in text
    (progress,) = [line for line in text.splitlines() if "/3" in line]
    assert progress.startswith("3/3 ━")
    assert "![A line that rises](learn-1.png){ width=" in text
    folder = page.parent
    assert (folder / "learn-1.png").read_bytes().startswith(b"\x89PNG")
    stamp = json.loads((folder / "stamp.json").read_text(encoding="utf-8"))
    assert stamp["backend"] == BACKEND and stamp["quick"] is False
    assert 0 < stamp["seconds"] < 300
    assert stamp["source"] == digest(script)
    assert messages == [f"cell {number} of 4" for number in (0, 2, 3, 4)]
    made = downloads(script, folder)
    notebook = made["learn.ipynb"].decode()
    assert "tools.tutorials.facts" not in notebook
    assert f"{BACKEND} None" in notebook
    assert made["learn.py"] == script.read_bytes()

    # Rewriting from the outputs changes nothing.
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    page.write_text("by hand", encoding="utf-8")
    rewrite(script, tmp_path / "pages")
    after = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert before == after

    # New prose keeps the outputs of the run; changed code raises.
    new = SCRIPT.replace("# What there is to learn.", "# Why one learns.")
    script.write_text(new.replace("that rises", "upwards"), encoding="utf-8")
    rewrite(script, tmp_path / "pages")
    rewritten = page.read_text(encoding="utf-8")
    assert rewritten == text.replace(
        "What there is to learn.", "Why one learns."
    ).replace("that rises", "upwards")
    assert not stamps.has_changed(script, stamps.read(folder))
    assert stamps.read(folder)["seconds"] == stamp["seconds"]
    kept = {path.name: path.read_bytes() for path in folder.iterdir()}
    script.write_text(new.replace("step + 1", "step"), encoding="utf-8")
    with pytest.raises(BuildError, match=r"The code of learn\.py"):
        rewrite(script, tmp_path / "pages")
    assert kept == {path.name: path.read_bytes() for path in folder.iterdir()}


def test_facts_are_read_despite_other_output(script):
    printing = """# %%
import sys

def say(*_):
    for stream in (sys.stdout, sys.stderr, sys.stdout):
        print("{}", file=stream, flush=True)

get_ipython().events.register("pre_run_cell", say)
get_ipython().events.register("post_run_cell", say)
"""
    script.write_text(printing, encoding="utf-8")
    assert run(script, BACKEND).facts["backend"] == BACKEND


def test_failing_cell_keeps_the_old_page(script, tmp_path):
    folder = tmp_path / "pages" / "learn"
    folder.mkdir(parents=True)
    (folder / "index.md").write_text("old", encoding="utf-8")
    failing = "# %% [markdown]\n# # Learn\n\n# %%\n1 / 0\n"
    script.write_text(failing, encoding="utf-8")
    with pytest.raises(
        BuildError, match=r"learn\.py failed(.|\n)*ZeroDivision"
    ):
        build(script, BACKEND, pages=tmp_path / "pages")
    assert [path.name for path in folder.iterdir()] == ["index.md"]
    assert (folder / "index.md").read_text(encoding="utf-8") == "old"


def test_dead_kernel_raises(script, tmp_path):
    dying = "# %% [markdown]\n# # Learn\n\n# %%\nimport os\nos._exit(1)\n"
    script.write_text(dying, encoding="utf-8")
    with pytest.raises(BuildError, match=r"learn\.py failed .*Kernel died"):
        build(script, BACKEND, pages=tmp_path / "pages")
