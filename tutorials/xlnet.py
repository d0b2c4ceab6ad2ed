# %% [markdown]
# # Every order at once: XLNet
#
# GPT guesses a word from what stands before it. BERT guesses from both sides,
# but hides several words at once, and guesses each as if the others were not
# hidden. Can one model have both, and write *new york*, but not *new angeles*?
#
# ![Probabilities of six cities of two words: BERT mixes them all, XLNet writes
# the six](xlnet-4.png)
#
# Both words of a city are hidden. XLNet (Yang et al. 2019,
# <https://arxiv.org/abs/1906.08237>) guesses one word after the other, in any
# order: from both sides, and from what it has guessed already.
#
# | | left to right (GPT) | masked (BERT) | permuted (XLNet) |
# | --- | --- | --- | --- |
# | is guessed | every token | 15 %, hidden | the last sixth of an order |
# | from | all to the left | all that is not hidden | all earlier in the order |
# | sees both sides | no | yes | yes |
# | guesses depend on each other | yes | no | yes |
# | reads what no text has | no | `[MASK]` | no |
# | p(text) is a product of guesses | yes | no | yes, in every order |
# | writes | yes | no | yes |
#
# You will
#
# - see **who sees whom**, measured, in all three;
# - see that every order gives a **probability** of a text;
# - see why there are **two streams**, write both in **NumPy**, and find the
#   library's numbers;
# - change a token, and see that **its guess does not move**;
# - teach BERT and XLNet *New York*: two hidden words that belong together, and
#   read off what each thinks of *new angeles*;
# - pre-train XLNet and a BERT on the same text, and **fine-tune** both.
#
# On two cores eight minutes at most: the run of this page had one. The text is
# written by a grammar; nothing is downloaded. As a program, on any backend:
#
#     KERAS_BACKEND=torch .venv/bin/python tutorials/xlnet.py
#
# With `DATA=` both learn from documents of yours, with `BERT=` the BERT is the
# one that [the tutorial on BERT](../bert/index.md) wrote, with `TUNE=` they are
# fine-tuned on CLINC150. What came of that is
# [here](../../results/text_classification.md):
#
#     DATA=documents.txt BERT=runs/bert-data TUNE=data \
#         .venv/bin/python tutorials/xlnet.py

# %%
import itertools
import json
import math

import corpora
import keras
import mask_lines
import numpy as np
import program_settings
import tuning_data
import tuning_runs
import visibility_plots
import xlnet_settings
from documents import passage_documents, read_documents, sentence_documents
from fine_tuning_settings import numbers
from grid_plots import draw_grids
from masked_batches import masked, masked_batches
from matplotlib.figure import Figure
from permuted_batches import permuted, permuted_batches
from training_log import TrainingLog

from keras_attn.layers import RotaryPosition
from keras_attn.models import GPT, Bert, BertPretrainer, XLNet
from keras_attn.text import WordPieceTokenizer, sentence_pairs
from keras_attn.training import SequenceCrossentropy, TrainingBackup, freeze

try:
    run = xlnet_settings.read()
    if run.data:
        documents = read_documents(run.data)
    else:
        documents = passage_documents(run.passages, run.seed)
        documents += sentence_documents(run.passages, run.seed + 1000)
    # One document in twenty is kept for questions.
    kept, learned = (
        documents[::20],
        [document for i, document in enumerate(documents) if i % 20],
    )
    if run.tune:
        data = tuning_data.of_folder(run.tune).get("sentence")
        if data is None:
            raise ValueError(
                f"TUNE must be a folder with clinc150. Received: {run.tune}"
            )
    else:
        data = tuning_data.of_grammar(run.examples, run.seed)["sentence"]
    bert = None
    if run.bert:
        bert, tokenizer = mask_lines.load(run.bert)
    else:
        tokenizer = WordPieceTokenizer.train_from_lines(
            [sentence for document in learned for sentence in document],
            run.pieces,
        )
except (corpora.CorpusError, ValueError) as error:
    program_settings.explain_and_leave("xlnet", error)

keras.utils.set_random_seed(run.seed)
run.out.mkdir(parents=True, exist_ok=True)
to_numpy = keras.ops.convert_to_numpy
results = {"backend": keras.backend.backend()}
# What is asserted of trained models is so with the settings of this page.
WHOLE = xlnet_settings.is_default(run)
print(f"Keras {keras.__version__} on {keras.backend.backend()}")

