# %% [markdown]
# # A Transformer learns to translate
#
# In this tutorial you train the encoder-decoder Transformer of *Attention Is
# All You Need* (Vaswani et al. 2017, <https://arxiv.org/abs/1706.03762>) to
# translate English into Spanish, and look at its attention:
#
# ![Cross-attention weights of two heads, with the tokens that the decoder reads
# as rows and the English tokens as columns](translate-5.png)
#
# **You will learn** how sentences become batches, how the loss and the learning
# rate of the paper are computed, how to train and translate with a few lines of
# Keras, and how to measure a translation with BLEU.
#
# **Prerequisites**: scaled dot-product attention and the blocks of the
# Transformer, as built in [Encoder and decoder, block by
# block](../blocks/index.md). **Time**: 6 to 12 minutes on one CPU core.
#
# **Published result**: the paper reports 28.4 BLEU on WMT 2014 English to
# German, with 213 million parameters and 3.5 days on eight GPUs. The model
# below has 1.1 million parameters and sees 20,000 synthetic sentences, which
# are much easier, so its 98.5 BLEU is not comparable. On real, short sentences,
# a Transformer with 6.6 million parameters reaches [46.05
# BLEU](../../results/translation.md) in an hour.

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
import sacrebleu

from keras_attn import datasets, explain, training
from keras_attn.models import Transformer
from keras_attn.text import SubwordTokenizer, token_batches

keras.utils.set_random_seed(1)
print(f"Keras {keras.__version__} on {keras.backend.backend()}")

# %% [markdown]
# ## Data
#
# `make_translation_pairs` generates English sentences and their only correct
# Spanish translation. Some combinations of words never occur in the training
# data: it contains cats and large things, but no large cat. A model that
# translates *this cat is very large* must have learned the words, not the
# sentences. The generator needs no download; for real data, see the
# [readers](../../api/datasets.md).

# %%
sizes = {"train": 20_000, "validation": 500, "test": 1000}
if QUICK:
    sizes = {"train": 400, "validation": 40, "test": 20}
train, validation, test = (
    datasets.make_translation_pairs(n, seed=1, split=split)
    for split, n in sizes.items()
)
for source, target in train[:3]:
    print(f"{source}  ->  {target}")
assert not {pair.source for pair in train} & {pair.source for pair in test}

# %% [markdown]
# ### Subwords
#
# A vocabulary of whole words cannot represent a word it has not seen. Byte-pair
# encoding (Sennrich et al. 2016, <https://arxiv.org/abs/1508.07909>) starts
# from characters and repeatedly merges the most frequent pair of neighbors.
# Frequent words become one token, and rare words several. The character ▁ marks
# the beginning of a word. Both languages share one vocabulary of V tokens, so
# the model needs one embedding table.

# %%
tokenizer = SubwordTokenizer.train_from_lines(
    (sentence for pair in train for sentence in pair), vocabulary_size=1500
)
V = tokenizer.vocabulary_size
example = "this cat is very large"
ids = tokenizer.encode(example)
print(V, "tokens:", tokenizer.pieces(ids), ids)
assert tokenizer.decode(ids) == example

# %% [markdown]
# ### Batches
#
# Attention within a batch needs rows of equal length, so short sentences are
# padded. `token_batches` groups sentences of similar length into a few buckets,
# each with one shape, so that a compiled model is compiled a few times only. A
# batch has about 1,024 target tokens. The report lists the shapes as
# *rows x (S, T)* for S source and T target tokens.


# %%
def batches_of(pairs, buckets, shuffle):
    """Returns a dataset of ((source, target), labels)."""
    return token_batches(
        *zip(*pairs, strict=True),
        tokenizer,
        tokens_per_batch=1024,
        buckets=buckets,
        shuffle=shuffle,
        seed=1,
    )


batches = batches_of(train, buckets=4, shuffle=True)
validation_batches = batches_of(validation, buckets=2, shuffle=False)
print(batches.report)

# %% [markdown]
# The decoder reads the target after a start token, and its labels are the same
# tokens followed by an end token. It therefore predicts every token from the
# correct tokens before it, and all positions are trained at once ("teacher
# forcing"). When it translates, it reads its own predictions instead.

# %%
(source_ids, target_ids), labels = batches[0]
B, T = target_ids.shape
assert labels.shape == (B, T) and source_ids.shape[0] == B
row = int(np.argmax((labels != tokenizer.pad_id).sum(1)))
for name, ids in ("decoder input", target_ids[row]), ("labels", labels[row]):
    print(f"{name:14}", " ".join(tokenizer.pieces(ids.tolist())))

