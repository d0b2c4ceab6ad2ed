# %% [markdown]
# # Masks
#
# In this tutorial you write the masks of attention in NumPy, and test that
# padding does not change what a layer computes:
#
# ![Eight masks, each a table of queries and keys: padding, causal, window,
# packed sentences, and combinations of them](masks-2.png)
#
# **You will learn** how one rule describes all masks, how sentences are padded
# and packed, why padding must not change an output and how to test it, and how a
# mask gets lost.
#
# **Prerequisites**: dot-product attention, from [Attention from its first
# forms](../first_forms/index.md). **Time**: about 1 minute on one CPU core.
#
# **Published result**: Krell et al. 2021 (<https://arxiv.org/abs/2107.02027>)
# pack sentences for the pre-training of BERT, with masks and positions that make
# the packed model mathematically equivalent to the original. We test the same
# for one attention layer and four sentences, and measure no speed.

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

import keras
import matplotlib.pyplot as plt
import numpy as np

from keras_attn import layers, ops
from keras_attn.explain import doctor

keras.utils.set_random_seed(1)
random = np.random.default_rng(1)
to_numpy, to_tensor = keras.ops.convert_to_numpy, keras.ops.convert_to_tensor
print(f"Keras {keras.__version__} on {keras.backend.backend()}")

# %% [markdown]
# ## The causal mask
#
# A mask is a table with a row for each query and a column for each key. A causal
# mask is a lower triangle, because each position attends to itself and to
# earlier positions. A key that is not allowed gets the score $-\infty$ before
# the softmax, so its weight is 0:
#
# $$z_{ts} = \begin{cases} q_t \cdot k_s / \sqrt H & \text{if allowed} \\
# -\infty & \text{otherwise} \end{cases} \qquad w_{ts} =
# \frac{e^{z_{ts}}}{\sum_j e^{z_{tj}}}$$
#
# ![Five queries and five keys: the allowed cells are a lower triangle, and
# equal scores make the weights 1, 1/2, 1/3, 1/4 and
# 1/5](../../diagrams/causal_mask.svg)
#
# In every mask of this library, True means that attention is allowed. In
# PyTorch's `key_padding_mask`, True means the opposite.


