"""An attention layer in a few operations, whose parts the tests replace."""

import keras
from keras import ops


class PlainAttention(keras.layers.Layer):
    """Single-head attention that satisfies the kit."""

    def __init__(self, factor=1.0, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.factor = factor

    def build(self, query_shape, value_shape):
        width = query_shape[-1]
        for name in ("query", "key", "value", "output"):
            dense = keras.layers.Dense(
                width, dtype=self.dtype_policy, name=name
            )
            dense.build(query_shape)
            setattr(self, f"{name}_dense", dense)

    def call(
        self,
        query,
        value,
        query_mask=None,
        value_mask=None,
        attention_mask=None,
        use_causal_mask=False,
        return_attention_scores=False,
    ):
        keys, values = self.project(value)
        scores = self.scores(self.query_dense(query), keys)
        masks = value_mask, attention_mask, use_causal_mask
        visible = ops.ones_like(scores, dtype="bool")
        for mask in self.masks(query, value, *masks):
            visible = ops.logical_and(visible, ops.cast(mask, "bool"))
        weights = self.attend(scores, visible)
        output = self.output_dense(ops.matmul(weights, values))
        output = self.finish(output, visible)
        return (output, weights) if return_attention_scores else output

    def project(self, value):
        return self.key_dense(value), self.value_dense(value)

    def scores(self, query, key):
        return self.factor * ops.matmul(query, ops.swapaxes(key, 1, 2)) / 3

    def masks(self, query, value, value_mask, attention_mask, causal):
        if value_mask is not None:
            yield value_mask[:, None]
        if attention_mask is not None:
            yield attention_mask
        if causal:
            yield self.causal_mask(query, value)

    def causal_mask(self, query, value):
        earlier, later = (
            ops.arange(ops.shape(x)[1], dtype="int32") for x in (value, query)
        )
        return (earlier[None] <= later[:, None])[None]

    def attend(self, scores, visible):
        return ops.softmax(ops.where(visible, scores, -3e4), axis=-1)

    def finish(self, output, visible):
        seen = ops.any(visible, axis=-1, keepdims=True)
        return ops.where(seen, output, ops.zeros_like(output))

    def get_config(self):
        return {**super().get_config(), "factor": self.factor}
