"""The successors of BERT against transformers, with and without heads."""

import json

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from keras_attn import models, pretrained
from keras_attn.pretrained.albert import ALBERT
from keras_attn.pretrained.distilbert import DISTILBERT
from keras_attn.pretrained.electra import ELECTRA
from keras_attn.pretrained.modernbert import MODERNBERT
from keras_attn.pretrained.roberta import ROBERTA, XLM_ROBERTA
from tests.helpers.weight_gradients import layer_gradients, weighted_sum

torch = pytest.importorskip("torch")

import transformers

SIZE = 17
_BERT = {
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 12,
    "max_position_embeddings": 24,
}
_ROBERTA = _BERT | {"max_position_embeddings": 26, "type_vocab_size": 1}
# Family, name of the config, sizes.
KINDS = {
    "albert": (
        ALBERT,
        "AlbertConfig",
        _BERT | {"embedding_size": 6, "num_hidden_layers": 3},
    ),
    "electra": (ELECTRA, "ElectraConfig", _BERT | {"embedding_size": 6}),
    "wide electra": (ELECTRA, "ElectraConfig", _BERT | {"embedding_size": 8}),
    "roberta": (ROBERTA, "RobertaConfig", _ROBERTA),
    "xlm-roberta": (XLM_ROBERTA, "XLMRobertaConfig", _ROBERTA),
    "distilbert": (
        DISTILBERT,
        "DistilBertConfig",
        {
            "dim": 8,
            "n_layers": 2,
            "n_heads": 2,
            "hidden_dim": 12,
            "max_position_embeddings": 24,
        },
    ),
    # A token of a local layer sees two neighbors on each side.
    "modernbert": (
        MODERNBERT,
        "ModernBertConfig",
        _BERT
        | {
            "num_hidden_layers": 4,
            "local_attention": 4,
            "classifier_dropout": 0.1,
            "mlp_dropout": 0.2,
            **dict.fromkeys(("bos_token_id", "cls_token_id")),
            **dict.fromkeys(("eos_token_id", "sep_token_id")),
            "attn_implementation": "eager",
        },
    ),
}
HEADS = {
    "encoder": models.Bert,
    "masked_lm": models.BertPretrainer,
    "pretraining": models.BertPretrainer,
    "replaced_tokens": models.ReplacedTokenDetector,
    "sequence_classification": models.SequenceClassifier,
    "multiple_choice": models.MultipleChoice,
    "token_classification": models.TokenClassifier,
    "question_answering": models.SpanExtractor,
}
PAD = 1
IDS = np.array([[0, 5, 6, 7, 2], [0, 9, 2, 1, 1]], "int32")
LEFT = np.array([[0, 5, 6, 7, 2], [1, 1, 0, 9, 2]], "int32")
every_head = pytest.mark.parametrize(
    "kind, head",
    [(kind, head) for kind in KINDS for head in KINDS[kind][0].heads],
)
# One kind of each class.
DIFFERENT = "albert", "distilbert", "electra", "modernbert", "roberta"


def random_model(kind="roberta", head="encoder", **config):
    """Returns a transformers model with random weights."""
    family, config_name, sizes = KINDS[kind]
    config = {"vocab_size": SIZE, "pad_token_id": PAD, **sizes, **config}
    two = "question_answering", "pretraining"
    config["num_labels"] = 2 if head in two else 3
    config = getattr(transformers, config_name)(**config)
    model = getattr(transformers, family.heads[head])(config)
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
    names = {
        "last_hidden_state": "sequence_output",
        "pooler_output": "pooled_output",
        "prediction_logits": "token_logits",
        "sop_logits": "next_sentence_logits",
    }
    return {names.get(name, name): value for name, value in found.items()}


def ours_on(model, ids=IDS):
    """Returns the outputs of our model."""
    if isinstance(model, models.MultipleChoice):
        return {"logits": model(ids[None])}
    found = model(ids)
    if isinstance(model, models.BertPretrainer) and len(found) == 1:
        return {"logits": found["token_logits"]}
    if isinstance(model, models.SpanExtractor):
        return {"spans": keras.ops.swapaxes(found, 0, 1)}
    return found if isinstance(found, dict) else {"logits": found}


