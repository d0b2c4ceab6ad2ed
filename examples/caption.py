"""Train, use and evaluate a recurrent model that describes images.

    python examples/caption.py train --data images
    python examples/caption.py predict --input image.png
    python examples/caption.py evaluate

`--data` takes a folder of images with a file `captions.tsv`, in lines `file
name<tab>caption`, or the folder of NLVR (https://github.com/lil-lab/nlvr), of
which the true sentences are used. Without it, `train` uses synthetic scenes.

For each word, the decoder attends to a grid of image features (Xu et al. 2015).
Hard attention learns faster from the weights of soft attention (`--init`).
"""

import argparse
import collections
import json
import os
import pathlib
import re
import sys

import numpy as np

# hidden_dim, filters
PRESETS = {"tiny": (16, 4), "small": (96, 16), "base": (192, 32)}
SYNTHETIC = {"train": 8000, "validation": 400, "test": 400}  # scenes
QUICK = {"train": 64, "validation": 8, "test": 8}
# Of synthetic scenes, and of `--data`.
DEFAULTS = {"epochs": (13, 25), "dropout": (0.0, 0.3), "misread": (0.3, 0.1)}
# Options that may change when a training is resumed.
FREE = {"backend", "command", "minutes", "out", "resume"}
SPECIAL = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"]  # ids 0 to 4
LONGEST = 24  # words of a caption


def parse_arguments():
    """Returns the arguments of the command line."""
    style = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=style)
    commands = parser.add_subparsers(dest="command", required=True)

    def command(name, text):
        style = argparse.ArgumentDefaultsHelpFormatter
        sub = commands.add_parser(name, help=text, formatter_class=style)
        add = sub.add_argument
        out, backends = "runs/caption", ["jax", "tensorflow", "torch"]
        add("--out", type=pathlib.Path, default=out, help="model folder")
        add("--backend", choices=backends, help="Keras backend")
        return add

    add = command("train", "train a model on images with captions")
    add("--data", metavar="FOLDER", help="images with captions")
    add("--height", type=int, default=50, help="of the images, in pixels")
    add("--words", type=int, default=1000, help="size of the vocabulary")
    add("--preset", choices=PRESETS, default="small", help="model size")
    add("--attention", choices=["soft", "hard"], default="soft", help="kind")
    text = "side of patches for a Vision Transformer instead of convolutions"
    add("--patch-size", type=int, help=text)
    add("--init", type=pathlib.Path, help="folder of a model to start from")
    add("--misread", type=float, help="rate of changed words; 0.3, or 0.1")
    add("--dropout", type=float, help="0, or 0.3 with --data")
    add("--rate", type=float, default=2e-3, help="highest learning rate")
    add("--batch-size", type=int, default=32, help="images of a batch")
    add("--minutes", type=float, default=60, help="time limit")
    add("--epochs", type=int, help="13, 25 with --data, or 1 with --quick")
    add("--seed", type=int, default=1, help="random seed")
    add("--quick", action="store_true", help="a few steps, as a test")
    add("--resume", action="store_true", help="continue an interrupted run")
    add("--strict", action="store_true", help="stop at the first bad line")
    add = command("predict", "describe images, and draw where the model looks")
    add("--input", type=pathlib.Path, help="image or folder; else typed names")
    add = command("evaluate", "compute BLEU, and the truth of scenes")
    add("--data", metavar="FOLDER", help="the test images of `train`")
    add("--strict", action="store_true", help="stop at the first bad line")
    return parser.parse_args()


def read_examples(folder, height, strict):
    """Reads tuples (image, caption, file name); reports bad lines."""
    from keras_attn import datasets

    splits = ("train", "dev", "test")  # of NLVR
    splits = [s for s in splits if [*pathlib.Path(folder).glob(f"{s}.json*")]]
    with datasets.report_bad_lines(strict) as on_bad_lines:
        options = {"height": height, "on_bad_lines": on_bad_lines}
        parts = [datasets.read_nlvr(folder, s, **options) for s in splits]
        parts = parts or [datasets.read_captions(folder, **options)]
    return [row for part in parts for row in zip(*part, strict=True)]


def load_splits(arguments):
    """Returns tuples (image, caption, file name or objects) of each split."""
    from keras_attn.datasets import make_scenes, split_by_hash

    sizes, seed = QUICK if arguments.quick else SYNTHETIC, arguments.seed
    if arguments.data:
        rows = read_examples(arguments.data, arguments.height, arguments.strict)
        parts = split_by_hash(rows, key=lambda row: row[2])
    else:
        scenes = [make_scenes(n, seed=seed, split=s) for s, n in sizes.items()]
        parts = [[*zip(*part, strict=True)] for part in scenes]
    if arguments.quick:
        parts = [p[:n] for p, n in zip(parts, sizes.values(), strict=True)]
    splits = dict(zip(sizes, parts, strict=True))
    if not all(parts):
        raise ValueError(f"{arguments.data} has too few images for 3 splits.")
    print(*(f"{len(v):,} {k} captions" for k, v in splits.items()), sep=", ")
    return splits


