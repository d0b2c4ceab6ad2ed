# %% [markdown]
# # Hard attention
#
# Soft attention reads a weighted sum of all values, hard attention a single
# one. In this tutorial you compare both, compute the gradient of a sampled
# choice in two ways, and train three models to look up one of six values:
#
# ![Correct answers over training steps for soft, Gumbel and REINFORCE
# attention, and a line at 27 % for a random pair](hard_attention-1.png)
#
# **You will learn** why soft attention is the expectation of hard attention,
# how the straight-through Gumbel softmax and REINFORCE compute gradients of a
# choice, what a baseline is for, and how to train a model with each.
#
# **Prerequisites**: scores, weights, keys and values, from [Attention from its
# first forms](../first_forms/index.md). **Time**: about 1 minute on one CPU
# core.
#
# **Published result**: *Show, Attend and Tell* (Xu et al. 2015,
# <https://arxiv.org/abs/1502.03044>, Table 1) describes photographs of MS COCO.
# Its BLEU-4 is 24.3 with soft attention, and 25.0 with hard attention, learned
# by REINFORCE. The models below look up one of six values. With each kind, 100 %
# of the answers to new questions are correct, so the task is much easier and
# only the kinds of attention are the same. [Show, attend and tell](
# ../captions/index.md) describes images with soft and hard attention.

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

from keras_attn import datasets
from keras_attn.layers import Reinforce, ScoredAttention

keras.utils.set_random_seed(1)
random = np.random.default_rng(1)
to_numpy = keras.ops.convert_to_numpy
print(f"Keras {keras.__version__} on {keras.backend.backend()}")

# %% [markdown]
# ## Soft and hard attention
#
# The query q has a score with each key $k_s$: here the general score, with a
# learned matrix W. A softmax makes weights of the scores, and **soft
# attention** is the weighted sum of the values $v_s$:
#
# $$z_s = q\, W \cdot k_s, \qquad w = \mathrm{softmax}(z), \qquad
# c = \sum_s w_s v_s$$
#
# **Hard attention** (Xu et al. 2015, section 4.1) samples one of the values,
# with its soft weight as the probability. The soft output is the expectation of
# the hard one:
#
# $$\mathbb{E}_{j \sim w}[v_j] = \sum_j w_j v_j = c$$
#
# ![Soft attention adds five values times their weights; hard attention returns
# one of them, sampled with the weights](../../diagrams/soft_hard.svg)
#
# We compare one query with five keys, and sample 20,000 times. Here,
# `hard="gumbel"` only samples; the next section explains its gradient.

# %%
n = 20_000  # samples for one query
q = random.normal(size=(1, 1, 4)).astype("float32")  # (B, T, D)
k = random.normal(size=(1, 5, 4)).astype("float32")  # (B, S, D)
v = random.normal(size=(1, 5, 8)).astype("float32")
soft = ScoredAttention("general")
hard = ScoredAttention("general", hard="gumbel", seed=1)
expected, w = soft(q, v, k, return_attention_scores=True)
many = np.repeat(q, n, axis=1)  # (1, n, D)
hard.build(many.shape, v.shape, k.shape)
hard.set_weights(soft.get_weights())
sampled, choices = hard(many, v, k, return_attention_scores=True, training=True)
w, expected, choices, sampled = (
    to_numpy(x)[0] for x in (w, expected, choices, sampled)
)
assert set(np.unique(choices)) == {0, 1} and (choices.sum(-1) == 1).all()
np.testing.assert_allclose(sampled[0], v[0, choices[0].argmax()], atol=1e-5)
deviation = np.sqrt((w @ v[0] ** 2 - expected**2) / n)
assert (np.abs(sampled.mean(0) - expected) < 5 * deviation).all()
print("soft weights      ", w[0].round(3))
print("one choice        ", choices[0])
print("sampled frequency ", choices.mean(0).round(3))

