"""DecoderBlock against torch.nn.TransformerDecoderLayer and the reference."""

import keras
import numpy as np
import pytest
from keras import ops

import keras_attn
from keras_attn import cache as kv
from keras_attn.blocks import DecoderBlock, EncoderBlock
from tests.helpers import reference, torch_twin
from tests.helpers.arrays import to_numpy
from tests.helpers.contract import attach_mask, check_layer, randomize
from tests.helpers.weight_gradients import layer_gradients, weighted_sum

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 3, 8)).astype("float32")
MEMORY = RNG.normal(size=(2, 4, 8)).astype("float32")
UPSTREAM = RNG.normal(size=X.shape).astype("float32")
MASK = np.array([[1, 1, 1], [1, 1, 0]], "bool")
MEMORY_MASK = np.array([[1, 1, 1, 0], [0, 1, 1, 1]], "bool")
MASKS = {"mask": MASK, "memory_mask": MEMORY_MASK}
LOWER = np.tril(np.ones((3, 3), "bool"))
EVERYTHING = {
    "key_dim": 3,
    "num_key_value_heads": 1,
    "gated": True,
    "normalize_first": True,
    "sliding_window": 2,
    "activation": "gelu",
}


def make_block(**kwargs):
    block = DecoderBlock(num_heads=2, intermediate_dim=12, **kwargs)
    block.build(X.shape, MEMORY.shape)
    return randomize(block)


def loss_of(block, masks=MASKS, real=MASK):
    """Returns a scalar loss, by default of tokens only, without padding."""
    weights = UPSTREAM * real[..., None]
    return lambda x, memory: weighted_sum(block(x, memory, **masks), weights)


@pytest.mark.every_backend
@pytest.mark.parametrize(
    "normalize_first, activation", [(False, "relu"), (True, "gelu")]
)
def test_equals_torch(normalize_first, activation):
    block = make_block(normalize_first=normalize_first, activation=activation)
    twin = torch_twin.decoder_layer(block)
    x, memory = (torch_twin.tensor(a, requires_grad=True) for a in (X, MEMORY))
    expected = twin(
        x,
        memory,
        tgt_mask=torch_twin.tensor(~LOWER),
        tgt_key_padding_mask=torch_twin.tensor(~MASK),
        memory_key_padding_mask=torch_twin.tensor(~MEMORY_MASK),
    )
    (expected * torch_twin.tensor(UPSTREAM))[
        torch_twin.tensor(MASK)
    ].sum().backward()

    output = block(X, MEMORY, **MASKS)
    (at_x, at_memory), at_weights = layer_gradients(
        block, loss_of(block), X, MEMORY
    )

    np.testing.assert_allclose(
        to_numpy(output)[MASK],
        expected.detach().numpy()[MASK],
        atol=1e-5,
    )
    np.testing.assert_allclose(at_x, x.grad, atol=1e-5, rtol=1e-5)
    np.testing.assert_allclose(at_memory, memory.grad, atol=1e-5, rtol=1e-5)
    found = torch_twin.as_decoder_layer(at_weights)
    for name, gradient in torch_twin.gradients_of(twin).items():
        np.testing.assert_allclose(
            found[name], gradient, atol=1e-5, rtol=1e-5, err_msg=name
        )


@pytest.mark.every_backend
def test_matches_reference_with_all_options():
    block = make_block(**{**EVERYTHING, "activation": "relu"})
    holes = RNG.random((2, 2, 3, 3)) > 0.3
    positions = reference.positions_from_mask(MASK)
    mask = reference.visible(
        *(2, 3, 3),
        positions,
        positions,
        attention_mask=holes,
        causal=True,
        window=2,
        heads=2,
    )
    expected = reference.decoder_block(
        X,
        MEMORY,
        block.get_weights(),
        mask,
        MEMORY_MASK[:, None, None],
        normalize_first=True,
        gated=True,
    )
    output = block(X, MEMORY, attention_mask=holes, **MASKS)
    np.testing.assert_allclose(
        to_numpy(output)[MASK], expected[MASK], atol=1e-5
    )


