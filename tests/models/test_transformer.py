"""Transformer against torch.nn.Transformer: logits, loss and gradients."""

import keras
import numpy as np
import pytest
from keras import ops

import keras_attn
from keras_attn.blocks import DecoderBlock, EncoderBlock
from keras_attn.layers import RotaryPosition, T5Position
from keras_attn.models import Transformer
from keras_attn.training import SequenceCrossentropy
from tests.helpers import torch_twin
from tests.helpers.arrays import to_numpy
from tests.helpers.gradients import gradient
from tests.helpers.tiny_models import (
    LABELS,
    SIZE,
    SOURCE,
    TARGET,
    never_drawn,
    tiny_transformer,
)
from tests.helpers.torch_transformer import TorchTransformer
from tests.helpers.weight_gradients import layer_gradients

torch = pytest.importorskip("torch")

PRE_NORM = {
    "normalize_first": True,
    "activation": "gelu",
    "position_embedding": "learned",
    "max_sequence_length": 6,
}
FORMS = {
    "paper": {},
    "pre-norm": PRE_NORM,
    "two vocabularies": {"target_vocabulary_size": 13},
    "untied": {"tie_word_embeddings": False},
    "pad is start": {"start_id": 0},
    "Marian's": {
        "start_id": 0,
        "position_embedding_layout": "halves",
        "max_sequence_length": 6,
        "scale_embedding": False,
        "output_bias": True,
        "num_decoder_layers": 1,
        "num_decoder_heads": 4,
        "decoder_intermediate_dim": 20,
    },
    "biased output of two vocabularies": {
        "target_vocabulary_size": 13,
        "output_bias": True,
    },
    "untied and without bias": {
        "tie_word_embeddings": False,
        "output_bias": False,
    },
    "relative": {"position_embedding": None, "relative": True},
}

_SIDES = "encoder_attention_position", "decoder_attention_position"


def run_both(model, target=TARGET):
    """Returns loss, logits and gradients of the model and of PyTorch's."""
    twin = TorchTransformer(model)
    expected = twin(SOURCE, target)
    loss = torch.nn.functional.cross_entropy(
        expected.flatten(0, 1),
        torch_twin.tensor(LABELS.reshape(-1).astype("int64")),
        ignore_index=0,
        label_smoothing=0.1,
    )
    loss.backward()
    measure = SequenceCrossentropy(label_smoothing=0.1)
    logits = to_numpy(model((SOURCE, target)))
    _, found = layer_gradients(
        model, lambda: measure(LABELS, model((SOURCE, target)))
    )
    return (
        (float(measure(LABELS, logits)), logits, twin.in_torch_layout(found)),
        (loss.item(), expected.detach().numpy(), twin.gradients()),
        twin,
    )


@pytest.mark.every_backend
@pytest.mark.parametrize("form", FORMS)
def test_equals_torch(form):
    model = tiny_transformer(num_layers=2, **FORMS[form])
    target = TARGET.copy()
    target[:, 0] = model.start_id
    found, expected, _ = run_both(model, target)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-5)
    real = LABELS != 0
    np.testing.assert_allclose(
        found[1][real], expected[1][real], rtol=1e-5, atol=1e-5
    )
    assert set(found[2]) == set(expected[2])
    for name, of_torch in expected[2].items():
        np.testing.assert_allclose(
            found[2][name], of_torch, rtol=1e-5, atol=1e-5, err_msg=name
        )


def test_shared_matrix_gets_gradients_from_three_uses():
    model = tiny_transformer()
    matrices = [v for v in model.weights if SIZE in v.shape]
    assert len(matrices) == 1
    found, _, twin = run_both(model)
    uses = [leaf.grad.numpy() for _, leaf in twin.leaves]
    assert len(uses) == 3
    assert all(np.abs(use).max() > 1e-4 for use in uses)
    np.testing.assert_allclose(
        found[2]["token_embedding/table/embeddings"], sum(uses), atol=1e-5
    )


def test_two_vocabularies_have_two_matrices():
    model = tiny_transformer(target_vocabulary_size=13)
    shapes = [tuple(v.shape) for v in model.weights if "embedding" in v.path]
    assert shapes == [(11, 8), (13, 8)]
    assert tuple(model((SOURCE, TARGET)).shape) == (2, 3, 13)


@pytest.mark.parametrize(
    "name, millions", [("base", 65), ("big", 213)]
)  # table 3 of the paper
def test_parameter_counts_of_the_paper(name, millions):
    with never_drawn():
        model = getattr(Transformer, name)(37000)
    assert abs(model.count_params() / 1e6 / millions - 1) < 0.04
    assert (model.num_layers, model.position_embedding) == (6, "sinusoidal")
    assert model.dropout == {"base": 0.1, "big": 0.3}[name]


def test_named_sizes_accept_other_arguments():
    with never_drawn():
        model = Transformer.big(100, 200, num_layers=1, hidden_dim=32)
    assert model.target_vocabulary_size == 200
    assert (model.num_layers, model.hidden_dim, model.num_heads) == (1, 32, 16)


