"""All hypotheses of a beam search. `theirs` requires KerasHub."""

import keras
import numpy as np

import keras_attn

try:
    import keras_hub
except ImportError:
    keras_hub = None

SIZE, ROOM, MORE = 20, 64, 4
prompt = np.array([[7, 8, 9]], "int32")


def describe(generate):
    try:
        shape = generate()
    except Exception as error:
        return type(error).__name__
    return f"{shape[1]} hypotheses for each of {shape[0]} prompt"


print(f"keras {keras.__version__} on {keras.backend.backend()}")
if keras_hub is None:
    print("theirs: not shown, for want of KerasHub: pip install keras-hub")
else:
    print(f"keras-hub {keras_hub.__version__}")
    backbone = keras_hub.models.GPT2Backbone(SIZE, 1, 2, 16, 32, 0.0, ROOM)
    theirs = keras_hub.models.GPT2CausalLM(backbone)
    theirs.compile(sampler=keras_hub.samplers.BeamSampler(3, True))
    ids = np.pad(prompt, [(0, 0), (0, MORE)])
    batch = {"token_ids": ids, "padding_mask": ids != 0}
    print(
        "theirs:",
        describe(lambda: theirs.generate(batch, None, None)["token_ids"].shape),
    )
ours = keras_attn.models.GPT(
    SIZE, num_layers=1, num_heads=2, hidden_dim=16, max_sequence_length=ROOM
)
search = keras_attn.decoding.BeamSearch(num_beams=3, num_return_sequences=3)
print(
    "ours:  ",
    describe(lambda: ours.generate(prompt, MORE, search).tokens.shape),
)
