"""MixtureOfExperts compared with the layers of transformers."""

import functools

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.blocks import DecoderBlock
from keras_attn.layers import MixtureOfExperts
from keras_attn.layers.added_losses import collect_losses
from keras_attn.layers.expert_dense import ExpertDense
from keras_attn.layers.mixture_of_experts import plan_experts
from keras_attn.layers.quick_gelu import quick_gelu
from keras_attn.models import (
    GPT,
    Encoder,
    Transformer,
    TransformerXL,
    XLNet,
)
from keras_attn.ops.mask_carriers import with_mask
from tests.helpers.arrays import to_numpy
from tests.helpers.cases import once
from tests.helpers.contract import check_layer, randomize
from tests.helpers.ops_cases import assert_close, assert_differs, normal, values
from tests.helpers.weight_gradients import layer_gradients, weighted_sum

torch = pytest.importorskip("torch")

import transformers
from transformers.models.gpt_oss import modeling_gpt_oss
from transformers.models.mixtral import modeling_mixtral

D, F, E, K = 4, 6, 5, 2
# One number for each way to compute the outputs.
TOKENS = {"gather": 1, "all": 6, "groups": 40}
MIXTRAL = {"activation": "silu", "gated": True, "use_bias": False}
GPT_OSS = {"activation": quick_gelu, "gated": True, "gate_limit": 0.7}


def make(chosen=K, **options):
    layer = MixtureOfExperts(F, E, chosen, **options)
    layer.build((None, D))
    return randomize(layer, scale=0.8)


def named(layer):
    """Returns the arrays of a layer, by path."""
    return {w.path.partition("/")[2]: to_numpy(w) for w in layer.weights}


def mixtral(layer):
    config = transformers.MixtralConfig(
        hidden_size=D,
        intermediate_size=F,
        num_local_experts=E,
        num_experts_per_tok=K,
    )
    twin = modeling_mixtral.MixtralSparseMoeBlock(config)
    weights = named(layer)
    both = [weights[f"{x}_experts/kernel"] for x in ("inner", "gate")]
    outer = weights["outer_experts/kernel"]
    for parameter, array in (
        (twin.gate.weight, weights["router/kernel"].T),
        (
            twin.experts.gate_up_proj,
            np.concatenate(both, axis=2).transpose(0, 2, 1),
        ),
        (twin.experts.down_proj, outer.transpose(0, 2, 1)),
    ):
        parameter.data = torch.tensor(np.ascontiguousarray(array))
    return twin


def mixtral_gradients(twin):
    inner, gate = np.split(
        twin.experts.gate_up_proj.grad.numpy().transpose(0, 2, 1),
        2,
        axis=2,
    )
    return {
        "router/kernel": twin.gate.weight.grad.numpy().T,
        "inner_experts/kernel": inner,
        "gate_experts/kernel": gate,
        "outer_experts/kernel": twin.experts.down_proj.grad.numpy().transpose(
            0, 2, 1
        ),
    }


def gpt_oss(layer):
    config = transformers.GptOssConfig(
        hidden_size=D,
        intermediate_size=F,
        num_local_experts=E,
        num_experts_per_tok=layer.num_experts_per_tok,
        swiglu_limit=0.7,
    )
    twin = modeling_gpt_oss.GptOssMLP(config)
    weights = named(layer)

    def joined(what):
        # Columns of both layers take turns.
        both = [weights[f"{x}_experts/{what}"] for x in ("inner", "gate")]
        return np.stack(both, axis=-1).reshape(*both[0].shape[:-1], 2 * F)

    for parameter, array in (
        (twin.router.weight, weights["router/kernel"].T.copy()),
        (twin.router.bias, weights["router/bias"]),
        (twin.experts.gate_up_proj, joined("kernel")),
        (twin.experts.gate_up_proj_bias, joined("bias")),
        (twin.experts.down_proj, weights["outer_experts/kernel"]),
        (twin.experts.down_proj_bias, weights["outer_experts/bias"]),
    ):
        parameter.data = torch.tensor(array)
    return twin


def gpt_oss_gradients(twin):
    experts = twin.experts
    joined = experts.gate_up_proj.grad.numpy()
    biases = experts.gate_up_proj_bias.grad.numpy()
    return {
        "router/kernel": twin.router.weight.grad.numpy().T,
        "router/bias": twin.router.bias.grad.numpy(),
        "inner_experts/kernel": joined[..., ::2],
        "inner_experts/bias": biases[..., ::2],
        "gate_experts/kernel": joined[..., 1::2],
        "gate_experts/bias": biases[..., 1::2],
        "outer_experts/kernel": experts.down_proj.grad.numpy(),
        "outer_experts/bias": experts.down_proj_bias.grad.numpy(),
    }


