"""The table of the guide to exporting: what each format can do."""

import pathlib
import re

import keras
import numpy as np
import pytest
from keras import ops, tree

from keras_attn import models
from tests.models import test_export
from tests.models.test_export import arrays, ids
from tests.test_host_reads import CASES, SIZES

BACKEND = keras.backend.backend()
GUIDE = pathlib.Path(__file__).parents[2] / "docs/guides/export.md"
COLUMNS = {
    "SavedModel (TensorFlow)": "tensorflow",
    "SavedModel (JAX)": "jax",
    "ONNX (PyTorch)": "torch",
    "`torch.export`": "torch",
    "LiteRT (TensorFlow)": "tensorflow",
}
ANY, ROWS, FIXED = "any batch size and length", "any batch size", "fixed sizes"
STEPS = "any batch size, given number of slots"
TABLE = {
    "encoder": (ANY, ANY, ANY, ANY, ROWS),
    "whole `Transformer`": (ANY, ANY, ANY, ANY, ROWS),
    "decode step with its cache": (STEPS, FIXED, FIXED, FIXED, FIXED),
}
MODELS = {
    "encoder": lambda: models.Encoder(11, **SIZES),
    "whole `Transformer`": CASES["Transformer"][0],
}
# From PyTorch: Keras registers its variables in a second place.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*not properly registered"),
    pytest.mark.filterwarnings("ignore:.*tf.lite.Interpreter is deprecated"),
    pytest.mark.filterwarnings(r"ignore:[\s\S]*isinstance\(treespec, LeafSpec"),
]


def only_on(name):
    return pytest.mark.skipif(BACKEND != name, reason=f"a format of {name}")


def test_the_guide_has_this_table():
    _, _, *rows = re.findall(r"^\|.*$", GUIDE.read_text("utf-8"), re.M)[:5]
    head = re.search(r"^\|.*$", GUIDE.read_text("utf-8"), re.M)[0]
    cells = [
        [cell.strip() for cell in row.strip("|").split("|")]
        for row in (head, *rows)
    ]
    assert cells[0] == ["", *COLUMNS]
    assert {name: tuple(row) for name, *row in cells[1:]} == TABLE
    # Tests of `torch.export` and of SavedModels: any batch size and length.
    tested = test_export.MODELS.keys()
    assert {"Encoder", "Transformer"} <= tested
    assert len({shape[0] for shape in test_export.SHAPES}) > 1
    assert len({shape[1] for shape in test_export.SHAPES}) > 1


def inputs_of(name, rows, length):
    return ids("Transformer" if "Trans" in name else "Encoder_", rows, length)


@only_on("torch")
@pytest.mark.parametrize("name", MODELS)
def test_onnx(name, tmp_path):
    pytest.importorskip("onnxscript")
    runtime = pytest.importorskip("onnxruntime")
    model = MODELS[name]()
    model.export(tmp_path / "model.onnx", format="onnx", verbose=False)
    session = runtime.InferenceSession(tmp_path / "model.onnx")
    names = [one.name for one in session.get_inputs()]
    assert names == [f"input_{i}" for i in range(len(names))]
    for rows, length in ((2, 3), (1, 5), (3, 1)):
        inputs = inputs_of(name, rows, length)
        feeds = dict(zip(names, tree.flatten(inputs), strict=True))
        (found,) = session.run(None, feeds)
        np.testing.assert_allclose(
            found, arrays(model(inputs))[0], rtol=1e-4, atol=1e-5
        )


@only_on("torch")
def test_onnx_of_named_inputs(tmp_path):
    pytest.importorskip("onnxscript")
    runtime = pytest.importorskip("onnxruntime")
    model = models.Encoder(11, num_segments=2, **{**SIZES, "num_layers": 1})
    spec = keras.InputSpec(shape=(None, 4), dtype="int32")
    names = "segment_ids", "token_ids"
    model.export(
        tmp_path / "model.onnx",
        format="onnx",
        input_signature=[dict.fromkeys(names, spec)],
        opset_version=20,
    )
    session = runtime.InferenceSession(tmp_path / "model.onnx")
    inputs = ids("Encoder, segments", 3, 4)
    (found,) = session.run(None, inputs)
    np.testing.assert_allclose(
        found, arrays(model(inputs))[0], rtol=1e-4, atol=1e-5
    )


