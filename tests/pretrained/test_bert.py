"""BERT models against transformers, with and without heads."""

import json

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from keras_attn import models, pretrained
from keras_attn.pretrained.bert import BERT
from tests.helpers.weight_gradients import layer_gradients, weighted_sum

torch = pytest.importorskip("torch")

import transformers

SIZE = 17
CONFIG = {
    "vocab_size": SIZE,
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 12,
    "max_position_embeddings": 24,
    "num_labels": 3,
}
FORMS = {
    "plain": {},
    "one layer, odd widths": {
        "num_hidden_layers": 1,
        "hidden_size": 15,
        "num_attention_heads": 3,
        "intermediate_size": 21,
        "type_vocab_size": 3,
    },
    "new gelu": {"hidden_act": "gelu_new"},
    "gelu of PyTorch": {"hidden_act": "gelu_pytorch_tanh"},
    "relu": {"hidden_act": "relu"},
    "quick gelu": {"hidden_act": "quick_gelu"},
    "large epsilon": {"layer_norm_eps": 0.3},
    "other padding": {"pad_token_id": 16},
}
HEADS = {
    "BertModel": models.Bert,
    "BertForPreTraining": models.BertPretrainer,
    "BertForMaskedLM": models.BertPretrainer,
    "BertForNextSentencePrediction": models.BertPretrainer,
    "BertForSequenceClassification": models.SequenceClassifier,
    "BertForTokenClassification": models.TokenClassifier,
    "BertForQuestionAnswering": models.SpanExtractor,
    "BertForMultipleChoice": models.MultipleChoice,
}
IDS = np.array([[2, 5, 6, 7, 8], [2, 9, 4, 3, 3]], "int32")
SEGMENTS = np.array([[0, 0, 0, 1, 1], [0, 1, 1, 0, 0]], "int32")
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], "int32")
TOKEN_MASK = MASK == 1
every_head = pytest.mark.parametrize("head", HEADS)


def bert(head="BertModel", seed=0, scale=0.4, **config):
    """Returns a transformers model with random weights."""
    kind = getattr(transformers, head)
    if head == "BertForQuestionAnswering":
        config["num_labels"] = 2
    model = kind(transformers.BertConfig(**(CONFIG | config)))
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            tensor.normal_(std=scale, generator=draw)
            if "LayerNorm.weight" in name:
                tensor.add_(1.0)
    return model.eval()


def long(array):
    return torch.tensor(array).long()


def theirs_on(model, ids=IDS, segments=SEGMENTS, mask=MASK, **kwargs):
    """Returns the outputs of a transformers model."""
    parts = ids, segments, mask
    if isinstance(model, transformers.BertForMultipleChoice):
        parts = [part[None] for part in parts]
    ids, segments, mask = map(long, parts)
    return model(
        input_ids=ids, token_type_ids=segments, attention_mask=mask, **kwargs
    )


def ours_on(model, ids=IDS, segments=SEGMENTS, mask=MASK):
    """Returns the outputs of our model under their names."""
    inputs = {"token_ids": ids, "segment_ids": segments, "padding_mask": mask}
    if isinstance(model, models.MultipleChoice):
        inputs = {name: part[None] for name, part in inputs.items()}
    found = model(inputs)
    if isinstance(model, models.Bert):
        return {
            "last_hidden_state": found["sequence_output"],
            "pooler_output": found.get("pooled_output"),
        }
    if isinstance(model, models.SpanExtractor):
        return {"start_logits": found[:, 0], "end_logits": found[:, 1]}
    if not isinstance(model, models.BertPretrainer):
        return {"logits": found}
    if len(found) == 1:
        return {"logits": next(iter(found.values()))}
    return {
        "prediction_logits": found["token_logits"],
        "seq_relationship_logits": found["next_sentence_logits"],
    }


def to_numpy(tensor):
    return keras.ops.convert_to_numpy(tensor)


def check_equal(model, theirs, atol=1e-4, **inputs):
    with torch.no_grad():
        expected = theirs_on(theirs, **inputs)
    found = ours_on(model, **inputs)
    token_mask = inputs.get("mask", MASK) == 1
    for name, tensor in found.items():
        mine, right = to_numpy(tensor), expected[name].numpy()
        if right.shape[:2] == token_mask.shape and name != "pooler_output":
            mine, right = mine[token_mask], right[token_mask]
        assert mine.shape == right.shape
        np.testing.assert_allclose(mine, right, atol=atol, err_msg=name)
        assert np.abs(right).max() > 0.01


@pytest.mark.every_backend
@pytest.mark.parametrize("form", FORMS)
def test_same_outputs_of_every_form(form, tmp_path):
    theirs = bert(**FORMS[form])
    theirs.save_pretrained(tmp_path)
    model = pretrained.load(tmp_path)
    assert isinstance(model, models.Bert)
    check_equal(model, theirs)


@pytest.mark.every_backend
@every_head
def test_same_outputs_of_every_head(head, tmp_path):
    theirs = bert(head)
    theirs.save_pretrained(tmp_path)
    model = pretrained.load(tmp_path)
    assert isinstance(model, HEADS[head])
    check_equal(model, theirs)


