# %% [markdown]
# # Masks and positions
#
# A batch is a rectangle, and sentences are not. What is put into the gaps must
# not matter: does it? And attention looks at everything at once: how does it
# know who may be looked at, and what stood where?
#
# ![Eight tables of who sees whom, all from one rule](masks-2.png)
#
# Padding, order, windows, packed sentences, and all of them together: eight
# tables of who sees whom, drawn further down. They come from one rule with an
# integer or two for each token.
#
# You will
#
# - lay out sentences **padded** on the right, on the left, and **packed**;
# - write **one rule** for all masks in NumPy, and find the same in
#   `keras_attn.ops`;
# - see that **padding changes nothing**, by comparing each sentence alone and
#   in a batch, and what happens where somebody forgets the mask;
# - watch `keras.layers.MultiHeadAttention` **erase** the mask of its caller,
#   and find that with `keras_attn.doctor`;
# - ask what a query gets that **sees nothing**;
# - see **causality** and the reach of **windows** by changing the input;
# - write five kinds of **positions** by hand, see each of them, and measure
#   which of them know distances only.
#
# On two cores half a minute at most: the run of this page had one. All data is
# made up on the way; nothing is downloaded. As a program, on any backend:
#
#     KERAS_BACKEND=torch .venv/bin/python tutorials/masks.py

# %%
import json

import keras
import masks_settings
import numpy as np
import packed_rows
import program_settings
from grid_plots import draw_grids
from mask_plots import draw_batches, draw_levels, draw_tables
from matplotlib.figure import Figure

import keras_attn
from keras_attn import ops
from keras_attn.blocks import DecoderBlock, EncoderBlock
from keras_attn.layers import (
    ALiBiPosition,
    MultiHeadAttention,
    PositionalEmbedding,
    RotaryPosition,
    T5Position,
    TokenEmbedding,
)

try:
    run = masks_settings.read()
except ValueError as error:
    program_settings.explain_and_leave("masks", error)
keras.utils.set_random_seed(run.seed)
generator = np.random.default_rng(run.seed)
to_numpy, to_tensor = keras.ops.convert_to_numpy, keras.ops.convert_to_tensor
results = {"backend": keras.backend.backend()}
print(f"Keras {keras.__version__} on {keras.backend.backend()}")

# %% [markdown]
# ## Three ways to fill a rectangle
#
# Four sentences of 2 to 6 words. An id is a word, 0 is padding. What the ids
# cannot say is where a token stands *in its sentence*. One integer does:
#
# $$p_t = \begin{cases} \#\{\text{tokens of the sentence before } t\} &
# \text{there is a token in slot } t \\ -1 & \text{there is none.} \end{cases}$$

# %% alt="A batch in three layouts, each slot with its word and its position"
SENTENCES = [
    "the cat sat",
    "dogs bark",
    "we saw an old red barn",
    "so it goes",
]
WORDS = ["", *sorted({word for line in SENTENCES for word in line.split()})]
rows = [[WORDS.index(word) for word in line.split()] for line in SENTENCES]
LONGEST = max(map(len, rows))
T = 9  # slots of a packed row
layouts = {
    "padded on the right": packed_rows.padded(rows, LONGEST),
    "padded on the left": packed_rows.padded(rows, LONGEST, "left"),
    "packed": packed_rows.packed(rows, T),
}
positions = {
    name: to_numpy(
        ops.packed_positions(to_tensor(batch.segments), to_tensor(batch.there))
    )
    for name, batch in layouts.items()
}
for name, batch in layouts.items():
    # Wherever it lies, a sentence counts 0, 1, 2, ...
    for sentence, (row, slots) in zip(rows, batch.places, strict=True):
        counted = positions[name][row, slots]
        assert counted.tolist() == list(range(len(sentence)))
    assert ((positions[name] < 0) == ~batch.there).all()
    print(f"{name:<20} {batch.ids.shape}, {batch.there.mean():4.0%} are tokens")
draw_batches(
    {name: (layouts[name].ids, positions[name]) for name in layouts}, WORDS
)

