# %% [markdown]
# # Encoder and decoder, block by block
#
# A Transformer is the same block again and again: attention, a small network,
# and around each of them a sum and a norm. Why these, why in this order, and
# does it matter where the norm stands?
#
# ![Loss of four models that learn to say digits backwards](blocks-5.png)
#
# Four small Transformers learn to say digits backwards, further down. They
# differ in where the norms stand, and in whether the learning rate rises slowly
# at first.
#
# You will
#
# - write the **feed-forward network** with ReLU, GELU and a gate, and see that
#   it knows one token only;
# - measure what **sums** and **norms** do in a stack of 24 blocks, to tokens
#   and to gradients, with the norm behind the sum (**post**) and in front of
#   the sublayer (**pre**);
# - write the **encoder block** and the **decoder block** in NumPy, and find the
#   numbers of `keras_attn.layers`;
# - see what a decoder block **depends on**: of the target the past, of the
#   memory everything;
# - stack them to a **Transformer** in twenty lines, equal to
#   `keras_attn.models.Transformer`;
# - train it, pre and post, with and without **warmup**, and see where it looks
#   as it turns a row round.
#
# On two cores two minutes at most: the run of this page had to share one. All
# data is made up on the way; nothing is downloaded. As a program, on any
# backend:
#
#     KERAS_BACKEND=torch .venv/bin/python tutorials/blocks.py
#
# Attention itself is written from nothing in
# [Multi-head attention from nothing](../multi_head/index.md).

# %%
import json
import math
import time

import blocks_settings
import depth_gradients
import keras
import numpy as np
import program_settings
import reversed_digits
from grid_plots import draw_grids
from matplotlib.figure import Figure
from reversed_digits import PAD, VOCABULARY

from keras_attn.blocks import DecoderBlock, EncoderBlock
from keras_attn.layers import FeedForward, MultiHeadAttention
from keras_attn.models import Transformer
from keras_attn.training import SequenceCrossentropy, WarmupSchedule

try:
    run = blocks_settings.read()
except ValueError as error:
    program_settings.explain_and_leave("blocks", error)
QUICK = run.quick
# What is asserted of trained models is so with the settings of this page.
WHOLE = blocks_settings.is_default(run)
keras.utils.set_random_seed(run.seed)
generator = np.random.default_rng(run.seed)
to_numpy = keras.ops.convert_to_numpy
results = {"backend": keras.backend.backend()}
print(f"Keras {keras.__version__} on {keras.backend.backend()}")


def numpy_of(layer):
    """Returns the weights of a layer as float64, named as below it."""
    return {
        weight.path.removeprefix(f"{layer.name}/"): to_numpy(weight).astype(
            "float64"
        )
        for weight in layer.weights
    }


# %% [markdown]
# ## The feed-forward network
#
# Attention mixes tokens; what is found then has to be worked on. The same small
# network does that for every token by itself, with F features inside:
#
# $$\begin{aligned}
# \mathrm{FFN}(x) &= f(x W_1 + b_1)\, W_2 + b_2 \\
# \text{gated:}\quad \mathrm{FFN}(x) &= \big(f(x W_1 + b_1) \odot
# (x W_3 + b_3)\big)\, W_2 + b_2
# \end{aligned}$$
#
# (Vaswani et al. 2017, sec. 3.3, <https://arxiv.org/abs/1706.03762>; Shazeer
# 2020, <https://arxiv.org/abs/2002.05202>.) The function f was
# $\mathrm{ReLU}(x) = \max(0, x)$; GELU weighs x by the probability that a
# normal number is less, $x\, \Phi(x)$ (Hendrycks and Gimpel 2016,
# <https://arxiv.org/abs/1606.08415>), and SiLU by a sigmoid, $x\, \sigma(x)$.


# %%
def normal_share(x):
    """Returns the probability that a normal number is less than x."""
    return 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


FUNCTIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: x * normal_share(x),
    "silu": lambda x: x / (1 + np.exp(-x)),
}


