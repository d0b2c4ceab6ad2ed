"""A beam search between two hypotheses. `theirs` requires KerasHub.

After the start token, id 1, a model predicts "3 end" with p = 0.6 x 0.98 =
0.588, or "4" with p = 0.4, which it continues with probable tokens and no end.
"""

import itertools

import keras
import numpy as np
from keras import ops

from keras_attn.decoding import BeamSearch, DecodingState, generate

try:
    import keras_hub
except ImportError:
    keras_hub = None

START, END, SIZE, LENGTH = 1, 2, 6, 5
table = np.full((SIZE, SIZE), 1e-6)
table[START, [3, 4]] = 0.6, 0.4
table[3, [END, 5]] = 0.98, 0.02
table[4, [5, 3]] = 0.95, 0.05
table[5, [5, 3]] = 0.95, 0.05
# Predictions after an end token are meaningless.
table[END] = 1 / SIZE
table = table / table.sum(-1, keepdims=True)
logits = np.log(table).astype("float32")


class Model:
    """The decoding protocol, with the table instead of a network."""

    pad_id, start_id, end_id, variables = 0, START, END, ()

    def start_decoding(self, inputs, length):
        rows = ops.shape(inputs)[0]
        return DecodingState((), (), ops.full((rows, 1), START, dtype="int32"))

    def decode_step(self, tokens, state):
        return ops.take(ops.convert_to_tensor(logits), tokens, axis=0), state


def describe(tokens):
    tokens = [int(token) for token in tokens]
    if END in tokens:
        tokens = tokens[: tokens.index(END) + 1]
    path = [START, *tokens]
    p = np.prod([table[a, b] for a, b in itertools.pairwise(path)])
    return f"{tokens}, p = {p:.3f}, ended: {END in tokens}"


print(f"keras {keras.__version__} on {keras.backend.backend()}")
if keras_hub is None:
    print("theirs: not shown, for want of KerasHub: pip install keras-hub")
else:
    print(f"keras-hub {keras_hub.__version__}")

    def next_logits(prompt, cache, index):
        last = ops.take(prompt, index - 1, axis=1)
        return (
            ops.take(ops.convert_to_tensor(logits), last, axis=0),
            None,
            cache,
        )

    prompt = np.zeros((1, LENGTH + 1), "int32")
    prompt[:, 0] = START
    found = keras_hub.samplers.BeamSampler(num_beams=2)(
        next_logits,
        ops.convert_to_tensor(prompt),
        index=1,
        stop_token_ids=(END,),
    )
    print("theirs:", describe(ops.convert_to_numpy(found)[0, 1:]))
search = BeamSearch(num_beams=2, length_penalty=0.0)
found = generate(Model(), np.array([[3]], "int32"), LENGTH, search)
print("ours:  ", describe(found.tokens[0, 0]))
