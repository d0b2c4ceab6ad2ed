"""Beam search from a prompt of three tokens, alone and with a shorter prompt.

`theirs` requires KerasHub. A table contains the probabilities of the next token
after the start token, id 1, and after ids 3 to 5; no text ends early.
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
table[3, [5, 4]] = 0.7, 0.3
table[4, [3, 5]] = 0.55, 0.45
table[5, [3, 4]] = 0.5, 0.5
table = table / table.sum(-1, keepdims=True)
logits = np.log(table).astype("float32")
LONG, SHORT = [START, 3, 4], [START]


class Model:
    """The decoding protocol, with the table instead of a network."""

    pad_id, start_id, end_id, variables = 0, START, END, ()

    def start_decoding(self, inputs, length):
        rows = ops.shape(inputs)[0]
        return DecodingState((), (), ops.full((rows, 1), START, dtype="int32"))

    def decode_step(self, tokens, state):
        return ops.take(ops.convert_to_tensor(logits), tokens, axis=0), state


def theirs(prompts):
    """Returns the probability of the best beam after the first prompt."""
    ids = np.zeros((len(prompts), LENGTH), "int32")
    for row, prompt in zip(ids, prompts, strict=True):
        row[: len(prompt)] = prompt

    def next_logits(prompt, cache, index):
        last = ops.take(prompt, index - 1, axis=1)
        scores = ops.take(ops.convert_to_tensor(logits), last, axis=0)
        return scores, None, cache

    sampler = keras_hub.samplers.BeamSampler(2, return_all_beams=True)
    _, scores = sampler(
        next_logits,
        ops.convert_to_tensor(ids),
        index=min(map(len, prompts)),
        mask=ops.convert_to_tensor(ids != 0),
    )
    return np.exp(ops.convert_to_numpy(scores)[0, 0])


def ours(prompts):
    """The same; here the prompt is part of the scored sequence."""
    prefix = [prompt[1:] for prompt in prompts]
    rows = np.full((len(prompts), 1), 3, "int32")
    search = BeamSearch(num_beams=2, length_penalty=0.0)
    found = generate(Model(), rows, LENGTH - 1, search, prefix=prefix)
    prompt_probability = np.prod(
        [table[a, b] for a, b in itertools.pairwise(LONG)]
    )
    return np.exp(found.scores[0, 0]) / prompt_probability


def describe(best):
    alone, batched = best([LONG]), best([LONG, SHORT])
    return f"p = {alone:.3f} alone, p = {batched:.3f} with a shorter prompt"


print(f"keras {keras.__version__} on {keras.backend.backend()}")
if keras_hub is None:
    print("theirs: not shown, for want of KerasHub: pip install keras-hub")
else:
    print(f"keras-hub {keras_hub.__version__}")
    print("theirs:", describe(theirs))
print("ours:  ", describe(ours))
