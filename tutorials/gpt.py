# %% [markdown]
# # GPT, from an empty file to samples
#
# A language model says of every character which one comes next. That is all it
# learns, and all that it needs to write. Does it do better than counting?
#
# ![A text that the model never saw; the redder a character, the less the model
# expected it](gpt-3.png)
#
# The redder a character, the less it was expected. What is hard about a word is
# its beginning.
#
# You will
#
# - **count**: what came after the same four characters before? A model without
#   any learning, and not an easy one to beat;
# - write **GPT** in NumPy, in some forty lines, and see that it agrees with the
#   library's;
# - see in the open that it **cannot look ahead**;
# - train it on blocks of a text (Radford et al. 2018, 2019), and see **what its
#   context is good for**, place by place;
# - sample, and turn the two knobs: **temperature** and **top-p**.
#
# On two cores nine minutes at most: the run of this page had one. The text is
# written by a grammar; nothing is downloaded. As a program, on any backend:
#
#     KERAS_BACKEND=torch .venv/bin/python tutorials/gpt.py
#
# With `DATA=` it learns from a text of yours; what it makes of Shakespeare is
# [here](../../results/language_modeling.md). With `MODEL=` a saved model goes on with
# what you type:
#
#     DATA=input.txt .venv/bin/python tutorials/gpt.py
#     MODEL=runs/gpt .venv/bin/python tutorials/gpt.py

# %%
import json

import character_losses
import continuation
import corpora
import gpt_plots
import gpt_settings
import keras
import numpy as np
import program_settings
import sample_shares
from character_table import CharacterTable
from matplotlib.figure import Figure
from passage_text import passage_text
from training_log import TrainingLog
from witten_bell import WittenBell

from keras_attn.decoding import Sampling
from keras_attn.layers import RotaryPosition
from keras_attn.models import GPT
from keras_attn.text import token_blocks
from keras_attn.training import SequenceCrossentropy, TrainingBackup

try:
    run = gpt_settings.read()
    if run.model:
        continuation.run(run.model, run.input)
        raise SystemExit(0)
    if run.data:
        text = "\n".join(corpora.read_lines(run.data)) + "\n"
    else:
        text = passage_text(run.passages, run.seed)
    cut = int(0.9 * len(text))
    if len(text) - cut <= run.context:
        raise ValueError(
            "DATA must be a text of more than ten times CONTEXT characters. "
            f"Received: {len(text):,}"
        )
except ValueError as error:
    program_settings.explain_and_leave("gpt", error)

keras.utils.set_random_seed(run.seed)
run.out.mkdir(parents=True, exist_ok=True)
results = {"backend": keras.backend.backend()}
# What is asserted of trained models is so with the settings of this page.
WHOLE = gpt_settings.is_default(run)
print(f"Keras {keras.__version__} on {keras.backend.backend()}")

# %% [markdown]
# ## The text, and its tokens
#
# The first nine tenths are learned from, the last is kept for questions. A
# token is a character. (Subwords make sequences shorter and tables larger;
# `keras_attn.text.BytePairTokenizer` is GPT-2's.)

# %%
table = CharacterTable.of_text(text)
V, T, B = table.size, run.context, run.batch
learned, held_out = table.encode(text)[:cut], table.encode(text)[cut:]
print(f"{len(learned):,} characters to learn from, {len(held_out):,} kept")
print(f"V = {V}: {table.characters!r}")
print(text[:300])

# %% [markdown]
# ## Counting
#
# How often did *e* come after *th*? Divided by how often *th* came, this is a
# language model: a table. Where a beginning is rare its counts are mixed with
# those of the shorter one (Witten and Bell 1991):
#
# $$p_n(c \mid h) = \frac{\#(hc) + f(h)\, p_{n-1}(c \mid h')}{\#(h) + f(h)},$$
#
# with h the n - 1 characters before, $h'$ the same without the first, f(h) how
# many different characters came after h. The loss is
# $-\frac1N \sum_i \log p(x_i \mid x_{<i})$, in nats a character.

# %%
ORDERS = 7 if V**7 < 2**63 else 5
counting = WittenBell(learned, V, ORDERS).losses(held_out).mean(axis=1)
for n, loss in enumerate(counting, 1):
    print(f"{n}-gram: {loss:.3f}")
best_n = 1 + int(counting.argmin())
results["counting"] = counting.tolist()

