"""`transformers.GPT2LMHeadModel`, which reads overlapping windows."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

from benchmarks.segment_memory import task


def prepare(case):
    """Returns a callable that reads the text a number of times.

    Args:
        case: dict of sizes.
    """
    windows = torch.from_numpy(task.windows(case, 1)).long()
    model = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=task.VOCABULARY,
            n_positions=windows.shape[1],
            n_embd=case["width"],
            n_layer=case["layers"],
            n_head=case["heads"],
        )
    ).eval()

    def run(steps):
        with torch.no_grad():
            for _ in range(steps):
                for batch in windows.split(case["rows"]):
                    logits = model(batch, use_cache=False).logits
        return float(logits.mean())

    return run
