"""Cache slots that a decoding step reads. `theirs` requires KerasHub."""

import keras
import numpy as np

import keras_attn

try:
    import keras_hub
except ImportError:
    keras_hub = None

SIZE, PROMPT, MORE = 20, 8, 256
WHEN = 8, 100, 200
sizes = {"num_layers": 1, "num_heads": 2, "hidden_dim": 16}
prompt = np.full((1, PROMPT), 7, "int32")


class Ours(keras_attn.models.GPT):
    def decode_step(self, tokens, state):
        # Python code runs only for new shapes.
        self.slots = keras_attn.cache.slots(state.hypothesis)
        return super().decode_step(tokens, state)


def describe(slots):
    found = [f"{slots[when]} for token {when}" for when in WHEN]
    return "a step reads " + ", ".join(found)


print(f"keras {keras.__version__} on {keras.backend.backend()}")
if keras_hub is None:
    print("theirs: not shown, for want of KerasHub: pip install keras-hub")
else:
    print(f"keras-hub {keras_hub.__version__}")
    backbone = keras_hub.models.GPT2Backbone(
        SIZE, **sizes, intermediate_dim=64, max_sequence_length=PROMPT + MORE
    )
    theirs = keras_hub.models.GPT2CausalLM(backbone)
    theirs.compile(sampler="greedy")
    seen, call = set(), theirs.call_with_cache

    def call_with_cache(token_ids, cache, index):
        seen.add(cache.shape[3])
        return call(token_ids, cache, index)

    theirs.call_with_cache = call_with_cache
    ids = np.pad(prompt, [(0, 0), (0, MORE)])
    inputs = {"token_ids": ids, "padding_mask": ids != 0}
    theirs.generate(inputs, stop_token_ids=None)
    # Unpacking asserts that the size is the same at every token.
    (size,) = seen
    print("theirs:", describe(dict.fromkeys(WHEN, size)))
ours = Ours(SIZE, **sizes, end_id=None, max_sequence_length=PROMPT + MORE)
slots = {item.step: ours.slots for item in ours.stream(prompt, MORE)}
print("ours:  ", describe(slots))
