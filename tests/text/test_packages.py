"""Optional packages: missing ones, and TensorFlow's GPUs on other backends."""

import sys

import keras
import pytest
import tensorflow as tf

from keras_attn.text import SubwordTokenizer, packages

OTHERS = keras.backend.backend() != "tensorflow"


@pytest.mark.parametrize(
    "module, name, extra",
    [
        ("sentencepiece", "sentencepiece", "text"),
        ("tokenizers", "tokenizers", "text"),
        ("tensorflow_text", "tensorflow-text", "text-tensorflow"),
        ("tensorflow", "tensorflow", "text-tensorflow"),
    ],
)
def test_a_missing_package_raises_a_one_line_error(
    monkeypatch, module, name, extra
):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=f"needs {name}, ") as info:
        getattr(packages, module)()
    assert f"pip install keras-attn[{extra}]" in str(info.value)
    assert "\n" not in str(info.value)


def test_only_the_tensorflow_backend_shows_tensorflow_gpus(monkeypatch):
    hidden = []
    monkeypatch.setattr(tf.config, "get_visible_devices", lambda kind: [kind])
    monkeypatch.setattr(
        tf.config, "set_visible_devices", lambda *args: hidden.append(args)
    )
    assert packages.tensorflow() is tf
    assert hidden == [([], "GPU")] * OTHERS


def test_gpus_in_use_by_tensorflow_stay_visible(monkeypatch):
    def late(*_):
        raise RuntimeError("Visible devices cannot be modified")

    monkeypatch.setattr(tf.config, "get_visible_devices", lambda kind: [kind])
    monkeypatch.setattr(tf.config, "set_visible_devices", late)
    assert packages.tensorflow() is tf


def test_encoding_in_python_needs_no_tensorflow(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    monkeypatch.setitem(sys.modules, "tensorflow_text", None)
    tokenizer = SubwordTokenizer.train_from_lines(["a b"], 300)
    assert tokenizer.decode(tokenizer.encode("a b")) == "a b"


@pytest.mark.gpu
def test_after_use_no_gpu_is_visible_to_tensorflow():
    packages.tensorflow()
    seen = tf.config.get_visible_devices("GPU")
    assert bool(seen) == (not OTHERS)
