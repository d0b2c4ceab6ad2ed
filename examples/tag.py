"""Train, use and evaluate a Transformer encoder that tags words.

    python examples/tag.py train --data train.conllu dev.conllu test.conllu
    python examples/tag.py predict --input sentences.txt
    python examples/tag.py evaluate

`--data` takes one file, which is split, or two for training and test, or three
for training, validation and test. Files `.conllu` are treebanks with parts of
speech; others have a word and its BIO tag in each line. Both can be compressed
(.gz). Without `--data`, `train` uses synthetic sentences.
"""

import argparse
import collections
import functools
import json
import os
import pathlib
import re
import sys

LAYERS, BATCH, BUCKETS = 2, 32, 4  # blocks, sentences, shapes of batches
RATE = 2e-3  # highest learning rate
MIN_COUNT, CHARACTERS = 2, 20  # of a word with an id; read of each word
PAD, UNKNOWN = 0, 1  # ids
WORD = re.compile(r"\w+(?:[-'’.,]\w+)*|[^\w\s]")
SYNTHETIC = {"train": 8000, "validation": 400, "test": 2000}  # sentences
QUICK = {"train": 300, "validation": 40, "test": 40}


def parse_arguments():
    """Returns the arguments of the command line."""
    style = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=style)
    commands = parser.add_subparsers(dest="command", required=True)

    def command(name, text):
        style = argparse.ArgumentDefaultsHelpFormatter
        sub = commands.add_parser(name, help=text, formatter_class=style)
        add = sub.add_argument
        out, backends = "runs/tag", ["jax", "tensorflow", "torch"]
        add("--out", type=pathlib.Path, default=out, help="model folder")
        add("--backend", choices=backends, help="Keras backend")
        return add

    tags = {"choices": ["upos", "xpos", "roles"], "default": "upos"}
    tags["help"] = "columns of a treebank, or tags of synthetic sentences"
    unknown = "probability that a word of a batch becomes unknown"
    add = command("train", "train a model on tagged sentences")
    add("--data", nargs="+", metavar="FILE", help="else synthetic sentences")
    add("--tags", **tags)
    add("--width", type=int, default=128, help="features of a word")
    add("--dropout", type=float, default=0.25, help="dropout rate")
    add("--epochs", type=int, help="16, or 1 with --quick")
    add("--minutes", type=float, default=60, help="time limit")
    add("--unknown-rate", type=float, default=0.2, help=unknown)
    add("--seed", type=int, default=1, help="random seed")
    add("--quick", action="store_true", help="a few steps, as a test")
    add("--resume", action="store_true", help="continue after an interruption")
    add("--strict", action="store_true", help="stop at the first bad line")
    add = command("predict", "tag the lines of a file, or typed lines")
    add("--input", metavar="FILE", help="else typed lines")
    add("--tokenized", action="store_true", help="words are between spaces")
    add("--columns", action="store_true", help="one word per line")
    add = command("evaluate", "compute accuracies, and F1 of BIO tags")
    add("--data", metavar="FILE", help="else the test set of `train`")
    add("--tags", **tags)
    add("--strict", action="store_true", help="stop at the first bad line")
    return parser.parse_args()


def read_sentences(path, arguments):
    """Reads tagged sentences; reports and counts bad lines."""
    from keras_attn import datasets

    bad = []
    options = {"on_bad_lines": "error" if arguments.strict else bad.append}
    try:
        if ".conllu" in pathlib.Path(path).suffixes:
            return datasets.read_conllu(path, tags=arguments.tags, **options)
        return datasets.read_conll_bio(path, **options)
    finally:
        if bad:
            counted = f"Skipped {len(bad):,} bad lines."
            print(*bad[:10], counted, sep="\n", file=sys.stderr)


def load_splits(arguments):
    """Returns the sentences of each split, by name."""
    from keras_attn import datasets

    if arguments.data:
        parts = [read_sentences(path, arguments) for path in arguments.data]
        if len(parts) < 3:
            train, validation, test = datasets.split_by_hash(parts[0])
            if len(parts) == 2:
                train, test = train + test, parts[1]
            parts = train, validation, test
        splits = dict(zip(SYNTHETIC, parts, strict=True))
    else:
        options = {"seed": arguments.seed, "tags": arguments.tags}
        make = datasets.make_tagged_sentences
        splits = {k: make(n, split=k, **options) for k, n in SYNTHETIC.items()}
    if arguments.quick:
        splits = {name: splits[name][:n] for name, n in QUICK.items()}
    counts = [f"{len(part):,} {name}" for name, part in splits.items()]
    print(", ".join(counts), "sentences")
    if not all(splits.values()):
        raise ValueError(f"{arguments.data} leaves no sentence for a split.")
    return splits


