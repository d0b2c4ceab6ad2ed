"""Wrong and unusual values of each kind of argument."""

import dataclasses

import numpy as np

NAN, INF = float("nan"), float("inf")
DEEP = []
for _ in range(10_000):
    DEEP = [DEEP]
# More items than memory can hold.
ENDLESS = range(10**12)
_NO_VALUE = {
    "none": None,
    "text": "abc",
    "bytes": b"abc",
    "dict": {"a": 1},
    "object": object(),
    "type": int,
}


@dataclasses.dataclass(frozen=True)
class Kind:
    """A valid argument, and the values that replace it.

    Attributes:
        valid: the valid value.
        wrong: dict of labels to values that must raise.
        accepted: dict of labels to reasons. Of the values in `wrong`, those
            that a call may also accept.
        names: tuple of str. Names that a message may use instead of that of
            the argument, such as `token_ids` of the argument `inputs`.
    """

    valid: object
    wrong: dict
    accepted: dict = dataclasses.field(default_factory=dict)
    names: tuple = ()

    def accepts(self, reason, *labels):
        """Returns a kind that may accept some of its values."""
        unknown = set(labels) - self.wrong.keys()
        assert not unknown, unknown
        more = dict.fromkeys(labels, reason)
        return dataclasses.replace(self, accepted=self.accepted | more)

    def optional(self):
        """Returns a kind that accepts None."""
        return self.accepts("the default is None", "none")

    def without(self, *labels):
        """Returns a kind without some of its values."""
        unknown = set(labels) - self.wrong.keys()
        assert not unknown, unknown
        wrong = {k: v for k, v in self.wrong.items() if k not in labels}
        return dataclasses.replace(self, wrong=wrong)

    def plus(self, **wrong):
        """Returns a kind with further wrong values."""
        return dataclasses.replace(self, wrong=self.wrong | wrong)

    def named(self, *names):
        """Returns a kind whose messages may use other names."""
        return dataclasses.replace(self, names=(*self.names, *names))


def fixed(value):
    """An argument that stays as it is, such as `training`."""
    return Kind(value, {})


def count(valid, least=1):
    """An integer >= `least`."""
    wrong = _NO_VALUE | {
        "number_text": "4",
        "below": least - 1,
        "negative": -7,
        "very_negative": -(2**40),
        "fraction": 1.5,
        "whole_float": 2.0,
        "nan": NAN,
        "inf": INF,
        "complex": 1j,
        "bool": True,
        "list": [2],
        "array": np.ones(2),
    }
    return Kind(valid, wrong)


def limited(valid, least=1):
    """An integer >= `least` for which memory is needed."""
    return count(valid, least).plus(
        huge=10**9, past_int32=2**31, giant=2**40, past_int64=2**70
    )


def size(valid):
    """A number of features, heads or rows of a weight."""
    return count(valid).plus(past_int32=2**31, giant=2**40, past_int64=2**70)


def token_id(valid, vocabulary_size=None):
    """A token id."""
    kind = count(valid, 0).plus(past_int64=2**70)
    if vocabulary_size is None:
        return kind
    return kind.plus(outside=vocabulary_size, giant=2**40)


def number(valid, least=-INF, most=INF):
    """A finite number in [least, most]."""
    wrong = _NO_VALUE | {
        "number_text": "0.5",
        "nan": NAN,
        "inf": INF,
        "negative_inf": -INF,
        "complex": 0.5j,
        "bool": True,
        "list": [0.5],
        "array": np.full(2, 0.5),
    }
    if least > -INF:
        wrong |= {"below": least - 0.5, "very_negative": -1e300}
    if most < INF:
        wrong |= {"above": most + 0.5, "huge": 1e300, "giant": 2**2000}
    return Kind(valid, wrong)


def rate(valid):
    """A number in [0, 1)."""
    return number(valid, 0, 1).plus(one=1.0)


def positive(valid):
    """A finite number > 0."""
    return number(valid, 0).plus(zero=0.0)


def flag(valid):
    """A bool."""
    return Kind(
        valid,
        _NO_VALUE
        | {
            "zero": 0,
            "one": 1,
            "two": 2,
            "yes": "yes",
            "nan": NAN,
            "list": [True],
            "array": np.array([True, False]),
        },
    )


def choice(valid):
    """One of some names."""
    return Kind(
        valid,
        _NO_VALUE
        | {
            "empty": "",
            "number": 3,
            "fraction": 1.5,
            "nan": NAN,
            "bool": True,
            "list": ["abc"],
            "array": np.array(["abc", "abc"]),
        },
    )


def title(valid):
    """A str without a limited set of values."""
    return choice(valid).without("text", "empty")


def seed(valid):
    """A seed of a generator."""
    return Kind(
        valid,
        {
            "text": "abc",
            "fraction": 1.5,
            "nan": NAN,
            "complex": 1j,
            "bool": True,
            "dict": {"a": 1},
            "object": object(),
            "list": [1.5],
        },
    )


def instance(valid):
    """An object of a class of the package, or with some methods."""
    return Kind(
        valid,
        _NO_VALUE
        | {
            "empty_text": "",
            "number": 3,
            "nan": NAN,
            "bool": True,
            "list": [valid],
            "empty": [],
            "array": np.ones(2),
            "function": len,
            "own_type": type(valid),
        },
    )


def function(valid):
    """A function."""
    kind = instance(valid).without("function", "own_type", "type")
    return kind.plus(empty_dict={})


