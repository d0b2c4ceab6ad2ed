"""Trains `examples/translate.py`; keeps its weights at some moments."""

import argparse
import pathlib
import runpy
import sys
import time
import types

from keras_attn import training
from keras_attn.datasets import read_lines
from keras_attn.training import training_progress

PROGRAM = pathlib.Path(__file__).parents[2] / "examples/translate.py"
MARKS = (15, 30, 60)  # minutes of processor time


class Marked(training.CheckpointAverage):
    """Saves the average of the checkpoints at each mark.

    The marks after an early stop get the final weights.
    """

    folder, marks = None, ()

    def on_train_begin(self, logs=None):
        """Starts the clock."""
        super().on_train_begin(logs)
        self.start = time.process_time()

    def on_train_batch_end(self, batch, logs=None):
        """Saves the averaged weights if a mark has passed."""
        super().on_train_batch_end(batch, logs)
        while self.marks and self._minutes() >= self.marks[0]:
            self.apply()
            self._save()
            self.restore()

    def on_train_end(self, logs=None):
        """Saves the best average for the marks that are left."""
        super().on_train_end(logs)
        if self.marks:
            print(f"Stopped after {self._minutes():.1f} minutes.")
        while self.marks:
            self._save()

    def _minutes(self):
        return (time.process_time() - self.start) / 60

    def _save(self):
        mark, *Marked.marks = self.marks
        self.model.save_weights(self.folder / f"ours-{mark}.weights.h5")


def main():
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--marks", type=int, nargs="+", default=MARKS)
    arguments, options = parser.parse_known_args()
    folder, marks = arguments.folder, tuple(arguments.marks)
    Marked.folder, Marked.marks = folder, marks
    training.CheckpointAverage = Marked
    # The time limit counts processor time too.
    training_progress.time = types.SimpleNamespace(monotonic=time.process_time)
    out = folder / "ours"
    sys.argv = [
        *(str(PROGRAM), "train", "--data", str(folder / "pairs.tsv")),
        # One batch more, so that the last mark passes.
        *("--minutes", str(marks[-1] + 0.2), "--out", str(out), *options),
    ]
    program = runpy.run_path(str(PROGRAM), run_name="__main__")
    same = (folder / "subwords.model").read_bytes()
    assert (out / "tokenizer.model").read_bytes() == same
    translator = program["Translator"].load(out, num_beams=4)
    sources = read_lines(folder / "test.source")
    for mark in marks:
        translator.model.load_weights(folder / f"ours-{mark}.weights.h5")
        lines = [f"{line}\n" for line in translator.translate(sources)]
        path = folder / f"ours-{mark}.txt"
        path.write_text("".join(lines), encoding="utf-8")
        print(f"Wrote {path}")


if __name__ == "__main__":
    main()
