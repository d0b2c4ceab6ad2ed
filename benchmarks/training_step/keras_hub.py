"""A Transformer built from KerasHub's encoder and decoder layers."""

import keras
from keras_hub.layers import (
    ReversibleEmbedding,
    SinePositionEncoding,
    TransformerDecoder,
    TransformerEncoder,
)

from benchmarks.training_step import keras_fit, task


def prepare(case):
    """Returns a callable that runs training steps."""
    keras.config.set_dtype_policy(task.policy(case))
    loss = keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, ignore_class=task.PAD
    )
    return keras_fit.runner(_model(case), loss, task.examples(case))


def _model(case):
    width = case["width"]
    table = ReversibleEmbedding(case["vocabulary"], width)
    positions = SinePositionEncoding()

    def embed(ids):
        x = table(ids) * width**0.5
        return keras.layers.Dropout(task.DROPOUT)(x + positions(x))

    sizes = {
        "intermediate_dim": case["inner"],
        "num_heads": case["heads"],
        "dropout": task.DROPOUT,
    }
    source, target = (
        keras.Input((case["length"],), dtype="int32") for _ in range(2)
    )
    source_mask, target_mask = (
        keras.ops.not_equal(ids, task.PAD) for ids in (source, target)
    )
    memory = embed(source)
    for _ in range(case["layers"]):
        memory = TransformerEncoder(**sizes)(memory, padding_mask=source_mask)
    x = embed(target)
    for _ in range(case["layers"]):
        x = TransformerDecoder(**sizes)(
            x,
            memory,
            decoder_padding_mask=target_mask,
            encoder_padding_mask=source_mask,
        )
    return keras.Model((source, target), table(x, reverse=True))
