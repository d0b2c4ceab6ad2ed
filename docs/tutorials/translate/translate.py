# %% [markdown]
# # A Transformer learns to translate
#
# It has read sentences about cats and sentences about large things, but never
# one about a large cat. Can it translate one, and at which word does it look
# while it writes *gato*?
#
# ![Weights of the decoder's last cross-attention, one map for each
# head](translate-4.png)
#
# That is where it looked, drawn further down. You will build the
# encoder-decoder Transformer of *Attention Is All You Need* (Vaswani et al.
# 2017, <https://arxiv.org/abs/1706.03762>) and
#
# - see how sentences become **batches**, and what the decoder is given;
# - write **attention** and the **loss** in NumPy, and find the library's
#   numbers;
# - see that no score **depends** on a later token, by taking those away;
# - **train** it with `model.fit` and the paper's warmup;
# - **translate** sentences that it never saw, and score them with sacreBLEU;
# - look at what it **attends** to.
#
# About five minutes on two cores. With nothing else said the data is Spanish
# from a phrase grammar, made up on the way; nothing is downloaded:
#
#     make translate
#     KERAS_BACKEND=jax make translate
#
# With `DATA=` it learns from your own corpus, one tab-separated file or two
# parallel ones (plain, `.gz`, or in a `.zip`):
#
#     make translate DATA=english.txt,spanish.txt MINUTES=60
#
# and with `MODEL=` a saved model translates the lines of a file, or what you
# type:
#
#     make translate MODEL=runs/translate INPUT=lines.txt
#     make translate MODEL=runs/translate
#
# What else can be set stands in `tutorials/translate_settings.py`, with other
# defaults for a corpus; one block less, for instance, in a folder of its own:
#
#     make translate LAYERS=1 OUT=runs/one-layer
#
# The first cell imports what the program needs and reads its settings; the
# subject begins under *Sentences*.

# %%
import json
import time

import corpora
import keras
import numpy as np
import phrase_grammar
import program_settings
import translate_lines
import translate_settings
from blank_translations import count_blanks
from grid_plots import draw_grids
from matplotlib.figure import Figure
from training_log import TrainingLog
from translation import bleu, translate

from keras_attn.explain import plot_attention
from keras_attn.models import Transformer
from keras_attn.ops import attend, capture_weights
from keras_attn.text import SubwordTokenizer, token_batches
from keras_attn.training import (
    CheckpointAverage,
    SequenceCrossentropy,
    TokenAccuracy,
    TrainingBackup,
    WarmupSchedule,
)

try:
    run = translate_settings.read_settings()
    if run.model:
        translate_lines.run(run.model, run.input)
        raise SystemExit(0)
    pairs = corpora.read_pairs(run.data) if run.data else None
except ValueError as error:
    program_settings.explain_and_leave("translate", error)

# What is asserted of the trained model is so with the settings of this page.
WHOLE = translate_settings.is_default(run)
to_numpy = keras.ops.convert_to_numpy
keras.utils.set_random_seed(run.seed)
run.out.mkdir(parents=True, exist_ok=True)
print(f"Keras {keras.__version__} on {keras.backend.backend()}")

# %% [markdown]
# ## Sentences
#
# The phrase grammar writes English sentences beside their one right Spanish
# translation. Some combinations of words are held out of training entirely:
# the model sees *cat* and it sees *large*, but never a large cat. To translate
# one it must have learned what the words do, not the sentences.
#
# A real corpus is split by the hash of the source sentence. One English
# sentence often has several translations; split by line, a sentence of the
# test set would also be a sentence of the training set.

# %%
if pairs is None:
    splits = phrase_grammar.phrase_splits()
    train, validation, test = splits.train, splits.validation, splits.test
    showcase = [english for english, _ in phrase_grammar.SHOWCASE]
else:
    train, validation, test = corpora.split_by_source(pairs)
    showcase = []
if run.quick:
    shortest = sorted(test, key=lambda pair: len(pair[0]))
    train, validation, test = train[:400], validation[:40], shortest[:20]
sources, references = corpora.group_references(test)
print(f"{len(train):,} training pairs, {len(sources):,} test sentences")
for source, target in train[:3]:
    print(f"  {source}  ->  {target}")

# %% [markdown]
# ## Subwords
#
# A vocabulary of words ends where the corpus ends. Byte-pair encoding (Sennrich
# et al. 2016, <https://arxiv.org/abs/1508.07909>) starts from characters and
# merges the most frequent neighbours; common words become one token, rare ones
# several, and what is left over is spelt in bytes, so that nothing is unknown.
# The sign ▁ is where a word begins.
# Source and target share one vocabulary, and the model one matrix for it.

