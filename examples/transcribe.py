"""Train, use and evaluate a Transformer that transcribes recordings.

    python examples/transcribe.py train --data recordings
    python examples/transcribe.py predict --input message.wav
    python examples/transcribe.py evaluate

`--data` takes a folder of WAV files with their texts in `transcripts.tsv`, in
lines `name<tab>text` or `name<tab>text<tab>speaker`, or a folder of files named
`digits_speaker_number.wav`. Without it, `train` uses synthetic audio.

The encoder spells what it hears by CTC, the decoder writes it with attention.
Their losses are added in training, and their scores in use (Hori et al. 2017).
"""

import argparse
import json
import os
import pathlib
import sys
import wave

import numpy as np

SIZES = ["hidden_dim", "num_layers", "num_decoder_layers", "filters"]
PRESETS = {"tiny": (32, 1, 1, 4), "small": (128, 2, 1, 32)}
PRESETS["base"] = (256, 6, 2, 32)
RATES = {"tiny": 2e-3, "small": 1.5e-3, "base": 1e-3}  # of learning
PAD, START, END = range(3)  # ids
BANDS, WARMUP = 40, 500  # of the frames; steps
FASTEST = 1.2  # change of the speed by augmentation
SYNTHETIC = {"train": 5000, "validation": 320, "test": 320}  # recordings
QUICK = {"train": 48, "validation": 8, "test": 8}


def parse_arguments():
    """Returns the arguments of the command line."""
    style = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=style)
    commands = parser.add_subparsers(dest="command", required=True)

    def command(name, text):
        style = argparse.ArgumentDefaultsHelpFormatter
        sub = commands.add_parser(name, help=text, formatter_class=style)
        add = sub.add_argument
        out, backends = "runs/transcribe", ["jax", "tensorflow", "torch"]
        add("--out", type=pathlib.Path, default=out, help="model folder")
        add("--backend", choices=backends, help="Keras backend")
        return add

    add = command("train", "train a model on recordings")
    add("--data", metavar="FOLDER", help="WAV files with transcripts")
    kinds = ["morse", "digits"]
    add("--audio", choices=kinds, default="morse", help="without --data")
    add("--test-speaker", metavar="NAME", help="held out; else a random part")
    add("--preset", choices=PRESETS, default="small", help="model size")
    add("--step", type=float, help="ms between frames; 10, or 16 for morse")
    add("--ctc-weight", type=float, default=0.3, help="of the loss of CTC")
    add("--dropout", type=float, default=0.1, help="dropout rate")
    add("--batch-size", type=int, default=16, help="recordings of a batch")
    add("--minutes", type=float, default=60, help="time limit")
    add("--epochs", type=int, help="at most 30, or 1 with --quick")
    add("--seed", type=int, default=1, help="random seed")
    add("--quick", action="store_true", help="a few steps, as a test")
    add("--resume", action="store_true", help="continue an interrupted run")
    add("--strict", action="store_true", help="stop at the first bad line")
    add = command("predict", "write the texts of WAV files")
    add("--input", metavar="PATH", help="file or folder; else typed names")
    add = command("evaluate", "compute error rates on recordings")
    add("--data", metavar="FOLDER", help="the test recordings of `train`")
    add("--strict", action="store_true", help="stop at the first bad line")
    return parser.parse_args()


def read_recordings(folder, strict, rate=None):
    """Reads WAV files and their texts; reports and counts bad lines."""
    from keras_attn import datasets

    with datasets.report_bad_lines(strict) as on_bad_lines:
        recordings = datasets.read_wav_folder(folder, on_bad_lines=on_bad_lines)
    rate = rate or recordings[0].sample_rate
    if any(recording.sample_rate != rate for recording in recordings):
        raise ValueError(f"{folder} must have recordings of {rate:,} Hz only.")
    return recordings


def load_splits(arguments):
    """Returns the recordings of each split, by name."""
    from keras_attn import datasets

    sizes = QUICK if arguments.quick else SYNTHETIC
    options, speaker = {"seed": arguments.seed}, arguments.test_speaker
    make = datasets.make_morse_audio
    if arguments.audio == "digits":
        make, options["max_digits"] = datasets.make_digit_audio, 3
    if arguments.data:
        records = read_recordings(arguments.data, arguments.strict)
        # A sentence is in one split. Few texts, such as digits, are in all.
        texts = len({record.text for record in records}) >= 100
        parts = datasets.split_by_hash(
            [r for r in records if not speaker or r.speaker != speaker],
            lambda r: r.text if texts else r.samples.tobytes().hex(),
        )
        if speaker:
            test = [record for record in records if record.speaker == speaker]
            parts = parts[0] + parts[2], parts[1], test
    else:
        parts = [make(n, split=s, **options) for s, n in sizes.items()]
    splits = dict(zip(sizes, parts, strict=True))
    for name, n in sizes.items() if arguments.quick else ():
        splits[name] = sorted(splits[name], key=lambda r: len(r.samples))[:n]
    print(*(f"{len(v):,} {k} recordings" for k, v in splits.items()), sep=", ")
    if not all(splits.values()):
        raise ValueError("A split has no recording.")
    return splits


