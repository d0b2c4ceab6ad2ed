"""Train, use and evaluate a Transformer that translates sentences.

    python examples/translate.py train --data pairs.tsv
    python examples/translate.py predict --input sentences.txt
    python examples/translate.py evaluate

`--data` takes one tab-separated file (source, target) or two files that agree
line by line; each can be compressed (.gz), the first one also a .zip. Without
`--data`, `train` uses synthetic English and Spanish sentences.
"""

import argparse
import json
import os
import pathlib
import sys

# Model sizes. Heads have 64 features; `rate` is the highest learning rate.
PRESETS = {
    "tiny": {"layers": 2, "width": 128, "vocabulary": 1500, "rate": 2e-3},
    "small": {"layers": 3, "width": 256, "vocabulary": 4000, "rate": 1e-3},
    "base": {"layers": 6, "width": 512, "vocabulary": 8000, "rate": 5e-4},
}
WARMUP = 500  # steps
# Options that may change when a training is resumed.
FREE = {"backend", "command", "epochs", "minutes", "out", "resume"}
SYNTHETIC = {"train": 20_000, "validation": 500, "test": 1200}  # pairs
QUICK = {"train": 400, "validation": 40, "test": 20}


def parse_arguments():
    """Returns the arguments of the command line."""
    style = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=style)
    commands = parser.add_subparsers(dest="command", required=True)

    def command(name, text):
        style = argparse.ArgumentDefaultsHelpFormatter
        sub = commands.add_parser(name, help=text, formatter_class=style)
        add = sub.add_argument
        out, backends = "runs/translate", ["jax", "tensorflow", "torch"]
        add("--out", type=pathlib.Path, default=out, help="model folder")
        add("--backend", choices=backends, help="Keras backend")
        return add

    add = command("train", "train a model on pairs of sentences")
    add("--data", nargs="+", metavar="FILE", help="one or two files of pairs")
    add("--preset", choices=PRESETS, default="small", help="model size")
    add("--minutes", type=float, default=60, help="time limit")
    add("--epochs", type=int, default=1000, help="maximum number of epochs")
    add("--dropout", type=float, help="0.1, or 0.3 below 15,000 pairs")
    add("--batch-tokens", type=int, default=1024, help="tokens of a batch")
    add("--max-length", type=int, default=80, help="tokens of a sentence")
    add("--seed", type=int, default=1, help="random seed")
    add("--quick", action="store_true", help="a few steps, as a test")
    add(
        "--resume", action="store_true", help="continue an interrupted training"
    )
    add("--strict", action="store_true", help="stop at the first bad line")
    add = command("predict", "translate the lines of a file, or typed lines")
    add("--input", metavar="FILE", help="lines typed in the terminal")
    add("--beams", type=int, default=4, help="hypotheses of beam search")
    add = command("evaluate", "compute BLEU on pairs of sentences")
    add("--data", nargs="+", metavar="FILE", help="the test pairs of `train`")
    add("--beams", type=int, default=4, help="hypotheses of beam search")
    add("--strict", action="store_true", help="stop at the first bad line")
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

    sizes = QUICK if arguments.quick else SYNTHETIC
    if arguments.data:
        pairs = read_pairs(arguments.data, arguments.strict)
        # A source can have several translations. All of them are in one split.
        splits = datasets.split_by_hash(pairs, key=lambda pair: pair.source)
        splits = dict(zip(sizes, splits, strict=True))
    else:
        make = datasets.make_translation_pairs
        splits = {s: make(n, seed=1, split=s) for s, n in sizes.items()}
    if arguments.quick:
        splits = {name: splits[name][:n] for name, n in sizes.items()}
    for name, pairs in splits.items():
        print(
            f"{len(pairs):,} {name} pairs", end="\n" if name == "test" else ", "
        )
        if not pairs:
            raise ValueError(f"{arguments.data} leaves no pair for {name}.")
    return splits


