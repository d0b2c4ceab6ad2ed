# %% [markdown]
# # What kind of word is this?
#
# *They open the box*: a verb. *The open box is red*: an adjective. The word is
# the same, and so is the vector that a model looks up for it. Which of the two
# it is, only the neighbours tell. How does a vector come to know its
# neighbours?
#
# ![One word in many sentences: its vectors fall into two groups](tagging-3.png)
#
# Each point is the same word in another sentence, seen from within the model
# that you will train here: it was not told that there are two kinds, only to
# name the **part of speech** of every word.
#
# You will
#
# - give a word two vectors, one **looked up** and one made of its
#   **characters**, so that words never seen before have one as well;
# - train an **encoder**, with nothing pre-trained, to tag every word;
# - compare it with two taggers that know no neighbours, on words that it never
#   saw;
# - see **which tags it confuses**, how the vectors of one word part, and
#   **where it looked** to tell.
#
# One to three minutes on two cores. The sentences are written by a phrase
# grammar; nothing is downloaded. As a program, on any backend, or on a treebank
# of your own (CoNLL-U, from <https://universaldependencies.org>), one file to
# train on and one to test on:
#
#     KERAS_BACKEND=torch .venv/bin/python tutorials/tagging.py
#     DATA=train.conllu,test.conllu .venv/bin/python tutorials/tagging.py
#
# And with a model that was saved, on your own lines, or on a treebank to be
# scored:
#
#     MODEL=runs/tagging INPUT=lines.txt .venv/bin/python tutorials/tagging.py

# %%
import collections
import json
import math

import corpora
import keras
import numpy as np
import program_settings
import tagging_lines
import tagging_settings
import treebank
from matplotlib.figure import Figure
from tag_baselines import SuffixTagger
from tagged_batches import tagged_batches
from tagged_phrases import tagged_phrases
from tagging_lines import accuracy, predict_tags
from training_log import TrainingLog
from word_table import LONGEST_WORD, WordTable

from keras_attn.explain import plot_attention
from keras_attn.layers import T5Position
from keras_attn.models import Encoder, TokenClassifier
from keras_attn.ops import capture_weights
from keras_attn.training import (
    SequenceCrossentropy,
    TokenAccuracy,
    TrainingBackup,
)

try:
    run = tagging_settings.read_settings()
    if run.model:
        tagging_lines.run(run.model, run.input)
        raise SystemExit(0)
    files = run.data.split(",") if run.data else []
    if len(files) not in (0, 2):
        raise ValueError(
            "DATA must be two files, to train on and to test on, with a comma "
            f"between. Received: DATA={run.data}"
        )
    parts = [treebank.read_tagged(path) for path in files]
except ValueError as error:
    program_settings.explain_and_leave("tagging", error)

keras.utils.set_random_seed(run.seed)
run.out.mkdir(parents=True, exist_ok=True)
print(f"Keras {keras.__version__} on {keras.backend.backend()}")

# %% [markdown]
# ## Sentences whose words have tags
#
# The tags are those of Universal Dependencies, a set of 17 for all languages.
# One noun, verb or adjective of eight is held out of training, with all its
# forms. Each sentence of the test has at least one of these: it is they that
# show what a tagger understands.

# %%
train, test = parts or tagged_phrases(1000 if run.quick else 12_000)
if run.quick:
    train, test = train[:300], sorted(test, key=len)[:80]
known = {word for sentence in train for word, _ in sentence}
test_words = [[word for word, _ in sentence] for sentence in test]
print(f"{len(train):,} sentences to train on, {len(test):,} to test on")
for sentence in (train[0], test[0]):
    print(" ".join(f"{word}/{tag}" for word, tag in sentence))
unseen = {word for words in test_words for word in words} - known
print(f"{len(unseen):,} words are in the test only:", *sorted(unseen)[:8])

# %% [markdown]
# ## How far does one come without neighbours?
#
# Give each word the tag that it has most often, and a word that you do not
# know the most frequent tag of all. Somewhat better: go by the last letters of
# a word that you do not know. Most words only ever have one tag, so this is
# hard to beat, except where a word is unknown or may be two things.

