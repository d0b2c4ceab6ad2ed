"""`torch.nn.MultiheadAttention`, without returning weights."""

import torch

from benchmarks.attention import task


def prepare(case):
    """Returns a callable that runs steps."""
    width = case["heads"] * case["width"]
    layer = torch.nn.MultiheadAttention(width, case["heads"], batch_first=True)
    layer.train(case["backward"])
    token_mask = torch.from_numpy(task.tokens_there(case))
    length = case["length"]
    options = {}
    if case["mask"] == "padded":
        options["key_padding_mask"] = ~token_mask
    elif case["mask"] == "causal":
        options["attn_mask"] = ~torch.ones(length, length).bool().tril()
        options["is_causal"] = True
    elif case["mask"] == "window":
        options["attn_mask"] = ~torch.from_numpy(task.dense_mask(case)[0, 0])

    def function(x):
        return layer(x, x, x, need_weights=False, **options)[0]

    (x,) = task.heads(case, 1)
    x = x.reshape(case["rows"], length, width)
    return task.runner(function, [x], case["backward"])
