"""load_tokenizer: the class by the files of a folder, and errors."""

import pytest

from keras_attn.text import (
    BytePairTokenizer,
    CharacterTokenizer,
    SubwordTokenizer,
    UnigramTokenizer,
    WordPieceTokenizer,
    load_tokenizer,
)

pytestmark = pytest.mark.one_backend

LINES = ["the cat sat on the mat", "the dog sat on the cat"]


@pytest.mark.parametrize(
    "tokenizer, size",
    [
        (WordPieceTokenizer, [40]),
        (BytePairTokenizer, [280]),
        (SubwordTokenizer, [290]),
        (CharacterTokenizer, []),
        (UnigramTokenizer, [30]),
    ],
)
def test_files_select_the_class(tokenizer, size, tmp_path):
    saved = tokenizer.train_from_lines(LINES, *size)
    saved.save(tmp_path)
    loaded = load_tokenizer(tmp_path)
    assert type(loaded) is tokenizer
    assert loaded.encode(LINES) == saved.encode(LINES)


def test_folder_without_a_tokenizer_is_refused(tmp_path):
    message = "`directory` must be a folder with tokenizer.json or one of these"
    with pytest.raises(ValueError, match=message):
        load_tokenizer(tmp_path)
    with pytest.raises(ValueError, match="`directory` must be a path"):
        load_tokenizer(3)


def test_the_model_type_does_not_hide_a_tokenizer_of_ours(tmp_path):
    SubwordTokenizer.train_from_lines(LINES, 290).save(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}', "utf-8")
    assert isinstance(load_tokenizer(tmp_path), SubwordTokenizer)
