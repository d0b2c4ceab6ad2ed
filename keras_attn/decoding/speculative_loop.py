"""The loop of speculative decoding, in which rows advance independently."""

import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from keras import ops

from keras_attn import cache as kv
from keras_attn import checks
from keras_attn.backend import (
    Capturing,
    argmax_first,
    compiled,
    joined_variables,
    programs_of,
    scan,
    take_along_axis,
    while_loop,
)
from keras_attn.decoding.acceptance import accept, leading
from keras_attn.decoding.apply_rules import prompt_tokens
from keras_attn.decoding.loop import (
    TORCH_STEPS,
    Search,
    SearchSpec,
    check_numbers,
    quantized_caches,
)
from keras_attn.decoding.ngram_drafts import ngram_drafts
from keras_attn.decoding.prepared_weights import prepared_weights
from keras_attn.decoding.protocol import DecodingState
from keras_attn.decoding.sampling import Sampling, inverse
from keras_attn.decoding.sequences import begin, decoded, is_any_of
from keras_attn.decoding.stop_strings import state_after
from keras_attn.typing import Nest, TensorLike

if TYPE_CHECKING:
    from keras_attn.decoding.speculative import Speculation

# Indices of the random numbers of a token.
_DRAFT, _ACCEPT, _OWN = range(3)
# `SpeculativeLoop.failed_step` if the assistant has failed.
_ASSISTANT = -1


class SpeculativeLoop(NamedTuple):
    """State of the loop between two calls of the target.

    Args:
        failed_step: int32 (), the index from 1 of the first token whose
            distribution was NaN; -1 if one of the assistant's was; 0 if there
            is none.
        cache: `KVCache` of the target, which has read all tokens of a row but
            the last.
        assistant_cache: `KVCache` of the assistant, which has read all but the
            last two; () without one.
        recent: int32 (R, 2), the last two tokens of each row, -1 for none.
        tokens: int32 (R, L), the generated tokens.
        scores: float32 (R,), sum of log-probabilities.
        lengths: int32 (R,), the number of generated tokens.
        growing: bool (R,), which sequences have not ended.
        stop_states: int32 (R,), as in `Loop`, or () without stop strings.
        counts: int32 (R, 3), the fields of `SpeculativeCounts`.
    """

    failed_step: Any
    cache: Any
    assistant_cache: Any
    recent: Any
    tokens: Any
    scores: Any
    lengths: Any
    growing: Any
    stop_states: Any
    counts: Any


class SpeculativeConstants(NamedTuple):
    """Values that are the same in all calls of a run.

    Args:
        prefix: int32 (R, L), the tokens that each sequence begins with; or
            None.
        uniforms: float32 (R, 3, L), or None.
        weights: what the target's and the assistant's `prepare_weights`
            returned, or () for either.
        prompt: int32 (R, P), each prompt at the end of its row, after -1.
        stops: int32 (S, V), what `stop_table` returned, or ().
    """

    prefix: Any
    uniforms: Any
    weights: Any
    prompt: Any
    stops: Any


