"""BERT models: outputs, invalid arguments, training and saving.

tests/pretrained/test_bert.py compares them with transformers.
"""

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_attn.models import (
    Bert,
    BertPretrainer,
    Encoder,
    MultipleChoice,
    SequenceClassifier,
    SpanExtractor,
    TokenClassifier,
)
from keras_attn.training import SequenceCrossentropy
from tests.helpers.cases import once
from tests.helpers.contract import randomize

SIZE = 12
IDS = np.array([[2, 5, 6, 3, 7, 3], [2, 8, 3, 9, 0, 0]], "int32")
SEGMENTS = np.array([[0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 0, 0]], "int32")
PAIR = {"token_ids": IDS, "segment_ids": SEGMENTS}


def bert(random=True, **kwargs):
    sizes = {"num_layers": 2, "num_heads": 2, "hidden_dim": 8}
    options = {
        "dropout": 0.0,
        "attention_dropout": 0.0,
        "max_sequence_length": 16,
    }
    model = Bert(SIZE, intermediate_dim=12, **(sizes | options | kwargs))
    return randomize(model, scale=0.3) if random else model


def encoder(**kwargs):
    model = Encoder(SIZE, 1, 2, 8, 12, dropout=0.0, **kwargs)
    return randomize(model, scale=0.3)


HEADS = {
    "Bert": bert,
    "without a pooler": lambda **k: bert(pooler=False, **k),
    "BertPretrainer": lambda **k: BertPretrainer(bert(**k), **k),
    "SequenceClassifier": lambda **k: SequenceClassifier(bert(**k), 3, **k),
    "TokenClassifier": lambda **k: TokenClassifier(bert(**k), 3, **k),
    "SpanExtractor": lambda **k: SpanExtractor(
        bert(**k), no_answer="first", **k
    ),
}
every_head = pytest.mark.parametrize("head", HEADS)


def untrained(model):
    """Returns the model with the same initial weights on every backend."""
    randomize(model, scale=0.25)
    for variable in model.weights:
        if variable.path.endswith(("gamma", "beta", "bias")):
            variable.assign(np.full(variable.shape, "gamma" in variable.path))
    return model


def to_numpy(nest):
    return keras.tree.map_structure(keras.ops.convert_to_numpy, nest)


def assert_close(found, expected, atol=1e-5):
    found, expected = map(
        keras.tree.flatten, (to_numpy(found), to_numpy(expected))
    )
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=atol)


@every_head
def test_config_and_file_round_trip(head, tmp_path):
    model = HEADS[head]()
    expected = model(PAIR)
    restored = type(model).from_config(model.get_config())
    restored.set_weights(model.get_weights())
    assert_close(restored(PAIR), expected, atol=0)
    model.save(tmp_path / "model.keras")
    assert_close(
        keras.saving.load_model(tmp_path / "model.keras")(PAIR), expected
    )


@every_head
def test_compute_output_shape_matches_call(head):
    model = HEADS[head]()
    shapes = {name: part.shape for name, part in PAIR.items()}
    expected = keras.tree.flatten(
        keras.tree.map_shape_structure(str, model.compute_output_shape(shapes))
    )
    found = [str(tuple(x.shape)) for x in keras.tree.flatten(model(PAIR))]
    assert sorted(expected) == sorted(found)


@every_head
def test_half_precision(head):
    found = HEADS[head](dtype="mixed_bfloat16")(PAIR)
    for output in keras.tree.flatten(
        to_numpy(
            keras.tree.map_structure(
                lambda x: keras.ops.cast(x, "float32"), found
            )
        )
    ):
        assert np.isfinite(output).all()


@settings(max_examples=15, deadline=None)
@given(left=st.integers(0, 3), right=st.integers(0, 3))
def test_padding_does_not_change_outputs(left, right):
    model = bert()
    expected = to_numpy(model(IDS[:1]))
    ids = np.pad(IDS[:1], ((0, 0), (left, right)))
    found = to_numpy(model(ids))
    end = left + IDS.shape[1]
    np.testing.assert_allclose(
        found["sequence_output"][:, left:end],
        expected["sequence_output"],
        atol=1e-5,
    )
    np.testing.assert_allclose(
        found["pooled_output"], expected["pooled_output"], atol=1e-5
    )