# %% [markdown]
# ## Who sees whom
#
# Three small models without any training. Change one token, and see whose
# output changes. The order here is drawn: the number is when a token comes.
# BERT's hidden tokens are the two that come last.

# %% alt="Who sees whom: GPT, BERT, and both streams of XLNet for one order"
SMALL = {"num_layers": 2, "num_heads": 2, "hidden_dim": 16}
NO_IDS = {"pad_id": None, "start_id": None, "end_id": None}
WORDS = "the old cat saw a bird".split()
ORDER = np.array([[2, 0, 4, 1, 5, 3]], "int32")
LENGTH, MASK = len(WORDS), 9
small = XLNet(10, **SMALL, **NO_IDS)
small_gpt = GPT(10, **SMALL, max_sequence_length=16, **NO_IDS)
small_bert = Bert(10, **SMALL, intermediate_dim=32, max_sequence_length=16)


def of_bert(ids):
    """Returns BERT's vectors, the two last tokens of the order hidden."""
    hidden = np.where(ORDER >= LENGTH - 2, MASK, ids)
    return small_bert({"token_ids": hidden})["sequence_output"]


def of_content(ids):
    """Returns the vectors of the content stream."""
    order = np.repeat(ORDER, len(ids), axis=0)
    return small({"token_ids": ids, "order": order})


def of_queries(ids):
    """Returns what is guessed at every place."""
    order = np.repeat(ORDER, len(ids), axis=0)
    every = np.tile(np.arange(LENGTH, dtype="int32"), (len(ids), 1))
    return small({"token_ids": ids, "order": order, "target_positions": every})


def dependence(function):
    """Returns bool (T, T): does the output of a row depend on a column?"""
    ids = np.tile(1 + np.arange(LENGTH, dtype="int32"), (LENGTH + 1, 1))
    ids[np.arange(LENGTH), np.arange(LENGTH)] = 8
    found = to_numpy(function(ids))
    assert found.shape[:2] == (LENGTH + 1, LENGTH)
    # Not 0: rows of a batch may be rounded differently.
    return (np.abs(found[:-1] - found[-1]).max(-1) > 1e-5).T


sees = {
    "GPT": dependence(small_gpt),
    "BERT, two hidden": dependence(of_bert),
    "XLNet, content": dependence(of_content),
    "XLNet, guesses": dependence(of_queries),
}
before = ORDER[0][None, :] < ORDER[0][:, None]
assert (sees["XLNet, guesses"] == before).all()
assert (sees["XLNet, content"] == (before | np.eye(LENGTH, dtype=bool))).all()
assert (sees["GPT"] == np.tri(LENGTH, dtype=bool)).all()
assert (sees["BERT, two hidden"] == (ORDER < LENGTH - 2)).all()
labels = [f"{word} {i + 1}" for word, i in zip(WORDS, ORDER[0], strict=True)]
visibility_plots.draw_visibility(sees, labels, unread=["XLNet, guesses"])

# %% [markdown]
# GPT's triangle is one order of many, the one that counts from left to right.
# In XLNet the order is another one for each row of a batch; the tokens stay
# where they are, and are told their distances (as in
# [Transformer-XL](../transformer_xl/index.md)). Only who sees whom changes.
#
# ## Two streams
#
# Look at the two panels of XLNet. A guess of *cat* must not see *cat*, or there
# is nothing to guess: the diagonal is empty. But a token that comes later in
# the order must see *cat*, or it could not depend on it: the diagonal is full.
# One vector cannot do both. So there are two at every place that is guessed,
# made by the same weights:
#
# $$g_t = \mathrm{Attention}(q = g_t,\; kv = h_{s:\, z_s < z_t}), \qquad
# h_t = \mathrm{Attention}(q = h_t,\; kv = h_{s:\, z_s \le z_t}),$$
#
# with $z_t$ the moment at which token t comes, which the library calls `order`.
# (The z of the paper is the inverse, the place that comes t-th.) $h$ begins as
# the token's embedding, $g$ as one vector that is the same for all: what is
# asked is *what stands here*, and nothing of it is known but the place. Guesses
# are made of g; BERT's `[MASK]` is not needed.
#
# ### The same in NumPy
#
# Scores are those of Transformer-XL, with the sinusoids $R_{t-s}$ of distances;
# who is hidden from whom has no weight. Of N heads with H features,
#
# $$\alpha_{ts} = \mathrm{softmax}_s\, \frac{(q_t + u) \cdot k_s +
# (q_t + v) \cdot W R_{t-s}}{\sqrt H}, \qquad
# q_t = x_t W^Q, \quad k_s = h_s W^K ,$$
#
# where $x$ is h or g; keys and values are made of h in either case. Behind it
# both streams go through the same network:
#
# $$y_t = \mathrm{LN}\Big(x_t + \big[\textstyle\sum_s \alpha_{ts} h_s W^V
# \big] W^O\Big), \qquad x'_t = \mathrm{LN}(y_t + \mathrm{FFN}(y_t)), \qquad
# \mathrm{logits} = g E^\top + c .$$


