"""Low-rank adapters where a pattern says, and nothing else that learns."""

from keras_attn.training.freezing import freeze, matching, unfreeze


def enable_lora(model, rank, pattern="/(query|value)$", also_train=None):
    """Freezes a model and lets small matrices beside its own learn.

        y = x (W + A B),  A (D, r),  B (r, F)

    W stays as it is; B begins as zeros, so that the model begins as it was (Hu
    et al. 2022, https://arxiv.org/abs/2106.09685). It is Keras's own LoRA, for
    all layers of a model that have it and a path that fits; a projection to N
    heads, D x N x H, gets A (D, N, r) and B (r, H).

    Args:
        model: Keras model, built; to be compiled behind this.
        rank: int >= 1. r.
        pattern: str, a regular expression that is looked for in the paths of
            layers. Default: projections of queries and of values, as in the
            paper.
        also_train: str, likewise, of weights that learn besides, such as
            `"output/"`, a head; default None, none.

    Returns:
        List of the paths of the layers that have adapters now.

    Raises:
        ValueError: no layer or no weight has such a path; a rank of less than
            1; layers that have adapters already.

    Examples:
        >>> model = keras_attn.models.Encoder(
        ...     9, num_layers=2, num_heads=1, hidden_dim=4, intermediate_dim=4)
        >>> keras_attn.training.enable_lora(model, rank=2)[:2]
        ['block_0/self_attention/query', 'block_0/self_attention/value']
        >>> len(model.trainable_weights)
        8
    """
    if isinstance(rank, bool) or not isinstance(rank, int) or rank < 1:
        raise ValueError(
            f"`rank` must be an integer, at least 1. Received: rank={rank!r}"
        )
    layers = {
        layer.path: layer
        for layer in model._flatten_layers()
        if hasattr(layer, "enable_lora") and getattr(layer, "built", False)
    }
    chosen = matching("pattern", pattern, sorted(layers) or [model.path])
    if also_train is not None:
        matching("also_train", also_train, [w.path for w in model.weights])
    for path in chosen:
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
