"""TransformerXL: segment memory, generation, training and saving."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.decoding import BeamSearch
from keras_attn.models import TransformerXL, segment_memory
from keras_attn.text import token_streams
from keras_attn.training import SequenceCrossentropy, TrainingBackup
from tests.helpers.backup_runs import KillAfter, Killed, Steps
from tests.helpers.cases import once
from tests.helpers.contract import randomize
from tests.helpers.ops_cases import assert_close, assert_differs, normal, values
from tests.helpers.weight_gradients import layer_gradients, weighted_sum

torch = pytest.importorskip("torch")

from transformers import XLNetConfig, XLNetModel

SIZE, M = 11, 4
IDS = np.random.default_rng(1).integers(3, SIZE, (2, 12)).astype("int32")
PROMPTS = [[7, 8, 9], [5], [3, 4, 5, 6, 7, 8]]
FORMS = {"post-norm": {}, "pre-norm": {"normalize_first": True}}
every_form = pytest.mark.parametrize("form", ["post-norm", *once(["pre-norm"])])


def tiny(form="post-norm", **kwargs):
    settings = {
        "num_layers": 2,
        "num_heads": 2,
        "hidden_dim": 8,
        "memory_length": M,
        "dropout": 0.0,
        "attention_dropout": 0.0,
    }
    model = TransformerXL(SIZE, **(settings | FORMS[form] | kwargs))
    randomize(model)
    for variable in model.weights:
        if variable.path.endswith(("gamma", "beta")):
            variable.assign(np.full(variable.shape, "gamma" in variable.path))
    return model


def in_segments(model, ids, length, **more):
    """Returns the logits of rows read segment by segment."""
    memory, found = (), []
    for start in range(0, ids.shape[1], length):
        part = slice(start, start + length)
        inputs = {"token_ids": ids[:, part]}
        inputs |= {name: x[:, part] for name, x in more.items()}
        if memory:
            inputs["memory"] = memory
        logits, memory = model.advance(inputs)
        found.append(values(logits))
    return np.concatenate(found, axis=1)


@every_form
@pytest.mark.parametrize("length", [5, *once([2])])
def test_segments_with_memory_equal_one_long_segment(form, length):
    model = tiny(form, memory_length=IDS.shape[1])
    full = values(model(IDS))
    assert_close(in_segments(model, IDS, length), full)
    # Without a memory they differ.
    alone = values(model(IDS[:, length:]))
    assert_differs(alone, full[:, length:])


@every_form
def test_receptive_field_grows_by_memory_per_block(form):
    """Two blocks with M tokens of memory see exactly 2 M tokens back."""
    model = tiny(form)

    def last(ids):
        return in_segments(model, ids, 1)[0, -1]

    before = last(IDS[:1])
    for back in (1, M, M + 1, 2 * M, 2 * M + 1, 2 * M + 3):
        changed = IDS[:1].copy()
        changed[0, -1 - back] = 3 + (changed[0, -1 - back] - 2) % (SIZE - 3)
        assert changed[0, -1 - back] != IDS[0, -1 - back]
        change = np.abs(last(changed) - before).max()
        assert (change > 1e-4) == (back <= 2 * M), back


def test_later_tokens_do_not_change_logits():
    model = tiny()
    full = values(model(IDS))
    for length in (1, 5):
        assert_close(values(model(IDS[:, :length])), full[:, :length])


def twin_of(model):
    """Returns a causal XLNetModel with the weights of `model`."""
    layers = len(model._blocks)
    twin = XLNetModel(
        XLNetConfig(
            vocab_size=SIZE,
            d_model=model.hidden_dim,
            n_layer=layers,
            n_head=model.num_heads,
            d_inner=model.intermediate_dim,
            ff_activation="relu",
            attn_type="uni",
            mem_len=model.memory_length,
            dropout=0.0,
            layer_norm_eps=model.epsilon,
            use_mems_eval=True,
        )
    ).eval()

    def put(parameter, array):
        assert parameter.shape == tuple(array.shape)
        parameter.data = torch.tensor(values(array))

    put(twin.word_embedding.weight, model._token_embedding.weights[0])
    for block, layer in zip(model._blocks, twin.layer, strict=True):
        attention, theirs = block._self_attention, layer.rel_attn
        for name, dense in zip(
            "qkv",
            (attention.query_dense, attention.key_dense, attention.value_dense),
            strict=True,
        ):
            put(getattr(theirs, name), dense.kernel)
        put(theirs.o, ops.transpose(attention.output_dense.kernel, (2, 0, 1)))
        put(theirs.r, block.attention_position.kernel)
        put(theirs.r_w_bias, block.attention_position.content_bias)
        put(theirs.r_r_bias, block.attention_position.distance_bias)
        norms = block._around_attention._norm, block._around_network._norm
        for norm, other in zip(
            norms, (theirs.layer_norm, layer.ff.layer_norm), strict=True
        ):
            put(other.weight, norm.gamma)
            put(other.bias, norm.beta)
        network = block._network
        for dense, other in (
            (network._inner, layer.ff.layer_1),
            (network._outer, layer.ff.layer_2),
        ):
            put(other.weight, ops.transpose(dense.kernel))
            put(other.bias, dense.bias)
    return twin


@pytest.mark.every_backend
def test_equals_transformers():
    """Compares logits and memory after every segment."""
    model = randomize(tiny(), seed=5)
    twin = twin_of(model)
    memory, mems = (), None
    for start in range(0, 12, 3):
        ids = IDS[:, start : start + 3]
        inputs = {"token_ids": ids} | ({"memory": memory} if memory else {})
        logits, memory = model.advance(inputs)
        with torch.no_grad():
            answer = twin(torch.tensor(ids, dtype=torch.long), mems=mems)
            mems = answer.mems
            expected = answer.last_hidden_state @ twin.word_embedding.weight.T
        assert_close(values(logits), expected.numpy(), 1e-4)
        count = min(start + 3, M)
        for ours, theirs in zip(memory.states, mems, strict=True):
            found = values(ours)[:, M - count :]
            assert_close(found, theirs.numpy().swapaxes(0, 1)[:, -count:], 1e-4)
    assert values(memory.token_mask).all()


def test_memory_has_no_gradient():
    model = tiny()
    upstream = normal(2, 6, SIZE, seed=3)

    def loss_with_memory(detached_memory):
        def loss():
            _, memory = model.advance(IDS[:, :6])
            passed = detached_memory if detached_memory else memory
            logits, _ = model.advance(
                {"token_ids": IDS[:, 6:], "memory": passed}
            )
            return weighted_sum(logits, upstream)

        return loss

    _, memory = model.advance(IDS[:, :6])
    # A copy of the values, detached from the graph.
    detached = segment_memory.SegmentMemory(
        tuple(ops.convert_to_tensor(values(x)) for x in memory.states),
        ops.convert_to_tensor(values(memory.token_mask)),
    )
    _, found = layer_gradients(model, loss_with_memory(None))
    _, expected = layer_gradients(model, loss_with_memory(detached))
    for name in expected:
        assert_close(found[name], expected[name])
        assert np.abs(found[name]).max() > 0, name


@pytest.mark.parametrize("length", [5, *once([3])])
def test_documents_do_not_attend_to_earlier_ones(length):
    """Documents start within segments, at different positions per row."""
    model = tiny()
    starts = np.zeros(IDS.shape, "int32")
    document_starts = [[0, 4, 9], [2, 5]]
    for row, row_starts in enumerate(document_starts):
        starts[row, row_starts] = 1
    found = in_segments(model, IDS, length, document_starts=starts)
    for row, row_starts in enumerate(document_starts):
        for start, end in zip(
            [*row_starts], [*row_starts[1:], 12], strict=True
        ):
            alone = IDS[row : row + 1, start:end]
            # The document alone, with the same segment boundaries.
            first = -start % length or length
            memory, parts = (), []
            for part in (alone[:, :first], alone[:, first:]):
                for offset in range(0, part.shape[1], length):
                    inputs = {"token_ids": part[:, offset : offset + length]}
                    if memory:
                        inputs["memory"] = memory
                    logits, memory = model.advance(inputs)
                    parts.append(values(logits))
            expected = np.concatenate(parts, axis=1)
            assert_close(found[row : row + 1, start:end], expected)


@pytest.mark.parametrize("side", ["left", "right"])
@every_form
def test_padding_does_not_change_logits(form, side):
    model = tiny(form)
    alone = values(model(IDS[1:, :3]))
    row = [0, 0, *IDS[1, :3]] if side == "left" else [*IDS[1, :3], 0, 0]
    batch = np.array([IDS[0, :5], row], "int32")
    token_mask = batch[1] != 0
    assert_close(values(model(batch))[1][token_mask], alone[0])
    mask = batch != 0
    masked = {"token_ids": np.where(mask, batch, 9), "padding_mask": mask}
    assert_close(values(model(masked))[1][token_mask], alone[0])


def test_padding_after_a_segment_does_not_change_the_memory():
    model = tiny()
    cuts = [[(0, 3), (3, 6), (6, 8)], [(0, 2), (2, 3), (3, 5)]]
    expected = [in_segments(model, IDS[:1, :3], 3)]
    memory, found = (), [[], []]
    for step in range(3):
        batch = np.zeros((2, 3), "int32")
        for row in range(2):
            start, end = cuts[row][step]
            batch[row, : end - start] = IDS[row, start:end]
        inputs = {"token_ids": batch}
        if memory:
            inputs["memory"] = memory
        logits, memory = model.advance(inputs)
        for row in range(2):
            start, end = cuts[row][step]
            found[row].append(values(logits)[row, : end - start])
    for row in range(2):
        memory, expected = (), []
        for start, end in cuts[row]:
            inputs = {"token_ids": IDS[row : row + 1, start:end]}
            if memory:
                inputs["memory"] = memory
            logits, memory = model.advance(inputs)
            expected.append(values(logits)[0])
        for one, other in zip(found[row], expected, strict=True):
            assert_close(one, other)


@pytest.mark.every_backend
@every_form
def test_decode_steps_equal_full_pass(form):
    model = tiny(form)
    ids = IDS[:, :5]
    expected = values(model(ids))
    state = model.start_decoding(ops.convert_to_tensor(ids[:, :2]), 4)
    found = []
    for position in range(2, 6):
        logits, state = model.decode_step(state.tokens, state)
        found.append(values(logits))
        if position < 5:
            tokens = ops.convert_to_tensor(ids[:, position : position + 1])
            state = state._replace(tokens=tokens)
    assert_close(np.concatenate(found, axis=1), expected[:, 1:])


@pytest.mark.every_backend
@pytest.mark.parametrize(
    "strategy", ["greedy", BeamSearch(3, length_penalty=0.0)]
)
def test_generate_equals_full_passes(strategy):
    model = tiny()
    found = model.generate(PROMPTS, max_new_tokens=6, strategy=strategy)
    for row, tokens, scores, lengths in zip(
        PROMPTS, found.tokens, found.scores, found.lengths, strict=True
    ):
        sequence = tokens[0, : lengths[0]].tolist()
        # Later tokens change nothing; padding gives all rows one shape.
        ids = [*row, *sequence, *[row[0]] * (12 - len(row) - len(sequence))]
        logits = values(model(np.array([ids], "int32")))[0]
        log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        positions = np.arange(len(row) - 1, len(row) + len(sequence) - 1)
        if strategy == "greedy":
            allowed = log_probs.copy()
            allowed[:, [0, 1]] = -np.inf
            assert allowed[positions].argmax(-1).tolist() == sequence
        total = log_probs[positions, sequence].sum()
        assert abs(total - scores[0]) < 1e-4


def streams(rows=2, length=3, **kwargs):
    documents = [IDS[0], IDS[1, :5], IDS[1, 5:]]
    return token_streams(documents, length, rows, **kwargs)


def losses(model):
    model.compile(keras.optimizers.SGD(0.0), SequenceCrossentropy(pad_id=-1))
    return model


@pytest.mark.every_backend
@pytest.mark.parametrize("jit", [False, True])
def test_evaluate_carries_the_memory(jit):
    if jit and keras.backend.backend() == "torch":
        pytest.skip("torch.compile takes a minute")
    model = tiny(stateful_batch_size=2)
    model.compile(
        loss=SequenceCrossentropy(pad_id=-1), jit_compile=jit, run_eagerly=False
    )
    data = streams(shuffle=False)
    found = model.evaluate(data, verbose=0)
    again = model.evaluate(data, verbose=0)
    memory, total, count = (), 0.0, 0
    for inputs, labels in data:
        inputs = dict(inputs)
        if memory:
            inputs["memory"] = memory
        logits, memory = model.advance(inputs)
        logits = values(logits)
        log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        token_mask = labels >= 0
        picked = np.take_along_axis(
            log_probs, np.maximum(labels, 0)[..., None], axis=-1
        )[..., 0]
        total -= picked[token_mask].sum()
        count += token_mask.sum()
    expected = total / count
    assert abs(again - found) < 1e-6
    assert abs(found - expected) < 0.05 * expected
    # The carried memory equals the one that `advance` returns.
    for ours, theirs in zip(
        model._carried.read().states, memory.states, strict=True
    ):
        assert_close(values(ours), values(theirs))
    without_memory = losses(tiny(memory_length=0))
    without_memory.set_weights(model.trainable_weights)
    assert abs(without_memory.evaluate(data, verbose=0) - found) > 1e-3


@pytest.mark.one_backend("jax")
def test_fit_carries_the_memory_and_learns(tmp_path):
    """The target is six tokens back, outside of any segment of four."""
    size, back = 8, 6
    rng = np.random.default_rng(0)
    text = rng.integers(3, size, 4000)
    for position in range(back, len(text)):
        if position % 2:
            text[position] = text[position - back]
    data = token_streams(text, 4, 8, seed=1)
    model = TransformerXL(
        size,
        2,
        2,
        16,
        memory_length=8,
        stateful_batch_size=8,
        dropout=0.0,
        attention_dropout=0.0,
    )
    randomize(model, 0.1)
    for variable in model.weights:
        if variable.path.endswith("gamma"):
            variable.assign(np.ones(variable.shape))
    model.compile(keras.optimizers.Adam(0.01), SequenceCrossentropy(pad_id=-1))
    data.set_epoch(0)
    history = model.fit(data, epochs=6, shuffle=False, verbose=0).history
    # No model without memory can be better than log(5) on average: within a
    # segment, the five symbols are independent.
    assert history["loss"][-1] < np.log(size - 3) - 0.2
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert_close(values(loaded(IDS % size)), values(model(IDS % size)))
    # The memory is not saved.
    assert np.abs(values(model._carried.read().states[0])).max() > 0
    assert np.abs(values(loaded._carried.read().states[0])).max() == 0


@pytest.mark.parametrize("kill", [9, *once([4])])
def test_interrupted_training_resumes_with_its_memory(kill, tmp_path):
    """The run is killed during an epoch; data and memory both resume."""
    text = np.random.default_rng(0).integers(3, SIZE, 100)

    def trained(folder, kill=None):
        data = token_streams(text, 4, 3, seed=1)
        assert len(data) == 8
        model = tiny(stateful_batch_size=3, num_layers=1)
        model.compile(
            keras.optimizers.Adam(0.01),
            SequenceCrossentropy(pad_id=-1),
        )
        steps = Steps()
        backup = TrainingBackup(folder, [steps], save_freq=1, data=data)
        callbacks = [backup] + ([KillAfter(kill, steps)] if kill else [])
        try:
            model.fit(
                data, epochs=2, shuffle=False, callbacks=callbacks, verbose=0
            )
        except Killed:
            pass
        return [values(variable) for variable in model.variables], model

    expected, _ = trained(tmp_path / "whole")
    trained(tmp_path / "killed", kill)
    found, model = trained(tmp_path / "killed")
    assert np.abs(values(model._carried.read().states[0])).max() > 0
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_with_memory_longer_than_in_training():
    model = tiny(stateful_batch_size=2)
    longer = model.with_memory(12, stateful_batch_size=2)
    assert (longer.memory_length, model.memory_length) == (12, M)
    full = values(model.with_memory(0)(IDS))
    assert_close(in_segments(longer, IDS, 3), full)
    assert_differs(in_segments(model, IDS, 3), full)
    # The caller may also pass a longer memory.
    memory = segment_memory.empty(2, 12, 2, 8)
    first, memory = model.advance({"token_ids": IDS[:, :6], "memory": memory})
    second, _ = model.advance({"token_ids": IDS[:, 6:], "memory": memory})
    found = np.concatenate([values(first), values(second)], axis=1)
    assert_close(found, full)


@every_form
def test_config_round_trip(form):
    model = tiny(form, stateful_batch_size=3)
    restored = TransformerXL.from_config(model.get_config())
    restored.set_weights(model.get_weights())
    assert_close(values(restored(IDS)), values(model(IDS)), 0)
    assert restored.stateful_batch_size == 3


def test_half_precision():
    model = tiny(dtype="mixed_bfloat16")
    exact = tiny()
    exact.set_weights(model.get_weights())
    memory, found = (), []
    for part in (IDS[:, :6], IDS[:, 6:]):
        inputs = {"token_ids": part} | ({"memory": memory} if memory else {})
        logits, memory = model.advance(inputs)
        assert keras.backend.standardize_dtype(logits.dtype) == "bfloat16"
        found.append(values(ops.cast(logits, "float32")))
    found = np.concatenate(found, axis=1)
    assert_close(found, in_segments(exact, IDS, 6), 0.1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"memory_length": -1}, "`memory_length` must be a positive"),
        (
            {"stateful_batch_size": 0},
            "`stateful_batch_size` must be a positive",
        ),
        ({"num_heads": 3}, "`num_heads` must divide `hidden_dim`"),
        ({"hidden_dim": 9, "num_heads": 3}, "`hidden_dim` must be even"),
    ],
)
def test_invalid_arguments_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        tiny(**arguments)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (IDS + 9, r"`token_ids` must lie in \[0, 11\)"),
        (
            {"token_ids": IDS, "document_starts": IDS[:, :3]},
            r"`document_starts` must have shape \(2, 12\)",
        ),
        (
            {"token_ids": IDS, "memory": 3},
            "`memory` must be returned by `advance`",
        ),
        (
            {"token_ids": IDS, "memory": segment_memory.empty(3, M, 2, 8)},
            "for 2 rows",
        ),
        (
            {"token_ids": IDS, "memory": segment_memory.empty(2, M, 1, 8)},
            "with 2 states of width 8",
        ),
        ({"token_ids": IDS, "memories": 3}, "must contain token_ids"),
    ],
)
def test_invalid_inputs_raise(inputs, message):
    with pytest.raises(ValueError, match=message):
        tiny()(inputs)


def test_document_starts_need_the_stateful_batch_size():
    with pytest.raises(ValueError, match="stateful_batch_size=3, 2 rows"):
        tiny(stateful_batch_size=3)(
            {"token_ids": IDS, "document_starts": IDS * 0}
        )
