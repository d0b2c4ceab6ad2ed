"""A check that all processes of a training do the same."""

import json
import zlib
from typing import Any

import keras
import numpy as np

from keras_attn import backend, checks
from keras_attn.training.backup_checks import plain_settings


def check_processes_agree(
    model: keras.Model | None = None,
    data: keras.utils.PyDataset | None = None,
    settings: dict[str, Any] | None = None,
) -> None:
    """Checks that all processes of a training have the same configuration.

    Processes that differ in their model, their number of batches or their
    settings wait for each other forever, or train different models without an
    error. All processes must call this function, before the first step; it
    raises in all of them. On TensorFlow, call it in the scope of the strategy.
    With one process it does nothing.

    Args:
        model: built `keras.Model`, whose weights must be equal. Default None:
            not compared.
        data: `keras.utils.PyDataset`, such as a `TokenDataset`. The number of
            batches must be equal, and `data.epoch`, if there is one. Default
            None: not compared.
        settings: dict of plain values that must be equal. Default: none.

    Raises:
        ValueError: two processes differ; the model is not built.

    Examples:
        >>> model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
        >>> keras_attn.training.check_processes_agree(
        ...     model, settings={"rate": 0.1}
        ... )
    """
    if model is not None:
        checks.instance("model", model, keras.Model, "a keras.Model")
        if not model.built:
            raise ValueError(
                f"`model` must be built. Received: {model.name}, which is not"
            )
    if data is not None:
        kind = keras.utils.PyDataset
        checks.instance("data", data, kind, "a keras.utils.PyDataset")
    settings = plain_settings(settings)
    if backend.process_count() == 1:
        return
    facts = {f"settings[{k!r}]": v for k, v in settings.items()}
    if data is not None:
        facts["the number of batches of `data`"] = len(data)
        facts["`data.epoch`"] = getattr(data, "epoch", None)
    if model is not None:
        facts["the number of weights of `model`"] = len(model.weights)
        # Not by path: Keras numbers the layers of a process.
        for i, weight in enumerate(model.weights):
            shape = f"{weight.dtype} {weight.name} of {tuple(weight.shape)}"
            facts[f"weight {i} of `model`"] = shape
    compare_processes(facts)
    if model is not None:
        # After the shapes: of weights that are divided between processes, all
        # processes read the parts together.
        values = [backend.to_numpy(weight.value) for weight in model.weights]
        compare_processes(
            {
                f"the checksum of weight {i} of `model`": zlib.crc32(
                    np.ascontiguousarray(value)
                )
                for i, value in enumerate(values)
            }
        )


def compare_processes(facts: dict[str, Any]) -> None:
    """Raises ValueError in all processes unless all have the same facts.

    Args:
        facts: dict of names to plain values, in the order in which they are
            compared.
    """
    found = [json.loads(t) for t in backend.gather_texts(json.dumps(facts))]
    first = found[0]
    for index, other in enumerate(found):
        for name in [*first, *(name for name in other if name not in first)]:
            if first.get(name) != other.get(name):
                raise ValueError(
                    f"{name} must be equal in all processes. Received: "
                    f"{checks.shown(first.get(name))} in process 0, "
                    f"{checks.shown(other.get(name))} in process {index}"
                )
