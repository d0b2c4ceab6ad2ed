"""read_wav_folder, read_wav: recordings, with or without transcripts."""

import io
import os
import pathlib
import re
import wave

import numpy as np

from keras_attn import checks
from keras_attn.datasets.data_files import (
    DataFileError,
    TextFile,
    check_on_bad_lines,
    read_bytes,
    read_tar,
    require,
)
from keras_attn.datasets.recording import Recording
from keras_attn.typing import BadLines, PathLike

_ARCHIVES = (".tar", ".tar.gz", ".tgz")
_DIGIT_NAME = re.compile(r"(\d+)_(.+)_\d+")
# In the header of WAV files: the format tag WAVE_FORMAT_EXTENSIBLE, and the
# subformat that says that such a file is PCM too.
_EXTENSIBLE = b"\xfe\xff"
_PCM = b"\x01\x00\x00\x00\x00\x00\x10\x00\x80\x00\x00\xaa\x00\x38\x9b\x71"


def read_wav_folder(
    path: PathLike, *, on_bad_lines: BadLines = "error"
) -> list[Recording]:
    """Reads the WAV files of a folder, each with what is spoken in it.

    The text comes from a file `transcripts.tsv` or `transcripts.txt` in the
    folder, with lines `name<tab>text` or `name<tab>text<tab>speaker`; in
    `transcripts.txt`, a space may replace the tab after the name. The name is
    that of a WAV file, with or without `.wav`. WAV files without a line are
    skipped. Without such a file, names must be `digits_speaker_number.wav`, as
    in the Free Spoken Digit Dataset
    (https://github.com/Jakobovski/free-spoken-digit-dataset).

    The files must be PCM of 8, 16, 24 or 32 bits, mono or stereo, which is
    mixed to mono. Nothing is resampled.

    Args:
        path: str or `os.PathLike`. A folder with WAV files or with archives of
            WAV files (`.tar`, `.tar.gz`, `.tgz`), or such an archive. Folders
            inside the folder are not searched.
        on_bad_lines: "error", "warn", "skip" or a callable. What to do with a
            line of the transcripts that is malformed, not UTF-8, repeated, or
            names no WAV file; see `read_lines`. Default "error".

    Returns:
        List of `Recording`, in the order of the transcripts, or else of the
        file names. `speaker` is "" where it is not known.

    Raises:
        DataFileError: there are no recordings, a file cannot be read or has
            another format, a file name tells no text, or a line is bad.

    Examples:
        >>> import pathlib, tempfile, wave
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> with wave.open(str(folder / "7_jackson_32.wav"), "wb") as file:
        ...     file.setparams((1, 2, 8000, 0, "NONE", ""))
        ...     file.writeframes(np.array([0, 100, -100], "<i2").tobytes())
        >>> recording = keras_attn.datasets.read_wav_folder(folder)[0]
        >>> recording.text, recording.speaker, recording.sample_rate
        ('7', 'jackson', 8000)
        >>> recording.samples.tolist()
        [0, 100, -100]
    """
    path = checks.path("path", path)
    check_on_bad_lines(on_bad_lines)
    files = _wav_files(path)
    transcripts = [
        file
        for name in ("transcripts.tsv", "transcripts.txt")
        if (file := pathlib.Path(path, name)).is_file()
    ]
    if len(transcripts) > 1:
        raise DataFileError(
            path, "expected one file of transcripts, received .tsv and .txt"
        )
    if transcripts:
        texts = _read_transcripts(transcripts[0], on_bad_lines, files)
    else:
        texts = {name: _parse_name(*files[name], name) for name in files}
    return [
        Recording(*_samples(*files[name]), text, speaker)
        for name, (text, speaker) in texts.items()
    ]


def read_wav(path: PathLike) -> tuple[np.ndarray, int]:
    """Reads a WAV file.

    The file must be PCM of 8, 16, 24 or 32 bits, mono or stereo, which is mixed
    to mono. Nothing is resampled.

    Args:
        path: str or `os.PathLike`. A WAV file.

    Returns:
        Samples, int16 (T,), and int: the sample rate, in Hz.

    Raises:
        DataFileError: the file cannot be read or has another format.

    Examples:
        >>> import pathlib, tempfile, wave
        >>> path = pathlib.Path(tempfile.mkdtemp(), "7.wav")
        >>> with wave.open(str(path), "wb") as file:
        ...     file.setparams((1, 2, 8000, 0, "NONE", ""))
        ...     file.writeframes(np.array([0, 100, -100], "<i2").tobytes())
        >>> samples, sample_rate = keras_attn.datasets.read_wav(path)
        >>> samples.tolist(), sample_rate
        ([0, 100, -100], 8000)
    """
    path = checks.path("path", path)
    return _samples(path, read_bytes(path))


