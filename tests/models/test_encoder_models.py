"""Encoder, TokenClassifier and SpanExtractor against PyTorch."""

import keras
import numpy as np
import pytest

from keras_attn.explain import doctor
from keras_attn.layers import T5Position
from keras_attn.models import Encoder, SpanExtractor, TokenClassifier
from keras_attn.training import SequenceCrossentropy
from tests.helpers import torch_twin
from tests.helpers.arrays import to_numpy
from tests.helpers.cases import once
from tests.helpers.contract import randomize
from tests.helpers.weight_gradients import layer_gradients
from tests.models.torch_encoder import TorchEncoder

torch = pytest.importorskip("torch")

TOKENS = np.array([[5, 6, 7, 2, 9], [8, 2, 4, 0, 0]], "int32")
CHARACTERS = np.random.default_rng(0).integers(1, 7, (2, 5, 4)).astype("int32")
CHARACTERS[0, :3, 2:] = CHARACTERS[1, :2, 3:] = CHARACTERS[1, 3:] = 0
SEGMENTS = np.array([[0, 0, 1, 2, 1], [0, 2, 2, 0, 0]], "int32")
TOKEN_MASK = TOKENS != 0
TAGS = np.array([[1, 3, 2, 2, 1], [3, 1, 2, 0, 0]], "int32")
# First and last token of the answer, counted from 1; (0, 0): no answer.
ANSWERS = np.array([[2, 3], [0, 0]], "int32")
ANSWERABLE = np.array([[0, 1, 1, 1, 0], [1, 1, 1, 1, 1]], "bool")

FORMS = {
    "paper": {},
    "pre-norm": {
        "normalize_first": True,
        "activation": "gelu",
        "position_embedding": "learned",
        "max_sequence_length": 6,
    },
    "no positions": {"position_embedding": None, "num_layers": 1},
    "characters": {"character_vocabulary_size": 7},
    "relative": {"position_embedding": None, "attention_position": "t5"},
    "segments": {"num_segments": 3, "character_vocabulary_size": 7},
}


def tiny_encoder(**kwargs):
    sizes = {
        "num_layers": 2,
        "num_heads": 2,
        "hidden_dim": 8,
        "intermediate_dim": 12,
        "dropout": 0.0,
    }
    if kwargs.get("attention_position") == "t5":
        # Created here, because a position belongs to one model.
        kwargs["attention_position"] = T5Position(2, 8, 6, name="relative")
    return Encoder(11, **(sizes | kwargs))


def classifier(**kwargs):
    return TokenClassifier(tiny_encoder(**kwargs), 4, dropout=0.0)


def extractor(**kwargs):
    return SpanExtractor(tiny_encoder(**kwargs), dropout=0.0)


MODELS = {
    "encoder": tiny_encoder,
    "classifier": classifier,
    "extractor": extractor,
}
every_model = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)


def inputs_of(form):
    parts = {"token_ids": TOKENS}
    if "character_vocabulary_size" in FORMS[form]:
        parts["character_ids"] = CHARACTERS
    if "num_segments" in FORMS[form]:
        parts["segment_ids"] = SEGMENTS
    return parts if len(parts) > 1 else TOKENS


def encoded(twin, inputs):
    if isinstance(inputs, dict):
        return twin.encode(**inputs)
    return twin.encode(inputs)


def assert_gradients(found, twin):
    found, expected = twin.in_torch_layout(found), twin.gradients()
    assert set(found) == set(expected)
    for name, gradient in expected.items():
        np.testing.assert_allclose(
            found[name], gradient, rtol=1e-5, atol=1e-5, err_msg=name
        )


@pytest.mark.every_backend
@pytest.mark.parametrize("form", FORMS)
def test_classifier_equals_torch(form):
    model = randomize(classifier(**FORMS[form]))
    inputs, twin = inputs_of(form), TorchEncoder(model)
    hidden, _ = encoded(twin, inputs)
    expected = twin.dense("output", hidden)
    torch.nn.functional.cross_entropy(
        expected.flatten(0, 1),
        torch_twin.tensor(TAGS.reshape(-1).astype("int64")),
        ignore_index=0,
    ).backward()
    np.testing.assert_allclose(
        to_numpy(model(inputs))[TOKEN_MASK],
        expected.detach().numpy()[TOKEN_MASK],
        rtol=1e-5,
        atol=1e-5,
    )
    measure = SequenceCrossentropy()
    _, found = layer_gradients(model, lambda: measure(TAGS, model(inputs)))
    assert_gradients(found, twin)


