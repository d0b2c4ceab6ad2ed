"""Parallel corpora: supported formats and errors."""

import gzip
import hashlib
import zipfile

import pytest
from corpora import (
    CorpusError,
    group_references,
    read_lines,
    read_pairs,
    split_by_source,
    unseen,
)

pytestmark = pytest.mark.one_backend

PAIRS = [("Go.", "Ve."), ("Go.", "Vete."), ("I don't!", "¡Yo no, ñu! 猫")]
TSV = "".join(f"{s}\t{t}\n" for s, t in PAIRS)
SOURCE = "".join(f"{s}\n" for s, _ in PAIRS)
TARGET = "".join(f"{t}\n" for _, t in PAIRS)


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        content = content.encode() if isinstance(content, str) else content
        path = tmp_path / name
        path.write_bytes(gzip.compress(content) if ".gz" in name else content)
        return path

    return write


@pytest.fixture
def pack(tmp_path):
    def pack(members, name="pack.zip"):
        with zipfile.ZipFile(tmp_path / name, "w", zipfile.ZIP_DEFLATED) as z:
            for member, content in members.items():
                z.writestr(member, content)
        return tmp_path / name

    return pack


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
def test_tab_separated_file(write, content, name):
    path = write(name, content)
    assert read_pairs(path) == read_pairs(str(path)) == PAIRS


@pytest.mark.parametrize("names", [("a.en", "a.es"), ("a.en.gz", "a.es")])
def test_two_aligned_files(write, names):
    source, target = write(names[0], SOURCE), write(names[1], TARGET)
    assert read_pairs(source, target) == PAIRS
    assert read_pairs(f"{source},{target}") == PAIRS
    assert read_pairs(f"{source}, {target}") == PAIRS
    # Tabs are not columns here; the last line break is optional.
    write(names[0], SOURCE.replace("Go.", "G\to.").removesuffix("\n"))
    assert read_pairs(source, target)[0] == ("G\to.", "Ve.")
    # Pairs that are empty on one side are skipped; the others stay aligned.
    write(names[0], SOURCE.replace("Go.\n", "\n", 1))
    assert read_pairs(source, target) == PAIRS[1:]


def test_sentences_are_unchanged(write):
    odd = [(" a\u2028b\x0c ", "c\x85 d"), ("e\rf", "\u00a0g")]
    path = write("odd", "".join(f"{s}\t{t}\n" for s, t in odd))
    assert read_pairs(path) == odd


@pytest.mark.parametrize("name", ["a.txt", "a.gz"])
def test_lines_of_one_text(write, name):
    assert read_lines(write(name, "one\r\n\n two\tthree")) == [
        "one",
        "",
        " two\tthree",
    ]
    assert read_lines(write(name, "")) == []
    refused(lambda: read_lines(write(name, b"\xff")), "Line 1 of", "UTF-8")


def test_comma_in_a_file_name(write):
    assert read_pairs(str(write("one,two.txt", TSV))) == PAIRS


def test_zip_with_one_tab_separated_file(pack):
    members = {
        "spa-eng/_about.txt": "terms\tand more",
        "spa-eng/": "",
        "spa-eng/spa.txt": TSV,
        "README.txt": "no tabs here",
        "numbers.csv": "1\t2",
        "__MACOSX/spa-eng/._spa.txt": "\x00\t",
    }
    assert read_pairs(pack(members)) == PAIRS


def refused(call, *parts):
    """Returns the one-line message of a CorpusError with all the parts."""
    with pytest.raises(CorpusError) as info:
        call()
    message = str(info.value)
    assert "\n" not in message
    for part in parts:
        assert str(part) in message
    assert isinstance(info.value, ValueError)


def test_ambiguous_zips_raise(pack):
    path = pack({"a.txt": TSV, "b.tsv": TSV})
    refused(lambda: read_pairs(path), path, "one", "Found: a.txt, b.tsv")
    path = pack({"a.txt": "no tabs", "_about.txt": TSV, "c.csv": TSV})
    refused(lambda: read_pairs(path), path, "Found: none")


