# %% [markdown]
# # Beyond the segment: Transformer-XL
#
# A language model reads a text in pieces. At the beginning of each it knows
# nothing: *My sister found* stood in the piece before. Transformer-XL (Dai et
# al. 2019, <https://arxiv.org/abs/1901.02860>) remembers what it made of it.
#
# ![What characters cost, by their place in the segment: with a memory the first
# is as cheap as the last](transformer_xl-2.png)
#
# All four have as many parameters and were trained for as many steps.
#
# You will
#
# - write the model in NumPy, **memory and distances** and all, and see that two
#   segments with a memory are one long segment;
# - see why places cannot be counted from the beginning, and what stands in
#   their stead: **four terms**, two of them of the distance alone;
# - compute those for all distances at once, and **shift** them into place;
# - measure **how far** it looks back: layers times memory;
# - train it with three memories, and a GPT beside it;
# - give it a **longer memory** than it ever had in training;
# - measure what evaluation costs with a memory, and without one.
#
# On two cores eleven minutes at most: the run of this page had one. The text is
# written by a grammar; nothing is downloaded. As a program, on any backend:
#
#     KERAS_BACKEND=torch .venv/bin/python tutorials/transformer_xl.py
#
# With `DATA=` it learns from a text of yours; what it makes of Shakespeare is
# [here](../../results/language_modeling.md):
#
#     DATA=input.txt .venv/bin/python tutorials/transformer_xl.py

# %%
import json
import time

import character_losses
import corpora
import keras
import memory_arms
import memory_plots
import numpy as np
import program_settings
import transformer_xl_settings
from character_table import CharacterTable
from passage_text import passage_text
from segment_losses import bits, segment_losses
from stop_at import StopAt
from training_log import TrainingLog

from keras_attn.decoding import Sampling
from keras_attn.ops import relative_shift
from keras_attn.text import token_blocks, token_streams
from keras_attn.training import SequenceCrossentropy, TrainingBackup

try:
    run = transformer_xl_settings.read()
    memories = transformer_xl_settings.memories_of(run)
    if run.data:
        text = "\n".join(corpora.read_lines(run.data)) + "\n"
    else:
        text = passage_text(run.passages, run.seed)
    cut = int(0.9 * len(text))
    if cut < 2 * run.segment * run.batch or len(text) - cut <= 8 * run.segment:
        raise ValueError(
            "DATA must be a text of more than three times SEGMENT times BATCH "
            f"and eighty times SEGMENT characters. Received: {len(text):,}"
        )
except ValueError as error:
    program_settings.explain_and_leave("transformer_xl", error)

keras.utils.set_random_seed(run.seed)
run.out.mkdir(parents=True, exist_ok=True)
results = {"backend": keras.backend.backend()}
# What is asserted of trained models is so with the settings of this page.
WHOLE = transformer_xl_settings.is_default(run)
print(f"Keras {keras.__version__} on {keras.backend.backend()}")
table = CharacterTable.of_text(text)
V, T, B, LONGEST = table.size, run.segment, run.batch, memories[-1]
learned, held_out = table.encode(text)[:cut], table.encode(text)[cut:]
print(f"{len(learned):,} characters to learn from, {len(held_out):,} kept")
print(text[:300])

# %% [markdown]
# ## Segments with a memory
#
# A segment is T characters. Each of L blocks keeps what it has read: the M
# vectors $m$ that came into it last. In the next segment its keys and values
# are made of those as well, its queries of the new ones only:
#
# $$h^{n} = \mathrm{Block}\big(\text{queries of } h^{n-1},\;
# \text{keys and values of } [m^{n}; h^{n-1}]\big).$$
#
# No gradient goes back into the memory: it is read, not trained. So a step of
# training costs what a step with M more keys costs, however far back it all
# goes.
#
# ## Distances
#
# Which place has a remembered vector? If each segment counted from 0, as GPT-2
# does, the last character of the memory and that of the segment would have the
# same one. So nothing is added to the embeddings. Attention is told of the
# distance t - s instead, by its sinusoids $R_{t-s}$, as they are in the
# Transformer:
#
# $$A_{ts} = \frac{1}{\sqrt H}\big(
# \underbrace{q_t \cdot k_s}_{(a)\ \text{what it is}} +
# \underbrace{q_t \cdot W R_{t-s}}_{(b)\ \text{how far, asked by } t} +
# \underbrace{u \cdot k_s}_{(c)\ \text{a key that all want}} +
# \underbrace{v \cdot W R_{t-s}}_{(d)\ \text{a distance that all want}}\big).$$
#
# u and v are vectors of each head that are learned, and stand where the query's
# own place stood.

