"""Rules inside whole searches: loops with lists, and `generate` of theirs."""

import itertools

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn import decoding, pretrained
from keras_attn.decoding import (
    AllowedSequences,
    BeamSearch,
    ForcedWords,
    GreedySearch,
    LogitBias,
    LogitsRule,
    MinP,
    NoRepeatNGram,
    PresencePenalty,
    RepetitionPenalty,
    Sampling,
    generate,
    stream,
)
from keras_attn.decoding.row_streams import uniform_rows
from tests.decoding.markov import Markov
from tests.decoding.markov_cases import SOURCES
from tests.decoding.test_logits_rules import continues, has_room
from tests.helpers.decoding_reference import (
    assert_equals,
    beam_search,
    gnmt,
    may_follow,
)

torch = pytest.importorskip("torch")

import transformers
from transformers.generation import logits_process

LENGTH = 6
INF = float("inf")


def markov():
    """Returns a model whose most likely tokens are often repeated ones."""
    table = np.random.default_rng(1).normal(size=(3, 7, 7))
    table += 2 * np.eye(7)
    table[..., 1] += 5
    # The second kind of source never ends.
    table[1, :, 2] -= 9
    return Markov(table)


class TheirPresencePenalty:
    """The presence penalty of OpenAI, as a logits processor."""

    def __init__(self, penalty):
        self.penalty = penalty

    def __call__(self, ids, scores):
        generated = torch.unique(ids[0, 1:])  # after the start token
        scores = scores.clone()
        scores[0, generated] -= self.penalty
        return scores


class TheirMask:
    """Allows what a function of a token and those before it says."""

    def __init__(self, function, *args):
        self.function, self.args = function, args

    def __call__(self, ids, scores):
        tokens = ids[0, 1:].tolist()  # after the start token
        allowed = [
            self.function(token, [], tokens, *self.args)
            for token in range(scores.shape[-1])
        ]
        return scores.masked_fill(~torch.tensor(allowed), -INF)


WORDS = [[4, 6], [3]]
SEQUENCES = [[3, 4, 5], [3], [6, 6], [4, 3]]
# In an order that matters.
PAIRS = {
    "penalties": (
        [RepetitionPenalty(1.6), PresencePenalty(0.4), NoRepeatNGram(2)],
        [
            logits_process.RepetitionPenaltyLogitsProcessor(1.6),
            TheirPresencePenalty(0.4),
            logits_process.NoRepeatNGramLogitsProcessor(2),
        ],
    ),
    "filter": (
        [RepetitionPenalty(6.0), MinP(0.3)],
        [
            logits_process.RepetitionPenaltyLogitsProcessor(6.0),
            logits_process.MinPLogitsWarper(0.3),
        ],
    ),
    "words": (
        [LogitBias({(3, 4): -2.5, 6: 1.0}), ForcedWords(WORDS)],
        [
            logits_process.SequenceBiasLogitsProcessor(
                {(3, 4): -2.5, (6,): 1.0}
            ),
            TheirMask(has_room, WORDS, LENGTH),
        ],
    ),
    "sequences": (
        [AllowedSequences(SEQUENCES)],
        [TheirMask(continues, SEQUENCES)],
    ),
    "reward": (
        [PresencePenalty(-1.5)],
        [TheirPresencePenalty(-1.5)],
    ),
}


def processed(processors, scores, allowed, tokens, start_id=1):
    """Applies processors of transformers to the scores of allowed tokens."""
    given = np.full(len(scores), -INF, "float32")
    given[allowed] = scores[allowed]
    ids = torch.tensor([[start_id, *tokens]])
    found = torch.tensor(given[None])
    for processor in processors:
        found = processor(ids, found)
    return found[0].numpy().astype("float64")


