"""Files that readers open, and what they do with bad lines."""

import gzip
import pickle
import zipfile

import pytest

from keras_attn import datasets
from keras_attn.datasets import BadLine, DataFileError
from tests.helpers.data_set_files import png_bytes, wav_bytes, write_nlvr

pytestmark = pytest.mark.one_backend

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
    (table, "a.csv", b'text,label\na,b\n"\xff\nc",e\nf,g\n', 2, "UTF-8"),
    (table, "a.tsv", 'text\tlabel\n"a\tb\n \tc\nd\te\n', 2, "text and label"),
]


@pytest.fixture(params=range(len(BAD)), ids=lambda number: f"bad{number}")
def bad(request, write):
    reader, name, content, kept, reason = BAD[request.param]
    return reader, write(name, content), kept, reason


def test_a_bad_line_raises(bad):
    reader, path, _, reason = bad
    with pytest.raises(DataFileError) as info:
        reader(path)
    assert str(info.value).startswith(f"{path}, line 3: expected ")
    assert reason in str(info.value) and "\n" not in str(info.value)


def test_a_bad_line_warns(bad):
    reader, path, kept, reason = bad
    with pytest.warns(UserWarning) as caught:
        assert len(reader(path, on_bad_lines="warn")) == kept
    assert len(caught) == 1
    message = str(caught[0].message)
    assert message.startswith(f"{path}, line 3: ") and reason in message
    # The warning points to the code of the caller.
    assert caught[0].filename == __file__


def test_a_bad_line_is_dropped(bad):
    reader, path, kept, reason = bad
    assert len(reader(path, on_bad_lines="skip")) == kept
    lines = []
    assert len(reader(path, on_bad_lines=lines.append)) == kept
    assert lines == [BadLine(str(path), 3, lines[0].reason)]
    assert reason in lines[0].reason


def test_a_bad_line_of_a_table_in_a_folder(tmp_path):
    (tmp_path / "a.wav").write_bytes(wav_bytes([[1]]))
    (tmp_path / "a.png").write_bytes(png_bytes(4, 4))
    write_nlvr(tmp_path, "dev", ["true", "no label"])
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


@pytest.mark.parametrize("value", ["ignore", None, 0, ["skip"]])
def test_an_unknown_value_of_on_bad_lines_raises(write, value):
    with pytest.raises(ValueError, match=r"`on_bad_lines` must .* Received: "):
        datasets.read_lines(write("a", "a"), on_bad_lines=value)
    path = write("1_ann_2.wav", wav_bytes([[1]])).parent
    with pytest.raises(ValueError, match="`on_bad_lines` must be"):
        datasets.read_wav_folder(path, on_bad_lines=value)


def test_what_a_callable_raises_is_raised(write):
    def stop(line):
        raise KeyError(line.line)

    path = write("a", b"a\n\xff")
    with pytest.raises(KeyError, match="2"):
        datasets.read_lines(path, on_bad_lines=stop)


@pytest.mark.parametrize("name", ["a.txt", "a.gz", "a"])
def test_lines(write, name):
    text = "\ufeffone\r\n\n\ttwo\u2028three\x0c \rfour\n"
    lines = ["one", "", "\ttwo\u2028three\x0c \rfour"]
    path = write(name, text)
    assert datasets.read_lines(path) == datasets.read_lines(str(path)) == lines
    assert datasets.read_lines(write(name, text.removesuffix("\n"))) == lines
    assert datasets.read_lines(write(name, "")) == []
    assert datasets.read_lines(write(name, "\n\n")) == ["", ""]


def test_missing_files_raise(tmp_path):
    for name in ("gone", "gone.zip", "gone.gz"):
        path = tmp_path / name
        with pytest.raises(DataFileError, match=f"{path}: no such file"):
            pairs(path)
    with pytest.raises(DataFileError, match="expected a file, received a fold"):
        datasets.read_lines(tmp_path)
    for path in (None, "", 3, b"a", "a\0b"):
        with pytest.raises(ValueError, match="`path` must be a path"):
            datasets.read_lines(path)


def test_unreadable_file_raises(write, monkeypatch):
    def denied(*_):
        raise PermissionError(13, "Permission denied")

    path = write("secret", "a")
    monkeypatch.setattr("builtins.open", denied)
    with pytest.raises(DataFileError, match="cannot be read: Permission"):
        datasets.read_lines(path)


def zip_file(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


TSV = "Go.\tVe.\nI don't!\t¡Yo no!\n"


def test_zip_with_one_tab_separated_file(tmp_path):
    members = {
        "spa-eng/_about.txt": "terms\tand more",
        "spa-eng/": "",
        "spa-eng/spa.txt": TSV,
        "README.txt": "no tabs here",
        "numbers.csv": "1\t2",
        "__MACOSX/spa-eng/._spa.txt": "\x00\t",
    }
    path = zip_file(tmp_path / "spa.ZIP", members)
    assert pairs(path) == [tuple(line.split("\t")) for line in TSV.splitlines()]


@pytest.mark.parametrize(
    "members, found",
    [
        ({"a.txt": TSV, "b.tsv": TSV}, "received a.txt, b.tsv"),
        ({"a.txt": "no", "_about.txt": TSV, "c.csv": TSV}, "received none"),
    ],
)
def test_ambiguous_zips_raise(tmp_path, members, found):
    path = zip_file(tmp_path / "a.zip", members)
    with pytest.raises(DataFileError, match=f"expected one .*{found}"):
        pairs(path)
    with pytest.raises(DataFileError, match=r"plain or \.gz"):
        datasets.read_lines(path)


def test_corrupt_archives_raise(tmp_path):
    def refused(path, content):
        path.write_bytes(content)
        with pytest.raises(DataFileError, match="cannot be decompressed") as e:
            pairs(path)
        return str(e.value)

    path = zip_file(tmp_path / "a.zip", {"a.txt": TSV * 50})
    whole = path.read_bytes()
    refused(path, whole[:40])
    refused(path, whole[:50] + b"XXXX" + whole[54:])
    refused(path, whole.replace(b"\x08\x00", b"\x63\x00"))
    # Bit 0 of the flags: encrypted.
    flags = whole.index(b"PK\x01\x02") + 8
    encrypted = bytearray(whole)
    encrypted[flags] |= 1
    encrypted[6] |= 1
    assert "password" in refused(path, encrypted)
    path = tmp_path / "a.tsv.gz"
    whole = gzip.compress(TSV.encode() * 50)
    refused(path, whole[:30])
    refused(path, b"no gzip")
    refused(path, whole[:20] + b"XX" + whole[22:])


def test_errors_can_be_pickled():
    error = DataFileError("a", "expected b", 3)
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) == "a, line 3: expected b"
    assert (again.path, again.reason, again.line) == ("a", "expected b", 3)
    assert isinstance(again, ValueError)
