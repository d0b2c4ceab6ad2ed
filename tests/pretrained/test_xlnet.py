"""XLNet models against transformers: all inputs, memory and round trips."""

import json

import keras
import numpy as np
import pytest

from keras_attn import pretrained
from keras_attn.models import XLNet
from keras_attn.pretrained.xlnet import XLNET
from tests.helpers.weight_gradients import layer_gradients, weighted_sum

torch = pytest.importorskip("torch")

import transformers

SIZE = 17
CONFIG = {
    "vocab_size": SIZE,
    "d_model": 12,
    "n_layer": 2,
    "n_head": 3,
    "d_inner": 20,
    "mem_len": 4,
    "dropout": 0.0,
    "pad_token_id": 0,
}
FORMS = {
    "plain": {},
    "one layer, odd widths": {
        "n_layer": 1,
        "d_model": 30,
        "n_head": 5,
        "d_inner": 21,
    },
    "gelu of PyTorch": {"ff_activation": "gelu_pytorch_tanh"},
    "relu": {"ff_activation": "relu"},
    "large epsilon": {"layer_norm_eps": 0.3},
    "untied": {"tie_word_embeddings": False},
    "both directions": {"bi_data": True},
}
every_form = pytest.mark.parametrize("form", FORMS)
DRAW = np.random.default_rng(0)
IDS = DRAW.integers(3, SIZE, (2, 6)).astype("int32")
SEGMENTS = np.int32([[0, 0, 0, 1, 1, 1], [0, 1, 1, 1, 1, 0]])
HIDDEN = DRAW.random((2, 6, 6)) < 0.5
TARGETS = np.int32([[2, 5], [0, 3]])
MAPPING = (TARGETS[..., None] == np.arange(6)).astype("float32")
UPSTREAM = DRAW.normal(size=(2, 2, SIZE)).astype("float32")
OURS = {
    "token_ids": IDS,
    "segment_ids": SEGMENTS,
    "permutation_mask": ~HIDDEN,
    "target_mapping": MAPPING,
}


def xlnet(seed=0, scale=0.4, kind=transformers.XLNetLMHeadModel, **config):
    """Returns a transformers model with random weights."""
    model = kind(transformers.XLNetConfig(**(CONFIG | config)))
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            tensor.normal_(std=scale, generator=draw)
            if "layer_norm.weight" in name:
                tensor.add_(1.0)
    return model.eval()


def theirs_of(ids=IDS, **more):
    """Returns the inputs in `OURS` under their names."""
    inputs = {"input_ids": ids, "token_type_ids": SEGMENTS}
    inputs |= {"perm_mask": HIDDEN * 1.0, "target_mapping": MAPPING} | more
    return {
        name: torch.tensor(array).float()
        if np.asarray(array).dtype.kind == "f"
        else torch.tensor(array).long()
        for name, array in inputs.items()
        if array is not None
    }


def to_numpy(tensor):
    return keras.ops.convert_to_numpy(tensor)


def close(found, expected, tolerance=1e-4):
    expected = expected.detach().numpy()
    np.testing.assert_allclose(to_numpy(found), expected, atol=tolerance)


@pytest.mark.every_backend
@every_form
def test_same_logits(form, tmp_path):
    """Content only, then with segments, permutations and targets."""
    theirs = xlnet(**FORMS[form])
    theirs.save_pretrained(tmp_path)
    model = pretrained.load(tmp_path)
    assert isinstance(model, XLNet)
    none = {"perm_mask": None, "target_mapping": None}
    with torch.no_grad():
        expected = theirs(**theirs_of(token_type_ids=None, **none)).logits
        assert expected.abs().max() > 1
        close(model(IDS), expected)
        with_segments = {"token_ids": IDS, "segment_ids": SEGMENTS}
        close(model(with_segments), theirs(**theirs_of(**none)).logits)
        content = {n: x for n, x in OURS.items() if n != "target_mapping"}
        close(model(content), theirs(**theirs_of(target_mapping=None)).logits)
        close(model(OURS), theirs(**theirs_of()).logits)
        hidden = theirs.transformer(**theirs_of(**none)).last_hidden_state
        close(model.encode(with_segments)[0], hidden)


@pytest.mark.every_backend
@pytest.mark.parametrize("form", ["plain", "both directions"])
def test_same_memory(form, tmp_path):
    theirs = xlnet(**FORMS[form])
    theirs.save_pretrained(tmp_path)
    model = pretrained.load(tmp_path)
    memory, mems = (), None
    for step in range(3):
        ids = (IDS * (step + 1)) % 14 + 3
        with torch.no_grad():
            answer = theirs(**theirs_of(ids), mems=mems, use_mems=True)
        inputs = OURS | {"token_ids": ids.astype("int32")}
        if memory:
            inputs["memory"] = memory
        logits, memory = model.advance(inputs)
        close(logits, answer.logits)
        mems = answer.mems
        for ours, other in zip(memory.states, mems, strict=True):
            close(ours, other.transpose(0, 1))


