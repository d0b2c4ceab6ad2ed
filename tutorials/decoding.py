# %% [markdown]
# # Decoding
#
# A translation model does not give a translation. It gives, for every
# beginning of one, the probability of each next token. How does one get from
# there to a sentence, and is the likeliest sentence the best one?
#
# ![Candidates of a beam search: some live, ended, were cut](decoding-2.png)
#
# This is a beam search at work, drawn further down: at every step it looks at
# 2k candidates, keeps the k best that go on, and puts aside those that end.
#
# You will
#
# - decode **greedily**, by hand, and find what `GreedySearch` finds;
# - write **beam search** in NumPy, and see what k and t mean, which
#   hypotheses live, end and are given up, and what the length penalty does;
# - see where each of the n best translations **looked** in the source;
# - **sample**, with temperature, top-k and top-p;
# - measure **when beam search hurts**;
# - see which bad arguments are refused, and in which words.
#
# Five to ten minutes on two cores, most of it for the wide beams near the end.
# The data is written by a phrase grammar; nothing is downloaded. As a program,
# on any backend:
#
#     KERAS_BACKEND=torch .venv/bin/python tutorials/decoding.py

# %%
import itertools
import os
from collections import Counter

import keras
import numpy as np
from beam_tree import Candidate, plot_tree
from matplotlib.figure import Figure
from small_translator import train_translator
from translation import bleu

from keras_attn.decoding import BeamSearch, GreedySearch, Sampling
from keras_attn.explain import plot_attention, plot_beam
from keras_attn.models import Transformer

QUICK = os.environ.get("QUICK", "0") not in ("", "0", "no", "false")
MAX_LENGTH = 12 if QUICK else 40  # L, the most tokens of a translation
print(f"Keras {keras.__version__} on {keras.backend.backend()}")

# %% [markdown]
# ## A model that is not too sure
#
# [A Transformer learns to translate](../translate/index.md) trains a
# Transformer on English sentences and their Spanish translations. Here the
# same model sees the same sentences only once instead of some four times. A
# model that always knows what comes next is decoded equally well by any method.
#
# The sentences below were not trained on.

# %%
translator = train_translator(epochs=1, quick=QUICK)
model, tokenizer = translator.model, translator.tokenizer
sources = [english for english, _ in translator.test]
references = [spanish for _, spanish in translator.test]
# One row of ids a sentence, of any length; the end token belongs to it.
rows = [[*ids, tokenizer.end_id] for ids in tokenizer.encode(sources)]
SOURCE_LENGTH = max(map(len, rows))  # S
print(len(rows), "sentences to test on, such as:", sources[0])

# %% [markdown]
# ## What a decoder gives
#
# The probability of a translation $y$ of a source $x$ is a product over its
# tokens, so its logarithm is a sum:
#
# $$\log p(y \mid x) = \sum_{n=1}^{|y|} \log p(y_n \mid y_{<n}, x).$$
#
# One pass over whole targets gives all terms at once: a later token changes
# nothing about an earlier one. So the rows can be padded to one shape, and a
# compiled backend makes one program.


# %%
def padded(id_rows, length):
    """Returns rows of ids as int32 (rows, length), padding behind them."""
    ids = np.full((len(id_rows), length), tokenizer.pad_id, "int32")
    for target, row in zip(ids, id_rows, strict=True):
        target[: len(row)] = row
    return ids


