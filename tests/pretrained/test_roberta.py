"""RoBERTa and XLM-RoBERTa against transformers, with and without heads."""

import json

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from keras_attn import models, pretrained
from keras_attn.pretrained.roberta import ROBERTA
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
    "max_position_embeddings": 26,
    "type_vocab_size": 1,
    "num_labels": 3,
}
HEADS = {
    "encoder": models.Roberta,
    "masked_lm": models.BertPretrainer,
    "sequence_classification": models.SequenceClassifier,
    "multiple_choice": models.MultipleChoice,
    "token_classification": models.TokenClassifier,
    "question_answering": models.SpanExtractor,
}
IDS = np.array([[0, 5, 6, 7, 2], [0, 9, 2, 1, 1]], "int32")
LEFT = np.array([[0, 5, 6, 7, 2], [1, 1, 0, 9, 2]], "int32")
every_head = pytest.mark.parametrize("head", HEADS)


def roberta(head="encoder", family="Roberta", **config):
    """Returns a transformers model with random weights."""
    kind = family + ROBERTA.heads[head].removeprefix("Roberta")
    config = CONFIG | config
    if head == "question_answering":
        config["num_labels"] = 2
    config = getattr(transformers, f"{family}Config")(**config)
    model = getattr(transformers, kind)(config)
    draw = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            tensor.normal_(std=0.4, generator=draw)
            if "orm.weight" in name:
                tensor.add_(1.0)
    return model.eval()


def theirs_on(model, ids=IDS):
    """Returns the outputs of a transformers model under our names."""
    pad = model.config.pad_token_id
    mask = torch.tensor(ids != pad).long()
    ids = torch.tensor(ids).long()
    if type(model).__name__.endswith("MultipleChoice"):
        ids, mask = ids[None], mask[None]
    found = model(input_ids=ids, attention_mask=mask)
    if "start_logits" in found:
        return {"spans": torch.stack([found.start_logits, found.end_logits])}
    names = {"last_hidden_state": "sequence_output"}
    names["pooler_output"] = "pooled_output"
    return {names.get(name, name): value for name, value in found.items()}


def ours_on(model, ids=IDS):
    """Returns the outputs of our model."""
    if isinstance(model, models.MultipleChoice):
        return {"logits": model(ids[None])}
    found = model(ids)
    if isinstance(model, models.BertPretrainer):
        return {"logits": found["token_logits"]}
    if isinstance(model, models.SpanExtractor):
        return {"spans": keras.ops.swapaxes(found, 0, 1)}
    return found if isinstance(found, dict) else {"logits": found}


def at_tokens(array, ids):
    """Returns an output without its values at padding."""
    array = keras.ops.convert_to_numpy(array)
    mask = ids != 1
    if array.shape[:2] == ids.shape:
        return array[mask]
    return array[:, mask] if array.shape[1:3] == ids.shape else array


def check_equal(model, theirs, ids=IDS):
    with torch.no_grad():
        expected = theirs_on(theirs, ids)
    found = ours_on(model, ids)
    assert found.keys() == expected.keys()
    for name, value in found.items():
        right = at_tokens(expected[name].detach().cpu(), ids)
        assert np.abs(right).max() > 0.1
        np.testing.assert_allclose(at_tokens(value, ids), right, atol=1e-5)


@pytest.mark.every_backend
@every_head
def test_same_outputs_of_every_head(head, tmp_path):
    theirs = roberta(head)
    theirs.save_pretrained(tmp_path)
    model = pretrained.load(tmp_path)
    assert type(model) is HEADS[head]
    check_equal(model, theirs)


@every_head
def test_xlm_roberta(head, tmp_path):
    theirs = roberta(head, "XLMRoberta")
    theirs.save_pretrained(tmp_path)
    model = pretrained.load(tmp_path)
    assert type(model) is HEADS[head]
    check_equal(model, theirs)
    pretrained.save(model, tmp_path / "ours", model_type="xlm-roberta")
    config = json.loads((tmp_path / "ours" / "config.json").read_text())
    assert config["model_type"] == "xlm-roberta"
    assert config["architectures"] == [type(theirs).__name__]
    again = type(theirs).from_pretrained(tmp_path / "ours").eval()
    check_equal(model, again)


def test_positions_count_tokens(tmp_path):
    theirs = roberta()
    theirs.save_pretrained(tmp_path)
    model = pretrained.load(tmp_path)
    # Two rows of the table belong to no token.
    assert model.max_sequence_length == 24
    # The pooled token of a row is its first one, in transformers the padding.
    found, expected = ours_on(model, LEFT), theirs_on(theirs, LEFT)
    np.testing.assert_allclose(
        at_tokens(found["sequence_output"], LEFT),
        at_tokens(expected["sequence_output"].detach(), LEFT),
        atol=1e-5,
    )
    longest = np.full((1, 24), 5, "int32")
    check_equal(model, theirs, longest)
    with pytest.raises(ValueError, match="24"):
        model(np.full((1, 25), 5, "int32"))


def test_another_padding_id(tmp_path):
    theirs = roberta(pad_token_id=3)
    theirs.save_pretrained(tmp_path)
    model = pretrained.load(tmp_path)
    assert (model.pad_id, model.max_sequence_length) == (3, 22)
    ids = np.where(IDS == 1, 3, IDS)
    found, expected = ours_on(model, ids), theirs_on(theirs, ids)
    np.testing.assert_allclose(
        keras.ops.convert_to_numpy(found["sequence_output"])[IDS != 1],
        expected["sequence_output"].detach().numpy()[IDS != 1],
        atol=1e-5,
    )


