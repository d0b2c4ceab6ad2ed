"""Compare recurrent translation models and a Transformer of the same size.

    python examples/compare_seq2seq.py train --data pairs.tsv --minutes 20
    python examples/compare_seq2seq.py evaluate
    python examples/translate.py predict --out runs/compare_seq2seq/luong

`train` trains up to four models with the same number of parameters, on the same
batches and for the same time each: `plain`, a recurrent encoder-decoder without
attention (Sutskever et al. 2014); `bahdanau`, with additive attention (Bahdanau
et al. 2014); `luong`, with general attention and input feeding (Luong et al.
2015); and `transformer`. It reports BLEU by the length of the source.

`--data` takes one tab-separated file (source, target) or two files that agree
line by line; each can be compressed (.gz), the first one also a .zip. Without
`--data`, `train` uses synthetic English and Spanish sentences.
"""

import argparse
import json
import os
import pathlib
import sys

SCORES = {"plain": None, "bahdanau": "additive", "luong": "general"}
MODELS = [*SCORES, "transformer"]
# `width` is that of `bahdanau`; the other models get the width with which they
# have as many parameters. `rate` is the highest learning rate of the recurrent
# models; that of the Transformer is lower.
PRESETS = {
    "small": {"width": 128, "blocks": 2, "vocabulary": 1500, "rate": 4e-3},
    "base": {"width": 192, "blocks": 3, "vocabulary": 4000, "rate": 2e-3},
}
TRANSFORMER_RATE = 0.6
WARMUP = 300  # steps
GROUPS = 6  # of test sentences, by length
SYNTHETIC = {"train": 20_000, "validation": 500, "test": 1200}  # pairs
QUICK = {"train": 300, "validation": 40, "test": 20}


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
        add("--beams", type=int, default=4, help="hypotheses of beam search")
        add("--strict", action="store_true", help="stop at the first bad line")
        return add

    add = command("train", "train and compare models on pairs of sentences")
    add("--data", nargs="+", metavar="FILE", help="one or two files of pairs")
    add("--models", nargs="+", choices=MODELS, default=MODELS, help="to train")
    add("--minutes", type=float, default=10, help="time limit of each model")
    add("--epochs", type=int, help="at most 1000, or 2 with --quick")
    add("--preset", choices=PRESETS, help="small, or base with --data")
    add("--cell", choices=["lstm", "gru"], default="lstm", help="recurrent")
    add("--layers", type=int, default=1, help="recurrent layers on each side")
    add("--dropout", type=float, default=0.1, help="of all models")
    add("--batch-tokens", type=int, default=1024, help="tokens of a batch")
    add("--max-length", type=int, default=80, help="tokens of a sentence")
    add("--seed", type=int, default=1, help="random seed")
    add("--quick", action="store_true", help="a few steps, as a test")
    add(
        "--resume", action="store_true", help="continue an interrupted training"
    )
    add = command("evaluate", "compute BLEU by length for all trained models")
    add("--data", nargs="+", metavar="FILE", help="the test pairs of `train`")
    return parser.parse_args()


def read_pairs(files, strict):
    """Reads pairs of sentences; reports and counts bad lines."""
    from keras_attn import datasets

    one, bad = len(files) == 1, []
    read = datasets.read_tsv_pairs if one else datasets.read_parallel
    try:
        return read(*files, on_bad_lines="error" if strict else bad.append)
    finally:
        for path, line, reason in bad[:10]:
            print(f"{path}, line {line}: {reason}", file=sys.stderr)
        if bad:
            print(f"Skipped {len(bad):,} bad lines.", file=sys.stderr)


