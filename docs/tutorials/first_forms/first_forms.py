# %% [markdown]
# # Attention from its first forms
#
# A recurrent network reads a sentence, word after word, and then writes it in
# another language. When it begins to write, all that it knows of the sentence
# is one vector. What is lost there, and what if it may look back?
#
# ![Six heat maps: where six models look as they
# translate](first_forms-4.png)
#
# Six models that may look back, drawn further down. Each row is a Spanish word
# being written, each column an English word. They differ in one equation only:
# how well a query and a key suit each other.
#
# You will
#
# - see the **bottleneck**: a model without attention against one with it, on
#   longer and longer sentences;
# - write the **six scores** by hand: dot, scaled dot, general, additive,
#   location, cosine; train one model with each;
# - see that **soft** attention is the expectation of **hard** attention, and
#   train hard attention by a Gumbel softmax and by REINFORCE;
# - compare **global** attention with **local-m** and **local-p**, on sentences
#   and on sentences read backwards.
#
# On two cores twenty minutes at most: the run of this page had one, and a dozen
# small models are trained. The data, lists of things in English and Spanish, is
# made up; nothing is downloaded. As a program, on any backend:
#
#     KERAS_BACKEND=torch .venv/bin/python tutorials/first_forms.py
#
# With `DATA=` it learns from your own sentences, one tab-separated file or two
# parallel ones, and with `MODEL=` a saved model translates what you type:
#
#     DATA=english.txt,spanish.txt .venv/bin/python tutorials/first_forms.py
#     MODEL=runs/first_forms .venv/bin/python tutorials/first_forms.py

# %%
import itertools
import json
import time

import corpora
import first_forms_data
import first_forms_settings
import keras
import lookup_task
import numpy as np
import program_settings
import word_lines
from alignment_maps import draw_maps
from matplotlib.figure import Figure
from pair_table import PAD, START, PairTable, words_of
from with_weights import WithWeights

from keras_attn.layers import Reinforce, ScoredAttention
from keras_attn.models import RecurrentSeq2Seq
from keras_attn.training import SequenceCrossentropy, TrainingBackup

try:
    run = first_forms_settings.read()
    if run.model:
        word_lines.run(run.model, run.input)
        raise SystemExit(0)
    sizes = run.pairs, run.held_out, run.longest, run.seed
    if run.data:
        sentences = first_forms_data.of_corpus(run.data, *sizes)
    else:
        sentences = first_forms_data.made_up(*sizes)
except ValueError as error:
    program_settings.explain_and_leave("first_forms", error)

run.out.mkdir(parents=True, exist_ok=True)
generator = np.random.default_rng(run.seed)
results = {"backend": keras.backend.backend()}
# What is asserted of trained models is so with the settings of this page.
WHOLE = first_forms_settings.is_default(run)
print(f"Keras {keras.__version__} on {keras.backend.backend()}")

# %% [markdown]
# ## Sentences with known links
#
# English: *my red car and two old trees*. Spanish: *mi coche rojo y dos árboles
# viejos*. The adjective changes places with its noun, and takes its gender and
# number. So we know for each Spanish word which English word it translates: its
# **link**. Attention will not be told.
#
# Lists of one to five things are trained on; those of six and seven are longer
# than any sentence seen in training. One list in ten is kept for tests.

# %%
train, test, links, further = sentences
# The last test sentence is the one that the pictures show.
SOURCE_WORDS, TARGET_WORDS = (
    [*words_of(sentence), "</s>"] for sentence in test[-1]
)
table = PairTable.of_pairs(train, run.words)
S = run.longest + 1  # places in a row of the training set, the end among them
LONG = S + further  # and of the test set
print(
    f"{len(train):,} training pairs, {len(test)} test pairs, ids {table.sizes}"
)
for number, (source, target) in list(enumerate(test))[-3:]:
    print(f"  {source}\n  {target}")
    if links:
        print("  links:", *links[number])

# %% [markdown]
# Every sentence is a row of ids: words, the end, padding. The decoder reads its
# target one place behind what it shall say.

# %%
train_sources = table.sources([source for source, _ in train], S)
train_reads, train_says = table.targets([target for _, target in train], S)
test_sources = table.sources([source for source, _ in test], LONG)
test_reads, test_says = table.targets([target for _, target in test], LONG)
assert train_sources.shape == train_reads.shape == (len(train), S)
assert test_sources.shape == test_says.shape == (len(test), LONG)
lengths = (test_sources != PAD).sum(1) - 1  # words of each test sentence
print(test[0][0], "->", test_sources[0][: lengths[0] + 1])

