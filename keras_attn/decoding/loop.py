"""The decoding loop that all strategies share."""

import copy
from typing import TYPE_CHECKING, Any, NamedTuple

from keras import ops

from keras_attn import cache as kv
from keras_attn import checks
from keras_attn.backend import (
    Capturing,
    PythonState,
    programs_of,
    take_along_axis,
    while_loop,
)
from keras_attn.decoding.apply_rules import (
    apply_rules,
    prompt_tokens,
    tokens_so_far,
)
from keras_attn.decoding.protocol import end_ids, fill_id, id_or_none
from keras_attn.decoding.stop_strings import next_states, state_after
from keras_attn.typing import Nest, TensorLike

if TYPE_CHECKING:
    from keras_attn.backend.owned_programs import OwnedPrograms
    from keras_attn.decoding.strategy import Strategy


FIRST_LENGTH = 64
# The `torch_steps` of a model that does not set it: see `DecodingState`.
TORCH_STEPS = "captured"


class SearchSpec(NamedTuple):
    """Length limit and special tokens of a search.

    Args:
        max_new_tokens: int. L, maximum number of generated tokens, end
            included.
        pad_id: int.
        start_id: int. -1 if there is none.
        end_ids: tuple of int, the tokens that end a sequence.

    Examples:
        >>> keras_attn.decoding.SearchSpec(8, 0, 1, (2,)).end_ids
        (2,)
    """

    max_new_tokens: int
    pad_id: int
    start_id: int
    end_ids: tuple[int, ...]


class Choice(NamedTuple):
    """The choice of a strategy in one step.

    Args:
        search_state: nest of tensors, the next search state.
        tokens: int32 (B, k), the next token of each sequence.
        parents: int32 (B, k), the index of the hypothesis of its source that
            each sequence extends. Default None: itself.

    Examples:
        >>> keras_attn.decoding.Choice(search_state=(), tokens=None).parents
    """

    search_state: Any
    tokens: Any
    parents: Any = None


class Loop(NamedTuple):
    """State of the loop between two steps.

    Args:
        step: int32 (), the number of tokens generated so far.
        going: bool (), whether any sequence is still extended.
        failed_step: int32 (), the first step in which a sequence had a
            distribution of NaN, from 1, negative if a rule returned NaN or
            infinity; 0 if there is none.
        state: `DecodingState` without `memory` and `weights`, with the `tokens`
            of the next step.
        search_state: nest of tensors, the strategy's state.
        stop_states: int32 (B, k), the state of each hypothesis in the table of
            the stop strings, or () without them.
    """

    step: Any
    going: Any
    failed_step: Any
    state: Any
    search_state: Any
    stop_states: Any


class LoopConstants(NamedTuple):
    """Values that are the same in all steps of a run.

    Args:
        memory: nest with one row per source, from the model's state.
        prefix: int32 (B, L), the tokens that each sequence begins with; or
            None.
        uniforms: what `draw_uniforms` returned, one row per source, or None.
        weights: what the model's `prepare_weights` returned, or ().
        prompt: int32 (B, P), for the rules of the strategy, or () if it has
            none.
        stops: int32 (S, V), what `stop_table` returned, or () without stop
            strings.
    """

    memory: Any
    prefix: Any
    uniforms: Any
    weights: Any
    prompt: Any
    stops: Any


