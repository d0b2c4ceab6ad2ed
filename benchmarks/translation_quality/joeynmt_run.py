"""Trains JoeyNMT; keeps its weights at some moments, and translates.

Runs in JoeyNMT's own environment, and so imports nothing of this library.
"""

import argparse
import pathlib
import sys
import time

import torch
from joeynmt import training
from joeynmt.__main__ import main as joeynmt

MARKS = (15, 30, 60)  # minutes of processor time
CONFIG = pathlib.Path(__file__).with_name("joeynmt.yaml")


class _Ended(Exception):
    """Raised when the last mark has passed."""


def main():
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--marks", type=int, nargs="+", default=MARKS)
    arguments = parser.parse_args()
    folder, marks = arguments.folder.resolve(), list(arguments.marks)
    torch.set_num_threads(1)
    text = CONFIG.read_text(encoding="utf-8").replace("FOLDER", str(folder))
    config = folder / "joeynmt.yaml"
    config.write_text(text, encoding="utf-8")
    trained = training.TrainManager._train_step
    start, waiting = None, list(marks)

    def step(manager, batch):
        nonlocal start
        start = time.process_time() if start is None else start
        while (time.process_time() - start) / 60 >= waiting[0]:
            path = folder / f"joeynmt-{waiting.pop(0)}.ckpt"
            torch.save({"model_state": manager.model.state_dict()}, path)
            stats = manager.stats
            print(f"{path}: {stats.steps} updates, {stats.total_tokens} tokens")
            if not waiting:
                raise _Ended
        return trained(manager, batch)

    training.TrainManager._train_step = step
    try:
        sys.argv = ["joeynmt", "train", str(config)]
        joeynmt()
    except _Ended:
        pass
    for mark in marks:
        out = folder / f"joeynmt-{mark}"
        load = f'testing:\n  load_model: "{out}.ckpt"\n'
        config.write_text(text.replace("testing:\n", load), encoding="utf-8")
        sys.argv = ["joeynmt", "test", str(config), "--output-path", str(out)]
        joeynmt()
        pathlib.Path(f"{out}.test").rename(f"{out}.txt")


if __name__ == "__main__":
    main()
