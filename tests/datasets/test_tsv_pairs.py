"""Tab-separated sentence pairs."""

import pytest

from keras_attn.datasets import DataFileError, read_tsv_pairs

pytestmark = pytest.mark.one_backend

PAIRS = [("Go.", "Ve."), ("Go.", "Vete."), ("I don't!", "¡Yo no, ñu! 猫")]
TSV = "".join(f"{source}\t{target}\n" for source, target in PAIRS)


@pytest.mark.parametrize(
    "content",
    [
        TSV,
        TSV.removesuffix("\n"),
        TSV.replace("\n", "\r\n"),
        "\ufeff" + TSV,
        TSV.replace("\n", "\tCC-BY 2.0\tmore\n"),
        "\n" + TSV.replace("\n", "\n\n \n"),
        "no translation\t\n" + TSV + "\tno source\n",
    ],
    ids="plain open crlf bom columns blank half".split(),
)
@pytest.mark.parametrize("name", ["pairs.txt", "pairs.tsv.gz", "pairs"])
def test_pairs(write, content, name):
    pairs = read_tsv_pairs(write(name, content))
    assert pairs == PAIRS
    assert (pairs[0].source, pairs[0].target) == PAIRS[0]


def test_sentences_are_unchanged(write):
    odd = [(" a\u2028b\x0c ", 'c\x85 "d"'), ("e\rf", "\u00a0g")]
    path = write("odd", "".join(f"{s}\t{t}\n" for s, t in odd))
    assert read_tsv_pairs(path) == odd


@pytest.mark.parametrize("content", ["", "\n\n", "\t\n \t \n"])
def test_files_without_pairs_raise(write, content):
    with pytest.raises(DataFileError, match="at least one pair of a source"):
        read_tsv_pairs(write("a", content))


def test_other_encodings_raise(write):
    path = write("a", TSV.encode("utf-16"))
    with pytest.raises(DataFileError, match="line 1: expected UTF-8 text"):
        read_tsv_pairs(path)
