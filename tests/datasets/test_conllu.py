"""Sentences with part-of-speech tags."""

import pytest

from keras_attn.datasets import DataFileError, read_conllu

pytestmark = pytest.mark.one_backend

TEXT = """\
# newdoc id = one
# text = Don't go
1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tDo\tdo\tAUX\tVB\tMood=Imp\t3\taux\t3:aux\t_
2\tn't\tnot\tPART\tRB\t_\t3\tadvmod\t_\t_
2.1\tyou\tyou\tPRON\tPRP\t_\t_\t_\t_\t_
3\tgo\tgo\tVERB\tVB\t_\t0\troot\t_\t_

# text = 10 000
1\t10 000\t10000\tNUM\tCD\t_\t0\troot\t_\t_
"""
WORDS = [("Do", "n't", "go"), ("10 000",)]


@pytest.mark.parametrize(
    "text", [TEXT, TEXT.replace("\n", "\r\n"), "\n" + TEXT + "\n\n"]
)
@pytest.mark.parametrize("name", ["a.conllu", "a.conllu.gz"])
def test_words_and_tags(write, text, name):
    path = write(name, text)
    sentences = read_conllu(path)
    assert [sentence.words for sentence in sentences] == WORDS
    tags = [sentence.tags for sentence in sentences]
    assert tags == [("AUX", "PART", "VERB"), ("NUM",)]
    sentences = read_conllu(path, tags="xpos")
    assert [sentence.words for sentence in sentences] == WORDS
    tags = [sentence.tags for sentence in sentences]
    assert tags == [("VB", "RB", "VB"), ("CD",)]


def test_invalid_arguments_raise(write):
    with pytest.raises(DataFileError, match="at least one sentence with tags"):
        read_conllu(write("a", "# text = none\n\n"))
    with pytest.raises(ValueError, match="`tags` must be one of 'upos', 'xpos"):
        read_conllu(write("a", TEXT), tags="ner")
