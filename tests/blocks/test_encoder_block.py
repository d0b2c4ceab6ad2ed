"""EncoderBlock against torch.nn.TransformerEncoderLayer and the reference."""

import keras
import numpy as np
import pytest
from keras import ops

import keras_attn
from keras_attn.blocks import EncoderBlock
from tests.helpers import reference, torch_twin
from tests.helpers.arrays import to_numpy
from tests.helpers.contract import check_layer, randomize
from tests.helpers.weight_gradients import layer_gradients, weighted_sum

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 4, 8)).astype("float32")
UPSTREAM = RNG.normal(size=X.shape).astype("float32")
MASK = np.array([[1, 1, 1, 1], [0, 1, 1, 0]], "bool")
LOWER = np.tril(np.ones((4, 4), "bool"))


def make_block(**kwargs):
    block = EncoderBlock(num_heads=2, intermediate_dim=12, **kwargs)
    block.build(X.shape)
    return randomize(block)


def loss_of(block, **call_kwargs):
    """Returns a scalar loss of tokens only, without padding."""
    weights = UPSTREAM * MASK[..., None]

    def loss(x):
        return weighted_sum(block(x, mask=MASK, **call_kwargs), weights)

    return loss


@pytest.mark.every_backend
@pytest.mark.parametrize(
    "normalize_first, activation, causal",
    [
        (False, "relu", False),
        (False, "gelu", True),
        (True, "relu", True),
        (True, "gelu", False),
    ],
)
def test_equals_torch(normalize_first, activation, causal):
    block = make_block(normalize_first=normalize_first, activation=activation)
    attention_mask = LOWER if causal else None
    twin = torch_twin.encoder_layer(block)
    x = torch_twin.tensor(X, requires_grad=True)
    expected = twin(
        x,
        src_mask=torch_twin.tensor(~LOWER) if causal else None,
        src_key_padding_mask=torch_twin.tensor(~MASK),
    )
    (expected * torch_twin.tensor(UPSTREAM))[
        torch_twin.tensor(MASK)
    ].sum().backward()

    output = block(X, mask=MASK, attention_mask=attention_mask)
    (at_x,), at_weights = layer_gradients(
        block, loss_of(block, attention_mask=attention_mask), X
    )

    np.testing.assert_allclose(
        to_numpy(output)[MASK],
        expected.detach().numpy()[MASK],
        atol=1e-5,
    )
    np.testing.assert_allclose(at_x, x.grad.numpy(), atol=1e-5, rtol=1e-5)
    found = torch_twin.as_encoder_layer(at_weights)
    for name, gradient in torch_twin.gradients_of(twin).items():
        np.testing.assert_allclose(
            found[name], gradient, atol=1e-5, rtol=1e-5, err_msg=name
        )


@pytest.mark.every_backend
def test_matches_reference_with_all_options():
    block = make_block(
        key_dim=3,
        num_key_value_heads=1,
        gated=True,
        normalize_first=True,
        sliding_window=2,
        epsilon=1e-3,
    )
    positions = reference.positions_from_mask(MASK)
    mask = reference.visible(2, 4, 4, positions, positions, window=2)
    expected = reference.encoder_block(
        np.where(MASK[..., None], X, 0),
        block.get_weights(),
        mask,
        normalize_first=True,
        epsilon=1e-3,
        gated=True,
    )
    output = to_numpy(block(X, mask=MASK))
    np.testing.assert_allclose(output[MASK], expected[MASK], atol=1e-5)


@pytest.mark.parametrize("masked", [False, True])
def test_explicit_positions_are_used_and_masks_still_apply(masked):
    block = make_block(sliding_window=3)
    positions = np.array([[0, 2, 4, 5], [-1, 7, 6, 8]], "int32")
    token_mask = (positions >= 0) & (MASK | (not masked))
    visible = np.where(token_mask, positions, -1)
    expected = reference.encoder_block(
        X,
        block.get_weights(),
        reference.visible(2, 4, 4, visible, visible, window=3),
    )
    output = block(X, mask=MASK if masked else None, positions=positions)
    np.testing.assert_allclose(
        to_numpy(output)[token_mask], expected[token_mask], atol=1e-5
    )


@pytest.mark.parametrize("normalize_first", [False, True])
def test_nan_in_padding_changes_nothing(normalize_first):
    block = make_block(normalize_first=normalize_first)
    poisoned = np.where(MASK[..., None], X, np.nan)
    results = []
    for x in (X, poisoned):
        output = to_numpy(block(x, mask=MASK))
        (at_x,), at_weights = layer_gradients(block, loss_of(block), x)
        results.append([output[MASK], at_x, *at_weights.values()])
        assert (at_x[~MASK] == 0).all()
    for clean, dirty in zip(*results, strict=True):
        np.testing.assert_array_equal(dirty, clean)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("normalize_first", [False, True])