def test_padding_mask_overrides_pad_id():
    model = bert()
    mask = np.array([[1, 1, 1, 1, 0, 0]] * 2, "bool")
    changed = np.where(mask, IDS, 11).astype("int32")
    one, other = (
        to_numpy(model({"token_ids": ids, "padding_mask": mask}))
        for ids in (IDS, changed)
    )
    np.testing.assert_allclose(
        one["sequence_output"][:, :4], other["sequence_output"][:, :4]
    )
    np.testing.assert_allclose(one["pooled_output"], other["pooled_output"])


def test_logits_only_at_mask_positions():
    model = BertPretrainer(bert(), next_sentence=False)
    randomize(model)
    everywhere = to_numpy(model(PAIR)["token_logits"])
    positions = np.array([[4, 1], [3, 0]], "int32")
    found = model({**PAIR, "mask_positions": positions})
    assert set(found) == {"token_logits"}
    rows = np.arange(2)[:, None]
    assert_close(found["token_logits"], everywhere[rows, positions])


@pytest.mark.one_backend("jax")
def test_learns_both_pretraining_tasks():
    """Each token is the previous one plus one; odd rows are not pairs."""
    model = untrained(BertPretrainer(bert(hidden_dim=16, num_layers=1)))
    model.compile(
        keras.optimizers.Adam(0.01),
        {
            "token_logits": SequenceCrossentropy(pad_id=-1),
            "next_sentence_logits": keras.losses.SparseCategoricalCrossentropy(
                from_logits=True
            ),
        },
    )
    starts = np.arange(5, 9)
    rows = np.stack([np.full(4, 2), starts, starts + 1, starts + 2], axis=1)
    follows = np.arange(4) % 2
    rows = np.concatenate([rows, 3 + follows[:, None]], axis=1)
    masked = rows.copy()
    masked[:, 2] = 1
    inputs = {
        "token_ids": masked.astype("int32"),
        "segment_ids": np.array([[0, 0, 0, 0, 1]] * 4, "int32"),
        "mask_positions": np.array([[2, 0]] * 4, "int32"),
    }
    labels = {
        "token_logits": np.stack([rows[:, 2], np.full(4, -1)], axis=1).astype(
            "int32"
        ),
        "next_sentence_logits": follows.astype("int32"),
    }
    # Epochs cost more than steps: fifty passes over the rows are one epoch.
    many_inputs, many_labels = (
        {name: np.concatenate([rows] * 50) for name, rows in part.items()}
        for part in (inputs, labels)
    )
    options = {"batch_size": 4, "shuffle": False, "verbose": 0}
    history = model.fit(many_inputs, many_labels, epochs=4, **options).history
    assert history["loss"][-1] < 0.1 < history["loss"][0]
    found = to_numpy(model(inputs))
    assert (found["token_logits"][:, 0].argmax(-1) == rows[:, 2]).all()
    assert (found["next_sentence_logits"].argmax(-1) == follows).all()


