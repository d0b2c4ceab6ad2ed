"""Layouts of weights for `keras.distribution`."""

import math
import re

import keras
import pytest

from keras_attn import layers, models

SMALL = {"num_layers": 2, "num_heads": 8, "hidden_dim": 32}
BLOCKS = {**SMALL, "intermediate_dim": 128}
# Replicated on purpose: matrices D x D outside the blocks, recurrent cells and
# convolutions.
REPLICATED = re.compile(
    r"(.*/)?(transform|pooler|embedding_projection|no_answer|positions|"
    r"(source|target)_positions|character_embedding|encoder_\d+|"
    r"decoder/(cell_\d+|attention|mixing)|front_end|image_encoder|"
    r"patch_embedding|"
    r"initial_state_\d+)/.*"
)


def mesh(rows=1, split=2, names=("batch", "model")):
    devices = [f"cpu:{i}" for i in range(rows * split)]
    return keras.distribution.DeviceMesh((rows, split), names, devices)


def bert(**kwargs):
    return models.Bert(1000, **BLOCKS, max_sequence_length=16, **kwargs)


def vision_transformer(**kwargs):
    sizes = {"num_layers": 1, "num_heads": 8, "hidden_dim": 16}
    return models.VisionTransformer(
        (8, 8, 3), patch_size=4, intermediate_dim=128, **sizes, **kwargs
    )


MODELS = {
    "Transformer": lambda: models.Transformer(
        1000,
        1008,
        **BLOCKS,
        gated=True,
        normalize_first=True,
        position_embedding="learned",
        max_sequence_length=16,
        tie_word_embeddings=False,
        encoder_attention_position=layers.T5Position(8),
    ),
    "Transformer, tied": lambda: models.Transformer(
        1000, **BLOCKS, output_bias=True
    ),
    "GPT": lambda: models.GPT(
        1000, **BLOCKS, max_sequence_length=16, num_key_value_heads=4
    ),
    "GPT, experts": lambda: models.GPT(
        1000,
        **BLOCKS,
        gated=True,
        max_sequence_length=16,
        num_experts=5,
    ),
    "GPT, untied": lambda: models.GPT(
        1000,
        **BLOCKS,
        position_embedding=None,
        max_sequence_length=None,
        attention_position=layers.RotaryPosition(),
        tie_word_embeddings=False,
    ),
    "TransformerXL": lambda: models.TransformerXL(
        1000, **BLOCKS, stateful_batch_size=2, memory_length=1
    ),
    "XLNet": lambda: models.XLNet(
        1000,
        **BLOCKS,
        tie_word_embeddings=False,
        stateful_batch_size=2,
        memory_length=1,
    ),
    "Encoder": lambda: models.Encoder(
        1000,
        **BLOCKS,
        num_segments=2,
        character_vocabulary_size=16,
        normalize_embedding=True,
        normalize_first=True,
        embedding_dim=16,
        share_blocks=True,
        position_embedding="learned",
        max_sequence_length=16,
    ),
    "Bert": bert,
    "Roberta": lambda: models.Roberta(1000, **BLOCKS, max_sequence_length=16),
    "BertPretrainer": lambda: models.BertPretrainer(bert()),
    "TokenClassifier": lambda: models.TokenClassifier(bert(), 3),
    "SpanExtractor": lambda: models.SpanExtractor(bert()),
    "SequenceClassifier": lambda: models.SequenceClassifier(
        bert(pooler=False), 3
    ),
    "MultipleChoice": lambda: models.MultipleChoice(
        models.SequenceClassifier(bert(), 1)
    ),
    "ReplacedTokenDetector": lambda: models.ReplacedTokenDetector(bert()),
    "RecurrentSeq2Seq": lambda: models.RecurrentSeq2Seq(
        1000,
        1008,
        num_layers=2,
        hidden_dim=16,
        bidirectional=True,
        scheduled_sampling=0.1,
        input_feeding=True,
    ),
    "RecurrentSeq2Seq, GRU": lambda: models.RecurrentSeq2Seq(
        1000, hidden_dim=16, cell="gru", attention="cosine"
    ),
    "SpeechTransformer": lambda: models.SpeechTransformer(
        1000, num_mel_bins=16, filters=4, **BLOCKS
    ),
    "ImageCaptioner": lambda: models.ImageCaptioner(
        1000, (32, 32, 3), hidden_dim=16
    ),
    "ImageCaptioner, patches": lambda: models.ImageCaptioner(
        1000, (8, 8, 3), hidden_dim=16, encoder=vision_transformer()
    ),
    "VisionTransformer": lambda: vision_transformer(
        num_classes=3, distillation_token=True, distillation_classifier=True
    ),
}


