"""Invalid ids raise the same errors from every entry point."""

import keras
import numpy as np
import pytest

from keras_attn import models
from keras_attn.models import Transformer
from keras_attn.models.input_checks import CheckedModel, check_ids
from keras_attn.training import SequenceCrossentropy
from tests.helpers.cases import once
from tests.helpers.tiny_models import (
    LABELS,
    SIZE,
    SOURCE,
    TARGET,
    tiny_transformer,
)

FLOATS = SOURCE.astype("float32")
INVALID_SOURCES = {
    "floats": (FLOATS, r"`source_ids` must hold integers.*float32"),
    "too large": (SOURCE + 5, r"`source_ids` must lie in \[0, 11\).*5 to 13"),
    "negative": (SOURCE - 1, r"`source_ids` must lie in \[0, 11\).*-1 to 7"),
    "no rows": (SOURCE[:0], r"`source_ids` must hold at least one row"),
    "no tokens": (SOURCE[:, :0], r"`source_ids` must hold at least one row"),
    "rank 1": (SOURCE[0], r"`source_ids` must have shape \(batch, length\)"),
    "rank 3": (SOURCE[None], r"`source_ids` must have shape .*\(1, 2, 4\)"),
    "ragged": ([[5, 6, 7], [8]], r"`source_ids` must have padded rows of e"),
    "more ragged": ([[5, 6], 7], r"`source_ids` must have padded rows of e"),
    "too long": (
        np.ones((2, 7), "int32"),
        r"max_sequence_length=6 rows.*7 tokens",
    ),
    "too many rows": (SOURCE[[0, 1, 0]], r"same number of rows.*3 and 2"),
}


@pytest.fixture(scope="module")
def model():
    """A compiled model with a table of six positions."""
    model = tiny_transformer(
        position_embedding="learned", max_sequence_length=6
    )
    model.compile("sgd", SequenceCrossentropy())
    return model


@pytest.mark.parametrize("case", INVALID_SOURCES)
def test_invalid_source_ids_raise(model, case):
    source, message = INVALID_SOURCES[case]
    weights = model.get_weights()
    for call in (
        model,
        model.predict,
        model.predict_on_batch,
        lambda x: model.fit(x, LABELS, verbose=0),
        lambda x: model.fit(
            (SOURCE, TARGET), LABELS, validation_data=(x, LABELS), verbose=0
        ),
        lambda x: model.evaluate(x, LABELS, verbose=0),
        lambda x: model.train_on_batch(x, LABELS),
        lambda x: model.test_on_batch(x, LABELS),
    ):
        with pytest.raises(ValueError, match=message):
            call((source, TARGET))
    # On JAX an error inside the trainer would leave the model without weights.
    for before, after in zip(weights, model.get_weights(), strict=True):
        np.testing.assert_array_equal(before, after)


class Pairs(keras.utils.PyDataset):
    """One batch of `SOURCE`, `TARGET` and `LABELS`."""

    def __len__(self):
        return 1

    def __getitem__(self, index):
        return (SOURCE, TARGET), LABELS


def test_class_weight_of_token_labels_raises(model):
    inputs, weight = (SOURCE, TARGET), {2: 5.0}
    defaults = None, 1, 0, None, 0.0, None, True
    for call in (
        lambda: model.fit(inputs, LABELS, class_weight=weight, verbose=0),
        lambda: model.fit(inputs, LABELS.tolist(), class_weight=weight),
        lambda: model.fit(inputs, LABELS, *defaults, weight),
        lambda: model.fit(Pairs(), class_weight=weight, verbose=0),
        lambda: model.train_on_batch(inputs, LABELS, class_weight=weight),
        lambda: model.train_on_batch(inputs, LABELS, None, weight),
        lambda: model.evaluate(inputs, LABELS, class_weight=weight),
        lambda: model.test_on_batch(inputs, LABELS, class_weight=weight),
    ):
        with pytest.raises(
            ValueError, match=r"`SequenceCrossentropy\(class_weight=...\)`"
        ) as info:
            call()
        assert str(info.value).startswith("`class_weight` must be")