# %% [markdown]
# ## The bottleneck
#
# The encoder makes a state of each source word from the state before, and the
# decoder begins where the encoder ends (Sutskever et al. 2014,
# <https://arxiv.org/abs/1409.3215>):
#
# $$h_j = \mathrm{RNN}(h_{j-1}, x_j), \qquad s_0 = h_S, \qquad
# s_i = \mathrm{RNN}(s_{i-1}, y_{i}), \qquad
# \mathrm{logits}_i = s_i W + b .$$
#
# With attention it may also ask all the $h_j$, at every word (Bahdanau et al.
# 2014, <https://arxiv.org/abs/1409.0473>; as here Luong et al. 2015,
# <https://arxiv.org/abs/1508.04025>):
#
# $$w_{ij} = \mathrm{softmax}_j\, \mathrm{score}(s_i, h_j), \qquad
# c_i = \sum_j w_{ij} h_j, \qquad
# \mathrm{logits}_i = \tanh([c_i; s_i] W') W + b .$$
#
# Both read the source from both ends, with a GRU, so that $h_j$ knows what
# stands on either side.


# %%
def build(attention):
    """Returns a model, the same but for its attention."""
    keras.utils.set_random_seed(run.seed)
    return RecurrentSeq2Seq(
        *table.sizes,
        cell="gru",
        hidden_dim=run.width,
        bidirectional=True,
        attention=attention,
        dropout=0.0,
        max_sequence_length=LONG if attention == "location" else None,
    )


without, additive = build(None), build("additive")
asked = keras.Input(batch_shape=(1, LONG), dtype="int32")
(memory, _), (state,) = without.encode(asked)
D = run.width
assert memory.shape == (1, LONG, D)  # h: (B, S, D)
assert state[0].shape == (1, D)  # the last one: (B, D), whatever S is
print(f"The decoder begins with {D} numbers. With attention it can ask for")
print(f"{D} more of each source word, {LONG * D:,} of a long sentence")

# %% [markdown]
# ### Training, and a shortcut for tests
#
# Each model sees the same sentences equally often. Whatever kills the program,
# the same command goes on from the model and the epoch that it had reached;
# `FRESH=1` starts anew.
#
# Is a sentence translated without a mistake? Greedy decoding takes the
# likeliest word, feeds it back, and goes on. It gives the reference if, and
# only if, each word of the reference is the likeliest one behind those before.
# So one pass over the references tells, and no search is needed.


# %%
def train_one(name, model, sources=train_sources):
    """Trains a model; returns the loss of each epoch."""
    model.compile(
        keras.optimizers.Adam(run.rate, clipnorm=1.0), SequenceCrossentropy()
    )
    started = time.perf_counter()
    try:
        backup = TrainingBackup(
            run.out / "backup" / name,
            settings=program_settings.identity(run)
            | {"backend": keras.backend.backend()}
            | {"sentences": corpora.fingerprint(train)},
            resume=not run.fresh,
        )
    except ValueError as error:
        program_settings.explain_and_leave(
            "first_forms", f"{error}. FRESH=1 starts anew."
        )
    backups.append(backup)
    losses = model.fit(
        (sources, train_reads),
        train_says,
        batch_size=64,
        epochs=run.epochs,
        shuffle=False,  # they were drawn in no order
        callbacks=[backup],
        verbose=2 if run.data else 0,
    ).history["loss"]
    seconds = time.perf_counter() - started
    print(f"{name:<22} loss {losses[-1]:.3f} nats a word, {seconds:5.1f} s")
    return losses


def judge(name, model, backwards=False):
    """Notes which test sentences are right, and where the model looks."""
    sources = [source for source, _ in test]
    sources = table.sources(sources, LONG, backwards)
    # One program, so that the weights come out of it.
    found = WithWeights(model).predict(
        (sources, test_reads), batch_size=64, verbose=0
    )
    logits, looks[name] = (found, None) if model.attention is None else found
    assert logits.shape == (len(test), LONG, table.sizes[1])
    # Neither padding nor a start is ever written.
    logits[..., [PAD, START]] = -np.inf
    hits = (logits.argmax(-1) == test_says) | (test_says == PAD)
    right[name] = hits.all(1)


