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
import functools
import json
import os
import pathlib
import sys
import wave

import numpy as np

SIZES = ["hidden_dim", "num_layers", "num_decoder_layers", "channels", "rate"]
PRESETS = {
    "tiny": (32, 1, 1, 4, 2e-3),
    "small": (128, 2, 1, 32, 1.5e-3),
    "base": (256, 6, 2, 32, 1e-3),
}
PAD, START, END = range(3)  # ids; PAD is the blank of CTC
BANDS, WINDOW = 40, 256  # of the spectrogram; samples
WARMUP, EPOCH = 500, 2000  # steps; recordings of an epoch, at most
RAMP = 8  # epochs until the longest recordings are used
FASTEST = 1.2  # change of the speed by augmentation
SYNTHETIC = {"train": 5000, "validation": 320, "test": 320}  # recordings
# Options that may change when a training is resumed.
FREE = {"backend", "command", "epochs", "minutes", "out", "resume"}
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
    add(
        "--audio",
        choices=["morse", "digits"],
        default="morse",
        help="synthetic",
    )
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


def read_recordings(folder, strict):
    """Reads WAV files and their texts; reports and counts bad lines."""
    from keras_attn.datasets import read_wav_folder, report_bad_lines

    with report_bad_lines(strict) as on_bad_lines:
        recordings = read_wav_folder(folder, on_bad_lines=on_bad_lines)
    rates = sorted({recording.sample_rate for recording in recordings})
    if len(rates) > 1:
        raise ValueError(f"{folder} has recordings of {rates} Hz.")
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


@functools.cache
def speech_transformer():
    """Returns the class of the model, which needs Keras."""
    import keras
    from keras import layers, ops

    from keras_attn.models import Transformer
    from keras_attn.ops import positions_from_mask

    @keras.saving.register_keras_serializable(package="transcribe")
    class SpeechTransformer(Transformer):
        """A Transformer that reads frames (B, F, bands + 1).

        Two strided convolutions make one vector of four frames (Dong et al.
        2018), a third one adds its neighbors. The last feature is the mask.
        """

        def __init__(self, *sizes, channels, ctc_weight, **options):
            super().__init__(*sizes, **options)
            self.own = {"channels": channels, "ctc_weight": ctc_weight}
            strided = {"strides": 2, "activation": "relu"}
            self.first = layers.Conv2D(channels, 3, **strided)
            self.second = layers.Conv2D(channels, 3, **strided)
            self.projection = layers.Dense(self.hidden_dim)
            self.norm = layers.LayerNormalization()
            same = {"padding": "same", "activation": "relu"}
            self.neighbors = layers.Conv1D(self.hidden_dim, 15, **same)
            self.spelling = layers.Dense(self.source_vocabulary_size)
            # Creates all weights.
            self.ctc_logits(
                *self.encode(np.zeros((1, 4, BANDS + 1), "float32"))
            )

        def call(self, inputs, training=None):
            frames, target = inputs
            memory, positions = self.encode(frames, training=training)
            if training:
                texts = target[:, 1:]
                total = ops.sum(self.ctc_score(memory, positions, texts))
                count = ops.sum(ops.cast(texts != PAD, "float32"))
                self.add_loss(-self.own["ctc_weight"] * total / count)
            return self.decode(target, memory, positions, training=training)

        def embed_source(self, frames):
            x, mask = frames[..., :-1, None], frames[..., -1] > 0
            for convolution in self.first, self.second:
                # Padding must not change the result.
                x = ops.where(mask[..., None, None], x, 0.0)
                x = convolution(ops.pad(x, [(0, 0), (1, 1), (1, 1), (0, 0)]))
                mask = mask[:, ::2]
            shape = *ops.shape(x)[:2], x.shape[2] * x.shape[3]
            x = self.projection(ops.reshape(x, shape))
            y = ops.where(mask[..., None], self.norm(x), 0.0)
            return x + self.neighbors(y), positions_from_mask(mask)

        def ctc_logits(self, memory, positions):
            """Returns logits (B, S, V) of the encoder, and lengths (B,)."""
            lengths = ops.sum(ops.cast(positions >= 0, "int32"), 1)
            return self.spelling(memory), lengths

        def ctc_score(self, memory, positions, texts):
            """Returns the log-probabilities of texts by CTC, float (B,)."""
            logits, lengths = self.ctc_logits(memory, positions)
            sizes = ops.sum(ops.cast(texts != PAD, "int32"), 1)
            return -ops.ctc_loss(texts, logits, sizes, lengths, PAD)

        def score(self, memory, positions, tokens):
            """Returns the log-probabilities by decoder and CTC, float (B,)."""
            texts = ops.where(tokens == END, PAD, tokens)
            start = ops.full_like(texts[:, :1], START)
            target = ops.concatenate([start, texts[:, :-1]], 1)
            logits = self.decode(target, memory, positions)
            one_hot = ops.one_hot(tokens, logits.shape[-1])
            log_probs = ops.sum(ops.log_softmax(logits) * one_hot, -1)
            decoder = ops.sum(ops.where(tokens == PAD, 0.0, log_probs), 1)
            return decoder + self.ctc_score(memory, positions, texts)

        def read_sources(self, inputs):
            return inputs

        def check_inputs(self, inputs):
            return list(inputs)

        def get_config(self):
            return super().get_config() | self.own

    return SpeechTransformer


