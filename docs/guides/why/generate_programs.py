"""Programs for prompts of different shapes. `theirs` requires KerasHub.

Python code runs once per program, and on PyTorch once per captured graph.
"""

import keras
import numpy as np

import keras_attn

try:
    import keras_hub
except ImportError:
    keras_hub = None

SIZE, ROOM, MORE = 20, 64, 8
traces = []


class Ours(keras_attn.models.GPT):
    def start_decoding(self, inputs, max_new_tokens):
        traces.append("ours")
        return super().start_decoding(inputs, max_new_tokens)


def padded(rows):
    """Returns ids padded for the continuation, as KerasHub expects them."""
    ids = np.pad(rows, [(0, 0), (0, MORE)])
    return {"token_ids": ids, "padding_mask": ids != 0}


def programs(generate, shapes):
    traces.clear()
    for shape in shapes:
        generate(np.full(shape, 7, "int32"))
    return len(traces)


def describe(generate):
    lengths = programs(generate, [(1, n) for n in (5, 9, 13, 18, 24, 30)])
    batch_sizes = programs(generate, [(rows, 9) for rows in (2, 3, 4)])
    return (
        f"{lengths} for 6 lengths of a prompt, "
        f"{batch_sizes} for 3 numbers of rows"
    )


print(f"keras {keras.__version__} on {keras.backend.backend()}")
if keras_hub is None:
    print("theirs: not shown, for want of KerasHub: pip install keras-hub")
else:
    print(f"keras-hub {keras_hub.__version__}")
    backbone = keras_hub.models.GPT2Backbone(SIZE, 1, 2, 16, 32, 0.0, ROOM)
    theirs = keras_hub.models.GPT2CausalLM(backbone)
    theirs.compile(sampler="greedy")
    step = theirs.generate_step

    def generate_step(inputs, stop_token_ids=None):
        traces.append("theirs")
        return step(inputs, stop_token_ids)

    theirs.generate_step = generate_step
    found = describe(lambda rows: theirs.generate(padded(rows), None, None))
    if keras.backend.backend() == "torch":
        # On PyTorch, Python code runs in every call.
        found = "none: every call runs layer by layer"
    print("theirs:", found)
ours = Ours(
    SIZE, num_layers=1, num_heads=2, hidden_dim=16, max_sequence_length=ROOM
)
print("ours:  ", describe(lambda rows: ours.generate(rows, MORE)))
