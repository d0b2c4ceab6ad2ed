"""The weights of a layer as the parameters of a PyTorch module."""

import re
from collections.abc import Iterator
from typing import Any

import keras

if keras.backend.backend() == "torch":
    import torch

_WEIGHTS = "_torch_params"  # Keras's name for them, as of Keras 3.15.1


class TorchNames:
    """Mixin of layers and models: names of the parameters on PyTorch.

    A Keras layer is a `torch.nn.Module`. Keras registers its weights with
    PyTorch when it is built or when `parameters()` is first called, so the
    `state_dict()` of a model that is built in its constructor lacks most of
    them; and their names contain numbers that Keras counts per process, all
    as of Keras 3.15.1.

    With this mixin every weight is registered whenever PyTorch asks, once, as
    `_torch_params.<path>`, where the path consists of the names of the layers
    from this one to that of the weight: `_torch_params.block_0/self_attention/
    query/kernel`. Names that Keras numbers are numbered within their parent.
    Inner layers are no submodules, so that no weight is listed twice.

    `half`, `to(dtype)` and the like also change the dtype policies of the
    layers, which decide in which dtype they compute.
    """

    def _track_variables(self):
        variables = _variables_by_name(self)
        # Private: `del` would delete the attribute too, as of PyTorch 2.13.0.
        for name, module in list(self._modules.items()):
            if isinstance(module, keras.layers.Layer):
                del self._modules[name]
                # An ordinary attribute from here on.
                self.__dict__[name] = module
        self._torch_params = _Parameters(self, variables)
        self.__dict__["_registered"] = _signature(self)

    def _register_weights(self):
        """Registers the weights unless they are those of the last time."""
        if self.__dict__.get("_registered") != _signature(self):
            self._track_variables()

    def _post_track_variable(self, variable):
        # The next `_register_weights` sees it.
        pass

    def _post_untrack_variable(self, variable):
        # Not to keep the memory of the variable.
        self._modules.pop(_WEIGHTS, None)

    def named_modules(
        self, memo: Any = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[Any]:
        """Yields this module and the one that holds its weights."""
        self._register_weights()
        yield from super().named_modules(memo, prefix, remove_duplicate)

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Returns all weights by name."""
        self._register_weights()
        return super().state_dict(*args, **kwargs)

    def _load_from_state_dict(self, *args, **kwargs):
        self._register_weights()
        return super()._load_from_state_dict(*args, **kwargs)

    def _apply(self, *args, **kwargs):
        self._register_weights()
        return super()._apply(*args, **kwargs)


if keras.backend.backend() == "torch":

    class _Parameters(torch.nn.ParameterDict):
        """The parameters of all variables of a layer."""

        def __init__(self, layer, variables):
            # Private: the parameters without a cast, as of Keras 3.15.1.
            super().__init__({k: v._value for k, v in variables.items()})
            # Not as attributes: the layer would become a submodule.
            vars(self).update(_layer=layer, _variables=variables)

        def _load_from_state_dict(self, *args, **kwargs):
            super()._load_from_state_dict(*args, **kwargs)
            # `load_state_dict(assign=True)` replaces the parameters.
            self._update_variables()

        def _apply(self, fn, recurse=True):
            super()._apply(fn, recurse)
            self._update_variables()
            # Private: no public list of nested layers, as of Keras 3.15.1.
            for part in self._layer._flatten_layers():
                _change_policy(part, fn)
            for metric in getattr(self._layer, "metrics", ()):
                for variable in metric.variables:
                    value = variable.value
                    # An integer, so that the dtype of the metric stays.
                    probe = torch.empty(0, dtype=int, device=value.device)
                    value = value.detach().to(fn(probe).device)
                    # Private: see below.
                    variable._value = torch.nn.Parameter(value, False)
            return self

        def _update_variables(self):
            """Makes replaced parameters those of the variables."""
            replaced = False
            for name, variable in self._variables.items():
                parameter = self[name]
                # Private: `assign` copies into the old parameter, and the
                # dtype has no setter, as of Keras 3.15.1.
                replaced |= variable._value is not parameter
                variable._value = parameter
                variable._dtype = keras.backend.standardize_dtype(
                    parameter.dtype
                )
            if replaced:
                for part in self._layer._flatten_layers(include_self=False):
                    # Keras registers its parameters again when asked.
                    part._modules.pop(_WEIGHTS, None)

    def _change_policy(layer, fn):
        policy = layer.dtype_policy
        before = torch.empty(0, dtype=getattr(torch, policy.variable_dtype))
        after = keras.backend.standardize_dtype(fn(before).dtype)
        if after != policy.variable_dtype:
            mode = policy.quantization_mode
            layer.dtype_policy = f"{mode}_from_{after}" if mode else after

else:

    class TorchNames:
        """Does nothing on this backend."""


def _signature(layer):
    """Returns what changes when weights are added, removed or replaced."""
    found = [_WEIGHTS in layer._modules, len(layer._modules)]
    for part in layer._flatten_layers():
        # Private: no public attribute lists a layer's own, as of Keras 3.15.1.
        own = [*part._trainable_variables, *part._non_trainable_variables]
        found += map(id, part._seed_generators)
        for variable in own:
            found += id(variable), id(variable._value)
    return found


def _variables_by_name(layer):
    """Returns {path below this layer: variable} of all its variables."""
    found, seen = {}, set()

    def visit(part, prefix):
        # Private: as in `_signature`, as of Keras 3.15.1.
        own = [*part._trainable_variables, *part._non_trainable_variables]
        own += [generator.state for generator in part._seed_generators]
        for variable in own:
            if id(variable) not in seen:
                seen.add(id(variable))
                name = _unnumbered(variable.name, "variable")
                found[_unused(prefix + name, found)] = variable
        used = {}
        # Private: the nested layers themselves, as of Keras 3.15.1.
        for child in part._layers:
            if id(child) not in seen:
                seen.add(id(child))
                name = _unnumbered(child.name, _snake_case(type(child)))
                name = _unused(name, used)
                used[name] = None
                visit(child, f"{prefix}{name}/")

    visit(layer, "")
    return found


def _unnumbered(name, default):
    """Returns the default for a name that Keras made of it and a number."""
    return default if re.fullmatch(rf"{default}(_\d+)?", name) else name


def _unused(name, used):
    number, found = 0, name
    while found in used:
        number += 1
        found = f"{name}_{number}"
    return found


def _snake_case(kind):
    # As Keras names layers, as of Keras 3.15.1.
    name = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", kind.__name__)
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()
