"""A recogniser: sounds in, texts out; saved to a folder and loaded."""

import json
import pathlib
from typing import Any, NamedTuple

import keras
import numpy as np
import sound_batches
import speech_model  # noqa: F401  (so that Keras can load such a model)
from joint_choice import propose
from letters import PAD, Letters
from log_mel import LogMel
from program_lines import saved_folder

_MODEL, _SOUND = "model.keras", "sound.json"


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

    def __call__(self, sounds, by="both", batch_size=32):
        """Writes down sounds.

        Args:
            sounds: list of float (n,), samples at the rate of `log_mel`.
            by: who chooses the texts; see `joint_choice.Proposals.choose`.
            batch_size: int. Sounds that are looked at together.

        Returns:
            List of str.

        Raises:
            ValueError: a sound that is too short, or no such `by`.
        """
        return self.ways(sounds, [by], batch_size)[by]

    def ways(self, sounds, ways, batch_size=32):
        """Writes down sounds in several ways at once.

        Args:
            sounds: list of float (n,), samples at the rate of `log_mel`.
            ways: list of str; see `joint_choice.Proposals.choose`.
            batch_size: int. Sounds that are looked at together.

        Returns:
            Dict from each way to a list of str.

        Raises:
            ValueError: a sound that is too short, or no such way.
        """
        frames, groups = self.log_mel(sounds), {}
        for number, sound in enumerate(frames):
            length = sound_batches.padded_length(len(sound), self.lengths)
            groups.setdefault(length, []).append(number)
        texts = {way: [""] * len(frames) for way in ways}
        for length, numbers in sorted(groups.items()):
            for first in range(0, len(numbers), batch_size):
                part = numbers[first : first + batch_size]
                # A batch that is not full is filled up: one shape for all.
                filled = np.resize(part, min(batch_size, len(numbers)))
                rows = sound_batches.padded_frames(
                    [frames[number] for number in filled], length
                )
                proposed = propose(self.model, rows, self.longest)
                for way, found in texts.items():
                    for number, ids in zip(
                        part, proposed.choose(way), strict=False
                    ):
                        found[number] = self.letters.decode(ids)
        return texts

    def heard(self, frames):
        """Writes down a few sounds, and says where it heard each character.

        Args:
            frames: list of float (F, bands).

        Returns:
            List of tuple: text, and float32 (M, N, characters, S), the weights
            of the M layers and N heads of the decoder over the S vectors of the
            sound. The number of characters counts the end.
        """
        longest = max(map(len, frames))
        length = sound_batches.padded_length(longest, self.lengths)
        rows = sound_batches.padded_frames(frames, length)
        tokens = propose(self.model, rows, self.longest).choose()
        sizes = (tokens != PAD).sum(1).astype("int32")
        all_weights = self.model.align(rows, tokens[:, None], sizes[:, None])
        all_weights = keras.ops.convert_to_numpy(all_weights)
        found = []
        for row, sound in enumerate(frames):
            vectors = -(-len(sound) // 4)
            weights = all_weights[row, 0, :, :, : sizes[row], :vectors]
            found.append((self.letters.decode(tokens[row]), weights))
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
