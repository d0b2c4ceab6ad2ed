"""Speculative decoding: equal to plain decoding, with fewer calls."""

import gc
import itertools
import weakref

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.decoding import (
    BeamSearch,
    GreedySearch,
    PromptLookup,
    Sampling,
    SpeculativeDecoding,
    Temperature,
    generate,
    loop,
)
from keras_attn.decoding.acceptance import accept
from keras_attn.decoding.ngram_drafts import ngram_drafts
from keras_attn.layers import RotaryPosition
from keras_attn.models import GPT, Transformer, XLNet
from keras_attn.text import CharacterTokenizer

V = 12
PROMPTS = [[5, 6, 7, 3, 4], [7], [3, 4, 5, 6, 3, 4], [6, 6]]


def gpt(layers=1, seed=0, vocabulary_size=V, scale=8.0, **options):
    """A GPT whose random weights give distributions far from uniform."""
    keras.utils.set_random_seed(seed)
    options = {"max_sequence_length": 90, "end_id": None, **options}
    model = GPT(vocabulary_size, layers, 2, 16, **options)
    # The same on every backend.
    rng = np.random.default_rng(seed)
    for variable in model.trainable_variables:
        value = ops.convert_to_numpy(variable)
        if np.ptp(value):
            value = rng.normal(scale=value.std(), size=value.shape)
        variable.assign(scale * value)
    return model


def assert_same(found, expected):
    np.testing.assert_array_equal(found.tokens, expected.tokens)
    np.testing.assert_array_equal(found.lengths, expected.lengths)
    np.testing.assert_allclose(found.scores, expected.scores, 1e-4, 1e-4)
    counts = found.speculation
    assert (counts.num_accepted_tokens <= counts.num_draft_tokens).all()
    own = expected.lengths - counts.num_accepted_tokens
    assert (own <= counts.num_target_calls).all()
    assert (counts.num_target_calls <= own + 1).all()


@pytest.fixture(scope="module")
def pair():
    return gpt(1, end_id=(2, 9)), gpt(1, 5)


@pytest.fixture(scope="module")
def random_pair():
    """A pair whose drafts are partly accepted."""
    target, small = gpt(1, scale=3.0), gpt(1, 1, scale=3.0)
    for variable in small.trainable_variables:
        twin = [v for v in target.variables if v.path == variable.path]
        variable.assign(0.7 * twin[0] + 0.3 * variable)
    return target, small


ROTARY = {
    "position_embedding": None,
    "max_sequence_length": None,
    "attention_position": RotaryPosition(),
    "sliding_window": 3,
    "num_key_value_heads": 1,
}


@pytest.mark.every_backend
@pytest.mark.parametrize(
    ("options", "cache_dtype"),
    [(ROTARY, None), ({"position_embedding": "sinusoidal"}, "int8")],
)
def test_greedy_search_is_the_same(options, cache_dtype):
    model, small = gpt(1, **options), gpt(1, 5, end_id=3)
    expected = model.generate(PROMPTS, 8, cache_dtype=cache_dtype)
    for strategy in (SpeculativeDecoding(small, 2), PromptLookup(2)):
        found = model.generate(PROMPTS, 8, strategy, cache_dtype=cache_dtype)
        assert_same(found, expected)
    # Different rows accept different numbers.
    accepted = found.speculation.num_accepted_tokens
    assert len(np.unique(accepted)) > 1


@pytest.mark.every_backend
def test_a_perfect_assistant_is_always_accepted():
    model = gpt(1)
    found = model.generate(PROMPTS, 11, SpeculativeDecoding(model, 3))
    assert_same(found, model.generate(PROMPTS, 11))
    # 4 + 4 + 3 tokens.
    assert (found.speculation.num_target_calls == 3).all()
    assert (found.speculation.num_draft_tokens == 3 + 3 + 2).all()
    assert (found.speculation.num_accepted_tokens == 3 + 3 + 2).all()