def at_tokens(array, ids):
    """Returns an output without its values at padding."""
    array = keras.ops.convert_to_numpy(array)
    mask = ids != PAD
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
def test_same_outputs_of_every_head(kind, head, tmp_path):
    theirs = random_model(kind, head)
    theirs.save_pretrained(tmp_path)
    model = pretrained.load(tmp_path)
    assert isinstance(model, HEADS[head])
    check_equal(model, theirs)


def test_positions_count_tokens(tmp_path):
    theirs = random_model()
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
    theirs = random_model(pad_token_id=3)
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
@pytest.mark.parametrize("kind", DIFFERENT)
def test_same_gradients(kind, head, tmp_path):
    theirs = random_model(kind, head)
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
    for name in KINDS[kind][0].tensors(model):
        right = expected[name.theirs].grad.numpy()
        if name.part is not None:
            right = name.part.take(right)
        np.testing.assert_allclose(
            name.layout.to_file(found[name.ours]),
            right,
            atol=1e-4 * max(1, np.abs(right).max()),
            err_msg=name.ours,
        )


@every_head
def test_save_round_trip(kind, head, tmp_path):
    theirs = random_model(kind, head)
    theirs.save_pretrained(tmp_path / "theirs")
    model = pretrained.load(tmp_path / "theirs")
    model_type = None
    if kind in ("wide electra", "xlm-roberta"):
        # Another family has the same model.
        model_type = KINDS[kind][0].model_type
    pretrained.save(model, tmp_path / "ours", model_type=model_type)
    config = json.loads((tmp_path / "ours" / "config.json").read_text())
    assert config["model_type"] == KINDS[kind][0].model_type
    before = json.loads((tmp_path / "theirs" / "config.json").read_text())
    for key, value in config.items():
        assert before.get(key, value) in (value, None), key
    found = type(theirs).from_pretrained(
        tmp_path / "ours",
        attn_implementation=theirs.config._attn_implementation,
    )
    found = found.eval()
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
def test_the_argument_selects_the_head(kind, head, tmp_path):
    theirs = random_model(kind, head)
    theirs.save_pretrained(tmp_path)
    without(tmp_path, "architectures")
    model = pretrained.load(tmp_path, head=head)
    assert isinstance(model, HEADS[head])
    check_equal(model, theirs)


@pytest.mark.parametrize("kind", DIFFERENT)
def test_tensors_show_the_family(kind, tmp_path):
    theirs = random_model(kind, "masked_lm")
    theirs.save_pretrained(tmp_path)
    without(tmp_path, "model_type")
    check_equal(pretrained.load(tmp_path), theirs)


def without(folder, key):
    """Removes a key from a config."""
    path = folder / "config.json"
    config = json.loads(path.read_text())
    del config[key]
    path.write_text(json.dumps(config))


@pytest.mark.parametrize("kind", DIFFERENT)
def test_a_fine_tuned_encoder_gets_another_head(kind, tmp_path):
    theirs = random_model(kind, "sequence_classification")
    theirs.save_pretrained(tmp_path)
    with pytest.warns(UserWarning, match="skipped: .*classifier"):
        encoder = pretrained.load(tmp_path, head="encoder")
    check_equal(encoder, theirs.base_model)


def test_a_classifier_skips_the_pooler_of_the_encoder(tmp_path):
    theirs = random_model("roberta", "sequence_classification")
    theirs.save_pretrained(tmp_path)
    path = tmp_path / "model.safetensors"
    tensors = load_file(path)
    tensors["roberta.pooler.dense.weight"] = np.ones((8, 8), "float32")
    tensors["roberta.pooler.dense.bias"] = np.ones(8, "float32")
    save_file(tensors, path)
    with pytest.warns(UserWarning, match="skipped: roberta.pooler.dense"):
        model = pretrained.load(tmp_path)
    check_equal(model, theirs)


