# %% [markdown]
# # GPT from an empty file to samples
#
# A language model predicts the next token of a text. In this tutorial you write
# GPT in 40 lines of NumPy, train the library's GPT on a generated text, compare
# it with a model that only counts, and sample from it.
#
# ![A text that the model has not seen; the redder a character, the higher its
# loss](gpt-4.png)
#
# **You will learn** how n-gram models work and where they fail, how GPT is
# built, how to verify that it cannot see the future, what its context is good
# for, and what temperature and top-p change.
#
# **Prerequisites**: [Encoder and decoder, block by block](
# ../blocks/index.md). **Time**: about 2 minutes on one CPU core.
#
# **Published result**: GPT (Radford et al. 2018) has 117 million parameters;
# GPT-2 (Radford et al. 2019) has up to 1.5 billion and was trained on 8 million
# web pages. The model below has 0.35 million and reads 0.4 million characters
# of generated text; its loss of 0.537 nats per character is not comparable. On
# tiny Shakespeare, a GPT of this library with 1.2 million parameters reaches
# [1.469 nats per character](../../results/language_modeling.md) in 42 minutes;
# nanoGPT reports 1.4697 for 10.7 million parameters.

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

import keras
import matplotlib.pyplot as plt
import numpy as np

from keras_attn import datasets, training
from keras_attn.decoding import Sampling
from keras_attn.layers import RotaryPosition
from keras_attn.models import GPT
from keras_attn.text import token_blocks

keras.utils.set_random_seed(1)
print(f"Keras {keras.__version__} on {keras.backend.backend()}")

# %% [markdown]
# ## Text
#
# `make_documents` generates short stories of two to four sentences. A token is
# a character here. Real models use subwords, which make sequences shorter and
# the vocabulary larger.


# %%
def make_text(n, split):
    """Returns n documents as one text, a document in each line."""
    documents = datasets.make_documents(n, seed=1, split=split)
    return "".join(" ".join(sentences) + "\n" for sentences in documents)


text = make_text(200 if QUICK else 3000, "train")
test_text = make_text(20 if QUICK else 150, "validation")
characters = sorted(set(text + test_text))
V = len(characters)
numbers = {character: i for i, character in enumerate(characters)}


def encode(text):
    """Returns the ids of characters, int32."""
    return np.array([numbers[character] for character in text], "int32")


def decode(ids):
    """Returns the characters of ids."""
    return "".join(characters[i] for i in ids)


print(
    f"{len(text):,} characters to train on, {len(test_text):,} to test, V = {V}"
)
print(text[:250])

# %% [markdown]
# ## Counting
#
# The simplest language model counts how often each character a follows the
# previous n - 1 characters r. Rare contexts are unreliable, so the counts are
# mixed with those of the context r', which is r without its first character
# (Witten and Bell 1991). With #(r) for the number of times r occurs, and f(r)
# for the number of different characters that follow it,
#
# $$p_n(a \mid r) = \frac{\#(ra) + f(r)\, p_{n-1}(a \mid r')}{\#(r) + f(r)},
# \qquad p_0 = \frac{1}{V}$$
#
# The loss is the mean of $-\log p(x_i \mid x_{<i})$, in nats per character.


# %%
class NGrams:
    """Smoothed n-gram model of characters."""

    def __init__(self, text, n):
        self.n = n
        self.grams = collections.Counter(
            text[i - size : i]
            for size in range(1, n + 1)
            for i in range(size, len(text) + 1)
        )
        self.totals, self.followers = (
            collections.Counter(),
            collections.Counter(),
        )
        for gram, count in self.grams.items():
            self.totals[gram[:-1]] += count
            self.followers[gram[:-1]] += 1

    def probabilities(self, context, a):
        """Returns p_0, ..., p_n of a character after a context."""
        p = [1 / V]
        for size in range(self.n):
            r = context[len(context) - size :]
            count = self.grams[r + a] + self.followers[r] * p[-1]
            total = self.totals[r] + self.followers[r]
            p.append(count / total if total else p[-1])
        return p