def matching(layout_map, path):
    """Returns the rules of a layout map that match a path."""
    return [pattern for pattern in layout_map if re.fullmatch(pattern, path)]


@pytest.mark.one_backend
@pytest.mark.parametrize("name", MODELS)
def test_every_weight_has_one_rule(name):
    model = MODELS[name]()
    layout_map = type(model).get_layout_map(mesh(), num_heads=8)
    total = model.count_params()
    for weight in model.weights:
        assert len(matching(layout_map, weight.path)) == 1, weight.path
        axes = layout_map[weight.path].axes
        split = dict(enumerate(axes))
        assert len(axes) in (0, len(weight.shape)), weight.path
        if "model" in axes:
            (axis,) = (i for i, name in split.items() if name == "model")
            assert weight.shape[axis] in (8, 4, 128, 1000, 1008), weight.path
        elif math.prod(weight.shape) > 0.01 * total:
            assert REPLICATED.fullmatch(weight.path), weight.path
        else:
            assert "batch" not in axes or "carried_memory" in weight.path


def test_axes_of_a_block():
    layout_map = models.GPT.get_layout_map(
        mesh(names=("data", "tensor")), "tensor", "data"
    )
    path = "block_1/self_attention/{}".format
    assert layout_map[path("query/kernel")].axes == (None, "tensor", None)
    assert layout_map[path("key/kernel")].axes == (None, "tensor", None)
    assert layout_map[path("value/bias")].axes == ("tensor", None)
    assert layout_map[path("attention_output/kernel")].axes == (
        "tensor",
        None,
        None,
    )
    path = "block_1/feed_forward/{}/kernel".format
    assert layout_map[path("inner")].axes == (None, "tensor")
    assert layout_map[path("outer")].axes == ("tensor", None)
    table = layout_map["token_embedding/table/embeddings"]
    assert table.axes == ("tensor", None)
    assert layout_map["block_1/around_attention/norm/gamma"].axes == ()


@pytest.mark.one_backend
def test_few_key_value_heads_are_replicated():
    found = models.GPT.get_layout_map(
        mesh(1, 4), num_heads=8, num_key_value_heads=2
    )
    path = "block_0/self_attention/{}/kernel".format
    assert found[path("query")].axes == (None, "model", None)
    assert found[path("key")].axes == (None, None, None)
    with keras.distribution.ModelParallel(layout_map=found).scope():
        if keras.backend.backend() != "jax":
            models.GPT(1000, **SMALL, num_key_value_heads=2)


@pytest.mark.one_backend
def test_a_vocabulary_that_cannot_be_split_is_replicated():
    found = models.Transformer.get_layout_map(
        mesh(1, 4), vocabulary_size=(1000, 1001)
    )
    assert found["source_embedding/table/embeddings"].axes == (None, None)
    assert found["output/kernel"].axes == (None, None)
    found = models.Transformer.get_layout_map(mesh(1, 4), vocabulary_size=1000)
    assert found["token_embedding/table/embeddings"].axes == ("model", None)


