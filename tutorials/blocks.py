# %% [markdown]
# # Encoder and decoder, block by block
#
# In this tutorial you build the encoder block and the decoder block of
# *Attention Is All You Need* (Vaswani et al. 2017,
# <https://arxiv.org/abs/1706.03762>) in NumPy, stack them to a Transformer, and
# train it to reverse sequences of digits:
#
# ![Attention weights of a trained model: encoder self-attention, masked decoder
# self-attention, and cross-attention on the antidiagonal](blocks-3.png)
#
# **You will learn** what the sublayers of a block compute, how many parameters
# the blocks have, how they form a Transformer, and when the learning rate needs
# a warmup.
#
# **Prerequisites**: [Multi-head attention](../multi_head/index.md), and
# positional encodings from [Positions](../positions/index.md). **Time**:
# about 2 minutes on one CPU core.
#
# **Published result**: Xiong et al. 2020 (<https://arxiv.org/abs/2002.04745>)
# train a post-norm Transformer on German-English translation (IWSLT 2014). It
# reaches about 34 BLEU with warmup and 8.45 without; pre-norm models need no
# warmup. Our three blocks of width 32 predict 99 % of the sequences correctly
# with it, 0 % without, and 100 % with pre-norm: only the order is comparable.

# %% [markdown]
# ## Setup
#
# In a checkout, `make .venv/made` installs everything. Elsewhere, including
# Colab and Kaggle, run `pip install "keras-attn[examples,jax]"`; `torch` and
# `tensorflow` are the other backends. Keras reads its backend from the
# environment when it is first imported.

# %%
import os

os.environ.setdefault("KERAS_BACKEND", "jax")  # or "torch", "tensorflow"
QUICK = os.environ.get("QUICK", "0") != "0"  # a few steps, to see that it runs

import io
import math

import keras
import matplotlib.pyplot as plt
import numpy as np

from keras_attn import datasets, explain, training
from keras_attn.blocks import DecoderBlock, EncoderBlock
from keras_attn.layers import FeedForward
from keras_attn.models import Transformer

keras.utils.set_random_seed(1)
random = np.random.default_rng(1)
to_numpy = keras.ops.convert_to_numpy
print(f"Keras {keras.__version__} on {keras.backend.backend()}")

# %% [markdown]
# ## Two stacks of blocks
#
# The encoder maps the source, S vectors of width D, to a memory of the same
# shape. The decoder reads T target vectors and the memory. Both are stacks of
# blocks of equal structure, six each in the paper. Data flow from the bottom to
# the top; the memory is the output of the last encoder block.

# %% tags=["hide-input"] alt="An encoder block with two sublayers and a decoder block with three; each sublayer is followed by add and norm, and a residual connection bypasses it; the memory enters the cross-attention"
figure, axis = plt.subplots(figsize=(7, 4.2), layout="constrained")
axis.set(xlim=(-1.6, 6.1), ylim=(-0.7, 6.9))
axis.axis("off")
box = {"boxstyle": "round,pad=0.4", "fc": "#cfe3f3", "ec": "black"}
line = {"color": "black", "lw": 1, "zorder": 0}
network = "feed-forward"
for x, outer, *names in (
    (0, -1.3, "self-attention", network),
    (4.5, 5.8, "masked self-attn.", "cross-attention", network),
):
    title = "decoder block" if x else "encoder block"
    axis.text(x, 6.5, title, ha="center", weight="bold")
    for y, name in zip(range(0, 6, 2), names, strict=False):
        axis.plot([x, x], [y - 0.3, y + 2.2], **line)
        path = [y + 0.2, y + 0.2, y + 1.6, y + 1.6]
        axis.plot([x, outer, outer, x], path, **line)
        for height, text in (0.8, name), (1.6, "add and norm"):
            axis.text(x, y + height, text, ha="center", va="center", bbox=box)
