"""XLNet: visibility under permutations, memory, generation and training."""

import itertools

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.decoding import BeamSearch
from keras_attn.models import (
    Bert,
    SequenceClassifier,
    SpanExtractor,
    TokenClassifier,
    XLNet,
    segment_memory,
)
from keras_attn.text import permute_tokens
from keras_attn.training import SequenceCrossentropy, enable_lora, freeze
from tests.helpers.cases import once
from tests.helpers.contract import randomize
from tests.helpers.ops_cases import assert_close, assert_differs, values

SIZE = 11
IDS = np.random.default_rng(1).integers(3, SIZE, (2, 6)).astype("int32")
ORDER = np.int32([[3, 0, 5, 1, 4, 2], [0, 1, 2, 3, 4, 5]])
EVERY = np.int32([range(6), range(6)])
PROMPTS = [[7, 8, 9], [5], [3, 4, 5, 6, 7, 8]]
FORMS = {"post-norm": {}, "pre-norm": {"normalize_first": True}}
every_form = pytest.mark.parametrize("form", ["post-norm", *once(["pre-norm"])])


def tiny(form="post-norm", size=SIZE, **kwargs):
    settings = {
        "num_layers": 2,
        "num_heads": 2,
        "hidden_dim": 8,
        "dropout": 0.0,
        "attention_dropout": 0.0,
    }
    model = XLNet(size, **(settings | FORMS[form] | kwargs))
    randomize(model)
    for variable in model.weights:
        if variable.path.endswith(("gamma", "beta")):
            variable.assign(np.full(variable.shape, "gamma" in variable.path))
    return model


def predict(model, ids, order=ORDER, **more):
    """Returns the query-stream logits of every token."""
    inputs = {"token_ids": ids, "order": order, "target_positions": EVERY}
    inputs = {name: np.asarray(x)[: len(ids)] for name, x in inputs.items()}
    return values(model(inputs | more))


def log_softmax(logits):
    top = logits.max(axis=-1, keepdims=True)
    return logits - top - np.log(np.exp(logits - top).sum(-1, keepdims=True))


@every_form
def test_a_token_only_changes_predictions_after_it_in_the_order(form):
    model = tiny(form)
    before = predict(model, IDS)
    for row, position in itertools.product(range(2), range(6)):
        changed = IDS.copy()
        changed[row, position] = 3 + (changed[row, position] - 2) % (SIZE - 3)
        assert changed[row, position] != IDS[row, position]
        change = np.abs(predict(model, changed) - before).max(-1)
        later = ORDER[row] > ORDER[row, position]
        np.testing.assert_array_equal(change[row] > 1e-5, later)
        assert (change[1 - row] == 0).all()
        # A token never affects its own prediction.
        assert change[row, position] == 0


def test_content_stream_sees_itself_and_earlier_steps():
    model = tiny()
    inputs = {"token_ids": IDS, "order": ORDER}
    before = values(model(inputs))
    for position in range(6):
        changed = IDS.copy()
        changed[0, position] = 3 + (changed[0, position] - 2) % (SIZE - 3)
        after = values(model(inputs | {"token_ids": changed}))
        affected = np.abs(after - before).max(-1)[0] > 1e-5
        np.testing.assert_array_equal(affected, ORDER[0] >= ORDER[0, position])


def test_predictions_depend_on_position():
    """Queries that see the same tokens differ by their position."""
    model = tiny()
    found = predict(model, IDS, np.zeros_like(ORDER))
    # No token is visible, so there are no distances and all predictions agree.
    assert np.ptp(found, axis=1).max() < 1e-5
    order = np.int32([[0, 0, 1, 1, 1, 1]] * 2)
    found = predict(model, IDS, order)[:, 2:]
    gaps = np.abs(found[:, :, None] - found[:, None]).max(-1)
    assert (gaps[:, ~np.eye(4, dtype="bool")] > 1e-4).all()


