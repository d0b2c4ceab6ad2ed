"""`keras_attn.models.GPT` with the blocks of Llama."""

from benchmarks.llama_training import checkpoint, task
from benchmarks.training_step import keras_fit
from keras_attn import pretrained
from keras_attn.training import SequenceCrossentropy


def prepare(case):
    """Returns a callable that runs training steps."""
    with checkpoint.write(case) as folder:
        model = pretrained.load(folder)
    # No id is padding.
    loss = SequenceCrossentropy(pad_id=-1)
    return keras_fit.runner(model, loss, task.batches(case))