def picked(model, source, processors, uniforms=None, **rules):
    """Returns (score, tokens) of greedy search, or of one sample."""
    allowed = may_follow(model, **rules)
    tokens, score = [], 0.0
    while len(tokens) < LENGTH and model.end_id not in tokens:
        log_probs = model.log_probs(source, tokens)
        logits, ids = model_logits(model, source, tokens), allowed(tokens)
        forced = len(tokens) < len(rules.get("prefix", ()))
        found = processed([] if forced else processors, logits, ids, tokens)
        if uniforms is None:
            token = int(found.argmax())
        else:
            weights = np.exp(found - found.max())
            passed = np.cumsum(weights) > uniforms[len(tokens)] * weights.sum()
            token = int(passed.argmax())
        tokens.append(token)
        score += log_probs[token]
    return score, tokens


def model_logits(model, source, tokens):
    table = ops.convert_to_numpy(model.variables[0])
    last = tokens[-1] if tokens else model.start_id
    return table[source[0] % len(table), last]


CONSTRAINTS = {"banned": (4,), "min_new_tokens": 3, "prefix": (5, 5, 5)}


CASES = [
    *itertools.product(PAIRS, [{}]),
    # With the others no sequence would have this prefix.
    *itertools.product(["penalties", "filter", "reward"], [CONSTRAINTS]),
]


@pytest.mark.parametrize(
    ("name", "rules"),
    CASES,
    ids=[f"{name}-{'bound' if rules else 'free'}" for name, rules in CASES],
)
@pytest.mark.parametrize("kind", ["greedy", "sample", "beam"])
@pytest.mark.every_backend
def test_equals_a_loop(kind, name, rules):
    ours, theirs = PAIRS[name]
    options = {
        "rules": ours,
        "suppress_tokens": rules.get("banned", ()),
        "min_new_tokens": rules.get("min_new_tokens", 0),
    }
    strategy = {
        "greedy": GreedySearch(**options),
        "sample": Sampling(seed=3, num_return_sequences=2, **options),
        "beam": BeamSearch(3, 2, **options),
    }[kind]
    found = generate(
        markov(), SOURCES, LENGTH, strategy, prefix=rules.get("prefix")
    )
    expected = by_lists(kind, theirs, rules)
    assert_equals(found, expected)
    if not rules:  # the rules change the results
        assert expected != by_lists(kind, [], rules)


def by_lists(kind, processors, rules):
    """Returns a list of (score, tokens) per source."""
    model = markov()
    if kind == "beam":
        return [beams(model, row, processors, rules) for row in SOURCES]
    if kind == "greedy":
        return [[picked(model, row, processors, **rules)] for row in SOURCES]
    draws = uniform_rows(SOURCES, 2, LENGTH, seed=3, pad_id=0)
    return [
        [picked(model, row, processors, draw, **rules) for draw in of_row]
        for row, of_row in zip(SOURCES, draws, strict=True)
    ]


def beams(model, source, processors, rules):
    """Returns the results of beam search, a list of (score, tokens)."""
    allowed = may_follow(model, **rules)

    def scores(tokens):
        log_probs = model.log_probs(source, tokens)
        if len(tokens) < len(rules.get("prefix", ())):
            return log_probs
        return processed(processors, log_probs, allowed(tokens), tokens)

    return beam_search(
        scores,
        allowed,
        LENGTH,
        model.end_id,
        3,
        2,
        lambda length: gnmt(length, 0.6),
        can_rise=any(
            processors is PAIRS[name][1] for name in ("reward", "words")
        ),
    )


# transformers


SIZE, END = 17, 16
PROMPTS = [[5, 6, 7, 8, 2, 5, 6], [9, 4, 3], [1]]


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """A GPT-2 of transformers with random weights, and ours."""
    config = transformers.GPT2Config(
        vocab_size=SIZE,
        n_embd=8,
        n_layer=2,
        n_head=2,
        n_positions=24,
        bos_token_id=END,
        eos_token_id=END,
        pad_token_id=None,
    )
    theirs = transformers.GPT2LMHeadModel(config).eval()
    draw = torch.Generator().manual_seed(4)
    with torch.no_grad():
        for name, tensor in theirs.named_parameters():
            tensor.normal_(std=0.3, generator=draw)
            if "ln_" in name and "weight" in name:
                tensor.add_(1.0)
        matrix = theirs.transformer.wte.weight.mul_(4)
        theirs.transformer.ln_f.bias.add_(0.3 * matrix[END])
    directory = tmp_path_factory.mktemp("gpt2")
    theirs.save_pretrained(directory)
    return theirs, pretrained.load(directory)


