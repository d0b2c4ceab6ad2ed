"""Annotations of the public API; `make lint` runs the type checkers."""

import ast
import importlib
import inspect
import pathlib

import pytest

import keras_attn

ROOT = pathlib.Path(__file__).parents[2]
PACKAGES = [n for n in keras_attn.__all__ if n != "doctor"]

pytestmark = pytest.mark.one_backend


def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def public_classes(package):
    module = importlib.import_module(f"keras_attn.{package}")
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.isclass(value):
            yield value


def definition(cls):
    tree = tree_of(pathlib.Path(inspect.getsourcefile(cls)))
    return next(
        node
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name == cls.__name__
    )


def test_the_program_of_a_user_uses_every_public_name():
    tree = tree_of(ROOT / "tests" / "typing" / "user.py")
    used = {
        (node.value.id, node.attr)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    }
    expected = {
        (package, name)
        for package in PACKAGES
        for name in importlib.import_module(f"keras_attn.{package}").__all__
    } | {("keras_attn", "doctor")}
    used |= {("datasets", name) for value, name in used if value == "d"}
    assert len(expected) > 200
    assert sorted(expected - used) == []


def test_the_package_says_that_it_has_annotations():
    assert (ROOT / "keras_attn" / "py.typed").read_bytes() == b""


# The `__call__` of Keras is `(*args, **kwargs)` for editors.
@pytest.mark.parametrize("package", ["layers", "blocks", "models"])
def test_editors_see_the_arguments_of_call(package):
    count = 0
    for cls in public_classes(package):
        if "call" not in vars(cls):
            continue
        count += 1
        body = definition(cls).body
        call = next(n for n in body if getattr(n, "name", "") == "call")
        branches = [
            node.body[0]
            for node in body
            if isinstance(node, ast.If)
            and ast.unparse(node.test) == "TYPE_CHECKING"
        ]
        if not branches:
            # The base class shows the same arguments.
            base = next(c for c in cls.__mro__[1:] if "call" in vars(c))
            bases = inspect.signature(base.call).parameters
            assert inspect.signature(cls.call).parameters == bases, cls
            continue
        (shown,) = branches
        if isinstance(shown, ast.FunctionDef):
            assert shown.name == "__call__", cls
            assert ast.unparse(shown.args) == ast.unparse(call.args), cls
            assert ast.get_docstring(shown) == ast.get_docstring(call), cls
        else:
            assert ast.unparse(shown) == "__call__ = call", cls
    assert count >= 4


def test_call_is_as_before_at_run_time():
    for package in ("layers", "blocks", "models"):
        for cls in public_classes(package):
            if hasattr(cls, "call"):
                assert cls.__call__ is not cls.call, cls


def test_the_stub_of_keras_has_every_base_class():
    """Without it, `--verifytypes` skips a class, or calls it untyped."""
    path = ROOT / "tools" / "typing" / "keras-stubs" / "__init__.pyi"
    stub = set()
    for node in tree_of(path).body:
        if isinstance(node, ast.ClassDef):
            stub.add(f"keras.{node.name}")
            for inner in ast.walk(node):
                if isinstance(inner, ast.ClassDef):
                    stub.add(f"keras.{node.name}.{inner.name}")
    stub.add("keras.optimizers.schedules.LearningRateSchedule")
    missing = {
        ast.unparse(base)
        for path in (ROOT / "keras_attn").rglob("*.py")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ClassDef)
        for base in node.bases
        if ast.unparse(base).startswith("keras.")
    } - stub
    assert missing == set()
