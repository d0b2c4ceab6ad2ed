# %% [markdown]
# # BERT from scratch
#
# Hide a word and let a model guess it from both sides. What must it know to
# guess well? Nobody has labelled anything, and there is no end of questions.
#
# ![What the trained model puts where a word is hidden, for six sentences, with
# its probabilities](bert-3.png)
#
# The first two differ in one word *behind* the mask. A model that reads from
# the left could not tell them apart.
#
# You will
#
# - cut words into **pieces**, and pack **pairs** of sentences;
# - **hide** pieces as BERT does (Devlin et al. 2019,
#   <https://arxiv.org/abs/1810.04805>), and see the shares;
# - pre-train on both tasks in **one `fit`**: hidden pieces, and whether the
#   second sentence follows the first;
# - compare with **counting** what stood between the same two neighbours;
# - ask what **[MASK]** is filled with, and whether it agrees with its subject;
# - keep the model for [fine-tuning](../fine_tuning/index.md).
#
# Eight minutes on one core. The documents are written by a grammar; nothing is
# downloaded. As a program, on any backend:
#
#     KERAS_BACKEND=torch .venv/bin/python tutorials/bert.py
#
# With `DATA=` it learns from your documents: a text with a sentence a line and
# an empty line behind each document, or a treebank. With `MODEL=` a saved model
# fills the masks of what you type:
#
#     DATA=en_ewt-ud-train.conllu.gz .venv/bin/python tutorials/bert.py
#     MODEL=runs/bert .venv/bin/python tutorials/bert.py

# %%
import json

import bert_settings
import keras
import mask_lines
import numpy as np
import program_settings
from documents import passage_documents, read_documents
from masked_batches import masked, masked_batches
from matplotlib.figure import Figure
from neighbour_counts import NeighbourCounts
from training_log import TrainingLog

from keras_attn.layers import RotaryPosition
from keras_attn.models import Bert, BertPretrainer
from keras_attn.text import WordPieceTokenizer, sentence_pairs
from keras_attn.training import SequenceCrossentropy, TrainingBackup

try:
    run = bert_settings.read()
    if run.model:
        mask_lines.run(run.model, run.input)
        raise SystemExit(0)
    if run.data:
        documents = read_documents(run.data)
    else:
        documents = passage_documents(run.passages, run.seed)
    # One document in twenty is kept for questions.
    kept, learned = (
        documents[::20],
        [document for i, document in enumerate(documents) if i % 20],
    )
    tokenizer = WordPieceTokenizer.train_from_lines(
        [sentence for document in learned for sentence in document], run.pieces
    )
except ValueError as error:
    program_settings.explain_and_leave("bert", error)

keras.utils.set_random_seed(run.seed)
run.out.mkdir(parents=True, exist_ok=True)
results = {"backend": keras.backend.backend()}
# What is asserted of trained models is so with the settings of this page.
WHOLE = bert_settings.is_default(run)
print(f"Keras {keras.__version__} on {keras.backend.backend()}")

# %% [markdown]
# ## Pieces of words
#
# The pieces are learned from the text: frequent words are one, rare ones
# several, and `##` marks those that go on. So there is no unknown word, as long
# as its characters are known.

# %%
V, T, B = tokenizer.vocabulary_size, run.context, run.batch
print(f"{len(learned):,} documents to learn from, {len(kept):,} kept")
print(f"V = {V:,}:", *tokenizer.vocabulary[:9], "...")
for text in (learned[0][0], "unbelievable grandmotherly"):
    print(text, "->", *tokenizer.tokens(text))

# %% [markdown]
# ## Pairs
#
# A row is `[CLS] first [SEP] second [SEP]`. In half of the pairs the second
# stretch follows the first in its document, in the other half it is from
# another one. $G$ tells the model which side a piece is on:
# $x_i = \mathrm{LN}(E[t_i] + G[s_i])$.

# %%
ids = [tokenizer.encode(document) for document in learned]
pairs = [
    pair
    for number in range(run.draws)
    for pair in sentence_pairs(ids, T - 3, seed=(run.seed, number))
]
test_pairs = sentence_pairs(
    [tokenizer.encode(document) for document in kept], T - 3, seed=run.seed
)
shown = tokenizer.pack([pairs[0].first], [pairs[0].second], T)
print(f"{len(pairs):,} pairs; the first:")
for name, row in shown.items():
    print(f"  {name:<12}", *row[0])
