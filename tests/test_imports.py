"""`import keras_attn` needs Keras, one backend and nothing else."""

import importlib.metadata
import json
import os
import pathlib
import subprocess
import sys

import keras
import pytest

import keras_attn

ROOT = pathlib.Path(__file__).parents[1]
BACKEND = keras.backend.backend()

# All packages of the extras, by import name.
EXTRAS = {
    "IPython",
    "PIL",
    "hypothesis",
    "jax",
    "jaxlib",
    "matplotlib",
    "onnx",
    "onnxruntime",
    "onnxscript",
    "pytest",
    "sacrebleu",
    "safetensors",
    "scipy",
    "sentencepiece",
    "sklearn",
    "tensorflow",
    "tensorflow_text",
    "tokenizers",
    "torch",
    "transformers",
}
NEEDED = {
    "jax": {"jax", "jaxlib", "scipy"},
    "tensorflow": {"tensorflow"},
    "torch": {"torch"},
}

# One process for all checks, because starting it takes seconds.
PROGRAM = """
import contextlib, importlib, importlib.metadata, io, json, runpy, sys

from tools.hidden_packages import hide

BLOCKED = set(sys.argv[1:])
hide(BLOCKED)

import keras_attn
import keras
import numpy as np

def absent(name):
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        return error.name == name
    return False

def refused(call):
    try:
        call()
    except ImportError as error:
        return str(error)
    return "was not refused"

def printed_information():
    # Hidden packages have no metadata either.
    kept = {"keras", "numpy", keras.backend.backend()}
    version = importlib.metadata.version

    def only_kept(name):
        if name not in kept:
            raise importlib.metadata.PackageNotFoundError(name)
        return version(name)

    importlib.metadata.version = only_kept
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        runpy.run_module("keras_attn.info", run_name="__main__")
    return output.getvalue()

layer = keras_attn.layers.MultiHeadAttention(num_heads=2, key_dim=4)
x = np.ones((1, 3, 8), "float32")
answers = {
    "absent": [name for name in sorted(BLOCKED) if absent(name)],
    "backend": keras.backend.backend(),
    "shape": tuple(layer(x, x).shape),
    "text": refused(
        lambda: keras_attn.text.SubwordTokenizer.train_from_lines(["a"], 300)
    ),
    "explain": refused(
        lambda: keras_attn.explain.plot_attention(np.eye(2, dtype="float32"))
    ),
    "pretrained": refused(lambda: keras_attn.pretrained.load("nowhere")),
    "pictures": refused(lambda: keras_attn.datasets.read_captions("nowhere")),
    "digits": refused(keras_attn.datasets.load_handwritten_digits),
    "pairs": len(keras_attn.datasets.make_translation_pairs(3)),
    "checks": keras_attn.testing.check_attention_layer(
        layer, only=["causality"]
    ),
    "info": printed_information(),
}
loaded = {name.partition(".")[0] for name in sys.modules}
answers["loaded"] = sorted(loaded & BLOCKED)
print(json.dumps(answers))
"""

# Trains a program's model with the packages of its extras, without the other
# backends.
TRAINING = """
import runpy, sys

from tools.hidden_packages import BACKENDS, hide

needed, program, *arguments = sys.argv[1:]
hide(set(BACKENDS) - set(needed.split(",")))
sys.argv = [program, *arguments]
runpy.run_path(program, run_name="__main__")
"""

# Nothing is hidden: what an import of the library adds to that of Keras.
ADDED = """
import json, sys

import keras
import numpy

before = set(sys.modules)
import keras_attn

added = sorted(sys.modules.keys() - before)
lazy = {"datasets", "doctor", "explain", "pretrained", "testing", "text"}
listed = sorted(lazy & set(dir(keras_attn)))
used = [callable(keras_attn.doctor), keras_attn.text.__name__]
print(json.dumps([added, listed, used]))
"""
# Of about 240. An import takes half a millisecond for each.
MOST_MODULES = 260


@pytest.fixture(scope="module")
def bare():
    """Output of the program with a single backend and no extras installed."""
    blocked = sorted(EXTRAS - NEEDED[BACKEND])
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, *blocked],
        cwd=ROOT,
        env=os.environ | {"KERAS_BACKEND": BACKEND},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    return json.loads(result.stdout.splitlines()[-1])


@pytest.mark.every_backend
def test_a_layer_runs_with_keras_and_one_backend(bare):
    assert bare["backend"] == BACKEND
    assert bare["shape"] == [1, 3, 8]
    assert bare["loaded"] == []


@pytest.mark.every_backend
def test_the_program_info_prints_versions_and_devices_without_the_extras(bare):
    lines = dict(line.split(": ", 1) for line in bare["info"].splitlines())
    assert lines["keras-attn"] == keras_attn.__version__
    assert lines["keras"] == keras.__version__
    assert lines["backend"] == BACKEND
    assert lines["dtype policy"] == "float32"
    assert ".".join(map(str, sys.version_info[:3])) in lines["python"]
    assert lines[BACKEND] == importlib.metadata.version(BACKEND)
    assert "cpu" in lines["devices"]
    assert lines["matplotlib"] == lines["transformers"] == "not installed"


@pytest.mark.parametrize("extra", ["text", "explain", "pretrained"])
def test_a_missing_extra_is_named_in_one_line(bare, extra):
    assert "\n" not in bare[extra]
    assert f"pip install keras-attn[{extra}]" in bare[extra]


@pytest.mark.parametrize("data", ["pictures", "digits"])
def test_data_sets_name_the_missing_extra(bare, data):
    assert "\n" not in bare[data]
    assert 'pip install "keras-attn[examples]"' in bare[data]


def test_data_sets_and_checks_need_no_extra(bare):
    assert bare["pairs"] == 3
    assert bare["checks"] == ["causality"]


def test_blocked_packages_cannot_be_imported(bare):
    assert bare["absent"] == sorted(EXTRAS - NEEDED[BACKEND])


@pytest.mark.every_backend
def test_an_import_adds_only_the_modules_that_files_need():
    result = subprocess.run(
        [sys.executable, "-c", ADDED],
        cwd=ROOT,
        env=os.environ | {"KERAS_BACKEND": BACKEND},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    added, listed, used = json.loads(result.stdout.splitlines()[-1])
    assert 100 < len(added) < MOST_MODULES
    others = {name.partition(".")[0] for name in added} - {"keras_attn"}
    assert others <= sys.stdlib_module_names
    packages = {name.split(".")[1] for name in added if "." in name}
    assert {"layers", "models", "training"} <= packages
    # They are imported when they are first used.
    names = ["datasets", "doctor", "explain", "pretrained", "testing", "text"]
    assert packages.isdisjoint(names)
    assert listed == names
    assert used == [True, "keras_attn.text"]


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'tea'"):
        _ = keras_attn.tea


def test_the_translator_trains_without_other_backends(tmp_path):
    needed = ",".join(NEEDED[BACKEND])
    options = "train --quick --preset tiny --epochs 1 --out".split()
    command = [ROOT / "examples" / "translate.py", *options]
    result = subprocess.run(
        [sys.executable, "-c", TRAINING, needed, *command, tmp_path],
        cwd=ROOT,
        env=os.environ | {"KERAS_BACKEND": BACKEND},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    assert "BLEU" in result.stdout
    assert (tmp_path / "attention.png").exists()
