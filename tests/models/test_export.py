"""Exported programs compute what the model computes, at any size."""

import keras
import numpy as np
import pytest
from keras import ops, tree

from keras_attn import models
from tests.test_host_reads import CASES, FRAMES, IMAGES, SIZES

# Keras passes a deprecated argument to JAX's exporter (as of Keras 3.15.1).
pytestmark = pytest.mark.filterwarnings(
    "ignore:The `native_serialization` parameter"
)
BACKEND = keras.backend.backend()
FORMAT = "torch" if BACKEND == "torch" else "tf_saved_model"
SHAPES = (2, 4), (3, 7), (1, 2)
MODELS = {
    name: make for name, (make, _, _) in CASES.items() if hasattr(models, name)
} | {
    "GPT": lambda: models.GPT(11, max_sequence_length=9, **SIZES),
    "Encoder, segments": lambda: models.Encoder(11, num_segments=2, **SIZES),
    "TransformerXL": lambda: models.TransformerXL(11, memory_length=2, **SIZES),
}
if BACKEND != "tensorflow":
    # TensorFlow exports all of them; these are the different inputs.
    # `test_lengths_of_every_kernel` exports a GPT.
    names = "Encoder", "MultipleChoice", "Transformer", "TransformerXL"
    MODELS = {name: MODELS[name] for name in names}


def exported(model, folder, **kwargs):
    """Exports a model and returns it as a function of arrays."""
    path = folder / ("model.pt2" if FORMAT == "torch" else "model")
    model.export(path, format=FORMAT, verbose=False, **kwargs)
    if FORMAT == "torch":
        import torch

        program = torch.export.load(path).module()
        return lambda x: arrays(
            program(tree.map_structure(torch.from_numpy, x))
        )
    import tensorflow as tf

    loaded = tf.saved_model.load(path)
    return lambda x: arrays(loaded.serve(x))


def arrays(outputs):
    if hasattr(outputs, "detach"):
        return [outputs.detach().numpy()]
    if isinstance(outputs, dict):
        outputs = [outputs[name] for name in sorted(outputs)]
    return [
        x.detach().numpy() if hasattr(x, "detach") else np.array(x)
        for x in tree.flatten(outputs)
        if x is not None
    ]


def ids(name, rows, length):
    """Returns random inputs of a model with the given batch size and length."""
    random = np.random.default_rng(rows)

    def of_shape(*shape, highest=10):
        return random.integers(1, highest + 1, shape).astype("int32")

    tokens = rows, length
    if name in ("Transformer", "RecurrentSeq2Seq"):
        return [of_shape(*tokens), of_shape(rows, length + 2)]
    if name == "ImageCaptioner":
        images = random.uniform(0, 255, (rows, *IMAGES.shape[1:]))
        return [images.astype("float32"), of_shape(*tokens)]
    if name == "VisionTransformer":
        images = random.uniform(-1, 1, (rows, 4, *IMAGES.shape[2:]))
        return images.astype("float32")
    if name == "SpeechTransformer":
        frames = random.normal(size=(rows, 3 * length, FRAMES.shape[2]))
        return [frames.astype("float32"), of_shape(*tokens)]
    if name == "MultipleChoice":
        return of_shape(rows, 3, length)
    if name == "Encoder, segments":
        return {
            "segment_ids": of_shape(*tokens, highest=1),
            "token_ids": of_shape(*tokens),
        }
    if name == "Encoder":
        return {
            "character_ids": of_shape(*tokens, 3),
            "token_ids": of_shape(*tokens),
        }
    return of_shape(*tokens)


@pytest.mark.parametrize("name", MODELS)
def test_without_a_signature_or_a_call(name, tmp_path):
    model = MODELS[name]()
    program = exported(model, tmp_path)
    for shape in SHAPES:
        inputs = ids(name, *shape)
        found, expected = program(inputs), arrays(model(inputs))
        assert len(found) == len(expected) > 0
        for one, two in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-5)


def test_lengths_of_every_kernel(tmp_path):
    """The kernels and groups of experts that a length chooses do not limit it.

    A single token has groups of one.
    """
    model = models.GPT(11, max_sequence_length=1200, num_experts=5, **SIZES)
    program = exported(model, tmp_path)
    for length in (1, 5, 600, 1100):
        inputs = ids("GPT", 1, length)
        found, expected = program(inputs), arrays(model(inputs))
        np.testing.assert_allclose(*found, *expected, rtol=1e-4, atol=1e-4)


def test_recordings_of_a_fixed_length(tmp_path):
    """Needed on PyTorch, whose example of any number of frames is 2."""
    model = CASES["SpeechTransformer"][0]()
    frames, target = ids("SpeechTransformer", 2, 4)
    specs = [
        keras.InputSpec(shape=(None, *frames.shape[1:]), dtype="float32"),
        keras.InputSpec(shape=(None, None), dtype="int32"),
    ]
    program = exported(model, tmp_path, input_signature=[specs])
    for rows, length in ((2, 4), (3, 2)):
        target = ids("SpeechTransformer", rows, length)[1]
        inputs = [np.concatenate([frames, -frames])[:rows], target]
        np.testing.assert_allclose(
            program(inputs)[0], arrays(model(inputs))[0], rtol=1e-4, atol=1e-5
        )