# %%
XL = {
    memory: memory_arms.build_xl(V, run, memory, stateful_batch_size=B)
    for memory in memories
}
model = XL[LONGEST]
COUNT = int(sum(np.prod(w.shape) for w in model.trainable_weights))
gpt = memory_arms.build_gpt(V, run, COUNT)
print(f"Transformer-XL: {COUNT:,} parameters, GPT: {gpt.count_params():,}")
assert abs(gpt.count_params() / COUNT - 1) < 0.01

# %% [markdown]
# ### The same in NumPy
#
# Every line is one of the equations: a segment and the memory go in, logits and
# the memory for the next segment come out.


# %%
def forward(ids, past, w):
    """Returns logits (T, V) of ids (T,), and the next past, a list of (M, D).

    Args:
        ids: int (T,).
        past: list of float (M, D), one a block.
        w: dict of the weights by name.
    """

    def norm(x, name):
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(
            x.var(-1, keepdims=True) + 1e-5
        )
        return x * w[f"{name}/gamma"] + w[f"{name}/beta"]

    def gelu(x):
        return x * keras.ops.convert_to_numpy(
            (1 + keras.ops.erf(x / 2**0.5)) / 2
        )

    h = w["token_embedding/table/embeddings"][ids]  # (T, D)
    T, D = h.shape
    remembered = []
    for number, m in enumerate(past):
        block, place = f"block_{number}", f"block_{number}_position"
        both = np.concatenate([m, h])  # (M + T, D)
        remembered.append(both[max(0, len(both) - LONGEST) :])
        x = norm(both, f"{block}/around_attention/norm")
        att = f"{block}/self_attention"
        q, k, v = (
            np.einsum("td,dnh->nth", rows, w[f"{att}/{name}/kernel"])
            for rows, name in ((x[-T:], "query"), (x, "key"), (x, "value"))
        )
        distance = len(m) + np.arange(T)[:, None] - np.arange(len(both))
        rates = 10000.0 ** (-np.arange(0, D, 2) / D)
        angle = distance[..., None] * rates
        R = np.concatenate([np.sin(angle), np.cos(angle)], -1)  # (T, M + T, D)
        r = np.einsum("tsd,dnh->ntsh", R, w[f"{place}/kernel"])
        of_key = w[f"{place}/content_bias"][:, None]  # u
        of_distance = w[f"{place}/distance_bias"][:, None]  # v
        scores = (
            np.einsum("nth,nsh->nts", q, k)  # (a)
            + np.einsum("nth,ntsh->nts", q, r)  # (b)
            + np.einsum("nth,nsh->nts", 0 * q + of_key, k)  # (c)
            + np.einsum("nth,ntsh->nts", 0 * q + of_distance, r)  # (d)
        ) / q.shape[-1] ** 0.5
        scores[:, distance < 0] = -np.inf
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        kernel = w[f"{att}/attention_output/kernel"]  # (N, H, D)
        h = h + np.einsum("nth,nhd->td", weights @ v, kernel)
        x = norm(h, f"{block}/around_feed_forward/norm")
        inner, outer = (f"{block}/feed_forward/{a}" for a in ("inner", "outer"))
        x = gelu(x @ w[f"{inner}/kernel"] + w[f"{inner}/bias"])
        h = h + x @ w[f"{outer}/kernel"] + w[f"{outer}/bias"]
    logits = norm(h, "norm") @ w["token_embedding/table/embeddings"].T
    return logits, remembered


def numpy_of(model):
    """Returns a model's weights by name."""
    return {
        weight.path: keras.ops.convert_to_numpy(weight).astype("float64")
        for weight in model.trainable_weights
    }


