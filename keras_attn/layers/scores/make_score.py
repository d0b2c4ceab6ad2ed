"""Creation of scores from the arguments of `ScoredAttention`."""

from typing import Any

from keras_attn import checks
from keras_attn.layers.scores.additive_score import AdditiveScore
from keras_attn.layers.scores.cosine_score import CosineScore
from keras_attn.layers.scores.dot_score import DotScore, ScaledDotScore
from keras_attn.layers.scores.general_score import GeneralScore
from keras_attn.layers.scores.given_score import GivenScore
from keras_attn.layers.scores.location_score import LocationScore
from keras_attn.typing import Initializer

SCORES = {
    "dot": DotScore,
    "scaled_dot": ScaledDotScore,
    "general": GeneralScore,
    "additive": AdditiveScore,
    "location": LocationScore,
    "cosine": CosineScore,
}
# Arguments that only one score accepts.
_SPECIFIC = {"additive": "units", "location": "max_sequence_length"}


def check_score(score: Any, **arguments: Any) -> None:
    """Raises ValueError for an unknown score or an argument it does not accept.

    Args:
        score: name, layer or callable.
        **arguments: `units` and `max_sequence_length`, int or None.
    """
    if not callable(score):
        checks.choice("score", score, tuple(SCORES))
    for owner, name in _SPECIFIC.items():
        value = arguments[name]
        if value is None:
            continue
        checks.positive_int(name, value)
        if score != owner:
            raise ValueError(
                f"`{name}` is an argument of the score {owner!r} only. "
                f"Received: {name}={value} with score={score!r}"
            )


def make_score(
    score: Any,
    initializer: Initializer,
    dtype_policy: Any,
    **arguments: Any,
) -> Any:
    """Creates a score, to be built with the shapes of query and key.

    Args:
        score: as for `check_score`.
        initializer: initializer of the kernels.
        dtype_policy: `keras.DTypePolicy`.
        **arguments: as for `check_score`.

    Returns:
        `Score` or `GivenScore`.
    """
    if not isinstance(score, str):
        return GivenScore(score, dtype_policy.compute_dtype)
    name = _SPECIFIC.get(score)
    return SCORES[score](
        initializer=initializer,
        dtype=dtype_policy,
        name="score",
        **({} if name is None else {name: arguments[name]}),
    )