axis.plot([0, 0, 2.2, 2.2, 4], [4, 5.2, 5.2, 2.8, 2.8], **line)
axis.text(1.1, 5.3, "memory (S, D)", ha="center")
for x, text in (0, "source (S, D)"), (4.5, "target (T, D)"):
    axis.text(x, -0.6, text, ha="center")
plt.show()

# %% [markdown]
# To compare our functions with layers of the library, we read their weights.


# %%
def weights_of(layer):
    """Returns the weights of a layer as a dict, by path."""
    return {
        weight.path.removeprefix(f"{layer.name}/"): to_numpy(weight)
        for weight in layer.weights
    }


def part(w, name):
    """Returns the weights of a sublayer."""
    n = len(name) + 1
    return {path[n:]: w[path] for path in w if path.startswith(f"{name}/")}


# %% [markdown]
# ## Feed-forward network
#
# Attention mixes the tokens. The feed-forward network then transforms each
# token separately, with the same weights:
#
# ![Three tokens pass the same two matrices, each
# alone](../../diagrams/feed_forward.svg)
#
# $$\mathrm{FFN}(x) = \max(0,\, x W_1 + b_1)\, W_2 + b_2$$
#
# $W_1$ is a (D, F) matrix and $W_2$ an (F, D) matrix, with F =
# `intermediate_dim`. The paper writes $d_{model}$ = 512 for D and $d_{ff}$ =
# 2,048 for F. ELU (<https://arxiv.org/abs/1511.07289>) and GELU
# (<https://arxiv.org/abs/1606.08415>) are alternatives to the ReLU max(0, x).


# %%
ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "gelu": lambda x: x * (1 + np.vectorize(math.erf)(x / 2**0.5)) / 2,
}


def feed_forward(x, w, f=ACTIVATIONS["relu"]):
    """Returns (T, D) for tokens (T, D)."""
    hidden = f(x @ w["inner/kernel"] + w["inner/bias"])  # (T, F)
    return hidden @ w["outer/kernel"] + w["outer/bias"]


# %% [markdown]
# We compare it with the layer of the library. Then we change the token at
# position 3: only the output at position 3 changes.

# %%
T, D, F = 5, 16, 64
x = random.normal(size=(T, D)).astype("float32")
changed = x.copy()
changed[3] += 1
biases = {"bias_initializer": keras.initializers.RandomNormal(seed=1)}
for name, f in ACTIVATIONS.items():
    layer = FeedForward(F, activation=name, **biases)
    y = to_numpy(layer(x[None]))[0]
    by_hand = feed_forward(x, weights_of(layer), f)
    np.testing.assert_allclose(y, by_hand, atol=1e-5)
    difference = np.abs(to_numpy(layer(changed[None]))[0] - y).max(-1)
    assert (difference > 1e-4).tolist() == [False, False, False, True, False]
    print(f"{name:4}: changes by position {difference.round(2)}")

# %% [markdown]
# ## Residual connection and layer normalization
#
# A residual connection adds the input of a sublayer f to its output: x + f(x).
# Layer normalization (Ba et al. 2016, <https://arxiv.org/abs/1607.06450>)
# normalizes each token to mean 0 and variance 1 over its D features, then
# applies a learned scale $\gamma$ and shift $\beta$:
#
# $$\mathrm{LN}(x) = \gamma \odot \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} +
# \beta, \qquad \mu = \frac{1}{D} \sum_{i=0}^{D-1} x_i, \quad \sigma^2 =
# \frac{1}{D} \sum_{i=0}^{D-1} (x_i - \mu)^2$$
#
# The paper normalizes after the residual connection (*post-norm*). Most later
# models normalize the input of the sublayer (*pre-norm*):
#
# ![Post-norm: LN is on the stream. Pre-norm: LN is in the
# branch](../../diagrams/residual_stream.svg)
#
# $$\text{post-norm:}\quad y = \mathrm{LN}(x + f(x)) \qquad\qquad
# \text{pre-norm:}\quad y = x + f(\mathrm{LN}(x))$$


