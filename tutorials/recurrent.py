# %% [markdown]
# # Recurrent seq2seq, with and without attention
#
# A recurrent network reads an English sentence and writes a Spanish one. It may
# carry all that it read in one vector, or look back at every word while it
# writes. Give both the same number of parameters and the same sentences: where
# does the one vector fail?
#
# ![BLEU over the length of the sentence, a curve a model](recurrent-2.png)
#
# The longer the sentence, the more has to go through the one vector. With
# attention the vector does not have to hold the sentence.
#
# You will
#
# - train **three translators** with as many parameters each: without attention,
#   with Bahdanau's **additive** score, with Luong's **general** score and
#   **input feeding**;
# - take a step of the decoder **by hand**, in NumPy, and get the numbers that
#   the library gets;
# - see **BLEU by length**, the **n best** translations of a beam search, and
#   **alignments** side by side;
# - compare **teacher forcing** with **scheduled sampling**: what a decoder does
#   behind its own mistake.
#
# On two cores thirteen minutes at most: the run of this page had one. The
# sentences are those of [the first tutorial](../translate/index.md), written by
# a phrase grammar; nothing is downloaded. As a program, on any backend:
#
#     KERAS_BACKEND=jax .venv/bin/python tutorials/recurrent.py
#
# On your own corpus, one tab-separated file or two parallel ones (plain, `.gz`,
# or in a `.zip`), it compares four models, the Transformer among them, with
# `MINUTES=` for each:
#
#     DATA=english.txt,spanish.txt MINUTES=20 \
#         .venv/bin/python tutorials/recurrent.py
#
# And a saved model translates lines from a file or from the keyboard:
#
#     MODEL=runs/recurrent/additive INPUT=lines.txt \
#         .venv/bin/python tutorials/recurrent.py

# %%
import json

import corpora
import keras
import numpy as np
import phrase_grammar
import program_settings
import recurrent_settings
import translate_lines
from arm_plots import draw_alignments, draw_by_length
from length_scores import length_groups, scores_by_length
from matplotlib.figure import Figure
from planted_slips import plant_slips, right_behind
from rising_sampling import RisingSampling
from training_log import TrainingLog
from translation import bleu, translate
from translation_arms import build_arm, equal_widths, parameters, read_arms

from keras_attn.decoding import BeamSearch
from keras_attn.text import SubwordTokenizer, token_batches
from keras_attn.training import (
    CheckpointAverage,
    SequenceCrossentropy,
    TokenAccuracy,
    TrainingBackup,
    WarmupSchedule,
)

try:
    run = recurrent_settings.read_settings()
    if run.model:
        translate_lines.run(run.model, run.input)
        raise SystemExit(0)
    arms = read_arms(run.arms)
    pairs = corpora.read_pairs(run.data) if run.data else None
except ValueError as error:
    program_settings.explain_and_leave("recurrent", error)

run.out.mkdir(parents=True, exist_ok=True)
# What is asserted of trained models is so with the settings of this page.
WHOLE = recurrent_settings.is_default(run)
print(f"Keras {keras.__version__} on {keras.backend.backend()}")

# %% [markdown]
# ## Sentences
#
# Sentences of 3 to 15 words. Those of the test are made of combinations of
# words that no training sentence has.

# %%
if pairs is None:
    splits = phrase_grammar.phrase_splits()
    train, validation, test = splits.train, splits.validation, splits.test
else:
    train, validation, test = corpora.split_by_source(pairs)
    if not (train and validation and test):
        program_settings.explain_and_leave(
            "recurrent",
            "DATA must have sentences to train on, to validate and to test. "
            f"Received: {len(train)}, {len(validation)} and {len(test)}",
        )
if run.quick:
    shortest = sorted(test, key=lambda pair: len(pair[0]))
    train, validation, test = train[:300], validation[:40], shortest[:16]
sources, references = corpora.group_references(test)
lengths = [len(source.split()) for source in sources]
groups = length_groups(lengths, run.groups)
print(f"{len(train):,} training pairs, {len(sources):,} test sentences")
for source, target in train[:2]:
    print(f"  {source}  ->  {target}")
