"""`keras_attn.ops.attend`, with a structured mask (`Visibility`)."""

from keras import ops

from benchmarks.attention import task
from keras_attn.ops import Visibility, attend, positions_from_mask


def prepare(case):
    """Returns a callable that runs steps."""
    # Computed outside the timed function, like the masks of the peers.
    token_mask = ops.convert_to_tensor(task.tokens_there(case))
    positions = positions_from_mask(token_mask)

    def function(query, key, value):
        visibility = Visibility(
            causal=case["mask"] in ("causal", "window"),
            window=task.WINDOW if case["mask"] == "window" else None,
        )
        if case["mask"] == "padded":
            # A key padding mask only, as for the peers.
            visibility = Visibility(key_positions=positions, padding="any")
        return attend(query, key, value, visibility)

    return task.runner(
        function, task.heads(case), case["backward"], case.get("dtype")
    )
