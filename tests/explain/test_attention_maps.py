"""attention_maps: weights, token names, and no side effects."""

import keras
import numpy as np
import pytest

from keras_attn.decoding import BeamSearch
from keras_attn.decoding.protocol import Decoded
from keras_attn.explain import attention_maps, padding_attention
from keras_attn.layers import (
    MultiHeadAttention,
    RotaryPosition,
    ScoredAttention,
)
from keras_attn.models import (
    GPT,
    Bert,
    MultipleChoice,
    RecurrentSeq2Seq,
    SequenceClassifier,
    Transformer,
    TransformerXL,
    XLNet,
)
from tests.helpers.cases import once
from tests.helpers.contract import randomize
from tests.helpers.ops_cases import values

SIZES = {"num_layers": 2, "num_heads": 2, "hidden_dim": 8}
SOURCES = np.int32([[5, 6, 7, 2], [8, 2, 0, 0]])
TARGETS = np.int32([[1, 9, 6], [1, 5, 0]])


def named(ids):
    return [f"t{i}" for i in ids]


def made(model):
    randomize(model)
    return model


def transformer():
    return made(Transformer(12, 12, intermediate_dim=16, **SIZES))


def gpt():
    return made(GPT(12, max_sequence_length=16, **SIZES))


def test_maps_of_a_transformer():
    model = transformer()
    before = values(model((SOURCES, TARGETS)))
    maps = attention_maps(model, (SOURCES, TARGETS), tokens=named)
    assert (values(model((SOURCES, TARGETS))) == before).all()
    found = {one.layer: one for one in maps}
    assert len(found) == 6
    source_mask = SOURCES != 0
    for path, one in found.items():
        encoder, cross = path.startswith("encoder"), "cross" in path
        queries = 4 if encoder else 3
        keys = 4 if encoder or cross else 3
        assert one.weights.shape == (2, 2, queries, keys)
        weights, query_tokens, key_tokens = one.of(1)
        source, target = ["t8", "t2"], ["t1", "t5"]
        assert query_tokens == (source if encoder else target)
        assert key_tokens == (source if encoder or cross else target)
        assert weights.shape == (2, 2, 2)
        np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)
        mask = source_mask if encoder or cross else TARGETS != 0
        assert (padding_attention(one, mask) == 0).all()


def test_weights_are_those_of_the_layer():
    model = gpt()
    (one,) = attention_maps(
        model, SOURCES, layers="block_0/", heads=1, vectors=True
    )
    assert one.heads == (1,) and one.weights.shape == (2, 1, 4, 4)
    both = attention_maps(model, SOURCES)
    assert both[0].queries is None and both[0].keys is None
    np.testing.assert_array_equal(one.weights[:, 0], both[0].weights[:, 1])
    # By hand: pre-norm, so the first block reads normalized embeddings.
    by_path = {w.path: values(w) for w in model.weights}
    x = by_path["token_embedding/table/embeddings"][SOURCES]
    x = x + by_path["positions/table/embeddings"][: SOURCES.shape[1]]
    x = x - x.mean(-1, keepdims=True)
    x = x / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    norm = "block_0/around_attention/norm"
    x = x * by_path[f"{norm}/gamma"] + by_path[f"{norm}/beta"]
    query, key = (
        np.einsum("btd,dh->bth", x, by_path[f"{path}/kernel"][:, 1])
        + by_path[f"{path}/bias"][1]
        for path in (
            "block_0/self_attention/query",
            "block_0/self_attention/key",
        )
    )
    scores = np.einsum("bth,bsh->bts", query, key) / 2
    token_mask = SOURCES != 0
    for found, expected in ((one.queries, query), (one.keys, key)):
        np.testing.assert_allclose(
            found[:, 0][token_mask], expected[token_mask], atol=1e-5
        )
    visible = np.tri(4, dtype=bool) & token_mask[:, None]
    powers = np.where(visible, np.exp(scores), 0)
    expected = powers / powers.sum(-1, keepdims=True)
    np.testing.assert_allclose(
        one.weights[:, 0][token_mask], expected[token_mask], atol=1e-5
    )