# u and v begin as zeros. Other numbers show that they act.
for number, weight in enumerate(model.trainable_weights):
    if weight.path.endswith(("content_bias", "distance_bias")):
        weight.assign(keras.random.normal(weight.shape, seed=number))
pieces = held_out[: 2 * T].reshape(2, T)
past = [np.zeros((0, run.width))] * run.layers
by_hand, by_library, memory = [], [], {}
for ids in pieces:
    logits, past = forward(ids, past, numpy_of(model))
    by_hand.append(logits)
    logits, kept = model.advance({"token_ids": ids[None], **memory})
    memory = {"memory": kept}
    by_library.append(keras.ops.convert_to_numpy(logits)[0])
assert kept.states[0].shape == (1, LONGEST, run.width)
difference = np.abs(np.concatenate(by_hand) - np.concatenate(by_library)).max()
print(f"largest difference of {2 * T * V:,} logits: {difference:.1e}")
assert difference < 1e-4

# %% [markdown]
# ### Two segments are one long segment
#
# Where the memory holds all that stood before, reading in pieces changes
# nothing but the time it takes:

# %%
at_once = keras.ops.convert_to_numpy(model(pieces.reshape(1, -1)))[0]
difference = np.abs(at_once - np.concatenate(by_library)).max()
print(f"in two pieces and in one: {difference:.1e}")
assert LONGEST < T or difference < 1e-4

# %% [markdown]
# ### A row, shifted
#
# (b) and (d) need $W R_{t-s}$ for T × (M + T) pairs, each a vector. But there
# are only M + T distances: one product for those, and every query has its
# scores already, in the order of distance instead of the order of keys. The key
# that is one further along for the same distance belongs to the query one
# further down, so each row moves by one (Dai et al., appendix B). No table of
# T × (M + T) vectors is ever made.

# %% alt="Scores of distances before and after the relative shift"
SMALL_T, SMALL_M = 4, 3
products = np.tile(
    np.arange(SMALL_M + SMALL_T - 1, -1, -1, dtype="float32"), (SMALL_T, 1)
)
shifted = relative_shift(products[None, None], SMALL_M + SMALL_T)
shifted = keras.ops.convert_to_numpy(shifted)[0, 0]
rows, columns = np.indices((SMALL_T, SMALL_M + SMALL_T))
seen = SMALL_M + rows - columns >= 0
assert (shifted[seen] == (SMALL_M + rows - columns)[seen]).all()
memory_plots.draw_shift(
    products.astype(int), np.where(seen, shifted, -1).astype(int)
)

# %% [markdown]
# ## Training
#
# The text is laid out in B rows, and a batch is the next segment of each row;
# the model carries its memory from one batch to the next by itself. Where a row
# begins, `starts` says so, and nothing is remembered there.
#
# GPT is trained on blocks of T characters from anywhere, as many in each step.
# Its positions are rotary; the weights that Transformer-XL has for distances it
# has in its feed-forward networks.

# %%
streams = token_streams(learned, T, B, seed=run.seed)
blocks = token_blocks(learned, T, B, seed=run.seed)
first, second = streams.as_numpy_iterator(), streams.as_numpy_iterator()
next(second)
(one, labels), (two, _) = next(first), next(second)
assert one["token_ids"].shape == labels.shape == (B, T)
assert (labels[:, -1] == two["token_ids"][:, 0]).all()  # the row goes on
begun, gone_on = (
    one["document_starts"][:, 0] == 1,
    two["document_starts"][:, 0] == 0,
)
print(f"{begun.sum()} rows start, {gone_on.sum()} go on")