backups, losses, right, looks = [], {}, {}, {}
for name, model in (("no attention", without), ("additive", additive)):
    if run.quick and model is without:
        continue
    losses[name] = train_one(name, model)
    judge(name, model)

# %% [markdown]
# Does the shortcut tell the truth? Greedy decoding of some test sentences:

# %%
checked = 4 if run.quick else min(64, len(test))
greedy = additive.generate(test_sources[-checked:], LONG).tokens[:, 0]
found = (greedy == test_says[-checked:]).all(1)
assert (found == right["additive"][-checked:]).all()
for (source, target), ids in zip(test[-3:], greedy[-3:], strict=True):
    print(f"  {source}\n    -> {table.target_text(ids)}")
    print(f"       (reference: {target})")

# %% alt="Share of right sentences over length, with and without attention"
EDGES = [
    *np.unique(np.linspace(1, S, 6).astype(int)),
    *([LONG] if further else []),
]
LABELS = [f"{a} to {b - 1}" for a, b in itertools.pairwise(EDGES)]


def by_length(flags):
    """Returns the share of flags that are set, for each group of lengths."""
    groups = np.digitize(lengths, EDGES) - 1
    return [
        float(flags[groups == i].mean()) if (groups == i).any() else np.nan
        for i in range(len(LABELS))
    ]


def draw_by_length(names, title=""):
    """Draws the share of right sentences over their length."""
    figure = Figure(figsize=(7.5, 3.8), layout="constrained")
    panel = figure.subplots()
    styles = "o-", "s--", "^-.", "x:", "D-", "v--"
    for name, style in zip(names, styles, strict=False):
        panel.plot(LABELS, by_length(right[name]), style, label=name)
    if further:
        panel.axvline(len(LABELS) - 1.5, color="grey", linewidth=0.8)
        panel.text(len(LABELS) - 1.45, 1.02, "never trained on", fontsize=8)
    panel.set(
        xlabel="words of the source",
        ylabel="sentences without a mistake",
        ylim=(-0.03, 1.1),
        title=title,
    )
    panel.legend()
    return figure


draw_by_length(list(right))

# %%
for name in right:
    shares = ", ".join(f"{share:4.0%}" for share in by_length(right[name]))
    print(f"{name:<13} {shares}")
if WHOLE:
    longer = (lengths >= 12) & (lengths < S)
    gap = (
        right["additive"][longer].mean() - right["no attention"][longer].mean()
    )
    assert gap > 0.4

# %% [markdown]
# A vector of 64 numbers has room for a short list. Each further thing pushes
# out something else. With attention the length matters little, up to the
# lengths that were trained on: what is needed is asked for when it is needed.
# Beyond these both fail.
#
# ## Where it looks
#
# The weights $w_{ij}$ of one sentence that was kept for tests: a row is a
# Spanish word, a column an English one, and a frame the link that nobody told
# the model.


# %%
def example(name):
    """Returns the weights of the sentence that is shown, float (T, S)."""
    weights = looks[name][-1]
    # Behind the end there is nothing to look at.
    assert not weights[:, len(SOURCE_WORDS) :].any()
    return weights[: len(TARGET_WORDS), : len(SOURCE_WORDS)]


def draw(names, backwards=()):
    """Draws where models look in that sentence, side by side."""
    return draw_maps(
        {name: example(name) for name in names},
        SOURCE_WORDS,
        TARGET_WORDS,
        links[-1] if links else (),
        backwards,
    )


# %% alt="Heat map: the weights of additive attention, links framed"
inside = (test_says != PAD)[..., None]
assert looks["additive"].shape == (len(test), LONG, LONG)  # (B, T, S)
sums = looks["additive"].sum(-1, keepdims=True)
np.testing.assert_allclose(sums[inside], 1, atol=1e-4)
draw(["additive"])

# %% [markdown]
# How often does the largest weight of a Spanish word lie on the English word
# that it translates? The links of all test sentences:


# %%
def linked(name, backwards=False):
    """Returns the share of target words whose largest weight is their link."""
    hits = []
    for weights, places in zip(looks[name], links, strict=True):
        places = np.array(places)
        if backwards:
            places = len(places) - 1 - places
        hits.extend(weights[: len(places)].argmax(-1) == places)
    return float(np.mean(hits))


