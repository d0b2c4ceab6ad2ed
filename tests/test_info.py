"""`python -m keras_attn.info` prints what a bug report needs."""

import importlib.metadata
import os
import pathlib
import subprocess
import sys

import keras
import pytest

import keras_attn
from keras_attn import backend, info

ROOT = pathlib.Path(__file__).parents[1]
BACKEND = keras.backend.backend()

# Every optional package is absent: no module and no metadata.
BARE = """
import importlib.metadata, runpy, sys

import keras
from tools.hidden_packages import hide

KEPT = {"keras", "numpy", keras.backend.backend()}
hide({"matplotlib", "safetensors", "sentencepiece", "tensorflow_text",
      "tokenizers", "transformers", "keras_hub"})
version = importlib.metadata.version

def only_kept(name):
    if name not in KEPT:
        raise importlib.metadata.PackageNotFoundError(name)
    return version(name)

importlib.metadata.version = only_kept
runpy.run_module("keras_attn.info", run_name="__main__")
"""


@pytest.mark.every_backend
def test_the_program_prints_versions_and_devices_without_the_extras():
    printed = subprocess.run(
        [sys.executable, "-c", BARE],
        cwd=ROOT,
        env=os.environ | {"KERAS_BACKEND": BACKEND},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    lines = dict(line.split(": ", 1) for line in printed.splitlines())
    assert lines["keras-attn"] == keras_attn.__version__
    assert lines["keras"] == keras.__version__
    assert lines["backend"] == BACKEND
    assert lines["dtype policy"] == "float32"
    assert ".".join(map(str, sys.version_info[:3])) in lines["python"]
    assert lines[BACKEND] == importlib.metadata.version(BACKEND)
    assert "cpu" in lines["devices"]
    assert lines["matplotlib"] == lines["transformers"] == "not installed"


def test_a_device_that_does_not_start_is_reported(monkeypatch):
    def failing():
        raise RuntimeError("no driver\nfound")

    monkeypatch.setattr(backend, "device_names", failing)
    assert info.information()["devices"] == "error: no driver found"
