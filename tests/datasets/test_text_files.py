"""Readers of text files: what they read, and files without records."""

import csv
import io

import pytest

from keras_attn import datasets
from keras_attn.datasets import DataFileError

pairs, documents = datasets.read_tsv_pairs, datasets.read_documents
words, table = datasets.read_misspellings, datasets.read_classification_csv
bio, conllu = datasets.read_conll_bio, datasets.read_conllu
parallel = datasets.read_parallel
PAIRS = [("Go.", "Ve."), ("Go.", "Vete."), ("I don't!", "¡Yo no, ñu! 猫")]
TSV = "".join(f"{source}\t{target}\n" for source, target in PAIRS)
ODD = [(" a\u2028b\x0c ", 'c\x85 "d"'), ("e\rf", "\u00a0g")]
TREEBANK = """\
# newdoc id = one
# sent_id = one-1
# newpar
# text = It rains = wet.
1\tIt\tit\tPRON

# text = Stay in.
1\t# text = no\t_\t_

# newdoc
#text=Hello!
"""
SPACED = "\n\n It rains = wet.\r\nStay in.\r\n \r\n\r\nHello! \r\n\n"
DOCUMENTS = [["It rains = wet.", "Stay in."], ["Hello!"]]
MISSPELLINGS = """\
becuase->because
abd->and, bad,
clas->class, disabled because of a name

teh \t the\tremark
recieve -> receive
same->same
becuase->because
"""
CORRECTED = "becuase because clas class teh the recieve receive".split()
CORRECTED = list(zip(CORRECTED[::2], CORRECTED[1::2], strict=True))
TABLE = 'text\tn\tlabel\n"so-called" "art\t1\tneg\r\n\nn\'t, bad\t\tpos\n'
ROWS = [('"so-called" "art', "neg", None), ("n't, bad", "pos", None)]
CONLLU = """\
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
WORDS = ("Do", "n't", "go"), ("10 000",)
UPOS = [(WORDS[0], ("AUX", "PART", "VERB")), (WORDS[1], ("NUM",))]
XPOS = [(WORDS[0], ("VB", "RB", "VB")), (WORDS[1], ("CD",))]
BIO = [
    (("#1", "Ann", "Lee", "\u00a0"), ("O", "B-person", "I-person", "O")),
    (("EU",), ("I-creative-work",)),
]


def bio_text(row, blank):
    """The sentences `BIO` as text, in a format of rows."""
    sentences = [("-DOCSTART-",), ("O",)], *BIO
    return blank.join(
        "".join(row.format(*pair) for pair in zip(*sentence, strict=True))
        for sentence in sentences
    )


@pytest.mark.parametrize(
    "read, name, text, expected",
    [
        (pairs, "a.txt", TSV, PAIRS),
        (pairs, "a.tsv.gz", TSV.removesuffix("\n"), PAIRS),
        (pairs, "a", TSV.replace("\n", "\r\n"), PAIRS),
        (pairs, "a", "\ufeff" + TSV, PAIRS),
        (pairs, "a", TSV.replace("\n", "\tCC-BY 2.0\tmore\n"), PAIRS),
        (pairs, "a", "\n" + TSV.replace("\n", "\n\n \n"), PAIRS),
        (pairs, "a", f"no target\t\n{TSV}\tno source\n", PAIRS),
        (pairs, "a", "".join(f"{s}\t{t}\n" for s, t in ODD), ODD),
        (documents, "a.conllu", TREEBANK, DOCUMENTS),
        (documents, "A.CONLLU.gz", TREEBANK.partition("\n")[2], DOCUMENTS),
        (documents, "a", "It rains = wet.\nStay in.\n\nHello!\n", DOCUMENTS),
        (documents, "a.gz", SPACED, DOCUMENTS),
        (words, "a.txt", MISSPELLINGS, CORRECTED),
        (table, "a.tsv", TABLE, ROWS),
        (table, "a.TSV.gz", TABLE, ROWS),
        (bio, "a", bio_text("{}\t{}\n", "\n"), BIO),
        (bio, "a", bio_text("{} {}\n", "\n\n"), BIO),
        (bio, "a", bio_text("{} NNP  B-NP {} \n", " \n") + " \n", BIO),
        (bio, "a", bio_text("{}\tNNP\t{}\r\n", "\t\r\n"), BIO),
        (conllu, "a", CONLLU, UPOS),
        (conllu, "a", CONLLU.replace("\n", "\r\n"), UPOS),
        (conllu, "a", f"\n{CONLLU}\n\n", UPOS),
        (lambda path: conllu(path, tags="xpos"), "a", CONLLU, XPOS),
    ],
)
def test_records(write, read, name, text, expected):
    assert read(write(name, text)) == expected


@pytest.mark.parametrize("name", ["a.csv", "A.CSV.gz"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\n\n"])
def test_csv(write, name, line_end):
    rows = [
        ("good, really", "no", 'pos "1"'),
        ("two\nlines", "ünï", "neg"),
        (" kept ", "a\u2028b", "0"),
    ]
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator=line_end)
    writer.writerows([("text", "b", "label"), *rows])
    columns = {"text_column": "b", "label_column": "text"}
    columns["text_pair_column"] = "label"
    for bom in ("", "\ufeff"):
        path = write(name, bom + stream.getvalue())
        assert table(path) == [(a, c, None) for a, b, c in rows]
        assert table(path, **columns) == [(b, a, c) for a, b, c in rows]


SOURCE, TARGET = ("".join(f"{pair[i]}\n" for pair in PAIRS) for i in (0, 1))


def test_parallel_files(write):
    source, target = write("a.gz", SOURCE), write("b", TARGET)
    assert parallel(source, target) == parallel(str(source), target) == PAIRS
    write("a.gz", SOURCE.removesuffix("\n").replace("\n", "\r\n"))
    assert parallel(source, target) == PAIRS
    # Pairs without text in one file are skipped; the others stay aligned.
    write("a.gz", SOURCE.replace("Go.\n", "\n", 1))
    assert parallel(source, target) == PAIRS[1:]
    write("b", TARGET + "más\n")
    message = f"{target}: expected 3 lines, as in {source}, received 4"
    with pytest.raises(DataFileError, match=message):
        parallel(source, target)


def test_parallel_files_stay_aligned_without_bad_lines(write):
    source = write("a", SOURCE.encode().replace(b"Go.", b"\xff", 1))
    target = write("b", TARGET.encode().replace("猫".encode(), b"\xfe"))
    with pytest.raises(DataFileError, match=f"{source}, line 1: .*UTF-8"):
        parallel(source, target)
    bad = []
    assert parallel(source, target, on_bad_lines=bad.append) == PAIRS[1:2]
    assert [line[:2] for line in bad] == [(str(source), 1), (str(target), 3)]


@pytest.mark.parametrize(
    "read, name, text, message",
    [
        (pairs, "a", "\t\n \t \n", "at least one pair of a source"),
        (words, "a", "a->b, c,\nd->d\n", "at least one misspelling"),
        (conllu, "a", "# text = none\n\n", "at least one sentence with"),
        (documents, "a.txt", "\n \n", "at least one document"),
        (documents, "a.conllu", "\n \n", "at least one document"),
        (table, "a.txt", "text,label\na,b\n", "a file name with .csv"),
        (table, "a.csv", "", "a column 'text', received"),
        (table, "a.csv", "text;label\na;b\n", "a column 'text'"),
        (table, "a.tsv", "text\tclass\n", "a column 'label'"),
        (table, "a.csv", "text,label\n", "at least one row after the header"),
    ],
)
def test_files_without_records_raise(write, read, name, text, message):
    path = write(name, text)
    with pytest.raises(DataFileError, match=f"{path}.*: expected {message}"):
        read(path)
