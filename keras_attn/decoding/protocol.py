"""The decoding protocol between models and strategies."""

from collections.abc import Sequence
from typing import Any, NamedTuple


class DecodingState(NamedTuple):
    """State of a model between two decoding steps, a nest of tensors.

    A model that can decode implements

        start_decoding(inputs, length) -> DecodingState
        decode_step(tokens, state) -> (logits, state)

    with tokens int32 (R, T) and logits float (R, T, V). `decode_step` consumes
    its state: the old one must not be used again. `start_decoding` returns a
    state with slots for `length` tokens and one row per source, R = B. A search
    that needs more slots adds them to every `KVCache` in `hypothesis`
    (`keras_attn.cache.grown`); nothing else in the state may depend on the
    length. A search with k hypotheses per source expands `hypothesis` and
    `tokens` to R = B k rows, those of one source adjacent, and does not expand
    `memory`. If hypotheses can extend each other, a `KVCache` keeps B rows
    instead, each with the slots of all k (`keras_attn.cache.expand_beams`):
    attention then treats the hypotheses as queries of one row and applies
    `keras_attn.cache.beam_mask`, as `MultiHeadAttention.decode_step` does.

    The model also has `variables`, like every Keras model, and `pad_id`,
    `start_id` and `end_id`, ints or None; `end_id` may also be a tuple of ints,
    each of which ends a sequence. If `pad_id` is None, no id is padding, and
    `end_id` (the first one) fills finished sequences. If `end_id` is None,
    sequences have the maximum length.

    On PyTorch the steps are captured once, as a graph, and replayed. As in any
    compiled program, `decode_step` must not read the values of tensors or draw
    random numbers. A model can change this with an attribute `torch_steps`:
    `"plain"` runs the steps eagerly, which takes several times as long;
    `"compiled"` compiles the graph with `torch.compile`, which needs a C++
    compiler and a minute before the first step. Default `"captured"`. Other
    backends compile the steps, TensorFlow with XLA, which does not support some
    operations, such as those on strings. If a Python attribute of the model or
    of one of its parts has changed since, such as `end_id` or the activation of
    a layer, the next search compiles or captures them again.

    Logits that are NaN or infinite end a search with an error; single logits of
    -infinity exclude a token.

    A model whose steps read weights faster in another form, such as a
    transposed matrix, can prepare that form once for many searches:

        prepare_weights() -> weights

    a nest of tensors that depends on its variables only. Searches pass it to
    `decode_step` as `state.weights`, which is () by default.

    The rules of a strategy (`LogitsRule`) read the tokens so far. They begin
    with the input of the first step, or, if the inputs of a model are prompts,
    with what this method returns:

        prompt_tokens(inputs) -> tokens

    int32 (B, P), each prompt at the end of its row, after -1.

    The coverage penalty of beam search reads the attention to the source in
    each step. A model can offer it:

        source_mask(memory) -> token_mask
        attend_step(tokens, state) -> (logits, state, weights)

    with token_mask bool (B, S) and weights float (B, k T, S), of k hypotheses
    per source; `attend_step` is otherwise like `decode_step`.

    A model that attends to its source can return the attention weights of each
    generated token:

        align(inputs, tokens, lengths) -> weights

    with tokens int32 (B, t, L), lengths int32 (B, t) and weights float32
    (B, t, M, N, L, S), of M layers.

    Args:
        memory: nest with one row per source, or of values that all sources
            share. Read-only.
        hypothesis: nest with one row per hypothesis; beam search reorders it.
            Scalars are shared by all rows.
        tokens: int32 (R, 1), the input of the first step.
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
    """The t best sequences of each source, as NumPy arrays.

    Args:
        tokens: int32 (B, t, L), `pad_id` after the end token.
        scores: float32 (B, t), total log-probability in nats, or the
            normalized score of the strategy, best first (samples: as drawn).
            -inf: there is no such sequence.
        lengths: int32 (B, t), in tokens, the end token included; 0 if there is
            no sequence.
        weights: float32 (B, t, M, N, L, S) if requested, else None: attention
            weights of M layers from each generated token to the source; zeros
            after the end.
        state: what the model has read and generated, if `generate` has a
            `state`, else None: the state of the next call, with the first
            sequence of each source.
        speculation: `SpeculativeCounts` with `SpeculativeDecoding` or
            `PromptLookup`, else None.

    Examples:
        >>> keras_attn.decoding.Decoded(None, None, None)._fields
        ('tokens', 'scores', 'lengths', 'weights', 'state', 'speculation')
    """

    tokens: Any
    scores: Any
    lengths: Any
    weights: Any = None
    state: Any = None
    speculation: Any = None


def fill_id(model: Any) -> int:
    """Returns the id that fills the positions after a sequence.

    Args:
        model: object that implements the decoding protocol.

    Returns:
        Its `pad_id`; its first `end_id` if `pad_id` is None; -1 if both are
        None.
    """
    if model.pad_id is not None:
        return model.pad_id
    return next(iter(end_ids(model.end_id)), -1)


def end_ids(end_id: int | Sequence[int] | None) -> tuple[int, ...]:
    """Returns the `end_id` of a model as a tuple of ints, which may be empty.

    Args:
        end_id: int, a list or tuple of int, or None.
    """
    if end_id is None:
        return ()
    return tuple(end_id) if isinstance(end_id, (list, tuple)) else (end_id,)


def id_or_none(number: int) -> int:
    """Returns an id unchanged, and -1, which is no token, for None."""
    return -1 if number is None else number
