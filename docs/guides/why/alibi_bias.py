"""ALiBi biases in bfloat16. `theirs` requires KerasHub."""

import keras
import numpy as np
from keras import ops

import keras_attn

try:
    import keras_hub
except ImportError:
    keras_hub = None

HEADS, LENGTH = 8, 600


def describe(bias):
    """Describes the biases of the last query in the first head."""
    bias = ops.convert_to_numpy(ops.cast(bias, "float32"))[0, 0, -1]
    same = np.sum(bias[1:] == bias[:-1])
    return f"{same} of {LENGTH} keys have the same bias as the next one"


print(f"keras {keras.__version__} on {keras.backend.backend()}")
if keras_hub is None:
    print("theirs: not shown, for want of KerasHub: pip install keras-hub")
else:
    print(f"keras-hub {keras_hub.__version__}")
    scores = ops.zeros((1, HEADS, 1, LENGTH), dtype="bfloat16")
    print(
        "theirs:",
        describe(keras_hub.layers.AlibiBias(dtype="bfloat16")(scores)),
    )
layer = keras_attn.layers.ALiBiPosition(HEADS, dtype="bfloat16")
positions = keras_attn.ops.positions.default_positions(LENGTH)
print(
    "ours:  ",
    describe(layer.bias().function(None, positions[:, -1:], positions)),
)