# %% tags=["hide-input"] alt="Tokens (dark) and padding (light) of 20 rows of a batch, which have similar lengths"
figure, axes = plt.subplots(1, 2, figsize=(8, 2.6), layout="constrained")
for axis, name, ids in zip(
    axes, ("source", "target"), (source_ids, target_ids), strict=True
):
    axis.imshow(ids[:20] == tokenizer.pad_id, cmap="cividis", aspect="auto")
    axis.set(title=f"{name} {ids.shape}", xlabel="position", ylabel="row")
plt.show()

# %% [markdown]
# ## Model
#
# The encoder maps the source to a memory of S vectors of width D. The decoder
# attends to the target so far and to this memory, and outputs one logit for
# each of the V tokens. We use two blocks per side and D = 128, a quarter of the
# width of the paper's base model. Unlike the paper, we normalize before each
# sublayer (`normalize_first=True`), which is less sensitive to the warmup, [as
# shown earlier](../blocks/index.md). The paper's model, with links:
#
# ![The Transformer: encoder and decoder blocks, and the memory that
# cross-attention reads; the boxes lead to their
# pages](../../diagrams/transformer.svg)
#
# <!-- figure: transformer_shapes -->

# %%
D = 128
model = Transformer(
    V,
    num_layers=2,
    num_heads=2,
    hidden_dim=D,
    intermediate_dim=4 * D,
    dropout=0.1,
    normalize_first=True,
    pad_id=tokenizer.pad_id,
    start_id=tokenizer.start_id,
    end_id=tokenizer.end_id,
)
logits = model((source_ids, target_ids))
assert logits.shape == (B, T, V)
print(f"{model.count_params():,} parameters")

# %% [markdown]
# The logits at position t must not depend on later target tokens: otherwise the
# model would learn to copy the token it should predict. We test this property
# by changing one target token at a time. Row t of the picture shows for which
# changed tokens the logits at position t change (dark) or stay the same
# (light).

# %% alt="A lower triangle: logits change at and after the changed position"
ids = np.tile(target_ids[row : row + 1], (T + 1, 1))
ids[np.arange(1, T + 1), np.arange(T)] = V - 1  # row 0 stays unchanged
source = np.tile(source_ids[row : row + 1], (T + 1, 1))
logits = keras.ops.convert_to_numpy(model.predict_on_batch((source, ids)))
changed = np.abs(logits[1:] - logits[0]).max(-1).T > 1e-3
assert (changed == np.tri(T, dtype=bool)).all()

figure, axis = plt.subplots(figsize=(3, 3), layout="constrained")
axis.imshow(~changed, cmap="cividis")
axis.set(xlabel="changed target token", ylabel="position of the logits")
plt.show()

# %% [markdown]
# ## Loss
#
# The loss of one token is the cross-entropy of the predicted distribution
# $p = \mathrm{softmax}(\mathrm{logits})$ and a smoothed label $\tilde y$, which
# gives the correct token y the probability 0.9 and distributes 0.1 over all V
# tokens:
#
# $$\mathrm{loss} = -\sum_{i=0}^{V-1} \tilde y_i \log p_i, \qquad
# \tilde y_i = 0.9\,[i = y] + \frac{0.1}{V}$$
#
# Padding has no loss. Losses are means per token, in nats (the logarithm is
# natural). The loss of an untrained model is a little higher than that of a
# uniform prediction, $\ln V$.

# %%
loss = training.SequenceCrossentropy(label_smoothing=0.1)
logits = keras.ops.convert_to_numpy(
    model.predict_on_batch((source_ids, target_ids))
)
log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
smoothed = 0.9 * np.eye(V)[labels] + 0.1 / V
by_hand = -(smoothed * log_p).sum(-1)[labels != tokenizer.pad_id].mean()
np.testing.assert_allclose(float(loss(labels, logits)), by_hand, rtol=1e-4)
print(f"before training: {by_hand:.2f} nats; ln V = {np.log(V):.2f}")