# %%
counts = collections.Counter(pair for sentence in train for pair in sentence)
tags_of = collections.defaultdict(dict)
for (word, tag), count in counts.items():
    tags_of[word][tag] = count
# Words that have a second tag in a tenth of the cases or more.
ambiguous = {
    word
    for word, found in tags_of.items()
    if len(found) > 1 and max(found.values()) <= 0.9 * sum(found.values())
}


def scores(predictions):
    """Returns the accuracy on all words, those unseen, those ambiguous."""
    shares = [accuracy(test, predictions)]
    for group in (unseen, ambiguous):
        right = [
            tag == predicted
            for sentence, row in zip(test, predictions, strict=True)
            for (word, tag), predicted in zip(sentence, row, strict=True)
            if word in group
        ]
        shares.append(sum(right) / max(1, len(right)))
    return shares


def say(name, shares):
    """Prints one line of the table."""
    print(f"{name:<22}", *(f"{share:>11.2%}" for share in shares))


table_head = ("all words", "unseen", "ambiguous")
print(f"{'':<22}", *(f"{name:>11}" for name in table_head))
results = {}
for name, longest in (("most frequent tag", 0), ("and by the ending", 3)):
    baseline = SuffixTagger(train, longest)
    results[name] = scores([baseline(words) for words in test_words])
    say(name, results[name])

# %% [markdown]
# ## Words, and what is in them
#
# A word is given by a number, and by the numbers of its characters. In
# training a fifth of the words lose their number, and half of these their
# characters, too: a model that has always known every word would not learn to
# do without.

# %%
words = WordTable.of_sentences(train, least=2 if files else 1)
word_count, character_count, tag_count = words.sizes
batches = tagged_batches(
    words, train, run.rows, run.unknown, run.buckets, run.seed
)
inputs, labels = batches[0]
B, T = labels.shape
assert inputs["token_ids"].shape == (B, T)
assert inputs["character_ids"].shape == (B, T, LONGEST_WORD)
print(f"{word_count:,} words, {character_count} characters, {tag_count} tags")
print(f"{len(batches)} batches; the first: {B} sentences of up to {T} words")

# %% [markdown]
# ## The model
#
# The vector of word $x_t$ is the sum of one that is looked up and one that its
# characters make: a convolution over the letters, and of what it finds the
# maximum, wherever in the word it is (Kim et al. 2016,
# <https://arxiv.org/abs/1508.06615>). Blocks of self-attention let each word
# look at all others. What matters is where a neighbour stands from here, not
# from the beginning of the sentence; so each head $n$ learns a number for each
# distance (far ones share one), and adds it to its scores (T5, Raffel et al.
# 2020, <https://arxiv.org/abs/1910.10683>):
#
# $$\mathrm{score}_n(t, s) = \frac{q_t \cdot k_s}{\sqrt{H}} + b_n(s - t).$$
#
# A dense layer scores the tags, the same one for every word:
#
# $$h = \mathrm{Encoder}(E[x] + \mathrm{chars}(x)), \qquad
# p(\mathrm{tag}_t \mid x) = \mathrm{softmax}(W h_t + b).$$

