"""Environments, what is installed in them, and the programs that they run."""

import datetime
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from tools.tutorials.facts import cores, cpu

ROOT = pathlib.Path(__file__).parents[2]
BACKENDS = "tensorflow", "jax", "torch"
# Seconds that a program may take, without the installation.
LIMIT = 900

LAYER = """
import keras, numpy as np
from keras_attn.layers import MultiHeadAttention
x = np.ones((1, 3, 8), "float32")
assert MultiHeadAttention(num_heads=2, key_dim=4)(x, x).shape == (1, 3, 8)
"""
TEXT = """
from keras_attn.text import BytePairTokenizer, UnigramTokenizer, load_tokenizer
lines = ["the cat sat on the mat", "a dog ate the cat's food"] * 50
for kind in BytePairTokenizer, UnigramTokenizer:
    tokenizer = kind.train_from_lines(lines, 300 if kind is BytePairTokenizer
                                      else 40)
    tokenizer.save(f"{kind.__name__}")
    ids = load_tokenizer(kind.__name__).encode(lines[:2])
    assert ids == tokenizer.encode(lines[:2]) and all(ids)
    with open(f"{kind.__name__}/chat_template.jinja", "w") as file:
        file.write("{% for m in messages %}{{ m.content }}{% endfor %}")
    chat = load_tokenizer(kind.__name__).apply_chat_template
    assert chat([{"role": "user", "content": lines[0]}]) == ids[0]
"""
TEXT_TENSORFLOW = """
from keras_attn.text import SubwordTokenizer
lines = ["the cat sat on the mat", "a dog ate the cat's food"] * 50
tokenizer = SubwordTokenizer.train_from_lines(lines, 290)
ids = tokenizer.tokenize(lines[:2])
assert ids.to_list() == [list(row) for row in tokenizer.encode(lines[:2])]
"""
PRETRAINED = """
import numpy as np
from keras_attn import models, pretrained
model = models.Bert(30, num_layers=1, num_heads=2, hidden_dim=8,
                    intermediate_dim=12)
ids = {"token_ids": np.array([[2, 5, 3]])}
before = model.predict(ids, verbose=0)
pretrained.save(model, "folder")
after = pretrained.load("folder").predict(ids, verbose=0)
for name, value in before.items():
    np.testing.assert_allclose(after[name], value, rtol=1e-5, atol=1e-6)
"""
EXPLAIN = """
import numpy as np
from keras_attn import explain
figure = explain.plot_attention(np.eye(3, dtype="float32"))
figure.savefig("attention.png")
"""
EXPORT = """
import keras, numpy as np, onnxruntime
from keras_attn import models
model = models.GPT(30, num_layers=1, num_heads=2, hidden_dim=8,
                   intermediate_dim=12, max_sequence_length=8)
ids = np.array([[2, 5, 3]], "int32")
# JAX writes no ONNX files, and its SavedModels need TensorFlow.
if keras.config.backend() == "tensorflow":
    model.export("served")
if keras.config.backend() == "torch":
    model.export("model.onnx", format="onnx")
    session = onnxruntime.InferenceSession("model.onnx")
    (found,) = session.run(None, {"input_0": ids})
    expected = model.predict(ids, verbose=0)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
"""
PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider")
TESTS = (
    *PYTEST,
    *("tests/layers/test_multi_head_attention.py", "tests/blocks"),
    *("tests/models/test_gpt.py", "tests/models/test_bert.py"),
    *("tests/models/test_transformer.py", "tests/decoding/test_generate.py"),
)
TRANSLATE = ("examples/translate.py", "train", "--quick", "--preset", "tiny")
# For each extra: commands of Python that need it, after a program or options.
EXTRAS = {
    "no extra": [("-c", LAYER)],
    "text": [("-c", TEXT)],
    "text-tensorflow": [("-c", TEXT_TENSORFLOW)],
    "pretrained": [("-c", PRETRAINED)],
    "explain": [("-c", EXPLAIN)],
    "export": [("-c", EXPORT)],
    "examples": [(*TRANSLATE, "--epochs", "1", "--out", "{folder}/out")],
    "docs": [("-m", "mkdocs", "build", "-q", "--site-dir", "{folder}/site")],
    "test": [(*PYTEST, "tests/layers/test_multi_head_attention.py")],
    "benchmarks": [("-m", "benchmarks", "projections")],
    "all": [("-c", TEXT), ("-c", PRETRAINED), ("-c", EXPLAIN)],
}
# Versions that pip installs in place of those of constraints.txt; None: the
# newest ones.
VERSIONS = {
    "oldest versions": {
        "keras": "3.15.0",
        "tensorflow": "2.21.0",
        "jax": "0.10.0",
        "torch": "2.13.0",
    },
    "newest versions": None,
}


