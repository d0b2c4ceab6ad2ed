"""Train, use and evaluate a language model on your own text.

    python examples/language_model.py train --data book.txt
    python examples/language_model.py generate --prompt "Once upon a time"
    python examples/language_model.py evaluate

`--data` takes text files, plain or compressed (.gz). The model is a GPT, a GPT
with the blocks of Llama (`--model llama`), or a Transformer-XL. Its tokens are
characters or, with `--subwords 4000`, so many subwords. Without `--data`,
`train` uses synthetic documents.
"""

import argparse
import itertools
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
GPT_PRESETS = {
    "tiny": (4, 4, 128, 128, 0, 16, 1300, 4e-3, 0.0),
    "small": (4, 4, 160, 256, 0, 8, 5000, 3e-3, 0.1),
    "base": (6, 6, 384, 256, 0, 64, 5000, 1e-3, 0.2),
}
PRESETS = {
    "gpt": GPT_PRESETS,
    "llama": GPT_PRESETS,
    "transformer-xl": {
        "tiny": (3, 4, 96, 32, 128, 32, 1000, 4e-3, 0.0),
        "small": (4, 4, 128, 64, 256, 16, 2000, 3e-3, 0.1),
        "base": (6, 6, 384, 128, 512, 32, 5000, 1e-3, 0.2),
    },
}
SYNTHETIC = {"train": 6000, "validation": 300, "test": 300}  # documents
QUICK = {"train": 3000, "validation": 300, "test": 300}  # characters
# Options that may change when a training is resumed.
FREE = {"backend", "command", "minutes", "out", "resume"}
QUICK_SETTINGS = {"layers": 1, "width": 32, "context": 16, "steps": 60}
SUPPRESSED = [*range(14), *range(15, 260)]  # special ids, bytes but \n


def parse_arguments():
    """Returns the arguments of the command line."""
    style = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=style)
    commands = parser.add_subparsers(dest="command", required=True)

    def command(name, text):
        style = argparse.ArgumentDefaultsHelpFormatter
        sub = commands.add_parser(name, help=text, formatter_class=style)
        add = sub.add_argument
        out, backends = "runs/language_model", ["jax", "tensorflow", "torch"]
        add("--out", type=pathlib.Path, default=out, help="model folder")
        add("--backend", choices=backends, help="Keras backend")
        return add

    add = command("train", "train a model on a text")
    add("--data", nargs="+", metavar="FILE", help="text files")
    add("--subwords", type=int, metavar="N", help="instead of characters")
    add("--model", choices=PRESETS, default="gpt", help="kind of model")
    text = "defaults of the next options; tiny, or small with --data"
    add("--preset", choices=PRESETS["gpt"], help=text)
    for name, text in SETTINGS.items():
        kind = float if name in ("rate", "dropout") else int
        add(f"--{name}", type=kind, default=argparse.SUPPRESS, help=text)
    add("--minutes", type=float, default=120, help="time limit")
    add("--seed", type=int, default=1, help="random seed")
    add("--quick", action="store_true", help="a few steps, as a test")
    add("--resume", action="store_true", help="continue after an interruption")
    add("--strict", action="store_true", help="stop at the first bad line")
    add = command("generate", "continue prompts, of a file or typed ones")
    add("--prompt", metavar="TEXT", help="the lines of --input")
    add("--input", metavar="FILE", help="lines typed in the terminal")
    add("--max-new-tokens", type=int, default=200, help="length of the text")
    add("--temperature", type=float, default=0.8, help="randomness")
    add("--top-k", type=int, help="number of candidates; 1: no randomness")
    add("--top-p", type=float, help="total probability of the candidates")
    add("--seed", type=int, help="random seed; a new one each time")
    add = command("evaluate", "compute perplexity and bits per character")
    add("--data", nargs="+", metavar="FILE", help="the test text of `train`")
    add("--memory", type=int, help=f"{SETTINGS['memory']}; as in training")
    add("--strict", action="store_true", help="stop at the first bad line")
    return parser.parse_args()


def read_text(files, strict):
    """Reads text files as one text; reports and counts bad lines."""
    from keras_attn.datasets import read_lines, report_bad_lines

    lines = []
    with report_bad_lines(strict) as on_bad_lines:
        for path in files:
            lines += read_lines(path, on_bad_lines=on_bad_lines)
    return "".join(f"{line}\n" for line in lines)


