# %% [markdown]
# # Recurrent glimpses
#
# In this tutorial you train a network that never sees a whole image. It gets
# five small glimpses, and chooses where to look next. It learns this by
# REINFORCE, from the class of the image alone:
#
# ![Eight canvases with a digit among clutter; numbers show the order of five
# glimpses, which come near the digit in seven of them](glimpses-4.png)
#
# **You will learn** how a sensor with several resolutions works, how a location
# can be learned although it has no gradient, what a baseline is for, and how to
# test whether chosen locations are better than random ones.
#
# **Prerequisites**: what a GRU is; hard attention and REINFORCE for discrete
# choices, from [Hard attention](../hard_attention/index.md).
# **Time**: about 7 minutes on one CPU core. The digits come with scikit-learn.
#
# **Published result**: *Recurrent Models of Visual Attention* (Mnih et al.
# 2014, <https://arxiv.org/abs/1406.6247>) classifies MNIST digits on cluttered
# canvases of 60 x 60 pixels with an error of about 4 % after eight glimpses.
# Our digits have 8 x 8 instead of 28 x 28 pixels, the training set has 1,198
# instead of 60,000, and there are five glimpses; the error below is 27.5 %,
# about seven times as high.

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

import math

import keras
import matplotlib.pyplot as plt
import numpy as np
from keras import ops

from keras_attn import datasets
from keras_attn.layers import GlimpseSensor

keras.utils.set_random_seed(1)
random = np.random.default_rng(1)
to_numpy = ops.convert_to_numpy
print(f"Keras {keras.__version__} on {keras.backend.backend()}")

# %% [markdown]
# ## Attention under limited resources
#
# People see sharply only near the point at which they look, and move their eyes
# several times per second: a search such as *Where's Wally?* is a sequence of
# glimpses. Each glimpse uses what the earlier ones have shown. Models with
# visual attention of this kind appeared in 2014, in the same year as attention
# in translation.
#
# Our images are canvases of 48 x 48 pixels with one digit of 8 x 8 pixels and
# four parts of other digits. Digits of the test set never occur in training.

# %%
size = 48  # pixels of a canvas, in both directions


def make_canvases(n, **options):
    """Returns images (n, 48, 48, 1), labels and corners of the digits."""
    return datasets.make_cluttered_digits(
        n, size=size, distractors=4, **options
    )


test = make_canvases(20 if QUICK else 1995, split="test", seed=1)
print(test.images.shape, test.labels[:8], test.corners[0])

# %% tags=["hide-input"] alt="Four canvases: black, with a small digit and four even smaller parts of other digits"
figure, axes = plt.subplots(1, 4, figsize=(9, 2.6), layout="constrained")
for axis, image, label in zip(axes, test.images, test.labels, strict=False):
    axis.imshow(image[..., 0], cmap="gray")
    axis.set(xticks=[], yticks=[], title=f"digit {label}")
plt.show()

# %% [markdown]
# ## A glimpse
#
# A location $l = (l_1, l_2)$ is (0, 0) at the center of the canvas and (1, 1)
# at its bottom right corner. A glimpse at l has J patches of d x d numbers.
# Patch j covers $2^j d$ pixels in each direction, so each number is the mean of
# $2^j \times 2^j$ pixels. If a and a' are the first row and column of the patch,
#
# $$\rho_j(l)_{ii'} = \frac{1}{4^j} \sum_{n, n' = 0}^{2^j - 1}
# \mathrm{image}[a + 2^j i + n,\; a' + 2^j i' + n'],
# \qquad j = 0, \ldots, J - 1$$
#
# The glimpse is sharp at the center and coarse around it. `GlimpseSensor`
# computes it; in NumPy:

