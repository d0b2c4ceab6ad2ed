"""One operation, five calls, compared with NumPy in float64."""

import keras
import numpy as np
from keras import ops

from keras_attn.ops import attend
from keras_attn.ops.visibility import make_visibility

print(f"keras {keras.__version__} on {keras.backend.backend()}")
random = np.random.default_rng(0)
MASK = random.random((2, 1, 3, 5)) > 0.4
MASK[..., 0] = True


def tensor(*shape):
    return random.normal(size=shape).astype("float32")


def expected(query, key, value, bias=0.0, mask=True):
    key, value = (
        np.repeat(x, query.shape[2] // x.shape[2], axis=2) for x in (key, value)
    )
    scores = np.einsum("btnh,bsnh->bnts", query, key) / query.shape[-1] ** 0.5
    weights = np.where(mask, np.exp(scores + bias), 0)
    weights = weights / weights.sum(-1, keepdims=True)
    return np.einsum("bnts,bsnh->btnh", weights, value)


def verdict(call, *args, **kwargs):
    try:
        output = call()
    except Exception as error:  # The exception depends on the backend.
        return type(error).__name__
    output = ops.convert_to_numpy(output)
    reference = expected(*args, **kwargs)
    right = output.shape == reference.shape and np.allclose(
        output, reference, atol=1e-5
    )
    return "right" if right else "wrong"


def compare(title, tensors, theirs, reference, **restrictions):
    bias = theirs.get("bias")
    visibility = make_visibility(3, 5, **restrictions)
    theirs = verdict(
        lambda: ops.dot_product_attention(*tensors, **theirs),
        *tensors,
        **reference,
    )
    ours = verdict(
        lambda: attend(*tensors, visibility, bias=bias), *tensors, **reference
    )
    print(f"{title:<32} theirs: {theirs:<24} ours: {ours}")


# Two rows, three queries of four heads, five keys.
many = tensor(2, 3, 4, 8), tensor(2, 5, 4, 8), tensor(2, 5, 4, 8)
few = many[0], tensor(2, 5, 1, 8), tensor(2, 5, 1, 8)
wide = *many[:2], tensor(2, 5, 4, 6)
bias = tensor(2, 4, 3, 5)

compare("a bias and a mask", many, {"bias": bias, "mask": MASK},
        {"bias": bias, "mask": MASK}, attention_mask=MASK)  # fmt: skip
compare("one head of keys and values", few, {}, {})
compare("values narrower than keys", wide, {}, {})
compare("a mask (B, T, S)", many, {"mask": MASK[:, 0]},
        {"mask": MASK}, attention_mask=MASK[:, 0])  # fmt: skip
# The three queries are the last three of five tokens, as with a cache.
last = np.tri(5, dtype="bool")[2:]
compare("causal, the last 3 of 5 tokens", many, {"is_causal": True},
        {"mask": last}, causal=True,
        query_positions=np.array([[2, 3, 4]], "int32"),
        key_positions=np.arange(5, dtype="int32")[None])  # fmt: skip
