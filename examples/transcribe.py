"""Train, use and evaluate a Transformer that transcribes recordings.

    python examples/transcribe.py train --data recordings
    python examples/transcribe.py predict --input message.wav
    python examples/transcribe.py evaluate

`--data` takes a folder of WAV files with their texts in `transcripts.tsv`, in
lines `name<tab>text` or `name<tab>text<tab>speaker`, or a folder of files named
`digits_speaker_number.wav`. Without it, `train` uses synthetic audio.

The encoder spells what it hears by CTC, the decoder writes it with attention.
Their losses are added in training, and their scores in use (Hori et al. 2017).
Recordings that are too short for their texts do not count in the CTC loss.
"""

import argparse
import json
import os
import pathlib
import sys
import wave

import numpy as np

PRESETS = {"tiny": (32, 1), "small": (128, 2), "base": (256, 6)}  # D, layers
BANDS = 40  # of the frames
FASTEST = 1.2  # change of the speed by augmentation
# Synthetic recordings of each split; and recordings with --quick.
SIZES = {"train": (5000, 48), "validation": (320, 8), "test": (320, 8)}
# Options that may change when a training is resumed.
FREE = {"backend", "command", "epochs", "minutes", "out", "resume"}


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
    add("--data", metavar="FOLDER", help="WAV files; else synthetic audio")
    add("--audio", choices=["morse", "digits"], default="morse")
    add("--test-speaker", metavar="NAME", help="held out; else a random part")
    add("--preset", choices=PRESETS, default="small", help="model size")
    add("--step", type=float, help="ms between frames; 10, or 16 for morse")
    add("--dropout", type=float, default=0.1, help="dropout rate")
    add("--ctc-weight", type=float, default=0.3, help="of the loss of CTC")
    add("--batch-size", type=int, default=16, help="recordings of a batch")
    add("--minutes", type=float, default=60, help="time limit")
    add("--epochs", type=int, help="at most 30, or 1 with --quick")
    add("--seed", type=int, default=1, help="random seed")
    add("--quick", action="store_true", help="a few steps, as a test")
    add("--resume", action="store_true", help="continue an interrupted run")
    add("--strict", action="store_true", help="stop at the first bad line")
    add = command("predict", "write the texts of WAV files")
    add("--input", type=pathlib.Path, help="file or folder; else typed names")
    add = command("evaluate", "compute error rates on recordings")
    add("--data", metavar="FOLDER", help="the test recordings of `train`")
    add("--strict", action="store_true", help="stop at the first bad line")
    return parser.parse_args()


def read_recordings(arguments, rate=None):
    """Reads WAV files and their texts; reports and counts bad lines."""
    from keras_attn import datasets

    with datasets.report_bad_lines(arguments.strict) as bad:
        recordings = datasets.read_wav_folder(arguments.data, on_bad_lines=bad)
    rate = rate or recordings[0].sample_rate
    if any(recording.sample_rate != rate for recording in recordings):
        raise ValueError(f"{arguments.data} must have {rate:,} Hz only.")
    return recordings