tokenizer = SubwordTokenizer.train_from_lines(
    (sentence for pair in train for sentence in pair),
    vocabulary_size=run.vocabulary,
)
V = tokenizer.vocabulary_size


def batches_of(part, buckets=run.buckets, shuffle=True):
    """Returns batches of pairs, those of like length together."""
    return token_batches(
        [source for source, _ in part],
        [target for _, target in part],
        tokenizer,
        tokens_per_batch=run.tokens,
        max_length=run.longest,
        buckets=buckets,
        shuffle=shuffle,
        seed=run.seed,
    )


batches = batches_of(train)
validation_batches = batches_of(validation[:2000], 1, False)
steps = batches.report.batches
print(batches.report)

# %% [markdown]
# ## Three translators
#
# All read the source from both ends, with one LSTM in each direction, and write
# with a third. $x_j$ are source tokens, $y_i$ target tokens, E their
# embeddings:
#
# $$h_j = [\overrightarrow{h}_j; \overleftarrow{h}_j], \qquad
# s_i = \mathrm{LSTM}(s_{i-1}, E\, y_i).$$
#
# **none** (Sutskever et al. 2014, <https://arxiv.org/abs/1409.3215>): the
# decoder begins with the encoder's last state, and that is all that it ever
# learns of the source:
#
# $$s_0 = [\overrightarrow{h}_S; \overleftarrow{h}_1], \qquad
# \mathrm{logits}_i = s_i W_o + b .$$
#
# **additive** (Bahdanau et al. 2014, <https://arxiv.org/abs/1409.0473>): at
# each step a small network scores every $h_j$; what is found, $c_i$, is mixed
# with the state:
#
# $$w_{ij} = \mathrm{softmax}_j\; v \cdot \tanh(s_i W + h_j U), \qquad
# c_i = \sum_j w_{ij} h_j, \qquad
# m_i = \tanh([c_i; s_i]\, W_m), \qquad
# \mathrm{logits}_i = m_i W_o + b .$$
#
# (Bahdanau's decoder asks with $s_{i-1}$ and puts $c_i$ into the cell; here, as
# in Luong et al., it asks with $s_i$. The score is the same.)
#
# **general** (Luong et al. 2015, <https://arxiv.org/abs/1508.04025>): one
# matrix in place of the network. And the cell reads what was found in the step
# before, so that it knows where it has already looked, which they call **input
# feeding**:
#
# $$w_{ij} = \mathrm{softmax}_j\; s_i W h_j, \qquad
# s_i = \mathrm{LSTM}(s_{i-1}, [E\, y_i; m_{i-1}]).$$
#
# ### As many parameters each
#
# Attention brings matrices of its own. So that nobody can say that these do the
# work, the model without it gets a wider vector instead. How many parameters a
# width makes is a formula; the models that are built have as many.

# %%
SPECIAL = {
    "pad_id": tokenizer.pad_id,
    "start_id": tokenizer.start_id,
    "end_id": tokenizer.end_id,
}
try:
    widths = equal_widths(arms, V, run)
except ValueError as error:
    program_settings.explain_and_leave("recurrent", error)
models = {}
for name, width in widths.items():
    keras.utils.set_random_seed(run.seed)
    models[name] = build_arm(name, width, V, run, **SPECIAL)
    count = parameters(name, width, V, run)
    assert count == models[name].count_params()
    print(f"{name:<12} D = {width:<4} {count:>10,} parameters")
counts = [model.count_params() for model in models.values()]
assert max(counts) < 1.04 * min(counts)  # each within 2 % of one number

# %% [markdown]
# What is handed over, by a sentence of S tokens: without attention a state of
# the LSTM, h and the cell c, for any S; with attention D numbers more for each
# token.

# %%
example = phrase_grammar.SHOWCASE[-1][0] if pairs is None else sources[0]
example_row = [*tokenizer.encode(example), tokenizer.end_id]
S = len(example_row)
for name, model in models.items():
    if name == "transformer":
        continue
    (memory, _), states = model.encode(np.array([example_row], "int32"))
    D = widths[name]
    assert memory.shape == (1, S, D)  # h_1 .. h_S
    assert len(states) == run.layers
    assert states[-1][0].shape == states[-1][1].shape == (1, D)
    kept = 2 * run.layers * D + (S * D if name != "none" else 0)
    print(f"{name:<12} {kept:>6,} numbers for the {S} tokens of: {example}")

