"""MultiHeadAttention compared with `torch.nn.MultiheadAttention`, in float64.

PyTorch is the reference on every backend, with NumPy inputs and outputs.
"""

import numpy as np
import pytest

from keras_attn.layers import MultiHeadAttention
from tests.helpers.contract import randomize
from tests.helpers.ops_cases import assert_close, assert_differs, normal, values
from tests.helpers.weight_gradients import layer_gradients, weighted_sum

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.every_backend

B, T, S, N, D = 2, 4, 5, 2, 6
QUERY, VALUE = normal(B, T, D, seed=1), normal(B, S, 7, seed=2)
KEY = normal(B, S, 5, seed=3)
UPSTREAM = normal(B, T, D, seed=4)
PADDED = np.array([[0, 0, 0, 0, 1], [1, 0, 0, 1, 0]], "bool")
LOWER = np.tril(np.ones((T, S), "bool"))
CASES = {
    "nothing": (None, None),
    "padding": (PADDED, None),
    "causal": (None, LOWER),
    "padding and mask": (PADDED, np.roll(LOWER, 2, axis=1)),
}


def as_torch(array, requires_grad=False):
    dtype = torch.float64 if np.asarray(array).dtype.kind == "f" else None
    return torch.tensor(
        array, dtype=dtype, device="cpu", requires_grad=requires_grad
    )


def make():
    layer = MultiHeadAttention(N, D // N)
    layer.build(QUERY.shape, VALUE.shape, KEY.shape)
    return randomize(layer)


def twin(layer):
    """Returns the torch module with the layer's weights."""
    module = torch.nn.MultiheadAttention(
        D,
        N,
        kdim=KEY.shape[-1],
        vdim=VALUE.shape[-1],
        batch_first=True,
        device="cpu",
        dtype=torch.float64,
    )
    state = to_torch_state(layer.get_weights())
    module.load_state_dict({name: as_torch(x) for name, x in state.items()})
    return module


def to_torch_state(arrays):
    """Maps weights of the layer, or their gradients, to torch names."""
    kernels, biases = arrays[::2], arrays[1::2]
    state = {
        f"{name}_proj_weight": kernel.reshape(len(kernel), D).T
        for name, kernel in zip("qkv", kernels, strict=False)
    }
    state["in_proj_bias"] = np.concatenate([b.reshape(D) for b in biases[:3]])
    state["out_proj.weight"] = kernels[3].reshape(D, D).T
    state["out_proj.bias"] = biases[3]
    return state


def run_torch(module, padding, allowed):
    """Returns output, weights and gradients for the upstream gradient."""
    inputs = [as_torch(x, requires_grad=True) for x in (QUERY, KEY, VALUE)]
    output, weights = module(
        *inputs,
        key_padding_mask=None if padding is None else as_torch(padding),
        attn_mask=None if allowed is None else as_torch(~allowed),
        average_attn_weights=False,
    )
    (output * as_torch(UPSTREAM)).sum().backward()
    query, key, value = (x.grad.numpy() for x in inputs)
    at_weights = {
        name: parameter.grad.numpy()
        for name, parameter in module.named_parameters()
    }
    return (
        output.detach().numpy(),
        weights.detach().numpy(),
        (query, value, key),
        at_weights,
    )


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name):
    padding, allowed = CASES[name]
    kwargs = {
        "value_mask": None if padding is None else ~padding,
        "attention_mask": allowed,
    }
    layer = make()
    expected, expected_weights, at_inputs, at_weights = run_torch(
        twin(layer), padding, allowed
    )
    output, weights = layer(
        QUERY, VALUE, KEY, return_attention_scores=True, **kwargs
    )
    assert_close(values(output), expected)
    assert_close(values(weights), expected_weights)
    assert_close(values(layer(QUERY, VALUE, KEY, **kwargs)), expected)

    def loss(query, value, key):
        return weighted_sum(layer(query, value, key, **kwargs), UPSTREAM)

    inputs, weights = layer_gradients(layer, loss, QUERY, VALUE, KEY)
    for actual, exact in zip(inputs, at_inputs, strict=True):
        assert_close(actual, exact)
    actual = to_torch_state(list(weights.values()))
    assert set(actual) == set(at_weights)
    for name, exact in at_weights.items():
        assert_close(actual[name], exact)


@pytest.mark.parametrize("name", CASES)
def test_other_masks_give_other_outputs(name):
    padding, allowed = CASES[name]
    layer = make()
    expected = run_torch(twin(layer), padding, allowed)[0]
    for other in CASES:
        if other != name:
            padding, allowed = CASES[other]
            output = layer(
                QUERY,
                VALUE,
                KEY,
                value_mask=None if padding is None else ~padding,
                attention_mask=allowed,
            )
            assert_differs(values(output), expected)
