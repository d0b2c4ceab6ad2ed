# %% [markdown]
# # Extractive question answering
#
# In this tutorial you train an encoder that reads a question and a text, and
# predicts the first and the last word of the answer, or that the text has none.
# The figure shows its predictions for four questions about one text. The last
# question has no answer, and its prediction is wrong:
#
# ![Heat maps of the probabilities of the first and the last word of the answer,
# for four questions](answers-2.png)
#
# **You will learn** how question and text become one row of tokens, how the
# logits and the loss of a `SpanExtractor` are computed, how the best valid span
# is found, how answers are scored as in SQuAD, and how to choose a threshold
# for "no answer".
#
# **Prerequisites**: [Encoder and decoder, block by block](
# ../blocks/index.md). **Time**: about 4 minutes on one CPU core.
#
# **Published result**: BERT-large, pre-trained and then fine-tuned, reaches an
# F1 of 83.1 on the test set of SQuAD 2.0 (Devlin et al. 2019,
# <https://arxiv.org/abs/1810.04805>, section 4.3), whose texts are from
# Wikipedia. The model below has about half a million parameters, is not
# pre-trained, and reads generated texts of about 300 different words, so its F1
# of 87.5 is not comparable. On dialogues in which people book a table, a model
# of this library [finds spans with an F1 of 72.4](
# ../../results/question_answering.md).

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

import itertools
from collections import Counter

import keras
import matplotlib.pyplot as plt
import numpy as np

from keras_attn import datasets, explain, text, training
from keras_attn.models import Encoder, SpanExtractor, best_spans

keras.utils.set_random_seed(1)
to_numpy = keras.ops.convert_to_numpy
print(f"Keras {keras.__version__} on {keras.backend.backend()}")

# %% [markdown]
# ## Questions
#
# The texts have two to four sentences that share their words: two people do the
# same thing, or one person does two things. Some questions have no answer, and
# these use the words of the text too. So it is not enough to find the words of
# the question in the text. The test questions are about combinations of noun
# and adjective that do not occur in training.

# %%
sizes = {"train": 12_000, "validation": 500, "test": 1000}
if QUICK:
    sizes = {"train": 96, "validation": 24, "test": 24}
train, validation, test = (
    datasets.make_questions(n, seed=1, split=split)
    for split, n in sizes.items()
)
print(train[0].context)
for question in train:
    if question.context == train[0].context:
        answers = [answer.text for answer in question.answers]
        print("  ", question.question, "->", *answers or ["(no answer)"])
share = np.mean([not question.answers for question in train])
print(f"{share:.0%} of {len(train):,} questions have no answer")
assert 0.2 < share < 0.5

# %% [markdown]
# ### Scores
#
# An exact match has the same words as the correct answer. F1 also counts
# partial answers. The precision is the proportion of words of the prediction
# that are in the reference, and the recall that of words of the reference that
# are in the prediction. With c common words, and $n$ and $n'$ words in the two
# texts, they are $c / n$ and $c / n'$:
#
# $$F_1 = \frac{2 \cdot \mathrm{precision} \cdot \mathrm{recall}}
# {\mathrm{precision} + \mathrm{recall}} = \frac{2 c}{n + n'}$$
#
# As in the evaluation of SQuAD (Rajpurkar et al. 2018,
# <https://arxiv.org/abs/1806.03822>), *a*, *an* and *the* are ignored, and the
# prediction for a question without answer must be empty.


# %%
def f1(prediction, reference):
    """Returns the F1 of two texts with at least one word each."""
    first, second = (
        Counter(w for w in line.split() if w not in {"a", "an", "the"})
        for line in (prediction, reference)
    )
    return 2 * (first & second).total() / (first.total() + second.total())


pair = "in the red garden", "the garden"
assert np.isclose(f1(*pair), text.squad_scores(pair[0], [pair[1]]).f1)
print(f"{pair[0]!r} for {pair[1]!r}: F1 = {f1(*pair):.2f}")

# %% [markdown]
# ## One row of tokens
#
# `question_windows` makes one row of question and text:
#
#     [question] end [text] padding
#
# A word has the same embedding in the question and in the text. Therefore each
# token has a segment, whose embedding is added to that of the token, as in
# BERT: 0 for the question, 1 for the text, and 2 for words of the text that are
# also in the question (Chen et al. 2017, <https://arxiv.org/abs/1704.00051>,
# section 3.2). The labels are the positions of the first and of the last token
# of the answer, counted from 1; (0, 0) means "no answer".

