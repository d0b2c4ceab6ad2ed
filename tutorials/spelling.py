# %% [markdown]
# # Spelling correction
#
# In this tutorial you train a Transformer that reads a misspelled word and
# writes the correct one, letter by letter. The figure shows three words that it
# corrects, and which letters it attends to:
#
# ![Attention weights of three corrections: rows are the letters of the
# correction, columns those of the misspelled word](spelling-2.png)
#
# **You will learn** how to generate misspellings during training, how beam
# search returns several suggestions with their probabilities, how to measure a
# spelling corrector against a dictionary, and how to keep it from changing
# correct words.
#
# **Prerequisites**: [A Transformer learns to translate](../translate/index.md)
# and [Decoding](../decoding/index.md). **Time**: about 5 minutes on one CPU
# core.
#
# **Published result**: Xie et al. 2016 (<https://arxiv.org/abs/1603.09727>)
# correct whole sentences, character by character, with a recurrent network with
# attention; with a language model, it had the highest F0.5 on CoNLL 2014 at
# that time. Our model sees single words, without their sentence. Trained for an
# hour on real misspellings, a model of this library corrects [72.5 % of those
# of other words](../../results/spelling.md), but 16.1 % if it has seen no form
# of the word. The model below learns from 1,500 words and generated
# misspellings. It corrects 60 % of new misspellings of these words, and 21 % if
# it has seen no form of the word.

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

import random

import keras
import matplotlib.pyplot as plt
import numpy as np

from keras_attn import datasets, explain, text, training
from keras_attn.decoding import BeamSearch
from keras_attn.layers import T5Position
from keras_attn.models import Transformer

keras.utils.set_random_seed(1)
print(f"Keras {keras.__version__} on {keras.backend.backend()}")

# %% [markdown]
# ## Misspellings
#
# `misspell` is a model of the errors that people make. It omits letters, swaps
# or doubles them, confuses vowels, spellings of one sound, and neighboring
# keys. One word in five gets two errors. The number of examples is therefore
# unlimited, but the frequencies of the errors were chosen, not measured.

# %%
for word in "separate", "friend", "weather":
    print(f"{word:9}", *(datasets.misspell(word, seed=i) for i in range(7)))

# %% [markdown]
# There are two main tests: new misspellings of *words that the model was
# trained on*, and misspellings of *words that it has never seen*. For the
# second, no form of a word may be in the training data: `spelling_words` holds
# out whole families, such as *write*, *wrote* and *writer*. To keep the
# training short, we use words of four to eight letters. A few common
# misspellings of trained words, written by people, are a third test.

# %%
pairs = """
freind friend becuase because recieve receive wierd weird adress address
seperate separate wich which calender calendar foriegn foreign
writting writing suprise surprise thruogh through
""".split()
COMMON = dict(zip(pairs[::2], pairs[1::2], strict=True))


def words_of(split):
    """Returns the words of four to eight letters of a split."""
    return [w for w in datasets.spelling_words(split) if 4 <= len(w) <= 8]


n, tests = (200, 20) if QUICK else (1500, 300)
sampled = random.Random(1).sample(words_of("train"), n)
words = sorted({*sampled, *COMMON.values()})
held_out = words_of("test")
data = {
    "trained words": datasets.make_misspellings(tests, seed=2, words=words),
    "held-out words": datasets.make_misspellings(tests, seed=3, words=held_out),
}
assert not {*words} & {*held_out}
print(f"{len(words):,} words to train on, {len(held_out)} held out")
for name, pairs in data.items():
    print(f"{name}:", ", ".join(f"{w} -> {r}" for w, r in pairs[:4]))

# %% [markdown]
# ## Characters as tokens
#
# Each letter is a token; with padding, start and end, V = 29. The decoder reads
# the correct word after a start token, and its labels are the same letters
# followed by an end token. `BucketedDataset` calls `make_batch` in every epoch
# with new random numbers, so every epoch has new misspellings. One word in ten
# stays unchanged: most words in a text are correct, and the model must learn to
# copy them.

# %%
PAD, START, END = range(3)
LETTERS = "abcdefghijklmnopqrstuvwxyz"
V = 3 + len(LETTERS)


def encode(words, length):
    """Returns int32 ids (B, length) of words, with an end and padding."""
    ids = np.full((len(words), length), PAD, "int32")
    for row, word in zip(ids, words, strict=True):
        row[: len(word) + 1] = [*(LETTERS.index(c) + 3 for c in word), END]
    return ids


