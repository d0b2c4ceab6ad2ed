# %% [markdown]
# # Attention from its first forms
#
# The first translators with attention were recurrent models that look back at
# the source for every word they write. In this tutorial you compute six scores
# by hand, train one model with each, and compare global with local attention:
#
# ![Attention weights of six translators: each row is a Spanish word, each
# column an English word](first_forms-2.png)
#
# **You will learn** what queries, keys and values are, how six scores are
# computed, whether attention is on the aligned word, and when a window of a
# few keys is sufficient.
#
# **Prerequisites**: NumPy, Keras, and what an RNN is; [Why attention?](
# ../why_attention/index.md) gives the reasons. **Time**: about 8 minutes on one
# CPU core.
#
# **Published result**: Luong et al. 2015 (<https://arxiv.org/abs/1508.04025>,
# Table 4) compare scores and windows on English to German news, and reach
# between 19.1 and 20.9 BLEU with 4 layers of width 1,000. The models below have
# one layer of width 64 and translate 33 to 100 % of short lists without an
# error, so only the kind of comparison is the same.

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

from keras_attn import datasets
from keras_attn.layers import ScoredAttention
from keras_attn.models import RecurrentSeq2Seq
from keras_attn.training import SequenceCrossentropy

keras.utils.set_random_seed(1)
random = np.random.default_rng(1)
to_numpy = keras.ops.convert_to_numpy
print(f"Keras {keras.__version__} on {keras.backend.backend()}")

# %% [markdown]
# ## From seq2seq to attention
#
# Without attention (Sutskever et al. 2014, <https://arxiv.org/abs/1409.3215>),
# an encoder reads the source x, and its last state is the first state of the
# decoder. Whatever the length S of the source, the decoder starts from one
# vector of width D:
#
# $$h_s = \mathrm{RNN}(h_{s-1}, x_s), \qquad q_{-1} = h_{S-1}, \qquad
# q_t = \mathrm{RNN}(q_{t-1}, y_t), \qquad
# \mathrm{logits}_t = q_t W_o + b_o$$
#
# With attention, the decoder also reads all encoder states $h_s$ at each step t
# (Bahdanau et al. 2014, <https://arxiv.org/abs/1409.0473>; the form below is
# that of Luong et al.):
#
# $$z_{ts} = \mathrm{score}(q_t, h_s), \qquad
# w_{ts} = \frac{e^{z_{ts}}}{\sum_{s'} e^{z_{ts'}}}, \qquad
# c_t = \sum_s w_{ts} h_s, \qquad
# \mathrm{logits}_t = \tanh([c_t; q_t]\, W_c)\, W_o + b_o$$
#
# ![One decoder step: the query has a score with each encoder state; the softmax
# and a weighted sum make the context
# vector](../../diagrams/seq2seq_attention.svg)
#
# The scores z become weights w by a softmax, and the *context vector* c is the
# weighted sum. (The papers write $s_t$ or $h_t$ for the decoder state $q_t$,
# $\bar h_s$ for $h_s$, $\alpha$ or $a$ for w.) Later papers name three roles:
#
# | role | in words | here |
# | --- | --- | --- |
# | query | who has the information I want? | state of the decoder |
# | key | I have it | state of the encoder, for the weights |
# | value | here it is | state of the encoder, for the content |
#
# Encoder states are keys and values here. Queries come from the target, so this
# is *cross-attention*; in *self-attention* all come from one sequence.
#
# ## Data
#
# The source is a list of things in English, the target the same in Spanish. The
# adjective follows its noun in Spanish and agrees with it. The generator knows
# which English word each Spanish word translates: its **alignment**. The models
# never see it. We train on lists of one to three things, and test on new ones
# and on longer ones, with four or five things.