class Transcriber:
    """A model, the settings of its frames, and its characters."""

    def __init__(self, settings, model=None):
        import keras

        self.settings, self.model = settings, model
        self.rate, self.step = settings["rate"], settings["step"]
        self.characters, self.unit = settings["characters"], settings["unit"]
        self.longest = settings["longest"] + 1  # tokens
        self.mel = keras.layers.MelSpectrogram(
            WINDOW * max(1, self.rate // 8000),
            self.step,
            sampling_rate=self.rate,
            num_mel_bins=BANDS,
            min_freq=100.0,
            # Its decibels depend on the other recordings of a batch.
            power_to_db=False,
        )

    @classmethod
    def load(cls, folder):
        """Loads a transcriber from the folder of a training."""
        import keras

        speech_transformer()
        if not (folder / "model.keras").is_file():
            raise ValueError(f"{folder} has no model; `train` writes one.")
        model = keras.saving.load_model(folder / "model.keras", compile=False)
        text = (folder / "settings.json").read_text("utf-8")
        return cls(json.loads(text), model)

    def log_mel(self, sounds):
        """Returns normalized frames: float32 (B, F, BANDS + 1)."""
        import keras

        counts = [1 + len(samples) // self.step for samples in sounds]
        # Few lengths, because each is compiled.
        length = -(-max(counts) // self.unit) * self.unit
        # Silence around each recording, so that others do not change it.
        margin = -(-self.mel.fft_length // (2 * self.step))
        size = (length + 2 * margin) * self.step
        rows = np.zeros((len(sounds), size), "float32")
        for row, samples in zip(rows, sounds, strict=True):
            row[margin * self.step :][: len(samples)] = samples
        power = keras.ops.convert_to_numpy(self.mel(rows)).transpose(0, 2, 1)
        frames = np.zeros((len(sounds), length, BANDS + 1), "float32")
        for row, part, count in zip(frames, power, counts, strict=True):
            part = part[margin : margin + count]
            # At most 60 dB below the loudest value.
            level = np.log(np.maximum(part, 1e-6 * part.max() + 1e-30))
            row[:count, :-1] = (level - level.mean()) / (level.std() + 1e-9)
            row[:count, -1] = 1.0
        return frames

    def make_batch(self, recordings, random=None):
        """Returns frames and target ids, and labels, for `fit`."""
        sounds = [recording.samples / 32768 for recording in recordings]
        if random:
            sounds = [augment(samples, random) for samples in sounds]
        frames = self.log_mel(sounds)
        target, labels = np.zeros((2, len(sounds), self.longest), "int32")
        for row, recording in enumerate(recordings):
            ids = [self.characters.find(c) + 3 for c in recording.text]
            ids = [i for i in ids if i > END][: self.longest - 1]
            target[row, : len(ids) + 1] = [START, *ids]
            labels[row, : len(ids) + 1] = [*ids, END]
        if random:
            for row in frames:  # Hides a part of each (Park et al. 2019).
                time, band = random.integers(len(row)), random.integers(BANDS)
                row[time : time + random.integers(8), :-1] = 0
                row[:, band : min(BANDS, band + random.integers(6))] = 0
        return (frames, target), labels

    def read_frames(self, frames):
        """Returns the most likely texts by decoder and CTC, and their ids.

        Of four hypotheses of the decoder, which may lose its position in the
        recording, and the spelling of CTC, which does not know which characters
        follow each other.
        """
        from keras import ops

        from keras_attn.decoding import BeamSearch

        strategy = BeamSearch(4, 4, length_penalty=0)
        options = {"strategy": strategy, "batch_size": len(frames)}
        found = self.model.generate(frames, self.longest, **options)
        tokens = np.zeros((len(frames), 5, self.longest), "int32")
        tokens[:, :4, : found.tokens.shape[2]] = found.tokens
        memory, positions = self.model.encode(frames)
        logits = self.model.ctc_logits(memory, positions)
        paths = ops.convert_to_numpy(ops.ctc_decode(*logits)[0])[0]
        for row, ids in zip(tokens[:, 4], paths, strict=True):
            ids = ids[ids > END][: self.longest - 1]
            row[: len(ids) + 1] = [*ids, END]
        score = functools.partial(self.model.score, memory, positions)
        scores = ops.stack([score(tokens[:, i]) for i in range(5)])
        # Not a number if a text is longer than CTC allows.
        scores = np.nan_to_num(ops.convert_to_numpy(scores), nan=-np.inf)
        tokens = tokens[np.arange(len(frames)), scores.argmax(0)]
        names = [*"\0\0\0", *self.characters]
        return ["".join(names[i] for i in t if i > END) for t in tokens], tokens

    def transcribe(self, sounds, batch_size=32):
        """Returns the texts of recordings, arrays of samples."""
        order = sorted(range(len(sounds)), key=lambda i: len(sounds[i]))
        texts, size = {}, min(batch_size, len(sounds))
        for start in range(0, len(sounds), batch_size):
            # All batches have the same number of rows.
            rows = np.resize(order[start : start + batch_size], size)
            found, _ = self.read_frames(self.log_mel([sounds[i] for i in rows]))
            texts |= zip(rows.tolist(), found, strict=True)
        return [texts[i] for i in range(len(sounds))]

    def plot_alignment(self, samples):
        """Draws frames, and where the decoder heard each character."""
        from keras import ops
        from matplotlib.figure import Figure

        frames = self.log_mel([samples])
        (text,), tokens = self.read_frames(frames)
        sizes = np.count_nonzero(tokens, axis=1, keepdims=True).astype("int32")
        weights = self.model.align(frames, tokens[:, None], sizes)
        weights = ops.convert_to_numpy(weights)[0, 0, -1]  # the last layer
        count, size = int(frames[0, :, -1].sum()), sizes.item()
        vectors = np.arange(-(-count // 4))
        weights = weights[:, :size, vectors]
        # The head whose attention moves back least.
        head = (np.diff(weights @ vectors) >= 0).sum(1).argmax()
        figure = Figure(figsize=(9, 6), layout="constrained")
        panels = figure.subplots(2, 1, sharex=True)
        images = frames[0, :count, :-1].T, weights[head]
        for panel, image in zip(panels, images, strict=True):
            extent = (0, count * self.step / self.rate, len(image), 0)
            panel.imshow(image, "Blues", aspect="auto", extent=extent)
        panels[0].set(ylabel="mel band", ylim=(0, BANDS))
        labels = [*text, "end"][:size]
        panels[1].set_yticks(np.arange(size) + 0.5, labels)
        panels[1].set(ylabel="character written", xlabel="seconds")
        return figure


def augment(samples, random):
    """Returns a recording as another voice and microphone would sound."""
    speed = FASTEST ** random.uniform(-1, 1)
    times = np.arange(0, len(samples) - 1, speed)
    samples = np.interp(times, np.arange(len(samples)), samples)
    samples[1:] += random.uniform(-0.6, 0.6) * samples[:-1]
    noise = samples.std() * 10 ** (-random.uniform(5, 40) / 20)
    return samples + noise * random.standard_normal(len(samples))


def make_batches(recordings, make_batch, size, augmented, seed):
    """Returns batches of recordings of similar length, in random order."""
    import keras

    recordings = sorted(recordings, key=lambda record: len(record.samples))
    size = min(size, len(recordings))
    count = min(len(recordings), EPOCH) // size

    class Batches(keras.utils.PyDataset):
        def set_epoch(self, epoch):
            random = np.random.default_rng((seed, epoch))
            # Short recordings first (Amodei et al. 2016).
            share = min(1.0, 0.4 + 0.6 * epoch / RAMP)
            rows = random.permutation(int(share * len(recordings)))
            rows = np.sort(np.resize(rows, count * size)).reshape(count, size)
            # On TensorFlow, Keras takes an axis for constant if it has the same
            # size in the first two batches: the second one is the longest.
            rows[-1] = np.arange(len(recordings))[-size:]
            order = random.permutation(count - 1)
            self.rows = rows[[*order[:1], -1, *order[1:]]]
            self.epoch = epoch

        def __len__(self):
            return count

        def __getitem__(self, index):
            random = np.random.default_rng((seed, self.epoch, index))
            batch = [recordings[row] for row in self.rows[index]]
            return make_batch(batch, random if augmented else None)

    batches = Batches()
    batches.set_epoch(0)
    return batches


def print_scores(transcriber, recordings):
    """Transcribes recordings; prints samples; returns the error rates."""
    from keras_attn.text import error_rate

    texts = [recording.text for recording in recordings]
    found = transcriber.transcribe([r.samples / 32768 for r in recordings])
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

    from keras_attn import explain, layers, training

    out, seed = arguments.out, arguments.seed
    if (out / "backup").exists() and not arguments.resume:
        message = "has an interrupted training: continue it with --resume, or"
        raise ValueError(f"{out} {message} remove {out / 'backup'}.")
    out.mkdir(parents=True, exist_ok=True)
    keras.utils.set_random_seed(seed)
    splits = load_splits(arguments)
    morse = not arguments.data and arguments.audio == "morse"
    rate = splits["train"][0].sample_rate
    step = round((arguments.step or (16 if morse else 10)) * rate / 1000)

    def is_usable(recording):
        # CTC needs a vector for each character, and one between equal ones.
        text, frames = recording.text, len(recording.samples) // step
        count = len(text) + sum(map(str.__eq__, text, text[1:]))
        return 4 * FASTEST * count <= frames

    records = list(filter(is_usable, splits["train"]))
    if dropped := len(splits["train"]) - len(records):
        print(f"Skipped {dropped:,} recordings, too short for their texts.")
    frames = [len(record.samples) // step for record in records]
    settings = {
        "rate": rate,
        "step": step,
        "unit": 4 + 4 * (max(frames) // 16),
        "longest": max(len(record.text) for record in records),
        "characters": "".join(sorted(set().union(*(r.text for r in records)))),
        "arguments": vars(arguments) | {"out": str(out)},
    }
    preset = PRESETS["tiny" if arguments.quick else arguments.preset]
    size = dict(zip(SIZES, preset, strict=True))
    options, width, heads = dict(size), preset[0], preset[0] // 32
    highest = options.pop("rate")
    model = speech_transformer()(
        3 + len(settings["characters"]),
        num_heads=heads,
        intermediate_dim=4 * width,
        dropout=arguments.dropout,
        normalize_first=True,
        encoder_attention_position=layers.T5Position(heads, 32, 64),
        ctc_weight=arguments.ctc_weight,
        **options,
    )
    transcriber = Transcriber(settings, model)
    print(f"{model.count_params():,} parameters")
    scale = highest * (width * WARMUP) ** 0.5
    schedule = training.WarmupSchedule(width, WARMUP, scale)
    adam = keras.optimizers.Adam(schedule, beta_2=0.98, clipnorm=1.0)
    loss = training.SequenceCrossentropy(label_smoothing=0.1)
    model.compile(adam, loss, metrics=[training.TokenAccuracy()])
    make_batch, number = transcriber.make_batch, arguments.batch_size
    # Augmentation would hide dots of Morse code.
    batches = make_batches(records, make_batch, number, not morse, seed)
    progress, often = training.TrainingProgress(arguments.minutes), len(batches)
    average = training.CheckpointAverage(5, save_freq=often, validate=True)
    fixed = {k: v for k, v in vars(arguments).items() if k not in FREE}
    backup = training.TrainingBackup(
        out / "backup",
        [progress, average, keras.callbacks.EarlyStopping(patience=8)],
        save_freq=min(200, len(batches)),
        data=batches,
        settings=fixed | size | {"step": step, "recordings": len(records)},
    )
    with backup.interruptible():
        model.fit(
            batches,
            epochs=arguments.epochs or (1 if arguments.quick else 30),
            shuffle=False,  # `make_batches` shuffles.
            validation_data=make_batch(splits["validation"][:320]),
            validation_batch_size=number,
            callbacks=[backup],
            verbose=0,
        )

    model.save(out / "model.keras")
    (out / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    curves = progress.losses, progress.validation
    figure = explain.plot_training(*curves, ylabel="loss (nats per character)")
    figure.savefig(out / "training.png", dpi=150)
    test = splits["test"]
    with wave.open(str(out / "example.wav"), "wb") as file:
        file.setparams((1, 2, rate, 0, "NONE", ""))
        file.writeframes(test[0].samples.astype("<i2").tobytes())
    figure = transcriber.plot_alignment(test[0].samples / 32768)
    figure.savefig(out / "alignment.png", dpi=150)
    results = print_scores(transcriber, test) | {
        "minutes": progress.seconds / 60,
        "batches": len(progress.losses),
        "validation_loss": average.best_loss,
        "parameters": model.count_params(),
        "arguments": settings["arguments"],
    }
    text = json.dumps(results, indent=1)
    (out / "results.json").write_text(text + "\n", encoding="utf-8")
    backup.remove()
    print(f"\nThe model, training.png and alignment.png are in {out}. Next:")
    example = out / "example.wav"
    print(f"  python {sys.argv[0]} predict --out {out} --input {example}")


def read_wav(path, rate):
    """Returns the samples of a WAV file."""
    try:
        with wave.open(str(path)) as file:
            content = file.readframes(file.getnframes())
            channels, width, found = file.getparams()[:3]
    except (EOFError, wave.Error) as error:
        raise ValueError(f"{path} is not a PCM WAV file: {error}") from error
    if (width, found) != (2, rate) or not content:
        raise ValueError(f"{path} must have 16-bit samples of {rate:,} Hz.")
    samples = np.frombuffer(content, "<i2").reshape(-1, channels)
    return samples.mean(1) / 32768


def predict(arguments):
    """Writes the texts of WAV files, or of typed file names."""
    transcriber = Transcriber.load(arguments.out)
    files = map(str.strip, sys.stdin)
    if arguments.input:
        path = pathlib.Path(arguments.input)
        files = sorted(path.glob("*.wav")) if path.is_dir() else [path]
    elif sys.stdin.isatty():
        print("Type the name of a WAV file and press Enter; Ctrl-D ends.")
    for file in files:
        try:
            sound = read_wav(file, transcriber.rate)
        except (OSError, ValueError) as error:
            if arguments.input:
                raise
            print(error, file=sys.stderr)
            continue
        print(file, *transcriber.transcribe([sound]), sep="\t", flush=True)


def evaluate(arguments):
    """Computes error rates on recordings."""
    transcriber = Transcriber.load(arguments.out)
    if arguments.data:
        recordings = read_recordings(arguments.data, arguments.strict)
        if recordings[0].sample_rate != (rate := transcriber.rate):
            raise ValueError(f"{arguments.data} must have {rate} Hz.")
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
