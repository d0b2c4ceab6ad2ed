"""RecurrentSeq2Seq against PyTorch, decoding, training and saving."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.decoding import BeamSearch, Sampling
from keras_attn.explain import doctor
from keras_attn.layers import ScoredAttention
from keras_attn.models import RecurrentSeq2Seq
from keras_attn.training import SequenceCrossentropy
from tests.helpers.arrays import to_numpy
from tests.helpers.cases import once
from tests.helpers.contract import randomize
from tests.helpers.tiny_models import LABELS, SOURCE, TARGET
from tests.helpers.weight_gradients import layer_gradients
from tests.models.torch_recurrent import TorchRecurrent

torch = pytest.importorskip("torch")

FORMS = {
    "additive": {},
    "no attention": {"attention": None, "num_layers": 2},
    "from both ends": {"bidirectional": True, "cell": "gru"},
    "feeding": {
        "input_feeding": True,
        "bidirectional": True,
        "num_layers": 2,
        "attention": "general",
    },
    "feeding a GRU": {
        "input_feeding": True,
        "cell": "gru",
        "attention": "dot",
        "target_vocabulary_size": 13,
    },
    "sampling": {"scheduled_sampling": 0.5},
}
every_form = pytest.mark.parametrize("form", FORMS)
KINDS = ["no attention", "from both ends", "feeding"]
every_kind = pytest.mark.parametrize(
    "form", [*KINDS, *once(form for form in FORMS if form not in KINDS)]
)
STRATEGIES = {
    "greedy": "greedy",
    "beam": BeamSearch(num_beams=3, num_return_sequences=3, length_penalty=0.0),
    "sample": Sampling(temperature=1.5, seed=3),
}


def tiny_recurrent(random=True, **kwargs):
    model = RecurrentSeq2Seq(11, **({"hidden_dim": 8, "dropout": 0.0} | kwargs))
    probability = kwargs.get("scheduled_sampling")
    if random:
        # This overwrites the sampling probability too.
        randomize(model, scale=0.6)
        if probability is not None:
            model.sampling_probability.assign(probability)
    return model


def without_padding(row):
    return [int(token) for token in row if token]


def expected_of(twin):
    """Returns the logits of both rows and the mean loss of their tokens."""
    logits = [
        twin(without_padding(source), without_padding(target))[0]
        for source, target in zip(SOURCE, TARGET, strict=True)
    ]
    labels = [label for row in LABELS for label in without_padding(row)]
    loss = torch.nn.functional.cross_entropy(
        torch.cat(logits), torch.tensor(labels)
    )
    return [x.detach().numpy() for x in logits], loss


@pytest.mark.every_backend
@every_form
def test_equals_torch(form):
    model = tiny_recurrent(**FORMS[form])
    twin = TorchRecurrent(model)
    expected, loss = expected_of(twin)
    loss.backward()
    found = to_numpy(model((SOURCE, TARGET)))
    for row, logits in zip(found, expected, strict=True):
        np.testing.assert_allclose(row[: len(logits)], logits, atol=1e-5)
    measure = SequenceCrossentropy()
    _, gradients = layer_gradients(
        model, lambda: measure(LABELS, model((SOURCE, TARGET)))
    )
    np.testing.assert_allclose(
        float(measure(LABELS, found)), loss.item(), rtol=1e-5
    )
    assert set(gradients) == set(twin.gradients())
    for name, gradient in twin.gradients().items():
        np.testing.assert_allclose(
            gradients[name], gradient, atol=1e-5, err_msg=name
        )


@pytest.mark.every_backend
@every_kind
def test_decode_steps_equal_full_pass(form):
    model = tiny_recurrent(**FORMS[form])
    state = model.start_decoding(ops.convert_to_tensor(SOURCE), 3)
    steps = []
    for position in range(3):
        token = ops.convert_to_tensor(TARGET[:, position : position + 1])
        logits, state = model.decode_step(token, state)
        steps.append(to_numpy(logits)[:, 0])
    np.testing.assert_allclose(
        np.stack(steps, 1), to_numpy(model((SOURCE, TARGET))), atol=1e-5
    )


# Each form and each strategy on all backends, all combinations on one.
SEARCHED = [(form, strategy) for form in FORMS for strategy in STRATEGIES]
SEARCHED_EVERYWHERE = [
    ("additive", "greedy"),
    ("no attention", "sample"),
    ("from both ends", "beam"),
    ("feeding", "sample"),
    ("feeding a GRU", "beam"),
    ("sampling", "greedy"),
]


@pytest.mark.every_backend
@pytest.mark.parametrize(
    "form, strategy",
    [
        *SEARCHED_EVERYWHERE,
        *once(pair for pair in SEARCHED if pair not in SEARCHED_EVERYWHERE),
    ],
)
def test_scores_equal_teacher_forced_pass(form, strategy):
    model = tiny_recurrent(**FORMS[form])
    twin = TorchRecurrent(model)
    decoded = model.generate(
        SOURCE,
        max_new_tokens=5,
        strategy=STRATEGIES[strategy],
        return_weights=model.attention is not None,
    )
    for row, count in np.ndindex(decoded.lengths.shape):
        length = decoded.lengths[row, count]
        tokens = decoded.tokens[row, count, :length].tolist()
        source = without_padding(SOURCE[row])
        logits, weights = twin(source, [model.start_id, *tokens[:-1]])
        log_probs = torch.log_softmax(logits, -1)
        score = sum(log_probs[i, token] for i, token in enumerate(tokens))
        np.testing.assert_allclose(
            decoded.scores[row, count], score.item(), atol=1e-4
        )
        if strategy == "greedy":
            allowed = log_probs.detach().numpy()
            allowed[:, [model.pad_id, model.start_id]] = -np.inf
            assert tokens == allowed.argmax(-1).tolist()
        if weights is None:
            continue
        found = decoded.weights[row, count, 0, 0]
        np.testing.assert_allclose(
            found[:length, : len(source)], weights.detach(), atol=1e-5
        )
        assert not found[length:].any()
        assert not found[:, len(source) :].any()


@pytest.mark.parametrize(
    "form, strategy",
    [
        ("feeding", "beam"),
        ("no attention", "sample"),
        *once([("feeding", "sample"), ("no attention", "beam")]),
    ],
)
def test_results_do_not_depend_on_other_rows(form, strategy):
    model = tiny_recurrent(**FORMS[form])
    strategy = STRATEGIES[strategy]
    both = model.generate(SOURCE, max_new_tokens=5, strategy=strategy)
    # The first row, because random numbers depend on the row index.
    alone = model.generate([[5, 6, 7, 2]], max_new_tokens=5, strategy=strategy)
    np.testing.assert_array_equal(alone.tokens[0], both.tokens[0])
    np.testing.assert_allclose(alone.scores[0], both.scores[0], atol=1e-5)


def test_wide_beam_finds_the_optimum():
    """Exhaustive search over two tokens, or one end token."""
    model = tiny_recurrent(**FORMS["feeding"])
    twin = TorchRecurrent(model)
    found = model.generate(
        SOURCE,
        max_new_tokens=2,
        strategy=BeamSearch(
            num_beams=121, num_return_sequences=1, length_penalty=0.0
        ),
    )
    for row in range(2):
        source, scores = without_padding(SOURCE[row]), {}
        for first in range(2, 11):
            logits, _ = twin(source, [1, first])
            log_probs = torch.log_softmax(logits, -1).detach().numpy()
            if first == model.end_id:
                scores[first,] = log_probs[0, first]
                continue
            for second in range(2, 11):
                total = log_probs[0, first] + log_probs[1, second]
                scores[first, second] = total
        best = max(scores, key=scores.get)
        length = found.lengths[row, 0]
        assert tuple(found.tokens[row, 0, :length].tolist()) == best
        np.testing.assert_allclose(
            found.scores[row, 0], scores[best], atol=1e-5
        )


def test_return_weights_without_attention_raises():
    model = tiny_recurrent(attention=None)
    with pytest.raises(ValueError, match="needs a model with attention"):
        model.generate(SOURCE, max_new_tokens=3, return_weights=True)


def test_sampling_probability_zero_is_teacher_forcing():
    model = tiny_recurrent(scheduled_sampling=0.0)
    np.testing.assert_allclose(
        to_numpy(model((SOURCE, TARGET), training=True)),
        to_numpy(model((SOURCE, TARGET), training=False)),
        atol=1e-6,
    )


def test_sampling_probability_one_reads_own_tokens():
    """With near one-hot probabilities, samples equal greedy tokens."""
    model = tiny_recurrent(scheduled_sampling=1.0, attention="general")
    kernel = model._decoder._output_dense.kernel
    kernel.assign(kernel * 3000.0)
    target = np.array([[1, 9, 4, 4], [1, 7, 5, 5]], "int32")
    sampled = to_numpy(model((SOURCE, target), training=True))
    read = np.concatenate([target[:, :1], sampled.argmax(-1)[:, :-1]], 1)
    np.testing.assert_allclose(
        sampled, to_numpy(model((SOURCE, read))), rtol=1e-4, atol=0.1
    )
    assert (read != target).any()


def test_samples_have_the_probabilities_of_the_model():
    """The second token of every row is sampled by the model."""
    model = tiny_recurrent(scheduled_sampling=1.0, attention=None)
    rows = 4000
    source = np.repeat(SOURCE[:1], rows, axis=0)
    target = np.repeat([[1, 9]], rows, axis=0).astype("int32")
    logits = to_numpy(model((source, target), training=True))
    first, second = logits[:, 0], logits[:, 1]
    probabilities = np.exp(first[0]) / np.exp(first[0]).sum()
    # The logits of the second step identify the token it read.
    all_tokens = np.stack(
        [np.ones(11, "int32"), np.arange(11, dtype="int32")], 1
    )
    logits_by_token = to_numpy(
        model((np.repeat(SOURCE[:1], 11, axis=0), all_tokens))
    )[:, 1]
    distance = np.abs(second[:, None] - logits_by_token[None]).max(-1)
    assert distance.min(-1).max() < 1e-4
    counts = np.bincount(distance.argmin(-1), minlength=11) / rows
    np.testing.assert_allclose(counts, probabilities, atol=0.03)


def test_callback_changes_sampling_probability():
    model = tiny_recurrent(scheduled_sampling=0.0, attention="general")
    kernel = model._decoder._output_dense.kernel
    kernel.assign(kernel * 100.0)
    model.compile(keras.optimizers.SGD(0.0), SequenceCrossentropy())
    expected = model.evaluate((SOURCE, TARGET), LABELS, verbose=0)
    callback = keras.callbacks.LambdaCallback(
        on_epoch_begin=lambda epoch, logs: model.sampling_probability.assign(
            float(epoch)
        )
    )
    history = model.fit(
        (SOURCE, TARGET), LABELS, epochs=2, callbacks=[callback], verbose=0
    )
    forced, sampled = history.history["loss"]
    np.testing.assert_allclose(forced, expected, rtol=1e-4)
    assert abs(sampled - forced) > 0.1 * abs(forced)
    assert float(ops.convert_to_numpy(model.sampling_probability)) == 1.0


@every_kind
def test_file_round_trip(form, tmp_path):
    model = tiny_recurrent(**FORMS[form])
    paths = [variable.path for variable in model.variables]
    before = to_numpy(model((SOURCE, TARGET)))
    assert [variable.path for variable in model.variables] == paths
    assert len(set(paths)) == len(paths)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.get_config() == model.get_config()
    np.testing.assert_array_equal(to_numpy(loaded((SOURCE, TARGET))), before)


@every_kind
def test_file_loads_when_ids_of_freed_objects_return(
    form, tmp_path, monkeypatch
):
    model = tiny_recurrent(**FORMS[form])
    model.save(tmp_path / "model.keras")
    # Keras takes objects that it serializes while it loads a file for the same
    # one if their ids are equal. Here, all are.
    monkeypatch.setattr(
        "keras.src.saving.serialization_lib.id", lambda _: 1, raising=False
    )
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(
        to_numpy(loaded((SOURCE, TARGET))), to_numpy(model((SOURCE, TARGET)))
    )


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_reads_both_directions_as_keras_does(cell):
    model = tiny_recurrent(bidirectional=True, cell=cell)
    (ours,) = (x for x in model.layers if x.name == "encoder_0")
    layer = {"lstm": keras.layers.LSTM, "gru": keras.layers.GRU}[cell]
    theirs = keras.layers.Bidirectional(
        layer(4, return_sequences=True, return_state=True, name="encoder_0"),
        name="encoder_0",
    )
    theirs.build((None, None, 8))
    assert [x.path for x in ours.weights] == [x.path for x in theirs.weights]
    theirs.set_weights(ours.get_weights())
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3, 5, 8)).astype("float32")
    mask = np.arange(5) < np.array([[5], [3], [1]])
    for found, expected in zip(
        ours(x, mask=mask), theirs(x, mask=mask), strict=True
    ):
        np.testing.assert_allclose(
            to_numpy(found), to_numpy(expected), atol=1e-6
        )


def test_custom_attention_layer(tmp_path):
    attention = ScoredAttention("general", local="monotonic", window=1)
    model = tiny_recurrent(attention=attention)
    found = model.generate(
        SOURCE, max_new_tokens=4, return_weights=True
    ).weights
    far = np.abs(np.arange(4)[:, None] - np.arange(4)) > 1
    assert not found[0, 0, 0, 0][far].any()
    assert found[0, 0, 0, 0][~far].all()
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.attention.local == "monotonic"
    np.testing.assert_array_equal(
        to_numpy(loaded((SOURCE, TARGET))), to_numpy(model((SOURCE, TARGET)))
    )


def test_location_score_needs_max_sequence_length():
    model = tiny_recurrent(attention="location", max_sequence_length=6)
    assert model.generate(SOURCE, max_new_tokens=4).tokens.shape == (2, 1, 4)
    with pytest.raises(ValueError, match="`max_sequence_length` must be given"):
        tiny_recurrent(attention="location")


@pytest.mark.one_backend
def test_doctor_finds_no_leak():
    assert doctor(tiny_recurrent(**FORMS["feeding"]), (SOURCE, TARGET))


@pytest.mark.one_backend("tensorflow")
@pytest.mark.parametrize("form", ["feeding", "sampling"])
def test_fit_learns_to_reverse_a_sequence(form):
    rng = np.random.default_rng(0)
    source = rng.integers(3, 11, (256, 4)).astype("int32")
    source[::2, 3] = 0
    labels = np.where(source[:, 3:] > 0, source[:, ::-1], 0)
    labels[::2, :3] = source[::2, 2::-1]
    target = np.concatenate([np.ones((256, 1), "int32"), labels[:, :-1]], 1)
    options = FORMS[form] | {"hidden_dim": 24, "dropout": 0.05, "num_layers": 1}
    model = tiny_recurrent(random=False, **options)
    if form == "sampling":
        model.sampling_probability.assign(0.1)
    model.compile(keras.optimizers.Adam(0.02), SequenceCrossentropy())
    history = model.fit(
        (source, target), labels, epochs=12, batch_size=16, verbose=0
    )
    assert history.history["loss"][-1] < 0.5
    assert history.history["loss"][-1] < 0.3 * history.history["loss"][0]


@pytest.mark.parametrize(
    "dtype, form",
    [
        ("mixed_float16", "feeding a GRU"),
        *once([("mixed_bfloat16", "no attention")]),
    ],
)
def test_mixed_precision_with_fully_padded_rows(dtype, form):
    model = tiny_recurrent(random=False, dtype=dtype, **FORMS[form])
    model.compile("adam", SequenceCrossentropy())
    source, target, labels = (x.copy() for x in (SOURCE, TARGET, LABELS))
    source[1] = labels[1] = 0
    loss = model.fit((source, target), labels, verbose=0).history["loss"]
    assert np.isfinite(loss).all()
    assert all(np.isfinite(to_numpy(w)).all() for w in model.trainable_weights)
    assert model.generate(SOURCE, max_new_tokens=3).tokens.shape == (2, 1, 3)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"cell": "rnn"}, "`cell` must be one of"),
        ({"hidden_dim": 7, "bidirectional": True}, "`hidden_dim` must be even"),
        ({"attention": "best"}, "`attention` must be one of"),
        ({"attention": 3}, "`attention` must be the name of a score"),
        (
            {"attention": None, "input_feeding": True},
            "`input_feeding` needs attention",
        ),
        ({"scheduled_sampling": 1.5}, r"`scheduled_sampling` must lie in"),
        ({"end_id": 11}, r"`end_id` must lie in \[0, 11\)"),
        (
            {"attention": ScoredAttention(hard="reinforce")},
            "`attention` must be differentiable",
        ),
        (
            {"attention": ScoredAttention(dropout=0.1), "input_feeding": True},
            "`attention` must be deterministic",
        ),
    ],
)
def test_invalid_arguments_raise(change, message):
    with pytest.raises(ValueError, match=message):
        tiny_recurrent(**change)


@pytest.mark.parametrize(
    "inputs, message",
    [
        (SOURCE, "`inputs` must be a pair"),
        ((SOURCE, TARGET[:1]), "the same number of rows"),
        ((SOURCE + 9, TARGET), r"`source_ids` must lie in \[0, 11\)"),
    ],
)
def test_invalid_inputs_raise(inputs, message):
    model = tiny_recurrent()
    with pytest.raises(ValueError, match=message):
        model(inputs)
