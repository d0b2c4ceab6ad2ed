"""Writes down wav files with a saved model."""

import pathlib
import sys

import sound_files
from transcription import Transcriber


def run(folder, path=""):
    """Loads a model and prints what it hears in each wav file.

    Args:
        folder: path of the folder that a training wrote.
        path: a wav file, or a folder or an archive of them, each printed as
            `name<tab>text`; empty: names of wav files are read from the
            keyboard.

    Raises:
        ValueError: no model in the folder, or a sound that cannot be read.
    """
    transcriber = Transcriber.load(folder)
    rate = transcriber.log_mel.rate
    if path and pathlib.Path(path).suffix.lower() == ".wav":
        print(transcriber([sound_files.read_wav(path, rate)])[0])
        return
    if path:
        sounds = sound_files.read_sounds(path, rate)
        texts = transcriber(list(sounds.values()))
        for name, text in zip(sounds, texts, strict=True):
            print(f"{name}\t{text}")
        return
    if sys.stdin.isatty():
        print("Type the name of a wav file and press Enter; Ctrl-D ends.")
    for line in sys.stdin:
        if not line.strip():
            continue
        try:
            print(transcriber([sound_files.read_wav(line.strip(), rate)])[0])
        except ValueError as error:
            # Another name may be typed.
            print(error, file=sys.stderr)
        sys.stdout.flush()
