"""GPT: attention mask, generation, training and saving."""

import itertools

import keras
import numpy as np
import pytest

from keras_attn.blocks import DecoderBlock
from keras_attn.decoding import BeamSearch, Sampling
from keras_attn.layers import ALiBiPosition, RotaryPosition
from keras_attn.models import GPT
from keras_attn.training import SequenceCrossentropy
from tests.helpers.arrays import to_numpy
from tests.helpers.cases import once
from tests.helpers.contract import randomize
from tests.helpers.tiny_models import never_drawn
from tests.helpers.whole_pass import next_logits

SIZE = 11
PROMPTS = [[7, 8, 9], [5], [3, 4, 5, 6, 7, 8]]
IDS = np.array([[7, 8, 9, 4, 3], [5, 6, 10, 3, 8]], "int32")
FORMS = {
    "GPT-2": dict,
    "GPT": lambda: {"normalize_first": False},
    "untied": lambda: {"tie_word_embeddings": False},
    "sinusoidal": lambda: {
        "position_embedding": "sinusoidal",
        "max_sequence_length": None,
    },
    "rotary": lambda: {
        "position_embedding": None,
        "attention_position": RotaryPosition(),
    },
    "ALiBi": lambda: {
        "position_embedding": None,
        "attention_position": ALiBiPosition(2),
    },
}
every_form = pytest.mark.parametrize(
    "form",
    [*("GPT-2", "rotary", "ALiBi"), *once(["GPT", "untied", "sinusoidal"])],
)


def tiny(form="GPT-2", **kwargs):
    sizes = {"num_layers": 2, "num_heads": 2, "hidden_dim": 8}
    settings = {
        "max_sequence_length": 24,
        "dropout": 0.0,
        "attention_dropout": 0.0,
    }
    model = GPT(SIZE, **(sizes | settings | FORMS[form]() | kwargs))
    randomize(model)
    for variable in model.weights:
        if variable.path.endswith(("gamma", "beta")):
            variable.assign(np.full(variable.shape, "gamma" in variable.path))
    return model


def log_softmax(logits):
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


def greedy(model, row, count):
    """Returns greedy tokens, with a full forward pass per token."""
    row, added = list(row), []
    while len(added) < count:
        logits = next_logits(model, row, 12)
        logits[[0, 1]] = -np.inf
        added.append(int(logits.argmax()))
        row.append(added[-1])
        if added[-1] == model.end_id:
            break
    return added + [0] * (count - len(added))


@pytest.mark.every_backend
@every_form
def test_decode_steps_equal_full_pass(form):
    model = tiny(form)
    expected = to_numpy(model(IDS))
    state = model.start_decoding(keras.ops.convert_to_tensor(IDS[:, :2]), 4)
    found = []
    for position in range(2, 6):
        logits, state = model.decode_step(state.tokens, state)
        found.append(to_numpy(logits))
        if position < 5:
            tokens = keras.ops.convert_to_tensor(
                IDS[:, position : position + 1]
            )
            state = state._replace(tokens=tokens)
    np.testing.assert_allclose(
        np.concatenate(found, axis=1), expected[:, 1:], atol=1e-5
    )


@every_form
def test_later_tokens_do_not_change_logits(form):
    model = tiny(form)
    full = to_numpy(model(IDS))
    for length in (1, 4):
        np.testing.assert_allclose(
            to_numpy(model(IDS[:, :length])), full[:, :length], atol=1e-5
        )


@pytest.mark.parametrize("side", ["left", "right"])
@every_form
def test_padding_does_not_change_logits(form, side):
    model = tiny(form)
    alone = to_numpy(model(IDS[1:, :3]))
    row = [0, 0, *IDS[1, :3]] if side == "left" else [*IDS[1, :3], 0, 0]
    batch = np.array([IDS[0], row], "int32")
    token_mask = batch[1] != 0
    found = to_numpy(model(batch))[1]
    np.testing.assert_allclose(found[token_mask], alone[0], atol=1e-5)
    # The same with an explicit mask and arbitrary ids at padding.
    mask = batch != 0
    masked = {"token_ids": np.where(mask, batch, 9), "padding_mask": mask}
    found = to_numpy(model(masked))[1]
    np.testing.assert_allclose(found[token_mask], alone[0], atol=1e-5)