# %% [markdown]
# ## One rule
#
# Query t sees key s where all of these hold; each line but the first is only
# there if one asks for it:
#
# $$\begin{aligned}
# & p_t \ge 0 \ \text{and}\ p_s \ge 0 & & \text{both are tokens} \\
# & p_t \ge p_s & & \text{causal: nothing later} \\
# & |p_t - p_s| < w & & \text{window: nothing far} \\
# & g_t = g_s & & \text{packed: the same sentence} \\
# & A_{ts} & & \text{whatever else somebody wants.}
# \end{aligned}$$
#
# True means: may be seen. (PyTorch's `key_padding_mask` means the opposite;
# to mix the two up is an old way to train a model that reads padding only.)


# %%
def sees(p, causal=False, window=None, segments=None, wanted=None):
    """Returns who sees whom, bool (T, T), from positions (T,)."""
    t, s = p[:, None], p[None]
    mask = (t >= 0) & (s >= 0)
    if causal:
        mask &= t >= s
    if window is not None:
        mask &= np.abs(t - s) < window
    if segments is not None:
        mask &= segments[:, None] == segments[None]
    return mask if wanted is None else mask & wanted


def from_library(there, segments=None, **rule):
    """Returns the same from `keras_attn.ops`, bool (T, T)."""
    there = to_tensor(there[None])
    positions = ops.positions_from_mask(there)
    if segments is not None:
        segments = to_tensor(segments[None])
        positions = ops.packed_positions(segments, there)
    visibility = ops.Visibility(
        query_positions=positions,
        key_positions=positions,
        query_segment_ids=segments,
        key_segment_ids=segments,
        **rule,
    )
    mask = visibility.to_mask(T, T)  # (B, N, T, T), here one of each
    return np.broadcast_to(to_numpy(mask), (1, 1, T, T))[0, 0]


whole, right, left = (
    np.ones(T, bool),
    np.arange(T) < LONGEST,
    np.arange(T) >= T - LONGEST,
)
segments = layouts["packed"].segments[1]
window = {"window": run.window}
CASES = {
    "padding on the right": (right, None, {}),
    "padding on the left": (left, None, {}),
    "causal": (whole, None, {"causal": True}),
    f"window of {run.window}": (whole, None, window),
    "packed": (whole, segments, {}),
    "packed, causal": (whole, segments, {"causal": True}),
    "causal, window": (whole, None, {"causal": True, **window}),
    "all at once": (
        np.arange(T) < T - 1,
        segments,
        {"causal": True, **window},
    ),
}
tables = {}
for name, (there, packs, rule) in CASES.items():
    counted = to_numpy(
        ops.packed_positions(
            to_tensor(
                np.ones((1, T), "int32") if packs is None else packs[None]
            ),
            to_tensor(there[None]),
        )
    )[0]
    tables[name] = sees(counted, segments=packs, **rule)
    assert tables[name].shape == (T, T)
    assert (tables[name] == from_library(there, packs, **rule)).all()
    print(f"{name:<20} {tables[name].sum():2} of {T * T} pairs")
results["pairs"] = {name: int(mask.sum()) for name, mask in tables.items()}

# %% alt="Eight tables of who sees whom, all from one rule"
draw_grids(tables, side=1.9)

# %% [markdown]
# A table is only drawn here. `ops.Visibility` keeps the integers and the
# rule (causal or not, which window), a few numbers per token, and that is what
# layers pass on. The kernel may expand it to T × T or not: a kernel that is
# told "causal" needs no table.
#
# The same integers go to the positional encodings further down. So a mask and
# an encoding cannot disagree about where a token stands.
#
# ### Which kernel runs

# %%
LONG = 512 if run.quick else 2048
heads = keras.KerasTensor((1, LONG, 8, 64), "float32")  # (B, T, N, H)
counted = keras.ops.arange(LONG, dtype="int32")[None]
DESCRIPTIONS = {
    "everything is seen": ops.Visibility(),
    "causal": ops.Visibility(causal=True),
    "causal, padded right": ops.Visibility(
        query_positions=counted,
        key_positions=counted,
        causal=True,
        padding="right",
    ),
    "causal, padded anyhow": ops.Visibility(
        query_positions=counted, key_positions=counted, causal=True
    ),
    "causal, window of 256": ops.Visibility(causal=True, window=256),
}
for name, description in DESCRIPTIONS.items():
    plan = ops.attention_plan(heads, heads, description)
    print(f"{name:<22} {plan.kernel:<10} {plan.reason}")