def test_nan_in_padding_changes_nothing():
    block = make_block()
    poisoned = np.where(MASK[..., None], X, np.nan)
    poisoned_memory = np.where(MEMORY_MASK[..., None], MEMORY, np.nan)
    results = []
    for x, memory in ((X, MEMORY), (poisoned, poisoned_memory)):
        output = to_numpy(block(x, memory, **MASKS))
        (at_x, at_memory), at_weights = layer_gradients(
            block, loss_of(block), x, memory
        )
        results.append([output[MASK], at_x, at_memory, *at_weights.values()])
        assert (at_x[~MASK] == 0).all()
        assert (at_memory[~MEMORY_MASK] == 0).all()
    for clean, dirty in zip(*results, strict=True):
        np.testing.assert_array_equal(dirty, clean)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_rows_of_padding_only(dtype):
    policy = dtype if dtype == "float32" else f"mixed_{dtype}"
    block = make_block(dtype=policy)
    full = np.ones((2, 3), "bool"), np.ones((2, 4), "bool")
    for side in ("mask", "memory_mask"):
        masks = dict(zip(MASKS, full, strict=True))
        masks[side] = masks[side] & np.array([[True], [False]])
        output = ops.cast(block(X, MEMORY, **masks), "float32")
        assert np.isfinite(to_numpy(output)).all()
        (at_x, at_memory), at_weights = layer_gradients(
            block, loss_of(block, masks, full[0]), X, MEMORY
        )
        assert all(np.isfinite(g).all() for g in at_weights.values())
        assert np.isfinite(at_x).all()
        # An empty target or an empty memory gives the memory no gradient.
        assert (at_memory[1] == 0).all() and (at_memory[0] != 0).any()
        assert (at_x[1] == 0).all() == (side == "mask")


def test_empty_memory_adds_nothing():
    block = make_block()
    masks = {"mask": MASK, "memory_mask": np.zeros((2, 4), "bool")}
    output = to_numpy(block(X, MEMORY, **masks))
    # LayerNorm(x + 0): nothing is added, not even the output bias.
    zeroed = make_block()
    for variable in zeroed.weights:
        if "cross_attention/attention_output" in variable.path:
            variable.assign(np.zeros(variable.shape))
    expected = to_numpy(zeroed(X, MEMORY, **MASKS))
    np.testing.assert_allclose(output[MASK], expected[MASK], atol=1e-6)


def test_implicit_masks_are_used():
    ids = np.array([[5, 0, 7], [0, 6, 7]])
    source = np.array([[5, 6, 0, 0], [5, 6, 7, 8]])
    target_input, source_input = (
        keras.Input((None,), dtype="int32") for _ in range(2)
    )
    embed = keras_attn.layers.TokenEmbedding(10, 8)
    memory, x = embed(source_input), embed(target_input)
    for number in range(2):
        x = DecoderBlock(
            num_heads=2, intermediate_dim=12, name=f"block_{number}"
        )(x, memory)
    model = keras.Model([target_input, source_input], x)
    with keras_attn.ops.capture_weights() as captured:
        model([ids, source])
    assert len(captured) == 4
    for (path, _), weights in captured.items():
        weights = to_numpy(weights)
        keys = source if "cross" in path else ids
        masked = (keys == 0)[:, None, None, :]
        assert (np.where(masked, weights, 0) == 0).all(), path
        total = weights.sum(-1).transpose(0, 2, 1)[ids != 0]
        np.testing.assert_allclose(total, 1, atol=1e-6, err_msg=path)


def test_implicit_masks_match_explicit_masks():
    block = make_block()
    x = np.where(MASK[..., None], X, np.nan)
    memory = np.where(MEMORY_MASK[..., None], MEMORY, np.nan)
    output = block(
        attach_mask(ops.convert_to_tensor(x), MASK),
        attach_mask(ops.convert_to_tensor(memory), MEMORY_MASK),
    )
    np.testing.assert_array_equal(
        to_numpy(output),
        to_numpy(block(X, MEMORY, **MASKS)),
    )


