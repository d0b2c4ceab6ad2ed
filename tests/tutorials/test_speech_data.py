"""Data of the speech tutorial: Morse code, WAV files, augmentation, batches."""

import doctest
import functools
import io
import tarfile
import wave

import alignment_measures
import edit_distance
import error_rate
import letters
import morse_code
import morse_messages
import numpy as np
import phrase_grammar
import pytest
import sound_batches
import sound_changes
import sound_files
import spoken_digits
from letters import Letters
from log_mel import LogMel
from sound_batches import SoundBatches

pytestmark = pytest.mark.one_backend

RATE = morse_code.RATE


def runs(mask):
    """Returns the lengths of the runs of True and of the gaps between them."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], mask, [0]])))
    return edges[1::2] - edges[::2], edges[2::2] - edges[1:-1:2]


def is_down(samples, frequency):
    """Returns where a tone is above half of its amplitude."""
    times = np.arange(len(samples)) / RATE
    turned = samples * np.exp(-2j * np.pi * frequency * times)
    period = round(RATE / frequency)
    height = np.abs(np.convolve(turned, np.ones(period) / period, "same"))
    return height > morse_code.AMPLITUDE / 4


@pytest.mark.parametrize(
    "module",
    [
        alignment_measures,
        error_rate,
        morse_code,
        sound_changes,
    ],
)
def test_docstring_examples(module):
    found = doctest.testmod(module)
    assert found.attempted and not found.failed


# Morse code.


def test_morse_code_covers_letters_and_digits_uniquely():
    assert len(morse_code.CODE) == 36 == len(set(morse_code.CODE.values()))
    assert set(morse_code.CODE) | {" "} == set(morse_messages.ALPHABET)
    assert all(set(code) <= set(".-") for code in morse_code.CODE.values())
    # SOS, and digits of five signs each.
    assert [morse_code.CODE[c] for c in "SOS"] == ["...", "---", "..."]
    assert {len(morse_code.CODE[c]) for c in "0123456789"} == {5}


def test_paris_lasts_fifty_dots():
    down, spans = morse_code.keying("PARIS PARIS")
    assert spans[6, 0] == 50  # start of the second word
    assert len(down) == 50 + 43
    assert spans[5].tolist() == [43, 50]  # the space
    for text, (start, stop) in zip("PARIS", spans[:5], strict=True):
        marks, gaps = runs(down[start:stop])
        signs = "".join("." if mark == 1 else "-" for mark in marks)
        assert set(marks) <= {1, 3} and set(gaps) <= {1}
        assert signs == morse_code.CODE[text]


@pytest.mark.parametrize("wpm", [12, 17.3, 30])
@pytest.mark.parametrize("frequency", [400, 700, 1000])
def test_durations_of_marks_and_gaps(wpm, frequency):
    text = "PARIS 59 E"
    samples, spans = morse_code.keyed_tone(text, wpm, frequency)
    assert samples.dtype == np.float32
    dot = 1.2 / wpm
    down, _ = morse_code.keying(text)
    assert len(samples) / RATE == pytest.approx(0.2 + dot * len(down), abs=2e-4)
    marks, gaps = runs(is_down(samples, frequency))
    wanted_marks, wanted_gaps = runs(down)
    np.testing.assert_allclose(marks / RATE, dot * wanted_marks, atol=2e-3)
    np.testing.assert_allclose(gaps / RATE, dot * wanted_gaps, atol=2e-3)
    assert spans[0, 0] == pytest.approx(0.1)
    assert spans[-1, 1] == pytest.approx(0.1 + dot * len(down))


def test_tone_has_its_frequency_and_no_clicks():
    samples, _ = morse_code.keyed_tone("TTTT", 20, 630)
    power = np.square(np.abs(np.fft.rfft(samples)))
    frequencies = np.fft.rfftfreq(len(samples), 1 / RATE)
    assert frequencies[power.argmax()] == pytest.approx(630, abs=5)
    far = np.abs(frequencies - 630) > 400
    assert power[far].sum() < 1e-4 * power.sum()


@pytest.mark.parametrize("snr", [-6.0, 0.0, 10.0])
def test_noise_matches_the_signal_to_noise_ratio(snr):
    generator = np.random.default_rng(0)
    messages = [
        morse_messages.make_message("TTTT", 12, 700, snr, generator)
        for _ in range(20)
    ]
    noise, tone = [], []
    for message in messages:
        # Noise only before the first mark, tone and noise in it.
        start, stop = (message.spans[0] * RATE).astype(int)
        noise.append(message.samples[: start - 100])
        tone.append(message.samples[start + 100 : stop - 100])
    power_of_noise = np.square(np.concatenate(noise)).mean()
    power_of_tone = np.square(np.concatenate(tone)).mean() - power_of_noise
    measured = 10 * np.log10(power_of_tone / power_of_noise)
    assert measured == pytest.approx(snr, abs=0.5)
    # White: equal power in each quarter of 0 to 4,000 Hz.
    spectrum = sum(
        np.square(np.abs(np.fft.rfft(part[:600], 600))) for part in noise
    )
    shares = spectrum[:300].reshape(4, 75).sum(1) / spectrum[:300].sum()
    np.testing.assert_allclose(shares, 0.25, atol=0.03)


@pytest.mark.parametrize("text", ["", " A", "A ", "A  B", "É", "A\nB", "?"])
def test_text_without_a_code_raises(text):
    with pytest.raises(ValueError, match="`text` must be words of letters"):
        morse_code.keying(text)


@pytest.mark.parametrize(
    "name, arguments",
    [
        ("wpm", {"wpm": 0}),
        ("frequency", {"frequency": 4000}),
        ("frequency", {"frequency": 0}),
        ("ramp", {"ramp": 0}),
        ("ramp", {"lead": 0.001}),
    ],
)
def test_invalid_tone_arguments_raise(name, arguments):
    arguments = {"wpm": 20, "frequency": 700, **arguments}
    with pytest.raises(ValueError, match=f"`{name}`.*Received"):
        morse_code.keyed_tone("A", **arguments)


def test_messages_match_their_specification():
    messages = morse_messages.draw_messages(300, 6.0, 3)
    for message in messages:
        assert len(message.samples) <= 6.0 * RATE
        assert message.samples.dtype == np.float32
        assert np.abs(message.samples).max() <= 1
        assert len(message.spans) == len(message.text)
        assert len(message.text) < morse_messages.LONGEST_TEXT
        assert set(message.text) <= set(morse_messages.ALPHABET)
    for name, (low, high) in (
        ("wpm", morse_messages.SPEEDS),
        ("frequency", morse_messages.TONES),
        ("snr", morse_messages.RATIOS),
    ):
        drawn = [getattr(message, name) for message in messages]
        assert low <= min(drawn) < low + 0.1 * (high - low)
        assert high - 0.1 * (high - low) < max(drawn) <= high
    pairs = phrase_grammar.generate_pairs(300)
    english = {word.upper() for pair in pairs for word in pair[0].split()}
    words = [word for message in messages for word in message.text.split()]
    long = [word for word in words if len(word) > 2]
    assert 0.1 < np.mean([word in english for word in long]) < 0.5
    assert 0.1 < np.mean([word.isdigit() for word in long]) < 0.5


def test_seeds_and_splits():
    draw = functools.partial(morse_messages.draw_messages, 60, 4.0)
    first, again, other = draw(1), draw(1), draw(2)
    assert [m.text for m in first] == [m.text for m in again]
    np.testing.assert_array_equal(first[7].samples, again[7].samples)
    assert [m.text for m in first] != [m.text for m in other]
    tests = draw(1, tests=True, snr=0.0, wpm=25.0)
    learned = {message.text for message in first + other}
    assert learned.isdisjoint(message.text for message in tests)
    assert {(message.snr, message.wpm) for message in tests} == {(0.0, 25.0)}


def test_too_short_sound_raises():
    with pytest.raises(ValueError, match="`seconds` must leave room for"):
        morse_messages.draw_messages(50, 0.9, 1, wpm=12)


# Edit distance.


def distance_by_recursion(found, wanted):
    @functools.cache
    def distance(i, j):
        if not i or not j:
            return i + j
        return min(
            distance(i - 1, j) + 1,
            distance(i, j - 1) + 1,
            distance(i - 1, j - 1) + (found[i - 1] != wanted[j - 1]),
        )

    return distance(len(found), len(wanted))


def test_edit_distance_matches_the_definition():
    generator = np.random.default_rng(0)
    for _ in range(200):
        found, wanted = (
            "".join(generator.choice(list("ABC"), generator.integers(0, 9)))
            for _ in range(2)
        )
        expected = distance_by_recursion(found, wanted)
        assert edit_distance.levenshtein(found, wanted) == expected


def test_character_error_rate():
    rate = error_rate.character_error_rate
    assert rate(["AB", "C"], ["AB", "C"]) == 0
    assert rate(["", ""], ["AB", "C"]) == 1
    assert rate(["ABCDE"], ["X"]) == 5
    with pytest.raises(ValueError, match="`found` must have a text for each"):
        rate(["A"], ["A", "B"])
    with pytest.raises(ValueError, match="at least one character"):
        rate([""], [""])


# Files.


def wav(samples=b"\0\0\1\0", rate=RATE, channels=1, width=2):
    content = io.BytesIO()
    with wave.open(content, "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(rate)
        file.writeframes(samples)
    return content.getvalue()


def pack(path, files):
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def test_wav_roundtrip(tmp_path):
    samples = np.array([0, 0.5, -0.25, 2, -2], "float32")
    sound_files.write_wav(tmp_path / "a.wav", samples)
    found = sound_files.read_wav(tmp_path / "a.wav")
    assert found.dtype == np.float32
    full = 32767 / 32768
    np.testing.assert_array_equal(found, [0, 0.5, -0.25, full, -1])
    with pytest.raises(ValueError, match="`samples` must have one axis"):
        sound_files.write_wav(tmp_path / "a.wav", samples[None])


@pytest.mark.parametrize(
    "content, said",
    [
        (b"", "is no wav file"),
        (b"RIFF and so on", "is no wav file"),
        (wav(rate=16000), "must have 8,000 samples a second.*16,000"),
        (wav(channels=2), "one channel of 16 bits.*2 of 16 bits"),
        (wav(width=1), "one channel of 16 bits.*1 of 8 bits"),
        (wav(samples=b""), "holds no sample"),
    ],
)
def test_invalid_sounds_raise(content, said, tmp_path):
    path = tmp_path / "a.wav"
    path.write_bytes(content)
    with pytest.raises(sound_files.SoundError, match=said):
        sound_files.read_wav(path)
    pack(tmp_path / "a.tar.gz", {"a.wav": content})
    with pytest.raises(sound_files.SoundError, match=said):
        sound_files.read_sounds(tmp_path / "a.tar.gz")


def test_sounds_from_folders_and_archives(tmp_path):
    (tmp_path / "b.wav").write_bytes(wav(b"\0\x40"))
    (tmp_path / "note.txt").write_text("not a sound")
    pack(tmp_path / "x.tar.gz", {"x/a.wav": wav(), "x/README": b"no"})
    found = sound_files.read_sounds(tmp_path)
    assert list(found) == ["a", "b"]
    np.testing.assert_array_equal(found["a"], [0, 1 / 32768])
    np.testing.assert_array_equal(found["b"], [0.5])
    assert list(sound_files.read_sounds(tmp_path / "b.wav")) == ["b"]
    pack(tmp_path / "y.tar.gz", {"y/b.wav": wav()})
    with pytest.raises(sound_files.SoundError, match=r"two sounds.* b\.wav"):
        sound_files.read_sounds(tmp_path)


@pytest.mark.parametrize("name", ["none", "none.wav", "none.tar.gz"])
def test_missing_sounds_raise(name, tmp_path):
    with pytest.raises(sound_files.SoundError, match="There is no file"):
        sound_files.read_sounds(tmp_path / name)


def test_folder_without_sounds_raises(tmp_path):
    with pytest.raises(sound_files.SoundError, match="holds no wav file"):
        sound_files.read_sounds(tmp_path)
    (tmp_path / "a.tar.gz").write_bytes(b"not an archive")
    with pytest.raises(sound_files.SoundError, match="cannot be unpacked"):
        sound_files.read_sounds(tmp_path)


# Spoken digits.


def recordings(generator, speakers=("ann", "bob"), count=4):
    return [
        spoken_digits.whole(
            generator.uniform(-0.1, 0.1, 800 + 80 * digit).astype("float32"),
            str(digit),
            speaker,
        )
        for speaker in speakers
        for digit in range(10)
        for _ in range(count)
    ]


def test_read_digits(tmp_path):
    for name in ("3_ann_0", "7_bob_12"):
        (tmp_path / f"{name}.wav").write_bytes(wav())
    found = spoken_digits.read_digits(tmp_path)
    assert [(r.text, r.speaker) for r in found] == [("3", "ann"), ("7", "bob")]
    assert found[0].spans.tolist() == [[0, 2 / RATE]]
    (tmp_path / "seven.wav").write_bytes(wav())
    with pytest.raises(sound_files.SoundError, match=r"Found: seven\.wav"):
        spoken_digits.read_digits(tmp_path)


def test_recordings_are_concatenated():
    one, two = (
        spoken_digits.whole(np.array([0, level, 0], "float32"), text, "ann")
        for level, text in ((0.1, "1"), (-0.4, "2"))
    )
    number = spoken_digits.joined([one, two], [2, 1, 3])
    assert number.text == "12" and number.speaker == "ann"
    expected = [0, 0, 0, 0.5, 0, 0, 0, -0.5, 0, 0, 0, 0]
    np.testing.assert_allclose(number.samples, expected)
    np.testing.assert_allclose(number.spans * RATE, [[2, 5], [6, 9]])
    with pytest.raises(ValueError, match="`pauses` must be one more"):
        spoken_digits.joined([one, two], [0, 0])


def test_numbers_use_every_recording_of_one_speaker():
    generator = np.random.default_rng(0)
    spoken = recordings(generator)
    numbers = spoken_digits.draw_numbers(spoken, 120, 5, change=False)
    assert {number.speaker for number in numbers} == {"ann", "bob"}
    assert {len(number.text) for number in numbers} == {1, 2, 3}
    used = {"ann": 0, "bob": 0}
    for number in numbers:
        used[number.speaker] += len(number.text)
        lengths = np.round(np.diff(number.spans)[:, 0] * RATE)
        assert lengths.tolist() == [800 + 80 * int(d) for d in number.text]
    # Forty recordings each; none repeats before all were used.
    shares = np.bincount([int(d) for n in numbers for d in n.text])
    assert min(used.values()) > 80 and np.ptp(shares) <= 2 * 4
    again = spoken_digits.draw_numbers(spoken, 120, 5, change=False)
    np.testing.assert_array_equal(numbers[50].samples, again[50].samples)


def test_augmented_numbers_differ_and_keep_their_spans():
    spoken = recordings(np.random.default_rng(0))
    plain, changed = (
        spoken_digits.draw_numbers(spoken, 20, 5, change)
        for change in (False, True)
    )
    assert [len(n.samples) for n in plain] != [len(n.samples) for n in changed]
    for number in changed:
        assert number.samples.dtype == np.float32
        assert len(number.spans) == len(number.text)
        assert number.spans[-1, 1] * RATE <= len(number.samples) + 1e-6
        assert (np.diff(number.spans.ravel()) >= 0).all()


# Augmentation.


@pytest.mark.parametrize("factor", [0.8, 1.0, 1.25])
def test_faster_sound_is_shorter_and_higher(factor):
    times = np.arange(4000) / RATE
    samples = np.sin(2 * np.pi * 500 * times)
    changed = sound_changes.change_speed(samples, factor)
    assert len(changed) == pytest.approx(4000 / factor, abs=1)
    power = np.abs(np.fft.rfft(changed))
    found = np.fft.rfftfreq(len(changed), 1 / RATE)[power.argmax()]
    assert found == pytest.approx(500 * factor, abs=3)
    if factor == 1:
        np.testing.assert_allclose(changed, samples, atol=1e-6)


def test_tilt_is_a_filter():
    impulse = np.array([1.0, 0, 0, 0])
    assert sound_changes.tilt(impulse, 0.5).tolist() == [1, 0.5, 0, 0]
    white = np.random.default_rng(0).normal(size=8000)
    for slope, falls in ((0.5, True), (-0.5, False)):
        power = np.abs(np.fft.rfft(sound_changes.tilt(white, slope))) ** 2
        low, high = power[:2000].mean(), power[2000:].mean()
        assert (low > 1.5 * high) == falls and (high > 1.5 * low) != falls


def test_added_noise():
    generator = np.random.default_rng(0)
    samples = np.sin(np.arange(20000)).astype("float32")
    noisy = sound_changes.add_noise(samples, 10.0, generator)
    power = np.square(noisy - samples).mean()
    ratio = np.square(samples).mean() / power
    assert 10 * np.log10(ratio) == pytest.approx(10, abs=0.2)
    silence = sound_changes.add_noise(np.zeros(5, "float32"), 10.0, generator)
    assert not silence.any()


def test_masked_parts_are_small_rectangles():
    generator = np.random.default_rng(0)
    frames = np.ones((40, 20))
    seen = set()
    for _ in range(200):
        hidden = sound_changes.hide_parts(frames, generator, 9, 20) == 0
        rows, columns = hidden.all(1), hidden.all(0)
        assert rows.sum() <= 8 and columns.sum() <= 4  # a fifth of each
        np.testing.assert_array_equal(hidden, rows[:, None] | columns)
        for line in (rows, columns):
            assert len(runs(line)[0]) <= 1
        seen.add((rows.sum(), columns.sum()))
    assert len(seen) > 25 and frames.all()


@pytest.mark.parametrize(
    "name, call",
    [
        ("factor", lambda: sound_changes.change_speed(np.ones(3), 0)),
        ("slope", lambda: sound_changes.tilt(np.ones(3), 1.0)),
    ],
)
def test_invalid_augmentations_raise(name, call):
    with pytest.raises(ValueError, match=f"`{name}`.*Received"):
        call()


# Frames.


def test_frames_match_the_equation():
    generator = np.random.default_rng(0)
    log_mel = LogMel(RATE, step=80, window=256, bins=20)
    sound = generator.normal(size=1003).astype("float32")
    (frames,) = log_mel([sound])
    assert frames.shape == (1 + 1003 // 80, 20) == (log_mel.frames(1003), 20)
    # Half a window of silence before and after.
    padded = np.concatenate([np.zeros(128), sound, np.zeros(256)])
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(256) / 256)
    power = np.array(
        [
            np.abs(np.fft.rfft(padded[80 * t :][:256] * window)) ** 2
            for t in range(13)
        ]
    )
    edges = np.linspace(
        1127 * np.log(1 + 100 / 700), 1127 * np.log(1 + 4000 / 700), 22
    )
    mel = 1127 * np.log(1 + np.fft.rfftfreq(256, 1 / RATE) / 700)
    rising = (mel[:, None] - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - mel[:, None]) / (edges[2:] - edges[1:-1])
    bands = power @ np.maximum(0, np.minimum(rising, falling))
    levels = np.log(np.maximum(bands, 1e-6 * bands.max()))
    expected = (levels - levels.mean()) / levels.std()
    np.testing.assert_allclose(frames, expected, atol=2e-3)


def test_frames_do_not_depend_on_batch_or_volume():
    generator = np.random.default_rng(0)
    log_mel = LogMel()
    sounds = [
        level * generator.normal(size=size).astype("float32")
        for level, size in ((1, 900), (0.01, 5000), (1, 4000), (3, 256))
    ]
    together = log_mel(sounds)
    for sound, frames in zip(sounds, together, strict=True):
        np.testing.assert_allclose(log_mel([sound])[0], frames, atol=1e-4)
        louder = log_mel([5 * sound])[0]
        np.testing.assert_allclose(louder, frames, atol=1e-3)
        assert abs(frames.mean()) < 1e-4 and abs(frames.std() - 1) < 1e-3
    again = LogMel(**log_mel.get_config())
    np.testing.assert_array_equal(again(sounds[:1])[0], together[0])
    assert np.isfinite(log_mel([np.zeros(900, "float32")])[0]).all()


def test_tone_is_in_its_band():
    log_mel = LogMel()
    tone, spans = morse_code.keyed_tone("T", 5, 800)
    frames = log_mel([tone])[0]
    middle = int(spans.mean() * RATE / log_mel.step)
    centres = np.linspace(
        *(1127 * np.log(1 + f / 700) for f in (100, 4000)), 42
    )[1:-1]
    loudest = 700 * (np.exp(centres[frames[middle].argmax()] / 1127) - 1)
    assert loudest == pytest.approx(800, abs=60)
    assert log_mel.seconds(middle) == pytest.approx(spans.mean(), abs=0.01)


def test_sounds_without_frames_raise():
    log_mel = LogMel()
    for sound in (np.zeros(255), np.zeros((2, 900))):
        with pytest.raises(ValueError, match=r"at least 256 samples.*sound 1"):
            log_mel([np.zeros(900), sound])


# Batches.


def sounds_of(epoch, count=22):
    generator = np.random.default_rng(epoch)
    return [
        (
            np.full((int(size), 4), 1 + number, "float32"),
            "ABC"[: 1 + number % 3],
        )
        for number, size in enumerate(generator.permutation(count) + 1)
    ]


@pytest.mark.parametrize("epoch", [0, 1, 2])
def test_batches_contain_every_sound_once(epoch):
    batches = SoundBatches(
        sounds_of, Letters("ABC"), 4, (8, 16, 24), 5, hide=False
    )
    batches.set_epoch(epoch)
    assert len(batches) == 5  # and two remaining sounds are dropped
    given = {int(f[0, 0]): (len(f), text) for f, text in sounds_of(epoch)}
    seen = []
    for (frames, target), labels in batches:
        assert frames.dtype == np.float32 and target.dtype == labels.dtype
        assert frames.shape[::2] == (4, 5) and frames.shape[1] in (8, 16, 24)
        assert target.shape == labels.shape == (4, 5)
        for row, start, wanted in zip(frames, target, labels, strict=True):
            number, length = int(row[0, 0]), int(row[:, -1].sum())
            assert (row[:length, -1] == 1).all() and not row[length:].any()
            seen.append(number)
            assert length == given[number][0]
            assert start[0] == letters.START
            ids = [4 + "ABC".index(c) for c in given[number][1]]
            assert start[1 : len(ids) + 1].tolist() == ids
            assert not start[len(ids) + 1 :].any()
            assert wanted[: len(ids)].tolist() == ids
            assert wanted[len(ids)] == letters.END
    assert len(set(seen)) == len(seen) == 20


def test_first_epoch_starts_with_short_sounds():
    batches = SoundBatches(
        lambda epoch: sounds_of(0, 80), Letters("ABC"), 4, (80,), 5
    )
    orders = []
    for epoch in range(3):
        batches.set_epoch(epoch)
        orders.append([int(b[0][0][..., -1].sum()) for b in batches])
    assert orders[0] == sorted(orders[0])
    assert orders[1] != orders[0] and orders[2] not in orders[:2]
    batches.set_epoch(1)
    assert [int(b[0][0][..., -1].sum()) for b in batches] == orders[1]


@pytest.mark.parametrize("epoch", range(4))
def test_first_two_batches_have_different_lengths(epoch):
    batches = SoundBatches(
        sounds_of, Letters("ABC"), 2, (12, 24), 5, hide=False
    )
    batches.set_epoch(epoch)
    first, second = (batches[i][0][0].shape[1] for i in range(2))
    assert first != second


def test_masked_parts_differ_per_epoch():
    batches = SoundBatches(
        lambda epoch: [(np.ones((40, 12)), "A")] * 4,
        Letters("A"),
        4,
        (40,),
        2,
    )
    hidden = []
    for epoch in range(3):
        batches.set_epoch(epoch)
        (frames, _), _ = batches[0]
        assert frames[..., -1].all()  # masked frames are valid frames
        hidden.append(frames[..., :-1] == 0)
    assert (hidden[0] != hidden[1]).any() and (hidden[1] != hidden[2]).any()


def test_padded_lengths():
    lengths = 8, 16
    found = [sound_batches.padded_length(n, lengths) for n in (1, 8, 9, 17, 33)]
    assert found == [8, 8, 16, 32, 48]
    with pytest.raises(ValueError, match="`length` must be at least 9"):
        sound_batches.padded_frames([np.ones((9, 2))], 8)


@pytest.mark.parametrize(
    "said, changes",
    [
        ("`draw` must return at least 32", {"batch_size": 32}),
        ("`longest` must be above 3", {"longest": 3}),
    ],
)
def test_invalid_batch_arguments_raise(said, changes):
    arguments = {"batch_size": 4, "lengths": (24,), "longest": 5, **changes}
    with pytest.raises(ValueError, match=said):
        SoundBatches(sounds_of, Letters("ABC"), **arguments)


# Measures.


def test_fraction_of_an_alignment_inside_spans():
    weights = np.array([[0.5, 0.5, 0, 0], [0, 0.25, 0.5, 0.25]])
    times, spans = np.arange(4) * 0.1, [[0.0, 0.05], [0.2, 0.31]]
    inside = alignment_measures.share_inside
    assert inside(weights, times, spans) == pytest.approx((0.5 + 0.75) / 2)
    assert inside(weights, times, spans, 0.11) == pytest.approx(1)
    assert alignment_measures.share_forward(weights[:1]) == 1
    np.testing.assert_allclose(
        alignment_measures.centres(2 * weights), [0.5, 2.0]
    )
