"""Layer-wise learning-rate decay."""

import re
from typing import Any

from keras_attn import checks
from keras_attn.training.freezing import check_model

_BLOCK = re.compile(r"(?:^|/)((?:\w+_)?block)_(\d+)/")
# Layers before the first block.
_EMBEDDINGS = (
    "(^|/)(token_embedding|segment_embedding|positions|embedding_norm)/"
)


def layerwise_lr_multipliers(model: Any, decay: float) -> dict[str, float]:
    """Returns learning-rate multipliers that decay from block to block.

        f = decay^(N - i) for block i of N,  decay^(N + 1) for embeddings

    and 1 for the layers after the blocks: poolers, heads, last norms. Lower
    layers, which learn more general features, thus take smaller steps (Howard
    and Ruder 2018, sec. 3.2, with decay 1 / 2.6; Clark et al. 2020, app. B,
    https://arxiv.org/abs/2003.10555, with 0.8). The blocks of an encoder and of
    a decoder are counted separately.

    Args:
        model: Keras model, built, with numbered blocks, such as any model of
            this package.
        decay: float in (0, 1].

    Returns:
        Dict of str to float, for `LayerwiseLearningRates`.

    Raises:
        ValueError: a decay out of range, or no numbered blocks.

    Examples:
        >>> model = keras_attn.models.Bert(
        ...     9, num_layers=2, num_heads=1, hidden_dim=4, intermediate_dim=4)
        >>> factors = keras_attn.training.layerwise_lr_multipliers(model, 0.5)
        >>> list(factors.values())
        [0.25, 0.5, 0.125]
    """
    number = isinstance(decay, (int, float)) and not isinstance(decay, bool)
    if not number or not 0 < decay <= 1:
        raise ValueError(
            "`decay` must be a number in (0, 1]. "
            f"Received: decay={checks.shown(decay)}"
        )
    check_model(model)
    paths = [weight.path for weight in model.trainable_weights]
    found = {m.groups() for path in paths if (m := _BLOCK.search(path))}
    if not found:
        raise ValueError(
            "`model` must have numbered blocks with trainable weights. "
            f"Received: {model.name}, which has none"
        )
    counts = {}
    for stack, index in found:
        counts[stack] = max(counts.get(stack, 0), int(index) + 1)
    factors = {
        f"(^|/){stack}_{index}/": float(decay ** (counts[stack] - int(index)))
        for stack, index in sorted(found, key=lambda b: (b[0], int(b[1])))
    }
    if any(re.search(_EMBEDDINGS, path) for path in paths):
        factors[_EMBEDDINGS] = float(decay ** (max(counts.values()) + 1))
    return factors
