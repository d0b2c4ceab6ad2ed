"""A recogniser: sounds in, texts out; saved to a folder and loaded."""

import json
import pathlib
from typing import Any, NamedTuple

import keras
import numpy as np
import sound_batches
import speech_model  # noqa: F401  (so that Keras can load such a model)
from letters import UNKNOWN, Letters
from log_mel import LogMel
from program_lines import saved_folder

from keras_attn.decoding import GreedySearch

_MODEL, _SOUND = "model.keras", "sound.json"
# Every token that is written is a character: so each has its own weights.
_SEARCH = GreedySearch(banned_tokens=[UNKNOWN])


class Transcriber(NamedTuple):
    """Holds all that is needed to write down what is heard.

    Args:
        model: `SpeechTransformer`.
        log_mel: `LogMel`, which makes its frames.
        letters: `Letters`, the characters it writes.
        lengths: tuple of int, ascending. Lengths in frames that sounds are
            padded to.
        longest: int. Most characters of a text, the end included.
    """

    model: Any
    log_mel: Any
    letters: Any
    lengths: tuple
    longest: int

    def __call__(self, sounds, batch_size=32):
        """Writes down sounds.

        Args:
            sounds: list of float (n,), samples at the rate of `log_mel`.
            batch_size: int. Sounds that are decoded together.

        Returns:
            List of str.

        Raises:
            ValueError: a sound that is too short.
        """
        return self.of_frames(self.log_mel(sounds), batch_size)

    def of_frames(self, frames, batch_size=32):
        """Writes down sounds whose frames are made already.

        Args:
            frames: list of float (F, bands).
            batch_size: int. Sounds that are decoded together.

        Returns:
            List of str.
        """
        groups = {}
        for number, sound in enumerate(frames):
            length = sound_batches.padded_length(len(sound), self.lengths)
            groups.setdefault(length, []).append(number)
        texts = [""] * len(frames)
        for length, numbers in sorted(groups.items()):
            rows = sound_batches.padded_frames(
                [frames[number] for number in numbers], length
            )
            decoded = self.model.generate(
                rows, self.longest, _SEARCH, batch_size=batch_size
            )
            for number, tokens in zip(numbers, decoded.tokens, strict=True):
                texts[number] = self.letters.decode(tokens[0])
        return texts

    def heard(self, frames):
        """Writes down a few sounds, and says where it heard each character.

        Args:
            frames: list of float (F, bands).

        Returns:
            List of tuple: text, and float32 (M, N, characters, S), the weights
            of the M layers and N heads over the S vectors of the sound. The
            number of characters counts the end.
        """
        longest = max(map(len, frames))
        length = sound_batches.padded_length(longest, self.lengths)
        rows = sound_batches.padded_frames(frames, length)
        decoded = self.model.generate(
            rows, self.longest, _SEARCH, return_weights=True
        )
        found = []
        for row, sound in enumerate(frames):
            size = int(decoded.lengths[row, 0])
            vectors = -(-len(sound) // 4)
            weights = decoded.weights[row, 0, :, :, :size, :vectors]
            found.append((self.letters.decode(decoded.tokens[row, 0]), weights))
        return found

    def seconds(self, vectors):
        """Returns the times of vectors of the memory, by their numbers."""
        return self.log_mel.seconds(4 * np.asarray(vectors))

    def save(self, folder):
        """Writes the model and what belongs to it to a folder."""
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self.model.save(folder / _MODEL)
        content = {
            "characters": self.letters.characters,
            "log_mel": self.log_mel.get_config(),
            "lengths": list(self.lengths),
            "longest": self.longest,
        }
        text = json.dumps(content, indent=1, ensure_ascii=False)
        (folder / _SOUND).write_text(text, encoding="utf-8")

    @classmethod
    def load(cls, folder):
        """Reads what `save` wrote.

        Raises:
            ValueError: there is no model in the folder.
        """
        folder = saved_folder(folder, _MODEL, _SOUND)
        content = json.loads((folder / _SOUND).read_text(encoding="utf-8"))
        return cls(
            keras.saving.load_model(folder / _MODEL, compile=False),
            LogMel(**content["log_mel"]),
            Letters(content["characters"]),
            tuple(content["lengths"]),
            content["longest"],
        )
