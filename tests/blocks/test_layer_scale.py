"""EncoderBlock with layer scale compared with DINOv2 of `transformers`."""

import numpy as np
import pytest

from keras_attn.blocks import EncoderBlock
from tests.helpers.arrays import to_numpy
from tests.helpers.contract import randomize
from tests.helpers.ops_cases import assert_close, normal
from tests.helpers.weight_gradients import layer_gradients, weighted_sum

torch = pytest.importorskip("torch")

from transformers import Dinov2Config
from transformers.models.dinov2 import modeling_dinov2

pytestmark = pytest.mark.every_backend

B, T, D, N = 2, 5, 8, 2
NAMES = {
    "norm1": "around_attention/norm",
    "norm2": "around_feed_forward/norm",
    "layer_scale1": "around_attention",
    "layer_scale2": "around_feed_forward",
    "attention.q_proj": "self_attention/query",
    "attention.k_proj": "self_attention/key",
    "attention.v_proj": "self_attention/value",
    "attention.o_proj": "self_attention/attention_output",
    "mlp.fc1": "feed_forward/inner",
    "mlp.fc2": "feed_forward/outer",
}


def theirs_from_ours(path, arrays):
    name, _, what = path.rpartition(".")
    ours = NAMES[name]
    if what == "lambda1":
        return arrays[f"{ours}/layer_scale"]
    if "norm" in name:
        return arrays[f"{ours}/{'gamma' if what == 'weight' else 'beta'}"]
    if what == "bias":
        return arrays[f"{ours}/bias"].reshape(-1)
    kernel = arrays[f"{ours}/kernel"]
    rows = -1 if "output" in ours else kernel.shape[0]
    return kernel.reshape(rows, -1 if rows > 0 else D).T


def test_equals_dinov2():
    block = EncoderBlock(
        num_heads=N,
        intermediate_dim=2 * D,
        activation="gelu",
        normalize_first=True,
        layer_scale=0.3,
        epsilon=1e-3,
    )
    block.build((None, None, D))
    scales = [w for w in block.weights if w.path.endswith("layer_scale")]
    assert [to_numpy(w).tolist() for w in scales] == [[np.float32(0.3)] * D] * 2
    randomize(block)
    config = Dinov2Config(
        hidden_size=D,
        num_attention_heads=N,
        mlp_ratio=2,
        layer_norm_eps=1e-3,
        attn_implementation="eager",
    )
    twin = modeling_dinov2.Dinov2Layer(config)
    arrays = {
        w.path.removeprefix(f"{block.path}/"): to_numpy(w)
        for w in block.weights
    }
    for path, parameter in twin.named_parameters():
        array = np.ascontiguousarray(theirs_from_ours(path, arrays))
        parameter.data = torch.tensor(array)
    x, upstream = normal(B, T, D, seed=1), normal(B, T, D, seed=2)
    tensor = torch.tensor(x, requires_grad=True)
    expected = twin(tensor)
    (expected * torch.tensor(upstream)).sum().backward()
    assert_close(to_numpy(block(x)), expected.detach().numpy())
    (at_x,), at_weights = layer_gradients(
        block, lambda x: weighted_sum(block(x), upstream), x
    )
    assert_close(at_x, tensor.grad.numpy())
    for path, parameter in twin.named_parameters():
        assert_close(
            theirs_from_ours(path, at_weights), parameter.grad.numpy(), 2e-5
        )
