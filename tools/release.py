"""Checks that a release is ready, and prints its notes.

    python -m tools.release v0.1.0
    python tools/release.py --notes v0.1.0

The first command prints what is missing, one problem per line, and exits with
status 1 if there is any. The second prints the section of the changelog and
needs no package.
"""

import argparse
import pathlib
import re
import sys
import tomllib

ROOT = pathlib.Path(__file__).parents[1]
_VERSION = re.compile(r'^__version__ = "(.+)"$', re.MULTILINE)


def problems(tag, root=ROOT):
    """Returns what keeps a tag from being released.

    Args:
        tag: str, such as `"v0.1.0"`.
        root: path of the checkout.

    Returns:
        List of str.
    """
    found = []
    version = _VERSION.search(_text(root, "keras_attn/version.py"))[1]
    if tag != f"v{version}":
        found.append(
            f"The tag must be v{version}, as keras_attn/version.py says. "
            f"Received: {tag}"
        )
    title = _section(root, version)[0]
    if not re.fullmatch(r"## \[.+\] - \d{4}-\d\d-\d\d", title):
        found.append(
            f"CHANGELOG.md must have a section `## [{version}] - YYYY-MM-DD`. "
            f"Received: {title or 'none'}"
        )
    citation = re.search(r"(?m)^version: (.+)$", _text(root, "CITATION.cff"))[1]
    if citation != version:
        found.append(
            f"The version in CITATION.cff must be {version}. "
            f"Received: {citation}"
        )
    project = tomllib.loads(_text(root, "pyproject.toml"))["project"]
    found += [
        f"[project.urls] in pyproject.toml must have the address of {name}. "
        f"Received: {url}, a placeholder"
        for name, url in project["urls"].items()
        if "example.org" in url
    ]
    return found


def notes(version, root=ROOT):
    """Returns the section of a version in the changelog, without its title."""
    return _section(root, version)[1].strip()


def _section(root, version):
    """Returns the title and the text of a section, "" where there is none."""
    pattern = rf"(?ms)^(## \[{re.escape(version)}\][^\n]*)\n(.*?)(?=^## \[|\Z)"
    found = re.search(pattern, _text(root, "CHANGELOG.md"))
    return found.groups() if found else ("", "")


def _text(root, name):
    return (pathlib.Path(root) / name).read_text(encoding="utf-8")


def main(arguments):
    """Runs the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.release", description=__doc__.split("\n")[0]
    )
    parser.add_argument("tag")
    parser.add_argument("--notes", action="store_true")
    given = parser.parse_args(arguments)
    if given.notes:
        print(notes(given.tag.removeprefix("v")))
        return 0
    found = problems(given.tag)
    print("\n".join(found) or f"{given.tag} can be released.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
