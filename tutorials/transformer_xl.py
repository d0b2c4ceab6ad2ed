# %% [markdown]
# # Beyond the segment: Transformer-XL
#
# A language model reads a long text in segments, and at the beginning of each
# it has no context. Transformer-XL keeps the hidden vectors of earlier segments
# as a memory. In this tutorial you write it in NumPy, train it with and without
# a memory, and measure what the memory changes:
#
# ![Loss by position in the segment: with a memory, it is low from the first
# character](transformer_xl-2.png)
#
# **You will learn** how segments are connected, why positions must be relative,
# how the relative shift computes all distances with one product, how far the
# model can look back, and what a memory saves in evaluation.
#
# **Prerequisites**: [GPT from an empty file to samples](../gpt/index.md).
# **Time**: about 5 minutes on one CPU core.
#
# **Published result**: Transformer-XL (Dai et al. 2019,
# <https://arxiv.org/abs/1901.02860>) reaches 0.99 bits per character on enwik8
# with 277 million parameters, and a perplexity of 18.3 on WikiText-103. The
# models below have 0.4 million parameters and read generated stories, so their
# losses are not comparable. Below, a memory of 64 characters reduces the loss
# from 0.605 to 0.500 nats per character. On tiny Shakespeare, a memory of 256
# characters reduces the loss from [2.484 to 2.418 bits per character](
# ../../results/language_modeling.md).

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

import time

import keras
import matplotlib.pyplot as plt
import numpy as np

from keras_attn import datasets, training
from keras_attn.decoding import Sampling
from keras_attn.layers import RotaryPosition
from keras_attn.models import GPT, TransformerXL
from keras_attn.ops import relative_shift
from keras_attn.text import token_blocks, token_streams

keras.utils.set_random_seed(1)
to_numpy = keras.ops.convert_to_numpy
print(f"Keras {keras.__version__} on {keras.backend.backend()}")

# %% [markdown]
# ## Text
#
# The text consists of short generated stories, one after the other. A token is
# a character. Sentences of a story share their words, so the words of the
# previous sentence help to predict the next one.


# %%
def make_text(n, split):
    """Returns n stories as one text, a story in each line."""
    stories = datasets.make_documents(n, seed=1, split=split)
    return "".join(" ".join(sentences) + "\n" for sentences in stories)


text = make_text(15 if QUICK else 3000, "train")
test_text = make_text(3 if QUICK else 150, "validation")
characters = sorted(set(text + test_text))
V = len(characters)
number_of = {character: i for i, character in enumerate(characters)}


def encode(text):
    """Returns the ids of characters, int32."""
    return np.array([number_of[character] for character in text], "int32")


train_ids, test_ids = encode(text), encode(test_text)
print(f"{len(text):,} characters to train on, {len(test_text):,} to test")
print(text[:200])

# %% [markdown]
# ## Segments with a memory
#
# A segment has T characters. Each block keeps the last M vectors that it has
# read, its memory m (M, D). In the next segment, the queries come from the new
# characters only, but keys and values also come from the memory:
#
# $$h \leftarrow \mathrm{Block}\big(\text{queries from } h,\;
# \text{keys and values from } [m; h]\big)$$
#
# ![Three segments of three tokens and two blocks: through the memory, the last
# vector depends on all nine tokens](../../diagrams/segment_memory.svg)
#
# No gradient flows into the memory. So the cost of a training step grows with
# M, but not with the length of the text. (The paper writes L for the length of
# a segment and N for the number of blocks; here these are T and n.)
#
# ## Relative positions
#
# Positions that are counted from the beginning of each segment would be
# ambiguous: the last character of the memory and the last one of the segment
# would have the same position. Transformer-XL therefore adds nothing to the
# embeddings. Its scores depend on the distance t - s of query and key, through
# the sinusoids $R_{t-s}$ of the Transformer and a learned matrix W (the paper's
# $W_{k,R}$):
#
# $$z_{ts} = \frac{1}{\sqrt H}\big(
# \underbrace{q_t \cdot k_s}_{(a)\ \text{content}} +
# \underbrace{q_t \cdot R_{t-s} W}_{(b)\ \text{distance, by query}} +
# \underbrace{u \cdot k_s}_{(c)\ \text{key alone}} +
# \underbrace{u' \cdot R_{t-s} W}_{(d)\ \text{distance alone}}\big)$$
#
# u and u' (the paper's v) are learned vectors, one of each per head. They replace
# the absolute position of the query.

