"""Sampling with drafts of the same model. `theirs` requires KerasHub.

Target and draft have the distribution (0.5, 0.5), whatever the tokens before.
"""

import keras
import numpy as np
from keras import ops

from keras_attn.decoding import PromptLookup, Sampling, SpeculativeDecoding
from keras_attn.models import GPT

try:
    import keras_hub
except ImportError:
    keras_hub = None

DRAWS = 600


def describe(tokens):
    zeros = int((np.asarray(tokens) == 0).sum())
    share = zeros / DRAWS
    near = "about half" if abs(share - 0.5) < 0.1 else f"{zeros}"
    return f"token 0 in {near} of {DRAWS} draws"


print(f"keras {keras.__version__} on {keras.backend.backend()}")
if keras_hub is None:
    print("theirs: not shown, for want of KerasHub: pip install keras-hub")
else:
    print(f"keras-hub {keras_hub.__version__}")

    def following(prompt, cache, index):
        return ops.zeros((DRAWS, 2)), None, cache

    def verified(prompt, cache, index, k):
        return ops.zeros((DRAWS, k + 1, 2)), cache

    sampler = keras_hub.samplers.SpeculativeSampler(
        num_speculative_tokens=1,
        seed=0,
        base_sampler=keras_hub.samplers.RandomSampler(seed=0),
    )
    prompt = ops.ones((DRAWS, 2), "int32")
    found = sampler(
        following,
        prompt,
        index=1,
        draft_next=following,
        verify_next=verified,
    )
    print("theirs:", describe(ops.convert_to_numpy(found)[:, 1]))

options = {"num_heads": 1, "hidden_dim": 4, "max_sequence_length": 4}
options |= {"pad_id": None, "start_id": None, "end_id": None}
models = [GPT(2, num_layers=layers, **options) for layers in (1, 1)]
for model in models:
    for weight in model.trainable_variables:
        weight.assign(ops.zeros_like(weight))
target, draft = models
sampling = Sampling(seed=0, num_return_sequences=DRAWS)
for name, strategy in (
    ("draft model", SpeculativeDecoding(draft, 1, sampling)),
    ("lookup", PromptLookup(1, 1, sampling)),
):
    found = target.generate([[0, 1, 0]], 2, strategy)
    print(f"ours:   {describe(found.tokens[0, :, 0])}, {name}")
