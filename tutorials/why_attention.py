# %% [markdown]
# # Why attention?
#
# Attention replaces recurrent networks for three reasons: they compute one token
# after the other, their gradients vanish or explode, and they forget what is far
# away. In this tutorial you count the steps, and measure the gradient of an
# output over the distance of the input:
#
# ![Norm of the gradient over the distance, on a logarithmic scale: straight
# lines that fall and rise for linear RNNs, a falling curve for the LSTM, a flat
# one for self-attention](why_attention-1.png)
#
# **You will learn** for which tasks attention was invented, how models
# developed from seq2seq to GPT-3, how many sequential steps a layer needs, how
# long the path between two tokens is, what this does to gradients, and what
# attention does not solve.
#
# **Prerequisites**: Python, NumPy, and what an RNN is. Attention itself is
# built in [Attention from its first forms](../first_forms/index.md). **Time**:
# about 1 minute on one CPU core.
#
# **Published result**: Table 1 of *Attention Is All You Need* (Vaswani et al.
# 2017, <https://arxiv.org/abs/1706.03762>) lists sequential operations and path
# lengths of three kinds of layers, up to constant factors. You will count both
# exactly.

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

from keras_attn import datasets
from keras_attn.layers import MultiHeadAttention

keras.utils.set_random_seed(1)
random = np.random.default_rng(1)
print(f"Keras {keras.__version__} on {keras.backend.backend()}")

# %% [markdown]
# ## Sequence-to-sequence tasks
#
# Attention was introduced for tasks that map a source x of S tokens to a target
# y of T tokens:
#
# | task | source | target | tutorial |
# | --- | --- | --- | --- |
# | translation | this cat is very large | este gato es muy grande | [translate](../translate/index.md) |
# | spelling correction | r e c i e v e | r e c e i v e | [spelling](../spelling/index.md) |
# | part-of-speech tagging | the cat sleeps | DET NOUN VERB | [tagging](../tagging/index.md) |
# | speech recognition | frames of a spectrogram | letters | [speech](../speech/index.md) |
#
# A model predicts each token from the earlier ones and the source:
#
# $$p(y \mid x) = \prod_{t=0}^{T-1} p(y_t \mid y_0, \ldots, y_{t-1}, x)$$
#
# Translation is thus a sequence of gaps to fill. After *este gato es muy*, the
# model must know from the source which adjective comes next.

# %%
(pair,) = (p for p in datasets.SHOWCASE_PAIRS if "very large" in p.source)
words = pair.target.split()
print(pair.source, "|", *words[:-1], "... ->", words[-1])
assert words == "este gato es muy grande".split()