class SpeculativeSearch:
    """The functions of the loop, for models, a strategy and a length.

    Every sequence is a row of its own, R = B t in all.

    Args:
        search: `Search` of the target, with the strategy that draws tokens.
        assistant: the assistant, or None.
        draft_length: int. n, maximum number of tokens drafted per call.
        ngram_size: int. Tokens of the longest n-gram, without an assistant.
        assistant_programs: `OwnedPrograms` of the assistant, or None.
    """

    def __init__(
        self,
        search: Search,
        assistant: Any,
        draft_length: int,
        ngram_size: int,
        assistant_programs: Any,
    ) -> None:
        self.search = search
        self.strategy: Any = search.strategy
        self.spec: SearchSpec = search.spec
        self.assistant = assistant
        # The last token is the target's own.
        self.draft_length: int = min(draft_length, self.spec.max_new_tokens - 1)
        self.ngram_size = ngram_size
        self.assistant_programs = assistant_programs
        self.samples: bool = isinstance(self.strategy, Sampling)

    def start(self, inputs: Nest) -> tuple[Any, Any]:
        """Starts a run.

        Args:
            inputs: nest of tensors for the target's `start_decoding`.

        Returns:
            The first `SpeculativeLoop`, with caches for `search.lengths()[0]`
            tokens; and the prompt of `SpeculativeConstants`.
        """
        width = self.strategy.num_hypotheses
        length = self.search.lengths()[0]
        # A call writes drafts after the last token, and padding into the rows
        # that wait.
        room = length + 2 * (self.draft_length + 1)
        state = self._started(self.search.model, inputs, room)
        prompt = prompt_tokens(self.search.model, inputs, state.tokens)
        assistant_cache: Any = ()
        if self.assistant is not None:
            if isinstance(inputs, dict):
                # Of another model.
                inputs = {n: inputs[n] for n in inputs if n != "state"}
            begun = self._started(self.assistant, inputs, room)
            assistant_cache = begun.hypothesis
        sources = ops.shape(prompt)[0]
        if width > 1:
            rows = ops.arange(sources * width, dtype="int32") // width
            prompt, cache, assistant_cache = kv.reorder(
                (prompt, state.hypothesis, assistant_cache), rows
            )
        else:
            cache = state.hypothesis
        cache = kv.crop(cache, np.array(0, "int32"))
        if self.assistant is not None:
            assistant_cache = kv.crop(assistant_cache, np.array(1, "int32"))
        found = begin(
            sources, width, self.spec.max_new_tokens, self.spec.pad_id
        )
        tokens = ops.reshape(found.tokens, (-1, self.spec.max_new_tokens))
        scores, lengths, growing = (
            ops.reshape(part, (-1,))
            for part in (found.scores, found.lengths, found.growing)
        )
        recent = ops.pad(prompt, [(0, 0), (1, 0)], constant_values=-1)[:, -2:]
        stop_states: Any = ()
        if self.search.has_stops:
            stop_states = ops.zeros_like(lengths)
        counts = ops.zeros((ops.shape(prompt)[0], 3), "int32")
        return SpeculativeLoop(
            ops.zeros((), "int32"),
            cache,
            assistant_cache,
            recent,
            tokens,
            scores,
            lengths,
            growing,
            stop_states,
            counts,
        ), prompt

    def _started(self, model, inputs, length):
        # Dropped drafts must not have replaced tokens of a sliding window.
        state = model.start_decoding(inputs, length, keep_all_tokens=True)
        if self.search.cache_dtype is not None:
            state = quantized_caches(state, model)
        return state

    def active(self, loop: SpeculativeLoop) -> Any:
        """Returns which rows the next call extends, bool (R,).

        A row whose cache is full waits until the others are, too.
        """
        free = kv.free_slots(loop.cache)
        needed = 2 * (self.draft_length + 1)
        return ops.logical_and(loop.growing, free >= needed)

    def step(
        self, loop: SpeculativeLoop, constants: SpeculativeConstants
    ) -> SpeculativeLoop:
        """Drafts tokens, and adds those that the target accepts and its own.

        Args:
            loop: `SpeculativeLoop`, consumed.
            constants: `SpeculativeConstants`.

        Returns:
            The next `SpeculativeLoop`.
        """
        active = self.active(loop)
        drafts, counts, q, assistant_cache, failed = self._draft(
            loop, constants, active
        )
        offsets = ops.arange(self.draft_length + 1, dtype="int32")
        steps = loop.lengths[:, None] + offsets
        mask = ops.logical_and(offsets <= counts[:, None], active[:, None])
        block = ops.concatenate([loop.recent[:, 1:], drafts], axis=1)
        state = DecodingState((), loop.cache, None, constants.weights[0])
        logits, state = self.search.model.decode_step(
            ops.where(mask, block, 0), state, mask
        )
        log_probs = ops.log_softmax(ops.cast(logits, "float32"))
        allowed = self._allowed(constants, log_probs, steps, mask)
        if self.samples:
            accepted, residual = accept(
                self.strategy.probabilities(allowed),
                q,
                drafts,
                counts,
                self._uniforms(constants, _ACCEPT, steps[:, :-1]),
            )
            uniform = self._uniforms(
                constants, _OWN, (loop.lengths + accepted)[:, None]
            )
            own = inverse(residual[:, None], uniform)
        else:
            own = argmax_first(allowed)
            agree = ops.logical_and(drafts == own[:, :-1], mask[:, 1:])
            accepted = leading(agree)
        followed = ops.pad(drafts, [(0, 0), (0, 1)])
        tokens = ops.where(offsets < accepted[:, None], followed, own)
        following, failed_step = self._added(
            loop, constants, tokens, log_probs, allowed, accepted, active
        )
        rejected = ops.where(active, counts - accepted, 0)
        if self.assistant is not None:
            assistant_cache = kv.crop(assistant_cache, rejected)
            failed = ops.any(ops.logical_and(failed, active))
            failed_step = ops.where(failed, _ASSISTANT, failed_step)
        known = following.lengths - loop.lengths
        drafted = ops.where(active, counts, 0)
        used = ops.minimum(accepted, known)
        called = ops.cast(active, "int32")
        counted = ops.stack([called, drafted, called * used], axis=1)
        recent = ops.concatenate([loop.recent, tokens], axis=1)
        at = known[:, None] + ops.arange(2, dtype="int32")
        is_first = ops.equal(loop.failed_step, 0)
        failed_step = ops.where(is_first, failed_step, loop.failed_step)
        return following._replace(
            failed_step=failed_step,
            growing=ops.logical_and(
                following.growing, ops.equal(failed_step, 0)
            ),
            cache=kv.crop(state.hypothesis, rejected),
            assistant_cache=assistant_cache,
            recent=take_along_axis(recent, at),
            counts=loop.counts + counted,
        )

    def _added(
        self, loop, constants, tokens, log_probs, allowed, accepted, active
    ):
        """Appends tokens up to the first end, and returns the failed step."""
        offsets = ops.arange(tokens.shape[1], dtype="int32")
        steps = loop.lengths[:, None] + offsets
        gained = take_along_axis(allowed, tokens[..., None])[..., 0]
        possible = gained > -float("inf")
        ended = is_any_of(tokens, self.spec.end_ids)
        stop_states = loop.stop_states
        if self.search.has_stops:
            states = []
            for index in range(tokens.shape[1]):
                stop_states = state_after(
                    stop_states, constants.stops, tokens[:, index]
                )
                states.append(stop_states)
            states = ops.stack(states, axis=1)
            ended = ended | (states == constants.stops.shape[0] - 1)
        ended = ended | ops.logical_not(possible)
        ended = ended | (steps + 1 >= self.spec.max_new_tokens)
        going_on = leading(ops.logical_not(ended))
        # Of the accepted tokens and the target's own, up to the first end.
        last = ops.minimum(accepted, going_on)
        kept = ops.logical_and(offsets <= last[:, None], active[:, None])
        broken = ops.logical_and(kept, ops.isnan(log_probs[..., 0]))
        limit = self.spec.max_new_tokens
        first = ops.min(ops.where(broken, steps + 1, limit + 1))
        failed_step = ops.where(first > limit, 0, first)
        written = ops.logical_and(kept, possible)
        count = ops.sum(ops.cast(written, "int32"), axis=1)
        slots = ops.arange(loop.tokens.shape[1], dtype="int32")
        index = slots - loop.lengths[:, None]
        inside = ops.logical_and(index >= 0, index < count[:, None])
        index = ops.clip(index, 0, tokens.shape[1] - 1)
        added = take_along_axis(tokens, index)
        if self.search.has_stops:
            at = ops.maximum(count - 1, 0)[:, None]
            states = take_along_axis(states, at)[:, 0]
            stop_states = ops.where(count > 0, states, loop.stop_states)
        following = loop._replace(
            tokens=ops.where(inside, added, loop.tokens),
            scores=loop.scores + ops.sum(ops.where(kept, gained, 0.0), axis=1),
            lengths=loop.lengths + count,
            growing=ops.where(active, accepted < going_on, loop.growing),
            stop_states=stop_states,
        )
        return following, failed_step

    def _draft(self, loop, constants, active):
        """Returns drafts, their number and distributions, and the assistant's.

        Tokens int32 (R, n), counts (R,), q float32 (R, n, V) or None, the next
        cache, and bool (R,), which rows had a distribution of NaN.
        """
        left = self.spec.max_new_tokens - loop.lengths - 1
        counts = ops.where(active, ops.clip(left, 0, self.draft_length), 0)
        if self.assistant is not None:
            return self._drafted(loop, constants, active, counts)
        joined = ops.concatenate([constants.prompt, loop.tokens], axis=1)
        drafts, found = ngram_drafts(
            ops.cast(joined, "int32"),
            loop.lengths + constants.prompt.shape[1],
            self.ngram_size,
            self.draft_length,
        )
        return drafts, ops.minimum(counts, found), None, (), None

    def _drafted(self, loop, constants, active, counts):
        def step(carried, offset):
            cache, tokens, mask, failed = carried
            state = DecodingState((), cache, None, constants.weights[1])
            logits, state = self.assistant.decode_step(
                ops.maximum(tokens, 0), state, mask
            )
            log_probs = ops.log_softmax(ops.cast(logits[:, -1:], "float32"))
            needed = counts > offset
            failed = failed | (needed & ops.isnan(log_probs[:, 0, 0]))
            steps = (loop.lengths + offset)[:, None]
            allowed = self._allowed(
                constants, log_probs, steps, needed[:, None]
            )
            if self.samples:
                q = self.strategy.probabilities(allowed)
                uniform = self._uniforms(constants, _DRAFT, steps)
                token = inverse(q, uniform)
                drawn: Any = token[:, 0], q[:, 0]
            else:
                token = argmax_first(allowed)
                drawn = (token[:, 0],)
            # The last draft is not read before it is accepted.
            mask = (counts > offset + 1)[:, None]
            return (state.hypothesis, token, mask, failed), drawn

        mask = ops.logical_and(loop.recent >= 0, active[:, None])
        failed = ops.zeros_like(active)
        carried, first = step(
            (loop.assistant_cache, loop.recent, mask, failed),
            ops.zeros((), "int32"),
        )
        drawn = [part[:, None] for part in first]
        if self.draft_length > 1:
            offsets = ops.arange(1, self.draft_length, dtype="int32")
            carried, others = scan(step, carried, offsets)
            drawn = [
                ops.concatenate([part, ops.swapaxes(other, 0, 1)], axis=1)
                for part, other in zip(drawn, others, strict=True)
            ]
        q = drawn[1] if self.samples else None
        return drawn[0], counts, q, carried[0], carried[3]

    def _allowed(self, constants, log_probs, steps, mask):
        constraints = self.strategy.constraints(self.spec, constants.prefix)
        return constraints.allow(log_probs, steps, mask)

    def _uniforms(self, constants, kind, steps):
        last = self.spec.max_new_tokens - 1
        uniforms = constants.uniforms[:, kind]
        return take_along_axis(uniforms, ops.minimum(steps, last))

    def captured(self) -> tuple[Any, Any]:
        """Returns `start` and `step`, captured if the backend can."""
        mode = getattr(self.search.model, "torch_steps", TORCH_STEPS)
        checks.choice("torch_steps", mode, ("captured", "compiled", "plain"))
        capturing = Capturing(self.search.programs, self.assistant_programs)
        once = "plain" if mode == "plain" else "captured"
        return (
            capturing.step(self.start, self.key("start"), once),
            capturing.step(self.step, self.key("step"), mode, fixed=1),
        )

    def key(self, name: str) -> tuple[Any, ...]:
        """Returns a hashable key of all that a step function depends on."""
        mark = None
        if self.assistant is not None:
            # A new one if the assistant's attributes or weights change.
            mark = self.assistant_programs.get("speculative", object)
        options = self.draft_length, self.ngram_size, mark
        return self.search.key(f"speculative {name}"), *options

    def run(
        self,
        inputs: Nest,
        prefix: TensorLike | None,
        uniforms: TensorLike | None,
        weights: Any,
        stops: TensorLike,
    ) -> Any:
        """Decodes until no sequence is extended, as a function of tensors.

        Args:
            inputs: nest of tensors for the target's `start_decoding`.
            prefix: int32 (B, L), or None.
            uniforms: float32 (B, 3 t, L), or None.
            weights: as in `SpeculativeConstants`.
            stops: what `stop_table` returned, as a tensor, or ().

        Returns:
            Tokens, scores and lengths of `Decoded`; the fields of
            `SpeculativeCounts`; and `SpeculativeLoop.failed_step`.
        """
        width = self.strategy.num_hypotheses
        start, step = self.captured()
        loop, prompt = start(inputs)
        if prefix is not None and width > 1:
            prefix = ops.repeat(prefix, width, axis=0)
        if uniforms is not None:
            size = ops.shape(uniforms)[-1]
            uniforms = ops.reshape(uniforms, (-1, 3, size))
        constants = SpeculativeConstants(
            prefix, uniforms, weights, prompt, stops
        )
        lengths = self.search.lengths()

        def rest(loop, lengths):
            loop = while_loop(
                lambda loop: step(loop, constants),
                lambda loop: ops.any(self.active(loop)),
                loop,
                self.spec.max_new_tokens,
            )
            if len(lengths) == 1:
                return self._results(loop)
            present, length = lengths[:2]

            def longer():
                cache, assistant_cache = kv.grown(
                    (loop.cache, loop.assistant_cache), length - present
                )
                following = loop._replace(
                    cache=cache, assistant_cache=assistant_cache
                )
                return rest(following, lengths[1:])

            # A finished search needs no larger caches.
            return ops.cond(
                ops.any(loop.growing), longer, lambda: self._results(loop)
            )

        return rest(loop, lengths)

    def _results(self, loop):
        width = self.strategy.num_hypotheses
        length = self.spec.max_new_tokens
        tokens = ops.reshape(loop.tokens, (-1, width, length))
        scores, lengths = (
            ops.reshape(part, (-1, width))
            for part in (loop.scores, loop.lengths)
        )
        found = decoded(tokens, scores, lengths, self.spec.pad_id)
        counts = ops.reshape(loop.counts, (-1, width, 3))
        return (
            *found[:3],
            *(counts[..., index] for index in range(3)),
            loop.failed_step,
        )


