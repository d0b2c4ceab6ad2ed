# %% [markdown]
# # Multi-head attention from nothing
#
# Queries, keys, values, heads: how much is there to it, once it is written
# down? And what are several narrow heads for, where one could be as wide as all
# of them together?
#
# ![Three heat maps: one head spreads over two diagonals, two heads take one
# each](multi_head-8.png)
#
# Two models with equally many weights, trained further down. Both must say, at
# every place of a circle of letters, which letter stands two places before
# *and* which one three places behind. One has one wide head, the other two
# narrow ones.
#
# You will
#
# - ask one **query**: products, the division by $\sqrt H$, the softmax, a mean
#   of values;
# - see where the **softmax** has a gradient, and where it has none;
# - cut features into **heads**, in three ways that are the same and in one that
#   is wrong;
# - write the whole layer, with **masks** and **cross-attention**, in twenty
#   lines of NumPy, and the way **back** through it, and find the numbers of
#   `keras_attn.layers.MultiHeadAttention`;
# - see that it **cannot look ahead**, by leaving away what comes later;
# - find out what **several heads** are good for;
# - count and measure what attention **costs** in T, and what **shared keys and
#   values** save.
#
# On two cores a minute at most: the run of this page had one. All data is made
# up on the way; nothing is downloaded. As a program, on any backend:
#
#     KERAS_BACKEND=torch .venv/bin/python tutorials/multi_head.py

# %%
import json
import statistics
import time

import input_gradients
import keras
import multi_head_settings
import numpy as np
import program_settings
import two_places
from grid_plots import draw_grids
from matplotlib.figure import Figure

from keras_attn.layers import MultiHeadAttention
from keras_attn.ops import attend

try:
    run = multi_head_settings.read()
except ValueError as error:
    program_settings.explain_and_leave("multi_head", error)
QUICK = run.quick
# What is asserted of trained models is so with the settings of this page.
WHOLE = multi_head_settings.is_default(run)
keras.utils.set_random_seed(run.seed)
generator = np.random.default_rng(run.seed)
to_numpy = keras.ops.convert_to_numpy
results = {"backend": keras.backend.backend()}
print(f"Keras {keras.__version__} on {keras.backend.backend()}")

# %% [markdown]
# ## One query
#
# Five words. Each has a **key**, which says what it is, and a **value**, which
# is what it has to give. Somebody asks with a **query**, of the same kind as
# the keys: what is said *of* a thing here? How well a key suits is the dot
# product of the two. The softmax makes shares of that, and what comes back is
# the mean of the values in these shares:
#
# $$z_s = \frac{q \cdot k_s}{\sqrt H}, \qquad
# w_s = \frac{e^{z_s}}{\sum_j e^{z_j}}, \qquad
# o = \sum_s w_s v_s .$$
#
# (Vaswani et al. 2017, sec. 3.2.1, <https://arxiv.org/abs/1706.03762>.) The
# letters of all shapes are those of
# [the glossary](../../architecture.md#shapes): S keys, H features of a key, W
# of a value.

# %%
WORDS = ["my", "red", "car", "is", "fast"]
# Features of a key: is it a thing? is it said of a thing?
keys = np.array([[0.5, 0.6], [0.4, 1.9], [2, 0.2], [-0.3, 0.2], [-0.5, 1.7]])
values = np.array([[-1, 1], [2, 2], [-2, -1], [1, -2], [3, 0.5]])  # (S, W)
query = np.array([0.0, 2.2])  # (H,)
S, H = keys.shape
W = values.shape[-1]


def softmax(scores):
    """Returns the weights over the last axis."""
    # Less the largest: the same weights, and no power that overflows.
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


scores = keys @ query / np.sqrt(H)
weights = softmax(scores)
output = weights @ values
assert scores.shape == weights.shape == (S,) and output.shape == (W,)
assert abs(weights.sum() - 1) < 1e-12
for word, score, weight in zip(WORDS, scores, weights, strict=True):
    print(f"{word:<5} score {score:5.2f}   weight {weight:.2f}")
print("output", output.round(2))
# The library's attention works on (B, T, N, H): one row, query and head here.
asked = [x.astype("float32")[None] for x in (query[None], keys, values)]
found = attend(*(x[:, :, None] for x in asked))
np.testing.assert_allclose(to_numpy(found)[0, 0, 0], output, atol=1e-5)