if links:
    print(f"additive: {linked('additive'):.1%} of the words look at their link")
if WHOLE:
    assert linked("additive") > 0.6

# %% [markdown]
# ## Six scores
#
# What is asked is the query q, the decoder's state; what is looked at is a key
# k, here at position p:
#
# $$\begin{aligned}
# \text{dot:}\quad & q \cdot k
# & \text{scaled dot:}\quad & q \cdot k / \sqrt{D} \\
# \text{general:}\quad & q^\top W k
# & \text{additive:}\quad & v \cdot \tanh(q W + k U) \\
# \text{location:}\quad & (q W)_p
# & \text{cosine:}\quad & \beta\, \frac{q \cdot k}{|q|\,|k|},
# \ \beta = \log(1 + e^{q \cdot w + c})
# \end{aligned}$$
#
# Dot, general and location are of Luong et al. 2015, additive (also called
# concat) of Bahdanau et al. 2014, scaled dot of Vaswani et al. 2017
# (<https://arxiv.org/abs/1706.03762>), cosine of Graves et al. 2014
# (<https://arxiv.org/abs/1410.5401>). By hand, for q of shape (T, D) and k of
# shape (S, D):


# %%
def unit(x):
    """Returns vectors of length 1."""
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


# Each from query, key and a dict of the layer's weights to scores (T, S).
BY_HAND = {
    "dot": lambda q, k, w: q @ k.T,
    "scaled_dot": lambda q, k, w: q @ k.T / np.sqrt(q.shape[-1]),
    "general": lambda q, k, w: q @ w["query/kernel"] @ k.T,
    "additive": lambda q, k, w: (
        np.tanh((q @ w["query/kernel"])[:, None] + (k @ w["key/kernel"])[None])
        @ w["scale"]
    ),
    "location": lambda q, k, w: (q @ w["query/kernel"])[:, : len(k)],
    "cosine": lambda q, k, w: (
        np.log1p(np.exp(q @ w["strength/kernel"] + w["strength/bias"]))
        * (unit(q) @ unit(k).T)
    ),
}
SCORES = ("additive",) if run.quick else tuple(BY_HAND)


def softmax(scores):
    """Returns the weights over the last axis."""
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def weights_by_name(layer):
    """Returns a dict of a layer's weights, named as below its score."""
    return {
        weight.path.split("/score/")[-1]: keras.ops.convert_to_numpy(weight)
        for weight in layer.weights
    }


query = generator.normal(size=(1, 3, 8)).astype("float32")  # (B, T, D)
value = generator.normal(size=(1, 5, 8)).astype("float32")  # (B, S, D)
for score in SCORES:
    layer = ScoredAttention(score)
    output, weights = layer(query, value, return_attention_scores=True)
    by_hand = BY_HAND[score](query[0], value[0], weights_by_name(layer))
    expected = softmax(by_hand)
    assert weights.shape == (1, 3, 5) and output.shape == (1, 3, 8)
    weights, output = map(keras.ops.convert_to_numpy, (weights, output))
    np.testing.assert_allclose(weights[0], expected, atol=1e-5)
    np.testing.assert_allclose(output[0], expected @ value[0], atol=1e-5)
    print(f"by hand = ScoredAttention: {score}, {layer.count_params()} weights")

# %% [markdown]
# ### The same model with each of them

# %%
for score in SCORES:
    if score not in right:
        model = build(score)
        losses[score] = train_one(score, model)
        judge(score, model)

# %% alt="Loss over epochs, a curve for each score and one without attention"
figure = Figure(figsize=(7.5, 3.6), layout="constrained")
panel = figure.subplots()
epochs = 1 + np.arange(run.epochs)
styles = "k:", "o-", "s--", "^-.", "D-", "x:", "v--"
for (name, curve), style in zip(losses.items(), styles, strict=False):
    panel.plot(epochs, curve, style, label=name)
panel.set(xlabel="epoch", ylabel="loss (nats a word)", ylim=(0, None))
panel.legend(ncols=2)
figure

# %% alt="Six heat maps, one for each score, of the same sentence"
draw(SCORES)