@pytest.mark.every_backend
@pytest.mark.parametrize("head", ["masked_lm", "sequence_classification"])
def test_same_gradients(head, tmp_path):
    theirs = roberta(head)
    theirs.save_pretrained(tmp_path)
    model = pretrained.load(tmp_path)
    outputs = theirs_on(theirs)["logits"]
    rng = np.random.default_rng(1)
    upstream = rng.normal(size=outputs.shape).astype("float32")
    if upstream.shape[:2] == IDS.shape:
        upstream[IDS == 1] = 0
    (outputs * torch.tensor(upstream)).sum().backward()
    _, found = layer_gradients(
        model, lambda: weighted_sum(ours_on(model)["logits"], upstream)
    )
    paths = {
        v.path.removeprefix(f"{model.path}/"): v.path for v in model.weights
    }
    found = {paths[name]: gradient for name, gradient in found.items()}
    expected = dict(theirs.named_parameters())
    for name in ROBERTA.tensors(model):
        right = expected[name.theirs].grad.numpy()
        np.testing.assert_allclose(
            name.layout.to_file(found[name.ours]),
            right,
            atol=1e-4 * max(1, np.abs(right).max()),
            err_msg=name.ours,
        )


@every_head
def test_save_round_trip(head, tmp_path):
    theirs = roberta(head)
    theirs.save_pretrained(tmp_path / "theirs")
    model = pretrained.load(tmp_path / "theirs")
    pretrained.save(model, tmp_path / "ours")
    found = type(theirs).from_pretrained(tmp_path / "ours").eval()
    with torch.no_grad():
        one, other = theirs_on(found), theirs_on(theirs)
    for name, value in one.items():
        np.testing.assert_array_equal(
            at_tokens(value, IDS), at_tokens(other[name], IDS)
        )
    loaded = pretrained.load(tmp_path / "ours")
    for mine, right in zip(loaded.weights, model.weights, strict=True):
        np.testing.assert_array_equal(
            *map(keras.ops.convert_to_numpy, (mine, right))
        )


@every_head
def test_the_argument_selects_the_head(head, tmp_path):
    theirs = roberta(head)
    theirs.save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    config = json.loads(path.read_text())
    del config["architectures"]
    path.write_text(json.dumps(config))
    model = pretrained.load(tmp_path, head=head)
    assert type(model) is HEADS[head]
    check_equal(model, theirs)


def test_a_classifier_skips_the_pooler_of_the_encoder(tmp_path):
    theirs = roberta("sequence_classification")
    theirs.save_pretrained(tmp_path)
    path = tmp_path / "model.safetensors"
    tensors = load_file(path)
    tensors["roberta.pooler.dense.weight"] = np.ones((8, 8), "float32")
    tensors["roberta.pooler.dense.bias"] = np.ones(8, "float32")
    save_file(tensors, path)
    with pytest.warns(UserWarning, match="skipped: roberta.pooler.dense"):
        model = pretrained.load(tmp_path)
    check_equal(model, theirs)


def test_tensors_show_the_family(tmp_path):
    theirs = roberta("masked_lm")
    theirs.save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    config = json.loads(path.read_text())
    del config["model_type"]
    path.write_text(json.dumps(config))
    check_equal(pretrained.load(tmp_path), theirs)


def test_a_file_of_keras(tmp_path):
    encoder = models.Roberta(SIZE, num_layers=1, num_heads=2, hidden_dim=8)
    assert (encoder.pad_id, encoder.num_segments) == (1, 1)
    model = models.BertPretrainer(encoder, next_sentence=False)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras", compile=False)
    assert type(loaded.encoder) is models.Roberta
    assert loaded.encoder.get_config() == encoder.get_config()
    np.testing.assert_array_equal(
        *(
            keras.ops.convert_to_numpy(m(IDS)["token_logits"])
            for m in (loaded, model)
        )
    )


@pytest.mark.parametrize(
    "values, message",
    [
        ({"max_position_embeddings": 2}, "must exceed `pad_token_id` . 1, 2."),
        (
            {"architectures": ["RobertaForCausalLM"]},
            "`architectures` in .* one of RobertaModel, RobertaForMaskedLM",
        ),
        ({"is_decoder": True}, "`is_decoder` in config.json must be false"),
        (
            {"architectures": ["RobertaForMaskedLM"]},
            "must hold a tensor `lm_head",
        ),
        ({"vocab_size": 18}, r"word_embeddings.weight` .*\(18, 8\).*\(17, 8"),
    ],
)
def test_invalid_config_raises(values, message, tmp_path):
    rows = {"max_position_embeddings": values.get("max_position_embeddings", 9)}
    theirs = roberta(**rows)
    theirs.save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))
    with pytest.raises(ValueError, match=message) as info:
        pretrained.load(tmp_path)
    assert "\n" not in str(info.value)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda encoder: models.BertPretrainer(encoder), "next_sentence=False"),
        (
            lambda encoder: models.SequenceClassifier(encoder, 2),
            "pooler=False.*pooler=True",
        ),
        (lambda encoder: models.SpanExtractor(encoder), "no_answer='first'"),
    ],
)
def test_unsupported_model_raises(make, message, tmp_path):
    encoder = models.Roberta(SIZE, num_layers=1, num_heads=2, hidden_dim=8)
    with pytest.raises(ValueError, match=message):
        pretrained.save(make(encoder), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_model_type_that_does_not_fit_raises(tmp_path):
    encoder = models.Roberta(SIZE, num_layers=1, num_heads=2, hidden_dim=8)
    with pytest.raises(ValueError, match=r"'roberta', 'xlm-roberta'.*'bert'"):
        pretrained.save(encoder, tmp_path, model_type="bert")
    assert list(tmp_path.iterdir()) == []