# %% alt="Keys and a query as arrows; weights as bars; values and their mean"
figure = Figure(figsize=(10, 3.3), layout="constrained")
left, middle, right = figure.subplots(1, 3)
for word, key in zip(WORDS, keys, strict=True):
    left.plot([0, key[0]], [0, key[1]], "o-", color="C0", markevery=[1])
    left.annotate(word, key, (4, 4), textcoords="offset points")
left.annotate("", query, (0, 0), arrowprops={"arrowstyle": "->", "color": "C3"})
left.annotate("query", query, (-36, -2), textcoords="offset points", color="C3")
left.set(title="keys", xlim=(-1, 2.7), ylim=(-0.3, 2.5))
left.set(xlabel="a thing", ylabel="said of a thing")
middle.bar(WORDS, weights)
middle.set(title="weights", ylim=(0, 1))
right.scatter(*values.T, s=20 + 600 * weights, alpha=0.6)
for word, value in zip(WORDS, values, strict=True):
    right.annotate(word, value, (6, 6), textcoords="offset points")
right.plot(*output, "*", color="C3", markersize=14)
right.set(title="values, and their mean (star)", xlim=(-3, 4), ylim=(-3, 3))
figure

# %% [markdown]
# The output lies among the values, nearest to those that were asked for.
# Attention looks up, but softly: it gives a mean, never something that no value
# points to.
#
# ## Why the root of H?
#
# Let the features of queries and keys be independent, of mean 0 and variance 1.
# A product of H of them has variance H, so wider heads have larger scores, and
# large scores make a softmax that takes one key and forgets the others. Divided
# by $\sqrt H$ the variance is 1, whatever the width:
#
# $$\mathrm{Var}(q \cdot k) = H, \qquad
# \mathrm{Var}\Big(\frac{q \cdot k}{\sqrt H}\Big) = 1 .$$

# %% alt="Sorted weights of sixteen keys: steep without the root, flat with it"
DRAWS, KEYS = 2000, 16
figure = Figure(figsize=(8.5, 3.2), layout="constrained")
panels = figure.subplots(1, 2, sharey=True)
largest = {}
for width, look in ((4, "o-"), (64, "s--"), (1024, "^-.")):
    q = generator.normal(size=(DRAWS, 1, width))
    k = generator.normal(size=(DRAWS, KEYS, width))
    z = (q * k).sum(-1)  # (draws, S)
    for panel, divided, name in zip(
        panels, (z, z / np.sqrt(width)), ("plain", "divided"), strict=True
    ):
        ranked = np.sort(softmax(divided), -1)[:, ::-1].mean(0)
        panel.plot(range(1, KEYS + 1), ranked, look, label=f"H = {width}")
        largest[name, width] = ranked[0]
    print(
        f"H = {width:4}: variance {z.var():7.1f}, divided "
        f"{(z / np.sqrt(width)).var():.2f}; the largest of {KEYS} weights "
        f"{largest['plain', width]:.2f}, divided "
        f"{largest['divided', width]:.2f}"
    )
    np.testing.assert_allclose(z.var(), width, rtol=0.1)
assert largest["plain", 1024] > 0.9
assert largest["divided", 1024] < largest["divided", 4] + 0.1
panels[0].set(title=r"softmax($q \cdot k$)", ylabel="weight", xlabel="rank")
panels[1].set(title=r"softmax($q \cdot k / \sqrt{H}$)", xlabel="rank")
panels[1].legend()
figure

# %% [markdown]
# ## What a softmax lets through
#
# Training changes scores by what the loss says of the weights. How a weight
# changes with a score is the softmax's Jacobian, one number for each pair of
# keys:
#
# $$J_{ij} = \frac{\partial w_i}{\partial z_j}
# = w_i (\delta_{ij} - w_j) .$$
#
# Where one weight is nearly 1, all of these are nearly 0: the layer has made up
# its mind, and nothing that the loss says gets through. That is what the root
# is for.


# %%
def jacobian(w):
    """Returns J (S, S) from the weights (S,)."""
    return np.diag(w) - np.outer(w, w)


def by_differences(z, step=1e-6):
    """Returns J (S, S) from scores (S,), by trying."""
    moved = z + step * np.eye(len(z)), z - step * np.eye(len(z))
    return ((softmax(moved[0]) - softmax(moved[1])) / (2 * step)).T


