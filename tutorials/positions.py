# %% [markdown]
# # Positions
#
# In this tutorial you compute four positional encodings in NumPy, and measure
# what they tell a model about the order of its tokens:
#
# ![A table of 20 positions by 512 dimensions: the values alternate along
# positions in the first dimensions and are nearly constant in the
# last](positions-1.png)
#
# **You will learn** how sinusoidal, learned, rotary and ALiBi positions are
# computed, which models know the order of words and the position of a token, and
# why a causal model learns positions without an encoding.
#
# **Prerequisites**: the causal mask, from [Masks](../masks/index.md). **Time**:
# about 1 minute on one CPU core.
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

from keras_attn import layers

keras.utils.set_random_seed(1)
random = np.random.default_rng(1)
to_numpy, to_tensor = keras.ops.convert_to_numpy, keras.ops.convert_to_tensor
print(f"Keras {keras.__version__} on {keras.backend.backend()}")

# %% [markdown]
# ## Without positions, order is lost
#
# The output of attention is a weighted sum, and a sum has no order. Without a
# mask and without positions, two sentences with the same words in another order
# have the same vectors in another order, and so the same mean. Such a model is
# an advanced bag of words: the weights depend on the words, not on their order.
# `attend` is the attention of [Masks](../masks/index.md), after linear
# projections of x to q, k and v, and `add_positions` adds the sinusoidal encoding
# of the next section.
#
# ![Dog bites man and man bites dog: without positions, each word has the same
# vector in both](../../diagrams/order_is_lost.svg)

# %%
D = 32
attend = layers.MultiHeadAttention(num_heads=1, key_dim=D)
add_positions = layers.PositionalEmbedding()
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
# $$\mathrm{PE}_{\mathrm{pos},2i} = \sin(\mathrm{pos} / 10000^{2i/D}), \qquad
# \mathrm{PE}_{\mathrm{pos},2i+1} = \cos(\mathrm{pos} / 10000^{2i/D})$$
#
# ![Three rows of clocks for the positions 0 to 5: the hands of the first row
# turn by 1 radian per position, the others more
# slowly](../../diagrams/sinusoids_as_clocks.svg)
#
# ![The positional encoding of three positions is added to the embeddings of
# three tokens](../../diagrams/adding_positions.svg)
#
# Learned positions (Gehring et al. 2017, <https://arxiv.org/abs/1705.03122>)
# are a table of weights with a row for each position. Inputs cannot be longer
# than this table. The next picture shows sinusoids for 20 positions (rows) in 512
# dimensions (columns).

# %%
width = 512
pos = np.arange(20)[:, None]
angles = pos / 10000 ** (np.arange(0, width, 2) / width)  # (20, width / 2)
by_hand = np.stack([np.sin(angles), np.cos(angles)], -1).reshape(20, width)
blank = np.zeros((1, 20, width), "float32")
found = to_numpy(layers.PositionalEmbedding()(blank))[0]
np.testing.assert_allclose(found, by_hand, atol=1e-6)
by_distance = np.cos(angles).sum(-1)[np.abs(pos - pos.T)]
np.testing.assert_allclose(by_hand @ by_hand.T, by_distance, atol=1e-9)

# %% tags=["hide-input"] alt="A table of 20 positions by 512 dimensions: the values alternate along positions in the first dimensions and are nearly constant in the last"
figure, axis = plt.subplots(figsize=(8, 2.6), layout="constrained")
image = axis.imshow(by_hand, cmap="cividis", aspect="auto")
axis.set(xlabel="dimension", ylabel="position")
figure.colorbar(image)
plt.show()

# %% [markdown]
# The product of two sinusoidal rows depends only on their distance, because
# $\sin \alpha \sin \beta + \cos \alpha \cos \beta = \cos(\alpha - \beta)$.
# Attention can use this, but only after a projection, and with words added.
#
# ## Relative positions: rotary and ALiBi
#
# A relative encoding changes the scores, depending on the distance between
# query and key. **Rotary** positions (Su et al. 2021,
# <https://arxiv.org/abs/2104.09864>) rotate pairs of features of q and k (i and
# i + H/2 here, neighbors in the paper) by an angle proportional to the position.
# A product of two rotated vectors depends on the difference of their angles:
#
# $$\mathrm{rot}_{\mathrm{pos}_t}(q_t) \cdot \mathrm{rot}_{\mathrm{pos}_s}(k_s) =
# q_t \cdot \mathrm{rot}_{\mathrm{pos}_s - \mathrm{pos}_t}(k_s), \qquad
# \mathrm{angle}_i = \mathrm{pos} \cdot 10000^{-2i/H}$$
#
# ![Query and key are rotated by their positions; at equal distance, the angle
# between them is the same](../../diagrams/rotary.svg)


