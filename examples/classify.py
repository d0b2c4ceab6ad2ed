"""Train, use and evaluate a Transformer that classifies texts.

    python examples/classify.py train --data reviews.csv
    python examples/classify.py predict --input reviews.txt
    python examples/classify.py evaluate

`--data` takes one table with a header, .csv or .tsv, which is split, or three
for training, validation and test; they can be compressed (.gz). `--model` is a
folder with a pretrained model and its tokenizer: BERT or GPT-2 in the format of
Hugging Face, or model.keras. Without `--model`, an encoder is trained from
scratch. Without `--data`, `train` uses synthetic sentences of eight classes.
"""

import argparse
import csv
import json
import os
import pathlib
import sys

import numpy as np

SYNTHETIC = {"train": 2000, "validation": 400, "test": 1000}  # sentences
QUICK = {"train": 128, "validation": 32, "test": 32}
FREE = {"backend", "command", "minutes", "out", "resume"}  # when resumed
HEAD = "^(pooler|output)/"  # weights that are always trained


def parse_arguments():
    """Returns the arguments of the command line."""
    style = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=style)
    commands = parser.add_subparsers(dest="command", required=True)

    def command(name, text):
        style = argparse.ArgumentDefaultsHelpFormatter
        sub = commands.add_parser(name, help=text, formatter_class=style)
        add = sub.add_argument
        out, backends = "runs/classify", ["jax", "tensorflow", "torch"]
        add("--out", type=pathlib.Path, default=out, help="model folder")
        add("--backend", choices=backends, help="Keras backend")
        return add

    add = command("train", "train a model on labeled texts")
    add("--data", nargs="+", metavar="FILE", help="one or three tables")
    add("--text-column", default="text", help="name of the column")
    add("--label-column", default="label", help="name of the column")
    add("--text-pair-column", help="name of the column of a second text")
    add("--model", type=pathlib.Path, metavar="FOLDER", help="pretrained model")
    add("--lora", type=int, metavar="RANK", help="train low-rank adapters")
    add("--freeze", metavar="REGEX", help="weights to freeze; '.': the encoder")
    add("--layer-decay", type=float, default=1.0, help="of learning rates")
    add("--rate", type=float, help="highest learning rate; by the model")
    add("--epochs", type=int, help="5 to 25, by the number of texts")
    add("--minutes", type=float, default=60, help="time limit")
    add("--batch", type=int, default=32, help="texts of a batch")
    add("--max-length", type=int, default=128, help="tokens of a text")
    add("--layers", type=int, default=3, help="blocks, without --model")
    add("--width", type=int, default=128, help="features, without --model")
    add("--subwords", type=int, default=4000, help="tokens, without --model")
    add("--seed", type=int, default=1, help="random seed")
    add("--quick", action="store_true", help="a few steps, as a test")
    add("--resume", action="store_true", help="continue after an interruption")
    add("--strict", action="store_true", help="stop at the first bad line")
    add = command("predict", "classify texts of a file, or typed ones")
    add("--input", metavar="FILE", help="lines, or a table (.csv, .tsv)")
    add("--top", type=int, default=1, help="number of labels to print")
    add = command("evaluate", "compute accuracy, F1 and the confusion matrix")
    add("--data", metavar="FILE", help="the test texts of `train`")
    add("--strict", action="store_true", help="stop at the first bad line")
    return parser.parse_args()


def read_texts(path, columns, strict=False):
    """Reads labeled texts; reports and counts bad lines."""
    from keras_attn.datasets import read_classification_csv, report_bad_lines

    with report_bad_lines(strict) as report:
        return read_classification_csv(path, on_bad_lines=report, **columns)


def load_splits(arguments, columns):
    """Returns the texts of each split, by name."""
    from keras_attn import datasets

    sizes = QUICK if arguments.quick else SYNTHETIC
    if arguments.data:
        strict = arguments.strict
        parts = [read_texts(path, columns, strict) for path in arguments.data]
        if len(parts) == 1:
            parts = datasets.split_by_hash(parts[0], parts=10)
    else:
        make, seed = datasets.make_labeled_sentences, arguments.seed
        parts = [make(n, seed=seed, split=s) for s, n in sizes.items()]
    splits = dict(zip(sizes, parts, strict=True))
    if arguments.quick:
        splits = {name: splits[name][:n] for name, n in sizes.items()}
    counts = [f"{len(part):,} {name}" for name, part in splits.items()]
    print(", ".join(counts), "texts")
    if not all(splits.values()):
        raise ValueError(f"{arguments.data} leaves no text for a split.")
    return splits