# %%
def layer_norm(x, gamma, beta, epsilon=1e-5):
    """Normalizes the features of each token."""
    centered = x - x.mean(-1, keepdims=True)
    variance = x.var(-1, keepdims=True)
    return gamma * centered / np.sqrt(variance + epsilon) + beta


def apply_sublayer(x, f, w, kind):
    """Applies a sublayer f with residual connection and normalization."""
    if kind == "post-norm":
        return layer_norm(x + f(x), **w)
    return x + f(layer_norm(x, **w))


layer = keras.layers.LayerNormalization(epsilon=1e-5)
normalized = to_numpy(layer(x))
np.testing.assert_allclose(normalized, layer_norm(x, 1, 0), atol=1e-5)
# The scale and the mean of a token have no effect.
y = layer_norm(100 * x + 50, 1, 0)
np.testing.assert_allclose(y, normalized, atol=1e-3)

# %% [markdown]
# ## Encoder block
#
# ![Self-attention and feed-forward, each with add and
# norm](../../diagrams/encoder_block.svg)
#
# `attend` is multi-head attention, as on [its page](../multi_head/index.md),
# with the tokens x of the queries and the tokens m of keys and values.


# %%
def attend(x, m, w, mask=None):
    """Multi-head attention from tokens x (T, D) to tokens m (S, D)."""

    def project(tokens, name):
        heads = np.einsum("td,dnh->nth", tokens, w[f"{name}/kernel"])
        return heads + w[f"{name}/bias"][:, None]

    q, k, v = project(x, "query"), project(m, "key"), project(m, "value")
    scores = q @ k.swapaxes(1, 2) / np.sqrt(q.shape[-1])  # (N, T, S)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    kernel, bias = w["attention_output/kernel"], w["attention_output/bias"]
    return np.einsum("nth,nhd->td", weights @ v, kernel) + bias


def encoder_block(x, w, kind):
    """Returns (S, D) for tokens (S, D)."""
    for f, name in (
        (lambda x: attend(x, x, part(w, "self_attention")), "attention"),
        (lambda x: feed_forward(x, part(w, "feed_forward")), "feed_forward"),
    ):
        x = apply_sublayer(x, f, part(w, f"around_{name}/norm"), kind)
    return x


# %% [markdown]
# ## Decoder block
#
# The first sublayer is *masked* self-attention: a causal mask hides later
# target tokens, which do not exist yet when the model generates. The second is
# *cross-attention* (encoder-decoder attention):
#
# ![Causal self-attention, cross-attention to the memory, and feed-forward, each
# with add and norm](../../diagrams/decoder_block.svg)
#
# The Transformer therefore uses multi-head attention in three ways:
#
# ![What queries, keys, values and masks of the three kinds of attention
# are](../../diagrams/attention_inputs.svg)
#
# The encoder organizes the source into keys and values, and the decoder
# searches them with its queries. Keys and values of the memory do not depend on
# the target, so generation computes them once per source.


# %%
def decoder_block(x, memory, w, kind):
    """Returns (T, D) for tokens (T, D) and a memory (S, D)."""
    causal = np.tri(len(x), dtype=bool)
    own, cross = part(w, "self_attention"), part(w, "cross_attention")
    for f, name in (
        (lambda x: attend(x, x, own, causal), "attention"),
        (lambda x: attend(x, memory, cross), "cross_attention"),
        (lambda x: feed_forward(x, part(w, "feed_forward")), "feed_forward"),
    ):
        x = apply_sublayer(x, f, part(w, f"around_{name}/norm"), kind)
    return x


# %% [markdown]
# Both blocks equal those of the library. Without the tokens from position 3,
# the outputs at positions 0 to 2 are the same.