print(" ", *(tokenizer.vocabulary[i] for i in shown["token_ids"][0]))
print("  follows:", pairs[0].follows)

# %% [markdown]
# ## What is hidden
#
# Of the pieces 15 % are chosen. Of these 80 % become `[MASK]`, 10 % another
# piece, 10 % stay. Why not always `[MASK]`? Because there is none in the texts
# that the model is for: it shall not rest where it sees words. Each time a pair
# is read it is hidden anew.

# %%
for draw in range(3):
    (inputs, says) = masked(pairs[:1], tokenizer, T, draw)
    row = [tokenizer.vocabulary[i] for i in inputs["token_ids"][0]]
    print(*(piece for piece in row if piece != "[PAD]"))
    asked = [i for i in says["token_logits"][0] if i >= 0]
    print("   hidden:", *(tokenizer.vocabulary[i] for i in asked))

# %% alt="Shares of what was chosen: become the mask, become another, stay"
batches = masked_batches(pairs, tokenizer, T, B, run.seed)
counted = {"[MASK]": 0, "another": 0, "the same": 0}
for number in range(min(len(batches), 60)):
    inputs, says = batches[number]
    labels = says["token_logits"]
    reads = np.take_along_axis(
        inputs["token_ids"], inputs["masked_positions"], 1
    )
    there = labels >= 0
    counted["[MASK]"] += int((reads == tokenizer.mask_id)[there].sum())
    counted["the same"] += int((reads == labels)[there].sum())
    counted["another"] += int(
        ((reads != labels) & (reads != tokenizer.mask_id))[there].sum()
    )
P = labels.shape[1]
assert inputs["token_ids"].shape == inputs["segment_ids"].shape == (B, T)
assert inputs["masked_positions"].shape == labels.shape == (B, P)
total = sum(counted.values())
if total > 1000:
    assert abs(counted["[MASK]"] / total - 0.8) < 0.05
figure = Figure(figsize=(6, 1.6), layout="constrained")
panel = figure.subplots()
left = 0.0
for name, count in counted.items():
    panel.barh([0], [count / total], left=left, label=name)
    panel.text(left + count / total / 2, 0, f"{count / total:.0%}", ha="center")
    left += count / total
panel.set(yticks=[], xlim=(0, 1), xlabel="of the pieces that are chosen")
panel.legend(ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))
figure

# %% [markdown]
# ## The model
#
# Blocks in which every piece looks at all others, to the left and to the right:
# GPT's without the mask. Two heads on top, for two questions:
#
# $$\mathrm{logits}_p = \mathrm{LN}(\mathrm{gelu}(h_p W + b))\, E^\top + c,
# \qquad \mathrm{follows} = \tanh(h_0 W' + b')\, W'' + b'' ,$$
#
# for hidden places p only: to guess all T would be T/P times the work. The
# published BERT adds a learned vector of the place to each embedding;
# `ROTARY=0` does. This page turns queries and keys by their place instead.

# %%
places = {"positions": None, "position": RotaryPosition()} if run.rotary else {}
encoder = Bert(
    V,
    num_layers=run.layers,
    num_heads=run.heads,
    hidden_dim=run.width,
    intermediate_dim=4 * run.width,
    dropout=run.dropout,
    attention_dropout=run.dropout,
    max_length=max(T, 128),
    **places,
)
model = BertPretrainer(encoder)
print(f"{model.count_params():,} parameters")
inputs, _ = batches[0]
outputs = model(inputs)
assert tuple(outputs["token_logits"].shape) == (B, P, V)
assert tuple(outputs["next_sentence_logits"].shape) == (B, 2)

# %% [markdown]
# ### It looks both ways
#
# Change one piece: in GPT only later places noticed. Here all do.

