"""Checks that the imports of the package go down its import layers.

As a program (`python -m tools.architecture`) it prints the violations in
`keras_attn`, one per line, and exits with status 1 if there are any.
"""

import ast
import pathlib
import sys

# A module imports from lower layers and from its own package, never from
# another package on its layer.
LAYERS = {
    "atomic_files": 0,
    "backend": 0,
    "checks": 0,
    "deprecation": 0,
    # Aliases in annotations, for all packages.
    "typing": -1,
    "version": 0,
    "info": 1,
    "ops": 1,
    "cache": 2,
    "decoding": 3,
    "layers": 3,
    "training": 3,
    "blocks": 4,
    "models": 5,
    "explain": 6,
    "pretrained": 6,
    "testing": 6,
}

# Independent packages import layer 0 only, and no other package imports them.
INDEPENDENT = {"datasets", "text"}

# Third-party packages, and the packages that may import them (None: all). A
# package of an extra is imported inside functions, so that the rest works
# without it.
THIRD_PARTY = {
    "keras": None,
    "numpy": None,
    "jax": {"backend"},
    "jaxlib": {"backend"},
    "tensorflow": {"backend", "text"},
    "tensorflow_text": {"text"},
    "torch": {"backend", "text"},
    "matplotlib": {"explain"},
    "PIL": {"datasets"},
    "jinja2": {"text"},
    "safetensors": {"pretrained"},
    "sentencepiece": {"text"},
    "sklearn": {"datasets"},
    "tokenizers": {"text"},
}
INSIDE_FUNCTIONS = {
    "PIL",
    "jinja2",
    "matplotlib",
    "safetensors",
    "sentencepiece",
    "sklearn",
    "tokenizers",
}
# Modules that need private ones of Keras, because no public ones do the same.
PRIVATE_KERAS = {"layers/calibration.py"}
# `info` prints its name.
ASKS_BACKEND = {"backend", "info", "text"}


def violations(root, package="keras_attn"):
    """Returns the imports of a package that break the rules.

    Args:
        root: path of the folder that contains the package.
        package: str. The name of the package.

    Returns:
        List of str, `file:line: reason`, sorted by file and line.
    """
    top = pathlib.Path(root) / package
    return [
        f"{package}/{path.relative_to(top).as_posix()}:{line}: {text}"
        for path in sorted(top.rglob("*.py"))
        for line, text in sorted(_Module(path, top).violations())
    ]


class _Module:
    def __init__(self, path, top):
        self.root = top.name
        self.parts = path.relative_to(top).with_suffix("").parts
        self.name = path.relative_to(top).as_posix()
        self.is_init = self.parts == ("__init__",)
        self.package = self.parts[0]
        self.tree = ast.parse(path.read_text(encoding="utf-8"))

    def violations(self):
        """Yields (line, reason) for each violation."""
        if not self.is_init and self.package not in LAYERS.keys() | INDEPENDENT:
            yield 1, f"`{self.package}` belongs to no layer"
            return
        yield from self._visit(self.tree, inside=False)

    def _visit(self, node, inside):
        for child in ast.iter_child_nodes(node):
            for module in self._imported(child):
                wrong = self._check(module.split("."), inside)
                if wrong:
                    yield child.lineno, wrong
            if _asks_backend(child) and self.package not in ASKS_BACKEND:
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
                above = (self.root, *self.parts)[: -node.level]
                base = ".".join([*above, *filter(None, [node.module])])
            # `from keras_attn import ...` names packages after the import.
            if base == self.root:
                yield from (f"{base}.{alias.name}" for alias in node.names)
            else:
                yield base

    def _check(self, module, inside):
        if module[0] == self.root:
            return self._check_own(module[1:])
        if module[0] in sys.stdlib_module_names:
            return None
        name = module[0]
        if module[:2] == ["keras", "src"]:
            if self.name in PRIVATE_KERAS:
                return None
            return "imports `keras.src`, which is private to Keras"
        if name not in THIRD_PARTY:
            return f"imports `{name}`, which no package may import"
        allowed = THIRD_PARTY[name]
        if allowed is not None and self.package not in allowed:
            return f"imports `{name}`, which only {_listed(allowed)} may import"
        if name in INSIDE_FUNCTIONS and not inside:
            return f"imports `{name}` outside a function"
        return None

    def _check_own(self, module):
        if self.is_init:
            return None
        if not module:
            return "imports the whole package"
        package = module[0]
        if package == self.package:
            return None
        if package not in LAYERS.keys() | INDEPENDENT:
            return f"imports `{package}`, which belongs to no layer"
        if package in INDEPENDENT:
            return f"imports `{package}`, which is independent"
        if self.package in INDEPENDENT:
            if LAYERS.get(package, 1) <= 0:
                return None
            return (
                f"imports `{package}`, but an independent package may import "
                "layer 0 only"
            )
        if LAYERS[package] < LAYERS[self.package]:
            return None
        direction = (
            "imports upward"
            if LAYERS[package] > LAYERS[self.package]
            else "is on the same layer"
        )
        return (
            f"imports `{package}` (layer {LAYERS[package]}) from "
            f"`{self.package}` (layer {LAYERS[self.package]}): {direction}"
        )


_ASKED = ("backend", "config", "keras.backend", "keras.config")


def _asks_backend(node):
    """Returns whether a node is or imports `keras.backend.backend`."""
    if isinstance(node, ast.ImportFrom):
        names = [alias.name for alias in node.names]
        return node.module in _ASKED and "backend" in names
    return (
        isinstance(node, ast.Attribute)
        and node.attr == "backend"
        and ast.unparse(node.value) in _ASKED
    )


def _listed(allowed):
    return " and ".join(f"`{package}`" for package in sorted(allowed))


if __name__ == "__main__":
    found = violations(pathlib.Path(__file__).parents[1])
    print("\n".join(found) or "All imports go down the layers.")
    sys.exit(1 if found else 0)
