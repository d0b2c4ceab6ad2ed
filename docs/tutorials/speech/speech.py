# %% [markdown]
# # Speech recognition
#
# Someone keys a message, or speaks. How does a Transformer, which translates
# one sequence into another, write down what it hears, and where in the sound
# does it listen for each character?
#
# ![A message in noise, and where each character was heard](speech-3.png)
#
# Above, the waveform of a message in Morse code, in which the noise is as
# strong as the tone. In the middle, the same as log-mel frames. Below, where
# the model listened when it wrote each character; a red box shows when that
# character was keyed, which nobody had told the model.
#
# You will
#
# - make **sounds**: Morse code at random speeds, in noise of a given power;
# - turn waveforms into **log-mel frames** with `keras.layers.MelSpectrogram`;
# - shorten them with two **strided convolutions**, and put these in front of
#   the library's Transformer;
# - let the encoder **spell** as well (CTC), without which the decoder learns
#   far more slowly where to listen;
# - train it, and measure the **character error rate** on texts that it never
#   saw, against speed and noise;
# - look at the **alignment**, and measure how monotonic it is.
#
# Sixteen minutes on two cores. The sounds are made here; nothing is downloaded.
# As a program, on any backend:
#
#     KERAS_BACKEND=jax .venv/bin/python tutorials/speech.py
#
# With `DATA=` it learns from recordings of spoken digits, named
# `<digit>_<speaker>_<number>.wav` as in the Free Spoken Digit Dataset, and is
# tested on a speaker whom it never heard: each in turn, or `SPEAKER=name`.
#
#     DATA=folder KERAS_BACKEND=jax .venv/bin/python tutorials/speech.py
#
# With `MODEL=` a saved model writes down wav files:
#
#     MODEL=runs/speech INPUT=message.wav .venv/bin/python tutorials/speech.py

# %%
import itertools
import json
import time

import alignment_measures
import keras
import morse_code
import morse_messages
import numpy as np
import program_settings
import sound_batches
import sound_files
import speech_data
import speech_lines
import speech_settings
import spoken_digits
from alignment_plots import plot_alignment, plot_sound
from ctc_head import CTCHead, read_path
from error_rate import character_error_rate
from joint_choice import WAYS
from letters import END, PAD, START, Letters
from log_mel import LogMel
from matplotlib.figure import Figure
from speech_model import SpeechTransformer
from training_log import TrainingLog
from transcription import Transcriber

from keras_attn.layers import T5Position
from keras_attn.training import (
    CheckpointAverage,
    SequenceCrossentropy,
    TokenAccuracy,
    TrainingBackup,
    WarmupSchedule,
)

try:
    run = speech_settings.read_settings()
    if run.model:
        speech_lines.run(run.model, run.input)
        raise SystemExit(0)
    recordings = spoken_digits.read_digits(run.data) if run.data else []
except ValueError as error:
    program_settings.explain_and_leave("speech", error)

keras.utils.set_random_seed(run.seed)
run.out.mkdir(parents=True, exist_ok=True)
print(f"Keras {keras.__version__} on {keras.backend.backend()}")

# %% [markdown]
# ## Sounds
#
# A Morse message is a tone that is switched on and off. All times are
# multiples of that of a dot. A word, by definition PARIS with the gap behind
# it, is 50 dots long; at $v$ words a minute a dot takes
#
# $$t_\mathrm{dot} = \frac{60\,\mathrm{s}}{50\,v}
# = \frac{1.2}{v}\,\mathrm{s}.$$
#
# The messages are one to three random words, of letters, digits, or English,
# and take up to six seconds. Speed (12 to 30 words a minute) and tone (400 to
# 1,000 Hz) are drawn at random. A text is for training or for tests by its
# hash: no text of the tests was ever trained on.

# %%
down, _ = morse_code.keying("PARIS")
print("PARIS", "".join("=" if key else "." for key in down))
assert len(down) + 7 == 50  # with the gap of seven dots behind it
generator = np.random.default_rng(run.seed)
example = morse_messages.make_message("KERAS 3", 20, 700, 0.0, generator)
if recordings:
    example = spoken_digits.draw_numbers(recordings, 1, run.seed, False)[0]
assert example.samples.ndim == 1  # (samples,), 8,000 a second
seconds = len(example.samples) / morse_code.RATE
print(f"{example.text!r}: {seconds:.1f} s, {len(example.samples):,} samples")