def speculative_program(
    speculation: "Speculation",
    model: Any,
    programs: Any,
    strategy: Any,
    max_new_tokens: int,
    has_stops: bool,
    cache_dtype: str | None = None,
) -> tuple[Any, Any]:
    """Returns the compiled program of a search, and the weights it reads.

    Args:
        speculation: `Speculation`.
        model: `GPT`, the target.
        programs: its `OwnedPrograms`.
        strategy: copy of `speculation.drawing()`.
        max_new_tokens: int >= 2. L.
        has_stops: bool. Whether there are stop strings.
        cache_dtype: `"int8"`: the caches of both models are quantized; or None.
            Default None.

    Returns:
        A callable that takes the inputs, prefix and random numbers of a batch,
        the weights and the table of the stop strings, and returns what
        `SpeculativeSearch.run` returns; and its weights.
    """
    assistant = speculation.assistant_model
    weights: Any = (prepared_weights(model, programs), ())
    variables = programs.variables
    others = kept_others = None
    if assistant is not None:
        others = programs_of(assistant, assistant.variables)
        weights = (weights[0], prepared_weights(assistant, others))
        variables = joined_variables(programs, others)
        kept_others = weakref.proxy(others)
        assistant = weakref.proxy(assistant)
    # Proxies: the program would keep its owner alive forever.
    found = Search(
        strategy,
        weakref.proxy(model),
        max_new_tokens,
        weakref.proxy(programs),
        has_stops,
        cache_dtype,
    )
    search = SpeculativeSearch(
        found,
        assistant,
        speculation.draft_length,
        speculation.ngram_size,
        kept_others,
    )
    key = search.key("search")

    def run(inputs, prefix, uniforms, weights, stops):
        return search.run(inputs, prefix, uniforms, weights, stops)

    function = run if others is None else others.traced(run)
    return compiled(function, variables, programs, key), weights


def check_speculative_numbers(failed_step: int | TensorLike) -> None:
    """Raises ValueError if a model has failed.

    Args:
        failed_step: int, or an array (): `SpeculativeLoop.failed_step`.
    """
    if failed_step == _ASSISTANT:
        raise ValueError(
            "`assistant_model` must return logits that are numbers, below "
            "infinity, some above -infinity. Received: NaN or infinite logits"
        )
    check_numbers(failed_step)
