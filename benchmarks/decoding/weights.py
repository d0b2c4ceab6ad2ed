"""Random weights shared by all contestants."""

import numpy as np


def draw(case, seed=0):
    """Draws the weights of a post-norm Transformer with tied embeddings.

    They are larger than at initialization: an untrained model would repeat its
    last token, and beams would never be reordered.

    Args:
        case: dict of sizes.
        seed: int.

    Returns:
        Nest of float32 arrays: `table` (V, D); `encoder`, a list of layers
        {`self`, `network`}; `decoder`, a list of {`self`, `cross`, `network`}.
        Kernels are (inputs, outputs): `q`, `k`, `v`, `o`, `in`, `out`, each
        with a `_bias`; `scale` and `shift` are those of the layer norm after
        the sublayer.
    """
    rng = np.random.default_rng(seed)
    width, inner = case["width"], case["inner"]

    def dense(name, inputs, outputs, gain):
        kernel = rng.normal(scale=gain * inputs**-0.5, size=(inputs, outputs))
        bias = rng.normal(scale=0.02, size=outputs)
        return {name: _float(kernel), f"{name}_bias": _float(bias)}

    def norm():
        scale, shift = rng.normal(1.0, 0.1, width), rng.normal(0, 0.02, width)
        return {"scale": _float(scale), "shift": _float(shift)}

    def attention(gain):
        # Sharp enough that attention is not uniform.
        gains = {"q": 1.5, "k": 1.5, "v": 2.0, "o": gain}
        parts = [dense(name, width, width, g) for name, g in gains.items()]
        return _joined(*parts, norm())

    def network():
        parts = _joined(
            dense("in", width, inner, 1.5), dense("out", inner, width, 1.5)
        )
        # ReLU outputs have a positive mean, which would dominate the output of
        # the layers if the bias did not remove it.
        mean = 1.5 * (2 * np.pi) ** -0.5
        parts["out_bias"] -= mean * parts["out"].sum(0)
        return _joined(parts, norm())

    table = rng.normal(scale=width**-0.5, size=(case["vocabulary"], width))
    layers = range(case["layers"])
    return {
        "table": _float(table),
        "encoder": [
            {"self": attention(1.0), "network": network()} for _ in layers
        ],
        "decoder": [
            {
                "self": attention(1.0),
                # Smaller, because it is nearly the same at every step.
                "cross": attention(0.5),
                "network": network(),
            }
            for _ in layers
        ],
    }


def count(weights):
    """Counts the parameters in a nest of arrays."""
    if isinstance(weights, dict):
        return sum(map(count, weights.values()))
    if isinstance(weights, list):
        return sum(map(count, weights))
    return weights.size


def positions(length, width):
    """Returns sinusoids, float32 (length, D), sine and cosine interleaved."""
    angles = np.arange(length)[:, None] * 10000.0 ** (
        -np.arange(0, width, 2) / width
    )
    table = np.stack([np.sin(angles), np.cos(angles)], -1)
    return _float(table.reshape(length, width))


def halves(weights):
    """Permutes the features of the model so that all sines come first.

    The model is equivalent for libraries with sinusoids in that order.
    """
    width = weights["table"].shape[1]
    order = np.r_[0:width:2, 1:width:2]

    def moved(name, array):
        if name.removesuffix("_bias") in ("q", "k", "v", "in"):
            return array if name.endswith("_bias") else array[order]
        return array[..., order]

    def walk(part):
        if isinstance(part, list):
            return [walk(layer) for layer in part]
        return {
            name: walk(inner)
            if isinstance(inner, (dict, list))
            else moved(name, inner)
            for name, inner in part.items()
        }

    return walk(weights)


def _float(array):
    return array.astype("float32")


def _joined(*parts):
    return {name: array for part in parts for name, array in part.items()}
