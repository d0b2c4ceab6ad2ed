# %% [markdown]
# # BERT from scratch
#
# BERT learns from unlabeled text: some tokens are masked, and the model
# predicts them from the tokens on both sides. In this tutorial you build its
# inputs, write the model in NumPy, pre-train it on both of its tasks, and fill
# in masked words with it.
#
# ![Predictions for the masked word of four sentences, with their
# probabilities](bert-4.png)
#
# **You will learn** how text becomes subwords and sentence pairs, how tokens
# are masked, how the three embeddings are added, how both losses are trained in
# one `fit`, and how a bidirectional model uses the words after a mask.
#
# **Prerequisites**: [Encoder and decoder, block by block](
# ../blocks/index.md). **Time**: 4 to 8 minutes on one CPU core.
#
# **Published result**: BERT-base (Devlin et al. 2019,
# <https://arxiv.org/abs/1810.04805>) has 110 million parameters and was trained
# on 3.3 billion words. The model below has 0.4 million and reads 0.2 million
# words of generated stories; of other stories, it predicts 45 % of the masked
# tokens. On 1.8 million words of real text, a model of this library [predicts
# 46 % of the masked tokens](../../results/text_classification.md).

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
import math

import keras
import matplotlib.pyplot as plt
import numpy as np

from keras_attn import datasets, training
from keras_attn.layers import RotaryPosition
from keras_attn.models import Bert, BertPretrainer
from keras_attn.text import WordPieceTokenizer, mask_tokens, sentence_pairs

keras.utils.set_random_seed(1)
to_numpy = keras.ops.convert_to_numpy
print(f"Keras {keras.__version__} on {keras.backend.backend()}")

# %% [markdown]
# ## Text and subwords
#
# The documents are generated stories of two to four sentences. WordPiece learns
# its subwords from the text: a frequent word is one token, a rare word several,
# and `##` marks tokens that continue a word.

# %%
documents = datasets.make_documents(200 if QUICK else 6000, seed=1)
test_documents = datasets.make_documents(
    20 if QUICK else 400, seed=1, split="validation"
)
tokenizer = WordPieceTokenizer.train_from_lines(
    [sentence for document in documents for sentence in document], 500
)
V = tokenizer.vocabulary_size
print(f"{len(documents):,} documents, V = {V}")
for text in documents[0][0], "unbelievable grandmothers":
    print(text, "->", *tokenizer.tokens(text))

# %% [markdown]
# ## Sentence pairs
#
# An input is `[CLS] first [SEP] second [SEP]`. For half of the pairs, the
# second part follows the first in its document; for the other half, it comes
# from another document. The second pre-training task is to tell which.

# %%
T = 40  # maximum number of tokens of an input, with [CLS] and both [SEP]


def pairs_of(documents):
    """Returns the sentence pairs of documents."""
    ids = [tokenizer.encode(document) for document in documents]
    return sentence_pairs(ids, T - 3, seed=1)


pairs, test_pairs = pairs_of(documents), pairs_of(test_documents)
row = tokenizer.pack([pairs[0].first], [pairs[0].second], max_length=T)
print(f"{len(pairs):,} pairs; the first, is_next = {pairs[0].is_next}:")
print(*(tokenizer.vocabulary[i] for i in row["token_ids"][0]))
print(*row["segment_ids"][0])
following = np.mean([pair.is_next for pair in pairs])
print(f"in {following:.0%} of the pairs, the second part follows the first")
assert 0.4 < following < 0.6

# %% [markdown]
# ## Masking
#
# 15 % of the tokens are chosen, without special tokens. Of these, 80 % become
# `[MASK]`, 10 % become a random token, and 10 % are unchanged. Texts of later
# tasks contain no `[MASK]`, so the model must also represent other tokens well.
# Other tokens are chosen every time a pair is used.
#
# ![A chosen token becomes the mask token in 80 %, a random token in 10 %, and
# stays in 10 % of the cases; BERT predicts
# it](../../diagrams/masked_tokens.svg)