def load_splits(arguments):
    """Returns the recordings of each split, by name."""
    from keras_attn import datasets

    sizes = {name: n[arguments.quick] for name, n in SIZES.items()}
    options, speaker = {"seed": arguments.seed}, arguments.test_speaker
    make = datasets.make_morse_audio
    if arguments.audio == "digits":
        make, options["max_digits"] = datasets.make_digit_audio, 3
    if arguments.data:
        records = read_recordings(arguments)
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
        from keras_attn.text import CharacterTokenizer

        self.settings, self.model = settings, model
        self.rate, self.step = settings["rate"], settings["step"]
        self.tokenizer = CharacterTokenizer(settings["characters"])
        self.longest = settings["longest"] + 1  # tokens
        window = 256 * max(1, self.rate // 8000)
        self.log_mel = LogMelSpectrogram(
            self.rate, self.step, window, num_mel_bins=BANDS, min_freq=100.0
        )

    @classmethod
    def load(cls, folder):
        """Loads a transcriber from the folder of a training."""
        from keras_attn import pretrained

        if not (folder / "results.json").is_file():
            raise ValueError(f"{folder} has no model; `train` writes one.")
        results = json.loads((folder / "results.json").read_text("utf-8"))
        return cls(results["settings"], pretrained.load(folder))

    def make_frames(self, sounds, length=None):
        """Returns log-mel frames of sounds, padded to a number of samples."""
        from keras import ops, utils

        sizes = np.array([*map(len, sounds)])
        # Whole seconds by default, because each length is compiled.
        length = length or self.rate * (1 + sizes.max() // self.rate)
        rows = utils.pad_sequences(sounds, length, "float32", "post")
        return np.array(ops.convert_to_numpy(self.log_mel(rows, lengths=sizes)))

    def make_batch(self, recordings, length=None, random=None):
        """Returns frames and target ids, and labels, for `fit`."""
        sounds = [recording.samples for recording in recordings]
        # Augmentation would hide dots of Morse code.
        augmented = random and not self.settings["morse"]
        if augmented:
            sounds = [augment(samples, random) for samples in sounds]
            length = int(FASTEST * length)
        frames = self.make_frames(sounds, length)
        for row in frames if augmented else ():
            # Hides some frames and bands (Park et al. 2019).
            time, band = random.integers(len(row)), random.integers(BANDS)
            row[time : time + random.integers(8)] = 0
            row[:, band : band + random.integers(6)] = 0
        texts = self.tokenizer.encode([r.text for r in recordings])
        target, labels = np.zeros((2, len(sounds), self.longest), "int32")
        target[:, 0] = self.tokenizer.start_id
        for row, ids in enumerate(texts):
            ids = ids[: self.longest - 1]
            target[row, 1 : len(ids) + 1] = ids
            labels[row, : len(ids) + 1] = [*ids, self.tokenizer.end_id]
        return (frames, target), labels

    def transcribe(self, sounds, batch_size=32):
        """Returns the texts of recordings, arrays of samples."""
        texts = []
        for start in range(0, len(sounds), batch_size):
            frames = self.make_frames(sounds[start : start + batch_size])
            found = self.model.transcribe(frames, self.longest)
            texts += map(self.tokenizer.decode, found.tokens[:, 0])
        return texts

    def plot_alignment(self, samples):
        """Draws where the last decoder layer heard each character."""
        from keras_attn.explain import plot_attention

        frames = self.make_frames([samples], len(samples))
        found = self.model.generate(frames, self.longest, return_weights=True)
        weights = found.weights[0, 0, -1, :, : found.lengths.item()].mean(0)
        text = self.tokenizer.decode(found.tokens[0, 0])
        text = [*text, "end"][: len(weights)]
        seconds = 4 * self.step / self.rate * np.arange(weights.shape[1])
        return plot_attention(weights, text, [f"{s:.2f} s" for s in seconds])


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
        print(f"  {found[i]}   (reference: {texts[i]})")
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
    sizes = [len(record.samples) for record in records]
    step = round((arguments.step or (16 if morse else 10)) * rate / 1000)
    settings = {"rate": rate, "step": step, "morse": morse}
    settings |= {
        "longest": max(len(record.text) for record in records),
        "characters": "".join(sorted(set().union(*(r.text for r in records)))),
        "arguments": vars(arguments) | {"out": str(out)},
    }
    transcriber = Transcriber(settings)
    width, depth = PRESETS["tiny" if arguments.quick else arguments.preset]
    transcriber.model = model = models.SpeechTransformer(
        transcriber.tokenizer.vocabulary_size,
        BANDS,
        filters=min(width // 4, 32),
        num_layers=depth,
        num_heads=width // 32,
        hidden_dim=width,
        intermediate_dim=4 * width,
        num_decoder_layers=max(1, depth // 3),
        encoder_attention_position=layers.T5Position(width // 32, 32, 64),
        ctc_weight=arguments.ctc_weight,
        dropout=arguments.dropout,
    )
    print(f"{model.count_params():,} parameters")
    encode, size = transcriber.make_batch, arguments.batch_size
    schedule = training.WarmupSchedule(width, warmup_steps=500, scale=0.38)
    adam = keras.optimizers.Adam(schedule, beta_2=0.98, clipnorm=1.0)
    model.compile(adam, training.SequenceCrossentropy(label_smoothing=0.1))
    batches = training.BucketedDataset(
        records, sizes, encode, size, seed=seed, curriculum_epochs=3
    )
    progress, n = training.TrainingProgress(arguments.minutes), len(batches)
    average = training.CheckpointAverage(5, save_freq=min(60, n), validate=True)
    fixed = {k: v for k, v in vars(arguments).items() if k not in FREE}
    backup = training.TrainingBackup(
        out / "backup",
        [progress, average, keras.callbacks.EarlyStopping(patience=8)],
        save_freq=min(200, n),
        data=batches,
        settings=fixed | {"step": step, "recordings": len(records)},
    )
    epochs = arguments.epochs or (1 if arguments.quick else 30)
    # `BucketedDataset` shuffles, and `progress` prints.
    options = {"shuffle": False, "verbose": 0, "callbacks": [backup]}
    options["validation_data"] = encode(splits["validation"][:320])
    with backup.interruptible():
        model.fit(batches, epochs=epochs, validation_batch_size=size, **options)

    model.save(out / "model.keras")
    losses = progress.losses, progress.validation
    explain.plot_training(*losses).savefig(out / "training.png", dpi=150)
    test, example = splits["test"], out / "example.wav"
    with wave.open(str(example), "wb") as file:
        file.setparams((1, 2, rate, 0, "NONE", ""))
        file.writeframes(test[0].samples.astype("<i2").tobytes())
    transcriber.plot_alignment(test[0].samples).savefig(out / "alignment.png")
    results = progress.summary() | print_scores(transcriber, test)
    results |= {"parameters": model.count_params(), "settings": settings}
    (out / "results.json").write_text(json.dumps(results, indent=1), "utf-8")
    backup.remove()
    print(f"\nThe model, training.png and alignment.png are in {out}. Next:")
    print(f"  python {sys.argv[0]} predict --out {out} --input {example}")


def predict(arguments):
    """Writes the texts of WAV files, or of typed file names."""
    from keras_attn.datasets import read_wav

    transcriber, path = Transcriber.load(arguments.out), arguments.input
    files = map(str.strip, sys.stdin)
    if path:
        files = sorted(path.glob("*.wav")) if path.is_dir() else [path]
    elif sys.stdin.isatty():
        print("Type the name of a WAV file and press Enter; Ctrl-D ends.")
    for file in files:
        try:
            sound, rate = read_wav(file)
            if rate != transcriber.rate:
                raise ValueError(f"{file} must have {transcriber.rate:,} Hz.")
            print(file, *transcriber.transcribe([sound]), sep="\t", flush=True)
        except (OSError, ValueError) as error:
            if path:
                raise
            print(error, file=sys.stderr)


def evaluate(arguments):
    """Computes error rates on recordings."""
    transcriber = Transcriber.load(arguments.out)
    if arguments.data:
        recordings = read_recordings(arguments, transcriber.rate)
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
