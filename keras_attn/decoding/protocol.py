"""The one decoding protocol: what a model offers and a strategy drives."""

from typing import Any, NamedTuple


class DecodingState(NamedTuple):
    """Holds everything a model needs to take its next step.

    A plain nest of tensors. A model that can decode offers

        start_decoding(inputs, length) -> DecodingState
        decode_step(tokens, state) -> (logits, state)

    with tokens int32 (R, T) and logits float (R, T, V); `decode_step` consumes
    its state, the old one must not be used again. The state of a start has room
    for `length` tokens. A search that goes on beyond them gives every `KVCache`
    in `hypothesis` more slots (`keras_attn.cache.grown`); nothing else in
    the state may depend on the length. The state of a start has one
    row a source, R = B. A search that keeps k hypotheses of each source gives
    `hypothesis` and `tokens` R = B k rows, those of one source side by side,
    and `memory` stays as it is. Where hypotheses go on from each other, a
    `KVCache` keeps B rows instead, each with the slots of all k
    (`keras_attn.cache.expand_beams`): attention to it takes the hypotheses as
    queries of one row and hides what `keras_attn.cache.beam_mask` hides, as
    `MultiHeadAttention.decode_step` does. The model also has `pad_id`,
    `start_id`, `end_id` (ints; a `pad_id` that is None: no id is padding, and
    `end_id` stands behind what has ended; a `start_id` or an `end_id` that is
    None: there is none, and all sequences are as long as may be) and, like
    every Keras model, `variables`.

    On PyTorch the steps are captured once, as a graph, and replayed. So
    `decode_step` must not look at the values of tensors nor draw random
    numbers, as in any compiled program. A model may say otherwise in an
    attribute `torch_steps`: `"plain"`, its steps run as they are, which takes
    several times as long; or `"compiled"`, `torch.compile` makes a program of
    the graph, which takes a minute before the first step and a C++ compiler.
    Default `"captured"`. Other backends compile the steps, TensorFlow with XLA,
    which lacks some operations, such as those on strings.

    A model whose steps would read weights faster in another form, such as a
    matrix the other way round, may make that form once for many searches:

        prepare_weights() -> weights

    a nest of tensors that depends on its variables alone. Searches hand it to
    `decode_step` as `state.weights`; who takes steps by hand may leave it out,
    and then it is ().

    A model that attends to its source may say where each generated token
    looked:

        align(inputs, tokens, lengths) -> weights

    with tokens int32 (B, t, L), lengths int32 (B, t) and weights float32
    (B, t, M, N, L, S), of M layers.

    Args:
        memory: nest with one row a source, or of what all sources share. Steps
            only read it.
        hypothesis: nest with one row a hypothesis; beam search reorders it.
            What has no axis is shared by all rows.
        tokens: int32 (R, 1), the tokens that the first step takes.
        weights: what `prepare_weights` returned, or ().

    Examples:
        >>> keras_attn.decoding.DecodingState((), (), None)._fields
        ('memory', 'hypothesis', 'tokens', 'weights')
    """

    memory: Any
    hypothesis: Any
    tokens: Any
    weights: Any = ()


class Decoded(NamedTuple):
    """Holds the t best sequences of each source, as NumPy arrays.

    Args:
        tokens: int32 (B, t, L), `pad_id` after the end token.
        scores: float32 (B, t), total log-probability in nats, or the
            normalised score of the strategy, best first (samples: as drawn).
            -inf: there is no such sequence.
        lengths: int32 (B, t), in tokens, the end token included; 0 where there
            is no sequence.
        weights: float32 (B, t, M, N, L, S) when asked for, else None: how M
            layers looked at the source when they chose each token; zeros
            behind the end.

    Examples:
        >>> keras_attn.decoding.Decoded(None, None, None)._fields
        ('tokens', 'scores', 'lengths', 'weights')
    """

    tokens: Any
    scores: Any
    lengths: Any
    weights: Any = None


def fill_id(model):
    """Returns the id that stands behind a sequence.

    Args:
        model: what offers the decoding protocol.

    Returns:
        Its `pad_id`; the `end_id` of a model in which no id is padding; -1
        where none ends a sequence either.
    """
    return id_or_none(model.end_id if model.pad_id is None else model.pad_id)


def id_or_none(number):
    """Returns an id as it is, and -1, which no token has, for None."""
    return -1 if number is None else number
