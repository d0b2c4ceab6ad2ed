# %% [markdown]
# # Show, attend and tell
#
# In this tutorial you train a network that describes images of two colored
# shapes, and looks at a part of the image for each word:
#
# ![Four scenes; beside each, where the model looks for each word of its
# caption](captions-3.png)
#
# **You will learn** how an image becomes a grid of vectors, how a decoder with
# attention reads it, how to test whether a caption is true and where the model
# looked, whether it can name combinations that it has never seen, and what
# changes if it looks at one position only.
#
# **Prerequisites**: additive attention, from [Attention from its first forms](
# ../first_forms/index.md), [hard attention](../hard_attention/index.md), and the
# decoder of [Recurrent seq2seq](../recurrent/index.md). **Time**: about 3 minutes
# on one CPU core.
#
# **Published result**: *Show, Attend and Tell* (Xu et al. 2015,
# <https://arxiv.org/abs/1502.03044>) reports a BLEU-4 of 24.3 with soft and
# 25.0 with hard attention on photographs of MS COCO. For *A woman is throwing a
# frisbee in a park*, its model looks at the disc when it predicts *frisbee*.
# Our scenes are synthetic, with a vocabulary of 18 words, and we count true
# captions of known combinations: 93.5 % with soft and 89.2 % with hard
# attention. This cannot be compared with BLEU. For captions written by people,
# see the [results](../../results/captioning.md).

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

from keras_attn import datasets, explain, training
from keras_attn.layers import ScoredAttention
from keras_attn.models import ImageCaptioner

keras.utils.set_random_seed(1)
print(f"Keras {keras.__version__} on {keras.backend.backend()}")

# %% [markdown]
# ## Scenes
#
# A scene has two objects, each in one of six colors and with one of six shapes.
# A caption names both and their relation. Of the 36 combinations of a color and
# a shape, six never occur in training:

# %%
HELD_OUT = [
    *(("red", "circle"), ("green", "square"), ("blue", "triangle")),
    *(("yellow", "cross"), ("purple", "ring"), ("white", "diamond")),
]
sizes = {"train": 8000, "validation": 400, "test": 400}
if QUICK:
    sizes = {"train": 64, "validation": 8, "test": 8}
train, validation, test = (
    datasets.make_scenes(n, seed=1, split=split) for split, n in sizes.items()
)


def unseen(scene):
    """Returns how many objects of a scene are held-out combinations."""
    return sum((thing.color, thing.shape) in HELD_OUT for thing in scene)


assert not any(map(unseen, train.objects + validation.objects))
assert {unseen(scene) for scene in test.objects} == {1, 2}
assert not {*train.captions} & {*validation.captions}
print(*train.captions[:3], sep="\n")

# %% tags=["hide-input"] alt="Six scenes of two colored shapes on gray, with their captions; the lower three contain combinations that are not in the training data"
figure, axes = plt.subplots(2, 3, figsize=(8, 5), layout="constrained")
for row, part, name in zip(
    axes, (train, test), ("training", "test"), strict=True
):
    row[0].set_ylabel(name)
    for axis, image, caption in zip(row, *part[:2], strict=False):
        axis.imshow(image)
        axis.set(xticks=[], yticks=[])
        axis.set_title(caption.replace(" a ", "\na "), fontsize=9)
plt.show()

# %% [markdown]
# The validation scenes have the same combinations as in training, but other
# captions. Every test scene contains one or two combinations that the model has
# never seen. `check_caption` tests whether a caption names the right objects
# and the right relation.

# %%
scene, caption = test.objects[0], test.captions[0]
words = caption.split()
wrong = " ".join([*words[-3:], *words[3:-3], *words[:3]])  # objects exchanged
for text in caption, wrong:
    print(text, datasets.check_caption(scene, text))
assert all(datasets.check_caption(scene, caption))
assert datasets.check_caption(scene, wrong) == (True, True, False)