def decode(ids):
    """Returns the word of a row of ids."""
    return "".join(LETTERS[i - 3] for i in ids if i >= 3)


# %%
def make_batch(words, T, rng):
    """Returns ((source, target), labels) of misspellings of words."""
    seed = int(rng.integers(2**31))
    pairs = datasets.make_misspellings(
        len(words), seed=seed, words=words, unchanged_rate=0.1
    )
    wrongs, rights = zip(*pairs, strict=True)
    labels = encode(rights, T)
    target = np.roll(labels, 1, axis=1)
    target[:, 0] = START
    # A misspelling is at most two letters longer than its word: S = T + 2.
    return (encode(wrongs, T + 2), target), labels


# %%
batches = training.BucketedDataset(
    words * (1 if QUICK else 4),
    [len(word) + 1 for word in words] * (1 if QUICK else 4),
    make_batch,
    batch_size=64,
    num_buckets=1 if QUICK else 2,
    seed=1,
)
(source, target), labels = batches[0]
B, T = labels.shape
assert source.shape == (B, T + 2) and target.shape == (B, T)
print(decode(source[0]), source[0], "->", decode(labels[0]), labels[0])

# %% [markdown]
# ## Model
#
# The probability of a correction y of a word x is a product over its letters
# and the end token:
#
# $$p(y \mid x) = \prod_{t=0}^{|y|-1} p(y_t \mid y_{<t}, x)$$
#
# The encoder reads the whole word before the decoder writes the first letter,
# so letters may be missing, added or swapped. The sound of a letter depends on
# its neighbors. Besides the position in the word, we therefore give both stacks
# the relative positions of T5 ([Positions](../positions/index.md) shows
# others): each head adds a learned number b(s - t) to the score of query t and
# key s. In the encoder, every distance below 8 has its own number. Larger ones
# share eight numbers, in ranges that become wider up to a distance of 20, and
# keys after the query have 16 other numbers:

# %%
D, N = 128, 4
position = T5Position(N, max_distance=20)
table = keras.ops.convert_to_numpy(position.table)  # (32, N)
distance = np.arange(16) - np.arange(16)[:, None]  # s - t
size = abs(distance)
far = 8 + np.floor(8 * np.log(np.maximum(size, 8) / 8) / np.log(20 / 8))
rows = np.where(size < 8, size, far).astype(int) + 16 * (distance > 0)
bias, steps = position.bias(), keras.ops.arange(16)[None]
found = bias.function(bias.parameters, steps, steps)  # (1, N, 16, 16)
np.testing.assert_allclose(
    keras.ops.convert_to_numpy(found)[0], table[rows].transpose(2, 0, 1)
)

# %%
model = Transformer(
    V,
    num_layers=2,
    num_heads=N,
    hidden_dim=D,
    intermediate_dim=4 * D,
    dropout=0.1,
    normalize_first=True,
    encoder_attention_position=position,
    decoder_attention_position=T5Position(
        N, max_distance=20, bidirectional=False
    ),
    pad_id=PAD,
    start_id=START,
    end_id=END,
)
assert model((source, target)).shape == (B, T, V)
print(f"{model.count_params():,} parameters")

# %% [markdown]
# ## Training
#
# The loss is the cross-entropy per letter, without label smoothing. With a
# smoothing of 0.1, the model would learn to give even a certain letter a
# probability of about 0.9, and a word of ten letters and the end token only
# $0.9^{11} = 0.31$. We use the probabilities below, so we do not smooth them.

# %%
epochs = 1 if QUICK else 20
steps = epochs * len(batches)
schedule = keras.optimizers.schedules.CosineDecay(
    0.0, steps, warmup_target=2e-3, warmup_steps=steps // 10
)
model.compile(
    keras.optimizers.Adam(schedule, beta_2=0.98, epsilon=1e-9),
    training.SequenceCrossentropy(),
)
progress = training.TrainingProgress()
history = model.fit(
    batches, epochs=epochs, shuffle=False, callbacks=[progress], verbose=0
)

# %% tags=["hide-input"] alt="The training loss falls from above 4 to below 0.3 nats per letter"
figure = explain.plot_training(progress.losses, ylabel="loss (nats per letter)")
figure.set_figheight(2.4)
figure

