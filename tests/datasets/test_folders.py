"""Folders of captioned images, of recordings, and the files of NLVR."""

import gzip
import json
import sys
import tarfile

import numpy as np
import pytest

from keras_attn import datasets
from keras_attn.datasets import DataFileError, read_captions, read_nlvr
from tests.helpers import data_set_files as files

read_wavs = datasets.read_wav_folder
WAV = files.wav_bytes([[1, 2], [3, 4]])
NO_SAMPLES = files.wav_bytes(np.zeros((0, 1)))


def test_images_and_captions(write):
    write("red.png", files.png_bytes(200, 100, (200, 10, 30)))
    write("tall.png", files.png_bytes(10, 40, (0, 99, 0)))
    text = "red.png\t a red image \n\ntall.png\tgreen\tand tall\nred.png\ttwo\n"
    data = read_captions(write("captions.tsv", text).parent, height=12)
    assert data.images.shape == (3, 12, 24, 3) and data.images.dtype == "uint8"
    colors = np.array([(200, 10, 30), (0, 99, 0), (200, 10, 30)])
    assert (data.images == colors[:, None, None]).all()
    assert data.captions == ["a red image", "green\tand tall", "two"]
    assert data.names == ["red.png", "tall.png", "red.png"]


def test_images_are_averaged_when_resized(write):
    from PIL import Image

    pixels = np.random.default_rng(0).integers(0, 256, (8, 12, 3), "uint8")
    folder = write("captions.tsv", "a.png\ta\n").parent
    Image.fromarray(pixels).save(folder / "a.png")
    (image,) = read_captions(str(folder), height=4).images
    means = pixels.reshape(4, 2, 6, 2, 3).mean((1, 3))
    np.testing.assert_allclose(image, means, atol=1)


def test_invalid_captions(write):
    write("a.png", files.png_bytes(4, 4))
    text = "a.png\na.png\t \n\ta\nb.png\tb\ncaptions.tsv\ta\na.png\ta\n"
    folder, bad = write("captions.tsv", text).parent, []
    assert read_captions(folder, on_bad_lines=bad.append).captions == ["a"]
    assert [line.line for line in bad] == [1, 2, 3, 4, 5]
    expected = 3 * ["expected `file"] + 2 * ["expected an im"]
    assert [line.reason[:14] for line in bad] == expected
    write("captions.tsv", "")
    with pytest.raises(DataFileError, match="at least one image with a capti"):
        read_captions(folder)


def test_missing_pillow_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    for read in (read_captions, lambda folder: read_nlvr(folder, "dev")):
        with pytest.raises(ImportError, match=r"keras-attn\[examples\]"):
            read(tmp_path)


def colors(data):
    assert data.images.shape[1:] == (12, 48, 3)
    return [image[6, 20].tolist() for image in data.images]


@pytest.fixture
def nlvr(tmp_path):
    files.write_nlvr(tmp_path, "dev", ["true", "false", "true"])
    return tmp_path


def test_images_with_true_or_false_sentences(nlvr):
    files.write_nlvr(nlvr, "hidden", ["false"])
    data = read_nlvr(nlvr, "dev", height=12)
    assert data.captions == ["dev 0", "dev 2"]
    assert data.names == ["dev-0-1-0.png", "dev-2-1-0.png"]
    # The first of the two images of each.
    assert colors(data) == [[0, 0, 9], [2, 0, 9]]
    data = read_nlvr(str(nlvr), "dev", height=12, label=False)
    assert (data.captions, colors(data)) == (["dev 1"], [[1, 0, 9]])
    assert read_nlvr(nlvr, "hidden", label=False).captions == ["hidden 0"]
    with pytest.raises(DataFileError, match="one sentence that is true"):
        read_nlvr(nlvr, "hidden")


def test_files_of_a_clone(nlvr):
    with tarfile.open(nlvr / "images_dev.tar.gz") as archive:
        archive.extractall(nlvr / "dev" / "images" / "0", filter="data")
    text = gzip.decompress((nlvr / "dev.json.gz").read_bytes())
    (nlvr / "dev" / "dev.json").write_bytes(text)
    for name in ("dev.json.gz", "images_dev.tar.gz"):
        (nlvr / name).unlink()
    data = read_nlvr(nlvr, "dev", height=12)
    assert colors(data) == [[0, 0, 9], [2, 0, 9]]


def test_invalid_lines(nlvr):
    row = {"label": "true", "identifier": "0-1", "sentence": "a"}
    names = {"identifier": 0}, {"identifier": "9"}
    changes = {"sentence": 3}, {"label": []}, *names
    with gzip.open(nlvr / "dev.json.gz", "at") as file:
        for line in ([], {}, *(row | change for change in changes)):
            file.write(f"{json.dumps(line)}\n")
        file.write("\n[")
    bad = []
    data = read_nlvr(nlvr, "dev", on_bad_lines=bad.append)
    assert data.captions == ["dev 0", "dev 2"]
    assert [line.line for line in bad] == [4, 5, 6, 7, 8, 11, 9]
    assert bad.pop().reason == "expected an image dev-9-0.png, received none"
    assert all(line.reason.startswith("expected JSON") for line in bad)


