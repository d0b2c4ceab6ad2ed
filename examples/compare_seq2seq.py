"""Compare recurrent translation models and a Transformer of the same size.

    python examples/compare_seq2seq.py train --data pairs.tsv --minutes 20
    python examples/compare_seq2seq.py evaluate
    python examples/translate.py predict --out runs/compare_seq2seq/luong

Up to four models have the same number of parameters, the same batches and the
same time: `plain`, a recurrent encoder-decoder without attention (Sutskever et
al. 2014); `bahdanau`, with additive attention (Bahdanau et al. 2014); `luong`,
with general attention and input feeding (Luong et al. 2015); `transformer`.

`--data` takes one tab-separated file (source, target) or two files that agree
line by line; each can be compressed (.gz), the first one also a .zip. Without
`--data`, `train` uses synthetic English and Spanish sentences.
"""

import argparse
import json
import os
import pathlib
import sys

import numpy as np

MODELS = ["plain", "bahdanau", "luong", "transformer"]
# `width` is that of `bahdanau`; the other models get the width with which they
# have as many parameters. `rate` is the highest learning rate of the recurrent
# models; that of the Transformer is half as high.
SIZES = ["width", "blocks", "heads", "vocabulary", "rate"]
PRESETS = {
    "tiny": (48, 1, 2, 600, 4e-3),
    "small": (128, 2, 2, 1500, 4e-3),
    "base": (192, 3, 4, 4000, 2e-3),
}
WARMUP = 300  # steps
# Options that may change when a training is resumed.
FREE = {"backend", "command", "epochs", "minutes", "models", "out", "resume"}
GROUPS = 6  # of test sentences, by length
SYNTHETIC = {"train": 20_000, "validation": 500, "test": 1200}  # pairs
QUICK = {"train": 150, "validation": 20, "test": 12}


def parse_arguments():
    """Returns the arguments of the command line."""
    style = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=style)
    commands = parser.add_subparsers(dest="command", required=True)

    def command(name, text):
        style = argparse.ArgumentDefaultsHelpFormatter
        sub = commands.add_parser(name, help=text, formatter_class=style)
        add = sub.add_argument
        out, backends = "runs/compare_seq2seq", ["jax", "tensorflow", "torch"]
        add("--out", type=pathlib.Path, default=out, help="results folder")
        add("--backend", choices=backends, help="Keras backend")
        add("--strict", action="store_true", help="stop at the first bad line")
        return add

    add = command("train", "train and compare models on pairs of sentences")
    add("--data", nargs="+", metavar="FILE", help="one or two files of pairs")
    add("--models", nargs="+", choices=MODELS, help="all, two with --quick")
    add("--minutes", type=float, default=10, help="time limit of each model")
    add("--epochs", type=int, help="at most 1000, or 1 with --quick")
    add("--preset", choices=PRESETS, help="small, or base with --data")
    add("--cell", choices=["lstm", "gru"], default="lstm", help="recurrent")
    add("--layers", type=int, default=1, help="recurrent layers on each side")
    add("--dropout", type=float, default=0.1, help="of all models")
    add("--batch-tokens", type=int, default=1024, help="tokens of a batch")
    add("--max-length", type=int, default=80, help="tokens of a sentence")
    add("--seed", type=int, default=1, help="random seed")
    add("--quick", action="store_true", help="a few steps, as a test")
    add("--resume", action="store_true", help="continue an interrupted run")
    add = command("evaluate", "compute BLEU by length for all trained models")
    add("--data", nargs="+", metavar="FILE", help="the test pairs of `train`")
    return parser.parse_args()


def read_pairs(files, strict):
    """Reads pairs of sentences; reports and counts bad lines."""
    from keras_attn import datasets

    read = datasets.read_parallel if len(files) > 1 else datasets.read_tsv_pairs
    with datasets.report_bad_lines(strict) as on_bad_lines:
        return read(*files, on_bad_lines=on_bad_lines)


def load_splits(arguments):
    """Returns the pairs of each split, by name."""
    from keras_attn import datasets

    if arguments.data:
        pairs = read_pairs(arguments.data, arguments.strict)
        # A source can have several translations. All of them are in one split.
        parts = datasets.split_by_hash(pairs, key=lambda pair: pair.source)
    else:
        make, seed = datasets.make_translation_pairs, arguments.seed
        sizes = SYNTHETIC
        if arguments.quick:  # The shortest are chosen below.
            sizes = {name: 10 * n for name, n in QUICK.items()}
        parts = [make(n, seed=seed, split=s) for s, n in sizes.items()]
    splits = dict(zip(SYNTHETIC, parts, strict=True))
    for name, n in QUICK.items() if arguments.quick else ():
        splits[name] = sorted(splits[name], key=lambda p: len(p.source))[:n]
    print(*(f"{len(v):,} {k} pairs" for k, v in splits.items()), sep=", ")
    if not all(splits.values()):
        raise ValueError(f"{arguments.data} leaves no pair for a split.")
    return splits


