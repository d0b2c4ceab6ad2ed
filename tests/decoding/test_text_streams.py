"""Texts of `stream`: decided when they are emitted, and complete."""

import numpy as np
import pytest

from keras_attn.decoding import BeamSearch, GreedySearch, Sampling, stream
from keras_attn.decoding.text_streams import TextStreams
from keras_attn.text import (
    BytePairTokenizer,
    SubwordTokenizer,
    UnigramTokenizer,
    WordPieceTokenizer,
    load_tokenizer,
)
from tests.decoding.test_stop_strings import (
    LENGTH,
    LINES,
    SOURCES,
    STOPS,
    TOKENIZER,
    Markov,
    contains,
)

pytestmark = pytest.mark.one_backend


@pytest.fixture(scope="module")
def model():
    table = np.random.default_rng(5).normal(size=(3, 7, 7))
    table[..., 2] -= 2
    return Markov(table)


def cut(text):
    starts = [text.find(string) for string in STOPS if string in text]
    return text[: min(starts)] if starts else text


@pytest.mark.parametrize("stops", [None, STOPS])
@pytest.mark.parametrize(
    "strategy",
    [
        GreedySearch(),
        Sampling(seed=3, num_return_sequences=3),
        BeamSearch(3, 2, length_penalty=0.0),
    ],
    ids=["greedy", "sampling", "beam"],
)
def test_pieces_are_the_text_before_the_stop_string(model, strategy, stops):
    options = {"stop_strings": stops, "tokenizer": TOKENIZER}
    items = [*stream(model, SOURCES, LENGTH, strategy, **options)]
    last, early, stopped = items[-1], 0, 0
    for row, j in np.ndindex(*last.lengths.shape):
        text = TOKENIZER.decode(last.tokens[row, j, : last.lengths[row, j]])
        pieces = [item.texts[row][j] for item in items]
        assert "".join(pieces) == (cut(text) if stops else text)
        early += any(pieces[:-1])
        stopped += contains(last.tokens[row, j])
    assert early
    assert stopped
    plain = next(stream(model, SOURCES, LENGTH, strategy))
    assert plain.texts is None


class Active:
    """The active sequences of one row of greedy search."""

    def __init__(self, tokens):
        self.tokens = np.array([[tokens]])
        self.lengths = np.array([[len(tokens)]])


def pieces(tokenizer, ids, stops=()):
    """Returns the text that each token of one sequence decides."""
    texts = TextStreams(tokenizer, tuple(stops), (), reorders=False)
    return [
        texts.new(
            np.array([[ids[:n]]]),
            np.array([[n]]),
            Active(ids[:n] if n < len(ids) else []),
        )[0][0]
        for n in range(1, len(ids) + 1)
    ]


@pytest.fixture(scope="module")
def kinds(tmp_path_factory):
    words = "[PAD] [UNK] [CLS] [SEP] [MASK] low don t ' . , ! n s ve".split()
    vocab = [("<pad>", 0), ("</s>", 0), ("<unk>", 0), ("\u2581low", -1)]
    vocab += [("\u2581", -2), ("er", -3), ("e", -4), ("r", -4), ("a", -4)]
    found = {
        "bytes": BytePairTokenizer.train_from_lines(LINES, 280),
        "words": WordPieceTokenizer([*words, "##er", "##s", "##t"]),
        "pieces": UnigramTokenizer(vocab),
        "subwords": SubwordTokenizer.train_from_lines(LINES, 290),
    }
    folder = tmp_path_factory.mktemp("fallback")
    folder.joinpath("tokenizer.json").write_text(_fallback(), encoding="utf-8")
    folder.joinpath("tokenizer_config.json").write_text(
        '{"tokenizer_class": "LlamaTokenizer"}', encoding="utf-8"
    )
    found["fallback"] = load_tokenizer(folder)
    return found


def _fallback():
    """Returns a tokenizer.json as Llama's, with tokens of bytes."""
    import tokenizers
    from tokenizers import decoders, models, normalizers

    names = ["<unk>", "\u2581", "l", "o", "w", "\u2581low"]
    names += [f"<0x{byte:02X}>" for byte in range(256)]
    vocab = {name: number for number, name in enumerate(names)}
    engine = tokenizers.Tokenizer(
        models.BPE(vocab, [], unk_token="<unk>", byte_fallback=True)
    )
    engine.normalizer = normalizers.Sequence(
        [normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")]
    )
    engine.decoder = decoders.Sequence(
        [
            decoders.Replace("\u2581", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    return engine.to_str()


@pytest.mark.parametrize(
    "name", ["bytes", "words", "pieces", "subwords", "fallback"]
)
def test_pieces_of_any_tokens_are_their_text(kinds, name):
    tokenizer = kinds[name]
    random = np.random.default_rng(0)
    size = tokenizer.vocabulary_size
    text = tokenizer.encode("lower a \u00e9\u732b don't ve low's!")
    rows = [text, *(random.integers(0, size, 9).tolist() for _ in range(60))]
    rows += [random.choice(text, 9).tolist() for _ in range(60)]
    for ids in rows:
        found = pieces(tokenizer, ids)
        assert "".join(found) == tokenizer.decode(ids)
    assert sum(map(bool, pieces(tokenizer, text)[:-1])) > 2


def test_half_characters_and_open_stop_strings_are_held_back(kinds):
    tokenizer = kinds["subwords"]
    ids = tokenizer.encode("a\u0436low")
    assert next(filter(None, pieces(tokenizer, ids))) == "a"
    assert all("\ufffd" not in piece for piece in pieces(tokenizer, ids))
    characters = [tokenizer.encode(c)[-1] for c in "UsUser"]
    found = pieces(tokenizer, characters, ["User:"])
    assert "".join(found) == tokenizer.decode(characters)
    assert found[:2] == ["", ""]
    # The first one was no beginning.
    assert found[2] == "Us"


def test_tokenizer_that_changes_its_text():
    class Reversed:
        def decode(self, ids):
            return "".join(map(str, reversed(ids)))

    with pytest.raises(ValueError, match="`tokenizer` must not change"):
        pieces(Reversed(), [3, 4, 5])