def path(valid):
    """A path of a file or folder."""
    return Kind(
        valid,
        {
            "none": None,
            "number": 3,
            "fraction": 1.5,
            "bytes": b"x",
            "empty": "",
            "list": ["x"],
            "dict": {"a": 1},
            "object": object(),
            "null": "a\0b",
            "surrogate": "\ud800",
            "deep": DEEP,
            "array": np.ones(2),
        },
    )


def text(valid):
    """A text, or a nest of texts."""
    return Kind(
        valid,
        {
            "none": None,
            "number": 3,
            "nan": NAN,
            "bool": True,
            "bytes": b"abc",
            "list_of_none": [None],
            "mixed": ["abc", 3],
            "list_of_bytes": [b"abc"],
            "dict": {"a": 1},
            "set": {"abc"},
            "object": object(),
            "array": np.ones(2),
        },
    )


def lines(valid):
    """A list of texts."""
    return text(valid).plus(string="abc", nested=[["abc"]])


_NO_TENSOR = _NO_VALUE | {
    "number": 3,
    "nan": NAN,
    "list_of_none": [None],
    "list_of_text": ["abc", "de"],
    "ragged": [[1, 2], [3]],
    "ragged_inside": [[[1, 2], [3]], [[4]]],
    "deep": DEEP,
    "empty": [],
    "endless": ENDLESS,
    "function": len,
}


def _shapes(x, batch=True):
    """Arrays of other shapes with the dtype of an array."""
    found = {
        "scalar": np.zeros((), x.dtype),
        "rank_less": x[0] if x.ndim > 1 else np.zeros((), x.dtype),
        "rank_more": x[None, None],
    }
    if batch:
        found["batch"] = np.concatenate([x, x, x])
    return found


def floats(valid, batch=True, width=True, length=False):
    """A float tensor.

    Args:
        valid: NumPy array.
        batch: bool. Whether the first axis must have this size. Default True.
        width: bool. Whether the last axis must have this size. Default True.
        length: bool. Whether axis 1 must have this size. Default False.
    """
    wrong = _NO_TENSOR | _shapes(valid, batch)
    wrong |= {
        "complex": valid.astype("complex64"),
        "array_of_text": np.full(valid.shape, "a"),
        "array_of_objects": np.full(valid.shape, None),
        "integers": valid.astype("int32"),
        "bools": valid > 0,
    }
    if width:
        wrong["wide"] = np.concatenate([valid, valid], -1)
        wrong["narrow"] = valid[..., :-1]
    if length:
        wrong["long"] = np.concatenate([valid, valid], 1)
        wrong["short"] = valid[:, :-1]
    return Kind(valid, wrong)


def ids(valid, vocabulary_size=None, batch=False, length=False):
    """Token ids, as an array.

    Args:
        valid: NumPy array.
        vocabulary_size: int. The ids must be smaller. Default None.
        batch: bool. Whether the first axis must have this size. Default False.
        length: bool. Whether axis 1 must have this size. Default False.
    """
    wrong = _NO_TENSOR | _shapes(valid, batch)
    wrong |= {
        "fractions": valid + 0.5,
        "whole_floats": valid.astype("float32"),
        "nans": np.full(valid.shape, NAN),
        "complex": valid.astype("complex64"),
        "bools": valid > 0,
        "array_of_text": valid.astype(str),
        "array_of_objects": np.full(valid.shape, None),
        "list_of_floats": (valid + 0.5).tolist(),
        "list_of_bools": (valid > 0).tolist(),
        "lists_of_text": valid.astype(str).tolist(),
    }
    if vocabulary_size is not None:
        for label, value in {
            "negative": -1,
            "outside": vocabulary_size,
            "giant": 2**40,
            "very_negative": -(2**40),
        }.items():
            array = valid.astype("int64")
            array.flat[-1] = value
            wrong[label] = array
            wrong[f"list_{label}"] = array.tolist()
        past = valid.astype(object)
        past.flat[0] = 2**70
        wrong["list_past_int64"] = past.tolist()
    if length:
        wrong["long"] = np.concatenate([valid, valid], 1)
        wrong["short"] = valid[:, :-1]
    return Kind(valid, wrong)


def mask(valid):
    """A bool mask with one value per token."""
    additive = np.where(valid, 0.0, -1e9).astype("float32")
    additive.flat[0] = -1e9
    wrong = _NO_TENSOR | _shapes(valid)
    wrong |= {
        "additive": additive,
        "twos": np.full(valid.shape, 2, "int32"),
        "complex": valid.astype("complex64"),
        "array_of_text": np.full(valid.shape, "a"),
        "array_of_objects": np.full(valid.shape, None),
        "long": np.concatenate([valid, valid], -1),
        "short": valid[..., :-1],
        "list_too_short": valid[..., :-1].tolist(),
        "list": valid.tolist(),
        "floats": valid.astype("float32"),
    }
    return Kind(valid, wrong).accepts(
        "zeros and ones are a mask, in lists too", "list", "floats"
    )


def positions(valid):
    """Integer positions, or segment ids, with one value per token."""
    wrong = _NO_TENSOR | _shapes(valid)
    wrong |= {
        "fractions": valid + 0.5,
        "whole_floats": valid.astype("float32"),
        "complex": valid.astype("complex64"),
        "bools": valid > 0,
        "array_of_text": np.full(valid.shape, "a"),
        "array_of_objects": np.full(valid.shape, None),
        "long": np.concatenate([valid, valid], -1),
        "short": valid[..., :-1],
    }
    return Kind(valid, wrong).optional()


def of_keras(valid):
    """An argument that Keras reads: an initializer, activation or policy."""
    return Kind(valid, {"text": "abc", "number": 3.5})
