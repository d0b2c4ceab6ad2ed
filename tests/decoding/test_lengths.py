"""Growth of the loop's token slots."""

import functools

import keras
import numpy as np
import pytest

from keras_attn import cache as kv
from keras_attn.decoding import BeamSearch, GreedySearch, Sampling, loop
from tests.helpers.cases import once
from tests.helpers.tiny_models import SOURCE, talkative_transformer

TORCH = keras.backend.backend() == "torch"
STRATEGIES = {
    "greedy": GreedySearch,
    "beam": functools.partial(BeamSearch, 3, 2),
    "sample": functools.partial(Sampling, 1.5, seed=4, num_return_sequences=2),
}


def _model(**kwargs):
    return talkative_transformer(seed=8, num_layers=2, **kwargs)


@pytest.fixture
def watched(monkeypatch):
    """Records the number of slots added at each growth."""
    counts = []
    grown = kv.grown

    def recorded(hypothesis, count):
        counts.append(count)
        return grown(hypothesis, count)

    monkeypatch.setattr(kv, "grown", recorded)
    monkeypatch.setattr(loop, "FIRST_LENGTH", 2)
    return counts


@pytest.mark.parametrize(
    "name, max_new_tokens",
    [
        ("beam", 5),
        *once([("greedy", 5), ("beam", 1), ("beam", 2), ("sample", 3)]),
    ],
)
def test_results_do_not_depend_on_the_slots(name, max_new_tokens, monkeypatch):
    # The end comes late, so that all slots are used.
    strategy = STRATEGIES[name](min_new_tokens=max_new_tokens)
    prefix = [[4, 5], [7]] if max_new_tokens > 1 else None
    expected = _model().generate(
        SOURCE, max_new_tokens, strategy, prefix=prefix
    )
    monkeypatch.setattr(loop, "FIRST_LENGTH", 2)
    found = _model().generate(SOURCE, max_new_tokens, strategy, prefix=prefix)
    np.testing.assert_array_equal(found.tokens, expected.tokens)
    np.testing.assert_array_equal(found.lengths, expected.lengths)
    np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-5)


@pytest.mark.one_backend
@pytest.mark.parametrize("name", ["beam", "greedy"])
def test_sequences_that_end_early_are_padded(name, monkeypatch):
    strategy = STRATEGIES[name](suppress_tokens=range(3, 11))
    expected = _model().generate(SOURCE, 6, strategy)
    assert expected.lengths.max() == 1
    monkeypatch.setattr(loop, "FIRST_LENGTH", 2)
    found = _model().generate(SOURCE, 6, strategy)
    assert found.tokens.shape == expected.tokens.shape
    np.testing.assert_array_equal(found.tokens, expected.tokens)


def test_slots_double_up_to_the_maximum(watched, monkeypatch):
    model = _model()
    started = []
    start = model.start_decoding

    def recorded(inputs, length):
        started.append(length)
        return start(inputs, length)

    monkeypatch.setattr(model, "start_decoding", recorded)
    model.generate(SOURCE, 11, GreedySearch(min_new_tokens=11))
    assert started == [2] and watched == [2, 4, 3]
    model.generate(SOURCE, 1)
    assert started == [2, 1] and watched == [2, 4, 3]


@pytest.mark.skipif(not TORCH, reason="other backends compile the branch")
def test_finished_search_gets_no_more_slots(watched):
    model = _model()
    decoded = model.generate(
        SOURCE, 9, GreedySearch(range(3, 11)), batch_size=2
    )
    assert (decoded.lengths == 1).all() and not watched


def test_position_table_limits_the_length():
    model = _model(position_embedding="learned", max_sequence_length=70)
    with pytest.raises(
        ValueError, match="`max_new_tokens` must not exceed the"
    ):
        model.generate(SOURCE, max_new_tokens=71)


@pytest.mark.parametrize(
    "strategy",
    [
        BeamSearch(130, length_penalty=0.0),
        Sampling(seed=3, num_return_sequences=130),
    ],
)
def test_many_hypotheses_of_one_source(strategy):
    """So many that a step has a million scores per head."""
    model = talkative_transformer(2)
    decoded = model.generate(SOURCE[:1], max_new_tokens=64, strategy=strategy)
    best = decoded.scores.max()
    greedy = model.generate(SOURCE[:1], max_new_tokens=64)
    assert np.isfinite(best)
    if isinstance(strategy, BeamSearch):
        assert best >= greedy.scores.max() - 1e-4
    else:
        assert decoded.tokens.shape == (1, 130, 64)