# %% [markdown]
# How loud is the noise? A tone of amplitude $A$ has, while the key is down, the
# power $A^2 / 2$. White noise of variance $\sigma^2$ has the power $\sigma^2$;
# at 8,000 samples a second all of it lies between 0 and 4,000 Hz. Their ratio
# in decibels is
#
# $$\mathrm{SNR} = 10 \log_{10} \frac{A^2 / 2}{\sigma^2}.$$
#
# It is measured here within a dash, and on one second of noise: 0 dB, as in the
# 320 tests below. In training it is drawn from -4 to 8 dB.

# %%
tone, _ = morse_code.keyed_tone("T", 3.6, 700)  # a dash of one second
inside = tone[2000:7000]
noise = generator.normal(0, morse_code.noise_deviation(0.0), morse_code.RATE)
measured = 10 * np.log10(np.square(inside).mean() / np.square(noise).mean())
print(f"measured: {measured:.2f} dB")
assert abs(measured) < 0.3

# %% [markdown]
# ## Log-mel frames
#
# A waveform shows little of what is heard. The spectrum of a short window,
# taken every few milliseconds, shows much more:
#
# $$P_{t,k} = \Big| \sum_{n=0}^{N-1} w_n\, x_{t s + n - N/2}\,
# e^{-2 \pi i k n / N} \Big|^2, \qquad
# L_{t,b} = \log \max\Big(\sum_k M_{k,b} P_{t,k},\; \varepsilon\Big),$$
#
# with a window of $N = 256$ samples and a step of $s$. The matrix $M$ gathers
# frequencies in 40 bands, of equal width on the mel scale, on which tones that
# sound equally far apart are so: $\mathrm{mel}(f) = 1127 \ln (1 + f / 700)$.
# The logarithm is there since loudness is heard so. $\varepsilon$ lies 60 dB
# below the loudest value; and each sound is shifted and scaled to mean 0 and
# deviation 1, so that it does not matter how loud it is.
#
# `keras.layers.MelSpectrogram` computes the sums. Its decibels are cut off
# below the loudest of the whole batch; so we take the logarithm ourselves, for
# each sound alone.

