# %% [markdown]
# # Fine-tuning: one encoder, four tasks
#
# What a model has learned by guessing hidden words, is it of use for anything
# else? Put a small head on it, and train both a little.
#
# ![Scores of four tasks, each with a pre-trained encoder and with one that
# starts from nothing](fine_tuning-1.png)
#
# Every pair of bars is one network, trained alike on the same few examples. All
# that differs is what its weights were to begin with.
#
# You will
#
# - put **four heads** on one encoder: a class for a sentence, a class for a
#   pair, a span that answers, a tag for every word (Devlin et al. 2019, sec. 4,
#   <https://arxiv.org/abs/1810.04805>);
# - write each head in **NumPy**, and its loss, and find the model's numbers;
# - fine-tune from [BERT's](../bert/index.md) weights and from **nothing**, and
#   compare;
# - look at what each head **says**, and see that padding changes none of it;
# - train **less than all**: a head alone, its own rate for each layer, low-rank
#   adapters, and add these in.
#
# On two cores ten minutes at most: the run of this page had one. All texts, of
# the pre-training and of the tasks, are written by a grammar; nothing is
# downloaded. As a program, on any backend:
#
#     KERAS_BACKEND=torch .venv/bin/python tutorials/fine_tuning.py
#
# With `PRETRAINED=` it begins with the model of your own run of the tutorial on
# BERT; with `DATA=` it learns CLINC150, MED, RESTAURANTS-8K and WNUT-17, and
# what it makes of them is [here](../../results/text_classification.md):
#
#     PRETRAINED=runs/bert-data DATA=data .venv/bin/python \
#         tutorials/fine_tuning.py

# %%
import json

import corpora
import fine_tuning_settings
import keras
import mask_lines
import numpy as np
import program_settings
import share_bars
import tuning_data
import tuning_runs
from documents import passage_documents, sentence_documents
from mask_plots import draw_levels
from masked_batches import masked_batches
from matplotlib.figure import Figure
from token_strips import Strips, draw_strips

from keras_attn.layers import RotaryPosition
from keras_attn.models import Bert, BertPretrainer, bio_spans
from keras_attn.text import WordPieceTokenizer, sentence_pairs
from keras_attn.training import (
    SequenceCrossentropy,
    enable_lora,
    freeze,
    layerwise_lr_multipliers,
    unfreeze,
)

try:
    run = fine_tuning_settings.read()
    if run.data:
        tasks = tuning_data.of_folder(run.data)
    else:
        tasks = tuning_data.of_grammar(run.examples, run.seed)
    tasks = {
        name: tasks[name] for name in run.tasks.split(",") if name in tasks
    }
    if not tasks:
        raise ValueError(
            f"DATA must hold one of TASKS. Received: TASKS={run.tasks}"
        )
    if run.pretrained:
        pretrainer, tokenizer = mask_lines.load(run.pretrained)
except (corpora.CorpusError, ValueError) as error:
    program_settings.explain_and_leave("fine_tuning", error)

keras.utils.set_random_seed(run.seed)
run.out.mkdir(parents=True, exist_ok=True)
to_numpy = keras.ops.convert_to_numpy
results = {"backend": keras.backend.backend(), "tasks": {}}
# What is asserted of trained models is so with the settings of this page.
WHOLE = fine_tuning_settings.is_default(run)
print(f"Keras {keras.__version__} on {keras.backend.backend()}")

# %% [markdown]
# ## An encoder that has guessed hidden words
#
# As in [BERT from scratch](../bert/index.md), in short: documents, pieces,
# pairs, one `fit` on both tasks. Half of the documents are passages, half are
# sentences of all patterns of the grammar; what they say has no labels.

