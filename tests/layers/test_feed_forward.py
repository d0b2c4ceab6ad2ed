"""FeedForward compared with its formula in float64."""

import functools
import math

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.layers import FeedForward
from keras_attn.layers.quick_gelu import quick_gelu
from tests.helpers import reference
from tests.helpers.contract import check_layer, randomize
from tests.helpers.ops_cases import assert_close, assert_differs, normal, values
from tests.helpers.weight_gradients import layer_gradients, weighted_sum

X = normal(2, 3, 4, seed=1)


def gelu(x):
    """x Phi(x), the exact form."""
    return x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2


def elu(x):
    return np.where(x > 0, x, np.exp(np.minimum(x, 0)) - 1)


ACTIVATIONS = {
    "relu": reference.relu,
    "gelu": gelu,
    "elu": elu,
    "silu": lambda x: x / (1 + np.exp(-x)),
    "linear": lambda x: x,
}


def make(*args, **kwargs):
    layer = FeedForward(5, *args, **kwargs)
    layer.build(X.shape)
    return randomize(layer)


@pytest.mark.every_backend
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("gated", [False, True])
def test_equals_its_formula(activation, gated):
    layer = make(activation, gated)
    arrays = layer.get_weights()
    output = values(layer(X))
    for name, function in ACTIVATIONS.items():
        expected = reference.feed_forward(X, arrays, function, gated)
        if name == activation:
            assert_close(output, expected)
        else:
            assert_differs(output, expected)


@pytest.mark.every_backend
def test_gate_limit_equals_gpt_oss():
    """Values and gradients of one expert of `transformers`."""
    torch = pytest.importorskip("torch")
    from transformers import GptOssConfig
    from transformers.models.gpt_oss import modeling_gpt_oss

    layer = make(quick_gelu, gated=True, gate_limit=0.7)
    config = GptOssConfig(
        hidden_size=4,
        intermediate_size=5,
        num_local_experts=1,
        swiglu_limit=0.7,
    )
    twin = modeling_gpt_oss.GptOssExperts(config)
    weights = {w.path.partition("/")[2]: values(w) for w in layer.weights}

    def joined(what):
        # Columns of both layers take turns.
        both = [weights[f"{name}/{what}"] for name in ("inner", "gate")]
        return np.stack(both, axis=-1).reshape(*both[0].shape[:-1], 10)

    for name, array in (
        ("gate_up_proj", joined("kernel")),
        ("gate_up_proj_bias", joined("bias")),
        ("down_proj", weights["outer/kernel"]),
        ("down_proj_bias", weights["outer/bias"]),
    ):
        getattr(twin, name).data = torch.tensor(array[None])
    x, upstream = 3 * X, normal(*X.shape, seed=2)
    tensor = torch.tensor(x.reshape(-1, 4), requires_grad=True)
    rows = len(tensor)
    expected = twin(
        tensor, torch.zeros((rows, 1), dtype=torch.long), torch.ones((rows, 1))
    )
    (expected * torch.tensor(upstream.reshape(-1, 4))).sum().backward()
    assert_close(values(layer(x)), expected.detach().numpy().reshape(x.shape))
    (at_x,), at_weights = layer_gradients(
        layer, lambda x: weighted_sum(layer(x), upstream), x
    )
    assert_close(at_x, tensor.grad.numpy().reshape(x.shape))
    found = twin.gate_up_proj.grad.numpy()[0]
    assert_close(at_weights["inner/kernel"], found[:, ::2])
    assert_close(at_weights["gate/kernel"], found[:, 1::2])
    assert_differs(values(make(quick_gelu, gated=True)(x)), values(layer(x)))


def test_gate_limit_round_trips_and_needs_a_gate():
    layer = FeedForward(5, quick_gelu, gated=True, gate_limit=0.7)
    restored = FeedForward.from_config(layer.get_config())
    assert restored.gate_limit == 0.7 and restored.activation is quick_gelu
    with pytest.raises(ValueError, match=r"None if `gated` is False.*=0.7"):
        FeedForward(5, gate_limit=0.7)
    with pytest.raises(ValueError, match="`gate_limit` must be a number"):
        FeedForward(5, gated=True, gate_limit=0)


