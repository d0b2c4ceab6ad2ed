"""FSDP2 of a Keras layer: which parameters it divides, and which are used.

    python docs/guides/distributed_processes/fsdp.py

One process is enough to see it.
"""

import os
import tempfile

os.environ["KERAS_BACKEND"] = "torch"

import keras
import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


class Stateless(torch.nn.Module):
    """A Keras layer that reads its weights from parameters of this module."""

    def __init__(self, layer):
        super().__init__()
        self.weights = torch.nn.ParameterList(
            torch.nn.Parameter(v.value.detach().clone())
            for v in layer.trainable_variables
        )
        # In a list, so that PyTorch does not register its parameters, too.
        self.layer = [layer]

    def forward(self, x):
        (layer,) = self.layer
        others = [v.value for v in layer.non_trainable_variables]
        return layer.stateless_call(list(self.weights), others, x)[0]


def report(name, parameter):
    """Prints the type of a parameter, and whether it has a gradient."""
    has = "no" if parameter.grad is None else "a"
    print(f"{name}: {type(parameter).__name__} with {has} gradient")


def main():
    """Divides a dense layer in two ways."""
    file = f"file://{tempfile.mkdtemp()}/store"
    torch.distributed.init_process_group("gloo", file, rank=0, world_size=1)
    mesh = init_device_mesh("cpu", (1,))
    x = torch.ones(2, 3)

    layer = keras.layers.Dense(4, use_bias=False)
    layer.build((None, 3))
    fully_shard(layer, mesh=mesh)
    layer(x).sum().backward()
    (parameter,) = layer.parameters()
    report("parameter of the layer", parameter)
    report("variable of the layer", layer.kernel.value)

    layer = keras.layers.Dense(4, use_bias=False)
    layer.build((None, 3))
    module = fully_shard(Stateless(layer), mesh=mesh)
    module(x).sum().backward()
    (parameter,) = module.parameters()
    report("parameter for stateless_call", parameter)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
