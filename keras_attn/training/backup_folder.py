"""The folder with the last two checkpoints of a run."""

import pathlib
import warnings
from typing import Any

from keras_attn.atomic_files import clear_partial, writable_folder
from keras_attn.training.backup_checks import check_entries
from keras_attn.training.state_file import UNREADABLE, read_state, write_state
from keras_attn.typing import Nest, PathLike

_KEPT = 2
_PATTERN = "after-*-batches.npz"


class BackupFolder:
    """A folder with the last two checkpoints of a run.

    A checkpoint is one file, `after-<epochs>-epochs-<batches>-batches.npz`,
    written atomically. The previous one is kept in case the newest cannot be
    read.

    Args:
        path: path of the folder; created if missing.
        writes: bool. False in all but one of the processes that use the folder:
            `open`, `write` and `remove` then change nothing.

    Raises:
        ValueError: the folder is not writable.
    """

    def __init__(self, path: PathLike, writes: bool = True) -> None:
        self.path: pathlib.Path = pathlib.Path(path)
        self._writes = writes
        self._good = []
        self.open()

    def open(self) -> None:
        """Creates the folder and checks that it is writable.

        Raises:
            ValueError: it is not.
        """
        if not self._writes:
            return
        writable_folder("directory", self.path)
        clear_partial(self.path, _PATTERN)

    def newest(self) -> tuple[Any, Any]:
        """Reads the newest readable checkpoint.

        Returns:
            Its path and its state; None, None if there is no checkpoint.

        Raises:
            ValueError: there are checkpoints, but none can be read.
        """
        unreadable = []
        for path in sorted(self.path.glob(_PATTERN), reverse=True):
            try:
                state = read_state(path)
                check_entries(state)
            except UNREADABLE as error:
                unreadable.append(f"{path} cannot be read ({error})")
                continue
            if unreadable:
                warnings.warn(
                    f"TrainingBackup: {' and '.join(unreadable)}; training "
                    f"resumes from {path}, the previous checkpoint.",
                    stacklevel=3,
                )
            self._good = [path]
            return path, state
        if unreadable:
            raise ValueError(
                "`directory` must hold a readable checkpoint or none. "
                f"Received: {' and '.join(unreadable)}; `resume=False` starts "
                "from scratch"
            )
        self._good = []
        return None, None

    def write(self, epochs: int, batches: int, state: Nest) -> None:
        """Writes a checkpoint and removes all but the last two.

        Args:
            epochs: int. Completed epochs.
            batches: int. Completed batches of the next epoch.
            state: nest for `write_state`.

        Raises:
            OSError: it cannot be written. The existing ones are kept.
        """
        if not self._writes:
            return
        # Zero-padded, so that the newest comes last by name.
        name = f"after-{epochs:06d}-epochs-{batches:09d}-batches.npz"
        path = self.path / name
        write_state(path, state)
        self._good = [*(p for p in self._good if p != path), path][-_KEPT:]
        for other in self.path.glob(_PATTERN):
            # Unreadable ones are removed as well.
            if other not in self._good:
                other.unlink(missing_ok=True)

    def last(self) -> PathLike | None:
        """Returns the path of the newest checkpoint of this run, or None."""
        return self._good[-1] if self._good else None

    def remove(self) -> None:
        """Removes the checkpoints, and the folder if it is then empty."""
        self._good = []
        if not self._writes:
            return
        for path in self.path.glob(_PATTERN):
            path.unlink(missing_ok=True)
        clear_partial(self.path, _PATTERN)
        if self.path.is_dir() and not any(self.path.iterdir()):
            self.path.rmdir()
