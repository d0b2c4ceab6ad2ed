"""A compile config that means the same on every backend."""


def portable_compile_config(config):
    """Takes out of a compile config what only one backend understands.

    Keras on PyTorch writes the module of its own subclass of the optimizer,
    which no other backend can import; Keras on JAX writes `jit_compile=True`,
    which would start `torch.compile` on PyTorch. Here the optimizer is named
    by its public module and `jit_compile` is `"auto"` again.

    Args:
        config: what `keras.Model.get_compile_config` returns, or None.

    Returns:
        The config, changed in a copy.

    Examples:
        >>> from keras_attn.models.compile_config import portable_compile_config
        >>> portable_compile_config({"jit_compile": True})
        {'jit_compile': 'auto'}
    """
    if not config:
        return config
    config = _public_optimizers(config)
    if "jit_compile" in config:
        config["jit_compile"] = "auto"
    return config


def _public_optimizers(node):
    if isinstance(node, dict):
        node = {key: _public_optimizers(value) for key, value in node.items()}
        if ".backend.torch.optimizers." in str(node.get("module")):
            node["module"] = "keras.optimizers"
            node["registered_name"] = None
        return node
    if isinstance(node, (list, tuple)):
        return [_public_optimizers(item) for item in node]
    return node
