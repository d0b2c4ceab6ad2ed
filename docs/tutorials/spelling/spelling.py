# %% [markdown]
# # Spelling correction
#
# Somebody writes *thruogh*. Which letters does a model look at while it writes
# *through*, what else does it think may have been meant, and does it leave
# words alone that are right?
#
# ![Where each letter of three corrections looked](spelling-3.png)
#
# This is drawn further down: a row is a letter that was written, a column a
# letter of the misspelt word. Nobody has told the model which letter belongs
# to which; it has only seen whole words and their corrections.
#
# You will
#
# - write a **noise model** of how people misspell, and train a Transformer on
#   words that it misspells anew in every epoch;
# - let a **beam search** suggest the n best corrections, with probabilities;
# - measure **exact matches**, also on words none of whose forms was trained
#   on, beside copying and beside a dictionary that holds all the answers;
# - see which **errors** are hard;
# - see how many **right words** the model breaks, and what to do about it.
#
# Thirteen minutes on two cores. The words are those of the phrase grammar and a
# list of common ones; nothing is downloaded. As a program, on any backend:
#
#     KERAS_BACKEND=jax .venv/bin/python tutorials/spelling.py
#
# With `DATA=` it learns from lists of misspellings, lines of `wrong->right` as
# in codespell's dictionaries or of two columns with a tab (plain or `.gz`),
# and with `MODEL=` a saved model corrects the lines of a file, or what you
# type:
#
#     DATA=dictionary.txt .venv/bin/python tutorials/spelling.py
#     MODEL=runs/spelling INPUT=lines.txt .venv/bin/python tutorials/spelling.py

# %%
import collections
import json
import random

import corpora
import keras
import numpy as np
import program_settings
import spelling_lines
import spelling_settings
from edit_distance import Dictionary, edit_distance, kind_of_error
from letters import Letters
from matplotlib.figure import Figure
from misspellings import read_misspellings, split_by_right
from spelling_batches import spelling_batches
from spelling_noise import KINDS, misspell
from spelling_suggestions import LONGEST, recall, search, suggest
from spelling_words import split_words
from training_log import TrainingLog
from word_stems import unseen

from keras_attn.explain import plot_attention
from keras_attn.layers import T5Position
from keras_attn.models import Transformer
from keras_attn.training import (
    CheckpointAverage,
    SequenceCrossentropy,
    TokenAccuracy,
    TrainingBackup,
    WarmupSchedule,
)

try:
    run = spelling_settings.read_settings()
    if run.model:
        spelling_lines.run(run.model, run.input, run.beams, run.sure)
        raise SystemExit(0)
    listed = read_misspellings(run.data) if run.data else None
    if listed:
        splits = split_by_right(
            [pair for pair in listed.pairs if max(map(len, pair)) < LONGEST]
        )
        if not all(splits):
            raise ValueError(
                "DATA must hold misspellings of enough words for training, "
                f"validation and test. Received: {len(listed.pairs)} pairs"
            )
except ValueError as error:
    program_settings.explain_and_leave("spelling", error)

keras.utils.set_random_seed(run.seed)
run.out.mkdir(parents=True, exist_ok=True)
print(f"Keras {keras.__version__} on {keras.backend.backend()}")

# %% [markdown]
# ## Misspellings
#
# A noise model turns right words into wrong ones, so that there are as many
# examples as one likes. Ours draws a kind of error, then a place for it.
# Letters are left out most of all; vowels are mistaken for each other; what
# sounds alike is written alike; the first letter is seldom wrong.

# %%
draw = random.Random(run.seed)
for word in ("separate", "believe", "necessary", "weather"):
    print(f"{word:<10}", *(misspell(word, draw) for _ in range(6)))

# %% alt="Bars: how often the noise model tries each kind of error"
figure = Figure(figsize=(7, 2.8), layout="constrained")
axes = figure.subplots()
axes.barh(list(KINDS), list(KINDS.values()))
axes.invert_yaxis()
axes.set(xlabel="probability", title="The noise model")
figure

