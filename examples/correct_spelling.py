"""Train, use and evaluate a Transformer that corrects misspelled words.

    python examples/correct_spelling.py train --data misspellings.txt
    python examples/correct_spelling.py predict --input lines.txt
    python examples/correct_spelling.py evaluate

The model reads and writes single words, character by character. The training
words, common English ones or the lines of `--words`, are misspelled at random,
in each epoch in another way. `--data` adds pairs, `wrong->right` or with a tab.
"""

import argparse
import json
import os
import pathlib
import re
import sys

import numpy as np

LAYERS, BATCH, WARMUP, RATE = 2, 64, 500, 3e-3  # blocks, words, steps
LONGEST, ROOM = 40, 2  # ids of a word, more of them in a misspelling
WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
TESTED, QUICK = 800, 12  # random misspellings of each kind
# Options that may change when a training is resumed.
FREE = {"backend", "command", "epochs", "minutes", "out", "resume"}
BEAMS, THRESHOLDS = 5, (0.0, 0.3, 0.5, 0.7, 0.9, 0.99)


def parse_arguments():
    """Returns the arguments of the command line."""
    style = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=style)
    commands = parser.add_subparsers(dest="command", required=True)

    def command(name, text):
        style = argparse.ArgumentDefaultsHelpFormatter
        sub = commands.add_parser(name, help=text, formatter_class=style)
        add, out = sub.add_argument, "runs/correct_spelling"
        backends = ["jax", "tensorflow", "torch"]
        add("--out", type=pathlib.Path, default=out, help="model folder")
        add("--backend", choices=backends, help="Keras backend")
        return add

    add = command("train", "train a model on misspelled words")
    add("--data", nargs="+", metavar="FILE", help="lists of misspellings")
    add("--words", metavar="FILE", help="else common English words")
    add("--noise", type=int, default=2, help="misspellings of a word per epoch")
    add("--unchanged-rate", type=float, default=0.15, help="without noise")
    add("--width", type=int, default=128, help="features of a character")
    add("--dropout", type=float, default=0.1, help="dropout rate")
    add("--epochs", type=int, help="at most 200, or 1 with --quick")
    add("--minutes", type=float, default=20, help="time limit")
    add("--seed", type=int, default=1, help="random seed")
    add("--quick", action="store_true", help="a few steps, as a test")
    add("--resume", action="store_true", help="continue after an interruption")
    add("--strict", action="store_true", help="stop at the first bad line")
    add = command("predict", "correct the lines of a file, or typed lines")
    add("--input", metavar="FILE", help="else typed lines")
    add("--threshold", type=float, default=0.5, help="lowest probability")
    add("--suggestions", type=int, default=0, help="below each line")
    add = command("evaluate", "count corrections and false alarms")
    add("--data", nargs="+", metavar="FILE", help="else the tests of `train`")
    add("--strict", action="store_true", help="stop at the first bad line")
    return parser.parse_args()


def read_misspellings(paths, strict):
    """Reads misspellings in lower case; reports and counts bad lines."""
    from keras_attn import datasets

    pairs = []
    with datasets.report_bad_lines(strict) as on_bad_lines:
        for path in paths:
            pairs += datasets.read_misspellings(path, on_bad_lines=on_bad_lines)
    pairs = (datasets.Misspelling(*map(str.lower, pair)) for pair in pairs)
    return [pair for pair in pairs if max(map(len, pair)) < LONGEST]


def load_splits(arguments):
    """Returns the listed misspellings and the words of each split."""
    from keras_attn import datasets

    names, stem = ("train", "validation", "test"), datasets.word_stem
    pairs = read_misspellings(arguments.data or [], arguments.strict)
    if arguments.words:
        words = map(str.strip, datasets.read_lines(arguments.words))
    else:
        words = (word for s in names for word in datasets.spelling_words(s))
    words = {word.lower() for word in words if 0 < len(word) < LONGEST}
    words = sorted(words.union(pair.right for pair in pairs))
    # All forms of a word are in one split.
    pairs = datasets.split_by_hash(pairs, key=lambda pair: stem(pair.right))
    splits = [*zip(pairs, datasets.split_by_hash(words, key=stem), strict=True)]
    if arguments.quick:
        splits = [(pairs[:240], words[:240]) for pairs, words in splits]
    for name, (pairs, words) in zip(names, splits, strict=True):
        print(f"{name}: {len(pairs):,} misspellings, {len(words):,} words")
        if not words:
            raise ValueError(f"The files leave no word for {name}.")
    return splits


def encode(tokenizer, words, length):
    """Returns int32 rows of ids, with an end and padding."""
    from keras.utils import pad_sequences

    rows = [[*ids, tokenizer.end_id] for ids in tokenizer.encode(words)]
    return pad_sequences(rows, length, padding="post", value=tokenizer.pad_id)


