"""Train, use and evaluate a language model on your own text.

    python examples/language_model.py train --data book.txt
    python examples/language_model.py generate --prompt "Once upon a time"
    python examples/language_model.py evaluate

`--data` takes text files, plain or compressed (.gz). The model is a GPT or a
Transformer-XL. Its tokens are characters or, with `--subwords 4000`, so many
subwords. Without `--data`, `train` uses synthetic documents.
"""

import argparse
import json
import os
import pathlib
import sys

SETTINGS = {
    "layers": "blocks of the model",
    "heads": "attention heads of a block",
    "width": "features of a token",
    "context": "tokens of a row of a batch",
    "memory": "earlier tokens that a block of Transformer-XL sees",
    "batch": "rows of a batch",
    "steps": "batches, rounded to whole passes over the text",
    "rate": "highest learning rate",
    "dropout": "dropout rate",
}
PRESETS = {
    "gpt": {
        "tiny": (4, 4, 128, 128, 0, 16, 1300, 4e-3, 0.0),
        "small": (4, 4, 160, 256, 0, 8, 5000, 3e-3, 0.1),
        "base": (6, 6, 384, 256, 0, 64, 5000, 1e-3, 0.2),
    },
    "transformer-xl": {
        "tiny": (3, 4, 96, 32, 128, 32, 1000, 4e-3, 0.0),
        "small": (4, 4, 128, 64, 256, 16, 2000, 3e-3, 0.1),
        "base": (6, 6, 384, 128, 512, 32, 5000, 1e-3, 0.2),
    },
}
SYNTHETIC = {"train": 6000, "validation": 300, "test": 300}  # documents
QUICK = {"train": 3000, "validation": 300, "test": 300}  # characters
QUICK_SETTINGS = {"layers": 1, "width": 32, "context": 16, "steps": 60}


def parse_arguments():
    """Returns the arguments of the command line."""
    style = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=style)
    commands = parser.add_subparsers(dest="command", required=True)

    def command(name, text, *aliases):
        style = argparse.ArgumentDefaultsHelpFormatter
        sub = commands.add_parser(
            name, help=text, aliases=aliases, formatter_class=style
        )
        add = sub.add_argument
        out, backends = "runs/language_model", ["jax", "tensorflow", "torch"]
        add("--out", type=pathlib.Path, default=out, help="model folder")
        add("--backend", choices=backends, help="Keras backend")
        return add

    add = command("train", "train a model on a text")
    add("--data", nargs="+", metavar="FILE", help="text files")
    add("--subwords", type=int, metavar="N", help="instead of characters")
    add("--model", choices=PRESETS, default="gpt", help="kind of model")
    add("--preset", choices=PRESETS["gpt"], help="tiny, or small with --data")
    for name, text in SETTINGS.items():
        kind = float if name in ("rate", "dropout") else int
        add(f"--{name}", type=kind, help=f"{text}; set by --preset")
    add("--minutes", type=float, default=120, help="time limit")
    add("--seed", type=int, default=1, help="random seed")
    add("--quick", action="store_true", help="a few steps, as a test")
    add(
        "--resume", action="store_true", help="continue an interrupted training"
    )
    add("--strict", action="store_true", help="stop at the first bad line")
    text = "continue a prompt, the lines of a file, or typed lines"
    add = command("generate", text, "predict")
    add("--prompt", metavar="TEXT", help="the lines of --input")
    add("--input", metavar="FILE", help="lines typed in the terminal")
    add("--max-new-tokens", type=int, default=200, help="length of a sample")
    add("--samples", type=int, default=1, help="samples of each prompt")
    add("--temperature", type=float, default=0.8, help="0: most likely token")
    add("--top-k", type=int, help="number of candidates")
    add("--top-p", type=float, help="total probability of the candidates")
    add("--seed", type=int, help="random seed; a new one in each run")
    add = command("evaluate", "compute perplexity and bits per character")
    add("--data", nargs="+", metavar="FILE", help="the test text of `train`")
    add("--memory", type=int, help=f"{SETTINGS['memory']}; as in training")
    add("--strict", action="store_true", help="stop at the first bad line")
    return parser.parse_args()


