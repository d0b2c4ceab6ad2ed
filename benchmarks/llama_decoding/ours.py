"""`generate` of `keras_attn.models.GPT` with the blocks of Llama."""

from benchmarks.llama_decoding import task
from benchmarks.llama_training import checkpoint
from keras_attn import pretrained


def prepare(case):
    """Returns a callable that decodes batches."""
    return task.runner(decoder(case), task.prompts(case))


def decoder(case, seed=0):
    """Returns a callable that decodes int32 (B, S) to int32 (B, new)."""
    with checkpoint.write(case, seed) as folder:
        model = pretrained.load(folder)

    def decode(prompts):
        return model.generate(prompts, case["new"]).tokens[:, 0]

    return decode