def feed_forward(x, w, f=FUNCTIONS["relu"]):
    """Returns float (T, D) of tokens (T, D), from weights by name."""
    inside = f(x @ w["inner/kernel"] + w["inner/bias"])  # (T, F)
    if "gate/kernel" in w:
        inside = inside * (x @ w["gate/kernel"] + w["gate/bias"])
    return inside @ w["outer/kernel"] + w["outer/bias"]


T, D, F = 5, 8, 32
x = generator.normal(size=(T, D)).astype("float32")
noise = {
    # Zeros, the default, would hide a bias that was forgotten.
    "bias_initializer": keras.initializers.RandomNormal(stddev=0.5),
}
for name, gated in (
    ("relu", False),
    ("gelu", False),
    ("silu", True),
):
    layer = FeedForward(F, activation=name, gated=gated, **noise)
    found = to_numpy(layer(x[None]))[0]
    by_hand = feed_forward(x, numpy_of(layer), FUNCTIONS[name])
    assert found.shape == by_hand.shape == (T, D)
    assert layer.count_params() == (2 + gated) * D * F + (1 + gated) * F + D
    difference = np.abs(found - by_hand).max()
    assert difference < 1e-5
    results.setdefault("differences", {})[f"{name}, gated={gated}"] = float(
        difference
    )
    print(
        f"{name}, gated={gated}: {difference:.0e} apart, "
        f"{layer.count_params()} parameters"
    )
    # Each token by itself: change one, and one output moves.
    changed = x.copy()
    changed[3] += 1
    moved = np.abs(to_numpy(layer(changed[None]))[0] - found).max(-1) > 1e-5
    assert moved.tolist() == [False, False, False, True, False]

# %% alt="ReLU, GELU and SiLU as curves, and what a gate makes of SiLU"
line = np.linspace(-4, 4, 201)
figure = Figure(figsize=(8.5, 3.2), layout="constrained")
left, right = figure.subplots(1, 2)
for (name, f), look in zip(FUNCTIONS.items(), ("-", "--", ":"), strict=True):
    left.plot(line, f(line), look, label=name, linewidth=2)
left.set(xlabel="x", title="f(x)")
left.legend()
for gate, look in ((-1, ":"), (0.5, "--"), (1, "-")):
    right.plot(line, FUNCTIONS["silu"](line) * gate, look, label=f"gate {gate}")
right.set(xlabel="x", title="silu(x) times the gate")
right.legend()
figure

# %% [markdown]
# ReLU is deaf below zero; the other two let a little through, and have a
# gradient there. A gate is computed from the same token: with it the network
# can multiply two things that it knows, which sums alone cannot.
#
# ## Sum and norm
#
# Around each sublayer, attention or network, stands a sum: its output is added
# to what came in. And a layer norm (Ba et al. 2016,
# <https://arxiv.org/abs/1607.06450>) brings each token to mean 0 and variance
# 1, and lets training stretch and move it:
#
# $$\mathrm{LN}(x) = \gamma \odot \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}}
# + \beta, \qquad
# \mu = \frac1D \sum_i x_i, \quad
# \sigma^2 = \frac1D \sum_i (x_i - \mu)^2 .$$
#
# Behind the sum, as in the paper, or in front of the sublayer, so that nothing
# stands on the way from the bottom to the top (Xiong et al. 2020,
# <https://arxiv.org/abs/2002.04745>):
#
# $$\text{post:}\quad y = \mathrm{LN}(x + f(x)) \qquad\qquad
# \text{pre:}\quad y = x + f(\mathrm{LN}(x)) .$$


# %%
def norm(x, w, name, epsilon=1e-5):
    """Returns the layer norm of tokens (T, D)."""
    centred = x - x.mean(-1, keepdims=True)
    scaled = centred / np.sqrt(x.var(-1, keepdims=True) + epsilon)
    return scaled * w[f"{name}/gamma"] + w[f"{name}/beta"]


layer = keras.layers.LayerNormalization(
    epsilon=1e-5, beta_initializer="ones", gamma_initializer="random_normal"
)
large = 100 * x + 50
found = to_numpy(layer(large))
by_name = {f"norm/{name}": w for name, w in numpy_of(layer).items()}
np.testing.assert_allclose(found, norm(large, by_name, "norm"), atol=1e-5)
# Neither the size nor the level of a token gets through.
np.testing.assert_allclose(found, to_numpy(layer(x)), atol=1e-3)

