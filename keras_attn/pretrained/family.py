"""What a family of published models tells about itself."""

from typing import Any, NamedTuple


class Family(NamedTuple):
    """Holds all that `load` and `save` need to know of a family of models.

    Args:
        model_type: str. The value of `model_type` in its `config.json`.
        serves: function of a model that says whether it is of this family.
        make: function of a `Config` and of the set of names of the file's
            tensors that returns a model, its weights random.
        describe: function of a model that returns the values of `config.json`,
            or raises ValueError where the family has no such model.
        tensors: function of a model that returns `TensorName`s, one a weight.
        constants: function of a model that returns {name: function that
            returns an array}: tensors that a file may hold, but that are no
            weights here, because they follow from the config.
    """

    model_type: str
    serves: Any
    make: Any
    describe: Any
    tensors: Any
    constants: Any
