# %% [markdown]
# # A Transformer learns to translate
#
# You will build the encoder-decoder Transformer of *Attention Is All You
# Need* (Vaswani et al. 2017, <https://arxiv.org/abs/1706.03762>), train it
# with `model.fit`, translate sentences that it never saw, score them with
# sacreBLEU, and look at what it attends to.
#
# With nothing else said it learns Spanish from a phrase grammar, in a few
# minutes on a laptop:
#
#     make translate
#     KERAS_BACKEND=jax make translate
#
# With `DATA=` it learns from your own corpus, one tab-separated file or two
# parallel ones (plain, `.gz`, or in a `.zip`):
#
#     make translate DATA=english.txt,spanish.txt MINUTES=60
#
# and with `MODEL=` a saved model translates lines from a file or from the
# keyboard:
#
#     make translate MODEL=runs/translate INPUT=lines.txt

# %%
import json
import time

import corpora
import keras
import numpy as np
import phrase_grammar
import settings
import translate_lines
from matplotlib.figure import Figure
from training_log import TrainingLog
from translation import bleu, translate

from keras_attn.explain import plot_attention
from keras_attn.models import Transformer
from keras_attn.ops import capture_weights
from keras_attn.text import SubwordTokenizer, token_batches
from keras_attn.training import (
    CheckpointAverage,
    SequenceCrossentropy,
    TokenAccuracy,
    TrainingBackup,
    WarmupSchedule,
)

try:
    run = settings.read_settings()
    if run.model:
        translate_lines.run(run.model, run.input)
        raise SystemExit(0)
    pairs = corpora.read_pairs(run.data) if run.data else None
except ValueError as error:
    settings.explain_and_leave(error)

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
# and every batch holds about the same number of tokens. A compiled backend
# then compiles a few programs, not one for every length.

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
# ## The model
#
# The encoder turns the source into a memory, one vector a token; the decoder
# reads the target so far and the memory, and scores the next token. All of it
# rests on one equation,
#
# $$\mathrm{Attention}(Q, K, V) =
# \mathrm{softmax}\left(\frac{QK^\top}{\sqrt{H}}\right) V.$$
#
# In the encoder, queries, keys and values come from the source; in the
# decoder, from the target so far, later tokens hidden; and in between, the
# target asks and the memory answers.

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
# ## Training
#
# The paper's learning rate rises linearly, then falls with the square root of
# the step $s$:
#
# $$\mathrm{lr}(s) = D^{-1/2} \min(s^{-1/2},\; s \cdot w^{-3/2}).$$
#
# The loss is the cross-entropy against smoothed labels, a tenth of the mass
# spread over the whole vocabulary; padding counts neither in the loss nor in
# the accuracy. At the end the weights are averaged over the last few
# snapshots, as in the paper's section 6.1.
#
# Every few hundred steps a backup is written. Whatever kills the program, the
# same command goes on from there and ends with the same weights; `FRESH=1`
# starts anew.

# %%
schedule = WarmupSchedule(run.width, run.warmup, run.scale)
model.compile(
    optimizer=keras.optimizers.Adam(schedule, beta_2=0.98, epsilon=1e-9),
    loss=SequenceCrossentropy(label_smoothing=0.1),
    metrics=[TokenAccuracy()],
)
steps = batches.report.batches
log = TrainingLog(run.minutes, batches.report.target_tokens)
average = CheckpointAverage(last=5, every=max(1, steps // run.snapshots))
try:
    backup = TrainingBackup(
        run.out / "backup",
        [log, average],
        every=run.backup,
        data=batches,
        settings=settings.identity(run)
        | {"backend": keras.backend.backend()}
        | {"sentences": corpora.fingerprint(train)},
        resume=not run.fresh,
    )
except ValueError as error:
    settings.explain_and_leave(f"{error}. FRESH=1 starts anew.")
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
# token. Keys and values of the source are projected once, those of the target
# are kept from step to step.

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

# %% [markdown]
# A corpus often holds different sources with the same target. The score on
# sources none of whose references is a training target shows what the model
# does with sentences that are new on both sides.

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
new = corpora.unseen(sources, references, train)
if new and len(new) < len(sources):
    unseen_score = bleu(
        [translations[i] for i in new], [references[i] for i in new]
    )
    results["bleu_unseen"] = unseen_score.score
    results["sentences_unseen"] = len(new)
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
right.plot(taken, keras.ops.convert_to_numpy(schedule(taken)))
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
source_ids = [*tokenizer.encode(sentence), tokenizer.end_id]
target_ids = [tokenizer.start_id, *tokenizer.encode(translation)]
with capture_weights() as captured:
    model((np.array([source_ids], "int32"), np.array([target_ids], "int32")))
path, call = [key for key in captured if "cross" in key[0]][-1]
figure = plot_attention(
    keras.ops.convert_to_numpy(captured[path, call])[0],
    query_tokens=[*tokenizer.tokens(tokenizer.decode(target_ids)), "</s>"],
    key_tokens=[*tokenizer.tokens(sentence), "</s>"],
    title=f"Who looks where: {path}",
)
figure.savefig(run.out / "attention.png", dpi=150)
figure

# %% [markdown]
# ## Keeping it
#
# One `.keras` file and one tokenizer file. They load on any backend. Now that
# the model is safe, the backup may go.

# %%
model.save(run.out / "model.keras")
tokenizer.save(run.out / "tokenizer.model")
(run.out / "results.json").write_text(
    json.dumps(results, indent=1, ensure_ascii=False), encoding="utf-8"
)
backup.remove()
print(f"""
The model is in {run.out / "model.keras"}, its tokenizer beside it;
look at {run.out / "training.png"} and {run.out / "attention.png"}.

What to try next:
  make translate MODEL={run.out}              translate what you type
  make translate MODEL={run.out} INPUT=FILE   translate the lines of a file
  make translate DATA=FILE                    learn from your own corpus
  KERAS_BACKEND=jax make translate            the same on another backend""")

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
# **2.** At which step is the learning rate highest, and how high is it for
# D = 128, w = 400 and `scale=0.8`? What would w = 4,000, as in the paper, do to
# a training of 2,000 steps?
#
# <details markdown>
# <summary>Answer</summary>
#
# At s = w, where both sides of the minimum are equal:
# $0.8 / \sqrt{128 \cdot 400} = 0.0035$. With w = 4,000 it would still rise at
# the last step, to $0.8 \cdot 128^{-1/2} \cdot 2000 \cdot 4000^{-3/2} =
# 0.00056$, a sixth of that.
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
