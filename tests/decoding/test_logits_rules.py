"""Rules on random scores: against transformers, and NumPy loops."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn import decoding
from keras_attn.backend import compiled
from keras_attn.decoding import SearchSpec
from keras_attn.decoding.apply_rules import tokens_so_far
from tests.helpers.arrays import to_numpy

torch = pytest.importorskip("torch")

from transformers.generation import logits_process

SIZE = 9
SPEC = SearchSpec(8, 0, 1, (2,))
PROMPT = np.array([[-1, -1, 5, 6], [3, 4, 3, 4]], "int32")
STEP = 4
INF = float("inf")


def generated():
    """Returns tokens (2, 2, 6), of which `STEP` are used."""
    draws = np.random.default_rng(3).integers(3, SIZE, (2, 2, 6))
    draws[1, 0, :STEP] = [5, 3, 4, 3]  # repeats bigrams of the prompt
    return draws.astype("int32")


def random_scores(kind):
    """Returns logits or log-probabilities (2, 2, V), some of them -inf."""
    scores = np.random.default_rng(4).normal(size=(2, 2, SIZE)) * 3
    scores[..., 0] = -INF
    scores[0, 1, 5] = 0
    if kind == "log-probabilities":
        scores = scores - np.log(np.exp(scores).sum(-1, keepdims=True))
    return scores.astype("float32")


def rows():
    """Yields, for each hypothesis, its index and its tokens, a list."""
    tokens = generated()
    for source, beam in np.ndindex(2, 2):
        prompt = PROMPT[source][PROMPT[source] >= 0].tolist()
        yield (source, beam), prompt, tokens[source, beam, :STEP].tolist()


def by_transformers(processor, scores):
    """Applies a processor of transformers to each hypothesis alone."""
    expected = np.empty_like(scores)
    for index, prompt, tokens in rows():
        ids = torch.tensor([prompt + tokens])
        found = processor(ids, torch.tensor(scores[index][None]))
        expected[index] = found[0].numpy()
    return expected


def by_loop(function, scores):
    """Applies a function of scores, prompt and tokens to each hypothesis."""
    expected = scores.copy()
    for index, prompt, tokens in rows():
        for token in range(SIZE):
            expected[index][token] = function(
                scores[index][token], token, prompt, tokens
            )
    return expected


def applied(rule, scores, tokens=None, step=STEP):
    """Applies a rule in a compiled program."""
    tokens = generated() if tokens is None else tokens

    def function(scores, prompt, tokens, step):
        so_far = tokens_so_far(prompt, tokens, step)
        return rule.apply(scores, so_far, step, SPEC)

    arguments = scores, PROMPT, tokens, np.array(step, "int32")
    tensors = [ops.convert_to_tensor(part) for part in arguments]
    return to_numpy(compiled(function, [])(*tensors))


@keras.saving.register_keras_serializable("tests")
def not_after_itself(tokens, step, spec, size):
    """Allows tokens whose sum with the last one is no multiple of 3."""
    return (ops.arange(size, dtype="int32") + tokens[..., -1:]) % 3 != 0


TWINS = {
    "repetition": (
        decoding.RepetitionPenalty(1.7),
        logits_process.RepetitionPenaltyLogitsProcessor(1.7),
    ),
    "repetition, rewarded": (
        decoding.RepetitionPenalty(0.6),
        logits_process.RepetitionPenaltyLogitsProcessor(0.6),
    ),
    **{
        f"{size}-grams": (
            decoding.NoRepeatNGram(size),
            logits_process.NoRepeatNGramLogitsProcessor(size),
        )
        for size in (1, 2, 3, 8, 30)
    },
    "temperature": (
        decoding.Temperature(0.6),
        logits_process.TemperatureLogitsWarper(0.6),
    ),
    "min-p": (
        decoding.MinP(0.05),
        logits_process.MinPLogitsWarper(0.05),
    ),
    "min-p of 1": (decoding.MinP(1.0), logits_process.MinPLogitsWarper(1.0)),
    "typical": (
        decoding.TypicalP(0.5),
        logits_process.TypicalLogitsWarper(0.5),
    ),
    "typical, most": (
        decoding.TypicalP(0.99),
        logits_process.TypicalLogitsWarper(0.99),
    ),
    "epsilon": (
        decoding.EpsilonCutoff(0.03),
        logits_process.EpsilonLogitsWarper(0.03),
    ),
    "bias": (
        decoding.LogitBias({5: -1.5, 7: -INF, (3, 4): -2.5, (4, 3, 5): -0.5}),
        logits_process.SequenceBiasLogitsProcessor(
            {(5,): -1.5, (7,): -INF, (3, 4): -2.5, (4, 3, 5): -0.5}
        ),
    ),
    "bias, rewarded": (
        decoding.LogitBias({(3, 5): 4.5, 6: 1.0, (3,) * 30: 9.0}),
        logits_process.SequenceBiasLogitsProcessor(
            {(3, 5): 4.5, (6,): 1.0, (3,) * 30: 9.0}
        ),
    ),
    "callback": (
        decoding.AllowedTokens(not_after_itself),
        logits_process.PrefixConstrainedLogitsProcessor(
            lambda row, ids: [t for t in range(SIZE) if (t + ids[-1]) % 3], 1
        ),
    ),
    "epsilon above all": (
        decoding.EpsilonCutoff(0.99),
        logits_process.EpsilonLogitsWarper(0.99),
    ),
}


@pytest.mark.parametrize("kind", ["logits", "log-probabilities"])
@pytest.mark.parametrize("name", TWINS)
@pytest.mark.every_backend
def test_rules_equal_transformers(name, kind):
    rule, processor = TWINS[name]
    scores = random_scores(kind)
    expected = by_transformers(processor, scores)
    if name not in ("8-grams", "30-grams"):
        assert (expected != scores).any()
    np.testing.assert_allclose(applied(rule, scores), expected, rtol=1e-6)


# Equations of OpenAI's API reference ("frequency and presence penalties"):
#     mu[j] -> mu[j] - c[j] * alpha_frequency - (c[j] > 0) * alpha_presence
LOOPS = {
    "presence": (
        decoding.PresencePenalty(0.7),
        lambda score, token, prompt, tokens: score - 0.7 * (token in tokens),
    ),
    "presence, rewarded": (
        decoding.PresencePenalty(-0.7),
        lambda score, token, prompt, tokens: score + 0.7 * (token in tokens),
    ),
    "frequency": (
        decoding.FrequencyPenalty(0.7),
        lambda score, token, prompt, tokens: score - 0.7 * tokens.count(token),
    ),
}


SEQUENCES = [[5, 3, 4, 3, 6], [5, 3, 4, 3], [5, 3, 7], [3], [8, 8]]
WORDS = [[4, 3, 6], [3, 7], [5]]


def if_allowed(allowed):
    """Returns a function of a score that gives -inf if it is not allowed."""
    return lambda score, *args: score if allowed(*args) else -INF


def continues(token, prompt, tokens, sequences=SEQUENCES):
    """Whether a sequence goes on with a token, or ends."""
    if token == 2:
        return tokens in sequences
    longer = [*tokens, token]
    return any(ids[: len(longer)] == longer for ids in sequences)


def occurs(word, tokens):
    return any(
        tokens[start : start + len(word)] == word
        for start in range(len(tokens))
    )


def has_room(token, prompt, tokens, words=WORDS, most=SPEC.max_new_tokens):
    """Whether all words fit, by the formula of `ForcedWords`.

    need(y v) <= n - 1,  and need(y) = 0 for an end token
    """
    lacking = [word for word in words if not occurs(word, tokens)]
    if token == 2 and lacking:
        return False
    longer = [*tokens, token]
    lacking = [word for word in words if not occurs(word, longer)]
    begun = [
        length
        for word in lacking
        for length in range(1, len(word))
        if longer[-length:] == word[:length]
    ]
    need = sum(map(len, lacking)) - max(begun, default=0)
    return need <= most - 1 - len(tokens)


LOOPS |= {
    "sequences": (
        decoding.AllowedSequences(SEQUENCES),
        if_allowed(continues),
    ),
    "words": (decoding.ForcedWords(WORDS), if_allowed(has_room)),
}


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.every_backend
def test_rules_equal_loops(name):
    rule, function = LOOPS[name]
    scores = random_scores("logits")
    expected = by_loop(function, scores)
    assert (expected != scores).any()
    np.testing.assert_allclose(applied(rule, scores), expected, rtol=1e-6)


@pytest.mark.parametrize("name", [*TWINS, *LOOPS])
def test_forbidden_tokens_stay_forbidden(name):
    rule = (TWINS | LOOPS)[name][0]
    scores = random_scores("logits")
    found = applied(rule, scores)
    assert (found[..., 0] == -INF).all()
    # A sequence that has ended.
    assert not (applied(rule, np.full_like(scores, -INF)) > -INF).any()


@pytest.mark.one_backend
@pytest.mark.parametrize("step", range(SPEC.max_new_tokens))
def test_forced_words_always_leave_a_token(step):
    """Any tokens that the rule allows, one after the other."""
    rule = decoding.ForcedWords(WORDS)
    rng = np.random.default_rng(step)
    for _ in range(10):
        tokens = []
        while len(tokens) < SPEC.max_new_tokens:
            allowed = [t for t in range(2, SIZE) if has_room(t, [], tokens)]
            assert allowed
            tokens.append(rng.choice(allowed))
            if tokens[-1] == 2:
                break
        assert all(occurs(word, tokens) for word in WORDS)
        padded = np.array([[tokens + [0] * (8 - len(tokens))] * 2] * 2, "int32")
        at = min(step, len(tokens) - 1)
        found = applied(rule, np.zeros((2, 2, SIZE), "float32"), padded, at)
        expected = [has_room(t, [], tokens[:at]) for t in range(SIZE)]
        assert ((found[0, 0] == 0) == expected).all()


def test_only_rules_that_say_so_raise_scores_above_zero():
    tokens = np.ones((2, 2, 6), "int32")
    tokens[..., 3] = 3
    for rule, _ in (TWINS | LOOPS).values():
        scores = np.minimum(random_scores("log-probabilities"), 0)
        scores[..., [1, 5, 6]] = 0
        found = applied(rule, scores, tokens)
        assert (found > 0).any() == rule.can_be_positive
    assert decoding.LogitsRule().can_be_positive


@pytest.mark.parametrize("step", [0, 1, 6])
def test_tokens_so_far(step):
    tokens = generated()
    found = to_numpy(
        tokens_so_far(
            *map(ops.convert_to_tensor, (PROMPT, tokens)),
            ops.convert_to_tensor(np.array(step, "int32")),
        )
    )
    assert found.shape == (2, 2, 10)
    for source, beam in np.ndindex(2, 2):
        real = PROMPT[source][PROMPT[source] >= 0].tolist()
        real += tokens[source, beam, :step].tolist()
        expected = [-1] * (10 - len(real)) + real
        assert found[source, beam].tolist() == expected


@pytest.mark.one_backend
@pytest.mark.parametrize("name", [*TWINS, *LOOPS])
def test_configs(name):
    rule = (TWINS | LOOPS)[name][0]
    strategy = decoding.BeamSearch(3, rules=[rule, decoding.MinP(0.5)])
    again = decoding.BeamSearch.from_config(strategy.get_config())
    assert [type(part) for part in again.rules] == [type(rule), decoding.MinP]
    assert vars(again.rules[0]) == vars(rule)
    assert again.get_config() == strategy.get_config()
    serialized = keras.saving.serialize_keras_object(strategy)
    again = keras.saving.deserialize_keras_object(serialized)
    assert again.get_config() == strategy.get_config()