# %%
def norm(x, w, name):
    """Returns each row with mean 0 and variance 1, scaled and moved."""
    x = x - x.mean(-1, keepdims=True)
    x /= np.sqrt((x**2).mean(-1, keepdims=True) + small.epsilon)
    return x * w[f"{name}/gamma"] + w[f"{name}/beta"]


def shares(scores, sees):
    """Returns the softmax of scores (N, T, S); zeros where nothing is seen."""
    powers = np.where(sees, np.exp(scores - scores.max(-1, keepdims=True)), 0)
    return powers / np.maximum(powers.sum(-1, keepdims=True), 1e-30)


def network(x, w, name):
    """Returns what the feed-forward network makes of x (T, D)."""
    inner = x @ w[f"{name}/inner/kernel"] + w[f"{name}/inner/bias"]
    inner *= (1 + np.vectorize(math.erf)(inner / math.sqrt(2))) / 2  # gelu
    return inner @ w[f"{name}/outer/kernel"] + w[f"{name}/outer/bias"]


def two_streams(ids, z, w):
    """Returns h and g (T, D), and their weights in the last block (N, T, T)."""
    h = w["token_embedding/table/embeddings"][ids]  # (T, D)
    g = np.tile(w[f"{small.name}/query_vector"], (len(ids), 1))
    earlier = z[None, :] < z[:, None]
    sees = {"h": earlier | np.eye(len(ids), dtype=bool), "g": earlier}
    apart = np.subtract.outer(np.arange(len(ids)), np.arange(len(ids)))
    rates = 10000.0 ** (-np.arange(0, h.shape[-1], 2) / h.shape[-1])
    angle = apart[..., None] * rates
    R = np.concatenate([np.sin(angle), np.cos(angle)], -1)  # (T, T, D)
    for number in range(small.num_layers):
        block, place = f"block_{number}", f"block_{number}_position"
        att = f"{block}/self_attention"
        k, v = (
            np.einsum("sd,dnh->nsh", h, w[f"{att}/{name}/kernel"])
            for name in ("key", "value")
        )
        r = np.einsum("tsd,dnh->ntsh", R, w[f"{place}/kernel"])
        new, looks = {}, {}
        for stream, x in (("h", h), ("g", g)):
            q = np.einsum("td,dnh->nth", x, w[f"{att}/query/kernel"])
            asked = q + w[f"{place}/content_bias"][:, None]  # u
            how_far = q + w[f"{place}/distance_bias"][:, None]  # v
            scores = np.einsum("nth,nsh->nts", asked, k)
            scores += np.einsum("nth,ntsh->nts", how_far, r)
            alpha = shares(scores / np.sqrt(q.shape[-1]), sees[stream])
            kernel = w[f"{att}/attention_output/kernel"]
            mixed = np.einsum("nth,nhd->td", alpha @ v, kernel)
            y = norm(x + mixed, w, f"{block}/around_attention/norm")
            new[stream] = norm(
                y + network(y, w, f"{block}/feed_forward"),
                w,
                f"{block}/around_feed_forward/norm",
            )
            looks[stream] = alpha
        h, g = new["h"], new["g"]
    return h, g, looks


# %% alt="Weights of both streams: the content sees itself, the guesses do not"
# Larger weights, and u and v that are not zeros, show that all of them act.
for number, weight in enumerate(small.weights):
    if not weight.path.endswith(("gamma", "beta", "bias")) or (
        "position" in weight.path
    ):
        weight.assign(0.4 * keras.random.normal(weight.shape, seed=number))
