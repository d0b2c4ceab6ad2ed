# %% [markdown]
# # Fine-tuning: one encoder, four tasks
#
# A pre-trained encoder is the starting point for many tasks. In this tutorial
# you pre-train a small BERT, add a head for each of four tasks, and compare it
# with encoders that start from random weights:
#
# ![Test scores of four tasks, with a pre-trained encoder and with one trained
# from scratch](fine_tuning-1.png)
#
# **You will learn** how a head turns vectors into classes, spans and tags, how
# to fine-tune all weights, the head alone, or low-rank adapters (LoRA), and
# what catastrophic forgetting is and how to reduce it.
#
# **Prerequisites**: [BERT from scratch](../bert/index.md). **Time**: 4 to 6
# minutes on one CPU core.
#
# **Published result**: BERT-base (Devlin et al. 2019,
# <https://arxiv.org/abs/1810.04805>) has 110 million parameters and reaches an
# average of 79.6 on the GLUE tasks, 4.5 points more than the best model before
# it. These tasks have 2,500 to 392,000 examples. The model below has 0.4 million
# parameters, and each task 200 generated examples, so the scores are not
# comparable; pre-training gains 2 to 8 points. On real text, a model of this
# library gains [3 points on a tenth of CLINC150](
# ../../results/text_classification.md), and half a point on all of it.

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
from sklearn.linear_model import LogisticRegression

from keras_attn import datasets, models, training
from keras_attn.text import WordPieceTokenizer, mask_tokens, sentence_pairs

keras.utils.set_random_seed(1)
to_numpy = keras.ops.convert_to_numpy
print(f"Keras {keras.__version__} on {keras.backend.backend()}")

# %% [markdown]
# ## Pre-training
#
# The encoder is pre-trained as in [BERT from scratch](../bert/index.md): it
# predicts masked tokens, and whether one part of a text follows another. The
# text has no labels. Half of the documents are short stories; the others are
# single sentences of many kinds, three in each document. The learning rate
# rises from 0 during a tenth of the steps, then falls to 0.

# %%
n = 60 if QUICK else 2000
documents = datasets.make_documents(n, seed=1)
sentences = datasets.make_labeled_sentences(3 * n, seed=100)
texts = [f"{sentence.text} ." for sentence in sentences]  # without labels
documents += [texts[i : i + 3] for i in range(0, len(texts), 3)]
tokenizer = WordPieceTokenizer.train_from_lines(
    [sentence for document in documents for sentence in document], 800
)
V, T, D, N, H = tokenizer.vocabulary_size, 40, 96, 4, 24
ids = [tokenizer.encode(document) for document in documents]
pairs = sentence_pairs(ids, T - 3, seed=1)
print(f"{len(documents):,} documents, {len(pairs):,} pairs, V = {V}")


def make_batch(pairs, length, random):
    """Returns inputs and labels of `BertPretrainer` for a list of pairs."""
    firsts, seconds = zip(*[(p.first, p.second) for p in pairs], strict=True)
    inputs = tokenizer.pack(
        [*firsts], [*seconds], max_length=length, pad_to_max_length=True
    )
    special = tokenizer.mask_id, tokenizer.special_ids
    masked = mask_tokens(inputs["token_ids"], V, *special, seed=random)
    inputs["token_ids"] = masked.token_ids
    inputs["mask_positions"] = masked.positions
    follows = np.array([[int(not pair.is_next)] for pair in pairs], "int32")
    labels = {"token_logits": masked.labels, "next_sentence_logits": follows}
    return inputs, labels