def test_vectors_of_rotated_heads_that_share_keys():
    x = keras.Input((None, 8))
    outputs = MultiHeadAttention(
        4, 2, num_key_value_heads=2, attention_position=RotaryPosition()
    )(x, x)
    outputs = ScoredAttention(name="scored")(outputs, outputs)
    inputs = np.random.default_rng(0).normal(size=(2, 5, 8)).astype("float32")
    one, scored = attention_maps(
        keras.Model(x, outputs), inputs, heads=None, vectors=True
    )
    assert one.queries.shape == one.keys.shape == (2, 4, 5, 2)
    scores = one.queries @ one.keys.swapaxes(2, 3) / np.sqrt(2)
    powers = np.exp(scores)
    expected = powers / powers.sum(-1, keepdims=True)
    np.testing.assert_allclose(one.weights, expected, atol=1e-6)
    assert scored.queries is None and scored.keys is None


def test_only_the_selected_layers_return_weights(monkeypatch):
    from keras_attn.layers import multi_head_attention as module

    requested = []
    attend_sanitized = module.attend_sanitized

    def watched(*args, return_weights=False, **kwargs):
        requested.append(return_weights)
        return attend_sanitized(*args, return_weights=return_weights, **kwargs)

    monkeypatch.setattr(module, "attend_sanitized", watched)
    attention_maps(gpt(), SOURCES, layers=["block_1/"])
    assert requested == [False, True]


def test_maps_of_generated_sequences_match_the_search():
    """The search computes its weights with the cache."""
    model = transformer()
    decoded = model.generate(
        SOURCES,
        max_new_tokens=5,
        strategy=BeamSearch(3, num_return_sequences=2),
        return_weights=True,
        verbose=0,
    )
    maps = attention_maps(
        model, SOURCES, layers="cross", tokens=named, decoded=decoded
    )
    length = decoded.tokens.shape[-1]
    for number, one in enumerate(maps):
        assert one.weights.shape == (4, 2, length, 4)
        weights = one.weights.reshape(2, 2, 2, length, 4)
        token_mask = np.arange(length) < decoded.lengths[..., None]
        expected = decoded.weights[:, :, number]
        np.testing.assert_allclose(
            np.moveaxis(weights, 3, 2)[token_mask],
            np.moveaxis(expected, 3, 2)[token_mask],
            atol=1e-5,
        )
    # A row of a map is where the next token was predicted.
    for b, h in np.ndindex(2, 2):
        written = decoded.tokens[b, h][: decoded.lengths[b, h]]
        names = named([1, *written[:-1]])
        assert maps[0].of(2 * b + h)[1] == names


def test_a_finished_sequence_has_no_rows_after_its_end():
    model = transformer()
    decoded = Decoded(
        np.int32([[[9, 2, 0, 0]], [[6, 7, 8, 2]]]),
        np.zeros((2, 1), "float32"),
        np.int32([[2], [4]]),
        None,
    )
    sources = [[5, 6, 2], [8, 2]]  # of any lengths, as `generate` takes them
    maps = attention_maps(
        model, sources, layers="cross", tokens=named, decoded=decoded
    )
    assert maps[0].query_tokens == [named([1, 9]), named([1, 6, 7, 8])]
    assert maps[0].key_tokens == [named([5, 6, 2]), named([8, 2])]
    assert (maps[0].weights[0, :, 2:] == 0).all()
    given = np.int32([[5, 6, 2], [8, 2, 0]])
    again = attention_maps(
        model, given, layers="cross", tokens=named, decoded=decoded
    )
    np.testing.assert_array_equal(again[0].weights, maps[0].weights)


@pytest.mark.parametrize("prompts", ["mask", *once(["lists", "left"])])
def test_continued_prompts(prompts):
    model = gpt()
    rows = [[5, 6, 7], [8]]
    given = {
        "lists": rows,
        "left": np.int32([[5, 6, 7], [0, 0, 8]]),
        "mask": {
            "token_ids": np.int32([[5, 6, 7], [8, 3, 3]]),
            "padding_mask": np.array([[1, 1, 1], [1, 0, 0]], bool),
        },
    }[prompts]
    decoded = model.generate(given, 4, verbose=0)
    maps = attention_maps(model, given, tokens=named, decoded=decoded)
    for row, prompt in enumerate(rows):
        added = decoded.tokens[row, 0][: decoded.lengths[row, 0]]
        text = [*prompt, *added[:-1].tolist()]
        weights, queries, keys = maps[-1].of(row)
        assert queries == keys == named(text)
        # One row by itself, in a full pass.
        (_, alone) = attention_maps(model, np.int32([text]))
        np.testing.assert_allclose(weights, alone.weights[0], atol=1e-5)