# %%
lines = [line for question in train for line in question[:2]]
tokenizer = text.SubwordTokenizer.train_from_lines(
    list(dict.fromkeys(lines)), vocabulary_size=1500
)
V = tokenizer.vocabulary_size
windows = text.question_windows(train, tokenizer)
shown = next(window for window in windows if window.span)
pieces, (first, last) = tokenizer.pieces(shown.token_ids), shown.span
labels = text.pad_windows([shown])[1][0]
print("tokens  ", *pieces)
print("segments", *shown.segment_ids)
print("labels  ", *labels, "->", *pieces[first : last + 1])
assert labels.tolist() == [first + 1, last + 1]
question = train[shown.index]
start, end = shown.offsets[first][0], shown.offsets[last][1]
assert question.context[start:end] == question.answers[0].text

# %%
batches = training.BucketedDataset(
    windows,
    [len(window.token_ids) for window in windows],
    lambda windows, length, rng: text.pad_windows(windows, length),
    batch_size=32,
    num_buckets=1 if QUICK else 3,
    seed=1,
)
inputs, labels = batches[0]
B, T = inputs["token_ids"].shape
assert inputs["answerable"].shape == (B, T) and labels.shape == (B, 2)
print(f"{len(batches)} batches; the first has the shape {(B, T)}")

# %% [markdown]
# ## Model
#
# The encoder computes a vector $h_i$ for each token, which depends on the whole
# row. A dense layer computes two logits from it: $\mathrm{start}_i$, that the
# answer starts here, and $\mathrm{end}_i$, that it ends here. Position 0 is "no
# answer"; its logits are computed from the mean $\bar h$ of all tokens:
#
# $$[\mathrm{start}_i; \mathrm{end}_i] = h_i W + b, \qquad
# [\mathrm{start}_0; \mathrm{end}_0] = \bar h W' + b'$$
#
# Only position 0 and the tokens of the text can be chosen; all others have the
# logit $-10^9$. The probabilities are $p_\mathrm{start} =
# \mathrm{softmax}(\mathrm{start})$ over all positions, and $p_\mathrm{end}$ in
# the same way. BERT uses the vector of `[CLS]` instead of the mean.

# %%
D = 96
encoder = Encoder(
    V,
    num_layers=3,
    num_heads=3,
    hidden_dim=D,
    intermediate_dim=4 * D,
    dropout=0.05,
    normalize_first=True,
    num_segments=3,
)
model = SpanExtractor(encoder, dropout=0.05)
logits = to_numpy(model(inputs))
assert logits.shape == (B, 2, 1 + T)

# %%
w = {weight.path: to_numpy(weight) for weight in model.weights}
parts = {k: x for k, x in inputs.items() if k != "answerable"}
h = to_numpy(encoder(parts))
is_token = inputs["token_ids"] != 0
mean = (h * is_token[..., None]).sum(1) / is_token.sum(1, keepdims=True)
none = mean @ w["no_answer/kernel"] + w["no_answer/bias"]
by_hand = h @ w["token/kernel"] + w["token/bias"]
by_hand = np.where(inputs["answerable"][..., None], by_hand, -1e9)
by_hand = np.concatenate([none[:, None], by_hand], axis=1).swapaxes(1, 2)
np.testing.assert_allclose(logits, by_hand, rtol=1e-4, atol=1e-4)
print(f"{model.count_params():,} parameters; the logits of NumPy agree")

# %% [markdown]
# ## Training
#
# For the labels i and j, the loss is the mean of two cross-entropies:
#
# $$\mathrm{loss} = -\tfrac{1}{2} \big(\log p_\mathrm{start}(i) +
# \log p_\mathrm{end}(j)\big)$$

# %%
loss = training.SequenceCrossentropy(pad_id=-1)  # 0 is a label, not padding
log_p = to_numpy(keras.ops.log_softmax(logits))
by_hand = -np.take_along_axis(log_p, labels[..., None], -1).mean()
np.testing.assert_allclose(float(loss(labels, logits)), by_hand, rtol=1e-4)