# %%
n, tests = (64, 8) if QUICK else (4800, 300)
train = datasets.make_aligned_pairs(n, seed=1)
test = datasets.make_aligned_pairs(tests, seed=1, split="test")
longer = datasets.make_aligned_pairs(
    tests // 2, seed=1, split="test", min_phrases=4, max_phrases=5
)
shown = next(pair for pair in test if len(pair.alignment) > 8 - 3 * QUICK)
print(shown.source, "->", shown.target, shown.alignment, sep="\n")
assert not {pair.source for pair in train} & {pair.source for pair in test}

# %% [markdown]
# Each word is one token; ids 0, 1 and 2 are padding, start and end. The decoder
# reads the start token and the target; labels are the target and the end token.

# %%
L = 20  # tokens of the longest sentence, with the end token


def vocabulary(sentences):
    """Returns a dict from words to ids."""
    words = {word for sentence in sentences for word in sentence.split()}
    return {word: i for i, word in enumerate(sorted(words), start=3)}


english = vocabulary(pair.source for pair in [*train, *test, *longer])
spanish = vocabulary(pair.target for pair in [*train, *test, *longer])
words = {i: word for word, i in spanish.items()}


def encode(pairs, length, backwards=False):
    """Returns source ids, target ids and labels, int32 (B, length)."""
    source, target, labels = np.zeros((3, len(pairs), length), "int32")
    for row, pair in enumerate(pairs):
        ids = [english[word] for word in pair.source.split()]
        ids = [*(ids[::-1] if backwards else ids), 2]
        source[row, : len(ids)] = ids
        ids = [spanish[word] for word in pair.target.split()]
        target[row, : len(ids) + 1] = [1, *ids]
        labels[row, : len(ids) + 1] = [*ids, 2]
    return source, target, labels


source, target, labels = encode([shown], L)

# %% [markdown]
# ## Model
#
# `RecurrentSeq2Seq` computes the equations above. The encoder is a GRU that
# reads the source in both directions, so that $h_s$ depends on the words on
# both sides of s. `attention` is the name of a score, a layer, or None.

# %%
D = 16 if QUICK else 64


def make_model(attention):
    """Returns an untrained model; only the attention differs."""
    keras.utils.set_random_seed(1)
    return RecurrentSeq2Seq(
        len(english) + 3,
        len(spanish) + 3,
        cell="gru",
        hidden_dim=D,
        bidirectional=True,
        attention=attention,
        dropout=0.0,
        max_sequence_length=L if attention == "location" else None,
    )


model = make_model("additive")
(memory, _), states = model.encode(source)
assert memory.shape == (1, L, D) and states[0][0].shape == (1, D)
assert model((source, target)).shape == (1, L, len(spanish) + 3)
print(f"{model.count_params():,} parameters")

# %% [markdown]
# We measure how many sentences greedy decoding translates without any error, and
# for how many Spanish words the largest weight is on the aligned English word.
# `align` returns the weights for given targets.

# %%
results, maps = {}, {}


def train_and_measure(name, model, backwards=False):
    """Trains a model; stores its results and its attention weights."""
    source, target, labels = encode(train, 12, backwards)
    model.compile(
        keras.optimizers.Adam(4e-3, clipnorm=1.0), SequenceCrossentropy()
    )
    epochs = 1 if QUICK else 5
    model.fit((source, target), labels, batch_size=64, epochs=epochs, verbose=0)
    exact = []
    for pairs in test, longer:
        source, _, labels = encode(pairs, L, backwards)
        found = model.generate(source, L).tokens[:, 0]
        exact.append((found == labels[:, : found.shape[1]]).all(1).mean())
    source, _, labels = encode(test, L, backwards)
    lengths = (labels != 0).sum(1)[:, None]
    weights = model.align(source, labels[:, None], lengths)
    weights, hits = to_numpy(weights)[:, 0, 0, 0], []  # (B, T, S)
    for pair, w in zip(test, weights, strict=True):
        keys, length = np.array(pair.alignment), len(pair.alignment)
        keys = length - 1 - keys if backwards else keys
        hits += (w[:length].argmax(-1) == keys).tolist()
    results[name] = *exact, np.mean(hits)
    maps[name] = weights[test.index(shown)]


