# %% [markdown]
# # Decoding
#
# A translation model outputs a probability for each possible next token. This
# tutorial turns these probabilities into sentences: with greedy search, beam
# search and sampling, each written by hand and compared with the library.
#
# ![A beam search: hypotheses as boxes, one column per step](decoding-2.png)
#
# **You will learn** what the number of beams and the number of returned sentences
# mean, why scores are divided by a length penalty, when a larger beam gives worse
# translations, and what temperature, top-k and top-p do.
#
# **Prerequisites**: [A Transformer learns to translate](
# ../translate/index.md). **Time**: about 3 minutes on one CPU core.
#
# **Published result**: Koehn and Knowles 2017
# (<https://arxiv.org/abs/1706.03872>, sec. 3.6) trained models for eight
# language pairs. In almost all of them, BLEU falls beyond a certain beam size.
# The same happens below with a model of 1.1 million parameters and 200
# synthetic sentences: without a length penalty, from 64.2 with 4 beams to 63.0
# with 32. The values are not comparable, only their direction.

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
import sacrebleu

from keras_attn import datasets, explain, training
from keras_attn.decoding import BeamSearch, GreedySearch, Sampling
from keras_attn.models import Transformer
from keras_attn.text import SubwordTokenizer, token_batches

keras.utils.set_random_seed(1)
print(f"Keras {keras.__version__} on {keras.backend.backend()}")

# %% [markdown]
# ## The problem with greedy search
#
# The probability of a translation y of a source x is a product over its tokens,
# so its logarithm is a sum:
#
# $$\log p(y \mid x) = \sum_{t=0}^{|y|-1} \log p(y_t \mid y_{<t}, x)$$
#
# Greedy search takes the most probable token at each step. It cannot undo a
# choice. A standard example is the French sentence *les pauvres sont démunis*
# (*the poor don't have any money*): after *the poor*, the word *are* is more
# probable than *don't*, but all of its continuations have low probabilities.
# The probabilities below are invented.

# %%
FRENCH = {
    "": {"the": 0.8, "poor": 0.2},
    "the": {"poor": 0.9, "people": 0.1},
    "the poor": {"are": 0.5, "don't": 0.4, "have": 0.1},
    "the poor are": {"without": 0.3, "broke": 0.3, "poor": 0.2, "not": 0.2},
    "the poor don't": {"have": 1.0},
    "the poor don't have": {"any money": 0.9, "a lot": 0.1},
}


# %%
def greedy_words(table):
    """Returns the words that greedy search takes, and their probability."""
    words, p = "", 1.0
    while words in table:
        word = max(table[words], key=table[words].get)
        p *= table[words][word]
        words = f"{words} {word}".strip()
    return words, p


def best_words(table, words="", p=1.0):
    """Returns the most probable sequence of all, and its probability."""
    if words not in table:
        return words, p
    return max(
        (
            best_words(table, f"{words} {word}".strip(), p * q)
            for word, q in table[words].items()
        ),
        key=lambda found: found[1],
    )


for name, search in ("greedy", greedy_words), ("best", best_words):
    print("{:7} {} (p = {:.3f})".format(name, *search(FRENCH)))
assert greedy_words(FRENCH)[0] == "the poor are without"
assert best_words(FRENCH)[0] == "the poor don't have any money"

# %% [markdown]
# ## Beam search
#
# Trying all sequences takes time exponential in their length. Beam search keeps
# the most probable prefixes, called hypotheses or **beams**, and drops all others.
# Here greedy search, which starts with *the*, misses the best sentence:
#
# ![Beam search with two beams over three steps: the two most probable prefixes
# are kept, the others are dropped](../../diagrams/beam_search_tree.svg)
#
# <!-- figure: beam_search -->
#
# The next picture is a known example from Stanford's course CS224n, with two
# beams. The numbers are the log-probabilities of the whole prefixes.

