# %% [markdown]
# # Part-of-speech tagging
#
# *They open the box*: here, *open* is a verb. *The open box is red*: here, it
# is an adjective. In this tutorial you train an encoder that assigns a part of
# speech to every word of a sentence. Each point of the figure is the vector of
# *open* in a different sentence:
#
# ![The vectors of the word open in many sentences form two groups, adjectives
# and verbs](tagging-3.png)
#
# **You will learn** how a word gets a vector from a table and from its
# characters, how to tag words that were never seen, how to compare a tagger
# with baselines that do not use context, and how one word gets different
# vectors in different sentences.
#
# **Prerequisites**: [Encoder and decoder, block by block](
# ../blocks/index.md). **Time**: 4 to 6 minutes on one CPU core.
#
# **Published result**: UDPipe 1 (<https://ufal.mff.cuni.cz/udpipe/1>) reports
# an accuracy of 94.4 % on the English Web Treebank, release 2.5, with the
# treebank's tokens. On release 2.16, a larger model of this library [reaches
# 95.01 %](../../results/tagging.md). The model below reaches 96.7 %, which is
# not comparable: its generated sentences have about 470 different words.

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

import collections
import functools

import keras
import matplotlib.pyplot as plt
import numpy as np

from keras_attn import datasets, explain, training
from keras_attn.layers import CharacterEmbedding, T5Position
from keras_attn.models import Encoder, TokenClassifier

keras.utils.set_random_seed(1)
to_numpy = keras.ops.convert_to_numpy
print(f"Keras {keras.__version__} on {keras.backend.backend()}")

# %% [markdown]
# ## Tagged sentences
#
# The tags are those of [Universal Dependencies](
# https://universaldependencies.org/u/pos), such as NOUN, VERB and ADP
# (prepositions). One in eight nouns, verbs and adjectives is held out with all
# its forms, and every test sentence has one of these unseen words.

# %%
n, tests = (300, 80) if QUICK else (8000, 2000)
train = datasets.make_tagged_sentences(n, seed=1)
test = datasets.make_tagged_sentences(tests, seed=1, split="test")
known = {word for sentence in train for word in sentence.words}
for sentence in train[0], test[0]:
    print(*map("/".join, zip(*sentence, strict=True)))
words = np.array([word for sentence in test for word in sentence.words])
tags = np.array([tag for sentence in test for tag in sentence.tags])
is_unseen = np.array([word not in known for word in words])
assert all({*sentence.words} - known for sentence in test)
print(
    f"{n:,} training sentences; {len(words):,} words in {tests:,} test "
    f"sentences, {is_unseen.mean():.0%} of them unseen:"
)
print(*sorted({*words[is_unseen]})[:10])
if not QUICK:
    assert 440 < len(known | {*words}) < 500

# %% [markdown]
# ## Baselines
#
# Most words always have the same tag. The first baseline gives each word its
# most frequent tag, and an unseen word the tag that most words have. The second
# gives an unseen word the most frequent tag of its longest known ending, of up
# to three letters. Neither uses the context. A word is *ambiguous* if its most
# frequent tag covers at most 90 % of its occurrences. The accuracy of the
# baselines is printed below, next to that of the models.

# %%
counts = collections.defaultdict(collections.Counter)
for sentence in train:
    for word, tag in zip(*sentence, strict=True):
        counts[word][tag] += 1
endings = collections.defaultdict(collections.Counter)
for word in counts:
    for size in range(min(3, len(word)) + 1):
        endings[word[len(word) - size :]].update(counts[word].keys())


def count_tag(word, longest):
    """Returns the most frequent tag of a word or of its ending."""
    found = counts.get(word)
    longest = min(longest, len(word))
    while not found:
        found = endings.get(word[len(word) - longest :])
        longest -= 1
    return found.most_common(1)[0][0]


# %%
ambiguous = {
    word
    for word, found in counts.items()
    if max(found.values()) <= 0.9 * found.total()
}
print("ambiguous:", *sorted(ambiguous))
groups = {
    "all words": np.ones(len(words), bool),
    "unseen": is_unseen,
    "ambiguous": np.isin(words, [*ambiguous]),
}
predicted = {
    "most frequent tag": np.array([count_tag(word, 0) for word in words]),
    "with endings": np.array([count_tag(word, 3) for word in words]),
}