def test_pad_id_none():
    model = tiny(pad_id=None)
    ids = np.array([[0, 7, 0]], "int32")
    changed = np.array([[3, 7, 0]], "int32")
    assert np.abs(to_numpy(model(ids) - model(changed)))[0, 1:].min() > 0
    other = tiny()
    other.set_weights(model.get_weights())
    np.testing.assert_allclose(
        to_numpy(other(ids))[:, 1],
        to_numpy(model(ids[:, 1:2]))[:, 0],
        atol=1e-5,
    )
    decoded = model.generate([[0, 7, 0]], max_new_tokens=5)
    length = decoded.lengths[0, 0]
    assert (decoded.tokens[0, 0, length:] == model.end_id).all()


def test_no_special_ids():
    ids = {"pad_id": None, "start_id": None, "end_id": None}
    model = tiny("rotary", max_sequence_length=None, **ids)
    prompts = [[0, 7, 0, 1], [2]]
    rows = [list(prompt) for prompt in prompts]
    for row in rows:
        for _ in range(9):
            row.append(int(next_logits(model, row, 13).argmax()))
    found = model.generate(prompts, max_new_tokens=9)
    for prompt, row, tokens in zip(prompts, rows, found.tokens, strict=True):
        assert tokens[0].tolist() == row[len(prompt) :]
    assert (found.lengths == 9).all()
    # Every id can be sampled, and none ends a sequence.
    strategy = Sampling(temperature=50.0, num_return_sequences=40, seed=0)
    drawn = model.generate(prompts, max_new_tokens=9, strategy=strategy)
    assert (drawn.lengths == 9).all()
    assert set(drawn.tokens.ravel().tolist()) == set(range(SIZE))
    beams = model.generate(prompts, max_new_tokens=9, strategy="beam")
    assert (beams.lengths == 9).all() and np.isfinite(beams.scores).all()
    forced = model.generate(prompts, max_new_tokens=3, prefix=[0, 1])
    assert forced.tokens[:, 0, :2].tolist() == [[0, 1], [0, 1]]
    *_, last = model.stream(prompts, max_new_tokens=9)
    np.testing.assert_array_equal(last.tokens, found.tokens)
    assert type(model).from_config(model.get_config()).end_id is None


@pytest.mark.parametrize("form", ["GPT-2", "rotary", *once(["GPT"])])
def test_greedy_generates_most_likely_tokens(form):
    model = tiny(form)
    found = model.generate(PROMPTS, max_new_tokens=6)
    expected = [[greedy(model, row, 6)] for row in PROMPTS]
    np.testing.assert_array_equal(found.tokens, expected)
    assert found.lengths.max() > 1


def test_prompt_formats_are_equivalent():
    model = tiny()
    expected = model.generate(PROMPTS, max_new_tokens=5, strategy="beam")
    width = max(map(len, PROMPTS))
    left = np.array([[0] * (width - len(row)) + row for row in PROMPTS])
    right = np.array([row + [0] * (width - len(row)) for row in PROMPTS])
    masked = {
        "token_ids": np.where(left, left, 9),
        "padding_mask": left != 0,
    }
    for prompts in (left, right, masked, [np.array(row) for row in PROMPTS]):
        found = model.generate(prompts, max_new_tokens=5, strategy="beam")
        np.testing.assert_array_equal(found.tokens, expected.tokens)
        np.testing.assert_allclose(found.scores, expected.scores, atol=1e-5)
    for index, row in enumerate(PROMPTS):
        alone = model.generate([row], max_new_tokens=5, strategy="beam")
        np.testing.assert_array_equal(alone.tokens[0], expected.tokens[index])
        np.testing.assert_allclose(
            alone.scores[0], expected.scores[index], atol=1e-5
        )


def test_wide_beam_finds_the_optimum():
    model = tiny()
    length, prompt = 2, PROMPTS[0]
    ends = [t for t in range(SIZE) if t not in (0, 1)]
    sequences = list(itertools.product(ends, repeat=length))
    rows = np.array([[*prompt, *tokens] for tokens in sequences], "int32")
    best = -np.inf
    for tokens, logits in zip(sequences, to_numpy(model(rows)), strict=True):
        if tokens[0] == 2:
            tokens = tokens[:1]
        log_probs = log_softmax(logits)
        positions = len(prompt) - 1 + np.arange(len(tokens))
        best = max(best, log_probs[positions, tokens].sum())
    strategy = BeamSearch(SIZE**length, length_penalty=0.0)
    found = model.generate([prompt], max_new_tokens=length, strategy=strategy)
    np.testing.assert_allclose(found.scores[0, 0], best, atol=1e-5)


