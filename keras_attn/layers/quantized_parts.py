"""Quantised sublayers that are quantised again when a file is loaded.

Keras saves the dtype policy of a layer that it makes from a config. Of
sublayers that another layer makes it knows nothing: without this they come back
in float32, and the file does not fit.
"""

import keras


class QuantizedParts:
    """Mixed into a layer that makes its sublayers in `build`.

    Its build config says which of them are quantised, and how.
    """

    def get_build_config(self):
        """Returns the build config, with the modes of quantised sublayers."""
        config = super().get_build_config()
        quantized = quantized_parts(self)
        if quantized:
            config = {**(config or {}), "quantized": quantized}
        return config

    def build_from_config(self, config):
        """Builds, then quantises what was quantised."""
        rest = dict(config or {})
        quantized = rest.pop("quantized", {})
        super().build_from_config(rest)
        quantize_parts(self, quantized)


class QuantizedModelParts:
    """Mixed into a model that makes its layers in its constructor.

    Its config says which of them are quantised, and how: to a model that is
    built Keras hands no build config.
    """

    def get_config(self):
        """Returns the config, with the modes of quantised layers."""
        config = super().get_config()
        quantized = quantized_parts(self)
        if quantized:
            config = {**config, "quantized": quantized}
        return config

    @classmethod
    def from_config(cls, config):
        """Makes the model, then quantises what was quantised."""
        rest = dict(config)
        quantized = rest.pop("quantized", {})
        model = super().from_config(rest)
        quantize_parts(model, quantized)
        return model


def quantized_parts(layer):
    """Says which innermost sublayers are quantised.

    Args:
        layer: `keras.layers.Layer`.

    Returns:
        Dict of plain data: mode and config by the number of the sublayer.
    """
    return {
        str(number): {
            "mode": part.quantization_mode,
            "config": keras.saving.serialize_keras_object(
                part.quantization_config
            ),
        }
        for number, part in enumerate(_parts(layer))
        if part.quantization_mode is not None
    }


def quantize_parts(layer, quantized):
    """Quantises the innermost sublayers of a built layer.

    Args:
        layer: `keras.layers.Layer`, built.
        quantized: dict, from `quantized_parts`.
    """
    parts = _parts(layer)
    for number, how in quantized.items():
        config = keras.saving.deserialize_keras_object(how["config"])
        parts[int(number)].quantize(how["mode"], config=config)


def _parts(layer):
    """Sublayers without sublayers, in the order in which they are made."""
    parts = []
    for inner in layer._layers:
        parts += _parts(inner) if inner._layers else [inner]
    return [part for part in parts if hasattr(part, "quantization_mode")]