# %% [markdown]
# One choice reads one value. The mean of many choices is near the soft weights,
# and the mean of their outputs is near the soft output.
#
# ## Gradients of a choice
#
# A sampled choice has no gradient. There are two common solutions:
#
# - **Straight-through Gumbel softmax** (Jang et al. 2017,
#   <https://arxiv.org/abs/1611.01144>): add Gumbel noise to the scores, choose
#   the largest, and use the gradient of the softmax of the noisy scores. This
#   gradient is biased.
# - **REINFORCE** (Williams 1992, <https://doi.org/10.1007/BF00992696>): make a
#   choice more probable if its loss $\ell$ was small. This gradient is unbiased
#   but noisy:
#
# $$\nabla_z\, \mathbb{E}_{j \sim w}[\ell_j] =
# \mathbb{E}_{j \sim w}\big[(\ell_j - \beta)\, \nabla_z \ln w_j\big], \qquad
# \nabla_z \ln w_j = \delta_j - w, \qquad w = \mathrm{softmax}(z)$$
#
# with the one-hot vector $\delta_j$. A baseline $\beta$ that does not depend on
# j does not change the expectation, and can reduce the noise (below, the
# deviation of one sample). With five keys, the exact gradient is known, too.


# %%
def softmax(z):
    """Returns the weights over the last axis."""
    z = np.exp(z - z.max(-1, keepdims=True))
    return z / z.sum(-1, keepdims=True)


z, cost = random.normal(size=5), np.array([1.0, 3.0, 2.5, 4.0, 3.5])
w = softmax(z)
gradient = w * (cost - w @ cost)  # of sum_j w_j cost_j
j = random.choice(5, size=n, p=w)
spread = {}
for name, beta in ("beta = 0", 0.0), ("beta = mean loss", w @ cost):
    estimates = (cost[j] - beta)[:, None] * (np.eye(5)[j] - w)  # (n, 5)
    deviation = estimates.std(0) / np.sqrt(n)
    assert (np.abs(estimates.mean(0) - gradient) < 5 * deviation).all()
    spread[name] = np.linalg.norm(estimates.std(0))
    mean = estimates.mean(0).round(2)
    print(f"{name:16} mean {mean}, deviation {spread[name]:.2f}")
print(f"exact                 {gradient.round(2)}")
assert spread["beta = mean loss"] < 0.7 * spread["beta = 0"]

# %% [markdown]
# Both means are near the exact gradient. With the mean loss as the baseline,
# one sample deviates less from it.
#
# ## A task for three kinds of attention
#
# A sequence has six pairs of a key and a value, and ends with one of the keys.
# The model must return its value.

# %%
steps, rounds = (1, 1) if QUICK else (40, 15)
data = datasets.make_lookup_task(64 * steps * rounds, num_pairs=6, seed=1)
held_out = datasets.make_lookup_task(512, num_pairs=6, split="test")
print(data.tokens[0], "->", data.answers[0])

# %% [markdown]
# The three models differ in `hard` only. `Reinforce` adds the REINFORCE term to
# the loss, with a moving average of the losses as the baseline. It needs the
# answers, which are therefore an input in training. The predictor has the same
# weights and does not need them.


# %%
def make_lookup(kind):
    """Returns a model that learns, and one that predicts with its weights."""
    tokens = keras.Input((13,), dtype="int32")  # six pairs and a key
    answers = keras.Input((), dtype="int32")
    x = keras.layers.Embedding(24, 32)(tokens)
    attention = ScoredAttention(
        "general", hard=None if kind == "soft" else kind, seed=1
    )
    output, w, *log_p = attention(
        x[:, -1:],  # the query, (B, 1, D)
        x[:, 1:-1:2],  # values, (B, S, D)
        x[:, :-1:2],  # keys, (B, S, D)
        return_attention_scores=True,
        return_log_probability=kind == "reinforce",
    )
    logits = keras.layers.Dense(24)(output[:, 0])
    predictor = keras.Model(tokens, [logits, w])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    if log_p:
        logits = Reinforce(loss)(logits, answers, log_p[0])
    learner = keras.Model([tokens, answers], logits)
    learner.compile(keras.optimizers.Adam(5e-3), loss)
    return learner, predictor


