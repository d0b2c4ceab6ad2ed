"""Two files that agree line by line."""

import pytest

from keras_attn.datasets import DataFileError, read_parallel

pytestmark = pytest.mark.one_backend

PAIRS = [("Go.", "Ve."), ("G\to.", "Vete."), ("I don't!", "¡Yo no, ñu! 猫")]
SOURCE = "".join(f"{source}\n" for source, _ in PAIRS)
TARGET = "".join(f"{target}\n" for _, target in PAIRS)


@pytest.mark.parametrize("names", [("a.en", "a.es"), ("a.en.gz", "a.es")])
def test_pairs(write, names):
    source, target = write(names[0], SOURCE), write(names[1], TARGET)
    pairs = read_parallel(source, target)
    assert pairs == read_parallel(str(source), str(target)) == PAIRS
    assert (pairs[0].source, pairs[0].target) == PAIRS[0]
    write(names[0], SOURCE.removesuffix("\n").replace("\n", "\r\n"))
    assert read_parallel(source, target) == PAIRS
    # Pairs without text in one file are skipped; the others stay aligned.
    write(names[0], SOURCE.replace("Go.\n", "\n", 1))
    assert read_parallel(source, target) == PAIRS[1:]


def test_pairs_stay_aligned_without_bad_lines(write):
    source = write("a", SOURCE.encode().replace(b"Go.", b"\xff"))
    target = write("b", TARGET.encode().replace("猫".encode(), b"\xfe"))
    with pytest.raises(DataFileError, match=f"{source}, line 1: .*UTF-8"):
        read_parallel(source, target)
    lines = []
    assert read_parallel(source, target, on_bad_lines="skip") == PAIRS[1:2]
    read_parallel(source, target, on_bad_lines=lines.append)
    assert [line[:2] for line in lines] == [(str(source), 1), (str(target), 3)]


def test_files_that_do_not_agree_raise(write):
    source, target = write("a", SOURCE), write("b", TARGET + "más\n")
    message = f"{target}: expected 3 lines, as in {source}, received 4"
    with pytest.raises(DataFileError, match=message):
        read_parallel(source, target)
    empty = write("empty", "")
    with pytest.raises(DataFileError, match="at least one pair"):
        read_parallel(empty, empty)
    with pytest.raises(ValueError, match="`target_path` must be a path"):
        read_parallel(empty, None)
