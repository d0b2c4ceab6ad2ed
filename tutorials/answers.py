# %% [markdown]
# # Question answering by copying and pointing
#
# A text, and a question about it. Where in the text is the answer, and does it
# stand there at all?
#
# ![Strips of heat: where the answers begin and end](answers-2.png)
#
# Two strips a question: where its answer begins, and where it ends. The last
# two questions are made of the words of the passage, which does not answer
# them. Does the model notice?
#
# You will
#
# - write passages and questions whose answers are known, some of them in vain;
# - train a `SpanExtractor` from scratch to **point** at the first and the last
#   word of an answer, or at "no answer", and score it beside three baselines;
# - see that the answer moves along when two names change places, and choose
#   how sure the model has to be before it answers;
# - train a `Transformer` that **copies**: it repairs questions that were asked
#   with a slip of the tongue, *who opened the red no wait the black box*.
#
# About twelve minutes on two cores. The data is written by a phrase grammar;
# nothing is downloaded. As a program, on any backend:
#
#     KERAS_BACKEND=jax .venv/bin/python tutorials/answers.py
#
# With `DATA=` it learns from the booking dialogues of RESTAURANTS-8K (Coope et
# al. 2020, <https://arxiv.org/abs/2005.08866>), with `TASK=repair` as well from
# the questions of Disfl-QA (Gupta et al. 2021,
# <https://arxiv.org/abs/2106.04016>), and with `MODEL=` a saved model answers
# lines `question<tab>passage` of a file or of the keyboard, or repairs lines:
#
#     export DATA=train_0.json,test.json  # or MODEL=runs/answers INPUT=lines
#     .venv/bin/python tutorials/answers.py

# %%
import json
import random

import answers_lines
import answers_settings
import keras
import numpy as np
import phrase_passages
import program_settings
import repair_program
import restaurant_spans
from answer_baselines import FrequentPlace, KnownAnswer, LikeliestSentence
from answer_reader import decide, read
from answer_scores import scores
from answer_strips import plot_strips
from length_batches import LengthBatches
from matplotlib.figure import Figure
from phrase_facts import Fact, Thing
from phrase_questions import exchanged_names, question_splits
from question_table import ASKED, SEGMENTS, SEPARATOR, SHARED, QuestionTable
from questions import Question, words_of
from repairer import compare, train_repairer

from keras_attn.explain import plot_attention
from keras_attn.models import Encoder, SpanExtractor
from keras_attn.ops import capture_weights
from keras_attn.training import (
    CheckpointAverage,
    SequenceCrossentropy,
    TokenAccuracy,
    TrainingBackup,
    WarmupSchedule,
)

try:
    run = answers_settings.read()
    if run.task == "repair":
        repair_program.run(run)
        raise SystemExit(0)
    if run.model:
        answers_lines.run(run.model, run.input)
        raise SystemExit(0)
    corpus = [
        restaurant_spans.read_turns(path)
        for path in answers_settings.files(run.data)
    ]
except ValueError as error:
    program_settings.explain_and_leave("answers", error)

keras.utils.set_random_seed(run.seed)
run.out.mkdir(parents=True, exist_ok=True)
print(f"Keras {keras.__version__} on {keras.backend.backend()}")

# %% [markdown]
# ## Passages and questions
#
# A passage has two to four sentences, and these share their words: two kings
# with two doors, one verb for both. Every question about it that one sentence
# alone answers can be asked. A quarter of the questions has no answer, and
# those are asked in words of the passage, too: the same verb with another
# subject, the same king with another door. Neither the verb nor a name is
# enough.
#
# The test questions are about sentences with a combination of noun and
# adjective that training never shows, such as a *large* *cat*.

# %%
if run.data:
    train, test = corpus
    train, validation = restaurant_spans.split_by_passage(train)
    if run.quick:
        train, validation, test = train[:200], validation[:40], test[:40]
elif run.quick:
    train, validation, test = question_splits(run.questions, 32, 32)
else:
    train, validation, test = question_splits(run.questions)
