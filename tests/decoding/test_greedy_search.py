"""GreedySearch against a loop that runs the full model for every token."""

import numpy as np
import pytest

from keras_attn.decoding import GreedySearch, generate
from tests.decoding.markov_cases import SOURCES, by_brute_force, markov
from tests.helpers.brute_force import assert_same, greedy
from tests.helpers.tiny_models import SOURCE, talkative_transformer


@pytest.mark.every_backend
@pytest.mark.parametrize("max_new_tokens", [1, 6])
def test_equals_brute_force_on_a_table_model(max_new_tokens):
    model = markov()
    expected = by_brute_force(model, SOURCES, max_new_tokens)
    if max_new_tokens > 1:
        assert len({length for _, _, length in expected}) > 1
        assert max_new_tokens in [length for _, _, length in expected]
    decoded = generate(model, SOURCES, max_new_tokens, GreedySearch())
    assert_same(decoded, expected)
    assert not np.isin(decoded.tokens, [1]).any()
    for tokens, length in zip(
        decoded.tokens[:, 0], decoded.lengths[:, 0], strict=True
    ):
        assert (tokens[:length] != 0).all() and (tokens[length:] == 0).all()
        assert 2 not in tokens[: length - 1]


def test_scores_are_not_renormalized():
    model = markov()
    decoded = generate(model, SOURCES, 1, "greedy")
    # Pad and start are never chosen, but keep their probability.
    allowed = np.array([model.log_probs(s, [])[2:] for s in SOURCES])
    total = np.log(np.exp(allowed).sum(-1))
    assert (total < -1).all()
    np.testing.assert_allclose(decoded.scores[:, 0], allowed.max(-1), rtol=1e-5)


def test_end_token_equal_to_start_token_can_be_generated():
    model = markov(end_id=1)
    expected = by_brute_force(model, SOURCES, 4)
    assert expected[0] == ([1, 0, 0, 0], expected[0][1], 1)
    assert_same(generate(model, SOURCES, 4, "greedy"), expected)


@pytest.mark.every_backend
@pytest.mark.parametrize(
    "form",
    [
        {"seed": 8, "num_layers": 2},
        {
            "seed": 6,
            "normalize_first": True,
            "position_embedding": "learned",
            "max_sequence_length": 6,
            "tie_word_embeddings": False,
        },
        {"seed": 5, "start_id": 0},
        {"seed": 18, "position_embedding": None, "relative": True},
    ],
    ids=["paper", "pre-norm", "pad is start", "relative"],
)
def test_equals_brute_force_on_a_transformer(form):
    pytest.importorskip("torch")
    from tests.helpers.torch_transformer import TorchTransformer

    model = talkative_transformer(**form)
    twin = TorchTransformer(model)

    def log_probs(source, prefix):
        target = np.array([[model.start_id, *prefix]])
        logits = twin(source[None], target)[0, -1]
        return logits.log_softmax(-1).detach().numpy()

    ids = model.pad_id, model.start_id, model.end_id
    expected = [
        greedy(lambda prefix, s=s: log_probs(s, prefix), 5, *ids)
        for s in SOURCE
    ]
    assert len({tuple(tokens) for tokens, _, _ in expected}) > 1
    assert_same(model.generate(SOURCE, max_new_tokens=5), expected)


def test_config_round_trips():
    assert GreedySearch.from_config(GreedySearch().get_config())