# %%
if not run.pretrained:
    documents = passage_documents(run.passages, run.seed + 1000)
    documents += sentence_documents(run.passages, run.seed + 2000)
    tokenizer = WordPieceTokenizer.train_from_lines(
        [sentence for document in documents for sentence in document], 800
    )
    pretrainer = BertPretrainer(
        Bert(
            tokenizer.vocabulary_size,
            num_layers=run.layers,
            num_heads=4,
            hidden_dim=run.width,
            intermediate_dim=4 * run.width,
            dropout=0.0,
            attention_dropout=0.0,
            position_embedding=None,
            attention_position=RotaryPosition(),
        )
    )
    pairs = sentence_pairs(
        [tokenizer.encode(document) for document in documents], 37, run.seed
    )
    batches = masked_batches(pairs, tokenizer, 40, 32, run.seed)
    steps = run.epochs * len(batches)
    pretrainer.compile(
        keras.optimizers.AdamW(
            keras.optimizers.schedules.CosineDecay(
                0.0, steps, warmup_target=2e-3, warmup_steps=1 + steps // 10
            ),
            global_clipnorm=1.0,
        ),
        {
            "token_logits": SequenceCrossentropy(pad_id=-1),
            "next_sentence_logits": keras.losses.SparseCategoricalCrossentropy(
                from_logits=True
            ),
        },
    )
    pretrainer.fit(batches, epochs=run.epochs, shuffle=False, verbose=2)
encoder = pretrainer.encoder
V, D = encoder.vocabulary_size, encoder.hidden_dim
print(f"V = {V:,}, D = {D}, {encoder.count_params():,} parameters")

# %% [markdown]
# ## Four tasks
#
# | head | reads | says | scored by |
# | --- | --- | --- | --- |
# | sentence | `[CLS]` a `[SEP]` | a class | accuracy |
# | pair | `[CLS]` a `[SEP]` b `[SEP]` | a class | accuracy |
# | span | `[CLS]` question `[SEP]` text `[SEP]` | both ends | F1 of spans |
# | tokens | `[CLS]` words `[SEP]` | a tag a word | F1 of entities |
#
# Behind each word of a text there may be several pieces; the tag is that of the
# first.

# %%
for name, data in tasks.items():
    inputs, labels = data.task.encode(data.train[:4], tokenizer, run.length)
    print(f"--- {name}: {len(data.train):,} examples to learn from,", end=" ")
    print(f"{len(data.test):,} to be tested on")
    row = (tokenizer.vocabulary[i] for i in inputs["token_ids"][0])
    print(" ", *(piece for piece in row if piece != "[PAD]"))
    print(f"  answer: {data.train[0][-1]}")
    print(f"  inputs {inputs['token_ids'].shape}, labels {labels.shape}")
    assert len(labels) == len(inputs["token_ids"])

# %% [markdown]
# ## Four heads, by hand
#
# The encoder gives a vector of D features for each of T pieces, $h$ (T, D). A
# head is one matrix $W$ (D, C) behind it. A **class** is made of $h_0$, the
# vector of `[CLS]`; $W_p$ (D, D) comes with BERT, which has asked it whether a
# sentence follows:
#
# $$p = \mathrm{softmax}\big(\tanh(h_0 W_p + b_p)\, W + b\big) .$$
#
# Of a **span** there are two ends, C = 2. Each is one place of the text, so the
# softmax goes over places; `[CLS]` is the place of "no answer":
#
# $$p^{\mathrm{start}}_i = \frac{e^{h_i \cdot w_1 + b_1}}
# {\sum_j e^{h_j \cdot w_1 + b_1}}, \qquad
# p^{\mathrm{end}}_i = \frac{e^{h_i \cdot w_2 + b_2}}
# {\sum_j e^{h_j \cdot w_2 + b_2}} .$$
#
# A **tag** is a class of one piece, the same matrix for all:
#
# $$p_i = \mathrm{softmax}(h_i W + b) .$$


# %%
def softmax(logits):
    """Returns the probabilities over the last axis."""
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def class_head(h, w):
    """Returns p (C,) of the vectors h (T, D)."""
    pooled = np.tanh(h[0] @ w["pooler/kernel"] + w["pooler/bias"])
    return softmax(pooled @ w["output/kernel"] + w["output/bias"])


