"""Sentences with BIO tags."""

import pytest

from keras_attn.datasets import read_conll_bio

pytestmark = pytest.mark.one_backend

ROWS = [
    [("#1", "O"), ("Ann", "B-person"), ("Lee", "I-person"), ("\u00a0", "O")],
    [("EU", "I-creative-work")],
]


@pytest.mark.parametrize(
    "row, blank",
    [
        ("{}\t{}\n", "\n"),
        ("{} {}\n", "\n\n"),
        ("{} NNP  B-NP {} \n", " \n"),
        ("{}\tNNP\t{}\r\n", "\t\r\n"),
    ],
)
def test_words_and_tags(write, row, blank):
    text = blank.join(
        "".join(row.format(*pair) for pair in sentence) for sentence in ROWS
    )
    if "NNP" in row:
        text = f"{row.format('-DOCSTART-', 'O')}{blank}{text}{blank}"
    sentences = read_conll_bio(write("a.conll", text))
    pairs = [list(zip(s.words, s.tags, strict=True)) for s in sentences]
    assert pairs == ROWS