def continued(theirs, **kwargs):
    """Returns their tokens, prompt by prompt: their padding would count."""
    found = np.full((len(PROMPTS), 8), END)
    for row, prompt in zip(found, PROMPTS, strict=True):
        tokens = theirs.generate(
            input_ids=torch.tensor([prompt]),
            attention_mask=torch.ones((1, len(prompt)), dtype=torch.long),
            max_new_tokens=8,
            pad_token_id=END,
            do_sample=False,
            **kwargs,
        )[0, len(prompt) :]
        row[: len(tokens)] = tokens
    return found


@pytest.mark.parametrize("beams", [1, 4])
@pytest.mark.every_backend
def test_generate_equals_theirs(pair, beams):
    theirs, ours = pair
    rules = [RepetitionPenalty(1.3), NoRepeatNGram(2), MinP(0.01)]
    strategy = GreedySearch(rules=rules)
    options = {}
    if beams > 1:
        strategy = BeamSearch(beams, length_penalty=0.0, rules=rules)
        options = {"length_penalty": 0.0, "early_stopping": "never"}
    found = ours.generate(PROMPTS, 8, strategy).tokens[:, 0]
    warpers = [logits_process.MinPLogitsWarper(0.01)]
    expected = continued(
        theirs,
        num_beams=beams,
        repetition_penalty=1.3,
        no_repeat_ngram_size=2,
        logits_processor=transformers.LogitsProcessorList(warpers),
        **options,
    )
    np.testing.assert_array_equal(found, expected)
    strategy.rules = ()
    assert (ours.generate(PROMPTS, 8, strategy).tokens[:, 0] != found).any()


# Programs


def test_rows_are_decoded_as_if_alone(pair):
    _, ours = pair
    strategy = GreedySearch(rules=[RepetitionPenalty(1.8), NoRepeatNGram(2)])
    together = ours.generate(PROMPTS, 8, strategy).tokens
    for row, prompt in enumerate(PROMPTS):
        alone = ours.generate([prompt], 8, strategy).tokens
        np.testing.assert_array_equal(alone[0], together[row])


@pytest.mark.parametrize("strategy", [GreedySearch, BeamSearch])
def test_stream_equals_generate(strategy):
    model = markov()
    strategy = strategy(rules=PAIRS["penalties"][0])
    *_, last = stream(model, SOURCES, LENGTH, strategy)
    expected = generate(model, SOURCES, LENGTH, strategy)
    np.testing.assert_array_equal(last.tokens, expected.tokens)
    np.testing.assert_allclose(last.scores, expected.scores, rtol=1e-6)


@pytest.mark.skipif(
    keras.backend.backend() != "torch", reason="others compile the loop"
)
@pytest.mark.captured_steps
@pytest.mark.parametrize("strategy", [GreedySearch, BeamSearch])
def test_captured_steps(strategy, captures):
    model = markov()
    strategy = strategy(rules=PAIRS["penalties"][0])
    found = generate(model, SOURCES, LENGTH, strategy, prefix=[5])
    assert len(captures) == 2
    model.torch_steps = "plain"
    expected = generate(model, SOURCES, LENGTH, strategy, prefix=[5])
    np.testing.assert_array_equal(found.tokens, expected.tokens)
    np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-6)


def test_searches_longer_than_the_first_slots():
    """Rules see the tokens of all slots; the caches start with 64."""
    table = np.random.default_rng(0).normal(size=(1, 90, 90))
    table[..., 2] = -50
    model = Markov(table)
    strategy = GreedySearch(rules=[NoRepeatNGram(1)])
    tokens = generate(model, SOURCES[:1], 70, strategy).tokens[0, 0]
    assert len(set(tokens.tolist())) == 70


