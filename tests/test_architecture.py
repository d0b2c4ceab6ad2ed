"""Imports go down the layers of the package; the checker finds violations."""

import ast
import pathlib
import subprocess
import sys

import pytest

from tools.architecture import LAYERS, violations

ROOT = pathlib.Path(__file__).parents[1]


def test_imports_go_down_the_layers():
    assert violations(ROOT) == []


def test_every_package_has_a_layer():
    package = ROOT / "keras_attn"
    assert package.is_dir()
    for name in ("backend", "ops", "layers", "blocks", "models"):
        assert (package / name / "__init__.py").is_file()
        assert name in LAYERS


def test_test_folders_do_not_import_each_other():
    wrong = []
    for path in sorted((ROOT / "tests").rglob("*.py")):
        folder = path.relative_to(ROOT / "tests").parts[0]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                names = node.module.split(".")
                own = "helpers", folder
                if names[0] == "tests" and len(names) > 1:
                    if names[1] not in own and "test_" not in names[1]:
                        wrong.append(f"{path.name} imports {node.module}")
    assert wrong == []


def read(tmp_path, name, source):
    path = tmp_path / "keras_attn" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source, encoding="utf-8")
    return violations(tmp_path)


BAD = [
    # Up, in each way to write it.
    ("ops/a.py", "from keras_attn.layers import FeedForward", "upward"),
    ("ops/a.py", "import keras_attn.layers.feed_forward", "upward"),
    ("ops/a.py", "from keras_attn import layers", "upward"),
    ("ops/a.py", "from ..layers import FeedForward", "upward"),
    ("ops/a.py", "from .. import layers", "upward"),
    ("ops/deep/a.py", "from ...layers.feed_forward import x", "upward"),
    ("ops/a.py", "def f():\n    from keras_attn import models", "upward"),
    ("ops/a.py", "if x:\n    import keras_attn.explain", "upward"),
    ("cache.py", "from keras_attn.decoding import generate", "upward"),
    ("layers/a.py", "from keras_attn.blocks import EncoderBlock", "upward"),
    ("layers/__init__.py", "from keras_attn.blocks import X", "upward"),
    ("blocks/a.py", "from keras_attn.models import GPT", "upward"),
    # Sideways.
    (
        "decoding/a.py",
        "from keras_attn.layers import FeedForward",
        "same layer",
    ),
    ("layers/a.py", "from keras_attn import training", "same layer"),
    ("explain/a.py", "from keras_attn import pretrained", "same layer"),
    ("backend/a.py", "from keras_attn import checks", "same layer"),
    # Independent packages.
    ("text/a.py", "from keras_attn.ops import attend", "layer 0"),
    ("models/a.py", "from keras_attn.text import token_batches", "independent"),
    # Unknown packages, and the whole package.
    ("attic/a.py", "import keras", "no layer"),
    ("ops/a.py", "from keras_attn import __version__", "no layer"),
    ("ops/a.py", "import keras_attn", "whole package"),
    # Third-party packages.
    ("ops/a.py", "import torch", "`backend`"),
    ("layers/a.py", "import jax.numpy as jnp", "`backend`"),
    ("models/a.py", "def f():\n    import tensorflow as tf", "`backend` and"),
    ("datasets/a.py", "import torch", "`backend` and `text`"),
    ("explain/a.py", "import matplotlib.pyplot as plt", "outside a function"),
    ("explain/a.py", "class A:\n    import matplotlib", "outside a function"),
    ("pretrained/a.py", "from safetensors import x", "outside a function"),
    ("text/a.py", "import sentencepiece", "outside a function"),
    ("layers/a.py", "def f():\n    import matplotlib", "`explain`"),
    ("layers/a.py", "import scipy", "no package"),
    ("__init__.py", "import torch", "`backend`"),
    ("layers/a.py", "from keras.src import backend", "private"),
    # Asking which backend runs.
    ("ops/a.py", "import keras\nkeras.backend.backend()", "asks"),
    ("ops/a.py", "import keras\nask = keras.config.backend", "asks"),
    ("ops/a.py", "from keras import backend\nbackend.backend()", "asks"),
    ("ops/a.py", "from keras.backend import backend", "asks"),
]


@pytest.mark.parametrize("name, source, expected", BAD)
def test_a_bad_import_is_reported(tmp_path, name, source, expected):
    found = read(tmp_path, name, source)
    assert len(found) == 1
    line = source.count("\n") + 1 if "attic" not in name else 1
    assert found[0].startswith(f"keras_attn/{name}:{line}: ")
    assert expected in found[0]


GOOD = [
    ("layers/calibration.py", "from keras.src.quantizers import gptq"),
    ("__init__.py", "from keras_attn import layers, text"),
    ("ops/a.py", "import math\nimport keras\nimport numpy as np"),
    ("ops/a.py", "from keras_attn.ops.visibility import Visibility"),
    ("ops/a.py", "from .visibility import Visibility"),
    ("ops/a.py", "from . import visibility"),
    ("ops/a.py", "from keras_attn import backend, checks"),
    ("models/a.py", "from keras_attn.layers import FeedForward"),
    ("models/a.py", "from .. import blocks, cache"),
    ("explain/a.py", "def f():\n    import matplotlib.pyplot as plt"),
    ("backend/a.py", "import keras\nimport jax\nkeras.backend.backend()"),
    ("text/a.py", "import keras\nimport tensorflow\nkeras.backend.backend()"),
    ("text/b.py", "import keras\nfrom keras_attn import backend"),
    ("ops/a.py", "import keras\nkeras.backend.standardize_dtype('int32')"),
]


@pytest.mark.parametrize("name, source", GOOD)
def test_a_good_import_is_not_reported(tmp_path, name, source):
    assert read(tmp_path, name, source) == []


def test_violations_are_listed_in_order(tmp_path):
    read(tmp_path, "ops/b.py", "import torch\n\nfrom keras_attn import models")
    found = read(tmp_path, "ops/a.py", "import jax")
    assert [text.split(": ")[0] for text in found] == [
        "keras_attn/ops/a.py:1",
        "keras_attn/ops/b.py:1",
        "keras_attn/ops/b.py:3",
    ]


def test_the_command_reports_success():
    result = subprocess.run(
        [sys.executable, "-m", "tools.architecture"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert result.stdout.strip() == "All imports go down the layers."
    assert result.returncode == 0