@pytest.mark.one_backend("jax")
@pytest.mark.parametrize("make", [bert, *once([encoder])])
def test_sequence_classifier_learns(make):
    """The class is whether the sequence contains a 7."""
    model = untrained(SequenceClassifier(make(), 2, dropout=0.0))
    model.compile(
        keras.optimizers.Adam(0.02),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    rng = np.random.default_rng(0)
    ids = rng.integers(5, 10, (64, 4)).astype("int32")
    labels = (ids == 7).any(axis=1).astype("int32")
    # Epochs cost more than steps: ten passes over the rows are one epoch.
    rows, answers = np.tile(ids, (10, 1)), np.tile(labels, 10)
    model.fit(rows, answers, epochs=3, batch_size=32, verbose=0)
    found = model.predict(ids, verbose=0).argmax(-1)
    assert (found == labels).mean() > 0.95


def test_one_output_is_regression():
    model = SequenceClassifier(bert(), 1)
    model.compile("sgd", "mse")
    model.fit(PAIR, np.array([0.3, 4.0]), verbose=0)
    assert model.predict(PAIR, verbose=0).shape == (2, 1)


def test_multiple_choice_scores_each_choice_alone(tmp_path):
    classifier = SequenceClassifier(bert(), 1)
    model = MultipleChoice(classifier)
    choices = np.stack([IDS, IDS[::-1], IDS], axis=1)
    found = to_numpy(model(choices))
    expected = to_numpy(classifier(choices.reshape(-1, 6))).reshape(2, 3)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    parts = {
        "token_ids": choices,
        "segment_ids": np.stack([SEGMENTS] * 3, axis=1),
    }
    model.compile(
        "adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    )
    model.fit(parts, np.array([1, 2]), verbose=0)
    again = MultipleChoice.from_config(model.get_config())
    again.set_weights(model.get_weights())
    assert_close(again(parts), model(parts), atol=0)
    assert model.compute_output_shape((2, 3, 6)) == (2, 3)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert_close(loaded(parts), model(parts))


def test_first_token_represents_no_answer():
    model = SpanExtractor(bert(), no_answer="first")
    kernel, bias = model._token_dense.get_weights()
    answerable = np.array([[0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 0, 0]], "bool")
    inputs = {**PAIR, "answerable": answerable}
    logits = to_numpy(model(inputs))
    x = to_numpy(model.encoder(PAIR)["sequence_output"])
    expected = np.swapaxes(x @ kernel + bias, 1, 2)
    allowed = answerable | (np.arange(6) == 0)
    np.testing.assert_allclose(
        logits[np.stack([allowed, allowed], axis=1)],
        expected[np.stack([allowed, allowed], axis=1)],
        atol=1e-5,
    )
    assert (logits[np.stack([~allowed, ~allowed], axis=1)] == -1e9).all()
    spans = model.extract(inputs)
    none = expected[:, :, 0].sum(axis=1)
    best = expected[1, :, 3].sum() - none[1]
    assert np.isclose(spans.score[1], best, atol=1e-5)
    position = 3 if best > 0 else -1
    assert (spans.start[1], spans.end[1]) == (position, position)


def test_extract_returns_positions_of_the_answer():
    """The outputs of an untrained layer norm all have the same norm."""
    model = SpanExtractor(bert(False), no_answer="first")
    x = to_numpy(model.encoder(PAIR)["sequence_output"])
    for position in (1, 3):
        kernel = np.stack([x[1, position], x[1, position]], axis=1)
        model._token_dense.set_weights([kernel, np.zeros(2)])
        spans = model.extract(
            {"token_ids": IDS[1:], "segment_ids": SEGMENTS[1:]}
        )
        assert (spans.start[0], spans.end[0]) == (position, position)
    model._token_dense.set_weights([0 * kernel, np.zeros(2)])
    assert (model.extract(PAIR).start == -1).all()


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: bert(num_heads=3), "`num_heads`"),
        (lambda: bert(pooler=False).pool(None, None), "a model with a pooler"),
        (
            lambda: BertPretrainer(
                bert(), masked_lm=False, next_sentence=False
            ),
            "`masked_lm` or `next_sentence` must be True",
        ),
        (
            lambda: BertPretrainer(bert(pooler=False)),
            "`encoder` must have a pooler",
        ),
        (lambda: SequenceClassifier("bert", 2), "`encoder` must be"),
        (
            lambda: SequenceClassifier(bert(), 0),
            "`num_classes` must be a positive",
        ),
        (
            lambda: MultipleChoice(SequenceClassifier(bert(), 2)),
            "`classifier` must be a SequenceClassifier with num_classes=1",
        ),
        (lambda: SpanExtractor(bert(), no_answer="last"), "`no_answer` must"),
    ],
)
def test_invalid_arguments_raise(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    "inputs, message",
    [
        ({"segment_ids": SEGMENTS}, "`inputs` must contain token_ids"),
        ({**PAIR, "mask": IDS}, "`inputs` must contain .*Received: .*mask"),
        ({**PAIR, "segment_ids": IDS}, r"`segment_ids` must lie in \[0, 2\)"),
        (
            {**PAIR, "segment_ids": SEGMENTS[:, :2]},
            "`segment_ids` must have a segment for each token",
        ),
        (
            {**PAIR, "padding_mask": SEGMENTS[:1]},
            r"`padding_mask` must have shape \(2, 6\), True at tokens",
        ),
        (
            {**PAIR, "mask_positions": np.array([[6], [0]], "int32")},
            r"`mask_positions` must lie in \[0, 6\)",
        ),
        (
            {**PAIR, "mask_positions": np.array([[1]], "int32")},
            "`mask_positions` must have 2 rows",
        ),
        (
            {**PAIR, "masked_positions": np.array([[1], [0]], "int32")},
            "masked_positions",
        ),
        (
            np.ones((1, 17), "int32"),
            "must not be longer than max_sequence_length=16",
        ),
    ],
)
def test_invalid_inputs_raise(inputs, message):
    model = BertPretrainer(bert())
    with pytest.raises(ValueError, match=message):
        model(inputs)
    with pytest.raises(ValueError, match=message):
        model.predict(inputs, verbose=0)