class Search:
    """The functions of the loop, for a strategy, a model and a length.

    The sequences of one source are adjacent rows: the state's `hypothesis` has
    R = B k rows, and its `memory`, which is never copied, has B.

    The loop starts with few slots for tokens and adds slots as it goes, because
    the cost of a step grows with the number of slots, used or not.

    Args:
        strategy: `Strategy`.
        model: object that implements the decoding protocol.
        max_new_tokens: int. L, maximum number of generated tokens, end
            included.
        programs: `OwnedPrograms` of the model. Default None: looked up.
        has_stops: bool. Whether there are stop strings. Default False.
        cache_dtype: `"int8"`: caches are quantized after `start_decoding`; or
            None. Default None.
    """

    def __init__(
        self,
        strategy: "Strategy",
        model: Any,
        max_new_tokens: int,
        programs: "OwnedPrograms | None" = None,
        has_stops: bool = False,
        cache_dtype: str | None = None,
    ) -> None:
        self.strategy = strategy
        self.model = model
        self.programs = programs
        self.has_stops = has_stops
        self.cache_dtype = cache_dtype
        self.spec: SearchSpec = SearchSpec(
            max_new_tokens,
            fill_id(model),
            id_or_none(model.start_id),
            end_ids(model.end_id),
        )

    def lengths(self) -> list[Any]:
        """Returns the increasing numbers of slots, up to L."""
        found, length = [], FIRST_LENGTH
        while length < self.spec.max_new_tokens:
            found.append(length)
            length *= 2
        return [*found, self.spec.max_new_tokens]

    def start(self, inputs: Nest) -> tuple[Any, Any, Any]:
        """Starts a run.

        Args:
            inputs: nest of tensors for the model's `start_decoding`.

        Returns:
            The first `Loop`, with `lengths()[0]` slots; the memory; the prompt
            of `LoopConstants`.
        """
        width, length = self.strategy.num_hypotheses, self.lengths()[0]
        state = self.strategy.start_decoding(self.model, inputs, length)
        if self.cache_dtype is not None:
            state = quantized_caches(state, self.model)
        sources = ops.shape(state.tokens)[0]
        prompt: Any = ()
        if self.strategy.rules:
            prompt = prompt_tokens(self.model, inputs, state.tokens)
        if width > 1:
            parts = state.hypothesis, state.tokens
            if self.strategy.reorders:
                hypothesis, tokens = kv.expand_beams(parts, width)
            else:
                rows = ops.arange(sources * width, dtype="int32") // width
                hypothesis, tokens = kv.reorder(parts, rows)
            state = state._replace(hypothesis=hypothesis, tokens=tokens)
        search_state = self.strategy.init_state(sources, length, self.spec)
        # Two tensors: captured steps write in place.
        step, failed_step = (ops.zeros((), "int32") for _ in range(2))
        going = ops.ones((), "bool")
        memory, state = state.memory, state._replace(memory=(), weights=())
        stop_states: Any = ()
        if self.has_stops:
            stop_states = ops.zeros((sources, width), "int32")
        loop = Loop(step, going, failed_step, state, search_state, stop_states)
        return loop, memory, prompt

    def lengthened(self, loop: Any, present: Any, length: int) -> Any:
        """Returns a loop with slots for `length` tokens instead of `present`.

        The model's caches may have further slots, such as those of a prompt.
        """
        state = loop.state
        return loop._replace(
            state=state._replace(
                hypothesis=kv.grown(state.hypothesis, length - present)
            ),
            search_state=self.strategy.grow_state(
                loop.search_state, length, self.spec
            ),
        )

    def step(self, loop: Loop, constants: LoopConstants) -> Loop:
        """Adds one token to each active sequence.

        Args:
            loop: `Loop`, consumed.
            constants: `LoopConstants`.

        Returns:
            The next `Loop`.
        """
        strategy, width = self.strategy, self.strategy.num_hypotheses
        state = loop.state._replace(
            memory=constants.memory, weights=constants.weights
        )
        logits, state, options = strategy.decode_step(self.model, state)
        log_probs = ops.log_softmax(ops.cast(logits[:, -1], "float32"))
        rows, size = log_probs.shape
        sources = rows // width
        log_probs = ops.reshape(log_probs, (sources, width, size))
        active = strategy.is_active(loop.search_state)
        # If one logit is NaN or inf, or all are -inf, they are all NaN.
        failed = ops.any(ops.logical_and(active, ops.isnan(log_probs[..., 0])))
        allowed = strategy.constraints(self.spec, constants.prefix).allow(
            log_probs, loop.step, active
        )
        arguments = (
            loop.search_state,
            loop.step,
            allowed,
            constants.uniforms,
            self.spec,
        )
        if strategy.rules:
            scores = log_probs
            if not strategy.reorders:
                scores = ops.cast(logits[:, -1], "float32")
                scores = ops.reshape(scores, log_probs.shape)
            scores, broken = self._ruled(loop, constants, scores, allowed)
            options["scores"] = scores
        stop_states = loop.stop_states
        if self.has_stops:
            following = next_states(stop_states, constants.stops, size)
            options["ends"] = following == constants.stops.shape[0] - 1
        choice = strategy.choose(*arguments, **options)
        if self.has_stops:
            if choice.parents is not None:
                stop_states = take_along_axis(stop_states, choice.parents)
            stop_states = state_after(
                stop_states, constants.stops, choice.tokens
            )
        if choice.parents is not None:
            first = ops.arange(sources, dtype="int32")[:, None]
            parents = ops.reshape(first * width + choice.parents, (-1,))
            state = state._replace(
                hypothesis=kv.reorder(state.hypothesis, parents)
            )
        tokens = ops.reshape(choice.tokens, (-1, 1))
        state = state._replace(memory=(), tokens=tokens, weights=())
        going = ops.any(strategy.is_active(choice.search_state))
        step = loop.step + 1
        found = step
        if strategy.rules:
            found = ops.where(failed, step, -step)
            failed = ops.logical_or(failed, broken)
        going = ops.logical_and(going, ops.logical_not(failed))
        # The loop ends with the first failure, and may run on for some steps.
        first = ops.logical_and(failed, ops.equal(loop.failed_step, 0))
        failed_step = ops.where(first, found, loop.failed_step)
        return Loop(
            step, going, failed_step, state, choice.search_state, stop_states
        )

    def _ruled(self, loop, constants, scores, allowed):
        """Returns what `apply_rules` returns for the scores of a step."""
        live = self.strategy.active_hypotheses(
            loop.search_state, loop.step, self.spec
        )
        forced = None
        if constants.prefix is not None:
            forced = ops.take(constants.prefix, loop.step, axis=1)
            forced = ops.not_equal(forced, self.spec.pad_id)[:, None, None]
        return apply_rules(
            self.strategy.rules,
            scores,
            allowed > -float("inf"),
            forced,
            tokens_so_far(constants.prompt, live.tokens, loop.step),
            loop.step,
            self.spec,
        )

    def step_and_read(
        self, loop: Any, constants: LoopConstants
    ) -> tuple[Any, Any, Any]:
        """Adds one token and returns the results so far.

        Args:
            loop: as for `step`.
            constants: as for `step`.

        Returns:
            The next `Loop`; tokens, scores and lengths of `Decoded`;
            `ActiveHypotheses`.
        """
        loop = self.step(loop, constants)
        found = self.strategy.finalize(loop.search_state, self.spec)
        live = self.strategy.active_hypotheses(
            loop.search_state, loop.step, self.spec
        )
        return loop, tuple(found[:3]), live

    def captured(self, step_fn: Any) -> tuple[Any, Any]:
        """Returns `start` and a step function, captured if the backend can.

        For one run: on PyTorch the weights are fixed at the first step.
        """
        model = self.model
        mode = getattr(model, "torch_steps", TORCH_STEPS)
        checks.choice("torch_steps", mode, ("captured", "compiled", "plain"))
        programs = self.programs
        if programs is None:
            programs = programs_of(model, model.variables)
        capturing = Capturing(programs)
        # `start` runs once: compiling it would not pay off.
        once = "plain" if mode == "plain" else "captured"
        return (
            capturing.step(self.start, self.key("start"), once),
            capturing.step(step_fn, self.key(step_fn.__name__), mode, fixed=1),
        )

    def key(self, name: str) -> tuple[Any, ...]:
        """Returns a hashable key of all that a step function depends on.

        Except the model's attributes, for which `OwnedPrograms` is responsible.
        """
        strategy = _read_by_programs(self.strategy)
        return name, strategy, self.spec, self.has_stops, self.cache_dtype


