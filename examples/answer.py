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
import json
import math
import os
import pathlib
import re
import sys

import numpy as np

LAYERS, BATCH, BUCKETS = 3, 32, 3  # blocks, rows, shapes of batches
RATE, WARMUP = 2e-3, 300  # highest learning rate, steps
VOCABULARY, LONGEST = 8000, 30  # subwords; of an answer, as in BERT's code
WORD = re.compile(r"\d+|[^\W\d_]+|[^\w\s]|_")
SYNTHETIC = {"train": 12_000, "validation": 600, "test": 1500}
QUICK = {"train": 128, "validation": 32, "test": 32}
# Options that may change when a training is resumed.
FREE = {"backend", "command", "epochs", "minutes", "out", "resume"}


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


def read_questions(path, name):
    """Reads questions, or dialogues as questions."""
    from keras_attn import datasets

    if name == "squad":
        return datasets.read_squad(path)
    return datasets.slot_questions(datasets.read_restaurants8k(path))


def load_splits(arguments):
    """Returns the questions of each split, by name."""
    from keras_attn import datasets

    sizes = QUICK if arguments.quick else SYNTHETIC
    if arguments.data:
        parts = [read_questions(p, arguments.format) for p in arguments.data]
        splits = datasets.split_by_hash(parts[0], key=lambda q: q.context)
        if len(parts) > 1:
            splits = splits[0] + splits[2], splits[1], parts[1]
    else:
        make, change = datasets.make_questions, list
        if arguments.format != "squad":
            make, change = datasets.make_dialogues, datasets.slot_questions
        options = [{"n": n, "split": s} for s, n in sizes.items()]
        splits = [change(make(seed=arguments.seed, **x)) for x in options]
    splits = dict(zip(sizes, splits, strict=True))
    if arguments.quick:
        splits = {name: splits[name][:n] for name, n in sizes.items()}
    counts = [f"{len(part):,} {name}" for name, part in splits.items()]
    print(", ".join(counts), "questions")
    if not all(any(q.answers for q in part) for part in splits.values()):
        raise ValueError(f"{arguments.data} leaves no answer for a split.")
    return splits


