# %% [markdown]
# # Looking inside
#
# A model says something. Where did it look, and is that why it said it? The
# two are not the same question. Attention weights answer the first one: they
# are there to be read. The second one needs an experiment: hide a word, and see
# whether the answer changes.
#
# ![How an answer falls as words are hidden, in the order of five
# maps](looking_inside-4.png)
#
# Here words are hidden one after the other, those first that a map says matter
# most. The faster the answer falls, the better the map knew.
#
# You will
#
# - see the **alignment** of a translation, and walk through all its heads;
# - see what *it* looks at in *the animal did not cross the street because it
#   was too tired*, with one head, two and eight;
# - measure **what heads specialise in**;
# - compare five **maps** by hiding and showing words: raw attention, rollout,
#   gradients, RISE, chance; and find a sentence whose attention map misleads;
# - look at a model that **compares** numbers and at one that **sorts** them;
# - explain with **RISE** what has no attention weights: a network of glimpses,
#   and one that hears Morse code.
#
# On two cores about ten minutes at most: the run of this page had one. All
# data is generated, the digits come with scikit-learn (`pip install
# scikit-learn`); nothing is downloaded. What each picture can and cannot show
# stands in [the guide](../../guides/looking_inside.md). As a program, on any
# backend:
#
#     KERAS_BACKEND=torch .venv/bin/python tutorials/looking_inside.py
#
# With `SENTENCE=` the translator is looked into while it translates words of
# yours:
#
#     SENTENCE="these horses are not tired today" \
#         .venv/bin/python tutorials/looking_inside.py

# %%
import json
import time

import digit_pictures
import keras
import looking_inside_settings
import morse_letters
import number_pairs
import numpy as np
import program_settings
import pronouns
import sorted_numbers
from cluttered_canvases import CanvasBatches, scatter
from glimpse_learner import GlimpseLearner
from glimpse_network import GlimpseNetwork
from glimpse_plots import pixel
from matplotlib.figure import Figure
from small_translator import train_translator
from token_gradients import gradient_times_input
from token_strips import Strips, draw_strips

from keras_attn.explain import (
    FrameMasks,
    PatchMasks,
    TokenMasks,
    attention_maps,
    deletion_and_insertion,
    head_distance,
    head_entropy,
    padding_attention,
    plot_attention,
    rise,
    rollout,
    view_attention,
)
from keras_attn.models import (
    Encoder,
    SequenceClassifier,
    TokenClassifier,
    Transformer,
)
from keras_attn.training import SequenceCrossentropy

try:
    run = looking_inside_settings.read()
    digits = digit_pictures.split(digit_pictures.built_in(), run.seed)
except ValueError as error:
    program_settings.explain_and_leave("looking_inside", error)

run.out.mkdir(parents=True, exist_ok=True)
results = {"backend": keras.backend.backend()}
# What is asserted of trained models is so with the settings of this page.
WHOLE = looking_inside_settings.is_default(run)
print(f"Keras {keras.__version__} on {keras.backend.backend()}")

# %% [markdown]
# ## The alignment of a translation
#
# The translator of [the tutorial on decoding](../decoding/index.md), trained
# four times as long. It has two layers of two heads, in the encoder and in the
# decoder. Each head mixes values by weights,
#
# $$w_{ts} = \mathrm{softmax}_s\!\left(\frac{q_t \cdot k_s}{\sqrt{H}}\right),
# \qquad \sum_s w_{ts} = 1 ,$$
#
# and `attention_maps` returns w, (B, N, T, S), of every layer.

# %%
started = time.perf_counter()
translator = train_translator(epochs=run.epochs, quick=run.quick)
model, tokenizer = translator.model, translator.tokenizer
results["translator seconds"] = time.perf_counter() - started
print(f"trained in {results['translator seconds'] / 60:.1f} min")

# %%
LONGEST = 12 if run.quick else 24
source = np.array([[*tokenizer.encode(run.sentence), tokenizer.end_id]])
decoded = model.generate(source, max_new_tokens=LONGEST)
print(run.sentence, "->", tokenizer.decode(decoded.tokens[0, 0].tolist()))
maps = attention_maps(model, source, tokens=tokenizer.pieces, decoded=decoded)
for one in maps:
    assert (np.abs(one.weights.sum(-1) - 1) < 1e-5).all()
    print(f"{one.layer:<34} {one.weights.shape}")

# %% [markdown]
# A sentence that was generated is read again as a whole, the start in front. So
# **a row is named after the token that was read, and shows where the model
# looked to write the next one**. The row of *casa* is where *vieja* comes from.

# %% alt="Where each head of the last cross-attention looks: rows are Spanish"
cross = [one for one in maps if one.layer.endswith("cross_attention")][-1]
weights, written, read = cross.of(0)
assert weights.shape == (len(cross.heads), len(written), len(read))
if WHOLE and run.sentence == looking_inside_settings.Settings().sentence:
    for row, word in (("▁la", "▁house"), ("▁casa", "▁old")):
        looked_at = weights[:, written.index(row)].mean(0).argmax()
        assert read[looked_at] == word
plot_attention(weights, written, read, title="Spanish looks at English")

# %% [markdown]
# English says *old house*, Spanish *casa vieja*: the rows cross over. All
# layers and heads, to walk through:

# %% alt="Layers, heads and tokens to choose from, and what they look at"
view = view_attention(maps, title=f"“{run.sentence}”, in Spanish")
view.save(run.out / "attention.html")
view