# %% [markdown]
# ## Training
#
# The same batches in the same order for each; the loss is the cross-entropy of
# the right next token, while the decoder reads the right tokens so far
# (**teacher forcing**):
#
# $$L = -\frac{1}{T} \sum_i \log p(y_{i+1} \mid y_1 \ldots y_i, x).$$
#
# Gradients of recurrent networks are now and then very large: they are scaled
# down to a norm of 1. The learning rate rises, and falls with the square root
# of the step; at the end the weights are the mean of the last five snapshots. A
# run that is killed goes on where it was; `FRESH=1` starts anew.


# %%
def recipe(model, width, rate):
    """Compiles a model; its learning rate rises to `rate`."""
    scale = rate * np.sqrt(width * run.warmup)
    model.compile(
        keras.optimizers.Adam(
            WarmupSchedule(width, run.warmup, float(scale)),
            beta_2=0.98,
            epsilon=1e-9,
            global_clipnorm=1.0,
        ),
        loss=SequenceCrossentropy(),
        metrics=[TokenAccuracy()],
    )


def train_arm(name):
    """Trains an arm; returns its log and its backup."""
    share = 0.8 if name == "transformer" else 1.0
    recipe(models[name], widths[name], share * run.rate)
    log = TrainingLog(run.minutes, batches.report.target_tokens)
    average = CheckpointAverage(
        num_checkpoints=5, save_freq=max(1, steps // run.snapshots)
    )
    try:
        backup = TrainingBackup(
            run.out / name / "backup",
            [log, average],
            save_freq=run.backup,
            data=batches,
            settings=recurrent_settings.identity(run)
            | {"backend": keras.backend.backend()}
            | {"sentences": corpora.fingerprint(train)},
            resume=not run.fresh,
        )
    except ValueError as error:
        program_settings.explain_and_leave(
            "recurrent", f"{error}. FRESH=1 starts anew."
        )
    keras.utils.set_random_seed(run.seed)
    models[name].fit(
        batches,
        epochs=run.epochs,
        shuffle=False,  # the batches do it
        validation_data=None if run.quick else validation_batches,
        callbacks=[backup],
        verbose=2,
    )
    return log, backup


logs, backups = {}, {}
for name in arms:
    print(f"Training: {name}")
    logs[name], backups[name] = train_arm(name)
results = {}
for name, log in logs.items():
    results[name] = {
        "width": widths[name],
        "parameters": models[name].count_params(),
        "steps": len(log.losses),
        "minutes": log.seconds / 60,
        "target_tokens_per_second": log.tokens_per_second(steps),
        "validation": log.validation,
    }
    print(
        f"{name:<12} {len(log.losses):>6,} steps in {log.seconds / 60:.1f} "
        f"minutes, loss {np.mean(log.losses[-100:]):.3f}"
    )

# %% alt="The training loss of each model, over its steps and over the minutes"
figure = Figure(figsize=(9.5, 3.2), layout="constrained")
left, right = figure.subplots(1, 2, sharey=True)
for name, log in logs.items():
    window = max(1, len(log.losses) // 20)
    smooth = np.convolve(log.losses, np.ones(window) / window, "valid")
    taken = np.arange(len(smooth)) + window
    left.plot(taken, smooth, label=name)
    right.plot(taken * log.seconds / 60 / len(log.losses), smooth, label=name)
left.set(xlabel="step", ylabel="loss (nats per token)")
right.set(xlabel="minutes")
left.legend()
figure.savefig(run.out / "training.png", dpi=150)
figure

# %% [markdown]
# ## One step by hand
#
# What does the library compute? The equations of **additive** once more, a line
# each, with the trained weights. A cell of the LSTM has an input gate i, a
# forget gate f, an output gate o and a new value g:
#
# $$[i, f, g, o] = x W_x + s W_s + b, \qquad
# c' = \sigma(f)\, c + \sigma(i) \tanh(g), \qquad
# s' = \sigma(o) \tanh(c').$$


# %%
def sigmoid(x):
    """Returns the logistic function of x."""
    return 1 / (1 + np.exp(-x))


def lstm(w, x, s, c):
    """Takes a step of a cell whose weights are w."""
    gates = x @ w["kernel"] + s @ w["recurrent_kernel"] + w["bias"]  # (4 D,)
    i, f, g, o = np.split(gates, 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def below(model, path):
    """Returns a model's weights below a path, by the rest of their own."""
    return {
        weight.path.removeprefix(path): keras.ops.convert_to_numpy(weight)
        for weight in model.trainable_weights
        if weight.path.startswith(path)
    }


def step_by_hand(w, cells, y, states, h):
    """Reads token y; returns logits (V,), weights (S,) and the next states."""
    D = h.shape[1]
    x = np.sqrt(D) * w["token/table/embeddings"][y]  # E y
    following = []
    for cell, (s, c) in zip(cells, states, strict=True):
        x, c = lstm(cell, x, s, c)
        following.append((x, c))
    s = x
    bent = np.tanh(
        s @ w["attention/score/query/kernel"]  # s W, (D,)
        + h @ w["attention/score/key/kernel"]  # h U, (S, D)
    )
    scores = bent @ w["attention/score/scale"]  # (S,)
    powers = np.exp(scores - scores.max())
    weights = powers / powers.sum()
    context = weights @ h  # c_i, (D,)
    m = np.tanh(np.concatenate([context, s]) @ w["mixing/kernel"])  # (D,)
    return m @ w["output/kernel"] + w["output/bias"], weights, following


# %% [markdown]
# A sentence by hand: at each step the likeliest token is written, and read in
# the next. Beside it one call of the model, which reads what was written.

# %%
if "additive" in models:
    model = models["additive"]
    source_ids = np.array([example_row], "int32")
    (memory, _), last = model.encode(source_ids)
    h = keras.ops.convert_to_numpy(memory)[0]
    states = [
        tuple(keras.ops.convert_to_numpy(part)[0] for part in layer)
        for layer in last
    ]
    w = below(model, "decoder/")
    cells = [below(model, f"decoder/cell_{i}/") for i in range(run.layers)]
    read, looked, by_hand = [tokenizer.start_id], [], []
    while read[-1] != tokenizer.end_id and len(read) <= 2 * S:
        logits, weights, states = step_by_hand(w, cells, read[-1], states, h)
        assert logits.shape == (V,) and weights.shape == (S,)
        by_hand.append(logits)
        looked.append(weights)
        read.append(int(logits.argmax()))
    library = model((source_ids, np.array([read[:-1]], "int32")))
    apart = np.abs(by_hand - keras.ops.convert_to_numpy(library)[0]).max()
    print(f"{example}\n  -> {tokenizer.decode(read)}")
    print(f"{len(by_hand)} steps; logits differ by {apart:.1e} at most")
    assert apart < 1e-3
    assert np.allclose(np.sum(looked, axis=1), 1, atol=1e-5)

# %% [markdown]
# ## The bottleneck
#
# Each model translates all test sentences greedily. BLEU, and the share of
# sentences that are right to the letter, by the number of words of the source:

# %%
scores, written = {}, {}
for name, model in models.items():
    translations = translate(model, tokenizer, sources, run.longest)
    written[name] = translations
    everything = [(min(lengths), max(lengths))]
    (total,) = scores_by_length(translations, references, lengths, everything)
    scores[name] = scores_by_length(translations, references, lengths, groups)
    every = max(1, len(sources) // 8)
    results[name] |= {
        "bleu": total["bleu"],
        "right": total["right"],
        "by_length": scores[name],
        "samples": list(zip(sources, translations, strict=True))[::every],
    }
heads = "".join(f"{f'{a}-{b}':>8}" for a, b in groups)
print(f"{'BLEU by words':<14}{heads}     all   right")
for name, rows in scores.items():
    columns = "".join(f"{row['bleu']:>8.1f}" for row in rows)
    whole = results[name]
    print(f"{name:<14}{columns}{whole['bleu']:>8.1f}{whole['right']:>8.1%}")

# %% alt="BLEU and right sentences over the length, a curve for each model"
figure = draw_by_length(scores)
figure.savefig(run.out / "length.png", dpi=150)
figure

# %% [markdown]
# The parameters are the same, the sentences are the same, the decoders differ
# in what they may ask for. The wider vector does not make up for it: a sentence
# of twice the length has twice as much to say, and the vector is as long as
# before.
#
# What goes wrong without attention? Sentences that are mostly fluent, and say
# something else. The decoder is a good language model of Spanish that has
# forgotten some of what it was told:

# %%
longest_first = np.argsort([-length for length in lengths], kind="stable")
for number in longest_first[:40:13]:
    print(f"  {sources[number]}\n  {references[number][0]}")
    for name, texts in written.items():
        right = "right" if texts[number] in references[number] else ""
        print(f"    {name:<12} {right or texts[number]}")

# %% [markdown]
# ## The n best
#
# Greedy search takes the likeliest token at each step. A **beam search** goes
# on with the k likeliest beginnings, and returns the best of the sentences that
# end ([Decoding](../decoding/index.md) builds one by hand). What a recurrent
# decoder has to keep of each beginning is its state only.

# %%
BEAMS = 4
shown = {}
for name, model in models.items():
    found = model.generate(
        [example_row],
        run.longest,
        BeamSearch(BEAMS, num_return_sequences=BEAMS),
        return_weights=name != "none",
    )
    print(f"{name}: {example}")
    for tokens, score in zip(found.tokens[0], found.scores[0], strict=True):
        print(f"  {score:8.3f}  {tokenizer.decode(tokens)}")
    if found.weights is None:
        continue
    length = int(found.lengths[0, 0])
    # (layers, heads, L, S); of a Transformer the mean of the last layer.
    weights = found.weights[0, 0, -1].mean(0)[:length, :S]
    assert weights.shape == (length, S)
    assert np.allclose(weights.sum(-1), 1, atol=1e-3)
    pieces = tokenizer.pieces(found.tokens[0, 0, :length])
    shown[name] = pieces, weights

# %% [markdown]
# Does the search find better translations? On some test sentences:

# %%
last = arms[-1]
if not run.quick:
    some = range(min(300, len(sources)))
    rows = [
        [*ids, tokenizer.end_id]
        for ids in tokenizer.encode([sources[i] for i in some])
    ]
    mine = [references[i] for i in some]
    for width in (1, BEAMS):
        found = models[last].generate(rows, run.longest, BeamSearch(width, 1))
        texts = tokenizer.decode(found.tokens[:, 0])
        score = bleu(texts, mine).score
        results[last][f"bleu_of_{len(mine)}_with_width_{width}"] = score
        mean = found.scores.mean()
        print(f"{last}, width {width}: BLEU {score:.2f}, mean score {mean:.3f}")

# %% [markdown]
# ## Alignments
#
# Where each model looked as it wrote that sentence: a row is a piece that it
# wrote, a column a piece of the source. Nobody told it which words belong
# together.

# %% alt="Heat maps, one a model: pieces written against pieces of the source"
pieces = [*tokenizer.pieces(example_row[:-1]), "</s>"]
if shown:
    figure = draw_alignments(pieces, shown)
    figure.savefig(run.out / "alignments.png", dpi=150)
else:
    figure = Figure()  # no model looks anywhere
figure

# %% [markdown]
# The path runs from the upper left to the lower right, and steps back where the
# languages differ: *the modern museum*, *el museo moderno*. It need not run
# through the words themselves. Each $h_j$ has read the whole sentence, so a
# word can be asked for at its neighbour's.
#
# ## Its own mistakes
#
# In training the decoder reads the right words only. In use it reads its own,
# and some are wrong: it is somewhere where it has never been. **Scheduled
# sampling** (Bengio et al. 2015, <https://arxiv.org/abs/1506.03099>) lets it go
# there in training. With probability $\varepsilon$ it reads a token that it
# draws from its own distribution:
#
# $$\tilde{y}_i = \begin{cases} y_i & \text{with probability }
# 1 - \varepsilon \\ \hat{y} \sim p(\,\cdot \mid \tilde{y}_1 \ldots
# \tilde{y}_{i-1}, x) & \text{otherwise.} \end{cases}$$
#
# At the beginning its own words are noise, so $\varepsilon$ begins at 0 and
# rises. We go on with the trained model, once with teacher forcing, once with
# $\varepsilon$ rising, on the same sentences.

# %%
AT_MOST = 0.5
twins = {}
if run.sampling and "additive" in models:
    fewer = batches_of(train[: 40 if run.quick else 4000])
    for name, start in (("teacher forcing", None), ("sampling", 0.0)):
        if run.quick and start is None:
            continue
        keras.utils.set_random_seed(run.seed)
        twin = build_arm(
            "additive",
            widths["additive"],
            V,
            run,
            scheduled_sampling=start,
            **SPECIAL,
        )
        for mine, theirs in zip(
            twin.trainable_weights,
            models["additive"].trainable_weights,
            strict=True,
        ):
            assert mine.shape == theirs.shape
            # A copy: training overwrites an array that they share.
            mine.assign(keras.ops.convert_to_numpy(theirs))
        twin.compile(
            keras.optimizers.Adam(run.rate / 4, global_clipnorm=1.0),
            SequenceCrossentropy(),
        )
        fewer.set_epoch(0)
        losses = twin.fit(
            fewer,
            epochs=run.sampling,
            shuffle=False,
            callbacks=[]
            if start is None
            else [RisingSampling(AT_MOST, run.sampling)],
            verbose=0,
        ).history["loss"]
        print(f"{name:<16} loss", *(f"{loss:.3f}" for loss in losses))
        twins[name] = twin

# %% [markdown]
# The loss with sampling is higher: what it reads is worse, and the right
# answer does not move with it. What is it good for? We put **one wrong word**
# into what the decoders read, the likeliest of the wrong ones, and see how
# often they are right behind it: at once, one token later, and so on. And we
# let both translate sentences of the test, reading their own words.

# %%
FAR = 6
behind = {}
if twins:
    chosen = test[: 16 if run.quick else 300]
    rows, reads, says = (
        [
            [*before, *ids, *after]
            for ids in tokenizer.encode([pair[side] for pair in chosen])
        ]
        for side, before, after in (
            (0, [], [tokenizer.end_id]),
            (1, [tokenizer.start_id], []),
            (1, [], [tokenizer.end_id]),
        )
    )
    rows, reads, says = (
        np.array([row + [0] * (max(map(len, part)) - len(row)) for row in part])
        for part in (rows, reads, says)
    )

    def logits_of(model, reads):
        """Returns the logits (B, T, V) behind what is read."""
        return model.predict((rows, reads), batch_size=64, verbose=0)

    slipped, places = plant_slips(
        reads,
        says,
        logits_of(models["additive"], reads),
        [*SPECIAL.values()],
        run.seed,
    )
    assert ((slipped != reads).sum(1) == 1).all()
    for name, twin in twins.items():
        behind[name] = [
            right_behind(logits_of(twin, read), says, places, FAR)
            for read in (reads, slipped)
        ]
        line = " ".join(f"{share:5.1%}" for share in behind[name][1])
        print(f"{name:<16} right behind a slip: {line}")
        if run.quick:
            continue
        english, spanish = zip(*chosen, strict=True)
        texts = translate(twin, tokenizer, english, run.longest)
        score = bleu(texts, [[text] for text in spanish]).score
        print(f"{name:<16} BLEU of its own words: {score:.2f}")

# %% alt="Right tokens behind a slip, and what it costs, for both trainings"
figure = Figure(figsize=(9.5, 3.4), layout="constrained")
left, right = figure.subplots(1, 2)
for (name, (without, shares)), colour in zip(
    behind.items(), ("C0", "C1"), strict=False
):
    left.plot(100 * shares, "o-", color=colour, label=name)
    left.plot(100 * without, "--", color=colour, linewidth=0.8)
    right.plot(100 * (without - shares), "o-", color=colour)
left.set(ylabel="right tokens (%)", title="dashed: without the slip")
right.set(ylabel="percentage points", title="what the slip costs")
for panel in (left, right):
    panel.set_xlabel("tokens behind the slip")
if behind:
    left.legend()
figure.savefig(run.out / "slips.png", dpi=150)
figure

# %% [markdown]
# A slip costs much at once, where the wrong word is read, and soon little: the
# decoder asks the source again, and is back on its way. So on sentences like
# these there is not much to be won; compare the two curves, and the two scores.
# Sampling is a trade: practice with mistakes, for lessons whose answers fit
# less well (exercise 3). It paid in tasks where decoders wander off, such as
# the captions of pictures of Bengio et al.

# %% [markdown]
# ## What should hold
#
# With the settings of this page: attention is better, most of all on the
# longest sentences.

# %%
results = {
    "backend": keras.backend.backend(),
    "arms": results,
    "behind a slip": {
        name: {"slip": after.tolist(), "none": before.tolist()}
        for name, (before, after) in behind.items()
    },
    "settings": {key: str(value) for key, value in run._asdict().items()},
}
if WHOLE:
    for name in ("additive", "general"):
        gains = [
            mine["bleu"] - theirs["bleu"]
            for mine, theirs in zip(scores[name], scores["none"], strict=True)
        ]
        print(f"{name}: BLEU above none", *(f"{gain:.1f}" for gain in gains))
        assert gains[-1] > max(5, gains[0])

# %% [markdown]
# ## Keeping it
#
# Each model in a folder of its own, its tokenizer beside it. They load on any
# backend. Now that they are safe, the backups may go.

# %%
for name, model in models.items():
    model.save(run.out / name / "model.keras")
    tokenizer.save(run.out / name / "tokenizer.model")
    backups[name].remove()
(run.out / "results.json").write_text(
    json.dumps(results, indent=1, ensure_ascii=False), encoding="utf-8"
)
program = ".venv/bin/python tutorials/recurrent.py"
print(f"""
The models are in {", ".join(str(run.out / name) for name in models)},
all figures in {run.out / "results.json"};
look at {run.out / "length.png"} and {run.out / "alignments.png"}.

What to try next, with {program} behind it:
  MODEL={run.out / arms[-1]}      translate what you type
  MODEL={run.out / arms[-1]} INPUT=lines.txt
                                  translate the lines of a file
  DATA=english.txt,spanish.txt    compare four models on your own corpus
  ARMS=none,additive,general,transformer MINUTES=20 EPOCHS=1000
                                  compare them here, for longer""")

# %% [markdown]
# ## Exercises
#
# **1.** Fill in. D = 128, and a sentence has 12 tokens, the end among them. The
# encoder returns h of the shape ___; without attention the decoder gets ___
# numbers of it. With attention and a target of 14 tokens there are ___ weights.
# The additive score computes a tanh of ___ numbers for them, the general one
# of ___.
#
# <details markdown>
# <summary>Answer</summary>
#
# (12, 128). The state h and the cell c, 256 numbers, for any sentence.
# 14 · 12 = 168 weights. The additive score: 128 numbers for each pair, 168 ·
# 128 = 21,504. The general one has no tanh; it is one product of matrices,
# and the faster one. (Input feeding takes some of that back: attention has to
# stand inside the loop over time.)
#
# </details>
#
# **2.** Sutskever et al. read the source backwards, and their translations
# became much better. Why would that be, without attention? Does it help the
# model here?
#
# <details markdown>
# <summary>Answer</summary>
#
# The last words read are the freshest in the vector. Read backwards these are
# the first ones, which are needed first: the path from a word to its
# translation is short at the beginning of the sentence, and the model gets off
# to a good start. Here the encoder reads from both ends, and has half its
# features for each, so it has that already.
#
# </details>
#
# **3.** Set $\varepsilon = 1$ from the first step. What does the decoder learn
# to write in the third place, if it draws something else than the reference in
# the second?
#
# <details markdown>
# <summary>Answer</summary>
#
# The third word of the reference, whatever stands in front of it: the target
# does not move with what was drawn. It learns to go by the place, and not by
# what it has written. This is why the probability is raised slowly and not
# to 1; Huszár 2015 (<https://arxiv.org/abs/1511.05101>) shows that sampling
# does not lead to the right distribution, however many data there are.
#
# </details>