# %% [markdown]
# ## Model
#
# Convolutions turn the image into a grid of S vectors $a_s$ (the paper's letter),
# one for every 4 x 4 pixels. Xu et al. use a network that was trained on
# ImageNet; ours is small and trained with the decoder. A learned vector of its
# position is added to each $a_s$.
#
# ![Convolutions make a grid; the LSTM state weights its cells; their sum and
# the state predict the next word](../../diagrams/show_attend_tell.svg)
#
# The decoder is the one of [recurrent translation](../recurrent/index.md). It
# starts from the mean of the grid. The grid vectors are its keys and values,
# with the additive score. Its state $q_t$ after reading the word $y_t$ is the
# query:
#
# $$q_{-1} = \tanh\Big(\frac{1}{S} \sum_s a_s W_0 + b_0\Big), \qquad
# q_t = \mathrm{LSTM}(q_{t-1}, E[y_t])$$
#
# $$w_{ts} = \mathrm{softmax}_s\big(u \cdot \tanh(q_t W + a_s U)\big), \qquad
# c_t = \sum_s w_{ts} a_s, \qquad
# \mathrm{logits}_t = \tanh([c_t; q_t]\, W_c)\, W_o + b_o$$
#
# The cell state of the LSTM starts in the same way, with other weights. (The
# paper writes L for S, $\alpha$ for w and $\hat z$ for c; its query is the
# state of the previous step.)

# %%
special = ["[pad]", "[start]", "[end]"]  # ids 0, 1, 2
vocabulary = [
    *special,
    *sorted({word for text in train.captions for word in text.split()}),
]
V, D, T = len(vocabulary), 16 if QUICK else 96, 9
_, height, width, _ = train.images.shape
assert V == 3 + 18 or QUICK


# %%
def make_model(hard=None):
    """Returns an untrained model with soft or hard attention."""
    keras.utils.set_random_seed(1)
    return ImageCaptioner(
        V,
        (height, width, 3),
        hidden_dim=D,
        filters=4 if QUICK else 16,
        attention=ScoredAttention("additive", hard=hard, seed=1),
        dropout=0.0,
    )


model = make_model()
rows, columns = model.grid_size
(grid, _), ((q, cell),) = model.encode(train.images[:2])
assert grid.shape == (2, rows * columns, D)
assert q.shape == cell.shape == (2, D)  # state and cell state of the LSTM
print(f"grid {rows} x {columns}, {model.count_params():,} parameters")

# %% [markdown]
# ## Batches
#
# The decoder is also a language model. It soon learns that *red* is never
# followed by *circle*, and may then ignore the image. Therefore we replace 30 %
# of the colors and shapes that the decoder reads by random ones (*misread*
# words), while the labels stay correct. But earlier words are also useful: they
# show what was already named. The last epochs therefore use the correct words.
#
# A scene has two true captions. Each time, one of them is chosen at random.

# %%
index = {word: i for i, word in enumerate(vocabulary)}
opposite = {"left": "right", "right": "left", "above": "below"}
opposite["below"] = "above"
kinds = {thing.color for scene in train.objects for thing in scene}
kinds |= {thing.shape for scene in train.objects for thing in scene}
kind_ids = np.array([index[word] for word in sorted(kinds)])


# %%
def converse(caption):
    """Returns the caption that names the other object first."""
    words = caption.split()
    relation = [opposite.get(word, word) for word in words[3:-3]]
    return " ".join([*words[-3:], *relation, *words[:3]])


def encode(captions):
    """Returns labels: ids of words and the end, int32 (B, T)."""
    labels = np.zeros((len(captions), T), "int32")
    for row, caption in zip(labels, captions, strict=True):
        ids = [*(index[word] for word in caption.split()), 2]
        row[: len(ids)] = ids
    return labels


