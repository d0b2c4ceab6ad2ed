"""`transformers.LlamaForCausalLM.generate`."""

import torch

from benchmarks.harness.device import torch_device
from benchmarks.llama_decoding import task
from benchmarks.llama_training.hugging_face import model


def prepare(case):
    """Returns a callable that decodes batches."""
    return task.runner(decoder(case), task.prompts(case))


def decoder(case, seed=0):
    """Returns a callable that decodes int32 (B, S) to int (B, new)."""
    device = torch_device()
    built = model(case, seed).to(device).eval()

    def decode(prompts):
        ids = torch.from_numpy(prompts).long().to(device)
        found = built.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=case["new"],
            do_sample=False,
        )
        return found[:, ids.shape[1] :].cpu().numpy()

    return decode