w = {x.path: to_numpy(x).astype("float64") for x in small.weights}
ids = np.arange(1, 1 + LENGTH, dtype="int32")
h, g, looks = two_streams(ids, ORDER[0], w)
assert h.shape == g.shape == (LENGTH, SMALL["hidden_dim"])
for name, x, found in (
    ("content", h, of_content(ids[None])),
    ("guesses", g, of_queries(ids[None])),
):
    by_hand = x @ w["token_embedding/table/embeddings"].T
    by_hand += w["token_embedding/logits_bias"]  # c
    assert tuple(found.shape) == (1, *by_hand.shape) == (1, LENGTH, 10)
    gap = np.abs(to_numpy(found)[0] - by_hand).max()
    print(f"{name}: largest difference of {by_hand.size} logits {gap:.0e}")
    assert gap < 1e-4
assert not looks["g"][:, np.eye(LENGTH, dtype=bool)].any()
draw_grids(
    {
        "content, head 0": looks["h"][0],
        "guesses, head 0": looks["g"][0],
    },
    labels,
    labels,
    ylabel="what looks",
    xlabel="what is looked at",
)

# %% [markdown]
# The guess of *old*, which comes first, sees nothing at all: its row is empty.
#
# ### A guess does not move with its token
#
# At each place we put nine words, one after the other, there *and* wherever the
# order comes later. What is guessed there must be the same every time; the
# content, which sees itself, must not.

# %%
print("moves with its own token and all later ones, at most:")
for t, word in enumerate(WORDS):
    tried = np.tile(ids, (9, 1))
    later = ORDER[0] >= ORDER[0, t]
    tried[:, later] = 1 + (tried[:, later] + np.arange(9)[:, None]) % 9
    moved = {}
    for name, function in (("guess", of_queries), ("content", of_content)):
        found = to_numpy(function(tried))[:, t]
        assert found.shape == (9, 10)
        moved[name] = np.abs(found - found[:1]).max()
    print(f"  {word:<5}", *(f"{name} {x:.0e}" for name, x in moved.items()))
    assert moved["guess"] < 1e-4 < moved["content"]

# %% [markdown]
# ### From left to right it is a GPT
#
# With the order 0, 1, 2, ... a guess sees what stands to its left, as in GPT.
# Leave away what comes later: nothing may move.

# %%
every = np.arange(LENGTH, dtype="int32")[None]
whole = {"token_ids": ids[None], "order": every, "target_positions": every}
guessed = to_numpy(small(whole))[0]
for count in (2,) if run.quick else (2, 4):
    short = {name: x[:, :count] for name, x in whole.items()}
    gap = np.abs(to_numpy(small(short))[0] - guessed[:count]).max()
    print(f"the first {count} of {LENGTH} tokens: guesses {gap:.0e} apart")
    assert gap < 1e-4

# %% [markdown]
# ## Every order gives a probability
#
# $$p(x) = \prod_t p(x_t \mid x_{s:\, z_s < z_t})$$
#
# for every order z, with one softmax for each factor. So over all texts the
# products sum to 1, whatever the weights. With three tokens there are 81 texts
# of length four:

# %% alt="What one text costs in five orders, place by place"
tiny = XLNet(3, **SMALL, **NO_IDS)
texts = np.array(list(itertools.product(range(3), repeat=4)), "int32")
every = np.tile(np.arange(4, dtype="int32"), (len(texts), 1))
assert len(texts) == 81
for number, weight in enumerate(tiny.weights):
    weight.assign(keras.random.normal(weight.shape, seed=number))
costs = {}
for order in list(itertools.permutations(range(4)))[::5]:
    logits = tiny(
        {
            "token_ids": texts,
            "order": np.tile(np.array(order, "int32"), (len(texts), 1)),
            "target_positions": every,
        }
    )
    logs = to_numpy(keras.ops.log_softmax(logits))
    assert logs.shape == (81, 4, 3)
    picked = np.take_along_axis(logs, texts[..., None], -1)[..., 0]
    total = np.exp(picked.sum(-1)).sum()
    print(f"order {order}: {total:.6f}")
    assert abs(total - 1) < 1e-4
    costs[" ".join(map(str, order))] = -picked[
        texts.tolist().index([0, 1, 2, 0])
    ]
