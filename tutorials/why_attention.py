# %% [markdown]
# # Why attention?
#
# Lectures give the same reasons again and again: a recurrent network takes as
# many steps as there are tokens, its gradients vanish or explode, it forgets
# what was said long ago; attention does not. And: one must divide by
# $\sqrt{d_k}$, one must add positions. Is all of that so?
#
# ![Curves: how often four networks recall a letter, by its
# distance](why_attention-4.png)
#
# This is one of the answers, drawn further down: four networks of the same
# width learned equally long to recall one letter, and were asked for it 1 to 63
# letters later, early in their training and at its end.
#
# You will measure
#
# - how many **steps**, and how much time, it takes to encode 16 to 2,048
#   tokens;
# - how long the **path** between two tokens is;
# - how much of a **gradient** reaches the first token;
# - how well, and after how many steps, each network **recalls** a token at a
#   distance;
# - what the division by $\sqrt{d_k}$ is for;
# - that attention without positions is "a very advanced **bag of words**";
# - that 256 sines beside 256 cosines and sines and cosines in turn are the
#   same **positions**.
#
# Times are medians, measured in turns, and shown only: another machine has
# others. All the rest is asserted, cell by cell. About three minutes on two
# cores; the data is made up, nothing is downloaded. As a program, on any
# backend:
#
#     KERAS_BACKEND=torch .venv/bin/python tutorials/why_attention.py

# %%
import itertools
import json
import statistics
import time

import input_gradients
import keras
import numpy as np
import program_settings
import recall_task
import token_graph
import why_attention_settings
from matplotlib.figure import Figure

from keras_attn.layers import (
    MultiHeadAttention,
    PositionalEmbedding,
    ScoredAttention,
)

try:
    run = why_attention_settings.read()
except ValueError as error:
    program_settings.explain_and_leave("why_attention", error)
QUICK = run.quick
# What is asserted of trained models is so with the settings of this page.
WHOLE = why_attention_settings.is_default(run)
keras.utils.set_random_seed(run.seed)
generator = np.random.default_rng(run.seed)
results = {"backend": keras.backend.backend()}
print(f"Keras {keras.__version__} on {keras.backend.backend()}")

# %% [markdown]
# ## Three ways to read
#
# A sequence of N tokens, each a vector of D features, becomes N vectors that
# know of each other:
#
# $$\begin{aligned}
# \text{recurrent:}\quad & h_t = f(h_{t-1}, x_t) \\
# \text{convolutional:}\quad & h_t = f(x_{t-g}, x_t),
# \text{ in layers with } g = 1, 2, 4, \ldots \\
# \text{self-attention:}\quad & h_t = \textstyle\sum_s w_{ts}\, x_s,
# \quad w_t = \mathrm{softmax}_s(x_t \cdot x_s)
# \end{aligned}$$
#
# (the last without its projections). The recurrent network is an LSTM. The
# convolutions have two taps that stand further and further apart, so that
# $\log_2 N$ layers are enough for the last token to see the first one.

# %%
KINDS = ("recurrent", "convolutional", "self-attention")
LOOKS = dict(zip(KINDS, ("o-", "s--", "^-."), strict=True))


def gaps(length):
    """Returns how far the taps of each layer are apart: 1, 2, 4, ..."""
    return [2**i for i in range((length - 1).bit_length())]


def network(kind, length, width, dilations=None):
    """Returns a model from (B, N, D) to (B, N, D)."""
    source = keras.Input((length, width))
    if kind == "recurrent":
        output = keras.layers.LSTM(width, return_sequences=True)(source)
    elif kind == "convolutional":
        output = source
        for gap in gaps(length) if dilations is None else dilations:
            output = keras.layers.Conv1D(
                width, 2, padding="causal", dilation_rate=gap, activation="tanh"
            )(output)
    else:
        output = MultiHeadAttention(num_heads=1, key_dim=width)(source, source)
    assert output.shape == (None, length, width)
    return keras.Model(source, output)


def graph(kind, length):
    """Returns what each token of such a network is computed from."""
    if kind == "recurrent":
        return token_graph.recurrent(length)
    if kind == "convolutional":
        return token_graph.convolutional(length, 2, gaps(length))
    return token_graph.self_attention(length)


# %% [markdown]
# `graph` says what must be computed before what. Does it tell the truth about
# the networks? Change one input token, and see which outputs change: row t,
# column s is filled where output t depends on input s.

