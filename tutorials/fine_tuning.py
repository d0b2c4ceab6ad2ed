# %% [markdown]
# # Fine-tuning: one encoder, four tasks
#
# What a model has learned by guessing hidden words, is it of use for anything
# else? Put a small head on it, and train both a little.
#
# ![Scores of four tasks, each with a pre-trained encoder and with one that
# starts from nothing](fine_tuning-1.png)
#
# Every pair of bars is one network, trained alike on the same few examples. All
# that differs is what its weights were to begin with.
#
# You will
#
# - put **four heads** on one encoder: a class for a sentence, a class for a
#   pair, a span that answers, a tag for every word (Devlin et al. 2019, sec. 4,
#   <https://arxiv.org/abs/1810.04805>);
# - see what each head **reads and says**, with shapes;
# - fine-tune from [BERT's](../bert/index.md) weights and from **nothing**, and
#   compare;
# - train **less than all**: a head alone, its own rate for each layer, low-rank
#   adapters.
#
# Nine minutes on one core. The tasks are written by a grammar; nothing is
# downloaded. As a program, on any backend:
#
#     KERAS_BACKEND=torch .venv/bin/python tutorials/fine_tuning.py
#
# With `PRETRAINED=` it begins with the model of your own run of the tutorial on
# BERT; with `DATA=` it learns CLINC150, MED, RESTAURANTS-8K and WNUT-17, and
# what it makes of them is [here](../../fine_tuning/README.md):
#
#     PRETRAINED=runs/bert-data DATA=data .venv/bin/python \
#         tutorials/fine_tuning.py

# %%
import json

import corpora
import fine_tuning_settings
import keras
import mask_lines
import numpy as np
import program_settings
import tuning_data
import tuning_runs
from documents import passage_documents, sentence_documents
from masked_batches import masked_batches
from matplotlib.figure import Figure

from keras_attn.layers import RotaryPosition
from keras_attn.models import Bert, BertPretrainer
from keras_attn.text import WordPieceTokenizer, sentence_pairs
from keras_attn.training import (
    SequenceCrossentropy,
    enable_lora,
    freeze,
    unfreeze,
)

try:
    run = fine_tuning_settings.read()
    if run.data:
        tasks = tuning_data.of_folder(run.data)
    else:
        tasks = tuning_data.of_grammar(run.examples, run.seed)
    tasks = {
        name: tasks[name] for name in run.tasks.split(",") if name in tasks
    }
    if not tasks:
        raise ValueError(
            f"DATA must hold one of TASKS. Received: TASKS={run.tasks}"
        )
    if run.pretrained:
        pretrainer, tokenizer = mask_lines.load(run.pretrained)
except (corpora.CorpusError, ValueError) as error:
    program_settings.explain_and_leave("fine_tuning", error)

keras.utils.set_random_seed(run.seed)
run.out.mkdir(parents=True, exist_ok=True)
results = {"backend": keras.backend.backend(), "tasks": {}}
# What is asserted of trained models is so with the settings of this page.
WHOLE = fine_tuning_settings.is_default(run)
print(f"Keras {keras.__version__} on {keras.backend.backend()}")

# %% [markdown]
# ## An encoder that has guessed hidden words
#
# As in [BERT from scratch](../bert/index.md), in short: documents, pieces,
# pairs, one `fit` on both tasks. Half of the documents are passages, half are
# sentences of all patterns of the grammar; what they say has no labels.

# %%
if not run.pretrained:
    documents = passage_documents(run.passages, run.seed + 1000)
    documents += sentence_documents(run.passages, run.seed + 2000)
    tokenizer = WordPieceTokenizer.train_from_lines(
        [sentence for document in documents for sentence in document], 800
    )
    pretrainer = BertPretrainer(
        Bert(
            tokenizer.vocabulary_size,
            num_layers=run.layers,
            num_heads=4,
            hidden_dim=run.width,
            intermediate_dim=4 * run.width,
            dropout=0.0,
            attention_dropout=0.0,
            positions=None,
            position=RotaryPosition(),
        )
    )
    pairs = sentence_pairs(
        [tokenizer.encode(document) for document in documents], 37, run.seed
    )
    batches = masked_batches(pairs, tokenizer, 40, 32, run.seed)
    steps = run.epochs * len(batches)
    pretrainer.compile(
        keras.optimizers.AdamW(
            keras.optimizers.schedules.CosineDecay(
                0.0, steps, warmup_target=2e-3, warmup_steps=1 + steps // 10
            ),
            global_clipnorm=1.0,
        ),
        {
            "token_logits": SequenceCrossentropy(pad_id=-1),
            "next_sentence_logits": keras.losses.SparseCategoricalCrossentropy(
                from_logits=True
            ),
        },
    )
    pretrainer.fit(batches, epochs=run.epochs, shuffle=False, verbose=2)