# %% [markdown]
# Without attention, the decoder receives the source as one vector, the last state
# of a recurrent encoder, of the same size for 5 words and for 50. [Recurrent
# seq2seq](../recurrent/index.md) measures the effect on long sentences.
#
# ![The encoder reads three words; its last state, one vector, is all that the
# decoder starts from](../../diagrams/seq2seq.svg)
#
# ## What attention is
#
# In biology, attention is selective concentration: the brain has limited
# resources and processes a part of what the eyes receive. A person who searches
# for Wally in a *Where's Wally?* picture looks at one small region after another.
# In machine learning, attention selects from an input (the regions of an
# image), from a memory, or from the representations that another layer has
# computed. The usual form is a weighted sum of S value vectors $v_s$ with
# weights $w_s$ that a softmax computes from scores $z_s$:
#
# $$c = \sum_{s=0}^{S-1} w_s v_s, \qquad
# w = \mathrm{softmax}(z)$$
#
# ![A query is compared with three keys; the softmax of the scores weights three
# values, whose sum is the output](../../diagrams/weighted_sum.svg)
#
# The sum is differentiable, so scores and values are trained jointly with the
# rest of the model. The main steps were:
#
# | year | attention in | paper | tutorial |
# | --- | --- | --- | --- |
# | 2014 | a recurrent network that looks at an image region by region | Mnih et al., <https://arxiv.org/abs/1406.6247> | [glimpses](../glimpses/index.md) |
# | 2014 | translation, between source and target | Bahdanau et al., <https://arxiv.org/abs/1409.0473> | [first forms](../first_forms/index.md) |
# | 2015 | captions, between image and words | Xu et al., <https://arxiv.org/abs/1502.03044> | [captions](../captions/index.md) |
# | 2015 | translation, with other scores, and local | Luong et al., <https://arxiv.org/abs/1508.04025> | [first forms](../first_forms/index.md) |
# | 2015 | convolutional networks for sentence pairs | Yin et al., <https://arxiv.org/abs/1512.05193> | |
# | 2017 | self-attention instead of recurrence | Vaswani et al., <https://arxiv.org/abs/1706.03762> | [multi-head](../multi_head/index.md) |
#
# ## From seq2seq to GPT-3
#
# The table lists a large model of each paper. The size of GPT is that of the
# equivalent model in the GPT-2 paper.
#
# | year | model | parameters | data | idea | source |
# | --- | --- | ---: | --- | --- | --- |
# | 2014 | seq2seq | 384 million | 12 million sentence pairs | an LSTM encodes, an LSTM decodes | <https://arxiv.org/abs/1409.3215> |
# | 2014 | RNNsearch | not stated | WMT 2014, 348 million words | attention instead of one vector | <https://arxiv.org/abs/1409.0473> |
# | 2017 | Transformer | 213 million | 4.5 million sentence pairs | attention only | <https://arxiv.org/abs/1706.03762> |
# | 2018 | GPT | 117 million | 7,000 books | pre-train a decoder, then fine-tune | [paper](https://cdn.openai.com/research-covers/language-unsupervised/language_understanding_paper.pdf) |
# | 2018 | BERT | 340 million | 3.3 billion words | predict masked words from both sides | <https://arxiv.org/abs/1810.04805> |
# | 2019 | Transformer-XL | 257 million | WikiText-103, 103 million words | a memory of earlier segments | <https://arxiv.org/abs/1901.02860> |
# | 2019 | GPT-2 | 1.5 billion | 8 million web pages | more than ten times GPT in parameters and data; no fine-tuning | [paper](https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf) |
# | 2019 | XLNet | as BERT | 33 billion tokens | all orders of prediction | <https://arxiv.org/abs/1906.08237> |
# | 2019 | T5 | 11 billion | 750 GB of web text | every task as text to text | <https://arxiv.org/abs/1910.10683> |
# | 2020 | GPT-3 | 175 billion | 300 billion tokens seen | tasks from examples in the prompt | <https://arxiv.org/abs/2005.14165> |
#
# From 2017 on, all of them are Transformers.
#
# ## Three kinds of layers
#
# A sequence of T vectors $x_t$ of width D becomes T vectors $h_t$ that contain
# information about each other (lectures and papers often write N or n for T):
#
# $$\begin{aligned}
# \text{recurrent:}\quad & h_t = f(h_{t-1}, x_t) \\
# \text{convolutional:}\quad & h_t = f(x_{t-r}, x_t),
# \text{ in layers with gaps } r = 1, 2, 4, \ldots \\
# \text{self-attention:}\quad & h_t = \textstyle\sum_s w_{ts}\, x_s,
# \quad w_{ts} = \mathrm{softmax}_s(x_t \cdot x_s)
# \end{aligned}$$
#
# (self-attention is shown without its projections). One convolutional layer
# does not connect all tokens. With gaps that double, $\lceil \log_2 T \rceil$
# layers connect the last token with the first.
#
# ## Sequential steps and path lengths
#
# A step is everything that can be computed at the same time. The number of
# sequential steps is the length of the *longest* chain of computations that
# ends in the last output. The path length between two tokens is the length of
# the *shortest* chain that connects them: the number of computations that
# information and gradients must pass.
#
# ![Paths from the first of eight tokens to the last output: eight steps in a
# recurrent layer, three with convolutions, one in
# self-attention](../../diagrams/path_lengths.svg)


# %%
KINDS = ("recurrent", "convolutional", "self-attention")


def computations(kind, T):
    """Yields (output, its inputs) in order; (0, t) is the input token t."""
    num_layers = (T - 1).bit_length() if kind == "convolutional" else 1
    for layer in range(num_layers):
        gap = 2**layer
        for t in range(T):
            if kind == "recurrent":
                inputs = [(0, t), (1, t - 1)][: 1 + (t > 0)]
            elif kind == "convolutional":
                inputs = [(layer, t), (layer, t - gap)][: 1 + (t >= gap)]
            else:
                inputs = [(0, s) for s in range(T)]
            yield (layer + 1, t), inputs