# %%
TREE = {
    "": {"he": -0.7, "I": -0.9},
    "he": {"hit": -1.7, "struck": -2.9},
    "I": {"was": -1.6, "got": -1.8},
    "he hit": {"a": -2.8, "me": -2.5},
    "I was": {"hit": -2.9, "struck": -3.8},
    "he hit a": {"tart": -4.0, "pie": -3.4},
    "he hit me": {"with": -3.3, "on": -3.5},
    "he hit a pie": {"with": -4.5, "in": -4.8},
    "he hit me with": {"a": -3.7, "one": -4.3},
    "he hit me with a": {"tart": -4.6, "pie": -4.3},
    "he hit me with one": {"pie": -5.0, "tart": -5.3},
}


def beam_of_words(table, num_beams):
    """Returns the hypotheses after each step, as (log p, words)."""
    steps = [[(0.0, "")]]
    while any(words in table for _, words in steps[-1]):
        candidates = [
            (log_p, f"{words} {word}".strip())
            for _, words in steps[-1]
            for word, log_p in table.get(words, {}).items()
        ]
        steps.append(sorted(candidates, reverse=True)[:num_beams])
    return steps[1:]


steps = beam_of_words(TREE, num_beams=2)
for number, step in enumerate(steps, start=1):
    print(number, *(f"{words} ({log_p})" for log_p, words in step), sep="  ")
assert steps[-1][0] == (-4.3, "he hit me with a pie")

# %% tags=["hide-input"] alt="The tree of the search, the most probable prefix of each length at the top: two of each length are kept (blue lines), the others are dropped (gray); the best one is he hit me with a pie"
figure, axis = plt.subplots(figsize=(9, 2.8), layout="constrained")
kept = {words for step in steps for _, words in step}
scores = {"": 0.0}
for prefix, following in TREE.items():
    for word, log_p in following.items():
        scores[f"{prefix} {word}".strip()] = log_p
places, filled = {}, collections.Counter()
for words in sorted(scores, key=scores.get, reverse=True):
    depth = len(words.split())
    places[words] = depth, -filled[depth]
    filled[depth] += 1
for words, place in places.items():
    if words:
        ends = zip(places[words.rpartition(" ")[0]], place, strict=True)
        axis.plot(*ends, color="C0" if words in kept else "0.75", zorder=1)
    axis.text(
        *place,
        f"{words.rpartition(' ')[2] or 'start'} {scores[words]}",
        ha="center",
        va="center",
        fontsize=9,
        color="black" if words in kept or not words else "0.45",
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5},
    )
axis.set(xlabel="step", xlim=(-0.4, 6.4), ylim=(-3.4, 0.4), yticks=[])
plt.show()

# %% [markdown]
# ## A model to decode
#
# We train the small Transformer of the [translation tutorial](
# ../translate/index.md) for one epoch only, so that it is often uncertain. If a
# model is certain of every token, all methods give the same result.

# %%
n, tests = (300, 6) if QUICK else (20_000, 200)
train = datasets.make_translation_pairs(n, seed=1)
test = datasets.make_translation_pairs(tests, seed=1, split="test")
tokenizer = SubwordTokenizer.train_from_lines(
    (sentence for pair in train for sentence in pair), vocabulary_size=1500
)
batches = token_batches(
    *zip(*train, strict=True), tokenizer, tokens_per_batch=1024, seed=1
)
model = Transformer(
    tokenizer.vocabulary_size,
    num_layers=2,
    num_heads=2,
    hidden_dim=128,
    intermediate_dim=512,
    dropout=0.1,
    normalize_first=True,
    pad_id=tokenizer.pad_id,
    start_id=tokenizer.start_id,
    end_id=tokenizer.end_id,
)
model.compile(
    keras.optimizers.Adam(2e-3, beta_2=0.98),
    training.SequenceCrossentropy(label_smoothing=0.1),
)
model.fit(batches, epochs=1, shuffle=False, verbose=2)

sources = [pair.source for pair in test]
references = [pair.target for pair in test]
rows = [[*ids, tokenizer.end_id] for ids in tokenizer.encode(sources)]
S = max(map(len, rows))  # maximum number of tokens of a source
L = 12 if QUICK else 30  # maximum number of tokens of a translation