# %%
ngrams = NGrams(text, n=6)
losses = -np.log(
    [
        ngrams.probabilities(test_text[max(0, i - 5) : i], test_text[i])
        for i in range(1, len(test_text))
    ]
).mean(0)
for n, loss in enumerate(losses):
    print(f"{n}-gram: {loss:.3f} nats per character")
best_n = int(losses.argmin())
if not QUICK:
    assert losses[3] < losses[2] < losses[1] < losses[0]
    assert losses[5] - losses[6] < (losses[2] - losses[3]) / 2

# %% [markdown]
# From the 2-gram to the 3-gram model, the loss falls by 0.79, from the 5-gram
# to the 6-gram by 0.05 only, because long contexts are rare. The counts of a
# context are not used for similar contexts, and most words of the previous
# sentence are outside of the context.
#
# ## Model
#
# GPT is the decoder of the Transformer without cross-attention. With token
# embeddings E (V, D), position embeddings PE (T, D) and pre-norm blocks as in
# GPT-2,
#
# $$h = E[x] + \mathrm{PE}, \qquad
# h \leftarrow h + \mathrm{Attention}(\mathrm{LN}(h)),
# \quad h \leftarrow h + \mathrm{gelu}(\mathrm{LN}(h) W_1 + b_1) W_2 + b_2,$$
#
# $$\mathrm{logits} = \mathrm{LN}(h)\, E^\top$$
#
# The output uses the same table E as the input. PE is a learned table, one row
# per position, as in both papers. The alternative, rotary positions (Su et al.
# 2021, <https://arxiv.org/abs/2104.09864>), rotates queries and keys by angles
# that depend on the position; we compare both below.

# %%
T, D, layers, heads = 96, 96, 3, 4


def make_model(rotary=False):
    """Returns an untrained GPT."""
    if rotary:
        positions = {"attention_position": RotaryPosition()}
        positions |= {"position_embedding": None, "max_sequence_length": None}
    else:
        positions = {"max_sequence_length": T}
    return GPT(
        V,
        layers,
        heads,
        D,
        dropout=0.0,
        attention_dropout=0.0,
        # All ids are characters: none is padding, starts or ends a text.
        pad_id=None,
        start_id=None,
        end_id=None,
        **positions,
    )


model = make_model()
print(f"{model.count_params():,} parameters")

# %% [markdown]
# ### The same in NumPy
#
# The functions are the parts of the equations. `w` contains the weights of the
# model by name.


# %%
def norm(x, w, name):
    """Returns the layer norm of x, (T, D)."""
    x = x - x.mean(-1, keepdims=True)
    x = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5)
    return x * w[f"{name}/gamma"] + w[f"{name}/beta"]


def attention(x, w, name):
    """Returns causal multi-head attention of x, (T, D)."""
    q, k, v = (
        np.einsum("td,dnh->nth", x, w[f"{name}/{part}/kernel"])
        + w[f"{name}/{part}/bias"][:, None]
        for part in ("query", "key", "value")
    )
    scores = q @ k.swapaxes(1, 2) / q.shape[-1] ** 0.5  # (N, T, T)
    scores[:, np.triu(np.ones(scores.shape[1:], bool), 1)] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    output = f"{name}/attention_output"
    x = np.einsum("nth,nhd->td", weights @ v, w[f"{output}/kernel"])
    return x + w[f"{output}/bias"]


def feed_forward(x, w, name):
    """Returns gelu(x W1 + b1) W2 + b2, gelu with the tanh of GPT-2."""
    x = x @ w[f"{name}/inner/kernel"] + w[f"{name}/inner/bias"]
    x = x / 2 * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3)))
    return x @ w[f"{name}/outer/kernel"] + w[f"{name}/outer/bias"]


def gpt(ids, w):
    """Returns the logits (T, V) of ids (T,)."""
    E = w["token_embedding/table/embeddings"]
    h = E[ids] + w["positions/table/embeddings"][: len(ids)]
    for block in (f"block_{i}" for i in range(layers)):
        x = norm(h, w, f"{block}/around_attention/norm")
        h = h + attention(x, w, f"{block}/self_attention")
        x = norm(h, w, f"{block}/around_feed_forward/norm")
        h = h + feed_forward(x, w, f"{block}/feed_forward")
    return norm(h, w, "norm") @ E.T