class Translator:
    """A trained model with its tokenizer."""

    def __init__(self, model, tokenizer, num_beams=4):
        from keras_attn.decoding import BeamSearch

        self.model, self.tokenizer = model, tokenizer
        self.strategy = BeamSearch(num_beams)
        pieces = tokenizer.pieces(range(tokenizer.vocabulary_size))
        letters = {c for piece in pieces if "<" not in piece for c in piece}
        self.capitals = {c for c in letters if c.isupper()}

    @classmethod
    def load(cls, folder, num_beams):
        """Loads a translator from the folder of a training."""
        import keras

        from keras_attn.text import SubwordTokenizer

        if not (folder / "model.keras").is_file():
            raise ValueError(f"{folder} has no model; `train` writes one.")
        model = keras.saving.load_model(folder / "model.keras", compile=False)
        tokenizer = SubwordTokenizer.load(folder / "tokenizer.model")
        return cls(model, tokenizer, num_beams)

    def translate(self, sentences):
        """Returns the translations of a list of sentences."""
        ids = self.generate(self.encode(sentences)).tokens[:, 0]
        texts = self.tokenizer.decode(ids.tolist())
        # The end token alone is not a translation of an empty line.
        return [
            text if source.strip() else ""
            for source, text in zip(sentences, texts, strict=True)
        ]

    def plot_attention(self, sentence, path):
        """Draws where the last decoder layer looks as it translates."""
        from keras_attn.explain import attention_maps, plot_attention

        rows = self.encode([sentence])
        maps = attention_maps(
            self.model,
            rows,
            layers="cross",
            tokens=self.tokenizer.pieces,
            decoded=self.generate(rows),
        )
        plot_attention(maps[-1]).savefig(path, dpi=150)

    def encode(self, sentences):
        """Returns the ids of sentences, lists that end with the end token."""
        # A model that was trained without capital letters reads small ones.
        if len(self.capitals) <= 1:
            sentences = [
                "".join(c if c in self.capitals else c.lower() for c in text)
                for text in sentences
            ]
        encoded = self.tokenizer.encode(sentences)
        return [[*ids, self.tokenizer.end_id] for ids in encoded]

    def generate(self, rows):
        """Translates lists of ids; returns `Decoded`."""
        most = 2 * max(map(len, rows)) + 10
        return self.model.generate(rows, most, self.strategy, batch_size=64)


