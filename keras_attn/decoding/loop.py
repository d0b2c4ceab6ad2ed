"""The one loop of all strategies: a step of the model, a choice, and so on."""

from typing import Any, NamedTuple

from keras import ops

from keras_attn import cache as kv
from keras_attn.backend import captured_step


class _Loop(NamedTuple):
    step: Any  # int32 (), tokens generated so far
    state: Any  # DecodingState, its `tokens` those of the next step
    book: Any  # nest of tensors in which the strategy keeps its sequences


class Choice(NamedTuple):
    """Holds what a strategy made of one step.

    Args:
        book: nest of tensors, the strategy's next.
        tokens: int32 (B, k), what each sequence goes on with.
        origins: int32 (B, k), which of the k sequences of its source each goes
            on from; None: each from itself.
    """

    book: Any
    tokens: Any
    origins: Any = None


def run(model, inputs, max_length, constraints, width, book, alive, choose):
    """Runs a model until nothing is alive, as a function of tensors.

    The sequences of one source stand side by side: R = B k rows of the state's
    `hypothesis`, against B rows of its `memory`, which is never copied.

    Args:
        model: what offers the decoding protocol.
        inputs: nest of tensors for its `start_decoding`.
        max_length: int. L, the most tokens generated, end included.
        constraints: `Constraints`.
        width: int. k, how many sequences each source has.
        book: callable, takes the number of sources B and returns the book that
            a strategy begins with.
        alive: callable, takes a book and returns bool (B, k): which sequences
            are continued.
        choose: callable, takes a book, the step and the log-probabilities of
            the next tokens, float32 (B, k, V) with -inf where there can be
            none, and returns a `Choice`.

    Returns:
        The last book.
    """
    step = captured_step(model.decode_step, model.variables)
    state = model.start_decoding(inputs, max_length)
    sources = ops.shape(state.tokens)[0]
    first = ops.arange(sources, dtype="int32")[:, None]
    if width > 1:
        rows = ops.reshape(ops.tile(first, (1, width)), (-1,))
        state = state._replace(
            hypothesis=kv.reorder(state.hypothesis, rows),
            tokens=ops.take(state.tokens, rows, axis=0),
        )

    def unfinished(*loop):
        loop = _Loop(*loop)
        return ops.logical_and(
            loop.step < max_length, ops.any(alive(loop.book))
        )

    def advance(*loop):
        loop = _Loop(*loop)
        logits, state = step(loop.state.tokens, loop.state)
        log_probs = ops.log_softmax(ops.cast(logits[:, -1], "float32"))
        log_probs = ops.reshape(
            log_probs, (sources, width, log_probs.shape[-1])
        )
        allowed = constraints.allow(log_probs, loop.step, alive(loop.book))
        choice = choose(loop.book, loop.step, allowed)
        if choice.origins is not None:
            rows = ops.reshape(first * width + choice.origins, (-1,))
            state = state._replace(
                hypothesis=kv.reorder(state.hypothesis, rows)
            )
        state = state._replace(tokens=ops.reshape(choice.tokens, (-1, 1)))
        return _Loop(loop.step + 1, state, choice.book)

    loop = _Loop(ops.zeros((), "int32"), state, book(sources))
    return _Loop(*ops.while_loop(unfinished, advance, loop)).book