def test_captures_encoder_decoder_and_cross_attention():
    model = tiny_transformer(num_layers=2)
    with keras_attn.ops.capture_weights() as captured:
        model((SOURCE, TARGET))
    shapes = {path: tuple(w.shape) for (path, _), w in captured.items()}
    keys = {
        "encoder_block_{}/self_attention": (4, SOURCE),
        "decoder_block_{}/self_attention": (3, TARGET),
        "decoder_block_{}/cross_attention": (3, SOURCE),
    }
    assert shapes == {
        name.format(index): (2, 2, queries, ids.shape[1])
        for name, (queries, ids) in keys.items()
        for index in range(2)
    }
    for (path, call), weights in captured.items():
        assert call == 0
        _, ids = keys[path.replace("0", "{}").replace("1", "{}")]
        masked = (ids == 0)[:, None, None, :]
        assert masked.any()
        assert not np.where(masked, to_numpy(weights), 0).any()


def test_works_in_a_functional_model():
    model = tiny_transformer()
    inputs = [keras.Input((None,), dtype="int32") for _ in range(2)]
    outer = keras.Model(inputs, keras.ops.softmax(model(inputs)))
    assert outer.output_shape == (None, None, SIZE)
    logits = to_numpy(model((SOURCE, TARGET)))
    expected = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    np.testing.assert_allclose(
        to_numpy(outer([SOURCE, TARGET])), expected, atol=1e-5
    )


def test_later_target_tokens_do_not_change_logits():
    model = tiny_transformer()
    other = TARGET.copy()
    other[:, 2] = 10
    before, after = (
        to_numpy(model((SOURCE, target))) for target in (TARGET, other)
    )
    np.testing.assert_array_equal(before[:, :2], after[:, :2])
    assert (before[:, 2] != after[:, 2]).any()


def each_with_its_position():
    """Positions of two encoder blocks and of two decoder blocks."""
    relative = T5Position(2, 8, 6, bidirectional=False, name="relative")
    return [RotaryPosition(10.0), None], [None, relative]


@pytest.mark.every_backend
def test_positions_of_each_layer():
    """Against blocks that are created with these positions."""
    sides = dict(zip(_SIDES, each_with_its_position(), strict=True))
    model = tiny_transformer(num_layers=2, position_embedding=None, **sides)
    ids = np.array([[5, 6, 7, 2], [8, 3, 9, 4]], "int32")
    sizes = {"num_heads": 2, "intermediate_dim": 12, "dropout": 0.0}
    parts = model.block_stack("encoder").blocks, model.block_stack().blocks
    (table,) = [v for v in model.weights if v.path.endswith("embeddings")]
    embedded = to_numpy(table)[ids] * 8**0.5
    twins, kinds = [], (EncoderBlock, DecoderBlock)
    for kind, blocks, positions in zip(
        kinds, parts, each_with_its_position(), strict=True
    ):
        for block, position in zip(blocks, positions, strict=True):
            twin = kind(**sizes, attention_position=position)
            twin.build(*[embedded.shape] * (1 + (kind is DecoderBlock)))
            twin.set_weights(block.get_weights())
            twins.append(twin)

    def outputs(blocks, x):
        first, second, third, fourth = blocks
        memory = second(first(x))
        return fourth(third(x, memory), memory)

    expected = outputs(twins, ops.convert_to_tensor(embedded))
    logits = to_numpy(expected) @ to_numpy(table).T
    np.testing.assert_allclose(to_numpy(model((ids, ids))), logits, atol=1e-4)
    found, other = (
        gradient(lambda x, b=blocks: ops.sum(outputs(b, x) ** 3), embedded)[0]
        for blocks in ([*parts[0], *parts[1]], twins)
    )
    np.testing.assert_allclose(found, other, rtol=1e-4, atol=1e-4)
    state = model.start_decoding(ids, 4)
    steps = []
    for index in range(4):
        step, state = model.decode_step(ids[:, index : index + 1], state)
        steps.append(to_numpy(step))
    np.testing.assert_allclose(
        np.concatenate(steps, 1), to_numpy(model((ids, ids))), atol=1e-4
    )
    restored = Transformer.from_config(model.get_config())
    first, none = restored.encoder_attention_position
    assert first.max_wavelength == 10.0 and none is None
    none, last = restored.decoder_attention_position
    assert last.max_distance == 6 and none is None


def test_invalid_attention_positions_raise():
    rotary = RotaryPosition()
    with pytest.raises(
        ValueError, match="`decoder_attention_position` must be a diff"
    ):
        tiny_transformer(
            encoder_attention_position=rotary, decoder_attention_position=rotary
        )
    with pytest.raises(
        ValueError, match="`encoder_attention_position` must be an Att"
    ):
        tiny_transformer(encoder_attention_position="rotary")
    with pytest.raises(
        ValueError, match=r"`decoder_attention_position` .*each of the 1 l"
    ):
        tiny_transformer(decoder_attention_position=[None, rotary])
    with pytest.raises(
        ValueError, match="`decoder_attention_position` must be a diff"
    ):
        tiny_transformer(
            encoder_attention_position=[rotary],
            decoder_attention_position=rotary,
        )
    with pytest.raises(ValueError, match="the 2 heads of the"):
        tiny_transformer(decoder_attention_position=T5Position(3))