# %% [markdown]
# One forward pass gives the log-probabilities of the next token after every
# prefix of a target. `log_probs` returns them for some prefixes of one source.
# All inputs are padded to one shape, so that the model is compiled once.


# %%
def log_probs(source, prefixes):
    """Returns log p(next token | source, prefix), float64 (prefixes, V)."""
    source_ids = np.full((8, S), tokenizer.pad_id, "int32")
    source_ids[:, : len(source)] = source
    target_ids = np.full((8, L + 1), tokenizer.pad_id, "int32")
    target_ids[:, 0] = tokenizer.start_id
    for row, prefix in zip(target_ids, prefixes, strict=False):
        row[1 : 1 + len(prefix)] = prefix
    logits = keras.ops.convert_to_numpy(
        model.predict_on_batch((source_ids, target_ids))
    ).astype("float64")
    last = [len(prefix) for prefix in prefixes]
    logits = logits[np.arange(len(last)), last]
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    # Padding and the start token are not part of a sentence.
    log_p[:, [tokenizer.pad_id, tokenizer.start_id]] = -np.inf
    return log_p


log_p = log_probs(rows[0], [()])[0]
top = np.argsort(-log_p)[:3].tolist()
print(sources[0])
for token in top:
    print(f"  {tokenizer.pieces([token])[0]:8} p = {np.exp(log_p[token]):.3f}")

# %% [markdown]
# ### Greedy search

# %%
tokens, score = (), 0.0
while len(tokens) < L and tokens[-1:] != (tokenizer.end_id,):
    log_p = log_probs(rows[0], [tokens])[0]
    tokens, score = (*tokens, int(log_p.argmax())), score + log_p.max()

greedy = model.generate(rows, L, GreedySearch())
length = greedy.lengths[0, 0]
assert greedy.tokens[0, 0, :length].tolist() == list(tokens)
np.testing.assert_allclose(greedy.scores[0, 0], score, atol=1e-3)
print(f"{tokenizer.decode(tokens)}   log p = {score:.3f}")

# %% [markdown]
# `generate` computes only the new token at each step: it caches the keys and
# values of the earlier ones. The result is the same.
#
# ### Beam search and the length penalty
#
# Every token adds a negative number to $\log p$, so long sentences have low
# values. Wu et al. 2016 (<https://arxiv.org/abs/1609.08144>, eq. 14) divide
# $\log p$ by a length penalty with an exponent $\alpha$. |y| counts the end
# token:
#
# $$\mathrm{score}(y) = \frac{\log p(y \mid x)}{\mathrm{lp}(y)}, \qquad
# \mathrm{lp}(y) = \left(\frac{5 + |y|}{6}\right)^{\alpha}$$
#
# At each step, the search considers the most probable continuations, twice as many
# as it has beams. Those in the first half that end are finished and are kept
# separately; the first ones that do not end stay active, as many as there are
# beams. The search stops when `num_results` sentences are finished and no active
# hypothesis can reach a better score.


# %%
def penalty(length, alpha):
    """Returns lp(y) of a sentence with `length` tokens."""
    return ((5 + length) / 6) ** alpha


def beam_search(source, num_beams, num_results, alpha):
    """Returns the best finished hypotheses as (score, tokens)."""
    active, finished = [(0.0, ())], []
    for length in range(1, L + 1):
        log_p = log_probs(source, [tokens for _, tokens in active])
        totals = np.array([[score] for score, _ in active]) + log_p
        order = np.argsort(-totals, axis=None, kind="stable")
        following = []
        for rank, (row, token) in enumerate(
            divmod(i, len(log_p[0])) for i in order[: 2 * num_beams].tolist()
        ):
            score, tokens = totals[row, token], (*active[row][1], token)
            if token == tokenizer.end_id or length == L:
                if rank < num_beams:
                    finished.append((score / penalty(length, alpha), tokens))
            else:
                following.append((score, tokens))
        active = following[:num_beams]
        finished = sorted(finished, reverse=True)[:num_results]
        best = active[0][0] / penalty(L, alpha) if active else -np.inf
        if len(finished) == num_results and best <= finished[-1][0]:
            break
    return finished


