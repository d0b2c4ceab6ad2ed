"""Perplexity, memory and decoding speed of a GPT in each quantization mode.

    python -m benchmarks.quantization [--epochs N] [--rounds N] [--modes NAMES]

The GPT over characters of the site, trained further in float32 because its
published weights are already rounded. A twentieth of the text is held out.
GPTQ and AWQ are calibrated on training text.
"""

import argparse
import datetime
import json
import pathlib
import statistics
import time

import keras
import numpy as np

from tools import character_gpt
from tools.diagrams import ROOT
from tools.tutorials import facts

DATA = ROOT / "docs/assets/js/figures/data/character_gpt.js"
MODES = "float32", "int8", "int4", "gptq", "awq", "float8"
LINEAR = keras.layers.Dense, keras.layers.EinsumDense
RATE = 3e-4


def main(arguments=None):
    """Prints the table."""
    parser = argparse.ArgumentParser(
        description="Quantizes a small trained GPT in each mode."
    )
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--samples", type=int, default=64)
    parser.add_argument("--characters", type=int, help="of the text; all")
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--data", type=pathlib.Path, default=DATA)
    options = parser.parse_args(arguments)
    used, held = text(options.characters)
    model = trained(options.data, used, options.epochs)
    print(
        f"{facts.cpu()}, {facts.cores()} cores, "
        f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}, Keras "
        f"{keras.__version__} on {keras.backend.backend()}, "
        f"{held.size} held-out characters\n"
    )
    print("| mode | perplexity | weights, bytes | decoding, CPU ms/token |")
    print("| --- | --- | --- | --- |")
    for mode in options.modes.split(","):
        one = quantized(model, mode, used, options.samples)
        loss = character_gpt.test_loss(compiled(one), held)
        speed = milliseconds(one, held, options.tokens, options.rounds)
        print(
            f"| {mode} | {np.exp(loss):.3f} | {nbytes(one):,} | {speed:.2f} |",
            flush=True,
        )


def text(characters=None):
    """Returns the ids to train on and those held out, as for the site."""
    lines = character_gpt.prose()[:characters].splitlines(keepends=True)
    np.random.default_rng(character_gpt.SEED).shuffle(lines)
    cut = len(lines) // 20
    parts = lines[cut:], lines[:cut]
    return [character_gpt.encode("".join(part)) for part in parts]


def trained(path, ids, epochs):
    """Returns the model of the site, trained further."""
    content = path.read_text("utf-8").partition(" = ")[2]
    data = json.loads(content.strip().removesuffix(";"))
    keras.utils.set_random_seed(character_gpt.SEED)
    model = compiled(character_gpt.load(data))
    blocks = character_gpt.token_blocks(
        ids,
        character_gpt.LENGTH,
        character_gpt.BATCH,
        seed=character_gpt.SEED,
    )
    if epochs:
        model.fit(blocks, epochs=epochs, shuffle=False, verbose=2)
    return model


def compiled(model):
    """Returns a model that can be trained and evaluated."""
    model.compile(
        keras.optimizers.Adam(RATE),
        character_gpt.SequenceCrossentropy(pad_id=-1),
    )
    return model


def quantized(model, mode, ids, samples):
    """Returns a copy of a model in a mode."""
    copy = type(model).from_config(model.get_config())
    copy.set_weights(model.get_weights())
    if mode in ("gptq", "awq"):
        kind = {
            "gptq": keras.quantizers.GPTQConfig,
            "awq": keras.quantizers.AWQConfig,
        }[mode]
        config = kind(
            [ids],
            tokenizer=character_gpt.encode,
            num_samples=samples,
            sequence_length=character_gpt.LENGTH,
            group_size=32,
        )
        copy.quantize(config=config)
    elif mode == "float8":
        copy.quantize(mode, filters=lambda layer: isinstance(layer, LINEAR))
    elif mode != "float32":
        copy.quantize(mode)
    return copy


def nbytes(model):
    """Returns the size of all weights, without the state of dropout."""
    return sum(
        keras.ops.convert_to_numpy(weight).nbytes
        for weight in model.weights
        if "seed" not in weight.path
    )


def milliseconds(model, ids, tokens, rounds):
    """Returns the CPU time per generated token of one sequence, the median.

    Unlike the time on the clock, it hardly depends on other processes.
    """
    prompt = ids[None, :16]
    seconds = []
    for _ in range(rounds + 1):
        start = time.process_time()
        model.generate(prompt, max_new_tokens=tokens)
        seconds.append(time.process_time() - start)
    # Without the first, which compiles.
    return 1000 * statistics.median(seconds[1:]) / tokens


if __name__ == "__main__":
    main()