# %%
shares = {score: linked(score) for score in SCORES} if links else {}
print(f"whole sentences, by {', '.join(LABELS)} words; looks at links")
for score in SCORES:
    row = ", ".join(f"{share:4.0%}" for share in by_length(right[score]))
    print(f"{score:<12} {row}; {shares.get(score, np.nan):.0%}")
results["linked"] = shares

# %% [markdown]
# Five of them compare what is asked with what is there. The location score does
# not look at the keys at all: the decoder has to know beforehand at which place
# to look. On lists it can count, more or less, up to the lengths that it was
# trained on.

# %%
if WHOLE:
    unseen = lengths >= S
    others = [score for score in SCORES if score != "location"]
    assert max(shares[score] for score in others) > shares["location"]
    assert all(
        right[score][longer].mean() > right["no attention"][longer].mean()
        for score in others
    )
    assert right["location"][unseen].mean() <= max(
        right[score][unseen].mean() for score in others
    )

# %% [markdown]
# ## Soft against hard
#
# Soft attention mixes all values. **Hard** attention (Xu et al. 2015, sec. 4,
# <https://arxiv.org/abs/1502.03044>) draws one of them, with the probability
# that is its soft weight. So the soft output is what the hard one is on
# average:
#
# $$\mathbb{E}_{j \sim w}[\, v_j \,] = \sum_j w_j v_j .$$
#
# The same query 20,000 times, each time another draw:

# %%
DRAWS = 20_000
soft = ScoredAttention("general")
hard = ScoredAttention("general", hard="gumbel", seed=run.seed)
mixed, weights = soft(query[:, :1], value, return_attention_scores=True)
many = np.repeat(query[:, :1], DRAWS, axis=1)  # (1, 20000, D)
hard.build(many.shape, value.shape)
hard.set_weights(soft.get_weights())
drawn, chosen = hard(many, value, return_attention_scores=True, training=True)
weights, mixed, chosen, drawn = (
    keras.ops.convert_to_numpy(x)[0] for x in (weights, mixed, chosen, drawn)
)
assert chosen.shape == (DRAWS, 5) and drawn.shape == (DRAWS, 8)
assert set(np.unique(chosen)) == {0.0, 1.0} and (chosen.sum(-1) == 1).all()
error = np.sqrt(weights * (1 - weights) / DRAWS)  # of a share of draws
assert (np.abs(chosen.mean(0) - weights) < 5 * error).all()
error = np.sqrt((weights @ value[0] ** 2 - mixed**2) / DRAWS)
assert (np.abs(drawn.mean(0) - mixed) < 5 * error).all()
print("soft weights", weights[0].round(3))
print("hard draws  ", chosen.mean(0).round(3))

# %% [markdown]
# ### What a draw learns from
#
# A draw has no gradient. Two ways out:
#
# - **Gumbel, straight through** (Jang et al. 2017,
#   <https://arxiv.org/abs/1611.01144>): draw the largest of score + Gumbel
#   noise, and take the gradient of the softmax of the same numbers. It is
#   wrong, but points somewhere useful;
# - **REINFORCE** (Williams 1992, <https://doi.org/10.1007/BF00992696>): make a
#   draw likelier where its loss $\ell$ was small. With the log-probability of
#   the draw,
#
# $$\nabla_z\, \mathbb{E}_{j \sim w}[\ell_j] =
# \mathbb{E}_{j \sim w}\big[(\ell_j - b)\, \nabla_z \log w_j\big], \qquad
# \nabla_z \log w_j = e_j - w, \qquad w = \mathrm{softmax}(z).$$
#
# This one is right on average, and noisy. A baseline b changes no average, and
# calms it. With five keys all of it can be computed:

# %%
z, cost = generator.normal(size=5), np.array([1.0, 3.0, 2.5, 4.0, 3.5])
w = softmax(z)
exact = w * (cost - w @ cost)  # the gradient of sum_j w_j cost_j
draws = generator.choice(5, size=DRAWS, p=w)
score_gradient = np.eye(5)[draws] - w  # (20000, 5)
noise = {}
for name, b in (("no baseline", 0.0), ("mean as baseline", w @ cost)):
    estimates = (cost[draws] - b)[:, None] * score_gradient
    error = estimates.std(0) / np.sqrt(DRAWS)
    assert (np.abs(estimates.mean(0) - exact) < 5 * error).all()
    noise[name] = np.linalg.norm(estimates.std(0))
    print(
        f"{name:<17} mean {estimates.mean(0).round(2)}, spread "
        f"{noise[name]:.2f}"
    )