print()
print(ops.attention_plan(heads, heads, ops.Visibility(), return_weights=True))

# %% [markdown]
# ## Padding changes nothing
#
# The promise of all this: a sentence gets the same vectors alone and in any
# batch. Read each sentence by itself, then in the three layouts, and compare at
# its own tokens. For contrast, the same without what says where the gaps are.

# %%
D, N = 32, 4
with_mask = TokenEmbedding(len(WORDS), D)  # 0 is no token, and its mask says so
without = TokenEmbedding(len(WORDS), D, pad_id=None)
without.build()
with_mask.build()
without.set_weights(with_mask.get_weights())
places = PositionalEmbedding()
block = EncoderBlock(num_heads=N, intermediate_dim=64)


def read(ids, embedding=with_mask, segments=None, positions=None):
    """Returns the vectors (B, T, D) of a batch of ids."""
    x = embedding(to_tensor(ids))
    if positions is not None:
        positions = to_tensor(positions)
    x = places(x, positions=positions)
    if segments is not None:
        segments = to_tensor(segments)
    return to_numpy(block(x, segment_ids=segments, positions=positions))


# (A quick run compares one sentence, and three cases.)
chosen = [0] if run.quick else range(len(rows))
alone = {
    number: read(np.array([rows[number]], "int32"))[0] for number in chosen
}


def apart(vectors, layout):
    """Returns how far the sentences of a batch are from those alone."""
    found = []
    for number, expected in alone.items():
        row, slots = layout.places[number]
        assert vectors[row, slots].shape == expected.shape
        found.append(np.abs(vectors[row, slots] - expected).max())
    return float(max(found))


first, second, third = layouts.values()
packs = {"positions": positions["packed"]}
COMPARED = {
    "right": (first, {}),
    "left": (second, {}),
    "packed": (third, {**packs, "segments": third.segments}),
    "right,\nno mask": (first, {"embedding": without}),
    "left,\nno mask": (second, {"embedding": without}),
    "packed,\nno segments": (third, packs),
}
moved = {
    name: apart(read(layout.ids, **how), layout)
    for name, (layout, how) in COMPARED.items()
    if not run.quick or name in ("right", "left", "right,\nno mask")
}
for name, distance in moved.items():
    print(f"{name.replace(chr(10), ' '):<20} {distance:.0e}")
for name, distance in moved.items():
    # Where nobody says what hides what, it is seen.
    assert distance > 1e-2 if "no" in name else distance < 1e-5
results["alone and in a batch"] = {
    name.replace("\n", " "): distance for name, distance in moved.items()
}

# %% alt="How far vectors move in a batch: rounding with masks, much without"
draw_levels({"largest difference": moved}, "moved by")

# %% [markdown]
# Nothing fails where a mask is lost. The loss is a little worse, and an answer
# depends on how long the neighbours are.
#
# How little does the padding matter? Not a number can stand there. A weight of
# zero would not be enough, since 0 × NaN is NaN: what is hidden is replaced
# before anything is multiplied.