# %% [markdown]
# ## What heads specialise in
#
# Three numbers say what a head does, over 200 sentences that were not trained
# on. How many tokens it spreads over, as the exponential of its entropy; how
# far it looks; and how much of it lies on padding, which must be nothing, not
# little:
#
# $$e^{H}, \quad H = -\frac{1}{T}\sum_{t,s} w_{ts} \log w_{ts}, \qquad
# d = \frac{1}{T}\sum_{t,s} w_{ts}\, |t - s|, \qquad
# \frac{1}{T}\sum_t \sum_{s \in \mathrm{padding}} w_{ts} = 0 .$$

# %%
tests = translator.test[:200]
rows = [
    [*ids, tokenizer.end_id] for ids in tokenizer.encode([e for e, _ in tests])
]
sources = np.zeros((len(rows), max(map(len, rows))), "int32")
for ids, row in zip(sources, rows, strict=True):
    ids[: len(row)] = row
rows = [
    [tokenizer.start_id, *ids]
    for ids in tokenizer.encode([s for _, s in tests])
]
targets = np.zeros((len(rows), max(map(len, rows))), "int32")
for ids, row in zip(targets, rows, strict=True):
    ids[: len(row)] = row
assert tokenizer.pad_id == 0

table = []
for one in attention_maps(model, (sources, targets)):
    keys = targets if one.layer.startswith("decoder") else sources
    if one.layer.endswith("cross_attention"):
        keys = sources
    on_padding = padding_attention(one, keys != 0)  # (B, N)
    assert (on_padding == 0).all()
    spread = np.exp(head_entropy(one).mean(0))
    far = head_distance(one).mean(0)
    for head in one.heads:
        table.append((one.layer, head, float(spread[head]), float(far[head])))
        print(
            f"{one.layer:<34} head {head}: {spread[head]:4.1f} tokens, "
            f"{far[head]:4.1f} away, {on_padding[:, head].max():.0%} padding"
        )
results["heads"] = table
# The first one by hand: what is no token asks nothing.
one = attention_maps(model, (sources, targets), layers="encoder_block_0")[0]
w = one.weights[0, 0, : int((sources[0] != 0).sum())].astype("float64")
by_hand = -(w * np.log(np.where(w > 0, w, 1))).sum(-1).mean()
assert abs(by_hand - head_entropy(one)[0, 0]) < 1e-5

# %% alt="Heads of encoder, decoder and between: how far, how spread"
figure = Figure(figsize=(7, 4.2), layout="constrained")
axes = figure.subplots()
KINDS = {
    "encoder": ("o", "encoder"),
    "self": ("s", "decoder, itself"),
    "cross": ("^", "decoder, source"),
}
for kind, (marker, name) in KINDS.items():
    chosen = [
        row
        for row in table
        if row[0].startswith(kind)
        or (row[0].startswith("decoder") and f"/{kind}" in row[0])
    ]
    axes.plot(
        [far for *_, far in chosen],
        [spread for _, _, spread, _ in chosen],
        marker,
        label=name,
        markersize=7,
    )
    for layer, head, spread, far in chosen:
        number = layer.split("/")[0].split("_")[-1]
        axes.annotate(
            f"{number}.{head}",
            (far, spread),
            xytext=(6, 3),
            textcoords="offset points",
            fontsize=8,
        )
axes.set(xlabel="distance, tokens", ylabel="spread over so many tokens")
axes.legend()
figure

# %% [markdown]
# Each mark is a head, layer before the point. Where the decoder's first layer
# looks at itself, a head looks at one token. From one language to the other a
# distance means little: their words stand at different places.
#
# ## What is *it*?
#
# *The animal did not cross the street because it was too tired.* Say *wide*
# instead, and *it* is the street. The last word decides. This is an example of
# the lectures for what attention has to do, and it can be learned in half a
# minute: sentences of a toy grammar, and a classifier that says at *it*
# which noun it is. In some the kind of the noun decides, in others its part in
# the sentence (*the box did not fit into the bag because it was too small*);
# some begin with *because*. The sentences below have pairs of nouns that were
# never seen together.
#
# Every sentence is there twice in training: whole, and with words hidden at
# random, `_`. So a hidden word will be nothing strange later on.

# %%
D = looking_inside_settings.WIDTH
BATCH = 64
ROWS = 64  # that are asked about together