# %%
LENGTH, WIDTH = 16, 8
base = generator.normal(size=(LENGTH, WIDTH)).astype("float32")
# (N + 1, N, D): the sequence, and then with each token in turn changed.
changed = np.repeat(base[None], LENGTH + 1, axis=0)
changed[np.arange(1, LENGTH + 1), np.arange(LENGTH)] += 2
for kind in KINDS[-1:] if QUICK else KINDS:
    outputs = network(kind, LENGTH, WIDTH).predict_on_batch(changed)
    assert outputs.shape == (LENGTH + 1, LENGTH, WIDTH)
    moved = np.abs(outputs[1:] - outputs[0]).max(-1) > 1e-5  # (s, t)
    expected = token_graph.reach(graph(kind, LENGTH))  # (t, s)
    assert (moved.T == expected).all()
    print(f"{kind:<15} {expected.sum():3} of {LENGTH**2} outputs can change")

# %% [markdown]
# ## Claim 1: attention takes a constant number of steps
#
# A step is what can be computed at the same time, once everything before it is
# there. The graph's longest chain says how many steps there must be, however
# many processors one has: N for the recurrent network, $\log_2 N$ for the
# convolutions, and one for attention. (Table 1 of Vaswani et al. 2017,
# <https://arxiv.org/abs/1706.03762>, counts one layer. One layer of a
# convolution does not connect all tokens, so here all that are needed count.)
#
# The clock measures something else: how well a machine fills its steps. A few
# cores compute the $N^2$ weights of attention one after the other, too.


# %%
def in_turns(tasks, rounds):
    """Returns the median seconds of each task, each done once a round."""
    for task in tasks.values():
        task()  # compiles it
    seconds = {name: [] for name in tasks}
    for _ in range(rounds):
        for name, task in tasks.items():
            started = time.perf_counter()
            task()
            seconds[name].append(time.perf_counter() - started)
    return {name: statistics.median(found) for name, found in seconds.items()}


LENGTHS = [n for n in (16, 32, 128, 512, 1024, 2048) if n <= run.longest]
WIDTH = 8 if QUICK else 64
steps = {kind: [] for kind in KINDS}
times = {kind: [] for kind in KINDS}
for length in LENGTHS:
    inputs = generator.normal(size=(1, length, WIDTH)).astype("float32")
    tasks = {}
    for kind in KINDS:
        steps[kind].append(token_graph.steps(graph(kind, length)))
        model = network(kind, length, WIDTH)
        tasks[kind] = lambda model=model, x=inputs: model.predict_on_batch(x)
    for kind, seconds in in_turns(tasks, run.rounds).items():
        times[kind].append(seconds)
    print(
        f"N = {length:5}: "
        + ", ".join(
            f"{kind} {steps[kind][-1]:4} steps, {1e3 * times[kind][-1]:6.1f} ms"
            for kind in KINDS
        )
    )
assert steps["recurrent"] == LENGTHS
assert steps["convolutional"] == [(n - 1).bit_length() for n in LENGTHS]
assert steps["self-attention"] == [1] * len(LENGTHS)
results["steps"] = {"lengths": LENGTHS, **steps}
results["seconds"] = times

# %% alt="Left: steps over the length. Right: measured milliseconds"
figure = Figure(figsize=(10, 3.8), layout="constrained")
left, right = figure.subplots(1, 2)
for kind in KINDS:
    left.plot(LENGTHS, steps[kind], LOOKS[kind], label=kind)
    right.plot(LENGTHS, 1e3 * np.array(times[kind]), LOOKS[kind], label=kind)
for panel in (left, right):
    panel.set_xscale("log", base=2)
    panel.set_yscale("log")
    panel.set_xlabel("N, tokens")
left.set(ylabel="steps", title="Steps, one after the other")
right.set(ylabel="ms", title="Time of one pass, on this machine")
left.legend()
figure

# %% [markdown]
# The machine and the backend decide how the right picture looks; the left one
# is the same everywhere. Attention pays with work: about $N^2 D$ products,
# against about $N D^2$ of the recurrent network. Where N is larger than D, that
# becomes the larger number.
#
# ## Claim 2: the path between two tokens is short
#
# What the last token learns of the first one has to pass through every
# computation on the way. Here are the fewest that lie between two tokens at a
# distance of d, with as many layers as that takes; and, for comparison, of
# convolutions whose taps all stand side by side.