figure = Figure(figsize=(7.5, 2.6), layout="constrained")
panel = figure.subplots()
left = np.zeros(len(costs))
for place in range(4):
    nats = np.array([cost[place] for cost in costs.values()])
    panel.barh([*costs], nats, left=left, label=f"token {place + 1}")
    left += nats
panel.invert_yaxis()
panel.set(xlabel="nats, of one text", ylabel="order")
figure.legend(loc="outside upper center", ncols=4)
figure

# %% [markdown]
# One text costs something else in each order, as long as nobody trains. What is
# cheaper here is dearer in another text: the sums are 1.
#
# ## New York
#
# Six cities of two words, and nothing else: *new york is a city*. Both words
# are hidden. BERT is asked for both at once; each place is one of six words,
# and it cannot say which go together. XLNet is asked for them one by one, in
# either order:
#
# $$\mathrm{BERT:}\quad p(a)\, p(b), \qquad
# \mathrm{XLNet:}\quad p(a)\, p(b \mid a) \ \text{ or }\ p(b)\, p(a \mid b) .$$

# %%
CITIES = "new york,los angeles,san diego,las vegas,saint paul,fort worth"
CITIES = [city.split() for city in CITIES.split(",")]
firsts, seconds = ([city[side] for city in CITIES] for side in (0, 1))
words = ["[PAD]", "[MASK]", *firsts, *seconds, "is", "a", "city"]
rows = np.array(
    [[words.index(w) for w in [*city, "is", "a", "city"]] for city in CITIES],
    "int32",
)
many = np.tile(rows, (32 if run.quick else 256, 1))
places = np.tile(np.array([0, 1], "int32"), (len(many), 1))
toy = {"num_layers": 2, "num_heads": 2, "hidden_dim": 32, "dropout": 0.0}
toy["attention_dropout"] = 0.0
joint = XLNet(len(words), **toy, start_id=None, end_id=None)
alone = BertPretrainer(
    Bert(len(words), **toy, intermediate_dim=128, max_sequence_length=8)
)
# Which sentence follows is not asked here.
freeze(alone, "^(pooler|next_sentence)/")
order = np.zeros_like(many)
flip = np.random.default_rng(run.seed).random(len(many)) < 0.5
order[:, 0], order[:, 1] = 1 + flip, 2 - flip
asked = {"token_ids": many, "order": order, "target_positions": places}
hidden = many.copy()
hidden[:, :2] = words.index("[MASK]")
masks = {"token_ids": hidden, "masked_positions": places}
for toy_model, inputs, loss in (
    (joint, asked, SequenceCrossentropy(pad_id=-1)),
    (alone, masks, {"token_logits": SequenceCrossentropy(pad_id=-1)}),
):
    toy_model.compile(keras.optimizers.Adam(3e-3), loss)
    wanted = (
        many[:, :2] if toy_model is joint else {"token_logits": many[:, :2]}
    )
    toy_model.fit(inputs, wanted, epochs=12, batch_size=64, verbose=0)


def chances(logits):
    """Returns probabilities of logits."""
    return to_numpy(keras.ops.softmax(logits))


first_ids = [words.index(word) for word in firsts]
second_ids = [words.index(word) for word in seconds]
# BERT: both places from the same look at the sentence.
p = chances(alone({n: x[:1] for n, x in masks.items()})["token_logits"])[0]
tables = {"BERT": np.outer(p[0, first_ids], p[1, second_ids])}
# XLNet: the first word, then the second with each of the first ones in place.
in_order = {"order": np.tile([[1, 2, 0, 0, 0]], (len(rows), 1)).astype("int32")}
in_order |= {"token_ids": rows, "target_positions": places[: len(rows)]}
p = chances(joint(in_order))
tables["XLNet"] = p[0, 0, first_ids][:, None] * p[:, 1, second_ids]
results["new york"] = {}
for name, table in tables.items():
    assert table.shape == (6, 6) and table.sum() < 1 + 1e-4
    real = float(np.trace(table))
    cost = float(-np.log(np.diag(table)).mean())
    results["new york"][name] = {"cities": real, "nats": cost}
    print(
        f"{name:<6} writes a city in {real:.1%}, a city costs {cost:.2f} nats"
    )
