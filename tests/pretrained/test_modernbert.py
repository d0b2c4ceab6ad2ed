"""ModernBERT against transformers: configs, biases, windows and refusals.

test_successors_of_bert.py compares its heads and gradients.
"""

import json

import keras
import numpy as np
import pytest

from keras_attn import layers, models, pretrained
from tests.helpers.tiny_models import tiny_modernbert

torch = pytest.importorskip("torch")

import transformers

SIZE, PAD = 17, 1
SIZES = {
    "vocab_size": SIZE,
    "pad_token_id": PAD,
    "hidden_size": 8,
    "num_hidden_layers": 4,
    "num_attention_heads": 2,
    "intermediate_size": 12,
    "max_position_embeddings": 24,
    "num_labels": 3,
    "attn_implementation": "eager",
}
RNG = np.random.default_rng(0)
# Padding on either side.
IDS = RNG.integers(2, SIZE, (3, 11)).astype("int32")
IDS[1, 7:] = IDS[2, :4] = PAD
TINY = {"num_layers": 2, "num_heads": 2, "hidden_dim": 8, "intermediate_dim": 6}


def random_model(head="ForMaskedLM", **config):
    """Returns a transformers model with random weights."""
    config = transformers.ModernBertConfig(**(SIZES | config))
    return randomized(getattr(transformers, f"ModernBert{head}")(config))


def randomized(model):
    draw = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            tensor.normal_(std=0.2, generator=draw)
            if "norm.weight" in name:
                tensor.add_(1.0)
    return model.eval()


def check_equal(model, theirs):
    ids = torch.tensor(IDS).long()
    with torch.no_grad():
        expected = theirs(input_ids=ids, attention_mask=(ids != PAD).long())[0]
    found = model(IDS)
    if isinstance(found, dict):
        (found,) = found.values()
    found, mask = keras.ops.convert_to_numpy(found), IDS != PAD
    right = expected.numpy()[mask]
    assert np.abs(right).max() > 0.5
    np.testing.assert_allclose(found[mask], right, atol=1e-5)


def change(folder, removed=(), **values):
    """Changes a config.json."""
    path = folder / "config.json"
    config = json.loads(path.read_text()) | values
    kept = {key: one for key, one in config.items() if key not in removed}
    path.write_text(json.dumps(kept))


@pytest.mark.every_backend
def test_config_of_transformers_4(tmp_path):
    """It has no list of types, and the number of neighbors may be odd."""
    theirs = random_model("Model", local_attention=5)
    theirs.save_pretrained(tmp_path)
    change(
        tmp_path,
        removed=("layer_types", "rope_parameters"),
        global_attn_every_n_layers=2,
        global_rope_theta=500.0,
        local_rope_theta=20.0,
        position_embedding_type="absolute",
    )
    theirs = transformers.ModernBertModel.from_pretrained(
        tmp_path, attn_implementation="eager"
    )
    assert theirs.config.layer_types[1:3] == [
        "sliding_attention",
        "full_attention",
    ]
    model = pretrained.load(tmp_path)
    assert model.sliding_window == (None, 3, None, 3)
    positions = [p.max_wavelength for p in model.attention_position]
    assert positions == [500.0, 20.0, 500.0, 20.0]
    check_equal(model, theirs.eval())
    pretrained.save(model, tmp_path / "ours")
    written = json.loads((tmp_path / "ours" / "config.json").read_text())
    assert written["global_attn_every_n_layers"] == 2
    assert written["global_rope_theta"] == 500.0
    assert written["local_rope_theta"] == 20.0
    # The default is outside the vocabulary.
    assert written["eos_token_id"] is None


@pytest.mark.parametrize(
    "config",
    [
        {
            **dict.fromkeys(("attention_bias", "mlp_bias"), True),
            **dict.fromkeys(("classifier_bias", "norm_bias"), True),
            "hidden_activation": "relu",
            "classifier_activation": "relu",
            "norm_eps": 1e-2,
        },
        # A token sees itself only.
        {
            "local_attention": 1,
            "layer_types": ["sliding_attention"] * 3 + ["full_attention"],
        },
        {"layer_types": ["full_attention"] * 4},
        {
            "rope_parameters": {
                "full_attention": {
                    "rope_type": "linear",
                    "factor": 4.0,
                    "rope_theta": 100.0,
                },
                "sliding_attention": {
                    "rope_type": "default",
                    "rope_theta": 100.0,
                },
            }
        },
    ],
    ids=("biases", "no neighbors", "no windows", "scaling"),
)
def test_other_configs(config, tmp_path):
    theirs = random_model(**config)
    theirs.save_pretrained(tmp_path / "theirs")
    model = pretrained.load(tmp_path / "theirs")
    check_equal(model, theirs)
    pretrained.save(model, tmp_path / "ours")
    again = transformers.ModernBertForMaskedLM.from_pretrained(
        tmp_path / "ours", attn_implementation="eager"
    )
    check_equal(model, again.eval())
    for key, value in config.items():
        if key != "rope_parameters":
            assert getattr(again.config, key) == value, key
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras", compile=False)
    check_equal(loaded, theirs)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("modernbert")
    random_model("ForSequenceClassification").save_pretrained(folder)
    return folder, (folder / "config.json").read_text()