# %% [markdown]
# ## Learning rate
#
# The learning rate rises linearly during the steps of the warmup, and then falls
# with the inverse square root of the step (section 5.3 of the paper; a = 1
# there):
#
# $$\mathrm{rate} = a\, D^{-1/2} \min(\mathrm{step}^{-1/2},\;
# \mathrm{step} \cdot \mathrm{warmup}^{-3/2})$$
#
# Its maximum is $a / \sqrt{D \cdot \mathrm{warmup}}$, at step = warmup. We choose
# a so that this is 0.002.
#
# <!-- figure: warmup -->

# %% alt="The learning rate rises to 0.002 at step 500, then falls slowly"
warmup, highest = 500, 2e-3
a = highest * (D * warmup) ** 0.5
schedule = training.WarmupSchedule(D, warmup, scale=a)
steps = np.arange(2000)  # Keras counts from 0
rates = keras.ops.convert_to_numpy(schedule(steps))
step = steps + 1
by_hand = a * D**-0.5 * np.minimum(step**-0.5, step * warmup**-1.5)
np.testing.assert_allclose(rates, by_hand, rtol=1e-4)

figure, axis = plt.subplots(figsize=(5, 2.4), layout="constrained")
axis.plot(steps, rates)
axis.set(xlabel="step", ylabel="learning rate")
plt.show()

# %% [markdown]
# ## Training
#
# From here it is plain Keras: `compile` and `fit`. `CheckpointAverage` averages
# the weights of the last ten checkpoints (the paper averages 5 or 20, section
# 6.1). `TrainingProgress` prints one line with the remaining time.
# [`examples/translate.py`](../../install.md#translating-your-own-files) adds
# what a long training needs: it resumes after an interruption, stops early, and
# reads your files.

# %%
model.compile(
    keras.optimizers.Adam(schedule, beta_2=0.98, epsilon=1e-9),
    loss,
    metrics=[training.TokenAccuracy()],
)
progress = training.TrainingProgress(
    tokens_per_epoch=batches.report.target_tokens
)
average = training.CheckpointAverage(10, save_freq=50, validate=True)
history = model.fit(
    batches,
    epochs=1 if QUICK else 10,
    shuffle=False,  # token_batches shuffles
    validation_data=validation_batches,
    callbacks=[progress, average],
    verbose=0,
)

# %% tags=["hide-input"] alt="Training and validation loss fall from more than 7 and 5 to about 1.1 nats per token; after the first two epochs, validation loss is still much higher than training loss"
explain.plot_training(
    progress.losses, progress.validation, ylabel="loss (nats per token)"
)

# %% [markdown]
# With smoothed labels the loss cannot reach 0. Its minimum is the entropy of
# $\tilde y$, about 1.06 nats here (exercise 3). The validation loss is that of
# the averaged weights. After the first two epochs it is much higher than the
# training loss, because the average still contains early checkpoints.
#
# ## Translation
#
# `generate` encodes the source once, then appends tokens until the end token.
# Beam search keeps the four most probable prefixes at each step; [Decoding](
# ../decoding/index.md) explains it. Keys and values of earlier tokens are
# cached, so a step computes one token only.


# %%
def translate(sentences):
    """Returns the Spanish translations of a list of sentences."""
    rows = [[*ids, tokenizer.end_id] for ids in tokenizer.encode(sentences)]
    decoded = model.generate(rows, max_new_tokens=40, strategy="beam")
    return tokenizer.decode(decoded.tokens[:, 0].tolist())


for sentence, reference in datasets.SHOWCASE_PAIRS:
    (translation,) = translate([sentence])
    mark = "" if translation == reference else f"   (correct: {reference})"
    print(f"{sentence}  ->  {translation}{mark}")

# %% [markdown]
# BLEU (Papineni et al. 2002, <https://aclanthology.org/P02-1040/>) compares
# translations with references. For n = 1 to 4, $\mathrm{prec}_n$ is the
# proportion of n-grams of the translations that occur in their references. With
# $\ell_\mathrm{hyp}$ and $\ell_\mathrm{ref}$ tokens in all translations and
# references,
#
# $$\mathrm{BLEU} = 100 \cdot
# \min(1, e^{1 - \ell_\mathrm{ref} / \ell_\mathrm{hyp}}) \,
# \Big(\prod_{n=1}^{4} \mathrm{prec}_n\Big)^{1/4}$$
#
# so that 100 means identical texts. The first factor penalizes translations
# that are too short. We use sacreBLEU, whose scores are comparable between
# publications. After BLEU, it prints $\mathrm{prec}_1$ to $\mathrm{prec}_4$ in
# percent, the first factor (BP, brevity penalty) and the lengths.