# %%
def make_batches(misread):
    """Returns batches in which some of the decoder's inputs are wrong."""

    def make_batch(examples, length, random):
        images, captions = zip(*examples, strict=True)
        labels = encode(
            [t if random.random() < 0.5 else converse(t) for t in captions]
        )
        target = np.pad(labels[:, :-1], ((0, 0), (1, 0)), constant_values=1)
        target[labels == 0] = 0
        change = np.isin(target, kind_ids)
        change &= random.random(target.shape) < misread
        target[change] = random.choice(kind_ids, change.sum())
        return (np.stack(images), target), labels

    examples = [*zip(*train[:2], strict=True)]
    return training.BucketedDataset(
        examples, [T] * len(examples), make_batch, 32, num_buckets=1, seed=1
    )


# %%
(images, target), labels = make_batches(0.3)[0]
assert images.shape[1:] == (height, width, 3) and target.shape == labels.shape
for name, ids in ("decoder input", target[0]), ("labels", labels[0]):
    print(f"{name:14}", *(vocabulary[i] for i in ids if i))

# %% [markdown]
# Here the decoder reads *white* instead of *circle*.
#
# ## Training
#
# The loss is the cross-entropy of the next word. We train with misread words,
# then with the correct ones and half the learning rate.

# %%
losses = []
for epochs, misread, rate in (4, 0.3, 2e-3), (2, 0.0, 1e-3):
    batches, epochs = make_batches(misread), 1 if QUICK else epochs
    steps = epochs * len(batches)
    schedule = keras.optimizers.schedules.CosineDecay(
        rate / 100, steps, warmup_target=rate, warmup_steps=1 + steps // 20
    )
    model.compile(
        keras.optimizers.Adam(schedule, clipnorm=1.0),
        training.SequenceCrossentropy(),
    )
    progress = training.TrainingProgress()
    model.fit(
        batches, epochs=epochs, shuffle=False, callbacks=[progress], verbose=0
    )
    losses += progress.losses
start = len(losses) - steps  # of the second part
if not QUICK:
    assert np.mean(losses[-50:]) < np.mean(losses[start - 50 : start])

