"""Saving and loading of quantized sublayers.

Keras saves the dtype policy of layers that it creates from a config, but not of
sublayers created by another layer (keras-team/keras#19381, as of Keras 3.15.1).
Without these mixins they would be restored in float32, and the saved weights
would not match.
"""

from typing import Any, Self

import keras


class QuantizedParts:
    """Mixin for a layer that creates its sublayers in `build`.

    The build config lists the quantized sublayers and their modes.
    """

    def save_own_variables(self, store: Any) -> None:
        """Saves the weights.

        Raises:
            ValueError: LoRA adapters on quantized weights.
        """
        check_saved_adapters(self)
        super().save_own_variables(store)

    def get_build_config(self) -> dict[str, Any]:
        """Returns the build config, with the modes of quantized sublayers."""
        config = super().get_build_config()
        quantized = quantized_parts(self)
        if quantized:
            config = {**(config or {}), "quantized": quantized}
        return config

    def build_from_config(self, config: dict[str, Any]) -> None:
        """Builds the layer and quantizes its sublayers again."""
        rest = dict(config or {})
        quantized = rest.pop("quantized", {})
        super().build_from_config(rest)
        quantize_parts(self, quantized)


class QuantizedModelParts:
    """Mixin for a model that creates its layers in its constructor.

    The config lists the quantized layers and their modes, because Keras does
    not pass a build config to a built model (as of Keras 3.15.1).
    """

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Saves the model, see `keras.Model.save`.

        Raises:
            ValueError: LoRA adapters on quantized weights.
        """
        # Before Keras opens the file, which would erase an older one.
        check_saved_adapters(self)
        return super().save(*args, **kwargs)

    def save_weights(self, *args: Any, **kwargs: Any) -> None:
        """Saves the weights, see `keras.Model.save_weights`.

        Raises:
            ValueError: LoRA adapters on quantized weights.
        """
        check_saved_adapters(self)
        return super().save_weights(*args, **kwargs)

    def save_own_variables(self, store: Any) -> None:
        """Saves the weights, as part of another model.

        Raises:
            ValueError: LoRA adapters on quantized weights.
        """
        check_saved_adapters(self)
        super().save_own_variables(store)

    def get_config(self) -> dict[str, Any]:
        """Returns the config, with the modes of quantized layers."""
        config = super().get_config()
        quantized = quantized_parts(self)
        if quantized:
            config = {**config, "quantized": quantized}
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Creates the model and quantizes its layers again."""
        rest = dict(config)
        quantized = rest.pop("quantized", {})
        model = super().from_config(rest)
        quantize_parts(model, quantized)
        return model


def quantized_parts(layer: keras.layers.Layer) -> dict[str, Any]:
    """Returns the modes of the quantized innermost sublayers.

    Args:
        layer: `keras.layers.Layer`.

    Returns:
        Serializable dict from sublayer index to mode and config.
    """
    return {
        str(index): {
            "mode": part.quantization_mode,
            "config": keras.saving.serialize_keras_object(
                part.quantization_config
            ),
        }
        for index, part in enumerate(_parts(layer))
        if part.quantization_mode is not None
    }


def quantize_parts(
    layer: keras.layers.Layer, quantized: dict[str, Any]
) -> None:
    """Quantizes the innermost sublayers of a built layer.

    Args:
        layer: `keras.layers.Layer`, built.
        quantized: dict, from `quantized_parts`.
    """
    parts = _parts(layer)
    for index, entry in quantized.items():
        config = keras.saving.deserialize_keras_object(entry["config"])
        parts[int(index)].quantize(entry["mode"], config=config)


def check_saved_adapters(layer: keras.layers.Layer) -> None:
    """Raises ValueError if a file could not restore a layer or model.

    Keras saves the sum of a kernel and its adapters. Quantized, the sum is
    rounded once more, so the loaded model would give other outputs
    (as of Keras 3.15.1, `Dense`, `EinsumDense` and `Embedding`).

    Args:
        layer: `keras.layers.Layer`.
    """
    for part in _parts(layer):
        if part.quantization_mode and getattr(part, "lora_enabled", False):
            raise ValueError(
                "Weights that are both quantized and trained with LoRA cannot "
                "be saved: Keras (as of version 3.15.1) adds the adapters to "
                "the quantized kernel and rounds the sum again, so the loaded "
                "model would give other outputs. Save the float model with its "
                "adapters and quantize the loaded one, or keep the weights "
                "from `get_weights()` and restore them with `set_weights` "
                "after `quantize` and `enable_lora`. "
                f"Received: {part.path} with {part.quantization_mode} weights"
            )


def _parts(layer):
    """Returns sublayers without sublayers, in order of creation."""
    parts = []
    # Private: a layer has no public list of sublayers, as of Keras 3.15.1.
    for inner in layer._layers:
        parts += _parts(inner) if inner._layers else [inner]
    return [part for part in parts if hasattr(part, "quantization_mode")]
