"""`torch.nn` Transformer layers in float64 with the weights of a block."""

import keras
import numpy as np
import pytest

torch = pytest.importorskip("torch")

_ENCODER_NORMS = "around_attention", "around_feed_forward"
_DECODER_NORMS = (
    "around_attention",
    "around_cross_attention",
    "around_feed_forward",
)


def named_arrays(block):
    """Returns the block's weights as {name below the block: array}."""
    return {
        variable.path.removeprefix(f"{block.path}/"): to_numpy(variable)
        for variable in block.weights
    }


def to_numpy(tensor):
    """Converts a tensor of the current backend to a NumPy array."""
    return keras.ops.convert_to_numpy(tensor)


def encoder_layer(block):
    """Returns the equivalent `torch.nn.TransformerEncoderLayer` of a block."""
    named = named_arrays(block)
    layer = torch.nn.TransformerEncoderLayer(**_sizes(block, named))
    _load(layer, as_encoder_layer(named))
    return layer


def decoder_layer(block):
    """Returns the equivalent `torch.nn.TransformerDecoderLayer` of a block."""
    named = named_arrays(block)
    layer = torch.nn.TransformerDecoderLayer(**_sizes(block, named))
    _load(layer, as_decoder_layer(named))
    return layer


def as_encoder_layer(named):
    """Converts weights or gradients to the encoder layer's parameters."""
    return {
        **_attention("self_attn", "self_attention", named),
        **_network(named),
        **_norms(_ENCODER_NORMS, named),
    }


def as_decoder_layer(named):
    """Converts weights or gradients to the decoder layer's parameters."""
    return {
        **_attention("self_attn", "self_attention", named),
        **_attention("multihead_attn", "cross_attention", named),
        **_network(named),
        **_norms(_DECODER_NORMS, named),
    }


def gradients_of(module):
    """Returns {parameter name: gradient} after a backward pass."""
    return {
        name: parameter.grad.numpy()
        for name, parameter in module.named_parameters()
    }


def tensor(array, requires_grad=False):
    """Converts to a CPU tensor of PyTorch, floats to float64."""
    array = np.asarray(array)
    if array.dtype.kind == "f":
        array = array.astype("float64")
    return torch.tensor(array, device="cpu", requires_grad=requires_grad)


def _sizes(block, named):
    inner = named["feed_forward/inner/kernel"].shape
    return {
        "d_model": inner[0],
        "nhead": block.num_heads,
        "dim_feedforward": inner[1],
        "dropout": 0.0,
        "activation": keras.activations.serialize(block.activation),
        "layer_norm_eps": block.epsilon,
        "norm_first": block.normalize_first,
        "batch_first": True,
        "dtype": torch.float64,
        "device": "cpu",
    }


def _load(layer, arrays):
    layer.load_state_dict({name: tensor(x) for name, x in arrays.items()})


def _attention(theirs, ours, named):
    kernels, biases = [], []
    for part in ("query", "key", "value"):
        kernel = named[f"{ours}/{part}/kernel"]
        kernels.append(kernel.reshape(len(kernel), -1).T)
        biases.append(named[f"{ours}/{part}/bias"].reshape(-1))
    output = named[f"{ours}/attention_output/kernel"]
    return {
        f"{theirs}.in_proj_weight": np.concatenate(kernels),
        f"{theirs}.in_proj_bias": np.concatenate(biases),
        f"{theirs}.out_proj.weight": output.reshape(-1, output.shape[-1]).T,
        f"{theirs}.out_proj.bias": named[f"{ours}/attention_output/bias"],
    }


def _network(named):
    return {
        "linear1.weight": named["feed_forward/inner/kernel"].T,
        "linear1.bias": named["feed_forward/inner/bias"],
        "linear2.weight": named["feed_forward/outer/kernel"].T,
        "linear2.bias": named["feed_forward/outer/bias"],
    }


def _norms(names, named):
    arrays = {}
    for number, name in enumerate(names, 1):
        arrays[f"norm{number}.weight"] = named[f"{name}/norm/gamma"]
        arrays[f"norm{number}.bias"] = named[f"{name}/norm/beta"]
    return arrays