class Odd(LogitsRule):
    """Forbids even tokens, up to a limit."""

    def __init__(self, limit=100):
        self.limit = limit
        self.tables = []

    def apply(self, scores, tokens, step, spec):
        ids = np.arange(scores.shape[-1])
        even = (ids % 2 == 0) & (ids < self.limit) & ~np.isin(ids, spec.end_ids)
        return ops.where(even, -INF, scores)


@pytest.mark.captured_steps
def test_programs_are_compiled_once_per_value():
    model = markov()
    strategy = GreedySearch(rules=[Odd()])
    first = generate(model, SOURCES, LENGTH, strategy)
    assert not np.isin(first.tokens, [4, 6]).any()
    programs = dict(vars(model)["_keras_attn_programs"]._kept)
    again = generate(model, SOURCES, LENGTH, GreedySearch(rules=[Odd()]))
    assert vars(model)["_keras_attn_programs"]._kept == programs
    np.testing.assert_array_equal(again.tokens, first.tokens)
    strategy.rules[0].limit = 0
    other = generate(model, SOURCES, LENGTH, strategy)
    assert len(vars(model)["_keras_attn_programs"]._kept) > len(programs)
    assert (other.tokens != first.tokens).any()


# Wrong rules


class Wrong(LogitsRule):
    """Returns what a function of the scores returns."""

    def __init__(self, function):
        self.function = function

    def apply(self, scores, tokens, step, spec):
        return self.function(scores)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda scores: None, "`apply` of the rule Wrong in .*None"),
        (lambda scores: scores[0], r"shape \(5, 1, 7\). Received: .*1, 7"),
        (lambda scores: scores * np.nan, "NaN or infinite scores in step 1"),
        (lambda scores: scores + INF, "NaN or infinite scores in step 1"),
    ],
)
@pytest.mark.parametrize("way", [generate, stream])
def test_wrong_scores_raise(way, function, message):
    strategy = GreedySearch(rules=[Wrong(function)])
    with pytest.raises(ValueError, match=message):
        list(way(markov(), SOURCES, LENGTH, strategy))


def test_no_allowed_token_gives_no_sequence():
    strategy = GreedySearch(rules=[Wrong(lambda scores: scores - INF)])
    found = generate(markov(), SOURCES, LENGTH, strategy)
    assert (found.lengths == 0).all() and (found.scores == -INF).all()


def test_rules_cannot_allow_what_the_strategy_forbids():
    rule = Wrong(lambda scores: ops.zeros_like(scores))
    found = generate(markov(), SOURCES, 3, GreedySearch([3], rules=[rule]))
    assert (found.tokens[:, 0, 0] == 2).all()
    found = generate(markov(), SOURCES, 3, GreedySearch([3], 3, [rule]))
    assert (found.tokens == [4, 4, 2]).all()


class NoScores(GreedySearch):
    """A strategy that does not know rules."""

    def choose(self, search_state, step, log_probs, uniforms, spec):
        return super().choose(search_state, step, log_probs, uniforms, spec)


class NoApply(LogitsRule):
    """A rule that defines nothing."""


@pytest.mark.one_backend
def test_incomplete_classes():
    generate(markov(), SOURCES, 3, NoScores())
    with pytest.raises(ValueError, match=r"`rules` need a strategy.*NoScores"):
        generate(markov(), SOURCES, 3, NoScores(rules=[MinP(0.1)]))
    with pytest.raises(NotImplementedError, match=r"`apply`.*NoApply"):
        GreedySearch(rules=[NoApply()])
    strategy = GreedySearch()
    strategy.rules = [len]
    with pytest.raises(ValueError, match="`rules` must hold"):
        generate(markov(), SOURCES, 3, strategy)
    assert decoding.LogitsRule().get_config() == {}
