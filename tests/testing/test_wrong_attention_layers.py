"""Wrong attention layers: each fails the check of its property."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.testing import CheckFailure, check_attention_layer
from tests.testing.plain_attention import PlainAttention


class IgnoresPadding(PlainAttention):
    def masks(self, query, value, value_mask, *others):
        return super().masks(query, value, None, *others)


class CountsPadding(PlainAttention):
    def finish(self, output, visible):
        return super().finish(output, visible) / visible.shape[-1]


class IgnoresMaskArguments(PlainAttention):
    def call(self, query, value, query_mask=None, value_mask=None, **kwargs):
        value_mask = getattr(value, "_keras_mask", None)
        return super().call(query, value, query_mask, value_mask, **kwargs)


class IgnoresAttentionMask(PlainAttention):
    def masks(self, query, value, value_mask, attention_mask, causal):
        return super().masks(query, value, value_mask, None, causal)


class InvertsAttentionMask(PlainAttention):
    def masks(self, query, value, value_mask, attention_mask, causal):
        if attention_mask is not None:
            attention_mask = ops.logical_not(attention_mask)
        return super().masks(query, value, value_mask, attention_mask, causal)


class AveragesMaskedKeys(PlainAttention):
    def finish(self, output, visible):
        return output


class DividesByZero(PlainAttention):
    def attend(self, scores, visible):
        return ops.softmax(ops.where(visible, scores, -np.inf), axis=-1)

    def finish(self, output, visible):
        return output


class ReturnsItsBias(PlainAttention):
    def attend(self, scores, visible):
        weights = super().attend(scores, visible)
        return ops.where(visible, weights, ops.zeros_like(weights))

    def finish(self, output, visible):
        return output


class IgnoresCausality(PlainAttention):
    def masks(self, query, value, value_mask, attention_mask, causal):
        return super().masks(query, value, value_mask, attention_mask, False)


class SeesTheNextToken(PlainAttention):
    def causal_mask(self, query, value):
        later, earlier = (
            ops.arange(ops.shape(x)[1], dtype="int32") for x in (query, value)
        )
        return (earlier[None] <= later[:, None] + 1)[None]


class DoesNotSeeItself(PlainAttention):
    def causal_mask(self, query, value):
        later, earlier = (
            ops.arange(ops.shape(x)[1], dtype="int32") for x in (query, value)
        )
        return (earlier[None] < later[:, None])[None]


class CentersTheBatch(PlainAttention):
    def project(self, value):
        keys, values = super().project(value)
        return keys - ops.mean(keys, axis=0), values


class MixesRows(PlainAttention):
    """Its heads are split without moving the axis of the batch."""

    def project(self, value):
        keys, values = super().project(value)
        shape = ops.shape(keys)
        mixed = ops.reshape(keys, (shape[1], shape[0], shape[2]))
        return ops.swapaxes(mixed, 0, 1), values


class IgnoresThePolicy(PlainAttention):
    def finish(self, output, visible):
        return ops.cast(super().finish(output, visible), "float32")


class OverflowsInFloat16(PlainAttention):
    def scores(self, query, key):
        large = 5e3 * super().scores(query, key)
        return large * 5e3 / 2.5e7


class ForgetsItsConfig(PlainAttention):
    def get_config(self):
        config = super().get_config()
        del config["factor"]
        return config


class HasConfigWithoutJson(PlainAttention):
    def get_config(self):
        return {**super().get_config(), "factor": np.ones(2) @ np.ones(2) * 1j}


class PromisesSquareWeights(PlainAttention):
    def compute_output_spec(self, query, value, **kwargs):
        output = keras.KerasTensor(query.shape, dtype=self.compute_dtype)
        length = query.shape[1]
        weights = keras.KerasTensor(
            (query.shape[0], length, length), dtype=self.compute_dtype
        )
        scores = kwargs.get("return_attention_scores")
        return (output, weights) if scores else output


class NeedsKeys(PlainAttention):
    def attend(self, scores, visible):
        scores = scores - ops.max(scores, axis=-1, keepdims=True)
        return super().attend(scores, visible)


class ReadsValues(PlainAttention):
    def finish(self, output, visible):
        if isinstance(output, keras.KerasTensor) or 0 in visible.shape:
            return super().finish(output, visible)
        if bool(ops.all(visible)):
            return output
        return super().finish(output, visible)


class ErasesTheMask(PlainAttention):
    def call(self, query, value, query_mask=None, value_mask=None, **kwargs):
        value._keras_mask = None
        return super().call(query, value, query_mask, value_mask, **kwargs)


class LosesTheMask(PlainAttention):
    def compute_mask(self, query, value, query_mask=None, value_mask=None):
        return None


class SqueezesTheQuery(PlainAttention):
    """A single query loses its axis."""

    def finish(self, output, visible):
        output = super().finish(output, visible)
        return output[:, 0] if output.shape[1] == 1 else output


ONE = {"query": (1, 1, 8), "value": (1, 1, 8)}
TWO_TOKENS = {"query": (1, 2, 8), "value": (1, 2, 8)}
TWO_KEYS = {"query": (1, 1, 8), "value": (1, 2, 8)}
TWO_ROWS = {"query": (2, 1, 8), "value": (2, 2, 8)}
WRONG = {
    IgnoresPadding: ("padding_invariance", ONE),
    CountsPadding: ("padding_invariance", ONE),
    SqueezesTheQuery: ("padding_invariance", ONE),
    IgnoresMaskArguments: ("mask_arguments", ONE),
    IgnoresAttentionMask: ("attention_mask", TWO_KEYS),
    InvertsAttentionMask: ("attention_mask", TWO_KEYS),
    AveragesMaskedKeys: ("fully_masked_rows", ONE),
    DividesByZero: ("fully_masked_rows", ONE),
    ReturnsItsBias: ("fully_masked_rows", ONE),
    IgnoresCausality: ("causality", TWO_TOKENS),
    SeesTheNextToken: ("causality", TWO_TOKENS),
    DoesNotSeeItself: ("causality", ONE),
    CentersTheBatch: ("batch_invariance", TWO_ROWS),
    MixesRows: ("batch_invariance", TWO_ROWS),
    IgnoresThePolicy: ("dtype_policies", ONE),
    OverflowsInFloat16: ("dtype_policies", ONE),
    ForgetsItsConfig: ("serialization", TWO_KEYS),
    HasConfigWithoutJson: ("serialization", ONE),
    PromisesSquareWeights: ("symbolic_shapes", TWO_KEYS),
    NeedsKeys: ("zero_length_axes", ONE),
    ReadsValues: ("host_reads", ONE),
    ErasesTheMask: ("implicit_masks", ONE),
    LosesTheMask: ("implicit_masks", ONE),
}


@pytest.mark.every_backend
def test_the_correct_layer_passes():
    names = check_attention_layer(PlainAttention(2.0))
    assert len(names) == 12 and "cached_decoding" not in names


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_layer_fails_its_check(kind):
    """All checks before it pass."""
    name, shapes = WRONG[kind]
    layer = kind(2.0) if kind is not HasConfigWithoutJson else kind()
    with pytest.raises(CheckFailure) as caught:
        check_attention_layer(layer)
    failure = caught.value
    assert (failure.check, failure.shapes) == (name, shapes)
    message = str(failure)
    assert f"`{kind.__name__}` fails `{name}`: " in message
    assert f"query {shapes['query']}, value {shapes['value']}" in message
    if failure.difference is not None:
        assert failure.difference > 1e-5
        assert f"{failure.difference:.3g}" in message