def test_corrupt_archives_raise(write, pack, tmp_path):
    path = pack({"a.txt": TSV * 50})
    whole = path.read_bytes()
    path.write_bytes(whole[:40])
    refused(lambda: read_pairs(path), path, "cannot be unpacked")
    path.write_bytes(whole[:50] + b"XXXX" + whole[54:])
    refused(lambda: read_pairs(path), path, "cannot be unpacked")
    path.write_bytes(whole.replace(b"\x08\x00", b"\x63\x00"))
    refused(lambda: read_pairs(path), path, "cannot be unpacked")
    path = write("a.tsv.gz", TSV * 50)
    whole = path.read_bytes()
    for broken in (whole[:30], b"no gzip", whole[:20] + b"XX" + whole[22:]):
        path.write_bytes(broken)
        refused(lambda: read_pairs(path), path, "cannot be unpacked")


def test_encrypted_archive_raises(pack):
    path = pack({"a.txt": TSV})
    content = bytearray(path.read_bytes())
    # Bit 0 of the flags in the central directory.
    content[content.index(b"PK\x01\x02") + 8] |= 1
    content[6] |= 1
    path.write_bytes(content)
    refused(lambda: read_pairs(path), path, "cannot be unpacked", "password")


def test_missing_files_raise(write, tmp_path):
    here, gone = write("here", SOURCE), tmp_path / "gone"
    for call in (
        lambda: read_pairs(gone),
        lambda: read_pairs(str(gone)),
        lambda: read_pairs(f"{here},{gone}"),
        lambda: read_pairs(gone, here),
    ):
        refused(call, gone, "There is no file")
    refused(lambda: read_pairs(f"{gone},"), f"{gone},", "There is no file")
    refused(lambda: read_pairs(tmp_path / "gone.zip"), "There is no file")
    refused(lambda: read_pairs(tmp_path / "gone.gz"), "There is no file")
    refused(lambda: read_pairs(tmp_path), tmp_path, "is a folder")


def test_unreadable_file_raises(write, monkeypatch):
    def denied(*_):
        raise PermissionError(13, "Permission denied")

    path = write("secret", TSV)
    monkeypatch.setattr("builtins.open", denied)
    refused(lambda: read_pairs(path), path, "cannot be read: Permission")


def test_files_of_different_lengths_raise(write):
    source, target = write("a", SOURCE), write("b", TARGET + "más\n")
    refused(lambda: read_pairs(source, target), source, target, "3", "4")


def test_zip_as_one_of_two_files_raises(write, pack):
    path = pack({"a.txt": TSV})
    refused(lambda: read_pairs(path, write("b", TARGET)), path, "plain or .gz")


def test_empty_files_raise(write, pack):
    empty = write("empty", "")
    for content in ("", "\n\n", "\t\n \t \n"):
        path = write("a", content)
        refused(lambda path=path: read_pairs(path), path, "no sentence")
    refused(lambda: read_pairs(empty, empty), empty, "no sentence")
    refused(lambda: read_pairs(write("a.gz", "")), "no sentence")


def test_invalid_utf8_raises(write):
    path = write("a", TSV.encode() + b"caf\xe9\tcaf\xe9\n")
    refused(lambda: read_pairs(path), f"Line 4 of {path} is not UTF-8")
    path = write("a", TSV.encode("utf-16"))
    refused(lambda: read_pairs(path), f"Line 1 of {path} is not UTF-8")


def test_missing_column_raises(write):
    path = write("a", TSV + "\nno tab here\n")
    refused(lambda: read_pairs(path), f"Line 5 of {path}", "no tab here")


def test_sources_are_split_by_hash():
    pairs = [(f"sentence {n}", f"t{k}") for n in range(600) for k in (0, 1)]
    training, validation, test = split_by_source(pairs)
    for side, wanted in ((test, {0}), (validation, {1}), (training, None)):
        buckets = {
            int.from_bytes(hashlib.sha256(s.encode()).digest(), "big") % 20
            for s, _ in side
        }
        assert buckets == (wanted or set(range(2, 20)))
        assert side == [pair for pair in pairs if pair in set(side)]
    assert sorted(training + validation + test) == sorted(pairs)
    assert 30 < len(test) < 90 and 30 < len(validation) < 90


def test_all_translations_of_a_source():
    pairs = [("b", "1"), ("a", "2"), ("b", "3"), ("b", "1"), ("é", "2")]
    sources, references = group_references(pairs)
    assert sources == ["b", "a", "é"]
    assert references == [["1", "3"], ["2"], ["2"]]
    assert group_references([]) == ([], [])


def test_sources_with_unseen_translations():
    sources, references = ["a", "b", "c"], [["1", "2"], ["3"], ["4", "5"]]
    train = [("x", "2"), ("y", "6"), ("4", "z")]
    assert unseen(sources, references, train) == [1, 2]
    assert unseen(sources, references, []) == [0, 1, 2]
