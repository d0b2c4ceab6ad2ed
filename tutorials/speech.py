# %% [markdown]
# # Speech recognition
#
# In this tutorial you train a Transformer that transcribes messages in Morse
# code. The figure shows a message as a waveform, as log-mel frames, and where
# the model attends when it writes each character:
#
# ![A waveform, its log-mel frames, and attention weights that follow the
# characters in time](speech-2.png)
#
# **You will learn** how a waveform becomes frames, how convolutions shorten
# them, how connectionist temporal classification (CTC) trains the encoder
# without times of characters, and how attention aligns characters with time.
#
# **Prerequisites**: [A Transformer learns to translate](../translate/index.md)
# and [Decoding](../decoding/index.md). **Time**: about 6 minutes on one CPU
# core.
#
# **Published result**: the Speech-Transformer (Dong et al. 2018,
# <https://ieeexplore.ieee.org/document/8462506>) reaches a word error rate of
# 10.9 % on read newspaper sentences (WSJ). Morse code has no voices and
# no accents, so the error rates below are not comparable. On recordings of
# spoken digits by a speaker it has not heard, a model of this library
# [recognizes 83.3 %](../../results/speech.md).

# %% [markdown]
# ## Setup
#
# In a checkout, `make .venv/made` installs everything. Elsewhere, including
# Colab and Kaggle, run `pip install "keras-attn[examples,jax]"`; `torch` and
# `tensorflow` are the other backends. Keras reads its backend from the
# environment when it is first imported.

# %%
import os

os.environ.setdefault("KERAS_BACKEND", "jax")  # or "torch", "tensorflow"
QUICK = os.environ.get("QUICK", "0") != "0"  # a few steps, to see that it runs

import itertools

import keras
import matplotlib.pyplot as plt
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from keras_attn import datasets, explain, text, training
from keras_attn.layers import LogMelSpectrogram, T5Position
from keras_attn.models import SpeechTransformer

keras.utils.set_random_seed(1)
to_numpy = keras.ops.convert_to_numpy
print(f"Keras {keras.__version__} on {keras.backend.backend()}")

# %% [markdown]
# ## Messages
#
# Morse code switches a tone on and off. A dash has the length of three dots,
# and so has the gap between two letters. The word PARIS with the gap after it
# has 50 dots; at 20 words per minute (wpm), a dot takes $60 / (20 \cdot 50) =
# 0.06$ seconds. `make_morse_audio` makes random messages of letters, digits and
# English words, with random speed and pitch, in white noise. The power of a
# tone with the amplitude A is $A^2 / 2$, that of the noise is its variance
# $\sigma^2$. The signal-to-noise ratio in decibels is $\mathrm{SNR} = 10
# \log_{10}(A^2 / (2 \sigma^2))$; at 0 dB both are equal. No text of the test
# set is in the training data.

# %%
counts = {"train": 48 if QUICK else 6000, "test": 16 if QUICK else 100}
train, test = (
    datasets.make_morse_audio(
        n, seed=1, split=split, max_seconds=3.0, wpm=(16, 30), snr=(0, 12)
    )
    for split, n in counts.items()
)
assert not {m.text for m in train} & {m.text for m in test}
for message in train[:2]:
    print(f"{message.text!r}: {message.wpm:.0f} wpm, {message.snr:.0f} dB")

# %% [markdown]
# ## Log-mel frames
#
# The spectrum of a short window shows its frequencies. With R samples x per
# second, a window g of J samples and a step of r, that of frame i at f Hz is
#
# $$X_i(f) = \sum_{j=0}^{J-1} g_j\, x_{i r + j - J/2}\,
# e^{-2 \pi \sqrt{-1}\, f j / R}$$
#
# A matrix sums the powers $|X_i(f)|^2$ in 40 bands above 20 Hz, whose width is
# equal on the mel scale, $\mathrm{mel}(f) = 1127 \ln(1 + f / 700)$.
# We take the logarithm, not more than 60 dB below the maximum, and normalize
# each message to mean 0 and standard deviation 1, so that volume has no effect.

# %%
RATE, STEP, WINDOW, BANDS = 8000, 128, 256, 40
layer = LogMelSpectrogram(
    RATE, sequence_stride=STEP, fft_length=WINDOW, num_mel_bins=BANDS
)