def load(folder):
    """Loads the model and the tokenizer of a training."""
    from keras_attn import pretrained, text

    if not (folder / "model.keras").is_file():
        raise ValueError(f"{folder} has no model; `train` writes one.")
    return pretrained.load(folder), text.load_tokenizer(folder)


def suggest(model, tokenizer, words, size=64):
    """Returns the best corrections of each word with their probabilities."""
    from keras_attn.decoding import BeamSearch

    strategy = BeamSearch(
        BEAMS,
        num_return_sequences=BEAMS,
        length_penalty=0,  # The scores are log-probabilities.
        suppress_tokens=[tokenizer.unknown_id],
        min_new_tokens=2,  # a character and the end
    )
    found = {word: {} for word in words}
    # Always as many rows, because each shape is compiled.
    words = [*found, *[*found][:1] * (-len(found) % size)]
    rows = encode(tokenizer, words, LONGEST)
    decoded = model.generate(rows, LONGEST, strategy, batch_size=size)
    texts = tokenizer.decode(decoded.tokens)
    for word, *best in zip(words, texts, decoded.scores, strict=True):
        for text, score in zip(*best, strict=True):
            found[word].setdefault(text, np.exp(score))
    return found


def replace(word, found, threshold):
    """Returns the most likely correction, or the word if that is unsure."""
    correction, probability = next(iter(found.items()), (word, 0))
    return correction if probability >= threshold else word


def correct(model, tokenizer, lines, threshold, count):
    """Yields each line with its words corrected, and suggestions below."""
    # Words with unknown characters, and very long ones, are left alone.
    words = {word.lower() for line in lines for word in WORD.findall(line)}
    known = [word for word in sorted(words) if len(word) < LONGEST]
    known = [w for w in known if tokenizer.decode(tokenizer.encode(w)) == w]
    found = suggest(model, tokenizer, known) if known else {}

    def replacement(match):
        word = match[0].lower()
        new = replace(word, found.get(word, {}), threshold)
        if new == word or match[0][0].islower():
            return match[0] if new == word else new
        return new.upper() if match[0][1:].isupper() else new.capitalize()

    for line in lines:
        yield WORD.sub(replacement, line)
        for word in dict.fromkeys(map(str.lower, WORD.findall(line))):
            best = list(found.get(word, {}).items())[:count]
            if best and best[0][0] != word:
                yield f"  {word}: " + ", ".join(f"{w} {p:.2f}" for w, p in best)


def score(model, tokenizer, pairs, name):
    """Prints and returns rates of corrections and of false alarms."""
    wrongs, rights = np.array([tuple(pair) for pair in pairs]).T
    words = np.unique(rights)
    found = suggest(model, tokenizer, [*wrongs, *words])
    print(f"{name}: {len(pairs):,} misspellings of {len(words):,} words")
    scores = {"suggested": float(np.mean([r in found[w] for w, r in pairs]))}
    print(f"one of {BEAMS} suggestions is right: {scores['suggested']:.1%}")
    print("threshold  corrected  miscorrected  false alarms")
    for threshold in THRESHOLDS:
        new = np.array([replace(w, found[w], threshold) for w in wrongs])
        kept = np.array([replace(w, found[w], threshold) for w in words])
        wrong = (new != rights) & (new != wrongs)
        rates = [np.mean(x) for x in (new == rights, wrong, kept != words)]
        scores[threshold] = rates
        print("{:9} {:10.1%} {:13.1%} {:13.1%}".format(threshold, *rates))
    return scores