# %%
attention = MultiHeadAttention(N, D // N)
x = generator.normal(size=(2, 5, D)).astype("float32")
there = np.array([[True] * 5, [True, True, True, False, False]])
hole = np.where(there[..., None], x, np.nan)
clean, dirty = (
    to_numpy(attention(given, given, query_mask=there, value_mask=there))
    for given in (x, hole)
)
assert np.isfinite(dirty).all() and (clean == dirty).all()
assert (dirty[~there] == 0).all()
print("NaN in the padding: not one bit changed, and zeros at the padding")

# %% [markdown]
# ## A mask is easily lost
#
# In Keras a mask travels with the tensor, as an attribute. An embedding with
# `mask_zero=True` makes it, layers pass it on. Does it survive a look?

# %%
ids = to_tensor(first.ids)
for kind in (keras.layers.MultiHeadAttention, MultiHeadAttention):
    x = keras.layers.Embedding(len(WORDS), D, mask_zero=True)(ids)
    before = getattr(x, "_keras_mask", None) is not None
    kind(2, 8)(x, x)
    after = getattr(x, "_keras_mask", None) is not None
    module = kind.__module__.partition(".")[0]
    print(f"{module}: a mask before {before}, after {after}")
    results.setdefault("the mask survives", {})[module] = after
assert results["the mask survives"]["keras_attn"]

# %% [markdown]
# `keras.layers.MultiHeadAttention` takes the mask away from *its caller's*
# tensor (seen in Keras 3.15). Whoever looks at the same tensor next, as every
# layer of a decoder looks at the same memory, sees the padding. No warning is
# given. `keras_attn.doctor` finds it: it changes what should not count, and
# says which layer's outputs move although its inputs stood still.


# %%
class TwoLooks(keras.Model):
    """Looks at the same sentence twice."""

    def __init__(self, kind):
        super().__init__()
        self.embedding = keras.layers.Embedding(len(WORDS), D, mask_zero=True)
        self.first, self.second = (
            kind(2, 8, name=f"{name}_look") for name in ("first", "second")
        )

    def call(self, ids):
        """Returns float (B, T, D)."""
        x = self.embedding(ids)
        return self.second(self.first(x, x), x)


kinds = (keras.layers.MultiHeadAttention, MultiHeadAttention)
for kind in () if run.quick else kinds:
    keras.utils.set_random_seed(run.seed)
    report = keras_attn.doctor(TwoLooks(kind), first.ids[1:3])
    module = kind.__module__.partition(".")[0]
    print(f"{module}: {report}\n")
    results.setdefault("leaks", {})[module] = report.leaks
# True where no leak was found: a test for one's own model.
assert run.quick or report

# %% [markdown]
# [Where does padding leak?](../../guides/doctor.md) shows it on a model that
# many have copied, and [the guide on masks](../../guides/masks.md) how to hand
# over each of them.
#
# ## A query that sees nothing
#
# Padding asks, too. Or a mask leaves a query nothing to look at. The softmax
# over nothing is 0 / 0. Some put a large negative number in the place of
# $-\infty$: then all its scores are equally hopeless, their differences are
# what they were (in float32 even these are lost), and the query gets a mean of
# everything that it may not see.

# %%
scores = generator.normal(size=(3, 4))
may = np.array([[True, True, False, False], [False] * 4, [True] * 4])


def softmax(z):
    """Returns the weights over the last axis."""
    with np.errstate(invalid="ignore"):
        powers = np.exp(z - z.max(-1, keepdims=True))
        return powers / powers.sum(-1, keepdims=True)


filled = {
    "$-\\infty$": softmax(np.where(may, scores, -np.inf)),
    "$-10^9$": softmax(scores + np.where(may, 0, -1e9)),
}
q = generator.normal(size=(1, 3, D)).astype("float32")
k = generator.normal(size=(1, 4, D)).astype("float32")
layer = MultiHeadAttention(1, D, bias_initializer="ones")
output = to_numpy(layer(q, k, attention_mask=may[None]))[0]
assert output.shape == (3, D) and (output[1] == 0).all()
assert np.abs(output[[0, 2]]).max(-1).min() > 0.1
theirs = keras.layers.MultiHeadAttention(1, D, bias_initializer="ones")
theirs.build(q.shape, k.shape)
theirs.set_weights(layer.get_weights())
other = to_numpy(theirs(q, k, attention_mask=may[None]))[0]
np.testing.assert_allclose(other[[0, 2]], output[[0, 2]], atol=1e-5)
for name, found in (("keras_attn", output), ("keras", other)):
    print(f"{name}: what sees nothing gets up to {np.abs(found[1]).max():.2f}")

# %% alt="Weights of a query that sees nothing: NaN, a mean of all, zeros"
# Queries and keys (B, T, N, H) whose products are just these scores.
q = to_tensor(scores.astype("float32")[None, :, None])
k = to_tensor(2 * np.eye(4, dtype="float32")[None, :, None])
see = ops.Visibility(attention_mask=to_tensor(may[None, None]))
_, weights = ops.attend(q, k, k, see, return_weights=True)
weights = to_numpy(weights)[0, 0]
assert weights.shape == (3, 4) and (weights[1] == 0).all()
np.testing.assert_allclose(
    weights[[0, 2]], filled["$-\\infty$"][[0, 2]], atol=1e-6
)
draw_grids(
    {f"filled with {name}": found for name, found in filled.items()}
    | {"keras_attn": weights},
    numbers=True,
)

# %% [markdown]
# Zeros, behind the bias of the output too: nothing was seen, so nothing is
# said. Rows that see something are those of Keras.
#
# ## What comes later, and what is far
#
# A causal mask promises that an output does not depend on later tokens. Leave
# them away, and look: nothing may move. And which outputs move when one token
# is changed? A window of w tokens hides what is w or more away, but layers
# stand on each other: after L of them a token reaches $L (w - 1)$ further.

# %%
LENGTH, DEPTH = 12, 3
x = generator.normal(size=(1, LENGTH, D)).astype("float32")
# (T + 1, T, D): the row with each token in turn changed, and as it is.
changed = np.repeat(x, LENGTH + 1, axis=0)
changed[np.arange(LENGTH), np.arange(LENGTH)] += 1
distance = np.subtract.outer(np.arange(LENGTH), np.arange(LENGTH))
depends = {}
for name, depth, options in (
    ("causal, 1 layer", 1, {}),
    (f"window of {run.window}, 1 layer", 1, {"sliding_window": run.window}),
    (
        f"window of {run.window}, {DEPTH} layers",
        DEPTH,
        {"sliding_window": run.window},
    ),
):
    if run.quick and depth == 1:
        continue
    layers = [
        DecoderBlock(num_heads=N, intermediate_dim=64, **options)
        for _ in range(depth)
    ]

    def stack(x, layers=layers):
        """Returns what the layers make of x."""
        for layer in layers:
            x = layer(x)  # no memory: the block of a language model
        return to_numpy(x)

    outputs = stack(changed)
    assert outputs.shape == (LENGTH + 1, LENGTH, D)
    # Row t, column s: does output t change with token s?
    depends[name] = np.abs(outputs[:-1] - outputs[-1]).max(-1).T > 1e-6
    reach = depth * (run.window - 1) if options else LENGTH
    assert (depends[name] == ((distance >= 0) & (distance <= reach))).all()
    for length in (5,) if run.quick else (1, 5, 9):
        short = stack(x[:, :length])[0]
        gap = np.abs(short - outputs[-1, :length]).max()
        assert gap < 1e-5
    print(
        f"{name:<22} reaches {min(reach, LENGTH - 1):2} back; trimmed {gap:.0e}"
    )

# %% alt="Which outputs depend on which tokens: a triangle, a band, a wider one"
draw_grids(depends, ylabel="output", xlabel="token", side=2.4)

# %% [markdown]
# ## Where does a token stand?
#
# Without a mask attention does not even know an order: exchange two words, and
# their vectors are exchanged. There are two ways to tell it. **Absolute**
# positions add something to each token, before the attention; **relative** ones
# change the scores, by what lies between query and key.
#
# ### Sinusoidal and learned
#
# $$PE_{p,2i} = \sin(p / 10000^{2i/D}), \qquad
# PE_{p,2i+1} = \cos(p / 10000^{2i/D})$$
#
# (Vaswani et al. 2017, sec. 3.5, <https://arxiv.org/abs/1706.03762>): clocks,
# each slower than the one before. Or a table of weights, a row for each
# position (Gehring et al. 2017, <https://arxiv.org/abs/1705.03122>), which
# begins as noise, and ends where the table ends.

# %%
PLACES = 64
steps = np.arange(PLACES)
blank = np.zeros((1, PLACES, D), "float32")
angles = steps[:, None] / 10000 ** (np.arange(0, D, 2) / D)  # (P, D / 2)
by_hand = np.stack([np.sin(angles), np.cos(angles)], -1).reshape(PLACES, D)
sinusoidal = to_numpy(PositionalEmbedding()(blank))[0]
np.testing.assert_allclose(sinusoidal, by_hand, atol=1e-6)
learned = PositionalEmbedding(
    "learned",
    max_sequence_length=PLACES,
    initializer=keras.initializers.RandomNormal(stddev=1.0),
)
table = to_numpy(learned(blank))[0]
assert sinusoidal.shape == table.shape == (PLACES, D)
# The product of two rows is a sum of cosines of their distance.
products = sinusoidal @ sinusoidal.T
expected = np.cos(angles).sum(-1)[np.abs(np.subtract.outer(steps, steps))]
np.testing.assert_allclose(products, expected, atol=1e-4)

# %% alt="Two tables of positions, products of their rows, and by distance"
draw_tables({"sinusoidal": sinusoidal, "learned, untrained": table})

# %% [markdown]
# In the products of sines a distance has the same value everywhere. But what
# attention compares is not the rows themselves. There is a matrix in between
# that can be anything, and a word in the sum.
#
# ### Rotary
#
# Turn each pair of features of queries and keys by an angle that grows with the
# position (Su et al. 2021, <https://arxiv.org/abs/2104.09864>). A product of
# two turned vectors depends on the difference of their angles:
#
# $$(R_{p} q) \cdot (R_{r} k) = q \cdot R_{r - p}\, k, \qquad
# \omega_i = 10000^{-2i/H} .$$


# %%
def turned(x, p):
    """Returns x (T, H) turned by the positions p (T,): RoPE by hand."""
    half = x.shape[-1] // 2
    angle = p[:, None] * 10000.0 ** (-np.arange(half) / half)
    a, b = x[:, :half], x[:, half:]
    sin, cos = np.sin(angle), np.cos(angle)
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


H = 32
x = generator.normal(size=(PLACES, H))
rotated = RotaryPosition().rotate(
    to_tensor(x.astype("float32")[None, :, None]), to_tensor(steps[None])
)
np.testing.assert_allclose(
    to_numpy(rotated)[0, :, 0], turned(x, steps), atol=1e-5
)
q, k = generator.normal(size=(2, 1, H))
curves = {}
for start in (0, 100, 1000):
    ask = turned(q, np.array([start]))
    keys = turned(np.repeat(k, PLACES, 0), start - steps)
    curves[start] = (keys @ ask[0]) / np.sqrt(H)
    gap = np.abs(curves[start] - curves[0]).max()
    print(f"query at {start:4}: scores by distance {gap:.0e} apart")
    assert gap < 1e-9

# %% alt="Rotary: turning pairs of features, and the product by distance"
figure = Figure(figsize=(10, 3.3), layout="constrained")
left, middle, right = figure.subplots(1, 3)
pairs = np.cos(steps[:, None] * 10000.0 ** (-np.arange(H // 2) / (H // 2)))
left.imshow(pairs.T, cmap="RdBu", vmin=-1, vmax=1, aspect="auto")
left.set(title="cosine of the angle", xlabel="distance", ylabel="pair")
middle.plot(pairs.mean(-1) * np.sqrt(H))
middle.set(title="score of q = k = (1, ..., 1)", xlabel="distance")
for (start, curve), look in zip(curves.items(), ("-", "--", ":"), strict=True):
    right.plot(curve, look, label=f"query at {start}", linewidth=2)
right.set(title="score of some q and k", xlabel="distance")
right.legend()
figure

# %% [markdown]
# ### ALiBi
#
# Nothing is turned: each score loses by the distance, in every head by another
# slope (Press et al. 2022, <https://arxiv.org/abs/2108.12409>):
#
# $$z_{ts} = \frac{q_t \cdot k_s}{\sqrt H} - m_n |p_t - p_s|, \qquad
# m_n = 2^{-8 n / N}, \quad n = 1, \ldots, N .$$

# %% alt="ALiBi: what scores lose by distance in eight heads, and the weights"
HEADS = 8
slopes = 2.0 ** (-8 * np.arange(1, HEADS + 1) / HEADS)
lost = -slopes[:, None] * steps  # (N, distances)
bias = ALiBiPosition(HEADS).bias()
asked = to_tensor(np.array([[0]])), to_tensor(steps[None])
found = to_numpy(bias.function(bias.parameters, *asked))
assert found.shape == (1, HEADS, 1, PLACES)
np.testing.assert_allclose(found[0, :, 0], lost, rtol=1e-6)
figure = Figure(figsize=(9, 3.3), layout="constrained")
left, right = figure.subplots(1, 2)
for n, (line, weights) in enumerate(zip(lost, softmax(lost), strict=True)):
    color = f"{0.1 * n:.1f}"
    left.plot(line, color=color, label=f"head {n}: {slopes[n]:.3g}")
    right.plot(weights, color=color)
left.set(xlabel="distance", ylabel="added to the score", ylim=(-12, 0.5))
left.legend(fontsize=7)
right.set(xlabel="distance", ylabel="weight, if all products are 0")
figure

# %% [markdown]
# ### T5's buckets
#
# A learned number for each distance would need as many as there are distances.
# T5 learns one for each **bucket** (Raffel et al. 2020, sec. 2.1,
# <https://arxiv.org/abs/1910.10683>): near distances have one each, far ones
# share, the farther the more. With M buckets in a direction, E = M / 2 and
# X = 128,
#
# $$b(d) = \begin{cases} d & d < E \\
# \min\Big(E + \Big\lfloor (M - E)\,
# \dfrac{\log (d / E)}{\log (X / E)} \Big\rfloor,\ M - 1\Big) & d \ge E .
# \end{cases}$$


# %%
def bucket(gap, buckets=32, far=128):
    """Returns T5's bucket of p_s - p_t, with half of them for either side."""
    M, E, d = buckets // 2, buckets // 4, np.abs(gap)
    # A little more than the logarithm: it must not fall short of a border.
    share = np.log(np.maximum(d, E) / E) / np.log(far / E) + 1e-9
    shared = np.minimum(E + ((M - E) * share).astype(int), M - 1)
    return np.where(d < E, d, shared) + np.where(gap > 0, M, 0)


gaps = np.arange(-150, 151)
t5 = T5Position(num_heads=1)
t5.table.assign(
    np.arange(32, dtype="float32")[:, None]
)  # a bucket says its name
bias = t5.bias()
asked = to_tensor(np.array([[150]])), to_tensor(150 + gaps[None])
found = to_numpy(bias.function(bias.parameters, *asked))[0, 0, 0]
assert (found == bucket(gaps)).all()
print("distances before the query and their buckets:")
print(
    {int(d): int(bucket(-d)) for d in (0, 1, 7, 8, 16, 32, 64, 127, 128, 999)}
)

# %% alt="T5's bucket by distance: steps that get wider, on both sides"
figure = Figure(figsize=(7.5, 3.2), layout="constrained")
panel = figure.subplots()
panel.step(gaps, bucket(gaps), where="mid")
panel.axvline(0, color="grey", linewidth=0.8)
panel.set(
    xlabel="key's position less the query's: before it, and behind it",
    ylabel="bucket",
)
figure

# %% [markdown]
# ## Who knows the order, and who the distance only?
#
# Two questions to each kind. The words in another order: do the vectors only
# change places, or do they change? And the same words further on, all positions
# moved by the same number: do the vectors stay as they are?

# %%
LENGTH = 10
noise = keras.initializers.RandomNormal(stddev=1.0)
absolute = {"sinusoidal": PositionalEmbedding(), "learned": learned}
relative = {
    "rotary": RotaryPosition(),
    "ALiBi": ALiBiPosition(N),
    "T5": T5Position(N, initializer=noise),
}
x = generator.normal(size=(1, LENGTH, D)).astype("float32")
order = generator.permutation(LENGTH)
here = np.arange(LENGTH, dtype="int32")[None]
by_order, by_shift = {}, {}
for name in ("none", *absolute, *relative):
    if run.quick and name in ("learned", "ALiBi", "T5"):
        continue
    keras.utils.set_random_seed(run.seed)
    layer = MultiHeadAttention(N, D // N, attention_position=relative.get(name))

    def vectors(x, p, name=name, layer=layer):
        """Returns what is made of x (1, T, D) at the positions p (1, T)."""
        p = to_tensor(p)
        if name in absolute:
            x = absolute[name](to_tensor(x), positions=p)
        return to_numpy(layer(x, x, query_positions=p, key_positions=p))[0]

    base = vectors(x, here)
    assert base.shape == (LENGTH, D)
    by_order[name] = float(
        np.abs(vectors(x[:, order], here) - base[order]).max()
    )
    by_shift[name] = float(np.abs(vectors(x, here + run.shift) - base).max())
    print(
        f"{name:<10} another order: {by_order[name]:.0e}; moved by "
        f"{run.shift}: {by_shift[name]:.0e}"
    )
results["another order"], results["moved"] = by_order, by_shift
assert by_order["none"] < 1e-5
for name in by_shift:
    assert by_shift[name] > 1e-3 if name in absolute else by_shift[name] < 1e-5
    assert by_order[name] > 1e-3 or name == "none"

# %% alt="Bars: what order and a shift change, for six kinds of positions"
draw_levels(
    {
        "the words in another order": by_order,
        f"all positions moved by {run.shift}": by_shift,
    },
    "vectors change by",
)

# %% [markdown]
# Only *none* does not notice the order; only the absolute ones notice the
# shift. A model with these has to learn of each distance anew at each place; a
# model with the others cannot tell the first word from the tenth, except by
# what stands around it.
#
# ## What should hold

# %%
assert max(moved[name] for name in moved if "no" not in name) < 1e-5
assert max(by_shift[name] for name in by_shift if name in relative) < 1e-5
print("A sentence is the same alone, padded on either side, and packed.")

# %%
results["settings"] = {k: str(v) for k, v in run._asdict().items()}
run.out.mkdir(parents=True, exist_ok=True)
(run.out / "results.json").write_text(
    json.dumps(results, indent=1), encoding="utf-8"
)
program = ".venv/bin/python tutorials/masks.py"
print(f"""
All figures are in {run.out / "results.json"}.

What to try next, with {program} behind it:
  WINDOW=5              another window: how far do three layers reach?
  SHIFT=50              positions moved by more
  KERAS_BACKEND=jax     another backend: which kernels run there?""")

# %% [markdown]
# ## Exercises
#
# **1.** Fill in. A row holds *(padding) a b (padding) c*. Its positions are
# ___. Packed, with the segments 1 1 2 2 2 and no padding, they would be ___. Of
# the 25 pairs a causal mask leaves ___ in the first case and ___ in the second.
#
# <details markdown>
# <summary>Answer</summary>
#
# -1 0 1 -1 2, the gap does not count; 0 1 0 1 2. Three tokens: 1 + 2 + 3 = 6;
# packed: 3 + 6 = 9.
#
# </details>
#
# **2.** Fill in the gap, for a window that sees *ahead*: the query itself and
# the w - 1 tokens behind it.
#
#     mask = (p[:, None] >= 0) & (p[None] >= 0) & ____ & ____
#
# Which tokens can change the first output after three such layers, w = 3?
#
# <details markdown>
# <summary>Answer</summary>
#
# `(p[None] >= p[:, None]) & (p[None] - p[:, None] < w)`. The first seven, 0 to
# 6: two more with each layer. Hand the table over as `attention_mask`; it is
# the last line of the rule.
#
# </details>
#
# **3.** In ALiBi with 8 heads the slopes go from 1/2 to 1/256. From which
# distance on does a key count less than a hundredth of the query's own key,
# other things being equal, in the first head and in the last? What does that
# say of texts longer than those in training?
#
# <details markdown>
# <summary>Answer</summary>
#
# $e^{-m d} < 0.01$ where $d > \ln 100 / m$: from 10 tokens on, and from 1,179
# on. What lies further away than that hardly counts, whether there is any or
# not: heads with steep slopes are the same on long texts, which is why the
# authors could read texts longer than any in training.
#
# </details>