def test_beams_on_long_sequences_share_their_prompt():
    """More tokens than the initial cache, after prompts of two lengths."""
    model = tiny("sinusoidal")
    strategy = BeamSearch(3, 2, suppress_tokens=[2])
    prompts = [PROMPTS[0], PROMPTS[2]]
    found = model.generate(prompts, max_new_tokens=70, strategy=strategy)
    longest = max(map(len, prompts))
    for row, tokens, scores in zip(
        prompts, found.tokens, found.scores, strict=True
    ):
        for sequence, score in zip(tokens, scores, strict=True):
            ids = np.array([[*row, *sequence]], "int32")
            # Later tokens change nothing; padding gives both rows one shape.
            padded = np.pad(ids, ((0, 0), (0, longest - len(row))))
            log_probs = log_softmax(to_numpy(model(padded))[0])
            positions = np.arange(len(row) - 1, ids.shape[1] - 1)
            total = log_probs[positions, sequence].sum()
            penalty = strategy.length_penalty
            normalized = total / ((5 + 70) / 6) ** penalty
            assert min(abs(total - score), abs(normalized - score)) < 1e-3


def test_samples_and_streams():
    model = tiny()
    strategy = Sampling(seed=3, num_return_sequences=2)
    found = model.generate(PROMPTS, max_new_tokens=4, strategy=strategy)
    alone = model.generate(PROMPTS[:1], max_new_tokens=4, strategy=strategy)
    np.testing.assert_array_equal(found.tokens[:1], alone.tokens)
    *_, last = model.stream(PROMPTS, max_new_tokens=4, strategy=strategy)
    np.testing.assert_array_equal(last.tokens, found.tokens)
    forced = model.generate(PROMPTS, max_new_tokens=4, prefix=[9])
    assert (forced.tokens[:, 0, 0] == 9).all()


def test_published_sizes():
    """Weights are counted, not allocated."""
    with never_drawn():
        assert GPT.gpt().count_params() == 116_534_784
        assert GPT.gpt2().count_params() == 124_439_808
        large = GPT.gpt2("xl")
    assert large.count_params() == 1_557_611_200
    assert (large.pad_id, large.start_id, large.end_id) == (None, 50256, 50256)


@pytest.mark.one_backend("tensorflow")
def test_learns_to_count_and_file_round_trip(tmp_path):
    model = GPT(
        SIZE,
        1,
        2,
        16,
        max_sequence_length=8,
        dropout=0.0,
        attention_dropout=0.0,
    )
    model.compile(keras.optimizers.Adam(0.02), SequenceCrossentropy())
    starts = np.arange(64)[:, None] % 8
    rows = 3 + (starts + np.arange(9)) % 8
    x, y = rows[:, :-1].astype("int32"), rows[:, 1:].astype("int32")
    history = model.fit(x, y, epochs=30, batch_size=16, verbose=0).history
    assert history["loss"][-1] < 0.1 < history["loss"][0]
    found = model.generate([[5, 6], [9]], max_new_tokens=4)
    assert found.tokens[:, 0].tolist() == [[7, 8, 9, 10], [10, 3, 4, 5]]
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(
        to_numpy(loaded(x[:2])), to_numpy(model(x[:2])), atol=1e-6
    )


@pytest.mark.parametrize("form", FORMS)
def test_config_round_trip(form):
    model = tiny(form)
    restored = GPT.from_config(model.get_config())
    restored.set_weights(model.get_weights())
    np.testing.assert_array_equal(to_numpy(restored(IDS)), to_numpy(model(IDS)))


@pytest.mark.parametrize(
    "dropout, embedding_dropout, changes",
    [(0.5, 0.0, False), (0.5, None, True), (0.0, 0.5, True)],
)
def test_dropout_of_embeddings(dropout, embedding_dropout, changes):
    model = tiny(dropout=dropout, embedding_dropout=embedding_dropout)
    # Without sublayer outputs, only that of the embeddings has an effect.
    outputs = "attention_output/", "outer/"
    for variable in model.weights:
        if any(name in variable.path for name in outputs):
            variable.assign(np.zeros(variable.shape))
    assert GPT.from_config(model.get_config()).embedding_dropout == (
        embedding_dropout
    )
    difference = to_numpy(model(IDS, training=True)) - to_numpy(model(IDS))
    assert (np.abs(difference).max() > 1e-3) == changes


