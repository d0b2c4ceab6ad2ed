"""Files that readers open, and what they do with bad lines."""

import gzip
import pickle

import pytest

from keras_attn import datasets
from keras_attn.datasets import (
    BadLine,
    DataFileError,
    read_tsv_pairs,
    report_bad_lines,
)
from tests.helpers import data_set_files as files

ROW = "{}\tgo\tgo\tVERB\tVB\t_\t0\troot\t_\t_\n"
SENTENCE = ROW.format(1)
pairs, words = datasets.read_tsv_pairs, datasets.read_misspellings
bio, conllu = datasets.read_conll_bio, datasets.read_conllu
table = datasets.read_classification_csv
# A reader, a file name, a file whose third line is bad, the number of records
# that remain, and a part of the reason.
BAD = [
    (datasets.read_lines, "a", b"a\nb\n\xe9t\xe9\nc\n", 3, "UTF-8"),
    (datasets.read_documents, "a", b"a\n\n\xff\nc\n", 2, "UTF-8"),
    (pairs, "a", "a\tb\n\nno tab\nc\td\n", 2, "'no tab'"),
    (pairs, "a", b"a\tb\n\n\xff\t\nc\td\n", 2, "UTF-8"),
    (words, "a", "a->b\nc\td\ne\n", 2, "wrong->right"),
    (words, "a", "a->b\nc\td\n->e\n", 2, "wrong->right"),
    (bio, "a", "a\tO\n\na O B\nb O\n\nc O\n", 2, "`B-`"),
    (bio, "a", "a\tO\n\nO\nb O\n\nc O\n", 2, "a word"),
    (conllu, "a", f"{SENTENCE}\n1\tgo\n{SENTENCE}\n{SENTENCE}", 2, "upos"),
    (conllu, "a", f"{SENTENCE}\n{ROW.format('x')}", 1, "received 'x"),
    (table, "a.csv", 'text,label\na,"b"\nc,d,e\nf,g\n', 2, "2 fields, rec"),
    (table, "a.csv", 'text,label\na,b\n"c"d,e\nf,g\n', 2, "a row of fields"),
    (table, "a.csv", 'text,label\na,b\n"c,d\ne,f\n', 1, "unexpected end"),
    (table, "a.csv", b'text,label\na,b\n"\xff\nc",e\nf,g\n', 2, "UTF-8"),
    (table, "a.tsv", 'text\tlabel\n"a\tb\n \tc\nd\te\n', 2, "text and label"),
]


@pytest.mark.parametrize(
    "reader, name, content, kept, reason", BAD, ids=range(len(BAD))
)
def test_a_bad_line(write, reader, name, content, kept, reason):
    path = write(name, content)
    with pytest.raises(DataFileError) as info:
        reader(path)
    assert str(info.value).startswith(f"{path}, line 3: expected ")
    assert reason in str(info.value) and "\n" not in str(info.value)
    with pytest.warns(UserWarning) as caught:
        assert len(reader(path, on_bad_lines="warn")) == kept
    (warning,) = caught
    assert str(warning.message) == str(info.value)
    # The warning points to the code of the caller.
    assert warning.filename == __file__
    assert len(reader(path, on_bad_lines="skip")) == kept
    lines = []
    assert len(reader(path, on_bad_lines=lines.append)) == kept
    assert lines == [BadLine(str(path), 3, info.value.reason)]


def test_a_bad_line_of_a_table_in_a_folder(tmp_path):
    (tmp_path / "a.wav").write_bytes(files.wav_bytes([[1]]))
    (tmp_path / "a.png").write_bytes(files.png_bytes(4, 4))
    files.write_nlvr(tmp_path, "dev", ["true", "no label"])
    (tmp_path / "transcripts.tsv").write_text("a\ttext\nb.wav\ttext\n")
    (tmp_path / "captions.tsv").write_text("a.png\ttext\nb.png\ttext\n")
    lines = []
    for read, name in (
        (datasets.read_wav_folder, "transcripts.tsv"),
        (datasets.read_captions, "captions.tsv"),
        (lambda path, **k: datasets.read_nlvr(path, "dev", **k), "dev.json.gz"),
    ):
        with pytest.raises(DataFileError, match=rf"{name}, line 2: expected "):
            read(tmp_path)
        read(tmp_path, on_bad_lines=lines.append)
        assert lines.pop()[:2] == (str(tmp_path / name), 2)