def load_splits(arguments):
    """Returns the text of each split, by name."""
    from keras_attn.datasets import make_documents

    if arguments.data:
        text = read_text(arguments.data, arguments.strict)
        ends = len(text) * 90 // 100, len(text) * 95 // 100
        parts = [text[: ends[0]], text[ends[0] : ends[1]], text[ends[1] :]]
    else:
        parts = []
        for split, n in SYNTHETIC.items():
            if arguments.quick:
                n = QUICK[split] // 50  # a document has more characters
            documents = make_documents(n, seed=arguments.seed, split=split)
            parts.append("".join(" ".join(d) + "\n" for d in documents))
    splits = dict(zip(SYNTHETIC, parts, strict=True))
    if arguments.quick:
        splits = {name: splits[name][:n] + "\n" for name, n in QUICK.items()}
    return splits


def make_model(kind, vocabulary_size, settings):
    """Creates a GPT, one with the blocks of Llama, or a Transformer-XL."""
    from keras_attn import layers, models

    sizes = [settings[name] for name in ("layers", "heads", "width")]
    options = {"dropout": settings["dropout"], "attention_dropout": 0.0}
    # The text is one long sequence without special tokens.
    options |= dict.fromkeys(("pad_id", "start_id", "end_id"))
    if kind != "transformer-xl":
        options["attention_position"] = layers.RotaryPosition()
        options |= {"position_embedding": None, "max_sequence_length": None}
        if kind == "llama":
            options |= {"normalization": "rms_norm", "use_bias": False}
            options |= {"activation": "silu", "gated": True}
            # Four query heads share one of keys and values, as in Llama 3. A
            # gated network with 8/3 of the width has as many weights as
            # another one with 4 times the width.
            options["num_key_value_heads"] = max(1, settings["heads"] // 4)
            options["intermediate_dim"] = 8 * round(settings["width"] / 3)
            # The format of Llama needs one.
            options["max_sequence_length"] = settings["context"]
        return models.GPT(vocabulary_size, *sizes, **options)
    options |= {"activation": "gelu", "normalize_first": True}
    options["memory_length"] = settings["memory"]
    options["stateful_batch_size"] = settings["batch"]
    return models.TransformerXL(vocabulary_size, *sizes, **options)


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
        results = json.loads((folder / "results.json").read_text("utf-8"))
        return cls(model, tokenizer, results["settings"])

    def continue_text(self, prompt, max_new_tokens, strategy):
        """Yields the parts of a continuation as they are generated."""
        ids = self.tokenizer.encode("\n" + prompt)
        shown = self.tokenizer.decode(ids)
        # Half of the tokens that the model reads are new.
        half = max(1, (self.context + self.memory) // 2)
        for start in range(0, max_new_tokens, half):
            steps = self.model.stream([ids[-half:]], half, strategy)
            for item in itertools.islice(steps, max_new_tokens - start):
                ids.append(int(item.tokens[0, 0, item.step - 1]))
                text = self.tokenizer.decode(ids)
                yield text[len(shown) :]
                shown = text

    def evaluate(self, text, memory=None):
        """Prints and returns the perplexity and the bits per character."""
        import numpy as np

        from keras_attn import training
        from keras_attn.text import token_blocks, token_streams

        ids = np.array(self.tokenizer.encode(text))
        model, make, rows = self.model, token_blocks, 16
        if self.memory:
            memory = self.memory if memory is None else memory
            make, rows = token_streams, min(rows, 1 + len(ids) // self.context)
            model = model.with_memory(memory, rows)
        elif memory:
            raise ValueError("`--memory` needs a Transformer-XL.")
        loss = training.SequenceCrossentropy(pad_id=-1)
        model.compile(loss=loss, metrics=[training.Perplexity(pad_id=-1)])
        data = make(ids, self.context, rows, shuffle=False)
        perplexity = model.evaluate(data, verbose=0)[1]
        bits = float(np.log2(perplexity)) * (len(ids) - 1) / len(text)
        print(f"perplexity {perplexity:.3f} of {len(ids):,} tokens")
        print(f"bits per character {bits:.4f}")
        return {"perplexity": perplexity, "bits_per_character": bits}


def train(arguments):
    """Trains a model, saves it, and evaluates it on the test text."""
    import keras
    import numpy as np

    from keras_attn import decoding, explain, text, training

    out, kind, seed = arguments.out, arguments.model, arguments.seed
    if (out / "backup").exists() and not arguments.resume:
        message = "has an interrupted training: continue it with --resume, or"
        raise ValueError(f"{out} {message} remove {out / 'backup'}.")
    preset = arguments.preset or ("small" if arguments.data else "tiny")
    settings = dict(zip(SETTINGS, PRESETS[kind][preset], strict=True))
    settings |= QUICK_SETTINGS if arguments.quick else {}
    settings |= {k: v for k, v in vars(arguments).items() if k in SETTINGS}
    recurrent = kind == "transformer-xl"
    if recurrent != (settings["memory"] > 0):
        message = "at least 1 for transformer-xl, otherwise 0."
        raise ValueError(f"`--memory` must be {message}")
    out.mkdir(parents=True, exist_ok=True)
    keras.utils.set_random_seed(seed)
    splits = load_splits(arguments)
    # Special tokens, bytes, and characters.
    size = arguments.subwords or 260 + len({" ", *splits["train"]} - {"\n"})
    tokenizer = text.SubwordTokenizer.train_from_lines(
        splits["train"].split("\n"), size, character_coverage=1.0
    )
    ids = {}
    for split, part in splits.items():
        ids[split] = np.array(tokenizer.encode(part))
        print(f"{len(part):,} {split} characters, {len(ids[split]):,} tokens")
    shape = settings["context"], settings["batch"]
    make = text.token_streams if recurrent else text.token_blocks
    batches = make(ids["train"], *shape, seed=seed)
    count = min(len(batches), settings["steps"])  # batches of an epoch
    epochs = max(1, round(settings["steps"] / count))
    model = make_model(kind, tokenizer.vocabulary_size, settings)
    parameters = sum(int(np.prod(w.shape)) for w in model.trainable_weights)
    print(f"{parameters:,} parameters")
    rate, rise = settings["rate"], min(100, 1 + epochs * count // 10)
    schedule = keras.optimizers.schedules.CosineDecay(
        0.0, epochs * count, 0.05, warmup_target=rate, warmup_steps=rise
    )
    optimizer = keras.optimizers.AdamW(
        schedule, beta_2=0.99, weight_decay=0.1, global_clipnorm=1.0
    )
    optimizer.exclude_from_weight_decay(
        var_names=["bias", "gamma", "beta", "scale"]
    )
    model.compile(optimizer, training.SequenceCrossentropy(pad_id=-1))
    tokens = count * shape[0] * shape[1]
    progress = training.TrainingProgress(arguments.minutes, tokens)
    freq = min(50, count)
    average = training.CheckpointAverage(5, save_freq=freq, validate=True)
    fixed = {k: v for k, v in vars(arguments).items() if k not in FREE}
    backup = training.TrainingBackup(
        out / "backup",
        [progress, average, keras.callbacks.EarlyStopping(patience=5)],
        save_freq=min(200, count),
        data=batches,
        settings=fixed | settings | {"tokens": len(ids["train"])},
    )
    with backup.interruptible():
        model.fit(
            batches,
            epochs=epochs,
            steps_per_epoch=count if epochs == 1 else None,
            shuffle=False,  # `make` shuffles.
            validation_data=make(ids["validation"], *shape, shuffle=False),
            callbacks=[backup],
            verbose=0,
        )

    if recurrent:
        model = model.with_memory(settings["memory"])  # for any batch size
    model.save(out / "model.keras")
    tokenizer.save(out / "tokenizer.model")
    (out / "test.txt").write_text(splits["test"], "utf-8", newline="\n")
    curves = progress.losses, progress.validation
    figure = explain.plot_training(*curves, ylabel="loss (nats per token)")
    figure.savefig(out / "training.png", dpi=150)
    language_model = LanguageModel(model, tokenizer, settings)
    scores = language_model.evaluate(splits["test"])
    start = ids["test"][None, : min(32, settings["context"])]
    names = tokenizer.pieces
    maps = explain.attention_maps(model, start, tokens=names)
    explain.plot_attention(maps[-1]).savefig(out / "attention.png", dpi=150)
    sampling = decoding.Sampling(0.8, seed=seed, suppress_tokens=SUPPRESSED)
    print(*language_model.continue_text("", 2 * shape[0], sampling), sep="")
    results = (
        progress.summary()
        | scores
        | {
            "parameters": parameters,
            "settings": settings,
            "arguments": vars(arguments) | {"out": str(out)},
        }
    )
    (out / "results.json").write_text(json.dumps(results, indent=1), "utf-8")
    backup.remove()
    print(f"\nThe model, training.png and attention.png are in {out}. Next:")
    print(f"  python {sys.argv[0]} generate --out {out}")


def generate(arguments):
    """Prints continuations of prompts."""
    from keras_attn import datasets, decoding

    language_model, prompts = LanguageModel.load(arguments.out), sys.stdin
    if arguments.prompt is not None:
        prompts = [arguments.prompt]
    elif arguments.input:
        prompts = datasets.read_lines(arguments.input)
    elif sys.stdin.isatty():
        print("Type the start of a text and press Enter; Ctrl-D ends.")
    names = "temperature", "top_k", "top_p", "seed"
    options = {name: getattr(arguments, name) for name in names}
    strategy = decoding.Sampling(**options, suppress_tokens=SUPPRESSED)
    for prompt in prompts:
        prompt, length = prompt.removesuffix("\n"), arguments.max_new_tokens
        print(prompt, end="", flush=True)
        for part in language_model.continue_text(prompt, length, strategy):
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
    commands = {"train": train, "generate": generate, "evaluate": evaluate}
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