# %% [markdown]
# ## What is trained on, and what is not
#
# There are two questions. Does the model correct **new misspellings of words
# that it knows**? That is what a program for one's own texts must do. And does
# it correct **words that it never saw**? To write *psychology*, when no word
# like it was trained on, it must keep what it reads and change only what
# English letters would not do.
#
# So some words are held out, with all their forms: words that share a stem are
# on one side. Misspellings from a file are split by the hash of the right
# word; of its test words, those count as new none of whose inflections was
# trained on. Stems are found by a rough rule (`word_stems.py`), which would
# rather say that two words belong together than that one is new.

# %%
if listed is None:
    words, held_out = split_words()
    if run.quick:
        words, held_out = (
            [word for word in part if 5 < len(word) < 12][:count]
            for part, count in ((words, 400), (held_out, 20))
        )
    known = frozenset([*words, *held_out])

    def misspellings_of(part, count, seed):
        """Returns pairs (wrong, right) of words drawn from a list."""
        draw = random.Random(seed)
        drawn = draw.choices([w for w in part if len(w) > 2], k=count)
        return [(misspell(word, draw, known), word) for word in drawn]

    train = []
    validation = misspellings_of(words, 20 if run.quick else 400, seed=2)
    tests = {
        "words trained on": misspellings_of(words, 20 if run.quick else 800, 3),
        "words held out": misspellings_of(
            held_out, 20 if run.quick else 800, 4
        ),
    }
else:
    train, validation, test = splits
    print(f"{listed.several:,} lines with several corrections are left out")
    if run.quick:
        train, validation, test = (
            [pair for pair in part if len(pair[1]) < 12][:count]
            for part, count in ((train, 400), (validation, 20), (test, 20))
        )
    words = sorted({right for _, right in train})
    held_out = sorted({right for _, right in test})
    known = frozenset([*words, *held_out])
    new = unseen([right for _, right in test], words)
    tests = {
        "test words": test,
        "test words without a form trained on": [test[i] for i in new],
    }
tests = {name: pairs for name, pairs in tests.items() if pairs}
print(f"{len(train):,} misspellings and {len(words):,} words to train on")
for name, pairs in tests.items():
    rights = len({right for _, right in pairs})
    print(f"{len(pairs):,} misspellings of {rights:,} {name}, such as:")
    print("  ", ", ".join(f"{w} -> {r}" for w, r in pairs[:4]))

# %% [markdown]
# ## Letters
#
# Every character is a token. Source and target share one table of ids, and the
# model one matrix: to copy a letter should be easy. Words of like length share
# a batch, the source with room for two letters more than the target. The
# decoder reads the right word behind a start token, and is to say at each
# letter which one is next. Some words stay as they are.

# %%
letters = Letters.of_words([*words, *(w for pair in train for w in pair)])
batches = spelling_batches(
    letters,
    train,
    words * run.noise,
    batch_size=run.batch,
    buckets=run.buckets,
    unchanged=run.unchanged,
    seed=run.seed,
)
validation_batches = spelling_batches(
    letters, validation, batch_size=run.batch, buckets=1
)
print(f"{letters.size} ids, {len(batches)} batches, lengths {batches.lengths}")
(source, target), labels = batches[0]
assert source.shape == (run.batch, target.shape[1] + 2)  # (B, S), S = T + 2
assert target.shape == labels.shape  # (B, T)
for row in range(3):
    print(f"{letters.decode(source[row])} -> {letters.decode(labels[row])}")
print(source[0], target[0], labels[0], sep="\n")

# %% [markdown]
# ## The model
#
# The probability of a correction $y$ of a word $x$ is a product over its
# letters, the end token $y_{|y|}$ among them:
#
# $$p(y \mid x) = \prod_{n=1}^{|y|} p(y_n \mid y_{<n}, x).$$
#
# The encoder reads the whole misspelt word; the decoder, at each letter, looks
# back at it. No letter is aligned with another beforehand: letters may be
# missing, too many, or in the wrong order.
#
# A letter is pronounced with its neighbours, wherever in the word it stands: so
# both stacks also see how far apart two letters are, by a learned number for
# each distance and head that is added to the scores (Raffel et al. 2020,
# sec. 2.1, <https://arxiv.org/abs/1910.10683>).