def build_model(name, width, size, tokenizer, arguments):
    """Returns one of the models, not trained."""
    from keras_attn.models import RecurrentSeq2Seq, Transformer

    special = "pad_id", "start_id", "end_id"
    options = {name: getattr(tokenizer, name) for name in special}
    options |= {"hidden_dim": width, "dropout": arguments.dropout}
    if name == "transformer":
        return Transformer(
            tokenizer.vocabulary_size,
            num_layers=size["blocks"],
            num_heads=size["heads"],
            intermediate_dim=4 * width,
            normalize_first=True,
            **options,
        )
    return RecurrentSeq2Seq(
        tokenizer.vocabulary_size,
        cell=arguments.cell,
        num_layers=arguments.layers,
        bidirectional=True,
        attention={"bahdanau": "additive", "luong": "general"}.get(name),
        input_feeding=name == "luong",
        **options,
    )


def equal_width(name, wanted, size, *rest):
    """Returns the width with which a model has about `wanted` parameters."""
    # The number of parameters is a polynomial of the width, of degree 2.
    known = [24, 48, 96]
    counts = [build_model(name, d, size, *rest).count_params() for d in known]
    # Even, for two directions; a multiple of the heads.
    step = size["heads"] if name == "transformer" else 2
    widths = np.arange(step, 10 * size["width"], step)
    found = np.polyval(np.polyfit(known, counts, 2), widths)
    return int(widths[abs(found - wanted).argmin()])


def compare(folder, pairs, names=MODELS):
    """Prints and returns the BLEU of trained models, overall and by length."""
    import keras
    import sacrebleu

    from keras_attn.datasets import group_references, reference_streams
    from keras_attn.text import SubwordTokenizer

    files = [folder / name / "model.keras" for name in names]
    files = [file for file in files if file.is_file()]
    if not files:
        raise ValueError(f"{folder} has no model; `train` writes them.")
    sources, references = group_references(pairs)

    def bleu(texts, rows):
        streams = reference_streams([references[i] for i in rows])
        return sacrebleu.corpus_bleu([texts[i] for i in rows], streams).score

    lengths = np.array([len(source.split()) for source in sources])
    quantiles = np.arange(1, GROUPS + 1) / GROUPS
    ends = np.unique(np.quantile(lengths, quantiles, method="higher"))
    numbers, groups = np.searchsorted(ends, lengths), {}
    for number, end in enumerate(ends):
        rows = np.flatnonzero(numbers == number)
        groups[f"{lengths[rows].min()}-{end}"] = rows
    heads, scores = [f"{words:>6}" for words in groups], {}
    print("BLEU by words", *heads, "   all  exact")
    for file in files:
        name = file.parent.name
        model = keras.saving.load_model(file, compile=False)
        tokenizer = SubwordTokenizer.load(file.with_name("tokenizer.model"))
        ids = [[*row, tokenizer.end_id] for row in tokenizer.encode(sources)]
        most = 2 * max(map(len, ids)) + 10
        found = model.generate(ids, most, "beam", batch_size=64)
        texts = tokenizer.decode(found.tokens[:, 0].tolist())
        right = [a in b for a, b in zip(texts, references, strict=True)]
        by_length = {words: bleu(texts, g) for words, g in groups.items()}
        total, exact = bleu(texts, range(len(texts))), float(np.mean(right))
        scores[name] = {"bleu": total, "exact": exact, "by_length": by_length}
        columns = [f"{value:6.2f}" for value in (*by_length.values(), total)]
        print(f"{name:<13}", *columns, f"{exact:6.1%}", flush=True)
    return scores