# %%
def show_results(names):
    """Prints the results of some models."""
    print("attention          exact  longer aligned")
    for name in names:
        print("{:18} {:6.1%} {:6.1%} {:6.1%}".format(name, *results[name]))


train_and_measure("additive", model)
show_results(["additive"])
found = model.generate(source, L).tokens[0, 0]
print(*(words[i] for i in found.tolist() if i > 2))

# %% [markdown]
# Its weights $w_{ts}$ for one test sentence; frames mark the alignment:


# %% tags=["hide-input"] alt="Attention weights of the model with the additive score: most of the weight of a Spanish word is on one English word, usually the framed, aligned one"
def draw(names):
    """Draws the attention of models for the same sentence."""
    high, wide = -(-len(names) // 3), min(3, len(names))
    size = (1 + 3.3 * wide, 0.4 + 3.3 * high)
    figure = plt.figure(figsize=size, layout="constrained")
    axes = [figure.add_subplot(high, wide, i + 1) for i in range(len(names))]
    for axis, name in zip(axes, names, strict=True):
        keys, columns = list(shown.alignment), shown.source.split()
        if "backwards" in name:
            columns = columns[::-1]
            keys = [len(columns) - 1 - key for key in keys]
        columns, rows = [*columns, "end"], [*shown.target.split(), "end"]
        w = maps[name][: len(rows), : len(columns)]
        image = axis.imshow(w, cmap="cividis", vmin=0, vmax=1)
        for row, key in enumerate(keys):
            frame = plt.Rectangle((key - 0.5, row - 0.5), 1, 1, fill=False)
            frame.set(edgecolor="C1", linewidth=1.5)
            axis.add_patch(frame)
        axis.set_xticks(range(len(columns)), columns, rotation=90)
        axis.set_yticks(range(len(rows)), rows)
        axis.set_title(name, fontsize=10)
    figure.colorbar(image, ax=axes, shrink=0.6, label="weight")
    plt.show()


inside = maps["additive"][: len(shown.alignment) + 1]
np.testing.assert_allclose(inside.sum(-1), 1, atol=1e-4)
assert not inside[:, len(shown.alignment) + 1 :].any()  # padding
draw(["additive"])

# %% [markdown]
# ## Six scores
#
# The score of a query q and a key k at position s. W, U, u and b are learned, and
# each score has its own:
#
# | score | equation | paper |
# | --- | --- | --- |
# | dot | $q \cdot k$ | Luong et al. 2015 |
# | scaled dot | $q \cdot k / \sqrt{D}$ | [Vaswani et al. 2017](https://arxiv.org/abs/1706.03762) |
# | general | $q\, W \cdot k$ | Luong et al. 2015 |
# | additive (concat) | $u \cdot \tanh(q W + k U)$ | Bahdanau et al. 2014 |
# | location | $(q W)_s$ | Luong et al. 2015 |
# | cosine | $\kappa\; q \cdot k / (\lVert q \rVert \lVert k \rVert)$, $\kappa = \ln(1 + e^{q \cdot u + b})$ | [Graves et al. 2014](https://arxiv.org/abs/1410.5401) |
#
# ![The dot product multiplies query and key; the additive score projects and
# adds them, then applies tanh and a learned
# vector](../../diagrams/score_functions.svg)
#
# The additive score is also written $u \cdot \tanh([q; k]\, W)$, with q and k
# concatenated. (Papers write v for our u, and Graves et al. $\beta$ for
# $\kappa$.) For q of shape (T, D) and k (S, D):


# %%
def unit(x):
    """Returns vectors of length 1."""
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def softmax(z):
    """Returns the weights over the last axis."""
    z = np.exp(z - z.max(-1, keepdims=True))
    return z / z.sum(-1, keepdims=True)


SCORES = {
    "dot": lambda q, k, w: q @ k.T,
    "scaled_dot": lambda q, k, w: q @ k.T / np.sqrt(q.shape[-1]),
    "general": lambda q, k, w: q @ w["query/kernel"] @ k.T,
    "additive": lambda q, k, w: (
        np.tanh((q @ w["query/kernel"])[:, None] + k @ w["key/kernel"])
        @ w["scale"]
    ),
    "location": lambda q, k, w: (q @ w["query/kernel"])[:, : len(k)],
    "cosine": lambda q, k, w: (
        np.log1p(np.exp(q @ w["strength/kernel"] + w["strength/bias"]))
        * (unit(q) @ unit(k).T)
    ),
}

# %% [markdown]
# `ScoredAttention` has the same scores. Both agree:

# %%
q = random.normal(size=(1, 3, 8)).astype("float32")  # (B, T, D)
k = random.normal(size=(1, 5, 8)).astype("float32")  # (B, S, D)
for name, score in SCORES.items():
    layer = ScoredAttention(name)
    output, w = layer(q, k, return_attention_scores=True)
    learned = {x.path.split("/score/")[-1]: to_numpy(x) for x in layer.weights}
    by_hand = softmax(score(q[0], k[0], learned))
    np.testing.assert_allclose(to_numpy(w)[0], by_hand, atol=1e-5)
    np.testing.assert_allclose(to_numpy(output)[0], by_hand @ k[0], atol=1e-5)
    _, moved = layer(q, 2 * k, return_attention_scores=True)
    change = np.abs(to_numpy(moved - w)).max()
    assert (change < 1e-6) == (name in ("location", "cosine"))
    print(f"{name:10} {layer.count_params():3} parameters, {change:.2f}")

# %% [markdown]
# The last column is the largest change of a weight when all keys are doubled:
# location does not depend on the keys, and cosine divides by their length.
#
# ### One model with each score

# %%
trained = ["additive"] if QUICK else list(SCORES)
for name in trained:
    if name not in results:
        train_and_measure(name, make_model(name))
show_results(trained)
if not QUICK:
    assert min(results[name][0] for name in trained) > 0.5
    assert min(results[name][2] for name in trained) < 1
    assert results["location"][1] < 0.05

# %% alt="Attention weights of the same sentence for six scores: near the alignment for most words"
draw(trained)

# %% [markdown]
# With each score, at least 98 % of the test sentences are correct, and none of
# the longer lists. With one seed, the order of the scores is no ranking. Five
# compare the query with the content of a key. The location score predicts a
# position from the query alone; its weights for positions after the twelfth are
# untrained, because no training list has them. Attention is not always on the
# aligned word, as for *y* with the general score: $h_s$ contains neighbors,
# too.
#
# ## Global and local attention
#
# Global attention computes T S weights. **Local attention** (Luong et al. 2015,
# section 3.2) attends to at most 2 r + 1 keys around a position $\hat s_t$ (they
# write D for r and $p_t$ for $\hat s_t$):
#
# - **local-m**, monotonic: $\hat s_t = t$, the position of the query;
# - **local-p**, predictive: the query predicts $\hat s_t$, and weights decrease
#   with the distance from it:
#
# $$\hat s_t = S\, \sigma(u_1 \cdot \tanh(q_t W_1)), \qquad
# w_{ts} = \mathrm{softmax}_s(z_{ts})\, e^{-2 (s - \hat s_t)^2 / r^2}
# \quad \text{for} \quad |s - \hat s_t| \le r$$
#
# ![Weights of one query for nine keys: all with global attention, five around
# the query with local-m, four around a predicted center with
# local-p](../../diagrams/global_local.svg)

# %%
r = 2
q = random.normal(size=(1, 9, 8)).astype("float32")
k = random.normal(size=(1, 12, 8)).astype("float32")
s, center = np.arange(12)[None], np.arange(9)[:, None]
for local in "monotonic", "predictive":
    layer = ScoredAttention("dot", local=local, window=r)
    _, w = layer(q, k, return_attention_scores=True)
    decay = 1.0
    if local == "predictive":
        u_1, W_1 = map(to_numpy, layer.weights)
        center = 12 / (1 + np.exp(-np.tanh(q[0] @ W_1) @ u_1))[:, None]
        decay = np.exp(-2 * ((s - center) / r) ** 2)
    near = np.abs(s - center) <= r
    by_hand = softmax(np.where(near, q[0] @ k[0].T, -np.inf)) * decay
    np.testing.assert_allclose(to_numpy(w)[0], by_hand, atol=1e-5)
    print(f"{local}: {near.sum()} of {near.size} keys are visible")

# %% [markdown]
# In our lists a word moves by at most one position, so a window with r = 2 is
# sufficient. If the source is read **backwards**, last word first, most aligned
# words are outside the window of local-m.

# %%
known = trained[-1] if QUICK else "general"
maps["global"], results["global"] = maps[known], results[known]
local_m = ScoredAttention("general", local="monotonic", window=r)
train_and_measure("local-m", make_model(local_m))
if not QUICK:
    kinds = {"global": None, "local-m": "monotonic", "local-p": "predictive"}
    for form, local in kinds.items():
        attention = ScoredAttention("general", local=local, window=r)
        name = f"{form} backwards"
        train_and_measure(name, make_model(attention), backwards=True)
forms = [name for name in results if "local" in name or "global" in name]
show_results(forms)
distance = np.abs(np.arange(L)[:, None] - np.arange(L))
assert not maps["local-m"][distance > r].any()
if not QUICK:
    assert results["local-m"][0] > 0.5
    lost = results["local-m backwards"][0]
    assert results["global backwards"][0] > lost + 0.3

# %% alt="Attention weights of global and local attention, for the source forwards and backwards: local-m has weights near the diagonal only and misses most of the alignment backwards"
draw(forms)

# %% [markdown]
# Backwards, local-m cannot see most aligned words, and translates 33 %
# correctly; global attention and local-p learn the other order. The gradient of
# $\hat s_t$ comes from keys inside the window only, so a window at a wrong
# position learns little about the right one. Only local-m, forwards, translates
# longer lists (75 %). Its windows move with the target, whatever the length.
#
# ## Summary
#
# - A score compares a query and a key; a softmax makes weights of the scores;
#   the context is the weighted sum of the values.
# - Dot, scaled dot, general, additive and cosine compare contents; location
#   predicts a position from the query.
# - The largest weight is usually, but not always, on the aligned word.
# - A window saves weights, but the aligned keys must be inside it.
#
# ## Exercises
#
# **1.** Fill in the gaps. In translation, attention learns the ... between
# source and target. The decoder focuses on relevant parts of the ... sentence.
# The context vector is a weighted sum of ... . A softmax gives positional ... .
#
# <details markdown>
# <summary>Answer</summary>
#
# Alignment; input (source); values; probabilities (weights).
#
# </details>
#
# **2.** All keys are multiplied by 10. Which of the six scores give the same
# weights? What happens to the other weights?
#
# <details markdown>
# <summary>Answer</summary>
#
# Location and cosine give the same weights. Dot, scaled dot and general scores
# become ten times as large, so the softmax is close to one key. Additive scores
# change too, but stay between $-\sum_i |u_i|$ and $\sum_i |u_i|$:
#
# ```python
# layer = ScoredAttention("dot")
# for factor in 1, 10:
#     _, w = layer(q, factor * k, return_attention_scores=True)
#     print(to_numpy(w).max(-1).mean().round(2))
# ```
#
# </details>
#
# **Next**: [Hard attention](../hard_attention/index.md) samples one value
# instead of computing a weighted sum of all.