# %%
KINDS, S = ("post-norm", "pre-norm"), 7
memory = random.normal(size=(S, D)).astype("float32")
for kind in KINDS:
    options = {"normalize_first": kind == "pre-norm", **biases}
    encoder = EncoderBlock(num_heads=4, intermediate_dim=F, **options)
    decoder = DecoderBlock(num_heads=4, intermediate_dim=F, **options)
    y, w = to_numpy(encoder(x[None]))[0], weights_of(encoder)
    np.testing.assert_allclose(y, encoder_block(x, w, kind), atol=1e-4)
    y, w = to_numpy(decoder(x[None], memory[None]))[0], weights_of(decoder)
    by_hand = decoder_block(x, memory, w, kind)
    np.testing.assert_allclose(y, by_hand, atol=1e-4)
without = decoder_block(x[:3], memory, w, kind)
np.testing.assert_allclose(without, by_hand[:3], atol=1e-5)

# %% [markdown]
# ## Parameters: the blocks do not share weights
#
# Each block of a stack has its own weights. We count the parameters of the two
# blocks of the paper's base model, D = 512 with 8 heads and F = 2,048.

# %%
D, F = 512, 2048
base = {"num_heads": 8, "intermediate_dim": F}
encoder, decoder = EncoderBlock(**base), DecoderBlock(**base)
encoder.build((None, None, D))
decoder.build((None, None, D), (None, None, D))
for title, block in ("encoder", encoder), ("decoder", decoder):
    print(f"{title} block: {block.count_params():,} parameters")
    for name in "self_attention", "cross_attention", "feed_forward":
        size = sum(x.size for x in part(weights_of(block), name).values())
        print(f"  {name:15} {size:9,}")
attention, network, norm = 4 * (D * D + D), 2 * D * F + F + D, 2 * D
assert encoder.count_params() == attention + network + 2 * norm
assert decoder.count_params() == 2 * attention + network + 3 * norm
blocks = 6 * (encoder.count_params() + decoder.count_params())
print(f"12 blocks: {blocks:,}; embedding table: {37_000 * D:,}")
assert blocks == 44_138_496

# %% [markdown]
# Twelve blocks have 44 million parameters, and one embedding table for about
# 37,000 tokens has 19 million. The paper reports 65 million. Two thirds of an
# encoder block are in its feed-forward network. If all blocks of a stack shared
# their weights, as in ALBERT (Lan et al. 2020,
# <https://arxiv.org/abs/1909.11942>), the two stacks would have 7 million.
#
# ## Transformer
#
# Only the lowest block of each stack receives embeddings, scaled by $\sqrt{D}$
# and added to the positional encoding PE; every other block receives the output
# of the block below it. The table E also computes the logits:
#
# $$m = \mathrm{Encoder}(\sqrt{D}\, E[x] + \mathrm{PE}), \qquad
# \mathrm{logits} = \mathrm{Decoder}(\sqrt{D}\, E[y] + \mathrm{PE},\; m)\,
# E^\top$$
#
# A pre-norm stack sums all sublayers and ends with another layer normalization.


# %%
def embed(ids, E):
    """Returns (T, D) for T token ids: embeddings plus sinusoids."""
    D = E.shape[1]
    angles = np.arange(len(ids))[:, None] / 10_000 ** (np.arange(0, D, 2) / D)
    PE = np.stack([np.sin(angles), np.cos(angles)], -1).reshape(len(ids), D)
    return np.sqrt(D) * E[ids] + PE


def transformer(source, target, w, num_layers, kind):
    """Returns logits (T, V) for ids (S,) and (T,)."""
    E = w["token_embedding/table/embeddings"]  # (V, D)
    memory, x = embed(source, E), embed(target, E)
    for i in range(num_layers):
        memory = encoder_block(memory, part(w, f"encoder_block_{i}"), kind)
    if kind == "pre-norm":
        memory = layer_norm(memory, **part(w, "encoder_norm"))
    for i in range(num_layers):
        x = decoder_block(x, memory, part(w, f"decoder_block_{i}"), kind)
    if kind == "pre-norm":
        x = layer_norm(x, **part(w, "decoder_norm"))
    return x @ E.T