w = {w.path: keras.ops.convert_to_numpy(w) for w in model.weights}
ids = encode(test_text[:40])
logits = keras.ops.convert_to_numpy(model(ids[None]))[0]
assert logits.shape == (40, V)
np.testing.assert_allclose(gpt(ids, w), logits, atol=1e-4)
print("The logits of NumPy and of the library agree.")

# %% [markdown]
# ### The model cannot see the future
#
# If the logits at a position depended on later characters, the model could copy
# what it should predict. We change one character at a time, and record which
# logits change.

# %% alt="An upper triangle: a changed character changes its own logits and all later ones"
changed = np.repeat(ids[None], 41, axis=0)  # the last row stays unchanged
changed[np.arange(40), np.arange(40)] = (ids + 1) % V
logits = keras.ops.convert_to_numpy(model(changed))
moved = np.abs(logits[:-1] - logits[-1]).max(-1) > 1e-6  # above rounding
assert (moved == np.triu(np.ones((40, 40), bool))).all()
figure, axis = plt.subplots(figsize=(3.4, 3.4), layout="constrained")
axis.imshow(~moved, cmap="cividis")
axis.set(xlabel="position of the logits", ylabel="changed character")
plt.show()

# %% [markdown]
# ## Training
#
# A batch has B blocks of T characters, drawn at random from the text. The
# labels are the same characters shifted by one, so each block trains T
# predictions at once, with contexts of 1 to T characters:
#
# ![GPT predicts each of six characters from those before it; the labels are the
# input shifted by one](../../diagrams/next_token_labels.svg)
#
# We use AdamW with warmup and cosine decay, and train one model with each kind
# of positions.

# %%
B, epochs = 16, 1 if QUICK else 3
blocks = token_blocks(encode(text), T, B, seed=1)
inputs, labels = blocks[0]
assert inputs.shape == labels.shape == (B, T)
assert (inputs[:, 1:] == labels[:, :-1]).all()


def fit(model):
    """Trains a model; returns its `TrainingProgress`."""
    steps = epochs * len(blocks)
    schedule = keras.optimizers.schedules.CosineDecay(
        0.0, steps, warmup_target=4e-3, warmup_steps=steps // 10
    )
    model.compile(
        keras.optimizers.AdamW(schedule, beta_2=0.99, global_clipnorm=1.0),
        training.SequenceCrossentropy(pad_id=-1),
    )
    progress = training.TrainingProgress(tokens_per_epoch=len(blocks) * B * T)
    model.fit(
        blocks, epochs=epochs, shuffle=False, callbacks=[progress], verbose=0
    )
    return progress


keras.utils.set_random_seed(1)
rotary = make_model(rotary=True)
curves = {"learned": fit(model).losses, "rotary": fit(rotary).losses}

# %% [markdown]
# `losses_of` computes the loss of every character of a text, read in blocks of
# T characters: the first prediction of a block has one character of context.


# %%
def losses_of(model, text):
    """Returns the losses (blocks, T) of the characters of a text."""
    ids = encode(text)
    number = (len(ids) - 1) // T
    inputs = ids[: number * T].reshape(number, T)
    labels = ids[1 : number * T + 1].reshape(number, T)
    logits = keras.ops.convert_to_numpy(model.predict(inputs, verbose=0))
    logits = logits - logits.max(-1, keepdims=True)
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    return -np.take_along_axis(log_p, labels[..., None], -1)[..., 0]


