"""Parts of the tutorial builder that need no kernel."""

import base64
import io
import json
import re

import nbformat.v4 as nb
import numpy as np
import pytest
from PIL import Image

from tools.tutorials import __main__ as command
from tools.tutorials import build, facts, stamp
from tools.tutorials.failure import BuildError
from tools.tutorials.page import render
from tools.tutorials.picture import shrink
from tools.tutorials.run import notebook_of
from tools.tutorials.scripts import digest, discover
from tools.tutorials.tidy import final_text, tidy

pytestmark = pytest.mark.one_backend

STAMP = {
    "quick": False,
    "date": "2026-11-21",
    "seconds": 312.4,
    "backend": "jax",
    "versions": {"keras": "3.15.1", "jax": "0.10.2", "python": "3.11.7"},
    "machine": {"cpu": "Some CPU", "cores": 2, "gpu": False},
    "source": "",
}


def png(pixels):
    target = io.BytesIO()
    Image.fromarray(np.asarray(pixels, "uint8")).save(target, "PNG")
    return target.getvalue()


PNG = base64.b64encode(png(np.zeros((2, 2, 3)))).decode()


# Finding scripts.


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "learn.py"
    text = "# %% [markdown]\n# # Learn\n\n# %%\nimport a, json\n"
    path.write_text(text, encoding="utf-8")
    return path


def test_discover(script):
    (script.parent / "README.md").write_text("# Tutorials\n", "utf-8")
    assert discover(script.parent) == {"learn": script}


def test_changed_script_is_found(script):
    then = STAMP | {"source": digest(script)}
    assert not stamp.has_changed(script, then)
    with script.open("a", encoding="utf-8") as file:
        file.write("import c\n")
    assert stamp.has_changed(script, then)
    assert stamp.has_changed(script, stamp.read(script.parent))


def test_notebook_starts_with_a_matplotlib_cell(script):
    cells = notebook_of(script).cells
    kinds = [cell.cell_type for cell in cells]
    assert kinds == ["code", "markdown", "code"]
    assert "%matplotlib inline" in cells[0].source
    assert cells[2].source == "import a, json"


# Tidying outputs.


@pytest.mark.parametrize(
    "printed, shown",
    [
        ("plain\n", "plain\n"),
        ("a   \nb\t", "a\nb"),
        ("10 %\r50 %\r99 %\ndone", "99 %\ndone"),
        ("12345\rab", "ab345"),
        ("12345\b\b\b678", "12678"),
        ("1/2\b\b\b\r2/2\n1/3\b\b\b\r3/3\n", "2/2\n3/3\n"),
        ("\b\ba", "a"),
        ("a\x0fb\x00\tc\x7f\n", "a\ufffdb\ufffd\tc\ufffd\n"),
        ("\x1b[1m1/2\x1b[0m \x1b[32m━\x1b[0m\x1b[37m━\x1b[0m", "1/2 ━━"),
    ],
)
def test_text_is_the_final_terminal_output(printed, shown):
    assert final_text(printed) == shown


def notebook(*outputs, source="1", **metadata):
    cells = [
        nb.new_markdown_cell("# Title\n\nIntroduction."),
        nb.new_code_cell(source, outputs=list(outputs), metadata=metadata),
    ]
    return nb.new_notebook(cells=cells)


def stream(text, name="stdout"):
    return nb.new_output("stream", name=name, text=text)


def result(**data):
    data = {kind.replace("_", "/"): value for kind, value in data.items()}
    return nb.new_output("execute_result", data)


def test_streams_are_joined_and_stderr_is_dropped():
    node = notebook(
        stream("1/2\r"), stream("a warning", "stderr"), stream("2/2\n")
    )
    tidy(node, [])
    (output,) = node.cells[1].outputs
    assert output.text == "2/2\n"


def test_image_replaces_its_text():
    node = notebook(stream(" \n"), result(image_png=PNG, text_plain="<Figure>"))
    tidy(node, [])
    (output,) = node.cells[1].outputs
    assert list(output.data) == ["image/png"]


@pytest.mark.parametrize(
    "output", [stream("in /home/me/x"), result(text_plain="'/home/me/x'")]
)
def test_local_path_in_an_output_raises(output):
    with pytest.raises(BuildError, match="Cell 1 shows a path"):
        tidy(notebook(output), ["/home/me"])
    tidy(notebook(output), ["/home/you"])


def test_unsupported_output_raises():
    with pytest.raises(BuildError, match=r"nor a PNG image.*text/html"):
        tidy(notebook(result(text_html="<b>")), [])
    with pytest.raises(BuildError, match=r"nor a PNG image.*text/latex"):
        tidy(notebook(result(text_latex="$x$"), alt="x"), [])


def test_html_is_kept_in_cells_with_alt_text():
    both = {"text_html": "<p>\ta</p>", "text_plain": "<View>"}
    node = notebook(result(**both), alt="Heads to choose from")
    tidy(node, [])
    assert node.cells[1].outputs[0].data == {"text/html": "<p>\ta</p>"}
    node = notebook(result(**both))
    tidy(node, [])
    assert node.cells[1].outputs[0].data == {"text/plain": "<View>"}


@pytest.mark.parametrize(
    "fragment, message",
    [
        ("<p>" + "x" * 300_000, "shows 300,003 bytes of HTML"),
        ("<p>a\n \nb</p>", "an empty line"),
        ("<p>/home/me/x</p>", "shows a path"),
    ],
)
def test_invalid_html_raises(fragment, message):
    with pytest.raises(BuildError, match=message):
        tidy(notebook(result(text_html=fragment), alt="x"), ["/home/me"])