# %% [markdown]
# The targets are the source digits in reverse order, after a start token, and
# the labels end with an end token. The vocabulary has V = 14 tokens.

# %%
BATCH, STEPS = 128, 3 if QUICK else 150
train = datasets.make_reversal_task(STEPS * BATCH, length=6, seed=1)
test = datasets.make_reversal_task(256, length=6, seed=1, split="test")
NAMES = ["pad", "start", "end", "mask", *"0123456789"]
V, (_, S), (_, T) = len(NAMES), test.source.shape, test.target.shape
for name, ids in zip(test._fields, test, strict=True):
    print(f"{name:7}", *(NAMES[i] for i in ids[0]))


# %%
def make_model(kind, seed, num_layers=3):
    """Returns an untrained model."""
    keras.utils.set_random_seed(seed)
    sizes = {"num_heads": 4, "hidden_dim": 32, "intermediate_dim": 128}
    pre = kind == "pre-norm"
    return Transformer(
        V, num_layers=num_layers, dropout=0.0, normalize_first=pre, **sizes
    )


for kind in KINDS:
    model = make_model(kind, seed=1)
    logits = model((test.source[:1], test.target[:1]))
    w = weights_of(model)
    by_hand = transformer(test.source[0], test.target[0], w, 3, kind)
    np.testing.assert_allclose(to_numpy(logits)[0], by_hand, atol=1e-3)
    print(f"{kind}: {model.count_params():,} parameters")
assert sum("embedding" in path for path in w) == 1
first, second = part(w, "encoder_block_0"), part(w, "encoder_block_1")
assert [x.shape for x in first.values()] == [x.shape for x in second.values()]
for name in "feed_forward/inner/kernel", "self_attention/query/kernel":
    assert np.abs(first[name] - second[name]).max() > 0.01  # not shared

# %% [markdown]
# There is one embedding table; blocks have equal shapes and different weights.
#
# ## Post-norm, pre-norm and warmup
#
# The learning rate of the paper is proportional to $\min(\mathrm{step}^{-1/2},
# \mathrm{step} \cdot \mathrm{warmup}^{-3/2})$: it rises linearly during the
# warmup, then falls. Without warmup, we use the highest rate for these steps,
# too. We train five variants for 150 steps, each with three seeds of the initial
# weights, on the same batches. A test sequence counts as correct if all its
# tokens are predicted correctly, each from the correct tokens before it.


# %%
class NoWarmup(training.WarmupSchedule):
    """A schedule whose first steps have the highest rate."""

    def __call__(self, step):
        """Returns the rate of a step."""
        step = keras.ops.cast(step, "int32")
        return super().__call__(keras.ops.maximum(step, self.warmup_steps - 1))


def train_model(kind, warmup, peak, seed, warmup_steps=50):
    """Returns a trained model, its losses, and the test accuracy."""
    model = make_model(kind, seed, num_layers)
    schedule = training.WarmupSchedule if warmup else NoWarmup
    rate = schedule(32, warmup_steps, scale=peak * (32 * warmup_steps) ** 0.5)
    adam = keras.optimizers.Adam(rate, beta_2=0.98, epsilon=1e-9)
    model.compile(adam, training.SequenceCrossentropy())
    progress = training.TrainingProgress(file=io.StringIO())
    options = {"batch_size": BATCH, "shuffle": False, "verbose": 0}
    model.fit(train[:2], train.labels, callbacks=[progress], **options)
    predicted = model.predict(test[:2], verbose=0).argmax(-1)
    return model, progress.losses, (predicted == test.labels).all(1).mean()


