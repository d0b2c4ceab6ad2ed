"""Perplexity, memory and decoding speed of a GPT with a cache of 8 bits.

    python -m benchmarks.cache_quantization [--epochs N] [--rounds N]

A GPT over characters, trained on the prose of this project, of which a
twentieth of the paragraphs is held out. Each held-out character is predicted by
a cached step.
"""

import argparse
import datetime
import statistics
import time

import keras
import numpy as np
from keras import ops, tree

from benchmarks.quantization import text
from keras_attn import cache as kv
from keras_attn.backend import no_gradients
from tools import character_gpt
from tools.tutorials import facts


def main(arguments=None):
    """Prints the table."""
    parser = argparse.ArgumentParser(
        description="Compares caches of float32 and int8."
    )
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--characters", type=int, help="of the text; all")
    options = parser.parse_args(arguments)
    used, held = text(options.characters)
    keras.utils.set_random_seed(character_gpt.SEED)
    model = character_gpt.make_model(character_gpt.SIZES)
    if options.epochs:
        character_gpt.fit(model, used, options.epochs)
    length = character_gpt.LENGTH
    rows = held[: held.size // length * length].reshape(-1, length)
    print(
        f"{facts.cpu()}, {facts.cores()} cores, "
        f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}, Keras "
        f"{keras.__version__} on {keras.backend.backend()}, {rows.size} "
        f"held-out characters\n"
    )
    print("| cache | perplexity | bytes | decoding, CPU ms/token |")
    print("| --- | --- | --- | --- |")
    for dtype in None, "int8":
        loss, nbytes = cached_loss(model, rows, dtype)
        speed = milliseconds(
            model,
            rows[:1, : length // 8],
            options.tokens,
            options.rounds,
            dtype,
        )
        print(
            f"| {dtype or 'float32'} | {np.exp(loss):.4f} | {nbytes:,} | "
            f"{speed:.2f} |",
            flush=True,
        )


def cached_loss(model, rows, cache_dtype):
    """Returns nats per character in cached steps, and the cache's bytes."""
    tokens = ops.convert_to_tensor(rows)
    count = rows.shape[1] - 1
    total = 0.0
    with no_gradients():
        state = model.start_decoding(tokens[:, :1], count)
        if cache_dtype is not None:
            state = state._replace(hypothesis=kv.quantized(state.hypothesis))
        for index in range(count):
            step = tokens[:, index : index + 1]
            logits, state = model.decode_step(step, state)
            chosen = ops.take_along_axis(
                ops.log_softmax(logits[:, 0]),
                tokens[:, index + 1 : index + 2],
                axis=1,
            )
            total -= float(ops.sum(chosen))
    parts = tree.flatten((state.hypothesis.keys, state.hypothesis.values))
    nbytes = sum(ops.convert_to_numpy(part).nbytes for part in parts)
    return total / (count * len(rows)), nbytes


def milliseconds(model, prompt, tokens, rounds, cache_dtype):
    """Returns the CPU time per generated token of one sequence, the median.

    Unlike the time on the clock, it hardly depends on other processes.
    """
    seconds = []
    for _ in range(rounds + 1):
        start = time.process_time()
        model.generate(
            prompt, max_new_tokens=tokens, cache_dtype=cache_dtype, verbose=0
        )
        seconds.append(time.process_time() - start)
    # Without the first, which compiles.
    return 1000 * statistics.median(seconds[1:]) / tokens


if __name__ == "__main__":
    main()
