# %% [markdown]
# # Multi-head attention from scratch
#
# In this tutorial you compute self-attention on paper, write the multi-head
# attention layer of *Attention Is All You Need* (Vaswani et al. 2017,
# <https://arxiv.org/abs/1706.03762>) in NumPy, and train small models that show
# what a second head is for:
#
# ![Attention weights of three models: one head spreads over two diagonals, each
# of two heads has one diagonal](multi_head-3.png)
#
# **You will learn** what queries, keys and values are, why scores are divided
# by $\sqrt{d_k}$, how heads are computed in one matrix product, how masks and
# cross-attention fit in, and what attention costs.
#
# **Prerequisites**: matrix products and NumPy. [Attention from its first
# forms](../first_forms/index.md) compares other scores. **Time**: about 1
# minute on one CPU core.
#
# **Published result**: table 3 (A) of the paper varies the number of heads at
# equal cost. On English to German, 1 head reaches 24.9 BLEU, and 8 or 16 heads
# reach 25.8. Our models have one attention layer and 6,176 parameters. One head
# answers about 57 % of the questions of a synthetic task that needs information
# from two positions at once; two heads answer all of them.

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

from keras_attn.layers import MultiHeadAttention, PositionalEmbedding
from keras_attn.ops import attend

to_numpy = keras.ops.convert_to_numpy
generator = np.random.default_rng(1)
print(f"Keras {keras.__version__} on {keras.backend.backend()}")

# %% [markdown]
# ## Query, key and value
#
# Each token compares its query with every key, and receives a mix of the values:
#
# | vector | features | in words |
# | --- | --- | --- |
# | query $q_t$ of token t | H | "who has the information I want?" |
# | key $k_s$ of token s | H | "I have it" |
# | value $v_s$ of token s | H' | "here it is" |
#
# The score of a query and a key is their dot product. The softmax turns the
# scores of a query into weights, and the output is the weighted sum of values:
#
# ![Queries times keys are scores, which are scaled and masked; their softmax
# times the values is the output](../../diagrams/scaled_dot_product.svg)
#
# <!-- figure: attention_steps -->
#
# $$z_{ts} = \frac{q_t \cdot k_s}{\sqrt H}, \qquad
# w_{ts} = \frac{e^{z_{ts}}}{\sum_j e^{z_{tj}}}, \qquad
# c_t = \sum_s w_{ts} v_s$$
#
# The paper's $d_k$, $d_v$, $d_{model}$ and h are H, H', D and N here
# ([Notation](../notation.md)). In *self-attention*, all three vectors are
# linear functions of the same token vectors x of D features: $q = x W^Q$,
# $k = x W^K$, $v = x W^V$. The three matrices are learned.
#
# ## Self-attention by hand
#
# We choose three inputs of D = 4 features, and matrices of zeros and ones.
# Everything up to the softmax can be computed on paper. H is 4, so that
# $\sqrt H$ is 2, and H' is 2, so that the values can be drawn.

# %%
X = np.array([[1, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]])  # (T, D)
W_Q = np.array([[1, 0, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 1]])
W_K = np.array([[0, 0, 1, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 1, 0, 0]])
W_V = np.array([[1, 0], [0, 1], [1, 0], [0, 1]])
q, k, v = X @ W_Q, X @ W_K, X @ W_V
for name, matrix in ("queries", q), ("keys", k), ("values", v):
    print(f"{name:8}", *matrix.tolist())
T, H = q.shape

# %% [markdown]
# The first query is [1, 1, 0, 0]. Its dot products with the keys are 0, 4 and
# 2, and 0, 2 and 1 after the division. The softmax divides $e^0 = 1$, $e^2
# \approx 7.39$ and $e^1 \approx 2.72$ by their sum 11.11.

