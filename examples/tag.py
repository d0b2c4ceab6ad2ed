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

import numpy as np

LAYERS, BATCH, BUCKETS = 2, 32, 4  # blocks, sentences, shapes of batches
RATE = 2e-3  # highest learning rate
MIN_COUNT, CHARACTERS = 2, 20  # of a word with an id; read of each word
PAD, UNKNOWN = 0, 1  # ids
WORD = re.compile(r"\w+(?:[-'’.,]\w+)*|[^\w\s]")
SYNTHETIC = {"train": 8000, "validation": 400, "test": 2000}  # sentences
QUICK = {"train": 300, "validation": 40, "test": 40}
# Options that may change when a training is resumed.
FREE = {"backend", "command", "minutes", "out", "resume"}


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
    add = command("train", "train a model on tagged sentences")
    add("--data", nargs="+", metavar="FILE", help="else synthetic sentences")
    add("--tags", **tags)
    add("--width", type=int, default=128, help="features of a word")
    add("--dropout", type=float, default=0.25, help="dropout rate")
    add("--epochs", type=int, help="16, or 1 with --quick")
    add("--minutes", type=float, default=60, help="time limit")
    add("--unknown-rate", type=float, default=0.2, help="of training words")
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

    with datasets.report_bad_lines(arguments.strict) as on_bad_lines:
        read = datasets.read_conll_bio
        if ".conllu" in pathlib.Path(path).suffixes:
            read = functools.partial(datasets.read_conllu, tags=arguments.tags)
        return read(path, on_bad_lines=on_bad_lines)


def load_splits(arguments):
    """Returns the sentences of each split, by name."""
    from keras_attn import datasets

    sizes = QUICK if arguments.quick else SYNTHETIC
    if arguments.data:
        parts = [read_sentences(path, arguments) for path in arguments.data]
        if len(parts) < 3:
            train, validation, test = datasets.split_by_hash(parts[0])
            if len(parts) == 2:
                train, test = train + test, parts[1]
            parts = train, validation, test
    else:
        options = {"seed": arguments.seed, "tags": arguments.tags}
        make = datasets.make_tagged_sentences
        parts = [make(n, split=s, **options) for s, n in sizes.items()]
    splits = dict(zip(sizes, parts, strict=True))
    if arguments.quick:
        splits = {name: splits[name][:n] for name, n in sizes.items()}
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
    from keras_attn.explain import plot_confusion
    from keras_attn.models import entity_scores

    words = [sentence.words for sentence in sentences]
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
        references = [sentence.tags for sentence in sentences]
        precision, recall, f1 = entity_scores(predictions, references)
        scores["F1"] = f1
        rates = f"precision {precision:.2%}, recall {recall:.2%}"
        print(f"entities: F1 {f1:.2%}, {rates}")
    _, tags, found = zip(*rows, strict=True)
    plot_confusion(tags, found).savefig(folder / "confusion.png", dpi=150)
    return scores


def train(arguments):
    """Trains a model, saves it, and scores it on the test sentences."""
    import keras

    from keras_attn import explain, models, training
    from keras_attn.layers import T5Position

    out, width, layers, epochs = arguments.out, arguments.width, LAYERS, 16
    if arguments.quick:
        width, layers, epochs = 32, 1, 1
    epochs = arguments.epochs or epochs
    if (out / "backup").exists() and not arguments.resume:
        message = "has an interrupted training: continue it with --resume, or"
        raise ValueError(f"{out} {message} remove {out / 'backup'}.")
    keras.utils.set_random_seed(arguments.seed)
    splits = load_splits(arguments)
    vocabulary = make_vocabulary(splits["train"])

    def batches_of(sentences, unknown_rate, shuffle=True):
        return training.BucketedDataset(
            sentences,
            [len(sentence.words) for sentence in sentences],
            functools.partial(encode, vocabulary, unknown_rate=unknown_rate),
            batch_size=BATCH,
            num_buckets=1 if arguments.quick else BUCKETS,
            shuffle=shuffle,
            seed=arguments.seed,
        )

    batches = batches_of(splits["train"], arguments.unknown_rate)
    words, characters, tags = vocabulary.values()
    heads = max(1, width // 32)
    encoder = models.Encoder(
        max(words.values()) + 1,
        *(layers, heads, width, 4 * width),
        dropout=arguments.dropout,
        normalize_first=True,
        position_embedding=None,
        attention_position=T5Position(heads, num_buckets=16, max_distance=32),
        character_vocabulary_size=len(characters) + UNKNOWN + 1,
    )
    model = models.TokenClassifier(encoder, len(tags) + 1, arguments.dropout)
    print(f"{model.count_params():,} parameters")
    steps = epochs * len(batches)
    schedule = keras.optimizers.schedules.CosineDecay(
        0.0, steps, warmup_target=RATE, warmup_steps=max(1, steps // 10)
    )
    optimizer = keras.optimizers.AdamW(schedule, weight_decay=0.01)
    model.compile(optimizer, training.SequenceCrossentropy())
    count = sum(len(words) for words, _ in splits["train"])
    progress = training.TrainingProgress(arguments.minutes, count)
    often = max(1, len(batches) // 4)
    average = training.CheckpointAverage(4, save_freq=often, validate=True)
    fixed = {k: v for k, v in vars(arguments).items() if k not in FREE}
    backup = training.TrainingBackup(
        out / "backup",
        [progress, average],
        save_freq=min(200, len(batches)),
        data=batches,
        settings=fixed | {"words": count},
    )
    # The batches are shuffled already, and `progress` prints.
    options = {"shuffle": False, "verbose": 0, "callbacks": [backup]}
    validation = batches_of(splits["validation"], 0, shuffle=False)
    with backup.interruptible():
        model.fit(batches, epochs=epochs, validation_data=validation, **options)

    model.save(out / "model.keras")
    (out / "vocabulary.json").write_text(json.dumps(vocabulary), "utf-8")
    with open(out / "test.conllu", "w", encoding="utf-8") as file:
        for sentence in splits["test"]:
            for i, (word, tag) in enumerate(zip(*sentence, strict=True), 1):
                # The same tags as UPOS and as XPOS.
                print(i, word, "_", tag, tag, sep="\t", file=file)
            print(file=file)
    curves = progress.losses, progress.validation
    figure = explain.plot_training(*curves, ylabel="loss (nats per word)")
    figure.savefig(out / "training.png", dpi=150)
    results = progress.summary() | {
        "scores": score(model, vocabulary, splits["test"], out),
        "arguments": vars(arguments) | {"out": str(out)},
    }
    (out / "results.json").write_text(json.dumps(results, indent=1), "utf-8")
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