# %%
d, J = 10, 3
sensor = GlimpseSensor(d, J)
image = test.images[:1]
# Next to the digit of the first canvas.
location = np.float32([(test.corners[0, ::-1] + 6) / size * 2 - 1])
patches = to_numpy(sensor(image, location))[0, ..., 0]
for j in range(J):
    width = d * 2**j
    corner = (location[0] + 1) / 2 * size - width / 2 + 0.5
    column, row = (corner // 1).astype(int)  # whole pixels
    patch = np.pad(image[0, ..., 0], width)  # 0 outside the canvas
    patch = patch[row + width :, column + width :][:width, :width]
    by_hand = patch.reshape(d, 2**j, d, 2**j).mean((1, 3))
    np.testing.assert_allclose(patches[j], by_hand, atol=1e-5)
print(f"{size * size:,} pixels, {patches.size} numbers in a glimpse")

# %% tags=["hide-input"] alt="A canvas with frames of three sizes around one location, and the three patches inside the frames, each coarser than the one before"
figure, axes = plt.subplots(1, J + 1, figsize=(9, 2.6), layout="constrained")


def frame(axis, location, j):
    """Draws the frame of patch j around a location."""
    corner = ((location + 1) / 2 * size - d * 2**j / 2 + 0.5) // 1 - 0.5
    square = plt.Rectangle(corner, d * 2**j, d * 2**j, fill=False)
    square.set(edgecolor=f"C{j}", linewidth=1.5)
    axis.add_patch(square)


axes[0].imshow(image[0, ..., 0], cmap="gray")
for j, axis in enumerate(axes[1:]):
    frame(axes[0], location[0], j)
    axis.imshow(patches[j], cmap="gray")
    axis.set_title(f"{d * 2**j} pixels wide", color=f"C{j}")
for axis in axes:
    axis.set(xticks=[], yticks=[])
plt.show()

# %% [markdown]
# ## Network
#
# The contents of a glimpse and its location become one vector $g_t$. A GRU adds
# it to the state $h_t$, from which the network predicts the probabilities $p_t$
# of the classes and the next location. With the numbers $\rho(l_t)$ of all
# patches, those of patch j times $2^j$, because means of many pixels are small:
#
# $$g_t = \mathrm{relu}\big(\mathrm{relu}(\rho(l_t) W_\rho)\, W_1 +
# \mathrm{relu}(l_t W_l)\, W_2\big), \qquad
# h_t = \mathrm{GRU}(h_{t-1}, g_t), \qquad
# p_t = \mathrm{softmax}(h_t W_a)$$
#
# $$\mu_{t+1} = l_t + \tanh([h_t; \rho(l_t)]\, W_\mu), \qquad
# l_{t+1} \sim \mathcal{N}(\mu_{t+1}, \sigma^2)$$
#
# ![Three patches around a location make a glimpse vector, which changes the GRU
# state, which predicts the class and the next
# location](../../diagrams/glimpses.svg)
#
# (Biases are not written.) The first location $l_0$ is the center. In training,
# the next location is sampled around its mean $\mu$; in inference, it is the
# mean. It is limited to the canvas. There are three differences from the paper:
# its core is a layer of rectified linear units, its mean is not relative to the
# last location, and it predicts the class after the last glimpse only.

# %%
T, D, sigma = (2, 16, 0.12) if QUICK else (5, 128, 0.12)
gains = 2.0 ** np.arange(J, dtype="float32")[:, None, None, None]
gains = ops.convert_to_tensor(gains)


class GlimpseNetwork(keras.Model):
    """Looks T times at an image; predicts its class after each glimpse."""

    def __init__(self, random_locations=False):
        super().__init__()
        dense = keras.layers.Dense
        self.sensor = GlimpseSensor(d, J)
        self.patches = dense(D, activation="relu")
        self.location = dense(D // 2, activation="relu")
        self.what, self.where = dense(D), dense(D)
        self.core = keras.layers.GRUCell(D)
        self.classify = dense(10)
        # Zeros: before training, the network does not move.
        self.move = dense(2, activation="tanh", kernel_initializer="zeros")
        self.baseline = dense(1)
        self.random_locations = random_locations
        self.seeds = keras.random.SeedGenerator(1)

    def call(self, images, training=False):
        """Returns logits, locations, their log-densities and baselines."""
        B = ops.shape(images)[0]
        h, location = ops.zeros((B, D)), ops.zeros((B, 2))
        steps = []
        for _ in range(T):
            rho = self.sensor(images, location) * gains
            rho = ops.reshape(rho, (B, -1))
            what = self.what(self.patches(rho))
            g = ops.relu(what + self.where(self.location(location)))
            h, _ = self.core(g, [h])
            mean = location + self.move(ops.concatenate([h, rho], axis=-1))
            sampled = self.sample(mean, training)
            log_p = -ops.sum((sampled - mean) ** 2, axis=-1) / (2 * sigma**2)
            beta = self.baseline(ops.stop_gradient(h))[:, 0]
            steps.append((self.classify(h), location, log_p, beta))
            location = ops.clip(sampled, -1, 1)
        return [ops.stack(part, axis=1) for part in zip(*steps, strict=True)]

    def sample(self, mean, training):
        """Returns the next location, (B, 2), without a gradient."""
        shape = ops.shape(mean)
        if self.random_locations:
            return keras.random.uniform(shape, -1, 1, seed=self.seeds)
        if training:
            noise = keras.random.normal(shape, seed=self.seeds)
            # Not +=, which on PyTorch changes the caller's tensor.
            mean = mean + sigma * noise
        return ops.stop_gradient(mean)


# %% [markdown]
# The network must not see anything outside its patches. To test this, we change
# all pixels that lie in no patch. Before training it does not move, so all
# glimpses are at the center.

# %%
keras.utils.set_random_seed(1)
network = GlimpseNetwork()
logits, locations, log_p, beta = map(to_numpy, network(test.images[:4]))
assert logits.shape == (4, T, 10) and locations.shape == (4, T, 2)
assert log_p.shape == beta.shape == (4, T) and not locations.any()
outside = np.ones((size, size, 1), bool)
margin = (size - d * 2 ** (J - 1)) // 2
outside[margin:-margin, margin:-margin] = False
changed = np.where(outside, random.random((size, size, 1)), test.images[:4])
again = to_numpy(network(changed.astype("float32"))[0])
np.testing.assert_array_equal(logits, again)
print(f"{outside.sum()} of {size * size} pixels changed, the output did not")

# %% [markdown]
# ## A gradient for locations
#
# What the network sees depends on the location through whole pixels, so there
# is no gradient. But locations are sampled, and the density of a sample has a
# gradient. For a reward R(l), a mean $\mu$, and a baseline $\beta$ that does not
# depend on l (Williams 1992, <https://doi.org/10.1007/BF00992696>):
#
# $$\nabla_\mu\, \mathbb{E}_{l}[R(l)] = \mathbb{E}_{l}\Big[(R(l) - \beta)\,
# \frac{l - \mu}{\sigma^2}\Big], \qquad \text{because} \quad
# \nabla_\mu \ln \mathcal{N}(l; \mu, \sigma^2) = \frac{l - \mu}{\sigma^2}$$
#
# If the reward is larger than $\beta$, the mean moves towards the
# sample, otherwise away from it. We compare estimates with a case that can be
# computed exactly: on a line, the reward is 1 between 0.2 and 0.6, and 0.5
# elsewhere.

# %%
mu, deviation, low, high = 0.1, 0.15, 0.2, 0.6
edges = [(edge - mu) / deviation for edge in (low, high)]
area = [0.5 * (1 + math.erf(edge / math.sqrt(2))) for edge in edges]
density = [np.exp(-(edge**2) / 2) / math.sqrt(2 * math.pi) for edge in edges]
mean_reward = 0.5 + 0.5 * (area[1] - area[0])
exact = 0.5 * (density[0] - density[1]) / deviation
l = mu + deviation * random.normal(size=100_000)  # noqa: E741
reward = np.where((low < l) & (l < high), 1.0, 0.5)
spread = {}
for name, baseline in ("beta = 0", 0.0), ("beta = mean reward", mean_reward):
    estimates = (reward - baseline) * (l - mu) / deviation**2
    spread[name] = estimates.std()
    error = spread[name] / np.sqrt(len(l))
    assert abs(estimates.mean() - exact) < 5 * error
    print(f"{name:18} {estimates.mean():.3f}, deviation {spread[name]:.2f}")
print(f"exact              {exact:.3f}")
assert spread["beta = mean reward"] < 0.7 * spread["beta = 0"]

# %% [markdown]
# Both estimates are close to the exact value. With the baseline, a single
# estimate deviates less than a third as much, so training needs fewer samples.
#
# ## Loss
#
# The reward $r_t$ is the probability of the correct class y after glimpse t.
# The location that is sampled after glimpse t affects all later rewards, whose
# sum, divided by T - 1, is $R_t$. The expected reward depends on how much of
# the digit has been seen, so the baseline $\beta_t$ is learned from the state. No
# gradient flows through sg(...) (`stop_gradient`):
#
# $$r_t = \mathrm{sg}(p_t(y)), \qquad
# R_t = \frac{1}{T - 1} \sum_{t' > t} r_{t'}, \qquad
# \beta_t = \mathrm{sg}(h_t) \cdot u$$
#
# $$\mathrm{loss} = -\frac{1}{T} \sum_t \ln p_t(y) \;-\; 0.4 \sum_{t < T - 1}
# \mathrm{sg}(R_t - \beta_t) \ln \mathcal{N}(\mathrm{sg}(l_{t+1}); \mu_{t+1},
# \sigma^2) \;+\; \sum_{t < T - 1} (R_t - \beta_t)^2$$
#
# The layer [`Reinforce`](../../api/layers.md) has one baseline for all examples
# and one loss at the end. Here every glimpse has a reward and a baseline, so we
# override `compute_loss` of the model. The second network looks at random
# locations, and has the first term only.


# %%
class Learner(GlimpseNetwork):
    """A `GlimpseNetwork` that learns its classes and locations."""

    def compute_loss(self, x, y, y_pred, sample_weight=None, training=True):
        """Returns the mean loss of a batch."""
        logits, _, log_p, beta = y_pred
        one_hot = ops.one_hot(ops.cast(y, "int32"), 10)[:, None]
        log_y = ops.sum(ops.log_softmax(logits) * one_hot, axis=-1)  # (B, T)
        loss = -ops.mean(log_y)
        if self.random_locations:
            return loss
        r = ops.stop_gradient(ops.exp(log_y))
        later = ops.flip(ops.cumsum(ops.flip(r[:, 1:], 1), axis=1), 1)
        difference = later / (T - 1) - beta[:, :-1]
        chosen = ops.stop_gradient(difference) * log_p[:, :-1]
        loss = loss - 0.4 * ops.mean(ops.sum(chosen, axis=1))
        return loss + ops.mean(ops.sum(difference**2, axis=1))


# %% [markdown]
# ## Training
#
# At the beginning, the network can neither classify nor search. If it never
# comes near a digit, it cannot learn to classify; and if it cannot classify,
# finding a digit gives no reward. Therefore the digits are near the center in
# the first epochs, and further away in later ones (`spread`). The test
# canvases have digits anywhere. Every epoch has new canvases.

# %%
epochs, steps, batch = (1, 2, 16) if QUICK else (30, 100, 128)
validation = make_canvases(20 if QUICK else 600, split="validation", seed=1)


def predict(network, images):
    """Returns classes (B, T) and locations (B, T, 2)."""
    logits, locations, *_ = network.predict(images, 200, verbose=0)
    return logits.argmax(-1), locations


# %%
def train(network):
    """Trains a network; returns its validation accuracy after each epoch."""
    rate = keras.optimizers.schedules.CosineDecay(
        2e-3, epochs * steps, alpha=0.02
    )
    network.compile(keras.optimizers.Adam(rate, global_clipnorm=5.0))
    accuracy = []
    for epoch in range(epochs):
        spread = min(1.0, (epoch + 1) / (0.6 * epochs))
        data = make_canvases(steps * batch, seed=epoch, spread=spread)
        network.fit(data.images, data.labels, batch, epochs=1, verbose=0)
        classes, _ = predict(network, validation.images)
        accuracy.append((classes[:, -1] == validation.labels).mean())
    return accuracy


# %%
networks, curves = {}, {}
for name in "chosen", "random":
    keras.utils.set_random_seed(1)
    networks[name] = Learner(random_locations=name == "random")
    networks[name](test.images[:4])
    if name == "random":  # It has nothing to learn about locations.
        networks[name].move.trainable = False
        networks[name].baseline.trainable = False
    curves[name] = train(networks[name])
    print(f"{name} locations: validation accuracy {curves[name][-1]:.1%}")

# %% tags=["hide-input"] alt="Validation accuracy over epochs: chosen locations end at 77 %, random ones at 43 %; a gray line at 10 %, a random prediction"
figure, axis = plt.subplots(figsize=(6, 2.8), layout="constrained")
for (name, values), marker in zip(curves.items(), "os", strict=True):
    axis.plot(range(1, epochs + 1), values, f"{marker}-", label=name)
axis.axhline(0.1, color="0.6", linewidth=1)
axis.set(xlabel="epoch", ylabel="accuracy", ylim=(0, 1))
axis.legend(title="locations")
plt.show()

# %% [markdown]
# ## Chosen and random locations
#
# Both networks have the same layers, are trained on the same canvases, and
# start at the center. The table shows the accuracy after each glimpse, and the
# median distance of the glimpse from the center of the digit, in pixels.

# %%
centers = test.corners[:, ::-1] + 3.5  # x and y
classes, away, paths, accuracy, distance = {}, {}, {}, {}, {}
for name, network in networks.items():
    classes[name], paths[name] = predict(network, test.images)
    accuracy[name] = (classes[name] == test.labels[:, None]).mean(0)
    pixels = (paths[name] + 1) / 2 * size - 0.5
    away[name] = pixels - centers[:, None]  # (B, T, 2)
    distance[name] = np.median(np.linalg.norm(away[name], axis=-1), axis=0)
    print(f"{name:6} accuracy", *(f"{value:6.1%}" for value in accuracy[name]))
    print(f"{name:6} distance", *(f"{value:6.1f}" for value in distance[name]))
assert not paths["chosen"][:, 0].any()
if not QUICK:
    assert abs(accuracy["chosen"][0] - accuracy["random"][0]) < 0.1
    assert accuracy["chosen"][-1] > accuracy["random"][-1] + 0.15
    assert accuracy["chosen"][-1] < 1 - 2 * 0.04  # the error of the paper
    assert distance["chosen"][1] < distance["chosen"][0] / 1.2
    assert distance["chosen"][-1] < distance["chosen"][0] / 1.5

# %% [markdown]
# After the first glimpse, both networks have about the same accuracy. Chosen
# glimpses move to the digit, and the accuracy with them becomes higher than
# with random ones. These are results of one seed; with REINFORCE, they can
# differ between seeds.
#
# ## Paths

# %% tags=["hide-input"] alt="Eight canvases with the path of five numbered glimpses and a frame around the last one; in seven of them, a glimpse comes near the digit; above each the digit and the predicted classes, of which the last is right for two"
figure, axes = plt.subplots(2, 4, figsize=(9, 5.2), layout="constrained")
for i, axis in enumerate(axes.flat):
    axis.imshow(test.images[i, ..., 0], cmap="gray")
    x, y = ((paths["chosen"][i] + 1) / 2 * size - 0.5).T
    axis.plot(x, y, color="C0", linewidth=1)
    for t in range(T):
        box = {"boxstyle": "circle,pad=0.15", "facecolor": "C1", "linewidth": 0}
        axis.text(x[t], y[t], t + 1, fontsize=7, va="center", bbox=box)
    frame(axis, paths["chosen"][i, -1], 0)
    predicted = " ".join(map(str, classes["chosen"][i]))
    axis.set_title(f"{test.labels[i]}, predicted {predicted}", fontsize=9)
    axis.set(xticks=[], yticks=[])
    axis.set(xlim=(-0.5, size - 0.5), ylim=(size - 0.5, -0.5))
plt.show()

# %% [markdown]
# The second glimpse is usually nearer to the digit than the first, because the
# coarse patches of the first one show where something bright is. In the first
# canvas, this is not the digit. Only two of these eight last predictions are
# right, but 72.5 % of all. The next figure shows all test canvases, moved so
# that the digit, the orange square, is at the center.

# %% tags=["hide-input"] alt="Positions of the glimpses relative to the digit: chosen ones gather around the digit from the second glimpse on, random ones stay scattered"
figure, axes = plt.subplots(
    2, T, figsize=(9, 4), sharex=True, sharey=True, layout="constrained"
)
for row, name in zip(axes, networks, strict=True):
    for t, axis in enumerate(row):
        axis.plot(*away[name][:, t].T, ".", markersize=1.5, alpha=0.4)
        square = plt.Rectangle((-4, -4), 8, 8, fill=False, ec="C1", lw=2)
        square.set_zorder(3)  # above the points
        axis.add_patch(square)
        axis.set(xlim=(-size, size), ylim=(size, -size), aspect="equal")
        axis.set_title(f"{name}, glimpse {t + 1}", fontsize=9)
plt.show()

# %% [markdown]
# ## Summary
#
# - A glimpse is sharp at its center and coarse around it; its size does not
#   depend on the size of the image.
# - A sampled location has no gradient; REINFORCE uses that of its log-density.
# - A baseline reduces the noise of the estimate and does not change its mean.
# - With the same number of glimpses, chosen locations gave a higher accuracy
#   than random ones.
#
# ## Exercises
#
# **1.** A canvas has 480 x 480 pixels. How many numbers do five glimpses have,
# and how many pixels does a network read that sees everything? What becomes
# harder, classification or search?
#
# <details markdown>
# <summary>Answer</summary>
#
# 5 x 3 x 10 x 10 = 1,500; 230,400. The search becomes harder: the coarsest
# patch covers 40 pixels, a small part of the canvas. With six patches it covers
# 320.
#
# ```python
# image, location = np.zeros((1, 480, 480, 1)), np.zeros((1, 2))
# print(GlimpseSensor(10, 6)(image, location).shape)
# ```
#
# </details>
#
# **2.** Fill in the gaps. Attention in biology saves .... Hard attention cannot
# be trained by ... alone, because a sampled location has no .... REINFORCE
# makes an action more probable if its ... is larger than the ....
#
# <details markdown>
# <summary>Answer</summary>
#
# Resources (energy); back-propagation; gradient; reward; baseline.
#
# </details>
#
# **3.** What would the network learn if the reward were 1 for every prediction?
# Consider a perfect baseline, and $\beta = 0$.
#
# <details markdown>
# <summary>Answer</summary>
#
# With a perfect baseline the difference is always 0, and locations learn
# nothing. With $\beta = 0$ the gradient is 0 only in the mean; every step moves
# the means towards the sampled locations, which is noise.
#
# </details>
#
# **Next**: [Spelling correction](../spelling/index.md) applies a Transformer to
# characters.
