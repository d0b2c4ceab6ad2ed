"""Small files in the formats of data sets."""

import gzip
import io
import json
import tarfile
import wave
import zipfile

import numpy as np


def wav_bytes(frames, width=2, rate=8000):
    """A WAV file.

    Args:
        frames: int (n, channels), unsigned if the width is 1.
        width: int. Bytes per sample.
        rate: int. Sample rate.
    """
    frames = np.asarray(frames)
    data = b"".join(
        int(sample).to_bytes(width, "little", signed=width > 1)
        for sample in frames.ravel()
    )
    stream = io.BytesIO()
    with wave.open(stream, "wb") as file:
        file.setnchannels(frames.shape[1])
        file.setsampwidth(width)
        file.setframerate(rate)
        file.writeframes(data)
    return stream.getvalue()


def extensible_wav(content, subformat=b"\x01\x00"):
    """Rewrites the format chunk of a WAV file as WAVE_FORMAT_EXTENSIBLE."""
    form, rest = content[20:36], content[36:]
    guid = subformat + bytes.fromhex("0000 0000 1000 8000 00aa 0038 9b71")
    chunk = b"\xfe\xff" + form[2:] + b"\x16\0" + form[14:] + b"\0" * 4 + guid
    body = b"WAVEfmt " + len(chunk).to_bytes(4, "little") + chunk + rest
    return b"RIFF" + len(body).to_bytes(4, "little") + body


def png_bytes(width, height, color=(0, 0, 0)):
    """An image of one color."""
    from PIL import Image

    stream = io.BytesIO()
    Image.new("RGB", (width, height), color).save(stream, "PNG")
    return stream.getvalue()


def write_tar(path, members):
    """Writes an archive of a dict of name to bytes."""
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))


def write_zip(path, members):
    """Writes an archive of a dict of name to text; returns its content."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path.read_bytes()


def write_nlvr(folder, split, labels):
    """Writes NLVR's files; image n has the red value n."""
    rows = [
        {"identifier": f"{n}-1", "label": label, "sentence": f"{split} {n}"}
        for n, label in enumerate(labels)
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / f"{split}.json.gz").write_bytes(gzip.compress(text.encode()))
    images = {
        f"images_{split}/{split}-{n}-1-{k}.png": png_bytes(40, 10, (n, k, 9))
        for n, _ in enumerate(labels)
        for k in (1, 0)
    }
    write_tar(folder / f"images_{split}.tar.gz", images)
