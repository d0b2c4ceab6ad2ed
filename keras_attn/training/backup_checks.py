"""Checks that a backup belongs to the current run."""

import json
from typing import Any

from keras_attn import checks
from keras_attn.typing import Nest, PathLike

# What `TrainingBackup` saves.
_ENTRIES = {
    "epoch": int,
    "batch": int,
    "stopped": bool,
    "steps_per_execution": int,
    "logs": dict,
    "settings": dict,
    "history": dict,
    "random": object,
    "order": object,
    "callbacks": list,
    "model": dict,
}


def check_entries(state: Nest) -> None:
    """Raises ValueError if a file is not a complete checkpoint.

    Args:
        state: what `read_state` returns.
    """
    if not isinstance(state, dict):
        raise ValueError(f"it holds a {type(state).__name__}, no checkpoint")
    for name, kind in _ENTRIES.items():
        if name not in state:
            raise ValueError(f"its entry {name!r} is missing")
        if not isinstance(state[name], kind):
            raise ValueError(f"its entry {name!r} must be a {kind.__name__}")


def check_save_freq(save_freq: Any) -> None:
    """Raises ValueError unless it is "epoch" or a positive integer."""
    if isinstance(save_freq, str) and save_freq == "epoch":
        return
    integer = isinstance(save_freq, int) and not isinstance(save_freq, bool)
    if not integer or save_freq < 1:
        raise ValueError(
            '`save_freq` must be "epoch" or a positive integer. '
            f"Received: save_freq={checks.shown(save_freq)}"
        )


def plain_settings(settings: dict[str, Any] | None) -> dict[str, Any]:
    """Returns settings as they are read back from a file.

    Args:
        settings: dict of plain values, or None.

    Returns:
        Dict.

    Raises:
        ValueError: they cannot be serialized.
    """
    if settings is None:
        return {}
    checks.instance("settings", settings, dict, "a dict of plain values")
    try:
        # NaN differs from itself, so the same run would be refused.
        return json.loads(json.dumps(settings, allow_nan=False))
    except (RecursionError, TypeError, ValueError) as error:
        raise ValueError(
            "`settings` must be a dict of plain values. "
            f"Received: a dict that cannot be written as JSON ({error})"
        ) from error


def check_settings(path: PathLike, before: Any, now: Any) -> None:
    """Raises ValueError if a backup was made with other settings."""
    changed = [
        f"{name} was {before.get(name)!r} and is {now.get(name)!r}"
        for name in sorted({*before, *now})
        if before.get(name) != now.get(name)
    ]
    if changed:
        raise ValueError(
            "`settings` must be those of the backup, or `resume=False`, which "
            f"removes it. Received: {path}, where {', '.join(changed)}"
        )


def check_place(state: dict[str, Any], model: Any, steps: int | None) -> None:
    """Raises ValueError if an epoch cannot be resumed.

    Args:
        state: dict. A checkpoint.
        model: the model that is trained.
        steps: int or None. Batches per epoch, if Keras knows the number.
    """
    before, now = state["steps_per_execution"], model.steps_per_execution
    if before != now:
        raise ValueError(
            "`steps_per_execution` must be that of the backup. "
            f"Received: steps_per_execution={now}, and {before} in the backup"
        )
    # The last execution of an epoch may be counted as a full one.
    if steps is not None and state["batch"] >= steps + now:
        raise ValueError(fewer_batches(state, steps))


def fewer_batches(state: Nest, steps: int) -> str:
    """Returns the error message for an epoch with fewer batches."""
    return (
        "The data of `fit` must be those of the backup in `directory`, which "
        f"had trained on {state['batch']} batches of epoch "
        f"{state['epoch'] + 1}. "
        f"Received: {steps} batches"
    )