def load_splits(arguments):
    """Returns the pairs of each split, by name."""
    from keras_attn import datasets

    if arguments.data:
        pairs = read_pairs(arguments.data, arguments.strict)
        # A source can have several translations. All of them are in one split.
        parts = datasets.split_by_hash(pairs, key=lambda pair: pair.source)
    else:
        make, seed = datasets.make_translation_pairs, arguments.seed
        parts = [make(n, seed=seed, split=s) for s, n in SYNTHETIC.items()]
    splits = dict(zip(SYNTHETIC, parts, strict=True))
    if arguments.quick:
        splits = {name: splits[name][:n] for name, n in QUICK.items()}
    counts = [f"{len(pairs):,} {name} pairs" for name, pairs in splits.items()]
    print(", ".join(counts))
    if not all(splits.values()):
        raise ValueError(f"{arguments.data} leaves no pair for a split.")
    return splits


def build_model(name, width, size, tokenizer, arguments):
    """Returns one of the models, not trained."""
    from keras_attn.models import RecurrentSeq2Seq, Transformer

    options = {"hidden_dim": width, "dropout": arguments.dropout}
    for special in "pad_id", "start_id", "end_id":
        options[special] = getattr(tokenizer, special)
    if name == "transformer":
        return Transformer(
            tokenizer.vocabulary_size,
            num_layers=size["blocks"],
            num_heads=max(2, size["width"] // 64),
            intermediate_dim=4 * width,
            normalize_first=True,
            **options,
        )
    return RecurrentSeq2Seq(
        tokenizer.vocabulary_size,
        cell=arguments.cell,
        num_layers=arguments.layers,
        bidirectional=True,
        attention=SCORES[name],
        input_feeding=name == "luong",
        **options,
    )


def equal_width(name, wanted, *rest):
    """Returns the width with which a model has about `wanted` parameters."""
    import numpy as np

    # The number of parameters is a polynomial of the width, of degree 2.
    known = [24, 48, 96]
    counts = [build_model(name, d, *rest).count_params() for d in known]
    # Even, for two directions, and a multiple of two or three heads.
    widths = np.arange(6, 2000, 6 if name == "transformer" else 2)
    found = np.polyval(np.polyfit(known, counts, 2), widths)
    return int(widths[abs(found - wanted).argmin()])


def compare(models, tokenizer, pairs, num_beams):
    """Translates the sources; prints and returns the scores by model."""
    import numpy as np
    import sacrebleu

    from keras_attn.datasets import group_references
    from keras_attn.decoding import BeamSearch

    sources, references = group_references(pairs)
    ids = [[*row, tokenizer.end_id] for row in tokenizer.encode(sources)]
    longest, strategy = 2 * max(map(len, ids)) + 10, BeamSearch(num_beams)
    lengths = np.array([len(source.split()) for source in sources])
    quantiles = np.arange(1, GROUPS + 1) / GROUPS
    ends = np.unique(np.quantile(lengths, quantiles, method="higher")).tolist()
    groups = list(zip([lengths.min(), *np.add(ends, 1)], ends))
    # sacreBLEU's streams: the i-th reference of each sentence, or None.
    most = max(map(len, references))
    padded = [group + [None] * (most - len(group)) for group in references]
    scores, translations = {}, {}

    def bleu(texts, rows):
        streams = zip(*[padded[row] for row in rows], strict=True)
        hypotheses = [texts[row] for row in rows]
        return sacrebleu.corpus_bleu(hypotheses, [*streams]).score

    names = [f"{a}-{b}" if a < b else f"{a}" for a, b in groups]
    print(
        f"BLEU by words{''.join(f'{name:>7}' for name in names)}    all  exact"
    )
    for name, model in models.items():
        found = model.generate(ids, longest, strategy, batch_size=64)
        texts = tokenizer.decode(found.tokens[:, 0].tolist())
        right = [a in b for a, b in zip(texts, references, strict=True)]
        translations[name] = texts
        scores[name] = {
            "bleu": bleu(texts, range(len(texts))),
            "exact": float(np.mean(right)),
            "by_length": {
                words: bleu(
                    texts, np.flatnonzero((lengths >= a) & (lengths <= b))
                )
                for words, (a, b) in zip(names, groups, strict=True)
            },
        }
        columns = *scores[name]["by_length"].values(), scores[name]["bleu"]
        columns = "".join(f"{score:>7.2f}" for score in columns)
        print(f"{name:<13}{columns}{np.mean(right):>7.1%}", flush=True)
    for row in np.argsort(-lengths, kind="stable")[
        : len(sources) // 2 : 1 + len(sources) // 6
    ]:
        print(f"  {sources[row]}\n    reference: {references[row][0]}")
        for name, texts in translations.items():
            print(f"    {name}: {texts[row]}")
    return scores


def plot_comparison(curves, scores):
    """Draws validation losses over time, and BLEU over the length."""
    import numpy as np
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.5, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    for name, progress in curves.items():
        batches, losses = np.transpose(progress.validation)
        minutes = batches / len(progress.losses) * progress.seconds / 60
        left.plot(minutes, losses, "o-", ms=4, label=name)
        by_length = scores[name]["by_length"]
        right.plot([*by_length], [*by_length.values()], "o-", label=name)
    left.set(xlabel="minutes", ylabel="validation loss (nats per token)")
    right.set(xlabel="words of the source", ylabel="BLEU", ylim=(0, 102))
    right.legend()
    return figure


def plot_alignments(models, tokenizer, sentence, num_beams):
    """Draws where each model with attention looks as it translates."""
    from matplotlib.figure import Figure

    from keras_attn.decoding import BeamSearch
    from keras_attn.explain import plot_attention

    ids = [*tokenizer.encode(sentence), tokenizer.end_id]
    models = {name: models[name] for name in models if name != "plain"}
    figure = Figure(figsize=(5 * len(models), 5), layout="constrained")
    panels = figure.subplots(1, len(models), squeeze=False)[0]
    for panel, (name, model) in zip(panels, models.items(), strict=True):
        found = model.generate(
            [ids], 2 * len(ids) + 10, BeamSearch(num_beams), return_weights=True
        )
        length = found.lengths[0, 0]
        # The last layer, averaged over its heads.
        weights = found.weights[0, 0, -1].mean(0)[:length]
        target = tokenizer.pieces(found.tokens[0, 0, :length].tolist())
        plot_attention(weights, target, tokenizer.pieces(ids), ax=panel)
        panel.set_title(name)
    return figure


def fit(model, name, width, batches, validation, size, arguments):
    """Trains a model; returns its `TrainingProgress` and `TrainingBackup`."""
    import keras

    from keras_attn import training

    rate = size["rate"] * (TRANSFORMER_RATE if name == "transformer" else 1)
    scale = rate * (width * WARMUP) ** 0.5
    schedule = training.WarmupSchedule(width, WARMUP, scale)
    model.compile(
        # Gradients of recurrent networks are sometimes very large.
        keras.optimizers.Adam(
            schedule, beta_2=0.98, epsilon=1e-9, global_clipnorm=1.0
        ),
        training.SequenceCrossentropy(label_smoothing=0.1),
        metrics=[training.TokenAccuracy()],
    )
    report = batches.report
    progress = training.TrainingProgress(
        arguments.minutes, report.target_tokens
    )
    often = max(1, report.batches // 10)
    average = training.CheckpointAverage(5, save_freq=often, validate=True)
    backup = training.TrainingBackup(
        arguments.out / name / "backup",
        [progress, average, keras.callbacks.EarlyStopping(patience=5)],
        save_freq=min(200, report.batches),
        data=batches,
        settings=size | {"width": width, "pairs": report.pairs},
    )
    keras.utils.set_random_seed(arguments.seed)
    with backup.interruptible():
        model.fit(
            batches,
            epochs=arguments.epochs or (2 if arguments.quick else 1000),
            shuffle=False,  # `token_batches` shuffles.
            validation_data=validation,
            callbacks=[backup],
            verbose=0,
        )
    return progress, backup


def train(arguments):
    """Trains the models, saves them, and compares them on the test pairs."""
    import keras

    from keras_attn import datasets
    from keras_attn.explain import plot_training
    from keras_attn.text import SubwordTokenizer, token_batches

    out = arguments.out
    if not arguments.resume and (found := list(out.glob("*/backup"))):
        raise ValueError(
            f"{out} has an interrupted training: continue it with --resume, or "
            f"remove {' '.join(map(str, found))}."
        )
    splits = load_splits(arguments)
    size = PRESETS[arguments.preset or ("base" if arguments.data else "small")]
    if arguments.quick:
        size = size | {"width": 48, "blocks": 1, "vocabulary": 600}
    tokenizer = SubwordTokenizer.train_from_lines(
        (sentence for pair in splits["train"] for sentence in pair),
        vocabulary_size=size["vocabulary"],
    )

    def batches_of(pairs, buckets, shuffle):
        return token_batches(
            *zip(*pairs, strict=True),
            tokenizer,
            tokens_per_batch=arguments.batch_tokens,
            max_length=arguments.max_length,
            buckets=1 if arguments.quick else buckets,
            shuffle=shuffle,
            seed=arguments.seed,
        )

    batches = batches_of(splits["train"], 4, True)
    validation = batches_of(splits["validation"][:2000], 2, False)
    print(batches.report)
    rest = size, tokenizer, arguments
    wanted = build_model("bahdanau", size["width"], *rest).count_params()
    models, curves, backups, results = {}, {}, [], {}
    for name in arguments.models:
        width = equal_width(name, wanted, *rest)
        keras.utils.set_random_seed(arguments.seed)
        model = models[name] = build_model(name, width, *rest)
        parameters = model.count_params()
        print(f"{name}: width {width}, {parameters:,} parameters", flush=True)
        progress, backup = fit(
            model, name, width, batches, validation, size, arguments
        )
        model.save(out / name / "model.keras")
        tokenizer.save(out / name / "tokenizer.model")
        figure = plot_training(progress.losses, progress.validation)
        figure.savefig(out / name / "training.png", dpi=150)
        curves[name] = progress
        backups.append(backup)
        results[name] = {
            "width": width,
            "parameters": parameters,
            "minutes": progress.seconds / 60,
            "batches": len(progress.losses),
            "target_tokens_per_second": progress.tokens_per_second,
            "validation_loss": min(loss for _, loss in progress.validation),
        }

    lines = [f"{pair.source}\t{pair.target}\n" for pair in splits["test"]]
    (out / "test.tsv").write_text("".join(lines), encoding="utf-8")
    scores = compare(models, tokenizer, splits["test"], arguments.beams)
    plot_comparison(curves, scores).savefig(out / "comparison.png", dpi=150)
    if set(models) - {"plain"}:
        example = datasets.SHOWCASE_PAIRS[-1].source
        if arguments.data:
            example = sorted(splits["test"], key=lambda p: len(p.source))[
                len(splits["test"]) // 2
            ].source
        figure = plot_alignments(models, tokenizer, example, arguments.beams)
        figure.savefig(out / "alignments.png", dpi=150)
    results = {name: results[name] | scores[name] for name in models}
    results["arguments"] = {k: str(v) for k, v in vars(arguments).items()}
    text = json.dumps(results, indent=1)
    (out / "results.json").write_text(text + "\n", encoding="utf-8")
    for backup in backups:
        backup.remove()
    best = max(models, key=lambda name: scores[name]["bleu"])
    print(
        f"\nThe models, comparison.png and alignments.png are in {out}. Next:"
    )
    translate = pathlib.Path(sys.argv[0]).with_name("translate.py")
    print(f"  python {translate} predict --out {out / best}")


def evaluate(arguments):
    """Computes BLEU by length for all trained models."""
    import keras

    from keras_attn.text import SubwordTokenizer

    out = arguments.out
    names = [name for name in MODELS if (out / name / "model.keras").is_file()]
    if not names:
        raise ValueError(f"{out} has no model; `train` writes them.")
    models = {
        name: keras.saving.load_model(out / name / "model.keras", compile=False)
        for name in names
    }
    tokenizer = SubwordTokenizer.load(out / names[0] / "tokenizer.model")
    pairs = read_pairs(arguments.data or [out / "test.tsv"], arguments.strict)
    compare(models, tokenizer, pairs, arguments.beams)


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