# %% [markdown]
# ## Corrections
#
# We begin with the common misspellings: first those that the model corrects,
# then the others with the correct word in parentheses. Beam search with five
# beams returns the five most probable words that it finds ([Decoding](
# ../decoding/index.md)). Without a length penalty, the score of a word is
# $\log p(y \mid x)$, and `exp` of it is the probability of the whole word.

# %%
num_beams, L = 5, 12  # suggestions; maximum number of tokens of a word
strategy = BeamSearch(
    num_beams, num_return_sequences=num_beams, length_penalty=0
)


def suggest(words):
    """Returns pairs (word, probability) for each word, the best first."""
    decoded = model.generate(
        encode(words, L), L, strategy, batch_size=64, verbose=0
    )
    return [
        [(decode(ids), float(np.exp(s))) for ids, s in zip(*row, strict=True)]
        for row in zip(decoded.tokens, decoded.scores, strict=True)
    ]


# %%
found = dict(zip(COMMON, suggest([*COMMON]), strict=True))
is_right = {wrong: found[wrong][0][0] == COMMON[wrong] for wrong in COMMON}
lines = []
for wrong in sorted(COMMON, key=is_right.get, reverse=True):
    word, p = found[wrong][0]
    correct = "" if is_right[wrong] else f" ({COMMON[wrong]})"
    lines.append(f"{wrong:8} -> {word:8} {p:.2f}{correct}")
for pair in zip(lines[::2], lines[1::2], strict=True):
    print("{:38}{}".format(*pair))
print(f"{sum(is_right.values())} of {len(COMMON)} are right")
if not QUICK:
    assert sum(is_right.values()) >= 4

# %% [markdown]
# The probability of a suggestion is the product of those of its letters and of
# the end token. One call computes them if the decoder reads the whole
# suggestion.

# %%
wrong = max(is_right, key=is_right.get)  # the first that is right, if any
word, p = found[wrong][0]
labels = encode([word], L)
target = np.roll(labels, 1, axis=1)
target[:, 0] = START
logits = model((encode([wrong], L), target))[0]
letter_p = keras.ops.convert_to_numpy(keras.ops.softmax(logits))
letter_p = letter_p[np.arange(L), labels[0]][labels[0] != PAD]
print(f"{wrong} -> {word}:", *letter_p.round(3), f"product {p:.3f}")
if 0 < len(word) < L:
    np.testing.assert_allclose(np.prod(letter_p), p, rtol=1e-2)

# %% [markdown]
# ## Attention
#
# The cross-attention of the last decoder block, averaged over its heads, for
# the first three words that are right. A row is a letter that is written, and
# its weights over the letters of the misspelled word sum to 1. The end token is
# drawn as a dot.

# %% tags=["hide-input"] alt="Three heat maps: each written letter attends mostly to letters near its own position in the misspelled word"
shown = sorted(COMMON, key=is_right.get, reverse=True)[:3]
decoded = model.generate(
    encode(shown, L), L, strategy, return_weights=True, verbose=0
)
figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
for i, (wrong, axis) in enumerate(zip(shown, axes, strict=True)):
    word = decode(decoded.tokens[i, 0])
    weights = decoded.weights[i, 0, -1].mean(0)  # (L, S)
    weights = weights[: len(word) + 1, : len(wrong) + 1]
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-3)
    explain.plot_attention(weights, [*word, "·"], [*wrong, "·"], ax=axis)
    axis.set_title(f"{wrong} -> {word}")
plt.show()

# %% [markdown]
# The weights follow the word from left to right, although the data does not
# contain which letters correspond. To measure this, we correlate the number of
# the row with the column of its largest weight, over 100 test words.

# %%
pairs = data["trained words"][: 20 if QUICK else 100]
decoded = model.generate(
    encode([wrong for wrong, _ in pairs], L), L, return_weights=True, verbose=0
)
rows, columns = [], []
for length, weights in zip(decoded.lengths, decoded.weights, strict=True):
    column = weights[0, -1].mean(0)[: length[0]].argmax(-1)
    rows, columns = [*rows, *range(length[0])], [*columns, *column]
correlation = np.corrcoef(rows, columns)[0, 1]
print(f"correlation of row and attended column: {correlation:.2f}")
if not QUICK:
    assert correlation > 0.5

