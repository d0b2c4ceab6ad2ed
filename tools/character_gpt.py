"""The GPT over characters that runs in a page of the site.

`tools.figure_data` trains it and writes its weights, int8 with one scale per
output channel. `load` creates the same model from the file.
"""

import ast
import base64
import hashlib
import re
import time

import keras
import numpy as np

from keras_attn.models import GPT
from keras_attn.text import token_blocks
from keras_attn.training import SequenceCrossentropy
from tools.diagrams import ROOT

# The printable characters of ASCII, and the end of a line.
CHARACTERS = "\n" + "".join(map(chr, range(32, 127)))
LENGTH = 128
SIZES = {"num_layers": 2, "num_heads": 4, "hidden_dim": 96}
SEED = 1
EPOCHS = 9
BATCH = 8
RATE = 4e-3


def sources():
    """Yields the prose of the project, one Markdown text per file."""
    for path in sorted((ROOT / "tutorials").glob("*.py")):
        cells = re.split(r"^# %%", path.read_text("utf-8"), flags=re.MULTILINE)
        for cell in cells:
            if cell.startswith(" [markdown]"):
                yield re.sub(r"^# ?", "", cell, flags=re.MULTILINE)
    for path in sorted((ROOT / "docs").rglob("*.md")):
        if "tutorials" not in path.parts and path.name != "diagrams.md":
            yield path.read_text("utf-8")
    for name in ("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md"):
        yield (ROOT / name).read_text("utf-8")
    for path in sorted((ROOT / "keras_attn").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
                yield ast.get_docstring(node) or ""


def sentences(markdown):
    """Yields the paragraphs of a text that are prose, one line each."""
    plain = re.sub(r"```.*?```|\$\$.*?\$\$|<[^>]*>", "", markdown, flags=re.S)
    plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", plain)
    plain = re.sub(r"https?://\S+|[`*$\\]", "", plain)
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*(?:[-|#>]|\d+\. ))", plain):
        line = re.sub(r"^([-#>|]+|\d+\.) ", "", " ".join(paragraph.split()))
        letters = sum(c.islower() or c == " " for c in line)
        if (
            line.isascii()
            and len(line) > 60
            and line[-1] in ".:?"
            and letters > 0.88 * len(line)
            and not re.match(r"(Args|Call arguments|Raises|Returns):", line)
        ):
            yield line


def prose():
    """Returns the text to train on: each paragraph once."""
    lines = (line for source in sources() for line in sentences(source))
    return "".join(f"{line}\n" for line in dict.fromkeys(lines))


def encode(text):
    """Returns the ids of characters, int32."""
    return np.array([CHARACTERS.index(c) for c in text], "int32")


def make_model(sizes):
    """Returns an untrained model."""
    return GPT(
        len(CHARACTERS),
        **sizes,
        max_sequence_length=LENGTH,
        dropout=0.0,
        attention_dropout=0.0,
        # All ids are characters.
        pad_id=None,
        start_id=None,
        end_id=None,
    )


def train(text, epochs=EPOCHS, **sizes):
    """Trains a model and quantizes its weights.

    Args:
        text: str.
        epochs: int.
        **sizes: arguments of `GPT`; default `SIZES`.

    Returns:
        Dict: the data of the figure.
    """
    keras.utils.set_random_seed(SEED)
    # One in twenty paragraphs is held out.
    lines = text.splitlines(keepends=True)
    np.random.default_rng(SEED).shuffle(lines)
    cut = len(lines) // 20
    held, used = (encode("".join(x)) for x in (lines[:cut], lines[cut:]))
    sizes = SIZES | sizes
    model = make_model(sizes)
    training = fit(model, used, epochs)
    losses = {"testLoss": test_loss(model, held)}
    weights = quantize(model)
    set_weights(model, weights)
    losses["int8TestLoss"] = test_loss(model, held)
    return {
        "characters": CHARACTERS,
        "length": LENGTH,
        "sizes": sizes,
        "training": {
            "seed": SEED,
            "characters": len(text),
            "sha256": hashlib.sha256(text.encode()).hexdigest(),
            **training,
            **losses,
        },
        "weights": weights,
    }


def fit(model, ids, epochs):
    """Trains a model; returns its last loss, in nats, and the time."""
    blocks = token_blocks(ids, LENGTH, BATCH, seed=SEED)
    steps = epochs * len(blocks)
    schedule = keras.optimizers.schedules.CosineDecay(
        0.0, steps, warmup_target=RATE, warmup_steps=steps // 10
    )
    model.compile(
        keras.optimizers.AdamW(schedule, beta_2=0.99, global_clipnorm=1.0),
        SequenceCrossentropy(pad_id=-1),
    )
    start = time.perf_counter()
    history = model.fit(blocks, epochs=epochs, shuffle=False, verbose=2)
    return {
        "epochs": epochs,
        "steps": steps,
        "seconds": round(time.perf_counter() - start),
        "trainingLoss": round(history.history["loss"][-1], 3),
    }


def test_loss(model, ids):
    """Returns the loss of a compiled model, in nats per character."""
    blocks = token_blocks(ids, LENGTH, BATCH, shuffle=False)
    return round(model.evaluate(blocks, verbose=0, return_dict=True)["loss"], 3)


def quantize(model):
    """Returns the weights of a model by path, as text.

    Matrices are int8 times one float32 scale per output channel, vectors are
    float32. The channels of an embedding are its rows: the output layer, which
    shares the table, has one per token.
    """
    found = {}
    for weight in model.weights:
        path = weight.path
        array = keras.ops.convert_to_numpy(weight)
        if not path.endswith(("kernel", "embeddings")):
            found[path] = {"float32": _text(array.ravel(), "<f4")}
            continue
        # Kernels of attention have an axis of heads: among the inputs of the
        # output projection, among the outputs of the others.
        inputs = np.prod(array.shape[: 2 if "attention_output" in path else 1])
        matrix = array.reshape(inputs, -1)
        axis = int(path.endswith("embeddings"))
        scale = np.abs(matrix).max(axis, keepdims=True) / 127
        found[path] = {
            "shape": matrix.shape,
            "scale": _text(scale.ravel(), "<f4"),
            "int8": _text(np.rint(matrix / scale), "i1"),
        }
    return found


def dequantize(weights):
    """Returns the float32 arrays of `quantize` by path."""
    found = {}
    for path, one in weights.items():
        if "float32" in one:
            found[path] = _array(one["float32"], "<f4")
            continue
        matrix = _array(one["int8"], "i1").reshape(one["shape"])
        across = (-1, 1) if path.endswith("embeddings") else (1, -1)
        scale = _array(one["scale"], "<f4").reshape(across)
        found[path] = matrix.astype("float32") * scale
    return found


def load(data):
    """Returns the model of the data of the figure, with its int8 weights."""
    model = make_model(data["sizes"])
    set_weights(model, data["weights"])
    return model


def set_weights(model, weights):
    """Sets the weights of a model to those of `quantize`."""
    arrays = dequantize(weights)
    model.set_weights(
        [arrays[weight.path].reshape(weight.shape) for weight in model.weights]
    )


def _text(array, dtype):
    return base64.b64encode(array.astype(dtype).tobytes()).decode()


def _array(text, dtype):
    return np.frombuffer(base64.b64decode(text), dtype)