@pytest.mark.one_backend
@pytest.mark.parametrize(
    "values, message",
    [
        ({"attention_bias": True}, "`attention_bias` .* `mlp_bias`.*true"),
        ({"classifier_bias": True}, "`classifier_bias` .* `mlp_bias`.*true"),
        ({"attention_dropout": 0.1}, "`attention_dropout` .* must be 0.0"),
        ({"embedding_dropout": 0.1}, "`embedding_dropout` .* must be 0.0"),
        ({"classifier_pooling": "mean"}, '`classifier_pooling` .*"cls"'),
        (
            {"classifier_activation": "relu"},
            "`classifier_activation` .* equal `hidden_activation`.*relu",
        ),
        (
            {
                "architectures": ["ModernBertForMaskedLM"],
                "decoder_bias": False,
            },
            "`decoder_bias` .* must be true.*false",
        ),
        (
            {"architectures": ["ModernBertForCausalLM"]},
            "begin with one of ModernBertModel, ModernBertForMaskedLM",
        ),
        ({"tie_word_embeddings": False}, "`tie_word_embeddings` .* true"),
        ({"head_dim": 2}, "`head_dim` .* must be null.*2"),
        (
            {"rope_scaling": {"rope_type": "linear", "factor": 2.0}},
            "`rope_scaling` .* must be null",
        ),
        (
            {"rope_parameters": None, "local_rope_theta": None},
            "`local_rope_theta` .* number greater than 0.*null",
        ),
        (
            {"layer_types": ["full_attention"] * 3},
            "`layer_types` .* each of the 4 layers",
        ),
        ({"local_attention": 0}, "`local_attention` .* positive integer"),
        ({"hidden_activation": "mish"}, "`hidden_activation` .*'mish|\"mish"),
        (
            {"intermediate_size": 13},
            r"layers.0.mlp.Wo.weight` .*\(8, 13\).*\(8, 12\)",
        ),
        ({"num_labels": 4, "id2label": None}, r"classifier.weight` .*\(4, 8\)"),
    ],
)
def test_unsupported_config_is_refused_by_name(values, message, saved):
    folder, text = saved
    (folder / "config.json").write_text(text)
    change(folder, **values)
    with pytest.raises(ValueError, match=message) as info:
        pretrained.load(folder)
    assert "\n" not in str(info.value)


@pytest.mark.one_backend
def test_an_encoder_needs_no_values_of_heads(saved):
    folder, text = saved
    (folder / "config.json").write_text(text)
    change(
        folder,
        classifier_activation="relu",
        classifier_bias=True,
        decoder_bias=False,
    )
    with pytest.warns(UserWarning, match=r"skipped: classifier.bias"):
        encoder = pretrained.load(folder, head="encoder")
    assert encoder.sliding_window == (None, 65, 65, None)


def local(**options):
    return layers.RotaryPosition(**options)


@pytest.mark.one_backend
@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: tiny(dropout=0.1), "ModernBERT .*dropout=0.0.*0.1"),
        (lambda: tiny(gated=False), "gated=True.*False"),
        (lambda: tiny(skip_first_norm=False), "skip_first_norm=True.*False"),
        (lambda: tiny(pooler=True), "pooler=False.*True"),
        (
            lambda: tiny(normalization="rms_norm"),
            "normalization='bias_free_layer_norm'.*'rms_norm'",
        ),
        (lambda: tiny(sliding_window=[2, 3]), r"one sliding_window.*\(2, 3\)"),
        (
            lambda: tiny(
                attention_position=[local(), local(max_wavelength=3.0)],
                sliding_window=4,
            ),
            "equal in layers of one type",
        ),
        (
            lambda: tiny(attention_position=local(layout="interleaved")),
            "layout 'halves'",
        ),
        (
            lambda: models.SequenceClassifier(tiny(), 3),
            "transform=True.*transform=False",
        ),
        (
            lambda: models.SpanExtractor(tiny(), transform=True),
            "no_answer='first'",
        ),
        (
            lambda: models.SequenceClassifier(
                tiny(), 3, pooled_token="last", transform=True
            ),
            "pooled_token='first'.*'last'",
        ),
        (
            lambda: models.TokenClassifier(
                models.Bert(SIZE, **TINY), 3, transform=True
            ),
            "BERT .*transform=False.*transform=True",
        ),
    ],
)
def test_unsupported_model_is_refused(make, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        pretrained.save(make(), tmp_path)
    assert list(tmp_path.iterdir()) == []


def tiny(**options):
    return tiny_modernbert(SIZE, **(TINY | options))