# %% [markdown]
# ## Several suggestions
#
# A misspelled word can have several corrections. The bars are the probabilities
# of the five suggestions. The rest of the probability belongs to words that the
# search did not return. Many suggestions are not English words: the model has
# no list of words.

# %% tags=["hide-input"] alt="Bars: for each of three words, five suggestions with their probabilities"
asked = ["ther", "tow", "lette"]
figure, axes = plt.subplots(1, 3, figsize=(10, 2.2), layout="constrained")
for word, best, axis in zip(asked, suggest(asked), axes, strict=True):
    p = [p for _, p in best]
    assert sum(p) <= 1 + 1e-3 and p == sorted(p, reverse=True)
    axis.barh(range(num_beams), p)
    axis.set_yticks(range(num_beams), [suggestion for suggestion, _ in best])
    axis.invert_yaxis()
    axis.set(title=word, xlim=(0, 1), xlabel="p(y | x)")
plt.show()

# %% [markdown]
# ## Baseline: the nearest word
#
# A dictionary corrects without a model: it takes the word with the smallest
# edit distance, the number of letters to insert, delete or replace. For the
# first i letters of x and the first j of y,
#
# $$d_{ij} = \min\big(d_{i-1,j} + 1,\; d_{i,j-1} + 1,\;
# d_{i-1,j-1} + [x_{i-1} \ne y_{j-1}]\big), \qquad d_{i0} = i,\; d_{0j} = j$$
#
# We compute row i from row i - 1, for all words of the dictionary at once.


# %%
def edit_distances(wrong, words):
    """Returns the edit distances of a word to each of a list of words."""
    lengths = [len(word) for word in words]
    J = max(lengths)
    letters = np.array([[*word.ljust(J)] for word in words]).T  # (J, words)
    d = np.tile(np.arange(J + 1)[:, None], len(words))  # row 0
    for i, letter in enumerate(wrong, start=1):
        before, d = d, np.full_like(d, i)
        for j in range(1, J + 1):
            changed = before[j - 1] + (letters[j - 1] != letter)
            d[j] = np.minimum(changed, np.minimum(before[j], d[j - 1]) + 1)
    return d[lengths, np.arange(len(words))]


some = words[::10]
distances = edit_distances("freind", some)
assert distances.tolist() == [text.edit_distance("freind", w) for w in some]
assert edit_distances("freind", ["friend"]) == [2]

# %% [markdown]
# This distance counts a swap of two letters as two edits (exercise 1).
#
# ## Exact matches
#
# The first suggestion is an exact match if it is the correct word. recall@n is
# the proportion of words whose correction is among the first n suggestions. The
# dictionary contains all answers, also the held-out words.

# %%
suggestions = {
    name: suggest([wrong for wrong, _ in pairs]) for name, pairs in data.items()
}


def recall(name, n):
    """Returns the proportion of words found among the first n suggestions."""
    found = zip(data[name], suggestions[name], strict=True)
    return np.mean([pair.right in dict(best[:n]) for pair, best in found])


# %%
dictionary = sorted({*words, *held_out})
scores = {}
for name, pairs in data.items():
    exact = [
        dictionary[edit_distances(wrong, dictionary).argmin()] == right
        for wrong, right in pairs
    ]
    scores[name] = {"nearest dictionary word": np.mean(exact)}
    for n in 1, 2, 5:
        scores[name][f"model, recall@{n}"] = recall(name, n)
print(f"{'':24}", *data)
for row in scores["trained words"]:
    print(f"{row:24}", *(f"{scores[name][row]:13.1%}" for name in data))
if not QUICK:
    known, new = (scores[name] for name in data)
    assert known["model, recall@1"] > 0.5
    assert new["model, recall@1"] < known["model, recall@1"] - 0.2
    assert known["model, recall@5"] > known["model, recall@1"]

# %% [markdown]
# The nearest word is right more often than the first suggestion, because the
# dictionary contains the answer and the model has to spell it. It spells far
# fewer of the words that it has never seen. A spelling checker therefore needs
# a list of words; a model can order the candidates, since it learns which
# errors are frequent. These are the first errors on the trained words:

# %%
pairs = zip(data["trained words"], suggestions["trained words"], strict=True)
wrongly = [(*pair, best) for pair, best in pairs if best[0][0] != pair.right]
for wrong, right, best in wrongly[:4]:
    listed = ", ".join(f"{word} {p:.2f}" for word, p in best[:3])
    print(f"{wrong:10} (correct: {right}): {listed}")
