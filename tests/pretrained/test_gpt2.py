"""GPT-2 models against transformers: logits, generation and round trips."""

import copy
import json

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from keras_attn import pretrained
from keras_attn.decoding import BeamSearch
from keras_attn.models import GPT
from keras_attn.pretrained.gpt2 import GPT2
from tests.helpers.weight_gradients import layer_gradients, weighted_sum

torch = pytest.importorskip("torch")

import transformers

SIZE = 17
END = 16
CONFIG = {
    "vocab_size": SIZE,
    "n_embd": 8,
    "n_layer": 2,
    "n_head": 2,
    "n_positions": 24,
    "bos_token_id": END,
    "eos_token_id": END,
    "pad_token_id": None,
}
FORMS = {
    "plain": {},
    "one layer, odd widths": {
        "n_layer": 1,
        "n_embd": 15,
        "n_head": 3,
        "n_inner": 21,
    },
    "exact gelu": {"activation_function": "gelu"},
    "gelu of PyTorch": {"activation_function": "gelu_pytorch_tanh"},
    "relu": {"activation_function": "relu"},
    "large epsilon": {"layer_norm_epsilon": 0.3},
    "untied": {"tie_word_embeddings": False},
    "with padding": {"pad_token_id": 0},
}
IDS = np.array([[5, 6, 7, 8, 2], [9, 4, 3, 15, 1]], "int32")
LEFT = np.array([[1, 1, 1, 1, 1], [0, 0, 1, 1, 1]], "int32")
UPSTREAM = np.random.default_rng(1).normal(size=(2, 5, SIZE)).astype("float32")


def gpt2(seed=0, scale=0.4, kind=transformers.GPT2LMHeadModel, **config):
    """Returns a transformers model with random weights."""
    model = kind(transformers.GPT2Config(**(CONFIG | config)))
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            tensor.normal_(std=scale, generator=draw)
            if "ln_" in name and "weight" in name:
                tensor.add_(1.0)
    return model.eval()


def long(array):
    return torch.tensor(array).long()


def logits(model, ids=IDS, mask=None):
    """Returns their logits, with positions that count tokens under a mask."""
    kwargs = {}
    if mask is not None:
        positions = np.maximum(mask.cumsum(axis=1) - 1, 0)
        kwargs = {"attention_mask": long(mask), "position_ids": long(positions)}
    return model(input_ids=long(ids), **kwargs).logits


def to_numpy(tensor):
    return keras.ops.convert_to_numpy(tensor)


@pytest.mark.every_backend
@pytest.mark.parametrize("form", FORMS)
def test_same_logits_and_hidden_states(form, tmp_path):
    theirs = gpt2(**FORMS[form])
    theirs.save_pretrained(tmp_path)
    model = pretrained.load(tmp_path)
    assert isinstance(model, GPT)
    with torch.no_grad():
        expected = logits(theirs).numpy()
        hidden = theirs.transformer(long(IDS)).last_hidden_state.numpy()
    assert np.abs(expected).max() > 1
    np.testing.assert_allclose(to_numpy(model(IDS)), expected, atol=1e-4)
    found, _ = model.encode(IDS)
    np.testing.assert_allclose(to_numpy(found), hidden, atol=1e-4)


@pytest.mark.every_backend
@pytest.mark.parametrize("mask", [LEFT, LEFT[:, ::-1]], ids=["left", "right"])
def test_same_logits_with_padding(mask, tmp_path):
    theirs = gpt2()
    theirs.save_pretrained(tmp_path)
    model = pretrained.load(tmp_path)
    mask = np.ascontiguousarray(mask)
    with torch.no_grad():
        expected = logits(theirs, IDS, mask).numpy()
    found = model({"token_ids": IDS, "padding_mask": mask})
    token_mask = mask == 1
    np.testing.assert_allclose(
        to_numpy(found)[token_mask], expected[token_mask], atol=1e-4
    )


@pytest.mark.every_backend
def test_same_gradients(tmp_path):
    theirs = gpt2()
    theirs.save_pretrained(tmp_path)
    model = pretrained.load(tmp_path)
    (logits(theirs) * torch.tensor(UPSTREAM)).sum().backward()
    _, found = layer_gradients(
        model, lambda: weighted_sum(model(IDS), UPSTREAM)
    )
    expected = dict(theirs.named_parameters())
    for name in GPT2.tensors(model):
        right = expected[name.theirs].grad.numpy()
        right = right if name.part is None else name.part.take(right)
        np.testing.assert_allclose(
            name.layout.to_file(found[name.ours]),
            right,
            atol=1e-4 * max(1, np.abs(right).max()),
            err_msg=name.ours,
        )