@pytest.mark.one_backend("tensorflow")
def test_class_weight_of_token_labels_of_a_dataset_raises(model):
    tf = pytest.importorskip("tensorflow")
    data = ((SOURCE, TARGET), LABELS)
    data = tf.data.Dataset.from_tensor_slices(data).batch(2)
    with pytest.raises(ValueError, match=r"labels of shape \(None, 3\)"):
        model.fit(data, class_weight={2: 5.0}, verbose=0)


class Classifier(CheckedModel):
    """Logits of three classes from ids (B, T)."""

    def __init__(self):
        super().__init__()
        self.embedding = keras.layers.Embedding(5, 3)

    def build(self, input_shape):
        self.embedding.build(input_shape)

    def call(self, ids):
        return keras.ops.mean(self.embedding(ids), axis=1)


@pytest.mark.parametrize(
    "form, loss",
    [
        ("(B,)", keras.losses.SparseCategoricalCrossentropy(from_logits=True)),
        *once(
            [
                (
                    "(B, 1)",
                    keras.losses.SparseCategoricalCrossentropy(
                        from_logits=True
                    ),
                ),
                (
                    "one-hot",
                    keras.losses.CategoricalCrossentropy(from_logits=True),
                ),
            ]
        ),
    ],
)
def test_class_weight_of_labels_per_row(form, loss):
    ids = np.arange(12).reshape(3, 4) % 5
    labels = np.array([2, 0, 1])
    weight = {2: 5.0, 0: 0.5}
    model = Classifier()
    model.build(ids.shape)
    model.compile(keras.optimizers.SGD(0.0), loss)
    y = {
        "(B,)": labels,
        "(B, 1)": labels[:, None],
        "one-hot": np.eye(3, dtype="int32")[labels],
    }[form]
    z = keras.ops.convert_to_numpy(model(ids)).astype("float64")
    log_p = z - np.log(np.exp(z).sum(-1, keepdims=True))
    expected = -log_p[np.arange(3), labels] @ [5.0, 0.5, 1.0] / 3
    history = model.fit(ids, y, class_weight=weight, verbose=0)
    np.testing.assert_allclose(history.history["loss"], [expected], rtol=1e-5)
    found = model.train_on_batch(ids, y, class_weight=weight)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_failed_steps_keep_the_weights(model):
    inputs = (SOURCE, TARGET)
    wrong = LABELS[:, :2]
    before = model.get_weights()
    expected = model.predict_on_batch(inputs)
    for call in (
        lambda: model.fit(inputs, wrong, verbose=0),
        lambda: model.fit(inputs, wrong, verbose=0),
        lambda: model.evaluate(inputs, wrong, verbose=0),
        lambda: model.train_on_batch(inputs, wrong),
        lambda: model.test_on_batch(inputs, wrong),
        lambda: model.fit(
            inputs, LABELS, validation_data=(inputs, wrong), verbose=0
        ),
    ):
        with pytest.raises(ValueError, match="`y_true` must have the shape"):
            call()
        assert all(v.value is not None for v in model.variables)
    # The last call trained for one epoch.
    assert any(map(np.any, map(np.subtract, model.get_weights(), before)))
    model.set_weights(before)
    np.testing.assert_array_equal(model.predict_on_batch(inputs), expected)


class Interrupted(Exception):
    """Raised by data and callbacks of a test."""


def interrupted(batch, count):
    """Yields `count` batches, then raises."""
    for _ in range(count):
        yield batch
    raise Interrupted("after two batches")


class Interrupting(keras.callbacks.Callback):
    """Raises in every method for the end of the second batch."""

    def on_train_batch_end(self, batch, logs=None):
        """Raises if two batches are done."""
        if batch:
            raise Interrupted("after two batches")

    on_test_batch_end = on_predict_batch_end = on_train_batch_end