# %%
def make_batch(pairs, length, random):
    """Returns inputs and labels of `BertPretrainer` for a list of pairs."""
    firsts, seconds = zip(*[(p.first, p.second) for p in pairs], strict=True)
    inputs = tokenizer.pack(
        [*firsts], [*seconds], max_length=length, pad_to_max_length=True
    )
    masked = mask_tokens(
        inputs["token_ids"],
        V,
        tokenizer.mask_id,
        tokenizer.special_ids,
        seed=random,
    )
    inputs["token_ids"] = masked.token_ids
    inputs["mask_positions"] = masked.positions
    # Class 0: the second part follows.
    follows = np.array([[int(not pair.is_next)] for pair in pairs], "int32")
    labels = {"token_logits": masked.labels, "next_sentence_logits": follows}
    return inputs, labels


for seed in range(3):
    inputs, _ = make_batch(pairs[:1], T, np.random.default_rng(seed))
    row = [tokenizer.vocabulary[i] for i in inputs["token_ids"][0]]
    print(*(token for token in row if token != "[PAD]"))

# %% alt="Bar: 81 % of the chosen tokens become the mask, 9 % a random token, 10 % are unchanged"
inputs, labels = make_batch(pairs[:2000], T, np.random.default_rng(0))
read = np.take_along_axis(inputs["token_ids"], inputs["mask_positions"], 1)
chosen = labels["token_logits"] >= 0  # the others are padding
masked = (read == tokenizer.mask_id)[chosen].mean()
unchanged = (read == labels["token_logits"])[chosen].mean()
if not QUICK:
    assert abs(masked - 0.8) < 0.02 and abs(unchanged - 0.1) < 0.02
figure, axis = plt.subplots(figsize=(6, 1.4), layout="constrained")
left = 0
for name, value in {
    "[MASK]": masked,
    "random": 1 - masked - unchanged,
    "unchanged": unchanged,
}.items():
    axis.barh([0], [value], left=left, label=f"{name} {value:.0%}")
    left += value
axis.set(yticks=[], xlim=(0, 1), xlabel="proportion of the chosen tokens")
axis.legend(ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1))
plt.show()

# %% [markdown]
# ## Model
#
# The input of the first block is the normalized sum of three embeddings: of the
# token $x_t$, of its position t, and of its segment $g_t$ (first or second
# part). PE and G are learned tables with one row per position and per segment. The
# blocks are post-norm encoder blocks without a causal mask:
#
# $$h_t = \mathrm{LN}(E[x_t] + \mathrm{PE}[t] + G[g_t])$$
#
# ![For each of seven tokens, a token, a position and a segment embedding are
# added and normalized](../../diagrams/bert_inputs.svg)
#
# $$h \leftarrow \mathrm{LN}(h + \mathrm{Attention}(h)), \qquad
# h \leftarrow \mathrm{LN}(h + \mathrm{gelu}(h W_1 + b_1)\, W_2 + b_2)$$
#
# Two output heads predict the tokens at the masked positions t and, from the
# vector of `[CLS]`, whether the second part follows:
#
# ![One head predicts the masked tokens from their vectors, another one from CLS
# whether the second sentence follows](../../diagrams/bert_tasks.svg)
#
# $$\mathrm{logits}_t = \mathrm{LN}(\mathrm{gelu}(h_t W + b))\, E^\top + b''',
# \qquad \mathrm{follows} = \tanh(h_0 W' + b')\, W'' + b''$$

# %%
D, layers, heads = 96, 3, 4


def make_model(**positions):
    """Returns an untrained BERT with both heads."""
    encoder = Bert(
        V,
        num_layers=layers,
        num_heads=heads,
        hidden_dim=D,
        intermediate_dim=4 * D,
        dropout=0.0,
        attention_dropout=0.0,
        max_sequence_length=64,
        **positions,
    )
    return BertPretrainer(encoder)