# %%
def rotate(x, pos):
    """Returns x (T, H), rotated by the positions pos (T,)."""
    half = x.shape[-1] // 2
    angles = pos[:, None] * 10000.0 ** (-np.arange(half) / half)
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
# multiple of the distance from the score, with a slope $a_n$ for each head n:
#
# $$z_{ts} = \frac{q_t \cdot k_s}{\sqrt H} - a_n |\mathrm{pos}_t -
# \mathrm{pos}_s|, \qquad a_n = 2^{-8 (n + 1) / N}$$
#
# T5 (Raffel et al. 2020, <https://arxiv.org/abs/1910.10683>) learns what to add
# instead, one number for each range of distances: `layers.T5Position`.
#
# ![A table of the distances of five queries and five keys; each diagonal has
# one distance](../../diagrams/relative_positions.svg)

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
# <!-- figure: score_distance -->
#
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
pos = np.arange(T, dtype="int32")[None]
same_word = np.repeat(x[:, 1:2], T, axis=1)
after_start = np.concatenate([x[:, :1], same_word[:, 1:]], axis=1)


def answers(kind, causal):
    """Returns the four answers, each True or False."""
    layer = layers.MultiHeadAttention(
        N, D // N, causal=causal, attention_position=relative.get(kind)
    )

    def call(x, pos):
        x, pos = to_tensor(x), to_tensor(pos)
        x = absolute[kind](x, positions=pos) if kind in absolute else x
        return to_numpy(layer(x, x, query_positions=pos, key_positions=pos))[0]

    base, row, repeated = (call(y, pos) for y in (x, after_start, same_word))
    pairs = (
        (call(x[:, order], pos), base[order]),
        (call(x, pos + 17), base),
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
# of the start token at position t is $1 / (t + 1)$ (`attention` is the function
# of [Masks](../masks/index.md#the-causal-mask)). The output then determines t. We
# train a small model to predict the position of every token of random
# sequences that begin with a start token: one attention layer and a
# feed-forward network, which is applied to each token separately. Without a
# causal mask, equal words of a sequence have equal vectors, and only the start
# token has a known position. Such a model cannot expect more than $1/16 + 15/16
# \cdot 1/15 = 12.5\ \%$ correct predictions.


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
# - Without a causal mask and positions, attention is a bag of words. A causal
#   mask alone tells the first word from the tenth, after a start token.
# - Absolute encodings add to tokens, relative ones change scores by distance.
# - Only absolute encodings notice a shift of all positions.
# - A small causal model without positional encoding learned positions.
#
# ## Exercises
#
# **1.** Fill in the gaps. (a) Positional encodings represent the ___ of words.
# (b) Rotary positions rotate ___ and ___. (c) A table of learned positions
# limits the ___ of the input.
#
# <details markdown>
# <summary>Answer</summary>
#
# (a) order; (b) queries and keys; (c) length.
#
# </details>
#
# **2.** A pair of sinusoidal features at position pos + d is a rotation of the
# same pair at position pos. Write the matrix, and test it for d = 5 and i = 10.
#
# <details markdown>
# <summary>Answer</summary>
#
# The angle depends on d and i only, not on pos:
#
# ```python
# d, i = 5, 10
# angle = d / 10000 ** (2 * i / width)
# sin, cos = np.sin(angle), np.cos(angle)
# features = by_hand[:, 2 * i : 2 * i + 2]
# rotated = features[:-d] @ np.array([[cos, -sin], [sin, cos]])
# np.testing.assert_allclose(rotated, features[d:], atol=1e-9)
# ```
#
# </details>
#
# **3.** Which accuracy can the model without a causal mask expect on sequences
# of T tokens?
#
# <details markdown>
# <summary>Answer</summary>
#
# $1/T + (T - 1)/T \cdot 1/(T - 1) = 2/T$: the start token is correct, and of
# the other T - 1 positions it can only predict the most frequent.
#
# </details>
#
# **Next**: [Multi-head attention from scratch](../multi_head/index.md) builds
# the attention layer of this page, with several heads.
