"""Train, use and evaluate a Transformer encoder that answers questions.

    python examples/answer.py train --data train-v2.0.json dev-v2.0.json
    python examples/answer.py predict --input questions.tsv
    python examples/answer.py evaluate

An answer is a part of a text, the context, or there is none. `--data` takes one
JSON file of SQuAD, which is split, or two for training and test. With `--format
restaurants8k` it takes dialogues, and the name of each slot is a question about
a turn. Without `--data`, `train` uses synthetic questions, or dialogues.
"""

import argparse
import collections
import functools
import json
import math
import os
import pathlib
import re
import string
import sys

LAYERS, BATCH, BUCKETS = 3, 32, 3  # blocks, rows, shapes of batches
RATE, WARMUP = 2e-3, 300  # highest learning rate, steps
VOCABULARY = 8000  # subwords
LOWEST = -1e9  # score
QUESTION, CONTEXT, SHARED = range(3)  # segments; SHARED: words of both
WORD = re.compile(r"\d+|[^\W\d_]+|[^\w\s]|_")
SYNTHETIC = {"train": 12_000, "validation": 600, "test": 1500}
QUICK = {"train": 128, "validation": 32, "test": 32}


def parse_arguments():
    """Returns the arguments of the command line."""
    style = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=style)
    commands = parser.add_subparsers(dest="command", required=True)

    def command(name, text):
        style = argparse.ArgumentDefaultsHelpFormatter
        sub = commands.add_parser(name, help=text, formatter_class=style)
        add = sub.add_argument
        out, backends = "runs/answer", ["jax", "tensorflow", "torch"]
        add("--out", type=pathlib.Path, default=out, help="model folder")
        add("--backend", choices=backends, help="Keras backend")
        return add

    kind = {"choices": ["squad", "restaurants8k"], "default": "squad"}
    add = command("train", "train a model on questions and answers")
    add("--data", nargs="+", metavar="FILE", help="else synthetic questions")
    add("--format", **kind, help="format of --data")
    add("--width", type=int, default=96, help="features of a word")
    add("--dropout", type=float, default=0.1, help="dropout rate")
    add("--max-length", type=int, default=384, help="subwords of a row")
    add("--epochs", type=int, help="at most 12, or 1 with --quick")
    add("--minutes", type=float, default=60, help="time limit")
    add("--seed", type=int, default=1, help="random seed")
    add("--quick", action="store_true", help="a few steps, as a test")
    add("--resume", action="store_true", help="continue after an interruption")
    add = command("predict", "answer questions of a file, or typed questions")
    add("--input", metavar="FILE", help="else typed lines")
    text = "lowest score of an answer; else chosen by `train`"
    add("--threshold", type=float, help=text)
    add = command("evaluate", "compute exact match and F1")
    add("--data", metavar="FILE", help="else the test set of `train`")
    add("--format", **kind, help="format of --data")
    add("--threshold", type=float, help=text)
    return parser.parse_args()


def slot_questions(turns):
    """Returns a question for each slot of each turn: "time requested date"."""
    from keras_attn.datasets import Answer, Question

    questions = []
    names = sorted({slot.name for turn in turns for slot in turn.slots})
    for text, requested, slots in turns:
        for name in names:
            words = [name, *(["requested", *requested] if requested else [])]
            answers = [Answer(*slot[1:]) for slot in slots if slot.name == name]
            question = " ".join(words).replace("_", " ")
            questions.append(Question(question, text, tuple(answers)))
    return questions


def read_questions(path, name):
    """Reads questions, or dialogues as questions."""
    from keras_attn import datasets

    if name == "squad":
        return datasets.read_squad(path)
    return slot_questions(datasets.read_restaurants8k(path))