# %% [markdown]
# A table does not go far. Each character more in h divides the same text among
# more rows, until a row has been met once or never. It cannot know that two
# beginnings are alike, and nothing that was said ten words ago can matter.
#
# ## GPT
#
# A Transformer's decoder without anything to translate: embeddings, blocks that
# look back and think, and the embedding's matrix once more to name the next
# token. With pre-norm blocks, as in GPT-2, and N heads,
#
# $$h = E[x], \qquad h \leftarrow h + \mathrm{Attention}(\mathrm{LN}(h)),
# \qquad h \leftarrow h + W_2\, \mathrm{gelu}(W_1 \mathrm{LN}(h)),$$
#
# $$\mathrm{logits} = \mathrm{LN}(h)\, E^\top .$$
#
# GPT-2 adds a learned vector of its place to each embedding; `ROTARY=0` does.
# This page turns queries and keys by their place instead (Su et al. 2021,
# <https://arxiv.org/abs/2104.09864>).


# %%
def build():
    """Makes the model, untrained."""
    places = (
        {"position_embedding": None, "attention_position": RotaryPosition()}
        if run.rotary
        else {"position_embedding": "learned"}
    )
    return GPT(
        V,
        run.layers,
        run.heads,
        run.width,
        dropout=run.dropout,
        attention_dropout=0.0,
        # Rotary positions have no table that could come to its end.
        max_sequence_length=None if run.rotary else T,
        # Every id is a character: none is padding, none begins or ends a text.
        pad_id=None,
        start_id=None,
        end_id=None,
        **places,
    )


model = build()
print(f"{model.count_params():,} parameters")

# %% [markdown]
# ### The same in NumPy
#
# Every line is one of the equations. It reads the weights by their names, so
# here is also what they are called and shaped.


# %%
def forward(ids, w, layers):
    """Returns the logits (T, V) of ids (T,), from weights by name."""

    def norm(x, name):
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(
            x.var(-1, keepdims=True) + 1e-5
        )
        return x * w[f"{name}/gamma"] + w[f"{name}/beta"]

    def gelu(x):
        return x / 2 * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3)))

    def turned(x):  # (N, T, H), each pair of features by its own angle
        half = x.shape[-1] // 2
        angle = np.arange(x.shape[1])[:, None] / 10000 ** (
            np.arange(half) / half
        )
        a, b = x[..., :half], x[..., half:]
        sin, cos = np.sin(angle), np.cos(angle)
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

    def heads(x, name):  # (T, D) -> (N, T, H)
        kernel, bias = w[f"{name}/kernel"], w[f"{name}/bias"]
        return np.einsum("td,dnh->nth", x, kernel) + bias[:, None]

    E = w["token_embedding/table/embeddings"]  # (V, D)
    h = E[ids]
    if not run.rotary:
        h = h + w["positions/table/embeddings"][: len(ids)]
    future = np.triu(np.ones((len(ids), len(ids)), bool), 1)
    for block in (f"block_{number}" for number in range(layers)):
        x = norm(h, f"{block}/around_attention/norm")
        att = f"{block}/self_attention"
        q, k, v = (heads(x, f"{att}/{a}") for a in ("query", "key", "value"))
        if run.rotary:
            q, k = turned(q), turned(k)
        scores = q @ k.swapaxes(1, 2) / q.shape[-1] ** 0.5  # (N, T, T)
        scores[:, future] = -np.inf
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        kernel = w[f"{att}/attention_output/kernel"]  # (N, H, D)
        h = h + np.einsum("nth,nhd->td", weights @ v, kernel)
        h = h + w[f"{att}/attention_output/bias"]
        x = norm(h, f"{block}/around_feed_forward/norm")
        inner, outer = (f"{block}/feed_forward/{a}" for a in ("inner", "outer"))
        x = gelu(x @ w[f"{inner}/kernel"] + w[f"{inner}/bias"])
        h = h + x @ w[f"{outer}/kernel"] + w[f"{outer}/bias"]
    return norm(h, "norm") @ E.T


sentence = held_out[: min(T, 40)]
logits = keras.ops.convert_to_numpy(model(sentence[None]))[0]
assert logits.shape == (len(sentence), V)
by_name = {
    w.path: keras.ops.convert_to_numpy(w).astype("float64")
    for w in model.weights
}
by_hand = forward(sentence, by_name, run.layers)
difference = np.abs(by_hand - logits).max()
print(f"largest difference of {logits.size:,} logits: {difference:.1e}")
assert difference < 1e-4

