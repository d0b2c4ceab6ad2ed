"""Description of a family of published models."""

from typing import Any, NamedTuple


class Family(NamedTuple):
    """Functions with which `load` and `save` handle a model family.

    Args:
        model_type: str. The value of `model_type` in its `config.json`.
        serves: function of a model that returns whether it is of this family.
        make: function of a `Config` and of the set of names of the file's
            tensors that returns a model with random weights.
        describe: function of a model that returns the values of `config.json`,
            or raises ValueError if the model does not fit the family.
        tensors: function of a model that returns one `TensorName` per weight.
        constants: function of a model that returns {name: function that
            returns an array}: tensors that a file may contain but that are not
            weights here, because they follow from the config.
    """

    model_type: str
    serves: Any
    make: Any
    describe: Any
    tensors: Any
    constants: Any