@only_on("tensorflow")
@pytest.mark.parametrize("name", MODELS)
def test_litert(name, tmp_path):
    import tensorflow as tf

    model = MODELS[name]()
    spec = keras.InputSpec(shape=(None, 4), dtype="int32")
    path = str(tmp_path / "model.tflite")
    model.export(
        path,
        format="litert",
        verbose=False,
        input_signature=[[spec, spec] if "Trans" in name else spec],
    )
    for rows in (2, 3):
        inputs = [x[:, :4] for x in tree.flatten(inputs_of(name, rows, 4))]
        interpreter = tf.lite.Interpreter(path)
        details = sorted(
            interpreter.get_input_details(), key=lambda one: one["name"]
        )
        for one, x in zip(details, inputs, strict=True):
            interpreter.resize_tensor_input(one["index"], x.shape)
        interpreter.allocate_tensors()
        for one, x in zip(details, inputs, strict=True):
            interpreter.set_tensor(one["index"], x)
        interpreter.invoke()
        (output,) = interpreter.get_output_details()
        expected = model(inputs if len(inputs) > 1 else inputs[0])
        np.testing.assert_allclose(
            interpreter.get_tensor(output["index"]),
            arrays(expected)[0],
            rtol=1e-4,
            atol=1e-5,
        )


def decoding_functions(model, rows=2, new_tokens=3):
    """Returns a prompt, its state, and a step of flat lists of tensors."""
    prompt = ids("GPT", rows, 3)
    state = model.start_decoding(ops.convert_to_tensor(prompt), new_tokens)

    def step(tokens, *parts):
        before = tree.pack_sequence_as(state, list(parts))
        logits, after = model.decode_step(tokens, before)
        return (logits, *tree.flatten(after))

    return state, step


def check_steps(model, state, call):
    """Compares the logits of an exported step with those of the model."""
    # Copies: a step of PyTorch writes into its cache.
    parts = [arrays(x)[0].copy() for x in tree.flatten(state)]
    tokens = state.tokens
    for _ in range(3):
        found, *parts = call(np.array(tokens), parts)
        logits, state = model.decode_step(tokens, state)
        np.testing.assert_allclose(
            found, arrays(logits)[0], rtol=1e-4, atol=1e-5
        )
        tokens = ops.cast(ops.argmax(logits, -1), "int32")


GENERATIVE = {
    "GPT": lambda: models.GPT(11, max_sequence_length=9, **SIZES),
    "Transformer": MODELS["whole `Transformer`"],
}


@only_on("torch")
@pytest.mark.parametrize(
    "name, to_onnx", [("GPT", False), ("Transformer", True)]
)
def test_a_decode_step_of_torch(name, to_onnx, tmp_path):
    import torch

    if to_onnx:
        pytest.importorskip("onnxscript")
        runtime = pytest.importorskip("onnxruntime")
    model = GENERATIVE[name]()
    state, step = decoding_functions(model)

    class Step(torch.nn.Module):
        def forward(self, tokens, *parts):
            return step(tokens, *parts)

    parts = [x.detach().clone() for x in tree.flatten(state)]
    with torch.no_grad():
        program = torch.export.export(
            Step(), (state.tokens.clone(), *parts), strict=False
        )
    if not to_onnx:
        torch.export.save(program, tmp_path / "step.pt2")
        loaded = torch.export.load(tmp_path / "step.pt2").module()

        def call(tokens, parts):
            tensors = [torch.from_numpy(x) for x in (tokens, *parts)]
            return [x.detach().numpy() for x in loaded(*tensors)]

    else:
        names = ["tokens", *(f"state_{i}" for i in range(len(parts)))]
        torch.onnx.export(
            program, input_names=names, dynamo=True, verbose=False
        ).save(tmp_path / "step.onnx")
        session = runtime.InferenceSession(tmp_path / "step.onnx")

        def call(tokens, parts):
            feeds = dict(zip(names, (tokens, *parts), strict=True))
            return session.run(None, feeds)[: len(names)]

    check_steps(model, state, call)


@only_on("tensorflow")
def test_a_decode_step_of_litert(tmp_path):
    import tensorflow as tf

    model = MODELS["whole `Transformer`"]()
    state, step = decoding_functions(model)
    parts = tree.flatten(state)

    def spec(x):
        dtype = keras.backend.standardize_dtype(x.dtype)
        return keras.InputSpec(shape=tuple(x.shape), dtype=dtype)

    archive = keras.export.ExportArchive()
    archive.track(model)
    signature = [spec(state.tokens), [spec(part) for part in parts]]
    archive.add_endpoint(
        "step", lambda tokens, parts: list(step(tokens, *parts)), signature
    )
    archive.write_out(tmp_path / "step", verbose=False)
    converter = tf.lite.TFLiteConverter.from_saved_model(
        str(tmp_path / "step"), signature_keys=["step"]
    )
    resolver = tf.lite.experimental.OpResolverType
    # The default delegate, XNNPACK, fails to prepare (TensorFlow 2.21).
    content = converter.convert()
    runner = tf.lite.Interpreter(
        model_content=content,
        experimental_op_resolver_type=resolver.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    ).get_signature_runner("step")
    names = ["tokens", "parts", *(f"parts_{i}" for i in range(1, len(parts)))]

    def call(tokens, parts):
        found = runner(**dict(zip(names, (tokens, *parts), strict=True)))
        return [found[f"output_{i}"] for i in range(len(names))]

    check_steps(model, state, call)