def chain(kind, T, choose, first_only=False):
    """Returns the longest or shortest chain that ends in the last output."""
    length = {(0, t): 0 for t in range(T)}
    if first_only:  # chains that start at the first token
        length |= {(0, t): float("inf") for t in range(1, T)}
    for output, inputs in computations(kind, T):
        length[output] = 1 + choose(length[i] for i in inputs)
    return length[output]


lengths = [16, 64] if QUICK else [16, 64, 256]
steps, paths = {}, {}
for kind in KINDS:
    steps[kind] = [chain(kind, T, max) for T in lengths]
    paths[kind] = [chain(kind, T, min, first_only=True) for T in lengths]
    print(f"T = {lengths}: {kind}, steps {steps[kind]}, paths {paths[kind]}")
layers = [(T - 1).bit_length() for T in lengths]
assert steps["recurrent"] == paths["recurrent"] == lengths
assert steps["convolutional"] == paths["convolutional"] == layers
assert steps["self-attention"] == paths["self-attention"] == [1] * len(lengths)

# %% [markdown]
# The path lengths are those of Table 1: O(T), O(log T) and O(1). So are the steps,
# except that the paper counts one convolutional layer, O(1), and we count all
# that connect the tokens. In self-attention *all* paths are equally long.
#
# Fewer steps are not less work. Attention computes about $T^2 D$ products for
# scores and as many for outputs, the recurrent layer about $T D^2$. But a
# processor with many cores computes the products of one step at the same time.
# The times below depend on machine and backend, so nothing is asserted.


# %%
def self_attention(T, D):
    """Returns a model from (B, T, D) to (B, T, D)."""
    x = keras.Input((T, D))
    return keras.Model(x, MultiHeadAttention(num_heads=1, key_dim=D)(x, x))


x = np.zeros((1, lengths[-1], 64), "float32")
lstm = keras.Sequential([keras.layers.LSTM(64, return_sequences=True)])
for model in lstm, self_attention(*x.shape[1:]):
    seconds = []
    for _ in range(6):  # the first pass compiles
        start = time.perf_counter()
        model.predict_on_batch(x)
        seconds.append(time.perf_counter() - start)
    print(f"{model.layers[-1].name}: {1e3 * np.median(seconds[1:]):.1f} ms")

# %% [markdown]
# ## Gradients
#
# In training, gradients pass the same path. For a linear recurrent network
# $h_t = h_{t-1} U + x_t W$ with T tokens, the gradient of the last output in
# direction a, at a distance of d tokens, is
#
# $$\frac{\partial\, (a \cdot h_{T-1})}{\partial x_{T-1-d}}
# = a\, (U^\top)^d\, W^\top.$$
#
# Every step multiplies by U. If W is orthogonal, U is orthogonal times a gain
# g, and a has norm 1, then the norm of the gradient is exactly $g^d$: it
# vanishes for g < 1 and explodes for g > 1. A tanh after each step, whose
# derivative is at most 1, can only make it smaller.
#
# One step of gradient descent with learning rate 1 moves a weight from 0 to minus
# its gradient, on every backend. We add such weights to the inputs.


# %%
def input_gradients(layer, x, a):
    """Returns d (a . layer(x)[:, -1]) / dx, of shape (B, T, D)."""
    B, T, D = x.shape
    layer.trainable = False
    offset = keras.layers.Embedding(B * T, D, embeddings_initializer="zeros")
    inputs = keras.Input((T, D)), keras.Input((T,), dtype="int32")
    h = layer(inputs[0] + offset(inputs[1]))
    model = keras.Model(inputs, h[:, -1])
    model.compile(
        keras.optimizers.SGD(1.0),
        lambda a, h: keras.ops.sum(a * h, axis=-1),  # Keras averages over B
    )
    model.train_on_batch((x, np.arange(B * T, dtype="int32").reshape(B, T)), a)
    gradients = -B * keras.ops.convert_to_numpy(offset.embeddings)
    return gradients.reshape(B, T, D)


# %% [markdown]
# The LSTM (Hochreiter and Schmidhuber 1997,
# <https://doi.org/10.1162/neco.1997.9.8.1735>) has a memory that its forget
# gate multiplies by a number between 0 and 1 at each step. We compare the
# networks before training.

