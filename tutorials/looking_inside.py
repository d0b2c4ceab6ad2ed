# %% [markdown]
# # Looking inside
#
# Attention weights show where a model looks. To find out whether a token
# matters, we hide it and measure how the prediction changes. In this tutorial
# you compare attention with such measurements.
#
# ![The probability of the correct answer while words are hidden or shown, in
# the order of four saliency maps](looking_inside-2.png)
#
# On the left, words are hidden, the most salient first: the faster the
# probability falls, the better the map. On the right, they are shown instead.
#
# **You will learn** to read attention weights, to measure what heads do, to
# compute attention rollout and RISE by hand, to compare maps by deletion and
# insertion, and to find induction heads in a GPT.
#
# **Prerequisites**: [Multi-head attention](../multi_head/index.md) and [A
# Transformer learns to translate](../translate/index.md), which shows
# alignments. **Time**: about 5 minutes on one CPU core.
#
# **Published result**: RISE (Petsiuk et al. 2018,
# <https://arxiv.org/abs/1806.07421>) has a deletion area of 0.108 and an
# insertion area of 0.727 for a ResNet-50 on ImageNet, better than Grad-CAM
# (0.123 and 0.677). The models below read sentences of up to 14 tokens, so the
# areas of RISE below, 0.056 and 0.918, are not comparable.

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

from keras_attn import datasets, explain, layers, models, training

keras.utils.set_random_seed(1)
to_numpy = keras.ops.convert_to_numpy
print(f"Keras {keras.__version__} on {keras.backend.backend()}")

# %% [markdown]
# ## What does *it* refer to?
#
# *The animal did not cross the street because it was too tired.* With *wide*
# instead of *tired*, *it* is the street. `make_pronoun_sentences` generates
# such sentences. In some, the roles of the nouns decide too, as in *the box did
# not fit into the bag because it was too small*. Test sentences have pairs of
# nouns that are together in no training sentence.
#
# A classifier predicts the noun at the position of *it*. Each training sentence
# is used twice: complete, and with random words replaced by `_`. So the model
# has seen hidden words in training, and we can hide words later.

# %%
train = datasets.make_pronoun_sentences(64 if QUICK else 3200, seed=1)
test = datasets.make_pronoun_sentences(
    8 if QUICK else 256, seed=1, split="test"
)
words = sorted(
    {word for sentence in [*train, *test] for word in sentence.words}
)
vocabulary = ["[PAD]", "_", *words]
PAD, HIDDEN, IT = 0, 1, vocabulary.index("it")
V, T = len(vocabulary), 14


def encode(sentences):
    """Returns ids (B, T)."""
    tokens = np.full((len(sentences), T), PAD, "int32")
    for row, (words, *_) in zip(tokens, sentences, strict=True):
        row[: len(words)] = [vocabulary.index(word) for word in words]
    return tokens


def hide(tokens, kept, hidden_id):
    """Returns tokens with a random part of each row hidden."""
    rate = random.random((len(tokens), 1))
    hidden = (random.random(tokens.shape) < rate) & ~np.isin(tokens, kept)
    return np.where(hidden, hidden_id, tokens).astype("int32")


tokens = encode(train)
labels = np.zeros_like(tokens)  # 0 everywhere else: no loss
for i, sentence in enumerate(train):
    labels[i, sentence.pronoun] = tokens[i, sentence.antecedent]
random = np.random.default_rng(1)
inputs = np.concatenate([tokens, hide(tokens, (PAD, IT), HIDDEN)])
labels = np.concatenate([labels, labels])
for sentence in train[:3]:
    print(*sentence.words, "->", sentence.words[sentence.antecedent])

# %%
D = 64


def make_encoder(vocabulary_size, num_heads):
    """Returns an encoder with two blocks."""
    return models.Encoder(
        vocabulary_size,
        num_layers=2,
        num_heads=num_heads,
        hidden_dim=D,
        intermediate_dim=2 * D,
        dropout=0.0,
    )