# %% [markdown]
# ### A deep stack, before training
#
# 24 blocks, as they are before training, with the norm in either place, without
# any norm, and without the sum. Something is asked of the output: how much of
# the gradient arrives at each block? And what becomes of the tokens on the way
# up: how large are they, how alike, and how much is left of what came in?


# %%
def sublayers(kind, width, heads):
    """Returns a block of two sublayers (B, T, D) -> (B, T, D) as a model."""
    x = source = keras.Input((None, width))
    for sublayer in (
        MultiHeadAttention(heads, width // heads),
        FeedForward(4 * width),
    ):
        into = x
        if kind in ("pre", "norm, no sum"):
            into = keras.layers.LayerNormalization(epsilon=1e-5)(x)
        attends = isinstance(sublayer, MultiHeadAttention)
        out = sublayer(into, into) if attends else sublayer(into)
        if kind != "norm, no sum":
            out = keras.layers.Add()([x, out])
        if kind == "post":
            out = keras.layers.LayerNormalization(epsilon=1e-5)(out)
        x = out
    return keras.Model(source, x)


KINDS = ("post", "pre", "sum, no norm", "norm, no sum")
LOOKS = dict(zip(KINDS, ("C0o-", "C1s-", "C2^--", "C3x:"), strict=True))
ROWS, T, D = (2, 4, 8) if QUICK else (8, 16, 64)
inputs = generator.normal(size=(ROWS, T, D))
direction = generator.normal(size=inputs.shape)
depths = {}
for kind in ("pre",) if QUICK else KINDS:
    keras.utils.set_random_seed(run.seed)
    stack = [sublayers(kind, D, heads=4) for _ in range(run.depth)]
    depths[kind] = found = depth_gradients.measure(stack, inputs, direction)
    assert found.gradients.shape == (run.depth + 1,)
    # What is asked of the output itself arrives there as it is.
    asked = np.linalg.norm(direction, axis=-1).mean()
    np.testing.assert_allclose(found.gradients[-1], asked, rtol=1e-4)
    print(
        f"{kind:<13} gradient at the bottom "
        f"{found.gradients[0] / found.gradients[-1]:7.1e} of that at the top; "
        f"at the top: alike {found.alike[-1]:.2f}, kept {found.kept[-1]:.2f}, "
        f"size {found.sizes[-1]:.1e}"
    )
results["depths"] = {
    kind: {name: curve.tolist() for name, curve in found._asdict().items()}
    for kind, found in depths.items()
}

# %% alt="By depth: gradient, likeness of tokens, what is kept, and size"
figure = Figure(figsize=(9, 6.2), layout="constrained")
panels = figure.subplots(2, 2, sharex=True)
for kind, found in depths.items():
    for panel, curve in zip(
        panels.flat,
        (
            found.gradients / found.gradients[-1],
            found.sizes,
            found.alike,
            found.kept,
        ),
        strict=True,
    ):
        panel.plot(curve, LOOKS[kind], label=kind, markersize=3)
panels[0, 0].set(title="gradient that arrives here (top = 1)", yscale="log")
panels[0, 1].set(title="size of the features", yscale="log")
panels[1, 0].set(title="cosine of two tokens", xlabel="blocks below")
panels[1, 1].set(title="cosine with the same token at the bottom")
panels[1, 1].set(xlabel="blocks below")
panels[1, 0].legend()
figure

# %%
if WHOLE:
    arrives = {k: v.gradients[0] / v.gradients[-1] for k, v in depths.items()}
    assert 0.1 < min(arrives["post"], arrives["pre"])
    assert max(arrives["post"], arrives["pre"]) < 10
    assert arrives["sum, no norm"] > 1e6
    for kind in ("norm, no sum", "post"):
        assert depths[kind].alike[-1] > 0.95 and depths[kind].kept[-1] < 0.1
    assert depths["pre"].kept[-1] > 0.15 and depths["pre"].alike[-1] < 0.9
    np.testing.assert_allclose(depths["post"].sizes[1:], 1, rtol=1e-3)
    grows = depths["pre"].sizes[-1] / np.sqrt(1 + run.depth)
    assert 0.5 < grows < 2

# %% [markdown]
# - **No norm**: each block makes the features larger, and the gradient even
#   more so. What is right for the top is $10^{13}$ times too much for the
#   bottom: no learning rate suits both.
# - **No sum**: attention takes means, and means of means. After three blocks
#   all tokens are the same vector (Dong et al. 2021,
#   <https://arxiv.org/abs/2103.03404>), and nothing is left of what they were.
# - **Post**: sizes and gradients stay in bounds. But each norm shrinks what was
#   there to make room for what was added, so what came in fades, block after
#   block. At this depth an untrained stack cannot tell its tokens apart.
# - **Pre**: nothing on the way is ever shrunk. The sum grows like the root of
#   the depth, what came in stays in it (a share of $1 / \sqrt{25}$ is left
#   behind 24 blocks), and its gradient arrives.
#
# ## The encoder block
#
# Two sublayers, each with its sum and norm. `w` are the weights of a block of
# the library, by name; the attention is that of
# [the page on it](../multi_head/index.md).


# %%
def below(w, name):
    """Returns the weights of a sublayer, named as below it."""
    start = f"{name}/"
    return {
        k.removeprefix(start): v for k, v in w.items() if k.startswith(start)
    }


def attention(x, memory, w, sees=None):
    """Returns multi-head attention (T, D) of x (T, D) to memory (S, D)."""

    def heads(tokens, name):  # (T, D) -> (N, T, H)
        kernel, bias = w[f"{name}/kernel"], w[f"{name}/bias"]
        return np.einsum("td,dnh->nth", tokens, kernel) + bias[:, None]

    q, k, v = heads(x, "query"), heads(memory, "key"), heads(memory, "value")
    scores = q @ k.swapaxes(1, 2) / np.sqrt(q.shape[-1])  # (N, T, S)
    if sees is not None:
        scores = np.where(sees, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    kernel = w["attention_output/kernel"]  # (N, H, D)
    output = np.einsum("nth,nhd->td", weights @ v, kernel)
    return output + w["attention_output/bias"]


def around(x, sublayer, w, name, pre):
    """Returns x behind a sublayer with its sum and norm."""
    if pre:
        return x + sublayer(norm(x, w, f"{name}/norm"))
    return norm(x + sublayer(x), w, f"{name}/norm")


def encoder_block(x, w, pre, sees=None):
    """Returns float (T, D) of tokens (T, D)."""
    own = below(w, "self_attention")
    x = around(
        x, lambda y: attention(y, y, own, sees), w, "around_attention", pre
    )
    network = below(w, "feed_forward")
    return around(
        x, lambda y: feed_forward(y, network), w, "around_feed_forward", pre
    )


T, D, N = 6, 16, 4
x = generator.normal(size=(T, D)).astype("float32")
there = np.array([True] * 4 + [False] * 2)
for pre in (True,) if QUICK else (False, True):
    block = EncoderBlock(
        num_heads=N, intermediate_dim=32, normalize_first=pre, **noise
    )
    found = to_numpy(block(x[None], mask=there[None]))[0]
    by_hand = encoder_block(x, numpy_of(block), pre, there[None])
    assert found.shape == by_hand.shape == (T, D)
    # What is padding gets something by hand; nobody looks at it.
    difference = np.abs(found - by_hand)[there].max()
    assert difference < 1e-5
    kind = "pre" if pre else "post"
    results["differences"][f"encoder block, {kind}"] = float(difference)
    print(f"encoder block, {kind}: {difference:.0e} apart")
shares = {name: w.size for name, w in numpy_of(block).items()}
total = sum(shares.values())
for name in ("self_attention", "feed_forward", "norm"):
    # Names in full: `around_feed_forward/norm` is a norm alone.
    part = sum(w for path, w in shares.items() if name in path.split("/"))
    print(f"{name:<15} {part / total:4.0%} of {total:,} parameters")

# %% [markdown]
# ## The decoder block
#
# It writes, so it may not see what it has not written yet: its self-attention
# is causal. Then it looks at the **memory**, what the encoder has made of the
# source, with queries of its own and the memory's keys and values, and then the
# network. Three sublayers.


# %%
def decoder_block(x, memory, w, pre, sees=None):
    """Returns float (T, D) of tokens (T, D) and a memory (S, D)."""
    causal = np.tril(np.ones((len(x), len(x)), bool))
    own, cross = below(w, "self_attention"), below(w, "cross_attention")
    network = below(w, "feed_forward")
    for name, sublayer in (
        ("around_attention", lambda y: attention(y, y, own, causal)),
        ("around_cross_attention", lambda y: attention(y, memory, cross, sees)),
        ("around_feed_forward", lambda y: feed_forward(y, network)),
    ):
        x = around(x, sublayer, w, name, pre)
    return x


S = 7
memory = generator.normal(size=(S, D)).astype("float32")
for pre in (True,) if QUICK else (False, True):
    block = DecoderBlock(
        num_heads=N, intermediate_dim=32, normalize_first=pre, **noise
    )
    found = to_numpy(block(x[None], memory[None]))[0]
    by_hand = decoder_block(x, memory, numpy_of(block), pre)
    assert found.shape == by_hand.shape == (T, D)
    difference = np.abs(found - by_hand).max()
    assert difference < 1e-5
    kind = "pre" if pre else "post"
    results["differences"][f"decoder block, {kind}"] = float(difference)
    print(f"decoder block, {kind}: {difference:.0e} apart")

# %% [markdown]
# What does an output depend on? Change one token of the target, or one of the
# memory, and see what moves. And leave away what comes later: nothing may move.


# %%
def moved_by(tokens, look):
    """Returns bool (T, tokens): does output t change with that token?"""
    count = len(tokens)
    rows = np.repeat(tokens[None], count + 1, axis=0)
    # Not the same for all features: a norm would take that away again.
    rows[np.arange(count), np.arange(count)] += np.sin(np.arange(D))
    outputs = to_numpy(look(rows))
    return np.abs(outputs[:-1] - outputs[-1]).max(-1).T > 1e-6


def many(tokens, count):
    """Returns the same tokens in so many rows."""
    return np.repeat(tokens[None], count, axis=0)


encoder = EncoderBlock(num_heads=N, intermediate_dim=32)
depends = {
    "encoder block": moved_by(x, encoder),
    "decoder block, target": moved_by(
        x, lambda rows: block(rows, many(memory, len(rows)))
    ),
    "decoder block, memory": moved_by(
        memory, lambda rows: block(many(x, len(rows)), rows)
    ),
}
assert depends["encoder block"].all()
assert (depends["decoder block, target"] == np.tri(T, dtype=bool)).all()
assert depends["decoder block, memory"].shape == (T, S)
assert depends["decoder block, memory"].all()
for length in (3,) if QUICK else range(1, T):
    short = to_numpy(block(x[None, :length], memory[None]))[0]
    np.testing.assert_allclose(short, found[:length], atol=1e-5)
print("the first outputs are the same without the tokens behind them")

# %% alt="What outputs depend on: all tokens; the past; all of the memory"
draw_grids(depends, ylabel="output", xlabel="token that is changed")

# %% [markdown]
# ## A Transformer
#
# Ids become vectors, sines say where they stand, blocks are stacked, and the
# matrix that read the ids names the next one:
#
# $$\begin{aligned}
# m &= \mathrm{Encoder}(\sqrt D\, E[x] + PE) \\
# \mathrm{logits} &= \mathrm{Decoder}(\sqrt D\, E[y] + PE,\ m)\, E^\top .
# \end{aligned}$$
#
# With the norm in front, one more stands behind each stack: nothing else would
# ever bring the sums back to size.


# %%
def embedded(ids, w):
    """Returns float (T, D) of ids (T,)."""
    E = w["token_embedding/table/embeddings"]  # (V, D)
    width = E.shape[1]
    angle = np.arange(len(ids))[:, None] / 10000 ** (
        np.arange(0, width, 2) / width
    )
    PE = np.stack([np.sin(angle), np.cos(angle)], -1).reshape(len(ids), width)
    return np.sqrt(width) * E[ids] + PE


def transformer(source, target, w, layers, pre):
    """Returns logits (T, V) of ids (S,) and (T,), padding behind."""
    there = (source != PAD)[None]
    memory = embedded(source, w)
    for number in range(layers):
        block = below(w, f"encoder_block_{number}")
        memory = encoder_block(memory, block, pre, there)
    if pre:
        memory = norm(memory, w, "encoder_norm")
    x = embedded(target, w)
    for number in range(layers):
        block = below(w, f"decoder_block_{number}")
        x = decoder_block(x, memory, block, pre, there)
    if pre:
        x = norm(x, w, "decoder_norm")
    return x @ w["token_embedding/table/embeddings"].T


def build(pre):
    """Returns a model, untrained."""
    keras.utils.set_random_seed(run.seed)
    return Transformer(
        VOCABULARY,
        num_layers=run.layers,
        num_heads=run.heads,
        hidden_dim=run.width,
        intermediate_dim=2 * run.width,
        dropout=0.0,
        normalize_first=pre,
    )


# %% [markdown]
# Rows of digits, and what is to be said of them:

# %%
BATCH = 64
train = reversed_digits.draw(run.steps * BATCH, run.digits, seed=run.seed)
test = reversed_digits.draw(16 if QUICK else 512, run.digits, run.seed + 1)
S = T = run.digits + 1
assert train.sources.shape == train.reads.shape == (run.steps * BATCH, S)
assert test.says.shape == test.reads.shape == (len(test.sources), T)
for source, says in list(zip(test.sources, test.says, strict=True))[:3]:
    print(reversed_digits.text(source), "->", reversed_digits.text(says))

# %%
for pre in (True,) if QUICK else (False, True):
    model = build(pre)
    weights = numpy_of(model)
    logits = to_numpy(model((test.sources[:4], test.reads[:4])))
    assert logits.shape == (4, T, VOCABULARY)
    for row in range(1 if QUICK else 4):
        read = (test.reads[row] != PAD).sum()
        by_hand = transformer(
            test.sources[row], test.reads[row, :read], weights, run.layers, pre
        )
        assert by_hand.shape == (read, VOCABULARY)
        difference = np.abs(logits[row, :read] - by_hand).max()
        assert difference < 1e-4
    print(
        f"Transformer, {'pre' if pre else 'post'}: {difference:.0e} apart, "
        f"{model.count_params():,} parameters"
    )
    results["differences"][f"Transformer, {'pre' if pre else 'post'}"] = float(
        difference
    )

# %% [markdown]
# Does it hold for the whole? Trimmed targets, and more padding behind the
# source:

# %%
whole = to_numpy(model((test.sources[:2], test.reads[:2])))
for length in (2,) if QUICK else (1, 3, 5):
    short = to_numpy(model((test.sources[:2], test.reads[:2, :length])))
    assert short.shape == (2, length, VOCABULARY)
    np.testing.assert_allclose(short, whole[:, :length], atol=1e-4)
wider = np.pad(test.sources[:2], ((0, 0), (0, 4)))
again = to_numpy(model((wider, test.reads[:2])))
tokens = test.reads[:2] != PAD
padding = np.abs(again - whole)[tokens].max()
assert padding < 1e-4
print(f"trimmed: the same; four more slots of padding: {padding:.0e}")

# %% [markdown]
# ## Post, pre, and warmup
#
# The paper lets the learning rate rise for some steps and then fall:
#
# $$\mathrm{rate}(s) \propto \min(s^{-1/2},\ s \cdot s_w^{-3/2}) .$$
#
# The other schedule is the same without the rise: it begins at the peak. Both
# models learn with both, from the same rows in the same order.


# %%
class WithoutRise(keras.optimizers.schedules.LearningRateSchedule):
    """Another schedule, begun at its peak and held there until it falls."""

    def __init__(self, schedule):
        super().__init__()
        self.schedule = schedule

    def __call__(self, step):
        """Returns the rate of the update after `step` updates."""
        step = keras.ops.cast(step, "int32")
        return self.schedule(keras.ops.maximum(step, run.warmup - 1))


rising = WarmupSchedule(
    run.width,
    run.warmup,
    scale=run.rate * (run.width * run.warmup) ** 0.5,  # its peak is the rate
)
SCHEDULES = {"warmup": rising, "no warmup": WithoutRise(rising)}

# %% alt="The two learning rates over the steps: one rises first"
steps = np.unique(np.linspace(0, run.steps - 1, 60).astype(int))
figure = Figure(figsize=(6, 2.6), layout="constrained")
panel = figure.subplots()
for (name, schedule), look in zip(SCHEDULES.items(), ("-", "--"), strict=True):
    panel.plot(steps, [float(schedule(s)) for s in steps], look, label=name)
panel.set(xlabel="step", ylabel="learning rate", ylim=(0, None))
panel.legend()
figure


# %%
class Curve(keras.callbacks.Callback):
    """Keeps the loss of every step."""

    def on_train_begin(self, logs=None):
        """Begins an empty curve."""
        self.sums = [0.0]

    def on_train_batch_end(self, batch, logs=None):
        """Notes what the mean of the losses so far says of the last one."""
        self.sums.append((batch + 1) * float(logs["loss"]))

    @property
    def losses(self):
        """The loss of each step, float (steps,)."""
        return np.diff(self.sums)


def rows_right(model):
    """Returns which test rows are said without a mistake, bool (B,)."""
    logits = model.predict((test.sources, test.reads), verbose=0)
    # A row is right when each digit is the likeliest behind those before it.
    return ((logits.argmax(-1) == test.says) | (test.says == PAD)).all(1)


models, curves, right = {}, {}, {}
for norms in ("pre",) if QUICK else ("post", "pre"):
    for name, schedule in list(SCHEDULES.items())[: 1 if QUICK else 2]:
        arm = f"{norms}, {name}"
        models[arm] = model = build(norms == "pre")
        model.compile(
            keras.optimizers.Adam(schedule, beta_2=0.98, epsilon=1e-9),
            SequenceCrossentropy(),
        )
        curve, started = Curve(), time.perf_counter()
        model.fit(
            (train.sources, train.reads),
            train.says,
            batch_size=BATCH,
            shuffle=False,
            callbacks=[curve],
            verbose=0,
        )
        curves[arm], right[arm] = curve.losses, float(rows_right(model).mean())
        print(
            f"{arm:<15} loss {curves[arm][-20:].mean():.3f}, {right[arm]:6.1%} "
            f"of the rows right, {time.perf_counter() - started:5.1f} s"
        )
results["right"], results["losses"] = (
    right,
    {arm: losses.tolist() for arm, losses in curves.items()},
)

# %% alt="Loss of four models over the steps, by norm and learning rate"
figure = Figure(figsize=(7, 3.8), layout="constrained")
panel = figure.subplots()
width = max(1, run.steps // 60)
for (arm, losses), look in zip(
    curves.items(), ("C0-", "C0:", "C1-", "C1:"), strict=False
):
    smooth = np.convolve(losses, np.ones(width) / width, "valid")
    panel.plot(np.arange(len(smooth)) + width, smooth, look, label=arm)
panel.axhline(np.log(10), color="grey", linewidth=0.8)
panel.text(
    run.steps, np.log(10) + 0.04, "guessing a digit", fontsize=8, ha="right"
)
panel.set(xlabel="step", ylabel="loss (nats a token)", ylim=(0, 3))
panel.legend()
figure

# %% [markdown]
# With the norm in front, both learn. With the norm behind, the paper's, a rate
# that is large from the first step on throws the model to where it learns
# little more than where rows may end, and it does not come back. What a large
# first step does there is worked out by Xiong et al.: in post-norm stacks the
# gradients of the upper blocks are large, and do not get smaller with the
# depth; in pre-norm stacks they fall like its root. That is what the slow rise
# is for, and why later models have the norm in front.
#
# ### Where it looks
#
# The best of them says a row that it was not trained on, one digit after the
# other. Where did it look in the source, on average over the heads of a block?

# %%
best = min(curves, key=lambda arm: curves[arm][-20:].mean())
shown = int((test.sources != PAD).sum(1).argmax())
decoded = models[best].generate(
    test.sources[shown : shown + 1], max_new_tokens=T, return_weights=True
)
said = decoded.tokens[0, 0]
print(f"{best}: {reversed_digits.text(test.sources[shown])}", end=" -> ")
print(reversed_digits.text(said))
looks = to_numpy(decoded.weights)[0, 0]  # (blocks, N, T, S)
assert looks.shape == (run.layers, run.heads, T, S)
if WHOLE:
    assert (said == test.says[shown]).all()

# %% alt="Cross-attention of each block as a row is said backwards"
SIGNS = np.array(["", "start", "end", *map(str, range(10))])
draw_grids(
    {f"block {number}": look.mean(0) for number, look in enumerate(looks)},
    rows=SIGNS[said].tolist(),
    columns=SIGNS[test.sources[shown]].tolist(),
    ylabel="what is said",
    xlabel="source",
)

# %% [markdown]
# From the second block on nearly every digit looks most at the one that it
# repeats, from the last to the first. Nobody said so: it is what makes the loss
# small.
#
# ## What should hold

# %%
assert max(results["differences"].values()) < 1e-4
if WHOLE:
    assert min(right["pre, warmup"], right["pre, no warmup"]) > 0.75
    assert right["post, warmup"] > 0.5
    assert right["post, no warmup"] < 0.3
print(f"by hand and library: {max(results['differences'].values()):.0e}")

# %%
results["settings"] = {k: str(v) for k, v in run._asdict().items()}
run.out.mkdir(parents=True, exist_ok=True)
(run.out / "results.json").write_text(
    json.dumps(results, indent=1), encoding="utf-8"
)
program = ".venv/bin/python tutorials/blocks.py"
print(f"""
All figures are in {run.out / "results.json"}.

What to try next, with {program} behind it:
  RATE=1e-3        a smaller learning rate: who needs the warmup now?
  LAYERS=1         fewer blocks: does it matter where the norm stands?
  DIGITS=12        longer rows, with STEPS=1500
  DEPTH=48         a deeper stack, for the gradients only""")

# %% [markdown]
# ## Exercises
#
# **1.** Fill in. An encoder block with D = 512, N = 8 and F = 2,048 has ___
# parameters in its attention, ___ in its network and ___ in its norms. A
# decoder block has ___ more.
#
# <details markdown>
# <summary>Answer</summary>
#
# $4 D^2 + 4 D$ = 1,050,624; $2 D F + F + D$ = 2,099,712; $2 \cdot 2 D$ =
# 2,048. One more attention and one more norm: 1,050,624 + 1,024 = 1,051,648.
#
# </details>
#
# **2.** Fill in the gaps: a pre-norm decoder block without a memory, for a
# language model.
#
#     def language_block(x, w):
#         x = x + attention(____, ____, below(w, "self_attention"), ____)
#         return x + ____(norm(x, w, "around_feed_forward/norm"), ____)
#
# <details markdown>
# <summary>Answer</summary>
#
# `n = norm(x, w, "around_attention/norm")` twice, as queries and as keys;
# `np.tril(np.ones((len(x), len(x)), bool))`; `feed_forward`;
# `below(w, "feed_forward")`. It is `DecoderBlock(..., normalize_first=True)`
# called without a memory, and [GPT](../gpt/index.md) is a stack of it.
#
# </details>
#
# **3.** With pre-norm the features grow from block to block, and a block's
# share in the sum falls. If each of L blocks adds something of variance 1 that
# has nothing to do with the others, how large is the sum, and how much does the
# last block change it? Where on this page does one see that?
#
# <details markdown>
# <summary>Answer</summary>
#
# Variance L + 1, so size $\sqrt{L + 1}$; the last block adds 1 to that, a share
# of $1 / \sqrt{L + 1}$ of the size. In the picture of the deep stack the size
# of *pre* rises like that, to 4.6 where the root is 5. The norm behind the
# stack divides by it, and the gradients of the blocks with it.
#
# </details>