# %%
tokenizer = SubwordTokenizer.train_from_lines(
    (sentence for pair in train for sentence in pair),
    vocabulary_size=run.vocabulary,
)
example = showcase[0] if showcase else train[0][0]
print(tokenizer.vocabulary_size, "subwords;", example)
print(tokenizer.tokens(example), tokenizer.encode(example))

# %% [markdown]
# ## Batches
#
# Sentences of like length share a batch, each bucket of lengths has one shape,
# and every batch holds about the same number of tokens. A compiled backend then
# compiles a few programs, not one for every length. The report says of each
# shape how many pairs a batch has: 78 x (13, 13) are 78 pairs of up to 13
# tokens on either side, about a thousand on each.

# %%
batches, validation_batches = (
    token_batches(
        [source for source, _ in part],
        [target for _, target in part],
        tokenizer,
        tokens_per_batch=run.tokens,
        max_length=run.longest,
        buckets=buckets,
        shuffle=shuffle,
        seed=run.seed,
    )
    for part, buckets, shuffle in (
        (train, run.buckets, True),
        (validation[:2000], max(1, run.buckets // 2), False),
    )
)
print(batches.report)

# %% [markdown]
# B sentences of up to S source tokens are one array, and their translations of
# up to T tokens two: what the decoder is given begins with a start token, and
# what it shall say is the same, one step further. So every token is guessed
# from the right ones before it, all at once ("teacher forcing"). The signs
# `<s>` and `</s>` are start and end. In the picture, a row is a sentence: those
# of one batch are of like length, and still a third of what is computed is
# padding.

# %% alt="One batch, source and target: tokens, and the padding behind them"
(source_ids, target_ids), labels = next(batches.take(1).as_numpy_iterator())
B, S = source_ids.shape
T = target_ids.shape[1]
assert target_ids.shape == labels.shape == (B, T)
there = labels[:, 0] != tokenizer.pad_id  # the last batch is filled up
assert (target_ids[there, 0] == tokenizer.start_id).all()
assert (np.sum(labels == tokenizer.end_id, axis=1) == there).all()
said = labels[:, :-1] != tokenizer.end_id
assert (
    target_ids[:, 1:] == np.where(said, labels[:, :-1], tokenizer.pad_id)
).all()
first = " ".join(tokenizer.tokens(tokenizer.decode(labels[there][0])))
print(f"given:  <s> {first}")
print(f"to say: {first} </s>")
draw_grids(
    {
        f"source {source_ids.shape}": source_ids[:20] != tokenizer.pad_id,
        f"target {target_ids.shape}": target_ids[:20] != tokenizer.pad_id,
    },
    ylabel="sentence (20 of them)",
    xlabel="token; white is padding",
)

# %% [markdown]
# ## The model
#
# The encoder turns the source into a memory, one vector a token; the decoder
# reads the target so far and the memory, and scores the next token. All of it
# rests on one equation,
#
# $$\mathrm{Attention}(Q, K, V) =
# \mathrm{softmax}\left(\frac{QK^\top}{\sqrt{H}}\right) V$$
#
# for T queries (T, H), S keys and S values (S, H), H features each. (All
# letters of shapes are in [one table](../../architecture.md#shapes).)


# %%
def softmax(scores):
    """Returns chances from scores, along the last axis."""
    odds = np.exp(scores - scores.max(-1, keepdims=True))
    return odds / odds.sum(-1, keepdims=True)


def attention(query, key, value):
    """Returns (T, H): what T queries (T, H) get from S values (S, H)."""
    weights = softmax(query @ key.T / np.sqrt(query.shape[-1]))
    assert weights.shape == (len(query), len(key))
    return weights @ value


generator = np.random.default_rng(run.seed)
query, key, value = (
    generator.normal(size=(rows, 64)).astype("float32") for rows in (5, 7, 7)
)
# The library has an axis for the batch, and one for the heads.
found = attend(*(x[None, :, None] for x in (query, key, value)))
assert found.shape == (1, 5, 1, 64)
np.testing.assert_allclose(
    to_numpy(found)[0, :, 0], attention(query, key, value), atol=1e-5
)
print("five queries, seven keys: the same numbers")

# %% [markdown]
# In the encoder, queries, keys and values come from the source; in the decoder,
# from the target so far, later tokens hidden; and in between, the target asks
# and the memory answers. [Encoder and decoder, block by
# block](../blocks/index.md) puts the model together from its parts; here it is
# one line.

# %%
model = Transformer(
    tokenizer.vocabulary_size,
    num_layers=run.layers,
    num_heads=max(1, run.width // 64),
    hidden_dim=run.width,
    intermediate_dim=4 * run.width,
    dropout=run.dropout,
    pad_id=tokenizer.pad_id,
    start_id=tokenizer.start_id,
    end_id=tokenizer.end_id,
)
print(f"{model.count_params():,} parameters")

# %% [markdown]
# If a score could depend on a later token, the model would learn to copy what
# it shall guess. Does it? Score one sentence again and again, as one batch: as
# it is; S times with one source token changed; T times with one target token
# changed; and T times with the target cut off behind each token. Row t of the
# picture says which tokens the scores of the t-th place depend on.

# %% alt="Scores depend on the target so far, and on all of the source"
source = np.array(tokenizer.encode(example))[:12]
target = np.array([tokenizer.start_id, *source[::-1][:7]])
S, T = len(source), len(target)
asked = np.tile(source, (1 + S + 2 * T, 1))
given = np.tile(target, (1 + S + 2 * T, 1))
by_source, by_target, cut = np.split(np.arange(1, 1 + S + 2 * T), [S, S + T])
other = tokenizer.vocabulary_size - 1
asked[by_source, np.arange(S)] = other
given[by_target, np.arange(T)] = other
given[cut] = np.where(np.tri(T), given[cut], tokenizer.pad_id)
scores = to_numpy(model.predict_on_batch((asked, given)))
assert scores.shape == (1 + S + 2 * T, T, tokenizer.vocabulary_size)
whole = scores[0]
for length, short in enumerate(scores[cut], 1):
    np.testing.assert_allclose(short[:length], whole[:length], atol=1e-4)
moved = np.abs(scores - whole).max(-1) > 1e-3
assert (moved[by_target].T == np.tri(T, dtype=bool)).all()
assert moved[by_source].all()
draw_grids(
    {"the target": moved[by_target].T, "the source": moved[by_source].T},
    ylabel="scores of the t-th place",
    xlabel="token that is changed",
)

# %% [markdown]
# ## Training
#
# The paper's learning rate rises linearly over w steps of warmup, then falls
# with the square root of the step $s$; D is the width of the model, and c a
# factor (`scale`), 1 in the paper:
#
# $$\mathrm{lr}(s) = c\, D^{-1/2} \min(s^{-1/2},\; s \cdot w^{-3/2}).$$

# %%
schedule = WarmupSchedule(run.width, run.warmup, run.scale)
step = np.arange(1, 4 * run.warmup)
rate = np.minimum(step**-0.5, step * run.warmup**-1.5) / np.sqrt(run.width)
# Keras counts the steps from 0.
np.testing.assert_allclose(
    to_numpy(schedule(step - 1)), run.scale * rate, rtol=1e-4
)
print(f"highest at step {run.warmup}: {run.scale * rate.max():.4f}")

# %% [markdown]
# The loss is the cross-entropy against smoothed labels, a tenth of the mass
# spread over the V tokens of the vocabulary:
#
# $$\mathrm{loss} = -\sum_v q_v \log p_v, \quad
# q_v = 0.9\,[v = y] + \tfrac{0.1}{V}, \quad p = \mathrm{softmax}(z),$$
#
# where y is the right token, [v = y] is 1 for it and 0 for all others, and z
# are the V scores of the model. Padding counts neither in the loss nor in the
# accuracy. The unit is the nat, a logarithm to the base e. Who guesses evenly
# loses ln V; a model with random scores a little more, since it is sure of what
# it made up.

# %%
loss = SequenceCrossentropy(label_smoothing=0.1)
V = tokenizer.vocabulary_size
rows = (source_ids[:4], target_ids[:4])
z = to_numpy(model.predict_on_batch(rows))
q = 0.1 / V + 0.9 * np.eye(V)[labels[:4]]
assert z.shape == q.shape == (4, labels.shape[1], V)
each = -np.sum(q * np.log(softmax(z)), axis=-1)
each = each[labels[:4] != tokenizer.pad_id]
np.testing.assert_allclose(float(loss(labels[:4], z)), each.mean(), rtol=1e-4)
print(
    f"before training: {each.mean():.2f} nats a token; ln V = {np.log(V):.2f}"
)

# %% [markdown]
# At the end the weights are averaged over the last few snapshots, copies taken
# some times an epoch, as in the paper's section 6.1.
#
# Every few hundred steps a backup is written. Whatever kills the program, the
# same command goes on from there and ends with the same weights; `FRESH=1`
# starts anew. Training ends after `MINUTES=`, 3.8 if nothing is said, wherever
# it is: your machine takes more steps or fewer than this one, and your numbers
# differ a little.

# %%
model.compile(
    optimizer=keras.optimizers.Adam(schedule, beta_2=0.98, epsilon=1e-9),
    loss=loss,
    metrics=[TokenAccuracy()],
)
steps = batches.report.batches
log = TrainingLog(run.minutes, batches.report.target_tokens)
average = CheckpointAverage(
    num_checkpoints=5, save_freq=max(1, steps // run.snapshots)
)
try:
    backup = TrainingBackup(
        run.out / "backup",
        [log, average],
        save_freq=run.backup,
        data=batches,
        settings=translate_settings.identity(run)
        | {"backend": keras.backend.backend()}
        | {"sentences": corpora.fingerprint(train)},
        resume=not run.fresh,
    )
except ValueError as error:
    program_settings.explain_and_leave(
        "translate", f"{error}. FRESH=1 starts anew."
    )
model.fit(
    batches,
    epochs=run.epochs,
    shuffle=False,  # the dataset does it
    validation_data=validation_batches,
    callbacks=[backup],
)
speed = log.tokens_per_second(steps)
print(
    f"{len(log.losses):,} steps in {log.seconds / 60:.1f} minutes, "
    f"{speed:,.0f} target tokens/s"
)

# %% [markdown]
# ## Translating what it never saw
#
# Greedy decoding takes the likeliest token, feeds it back, and stops at the end
# token. Keys and values of the source are computed once, those of the target
# are kept from step to step. BLEU (Papineni et al. 2002,
# <https://aclanthology.org/P02-1040/>) counts the runs of one to four words
# that translations share with their references, and takes off for what is too
# short: 100 is word for word.

# %%
started = time.monotonic()
translations = translate(model, tokenizer, [*sources, *showcase], run.longest)
print(f"{len(translations):,} sentences in {time.monotonic() - started:.1f} s")
translations, shown = translations[: len(sources)], translations[len(sources) :]
score = bleu(translations, references)
every = 500 if run.data else max(1, len(sources) // 4)
samples = [
    (source, translation, group)
    for source, translation, group in zip(
        sources[::every],
        translations[::every],
        references[::every],
        strict=True,
    )
]
if showcase:
    answers = dict(phrase_grammar.SHOWCASE)
    samples = [
        (source, translation, [answers[source]])
        for source, translation in zip(showcase, shown, strict=True)
    ] + samples
for source, translation, group in samples:
    print(f"  {source}\n    -> {translation}")
    if translation not in group:
        print(f"       (reference: {group[0]})")
print(f"sacreBLEU: {score}")
print(f"BLEU {score.score:.2f}")
print(count_blanks(sources, translations), end="")

# %% [markdown]
# A corpus often holds different sources with the same target. The score on
# sources none of whose references is a training target shows what the model
# does with sentences that are new on both sides. With the grammar all are, and
# nothing is printed.
#
# The grammar writes in lower case, but for *I*, with some hundreds of words.
# Any other capital is a sign that the model never read: what is typed, or read
# from a file, is turned into small letters first, and the program says so. A
# word from elsewhere is no less strange, and nothing can be done about it: what
# comes of it is fluent, and wrong. Try *i like books* beside *I like books*.

# %%
new = corpora.unseen(sources, references, train)
partly = 0 < len(new) < len(sources)
if partly:
    unseen_score = bleu(
        [translations[i] for i in new], [references[i] for i in new]
    )
    print(f"BLEU on {len(new):,} new on both sides: {unseen_score.score:.2f}")

# %% [markdown]
# ## The training, seen
#
# The loss on smoothed labels, and the learning rate.

# %% alt="Two curves: training and validation loss, and the learning rate"
figure = Figure(figsize=(9, 3.2), layout="constrained")
left, right = figure.subplots(1, 2)
window = max(1, len(log.losses) // 100)
smooth = np.convolve(log.losses, np.ones(window) / window, "valid")
left.plot(np.arange(len(smooth)) + window, smooth, label="training")
if log.validation:
    left.plot(*zip(*log.validation, strict=True), "o-", label="validation")
left.set(xlabel="step", ylabel="loss (nats per token)")
left.legend()
taken = np.arange(len(log.losses))
right.plot(taken, to_numpy(schedule(taken)))
right.set(xlabel="step", ylabel="learning rate")
figure.savefig(run.out / "training.png", dpi=150)
figure

# %% [markdown]
# ## Where it looked
#
# Where the model looked in the source as it wrote each token: a row is the
# token written, a column a source token. Attention weights are captured in one
# pass over the finished translation; the training and the decoding above never
# held them.

# %% alt="Weights of the decoder's last cross-attention, one map for each head"
sentence, translation, _ = samples[0]
source = [*tokenizer.encode(sentence), tokenizer.end_id]
target = [tokenizer.start_id, *tokenizer.encode(translation)]
with capture_weights() as captured:
    model((np.array([source], "int32"), np.array([target], "int32")))
path, call = [key for key in captured if "cross" in key[0]][-1]
(weights,) = to_numpy(captured[path, call])
assert weights.shape == (max(1, run.width // 64), len(target), len(source))
np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)
figure = plot_attention(
    weights,
    query_tokens=[*tokenizer.tokens(tokenizer.decode(target)), "</s>"],
    key_tokens=[*tokenizer.tokens(sentence), "</s>"],
    title=f"Who looks where: {path}",
)
figure.savefig(run.out / "attention.png", dpi=150)
figure

# %% [markdown]
# *gato* is written in two pieces, and both look at *cat*, head 0 at both of its
# pieces; *este* looks at *this*, *grande* at *large*. Nobody showed the model
# which words belong together: it is what makes the loss small. That a model
# looked somewhere does not say that it wrote what it wrote because of that:
# [Looking inside](../looking_inside/index.md) puts the two beside each other.
#
# ## Keeping it
#
# One `.keras` file and one tokenizer file. They load on any backend. Now that
# the model is safe, the backup may go.

# %%
results = {
    "backend": keras.backend.backend(),
    "bleu": score.score,
    "sentences": len(sources),
    "parameters": model.count_params(),
    "steps": len(log.losses),
    "minutes": log.seconds / 60,
    "target_tokens_per_second": speed,
    "settings": {name: str(value) for name, value in run._asdict().items()},
    "validation": log.validation,
    "samples": samples,
}
if partly:
    results["bleu_unseen"] = unseen_score.score
    results["sentences_unseen"] = len(new)
model.save(run.out / "model.keras")
tokenizer.save(run.out / "tokenizer.model")
(run.out / "results.json").write_text(
    json.dumps(results, indent=1, ensure_ascii=False), encoding="utf-8"
)
backup.remove()

# %% [markdown]
# ## What should hold
#
# A model that was trained for a thousand steps or more gets its words right,
# those of the large cat, too.

# %%
if WHOLE and len(log.losses) >= 1000:
    assert score.score > 85
    assert samples[0][:2] == (
        "this cat is very large",
        "este gato es muy grande",
    )
hints = {
    f"make translate MODEL={run.out}": "translate what you type",
    f"make translate MODEL={run.out} INPUT=FILE": "or the lines of a file",
    "make translate DATA=FILE": "learn from your own corpus",
    "KERAS_BACKEND=jax make translate": "the same on another backend",
}
print(f"""
The model is in {run.out / "model.keras"}, its tokenizer beside it;
look at {run.out / "training.png"} and {run.out / "attention.png"}.

What to try next:""")
for command, what in hints.items():
    print(f"  {command:{max(map(len, hints))}}  {what}")

# %% [markdown]
# ## Exercises
#
# **1.** Fill in, for the settings above: D = 128 and two heads. The queries of
# B targets of T tokens have the shape ___, the weights of the cross-attention
# to S source tokens ___. One attention layer has ___ parameters, biases
# included.
#
# <details markdown>
# <summary>Answer</summary>
#
# (B, T, 2, 64); (B, 2, T, S); four projections of D to D,
# $4 \cdot (128^2 + 128) = 66{,}048$, however many heads there are.
#
# </details>
#
# **2.** At which step is the learning rate of the paper highest, and how high
# is it: D = 512, w = 4,000, c = 1? What would w = 4,000 do to the training
# above, if it has 1,200 steps?
#
# <details markdown>
# <summary>Answer</summary>
#
# At s = w, where both sides of the minimum are equal:
# $1 / \sqrt{512 \cdot 4000} = 0.0007$. Above, the rate would still rise at the
# last step, to $0.8 \cdot 128^{-1/2} \cdot 1200 \cdot 4000^{-3/2} = 0.00034$, a
# tenth of what it reaches with w = 400.
#
# </details>
#
# **3.** The loss of a model that is always right, and sure of it, is 0 without
# smoothing. What is the least that it can be with a tenth spread over V = 1,500
# tokens? Which probabilities reach it?
#
# <details markdown>
# <summary>Answer</summary>
#
# Those of the smoothed label itself: 0.9 + 0.1 / V for the right token,
# 0.1 / V for each other. The loss is then the entropy of that,
# $-0.9 \ln 0.9 - 0.1 \ln (0.1 / 1500) \approx 1.06$ nats: a curve of the
# training loss that ends above 1 has not failed. The validation loss is
# smoothed too.
#
# </details>
