"""A short digest of data sets, the same on every platform."""

import hashlib

import numpy as np


def digest(data):
    """Returns 16 hexadecimal digits of a SHA-256 of nested data.

    Args:
        data: str, number, bool, None, NumPy array, or a list, tuple (named or
            not) or dict of such. Floats are rounded to 1e-4. Arrays count with
            their shape and dtype.
    """
    sha = hashlib.sha256()
    for part in _parts(data):
        sha.update(part.encode("utf-8"))
        # Separates the parts: ("ab", "c") and ("a", "bc") differ.
        sha.update(b"\0")
    return sha.hexdigest()[:16]


def _parts(data):
    if isinstance(data, (np.ndarray, np.generic)):
        yield f"array {data.dtype.name} {data.shape}"
        as_text = _number if data.dtype.kind == "f" else str
        if data.size:
            # As one part, which is faster than one per number.
            yield "\0".join(map(as_text, data.ravel().tolist()))
    elif isinstance(data, (list, tuple)):
        yield f"{_name(data)} {len(data)}"
        for item in data:
            yield from _parts(item)
    elif isinstance(data, dict):
        yield f"dict {len(data)}"
        for key in sorted(data, key=repr):
            yield from _parts(key)
            yield from _parts(data[key])
    elif isinstance(data, str):
        yield f"str {data}"
    elif data is None or isinstance(data, (bool, int, float)):
        yield f"{type(data).__name__} {_number(data)}"
    else:
        raise TypeError(f"No digest of {type(data).__name__}.")


def _name(data):
    return type(data).__name__


def _number(value):
    if isinstance(value, float):
        # Adding 0.0 turns -0.0 into 0.0.
        return f"{round(value, 4) + 0.0:.4f}"
    return str(value)