print(f"{'exact':<17}      {exact.round(2)}")
assert noise["mean as baseline"] < 0.7 * noise["no baseline"]

# %% [markdown]
# ### Learning to look up
#
# A small task shows all three learn: a memory of six slots, each with a name
# and a colour; asked for a name, say its colour. The slots are drawn at random
# and in any order, so the answer can only be looked up:
#
# $$q = E_{name}, \qquad k_j = E'_{name_j}, \qquad v_j = E''_{colour_j} .$$

# %%
SLOTS, FEATURES = 6, 32
STEPS, BLOCKS = (1, 1) if run.quick else (40, 15)
look_train = lookup_task.draw(64 * STEPS * BLOCKS, SLOTS, seed=run.seed)
look_test = lookup_task.draw(512, SLOTS, seed=run.seed + 1)
for row in range(2):
    print(lookup_task.text(look_test, row))


def lookups(kind):
    """Returns a model that learns, and one that predicts with its weights."""
    names = keras.Input((SLOTS,), dtype="int32")
    colours = keras.Input((SLOTS,), dtype="int32")
    asked = keras.Input((1,), dtype="int32")
    answer = keras.Input((), dtype="int32")
    embed = keras.layers.Embedding
    look = ScoredAttention(
        "general",
        hard=None if kind == "soft" else kind,
        seed=run.seed,
        name=f"look_{kind}",
    )
    outputs = look(
        embed(len(lookup_task.NAMES), FEATURES)(asked),  # (B, 1, D)
        embed(len(lookup_task.COLOURS), FEATURES)(colours),  # (B, S, D)
        embed(len(lookup_task.NAMES), FEATURES)(names),  # (B, S, D)
        return_attention_scores=True,
        return_log_probability=kind == "reinforce",
    )
    logits = keras.layers.Dense(len(lookup_task.COLOURS))(outputs[0][:, 0])
    predictor = keras.Model([names, colours, asked], [logits, outputs[1]])
    inputs = [names, colours, asked]
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    if kind == "reinforce":
        # Knows the loss that a choice led to: so the answers are an input.
        logits = Reinforce(loss)(logits, answer, outputs[2])
        inputs = [*inputs, answer]
    learner = keras.Model(inputs, logits)
    learner.compile(keras.optimizers.Adam(5e-3), loss)
    return learner, predictor


def look_inputs(data, rows, answers=False):
    """Returns what a model reads of some rows."""
    parts = (data.names, data.colours, data.asked[:, None], data.answers)
    return [part[rows] for part in (parts if answers else parts[:3])]


KINDS = ("reinforce",) if run.quick else ("soft", "gumbel", "reinforce")
curves, looks_at = {}, {}
for kind in KINDS:
    keras.utils.set_random_seed(run.seed)
    learner, predictor = lookups(kind)
    curve, started = [], time.perf_counter()
    for block in range(BLOCKS):
        rows = slice(64 * STEPS * block, 64 * STEPS * (block + 1))
        learner.fit(
            look_inputs(look_train, rows, answers=kind == "reinforce"),
            look_train.answers[rows],
            batch_size=64,
            shuffle=False,
            verbose=0,
        )
        logits, looks_at[kind] = predictor.predict(
            look_inputs(look_test, slice(None)), batch_size=512, verbose=0
        )
        curve.append(float((logits.argmax(-1) == look_test.answers).mean()))
    assert looks_at[kind].shape == (512, 1, SLOTS)
    curves[kind] = curve
    at_slot = (looks_at[kind][:, 0].argmax(-1) == look_test.slots).mean()
    seconds = time.perf_counter() - started
    print(
        f"{kind:<10} right {curve[-1]:6.1%}, looks at the slot that was asked "
        f"for {at_slot:6.1%}, {seconds:4.1f} s"
    )
assert set(np.unique(looks_at["reinforce"])) == {0.0, 1.0}
if WHOLE:
    assert curves["soft"][-1] > 0.9 and curves["gumbel"][-1] > 0.9
    assert curves["reinforce"][-1] > 0.5
results["lookup"] = curves

