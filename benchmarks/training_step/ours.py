"""`keras_attn.models.Transformer`."""

from benchmarks.training_step import keras_fit, task
from keras_attn.models import Transformer
from keras_attn.training import SequenceCrossentropy


def prepare(
    case, optimizer="adam", dropout=task.DROPOUT, vocabulary=None, **options
):
    """Returns a callable that runs training steps."""
    case = {**case, "vocabulary": vocabulary or case["vocabulary"]}
    model = Transformer(
        case["vocabulary"],
        num_layers=case["layers"],
        num_heads=case["heads"],
        hidden_dim=case["width"],
        intermediate_dim=case["inner"],
        dropout=dropout,
        dtype=task.policy(case),
        **options,
    )
    loss = SequenceCrossentropy(label_smoothing=task.SMOOTHING)
    return keras_fit.runner(model, loss, case, optimizer)