# %%
T, B, M, D, N, layers = (
    (8, 16, 16, 16, 2, 2) if QUICK else (32, 32, 64, 96, 4, 3)
)
shared = {
    "num_layers": layers,
    "num_heads": N,
    "hidden_dim": D,
    "dropout": 0.0,
    "attention_dropout": 0.0,
    "activation": "relu",
    "normalize_first": True,
    # All ids are characters: none is padding, starts or ends a text.
    "pad_id": None,
    "start_id": None,
    "end_id": None,
}


def make_xl(memory_length):
    """Returns an untrained Transformer-XL that carries its memory in `fit`."""
    return TransformerXL(
        V, memory_length=memory_length, stateful_batch_size=B, **shared
    )


model = make_xl(M)
count = sum(int(np.prod(x.shape)) for x in model.trainable_weights)
print(f"{count:,} weights, V = {V}, T = {T}, M = {M}")

# %% [markdown]
# ### The same in NumPy
#
# The functions are the parts of the equations. `attention` reads x (M + T, D),
# the memory and the segment; `forward` returns the logits and the next memory.


# %%
def sinusoids(distance):
    """Returns R (..., D) of distances."""
    rates = 10000.0 ** (-np.arange(0, D, 2) / D)
    angle = np.asarray(distance)[..., None] * rates
    return np.concatenate([np.sin(angle), np.cos(angle)], -1)


