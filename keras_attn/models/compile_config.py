"""Backend-independent compile configs."""

from typing import Any


def portable_compile_config(
    config: dict[str, Any] | None,
) -> dict[str, Any] | None:
    """Removes backend-specific entries from a compile config.

    Keras on PyTorch writes the module of its own optimizer subclass, which no
    other backend can import; Keras on JAX writes `jit_compile=True`, which
    would run `torch.compile` on PyTorch (as of Keras 3.15.1). This replaces the
    module with the public one of the optimizer and resets `jit_compile` to
    `"auto"`.

    Args:
        config: what `keras.Model.get_compile_config` returns, or None.

    Returns:
        A changed copy of the config.

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