def quantized_caches(state: Any, model: Any) -> Any:
    """Returns a state whose caches are quantized.

    Args:
        state: `DecodingState`, consumed.
        model: the model, or a proxy of it, for the message.

    Raises:
        ValueError: the state has no `KVCache`.
    """
    parts = state.memory, state.hypothesis
    try:
        memory, hypothesis = kv.quantized(parts)
    except ValueError as error:
        raise ValueError(
            "`cache_dtype` needs a model with a key-value cache. "
            # Not `type`: it may be a weak proxy.
            f"Received: {model.__class__.__name__}"
        ) from error
    return state._replace(memory=memory, hypothesis=hypothesis)


def _read_by_programs(strategy):
    """Returns the state of a strategy, as far as its programs read it."""
    rules = tuple(map(PythonState, strategy.rules))
    # Not in the config, which would serialize them.
    strategy = copy.copy(strategy)
    strategy.rules = ()
    config = strategy.get_config()
    others = {
        name: value
        for name, value in vars(strategy).items()
        if name not in config
    }
    read = object.__new__(type(strategy))
    vars(read).update(others | strategy.program_config())
    return PythonState(read), rules


def run(
    strategy: "Strategy",
    model: Any,
    inputs: Nest,
    max_new_tokens: int,
    prefix: TensorLike | None,
    uniforms: TensorLike,
    weights: TensorLike,
    stops: TensorLike,
    programs: "OwnedPrograms | None" = None,
    cache_dtype: str | None = None,
) -> Any:
    """Decodes until no sequence is active, as a function of tensors.

    Args:
        strategy: `Strategy`.
        model: object that implements the decoding protocol.
        inputs: nest of tensors for its `start_decoding`.
        max_new_tokens: int. L, maximum number of generated tokens, end
            included.
        prefix: int32 (B, L), or None.
        uniforms: what `draw_uniforms` returned, as a tensor, or None.
        weights: what `prepared_weights` returned, or ().
        stops: what `stop_table` returned, as a tensor, or ().
        programs: as for `Search`. Default None.
        cache_dtype: as for `Search`. Default None.

    Returns:
        Tokens, scores and lengths of `Decoded`, and `Loop.failed_step`.
    """
    has_stops = not isinstance(stops, tuple)
    search = Search(
        strategy, model, max_new_tokens, programs, has_stops, cache_dtype
    )
    start, step_fn = search.captured(search.step)
    loop, memory, prompt = start(inputs)
    constants = LoopConstants(memory, prefix, uniforms, weights, prompt, stops)

    def rest(loop, reached, lengths):
        loop = while_loop(
            lambda loop: step_fn(loop, constants),
            lambda loop: loop.going,
            loop,
            lengths[0] - reached,
        )
        if len(lengths) == 1:
            return loop.search_state, loop.failed_step
        # A finished search needs no larger caches.
        return ops.cond(
            loop.going,
            lambda: rest(
                search.lengthened(loop, *lengths[:2]), lengths[0], lengths[1:]
            ),
            lambda: (
                strategy.grow_state(
                    loop.search_state, max_new_tokens, search.spec
                ),
                loop.failed_step,
            ),
        )

    search_state, failed_step = rest(loop, 0, search.lengths())
    found = strategy.finalize(search_state, search.spec)
    return (*found[:3], failed_step)


def check_numbers(failed_step: int | TensorLike) -> None:
    """Raises ValueError if a search has failed in a step.

    Args:
        failed_step: int, or an array (); 0 if none has, negative if a rule has.
    """
    if failed_step < 0:
        raise ValueError(
            "`rules` must return scores below infinity, -infinity for tokens "
            "that are not allowed. Received: NaN or infinite scores in step "
            f"{-int(failed_step)} of the search (the first step is 1)"
        )
    if failed_step:
        raise ValueError(
            "`model` must return logits that are numbers, below infinity, some "
            "above -infinity. Received: NaN or infinite logits in step "
            f"{int(failed_step)} of the search (the first step is 1). NaN or "
            "infinite weights are a common cause"
        )
