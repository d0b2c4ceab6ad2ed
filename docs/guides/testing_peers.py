"""What the attention layers of Keras and KerasHub fail: `python testing_peers.py`.

Prints a column for each layer: a check that it passes, that it fails, with the
smallest failing shapes below the table, or that does not apply.
"""

import importlib.util
import warnings

import keras
from keras import ops

from keras_attn import testing

PASSES, FAILS, DOES_NOT_APPLY = "passes", "fails", "-"
N, H = 2, 4


def decode_with_caches(block, x, memory=None):
    """Calls KerasHub's decoder token by token."""
    rows, length, _ = x.shape
    own = ops.zeros((rows, 2, length, N, H))
    caches = {"self_attention_cache": own}
    if memory is not None:
        caches["cross_attention_cache"] = ops.zeros(
            (rows, 2, memory.shape[1], N, H)
        )
    found = []
    for index in range(length):
        caches["self_attention_cache_update_index"] = index
        if memory is not None:
            caches["cross_attention_cache_update_index"] = (
                None if index else 0
            )
        token = x[:, index : index + 1]
        output, *written = block(token, memory, **caches)
        names = ("self_attention_cache", "cross_attention_cache")
        caches |= dict(zip(names, written))
        found.append(output)
    return ops.concatenate(found, axis=1)


def peers():
    """Yields the name of a layer, its check, and the arguments of the check."""
    layers = keras.layers
    attention = testing.check_attention_layer
    yield "MultiHeadAttention", attention, layers.MultiHeadAttention(N, H), {}
    yield (
        "GroupQueryAttention",
        attention,
        layers.GroupQueryAttention(H, N, 1),
        {},
    )
    yield "Attention", attention, layers.Attention(use_scale=True), {}
    yield "AdditiveAttention", attention, layers.AdditiveAttention(), {}
    if importlib.util.find_spec("keras_hub") is None:
        return
    from keras_hub import layers

    yield (
        "CachedMultiHeadAttention",
        attention,
        layers.CachedMultiHeadAttention(N, H),
        {},
    )
    yield (
        "TransformerEncoder",
        testing.check_block,
        layers.TransformerEncoder(12, N),
        {},
    )
    decoder = {"causal": True, "decode": decode_with_caches}
    yield (
        "TransformerDecoder",
        testing.check_block,
        layers.TransformerDecoder(12, N),
        decoder,
    )
    yield (
        "TransformerDecoder, memory",
        testing.check_block,
        layers.TransformerDecoder(12, N),
        decoder | {"memory": True},
    )


def outcomes(check, layer, arguments):
    """Returns a dict of checks to (result, failure or None)."""
    found = {}
    names = (
        testing.BLOCK_CHECKS
        if check is testing.check_block
        else testing.ATTENTION_LAYER_CHECKS
    )
    for name in names:
        try:
            check(layer, only=[name], **arguments)
            found[name] = PASSES, None
        except testing.CheckFailure as failure:
            found[name] = FAILS, failure
        except ValueError as error:
            if "checks that apply" not in str(error):
                raise
            found[name] = DOES_NOT_APPLY, None
    return found


def main():
    warnings.simplefilter("ignore")
    print(f"keras {keras.__version__} on {keras.backend.backend()}")
    if importlib.util.find_spec("keras_hub") is None:
        print("without KerasHub: pip install keras-hub")
    else:
        import keras_hub

        print(f"keras-hub {keras_hub.__version__}")
    for name, check, layer, arguments in peers():
        print(f"\n{name}", flush=True)
        for property_name, (result, failure) in outcomes(
            check, layer, arguments
        ).items():
            print(f"  {property_name:18} {result}")
            if failure is not None:
                print(f"    {failure.reason}")
                shapes = [f"{n} {s}" for n, s in failure.shapes.items()]
                print(f"    smallest: {', '.join(shapes)}", flush=True)


if __name__ == "__main__":
    main()
