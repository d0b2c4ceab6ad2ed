"""Malformed calls of every public name, by package."""

import functools

from tests.malformed import (
    calls_blocks,
    calls_cache,
    calls_datasets,
    calls_decoding,
    calls_explain,
    calls_layers,
    calls_models,
    calls_ops,
    calls_pretrained,
    calls_testing,
    calls_text,
    calls_training,
)

# Dict of `package.Name` to a function of a folder for files that returns the
# calls of the name, or to the reason why it has none.
REGISTRY = {
    f"{module.__name__.rpartition('calls_')[2]}.{name}": calls
    for module in (
        calls_blocks,
        calls_cache,
        calls_datasets,
        calls_decoding,
        calls_explain,
        calls_layers,
        calls_models,
        calls_ops,
        calls_pretrained,
        calls_testing,
        calls_text,
        calls_training,
    )
    for name, calls in module.CALLS.items()
}


@functools.cache
def calls_of(name, folder):
    """Returns the calls of a public name.

    Args:
        name: str, `package.Name`.
        folder: path of a folder for files.

    Returns:
        Tuple of `Call`.
    """
    made = REGISTRY[name]
    return () if isinstance(made, str) else tuple(made(folder))


def cases_of(name, folder):
    """Returns the malformed calls of a public name, a list of `Case`."""
    return [case for call in calls_of(name, folder) for case in call.cases()]