def span_head(h, w, may):
    """Returns p (2, T) of starts and ends, where `may` (T,) is True."""
    logits = (h @ w["token/kernel"] + w["token/bias"]).T
    return softmax(np.where(may, logits, -np.inf))


def tag_head(h, w):
    """Returns p (T, C), a row for each piece."""
    return softmax(h @ w["output/kernel"] + w["output/bias"])


def numpy_of(model):
    """Returns a model's weights by name."""
    return {
        weight.path: to_numpy(weight).astype("float64")
        for weight in model.weights
    }


def says(model, inputs):
    """Returns a model's probabilities."""
    return softmax(to_numpy(model(inputs)).astype("float64"))


# %% [markdown]
# All learn the same: what is right shall be likely. With n labels in a batch,
# one for each sentence, two for each question, one for each word,
#
# $$L = -\frac{1}{n} \sum_{k=1}^{n} \log p_k(y_k) .$$

# %%
for name, data in tasks.items():
    inputs, labels = data.task.encode(data.train[:4], tokenizer, run.length)
    model = data.task.model(tuning_runs.copied(encoder))
    logits = model(inputs)
    w = numpy_of(model)
    read = {part: inputs[part] for part in ("token_ids", "segment_ids")}
    vectors = to_numpy(encoder(read)["sequence_output"])
    B, T = inputs["token_ids"].shape
    assert vectors.shape == (B, T, D)
    if name == "span":
        may = inputs["answerable"].copy()
        may[:, 0] = True  # [CLS]: no answer
        p = [span_head(h, w, m) for h, m in zip(vectors, may, strict=True)]
        shape = (B, 2, T)
    elif name == "tokens":
        p = [tag_head(h, w) for h in vectors]
        shape = (B, T, len(data.task.tags))
    else:
        p = [class_head(h, w) for h in vectors]
        shape = (B, len(data.task.classes))
    p = np.array(p)
    assert p.shape == tuple(logits.shape) == shape
    np.testing.assert_allclose(p.sum(-1), 1)
    gap = np.abs(p - says(model, inputs)).max()
    there = labels >= 0
    right = np.take_along_axis(p, np.maximum(labels, 0)[..., None], -1)
    by_hand = -np.log(right[..., 0][there]).mean()
    loss = float(to_numpy(data.task.loss(labels, logits)))
    print(
        f"{name:<8} p {shape!s:<12} {gap:.0e} apart; "
        f"{there.sum():>2} labels, L = {by_hand:.4f}, the library's {loss:.4f}"
    )
    assert gap < 1e-4 and abs(loss - by_hand) < 1e-3

# %% [markdown]
# ## With and without
#
# Both arms are the same network with the same head, the same examples in the
# same order, the same passes. Where several learning rates are given, each arm
# takes the one that is best for it on validation examples, and then the test is
# looked at once a seed.

# %%
rates = fine_tuning_settings.numbers(run.rates)
shares = fine_tuning_settings.numbers(run.shares)
passes = fine_tuning_settings.numbers(run.passes)
trained = {name: {} for name in tasks}
for name, data in tasks.items():
    results["tasks"][name] = {"measure": data.task.measure, "shares": {}}
    for share, count in zip(shares, passes, strict=True):
        print(f"{name}: {share:.0%} of the examples, {count:.0f} passes")
        found = tuning_runs.compare(
            data,
            encoder,
            tokenizer,
            run,
            share,
            int(count),
            rates,
            trained[name],
        )
        results["tasks"][name]["shares"][f"{share:g}"] = found
        for arm, result in found.items():
            scores = np.array(result["scores"])
            print(
                f"  {arm:<12} {data.task.measure} {scores.mean():.1%}"
                + (
                    f" ± {scores.std(ddof=1):.1%} over {len(scores)} seeds"
                    if len(scores) > 1
                    else ""
                )
            )
    # What is known so far is kept, whatever stops the rest.
    (run.out / "results.json").write_text(
        json.dumps(results, indent=1), encoding="utf-8"
    )