def mel(f):
    """Returns frequencies in Hz on the mel scale."""
    return 1127 * np.log(1 + f / 700)


# %%
def log_mel(samples):
    """Returns the frames (F, BANDS) of one message, in NumPy."""
    x = np.pad(samples.astype("float64"), WINDOW // 2)
    g = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)
    windows = sliding_window_view(x, WINDOW)[::STEP] * g
    power = np.abs(np.fft.rfft(windows)) ** 2
    f = mel(np.linspace(0, RATE / 2, WINDOW // 2 + 1))[:, None]
    edges = np.linspace(mel(20), mel(RATE / 2), BANDS + 2)
    low, center, high = edges[:-2], edges[1:-1], edges[2:]
    rising, falling = (f - low) / (center - low), (high - f) / (high - center)
    bands = np.maximum(0, np.minimum(rising, falling))  # triangles
    level = power @ bands
    level = np.log(np.maximum(level, 1e-6 * level.max()))
    return (level - level.mean()) / level.std()


# %%
samples = train[0].samples
frames = to_numpy(layer(samples[None]))[0]
np.testing.assert_allclose(frames, log_mel(samples), atol=2e-3)
louder = to_numpy(layer(2 * samples[None].astype("float32")))[0]
np.testing.assert_allclose(louder, frames, atol=2e-3)
F = len(frames)
assert F == 1 + len(samples) // STEP
print(f"{len(samples):,} samples, {F} frames of {BANDS} bands: NumPy agrees")

# %% [markdown]
# ## Batches
#
# A character is a token. The frames are computed once; messages of similar
# length share a batch, and frames of zeros are padding. The CTC head needs a
# token for "no character": the blank, which is the padding token here.

# %%
PAD, START, END = range(3)
CHARACTERS = " 0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
V = 3 + len(CHARACTERS)
T = 1 + max(len(message.text) for message in train)


def decode(ids):
    """Returns the text of a row of ids."""
    return "".join(CHARACTERS[i - 3] for i in ids if i >= 3)


def encode(message):
    """Returns the ids of a text, with an end."""
    return [*(3 + CHARACTERS.index(c) for c in message.text), END]


def pad(rows, length, dtype="float32"):
    """Returns rows of different lengths as one array, with zeros after them."""
    return keras.utils.pad_sequences(rows, length, dtype, padding="post")


# %%
def frames_of(messages, size=50, samples=RATE * 3 + 1):
    """Returns the frames of each message, computed in chunks of one shape."""
    found, stop = [], len(messages) - 1
    for i in range(0, len(messages), size):
        part = [messages[min(j, stop)] for j in range(i, i + size)]
        lengths = np.array([len(message.samples) for message in part])
        rows = pad([message.samples for message in part], samples)
        frames = to_numpy(layer(rows, lengths=lengths))
        found += [
            row[: 1 + n // STEP] for row, n in zip(frames, lengths, strict=True)
        ]
    return found[: len(messages)]


def make_batch(records, length, rng):
    """Returns ((frames, target), labels) of pairs (frames, ids)."""
    frames, ids = zip(*records, strict=True)
    labels = pad(ids, T, "int32")  # PAD = 0
    target = np.roll(labels, 1, axis=1)
    target[:, 0] = START
    return (pad(frames, length), target), labels


# %%
train_frames = frames_of(train)
batches = training.BucketedDataset(
    [*zip(train_frames, map(encode, train), strict=True)],
    [*map(len, train_frames)],
    make_batch,
    batch_size=16,
    num_buckets=1 if QUICK else 2,
    seed=1,
)
(frames, target), labels = batches[0]
B, F, _ = frames.shape
assert frames.shape[2] == BANDS and target.shape == labels.shape == (B, T)
print(f"{len(batches)} batches; frames {frames.shape}, labels {labels.shape}")

# %% [markdown]
# ## Model
#
# The cost of attention grows with the square of the length. Two convolutions of
# 3 x 3 with a stride of 2 in time and frequency therefore make one vector of
# four frames, S = ceil(F / 4) in all. A third convolution, over 15 of these
# vectors, adds about a second of context to each, roughly the duration of a
# character (Mohamed et al. 2019, <https://arxiv.org/abs/1904.11660>):
#
# $$h = \mathrm{Conv}_2(\mathrm{Conv}_1(\mathrm{frames}))\, W + b, \qquad
# h \leftarrow h + \mathrm{Conv}_3(\mathrm{LN}(h))$$
#
# Each convolution is followed by a ReLU. The vectors h, with sinusoidal and
# relative positions ([Spelling correction](../spelling/index.md#model)), are
# the input of an encoder-decoder Transformer.
#
# ![Frames pass two convolutions and the encoder to the memory, which a CTC head
# and a decoder read; both have a loss](../../diagrams/speech_model.svg)

# %%
D, N = 128, 4
model = SpeechTransformer(
    V,
    num_mel_bins=BANDS,
    filters=16,
    ctc_weight=0.3,
    num_layers=2,
    num_decoder_layers=1,
    num_heads=N,
    hidden_dim=D,
    intermediate_dim=4 * D,
    dropout=0.05,
    encoder_attention_position=T5Position(N, max_distance=64),
    pad_id=PAD,
    start_id=START,
    end_id=END,
)
assert model((frames, target)).shape == (B, T, V)


# %%
def strided(x, kernel, bias):
    """Returns a 3 x 3 convolution with stride 2 of x (F, BANDS, C)."""
    x = np.pad(x, ((1, 1), (1, 1), (0, 0)))
    patches = sliding_window_view(x, (3, 3), axis=(0, 1))[::2, ::2]
    y = np.einsum("fmcij,ijck->fmk", patches, kernel) + bias
    return np.maximum(y, 0)


# %%
w = {"/".join(v.path.split("/")[-2:]): to_numpy(v) for v in model.weights}
n = int(frames[0].any(-1).sum())  # frames of the first message
x = frames[0, :n, :, None]  # (n, BANDS, 1)
for name in "strided_0", "strided_1":
    x = strided(x, w[f"{name}/kernel"], w[f"{name}/bias"])
x = x.reshape(len(x), -1) @ w["projection/kernel"] + w["projection/bias"]
variance = x.var(-1, keepdims=True)
y = (x - x.mean(-1, keepdims=True)) / np.sqrt(variance + model.epsilon)
y = y * w["context_norm/gamma"] + w["context_norm/beta"]
patches = sliding_window_view(np.pad(y, ((7, 7), (0, 0))), 15, axis=0)
y = np.einsum("sdi,idk->sk", patches, w["context/kernel"])
x = x + np.maximum(y + w["context/bias"], 0)

found, positions = model.embed_source(frames)
np.testing.assert_allclose(to_numpy(found)[0, : len(x)], x, atol=1e-3)
S = found.shape[1]
assert S == -(-F // 4) and found.shape == (B, S, D)
print(f"{model.count_params():,} parameters")
print(f"{F} frames become {S} vectors; NumPy agrees")

# %% [markdown]
# ## CTC
#
# The decoder is trained with the cross-entropy of the next character. It has to
# find by attention when each character was sent, and it can only do that once
# the encoder describes the sound. CTC (Graves et al. 2006,
# <https://www.cs.toronto.edu/~graves/icml_2006.pdf>) trains the encoder
# directly: every vector predicts one character or the blank –. Such a *path* is
# read by merging repeated characters, then removing blanks.
#
# ![The path s, s, blank, o, o, blank, s, blank is merged to s, blank, o, blank,
# s, blank, and read as s, o, s](../../diagrams/ctc_paths.svg)


# %%
def read_path(path):
    """Merges repetitions, then removes blanks (id 0)."""
    return [i for i, _ in itertools.groupby(path) if i != PAD]


for path in "AA–B", "A–AB":
    ids = [PAD if c == "–" else ord(c) for c in path]
    print(path, "is read as", "".join(map(chr, read_path(ids))))

# %% [markdown]
# The probability of a text y is the sum over all paths a that are
# read as y. With the encoder's output $m_s$,
#
# $$p_\mathrm{CTC}(y) = \sum_{a \to y} \prod_{s=0}^{S-1} p_s(a_s), \qquad
# p_s = \mathrm{softmax}(m_s W' + b')$$
#
# There are exponentially many paths, but they share prefixes. Let $\ell$ be the
# text with a blank before, between and after its characters, and $\alpha_s(j)$
# the probability of all paths of the vectors 0 to s that end at $\ell_j$. Then
#
# $$\alpha_s(j) = p_s(\ell_j)\, \big(\alpha_{s-1}(j) + \alpha_{s-1}(j-1) +
# [\ell_j \ne \ell_{j-2}]\, \alpha_{s-1}(j-2)\big)$$
#
# since a path stays, takes the next symbol, or skips a blank between different
# characters. The last two entries of $\alpha_{S-1}$ sum to $p_\mathrm{CTC}(y)$.
# We compare this with the sum over all paths, and with `ctc_score` of the
# model, which does the same with logarithms (`keras.ops.ctc_loss`).


# %%
def ctc_probability(p, y):
    """Returns the probability of a text y from p (S, V)."""
    ell = [PAD, *itertools.chain(*((i, PAD) for i in y))]
    alpha = np.zeros(len(ell))
    alpha[:2] = p[0, ell[:2]]
    for p_s in p[1:]:
        stay, step = alpha, np.append(0, alpha[:-1])
        skip = np.append([0, 0], alpha[:-2])
        skip[2:] *= np.not_equal(ell[2:], ell[:-2])
        alpha = p_s[ell] * (stay + step + skip)
    return alpha[-2:].sum()


# %%
p = np.random.default_rng(1).dirichlet(np.ones(3), size=5)  # (S, V)
every_path = [*itertools.product(range(3), repeat=5)]
for y in [1, 2], [1, 1]:
    paths = [path for path in every_path if read_path(path) == y]
    total = sum(np.prod(p[range(5), path]) for path in paths)
    np.testing.assert_allclose(ctc_probability(p, y), total)
    print(f"text {y}: {len(paths)} paths of 3^5, p = {total:.4f}")

memory, positions = model.encode(frames)
scores = to_numpy(model.ctc_score(memory, positions, labels))
logits, lengths = model.ctc_logits(memory, positions)
p, lengths = to_numpy(keras.ops.softmax(logits)), to_numpy(lengths)
for i in range(3):
    y = [token for token in labels[i].tolist() if token > END]
    by_hand = np.log(ctc_probability(p[i, : lengths[i]].astype("float64"), y))
    np.testing.assert_allclose(scores[i], by_hand, rtol=1e-3)
print(f"{decode(labels[i])!r}: log p = {by_hand:.1f} nats")

# %% [markdown]
# ## Training
#
# The loss per character is the sum of both, for a text of $|y|$ characters:
#
# $$\mathrm{loss} = -\frac{1}{|y| + 1} \sum_{t=0}^{|y|} \log p(y_t \mid y_{<t}, m)
# \;-\; \lambda\, \frac{1}{|y|} \log p_\mathrm{CTC}(y), \qquad \lambda = 0.3$$
#
# The decoder also predicts the end token. `SpeechTransformer` adds the second
# term. Watanabe et al. 2017 (<https://ieeexplore.ieee.org/document/8068205>)
# multiply the first one by $1 - \lambda$.

# %%
epochs = 1 if QUICK else 5
steps = epochs * len(batches)
schedule = keras.optimizers.schedules.CosineDecay(
    0.0, steps, warmup_target=1.5e-3, warmup_steps=max(1, steps // 8)
)
model.compile(
    keras.optimizers.Adam(schedule, beta_2=0.98, clipnorm=1.0),
    training.SequenceCrossentropy(),
)
progress = training.TrainingProgress()
history = model.fit(
    batches, epochs=epochs, shuffle=False, callbacks=[progress], verbose=0
)

# %% tags=["hide-input"] alt="The loss falls quickly to about 4 nats per character, stays there for about 200 batches, then falls to about 0.1"
figure = explain.plot_training(
    progress.losses, ylabel="loss (nats per character)"
)
figure.set_figheight(2.4)
figure

# %% [markdown]
# ## Transcription
#
# The CTC head reads the most probable token of each vector, whatever the others
# are. The decoder predicts each character from those before it, and may skip or
# repeat a part of the message. `transcribe` scores four texts of a beam search
# and the text of the CTC head by the sum of both log-probabilities, and returns
# the best one (after Hori et al. 2017, <https://arxiv.org/abs/1706.02737>).
#
# The character error rate (CER) is the edit distance between texts and
# references, divided by the number of characters of the references ([Spelling
# correction](../spelling/index.md) computes the edit distance by hand).


# %%
def transcribe(messages):
    """Returns the texts of decoder, encoder (CTC) and both."""
    decoder, encoder, both = [], [], []
    rows = pad(frames_of(messages), 192)
    for i in range(0, len(rows), 20):
        part = rows[np.minimum(np.arange(i, i + 20), len(rows) - 1)]
        found = model.generate(part, T, batch_size=20, verbose=0).tokens[:, 0]
        decoder += map(decode, found)
        logits, lengths = model.ctc_logits(*model.encode(part))
        paths = to_numpy(logits).argmax(-1)
        encoder += [
            decode(read_path(path[:n]))
            for path, n in zip(paths.tolist(), to_numpy(lengths), strict=True)
        ]
        both += map(decode, model.transcribe(part, T).tokens[:, 0])
    return [x[: len(messages)] for x in (decoder, encoder, both)]


# %%
references = [message.text for message in test]
ways = dict(zip(("decoder", "encoder", "both"), transcribe(test), strict=True))
for name, row in ("sent", references), *ways.items():
    print(f"{name:8}", *(f"{found:7}" for found in row[:8]))
rates = {way: text.error_rate(ways[way], references) for way in ways}
print("CER:", *(f"{way} {rate:.1%}" for way, rate in rates.items()), sep="  ")
exact = np.mean([a == b for a, b in zip(ways["both"], references, strict=True)])
print(f"{exact:.1%} of {len(test)} messages without an error")
if not QUICK:
    assert rates["both"] < 0.2
    assert rates["both"] <= min(rates["decoder"], rates["encoder"]) + 0.02

# %% [markdown]
# ## Alignment
#
# The training does not use the times of the characters, which are in `spans`.
# For messages that the decoder transcribes without an error, we measure for
# each head of the decoder which proportion of the weight lies within the span
# of its character, plus 0.15 s on both sides, and how often the mean time of
# the weights moves forward from character to character.

# %%
part = test[:20]
decoded = model.generate(
    pad(frames_of(part), 192), T, return_weights=True, verbose=0
)
times = 4 * STEP / RATE * np.arange(decoded.weights.shape[-1])
inside, forward, correct = [], [], []
for i, message in enumerate(part):
    n = len(message.text)
    weights = decoded.weights[i, 0, -1, :, :n]  # (N, characters, S)
    if decode(decoded.tokens[i, 0]) != message.text:
        continue
    correct.append(i)
    start, end = message.spans.T[..., None]
    near = (times >= start - 0.15) & (times <= end + 0.15)
    inside.append((weights * near).sum(-1).mean(-1))
    moves = np.diff(weights @ times, axis=-1) >= 0
    forward.append(moves.mean(-1) if n > 1 else np.ones(N))

# %%
best = 0
if correct:
    inside, forward = np.mean(inside, 0), np.mean(forward, 0)
    best = int(inside.argmax())
    print("weight inside, each head:", *(f"{x:4.0%}" for x in inside))
    print("steps forward, each head:", *(f"{x:4.0%}" for x in forward))
print(f"measured on {len(correct)} of {len(part)} messages")
if not QUICK:
    assert inside[best] > 0.5 and forward[best] > 0.8

# %% tags=["hide-input"] alt="Waveform, log-mel frames and attention of one message: most weight of T, W and J lies in or near the boxes of their times, that of V and of the space within the time of J"
i = max(correct or [0], key=lambda i: len(part[i].text))
message, n = part[i], len(part[i].text)
image = frames_of([message])[0].T
stop = image.shape[1] * STEP / RATE
weights = decoded.weights[i, 0, -1, best, :n]
figure, axes = plt.subplots(
    3, 1, figsize=(10, 4.4), sharex=True, layout="constrained"
)
seconds = np.arange(len(message.samples)) / RATE
axes[0].plot(seconds, message.samples / 32768, linewidth=0.3)
axes[0].set(ylabel="waveform", title=f"{message.text}, {message.snr:.0f} dB")
extent = 0, stop, 0, BANDS
axes[1].imshow(
    image, cmap="cividis", origin="lower", aspect="auto", extent=extent
)
axes[1].set(ylabel="mel band")
half = 2 * STEP / RATE  # half of the time of a vector
axes[2].imshow(
    weights,
    cmap="cividis",
    aspect="auto",
    extent=(-half, times[-1] + half, n - 0.5, -0.5),
)
for row, (start, end) in enumerate(message.spans):
    axes[2].add_patch(
        plt.Rectangle((start, row - 0.5), end - start, 1, fill=False, ec="C1")
    )
axes[2].set_yticks(range(n), [c if c != " " else "␣" for c in message.text])
axes[2].set(xlabel="seconds", ylabel="written character", xlim=(0, stop))
plt.show()

# %% [markdown]
# The orange boxes show when each character was sent. In this run, most of the
# weight of T, W and J lies in or near their boxes, but that of V and of the
# space within the time of J.
#
# ## Speed and noise
#
# The model was trained with at least 0 dB. We measure it at two speeds, from
# -9 dB to 9 dB.

# %%
ratios = (0, 9) if QUICK else (-9, -6, -3, 0, 3, 9)
speeds = (20,) if QUICK else (18, 28)
curves = {speed: [] for speed in speeds}
for speed, ratio in itertools.product(speeds, ratios):
    part = datasets.make_morse_audio(
        20, seed=2, split="test", max_seconds=3.0, wpm=speed, snr=ratio
    )
    sent = [message.text for message in part]
    curves[speed].append(text.error_rate(transcribe(part)[2], sent))
if not QUICK:
    assert all(rates[0] > rates[-1] + 0.2 for rates in curves.values())

# %% tags=["hide-input"] alt="Two curves of the character error rate over the signal-to-noise ratio, which fall as the noise gets weaker"
figure, axis = plt.subplots(figsize=(6, 2.6), layout="constrained")
for speed, rates in curves.items():
    axis.plot(ratios, rates, "o-", label=f"{speed} words per minute")
axis.set(xlabel="SNR (dB)", ylabel="CER", ylim=(0, None))
axis.legend()
plt.show()

# %% [markdown]
# [`examples/transcribe.py`](../../install.md#other-tasks) trains on your own
# recordings, with augmentation, and transcribes WAV files.
#
# ## Summary
#
# - Log-mel frames are spectra in bands; convolutions shorten them fourfold.
# - CTC sums over all paths with a recursion, and needs no times.
# - The decoder and the CTC head of the encoder are scored together.
# - Cross-attention aligns characters with time, without times in training.
#
# ## Exercises
#
# **1.** Fill in the gaps. At 24 words per minute, a dot takes ... seconds. The
# letter C (-.-.) has ... dots. With a step of 128 samples at 8,000 Hz there are
# ... frames and ... vectors per second; a dot has ... vectors.
#
# <details markdown>
# <summary>Answer</summary>
#
# 0.05 s; 3 + 1 + 1 + 1 + 3 + 1 + 1 = 11 dots; 62.5 frames and 15.6 vectors, so
# a dot has 0.78 vectors. Dots and gaps are distinguished by the features of one
# vector, which depends on seven frames.
#
# </details>
#
# **2.** The path `–LL–EE–T–TTE––R` is read as .... How many vectors does LETTER
# need at least?
#
# <details markdown>
# <summary>Answer</summary>
#
# LETTER; the blank between both T keeps them apart. It needs 7 vectors: six
# letters and this blank.
#
# ```python
# print(len(read_path([1, 2, 3, 0, 3, 2, 4])))
# ```
#
# </details>
#
# **3.** Train with `ctc_weight=0.0`. What do you expect of the decoder's loss?
#
# <details markdown>
# <summary>Answer</summary>
#
# The attention cannot find a character in vectors that do not describe it, and
# the vectors get gradients only from where the attention is. Expect many more
# steps before the token accuracy rises.
#
# </details>
#
# **Next**: [Extractive question answering](../answers/index.md) finds answers
# in a text.
