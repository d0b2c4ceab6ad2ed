"""Quantized distance projections against kernels that loops round."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.layers import (
    MultiHeadAttention,
    TransformerXLPosition,
    XLNetPosition,
)
from keras_attn.ops import Visibility
from tests.helpers.arrays import to_numpy
from tests.helpers.cases import once
from tests.helpers.contract import randomize
from tests.helpers.ops_cases import assert_close, normal

N, H, D = 2, 3, 10
CONFIGS = {
    "int8": None,
    "int4 in blocks": keras.quantizers.Int4QuantizationConfig(block_size=4),
    "int4": keras.quantizers.Int4QuantizationConfig(block_size=None),
}


def rounded(kernel, name):
    """Returns the kernel of which only 8 or 4 bits are left."""
    found = np.empty_like(kernel, "float64")
    for n, h in np.ndindex(N, H):
        column = kernel[:, n, h].astype("float64")
        if name != "int4 in blocks":
            most = {"int8": 127, "int4": 7}[name]
            scale = np.abs(column).max() / most
            found[:, n, h] = np.rint(column / scale) * scale
            continue
        for start in range(0, D, 4):
            block = column[start : start + 4]
            # Keras fills the last block with zeros.
            ends = np.append(block, [0.0] * (4 - len(block)))
            scale = (ends.max() - ends.min()) / 15
            zero = np.clip(np.rint(-ends.min() / scale) - 8, -8, 7)
            steps = np.clip(np.rint(block / scale) + zero, -8, 7)
            found[start : start + 4, n, h] = (steps - zero) * scale
    return found


@pytest.mark.every_backend
@pytest.mark.parametrize("name", ["int8", "int4 in blocks", *once(["int4"])])
def test_equals_a_rounded_kernel(name):
    """By distance and by position, which use the kernel and its transpose."""
    exact = randomize(TransformerXLPosition(N, H, D))
    position = randomize(TransformerXLPosition(N, H, D))
    kernel = to_numpy(position.kernel)
    position.quantize(name[:4], config=CONFIGS[name])
    assert position.quantization_mode == name[:4]
    exact.kernel.assign(rounded(kernel, name))
    assert np.abs(to_numpy(exact.kernel) - kernel).max() > 1e-3
    query = ops.convert_to_tensor(normal(2, 4, N, H, seed=2))
    ids = ops.convert_to_tensor(np.tile(np.arange(4, dtype="int32"), (2, 1)))
    for offset in (None, 0):
        visibility = Visibility(ids, ids, causal=False, offset=offset)
        (_, found), (_, expected) = (
            one.relate(query, visibility, 4) for one in (position, exact)
        )
        assert_close(to_numpy(found), to_numpy(expected))


def test_a_shared_position_is_quantized_once(tmp_path):
    position = XLNetPosition(N, H, name="distances")
    inputs = keras.Input((5, N * H))
    x = inputs
    for _ in range(2):
        layer = MultiHeadAttention(N, H, attention_position=position)
        x = layer(x, x)
    model = keras.Model(inputs, x)
    layers = model.layers[1:]
    exact = to_numpy(model(normal(2, 5, N * H, seed=4)))
    for layer in layers:
        layer.quantize("int8")
    after = to_numpy(model(normal(2, 5, N * H, seed=4)))
    assert 0 < np.abs(after - exact).max() < 0.1
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert_close(to_numpy(loaded(normal(2, 5, N * H, seed=4))), after)
    assert loaded.layers[1].attention_position.quantization_mode == "int8"
    with pytest.raises(ValueError, match=r"'int8'. Received: mode='int4'"):
        position.quantize("int4")
    with pytest.raises(NotImplementedError, match="for a TransformerXLPosi"):
        TransformerXLPosition(N, H).quantize("float8")