def test_invalid_choices_raise():
    model = MultipleChoice(SequenceClassifier(bert(), 1))
    with pytest.raises(ValueError, match=r"shape \(batch, choices, length\)"):
        model(IDS)
    with pytest.raises(ValueError, match=r"`token_ids` must lie in \[0, 12\)"):
        model.predict(IDS[None] + 9, verbose=0)


def mean_and_tokens(model, x):
    mask = keras.ops.convert_to_tensor(IDS != 0)[..., None]
    mask = keras.ops.cast(mask, "float32")
    mean = keras.ops.sum(x * mask, 1) / keras.ops.sum(mask, 1)
    return [model._none_dense(mean), model._token_dense(x)]


@pytest.mark.parametrize(
    "make, expected",
    [
        (
            lambda encoder: SequenceClassifier(encoder, 3, transform=True),
            lambda model, x: [model._output_dense(x[:, 0])],
        ),
        (
            lambda encoder: TokenClassifier(encoder, 3, transform=True),
            lambda model, x: [model._output_dense(x)],
        ),
        (
            lambda encoder: SpanExtractor(encoder, transform=True),
            mean_and_tokens,
        ),
    ],
    ids=("sequences", "tokens", "spans"),
)
def test_heads_with_a_transform(make, expected, tmp_path):
    """The transform has the options of the encoder, as in `BertPretrainer`."""
    options = {"normalization": "rms_norm", "use_bias": False}
    model = randomize(make(encoder(**options)), scale=0.3)
    vectors, _ = model.encoder.encode(IDS)
    dense, norm = model._transform_dense, model._transform_norm
    assert dense.bias is None and dense.activation is keras.activations.relu
    assert type(norm) is keras.layers.RMSNormalization
    parts = [
        keras.ops.convert_to_numpy(part)
        for part in expected(model, norm(dense(vectors)))
    ]
    logits = keras.ops.convert_to_numpy(model(IDS))
    if len(parts) > 1:
        found = logits.transpose(0, 2, 1)
        np.testing.assert_allclose(found[:, 0], parts[0], atol=1e-5)
        token_mask = IDS != 0
        found, right = found[:, 1:][token_mask], parts[1][token_mask]
    else:
        found, right = logits, parts[0]
    np.testing.assert_allclose(found, right, atol=1e-5)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras", compile=False)
    assert loaded.get_config()["transform"] is True
    np.testing.assert_array_equal(
        keras.ops.convert_to_numpy(loaded(IDS)), logits
    )


def test_a_transform_replaces_the_pooler():
    with pytest.raises(ValueError, match="`transform` must be False if the"):
        SequenceClassifier(bert(), 3, transform=True)
    with pytest.raises(ValueError, match=r"`transform` is True.*'relu'"):
        SequenceClassifier(
            encoder(), 3, pooler_activation="relu", transform=True
        )
    with pytest.raises(ValueError, match="`transform` must be True or False"):
        TokenClassifier(encoder(), 3, transform=1)
    odd = encoder()
    del odd.activation
    with pytest.raises(ValueError, match="attributes activation and epsilon"):
        TokenClassifier(odd, 3, transform=True)