# %%
scores = np.array([q[0] @ k[s] for s in range(T)])
e = np.exp(scores / 2)
weights = e / e.sum()
output = sum(weights[s] * v[s] for s in range(T))
assert scores.tolist() == [0, 4, 2]
assert e.round(2).tolist() == [1, 7.39, 2.72] and e.sum().round(2) == 11.11
print("weights", weights.round(2), " output", output.round(2))

# %% [markdown]
# The first token takes most of its output from the second token, whose key
# matches its query best. The other tokens are computed in the same way and
# independently of each other. So all positions are computed at once if the
# vectors are stacked as matrices, with T or S rows:
#
# $$\mathrm{Attention}(q, k, v) =
# \mathrm{softmax}\Big(\frac{q k^\top}{\sqrt H}\Big)\, v$$
#
# Where query t may not attend to key s, the score is set to $-\infty$ before
# the softmax. Then the key has exactly the weight 0, and the other weights
# still sum to 1. As in the whole library, True in a mask means that attention
# is allowed.


# %%
def softmax(z):
    """Returns the weights over the last axis."""
    e = np.exp(z - z.max(-1, keepdims=True))  # same weights, no overflow
    return e / e.sum(-1, keepdims=True)


def attention(q, k, v, mask=None):
    """Returns the output (..., T, H') and the weights (..., T, S)."""
    z = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if mask is not None:
        z = np.where(mask, z, -np.inf)
    weights = softmax(z)
    return weights @ v, weights


outputs, weights = attention(q, k, v)
np.testing.assert_allclose(outputs[0], output)
assert (q @ k.T / 2).tolist() == [[0, 2, 1], [2, 0, 2], [1, 2, 2]]
# The library's function works on (B, T, N, H): one row and one head here.
rows = (x.astype("float32")[None, :, None] for x in (q, k, v))
np.testing.assert_allclose(to_numpy(attend(*rows))[0, :, 0], outputs, atol=1e-5)
assert (weights > 0).all() and np.allclose(weights.sum(-1), 1)
print(weights.round(2), outputs.round(2), sep="\n")


