# %% [markdown]
# # Why attention?
#
# Attention replaces recurrent networks for three reasons: they compute one token
# after the other, their gradients vanish or explode, and they forget what is far
# away. In this tutorial you measure each of these claims, and train a small
# model that gives the word *bank* one vector at a river and another one in a
# street:
#
# ![Vectors of the word bank in two dimensions: river sentences and street
# sentences are two separate groups](why_attention-3.png)
#
# **You will learn** for which tasks attention was invented, how models
# developed from seq2seq to GPT-3, how many sequential steps a layer needs, how
# long the path between two tokens is, what this does to gradients and to
# memory, and what attention does not solve.
#
# **Prerequisites**: Python, NumPy, and what an RNN is. Attention itself is
# built in the next tutorial, [Attention from its first
# forms](../first_forms/index.md). **Time**: about 2 minutes on one CPU core.
#
# **Published result**: Table 1 of *Attention Is All You Need* (Vaswani et al.
# 2017, <https://arxiv.org/abs/1706.03762>) lists sequential operations and path
# lengths of three kinds of layers, up to constant factors. You will count both
# exactly. The experiment on memory is of the kind of Bengio et al. 1994
# (<https://doi.org/10.1109/72.279181>), on sequences of 32 tokens; its
# accuracies cannot be compared with theirs.

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

import itertools
import time

import keras
import matplotlib.pyplot as plt
import numpy as np

from keras_attn import datasets, training
from keras_attn.layers import MultiHeadAttention
from keras_attn.models import Bert, BertPretrainer
from keras_attn.text import mask_tokens

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
# M is a million, B a billion. The table lists a large model of each paper. The
# size of GPT is that of the equivalent model in the GPT-2 paper.
#
# | year | model | parameters | data | idea | source |
# | --- | --- | ---: | --- | --- | --- |
# | 2014 | seq2seq | 384 M | 12 M sentence pairs | an LSTM encodes, an LSTM decodes | <https://arxiv.org/abs/1409.3215> |
# | 2014 | RNNsearch | not stated | WMT 2014, 348 M words | attention instead of one vector | <https://arxiv.org/abs/1409.0473> |
# | 2017 | Transformer | 213 M | 4.5 M sentence pairs | attention only | <https://arxiv.org/abs/1706.03762> |
# | 2018 | GPT | 117 M | 7,000 books | pre-train a decoder, then fine-tune | [paper](https://cdn.openai.com/research-covers/language-unsupervised/language_understanding_paper.pdf) |
# | 2018 | BERT | 340 M | 3.3 B words | predict masked words from both sides | <https://arxiv.org/abs/1810.04805> |
# | 2019 | Transformer-XL | 257 M | WikiText-103, 103 M words | a memory of earlier segments | <https://arxiv.org/abs/1901.02860> |
# | 2019 | GPT-2 | 1.5 B | 8 M web pages | more than ten times GPT in parameters and data; no fine-tuning | [paper](https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf) |
# | 2019 | XLNet | as BERT | 33 B tokens | all orders of prediction | <https://arxiv.org/abs/1906.08237> |
# | 2019 | T5 | 11 B | 750 GB of web text | every task as text to text | <https://arxiv.org/abs/1910.10683> |
# | 2020 | GPT-3 | 175 B | 300 B tokens seen | tasks from examples in the prompt | <https://arxiv.org/abs/2005.14165> |
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
# $h_t = U h_{t-1} + W x_t$ with T tokens, the gradient of the last output in
# direction u, at a distance of d tokens, is
#
# $$\frac{\partial\, (u \cdot h_{T-1})}{\partial x_{T-1-d}}
# = W^\top (U^\top)^d\, u.$$
#
# Every step multiplies by U. If W is orthogonal, U is orthogonal times a gain
# g, and u has norm 1, then the norm of the gradient is exactly $g^d$: it
# vanishes for g < 1 and explodes for g > 1. A tanh after each step, whose
# derivative is at most 1, can only make it smaller.
#
# One step of gradient descent with learning rate 1 moves a weight from 0 to minus
# its gradient, on every backend. We add such weights to the inputs.


