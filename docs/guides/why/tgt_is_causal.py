"""Whether changing the last target token changes earlier outputs."""

import numpy as np
import torch
from keras import ops

import keras_attn

print(f"torch {torch.__version__.partition('+')[0]}")
random = np.random.default_rng(0)
source, target = random.normal(size=(2, 1, 4, 8)).astype("float32")
changed = target.copy()
changed[:, -1] += 1


def describe(model):
    before, after = (model(source, x)[:, :-1] for x in (target, changed))
    moved = np.abs(before - after).max() > 1e-5
    return "moves: it sees the future" if moved else "stays"


torch.manual_seed(0)
transformer = torch.nn.Transformer(
    8, 2, 1, 1, 16, dropout=0.0, batch_first=True, device="cpu"
).eval()


def theirs(source, target, **kwargs):
    pair = torch.tensor(source), torch.tensor(target)
    with torch.no_grad():
        return transformer(*pair, **kwargs).numpy()


block = keras_attn.blocks.DecoderBlock(num_heads=2, intermediate_dim=16)
print("theirs:", describe(lambda s, t: theirs(s, t, tgt_is_causal=True)))
print("ours:  ", describe(lambda s, t: ops.convert_to_numpy(block(t, s))))