def make_model(arguments, texts):
    """Returns an untrained classifier with its tokenizer."""
    from keras_attn import models, pretrained, training
    from keras_attn.layers import RotaryPosition
    from keras_attn.text import SubwordTokenizer, load_tokenizer

    if arguments.model:
        encoder = pretrained.load(arguments.model)
        encoder = getattr(encoder, "encoder", encoder)  # without its head
        tokenizer = load_tokenizer(arguments.model)
    else:
        lines = [x for text in texts for x in (text.text, text.text_pair) if x]
        tokenizer = SubwordTokenizer.train_from_lines(lines, arguments.subwords)
        width, heads = arguments.width, max(1, arguments.width // 32)
        encoder = models.Encoder(
            tokenizer.vocabulary_size,
            *(arguments.layers, heads, width, 4 * width),
            activation="gelu",
            normalize_first=True,
            position_embedding=None,
            attention_position=RotaryPosition(),
            num_segments=2,
        )
    # Only the last token of a GPT sees the whole text.
    pooled = "last" if isinstance(encoder, models.GPT) else "first"
    number = len({text.label for text in texts})
    model = models.SequenceClassifier(encoder, number, pooled_token=pooled)
    if arguments.lora:
        training.enable_lora(model, arguments.lora, also_train=HEAD)
    elif arguments.freeze:
        training.freeze(model, arguments.freeze)
        training.unfreeze(model, HEAD)
    return model, tokenizer


class TextClassifier:
    """A model with its tokenizer and settings."""

    def __init__(self, model, tokenizer, settings):
        self.model, self.tokenizer = model, tokenizer
        self.labels, self.columns, self.max_length = settings.values()

    @classmethod
    def load(cls, folder):
        """Loads a classifier from the folder of a training."""
        from keras_attn import pretrained
        from keras_attn.text import load_tokenizer

        if not (folder / "results.json").is_file():
            raise ValueError(f"{folder} has no model; `train` writes one.")
        results = json.loads((folder / "results.json").read_text("utf-8"))
        model, tokenizer = pretrained.load(folder), load_tokenizer(folder)
        return cls(model, tokenizer, results["settings"])

    def encode(self, texts, length=None, random=None):
        """Returns the inputs of the model, and the labels."""
        from keras_attn.text import pack_segments

        sides = [[text.text for text in texts]]
        if "text_pair_column" in self.columns:
            sides.append([text.text_pair or "" for text in texts])
        inputs = pack_segments(
            *map(self.tokenizer.encode, sides),
            start_id=self.tokenizer.start_id,
            end_id=self.tokenizer.end_id,
            length=length or self.max_length,
            pad_to_length=length is not None,
        )
        if not getattr(self.model.encoder, "num_segments", None):
            del inputs["segment_ids"]
        numbers = {label: i for i, label in enumerate(self.labels)}
        labels = [numbers.get(text.label, -1) for text in texts]
        return inputs, np.array(labels, "int32")

    def predict(self, texts):
        """Returns the probability of each label: float (texts, labels)."""
        from keras import ops

        # Typed texts have one length, because each is compiled.
        length = self.max_length if len(texts) == 1 else None
        inputs, _ = self.encode(texts, length)
        logits = self.model.predict(inputs, batch_size=64, verbose=0)
        return ops.convert_to_numpy(ops.softmax(logits))

    def known(self, texts, where):
        """Returns the texts whose label can be predicted; reports others."""
        if unknown := {text.label for text in texts} - {*self.labels}:
            labels = ", ".join(sorted(unknown))
            print(f"{where}: labels not trained on: {labels}", file=sys.stderr)
        return [text for text in texts if text.label in self.labels]

    def evaluate(self, texts, folder, where):
        """Prints and returns scores, and draws the confusion matrix."""
        from sklearn import metrics

        from keras_attn.explain import plot_confusion

        self.known(texts, where)  # All are counted.
        best = self.predict(texts).argmax(-1)
        labels = [text.label for text in texts], [self.labels[i] for i in best]
        print(metrics.classification_report(*labels, zero_division=0))
        scores = {"accuracy": metrics.accuracy_score(*labels)}
        scores["macro F1"] = metrics.f1_score(*labels, average="macro")
        print(*(f"{name} {score:.2%}" for name, score in scores.items()))
        plot_confusion(*labels).savefig(folder / "confusion.png", dpi=150)
        return scores


def train(arguments):
    """Trains a model, saves it, and scores it on the test texts."""
    import keras

    from keras_attn import explain, training

    out, seed = arguments.out, arguments.seed
    if (out / "backup").exists() and not arguments.resume:
        message = "has an interrupted training: continue it with --resume, or"
        raise ValueError(f"{out} {message} remove {out / 'backup'}.")
    keras.utils.set_random_seed(seed)
    columns = {k: v for k, v in vars(arguments).items() if "column" in k and v}
    splits = load_splits(arguments, columns)
    texts = splits["train"]
    model, tokenizer = make_model(arguments, texts)
    longest = getattr(model.encoder, "max_sequence_length", None)
    settings = {
        "labels": sorted({text.label for text in texts}),
        "columns": columns,
        "max_length": min(arguments.max_length, longest or sys.maxsize),
    }
    classifier = TextClassifier(model, tokenizer, settings)
    lengths = classifier.encode(texts)[0]["padding_mask"].sum(1).tolist()
    batches = training.BucketedDataset(
        texts, lengths, classifier.encode, arguments.batch, seed=seed
    )
    held_out = classifier.known(splits["validation"], "validation")
    if not held_out:
        raise ValueError("validation has no label of the training set.")
    held_out = classifier.encode(held_out)
    trained = sum(int(np.prod(w.shape)) for w in model.trainable_weights)
    print(f"{trained:,} of {model.count_params():,} parameters are trained")
    rate = 1e-3 if model.encoder.hidden_dim < 512 else 5e-5
    rate = arguments.rate or (10 * rate if arguments.lora else rate)
    epochs = 5 if arguments.quick else min(25, max(5, 30_000 // len(texts)))
    epochs = arguments.epochs or epochs
    steps = epochs * len(batches)
    schedule = keras.optimizers.schedules.CosineDecay(
        0.0, steps, warmup_target=rate, warmup_steps=1 + steps // 10
    )
    optimizer = keras.optimizers.AdamW(
        schedule, beta_2=0.98, weight_decay=0.01, global_clipnorm=1.0
    )
    optimizer.exclude_from_weight_decay(var_names=["bias", "gamma", "beta"])
    if (decay := arguments.layer_decay) != 1:
        multipliers = training.layerwise_lr_multipliers(model, decay)
        optimizer = training.LayerwiseLearningRates(optimizer, multipliers)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, metrics=["accuracy"])
    progress = training.TrainingProgress(arguments.minutes)
    stop = keras.callbacks.EarlyStopping(
        "val_accuracy", patience=5, mode="max", restore_best_weights=True
    )
    options = {name: str(value) for name, value in vars(arguments).items()}
    fixed = {k: v for k, v in options.items() if k not in FREE}
    backup = training.TrainingBackup(
        out / "backup",
        [progress, stop],
        save_freq=min(200, len(batches)),
        data=batches,
        settings=fixed | {"texts": len(texts)},
    )
    # The batches are shuffled already, and `progress` prints.
    more = {"shuffle": False, "verbose": 0, "callbacks": [backup]}
    with backup.interruptible():
        model.fit(batches, epochs=epochs, validation_data=held_out, **more)

    model.save(out / "model.keras")
    tokenizer.save(out)
    with open(out / "test.csv", "w", encoding="utf-8", newline="") as file:
        rows = [text[: len(columns)] for text in splits["test"]]
        csv.writer(file).writerows([columns.values(), *rows])
    losses = progress.losses, progress.validation
    explain.plot_training(*losses).savefig(out / "training.png", dpi=150)
    results = progress.summary() | {"settings": settings, "arguments": options}
    results["validation_accuracy"] = stop.best
    results["scores"] = classifier.evaluate(splits["test"], out, "test")
    (out / "results.json").write_text(json.dumps(results, indent=1), "utf-8")
    backup.remove()
    print(f"\nThe model, training.png and confusion.png are in {out}. Next:")
    print(f"  python {sys.argv[0]} predict --out {out}")


def predict(arguments):
    """Prints the most likely labels of texts, with their probabilities."""
    from keras_attn.datasets import LabeledSentence, read_lines

    classifier, path = TextClassifier.load(arguments.out), arguments.input
    columns = classifier.columns

    def parse(line):
        # In a pair, a tab is between the texts.
        text, *pair = line.removesuffix("\n").split("\t", len(columns) - 2)
        return LabeledSentence(text, "", *pair)

    if path and path.removesuffix(".gz").endswith((".csv", ".tsv")):
        # Labels are not needed.
        columns = columns | {"label_column": columns["text_column"]}
        groups = [read_texts(path, columns)]
    elif path:
        groups = [[parse(line) for line in read_lines(path)]]
    else:
        if sys.stdin.isatty():
            print("Type a text and press Enter; Ctrl-D ends.")
        groups = ([parse(line)] for line in sys.stdin if line.strip())
    for texts in groups:
        for p in classifier.predict(texts):
            best = (-p).argsort()[: arguments.top]
            found = [f"{classifier.labels[i]}\t{p[i]:.4f}" for i in best]
            print(*found, sep="\t", flush=True)


def evaluate(arguments):
    """Scores a model on labeled texts."""
    classifier = TextClassifier.load(arguments.out)
    path = arguments.data or arguments.out / "test.csv"
    texts = read_texts(path, classifier.columns, arguments.strict)
    classifier.evaluate(texts, arguments.out, path)


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