@pytest.mark.every_backend
@pytest.mark.parametrize("form", ["paper", "characters"])
@pytest.mark.parametrize("given", [False, True])
def test_extractor_equals_torch(form, given):
    model = randomize(extractor(**FORMS[form]))
    inputs, twin = inputs_of(form), TorchEncoder(model)
    hidden, token_mask = encoded(twin, inputs)
    weights = token_mask[..., None].double()
    none = twin.dense("no_answer", (hidden * weights).sum(1) / weights.sum(1))
    if given:
        parts = inputs if isinstance(inputs, dict) else {"token_ids": inputs}
        inputs = {**parts, "answerable": ANSWERABLE}
        token_mask = token_mask & torch_twin.tensor(ANSWERABLE)
    expected = twin.dense("token", hidden)
    expected = expected.masked_fill(~token_mask[..., None], -1e9)
    expected = torch.cat([none[:, None], expected], 1).transpose(1, 2)
    torch.nn.functional.cross_entropy(
        expected.flatten(0, 1),
        torch_twin.tensor(ANSWERS.reshape(-1).astype("int64")),
    ).backward()
    np.testing.assert_allclose(
        to_numpy(model(inputs)),
        expected.detach().numpy(),
        rtol=1e-5,
        atol=1e-5,
    )
    measure = SequenceCrossentropy(pad_id=-1)
    _, found = layer_gradients(model, lambda: measure(ANSWERS, model(inputs)))
    assert_gradients(found, twin)


@every_model
@pytest.mark.parametrize("form", FORMS)
def test_file_round_trip(make, form, tmp_path):
    model = randomize(make(**FORMS[form]))
    paths = [variable.path for variable in model.variables]
    before = to_numpy(model(inputs_of(form)))
    assert [variable.path for variable in model.variables] == paths
    assert len(set(paths)) == len(paths)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.get_config() == model.get_config()
    np.testing.assert_array_equal(to_numpy(loaded(inputs_of(form))), before)


@every_model
def test_padding_does_not_change_outputs(make):
    model = randomize(make(**FORMS["segments"]))
    inputs = inputs_of("segments")
    wider = {
        "token_ids": np.pad(TOKENS, ((0, 0), (0, 3))),
        "character_ids": np.pad(CHARACTERS, ((0, 0), (0, 3), (0, 2))),
        "segment_ids": np.pad(SEGMENTS, ((0, 0), (0, 3))),
    }
    alone = {name: part[1:, :3] for name, part in inputs.items()}
    expected, found, single = (
        to_numpy(model(x)) for x in (inputs, wider, alone)
    )
    if make is extractor:
        expected, found, single = (
            x.swapaxes(1, 2)[:, 1:] for x in (expected, found, single)
        )
    np.testing.assert_allclose(
        found[:, :5][TOKEN_MASK], expected[TOKEN_MASK], atol=1e-5
    )
    np.testing.assert_allclose(single[0], expected[1, :3], atol=1e-5)


def test_classifier_learns_from_context():
    rng = np.random.default_rng(0)
    tokens = rng.integers(1, 11, (256, 5)).astype("int32")
    tokens[::2, 3:] = 0
    # The class of a token is whether it is larger than the first.
    tags = np.where(tokens > 0, 1 + (tokens > tokens[:, :1]), 0)
    model = TokenClassifier(
        tiny_encoder(hidden_dim=16, num_layers=1), 3, dropout=0.0
    )
    model.compile(keras.optimizers.Adam(0.01), SequenceCrossentropy())
    history = model.fit(tokens, tags, epochs=12, batch_size=16, verbose=0)
    assert history.history["loss"][-1] < 0.2


def test_extractor_learns_answers_and_no_answer():
    """The answer is the run of ids above 7 among the first four tokens."""
    rng = np.random.default_rng(0)
    tokens = rng.integers(1, 8, (256, 6)).astype("int32")
    start = rng.integers(0, 4, 256)
    end = np.minimum(start + rng.integers(0, 2, 256), 3)
    has_answer = rng.random(256) < 0.7
    for row in np.flatnonzero(has_answer):
        tokens[row, start[row] : end[row] + 1] = 9
    labels = np.where(has_answer[:, None], np.stack([start, end], 1) + 1, 0)
    inputs = {"token_ids": tokens, "answerable": np.arange(6)[None] < 4}
    inputs["answerable"] = np.repeat(inputs["answerable"], 256, axis=0)
    model = SpanExtractor(
        tiny_encoder(hidden_dim=16, num_layers=1), dropout=0.0
    )
    model.compile(keras.optimizers.Adam(0.01), SequenceCrossentropy(pad_id=-1))
    model.fit(inputs, labels, epochs=12, batch_size=16, verbose=0)
    spans = model.extract(inputs)
    expected = np.where(has_answer, start, -1), np.where(has_answer, end, -1)
    assert (spans.start == expected[0]).mean() > 0.95
    assert (spans.end == expected[1]).mean() > 0.95
    np.testing.assert_array_equal(spans.score > 0, spans.start >= 0)


