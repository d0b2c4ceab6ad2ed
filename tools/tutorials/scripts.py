"""Tutorial scripts, the modules they import, and digests of both."""

import ast
import hashlib
import pathlib

FOLDER = pathlib.Path(__file__).parents[2] / "tutorials"
_FIRST_LINE = "# %%"


def discover(folder=FOLDER):
    """Finds the tutorials of a folder: the scripts in percent format.

    Args:
        folder: path. A script is a tutorial if its first line starts with
            `# %%`; the others are modules that tutorials import.

    Returns:
        Dict from name to path, sorted by name.
    """
    return {
        path.stem: path
        for path in sorted(pathlib.Path(folder).glob("*.py"))
        if path.read_text(encoding="utf-8").startswith(_FIRST_LINE)
    }


def with_modules(script):
    """Lists a script and the modules of its folder that it needs.

    Args:
        script: path of a Python file.

    Returns:
        List of paths: the script, then, by name, every module of its folder
        that it imports directly or indirectly.
    """
    script = pathlib.Path(script)
    found, waiting = set(), [script]
    while waiting:
        path = waiting.pop()
        found.add(path)
        beside = {path.with_name(f"{name}.py") for name in _imported(path)}
        waiting += [near for near in beside - found if near.is_file()]
    return [script, *sorted(found - {script})]


def digests(script):
    """Computes digests of the sources of a tutorial.

    Args:
        script: path of a Python file.

    Returns:
        Dict from file name to the SHA-256 of the file, as hexadecimal digits,
        for the script and the modules of its folder that it needs.
    """
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in with_modules(script)
    }


def _imported(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]
