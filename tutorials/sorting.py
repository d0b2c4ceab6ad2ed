# %% [markdown]
# # Explaining models that sort
#
# Two models sort numbers: one compares two numbers at a time, the other reads a
# whole list and writes it sorted. In this tutorial you train both and find out
# with RISE which digits and which numbers they depend on:
#
# ![Two tables of the deciding digit and the three digits: RISE is largest on
# the diagonal; attention is spread more evenly](sorting-1.png)
#
# In each row, another digit decides which number is larger.
#
# **You will learn** to sort with the comparisons of a model, to measure the
# effect of a digit with RISE, and to explain a model with several outputs.
#
# **Prerequisites**: attention maps and RISE, from [Looking inside](
# ../looking_inside/index.md). **Time**: about 5 minutes on one CPU core.
#
# **Published result**: RISE (Petsiuk et al. 2018,
# <https://arxiv.org/abs/1806.07421>) explains image classifiers. The paper
# measures deletion and insertion (0.108 and 0.727 for a ResNet-50 on ImageNet),
# and compares the maps with objects that people have marked in the images. Here
# the digit that decides and the number that is written are known exactly. For
# the model that sorts, RISE is largest at the correct number in 100 % of 256
# cases, which is not comparable with images.

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

import functools

import keras
import matplotlib.pyplot as plt
import numpy as np

from keras_attn import datasets, explain, models, training

keras.utils.set_random_seed(1)
random = np.random.default_rng(1)
to_numpy = keras.ops.convert_to_numpy
print(f"Keras {keras.__version__} on {keras.backend.backend()}")

# %% [markdown]
# ## Sorting by comparisons
#
# *Turksort* is a joke: a sorting algorithm asks people online for every
# comparison. Here a model reads the digits of two numbers and answers `<`, `=`
# or `>`. The longer number is larger (10 > 4); at equal length, the first digit
# that differs decides.
#
# Each training pair is used twice: complete, and with random digits masked. So
# the model has seen hidden digits in training, and we can hide digits later.

# %%
pairs = datasets.make_comparison_task(128 if QUICK else 6400, seed=1)
test_pairs = datasets.make_comparison_task(
    400 if QUICK else 2000, seed=1, split="test"
)
kept, MASK = (0, 1, 2), 3  # padding, the start and the ends; a hidden digit


def hide(tokens, kept, hidden_id):
    """Returns tokens with a random part of each row hidden."""
    rate = random.random((len(tokens), 1))
    hidden = (random.random(tokens.shape) < rate) & ~np.isin(tokens, kept)
    return np.where(hidden, hidden_id, tokens).astype("int32")


inputs = np.concatenate([pairs.tokens, hide(pairs.tokens, kept, MASK)])
labels = np.concatenate([pairs.labels, pairs.labels])
for (first, second), label in zip(
    pairs.numbers[:3].tolist(), pairs.labels[:3], strict=True
):
    print(first, "<=>"[label], second)

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


keras.utils.set_random_seed(1)
judge = models.SequenceClassifier(make_encoder(14, 4), 3, dropout=0.0)
class_loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
fit(judge, inputs, labels, class_loss, rate=1e-3)
p = probabilities(judge, test_pairs.tokens)
accuracy = (p.argmax(-1) == test_pairs.labels).mean()
print(f"{accuracy:.1%} of {len(p):,} test pairs are correct")
if not QUICK:
    assert accuracy > 0.85

# %% [markdown]
# Any sorting algorithm works with this comparison. For each list we ask the
# model about all 64 pairs, and Python's `sorted` uses the answers.


# %%
def pair_ids(first, second):
    """Returns the ids of two numbers (9,)."""
    ids = [1]
    for number in first, second:
        ids += [*(int(digit) + 4 for digit in str(number)), 2]
    return ids + [0] * (9 - len(ids))


assert [pair_ids(*x) for x in test_pairs.numbers] == test_pairs.tokens.tolist()


def sort(numbers):
    """Sorts numbers by the comparisons of the model."""
    ids = np.array([pair_ids(a, b) for a in numbers for b in numbers], "int32")
    signs = probabilities(judge, ids).argmax(-1).reshape(8, 8) - 1
    order = sorted(
        range(8), key=functools.cmp_to_key(lambda i, j: int(signs[i, j]))
    )
    return [numbers[i] for i in order]


