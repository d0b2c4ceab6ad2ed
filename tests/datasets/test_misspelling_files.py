"""Lists of misspellings."""

import pytest

from keras_attn.datasets import DataFileError, read_misspellings

pytestmark = pytest.mark.one_backend

TEXT = """\
becuase->because
abd->and, bad,
clas->class, disabled because of a name

teh \t the\tremark
recieve -> receive
same->same
becuase->because
"""
WORDS = [
    ("becuase", "because"),
    ("clas", "class"),
    ("teh", "the"),
    ("recieve", "receive"),
]


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
def test_words_with_one_correction(write, name):
    words = read_misspellings(write(name, TEXT))
    assert words == WORDS
    assert (words[0].wrong, words[0].right) == WORDS[0]


@pytest.mark.parametrize("text", ["", "abd->and, bad,\n", "a->a\n"])
def test_lists_without_words_raise(write, text):
    with pytest.raises(DataFileError, match="misspelling with one correction"):
        read_misspellings(write("a", text))