def make_vocabulary(sentences):
    """Returns the ids of words in lower case, of characters and of tags."""
    words = [word for sentence in sentences for word in sentence.words]
    counts = collections.Counter(map(str.lower, words))
    frequent = sorted(word for word in counts if counts[word] >= MIN_COUNT)
    characters = sorted(set().union(*words))
    tags = sorted({tag for sentence in sentences for tag in sentence.tags})
    return {
        "words": dict.fromkeys(counts, UNKNOWN)
        | {word: i for i, word in enumerate(frequent, UNKNOWN + 1)},
        "characters": {c: i for i, c in enumerate(characters, UNKNOWN + 1)},
        "tags": {tag: i for i, tag in enumerate(tags, PAD + 1)},
    }


def encode(vocabulary, sentences, length, random=None, unknown_rate=0):
    """Returns the inputs of the model, and the labels."""
    import numpy as np

    words, characters, tags = vocabulary.values()
    token_ids = np.full((len(sentences), length), PAD, "int32")
    character_ids = np.full((*token_ids.shape, CHARACTERS), PAD, "int32")
    labels = np.full_like(token_ids, PAD)
    for i, sentence in enumerate(sentences):
        for j, word in enumerate(sentence.words):
            token_ids[i, j] = words.get(word.lower(), UNKNOWN)
            ids = [characters.get(c, UNKNOWN) for c in word[:CHARACTERS]]
            character_ids[i, j, : len(ids)] = ids
        # Tags that are not in the training set have no loss.
        ids = [tags.get(tag, PAD) for tag in sentence.tags]
        labels[i, : len(ids)] = ids
    if unknown_rate:
        # Some words lose their id, half of them their characters too, so that
        # the model learns to tag unknown words.
        lost = random.random((*token_ids.shape, 1)) / unknown_rate
        token_ids[(lost[..., 0] < 1) & (token_ids != PAD)] = UNKNOWN
        character_ids[(lost < 0.5) & (character_ids != PAD)] = UNKNOWN
    return {"token_ids": token_ids, "character_ids": character_ids}, labels


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


def load(folder):
    """Loads the model and the vocabulary of a training."""
    import keras

    import keras_attn  # noqa: F401 (registers the classes of models)

    if not (folder / "model.keras").is_file():
        raise ValueError(f"{folder} has no model; `train` writes one.")
    model = keras.saving.load_model(folder / "model.keras", compile=False)
    return model, json.loads((folder / "vocabulary.json").read_text("utf-8"))


def tag_sentences(model, vocabulary, sentences, batch_size=64):
    """Returns the tags of each sentence, a tuple of words."""
    from keras_attn.datasets import TaggedSentence

    names, found = list(vocabulary["tags"]), {(): []}
    order = sorted(dict.fromkeys(filter(None, sentences)), key=len)
    for start in range(0, len(order), batch_size):
        rows = order[start : start + batch_size]
        # Few shapes, because each is compiled.
        length = max(8, 1 << (len(rows[-1]) - 1).bit_length())
        rows += rows[:1] * (min(len(order), batch_size) - len(rows))
        records = [TaggedSentence(words, ()) for words in rows]
        inputs, _ = encode(vocabulary, records, length)
        logits = model.predict_on_batch(inputs)[:, :, PAD + 1 :]
        for words, ids in zip(rows, logits.argmax(-1), strict=True):
            found[words] = [names[i] for i in ids[: len(words)]]
    return [found[words] for words in sentences]


def score(model, vocabulary, sentences, folder):
    """Tags sentences, prints and returns scores, and draws the confusions."""
    from matplotlib.figure import Figure
    from sklearn.metrics import ConfusionMatrixDisplay

    from keras_attn.models import bio_spans

    words = [words for words, _ in sentences]
    predictions = tag_sentences(model, vocabulary, words)
    rows = [
        row
        for (words, tags), found in zip(sentences, predictions, strict=True)
        for row in zip(words, tags, found, strict=True)
    ]
    known, scores = vocabulary["words"], {}
    unknown = [row for row in rows if row[0].lower() not in known]
    for name, group in ("all", rows), ("unknown", unknown):
        right = sum(tag == found for _, tag, found in group)
        scores[name] = right / max(1, len(group))
        print(f"{name} words: accuracy {scores[name]:.2%} of {len(group):,}")
    if {tag[:2] for tag in vocabulary["tags"]} <= {"O", "B-", "I-"}:
        expected = [{*bio_spans(tags)} for _, tags in sentences]
        found = [{*bio_spans(tags)} for tags in predictions]
        right = sum(len(a & b) for a, b in zip(expected, found, strict=True))
        precision = right / max(1, sum(map(len, found)))
        recall = right / max(1, sum(map(len, expected)))
        scores["F1"] = 2 * precision * recall / max(1e-9, precision + recall)
        print(
            f"spans: F1 {scores['F1']:.2%}, precision {precision:.2%}, "
            f"recall {recall:.2%} of {sum(map(len, expected)):,}"
        )
    _, tags, found = zip(*rows, strict=True)
    inches = 3 + 0.4 * len({*tags, *found})
    figure = Figure(figsize=(inches, inches), layout="constrained")
    style = {"cmap": "Blues", "values_format": ".0%", "xticks_rotation": 90}
    draw = ConfusionMatrixDisplay.from_predictions
    draw(tags, found, normalize="true", ax=figure.subplots(), **style)
    figure.savefig(folder / "confusion.png", dpi=150)
    return scores