@pytest.mark.every_backend
@pytest.mark.parametrize("arguments", [{}, EVERYTHING], ids=["plain", "all"])
def test_cached_steps_match_full_pass(arguments):
    beams = 2
    block = make_block(**arguments)
    memory_positions = np.array([[0, 1, 2, -1], [0, -1, -1, -1]], "int32")
    x = RNG.normal(size=(2 * beams, 3, 8)).astype("float32")
    memory = np.where(memory_positions[..., None] >= 0, MEMORY, np.nan)
    expected = block(
        x,
        np.repeat(MEMORY, beams, axis=0),
        memory_mask=np.repeat(memory_positions >= 0, beams, axis=0),
    )
    projected = block.project_memory(
        ops.convert_to_tensor(memory), ops.convert_to_tensor(memory_positions)
    )
    memory_cache = kv.from_projections(
        [projected[0]], [projected[1]], ops.convert_to_tensor(memory_positions)
    )
    heads, width = projected[0].shape[2:]
    cache = kv.empty(2 * beams, 7, 1, heads, width, width, "float32")
    outputs = []
    for first, last in ((0, 1), (1, 3)):
        positions, cache = kv.open_slots(cache, last - first)
        assert to_numpy(positions)[0].tolist() == list(range(first, last))
        output, cache = block.decode_step(
            ops.convert_to_tensor(x[:, first:last]),
            cache,
            0,
            kv.DecodingStep(positions, memory_cache),
        )
        cache = kv.close_slots(cache, last - first)
        outputs.append(to_numpy(output))
    np.testing.assert_allclose(
        np.concatenate(outputs, axis=1),
        to_numpy(expected),
        atol=1e-5,
    )


def test_layer_contract():
    check_layer(
        lambda **kwargs: DecoderBlock(
            num_heads=2, intermediate_dim=12, **kwargs
        ),
        (X, MEMORY),
    )


def test_invalid_inputs_raise():
    with pytest.raises(ValueError, match=r"num_heads=3 and 8 features"):
        DecoderBlock(num_heads=3, intermediate_dim=12)(X, MEMORY)
    block = make_block()
    with pytest.raises(ValueError, match=r"`memory` must have rank 3.*\(2, 4"):
        block(X, MEMORY[..., None])
    with pytest.raises(ValueError, match=r"`memory_mask` must have rank 2"):
        block(X, MEMORY, memory_mask=MEMORY_MASK[0])


def test_without_memory_matches_causal_encoder_block():
    block = DecoderBlock(num_heads=2, intermediate_dim=12, activation="gelu")
    block.build(X.shape)
    randomize(block)
    twin = EncoderBlock(num_heads=2, intermediate_dim=12, activation="gelu")
    twin.build(X.shape)
    twin.set_weights(block.get_weights())
    weights = UPSTREAM * MASK[..., None]
    found = to_numpy(block(X, mask=MASK))
    expected = to_numpy(twin(X, mask=MASK, attention_mask=LOWER))
    np.testing.assert_allclose(found[MASK], expected[MASK], atol=1e-5)
    (found,), at_weights = layer_gradients(
        block, lambda x: weighted_sum(block(x, mask=MASK), weights), X
    )
    (expected,), twin_weights = layer_gradients(
        twin,
        lambda x: weighted_sum(
            twin(x, mask=MASK, attention_mask=LOWER), weights
        ),
        X,
    )
    np.testing.assert_allclose(found, expected, atol=1e-5)
    for one, other in zip(
        at_weights.values(), twin_weights.values(), strict=True
    ):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_layer_contract_without_memory():
    check_layer(
        lambda **kwargs: DecoderBlock(
            num_heads=2, intermediate_dim=12, **kwargs
        ),
        X,
    )
