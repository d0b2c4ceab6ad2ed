"""A row of padding only in a small BERT, with two kernels."""

import numpy as np
import torch
import transformers
from keras import ops

import keras_attn

transformers.logging.set_verbosity_error()
print(f"transformers {transformers.__version__}")
ids = np.array([[5, 6, 7, 8]])
padding = np.zeros((1, 4), "bool")


def compare(one, other):
    difference = np.abs(one - other).max()
    return "agree" if difference < 1e-5 else "differ"


def theirs(kernel):
    config = transformers.BertConfig(
        vocab_size=20,
        num_hidden_layers=1,
        num_attention_heads=2,
        hidden_size=16,
        intermediate_size=32,
        attn_implementation=kernel,
    )
    torch.manual_seed(0)
    model = transformers.BertModel(config).eval()
    with torch.no_grad():
        output = model(
            torch.tensor(ids, device=model.device),
            attention_mask=torch.tensor(padding, device=model.device).long(),
        )
    return output.last_hidden_state.cpu().numpy()


print("theirs: sdpa and eager", compare(theirs("sdpa"), theirs("eager")))
x = np.random.default_rng(0).normal(size=(1, 4, 16)).astype("float32")
block = keras_attn.blocks.EncoderBlock(num_heads=2, intermediate_dim=32)
usual = ops.convert_to_numpy(block(x, mask=padding))
with keras_attn.ops.capture_weights():
    plain = ops.convert_to_numpy(block(x, mask=padding))
print("ours:   the usual kernel and the plain one", compare(usual, plain))
