"""Exports with dynamic lengths from PyTorch. Requires TensorFlow as well.

First Keras's `export`; then the workaround, a `.keras` file that this program
exports on TensorFlow.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

import keras
import numpy as np

import keras_attn

SIGNATURE = [keras.InputSpec(shape=(None, None), dtype="int32")]
batches = [np.array([[3, 4, 5]]), np.arange(14).reshape(2, 7)]


def keras_model():
    inputs = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(20, 16)(inputs)
    x = keras.layers.MultiHeadAttention(num_heads=2, key_dim=8)(x, x)
    return keras.Model(inputs, x)


def try_export(model, folder, **kwargs):
    try:
        with warnings.catch_warnings(action="ignore"):
            model.export(folder / "exported", verbose=False, **kwargs)
    except Exception as error:
        return type(error).__name__
    return "works"


def describe(model):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        direct = try_export(model, folder, input_signature=SIGNATURE)
        uncalled = try_export(model, folder, format="onnx")
        model.save(folder / "model.keras")
        subprocess.run(
            [sys.executable, __file__, folder],
            env=os.environ | {"KERAS_BACKEND": "tensorflow"},
            capture_output=True,
            check=True,
        )
        with np.load(folder / "served.npz") as archive:
            served = [*archive.values()]
    same = all(
        np.allclose(keras.ops.convert_to_numpy(model(batch)), found, atol=1e-5)
        for batch, found in zip(batches, served, strict=True)
    )
    return (
        f"SavedModel {direct}, ONNX before a call {uncalled}, "
        f"by a file {'right' if same else 'wrong'}"
    )


def serve(folder):
    import tensorflow as tf

    model = keras.saving.load_model(folder / "model.keras")
    model.export(folder / "served", verbose=False, input_signature=SIGNATURE)
    served = tf.saved_model.load(folder / "served")
    found = [served.serve(batch.astype("int32")) for batch in batches]
    np.savez(folder / "served.npz", *found)


if keras.backend.backend() == "tensorflow":
    serve(pathlib.Path(sys.argv[1]))
else:
    print(f"keras {keras.__version__} on {keras.backend.backend()}")
    print("theirs:", describe(keras_model()))
    sizes = {"num_heads": 2, "hidden_dim": 16, "intermediate_dim": 32}
    ours = keras_attn.models.Encoder(20, num_layers=2, **sizes)
    print("ours:  ", describe(ours))