lists = np.random.default_rng(1).integers(0, 1000, (4 if QUICK else 100, 8))
in_order = [sort(row) == sorted(row) for row in lists.tolist()]
print(lists[0].tolist(), "->", sort(lists[0].tolist()))
print(f"{np.mean(in_order):.0%} of {len(lists)} lists are sorted correctly")
print(f"17 independent comparisons are correct with p = {accuracy**17:.0%}")
if not QUICK:
    assert np.mean(in_order) < accuracy**17

# %% [markdown]
# A list needs about 17 correct comparisons. Fewer lists are correct than this
# probability suggests. The lists are probably harder than the test pairs: nine in
# ten of their numbers have three digits, so the digits have to decide.
#
# ### Which digit decides?
#
# The correct explanation is known here: of numbers with equal length, the first
# digit that differs. We compare RISE with the attention of the start token,
# from which the sign is predicted. [RISE](
# ../looking_inside/index.md#four-saliency-maps) of token s is the mean output f
# over those of n random masks a that show s:
#
# $$\mathrm{RISE}_s = \frac{1}{n\, \mathbb{E}[a]} \sum_i f(x \odot a_i)\, a_{is}$$
#
# The start is never hidden, so its RISE value is about the mean of f. For a
# digit, $2\,(\mathrm{RISE}_s - \mathrm{RISE}_0)$ estimates how much larger f is
# if the digit is seen than if it is hidden, since half of the masks show it.

# %%
options = {"num_masks": 64 if QUICK else 512, "batch_size": 64}
options |= {"seed": 0, "verbose": 0}
digit_masks = explain.TokenMasks(MASK, keep_ids=kept)
chosen = (test_pairs.numbers >= 100).all(1) & (test_pairs.positions[:, 0] > 0)
table = {"RISE": np.zeros((3, 3)), "attention": np.zeros((3, 3))}
for digit in range(3):
    number = 1 if QUICK else 24
    decides = chosen & (test_pairs.positions[:, 0] == digit + 1)
    found = np.flatnonzero(decides)[:number]
    for row in found:
        answer = test_pairs.labels[row]
        saliency = explain.rise(
            lambda ids, answer=answer: probabilities(judge, ids)[:, answer],
            test_pairs.tokens[row],
            digit_masks,
            **options,
        )
        effect = 2 * (saliency - saliency[0])
        table["RISE"][digit] += (effect[1:4] + effect[5:8]) / 2 / len(found)
    last = explain.attention_maps(judge, test_pairs.tokens[found])[-1]
    weights = last.weights[:, :, 0].mean((0, 1))
    table["attention"][digit] = weights[1:4] + weights[5:8]
for name, values in table.items():
    print(f"{name}, by the digit that decides:\n{values.round(2)}")
if not QUICK:
    assert (table["RISE"].argmax(1) == np.arange(3)).all()
    diagonal = {name: np.trace(x) / x.sum() for name, x in table.items()}
    assert diagonal["RISE"] > diagonal["attention"]

# %% tags=["hide-input"] alt="Two tables of the deciding digit and the three digits: RISE is largest on the diagonal; attention is spread more evenly"
figure, axes = plt.subplots(1, 2, figsize=(7, 2.8), layout="constrained")
highest = max(values.max() for values in table.values())
for axis, (name, values) in zip(axes, table.items(), strict=True):
    image = axis.imshow(values, cmap="cividis", vmin=0, vmax=highest)
    names = "first", "second", "third"
    axis.set_xticks(range(3), names)
    axis.set_yticks(range(3), names)
    axis.set(title=name, xlabel="digit", ylabel="digit that decides")
figure.colorbar(image, ax=axes, label="effect or weight")
plt.show()

# %% [markdown]
# RISE finds the digit that decides. The attention of the last block is spread
# more evenly: its keys and values can already contain several digits.
#
# ## A model that sorts
#
# An encoder-decoder Transformer reads eight numbers and writes them sorted.
# Some training examples have masked numbers, which the output omits, so RISE
# can mask numbers.

# %%
B = 8 if QUICK else 256
sequences = datasets.make_sorting_task(
    128 if QUICK else 6400, max_mask_rate=0.8, seed=1
)
test_set = datasets.make_sorting_task(B, seed=1, split="test")
keras.utils.set_random_seed(1)
sorter = models.Transformer(
    44,
    num_layers=2,
    num_heads=2,
    hidden_dim=D,
    intermediate_dim=2 * D,
    dropout=0.0,
)
loss = training.SequenceCrossentropy()
fit(sorter, (sequences.source, sequences.target), sequences.labels, loss)
p = probabilities(sorter, (test_set.source, test_set.target))
correct = (p.argmax(-1) == test_set.labels).all(1)
source, labels = test_set.source[0, :8], test_set.labels[0, :8]
print(source - 4, "->", labels - 4)  # ids 0 to 3 have other meanings
print(f"{correct.mean():.1%} of {B} rows are sorted correctly")