def test_a_sequence_that_fills_the_position_table():
    model = made(GPT(12, max_sequence_length=6, **SIZES))
    decoded = model.generate([[5, 6, 7]], 4, verbose=0)
    (one, _) = attention_maps(model, [[5, 6, 7]], decoded=decoded)
    length = 2 + decoded.lengths[0, 0]
    assert one.weights.shape == (1, 2, length, length)


@pytest.mark.parametrize("kind", ["GPT", *once(["TransformerXL", "XLNet"])])
def test_rows_of_any_length_without_a_padding_id(kind):
    """Padding is neither attended to nor named."""
    ids = {"pad_id": None, "start_id": None, "end_id": None}
    makes = {
        "GPT": lambda: GPT(12, max_sequence_length=16, **SIZES, **ids),
        "TransformerXL": lambda: TransformerXL(12, **SIZES, **ids),
        "XLNet": lambda: XLNet(12, **SIZES, **ids),
    }
    model = made(makes[kind]())
    rows = [[5, 6, 7], [8]]
    decoded = model.generate(rows, 3, verbose=0)
    maps = attention_maps(model, rows, tokens=named, decoded=decoded)
    for row, prompt in enumerate(rows):
        (alone,) = (
            attention_maps(
                model, [prompt], decoded=_row_of(decoded, row), tokens=named
            ),
        )
        assert len(alone) == len(maps)
        for one, other in zip(maps, alone, strict=True):
            weights, queries, keys = one.of(row)
            expected, *names = other.of(0)
            assert [queries, keys] == names
            np.testing.assert_allclose(weights, expected, atol=1e-5)
            used = len(prompt) + 3 - (kind != "XLNet")
            assert len(keys) == used


def _row_of(decoded, row):
    return Decoded(
        *(part[row : row + 1] for part in decoded[:3]), decoded.weights
    )


def test_xlnet_query_stream_of_generated_tokens():
    """The query stream has the rows that predicted the tokens."""
    model = made(XLNet(12, **SIZES))
    decoded = model.generate([[5, 6], [7]], 3, verbose=0)
    maps = attention_maps(
        model, [[5, 6], [7]], tokens=named, decoded=decoded, layers="block_0/"
    )
    content, queries = maps
    assert (content.call, queries.call) == (0, 1)
    written = decoded.tokens[1, 0][: decoded.lengths[1, 0]]
    assert queries.of(1)[1][: len(written)] == named(written)
    # Each target sees the tokens before it, and no later ones.
    seen = queries.weights[0].max(axis=0) > 0
    np.testing.assert_array_equal(
        seen[: decoded.lengths[0, 0]],
        np.arange(seen.shape[1]) < 2 + np.arange(len(seen))[:, None],
    )


def test_a_stateful_memory_is_unchanged():
    model = made(
        TransformerXL(12, memory_length=3, stateful_batch_size=2, **SIZES)
    )
    starts = np.int32([[1, 0, 0, 0]] * 2)
    model.predict_on_batch({"token_ids": SOURCES, "document_starts": starts})
    before = [values(v) for v in model.weights]
    inputs = {
        "token_ids": SOURCES[:, ::-1].copy(),
        "document_starts": 0 * starts,
    }
    maps = attention_maps(model, inputs, tokens=named)
    assert maps[0].weights.shape == (2, 2, 4, 7)
    for variable, value in zip(model.weights, before, strict=True):
        np.testing.assert_array_equal(values(variable), value)


def test_two_rows_are_not_a_pair():
    (one, _) = attention_maps(
        gpt(), [[5, 6, 7], [8, 9, 10]], tokens=named, heads=np.int64(1)
    )
    assert one.heads == (1,)
    assert one.query_tokens == [named([5, 6, 7]), named([8, 9, 10])]