@pytest.mark.parametrize("dtype", ["mixed_bfloat16", *once(["mixed_float16"])])
def test_mixed_precision(dtype):
    parts = {"token_ids": TOKENS, "answerable": ANSWERABLE}
    parts["token_ids"] = np.where([[True], [False]], TOKENS, 0)
    model = SpanExtractor(tiny_encoder(dtype=dtype), dtype=dtype)
    model.compile("adam", SequenceCrossentropy(pad_id=-1))
    loss = model.fit(parts, ANSWERS, verbose=0).history["loss"]
    assert np.isfinite(loss).all()
    assert all(np.isfinite(to_numpy(w)).all() for w in model.trainable_weights)


@pytest.mark.parametrize(
    "form, inputs, message",
    [
        ("paper", TOKENS[0], r"`token_ids` must have shape \(batch, length\)"),
        ("paper", TOKENS + 9, r"`token_ids` must lie in \[0, 11\)"),
        ("paper", TOKENS / 2, "`token_ids` must hold integers"),
        ("pre-norm", np.pad(TOKENS, ((0, 0), (0, 2))), "longer than max_seq"),
        ("characters", TOKENS, "contain token_ids and character_ids"),
        (
            "paper",
            {"token_ids": TOKENS, "character_ids": CHARACTERS},
            "must contain token_ids. Received: token_ids and character_ids",
        ),
        (
            "characters",
            {"token_ids": TOKENS, "character_ids": CHARACTERS[:, 1:]},
            "a row of characters for each token",
        ),
        (
            "characters",
            {"token_ids": TOKENS, "character_ids": CHARACTERS + 3},
            r"`character_ids` must lie in \[0, 7\)",
        ),
        (
            "segments",
            {"token_ids": TOKENS, "character_ids": CHARACTERS},
            "contain token_ids and character_ids and segment_ids",
        ),
        (
            "segments",
            inputs_of("segments") | {"segment_ids": SEGMENTS[:, 1:]},
            "`segment_ids` must have a segment for each token",
        ),
        (
            "segments",
            inputs_of("segments") | {"segment_ids": SEGMENTS + 1},
            r"`segment_ids` must lie in \[0, 3\)",
        ),
    ],
)
@every_model
def test_invalid_inputs_raise(make, form, inputs, message):
    model = make(**FORMS[form])
    with pytest.raises(ValueError, match=message):
        model(inputs)
    with pytest.raises(ValueError, match=message):
        model.predict(inputs, verbose=0)


def test_answerable_of_wrong_shape_raises():
    model = extractor()
    with pytest.raises(
        ValueError, match=r"`answerable` must have shape \(2, 5\)"
    ):
        model({"token_ids": TOKENS, "answerable": ANSWERABLE[:, 1:]})


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: tiny_encoder(pad_id=11), r"`pad_id` must lie in \[0, 11\)"),
        (
            lambda: tiny_encoder(position_embedding="all"),
            "`position_embedding` must be one of",
        ),
        (
            lambda: tiny_encoder(attention_position="rotary"),
            "must be an AttentionPos",
        ),
        (
            lambda: tiny_encoder(attention_position=T5Position(3)),
            "the 2 heads of the",
        ),
        (lambda: tiny_encoder(num_heads=3), "`num_heads` must divide"),
        (lambda: TokenClassifier(tiny_encoder(), 0), "`num_classes` must be"),
        (lambda: TokenClassifier("bert", 3), "`encoder` must be a keras_attn"),
        (lambda: SpanExtractor(None), "`encoder` must be a keras_attn"),
    ],
)
def test_invalid_arguments_raise(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@every_model
@pytest.mark.parametrize("form", ["characters", *once(["paper", "relative"])])
def test_doctor_finds_no_leak(make, form):
    assert doctor(randomize(make(**FORMS[form])), inputs_of(form))
