"""Quantization of sublayers, and saving and loading them.

Keras saves the dtype policy of layers that it creates from a config, but not of
sublayers created by another layer (keras-team/keras#19381, as of Keras 3.15.1).
Without these mixins they would be restored in float32, and the saved weights
would not match.
"""

import copy
from typing import Any, Self

import keras

from keras_attn.layers.calibration import calibration
from keras_attn.layers.quantization import (
    CALIBRATED,
    calibrated_layers,
    layers_to_quantize,
    restore,
    save_zero_points,
)


class QuantizedParts:
    """Mixin for a layer that creates its sublayers in `build`.

    The build config lists the quantized sublayers and their modes.
    """

    def quantize(
        self,
        mode: str | None = None,
        type_check: bool = True,
        config: Any = None,
    ) -> None:
        """Quantizes the sublayers.

        Args:
            mode: `"int8"`, `"int4"` or `"float8"`.
            type_check: bool. Unused: sublayers are layers of Keras.
            config: `keras.quantizers.QuantizationConfig`, or None for the
                default of the mode.

        Raises:
            ValueError: a sublayer does not have the mode, or the mode is
                calibrated, `"gptq"` or `"awq"`.
        """
        if mode in CALIBRATED:
            raise ValueError(
                '`mode` must be "int8", "int4" or "float8" for a layer: '
                "calibration needs a model, see `keras.Model.quantize`. "
                f"Received: mode={mode!r} for {self.path or self.name}"
            )
        for part in layers_to_quantize(self, mode):
            part.quantize(mode, config=config)

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

    def quantize(
        self,
        mode: str | None = None,
        config: Any = None,
        filters: Any = None,
        **kwargs: Any,
    ) -> None:
        """Quantizes the layers, see `keras.Model.quantize`.

        Args:
            mode: `"int8"`, `"int4"`, `"float8"`, `"gptq"` or `"awq"`. The last
                two quantize the linear layers of the blocks.
            config: `keras.quantizers.QuantizationConfig`. Needed for `"gptq"`
                and `"awq"`; its mode is the default of `mode`.
            filters: which layers to quantize: a regular expression for their
                names, a list of them, or a function of a layer. Default: all
                that have a kernel or an embedding.
            **kwargs: as in Keras.

        Raises:
            ValueError: one of the layers does not have the mode.
        """
        # Keras's wrapper of this method has completed `mode` and `config`.
        if mode in CALIBRATED:
            # The layers keep it, and a file has it.
            config = copy.copy(config)
            structure = config.quantization_layer_structure
            if structure is None:
                structure = self.get_quantization_layer_structure(mode)
            chosen = calibrated_layers(self, structure, mode, filters)
        else:
            chosen = layers_to_quantize(self, mode, filters)
        ids = {id(layer) for layer in chosen}
        with calibration(chosen if mode in CALIBRATED else []):
            super().quantize(
                mode,
                config=config,
                filters=lambda layer: id(layer) in ids,
                **kwargs,
            )
        if mode in CALIBRATED:
            config.dataset = config.tokenizer = None
            config.quantization_layer_structure = None
            for layer in chosen:
                save_zero_points(layer)

    def get_quantization_layer_structure(
        self, mode: str | None = None
    ) -> dict[str, Any] | None:
        """Returns what Keras calls to calibrate `"gptq"` and `"awq"`.

        Args:
            mode: str. Unused.

        Returns:
            Dict of `"pre_block_layers"`, which turn token ids into the input of
            the first block, and `"sequential_blocks"`; None if the model is not
            such a stack.
        """
        encoder = getattr(self, "encoder", None)
        if isinstance(encoder, QuantizedModelParts):
            return encoder.get_quantization_layer_structure(mode)
        return None

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
        restore(parts[int(index)], entry["mode"], config)


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