# %% tags=["hide-input"] alt="The loss falls, and falls again after the vertical line, where the decoder reads the correct words"
figure, axis = plt.subplots(figsize=(6, 2.6), layout="constrained")
size = max(1, len(losses) // 100)
smooth = np.convolve(losses, np.ones(size) / size, "valid")
axis.plot(np.arange(len(smooth)) + size, smooth)
axis.axvline(start, color="0.6", linewidth=1)
axis.set(xlabel="step", ylabel="loss (nats per word)", ylim=(0, None))
plt.show()

# %% [markdown]
# With misread words the loss cannot become as low as with the correct ones: if
# the first object was misread, the model cannot know which object it still has
# to name. At the vertical line, the second part of the training begins.
#
# ## Captions
#
# `generate` takes images, and returns the attention weights with the words. In
# the figure, dark parts have almost no weight.


# %% alt="Four scenes; beside each, one panel per word of its caption, bright where the model looks: at both objects for the first color, then for colors and shapes at the object that is named"
def describe(model, images):
    """Returns captions and weights (B, T, rows, columns)."""
    found = model.generate(images, T, return_weights=True)
    captions = [
        " ".join(vocabulary[i] for i in ids if i > 2)
        for ids in found.tokens[:, 0].tolist()
    ]
    weights = found.weights[:, 0, 0, 0]
    return captions, weights.reshape(*weights.shape[:2], rows, columns)


captions, weights = describe(model, validation.images)
np.testing.assert_allclose(weights[:, 0].sum((1, 2)), 1, atol=1e-4)
explain.plot_image_attention(
    validation.images[:4],
    weights[:4],
    [text.split()[: weights.shape[1]] for text in captions[:4]],
)

# %% [markdown]
# How many captions are true? We count those with the right objects, and those
# that are true as a whole.


# %%
def score(name, model, images, objects):
    """Prints how often objects and captions are right; returns the latter."""
    captions, _ = describe(model, images)
    checks = np.array(
        [*map(datasets.check_caption, objects, captions)], dtype=bool
    )
    right, true = checks[:, 1].mean(), checks.all(1).mean()
    print(f"{name:28} objects {right:6.1%}, true {true:6.1%}")
    return true


true = {}
known = validation.images, validation.objects
true["soft"] = score("known combinations", model, *known)
for number, name in (1, "one new combination"), (2, "two new combinations"):
    chosen = [unseen(scene) == number for scene in test.objects]
    part = [o for o, use in zip(test.objects, chosen, strict=True) if use]
    true[number] = score(name, model, test.images[chosen], part)
if not QUICK:
    assert true["soft"] > 0.8 and 0.1 < true[1] < true["soft"]

# %% [markdown]
# A red circle was never shown in training, and the words *red circle* never
# occurred in a caption. A model that had learned whole combinations only would
# name none of them. This one has learned color and shape separately to some
# degree, but it makes far more errors than with known combinations. A likely
# reason is that the words that it reads still make a known combination more
# probable; exercise 3 compares with a model that never misread a word. Where
# the objects are right, the relation is always right, too.
#
# ### Attention on the named object
#
# We know where the objects are. For each color and each shape of a true
# caption, we sum the weights on the object that it names, with a margin of one
# cell of the grid. For comparison, we print the mean area of an object with its
# margin: this would be the weight if all positions had the same weight.


# %%
def inside(thing):
    """Returns which grid cells an object covers, with a margin of one cell."""
    cell = height / rows
    y, x = (np.indices((rows, columns)) + 0.5) * cell
    reach = thing.radius + cell
    return (abs(x - thing.x) <= reach) & (abs(y - thing.y) <= reach)


# %%
def on_object(captions, weights, objects):
    """Prints and returns the mean weight on the object that is named."""
    found = {"color": [], "shape": []}
    for text, w, scene in zip(captions, weights, objects, strict=True):
        words = text.split()
        if not all(datasets.check_caption(scene, text)):
            continue
        by_kind = {(thing.color, thing.shape): thing for thing in scene}
        for first in 1, len(words) - 2:
            cells = inside(by_kind[tuple(words[first : first + 2])])
            found["color"].append(w[first][cells].sum())
            found["shape"].append(w[first + 1][cells].sum())
    means = {name: np.mean(values or [0]) for name, values in found.items()}
    print(*(f"{name} {value:.0%}" for name, value in means.items()), sep=", ")
    return means


# %%
area = np.mean([inside(o).mean() for s in validation.objects for o in s])
print(f"mean area {area:.0%}")
means = on_object(captions, weights, validation.objects)
if not QUICK:
    assert min(means.values()) > 2 * area

# %% [markdown]
# Both are far above the area. For colors the weight is lower: at the first
# color, the figure shows weight on both objects, as both captions are still
# possible.
#
# ### Left and right
#
# In a mirrored image, *left* and *right* are exchanged, and the objects stay
# the same. A model that has learned the relation exchanges the words.

# %%
mirrored = validation.images[:, :, ::-1]
objects = [
    tuple(thing._replace(x=width - thing.x) for thing in scene)
    for scene in validation.objects
]
print("image: ", captions[0])
print("mirror:", describe(model, mirrored[:1])[0][0])
true["mirror"] = score("mirrored", model, mirrored, objects)
if not QUICK:
    assert true["mirror"] > 0.8

# %% [markdown]
# ### Loss with another image
#
# For captions of photographs, no rule decides what is true. Another test works
# for all data: we compare the loss of the captions, given their own images and
# given the images of other captions.

# %%
labels = encode(validation.captions)
target = np.pad(labels[:, :-1], ((0, 0), (1, 0)), constant_values=1)
target[labels == 0] = 0
loss = {}
for name, shift in ("own", 0), ("other", len(labels) // 2):
    images = np.roll(validation.images, shift, axis=0)
    loss[name] = model.evaluate((images, target), labels, verbose=0)
    print(f"{loss[name]:.2f} nats per word with the {name} image")
if not QUICK:
    assert loss["own"] < loss["other"] - 1

# %% [markdown]
# With another image, the loss is even higher than that of a uniform prediction,
# ln 21 = 3.04: the captions depend on the image.
#
# ## One position per word
#
# Hard attention uses the value of one position only: in inference the one with
# the largest weight. We copy the trained weights to a model with hard
# attention, without training it again.

# %%
hard = make_model(hard="gumbel")
hard.set_weights(model.get_weights())
true["hard"] = score("hard, known combinations", hard, *known)
captions, weights = describe(hard, validation.images)
assert set(np.unique(weights)) == {0, 1}
means = on_object(captions, weights, validation.objects)
if not QUICK:
    assert true["hard"] > 0.5 and means["shape"] > 0.6

# %% alt="Four scenes; for each word, hard attention shows a single bright cell of the grid, usually on the object that is named"
explain.plot_image_attention(
    validation.images[:4],
    weights[:4],
    [text.split()[: weights.shape[1]] for text in captions[:4]],
)

# %% [markdown]
# A single position is sufficient for most captions, because convolutions have
# already collected what is around it. To train with hard attention, Xu et al.
# use REINFORCE; [Hard attention](
# ../hard_attention/index.md#gradients-of-a-choice) shows it and the Gumbel
# softmax, with which `fit` can train the model above. [`examples/caption.py`](
# ../../install.md#other-tasks) trains both kinds on your own images.
#
# ## Summary
#
# - Convolutions turn an image into a grid of vectors, which a decoder reads
#   with attention as if they were the words of a source sentence.
# - Weights on the grid show where the model looks for each word.
# - In training, some words that the decoder reads are replaced, so that it has
#   to use the image.
# - Tests with mirrored images, other images and new combinations show what a
#   model has learned.
#
# ## Exercises
#
# **1.** Images of 40 x 40 pixels give a grid of ... x ... vectors. A caption of
# nine tokens has ... attention weights, of which hard attention makes ... equal
# to 1.
#
# <details markdown>
# <summary>Answer</summary>
#
# 10 x 10; 900; 9.
#
# ```python
# print(weights.shape[1:], weights[0].sum())
# ```
#
# </details>
#
# **2.** The decoder starts from the mean of the grid. Suppose that each vector
# depended on its own 4 x 4 pixels only, without a position. Why could the mean
# alone not distinguish *left of* from *right of*? Is it sufficient if a vector
# of its position is added to each?
#
# <details markdown>
# <summary>Answer</summary>
#
# A mean does not change when positions are exchanged. With positions that are
# added, the mean contains that something is red, something is blue, something
# is left and something is right, but not which. It is sufficient if the vector
# of the red object also contains where the blue one is, as after convolutions.
#
# </details>
#
# **3.** Train a second model with correct words only, for as many epochs, and
# compare both on new combinations. How could you find out whether its errors
# come from the image or from the words?
#
# <details markdown>
# <summary>Answer</summary>
#
# Call `make_batches(0.0)` in both parts of the training. To find the cause, let
# the model read another color: if it says *circle* after *blue* for the image
# of a red circle, it saw the circle, and the word *red* made it choose another
# shape.
#
# </details>
#
# **4.** Other captions that the model of Xu et al. predicts are *A stop sign is
# on a road with a mountain in the background*, *A little girl sitting on a bed
# with a teddy bear* and *A group of people sitting on a boat in the water*. For
# which words could you check the weights by looking at the image, and for which
# not?
#
# <details markdown>
# <summary>Answer</summary>
#
# Words that name an object belong to a region of the image: *stop sign*,
# *road*, *mountain*, *girl*, *bed*, *teddy bear*, *people*, *boat*, *water*.
# Verbs and prepositions such as *sitting* and *on* concern several objects.
# Words such as *a* and *is* can often be predicted from the previous words,
# whatever the weights.
#
# </details>
#
# **Next**: [Recurrent glimpses](../glimpses/index.md) trains a network that
# chooses where to look, and sees nothing else.