z = np.array([2.0, 1.0, 0.5, 0.0, -1.0])
through = {}
for name, scale in (("as they are", 1), ("six times as large", 6)):
    found = jacobian(softmax(scale * z))
    np.testing.assert_allclose(found, by_differences(scale * z), atol=1e-8)
    assert abs(found.sum()) < 1e-12  # shares: what one gains others lose
    through[name] = np.linalg.norm(found)
    print(f"scores {name:<19} norm of J {through[name]:.3f}")
assert through["six times as large"] < through["as they are"] / 10

# %% alt="Two tables of derivatives: full of numbers, and nearly empty"
draw_grids(
    {
        f"scores {name}: |J|": np.abs(jacobian(softmax(scale * z)))
        for name, scale in (("as they are", 1), ("six times as large", 6))
    },
    ylabel="weight",
    xlabel="score",
    numbers=True,
    most=0.25,
)

# %% [markdown]
# ## Many queries at once
#
# T queries are the rows of a matrix, and all of the above is three lines:
#
# $$\mathrm{Attention}(Q, K, V) =
# \mathrm{softmax}\Big(\frac{Q K^\top}{\sqrt H} + M\Big) V, \qquad
# M_{ts} = \begin{cases} 0 & t \text{ may see } s \\
# -\infty & \text{otherwise.} \end{cases}$$
#
# The mask comes before the softmax, so that what is hidden has a weight of
# exactly 0 and the others still sum to 1. In this library True means: may
# attend.


# %%
def attention(q, k, v, sees=None):
    """Returns the output (..., T, W) and the weights (..., T, S)."""
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if sees is not None:
        scores = np.where(sees, scores, -np.inf)
    weights = softmax(scores)
    return weights @ v, weights


T, S, H = 4, 6, 8
q, k, v = (generator.normal(size=(n, H)) for n in (T, S, S))
output, weights = attention(q, k, v)
assert output.shape == (T, H) and weights.shape == (T, S)
np.testing.assert_allclose(weights.sum(-1), 1)
np.testing.assert_allclose(output[2], attention(q[2:3], k, v)[0][0])
print("Q", q.shape, "K", k.shape, "V", v.shape, "->", output.shape)

# %% [markdown]
# ## Heads
#
# Where do queries, keys and values come from? All from the same token vectors
# $x$ of D features, by matrices that are learned. A **head** is one such set of
# matrices, with H features each; N of them look at the same tokens, and what
# they found is put side by side and mixed once more (sec. 3.2.2):
#
# $$\mathrm{head}_n = \mathrm{Attention}(x W^Q_n, x W^K_n, x W^V_n), \qquad
# \mathrm{MultiHead}(x) = [\mathrm{head}_1; \ldots; \mathrm{head}_N]\, W^O .$$
#
# With $H = D / N$, N narrow heads have as many weights as one wide one. And N
# small products are one large one, cut into pieces afterwards. Three ways to
# say so:

# %%
T, N, H = 6, 3, 4
D = N * H
x = generator.normal(size=(T, D))
kernel = generator.normal(size=(D, N, H))
one_by_one = np.stack([x @ kernel[:, n] for n in range(N)])
at_once = np.einsum("td,dnh->nth", x, kernel)
one_product = x @ kernel.reshape(D, N * H)  # (T, N H)
cut = one_product.reshape(T, N, H).swapaxes(0, 1)
for heads in (one_by_one, at_once, cut):
    assert heads.shape == (N, T, H)
    np.testing.assert_allclose(heads, one_by_one)
print(f"(T, D) = {x.shape} -> (T, N H) = {one_product.shape}", end=" ")
print(f"-> (N, T, H) = {cut.shape}")

# %% [markdown]
# Axes have to be exchanged behind the `reshape`. Asking at once for (N, T, H)
# gives the right shape and no error, and each head gets pieces of a few tokens
# as if they were tokens. Here every entry says whose it is:

# %% alt="Right: each row of a head is one token. Wrong: tokens are mixed up"
owner = np.repeat(np.arange(T)[:, None], N * H, axis=1)  # (T, N H)
right_way = owner.reshape(T, N, H).swapaxes(0, 1)
wrong_way = owner.reshape(N, T, H)
assert right_way.shape == wrong_way.shape == (N, T, H)
assert (right_way == np.arange(T)[None, :, None]).all()
assert (wrong_way != right_way).any()
figure = Figure(figsize=(9, 3.4), layout="constrained")
panels = figure.subplots(1, 2 * N, sharey=True)
for number, panel in enumerate(panels):
    shown = (right_way if number < N else wrong_way)[number % N]
    panel.imshow(shown, cmap="viridis", vmin=0, vmax=T - 1)
    for (row, column), token in np.ndenumerate(shown):
        panel.text(
            column,
            row,
            str(token),
            ha="center",
            va="center",
            color="black" if token > T / 2 else "white",
        )
    panel.set(xticks=[], yticks=range(T), xlabel=f"head {number % N}")
panels[0].set_ylabel("row of the head")
panels[1].set_title("reshape(T, N, H), axes exchanged")
panels[N + 1].set_title("reshape(N, T, H): wrong")
figure

# %% [markdown]
# ## The layer
#
# With biases, as Keras has them, and with a `memory` that keys and values come
# from: x itself in self-attention, something else in cross-attention. `w` are
# the weights of a layer of the library, by name.


# %%
def numpy_of(layer):
    """Returns the weights of a layer as float64, named as below it."""
    return {
        weight.path.partition("/")[2]: to_numpy(weight).astype("float64")
        for weight in layer.weights
    }


def heads_of(x, w, name):
    """Returns the queries, keys or values of all heads, (N, T, H)."""
    kernel, bias = w[f"{name}/kernel"], w[f"{name}/bias"]
    return np.einsum("td,dnh->nth", x, kernel) + bias[:, None]