def train(arguments):
    """Trains a model, saves it, and scores it on test words."""
    import keras

    from keras_attn import datasets, explain, training
    from keras_attn.layers import T5Position
    from keras_attn.models import Transformer
    from keras_attn.text import CharacterTokenizer

    out, seed, width = arguments.out, arguments.seed, arguments.width
    epochs, layers, count = arguments.epochs or 200, LAYERS, TESTED
    if arguments.quick:
        epochs, layers, width, count = arguments.epochs or 1, 1, 32, QUICK
    if (out / "backup").exists() and not arguments.resume:
        message = "has an interrupted training: continue it with --resume, or"
        raise ValueError(f"{out} {message} remove {out / 'backup'}.")
    keras.utils.set_random_seed(seed)
    (pairs, words), (validation, others), (test, new) = load_splits(arguments)
    lines, known = [*words, *map("".join, pairs)], {*words}
    tokenizer = CharacterTokenizer.train_from_lines(lines)

    def misspelled(words, number):
        words = [word for word in words if len(word) > 2]
        make = datasets.make_misspellings
        return make(count, seed=seed + number, words=words)

    # Validation and test are of words that are trained on, and of others.
    validation = (validation or misspelled(others, 0)) + misspelled(words, 2)
    tests = misspelled(words, 3), test or misspelled(new, 1)

    def noisy(word, random):
        if len(word) < 3 or random.random() < arguments.unchanged_rate:
            return word
        wrong = datasets.misspell(word, seed=int(random.integers(2**31)))
        # A misspelling that is a word should not be corrected.
        return word if wrong in known else wrong

    def make_batch(pairs, length, random):
        wrongs = [wrong or noisy(right, random) for wrong, right in pairs]
        source = encode(tokenizer, wrongs, length + ROOM)
        labels = encode(tokenizer, [right for _, right in pairs], length)
        target = np.roll(labels, 1, axis=1)
        target[:, 0] = tokenizer.start_id
        return (source, target), labels  # The loss ignores padding.

    def batches_of(pairs, shuffle):
        lengths = [max(len(r), len(w or "") - ROOM) + 1 for w, r in pairs]
        return training.BucketedDataset(
            pairs, lengths, make_batch, BATCH, shuffle=shuffle, seed=seed
        )

    unpaired = [datasets.Misspelling(None, word) for word in words]
    batches = batches_of(pairs + unpaired * arguments.noise, shuffle=True)
    heads = max(1, width // 32)
    relative = T5Position(heads, max_distance=20, bidirectional=False)
    model = Transformer(
        tokenizer.vocabulary_size,
        num_layers=layers,
        num_heads=heads,
        hidden_dim=width,
        intermediate_dim=4 * width,
        dropout=arguments.dropout,
        normalize_first=True,
        encoder_attention_position=T5Position(heads, max_distance=20),
        decoder_attention_position=relative,
    )
    print(f"{model.count_params():,} parameters")
    scale = RATE * (width * WARMUP) ** 0.5
    schedule = training.WarmupSchedule(width, WARMUP, scale)
    adam = keras.optimizers.Adam(schedule, beta_2=0.98, epsilon=1e-9)
    # Without label smoothing, probabilities say how sure the model is.
    model.compile(adam, training.SequenceCrossentropy())
    progress = training.TrainingProgress(arguments.minutes)
    often = max(1, len(batches) // 4)
    average = training.CheckpointAverage(5, save_freq=often, validate=True)
    fixed = {k: v for k, v in vars(arguments).items() if k not in FREE}
    backup = training.TrainingBackup(
        out / "backup",
        [progress, average, keras.callbacks.EarlyStopping(patience=10)],
        save_freq=min(200, len(batches)),
        data=batches,
        settings=fixed | {"batches": len(batches)},
    )
    # The batches are shuffled already, and `progress` prints.
    options = {"shuffle": False, "verbose": 0, "callbacks": [backup]}
    held_out = batches_of(validation, shuffle=False)
    with backup.interruptible():
        model.fit(batches, epochs=epochs, validation_data=held_out, **options)

    model.save(out / "model.keras")
    tokenizer.save(out)
    curves = progress.losses, progress.validation
    figure = explain.plot_training(*curves, ylabel="loss (nats per character)")
    figure.savefig(out / "training.png", dpi=150)
    scores = {}
    for name, part in zip(["test_known", "test_new"], tests, strict=True):
        lines = "".join(f"{wrong}\t{right}\n" for wrong, right in part)
        (out / f"{name}.tsv").write_text(lines, encoding="utf-8")
        scores[name] = score(model, tokenizer, part, f"{name}.tsv")
    # Where the last decoder layer looks as it corrects a word.
    word = tests[0][0].wrong
    source = encode(tokenizer, [word], len(word) + 1)
    decoded = model.generate(source, LONGEST, return_weights=True)
    rows = [*tokenizer.decode(decoded.tokens[0, 0]), "end"][:LONGEST]
    weights = decoded.weights[0, 0, -1, :, : len(rows)]  # (heads, rows, keys)
    figure = explain.plot_attention(weights, rows, [*word, "end"])
    figure.savefig(out / "attention.png", dpi=150)
    results = progress.summary() | {"scores": scores}
    results["arguments"] = vars(arguments) | {"out": str(out)}
    (out / "results.json").write_text(json.dumps(results, indent=1), "utf-8")
    backup.remove()
    print(f"\nThe model, training.png and attention.png are in {out}. Next:")
    print(f"  python {sys.argv[0]} predict --out {out}")


def predict(arguments):
    """Corrects the lines of a file, or lines typed in the terminal."""
    from keras_attn.datasets import read_lines

    model = load(arguments.out)
    if arguments.input:
        groups = [read_lines(arguments.input)]
    else:
        if sys.stdin.isatty():
            print("Type a line and press Enter; Ctrl-D ends.")
        groups = ([line.rstrip("\n")] for line in sys.stdin)
    for lines in groups:
        count = arguments.suggestions
        for line in correct(*model, lines, arguments.threshold, count):
            print(line, flush=True)


def evaluate(arguments):
    """Counts corrections and false alarms on lists of misspellings."""
    model = load(arguments.out)
    for path in arguments.data or sorted(arguments.out.glob("test_*.tsv")):
        pairs = read_misspellings([path], arguments.strict)
        score(*model, pairs, pathlib.Path(path).name)


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