def test_default_mask_and_segments(tmp_path):
    theirs = bert()
    theirs.save_pretrained(tmp_path)
    model = pretrained.load(tmp_path)
    ids = np.where(TOKEN_MASK, IDS, 0).astype("int32")
    expected = ours_on(model, ids, np.zeros_like(ids), MASK)
    found = model(ids)
    np.testing.assert_array_equal(
        to_numpy(found["sequence_output"]),
        to_numpy(expected["last_hidden_state"]),
    )


def test_padding_on_the_left(tmp_path):
    """Positions count tokens, which transformers needs as `position_ids`."""
    theirs = bert()
    theirs.save_pretrained(tmp_path)
    model = pretrained.load(tmp_path)
    mask = np.array([[1, 1, 1, 1, 1], [0, 0, 1, 1, 1]], "int32")
    positions = np.maximum(mask.cumsum(axis=1) - 1, 0)
    with torch.no_grad():
        expected = theirs_on(theirs, mask=mask, position_ids=long(positions))
    found = ours_on(model, mask=mask)
    np.testing.assert_allclose(
        to_numpy(found["last_hidden_state"])[mask == 1],
        expected["last_hidden_state"].numpy()[mask == 1],
        atol=1e-4,
    )
    # The pooled token is the first one that is not padding.
    alone = ours_on(model, IDS[1:, 2:], SEGMENTS[1:, 2:], mask[1:, 2:])
    np.testing.assert_allclose(
        to_numpy(found["pooler_output"])[1:],
        to_numpy(alone["pooler_output"]),
        atol=1e-5,
    )


@pytest.mark.every_backend
@pytest.mark.parametrize(
    "head", ["BertForPreTraining", "BertForQuestionAnswering"]
)
def test_same_gradients(head, tmp_path):
    theirs = bert(head)
    theirs.save_pretrained(tmp_path)
    model = pretrained.load(tmp_path)
    rng = np.random.default_rng(1)
    outputs = theirs_on(theirs)
    upstream, total = {}, 0
    for name in ours_on(model):
        shape = tuple(outputs[name].shape)
        upstream[name] = rng.normal(size=shape).astype("float32")
        if shape[:2] == MASK.shape:
            upstream[name][~TOKEN_MASK] = 0
        total = total + (outputs[name] * torch.tensor(upstream[name])).sum()
    total.backward()

    def loss():
        found = ours_on(model)
        return sum(weighted_sum(found[name], upstream[name]) for name in found)

    _, found = layer_gradients(model, loss)
    paths = {
        v.path.removeprefix(f"{model.path}/"): v.path for v in model.weights
    }
    found = {paths[name]: gradient for name, gradient in found.items()}
    expected = dict(theirs.named_parameters())
    for name in BERT.tensors(model):
        right = expected[name.theirs].grad.numpy()
        np.testing.assert_allclose(
            name.layout.to_file(found[name.ours]),
            right,
            atol=1e-4 * max(1, np.abs(right).max()),
            err_msg=name.ours,
        )


@every_head
def test_save_round_trip(head, tmp_path):
    theirs = bert(head)
    theirs.save_pretrained(tmp_path / "theirs")
    model = pretrained.load(tmp_path / "theirs")
    pretrained.save(model, tmp_path / "ours")
    kind = getattr(transformers, head)
    found = kind.from_pretrained(tmp_path / "ours").eval()
    check_equal(pretrained.load(tmp_path / "ours"), found)
    with torch.no_grad():
        one, other = theirs_on(found), theirs_on(theirs)
    for name in ours_on(model):
        np.testing.assert_array_equal(one[name].numpy(), other[name].numpy())