def test_order_equals_permutation_mask():
    model = tiny()
    mask = ORDER[:, :, None] > ORDER[:, None]
    mapping = np.tile(np.eye(6, dtype="float32"), (2, 1, 1))
    inputs = {"token_ids": IDS, "permutation_mask": mask}
    found = values(model(inputs | {"target_mapping": mapping}))
    assert_close(found, predict(model, IDS))
    # Some targets, in another order, with one unused.
    targets = np.int32([[4, 2, -1], [0, 5, 3]])
    expected = values(
        model({"token_ids": IDS, "order": ORDER, "target_positions": targets})
    )
    taken = np.take_along_axis(found, np.maximum(targets, 0)[..., None], axis=1)
    assert_close(expected[targets >= 0], taken[targets >= 0])
    mapping = (targets[..., None] == np.arange(6)).astype("int32")
    assert_close(values(model(inputs | {"target_mapping": mapping})), expected)


def test_integer_inputs_of_any_width():
    """NumPy integers have 64 bits by default."""
    model = tiny()
    inputs = {
        "token_ids": IDS,
        "order": ORDER,
        "target_positions": EVERY,
        "segment_ids": np.ones_like(IDS),
    }
    inputs = {name: np.asarray(x)[:2] for name, x in inputs.items()}
    wide = {name: x.astype("int64") for name, x in inputs.items()}
    assert_close(values(model(wide)), values(model(inputs)))
    short = {name: inputs[name] for name in ("token_ids", "segment_ids")}
    wide = {name: wide[name] for name in short}
    for found, expected in zip(
        model.encode(wide), model.encode(short), strict=True
    ):
        assert_close(values(found), values(expected))


def test_every_order_gives_a_distribution():
    """The probabilities of all texts of five tokens sum to one."""
    size, length = 3, 5
    model = tiny(size=size, pad_id=None, start_id=None, end_id=None)
    texts = np.int32(list(itertools.product(range(size), repeat=length)))
    orders = np.int32(list(itertools.permutations(range(length))))
    assert orders.shape == (120, 5) and texts.shape == (243, 5)
    probabilities = []
    for some in np.split(orders, 10):
        ids = np.tile(texts, (len(some), 1))
        logits = values(
            model(
                {
                    "token_ids": ids,
                    "order": np.repeat(some, len(texts), axis=0),
                    "target_positions": np.tile(
                        np.arange(length, dtype="int32"), (len(ids), 1)
                    ),
                }
            )
        )
        picked = np.take_along_axis(
            log_softmax(logits.astype("float64")), ids[..., None], axis=-1
        )
        products = np.exp(picked.sum(axis=(1, 2)))
        probabilities.extend(products.reshape(len(some), len(texts)))
    np.testing.assert_allclose(np.sum(probabilities, axis=1), 1.0, atol=1e-5)
    # In an untrained model they depend on the order.
    assert_differs(probabilities[0], probabilities[1], 1e-6)


@every_form
def test_padding_does_not_change_predictions(form):
    model = tiny(form)
    ids, order = IDS[:1, :4], np.int32([[2, 0, 1, 3]])
    alone = predict(model, ids, order, target_positions=EVERY[:1, :4])
    for side in ("left", "right"):
        pad = (2, 0) if side == "left" else (0, 2)
        wide = np.pad(ids, ((0, 0), pad))
        at = np.arange(4)[None] + pad[0]
        found = predict(
            model,
            wide,
            np.pad(order, ((0, 0), pad)),
            target_positions=at.astype("int32"),
        )
        assert_close(found, alone)


@pytest.mark.parametrize("length", [2, 3])
def test_segments_with_memory_equal_one_long_segment(length):
    model = tiny(memory_length=6)
    full = predict(model, IDS, EVERY)
    memory, found = (), []
    for start in range(0, 6, length):
        part = slice(start, start + length)
        inputs = {
            "token_ids": IDS[:, part],
            "order": EVERY[:, :length],
            "target_positions": EVERY[:, :length],
        }
        if memory:
            inputs["memory"] = memory
        logits, memory = model.advance(inputs)
        found.append(values(logits))
    assert_close(np.concatenate(found, axis=1), full)