@pytest.mark.parametrize("form", ["one layer, odd widths", "untied"])
def test_save_round_trip(form, tmp_path):
    theirs = gpt2(**FORMS[form])
    theirs.save_pretrained(tmp_path / "theirs")
    model = pretrained.load(tmp_path / "theirs")
    pretrained.save(model, tmp_path / "ours")
    found = transformers.GPT2LMHeadModel.from_pretrained(tmp_path / "ours")
    with torch.no_grad():
        np.testing.assert_array_equal(
            logits(found.eval()).numpy(), logits(theirs).numpy()
        )
    again = pretrained.load(tmp_path / "ours")
    assert again.get_config() | {"name": ""} == model.get_config() | {
        "name": ""
    }


def test_no_special_ids(tmp_path):
    theirs = gpt2(bos_token_id=None, eos_token_id=None)
    theirs.save_pretrained(tmp_path / "theirs")
    model = pretrained.load(tmp_path / "theirs")
    assert model.start_id is model.end_id is model.pad_id is None
    pretrained.save(model, tmp_path / "ours")
    again = pretrained.load(tmp_path / "ours")
    assert again.end_id is None
    assert (again.generate([[1, 2]], max_new_tokens=4).lengths == 4).all()


@pytest.mark.parametrize("rate", [0.3, 0.1])
def test_dropout_of_embeddings(rate, tmp_path):
    gpt2(embd_pdrop=rate, resid_pdrop=0.1).save_pretrained(tmp_path / "theirs")
    model = pretrained.load(tmp_path / "theirs")
    assert (model.dropout, model.embedding_dropout) == (0.1, rate)
    pretrained.save(model, tmp_path / "ours")
    config = json.loads((tmp_path / "ours" / "config.json").read_text())
    assert (config["embd_pdrop"], config["resid_pdrop"]) == (rate, 0.1)
    model = GPT(SIZE, 1, 1, 4, dropout=rate, max_sequence_length=8, pad_id=None)
    pretrained.save(model, tmp_path / "one rate")
    config = json.loads((tmp_path / "one rate" / "config.json").read_text())
    assert config["embd_pdrop"] == config["resid_pdrop"] == rate


def test_default_ids_outside_the_vocabulary_are_absent(tmp_path):
    """transformers writes them for a smaller vocabulary too."""
    theirs = gpt2(bos_token_id=50256, eos_token_id=50256)
    theirs.save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    config = json.loads(path.read_text())
    assert config["eos_token_id"] == 50256 >= config["vocab_size"]
    model = pretrained.load(tmp_path)
    assert model.start_id is model.end_id is model.pad_id is None
    with torch.no_grad():
        expected = logits(theirs).numpy()
    np.testing.assert_allclose(to_numpy(model(IDS)), expected, atol=1e-4)
    ours = model.generate([IDS[0]], 4, verbose=0).tokens[0, 0]
    tokens = theirs.generate(
        input_ids=long(IDS[:1]),
        attention_mask=long(LEFT[:1]),
        max_new_tokens=4,
        pad_token_id=0,
        do_sample=False,
    ).numpy()[0, IDS.shape[1] :]
    np.testing.assert_array_equal(ours, tokens)
    # Without the keys, transformers has the same defaults.
    for key in ("bos_token_id", "eos_token_id"):
        config.pop(key)
    path.write_text(json.dumps(config))
    assert pretrained.load(tmp_path).end_id is None


def test_file_of_an_early_version(tmp_path):
    """Without the prefix, and with the causal masks, which are skipped."""
    theirs = gpt2(kind=transformers.GPT2Model)
    theirs.save_pretrained(tmp_path)
    expected = pretrained.load(tmp_path)
    path = tmp_path / "model.safetensors"
    tensors = load_file(path)
    assert "wte.weight" in tensors
    causal = np.tril(np.ones((1, 1, 24, 24), "bool"))
    for number in range(2):
        tensors[f"h.{number}.attn.bias"] = causal
        tensors[f"h.{number}.attn.masked_bias"] = np.array(-1e4, "float32")
    save_file(tensors, path)
    model = pretrained.load(tmp_path)
    np.testing.assert_array_equal(to_numpy(model(IDS)), to_numpy(expected(IDS)))
    with torch.no_grad():
        hidden = theirs(long(IDS)).last_hidden_state.numpy()
    found, _ = model.encode(IDS)
    np.testing.assert_allclose(to_numpy(found), hidden, atol=1e-4)