# %%
heads = max(1, run.width // 32)
encoder = Encoder(
    word_count,
    num_layers=run.layers,
    num_heads=heads,
    hidden_dim=run.width,
    intermediate_dim=4 * run.width,
    dropout=run.dropout,
    position_embedding=None,
    attention_position=T5Position(heads, num_buckets=16, max_distance=32),
    character_vocabulary_size=character_count,
)
model = TokenClassifier(encoder, tag_count, dropout=run.dropout)
assert encoder.compute_output_shape((B, T)) == (B, T, run.width)
assert model.compute_output_shape((B, T)) == (B, T, tag_count)
print(f"{model.count_params():,} parameters")

# %% [markdown]
# ## Training
#
# The loss is the cross-entropy of each word's tag; padding has no tag, and
# does not count. The learning rate rises for a tenth of the steps and then
# falls along a cosine. A run that is killed goes on where it was; `FRESH=1`
# starts anew.

# %%
steps = run.epochs * len(batches)
schedule = keras.optimizers.schedules.CosineDecay(
    0.0, steps, warmup_target=run.rate, warmup_steps=max(1, steps // 10)
)
model.compile(
    optimizer=keras.optimizers.AdamW(schedule, weight_decay=0.01),
    loss=SequenceCrossentropy(),
    metrics=[TokenAccuracy()],
)
log = TrainingLog(math.inf, sum(map(len, train)))
try:
    backup = TrainingBackup(
        run.out / "backup",
        [log],
        data=batches,
        settings=program_settings.identity(run)
        | {"backend": keras.backend.backend()}
        | {
            "words": corpora.fingerprint(
                [pair for row in train for pair in row]
            )
        },
        resume=not run.fresh,
    )
except ValueError as error:
    program_settings.explain_and_leave(
        "tagging", f"{error}. FRESH=1 starts anew."
    )
model.fit(
    batches,
    epochs=run.epochs,
    shuffle=False,  # the batches do it
    callbacks=[backup],
    verbose=2,
)
print(f"{len(log.losses):,} steps in {log.seconds / 60:.1f} minutes")

# %% alt="The loss falls with the steps; the learning rate rises and falls"
figure = Figure(figsize=(9, 3), layout="constrained")
left, right = figure.subplots(1, 2)
left.plot(log.losses, linewidth=0.5)
left.set(xlabel="step", ylabel="loss (nats per word)", yscale="log")
taken = np.linspace(0, steps - 1, 24, dtype=int)
right.plot(taken, [float(schedule(step)) for step in taken])
right.set(xlabel="step", ylabel="learning rate")
figure.savefig(run.out / "training.png", dpi=150)
figure

# %% [markdown]
# ## The test

# %%
predictions = predict_tags(model, words, test_words)
results["this model"] = scores(predictions)
print(f"{'':<22}", *(f"{name:>11}" for name in table_head))
for name, shares in results.items():
    say(name, shares)

# %% [markdown]
# A tagger is only as good as its worst confusion. A row is the right tag, a
# column what was said; each row sums to 100 %, and the colour shows what is
# wrong.

# %% alt="Confusion matrix: right tags as rows, predicted tags as columns"
names = [
    tag
    for tag in words.tags
    if any(tag == right for sentence in test for _, right in sentence)
]
said = [*names, *sorted({t for row in predictions for t in row} - {*names})]
confusion = np.zeros((len(names), len(said)), int)
for sentence, row in zip(test, predictions, strict=True):
    for (_, tag), predicted in zip(sentence, row, strict=True):
        if tag in names:
            confusion[names.index(tag), said.index(predicted)] += 1
shares = confusion / confusion.sum(1, keepdims=True)
wrong = shares.copy()
np.fill_diagonal(wrong, 0.0)
size = 2.2 + 0.5 * len(said)
figure = Figure(figsize=(size, size), layout="constrained")
axes = figure.subplots()
axes.imshow(wrong, cmap="Oranges", vmin=0, vmax=max(0.2, wrong.max()))
for row in range(len(names)):
    for column in range(len(said)):
        if confusion[row, column]:
            axes.text(
                column,
                row,
                f"{100 * shares[row, column]:.0f}",
                ha="center",
                va="center",
                fontsize=9,
                color="gray" if shares[row, column] < 0.005 else "black",
            )
axes.set_xticks(range(len(said)), said, rotation=60, ha="right")
axes.set_yticks(range(len(names)), names)
axes.set(xlabel="the model said", ylabel="right is")
figure.savefig(run.out / "confusion.png", dpi=150)
figure

# %% [markdown]
# ## One word, two vectors
#
# We take a word that has two tags in the test, and look at its vector in every
# sentence it is in: $h_t$, behind the last block. The cosine of the angle
# between two vectors says how alike they are, 1 if they point the same way.

# %%
places = collections.defaultdict(lambda: collections.defaultdict(list))
for number, sentence in enumerate(test):
    for place, (word, tag) in enumerate(sentence):
        places[word.lower()][tag].append((number, place))


def second_count(word):
    """Returns how often a word has the second of its tags in the test."""
    return sorted(map(len, places[word].values()))[-2:-1] or [0]


WORD = run.word if len(places[run.word]) > 1 else max(places, key=second_count)
kinds = sorted(places[WORD], key=lambda tag: -len(places[WORD][tag]))[:2]
found = [(*spot, tag) for tag in kinds for spot in places[WORD][tag][:60]]
encoded = encoder.predict(
    words.encode([test_words[number] for number, *_ in found]), verbose=0
)
vectors = encoded[range(len(found)), [place for _, place, _ in found]]
assert vectors.shape == (len(found), run.width)
unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
cosines = unit @ unit.T
kind = np.array([tag for *_, tag in found])
others = ~np.eye(len(found), dtype=bool)
within = cosines[(kind[:, None] == kind) & others].mean()
between = cosines[kind[:, None] != kind].mean()
first, second = (int((kind == tag).sum()) for tag in kinds)
print(f"{WORD!r}: {first} times {kinds[0]}, {second} times {kinds[1]}")
print(f"cosine, mean: the same tag {within:.2f}, different tags {between:.2f}")

# %% [markdown]
# In a picture: the two directions in which these vectors vary most (their
# principal components).

# %% alt="The vectors of one word in many sentences, in two groups by its tag"
centred = vectors - vectors.mean(0)
_, spread, directions = np.linalg.svd(centred, full_matrices=False)
flat = centred @ directions[:2].T
part = (spread**2)[:2].sum() / max((spread**2).sum(), 1e-9)
figure = Figure(figsize=(8, 4.5), layout="constrained")
axes = figure.subplots()
for tag, marker in zip(kinds, "o^", strict=True):
    axes.scatter(*flat[kind == tag].T, marker=marker, label=tag, alpha=0.7)
for tag in kinds:
    number, place, _ = found[int(np.argmax(kind == tag))]
    text = " ".join(test_words[number][max(0, place - 3) : place + 4])
    axes.annotate(
        f"“{text}”",
        flat[int(np.argmax(kind == tag))],
        xytext=(0, 14),
        textcoords="offset points",
        ha="center",
        arrowprops={"arrowstyle": "-"},
    )
axes.margins(0.25)
axes.legend(title=f"{WORD} is")
axes.set(
    title=f"“{WORD}” in {len(found)} sentences ({part:.0%} of the variance)",
    xticks=[],
    yticks=[],
)
figure.savefig(run.out / "vectors.png", dpi=150)
figure

# %% [markdown]
# ## Where it looked
#
# The weights with which the word looks at its sentence, of every head and
# block. A head is a row, a word a column. Which neighbour was asked is to be
# seen; that it was asked *because* of what it is, a picture cannot prove. The
# experiment can: further down the word gets other neighbours.

# %% alt="Attention from one word to its sentence, where it is one tag or other"
shortest = [
    min(places[WORD][tag], key=lambda spot: len(test[spot[0]])) for tag in kinds
]
with capture_weights() as captured:
    encoder(words.encode([test_words[number] for number, _ in shortest]))
figure = Figure(figsize=(8, 5), layout="constrained")
for row, axes in enumerate(figure.subplots(2, 1)):
    number, place = shortest[row]
    # Of each block (heads, T): from this word to all words of its sentence.
    looks = np.concatenate(
        [
            keras.ops.convert_to_numpy(weights)[row, :, place]
            for weights in captured.values()
        ]
    )
    seen = len(test[number])
    assert np.allclose(looks[:, :seen].sum(-1), 1.0, atol=1e-4)
    assert not looks[:, seen:].any()  # nothing looks at padding
    plot_attention(
        looks[:, :seen],
        query_tokens=[
            f"block {i // heads + 1}, head {i % heads + 1}"
            for i in range(len(looks))
        ],
        key_tokens=test_words[number],
        ax=axes,
    )
    axes.set(title=f"{WORD}, here {kinds[row]}, looks at", ylabel="", xlabel="")
figure.savefig(run.out / "attention.png", dpi=150)
figure

# %% [markdown]
# What each head has learned about distances, $b_n(d)$: the higher, the more
# readily it looks so far ahead ($d > 0$) or back ($d < 0$). All blocks share
# these numbers.

# %% alt="Curves: what each head adds to its scores, by distance"
FAR = 8
bias = encoder.attention_position.bias()
distances = np.arange(-FAR, FAR + 1)
here, there = np.array([[FAR]]), np.arange(2 * FAR + 1)[None]
learned = keras.ops.convert_to_numpy(
    bias.function(bias.parameters, here.astype("int32"), there.astype("int32"))
)
assert learned.shape == (1, heads, 1, len(distances))  # (1, N, T, S)
figure = Figure(figsize=(8, 3), layout="constrained")
axes = figure.subplots()
for head in range(heads):
    axes.plot(distances, learned[0, head, 0], "o-", label=f"head {head + 1}")
axes.set(xlabel="distance d, in words", ylabel="b(d), added to the score")
axes.legend()
figure.savefig(run.out / "distances.png", dpi=150)
figure

# %% [markdown]
# ## What neighbours do, and what they must not
#
# The same word, other neighbours. And padding is no neighbour: a sentence has
# the same vectors alone and beside a longer one.

# %%
mine = [
    sentence.split()
    for sentence in (
        "they open the old box",
        "the open box is old",
        "we clean the house",
        "the house is clean",
    )
]
for sentence, row in zip(mine, predict_tags(model, words, mine), strict=True):
    print(" ".join(f"{w}/{tag}" for w, tag in zip(sentence, row, strict=True)))

alone, beside = (
    encoder.predict_on_batch(words.encode(mine[:1], length))
    for length in (len(mine[0]), 24)
)
apart = np.abs(alone[0] - beside[0, : len(mine[0])]).max()
print(f"with 19 places of padding the vectors differ by {apart:.1e}")
assert apart < 1e-4
if not run.quick:
    for name in ("most frequent tag", "and by the ending"):
        assert results["this model"][0] > results[name][0]
    assert within > between

# %% [markdown]
# ## Exercises
#
# **1.** Fill in. A sentence of 5 words is padded to 8, in a batch of 32; words
# have up to 20 letters, the model has 64 features and 2 heads. `token_ids` has
# the shape ___, `character_ids` ___, the vectors behind the encoder ___, the
# weights of one attention layer ___. Of the 8 weights with which a word looks,
# ___ are exactly zero.
#
# <details markdown>
# <summary>Answer</summary>
#
# (32, 8), (32, 8, 20), (32, 8, 64), (32, 2, 8, 8). The 3 of the padding are
# exactly zero.
#
# </details>
#
# **2.** Train so that no word ever loses its number: `UNKNOWN=0`. What becomes
# of the words that were never seen, and why, although the model has their
# characters?
#
# <details markdown>
# <summary>Answer</summary>
#
# It never met a word whose number is missing. The vector of the unknown word
# is not trained at all, and every number says enough about its word: nothing
# asked the characters, or the neighbours, to tell.
#
# </details>
#
# **3.** A tagger without positions: would it still tell *they open the box*
# from *the open box*? Which sentences could it not tell apart?
#
# <details markdown>
# <summary>Answer</summary>
#
# Often, for the words around differ: *they* hints at a verb. But attention
# without positions sees a bag of words: two orders of the same words have the
# same vectors, so *the man can open the old box* and *the open man can box the
# old* are one.
#
# </details>

# %% [markdown]
# ## Keeping it
#
# The model and its table of words, to tag with on any backend.

# %%
model.save(run.out / "model.keras")
words.save(run.out / "words.json")
(run.out / "results.json").write_text(
    json.dumps(
        {
            "backend": keras.backend.backend(),
            "accuracy": {
                name: dict(zip(table_head, shares, strict=True))
                for name, shares in results.items()
            },
            "parameters": model.count_params(),
            "steps": len(log.losses),
            "minutes": log.seconds / 60,
            "settings": {k: str(v) for k, v in run._asdict().items()},
        },
        indent=1,
    ),
    encoding="utf-8",
)
backup.remove()
print(f"""
The model is in {run.out / "model.keras"}, its words beside it;
look at {run.out / "confusion.png"} and {run.out / "vectors.png"}.

What to try next, with .venv/bin/python tutorials/tagging.py behind it:
  MODEL={run.out}                       tag what you type
  MODEL={run.out} INPUT=lines.txt       tag the lines of a file
  DATA=train.conllu,test.conllu         learn from a treebank""")
