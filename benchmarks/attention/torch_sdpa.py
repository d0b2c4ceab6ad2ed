"""`torch.nn.functional.scaled_dot_product_attention`."""

import torch

from benchmarks.attention import task
from benchmarks.harness.device import torch_device


def prepare(case):
    """Returns a callable that runs steps."""
    mask = task.dense_mask(case)
    if mask is not None:
        mask = torch.from_numpy(mask).to(torch_device())
        mask = mask.expand(-1, -1, case["length"], case["length"])

    def function(query, key, value):
        output = torch.nn.functional.scaled_dot_product_attention(
            query.transpose(1, 2),
            key.transpose(1, 2),
            value.transpose(1, 2),
            attn_mask=mask,
            is_causal=case["mask"] == "causal",
        )
        return output.transpose(1, 2)

    return task.runner(
        function, task.heads(case), case["backward"], case.get("dtype")
    )