def print_bleu(translator, pairs):
    """Translates the sources of pairs; prints samples; returns BLEU."""
    import sacrebleu

    from keras_attn.datasets import group_references, reference_streams

    sources, references = group_references(pairs)
    translations = translator.translate(sources)
    streams = reference_streams(references)
    bleu = sacrebleu.corpus_bleu(translations, streams)
    for i in range(0, len(sources), max(1, len(sources) // 4)):
        print(f"  {sources[i]}\n    -> {translations[i]}")
        if translations[i] not in references[i]:
            print(f"       (reference: {references[i][0]})")
    print(f"{len(sources):,} sentences, sacreBLEU: {bleu}")
    print(f"BLEU {bleu.score:.2f}")
    return bleu.score


def train(arguments):
    """Trains a model, saves it, and scores it on the test pairs."""
    import keras

    from keras_attn import datasets, training
    from keras_attn.explain import plot_training
    from keras_attn.models import Transformer
    from keras_attn.text import SubwordTokenizer, token_batches

    out, size = arguments.out, PRESETS[arguments.preset]
    if (out / "backup").exists() and not arguments.resume:
        raise ValueError(
            f"{out} has an interrupted training: continue it with --resume, or "
            f"remove {out / 'backup'}."
        )
    out.mkdir(parents=True, exist_ok=True)
    keras.utils.set_random_seed(arguments.seed)
    splits = load_splits(arguments)
    dropout = arguments.dropout
    if dropout is None:
        dropout = 0.1 if len(splits["train"]) >= 15_000 else 0.3
    tokenizer = SubwordTokenizer.train_from_lines(
        (sentence for pair in splits["train"] for sentence in pair),
        vocabulary_size=600 if arguments.quick else size["vocabulary"],
    )

    def batches_of(pairs, buckets, shuffle):
        return token_batches(
            *zip(*pairs, strict=True),
            tokenizer,
            tokens_per_batch=arguments.batch_tokens,
            max_length=arguments.max_length,
            buckets=buckets,
            shuffle=shuffle,
            seed=arguments.seed,
        )

    batches = batches_of(splits["train"], 4, True)
    print(batches.report)
    model = Transformer(
        tokenizer.vocabulary_size,
        num_layers=size["layers"],
        num_heads=size["width"] // 64,
        hidden_dim=size["width"],
        intermediate_dim=4 * size["width"],
        dropout=dropout,
        normalize_first=True,
        pad_id=tokenizer.pad_id,
        start_id=tokenizer.start_id,
        end_id=tokenizer.end_id,
    )
    print(f"{model.count_params():,} parameters")
    scale = size["rate"] * (size["width"] * WARMUP) ** 0.5
    schedule = training.WarmupSchedule(size["width"], WARMUP, scale)
    model.compile(
        keras.optimizers.Adam(schedule, beta_2=0.98, epsilon=1e-9),
        training.SequenceCrossentropy(label_smoothing=0.1),
        metrics=[training.TokenAccuracy()],
    )
    progress = training.TrainingProgress(
        arguments.minutes, batches.report.target_tokens
    )
    often = min(50, batches.report.batches)
    average = training.CheckpointAverage(10, save_freq=often, validate=True)
    fixed = {k: v for k, v in vars(arguments).items() if k not in FREE}
    backup = training.TrainingBackup(
        out / "backup",
        [progress, average, keras.callbacks.EarlyStopping(patience=5)],
        save_freq=min(200, batches.report.batches),
        data=batches,
        settings=fixed | size | {"pairs": len(splits["train"])},
    )
    # A file can be sorted by length. With few pairs, many for validation would
    # take a large part of each epoch.
    count = min(2000, max(200, len(splits["train"]) // 10))
    held_out = splits["validation"]
    held_out = held_out[:: max(1, len(held_out) // count)]
    with backup.interruptible():
        model.fit(
            batches,
            epochs=arguments.epochs,
            shuffle=False,  # `token_batches` shuffles.
            validation_data=batches_of(held_out, 4, False),
            callbacks=[backup],
            verbose=0,
        )

    tokenizer.save(out / "tokenizer.model")
    model.save(out / "model.keras")
    lines = [f"{pair.source}\t{pair.target}\n" for pair in splits["test"]]
    (out / "test.tsv").write_text("".join(lines), encoding="utf-8")
    unit = "loss (nats per token)"
    figure = plot_training(progress.losses, progress.validation, ylabel=unit)
    figure.savefig(out / "training.png", dpi=150)
    translator = Translator(model, tokenizer)
    bleu = print_bleu(translator, splits["test"])
    examples = [] if arguments.data else datasets.SHOWCASE_PAIRS[:3]
    sources = [pair.source for pair in examples] or [splits["test"][0].source]
    for source, target in zip(
        sources, translator.translate(sources), strict=True
    ):
        print(f"{source} -> {target}")
    translator.plot_attention(sources[0], out / "attention.png")
    results = progress.summary() | {
        "bleu": bleu,
        "arguments": vars(arguments) | {"out": str(out)},
    }
    text = json.dumps(results, indent=1)
    (out / "results.json").write_text(text + "\n", encoding="utf-8")
    backup.remove()
    print(f"\nThe model, training.png and attention.png are in {out}. Next:")
    print(f"  python {sys.argv[0]} predict --out {out}")


def predict(arguments):
    """Translates the lines of a file, or lines typed in the terminal."""
    from keras_attn.datasets import read_lines

    translator = Translator.load(arguments.out, arguments.beams)
    if arguments.input:
        for translation in translator.translate(read_lines(arguments.input)):
            print(translation)
        return
    if sys.stdin.isatty():
        print("Type a sentence and press Enter; Ctrl-D ends.")
    for line in sys.stdin:
        if line.strip():
            print(translator.translate([line.strip()])[0], flush=True)


def evaluate(arguments):
    """Computes BLEU on pairs of sentences."""
    files = arguments.data or [arguments.out / "test.tsv"]
    translator = Translator.load(arguments.out, arguments.beams)
    print_bleu(translator, read_pairs(files, arguments.strict))


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