@pytest.mark.every_backend
@pytest.mark.parametrize("side", ["left", "right"])
def test_same_logits_with_padding(side, tmp_path):
    theirs = xlnet()
    theirs.save_pretrained(tmp_path)
    model = pretrained.load(tmp_path)
    mask = np.int32([[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0]])
    mask = mask[:, ::-1].copy() if side == "left" else mask
    none = {"perm_mask": None, "target_mapping": None}
    with torch.no_grad():
        expected = theirs(
            **theirs_of(**none), attention_mask=torch.tensor(mask)
        ).logits
        asked = theirs(**theirs_of(), attention_mask=torch.tensor(mask)).logits
    padded = OURS | {"padding_mask": mask}
    content = {n: padded[n] for n in ("token_ids", "segment_ids")}
    found = to_numpy(model(content | {"padding_mask": mask}))
    token_mask = mask == 1
    np.testing.assert_allclose(
        found[token_mask], expected.numpy()[token_mask], atol=1e-4
    )
    token_mask = np.take_along_axis(mask, TARGETS, axis=1) == 1
    np.testing.assert_allclose(
        to_numpy(model(padded))[token_mask],
        asked.numpy()[token_mask],
        atol=1e-4,
    )


@pytest.mark.every_backend
def test_same_gradients(tmp_path):
    theirs = xlnet()
    theirs.save_pretrained(tmp_path)
    model = pretrained.load(tmp_path)
    logits = theirs(**theirs_of()).logits
    (logits * torch.tensor(UPSTREAM)).sum().backward()
    _, found = layer_gradients(
        model, lambda: weighted_sum(model(OURS), UPSTREAM)
    )
    found |= {f"{model.path}/{name}": x for name, x in found.items()}
    expected = dict(theirs.named_parameters())
    for name in XLNET.tensors(model):
        right = expected[name.theirs].grad.numpy()
        np.testing.assert_allclose(
            name.layout.to_file(found[name.ours]),
            right,
            atol=1e-4 * max(1, np.abs(right).max()),
            err_msg=name.ours,
        )
        assert np.abs(right).max() > 0, name.ours


@every_form
def test_save_round_trip(form, tmp_path):
    theirs = xlnet(**FORMS[form])
    theirs.save_pretrained(tmp_path / "theirs")
    model = pretrained.load(tmp_path / "theirs")
    pretrained.save(model, tmp_path / "ours")
    found = transformers.XLNetLMHeadModel.from_pretrained(tmp_path / "ours")
    with torch.no_grad():
        # Two names of one activation, which differ in rounding.
        np.testing.assert_allclose(
            found.eval()(**theirs_of()).logits.numpy(),
            theirs(**theirs_of()).logits.numpy(),
            atol=1e-6,
        )
    again = pretrained.load(tmp_path / "ours")
    assert again.get_config() | {"name": ""} == model.get_config() | {
        "name": ""
    }


def test_model_without_head(tmp_path):
    theirs = xlnet(kind=transformers.XLNetModel, mem_len=None)
    theirs.save_pretrained(tmp_path / "theirs")
    model = pretrained.load(tmp_path / "theirs")
    assert (model.output_bias, model.memory_length) == (False, 0)
    none = {"perm_mask": None, "target_mapping": None}
    with torch.no_grad():
        hidden = theirs(**theirs_of(**none)).last_hidden_state
    inputs = {"token_ids": IDS, "segment_ids": SEGMENTS}
    close(model.encode(inputs)[0], hidden)
    pretrained.save(model, tmp_path / "ours")
    found = transformers.XLNetModel.from_pretrained(tmp_path / "ours").eval()
    with torch.no_grad():
        again = found(**theirs_of(**none)).last_hidden_state
    np.testing.assert_array_equal(again.numpy(), hidden.numpy())


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"n_head": 5}, "`n_head` in config.json must divide"),
        ({"d_model": None}, "must have a value for `d_model`"),
        ({"d_head": 5}, "`d_head` in config.json must be 4"),
        ({"clamp_len": 9}, "`clamp_len` in config.json must be -1"),
        ({"same_length": True}, "`same_length` in config.json must be false"),
        ({"attn_type": "uni"}, '`attn_type` in config.json must be "bi"'),
        ({"untie_r": False}, "`untie_r` in config.json must be true"),
        ({"mem_len": -3}, "`mem_len` in config.json must be"),
        ({"n_layer": 3}, r"must hold a tensor `transformer.layer.2"),
        ({"n_layer": 1}, "a xlnet model and no others.*layer.1"),
        ({"d_inner": 21}, r"`transformer.layer.0.ff.layer_1.weight` .*\(21"),
        (
            {"ff_activation": "mish"},
            "`ff_activation` in .* must be one of",
        ),
    ],
)
def test_invalid_config_raises(values, message, tmp_path):
    xlnet().save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))
    with pytest.raises(ValueError, match=message) as info:
        pretrained.load(tmp_path)
    assert "\n" not in str(info.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"normalize_first": True}, "normalize_first=False.*True"),
        ({"gated": True}, "gated=False.*True"),
        ({"attention_dropout": 0.3}, "attention_dropout=0.1.*0.3"),
        (
            {"output_bias": False, "tie_word_embeddings": False},
            "tie_word_embeddings=True",
        ),
    ],
)
def test_unsupported_model_raises(arguments, message, tmp_path):
    model = XLNet(SIZE, 1, 2, 8, **arguments)
    with pytest.raises(ValueError, match=message):
        pretrained.save(model, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_special_id_is_no_padding(tmp_path):
    theirs = xlnet(pad_token_id=2, eos_token_id=2)
    theirs.save_pretrained(tmp_path)
    model = pretrained.load(tmp_path)
    assert (model.pad_id, model.end_id) == (None, 2)
    ids = np.where(HIDDEN[:, 0], 2, IDS)
    with torch.no_grad():
        expected = theirs(torch.tensor(ids).long()).logits.numpy()
    found = keras.ops.convert_to_numpy(model(ids))
    np.testing.assert_allclose(found, expected, atol=1e-4)