def test_a_signature_that_is_no_list(tmp_path):
    model = models.GPT(11, max_sequence_length=9, **SIZES)
    spec = keras.InputSpec(shape=(None, None), dtype="int32")
    with pytest.raises(ValueError, match="`input_signature` must be a list"):
        exported(model, tmp_path, input_signature=spec)


@pytest.mark.every_backend
def test_options_are_merged(tmp_path):
    if BACKEND != "jax":
        pytest.skip("an option of JAX")
    model = models.Encoder(11, num_segments=2, **SIZES)
    program = exported(model, tmp_path, jax2tf_kwargs={"with_gradient": False})
    inputs = ids("Encoder, segments", 2, 5)
    np.testing.assert_allclose(
        program(inputs)[0], arrays(model(inputs))[0], rtol=1e-4, atol=1e-5
    )


def test_with_a_signature(tmp_path):
    model = models.GPT(11, max_sequence_length=9, **SIZES)
    names = "token_ids", "padding_mask"
    signature = {
        name: keras.InputSpec(shape=(2, None), dtype=dtype)
        for name, dtype in zip(names, ("int32", "bool"), strict=True)
    }
    program = exported(model, tmp_path, input_signature=[signature])
    for length in (3, 5):
        mask = np.arange(length) < np.array([[length], [2]])
        inputs = dict(zip(names, (ids("GPT", 2, length), mask), strict=True))
        np.testing.assert_allclose(
            program(inputs)[0], arrays(model(inputs))[0], rtol=1e-4, atol=1e-5
        )


class Averages(models.GenerativeModel):
    """A model of which the package does not know the inputs."""

    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(3)

    def call(self, x):
        return self.dense(x)


def test_a_model_of_unknown_inputs(tmp_path):
    model = Averages()
    with pytest.raises(ValueError, match=r"built|called"):
        exported(model, tmp_path)
    x = np.ones((2, 4), "float32")
    model(x)
    signature = [keras.InputSpec(shape=(None, 4), dtype="float32")]
    program = exported(model, tmp_path, input_signature=signature)
    np.testing.assert_allclose(program(x)[0], arrays(model(x))[0], rtol=1e-5)


@pytest.mark.every_backend
def test_formats_that_pytorch_cannot_write(tmp_path):
    if BACKEND != "torch":
        pytest.skip("other backends write a SavedModel")
    model = models.GPT(11, max_sequence_length=9, **SIZES)
    with pytest.raises(ValueError, match=r"`format` must be \"torch\""):
        model.export(tmp_path / "model")
    # Keras's recurrent layers run one step per token of the example.
    with pytest.raises(RuntimeError, match="Failed to export"):
        exported(models.RecurrentSeq2Seq(11, hidden_dim=8), tmp_path)
    assert not any(tmp_path.iterdir())


@pytest.mark.every_backend
@pytest.mark.parametrize(
    "make",
    [
        lambda: models.GPT(11, max_sequence_length=9, **SIZES),
        CASES["Transformer"][0],
    ],
    ids=["GPT", "Transformer"],
)
def test_a_decode_step_in_an_archive(make, tmp_path):
    if BACKEND == "torch":
        pytest.skip("`ExportArchive` needs TensorFlow or JAX")
    import tensorflow as tf

    model = make()
    prompt, new_tokens = ids("GPT", 2, 3), 4
    state = model.start_decoding(ops.convert_to_tensor(prompt), new_tokens)

    def start(prompt):
        return tree.flatten(model.start_decoding(prompt, new_tokens))

    def step(tokens, parts):
        before = tree.pack_sequence_as(state, parts)
        logits, after = model.decode_step(tokens, before)
        return [logits, *tree.flatten(after)]

    def spec(x):
        # Any number of rows, which JAX cannot know: heads multiply it.
        free = BACKEND == "tensorflow" and len(x.shape) > 0
        shape = (None, *x.shape[1:]) if free else x.shape
        dtype = keras.backend.standardize_dtype(x.dtype)
        return keras.InputSpec(shape=shape, dtype=dtype)

    archive = keras.export.ExportArchive()
    archive.track(model)
    archive.add_endpoint("start", start, [spec(prompt)])
    parts = [spec(part) for part in tree.flatten(state)]
    archive.add_endpoint("step", step, [spec(state.tokens), parts])
    archive.write_out(tmp_path / "served", verbose=False)
    served = tf.saved_model.load(tmp_path / "served")
    for rows in (2, 3) if BACKEND == "tensorflow" else (2,):
        prompt = ids("GPT", rows, 3)
        state = model.start_decoding(ops.convert_to_tensor(prompt), new_tokens)
        parts, tokens = served.start(prompt), state.tokens
        for _ in range(new_tokens):
            found, *parts = served.step(np.array(tokens), parts)
            logits, state = model.decode_step(tokens, state)
            np.testing.assert_allclose(
                np.array(found), np.array(logits), rtol=1e-4, atol=1e-5
            )
            tokens = ops.cast(ops.argmax(logits, -1), "int32")


@pytest.mark.every_backend
def test_prompts_of_unknown_length():
    if BACKEND != "tensorflow":
        pytest.skip("only TensorFlow has tensors of unknown length")
    import tensorflow as tf

    model = models.GPT(11, max_sequence_length=9, **SIZES)
    spec = tf.TensorSpec((None, None), "int32")
    with pytest.raises(ValueError, match="`inputs` must have a length"):
        tf.function(
            lambda x: model.start_decoding(x, 2), autograph=False
        ).get_concrete_function(spec)