def plot_scores(scores):
    """Draws the BLEU of each model by the length of the source."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.subplots()
    for name, score in scores.items():
        by_length = score["by_length"]
        axes.plot([*by_length], [*by_length.values()], "o-", label=name)
    axes.set(xlabel="words of the source", ylabel="BLEU", ylim=(0, 102))
    axes.legend()
    return figure


def plot_alignment(model, tokenizer, sentence):
    """Draws where a model with attention looks as it translates."""
    from keras_attn.explain import plot_attention

    ids, options = tokenizer.encode(sentence), {"return_weights": True}
    ids, most = [*ids, tokenizer.end_id], 2 * len(ids) + 10
    found = model.generate([ids], most, "beam", **options)
    target = found.tokens[0, 0, : found.lengths[0, 0]]
    # The last layer, averaged over its heads.
    weights = found.weights[0, 0, -1].mean(0)[: len(target)]
    target, source = map(tokenizer.pieces, (target.tolist(), ids))
    return plot_attention(weights, target, source)


def fit(model, rate, batches, validation, folder, arguments):
    """Trains a model; returns its `TrainingProgress` and `TrainingBackup`."""
    import keras

    from keras_attn import training

    width, report = model.hidden_dim, batches.report
    scale, tokens = rate * (width * WARMUP) ** 0.5, report.target_tokens
    schedule = training.WarmupSchedule(width, WARMUP, scale)
    # Gradients of recurrent networks are sometimes very large.
    adam = keras.optimizers.Adam(schedule, beta_2=0.98, global_clipnorm=1.0)
    loss = training.SequenceCrossentropy(label_smoothing=0.1)
    model.compile(adam, loss, metrics=[training.TokenAccuracy()])
    progress = training.TrainingProgress(arguments.minutes, tokens)
    often = max(1, report.batches // 10)
    average = training.CheckpointAverage(5, save_freq=often, validate=True)
    fixed = {k: v for k, v in vars(arguments).items() if k not in FREE}
    backup = training.TrainingBackup(
        folder / "backup",
        [progress, average, keras.callbacks.EarlyStopping(patience=5)],
        save_freq=min(200, report.batches),
        data=batches,
        settings=fixed | {"width": width, "pairs": report.pairs},
    )
    # The batches are shuffled already, and `progress` prints.
    options = {"shuffle": False, "verbose": 0, "callbacks": [backup]}
    epochs = arguments.epochs or (1 if arguments.quick else 1000)
    with backup.interruptible():
        model.fit(batches, epochs=epochs, validation_data=validation, **options)
    return progress, backup


def train(arguments):
    """Trains the models, saves them, and compares them on the test pairs."""
    import keras

    from keras_attn import explain, text

    out, backups = arguments.out, [*arguments.out.glob("*/backup")]
    if backups and not arguments.resume:
        message = "has an interrupted training: continue it with --resume, or"
        raise ValueError(f"{out} {message} remove {backups[-1]}.")
    splits = load_splits(arguments)
    default = "base" if arguments.data else "small"
    preset = "tiny" if arguments.quick else arguments.preset or default
    size = dict(zip(SIZES, PRESETS[preset], strict=True))
    tokenizer = text.SubwordTokenizer.train_from_lines(
        (sentence for pair in splits["train"] for sentence in pair),
        vocabulary_size=size["vocabulary"],
    )

    def batches_of(pairs, buckets, shuffle):
        return text.token_batches(
            *zip(*pairs, strict=True),
            tokenizer,
            tokens_per_batch=arguments.batch_tokens,
            max_length=arguments.max_length,
            buckets=1 if arguments.quick else buckets,
            shuffle=shuffle,
            seed=arguments.seed,
        )

    batches = batches_of(splits["train"], 4, True)
    # A file can be sorted by length.
    step = max(1, len(splits["validation"]) // 2000)
    validation = batches_of(splits["validation"][::step], 2, False)
    print(batches.report)
    rest, test = (size, tokenizer, arguments), splits["test"]
    wanted = build_model("bahdanau", size["width"], *rest).count_params()
    results, backups = {}, []
    default = MODELS[1::2] if arguments.quick else MODELS
    for name in arguments.models or default:
        width, folder = equal_width(name, wanted, *rest), out / name
        rate = size["rate"] / (2 if name == "transformer" else 1)
        keras.utils.set_random_seed(arguments.seed)
        model = build_model(name, width, *rest)
        parameters = model.count_params()
        print(f"{name}: width {width}, {parameters:,} parameters", flush=True)
        options = batches, validation, folder, arguments
        progress, backup = fit(model, rate, *options)
        backups.append(backup)
        model.save(folder / "model.keras")
        tokenizer.save(folder / "tokenizer.model")
        curves = progress.losses, progress.validation
        figure = explain.plot_training(*curves, ylabel="loss (nats per token)")
        figure.savefig(folder / "training.png", dpi=150)
        if name != "plain":
            figure = plot_alignment(model, tokenizer, test[0].source)
            figure.savefig(folder / "attention.png", dpi=150)
        results[name] = progress.summary() | {
            "parameters": parameters,
        }

    lines = [f"{pair.source}\t{pair.target}\n" for pair in test]
    (out / "test.tsv").write_text("".join(lines), encoding="utf-8")
    scores = compare(out, test, [*results])
    plot_scores(scores).savefig(out / "bleu.png", dpi=150)
    results = {name: results[name] | scores[name] for name in results}
    results["arguments"] = vars(arguments) | {"out": str(out)}
    (out / "results.json").write_text(json.dumps(results, indent=1), "utf-8")
    for backup in backups:
        backup.remove()
    best = max(scores, key=lambda name: scores[name]["bleu"])
    program = pathlib.Path(sys.argv[0]).with_name("translate.py")
    print(f"\nThe models, bleu.png and results.json are in {out}. Next:")
    print(f"  python {program} predict --out {out / best}")


def evaluate(arguments):
    """Computes BLEU by length for all trained models."""
    files = arguments.data or [arguments.out / "test.tsv"]
    compare(arguments.out, read_pairs(files, arguments.strict))


def main():
    """Runs the command; prints errors in one line."""
    arguments = parse_arguments()
    if arguments.backend:
        os.environ["KERAS_BACKEND"] = arguments.backend
    commands = {"train": train, "evaluate": evaluate}
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