# %% alt="The waveform of a message in noise, and its log-mel frames"
log_mel = LogMel(morse_code.RATE, run.step)
(frames,) = log_mel([example.samples])
assert frames.shape == (1 + len(example.samples) // run.step, log_mel.bins)
(louder,) = log_mel([example.samples * 3])
np.testing.assert_allclose(louder, frames, atol=1e-3)
print(f"{frames.shape[0]} frames of {frames.shape[1]} bands")
plot_sound(example, frames, log_mel)

# %% [markdown]
# ## What is learned from, and what is tested
#
# Morse messages, made once; or, with `DATA=`, recordings of all speakers but
# one. These are joined to numbers of one to three digits, and changed anew in
# every epoch: faster and higher or slower and deeper, brighter or duller, in
# noise, with parts of the spectrum hidden. Few speakers are not enough to
# learn what all voices have in common; this makes more of them.

# %%
started = time.monotonic()
try:
    folds = (
        speech_data.digit_folds(run, recordings, log_mel)
        if recordings
        else [speech_data.morse_fold(run, log_mel)]
    )
except ValueError as error:
    program_settings.explain_and_leave("speech", error)
fold = folds[0]
print(f"{len(fold.tests)} tests; {time.monotonic() - started:.0f} s")
print("such as:", *[repr(sound.text) for sound in fold.tests[:5]])

# %% [markdown]
# ## The model
#
# The encoder compares every frame with every other, so a quarter as many
# frames cost a sixteenth. Two convolutions of 3 x 3, each with a stride of
# two in time and frequency, make one vector of four frames (Dong et al. 2018,
# <https://ieeexplore.ieee.org/document/8462506>):
#
# $$S = \lceil \lceil F / 2 \rceil / 2 \rceil.$$
#
# A third convolution, over 15 of these vectors, lets each one see about a
# second around it, the time of a character (Mohamed et al. 2019,
# <https://arxiv.org/abs/1904.11660>). Without it the encoder has to find out
# by attention what stands beside what, and learns far more slowly. For the
# same reason its attention also sees how far apart two vectors are, by a
# learned number for each distance and head (Raffel et al. 2020, sec. 2.1,
# <https://arxiv.org/abs/1910.10683>).
#
# All that comes after them is the Transformer of
# [A Transformer learns to translate](../translate/index.md): its encoder reads
# these vectors, its decoder writes characters. `SpeechTransformer` is a
# subclass that has its own `embed_source`; blocks, cache and searches are as
# they were.


# %%
def make_model(fold):
    """Returns the model, not trained."""
    heads = max(1, run.width // 32)
    return SpeechTransformer(
        Letters(fold.alphabet).size,
        bands=log_mel.bins,
        channels=run.channels,
        num_layers=run.layers,
        num_decoder_layers=run.decoder,
        num_heads=heads,
        hidden_dim=run.width,
        intermediate_dim=4 * run.width,
        dropout=run.dropout,
        normalize_first=True,
        pad_id=PAD,
        start_id=START,
        end_id=END,
        ctc=run.ctc,
        encoder_attention_position=T5Position(heads, 32, 64, name="distance"),
    )


model, table = make_model(fold), Letters(fold.alphabet)
print(f"{model.count_params():,} parameters")

# %% [markdown]
# Sounds of a batch are padded to one length; a last feature says of every
# frame whether it is one. Behind the end of a sound both convolutions see
# zeros, and no query sees a vector. So a sound has the same memory alone and
# with 45 frames of padding behind it:

# %%
length = len(frames)
alone, positions = model.encode(sound_batches.padded_frames([frames], length))
assert tuple(alone.shape) == (1, -(-length // 4), run.width)  # (B, S, D)
assert tuple(positions.shape) == (1, -(-length // 4))
wide = sound_batches.padded_frames([frames], length + 45)
assert wide.shape == (1, length + 45, log_mel.bins + 1)  # (B, F, bands + 1)
memory, _ = model.encode(wide)
furthest = np.abs(
    keras.ops.convert_to_numpy(memory)[:, : alone.shape[1]]
    - keras.ops.convert_to_numpy(alone)
).max()
print(f"{length} frames, {alone.shape[1]} vectors; difference {furthest:.1e}")
assert furthest < 1e-4

# %% [markdown]
# ## Two ways to spell
#
# The loss of the decoder is the cross-entropy of the next character, given the
# sound and all characters before it. Nothing says when a character was keyed:
# the attention of the decoder to the memory has to find that out,
#
# $$c_i = \sum_j \alpha_{ij} h_j, \qquad
# \alpha_{ij} = \mathrm{softmax}_j \left(
# \frac{q_i \cdot k_j}{\sqrt{H}} \right).$$
#
# It cannot learn where to listen before the memory says anything, and the
# memory learns nothing from a decoder that listens elsewhere. So they both wait
# for each other: this model alone gets through thousands of steps of that.
#
# Connectionist temporal classification (CTC, Graves et al. 2006,
# <https://www.cs.toronto.edu/~graves/icml_2006.pdf>) needs no decoder. Each
# vector writes one character, or a blank. Such a path $a$ is read by writing
# repeated characters once and leaving out the blanks. The text is as likely as
# all the paths together that are read as it, a sum that one pass over the
# vectors computes:
#
# $$P(y \mid h) = \sum_{a \,\to\, y} \; \prod_s
# \mathrm{softmax}(W h_s + b)_{a_s}.$$
#
# In training it is added to the loss, so that the encoder learns at once
# (Watanabe et al. 2017, <https://ieeexplore.ieee.org/document/8068205>):
#
# $$L = -\frac{1}{n} \sum_i \log p(y_i \mid y_{<i}, h)
# - \lambda\, \frac{1}{n} \log P(y \mid h), \qquad \lambda = 0.3.$$

# %%
A, B = fold.alphabet[-2:]
ids = {"-": PAD, A: table.encode(A)[0], B: table.encode(B)[0]}
path = f"{A}{A}-{A}--{B}"
assert table.decode(read_path([ids[c] for c in path])) == f"{A}{A}{B}"
print(f"{path} is read as {A}{A}{B}")

# All paths of three vectors that are read as the characters 1 and 2, by hand.
generator = np.random.default_rng(run.seed)
head = CTCHead(3)  # a blank, and two characters
vectors = generator.normal(size=(1, 3, 4)).astype("float32")
logits = keras.ops.convert_to_numpy(head(vectors))[0]
p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
paths = [
    path
    for path in itertools.product(range(3), repeat=3)
    if read_path(path) == [1, 2]
]
by_hand = sum(np.prod(p[range(3), path]) for path in paths)
found = head.log_probability(vectors, np.array([3]), np.array([[1, 2]]))
found = float(keras.ops.convert_to_numpy(found)[0])
print(f"{len(paths)} paths; P = {by_hand:.4f}, log P = {found:.4f}")
assert abs(np.log(by_hand) - found) < 1e-4

# %% [markdown]
# ## Training
#
# Short messages are easier. So the first epochs are of these alone, and longer
# ones come in one epoch after the other (after Amodei et al. 2015, sec. 3.3,
# <https://arxiv.org/abs/1512.02595>, who begin with them).
#
# A run that was killed goes on where it was; `FRESH=1` starts anew.


# %%
def train(fold):
    """Trains a model; returns a `Transcriber`, the log and the backup."""
    keras.utils.set_random_seed(run.seed)
    model = make_model(fold)
    batches = sound_batches.SoundBatches(
        fold.draw,
        table,
        run.batch,
        fold.lengths,
        fold.longest,
        hide=bool(recordings),
        seed=run.seed,
    )
    schedule = WarmupSchedule(run.width, run.warmup, run.scale)
    model.compile(
        optimizer=keras.optimizers.Adam(schedule, beta_2=0.98, clipnorm=1.0),
        loss=SequenceCrossentropy(label_smoothing=run.smoothing),
        metrics=[TokenAccuracy()],
    )
    log = TrainingLog(run.minutes, tokens_per_epoch=0)
    every = max(1, len(batches) // run.snapshots)
    try:
        backup = TrainingBackup(
            run.out / fold.name / "backup",
            [log, CheckpointAverage(num_checkpoints=5, save_freq=every)],
            save_freq=run.backup,
            data=batches,
            settings=program_settings.identity(
                run, "speaker", "epochs", "minutes", "backup"
            )
            | {"backend": keras.backend.backend()},
            resume=not run.fresh,
        )
    except ValueError as error:
        program_settings.explain_and_leave(
            "speech", f"{error}. FRESH=1 starts anew."
        )
    model.fit(
        batches,
        epochs=run.epochs,
        shuffle=False,  # the dataset does it
        callbacks=[backup],
        verbose=2,
    )
    recogniser = Transcriber(model, log_mel, table, fold.lengths, fold.longest)
    return recogniser, log, backup


# %% [markdown]
# ## Listening to what it never heard
#
# The character error rate is the number of characters that must be inserted,
# deleted or replaced to mend what was written, over the number of characters
# that were sent. It is an edit distance (Levenshtein 1966):
#
# $$d_{i,j} = \min\big(d_{i-1,j} + 1,\; d_{i,j-1} + 1,\;
# d_{i-1,j-1} + [a_i \ne b_j]\big).$$
#
# Decoder and encoder both say how likely a text is, and they go wrong in
# different ways. The encoder writes each character without looking at the
# others; the decoder may lose its place and go on elsewhere. So the four best
# texts of a beam search and the one that the encoder spells are scored by both,
# and the best sum is taken (Hori et al. 2017, sec. 3.3,
# <https://aclanthology.org/P17-1048>).

# %%
results, backups = {}, []
for fold in folds:
    if fold.name:
        print(f"Without {fold.name}:")
    try:
        recogniser, log, backup = train(fold)
    except ValueError as error:
        program_settings.explain_and_leave("speech", error)
    backups.append(backup)
    wanted = [sound.text for sound in fold.tests]
    ways = recogniser.ways([sound.samples for sound in fold.tests], WAYS)
    found = ways["both"]
    right = [a == b for a, b in zip(found, wanted, strict=True)]
    rates = {way: character_error_rate(ways[way], wanted) for way in WAYS}
    results[fold.name or "morse"] = result = {
        "character_error_rate": rates,
        "right": float(np.mean(right)),
        "tests": len(wanted),
        "steps": len(log.losses),
        "minutes": log.seconds / 60,
    }
    recogniser.save(run.out / fold.name)
    for text, answer in list(zip(found, wanted, strict=True))[:6]:
        note = "" if text == answer else f"   (sent: {answer})"
        print(f"  {text}{note}")
    print(
        f"{result['steps']:,} steps in {result['minutes']:.1f} minutes; "
        f"{result['right']:.1%} of {len(wanted)} without an error\n"
        "  CER of "
        + ", ".join(f"{way} {rate:.2%}" for way, rate in rates.items())
    )
if recordings:
    shares = [result["right"] for result in results.values()]
    print(f"Digit accuracy, mean of {len(shares)}: {np.mean(shares):.1%}")
elif not run.quick:
    assert results["morse"]["character_error_rate"]["both"] <= 0.03

# %% alt="Both losses together over the steps, on a logarithmic scale"
figure = Figure(figsize=(9, 3.2), layout="constrained")
panel = figure.subplots()
window = max(1, len(log.losses) // 100)
smooth = np.convolve(log.losses, np.ones(window) / window, "valid")
panel.semilogy(np.arange(len(smooth)) + window, smooth)
panel.set(xlabel="step", ylabel="both losses (nats a character)")
figure.savefig(run.out / "training.png", dpi=150)
figure

# %% [markdown]
# ## Where it listened
#
# `return_weights=True` gives the weights of the attention from the characters
# to the memory, for each layer and head. A character is not heard before the
# one in front of it, so its alignment should be monotonic: the places listened
# to should only go forward. Nothing in the model says so. For each head of
# the last layer: how often the centre of the weights does not move back, and
# how much of the weight lies where the character was made, 0.15 s around it
# included.

# %%
sounds = fold.tests[: run.batch]
if recordings:
    sounds = spoken_digits.draw_numbers(
        fold.tests, run.batch, run.seed, change=False
    )
sound_frames = log_mel([sound.samples for sound in sounds])
heard = recogniser.heard(sound_frames)
forward, within = [], []
for sound, (text, weights) in zip(sounds, heard, strict=True):
    if text != sound.text:
        continue  # Which character would belong to which?
    layer = weights[-1, :, : len(text)]  # (N, characters, S), without the end
    times = recogniser.seconds(np.arange(layer.shape[-1]))
    np.testing.assert_allclose(layer.sum(-1), 1, atol=1e-3)
    forward.append([alignment_measures.share_forward(w) for w in layer])
    within.append(
        [
            alignment_measures.share_inside(w, times, sound.spans, 0.15)
            for w in layer
        ]
    )
print(f"{len(forward)} of {len(sounds)} sounds without an error")
if forward:
    forward, within = np.mean(forward, 0), np.mean(within, 0)
    for head, both in enumerate(zip(forward, within, strict=True)):
        print("head {}: {:.1%} forward, {:.1%} inside".format(head, *both))
    best = int((forward * within).argmax())
    results["alignment"] = {
        "forward": forward.tolist(),
        "inside": within.tolist(),
    }
    if not (run.quick or recordings):
        assert forward[best] > 0.95 and within[best] > 0.7
else:
    best = 0

# %% alt="A message, its frames, and where each character of it was heard"
sizes = [
    len(sound.text) * (sound.text == text)
    for sound, (text, _) in zip(sounds, heard, strict=True)
]
chosen = int(np.argmax(sizes))
figure = plot_alignment(
    sounds[chosen],
    sound_frames[chosen],
    log_mel,
    heard[chosen][1][-1, best],
    title=f"{heard[chosen][0]}: head {best} of the last layer",
)
figure.savefig(run.out / "alignment.png", dpi=150)
figure

# %% [markdown]
# ## Speed and noise
#
# How fast and how noisy may a message be? The same model, on texts that were
# not trained on, at three speeds and from -12 to 6 dB. It learned from -4 dB
# on.

# %% alt="Curves: character error rate against noise, at three speeds"
SPEEDS = (12, 30) if run.quick else (12, 20, 30)
RATIOS = (-6, 0) if run.quick else (-12, -9, -6, -3, 0, 6)
COUNT = 2 if run.quick else 24
figure = Figure(figsize=(9, 3.6), layout="constrained")
panel = figure.subplots()
if not recordings:
    cells = [
        morse_messages.draw_messages(
            COUNT, run.longest, (run.seed, speed), True, float(ratio), speed
        )
        for speed in SPEEDS
        for ratio in RATIOS
    ]
    found = recogniser([sound.samples for cell in cells for sound in cell])
    rates = [
        character_error_rate(
            found[COUNT * number : COUNT * (number + 1)],
            [sound.text for sound in cell],
        )
        for number, cell in enumerate(cells)
    ]
    rates = np.reshape(rates, (len(SPEEDS), len(RATIOS)))
    for speed, row in zip(SPEEDS, rates, strict=True):
        print(f"{speed} words a minute:", *[f"{rate:6.1%}" for rate in row])
        panel.plot(RATIOS, 100 * row, "o-", label=f"{speed} words a minute")
    results["noise"] = {"ratios": RATIOS, "rates": rates.tolist()}
    panel.set(xlabel="SNR in dB", ylabel="CER in %")
else:
    panel.bar([fold.name for fold in folds], [100 * x for x in shares])
    panel.set(ylabel="digits right, in %", ylim=(0, 100))
if not recordings:
    panel.legend()
figure.savefig(run.out / "conditions.png", dpi=150)
figure

# %% [markdown]
# ## Keeping it
#
# Model, alphabet and the settings of the frames lie in one folder, and load on
# any backend. What it heard last is there as a wav file: listen to it. Read
# back from that file it says the same.

# %%
sound_files.write_wav(run.out / "example.wav", sounds[chosen].samples)
again = Transcriber.load(run.out / fold.name)
text = again([sound_files.read_wav(run.out / "example.wav")])[0]
print(f"example.wav: {text!r} (sent: {sounds[chosen].text!r})")
(run.out / "results.json").write_text(
    json.dumps(
        {
            "backend": keras.backend.backend(),
            "parameters": model.count_params(),
            "settings": {n: str(v) for n, v in run._asdict().items()},
            **results,
        },
        indent=1,
    ),
    encoding="utf-8",
)
for backup in backups:
    backup.remove()
program = ".venv/bin/python tutorials/speech.py"
print(f"""
The model is in {run.out / fold.name}; look at {run.out / "alignment.png"}.

What to try next:
  MODEL={run.out / fold.name} INPUT={run.out / "example.wav"} {program}
  DATA=FOLDER {program}     learn from recordings of digits
  KERAS_BACKEND=torch {program}""")

# %% [markdown]
# ## Exercises
#
# **1.** Fill in. At 24 words a minute a dot takes ___ seconds. The letter C
# (-.-.) is ___ dots long, and takes ___ seconds. With a step of 128 samples at
# 8,000 a second there are ___ frames a second, and ___ vectors of the memory;
# a dot is ___ vectors long.
#
# <details markdown>
# <summary>Answer</summary>
#
# 0.05 s. 3 + 1 + 1 + 1 + 3 + 1 + 1 = 11 dots, 0.55 s. 62.5 frames and 15.6
# vectors a second, so a dot is 0.78 vectors long: dots and gaps are not told
# apart by different vectors, but by the channels of one, which has seen seven
# frames.
#
# </details>
#
# **2.** Fill in. The path `-LL-EE-T-TTE--R` is read as ___. A vector takes 64
# ms, so in 0.4 s there are ___ whole ones; LETTER needs at least ___. At which
# speed would its message be too fast for `CTCHead`?
#
# <details markdown>
# <summary>Answer</summary>
#
# LETTER: the blank between the two T keeps them apart. 6 vectors; LETTER needs
# 7, one of them a blank. It is 39 dots long, with gaps of 3 between characters.
# 7 vectors take 0.448 s, in which a dot takes 11.5 ms: at 104 words a minute,
# with silence in front and behind left out. A step of 128 samples, 16 ms, is
# too long well before that.
#
# </details>
#
# **3.** The noise is as strong as the tone, and yet the tone is easily seen in
# the frames. Why? By how many decibels does it stand above the noise in a band
# that is 80 Hz wide?
#
# <details markdown>
# <summary>Answer</summary>
#
# The noise is spread over 4,000 Hz, and the tone lies in one band. A band of
# 80 Hz holds a fiftieth of the noise, and all of the tone:
# $10 \log_{10} 50 = 17$ dB.
#
# </details>
#
# **4.** What does the model write at 40 words a minute, faster than any message
# it learned from? Make such messages with `morse_messages.draw_messages(...,
# wpm=40)`. And what would help?
#
# <details markdown>
# <summary>Answer</summary>
#
# A dot of 30 ms is shorter than two steps of 16 ms, and no message of the
# training was as fast: expect more errors, and measure them. What should help
# is to learn from faster messages (`SPEEDS` in `morse_messages.py`), and a
# smaller step, `STEP=80`.
#
# </details>