for name, part in (
    ("training", train),
    ("validation", validation),
    ("test", test),
):
    without = np.mean([question.span is None for question in part])
    print(f"{len(part):6,} {name} questions, {without:.0%} without an answer")
print("\n" + " ".join(train[0].passage))
for question in train[:4]:
    print(f"  {' '.join(question.asked)}? {question.answer or '(no answer)'}")

# %% [markdown]
# ## What is to be beaten
#
# Three ways to answer without a network: the *place* that was right most often
# in training, for each first word of a question; the longest *known answer*
# to such a question that occurs in the passage; and, of the *likeliest
# sentence*, the one that has most words of the question, the longest run of
# words that the question does not have.
#
# An answer is exactly right (exact match) where both ends are, or where there
# is none and none was found. The word F1 forgives a word too many or too few.
# Spans count as in work on slots of dialogues, all questions together, where
# half a span is as wrong as none: precision and recall of the spans found, and
# their F1. `answer_scores.py` has the definitions.

# %%
baselines = {
    "frequent place": FrequentPlace(train),
    "known answer": KnownAnswer(train),
    "likeliest sentence": LikeliestSentence(),
}
SHOWN = "exact match", "word F1", "span F1", "none precision", "none recall"
results = {}


def report(way, part, found):
    """Scores answers, prints one line, and keeps the result."""
    questions = {"validation": validation, "test": test}[part]
    results.setdefault(part, {})[way] = result = scores(found, questions)
    print(f"{way:<20}" + "".join(f"{result[name]:15.1%}" for name in SHOWN))


print(f"{'on the test set':<20}" + "".join(f"{name:>15}" for name in SHOWN))
for way, baseline in baselines.items():
    report(way, "test", [baseline(question) for question in test])

# %% [markdown]
# ## Question and passage in one row
#
# The model reads both at once, T places in a row:
#
#     [words of the question] separator [words of the passage] padding
#
# The label is two places, those of the first and of the last word of the
# answer, counted from 1, so that (0, 0) is left for "no answer". An answer may
# lie in the passage only; `answerable` says where that is.
#
# Which places are question and which are passage? To the attention a word is a
# word, wherever it stands. So each place has a segment, whose vector is added
# to that of the word, as in BERT (Devlin et al. 2019, sec. 3.1): 0 for the
# question, 1 for the passage, and 2 for a word of the passage that the question
# has, too (Chen et al. 2017, <https://arxiv.org/abs/1704.00051>, sec. 3.2).
# Exercise 4 takes them away.

# %%
table = QuestionTable.of_questions(train, run.least, run.characters)
inputs, labels = table.encode(train[:4]), table.labels(train[:4])
B, T = inputs["token_ids"].shape
assert inputs["answerable"].shape == (B, T) and labels.shape == (B, 2)
for row, question in enumerate(train[:4]):
    ids = inputs["token_ids"][row]
    begins = len(question.asked) + 1
    assert ids[begins - 1] == SEPARATOR
    assert inputs["answerable"][row].sum() == len(question.passage)
    segments = inputs["segment_ids"][row]
    assert (segments[:begins] == ASKED).all()
    for word, segment in zip(question.passage, segments[begins:], strict=False):
        assert (segment == SHARED) == (
            word.lower() in map(str.lower, question.asked)
        )
    if question.span is not None:
        first, last = labels[row] - 1
        assert question.answer == words_of(
            question.passage, (first - begins, last - begins)
        )
print(table.vocabulary_size, "ids;", ids[: begins + 4], "...", labels[row])

# %% [markdown]
# Rows of like length share a batch. With `UNKNOWN=0.1` a word in ten loses its
# id whenever it is trained on and keeps its characters: for real text, where
# the answer often is a name that was never seen.


# %%
def make_batch(rows, length, draw=None):
    """Returns the inputs and labels of a batch, (B, T) and (B, 2)."""
    inputs = table.encode(rows, length)
    if draw is not None and run.unknown:
        tokens = inputs["token_ids"]
        lost = draw.random(tokens.shape) < run.unknown
        inputs["token_ids"] = np.where(lost & (tokens > SEPARATOR), 1, tokens)
    return inputs, table.labels(rows)