@pytest.mark.parametrize("pad", [END, 3])
def test_a_special_id_is_no_padding(pad, tmp_path):
    """As in nearly all fine-tuned models, `pad_token_id` is the end id."""
    theirs = gpt2(pad_token_id=pad, bos_token_id=3, eos_token_id=END)
    theirs.save_pretrained(tmp_path)
    model = pretrained.load(tmp_path)
    assert (model.pad_id, model.start_id, model.end_id) == (None, 3, END)
    ids = np.array([[5, END, 7, 3, 2], [END, END, 3, 15, END]], "int32")
    with torch.no_grad():
        expected = logits(theirs, ids).numpy()
        np.testing.assert_allclose(to_numpy(model(ids)), expected, atol=1e-4)
        masked = logits(theirs, ids, LEFT).numpy()
    found = to_numpy(model({"token_ids": ids, "padding_mask": LEFT == 1}))
    real = LEFT == 1
    np.testing.assert_allclose(found[real], masked[real], atol=1e-4)
    tokens = model.generate([[END]], 3, verbose=0).tokens[0, 0]
    right = theirs.generate(
        input_ids=long([[END]]),
        attention_mask=long([[1]]),
        max_new_tokens=3,
        do_sample=False,
    ).numpy()[0, 1:]
    np.testing.assert_array_equal(tokens[: len(right)], right)
    pretrained.save(model, tmp_path / "again")
    again = pretrained.load(tmp_path / "again")
    assert again.pad_id is None
    np.testing.assert_array_equal(to_numpy(again(ids)), to_numpy(model(ids)))


# Searches in which rounding decides nothing and lengths differ.
SEEDS = (4, 7, 10)
PROMPTS = [[5, 6, 7, 8, 2], [9, 4, 3], [1]]


def continued(theirs, max_new_tokens=8, **kwargs):
    """Returns the new tokens of transformers for left-padded prompts."""
    width = max(map(len, PROMPTS))
    ids = [[END] * (width - len(row)) + row for row in PROMPTS]
    mask = [[0] * (width - len(row)) + [1] * len(row) for row in PROMPTS]
    tokens = theirs.generate(
        input_ids=long(ids),
        attention_mask=long(mask),
        max_new_tokens=max_new_tokens,
        pad_token_id=END,
        do_sample=False,
        **kwargs,
    ).numpy()[:, width:]
    missing = ((0, 0), (0, max_new_tokens - tokens.shape[1]))
    tokens = np.pad(tokens, missing, constant_values=END)
    return tokens.reshape(len(PROMPTS), -1, max_new_tokens)


@pytest.fixture(scope="module")
def talkative(tmp_path_factory):
    """Their models, and one of ours, so that a search is compiled once."""
    directory = tmp_path_factory.mktemp("gpt2")
    pairs = []
    for seed in SEEDS:
        theirs = gpt2(seed, scale=0.3)
        with torch.no_grad():
            matrix = theirs.transformer.wte.weight.mul_(4)
            # Makes end tokens likely enough.
            theirs.transformer.ln_f.bias.add_(0.3 * matrix[END])
        theirs.save_pretrained(directory)
        ours = pretrained.load(directory)
        pairs.append((theirs, ours.get_weights()))
    return ours, pairs


@pytest.mark.every_backend
def test_greedy_search_equals_theirs(talkative):
    ours, pairs = talkative
    lengths = set()
    for theirs, weights in pairs:
        ours.set_weights(weights)
        found = ours.generate(PROMPTS, max_new_tokens=8)
        np.testing.assert_array_equal(found.tokens, continued(theirs))
        lengths |= set(found.lengths.ravel().tolist())
    assert len(lengths) > 1