# %%
def input_gradients(layer, x, u):
    """Returns d (u . layer(x)[:, -1]) / dx, of shape (B, T, D)."""
    B, T, D = x.shape
    layer.trainable = False
    offset = keras.layers.Embedding(B * T, D, embeddings_initializer="zeros")
    inputs = keras.Input((T, D)), keras.Input((T,), dtype="int32")
    h = layer(inputs[0] + offset(inputs[1]))
    model = keras.Model(inputs, h[:, -1])
    model.compile(
        keras.optimizers.SGD(1.0),
        lambda u, h: keras.ops.sum(u * h, axis=-1),  # Keras averages over B
    )
    model.train_on_batch((x, np.arange(B * T, dtype="int32").reshape(B, T)), u)
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
u = random.normal(size=(B, D)).astype("float32")
u /= np.linalg.norm(u, axis=-1, keepdims=True)
norms, d = {}, np.arange(T)
figure, axis = plt.subplots(figsize=(6, 3.2), layout="constrained")
for name, layer in networks.items():
    gradients = input_gradients(layer, x, u)
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
# ## Memory
#
# Does a network learn to keep information over many tokens? A sequence of
# `make_recall_task` has 32 tokens. One is a symbol, at a random position, and
# the last one is a query; the others are distractors. The network must answer
# which of eight symbols it was.

# %%
T, D, B = 32, 64, 64
blocks, block = (1, B) if QUICK else (10, 20 * B)  # 20 steps between tests
seeds = (1,) if QUICK else (1, 2, 3)
train, test = (
    datasets.make_recall_task(n, length=T, seed=1, split=split)
    for n, split in ((blocks * block, "train"), (1000, "test"))
)
print(test.tokens[0], "->", test.answers[0])


def recall_model(kind):
    """Returns a model from ids (B, T) to logits of the symbols (B, 8)."""
    inputs = keras.Input((T,), dtype="int32")
    x = keras.layers.Embedding(39, D)(inputs)  # the number of ids
    if kind == "self-attention":
        h = self_attention(T, D)(x)[:, -1]
    else:
        layer = keras.layers.LSTM if kind == "LSTM" else keras.layers.SimpleRNN
        h = layer(D)(x)
    model = keras.Model(inputs, keras.layers.Dense(8)(h))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(3e-3, clipnorm=1.0), loss)
    return model


# %% [markdown]
# Three networks of equal width are trained on the same 12,800 sequences, with
# three seeds each and the same learning rate. Nothing was tuned.

# %%
looks = {"self-attention": "k^-", "LSTM": "C0s--", "tanh RNN": "C1o:"}
accuracies = {}  # by kind and seed, after each block
for kind, seed in itertools.product(looks, seeds):
    keras.utils.set_random_seed(seed)
    model, tests = recall_model(kind), []
    for i in range(blocks):
        rows = slice(i * block, (i + 1) * block)
        x, y = train.tokens[rows], train.answers[rows] - 4  # ids start at 4
        model.fit(x, y, batch_size=B, shuffle=False, verbose=0)
        logits = model.predict(test.tokens, batch_size=500, verbose=0)
        tests.append(np.mean(logits.argmax(-1) == test.answers - 4))
    accuracies[kind, seed] = np.array(tests)
    print(f"{kind:14} seed {seed}", np.round(tests, 2))