def test_task_heads_have_padding_masks():
    encoder = made(
        Bert(12, intermediate_dim=16, max_sequence_length=8, **SIZES)
    )
    classifier = SequenceClassifier(encoder, 1)
    maps = attention_maps(classifier, SOURCES, tokens=named)
    assert maps[0].query_tokens[1] == ["t8", "t2"]
    mask = np.array([[1, 1, 1, 0], [1, 1, 0, 0]], bool)
    inputs = {"token_ids": SOURCES, "padding_mask": mask}
    maps = attention_maps(classifier, inputs, tokens=named)
    assert maps[0].query_tokens == [["t5", "t6", "t7"], ["t8", "t2"]]
    choices = np.stack([SOURCES, SOURCES[:, ::-1]], axis=1)
    maps = attention_maps(MultipleChoice(classifier), choices, tokens=named)
    assert maps[0].weights.shape == (4, 2, 4, 4)
    assert maps[0].query_tokens[3] == ["", "", "t2", "t8"]


def test_memories_and_query_streams():
    model = made(TransformerXL(12, memory_length=3, **SIZES))
    ids = SOURCES[:, :2]
    _, memory = model.advance(ids)
    maps = attention_maps(
        model, {"token_ids": ids, "memory": memory}, tokens=named
    )
    assert maps[0].weights.shape == (2, 2, 2, 5)
    assert maps[0].key_tokens[0] == ["", "", "", "t5", "t6"]
    model = made(XLNet(12, **SIZES))
    inputs = {
        "token_ids": ids,
        "order": np.int32([[0, 1], [1, 0]]),
        "target_positions": np.int32([[1], [0]]),
    }
    maps = attention_maps(model, inputs, layers="block_1/", tokens=named)
    assert [one.call for one in maps] == [0, 1]
    assert maps[1].query_tokens == [["t6"], ["t8"]]
    assert maps[1].weights.shape == (2, 2, 1, 2)
    # The target in the first row sees the first token, but not itself.
    np.testing.assert_allclose(maps[1].weights[0, :, 0], [[1, 0]] * 2)


def test_other_models():
    bert = made(Bert(12, intermediate_dim=16, max_sequence_length=8, **SIZES))
    maps = attention_maps(bert, {"token_ids": SOURCES}, tokens=named)
    assert maps[0].query_tokens[1] == ["t8", "t2"]
    recurrent = made(RecurrentSeq2Seq(12, 12, hidden_dim=8))
    (one,) = attention_maps(recurrent, (SOURCES, TARGETS), tokens=named)
    assert one.weights.shape == (2, 1, 3, 4)
    assert one.key_tokens[1] == ["t8", "t2"]


def test_invalid_arguments_raise():
    model = gpt()
    with pytest.raises(
        ValueError, match="`layers` must match the path of a keras_attn"
    ):
        attention_maps(model, SOURCES, layers="cross_attention")
    with pytest.raises(ValueError, match="`heads` must lie in"):
        attention_maps(model, SOURCES, heads=2)
    with pytest.raises(ValueError, match="`tokens` must be a list of at most"):
        attention_maps(model, SOURCES, tokens=[["a"]])
    with pytest.raises(ValueError, match="`tokens` must be a pair"):
        attention_maps(model, SOURCES, tokens=(named, named))
    with pytest.raises(ValueError, match="`tokens` must be a pair"):
        attention_maps(
            transformer(), (SOURCES, TARGETS), tokens=[list("abcd")] * 2
        )
    for wrong in (lambda ids: "a" * len(ids), lambda ids: ["a"]):
        with pytest.raises(ValueError, match="a list of one name for each"):
            attention_maps(model, SOURCES, tokens=wrong)
    with pytest.raises(ValueError, match="models with token_ids"):
        attention_maps(
            Bert(12, intermediate_dim=16, max_sequence_length=8, **SIZES),
            {"words": SOURCES},
            tokens=named,
        )
    decoded = model.generate([[5]], 2, verbose=0)
    with pytest.raises(ValueError, match="`inputs` must be the 1"):
        attention_maps(model, [[5], [6]], decoded=decoded)
    dense = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    with pytest.raises(ValueError, match="must be a generative model"):
        attention_maps(dense, np.ones((1, 3)), decoded=decoded)