@pytest.mark.one_backend
def test_arguments_of_a_layout_are_checked():
    get = models.Bert.get_layout_map
    with pytest.raises(ValueError, match="`device_mesh` must be"):
        get("mesh")
    with pytest.raises(ValueError, match="`model_parallel_dim_name` must be"):
        get(mesh(names=("batch", "tensor")))
    with pytest.raises(ValueError, match="`data_parallel_dim_name` must be"):
        get(mesh(), "model", "data")
    with pytest.raises(ValueError, match=r"two axes .* 'model' for both"):
        get(mesh(), "model", "model")
    with pytest.raises(ValueError, match="`context_parallel_dim_name` must be"):
        get(mesh(), context_parallel_dim_name="context")
    for model in models.RecurrentSeq2Seq, models.VisionTransformer:
        with pytest.raises(ValueError, match="sequences devices cannot share"):
            model.get_layout_map(mesh(), context_parallel_dim_name="batch")
    for name in "batch", "model":
        with pytest.raises(ValueError, match=f"another axis .* '{name}'"):
            get(mesh(), context_parallel_dim_name=name)
    with pytest.raises(
        ValueError,
        match=r"multiple of 4, .* axis 'model'. Received: num_heads=6",
    ):
        get(mesh(2, 4), num_heads=6)
    with pytest.raises(ValueError, match="num_key_value_heads=6"):
        get(mesh(2, 4), num_heads=12, num_key_value_heads=6)


@pytest.mark.one_backend
@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (
            lambda: models.GPT(1000, num_heads=6, hidden_dim=12, num_layers=1),
            "`num_heads` must be a multiple of 4, .*num_heads=6",
        ),
        (
            lambda: models.GPT(
                1000,
                num_heads=8,
                hidden_dim=16,
                num_layers=1,
                num_key_value_heads=2,
            ),
            "or be passed to `get_layout_map`.* num_key_value_heads=2",
        ),
        (
            lambda: models.XLNet(
                1000,
                num_heads=4,
                hidden_dim=8,
                num_layers=1,
                intermediate_dim=6,
            ),
            "`intermediate_dim` must be a multiple of 4, .*intermediate_dim=6",
        ),
        (
            lambda: models.GPT(50257, **SMALL),
            "vocabulary_size.* replicates the vocab.* vocabulary_size=50257",
        ),
    ],
    ids=["heads", "key_value_heads", "intermediate_dim", "vocabulary"],
)
def test_a_model_checks_the_active_mesh(make, expected):
    layout_map = models.GPT.get_layout_map(mesh(2, 4))
    distribution = keras.distribution.ModelParallel(layout_map=layout_map)
    with distribution.scope(), pytest.raises(ValueError, match=expected):
        make()


@pytest.mark.one_backend
def test_decoder_heads_and_target_vocabulary_are_checked():
    layout_map = models.Transformer.get_layout_map(mesh(2, 4))
    with keras.distribution.ModelParallel(layout_map=layout_map).scope():
        with pytest.raises(ValueError, match="must be a multiple of 4"):
            models.Transformer(1000, **BLOCKS, num_decoder_heads=2)
        with pytest.raises(ValueError, match="target_vocabulary_size=1001"):
            models.Transformer(1000, 1001, **BLOCKS)
    layout_map = models.RecurrentSeq2Seq.get_layout_map(mesh(2, 4))
    with keras.distribution.ModelParallel(layout_map=layout_map).scope():
        with pytest.raises(ValueError, match="source_vocabulary_size=1001"):
            models.RecurrentSeq2Seq(1001, hidden_dim=8)


def test_the_batch_axis_of_the_layout_is_checked():
    layout_map = models.GPT.get_layout_map(mesh(names=("model", "batch")))
    distribution = keras.distribution.ModelParallel(layout_map=layout_map)
    with (
        distribution.scope(),
        pytest.raises(ValueError, match=r"must be 'batch'.* 'model'"),
    ):
        models.GPT(1000, **SMALL)