print(f"the least: log 6 = {np.log(6):.2f}; each alone: {2 * np.log(6):.2f}")

# %% alt="Probability of each pair of words, of BERT and of XLNet"
visibility_plots.draw_pairs(tables, firsts, seconds)

# %% [markdown]
# *New angeles* is as likely as *new york* for BERT: one in thirty-six each.
#
# ## What is guessed
#
# To guess the first tokens of an order is hopeless: nothing is known yet. So
# only the last sixth is guessed (**partial prediction**), in stretches of one
# to five tokens. All others come first, at once, and see each other, as in
# BERT. The number behind a token is when it comes.
#
# $$L = -\frac{1}{n} \sum_{t:\ z_t > 0}
# \log p(x_t \mid x_{s:\ z_s < z_t}) ,$$
#
# over the n tokens of a batch that are guessed; z = 0 are the others.

# %% alt="Who sees whom in a pair of sentences: guesses, in their order"
ids = [tokenizer.encode(document) for document in learned]
V, T, B = tokenizer.vocabulary_size, run.context, run.batch
pairs = [
    pair
    for number in range(run.draws)
    for pair in sentence_pairs(ids, T - 3, seed=(run.seed, number))
]
test_pairs = sentence_pairs(
    [tokenizer.encode(document) for document in kept], T - 3, seed=run.seed
)
for draw in range(3):
    inputs, wanted = permuted(pairs[:1], tokenizer, T, draw)
    row = zip(inputs["token_ids"][0], inputs["order"][0], strict=True)
    print(
        *(
            tokenizer.vocabulary[i] + (f"({z})" if z else "")
            for i, z in row
            if i != tokenizer.pad_id
        )
    )
assert inputs["token_ids"].shape == inputs["order"].shape == (1, T)
assert inputs["target_positions"].shape == wanted.shape
count = int((inputs["token_ids"][0] != tokenizer.pad_id).sum())
z = inputs["order"][0, :count]
visibility_plots.draw_visibility(
    {
        "content": (z[None] <= z[:, None]) | np.eye(count, dtype=bool),
        "guesses (?)": (z[None] < z[:, None]) & (z[:, None] > 0),
    },
    [tokenizer.vocabulary[i] for i in inputs["token_ids"][0, :count]],
)

# %% [markdown]
# ## Pre-training, of both
#
# The same pairs of stretches in batches of the same size, as many steps. XLNet
# learns from orders alone; BERT from what is hidden, and from whether the
# second stretch follows.


# %%
def prepared(model, name, batches, loss):
    """Trains a model; returns its log and its backup."""
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
    model.compile(optimizer, loss)
    log = TrainingLog(600.0, len(pairs) * T)
    free = "tune arms examples share passes rates seeds length most".split()
    try:
        backup = TrainingBackup(
            run.out / f"backup-{name}",
            [log],
            data=batches,
            settings=program_settings.identity(run, *free)
            | {"backend": keras.backend.backend()},
            resume=not run.fresh,
        )
    except ValueError as error:
        program_settings.explain_and_leave(
            "xlnet", f"{error}. FRESH=1 starts anew."
        )
    model.fit(
        batches,
        epochs=run.epochs,
        shuffle=False,
        callbacks=[backup],
        verbose=2,
    )
    results[name] = {
        "parameters": int(model.count_params()),
        "steps": len(log.losses),
        "seconds": log.seconds,
        "losses": log.losses,
    }
    print(f"{name}: {len(log.losses):,} steps in {log.seconds / 60:.1f} min")
    return backup


