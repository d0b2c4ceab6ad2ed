"""Folders of recordings."""

import tarfile

import numpy as np
import pytest

from keras_attn.datasets import DataFileError, read_wav_folder
from tests.helpers.data_set_files import wav_bytes, write_tar

pytestmark = pytest.mark.one_backend


@pytest.mark.parametrize(
    "frames, width, expected",
    [
        ([[0], [1], [128], [255]], 1, [-32768, -32512, 0, 32512]),
        ([[0], [-32768], [32767]], 2, [0, -32768, 32767]),
        ([[256], [-(2**23)], [2**23 - 1], [384]], 3, [1, -32768, 32767, 2]),
        ([[65536], [-(2**31)], [2**31 - 1]], 4, [1, -32768, 32767]),
        # Stereo: the mean, rounded to the nearest even number.
        ([[2, 4], [-32768, -32768], [1, 2], [2, 3]], 2, [3, -32768, 2, 2]),
        ([[256, 0], [256 * 3, 256]], 3, [0, 2]),
    ],
)
@pytest.mark.parametrize("extensible", [False, True])
def test_sample_formats(write, frames, width, expected, extensible):
    content = wav_bytes(frames, width, rate=16000)
    if extensible:
        content = to_extensible(content)
    folder = write("7_ann_0.wav", content).parent
    (recording,) = read_wav_folder(folder)
    assert recording.samples.tolist() == expected
    assert recording.samples.dtype == "int16"
    assert recording.sample_rate == 16000
    assert (recording.text, recording.speaker) == ("7", "ann")


def to_extensible(content, subformat=b"\x01\x00"):
    """Rewrites the format chunk of a WAV file as WAVE_FORMAT_EXTENSIBLE."""
    form, rest = content[20:36], content[36:]
    guid = subformat + bytes.fromhex("0000 0000 1000 8000 00aa 0038 9b71")
    chunk = b"\xfe\xff" + form[2:] + b"\x16\0" + form[14:] + b"\0" * 4 + guid
    body = b"WAVEfmt " + len(chunk).to_bytes(4, "little") + chunk + rest
    return b"RIFF" + len(body).to_bytes(4, "little") + body


def digits(*names):
    return {name: wav_bytes([[n + 1]]) for n, name in enumerate(names)}


def summary(recordings):
    return [(r.samples.tolist(), r.text, r.speaker) for r in recordings]


def test_texts_in_file_names(tmp_path):
    for name, content in digits("7_bo_lee_2.wav", "0_ann_1.WAV").items():
        (tmp_path / name).write_bytes(content)
    members = digits("theo/42_theo_0.wav", "theo/._4_a_0.wav", "notes.txt")
    write_tar(tmp_path / "theo.tar.gz", members)
    (tmp_path / "README.md").write_text("no recording")
    (tmp_path / "inside.wav").mkdir()
    expected = [([2], "0", "ann"), ([1], "42", "theo"), ([1], "7", "bo_lee")]
    assert summary(read_wav_folder(tmp_path)) == expected
    assert summary(read_wav_folder(tmp_path / "theo.tar.gz")) == expected[1:2]
    write_tar(tmp_path / "b.tar.gz", members)
    with pytest.raises(
        DataFileError, match=r"one 42_theo_0\.wav, received two"
    ):
        read_wav_folder(tmp_path)


@pytest.mark.parametrize(
    "name, text",
    [
        ("transcripts.tsv", "b.wav\ttwo words \tann\n\na\tone\n"),
        ("transcripts.txt", "b.wav\ttwo words\tann\na one\n"),
    ],
)
def test_texts_in_transcripts(write, name, text):
    for file, content in digits("a.wav", "b.wav", "no text.wav").items():
        write(file, content)
    folder = write(name, text).parent
    expected = [([2], "two words", "ann"), ([1], "one", "")]
    assert summary(read_wav_folder(folder)) == expected


@pytest.mark.parametrize(
    "line, message",
    [
        ("a", "expected `name<tab>text`"),
        ("a\t \tann", "expected `name<tab>text`"),
        ("a.mp3\ttext", "expected the name of a WAV file"),
        ("b.wav\tagain", "expected one line per WAV file"),
    ],
)
def test_invalid_transcripts_raise(write, line, message):
    for file, content in digits("a.wav", "b.wav").items():
        write(file, content)
    folder = write("transcripts.tsv", f"b\tb\n{line}\n").parent
    with pytest.raises(DataFileError, match=rf"\.tsv, line 2: {message}"):
        read_wav_folder(folder)
    assert len(read_wav_folder(folder, on_bad_lines="skip")) == 1
    write("transcripts.txt", "b b\n")
    with pytest.raises(DataFileError, match="one file of transcripts"):
        read_wav_folder(folder)


WAV = wav_bytes([[1, 2], [3, 4]])


@pytest.mark.parametrize(
    "content, message",
    [
        (b"", "expected a PCM WAV file"),
        (b"RIFF", "expected a PCM WAV file"),
        (WAV[:40], "expected a PCM WAV file"),
        (WAV[:20] + b"\x03\0" + WAV[22:], "expected a PCM WAV file"),
        (to_extensible(WAV, b"\x03\0"), "expected a PCM WAV file"),
        (WAV[:16] + b"\xff" + WAV[17:], "expected a PCM WAV file, .*corrupt"),
        (WAV[:-4], "expected 2 samples, received 1"),
        (wav_bytes(np.zeros((0, 1))), "expected some samples, received 0"),
        (wav_bytes([[1, 2, 3]]), "expected mono or stereo .* 3 channels"),
        (WAV[:24] + b"\0" * 4 + WAV[28:], "expected mono .* at 0 Hz"),
    ],
    ids=range(10),
)
def test_invalid_wav_files_raise(write, content, message):
    path = write("1_ann_0.wav", content)
    with pytest.raises(DataFileError, match=f"^{path}: {message}"):
        read_wav_folder(path.parent)


def test_invalid_folders_raise(tmp_path):
    with pytest.raises(DataFileError, match="expected at least one WAV file"):
        read_wav_folder(tmp_path)
    for name in ("gone", "gone.tar.gz"):
        with pytest.raises(
            DataFileError, match=f"{name}: no such file or fold"
        ):
            read_wav_folder(tmp_path / name)
    (tmp_path / "a.tar").write_bytes(b"no archive")
    with pytest.raises(DataFileError, match=r"a\.tar: cannot be unpacked"):
        read_wav_folder(tmp_path)
    with tarfile.open(tmp_path / "a.tar", "w"):
        pass
    (tmp_path / "seven.wav").write_bytes(WAV)
    with pytest.raises(DataFileError, match=r"received seven\.wav"):
        read_wav_folder(tmp_path)