def test_a_file_of_keras(tmp_path):
    encoder = roberta()
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
    "kind, values, message",
    [
        (
            "roberta",
            {"max_position_embeddings": 2},
            "must exceed `pad_token_id` . 1, 2.",
        ),
        (
            "roberta",
            {"architectures": ["RobertaForCausalLM"]},
            "`architectures` in .* one of RobertaModel, RobertaForMaskedLM",
        ),
        ("roberta", {"is_decoder": True}, "`is_decoder` in .* must be false"),
        (
            "roberta",
            {"architectures": ["RobertaForMaskedLM"]},
            "must hold a tensor `lm_head",
        ),
        (
            "roberta",
            {"vocab_size": 18},
            r"word_embeddings.weight` .*\(18, 8\).*\(17, 8",
        ),
        ("distilbert", {"n_heads": 3}, "`n_heads` in .* must divide `dim`=8"),
        (
            "distilbert",
            {"tie_word_embeddings": False},
            "`tie_word_embeddings` in config.json must be true",
        ),
        (
            "distilbert",
            {"architectures": ["DistilBertForMaskedLM"]},
            "must hold a tensor `vocab_",
        ),
        (
            "albert",
            {"num_hidden_groups": 2},
            "`num_hidden_groups` .* must be 1",
        ),
        ("albert", {"inner_group_num": 2}, "`inner_group_num` .* must be 1"),
        (
            "albert",
            {"num_hidden_layers": 10**9},
            "`num_hidden_layers` in config.json must be at most .*1000000000",
        ),
        ("albert", {"embedding_size": 7}, r"\(17, 7\).*\(17, 6\)"),
        ("electra", {"embedding_size": 7}, r"\(17, 7\).*\(17, 6\)"),
        (
            "electra",
            {"architectures": ["ElectraForMaskedLM"], "hidden_act": "relu"},
            "`hidden_act` in config.json must be .gelu.",
        ),
        (
            "electra",
            {
                "architectures": ["ElectraForMultipleChoice"],
                "summary_type": "mean",
            },
            "`summary_type` in config.json must be .first.",
        ),
    ],
)
def test_invalid_config_raises(kind, values, message, tmp_path):
    key = "max_position_embeddings"
    theirs = random_model(kind, **{key: values[key]} if key in values else {})
    theirs.save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))
    with pytest.raises(ValueError, match=message) as info:
        pretrained.load(tmp_path)
    assert "\n" not in str(info.value)


SIZES = {"num_layers": 1, "num_heads": 2, "hidden_dim": 8}


def roberta(**options):
    return models.Roberta(SIZE, **SIZES, **options)


def distilbert(**options):
    options = {"num_segments": None, "pooler": False} | options
    return models.Bert(SIZE, **SIZES, **options)


@pytest.mark.parametrize(
    "make, message",
    [
        (
            lambda: models.BertPretrainer(roberta()),
            "one of the heads .*BertPretrainer, pretraining",
        ),
        (
            lambda: models.SequenceClassifier(roberta(), 2),
            "pooler=False.*pooler=True",
        ),
        (lambda: models.SpanExtractor(roberta()), "no_answer='first'"),
        (
            lambda: models.SequenceClassifier(
                roberta(pooler=False), 2, pooler_activation="relu"
            ),
            "pooler_activation='tanh'.*'relu'",
        ),
        (
            lambda: models.SequenceClassifier(distilbert(), 2),
            "pooler_activation='relu'.*'tanh'",
        ),
        (lambda: distilbert(pooler=True), "pooler=False.*pooler=True"),
        (lambda: distilbert(share_blocks=True), "share_blocks=False.*True"),
        (lambda: roberta(embedding_dim=4), "embedding_dim=None.*dim=4"),
        (
            lambda: models.ReplacedTokenDetector(roberta()),
            "one of the heads .*ReplacedTokenDetector, replaced_tokens",
        ),
        (
            lambda: models.BertPretrainer(
                models.Bert(
                    SIZE,
                    **SIZES,
                    embedding_dim=4,
                    pooler=False,
                    activation="relu",
                ),
                next_sentence=False,
            ),
            "generator must have activation='gelu'.*'relu'",
        ),
        (lambda: distilbert(epsilon=0.1), "epsilon=1e-12.*epsilon=0.1"),
        (
            lambda: models.TokenClassifier(distilbert(), 2, dropout=0.3),
            "dropout=0.1.*dropout=0.3",
        ),
    ],
)
def test_unsupported_model_raises(make, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        pretrained.save(make(), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_model_type_that_does_not_fit_raises(tmp_path):
    with pytest.raises(ValueError, match=r"'roberta', 'xlm-roberta'.*'bert'"):
        pretrained.save(roberta(), tmp_path, model_type="bert")
    assert list(tmp_path.iterdir()) == []