# %%
curves = {}
for kind in ("reinforce",) if QUICK else ("soft", "gumbel", "reinforce"):
    keras.utils.set_random_seed(1)
    learner, predictor = make_lookup(kind)
    curves[kind] = []
    for i in range(rounds):
        part = slice(64 * steps * i, 64 * steps * (i + 1))
        tokens, answers = data.tokens[part], data.answers[part]
        learner.fit([tokens, answers], answers, batch_size=64, verbose=0)
        logits, w = predictor.predict(held_out.tokens, 512, verbose=0)
        curves[kind].append((logits.argmax(-1) == held_out.answers).mean())
    right = (w[:, 0].argmax(-1) == held_out.positions // 2).mean()
    print(f"{kind:9} {curves[kind][-1]:6.1%} correct, attention {right:6.1%}")
assert set(np.unique(w)) == {0, 1}  # of "reinforce"
if not QUICK:
    assert curves["soft"][-1] > 0.9 and curves["gumbel"][-1] > 0.9
    assert curves["reinforce"][-1] > 0.5
    assert np.argmin([sum(curve) for curve in curves.values()]) == 2

# %% tags=["hide-input"] alt="Correct answers over training steps for soft, Gumbel and REINFORCE attention, and a line at 27 % for a random pair"
figure, axis = plt.subplots(figsize=(6, 2.8), layout="constrained")
for (kind, values), marker in zip(curves.items(), "os^", strict=False):
    seen = steps * (1 + np.arange(rounds))
    axis.plot(seen, values, f"{marker}-", label=kind)
axis.axhline(13 / 48, color="0.6", linewidth=1, label="random pair")
axis.set(xlabel="step", ylabel="correct answers", ylim=(0, 1.05))
axis.legend()
plt.show()

# %% [markdown]
# A random pair is right with probability $1/6 + 5/6 \cdot 1/8$. Soft attention
# and the Gumbel softmax have a gradient for all pairs at each step. REINFORCE
# learns from the sampled pair only, and needed more steps in this run (120
# instead of 80). In inference, hard attention reads one value.
#
# ## Summary
#
# - Hard attention samples one value, with its soft weight as the probability.
# - Soft attention is the expectation of hard attention; its gradient is exact.
# - The straight-through Gumbel softmax uses the gradient of a softmax; it is
#   biased.
# - REINFORCE is unbiased and noisy; a baseline can reduce the noise.
#
# ## Exercises
#
# **1.** Three values, 1, 2 and 6, have the weights 0.5, 0.3 and 0.2. What does
# soft attention return? What are the mean and the variance of hard attention?
#
# <details markdown>
# <summary>Answer</summary>
#
# Soft attention returns 0.5 + 0.6 + 1.2 = 2.3, which is none of the values.
# Hard attention returns 1, 2 or 6, with mean 2.3 and variance 3.61:
#
# ```python
# w, v = np.array([0.5, 0.3, 0.2]), np.array([1, 2, 6])
# assert round(w @ v, 2) == 2.3
# assert round(w @ v**2 - (w @ v) ** 2, 2) == 3.61
# ```
#
# </details>
#
# **2.** All five losses of the gradient experiment increase by 10. What happens
# to the exact gradient, and to the deviation with each of the two baselines?
#
# <details markdown>
# <summary>Answer</summary>
#
# The gradient stays the same, because the weights sum to 1 whatever the scores
# are. With the mean loss as the baseline, the deviation stays the same, too.
# Without a baseline it increases:
#
# ```python
# w, larger = softmax(z), cost + 10
# np.testing.assert_allclose(w * (larger - w @ larger), gradient)
# found = []
# for beta in 0.0, w @ larger:
#     estimates = (larger[j] - beta)[:, None] * (np.eye(5)[j] - w)
#     found.append(np.linalg.norm(estimates.std(0)))
# assert found[0] > 2 * spread["beta = 0"]
# assert abs(found[1] - spread["beta = mean loss"]) < 1e-6
# print(*np.round(found, 2))
# ```
#
# </details>
#
# **Next**: [Recurrent seq2seq, with and without attention](
# ../recurrent/index.md) measures the bottleneck of a model without attention.