# %%
strategy = BeamSearch(num_beams=4, num_return_sequences=4, length_penalty=0.6)
beam = model.generate(rows, L, strategy)
differ = [
    i
    for i in range(len(rows))
    if greedy.tokens[i, 0].tolist() != beam.tokens[i, 0].tolist()
]
translations = tokenizer.decode(beam.tokens[:, 0])
correct = [i for i in differ if translations[i] == references[i]]
shown = min(correct or differ or [0], key=lambda i: len(rows[i]))
for rank, (score, tokens) in enumerate(beam_search(rows[shown], 4, 4, 0.6)):
    length = beam.lengths[shown, rank]
    assert list(tokens) == beam.tokens[shown, rank, :length].tolist()
    np.testing.assert_allclose(beam.scores[shown, rank], score, atol=1e-3)
    print(f"{score:7.3f}  {tokenizer.decode(tokens)}")
print(f"source: {sources[shown]}; reference: {references[shown]}")
print(f"greedy: {tokenizer.decode(greedy.tokens[shown, 0])}")
print(f"greedy and beam search differ for {len(differ)} of {tests} sentences")

# %% [markdown]
# We show the shortest sentence that only beam search translates correctly.
#
# `model.stream` yields the state after every step, and `plot_beam` draws it.
# Here two beams give two sentences. Active and dropped hypotheses (blue, gray)
# show log p, finished ones (green) their score. With one beam, beam search is
# greedy search.

# %% alt="Boxes, one column per step, for a beam search with two beams: active, dropped and finished hypotheses, with their scores"
items = list(
    model.stream([rows[shown]], L, BeamSearch(2, num_return_sequences=2))
)
one = model.generate(rows, L, BeamSearch(1))
np.testing.assert_array_equal(one.tokens, greedy.tokens)
explain.plot_beam(items, lambda token: tokenizer.pieces([token])[0])

# %% [markdown]
# ## Beam size and translation quality
#
# A larger beam finds sentences to which the model gives a higher probability.
# They are not always better translations. For several numbers of beams
# and $\alpha$, the table shows the mean log-probability, the length relative
# to the references, and BLEU.


# %%
def measure(num_beams, alpha):
    """Returns mean log p, relative length and BLEU on the test sentences."""
    found = model.generate(rows, L, BeamSearch(num_beams, length_penalty=alpha))
    log_p = found.scores[:, 0] * penalty(found.lengths[:, 0], alpha)
    texts = tokenizer.decode(found.tokens[:, 0].tolist())
    words = [sum(len(text.split()) for text in t) for t in (texts, references)]
    bleu = sacrebleu.corpus_bleu(texts, [references]).score
    return log_p.mean(), words[0] / words[1], bleu


results = {}
print("alpha beams  log p  length   BLEU")
for alpha in (0.0, 0.6):
    for num_beams in (1, 4) if QUICK else (1, 2, 4, 8, 16, 32):
        results[alpha, num_beams] = measure(num_beams, alpha)
        print(
            "{:5} {:5}  {:7.3f}  {:6.3f}  {:5.2f}".format(
                alpha, num_beams, *results[alpha, num_beams]
            )
        )
if not QUICK:
    log_p, length, bleu = (
        {num_beams: results[0.0, num_beams][i] for num_beams in (1, 4, 32)}
        for i in range(3)
    )
    assert log_p[32] > log_p[4] > log_p[1]
    assert length[32] < length[4]
    assert bleu[32] < bleu[4]
    assert results[0.6, 32][2] > bleu[32]

