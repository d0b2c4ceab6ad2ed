"""Reads the imports of the package and says which of them climb a floor.

As a program (`python -m tools.architecture`) it prints the complaints about
`keras_attn`, one a line, and ends with status 1 where there are any.
"""

import ast
import pathlib
import sys

# A file imports from lower floors and from its own package, never from a
# sibling on its floor.
FLOORS = {
    "backend": 0,
    "checks": 0,
    "files": 0,
    "ops": 1,
    "cache": 2,
    "decoding": 3,
    "layers": 3,
    "training": 3,
    "blocks": 4,
    "models": 5,
    "explain": 6,
    "pretrained": 6,
}

# They stand beside the house: they may use the ground floor, nobody uses them.
APART = {"scaling", "text"}
GROUND = {"backend", "checks", "files"}

# The imports that break the rule on purpose: (file, what it imports), why.
EXCEPTIONS = {
    ("layers/__init__.py", "blocks"): "users find every layer in one place",
}

# Other people's packages, and the rooms that may import them. A package of an
# extra is imported inside functions, so that the rest works without it.
BACKENDS = {"jax", "jaxlib", "tensorflow", "torch"}
ROOMS = {
    "keras": None,
    "numpy": None,
    "jax": {"backend"},
    "jaxlib": {"backend"},
    "tensorflow": {"backend", "text"},
    "tensorflow_text": {"text"},
    "torch": {"backend"},
    "matplotlib": {"explain"},
    "safetensors": {"pretrained"},
    "sentencepiece": {"text"},
}
INSIDE_FUNCTIONS = {"matplotlib", "safetensors", "sentencepiece"}
ASKS_BACKEND = {"backend", "text"}


def complaints(root, package="keras_attn"):
    """Returns what is wrong with the imports of a package.

    Args:
        root: path of the folder that holds the package.
        package: str. The name of the package.

    Returns:
        List of str, `file:line: what is wrong`, sorted by file and line.
    """
    top = pathlib.Path(root) / package
    return [
        f"{package}/{path.relative_to(top).as_posix()}:{line}: {text}"
        for path in sorted(top.rglob("*.py"))
        for line, text in sorted(_File(path, top).complaints())
    ]


class _File:
    def __init__(self, path, top):
        self.package = top.name
        self.parts = path.relative_to(top).with_suffix("").parts
        self.name = path.relative_to(top).as_posix()
        self.door = self.parts == ("__init__",)
        self.room = self.parts[0]
        self.tree = ast.parse(path.read_text(encoding="utf-8"))

    def complaints(self):
        """Yields (line, text) for everything that is wrong."""
        if not self.door and self.room not in FLOORS.keys() | APART:
            yield 1, f"`{self.room}` stands on no floor"
            return
        yield from self._visit(self.tree, inside=False)

    def _visit(self, node, inside):
        for child in ast.iter_child_nodes(node):
            for module in self._imported(child):
                wrong = self._judge(module.split("."), inside)
                if wrong:
                    yield child.lineno, wrong
            if _asks_backend(child) and self.room not in ASKS_BACKEND:
                yield child.lineno, "asks which backend runs"
            function = isinstance(
                child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
            )
            yield from self._visit(child, inside or function)

    def _imported(self, node):
        """Yields the full names of the modules that a statement imports."""
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = (self.package, *self.parts)[: -node.level]
                base = ".".join([*above, *filter(None, [node.module])])
            # `from package import room` names its rooms after the import.
            if base == self.package:
                yield from (f"{base}.{alias.name}" for alias in node.names)
            else:
                yield base

    def _judge(self, module, inside):
        if module[0] == self.package:
            return self._judge_own(module[1:])
        if module[0] in sys.stdlib_module_names:
            return None
        name = module[0]
        if module[:2] == ["keras", "src"]:
            return "imports `keras.src`, which is private to Keras"
        if name not in ROOMS:
            return f"imports `{name}`, which no room may import"
        rooms = ROOMS[name]
        if rooms is not None and self.room not in rooms:
            return f"imports `{name}`, which only {_listed(rooms)} may import"
        if name in INSIDE_FUNCTIONS and not inside:
            return f"imports `{name}` outside a function"
        return None

    def _judge_own(self, module):
        if self.door:
            return None
        if not module:
            return "imports the whole package"
        room = module[0]
        if room == self.room or (self.name, room) in EXCEPTIONS:
            return None
        if room not in FLOORS.keys() | APART:
            return f"imports `{room}`, which stands on no floor"
        if room in APART:
            return f"imports `{room}`, which stands apart"
        if self.room in APART:
            if room in GROUND:
                return None
            return f"imports `{room}`; what stands apart uses the ground only"
        if FLOORS[room] < FLOORS[self.room]:
            return None
        climb = "climbs" if FLOORS[room] > FLOORS[self.room] else "is a sibling"
        return (
            f"imports `{room}` (F{FLOORS[room]}) from `{self.room}` "
            f"(F{FLOORS[self.room]}): it {climb}"
        )


_ASKED = ("backend", "config", "keras.backend", "keras.config")


def _asks_backend(node):
    """Whether a node is `keras.backend.backend` or brings it in by name."""
    if isinstance(node, ast.ImportFrom):
        names = [alias.name for alias in node.names]
        return node.module in _ASKED and "backend" in names
    return (
        isinstance(node, ast.Attribute)
        and node.attr == "backend"
        and ast.unparse(node.value) in _ASKED
    )


def _listed(rooms):
    return " and ".join(f"`{room}`" for room in sorted(rooms))


if __name__ == "__main__":
    found = complaints(pathlib.Path(__file__).parents[1])
    print("\n".join(found) or "No import climbs a floor.")
    sys.exit(1 if found else 0)
