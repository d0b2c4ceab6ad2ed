"""A row of padding only in `torch.nn.MultiheadAttention`."""

import numpy as np
import torch
from keras import ops

import keras_attn

print(f"torch {torch.__version__.partition('+')[0]}")
x = np.random.default_rng(0).normal(size=(1, 3, 8)).astype("float32")
torch.manual_seed(0)
module = torch.nn.MultiheadAttention(8, 2, batch_first=True, device="cpu")


def theirs(weights):
    tensor = torch.tensor(x)
    padding = torch.ones(1, 3, dtype=torch.bool)
    output, _ = module(
        *[tensor] * 3, key_padding_mask=padding, need_weights=weights
    )
    return output.detach().numpy()


def ours(weights):
    attention = keras_attn.layers.MultiHeadAttention(num_heads=2, key_dim=4)
    output = attention(
        x,
        x,
        value_mask=np.zeros((1, 3), "bool"),
        return_attention_scores=weights,
    )
    return ops.convert_to_numpy(output[0] if weights else output)


def describe(output):
    if np.isnan(output).any():
        return "NaN"
    return "zeros" if (output == 0).all() else "numbers"


for label, call in (("theirs:", theirs), ("ours:  ", ours)):
    with_weights, without = describe(call(True)), describe(call(False))
    print(label, f"{with_weights} with weights, {without} without")
