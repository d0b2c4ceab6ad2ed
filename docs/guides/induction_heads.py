"""Finds the induction heads of a GPT with two blocks.

The model learns sequences of random words: a sequence has three words of its
own, each of random tokens, in random order. When a word comes again, the model
can predict its tokens only by looking at what came after the current token
before, as induction heads do (Olsson et al. 2022,
https://arxiv.org/abs/2209.11895). The figure is saved as induction_heads.png.
With QUICK=1, the model is hardly trained.

    python docs/guides/induction_heads.py
"""

import os

os.environ.setdefault("KERAS_BACKEND", "jax")  # or "torch", "tensorflow"
QUICK = os.environ.get("QUICK", "0") != "0"

import keras
import numpy as np
from matplotlib.figure import Figure

from keras_attn import explain, layers, models, training

V, T, D, STEPS = 32, 32, 64, 3 if QUICK else 1200
FIRST = 3  # the first ids are special
random = np.random.default_rng(1)


def sequence():
    """Returns T + 1 tokens: three words of 2 or 3, repeated at random."""
    different = FIRST + random.permutation(V - FIRST)
    words = np.split(different, np.cumsum(random.integers(2, 4, 3)))[:3]
    order = random.integers(0, 3, T)
    return np.concatenate([words[i] for i in order])[: T + 1]


def batch(rows):
    """Returns sequences, int32 (rows, T + 1)."""
    return np.stack([sequence() for _ in range(rows)]).astype("int32")


def shown(numbers):
    """Returns numbers with two digits."""
    return [f"{number:.2f}" for number in numbers]


# ---- Training
keras.utils.set_random_seed(1)
gpt = models.GPT(
    V,
    num_layers=2,
    num_heads=2,
    hidden_dim=D,
    intermediate_dim=D,
    dropout=0.0,
    attention_dropout=0.0,
    position_embedding=None,
    attention_position=layers.RotaryPosition(),
    max_sequence_length=T,
)
for variable in gpt.trainable_variables:
    if len(variable.shape) > 1:
        # The standard deviation of GPT-2, 0.02, is that for larger widths.
        variable.assign(4 * variable)
tokens = batch(64 * STEPS)
rate = keras.optimizers.schedules.CosineDecay(4e-3, STEPS)
gpt.compile(
    keras.optimizers.Adam(rate, global_clipnorm=1.0),
    training.SequenceCrossentropy(),
)
gpt.fit(tokens[:, :-1], tokens[:, 1:], batch_size=64, verbose=0)

# ---- The loss falls where tokens come again
tokens = batch(64)
inputs, labels = tokens[:, :-1], tokens[:, 1:]


def after(distance):
    """Returns where a key is `distance` after the query's token, (B, T, T)."""
    found = np.zeros((len(inputs), T, T), bool)
    keys = inputs[:, None, : T - distance]
    found[:, :, distance:] = inputs[:, :, None] == keys
    return found & np.tri(T, dtype=bool)


same = (labels[:, :, None] == inputs[:, None]) & np.tri(T, dtype=bool)
new, again = ~same.any(-1), (same & after(1)).any(-1)  # (B, T)
logits = explain.logit_lens(gpt, inputs)  # (3, B, T, V)
highest = logits.max(-1, keepdims=True)
log_p = logits - highest
log_p -= np.log(np.exp(log_p).sum(-1, keepdims=True))
loss = -np.take_along_axis(log_p, labels[None, ..., None], -1)[..., 0]
print(f"loss of new tokens: {loss[-1][new].mean():.2f} nats")
print(f"loss of pairs that come again: {loss[-1][again].mean():.2f} nats")

# ---- What each state predicts
for name, one in zip(
    ("embeddings", "block 0", "block 1"), logits.argmax(-1), strict=True
):
    correct = (one == labels)[again].mean()
    print(f"logit lens, {name}: {correct:.1%} correct")

# ---- Heads of block 0 look back, those of block 1 for the current token
block_0, block_1 = explain.attention_maps(gpt, inputs)
t = np.arange(T)
for head in block_0.heads:
    back = [
        block_0.weights[:, head, t[k:], t[: T - k]].mean() for k in (1, 2, 3)
    ]
    print(f"block 0, head {head}: weight 1, 2 and 3 tokens back:", *shown(back))
for head in block_1.heads:
    weights = block_1.weights[:, head]
    found = [(weights * after(k)).sum(-1)[again].mean() for k in (1, 2, 3)]
    print(f"block 1, head {head}: 1, 2 and 3 after the token:", *shown(found))

# ---- Which states carry a token that the second copy of a word needs
words = np.arange(FIRST, FIRST + 9).reshape(3, 3)
clean = np.concatenate([*words, words[1, :2]])[None].astype("int32")
corrupted = clean.copy()
corrupted[0, 4] = V - 1  # the second token of the word that comes again
answer = words[1, 2]
patched = explain.patch(gpt, clean, corrupted, lambda x: x[:, -1, answer])
for name, restored in zip(
    ("embeddings", "block 0", "block 1"), patched.restored, strict=True
):
    best = restored.argmax()
    print(f"patch, {name}: position {best} restores {restored[best]:.0%}")

labels = [str(token) for token in clean[0]]
figure = Figure(figsize=(13, 4.2), layout="constrained")
axes = figure.subplots(1, 3, width_ratios=[1, 1, 1.3])
maps = explain.attention_maps(gpt, clean, heads=1)
for panel, one in zip(axes, maps, strict=False):
    explain.plot_attention(one.weights, labels, labels, ax=panel, vmax=1)
    panel.set_title(f"{one.layer}, head 1")
explain.plot_patch(patched, labels, title="Patches", ax=axes[2])
figure.savefig("induction_heads.png", dpi=110)
