"""The tutorial on decoding: a quick run and its functions."""

import math
import pathlib
import runpy

import numpy as np
import pytest
from beam_tree import Candidate, fates, plot_tree

from tests.helpers import decoding_reference as reference
from tests.helpers.tree import Tree

pytestmark = pytest.mark.one_backend("jax")

TUTORIAL = pathlib.Path(__file__).parents[2] / "tutorials/decoding.py"
A, B, END = 3, 4, 2


@pytest.fixture(scope="module")
def ran():
    """The variables of a quick run, and its printed output."""
    lines = []
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("QUICK", "1")
        monkeypatch.setattr(
            "builtins.print",
            lambda *args, **_: lines.append(" ".join(map(str, args))),
        )
        variables = runpy.run_path(str(TUTORIAL), run_name="__main__")
    return variables, "\n".join(lines)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("k, t, alpha", [(2, 2, 0.6), (3, 1, 0.0), (4, 3, 1.5)])
def test_handwritten_search_follows_the_definition(ran, seed, k, t, alpha):
    tree = Tree.random(1, 6, 4, seed=seed, scale=2.0)
    following = {}

    def one(tokens):
        key = tuple(tokens)
        if key not in following:
            following[key] = tree.log_probs([0], key)
        return following[key]

    expected = reference.beam_search(
        one,
        reference.may_follow(tree),
        4,
        END,
        k,
        t,
        penalty=lambda n: reference.gnmt(n, alpha),
    )
    found, steps = ran[0]["beam_search"](
        lambda beginnings: np.array([one(b) for b in beginnings]),
        k,
        t,
        alpha,
        4,
    )
    assert [list(tokens) for _, tokens in found] == [y for _, y in expected]
    np.testing.assert_allclose(
        [score for score, _ in found], [score for score, _ in expected]
    )
    assert all(len(candidates) <= 2 * k for candidates in steps)
    ended = {c.tokens for step in steps for c in step if c.fate == "ended"}
    assert {tokens for _, tokens in found} <= ended


@pytest.mark.parametrize("what", ["score", "token", "missing"])
def test_difference_from_the_library_is_detected(ran, what):
    same, beam, chosen = (ran[0][name] for name in ("same", "beam", "chosen"))
    found = [
        (float(score), tuple(tokens[:length].tolist()))
        for score, tokens, length in zip(
            beam.scores[chosen],
            beam.tokens[chosen],
            beam.lengths[chosen],
            strict=True,
        )
    ]
    same(found, beam, chosen)
    score, tokens = found[1]
    changed = {
        "score": [found[0], (score + 0.01, tokens), *found[2:]],
        "token": [found[0], (score, (*tokens[:-1], 5)), *found[2:]],
        "missing": found[:-1],
    }
    with pytest.raises(AssertionError):
        same(changed[what], beam, chosen)


def test_plot_marks_the_candidates():
    steps = [
        [
            Candidate((A,), -0.5, "lives"),
            Candidate((B,), -1.0, "lives"),
            Candidate((END,), -3.0, "cut"),
        ],
        [
            Candidate((A, END), -0.7, "ended"),
            Candidate((A, B), -1.2, "lives"),
            Candidate((B, A), -4.0, "cut"),
        ],
        [Candidate((A, B, END), -1.5, "ended")],
    ]
    assert fates(steps) == {
        (A,): "lives",
        (B,): "given up",  # only a candidate that was cut came from it
        (END,): "cut",
        (A, END): "ended",
        (A, B): "lives",
        (B, A): "cut",
        (A, B, END): "ended",
    }
    figure = plot_tree(steps, str, best=(A, B, END))
    axes = figure.axes[0]
    # Distinguishable without color, by marker and fill.
    looks = {
        (handle.get_marker(), handle.get_markerfacecolor() == "white")
        for handle in axes.get_legend().legend_handles
    }
    assert len(looks) == 4
    thick = [line for line in axes.lines if line.get_linewidth() > 2]
    assert [line.get_ydata()[-1] for line in thick] == [-0.5, -1.2, -1.5]


def test_invalid_arguments_exit_with_one_sentence(ran):
    answers, printed = ran[0]["answers"], ran[1]
    expected = {
        "num_return_sequences": "`num_return_sequences` must not exceed "
        "`num_beams`. Received: num_return_sequences=3, num_beams=2",
        "max_new_tokens": "`max_new_tokens` must not exceed the position table "
        "of max_sequence_length=16 rows. Received: 17 tokens",
        "inputs": "`inputs` must hold a token in every row. "
        "Received: nothing in row 0",
    }
    for what, sentence in expected.items():
        assert answers[what] == sentence
    size = ran[0]["tokenizer"].vocabulary_size
    assert answers["inputs, an id"] == (
        f"`inputs` must lie in [0, {size}). Received: ids from 2 to {size}"
    )
    for sentence in answers.values():
        assert sentence in printed
        assert "\n" not in sentence and "Received: " in sentence


def test_claims_of_the_page(ran):
    found, printed = ran
    assert found["hits"] == {256: 5}
    assert abs(found["missed"][256]) < 1e-4
    assert (np.diff(found["won"], axis=0) >= 0).all()
    assert printed.count("scores agree to") == 4
    # Sampling still has more than one candidate token.
    assert np.count_nonzero(found["share"]) > 1


def test_answers_to_the_exercises(ran):
    penalty, shaped = ran[0]["penalty"], ran[0]["shaped"]
    a, b = -4.0, -4.6
    assert f"{a / penalty(4, 0.6):.2f}" == "-3.14"
    assert f"{b / penalty(7, 0.6):.2f}" in ("-3.03", "-3.04")
    even = math.log(b / a) / math.log(penalty(7, 1) / penalty(4, 1))
    assert f"{even:.2f}" == "0.49"
    p = np.array([0.0, 0.0, 0.5, 0.3, 0.15, 0.05])
    for knob, answer in (
        ({"top_k": 3}, [0.526, 0.316, 0.158, 0]),
        ({"top_p": 0.7}, [0.625, 0.375, 0, 0]),
        ({"temperature": 0.5}, [0.685, 0.247, 0.062, 0.007]),
    ):
        np.testing.assert_allclose(shaped(p, **knob)[2:], answer, atol=5e-4)
