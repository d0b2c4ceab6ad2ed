"""Quantization of the sublayers of a layer or model.

Keras quantizes innermost layers and warns where a layer lacks the mode, without
naming it (as of Keras 3.15.1); here that is an error, before any layer changes.
"""

import re
from typing import Any

import keras

from keras_attn.layers.quantized_kernel import QuantizedKernel

# These replace the kernels of linear layers by what they compute from
# activations, block after block.
CALIBRATED = "gptq", "awq"


def layers_to_quantize(
    layer: keras.layers.Layer, mode: str | None, filters: Any = None
) -> list[Any]:
    """Returns the innermost sublayers that a mode quantizes.

    Args:
        layer: `keras.layers.Layer`, built.
        mode: str, a quantization mode of Keras.
        filters: as for `keras.Model.quantize`.

    Returns:
        List of layers with a kernel or an embedding, all of which have `mode`.

    Raises:
        ValueError: one of them does not have it.
    """
    chosen = [
        part
        # Private: no public method lists nested layers, as of Keras 3.15.1.
        for part in layer._flatten_layers()
        if _has_matrix(part)
        and _selected(part, filters)
        # Rounding would send tokens to other experts.
        and not getattr(part, "keeps_float", False)
    ]
    lacking = {
        part: _modes(part) for part in chosen if mode not in _modes(part)
    }
    if lacking:
        kinds = ["Dense", "EinsumDense"]
        kinds += ["Embedding"] * (mode in ("int8", "int4"))
        listed = ", ".join(f"keras.layers.{kind}" for kind in kinds)
        raise ValueError(
            f"`mode` must be one that all layers with a kernel or an embedding "
            "have. Pass `filters` to quantize the others only, for example "
            f"`filters=lambda layer: isinstance(layer, ({listed}))`. "
            f"Received: mode={mode!r}, but {_described(lacking)}"
        )
    return chosen


def calibrated_layers(
    model: keras.Model,
    structure: dict[str, Any] | None,
    mode: str | None,
    filters: Any = None,
) -> list[Any]:
    """Returns the layers that Keras calibrates for `"gptq"` or `"awq"`.

    Args:
        model: `keras.Model`.
        structure: dict, see
            `keras.Model.get_quantization_layer_structure`, or None.
        mode: str.
        filters: as for `keras.Model.quantize`.

    Returns:
        List of layers.

    Raises:
        ValueError: the model has no such structure, or Keras would mistake the
            inputs of a projection for its outputs.
    """
    if structure is None:
        raise ValueError(
            f'`mode` must be "int8", "int4" or "float8" for a '
            f"{type(model).__name__}: calibration calls one stack of blocks "
            "after the other, each with the output of the last. Encoders, "
            "models on an encoder and `GPT` have one, or pass "
            f"`quantization_layer_structure` to the config. Received: {mode!r}"
        )
    blocks = structure["sequential_blocks"]
    chosen = [
        part for x in blocks for part in layers_to_quantize(x, mode, filters)
    ]
    for part in chosen:
        shape = tuple(part.kernel.shape)
        if len(shape) == 3 and _misread(part):
            raise ValueError(
                f"`mode` must not be {mode!r} where the width of the model is "
                "not the largest axis of a projection's kernel, which Keras "
                "takes it for (as of Keras 3.15.1). "
                f"Received: {part.path} with a kernel of shape {shape}"
            )
    return chosen


def save_zero_points(layer: Any) -> None:
    """Makes a calibrated layer save its zero points.

    Keras skips them in files, which then cannot be loaded (as of Keras 3.15.1).
    """
    # Private: returns kernel, scale and zero point to save, of which only the
    # last is read in these modes, as of Keras 3.15.1.
    name = "_get_kernel_with_merged_lora"
    object.__setattr__(layer, name, lambda: (None, None, layer.kernel_zero))


def restore(layer: Any, mode: str, config: Any) -> None:
    """Quantizes a layer whose quantized weights will be loaded.

    Args:
        layer: innermost layer, built.
        mode: str.
        config: `keras.quantizers.QuantizationConfig`, or None.
    """
    layer.quantize(mode, config=config)
    if mode in CALIBRATED:
        # A loaded layer has no float kernel. Private: no public way to remove
        # it, as of Keras 3.15.1.
        layer._tracker.unlock()
        del layer._kernel
        layer._tracker.lock()
        setattr(layer, f"is_{mode}_calibrated", True)
        save_zero_points(layer)


def _modes(layer):
    """Returns the quantization modes of an innermost layer."""
    if isinstance(layer, QuantizedKernel):
        return layer.MODES
    if type(layer).quantize is keras.layers.Layer.quantize:
        return ()
    spec = getattr(layer, "variable_serialization_spec", {})
    return tuple(mode for mode in spec if mode is not None)


def _selected(layer, filters):
    """Returns whether the filters of `keras.Model.quantize` select a layer."""
    if filters is None:
        return True
    if callable(filters):
        return filters(layer)
    patterns = [filters] if isinstance(filters, str) else filters
    return any(re.search(pattern, layer.name) for pattern in patterns)


def _has_matrix(layer):
    # Private: the weights without those of sublayers, as of Keras 3.15.1.
    own = [*layer._trainable_variables, *layer._non_trainable_variables]
    return any(
        len(weight.shape) > 1
        and ("kernel" in weight.name or "embedding" in weight.name)
        and not weight.name.endswith(("scale", "zero"))
        for weight in own
    )


def _misread(layer):
    """Returns whether Keras mistakes the inputs of a projection."""
    inputs, kernel = layer.equation.split("->")[0].split(",")
    heads_in = kernel[0] in inputs and kernel[1] in inputs
    shape = list(layer.kernel.shape)
    return heads_in == (shape.index(max(shape)) == 0)


def _described(lacking):
    parts = []
    for layer, modes in list(lacking.items())[:3]:
        known = " and ".join(modes) if modes else "no mode"
        name = layer.path or layer.name
        parts.append(f"{name} ({type(layer).__name__}) has {known}")
    if len(lacking) > 3:
        parts.append(f"{len(lacking) - 3} more layers lack it")
    return ", ".join(parts)