# %% [markdown]
# ### It cannot look ahead
#
# If it could, it would read the answer. Change a character, and see whose
# logits change: its own and later ones, none before.

# %% alt="Which logits change with a character: its own, and later ones"
changed = np.repeat(sentence[None], len(sentence) + 1, axis=0)
diagonal = np.arange(len(sentence))
changed[diagonal, diagonal] = (sentence + 1) % V
found = keras.ops.convert_to_numpy(model(changed))
moved = np.abs(found[:-1] - found[-1]).max(-1)  # (changed, looked at)
assert (moved[np.tril_indices(len(sentence), -1)] == 0).all()
assert (moved[np.triu_indices(len(sentence))] > 0).all()
figure = Figure(figsize=(4.2, 3.4), layout="constrained")
panel = figure.subplots()
panel.imshow(moved > 0, cmap="Blues", vmax=1.5)
panel.set(xlabel="logits at this place", ylabel="character that is changed")
figure

# %% [markdown]
# ## Training
#
# A batch is B blocks of T characters from anywhere in the text; the labels are
# the same moved by one. So a block asks T questions at once, each with another
# length of context. AdamW, warmup, then half a cosine down to a twentieth.
# Whatever kills the program, the same command goes on from the last pass;
# `FRESH=1` starts anew.


# %%
class StopAt(keras.callbacks.Callback):
    """Ends a training after so many steps."""

    def __init__(self, steps):
        super().__init__()
        self.steps, self.done = steps, 0

    def on_train_batch_end(self, batch, logs=None):
        """Counts."""
        self.done += 1
        if self.done >= self.steps:
            self.model.stop_training = True

    def get_state(self):
        """Returns what a backup keeps."""
        return {"done": self.done}

    def set_state(self, state):
        """Goes on from it."""
        self.done = state["done"]


blocks = token_blocks(learned, T, B, seed=run.seed)
inputs, labels = next(iter(blocks.as_numpy_iterator()))
assert inputs.shape == labels.shape == (B, T)
assert (inputs[:, 1:] == labels[:, :-1]).all()
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
log = TrainingLog(run.minutes, int(blocks.cardinality()) * B * T)
try:
    backup = TrainingBackup(
        run.out / "backup",
        [log, StopAt(run.steps)],
        data=blocks,
        settings=program_settings.identity(run, "samples")
        | {"backend": keras.backend.backend()},
        resume=not run.fresh,
    )
except ValueError as error:
    program_settings.explain_and_leave("gpt", f"{error}. FRESH=1 starts anew.")
