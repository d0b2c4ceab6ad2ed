"""A folder that holds the last two checkpoints of a run."""

import pathlib
import warnings

from keras_attn.atomic_files import clear_partial, writable_folder
from keras_attn.training.state_file import UNREADABLE, read_state, write_state

_KEPT = 2
_PATTERN = "after-*-batches.npz"


class BackupFolder:
    """Keeps the last two checkpoints of a run, newest first to be read.

    A checkpoint is one file, `after-<epochs>-epochs-<batches>-batches.npz`,
    whole at any moment. The one before stays until the next but one is there,
    for the day on which the disk cannot give the newest back.

    Args:
        path: path of the folder; made if missing.

    Raises:
        ValueError: nothing can be written there.
    """

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self._good = []
        self.open()

    def open(self):
        """Makes the folder and sees whether it can be written to.

        Raises:
            ValueError: it cannot.
        """
        writable_folder("directory", self.path)
        clear_partial(self.path, _PATTERN)

    def newest(self):
        """Reads the newest checkpoint that can be read.

        Returns:
            Its path and its state; None, None where there is no checkpoint.

        Raises:
            ValueError: there are checkpoints, and none can be read.
        """
        unreadable = []
        for path in sorted(self.path.glob(_PATTERN), reverse=True):
            try:
                state = read_state(path)
            except UNREADABLE as error:
                unreadable.append(f"{path} cannot be read ({error})")
                continue
            if unreadable:
                warnings.warn(
                    f"TrainingBackup: {' and '.join(unreadable)}; training "
                    f"goes on from {path}, the checkpoint before.",
                    stacklevel=3,
                )
            self._good = [path]
            return path, state
        if unreadable:
            raise ValueError(
                "`directory` must hold a checkpoint that can be read, or none. "
                f"Received: {' and '.join(unreadable)}; `resume=False` starts "
                "anew"
            )
        self._good = []
        return None, None

    def write(self, epochs, batches, state):
        """Writes a checkpoint and removes all but the last two.

        Args:
            epochs: int. Epochs that are over.
            batches: int. Batches of the next epoch that were trained on.
            state: nest that `write_state` takes.

        Raises:
            OSError: it cannot be written. Those that are there stay.
        """
        # Padded with zeros, so that the newest comes last by name.
        name = f"after-{epochs:06d}-epochs-{batches:09d}-batches.npz"
        path = self.path / name
        write_state(path, state)
        self._good = [*(p for p in self._good if p != path), path][-_KEPT:]
        for other in self.path.glob(_PATTERN):
            # One that could not be read goes as well.
            if other not in self._good:
                other.unlink(missing_ok=True)

    def last(self):
        """Returns the path of the newest checkpoint of this run, or None."""
        return self._good[-1] if self._good else None

    def remove(self):
        """Removes the checkpoints, and the folder where it is empty then."""
        for path in self.path.glob(_PATTERN):
            path.unlink(missing_ok=True)
        clear_partial(self.path, _PATTERN)
        self._good = []
        if self.path.is_dir() and not any(self.path.iterdir()):
            self.path.rmdir()