# %% alt="Scores of each task, pre-trained and from nothing"
figure = Figure(figsize=(9, 3.4), layout="constrained")
panel = figure.subplots()
bars = [
    (name, share, found)
    for name, task in results["tasks"].items()
    for share, found in task["shares"].items()
]
for number, arm in enumerate(("pre-trained", "from nothing")):
    scores = [np.array(found[arm]["scores"]) for *_, found in bars]
    spread = [x.std(ddof=1) if len(x) > 1 else 0 for x in scores]
    drawn = panel.bar(
        np.arange(len(bars)) + 0.4 * number - 0.2,
        [x.mean() for x in scores],
        0.38,
        yerr=spread if any(spread) else None,
        label=arm,
    )
    panel.bar_label(drawn, [f"{x.mean():.0%}" for x in scores])
panel.set_xticks(
    range(len(bars)),
    [
        f"{name}\n{results['tasks'][name]['measure']}"
        + (f"\n{float(share):.0%} of the examples" if len(shares) > 1 else "")
        for name, share, _ in bars
    ],
)
panel.set(ylim=(0, 1.15), ylabel="on the test")
panel.legend(ncols=2, loc="upper center")
figure

# %% [markdown]
# What guessing has taught is which words are alike and how sentences are built.
# Two hundred examples are too few to learn that as well: so the patterns of
# sentences are told apart far better. Where that is not what is missing, less
# or nothing is gained. Who did what where stands in the order of the words, and
# both learn all of it; of pairs both find most of what follows. And to answer
# questions takes more than two hundred examples from either, as in
# [the tutorial on answers](../answers/index.md).
#
# ## What the heads say
#
# ### Classes
#
# Of the first test sentences and pairs, with the right class in brackets.

# %% alt="Probabilities of classes, of two sentences and of two pairs"
panels = {}
for name in ("sentence", "pair"):
    if name not in tasks:
        continue
    task, examples = tasks[name].task, tasks[name].test[:2]
    inputs, _ = task.encode(examples, tokenizer, run.length)
    rows = says(trained[name]["pre-trained"], inputs)
    assert rows.shape == (len(examples), len(task.classes))
    for (first, second, label), p in zip(examples, rows, strict=True):
        best = np.argsort(-p)[:4]
        title = f"{first} /\n{second}" if second else first
        panels[f"{title}\n({label})"] = [(task.classes[i], p[i]) for i in best]
share_bars.draw_shares(panels) if panels else None

# %% [markdown]
# ### Both ends
#
# Of all legal pairs of ends the likeliest is the answer,
#
# $$(i, j) = \mathop{\mathrm{argmax}}_{0 < i \le j}\
# \log p^{\mathrm{start}}_i + \log p^{\mathrm{end}}_j ,$$
#
# and there is none if $\log p^{\mathrm{start}}_0 + \log p^{\mathrm{end}}_0$ is
# at least as much.


# %%
def best_ends(logits):
    """Returns (start, end) of logits (2, T); (-1, -1) for no answer."""
    # The same as with log p: what a softmax takes away is the same everywhere.
    total = logits[0, :, None] + logits[1, None, :]
    legal = np.triu(np.ones(total.shape, bool))  # i <= j
    legal[0] = False
    best = np.where(legal, total, -np.inf).argmax()
    start, end = np.unravel_index(best, total.shape)
    return (start, end) if total[start, end] > total[0, 0] else (-1, -1)


# %% [markdown]
# A question that is answered rightly, if there is one among sixty-four, and one
# that is not:

