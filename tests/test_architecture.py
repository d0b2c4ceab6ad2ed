"""No import of the package climbs a floor, and the reader of imports sees."""

import pathlib
import subprocess
import sys

import pytest

from tools.architecture import EXCEPTIONS, FLOORS, complaints

ROOT = pathlib.Path(__file__).parents[1]


def test_no_import_climbs_a_floor():
    assert complaints(ROOT) == []


def test_every_room_is_a_known_one():
    package = ROOT / "keras_attn"
    assert package.is_dir()
    for room in ("backend", "ops", "layers", "blocks", "models"):
        assert (package / room / "__init__.py").is_file()
        assert room in FLOORS


def test_every_exception_is_used():
    for name, room in EXCEPTIONS:
        source = (ROOT / "keras_attn" / name).read_text(encoding="utf-8")
        assert f"keras_attn.{room}" in source


def read(tmp_path, name, source):
    path = tmp_path / "keras_attn" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source, encoding="utf-8")
    return complaints(tmp_path)


BAD = [
    # Up, in each way to write it.
    ("ops/a.py", "from keras_attn.layers import FeedForward", "climbs"),
    ("ops/a.py", "import keras_attn.layers.feed_forward", "climbs"),
    ("ops/a.py", "from keras_attn import layers", "climbs"),
    ("ops/a.py", "from ..layers import FeedForward", "climbs"),
    ("ops/a.py", "from .. import layers", "climbs"),
    ("ops/deep/a.py", "from ...layers.feed_forward import x", "climbs"),
    ("ops/a.py", "def f():\n    from keras_attn import models", "climbs"),
    ("ops/a.py", "if x:\n    import keras_attn.explain", "climbs"),
    ("cache.py", "from keras_attn.decoding import generate", "climbs"),
    ("layers/a.py", "from keras_attn.blocks import EncoderBlock", "climbs"),
    ("blocks/a.py", "from keras_attn.models import GPT", "climbs"),
    # Sideways.
    ("decoding/a.py", "from keras_attn.layers import FeedForward", "sibling"),
    ("layers/a.py", "from keras_attn import training", "sibling"),
    ("explain/a.py", "from keras_attn import pretrained", "sibling"),
    ("backend/a.py", "from keras_attn import checks", "sibling"),
    # What stands apart.
    ("text/a.py", "from keras_attn.ops import attend", "ground"),
    ("scaling.py", "from keras_attn import layers", "ground"),
    ("text/a.py", "from keras_attn import scaling", "apart"),
    ("models/a.py", "from keras_attn.text import token_batches", "apart"),
    # Rooms that are none, and the whole house.
    ("attic/a.py", "import keras", "no floor"),
    ("ops/a.py", "from keras_attn import __version__", "no floor"),
    ("ops/a.py", "import keras_attn", "whole package"),
    # Other people's packages.
    ("ops/a.py", "import torch", "`backend`"),
    ("layers/a.py", "import jax.numpy as jnp", "`backend`"),
    ("models/a.py", "def f():\n    import tensorflow as tf", "`backend` and"),
    ("text/a.py", "import torch", "`backend`"),
    ("explain/a.py", "import matplotlib.pyplot as plt", "outside a function"),
    ("explain/a.py", "class A:\n    import matplotlib", "outside a function"),
    ("pretrained/a.py", "from safetensors import x", "outside a function"),
    ("text/a.py", "import sentencepiece", "outside a function"),
    ("layers/a.py", "def f():\n    import matplotlib", "`explain`"),
    ("layers/a.py", "import scipy", "no room"),
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
    ("__init__.py", "from keras_attn import layers, text"),
    ("ops/a.py", "import math\nimport keras\nimport numpy as np"),
    ("ops/a.py", "from keras_attn.ops.visibility import Visibility"),
    ("ops/a.py", "from .visibility import Visibility"),
    ("ops/a.py", "from . import visibility"),
    ("ops/a.py", "from keras_attn import backend, checks"),
    ("models/a.py", "from keras_attn.layers import FeedForward"),
    ("models/a.py", "from .. import blocks, cache"),
    ("layers/__init__.py", "from keras_attn.blocks import EncoderBlock"),
    ("explain/a.py", "def f():\n    import matplotlib.pyplot as plt"),
    ("backend/a.py", "import keras\nimport jax\nkeras.backend.backend()"),
    ("text/a.py", "import keras\nimport tensorflow\nkeras.backend.backend()"),
    ("scaling.py", "import keras\nfrom keras_attn import backend"),
    ("ops/a.py", "import keras\nkeras.backend.standardize_dtype('int32')"),
]


@pytest.mark.parametrize("name, source", GOOD)
def test_a_good_import_is_not_reported(tmp_path, name, source):
    assert read(tmp_path, name, source) == []


def test_all_complaints_are_listed_in_order(tmp_path):
    read(tmp_path, "ops/b.py", "import torch\n\nfrom keras_attn import models")
    found = read(tmp_path, "ops/a.py", "import jax")
    assert [text.split(": ")[0] for text in found] == [
        "keras_attn/ops/a.py:1",
        "keras_attn/ops/b.py:1",
        "keras_attn/ops/b.py:3",
    ]


def test_the_command_says_so():
    result = subprocess.run(
        [sys.executable, "-m", "tools.architecture"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert result.stdout.strip() == "No import climbs a floor."
    assert result.returncode == 0