def test_caches_grow_while_rows_are_apart(random_pair, monkeypatch):
    """A row that waits must not write into the others."""
    monkeypatch.setattr(loop, "FIRST_LENGTH", 4)
    model, small = random_pair
    # Without padding: their caches are full first.
    prompts = [[3, 4, 5, 6] * 4, [7] * 16, [6, 7] * 8, [5]]
    expected = model.generate(prompts, 13)
    found = model.generate(prompts, 13, SpeculativeDecoding(small, 4))
    assert_same(found, expected)
    assert len(np.unique(found.speculation.num_target_calls)) > 1


def test_rows_are_independent(random_pair):
    model, small = random_pair
    strategy = SpeculativeDecoding(small, 2, Sampling(seed=3))
    together = model.generate(PROMPTS, 5, strategy)
    in_batches = model.generate(PROMPTS, 5, strategy, batch_size=2)
    for one, other in zip(
        (*together[:3], *together.speculation),
        (*in_batches[:3], *in_batches.speculation),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, 1e-4)


CHARACTERS = CharacterTokenizer("abcdefgh")


@pytest.mark.parametrize(
    ("strategy", "arguments"),
    [
        (GreedySearch(min_new_tokens=6), {}),
        (
            GreedySearch(suppress_tokens=[5, 6]),
            {"prefix": [[4, 8], [3], [], []]},
        ),
        (
            GreedySearch(),
            {"stop_strings": ["ab", "d"], "tokenizer": CHARACTERS},
        ),
    ],
)
def test_constraints_and_ends_are_respected(pair, strategy, arguments):
    model, small = pair
    expected = model.generate(PROMPTS, 7, strategy, **arguments)
    speculative = SpeculativeDecoding(small, 2, strategy)
    found = model.generate(PROMPTS, 7, speculative, **arguments)
    assert_same(found, expected)


