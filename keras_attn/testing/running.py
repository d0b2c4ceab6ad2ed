"""Chooses checks, runs them, and finds the smallest inputs that fail."""

import contextlib
import inspect
import itertools
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np

from keras_attn import checks
from keras_attn.testing.check_failure import CheckFailure, Mismatch, dtype_of


class Check(NamedTuple):
    """A property of a layer or model.

    Args:
        run: function of a subject and a size, which raises `Mismatch`.
        least_too: bool. Whether the smallest size is always run, because code
            may treat axes of length 1 differently. Default True.
        sizes: function of a subject that returns the smallest and the largest
            size, tuples of int. The largest one is run; if it fails, all sizes
            from the smallest one on are tried in increasing order.
        needs: function of a subject that returns what it lacks for this check,
            a str; "" if nothing.
    """

    run: Callable
    least_too: bool = True
    sizes: Callable = lambda subject: (subject.least, subject.most)
    needs: Callable = lambda subject: ""


def chosen_names(
    table: dict[str, Any],
    only: tuple[str, ...] | None,
    except_for: tuple[str, ...],
) -> tuple[list[str], bool]:
    """Returns the names of the checks to run.

    Args:
        table: dict of names to `Check`.
        only: tuple of str, or None: all.
        except_for: tuple of str.

    Returns:
        List of the names, and whether they must all apply.

    Raises:
        ValueError: an unknown name, or no names in `only`.
    """
    if only is not None:
        names = _names("only", only, table)
        if not names:
            raise ValueError(
                "`only` must name at least one check. Received: "
                f"only={checks.shown(only)}"
            )
    without = _names("except_for", except_for, table)
    chosen = table if only is None else names
    return [name for name in chosen if name not in without], only is not None


def run_checks(
    subject: Any, table: dict[str, Any], names: Sequence[str], all_apply: bool
) -> tuple[Any, ...]:
    """Runs checks of a subject, those that apply to it.

    Args:
        subject: object with an attribute `layer`, the layer or model, and a
            method `shapes`, which returns the shapes of the inputs of a size.
        table: dict of names to `Check`.
        names: list of str.
        all_apply: bool. Whether a check that does not apply is an error.

    Returns:
        Tuple of the names of the checks that ran.

    Raises:
        ValueError: a check does not apply, with `all_apply`.
        CheckFailure: the first check that fails.
    """
    lacks = {name: table[name].needs(subject) for name in names}
    for name, missing in lacks.items():
        if missing and all_apply:
            raise ValueError(
                f"`only` must name checks that apply: {name!r} needs "
                f"{missing}. Received: only={checks.shown(names)}"
            )
    run = [name for name in names if not lacks[name]]
    with nonzero_weights(subject.layer), warnings.catch_warnings():
        # Keras warns of a single key.
        warnings.filterwarnings("ignore", "You are using a softmax over axis")
        for name in run:
            _run(subject, name, table[name])
    return tuple(run)


def _names(argument, given, table):
    checks.iterable(argument, given, "a tuple of names of checks", sets=True)
    for name in given:
        checks.choice(argument, name, list(table))
    return tuple(given)


def _run(subject, name, check):
    least, most = check.sizes(subject)
    probes = (most, least) if check.least_too else (most,)
    for size in dict.fromkeys(probes):
        mismatch = _mismatch(check, subject, size)
        if mismatch is None:
            continue
        for smaller in _increasing(least, size):
            found = _mismatch(check, subject, smaller)
            if found is not None:
                size, mismatch = smaller, found
                break
        raise CheckFailure(
            type(subject.layer).__name__,
            name,
            mismatch.reason,
            subject.shapes(size),
            mismatch.difference,
        ) from mismatch.__cause__


def _increasing(least, most):
    """Returns the sizes from `least` to below `most`, in increasing order."""
    ranges = [
        range(low, high + 1) for low, high in zip(least, most, strict=True)
    ]
    sizes = sorted(itertools.product(*ranges), key=lambda s: (sum(s), s))
    return sizes[: sizes.index(most)]


def _mismatch(check, subject, size):
    """Returns the `Mismatch` of a size, or None. Any error is one."""
    try:
        check.run(subject, size)
    except Mismatch as mismatch:
        return mismatch
    except Exception as error:
        mismatch = Mismatch(
            f"it raises {type(error).__name__}: {_message(error)}".rstrip(".: ")
        )
        mismatch.__cause__ = error
        return mismatch
    return None


def _message(error):
    """Returns the first line of an error, without what Keras adds."""
    text = re.sub(r"\x1b\[\d+m", "", str(error))
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith("Exception encountered"):
        del lines[0]
    return lines[0].strip() if lines else ""


@contextlib.contextmanager
def nonzero_weights(layer: Any, scale: float = 0.3) -> Iterator[None]:
    """Adds noise to the weights of a layer, and removes it afterwards.

    Biases are zero initially, which hides some errors.
    """
    # Copies: on PyTorch an array may share the memory of its variable.
    before = [
        (v, np.array(keras.ops.convert_to_numpy(v))) for v in layer.weights
    ]
    random = np.random.default_rng(0)
    for variable, array in before:
        if variable.trainable and "float" in dtype_of(variable):
            noise = scale * random.normal(size=array.shape)
            variable.assign(array + noise.astype(array.dtype))
    try:
        yield
    finally:
        for variable, array in before:
            variable.assign(array)


def copy_of(layer: Any, **config: Any) -> Any:
    """Returns a layer made from the config of another, without its weights.

    Args:
        layer: a layer or model.
        **config: entries of the config that differ, such as `dtype`.
    """
    return type(layer).from_config({**layer.get_config(), **config})


def custom_objects(layer: Any) -> Any:
    """Returns a scope in which a class that is not registered can be loaded."""
    kind = type(layer)
    return keras.saving.custom_object_scope({kind.__name__: kind})


def takes(layer: Any, *names: Any) -> bool:
    """Returns whether `call` of a layer has all of these arguments."""
    parameters = inspect.signature(layer.call).parameters
    return set(names) <= parameters.keys()
