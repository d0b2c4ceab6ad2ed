"""From the arguments of an attention to its score."""

from keras_attn import checks
from keras_attn.layers.scores.additive_score import AdditiveScore
from keras_attn.layers.scores.cosine_score import CosineScore
from keras_attn.layers.scores.dot_score import DotScore, ScaledDotScore
from keras_attn.layers.scores.general_score import GeneralScore
from keras_attn.layers.scores.given_score import GivenScore
from keras_attn.layers.scores.location_score import LocationScore

_SCORES = {
    "dot": DotScore,
    "scaled_dot": ScaledDotScore,
    "general": GeneralScore,
    "additive": AdditiveScore,
    "location": LocationScore,
    "cosine": CosineScore,
}
# Which score has which argument of its own.
_OWN = {"additive": "units", "location": "max_sequence_length"}


def check_score(score, **own):
    """Raises ValueError where a score is unknown, or an argument not its own.

    Args:
        score: name, layer or callable.
        **own: `units` and `max_sequence_length`, int or None.
    """
    if not callable(score):
        checks.choice("score", score, tuple(_SCORES))
    for owner, name in _OWN.items():
        value = own[name]
        if value is None:
            continue
        checks.positive_int(name, value)
        if score != owner:
            raise ValueError(
                f"`{name}` is an argument of the score {owner!r} alone. "
                f"Received: {name}={value} with score={score!r}"
            )


def make_score(score, initializer, dtype_policy, **own):
    """Makes what is built with the shapes of query and key, and called.

    Args:
        score: as for `check_score`.
        initializer: initializer of its kernels.
        dtype_policy: `keras.DTypePolicy`.
        **own: as for `check_score`.

    Returns:
        `Score` or `GivenScore`.
    """
    if not isinstance(score, str):
        return GivenScore(score, dtype_policy.compute_dtype)
    name = _OWN.get(score)
    return _SCORES[score](
        initializer=initializer,
        dtype=dtype_policy,
        name="score",
        **({} if name is None else {name: own[name]}),
    )