def train(name, model, batches):
    """Trains a model; returns its log and its backup."""
    rise = max(1, min(100, run.steps // 10))
    schedule = keras.optimizers.schedules.CosineDecay(
        0.0,
        max(1, run.steps - rise),
        alpha=0.05,
        warmup_target=run.rate,
        warmup_steps=rise,
    )
    optimizer = keras.optimizers.AdamW(
        schedule, beta_2=0.99, weight_decay=0.1, global_clipnorm=1.0
    )
    optimizer.exclude_from_weight_decay(var_names=["bias", "gamma", "beta"])
    model.compile(optimizer, SequenceCrossentropy(pad_id=-1))
    count = int(batches.cardinality())
    log = TrainingLog(600.0, count * B * T)
    try:
        backup = TrainingBackup(
            run.out / f"backup-{name}",
            [log, StopAt(run.steps)],
            data=batches,
            settings=program_settings.identity(run)
            | {"backend": keras.backend.backend()},
            resume=not run.fresh,
        )
    except ValueError as error:
        program_settings.explain_and_leave(
            "transformer_xl", f"{error}. FRESH=1 starts anew."
        )
    model.fit(
        batches,
        epochs=-(-run.steps // count),
        shuffle=False,  # the batches do it
        callbacks=[backup],
        verbose=2,
    )
    return log, backup


logs, backups = {}, []
for weight in model.trainable_weights:
    if weight.path.endswith(("content_bias", "distance_bias")):
        weight.assign(keras.ops.zeros(weight.shape))
arms = {f"M = {M}": (XL[M], streams) for M in memories} | {"GPT": (gpt, blocks)}
for name, (arm, batches) in arms.items():
    keras.utils.set_random_seed(run.seed)
    print(f"Training: {name}")
    logs[name], backup = train(name.replace(" ", ""), arm, batches)
    backups.append(backup)
    print(
        f"{name}: {len(logs[name].losses):,} steps in "
        f"{logs[name].seconds / 60:.1f} min"
    )

# %% [markdown]
# ## Where a segment begins
#
# What a character of the kept text costs, in bits, by its place in the segment.
# GPT's blocks lie end to end, as the segments do; the second figure is GPT's
# for characters with half a block before them at least, each block read for
# half of its characters only.

# %% alt="What characters cost, by their place in the segment"
by_place, results["bits"] = {}, {}
for M in memories:
    losses, places = segment_losses(XL[M], held_out, T, M)
    assert losses.shape == (len(held_out) - 1,)
    name = f"M = {M}"
    by_place[name] = [losses[places == place].mean() for place in range(T)]
    results["bits"][name] = bits(losses)
losses = character_losses.character_losses(gpt, held_out, T)
by_place["GPT"] = [losses[place::T].mean() for place in range(T)]
results["bits"]["GPT"] = bits(losses)
results["bits"]["GPT, half a block before"] = bits(
    character_losses.overlapping_losses(gpt, held_out, T)
)
for name, value in results["bits"].items():
    minutes = f"{logs[name].seconds / 60:.1f} min" if name in logs else ""
    print(f"{name:<25} {value:.3f} bits a character  {minutes}")
results["by place"] = {n: [float(x) for x in v] for n, v in by_place.items()}
memory_plots.draw_by_place(by_place)

# %% [markdown]
# Without a memory the first characters of a segment are guessed from next to
# nothing, and GPT does no better. With one they cost what the others cost:
# there is no beginning any more. GPT comes near where it reads every character
# twice, which is twice the work.
#
# ## How far does it look back?
#
# A block sees M vectors in front of its segment. Each of these had itself seen
# M more, in front of its own: after L blocks a character may depend on one L M
# back, and on what stands before it in its segment. Change one character, read
# all segments anew, and see what becomes of the last logits:

# %% alt="How much the last logits change with a character, by its distance"
LINES = 160
influence, reaches = {}, {}
for M in memories:
    reach = memory_arms.reach(run.layers, M, T)
    back = np.unique(
        np.linspace(0, reach + 3 * T, 8 if run.quick else LINES).astype(int)
    )
    length = -(-(back.max() + 1) // T) * T
    long = np.resize(held_out, length)
    changed = np.repeat(long[None], len(back) + 1, axis=0)
    changed[np.arange(len(back)), length - 1 - back] += 1
    changed %= V
    reader = XL[M].with_memory(M)
    memory = {}
    for start in range(0, length, T):
        logits, kept = reader.advance(
            {"token_ids": changed[:, start : start + T], **memory}
        )
        memory = {"memory": kept} if M else {}
    last = keras.ops.convert_to_numpy(logits)[:, -1]
    moved = np.abs(last[:-1] - last[-1]).max(-1)
    moved[moved < 1e-5] = 0  # rows of a batch may be rounded differently
    name = f"M = {M}"
    influence[name], reaches[name] = (back, moved), reach
    assert (moved[back > reach] == 0).all()
    assert moved[0] > 0
    print(f"{name}: no further than {reach}, seen {back[moved > 0].max()}")
results["reach"] = reaches
memory_plots.draw_reach(influence, reaches)

# %% [markdown]
# The dotted lines are L M + T - 1 (where T divides M). What is further away
# changes nothing at all; what is nearer changes less and less. Each block adds
# one memory: the curve of the longest one falls at M + T = 160 and again at
# 2 M + T = 288.
#
# ## What it makes of a distance
#
# The term (d), $v \cdot W R_r / \sqrt H$, is the same for every query: what a
# head thinks of the distance r, whatever stands there.

# %% alt="The score of each distance, by layer and head"
distances = np.arange(LONGEST + T)
rates = 10000.0 ** (-np.arange(0, run.width, 2) / run.width)
angle = distances[:, None] * rates
R = np.concatenate([np.sin(angle), np.cos(angle)], -1)
weights = numpy_of(model)
scores = []
for number in range(run.layers):
    place = f"block_{number}_position"
    r = np.einsum("rd,dnh->nrh", R, weights[f"{place}/kernel"])
    v = weights[f"{place}/distance_bias"]
    scores.append(np.einsum("nh,nrh->nr", v, r) / v.shape[-1] ** 0.5)
assert scores[0].shape == (run.heads, LONGEST + T)
memory_plots.draw_distances(
    scores, [f"block {number}" for number in range(run.layers)]
)

# %% [markdown]
# Most heads look at what is near, in the second block up to thirty characters
# back, about a clause. Further away the scores only swing: sinusoids that
# nothing in the text told apart.
#
# ## A longer memory than in training
#
# Distances are sinusoids, of which there are more than were ever met, and the
# memory has no weights. So each model can be read with any memory:

# %% alt="Loss by the memory of the evaluation, for each model"
TRIED = sorted({0, *memories, *(2 ** np.arange(3, 10)).tolist()})
TRIED = [M for M in TRIED if M <= 2 * LONGEST][:: 4 if run.quick else 1]
longer = {
    f"M = {M}": {
        tried: float(segment_losses(XL[M], held_out, T, tried)[0].mean())
        for tried in TRIED
    }
    for M in memories
}
for name, curve in longer.items():
    listed = ", ".join(f"{M}: {x / np.log(2):.3f}" for M, x in curve.items())
    print(f"trained with {name}; read with {listed}")
results["longer"] = longer
memory_plots.draw_longer(longer, {f"M = {M}": M for M in memories})

# %% [markdown]
# What was trained without a memory gains by eight characters of one, of which
# it has never seen any. What was trained with one is lost without: it never
# learned what to do at a beginning. And more than a passage, some 140
# characters, is of no use here, as the next one is about something else. Where
# texts hang together for longer, longer memories are worth more.
#
# ## What it costs
#
# To ask of every character what it costs with M characters before it at least,
# a model without a memory reads a window of M + 1 for each single one: for this
# text M + 1 times the text. With a memory every character is read once, a
# segment at a time. Between the two lies a window that moves by a segment. The
# same weights, the same machine, the same context:

# %%
ROWS = 8  # that are read at once, in each way
READ = ROWS * T if run.quick else 4 * ROWS * T
plain = model.with_memory(0)
reader = model.with_memory(LONGEST, stateful_batch_size=ROWS)
stretch = np.resize(held_out, LONGEST + READ).astype("int32")


def timed(read):
    """Returns seconds for a character, the median of three runs."""
    read()
    taken = []
    for _ in range(3):
        begin = time.perf_counter()
        read()
        taken.append(time.perf_counter() - begin)
    return sorted(taken)[1] / READ


def with_memory():
    """Reads each character once, in rows that go on."""
    lines = stretch[LONGEST:].reshape(ROWS, -1)
    starts = np.zeros((ROWS, T), "int32")
    for start in range(0, lines.shape[1], T):
        ids = lines[:, start : start + T]
        reader.predict_on_batch({"token_ids": ids, "document_starts": starts})


def by_window(step):
    """Reads a window of `step` characters and M before for each `step`."""
    ends = np.arange(LONGEST + step, LONGEST + READ + 1, step)
    windows = stretch[ends[:, None] + np.arange(-LONGEST - step, 0)]
    for start in range(0, len(windows), ROWS):
        plain.predict_on_batch(windows[start : start + ROWS])


costs = {
    "with a memory": timed(with_memory),
    f"a window for every {T}": timed(lambda: by_window(T)),
    "a window for every one": timed(lambda: by_window(1)),
}
for name, seconds in costs.items():
    ratio = seconds / costs["with a memory"]
    print(
        f"{name:<24} {1e6 * seconds:9,.0f} µs a character, {ratio:6.1f} times"
    )
results["seconds a character"] = costs

# %% [markdown]
# The paper measures this at attention lengths of 800 to 3,800 on a GPU, and
# finds 363 to 1,874 times (its table 9).
#
# ## Writing
#
# Generation goes through the same memory, one character at a time:

# %%
writer = model.with_memory(LONGEST)
line = table.decode(held_out[: 3 * T])
prompt = table.encode(line[: line.rfind(" ") + 1] or line)
written = writer.generate(
    [prompt],
    T if run.quick else 6 * T,
    strategy=Sampling(temperature=0.8, seed=run.seed),
    verbose=0,
).tokens[0, 0]
print(table.decode(prompt) + " | " + table.decode(written))

# %% [markdown]
# ## What should hold
#
# With the settings of this page:

# %%
if WHOLE:
    found = [results["bits"][f"M = {M}"] for M in memories]
    assert found[-1] < found[0] - 0.05
    first = {name: losses[0] for name, losses in by_place.items()}
    assert first[f"M = {LONGEST}"] < first["M = 0"] - 1
    assert costs["a window for every one"] > 10 * costs["with a memory"]

# %% [markdown]
# ## Keeping it

# %%
writer.save(run.out / "model.keras")
results["settings"] = {k: str(v) for k, v in run._asdict().items()}
results["parameters"] = {
    "Transformer-XL": COUNT,
    "GPT": int(gpt.count_params()),
}
results["minutes"] = {name: log.seconds / 60 for name, log in logs.items()}
(run.out / "results.json").write_text(
    json.dumps(results, indent=1, ensure_ascii=False), encoding="utf-8"
)
for backup in backups:
    backup.remove()
program = ".venv/bin/python tutorials/transformer_xl.py"
print(f"""
The model with the longest memory is in {run.out / "model.keras"}, all figures
are in {run.out / "results.json"}.

What to try next, with {program} behind it:
  DATA=text.txt      learn from a text of your own, with memories to 256
  MEMORIES=0,64,512  other memories
  SEGMENT=8          short segments, where a memory matters most""")

# %% [markdown]
# ## Exercises
#
# **1.** Fill in. With L blocks, a memory of M and segments of T, a key or value
# of a block has the shape ___ for a row, and attention in one head ___ scores.
# The last character of a segment can depend on one that stands ___ before it.
#
# <details markdown>
# <summary>Answer</summary>
#
# (M + T, N, H); T (M + T); L M + T - 1 where T divides M.
#
# </details>
#
# **2.** The memory of a block holds what came *into* it, not its keys and
# values. What is computed anew in every segment because of that, and what would
# one have to give up to keep the keys themselves?
#
# <details markdown>
# <summary>Answer</summary>
#
# Keys and values of the remembered characters, M products with two matrices. In
# training the matrices change with each step, and kept keys would be those of
# older matrices; in evaluation nothing stands in the way, and generation keeps
# them.
#
# </details>
#
# **3.** A memory of 0 is no memory. Why is *M = 0* hardly worse than GPT,
# though GPT has seen its blocks cut at other places in each pass?
#
# <details markdown>
# <summary>Answer</summary>
#
# So has the other: `token_streams` begins each pass at another character, and
# segments fall elsewhere. What differs is how distances are told, and that is
# worth little in blocks this short.
#
# </details>