def call_interrupted(model, name, x, y, by_callback):
    """Calls a method of a model that is interrupted after two batches."""
    options = {"verbose": 0}
    if name == "fit":
        options["shuffle"] = False
    data = (x,) if name == "predict" else (x, y)
    if by_callback:
        options |= {"batch_size": 1, "callbacks": [Interrupting()]}
    else:
        steps = "steps_per_epoch" if name == "fit" else "steps"
        data, options = (interrupted(data, 2),), options | {steps: 4}
    getattr(model, name)(*data, **options)


@pytest.mark.parametrize("by_callback", [False, True])
def test_interrupted_steps_keep_the_weights(model, by_callback):
    inputs = (SOURCE, TARGET)
    before = model.get_weights()
    expected = model.predict_on_batch(inputs)
    rows = [slice(0, 1), slice(1, 2)] if by_callback else [slice(2)] * 2
    for part in rows:
        model.train_on_batch((SOURCE[part], TARGET[part]), LABELS[part])
    after_two = model.get_weights()
    # The second time, nothing is built or traced.
    for name in ("fit", "evaluate", "predict") * 2:
        model.set_weights(before)
        # TensorFlow wraps an exception of a generator.
        with pytest.raises(Exception, match="after two batches"):
            call_interrupted(model, name, inputs, LABELS, by_callback)
        kept = after_two if name == "fit" else before
        for found, right in zip(model.get_weights(), kept, strict=True):
            np.testing.assert_allclose(found, right, atol=1e-6)
    model.set_weights(before)
    np.testing.assert_array_equal(model.predict_on_batch(inputs), expected)
    model.fit(inputs, LABELS, verbose=0)
    model.set_weights(before)


def test_invalid_target_ids_raise(model):
    with pytest.raises(ValueError, match=r"`target_ids` must lie in"):
        model((SOURCE, TARGET + 5))
    with pytest.raises(ValueError, match=r"`target_ids` must hold integers"):
        model((SOURCE, TARGET.astype("float16")))
    for inputs in (SOURCE, (SOURCE,), {"source_ids": SOURCE}):
        with pytest.raises(ValueError, match=r"`inputs` must be a pair"):
            model(inputs)
    two = tiny_transformer(target_vocabulary_size=13)
    two((SOURCE, np.full_like(TARGET, 12)))
    with pytest.raises(ValueError, match=r"`source_ids` must lie in \[0, 11"):
        two((np.full_like(SOURCE, 12), TARGET))


def test_float_ids_raise_before_autocast():
    model = tiny_transformer(dtype="mixed_float16")
    with pytest.raises(ValueError, match=r"integers.*of dtype float32"):
        model((FLOATS, TARGET))
    with pytest.raises(ValueError, match=r"integers.*of dtype float32"):
        model((keras.ops.convert_to_tensor(FLOATS), TARGET))


def test_tensors_and_lists_are_checked(model):
    model((SOURCE.tolist(), TARGET.tolist()))
    model((SOURCE.astype("int64"), TARGET.astype("uint8")))
    with pytest.raises(ValueError, match=r"\[0, 11\).*5 to 13"):
        model((keras.ops.convert_to_tensor(SOURCE + 5), TARGET))
    with pytest.raises(ValueError, match=r"\[0, 11\).*5 to 13"):
        model(((SOURCE + 5).tolist(), TARGET))


@pytest.mark.parametrize(
    "source, message",
    [
        (FLOATS, r"`inputs` must hold integers"),
        (SOURCE + 5, r"`inputs` must lie in \[0, 11\)"),
        (SOURCE[:0], r"`inputs` must hold at least one row"),
        (SOURCE[0], r"`inputs` must have shape \(batch, length\)"),
        ([[5, 6, 7], [11]], r"`inputs` must lie in \[0, 11\)"),
        (
            np.ones((2, 7), "int32"),
            r"`inputs` must not exceed .*max_sequence_length=6.*7",
        ),
    ],
)
def test_generate_raises_on_invalid_ids(model, source, message):
    with pytest.raises(ValueError, match=message):
        model.generate(source, max_new_tokens=3)


