"""Workarounds for other projects name the version or the issue."""

import ast
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[1]
PRIVATE = re.compile(r"_[a-z]\w*")
# Modules of other projects without a stable interface.
UNSTABLE = re.compile(
    r"(keras\.src|tensorflow\.python)\b|"
    r"(keras|jax|tensorflow|torch)\.(\w+\.)*(_\w+|experimental)\b"
)
REASON = re.compile(r"\bas of [A-Za-z]\S* \d|\b[\w-]+/[\w.-]+#\d+")
NAMED_TUPLE = {"_asdict", "_fields", "_make", "_replace"}
LINES_ABOVE = 3

pytestmark = pytest.mark.one_backend


def defined_names(tree):
    """Returns the private names that a module defines or assigns."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and _is_self(node.value):
            if isinstance(node.ctx, ast.Store):
                names.add(node.attr)
    return names


def private_uses(tree, own, names):
    """Yields (line, name) for private names of other projects.

    Args:
        tree: module of the package.
        own: set of str. Names that the module defines.
        names: set of str. Names that any module of the package defines; they
            may be inherited.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            ours = names if _is_self(node.value) else own
            if PRIVATE.fullmatch(node.attr) and node.attr not in ours:
                yield node.lineno, node.attr
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in ("getattr", "hasattr", "setattr"):
                name = getattr(node.args[1], "value", None)
                if isinstance(name, str) and PRIVATE.fullmatch(name):
                    yield node.lineno, name
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if UNSTABLE.match(f"{node.module}.{alias.name}"):
                    yield node.lineno, node.module
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if UNSTABLE.match(alias.name):
                    yield node.lineno, alias.name


def _is_self(node):
    """Returns whether an expression is `self`, `cls` or `super()`."""
    if isinstance(node, ast.Call):
        node = node.func
    return isinstance(node, ast.Name) and node.id in ("self", "cls", "super")


def unexplained(folder):
    """Returns the private names whose first use in a file has no reason."""
    sources = {
        path: path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*.py"))
    }
    trees = {path: ast.parse(source) for path, source in sources.items()}
    own = {path: defined_names(tree) for path, tree in trees.items()}
    names = set().union(*own.values())
    found = []
    for path, tree in trees.items():
        lines = sources[path].splitlines()
        seen = set(NAMED_TUPLE)
        for number, name in sorted(private_uses(tree, own[path], names)):
            if name in seen:
                continue
            seen.add(name)
            above = lines[max(0, number - 1 - LINES_ABOVE) : number]
            if not any(map(REASON.search, above)):
                found.append(f"{path.relative_to(folder)}:{number} {name}")
    return found


def test_private_names_of_other_projects_have_a_reason():
    assert unexplained(ROOT / "keras_attn") == []


def test_a_reason_is_found_in_one_line():
    # A phrase that continues in the next line is not found by `grep`.
    split = [
        f"{path.name}:{number}"
        for path in sorted((ROOT / "keras_attn").rglob("*.py"))
        for number, line in enumerate(
            path.read_text(encoding="utf-8").splitlines(), 1
        )
        if re.search(r"\bas of( (Keras|JAX|TensorFlow|PyTorch|NumPy))?$", line)
    ]
    assert split == []


USES = [
    "layer._flatten_layers()",
    "self._remat_mode",
    "self.model._initial_epoch = 1",
    'getattr(x, "_keras_mask", None)',
    "torch._C._set_grad_enabled",
    "from keras.src import tree",
    "import jax._src.core",
    "from torch.fx.experimental.proxy_tensor import make_fx",
]


@pytest.mark.parametrize("use", USES)
def test_a_missing_reason_is_reported(tmp_path, use):
    file = tmp_path / "a.py"
    file.write_text(f"# Why, as of long ago.\n{use}\n", encoding="utf-8")
    assert len(unexplained(tmp_path)) >= 1
    reason = "# Private, as of Keras 3.15.1.\n"
    file.write_text(f"{reason}{use}\n", encoding="utf-8")
    assert unexplained(tmp_path) == []
    file.write_text(f"{reason}\n\n\n{use}\n", encoding="utf-8")
    assert len(unexplained(tmp_path)) >= 1
    file.write_text(f"# See keras-team/keras#1.\n{use}\n", encoding="utf-8")
    assert unexplained(tmp_path) == []


@pytest.mark.parametrize(
    "source",
    [
        "class A:\n    def _own(self):\n        return self._own()",
        "def _own():\n    pass\nmodule._own()",
        "state._replace(tokens=())",
        "import torch.utils.checkpoint",
        "x.__dict__",
    ],
)
def test_own_and_public_names_need_no_reason(tmp_path, source):
    (tmp_path / "a.py").write_text(source, encoding="utf-8")
    assert unexplained(tmp_path) == []
