# %% [markdown]
# # Masks and positions
#
# In this tutorial you write the masks of attention and four positional
# encodings in NumPy, and measure what they tell a model about the order of its
# tokens:
#
# ![Eight masks, each a table of queries and keys: padding, causal, window,
# packed sentences, and combinations of them](masks-2.png)
#
# **You will learn** how one rule describes all masks, why padding must not
# change an output and how to test it, how sinusoidal, learned, rotary and ALiBi
# positions are computed, and which models know the position of a token.
#
# **Prerequisites**: dot-product attention, from [Attention from its first
# forms](../first_forms/index.md). **Time**: about 1 minute on one CPU core.
#
# **Published result**: Haviv et al. 2022 (<https://arxiv.org/abs/2203.16634>)
# train models without positional encodings. Causal language models with 1.3
# billion parameters reach a perplexity of 13.10, against 13.05 with learned
# positions. Masked language models, which have no causal mask, reach 147.18
# against 4.06. Our last section repeats the comparison with 11,152 parameters
# and another task, to predict positions, so only the conclusion is comparable.

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
# In every mask of this library, True means that attention is allowed. In
# PyTorch's `key_padding_mask`, True means the opposite.


# %%
def softmax(z):
    """Returns the weights over the last axis."""
    powers = np.exp(z - z.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def attention(q, k, v, mask):
    """Returns outputs (T, W) and weights (T, S), for a mask (T, S)."""
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
# $$p_t = \begin{cases} \text{number of earlier tokens of the same segment} &
# \text{slot } t \text{ has a token} \\ -1 & \text{it is padding.} \end{cases}$$
#
# `ops.packed_positions` computes it from segments and a token mask.

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
# & p_t \ge 0 \ \text{and}\ p_s \ge 0 & & \text{both are tokens} \\
# & p_t \ge p_s & & \text{causal} \\
# & |p_t - p_s| < \mathrm{window} & & \text{sliding window} \\
# & g_t = g_s & & \text{packed: same sentence} \\
# & A_{ts} & & \text{any other attention mask}
# \end{aligned}$$
#
# `ops.Visibility` stores these integers and options, a few numbers per token. A
# kernel expands them to T x S only where it needs the table. In the picture,
# allowed pairs are dark.


# %%
def mask_of(segments, causal=False, window=None):
    """Returns the mask (T, T) of one row of segments (T,)."""
    g, p = segments, positions_of(segments[None])[0]
    mask = (p[:, None] >= 0) & (p >= 0) & (g[:, None] == g)
    if causal:
        mask &= p[:, None] >= p
    if window is not None:
        mask &= np.abs(p[:, None] - p) < window
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
    p = ops.packed_positions(g, g > 0)
    visibility = ops.Visibility(p, p, None, None, g, g, **options)
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
# id 0; a copy without this attribute has lost it. The attention layer has one
# head: the equation above, after linear projections of x to q, k and v. [The
# next page](../multi_head/index.md) builds several heads.

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
# ## Without positions, order is lost
#
# The output of attention is a weighted sum, and a sum has no order. Without a
# mask and without positions, two sentences with the same words in another order
# have the same vectors in another order, and so the same mean. Such a model is
# an advanced bag of words: the weights depend on the words, not on their order.

# %%
x = random.normal(size=(1, 3, D)).astype("float32")  # dog bites man
rows = [x, x[:, ::-1].copy()]  # man bites dog
for name, layer, add in (
    ("neither", attend, to_tensor),
    ("causal mask", layers.MultiHeadAttention(1, D, causal=True), to_tensor),
    ("sinusoidal positions", attend, add_positions),
):
    means = [to_numpy(layer(add(row), add(row))).mean(1) for row in rows]
    change = np.abs(means[0] - means[1]).max()
    assert change < 1e-5 if name == "neither" else change > 1e-3
    print(f"{name:20} means of the two sentences differ by {change:.0e}")

# %% [markdown]
# ## Absolute positions: sinusoidal and learned
#
# An absolute encoding adds a vector to each token before the first layer. It is
# fixed or learned. The fixed one of Vaswani et al. 2017, sec. 3.5
# (<https://arxiv.org/abs/1706.03762>) has sines and cosines whose wavelengths
# grow from $2 \pi$ to $10000 \cdot 2 \pi$ (D is their $d_{model}$):
#
# $$PE_{p,2i} = \sin(p / 10000^{2i/D}), \qquad
# PE_{p,2i+1} = \cos(p / 10000^{2i/D})$$
#
# Learned positions (Gehring et al. 2017, <https://arxiv.org/abs/1705.03122>)
# are a table of weights with a row for each position. Inputs cannot be longer
# than this table. The picture shows sinusoids for 20 positions (rows) in 512
# dimensions (columns).

# %%
width = 512
p = np.arange(20)[:, None]
angles = p / 10000 ** (np.arange(0, width, 2) / width)  # (20, width / 2)
by_hand = np.stack([np.sin(angles), np.cos(angles)], -1).reshape(20, width)
blank = np.zeros((1, 20, width), "float32")
found = to_numpy(layers.PositionalEmbedding()(blank))[0]
np.testing.assert_allclose(found, by_hand, atol=1e-6)
by_distance = np.cos(angles).sum(-1)[np.abs(p - p.T)]
np.testing.assert_allclose(by_hand @ by_hand.T, by_distance, atol=1e-9)

# %% tags=["hide-input"] alt="A table of 20 positions by 512 dimensions: the values alternate along positions in the first dimensions and are nearly constant in the last"
figure, axis = plt.subplots(figsize=(8, 2.6), layout="constrained")
image = axis.imshow(by_hand, cmap="cividis", aspect="auto")
axis.set(xlabel="dimension", ylabel="position")
figure.colorbar(image)
plt.show()

# %% [markdown]
# The product of two sinusoidal rows depends only on their distance, since $\sin
# a \sin b + \cos a \cos b = \cos(a - b)$. Attention can use this, but it
# compares the rows only after a projection, and with words added.
#
# ## Relative positions: rotary and ALiBi
#
# A relative encoding changes the scores, depending on the distance between
# query and key. **Rotary** positions (Su et al. 2021,
# <https://arxiv.org/abs/2104.09864>) rotate pairs of features of q and k (i and
# i + H/2 here, neighbors in the paper) by an angle proportional to the position.
# A product of two rotated vectors depends on the difference of their angles:
#
# $$\mathrm{rot}_p(q) \cdot \mathrm{rot}_r(k) = q \cdot \mathrm{rot}_{r-p}(k),
# \qquad \mathrm{angle}_i = p \cdot 10000^{-2i/H}$$


# %%
def rotate(x, p):
    """Returns x (T, H), rotated by the positions p (T,)."""
    half = x.shape[-1] // 2
    angles = p[:, None] * 10000.0 ** (-np.arange(half) / half)
    a, b = x[:, :half], x[:, half:]
    sin, cos = np.sin(angles), np.cos(angles)
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


H, steps = 32, np.arange(64)
x = random.normal(size=(64, H))
as_head = to_tensor(x.astype("float32")[None, :, None])
found = layers.RotaryPosition().rotate(as_head, to_tensor(steps[None]))
found = to_numpy(found)[0, :, 0]
np.testing.assert_allclose(found, rotate(x, steps), atol=1e-5)

rotary, ones = {}, np.ones((64, H))
for start in (0, 1000):  # position of the query; the keys are before it
    q, k = rotate(ones[:1], np.array([start])), rotate(ones, start - steps)
    rotary[start] = (k @ q[0]) / np.sqrt(H)
np.testing.assert_allclose(rotary[0], rotary[1000], atol=1e-9)

# %% [markdown]
# **ALiBi** (Press et al. 2022, <https://arxiv.org/abs/2108.12409>) subtracts a
# multiple of the distance from the score. Each head n = 1 ... N has its own
# slope:
#
# $$z_{ts} = \frac{q_t \cdot k_s}{\sqrt H} - m_n |p_t - p_s|, \qquad m_n = 2^{-8
# n / N}$$
#
# T5 (Raffel et al. 2020, <https://arxiv.org/abs/1910.10683>) learns what to add
# instead, one number for each range of distances: `layers.T5Position`.

# %%
slopes = 2.0 ** -np.arange(1, 9)  # N = 8
alibi = -slopes[:, None] * steps
bias = layers.ALiBiPosition(8).bias()
found = bias.function(bias.parameters, to_tensor([[0]]), to_tensor(steps[None]))
np.testing.assert_allclose(to_numpy(found)[0, :, 0], alibi)

# %% tags=["hide-input"] alt="Rotary scores fall with the distance and oscillate, and ALiBi falls linearly with eight slopes"
figure, axes = plt.subplots(1, 2, figsize=(8, 2.8), layout="constrained")
for style, (start, scores) in zip(("-", ":"), rotary.items(), strict=True):
    axes[0].plot(steps, scores, style, lw=2, label=f"query at {start}")
axes[0].set(title="rotary, q = k = (1, ..., 1)", ylabel="score")
axes[0].legend()
axes[1].plot(steps, alibi.T)
axes[1].set(title="ALiBi, 8 heads", ylabel="added to the score", ylim=(-12, 1))
figure.supxlabel("distance")
plt.show()

# %% [markdown]
# ## Which models know order, shift and position?
#
# We ask three questions about each encoding, without and with a causal mask:
#
# - **order**: if the words are reordered, do their vectors change?
# - **shift**: if 17 is added to all positions, do the vectors change?
# - **first/tenth**: after a start token, the same word follows ten times. Does
#   the vector of the first differ from that of the tenth?

# %%
N, T = 4, 11
normal = keras.initializers.RandomNormal(stddev=1.0)
learned = layers.PositionalEmbedding("learned", "interleaved", 64, normal)
absolute = {"sinusoidal": layers.PositionalEmbedding(), "learned": learned}
relative = {"rotary": layers.RotaryPosition(), "ALiBi": layers.ALiBiPosition(N)}
x = random.normal(size=(1, T, D)).astype("float32")
order = np.roll(np.arange(T)[::-1], 3)
p = np.arange(T, dtype="int32")[None]
same_word = np.repeat(x[:, 1:2], T, axis=1)
after_start = np.concatenate([x[:, :1], same_word[:, 1:]], axis=1)


def answers(kind, causal):
    """Returns the four answers, each True or False."""
    layer = layers.MultiHeadAttention(
        N, D // N, causal=causal, attention_position=relative.get(kind)
    )

    def call(x, p):
        x, p = to_tensor(x), to_tensor(p)
        x = absolute[kind](x, positions=p) if kind in absolute else x
        return to_numpy(layer(x, x, query_positions=p, key_positions=p))[0]

    base, row, repeated = (call(a, p) for a in (x, after_start, same_word))
    pairs = (
        (call(x[:, order], p), base[order]),
        (call(x, p + 17), base),
        (row[1], row[10]),
        (repeated[1], repeated[10]),
    )
    changes = [float(np.abs(a - b).max()) for a, b in pairs]
    assert all(not 1e-5 < change < 1e-4 for change in changes)
    return [change > 1e-4 for change in changes]


# %%
print(f"{'':20} order  shift  first/tenth  the same without start")
for kind in ("none", *absolute, *relative):
    for causal in (False, True):
        found = answers(kind, causal)
        knows, is_absolute = kind != "none" or causal, kind in absolute
        assert found == [knows, is_absolute, knows, is_absolute]
        texts = [f"{'yes' if yes else 'no':6}" for yes in found]
        print(f"{kind + ', causal' * causal:20}", *texts)

# %% [markdown]
# - Without a causal mask and without positions, attention knows nothing about
#   order. It cannot tell the first word from the tenth.
# - With a causal mask it can, even without positions: the tenth word attends to
#   nine more tokens than the first.
# - Only absolute encodings notice a shift of all positions. Relative ones tell
#   the first word from the tenth only by the distance to other tokens, here to
#   the start token.
# - If the row contains nothing but the same word, without a start token, only
#   absolute encodings distinguish the positions. Others average equal values.
#
# ## A model without positions learns positions
#
# How can a causal model compute a position? If all scores are equal, the weight
# of the start token at position t is $1 / (t + 1)$. The output then determines
# t. We train a small model to predict the position of every token of random
# sequences that begin with a start token: one attention layer and a
# feed-forward network, which is applied to each token separately. Without a
# causal mask, equal words of a sequence have equal vectors, and only the start
# token has a known position. Such a model cannot expect more than $1/16 + 15/16
# \cdot 1/15 = 12.5\ \%$ correct predictions.

# %%
T, V = 16, 20
zeros = np.zeros((T, 4))
_, weights = attention(zeros, zeros, zeros, np.tri(T, dtype=bool))
np.testing.assert_allclose(weights[:, 0], 1 / (np.arange(T) + 1))


def make_model(causal):
    """Returns a model from ids (B, T) to logits of positions (B, T, T)."""
    ids = keras.Input((T,), dtype="int32")
    x = layers.TokenEmbedding(V, D, pad_id=None)(ids)
    x = x + layers.MultiHeadAttention(1, D, causal=causal)(x, x)
    x = keras.layers.Dense(4 * D, activation="relu")(x)
    return keras.Model(ids, keras.layers.Dense(T)(x))


ids = random.integers(1, V, (9600 + 500, T), dtype="int32")
ids[:, 0] = 0  # the start token
train, test = (ids[:64] if QUICK else ids[:9600]), ids[9600:]
labels = np.tile(np.arange(T), (9600, 1))

# %%
same = test[:, :, None] == test[:, None]  # the same word in one sequence
predictions = {}
for causal in (False, True):
    for seed in (1,) if QUICK else (1, 2, 3):
        keras.utils.set_random_seed(seed)
        model = make_model(causal)
        rate = keras.optimizers.schedules.CosineDecay(0.01, 450)
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(keras.optimizers.Adam(rate), loss)
        targets = labels[: len(train)]
        model.fit(train, targets, batch_size=64, epochs=3, verbose=0)
        found = model.predict(test, batch_size=500, verbose=0).argmax(-1)
        predictions[causal, seed] = found
        assert model.count_params() == 11_152
        accuracy = (found == labels[:500]).mean()
        print(f"{causal = !s:5}, {seed = }: {accuracy:6.1%} correct")
        equal = (found[:, :, None] == found[:, None])[same].mean()
        assert causal or equal > 0.999
        if not QUICK:
            assert accuracy > 0.95 if causal else accuracy < 0.14

# %% tags=["hide-input"] alt="Predicted against true positions of seed 1: without a causal mask the predictions do not depend on the position; with a causal mask they lie on the diagonal"
figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
for axis, causal in zip(axes, (False, True), strict=True):
    found = predictions[causal, 1]
    table = (found[..., None] == np.arange(T)).mean(0)  # (true, predicted)
    axis.imshow(1 - table, cmap="cividis", vmin=0, vmax=1)
    axis.set(title=f"causal: {causal}", xlabel="predicted", ylabel="position")
plt.show()

# %% [markdown]
# With a causal mask, all three seeds predict more than 95 % of the positions;
# without it, less than 14 %. As in Haviv et al., the mask is sufficient to learn
# positions.
#
# ## Summary
#
# - A position and a segment for each token describe all usual masks.
# - Padding must not change an output. `doctor` finds where a mask gets lost.
# - Absolute encodings add to tokens, relative ones change scores by distance.
# - Without a causal mask and positions, attention is a bag of words. A causal
#   mask alone tells the first word from the tenth, after a start token.
#
# ## Exercises
#
# **1.** Fill in the gaps. (a) Positional encodings represent the ___ of words.
# (b) The decoder uses ___ multi-head self-attention. (c) A row contains
# *(padding) a b (padding) c*; its positions are ___.
#
# <details markdown>
# <summary>Answer</summary>
#
# (a) order; (b) masked; (c) -1, 0, 1, -1, 2.
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
# `(p >= p[:, None]) & (p - p[:, None] < window)`. The first seven tokens: two
# more with each layer, whose inputs already depend on later tokens.
#
# </details>
#
# **Next**: [Multi-head attention from scratch](../multi_head/index.md) builds
# the attention layer of this page, with several heads.
