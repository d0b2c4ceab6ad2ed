"""Time and memory of training steps with a large vocabulary.

    python -m benchmarks.large_vocabulary [--vocabulary V] [--only BACKEND ...]

A GPT takes steps of `train_on_batch` with SGD. The contestants are our loss of
hidden states, which never holds all logits; our loss of logits; and Keras's
`SparseCategoricalCrossentropy`. Each runs in its own process, and they take
turns; the table has medians. Memory is anonymous memory (RssAnon, Linux with
glibc): its peak during the steps minus its value between them, minus the
gradients.
"""

import argparse
import ctypes
import json
import os
import statistics
import subprocess
import sys
import threading
import time

from benchmarks.checkpoint_loading import anonymous

BACKENDS = "tensorflow", "jax", "torch"
CONTESTANTS = {
    "hidden states": "keras_attn, loss of hidden states",
    "logits": "keras_attn, loss of logits",
    "keras": "Keras's loss of logits",
}
_EVERY = 0.002  # seconds between two looks at the memory


def main(arguments=None):
    """Prints a table of the contestants."""
    parser = argparse.ArgumentParser(
        description="Compares losses of a large vocabulary."
    )
    parser.add_argument("--vocabulary", type=int, default=50257)
    parser.add_argument("--rows", type=int, default=8)
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=BACKENDS, default=BACKENDS)
    parser.add_argument("--contestant", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.contestant:
        print(json.dumps(measure(options)))
        return
    print(
        f"V = {options.vocabulary:,}, {options.rows} x {options.length} "
        f"tokens, width {options.width}, {options.layers} layers\n"
    )
    print("| backend | loss | seconds per step | ratio | MiB | ratio |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    for backend in options.only:
        found = {name: [] for name in CONTESTANTS}
        for number in range(options.rounds):
            for name, results in found.items():
                print(f"{backend}, round {number + 1}: {name}", file=sys.stderr)
                results.append(run(backend, name, arguments))
        medians = {
            name: [*map(statistics.median, zip(*results, strict=True))]
            for name, results in found.items()
        }
        for name, (seconds, peak) in medians.items():
            base = medians["logits"]
            print(
                f"| {backend} | {CONTESTANTS[name]} | {seconds:.3f} | "
                f"{seconds / base[0]:.2f} | {peak / 2**20:.0f} | "
                f"{peak / base[1]:.2f} |"
            )


def run(backend, name, arguments):
    """Returns seconds and bytes of a contestant, in a new process."""
    given = sys.argv[1:] if arguments is None else arguments
    program = [sys.executable, "-m", "benchmarks.large_vocabulary"]
    result = subprocess.run(
        [*program, *given, "--contestant", name],
        env=os.environ | {"KERAS_BACKEND": backend},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return json.loads(result.stdout.splitlines()[-1])


def measure(options):
    """Trains; returns the seconds of a step and the growth of memory."""
    import keras
    import numpy as np

    from keras_attn.models import GPT, chunked_loss
    from keras_attn.training import SequenceCrossentropy

    chunked_loss.LEAST_VOCABULARY = (
        0 if options.contestant == "hidden states" else sys.maxsize
    )
    loss = SequenceCrossentropy(pad_id=-1)
    if options.contestant == "keras":
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model = GPT(
        options.vocabulary,
        options.layers,
        max(1, options.width // 64),
        options.width,
        max_sequence_length=options.length,
        pad_id=None,
    )
    model.compile(keras.optimizers.SGD(1e-3), loss)
    ids = np.random.default_rng(0).integers(
        options.vocabulary, size=(options.rows, options.length + 1)
    )
    batch = ids[:, :-1].astype("int32"), ids[:, 1:].astype("int32")

    def step():
        begin = time.perf_counter()
        loss = model.train_on_batch(*batch)
        assert np.isfinite(loss).all()
        return time.perf_counter() - begin

    step()
    if keras.backend.backend() == "torch":
        model.zero_grad()
    # What the first step freed would hide what the others take.
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    before = peak = anonymous()
    done = threading.Event()

    def watch():
        nonlocal peak
        while not done.wait(_EVERY):
            peak = max(peak, anonymous())

    watcher = threading.Thread(target=watch)
    watcher.start()
    seconds = [step() for _ in range(options.steps)]
    done.set()
    watcher.join()
    gradients = 4 * sum(int(np.prod(w.shape)) for w in model.trainable_weights)
    return statistics.median(seconds), max(0, peak - before - gradients)


if __name__ == "__main__":
    main()
