"""A tiny training to be killed: `python -m tools.endurance.training`.

A Transformer with dropout on batches of text, with a backup in `folder`. Prints
`step` after each step and finally writes its weights to `result`, an `.npz`.
"""

import os
import pathlib
import sys
import time

import keras
import numpy as np

from keras_attn.models import Transformer
from keras_attn.text import token_batches
from keras_attn.training import (
    CheckpointAverage,
    SequenceCrossentropy,
    TokenAccuracy,
    TrainingBackup,
    WarmupSchedule,
)

EPOCHS, STEPS = 3, 12
# Makes checkpoints large enough to be killed during a write.
BALLAST = 48 << 20


class Digits:
    """A tokenizer of digits."""

    pad_id, start_id, end_id, vocabulary_size = 0, 1, 2, 13

    def encode(self, texts):
        """Returns the ids of texts."""
        return [[int(digit) + 3 for digit in text] for text in texts]


class Steps(keras.callbacks.Callback):
    """Prints and records every step; has a large state."""

    def __init__(self, ballast, pause):
        super().__init__()
        self.losses = []
        self.ballast = np.zeros(ballast, "uint8")
        self.pause = pause

    def on_train_batch_end(self, batch, logs=None):
        """Records a step."""
        self.losses.append(float(logs["loss"]))
        time.sleep(self.pause)
        print("step", len(self.losses), flush=True)

    def get_state(self):
        """Returns what a checkpoint has to contain."""
        return {"losses": self.losses, "ballast": self.ballast}

    def set_state(self, state):
        """Takes the state of a checkpoint."""
        self.losses = list(state["losses"])


def train(folder, result, ballast=BALLAST, pause=0.02):
    """Trains, or resumes a training.

    Args:
        folder: `pathlib.Path` of the backup.
        result: `pathlib.Path` of the result.
        ballast: int. Bytes that enlarge each checkpoint.
        pause: float. Seconds between two steps.

    Returns:
        The `TrainingBackup`.
    """
    keras.utils.set_random_seed(1)
    random = np.random.default_rng(0)
    source = ["".join(map(str, random.integers(0, 10, 5))) for _ in range(96)]
    target = [text[::-1] for text in source]
    data = token_batches(
        source, target, Digits(), tokens_per_batch=48, buckets=1
    )
    assert data.report.batches == STEPS
    model = Transformer(
        13,
        num_layers=1,
        num_heads=2,
        hidden_dim=16,
        intermediate_dim=32,
        dropout=0.3,
    )
    model.compile(
        keras.optimizers.Adam(WarmupSchedule(16, 20)),
        SequenceCrossentropy(label_smoothing=0.1),
        metrics=[TokenAccuracy()],
    )
    steps = Steps(ballast, pause)
    average = CheckpointAverage(num_checkpoints=3, save_freq=5)
    backup = TrainingBackup(folder, [steps, average], save_freq=4, data=data)
    history = model.fit(
        data, epochs=EPOCHS, shuffle=False, callbacks=[backup], verbose=2
    )
    averaged = weights(model)
    average.restore()
    found = {f"averaged {k}": v for k, v in averaged.items()}
    found |= {f"trained {k}": v for k, v in weights(model).items()}
    found |= {
        f"optimizer {i}": keras.ops.convert_to_numpy(v.value)
        for i, v in enumerate(model.optimizer.variables)
    }
    found |= {f"history {k}": np.array(v) for k, v in history.history.items()}
    partial = f"{result}.partial.npz"
    np.savez(partial, losses=np.array(steps.losses), **found)
    os.replace(partial, result)
    return backup


def weights(model):
    """Returns copies of all variables, as a dict of arrays."""
    return {
        # Not by path: Keras numbers the layers of a process.
        f"{i} {v.name}": keras.ops.convert_to_numpy(v.value).copy()
        for i, v in enumerate(model.variables)
    }


if __name__ == "__main__":
    folder, result, *numbers = sys.argv[1:]
    train(pathlib.Path(folder), pathlib.Path(result), *map(int, numbers))