def load_splits(arguments):
    """Returns the questions of each split, by name."""
    from keras_attn import datasets

    if arguments.data:
        parts = [read_questions(p, arguments.format) for p in arguments.data]
        train, validation, test = datasets.split_by_hash(
            parts[0], key=lambda question: question.context
        )
        if len(parts) > 1:
            train, test = train + test, parts[1]
        splits = dict(zip(SYNTHETIC, (train, validation, test), strict=True))
    else:
        make, change = datasets.make_questions, list
        if arguments.format != "squad":
            make, change = datasets.make_dialogues, slot_questions
        splits = {
            split: change(make(n, seed=arguments.seed, split=split))
            for split, n in SYNTHETIC.items()
        }
    if arguments.quick:
        splits = {name: splits[name][:n] for name, n in QUICK.items()}
    counts = [f"{len(part):,} {name}" for name, part in splits.items()]
    print(", ".join(counts), "questions")
    if not all(any(q.answers for q in part) for part in splits.values()):
        raise ValueError(f"{arguments.data} leaves no answer for a split.")
    return splits


def make_rows(tokenizer, questions, max_length):
    """Returns rows for the model: (question, window, span, number).

    `question` and `window` are lists of (match of a word, id of a subword). A
    long context has several windows. `span` are the indices of the first and
    last subword of the answer in the window, or None.
    """
    rows = []

    @functools.lru_cache
    def subwords(text):
        words = [*WORD.finditer(text)]
        ids = tokenizer.encode([word[0].lower() for word in words])
        return [(w, i) for w, row in zip(words, ids, strict=True) for i in row]

    for number, (question, context, answers) in enumerate(questions):
        question = subwords(question)[: max_length // 2]
        context, size = subwords(context), max_length - len(question) - 1
        start = answers[0].start if answers else math.inf
        end = start + len(answers[0].text) if answers else 0
        answer = [
            i
            for i, (word, _) in enumerate(context)
            if word.start() < end and word.end() > start
        ]
        step = max(1, size // 2)
        for first in range(0, max(1, len(context) - size + step), step):
            span = None
            if answer and first <= answer[0] and answer[-1] < first + size:
                span = answer[0] - first, answer[-1] - first
            window = context[first : first + size]
            rows.append((question, window, span, number))
    return rows


def row_length(row):
    """Returns the number of ids of a row."""
    return len(row[0]) + 1 + len(row[1])


def encode(tokenizer, rows, length, random=None):
    """Returns the inputs of the model, and the labels: int32 (B, 2)."""
    import numpy as np

    token_ids = np.full((len(rows), length), tokenizer.pad_id, "int32")
    segment_ids = np.full_like(token_ids, QUESTION)
    labels = np.zeros((len(rows), 2), "int32")  # (0, 0): no answer
    for i, (question, window, span, _) in enumerate(rows):
        ids = [*(i for _, i in question), tokenizer.end_id]
        begin, shared = len(ids), {word[0].lower() for word, _ in question}
        ids += [i for _, i in window]
        token_ids[i, : len(ids)] = ids
        segment_ids[i, begin : len(ids)] = [
            SHARED if word[0].lower() in shared else CONTEXT
            for word, _ in window
        ]
        if span is not None:
            labels[i] = np.add(span, begin + 1)  # counted from 1
    inputs = {"token_ids": token_ids, "segment_ids": segment_ids}
    return inputs | {"answerable": segment_ids != QUESTION}, labels


def make_batches(records, lengths, encode, size, buckets, seed):
    """Returns batches of `size` records of similar length, in random order.

    All batches of a bucket have one shape; the last one is filled up with other
    records. The order depends on the epoch, which `TrainingBackup` sets.
    """
    import keras
    import numpy as np

    quantiles = np.arange(1, buckets + 1) / buckets
    limits = np.unique(np.quantile(lengths, quantiles, method="higher"))
    numbers = np.searchsorted(limits, lengths)

    class Batches(keras.utils.PyDataset):
        def set_epoch(self, epoch):
            random = np.random.default_rng((seed, epoch))
            self.epoch, batches = epoch, []
            for number, length in enumerate(limits):
                rows = random.permutation(np.flatnonzero(numbers == number))
                rows = np.resize(rows, (-(-len(rows) // size), size))
                batches += [(int(length), row) for row in rows]
            # On TensorFlow, Keras takes an axis for constant if it has the same
            # size in the first two batches: their buckets must differ.
            middle = batches[1:-1]
            random.shuffle(middle)
            self.batches = batches[:1] + batches[1:][-1:] + middle

        def __len__(self):
            return len(self.batches)

        def __getitem__(self, index):
            length, rows = self.batches[index]
            random = np.random.default_rng((seed, self.epoch, index))
            return encode([records[row] for row in rows], length, random)

    batches = Batches()
    batches.set_epoch(0)
    return batches


def load(folder, threshold):
    """Loads the model, the tokenizer and the settings of a training."""
    import keras

    from keras_attn.text import SubwordTokenizer

    if not (folder / "model.keras").is_file():
        raise ValueError(f"{folder} has no model; `train` writes one.")
    model = keras.saving.load_model(folder / "model.keras", compile=False)
    tokenizer = SubwordTokenizer.load(folder / "tokenizer.model")
    settings = json.loads((folder / "settings.json").read_text("utf-8"))
    if threshold is not None:
        settings["threshold"] = threshold
    return model, tokenizer, settings


def read(model, tokenizer, settings, questions, size=32):
    """Returns the best answer to each question and its score, in nats.

    The score is the log-probability of the first and the last subword, minus
    that of "no answer".
    """
    import numpy as np

    from keras_attn.models import best_spans

    found = [("", LOWEST)] * len(questions)
    rows = make_rows(tokenizer, questions, settings["max_length"])
    rows = sorted((row for row in rows if row[1]), key=row_length)
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        # Few shapes, because each is compiled.
        length = -(-row_length(part[-1]) // 32) * 32
        filled = part + part[:1] * (min(len(rows), size) - len(part))
        inputs, _ = encode(tokenizer, filled, length)
        logits = np.array(model.predict_on_batch(inputs))
        no_answer = logits[:, :, 0].sum(1)
        logits[:, :, 0] = -math.inf
        first, last, _ = best_spans(logits, settings["longest"])
        for i, (question, window, _, number) in enumerate(part):
            score = logits[i, 0, 1 + first[i]] + logits[i, 1, 1 + last[i]]
            score = float(score - no_answer[i])
            if score > found[number][1]:
                begin = window[first[i] - len(question) - 1][0]
                end = window[last[i] - len(question) - 1][0]
                text = begin.string[begin.start() : end.end()]
                found[number] = text, score
    return found


def compare(text, answers):
    """Returns the exact match and the F1 of SQuAD's evaluation script."""

    def words(text):
        text = "".join(c for c in text.lower() if c not in string.punctuation)
        return re.sub(r"\b(a|an|the)\b", " ", text).split()

    results, found = [], words(text)
    expectations = [words(answer.text) for answer in answers]
    # An answer such as "the" has no words.
    for expected in [*filter(None, expectations)] or [[]]:
        common = collections.Counter(expected) & collections.Counter(found)
        total = len(expected) + len(found)
        f1 = 2 * common.total() / total if total else 1
        results.append((expected == found, f1))
    return max(results)


def choose_threshold(questions, readings):
    """Returns the threshold with the highest F1, of several that nearest 0."""
    import numpy as np

    scores = np.array([score for _, score in readings])
    # What each answer gains or loses, compared with no answer.
    gains = np.array(
        [
            compare(text, question.answers)[1] - (not question.answers)
            for question, (text, _) in zip(questions, readings, strict=True)
        ]
    )
    candidates = [0, LOWEST, *np.quantile(scores, np.linspace(0, 1, 101))]
    best = max(candidates, key=lambda t: (gains[scores >= t].sum(), -abs(t)))
    return float(best)


def print_scores(settings, questions, readings):
    """Prints and returns exact match and F1, in percent."""
    groups = {"all": [], "answerable": [], "unanswerable": [], "answered": []}
    for (*_, answers), (text, score) in zip(questions, readings, strict=True):
        is_given = score >= settings["threshold"]
        result = compare(text if is_given else "", answers)
        groups["all"].append(result)
        groups["answerable" if answers else "unanswerable"].append(result)
        groups["answered"] += [result] if is_given else []
    scores = {}
    for name, results in groups.items():
        count = len(results)
        exact, f1 = (
            100 * sum(result[i] for result in results) / max(1, count)
            for i in (0, 1)
        )
        print(f"{name}: exact match {exact:.2f}, F1 {f1:.2f} of {count:,}")
        scores[name] = {"exact": exact, "f1": f1, "questions": count}
    return scores


def train(arguments):
    """Trains a model, saves it, and scores it on the test questions."""
    import keras

    from keras_attn import training
    from keras_attn.explain import plot_attention, plot_training
    from keras_attn.models import Encoder, SpanExtractor
    from keras_attn.text import SubwordTokenizer

    out, width, layers, epochs = arguments.out, arguments.width, LAYERS, 12
    if arguments.quick:
        width, layers, epochs = 32, 1, 1
    epochs = arguments.epochs or epochs
    if (out / "backup").exists() and not arguments.resume:
        raise ValueError(
            f"{out} has an interrupted training: continue it with --resume, or "
            f"remove {out / 'backup'}."
        )
    out.mkdir(parents=True, exist_ok=True)
    keras.utils.set_random_seed(arguments.seed)
    splits = load_splits(arguments)
    texts = dict.fromkeys(text for q in splits["train"] for text in q[:2])
    lines = [" ".join(WORD.findall(text.lower())) for text in texts]
    tokenizer = SubwordTokenizer.train_from_lines(lines, VOCABULARY)
    rows, validation_rows = (
        make_rows(tokenizer, splits[name], arguments.max_length)
        for name in ("train", "validation")
    )
    longest = max(1 + span[1] - span[0] for _, _, span, _ in rows if span)
    settings = {"max_length": arguments.max_length, "longest": longest}

    def batches_of(rows):
        return make_batches(
            rows,
            [*map(row_length, rows)],
            functools.partial(encode, tokenizer),
            BATCH,
            1 if arguments.quick else BUCKETS,
            arguments.seed,
        )

    batches = batches_of(rows)
    encoder = Encoder(
        tokenizer.vocabulary_size,
        num_layers=layers,
        num_heads=max(1, width // 32),
        hidden_dim=width,
        intermediate_dim=4 * width,
        dropout=arguments.dropout,
        normalize_first=True,
        num_segments=3,
        pad_id=tokenizer.pad_id,
    )
    model = SpanExtractor(encoder, dropout=arguments.dropout)
    print(f"{model.count_params():,} parameters")
    scale = RATE * (width * WARMUP) ** 0.5
    schedule = training.WarmupSchedule(width, WARMUP, scale)
    model.compile(
        keras.optimizers.Adam(schedule, beta_2=0.98, epsilon=1e-9),
        training.SequenceCrossentropy(pad_id=-1),  # 0 is "no answer".
    )
    progress = training.TrainingProgress(arguments.minutes)
    often = max(1, len(batches) // 4)
    average = training.CheckpointAverage(4, save_freq=often, validate=True)
    backup = training.TrainingBackup(
        out / "backup",
        [progress, average, keras.callbacks.EarlyStopping(patience=3)],
        save_freq=min(200, len(batches)),
        data=batches,
        settings={"width": width, "rows": len(rows), "seed": arguments.seed},
    )
    with backup.interruptible():
        model.fit(
            batches,
            epochs=epochs,
            shuffle=False,  # `make_batches` shuffles.
            validation_data=batches_of(validation_rows),
            callbacks=[backup],
            verbose=0,
        )

    model.save(out / "model.keras")
    tokenizer.save(out / "tokenizer.model")
    reader = model, tokenizer, settings
    readings = read(*reader, splits["validation"])
    settings["threshold"] = choose_threshold(splits["validation"], readings)
    (out / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    test = splits["test"]
    articles = []
    for i, (question, context, answers) in enumerate(test):
        row = {"id": str(i), "question": question, "is_impossible": not answers}
        row["answers"] = [{"text": t, "answer_start": n} for t, n in answers]
        articles.append({"paragraphs": [{"context": context, "qas": [row]}]})
    text = json.dumps({"version": "2.0", "data": articles}, indent=1)
    (out / "test.json").write_text(text, encoding="utf-8")
    unit = "loss (nats per position)"
    figure = plot_training(progress.losses, progress.validation, ylabel=unit)
    figure.savefig(out / "training.png", dpi=150)
    # Where the answer to a question begins and ends.
    row = make_rows(tokenizer, test[:1], arguments.max_length)[0]
    inputs, _ = encode(tokenizer, [row], row_length(row))
    shown = keras.ops.softmax(model.predict_on_batch(inputs)[0])
    # Without the question: the context comes last.
    words = ["(no answer)", *(word[0] for word, _ in row[1])]
    shown = keras.ops.convert_to_numpy(shown)[:, [0, *range(1 - len(words), 0)]]
    figure = plot_attention(shown, ["begin", "end"], words, title=test[0][0])
    figure.axes[0].set(xlabel="", ylabel="")
    figure.axes[1].set_ylabel("probability")
    figure.savefig(out / "answer.png", dpi=150)
    print(f"The threshold of the score is {settings['threshold']:.2f}.")
    results = {
        "scores": print_scores(settings, test, read(*reader, test)),
        "minutes": progress.seconds / 60,
        "batches": len(progress.losses),
        "validation_loss": average.best_loss,
        "parameters": model.count_params(),
        "arguments": {k: str(v) for k, v in vars(arguments).items()},
    }
    text = json.dumps(results, indent=1)
    (out / "results.json").write_text(text + "\n", encoding="utf-8")
    backup.remove()
    print(f"\nThe model, training.png and answer.png are in {out}. Next:")
    print(f"  python {sys.argv[0]} predict --out {out}")


def parse_lines(lines):
    """Yields a question and its text for each line that is a question.

    A line is `question<tab>text`. Or a text comes first, questions about it
    follow, and an empty line ends them.
    """
    context = ""
    for line in map(str.strip, lines):
        question, _, text = line.partition("\t")
        if text or (line and context):
            yield question, text or context
        else:
            context = line


def predict(arguments):
    """Answers the questions of a file, or typed in the terminal."""
    from keras_attn import datasets

    reader = load(arguments.out, arguments.threshold)
    if not arguments.input:
        if sys.stdin.isatty():
            print(
                "Type a text, then questions about it; an empty line ends it."
            )
        groups = ([pair] for pair in parse_lines(sys.stdin))
    elif ".json" in pathlib.Path(arguments.input).suffixes:
        groups = [[q[:2] for q in datasets.read_squad(arguments.input)]]
    else:
        groups = [[*parse_lines(datasets.read_lines(arguments.input))]]
    for pairs in groups:
        questions = [datasets.Question(*pair, ()) for pair in pairs]
        readings = read(*reader, questions)
        for (question, _), (text, score) in zip(pairs, readings, strict=True):
            if score < reader[-1]["threshold"]:
                text = "(no answer)"
            print(question, text, f"{score:.2f}", sep="\t", flush=True)


def evaluate(arguments):
    """Computes exact match and F1 on questions."""
    reader = load(arguments.out, arguments.threshold)
    if arguments.data:
        questions = read_questions(arguments.data, arguments.format)
    else:
        questions = read_questions(arguments.out / "test.json", "squad")
    print_scores(reader[-1], questions, read(*reader, questions))


def main():
    """Runs the command; prints errors in one line."""
    arguments = parse_arguments()
    if arguments.backend:
        os.environ["KERAS_BACKEND"] = arguments.backend
    commands = {"train": train, "predict": predict, "evaluate": evaluate}
    try:
        commands[arguments.command](arguments)
    except (ImportError, OSError, ValueError) as error:
        sys.exit(f"{sys.argv[0]}: {error}")
    except KeyboardInterrupt:
        if arguments.command == "train":
            command = " ".join(sys.argv).removesuffix(" --resume")
            print(f"\nContinue with: python {command} --resume")
        sys.exit(130)


if __name__ == "__main__":
    main()