def row_length(question):
    """Returns how many places a question and its passage take."""
    return len(question.asked) + 1 + len(question.passage)


batches, validation_batches = (
    LengthBatches(
        part,
        list(map(row_length, part)),
        run.batch,
        make,
        buckets=run.buckets,
        seed=run.seed,
    )
    for part, make in (
        (train, make_batch),
        (validation, lambda rows, length, draw: make_batch(rows, length)),
    )
)
print(f"{len(batches)} batches of {run.batch}, lengths {batches.lengths}")

# %% [markdown]
# ## The model
#
# An encoder gives each word a vector $h_i$ that depends on the whole row. Two
# dense layers turn it into the logits of a start and of an end, and the mean
# $\bar h$ of all vectors into those of "no answer", which stands at place 0:
#
# $$s_i = w_s^\top h_i + b_s, \qquad e_i = w_e^\top h_i + b_e, \qquad
# s_0 = v_s^\top \bar h + c_s, \qquad e_0 = v_e^\top \bar h + c_e$$
#
# $$p_{\mathrm{start}}(i) = \frac{\exp s_i}{\sum_k \exp s_k}, \qquad
# p_{\mathrm{end}}(j) = \frac{\exp e_j}{\sum_k \exp e_k}$$
#
# over 0 and the places of the passage (after Devlin et al. 2019,
# <https://arxiv.org/abs/1810.04805>, sec. 4.2 and 4.3). The loss is the
# cross-entropy of both, $-\log p_{\mathrm{start}}(i) -
# \log p_{\mathrm{end}}(j)$, halved.