passes = -(-run.steps // int(blocks.cardinality()))
model.fit(
    blocks,
    epochs=passes,
    shuffle=False,  # the blocks do it
    callbacks=[backup],
    verbose=2,
)
print(
    f"{len(log.losses):,} steps of {B * T:,} characters in "
    f"{log.seconds / 60:.1f} min, "
    f"{log.tokens_per_second(int(blocks.cardinality())):,.0f} a second"
)
results |= {"steps": len(log.losses), "seconds": log.seconds}

# %% [markdown]
# ## Better than counting?
#
# Of each kept character what it costs, in blocks that lie end to end: a
# character at the beginning of its block has next to nothing before it. The
# second figure is of characters with half a block before them at least.

# %%
losses = character_losses.character_losses(model, held_out, T)
assert losses.shape == (len(held_out) - 1,)
overlapping = character_losses.overlapping_losses(model, held_out, T)
results |= {
    "loss": float(losses.mean()),
    "loss_overlapping": float(overlapping.mean()),
    "losses_of_training": log.losses,
}
print(f"GPT, all characters:          {losses.mean():.3f} nats")
print(f"GPT, half a block before:     {overlapping.mean():.3f}")
print(f"best table, the {best_n}-gram:       {counting.min():.3f}")

# %% alt="Loss of the training and of the tables; loss by place in the block"
by_place = np.array([losses[place::T].mean() for place in range(T)])
figure = Figure(figsize=(9.5, 3.4), layout="constrained")
left, right = figure.subplots(1, 2)
width = max(1, len(log.losses) // 100)
smooth = np.convolve(log.losses, np.ones(width) / width, "valid")
left.plot(np.arange(len(smooth)) + width, smooth, label="GPT, in training")
left.axhline(losses.mean(), color="C0", linestyle="--", label="GPT, kept text")
for n in sorted({2, 4, best_n}):
    left.axhline(counting[n - 1], color="0.6", linestyle=":")
    left.text(
        len(smooth), counting[n - 1], f"{n}-gram", ha="right", va="bottom"
    )
left.set(xlabel="step", ylabel="nats a character", ylim=(0, 3.5))
left.legend()
right.plot(np.arange(T), by_place)
right.axhline(counting.min(), color="0.6", linestyle=":")
right.text(T - 1, counting.min(), f"{best_n}-gram", ha="right", va="bottom")
right.set(
    xlabel="characters before it in its block", ylabel="nats", ylim=(0, None)
)
figure

# %% [markdown]
# The right picture is what attention is good for. Where a block begins, GPT
# knows less than the table, which looks at its few characters wherever they
# stand. A word later it knows as much, and from there on it knows more: who was
# said to do what, and that the next sentence will do it too. A table that looks
# as far back has met next to nothing twice.
#
# ## What is hard to guess

# %% alt="Kept text, each character on the colour of what it cost the model"
SHOWN = min(640, len(losses))
# The text from its second character on: the first one is nobody's label.
gpt_plots.draw_surprise(table.decode(held_out[1 : SHOWN + 1]), losses[:SHOWN])

# %% [markdown]
# Beginnings of words are red, ends are pale: once *gran* is there, *d* costs
# nothing, then *father* or *mother* costs one character, and the rest nothing.
#
# ## Writing
#
# The model gives probabilities; somebody has to choose. Always the likeliest
# one writes the same few sentences. Drawing from the probabilities as they are
# now and then takes one of the many that are unlikely, and goes on from there.
# Two knobs lie between:
#
# $$p_v \propto \exp(\mathrm{logit}_v / \tau), \qquad
# \text{top-}p\text{: of these the fewest likeliest whose sum is } p .$$

# %% alt="Next characters at three temperatures; pale is what top-p drops"
TEMPERATURES, NUCLEUS = (0.5, 1.0, 2.0), 0.9
kept_line = table.decode(held_out[:T])
# The next character begins a word, if there are words.
prompt = kept_line[: kept_line.find(" ", T // 3) + 1 or T // 2]
last = keras.ops.convert_to_numpy(model(table.encode(prompt)[None]))[0, -1]
rows = {}
for temperature in TEMPERATURES:
    scaled = np.exp((last - last.max()) / temperature)
    rows[f"τ = {temperature:g}"] = scaled / scaled.sum()
print("behind:", prompt)
gpt_plots.draw_temperatures(rows, table.characters, NUCLEUS)

# %% [markdown]
# The temperature changes all ratios; top-p cuts the tail, and keeps few where
# the model is sure and many where it is not. Along a text that it has just
# written:

# %% alt="Characters that top-p keeps: many where a word begins, one inside"
strategy = Sampling(top_p=NUCLEUS, seed=run.seed)
begin = held_out[: T // 4]
added = continuation.continued(model, [begin], T // 2, T, strategy)[0]
whole = np.concatenate([begin, added])[-T:]
p = np.exp(
    keras.ops.convert_to_numpy(
        keras.ops.log_softmax(model(whole[None, :-1])[0])
    )
)
kept = gpt_plots.in_nucleus(p, NUCLEUS).sum(-1)
gpt_plots.draw_choices(table.decode(whole[1:]), kept, V)

# %% [markdown]
# ### Samples

# %%
STRATEGIES = {
    "τ = 0.25": {"temperature": 0.25},
    "τ = 0.7": {"temperature": 0.7},
    "τ = 1": {},
    "τ = 1.5": {"temperature": 1.5},
    "τ = 1.5, top-p 0.9": {"temperature": 1.5, "top_p": 0.9},
}
for name, knobs in list(STRATEGIES.items())[: 1 if run.quick else None]:
    strategy = Sampling(seed=run.seed, **knobs)
    ids = continuation.continued(
        model, [table.encode("\n")], 2 * T, T, strategy
    )[0]
    print(f"--- {name}\n{table.decode(ids).strip()}\n")

# %% [markdown]
# ### Counted
#
# How many of the words exist, that is, stand in the text? How much is repeated?
# Turning either knob down makes more words exist and says the same again.

# %% alt="Words that exist against variety, for temperature and for top-p"
known = set(sample_shares.words_of(text[:cut]))
CURVES = {
    "temperature": [("temperature", t) for t in (0.25, 0.5, 0.75, 1.0, 1.5)],
    "top-p, at τ = 1": [("top_p", p) for p in (0.3, 0.6, 0.8, 0.9, 1.0)],
}
curves, by_knob = {}, {}
for name, knobs in CURVES.items():
    curves[name] = []
    for knob, value in knobs[: 1 if run.quick else None]:
        strategy = Sampling(seed=run.seed, **{knob: value})
        # Rows that are equal get equal answers: each begins elsewhere.
        starts = held_out[: run.samples * 4].reshape(run.samples, 4)
        ids = continuation.continued(model, list(starts), T, T, strategy)
        texts = [table.decode(row) for row in ids]
        share = sample_shares.real_words(texts, known)
        different = sample_shares.variety(texts)
        curves[name].append((f"{value:g}", different, share))
        by_knob[knob, value] = texts
        print(
            f"{knob:<11} = {value:<4g} words that exist {share:6.1%}, "
            f"different stretches {different:6.1%}"
        )
results["knobs"] = curves
gpt_plots.draw_trade(curves)

# %% [markdown]
# Does it write, or recite? Of all stretches of thirty characters, so many stand
# in the text that it learned from:

# %%
for (knob, value), texts in by_knob.items():
    share = sample_shares.copied(texts, text[:cut], 30)
    results.setdefault("copied", {})[f"{knob}={value:g}"] = share
    print(f"{knob:<11} = {value:<4g} {share:6.1%}")
people = sample_shares.copied([text[cut : cut + 4000]], text[:cut], 30)
print(f"the kept text itself {people:6.1%}")

# %% [markdown]
# ## What should hold
#
# With the settings of this page:

# %%
if WHOLE:
    assert losses.mean() < counting.min()
    assert by_place[0] > by_place[4] > by_place[-32:].mean()
    assert by_place[-32:].mean() < counting.min() - 0.03
    shares = {knob: share for knob, _, share in curves["temperature"]}
    assert shares["0.25"] > 0.9 and shares["1.5"] < shares["0.75"]
    varieties = {
        knob: different for knob, different, _ in curves["temperature"]
    }
    assert varieties["0.25"] < varieties["1"]

# %% [markdown]
# ## Keeping it

# %%
continuation.save(run.out, model, table, T)
results["settings"] = {k: str(v) for k, v in run._asdict().items()}
(run.out / "results.json").write_text(
    json.dumps(results, indent=1, ensure_ascii=False), encoding="utf-8"
)
backup.remove()
program = ".venv/bin/python tutorials/gpt.py"
print(f"""
The model is in {run.out / "model.keras"}, its characters beside it, and all
figures in {run.out / "results.json"}.

What to try next, with {program} behind it:
  MODEL={run.out}                  go on with what you type
  MODEL={run.out} INPUT=lines.txt  go on with each line of a file
  DATA=text.txt                    learn from a text of your own, 45 minutes
  ROTARY=0                         a learned table of positions, as GPT-2""")

# %% [markdown]
# ## Exercises
#
# **1.** Fill in. A batch of B blocks of T characters asks ___ questions. In a
# block of 128, the model has ___ characters before the first question and ___
# before the last. The weights of one head have the shape ___, and ___ of their
# T² entries may be more than 0.
#
# <details markdown>
# <summary>Answer</summary>
#
# B T. One before the first (the question is what comes *behind* a character),
# 128 before the last. (T, T) a block; T (T + 1) / 2.
#
# </details>
#
# **2.** The logits are $\mathrm{LN}(h) E^\top$, with the E that reads. How many
# parameters does that save here, and how many in GPT-2, of 50,257 tokens and
# width 768? What would it mean for two characters to have nearly the same row
# of E?
#
# <details markdown>
# <summary>Answer</summary>
#
# V D, here a few thousand; 38.6 million, a third as many as its 124 million.
# They would be read as nearly the same, and would be nearly equally likely
# everywhere: fine for *3* and *4*, not for *a* and *b*.
#
# </details>
#
# **3.** Why is a temperature of 1.5 with top-p 0.9 readable, where 1.5 alone is
# not? At which places of a word does top-p change nothing?
#
# <details markdown>
# <summary>Answer</summary>
#
# At 1.5 each of the many unlikely characters is still unlikely, but together
# they break one word in eighteen, and one is enough to leave all known
# words. Top-p drops them all, and keeps what 1.5 does to the likely ones. Where
# the model is sure, one character has more than 0.9 and only that one is kept,
# at any temperature that leaves it there.
#
# </details>
