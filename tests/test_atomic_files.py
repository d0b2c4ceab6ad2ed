"""Atomic file writes: errors, killed processes, full disks."""

import os
import signal

import pytest

from keras_attn.atomic_files import (
    clear_partial,
    ensure_room,
    whole_file,
    writable_folder,
)
from tests.helpers.full_disk import full_disk
from tests.helpers.processes import Process


def write(path, content):
    with whole_file(path) as partial:
        partial.write_bytes(content)


def test_the_file_appears_when_it_is_complete(tmp_path):
    path = tmp_path / "a.weights.h5"
    with whole_file(path) as partial:
        assert partial.parent == tmp_path
        assert partial.name.endswith(".weights.h5")
        partial.write_bytes(b"new")
        assert not path.exists()
    assert path.read_bytes() == b"new"
    write(path, b"newer")
    assert path.read_bytes() == b"newer"
    assert os.listdir(tmp_path) == ["a.weights.h5"]


def test_the_contents_are_synced_before_the_rename(tmp_path, monkeypatch):
    done = []
    fsync, replace = os.fsync, os.replace

    def spy_fsync(descriptor):
        done.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        fsync(descriptor)

    def spy_replace(source, target):
        done.append("replace")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", spy_fsync)
    monkeypatch.setattr(os, "replace", spy_replace)
    with whole_file(tmp_path / "a") as partial:
        partial.write_bytes(b"new")
    assert done == [str(partial), "replace", str(tmp_path)]


@pytest.mark.parametrize("before", [None, b"old"])
def test_an_error_leaves_the_old_file(before, tmp_path):
    path = tmp_path / "a"
    if before:
        path.write_bytes(before)
    with pytest.raises(RuntimeError, match="while writing"):
        with whole_file(path) as partial:
            partial.write_bytes(b"half")
            raise RuntimeError("while writing")
    assert os.listdir(tmp_path) == (["a"] if before else [])
    assert not before or path.read_bytes() == before


def test_a_full_disk_leaves_the_old_file(tmp_path):
    path = tmp_path / "a"
    write(path, b"old")
    with full_disk(1000), pytest.raises(OSError):
        write(path, b"new" * 1000)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


def write_half(path):
    """Kills its process while it writes a file."""
    with whole_file(path) as partial:
        partial.write_bytes(b"half")
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_kill_leaves_the_old_file_and_a_partial_one(tmp_path):
    path = tmp_path / "step-1.npz"
    write(path, b"old")
    status, printed = Process(write_half, path).wait()
    assert status == -signal.SIGKILL, printed
    assert path.read_bytes() == b"old"
    (part,) = tmp_path.glob(".partial-*")
    clear_partial(tmp_path, "other-*.npz")
    assert part.exists()
    clear_partial(tmp_path, "step-*.npz")
    assert os.listdir(tmp_path) == ["step-1.npz"]


def test_ensure_room(tmp_path):
    path = tmp_path / "a"
    ensure_room(path, 5000)
    with full_disk(5000):
        ensure_room(path, 5000)
        with pytest.raises(OSError, match=str(path)):
            ensure_room(path, 5001)
    assert os.listdir(tmp_path) == []


def test_room_where_nothing_can_be_reserved(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "posix_fallocate", raising=False)
    test_room_where_blocks_are_written(tmp_path)


def test_room_where_blocks_are_written(tmp_path):
    path = tmp_path / "a"
    with full_disk(1 << 20):
        ensure_room(path, 1000)
        with pytest.raises(OSError, match=str(path)):
            ensure_room(path, (1 << 20) + 1)
    assert os.listdir(tmp_path) == []


def test_a_folder_that_can_be_written_to(tmp_path):
    folder = tmp_path / "made" / "here"
    assert writable_folder("directory", folder) == folder
    assert os.listdir(folder) == []


def test_a_folder_that_cannot(tmp_path):
    with full_disk(), pytest.raises(ValueError, match="`out` must be a folder"):
        writable_folder("out", tmp_path)
    assert os.listdir(tmp_path) == []
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match=r"file.* \((File|Not)") as info:
        writable_folder("out", tmp_path / "file")
    assert "\n" not in str(info.value)
    with pytest.raises(ValueError, match="Not a directory"):
        writable_folder("out", tmp_path / "file" / "below")