def test_figures_are_compressed_and_photographs_are_not():
    colors = np.random.default_rng(0).integers(0, 256, (64, 64, 3))
    photograph = np.asarray(Image.open(io.BytesIO(shrink(png(colors)))))
    np.testing.assert_array_equal(photograph, colors)
    figure = np.full((64, 64, 4), 255)
    figure[8:16, :, :3] = [[0, 90, 200]] * 64
    figure[20:30, :, 3] = 0
    figure[20:30, :, :3] = 0
    small = shrink(png(figure))
    opened = Image.open(io.BytesIO(small))
    assert opened.mode == "P" and len(small) < len(png(figure))
    shown = np.asarray(opened.convert("RGB"))
    np.testing.assert_array_equal(shown[:20], figure[:20, :, :3])
    # Transparent pixels become white, also on a dark page.
    assert (shown[20:30] == 255).all()


# Rendering the page.


def test_page_has_title_stamp_prose_code_and_outputs():
    node = notebook(
        stream("printed\n"),
        result(image_png=PNG),
        source="show()",
        alt="A black square",
    )
    page, pictures = render(node, STAMP, "learn")
    parts = page.split("\n\n")
    assert parts[0] == "# Title"
    assert page.index("**JAX**") < page.index("Introduction.")
    assert "```python\nshow()\n```\n" in page
    assert "```{.text .output}\nprinted\n```\n" in page
    assert page.endswith('![A black square](learn-1.png){ width="1" }\n')
    assert pictures == {"learn-1.png": base64.b64decode(PNG)}


def test_plotting_code_can_be_folded():
    node = notebook(result(image_png=PNG), source="a = 1\n\nb", alt="Black")
    node.cells[1].metadata["tags"] = ["hide-input"]
    page, _ = render(node, STAMP, "learn")
    folded = """
??? example "Plotting code"

    ```python
    a = 1

    b
    ```

![Black](learn-1.png){ width="1" }
"""
    assert page.endswith(folded)


def test_page_contains_html():
    node = notebook(result(text_html="<p>a</p>\n"), alt='Of "it"')
    page, pictures = render(node, STAMP, "learn")
    assert page.endswith(
        '\n\n<div class="view" role="figure" aria-label="Of &quot;it&quot;">\n'
        "<p>a</p>\n</div>\n"
    )
    assert pictures == {}


def test_fence_is_longer_than_nested_fences():
    page, _ = render(notebook(stream("````\n")), STAMP, "learn")
    assert "\n`````{.text .output}\n````\n`````\n" in page


def test_image_without_alt_text_raises():
    with pytest.raises(BuildError, match="alt="):
        render(notebook(result(image_png=PNG)), STAMP, "learn")


@pytest.mark.parametrize("first", ["No title", "## Too low"])
def test_page_without_a_title_raises(first):
    node = notebook()
    node.cells[0].source = first
    with pytest.raises(BuildError, match="must start with"):
        render(node, STAMP, "learn")


def test_box_shows_the_facts_of_the_run():
    box = stamp.header(STAMP, "learn")
    for text in (
        "**JAX**, which took 5 min 12 s on 2026-11-21",
        "2 cores (Some CPU), no GPU",
        "Keras 3.15.1, JAX 0.10.2, Python 3.11.7",
        "(learn.ipynb)",
        "(learn.py)",
    ):
        assert text in box
    assert "quick" not in box
    assert "**A quick run**" in stamp.header(STAMP | {"quick": True}, "learn")


@pytest.mark.parametrize(
    "seconds, text",
    [
        (48.4, "48 s"),
        (59.9, "1 min 0 s"),
        (312.4, "5 min 12 s"),
        (7500, "2 h 5 min"),
    ],
)
def test_duration_format(seconds, text):
    assert stamp.duration(seconds) == text


def test_cpu_name(tmp_path):
    info = tmp_path / "cpuinfo"
    info.write_text("processor : 0\nmodel name\t: A(R)  B(TM) CPU\n")
    assert facts.cpu(info) == "A B CPU"
    assert re.fullmatch(r"\S+", facts.cpu(tmp_path / "none"))
    assert facts.cores() >= 1


# Writing the folder, and the command.


def test_folder_is_replaced_completely(tmp_path):
    build._write(tmp_path, {"index.md": b"1", "old-1.png": b"1"})
    build._write(tmp_path, {"index.md": b"2", "stamp.json": b"{}"})
    found = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert found == {"index.md": b"2", "stamp.json": b"{}"}


def test_failed_write_keeps_the_old_folder(tmp_path):
    build._write(tmp_path, {"index.md": b"1"})
    with pytest.raises(TypeError):
        build._write(tmp_path, {"index.md": b"2", "stamp.json": None})
    assert [path.name for path in tmp_path.iterdir()] == ["index.md"]
    assert (tmp_path / "index.md").read_bytes() == b"1"


def test_outdated_page_is_explained(script):
    pages = script.parent / "pages"
    assert command.wrong(script, pages) == "it has no page"
    (pages / "learn").mkdir(parents=True)
    path = pages / "learn" / stamp.FILE
    now = STAMP | {"source": digest(script)}
    path.write_text(json.dumps(now | {"quick": True}), encoding="utf-8")
    assert "quick" in command.wrong(script, pages)
    path.write_text(stamp.text(now), encoding="utf-8")
    assert command.wrong(script, pages) == ""
    script.write_text("# %%\nimport b\n", encoding="utf-8")
    assert "it has changed" in command.wrong(script, pages)


def test_command_lists_and_validates_names(capsys):
    assert command.main(["list"]) == 0
    listed = capsys.readouterr().out.splitlines()
    names = [line.split(":")[0] for line in listed]
    assert {"decoding", "translate"} <= set(names)
    assert command.main(["build", "tea"]) == 2
    text = capsys.readouterr().err
    assert text == (
        f"tutorials: NAME must be one of {', '.join(names)}. Received: tea\n"
    )