encoder = pretrainer.encoder
V, D = encoder.vocabulary_size, encoder.hidden_dim
print(f"V = {V:,}, D = {D}, {encoder.count_params():,} parameters")

# %% [markdown]
# ## Four tasks
#
# | head | reads | says | scored by |
# | --- | --- | --- | --- |
# | sentence | `[CLS]` a `[SEP]` | a class | accuracy |
# | pair | `[CLS]` a `[SEP]` b `[SEP]` | a class | accuracy |
# | span | `[CLS]` question `[SEP]` text `[SEP]` | both ends | F1 of spans |
# | tokens | `[CLS]` words `[SEP]` | a tag a word | F1 of entities |
#
# Each head is one matrix: $\mathrm{class} = \tanh(h_0 W' + b')\, W$,
# $\mathrm{start}_i, \mathrm{end}_i = h_i W$, $\mathrm{tag}_i = h_i W$, with h
# the encoder's vectors (B, T, D).

# %%
for name, data in tasks.items():
    inputs, labels = data.task.encode(data.train[:4], tokenizer, run.length)
    model = data.task.model(tuning_runs.copied(encoder))
    outputs = model(inputs)
    B, T = inputs["token_ids"].shape
    print(f"--- {name}: {len(data.train):,} examples to learn from,", end=" ")
    print(f"{len(data.test):,} to be tested on")
    row = (tokenizer.vocabulary[i] for i in inputs["token_ids"][0])
    print(" ", *(piece for piece in row if piece != "[PAD]"))
    print(f"  answer: {data.train[0][-1]}")
    print(f"  inputs {(B, T)}, labels {labels.shape}", end=", ")
    print(f"outputs {tuple(outputs.shape)}")
    expected = {
        "sentence": (B, len(getattr(data.task, "classes", ()))),
        "pair": (B, len(getattr(data.task, "classes", ()))),
        "span": (B, 2, T),
        "tokens": (B, T, len(getattr(data.task, "tags", ()))),
    }
    assert tuple(outputs.shape) == expected[name]

# %% [markdown]
# ## With and without
#
# Both arms are the same network with the same head, the same examples in the
# same order, the same passes. Where several learning rates are given, each arm
# takes the one that is best for it on validation examples, and then the test is
# looked at once a seed.

# %%
rates = fine_tuning_settings.numbers(run.rates)
shares = fine_tuning_settings.numbers(run.shares)
passes = fine_tuning_settings.numbers(run.passes)
for name, data in tasks.items():
    results["tasks"][name] = {"measure": data.task.measure, "shares": {}}
    for share, count in zip(shares, passes, strict=True):
        print(f"{name}: {share:.0%} of the examples, {count:.0f} passes")
        found = tuning_runs.compare(
            data, encoder, tokenizer, run, share, int(count), rates
        )
        results["tasks"][name]["shares"][f"{share:g}"] = found
        for arm, result in found.items():
            scores = np.array(result["scores"])
            print(
                f"  {arm:<12} {data.task.measure} {scores.mean():.1%}"
                + (
                    f" ± {scores.std(ddof=1):.1%} over {len(scores)} seeds"
                    if len(scores) > 1
                    else ""
                )
            )
    # What is known so far is kept, whatever stops the rest.
    (run.out / "results.json").write_text(
        json.dumps(results, indent=1), encoding="utf-8"
    )

# %% alt="Scores of each task, pre-trained and from nothing"
figure = Figure(figsize=(9, 3.4), layout="constrained")
panel = figure.subplots()
bars = [
    (name, share, found)
    for name, task in results["tasks"].items()
    for share, found in task["shares"].items()
]
for number, arm in enumerate(("pre-trained", "from nothing")):
    scores = [np.array(found[arm]["scores"]) for *_, found in bars]
    spread = [x.std(ddof=1) if len(x) > 1 else 0 for x in scores]
    drawn = panel.bar(
        np.arange(len(bars)) + 0.4 * number - 0.2,
        [x.mean() for x in scores],
        0.38,
        yerr=spread if any(spread) else None,
        label=arm,
    )
    panel.bar_label(drawn, [f"{x.mean():.0%}" for x in scores])
panel.set_xticks(
    range(len(bars)),
    [
        f"{name}\n{results['tasks'][name]['measure']}"
        + (f"\n{float(share):.0%} of the examples" if len(shares) > 1 else "")
        for name, share, _ in bars
    ],
)
panel.set(ylim=(0, 1.15), ylabel="on the test")
panel.legend(ncols=2, loc="upper center")
figure