def read_text(files, strict):
    """Reads text files as one text; reports and counts bad lines."""
    from keras_attn.datasets import read_lines

    bad, lines = [], []
    for path in files:
        lines += read_lines(
            path, on_bad_lines="error" if strict else bad.append
        )
    for path, line, reason in bad[:10]:
        print(f"{path}, line {line}: {reason}", file=sys.stderr)
    if bad:
        print(f"Skipped {len(bad):,} bad lines.", file=sys.stderr)
    return "".join(f"{line}\n" for line in lines)


def load_splits(arguments):
    """Returns the text of each split, by name."""
    from keras_attn.datasets import make_documents

    splits = {}
    if arguments.data:
        text = read_text(arguments.data, arguments.strict)
        ends = [0, *(len(text) * percent // 100 for percent in (90, 95, 100))]
        for i, split in enumerate(SYNTHETIC):
            splits[split] = text[ends[i] : ends[i + 1]]
    else:
        for split, n in SYNTHETIC.items():
            documents = make_documents(n, seed=arguments.seed, split=split)
            splits[split] = "".join(" ".join(d) + "\n" for d in documents)
    if arguments.quick:
        splits = {split: splits[split][:n] for split, n in QUICK.items()}
    return splits


def make_model(kind, vocabulary_size, settings):
    """Creates a GPT or a Transformer-XL."""
    from keras_attn import layers, models

    options = {
        "num_layers": settings["layers"],
        "num_heads": settings["heads"],
        "hidden_dim": settings["width"],
        "dropout": settings["dropout"],
        "attention_dropout": 0.0,
        "activation": "gelu",
        "normalize_first": True,
        # The text is one long sequence without special tokens.
        **dict.fromkeys(("pad_id", "start_id", "end_id")),
    }
    if kind == "gpt":
        rotary = layers.RotaryPosition()
        options |= {"attention_position": rotary, "position_embedding": None}
        options |= {"max_sequence_length": None}
        return models.GPT(vocabulary_size, **options)
    memory, rows = settings["memory"], settings["batch"]
    options |= {"memory_length": memory, "stateful_batch_size": rows}
    return models.TransformerXL(vocabulary_size, **options)


class LanguageModel:
    """A trained model with its tokenizer and settings."""

    def __init__(self, model, tokenizer, settings):
        self.model, self.tokenizer = model, tokenizer
        self.context, self.memory = settings["context"], settings["memory"]

    @classmethod
    def load(cls, folder):
        """Loads a language model from the folder of a training."""
        import keras

        from keras_attn.text import SubwordTokenizer

        if not (folder / "model.keras").is_file():
            raise ValueError(f"{folder} has no model; `train` writes one.")
        model = keras.saving.load_model(folder / "model.keras", compile=False)
        tokenizer = SubwordTokenizer.load(folder / "tokenizer.model")
        settings = json.loads((folder / "settings.json").read_text("utf-8"))
        return cls(model, tokenizer, settings)

    def continue_text(self, prompt, max_new_tokens, strategy):
        """Yields the parts of a continuation as they are generated."""
        ids = self.tokenizer.encode(prompt or "\n")
        shown, end = self.tokenizer.decode(ids), len(ids) + max_new_tokens
        # Of what the model has seen in training, half is the next prompt.
        half = max(1, (self.context + self.memory) // 2)
        while len(ids) < end:
            for item in self.model.stream([ids[-half:]], half, strategy):
                ids.append(int(item.tokens[0, 0, item.step - 1]))
                text = self.tokenizer.decode(ids)
                # A character of several bytes may be incomplete.
                if not text.endswith("\ufffd") or len(ids) == end:
                    yield text[len(shown) :]
                    shown = text
                if len(ids) == end:
                    break

    def evaluate(self, text, memory=None):
        """Prints and returns the perplexity and the bits per character."""
        import numpy as np

        from keras_attn import training
        from keras_attn.text import token_blocks, token_streams

        ids = np.array(self.tokenizer.encode(text))
        model, make, rows = self.model, token_blocks, 16
        if self.memory:
            make, rows = token_streams, min(rows, 1 + len(ids) // self.context)
            model = model.with_memory(
                self.memory if memory is None else memory, rows
            )
        elif memory:
            raise ValueError("`--memory` needs a Transformer-XL.")
        model.compile(
            loss=training.SequenceCrossentropy(pad_id=-1),
            metrics=[training.Perplexity(pad_id=-1)],
        )
        data = make(ids, self.context, rows, shuffle=False)
        perplexity = model.evaluate(data, verbose=0)[1]
        nats = float(np.log(perplexity))
        bits = nats / np.log(2) * (len(ids) - 1) / len(text)
        print(f"{len(text):,} characters, {len(ids):,} tokens")
        print(f"perplexity {perplexity:.3f}, {nats:.4f} nats per token")
        print(f"bits per character {bits:.4f}")
        return {"perplexity": perplexity, "bits_per_character": bits}

    def plot_attention(self, text, path):
        """Draws where the last block looks in the first tokens of a text."""
        from keras_attn.explain import attention_maps, plot_attention

        ids, names = [self.tokenizer.encode(text)[:32]], self.tokenizer.pieces
        maps = attention_maps(self.model, ids, tokens=names)
        plot_attention(maps[-1]).savefig(path, dpi=150)


def train(arguments):
    """Trains a model, saves it, and evaluates it on the test text."""
    import keras
    import numpy as np

    from keras_attn import decoding, text, training
    from keras_attn.explain import plot_training

    out, kind, seed = arguments.out, arguments.model, arguments.seed
    if (out / "backup").exists() and not arguments.resume:
        raise ValueError(
            f"{out} has an interrupted training: continue it with --resume, or "
            f"remove {out / 'backup'}."
        )
    preset = arguments.preset or ("small" if arguments.data else "tiny")
    settings = dict(zip(SETTINGS, PRESETS[kind][preset], strict=True))
    settings |= QUICK_SETTINGS if arguments.quick else {}
    given = {name: getattr(arguments, name) for name in SETTINGS}
    settings |= {name: x for name, x in given.items() if x is not None}
    if (kind == "gpt") != (settings["memory"] == 0):
        raise ValueError("`--memory` must be 0 for gpt, otherwise at least 1.")
    out.mkdir(parents=True, exist_ok=True)
    keras.utils.set_random_seed(seed)
    splits = load_splits(arguments)
    # 4 special tokens, 256 bytes, and the characters.
    least = 260 + len({" ", *splits["train"]} - {"\n"})
    tokenizer = text.SubwordTokenizer.train_from_lines(
        splits["train"].split("\n"),
        arguments.subwords or least,
        character_coverage=0.9995 if arguments.subwords else 1.0,
    )
    ids = {name: tokenizer.encode(part) for name, part in splits.items()}
    for name, part in splits.items():
        print(f"{len(part):,} {name} characters, {len(ids[name]):,} tokens")
    shape = settings["context"], settings["batch"]
    make = text.token_blocks if kind == "gpt" else text.token_streams
    batches = make(np.array(ids["train"]), *shape, seed=seed)
    validation = np.array(ids["validation"][:100_000])
    count = min(len(batches), settings["steps"])  # batches of an epoch
    epochs = max(1, round(settings["steps"] / count))
    model = make_model(kind, tokenizer.vocabulary_size, settings)
    print(f"{model.count_params():,} parameters")
    rate, steps, warmup = settings["rate"], epochs * count, 100
    warmup = min(warmup, 1 + steps // 10)
    schedule = keras.optimizers.schedules.CosineDecay(
        0.0, steps - warmup, 0.05, warmup_target=rate, warmup_steps=warmup
    )
    optimizer = keras.optimizers.AdamW(
        schedule, beta_2=0.99, weight_decay=0.1, global_clipnorm=1.0
    )
    optimizer.exclude_from_weight_decay(var_names=["bias", "gamma", "beta"])
    model.compile(optimizer, training.SequenceCrossentropy(pad_id=-1))
    progress = training.TrainingProgress(
        arguments.minutes, count * shape[0] * shape[1]
    )
    average = training.CheckpointAverage(5, save_freq=50, validate=True)
    backup = training.TrainingBackup(
        out / "backup",
        [progress, average, keras.callbacks.EarlyStopping(patience=5)],
        save_freq=200,
        data=batches,
        settings=settings | {"model": kind, "tokens": len(ids["train"])},
    )
    with backup.interruptible():
        model.fit(
            batches,
            epochs=epochs,
            steps_per_epoch=count,
            shuffle=False,  # `make` shuffles.
            validation_data=make(validation, *shape, shuffle=False),
            callbacks=[backup],
            verbose=0,
        )

    if kind == "transformer-xl":
        model = model.with_memory(settings["memory"])  # of any batch size
    model.save(out / "model.keras")
    tokenizer.save(out / "tokenizer.model")
    write_json(out / "settings.json", settings)
    (out / "test.txt").write_text(splits["test"], "utf-8", newline="\n")
    unit = "loss (nats per token)"
    figure = plot_training(progress.losses, progress.validation, ylabel=unit)
    figure.savefig(out / "training.png", dpi=150)
    language_model = LanguageModel(model, tokenizer, settings)
    scores = language_model.evaluate(splits["test"])
    language_model.plot_attention(splits["test"], out / "attention.png")
    sampling = decoding.Sampling(0.8, seed=seed, suppress_tokens=range(4))
    print(*language_model.continue_text("", 200, sampling), sep="")
    results = scores | {
        "minutes": progress.seconds / 60,
        "batches": len(progress.losses),
        "tokens_per_second": progress.tokens_per_second,
        "validation_loss": average.best_loss,
        "parameters": model.count_params(),
        "arguments": {k: str(v) for k, v in vars(arguments).items()},
    }
    write_json(out / "results.json", results)
    backup.remove()
    print(f"\nThe model, training.png and attention.png are in {out}. Next:")
    print(f"  python {sys.argv[0]} generate --out {out}")


def write_json(path, content):
    """Writes a JSON file."""
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def generate(arguments):
    """Prints continuations of prompts."""
    from keras_attn import datasets, decoding

    language_model = LanguageModel.load(arguments.out)
    prompts = [arguments.prompt]
    if arguments.prompt is None and arguments.input:
        prompts = filter(str.strip, datasets.read_lines(arguments.input))
    elif arguments.prompt is None:
        if sys.stdin.isatty():
            print("Type the start of a text and press Enter; Ctrl-D ends.")
        prompts = (line.strip("\n") for line in sys.stdin if line.strip())
    unused = range(4)  # The special tokens of `SubwordTokenizer`.
    for prompt in prompts:
        for i in range(arguments.samples):
            seed = None if arguments.seed is None else arguments.seed + i
            if arguments.temperature == 0:
                strategy = decoding.GreedySearch(suppress_tokens=unused)
            else:
                strategy = decoding.Sampling(
                    arguments.temperature,
                    arguments.top_k,
                    arguments.top_p,
                    seed,
                    suppress_tokens=unused,
                )
            parts = language_model.continue_text(
                prompt, arguments.max_new_tokens, strategy
            )
            print(prompt, end="", flush=True)
            for part in parts:
                print(part, end="", flush=True)
            print("\n")


def evaluate(arguments):
    """Computes the perplexity and the bits per character of a text."""
    files = arguments.data or [arguments.out / "test.txt"]
    language_model = LanguageModel.load(arguments.out)
    text = read_text(files, arguments.strict)
    language_model.evaluate(text, arguments.memory)


def main():
    """Runs the command; prints errors in one line."""
    arguments = parse_arguments()
    if arguments.backend:
        os.environ["KERAS_BACKEND"] = arguments.backend
    commands = {"train": train, "evaluate": evaluate}
    try:
        commands.get(arguments.command, generate)(arguments)
    except (ImportError, OSError, ValueError) as error:
        sys.exit(f"{sys.argv[0]}: {error}")
    except KeyboardInterrupt:
        if arguments.command == "train":
            command = " ".join(sys.argv).removesuffix(" --resume")
            print(f"\nContinue with: python {command} --resume")
        sys.exit(130)


if __name__ == "__main__":
    main()
