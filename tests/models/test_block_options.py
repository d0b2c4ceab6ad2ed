"""Options of the blocks that models take from their keyword arguments."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.blocks import DecoderBlock, EncoderBlock
from keras_attn.decoding import BeamSearch
from keras_attn.layers import RotaryPosition
from keras_attn.models import (
    GPT,
    Bert,
    Encoder,
    Transformer,
    TransformerXL,
    XLNet,
)
from keras_attn.pretrained import save
from keras_attn.training import SequenceCrossentropy
from tests.helpers.arrays import to_numpy
from tests.helpers.contract import randomize

OPTIONS = {
    "num_heads": 4,
    "key_dim": 6,
    "num_key_value_heads": 2,
    "use_bias": False,
    "sliding_window": 3,
    "normalization": "rms_norm",
    "normalize_output": True,
    "qk_norm": "head",
    "attention_soft_cap": 2.0,
    "use_sinks": True,
    "layer_scale": 0.5,
    "stochastic_depth": 0.25,
    "gated": True,
    "gate_limit": 2.0,
    "num_experts": 3,
}
SIZES = {
    "num_layers": 2,
    "hidden_dim": 8,
    "intermediate_dim": 12,
    "dropout": 0.0,
    "attention_dropout": 0.0,
}
MODELS = {
    kind.__name__: kind
    for kind in (Bert, Encoder, GPT, Transformer, TransformerXL, XLNet)
}
IDS = np.array([[3, 4, 5, 6, 7, 8], [7, 8, 2, 0, 0, 0]], "int32")


def make(name):
    return randomize(MODELS[name](11, **SIZES, **OPTIONS), scale=0.5)


def blocks_of(model):
    names = "_blocks", "_encoder_blocks", "_decoder_blocks"
    return [block for name in names for block in getattr(model, name, ())]


@pytest.mark.parametrize("name", sorted(MODELS))
def test_models_pass_the_options_to_their_blocks(name, tmp_path):
    model = make(name)
    blocks = blocks_of(model)
    assert len(blocks) == (4 if name == "Transformer" else 2)
    for option, value in OPTIONS.items():
        assert getattr(model, option) == value
        assert {getattr(block, option) for block in blocks} == {value}
    paths = [weight.path for weight in model.weights]
    assert any("self_attention/key/kernel" in path for path in paths)
    assert not any("self_attention/key/bias" in path for path in paths)
    inputs = (IDS, IDS) if name == "Transformer" else IDS
    expected = model(inputs)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    for one, other in zip(
        keras.tree.flatten(expected),
        keras.tree.flatten(loaded(inputs)),
        strict=True,
    ):
        np.testing.assert_allclose(to_numpy(other), to_numpy(one), atol=1e-6)


@pytest.mark.every_backend
@pytest.mark.parametrize("name", ["GPT", "Transformer", "TransformerXL"])
def test_cached_steps_equal_the_whole_pass(name):
    model = make(name)
    source = ops.convert_to_tensor(IDS[:1, :2])
    rest = IDS[:1, 2:]
    if name == "Transformer":
        expected = model((source, rest))
        inputs, fed = source, rest
    else:
        expected = model(IDS[:1])[:, 1:]
        inputs, fed = source, IDS[:1, 1:]
    state = model.start_decoding(inputs, fed.shape[1])
    found = []
    for index in range(fed.shape[1]):
        token = ops.convert_to_tensor(fed[:, index : index + 1])
        logits, state = model.decode_step(token, state)
        found.append(to_numpy(logits))
    np.testing.assert_allclose(
        np.concatenate(found, axis=1), to_numpy(expected), atol=1e-5
    )


def test_beams_of_grouped_heads_equal_separate_searches():
    model = make("GPT")
    strategy = BeamSearch(num_beams=2, num_return_sequences=2)
    prompts = [[3, 4, 5], [6, 7]]
    found = model.generate(prompts, max_new_tokens=4, strategy=strategy)
    for row, prompt in enumerate(prompts):
        alone = model.generate([prompt], max_new_tokens=4, strategy=strategy)
        np.testing.assert_array_equal(found.tokens[row], alone.tokens[0])


@pytest.mark.parametrize("option", sorted(OPTIONS.keys() - {"num_heads"}))
def test_a_published_format_has_no_such_option(option, tmp_path):
    options = {"num_heads": 4, option: OPTIONS[option]}
    if option == "gate_limit":
        options["gated"] = True
    sizes = SIZES | {"dropout": 0.1, "attention_dropout": 0.1}
    model = GPT(11, **sizes, **options, pad_id=None, max_sequence_length=16)
    with pytest.raises(ValueError, match=f"GPT-2 .*{option}="):
        save(model, tmp_path / "folder")


@pytest.mark.parametrize("name", sorted(MODELS))
def test_a_window_for_each_layer(name):
    model = MODELS[name](11, **SIZES, num_heads=2, sliding_window=[3, None])
    windows = [block.sliding_window for block in blocks_of(model)]
    assert windows == [3, None] * (len(windows) // 2)
    restored = MODELS[name].from_config(model.get_config())
    assert restored.sliding_window == (3, None)
    with pytest.raises(ValueError, match=r"each of the 2 layers.*3 values"):
        MODELS[name](11, **SIZES, num_heads=2, sliding_window=[3, None, 1])


@pytest.mark.parametrize("name", sorted(MODELS))
def test_the_first_norm_of_a_model_can_be_skipped(name):
    options = {"num_heads": 2, "normalization": "bias_free_layer_norm"}
    options |= {"normalize_first": True, "skip_first_norm": True}
    model = MODELS[name](11, **SIZES, **options)
    restored = MODELS[name].from_config(model.get_config())
    blocks = blocks_of(restored)
    skipped = [block.skip_first_norm for block in blocks]
    assert skipped == [True, False] * (len(blocks) // 2)
    norms = [len(block._around_attention.weights) for block in blocks]
    assert norms == [0, 1] * (len(blocks) // 2)
    assert all(len(block._around_network.weights) == 1 for block in blocks)
    paths = [weight.path for weight in restored.weights]
    assert not any(path.endswith("norm/beta") for path in paths)
    with pytest.raises(ValueError, match="`skip_first_norm` requires"):
        MODELS[name](11, **SIZES, **(options | {"normalize_first": False}))


def test_a_block_without_the_first_norm():
    """Its attention reads the inputs, and its network the norm of the sum."""
    options = {"num_heads": 2, "intermediate_dim": 4, "normalize_first": True}
    x = np.random.default_rng(0).normal(size=(2, 3, 8)).astype("float32")
    block = EncoderBlock(**options, skip_first_norm=True)
    block(x)
    randomize(block)
    seen = block._self_attention(x, x)
    y = x + to_numpy(seen)
    mixed = block._network(block._around_network._norm(y))
    np.testing.assert_allclose(
        to_numpy(block(x)), y + to_numpy(mixed), atol=1e-5
    )


def test_parallel_residual_needs_blocks_without_memory():
    options = {"normalize_first": True, "use_parallel_residual": True}
    with pytest.raises(ValueError, match="decoder blocks have a memory"):
        Transformer(11, **SIZES, num_heads=2, **options)
    block = DecoderBlock(num_heads=2, intermediate_dim=4, **options)
    with pytest.raises(ValueError, match="False in a block with a memory"):
        block.build((None, None, 8), (None, None, 8))
    with pytest.raises(ValueError, match="must be a positive integer"):
        DecoderBlock(num_heads=2, intermediate_dim=4, sliding_window=(3,))


def test_shared_blocks_have_one_window_and_position():
    for lists in (
        {"sliding_window": [3, None]},
        {"attention_position": [None, RotaryPosition()]},
    ):
        with pytest.raises(ValueError, match="share one block"):
            Encoder(11, **SIZES, num_heads=2, share_blocks=True, **lists)
    options = {"normalize_first": True, "skip_first_norm": True}
    with pytest.raises(ValueError, match=r"share one block.*share_blocks=True"):
        Encoder(11, **SIZES, num_heads=2, share_blocks=True, **options)


def test_position_for_each_layer_of_an_encoder():
    positions = [RotaryPosition(10.0), None]
    model = Encoder(11, **SIZES, num_heads=2, attention_position=positions)
    assert [b.attention_position for b in model._blocks] == positions
    restored = Encoder.from_config(model.get_config())
    first, none = restored.attention_position
    assert first.max_wavelength == 10.0 and none is None


def test_a_soft_cap_bounds_logits_and_loss():
    """`fit` without all logits would compute the loss without the bound."""
    model = GPT(
        70_000,
        num_layers=1,
        num_heads=1,
        hidden_dim=2,
        intermediate_dim=2,
        dropout=0.0,
        logits_soft_cap=0.1,
    )
    for weight in model.weights:
        weight.assign(5 * ops.ones_like(weight))
    assert abs(to_numpy(model(IDS))).max() <= 0.1
    model.compile(loss=SequenceCrossentropy(pad_id=0))
    loss = model.test_on_batch(IDS, IDS)
    np.testing.assert_allclose(loss, np.log(70_000), rtol=1e-3)


def test_an_unknown_option_raises():
    with pytest.raises((TypeError, ValueError), match="num_queries"):
        GPT(11, **SIZES, num_heads=2, num_queries=4)