# %%
heads = max(1, run.width // 32)
model = Transformer(
    letters.size,
    num_layers=run.layers,
    num_heads=heads,
    hidden_dim=run.width,
    intermediate_dim=4 * run.width,
    dropout=run.dropout,
    normalize_first=True,
    encoder_attention_position=T5Position(
        heads, 32, 20, name="encoder_distance"
    ),
    decoder_attention_position=T5Position(
        heads, 16, 20, bidirectional=False, name="decoder_distance"
    ),
)
# (B, S) and (B, T) become logits (B, T, V).
shape = model.compute_output_shape((source.shape, target.shape))
assert shape == (*target.shape, letters.size)
print(f"{model.count_params():,} parameters")

# %% [markdown]
# ## Training
#
# The loss is the cross-entropy per letter, $-\log p(y_n \mid y_{<n}, x)$.
# Labels are not smoothed here. A model that learns to give a tenth of the mass
# to other letters gives a word of ten letters, of which it is sure,
# $0.9^{11} = 0.31$: the best suggestion stays the best, but its probability
# means little, and further down we rely on it. In each epoch the noise model
# misspells all words anew, so that none of its misspellings is learnt by heart.
#
# Whatever kills the program, the same command goes on from its last backup.

# %%
schedule = WarmupSchedule(run.width, run.warmup, run.scale)
model.compile(
    optimizer=keras.optimizers.Adam(schedule, beta_2=0.98, epsilon=1e-9),
    loss=SequenceCrossentropy(label_smoothing=run.smoothing),
    metrics=[TokenAccuracy()],
)
per_epoch = sum(len(right) + 1 for _, right in train)
per_epoch += run.noise * sum(len(word) + 1 for word in words)
log = TrainingLog(run.minutes, per_epoch)
average = CheckpointAverage(
    num_checkpoints=5, save_freq=max(1, len(batches) // run.snapshots)
)
try:
    backup = TrainingBackup(
        run.out / "backup",
        [log, average],
        save_freq=run.backup,
        data=batches,
        settings=program_settings.identity(
            run, "sure", "epochs", "minutes", "beams", "backup"
        )
        | {"backend": keras.backend.backend()}
        | {"pairs": corpora.fingerprint([*train, *((w, w) for w in words)])},
        resume=not run.fresh,
    )
except ValueError as error:
    program_settings.explain_and_leave(
        "spelling", f"{error}. FRESH=1 starts anew."
    )
model.fit(
    batches,
    epochs=run.epochs,
    shuffle=False,  # the batches do it
    validation_data=validation_batches,
    callbacks=[backup],
    verbose=2,
)
speed = log.tokens_per_second(len(batches))
print(
    f"{len(log.losses):,} steps in {log.seconds / 60:.1f} minutes, "
    f"{speed:,.0f} letters/s"
)

# %% alt="Two curves: training and validation loss, and the learning rate"
figure = Figure(figsize=(9, 3), layout="constrained")
left, right = figure.subplots(1, 2)
window = max(1, len(log.losses) // 100)
smooth = np.convolve(log.losses, np.ones(window) / window, "valid")
left.plot(np.arange(len(smooth)) + window, smooth, label="training")
if log.validation:
    left.plot(*zip(*log.validation, strict=True), "o-", label="validation")
left.set(xlabel="step", ylabel="loss (nats per letter)")
left.legend()
taken = np.arange(len(log.losses))
right.plot(taken, keras.ops.convert_to_numpy(schedule(taken)))
right.set(xlabel="step", ylabel="learning rate")
figure.savefig(run.out / "training.png", dpi=150)
figure

# %% [markdown]
# ## Where it looked
#
# Cross-attention weights of the decoder's last block, averaged over its heads,
# float (T, S): how much the model, about to write a letter, looked at each
# letter of the misspelt word. The end of a word is written ·.

# %%
examples = ["thruogh", "necesary", "adress"]
if run.quick:
    examples = [wrong for wrong, _ in next(iter(tests.values()))[:3]]
looked = search(model, letters, examples, run.beams, weights=True)
# (B, t, M, N, L, S): of B words and t corrections, in M blocks of N heads.
assert looked.weights.shape[:3] == (3, run.beams, run.layers)

# %% alt="Three maps: which letters of a misspelt word each letter looked at"
figure = Figure(figsize=(11, 4), layout="constrained")
panels = figure.subplots(1, 3)
for number, (word, axes) in enumerate(zip(examples, panels, strict=True)):
    length = looked.lengths[number, 0]
    written = letters.decode(looked.tokens[number, 0])
    weights = looked.weights[number, 0, -1].mean(0)  # (L, S)
    rows = [*written, "·"][:length]
    plot_attention(
        weights[: len(rows), : len(word) + 1], rows, [*word, "·"], ax=axes
    )
    axes.set_title(f"{word} -> {written}")
figure.savefig(run.out / "attention.png", dpi=150)
figure

# %% [markdown]
# ## The n best
#
# A word that is not there can be meant in several ways: *ther* may be *there*,
# *their*, *the*. A beam search of width k returns the k likeliest words that
# it has found. With no length penalty its score is $\log p(y \mid x)$, so
# $\exp$ of it is the probability of the whole word.

# %%
asked = ["ther", "wether", "adress", "colection", "frend", "becuase"]
if run.quick:
    asked = [wrong for wrong, _ in next(iter(tests.values()))[3:9]]
shown = suggest(model, letters, asked, run.beams)
for word, found in zip(asked, shown, strict=True):
    print(f"{word:<12}", *(f"{s} {p:.3f}" for s, p in found))
    assert sum(p for _, p in found) <= 1 + 1e-3
    assert [p for _, p in found] == sorted((p for _, p in found), reverse=True)

# %% alt="Bars: for each of six misspelt words its best suggestions"
figure = Figure(figsize=(10, 4), layout="constrained")
panels = figure.subplots(2, 3, sharex=True)
for word, found, axes in zip(asked, shown, panels.flat, strict=True):
    axes.barh(range(len(found)), [p for _, p in found])
    axes.set_yticks(range(len(found)), [s for s, _ in found])
    axes.invert_yaxis()
    axes.set(title=word, xlim=(0, 1))
for axes in panels[-1]:
    axes.set_xlabel("p(y | x)")
figure

# %% [markdown]
# ## How good is it?
#
# An exact match is a best suggestion that is the right word. More kindly
# counted, a right word is found if it is among the first n suggestions:
#
# $$\mathrm{recall}@n = \frac{1}{|D|} \sum_{(x, r) \in D}
# [r \in \{y_1, \ldots, y_n\}].$$
#
# Beside it stand two baselines. **Copying** leaves every word as it is. The
# **dictionary** takes the nearest word, by letters left out, added, changed or
# swapped, at most two of them. It is handed all right words, also those that
# the model never saw: in the second row it chooses among answers that the
# model has to spell by itself. A dictionary without these words finds none.

# %%
FIRST = [n for n in (1, 2, 5) if n <= run.beams]
dictionary = Dictionary(known | {right for _, right in validation})
corrections, scores = {}, {}
for name, pairs in tests.items():
    wrongs, rights = map(list, zip(*pairs, strict=True))
    corrections[name] = suggest(model, letters, wrongs, run.beams)
    scores[name] = {
        "words": len(pairs),
        "copying": float(np.mean([w == r for w, r in pairs])),
        "dictionary": float(np.mean([dictionary(w) == r for w, r in pairs])),
        "recall": {n: recall(corrections[name], rights, n) for n in FIRST},
    }
for name, score in scores.items():
    print(f"{score['words']:,} misspellings, {name}:")
    print(f"  copying     {score['copying']:6.1%}")
    print(f"  dictionary  {score['dictionary']:6.1%}  (knows all answers)")
    for n, share in score["recall"].items():
        print(f"  model, @{n}   {share:6.1%}")
for name, pairs in tests.items():
    print(f"\nWrong, of the {name}:")
    for (wrong, right), found in list(
        zip(pairs, corrections[name], strict=True)
    )[:40]:
        if found[0].word != right:
            said = ", ".join(f"{s} {p:.2f}" for s, p in found[:3])
            print(f"  {wrong} (for {right}): {said}")

# %% [markdown]
# ## Which errors are hard?
#
# By what happened to the word, and by how many edits it is away from the right
# one: (S + 1)(T + 1) small steps of dynamic programming, in
# `edit_distance.py`.

# %% alt="Bars: exact matches by kind of error and by edit distance"
figure = Figure(figsize=(10, 3.6), layout="constrained")
left, right = figure.subplots(1, 2, width_ratios=(2, 1), sharey=True)
ORDER = "left out,single,added,doubled,changed,swapped,several".split(",")
wide = 0.8 / len(tests)
for number, (name, pairs) in enumerate(tests.items()):
    by_kind, by_edits = (collections.defaultdict(list) for _ in range(2))
    for (w, r), found in zip(pairs, corrections[name], strict=True):
        by_kind[kind_of_error(w, r)].append(found[0].word == r)
        by_edits[min(3, edit_distance(w, r))].append(found[0].word == r)
    for axes, groups, order in (
        (left, by_kind, ORDER),
        (right, by_edits, [1, 2, 3]),
    ):
        places = np.arange(len(order)) + number * wide
        shares = [np.mean(groups[g]) if g in groups else 0 for g in order]
        bars = axes.bar(places, shares, wide, label=name)
        counts = [len(groups.get(g, ())) for g in order]
        axes.bar_label(bars, counts, fontsize=7)
        axes.set_xticks(np.arange(len(order)) + 0.4 - wide / 2, order)
    scores[name]["by_kind"] = {
        kind: float(np.mean(hits)) for kind, hits in by_kind.items()
    }
left.set(ylabel="exact matches", xlabel="what happened", ylim=(0, 1.1))
left.tick_params(axis="x", labelrotation=20)
right.set(xlabel="edits (3: or more)")
right.legend(fontsize=8)
figure.savefig(run.out / "errors.png", dpi=150)
figure

# %% [markdown]
# ## Right words must be left alone
#
# Most words of a text are right. A corrector that breaks one in ten of them is
# worse than none, however many errors it finds. So a share of the words was
# trained on unchanged, and here the model is asked about nothing but right
# words. It may not know a word; it should then at least not be sure of
# another one. The program therefore replaces a word only where the best
# suggestion has a probability of at least $\theta$ (`SURE=`, 0.5 unless you
# say otherwise).

# %%
draw = random.Random(run.seed)
right_words = {
    "trained on": draw.sample(words, min(len(words), 20 if run.quick else 600)),
    "not trained on": draw.sample(held_out, min(len(held_out), 600)),
}
thresholds = np.linspace(0, 1, 101)
broken = {}
for name, part in right_words.items():
    found = suggest(model, letters, part, run.beams)
    sure = np.array(
        [
            first.probability if first.word != word else -1
            for word, (first, *_) in zip(part, found, strict=True)
        ]
    )
    broken[name] = (sure[:, None] >= thresholds).mean(0)  # (101,)
    lost = [(w, f[0]) for w, f in zip(part, found, strict=True)]
    lost = [f"{w} -> {s} {p:.2f}" for w, (s, p) in lost if s != w]
    print(f"{len(part)} right words, {name}: {len(lost)} would be changed")
    if lost:
        print("  ", "; ".join(lost[:6]))

# %% alt="Curves: errors mended and right words broken, over the threshold"
figure = Figure(figsize=(8, 3.4), layout="constrained")
axes = figure.subplots()
for (name, pairs), style in zip(tests.items(), ("-", "--"), strict=False):
    hits = np.array(
        [
            found[0].probability if found[0].word == r else -1
            for (_, r), found in zip(pairs, corrections[name], strict=True)
        ]
    )
    axes.plot(
        thresholds,
        (hits[:, None] >= thresholds).mean(0),
        f"C0{style}",
        label=f"mended: {name}",
    )
for (name, share), style in zip(broken.items(), ("-", "--"), strict=True):
    axes.plot(thresholds, share, f"C3{style}", label=f"broken: {name}")
axes.axvline(run.sure, color="grey", linewidth=0.8)
axes.set(xlabel=r"$\theta$", ylabel="share of words", ylim=(0, 1))
axes.legend(fontsize=8)
figure.savefig(run.out / "threshold.png", dpi=150)
figure

# %% [markdown]
# ## In a text
#
# What the program does with the lines of a file. Each word is corrected alone:
# the model sees no neighbours, so a right word in the wrong place (*form* for
# *from*) stays. Below a line stand the words that the model would write
# otherwise, whether it was sure enough or not.

# %%
LINES = [
    "Teh old womman opend the window becuase it was verry hot.",
    "Yestarday we recieved an intresting lettre from our freinds.",
]
if run.quick:
    LINES = LINES[1:]
place = int(np.searchsorted(thresholds, run.sure))
for line in LINES:
    print(line)
    for text in spelling_lines.correct(model, letters, [line], run.beams):
        print(f"  {text}")

# %% [markdown]
# ## Keeping it
#
# One `.keras` file and the table of letters; they load on any backend.

# %%
results = {
    "backend": keras.backend.backend(),
    "parameters": model.count_params(),
    "steps": len(log.losses),
    "minutes": log.seconds / 60,
    "letters_per_second": speed,
    "scores": scores,
    "broken": {name: float(share[place]) for name, share in broken.items()},
    "validation": log.validation,
    "settings": {name: str(value) for name, value in run._asdict().items()},
}
model.save(run.out / "model.keras")
letters.save(run.out / "letters.json")
(run.out / "results.json").write_text(
    json.dumps(results, indent=1, ensure_ascii=False), encoding="utf-8"
)
backup.remove()
print(f"""
The model is in {run.out / "model.keras"}, its letters beside it.

What to try next, in front of `.venv/bin/python tutorials/spelling.py`:
  MODEL={run.out}              correct what you type
  MODEL={run.out} INPUT=FILE   correct the lines of a file
  DATA=FILE                       learn from your own list of misspellings
  UNCHANGED=0                     what exercise 2 asks""")

# %% [markdown]
# And what must hold of any run that was long enough: more suggestions find
# more words, and the threshold protects right words.

# %%
if not run.quick and listed is None:
    first, second = (scores[name]["recall"] for name in tests)
    assert first[5] > first[1] > 0.1 and second[5] > second[1]
    assert broken["trained on"][place] < broken["trained on"][0]
    assert broken["not trained on"][place] < broken["not trained on"][0]

# %% [markdown]
# ## Exercises
#
# **1.** What are the edit distances, with swaps of neighbours, of *freind* and
# *friend*, of *adress* and *address*, of *ca* and *abc*? The last one tells
# this distance from one in which a letter may be touched twice.
#
# <details markdown>
# <summary>Answer</summary>
#
# 1 and 1. For *ca* and *abc* it is 3: a swap gives *ac*, and to put *b*
# between the two would touch what was swapped. A distance that allows it (2)
# is a metric; this one is not, and costs less.
#
# </details>
#
# **2.** Train with `UNCHANGED=0`, and look at the right words again. What do
# you expect of the exact matches, and of the words that are broken?
#
# <details markdown>
# <summary>Answer</summary>
#
# Every word that the model then ever saw was wrong, and it has learnt that:
# it changes right words, too. Exact matches of misspelt words may even rise a
# little. A score on errors alone does not show what it costs; always measure
# both.
#
# </details>
#
# **3.** The dictionary cannot tell *ther* for *there* from *ther* for *their*:
# both are one letter away. The model gives them different probabilities. Which
# two things has it learnt that the distance does not know, and which third one
# would help most?
#
# <details markdown>
# <summary>Answer</summary>
#
# Which errors are frequent (a vowel for a vowel, not *q* for *e*), and which
# words are (here only: how often the training lists them; all words of our
# list are equally frequent). What would help most is the sentence: which words
# stand around it.
#
# </details>
