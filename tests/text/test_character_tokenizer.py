"""CharacterTokenizer: ids, texts, files and errors."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_attn.text import CharacterTokenizer

pytestmark = pytest.mark.one_backend

TOKENIZER = CharacterTokenizer("ab é\n猫")


def test_ids():
    assert TOKENIZER.vocabulary_size == 10
    assert TOKENIZER.encode("ba猫?") == [5, 4, 9, 3]
    assert TOKENIZER.encode(["a", ""]) == [[4], []]
    assert TOKENIZER.pieces([0, 1, 2, 3, 4]) == [
        *("<pad>", "<s>", "</s>", "<unk>"),
        "a",
    ]


@given(st.text("ab é\n猫"))
def test_known_characters_round_trip(text):
    assert TOKENIZER.decode(TOKENIZER.encode(text)) == text


def test_decoding_stops_at_the_end_id():
    ids = np.array([[[1, 4, 3, 2, 5]], [[4, 0, 5, 0, 0]]], "int32")
    assert TOKENIZER.decode(ids) == [["a\ufffd"], ["ab"]]
    assert TOKENIZER.decode([4, 5]) == "ab"


def test_training_sorts_the_characters():
    tokenizer = CharacterTokenizer.train_from_lines(["ba", "cab"])
    assert tokenizer.pieces([4, 5, 6]) == ["a", "b", "c"]


def test_saved_tokenizer_is_loaded(tmp_path):
    TOKENIZER.save(tmp_path / "new")
    loaded = CharacterTokenizer.load(tmp_path / "new")
    ids = range(TOKENIZER.vocabulary_size)
    assert loaded.pieces(ids) == TOKENIZER.pieces(ids)


@pytest.mark.parametrize("content", [{}, {"characters": "aa"}, {"a": 1}])
def test_damaged_file_is_refused(content, tmp_path):
    (tmp_path / "characters.json").write_text(json.dumps(content), "utf-8")
    message = "`characters` in characters.json of `directory` must be"
    with pytest.raises(ValueError, match=message):
        CharacterTokenizer.load(tmp_path)


@pytest.mark.parametrize("characters", ["", "aba", ["ab"], [1], 3, None])
def test_bad_characters(characters):
    with pytest.raises(ValueError, match="`characters` must be a str"):
        CharacterTokenizer(characters)


@pytest.mark.parametrize("lines", ["abc", [""], [], [3]])
def test_bad_lines(lines):
    with pytest.raises(ValueError, match="`lines` must"):
        CharacterTokenizer.train_from_lines(lines)


def test_bad_texts():
    with pytest.raises(ValueError, match="`texts` must be a str or a list"):
        TOKENIZER.encode(["a", 3])
    with pytest.raises(ValueError, match=r"`ids` must lie in \[0, 10\)"):
        TOKENIZER.decode([10])