# %%
B, T, D = (32, 16, 8) if QUICK else (32, 64, 32)
orthogonal = keras.initializers.Orthogonal
networks = {
    f"linear RNN, g = {g}": keras.layers.SimpleRNN(
        D,
        activation="linear",
        kernel_initializer=orthogonal(seed=1),
        recurrent_initializer=orthogonal(g, seed=2),
        return_sequences=True,
    )
    for g in (0.9, 1.1)
}
networks["LSTM"] = keras.layers.LSTM(D, return_sequences=True)
networks["self-attention"] = self_attention(T, D)

# %% alt="Gradient norms over distance on a logarithmic scale: those of the linear RNNs are straight lines that fall and rise, the LSTM falls, self-attention is flat"
x = random.normal(size=(B, T, D)).astype("float32")
a = random.normal(size=(B, D)).astype("float32")
a /= np.linalg.norm(a, axis=-1, keepdims=True)
norms, d = {}, np.arange(T)
figure, axis = plt.subplots(figsize=(6, 3.2), layout="constrained")
for name, layer in networks.items():
    gradients = input_gradients(layer, x, a)
    norms[name] = np.linalg.norm(gradients, axis=-1).mean(0)[::-1]
    axis.plot(d, norms[name], label=name)
axis.set(xlabel="distance d", ylabel="norm of the gradient", yscale="log")
axis.legend()
for g in (0.9, 1.1):
    np.testing.assert_allclose(norms[f"linear RNN, g = {g}"], g**d, rtol=1e-3)
level = norms["self-attention"][1:]
assert 0.4 < level[:5].mean() / level[-5:].mean() < 2.5  # no trend
assert norms["LSTM"][-1] < (0.1 if QUICK else 1e-4) * norms["LSTM"][1]
plt.show()

# %% [markdown]
# With its default initialization, the LSTM's gradient vanishes too. Exploding
# gradients can be clipped; vanished ones cannot be restored. The gradient of
# self-attention is divided among T tokens, but has no trend over the distance.
#
# ## What attention improves, and what remains
#
# | topic | result | measured in |
# | --- | --- | --- |
# | performance and bottleneck | long sentences keep their BLEU | [Recurrent seq2seq](../recurrent/index.md) |
# | gradients | no trend over the distance, before training | above |
# | forgetting | recall is learned in fewer steps, in one task | [One word, two senses](../word_senses/index.md#memory) |
# | speed | all positions of a sequence at once in training | above |
# | interpretability | weights show alignments, with limits | [Looking inside](../looking_inside/index.md) |
#
# In *A woman is throwing a frisbee in a park*, the model of Xu et al. attends to
# the disc when it predicts *frisbee*; [Show, attend and
# tell](../captions/index.md) draws such maps. A *recurrent* network with
# attention is still sequential and slow. Self-attention is parallel in training,
# but generation needs one step per token, a layer computes $T^2$ weights, and
# the order of tokens is lost without [positions](../positions/index.md).
#
# ## Summary
#
# - Attention is a weighted sum of values, trained jointly with the model.
# - A recurrent layer needs T sequential steps, self-attention one.
# - All paths in self-attention have length 1. Before training, gradients show no
#   trend over the distance.
# - All models of the table from 2017 on are Transformers.
#
# ## Exercises
#
# **1.** Complete: Attention saves ... . It is trained ... . In translation it
# learns the ... between source and target. The context vector is a weighted
# sum of ... . Self-attention looks at other words as it ... a word. *Este gato
# es muy* ... .
#
# <details markdown>
# <summary>Answer</summary>
#
# Resources (energy); end-to-end, by back-propagation; alignment; values;
# encodes; *grande*.
#
# </details>
#
# **2.** Self-attention without positions reads *dog bites man* and *man bites
# dog*. How do its outputs differ?
#
# <details markdown>
# <summary>Answer</summary>
#
# They are the same vectors in another order, a "bag of words":
#
# ```python
# x = random.normal(size=(1, 3, 8)).astype("float32")
# layer = self_attention(3, 8)
# h, swapped = (layer.predict_on_batch(v) for v in (x, x[:, ::-1].copy()))
# np.testing.assert_allclose(swapped, h[:, ::-1], atol=1e-5)
# ```
#
# </details>
#
# **Next**: [One word, two senses](../word_senses/index.md) trains a model that
# tells two meanings of *bank* apart, and tests what networks remember.