def make_batch(tokenizer, examples, length=None):
    """Returns the inputs and labels of tuples (image, caption, _)."""
    images, captions, _ = zip(*examples, strict=True)
    options = {"max_length": length, "pad_to_max_length": length is not None}
    ids = tokenizer.pack(captions, **options)["token_ids"]
    return (np.stack(images), ids[:, :-1]), ids[:, 1:]


def make_batches(tokenizer, examples, arguments):
    """Returns batches for `fit`, in which some words are misread.

    The decoder then relies on the image more than on the words. The last epochs
    have the right words.
    """
    from keras_attn.training import BucketedDataset

    class Batches(BucketedDataset):
        def set_epoch(self, epoch):
            late = epoch >= 0.75 * arguments.epochs
            self.rate = 0.0 if late else arguments.misread
            super().set_epoch(epoch)

    def encode(examples, length, random):
        (images, target), labels = make_batch(tokenizer, examples, length)
        misread = random.random(target.shape) < batches.rate
        misread &= target >= len(SPECIAL)
        range_of_ids = len(SPECIAL), tokenizer.vocabulary_size
        ids = random.integers(*range_of_ids, target.shape)
        return (images, np.where(misread, ids, target)), labels

    captions = tokenizer.encode([row[1] for row in examples])
    lengths = [min(len(ids), LONGEST) + 2 for ids in captions]
    size, seed = arguments.batch_size, arguments.seed
    batches = Batches(examples, lengths, encode, size, seed=seed)
    return batches


def load(folder):
    """Loads the model and the tokenizer of a training."""
    import keras

    from keras_attn import models, text  # noqa: F401

    if not (folder / "model.keras").is_file():
        raise ValueError(f"{folder} has no model; `train` writes one.")
    model = keras.saving.load_model(folder / "model.keras", compile=False)
    return model, text.WordPieceTokenizer.load(folder)


def describe(model, tokenizer, images, path=None):
    """Returns captions; draws where the model looks in the first images."""
    from keras_attn import decoding, explain

    strategy = decoding.BeamSearch(4, suppress_tokens=[tokenizer.unknown_id])
    found = model.generate(images, LONGEST + 1, strategy, return_weights=True)
    captions = [*map(tokenizer.decode, found.tokens[:, 0])]
    if path:
        weights = found.weights.reshape(len(images), -1, *model.grid_size)
        words = [caption.split() for caption in captions[:4]]
        figure = explain.plot_image_attention(images[:4], weights[:4], words)
        figure.savefig(path, dpi=150)
    return captions