@pytest.mark.parametrize("name", ["a.txt", "a.gz", "a"])
def test_lines(write, name):
    text = "\ufeffone\r\n\n\ttwo\u2028three\x0c \rfour\n"
    lines = ["one", "", "\ttwo\u2028three\x0c \rfour"]
    path = write(name, text)
    assert datasets.read_lines(path) == datasets.read_lines(str(path)) == lines
    assert datasets.read_lines(write(name, text.removesuffix("\n"))) == lines
    assert datasets.read_lines(write(name, "")) == []
    assert datasets.read_lines(write(name, "\n\n")) == ["", ""]


def test_unreadable_files_raise(tmp_path, monkeypatch):
    def denied(*_):
        raise PermissionError(13, "Permission denied")

    for name in ("gone", "gone.zip", "gone.gz"):
        path = tmp_path / name
        with pytest.raises(DataFileError, match=f"{path}: no such file"):
            pairs(path)
    with pytest.raises(DataFileError, match="expected a file, received a fold"):
        pairs(tmp_path)
    monkeypatch.setattr("builtins.open", denied)
    with pytest.raises(DataFileError, match="cannot be read: Permission"):
        pairs(path.with_suffix(".txt"))


TSV = "Go.\tVe.\nI don't!\t¡Yo no!\n"


def test_zips(tmp_path):
    members = {
        "spa-eng/_about.txt": "terms\tand more",
        "spa-eng/": "",
        "spa-eng/spa.txt": TSV,
        "README.txt": "no tabs here",
        "numbers.csv": "1\t2",
        "__MACOSX/spa-eng/._spa.txt": "\x00\t",
    }
    files.write_zip(path := tmp_path / "spa.ZIP", members)
    assert pairs(path) == [tuple(line.split("\t")) for line in TSV.splitlines()]
    files.write_zip(path, {"a.txt": TSV, "b.tsv": TSV})
    with pytest.raises(DataFileError, match=r"one .*received a\.txt, b\.tsv"):
        pairs(path)
    files.write_zip(path, {"a.txt": "no", "_about.txt": TSV, "c.csv": TSV})
    with pytest.raises(DataFileError, match=r"expected one .*received none"):
        pairs(path)
    with pytest.raises(DataFileError, match=r"plain or \.gz"):
        datasets.read_lines(path)


def test_corrupt_archives_raise(tmp_path):
    zipped = files.write_zip(tmp_path / "a.zip", {"a.txt": TSV * 50})
    # Bit 0 of the flags: encrypted.
    encrypted = bytearray(zipped)
    encrypted[zipped.index(b"PK\x01\x02") + 8] |= 1
    encrypted[6] |= 1
    gzipped = gzip.compress(TSV.encode() * 50)
    for name, content, reason in (
        ("a.zip", zipped[:40], "File is not a zip"),
        ("a.zip", zipped[:50] + b"XXXX" + zipped[54:], ""),
        ("a.zip", zipped.replace(b"\x08\x00", b"\x63\x00"), "not supported"),
        ("a.zip", encrypted, "password"),
        ("a.tsv.gz", gzipped[:30], "ended before"),
        ("a.tsv.gz", b"no gzip", "Not a gzip"),
        ("a.tsv.gz", gzipped[:20] + b"XX" + gzipped[22:], ""),
    ):
        path = tmp_path / name
        path.write_bytes(content)
        message = f"{path}: cannot be decompressed: .*{reason}"
        with pytest.raises(DataFileError, match=message):
            pairs(path)


def test_errors_can_be_pickled():
    error = DataFileError("a", "expected b", 3)
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) == "a, line 3: expected b"
    assert (again.path, again.reason, again.line) == ("a", "expected b", 3)
    assert isinstance(again, ValueError)


def test_bad_lines_are_printed_and_counted(write, capsys):
    path = write("pairs.tsv", "Go.\tVe.\nStop.\nRun.\nSit.\n")
    with report_bad_lines(limit=2) as on_bad_lines:
        assert len(read_tsv_pairs(path, on_bad_lines=on_bad_lines)) == 1
    first, second, last = capsys.readouterr().err.splitlines()
    assert first.startswith(f"{path}, line 2: ")
    assert second.startswith(f"{path}, line 3: ")
    assert last == "Skipped 3 bad lines."
    with report_bad_lines(strict=True) as on_bad_lines:
        with pytest.raises(DataFileError, match="line 2"):
            read_tsv_pairs(path, on_bad_lines=on_bad_lines)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("name, value", [("strict", 1), ("limit", -1)])
def test_bad_arguments_of_the_report(name, value):
    with pytest.raises(ValueError, match=f"`{name}` must be"):
        with report_bad_lines(**{name: value}):
            pass
