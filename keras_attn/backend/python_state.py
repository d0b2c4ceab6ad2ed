"""The Python attributes of an object that its compiled programs read."""

import dataclasses
import functools
import operator
import types
import weakref
from typing import Any

import keras
import numpy as np

_ATOMS = (type(None), bool, int, str, bytes)
# Weights, and objects that only training uses: compared by identity.
_WHOLE = (
    keras.Variable,
    keras.Metric,
    keras.Loss,
    keras.Optimizer,
    keras.callbacks.Callback,
)


class PythonState:
    """Snapshot of the Python attributes of an object and its parts.

    A compiled program contains the values of the attributes that it has read,
    such as the end token of a model or the window of an attention layer. Parts
    are nested layers, objects of this package or of the package of the object
    that has them, the latter's classes, lists, dicts, sets and NumPy arrays;
    other objects are compared by identity. What only training and Keras's
    bookkeeping use is left out. Snapshots of equal attributes are equal.

    Args:
        owner: object with a `__dict__`.
        hidden: str. Name of an attribute of the owner that is left out. Default
            None.
    """

    def __init__(self, owner: Any, hidden: str | None = None) -> None:
        self._hidden = hidden
        self._objects, self._containers = [], []
        self._mappings, self._arrays = [], []
        self._parts, self._indices = [(owner, ())], {id(owner): 0}
        # The list grows as parts are found.
        self._facts = tuple(self._describe(*part) for part in self._parts)
        # An id that is compared must not be reused.
        self._kept = [part for part, _ in self._parts[1:]]
        del self._parts, self._indices

    def __eq__(self, other: Any) -> bool:
        return self._facts == other._facts

    def __hash__(self) -> int:
        return hash(self._facts)

    def is_current(self) -> bool:
        """Returns whether all attributes are the same objects.

        Takes microseconds where a second snapshot takes milliseconds.
        """
        same = operator.is_
        for attributes, count, read, values in self._objects:
            if len(attributes) != count:
                return False
            try:
                found = read(attributes)
            except KeyError:
                return False
            if not all(map(same, found, values)):
                return False
        for container, values in self._containers:
            if len(container) != len(values):
                return False
            if not all(map(same, container, values)):
                return False
        for mapping, keys, values in self._mappings:
            if len(mapping) != len(keys):
                return False
            if not all(map(same, mapping, keys)):
                return False
            if not all(map(same, mapping.values(), values)):
                return False
        return all(_content(array) == seen for array, seen in self._arrays)

    def _describe(self, part, packages):
        """Returns hashable facts about a part, and queues its own parts."""
        kind = type(part)
        if kind in weakref.ProxyTypes or isinstance(part, _WHOLE):
            return id(part)
        if isinstance(part, np.ndarray):
            content = _content(part)
            self._arrays.append((part, content))
            return content
        if isinstance(part, dict):
            return kind, self._items(part, packages)
        if isinstance(part, (list, tuple, set, frozenset)):
            values = tuple(part)
            if not isinstance(part, (tuple, frozenset)):
                self._containers.append((part, values))
            return kind, tuple(self._fact(value, packages) for value in values)
        if isinstance(part, type):
            if _package(part) not in packages - {"keras_attn"}:
                return id(part)
            self._watch(vars(part))
            # Python adds names like `__slotnames__` on its own.
            return id(part), *(
                (name, self._fact(value, packages))
                for name, value in vars(part).items()
                if not name.startswith("__")
                or isinstance(value, types.FunctionType)
            )
        is_layer = isinstance(part, keras.Layer)
        is_owner = part is self._parts[0][0]
        if not (is_layer or is_owner or _has_parts(kind, packages)):
            return id(part)
        packages = _packages(kind)
        attributes = vars(part)
        unread = _bookkeeping() if is_layer else frozenset()
        names = [
            name
            for name in attributes
            if name not in unread and not (is_owner and name == self._hidden)
        ]
        found = {name: attributes[name] for name in names}
        if names:
            # The first name again, because the value of a single name would
            # not come in a tuple.
            read = operator.itemgetter(*names, names[0])
            values = (*found.values(), found[names[0]])
            self._objects.append((attributes, len(attributes), read, values))
        if is_layer and "_modules" in attributes:
            # PyTorch keeps layers there; which of them depends on whether the
            # weights have been registered.
            modules = attributes["_modules"]
            self._watch(modules)
            found |= {n: m for n, m in modules.items() if n not in unread}
        names = tuple(sorted(found))
        classes = [c for c in kind.__mro__[1:] if _package(c) in packages]
        return (
            names,
            self._fact(kind, packages),
            tuple(self._fact(found[name], packages) for name in names),
            tuple(self._fact(part, packages) for part in classes),
        )

    def _items(self, mapping, packages):
        keys, values = self._watch(mapping)
        return tuple(self._fact(part, packages) for part in (*keys, *values))

    def _watch(self, mapping):
        keys, values = tuple(mapping), tuple(mapping.values())
        self._mappings.append((mapping, keys, values))
        return keys, values

    def _fact(self, value, packages):
        """Returns an immutable value, or the index of the facts of a part."""
        kind = type(value)
        if kind in _ATOMS:
            return kind, value
        if kind in (float, complex) or isinstance(value, np.generic):
            # NaN differs from itself, and 0.0 equals -0.0.
            return kind, repr(value)
        index = self._indices.get(id(value))
        if index is None:
            index = self._indices[id(value)] = len(self._parts)
            self._parts.append((value, packages))
        return index


def _content(array):
    return array.shape, array.dtype.str, hash(array.tobytes())


@functools.cache
def _package(kind):
    return str(kind.__module__).partition(".")[0]


@functools.cache
def _packages(kind):
    """Returns the packages whose objects are parts of an object."""
    libraries = {"builtins", "keras", "tensorflow", "torch"}
    return frozenset({"keras_attn", _package(kind)} - libraries)


@functools.cache
def _has_parts(kind, packages):
    known = (keras.DTypePolicy, types.SimpleNamespace)
    return bool(getattr(kind, "__dictoffset__", 0)) and (
        issubclass(kind, known)
        or dataclasses.is_dataclass(kind)
        or _package(kind) in packages
    )


@functools.cache
def _bookkeeping():
    """Returns the names of attributes that no forward pass reads."""
    # Named, because names that Keras makes up would count up those of users.
    model = keras.Sequential(name="model")
    model.compile(keras.optimizers.SGD(name="sgd"))
    # Private: those that a forward pass reads, as of Keras 3.15.1.
    read = {"_dtype_policy", "_functional", "_layers", "_supports_masking"}
    read |= {"activity_regularizer", "autocast"}
    return frozenset(vars(model)) - read | _SET_LATER


# By training, evaluation and prediction, as of Keras 3.15.1, and by our own
# registration of weights with PyTorch.
_SET_LATER = {
    "_distributed_dataset",
    "_epoch_iterator",
    "_eval_epoch_iterator",
    "_jax_state",
    "_registered",
    "_torch_params",
    "history",
    "stop_evaluating",
    "stop_predicting",
}