def print_scores(model, tokenizer, examples, path=None):
    """Describes images; prints samples; returns scores."""
    import sacrebleu

    from keras_attn import datasets, training

    images, references = {}, {}
    for image, caption, key in examples:
        images[key] = image
        references.setdefault(key, []).append(caption)
    found = describe(model, tokenizer, np.stack([*images.values()]), path)
    texts = dict(zip(images, found, strict=True))
    for key in [*texts][:: max(1, len(texts) // 4)]:
        print(f"  {texts[key]}   (reference: {references[key][0]})")
    streams = datasets.reference_streams([*references.values()])
    bleu = sacrebleu.corpus_bleu(found, streams, lowercase=True)
    print(f"{len(found):,} images, sacreBLEU: {bleu}\nBLEU {bleu.score:.2f}")
    scores = {"bleu": bleu.score}
    if not isinstance(examples[0][2], str):  # A scene.
        checks = [*map(datasets.check_caption, texts, found)]
        for name in "objects", "relation":
            scores[name] = sum(getattr(c, name) for c in checks) / len(checks)
            print(f"{scores[name]:.1%} of the captions have the right {name}")
    # Does the model use the image?
    model.compile(loss=training.SequenceCrossentropy())
    (images, target), labels = make_batch(tokenizer, examples)
    for name, shift in (("own", 0), ("other", len(images) // 2)):
        inputs = np.roll(images, shift, axis=0), target
        loss = model.evaluate(inputs, labels, verbose=0)
        print(f"{loss:.3f} nats per word, given the {name} image")
        scores[f"loss_{name}"] = loss
    return scores


def train(arguments):
    """Trains a model, saves it, and scores it on the test images."""
    import keras

    from keras_attn import explain, layers, models, training
    from keras_attn.text import WordPieceTokenizer

    out, seed = arguments.out, arguments.seed
    if (out / "backup").exists() and not arguments.resume:
        message = "has an interrupted training: continue it with --resume, or"
        raise ValueError(f"{out} {message} remove {out / 'backup'}.")
    out.mkdir(parents=True, exist_ok=True)
    if arguments.quick:
        arguments.preset, arguments.epochs = "tiny", arguments.epochs or 1
    for name, values in DEFAULTS.items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, values[bool(arguments.data)])
    keras.utils.set_random_seed(seed)
    splits = load_splits(arguments)
    if arguments.init:
        start, tokenizer = load(arguments.init)
    else:
        text = "\n".join(caption.lower() for _, caption, _ in splits["train"])
        counts = collections.Counter(re.findall(r"\w+|[^\w\s]", text))
        words = [word for word, _ in counts.most_common(arguments.words)]
        tokenizer = WordPieceTokenizer(SPECIAL + words, strip_accents=False)
    hidden_dim, filters = PRESETS[arguments.preset]
    hard = "gumbel" if arguments.attention == "hard" else None
    image_shape, encoder = splits["train"][0][0].shape, None
    if arguments.patch_size is not None:
        encoder = models.VisionTransformer(
            image_shape,
            arguments.patch_size,
            num_layers=4,
            num_heads=4,
            hidden_dim=hidden_dim,
            intermediate_dim=4 * hidden_dim,
            dropout=arguments.dropout,
        )
    model = models.ImageCaptioner(
        tokenizer.vocabulary_size,
        image_shape,
        hidden_dim=hidden_dim,
        filters=filters,
        attention=layers.ScoredAttention("additive", hard=hard, seed=seed),
        dropout=arguments.dropout,
        encoder=encoder,
    )
    if arguments.init:
        model.set_weights(start.get_weights())
    print(f"{model.count_params():,} parameters")
    batches = make_batches(tokenizer, splits["train"], arguments)
    steps, rate = arguments.epochs * len(batches), arguments.rate
    schedule = keras.optimizers.schedules.CosineDecay(
        rate / 100, steps, warmup_target=rate, warmup_steps=1 + steps // 20
    )
    adam = keras.optimizers.Adam(schedule, clipnorm=1.0)
    model.compile(adam, training.SequenceCrossentropy())
    progress = training.TrainingProgress(arguments.minutes)
    average = training.CheckpointAverage(1, validate=True)
    fixed = {k: str(v) for k, v in vars(arguments).items() if k not in FREE}
    backup = training.TrainingBackup(
        out / "backup",
        [progress, average],
        save_freq=min(200, len(batches)),
        data=batches,
        settings=fixed,
    )
    with backup.interruptible():
        model.fit(
            batches,
            epochs=arguments.epochs,
            shuffle=False,  # `batches` are in random order.
            validation_data=make_batch(tokenizer, splits["validation"]),
            callbacks=[backup],
            verbose=0,
        )

    model.save(out / "model.keras")
    tokenizer.save(out)
    curves = progress.losses, progress.validation
    figure = explain.plot_training(*curves, ylabel="loss (nats per word)")
    figure.savefig(out / "training.png", dpi=150)
    test = splits["test"], out / "attention.png"
    results = progress.summary() | {"arguments": vars(arguments)}
    results |= print_scores(model, tokenizer, *test)
    text = json.dumps(results, indent=1, default=str)
    (out / "results.json").write_text(text + "\n", encoding="utf-8")
    backup.remove()
    print(f"\nThe model, training.png and attention.png are in {out}. Next:")
    print(f"  python {sys.argv[0]} predict --out {out} --input IMAGE")


def predict(arguments):
    """Describes images, or those whose names are typed."""
    import keras

    model, tokenizer = load(arguments.out)
    options = {"target_size": model.image_shape[:2], "interpolation": "box"}
    files, path, images = map(str.strip, sys.stdin), arguments.input, []
    if path:
        files = sorted(path.iterdir()) if path.is_dir() else [path]
    elif sys.stdin.isatty():
        print("Type the name of an image and press Enter; Ctrl-D ends.")
    for file in files:
        try:
            image = keras.utils.load_img(file, **options)
        except OSError as error:
            print(f"{file}: {error}", file=sys.stderr)
            continue
        images.append(np.asarray(image))
        caption = describe(model, tokenizer, images[-1][None])[0]
        print(file, caption, sep="\t", flush=True)
    if images:
        described = arguments.out / "described.png"
        describe(model, tokenizer, np.stack(images), described)
        print(f"See {described}.", file=sys.stderr)
    elif path:
        raise ValueError(f"{path} has no image.")


def evaluate(arguments):
    """Computes BLEU, and the truth of captions of scenes."""
    model, tokenizer = load(arguments.out)
    results = json.loads((arguments.out / "results.json").read_text("utf-8"))
    saved = argparse.Namespace(**results["arguments"])
    if arguments.data:
        examples = read_examples(arguments.data, saved.height, arguments.strict)
    else:
        examples = load_splits(saved)["test"]
    print_scores(model, tokenizer, examples)


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
