"""A Transformer that says a question again, without its slip of the tongue."""

from typing import Any, NamedTuple

import keras
from copy_table import END, PAD, START, CopyTable
from length_batches import LengthBatches
from repairs import behind_the_cue, exact_match
from translation import bleu

from keras_attn.models import Transformer
from keras_attn.training import (
    CheckpointAverage,
    SequenceCrossentropy,
    TokenAccuracy,
    TrainingBackup,
    WarmupSchedule,
)

# Longer ones are not trained on, and nothing longer is said.
LONGEST = 48
BATCH = 64


class Repairer(NamedTuple):
    """Holds a model and its words.

    Args:
        model: `keras_attn.models.Transformer`.
        table: `CopyTable`.
    """

    model: Any
    table: Any

    def repair(self, sources):
        """Repairs questions.

        Args:
            sources: list of lists of str, in lower case.

        Returns:
            List of lists of str.
        """
        numbers = [self.table.numbers(words) for words in sources]
        rows = [
            [*self.table.encode(words, known), END]
            for words, known in zip(sources, numbers, strict=True)
        ]
        decoded = self.model.generate(rows, LONGEST, batch_size=BATCH)
        return [
            self.table.decode(ids.tolist(), known)
            for ids, known in zip(decoded.tokens[:, 0], numbers, strict=True)
        ]

    def save(self, folder):
        """Writes model and words to a folder."""
        self.model.save(folder / "repairer.keras")
        self.table.save(folder / "repairer.json")

    @classmethod
    def load(cls, folder):
        """Reads what `save` wrote."""
        model = keras.saving.load_model(
            folder / "repairer.keras", compile=False
        )
        return cls(model, CopyTable.load(folder / "repairer.json"))


def train_repairer(pairs, validation, run, settings):
    """Trains on pairs; `Transformer` reads a slip and writes the repair.

    Args:
        pairs: list of (disfluent, fluent), lists of str in lower case.
        validation: list of such pairs, to watch the loss of.
        run: `answers_settings.Settings`, of which the names with `repair_`.
        settings: dict. What a run must share with one it goes on from.

    Returns:
        `Repairer`, its training loss of each epoch and that on validation, and
        the `TrainingBackup`, to be removed when all is saved.
    """
    table = CopyTable.of_pairs(pairs, run.repair_words)
    batches, watched = (
        LengthBatches(
            part,
            list(map(_size, part)),
            BATCH,
            make,
            buckets=run.buckets,
            seed=run.seed,
        )
        for part, make in (
            ([pair for pair in pairs if _size(pair) <= LONGEST], table.batch),
            (
                [pair for pair in validation if _size(pair) <= LONGEST],
                lambda rows, length, draw: table.batch(rows, length),
            ),
        )
    )
    model = Transformer(
        table.vocabulary_size,
        num_layers=1 if run.quick else 2,
        num_heads=max(1, run.repair_width // 32),
        hidden_dim=run.repair_width,
        intermediate_dim=4 * run.repair_width,
        dropout=0.1,
        pad_id=PAD,
        start_id=START,
        end_id=END,
    )
    steps = len(batches) * run.repair_epochs
    schedule = WarmupSchedule(run.repair_width, max(1, min(400, steps // 5)))
    model.compile(
        keras.optimizers.Adam(schedule, beta_2=0.98, epsilon=1e-9),
        SequenceCrossentropy(label_smoothing=0.1),
        metrics=[TokenAccuracy()],
    )
    backup = TrainingBackup(
        run.out / "backup-repair",
        [
            CheckpointAverage(
                num_checkpoints=5, save_freq=max(1, len(batches) // 3)
            )
        ],
        save_freq=run.backup,
        data=batches,
        settings=settings,
        resume=not run.fresh,
    )
    history = model.fit(
        batches,
        epochs=run.repair_epochs,
        shuffle=False,  # the batches do it
        validation_data=watched,
        callbacks=[backup],
        verbose=2,
    ).history
    return Repairer(model, table), history, backup


def compare(sources, targets, repaired):
    """Scores repairs beside copying and a rule.

    Args:
        sources: list of lists of str, the disfluent questions.
        targets: list of lists of str, what was meant.
        repaired: list of lists of str, what the model said.

    Returns:
        Dict from "copied", "behind the cue" and "repaired" to dicts of
        "exact match" in [0, 1] and "BLEU". All in lower case, words apart by
        spaces; punctuation counts for BLEU alone.
    """
    ways = {
        "copied": sources,
        "behind the cue": list(map(behind_the_cue, sources)),
        "repaired": repaired,
    }
    references = [[" ".join(words)] for words in targets]
    return {
        name: {
            "exact match": exact_match(found, targets),
            "BLEU": bleu(list(map(" ".join, found)), references).score,
        }
        for name, found in ways.items()
    }


def _size(pair):
    """Returns how many ids a side needs at most, its end included."""
    return max(map(len, pair)) + 1
