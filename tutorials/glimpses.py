# %% [markdown]
# # Recurrent glimpses
#
# A digit of 8x8 pixels lies somewhere on a canvas of 48x48, among pieces of
# other digits. A network may not read the canvas. It gets five looks, each
# sharp in a small square only, and must choose where to look next. Nobody tells
# it where the digit is. Can it learn to find it, from nothing but whether its
# guesses were right?
#
# ![Canvases with the paths of five looks](glimpses-6.png)
#
# The numbers are the looks in their order, the frame is what the last one sees
# sharply. Above each canvas stands the guess after each look.
#
# You will
#
# - build the **retina**: patches around a place, the wider the coarser;
# - see that **REINFORCE** estimates a gradient where there is none, check it
#   against the exact one, and calm it with a **baseline**;
# - train a network that **chooses** its places, and a twin that looks at
#   **random** ones, as often and as long;
# - draw where the looks land.
#
# The model is that of Mnih et al. 2014, <https://arxiv.org/abs/1406.6247>, but
# for what is said below. The digits come with scikit-learn (`pip install
# scikit-learn`); nothing is downloaded. On two cores eleven minutes at most:
# the run of this page had one. As a program, on any backend:
#
#     KERAS_BACKEND=torch .venv/bin/python tutorials/glimpses.py
#
# With `DATA=` it learns from your own small grey pictures, an `.npz` file with
# `images` and `labels`, and with `MODEL=` a saved model looks at your canvases
# and says which digit it sees:
#
#     DATA=pictures.npz .venv/bin/python tutorials/glimpses.py
#     MODEL=runs/glimpses INPUT=canvas.png \
#         .venv/bin/python tutorials/glimpses.py

# %%
import json
import time
from math import erf, exp, pi, sqrt

import digit_pictures
import glimpse_reader
import glimpses_settings
import keras
import numpy as np
import program_settings
from cluttered_canvases import CanvasBatches, scatter
from glimpse_learner import GlimpseLearner
from glimpse_network import GlimpseNetwork
from glimpse_plots import draw_paths, frame_patches, pixel
from matplotlib.figure import Figure

from keras_attn.layers import GlimpseSensor
from keras_attn.training import TrainingBackup

try:
    run = glimpses_settings.read()
    if run.model:
        glimpse_reader.run(run.model, run.input, run.out)
        raise SystemExit(0)
    pictures = (
        digit_pictures.of_file(run.data, run.side)
        if run.data
        else digit_pictures.built_in()
    )
    digits = digit_pictures.split(pictures, run.seed)
except ValueError as error:
    program_settings.explain_and_leave("glimpses", error)

run.out.mkdir(parents=True, exist_ok=True)
results = {"backend": keras.backend.backend()}
# What is asserted of trained models is so with the settings of this page.
WHOLE = glimpses_settings.is_default(run)
print(f"Keras {keras.__version__} on {keras.backend.backend()}")

# %% [markdown]
# ## Digits on canvases
#
# The digits are split first: no digit of the test is ever trained on, not even
# a piece of it. Each is then put at a random place of a canvas of its own, over
# pieces of 4x4 pixels, cut out of training digits. So a bright spot may be a
# digit, or not.
#
# Training draws new canvases in every epoch. Those of the validation and of the
# test are drawn once, five of each digit.

# %%
train, validation, test = digits
CANVAS = {"side": run.side, "pieces": run.pieces}
K = int(pictures.labels.max()) + 1  # classes


def fixed(part, seed):
    """Returns canvases that stay the same."""
    return scatter(
        np.repeat(part.images, run.copies, axis=0),
        np.repeat(part.labels, run.copies),
        train.images,
        np.random.default_rng([run.seed, seed]),
        **CANVAS,
    )