class Transcriber:
    """A model, the settings of its frames, and its characters."""

    def __init__(self, settings, model=None):
        from keras_attn.layers import LogMelSpectrogram

        self.settings, self.model = settings, model
        self.rate, self.step = settings["rate"], settings["step"]
        self.characters = settings["characters"]
        self.longest = settings["longest"] + 1  # tokens
        window = 256 * max(1, self.rate // 8000)
        self.log_mel = LogMelSpectrogram(
            self.rate, self.step, window, num_mel_bins=BANDS, min_freq=100.0
        )

    @classmethod
    def load(cls, folder):
        """Loads a transcriber from the folder of a training."""
        import keras

        from keras_attn import models  # noqa: F401, for `load_model`

        if not (folder / "model.keras").is_file():
            raise ValueError(f"{folder} has no model; `train` writes one.")
        model = keras.saving.load_model(folder / "model.keras", compile=False)
        results = json.loads((folder / "results.json").read_text("utf-8"))
        return cls(results["settings"], model)

    def make_frames(self, sounds, length):
        """Returns log-mel frames of sounds, padded to a number of samples."""
        import keras

        options = "float32", "post", "post"
        rows = keras.utils.pad_sequences(sounds, length, *options)
        sizes = np.array([len(samples) for samples in sounds])
        return keras.ops.convert_to_numpy(self.log_mel(rows, lengths=sizes))

    def make_batch(self, recordings, length, random=None):
        """Returns frames and target ids, and labels, for `fit`."""
        sounds = [recording.samples for recording in recordings]
        if random and not self.settings["morse"]:  # It would hide dots.
            sounds = [augment(samples, random) for samples in sounds]
            length = int(FASTEST * length)
        target, labels = np.zeros((2, len(sounds), self.longest), "int32")
        for row, recording in enumerate(recordings):
            ids = [self.characters.find(c) + 3 for c in recording.text]
            ids = [i for i in ids if i > END][: self.longest - 1]
            target[row, : len(ids) + 1] = [START, *ids]
            labels[row, : len(ids) + 1] = [*ids, END]
        return (self.make_frames(sounds, length), target), labels

    def read_text(self, tokens):
        """Returns the text of token ids."""
        return "".join(self.characters[i - 3] for i in tokens if i > END)

    def transcribe(self, sounds, batch_size=32):
        """Returns the texts of recordings, arrays of samples."""
        texts, unit = [], self.settings["unit"]
        for start in range(0, len(sounds), batch_size):
            batch = sounds[start : start + batch_size]
            # Few lengths, because each is compiled.
            length = -(-max(map(len, batch)) // unit) * unit
            frames = self.make_frames(batch, length)
            found = self.model.transcribe(frames, self.longest)
            texts += map(self.read_text, found.tokens[:, 0])
        return texts

    def plot_alignment(self, samples):
        """Draws where the decoder heard each character."""
        from keras_attn.explain import plot_attention

        frames = self.make_frames([samples], len(samples))
        found = self.model.generate(frames, self.longest, return_weights=True)
        # The mean of the heads of the last layer.
        weights = found.weights[0, 0, -1, :, : found.lengths.item()].mean(0)
        text = [*self.read_text(found.tokens[0, 0]), "end"][: len(weights)]
        vectors = np.arange(weights.shape[1])
        times = [f"{s:.2f} s" for s in 4 * self.step / self.rate * vectors]
        return plot_attention(weights, text, times)


def augment(samples, random):
    """Returns a recording as another voice and microphone would sound."""
    times = np.arange(0, len(samples) - 1, FASTEST ** random.uniform(-1, 1))
    samples = np.interp(times, np.arange(len(samples)), samples)
    samples[1:] += random.uniform(-0.6, 0.6) * samples[:-1]
    noise = samples.std() * 10 ** (-random.uniform(5, 40) / 20)
    return samples + noise * random.standard_normal(len(samples))


def print_scores(transcriber, recordings):
    """Transcribes recordings; prints samples; returns the error rates."""
    from keras_attn.text import error_rate

    texts = [recording.text for recording in recordings]
    found = transcriber.transcribe([r.samples for r in recordings])
    for i in range(0, len(texts), max(1, len(texts) // 5)):
        note = "" if found[i] == texts[i] else f"   (reference: {texts[i]})"
        print(f"  {found[i]}{note}")
    scores = {}
    for unit in "character", "word":
        scores[f"{unit}_error_rate"] = rate = error_rate(found, texts, unit)
        print(f"{unit} error rate {rate:.2%} of {len(texts):,} recordings")
    return scores


def train(arguments):
    """Trains a model, saves it, and scores it on the test recordings."""
    import keras

    from keras_attn import explain, layers, models, training

    out, seed = arguments.out, arguments.seed
    if (out / "backup").exists() and not arguments.resume:
        message = "has an interrupted training: continue it with --resume, or"
        raise ValueError(f"{out} {message} remove {out / 'backup'}.")
    out.mkdir(parents=True, exist_ok=True)
    keras.utils.set_random_seed(seed)
    splits = load_splits(arguments)
    morse = not arguments.data and arguments.audio == "morse"
    records, rate = splits["train"], splits["train"][0].sample_rate
    step = round((arguments.step or (16 if morse else 10)) * rate / 1000)
    lengths = [len(record.samples) for record in records]
    settings = {"rate": rate, "step": step, "morse": morse}
    settings["unit"] = 1 + max(lengths) // 4  # samples
    settings["longest"] = max(len(record.text) for record in records)
    characters = sorted(set().union(*(record.text for record in records)))
    settings["characters"] = "".join(characters)
    settings["arguments"] = vars(arguments) | {"out": str(out)}
    preset = "tiny" if arguments.quick else arguments.preset
    size = dict(zip(SIZES, PRESETS[preset], strict=True))
    width, heads = size["hidden_dim"], size["hidden_dim"] // 32
    model = models.SpeechTransformer(
        3 + len(characters),
        BANDS,
        num_heads=heads,
        intermediate_dim=4 * width,
        dropout=arguments.dropout,
        encoder_attention_position=layers.T5Position(heads, 32, 64),
        ctc_weight=arguments.ctc_weight,
        **size,
    )
    transcriber = Transcriber(settings, model)
    print(f"{model.count_params():,} parameters")
    scale = RATES[preset] * (width * WARMUP) ** 0.5
    schedule = training.WarmupSchedule(width, WARMUP, scale)
    adam = keras.optimizers.Adam(schedule, beta_2=0.98, clipnorm=1.0)
    loss = training.SequenceCrossentropy(label_smoothing=0.1)
    model.compile(adam, loss, metrics=[training.TokenAccuracy()])
    make_batch, number = transcriber.make_batch, arguments.batch_size
    batches = training.BucketedDataset(
        records, lengths, make_batch, number, seed=seed
    )
    validation = splits["validation"][:320]
    progress, often = training.TrainingProgress(arguments.minutes), len(batches)
    average = training.CheckpointAverage(5, save_freq=often, validate=True)
    backup = training.TrainingBackup(
        out / "backup",
        [progress, average, keras.callbacks.EarlyStopping(patience=8)],
        save_freq=min(200, len(batches)),
        data=batches,
        settings=size | {"step": step, "recordings": len(records)},
    )
    with backup.interruptible():
        model.fit(
            batches,
            epochs=arguments.epochs or (1 if arguments.quick else 30),
            shuffle=False,  # `BucketedDataset` shuffles.
            validation_data=make_batch(validation, max(lengths)),
            validation_batch_size=number,
            callbacks=[backup],
            verbose=0,
        )

    model.save(out / "model.keras")
    curves = progress.losses, progress.validation
    figure = explain.plot_training(*curves, ylabel="loss (nats per character)")
    figure.savefig(out / "training.png", dpi=150)
    test, example = splits["test"], out / "example.wav"
    with wave.open(str(example), "wb") as file:
        file.setparams((1, 2, rate, 0, "NONE", ""))
        file.writeframes(test[0].samples.astype("<i2").tobytes())
    figure = transcriber.plot_alignment(test[0].samples)
    figure.savefig(out / "alignment.png", dpi=150)
    results = {"settings": settings, "parameters": model.count_params()}
    results |= print_scores(transcriber, test)
    results["validation_loss"] = average.best_loss
    results["minutes"] = progress.seconds / 60
    results["batches"] = len(progress.losses)
    (out / "results.json").write_text(json.dumps(results, indent=1), "utf-8")
    backup.remove()
    print(f"\nThe model, training.png and alignment.png are in {out}. Next:")
    print(f"  python {sys.argv[0]} predict --out {out} --input {example}")


def predict(arguments):
    """Writes the texts of WAV files, or of typed file names."""
    from keras_attn.datasets import read_wav

    transcriber = Transcriber.load(arguments.out)
    files = map(str.strip, sys.stdin)
    if arguments.input:
        path = pathlib.Path(arguments.input)
        files = sorted(path.glob("*.wav")) if path.is_dir() else [path]
    elif sys.stdin.isatty():
        print("Type the name of a WAV file and press Enter; Ctrl-D ends.")
    for file in files:
        try:
            samples, rate = read_wav(file)
            if rate != transcriber.rate:
                raise ValueError(f"{file} must have {transcriber.rate:,} Hz.")
            print(
                file, *transcriber.transcribe([samples]), sep="\t", flush=True
            )
        except (OSError, ValueError) as error:
            if arguments.input:
                raise
            print(error, file=sys.stderr)


def evaluate(arguments):
    """Computes error rates on recordings."""
    transcriber = Transcriber.load(arguments.out)
    if arguments.data:
        folder, strict = arguments.data, arguments.strict
        recordings = read_recordings(folder, strict, transcriber.rate)
    else:
        saved = argparse.Namespace(**transcriber.settings["arguments"])
        recordings = load_splits(saved)["test"]
    print_scores(transcriber, recordings)


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
