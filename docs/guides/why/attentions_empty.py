"""Attention weights of a small BERT with the default kernel."""

import numpy as np
import torch
import transformers

import keras_attn

transformers.logging.set_verbosity_error()
print(f"transformers {transformers.__version__}")
config = transformers.BertConfig(
    vocab_size=20,
    num_hidden_layers=2,
    num_attention_heads=2,
    hidden_size=16,
    intermediate_size=32,
)
torch.manual_seed(0)
theirs = transformers.BertModel(config).eval()
ids = torch.tensor([[5, 6, 7, 8]], device=theirs.device)
with torch.no_grad():
    attentions = theirs(ids, output_attentions=True).attentions
count = sum(one is not None for one in attentions or ())
kernel = theirs.config._attn_implementation
print(f"theirs: {kernel}, attention of {count} layers out of 2")

ours = keras_attn.models.Bert(
    20, num_layers=2, num_heads=2, hidden_dim=16, intermediate_dim=32
)
maps = keras_attn.explain.attention_maps(ours, np.array([[5, 6, 7, 8]]))
print(f"ours:   attention of {len(maps)} layers out of 2")
