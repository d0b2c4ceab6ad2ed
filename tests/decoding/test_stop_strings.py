"""Stop strings: the automaton, and searches that end at them."""

import numpy as np
import pytest
import transformers

from keras_attn.decoding import BeamSearch, GreedySearch, Sampling, generate
from keras_attn.decoding import stream as stream_steps
from keras_attn.decoding.stop_strings import stop_table
from keras_attn.text import (
    BytePairTokenizer,
    CharacterTokenizer,
    SubwordTokenizer,
    UnigramTokenizer,
    WordPieceTokenizer,
)
from tests.decoding.markov import Markov
from tests.helpers.decoding_reference import assert_equals, beam_search

LENGTH = 8
SOURCES = np.array([[3, 9], [4, 9], [5, 9], [8, 0]], "int32")
# Strings across tokens, inside of one, and with a common beginning.
STOPS = ["aab", "bdc", "abb", "cad"]
LINES = ["low lower lowest, é", "new newer newest 猫", "User: a b\n\n"] * 6


class Texts:
    """A tokenizer of the texts of a few ids."""

    def __init__(self, *texts):
        self.texts = texts

    def token_bytes(self):
        return [text.encode() for text in self.texts]

    def decode(self, ids):
        return "".join(self.texts[i] for i in ids)


TOKENIZER = Texts("", "", "", "a", "b", "ab", "dca")


def contains(tokens):
    return any(string in TOKENIZER.decode(tokens) for string in STOPS)


@pytest.fixture(scope="module")
def model():
    table = np.random.default_rng(5).normal(size=(3, 7, 7))
    table[..., 2] -= 2
    return Markov(table)


def allowed(tokens):
    return range(2, 7)


@pytest.mark.every_backend
@pytest.mark.parametrize("width", [2, 1, 4])
def test_beam_search_ends_at_stop_strings(model, width):
    strategy = BeamSearch(width, width, length_penalty=0.0)
    found = generate(
        model,
        SOURCES,
        LENGTH,
        strategy,
        stop_strings=STOPS,
        tokenizer=TOKENIZER,
    )
    expected = [
        beam_search(
            lambda tokens, s=source: model.log_probs(s, tokens),
            allowed,
            LENGTH,
            2,
            width,
            width,
            stops=contains,
        )
        for source in SOURCES
    ]
    assert_equals(found, expected)
    ended = [tokens for row in expected for _, tokens in row]
    assert any(contains(tokens) for tokens in ended)


@pytest.mark.every_backend
@pytest.mark.parametrize(
    "strategy", [GreedySearch(), Sampling(seed=3, num_return_sequences=3)]
)
def test_sequences_end_at_stop_strings(model, strategy):
    free = generate(model, SOURCES, LENGTH, strategy)
    options = {"stop_strings": STOPS, "tokenizer": TOKENIZER}
    found = generate(model, SOURCES, LENGTH, strategy, **options)
    stopped = 0
    for before, tokens, length in zip(
        free.tokens.reshape(-1, LENGTH),
        found.tokens.reshape(-1, LENGTH),
        found.lengths.ravel(),
        strict=True,
    ):
        before = before.tolist()
        ends = [
            n
            for n in range(1, LENGTH + 1)
            if contains(before[:n]) or before[n - 1] == 2
        ]
        expected = before[: min(ends, default=LENGTH)]
        assert tokens[:length].tolist() == expected
        assert not tokens[length:].any()
        stopped += contains(expected)
    assert stopped
    *_, last = stream_steps(model, SOURCES, LENGTH, strategy, **options)
    np.testing.assert_array_equal(last.tokens, found.tokens)


@pytest.mark.parametrize("strategy", ["greedy", "beam"])
def test_prefix_counts_and_the_prompt_does_not(strategy):
    never = np.zeros((1, 7, 7))
    never[..., 6] = 50.0
    options = {"stop_strings": "bdca", "tokenizer": TOKENIZER}
    model = Markov(never)
    found = generate(model, SOURCES[1:2], 4, strategy, **options)
    assert found.lengths[0, 0] == 4
    found = generate(model, SOURCES[1:2], 4, strategy, prefix=[3, 5], **options)
    assert found.tokens[0, 0].tolist() == [3, 5, 6, 0]


def test_tokens_that_the_tokenizer_does_not_have():
    # After 5 the model chooses 6, which has no text and breaks the match.
    table = np.full((1, 7, 7), -9.0)
    table[0, [1, 5, 6, 4], [5, 6, 4, 4]] = 9
    options = {"stop_strings": ["abb"], "tokenizer": Texts(*"012ab", "ab")}
    found = generate(Markov(table), SOURCES[:1], 5, "greedy", **options)
    assert found.tokens[0, 0].tolist() == [5, 6, 4, 4, 4]
    # Tokens that the model does not have.
    options["tokenizer"] = Texts(*"012ab", "ab", "b", "b", "b")
    found = generate(Markov(table), SOURCES[:1], 5, "greedy", **options)
    assert found.tokens[0, 0].tolist() == [5, 6, 0, 0, 0]