# %%
def softmax(z):
    """Returns the weights over the last axis."""
    powers = np.exp(z - z.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def attention(q, k, v, mask):
    """Returns outputs (T, H) and weights (T, S), for a mask (T, S)."""
    z = q @ k.T / np.sqrt(q.shape[-1])
    weights = softmax(np.where(mask, z, -np.inf))
    return weights @ v, weights


sentence = "we saw an old red barn".split()
T, H = len(sentence), 8
q, k, v = random.normal(size=(3, T, H))
causal = np.tri(T, dtype=bool)
output, weights = attention(q, k, v, causal)
assert (weights[~causal] == 0).all()

as_heads = [to_tensor(x[None, :, None].astype("float32")) for x in (q, k, v)]
found = ops.attend(*as_heads, ops.Visibility(causal=True))
np.testing.assert_allclose(to_numpy(found)[0, :, 0], output, atol=1e-5)

# %% tags=["hide-input"] alt="A causal mask and its weights: two lower triangles, with words as rows and columns; the first row has one weight of 1"
figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
tables = {"mask": causal, "weights of random q and k": weights}
for axis, (title, table) in zip(axes, tables.items(), strict=True):
    axis.imshow(1.0 - table, cmap="cividis", vmin=0, vmax=1)
    for (t, s), value in np.ndenumerate(table):
        color = "white" if value > 0.5 else "black"
        axis.text(s, t, f"{value:.2g}", ha="center", color=color, size=8)
    axis.set(title=title, xlabel="key", ylabel="query")
    axis.set_xticks(range(T), sentence, rotation=45)
    axis.set_yticks(range(T), sentence)
plt.show()

# %% [markdown]
# ## Padding and packing
#
# A batch is rectangular, but sentences differ in length. They are padded on the
# right or on the left, or several are packed into one row. Two integers for
# each slot are enough to describe all three layouts: the segment $g_t$, which
# is the number of its sentence (0 for padding), and the position in the
# sentence,
#
# $$\mathrm{pos}_t = \begin{cases} \text{number of earlier tokens of the segment}
# & \text{slot } t \text{ has a token} \\ -1 & \text{it is padding.} \end{cases}$$
#
# `ops.packed_positions` computes it from segments and a token mask.
#
# ![Two sentences in a batch, one with two padding tokens, whose columns and
# rows are masked](../../diagrams/padding_mask.svg)

# %%
lines = ["the cat sat", "dogs bark", "we saw an old red barn", "so it goes"]
words = ["", *sorted({word for line in lines for word in line.split()})]
sentences = [[words.index(word) for word in line.split()] for line in lines]
right = [[1] * 3 + [0] * 3, [2] * 2 + [0] * 4, [3] * 6, [4] * 3 + [0] * 3]
left = [segments[::-1] for segments in right]
packed = [[1] * 3 + [2] * 2 + [0] * 4, [3] * 6 + [4] * 3]
layouts = {"right": right, "left": left, "packed": packed}
layouts = {name: np.array(rows, "int32") for name, rows in layouts.items()}


def positions_of(segments):
    """Returns the positions (B, T) of segments (B, T), -1 for padding."""
    same = segments[:, :, None] == segments[:, None]
    earlier = np.tri(segments.shape[1], k=-1, dtype=bool)
    return np.where(segments > 0, (same & earlier).sum(-1), -1)


batches = {}
for name, segments in layouts.items():
    batches[name] = np.zeros_like(segments)
    for number, ids in enumerate(sentences, start=1):
        batches[name][segments == number] = ids
    found = ops.packed_positions(to_tensor(segments), to_tensor(segments > 0))
    assert (to_numpy(found) == positions_of(segments)).all()
    print(f"{name}:\n{positions_of(segments)}")

# %% [markdown]
# ## One rule for all masks
#
# Query t may attend to key s if all of these conditions hold. Every model needs
# the first; the others are optional.
#
# $$\begin{aligned}
# & \mathrm{pos}_t, \mathrm{pos}_s \ge 0 & & \text{both are tokens} \\
# & \mathrm{pos}_t \ge \mathrm{pos}_s & & \text{causal} \\
# & |\mathrm{pos}_t - \mathrm{pos}_s| < \mathrm{window} & & \text{window} \\
# & g_t = g_s & & \text{packed: same sentence} \\
# & A_{ts} & & \text{any other attention mask}
# \end{aligned}$$
#
# ![Segments and positions of a packed row with padding, and the causal mask
# that follows from them](../../diagrams/visibility.svg)
#
# <!-- figure: mask_builder -->
#
# `ops.Visibility` stores these integers and options, a few numbers per token. A
# kernel expands them to T x S only where it needs the table. In the next
# picture, allowed pairs are dark.


# %%
def mask_of(segments, causal=False, window=None):
    """Returns the mask (T, T) of one row of segments (T,)."""
    g, pos = segments, positions_of(segments[None])[0]
    mask = (pos[:, None] >= 0) & (pos >= 0) & (g[:, None] == g)
    if causal:
        mask &= pos[:, None] >= pos
    if window is not None:
        mask &= np.abs(pos[:, None] - pos) < window
    return mask


one = np.ones(9, "int32")
packed, padded = np.repeat([[1, 2], [1, 0]], [3, 6], axis=1).astype("int32")
causal, window = {"causal": True}, {"window": 3}
cases = {
    "padding on the right": (padded, {}),
    "padding on the left": (padded[::-1].copy(), {}),
    "causal": (one, causal),
    "window 3": (one, window),
    "packed": (packed, {}),
    "packed, causal": (packed, causal),
    "causal, window 3": (one, causal | window),
    "packed, causal, window 3": (packed, causal | window),
}
masks = {}
for name, (g, options) in cases.items():
    masks[name] = mask_of(g, **options)
    g = to_tensor(g[None])
    pos = ops.packed_positions(g, g > 0)
    visibility = ops.Visibility(pos, pos, None, None, g, g, **options)
    assert (to_numpy(visibility.to_mask(9, 9))[0, 0] == masks[name]).all()

# %% tags=["hide-input"] alt="Eight masks, each a table of queries and keys: padding, causal, window, packed sentences, and combinations of them"
figure, axes = plt.subplots(2, 4, figsize=(9, 4.8), layout="constrained")
for axis, (name, mask) in zip(axes.flat, masks.items(), strict=True):
    axis.imshow(~mask, cmap="cividis", vmin=0, vmax=1)
    axis.set(xticks=[], yticks=[], xlabel="key", ylabel="query")
    axis.set_title(name, size=10)
plt.show()

# %% [markdown]
# ## Padding does not change the output
#
# The vectors of a sentence must not depend on the batch it is in. We encode each
# sentence alone and in the three layouts, and compare the vectors of its tokens.
# Then we repeat it with a mistake: padded rows lose their mask, and packed rows
# their segments. `TokenEmbedding` attaches a mask to its output that is False at
# id 0; a copy without this attribute has lost it. `PositionalEmbedding` adds a
# vector that depends on the position ([the next page](../positions/index.md)
# computes it). The attention layer has one head: the equation above, after
# linear projections of x to q, k and v. [Multi-head
# attention](../multi_head/index.md) builds several heads.

# %%
D = 32
embedding = layers.TokenEmbedding(len(words), D)
add_positions = layers.PositionalEmbedding()
attend = layers.MultiHeadAttention(num_heads=1, key_dim=D)


def encode(ids, segments=None, keep_mask=True):
    """Returns vectors (B, T, D) of ids (B, T)."""
    x, positions = embedding(to_tensor(ids)), None
    if not keep_mask:
        x = to_tensor(to_numpy(x))  # a mistake
    if segments is not None:
        segments = to_tensor(segments)
        positions = ops.packed_positions(segments, to_tensor(ids != 0))
    x = add_positions(x, positions=positions)
    return to_numpy(
        attend(x, x, query_segment_ids=segments, key_segment_ids=segments)
    )


alone = [encode(np.array([ids], "int32"))[0] for ids in sentences]
for name, correct, mistake in (
    ("right", {}, {"keep_mask": False}),
    ("left", {}, {"keep_mask": False}),
    ("packed", {"segments": layouts["packed"]}, {}),
):
    changes = []
    for options in (correct, mistake):
        vectors = encode(batches[name], **options)
        found = [vectors[layouts[name] == n] for n in (1, 2, 3, 4)]
        pairs = zip(found, alone, strict=True)
        changes.append(max(np.abs(a - b).max() for a, b in pairs))
    assert changes[0] < 1e-4 and changes[1] > 1e-2
    print(f"{name:6} correct: {changes[0]:.0e}, mistake: {changes[1]:.2f}")

# %% [markdown]
# A lost mask raises no error. The vectors of a sentence then depend on how much
# padding it has, or on the other sentences in its row.
#
# ### A mask that gets lost
#
# In Keras, a mask travels with its tensor as an attribute.
# `keras.layers.MultiHeadAttention` deletes this attribute from its caller's
# tensor (observed in Keras 3.15), so the next layer that reads the same tensor
# attends to padding. `doctor` detects such leaks: it changes the padding, and
# reports each layer whose outputs change although its inputs at tokens do not.


# %%
def two_layers(attention_class):
    """Returns a model that attends to the same embedded sentence twice."""
    ids = keras.Input((None,), dtype="int32")
    x = layers.TokenEmbedding(len(words), D)(ids)
    y = attention_class(1, D, name="first")(x, x)
    return keras.Model(ids, attention_class(1, D, name="second")(y, x))


for kind in (layers.MultiHeadAttention, keras.layers.MultiHeadAttention):
    report = doctor(two_layers(kind), batches["right"][1:3])
    print(f"{kind.__module__.split('.')[0]}: leaks in {report.leaks}")
    assert not report.leaks or kind is keras.layers.MultiHeadAttention

# %% [markdown]
# If the last line ends with `[]`, Keras has fixed this. See also [the guide to
# the doctor](../../guides/doctor.md).
#
# ### Fully masked queries
#
# Padding is also a query, and a mask may leave a query without keys. The softmax
# over no keys is 0 / 0. Our layers return zeros. They also replace masked inputs
# by zeros before they multiply, because 0 * NaN is NaN.

# %%
x = np.full((1, 5, D), np.nan, "float32")
x[:, :3] = random.normal(size=(3, D))
is_token = np.arange(5)[None] < 3
output = to_numpy(attend(x, x, query_mask=is_token, value_mask=is_token))
assert np.isfinite(output).all() and (output[:, 3:] == 0).all()

# %% [markdown]
# ## Summary
#
# - A position and a segment for each token describe all usual masks.
# - In this library, True means that attention is allowed. A key that is not
#   allowed has the weight 0.
# - Padding must not change an output. A lost mask raises no error, but `doctor`
#   finds where it gets lost.
# - Queries that are fully masked return zeros.
#
# ## Exercises
#
# **1.** Fill in the gaps. (a) The decoder uses ___ multi-head self-attention.
# (b) A row contains *(padding) a b (padding) c*; its positions are ___.
#
# <details markdown>
# <summary>Answer</summary>
#
# (a) masked; (b) -1, 0, 1, -1, 2.
#
# </details>
#
# **2.** How do the self-attention layers of encoder and decoder differ?
#
# <details markdown>
# <summary>Answer</summary>
#
# By the causal mask. In the encoder, every token attends to all tokens of the
# source; in the decoder, a token attends only to itself and to earlier tokens.
#
# </details>
#
# **3.** Write the mask of a window that looks ahead: each token attends to
# itself and to the next window - 1 tokens. Which tokens can change the first
# output after three layers with window 3?
#
# <details markdown>
# <summary>Answer</summary>
#
# `(pos >= pos[:, None]) & (pos - pos[:, None] < window)`. The first seven tokens:
# two more with each layer, whose inputs already depend on later tokens.
#
# </details>
#
# **Next**: [Positions](../positions/index.md) shows what a model without
# recurrence needs to know the order of its tokens.