OF_MIXTRAL = MIXTRAL, mixtral, mixtral_gradients
OF_GPT_OSS = GPT_OSS, gpt_oss, gpt_oss_gradients


@pytest.mark.every_backend
@pytest.mark.parametrize(
    "plan, options, twin_of, gradients_of",
    [
        ("groups", *OF_GPT_OSS),
        ("all", *OF_MIXTRAL),
        ("gather", *OF_GPT_OSS),
        *once(
            [
                ("groups", *OF_MIXTRAL),
                ("all", *OF_GPT_OSS),
                ("gather", *OF_MIXTRAL),
            ]
        ),
    ],
)
def test_equals_transformers(plan, options, twin_of, gradients_of):
    """Values and gradients, for each way to compute the outputs."""
    tokens = TOKENS[plan]
    assert plan_experts(tokens, K, E) == plan
    layer = make(**options)
    twin = twin_of(layer)
    x, upstream = 2 * normal(1, tokens, D), normal(1, tokens, D, seed=2)
    tensor = torch.tensor(x, requires_grad=True)
    expected = twin(tensor)
    expected = expected[0] if isinstance(expected, tuple) else expected
    (expected * torch.tensor(upstream)).sum().backward()
    assert_close(values(layer(x)), expected.detach().numpy())
    (at_x,), at_weights = layer_gradients(
        layer, lambda x: weighted_sum(layer(x), upstream), x
    )
    assert_close(at_x, tensor.grad.numpy())
    expected = gradients_of(twin)
    assert expected.keys() == at_weights.keys()
    for path, array in expected.items():
        assert_close(at_weights[path], array)


def test_any_load():
    """Groups of tokens have room for every choice of the router."""
    x = normal(3, 17, D)
    for chosen, (first, second) in ((K, (0, 1)), (1, (4, 2))):
        layer = make(chosen, **GPT_OSS)
        bias = next(w for w in layer.weights if w.path.endswith("router/bias"))
        values_of_bias = np.zeros(E, "float32")
        values_of_bias[[first, second]] = 30.0, 29.0
        bias.assign(values_of_bias)
        expected = gpt_oss(layer)(torch.tensor(x))[0].detach().numpy()
        assert_close(values(layer(x)), expected)


# PyTorch imports what it has deprecated.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.one_backend("tensorflow")
def test_compiled_with_an_unknown_length():
    """Other backends have such programs in files only, see `test_export`."""
    inputs = keras.Input((None, D))
    model = keras.Model(inputs, make(**MIXTRAL)(inputs))
    for compiled in (False, True):
        model.compile(jit_compile=compiled)
        for tokens in (20, 1):
            x = normal(2, tokens, D)
            expected = values(model.layers[1](x))
            assert_close(model.predict(x, verbose=0), expected)


def their_loss(layer, x, mask=None):
    logits = torch.tensor(x.reshape(-1, D)) @ torch.tensor(
        named(layer)["router/kernel"]
    )
    if mask is not None:
        mask = torch.tensor(mask).long()
    loss = modeling_mixtral.load_balancing_loss_func((logits,), E, K, mask)
    return loss.numpy()


def losses_of(layer, *args, **kwargs):
    layer(*args, **kwargs)
    return [to_numpy(loss) for loss in layer.losses]


@pytest.mark.every_backend
def test_loss_equals_transformers():
    layer = make(**MIXTRAL, router_aux_loss_coef=0.5)
    x = normal(2, 5, D)
    mask = np.array([[1, 1, 1, 1, 0], [0, 0, 1, 1, 1]], "bool")
    (found,) = losses_of(layer, x, training=True)
    assert_close(found, 0.5 * their_loss(layer, x))
    (found,) = losses_of(layer, x, mask=mask, training=True)
    assert_close(found, 0.5 * their_loss(layer, x, mask))
    assert_differs(found, 0.5 * their_loss(layer, x))
    (implicit,) = losses_of(
        layer, with_mask(ops.convert_to_tensor(x), mask), training=True
    )
    assert_close(implicit, found)
    (nothing,) = losses_of(layer, x, mask=mask & False, training=True)
    assert nothing == 0
    assert losses_of(layer, x) == losses_of(layer, x, training=False) == []
    none = make(**MIXTRAL, router_aux_loss_coef=0.0)
    assert losses_of(none, x, training=True) == []


def test_equal_loads_have_the_least_loss():
    layer = make(**MIXTRAL, router_aux_loss_coef=0.5)
    router = next(w for w in layer.weights if "router" in w.path)
    router.assign(ops.zeros_like(ops.convert_to_tensor(router)))
    (found,) = losses_of(layer, normal(2, 5, D), training=True)
    assert_close(found, np.float32(0.5 * K))