# %%
DISTANCES = [1, 2, 4, 8, 16, 32, 64] if QUICK else [2**i for i in range(9)]
paths = {kind: [] for kind in (*KINDS, "taps side by side")}
for distance in DISTANCES:
    for kind in KINDS:
        found = token_graph.distances(graph(kind, distance + 1), place=0)
        paths[kind].append(int(found[-1]))
    plain = token_graph.convolutional(distance + 1, 2, [1] * distance)
    # One layer less, and nothing of the first token arrives.
    assert np.isinf(token_graph.distances(plain[:-1] or plain, 0)[-1]) or (
        distance == 1
    )
    found = token_graph.distances(plain, place=0)
    paths["taps side by side"].append(int(found[-1]))
print("distance           ", *(f"{d:4}" for d in DISTANCES))
for kind, lengths in paths.items():
    print(f"{kind:<19}", *(f"{length:4}" for length in lengths))
assert paths["recurrent"] == [d + 1 for d in DISTANCES]
assert paths["taps side by side"] == DISTANCES
assert paths["convolutional"] == [d.bit_length() for d in DISTANCES]
assert paths["self-attention"] == [1] * len(DISTANCES)
results["paths"] = {"distances": DISTANCES, **paths}

# %% alt="Path length over distance: straight lines, a logarithm, a constant"
figure = Figure(figsize=(6, 3.8), layout="constrained")
panel = figure.subplots()
for kind, lengths in paths.items():
    panel.plot(DISTANCES, lengths, LOOKS.get(kind, "x:"), label=kind)
panel.set_xscale("log", base=2)
panel.set_yscale("log")
panel.set(xlabel="distance, in tokens", ylabel="computations on the path")
panel.legend()
figure

# %% [markdown]
# ## Claim 3: gradients vanish, or explode
#
# Training sends a gradient back over the same path. In a linear recurrent
# network $h_t = U h_{t-1} + W x_t$, one that asks the last output for something
# in direction $v$ arrives at the token d places before as
#
# $$\frac{\partial\, (v \cdot h_N)}{\partial x_{N-d}} = W^\top (U^\top)^d v.$$
#
# Every step multiplies by $U$ once more. With an orthogonal $W$, and $U$
# orthogonal times a gain g, the norm is $g^d$, exactly: 0.9 vanishes, 1.1
# explodes. With a tanh it can only be smaller, since $|\tanh'| \le 1$ (Bengio
# et al. 1994, <https://doi.org/10.1109/72.279181>). The gates of the LSTM
# (Hochreiter and Schmidhuber 1997,
# <https://doi.org/10.1162/neco.1997.9.8.1735>) keep more, the more so if they
# begin open. In attention the gradient takes one step from any token to any
# other.
#
# All networks are as they are before training.

# %%
ROWS, LENGTH, WIDTH = (2, 8, 8) if QUICK else (64, 64, 32)


def simple(gain, activation="linear"):
    """Returns a plain recurrent layer whose matrices are orthogonal."""
    return keras.layers.SimpleRNN(
        WIDTH,
        activation=activation,
        kernel_initializer=keras.initializers.Orthogonal(seed=1),
        recurrent_initializer=keras.initializers.Orthogonal(gain, seed=2),
        return_sequences=True,
    )


def open_lstm():
    """Returns an LSTM that begins with sigmoid(4) = 0.98 of its memory."""
    bias = np.zeros(4 * WIDTH, "float32")
    bias[WIDTH : 2 * WIDTH] = 4  # the forget gates, the second of four
    return keras.layers.LSTM(
        WIDTH,
        bias_initializer=keras.initializers.Constant(bias),
        unit_forget_bias=False,
        return_sequences=True,
    )


GAINS = (0.9,) if QUICK else (0.9, 1.0, 1.1)
judged = {f"linear, g = {gain:g}": simple(gain) for gain in GAINS}
judged["self-attention"] = network("self-attention", LENGTH, WIDTH)
if not QUICK:
    judged |= {
        "tanh, g = 1.1": simple(1.1, "tanh"),
        "LSTM": keras.layers.LSTM(WIDTH, return_sequences=True),
        "LSTM, gates open": open_lstm(),
    }
