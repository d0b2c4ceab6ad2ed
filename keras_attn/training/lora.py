"""Low-rank adapters (LoRA)."""

from typing import Any

from keras_attn import checks
from keras_attn.training.freezing import (
    check_model,
    freeze,
    matching,
    unfreeze,
)


def enable_lora(
    model: Any,
    rank: int,
    pattern: str = "/(query|value)$",
    also_train: str | None = None,
) -> list[str]:
    """Freezes a model and adds trainable low-rank adapters.

        y = x (W + A B),  A (D, r),  B (r, F)

    W is frozen and B is initialized to zeros, so the outputs do not change at
    first (Hu et al. 2022, https://arxiv.org/abs/2106.09685). This enables
    Keras's own LoRA in all layers that support it and whose path matches; a
    projection to N heads, D x N x H, gets A (D, N, r) and B (r, H).

    Args:
        model: Keras model, built. Compile it afterwards.
        rank: int >= 1. r.
        pattern: str, a regular expression that is searched for in the paths of
            layers. Default: the query and value projections, as in the paper.
        also_train: str, a regular expression that is searched for in the paths
            of weights: weights to train as well, such as `"output/"`, a head.
            Default None: no other weights.

    Returns:
        List of the paths of the layers with adapters.

    Raises:
        ValueError: no layer or no weight has such a path; a rank below 1 or
            above the size of a layer; a layer has an adapter already.

    Examples:
        >>> model = keras_attn.models.Encoder(
        ...     9, num_layers=2, num_heads=1, hidden_dim=4, intermediate_dim=4)
        >>> keras_attn.training.enable_lora(model, rank=2)[:2]
        ['block_0/self_attention/query', 'block_0/self_attention/value']
        >>> len(model.trainable_weights)
        8
    """
    checks.integer("rank", rank, least=1)
    check_model(model)
    # Private: no public method lists nested layers, as of Keras 3.15.1.
    layers = {
        layer.path: layer
        for layer in model._flatten_layers()
        if hasattr(layer, "enable_lora") and getattr(layer, "built", False)
    }
    chosen = matching("pattern", pattern, sorted(layers) or [model.path])
    if also_train is not None:
        matching("also_train", also_train, [w.path for w in model.weights])
    for path in chosen:
        largest = max(max(w.shape, default=1) for w in layers[path].weights)
        if rank > largest:
            raise ValueError(
                f"`rank` must be at most {largest}, the size of {path}. "
                f"Received: rank={checks.shown(rank)}"
            )
        if getattr(layers[path], "lora_enabled", False):
            raise ValueError(
                "`model` must have no adapters yet where `pattern` is found. "
                f"Received: one at {path}"
            )
    freeze(model)
    for path in chosen:
        layers[path].enable_lora(rank)
    if also_train is not None:
        unfreeze(model, also_train)
    return chosen
