"""Speedup of speculative and prompt-lookup decoding, for two small GPTs.

    python -m benchmarks.speculative_decoding [--steps N] [--rounds N]

Both models are trained here, over characters of the prose of this project; a
twentieth of its paragraphs is held out, and gives the prompts. All ways of
decoding take turns, so that a slowdown of the machine affects all of them.
"""

import argparse
import datetime
import statistics
import time

import keras
import numpy as np

from benchmarks.quantization import text
from keras_attn.decoding import (
    GreedySearch,
    PromptLookup,
    Sampling,
    SpeculativeDecoding,
)
from tools import character_gpt
from tools.tutorials import facts

PROMPT = 32


def main(arguments=None):
    """Prints the table."""
    parser = argparse.ArgumentParser(
        description="Compares speculative with plain decoding."
    )
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--assistant-width", type=int, default=128)
    parser.add_argument("--steps", type=int, default=220, help="of training")
    parser.add_argument("--assistant-steps", type=int, default=800)
    parser.add_argument("--rows", default="1,8", help="numbers of prompts")
    parser.add_argument("--drafts", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--characters", type=int, help="of the text; all")
    options = parser.parse_args(arguments)
    used, held = text(options.characters)
    target, assistant = (
        trained(used, *sizes)
        for sizes in (
            (options.steps, options.layers, options.width),
            (options.assistant_steps, 1, options.assistant_width),
        )
    )
    losses = [character_gpt.test_loss(one, held) for one in (target, assistant)]
    print(
        f"{facts.cpu()}, {facts.cores()} cores, "
        f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}, Keras "
        f"{keras.__version__} on {keras.backend.backend()}; held-out loss "
        f"{losses[0]:.2f} nats, {target.count_params():,} parameters, and "
        f"{losses[1]:.2f} nats, {assistant.count_params():,} parameters\n"
    )
    print(
        "| rows | strategy | draft | tokens per call | drafts accepted | "
        "CPU ms/token | speedup |"
    )
    print("| ---: | --- | --- | ---: | ---: | ---: | ---: |")
    for rows in map(int, options.rows.split(",")):
        prompts = held[: rows * PROMPT].reshape(rows, PROMPT)
        for name, strategy in (
            ("greedy", GreedySearch()),
            ("sampling", Sampling(seed=0)),
        ):
            ways = {
                "none": strategy,
                "assistant": SpeculativeDecoding(
                    assistant, options.drafts, strategy
                ),
                "lookup": PromptLookup(options.drafts, 3, strategy),
            }
            found = measured(
                target, prompts, ways, options.tokens, options.rounds
            )
            for way, (counts, cost, speedup) in found.items():
                print(
                    f"| {rows} | {name} | {way} | {counts} | {cost:.2f} | "
                    f"{speedup:.2f} |",
                    flush=True,
                )


def trained(ids, steps, layers, width):
    """Returns a GPT over characters after some steps of training."""
    keras.utils.set_random_seed(character_gpt.SEED)
    sizes = {"num_layers": layers, "num_heads": 4, "hidden_dim": width}
    model = character_gpt.make_model(sizes)
    blocks = character_gpt.token_blocks(
        ids,
        character_gpt.LENGTH,
        character_gpt.BATCH,
        seed=character_gpt.SEED,
    )
    rate = keras.optimizers.schedules.CosineDecay(
        0.0, steps, warmup_target=0.06 / width, warmup_steps=steps // 10
    )
    model.compile(
        keras.optimizers.AdamW(rate, beta_2=0.99, global_clipnorm=1.0),
        character_gpt.SequenceCrossentropy(pad_id=-1),
    )
    epochs = -(-steps // len(blocks))
    each = -(-steps // epochs)
    model.fit(
        blocks, epochs=epochs, steps_per_epoch=each, shuffle=False, verbose=2
    )
    return model


def measured(model, prompts, ways, tokens, rounds):
    """Decodes in each way, in turns.

    Args:
        model: `GPT`.
        prompts: int (B, S).
        ways: dict of strategies; the first is the baseline.
        tokens: int. Generated tokens of each row.
        rounds: int.

    Returns:
        Dict: the tokens per call and the fraction of accepted drafts, as two
        cells of a table; the CPU time per token, in ms; and the speedup. CPU
        time hardly depends on other processes, unlike the time on the clock.
    """
    seconds = {way: [] for way in ways}
    found = {}
    for _ in range(rounds + 1):
        for way, strategy in ways.items():
            start = time.process_time()
            found[way] = model.generate(prompts, tokens, strategy)
            seconds[way].append(time.process_time() - start)
    # Without the first, which compiles.
    seconds = {way: np.array(one[1:]) for way, one in seconds.items()}
    baseline = seconds[next(iter(ways))]
    return {
        way: (
            counted(found[way]),
            1000 * statistics.median(one) / (tokens * len(prompts)),
            statistics.median(baseline / one),
        )
        for way, one in seconds.items()
    }


def counted(decoded):
    """Returns tokens per call and the fraction of accepted drafts, as cells."""
    counts = decoded.speculation
    if counts is None:
        return "1.00 | "
    calls = decoded.lengths.sum() / counts.num_target_calls.sum()
    drafts = max(1, counts.num_draft_tokens.sum())
    return f"{calls:.2f} | {counts.num_accepted_tokens.sum() / drafts:.0%}"


if __name__ == "__main__":
    main()