inputs = generator.normal(size=(ROWS, LENGTH, WIDTH))
direction = generator.normal(size=(ROWS, WIDTH))
direction /= np.linalg.norm(direction, axis=-1, keepdims=True)
norms = {}
for name, layer in judged.items():
    gradient = input_gradients.input_gradients(layer, inputs, direction)
    assert gradient.shape == (ROWS, LENGTH, WIDTH)
    # (N,), from the last token, at distance 0, back to the first one.
    norms[name] = np.linalg.norm(gradient, axis=-1).mean(0)[::-1]
    print(
        f"{name:<17} at distance 1: {norms[name][1]:9.2e},"
        f" {LENGTH // 2}: {norms[name][LENGTH // 2]:9.2e},"
        f" {LENGTH - 1}: {norms[name][-1]:9.2e}"
    )
far = np.arange(LENGTH)
for gain in GAINS:
    found = norms[f"linear, g = {gain:g}"]
    np.testing.assert_allclose(found, gain**far, rtol=1e-3)
if not QUICK:
    assert (norms["tanh, g = 1.1"] <= 1.1**far * 1.001).all()
    # What attention sends does not depend on the distance.
    level = norms["self-attention"][1:]
    assert level.max() < 4 * level.min()
    assert norms["LSTM"][-1] < 1e-4 * norms["LSTM"][1]
    assert norms["LSTM, gates open"][-1] > 100 * norms["LSTM"][-1]
results["gradient norms"] = {k: v.tolist() for k, v in norms.items()}

# %% alt="Gradient norms over distance, some fall, one rises, attention is flat"
figure = Figure(figsize=(7, 4.2), layout="constrained")
panel = figure.subplots()
for (name, found), look in zip(
    norms.items(),
    ("C0-", "C0--", "C0:", "k-", "C1-", "C2-", "C2--"),
    strict=False,
):
    panel.plot(far, found, look, label=name)
panel.set_yscale("log")
panel.set(xlabel="distance to the last token", ylabel="norm of the gradient")
panel.legend(fontsize=8)
figure

# %% [markdown]
# Attention's gradient is flat, though not large: what arrives is shared among
# all N tokens at first. Training decides which of them get it.
#
# ## Claim 4: recurrent networks forget
#
# A sequence of 63 letters holds one capital, among small ones, and ends with a
# question mark: which capital was it? There are eight of them, so guessing is
# right once in eight times. The capital may stand anywhere.

# %%
LENGTH, WIDTH, BATCH = 64, 8 if QUICK else 64, 64
BLOCK = BATCH if QUICK else 20 * BATCH  # rows between two measurements
train = recall_task.draw(run.blocks * BLOCK, LENGTH, seed=run.seed)
valid, test = (
    recall_task.draw(count, LENGTH, seed=run.seed + i)
    for i, count in ((1, min(512, run.rows)), (2, run.rows))
)
for row in range(3):
    print(
        recall_task.text(test.tokens[row]),
        "->",
        recall_task.CAPITALS[test.answers[row]],
        f"({test.distances[row]} before the question)",
    )

# %% [markdown]
# Four networks of the same width answer from their last output. The plain
# recurrent network is the one of claim 3, with tanh and g = 1. The convolutions
# get four layers only, so that one sees what a reach is: the graph says how far
# they can look. One optimizer for all, tuned for none.

# %%
DILATIONS = [1, 2, 4, 8]
LOOK_BACK = token_graph.convolutional(LENGTH, 2, DILATIONS)
# Of what the last token can see, all but itself.
REACH = int(token_graph.reach(LOOK_BACK)[-1].sum()) - 1


def bodies():
    """Returns four networks from (B, N, D) to (B, N, D), new ones."""
    attention = {"self-attention": network("self-attention", LENGTH, WIDTH)}
    if QUICK:
        return attention
    return {
        "plain recurrent": simple(1.0, "tanh"),
        "LSTM": network("recurrent", LENGTH, WIDTH),
        "convolutional": network("convolutional", LENGTH, WIDTH, DILATIONS),
        **attention,
    }