@pytest.mark.parametrize("gated", [False, True])
def test_without_bias(gated):
    layer = make(gated=gated, use_bias=False)
    expected = reference.feed_forward(
        X, layer.get_weights(), gated=gated, use_bias=False
    )
    assert len(layer.weights) == 2 + gated
    assert_close(values(layer(X)), expected)


def test_callable_activation():
    layer = make(activation=lambda x: ops.maximum(x, 0))
    assert layer.activation(ops.convert_to_tensor(-1.0)) == 0
    expected = reference.feed_forward(X, layer.get_weights())
    assert_close(values(layer(X)), expected)


@pytest.mark.every_backend
@pytest.mark.parametrize("gated", [False, True])
def test_gradients(gated):
    """Closed-form gradients, with a linear activation."""
    layer = make("linear", gated)
    upstream = normal(2, 3, 4, seed=2)
    (at_input,), at_weights = layer_gradients(
        layer, lambda x: weighted_sum(layer(x), upstream), X
    )
    arrays = [array.astype("float64") for array in layer.get_weights()]
    first, outer = arrays[0], arrays[-2]
    hidden = X @ first + arrays[1]
    at_hidden = upstream @ outer.T
    expected = at_hidden @ first.T
    if gated:
        gate = X @ arrays[2] + arrays[3]
        expected = (at_hidden * gate) @ first.T
        expected += (at_hidden * hidden) @ arrays[2].T
        hidden = hidden * gate
    assert_close(at_input, expected)
    assert_close(
        at_weights["outer/kernel"], np.einsum("btd,bte->de", hidden, upstream)
    )
    assert_close(at_weights["outer/bias"], upstream.sum((0, 1)))


def test_positions_are_independent():
    layer = make()
    changed = X.copy()
    changed[0, 1] += 1
    before, after = values(layer(X)), values(layer(changed))
    same = np.ones((2, 3), "bool")
    same[0, 1] = False
    assert_close(after[same], before[same], 1e-6)
    assert_differs(after[0, 1], before[0, 1])


def test_inputs_of_any_rank():
    layer = make()
    flat = values(layer(X.reshape(6, 4)))
    assert_close(flat, values(layer(X)).reshape(6, 4))


def test_dropout_applies_to_the_hidden_layer():
    layer = make(dropout=0.5)
    inference = values(layer(X))
    assert_close(inference, reference.feed_forward(X, layer.get_weights()))
    assert_differs(values(layer(X, training=True)), inference)
    ones = FeedForward(400, "linear", dropout=0.5, kernel_initializer="ones")
    output = values(ones(np.ones((1, 1, 1), "float32"), training=True))
    # 400 features, about half of them dropped and the others doubled.
    assert output.item() % 2 == 0
    assert 300 < output.item() < 500
    assert (
        output.item() != 400
        or values(ones(np.ones((1, 1, 1), "float32"), training=True)).item()
        != 400
    )


@pytest.mark.every_backend
def test_contract():
    make_layer = functools.partial(
        FeedForward, 5, "gelu", gated=True, dropout=0.1
    )
    check_layer(make_layer, X)


def test_config_contains_every_argument():
    arguments = {
        "intermediate_dim": 5,
        "activation": "elu",
        "gated": True,
        "dropout": 0.1,
        "use_bias": False,
    }
    objects = {"kernel_initializer": "ones", "bias_initializer": "normal"}
    layer = FeedForward(**arguments, **objects)
    config = FeedForward.from_config(layer.get_config()).get_config()
    for name, value in arguments.items():
        assert config[name] == value
    for name in objects:
        assert config[name] == layer.get_config()[name] is not None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"intermediate_dim": 0}, "`intermediate_dim` must be a positive"),
        ({"intermediate_dim": 5.5}, "`intermediate_dim` must be a positive"),
        ({"dropout": 1}, "`dropout` must lie in"),
        ({"dropout": None}, "`dropout` must be a number"),
        ({"activation": "nothing"}, "activation function"),
    ],
)
def test_invalid_arguments_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        FeedForward(**{"intermediate_dim": 5, **arguments})


def test_invalid_width_raises():
    layer = make()
    with pytest.raises(ValueError, match="`inputs` must have 4 features"):
        layer(normal(2, 3, 5))
    with pytest.raises(ValueError, match="`inputs` must have 4 features"):
        layer(keras.Input((3, 5)))