# %% alt="Left: right answers over steps. Right: soft and hard weights"
figure = Figure(figsize=(11, 3.6), layout="constrained")
panels = figure.subplots(1, 1 + len(KINDS), width_ratios=(3, *[1] * len(KINDS)))
taken = STEPS * (1 + np.arange(BLOCKS))
for kind, look in zip(KINDS, ("o-", "s--", "^:"), strict=False):
    panels[0].plot(taken, curves[kind], look, label=kind)
panels[0].axhline(1 / SLOTS, color="grey", linewidth=0.8)
panels[0].set(xlabel="training steps", ylabel="right answers", ylim=(0, 1.05))
panels[0].legend()
for panel, kind in zip(panels[1:], KINDS, strict=True):
    panel.imshow(looks_at[kind][:12, 0], cmap="Blues", vmin=0, vmax=1)
    slots = look_test.slots[:12]
    panel.plot(slots, np.arange(12), "x", color="C1", markersize=5)
    panel.set(title=kind, xlabel="slot", yticks=[])
panels[1].set_ylabel("twelve questions")
figure

# %% [markdown]
# The crosses mark the slot that was asked for. Soft attention learns from all
# slots at each step, and so do Gumbel's scores; REINFORCE learns only from what
# it drew, and pays for being right on average with patience. In return a hard
# look needs one value only, where a soft one needs all.
#
# And in the translator? One with straight-through Gumbel:

# %%
if not run.quick:
    model = build(ScoredAttention("additive", hard="gumbel", seed=run.seed))
    losses["hard"] = train_one("hard", model)
    judge("hard", model)
    assert set(np.unique(looks["hard"])) == {0.0, 1.0}
    row = ", ".join(f"{share:4.0%}" for share in by_length(right["hard"]))
    print(f"hard: {row}")

# %% alt="Two heat maps: soft weights, and hard ones that are 0 or 1"
draw([name for name in ("additive", "hard") if name in looks])

# %% [markdown]
# ## Global against local
#
# Global attention looks at every source word, T S of them. *Local* attention
# (Luong et al. 2015, sec. 3.2) looks at a window of 2D + 1 around a place
# $p_t$, this D being a number of tokens:
#
# - **local-m**, monotonic: $p_t = t$, the same place as in the target;
# - **local-p**, predictive: the query says where, and what is further away
#   counts less:
#
# $$p_t = S\, \sigma(v_p \cdot \tanh(q_t W_p)), \qquad
# w_{ts} = \mathrm{softmax}_s(\mathrm{score}(q_t, k_s))\,
# \exp\!\left(-\frac{2 (s - p_t)^2}{D^2}\right), \quad |s - p_t| \le D .$$
#
# By hand, and by the layer:

# %%
WINDOW = 3
query = generator.normal(size=(1, 9, 8)).astype("float32")
value = generator.normal(size=(1, 12, 8)).astype("float32")
rows, columns = np.arange(9)[:, None], np.arange(12)[None]
for local in ("monotonic", "predictive")[1 if run.quick else 0 :]:
    layer = ScoredAttention("dot", local=local, window=WINDOW)
    _, weights = layer(query, value, return_attention_scores=True)
    place = rows
    if local == "predictive":
        centre = {w.path.split("/centre/")[-1]: w for w in layer.weights}
        centre = {k: keras.ops.convert_to_numpy(w) for k, w in centre.items()}
        bent = np.tanh(query[0] @ centre["query/kernel"]) @ centre["scale"]
        place = 12 / (1 + np.exp(-bent))[:, None]  # (T, 1), S = 12
    near = np.abs(columns - place) <= WINDOW
    scores = np.where(near, query[0] @ value[0].T, -np.inf)
    expected = softmax(scores)
    if local == "predictive":
        expected = expected * np.exp(-2 * ((columns - place) / WINDOW) ** 2)
    weights = keras.ops.convert_to_numpy(weights)[0]
    assert weights.shape == (9, 12)
    np.testing.assert_allclose(weights, expected, atol=1e-5)
    assert not weights[~near].any()
    print(f"{local}: {near.sum()} of {near.size} keys are looked at")

# %% [markdown]
# On our lists the adjective moves by one place, so a window around $p_t = t$
# holds all that is needed. Now read the sources **backwards**, last word first.
# (Sutskever et al. did so, to bring the first words of both languages close
# together.) Global attention does not mind. For local-m the answer is out of
# sight, and local-p has to learn where to look.