def log_softmax(logits):
    """Returns log p from logits, float64, over the last axis."""
    logits = logits.astype("float64")
    logits = logits - logits.max(-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def log_probs(source_rows, target_rows):
    """Returns log p(next token | source, target so far), float64 (B, L, V)."""
    behind_start = [[tokenizer.start_id, *row] for row in target_rows]
    logits = model.predict_on_batch(
        (padded(source_rows, SOURCE_LENGTH), padded(behind_start, MAX_LENGTH))
    )
    return log_softmax(logits)


def decoder_of(source_row, count=4):
    """Returns what the searches below ask: beginnings -> log p, (n, V)."""

    def next_log_probs(beginnings):
        # Always `count` rows: the same program at every step.
        spare = [()] * (count - len(beginnings))
        found = log_probs([source_row] * count, [*beginnings, *spare])
        # (count, L, V): of each beginning, what comes behind its last token.
        found = found[range(len(beginnings)), [len(b) for b in beginnings]]
        assert found.shape == (len(beginnings), tokenizer.vocabulary_size)
        return found

    return next_log_probs


first = decoder_of(rows[0])([()])[0]
print(f"log p of {first.shape[0]} tokens; p sums to {np.exp(first).sum():.6f}")
assert abs(np.exp(first).sum() - 1) < 1e-9

# %% [markdown]
# ## Greedy search
#
# Take the likeliest token, put it behind the beginning, ask again, stop at the
# end token:
#
# $$y_n = \arg\max_v \log p(v \mid y_{<n}, x).$$
#
# Padding and the start token are never taken: they are no part of a sentence.
# The runner-up is what greedy search gives up for ever at each step.

# %%
NEVER = [tokenizer.pad_id, tokenizer.start_id]


def name(token):
    """Returns how an id is written; ▁ stands for a space."""
    return tokenizer.pieces([token])[0]


def greedy_search(next_log_probs, max_length):
    """Returns the tokens, their log p, and a line about each step."""
    tokens, total, lines = (), 0.0, []
    while len(tokens) < max_length and tokens[-1:] != (tokenizer.end_id,):
        log_p = next_log_probs([tokens])[0]
        log_p[NEVER] = -np.inf
        second, best = np.argsort(log_p)[-2:].tolist()
        tokens, total = (*tokens, best), total + log_p[best]
        lines.append(
            f"{len(tokens):4}  {name(best):<11} p = {np.exp(log_p[best]):.3f}"
            f"   not {name(second):<11} p = {np.exp(log_p[second]):.3f}"
            f"   log p so far {total:7.3f}"
        )
    return tokens, total, lines


greedy = model.generate(rows, MAX_LENGTH, GreedySearch())
assert greedy.tokens.shape == (len(rows), 1, MAX_LENGTH)
assert greedy.scores.shape == greedy.lengths.shape == (len(rows), 1)
tokens, total, lines = greedy_search(decoder_of(rows[0]), MAX_LENGTH)
print(sources[0], *lines, tokenizer.decode(tokens), sep="\n")

# %% [markdown]
# The library's search keeps keys and values from step to step instead of
# passing over the whole target again. It finds the same.

# %%
length = int(greedy.lengths[0, 0])
assert greedy.tokens[0, 0, :length].tolist() == list(tokens)
assert not greedy.tokens[0, 0, length:].any()  # padding behind the end
assert abs(greedy.scores[0, 0] - total) < 1e-3
print(f"GreedySearch: the same {length} tokens, {greedy.scores[0, 0]:.3f}")

# %% [markdown]
# ## Beam search
#
# A step that looks best may lead to where nothing good follows. Beam search
# keeps **k** beginnings alive instead of one, and returns the **t** best
# sentences that it saw end, $t \le k$. Each step:
#
# 1. continue all live beginnings with all tokens, and take the **2k** likeliest
#    of these candidates. A beginning has one way to end, so at most k of the
#    2k end, and at least k go on;
# 2. those among the first k that end are **finished**. They are kept apart: no
#    token is added to them, and they take no place from those that live;
# 3. the first k that do not end **live**; the others are cut.
#
# Sentences of different lengths are compared by a score. Each token adds a
# negative term to $\log p$, so a sum alone prefers short sentences. Wu et al.
# 2016 (<https://arxiv.org/abs/1609.08144>, eq. 14) divide it by
#
# $$\mathrm{lp}(y) = \left(\frac{5 + |y|}{6}\right)^{\alpha}, \qquad
# \mathrm{score}(y) = \frac{\log p(y \mid x)}{\mathrm{lp}(y)},$$
#
# with the end token counted in $|y|$. With $\alpha = 0$ the score is the
# log-probability; a larger $\alpha$ is kinder to long sentences.
#
# The search is over when no live beginning can win any more: its log p only
# falls, and the best it can hope for is to be divided by lp of the longest
# sentence there may be.


# %%
def penalty(length, alpha):
    """Returns lp of a sentence of so many tokens."""
    return ((5 + length) / 6) ** alpha


def beam_search(next_log_probs, k, t, alpha, max_length):
    """Returns the t best, (score, tokens), and all candidates; alpha >= 0."""
    live, finished, steps = [(0.0, ())], [], []
    for length in range(1, max_length + 1):
        log_p = next_log_probs([tokens for _, tokens in live])  # (<= k, V)
        log_p[:, NEVER] = -np.inf
        totals = np.array([[score] for score, _ in live]) + log_p
        places = np.argsort(-totals, axis=None, kind="stable")[: 2 * k]
        candidates, going_on = [], []
        for rank, place in enumerate(places.tolist()):
            origin, token = divmod(place, totals.shape[1])
            score, tokens = totals[origin, token], (*live[origin][1], token)
            fate = "cut"
            if token == tokenizer.end_id or length == max_length:
                if rank < k:
                    fate = "ended"
                    finished.append((score / penalty(length, alpha), tokens))
            elif len(going_on) < k:
                fate = "lives"
                going_on.append((score, tokens))
            candidates.append(Candidate(tokens, float(score), fate))
        steps.append(candidates)
        live = going_on
        finished = sorted(finished, key=lambda pair: -pair[0])[:t]
        hope = live[0][0] / penalty(max_length, alpha) if live else -np.inf
        if len(finished) == t and hope <= finished[-1][0]:
            break
    return finished, steps


# %% [markdown]
# The same search in the library, over all test sentences at once, with the
# four best and what they attended to. Where greedy and beam search disagree,
# there is something to be seen: the shortest such sentence is our example.

# %%
ALPHA = 0.6
beam = model.generate(
    rows,
    MAX_LENGTH,
    BeamSearch(num_beams=4, num_return_sequences=4, length_penalty=ALPHA),
    return_weights=True,
)
assert beam.tokens.shape == (len(rows), 4, MAX_LENGTH)
assert beam.scores.shape == beam.lengths.shape == (len(rows), 4)
differ = [
    number
    for number in range(len(rows))
    if greedy.tokens[number, 0].tolist() != beam.tokens[number, 0].tolist()
]
chosen = min(differ or [0], key=lambda number: len(rows[number]))
print(f"The best of 4 is not the greedy one: {len(differ)} of {len(rows)}")
print(f"\n{sources[chosen]}\n(reference: {references[chosen]})")
print(f"greedy: {tokenizer.decode(greedy.tokens[chosen, 0])}")
for score, best in zip(beam.scores[chosen], beam.tokens[chosen], strict=True):
    print(f"{score:7.3f}  {tokenizer.decode(best)}")


# %%
def same(found, decoded, row):
    """Asserts that a search by hand and the library's found the same."""
    assert len(found) == (decoded.scores[row] > -np.inf).sum()
    for place, (score, tokens) in enumerate(found):
        length = decoded.lengths[row, place]
        assert list(tokens) == decoded.tokens[row, place, :length].tolist()
        assert abs(score - decoded.scores[row, place]) < 1e-3


for number in {chosen} if QUICK else {chosen, 0, 1, 2}:
    found, steps = beam_search(
        decoder_of(rows[number]), 4, 4, ALPHA, MAX_LENGTH
    )
    same(found, beam, number)
    print(f"by hand = BeamSearch: {sources[number]}")

# %% [markdown]
# ### k = t = 2, as lectures draw it
#
# Two beginnings live, and two sentences are returned. `model.stream` shows
# what there is after every step, and `plot_beam` draws it: a column a step, a
# box a hypothesis, the likeliest at the top. Dotted boxes were given up, those
# that ended stand below the live ones with their final score.

# %% alt="Boxes, a column a step: what lives, ends, is given up; k = t = 2"
items = list(
    model.stream(
        [rows[chosen]],
        MAX_LENGTH,
        BeamSearch(num_beams=2, num_return_sequences=2, length_penalty=ALPHA),
    )
)
plot_beam(items, name, title=f"k = t = 2: {sources[chosen]}")

# %% [markdown]
# The library shows the k that live; our own search has kept all 2k candidates
# of every step. Those that live are the same, step by step.

# %%
found, steps = beam_search(decoder_of(rows[chosen]), 2, 2, ALPHA, MAX_LENGTH)
same(found, items[-1], 0)
assert len(items) == len(steps)
for item, candidates in list(zip(items, steps, strict=True))[:-1]:
    live = [c for c in candidates if c.fate == "lives"]
    assert len(candidates) == 4 and len(live) <= 2
    shown = item.active.tokens[0, :, : item.step].tolist()
    assert shown[: len(live)] == [list(c.tokens) for c in live]
for number, candidates in enumerate(steps[:4], start=1):
    print(f"step {number}")
    for c in candidates:
        text = " ".join(tokenizer.pieces(c.tokens))
        print(f"  {c.fate:<6} {c.score:8.3f}  {text}")

# %% [markdown]
# ### k = 4, by score
#
# The same sentence with k = 4. Height is the log-probability: one sees how far
# apart the candidates are, and by how much each was cut. A thick line leads to
# the best sentence.

# %% alt="Candidates of a search with k = 4: circles live, squares ended"
found, steps = beam_search(decoder_of(rows[chosen]), 4, 4, ALPHA, MAX_LENGTH)
plot_tree(steps, name, best=found[0][1], title=f"k = 4: {sources[chosen]}")

# %% [markdown]
# ## Score against length penalty
#
# How much is a longer sentence worth? Left, what scores are divided by. Right,
# the eight best sentences of a search with $\alpha = 0$, and how their scores
# change with $\alpha$. On a logarithmic scale these are straight lines that
# rise towards 0, the longer the sentence, the steeper. Where another line
# becomes the highest, the answer changes.

# %%
# A quick run has no time to compile another search.
count, searched = (4, ALPHA) if QUICK else (8, 0)
wide = model.generate(
    rows,
    MAX_LENGTH,
    BeamSearch(count, num_return_sequences=count, length_penalty=searched),
)
log_p = wide.scores * penalty(wide.lengths, searched)
alphas = np.linspace(0, 2, 41)
# (41, B, 8): log p of every hypothesis over its penalty, for every alpha.
scores = log_p / penalty(wide.lengths, alphas[:, None, None])
assert scores.shape == (41, len(rows), count)
winners = scores.argmax(-1)  # (41, B)
won = np.take_along_axis(wide.lengths[None], winners[..., None], -1)[..., 0]
assert (np.diff(won, axis=0) >= 0).all()  # a larger alpha is never shorter
changed = (won[-1] > won[0]).sum()
print(f"{changed} of {len(rows)} winners get longer from alpha 0 to 2")
# Of those that all end by themselves, the one whose winner grows most.
growth = np.where(won[-1] < MAX_LENGTH, won[-1] - won[0], -1)
example = int(growth.argmax())
print(f"{sources[example]}\n(reference: {references[example]})")

# %% alt="Curves: the penalty over length, and scores over the exponent alpha"
figure = Figure(figsize=(10, 4.4), layout="constrained")
left, right = figure.subplots(1, 2, width_ratios=(2, 3))
for alpha, style in ((0, "-"), (0.6, "--"), (1, "-."), (2, ":")):
    left.plot(
        range(1, 31),
        penalty(np.arange(1, 31), alpha),
        style,
        label=rf"$\alpha$ = {alpha}",
    )
left.set(xlabel="|y|, in tokens", ylabel="lp(y)", title="The penalty")
left.legend()
styles = itertools.cycle(["-", "--", "-.", ":"])
for place in range(count):
    curve, length = scores[:, example, place], wide.lengths[example, place]
    if place not in winners[:, example]:
        right.plot(alphas, curve, color="silver", linewidth=0.8, zorder=1)
        continue
    label = f"{length} tokens"
    right.plot(alphas, curve, next(styles), linewidth=2, label=label)
    print(f"{length:3} tokens: {tokenizer.decode(wide.tokens[example, place])}")
right.set(xlabel=r"$\alpha$", ylabel="score", title="Scores; grey: never best")
right.set_yscale("symlog", linthresh=0.1)
ticks = [-(2.0**power) for power in range(-4, 6)]
low, high = scores[:, example].min(), scores[:, example].max()
right.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
right.set_yticks([], minor=True)
right.set_ylim(1.1 * low, high / 1.1)
right.legend(loc="center left", bbox_to_anchor=(1, 0.5))
figure

# %% [markdown]
# ## Where each of the n best looked
#
# `return_weights=True` asks where the model looked in the source when it chose
# each token: for every one of the n best, of all layers and heads. A row of a
# map is a token of the translation, a column one of the source.

# %%
# (B, t, M, N, L, S): M layers with N heads, L target and S source tokens.
weights = beam.weights
assert weights.shape[:2] == (len(rows), 4)
assert weights.shape[2:4] == (model.num_layers, model.num_heads)
assert weights.shape[4:] == (MAX_LENGTH, SOURCE_LENGTH)
# A row is a distribution over the source, and zero behind the end.
inside = np.arange(MAX_LENGTH) < beam.lengths[..., None]
np.testing.assert_allclose(
    weights.sum(-1),
    np.broadcast_to(inside[:, :, None, None], weights.shape[:-1]),
    atol=1e-4,
)

# %% alt="Four heat maps: where each of the four best looked in the source"
columns = tokenizer.pieces(rows[chosen])
lengths = beam.lengths[chosen]
size = 0.6 * len(columns) + 4, 0.6 * lengths.max() + 3
figure = Figure(figsize=size, layout="constrained")
for place, panel in enumerate(figure.subplots(2, 2).flat):
    length = lengths[place]
    last_layer = weights[chosen, place, -1].mean(0)  # over heads: (L, S)
    plot_attention(
        last_layer[:length, : len(columns)],
        query_tokens=tokenizer.pieces(beam.tokens[chosen, place, :length]),
        key_tokens=columns,
        ax=panel,
        vmax=1.0,
    )
    panel.set_title(f"no. {place + 1}: {beam.scores[chosen, place]:.3f}")
figure

# %% [markdown]
# ## Sampling
#
# Where there is no one right answer, draw from the distribution instead of
# asking for its top. Three knobs make a draw less adventurous:
#
# - **temperature** $\tau$: $p(v) \to p(v)^{1/\tau} / Z$. Below 1 the likely get
#   likelier, above 1 all get more alike;
# - **top-k**: only the k likeliest tokens (this k is no beam's width);
# - **top-p** (Holtzman et al. 2019, <https://arxiv.org/abs/1904.09751>): only
#   the fewest likeliest that together have a probability of at least p.
#
# The bars below are the equations, at a step of a right translation at which
# the model wavered between a few tokens: the one whose likeliest token has a p
# nearest to 0.4. The dots are what `Sampling` drew there, 400 times, the tokens
# before it forced as a prefix.


# %%
def shaped(p, temperature=1.0, top_k=None, top_p=1.0):
    """Returns the distribution that is drawn from, float64 (V,)."""
    p = p ** (1 / temperature)
    p[NEVER] = 0
    order = np.argsort(-p, kind="stable")  # the likeliest first
    if top_k is not None:
        p[order[top_k:]] = 0
    p /= p.sum()
    before = np.cumsum(p[order]) - p[order]
    p[order[before >= top_p]] = 0
    return p / p.sum()


some = range(min(64, len(rows)))  # as many rows as one pass can easily hold
log_p = log_probs(
    [rows[number] for number in some],
    [greedy.tokens[number, 0, :-1] for number in some],
)
assert log_p.shape == (len(some), MAX_LENGTH, tokenizer.vocabulary_size)
likeliest = np.exp(log_p.max(-1))  # (rows, L)
steps_taken = np.arange(MAX_LENGTH) < greedy.lengths[: len(some)]
steps_taken[:, 0] = False  # so that there is a beginning to be forced
right = [
    tokenizer.decode(greedy.tokens[number, 0]) == references[number]
    for number in some
]
if any(right):
    steps_taken &= np.array(right)[:, None]
where = np.where(steps_taken, np.abs(likeliest - 0.4), np.inf).argmin()
number, place = (int(i) for i in np.unravel_index(where, likeliest.shape))
beginning = greedy.tokens[number, 0, :place].tolist()
unsure = np.exp(log_p[number, place])  # (V,)
print(sources[number], "->", tokenizer.decode(beginning), "...")
print(f"the likeliest next token: p = {likeliest[number, place]:.2f}")


# %% alt="Bars: the next token's probabilities by knob; dots: what was drawn"
DRAWS = 50 if QUICK else 400


def draw(seed, **knob):
    """Draws sentences that go on from the beginning, int (400, L)."""
    strategy = Sampling(num_return_sequences=DRAWS, seed=seed, **knob)
    return model.generate(
        [rows[number]], MAX_LENGTH, strategy, prefix=beginning
    ).tokens[0]


knobs = [{}, {"temperature": 0.5}, {"top_k": 3}, {"top_p": 0.8}]
knobs = knobs[-1:] if QUICK else knobs
top = np.argsort(-unsure, kind="stable")[:10]
figure = Figure(figsize=(10, 5.8), layout="constrained")
panels = figure.subplots(2, 2, sharey=True).flat
for panel, knob in zip(panels, knobs, strict=False):
    p = shaped(unsure, **knob)
    drawn = draw(seed=1, **knob)
    assert drawn.shape == (DRAWS, MAX_LENGTH)
    share = np.bincount(drawn[:, place], minlength=len(p)) / DRAWS
    # Nothing outside the part was drawn, and the shares are those of chance.
    assert not share[p == 0].any()
    deviation = np.sqrt(p * (1 - p) / DRAWS)
    assert (np.abs(share - p) <= 5 * deviation + 2 / DRAWS).all()
    panel.bar(range(10), p[top], color="#c9d8ee", edgecolor="#1f4e9c")
    panel.plot(range(10), share[top], "ko", markersize=4)
    panel.set_xticks(range(10), tokenizer.pieces(top), rotation=40, ha="right")
    says = ", ".join(f"{key} = {value}" for key, value in knob.items())
    panel.set(title=says or "all tokens, as they are", ylabel="p")
figure

# %% [markdown]
# The same seed draws the same, on every backend; another seed draws anew. Every
# row has a stream of random numbers of its own, so a row draws the same alone
# and in any batch. What `top_p = 0.8` drew most often in the picture above:

# %%
again, other = (draw(seed, **knob) for seed in (1, 2))
assert (again == drawn).all() and (other != drawn).any()
for text, count in Counter(tokenizer.decode(drawn)).most_common(5):
    print(f"{count:4d} x  {text}")
if not QUICK:
    strategy = Sampling(top_p=0.8, seed=1)
    alone, together = (
        model.generate(rows[:3], MAX_LENGTH, strategy, batch_size=size).tokens
        for size in (1, 3)
    )
    assert (alone == together).all()

# %% [markdown]
# ## When beam search hurts
#
# A wider beam finds sentences that the model likes better. Are they better?
# The same test sentences, with more and more beams: what the model thinks of
# its best sentence (mean log p), how long it is beside the reference, how many
# are right to the letter, and BLEU.


# %%
def measured(width, alpha):
    """Decodes all test sentences; returns what is to be compared."""
    strategy = BeamSearch(
        width, num_return_sequences=min(width, 4), length_penalty=alpha
    )
    found = model.generate(rows, MAX_LENGTH, strategy)
    texts = tokenizer.decode(found.tokens[:, 0])
    log_p = found.scores[:, 0] * penalty(found.lengths[:, 0], alpha)
    words = sum(len(text.split()) for text in texts)
    return {
        "log p": float(log_p.mean()),
        "length": words / sum(len(text.split()) for text in references),
        "right": np.mean(
            [a == b for a, b in zip(texts, references, strict=True)]
        ),
        "BLEU": bleu(texts, [[text] for text in references]).score,
    }


WIDTHS = (4,) if QUICK else (1, 2, 4, 8, 16, 32)
ALPHAS = (ALPHA,) if QUICK else (0.0, 0.6, 2.0)
results = {}
print("alpha  width    log p  length  right   BLEU")
for alpha, width in itertools.product(ALPHAS, WIDTHS):
    row = results[alpha, width] = measured(width, alpha)
    print(
        f"{alpha:5}  {width:5}  {row['log p']:7.3f}  {row['length']:6.3f}  "
        f"{row['right']:5.1%}  {row['BLEU']:5.2f}"
    )

# %% alt="Curves over the width: the model's log p, length, and BLEU"
figure = Figure(figsize=(10, 3.4), layout="constrained")
panels = figure.subplots(1, 3)
for panel, what in zip(panels, ("log p", "length", "BLEU"), strict=True):
    for alpha, style in zip(ALPHAS, ("o-", "s--", "^:"), strict=False):
        values = [results[alpha, width][what] for width in WIDTHS]
        panel.plot(WIDTHS, values, style, label=rf"$\alpha$ = {alpha}")
    panel.set_xscale("log", base=2)
    panel.set_xticks(WIDTHS, WIDTHS)
    panel.set(xlabel="width k", title=what)
panels[0].legend()
figure

# %% [markdown]
# With $\alpha = 0$ the model's opinion of its best sentence rises with every
# doubling: the search does its work better and better. BLEU rises up to a width
# of about four and falls again, and the translations get shorter and shorter.
# Every token costs log p, so where the model is unsure, a sentence that leaves
# something out is likelier than a whole one. A narrow beam does not find it:
# errors of the search hide errors of the model (Koehn and Knowles 2017,
# <https://arxiv.org/abs/1706.03872>, sec. 3.6). Here, beams of 16 and 32 have a
# lower BLEU than greedy search, though more of their sentences are right to the
# letter. With $\alpha = 0.6$ most of the loss is gone, though not all of it.
# $\alpha = 2$ errs to the other side: sentences that do not end.
#
# The extreme case is the empty sentence: nothing but the end token. In a larger
# model it was likelier than every other for more than half of the sentences
# (Stahlberg and Byrne 2019, <https://arxiv.org/abs/1908.10090>). And in ours?

# %%
empty = log_p[:, 0, tokenizer.end_id]  # that the first token is the end
likelier = (empty > greedy.scores[: len(some), 0]).sum()
print(
    f"log p of nothing at all: {empty.mean():.2f} on average, likelier than "
    f"the greedy translation for {likelier} of {len(some)} sentences"
)
if not QUICK:
    narrow, four, broad = (results[0.0, width] for width in (1, 4, 32))
    assert broad["log p"] > four["log p"] + 0.1 > narrow["log p"] + 0.2
    assert broad["length"] < four["length"] - 0.02 < narrow["length"] - 0.04
    assert broad["BLEU"] < four["BLEU"] - 0.5

# %% [markdown]
# ## What may and may not stand in a sentence
#
# With every strategy there can be a forced beginning, tokens that are banned,
# and a minimum length, alone or together. The score stays what it is: it comes
# of the log-probability under the model (here over lp), not of what is left.

# %%
english, spanish = "this cat is very large", "este gato es muy grande"
cat = [*tokenizer.encode(english), tokenizer.end_id]
prefix = tokenizer.encode("ese")
banned = [tokenizer.encode(spanish)[-1]]
for says, forced, limits in (
    ("free", None, {}),
    ("prefix", prefix, {}),
    ("banned", None, {"suppress_tokens": banned}),
    ("minimum", None, {"min_new_tokens": 11}),
    ("all", prefix, {"suppress_tokens": banned, "min_new_tokens": 11}),
)[-1 if QUICK else 0 :]:
    limited = model.generate(
        [cat], MAX_LENGTH, BeamSearch(**limits), prefix=forced
    )
    text = tokenizer.decode(limited.tokens[0, 0])
    print(f"{says:<10}  {limited.scores[0, 0]:8.3f}  {text}")
assert limited.tokens[0, 0, : len(prefix)].tolist() == prefix
assert banned[0] not in limited.tokens[0, 0]
assert limited.lengths[0, 0] >= 11

# %% [markdown]
# ## Bad arguments are answered at the door
#
# One sentence: the argument, what was expected, what came. Nothing is cut off
# or filled up in silence, and no search starts. The second model has learned
# positions, and so a table of them that ends.

# %%
tiny = Transformer(
    6,  # padding, start, end and three letters
    num_layers=1,
    num_heads=1,
    hidden_dim=8,
    intermediate_dim=16,
    position_embedding="learned",
    max_sequence_length=16,
)
unknown = tokenizer.vocabulary_size
refused = {
    "num_return_sequences": lambda: BeamSearch(
        num_beams=2, num_return_sequences=3
    ),  # k < t
    "num_beams": lambda: BeamSearch(num_beams=0),
    "max_new_tokens": lambda: tiny.generate([[3, 4, 2]], max_new_tokens=17),
    "inputs": lambda: model.generate([[]]),
    "inputs, an id": lambda: model.generate([[5, unknown, 2]]),
    "prefix": lambda: model.generate([[5, 2]], prefix=[-1]),
    "prefix, its length": lambda: model.generate([[5, 2]], 2, prefix=[5] * 3),
    "min_new_tokens": lambda: model.generate(
        [[5, 2]], 4, BeamSearch(min_new_tokens=5)
    ),
    "temperature": lambda: Sampling(temperature=0),
    "strategy": lambda: model.generate([[5, 2]], strategy="best"),
}
answers = {}
for what, call in refused.items():
    try:
        call()
    except ValueError as error:
        answers[what] = str(error)
        print(error)
assert answers.keys() == refused.keys()
assert all(f"`{what.split(',')[0]}`" in said for what, said in answers.items())

# %% [markdown]
# ## What is always so
#
# Does a wider beam always find a likelier sentence? No: of the more beginnings
# that are alive, some may look better for a step or two and crowd out the one
# that a narrow beam kept. What does hold is that nothing is cut from a beam
# that is wide enough, $k \ge V^L$: it returns the best sentence that there is.
# With three letters and four tokens, all can be listed. Twenty models with
# random weights:


# %%
def optimum(source_row, length):
    """Returns the highest log p of all sentences of at most `length` tokens."""
    letters, end = (3, 4, 5), 2
    beginnings = list(itertools.product(letters, repeat=length - 1))
    behind_start = np.array([[1, *beginning] for beginning in beginnings])
    log_p = log_softmax(
        tiny.predict_on_batch(
            (np.repeat([source_row], len(beginnings), 0), behind_start)
        )
    )
    assert log_p.shape == (3 ** (length - 1), length, 6)
    found = []
    for row, beginning in enumerate(beginnings):
        so_far = 0.0
        for step, letter in enumerate(beginning):
            found.append(so_far + log_p[row, step, end])
            so_far += log_p[row, step, letter]
        found += [so_far + log_p[row, -1, last] for last in (end, *letters)]
    return max(found)


TINY_WIDTHS = (256,) if QUICK else (1, 2, 4, 8, 256)
generator = np.random.default_rng(0)
missed = dict.fromkeys(TINY_WIDTHS, 0.0)
hits = dict.fromkeys(TINY_WIDTHS, 0)
for _ in range(5 if QUICK else 20):
    for variable in tiny.trainable_variables:
        variable.assign(generator.normal(size=variable.shape))
    best = optimum([3, 4, 5, 2], length=4)
    for width in TINY_WIDTHS:
        strategy = BeamSearch(width, length_penalty=0)
        score = tiny.generate([[3, 4, 5, 2]], 4, strategy).scores[0, 0]
        assert score <= best + 1e-4  # nobody beats the optimum
        hits[width] += abs(score - best) < 1e-4
        missed[width] = max(missed[width], best - score)
for width in TINY_WIDTHS:
    print(
        f"width {width:3}: the optimum in {hits[width]} models, at worst "
        f"{missed[width]:.3f} nats below it"
    )
assert missed[256] < 1e-4

# %% [markdown]
# And of the trained model: the score that a search returns is the score that
# the model gives to that sentence, the n best are n different sentences, and
# they come best first.

# %%
for place in range(4):
    tokens = beam.tokens[: len(some), place]  # (rows, L)
    lengths = beam.lengths[: len(some), place]
    log_p = log_probs([rows[number] for number in some], tokens[:, :-1])
    of_tokens = np.take_along_axis(log_p, tokens[..., None], -1)[..., 0]
    inside = np.arange(MAX_LENGTH) < lengths[:, None]
    again = (of_tokens * inside).sum(-1) / penalty(lengths, ALPHA)
    furthest = np.abs(again - beam.scores[: len(some), place]).max()
    assert furthest < 1e-3
    print(f"no. {place + 1}: scores agree to {furthest:.1e}")
assert (np.diff(beam.scores, axis=1) <= 0).all()
for number in range(len(rows)):
    assert len({tuple(tokens) for tokens in beam.tokens[number]}) == 4

# %% [markdown]
# ## Exercises
#
# **1.** Fill in. A vocabulary has 10 tokens, none of them forbidden, and
# k = 3, t = 2. A step in the midst of a search has ___ continuations, of which
# the search looks at ___. At most ___ of these can end, at most ___ live on,
# and ___ sentences are returned. With k = ___ it is greedy search.
#
# <details markdown>
# <summary>Answer</summary>
#
# 30, of which the 2k = 6 likeliest are looked at. Each of the 3 beginnings has
# one way to end, so at most 3 can end, and only those among the first 3
# candidates count; at most 3 live on, and the 2 best that ended are returned.
# With k = 1 it is greedy search.
#
# </details>
#
# **2.** Two sentences have ended: A with 4 tokens and log p = -4.0, B with 7
# tokens and log p = -4.6. Which wins with $\alpha = 0$, with 0.6, and from
# which $\alpha$ on does the other win?
#
# <details markdown>
# <summary>Answer</summary>
#
# lp is $1.5^\alpha$ for A and $2^\alpha$ for B. With 0, A wins: -4.0 against
# -4.6. With 0.6, B wins: -3.14 against -3.03. They are equal where
# $4.6 / 4.0 = (2 / 1.5)^\alpha$: at
# $\alpha = \ln 1.15 / \ln (4/3) \approx 0.49$.
#
# </details>
#
# **3.** The next token is one of four, with p = 0.5, 0.3, 0.15 and 0.05. Fill
# in what is drawn from: with `top_k=3` ___, with `top_p=0.7` ___, with
# `temperature=0.5` ___. And which knob turns sampling into greedy search?
#
# <details markdown>
# <summary>Answer</summary>
#
# `top_k=3`: 0.526, 0.316, 0.158, 0. `top_p=0.7`: the first alone has less than
# 0.7, the first two have 0.8, so 0.625, 0.375, 0, 0. `temperature=0.5` squares
# and divides by the sum: 0.685, 0.247, 0.062, 0.007. `top_k=1` draws from one
# token: greedy search; so does a temperature near 0, and a `top_p` not above
# the largest p.
#
# </details>
#
# To try: let `beam_search` above end hypotheses anywhere among the 2k
# candidates (drop `if rank < k`) and see `same` object; or train for 3 epochs.
# On one machine that gave BLEU 90.8 with a width of 1 and 91.0 to 91.2 with
# every width from 2 to 32, $\alpha = 0$: a model that is sure is not hurt.