# %% [markdown]
# ## Words and characters
#
# A word has an id, if it is in the training data, and the ids of its
# characters. In training, we replace 20 % of the word ids by the id of unknown
# words, and for half of these the ids of the characters too. Otherwise, the
# model would not learn to tag an unknown word by its spelling or its neighbors.

# %%
PAD, UNKNOWN, C, T = 0, 1, 14, 15  # C characters, T words at most
first = UNKNOWN + 1
word_ids = {word: i for i, word in enumerate(sorted(known), first)}
character_ids = {c: i for i, c in enumerate(sorted(set().union(*known)), first)}
tag_names = sorted({tag for sentence in train for tag in sentence.tags})
tag_ids = {tag: i for i, tag in enumerate(tag_names, 1)}  # 0: padding


# %%
def encode(sentences, length=T, rng=None, unknown_rate=0.0):
    """Returns the inputs of the model, and the labels (B, T)."""
    token_ids = np.full((len(sentences), length), PAD, "int32")
    characters = np.full((*token_ids.shape, C), PAD, "int32")
    labels = np.full_like(token_ids, PAD)
    for i, (words, tags) in enumerate(sentences):
        labels[i, : len(tags)] = [tag_ids[tag] for tag in tags]
        for j, word in enumerate(words):
            token_ids[i, j] = word_ids.get(word, UNKNOWN)
            ids = [character_ids.get(c, UNKNOWN) for c in word[:C]]
            characters[i, j, : len(ids)] = ids
    if unknown_rate:
        u = rng.random(token_ids.shape) / unknown_rate
        token_ids[(u < 1) & (token_ids != PAD)] = UNKNOWN
        characters[(u < 0.5)[..., None] & (characters != PAD)] = UNKNOWN
    return {"token_ids": token_ids, "character_ids": characters}, labels


# %%
inputs, labels = encode(train[:32], T, np.random.default_rng(1), 0.2)
B = len(labels)
assert inputs["token_ids"].shape == labels.shape == (B, T)
assert inputs["character_ids"].shape == (B, T, C)
print(train[0].words, inputs["token_ids"][0], labels[0], sep="\n")

# %% [markdown]
# ### A vector from characters
#
# `CharacterEmbedding` computes the vector of a word from the vectors $a_i$ of
# its characters (Kim et al. 2016, <https://arxiv.org/abs/1508.06615>). A filter
# looks at n neighboring characters, and its maximum over the word is kept, so
# that it detects a group of letters at any position. The results for n = 2, 3
# and 4 are concatenated and projected to D features:
#
# $$f_n = \max_i \tanh(a_{i:i+n} W_n + b_n), \qquad
# y = [f_2; f_3; f_4]\, W + b$$