epochs = 1 if QUICK else 4
steps = epochs * len(batches)
schedule = keras.optimizers.schedules.CosineDecay(
    0.0, steps, warmup_target=2e-3, warmup_steps=max(1, steps // 8)
)
optimizer = keras.optimizers.Adam(
    schedule, beta_2=0.98, epsilon=1e-9, clipnorm=1.0
)
model.compile(optimizer, loss)
progress = training.TrainingProgress()
history = model.fit(
    batches, epochs=epochs, shuffle=False, callbacks=[progress], verbose=0
)

# %% tags=["hide-input"] alt="The loss falls from about 3 to about 0.4 nats per label"
figure = explain.plot_training(progress.losses, ylabel="loss (nats per label)")
figure.set_figheight(2.4)
figure

# %% [markdown]
# ## The best span
#
# An answer must not end before it begins, and must not be longer than L tokens,
# the longest answer in the training data. Its score compares it with "no
# answer", in nats:
#
# $$(\hat\imath, \hat\jmath) = \mathrm{argmax}_{\,1 \le i \le j < i + L}\;
# \mathrm{start}_i + \mathrm{end}_j$$
#
# $$\mathrm{score} = \mathrm{start}_{\hat\imath} + \mathrm{end}_{\hat\jmath} -
# (\mathrm{start}_0 + \mathrm{end}_0)$$

# %%
L = max(w.span[1] - w.span[0] + 1 for w in windows if w.span)


def best_by_hand(start, end):
    """Returns (first, last, score) from logits (1 + T,)."""
    total, i, j = max(
        (start[i] + end[j], i, j)
        for i in range(1, len(start))
        for j in range(i, min(i + L, len(end)))
    )
    return i - 1, j - 1, total - start[0] - end[0]


logits = model.predict_on_batch(inputs)
spans = best_spans(logits, L, threshold=-np.inf)  # always an answer
for row in range(8):
    first, last, score = best_by_hand(*logits[row].astype("float64"))
    assert (first, last) == (spans.start[row], spans.end[row])
    np.testing.assert_allclose(score, spans.score[row], atol=1e-3)
print(f"L = {L} tokens; the best spans agree")


# %%
def read(questions):
    """Returns the best spans as text, their scores, and p (B, 2, 1 + T)."""
    windows = text.question_windows(questions, tokenizer)
    longest = max(len(window.token_ids) for window in windows)
    inputs, _ = text.pad_windows(windows, -(-longest // 32) * 32)
    logits = model.predict(inputs, batch_size=50, verbose=0)
    spans = best_spans(logits, L, threshold=-np.inf)
    texts = [
        question.context[window.offsets[i][0] : window.offsets[j][1]]
        for question, window, i, j in zip(
            questions, windows, spans.start, spans.end, strict=True
        )
    ]
    p = np.exp(logits - logits.max(-1, keepdims=True))
    return texts, spans.score, p / p.sum(-1, keepdims=True)


def decide(texts, scores, threshold=0.0):
    """Returns the answers whose score reaches the threshold, else ''."""
    return np.where(scores >= threshold, texts, "").tolist()


# %%
CONTEXT = (
    "the tall man opened the red box in the garden . "
    "the young man closed the black box ."
)
ASKED = {
    "who opened the red box": "the tall man",
    "what did the young man close": "the black box",
    "where did the tall man open the red box": "in the garden",
    "who opened the black box": "",
}
mine = [datasets.Question(asked, CONTEXT, ()) for asked in ASKED]
texts, scores, p = read(mine)
answers = decide(texts, scores)
for asked, found, score in zip(ASKED, answers, scores, strict=True):
    print(f"{asked}? {found or '(no answer)'}   score {score:.1f}")
if not QUICK:
    assert sum(map(str.__eq__, answers, ASKED.values())) >= 3

# %% tags=["hide-input"] alt="Four heat maps with two rows each: the probability of the first and the last word of the answer over the words of the text and none; each row has one bright cell, and none is never chosen"
rows = text.question_windows(mine, tokenizer)
figure, axes = plt.subplots(4, 1, figsize=(10, 4), layout="constrained")
for row, question, p_row, axis in zip(rows, mine, p, axes, strict=True):
    begin = row.segment_ids.index(next(filter(None, row.segment_ids)))
    stop = len(row.token_ids)
    shown = p_row[:, [0, *range(begin + 1, stop + 1)]]
    words = ["(none)", *tokenizer.pieces(row.token_ids[begin:stop])]
    image = axis.imshow(shown, cmap="cividis", vmin=0, vmax=1, aspect="auto")
    axis.set_yticks([0, 1], ["first", "last"])
    axis.set_xticks([])
    axis.set_title(question.question, fontsize=10, loc="left")
axes[-1].set_xticks(range(len(words)), words, rotation=60, ha="right")
figure.colorbar(image, ax=axes, label="probability")
plt.show()

# %% [markdown]
# The last question has no answer: the text says who closed the black box, not
# who opened it. In this run, the model predicts *the young man*, who closed it,
# and this wrong answer has the highest score of the four.
#
# ## Results
#
# We compare the model with two baselines. The first never answers. The second
# takes the sentence that shares most words with the question, and in it the
# longest run of words that are not in the question. The last two columns are
# the exact match of questions with and without an answer. Below are the first
# two errors; *(no answer)* means that the model predicts no answer, or that the
# text has none.


# %%
def nearest_sentence(question):
    """Returns a run of words of one sentence, without a model."""
    asked = {*question.question.split()}
    sentences = question.context.removesuffix(" .").split(" . ")
    best = max(map(str.split, sentences), key=lambda part: len(asked & {*part}))
    runs = itertools.groupby(best, lambda word: word in asked)
    new = [[*words] for is_asked, words in runs if not is_asked]
    return " ".join(max(new, key=len, default=[]))


def evaluate(name, questions, predictions):
    """Prints mean scores, and returns the exact match of each question."""
    references = [[a.text for a in question.answers] for question in questions]
    exact, f1s = np.array([*map(text.squad_scores, predictions, references)]).T
    has_answer = np.array([*map(bool, references)])
    with_answer, without = exact[has_answer].mean(), exact[~has_answer].mean()
    print(
        f"{name:16} exact {exact.mean():6.1%}  F1 {f1s.mean():6.1%}"
        f"  with answer {with_answer:6.1%}  without {without:6.1%}"
    )
    return exact


# %%
texts, scores, _ = read(test)
answers = decide(texts, scores)
nothing = evaluate("no answer", test, [""] * len(test))
nearest = evaluate("nearest sentence", test, [*map(nearest_sentence, test)])
ours = evaluate("this model", test, answers)

errors = np.flatnonzero(ours == 0)
for i in errors[:2]:
    correct = [answer.text for answer in test[i].answers] or ["(no answer)"]
    print(test[i].context)
    print(f"  {test[i].question}? {answers[i] or '(no answer)'}", end="")
    print(f", correct: {correct[0]}")
print(f"{len(errors)} errors in {len(test):,} questions")
if not QUICK:
    assert ours.mean() > max(nothing.mean(), nearest.mean()) + 0.3

# %% [markdown]
# ## Threshold for answering
#
# With a threshold above 0, the model answers fewer questions, and with one
# below 0 more. We choose the threshold with the highest mean F1 on the
# validation questions (the gray line). On the test questions, it is not better
# than 0: more questions with an answer are right, but fewer without.

# %%
found, found_scores, _ = read(validation)
references = [[a.text for a in question.answers] for question in validation]
threshold = text.squad_threshold(found, found_scores.tolist(), references)
evaluate(f"threshold {threshold:.2f}", test, decide(texts, scores, threshold))
is_right = evaluate("always answered", test, texts) > 0
has_answer = np.array([bool(question.answers) for question in test])
thresholds = np.linspace(-10, 10, 41)
answered = scores[:, None] >= thresholds
with_answer = (is_right[:, None] & answered)[has_answer].mean(0)
without = (~answered)[~has_answer].mean(0)
assert (np.diff(with_answer) <= 0).all() and (np.diff(without) >= 0).all()

# %% tags=["hide-input"] alt="Two curves over the threshold: exact match of questions with an answer falls, of questions without an answer rises; a gray line at -1.04"
figure, axis = plt.subplots(figsize=(6, 2.6), layout="constrained")
axis.plot(thresholds, with_answer, label="with an answer")
axis.plot(thresholds, without, label="without an answer")
axis.axvline(threshold, color="0.5", linewidth=0.8)
axis.set(xlabel="threshold (nats)", ylabel="exact match", ylim=(0, 1.02))
axis.legend()
plt.show()

# %% [markdown]
# ## Exchanged names
#
# We exchange two names in a text. The question and the set of words stay the
# same, but the answer changes. A model that ignores the order of the words
# answers both texts alike, so it is right for at most half of the texts.

# %%
NAMES = "the tall king", "my teacher", "the kind uncle", "the young man"
THINGS = "the red box", "the old book", "my large bag", "the black door"
pairs = itertools.product(
    itertools.permutations(NAMES, 2), itertools.permutations(THINGS, 2)
)
swapped = [
    datasets.Question(
        f"who opened {x}", f"{a} opened {x} . {b} opened {y} .", ()
    )
    for (a, b), (x, y) in [*pairs][:: 12 if QUICK else 1]
]
found = read(swapped)[0]
is_right = [
    question.context.startswith(f"{name} opened")
    for question, name in zip(swapped, found, strict=True)
]
print(f"{swapped[0].context} {swapped[0].question}? {found[0]}")
print(f"{np.mean(is_right):.1%} of {len(swapped)} texts are answered correctly")
if not QUICK:
    assert np.mean(is_right) > 0.7

# %% [markdown]
# ### Disfluent questions
#
# People correct themselves while they speak: *who opened the red no wait the
# black box* (Gupta et al. 2021, <https://arxiv.org/abs/2106.04016>). The wrong
# words are from the text, and the model was not trained on such questions. We
# compare its answers with those to the intended questions.

# %%
n = 24 if QUICK else 500
slips = datasets.make_disfluent_questions(n, seed=1, split="test")
meant, spoken = (
    [datasets.Question(getattr(slip, name), slip.context, ()) for slip in slips]
    for name in ("question", "disfluent")
)
meant, spoken = (decide(*read(part)[:2]) for part in (meant, spoken))
is_same = np.array(meant) == np.array(spoken)
for i in is_same.argmax(), is_same.argmin():
    print(slips[i].disfluent, "(same)" if is_same[i] else "(other answer)")
print(f"{np.mean(is_same):.1%} of {len(slips)} answers are the same")
if not QUICK:
    assert np.mean(is_same) < 0.9

# %% [markdown]
# Half of the answers change. A model for spoken questions should be trained on
# some of this kind; `make_disfluent_questions` generates them.
#
# [`examples/answer.py`](../../install.md#other-tasks) trains on SQuAD's files
# or on dialogues, divides long texts into windows, and answers typed questions.
#
# ## Summary
#
# - Question and text are one row; segments tell them apart.
# - Two softmaxes over the tokens predict the first and the last token of the
#   answer; position 0 means "no answer".
# - The best valid span maximizes the sum of both logits.
# - A threshold on its score decides whether to answer; choose it on validation
#   data.
#
# ## Exercises
#
# **1.** Fill in the gaps. A question has 4 tokens, its text 20, and the row is
# padded to T = 32. The logits have the shape (1, 2, ...); ... of the positions
# have -1e9 in both rows. The answer is the first token of the text only; its
# labels are (..., ...). With answers of up to 3 tokens, there are ... valid
# spans.
#
# <details markdown>
# <summary>Answer</summary>
#
# 33: "no answer" and 32 tokens. 12 of them have -1e9: 4 tokens of the question,
# the end token and 7 of padding. 5 tokens precede the text and labels count
# from 1: (6, 6). 20 spans of one token, 19 of two, 18 of three: 57.
#
# </details>
#
# **2.** p(start) is 0.5 at token 3 and 0.4 at token 7, p(end) is 0.6 at token 4
# and 0.3 at token 2, and "no answer" has 0.1 in both. Which span is found, with
# which score? What would two separate maxima give if p(end) were 0.3 at token 4
# and 0.6 at token 2?
#
# <details markdown>
# <summary>Answer</summary>
#
# Tokens 3 to 4, with $\ln(0.5 \cdot 0.6) - \ln(0.1 \cdot 0.1) = 3.4$ nats. The
# separate maxima would be 3 and 2, which is not a span; the best valid span is
# still 3 to 4, with $\ln 15 = 2.7$ nats.
#
# </details>
#
# **3.** The threshold is raised from 0 to 2 nats. What happens to the exact
# match of questions with and without an answer, and of all questions?
#
# <details markdown>
# <summary>Answer</summary>
#
# More questions are declined: the exact match can only rise without an answer,
# and only fall with one. For all questions, it can rise or fall.
#
# </details>
#
# **4.** Why does the model need the segments? Train it with
# `inputs["segment_ids"]` set to 0, but with the same mask `answerable`.
#
# <details markdown>
# <summary>Answer</summary>
#
# To match a word of the text with the question, attention has to look for the
# same word in the question only. Without segments, it also finds the word
# itself and its copies in other sentences. Compare the exact match after the
# same number of steps.
#
# </details>
#
# **Next**: [BERT from scratch](../bert/index.md) pre-trains an encoder on
# unlabeled text.