# %% tags=["hide-input"] alt="Accuracy over training steps, three curves per network: self-attention reaches 1 first, then the LSTM; the tanh RNN stays below 0.8"
figure, axis = plt.subplots(figsize=(6, 3.2), layout="constrained")
taken = (1 + np.arange(blocks)) * (block // B)
for (kind, seed), accuracy in accuracies.items():
    label = kind if seed == 1 else None
    axis.plot(taken, accuracy, looks[kind], label=label, markersize=4)
axis.set(xlabel="training steps", ylabel="accuracy", ylim=(0, 1.05))
figure.legend(loc="outside right upper")
plt.show()

# %%
if not QUICK:
    for seed in seeds:
        fast, slow, tanh = (accuracies[kind, seed] for kind in looks)
        print("after 60 and 200 steps:", fast[[2, 9]], slow[[2, 9]])
        assert fast[2] > slow[2] + 0.05 and min(fast[9], slow[9]) > 0.95
        assert tanh.max() < 0.8

# %% [markdown]
# With each of three seeds, self-attention is ahead of the LSTM after 60 steps,
# and both exceed 95 % after 200. The tanh RNN stays below 80 %. With other
# lengths or more training, the differences may change. The task favors attention,
# because the order of the tokens is irrelevant.
#
# *Catastrophic forgetting* is something else: a network that is trained on a
# new task loses an old one. It concerns Transformers too, and
# [Fine-tuning](../fine_tuning/index.md) measures it.
#
# ## One word, two senses
#
# *I arrived at the bank after crossing the river* and *... the street* differ
# in their last word only, which decides the meaning of *bank* (the example is
# from Google's [announcement of the
# Transformer](https://research.google/blog/transformer-a-novel-neural-network-architecture-for-language-understanding/)).
# We generate such sentences. In those with a river, a stream or a canal,
# *shore* may replace *bank*, and in those with a street, a road or an avenue,
# *office* may. The former may be *deep* and the latter *busy*.

# %%
SENSES = {
    "river": ("shore", "deep", ["river", "stream", "canal"]),
    "street": ("office", "busy", ["street", "road", "avenue"]),
}
data = []  # (words, sense)
for sense, (substitute, adjective, ends) in SENSES.items():
    parts = (
        ["i", "we", "you", "they"],
        ["arrived", "waited", "met", "rested"],
        [f"at the {noun} after" for noun in ("bank", substitute)],
        ["", "slowly", "quickly"],
        [f"crossing the {word}" for word in ("", "wide", adjective)],
        ends,
    )
    data += [(" ".join(p).split(), sense) for p in itertools.product(*parts)]
data = [data[i] for i in random.permutation(len(data))]
names = ["[PAD]", "[MASK]", *sorted({w for words, _ in data for w in words})]
V, T = len(names), max(len(words) for words, _ in data)


def to_ids(words):
    """Returns the ids of a sentence, with padding, (T,)."""
    return [names.index(word) for word in words] + [0] * (T - len(words))


ids = np.array([to_ids(words) for words, _ in data], "int32")
test, train = ids[:300], ids[300:]
print(len(train), "training sentences, such as:", *data[-1][0])

# %% [markdown]
# The model is a small BERT. We compare its vectors of *bank*, after the last
# block, in held-out sentences. Before the first block they are all equal. Cosines
# are computed after subtracting the mean vector.

# %%
encoder = Bert(
    V,
    num_layers=2,
    num_heads=2,
    hidden_dim=32,
    intermediate_dim=64,
    dropout=0.0,
    attention_dropout=0.0,
    normalize_first=True,
    max_sequence_length=T,
    pooler=False,
    initializer=keras.initializers.TruncatedNormal(stddev=0.1),
)
has_bank = test[:, 4] == names.index("bank")
senses = np.array([sense for _, sense in data[:300]])[has_bank]


def compare_senses():
    """Returns the vectors of bank; mean cosines within and between senses."""
    h = encoder.predict(test[has_bank], verbose=0)["sequence_output"][:, 4]
    h -= h.mean(0)
    unit = h / np.linalg.norm(h, axis=-1, keepdims=True)
    cosines, same = unit @ unit.T, senses[:, None] == senses
    return h, cosines[same].mean(), cosines[~same].mean()


print("cosines before training: {:.2f}, {:.2f}".format(*compare_senses()[1:]))

# %% [markdown]
# It is trained to predict masked words, other ones in each epoch ([BERT from
# scratch](../bert/index.md) explains this).

# %%
model = BertPretrainer(encoder, next_sentence=False)
loss = training.SequenceCrossentropy(pad_id=-1)
model.compile(keras.optimizers.Adam(3e-3), {"token_logits": loss})
for epoch in range(1 if QUICK else 15):
    rows = train[:64] if QUICK else train
    masked = mask_tokens(
        rows, V, mask_id=1, special_ids=(0, 1), mask_rate=0.25, seed=epoch
    )
    model.fit(
        {"token_ids": masked.token_ids, "masked_positions": masked.positions},
        {"token_logits": masked.labels},
        batch_size=64,
        verbose=0,
    )

h, within, between = compare_senses()
print(f"cosines after training: {within:.2f}, {between:.2f}")
if not QUICK:
    assert within > 0.3 and between < -0.3

# %% tags=["hide-input"] alt="Two principal components of the vectors of bank: river sentences and street sentences are two separate groups"
last = np.array([words[-1] for words, _ in data[:300]])[has_bank]
points = h @ np.linalg.svd(h, full_matrices=False)[2][:2].T
figure, axis = plt.subplots(figsize=(5.6, 3.4), layout="constrained")
for i, end in enumerate(SENSES["river"][2] + SENSES["street"][2]):
    x, y = points[last == end].T
    axis.scatter(x, y, s=18, c=f"C{i // 3}", marker="o^s"[i % 3], label=end)
axis.set(xlabel="first component", ylabel="second component")
figure.legend(title="after crossing the", loc="outside right upper")
plt.show()

# %% [markdown]
# Training separates the senses, although the data has no labels for them: other
# words occur near *bank*, and others replace it. This is one seed; cosines and
# the form of the groups depend on it.
#
# At which word can a network distinguish the senses? We compare the vectors of
# both sentences at each position, for this encoder and for an LSTM that reads
# from left to right (untrained; the result holds for all weights).

# %% alt="Difference between the two sentences at each word: zero for the LSTM until the last word, above zero at every word for the encoder"
start = "i arrived at the bank after crossing the".split()
pair = np.array([to_ids([*start, end]) for end in SENSES], "int32")
lstm = keras.layers.LSTM(32, return_sequences=True)
outputs = {
    "LSTM": keras.ops.convert_to_numpy(
        lstm(keras.layers.Embedding(V, 32)(pair))
    ),
    "encoder": encoder.predict_on_batch(pair)["sequence_output"],
}
figure, axis = plt.subplots(figsize=(6, 2.8), layout="constrained")
difference, n = {}, len(start) + 1
for shift, (name, h) in zip((-0.2, 0.2), outputs.items(), strict=True):
    difference[name] = np.linalg.norm(h[0] - h[1], axis=-1)[:n]
    difference[name] /= difference[name][-1]
    axis.bar(np.arange(n) + shift, difference[name], 0.4, label=name)
axis.set_xticks(range(n), [*start, "river/street"], rotation=30)
axis.set(ylabel="difference (last word: 1)")
axis.legend()
assert (difference["LSTM"][:-1] == 0).all()
assert difference["encoder"].min() > 1e-4
plt.show()

# %% [markdown]
# At *bank*, the LSTM has the same state in both sentences, and can distinguish
# them only at the last word. A second LSTM that reads from right to left would
# know the sense at *bank*, after one step per word between. Both need O(T)
# steps; self-attention needs one in each block. A causal decoder such as
# [GPT](../gpt/index.md) does not attend to later words either, but a later
# token attends to *bank* and *river* in one step.
#
# ## What attention improves, and what remains
#
# | topic | result | measured in |
# | --- | --- | --- |
# | performance and bottleneck | long sentences keep their BLEU | [Recurrent seq2seq](../recurrent/index.md) |
# | gradients | no trend over the distance, before training | above |
# | speed | all positions of a sequence at once in training | above |
# | interpretability | weights show alignments, with limits | [Looking inside](../looking_inside/index.md) |
#
# In *A woman is throwing a frisbee in a park*, the model of Xu et al. attends to
# the disc when it predicts *frisbee*; [Show, attend and
# tell](../captions/index.md) draws such maps. A *recurrent* network with
# attention is still sequential and slow. Self-attention is parallel in training,
# but generation needs one step per token, a layer computes $T^2$ weights, and
# the order of tokens is lost without [positions](../masks/index.md).
#
# ## Summary
#
# - A recurrent layer needs T sequential steps, self-attention one.
# - All paths in self-attention have length 1. Before training, gradients show no
#   trend over the distance.
# - Here, self-attention learned to recall first, then the LSTM; the tanh RNN did
#   not reach 80 %.
# - A small BERT learned to give *bank* a vector for each sense.
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
# **Next**: [Attention from its first forms](../first_forms/index.md) builds
# the first attention models and their scores.
