"""Options of the blocks that models take from their keyword arguments."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.decoding import BeamSearch
from keras_attn.models import (
    GPT,
    Bert,
    Encoder,
    Transformer,
    TransformerXL,
    XLNet,
)
from keras_attn.pretrained import save
from tests.helpers.arrays import to_numpy
from tests.helpers.contract import randomize

OPTIONS = {
    "num_heads": 4,
    "key_dim": 6,
    "num_key_value_heads": 2,
    "use_bias": False,
    "sliding_window": 3,
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
    sizes = SIZES | {"dropout": 0.1, "attention_dropout": 0.1}
    model = GPT(11, **sizes, **options, pad_id=None, max_sequence_length=16)
    with pytest.raises(ValueError, match=f"GPT-2 .*{option}="):
        save(model, tmp_path / "folder")


def test_an_unknown_option_raises():
    with pytest.raises((TypeError, ValueError), match="num_experts"):
        GPT(11, **SIZES, num_heads=2, num_experts=4)
