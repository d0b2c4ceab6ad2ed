"""Stamps that record the run that produced a page."""

import datetime
import json
import pathlib

from tools.tutorials.scripts import digest

FILE = "stamp.json"
BACKENDS = {"jax": "JAX", "tensorflow": "TensorFlow", "torch": "PyTorch"}


def make(script, ran, quick):
    """Returns the stamp of a run.

    Args:
        script: path of the tutorial.
        ran: `tools.tutorials.run.Ran`.
        quick: bool. Whether it was a quick run.

    Returns:
        Dict of plain data: `quick`, `date` (UTC), `seconds`, `backend`,
        `versions`, `machine` and `source`, the digest of the script.
    """
    today = datetime.datetime.now(datetime.UTC).date()
    return {
        "quick": quick,
        "date": today.isoformat(),
        "seconds": round(ran.seconds, 1),
        **ran.facts,
        "source": digest(script),
    }


def read(folder):
    """Reads the stamp of a page's folder; None if it has none."""
    path = pathlib.Path(folder) / FILE
    if not path.is_file():
        return None
    return json.loads(path.read_text(encoding="utf-8"))


def text(stamp):
    """Formats a stamp as the content of its file."""
    return json.dumps(stamp, indent=1, ensure_ascii=False) + "\n"


def has_changed(script, stamp):
    """Returns whether a tutorial differs from that of the stamped run.

    Args:
        script: path of the tutorial.
        stamp: dict, or None if the tutorial never ran.
    """
    return stamp is None or stamp["source"] != digest(script)


def duration(seconds):
    """Formats a duration: `48 s`, `5 min 12 s`, `2 h 5 min`."""
    seconds = round(seconds)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60} min"


def header(stamp, name):
    """Renders the box at the top of a page.

    Args:
        stamp: dict.
        name: str. Name of the tutorial and of its files.

    Returns:
        Markdown.
    """
    machine, backend = stamp["machine"], stamp["backend"]
    names = {backend: BACKENDS[backend], "keras": "Keras", "python": "Python"}
    versions = ", ".join(
        f"{names.get(package, package)} {version}"
        for package, version in stamp["versions"].items()
    )
    run = (
        "Everything below was printed and drawn by one run on "
        f"**{BACKENDS[backend]}**, which took {duration(stamp['seconds'])} on "
        f"{stamp['date']}. Machine: {machine['cores']} "
        f"core{'s' if machine['cores'] > 1 else ''} ({machine['cpu']}), "
        f"{'a' if machine['gpu'] else 'no'} GPU. Versions: {versions}."
    )
    warning = (
        "**A quick run**: a few steps that show that the program works. Its "
        "numbers and pictures mean nothing.\n\n"
    )
    return (
        '<div class="run" markdown>\n\n'
        f"{warning if stamp['quick'] else ''}{run}\n\n"
        f"Download: [notebook]({name}.ipynb) or [script]({name}.py).\n\n"
        "</div>\n"
    )
