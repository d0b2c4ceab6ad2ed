"""State files: lossless round trips and detection of damage."""

import math

import keras
import numpy as np
import pytest

from keras_attn.training.state_file import (
    UNREADABLE,
    read_state,
    write_state,
)
from tests.helpers.full_disk import full_disk

STATE = {
    "plain": [None, True, 3, 0.1, "ñ", -math.inf],
    "nan": math.nan,
    "nested": {"tuple": (1, (2.5, "a"), []), "empty": {}},
    "floats": np.array([[0.1, -0.0, np.nan]], "float32"),
    "scalar": np.array(7, "int64"),
    "seeds": np.array([1, 2**32 - 1], "uint32"),
    "flags": np.array([True, False]),
    "strided": np.arange(12.0).reshape(3, 4).T[::2],
    "number": np.float32(0.1),
}


def test_round_trip(tmp_path):
    path = tmp_path / "state.npz"
    write_state(path, STATE)
    found = read_state(path)
    assert set(found) == set(STATE)
    assert found["plain"] == STATE["plain"]
    assert math.isnan(found["nan"])
    assert found["nested"] == STATE["nested"]
    assert isinstance(found["nested"]["tuple"][1], tuple)
    assert found["number"] == np.float32(0.1)
    for name in ("floats", "scalar", "seeds", "flags", "strided"):
        assert found[name].dtype == STATE[name].dtype
        assert found[name].shape == STATE[name].shape
        assert found[name].tobytes() == STATE[name].tobytes()


def test_dtypes_unknown_to_numpy(tmp_path):
    value = keras.ops.convert_to_numpy(keras.ops.ones((3,), "bfloat16") / 3)
    value = value.astype("bfloat16")
    write_state(tmp_path / "a.npz", [value])
    (found,) = read_state(tmp_path / "a.npz")
    assert found.dtype.name == "bfloat16"
    assert found.tobytes() == value.tobytes()


@pytest.mark.parametrize(
    "state",
    [object(), {"a": {1: 2}}, {"a": {1, 2}}, {"#array": "a"}, [np.array([{}])]],
)
def test_unsupported_types_raise(state, tmp_path):
    with pytest.raises(ValueError, match="must be a nest of dict") as info:
        write_state(tmp_path / "a.npz", state)
    assert "\n" not in str(info.value)
    assert not list(tmp_path.iterdir())


def test_damaged_file_is_unreadable(tmp_path):
    path = tmp_path / "a.npz"
    write_state(path, STATE)
    whole = path.read_bytes()
    for size in (0, 1, 100, len(whole) // 2, len(whole) - 30, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(UNREADABLE):
            read_state(path)
    value = STATE["floats"].tobytes()
    path.write_bytes(whole.replace(value, value[::-1]))
    with pytest.raises(UNREADABLE, match="CRC"):
        read_state(path)
    encrypted = bytearray(whole)
    encrypted[whole.rindex(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(encrypted)
    with pytest.raises(UNREADABLE, match="encrypted"):
        read_state(path)
    path.write_bytes(b"something else" * 10)
    with pytest.raises(UNREADABLE):
        read_state(path)
    np.savez(path, other=np.zeros(3))
    with pytest.raises(UNREADABLE):
        read_state(path)
    path.write_bytes(whole)
    read_state(path)


def test_one_changed_byte_never_changes_the_state(tmp_path):
    path = tmp_path / "a.npz"
    write_state(path, STATE)
    whole = path.read_bytes()
    expected = repr(read_state(path))
    detected = 0
    for index in range(0, len(whole), 3):
        changed = bytearray(whole)
        changed[index] ^= 1 + index % 255
        path.write_bytes(changed)
        try:
            assert repr(read_state(path)) == expected
        except UNREADABLE:
            detected += 1
    assert detected > len(whole) / 6


@pytest.mark.parametrize(
    "plain",
    [
        b"[" * 100000,
        b'{"#array": 1, "dtype": "float32"}',
        b'{"#array": "a", "dtype": "x"}',
        b'{"#array": "b", "dtype": "float32"}',
        b'{"#tuple": 3}',
        b"\xff",
    ],
)
def test_invalid_structure_is_unreadable(plain, tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, plain=np.frombuffer(plain, "uint8"), a=np.zeros(3))
    with pytest.raises(UNREADABLE):
        read_state(path)


@pytest.mark.parametrize("room", [0, 100, 1000, 3000])
def test_full_disk_keeps_the_old_state(room, tmp_path):
    path = tmp_path / "a.npz"
    write_state(path, {"old": True})
    with full_disk(room), pytest.raises(OSError):
        write_state(path, STATE | {"large": np.zeros(1000)})
    assert read_state(path) == {"old": True}
    assert [p.name for p in tmp_path.iterdir()] == ["a.npz"]