def learner(body):
    """Returns a model from ids (B, N) to logits of the capitals (B, 8)."""
    source = keras.Input((LENGTH,), dtype="int32")
    vocabulary = len(recall_task.VOCABULARY)
    x = keras.layers.Embedding(vocabulary, WIDTH)(source)
    logits = keras.layers.Dense(len(recall_task.CAPITALS))(body(x)[:, -1])
    model = keras.Model(source, logits)
    model.compile(
        keras.optimizers.Adam(3e-3, clipnorm=1.0),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    return model


print(f"The convolutions look {REACH} tokens back")
assert REACH == sum(DILATIONS)
EARLY = 5  # blocks: 100 steps
curves, recalled, early, cost = {}, {}, {}, {}
for name, body in bodies().items():
    model, curve, started = learner(body), [], time.perf_counter()
    for block in range(run.blocks):
        rows = slice(block * BLOCK, (block + 1) * BLOCK)
        model.fit(
            train.tokens[rows],
            train.answers[rows],
            batch_size=BATCH,
            shuffle=False,
            verbose=0,
        )
        _, accuracy = model.evaluate(
            valid.tokens, valid.answers, batch_size=256, verbose=0
        )
        curve.append(float(accuracy))
        if block + 1 in (min(EARLY, run.blocks), run.blocks):
            logits = model.predict(test.tokens, batch_size=256, verbose=0)
            assert logits.shape == (run.rows, 8)
            recalled[name] = logits.argmax(-1) == test.answers
            early.setdefault(name, recalled[name])
    curves[name] = curve
    cost[name] = time.perf_counter() - started
    print(
        f"{name:<16} {recalled[name].mean():6.1%} right after "
        f"{run.blocks * BLOCK // BATCH} steps, {cost[name]:5.1f} s"
    )

# %% alt="Right answers over distance, for four networks, early and at the end"
EDGES = [1, 4, 8, 16, 24, 32, 40, 48, 56, 64]
shares, early_shares = (
    {
        name: recall_task.by_distance(right, test.distances, EDGES)
        for name, right in found.items()
    }
    for found in (recalled, early)
)
middles = [(a + b - 1) / 2 for a, b in itertools.pairwise(EDGES)]
styles = dict(zip(recalled, ("o:", "s--", "x-.", "^-"), strict=False))
figure = Figure(figsize=(10, 4), layout="constrained")
for panel, found, blocks in zip(
    figure.subplots(1, 2, sharey=True),
    (early_shares, shares),
    (min(EARLY, run.blocks), run.blocks),
    strict=True,
):
    for name, share in found.items():
        panel.plot(middles, share, styles[name], label=name)
    panel.axhline(1 / 8, color="grey", linewidth=0.8)
    panel.axvline(REACH + 0.5, color="grey", linewidth=0.8)
    panel.text(REACH + 1, 1.02, "reach of the convolutions", fontsize=8)
    panel.set(
        xlabel="distance, in tokens",
        ylim=(0, 1.08),
        title=f"after {blocks * BLOCK // BATCH} steps",
    )
    panel.set_ylabel("recalled (grey: guessing)")
panel.legend(loc="center right", fontsize=8)
figure

# %%
results["recall"] = {name: list(share) for name, share in shares.items()}
out_of_reach = test.distances > REACH
if WHOLE:
    assert np.nanmin(shares["self-attention"]) > 0.95
    assert recalled["convolutional"][~out_of_reach].mean() > 0.9
    assert recalled["convolutional"][out_of_reach].mean() < 0.2
    assert recalled["LSTM"].mean() > 0.9
    assert early["self-attention"].mean() > early["LSTM"].mean() + 0.2
    lost = shares["plain recurrent"]
    assert lost[-1] < 0.5 and lost[-1] < shares["self-attention"][-1] - 0.4

# %% [markdown]
# So the claim is half true. The plain network forgets, and what the
# convolutions cannot reach they cannot know. The gates of the LSTM were made
# for keeping things, and keep this one, after more than three times as many
# steps. Nobody had to teach attention to keep anything.
#
# ## Claim 5: attention learns faster
#
# The same trainings, seen from the side: the share of right answers after so
# many steps. A step of one network does not take as long as one of another;
# the seconds are above.

# %% alt="Share of right answers over training steps, for four networks"
taken = (1 + np.arange(run.blocks)) * (BLOCK // BATCH)
figure = Figure(figsize=(7, 3.6), layout="constrained")
panel = figure.subplots()
for name, curve in curves.items():
    panel.plot(taken, curve, styles[name], label=name, markersize=4)
panel.set(xlabel="training steps", ylabel="right answers", ylim=(0, 1.05))
panel.legend(loc="center right", fontsize=8)
figure


# %%
def steps_to(share, curve):
    """Returns the steps after which so many answers are right, or inf."""
    there = np.flatnonzero(np.array(curve) >= share)
    return float(taken[there[0]]) if len(there) else np.inf


learned = {name: steps_to(0.9, curve) for name, curve in curves.items()}
for name, count in learned.items():
    said = f"{count:.0f} steps" if np.isfinite(count) else "not reached"
    print(f"{name:<16} 90 % right: {said}")
if WHOLE:
    assert learned["self-attention"] < min(
        count for name, count in learned.items() if name != "self-attention"
    )
results["curves"] = curves

# %% [markdown]
# Fair is fair: this task is made for attention. Nothing has to be counted,
# nothing depends on order. Claim 7 shows what attention cannot do by itself.
#
# ## Claim 6: divide by the root of the keys' width
#
# The components of a query q and a key k are independent, with mean 0 and
# variance 1. Then their product has variance $d_k$:
#
# $$q \cdot k = \sum_{i=1}^{d_k} q_i k_i, \qquad
# \mathrm{Var}(q \cdot k) = d_k.$$
#
# (Vaswani et al. 2017, sec. 3.2.1.) Large scores make the softmax sure of
# itself, and where it is sure, its gradient is nothing: for
# $p = \mathrm{softmax}(z)$
#
# $$J_{ij} = \frac{\partial p_i}{\partial z_j} = p_i (\delta_{ij} - p_j),
# \qquad \lVert J \rVert^2 = \sum_i p_i^2 - 2 \sum_i p_i^3
# + \Big(\sum_i p_i^2\Big)^2 .$$


# %%
def softmax(scores):
    """Returns the weights over the last axis."""
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def jacobian_norm(p):
    """Returns the norm of the softmax's Jacobian, from its weights (..., S)."""
    squares, cubes = (p**2).sum(-1), (p**3).sum(-1)
    return np.sqrt(np.maximum(squares - 2 * cubes + squares**2, 0))


p = softmax(generator.normal(size=5))
jacobian = np.diag(p) - np.outer(p, p)
assert abs(np.linalg.norm(jacobian) - jacobian_norm(p)) < 1e-9

WIDTHS, QUERIES, KEYS = [1, 4, 16, 64, 256, 1024], 400, 32
if QUICK:
    WIDTHS = WIDTHS[::5]
spread = {"dot": [], "scaled_dot": []}
typical = {"dot": [], "scaled_dot": []}
for width in WIDTHS:
    query, key = (
        generator.normal(size=(QUERIES, count, width)) for count in (1, KEYS)
    )
    scores = np.einsum("btd,bsd->bts", query, key)[:, 0]  # (B, S)
    for name, z in (("dot", scores), ("scaled_dot", scores / width**0.5)):
        weights = softmax(z)
        assert weights.shape == (QUERIES, KEYS)
        _, of_layer = ScoredAttention(name)(
            query.astype("float32"),
            key.astype("float32"),
            return_attention_scores=True,
        )
        of_layer = keras.ops.convert_to_numpy(of_layer)[:, 0]
        np.testing.assert_allclose(of_layer, weights, atol=1e-3)
        spread[name].append(z.std())
        typical[name].append(np.quantile(jacobian_norm(weights), (0.25, 0.5)))
    print(
        f"d_k = {width:4}: "
        + "; ".join(
            f"{name}: scores spread by {spread[name][-1]:5.2f}, "
            f"gradient {typical[name][-1][1]:.1e}"
            for name in spread
        )
    )
np.testing.assert_allclose(spread["dot"], np.sqrt(WIDTHS), rtol=0.1)
np.testing.assert_allclose(spread["scaled_dot"], 1, rtol=0.1)
medians = {name: np.array(found)[:, 1] for name, found in typical.items()}
assert medians["dot"][-1] < medians["scaled_dot"][-1] / 100
assert np.ptp(medians["scaled_dot"]) < 0.25 * medians["scaled_dot"].max()
results["softmax gradient"] = {k: v.tolist() for k, v in medians.items()}

# %% alt="Left: spread of scores over width. Right: the softmax's gradient"
figure = Figure(figsize=(10, 3.6), layout="constrained")
left, right = figure.subplots(1, 2)
for name, look in (("dot", "o-"), ("scaled_dot", "s--")):
    left.plot(WIDTHS, spread[name], look, label=name)
    quarter, half = np.maximum(np.array(typical[name]).T, 1e-12)
    right.plot(WIDTHS, half, look, label=f"{name}, median")
    right.plot(WIDTHS, quarter, look[1:], color="grey", linewidth=0.8)
left.set(ylabel="standard deviation of the scores")
right.set(ylabel="norm of J (grey: a quarter is below)", ylim=(1e-9, 1))
for panel in (left, right):
    panel.set_xscale("log", base=4)
    panel.set_yscale("log")
    panel.set_xlabel("$d_k$")
    panel.legend()
figure

# %% [markdown]
# ## Claim 7: without positions, a very advanced bag of words
#
# Put the tokens into another order, and self-attention gives the same vectors
# in that order: for any permutation $\pi$
#
# $$\mathrm{Attention}(x_\pi) = \mathrm{Attention}(x)_\pi .$$
#
# It knows which words there are, and how they suit each other. That one stood
# before the other it cannot know. The cure is to write the place into every
# token.

# %%
WORDS = "the dog bites the man ."
LENGTH, WIDTH = len(WORDS.split()), 16
vectors = {w: generator.normal(size=WIDTH) for w in sorted(set(WORDS.split()))}


def embedded(sentence):
    """Returns a sentence as float32 (1, N, D)."""
    rows = [vectors[word] for word in sentence.split()]
    return np.array([rows], "float32")


def with_positions():
    """Returns self-attention that is told the places."""
    source = keras.Input((LENGTH, WIDTH))
    placed = PositionalEmbedding()(source)
    return keras.Model(source, MultiHeadAttention(1, WIDTH)(placed, placed))


readers = {
    "self-attention": network("self-attention", LENGTH, WIDTH),
    "self-attention\nwith positions": with_positions(),
}
if not QUICK:
    readers |= {kind: network(kind, LENGTH, WIDTH) for kind in KINDS[:2]}
told_apart, broken = {}, {}
order = generator.permutation(LENGTH)
for name, reader in readers.items():
    first, second = (
        reader.predict_on_batch(embedded(sentence))
        for sentence in (WORDS, "the man bites the dog .")
    )
    assert first.shape == (1, LENGTH, WIDTH)
    # The mean over all tokens, as a classifier might read it.
    told_apart[name] = np.abs(first.mean(1) - second.mean(1)).max()
    shuffled = reader.predict_on_batch(embedded(WORDS)[:, order])
    broken[name] = np.abs(shuffled - first[:, order]).max()
    print(
        f"{name.replace(chr(10), ' '):<30} dog bites man against man bites "
        f"dog: {told_apart[name]:.1e}; any order: {broken[name]:.1e}"
    )
assert told_apart["self-attention"] < 1e-5 > broken["self-attention"]
for name in list(readers)[1:]:
    assert told_apart[name] > 1e-4 < broken[name]
results["order"] = {k.replace("\n", " "): float(v) for k, v in broken.items()}

# %% alt="Bars: how far outputs differ when the words change places"
figure = Figure(figsize=(8, 3.6), layout="constrained")
panel = figure.subplots()
places = np.arange(len(readers))
for shift, (found, label) in enumerate(
    ((told_apart, "dog and man change places"), (broken, "a random order"))
):
    heights = np.maximum(list(found.values()), 1e-9)
    panel.bar(places + 0.4 * shift - 0.2, heights, 0.38, label=label)
panel.axhline(1e-5, color="grey", linewidth=0.8)
panel.text(
    len(readers) - 0.6, 1.3e-5, "rounding stays below", ha="right", fontsize=8
)
panel.set_xticks(places, list(readers))
panel.set_yscale("log")
panel.set(ylabel="largest difference")
panel.legend()
figure

# %% [markdown]
# ## Claim 8: 256 sines and 256 cosines
#
# The paper writes sine and cosine in turn; others put all sines first:
#
# $$\begin{aligned}
# \text{in turn:}\quad & PE_{p,2i} = \sin(p / 10000^{2i/D}),
# & PE_{p,2i+1} = \cos(p / 10000^{2i/D}) \\
# \text{halves:}\quad & PE_{p,i} = \sin(p / 10000^{2i/D}),
# & PE_{p,D/2+i} = \cos(p / 10000^{2i/D})
# \end{aligned}$$
#
# With D = 512 these are 256 sines and 256 cosines either way, in another order
# of the columns: one permutation. A dense layer that follows can undo it, by
# the same permutation of its rows, so no model is better off with one of them.

# %%
ROWS, WIDTH = 100, 512
blank = np.zeros((1, ROWS, WIDTH), "float32")
turns, halves = (
    keras.ops.convert_to_numpy(PositionalEmbedding(layout=layout)(blank))[0]
    for layout in ("interleaved", "halves")
)
assert turns.shape == halves.shape == (ROWS, WIDTH)
rate = 10000.0 ** (-2 * np.arange(WIDTH // 2) / WIDTH)  # (D / 2,)
angles = np.arange(ROWS)[:, None] * rate
np.testing.assert_allclose(halves[:, :256], np.sin(angles), atol=1e-4)
np.testing.assert_allclose(halves[:, 256:], np.cos(angles), atol=1e-4)
columns = np.concatenate([np.arange(0, WIDTH, 2), np.arange(1, WIDTH, 2)])
assert sorted(columns) == list(range(WIDTH))
np.testing.assert_allclose(turns[:, columns], halves, atol=1e-6)
dense = generator.normal(size=(WIDTH, 8))
np.testing.assert_allclose(halves @ dense[columns], turns @ dense, atol=1e-4)

# %% [markdown]
# (`halves` is `turns[:, columns]`, so row j of a kernel for the halves is row
# `columns[j]` of the kernel for the other.) And what a position is to another
# depends on their distance alone, since
# $\sin a \sin b + \cos a \cos b = \cos(a - b)$:
#
# $$PE_p \cdot PE_{p+k} = \sum_{i=0}^{D/2-1} \cos(k / 10000^{2i/D}).$$

# %%
products = {"in turn": turns @ turns.T, "halves": halves @ halves.T}
expected = np.cos(angles).sum(-1)  # over k
apart = np.abs(np.subtract.outer(np.arange(ROWS), np.arange(ROWS)))
for found in products.values():
    np.testing.assert_allclose(found, expected[apart], atol=2e-2)
print(
    "PE_p . PE_(p+k) for k = 0, 1, 2, 4, 8:", expected[[0, 1, 2, 4, 8]].round(1)
)

# %% alt="Two tables of positions, and their products over the distance"
figure = Figure(figsize=(10, 3.6), layout="constrained")
panels = figure.subplots(1, 3)
for panel, table, title in (
    (panels[0], turns, "in turn"),
    (panels[1], halves, "256 sines, 256 cosines"),
):
    panel.imshow(table, cmap="RdBu", vmin=-1, vmax=1, aspect="auto")
    panel.set(title=title, xlabel="feature", ylabel="position")
panels[2].plot(products["in turn"][0], label="in turn")
panels[2].plot(products["halves"][0], "--", label="halves")
panels[2].set(title="Product with position 0", xlabel="position")
panels[2].legend()
figure

# %%
run.out.mkdir(parents=True, exist_ok=True)
(run.out / "results.json").write_text(json.dumps(results, indent=1))
print(f"""
All figures are in {run.out / "results.json"}.

What to try next:
  BLOCKS=100 ... tutorials/why_attention.py   let all four learn four times
                                              as long: who catches up?
  LONGEST=512 ROUNDS=20 ...                   shorter, and measured better
  KERAS_BACKEND=jax ...                       the same on another backend""")

# %% [markdown]
# ## Exercises
#
# **1.** How many layers does a stack of causal convolutions with three taps
# need until the last of 2,048 tokens sees the first one, with taps side by
# side, and with gaps of 1, 3, 9, ...? Ask `token_graph`.
#
# <details markdown>
# <summary>Answer</summary>
#
# Side by side each layer reaches two tokens further: 2,047 / 2, rounded up, is
# 1,024 layers. With gaps of $3^i$ the reach of L layers is
# $2 (1 + 3 + \ldots + 3^{L-1}) = 3^L - 1$: seven layers, since $3^7 = 2187$.
# `token_graph.steps(token_graph.convolutional(2048, 3, [3**i for i in
# range(7)]))` is 7.
#
# </details>
#
# **2.** In claim 6 the queries and keys have variance 1. What would you divide
# by if their components had variance 4? And if queries and keys were vectors of
# length 1?
#
# <details markdown>
# <summary>Answer</summary>
#
# A product of two components then has variance 16, the score $16 d_k$: divide
# by $4 \sqrt{d_k}$. For vectors of length 1 and random directions the variance
# of a product is $1 / d_k$: multiply by $\sqrt{d_k}$, or the softmax would
# hardly tell the keys apart. That is why the cosine score has a learned
# strength.
#
# </details>
#
# **3.** Let the question of claim 4 be: which of *two* capitals stood first?
# Which of the four networks cannot do better than guess between the two, and
# what has to be added?
#
# <details markdown>
# <summary>Answer</summary>
#
# Self-attention without positions: swap the two capitals, and the output at
# the question mark is the same, though the answer is the other one. With
# `PositionalEmbedding` behind the embedding it can. The convolutions fail
# where a capital is out of their reach.
#
# </details>