# %%
encoder = Encoder(
    table.vocabulary_size,
    num_segments=len(SEGMENTS),
    num_layers=run.layers,
    num_heads=max(1, run.width // 32),
    hidden_dim=run.width,
    intermediate_dim=4 * run.width,
    dropout=run.dropout,
    normalize_first=True,
    character_vocabulary_size=table.character_vocabulary_size,
)
model = SpanExtractor(encoder, dropout=run.dropout)
shapes = {name: part.shape for name, part in inputs.items()}
assert model.compute_output_shape(shapes) == (B, 2, 1 + T)
print(f"{model.count_params():,} parameters")

# %% [markdown]
# ## Training
#
# The learning rate rises and falls as in Vaswani et al. 2017, and at the end
# the weights are averaged over the last few snapshots. Every few hundred steps
# a backup is written; the same command goes on from there.

# %%
schedule = WarmupSchedule(run.width, run.warmup, run.scale)
model.compile(
    keras.optimizers.Adam(schedule, beta_2=0.98, epsilon=1e-9),
    SequenceCrossentropy(pad_id=-1),  # 0 is a label like any other
    metrics=[TokenAccuracy(pad_id=-1)],
)
pairs = [(" ".join(q.asked), " ".join(q.passage)) for q in train]
settings = repair_program.identity(run, pairs)
try:
    average = CheckpointAverage(
        num_checkpoints=4, save_freq=max(1, len(batches) // 8)
    )
    backup = TrainingBackup(
        run.out / "backup",
        [average],
        save_freq=run.backup,
        data=batches,
        settings=settings,
        resume=not run.fresh,
    )
except ValueError as error:
    program_settings.explain_and_leave(
        "answers", f"{error}. FRESH=1 starts anew."
    )
history = model.fit(
    batches,
    epochs=run.epochs,
    shuffle=False,  # the batches do it
    validation_data=validation_batches,
    callbacks=[backup],
    verbose=2,
).history

# %% alt="Two panels over the epochs: loss falls, accuracy of places rises"
figure = Figure(figsize=(9, 3), layout="constrained")
for panel, name, says in zip(
    figure.subplots(1, 2),
    ("loss", "token_accuracy"),
    ("loss (nats a place)", "places that are right"),
    strict=True,
):
    epochs = np.arange(len(history[name])) + 1
    panel.plot(epochs, history[name], "o-", label="training")
    panel.plot(epochs, history[f"val_{name}"], "s-", label="validation")
    panel.set(xlabel="epoch", ylabel=says)
    panel.legend()
figure.savefig(run.out / "training.png", dpi=150)
figure

# %% [markdown]
# ## The best legal span
#
# An answer must not end before it begins, nor be longer than m words, the
# longest answer in training:
#
# $$(\hat\imath, \hat\jmath) =
# \mathrm{argmax}_{\,1 \le i \le j < i + m}\; s_i + e_j, \qquad
# \mathrm{score} = s_{\hat\imath} + e_{\hat\jmath} - (s_0 + e_0)$$
#
# The score is in nats. There is an answer where it is above 0: where the best
# span is likelier than none. By hand, with two loops, and by `best_spans`
# inside `read`:

# %%
longest = max(q.span[1] - q.span[0] + 1 for q in train if q.span)  # m


def best_by_hand(log_start, log_end):
    """Returns the best (first, last) and its score, from (1 + P,) each."""
    legal = [
        (i, j)
        for i in range(1, len(log_start))
        for j in range(i, min(i + longest, len(log_end)))
    ]
    i, j = max(legal, key=lambda ij: log_start[ij[0]] + log_end[ij[1]])
    score = log_start[i] + log_end[j] - log_start[0] - log_end[0]
    return (i - 1, j - 1), score


for one in read(model, table, validation[:20], longest, run.batch):
    span, score = best_by_hand(np.log(one.start), np.log(one.end))
    assert span == one.span and abs(score - one.score) < 1e-3
print(f"answers of up to {longest} words; {span}, score {score:.2f} nats")

# %% [markdown]
# A passage of our own, and questions about it. Two things are done to two
# boxes by two men; only the words between them tell who did what.

# %%
tall, young = (Thing("the", which, "man") for which in ("tall", "young"))
red, black = (Thing("the", which, "box") for which in ("red", "black"))
keys = Thing("the", None, "key", plural=True)
garden, table_of_wood = (
    Thing("the", None, noun) for noun in ("garden", "table")
)
facts = [
    Fact(tall, "open", red, place=("in", garden)),
    Fact(young, "close", black),
    Fact(keys, "be", place=("on", table_of_wood)),
]
passage, _ = phrase_passages.write(facts)
showcase = [
    Question(asked.split(), passage, None)
    for asked in (
        "who opened the red box",
        "what did the young man close",
        "where did the tall man open the red box",
        "where are the keys",
        "who opened the black box",
        "where did the young man close the black box",
    )
]
if run.data:
    with_answer = max(test[:500], key=lambda q: len(q.passage))
    showcase = [q for q in test if q.passage == with_answer.passage][:5]

# %% alt="Strips of heat over a passage: where the answers begin and end"
readings = read(model, table, showcase, longest, run.batch)
for question, one in zip(showcase, readings, strict=True):
    assert one.start.shape == one.end.shape == (1 + len(question.passage),)
    text = words_of(question.passage, decide([one])[0]) or "(no answer)"
    print(f"{' '.join(question.asked)}? {text}   score {one.score:.1f}")
figure = plot_strips(showcase, readings)
figure.savefig(run.out / "strips.png", dpi=150)
figure

# %% [markdown]
# It declines one too many: where the keys are stands in the passage.
#
# ## How good it is

# %%
validation_readings = read(model, table, validation, longest, run.batch)
test_readings = read(model, table, test, longest, run.batch)
print(f"{'':<20}" + "".join(f"{name:>15}" for name in SHOWN))
report("validation", "validation", decide(validation_readings))
for way in baselines:
    row = results["test"][way]
    print(f"{way:<20}" + "".join(f"{row[name]:15.1%}" for name in SHOWN))
report("the model, test", "test", decide(test_readings))
if not run.quick:
    best = max(results["test"][way]["span F1"] for way in baselines)
    assert results["test"]["the model, test"]["span F1"] > best + 0.2

# %% [markdown]
# ## How sure must it be?
#
# An answer is given where its score is above a threshold. At 0 the model says
# what is likelier. A program that must not say anything wrong asks for more,
# one that only marks what a person will check for less: fewer questions are
# declined, and more answers are wrong. The threshold is chosen on the
# validation questions, never on those of the test.

# %% alt="Precision, recall and exact match over the threshold of no answer"
scored = sorted(one.score for one in validation_readings)
thresholds = np.unique(np.quantile(scored, np.linspace(0, 1, 41)).round(2))
thresholds = np.union1d(thresholds, [0.0])
curve = [
    scores(decide(validation_readings, threshold), validation)
    for threshold in thresholds
]
aim = "span F1" if run.data else "exact match"
# Of equally good thresholds the one that is nearest to 0.
threshold = float(
    max(
        zip(thresholds, curve, strict=True),
        key=lambda pair: (pair[1][aim], -abs(pair[0])),
    )[0]
)
figure = Figure(figsize=(7, 3.4), layout="constrained")
axes = figure.subplots()
for name, style in (
    ("none precision", "--"),
    ("none recall", ":"),
    (aim, "-"),
):
    axes.plot(thresholds, [one[name] for one in curve], style, label=name)
axes.axvline(threshold, color="gray", linewidth=0.8)
axes.set(xlabel="threshold (nats)", ylabel="on validation questions")
axes.legend()
figure.savefig(run.out / "threshold.png", dpi=150)
figure

# %%
print(f"threshold with the best {aim}: {threshold:.2f} nats")
print(f"{'':<20}" + "".join(f"{name:>15}" for name in SHOWN))
report("test, threshold 0", "test", decide(test_readings))
report("test, this one", "test", decide(test_readings, threshold))
results["threshold"], results["longest"] = threshold, longest
recall = [one["none recall"] for one in curve]
assert recall == sorted(recall)  # a higher threshold never declines less

# %% [markdown]
# ## Where it looked
#
# To answer, words of the question have to find their like in the passage, and
# words of the passage have to learn what was asked. Attention weights are
# captured in one pass over the row: from each word of the question (a row) to
# each word of the passage (a column), in the block in which they look there
# most. What is missing to 1 went to the question itself and the separator. Do
# not expect each word on its like: here *who* looks at *garden*.

# %% alt="Weights from the question to the passage, one map for each head"
question = showcase[0]
with capture_weights() as captured:
    model(table.encode([question]))
asked, begins = len(question.asked), len(question.asked) + 1
maps = {
    path: keras.ops.convert_to_numpy(weights)[0, :, :asked, begins:]
    for (path, _), weights in captured.items()
}
path = max(maps, key=lambda path: maps[path].sum())
assert maps[path].shape[1:] == (asked, len(question.passage))
figure = plot_attention(
    maps[path],
    query_tokens=question.asked,
    key_tokens=question.passage,
    title=f"From the question to the passage: {path}",
)
figure.savefig(run.out / "attention.png", dpi=150)
figure

# %% [markdown]
# ## Keeping it
#
# The model, its words, and what was measured. They load on any backend. A
# saved model answers lines, each a question, a tab and a passage.


# %%
def keep():
    """Writes the model and what was measured so far."""
    model.save(run.out / "model.keras")
    table.save(run.out / "words.json")
    (run.out / "results.json").write_text(
        json.dumps(results, indent=1), encoding="utf-8"
    )


results |= {
    "backend": keras.backend.backend(),
    "parameters": model.count_params(),
    "loss": history,
    "settings": {name: str(value) for name, value in run._asdict().items()},
}
keep()
lines = [
    f"{' '.join(question.asked)}?\t{' '.join(question.passage)}"
    for question in (showcase[0], showcase[-1])
]
questions = [answers_lines.question_of(line) for line in lines]
texts = answers_lines.answer(model, table, questions, longest, threshold)
for line, text in zip(lines, texts, strict=True):
    print(f"{line}\n  -> {text}")
print(f"The model is in {run.out}, with pictures: MODEL={run.out} answers")
if run.data:  # The rest is about the phrase grammar.
    backup.remove()
    raise SystemExit(0)

# %% [markdown]
# ## When names change places
#
# Does the model read who did it, or does it know who usually does such things?
# In each of these passages two subjects change places. Nothing else is touched,
# and the question stays the same word by word: the answer has to move along.

# %%
changed = phrase_passages.exchanged(facts, 0, 1)
now, _ = phrase_passages.write(changed)
for words in (passage, now):
    question = Question(showcase[0].asked, words, None)
    (one,) = read(model, table, [question], longest, run.batch)
    print(f"{' '.join(words)}\n  -> {words_of(words, one.span)}")

draw = random.Random(run.seed)
moved = [exchanged_names(draw) for _ in range(8 if run.quick else 400)]
before, after = map(list, zip(*moved, strict=True))
for question, again in moved:
    assert question.asked == again.asked
    assert sorted(question.passage) == sorted(again.passage)
    assert question.answer != again.answer
found = [
    decide(read(model, table, part, longest, run.batch))
    for part in (before, after)
]
right = [
    [span == q.span for span, q in zip(spans, part, strict=True)]
    for spans, part in zip(found, (before, after), strict=True)
]
both = np.all(right, axis=0).mean()
print(
    f"{len(moved)} passages: right before {np.mean(right[0]):.1%}, "
    f"after {np.mean(right[1]):.1%}, both {both:.1%}"
)
results["names change places"] = float(both)
if not run.quick:
    assert both > 0.7

# %% [markdown]
# ## Copying: a question with a slip
#
# People do not ask as a test set does: *who opened the red no wait the black
# box*. What happens to the answers then, and can it be repaired? The wrong
# words come from the passage, which makes it hard: they are just what one could
# have asked.
#
# A `Transformer` reads the disfluent question and writes the one that was
# meant. Nearly all words of that stand in the source, and most of them are
# rare. So only the most frequent words have an id of their own. The others get
# numbers, "the first one", "the second one", and the target is written with the
# same numbers (the copyable model of Luong et al. 2015,
# <https://arxiv.org/abs/1410.8206>, sec. 3.1). A word that was never seen is
# copied like any other. In training the numbers are drawn anew each time.

# %%
slips = repair_program.grammar_pairs(run, (train, validation, test))
repairer, repair_history, repair_backup = train_repairer(
    slips[0], slips[1], run, settings
)
sources, targets = map(list, zip(*slips[2], strict=True))
numbers = repairer.table.numbers(sources[0])
print("\n" + " ".join(sources[0]), "  numbers:", numbers)
print("source", repairer.table.encode(sources[0], numbers))
print("target", repairer.table.encode(targets[0], numbers))

# %%
repaired = repairer.repair(sources)
results["repair"] = compare(sources, targets, repaired)
for way, found in results["repair"].items():
    print(
        f"{way:<15} exact match {found['exact match']:6.1%}   "
        f"BLEU {found['BLEU']:5.2f}"
    )
for source, said in list(zip(sources, repaired, strict=True))[:4]:
    print(f"  {' '.join(source)}\n    -> {' '.join(said)}")
if not run.quick:
    ways = results["repair"]
    assert ways["repaired"]["BLEU"] > ways["copied"]["BLEU"] + 10
    assert ways["repaired"]["exact match"] > 0.8

# %% [markdown]
# BLEU flatters whoever copies: most words of a disfluent question are right.
# Exact match does not.
#
# To copy is to point as well. The weights from each word that is written to
# the words of the source, mean of the heads of the last block:

# %% alt="Weights from the words of the repaired question to the disfluent one"
chosen = min(
    range(len(sources)),
    key=lambda n: (repaired[n] != targets[n], abs(len(sources[n]) - 12)),
)
numbers = repairer.table.numbers(sources[chosen])
source_ids = repairer.table.encode(sources[chosen], numbers)
(source_row, target_row), _ = repairer.table.batch(
    [(sources[chosen], repaired[chosen])],
    max(len(source_ids), len(repaired[chosen])) + 1,
)
S, L = len(source_ids) + 1, len(repaired[chosen]) + 1
with capture_weights() as captured:
    repairer.model((source_row[:, :S], target_row[:, :L]))
cross = [weights for key, weights in captured.items() if "cross" in key[0]]
weights = keras.ops.convert_to_numpy(cross[-1])[0].mean(axis=0)
assert weights.shape == (L, S)
figure = plot_attention(
    weights,
    query_tokens=[*repaired[chosen], "</s>"],
    key_tokens=[*sources[chosen], "</s>"],
    title="Copying, word by word",
)
figure.savefig(run.out / "copying.png", dpi=150)
figure

# %% [markdown]
# And the answers? The same test questions as they were meant, with the slip,
# and repaired:

# %%
print(f"{'':<20}" + "".join(f"{name:>15}" for name in SHOWN))
for way, asked in (
    ("as meant", targets),
    ("with a slip", sources),
    ("repaired", repaired),
):
    # A repairer that says nothing at all leaves one unknown word.
    questions = [
        q._replace(asked=words or ["?"])
        for q, words in zip(test, asked, strict=True)
    ]
    spans = decide(read(model, table, questions, longest, run.batch), threshold)
    report(way, "test", spans)
if not run.quick:
    slipped, mended = (
        results["test"][way]["exact match"]
        for way in ("with a slip", "repaired")
    )
    assert mended > slipped + 0.05

# %% [markdown]
# Now that all of it is safe, the backups may go.

# %%
keep()
repairer.save(run.out)
for one in (backup, repair_backup):
    one.remove()
print(f"""Both models are in {run.out}.

What to try next, each in front of .venv/bin/python tutorials/answers.py:
  MODEL={run.out}               answer what you type
  MODEL={run.out} INPUT=FILE    answer the lines of a file
  MODEL={run.out} TASK=repair   repair what you type
  DATA=train_0.json,test.json              learn from RESTAURANTS-8K
  DATA=train.json,test.json TASK=repair    learn from Disfl-QA""")

# %% [markdown]
# ## Exercises
#
# **1.** Fill in. A question has 4 words, its passage 20, and the row is padded
# to T = 32. The logits have shape (1, 2, ___); ___ of the places hold -1e9 in
# both rows. The answer is the first word of the passage alone; its label is
# (___, ___). There are ___ legal spans if an answer may have up to 3 words.
#
# <details markdown>
# <summary>Answer</summary>
#
# 33: "no answer" and 32 places. Of these 12 hold -1e9: 4 words of the question,
# the separator and 7 places of padding. The row has 4 words and a separator in
# front of the passage, and labels count from 1: (6, 6). 20 spans of one word,
# 19 of two, 18 of three: 57.
#
# </details>
#
# **2.** p(start) is 0.5 at word 3 and 0.4 at word 7, p(end) is 0.6 at word 4
# and 0.3 at word 2, all else is near 0, and "no answer" has 0.1 in both. Which
# span is found, and with which score? What would two separate argmaxes say
# if p(end) were 0.3 at word 4 and 0.6 at word 2?
#
# <details markdown>
# <summary>Answer</summary>
#
# Words 3 to 4, with $\ln(0.5 \cdot 0.6) - \ln(0.1 \cdot 0.1) = 3.4$ nats. The
# argmaxes would say 3 to 2, which is no span; the best legal one is still 3 to
# 4, with $\ln 15 = 2.7$ nats.
#
# </details>
#
# **3.** The threshold is raised from 0 to 2 nats. What happens to the recall of
# "no answer", to the recall of spans, to the precision of spans? Which of the
# three can go either way?
#
# <details markdown>
# <summary>Answer</summary>
#
# More questions are declined, so the recall of "no answer" can only rise and
# the recall of spans only fall. The precision of spans can go either way: it
# rises if the answers that were given up were wrong more often than the rest,
# as one hopes.
#
# </details>
#
# **4.** What do the segments do? Let `_segments` in `question_table.py` return
# zeros, and train again.
#
# <details markdown>
# <summary>Answer</summary>
#
# The same model, with the same questions and steps, was right on 51 % of the
# validation questions after six epochs, and on 96 % with segments. To match a
# word of the passage with the question, attention has to look for the same word
# in the question only. Without segments it also finds it where it stands
# itself, and in the sentences beside it, which share their words.
#
# </details>
#
# To try: `LAYERS=1` leaves the model one look. A word of the passage then
# knows what the question says, but not yet what its own sentence says. Which
# questions does it still answer?