# %% alt="Probabilities of starts and ends over two passages, and the answers"
panels = []
if "span" in tasks:
    task, examples = tasks["span"].task, tasks["span"].test[:64]
    model = trained["span"]["pre-trained"]
    inputs, labels = task.encode(examples, tokenizer, run.length)
    logits = model.predict(inputs, batch_size=64, verbose=0)
    spans = model.extract(inputs, batch_size=64)
    assert logits.shape == (len(examples), 2, inputs["token_ids"].shape[1])
    found = np.array([best_ends(row) for row in logits])
    assert (found == np.stack([spans.start, spans.end], 1)).all()
    p = softmax(logits.astype("float64"))
    right = (np.maximum(found, 0) == labels).all(1)
    answered = labels[:, 0] > 0
    for title, chosen in (("right", right), ("wrong", ~right)):
        for row in np.flatnonzero(chosen & answered)[:1]:
            ids = inputs["token_ids"][row]
            count = int((ids != tokenizer.pad_id).sum())
            truth = np.zeros(count)
            truth[labels[row, 0] : labels[row, 1] + 1] = 1
            rows = {"start": p[row, 0, :count], "end": p[row, 1, :count]}
            panels.append(
                [
                    Strips(
                        [tokenizer.vocabulary[i] for i in ids[:count]],
                        rows | {"the answer": truth},
                        title,
                    )
                ]
            )
draw_strips(panels, label="probability") if panels else None

# %% [markdown]
# ### Tags
#
# Those of the first test sentence. Pieces that go on with a word are not asked,
# and stay white. What is tagged is read as entities: `B-` begins one, `I-` goes
# on.

# %% alt="Probabilities of tags over the pieces of a sentence"
panels = []
if "tokens" in tasks:
    task, examples = tasks["tokens"].task, tasks["tokens"].test[:1]
    inputs, labels = task.encode(examples, tokenizer, run.length)
    p = says(trained["tokens"]["pre-trained"], inputs)[0]  # (T, C)
    assert p.shape == (labels.shape[1], len(task.tags))
    asked = labels[0] >= 0
    for kind, start, end in bio_spans(
        [task.tags[i] for i in p[asked].argmax(-1)]
    ):
        print(f"{kind}:", *examples[0][0][start : end + 1])
    shown = np.where(asked[:, None], p, np.nan)
    panels.append(
        [
            Strips(
                [tokenizer.vocabulary[i] for i in inputs["token_ids"][0]],
                dict(zip(task.tags, shown.T, strict=True)),
            )
        ]
    )
draw_strips(panels, label="probability") if panels else None

# %% [markdown]
# ### Padding changes nothing
#
# A batch is as long as its longest row; the others are padded. An example must
# not notice: the encoder lets no piece look at padding, and no span ends there.
# We add nine places, and then say, wrongly, that something stands in them.

# %% alt="What nine places of padding change: hidden, and seen"
PADS = 9
hidden, seen = {}, {}
for name, data in tasks.items():
    inputs, _ = data.task.encode(data.test[:1], tokenizer, run.length)
    T = inputs["token_ids"].shape[1]
    # 0 is [PAD], and False.
    longer = {
        part: np.pad(x, ((0, 0), (0, PADS))) for part, x in inputs.items()
    }
    there = np.ones((1, T + PADS), bool)
    alone, padded, wrong = (
        says(trained[name]["pre-trained"], x)
        for x in (inputs, longer, longer | {"padding_mask": there})
    )
    if name == "span":
        assert padded.shape == (1, 2, T + PADS) and not padded[..., T:].any()
    short = tuple(slice(0, size) for size in alone.shape)
    hidden[name] = float(np.abs(padded[short] - alone).max())
    seen[name] = float(np.abs(wrong[short] - alone).max())
    print(
        f"{name:<8} probabilities move by {hidden[name]:.0e}; "
        f"if padding is seen, by {seen[name]:.0e}"
    )
assert max(hidden.values()) < 1e-4
results["padding"] = {"hidden": hidden, "seen": seen}
draw_levels(
    {"padding is hidden": hidden, "padding is seen": seen},
    "probabilities move by",
)

