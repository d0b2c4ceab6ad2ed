"""Quantization of a kernel that a layer does not call as a projection."""

from typing import Any

import keras
from keras import ops

from keras_attn.backend import gather_rows
from keras_attn.typing import Tensor, TensorLike

_RANGES = {"int8": (-127, 127), "int4": (-8, 7)}


class QuantizedKernel:
    """Mixin for an innermost layer that reads its weight `kernel` itself.

    Keras quantizes the kernels of its own layers, and their `call` rounds the
    inputs too. Here only the kernel is rounded, so all products with it agree,
    also those with its transpose. The axis of the inputs is the first one,
    or `_input_axis`; each output channel has a scale, or with `"int4"` and a
    `block_size` one for each block of inputs, as in `keras.layers.EinsumDense`.
    The layer has the weights `kernel`, int8 or two int4 values per byte along
    the last axis; `kernel_scale`; and for blocks `kernel_zero`.
    """

    MODES = tuple(_RANGES)
    _mode: str | None = None
    _input_axis = 0

    @property
    def quantization_mode(self) -> str | None:
        """The mode, or None for a float kernel."""
        return self._mode

    def quantize(
        self,
        mode: str | None = None,
        type_check: bool = True,
        config: Any = None,
    ) -> None:
        """Quantizes the kernel.

        Args:
            mode: `"int8"` or `"int4"`.
            type_check: bool. Unused: subclasses are quantized as well.
            config: `keras.quantizers.QuantizationConfig`, or None for the
                default of the mode. Activations are not quantized.

        Raises:
            NotImplementedError: another mode; Keras then warns and skips the
                layer.
            ValueError: the layer has another mode already.
        """
        # Keras's wrapper of this method has completed `mode` and `config`.
        if mode not in _RANGES:
            raise NotImplementedError(
                f'`mode` must be "int8" or "int4" for a {type(self).__name__}. '
                f"Received: mode={mode!r}"
            )
        if self._mode == mode:
            # Attention layers that share a position quantize it once.
            return
        if self._mode is not None:
            raise ValueError(
                "`mode` must be that of the quantized weights, "
                f"{self._mode!r}. Received: mode={mode!r}"
            )
        axis = self._input_axis
        values = _rounded(ops.moveaxis(self.kernel, axis, 0), mode, config)
        values = {k: ops.moveaxis(x, 0, axis) for k, x in values.items()}
        self._kernel_shape = tuple(self.kernel.shape)
        del self.kernel
        for name, value in values.items():
            weight = self.add_weight(
                name=name,
                shape=value.shape,
                dtype=keras.backend.standardize_dtype(value.dtype),
                initializer="zeros",
                trainable=False,
                # Half precision would add an error as large as that of int8.
                autocast=False,
            )
            weight.assign(value)
            setattr(self, name, weight)
        self.quantization_config = config
        self._mode = mode

    def _float_kernel(
        self, dtype: str, rows: TensorLike | None = None
    ) -> Tensor:
        """Returns the kernel, dequantized if needed, in a dtype.

        Args:
            dtype: str.
            rows: int (J,). Rows of a first axis that is not that of the inputs.
                Default None: all.
        """

        def read(weight):
            weight = ops.convert_to_tensor(weight)
            return weight if rows is None else gather_rows(weight, rows)

        kernel = read(self.kernel)
        if self._mode is None:
            return ops.cast(kernel, dtype)
        if self._mode == "int4":
            kernel = keras.quantizers.unpack_int4(
                kernel, self._kernel_shape[-1], axis=-1
            )
        kernel = ops.cast(kernel, dtype)
        scale = ops.cast(read(self.kernel_scale), dtype)
        block = getattr(self.quantization_config, "block_size", None)
        if not _has_blocks(block):
            return kernel / scale
        zero = ops.cast(read(self.kernel_zero), dtype)
        axis = self._input_axis
        inputs = (slice(None),) * axis + (slice(self._kernel_shape[axis]),)
        scale, zero = (
            ops.repeat(x, block, axis=axis)[inputs] for x in (scale, zero)
        )
        return (kernel - zero) * scale


def _rounded(kernel, mode, config):
    """Returns the weights that replace a kernel, by name."""
    inputs, *outputs = kernel.shape
    table = ops.reshape(kernel, (inputs, -1))
    block = getattr(config, "block_size", None)
    if mode == "int4" and _has_blocks(block):
        rounded, scale, zero = (
            keras.quantizers.abs_max_quantize_grouped_with_zero_point(
                table, block_size=block, to_numpy=True
            )
        )
        values = {"kernel": rounded, "kernel_scale": scale, "kernel_zero": zero}
    else:
        quantizer = getattr(config, "weight_quantizer", None)
        if quantizer is None:
            quantizer = keras.quantizers.AbsMaxQuantizer(
                axis=0, value_range=_RANGES[mode], output_dtype="int8"
            )
        rounded, scale = quantizer(table, to_numpy=True)
        values = {"kernel": rounded, "kernel_scale": scale}
    values = {
        name: ops.reshape(value, (-1, *outputs))
        for name, value in values.items()
    }
    if mode == "int4":
        values["kernel"], _, _ = keras.quantizers.pack_int4(
            values["kernel"], axis=-1
        )
    return values


def _has_blocks(block_size):
    return block_size is not None and block_size > 0