# %%
def character_vector(word, weights):
    """Returns the vector y (D,) of a word."""
    table, *kernels, W, b = weights
    a = table[[character_ids[letter] for letter in word]]
    parts = []
    for kernel, bias in zip(kernels[::2], kernels[1::2], strict=True):
        n = len(kernel)
        padded = np.pad(a, (((n - 1) // 2, n // 2), (0, 0)))
        windows = np.stack([padded[i : i + n] for i in range(len(a))])
        f = np.tanh(np.einsum("inc,ncf->if", windows, kernel) + bias)
        parts.append(f.max(0))
    return np.concatenate(parts) @ W + b


# %%
D = 64
layer = CharacterEmbedding(first + len(character_ids), D)
y = to_numpy(layer(inputs["character_ids"]))
weights = [to_numpy(w) for w in layer.weights]
shown = np.flatnonzero(inputs["character_ids"][0, :, 0] > UNKNOWN)
for j in shown:
    by_hand = character_vector(train[0].words[j], weights)
    np.testing.assert_allclose(y[0, j], by_hand, atol=1e-5)
print(f"{len(shown)} vectors of {y.shape[-1]} features agree")

# %% [markdown]
# ## Model
#
# The input of the encoder is the sum of the vector E[x] from the table, times
# $\sqrt D$ as in Vaswani et al. 2017, and the vector from the characters. T5's
# relative positions add a learned number to each score, one per head and range
# of distances ([Spelling correction](../spelling/index.md#model) computes
# them), since what matters is the distance of a neighbor, not its position in
# the sentence. A dense layer, the same for all words, computes the logits of
# the tags:
#
# $$h = \mathrm{Encoder}(\sqrt D\, E[x] + \mathrm{chars}(x)), \qquad
# p(\mathrm{tag}_t \mid x) = \mathrm{softmax}(h_t W + b)$$

# %%
N = 2


def make_model(attention_position):
    """Returns an untrained tagger."""
    encoder = Encoder(
        first + len(word_ids),
        num_layers=2,
        num_heads=N,
        hidden_dim=D,
        intermediate_dim=4 * D,
        position_embedding=None,
        attention_position=attention_position,
        character_vocabulary_size=first + len(character_ids),
    )
    return TokenClassifier(encoder, 1 + len(tag_ids))


# %%
model = make_model(T5Position(N, num_buckets=16, max_distance=32))
assert model(inputs).shape == (B, T, 1 + len(tag_ids))
print(f"{model.count_params():,} parameters")

# %% [markdown]
# ## Training
#
# The loss is the cross-entropy of the tags; padding has class 0 and no loss. We
# train three models: the one above, one that never meets unknown words in
# training, and one without positions. Each is trained once, with one seed.

# %%
epochs = 1 if QUICK else 4
lengths = [len(sentence.words) for sentence in train]


def fit(model, unknown_rate):
    """Trains a model; returns the losses of its steps."""
    encode_some = functools.partial(encode, unknown_rate=unknown_rate)
    batches = training.BucketedDataset(
        train, lengths, encode_some, batch_size=B, num_buckets=1, seed=1
    )
    steps = epochs * len(batches)
    schedule = keras.optimizers.schedules.CosineDecay(
        0.0, steps, warmup_target=2e-3, warmup_steps=max(1, steps // 10)
    )
    model.compile(
        keras.optimizers.AdamW(schedule, weight_decay=0.01),
        training.SequenceCrossentropy(),
    )
    progress = training.TrainingProgress(tokens_per_epoch=len(train) * T)
    model.fit(
        batches, epochs=epochs, shuffle=False, callbacks=[progress], verbose=0
    )
    return progress.losses


# %%
losses = {"this model": fit(model, 0.2)}
unprepared = make_model(T5Position(N, num_buckets=16, max_distance=32))
losses["no unknown words"] = fit(unprepared, 0.0)
unordered = make_model(None)
losses["no positions"] = fit(unordered, 0.2)

# %% tags=["hide-input"] alt="Three falling loss curves; the one of the model without positions ends highest, the one without unknown words lowest"
figure, axis = plt.subplots(figsize=(6, 2.4), layout="constrained")
for name, values in losses.items():
    width = max(1, len(values) // 50)
    smooth = np.convolve(values, np.ones(width) / width, "valid")
    axis.plot(np.arange(len(smooth)) + width, smooth, label=name)
axis.set(xlabel="step", ylabel="loss (nats per word)", yscale="log")
axis.legend()
plt.show()

# %% [markdown]
# The loss of the model without unknown words is not comparable with the others:
# known words are easier to tag.
#
# ## Accuracy


# %%
def predict(model, sentences):
    """Returns the predicted tags of each sentence."""
    inputs, _ = encode(sentences)
    logits = model.predict(inputs, batch_size=100, verbose=0)
    found = logits[..., 1:].argmax(-1)  # never class 0, padding
    return [
        [tag_names[i] for i in row[: len(sentence.words)]]
        for row, sentence in zip(found, sentences, strict=True)
    ]


# %%
taggers = model, unprepared, unordered
for name, tagger in zip(losses, taggers, strict=True):
    predicted[name] = np.concatenate(predict(tagger, test))
predictions = predicted["this model"]
results = {}
print(f"{'':24}", *(f"{name:>10}" for name in groups))
for name, found in predicted.items():
    results[name] = [(found == tags)[x].mean() for x in groups.values()]
    print(f"{name:24}", *(f"{value:10.1%}" for value in results[name]))
if not QUICK:
    *baselines, ours, unprepared_, unordered_ = results.values()
    gains = np.subtract(ours, np.maximum(*baselines))
    assert gains.min() > 0 and gains[1:].min() > gains[0]
    assert baselines[1][1] < baselines[0][1]
    assert ours[1] > max(unprepared_[1], unordered_[1])
    assert ours[2] > unordered_[2]

# %% [markdown]
# The second baseline is worse than the first for unseen words: the endings of
# some 400 words mislead it. The improvement of this model over the baselines is
# largest for ambiguous words (48 points) and unseen ones (20 points). The model
# that never met an unknown word in training tags unseen words worse, although
# it reads their characters too: the ids were sufficient in training, so neither
# the characters nor the neighbors had to replace them. The model without
# positions tags both groups worse: it gets the words without their order.
#
# ### Confusion matrix
#
# Each row of the matrix is a correct tag, and each column a predicted tag.

# %% tags=["hide-input"] alt="Confusion matrix of twelve tags: the diagonal has 86 % for adjectives, 96 % for verbs and nouns, and about 100 % for the others"
figure = explain.plot_confusion(tags.tolist(), predictions.tolist())
figure.set_size_inches(5.3, 5.3)
figure

# %%
is_wrong = predictions != tags
errors = collections.Counter(
    zip(tags[is_wrong], predictions[is_wrong], strict=True)
)
for (tag, found), count in errors.most_common(4):
    wrong = {*words[(tags == tag) & (predictions == found)]}
    print(f"{count:5} x {tag} tagged as {found}:", *sorted(wrong)[:6])
share = is_unseen[is_wrong].mean()
print(f"{share:.0%} of the errors are in unseen words")
if not QUICK:
    assert share > 0.5

# %% [markdown]
# ## One word, two vectors
#
# *open* is an adjective or a verb. Its input vector is the same in every
# sentence. We compare the vectors $h_t$ after the last block, in up to 40
# sentences of each kind. The cosine of the angle between two vectors is 1 if
# they have the same direction. The figure shows the two directions in which the
# vectors vary most (their principal components); its title is the proportion of
# the variance that these two have.

# %%
pool = datasets.make_tagged_sentences(4000, seed=2, split="test")
uses = {"ADJ": [], "VERB": []}
for sentence in pool:
    for t, (word, tag) in enumerate(zip(*sentence, strict=True)):
        if word == "open" and len(uses[tag]) < 40:
            uses[tag].append((sentence, t))
found = [*uses["ADJ"], *uses["VERB"]]
kind = np.repeat(list(uses), [len(group) for group in uses.values()])

# %%
h = model.encoder.predict(
    encode([sentence for sentence, _ in found])[0], verbose=0
)
h = h[np.arange(len(found)), [t for _, t in found]]
assert h.shape == (len(found), D)
unit = h / np.linalg.norm(h, axis=1, keepdims=True)
cosines = unit @ unit.T
is_same = kind[:, None] == kind
is_other = ~np.eye(len(found), dtype=bool)
within = cosines[is_same & is_other].mean()
between = cosines[~is_same].mean()
print({tag: len(group) for tag, group in uses.items()})
print(f"mean cosine: same tag {within:.2f}, different tags {between:.2f}")
if not QUICK:
    assert within > between + 0.1

# %% tags=["hide-input"] alt="The vectors of open in two separate groups, adjectives and verbs"
centered = h - h.mean(0)
_, spread, directions = np.linalg.svd(centered, full_matrices=False)
flat = centered @ directions[:2].T
share = (spread**2)[:2].sum() / (spread**2).sum()
figure, axis = plt.subplots(figsize=(7, 3.3), layout="constrained")
for tag, marker in zip(uses, "o^", strict=True):
    points = flat[kind == tag]
    axis.scatter(*points.T, marker=marker, label=tag, alpha=0.7)
    sentence, t = uses[tag][0]
    axis.annotate(
        " ".join(sentence.words[max(0, t - 2) : t + 3]),
        points[0],
        xytext=(points[0, 0], flat[:, 1].max() + 0.5),
        ha="center",
        arrowprops={"arrowstyle": "-"},
    )
axis.margins(0.3)
axis.legend(title="open is tagged", loc="lower left")
axis.set(
    title=f"{share:.0%} of the variance",
    xlabel="first component",
    ylabel="second component",
)
plt.show()

# %% [markdown]
# ### Attention
#
# The weights of *open* over its sentence, for every head: first as a verb, then
# as an adjective. Each row sums to 1. The weights show which words were read,
# not which of them decided the tag ([Looking inside](
# ../looking_inside/index.md)).

# %% tags=["hide-input"] alt="Two heat maps, one per sentence: attention from open to the words of the sentence, for two heads of two blocks"
shown = [
    min(uses[tag], key=lambda item: len(item[0].words))
    for tag in ("VERB", "ADJ")
]
maps = explain.attention_maps(
    model.encoder, encode([sentence for sentence, _ in shown])[0]
)
rows = [f"block {b}, head {n}" for b in (0, 1) for n in range(N)]
figure, axes = plt.subplots(1, 2, figsize=(8, 2.6), layout="constrained")
for i, ((sentence, t), axis) in enumerate(zip(shown, axes, strict=True)):
    weights = np.concatenate([m.weights[i, :, t] for m in maps])
    weights = weights[:, : len(sentence.words)]  # none on padding
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-4)
    explain.plot_attention(weights, rows, [*sentence.words], ax=axis)
    axis.set(title=f"open, {sentence.tags[t]}", xlabel="", ylabel="")
plt.show()

# %% [markdown]
# ## Your own sentences
#
# *clean* is ambiguous too, and *blick* is not a word: the model can tag it by
# its neighbors and its letters only. Padding does not change the result: a
# sentence has the same vectors alone and with padding.

# %%
SENTENCES = [
    "they open the old box",
    "the open box is old",
    "we clean the garden",
    "the garden is clean",
    "the blick is old",
    "they blick the box",
]
mine = [
    datasets.TaggedSentence(line.split(), ["NOUN"] * len(line.split()))
    for line in SENTENCES
]  # `encode` needs tags; they are not used
tagged = predict(model, mine)
for sentence, row in zip(mine, tagged, strict=True):
    print(*map("/".join, zip(sentence.words, row, strict=True)))
assert {"open", "clean"} <= ambiguous
if not QUICK:
    assert tagged[0][1] == tagged[2][1] == "VERB"
    assert tagged[1][1] == tagged[3][3] == "ADJ"
alone, padded = (
    model.encoder.predict(encode(mine[:1], length)[0], verbose=0)
    for length in (5, T)
)
np.testing.assert_allclose(alone[0], padded[0, :5], atol=1e-4)

# %% [markdown]
# [`examples/tag.py`](../../install.md#other-tasks) trains a tagger on your own
# treebank in CoNLL-U, or on BIO tags of names.
#
# ## Summary
#
# - An encoder gives each word a vector that depends on its neighbors; one dense
#   layer classifies all of them.
# - Characters and neighbors represent unseen words, if the model meets unknown
#   words in training.
# - The improvement over baselines without context is largest for ambiguous and
#   unseen words: report these groups separately.
#
# ## Exercises
#
# **1.** Fill in the gaps. A sentence of 5 words is padded to 8, in a batch of
# 32; words have up to 14 characters, the model has 64 features and 2 heads.
# `token_ids` has the shape ..., `character_ids` ..., the output of the encoder
# ..., the weights of one attention layer .... Of the 8 weights of a word, ...
# are exactly zero.
#
# <details markdown>
# <summary>Answer</summary>
#
# (32, 8), (32, 8, 14), (32, 8, 64), (32, 2, 8, 8). The 3 of the padding are
# exactly zero.
#
# </details>
#
# **2.** Without positions, which of these sentences get the same vectors for
# *open*: *the man can open the old box*, *the open man can box the old*, *the
# open box is old*?
#
# <details markdown>
# <summary>Answer</summary>
#
# The first two: they have the same words in another order. Without positions,
# attention depends only on which words a sentence has, and how often.
#
# ```python
# lines = "the man can open the old box", "the open man can box the old"
# rows = [
#     datasets.TaggedSentence(line.split(), ["NOUN"] * 7) for line in lines
# ]
# h = unordered.encoder.predict(encode(rows)[0], verbose=0)
# np.testing.assert_allclose(h[0, 3], h[1, 1], atol=1e-4)
# ```
#
# </details>
#
# **3.** Why do the ending counts add each word once, and not each occurrence?
#
# <details markdown>
# <summary>Answer</summary>
#
# An unseen word resembles rare words, not the most frequent ones. *the* occurs
# in nearly every sentence, but this does not make DET a good prediction for an
# unseen word that ends in *-he*.
#
# </details>
#
# **Next**: [Speech recognition](../speech/index.md) reads sounds instead of
# words.