# %% [markdown]
# What guessing has taught is which words are alike and how sentences are built.
# Two hundred examples are too few to learn that as well: so the patterns of
# sentences are told apart far better. Where that is not what is missing,
# nothing is gained. Who did what where stands in the order of the words, and
# both learn it; of pairs both find most of what follows. And to answer
# questions takes more than two hundred examples from either, as in
# [the tutorial on answers](../answers/index.md).
#
# ## Less than all
#
# All weights of a large model need not move. Three other ways, on the first
# task: the **head alone** (the encoder is frozen); **smaller steps for lower
# layers** (the rate falls from block to block, Howard and Ruder 2018,
# <https://arxiv.org/abs/1801.06146>); **low-rank adapters** beside the frozen
# matrices of queries and values, $xW + xAB$ (Hu et al. 2022,
# <https://arxiv.org/abs/2106.09685>).

# %%
if run.ways:
    name, data = next(iter(tasks.items()))
    results["ways"] = {}
    for way in ("all weights", "head alone", "lower rates below", "adapters"):
        keras.utils.set_random_seed(run.seed)
        model = data.task.model(tuning_runs.copied(encoder))
        decay, rate = 1.0, rates[0]
        if way == "head alone":
            freeze(model)
            unfreeze(model, "^(output|token|no_answer)/")
            rate *= 10  # few weights, of which none is to be kept
        elif way == "adapters":
            enable_lora(model, 4, also_train="^(output|token|no_answer)/")
            rate *= 10
        elif way == "lower rates below":
            decay = 0.7
        tuning_runs.train(
            model,
            data,
            data.train[: run.most or None],
            tokenizer,
            run,
            rate,
            int(passes[0]),
            run.seed,
            decay,
        )
        score = data.task.score(model, data.test, tokenizer, run.length)
        moved = sum(int(np.prod(w.shape)) for w in model.trainable_weights)
        results["ways"][way] = {"score": score, "weights": moved}
        print(
            f"{name}, {way:<18} {moved:>9,} weights learn, "
            f"{data.task.measure} {score:.1%}"
        )

# %% [markdown]
# ## What should hold
#
# With the settings of this page:

# %%
if WHOLE:
    means = {
        arm: np.mean(
            [
                task["shares"]["1"][arm]["scores"]
                for task in results["tasks"].values()
            ]
        )
        for arm in ("pre-trained", "from nothing")
    }
    assert means["pre-trained"] > means["from nothing"]
    ways = results["ways"]
    assert ways["head alone"]["weights"] < ways["adapters"]["weights"]
    assert ways["adapters"]["weights"] < 0.1 * ways["all weights"]["weights"]

# %% [markdown]
# ## Keeping it

# %%
results["settings"] = {k: str(v) for k, v in run._asdict().items()}
(run.out / "results.json").write_text(
    json.dumps(results, indent=1), encoding="utf-8"
)
program = ".venv/bin/python tutorials/fine_tuning.py"
print(f"""
All figures are in {run.out / "results.json"}.

What to try next, with {program} behind it:
  EXAMPLES=50                     fewer examples of each task
  SEEDS=5 RATES=3e-4,1e-3,3e-3    both arms with their best rate, five seeds
  PRETRAINED=runs/bert-data DATA=data
                                  people's sentences""")

# %% [markdown]
# ## Exercises
#
# **1.** Fill in. For a sentence of 12 pieces with `[CLS]` and `[SEP]` the
# encoder gives a tensor of the shape ___; the class is made of ___ of its
# numbers. A tagger with seven tags gives ___ logits, and its loss counts
# those of ___.
#
# <details markdown>
# <summary>Answer</summary>
#
# (1, 12, D). D of them, the first vector. 12 x 7 = 84; those of the first piece
# of each word: `[CLS]`, `[SEP]` and pieces that begin with `##` have no label.
#
# </details>
#
# **2.** `[CLS]` is also where a span points that does not exist. Why is that no
# waste of a place? What is compared to decide that there is no answer?
#
# <details markdown>
# <summary>Answer</summary>
#
# No answer ever begins or ends at `[CLS]`, so that place is free to mean
# "none". Its start plus its end, against the best start plus end with the end
# not in front of the start.
#
# </details>
#
# **3.** A new head on a pre-trained encoder begins at random. What happens to
# the encoder in the first steps if the rate is high from the start? Name two
# things on this page that prevent it.
#
# <details markdown>
# <summary>Answer</summary>
#
# The gradients that reach it come through a head that knows nothing, and large
# steps along them undo what was learned. The rate rises from 0 over the first
# tenth; lower layers can be given smaller rates, or be frozen altogether.
#
# </details>