# %% [markdown]
# Without a length penalty, log p is higher with 4 beams than with one, and
# higher still with 32. But from 4 to 32 beams the translations become shorter,
# and BLEU falls from 64.2 to 63.0 (greedy search: 62.1). Where the model is
# uncertain, a sentence that omits something can be more probable than a
# complete one. A small beam does not find it, so a search error hides a model
# error. The length penalty helps: with $\alpha = 0.6$, BLEU falls only from 64.7
# to 64.3.
#
# The extreme case is the empty translation. For a larger model, it was the most
# probable translation of more than half of the sentences (Stahlberg and Byrne
# 2019, <https://arxiv.org/abs/1908.10090>).
#
# ## Sampling
#
# If there is more than one good answer, we draw from the distribution instead
# of searching for its maximum. Three parameters change the distribution p:
#
# - **temperature** $\tau$: $p_i^{1/\tau}$, normalized. A $\tau$ below 1 makes
#   probable tokens more probable.
# - **top-k**: only a fixed number of the most probable tokens.
# - **top-p** (Holtzman et al. 2019, <https://arxiv.org/abs/1904.09751>): only
#   the smallest set of most probable tokens whose total probability reaches a
#   threshold.
#
# ![Probabilities of six tokens: unchanged, with temperature 0.5, with the best
# three only, and with the best two](../../diagrams/sampling.svg)
#
# <!-- figure: sampling -->


# %%
def reshape(p, temperature=1.0, top_k=None, top_p=1.0):
    """Returns the distribution that is sampled from, (V,)."""
    p = p ** (1 / temperature)
    order = np.argsort(-p, kind="stable")
    if top_k is not None:
        p[order[top_k:]] = 0
    p /= p.sum()
    before = np.cumsum(p[order]) - p[order]
    p[order[before >= top_p]] = 0
    return p / p.sum()


p = np.array([0.5, 0.3, 0.15, 0.05])
np.testing.assert_allclose(reshape(p, top_k=2), [0.625, 0.375, 0, 0])
np.testing.assert_allclose(reshape(p, top_p=0.7), [0.625, 0.375, 0, 0])
print("temperature 0.5:", reshape(p, temperature=0.5).round(3))

# %% [markdown]
# Of the first tokens of the translations, we take the one of which the model is
# least certain, and compare `reshape` (bars) with 400 samples of `Sampling`
# (dots).

# %% alt="Bars: probabilities of the eight most probable tokens for four settings; dots: how often each was sampled"
firsts = np.exp([log_probs(row, [()])[0] for row in rows[:50]])
uncertain = int(firsts.max(1).argmin())
p = firsts[uncertain]
top = np.argsort(-p)[:8]
draws = 50 if QUICK else 400
figure, axes = plt.subplots(
    1, 4, figsize=(11, 3), sharey=True, layout="constrained"
)
settings = ({}, {"temperature": 0.5}, {"top_k": 3}, {"top_p": 0.8})
for axis, setting in zip(axes, settings, strict=True):
    strategy = Sampling(num_return_sequences=draws, seed=1, **setting)
    drawn = model.generate([rows[uncertain]], 1, strategy).tokens[0, :, 0]
    frequency = np.bincount(drawn, minlength=len(p)) / draws
    expected = reshape(p, **setting)
    assert not frequency[expected == 0].any()
    deviation = np.sqrt(expected * (1 - expected) / draws)
    assert (abs(frequency - expected) <= 5 * deviation + 2 / draws).all()
    axis.bar(range(8), expected[top])
    axis.plot(range(8), frequency[top], "ko", markersize=4)
    axis.set_xticks(range(8), tokenizer.pieces(top.tolist()), rotation=60)
    title = ", ".join(f"{k} = {v}" for k, v in setting.items())
    axis.set(title=title or "unchanged")
axes[0].set_ylabel("probability")
plt.show()

# %% [markdown]
# Every row has its own random numbers, which depend on the seed and its tokens.
# So its samples do not depend on the batch size or on the other rows.

