"""Beam search of Marian models against `generate` of transformers."""

import numpy as np
import pytest

from keras_attn.decoding import BeamSearch
from tests.helpers.cases import once
from tests.pretrained import hugging_face
from tests.pretrained.hugging_face import CASES, LENGTH, SOURCES

PENALTIES = 0.0, 1.0, 2.0
every_penalty = pytest.mark.parametrize("penalty", [1.0, *once([0.0, 2.0])])


def beams(theirs, penalty, **kwargs):
    """Returns their four best sequences and scores."""
    tokens, result = hugging_face.generated(
        theirs,
        num_beams=4,
        num_return_sequences=4,
        do_sample=False,
        length_penalty=penalty,
        **kwargs,
    )
    scores = result.sequences_scores.numpy()
    return tokens, scores.reshape(tokens.shape[:2])


@pytest.mark.every_backend
@every_penalty
@pytest.mark.parametrize("number", range(len(CASES)))
def test_same_four_best_sequences(number, penalty, models):
    """With "never", transformers has the same stopping criterion."""
    theirs, ours = models(number)
    tokens, scores = beams(theirs, penalty, early_stopping="never")
    strategy = BeamSearch(
        num_beams=4,
        num_return_sequences=4,
        length_penalty=penalty,
        length_penalty_type="power",
    )
    found = ours.generate(SOURCES, max_new_tokens=LENGTH, strategy=strategy)
    np.testing.assert_allclose(found.scores, scores, atol=1e-3)
    np.testing.assert_array_equal(found.tokens, tokens)


@every_penalty
def test_at_least_as_good_as_their_default_search(penalty, models):
    """By default transformers may stop too early.

    Its heuristic bounds the score of a hypothesis at its current length, which
    is exact only without a length penalty.
    """
    strategy = BeamSearch(
        num_beams=4, length_penalty=penalty, length_penalty_type="power"
    )
    same = []
    for number in range(len(CASES)):
        theirs, ours = models(number)
        tokens, scores = beams(theirs, penalty)
        found = ours.generate(SOURCES, max_new_tokens=LENGTH, strategy=strategy)
        assert (found.scores[:, 0] > scores[:, 0] - 1e-3).all()
        equal = (found.tokens[:, 0] == tokens[:, 0]).all(-1)
        better = found.scores[:, 0] > scores[:, 0] + 1e-3
        assert (equal | better).all()
        same.extend(equal)
    assert np.mean(same) > 0.5
    if penalty == 0:
        assert all(same)


def test_one_beam_is_greedy_search(models):
    theirs, ours = models(0)
    expected, _ = hugging_face.generated(theirs, num_beams=1, do_sample=False)
    for penalty in PENALTIES:
        found = ours.generate(
            SOURCES,
            max_new_tokens=LENGTH,
            strategy=BeamSearch(
                num_beams=1, length_penalty=penalty, length_penalty_type="power"
            ),
        )
        np.testing.assert_array_equal(found.tokens, expected)


def test_cases_distinguish_penalties_and_beam_widths(models):
    """Otherwise equal results would prove little."""
    differ = np.zeros(3, "int")
    for number in range(len(CASES)):
        theirs, _ = models(number)
        greedy, _ = hugging_face.generated(theirs, num_beams=1, do_sample=False)
        best = [beams(theirs, p, early_stopping="never")[0] for p in PENALTIES]
        for index, (one, other) in enumerate(
            [(best[0], best[1]), (best[1], best[2]), (best[1], greedy)]
        ):
            differ[index] += (one[:, 0] != other[:, 0]).any(-1).sum()
    assert (differ >= 3).all(), differ