model = make_model()
B = 32
inputs, labels = make_batch(pairs[:B], T, np.random.default_rng(0))
outputs = {name: to_numpy(x) for name, x in model(inputs).items()}
P = inputs["mask_positions"].shape[1]
assert outputs["token_logits"].shape == (B, P, V)
assert outputs["next_sentence_logits"].shape == (B, 2)
print(f"{model.count_params():,} parameters")

# %% [markdown]
# ### The same in NumPy


# %%
def norm(x, w, name):
    """Returns the layer norm of x, (T, D)."""
    x = x - x.mean(-1, keepdims=True)
    x = x / np.sqrt((x**2).mean(-1, keepdims=True) + model.encoder.epsilon)
    return x * w[f"{name}/gamma"] + w[f"{name}/beta"]


def gelu(x):
    """Returns x Phi(x), with the distribution function of the normal."""
    return x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2


def dense(x, w, name):
    """Returns x W + b."""
    return x @ w[f"{name}/kernel"] + w[f"{name}/bias"]


def attention(x, w, name):
    """Returns multi-head self-attention of x, (T, D)."""
    q, k, v = (
        np.einsum("td,dnh->nth", x, w[f"{name}/{part}/kernel"])
        + w[f"{name}/{part}/bias"][:, None]
        for part in ("query", "key", "value")
    )
    weights = np.exp(q @ k.swapaxes(1, 2) / np.sqrt(q.shape[-1]))
    weights /= weights.sum(-1, keepdims=True)  # (N, T, T)
    output = f"{name}/attention_output"
    x = np.einsum("nth,nhd->td", weights @ v, w[f"{output}/kernel"])
    return x + w[f"{output}/bias"]


def encode(ids, segments, w):
    """Returns the vectors h (T, D) of tokens without padding."""
    h = w["token_embedding/table/embeddings"][ids]
    h = h + w["positions/table/embeddings"][: len(ids)]
    h = h + w["segment_embedding/table/embeddings"][segments]
    h = norm(h, w, "embedding_norm")
    for block in (f"block_{i}" for i in range(layers)):
        x = attention(h, w, f"{block}/self_attention")
        h = norm(h + x, w, f"{block}/around_attention/norm")
        x = gelu(dense(h, w, f"{block}/feed_forward/inner"))
        x = dense(x, w, f"{block}/feed_forward/outer")
        h = norm(h + x, w, f"{block}/around_feed_forward/norm")
    return h


w = {w.path: to_numpy(w).astype("float64") for w in model.weights}
shortest = (inputs["token_ids"] == tokenizer.pad_id).sum(1).argmax()
ids, segments, masked = (
    inputs[name][shortest]
    for name in ("token_ids", "segment_ids", "mask_positions")
)
real = ids != tokenizer.pad_id
assert not real.all()  # the row has padding
h = encode(ids[real], segments[real], w)
x = h[masked]
x = norm(gelu(dense(x, w, "transform")), w, "transform_norm")
token_logits = x @ w["token_embedding/table/embeddings"].T
token_logits += w[f"{model.name}/token_bias"]
follows = dense(np.tanh(dense(h[0], w, "pooler")), w, "next_sentence")
close = {"atol": 1e-4, "rtol": 0}
np.testing.assert_allclose(
    outputs["token_logits"][shortest], token_logits, **close
)
np.testing.assert_allclose(
    outputs["next_sentence_logits"][shortest], follows, **close
)
print("The logits of NumPy and of the library agree.")

# %% [markdown]
# The input of the library has padding and that of the NumPy version has none,
# so the test also shows that padding does not change the result.
#
# ### Three embeddings
#
# The picture shows the three embeddings that are added, for one pair, before
# training. The token embedding depends on the token only, the position
# embedding on the position only, and the segment embedding has two different
# rows.

