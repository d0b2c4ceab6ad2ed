"""`generate` of `keras_hub.models.Llama3CausalLM`."""

import numpy as np

from benchmarks.llama_decoding import task
from benchmarks.llama_training.keras_hub import model


def prepare(case):
    """Returns a callable that decodes batches."""
    return task.runner(decoder(case), task.prompts(case))


def decoder(case, seed=0):
    """Returns a callable that decodes int32 (B, S) to int32 (B, new)."""
    built = model(case, seed)
    built.compile(sampler="greedy")

    def decode(prompts):
        room = np.zeros((len(prompts), case["new"]), "int32")
        inputs = {
            "token_ids": np.concatenate([prompts, room], axis=1),
            "padding_mask": np.concatenate(
                [np.ones_like(prompts), room], axis=1
            ),
        }
        found = built.generate(inputs, stop_token_ids=None)
        return np.asarray(found["token_ids"])[:, prompts.shape[1] :]

    return decode