def fit(name, model, inputs, labels, loss, passes=run.passes, rate=3e-3):
    """Trains a small model, and says how long it took."""
    steps = passes * -(-len(labels) // BATCH)
    decay = keras.optimizers.schedules.CosineDecay(rate, steps, alpha=0.02)
    model.compile(keras.optimizers.Adam(decay, global_clipnorm=1.0), loss)
    began = time.perf_counter()
    model.fit(inputs, labels, batch_size=BATCH, epochs=passes, verbose=0)
    print(f"{name}: {steps:,} steps, {time.perf_counter() - began:.0f} s")


def encoder(vocabulary, heads):
    """Returns an encoder."""
    keras.utils.set_random_seed(run.seed)
    return Encoder(
        len(vocabulary),
        num_layers=run.layers,
        num_heads=heads,
        hidden_dim=D,
        intermediate_dim=2 * D,
        dropout=0.0,
    )


def softmax(logits):
    """Returns probabilities over the last axis."""
    e = np.exp(logits - logits.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def chances(model, tokens, length):
    """Returns what a model says, asked in batches of one shape."""
    found = []
    for start in range(0, len(tokens), ROWS):
        part = tokens[start : start + ROWS]
        wide = np.zeros((ROWS, length), "int32")
        wide[: len(part), : tokens.shape[1]] = part
        found.append(softmax(model.predict_on_batch(wide)[: len(part)]))
    return np.concatenate(found)


# %%
learned = pronouns.draw(run.rows, run.seed)
inputs = np.concatenate([learned.tokens, pronouns.hide(learned, run.seed)])
labels = np.concatenate([learned.labels, learned.labels])
kept = pronouns.draw(run.examples, run.seed, kept=True)
B, T = kept.tokens.shape
every = np.arange(B)
readers, looks = {}, {}
HEADS = looking_inside_settings.heads(run.heads)
title = {heads: f"{heads} head{'s'[: heads - 1]}" for heads in HEADS}
for heads in HEADS:
    V = len(pronouns.VOCABULARY)
    reader = TokenClassifier(
        encoder(pronouns.VOCABULARY, heads), V, dropout=0.0
    )
    fit(title[heads], reader, inputs, labels, SequenceCrossentropy())
    readers[heads] = reader
    p = chances(reader, kept.tokens, T)
    assert p.shape == (B, T, V)
    said = p[every, kept.it].argmax(-1)
    right = said == kept.tokens[every, kept.right]
    looks[heads] = attention_maps(reader, kept.tokens, tokens=pronouns.words)
    print(f"{title[heads]}: right in {right.mean():.1%} of {B} sentences")
    results[f"it, {heads} heads"] = {"right": float(right.mean())}
    if WHOLE:
        assert right.mean() > 0.9

# %% [markdown]
# Two sentences that differ in one word. Rows are heads, layer before the point;
# a strip shows where *it* looks.

# %% alt="Where it looks when the animal is tired and when the street is wide"
pair = [
    pronouns.of_words("animal", "street", adjective).tokens[0]
    for adjective in ("tired", "wide")
]
panels = []
for heads, reader in readers.items():
    panels.append([])
    found = attention_maps(reader, np.array(pair), tokens=pronouns.words)
    p = chances(reader, np.array(pair), T)
    for row in range(2):
        names = found[0].of(row)[2]
        at = names.index("it")
        strips = {
            f"{layer}.{head}": one.of(row)[0][head, at]
            for layer, one in enumerate(found)
            for head in one.heads
        }
        said = pronouns.VOCABULARY[p[row, at].argmax()]
        panels[-1].append(Strips(names, strips, f"{title[heads]}: it = {said}"))
draw_strips(panels)

# %% [markdown]
# And over all sentences: the share of the weight of *it* that lies on the right
# noun, on the other one, and on the adjective that decides; the mean of the
# heads of a layer, and the head that has the most of it.

# %%
for heads, found in looks.items():
    for layer, one in enumerate(found):
        w = one.weights[every, :, kept.it]  # (B, N, T)
        assert w.shape == (B, heads, T)
        places = {"right": kept.right, "other": kept.wrong}
        places["adjective"] = kept.deciding
        shares = {
            name: w[every, :, place].mean(0) for name, place in places.items()
        }
        results[f"it, {heads} heads"][f"layer {layer}"] = {
            name: share.tolist() for name, share in shares.items()
        }
        line = ", ".join(
            f"{name} {share.mean():4.0%} (most {share.max():4.0%})"
            for name, share in shares.items()
        )
        print(f"{title[heads]}, layer {layer}: {line}")

# %% [markdown]
# With one head the two layers are two looks, one after the other: most often
# first at the adjective and then, knowing it, at the noun; on the left above it
# is the other way round. With eight heads there is room for looks of no
# account, and the same work is done several times over. Which of these maps is
# *the* explanation? They all belong to models that are right.
#
# ## Which map tells the truth?
#
# Five maps of the same answers. The model is the one with two heads, the answer
# is the probability of the right noun at *it*.
#
# - **Raw attention**: the weights of *it* in the last layer, the mean of its
#   heads.
# - **Rollout** (Abnar and Zuidema 2020, <https://arxiv.org/abs/2005.00928>):
#   all layers, half of each token kept by the residual connection,
#
# $$R_l = \big(\tfrac{1}{2} I + \tfrac{1}{2} A_l\big) R_{l-1}, \quad R_0 = I .$$
#
# - **Gradient times input**: how much each vector $e_s$ speaks for the right
#   noun against the other one, if the model were linear,
#   $e_s \cdot \partial (z_{right} - z_{other}) / \partial e_s$.
# - **RISE** (Petsiuk et al. 2018, <https://arxiv.org/abs/1806.07421>): hide
#   words at random, N times, and take the mean of the answers where a word was
#   seen,
#
# $$S(s) = \frac{1}{N\, \mathbb{E}[M]} \sum_{i=1}^{N} f(x \odot M_i) M_i(s) .$$
#
# - **Chance**: random numbers.

# %%
EXPLAINED = HEADS[min(1, len(HEADS) - 1)]
reader, found = readers[EXPLAINED], looks[EXPLAINED]
words = [pronouns.words(tokens) for tokens in kept.tokens]
answers = kept.tokens[every, kept.right]  # (B,), ids of the right nouns


def sayer(row, model=reader):
    """Returns f of a sentence: ids to the probability of its right noun."""
    it, answer = kept.it[row], answers[row]
    return lambda tokens: chances(model, tokens, T)[:, it, answer]


raw = found[-1].weights[every, :, kept.it].mean(1)  # (B, T)
rolled = rollout(found)
by_hand = np.eye(T)
for one in found:
    mixed = 0.5 * np.eye(T) + 0.5 * one.weights.mean(1)
    mixed /= mixed.sum(-1, keepdims=True)  # rows of padding look at nothing
    by_hand = mixed @ by_hand
np.testing.assert_allclose(rolled, by_hand, atol=1e-5)
rolled = rolled[every, kept.it]
for_right = np.zeros((B, T, V), "float32")
for_right[every, kept.it, answers] = 1
for_right[every, kept.it, kept.tokens[every, kept.wrong]] = -1
slopes = gradient_times_input(reader, kept.tokens, for_right)
assert raw.shape == rolled.shape == slopes.shape == (B, T)

MASKS = TokenMasks(pronouns.HIDDEN, keep_ids=(pronouns.PAD, pronouns.IT))
began = time.perf_counter()
risen = [
    rise(
        sayer(row),
        kept.tokens[row, : len(words[row])],
        MASKS,
        num_masks=run.masks,
        batch_size=ROWS,
        seed=row,
        verbose=0,
    )
    for row in range(B)
]
print(f"RISE: {B * run.masks:,} answers, {time.perf_counter() - began:.0f} s")

# %% [markdown]
# Petsiuk et al. score a map by what it is good for. **Deletion**: hide words,
# those first that matter most, and look at the area below the answers; a small
# one is good. **Insertion**: begin with nothing, and show them; a large one is
# good. (*It* itself stays, it has to be asked.) The intervals are those of 95 %
# of the mean over sentences, $\pm\, 1.96\, s / \sqrt{B}$.

# %%
generator = np.random.default_rng(run.seed)
NAMES = "raw attention", "rollout", "gradient x input", "RISE", "chance"
scores = {name: [] for name in NAMES}
for row in range(B):
    n = len(words[row])
    rankings = (raw[row, :n], rolled[row, :n], slopes[row, :n], risen[row])
    rankings = (*rankings, generator.random(n))
    for name, saliency in zip(NAMES, rankings, strict=True):
        scores[name].append(
            deletion_and_insertion(
                sayer(row), kept.tokens[row, :n], saliency, MASKS
            )
        )


def interval(areas):
    """Returns the mean of areas, and half of its interval of 95 %."""
    return np.mean(areas), 1.96 * np.std(areas, ddof=1) / np.sqrt(len(areas))


areas = {}
print(f"{'':<17} deletion        insertion")
for name, rows in scores.items():
    areas[name] = {
        "deletion": [one.deletion_area for one in rows],
        "insertion": [one.insertion_area for one in rows],
    }
    said = [interval(part) for part in areas[name].values()]
    results[f"areas, {name}"] = [list(map(float, pair)) for pair in said]
    print(f"{name:<17} " + "   ".join(f"{m:.3f} ± {h:.3f}" for m, h in said))
if WHOLE:
    assert (
        interval(areas["RISE"]["deletion"])[0]
        < (interval(areas["chance"]["deletion"])[0])
    )

# %% alt="The answer as words are hidden, and as they are shown, for five maps"
figure = Figure(figsize=(9, 3.8), layout="constrained")
panels = figure.subplots(1, 2, sharey=True)
grid = np.linspace(0, 1, 41)
STYLES = ("C0-", "C1-", "C2-", "C3-", "k:")
for (name, rows), style in zip(scores.items(), STYLES, strict=True):
    for axes, part in zip(panels, ("deletion", "insertion"), strict=True):
        curves = [
            np.interp(grid, one.fractions, getattr(one, part)) for one in rows
        ]
        mean, half = np.mean(curves, 0), np.std(curves, 0) / np.sqrt(B) * 1.96
        axes.plot(grid, mean, style, label=name)
        axes.fill_between(
            grid, mean - half, mean + half, color=style[:-1], alpha=0.15
        )
panels[0].set(title="hidden, those first that matter", ylabel="p(right noun)")
panels[1].set(title="shown, those first that matter", ylim=(0, 1.02))
for axes in panels:
    axes.set_xlabel("share of the words")
panels[1].legend(loc="lower right")
figure.savefig(run.out / "deletion.png", dpi=150)
figure

# %% [markdown]
# All maps know more than chance. RISE is best at this game, and no wonder: it
# hides words to find out what matters, and the game is to hide words. Raw
# attention sees what the last layer looked at, not what was done with it;
# rollout adds the first layer, where the adjective was read; the gradient knows
# about small changes, and a word that is hidden is none.
#
# ## A map that misleads
#
# Hide one word alone, and see how much the answer falls. If a map tells what
# matters, the word that is looked at most should be one of those that count.

# %%
alone = np.zeros((B, T))  # how far the answer falls
for row in range(B):
    n = len(words[row])
    tokens = np.repeat(kept.tokens[row : row + 1, :n], n + 1, axis=0)
    tokens[np.arange(n), np.arange(n)] = pronouns.HIDDEN
    tokens[kept.it[row]] = kept.tokens[row, :n]  # it stays
    said = sayer(row)(tokens)
    alone[row, :n] = said[-1] - said[:-1]
others = raw.copy()
others[every, kept.it] = 0  # it cannot be hidden
most = others.argmax(-1)
idle = np.abs(alone[every, most]) < 0.01
print(
    f"in {idle.mean():.0%} of the sentences the word that is looked at most "
    "changes nothing (less than 0.01) where it is hidden alone"
)
found = np.where(idle, others[every, most], 0)
worst = int(found.argmax())
n = len(words[worst])
print(
    f"the most: {found[worst]:.0%} of the weight on "
    f"{words[worst][most[worst]]!r}, whose absence moves p(right) by "
    f"{-alone[worst, most[worst]]:+.4f}"
)
results["misleads"] = {
    "share": float(idle.mean()),
    "sentence": " ".join(words[worst]),
    "word": words[worst][most[worst]],
    "weight": float(found[worst]),
    "change": float(-alone[worst, most[worst]]),
}

# %% alt="One sentence under five maps: attention points elsewhere"
rows = {
    "raw attention": raw[worst, :n],
    "rollout": rolled[worst, :n],
    "gradient x input": slopes[worst, :n],
    "RISE": risen[worst] - risen[worst][kept.it[worst]],
    "hidden alone": alone[worst, :n],
}
rows = {name: row / np.abs(row).max() for name, row in rows.items()}
draw_strips(
    [[Strips(words[worst], rows, "each row by its largest")]],
    colormap="RdBu",
    label="for (blue), against (red)",
)

# %% [markdown]
# *Stream* has more than half of the weight, *ill* most of the rest. Hide *dog*,
# the right answer, and its probability falls; hide *stream*, and nothing
# happens. The map is no lie: the model did look there. But what it fetched made
# no difference. Rollout, which adds the first layer, puts the dog first,
# narrowly.
#
# ## Comparing two numbers
#
# *10 > 4*, *52 < 57*: a classifier reads digits and says which sign belongs
# between. The length decides, or the first digit that differs. It answers at
# `?`, the first token. Where does it look?

# %%
learned = number_pairs.draw(2 * run.rows, run.seed)
inputs = np.concatenate([learned.tokens, number_pairs.hide(learned, run.seed)])
judge = SequenceClassifier(
    encoder(number_pairs.VOCABULARY, 4), len(number_pairs.SIGNS), dropout=0.0
)
fit(
    "pairs",
    judge,
    inputs,
    np.concatenate([learned.answers] * 2),
    keras.losses.SparseCategoricalCrossentropy(from_logits=True),
)
asked = number_pairs.draw(run.examples, run.seed + 1)
p = chances(judge, asked.tokens, asked.tokens.shape[1])
assert p.shape == (len(asked.tokens), 3)
results["pairs right"] = float((p.argmax(-1) == asked.answers).mean())
print(f"right in {results['pairs right']:.1%} of {len(asked.tokens)} pairs")
if WHOLE:
    assert results["pairs right"] > 0.9

# %% alt="Weights of the question mark and RISE over pairs of numbers"
DIGITS = TokenMasks(
    number_pairs.HIDDEN,
    keep_ids=(number_pairs.PAD, number_pairs.ASK, number_pairs.BETWEEN),
)


def influence(tokens, answer, seed=0):
    """Returns how much each token raises p(answer) where it is seen.

    S is the mean of what is said where a token is seen, half of all times. The
    first token is never hidden, so its S is the mean of all; twice the
    difference is that between seen and hidden.
    """
    saliency = rise(
        lambda batch: chances(judge, batch, tokens.shape[0])[:, answer],
        tokens,
        DIGITS,
        num_masks=run.masks,
        batch_size=ROWS,
        seed=seed,
        verbose=0,
    )
    return 2 * (saliency - saliency[0])


SHOWN = [(10, 4), (52, 57), (831, 264), (831, 864), (831, 838), (77, 700)]
shown = number_pairs.of_numbers(SHOWN)
weights = attention_maps(judge, shown.tokens)[-1].weights[:, :, 0].mean(1)
panels = []
for row, tokens in enumerate(shown.tokens):
    signs = number_pairs.text(tokens)
    strips = {
        "attention of ?": weights[row, : len(signs)],
        "RISE": influence(tokens, shown.answers[row])[: len(signs)],
    }
    said = number_pairs.SIGNS[shown.answers[row]]
    first, second = shown.numbers[row]
    panels.append(Strips(signs, strips, f"{first} {said} {second}"))
draw_strips(
    [panels[i : i + 2] for i in range(0, len(panels), 2)],
    colormap="RdBu",
    label="for the right sign (blue), against it (red)",
)

# %% [markdown]
# Is that so in general? Pairs of three digits, by the digit that decides. The
# influence is the mean of RISE over both numbers; beside it stands the share of
# the weights of `?`.

# %%
many = number_pairs.draw(8 * run.examples, run.seed + 2)
decides = number_pairs.first_difference(many)
three = (many.numbers >= 100).all(-1) & (decides >= 0)
table = np.zeros((3, 2, 3))  # digit that decides, RISE or attention, digit
for digit in range(3):
    chosen = np.flatnonzero(three & (decides == digit))[: run.examples // 6]
    if not len(chosen):
        continue
    tokens = many.tokens[chosen]
    found = [
        influence(tokens[i], many.answers[row], seed=i)
        for i, row in enumerate(chosen)
    ]
    w = attention_maps(judge, tokens)[-1].weights[:, :, 0].mean(1)
    # The token before them is `?`, between the numbers stands `:`.
    for part, numbers in enumerate((np.mean(found, 0), w.mean(0))):
        table[digit, part] = numbers[1:4] + numbers[5:8]
    table[digit, 0] /= 2
    name = ("first", "second", "third")[digit]
    print(
        f"decided by the {name} digit, {len(chosen)} pairs: "
        f"RISE {table[digit, 0].round(2)}, "
        f"attention {table[digit, 1].round(2)}"
    )
results["digits"] = table.tolist()
if WHOLE:
    assert (table[:, 0].argmax(-1) == np.arange(3)).all()

# %% [markdown]
# RISE finds the digit that decides. One pair alone is noisy: the colon is never
# hidden, so what it shows above, up to a fifth, is the error of 500 masks. The
# mean over 42 pairs is not. Of the weights of `?` only those of the third digit
# stand out where it decides; where the first one does, the second has the most.
# By the last layer the digits have told each other what they are, and it may be
# looked up anywhere.
#
# ## Sorting
#
# A Transformer reads eight numbers and writes them sorted. Some of those it
# learned from have holes, `_`; a hole is not written. So RISE may hide numbers.

# %%
LENGTH = 8
learned = sorted_numbers.draw(2 * run.rows, LENGTH, run.seed, hidden=0.8)
keras.utils.set_random_seed(run.seed)
sorter = Transformer(
    len(sorted_numbers.VOCABULARY),
    num_layers=run.layers,
    num_heads=2,
    hidden_dim=D,
    intermediate_dim=2 * D,
    dropout=0.0,
)
fit(
    "sorting",
    sorter,
    (learned.sources, learned.targets),
    learned.labels,
    SequenceCrossentropy(),
)
rows = sorted_numbers.draw(run.examples, LENGTH, run.seed + 1)
L = LENGTH + 1


def sorter_says(sources, targets):
    """Returns p of what comes next, asked in batches of one shape."""
    found = []
    for start in range(0, len(sources), ROWS):
        wide = [
            np.full((ROWS, n), sorted_numbers.ZERO, "int32")
            for n in (LENGTH, L)
        ]
        parts = [x[start : start + ROWS] for x in (sources, targets)]
        for target, part in zip(wide, parts, strict=True):
            target[: len(part)] = part
        logits = sorter.predict_on_batch(tuple(wide))
        found.append(softmax(logits[: len(parts[0])]))
    return np.concatenate(found)


p = sorter_says(rows.sources, rows.targets)
assert p.shape == (len(rows.sources), L, len(sorted_numbers.VOCABULARY))
# Greedy search finds a row where, with all before it right, each is right.
right = (p.argmax(-1) == rows.labels).all(-1)
results["sorted right"] = float(right.mean())
print(f"right in {right.mean():.1%} of {len(right)} rows")
if WHOLE:
    assert right.mean() > 0.8

# %% [markdown]
# The answer is a sequence now, and so is what RISE explains: f returns a
# probability for each number that is written, given those before it, and the
# map has a row for each.

# %% alt="Sorting: where each number comes from, by attention and by RISE"
HOLES = TokenMasks(sorted_numbers.HIDDEN, keep_ids=())


def written(row):
    """Returns f: sources to p of each token of the sorted row, (B, L)."""

    def say(batch):
        target = np.repeat(rows.targets[row : row + 1], len(batch), axis=0)
        p = sorter_says(batch, target)
        return p[:, np.arange(L), rows.labels[row]]

    return say


def risen_of(row):
    """Returns the influence of each number on each one written, (L, S)."""
    saliency = rise(
        written(row),
        rows.sources[row],
        HOLES,
        num_masks=run.masks,
        batch_size=ROWS,
        verbose=0,
    )
    assert saliency.shape == (L, LENGTH)
    return saliency


ordered = rows.sources, rows.targets
looks_at = attention_maps(sorter, ordered, layers="cross_attention")[-1]
looks_at = looks_at.weights.mean(1)  # (B, L, S)
one = risen_of(0)
# What nothing depends on shall be white.
one = one - one.min(-1, keepdims=True)
names = sorted_numbers.text(rows.sources[0])
labels = sorted_numbers.text(rows.labels[0])
figure = Figure(figsize=(9, 4.2), layout="constrained")
panels = figure.subplots(1, 2)
plot_attention(looks_at[0], labels, names, ax=panels[:1])
plot_attention(one, labels, names, ax=panels[1:])
figure.axes[-1].set_ylabel("above the least of a row")
for axes, title in zip(panels, ("attention", "RISE"), strict=True):
    axes.set(title=title, xlabel="read", ylabel="written")
figure

# %%
place = (rows.sources[:, None] == rows.labels[:, :-1, None]).argmax(-1)
looked = (looks_at[:, :-1].argmax(-1) == place).mean()
some = min(32, len(place))
maps = np.array([risen_of(row)[:-1] for row in range(some)])
mattered = (maps.argmax(-1) == place[:some]).mean()
results["sorting"] = {"attention": float(looked), "RISE": float(mattered)}
print(f"attention is largest on the number that is written: {looked:.1%}")
print(f"RISE is largest on the number that is written: {mattered:.1%}")

# %% [markdown]
# Two ways of asking, one answer: here the attention map tells the truth. What
# is looked at is copied, so looking is mattering.
#
# ## A network of glimpses
#
# [The glimpse network](../glimpses/index.md) has no attention weights. It looks
# at a few small patches, each place chosen by what it saw before, and says
# which digit lies on the canvas. Here it is a smaller one: canvases of 32x32,
# two pieces of other digits on each. RISE hides parts of the canvas, softly:
# small random grids, enlarged.

# %%
S = 32  # pixels of a canvas, each way
CANVAS = {"side": S, "pieces": 2}
keras.utils.set_random_seed(run.seed)
network = GlimpseNetwork(
    glimpses=run.looks,
    num_patches=3,
    width=2 * D,
    deviation=0.12,
    seed=run.seed,
)
learner = GlimpseLearner(network)
learner.build(((None, S, S, 1), (None,)))
epochs = 1 if run.quick else 20
batches = CanvasBatches(
    digits.train.images,
    digits.train.labels,
    -(-run.steps // epochs),
    64,
    run.seed,
    rise=round(0.6 * epochs),
    **CANVAS,
)
rate = keras.optimizers.schedules.CosineDecay(2e-3, run.steps, alpha=0.02)
learner.compile(keras.optimizers.Adam(rate, global_clipnorm=5.0))
began = time.perf_counter()
learner.fit(
    batches,
    epochs=epochs,
    shuffle=False,
    verbose=0,
    callbacks=[
        # The digits lie near the middle at first, then further and further.
        keras.callbacks.LambdaCallback(
            on_epoch_begin=lambda epoch, _: batches.set_epoch(epoch)
        )
    ],
)
print(f"{run.steps:,} steps, {time.perf_counter() - began:.0f} s")
count = ROWS if run.quick else 6 * ROWS
canvases = scatter(
    digits.test.images[:count],
    digits.test.labels[:count],
    digits.train.images,
    np.random.default_rng(run.seed),
    **CANVAS,
)
seen = network.predict(canvases.images, batch_size=ROWS, verbose=0)
p = softmax(seen["logits"][:, -1])
right = p.argmax(-1) == canvases.labels
results["glimpses right"] = float(right.mean())
print(f"right in {right.mean():.1%} of {len(right)} canvases")
if WHOLE:
    assert right.mean() > 0.5

# %% [markdown]
# Two maps of the same answers: RISE, and, as near as this network comes to an
# attention map, the places that it looked at, the nearer the more. Scored as
# before, beside chance, over canvases that it reads well.

# %%
PATCHES = PatchMasks(grid=8)
good = np.flatnonzero(right & (p.max(-1) > 0.8))[: run.canvases]
if not len(good):
    good = np.arange(run.canvases)  # a quick run reads none
centres = np.stack(np.meshgrid(np.arange(S), np.arange(S)), axis=-1)  # x, y


def seen_as(number):
    """Returns f: canvases to the probability of what this one is taken for."""
    digit = int(p[number].argmax())

    def say(batch):
        wide = np.zeros((ROWS, S, S, 1), "float32")
        wide[: len(batch)] = batch
        logits = network.predict_on_batch(wide)["logits"][: len(batch), -1]
        return softmax(logits)[:, digit]

    return say


pictures, box, near = [], [], {"RISE": [], "looks": [], "chance": []}
began = time.perf_counter()
for number in good:
    image = canvases.images[number]
    saliency = rise(
        seen_as(number),
        image,
        PATCHES,
        num_masks=2 * run.masks,
        batch_size=ROWS,
        seed=int(number),
        verbose=0,
    )
    assert saliency.shape == (S, S)
    path = pixel(seen["places"][number], S)  # (T, 2)
    away = np.linalg.norm(centres[:, :, None] - path, axis=-1).min(-1)
    row, column = canvases.corners[number]
    inside = np.zeros((S, S), bool)
    inside[row : row + 8, column : column + 8] = True
    for name, ranking in (
        ("RISE", saliency),
        ("looks", -away),
        ("chance", generator.random((S, S))),
    ):
        near[name].append(
            deletion_and_insertion(
                seen_as(number), image, ranking, PATCHES, steps=32
            )
        )
    box.append(np.unravel_index(saliency.argmax(), (S, S)))
    box[-1] = bool(inside[box[-1]])
    pictures.append((image[..., 0], saliency, path))
print(f"{len(good)} canvases, {time.perf_counter() - began:.0f} s")
print(f"RISE is largest on the digit in {np.mean(box):.0%} of them")
results["canvases"] = {"RISE on the digit": float(np.mean(box))}
for name, found in near.items():
    said = [
        interval([getattr(one, f"{part}_area") for one in found])
        for part in ("deletion", "insertion")
    ]
    results["canvases"][name] = [list(map(float, pair)) for pair in said]
    print(f"{name:<7} " + "   ".join(f"{m:.3f} ± {h:.3f}" for m, h in said))
if WHOLE:
    assert np.mean(box) > 0.5

# %% alt="Canvases with the paths of looks, below them what RISE says matters"
count = min(6, len(pictures))
figure = Figure(figsize=(1.7 * count + 0.4, 3.8), layout="constrained")
panels = figure.subplots(2, count, squeeze=False)
for (image, saliency, path), column, number in zip(
    pictures, panels.T, good, strict=False
):
    column[0].imshow(image, cmap="gray_r", vmin=0, vmax=1)
    column[0].plot(*path.T, "o-", color="C3", markersize=3, linewidth=1)
    column[0].set_title(f"a {p[number].argmax()}, it says", fontsize=9)
    column[1].imshow(image, cmap="gray_r", vmin=0, vmax=1)
    column[1].imshow(saliency, cmap="Reds", alpha=0.7)
    column[1].set_title("RISE", fontsize=9)
    for axes in column:
        axes.set(xticks=[], yticks=[])
figure

# %% [markdown]
# The looks are not a bad map: what it wants to read it has to look at. But the
# first ones are for searching, and RISE gives them little.
#
# ## What was heard
#
# The same with a sound. Two letters of Morse code in noise, and a network of
# convolutions that says which letter was the first. No attention anywhere. It
# reads how loud each hundredth of a second is; RISE hides stretches of the
# sound itself, which fade into silence.

# %%
sounds = morse_letters.draw(max(64, run.rows // 2), run.seed)
keras.utils.set_random_seed(run.seed)
layers = keras.layers
ear = keras.Sequential(
    [
        keras.Input((morse_letters.FRAMES, 1)),
        layers.Conv1D(32, 9, 2, activation="relu", padding="same"),
        layers.Conv1D(64, 9, 2, activation="relu", padding="same"),
        layers.Conv1D(64, 9, 2, activation="relu", padding="same"),
        layers.Flatten(),
        layers.Dropout(0.3),
        layers.Dense(len(morse_letters.LETTERS)),
    ]
)
fit(
    "Morse",
    ear,
    morse_letters.loudness(sounds.samples),
    sounds.labels,
    keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    passes=2 * run.passes,
)
heard = morse_letters.draw(ROWS, run.seed + 1)
p = softmax(ear.predict_on_batch(morse_letters.loudness(heard.samples)))
right = p.argmax(-1) == heard.labels
results["letters right"] = float(right.mean())
print(f"right in {right.mean():.1%} of {len(right)} sounds")

# %% alt="Sounds of two letters, and what RISE says mattered for the first"
STRETCHES = FrameMasks(grid=18)


def heard_as(letter):
    """Returns f: sounds to the probability of a first letter."""

    def say(batch):
        wide = np.zeros((ROWS, batch.shape[1]), "float32")
        wide[: len(batch)] = batch
        logits = ear.predict_on_batch(morse_letters.loudness(wide))
        return softmax(logits[: len(batch)])[:, letter]

    return say


times = np.arange(heard.samples.shape[1]) / morse_letters.RATE
chosen = np.flatnonzero(right)[:16] if right.any() else np.arange(2)
inside, drawn = [], []
for number in chosen:
    saliency = rise(
        heard_as(heard.labels[number]),
        heard.samples[number],
        STRETCHES,
        num_masks=run.masks,
        batch_size=ROWS,
        verbose=0,
    )
    assert saliency.shape == times.shape
    first, last = heard.spans[number]
    inside.append(bool(first <= saliency.argmax() < last))
    drawn.append(saliency)
figure = Figure(figsize=(9, 1.5 * min(3, len(chosen))), layout="constrained")
panels = figure.subplots(min(3, len(chosen)), 1, sharex=True, squeeze=False)
for axes, number, saliency in zip(panels.flat, chosen, drawn, strict=False):
    axes.plot(times, heard.samples[number], color="grey", linewidth=0.3)
    axes.set(yticks=[], ylabel=heard.texts[number])
    twin = axes.twinx()
    twin.plot(times, saliency, color="C3")
    twin.set_yticks([])
    axes.axvspan(*heard.spans[number] / morse_letters.RATE, alpha=0.15)
panels[-1, 0].set_xlabel("seconds")
figure

# %%
results["letters"] = float(np.mean(inside))
print(
    f"RISE is largest within the first letter in {np.mean(inside):.0%} of "
    f"{len(inside)} sounds"
)

# %% [markdown]
# Marked is the first letter. The beginning of the second matters too: it says
# where the first one ends. Between the two RISE is as low as anywhere, or
# nearly. A mask puts silence there, and that only makes the gap clearer.
#
# ## Keeping it
#
# All figures, and the alignment as a page of its own.

# %%
results["settings"] = {k: str(v) for k, v in run._asdict().items()}
(run.out / "results.json").write_text(
    json.dumps(results, indent=1, ensure_ascii=False), encoding="utf-8"
)
program = "python tutorials/looking_inside.py"
print(f"""
The heads of the translator are in {run.out / "attention.html"}, the curves are
drawn in {run.out / "deletion.png"}, all figures in {run.out / "results.json"}.

What to try next:
  SENTENCE="she wants to buy two red shirts" {program}
                            another alignment
  HEADS=4 {program}   is four enough?
  MASKS=4000 {program}   less noise in RISE
  PASSES=2 {program}   do maps of a worse model mislead more?""")

# %% [markdown]
# ## Exercises
#
# **1.** A head looks at the end of the sentence with a weight of 0.9, in every
# row. Its value vectors there are all zero. What does the map show, what does
# rollout make of it, and what does deletion say? Where have you seen something
# like it above?
#
# <details markdown>
# <summary>Answer</summary>
#
# The map shows the end token, and rollout hands on its share as if something
# came from there. But 0.9 times nothing is nothing: hiding it changes the
# answer no more than the values do. A head that has nothing to say in a
# sentence must put its weight somewhere, since weights sum to 1. *Stream* above
# was looked at most, and what was fetched there made no difference.
#
# </details>
#
# **2.** Fill in the blanks, so that this is RISE for one sentence. `f` takes
# ids (N, T) and returns (N,); each token is seen with probability p:
#
#     def rise(f, ids, hidden, masks, p):  # masks: bool (N, T)
#         shown = ____
#         return ____ @ masks / ____
#
# <details markdown>
# <summary>Answer</summary>
#
#     shown = np.where(masks, ids, hidden)
#     return f(shown) @ masks / (p * len(masks))
#
# A token that does not matter gets the mean answer, not 0: a share p of the
# masks shows it, and the division by p N counts these only.
#
# </details>
#
# **3.** An answer needs one of two words, and either will do: f = 1 if any of
# them is seen. What does hiding one word alone say of them, what RISE with
# p = 1/2? And how does the order of deletion fare?
#
# <details markdown>
# <summary>Answer</summary>
#
# Alone, neither changes anything: 0 for both, the other one is still there.
# RISE: where a word is seen the answer is 1; over all masks it is 3/4, and so
# it is at words that do not matter. Both stand out, 1 against 3/4. Deletion
# falls as soon as both are gone; a map that knows one of them only keeps the
# answer at 1 for long. Hiding alone is blind to what is said twice.
#
# </details>