# %% tags=["hide-input"] alt="Left: the 3 x 3 weights. Right: values as circles, and outputs as crosses inside their triangle"
def heat_map(axis, weights, title, numbers=False):
    """Draws weights (T, S) into an axis."""
    axis.imshow(weights, cmap="cividis", vmin=0, vmax=1)
    axis.set(title=title, xlabel="key")
    ticks = range(0, len(weights), max(1, len(weights) // 4))
    axis.set(xticks=ticks, yticks=ticks)
    for (t, s), weight in np.ndenumerate(weights) if numbers else ():
        color = "black" if weight > 0.5 else "white"
        axis.text(s, t, f"{weight:.2f}", ha="center", va="center", color=color)


figure, axes = plt.subplots(1, 2, figsize=(7.5, 3), layout="constrained")
heat_map(axes[0], weights, "weights", numbers=True)
axes[0].set(ylabel="query")
for name, points, marker in ("value", v, "o"), ("output", outputs, "X"):
    axes[1].plot(*points.T, marker, markersize=9, label=name)
    for t, point in enumerate(points):
        axes[1].annotate(t, point, (-3, 8), textcoords="offset points")
axes[1].set(xlabel="feature 0", ylabel="feature 1", ylim=(-0.4, 4.6))
axes[1].legend()
plt.show()

# %% [markdown]
# The weights are positive and sum to 1, so the outputs are means of the values
# and lie within their triangle. All figures number the tokens from 0.
#
# ## Why the scores are scaled
#
# *The Illustrated Transformer* (Alammar 2018,
# <https://jalammar.github.io/illustrated-transformer/>) has an example with the
# two words *Thinking Machines* and the paper's H = 64. The query of *Thinking*
# has the scores 112 and 96 with the two keys. Divided by $\sqrt{64} = 8$, they
# are 14 and 12, and the softmax gives 0.88 and 0.12. Without the division, the
# weights are almost exactly 1 and 0.
#
# The derivatives of the weights explain why this is a problem:
#
# $$J_{ij} = \frac{\partial w_i}{\partial z_j} = w_i (\delta_{ij} - w_j)$$
#
# with $\delta_{ij} = 1$ for i = j and 0 otherwise. If one weight is close to 1,
# all derivatives are close to 0: the softmax is *saturated*, and the scores get
# hardly any gradient from the loss. For two keys, $w_0 = \sigma(z_0 - z_1)$
# with the sigmoid $\sigma(a) = 1 / (1 + e^{-a})$ and its derivative
# $\sigma(a) (1 - \sigma(a))$.


# %%
def jacobian(w):
    """Returns the derivatives (..., S, S) of the weights (..., S)."""
    return w[..., None] * (np.eye(w.shape[-1]) - w[..., None, :])


def sigmoid(x):
    """Returns values between 0 and 1."""
    return 1 / (1 + np.exp(-x))


raw = np.array([112.0, 96.0])
for name, z in ("divided", raw / np.sqrt(64)), ("not divided", raw):
    w = softmax(z)
    print(f"{name:12} scores {z}, weights {w.round(2)}", end=", ")
    print(f"derivative {jacobian(w)[0, 0]:.1e}")
    np.testing.assert_allclose(w[0], sigmoid(z[0] - z[1]))
assert softmax(raw / 8).round(2).tolist() == [0.88, 0.12]
assert jacobian(softmax(raw))[0, 0] < 1e-6
assert jacobian(softmax(raw / 8))[0, 0] > 0.1
# compared with numerical derivatives
z, step = np.array([2.0, 1.0, 0.5]), 1e-6 * np.eye(3)
numerical = (softmax(z + step) - softmax(z - step)).T / 2e-6
np.testing.assert_allclose(jacobian(softmax(z)), numerical, atol=1e-8)

# %% [markdown]
# Wide heads have large scores. Let all features of q and k be independent with
# mean 0 and variance 1. A dot product is a sum of H independent products of
# variance 1, so
#
# $$\mathrm{Var}(q \cdot k) = H, \qquad
# \mathrm{Var}\Big(\frac{q \cdot k}{\sqrt H}\Big) = 1 .$$
#
# We measure both with 1,000 random queries and 8 random keys for each, and the
# median norm of J, which shows how much gradient passes through the softmax.

# %%
widths = [1, 4, 16, 64, 256, 1024]
variance, norm = {}, {}
for H in widths:
    queries = generator.normal(size=(1000, 1, H))
    z = (queries * generator.normal(size=(1000, 8, H))).sum(-1)
    for name, scaled in ("not divided", z), ("divided", z / np.sqrt(H)):
        J = jacobian(softmax(scaled))
        variance[name, H] = scaled.var()
        norm[name, H] = np.median(np.linalg.norm(J, axis=(1, 2)))
    print(
        f"H = {H:4}: variance {variance['not divided', H]:6.1f}, "
        f"divided {variance['divided', H]:.2f}; norm of J "
        f"{norm['not divided', H]:.1e}, divided {norm['divided', H]:.2f}"
    )
    np.testing.assert_allclose(variance["not divided", H], H, rtol=0.15)
    assert 0.2 < norm["divided", H] < 0.4
assert norm["not divided", 1024] < 1e-3

# %% tags=["hide-input"] alt="The sigmoid is flat at 16; the variance of the scores grows with H, and the norm of J falls, unless scores are divided"
figure, axes = plt.subplots(1, 3, figsize=(10, 3), layout="constrained")
x = np.linspace(-4, 20, 200)
axes[0].plot(x, sigmoid(x), label=r"$\sigma$")
axes[0].plot(x, sigmoid(x) * sigmoid(-x), "--", label=r"$\sigma\,(1 - \sigma)$")
for difference, name in (2, " 14 - 12"), (16, "112 - 96"):
    axes[0].plot(difference, sigmoid(difference), "ko")
    axes[0].annotate(name, (difference, 0.75))
axes[0].set(xlabel="$z_0 - z_1$", title="two keys")
axes[0].legend(loc="center right")
for axis, measured, title in (
    (axes[1], variance, "variance of the scores"),
    (axes[2], norm, "median norm of J"),
):
    for name, style in ("not divided", "o-"), ("divided", "s--"):
        axis.plot(
            widths, [measured[name, H] for H in widths], style, label=name
        )
    axis.set(xscale="log", yscale="log", xlabel="H", title=title)
    axis.legend()
plt.show()

# %% [markdown]
# Without the division, scores grow with H, and from H = 16 on, gradients become
# smaller. With it, both the variance and the gradient hardly depend on H.
# This holds before training; a trained model may still learn large scores.
#
# ## Heads
#
# A *head* has its own three matrices $W^Q_n$, $W^K_n$ and $W^V_n$. N heads
# read the same tokens, but can attend to different positions and compare
# different features (the paper calls these representation subspaces):
#
# ![N heads with their own projections; their outputs are concatenated and
# multiplied by the matrix of the output](../../diagrams/multi_head.svg)
#
# $$\mathrm{head}_n = \mathrm{Attention}(x W^Q_n,\, x W^K_n,\, x W^V_n), \qquad
# \mathrm{MultiHead}(x) = [\mathrm{head}_0; \ldots; \mathrm{head}_{N-1}]\, W^O$$
#
# The base model of the paper has N = 8 heads, and queries, keys and values of
# 64 features, an eighth of D = 512. With N H = D, N narrow heads have as many
# parameters as one head of width D. Their projections are one matrix product
# whose columns are then divided among the heads. The axes must be exchanged
# after `reshape`: `columns.reshape(N, T, H)` has the same shape and raises no
# error, but mixes features of different tokens.

# %%
T, N, H = 6, 3, 4
D = N * H
x = generator.normal(size=(T, D))
kernel = generator.normal(size=(D, N, H))
one_by_one = np.stack([x @ kernel[:, n] for n in range(N)])  # (N, T, H)
columns = x @ kernel.reshape(D, N * H)  # (T, N H)
at_once = columns.reshape(T, N, H).swapaxes(0, 1)
np.testing.assert_allclose(at_once, one_by_one)
np.testing.assert_allclose(np.einsum("td,dnh->nth", x, kernel), one_by_one)
assert not np.allclose(columns.reshape(N, T, H), one_by_one)
print(f"{x.shape} -> {columns.shape} -> {at_once.shape}")

# %% [markdown]
# ## The layer in NumPy
#
# The layer has four kernels and, as in Keras, four biases; `variables` maps
# their names to arrays. `memory` is the sequence that keys and values come
# from: x itself in self-attention, another sequence in cross-attention. If
# there are fewer key and value heads than query heads, each serves several
# query heads (last section).


# %%
def project(x, variables, name):
    """Returns the queries, keys or values of all heads, (N, T, H)."""
    heads = np.einsum("td,dnh->nth", x, variables[f"{name}/kernel"])
    return heads + variables[f"{name}/bias"][:, None]


def multi_head(x, memory, variables, mask=None):
    """Returns the output (T, D) and the weights (N, T, S)."""
    q = project(x, variables, "query")
    k, v = (project(memory, variables, name) for name in ("key", "value"))
    k, v = (np.repeat(y, len(q) // len(y), axis=0) for y in (k, v))
    heads, weights = attention(q, k, v, mask)  # (N, T, H'), (N, T, S)
    kernel = variables["attention_output/kernel"]
    output = np.einsum("ntw,nwd->td", heads, kernel)
    return output + variables["attention_output/bias"], weights


# %% [markdown]
# We compare it with `keras_attn.layers.MultiHeadAttention`: without a mask,
# without later keys (causal), without two padding tokens, with three queries to
# six keys of another sequence, and with two key and value heads for four query
# heads. [Masks](../masks/index.md) explains the masks.

# %%
T, D, N, H = 6, 12, 4, 3
x = generator.normal(size=(T, D))
is_token = np.arange(T)[None] < 4
cases = {  # queries, NumPy mask, arguments of the layer and of its call
    "self-attention": (x, None, {}, {}),
    "causal": (x, np.tri(T, dtype=bool), {"causal": True}, {}),
    "padding": (x, is_token, {}, {"value_mask": is_token}),
    "cross-attention": (generator.normal(size=(3, D)), None, {}, {}),
    "two key heads": (x, None, {"num_key_value_heads": 2}, {}),
}
normal = keras.initializers.RandomNormal(stddev=0.5, seed=1)
for name, (queries, mask, options, masks) in cases.items():
    layer = MultiHeadAttention(N, H, bias_initializer=normal, **options)
    output, of_layer = layer(
        queries[None], x[None], return_attention_scores=True, **masks
    )
    variables = {v.path.partition("/")[2]: to_numpy(v) for v in layer.weights}
    by_hand, expected = multi_head(queries, x, variables, mask)
    np.testing.assert_allclose(to_numpy(output)[0], by_hand, atol=1e-5)
    np.testing.assert_allclose(to_numpy(of_layer)[0], expected, atol=1e-5)
    if mask is not None:
        masked = np.broadcast_to(~mask, of_layer.shape)
        assert (to_numpy(of_layer)[masked] == 0).all()
    print(f"{name:15} {by_hand.shape}, {layer.count_params()} parameters")

# %% [markdown]
# ## What several heads are for
#
# A head computes one weighted mean per query. If a token needs information from
# two positions, a single head has to mix them. The following task needs two
# positions: each row is a circle of 12 letters, and at every letter the model
# predicts the letter *two before* it and the letter *three after* it.

# %%
T, letters, distances = 12, 16, (-2, 3)


def circles(rows, seed):
    """Returns letters (B, T) and, for each, two answers (B, T, 2)."""
    ids = np.random.default_rng(seed).integers(letters, size=(rows, T))
    answers = [np.roll(ids, -distance, axis=1) for distance in distances]
    return ids.astype("int32"), np.stack(answers, axis=-1)


ids, answers = circles(128 if QUICK else 300 * 64, seed=0)
test_ids, test_answers = circles(512, seed=1)
line = "".join(chr(65 + letter) for letter in test_ids[0])
before, after = (chr(65 + letter) for letter in test_answers[0, 5])
assert (before, after) == (line[3], line[8])
print(f"{line}: position 5 is {line[5]}, the answers are {before} and {after}")

# %% [markdown]
# The model has one attention layer without a residual connection, so that all
# information passes through the heads, and a linear layer with the logits of
# both answers. One head of 32 features has as many parameters as two heads of
# 16. A third model has one head and, as in a Transformer block, a feed-forward
# network after the attention.


# %%
def build(N, feed_forward, D=32):
    """Returns a model from letters to logits, and one to the weights."""
    ids = keras.Input((T,), dtype="int32")
    x = keras.layers.Embedding(letters, D)(ids)
    x = PositionalEmbedding("learned", max_sequence_length=T)(x)
    x, weights = MultiHeadAttention(N, D // N)(
        x, x, return_attention_scores=True
    )
    if feed_forward:
        hidden = keras.layers.Dense(4 * D, activation="relu")(x)
        x = keras.layers.Add()([x, keras.layers.Dense(D)(hidden)])
    logits = keras.layers.Dense(2 * letters)(x)
    logits = keras.layers.Reshape((T, 2, letters))(logits)
    return keras.Model(ids, logits), keras.Model(ids, weights)


loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
models = {"1 head": (1, False), "2 heads": (2, False), "with FFN": (1, True)}
right, losses, attended = {}, {}, {}
for name, arguments in models.items():
    for seed in (1,) if QUICK else (1, 2, 3):
        keras.utils.set_random_seed(seed)
        model, reader = build(*arguments)
        model.compile(keras.optimizers.Adam(0.01), loss)
        model.fit(ids, answers, batch_size=64, verbose=0)
        logits = model.predict(test_ids, batch_size=256, verbose=0)
        correct = logits.argmax(-1) == test_answers
        right[name, seed] = correct.mean((0, 1))
        losses[name, seed] = float(loss(test_answers, logits))
        found = reader.predict(test_ids, batch_size=256, verbose=0)
        attended[name, seed] = found.mean(0)  # (N, T, T)
        print(
            f"{name:8} seed {seed}: {model.count_params():6,} parameters, "
            "right {:6.1%} and {:6.1%}, ".format(*right[name, seed])
            + f"loss {losses[name, seed]:.3f}"
        )

# %% tags=["hide-input"] alt="Attention weights of three models: one head spreads over two diagonals, each of two heads has one diagonal"
figure, axes = plt.subplots(1, 4, figsize=(11, 3.2), layout="constrained")
panels = [(name, n) for name, (N, _) in models.items() for n in range(N)]
for axis, (name, n) in zip(axes, panels, strict=True):
    share = right[name, 1].mean()
    head = f", head {n}" if "2" in name else ""
    heat_map(axis, attended[name, 1][n], f"{name}{head}: {share:.0%} right")
axes[0].set(ylabel="query")
plt.show()

# %% [markdown]
# With each of three seeds, two heads answer all questions: each head attends to
# one of the two positions. A single head attends to both. If its weights were
# equal, the linear layer would know the two letters but not their order. The
# loss would then be $\ln 2 = 0.69$ nats per answer, or 0.65 on average, because
# in one of 16 cases both letters are the same. The measured loss is close to
# that. The letter with the larger weight is usually predicted for *both*
# questions, so one of them is answered well and the other badly.

# %%
for name, seed in attended:
    at = np.arange(T)
    on = [attended[name, seed][:, at, (at + d) % T].mean(-1) for d in distances]
    on = np.stack(on, axis=-1)  # weight at the two distances, (N, 2)
    print(f"{name:8} seed {seed}:", *on.astype(float).round(2).tolist())
    if not QUICK and name == "1 head":
        assert max(right[name, seed]) > 0.85 and min(right[name, seed]) < 0.3
        assert abs(losses[name, seed] - np.log(2) * 15 / 16) < 0.1
        assert 0.5 < right[name, seed].mean() < 0.6 and on.min() > 0.3
    elif not QUICK:
        assert min(right[name, seed]) > 0.99
        if name == "2 heads":
            assert sorted(on.argmax(0)) == [0, 1] and on.max(0).min() > 0.8
        else:
            assert on.min() > 0.1 and on.max() > 1.5 * on.min()

# %% [markdown]
# Each bracket is a head, with its mean weights at the two positions. The third
# model, with more parameters, shows that a second head is not the only
# solution. It gives one position much more weight than the other, and the
# feed-forward network, which is not linear, reads both letters from the unequal
# mixture. This may compensate for missing heads in a Transformer, and explain
# why the paper loses only 0.9 BLEU with one head. [Looking inside](
# ../looking_inside/index.md) shows what *it* attends to with 1, 2 and 8 heads.
#
# ## Cost, and shared keys and values
#
# For T tokens and N H = N H' = D, self-attention needs
#
# $$\underbrace{4\, T D^2}_{\text{projections}} +
# \underbrace{2\, T^2 D}_{\text{scores and weighted sums}}$$
#
# multiply-adds, whatever the number of heads. The second term is the larger one
# for T > 2 D. A kernel that stores all weights needs N T² numbers; [fused and
# blockwise kernels](../../guides/kernels.md) do not store them.
#
# A decoder that generates text stores the keys and values of all previous
# tokens, 2 K H numbers per token and layer. K < N saves memory (multi-query:
# <https://arxiv.org/abs/1911.02150>, grouped: <https://arxiv.org/abs/2305.13245>):
#
# ![Four query heads with four, two and one head of keys and
# values](../../diagrams/shared_heads.svg)

# %%
D, N, H = 512, 8, 64
for K in 8, 2, 1:
    layer = MultiHeadAttention(N, H, num_key_value_heads=K)
    layer.build((None, None, D), (None, None, D))
    parameters = layer.count_params()
    print(f"K = {K}: {parameters:9,} parameters, {2 * K * H:4} per token")
    kernels = 2 * D * N * H + 2 * D * K * H
    assert parameters == kernels + N * H + 2 * K * H + D

# %% [markdown]
# ## Summary
#
# - A query is compared with all keys; the output is the mean of the values,
#   weighted by the softmax of the scores.
# - Scores are divided by $\sqrt H$, because the variance of q · k is H and a
#   saturated softmax has hardly any gradient.
# - N heads of D / N features cost as much as one head of D features, and can
#   attend to N positions separately.
# - In our task, one head and a linear layer do not separate two positions; one
#   head and a feed-forward network do.
# - The cost grows with T², and shared keys and values reduce the cache.
#
# ## Exercises
#
# **1.** Fill the gaps. (a) The context vector is a weighted sum of ___. (b)
# Self-attention looks at other words as it ___ a word. (c) Queries, keys and
# values are usually ___ than the embedding. (d) The softmax of the scores gives
# positional ___. (e) To compute all positions at once, their vectors are
# stacked as a ___. (f) Several attention ___ work in parallel. (g)
# Encoder-decoder attention is multi-head ___-attention. (h) The decoder first
# applies ___ multi-head self-attention.
#
# <details markdown>
# <summary>Answer</summary>
#
# (a) values, (b) encodes, (c) smaller (64 of 512 in the paper), (d)
# probabilities, or weights, (e) matrix, (f) heads, (g) cross, (h) masked
# (causal).
#
# </details>
#
# **2.** What are q, k and v in a self-attention layer, and in cross-attention?
#
# <details markdown>
# <summary>Answer</summary>
#
# Three learned linear projections of the vector of each token: what the token
# searches for, what it is found by, and what it contributes. In
# cross-attention, queries are projections of the target's vectors, and keys and
# values are projections of the source's.
#
# </details>
#
# **3.** In the example by hand, the third input is the first plus half of the
# second. For which of the queries, scores, weights and outputs does the same
# hold?
#
# <details markdown>
# <summary>Answer</summary>
#
# For queries and scores, but not after the softmax, which is not linear.
#
# ```python
# for rows in q, q @ k.T, weights, outputs:
#     print(np.allclose(rows[2], rows[0] + rows[1] / 2))
# ```
#
# </details>
#
# **4.** Let G be the gradient of a loss with respect to the outputs c of one
# head. Derive the gradients with respect to v, q and k, and compare one of them
# with a numerical derivative.
#
# <details markdown>
# <summary>Answer</summary>
#
# With the weights w, $dv = w^\top G$ and $dw = G v^\top$. The Jacobian of the
# softmax gives $dz_{ts} = w_{ts} (dw_{ts} - \sum_j w_{tj}\, dw_{tj})$, and then
# $dq = dz\, k / \sqrt H$ and $dk = dz^\top q / \sqrt H$.
#
# ```python
# G = generator.normal(size=outputs.shape)
# dw = G @ v.T
# dz = weights * (dw - (weights * dw).sum(-1, keepdims=True))
# dq = dz @ k / 2
# step = 1e-6 * np.eye(3, 4)  # changes q[0, 0], q[1, 1] and q[2, 2]
# moved = attention(q + step, k, v)[0] - attention(q - step, k, v)[0]
# print(np.diag(dq), (G * moved).sum(-1) / 2e-6)
# ```
#
# </details>
#
# **Next**: [Encoder and decoder, block by block](../blocks/index.md) adds
# feed-forward networks, residual connections and layer normalization.