def run(row, backend, python=sys.executable):
    """Makes an environment, installs the library and runs what needs it.

    Args:
        row: str, of `EXTRAS` or `VERSIONS`.
        backend: str.
        python: str. The interpreter.

    Returns:
        Dict of plain values: `outcome`, "passed" or "failed"; `megabytes` of
        the environment, `seconds` of all, `output` of a failure, `versions`,
        `date` and `machine`.
    """
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        environment = folder / "environment"
        # Nothing of the calling environment. QUICK: benchmarks with tiny sizes.
        variables = {
            name: value
            for name, value in os.environ.items()
            if name not in ("PYTHONPATH", "VIRTUAL_ENV")
        } | {
            "KERAS_BACKEND": backend,
            "QUICK": "1",
            "TF_CPP_MIN_LOG_LEVEL": "2",
        }

        def call(command, cwd):
            return subprocess.run(
                command,
                cwd=cwd,
                env=variables,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=LIMIT,
            )

        call([python, "-m", "venv", environment], folder).check_returncode()
        inside = environment / "bin" / "python"
        tree = copied(folder / "keras-attn")
        steps = [(install(row, backend, folder), tree)]
        for command in commands(row, folder):
            # A program with an installed library, outside its source.
            steps.append((command, folder if command[0] == "-c" else tree))
        outcome, output = "passed", ""
        for command, cwd in steps:
            done = call([inside, *command], cwd)
            if done.returncode:
                outcome, output = "failed", done.stdout[-4000:]
                break
        freeze = call([inside, "-m", "pip", "freeze"], folder).stdout
        size = sum(
            path.lstat().st_size
            for path in environment.rglob("*")
            if path.is_file() and not path.is_symlink()
        )
    return {
        "outcome": outcome,
        "output": output,
        "seconds": round(time.monotonic() - started),
        "megabytes": round(size / 1e6),
        "versions": versions(freeze),
        "date": datetime.date.today().isoformat(),
        "machine": f"{cores()} of {cpu()}",
    }


def copied(folder):
    """Copies the checkout, because a build writes beside the sources."""
    written = {".git", ".venv", "build", "dist", "runs", "site"}
    caches = shutil.ignore_patterns("__pycache__", "*.egg-info", "node_modules")

    def ignore(path, names):
        top = written if pathlib.Path(path) == ROOT else set()
        return caches(path, names) | top.intersection(names)

    shutil.copytree(ROOT, folder, ignore=ignore, symlinks=True)
    return folder


def install(row, backend, folder):
    """Returns the arguments of Python that install the library for a row."""
    extra = "test" if row in VERSIONS else row
    extras = backend if extra == "no extra" else f"{backend},{extra}"
    pip = ("-m", "pip", "install", "-q", "--disable-pip-version-check")
    if row in EXTRAS:
        return (*pip, "-c", "constraints.txt", f".[{extras}]")
    pinned = VERSIONS[row]
    if pinned is None:
        return (*pip, "--upgrade", f".[{extras}]", "torch<=2.13.0")
    # The other versions are those of constraints.txt, as far as they fit.
    lines = [f"{name}=={version}" for name, version in pinned.items()]
    path = folder / "constraints.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return (*pip, "-c", str(path), f".[{extras}]")


def commands(row, folder):
    """Returns the commands that a row runs, as arguments of Python."""
    found = [TESTS] if row in VERSIONS else EXTRAS[row]
    return [
        [word.replace("{folder}", str(folder)) for word in command]
        for command in found
    ]


def versions(freeze):
    """Returns the versions of Keras and the backends in `pip freeze`."""
    lines = (line.split("==") for line in freeze.splitlines() if "==" in line)
    found = dict(lines)
    names = "keras", *BACKENDS
    return {name: found[name] for name in names if name in found}