def test_half_precision():
    model = tiny(dtype="mixed_bfloat16")
    exact = tiny()
    exact.set_weights(model.get_weights())
    logits = model(IDS)
    assert keras.backend.standardize_dtype(logits.dtype) == "bfloat16"
    np.testing.assert_allclose(
        to_numpy(keras.ops.cast(logits, "float32")),
        to_numpy(exact(IDS)),
        atol=0.1,
    )
    assert np.isfinite(model.generate(PROMPTS, max_new_tokens=3).scores).all()


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"num_heads": 3}, "`num_heads` must divide `hidden_dim`.*3.*8"),
        (
            {"position_embedding": "rotary"},
            "`position_embedding` must be one of",
        ),
        ({"max_sequence_length": None}, "`max_sequence_length` must be given"),
        ({"pad_id": SIZE}, r"`pad_id` must lie in \[0, 11\)"),
        ({"end_id": -1}, r"`end_id` must lie in \[0, 11\)"),
        ({"hidden_dim": 0}, "`hidden_dim` must be a positive integer"),
    ],
)
def test_invalid_arguments_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        GPT(
            SIZE,
            **({"num_layers": 1, "num_heads": 2, "hidden_dim": 8} | arguments),
        )


def test_several_end_ids(tmp_path):
    model = GPT(11, 1, 2, 8, 12, end_id=[3, 5])
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert model.get_config()["end_id"] == [3, 5]
    assert loaded.end_id == model.end_id == (3, 5)
    prompts = np.arange(6, 11)[:, None]
    found = loaded.generate(prompts, 12, strategy=Sampling(seed=1))
    ended = found.lengths[:, 0] < 12
    last = found.tokens[np.arange(5), 0, found.lengths[:, 0] - 1]
    assert ended.any() and np.isin(last[ended], [3, 5]).all()
    before = found.tokens[:, 0, :] * (np.arange(12) < found.lengths - 1)
    assert not np.isin(before, [3, 5]).any()


@pytest.mark.parametrize(
    "ids, message",
    [
        ({"end_id": [3, 11]}, r"`end_id` must lie in \[0, 11\)"),
        ({"end_id": []}, "`end_id` must be None or have an id"),
        ({"end_id": (3, 0)}, "`pad_id` must differ from `end_id`.* 0 for both"),
        ({"end_id": [3, "4"]}, "`end_id` must be an integer"),
        ({"start_id": [1, 3]}, "`start_id` must be an integer"),
    ],
)
def test_invalid_special_ids_raise(ids, message):
    with pytest.raises(ValueError, match=message):
        GPT(11, 1, 2, 8, 12, **ids)


@pytest.mark.parametrize(
    "inputs, message",
    [
        (IDS[0], r"`token_ids` must have shape \(batch, length\)"),
        (IDS * 1.0, "`token_ids`.*float"),
        (IDS + 9, r"`token_ids` must lie in \[0, 11\)"),
        (
            np.ones((1, 25), "int32"),
            "max_sequence_length=24. Received: 25 tokens",
        ),
        ({"ids": IDS}, "must contain token_ids, and optionally padding_mask"),
        (
            {"token_ids": IDS, "padding_mask": IDS[:, :2]},
            r"`padding_mask` must have shape \(2, 5\)",
        ),
    ],
)
def test_invalid_inputs_raise(inputs, message):
    with pytest.raises(ValueError, match=message):
        tiny()(inputs)


@pytest.mark.parametrize(
    "inputs, max_new_tokens, message",
    [
        ([], 4, "at least one row"),
        ([[]], 4, "a token in every row"),
        ([[0, 0]], 4, "nothing but padding in row 0"),
        ([[11]], 4, r"must lie in \[0, 11\)"),
        ([[5] * 10], 16, "together must not exceed .*24 rows.*10 tokens"),
        ({"token_ids": IDS}, 4, "must contain token_ids and padding_mask"),
        (
            {"token_ids": IDS, "padding_mask": IDS[:1]},
            4,
            r"`padding_mask` must have shape \(2, 5\).*\(1, 5\)",
        ),
    ],
)
def test_invalid_prompts_raise(inputs, max_new_tokens, message):
    with pytest.raises(ValueError, match=message):
        tiny().generate(inputs, max_new_tokens=max_new_tokens)


def test_prompt_and_new_tokens_may_fill_the_position_table():
    # The last token is not read.
    found = tiny().generate([[5] * 10], max_new_tokens=15)
    assert found.tokens.shape == (1, 1, 15)


def test_decoder_block_checks_memory():
    x = np.zeros((1, 3, 8), "float32")
    alone, both = (
        DecoderBlock(num_heads=2, intermediate_dim=12),
        DecoderBlock(num_heads=2, intermediate_dim=12),
    )
    alone.build(x.shape)
    both.build(x.shape, x.shape)
    assert alone.cross_attention is None
    with pytest.raises(ValueError, match=r"`memory` must .*Received: a memory"):
        alone(x, x)
    with pytest.raises(ValueError, match=r"`memory` must .*Received: none"):
        both(x)