found = {
    "learned": losses_of(model, test_text),
    "rotary": losses_of(rotary, test_text),
}
print(f"{best_n}-gram: {losses.min():.3f} nats per character")
for name, values in found.items():
    last = values[:, T // 2 :].mean()
    print(
        f"GPT, {name} positions: {values.mean():.3f}; with at least {T // 2} "
        f"characters of context: {last:.3f}"
    )

# %% tags=["hide-input"] alt="Left: training losses of both models fall to about the loss of the best n-gram model. Right: the test loss falls with the position in the block, from above to below that of the n-gram model"
figure, (left, right) = plt.subplots(
    1, 2, figsize=(9.5, 3.4), layout="constrained"
)
for name, values in curves.items():
    width = max(1, len(values) // 50)
    smooth = np.convolve(values, np.ones(width) / width, "valid")
    left.plot(np.arange(len(smooth)) + width, smooth, label=name)
for n in (2, 4, best_n):
    left.axhline(losses[n], color="0.6", linestyle=":")
    left.text(len(smooth), losses[n], f"{n}-gram", ha="right", va="bottom")
left.set(xlabel="step", ylabel="training loss (nats)", ylim=(0, 3))
left.legend(title="positions")
for name, values in found.items():
    right.plot(values.mean(0), label=name)
right.axhline(losses.min(), color="0.6", linestyle=":", label=f"{best_n}-gram")
right.set(xlabel="position in the block", ylabel="test loss (nats)")
right.set_ylim(0, None)
right.legend()
plt.show()

# %% [markdown]
# Over all positions, GPT with learned positions is hardly better than the
# 6-gram model. The right picture shows the effect of the context. At the start
# of a block, GPT sees fewer characters than the n-gram model, and is worse. In
# the last 32 positions of a block it is better on average: it can use words of
# earlier sentences, which the n-gram model does not see.

# %%
if not QUICK:
    for values in found.values():
        assert values[:, 0].mean() > losses.min()
        assert values[:, -32:].mean() < losses.min()

# %% [markdown]
# ### Learned positions
#
# Nothing in the model says which rows of PE belong to neighboring positions.
# After training, vectors of neighbors are more similar than those of distant
# positions.

# %% alt="Cosine similarities of the learned position vectors: the highest values lie on and near the diagonal, negative ones in the far corners"
PE = keras.ops.convert_to_numpy(
    next(w for w in model.weights if w.path == "positions/table/embeddings")
)
unit = PE / np.linalg.norm(PE, axis=1, keepdims=True)
similarity = unit @ unit.T
figure, axis = plt.subplots(figsize=(4, 3.4), layout="constrained")
image = axis.imshow(similarity, cmap="cividis")
axis.set(xlabel="position", ylabel="position")
figure.colorbar(image, label="cosine similarity")
near = np.diagonal(similarity, 1).mean()
far = np.diagonal(similarity, T // 2).mean()
print(f"neighbors: {near:.2f}; {T // 2} positions apart: {far:.2f}")
if not QUICK:
    assert near > far
plt.show()

# %% [markdown]
# ## What is hard to predict

# %% tags=["hide-input"] alt="Test text; the redder a character, the higher its loss: mostly red at the beginnings of words and white inside"
values = found["learned"].ravel()[: 6 * T]
shown = test_text[1 : len(values) + 1].replace("\n", "¶")
figure, axis = plt.subplots(figsize=(10, 2.4), layout="constrained")
axis.imshow(values.reshape(6, T), cmap="Reds", vmin=0, vmax=4, aspect="auto")
for i, character in enumerate(shown):
    axis.text(i % T, i // T, character, ha="center", va="center", fontsize=7)
axis.set_axis_off()
plt.show()

# %%
starts = np.array([c in " \n" for c in test_text[: found["learned"].size]])
values = found["learned"].ravel()
print(f"first characters of words: {values[starts].mean():.2f} nats")
print(f"all others: {values[~starts].mean():.2f} nats")
if not QUICK:
    assert values[starts].mean() > 3 * values[~starts].mean()

# %% [markdown]
# The first character of a word is hard to predict, because many words can
# follow. The other characters have about a ninth of its loss.
#
# ## Sampling
#
# Always taking the most probable character gives the same text every time.
# Sampling from the probabilities sometimes takes one of the many improbable
# characters. Two parameters control this: a **temperature** $\tau$, and
# **top-p**, which keeps only the smallest set of most probable characters whose
# total probability reaches a threshold ([Decoding](
# ../decoding/index.md#sampling)):
#
# $$p_i \propto \exp(\mathrm{logits}_i / \tau)$$

# %%
known = set(text.split())
prompt = encode("\n")[None]
shared = {"num_return_sequences": 32, "seed": 1}
settings = {
    "temperature 0.3": Sampling(0.3, **shared),
    "temperature 1": Sampling(1.0, **shared),
    "temperature 1.5": Sampling(1.5, **shared),
    "temperature 1.5, top-p 0.9": Sampling(1.5, top_p=0.9, **shared),
}
existing, different = {}, {}
for name, strategy in settings.items():
    tokens = model.generate(prompt, T - 2, strategy).tokens[0]
    samples = [decode(row) for row in tokens]
    # The last word of a sample may be incomplete.
    words = [word for sample in samples for word in sample.split()[:-1]]
    existing[name] = np.mean([word in known for word in words])
    different[name] = len(set(words)) / len(words)
    print(f"{name}: {existing[name]:.0%} of the words exist")
    print(f"    {samples[0].strip().splitlines()[0]}")
if not QUICK:
    hot = existing["temperature 1.5"]
    assert existing["temperature 0.3"] > max(0.95, hot)
    assert existing["temperature 1.5, top-p 0.9"] > hot
    assert different["temperature 0.3"] < different["temperature 1"]

# %% [markdown]
# A low temperature gives existing words and repeats them more often. A high
# temperature gives more words that do not exist, because one improbable
# character is enough. Top-p removes such characters: few remain where
# the model is certain, and many where it is not.
#
# ### Try it
#
# Below, a GPT with two layers of four heads runs in the page. It was trained on
# the text of this project; its loss is 1.295 nats per character of paragraphs
# that were held out. Its weights are int8 numbers with one scale per output
# channel. The table shows the distribution of the next character, and each small
# picture the weights of one head: queries are rows, keys are columns. The heads
# of the first layer look at the last few characters, those of the second
# further back.
#
# ![Weights of one head for five tokens: each row is a distribution over the
# keys up to its own position](../../diagrams/weights_of_a_head.svg)
#
# <!-- figure: character_gpt -->
#
# ## Summary
#
# - A language model predicts the next token; the loss is in nats per token.
# - n-grams are a strong baseline with short contexts and cannot use long ones.
# - GPT is a decoder without cross-attention; its output uses the embeddings.
# - The causal mask makes every position a training example.
# - Temperature and top-p trade correctness for variety.
#
# ## Exercises
#
# **1.** Fill in the gap. GPT is a ... Transformer. How do GPT-2 and GPT differ?
#
# <details markdown>
# <summary>Answer</summary>
#
# Left-to-right (unidirectional). GPT-2 is pre-norm, with a final layer norm. It
# has up to 1.5 billion parameters instead of 117 million, and was trained on 8
# million web pages: more than ten times the parameters and the data of GPT.
#
# </details>
#
# **2.** How many predictions does a batch train? How many entries of the
# (T, T) weights of one head can be positive?
#
# <details markdown>
# <summary>Answer</summary>
#
# B T; T (T + 1) / 2.
#
# ```python
# print(B * T, T * (T + 1) // 2)
# ```
#
# </details>
#
# **3.** How many parameters does sharing the table E save here, and in GPT-2
# small, with 50,257 tokens and width 768?
#
# <details markdown>
# <summary>Answer</summary>
#
# V D: a few thousand here; 38.6 million in GPT-2, almost a third of its 124
# million.
#
# ```python
# print(V * D, 50257 * 768)
# ```
#
# </details>
#
# **4.** Why can the model with learned positions not read more than T
# characters, while the rotary model can?
#
# <details markdown>
# <summary>Answer</summary>
#
# PE has T rows, and there is none for position T. A rotation is defined for all
# positions, although the model has not been trained with distances above T.
#
# </details>
#
# **Next**: [Beyond the segment: Transformer-XL](../transformer_xl/index.md)
# gives a language model a memory of the text before its block.