# %%
FORMS = {"global": None, "local-m": "monotonic", "local-p": "predictive"}
trained = "general" if "general" in right else "additive"
looks["global"], right["global"] = looks[trained], right[trained]
turned = table.sources([source for source, _ in train], S, backwards=True)
forms = ["global"]
for backwards in (False, True):
    for form, local in FORMS.items():
        name = f"{form}, backwards" if backwards else form
        if name == "global" or run.quick:
            continue
        model = build(ScoredAttention("general", local=local, window=WINDOW))
        sources = turned if backwards else train_sources
        losses[name] = train_one(name.replace(", ", "-"), model, sources)
        judge(name, model, backwards)
        forms.append(name)

# %% alt="Six heat maps: global, local-m and local-p, forwards and backwards"
draw(forms, backwards=[name for name in forms if "backwards" in name])

# %% alt="Share of sentences without a mistake over length, global and local"
draw_by_length(forms)

# %%
for name in forms:
    shares = ", ".join(f"{share:4.0%}" for share in by_length(right[name]))
    print(f"{name:<20} {shares}")
far = np.abs(np.subtract.outer(np.arange(LONG), np.arange(LONG))) > WINDOW
for name in ("local-m", "local-m, backwards"):
    assert name not in looks or not looks[name][:, far].any()
results["by length"] = {name: by_length(flags) for name, flags in right.items()}
if WHOLE:
    known = lengths < S
    assert right["local-m"][known].mean() > 0.7
    lost = right["local-m, backwards"][longer].mean()
    assert right["global, backwards"][longer].mean() > lost + 0.3

# %% [markdown]
# Read forwards, all three do it. Read backwards, local-m cannot: what it needs
# is soon out of its window. Local-p could, and did not learn it in this many
# steps. Where it looks has a gradient only as far as its window reaches; a
# window that lies in the wrong place is told little about the right one.
#
# Beyond the lengths of the training, the small window of local-m is of use:
# there is less to be confused with.
#
# ## Keeping it
#
# The model with additive attention, its words, and all figures. Now that they
# are safe, the backups may go.

# %%
additive.save(run.out / "model.keras")
table.save(run.out / "words.json")
results["losses"] = losses
results["settings"] = {k: str(v) for k, v in run._asdict().items()}
(run.out / "results.json").write_text(
    json.dumps(results, indent=1, ensure_ascii=False), encoding="utf-8"
)
for backup in backups:
    backup.remove()
program = "python tutorials/first_forms.py"
print(f"""
The model is in {run.out / "model.keras"}, its words beside it, and all figures
in {run.out / "results.json"}.

What to try next:
  MODEL={run.out} {program}             translate what you type
  MODEL={run.out} INPUT=FILE {program}  translate a file
  WIDTH=256 {program}   does a wider vector do instead?
  DATA=FILE {program}   sentences of your own""")

# %% [markdown]
# ## Exercises
#
# **1.** Reading from both ends, without attention: D = 64 numbers are handed
# over. How many would have to be handed over so that each of 27 words has as
# much room as attention gives it? What would that do to the weights of the
# GRU?
#
# <details markdown>
# <summary>Answer</summary>
#
# 28 vectors of 64 numbers, the end's among them: 1,792. The GRU's matrices grow
# with the square of the width, here nearly 800 times. Attention hands over as
# many numbers as the sentence needs, with the same weights. Try `WIDTH=256`.
#
# </details>
#
# **2.** All states $h_j$ are multiplied by 10. Which of the six scores give
# the same weights as before? Which become surer?
#
# <details markdown>
# <summary>Answer</summary>
#
# Location does not look at the keys, and cosine divides their length out:
# unchanged. Dot, scaled dot and general are multiplied by 10: the softmax
# comes close to one key. Additive changes too, but its scores stay between
# $-\sum |v_i|$ and $\sum |v_i|$.
#
# </details>
#
# **3.** A source of 1,000 words, a target of 1,000 words, and a window D = 10.
# How many weights does global attention have, and how many can differ from 0
# in local attention? For which pairs of languages is local-m no choice?
#
# <details markdown>
# <summary>Answer</summary>
#
# A million against at most 21,000. Local-m needs the same order within D words,
# also at the end of a long sentence, where many small differences in length
# have added up. A verb that goes to the end of the sentence, as in German or
# Japanese, is soon out of its sight.
#
# </details>