def test_rows_of_padding_only(dtype, normalize_first):
    policy = dtype if dtype == "float32" else f"mixed_{dtype}"
    block = make_block(dtype=policy, normalize_first=normalize_first)
    mask = np.array([[1, 1, 1, 1], [0, 0, 0, 0]], "bool")
    output = block(X, mask=mask)
    assert keras.backend.standardize_dtype(output.dtype) == dtype
    assert np.isfinite(to_numpy(ops.cast(output, "float32"))).all()

    upstream = np.where(mask[..., None], UPSTREAM, 0)

    def whole(x):
        return weighted_sum(block(x, mask=mask), UPSTREAM)

    def real(x):
        return weighted_sum(block(x, mask=mask), upstream)

    def not_padded(x):
        return weighted_sum(block(x, mask=np.ones_like(mask)), upstream)

    # If the loss includes padding, padded inputs still get no gradient.
    (at_x,), at_weights = layer_gradients(block, whole, X)
    assert (at_x[1] == 0).all() and (at_x[0] != 0).any()
    assert all(np.isfinite(g).all() for g in at_weights.values())
    # If it does not, masking the row makes no difference.
    _, with_padding = layer_gradients(block, real, X)
    _, without = layer_gradients(block, not_padded, X)
    tolerance = 1e-5 if dtype == "float32" else 3e-2
    for name, gradient in without.items():
        np.testing.assert_allclose(
            with_padding[name],
            gradient,
            rtol=tolerance,
            atol=tolerance,
            err_msg=name,
        )


def test_six_blocks_do_not_attend_to_padding():
    ids = np.array([[5, 6, 7, 0], [0, 6, 0, 7]])
    inputs = keras.Input((None,), dtype="int32")
    x = keras_attn.layers.TokenEmbedding(10, 8)(inputs)
    x = keras_attn.layers.PositionalEmbedding()(x)
    for number in range(6):
        x = EncoderBlock(
            num_heads=2, intermediate_dim=12, name=f"block_{number}"
        )(x)
    model = keras.Model(inputs, x)
    with keras_attn.ops.capture_weights() as captured:
        model(ids)
    real = ids != 0
    assert len(captured) == 6
    for (path, _), weights in captured.items():
        weights = to_numpy(weights)
        on_padding = np.where(real[:, None, None, :], 0, weights)
        assert (on_padding == 0).all(), path
        total = weights.sum(-1).transpose(0, 2, 1)
        np.testing.assert_allclose(total[real], 1, atol=1e-6, err_msg=path)
        assert (total[~real] == 0).all(), path


def test_layer_contract():
    check_layer(
        lambda **kwargs: EncoderBlock(
            num_heads=2, intermediate_dim=12, **kwargs
        ),
        X,
    )


def test_config_contains_all_arguments():
    config = {
        "num_heads": 4,
        "intermediate_dim": 6,
        "key_dim": 3,
        "num_key_value_heads": 2,
        "dropout": 0.1,
        "attention_dropout": 0.2,
        "activation_dropout": 0.3,
        "activation": "gelu",
        "gated": True,
        "normalize_first": True,
        "epsilon": 1e-3,
        "use_bias": False,
        "sliding_window": 4,
        "name": "all_but_the_defaults",
    }
    block = EncoderBlock(
        **config, kernel_initializer="ones", bias_initializer="ones"
    )
    again = EncoderBlock.from_config(block.get_config()).get_config()
    assert again == block.get_config()
    assert {name: again[name] for name in config} == config
    assert again["kernel_initializer"]["class_name"] == "Ones"
    assert again["bias_initializer"]["class_name"] == "Ones"
    block.build(X.shape)
    assert not any("bias" in v.path for v in block.weights)


@pytest.mark.every_backend
@pytest.mark.parametrize(
    "kind", ["dropout", "attention_dropout", "activation_dropout"]
)
def test_dropout_is_applied_only_in_training(kind):
    block = make_block(**{kind: 0.5})
    plain = make_block()
    inference = to_numpy(block(X, mask=MASK))
    np.testing.assert_array_equal(inference, to_numpy(plain(X, mask=MASK)))
    first, second = (
        to_numpy(block(X, mask=MASK, training=True)) for _ in range(2)
    )
    assert np.abs(first - inference)[MASK].max() > 1e-2
    assert np.abs(first - second)[MASK].max() > 1e-2


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"num_heads": 0, "intermediate_dim": 8}, "num_heads"),
        ({"num_heads": 2, "intermediate_dim": 8.5}, "intermediate_dim"),
        ({"num_heads": 2, "intermediate_dim": 8, "key_dim": -1}, "key_dim"),
        ({"num_heads": 2, "intermediate_dim": 8, "dropout": 1}, "dropout"),
        (
            {"num_heads": 2, "intermediate_dim": 8, "attention_dropout": "x"},
            "attention_dropout",
        ),
    ],
)
def test_invalid_arguments_raise(arguments, message):
    with pytest.raises(ValueError, match=f"`{message}`.*Received"):
        EncoderBlock(**arguments)


def test_invalid_inputs_raise():
    with pytest.raises(ValueError, match=r"num_heads=3 and 8 features"):
        EncoderBlock(num_heads=3, intermediate_dim=12)(X)
    with pytest.raises(ValueError, match=r"num_key_value_heads=2"):
        EncoderBlock(
            num_heads=3, intermediate_dim=12, key_dim=4, num_key_value_heads=2
        )(X)
    block = make_block()
    with pytest.raises(ValueError, match=r"`inputs` must have rank 3.*\(2, 4"):
        block(X[..., None])
    with pytest.raises(ValueError, match=r"`mask` must have rank 2"):
        block(X, mask=MASK[..., None])
    with pytest.raises(ValueError, match=r"`attention_mask`.*\(4,\)"):
        block(X, attention_mask=LOWER[0])