# %% tags=["hide-input"] alt="Three heat maps of tokens and 24 features: token embeddings, position embeddings, and segment embeddings with two different rows"
tables = {
    "token": w["token_embedding/table/embeddings"][ids[real]],
    "position": w["positions/table/embeddings"][: real.sum()],
    "segment": w["segment_embedding/table/embeddings"][segments[real]],
}
figure, axes = plt.subplots(1, 3, figsize=(10, 5), layout="constrained")
for axis, (name, table) in zip(axes, tables.items(), strict=True):
    image = axis.imshow(
        table[:, :24], cmap="cividis", aspect="auto", vmin=-0.04, vmax=0.04
    )
    axis.set(title=f"{name} embedding", xlabel="feature (24 of 96)")
names = [tokenizer.vocabulary[i] for i in ids[real]]
axes[0].set_yticks(range(len(names)), names, fontsize=7)
figure.colorbar(image, ax=axes, shrink=0.6)
plt.show()

# %% [markdown]
# ## Pre-training
#
# The loss is the sum of two cross-entropies: over the masked tokens of a batch,
# and over its pairs. `BucketedDataset` calls `make_batch` with new random
# numbers in every epoch. We train the same model once with learned positions,
# as in the paper, and once with rotary positions.

# %%
epochs = 1 if QUICK else 8
batches = training.BucketedDataset(
    pairs, [T] * len(pairs), make_batch, B, num_buckets=1
)


def fit(model):
    """Trains a model; returns the losses of its steps."""
    steps = epochs * len(batches)
    schedule = keras.optimizers.schedules.CosineDecay(
        0.0, steps, warmup_target=2e-3, warmup_steps=steps // 10
    )
    model.compile(
        keras.optimizers.AdamW(schedule, beta_2=0.98, global_clipnorm=1.0),
        {
            "token_logits": training.SequenceCrossentropy(pad_id=-1),
            "next_sentence_logits": keras.losses.SparseCategoricalCrossentropy(
                from_logits=True
            ),
        },
    )
    progress = training.TrainingProgress(tokens_per_epoch=len(pairs) * T)
    model.fit(
        batches, epochs=epochs, shuffle=False, callbacks=[progress], verbose=0
    )
    return progress.losses


keras.utils.set_random_seed(1)
rotary = make_model(
    position_embedding=None, attention_position=RotaryPosition()
)
curves = {"learned": fit(model), "rotary": fit(rotary)}
print(f"A uniform prediction has the loss {np.log(V) + np.log(2):.2f}.")