def test_gradient_of_the_loss():
    layer = make(**MIXTRAL, router_aux_loss_coef=0.5)
    x = normal(2, 5, D)
    mask = np.array([[1, 1, 1, 1, 0], [1, 1, 1, 0, 0]], "bool")

    def loss(x):
        with collect_losses() as losses:
            layer(x, mask=mask, training=True)
        return losses[0]

    _, found = layer_gradients(layer, loss, x)
    weight = torch.tensor(named(layer)["router/kernel"], requires_grad=True)
    logits = torch.tensor(x.reshape(-1, D)) @ weight
    expected = 0.5 * modeling_mixtral.load_balancing_loss_func(
        (logits,), E, K, torch.tensor(mask).long()
    )
    expected.backward()
    assert_close(found["router/kernel"], weight.grad.numpy())
    assert np.abs(found["router/kernel"]).max() > 1e-3


def trained(remat):
    """Returns the loss of a step of training, and the weights after it."""
    keras.utils.set_random_seed(0)
    inputs = keras.Input((3, D))
    with keras.RematScope("full" if remat else None):
        block = DecoderBlock(
            num_heads=1,
            intermediate_dim=F,
            num_experts=E,
            router_aux_loss_coef=2.0,
        )
    model = keras.Model(inputs, block(inputs))
    randomize(model)
    # XLA would compile for long on TensorFlow.
    jit = keras.backend.backend() == "jax"
    model.compile(keras.optimizers.SGD(0.1), "mse", jit_compile=jit)
    x = normal(2, 3, D)
    loss = model.train_on_batch(x, 0.1 * x)
    return loss, [to_numpy(w) for w in model.trainable_weights]


@pytest.mark.every_backend
def test_rematerialization_keeps_the_loss():
    """The loss of a rematerialized layer is a result of it."""
    (plain, expected), (found, weights) = trained(False), trained(True)
    np.testing.assert_allclose(found, plain, rtol=1e-6)
    # Two experts per token: the least load-balancing loss is 4.
    assert plain > 4
    for one, other in zip(weights, expected, strict=True):
        assert_close(one, other)


IDS = np.array([[3, 4, 5, 6, 7], [8, 5, 3, 9, 2]], "int32")
MODELS = {x.__name__: x for x in (Encoder, GPT, TransformerXL, XLNet)}


def model_losses(model, ids):
    inputs = (ids, ids) if isinstance(model, Transformer) else ids
    return losses_of(model, inputs, training=True)


@pytest.mark.one_backend
@pytest.mark.parametrize("name", [*MODELS, "Transformer"])
def test_padding_does_not_count(name):
    kind = MODELS.get(name, Transformer)
    model = kind(
        11,
        num_layers=1,
        num_heads=1,
        hidden_dim=D,
        intermediate_dim=F,
        dropout=0.0,
        attention_dropout=0.0,
        num_experts=E,
        router_aux_loss_coef=1.0,
    )
    randomize(model)
    expected = model_losses(model, IDS)
    assert len(expected) == (2 if name == "Transformer" else 1)
    padded = np.pad(IDS, ((0, 0), (0, 3)))
    for found, loss in zip(model_losses(model, padded), expected, strict=True):
        np.testing.assert_allclose(found, loss, rtol=1e-5)


def test_the_router_is_float32():
    layer = MixtureOfExperts(F, E, dtype="mixed_bfloat16")
    layer.build((None, D))
    assert layer._router.compute_dtype == "float32"
    x = ops.convert_to_tensor(normal(3, D))
    assert keras.backend.standardize_dtype(layer(x).dtype) == "bfloat16"
    randomize(layer)
    exact = MixtureOfExperts(F, E)
    exact.build((None, D))
    exact.set_weights(layer.get_weights())
    # Otherwise other experts would be chosen now and then.
    found, expected = (
        values(ops.cast(one(ops.cast(x, "bfloat16")), "float32"))
        for one in (layer, exact)
    )
    np.testing.assert_allclose(found, expected, atol=0.05)