def test_documents_do_not_attend_to_earlier_ones():
    model = tiny(memory_length=4)
    starts = np.int32([[0, 0, 1, 0, 0, 0]] * 2)
    _, memory = model.advance(IDS)
    found = predict(model, IDS, EVERY, document_starts=starts, memory=memory)
    alone = predict(
        tiny(),
        IDS[:, 2:],
        EVERY[:, :4],
        target_positions=EVERY[:, :4],
    )
    assert_close(found[:, 2:], alone)
    without = predict(model, IDS, EVERY, document_starts=starts)
    assert_differs(found[:, :2], without[:, :2])


def test_fit_carries_the_memory():
    """The memory equals that of `advance`; document starts reset it."""
    model = tiny(memory_length=4, stateful_batch_size=2)
    model.compile(keras.optimizers.SGD(0.0), SequenceCrossentropy(pad_id=-1))
    begin = np.int32([[1, 0, 0], [1, 0, 0]])
    memory = segment_memory.empty(2, 4, 2, 8)
    for starts, ids in ((begin, IDS[:, :3]), (0 * begin, IDS[:, 3:])):
        inputs = {
            "token_ids": ids,
            "document_starts": starts,
            "order": ORDER[:, :3],
            "target_positions": EVERY[:, :3],
        }
        model.train_on_batch(inputs, ids)
        _, memory = model.advance(inputs | {"memory": memory})
        carried = model._carried.read()
        for ours, theirs in zip(carried.states, memory.states, strict=True):
            token_mask = values(carried.token_mask)
            assert_close(values(ours)[token_mask], values(theirs)[token_mask])
    assert values(carried.token_mask).all()
    # A document start resets the memory.
    model.evaluate(inputs | {"document_starts": begin}, ids, verbose=0)
    assert values(model._carried.read().token_mask)[:, 0].tolist() == [
        False,
        False,
    ]


def test_bidirectional_data():
    """The second half of the batch is read as if reversed."""
    model, plain = tiny(bidirectional_data=True), tiny()
    # A single row belongs to the first half.
    alone = predict(model, IDS[:1], ORDER[:1])
    assert_close(alone, predict(plain, IDS[:1], ORDER[:1]))
    for order in (ORDER, EVERY):
        found = predict(model, IDS, order)
        assert_close(found[:1], predict(plain, IDS[:1], order[:1]))
        mirrored = predict(plain, IDS[1:, ::-1], order[1:, ::-1])
        assert_close(found[1:], mirrored[:, ::-1])


def test_segment_ids_change_predictions():
    model = tiny()
    segment_ids = np.int32([[0, 0, 0, 1, 1, 1]] * 2)
    found = predict(model, IDS, segment_ids=segment_ids)
    # Only equality of segment ids matters.
    assert_close(predict(model, IDS, segment_ids=7 - 3 * segment_ids), found)
    assert_differs(predict(model, IDS, segment_ids=0 * segment_ids), found)
    assert_differs(predict(model, IDS), found)


@pytest.mark.every_backend
@every_form
def test_decode_steps_equal_full_pass(form):
    model = tiny(form)
    # The token after the last one is predicted too.
    ids = np.pad(IDS, ((0, 0), (0, 1)), constant_values=3)
    order = np.int32([range(7)] * 2)
    inputs = {"token_ids": ids, "order": order, "target_positions": order}
    expected = values(model(inputs))
    state = model.start_decoding(ops.convert_to_tensor(IDS[:, :2]), 5)
    found = []
    for position in range(2, 7):
        logits, state = model.decode_step(state.tokens, state)
        found.append(values(logits))
        if position < 6:
            tokens = ops.convert_to_tensor(IDS[:, position : position + 1])
            state = state._replace(tokens=tokens)
    assert_close(np.concatenate(found, axis=1), expected[:, 2:])