backups = []
shape = {
    "num_layers": run.layers,
    "num_heads": run.heads,
    "hidden_dim": run.width,
    "intermediate_dim": 4 * run.width,
    "dropout": run.dropout,
    "attention_dropout": run.dropout,
}
keras.utils.set_random_seed(run.seed)
model = XLNet(V, pad_id=tokenizer.pad_id, start_id=None, end_id=None, **shape)
print(f"XLNet: {model.count_params():,} parameters")
batches = permuted_batches(pairs, tokenizer, T, B, run.seed)
inputs, wanted = batches[0]
P = wanted.shape[1]
logits = model(inputs)
assert tuple(logits.shape) == (B, P, V) == (*wanted.shape, V)
# The loss above, in NumPy and of the library.
p = chances(logits)
right = np.take_along_axis(p, np.maximum(wanted, 0)[..., None], -1)[..., 0]
by_hand = -np.log(right[wanted >= 0]).mean()
found = float(to_numpy(SequenceCrossentropy(pad_id=-1)(wanted, logits)))
print(f"before training: L = {by_hand:.4f}, the library's {found:.4f}")
assert abs(by_hand - found) < 1e-3
backups.append(
    prepared(model, "xlnet", batches, SequenceCrossentropy(pad_id=-1))
)
if bert is None:
    keras.utils.set_random_seed(run.seed)
    bert = BertPretrainer(
        Bert(
            V,
            max_sequence_length=max(T, 128),
            position_embedding=None,
            attention_position=RotaryPosition(),
            **shape,
        )
    )
    print(f"BERT: {bert.count_params():,} parameters")
    losses = {
        "token_logits": SequenceCrossentropy(pad_id=-1),
        "next_sentence_logits": keras.losses.SparseCategoricalCrossentropy(
            from_logits=True
        ),
    }
    backups.append(
        prepared(
            bert,
            "bert",
            masked_batches(pairs, tokenizer, T, B, run.seed),
            losses,
        )
    )

# %% [markdown]
# How often is the first guess right, on documents that neither saw? The
# questions are not the same: XLNet's stand in stretches, which is harder, and
# it has seen the guesses before, which is easier.

# %%
inputs, wanted = permuted(test_pairs, tokenizer, T, run.seed)
guesses = model.predict(inputs, batch_size=B, verbose=0).argmax(-1)
there = wanted >= 0
steps_in = np.take_along_axis(
    inputs["order"], np.maximum(inputs["target_positions"], 0), 1
)
right = guesses == wanted
reads, says = masked(test_pairs, tokenizer, T, run.seed)
answers = bert.predict(reads, batch_size=B, verbose=0)["token_logits"]
bert_there = says["token_logits"] >= 0
bert_right = (answers.argmax(-1) == says["token_logits"])[bert_there]
results["first guess"] = {
    "XLNet": float(right[there].mean()),
    "XLNet, first of the guessed": float(right[there & (steps_in == 1)].mean()),
    "BERT": float(bert_right.mean()),
}
for name, share in results["first guess"].items():
    print(f"{name:<28} {share:.1%}")

# %% alt="Share of right guesses, by how many were guessed before"
assert steps_in.shape == right.shape == wanted.shape
by_step = {}
for step in range(1, int(steps_in[there].max()) + 1):
    chosen = there & (steps_in == step)
    if chosen.any():
        by_step[step] = float(right[chosen].mean()), int(chosen.sum())
results["by step"] = by_step
figure = Figure(figsize=(6.5, 2.8), layout="constrained")
panel = figure.subplots()
drawn = panel.bar([*by_step], [share for share, _ in by_step.values()])
panel.bar_label(
    drawn,
    [f"{share:.0%}\nof {count:,}" for share, count in by_step.values()],
    label_type="center",
    color="white",
    fontsize=8,
)
panel.set_xticks([*by_step])
panel.axhline(results["first guess"]["BERT"], color="C1", linestyle="--")
panel.text(0.5, results["first guess"]["BERT"], "BERT", color="C1", va="bottom")
panel.set(xlabel="z, when it is guessed", ylabel="right", ylim=(0, 1))
figure

# %% [markdown]
# What has been guessed before helps: of all guesses more are right than of
# those that come first in their order. BERT's questions mostly stand apart,
# with both neighbours in sight.
#
# ## Fine-tuning, of both
#
# A class for a sentence, on its first vector. XLNet is now its content stream
# alone: all tokens see all. What only guesses use, the vector that $g$ begins
# with and the bias of the logits, is frozen, as no gradient comes to it.


# %%
def start_xlnet():
    """Returns the pre-trained XLNet, to be fine-tuned."""
    twin = tuning_runs.copied(model)
    freeze(twin, "query_vector$|logits_bias$")
    return twin


def untrained_xlnet():
    """Returns an XLNet that begins from nothing."""
    twin = tuning_runs.fresh(model)
    freeze(twin, "query_vector$|logits_bias$")
    return twin


