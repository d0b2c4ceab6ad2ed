"""Applies the rules of a strategy to the scores of one step."""

from typing import TYPE_CHECKING, Any

from keras import ops

from keras_attn import checks
from keras_attn.backend import full
from keras_attn.typing import Tensor, TensorLike

if TYPE_CHECKING:
    from keras_attn.decoding.logits_rule import LogitsRule
    from keras_attn.decoding.loop import SearchSpec


def prompt_tokens(model: Any, inputs: Any, tokens: TensorLike) -> Tensor:
    """Returns the tokens before the generated ones, int32 (B, P).

    Args:
        model: object that implements the decoding protocol.
        inputs: nest of tensors for its `start_decoding`.
        tokens: int32 (B, 1), the input of the first step.
    """
    if hasattr(model, "prompt_tokens"):
        return model.prompt_tokens(inputs)
    # Not the same tensor: captured steps write in place.
    return ops.maximum(ops.cast(tokens, "int32"), -1)


def tokens_so_far(
    prompt: TensorLike, generated: TensorLike, step: TensorLike
) -> Tensor:
    """Joins prompts and generated tokens, with the last token at the end.

    Args:
        prompt: int32 (B, P), each at the end of its row, after -1.
        generated: int32 (B, k, L), of which the first `step` are tokens.
        step: int32 ().

    Returns:
        Int32 (B, k, P + L), with -1 before the tokens.
    """
    sources, width, length = generated.shape
    size = prompt.shape[1]
    before = full((sources, width, length), -1, dtype="int32")
    prompt = ops.broadcast_to(prompt[:, None], (sources, width, size))
    joined = ops.concatenate(
        [before, ops.cast(prompt, "int32"), ops.cast(generated, "int32")], -1
    )
    window = step + ops.arange(size + length, dtype="int32")
    return ops.take(joined, window, axis=-1)


def apply_rules(
    rules: "tuple[LogitsRule, ...]",
    scores: TensorLike,
    allowed: TensorLike,
    forced: TensorLike | None,
    tokens: TensorLike,
    step: TensorLike,
    spec: "SearchSpec",
) -> tuple[Tensor, Tensor]:
    """Applies rules in their order.

    Args:
        rules: tuple of `LogitsRule`.
        scores: float32 (B, k, V).
        allowed: bool (B, k, V), the tokens that the strategy allows; none for
            sequences that have ended.
        forced: bool (B, 1, 1), where a prefix decides; or None.
        tokens: int32 (B, k, P + L), from `tokens_so_far`.
        step: int32 ().
        spec: `SearchSpec`.

    Returns:
        Float32 (B, k, V), -inf where a token is not allowed; and bool (),
        whether a rule returned NaN or infinity for an allowed token.

    Raises:
        ValueError: a rule returns something else than scores of that shape.
    """
    given = scores = ops.where(allowed, scores, -float("inf"))
    for rule in rules:
        scores = _checked(rule, rule.apply(scores, tokens, step, spec), given)
    if forced is not None:
        scores = ops.where(forced, given, scores)
    scores = ops.where(allowed, scores, -float("inf"))
    # NaN is not below infinity either.
    below = ops.less(scores, float("inf"))
    return scores, ops.any(ops.logical_not(below))


def _checked(rule, scores, given):
    name = f"`apply` of the rule {type(rule).__name__}"
    if not hasattr(scores, "shape") or tuple(scores.shape) != tuple(
        given.shape
    ):
        raise ValueError(
            f"{name} in `rules` must return scores of shape "
            f"{tuple(given.shape)}. Received: "
            f"{getattr(scores, 'shape', checks.shown(scores))}"
        )
    return ops.cast(scores, "float32")
