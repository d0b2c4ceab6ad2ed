"""`keras_attn.models.Transformer`."""

from benchmarks.training_step import keras_fit, task
from keras_attn.models import Transformer
from keras_attn.training import SequenceCrossentropy


def prepare(case, optimizer="adam", **options):
    """Returns a callable that runs training steps."""
    made = make(case, **options)
    return keras_fit.runner(*made, task.examples(case), optimizer)


def make(case, dropout=task.DROPOUT, vocabulary=None, **options):
    """Returns the model and the loss of a case."""
    model = Transformer(
        vocabulary or case["vocabulary"],
        num_layers=case["layers"],
        num_heads=case["heads"],
        hidden_dim=case["width"],
        intermediate_dim=case["inner"],
        dropout=dropout,
        dtype=task.policy(case),
        **options,
    )
    return model, SequenceCrossentropy(label_smoothing=task.SMOOTHING)