# %% [markdown]
# ## Less than all
#
# All weights of a large model need not move. Three other ways, on the first
# task. The **head alone**: the encoder is frozen, (D + 1) C weights learn.
# **Smaller steps for lower layers** (Howard and Ruder 2018,
# <https://arxiv.org/abs/1801.06146>): in block l of L, counted from 0, and in
# the embeddings the rates are
#
# $$\eta_l = \eta\, \delta^{L - l}, \qquad
# \eta_{\mathrm{embeddings}} = \eta\, \delta^{L + 1}, \qquad \delta = 0.7 .$$
#
# **Low-rank adapters** (Hu et al. 2022, <https://arxiv.org/abs/2106.09685>):
# beside the frozen matrices of queries and values two narrow ones learn,
#
# $$y = x W + x A B, \qquad A: D \times N \times r, \quad B: r \times H ,$$
#
# with r = 4 and N heads of H features: r (D N + H) weights each. B begins as
# zeros, so that the model begins as it was.

# %%
HEAD, RANK, DECAY = "^(output|token|no_answer)/", 4, 0.7
if run.ways:
    name, data = next(iter(tasks.items()))
    results["ways"] = {}
    L, N = encoder.num_layers, encoder.num_heads
    for way in ("all weights", "head alone", "lower rates below", "adapters"):
        keras.utils.set_random_seed(run.seed)
        model = data.task.model(tuning_runs.copied(encoder))
        decay, rate = 1.0, rates[0]
        if way == "head alone":
            freeze(model)
            unfreeze(model, HEAD)
            rate *= 10  # few weights, of which none is to be kept
        elif way == "adapters":
            enable_lora(model, RANK, also_train=HEAD)
            rate *= 10
        elif way == "lower rates below":
            decay = DECAY
            factors = [DECAY ** (L - block) for block in range(L)]
            factors.append(DECAY ** (L + 1))
            theirs = list(layerwise_lr_multipliers(model, DECAY).values())
            np.testing.assert_allclose(theirs, factors)
        tuning_runs.train(
            model,
            data,
            data.train[: run.most or None],
            tokenizer,
            run,
            rate,
            int(passes[0]),
            run.seed,
            decay,
        )
        score = data.task.score(model, data.test, tokenizer, run.length)
        moved = sum(int(np.prod(w.shape)) for w in model.trainable_weights)
        results["ways"][way] = {"score": score, "weights": moved}
        print(
            f"{name}, {way:<18} {moved:>9,} weights learn, "
            f"{data.task.measure} {score:.1%}"
        )
    learn = {way: found["weights"] for way, found in results["ways"].items()}
    # All but the span have a matrix of as many columns as classes.
    C = getattr(model, "num_classes", 2)
    assert learn["head alone"] == (D + 1) * C
    assert learn["adapters"] - learn["head alone"] == (
        2 * L * RANK * (D * N + D // N)
    )

# %% alt="The rate of each layer, and the score of each way with its weights"
figure = None
if run.ways:
    figure = Figure(figsize=(9.5, 2.8), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[2, 3])
    parts = ["embeddings", *(f"block {block}" for block in range(L)), "head"]
    left.barh(parts, [factors[-1], *factors[:-1], 1.0])
    left.set(xlabel="share of the rate", title="lower rates below")
    scores = [found["score"] for found in results["ways"].values()]
    drawn = right.barh([*learn], scores)
    right.bar_label(
        drawn,
        [
            f" {score:.1%}\n {count:,} weights"
            for score, count in zip(scores, learn.values(), strict=True)
        ],
        fontsize=8,
    )
    right.invert_yaxis()
    right.set(xlim=(0, 1.45), xticks=[0, 0.5, 1], xlabel=data.task.measure)
figure

# %% [markdown]
# A head alone reads off what is there already, and that is not enough: the
# patterns of sentences are not all told apart by what guesses words. Adapters
# move a fiftieth of the weights, and that is enough.
#
# ### Adapters can be added in
#
# As $x W + x A B = x (W + A B)$, an adapted model is a plain one with other
# matrices; used, it costs no more than that.

# %%
if run.ways:
    w = numpy_of(model)  # the one with adapters, which was last
    merged = data.task.model(tuning_runs.fresh(encoder))
    added = 0
    for weight in merged.weights:
        value = w[weight.path]
        adapter = weight.path.replace("kernel", "lora_kernel")
        if f"{adapter}_a" in w:
            a, b = w[f"{adapter}_a"], w[f"{adapter}_b"]
            assert a.shape == (D, N, RANK) and b.shape == (RANK, D // N)
            value = value + np.einsum("dnr,rh->dnh", a, b)
            added += 1
        weight.assign(value.astype("float32"))
    inputs, _ = data.task.encode(data.test[:4], tokenizer, run.length)
    gap = np.abs(says(merged, inputs) - says(model, inputs)).max()
    print(f"{added} matrices added in: probabilities {gap:.0e} apart")
    assert added == 2 * L and gap < 1e-4
    # What is frozen has not moved.
    for weight in encoder.weights:
        np.testing.assert_array_equal(w[weight.path], to_numpy(weight))

# %% [markdown]
# ## What should hold
#
# With the settings of this page:

# %%
if WHOLE:
    means = {
        arm: np.mean(
            [
                task["shares"]["1"][arm]["scores"]
                for task in results["tasks"].values()
            ]
        )
        for arm in ("pre-trained", "from nothing")
    }
    assert means["pre-trained"] > means["from nothing"]
    ways = results["ways"]
    assert ways["head alone"]["weights"] < ways["adapters"]["weights"]
    assert ways["adapters"]["weights"] < 0.1 * ways["all weights"]["weights"]
    assert ways["adapters"]["score"] > ways["head alone"]["score"]
    # To hide the padding is what keeps it from the answers.
    assert max(seen.values()) > 10 * max(hidden.values())

# %% [markdown]
# ## Keeping it

# %%
results["settings"] = {k: str(v) for k, v in run._asdict().items()}
(run.out / "results.json").write_text(
    json.dumps(results, indent=1), encoding="utf-8"
)
program = ".venv/bin/python tutorials/fine_tuning.py"
print(f"""
All figures are in {run.out / "results.json"}.

What to try next, with {program} behind it:
  EXAMPLES=50                     fewer examples of each task
  SEEDS=5 RATES=3e-4,1e-3,3e-3    both arms with their best rate, five seeds
  PRETRAINED=runs/bert-data DATA=data
                                  people's sentences""")

# %% [markdown]
# ## Exercises
#
# **1.** Fill in. For a sentence of 12 pieces with `[CLS]` and `[SEP]` the
# encoder gives a tensor of the shape ___; the class is made of ___ of its
# numbers. A tagger with seven tags gives ___ logits, and its loss counts
# those of ___.
#
# <details markdown>
# <summary>Answer</summary>
#
# (1, 12, D). D of them, the first vector. 12 x 7 = 84; those of the first piece
# of each word: `[CLS]`, `[SEP]` and pieces that begin with `##` have no label.
#
# </details>
#
# **2.** `[CLS]` is also where a span points that does not exist. Why is that no
# waste of a place? What is compared to decide that there is no answer?
#
# <details markdown>
# <summary>Answer</summary>
#
# No answer ever begins or ends at `[CLS]`, so that place is free to mean
# "none". Its start plus its end, against the best start plus end with the end
# not in front of the start.
#
# </details>
#
# **3.** A new head on a pre-trained encoder begins at random. What happens to
# the encoder in the first steps if the rate is high from the start? Name two
# things on this page that prevent it.
#
# <details markdown>
# <summary>Answer</summary>
#
# The gradients that reach it come through a head that knows nothing, and large
# steps along them undo what was learned. The rate rises from 0 over the first
# tenth; lower layers can be given smaller rates, or be frozen altogether.
#
# </details>
