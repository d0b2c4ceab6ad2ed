"""The page of results of fresh environments."""

import pathlib

from tools.matrix.environments import BACKENDS, EXTRAS, VERSIONS

NAMES = {"tensorflow": "TensorFlow", "jax": "JAX", "torch": "PyTorch"}
TEMPLATE = pathlib.Path(__file__).with_suffix(".md")


def page(found):
    """Returns the page, Markdown.

    Args:
        found: dict from "ROW, BACKEND" to a result of `environments.run`.
    """
    dates = sorted({result["date"] for result in found.values()})
    machines = sorted({result["machine"] for result in found.values()})
    when = " to ".join(dict.fromkeys([dates[0], dates[-1]]))
    parts = {
        "WHEN": f"{when}, {'; '.join(machines)}.",
        "EXTRAS": _table("extra", EXTRAS, found),
        "VERSIONS": _table("versions", VERSIONS, found, with_versions=True),
    }
    text = TEMPLATE.read_text(encoding="utf-8")
    for name, part in parts.items():
        text = text.replace(f"\n{name}\n", f"\n{part}\n")
    return text


def _table(title, rows, found, with_versions=False):
    names = " | ".join(NAMES[backend] for backend in BACKENDS)
    lines = [f"| {title} | {names} |", "| --- | --- | --- | --- |"]
    for row in rows:
        cells = [
            _cell(found.get(f"{row}, {backend}"), with_versions)
            for backend in BACKENDS
        ]
        name = row if row == "no extra" or with_versions else f"`{row}`"
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(result, with_versions):
    if result is None:
        return "not run"
    if result["outcome"] != "passed":
        return "**failed**"
    if with_versions:
        versions = result["versions"].items()
        return "passed: " + ", ".join(f"{n} {v}" for n, v in versions)
    return f"{result['megabytes']:,} MB, {result['seconds']} s"