def fit(model, inputs, labels, loss, rate=3e-3):
    """Trains a model for twenty epochs."""
    epochs = 1 if QUICK else 20
    steps = epochs * -(-len(labels) // 64)
    schedule = keras.optimizers.schedules.CosineDecay(rate, steps)
    model.compile(keras.optimizers.Adam(schedule, global_clipnorm=1.0), loss)
    model.fit(inputs, labels, batch_size=64, epochs=epochs, verbose=0)


def probabilities(model, inputs):
    """Returns the predicted probabilities of a batch."""
    return to_numpy(keras.ops.softmax(model.predict_on_batch(inputs)))


def count_heads(heads):
    """Returns the number of heads in words."""
    return "1 head" if heads == 1 else f"{heads} heads"


test_tokens = encode(test)
B = len(test)
rows = np.arange(B)
it, right, other, cue = np.array([sentence[1:] for sentence in test]).T
readers = {}
for heads in (2,) if QUICK else (1, 2, 8):
    keras.utils.set_random_seed(1)
    reader = models.TokenClassifier(make_encoder(V, heads), V, dropout=0.0)
    fit(reader, inputs, labels, training.SequenceCrossentropy())
    readers[heads] = reader
    p = probabilities(reader, test_tokens)[rows, it]  # (B, V)
    correct = p.argmax(-1) == test_tokens[rows, right]
    print(
        f"{count_heads(heads)}: {correct.mean():.1%} of {B} test sentences "
        "correct"
    )
    if not QUICK:
        assert correct.mean() > 0.8

# %% [markdown]
# ### Where *it* looks
#
# `attention_maps` returns the weights (B, N, T, T) of each block. We look at
# the row of *it*, in two sentences that differ in one word.

# %% tags=["hide-input"] alt="Heat maps of the attention of it over two sentences, one row for each head; the weights differ between the models with 1, 2 and 8 heads"
pair = [
    f"the animal did not cross the street because it was too {cue} .".split()
    for cue in ("tired", "wide")
]
ids = encode([(sentence,) for sentence in pair])
figure, axes = plt.subplots(
    len(readers), 2, figsize=(10, 2.1 * len(readers)), layout="constrained"
)
for line, (heads, reader) in zip(
    np.atleast_2d(axes), readers.items(), strict=True
):
    maps = explain.attention_maps(reader, ids)
    at_it = np.concatenate([x.weights[:, :, 8] for x in maps], 1)
    p = probabilities(reader, ids)[:, 8]
    for i, axis in enumerate(line):
        n = len(pair[i])
        image = axis.imshow(
            at_it[i, :, :n], cmap="cividis", vmin=0, vmax=1, aspect="auto"
        )
        axis.set_xticks(range(n), pair[i], rotation=60, fontsize=8)
        axis.set_yticks(
            [heads / 2 - 0.5, 1.5 * heads - 0.5], ["block 0", "block 1"]
        )
        axis.set_title(f"heads: {heads}, it = {vocabulary[p[i].argmax()]}")
figure.colorbar(image, ax=axes, label="weight")
plt.show()

# %% [markdown]
# For all test sentences: the weight of *it* on both nouns and on the adjective.

# %%
on_correct = {}
for heads, reader in readers.items():
    for block, x in enumerate(explain.attention_maps(reader, test_tokens)):
        weights = x.weights[rows, :, it].mean(1)  # (B, T), mean of the heads
        on_correct[heads, block] = weights[rows, right].mean()
        parts = {"correct": right, "other": other, "adjective": cue}
        values = [
            f"{k} {weights[rows, v].mean():.0%}" for k, v in parts.items()
        ]
        print(f"{count_heads(heads)}, block {block}:", *values)
if not QUICK:
    assert np.ptp([on_correct[heads, 1] for heads in readers]) > 0.05

# %% [markdown]
# These maps differ although all models are accurate. A map describes one model.
#
# ### Head statistics
#
# Three numbers describe a head: over how many tokens its weights w are spread
# (the exponential of their entropy), their mean distance, and the weight on
# padding, which must be exactly 0. For T tokens without padding,
#
# $$\mathrm{spread} = \exp\Big(-\frac{1}{T} \sum_{t,s} w_{ts} \log w_{ts}\Big),
# \qquad
# \mathrm{distance} = \frac{1}{T} \sum_{t,s} w_{ts} |t - s|$$

# %%
reader = readers[2]
maps = explain.attention_maps(reader, test_tokens)
for x in maps:
    padding = explain.padding_attention(x, test_tokens != PAD)
    assert (padding == 0).all()
    spread = np.exp(explain.head_entropy(x).mean(0))
    distance = explain.head_distance(x).mean(0)
    for head in x.heads:
        print(
            f"{x.layer}, head {head}: {spread[head]:.1f} tokens, "
            f"distance {distance[head]:.1f}"
        )
n = len(test[0].words)
w = maps[0].weights[0, 0, :n, :n].astype("float64")
by_hand = -(w * np.log(np.where(w > 0, w, 1))).sum() / n
assert abs(by_hand - explain.head_entropy(maps[0])[0, 0]) < 1e-4

# %% [markdown]
# ## Four saliency maps
#
# We explain the model with two heads: which words make the correct noun
# probable at *it*?
#
# **Attention**: the weights of *it* in the last block, mean of the heads.
#
# **Rollout** (Abnar and Zuidema 2020, <https://arxiv.org/abs/2005.00928>):
# attention through all blocks; half of each vector comes from the residual
# connection. $A_l$ is the mean over the heads of block l:
#
# $$R_l = \big(\tfrac{1}{2} I + \tfrac{1}{2} A_l\big) R_{l-1}, \qquad R_0 = I$$
#
# **RISE**: n random masks a hide words. The value of a word is the mean of the
# output f over the masks that show it. Only outputs of the model are needed:
#
# $$\mathrm{RISE}_s = \frac{1}{n\, \mathbb{E}[a]} \sum_i f(x \odot a_i)\, a_{is}$$
#
# ![Four random masks of five words and the score of the model for each; a word
# gets the mean score of the masks that show
# it](../../diagrams/saliency_by_masks.svg)
#
# **Random** numbers, for comparison.

# %%
attention = maps[-1].weights[rows, :, it].mean(1)  # (B, T)
rolled = explain.rollout(maps)
R = np.eye(T)
for x in maps:
    A = (np.eye(T) + x.weights.mean(1)) / 2
    R = A / A.sum(-1, keepdims=True) @ R  # rows of padding have no weights
np.testing.assert_allclose(rolled, R, atol=1e-5)
rolled = rolled[rows, it]

masks = explain.TokenMasks(HIDDEN, keep_ids=(PAD, IT))


def function_of(row):
    """Returns f: ids (n, T) to the probability of the correct noun."""
    answer = test_tokens[row, right[row]]
    return lambda ids: probabilities(reader, ids)[:, it[row], answer]


f, ids = function_of(0), test_tokens[0]
a = masks.draw(np.random.default_rng(0), ids.shape, 64)
seen = (a == 1) | np.isin(ids, (PAD, IT))
by_hand = f(np.where(seen, ids, HIDDEN).astype("int32")) @ a / (64 * 0.5)
options = {"batch_size": 64, "seed": 0, "verbose": 0}
by_library = explain.rise(f, ids, masks, num_masks=64, **options)
np.testing.assert_allclose(by_hand, by_library, rtol=1e-4)

count = 2 if QUICK else 64  # sentences that are explained
options["num_masks"] = 64 if QUICK else 512
risen = [
    explain.rise(function_of(row), test_tokens[row], masks, **options)
    for row in range(count)
]

# %% [markdown]
# ### Deletion and insertion
#
# **Deletion** hides the words in the order of the map, the most salient first;
# the area under the probability should be small. **Insertion** starts with all
# words hidden and shows them; the area should be large. *It* is never hidden.

# %%
maps_of = {
    "attention": attention,
    "rollout": rolled,
    "RISE": risen,
    "random": random.random((count, T)),
}
curves = {name: [] for name in maps_of}
for name, values in maps_of.items():
    for row in range(count):
        saliency = np.array(values[row])
        saliency[np.isin(test_tokens[row], (PAD, IT))] = saliency.min() - 1
        curve = explain.deletion_and_insertion(
            function_of(row), test_tokens[row], saliency, masks
        )
        curves[name].append(curve)
print("           deletion        insertion")
areas = {}
for name, found in curves.items():
    x = np.array([(y.deletion_area, y.insertion_area) for y in found])
    areas[name] = x.mean(0)
    half = 1.96 * x.std(0, ddof=1) / np.sqrt(count)  # of a 95 % interval
    parts = (f"{a:.3f} ± {b:.3f}" for a, b in zip(x.mean(0), half, strict=True))
    print(f"{name:10}", *parts)
if not QUICK:
    for name in "attention", "rollout", "RISE":
        assert areas[name][0] < areas["random"][0]
        assert areas[name][1] > areas["random"][1]
    assert min(areas, key=lambda name: areas[name][0]) == "RISE"
    assert max(areas, key=lambda name: areas[name][1]) == "RISE"

# %% tags=["hide-input"] alt="Deletion curves fall fastest for RISE and slowest for random numbers; insertion curves rise fastest for RISE"
figure, axes = plt.subplots(
    1, 2, figsize=(9, 3.2), layout="constrained", sharey=True
)
for name, found in curves.items():
    for axis, part in zip(axes, ("deletion", "insertion"), strict=True):
        values = np.mean([getattr(x, part) for x in found], 0)
        axis.plot(found[0].fractions, values, label=name)
        axis.set(title=part, xlabel="fraction of the positions")
axes[0].set_ylabel("p(correct noun)")
axes[1].legend()
plt.show()

# %% [markdown]
# All three methods are better than random numbers in both areas; ± is half of a
# 95 % interval. RISE is best, but it hides words, as the test does. Attention
# uses the last block only, and both attention and rollout ignore the values.
#
# ### A large weight without an effect
#
# We hide each word alone and measure the fall of the probability. If attention
# showed what matters, the word with the largest weight would have an effect.

# %%
alone = np.repeat(test_tokens[:, None], T, axis=1)  # (B, T, T)
alone[:, np.arange(T), np.arange(T)] = HIDDEN
alone[rows, it] = test_tokens  # it is not hidden
answers = test_tokens[rows, right]
q = probabilities(reader, alone.reshape(-1, T)).reshape(B, T, T, V)
q = q[rows, :, it, answers]
p = probabilities(reader, test_tokens)[rows, it, answers]
fall = p[:, None] - q  # (B, T)
weights = attention.copy()
weights[rows, it] = 0
most = weights.argmax(-1)
no_effect = np.abs(fall[rows, most]) < 0.01
print(f"in {no_effect.mean():.0%} of the sentences, hiding the word with")
print("the largest weight changes the probability by less than 0.01")
worst = int(np.where(no_effect, weights[rows, most], 0).argmax())
print(*test[worst].words)
print(
    f"weight on {test[worst].words[most[worst]]!r}: "
    f"{weights[worst, most[worst]]:.0%}, effect {-fall[worst, most[worst]]:.3f}"
)
if not QUICK:
    assert no_effect.any()

# %% tags=["hide-input"] alt="Two rows for one sentence, attention and effect: the word with the largest weight has almost no effect"
n = len(test[worst].words)
table = [weights[worst, :n], fall[worst, :n]]
table = [x / np.abs(x).max() for x in table]
figure, axis = plt.subplots(figsize=(9, 1.8), layout="constrained")
image = axis.imshow(table, cmap="PuOr", vmin=-1, vmax=1, aspect="auto")
axis.set_xticks(range(n), test[worst].words, rotation=60)
axis.set_yticks(range(2), ["attention", "effect alone"])
figure.colorbar(image, label="relative")
plt.show()

# %% [markdown]
# The map is correct: the model does attend to this word. But without it, the
# prediction is almost the same. (Similar results for recurrent models: Jain and
# Wallace 2019, <https://arxiv.org/abs/1902.10186>.)

# %% [markdown]
# ## What heads compute together
#
# A map shows one head at a time. How do two blocks work together? A GPT with
# two blocks of two heads learns sequences that repeat: each has three words of
# its own, of two or three random tokens, in random order. The tokens of a word
# that comes again can be predicted only by looking at its first copy.

# %%
V, T = 32, 32
FIRST = 3  # the first ids are special


def sequence():
    """Returns T + 1 tokens: three words, repeated at random."""
    different = FIRST + random.permutation(V - FIRST)
    words = np.split(different, np.cumsum(random.integers(2, 4, 3)))[:3]
    return np.concatenate([words[i] for i in random.integers(0, 3, T)])[: T + 1]


def batch(rows):
    """Returns sequences, int32 (rows, T + 1)."""
    return np.stack([sequence() for _ in range(rows)]).astype("int32")


random = np.random.default_rng(1)
keras.utils.set_random_seed(1)
gpt = models.GPT(
    V,
    num_layers=2,
    num_heads=2,
    hidden_dim=D,
    intermediate_dim=D,
    dropout=0.0,
    position_embedding=None,
    attention_position=layers.RotaryPosition(),
    max_sequence_length=T,
)
for variable in gpt.trainable_variables:
    if len(variable.shape) > 1:
        variable.assign(4 * variable)  # larger than for the width of GPT-2
steps = 3 if QUICK else 1200
rate = keras.optimizers.schedules.CosineDecay(4e-3, steps)
gpt.compile(
    keras.optimizers.Adam(rate, global_clipnorm=1.0),
    training.SequenceCrossentropy(),
)
tokens = batch(64 * steps)
history = gpt.fit(tokens[:, :-1], tokens[:, 1:], batch_size=64, verbose=0)
print(f"mean loss of the training: {history.history['loss'][0]:.2f} nats")

# %% [markdown]
# The **logit lens** (nostalgebraist 2020, [interpreting GPT: the logit
# lens](https://www.lesswrong.com/posts/AcKRB8wDpdaN6v6ru)) applies the final
# norm and the output layer to the state after each block: what would the model
# predict if it ended there? We look at pairs of tokens that come again.

# %%
tokens = batch(64)
inputs, labels = tokens[:, :-1], tokens[:, 1:]
causal = np.tri(T, dtype=bool)


def after(distance):
    """Returns which keys are `distance` after the query's token, (B, T, T)."""
    found = np.zeros((len(inputs), T, T), bool)
    keys = inputs[:, None, : T - distance]
    found[:, :, distance:] = inputs[:, :, None] == keys
    return found & causal


same = (labels[:, :, None] == inputs[:, None]) & causal
again = (same & after(1)).any(-1)  # (B, T)
logits = explain.logit_lens(gpt, inputs)  # (3, B, T, V)
correct = {}
for name, x in zip(("embeddings", "block 0", "block 1"), logits, strict=True):
    correct[name] = (x.argmax(-1) == labels)[again].mean()
    print(f"{name}: {correct[name]:.1%} correct")
if not QUICK:
    assert correct["block 0"] < 0.3
    assert correct["block 1"] > 0.8

# %% [markdown]
# Not all of them can be known: any word may follow a word, also one that
# followed it before. But block 0 alone knows hardly any. What do the blocks do?
# For block 0 we measure the weight on each of the tokens just before, for block
# 1 the weight on those that came after an earlier copy of the current token.

# %%
block_0, block_1 = explain.attention_maps(gpt, inputs)
t = np.arange(T)
for head in block_0.heads:
    w = block_0.weights[:, head]
    back = [f"{w[:, t[k:], t[: T - k]].mean():.2f}" for k in (1, 2, 3)]
    print(f"block 0, head {head}: 1, 2 and 3 tokens back:", *back)
for head in block_1.heads:
    w = block_1.weights[:, head]
    found = [(w * after(k)).sum(-1)[again].mean() for k in (1, 2, 3)]
    print(
        f"block 1, head {head}: 1, 2 and 3 after an earlier copy:",
        *(f"{x:.2f}" for x in found),
    )
    if not QUICK:
        assert max(found) > 0.6

# %% [markdown]
# A head of block 1 that looks for an earlier copy of the current token, and at
# what followed it, is an *induction head* (Olsson et al. 2022,
# <https://arxiv.org/abs/2209.11895>). It needs block 0: only because a head
# there has written the previous tokens into a state can block 1 find a state
# by the token before it.
#
# **Activation patching** (Meng et al. 2022, <https://arxiv.org/abs/2202.05262>)
# tests this as a cause. We replace one token of the first copy. The model reads
# the corrupted sequence, but one state is that of the clean one. If the correct
# answer comes back, the information passed through this state.

# %%
words = np.arange(FIRST, FIRST + 9).reshape(3, 3)
clean = np.concatenate([*words, words[1, :2]])[None].astype("int32")
corrupted = clean.copy()
corrupted[0, 4] = V - 1  # the second token of the word that comes again
answer = words[1, 2]
patched = explain.patch(gpt, clean, corrupted, lambda x: x[:, -1, answer])
for name, restored in zip(correct, patched.restored, strict=True):
    best = restored.argmax()
    print(f"{name}: position {best} restores {restored[best]:.0%}")
    if not QUICK:
        assert restored[best] > 0.8

# %% tags=["hide-input"] alt="Three heat maps. A head of block 0 attends to tokens before. A head of block 1 attends, from a token that comes again, to a token after its first copy. Patches restore the score at one position of each layer"
labels = [str(token) for token in clean[0]]
figure, axes = plt.subplots(
    1, 3, figsize=(13, 4.2), layout="constrained", width_ratios=[1, 1, 1.3]
)
maps = explain.attention_maps(gpt, clean, heads=0)
for axis, x in zip(axes, maps, strict=False):
    explain.plot_attention(x.weights, labels, labels, ax=axis, vmax=1)
    axis.set_title(f"{x.layer}, head 0")
explain.plot_patch(patched, labels, title="patches", ax=axes[2])
plt.show()

# %% [markdown]
# The chain is complete. The replaced token, at position 4, enters the state two
# positions later through a head of block 0 that looks two tokens back. The last
# token finds this state, because the token two back is its own, and reads the
# token one back there, which came next in the first copy.
#
# In the language models of the paper, the heads of the first block look one
# token back and induction heads attend to the next token itself. Nothing in
# these data prefers one token to two.
#
# ## Summary
#
# - Attention weights show where a model looks, not what changes its prediction.
# - Rollout combines the blocks, RISE only needs outputs; deletion and insertion
#   compare maps of any origin.
# - A token with a large weight can have no effect; hide it to find out.
# - Models that are equally good can have different maps.
# - The logit lens shows from which block on a prediction is known, and a patch
#   shows which state carries it.
#
# ## Exercises
#
# **1.** A head has a weight of 0.9 on the last token, in every row, and the
# value vector of this token is zero. What do attention, rollout and deletion
# show?
#
# <details markdown>
# <summary>Answer</summary>
#
# Attention and rollout show a large contribution. Deletion shows no effect of
# the value: 0.9 times zero is zero. A head that has nothing to add can put its
# weight on such a token.
#
# </details>
#
# **2.** An answer needs one of two words: f = 1 if either of them is seen. What
# does hiding one word alone show, and what does RISE, with $\mathbb{E}[a] = 1/2$?
#
# <details markdown>
# <summary>Answer</summary>
#
# Alone, neither has an effect. With RISE, each of the two has the value 1, and
# the other words have 3/4, the mean output. So RISE finds both.
#
# ```python
# a = np.indices((2, 2, 2)).reshape(3, 8).T  # all masks of three words
# values = (a[:, 0] | a[:, 1]) @ a / (8 * 0.5)
# assert values.tolist() == [1, 1, 0.75]
# ```
#
# </details>
#
# **Next**: [Explaining models that sort](../sorting/index.md) tests RISE where
# the correct explanation is known.