@pytest.mark.every_backend
@pytest.mark.parametrize(
    "strategy",
    [BeamSearch(3, length_penalty=0.0), *once(["greedy", "sample"])],
)
def test_generate_equals_full_passes(strategy):
    model = tiny()
    found = model.generate(PROMPTS, max_new_tokens=5, strategy=strategy)
    for row, tokens, scores, lengths in zip(
        PROMPTS, found.tokens, found.scores, found.lengths, strict=True
    ):
        sequence = tokens[0, : lengths[0]].tolist()
        ids = np.int32([[*row, *sequence]])
        positions = np.arange(ids.shape[1], dtype="int32")[None]
        logits = values(
            model(
                {
                    "token_ids": ids,
                    "order": positions,
                    "target_positions": positions[:, len(row) :],
                }
            )
        )[0]
        total = log_softmax(logits)[np.arange(len(sequence)), sequence].sum()
        if strategy == "greedy":
            allowed = logits.copy()
            allowed[:, [0, 1]] = -np.inf
            assert allowed.argmax(-1).tolist() == sequence
        assert abs(total - scores[0]) < 1e-3


@pytest.mark.one_backend("tensorflow")
def test_learns_dependencies_between_targets():
    """Two targets are always equal; BERT would predict them independently."""
    rng = np.random.default_rng(0)
    rows = rng.integers(3, 9, (512, 4)).astype("int32")
    rows[:, 2] = rows[:, 1]
    rows[:, 0], rows[:, 3] = 1, 2
    model = tiny(size=9, num_layers=1, hidden_dim=16)
    model.compile(keras.optimizers.Adam(0.01), SequenceCrossentropy(pad_id=-1))
    order = np.zeros_like(rows)
    flip = rng.random(len(rows)) < 0.5
    order[:, 1], order[:, 2] = 1 + flip, 2 - flip
    targets = np.tile(np.int32([1, 2]), (len(rows), 1))
    inputs = {"token_ids": rows, "order": order, "target_positions": targets}
    model.fit(inputs, rows[:, 1:3], epochs=25, batch_size=64, verbose=0)
    loss = model.evaluate(inputs, rows[:, 1:3], verbose=0)
    # Jointly the two tokens cost log 6, so log 6 / 2 each; independently log 6.
    assert loss < 0.5 * np.log(6) + 0.1
    independent = inputs | {"order": np.minimum(order, 1)}
    assert (
        model.evaluate(independent, rows[:, 1:3], verbose=0) > np.log(6) - 0.1
    )