def test_file_of_an_early_version(tmp_path):
    """TensorFlow names, copies, a constant, and a second task in the file."""
    theirs = bert("BertForPreTraining")
    theirs.save_pretrained(tmp_path)
    path = tmp_path / "model.safetensors"
    tensors = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): array
        for name, array in load_file(path).items()
    }
    table = tensors["bert.embeddings.word_embeddings.weight"]
    tensors["cls.predictions.decoder.weight"] = table.copy()
    tensors["bert.embeddings.position_ids"] = np.arange(24)[None]
    save_file(tensors, path)
    config = json.loads((tmp_path / "config.json").read_text())
    config["architectures"] = ["BertForMaskedLM"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    both = pretrained.load(tmp_path, head="pretraining")
    assert both.masked_lm and both.next_sentence
    check_equal(both, theirs)
    # As in transformers, a model for the first task has no second one.
    with pytest.warns(UserWarning, match=r"skipped: cls\.seq_relationship"):
        model = pretrained.load(tmp_path)
    assert model.masked_lm and not model.next_sentence
    np.testing.assert_array_equal(
        to_numpy(ours_on(model)["logits"]),
        to_numpy(ours_on(both)["prediction_logits"]),
    )


def without(folder, *keys):
    """Removes keys from a config."""
    path = folder / "config.json"
    config = json.loads(path.read_text())
    for key in keys:
        config.pop(key)
    path.write_text(json.dumps(config))


@pytest.mark.parametrize("name", [name for name in BERT.heads])
def test_the_argument_selects_the_head(name, tmp_path):
    head = BERT.heads[name]
    theirs = bert(head)
    theirs.save_pretrained(tmp_path)
    without(tmp_path, "architectures")
    model = pretrained.load(tmp_path, head=name)
    assert isinstance(model, HEADS[head])
    check_equal(model, theirs)


@pytest.mark.parametrize(
    "head", ["BertForPreTraining", "BertForMultipleChoice"]
)
def test_heads_that_are_not_requested_are_skipped(head, tmp_path):
    theirs = bert(head)
    theirs.save_pretrained(tmp_path)
    first = "cls.predictions.bias" if "Pre" in head else "classifier.bias"
    with pytest.warns(UserWarning, match=f"Bert does not .*: {first}") as found:
        model = pretrained.load(tmp_path, head="encoder")
    assert len(found) == 1 and "\n" not in str(found[0].message)
    assert found[0].filename == __file__
    assert type(model) is models.Bert and model.pooler
    check_equal(model, theirs.bert)
    # Without `architectures`, there is no head.
    without(tmp_path, "architectures")
    with pytest.warns(UserWarning, match="skipped"):
        check_equal(pretrained.load(tmp_path), theirs.bert)


def test_a_head_that_the_file_does_not_hold_raises(tmp_path):
    bert("BertForPreTraining").save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="must hold a tensor `qa_outputs"):
        pretrained.load(tmp_path, head="question_answering")
    with pytest.raises(ValueError, match=r"`head` must be one of 'encoder', "):
        pretrained.load(tmp_path, head="BertForMaskedLM")


def test_transformers_loads_our_classifier(tmp_path):
    encoder = models.Bert(SIZE, 1, 2, 8, 12, max_sequence_length=24)
    model = models.SequenceClassifier(encoder, num_classes=4)
    pretrained.save(model, tmp_path)
    kind = transformers.BertForSequenceClassification
    theirs = kind.from_pretrained(tmp_path).eval()
    with torch.no_grad():
        expected = theirs_on(theirs).logits.numpy()
    found = to_numpy(ours_on(model)["logits"])
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize(
    "values, message",
    [
        ({"architectures": ["BertLMHeadModel"]}, "`architectures` in .* one"),
        ({"num_attention_heads": 3}, "`num_heads`|divide"),
        (
            {"num_hidden_layers": 0},
            "`num_hidden_layers` in .* a positive",
        ),
        ({"hidden_size": None}, "must have a value for `hidden_size`"),
        ({"is_decoder": True}, "`is_decoder` in config.json must be false"),
        (
            {"position_embedding_type": "relative_key"},
            "`position_embedding_type` .*absolute.*relative_key",
        ),
        ({"hidden_act": "mish"}, "`hidden_act` in .* must be one of"),
        (
            {"layer_norm_eps": -1},
            "`layer_norm_eps` in .* must be a number",
        ),
        ({"num_hidden_layers": 3}, "must hold a tensor `encoder.layer.2"),
        ({"num_hidden_layers": 1}, r"a bert model and no others.*layer\.1\."),
        ({"type_vocab_size": 4}, r"token_type_embeddings.*\(4, 8\).*\(2, 8"),
        ({"vocab_size": 18}, r"word_embeddings.weight` .*\(18, 8\).*\(17, 8"),
        (
            {"architectures": ["BertForMaskedLM"]},
            "must hold a tensor `cls.predictions",
        ),
        (
            {"architectures": ["BertForSequenceClassification"]},
            "must hold a tensor `classifier.weight`",
        ),
    ],
)
def test_invalid_config_raises(values, message, tmp_path):
    bert().save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))
    with pytest.raises(ValueError, match=message) as info:
        pretrained.load(tmp_path)
    assert "\n" not in str(info.value)


@pytest.mark.parametrize(
    "make, message",
    [
        (
            lambda **k: models.Bert(normalize_first=True, **k),
            "normalize_first=False.*True",
        ),
        (
            lambda **k: models.Bert(scale_embedding=True, **k),
            "scale_embedding=False.*True",
        ),
        (
            lambda **k: models.SpanExtractor(models.Bert(**k)),
            "no_answer='first'.*'mean'",
        ),
        (
            lambda **k: models.SequenceClassifier(
                models.Bert(pooler=False, **k), 2
            ),
            "pooler=True.*False",
        ),
        (
            lambda **k: models.TokenClassifier(models.Encoder(**k), 2),
            "one of the families .*TokenClassifier",
        ),
    ],
)
def test_unsupported_model_raises(make, message, tmp_path):
    sizes = {"num_layers": 1, "num_heads": 2, "hidden_dim": 8}
    model = make(vocabulary_size=SIZE, intermediate_dim=12, **sizes)
    with pytest.raises(ValueError, match=message):
        pretrained.save(model, tmp_path)
    assert list(tmp_path.iterdir()) == []
