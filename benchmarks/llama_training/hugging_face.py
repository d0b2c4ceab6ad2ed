"""`transformers.LlamaForCausalLM` in a hand-written training loop."""

import torch
import transformers

from benchmarks.harness.device import torch_device
from benchmarks.llama_training import checkpoint, task


def prepare(case):
    """Returns a callable that runs training steps."""
    device = torch_device()
    built = model(case).to(device).train()
    optimizer = torch.optim.Adam(built.parameters(), lr=task.RATE)
    inputs, labels = task.batches(case)

    def run(steps):
        total = 0.0
        for index in range(steps):
            ids, targets = (
                torch.from_numpy(part[index % len(part)]).long().to(device)
                for part in (inputs, labels)
            )
            logits = built(input_ids=ids, use_cache=False).logits
            loss = torch.nn.functional.cross_entropy(
                logits.flatten(0, 1), targets.flatten()
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total = total + loss.detach()
        return float(total) / steps

    return run


def model(case, seed=0):
    """Returns a model that has read the checkpoint."""
    with checkpoint.write(case, seed) as folder:
        return transformers.LlamaForCausalLM.from_pretrained(folder)