print(f"{len(wrongly)} of {tests} are wrong")

# %% [markdown]
# ## Correct words
#
# Most words in a text are correct. If 2 % are misspelled, a corrector that
# changes one correct word in ten makes about five times as many errors as it
# can remove. We therefore replace a word only if the first suggestion has at
# least the probability $\theta$, and measure both rates for all $\theta$.

# %%
thetas = np.linspace(0, 1, 101)
correct_words = words[:: len(words) // tests], held_out[:tests]


def best_of(rows):
    """Returns the first suggestion of each row, and where p >= theta."""
    found, p = map(np.array, zip(*(row[0] for row in rows), strict=True))
    return found, p >= thetas[:, None]  # (thetas, words)


# %%
changed, corrected = {}, {}
for name, part in zip(data, correct_words, strict=True):
    found, is_sure = best_of(suggest(part))
    changed[name] = (is_sure & (found != np.array(part))).mean(1)
    found, is_sure = best_of(suggestions[name])
    right = np.array([pair.right for pair in data[name]])
    corrected[name] = (is_sure & (found == right)).mean(1)
    for i in 0, 50, 90:
        print(
            f"{name:14} theta {thetas[i]:.1f}: {corrected[name][i]:5.1%} "
            f"corrected, {changed[name][i]:5.1%} of {len(part)} correct words "
            "changed"
        )
if not QUICK:
    assert changed["trained words"][0] < 0.1
    assert changed["held-out words"][0] > changed["trained words"][0]
    assert changed["held-out words"][90] < changed["held-out words"][0]

# %% tags=["hide-input"] alt="Four curves over theta: misspellings corrected and correct words changed, for trained and held-out words; three fall, and no trained word is changed"
figure, axis = plt.subplots(figsize=(7, 3), layout="constrained")
for name, style in zip(data, ("-", "--"), strict=True):
    axis.plot(thetas, corrected[name], f"C0{style}", label=f"corrected: {name}")
    axis.plot(thetas, changed[name], f"C1{style}", label=f"changed: {name}")
axis.set(xlabel=r"$\theta$", ylabel="proportion of words", ylim=(-0.02, 1))
axis.legend(fontsize=8)
plt.show()

# %% [markdown]
# The model changes none of the trained words (the solid orange line is at 0),
# but half of the correct words that it does not know. A larger $\theta$
# protects them, at the cost of corrections. [`examples/correct_spelling.py`](
# ../../install.md#other-tasks) trains on your own list of misspellings, and
# corrects the lines of a file with such a threshold.
#
# ## Summary
#
# - The model reads and writes characters; new misspellings are generated in
#   every epoch.
# - Beam search returns several words, and their scores are log-probabilities.
# - The model corrects words that it was trained on much better than new ones.
# - A corrector must also be measured on correct words; a threshold protects
#   them.
#
# ## Exercises
#
# **1.** What is the edit distance of *freind* and *friend*, and of *adress* and
# *address*? What would they be if a swap of neighbors counted as one edit
# (Damerau 1964)?
#
# <details markdown>
# <summary>Answer</summary>
#
# 2 and 1. With swaps, both are 1: one more term in the minimum,
# $d_{i-2,j-2} + 1$ where $x_{i-1} = y_{j-2}$ and $x_{i-2} = y_{j-1}$.
#
# ```python
# print(text.edit_distance("freind", "friend"))
# print(text.edit_distance("adress", "address"))
# ```
#
# </details>
#
# **2.** Train with `unchanged_rate=0.0`. How do you expect recall@1 and the
# number of correct words that are changed to differ?
#
# <details markdown>
# <summary>Answer</summary>
#
# Every input of the training is then misspelled, so the model changes correct
# words too. recall@1 may even rise a little, because copying is never right. A
# score that counts only misspelled words does not show this cost.
#
# </details>
#
# **3.** *ther* has the edit distance 1 from *there* and *their*. Which two
# things does the model know that the distance does not, and which third one
# would help most?
#
# <details markdown>
# <summary>Answer</summary>
#
# Which errors are frequent (an omitted letter more than a wrong key), and which
# words were in its training data. The words before and after it would help
# most.
#
# </details>
#
# **Next**: [Part-of-speech tagging](../tagging/index.md) labels each word of a
# sentence.