arms = {
    "XLNet": start_xlnet,
    "BERT": lambda: tuning_runs.copied(bert.encoder),
    "from nothing": untrained_xlnet,
}
arms = {name: arms[name] for name in run.arms.split(",")}
print(
    f"{len(data.train):,} sentences to learn from, {len(data.test):,} to test"
)
tuned = tuning_runs.compare_arms(
    data, arms, tokenizer, run, run.share, run.passes, numbers(run.rates)
)
results["fine-tuned"] = tuned
for name, found in tuned.items():
    scores = np.array(found["scores"])
    spread = f" ± {scores.std(ddof=1):.1%}" if len(scores) > 1 else ""
    print(f"{name:<13} {scores.mean():.1%}{spread} with {found['rate']:g}")

# %% alt="Accuracy after fine-tuning: XLNet, BERT, from nothing"
visibility_plots.draw_scores(
    {name: found["scores"] for name, found in tuned.items()}
)

# %% [markdown]
# Pre-training is worth thirteen points; which of the two it was makes no
# difference that three seeds could show.
#
# ## Writing
#
# The order that counts from left to right is one of all; so it can write, a
# token at a time, asking the query stream what stands at the next place. It was
# trained to guess the last sixth of an order, where five sixths are known, and
# hardly ever with nothing behind; still it makes sentences.

# %%
begin = tokenizer.vocabulary.index("[CLS]")
prompt = tokenizer.encode(learned[0][0])[:3]
length = 4 if run.quick else 12
written = model.generate([[begin, *prompt]], length, verbose=0).tokens[0, 0]
assert written.shape == (length,)
print(tokenizer.decode(prompt), "|", tokenizer.decode(written))

# %% [markdown]
# ## What should hold
#
# With the settings of this page:

# %%
if WHOLE:
    cities = results["new york"]
    assert cities["XLNet"]["cities"] > 0.9 and cities["BERT"]["cities"] < 0.25
    means = {name: np.mean(found["scores"]) for name, found in tuned.items()}
    assert means["XLNet"] > means["from nothing"]
    first = results["first guess"]
    assert first["XLNet"] > first["XLNet, first of the guessed"]

# %% [markdown]
# ## Keeping it

# %%
model.save(run.out / "model.keras")
tokenizer.save(run.out)
results["settings"] = {k: str(v) for k, v in run._asdict().items()}
(run.out / "results.json").write_text(
    json.dumps(results, indent=1, ensure_ascii=False), encoding="utf-8"
)
for backup in backups:
    backup.remove()
program = ".venv/bin/python tutorials/xlnet.py"
print(f"""
The model is in {run.out / "model.keras"}, its pieces in vocab.txt beside it,
and all figures in {run.out / "results.json"}.

What to try next, with {program} behind it:
  EXAMPLES=50                 fewer examples to fine-tune on
  DATA=documents.txt          documents of your own
  TUNE=data BERT=runs/bert-data DATA=documents.txt
                              people's sentences, beside a BERT of yours""")

# %% [markdown]
# ## Exercises
#
# **1.** Fill in. A text of T tokens has ___ orders. In the matrix of the
# guesses, ___ entries are full whatever the order is, if all T tokens are
# guessed; in that of the content ___.
#
# <details markdown>
# <summary>Answer</summary>
#
# T!. Of each pair one sees the other: T (T - 1) / 2; the content sees itself as
# well, T (T + 1) / 2.
#
# </details>
#
# **2.** Is it not enough to shuffle the tokens and train a GPT on that? What
# does XLNet know that this GPT does not?
#
# <details markdown>
# <summary>Answer</summary>
#
# Which place it is asked for. Tokens that are shuffled have lost their places;
# and if they bring them along, GPT still has to be told *where* the next one
# stands: two different places behind the same beginning would get the same
# probabilities. That is what the query's distances say.
#
# </details>
#
# **3.** Of the six cities each is as likely. What would XLNet have to pay at
# least for both words of one, in nats, if there were also *new orleans* and
# *new haven*, eight cities in all? And BERT?
#
# <details markdown>
# <summary>Answer</summary>
#
# log 8 = 2.08 in either order. BERT: the first word costs
# $-\frac{3}{8} \log \frac{3}{8} - \frac{5}{8} \log \frac{1}{8} = 1.67$, the
# second log 8 = 2.08: 3.75 together.
#
# </details>