# %%
SEEDS, num_layers = ((1,), 1) if QUICK else ((1, 2, 3), 3)
VARIANTS = {
    "post-norm, warmup": ("post-norm", True, 0.008),
    "post-norm, no warmup": ("post-norm", False, 0.008),
    "post-norm, no warmup, rate / 4": ("post-norm", False, 0.002),
    "pre-norm, warmup": ("pre-norm", True, 0.008),
    "pre-norm, no warmup": ("pre-norm", False, 0.008),
}
models, losses, correct = {}, {}, {}
for name, variant in VARIANTS.items():
    runs = [train_model(*variant, seed) for seed in SEEDS]
    models[name], losses[name], correct[name] = zip(*runs, strict=True)
    last = [np.mean(run[-10:]) for run in losses[name]]
    print(f"{name:31} loss", *(f"{loss:.2f}" for loss in last), end="; ")
    print("correct", *(f"{share:.0%}" for share in correct[name]))
if not QUICK:
    for name in "pre-norm, warmup", "pre-norm, no warmup", "post-norm, warmup":
        assert min(correct[name]) > 0.6
    assert max(correct["post-norm, no warmup"]) < 0.1
    lower = correct["post-norm, no warmup, rate / 4"]
    assert min(lower) > max(correct["post-norm, no warmup"]) + 0.1

# %% tags=["hide-input"] alt="Loss over 150 steps, three seeds each: post-norm without warmup falls most slowly"
figure, axes = plt.subplots(1, 2, figsize=(8.5, 3), layout="constrained")
for axis, kind in zip(axes, KINDS, strict=True):
    named = [name for name in VARIANTS if name.startswith(kind)]
    for i, name in enumerate(named):
        for seed, run in zip(SEEDS, losses[name], strict=True):
            label = name.removeprefix(f"{kind}, ") if seed == 1 else None
            axis.plot(run, ("-", "--", ":")[i], color=f"C{i}", label=label)
    axis.axhline(6 / 7 * np.log(10), color="grey", lw=0.8)
    axis.set(title=kind, xlabel="step", ylim=(0, 4))
    axis.legend()
axes[0].set(ylabel="loss (nats per token)")
plt.show()

# %% [markdown]
# The gray line, $\tfrac{6}{7} \ln 10 = 1.97$ nats, is the loss of a model that
# knows where a target ends but nothing about its digits. With each of three
# seeds, post-norm with warmup predicts at least 99 % of the sequences correctly
# after 150 steps, and without warmup at most 1 %; more steps might suffice. A
# lower rate helps too: at a quarter of it, post-norm without warmup reaches 57
# to 99 %. Pre-norm predicts at least 98 % with and without warmup. We tested
# one depth, and three seeds cannot rank the variants that learn. Xiong et al.
# explain the difference by large gradients near the output of untrained
# post-norm models; Liu et al. 2020 (<https://arxiv.org/abs/2004.08249>) by
# outputs that react more strongly to small changes of the weights.
#
# ## Attention of a trained model
#
# We look at the pre-norm models with warmup. For each decoder block, we measure
# how often the cross-attention (mean over heads) is highest at the digit to be
# predicted: source position S - 2 - t for target position t.

# %%
expected = np.arange(S - 2, -1, -1)
found = []
for seed, model in zip(SEEDS, models["pre-norm, warmup"], strict=True):
    maps = explain.attention_maps(model, test[:2], layers="cross_attention")
    highest = [m.weights.mean(1)[:, : S - 1].argmax(-1) for m in maps]
    found.append([(position == expected).mean() for position in highest])
    print(f"seed {seed}:", *(f"{share:.0%}" for share in found[-1]), "by block")
if not QUICK:
    assert np.max(found, axis=1).min() > 0.8

model, block = models["pre-norm, warmup"][0], np.argmax(found[0])
example = tuple(ids[:1] for ids in test[:2])
maps = explain.attention_maps(model, example, layers=f"block_{block}/")
encoder, masked, cross = (m.weights[0].mean(0) for m in maps)
assert encoder.shape == (S, S) and cross.shape == (T, S)
assert masked.shape == (T, T) and (np.triu(masked, k=1) == 0).all()