validation_set, test_set = fixed(validation, 1), fixed(test, 2)
N, S = len(test_set.images), run.side
assert test_set.images.shape == (N, S, S, 1)
h, w = test.images.shape[1:]
for number in range(N):
    row, column = test_set.corners[number]
    there = test_set.images[number, row : row + h, column : column + w, 0]
    assert (there == test.images[number // run.copies]).all()
print(
    f"{len(train.images):,} digits to train on, {len(validation.images)} to "
    f"validate, {len(test.images)} to test, {N:,} canvases of these"
)

# %% alt="Eight canvases, each with a digit and pieces of other digits"
figure = Figure(figsize=(9.6, 4.8), layout="constrained")
for number, axes in enumerate(figure.subplots(2, 4).flat):
    axes.set(xticks=[], yticks=[])
    chosen = number * run.copies
    axes.imshow(test_set.images[chosen, ..., 0], cmap="gray_r", vmin=0, vmax=1)
    axes.set_title(f"somewhere a {test_set.labels[chosen]}", fontsize=9)
figure

# %% [markdown]
# ## A look
#
# A place l = (x, y) is (0, 0) in the middle of the canvas and (1, 1) at its
# bottom right corner. A look at it gives k patches of g x g numbers. Patch j
# covers $2^j g$ pixels each way, so each of its numbers is a mean:
#
# $$\rho_j(l)_{ab} = \frac{1}{4^j} \sum_{u, v = 0}^{2^j - 1}
# \mathrm{canvas}[r_j + 2^j a + u,\; c_j + 2^j b + v],
# \qquad j = 0 \ldots k - 1,$$
#
# where row $r_j$, column $c_j$ is the first pixel of the patch. Sharp in the
# middle, coarse around it, as an eye. The layer is `GlimpseSensor`; by hand:

# %%
G, P = run.patch, run.patches  # g and k
sensor = GlimpseSensor(G, P)
# Beside a digit, so that there is something to see.
place = np.float32([(test_set.corners[0, ::-1] + 6) / S * 2 - 1])
canvas = test_set.images[:1]
seen = keras.ops.convert_to_numpy(sensor(canvas, place))[0, ..., 0]
assert seen.shape == (P, G, G)
for j in range(P):
    size = G * 2**j
    column, row = np.floor((place[0] + 1) / 2 * S - size / 2 + 0.5).astype(int)
    wide = np.pad(canvas[0, ..., 0], size)  # 0 lies outside of the canvas
    patch = wide[row + size : row + 2 * size, column + size : column + 2 * size]
    by_hand = patch.reshape(G, 2**j, G, 2**j).mean((1, 3))
    np.testing.assert_allclose(seen[j], by_hand, atol=1e-5)
print(f"{S * S:,} pixels on the canvas, {seen.size} numbers in a look")

# %% alt="A canvas with frames of three sizes, and the patches seen in them"
figure = Figure(figsize=(2.6 * (P + 1), 2.8), layout="constrained")
panels = figure.subplots(1, P + 1)
panels[0].imshow(canvas[0, ..., 0], cmap="gray_r", vmin=0, vmax=1)
frame_patches(panels[0], place[0], S, G, P)
panels[0].set_title("the canvas")
for j, axes in enumerate(panels[1:]):
    axes.imshow(seen[j], cmap="gray_r", vmin=0, vmax=seen[j].max() or 1)
    axes.set_title(f"{G * 2**j} pixels wide", color=f"C{j}")
for axes in panels:
    axes.set(xticks=[], yticks=[])
figure

# %% [markdown]
# ## The network
#
# What is seen, and where, become one vector; a GRU adds it to what is known so
# far; from this come a guess, and the next place. With $\rho(l)$ the numbers of
# a look in a row, those of patch j times $2^j$, since means are dim:
#
# $$\begin{aligned}
# g_t &= \mathrm{relu}\big(\mathrm{relu}(\rho(l_t) W_p)\, W_{what} +
# \mathrm{relu}(l_t W_l)\, W_{where}\big) \\
# h_t &= \mathrm{GRU}(h_{t-1}, g_t) \\
# p_t &= \mathrm{softmax}(h_t W_a) \\
# m_{t+1} &= l_t + \tanh([h_t; \rho(l_t)]\, W_m) \\
# l_{t+1} &\sim \mathcal{N}(m_{t+1}, \sigma^2)
# \end{aligned}$$
#
# (each product has its bias, which is not written). The first look is at the
# middle. In training places are drawn around the mean; afterwards the mean
# itself is looked at. Three things differ from the paper: the core is a GRU,
# the mean is a move from the last place, and it guesses after each look, not
# only after the last.
#
# All of it stands in `glimpse_network.py`. A place outside of the canvas is
# moved to its edge.


# %%
def build(random_places):
    """Returns a network, the same but for where it looks."""
    keras.utils.set_random_seed(run.seed)
    network = GlimpseNetwork(
        classes=K,
        glimpses=run.glimpses,
        patch_size=G,
        num_patches=P,
        width=run.width,
        deviation=run.deviation,
        random_places=random_places,
        seed=run.seed,
    )
    network.build((None, S, S, 1))
    return network


networks = {"chosen": build(False), "random": build(True)}
network = networks["chosen"]
T, D = run.glimpses, run.width
looked = network.predict(test_set.images[:2], verbose=0)
assert looked["logits"].shape == (2, T, K)
assert looked["places"].shape == (2, T, 2)
assert looked["baseline"].shape == (2, T - 1)
assert (looked["places"][:, 0] == 0).all()  # the middle
counts = [network.count_params() for network in networks.values()]
assert counts[0] == counts[1]
print(f"{counts[0]:,} weights in each network")

# %% [markdown]
# Does it see anything but its patches? Every pixel that lies in no patch of any
# look gets another value. Nothing may change, not in the last bit. (The network
# here looks at the middle only: it knows nothing yet.)

# %%
one = test_set.images[:1]
other = np.random.default_rng(run.seed).random(one.shape, "float32")
places = looked["places"][0]
rows = np.arange(S)
unseen = np.ones((S, S), bool)
for column, row in np.floor(
    (places + 1) / 2 * S - G * 2 ** (P - 1) / 2 + 0.5
).astype(int):
    inside = [
        (rows >= first) & (rows < first + G * 2 ** (P - 1))
        for first in (row, column)
    ]
    unseen &= ~np.outer(*inside)
changed = np.where(unseen[None, ..., None], other, one)
changed = np.concatenate([changed, test_set.images[1:2]])
again = network.predict(changed, verbose=0)
assert all((looked[name] == again[name]).all() for name in looked)
print(f"{unseen.sum():,} of {S * S:,} pixels changed, the output did not")

# %% [markdown]
# ## A gradient where there is none
#
# The guess depends on the place through whole pixels: no gradient flows. But
# places are drawn, and how likely each one is has a gradient. For a reward
# R(l), a mean m and any b that does not depend on l (Williams 1992,
# <https://doi.org/10.1007/BF00992696>):
#
# $$\nabla_m\, \mathbb{E}_{l}[R(l)] =
# \mathbb{E}_{l}\big[(R(l) - b)\,
# \nabla_m \log \mathcal{N}(l; m, \sigma^2)\big], \qquad
# \nabla_m \log \mathcal{N}(l; m, \sigma^2) = \frac{l - m}{\sigma^2} .$$
#
# In words: draw; if more was won than expected, b, move the mean towards what
# was drawn; if less, away from it. A small case can be computed: on a line with
# a reward of 1 from 0.2 to 0.6, and 0.5 elsewhere. The expected reward is
# a matter of the normal distribution's area, its gradient one of its density.

# %%
mean, sigma, low, high = 0.1, 0.15, 0.2, 0.6
edges = [(edge - mean) / sigma for edge in (low, high)]
area = [0.5 * (1 + erf(edge / sqrt(2))) for edge in edges]
density = [exp(-(edge**2) / 2) / sqrt(2 * pi) / sigma for edge in edges]
expected = 0.5 + 0.5 * (area[1] - area[0])
exact = 0.5 * (density[0] - density[1])
DRAWS = 100_000
drawn = mean + sigma * np.random.default_rng(run.seed).normal(size=DRAWS)
reward = np.where((drawn > low) & (drawn < high), 1.0, 0.5)
spread = {}
for name, b in (("no baseline", 0.0), ("expected reward", expected)):
    estimates = (reward - b) * (drawn - mean) / sigma**2
    error = estimates.std() / np.sqrt(DRAWS)
    assert abs(estimates.mean() - exact) < 5 * error
    spread[name] = estimates.std()
    print(f"{name:<16} mean {estimates.mean():.3f}, spread {spread[name]:.2f}")
print(f"{'exact':<16} {exact:10.3f}")
assert spread["expected reward"] < 0.7 * spread["no baseline"]

# %% alt="Histograms of the estimates, with a baseline and without one"
figure = Figure(figsize=(7.5, 3.2), layout="constrained")
axes = figure.subplots()
for name, b in (("no baseline", 0.0), ("expected reward", expected)):
    estimates = (reward - b) * (drawn - mean) / sigma**2
    axes.hist(estimates, bins=np.linspace(-12, 12, 97), alpha=0.6, label=name)
axes.axvline(exact, color="black", linewidth=1, label="exact gradient")
axes.set(xlabel="one estimate of the gradient", yticks=[])
axes.legend()
figure

# %% [markdown]
# ### What is won by a look
#
# After look t the network gives the right class y a probability, $p_t[y]$: that
# is the reward $r_t$. A place that is drawn behind look t answers for all that
# follows, $R_t$. What is to be expected, $b_t$, is learned from the state, so
# that an easy canvas is not mistaken for a good choice. What is in $[\ ]$
# counts as a number, no gradient goes through it:
#
# $$r_t = p_t[y], \qquad R_t = \frac{1}{T - 1} \sum_{s > t} r_s, \qquad
# b_t = [h_t] \cdot w_b .$$
#
# The loss of a path has three parts:
#
# $$L = - \frac{1}{T} \sum_t \log p_t[y]
# \;-\; \lambda \sum_t \big[R_t - b_t\big] \log \mathcal{N}([l_{t+1}]; m_{t+1},
# \sigma^2) \;+\; \sum_t \big([R_t] - b_t\big)^2 .$$
#
# The library's layer `Reinforce` has one baseline for all and one loss at the
# end. Here each look has its own reward, and a canvas where the digit is not
# yet found expects less; so `glimpse_learner.py` computes these three parts
# itself.
#
# ### Near first, then anywhere
#
# At the beginning the network can neither read nor search. If it never comes
# near a digit it never learns to read, and if it cannot read, finding a digit
# wins nothing. So the digits of the first epochs lie near the middle, where the
# first look falls; then they may lie further and further away. The twin that
# looks at random places gets the same canvases. The test has digits anywhere.


# %%
def train_one(name):
    """Trains a network; returns accuracies and minutes."""
    network = networks[name]
    learner = GlimpseLearner(network, run.weight)
    learner.build(((None, S, S, 1), (None,)))
    rate = keras.optimizers.schedules.CosineDecay(
        run.rate, run.epochs * run.steps, alpha=0.02
    )
    learner.compile(
        keras.optimizers.Adam(rate, global_clipnorm=5.0), metrics=["accuracy"]
    )
    batches = CanvasBatches(
        train.images,
        train.labels,
        run.steps,
        run.batch,
        run.seed,
        rise=round(0.6 * run.epochs),
        **CANVAS,
    )
    try:
        backup = TrainingBackup(
            run.out / "backup" / name,
            data=batches,
            settings=program_settings.identity(run)
            | {"backend": keras.backend.backend()},
            resume=not run.fresh,
        )
    except ValueError as error:
        program_settings.explain_and_leave(
            "glimpses", f"{error}. FRESH=1 starts anew."
        )
    backups.append(backup)
    started = time.perf_counter()
    history = learner.fit(
        batches,
        epochs=run.epochs,
        shuffle=False,  # they are drawn anew in each epoch
        validation_data=(
            (validation_set.images, validation_set.labels),
            validation_set.labels,
        ),
        validation_batch_size=min(400, len(validation.images)),
        callbacks=[backup],
        verbose=2,
    ).history
    minutes = (time.perf_counter() - started) / 60
    print(f"{name}: {run.epochs * run.steps:,} steps, {minutes:.1f} minutes")
    return history


backups, curves = [], {}
for name in networks:
    print(f"Training: places are {name}")
    curves[name] = train_one(name)

# %% alt="Left: accuracy in training. Right: accuracy on validation canvases"
figure = Figure(figsize=(9.5, 3.4), layout="constrained")
panels = figure.subplots(1, 2, sharey=True)
for name, style in (("chosen", "-"), ("random", "--")):
    for axes, key in zip(panels, ("accuracy", "val_accuracy"), strict=True):
        epochs = 1 + np.arange(len(curves[name][key]))
        axes.plot(epochs, curves[name][key], style, label=name)
panels[0].set(xlabel="epoch", ylabel="right guesses", ylim=(0, 1))
panels[0].set_title("training canvases, digits ever further away")
panels[1].set(xlabel="epoch", title="validation canvases, digits anywhere")
panels[1].legend()
figure

# %% [markdown]
# ## Does choosing help?
#
# Both networks look at the same test canvases, five times, from the middle on.
# One chooses, the other looks at places drawn anew from the whole canvas.

# %%
looks, accuracy = {}, {}
for name, network in networks.items():
    looks[name] = network.predict(
        test_set.images, batch_size=min(400, len(test.images)), verbose=0
    )
    guesses = looks[name]["logits"].argmax(-1)  # (N, T)
    assert guesses.shape == (N, T)
    accuracy[name] = (guesses == test_set.labels[:, None]).mean(0)
    shares = ", ".join(f"{share:5.1%}" for share in accuracy[name])
    print(f"{name}: right after each look {shares}")
if WHOLE:
    assert accuracy["chosen"][-1] >= 0.70
    assert accuracy["chosen"][-1] >= accuracy["random"][-1] + 0.20

# %% alt="Right guesses over the number of looks, for both networks"
figure = Figure(figsize=(6, 3.6), layout="constrained")
axes = figure.subplots()
for name, style in (("chosen", "o-"), ("random", "s--")):
    axes.plot(1 + np.arange(T), accuracy[name], style, label=name)
axes.axhline(1 / K, color="grey", linewidth=0.8)
axes.set(xlabel="looks", ylabel="right guesses", ylim=(0, 1))
axes.set_xticks(1 + np.arange(T))
axes.legend()
figure

# %% [markdown]
# The first look is the same for both. The next three tell the network that
# chooses more than its twin; the last tells neither much.
#
# ## Its path

# %% alt="Canvases with the paths of the looks, the guesses above them"
chosen = np.arange(min(8, len(test.images))) * run.copies
names = [f"a {test_set.labels[number]}" for number in chosen]
paths = draw_paths(
    test_set.images[chosen],
    looks["chosen"]["places"][chosen],
    looks["chosen"]["logits"][chosen].argmax(-1),
    names,
    G,
)
paths.savefig(run.out / "paths.png", dpi=150)
paths

# %% [markdown]
# The second look is mostly near the digit already. The paths are not tidy:
# often they end beside it, where the digit can still be read in the second
# patch, and now and then they pass it. What it sees on the way, on the first of
# these canvases: a column is a look, a row a patch, the sharpest on top.

# %% alt="The patches of each look at one canvas"
path = looks["chosen"]["places"][chosen[0]]  # (T, 2)
many = np.repeat(test_set.images[chosen[:1]], T, axis=0)
patches = keras.ops.convert_to_numpy(sensor(many, path))
assert patches.shape == (T, P, G, G, 1)
figure = Figure(figsize=(1.6 * T, 1.7 * P), layout="constrained")
panels = figure.subplots(P, T, squeeze=False)
said = looks["chosen"]["logits"][chosen[0]].argmax(-1)
for j in range(P):
    for t in range(T):
        panels[j, t].imshow(patches[t, j, ..., 0], cmap="gray_r", vmin=0)
        panels[j, t].set(xticks=[], yticks=[])
for t in range(T):
    panels[0, t].set_title(f"look {t + 1}: {said[t]}?", fontsize=9)
figure

# %% [markdown]
# ## Where the looks land
#
# Every test canvas, moved so that the middle of its digit is in the middle. The
# square is the digit.

# %% alt="Where each look lands, seen from the digit, for both networks"
middles = test_set.corners[:, ::-1] + [(w - 1) / 2, (h - 1) / 2]  # x and y
figure = Figure(figsize=(2.1 * T, 4.6), layout="constrained")
panels = figure.subplots(2, T, sharex=True, sharey=True)
distance = {}
for row, name in enumerate(("chosen", "random")):
    away = pixel(looks[name]["places"], S) - middles[:, None]  # (N, T, 2)
    distance[name] = np.median(np.linalg.norm(away, axis=-1), axis=0)
    for t in range(T):
        axes = panels[row, t]
        axes.plot(*away[:, t].T, ".", markersize=1.5, alpha=0.4)
        box = [-w / 2, w / 2, w / 2, -w / 2, -w / 2]
        axes.plot(
            box, [-h / 2, -h / 2, h / 2, h / 2, -h / 2], color="C3", linewidth=1
        )
        axes.set(xlim=(-S, S), ylim=(S, -S), aspect="equal")
        axes.set_title(f"{name}, look {t + 1}", fontsize=8)
figure

# %%
for name, pixels in distance.items():
    shown = ", ".join(f"{pixel:4.1f}" for pixel in pixels)
    print(f"{name}: half of the looks are nearer to the digit than {shown}")
if WHOLE:
    assert distance["chosen"][-1] < distance["chosen"][0] / 2

# %% [markdown]
# ## Keeping it
#
# The network that chooses, all figures, and some test canvases to try it on.
# Now that they are safe, the backups may go.

# %%
networks["chosen"].save(run.out / "model.keras")
np.save(run.out / "canvases.npy", test_set.images[chosen, ..., 0])
results["accuracy"] = {k: v.tolist() for k, v in accuracy.items()}
results["distance"] = {k: v.tolist() for k, v in distance.items()}
results["curves"] = curves
results["settings"] = {k: str(v) for k, v in run._asdict().items()}
(run.out / "results.json").write_text(
    json.dumps(results, indent=1), encoding="utf-8"
)
for backup in backups:
    backup.remove()
program = "python tutorials/glimpses.py"
print(f"""
The model is in {run.out / "model.keras"}, the paths are drawn in
{run.out / "paths.png"}, all figures in {run.out / "results.json"}.

What to try next:
  MODEL={run.out} INPUT={run.out / "canvases.npy"} {program}
                                     look at these canvases
  GLIMPSES=3 {program}   fewer looks
  PIECES=20 {program}    more clutter
  DATA=FILE {program}    small pictures of your own""")

# %% [markdown]
# ## Exercises
#
# **1.** A canvas of 480x480 instead of 48x48. How many numbers are in a look?
# How many would a network that reads all pixels need? And which of the two
# tasks, reading or searching, becomes harder?
#
# <details markdown>
# <summary>Answer</summary>
#
# A look still has 3 x 10 x 10 = 300 numbers, five looks 1,500; all pixels are
# 230,400. Reading stays what it was. Searching becomes harder: the coarsest
# patch covers 40 pixels, a small part of the canvas. More patches, or more
# looks, would be needed. With 6 patches the coarsest covers 320 pixels.
#
# </details>
#
# **2.** Fill in the blanks, so that this is the gradient by which REINFORCE
# moves the means of a batch. `places` and `means` are (B, 2), `won` and
# `expected` (B,):
#
#     def gradient(places, means, won, expected, sigma):
#         surprise = ____
#         score = ____
#         return ____ * score
#
# <details markdown>
# <summary>Answer</summary>
#
#     surprise = won - expected
#     score = (places - means) / sigma**2
#     return surprise[:, None] * score
#
# It points to where more is won. A loss is made smaller, so its sign is the
# other one.
#
# </details>
#
# **3.** What happens if the reward were 1 for every guess, right or wrong? With
# a perfect baseline, and with none?
#
# <details markdown>
# <summary>Answer</summary>
#
# With a perfect baseline the surprise is always 0, and the places learn
# nothing. With none the gradient is 0 on average only: each step moves the
# means at random towards what was just drawn. That is noise which a baseline
# takes away.
#
# </details>