def _wav_files(path):
    """Returns a dict of names without `.wav` to (path, content), sorted."""
    folder, found = pathlib.Path(path), {}
    # Not `Path.exists`, which raises for names that are too long.
    if not os.path.exists(path):
        raise DataFileError(path, "no such file or folder")
    for entry in sorted(folder.iterdir()) if folder.is_dir() else [folder]:
        name = entry.name.lower()
        if name.endswith(_ARCHIVES) or entry == folder:
            contents = read_tar(entry, _is_wav)
        elif _is_wav(entry) and entry.is_file():
            contents = [(entry, read_bytes(str(entry)))]
        else:
            continue
        for file, content in contents:
            if file.stem in found:
                reason = f"expected one {file.stem}.wav, received two"
                raise DataFileError(path, reason)
            found[file.stem] = str(file), content
    require(path, found, "WAV file, or an archive of some")
    return dict(sorted(found.items()))


def _is_wav(path):
    # macOS adds files `._name.wav` to archives, which are no WAV files.
    return path.suffix.lower() == ".wav" and not path.name.startswith(".")


def _read_transcripts(path, on_bad_lines, files):
    """Returns a dict of names without `.wav` to (text, speaker)."""
    file, texts = TextFile(path, on_bad_lines), {}
    for number, line in file:
        if line is None or not line.strip():
            continue
        if "\t" in line or path.suffix == ".tsv":
            name, *columns = line.split("\t")
        else:
            name, *columns = line.split(maxsplit=1)
        name = name.strip().removesuffix(".wav")
        text, speaker = (*map(str.strip, columns[:2]), "", "")[:2]
        if not text:
            expected = "`name<tab>text`"
        elif name not in files:
            expected = "the name of a WAV file"
        elif name in texts:
            expected = "one line per WAV file"
        else:
            texts[name] = text, speaker
            continue
        received = checks.shown(line)
        file.bad(number, f"expected {expected}, received {received}")
    return file.require(texts, "transcript")


def _parse_name(path, _, name):
    match = _DIGIT_NAME.fullmatch(name)
    if not match:
        raise DataFileError(
            path,
            "expected transcripts.tsv, transcripts.txt or a file name such as "
            f"7_jackson_32.wav, received {name}.wav",
        )
    return match[1], match[2]


def _samples(path, content):
    """Returns int16 samples (T,) and the sample rate of a WAV file."""
    # Python 3.11 takes these files for unknown.
    header = content.find(b"fmt ") + 8
    if content[header : header + 2] == _EXTENSIBLE:
        if content[header + 24 : header + 40] == _PCM:
            content = content[:header] + b"\x01\x00" + content[header + 2 :]
    try:
        with wave.open(io.BytesIO(content)) as file:
            channels, width = file.getnchannels(), file.getsampwidth()
            count, rate = file.getnframes(), file.getframerate()
            data = file.readframes(count)
    # RuntimeError: the size of a chunk is wrong.
    except (EOFError, RuntimeError, wave.Error) as error:
        problem = str(error) or "a corrupt one"
        reason = f"expected a PCM WAV file, received {problem}"
        raise DataFileError(path, reason) from error
    if channels > 2 or width > 4 or not rate:
        raise DataFileError(
            path,
            "expected mono or stereo of 8, 16, 24 or 32 bits, received "
            f"{channels} channels of {8 * width} bits at {rate} Hz",
        )
    if not count or len(data) != count * channels * width:
        raise DataFileError(
            path,
            f"expected {count or 'some'} samples, received "
            f"{len(data) // (channels * width)}",
        )
    if (channels, width) == (1, 2):
        return np.frombuffer(data, "<i2").astype("int16"), rate
    # The most significant bytes first, as those of an int32.
    raw = np.frombuffer(data, "uint8").reshape(-1, width)
    wide = np.zeros((len(raw), 4), "uint8")
    wide[:, 4 - width :] = raw ^ 128 if width == 1 else raw
    levels = wide.view("<i4").reshape(count, channels).mean(1) / 65536
    return np.clip(np.rint(levels), -32768, 32767).astype("int16"), rate
