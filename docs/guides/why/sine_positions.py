"""Sinusoidal positions in bfloat16. `theirs` requires KerasHub."""

import keras
import numpy as np
from keras import ops

import keras_attn

try:
    import keras_hub
except ImportError:
    keras_hub = None

LENGTH, WIDTH = 1024, 64
zeros = ops.zeros((1, LENGTH, WIDTH), dtype="bfloat16")
angles = np.arange(LENGTH)[:, None] / 1e4 ** (np.arange(0, WIDTH, 2) / WIDTH)
exact = np.stack([np.sin(angles), np.cos(angles)], axis=-1)
exact = exact.reshape(LENGTH, WIDTH)


def describe(encoding):
    encoding = ops.convert_to_numpy(ops.cast(encoding, "float32"))[0]
    same = np.flatnonzero((encoding[1:] == encoding[:-1]).all(-1))
    first = f"from {same[0] + 1} on" if len(same) else "none"
    worst = np.abs(encoding - exact).max()
    return f"positions equal to the one before: {first}; error {worst:.3f}"


print(f"keras {keras.__version__} on {keras.backend.backend()}")
if keras_hub is None:
    print("theirs: not shown, for want of KerasHub: pip install keras-hub")
else:
    print(f"keras-hub {keras_hub.__version__}")
    layer = keras_hub.layers.SinePositionEncoding(dtype="bfloat16")
    print("theirs:", describe(layer(zeros)))
layer = keras_attn.layers.PositionalEmbedding(dtype="bfloat16")
print("ours:  ", describe(layer(zeros)))