@pytest.mark.every_backend
def test_beam_search_equals_theirs(talkative):
    ours, pairs = talkative
    strategy = BeamSearch(3, 2, length_penalty=0.0)
    for theirs, weights in pairs:
        ours.set_weights(weights)
        found = ours.generate(PROMPTS, max_new_tokens=8, strategy=strategy)
        expected = continued(
            theirs,
            num_beams=3,
            num_return_sequences=2,
            length_penalty=0.0,
            early_stopping="never",
        )
        np.testing.assert_array_equal(found.tokens, expected)


@pytest.mark.every_backend
@pytest.mark.parametrize("beams", [1, 3])
def test_several_end_ids(talkative, beams, tmp_path):
    _, ((theirs, _), *_) = talkative
    theirs, ends = copy.deepcopy(theirs), [END, 3]
    with torch.no_grad():
        # Makes the other one as likely.
        matrix = theirs.transformer.wte.weight
        matrix[3] = matrix[END] + 0.1 * matrix[3]
    # As in chat models: config.json has one of them.
    theirs.generation_config.eos_token_id = ends
    theirs.save_pretrained(tmp_path / "theirs")
    ours = pretrained.load(tmp_path / "theirs")
    assert ours.end_id == tuple(ends)
    strategy = BeamSearch(beams, length_penalty=0.0)
    found = ours.generate(PROMPTS, max_new_tokens=8, strategy=strategy)
    expected = continued(
        theirs,
        num_beams=beams,
        length_penalty=0.0,
        early_stopping="never" if beams > 1 else False,
    )
    np.testing.assert_array_equal(found.tokens, expected)
    pretrained.save(ours, tmp_path / "ours")
    config = json.loads((tmp_path / "ours" / "config.json").read_text())
    assert config["eos_token_id"] == ends
    assert pretrained.load(tmp_path / "ours").end_id == tuple(ends)


@pytest.mark.parametrize(
    "values, message",
    [
        ({"n_head": 3}, "`n_head` in config.json must divide"),
        (
            {"n_layer": 0},
            "`n_layer` in .* must be a positive.*0",
        ),
        ({"n_embd": None}, "must have a value for `n_embd`"),
        (
            {"embd_pdrop": 1.5},
            r"`embd_pdrop` in config.json must lie in \[0, 1",
        ),
        (
            {"layer_norm_epsilon": 0},
            "`layer_norm_epsilon` in .* must be a number",
        ),
        ({"scale_attn_weights": False}, "`scale_attn_weights` .*true.*false"),
        ({"scale_attn_by_inverse_layer_idx": True}, "inverse_layer_idx"),
        ({"add_cross_attention": True}, "`add_cross_attention` .*false"),
        (
            {"activation_function": "mish"},
            "`activation_function` in .* must",
        ),
        ({"n_layer": 3}, r"must hold a tensor `transformer.h.2.ln_1.weight`"),
        ({"n_layer": 1}, r"a gpt2 model and no others.*h\.1\."),
        ({"n_positions": 25}, r"`transformer.wpe.weight` .*\(25, 8\).*\(24"),
        ({"n_inner": 31}, r"`transformer.h.0.mlp.c_fc.weight` .*\(8, 31\)"),
        (
            {"eos_token_id": SIZE},
            r"`eos_token_id` in .* lie in \[0, 17\)",
        ),
        (
            {"eos_token_id": [3, SIZE]},
            r"`eos_token_id` in .* lie in \[0, 17\)",
        ),
        ({"eos_token_id": [3, 3]}, "`eos_token_id` .*different ids"),
        ({"eos_token_id": []}, "`eos_token_id` .*different ids"),
    ],
)
def test_invalid_config_raises(values, message, tmp_path):
    gpt2().save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))
    with pytest.raises(ValueError, match=message) as info:
        pretrained.load(tmp_path)
    assert "\n" not in str(info.value)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"normalize_first": False}, "normalize_first=True.*False"),
        (
            {"position_embedding": "sinusoidal"},
            "position_embedding='learned'.*'sinusoidal'",
        ),
        ({"gated": True}, "gated=False.*True"),
        ({"activation_dropout": 0.1}, "activation_dropout=0.0.*0.1"),
        ({"activation": "elu"}, "`activation` must be one of .*'elu'"),
    ],
)
def test_unsupported_model_raises(arguments, message, tmp_path):
    model = GPT(SIZE, 1, 2, 8, max_sequence_length=8, **arguments)
    with pytest.raises(ValueError, match=message):
        pretrained.save(model, tmp_path)
    assert list(tmp_path.iterdir()) == []
