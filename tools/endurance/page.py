"""Writes the page of results from the reports of all backends."""

import json
import pathlib

from tools.endurance.soak import after_warmup, growth, problems

NAMES = {"tensorflow": "TensorFlow", "jax": "JAX", "torch": "PyTorch"}
TEMPLATE = pathlib.Path(__file__).with_suffix(".md")


def write(folder):
    """Writes the page beside the folder of the reports, and its picture.

    Args:
        folder: `pathlib.Path` of `soak-BACKEND.json` and `kills-BACKEND.json`.

    Raises:
        FileNotFoundError: a report is missing.
    """
    soaks, kills = (
        {
            name: json.loads((folder / f"{command}-{name}.json").read_text())
            for name in NAMES
        }
        for command in ("soak", "kills")
    )
    picture(soaks, folder / "memory.png")
    path = folder.with_suffix(".md")
    path.write_text(page(soaks, kills), encoding="utf-8")
    print(f"Wrote {path}")


def page(soaks, kills):
    """Returns the page, Markdown.

    Args:
        soaks: dict from a backend to the report of its soak test.
        kills: dict from a backend to the report of its killed trainings.
    """
    template = TEMPLATE.read_text(encoding="utf-8")
    tables = {
        "SOAKS": [_soak(*item) for item in soaks.items()],
        "KILLS": [_kills(*item) for item in kills.items()],
    }
    for name, rows in tables.items():
        lines = (f"| {' | '.join(cells)} |" for cells in rows)
        template = template.replace(f"{name}\n", "\n".join([*lines, ""]))
    files = [
        f"{kind}-{name}.json" for kind in ("soak", "kills") for name in NAMES
    ]
    links = ",\n".join(f"[{file}](endurance/{file})" for file in files)
    return template.replace("REPORTS", links)


def _soak(backend, report):
    samples = after_warmup(report)
    warning = "; **too much**" if problems(report) else ""
    return (
        _named(backend, report),
        f"{sum(report['calls'].values()):,}",
        f"{samples[0][1]:,.0f} MB",
        f"{growth(report):.2f}{warning}",
        f"{samples[0][2]} to {samples[-1][2]}",
        _where(report),
    )


def _kills(backend, report):
    names = "kills", "during_write", "trainings", "resumed", "arrays"
    return (
        _named(backend, report),
        *(f"{report[name]:,}" for name in names),
        f"{len(report['different'])}",
        _where(report),
    )


def _named(backend, report):
    return f"{NAMES[backend]} {report['version']}"


def _where(report):
    return f"{report['date']}, {report['machine']}"


def picture(soaks, path):
    """Draws the memory of each soak test over time."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.2), layout="constrained")
    axes = figure.subplots()
    for backend, report in soaks.items():
        minutes, megabytes, _ = zip(*report["samples"], strict=True)
        axes.plot(minutes, megabytes, label=NAMES[backend])
    axes.set(xlabel="minutes", ylabel="resident memory, MB", ylim=(0, None))
    axes.legend()
    figure.savefig(path, dpi=120)
