"""The one decoding protocol: what a model offers and a strategy drives."""

from typing import Any, NamedTuple


class DecodingState(NamedTuple):
    """Holds everything a model needs to take its next step.

    A plain nest of tensors. A model that can decode offers

        start_decoding(inputs, max_length) -> DecodingState
        decode_step(tokens, state) -> (logits, state)

    with tokens int32 (R, T) and logits float (R, T, V); `decode_step` consumes
    its state, the old one must not be used again. It also has `pad_id`,
    `start_id`, `end_id` (ints) and, like every Keras model, `variables`.

    Args:
        memory: nest with one row a source. Steps only read it.
        hypothesis: nest with one row a hypothesis; beam search reorders it.
        tokens: int32 (R, 1), the tokens that the first step takes.

    Examples:
        >>> keras_attn.decoding.DecodingState((), (), None)._fields
        ('memory', 'hypothesis', 'tokens')
    """

    memory: Any
    hypothesis: Any
    tokens: Any


class Decoded(NamedTuple):
    """Holds the t best sequences of each source, as NumPy arrays.

    Args:
        tokens: int32 (B, t, L), `pad_id` after the end token.
        scores: float32 (B, t), total log-probability in nats, or the
            normalised score of the strategy, best first.
        lengths: int32 (B, t), in tokens, the end token included.
        weights: alignments when asked for, else None.

    Examples:
        >>> keras_attn.decoding.Decoded(None, None, None)._fields
        ('tokens', 'scores', 'lengths', 'weights')
    """

    tokens: Any
    scores: Any
    lengths: Any
    weights: Any = None