class Reader:
    """A model with its tokenizer and settings."""

    def __init__(self, model, tokenizer, max_length, threshold=0.0):
        self.model, self.tokenizer = model, tokenizer
        self.max_length, self.threshold = max_length, threshold

    @classmethod
    def load(cls, folder, threshold):
        """Loads a reader from the folder of a training."""
        import keras

        from keras_attn.text import SubwordTokenizer

        if not (folder / "model.keras").is_file():
            raise ValueError(f"{folder} has no model; `train` writes one.")
        model = keras.saving.load_model(folder / "model.keras", compile=False)
        tokenizer = SubwordTokenizer.load(folder / "tokenizer.model")
        results = json.loads((folder / "results.json").read_text("utf-8"))
        threshold = results["threshold"] if threshold is None else threshold
        length = results["arguments"]["max_length"]
        return cls(model, tokenizer, length, threshold)

    def windows(self, questions):
        """Returns the rows of the model: questions and parts of contexts."""
        from keras_attn.text import question_windows

        return question_windows(questions, self.tokenizer, self.max_length)

    def read(self, questions, size=32):
        """Returns the best answer to each question, and its score in nats."""
        from keras_attn.models import best_spans
        from keras_attn.text import pad_windows

        found, rows = [("", -1e9)] * len(questions), self.windows(questions)
        rows.sort(key=lambda row: len(row.token_ids))
        for start in range(0, len(rows), size):
            part = rows[start : start + size]
            # Few shapes, because each is compiled.
            length = -(-len(part[-1].token_ids) // 32) * 32
            filled = (part * size)[: min(len(rows), size)]
            inputs, _ = pad_windows(filled, length)
            logits = self.model.predict_on_batch(inputs)[: len(part)]
            spans = best_spans(logits, LONGEST, threshold=-math.inf)
            for row, first, last, score in zip(part, *spans, strict=True):
                if score > found[row.index][1]:
                    begin, end = row.offsets[first][0], row.offsets[last][1]
                    text = questions[row.index].context[begin:end]
                    found[row.index] = text, float(score)
        return found

    def evaluate(self, questions):
        """Prints and returns exact match and F1, in percent."""
        from keras_attn.text import squad_scores

        groups = {"all": [], "answerable": [], "unanswerable": []}
        readings = self.read(questions)
        for question, (text, score) in zip(questions, readings, strict=True):
            text = text if score >= self.threshold else ""
            result = squad_scores(text, [x.text for x in question.answers])
            groups["all"].append(result)
            kind = "answerable" if question.answers else "unanswerable"
            groups[kind].append(result)
        scores = {}
        for name, results in groups.items():
            exact, f1 = 100 * np.mean(results or [(0, 0)], axis=0)
            count = len(results)
            print(f"{name}: exact match {exact:.2f}, F1 {f1:.2f} of {count:,}")
            scores[name] = {"exact": exact, "f1": f1, "questions": count}
        return scores

    def plot(self, question):
        """Draws where the answer to a question begins and ends."""
        import keras

        from keras_attn import explain, text

        row = self.windows([question])[0]
        inputs, _ = text.pad_windows([row])
        logits = self.model.predict_on_batch(inputs)[0]
        shown = keras.ops.convert_to_numpy(keras.ops.softmax(logits))
        words = ["(no answer)", *self.tokenizer.pieces(row.token_ids)]
        figure = explain.plot_attention(shown, ["begin", "end"], words)
        figure.axes[1].set_ylabel("probability")
        return figure


def train(arguments):
    """Trains a model, saves it, and scores it on the test questions."""
    import keras

    from keras_attn import datasets, explain, models, text, training

    out, width, layers, epochs = arguments.out, arguments.width, LAYERS, 12
    if arguments.quick:
        width, layers, epochs = 32, 1, 1
    if (out / "backup").exists() and not arguments.resume:
        message = "has an interrupted training: continue it with --resume, or"
        raise ValueError(f"{out} {message} remove {out / 'backup'}.")
    keras.utils.set_random_seed(arguments.seed)
    splits = load_splits(arguments)
    texts = dict.fromkeys(t for q in splits["train"] for t in q[:2])
    lines = [" ".join(WORD.findall(t.lower())) for t in texts]
    tokenizer = text.SubwordTokenizer.train_from_lines(lines, VOCABULARY)
    encoder = models.Encoder(
        tokenizer.vocabulary_size,
        num_layers=layers,
        num_heads=max(1, width // 32),
        hidden_dim=width,
        intermediate_dim=4 * width,
        dropout=arguments.dropout,
        normalize_first=True,
        num_segments=3,
    )
    model = models.SpanExtractor(encoder, dropout=arguments.dropout)
    print(f"{model.count_params():,} parameters")
    reader = Reader(model, tokenizer, arguments.max_length)

    def batches_of(questions, shuffle):
        rows = reader.windows(questions)
        return training.BucketedDataset(
            rows,
            [len(row.token_ids) for row in rows],
            lambda rows, length, random: text.pad_windows(rows, length),
            batch_size=BATCH,
            num_buckets=1 if arguments.quick else BUCKETS,
            shuffle=shuffle,
            seed=arguments.seed,
        )

    batches = batches_of(splits["train"], shuffle=True)
    scale = RATE * (width * WARMUP) ** 0.5
    schedule = training.WarmupSchedule(width, WARMUP, scale)
    model.compile(
        keras.optimizers.Adam(schedule, beta_2=0.98, epsilon=1e-9),
        training.SequenceCrossentropy(pad_id=-1),  # 0 is "no answer".
    )
    progress = training.TrainingProgress(arguments.minutes)
    often = max(1, len(batches) // 4)
    average = training.CheckpointAverage(4, save_freq=often, validate=True)
    fixed = {k: v for k, v in vars(arguments).items() if k not in FREE}
    backup = training.TrainingBackup(
        out / "backup",
        [progress, average, keras.callbacks.EarlyStopping(patience=3)],
        save_freq=min(200, len(batches)),
        data=batches,
        settings=fixed | {"batches": len(batches)},
    )
    with backup.interruptible():
        model.fit(
            batches,
            epochs=arguments.epochs or epochs,
            shuffle=False,  # `BucketedDataset` shuffles.
            validation_data=batches_of(splits["validation"], shuffle=False),
            callbacks=[backup],
            verbose=0,
        )

    model.save(out / "model.keras")
    tokenizer.save(out / "tokenizer.model")
    found = zip(*reader.read(splits["validation"]), strict=True)
    references = [[x.text for x in q.answers] for q in splits["validation"]]
    reader.threshold = text.squad_threshold(*found, references)
    print(f"The threshold of the score is {reader.threshold:.2f}.")
    datasets.write_squad(out / "test.json", splits["test"])
    curves = progress.losses, progress.validation
    figure = explain.plot_training(*curves, ylabel="loss (nats per position)")
    figure.savefig(out / "training.png", dpi=150)
    reader.plot(splits["test"][0]).savefig(out / "answer.png", dpi=150)
    results = progress.summary() | {
        "scores": reader.evaluate(splits["test"]),
        "threshold": reader.threshold,
        "arguments": vars(arguments) | {"out": str(out)},
    }
    (out / "results.json").write_text(json.dumps(results, indent=1), "utf-8")
    backup.remove()
    print(f"\nThe model, training.png and answer.png are in {out}. Next:")
    print(f"  python {sys.argv[0]} predict --out {out}")


def parse_lines(lines):
    """Yields a question and its text for each line that is a question.

    A line is `question<tab>text`. Or a text comes first, questions about it
    follow, and an empty line ends them.
    """
    from keras_attn.datasets import Question

    context = ""
    for line in map(str.strip, lines):
        question, _, text = line.partition("\t")
        if text or (line and context):
            yield Question(question, text or context, ())
        else:
            context = line


def predict(arguments):
    """Answers the questions of a file, or typed in the terminal."""
    from keras_attn import datasets

    reader = Reader.load(arguments.out, arguments.threshold)
    if not arguments.input:
        if sys.stdin.isatty():
            print("Type a text, then questions about it, and an empty line.")
        groups = ([question] for question in parse_lines(sys.stdin))
    elif ".json" in pathlib.Path(arguments.input).suffixes:
        groups = [datasets.read_squad(arguments.input)]
    else:
        groups = [[*parse_lines(datasets.read_lines(arguments.input))]]
    for questions in groups:
        readings = reader.read(questions)
        for question, (text, score) in zip(questions, readings, strict=True):
            if score < reader.threshold:
                text = "(no answer)"
            print(question.question, text, f"{score:.2f}", sep="\t", flush=True)


def evaluate(arguments):
    """Computes exact match and F1 on questions."""
    reader = Reader.load(arguments.out, arguments.threshold)
    path = arguments.data or arguments.out / "test.json"
    kind = arguments.format if arguments.data else "squad"
    reader.evaluate(read_questions(path, kind))


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
