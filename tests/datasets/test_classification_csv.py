"""Labeled sentences in tables."""

import csv
import io

import pytest

from keras_attn.datasets import DataFileError, read_classification_csv

pytestmark = pytest.mark.one_backend

ROWS = [
    ("good, really", "no", 'pos "1"'),
    ("two\nlines", "ünï", "neg"),
    (" kept ", "a\u2028b", "0"),
]
HEADER = ["b", "text", "label"]


@pytest.mark.parametrize("name", ["a.csv", "A.CSV.gz"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\n\n"])
def test_csv(write, name, bom, line_end):
    rows = []
    for fields in (HEADER, *((b, a, c) for a, b, c in ROWS)):
        stream = io.StringIO()
        csv.writer(stream, lineterminator="\n").writerow(fields)
        rows.append(stream.getvalue().removesuffix("\n") + line_end)
    path = write(name, bom + "".join(rows))
    found = read_classification_csv(path)
    assert [(s.text, s.label) for s in found] == [(a, c) for a, _, c in ROWS]
    assert all(sentence.text_pair is None for sentence in found)
    found = read_classification_csv(
        path, text_column="b", label_column="text", text_pair_column="label"
    )
    assert [(s.text, s.label, s.text_pair) for s in found] == [
        (b, a, c) for a, b, c in ROWS
    ]


@pytest.mark.parametrize("name", ["a.tsv", "a.tsv.gz"])
def test_tsv(write, name):
    text = 'text\tn\tlabel\n"so-called" "art\t1\tneg\r\n\nn\'t, bad\t\tpos\n'
    found = read_classification_csv(write(name, text))
    assert [(s.text, s.label) for s in found] == [
        ('"so-called" "art', "neg"),
        ("n't, bad", "pos"),
    ]


def test_a_quote_that_is_not_closed_raises(write):
    path = write("a.csv", 'text,label\na,b\n"c,d\ne,f\n')
    with pytest.raises(DataFileError, match=r"line 3: .* unexpected end"):
        read_classification_csv(path)


@pytest.mark.parametrize(
    "name, text, message",
    [
        ("a.txt", "text,label\na,b\n", r"expected a file name with \.csv"),
        ("a.csv", "", "expected a column 'text', received"),
        ("a.csv", "text;label\na;b\n", "line 1: expected a column 'text'"),
        ("a.tsv", "text\tclass\n", "line 1: expected a column 'label'"),
        ("a.csv", "text,label\n", "at least one row after the header"),
    ],
)
def test_tables_without_examples_raise(write, name, text, message):
    with pytest.raises(DataFileError, match=message):
        read_classification_csv(write(name, text))


def test_columns_must_be_names(write):
    path = write("a.csv", "text,label\na,b\n")
    for name in ("text_column", "label_column", "text_pair_column"):
        with pytest.raises(ValueError, match=f"`{name}` must be a str"):
            read_classification_csv(path, **{name: 0})
