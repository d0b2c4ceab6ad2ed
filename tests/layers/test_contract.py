"""`check_layer` detects layers that violate the contract."""

import functools

import keras
import pytest
from keras import ops

from tests.helpers.contract import check_layer
from tests.helpers.ops_cases import normal

X = normal(2, 3, 4)


@keras.saving.register_keras_serializable(package="tests")
class Good(keras.layers.Layer):
    """Satisfies the contract."""

    def __init__(self, factor=2.0, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.factor = factor

    def build(self, inputs_shape):
        self.kernel = self.add_weight(shape=(inputs_shape[-1],), name="kernel")

    def call(self, inputs):
        return self.factor * inputs * self.kernel

    def get_config(self):
        return {**super().get_config(), "factor": self.factor}


@keras.saving.register_keras_serializable(package="tests")
class ForgetsItsConfig(Good):
    def get_config(self):
        config = super().get_config()
        del config["factor"]
        return config


@keras.saving.register_keras_serializable(package="tests")
class RemembersItsCall(Good):
    def call(self, inputs):
        self.latest = 1
        return super().call(inputs)


@keras.saving.register_keras_serializable(package="tests")
class ErasesTheMask(Good):
    def call(self, inputs):
        inputs._keras_mask = None
        return super().call(inputs)


@keras.saving.register_keras_serializable(package="tests")
class LosesTheMask(Good):
    def compute_mask(self, inputs, previous_mask=None):
        return None


@keras.saving.register_keras_serializable(package="tests")
class LiesAboutItsShape(Good):
    def compute_output_spec(self, inputs):
        return keras.KerasTensor((*inputs.shape[:-1], 9), dtype=inputs.dtype)


@keras.saving.register_keras_serializable(package="tests")
class OverflowsInHalfPrecision(Good):
    def call(self, inputs):
        x = super().call(inputs)
        large = ops.full_like(x, 6e4)
        return x + large + large - large - large


@keras.saving.register_keras_serializable(package="tests")
class IgnoresThePolicy(Good):
    def call(self, inputs):
        return ops.cast(super().call(inputs), "float32")


@keras.saving.register_keras_serializable(package="tests")
class LearnsNothing(Good):
    def call(self, inputs):
        return super().call(inputs) * 0.0


def test_valid_layer_passes():
    check_layer(Good, X)


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (functools.partial(ForgetsItsConfig, 3.0), "Not equal to tolerance"),
        (RemembersItsCall, "changed the attributes {'latest'}"),
        (ErasesTheMask, "mask erased"),
        (LosesTheMask, "mask of the first input was lost"),
        (LiesAboutItsShape, "the symbolic shape is wrong"),
        (OverflowsInHalfPrecision, "not finite in float16"),
        (IgnoresThePolicy, "policy ignored"),
        (LearnsNothing, "changed no weight"),
    ],
)
def test_invalid_layer_fails(layer, message):
    with pytest.raises(AssertionError, match=message):
        check_layer(layer, X)