# %%
row = {name: array[:1] for name, array in inputs.items()}
changed = {**row, "token_ids": row["token_ids"].copy()}
count = int((row["token_ids"] != tokenizer.pad_id).sum())
changed["token_ids"][0, count // 2] = tokenizer.unknown_id
before, after = (
    keras.ops.convert_to_numpy(
        encoder({name: x[name] for name in ("token_ids", "segment_ids")})[
            "sequence_output"
        ]
    )[0, :count]
    for x in (row, changed)
)
noticed = np.abs(before - after).max(-1) > 0
print(f"{noticed.sum()} of {count} places notice")
assert noticed.all()

# %% [markdown]
# ## Pre-training
#
# One `fit`, two losses, whose sum falls: cross-entropy of the hidden pieces,
# and of the two classes. AdamW, warmup, then half a cosine. Whatever kills the
# program, the same command goes on from the last pass; `FRESH=1` starts anew.

# %%
steps = run.epochs * len(batches)
rise = max(1, min(500, steps // 10))
schedule = keras.optimizers.schedules.CosineDecay(
    0.0,
    max(1, steps - rise),
    alpha=0.02,
    warmup_target=run.rate,
    warmup_steps=rise,
)
optimizer = keras.optimizers.AdamW(
    schedule, beta_2=0.98, weight_decay=0.01, global_clipnorm=1.0
)
optimizer.exclude_from_weight_decay(var_names=["bias", "gamma", "beta"])
model.compile(
    optimizer,
    {
        "token_logits": SequenceCrossentropy(pad_id=-1),
        "next_sentence_logits": keras.losses.SparseCategoricalCrossentropy(
            from_logits=True
        ),
    },
)
log = TrainingLog(run.minutes, len(pairs) * T)
try:
    backup = TrainingBackup(
        run.out / "backup",
        [log],
        data=batches,
        settings=program_settings.identity(run)
        | {"backend": keras.backend.backend()},
        resume=not run.fresh,
    )
except ValueError as error:
    program_settings.explain_and_leave("bert", f"{error}. FRESH=1 starts anew.")
model.fit(
    batches, epochs=run.epochs, shuffle=False, callbacks=[backup], verbose=2
)
results |= {
    "steps": len(log.losses),
    "seconds": log.seconds,
    "losses": log.losses,
}

# %% alt="The sum of both losses, step by step"
figure = Figure(figsize=(7.5, 3.0), layout="constrained")
panel = figure.subplots()
width = max(1, len(log.losses) // 100)
smooth = np.convolve(log.losses, np.ones(width) / width, "valid")
panel.plot(np.arange(len(smooth)) + width, smooth)
panel.axhline(np.log(V) + np.log(2), color="0.6", linestyle=":")
panel.text(len(smooth), np.log(V) + np.log(2), "knows nothing", ha="right")
panel.set(xlabel="step", ylabel="nats", ylim=(0, np.log(V) + 1.5))
figure

# %% [markdown]
# ## How well it guesses
#
# On pairs of documents that it never saw, hidden once. Beside it: the piece
# that stood most often between the same two neighbours.

# %%
reads, says = masked(test_pairs, tokenizer, T, run.seed)
answers = model.predict(reads, batch_size=B, verbose=0)
labels, there = says["token_logits"], says["token_logits"] >= 0
order = np.argsort(-answers["token_logits"], -1)
packed = tokenizer.pack(
    [pair.first for pair in pairs], [pair.second for pair in pairs], T
)["token_ids"]
counts = NeighbourCounts(row[row > 0].tolist() for row in packed)
guesses = np.array(
    [
        [counts.guess(row[place - 1], row[place + 1]) for place in places]
        for row, places in zip(
            np.pad(reads["token_ids"], ((0, 0), (0, 1))),
            reads["masked_positions"],
            strict=True,
        )
    ]
)
follows = answers["next_sentence_logits"].argmax(-1)
right = follows == says["next_sentence_logits"][:, 0]
results |= {
    "first": float((order[..., 0] == labels)[there].mean()),
    "among_five": float(
        (order[..., :5] == labels[..., None]).any(-1)[there].mean()
    ),
    "counting": float((guesses == labels)[there].mean()),
    "follows": float(right.mean()),
}
print(f"{there.sum():,} hidden pieces, {len(test_pairs):,} pairs")
print(f"BERT, its first guess:      {results['first']:.1%}")
print(f"BERT, among its first five: {results['among_five']:.1%}")
print(f"counting neighbours:        {results['counting']:.1%}")
print(f"does the second follow:     {results['follows']:.1%}")

# %% [markdown]
# ## What [MASK] is filled with

# %% alt="What fills the mask of each sentence, with probabilities"
SENTENCES = [
    "the [MASK] is tired .",
    "the [MASK] are tired .",
    "my sister [MASK] the old book .",
    "my sister cooked the old [MASK] .",
    "the horse is [MASK] the river .",
    "the red box [MASK] open .",
]
mask_lines.draw_fillings(SENTENCES, model, tokenizer)

# %% [markdown]
# One person is tired, several are: the word behind the mask says which. What is
# done with a book, it knows. What is cooked and old, it does not: the grammar
# calls no food old, and what it has learned of *old* wins over what it has
# learned of *cooked*.
#
# ### Does it agree?
#
# In kept documents we hide each *is* and *are*, and ask which of the two is the
# likelier. Between them and their subject there may be other words; what stood
# left and right is not always enough.

# %%
if not run.quick:
    be = [tokenizer.encode(word) for word in ("is", "are")]
    agreed = {"BERT": [], "counting": []}
    for document in kept[:300]:
        for sentence in document:
            words = tokenizer.encode(sentence)
            for place, piece in enumerate(words):
                if [piece] not in be or place + 1 == len(words):
                    continue
                hidden = [*words]
                hidden[place] = tokenizer.mask_id
                inputs = tokenizer.pack([hidden], length=T)
                if place + 1 >= inputs["token_ids"].shape[1]:
                    continue
                inputs["masked_positions"] = np.array([[place + 1]], "int32")
                logits = keras.ops.convert_to_numpy(
                    model(inputs)["token_logits"]
                )[0, 0]
                best = max(be, key=lambda ids: logits[ids[0]])
                agreed["BERT"].append(best == [piece])
                around = counts.guess(words[place - 1], words[place + 1])
                agreed["counting"].append(around == piece)
    for name, found in agreed.items():
        results[f"agrees_{name}"] = float(np.mean(found or 0))
        print(f"{name:<9} {np.mean(found or 0):.1%} of {len(found)}")

# %% [markdown]
# ## What should hold
#
# With the settings of this page:

# %%
if WHOLE:
    assert results["first"] > results["counting"] + 0.05
    assert results["among_five"] > results["first"] + 0.1
    assert results["agrees_BERT"] > max(0.9, results["agrees_counting"])

# %% [markdown]
# ## Keeping it
#
# The whole model, and the pieces as `vocab.txt`.

# %%
mask_lines.save(run.out, model, tokenizer)
again, _ = mask_lines.load(run.out)
np.testing.assert_allclose(
    keras.ops.convert_to_numpy(again(row)["token_logits"]),
    keras.ops.convert_to_numpy(model(row)["token_logits"]),
    atol=1e-5,
)
results["settings"] = {k: str(v) for k, v in run._asdict().items()}
(run.out / "results.json").write_text(
    json.dumps(results, indent=1, ensure_ascii=False), encoding="utf-8"
)
backup.remove()
program = ".venv/bin/python tutorials/bert.py"
print(f"""
The model is in {run.out / "pretrainer.keras"}, its pieces in vocab.txt beside
it, and all figures in {run.out / "results.json"}.

What to try next, with {program} behind it:
  MODEL={run.out}                  fill the masks of what you type
  MODEL={run.out} INPUT=lines.txt  fill those of a file, a sentence a line
  DATA=documents.txt               documents of your own
Fine-tune it:
  PRETRAINED={run.out} .venv/bin/python tutorials/fine_tuning.py""")

# %% [markdown]
# ## Exercises
#
# **1.** Fill in. A row of 40 ids of which 34 are pieces of words has ___ that
# are hidden; ___ of them stay as they are, on average. The encoder gives
# vectors of the shape ___, the first head logits of the shape ___.
#
# <details markdown>
# <summary>Answer</summary>
#
# 15 % of 34, rounded: 5. Half a one. (B, T, D); (B, P, V), P = 6 here.
#
# </details>
#
# **2.** Two places of *the ___ cat chased the ___ cat* are hidden, and one was
# *black*, the other *white*. BERT gives each its probabilities. Why can it not
# say that they differ?
#
# <details markdown>
# <summary>Answer</summary>
#
# Both are guessed at once, each from what is *not* hidden; neither guess sees
# the other. It says half *black*, half *white* at both, and *black* twice is
# then as likely as the truth. XLNet guesses one after the other, in any order,
# and sees the first when it guesses the second.
#
# </details>
#
# **3.** Why is $W''$ given $h_0$, the vector of `[CLS]`, and not the mean of
# all? What would be lost if only `[CLS]` could look at both sides?
#
# <details markdown>
# <summary>Answer</summary>
#
# Any place could do it, as each sees all; one that stands for no piece need not
# be good at guessing itself. If only `[CLS]` saw both sides, it alone would
# have to compare 2 x 17 pieces in one look a block; now a piece that finds
# itself in the other sentence can say so, and `[CLS]` collects what they say.
#
# </details>