def multi_head(x, memory, w, sees=None):
    """Returns the output (T, D) and the weights (N, T, S)."""
    q = heads_of(x, w, "query")  # (N, T, H)
    k, v = (heads_of(memory, w, name) for name in ("key", "value"))
    # Fewer heads of keys and values: each serves several queries' heads.
    k, v = (np.repeat(heads, len(q) // len(heads), axis=0) for heads in (k, v))
    mixed, weights = attention(q, k, v, sees)
    kernel = w["attention_output/kernel"]  # (N, W, D)
    output = np.einsum("ntw,nwd->td", mixed, kernel)
    return output + w["attention_output/bias"], weights


# %% [markdown]
# Does it compute what the library computes? Self-attention, causal, with
# padding behind the fourth token, with shared heads of keys and values, and
# cross-attention, T = 3 queries to S = 6 keys:

# %%
T, S, D, N, H = 6, 6, 12, 4, 3
x = generator.normal(size=(T, D)).astype("float32")
few = x[:3]
causal = np.tril(np.ones((T, T), bool))
there = np.arange(S) < 4
CASES = {
    "self-attention": (x, x, None, {}, {}),
    "causal": (x, x, causal, {"causal": True}, {}),
    "padding": (x, x, there[None], {}, {"value_mask": there[None]}),
    "cross-attention": (few, x, None, {}, {}),
    "two key heads": (x, x, None, {"num_key_value_heads": 2}, {}),
}
seen, layers = {}, {}
for name, (tokens, memory, sees, options, masks) in CASES.items():
    layer = MultiHeadAttention(
        N,
        H,
        # Zeros, the default, would hide a bias that was forgotten.
        bias_initializer=keras.initializers.RandomNormal(stddev=0.5),
        kernel_initializer=keras.initializers.RandomNormal(stddev=0.4),
        **options,
    )
    output, weights = layer(
        tokens[None], memory[None], return_attention_scores=True, **masks
    )
    by_hand, expected = multi_head(tokens, memory, numpy_of(layer), sees)
    assert by_hand.shape == (len(tokens), D)
    assert expected.shape == (N, len(tokens), len(memory))
    difference = np.abs(to_numpy(output)[0] - by_hand).max()
    apart = np.abs(to_numpy(weights)[0] - expected).max()
    assert difference < 1e-5 > apart
    seen[name], layers[name] = expected, layer
    print(
        f"{name:<15} output {difference:.0e}, weights {apart:.0e} apart, "
        f"{layer.count_params()} parameters"
    )
    results.setdefault("differences", {})[name] = float(difference)

# %% alt="Weights of one head: all, causal, without padding, three queries"
draw_grids(
    {
        name: seen[name][0]
        for name in ("self-attention", "causal", "padding", "cross-attention")
    },
    numbers=True,
)

# %% [markdown]
# What is hidden is 0, exactly; any other 0.00 is rounded. Every row sums to 1:
# what is hidden leaves more for the others.
#
# ### It cannot look ahead
#
# If the causal layer could, an output would change where the tokens behind it
# are left away:

# %%
layer = layers["causal"]
whole = to_numpy(layer(x[None], x[None]))[0]
for length in (2,) if QUICK else range(1, T):
    alone = to_numpy(layer(x[None, :length], x[None, :length]))[0]
    assert alone.shape == (length, D)
    np.testing.assert_allclose(alone, whole[:length], atol=1e-5)
open_one = layers["self-attention"]
alone = to_numpy(open_one(x[None, :2], x[None, :2]))[0]
moved = np.abs(alone - to_numpy(open_one(x[None], x[None]))[0, :2]).max()
assert moved > 1e-2
print(f"causal: the same to 1e-5; without a mask it moves by {moved:.2f}")

# %% [markdown]
# What if a query sees nothing at all? Then `softmax` takes $-\infty$ from
# $-\infty$, which is no number. The library gives exact zeros; [Masks and
# positions](../masks/index.md) looks at that, and at all masks as one rule.
#
# ### The way back
#
# Let g be the gradient of something at the output. The steps backwards, for
# each head, with $P$ its weights and $O = P V$:
#
# $$\begin{aligned}
# dV &= P^\top dO, & dP &= dO\, V^\top, \\
# dZ_{ts} &= P_{ts} \Big(dP_{ts} - \textstyle\sum_j P_{tj}\, dP_{tj}\Big), &
# dQ &= dZ\, K / \sqrt H, \quad dK = dZ^\top Q / \sqrt H .
# \end{aligned}$$
#
# The line with $dZ$ is the Jacobian from above, put to use.


# %%
def ways_back(x, w, g):
    """Returns d(g . output) / dx through q, k and v: three (T, D)."""
    q, k, v = (heads_of(x, w, name) for name in ("query", "key", "value"))
    _, P = attention(q, k, v)  # (N, T, T)
    dO = np.einsum("td,nwd->ntw", g, w["attention_output/kernel"])
    dV, dP = P.swapaxes(1, 2) @ dO, dO @ v.swapaxes(1, 2)
    dZ = P * (dP - (P * dP).sum(-1, keepdims=True))
    root = np.sqrt(q.shape[-1])
    dQ, dK = dZ @ k / root, dZ.swapaxes(1, 2) @ q / root
    return [
        np.einsum("nth,dnh->td", d, w[f"{name}/kernel"])
        for name, d in (("query", dQ), ("key", dK), ("value", dV))
    ]


direction = generator.normal(size=D)
g = np.zeros((T, D))
g[-1] = direction  # only the last output is asked about
ways = ways_back(x, numpy_of(open_one), g)
source = keras.Input((T, D))
model = keras.Model(source, open_one(source, source))
found = input_gradients.input_gradients(model, x[None], direction[None])[0]
difference = np.abs(sum(ways) - found).max()
assert found.shape == (T, D) and difference < 1e-5
print(f"gradient at {T} x {D} inputs: {difference:.0e} apart")
results["gradient"] = float(difference)

# %% alt="Gradient at each token, by the way it came: query, key or value"
figure = Figure(figsize=(6.5, 3), layout="constrained")
panel = figure.subplots()
for shift, (name, way) in enumerate(
    zip(("query", "key", "value"), ways, strict=True)
):
    heights = np.linalg.norm(way, axis=-1)
    panel.bar(np.arange(T) + 0.27 * (shift - 1), heights, 0.25, label=name)
panel.set(xlabel="token", ylabel="norm of the gradient", xticks=range(T))
panel.legend(loc="upper center")
assert np.abs(ways[0][:-1]).max() == 0 < np.abs(ways[0][-1]).max()
figure

# %% [markdown]
# The last token is asked: only there does something come back through the
# query. Through keys and values it reaches every token in one step, however far
# away ([Why attention?](../why_attention/index.md) measures how far that goes).
#
# ## What are several heads for?
#
# A head has one softmax, and gives one mean. To look at two places it must mix
# them. To see whether that matters, here is a task that needs two: letters in a
# circle, and at every place the questions *which letter stands two places
# before?* and *which one three places behind?*

# %%
LENGTH, LETTERS, DISTANCES, BATCH = 12, 16, (-2, 3), 64
train = two_places.draw(
    run.steps * BATCH, LENGTH, LETTERS, DISTANCES, seed=run.seed
)
test = two_places.draw(
    16 if QUICK else 512, LENGTH, LETTERS, DISTANCES, seed=run.seed + 1
)
P = len(DISTANCES)
assert train.tokens.shape == (run.steps * BATCH, LENGTH)
assert train.answers.shape == (run.steps * BATCH, LENGTH, P)
line = "".join(chr(65 + token) for token in test.tokens[0])
before, behind = (chr(65 + letter) for letter in test.answers[0, 5])
print(f"{line}: at {line[5]}, place 5, the answers are {before} and {behind}")


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


curves, shares, by_question, looks, learned = {}, {}, {}, {}, {}
for heads in (1, 2) if QUICK else (1, 2, 4):
    model, looker = two_places.learner(
        LENGTH, LETTERS, P, heads, run.width, run.seed
    )
    model.compile(
        keras.optimizers.Adam(1e-2),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    curve = Curve()
    model.fit(
        train.tokens,
        train.answers,
        batch_size=BATCH,
        shuffle=False,
        callbacks=[curve],
        verbose=0,
    )
    logits = model.predict(test.tokens, batch_size=256, verbose=0)
    assert logits.shape == (len(test.tokens), LENGTH, P, LETTERS)
    right = logits.argmax(-1) == test.answers
    curves[heads], shares[heads] = curve.losses, float(right.mean())
    by_question[heads] = right.mean((0, 1)).tolist()
    # Words change nothing here, places all: the mean over rows shows that.
    looks[heads] = looker.predict(test.tokens, verbose=0).mean(0)
    assert looks[heads].shape == (heads, LENGTH, LENGTH)
    learned[heads] = two_places.mass(looks[heads], DISTANCES)
    print(
        f"{heads} heads of {run.width // heads:2} features, "
        f"{model.count_params():,} parameters: {shares[heads]:6.1%} right, "
        f"loss {curves[heads][-20:].mean():.3f}"
    )
results["heads"] = {str(N): found for N, found in by_question.items()}

# %% alt="Loss over steps: one head stays near ln 2, two and four go to zero"
figure = Figure(figsize=(6.5, 3.2), layout="constrained")
panel = figure.subplots()
for (heads, losses), look in zip(
    curves.items(), ("C0-", "C1--", "C2-."), strict=False
):
    panel.plot(losses, look, label=f"N = {heads}")
panel.axhline(np.log(2), color="grey", linewidth=0.8)
panel.text(0, np.log(2) + 0.04, "ln 2", fontsize=8)
panel.set(xlabel="step", ylabel="loss (nats an answer)", ylim=(0, None))
panel.legend()
figure

# %% alt="Where they look: one head spreads over both places, two share them"
draw_grids(
    {
        f"one head: {shares[1]:.0%} right": looks[1][0],
        "two heads, the first": looks[2][0],
        f"two heads, the second: {shares[2]:.0%} right": looks[2][1],
    },
    rows=range(LENGTH),
    columns=list(map(str, range(LENGTH))),
    ylabel="place that asks",
    xlabel="place that is looked at",
    side=2.7,
)

# %% [markdown]
# One head looks at both places at once, and gets a mean of two letters. With
# equal weights it would know which two they are, and not which is where: that
# costs $\ln 2 = 0.69$ nats an answer (and nothing where both are the same
# letter, once in sixteen times). The letter of the place with a little more
# weight is its first choice for *both* questions: nearly always right at one,
# mostly wrong at the other. The dense layer behind it cannot get both right.
# Two heads take one place each. They need not be wider, or have more weights;
# they need to be two.

# %%
for heads, found in learned.items():
    said = "; ".join(
        ", ".join(f"{share:.2f}" for share in head) for head in found
    )
    before, behind = by_question[heads]
    print(f"N = {heads}: {before:.0%} and {behind:.0%} right; weight on")
    print(f"       (two before, three behind), by head: {said}")
if WHOLE:
    assert abs(curves[1][-20:].mean() - np.log(2)) < 0.1
    assert shares[1] < 0.65 and min(shares[2], shares[4]) > 0.99
    assert max(by_question[1]) > 0.5 > min(by_question[1])
    # Each place has a head of its own.
    assert (learned[2].max(0) > 0.8).all()
    assert sorted(learned[2].argmax(0)) == [0, 1]

# %% [markdown]
# ## What it costs
#
# For T tokens, with $N H = D$, counting multiply-adds:
#
# $$\underbrace{4\, T D^2}_{\text{projections}} + \underbrace{2\, T^2 D}_{
# \text{scores and means}} .$$
#
# Heads do not appear: N of width D / N cost as much as one of width D. From
# $T = 2 D$ on the second term is the larger one. And there are $N T^2$ weights,
# which the plain kernel holds and the others do not
# (`keras_attn.ops.attention_plan` says which one runs).

# %%
D, N = 64, 4
LENGTHS = [n for n in (32, 64, 128, 256, 512, 1024, 2048) if n <= run.longest]
COUNT = {
    "projections": [4 * n * D**2 for n in LENGTHS],
    "scores and means": [2 * n**2 * D for n in LENGTHS],
}


def seconds_of(task, rounds):
    """Returns the median time of a task that has been compiled before."""
    task()
    taken = []
    for _ in range(rounds):
        started = time.perf_counter()
        task()
        taken.append(time.perf_counter() - started)
    return statistics.median(taken)


# False: the plain kernel. None: the library chooses.
KERNELS = {"all weights held": False, "the library's choice": None}
times = {name: [] for name in KERNELS}
for length in LENGTHS:
    tokens = generator.normal(size=(1, length, D)).astype("float32")
    for name, flash in KERNELS.items():
        source = keras.Input((length, D))
        layer = MultiHeadAttention(N, D // N, flash_attention=flash)
        model = keras.Model(source, layer(source, source))
        times[name].append(
            seconds_of(
                lambda model=model, x=tokens: model.predict_on_batch(x),
                run.rounds,
            )
        )
    held = 4 * N * length**2 / 2**20
    print(
        f"T = {length:4}: {COUNT['projections'][len(times[name]) - 1]:12,} + "
        f"{COUNT['scores and means'][len(times[name]) - 1]:12,} multiply-adds, "
        f"{held:6.1f} MiB of weights, "
        + ", ".join(f"{1e3 * found[-1]:6.1f} ms" for found in times.values())
    )
assert 4 * (2 * D) * D**2 == 2 * (2 * D) ** 2 * D  # at T = 2 D
results["seconds"] = {"lengths": LENGTHS, **times}

# %% alt="Left: multiply-adds over T, one line twice as steep. Right: times"
figure = Figure(figsize=(9, 3.4), layout="constrained")
left, right = figure.subplots(1, 2)
for (name, counted), look in zip(COUNT.items(), ("o-", "s--"), strict=True):
    left.plot(LENGTHS, counted, look, label=name)
left.axvline(2 * D, color="grey", linewidth=0.8)
left.text(2 * D * 1.05, COUNT["projections"][0], "T = 2 D", fontsize=8)
for (name, taken), look in zip(times.items(), ("o-", "s--"), strict=True):
    right.plot(LENGTHS, 1e3 * np.array(taken), look, label=name)
left.set(ylabel="multiply-adds", title=f"D = {D}, N = {N}")
right.set(ylabel="ms", title="one pass, on this machine")
for panel in (left, right):
    panel.set_xscale("log", base=2)
    panel.set_yscale("log")
    panel.set_xlabel("T, tokens")
    panel.legend()
figure

# %% [markdown]
# ## Shared keys and values
#
# A decoder keeps the keys and values of all tokens it has written:
# $2\, N H$ numbers a token and layer. With K heads of keys and values, each
# serving N / K heads of queries, these are $2\, K H$ (Shazeer 2019,
# <https://arxiv.org/abs/1911.02150>, for K = 1; Ainslie et al. 2023,
# <https://arxiv.org/abs/2305.13245>). It is the same layer with equal matrices
# in each group: copy the kernels of the K heads, and N full heads compute the
# same.

# %%
N, H, T = 8, 8, 5
D = N * H
x = generator.normal(size=(1, T, D)).astype("float32")
cached, parameters = {}, {}
for K in (2,) if QUICK else (8, 4, 2, 1):
    grouped = MultiHeadAttention(N, H, num_key_value_heads=K)
    full = MultiHeadAttention(N, H)
    output = to_numpy(grouped(x, x))
    full.build(x.shape, x.shape)
    copied = []
    for weight, target in zip(grouped.weights, full.weights, strict=True):
        weight = to_numpy(weight)
        # Kernels (D, K, H) and biases (K, H) have their heads last but one.
        if weight.shape != target.shape:
            weight = np.repeat(weight, N // K, axis=-2)
        copied.append(weight)
    full.set_weights(copied)
    difference = np.abs(to_numpy(full(x, x)) - output).max()
    assert difference < 1e-5
    cached[K], parameters[K] = 2 * K * H, grouped.count_params()
    print(
        f"K = {K}: {parameters[K]:6,} parameters, {cached[K]:4} numbers kept a "
        f"token; with {N} copied heads {difference:.0e} apart"
    )
results["kept a token"] = {str(K): kept for K, kept in cached.items()}

# %% alt="Bars: what is kept a token, and parameters, for K heads"
figure = Figure(figsize=(7, 2.6), layout="constrained")
for panel, found, title in zip(
    figure.subplots(1, 2),
    (cached, parameters),
    ("numbers kept a token", "parameters"),
    strict=True,
):
    bars = panel.bar([f"K = {K}" for K in found], list(found.values()), 0.6)
    panel.bar_label(bars)
    panel.set(title=title, ylim=(0, 1.2 * max(found.values())))
figure

# %% [markdown]
# ## What should hold
#
# Everything by hand is the library's, to $10^{-5}$:

# %%
assert max(results["differences"].values()) < 1e-5 > results["gradient"]
print(f"largest difference {max(results['differences'].values()):.0e}")

# %%
results["settings"] = {k: str(v) for k, v in run._asdict().items()}
run.out.mkdir(parents=True, exist_ok=True)
(run.out / "results.json").write_text(
    json.dumps(results, indent=1), encoding="utf-8"
)
program = ".venv/bin/python tutorials/multi_head.py"
print(f"""
All figures are in {run.out / "results.json"}.

What to try next, with {program} behind it:
  SEED=2                  other weights: does one head ever learn it?
  STEPS=3000              does more training help it?
  LONGEST=8192 ROUNDS=1   longer sequences, with and without all weights""")

# %% [markdown]
# ## Exercises
#
# **1.** Fill in. In a layer with D = 512, N = 8 heads and biases, a head has
# ___ features. The kernel of the queries has the shape ___, that of the output
# ___. Together the layer has ___ parameters, and with 16 heads ___.
#
# <details markdown>
# <summary>Answer</summary>
#
# 64; (512, 8, 64); (8, 64, 512). Four kernels of $512^2$ and four biases of
# 512: 1,050,624, with 16 heads as many. (`MultiHeadAttention(8, 64)` on inputs
# of width 512: `count_params()`.)
#
# </details>
#
# **2.** Fill in the gaps: dropping which axes makes this the scores of all
# heads of a batch?
#
#     scores = np.einsum("____,____->bnts", query, key) / np.sqrt(H)
#
# with queries of shape (B, T, N, H) and keys of shape (B, S, N, H). What would
# the result be if one wrote `nbts` in place of `bnts`, and would an error tell?
#
# <details markdown>
# <summary>Answer</summary>
#
# `"btnh,bsnh->bnts"`: the axis H is summed over. With `nbts` heads and rows
# change places; where B = N nothing complains, and a mask of shape (B, 1, T, S)
# is laid over the heads instead of the rows.
#
# </details>
#
# **3.** One head failed at two places. Would two layers of one head each, with
# a residual sum around both, do it? And one head whose values are twice as
# wide?
#
# <details markdown>
# <summary>Answer</summary>
#
# Two layers can: the first fetches one letter into a free part of the vector,
# the sum keeps the rest, and the second fetches the other. Wider values do not
# help: only the shares in the mean say which is where, and to a dense layer the
# larger share counts for more at both questions, however many numbers each has.
# (Unless the values themselves say where their letter stands. A product of
# letter and place could; here they are a sum.)
#
# </details>
