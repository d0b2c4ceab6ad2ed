"""Time and memory of loading a BERT-large, against transformers.

    python -m benchmarks.checkpoint_loading [--only NAME ...]

A folder with random weights is written first, so that the files are in the disk
cache. Each load runs in its own process, and the contestants take turns; the
table has medians. Memory is anonymous memory (RssAnon, Linux only): its peak
while loading minus its value before, divided by the size of the weights.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time

BACKENDS = "tensorflow", "jax", "torch"
CONTESTANTS = *BACKENDS, "transformers"
_EVERY = 0.002  # seconds between two looks at the memory


def main(arguments=None):
    """Prints a table of the contestants."""
    parser = argparse.ArgumentParser(
        description="Compares pretrained.load with transformers."
    )
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=CONTESTANTS)
    parser.add_argument("--load", type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--contestant", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.load:
        print(json.dumps(measure(options.load, options.contestant)))
        return
    with tempfile.TemporaryDirectory() as folder:
        size = write(folder, options.layers, options.width)
        found = {name: [] for name in options.only or CONTESTANTS}
        for number in range(options.rounds):
            for name, results in found.items():
                print(f"round {number + 1}: {name}", file=sys.stderr)
                results.append(run(folder, name))
    print(f"{size / 1e9:.2f} GB of float32 weights\n")
    print("| loaded with | seconds | peak memory / weights |")
    print("| --- | ---: | ---: |")
    for name, results in found.items():
        seconds, peak = map(statistics.median, zip(*results, strict=True))
        title = name if name == "transformers" else f"keras_attn on {name}"
        print(f"| {title} | {seconds:.1f} | {peak / size:.2f} |")


def write(folder, layers, width):
    """Writes a BERT with random weights; returns the size of the weights."""
    import torch
    import transformers

    torch.manual_seed(0)
    config = transformers.BertConfig(
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=max(1, width // 64),
        intermediate_size=4 * width,
    )
    model = transformers.BertModel(config)
    model.save_pretrained(folder)
    return sum(4 * weight.numel() for weight in model.parameters())


def run(folder, name):
    """Returns seconds and bytes of a contestant, in a new process."""
    program = [sys.executable, "-m", "benchmarks.checkpoint_loading"]
    backend = name if name in BACKENDS else "torch"
    result = subprocess.run(
        [*program, "--load", str(folder), "--contestant", name],
        env=os.environ | {"KERAS_BACKEND": backend},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return json.loads(result.stdout.splitlines()[-1])


def measure(folder, name):
    """Loads a folder; returns seconds and the growth of anonymous memory."""
    load = prepared(name)
    before = peak = anonymous()
    done = threading.Event()

    def watch():
        nonlocal peak
        while not done.wait(_EVERY):
            peak = max(peak, anonymous())

    watcher = threading.Thread(target=watch)
    watcher.start()
    begin = time.perf_counter()
    model = load(folder)
    seconds = time.perf_counter() - begin
    done.set()
    watcher.join()
    # The model is alive until here.
    del model
    return seconds, peak - before


def prepared(name):
    """Returns the function that loads, after its imports and a first step."""
    if name == "transformers":
        import torch
        from transformers import BertModel

        torch.ones(2, 2) @ torch.ones(2, 2)
        return BertModel.from_pretrained
    import keras

    from keras_attn import pretrained

    x = keras.ops.ones((2, 2))
    keras.ops.convert_to_numpy(keras.ops.matmul(x, x))
    return pretrained.load


def anonymous():
    """Returns the anonymous resident memory of this process, in bytes."""
    status = pathlib.Path("/proc/self/status").read_text()
    (line,) = (x for x in status.splitlines() if x.startswith("RssAnon:"))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    main()
