"""`keras.ops.dot_product_attention`, with a dense or causal mask."""

from keras import ops

from benchmarks.attention import task


def prepare(case):
    """Returns a callable that runs steps."""
    mask = task.dense_mask(case)
    if mask is not None:
        length = case["length"]
        mask = ops.convert_to_tensor(mask)
        mask = ops.broadcast_to(mask, (mask.shape[0], 1, length, length))

    def function(query, key, value):
        return ops.dot_product_attention(
            query, key, value, mask=mask, is_causal=case["mask"] == "causal"
        )

    return task.runner(
        function, task.heads(case), case["backward"], case.get("dtype")
    )
