"""Reads the values of a tensor, where that is possible and free."""

import keras

from keras_attn.typing import Tensor, TensorLike

if keras.backend.backend() == "torch":
    import torch
elif keras.backend.backend() == "jax":
    import jax
    import jax.export
elif keras.backend.backend() == "tensorflow":
    import tensorflow as tf


def concrete(tensor: TensorLike, anywhere: bool = False) -> Tensor | None:
    """Returns the values as a NumPy array, or None if they cannot be read.

    Every check of values in a forward pass goes through this function or
    `is_concrete`: it must not wait for an accelerator.

    Args:
        tensor: a tensor of the current backend, a symbolic one, or a spec.
        anywhere: bool. Read tensors on accelerators too. Default False.

    Returns:
        A NumPy array, or None.
    """
    readable = is_concrete(tensor, anywhere)
    return keras.ops.convert_to_numpy(tensor) if readable else None


def is_torch_program() -> bool:
    """Returns whether `torch.compile` or `torch.export` is tracing.

    Some operations of Keras would split the program. Call this function only
    to take another way to the same result.

    Returns:
        Bool; False on other backends.
    """
    if keras.backend.backend() != "torch":
        return False
    return torch.compiler.is_compiling()


def is_concrete(tensor: TensorLike, anywhere: bool = False) -> bool:
    """Returns whether Python code may branch on the values of a tensor.

    Values cannot be read during tracing, and reading them from an accelerator
    would block until it has caught up.

    Args:
        tensor: a tensor of the current backend, a symbolic one, or a spec.
        anywhere: bool. Read tensors on accelerators too. Default False.

    Returns:
        Bool.
    """
    return _has_values(tensor) and (anywhere or is_on_host(tensor))


def is_on_host(tensor: TensorLike) -> bool:
    """Returns whether a tensor is in the memory of the CPU.

    Args:
        tensor: a tensor of the current backend that has values.

    Returns:
        Bool.
    """
    name = keras.backend.backend()
    if name == "torch":
        return tensor.device.type == "cpu"
    if name == "jax":
        return all(device.platform == "cpu" for device in tensor.devices())
    return "GPU" not in tensor.device


def known_size(size: int) -> int | None:
    """Returns the length of an axis, or None if a branch would fix it.

    Exported programs have symbolic sizes. On JAX a comparison raises an
    exception unless it holds for all sizes (as of JAX 0.10.2); on PyTorch the
    program is limited to the sizes for which it holds.

    Args:
        size: int, None, or a symbol.

    Returns:
        Int or None; a symbol in a program of `torch.compile`, which is compiled
        again if a comparison has another result.
    """
    name = keras.backend.backend()
    if name == "jax" and jax.export.is_symbolic_dim(size):
        return None
    if name == "torch" and isinstance(size, torch.SymInt):
        return None
    return size


def _has_values(tensor):
    name = keras.backend.backend()
    if isinstance(tensor, keras.KerasTensor):
        return False
    if name == "torch":
        return (
            # No subclasses: the fake tensors of a capture have no values.
            type(tensor) in (torch.Tensor, torch.nn.Parameter)
            and tensor.device.type != "meta"
            and not torch.compiler.is_compiling()
            and not torch.jit.is_tracing()
        )
    if name == "jax":
        return isinstance(tensor, jax.Array) and not isinstance(
            tensor, jax.core.Tracer
        )
    return (
        tf.is_tensor(tensor)
        # Inside a graph a variable has no value yet.
        and not isinstance(tensor, (keras.Variable, tf.Variable))
        and hasattr(tensor, "numpy")
    )