# %%
translations = translate([pair.source for pair in test])
bleu = sacrebleu.corpus_bleu(translations, [[pair.target for pair in test]])
exact = np.mean(
    [text == pair.target for text, pair in zip(translations, test, strict=True)]
)
print(bleu)
print(f"{exact:.1%} of {len(test):,} sentences are identical to the reference")
shown = "this cat is very large"
if not QUICK:
    assert bleu.score > 90
    assert translate([shown]) == ["este gato es muy grande"]

# %% [markdown]
# ## Attention
#
# The cross-attention of the decoder shows which source tokens it reads at each
# step. `attention_maps` runs the model once and returns the weights of each
# layer, (B, N, T, S) for N heads. A row belongs to a token that the decoder has
# read, and is the distribution over source tokens as the next one is predicted.

# %% alt="Cross-attention weights of two heads, with the tokens that the decoder reads as rows and the English tokens as columns"
rows = [[*tokenizer.encode(shown), tokenizer.end_id]]
decoded = model.generate(rows, max_new_tokens=40, strategy="beam")
maps = explain.attention_maps(
    model, rows, layers="cross", tokens=tokenizer.pieces, decoded=decoded
)
weights = maps[-1].weights
np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)
explain.plot_attention(maps[-1])

# %% [markdown]
# In most rows, the largest weight is on the token that is translated next
# (after *este*, on the first token of *cat*). Nothing in the data says which
# words correspond: this alignment was learned by minimizing the loss. But a
# large weight, as on the end token after *g* in head 1, does not prove that the
# model used a token. [Looking inside](../looking_inside/index.md) compares
# attention with measurements of influence.
#
# <!-- figure: attention_heads -->
#
# ## Saving
#
# The model is one `.keras` file, which loads on every backend.

# %%
model.save("translator.keras")
tokenizer.save("translator.model")
loaded = keras.saving.load_model("translator.keras", compile=False)
for before, after in zip(model.weights, loaded.weights, strict=True):
    np.testing.assert_array_equal(
        *map(keras.ops.convert_to_numpy, (before, after))
    )

# %% [markdown]
# ## Summary
#
# - The decoder predicts each token from the correct tokens before it; a causal
#   mask hides the later ones.
# - The loss is the cross-entropy with smoothed labels, without padding.
# - The learning rate rises during warmup and falls with
#   $1 / \sqrt{\mathrm{step}}$.
# - `generate` translates with cached keys and values; BLEU measures n-grams.
#
# ## Exercises
#
# **1.** Which shapes do the queries of B targets and the weights of the
# cross-attention have in the model above? How many parameters does one
# attention layer have, biases included?
#
# <details markdown>
# <summary>Answer</summary>
#
# With N = 2 heads of H = 64 features: (B, T, 2, 64) and (B, 2, T, S). Four
# projections from D to D have $4 (128^2 + 128) = 66{,}048$ parameters, whatever
# the number of heads.
#
# </details>
#
# **2.** At which step is the learning rate of the paper highest, and how high
# is it, for D = 512, a warmup of 4,000 and a = 1? What would this warmup do to
# the training above, which has about 2,500 steps?
#
# <details markdown>
# <summary>Answer</summary>
#
# At step 4,000, where both sides of the minimum are equal: $1 / \sqrt{512 \cdot
# 4000} = 0.0007$. Above, training would end during warmup, and the rate would
# never reach its maximum.
#
# </details>
#
# **3.** What is the minimum of the loss with smoothed labels, and which
# prediction reaches it?
#
# <details markdown>
# <summary>Answer</summary>
#
# The prediction $p = \tilde y$. The loss is then the entropy of $\tilde y$:
# $-0.9 \ln 0.9 - 0.1 \ln (0.1 / V) \approx 1.06$ nats, neglecting the 0.1/V of the
# correct token.
#
# ```python
# smoothed = 0.9 * np.eye(V)[0] + 0.1 / V
# print(-(smoothed * np.log(smoothed)).sum())
# ```
#
# </details>
#
# **4.** Which parts of the model run in parallel, and which one after the
# other, in training and in generation?
#
# <details markdown>
# <summary>Answer</summary>
#
# In training, all positions of source and target are computed in parallel; only
# the blocks follow each other. In generation, the encoder still runs in
# parallel over the source, but the decoder needs one step for each new token.
#
# </details>
#
# **Next**: [Decoding](../decoding/index.md) examines greedy search, beam search
# and sampling with this model.