# %% [markdown]
# The decoder reads the correct tokens, so each output is one decision: which
# number comes next. For outputs of T tokens and sources of S, RISE is (T, S): f
# returns one probability per token, given the correct tokens before it.


# %%
def written(row):
    """Returns f: sources (n, S) to the probabilities of the output (n, T)."""

    def f(sources):
        target = np.tile(test_set.target[row], (len(sources), 1))
        p = probabilities(sorter, (sources, target))
        return p[:, np.arange(9), test_set.labels[row]]

    return f


number_masks = explain.TokenMasks(3, keep_ids=(0, 2))
count = 2 if QUICK else 32
saliency = np.array(
    [
        explain.rise(written(i), test_set.source[i], number_masks, **options)
        for i in range(count)
    ]
)
inputs = test_set.source[:count], test_set.target[:count]
cross = explain.attention_maps(sorter, inputs, layers="cross_attention")[-1]
found = {"RISE": saliency, "attention": cross.weights.mean(1)}
where = test_set.source[:count, None, :8] == test_set.labels[:count, :8, None]
for name, x in found.items():
    agree = (x[:, :8, :8].argmax(-1) == where.argmax(-1)).mean()
    print(f"{name} is largest at the number that is written: {agree:.1%}")
    if not QUICK:
        assert agree > 0.8

# %% tags=["hide-input"] alt="RISE and attention for one list: in each row, the largest value is at the number that is written"
figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
for axis, (name, x) in zip(axes, found.items(), strict=True):
    values = x[0, :8, :8]
    image = axis.imshow(values, cmap="cividis", vmin=0, vmax=1)
    axis.set_xticks(range(8), source - 4)
    axis.set_yticks(range(8), labels - 4)
    axis.set(title=name, xlabel="number in the source", ylabel="written number")
figure.colorbar(image, ax=axes, label="RISE or weight")
plt.show()

# %% [markdown]
# Here both methods agree for all outputs. The RISE value of a number that does
# not change an output is about the mean of f, not 0.
#
# ## Summary
#
# - Any sorting algorithm can use the comparisons of a model; a list needs many
#   correct ones.
# - RISE finds the digit that decides; the attention of the last block is spread
#   more evenly.
# - Differences of RISE values estimate the effect of a token.
# - RISE of T outputs and S inputs is (T, S).
# - Attention and RISE agree for the model that sorts whole lists.
#
# ## Exercises
#
# **1.** f = 1 if the first digit is seen and 0 otherwise, and half of the masks
# show a digit. What is RISE at the first digit, at another digit, and at the
# start, which is never hidden? What is the effect
# $2\,(\mathrm{RISE}_s - \mathrm{RISE}_0)$?
#
# <details markdown>
# <summary>Answer</summary>
#
# RISE is 1 at the first digit, and 1/2 at the others and at the start, the mean
# of f. The effect is 1 for the first digit and 0 for the others:
#
# ```python
# a = np.indices((2, 2, 2)).reshape(3, 8).T  # masks of the start, two digits
# values = a[:, 1] @ a / (8 * 0.5)
# assert values.tolist() == [0.5, 1, 0.5]
# assert (2 * (values - values[0])).tolist() == [0, 1, 0]
# ```
#
# </details>
#
# **2.** How accurate must independent comparisons be to sort nine of ten lists
# correctly, if a list needs 17 of them? And for lists of 64 numbers, which need
# at least $\log_2 64!$?
#
# <details markdown>
# <summary>Answer</summary>
#
# With n comparisons, $p^n = 0.9$: 99.38 % for 17 comparisons, and 99.96 % for
# 296.
#
# ```python
# n = np.ceil(np.log2(np.arange(1, 65)).sum())
# assert n == 296
# assert [round(0.9 ** (1 / k), 4) for k in (17, n)] == [0.9938, 0.9996]
# ```
#
# </details>
#
# **Next**: the [overview of the tutorials](../index.md), or your own data with
# the [example programs](../../install.md#translating-your-own-files).