# %%
def make_optimizer(rate, steps):
    """Returns AdamW with warmup and cosine decay."""
    warmup = max(1, steps // 10)
    schedule = keras.optimizers.schedules.CosineDecay(
        0.0, max(1, steps - warmup), warmup_target=rate, warmup_steps=warmup
    )
    return keras.optimizers.AdamW(
        schedule, beta_2=0.98, weight_decay=0.01, global_clipnorm=1.0
    )


class_loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
token_loss = training.SequenceCrossentropy(pad_id=-1)
shape = {"num_layers": 1 if QUICK else 3, "num_heads": N, "hidden_dim": D}
shape |= {"intermediate_dim": 4 * D, "dropout": 0.0, "attention_dropout": 0.0}
encoder = models.Bert(V, **shape)
pretrainer = models.BertPretrainer(encoder)
batches = training.BucketedDataset(
    pairs, [T] * len(pairs), make_batch, batch_size=32, num_buckets=1
)
epochs = 1 if QUICK else 6
pretrainer.compile(
    make_optimizer(2e-3, epochs * len(batches)),
    {"token_logits": token_loss, "next_sentence_logits": class_loss},
)
history = pretrainer.fit(batches, epochs=epochs, shuffle=False, verbose=0)

# %% [markdown]
# ## Four tasks
#
# | head | input | prediction | score |
# | --- | --- | --- | --- |
# | sentence | `[CLS]` sentence `[SEP]` | one of 8 kinds of statement | accuracy |
# | pair | `[CLS]` premise `[SEP]` hypothesis `[SEP]` | entailed or not | accuracy |
# | span | `[CLS]` question `[SEP]` text `[SEP]` | first and last token | exact match |
# | tokens | `[CLS]` words `[SEP]` | a BIO tag for each word | F1 of entities |
#
# Each task has 200 training and 200 test examples. The latter have words, or
# combinations of words, that are in no labeled training example. A tag belongs
# to the first token of its word; other tokens have the label -1, which the loss
# ignores. The heads for spans and tags do not use BERT's pooler, so its weights
# are frozen.


# %%
def encode_words(words):
    """Returns token ids, and for each the index of its word."""
    ids = tokenizer.encode(list(words))
    index = [i for i, word in enumerate(ids) for _ in word]
    return [token for word in ids for token in word], index


# %%
def encode_questions(questions):
    """Encodes `Question`s; labels are the first and the last token."""
    firsts, seconds, labels = [], [], []
    for question, context, ((answer, start), *_) in questions:
        firsts.append(encode_words(question.split())[0])
        ids, index = encode_words(context.split())
        seconds.append(ids)
        word = context[:start].count(" ")  # index of the first word
        last = word + answer.count(" ")
        end = len(index) - 1 - index[::-1].index(last)
        offset = len(firsts[-1]) + 2  # [CLS] and [SEP]
        labels.append([offset + index.index(word), offset + end])
    inputs = tokenizer.pack(firsts, seconds)
    inputs["answerable"] = inputs["segment_ids"] == 1
    return inputs, np.array(labels, "int32")


ROLES = "subject", "object", "location"
TAGS = ("O", *(f"{x}-{y}" for y in ROLES for x in "BI"))


def encode_tags(examples):
    """Encodes `TaggedSentence`s; labels are tags of first tokens, or -1."""
    rows, words, labels = [], [], []
    for example in examples:
        ids, index = encode_words(example.words)
        rows.append(ids)
        words.append([-1, *index])
        labels.append([TAGS.index(tag) for tag in example.tags])
    inputs = tokenizer.pack(rows)
    length = inputs["token_ids"].shape[1]
    return inputs, models.align_labels_with_tokens(words, labels, length)


# %%
n = 24 if QUICK else 200
CLASSES = sorted({sentence.label for sentence in sentences})
TASKS = "sentence", "pair", "span", "tokens"


def load(name, split):
    """Returns the inputs and the labels of a task."""
    which = {"seed": 1, "split": split}
    if name == "span":
        made = datasets.make_questions(n, unanswerable_rate=0.0, **which)
        return encode_questions(made)
    if name == "tokens":
        made = datasets.make_tagged_sentences(n, tags="roles", **which)
        return encode_tags(made)
    if name == "sentence":
        made = datasets.make_labeled_sentences(n, **which)
        texts = [[x.text for x in made]]
        labels = [CLASSES.index(x.label) for x in made]
    else:
        made = datasets.make_entailment_pairs(n, **which)
        texts = [x.premise for x in made], [x.hypothesis for x in made]
        labels = [x.entailed for x in made]
    return tokenizer.pack(*texts), np.array(labels, "int32")


# %%
def add_head(name, encoder):
    """Returns the model of a task."""
    if name in ("sentence", "pair"):
        number = len(CLASSES) if name == "sentence" else 2
        return models.SequenceClassifier(encoder, number)
    if name == "span":
        model = models.SpanExtractor(encoder, no_answer="first")
    else:
        model = models.TokenClassifier(encoder, len(TAGS))
    training.freeze(model, "^pooler/")
    return model


# %%
def score(name, model):
    """Returns accuracy, exact match or F1 on the test set."""
    inputs, labels = test[name]
    if name == "span":
        spans = model.extract(inputs, batch_size=100)
        found = np.stack([spans.start, spans.end], 1)
        return float((found == labels).all(1).mean())
    found = model.predict(inputs, batch_size=100, verbose=0).argmax(-1)
    if name != "tokens":
        return float((found == labels).mean())
    rows = [[], []]
    for i, words in enumerate(labels >= 0):
        for tags, x in zip(rows, (found, labels), strict=True):
            tags.append([TAGS[tag] for tag in x[i, words]])
    return models.entity_scores(*rows).f1


# %%
LOSSES = dict(zip(TASKS, [class_loss] * 2 + [token_loss] * 2, strict=True))
train = {name: load(name, "train") for name in TASKS}
test = {name: load(name, "test") for name in TASKS}
for name, (inputs, labels) in train.items():
    row = [tokenizer.vocabulary[i] for i in inputs["token_ids"][0]]
    row = [token for token in row if token != "[PAD]"]
    print(f"{name}:", *row, "->", labels[0].tolist())

# %% [markdown]
# ## Four heads by hand
#
# The encoder returns a vector of D features for each of T tokens, h (T, D).
# Each head has one matrix W (D, C). A **class** is computed from $h_0$, the
# vector of `[CLS]`, after BERT's pooler; a **tag** from that of its token:
#
# $$p = \mathrm{softmax}\big(\tanh(h_0 W' + b')\, W + b\big), \qquad
# p_t = \mathrm{softmax}(h_t W + b)$$
#
# A **span** has two ends, and W the columns $u_1$ and $u_2$. Its softmax is over
# the positions of the text and of `[CLS]`, which stands for "no answer":
#
# $$p^{\mathrm{start}}_t = \frac{e^{h_t \cdot u_1 + b_1}}
# {\sum_s e^{h_s \cdot u_1 + b_1}}, \qquad
# p^{\mathrm{end}}_t = \frac{e^{h_t \cdot u_2 + b_2}}
# {\sum_s e^{h_s \cdot u_2 + b_2}}$$
#
# ![Heads for a sentence and a pair read CLS; a span has a start and an end;
# tags are predicted for each token](../../diagrams/fine_tuning_heads.svg)
#
# The loss is the mean of $-\log p(y)$ over all labels y: one for a sentence or
# a pair, two for a question, one for each tagged word.


# %%
def copied(encoder):
    """Returns an encoder with the same weights."""
    copy = models.Bert.from_config(encoder.get_config())
    copy.set_weights(encoder.get_weights())
    return copy


for name in TASKS:
    model = add_head(name, copied(encoder))
    inputs = {key: x[:4] for key, x in test[name][0].items()}
    w = {weight.path: to_numpy(weight) for weight in model.weights}
    read = {key: inputs[key] for key in ("token_ids", "segment_ids")}
    h = to_numpy(encoder(read)["sequence_output"])  # (B, T, D)
    if name == "span":
        logits = (h @ w["token/kernel"] + w["token/bias"]).swapaxes(1, 2)
        allowed = inputs["answerable"].copy()
        allowed[:, 0] = True  # the position of "no answer"
        logits = np.where(allowed[:, None], logits, -np.inf)
    else:
        if name != "tokens":
            h = np.tanh(h[:, 0] @ w["pooler/kernel"] + w["pooler/bias"])
        logits = h @ w["output/kernel"] + w["output/bias"]
    p = np.exp(logits - logits.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    expected = to_numpy(keras.ops.softmax(model(inputs)))
    np.testing.assert_allclose(p, expected, atol=1e-4)
print("NumPy and the library agree for all four heads.")

# %% [markdown]
# ## With and without pre-training
#
# We train each task twice, with the same head, examples, learning rate and
# number of epochs. Only the initial weights of the encoder differ. The sentence
# task is run with three seeds, the others with a single one.


# %%
def fit(name, model, rate=1e-3, seed=1):
    """Trains the model of a task and returns its score on the test set."""
    keras.utils.set_random_seed(seed)
    epochs = 1 if QUICK else 20
    optimizer = make_optimizer(rate, epochs * -(-n // 32))
    model.compile(optimizer, LOSSES[name])
    model.fit(*train[name], batch_size=32, epochs=epochs, verbose=0)
    return score(name, model)


trained, scores = {}, {}
for name in TASKS:
    seeds = 3 if name == "sentence" and not QUICK else 1
    for kind in "pre-trained", "from scratch":
        found = scores[name, kind] = []
        for seed in range(1, 1 + seeds):
            keras.utils.set_random_seed(10 + seed)
            start = models.Bert.from_config(encoder.get_config())
            if kind == "pre-trained":
                start.set_weights(encoder.get_weights())
            model = add_head(name, start)
            found.append(fit(name, model, seed=seed))
            trained.setdefault((name, kind), model)  # of the first seed
        print(f"{name:8} {kind:12}", *(f"{x:.1%}" for x in found))
mean = {key: np.mean(values) for key, values in scores.items()}
gain = {x: mean[x, "pre-trained"] - mean[x, "from scratch"] for x in TASKS}
if not QUICK:
    assert gain["sentence"] > 0.03 and min(gain["pair"], gain["span"]) > -0.05
    assert min(mean["tokens", x] for x in ("pre-trained", "from scratch")) > 0.8
    assert max(mean["span", x] for x in ("pre-trained", "from scratch")) < 0.8

# %% tags=["hide-input"] alt="Bars of four tasks: the pre-trained encoder is 2 to 8 points better on each; both encoders reach 84 % or more on sentences, pairs and tokens, and 24 to 27 % on spans"
figure, axis = plt.subplots(figsize=(8, 2.3), layout="constrained")
for i, kind in enumerate(("pre-trained", "from scratch")):
    values = [mean[name, kind] for name in TASKS]
    bars = axis.bar(np.arange(4) + 0.4 * i - 0.2, values, 0.38, label=kind)
    axis.bar_label(bars, [f"{x:.0%}" for x in values])
axis.set_xticks(range(4), TASKS)
axis.set(ylim=(0, 1.25), ylabel="score on the test set")
axis.legend(ncols=2, loc="upper center")
plt.show()

# %% [markdown]
# In the sentence task, pre-training gains 5.5 to 9.5 points with each of the
# three seeds. Roles follow from the positions of a few words, and both encoders
# learn them. For questions, 200 examples suffice in neither case; [Question
# answering](../answers/index.md) uses thousands. With one seed, differences
# below five points, as in the other tasks, mean little.
#
# ## Training fewer weights
#
# We compare three ways on the sentence task, each with a single seed:
#
# - **all weights**, as above;
# - the **head alone**: the encoder is frozen, (D + 1) C weights are trained;
# - **adapters** (LoRA, explained below) in the query and value projections.
#
# The last two are trained with ten times the learning rate, 0.01 instead of
# 0.001: large steps cannot damage the frozen weights, and the few trained ones
# start from random values or zeros.

# %%
HEAD, r = "^output/", 4
ways = {}
for way in "all weights", "head alone", "adapters":
    keras.utils.set_random_seed(11)
    model = add_head("sentence", copied(encoder))
    if way == "head alone":
        training.freeze(model)
        training.unfreeze(model, HEAD)
    elif way == "adapters":
        training.enable_lora(model, r, also_train=HEAD)
    rate = 1e-3 if way == "all weights" else 1e-2
    weights = sum(np.prod(w.shape) for w in model.trainable_weights)
    ways[way] = fit("sentence", model, rate)
    print(f"{way:18} {weights:8,} weights, accuracy {ways[way]:.1%}")
adapted = model
if not QUICK:
    assert ways["adapters"] > ways["head alone"] + 0.1
    assert ways["head alone"] < mean["sentence", "from scratch"]

# %% [markdown]
# ### Why the head alone is worse than training from scratch
#
# The head alone is a linear classifier of one fixed vector, the pooled vector
# of `[CLS]`. In pre-training, its only use is to tell whether one text follows
# another. A model from scratch has no pre-training, but all of its weights
# adapt to the labels. To see what the frozen vectors contain, we fit a logistic
# regression on the pooled vector, and on the mean of all token vectors.


# %%
def features(inputs):
    """Returns fixed vectors of sentences, by name."""
    output = encoder.predict(inputs, verbose=0)
    real = (inputs["token_ids"] != tokenizer.pad_id)[..., None]
    tokens = (output["sequence_output"] * real).sum(1) / real.sum(1)
    return {"pooled [CLS]": output["pooled_output"], "mean of tokens": tokens}


fixed = {}
known, new = (features(x["sentence"][0]) for x in (train, test))
for name in known:
    probe = LogisticRegression(C=10.0, max_iter=2000)
    probe.fit(known[name], train["sentence"][1])
    fixed[name] = probe.score(new[name], test["sentence"][1])
    print(f"{name:15} {fixed[name]:.1%}")
if not QUICK:
    assert fixed["mean of tokens"] > fixed["pooled [CLS]"]

# %% [markdown]
# The first is like the head alone, but trained until it converges. The token
# vectors contain more about the kind of statement than the pooled vector, which
# fine-tuning and adapters change too.
#
# ## LoRA, and the variant of Keras
#
# Hu et al. 2022 (<https://arxiv.org/abs/2106.09685>) freeze a matrix W (D, F)
# and train the product of two low-rank matrices:
#
# $$y = x\,(W + A A'), \qquad A: (D, r), \quad A': (r, F)$$
#
# ![The input passes the frozen matrix W, and beside it the two small matrices A
# and A'; both results are added](../../diagrams/lora.svg)
#
# A' starts from zeros, so the model is unchanged at first. The update A A' has at
# most rank r and $r (D + F)$ weights. (The paper writes $y = Wx + BAx$, so our A'
# is its B, and scales the product by α / r; here α = r.)
#
# In Keras, a projection to N heads of H features is an `EinsumDense` layer with
# a kernel (D, N, H). For such a kernel, Keras's `enable_lora` makes
# **A (D, N, r) and A' (r, H)**: each head n has its own $A_n$, and all heads
# share A',
#
# $$y_n = x\,(W_n + A_n A')$$
#
# So r is the rank *per head*: as a matrix (D, N H), the update can have rank
# N r. It has $r (D N + H)$ weights, more than Hu et al. have for the same r. The
# update can be added to the frozen matrix: the merged model has no adapters and
# is as fast as before.

# %%
w = {x.path: to_numpy(x).astype("float64") for x in adapted.weights}
updates = {}
for path in w:
    if path.endswith("lora_kernel_a"):
        A, shared = w[path], w[path[:-1] + "b"]  # A and A'
        assert A.shape == (D, N, r) and shared.shape == (r, H)
        name = path.replace("lora_kernel_a", "kernel")
        updates[name] = np.einsum("dnr,rh->dnh", A, shared)
rank = np.linalg.matrix_rank
delta = updates["block_0/self_attention/query/kernel"]
per_head = [int(rank(delta[:, n])) for n in range(N)]
joint = int(rank(delta.reshape(D, N * H)))
print(f"rank of the update: {per_head} per head, {joint} for all heads")
print(f"{r * (D * N + H):,} weights; Hu et al.: {r * (D + N * H):,}")
assert max(per_head) <= r and joint <= N * r
if not QUICK:
    assert joint > r
merged = add_head("sentence", copied(encoder))  # without adapters
for x in merged.weights:
    x.assign((w[x.path] + updates.get(x.path, 0)).astype("float32"))
few = {key: x[:4] for key, x in test["sentence"][0].items()}
y, expected = to_numpy(merged(few)), to_numpy(adapted(few))
np.testing.assert_allclose(y, expected, atol=1e-3, rtol=0)

# %% [markdown]
# ## Catastrophic forgetting
#
# A network that learns a second task can lose the first, because training
# changes the same weights and nothing in the new loss protects the old task
# (McCloskey and Cohen 1989). We fine-tune the encoder of the sentence task on
# pairs, and measure both tasks after each epoch. Two remedies:
#
# - **replay**: after each epoch, train on 40 of the 200 old examples again;
# - **adapters**: freeze the encoder, and train adapters for the new task.
#   Without its adapters, the encoder is unchanged.


# %%
def second_task(remedy):
    """Learns pairs after sentences; returns both accuracies per epoch."""
    keras.utils.set_random_seed(1)
    known = trained["sentence", "pre-trained"]
    old = add_head("sentence", copied(known.encoder))
    old.set_weights(known.get_weights())
    new = add_head("pair", old.encoder)  # both heads share the encoder
    if remedy == "adapters":
        training.enable_lora(new, r, also_train=HEAD)
    rate = 1e-2 if remedy == "adapters" else 1e-3
    for x in new, old:
        x.compile(keras.optimizers.AdamW(rate, clipnorm=1.0), class_loss)
    few = {key: x[:40] for key, x in train["sentence"][0].items()}
    curve = [(score("sentence", old), score("pair", new))]
    for _ in range(1 if QUICK else 12):
        new.fit(*train["pair"], batch_size=32, verbose=0)
        if remedy == "replay":
            old.fit(few, train["sentence"][1][:40], batch_size=20, verbose=0)
        reader = known if remedy == "adapters" else old
        curve.append((score("sentence", reader), score("pair", new)))
    if remedy == "adapters":  # without them, the encoder is that of `known`
        frozen = {x.path: to_numpy(x) for x in old.encoder.weights}
        for x in known.encoder.weights:
            np.testing.assert_array_equal(frozen[x.path], to_numpy(x))
    return np.array(curve)


curves = {x: second_task(x) for x in ("no remedy", "replay", "adapters")}
for remedy, curve in curves.items():
    (start, _), (end, new) = curve[0], curve[-1]
    print(f"{remedy}: sentences {start:.1%} -> {end:.1%}, pairs {new:.1%}")
if not QUICK:
    forgotten = curves["no remedy"][:, 0]
    assert forgotten[-1] < forgotten[0] - 0.05
    assert curves["replay"][-1, 0] > forgotten[-1]
    assert all(x[-1, 1] > x[0, 1] for x in curves.values())

# %% tags=["hide-input"] alt="Accuracy by epoch of the second task: that of sentences falls without a remedy, falls less with replay, and stays with adapters; that of pairs rises in all three"
figure, axes = plt.subplots(1, 2, figsize=(9, 2.5), layout="constrained")
for i, title in enumerate(("old task: sentences", "new task: pairs")):
    for remedy, curve in curves.items():
        axes[i].plot(curve[:, i], label=remedy)
    axes[i].set(xlabel="epoch on pairs", title=title, ylim=(0, 1.02))
axes[0].set_ylabel("accuracy")
axes[1].legend(loc="lower right")
plt.show()

# %% [markdown]
# This is one run with one seed; how much is forgotten depends on the learning
# rate and the number of epochs. An encoder can forget its pre-training in the
# same way, which is why the learning rate of fine-tuning is kept low.
#
# ## Summary
#
# - A head is one matrix: on `[CLS]` for classes, on all tokens otherwise.
# - Pre-training can help where labeled examples are few.
# - A head on a frozen encoder is limited by what the pooled vector contains.
# - LoRA trains a low-rank update; in Keras, its rank is per head.
# - A second task can overwrite the first; replay and adapters reduce this.
#
# ## Exercises
#
# **1.** A new head starts at random. What happens to the encoder in the first
# steps if the learning rate is high? What prevents it on this page?
#
# <details markdown>
# <summary>Answer</summary>
#
# The gradients pass through a random head, and large steps along them destroy
# what pre-training has learned. Warmup starts with small steps.
#
# </details>
#
# **2.** Which r in the form of Hu et al. has about as many weights as r = 4 in
# the variant of Keras, for D = 96 and N = 4? Which of the two can represent
# every update of rank 8?
#
# <details markdown>
# <summary>Answer</summary>
#
# $4 (96 \cdot 4 + 24) = 1632$ and $r (96 + 96) = 192 r$, so r = 8.5. Only the
# form of Hu et al. with r = 8 or more: in the other, all heads share the r = 4
# rows of A', so the update of one head has at most rank 4.
#
# ```python
# assert 4 * (96 * 4 + 24) == 1632 and round(1632 / (96 + 96), 1) == 8.5
# ```
#
# </details>
#
# **Next**: [GPT from an empty file to samples](../gpt/index.md) trains a
# decoder, which reads from left to right.