# %%
strategy = Sampling(top_p=0.8, num_return_sequences=draws, seed=1)
samples = tokenizer.decode(model.generate([rows[shown]], L, strategy).tokens[0])
for text, count in collections.Counter(samples).most_common(3):
    print(f"{count:3} x {text}")
once, twice = (
    model.generate(rows[:4], L, Sampling(seed=1), batch_size=size).tokens
    for size in (2, 4)
)
np.testing.assert_array_equal(once, twice)

# %% [markdown]
# These are the three most frequent of 400 samples.
#
# ## Constraints
#
# Every strategy can start from a given prefix, exclude tokens, and demand a
# minimum length. Log-probabilities remain those of the model: they are not
# renormalized over the allowed tokens.

# %%
cat = [[*tokenizer.encode("this cat is very large"), tokenizer.end_id]]
prefix = tokenizer.encode("ese")
excluded = tokenizer.encode("grande")[-1:]
limits = {"suppress_tokens": excluded, "min_new_tokens": 8}
print(tokenizer.decode(model.generate(cat, L, BeamSearch()).tokens[0, 0]))
found = model.generate(cat, L, BeamSearch(**limits), prefix=prefix)
tokens = found.tokens[0, 0].tolist()
print(tokenizer.decode(tokens))
assert tokens[: len(prefix)] == prefix and excluded[0] not in tokens
assert found.lengths[0, 0] >= 8

# %% [markdown]
# The constraints are satisfied (*grandes* consists of other tokens than
# *grande*), but the translation is worse.
#
# ## Summary
#
# - Greedy search takes the most probable token and cannot undo a choice.
# - Beam search keeps several hypotheses and returns the best; with one, it is
#   greedy.
# - A length penalty compensates for the fact that each token lowers log p.
# - Larger beams often find more probable sentences, which can be worse ones.
# - Sampling draws tokens; temperature, top-k and top-p change the distribution.
#
# ## Exercises
#
# **1.** Fill in the gaps. Decoding method 1 is ... decoding; method 2 is ...
# search. A vocabulary has 10 tokens, and a search has 3 beams and 2 results. Three
# active hypotheses have ... continuations, of which the search considers .... At
# most ... of them can finish, at most ... stay active, and ... sentences are
# returned. With one beam and one result, the search is ... search.
#
# <details markdown>
# <summary>Answer</summary>
#
# Greedy, beam; 30, 6, 3, 3, 2; greedy.
#
# </details>
#
# **2.** A sentence has 4 tokens and log p = -4.0, another one has 7 tokens and
# log p = -4.6. Which has the better score for $\alpha = 0$ and for 0.6? For
# which $\alpha$ are they equal?
#
# <details markdown>
# <summary>Answer</summary>
#
# lp is $1.5^\alpha$ for the first and $2^\alpha$ for the second. The first is
# better for 0 (-4.0 and -4.6), the second for 0.6 (-3.14 and -3.03). They are
# equal at
# $\alpha = \ln 1.15 / \ln (4/3) \approx 0.49$.
#
# ```python
# print(-4.0 / penalty(4, 0.6), -4.6 / penalty(7, 0.6))
# ```
#
# </details>
#
# **3.** Does a larger beam always find a sentence that is at least as probable?
#
# <details markdown>
# <summary>Answer</summary>
#
# No. A further hypothesis can have a higher probability for some steps and
# displace the one that a smaller beam kept. Only a beam that drops nothing, with
# at least $V^L$ hypotheses for L tokens, is sure to find the most probable
# sentence. In the French example, two beams are enough:
#
# ```python
# table, p = {}, {"": 1.0}
# for words, following in FRENCH.items():
#     table[words] = {w: np.log(p[words] * q) for w, q in following.items()}
#     p |= {f"{words} {w}".strip(): p[words] * q for w, q in following.items()}
# assert beam_of_words(table, 1)[-1][0][1] == "the poor are without"
# assert beam_of_words(table, 2)[-1][0][1] == "the poor don't have any money"
# ```
#
# </details>
#
# **Next**: [Show, attend and tell](../captions/index.md) replaces the source
# sentence by an image.
