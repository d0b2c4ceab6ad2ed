"""A learned table of four positions, and a token at the fifth.

`theirs` requires KerasHub.
"""

import re

import keras
import numpy as np
from keras import ops

import keras_attn

try:
    import keras_hub
except ImportError:
    keras_hub = None

# Row p of the table contains p.
TABLE = np.arange(4.0)[:, None].astype("float32")
tokens = np.zeros((1, 2, 1), "float32")


def describe(call):
    try:
        rows = ops.convert_to_numpy(call())[0, :, 0]
    except ValueError as error:
        # Keras prints the message itself in bold.
        message = re.search("\x1b\\[1m(.*?)\x1b", str(error), re.DOTALL)[1]
        return f"ValueError: {message}"
    except Exception as error:
        return type(error).__name__
    return f"tokens 3 and 4 get rows {rows[0]:.0f} and {rows[1]:.0f}"


print(f"keras {keras.__version__} on {keras.backend.backend()}")
if keras_hub is None:
    print("theirs: not shown, for want of KerasHub: pip install keras-hub")
else:
    print(f"keras-hub {keras_hub.__version__}")
    theirs = keras_hub.layers.PositionEmbedding(sequence_length=4)
    theirs.build((None, 4, 1))
    theirs.set_weights([TABLE])
    print("theirs:", describe(lambda: theirs(tokens, start_index=3)))
ours = keras_attn.layers.PositionalEmbedding("learned", max_sequence_length=4)
ours.build((None, 4, 1))
ours.set_weights([TABLE])
positions = np.array([[3, 4]], "int32")
print("ours:  ", describe(lambda: ours(tokens, positions=positions)))