# %% tags=["hide-input"] alt="Attention weights of a trained model: encoder self-attention, masked decoder self-attention, and cross-attention on the antidiagonal"
figure, axes = plt.subplots(1, 3, figsize=(9, 3.4), layout="constrained")
source, target = ([NAMES[i] for i in ids[0]] for ids in example)
for axis, name, weights, queries, keys in (
    (axes[0], "encoder self-attention", encoder, source, source),
    (axes[1], "masked self-attention", masked, target, target),
    (axes[2], "cross-attention", cross, target, source),
):
    image = axis.imshow(weights, cmap="cividis", vmin=0, vmax=1)
    axis.set_xticks(range(len(keys)), keys)
    axis.set_yticks(range(len(queries)), queries)
    axis.set(title=name, xlabel="key", ylabel="query")
figure.colorbar(image, ax=axes, label="weight", shrink=0.8)
plt.show()

# %% [markdown]
# Rows are queries, and each row attends to columns. The masked self-attention
# is a triangle. The cross-attention is on the antidiagonal: target positions
# attend to the digit that they predict. In the best block of each seed, this
# holds for at least 92 % of the digits, and in every block for at least 82 %.
# Nothing assigns this role to the blocks; it emerges from training.
#
# ## Summary
#
# - An encoder block has two sublayers and a decoder block three, each with a
#   residual connection and layer normalization.
# - Multi-head attention has three uses: encoder self-attention, masked decoder
#   self-attention, and cross-attention from the target to the memory.
# - Blocks have equal structure and separate weights; only the lowest block of a
#   stack receives embeddings.
# - In our training at a high learning rate, post-norm needs warmup, and pre-norm
#   does not.
#
# ## Exercises
#
# **1.** Fill in the gaps. (a) Embedding happens in the ___ encoder block. (b) A
# ___ connection surrounds each sublayer. (c) Encoder-decoder attention is
# multi-head ___-attention. (d) The first sublayer of a decoder block is ___
# multi-head self-attention. (e) The decoder focuses on relevant parts of the
# ___ sentence. (f) The number of logits per position is the size of the ___.
#
# <details markdown>
# <summary>Answer</summary>
#
# (a) bottom, (b) residual, (c) cross, (d) masked, (e) input, (f) vocabulary.
#
# </details>
#
# **2.** What is the input of the Transformer's encoder? What are q, k and v in
# a self-attention layer? How do the self-attention layers of encoder and
# decoder differ?
#
# <details markdown>
# <summary>Answer</summary>
#
# The input is the embeddings of all source tokens, scaled by $\sqrt{D}$, plus
# positional encodings: an (S, D) matrix. q, k and v are three linear
# projections of the same tokens, computed in each head: q is compared with all
# k, and the resulting weights average the v. In the encoder every position
# attends to all positions; in the decoder the causal mask hides later ones.
#
# </details>
#
# **3.** Pass 16 random tokens through six blocks without residual connections,
# which compute f(LN(x)), and measure the mean cosine between different tokens.
# Compare it with pre-norm.
#
# <details markdown>
# <summary>Answer</summary>
#
# 1.00, and about 0.6 with pre-norm. Attention averages the tokens, which become
# equal without residual connections (<https://arxiv.org/abs/2103.03404>).
#
# ```python
# for residual in 0, 1:
#     keras.utils.set_random_seed(1)
#     x = np.random.default_rng(1).normal(size=(16, 64))
#     for _ in range(6):
#         block = EncoderBlock(num_heads=4, intermediate_dim=256)
#         block.build((None, None, 64))
#         w, y = weights_of(block), layer_norm(x, 1, 0)
#         x = residual * x + attend(y, y, part(w, "self_attention"))
#         y = layer_norm(x, 1, 0)
#         x = residual * x + feed_forward(y, part(w, "feed_forward"))
#     unit = x / np.linalg.norm(x, axis=-1, keepdims=True)
#     print(((unit @ unit.T).sum() - 16) / (16 * 15))
# ```
#
# </details>
#
# **Next**: [A Transformer learns to translate](../translate/index.md).