def attention(x, T, w, block):
    """Returns relative attention (T, D) of the last T rows of x."""
    name = f"{block}/self_attention"
    q, k, values = (
        np.einsum("td,dnh->nth", rows, w[f"{name}/{part}/kernel"])
        for rows, part in ((x[-T:], "query"), (x, "key"), (x, "value"))
    )
    distance = len(x) - T + np.arange(T)[:, None] - np.arange(len(x))
    position = f"{block}_position"
    RW = np.einsum(
        "tsd,dnh->ntsh", sinusoids(distance), w[f"{position}/kernel"]
    )
    q_k = q + w[f"{position}/content_bias"][:, None]  # (a) and (c)
    q_r = q + w[f"{position}/distance_bias"][:, None]  # (b) and (d)
    scores = q_k @ k.swapaxes(1, 2) + np.einsum("nth,ntsh->nts", q_r, RW)
    scores = np.where(distance < 0, -np.inf, scores / np.sqrt(D // N))
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    output = w[f"{name}/attention_output/kernel"]
    return np.einsum("nth,nhd->td", weights @ values, output)


# %%
def norm(x, w, name):
    """Returns the layer norm of x."""
    x = x - x.mean(-1, keepdims=True)
    x = x / np.sqrt((x**2).mean(-1, keepdims=True) + model.epsilon)
    return x * w[f"{name}/gamma"] + w[f"{name}/beta"]


def forward(ids, memories, w):
    """Returns logits (T, V) of a segment, and the next memories."""
    h = w["token_embedding/table/embeddings"][ids]  # (T, D)
    next_memories = []
    for i, m in enumerate(memories):
        x = np.concatenate([m, h])
        next_memories.append(x[-M:])
        x = norm(x, w, f"block_{i}/around_attention/norm")
        h = h + attention(x, len(h), w, f"block_{i}")
        x = norm(h, w, f"block_{i}/around_feed_forward/norm")
        for name in "inner", "outer":
            name = f"block_{i}/feed_forward/{name}"
            x = x @ w[f"{name}/kernel"] + w[f"{name}/bias"]
            x = np.maximum(x, 0) if name.endswith("inner") else x
        h = h + x
    return norm(h, w, "norm") @ w["token_embedding/table/embeddings"].T, (
        next_memories
    )


# %% [markdown]
# u and u' start with small values; for this check we draw larger ones.
# `advance` returns the logits and the memory of the library's model.

# %%
for weight in model.trainable_weights:
    if weight.path.endswith(("content_bias", "distance_bias")):
        weight.assign(keras.random.normal(weight.shape))
w = {x.path: to_numpy(x).astype("float64") for x in model.weights}
segments = test_ids[: 2 * T].reshape(2, 1, T)
memories, memory = [np.zeros((0, D))] * layers, {}
by_hand, by_library = [], []
for ids in segments:
    logits, memories = forward(ids[0], memories, w)
    by_hand.append(logits)
    logits, kept = model.advance({"token_ids": ids, **memory})
    memory = {"memory": kept}
    by_library.append(to_numpy(logits)[0])
np.testing.assert_allclose(by_hand, by_library, atol=1e-4)
assert tuple(kept.states[0].shape) == (1, M, D)

at_once = to_numpy(model(segments.reshape(1, 2 * T)))[0]
np.testing.assert_allclose(at_once, np.concatenate(by_library), atol=1e-4)
print("NumPy and the library agree; two segments equal one long segment.")

# %% [markdown]
# The last assertion shows what the memory does: as long as it contains all
# earlier characters, reading in segments gives the same logits as reading at
# once.
#
# ### Relative shift
#
# The terms (b) and (d) need $R_{t-s} W$ for T (M + T) pairs of query and key.
# But there are only M + T distances. So each query is multiplied once with the
# vectors of all distances, from the largest to 0. The result is ordered by
# distance, not by key. To order it by key, row t moves to the left by T - 1 - t
# (appendix B of the paper).
#
# ![Rows of distances 4 to 0: row t moves to the left by 2 - t, and columns
# become keys](../../diagrams/relative_shift.svg)

# %% tags=["hide-input"] alt="Two tables of 4 queries: on the left each row contains the distances 6 to 0; on the right the rows are shifted so that the diagonal of the segment has distance 0"
rows, keys = 4, 7  # a segment of 4 and a memory of 3
table = np.tile(np.arange(keys - 1, -1, -1, dtype="float32"), (rows, 1))
shifted = to_numpy(relative_shift(table[None, None], keys))[0, 0]
distance = keys - rows + np.arange(rows)[:, None] - np.arange(keys)
visible = distance >= 0
assert (shifted[visible] == distance[visible]).all()
figure, axes = plt.subplots(1, 2, figsize=(8, 2.2), layout="constrained")
after = np.where(visible, shifted, np.nan)
for axis, x, label in zip(
    axes, (table, after), ("distance", "key, memory first"), strict=True
):
    axis.imshow(x, cmap="cividis", vmin=0, vmax=6)
    for (i, j), value in np.ndenumerate(x):
        if value >= 0:
            color = "white" if value < 4 else "black"
            axis.text(j, i, int(value), ha="center", va="center", color=color)
    axis.set(xticks=[], yticks=range(rows), xlabel=label, ylabel="query")
axes[0].set_title("products with all distances")
axes[1].set_title("after the shift (without the future)")
plt.show()

# %% [markdown]
# ## Training
#
# `token_streams` arranges the text in B rows; a batch is the next segment of
# each row. The model carries its memory from batch to batch. `document_starts`
# marks where a row begins and the memory is empty.
#
# We train two Transformer-XL models, without and with a memory, and a GPT with
# blocks of T characters from random positions of the text. Its positions are
# rotary, and its feed-forward networks are wider, so that all three models have
# about the same number of weights.

# %%
batches = token_streams(train_ids, T, B, seed=1)
(one, labels), (two, _) = batches[0], batches[1]
assert one["token_ids"].shape == labels.shape == (B, T)
assert (labels[:, -1] == two["token_ids"][:, 0]).all()  # the rows continue
print(
    f"{one['document_starts'].sum()} rows start in the first batch, "
    f"{two['document_starts'].sum()} in the second"
)

gpt = GPT(
    V,
    intermediate_dim=4 * D + D // 2,
    position_embedding=None,
    attention_position=RotaryPosition(),
    max_sequence_length=None,
    **shared,
)
models = {"M = 0": make_xl(0), f"M = {M}": make_xl(M), "GPT": gpt}
sizes = {
    name: sum(int(np.prod(x.shape)) for x in model.trainable_weights)
    for name, model in models.items()
}
print(sizes)
assert max(sizes.values()) < 1.02 * min(sizes.values())

# %%
epochs = 1 if QUICK else 2
for name, model in models.items():
    keras.utils.set_random_seed(1)
    make_batches = token_blocks if name == "GPT" else token_streams
    batches = make_batches(train_ids, T, B, seed=1)
    steps = epochs * len(batches)
    schedule = keras.optimizers.schedules.CosineDecay(
        0.0, steps, alpha=0.05, warmup_target=4e-3, warmup_steps=steps // 10
    )
    model.compile(
        keras.optimizers.AdamW(
            schedule, beta_2=0.99, weight_decay=0.1, global_clipnorm=1.0
        ),
        training.SequenceCrossentropy(pad_id=-1),
    )
    progress = training.TrainingProgress(
        tokens_per_epoch=steps // epochs * B * T
    )
    log = model.fit(
        batches, epochs=epochs, shuffle=False, callbacks=[progress], verbose=0
    )
    print(f"{name:6} training loss {log.history['loss'][-1]:.3f}")

# %% [markdown]
# ## Loss within a segment
#
# `losses_of` reads the test text in segments and returns the loss of each
# character, in nats, by its position in the segment. The memory of the
# evaluation is an argument, because `with_memory` returns the same model with
# another memory length.


# %%
def losses_of(model, memory_length=None):
    """Returns losses (segments, T); NaN where there is no label."""
    rows = 2 if QUICK else 16
    reader = model
    if memory_length is not None:
        reader = model.with_memory(memory_length, stateful_batch_size=rows)
    losses = []
    for inputs, labels in token_streams(test_ids, T, rows, shuffle=False):
        if memory_length is None:
            inputs = inputs["token_ids"]
        z = to_numpy(reader.predict_on_batch(inputs))
        z = z - z.max(-1, keepdims=True)
        log_p = z - np.log(np.exp(z).sum(-1, keepdims=True))
        loss = -np.take_along_axis(log_p, np.maximum(labels, 0)[..., None], -1)
        losses.append(np.where(labels < 0, np.nan, loss[..., 0]))
    return np.concatenate(losses)


losses = {
    "M = 0": losses_of(models["M = 0"], 0),
    f"M = {M}": losses_of(models[f"M = {M}"], M),
    "GPT": losses_of(gpt),
}
for name, x in losses.items():
    loss, first = np.nanmean(x), np.nanmean(x[:, 0])
    print(f"{name:6} {loss:.3f} nats per character, {first:.2f} of the first")
if not QUICK:
    mean = {name: np.nanmean(x, 0) for name, x in losses.items()}
    assert mean[f"M = {M}"].mean() < mean["M = 0"].mean() - 0.05
    assert mean[f"M = {M}"][0] < mean["M = 0"][0] - 0.7
    assert abs(mean["GPT"].mean() - mean["M = 0"].mean()) < 0.1

# %% tags=["hide-input"] alt="Without a memory and with GPT the loss starts at about 2 nats and falls within ten characters; with a memory it is low from the first character"
figure, axis = plt.subplots(figsize=(7, 3.2), layout="constrained")
for name, x in losses.items():
    style = "--" if name == "GPT" else "-"
    axis.plot(np.nanmean(x, 0), style, label=name)
axis.set(xlabel="position in the segment", ylabel="loss (nats)", ylim=(0, None))
axis.legend()
plt.show()

# %% [markdown]
# Without a memory, the first characters of a segment are predicted from almost
# nothing, and GPT has the same problem. With a memory, every character after
# the first segments has at least M characters of context. After about ten
# characters, the three losses are nearly equal: here the memory helps at the
# start of a segment.
#
# ## Receptive field
#
# A block reads M vectors before its segment. Each of these vectors was computed
# from M vectors before it, and so on. After n blocks a character can depend on
# characters at a distance of at most n M + T - 1, if T divides M. We change one
# character, at about 60 distances, read all segments, and record how much the
# last logits change.

# %%
reach = {f"M = {x}": layers * x + T - 1 for x in (0, M)}
back = np.linspace(0, reach[f"M = {M}"] + 2 * T, 60).astype(int)
back = np.unique([*back, *reach.values()])
length = -(-(back.max() + 1) // T) * T
influence = {}
for name in reach:
    rows = np.tile(np.resize(test_ids, length), (len(back) + 1, 1))
    changed = np.arange(len(back)), length - 1 - back
    rows[changed] = (rows[changed] + 1) % V  # the last row is unchanged
    reader = models[name].with_memory(0 if name == "M = 0" else M)
    memory = {}
    for start in range(0, length, T):
        ids = rows[:, start : start + T]
        logits, kept = reader.advance({"token_ids": ids, **memory})
        memory = {} if name == "M = 0" else {"memory": kept}
    last = to_numpy(logits)[:, -1]
    change = np.abs(last[:-1] - last[-1]).max(-1)
    change[change < 1e-5] = 0  # rows of a batch can be rounded differently
    influence[name] = change
    assert change[0] > 0 and (change[back > reach[name]] == 0).all()
    if not QUICK and name != "M = 0":
        assert change[back < T].mean() > change[back >= T].mean()
    seen = back[change > 0].max()
    print(f"{name:6} at most {reach[name]}, farthest change {seen}")

# %% tags=["hide-input"] alt="Change of the logits by distance, on a logarithmic axis: it falls with the distance and is zero beyond 31 without a memory, and beyond 223 with one"
figure, axis = plt.subplots(figsize=(7, 3), layout="constrained")
for i, (name, change) in enumerate(influence.items()):
    shown = np.where(change > 0, change, np.nan)
    axis.semilogy(back, shown, ".-", color=f"C{i}", label=name)
    axis.axvline(reach[name], color=f"C{i}", linestyle=":")
axis.set(xlabel="distance of the change", ylabel="largest change of a logit")
axis.legend()
plt.show()

# %% [markdown]
# The dotted lines are the limits. Characters beyond them change nothing, and
# characters of the last segment change the logits more than earlier ones on
# average.
#
# ## Memory length in evaluation
#
# The memory has no weights, and sinusoids are defined for all distances. So a
# model can be evaluated with any memory length.

# %%
tried = (0, M) if QUICK else (0, M // 4, M, 4 * M)
curves = {
    name: [float(np.nanmean(losses_of(models[name], x))) for x in tried]
    for name in reach
}
for name, values in curves.items():
    row = ", ".join(f"{x}: {y:.3f}" for x, y in zip(tried, values, strict=True))
    print(f"trained with {name}; memory in evaluation {row}")
if not QUICK:
    assert min(curves["M = 0"][1:]) < curves["M = 0"][0]
    assert curves[f"M = {M}"][0] > curves[f"M = {M}"][2] + 0.2
    assert abs(curves[f"M = {M}"][3] - curves[f"M = {M}"][2]) < 0.05

# %% [markdown]
# The model trained without a memory improves if it gets one in evaluation, and
# is nearly as good as the other. The model trained with a memory is worse
# without it: in training, it rarely had to predict without context. Four times
# its memory changes little here: a story has about 140 characters, and the next
# one is about something else.
#
# ## Cost of evaluation
#
# To predict every character from at least M characters, a model without a
# memory reads a window of M + 1 characters for each of them. With a memory,
# every character is read once. We compare the same weights, with at least M
# characters of context in both cases.

# %%
number, rows = (2, 2) if QUICK else (4, 8)  # segments, rows
plain = models[f"M = {M}"].with_memory(0)
reader = models[f"M = {M}"].with_memory(M, stateful_batch_size=rows)
ids = np.resize(test_ids, M + number * rows * T)


def with_memory():
    """Reads every character once."""
    x = ids[M:].reshape(rows, number, T)
    starts = np.zeros((rows, T), "int32")
    for i in range(number):
        segment = {"token_ids": x[:, i], "document_starts": starts}
        reader.predict_on_batch(segment)


def with_windows():
    """Reads M + 1 characters for every character."""
    windows = np.lib.stride_tricks.sliding_window_view(ids, M + 1)
    for start in range(0, len(windows) - rows + 1, rows):
        plain.predict_on_batch(windows[start : start + rows])


seconds = {}
for read in with_memory, with_windows:
    read()  # compiles the model
    start = time.perf_counter()
    read()
    seconds[read.__name__] = time.perf_counter() - start
    each = 1e6 * seconds[read.__name__] / (number * rows * T)
    print(f"{read.__name__:12} {each:8,.0f} microseconds per character")
ratio = seconds["with_windows"] / seconds["with_memory"]
print(f"{ratio:.0f} times faster with a memory")
if not QUICK:
    assert ratio > 5

# %% [markdown]
# The paper reports 363 to 1,874 times, for contexts of 800 to 3,800 tokens on a
# GPU (its table 9).
#
# ## Generation
#
# `generate` treats the prompt and its continuation as one segment. It caches
# the keys and values of all characters.

# %%
writer = models[f"M = {M}"].with_memory(M)
prompt = test_text[: test_text.index(".") + 1]
decoded = writer.generate(
    [encode(prompt)],
    max_new_tokens=T if QUICK else 5 * T,
    strategy=Sampling(temperature=0.8, seed=1),
)
print(prompt, "|", "".join(characters[i] for i in decoded.tokens[0, 0]))

# %% [markdown]
# ## Summary
#
# - Keys and values also come from the memory, the M vectors before the segment.
# - Scores depend on content and distance; u and u' replace the position of the
#   query.
# - One product per distance and a shift give the scores of all pairs.
# - With n blocks, the model looks back up to n M + T - 1 tokens.
# - With a memory, an evaluation reads every token once.
#
# ## Exercises
#
# **1.** For three blocks, M = 64 and T = 32: which shape do the keys of a block
# have for one row, how many scores does a head compute, and how far back can
# the last character of a segment look?
#
# <details markdown>
# <summary>Answer</summary>
#
# (M + T, N, H) = (96, N, H); T (M + T) = 3,072 scores; 3 · 64 + 31 = 223.
#
# </details>
#
# **2.** The memory keeps the vectors that enter a block, not their keys and
# values. What is recomputed in every segment, and why, in training?
#
# <details markdown>
# <summary>Answer</summary>
#
# The keys and values of the memory, two matrix products. In training the
# matrices change after each step, and stored keys would belong to older ones.
# In generation nothing changes, so keys and values are cached.
#
# </details>
#
# **3.** Why can the positions of GPT-2, one learned vector for each position in
# the segment, not be used with a memory?
#
# <details markdown>
# <summary>Answer</summary>
#
# The vectors in the memory contain their positions in an older segment. Vectors
# of both segments would have the same positions, and the model could not tell
# how far apart they are.
#
# </details>
#
# **Next**: [Every order at once: XLNet](../xlnet/index.md) combines this memory
# with predictions in random order.