# %% tags=["hide-input"] alt="The sum of both losses falls from more than 6 to about 2.3 nats with both kinds of positions"
figure, axis = plt.subplots(figsize=(6, 2.8), layout="constrained")
for name, values in curves.items():
    width = max(1, len(values) // 50)
    smooth = np.convolve(values, np.ones(width) / width, "valid")
    axis.plot(np.arange(len(smooth)) + width, smooth, label=name)
axis.set(xlabel="step", ylabel="loss (nats)", ylim=(0, None))
axis.legend(title="positions")
plt.show()

# %% [markdown]
# ## Accuracy
#
# On test documents we compare with a baseline that counts: it predicts the
# token that occurred most often between the same two neighbors.

# %%
counts = collections.defaultdict(collections.Counter)
firsts, seconds = zip(*[(p.first, p.second) for p in pairs], strict=True)
for row in tokenizer.pack([*firsts], [*seconds], max_length=T)[
    "token_ids"
].tolist():
    for before, token, after in zip(row[:-2], row[1:-1], row[2:], strict=True):
        counts[before, after][token] += 1

test_inputs, test_labels = make_batch(test_pairs, T, np.random.default_rng(1))
expected = test_labels["token_logits"]
chosen = expected >= 0
by_counting = np.zeros_like(expected)
for i, positions in enumerate(test_inputs["mask_positions"]):
    row = np.append(test_inputs["token_ids"][i], tokenizer.pad_id)
    for j, t in enumerate(positions):
        found = counts[row[t - 1], row[t + 1]].most_common(1)
        by_counting[i, j] = found[0][0] if found else -1
counted = (by_counting == expected)[chosen].mean()
print(f"{chosen.sum():,} masked tokens of {len(test_pairs):,} pairs")
print(f"{'counting:':26}{counted:.1%}")
accuracy = {}
for name, trained in ("learned", model), ("rotary", rotary):
    predicted = trained.predict(test_inputs, verbose=0)
    tokens = predicted["token_logits"].argmax(-1) == expected
    follows = predicted["next_sentence_logits"].argmax(-1)
    right = follows == test_labels["next_sentence_logits"][:, 0]
    accuracy[name] = tokens[chosen].mean(), right.mean()
    print(
        f"BERT, {name + ' positions:':18}  {accuracy[name][0]:.1%}, "
        f"next sentence {accuracy[name][1]:.1%}"
    )
if not QUICK:
    assert accuracy["learned"][0] > counted + 0.05
    assert accuracy["learned"][1] > 0.55

# %% [markdown]
# Both models predict more tokens correctly than counting does, 45 % and 48 %
# instead of 30 %. In the second task, where a random prediction is right for
# 50 %, they reach 72 % and 67 %. With one run each, we cannot say which
# positions are better.
#
# ## Filling masks
#
# In *my sister [MASK] the old book* and *my sister [MASK] the hot soup*, only
# words after the mask differ. A model that reads from left to right makes the
# same prediction for both.


# %%
def fill(sentence):
    """Returns the probabilities (V,) of the first [MASK] of a sentence."""
    ids = [
        tokenizer.mask_id if word == "[MASK]" else tokenizer.encode(word)[0]
        for word in sentence.split()
    ]
    inputs = tokenizer.pack([ids], max_length=T)
    t = ids.index(tokenizer.mask_id) + 1  # after [CLS]
    inputs["mask_positions"] = np.array([[t]], "int32")
    logits = to_numpy(model(inputs)["token_logits"])[0, 0]
    p = np.exp(logits - logits.max())
    return p / p.sum()


SENTENCES = [
    "my sister [MASK] the old book .",
    "my sister [MASK] the hot soup .",
    "my sister [MASK] in the garden .",
    "the red box [MASK] open .",
]

# %% tags=["hide-input"] alt="Bars: the five most probable tokens for the mask of each of four sentences"
figure, axes = plt.subplots(1, 4, figsize=(11, 2.4), layout="constrained")
for axis, sentence in zip(axes, SENTENCES, strict=True):
    p = fill(sentence)
    best = np.argsort(-p)[:5]
    axis.barh([tokenizer.vocabulary[i] for i in best], p[best])
    axis.invert_yaxis()
    axis.set_title(sentence, fontsize=9)
    axis.set(xlim=(0, 1))
plt.show()

# %% [markdown]
# To measure how much a word contributes, we mask it too, and see how much less
# probable the best prediction y becomes. With x' for the sentence without the
# word, the effect of the word is
#
# $$\Delta = \log p(y \mid x) - \log p(y \mid x')$$

# %%
effects = {}
for sentence in SENTENCES[:2]:
    p = fill(sentence)
    y = int(p.argmax())
    print(f"{sentence} -> {tokenizer.vocabulary[y]} ({p[y]:.0%})")
    words = sentence.split()
    for i in range(words.index("[MASK]") + 1, len(words)):
        without = [*words[:i], "[MASK]", *words[i + 1 :]]
        effect = float(np.log(p[y] / fill(" ".join(without))[y]))
        effects[words[i]] = effect
        print(f"    without {words[i]:6} {effect:6.2f} nats")
if not QUICK:
    assert min(effects["book"], effects["soup"]) > 0.3

# %% [markdown]
# The last noun has the largest effect in both sentences: books are read and
# written, soup is bought, cooked and eaten. For all sentences of 200 test
# documents with one of eight verbs, we mask the verb and look at its
# probability, with the words after it and without them.

# %%
verbs = "ate closed cooked drank opened read wore wrote".split()
p = []
for document in test_documents[: 20 if QUICK else 200]:
    for sentence in document:
        words = sentence.split()
        for verb in {*words} & {*verbs}:
            i, y = words.index(verb), tokenizer.encode(verb)[0]
            before, after = words[:i], words[i + 1 :]
            hidden = ["[MASK]"] * len(after)
            p.append(
                [
                    fill(" ".join([*before, "[MASK]", *rest]))[y]
                    for rest in (after, hidden)
                ]
            )
p = np.array(p)
print(
    f"{len(p)} verbs; mean probability with the words after them "
    f"{p[:, 0].mean():.1%}, without {p[:, 1].mean():.1%}"
)
if not QUICK:
    assert p[:, 0].mean() > 1.5 * p[:, 1].mean()

# %% [markdown]
# ## Summary
#
# - BERT is an encoder: every token attends to all tokens on both sides.
# - It adds token, position and segment embeddings.
# - 15 % of the tokens are predicted: 80 % masked, 10 % random, 10 % unchanged.
# - The second task is whether one part of the text follows the other.
# - The labels come from the text itself, so any text is training data.
#
# ## Exercises
#
# **1.** Fill in the gaps. BERT pre-trains deep ... representations with a ...
# language model. Masked tokens are predicted based on the other, ... words. The
# second task: is the second sentence the ... one? A ... embedding marks each
# sentence.
#
# <details markdown>
# <summary>Answer</summary>
#
# Bidirectional; masked; non-masked; next (subsequent); segment (sentence).
#
# </details>
#
# **2.** An input has 34 tokens that are not special. How many are chosen, how
# many of them stay unchanged on average, and which shapes do the two logits
# have?
#
# <details markdown>
# <summary>Answer</summary>
#
# 15 % of 34, rounded: 5; half a token. (B, P, V) and (B, 2), with P = 6 here.
#
# </details>
#
# **3.** In *the ... cat chased the ... cat*, one cat was black and the other
# white. BERT predicts both colors at once. Which mistake can it not avoid? And
# how do its inputs differ between pre-training and fine-tuning?
#
# <details markdown>
# <summary>Answer</summary>
#
# The two predictions are independent. If each is half *black* and half *white*,
# *black* twice is as probable as *black* and *white*. And the inputs of
# pre-training contain `[MASK]`, which never occurs in fine-tuning. [XLNet](
# ../xlnet/index.md) predicts one after the other, without `[MASK]`, and avoids
# both.
#
# </details>
#
# **4.** "The child came home from ...": why is this gap easier for BERT if
# "with its school bag" follows?
#
# <details markdown>
# <summary>Answer</summary>
#
# BERT is a denoising autoencoder: it reconstructs a corrupted text from what is
# left, and *school bag* after the gap makes *school* probable. A model that
# reads from left to right has to predict before it sees these words.
#
# </details>
#
# **5.** Devlin et al. fine-tune BERT on MNLI, QQP, QNLI, STS-B, MRPC, RTE,
# SWAG, SST-2, CoLA, SQuAD and CoNLL-2003. Which of them have pairs of
# sentences, which single sentences, which questions about a text, and which a
# tag for each word? From which vectors are the answers predicted?
#
# <details markdown>
# <summary>Answer</summary>
#
# Pairs: MNLI and RTE (does the first sentence entail the second?), QQP and MRPC
# (do both mean the same?), QNLI (does the sentence answer the question?), STS-B
# (how similar are they?) and SWAG (which of four endings follows?). Single
# sentences: SST-2 (is the review positive?) and CoLA (is it correct English?).
# All of these are predicted from the vector of `[CLS]`. In SQuAD, each token of
# the text has a score as the first and as the last token of the answer. In
# CoNLL-2003, each word has a tag that tells names of persons, organizations and
# locations from other words. The next page builds these heads.
#
# </details>
#
# **Next**: [Fine-tuning: one encoder, four tasks](../fine_tuning/index.md) uses
# a pre-trained encoder for labeled tasks.