def test_invalid_files_raise(nlvr):
    with pytest.raises(DataFileError, match=r"folder with test\.json or test"):
        read_nlvr(nlvr, "test")
    archive = nlvr / "images_dev.tar.gz"
    files.write_tar(archive, {"dev-0-1-0.png": b"no image"})
    with pytest.raises(DataFileError, match=r"0\.png: expected an image, rece"):
        read_nlvr(nlvr, "dev")
    archive.write_bytes(archive.read_bytes()[:20])
    with pytest.raises(DataFileError, match=r"dev\.tar\.gz: cannot be unpacke"):
        read_nlvr(nlvr, "dev")


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
def test_sample_formats(write, frames, width, expected):
    content = files.wav_bytes(frames, width, rate=16000)
    folder = write("7_ann_0.wav", content).parent
    write("8_ann_0.wav", files.extensible_wav(content))
    for text, recording in zip("78", read_wavs(folder), strict=True):
        samples, rate = datasets.read_wav(folder / f"{text}_ann_0.wav")
        assert samples.tolist() == recording.samples.tolist() == expected
        assert (samples.dtype, rate) == ("int16", 16000)
        assert recording.samples.dtype == "int16"
        assert recording[1:] == (16000, text, "ann")


def digits(*names):
    return {name: files.wav_bytes([[n + 1]]) for n, name in enumerate(names)}


def recordings(path):
    return [(r.samples.tolist(), r.text, r.speaker) for r in read_wavs(path)]


def test_texts_in_file_names(tmp_path):
    for name, content in digits("7_bo_lee_2.wav", "0_ann_1.WAV").items():
        (tmp_path / name).write_bytes(content)
    members = digits("theo/42_theo_0.wav", "theo/._4_a_0.wav", "notes.txt")
    files.write_tar(tmp_path / "theo.tar.gz", members)
    (tmp_path / "README.md").write_text("no recording")
    (tmp_path / "inside.wav").mkdir()
    expected = [([2], "0", "ann"), ([1], "42", "theo"), ([1], "7", "bo_lee")]
    assert recordings(tmp_path) == expected
    assert recordings(tmp_path / "theo.tar.gz") == expected[1:2]
    files.write_tar(tmp_path / "b.tar.gz", members)
    with pytest.raises(DataFileError, match=r"one 42_theo_0\.wav, received tw"):
        read_wavs(tmp_path)


def test_texts_in_transcripts(write):
    for file, content in digits("a.wav", "b.wav", "no text.wav").items():
        folder = write(file, content).parent
    expected = [([2], "two words", "ann"), ([1], "one", "")]
    path = write("transcripts.tsv", "b.wav\ttwo words \tann\n\na\tone\n")
    assert recordings(folder) == expected
    path.unlink()
    write("transcripts.txt", "b.wav\ttwo words\tann\na one\n")
    assert recordings(folder) == expected


def test_invalid_transcripts(write):
    write("a.wav", WAV)
    write("b.wav", WAV)
    text = "b\tb\na\na\t \tann\na.mp3\ttext\nb.wav\tagain\n"
    folder, bad = write("transcripts.tsv", text).parent, []
    assert len(read_wavs(folder, on_bad_lines=bad.append)) == 1
    assert [line.line for line in bad] == [2, 3, 4, 5]
    reasons = [line.reason.split(", received")[0] for line in bad]
    assert reasons[:2] == ["expected `name<tab>text`"] * 2
    assert reasons[2] == "expected the name of a WAV file"
    assert reasons[3] == "expected one line per WAV file"
    write("transcripts.txt", "b b\n")
    with pytest.raises(DataFileError, match="one file of transcripts"):
        read_wavs(folder)


@pytest.mark.parametrize(
    "content, message",
    [
        (b"", "expected a PCM WAV file"),
        (WAV[:40], "expected a PCM WAV file"),
        (WAV[:20] + b"\x03\0" + WAV[22:], "expected a PCM WAV file"),
        (files.extensible_wav(WAV, b"\x03\0"), "expected a PCM WAV file"),
        (WAV[:16] + b"\xff" + WAV[17:], "expected a PCM WAV file, .*corrupt"),
        (WAV[:-4], "expected 2 samples, received 1"),
        (NO_SAMPLES, "expected some samples, received 0"),
        (files.wav_bytes([[1, 2, 3]]), "expected mono or stereo .* 3 channels"),
        (WAV[:24] + b"\0" * 4 + WAV[28:], "expected mono .* at 0 Hz"),
    ],
    ids=range(9),
)
def test_invalid_wav_files_raise(write, content, message):
    path = write("1_ann_0.wav", content)
    for read, place in (read_wavs, path.parent), (datasets.read_wav, path):
        with pytest.raises(DataFileError, match=f"^{path}: {message}"):
            read(place)


def test_missing_wav_files_raise(tmp_path):
    with pytest.raises(DataFileError, match=r"none\.wav"):
        datasets.read_wav(tmp_path / "none.wav")
    with pytest.raises(ValueError, match="`path` must be"):
        datasets.read_wav(3)


def test_invalid_folders_of_recordings_raise(tmp_path):
    with pytest.raises(DataFileError, match="expected at least one WAV file"):
        read_wavs(tmp_path)
    for name in ("gone", "gone.tar.gz"):
        with pytest.raises(DataFileError, match=f"{name}: no such file or f"):
            read_wavs(tmp_path / name)
    (tmp_path / "a.tar").write_bytes(b"no archive")
    with pytest.raises(DataFileError, match=r"a\.tar: cannot be unpacked"):
        read_wavs(tmp_path)
    with tarfile.open(tmp_path / "a.tar", "w"):
        pass
    (tmp_path / "seven.wav").write_bytes(WAV)
    with pytest.raises(DataFileError, match=r"received seven\.wav"):
        read_wavs(tmp_path)
