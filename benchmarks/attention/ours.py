"""`keras_attn.ops.attend`, told of the mask by its structure."""

from keras import ops

from benchmarks.attention import task
from keras_attn.ops import Visibility, attend, positions_from_mask


def prepare(case):
    """Returns a callable that runs steps."""
    # Made beforehand, as the masks of the peers are.
    there = ops.convert_to_tensor(task.tokens_there(case))
    positions = positions_from_mask(there)

    def function(query, key, value):
        see = Visibility(
            causal=case["mask"] in ("causal", "window"),
            window=task.WINDOW if case["mask"] == "window" else None,
        )
        if case["mask"] == "padded":
            # Keys only, as the peers are told.
            see = Visibility(key_positions=positions, padding="any")
        return attend(query, key, value, see)

    return task.runner(function, task.heads(case), case["backward"])