def tokenizers():
    words = "[PAD] [UNK] [CLS] [SEP] [MASK] low ##er a b : , user new".split()
    pieces = [
        ("<pad>", 0),
        ("</s>", 0),
        ("<unk>", 0),
        ("\u2581low", -1),
        ("er", -2),
        ("\u2581", -3),
    ]
    pieces += [(character, -4) for character in "abnewst:,U"]
    return {
        "bytes": BytePairTokenizer.train_from_lines(LINES, 280),
        "words": WordPieceTokenizer([*words, *map("##{}".format, "abcdefst")]),
        "pieces": UnigramTokenizer(pieces),
        "subwords": SubwordTokenizer.train_from_lines(LINES, 290),
        "characters": CharacterTokenizer("lower a猫\u00e9\n:Ub"),
    }


@pytest.fixture(scope="module")
def kinds():
    return tokenizers()


@pytest.mark.one_backend
@pytest.mark.parametrize(
    "name", ["bytes", "words", "pieces", "subwords", "characters"]
)
def test_bytes_of_tokens_are_those_of_the_text(kinds, name):
    tokenizer = kinds[name]
    tokens = tokenizer.token_bytes()
    assert len(tokens) == tokenizer.vocabulary_size
    has_bytes = name in ("bytes", "subwords")
    text = "lower a 猫\u00e9\u0436 b\n" if has_bytes else "lower a"
    ids = tokenizer.encode(text)
    found = b"".join(tokens[i] for i in ids).decode()
    assert found.removeprefix(" ") == tokenizer.decode(ids)
    if has_bytes:
        # Halves of a character.
        assert any(len(tokens[i]) == 1 and tokens[i] > b"\x7f" for i in ids)


@pytest.mark.one_backend
@pytest.mark.parametrize("name", ["bytes", "words"])
def test_searches_stop_where_transformers_stops(kinds, name, tmp_path):
    import torch

    tokenizer = kinds[name]
    tokenizer.save(tmp_path)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    strings = ["er", "ower l", "\u00e9", "a", " b", "se"]
    if name == "words":
        strings = [" lower", "era", "t : "]
    criteria = transformers.StopStringCriteria(theirs, strings)
    table = stop_table(tuple(strings), tokenizer)
    random = np.random.default_rng(0)
    text = tokenizer.encode(" ".join(LINES[:3]))
    stops = 0
    for _ in range(150):
        ids = random.choice(text, 12)
        start = random.integers(len(text) - 5)
        ids[6:] = text[start : start + 6]
        state = 0
        for length in range(1, 13):
            state = table[state, ids[length - 1]]
            expected = criteria(torch.tensor(ids[None, :length]), None)
            assert (state == len(table) - 1) == bool(expected)
            if expected:
                stops += 1
                break
    assert stops > 20


@pytest.mark.one_backend
def test_automaton_finds_strings_wherever_they_start():
    random = np.random.default_rng(1)
    for _ in range(200):
        pieces = ["".join(random.choice([*"ab"], n)) for n in (0, 1, 2, 3, 4)]
        strings = [
            "".join(random.choice([*"ab"], n)) for n in random.integers(1, 6, 3)
        ]
        table = stop_table(tuple(strings), Texts(*pieces))
        ids, state = random.integers(0, 5, 8), 0
        for length in range(1, 9):
            state = table[state, ids[length - 1]]
            text = "".join(pieces[i] for i in ids[:length])
            found = any(string in text for string in strings)
            assert (state == len(table) - 1) == found


@pytest.mark.one_backend
def test_bad_arguments(model):
    def call(**options):
        generate(model, SOURCES, 2, "greedy", **options)

    for wrong in ("", [""], [3], 3, {"a": 1}):
        with pytest.raises(ValueError, match="`stop_strings` must be a str or"):
            call(stop_strings=wrong, tokenizer=TOKENIZER)
    with pytest.raises(ValueError, match="no lone surrogates"):
        call(stop_strings="\ud800", tokenizer=TOKENIZER)
    with pytest.raises(ValueError, match="`stop_strings` need the `tokenizer`"):
        call(stop_strings="a")
    with pytest.raises(ValueError, match="`tokenizer` must have the methods"):
        call(tokenizer=3)

    class Own(GreedySearch):
        def choose(self, search_state, step, log_probs, uniforms, spec):
            return super().choose(search_state, step, log_probs, uniforms, spec)

    with pytest.raises(ValueError, match="has the argument `ends`"):
        generate(
            model, SOURCES, 2, Own(), stop_strings="a", tokenizer=TOKENIZER
        )