def test_generate_raises_past_the_position_table(model):
    with pytest.raises(
        ValueError, match=r"`max_new_tokens` must not exceed .*=6.*7"
    ):
        model.generate(SOURCE, max_new_tokens=7)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"num_layers": 0}, r"`num_layers`"),
        ({"num_heads": 3}, r"`num_heads` must divide `hidden_dim`.*3.*8"),
        ({"hidden_dim": 2.0}, r"`hidden_dim`"),
        ({"intermediate_dim": 0}, r"`intermediate_dim`"),
        ({"dropout": 1.0}, r"`dropout`"),
        ({"attention_dropout": -0.1}, r"`attention_dropout`"),
        (
            {"position_embedding": "rotary"},
            r"`position_embedding` must be one of",
        ),
        (
            {"position_embedding_layout": "thirds"},
            r"`position_embedding_layout` must be one of",
        ),
        ({"num_decoder_layers": 0}, r"`num_decoder_layers`"),
        ({"num_decoder_heads": 0}, r"`num_decoder_heads`"),
        ({"num_decoder_heads": 3}, r"`num_decoder_heads` must divide .* 8 f"),
        (
            {"num_decoder_heads": 1, "num_key_value_heads": 2},
            r"`num_decoder_heads` must be a multiple of .*=1, .*=2$",
        ),
        ({"decoder_intermediate_dim": 0}, r"`decoder_intermediate_dim`"),
        (
            {"position_embedding": "learned"},
            r"`max_sequence_length` must be given",
        ),
        ({"hidden_dim": 9, "num_heads": 3}, r"`hidden_dim` must be even"),
        ({"source_vocabulary_size": "x"}, r"`source_vocabulary_size`"),
        ({"target_vocabulary_size": 0}, r"`target_vocabulary_size`"),
        ({"max_sequence_length": -1}, r"`max_sequence_length`"),
        ({"pad_id": -100}, r"`pad_id` must lie in \[0, 11\).*-100"),
        ({"end_id": 11}, r"`end_id` must lie in \[0, 11\).*11"),
        (
            {"target_vocabulary_size": 5, "start_id": 5},
            r"`start_id` must lie in \[0, 5\).*5",
        ),
    ],
)
def test_invalid_arguments_raise(arguments, message):
    sizes = {
        "source_vocabulary_size": SIZE,
        "num_layers": 1,
        "num_heads": 2,
        "hidden_dim": 8,
    }
    with pytest.raises(ValueError, match=message):
        Transformer(**(sizes | arguments))


def test_check_ids_accepts_symbolic_tensors():
    symbolic = keras.Input((None,), dtype="int32")
    assert check_ids("ids", symbolic, 5) is symbolic
    with pytest.raises(ValueError, match=r"`ids` must hold integers"):
        check_ids("ids", keras.Input((None,)), 5)


@pytest.mark.one_backend
@pytest.mark.parametrize(
    "kind", [models.GPT, models.TransformerXL, models.XLNet]
)
@pytest.mark.parametrize("name", ["start_id", "end_id"])
def test_prompts_may_not_be_padded_with_a_special_id(kind, name):
    with pytest.raises(ValueError, match=f"`pad_id` must differ from `{name}`"):
        kind(9, num_layers=1, num_heads=1, hidden_dim=4, pad_id=3, **{name: 3})


@pytest.mark.one_backend
def test_sources_may_not_be_padded_with_the_end_id():
    for make in (
        lambda **ids: models.Transformer(
            9, num_layers=1, num_heads=1, hidden_dim=4, **ids
        ),
        lambda **ids: models.RecurrentSeq2Seq(9, hidden_dim=4, **ids),
    ):
        make(pad_id=3, start_id=3)
        with pytest.raises(ValueError, match="`pad_id` must differ from `end_"):
            make(pad_id=3, end_id=3)