@pytest.mark.one_backend("torch")
def test_pretraining_and_fine_tuning(tmp_path):
    """The second half of every text repeats the first."""
    rng = np.random.default_rng(0)
    rows = rng.integers(3, 6, (256, 6)).astype("int32")
    rows[:, 3:] = rows[:, :3]
    model = tiny(size=6, num_layers=1, hidden_dim=16)
    model.compile(keras.optimizers.Adam(0.01), SequenceCrossentropy(pad_id=-1))
    drawn = permute_tokens(rows, prediction_rate=0.4, seed=1)
    inputs = {
        "token_ids": rows,
        "order": drawn.order,
        "target_positions": drawn.target_positions,
    }
    history = model.fit(
        inputs, drawn.labels, epochs=12, batch_size=32, verbose=0
    ).history
    assert history["loss"][-1] < 0.8 * history["loss"][0]
    classifier = SequenceClassifier(model, 3, dropout=0.0)
    # Weights used only by the query stream would have no gradient.
    freeze(classifier, "query_vector$|logits_bias$")
    classifier.compile(
        keras.optimizers.Adam(0.01),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    labels = rows[:, 1] - 3
    classifier.fit(rows, labels, epochs=15, batch_size=32, verbose=0)
    found = classifier.predict(rows, verbose=0).argmax(-1)
    assert (found == labels).mean() > 0.9
    classifier.save(tmp_path / "classifier.keras")
    # Frozen flags are not saved, so the loaded optimizer would not match.
    loaded = keras.saving.load_model(
        tmp_path / "classifier.keras", compile=False
    )
    assert_close(
        loaded.predict(rows[:4], verbose=0),
        classifier.predict(rows[:4], verbose=0),
    )


@pytest.mark.parametrize("side", ["left", *once(["right"])])
def test_padding_does_not_change_heads(side):
    model = tiny()
    heads = {
        "first": SequenceClassifier(model, 3),
        "last": SequenceClassifier(model, 3, pooled_token="last"),
        "tokens": TokenClassifier(model, 3),
        "span": SpanExtractor(model, no_answer="first"),
    }
    alone = IDS[:1, :4]
    pad = (2, 0) if side == "left" else (0, 2)
    wide = np.pad(alone, ((0, 0), pad))
    token_slice = slice(pad[0], pad[0] + 4)
    outputs = {}
    for name, head in heads.items():
        randomize(head)
        expected, found = values(head(alone)), values(head(wide))
        if name == "tokens":
            found = found[:, token_slice]
        elif name == "span":
            found = found[:, :, token_slice]
        assert_close(found, expected)
        outputs[name] = expected
    assert_differs(outputs["first"], outputs["last"])
    restored = SequenceClassifier.from_config(heads["last"].get_config())
    assert restored.pooled_token == "last"


def test_invalid_encoder_usage_raises():
    with pytest.raises(ValueError, match="must not contain targets, a memory"):
        tiny().encode({"token_ids": IDS, "document_starts": np.zeros_like(IDS)})
    bert = Bert(
        SIZE, num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=8
    )
    with pytest.raises(ValueError, match="if the encoder has a pooler"):
        SequenceClassifier(bert, 2, pooled_token="last")


def test_with_memory_of_a_partly_frozen_model():
    model = tiny(memory_length=4, stateful_batch_size=2)
    freeze(model, "query_vector$")
    copy = model.with_memory(2)
    assert copy.memory_length == 2 and copy.stateful_batch_size is None
    assert_close(predict(copy, IDS), predict(model, IDS), 0)
    # Compiled calls of the copy do not affect the model.
    copy.compile(loss=SequenceCrossentropy(pad_id=-1))
    copy.evaluate(IDS, IDS, verbose=0)
    copy.predict(IDS, verbose=0)
    assert_close(predict(copy, IDS), predict(model, IDS), 0)
    # Without a memory `advance` returns (), which is a valid input.
    _, memory = model.with_memory(0).advance(IDS)
    assert memory == ()
    without = predict(model.with_memory(0), IDS, memory=memory)
    assert_close(without, predict(model, IDS), 0)
    enable_lora(model, 2, "query$")
    with pytest.raises(ValueError, match="that its constructor creates"):
        model.with_memory(2)


@every_form
def test_config_round_trip(form):
    model = tiny(
        form, bidirectional_data=True, memory_length=3, stateful_batch_size=2
    )
    restored = XLNet.from_config(model.get_config())
    restored.set_weights(model.get_weights())
    assert_close(predict(restored, IDS), predict(model, IDS), 0)
    assert (restored.stateful_batch_size, restored.output_bias) == (2, True)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"order": ORDER[:, :3]}, r"`order` must have shape \(2, 6\)"),
        ({"order": ORDER - 1}, r"`order` must lie in \[0"),
        (
            {"order": ORDER, "permutation_mask": np.ones((2, 6, 6), "bool")},
            "`order` or `permutation_mask`. Received: both",
        ),
        (
            {"permutation_mask": np.ones((2, 6, 5), "bool")},
            r"`permutation_mask` must have shape \(2, 6, 6\)",
        ),
        (
            {"order": ORDER, "target_positions": np.ones((2, 3))},
            "`target_positions` must hold integers",
        ),
        (
            {"order": ORDER, "target_positions": np.ones((3, 3), "int32")},
            r"`target_positions` must have shape \(2, 3\)",
        ),
        (
            {"order": ORDER, "target_positions": np.full((2, 3), 6)},
            r"`target_positions` must lie in \[-1, 6\)",
        ),
        ({"target_positions": EVERY}, "or a query would see its own token"),
        (
            {"target_mapping": np.ones((2, 3, 5))},
            r"`target_mapping` must have shape \(2, 3, 6\)",
        ),
        ({"segment_ids": IDS[:1]}, r"`segment_ids` must have shape \(2, 6\)"),
        ({"segments": IDS}, "must contain token_ids"),
    ],
)
def test_invalid_inputs_raise(more, message):
    with pytest.raises(ValueError, match=message):
        tiny()({"token_ids": IDS} | more)
