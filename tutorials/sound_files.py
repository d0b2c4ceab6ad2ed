"""Sounds in wav files: read, written, and gathered from folders."""

import io
import pathlib
import tarfile
import wave

import numpy as np

_FULL = 32768  # of 16-bit samples


class SoundError(ValueError):
    """A sound that cannot be read; the message is one line for people."""


def read_wav(path, rate=8000):
    """Reads a wav file: one channel of 16-bit samples.

    Nothing is resampled: a recogniser that hears another rate than that of its
    training hears other pitches.

    Args:
        path: path of the file.
        rate: int. Samples a second that the file must have.

    Returns:
        Float32 (n,), in [-1, 1).

    Raises:
        SoundError: there is no such file, it is no wav file, or one of another
            rate, width or number of channels, or without a sample.
    """
    try:
        content = pathlib.Path(path).read_bytes()
    except FileNotFoundError as error:
        raise SoundError(f"There is no file {path}.") from error
    except OSError as error:
        raise SoundError(f"{path} cannot be read: {error.strerror}.") from error
    return _samples(path, content, rate)


def write_wav(path, samples, rate=8000):
    """Writes a wav file: one channel of 16-bit samples.

    Args:
        path: path of the file.
        samples: float (n,); what is beyond [-1, 1] is cut off.
        rate: int. Samples a second.

    Raises:
        ValueError: samples of another rank.
    """
    if np.ndim(samples) != 1:
        raise ValueError(
            f"`samples` must have one axis. Received: shape {np.shape(samples)}"
        )
    whole = np.round(np.asarray(samples, "float64") * _FULL)
    whole = np.clip(whole, -_FULL, _FULL - 1).astype("<i2")
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(whole.tobytes())


def read_sounds(path, rate=8000):
    """Reads all wav files of a folder or an archive.

    Args:
        path: path of a folder, of an archive (`.tar.gz`, `.tgz`, `.tar`), or
            of one wav file. Archives that lie in the folder are read, too;
            folders in it are not.
        rate: int. Samples a second that the files must have.

    Returns:
        Dict of file name, without folder and `.wav`, to float32 (n,); sorted
        by name.

    Raises:
        SoundError: a file that cannot be read, two of one name, or no wav file
            at all.
    """
    path, found = pathlib.Path(path), {}
    if path.is_dir():
        files = sorted(path.iterdir())
    else:
        files = [path]
    for file in files:
        name = file.name.lower()
        if name.endswith((".tar.gz", ".tgz", ".tar")):
            sounds = _unpacked(file, rate)
        elif name.endswith(".wav") or file == path:
            sounds = [(file.name, read_wav(file, rate))]
        else:
            continue
        for inside, samples in sounds:
            stem = pathlib.PurePosixPath(inside).stem
            if stem in found:
                raise SoundError(f"{path} holds two sounds named {stem}.wav.")
            found[stem] = samples
    if not found:
        raise SoundError(f"{path} holds no wav file, and no archive with any.")
    return dict(sorted(found.items()))


def _unpacked(path, rate):
    """Yields the names and the samples of the wav files in an archive."""
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                if member.isfile() and member.name.lower().endswith(".wav"):
                    content = archive.extractfile(member).read()
                    where = f"{member.name} in {path}"
                    yield member.name, _samples(where, content, rate)
    except FileNotFoundError as error:
        raise SoundError(f"There is no file {path}.") from error
    except (OSError, EOFError, tarfile.TarError) as error:
        raise SoundError(f"{path} cannot be unpacked: {error}.") from error


def _samples(path, content, rate):
    """Returns the samples of a wav file, given its bytes."""
    try:
        with wave.open(io.BytesIO(content)) as file:
            kind = file.getnchannels(), file.getsampwidth()
            found, data = (
                file.getframerate(),
                file.readframes(file.getnframes()),
            )
    except (wave.Error, EOFError) as error:
        raise SoundError(
            f"{path} is no wav file that can be read ({error or 'it ends'})."
        ) from error
    if kind != (1, 2):
        raise SoundError(
            f"{path} must have one channel of 16 bits. "
            f"Received: {kind[0]} of {8 * kind[1]} bits."
        )
    if found != rate:
        raise SoundError(
            f"{path} must have {rate:,} samples a second. Received: {found:,}."
        )
    if not data:
        raise SoundError(f"{path} holds no sample.")
    return np.frombuffer(data, "<i2").astype("float32") / _FULL