def train(arguments):
    """Trains a model, saves it, and scores it on the test sentences."""
    import keras

    from keras_attn import training
    from keras_attn.explain import plot_training
    from keras_attn.layers import T5Position
    from keras_attn.models import Encoder, TokenClassifier

    out, unknown_rate = arguments.out, arguments.unknown_rate
    width, layers, epochs = arguments.width, LAYERS, 16
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
    vocabulary = make_vocabulary(splits["train"])

    def batches_of(sentences, unknown_rate):
        return make_batches(
            sentences,
            [len(words) for words, _ in sentences],
            functools.partial(encode, vocabulary, unknown_rate=unknown_rate),
            BATCH,
            1 if arguments.quick else BUCKETS,
            arguments.seed,
        )

    batches = batches_of(splits["train"], unknown_rate)
    words, characters, tags = vocabulary.values()
    heads = max(1, width // 32)
    encoder = Encoder(
        max(words.values()) + 1,
        num_layers=layers,
        num_heads=heads,
        hidden_dim=width,
        intermediate_dim=4 * width,
        dropout=arguments.dropout,
        normalize_first=True,
        position_embedding=None,
        attention_position=T5Position(heads, num_buckets=16, max_distance=32),
        character_vocabulary_size=len(characters) + UNKNOWN + 1,
    )
    model = TokenClassifier(encoder, len(tags) + 1, dropout=arguments.dropout)
    print(f"{model.count_params():,} parameters")
    steps = epochs * len(batches)
    schedule = keras.optimizers.schedules.CosineDecay(
        0.0, steps, warmup_target=RATE, warmup_steps=max(1, steps // 10)
    )
    model.compile(
        keras.optimizers.AdamW(schedule, weight_decay=0.01),
        training.SequenceCrossentropy(),
    )
    count = sum(len(words) for words, _ in splits["train"])
    progress = training.TrainingProgress(arguments.minutes, count)
    often = max(1, len(batches) // 4)
    average = training.CheckpointAverage(4, save_freq=often, validate=True)
    backup = training.TrainingBackup(
        out / "backup",
        [progress, average],
        save_freq=min(200, len(batches)),
        data=batches,
        settings={"epochs": epochs, "words": count, "unknown": unknown_rate},
    )
    with backup.interruptible():
        model.fit(
            batches,
            epochs=epochs,
            shuffle=False,  # `make_batches` shuffles.
            validation_data=batches_of(splits["validation"], 0),
            callbacks=[backup],
            verbose=0,
        )

    model.save(out / "model.keras")
    text = json.dumps(vocabulary, ensure_ascii=False)
    (out / "vocabulary.json").write_text(text, encoding="utf-8")
    with open(out / "test.conllu", "w", encoding="utf-8") as file:
        for sentence in splits["test"]:
            for i, (word, tag) in enumerate(zip(*sentence, strict=True), 1):
                # The same tags as UPOS and as XPOS.
                print(i, word, "_", tag, tag, sep="\t", file=file)
            print(file=file)
    unit = "loss (nats per word)"
    figure = plot_training(progress.losses, progress.validation, ylabel=unit)
    figure.savefig(out / "training.png", dpi=150)
    results = {
        "scores": score(model, vocabulary, splits["test"], out),
        "minutes": progress.seconds / 60,
        "batches": len(progress.losses),
        "validation_loss": average.best_loss,
        "parameters": model.count_params(),
        "arguments": {k: str(v) for k, v in vars(arguments).items()},
    }
    text = json.dumps(results, indent=1)
    (out / "results.json").write_text(text + "\n", encoding="utf-8")
    backup.remove()
    print(f"\nThe model, training.png and confusion.png are in {out}. Next:")
    print(f"  python {sys.argv[0]} predict --out {out}")


def predict(arguments):
    """Tags the lines of a file, or lines typed in the terminal."""
    from keras_attn.datasets import read_lines

    model, vocabulary = load(arguments.out)
    if arguments.input:
        groups = [read_lines(arguments.input)]
    else:
        if sys.stdin.isatty():
            print("Type a sentence and press Enter; Ctrl-D ends.")
        groups = ([line] for line in sys.stdin if line.strip())
    split = str.split if arguments.tokenized else WORD.findall
    between, end, after = "\t\n\n" if arguments.columns else ("/", " ", "")
    for lines in groups:
        sentences = [tuple(split(line)) for line in lines]
        tags = tag_sentences(model, vocabulary, sentences)
        for pairs in map(zip, sentences, tags):
            print(end.join(map(between.join, pairs)) + after, flush=True)


def evaluate(arguments):
    """Scores a model on tagged sentences."""
    path = arguments.data or str(arguments.out / "test.conllu")
    sentences = read_sentences(path, arguments)
    score(*load(arguments.out), sentences, arguments.out)


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
