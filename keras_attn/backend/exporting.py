"""What `keras.Model.export` needs on each backend."""

import warnings
from collections.abc import Sequence
from typing import Any

import keras
from keras import tree

if keras.backend.backend() == "torch":
    import torch


def export_options(
    format: str,
    input_signature: Sequence[Any],
    options: dict[str, Any],
    other_lengths: Any = (),
) -> Any:
    """Completes the options of `keras.Model.export`.

    On PyTorch, `dynamic_shapes` gets an entry for each axis without a size:
    without it, Keras exports a program for one row of one token. On JAX, Keras
    gives the axes of all inputs different names, and lengths with different
    names cannot be added (both as of Keras 3.15.1).

    Args:
        format: str, as for `export`.
        input_signature: list with the nest of specs of the inputs.
        options: dict, the further arguments of `export`.
        other_lengths: names of inputs that have another length than the tokens,
            if the inputs are a dict.

    Returns:
        The options.

    Raises:
        ValueError: a format that the backend cannot write.
    """
    backend = keras.backend.backend()
    if backend == "jax" and format == "tf_saved_model":
        return _with_named_axes(input_signature[0], options, other_lengths)
    if backend != "torch":
        return options
    sizes = [spec.shape for spec in tree.flatten(input_signature)]
    if not any(None in shape for shape in sizes):
        return options
    if format == "tf_saved_model":
        raise ValueError(
            '`format` must be "torch" on the PyTorch backend, or "onnx"; for a '
            "SavedModel save a `.keras` file, load it on TensorFlow or JAX and "
            "export it there (as of Keras 3.15.1, PyTorch cannot export one "
            f"with a dynamic batch size or length). Received: format={format!r}"
        )
    if format != "torch":
        return options
    return {"dynamic_shapes": _dynamic_shapes(input_signature), **options}


def writes_onnx(format: str) -> bool:
    """Returns whether `export_onnx` writes this format on this backend."""
    return format == "onnx" and keras.backend.backend() == "torch"


def export_onnx(
    model: keras.Model,
    path: Any,
    input_signature: Sequence[Any],
    opset_version: int | None = None,
) -> None:
    """Writes an ONNX file on PyTorch, with any batch size and length.

    Keras uses PyTorch's older exporter if an axis has no size, which cannot
    export attention, and an example of one row of one token
    (as of Keras 3.15.1). This uses that of `torch.export`.

    Args:
        model: `keras.Model`.
        path: path of the file.
        input_signature: list with the nest of specs of the inputs.
        opset_version: int. Default: that of PyTorch.
    """
    # As Keras does for the format "torch": an axis of 1 would become constant.
    examples = tree.map_structure(
        lambda spec: torch.ones(
            [2 if size is None else size for size in spec.shape],
            dtype=getattr(torch, spec.dtype),
        ),
        input_signature,
    )
    with warnings.catch_warnings():
        # From PyTorch: Keras registers its variables twice.
        warnings.filterwarnings("ignore", ".*not properly registered.*")
        program = torch.export.export(
            model,
            tuple(examples),
            dynamic_shapes=_dynamic_shapes(input_signature),
            strict=False,
        )
    torch.onnx.export(
        program,
        input_names=_input_names(input_signature),
        opset_version=opset_version,
        dynamo=True,
        optimize=True,
        verbose=False,
    ).save(path)


def _input_names(input_signature):
    """Returns the names of the inputs: dict keys, or `input_0`, ..."""
    (inputs,) = input_signature
    if isinstance(inputs, dict):
        return sorted(inputs)
    return [f"input_{i}" for i in range(len(tree.flatten(inputs)))]


def _dynamic_shapes(input_signature):
    return [tuple(tree.map_structure(_dynamic_axes, input_signature))]


def _with_named_axes(inputs, options, other_lengths):
    if not isinstance(inputs, dict):
        return options
    shapes = {
        name: _named_axes(spec, name if name in other_lengths else "axis")
        for name, spec in inputs.items()
    }
    given = options.get("jax2tf_kwargs", {})
    merged = {"polymorphic_shapes": [shapes], **given}
    return {**options, "jax2tf_kwargs": merged}


def _named_axes(spec, name):
    names = ["batch", *(f"{name}{n}" for n in range(1, len(spec.shape)))]
    sizes = zip(spec.shape, names, strict=True)
    return f"({', '.join(str(size or name) for size, name in sizes)})"


def _dynamic_axes(spec):
    return {
        axis: torch.export.Dim.DYNAMIC
        for axis, size in enumerate(spec.shape)
        if size is None
    }