def test_a_state_is_continued(pair):
    model, small = pair
    state = model.read(PROMPTS)
    expected = model.generate([[4], [5], [6], [7]], 8, state=state)
    strategy = SpeculativeDecoding(small, 3)
    found = model.generate([[4], [5], [6], [7]], 8, strategy, state=state)
    assert_same(found, expected)
    for one, other in zip(
        found.state.tokens, expected.state.tokens, strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_one_token_needs_no_draft(pair):
    model, small = pair
    found = model.generate(PROMPTS, 1, SpeculativeDecoding(small))
    assert_same(found, model.generate(PROMPTS, 1))
    assert (found.speculation.num_draft_tokens == 0).all()


def chances(rng, *shape):
    weights = rng.gamma(0.5, size=shape)
    weights[rng.random(shape) < 0.2] = 0
    weights[..., 0] += 1e-3
    return (weights / weights.sum(-1, keepdims=True)).astype("float32")


@pytest.mark.every_backend
@pytest.mark.parametrize("certain", [False, True])
def test_acceptance_equals_the_formula(certain):
    """Probabilities on both sides of the bound, and the residual by loops."""
    rng = np.random.default_rng(0)
    size = 6
    p = chances(rng, 40, 2, size)
    q = chances(rng, 40, 1, size)
    q[:5] = p[:5, :1]
    tokens = np.repeat(np.arange(size, dtype="int32")[None], 40, 0)
    marginal = np.zeros((40, size))
    for token in range(size):
        drafts = tokens[:, token : token + 1]
        if certain:
            q = np.eye(size, dtype="float32")[drafts]
        chance = np.minimum(
            1, p[:, 0, token] / np.maximum(q[:, 0, token], 1e-9)
        )
        residuals = []
        for nudge, wanted in ((1 - 1e-5, 1), (1 + 1e-5, 0)):
            uniforms = np.minimum(chance * nudge, 1 - 2**-24)[:, None]
            accepted, weights = accept(
                *map(ops.convert_to_tensor, (p, q)[: 2 - certain]),
                *([None] if certain else []),
                ops.convert_to_tensor(drafts),
                ops.ones((40,), "int32"),
                ops.convert_to_tensor(uniforms.astype("float32")),
            )
            accepted = ops.convert_to_numpy(accepted)
            possible = q[:, 0, token] > 0
            if wanted == 0:
                possible &= chance < 1 - 1e-4
            else:
                possible &= chance > 0
            assert (accepted[possible] == wanted).all()
            residuals.append((accepted, ops.convert_to_numpy(weights)))
        accepted, after_all = residuals[0]
        rows = accepted == 1
        np.testing.assert_allclose(after_all[rows], p[rows, 1], 1e-5)
        accepted, weights = residuals[1]
        for row in range(40):
            expected = np.array(
                [max(0, p[row, 0, v] - q[row, 0, v]) for v in range(size)]
            )
            if accepted[row] == 0 and expected.sum() > 1e-5:
                np.testing.assert_allclose(weights[row], expected, 1e-4, 1e-6)
                drawn = expected / expected.sum()
                marginal[row] += q[row, 0, token] * (1 - chance[row]) * drawn
        marginal[:, token] += q[:, 0, token] * chance
    if not certain:
        np.testing.assert_allclose(marginal, p[:, 0], 1e-3, 1e-4)


def test_no_more_tokens_are_accepted_than_drafted():
    p = np.full((3, 4, 5), 0.2, "float32")
    accepted, weights = accept(
        ops.convert_to_tensor(p),
        ops.convert_to_tensor(p[:, :3]),
        ops.zeros((3, 3), "int32"),
        ops.convert_to_tensor(np.array([0, 2, 3], "int32")),
        ops.zeros((3, 3)) + 0.5,
    )
    assert ops.convert_to_numpy(accepted).tolist() == [0, 2, 3]
    np.testing.assert_allclose(ops.convert_to_numpy(weights), p[:, 0])


SMALL_V, LENGTH, END = 5, 3, 2
DRAWS = 2500


def exact(model, prompt, strategy):
    """Probabilities of all sequences, by full passes and NumPy."""
    found = {}
    paths = [()]
    for _ in range(LENGTH):
        rows = np.array([[*prompt, *path] for path in paths])
        logits = ops.convert_to_numpy(model(rows))[:, -1].astype("float64")
        following = []
        for path, row in zip(paths, logits, strict=True):
            p = np.exp((row - row.max()) / strategy.temperature)
            p[:2] = 0  # padding and start
            order = np.argsort(-p, kind="stable")
            ranked = p[order]
            if strategy.top_k is not None:
                ranked[strategy.top_k :] = 0
            before = np.cumsum(ranked) - ranked
            ranked[before >= (strategy.top_p or 1) * ranked.sum()] = 0
            p[order] = ranked / ranked.sum()
            for token in np.flatnonzero(p):
                chance = found.get(path, 1.0) * p[token]
                following.append(((*path, int(token)), chance))
        found = {
            path: chance
            for path, chance in found.items()
            if path[-1:] == (END,)
        } | dict(following)
        paths = [p for p, _ in following if p[-1] != END]
    return found


def counted(decoded):
    found = {}
    for tokens, length in zip(
        decoded.tokens[0], decoded.lengths[0], strict=True
    ):
        path = tuple(map(int, tokens[:length]))
        found[path] = found.get(path, 0) + 1
    return found


def distance(found, expected):
    """Pearson's statistic per degree of freedom, about 1 if equal."""
    assert found.keys() <= expected.keys()
    rare = [path for path, p in expected.items() if p * DRAWS < 5]
    often = [path for path in expected if path not in rare]
    pairs = [(found.get(path, 0), expected[path] * DRAWS) for path in often]
    if rare:
        pairs.append(
            (
                sum(found.get(path, 0) for path in rare),
                sum(expected[path] for path in rare) * DRAWS,
            )
        )
    return sum((n - m) ** 2 / m for n, m in pairs if m) / (len(pairs) - 1)


@pytest.fixture(scope="module")
def tiny_pair():
    options = {"vocabulary_size": SMALL_V, "end_id": END, "scale": 4.0}
    return gpt(1, 3, **options), gpt(1, 4, **options)


@pytest.mark.every_backend
@pytest.mark.parametrize(
    "options", [{}, {"temperature": 0.7, "top_k": 3, "top_p": 0.9}]
)
def test_samples_have_the_distribution_of_the_target(tiny_pair, options):
    model, small = tiny_pair
    prompt = [3, 4, 3]
    sampling = Sampling(seed=5, num_return_sequences=DRAWS, **options)
    expected = exact(model, prompt, sampling)
    assert abs(sum(expected.values()) - 1) < 1e-9
    strategies = [SpeculativeDecoding(small, 2, sampling)]
    if not options:
        strategies.append(PromptLookup(2, 1, sampling))
    for strategy in strategies:
        decoded = model.generate([prompt], LENGTH, strategy)
        assert distance(counted(decoded), expected) < 2
        counts = decoded.speculation
        accepted = counts.num_accepted_tokens.sum()
        assert 0.1 < accepted / counts.num_draft_tokens.sum() < 0.95
    if not options:
        # The statistic tells the assistant from the target.
        wrong = small.generate([prompt], LENGTH, sampling)
        assert distance(counted(wrong), expected) > 8


@pytest.mark.parametrize(
    "options", [{}, {"top_k": 4}, {"top_p": 0.6}, {"top_k": 5, "top_p": 0.8}]
)
def test_probabilities_are_those_of_the_drawn_tokens(options):
    rng = np.random.default_rng(1)
    logits = rng.normal(size=(3, 9)).astype("float32")
    logits[0, :4] = logits[0, 4]  # ties
    logits[1, :2] = -np.inf
    logits[2, 1:] = -np.inf
    sampling = Sampling(temperature=0.8, **options)
    p = ops.convert_to_numpy(sampling.probabilities(logits))
    count = 4000
    uniforms = ((np.arange(count) + 0.5) / count).astype("float32")
    drawn = sampling.get_next_token(
        ops.convert_to_tensor(np.repeat(logits[:, None], count, 1)),
        ops.convert_to_tensor(0),
        ops.convert_to_tensor(np.repeat(uniforms[None, :, None], 3, 0)),
    )
    drawn = ops.convert_to_numpy(drawn)
    for row in range(3):
        frequency = np.bincount(drawn[row], minlength=9) / count
        np.testing.assert_allclose(p[row], frequency, atol=1e-3)
    nothing = sampling.probabilities(np.full((1, 9), -np.inf, "float32"))
    assert not ops.convert_to_numpy(nothing).any()


@pytest.mark.parametrize("ngram_size", [1, 3])
def test_lookups_equal_those_of_transformers(ngram_size):
    torch = pytest.importorskip("torch")
    from transformers.generation.candidate_generator import (
        PromptLookupCandidateGenerator,
    )

    count, size = 3, 14
    theirs = PromptLookupCandidateGenerator(
        num_output_tokens=count,
        max_matching_ngram_size=ngram_size,
        max_length=99,
    )
    rng = np.random.default_rng(0)
    rows, lengths = [], []
    for _ in range(60):
        row = rng.integers(0, 4, rng.integers(1, size - 1))
        start = rng.integers(0, size - len(row))
        filled = np.zeros(size, "int32")
        filled[:start] = -1
        filled[start : start + len(row)] = row
        rows.append(filled)
        lengths.append(start + len(row))
    drafts, known = ngram_drafts(
        ops.convert_to_tensor(np.array(rows)),
        ops.convert_to_tensor(np.array(lengths, "int32")),
        ngram_size,
        count,
    )
    drafts, known = map(ops.convert_to_numpy, (drafts, known))
    assert {0, 1, 2, 3} == set(known.tolist())
    for row, length, draft, number in zip(
        rows, lengths, drafts, known, strict=True
    ):
        tokens = row[:length][row[:length] >= 0]
        found, _ = theirs.get_candidates(torch.tensor(tokens[None]).long())
        added = found[0, len(tokens) :].numpy()
        np.testing.assert_array_equal(draft[:number], added)


@pytest.mark.captured_steps
def test_changes_of_the_assistant_are_seen():
    model, small = gpt(1, 0), gpt(1, 5)
    strategy = SpeculativeDecoding(small, 1)
    before = model.generate(PROMPTS, 5, strategy)
    small.set_weights(model.get_weights())
    after = model.generate(PROMPTS, 5, strategy)
    assert_same(after, before._replace(speculation=None))
    number = before.speculation.num_accepted_tokens.sum()
    assert number < after.speculation.num_accepted_tokens.sum()
    assert (after.speculation.num_accepted_tokens == 2).all()
    # A Python attribute, which programs contain.
    small.logits_soft_cap = 1e-9
    spoilt = model.generate(PROMPTS, 5, strategy)
    assert_same(spoilt, before._replace(speculation=None))
    assert (spoilt.speculation.num_accepted_tokens < 2).any()


def test_the_assistant_is_freed():
    model, small = gpt(1, 0), gpt(1, 5)
    model.generate([[5]], 2, SpeculativeDecoding(small, 1))
    reference = weakref.ref(small)
    del small
    gc.collect()
    assert reference() is None


def test_numbers_that_are_none_raise():
    model, small = gpt(1, 0), gpt(1, 5)
    strategy = SpeculativeDecoding(small, 2)
    weight = small.trainable_variables[0]
    kept = weight.numpy() if hasattr(weight, "numpy") else np.array(weight)
    weight.assign(np.full(weight.shape, np.nan))
    with pytest.raises(
        ValueError, match=r"`assistant_model` must return logits"
    ):
        model.generate(PROMPTS, 4, strategy)
    weight.assign(kept)
    weight = model.trainable_variables[0]
    weight.assign(np.full(weight.shape, np.nan))
    with pytest.raises(ValueError, match=r"in step 1 of the search"):
        model.generate(PROMPTS, 4, strategy)


@pytest.mark.one_backend
def test_what_is_not_supported_is_refused_by_name(pair):
    model, small = pair
    with pytest.raises(ValueError, match=r"no `rules`.*Temperature"):
        PromptLookup(strategy=GreedySearch(rules=[Temperature(0.5)]))
    with pytest.raises(ValueError, match=r"`strategy`.*BeamSearch"):
        PromptLookup(strategy=BeamSearch())

    class Own(Sampling):
        pass

    with pytest.raises(ValueError, match=r"`strategy`.*Own"):
        SpeculativeDecoding(small, strategy=Own())
    with pytest.raises(ValueError, match=r"`stream`.*PromptLookup"):
        model.stream(PROMPTS, 4, PromptLookup())
    transformer = Transformer(
        V, num_layers=1, num_heads=1, hidden_dim=4, intermediate_dim=4
    )
    with pytest.raises(ValueError, match=r"`model` must be a `GPT`.*Transfo"):
        transformer.generate([[5, 6, 2]], 4, PromptLookup())
    xlnet = XLNet(V, num_layers=1, num_heads=1, hidden_dim=4)
    with pytest.raises(ValueError, match=r"`assistant_model` must be.*XLNet"):
        SpeculativeDecoding(xlnet)
    with pytest.raises(ValueError, match=r"vocabulary of the model, 12.* 5 "):
        model.generate(PROMPTS, 4, SpeculativeDecoding(gpt(vocabulary_size=5)))
    with pytest.raises(ValueError, match=r"`assistant_model`.*6 tokens"):
        model.generate(
            PROMPTS, 4, SpeculativeDecoding(gpt(max_sequence_length=8))
        )
    scaling = {
        "rope_type": "dynamic",
        "factor": 2.0,
        "original_max_position_embeddings": 4,
    }
    growing = gpt(
        position_embedding=None,
        max_sequence_length=None,
        attention_position=RotaryPosition(scaling=scaling),
    )
    with pytest.raises(ValueError, match=r"depends_on_length=True"):
        growing.generate(PROMPTS, 4, PromptLookup())


@pytest.mark.one_backend
def test_a_distribution_is_refused(pair, monkeypatch):
    monkeypatch.setattr(keras.distribution, "distribution", lambda: "a mesh")
    with pytest.raises(ValueError, match=r"`keras.distribution`.*PromptLook"):
        generate(pair[0], PROMPTS, 4, PromptLookup())


def test_generate_takes_padded_prompts_too(pair):
    model, small = pair
    rows = np.array([[5, 6, 7, 3], [7, 8, 0, 0]], "int32")
    strategy = SpeculativeDecoding(small, 2)
    found = generate(model, rows, 6, strategy)
    assert_same(found, generate(model, rows, 6, "greedy"))


def test_all_sequences_of_the_enumeration_are_there(tiny_pair):
    model, _ = tiny_pair
    expected = exact(model, [3, 4, 3], Sampling())
    tokens = [3, 4]
    ended = sum(
        len([*itertools.product(tokens, repeat=n)]) for n in range(LENGTH)
    )
    assert len(expected) == ended + len(tokens) ** LENGTH