CONFIGS = {
    "int8": None,
    "int4": keras.quantizers.Int4QuantizationConfig(block_size=None),
    "int4 in blocks": keras.quantizers.Int4QuantizationConfig(block_size=4),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_quantization(name):
    layer, exact = (
        ExpertDense(E, F, True, "glorot_uniform", "zeros") for _ in range(2)
    )
    for one in (layer, exact):
        one.build((None, None, D))
        randomize(one)
    kernel = to_numpy(exact.kernel)
    layer.quantize(name[:4], config=CONFIGS[name])
    assert layer.quantization_mode == name[:4]
    everything = ops.convert_to_tensor(np.tile(np.eye(D, dtype="f"), (E, 1, 1)))
    rounded = values(layer.call(everything)) - to_numpy(exact.bias)[:, None]
    # An expert and an output have scales of their own.
    if name != "int4 in blocks":
        steps = 127 if name == "int8" else 7
        scale = np.abs(kernel).max(1, keepdims=True) / steps
        assert_close(rounded, np.rint(kernel / scale) * scale)
    assert 1e-4 < np.abs(rounded - kernel).max() < 0.3
    exact.kernel.assign(rounded)
    x = ops.convert_to_tensor(normal(3, 2, D))
    experts = ops.convert_to_tensor(np.int32([4, 0, 4]))
    assert_close(values(layer.call(x, experts)), values(exact.call(x, experts)))
    assert_close(values(layer.call(x[:1])), values(exact.call(x[:1])))


@pytest.mark.one_backend
def test_quantization_of_a_model(tmp_path):
    model = GPT(
        11,
        num_layers=1,
        num_heads=2,
        hidden_dim=8,
        intermediate_dim=F,
        num_experts=E,
        max_sequence_length=16,
    )
    randomize(model)
    with pytest.raises(
        ValueError, match=r"'float8', but .*inner_experts .*int"
    ):
        model.quantize("float8", filters=lambda layer: "expert" in layer.path)
    before = to_numpy(model(IDS))
    model.quantize("int8", filters="experts|router")
    modes = {x.name: x.quantization_mode for x in model._flatten_layers()}
    after = to_numpy(model(IDS))
    assert 0 < np.abs(after - before).max() < 0.2 * np.abs(before).max()
    # Rounding would send tokens to other experts.
    assert (modes["inner_experts"], modes["router"]) == ("int8", None)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert_close(to_numpy(loaded(IDS)), after)
    found, expected = (
        one.generate(IDS, max_new_tokens=2).tokens for one in (loaded, model)
    )
    np.testing.assert_array_equal(found, expected)


def test_contract():
    make_layer = functools.partial(
        MixtureOfExperts, F, E, activation="gelu", gated=True, dropout=0.1
    )
    check_layer(make_layer, normal(2, 3, D))


def test_dropout_applies_to_the_hidden_layer():
    layer = make(dropout=0.5)
    x = normal(1, 6, D)
    assert_close(values(layer(x)), values(make()(x)))
    assert_differs(values(layer(x, training=True)), values(layer(x)))


def test_initial_kernels_have_the_scale_of_one_network():
    layer = MixtureOfExperts(64, 8)
    layer.build((None, 32))
    for kernel in (layer._inner.kernel, layer._outer.kernel):
        kernel = to_numpy(kernel)
        limit = (6 / (32 + 64)) ** 0.5
        assert 0.95 * limit < np.abs(kernel).max() <= limit
        # The experts differ.
        assert len(np.unique(kernel[:, 0, 0])) == 8
    ones = MixtureOfExperts(3, 2, kernel_initializer="ones")
    ones.build((None, 2))
    np.testing.assert_array_equal(to_numpy(ones._inner.kernel), 1.0)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"num_experts": 0}, "`num_experts` must be a positive"),
        ({"num_experts": None}, "`num_experts` must be a positive"),
        ({"num_experts_per_tok": 3}, "at most `num_experts`.*=3.*=2"),
        ({"num_experts_per_tok": 0}, "`num_experts_per_tok` must be a pos"),
        ({"router_aux_loss_coef": -1.0}, "`router_aux_loss_coef` must be at"),
        ({"router_aux_loss_coef": None}, "`router_aux_loss_coef` must be a f"),
        ({"gate_limit": 1.0}, "`gate_limit` must be None"),
    ],
)
def test_invalid_arguments_raise(arguments, message):
    arguments = {"intermediate_dim": 5, "num_experts": 2} | arguments
    with pytest.raises(ValueError, match=message):
        MixtureOfExperts(**arguments)


def test_invalid_inputs_raise():
    layer = make()
    with pytest.raises(ValueError, match="`inputs` must have 4 features"):
        layer(normal(2, 3, 5))
    with pytest.raises(ValueError, match=r"`mask` .*\(2, 3\).*\(2,\)"):
        layer(normal(2, 3, D), mask=np.ones(2, "bool"))
    with pytest.raises(ValueError, match=r"`mask` .*\(2, 3\).*\(2, 4\)"):
        layer(normal(2, 3, D), mask=np.ones((2, 4), "bool"))
