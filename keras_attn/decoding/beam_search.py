"""Beam search."""

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import keras
import numpy as np
from keras import ops

from keras_attn import checks
from keras_attn.backend import full, gather_rows, take_along_axis, top_k
from keras_attn.decoding.coverage import (
    start_with_coverage,
    step_with_coverage,
)
from keras_attn.decoding.finished_hypotheses import (
    merged,
    none_finished,
    picked,
)
from keras_attn.decoding.length_penalty import PENALTIES, divisors
from keras_attn.decoding.logits_rule import LogitsRule, float32_number
from keras_attn.decoding.loop import Choice
from keras_attn.decoding.sequences import (
    decoded,
    is_any_of,
    lengthened,
    put,
)
from keras_attn.decoding.strategy import (
    ActiveHypotheses,
    Strategy,
    check_width,
    real,
)
from keras_attn.typing import Nest, Tensor, TensorLike

if TYPE_CHECKING:
    from keras_attn.decoding.loop import SearchSpec
    from keras_attn.decoding.protocol import Decoded


class _Beams(NamedTuple):
    tokens: Any  # int32 (B, k, L), of the active hypotheses
    scores: Any  # float32 (B, k), log-probabilities; -inf: not active
    parents: Any  # int32 (B, k), indices in the previous step
    finished: Any  # Finished


class Advance(NamedTuple):
    """What a step of a beam search found.

    Args:
        choice: `Choice`.
        candidates: int32 and float32 (B, n), the new tokens and the scores of
            all candidates, best first; -inf for none.
        extended: int32 and float32 (B, k), those of the hypotheses that are
            extended, also of sources that are done.
    """

    choice: Any
    candidates: Any
    extended: Any


@keras.saving.register_keras_serializable(package="keras_attn")
class BeamSearch(Strategy):
    """Beam search: keeps the k most likely prefixes, returns the t best.

        score(y) = log p(y | x) / lp(|y|) + coverage_penalty c(x, y)
        c(x, y) = sum_i log(min(sum_j p_ij, 1))

    with lp and the coverage penalty of Wu et al. 2016, eq. 14,
    https://arxiv.org/abs/1609.08144, |y| in tokens, the end token included, and
    p_ij the attention to source token i in the step that chose token j. The
    log-probability is the model's, not renormalized over the allowed tokens.

    Each step considers the 2k most likely continuations of the active
    hypotheses of a source. Those among the first k that end are finished: they
    are stored separately and ranked by their score. The first k that do not end
    stay active. A source is done when no continuation of an active hypothesis
    could score better than the t-th finished one. Hypotheses that reach
    `max_new_tokens` are ranked with the finished ones, by the same score. Ties
    go to the lower id, the more likely prefix and the hypothesis that ended
    earlier. With at least V^L beams nothing is pruned, and the result is the
    optimum.

    With `num_beams=1` the search is done when its only hypothesis ends: it is
    greedy search, whatever the length penalty.

    If fewer than t sequences are possible, the remaining results have score
    -inf and length 0.

    Args:
        num_beams: int >= 1. k, active hypotheses per source. Default 4.
        num_return_sequences: int in [1, `num_beams`]. t, sequences returned,
            best first. Default 1.
        length_penalty: float. alpha; values above 0 favor long sequences, and
            with 0 the score is the log-probability. Default 0.6, as in Vaswani
            et al. 2017, sec. 6.1, https://arxiv.org/abs/1706.03762.
        length_penalty_type: `"gnmt"`: lp(n) = ((5 + n) / 6)^alpha, the default,
            or `"power"`: lp(n) = n^alpha.
        early_stopping: bool. Whether a source is done as soon as t hypotheses
            have ended, even if an active one could still score better. Default
            False.
        suppress_tokens: iterable of int. Ids that are never generated.
        min_new_tokens: int >= 0. Minimum number of generated tokens, end token
            included.
        rules: list of `LogitsRule`, applied to the log-probabilities in their
            order. Hypotheses are compared and scored by what they return.
            Default ().
        coverage_penalty: float >= 0. Values above 0 favor hypotheses that have
            attended to all of the source. It needs a model with `attend_step`,
            such as `Transformer`. Default 0.0, no penalty; Wu et al. use 0.2.

    Raises:
        ValueError: arguments out of range.

    Examples:
        >>> model = keras_attn.models.Transformer(
        ...     12, num_layers=1, num_heads=1, hidden_dim=4, intermediate_dim=4)
        >>> strategy = keras_attn.decoding.BeamSearch(
        ...     num_beams=4, num_return_sequences=2)
        >>> decoded = model.generate(
        ...     [[5, 6, 2]], max_new_tokens=4, strategy=strategy)
        >>> decoded.tokens.shape, decoded.scores.shape
        ((1, 2, 4), (1, 2))
    """

    reorders = True

    def __init__(
        self,
        num_beams: int = 4,
        num_return_sequences: int = 1,
        length_penalty: float = 0.6,
        length_penalty_type: str = "gnmt",
        early_stopping: bool = False,
        suppress_tokens: Iterable[int] = (),
        min_new_tokens: int = 0,
        rules: Sequence[LogitsRule] = (),
        coverage_penalty: float = 0.0,
    ) -> None:
        super().__init__(
            suppress_tokens=suppress_tokens,
            min_new_tokens=min_new_tokens,
            rules=rules,
        )
        check_width("num_beams", num_beams)
        check_width("num_return_sequences", num_return_sequences)
        if num_return_sequences > num_beams:
            raise ValueError(
                "`num_return_sequences` must not exceed `num_beams`. "
                f"Received: num_return_sequences={num_return_sequences}, "
                f"num_beams={num_beams}"
            )
        most = sys.float_info.max
        if not real(length_penalty) or not -most <= length_penalty <= most:
            raise ValueError(
                "`length_penalty` must be a finite number. "
                f"Received: length_penalty={checks.shown(length_penalty)}"
            )
        checks.choice("length_penalty_type", length_penalty_type, PENALTIES)
        checks.choice("early_stopping", early_stopping, (False, True))
        self.num_beams = num_beams
        self.coverage_penalty: float = check_penalty(
            "coverage_penalty", coverage_penalty
        )
        self.num_return_sequences = num_return_sequences
        self.length_penalty: float = float(length_penalty)
        self.length_penalty_type = length_penalty_type
        self.early_stopping: bool = bool(early_stopping)

    @property
    def num_hypotheses(self) -> int:
        """Number of hypotheses per source: `num_beams`."""
        return self.num_beams

    def start_decoding(self, model: Any, inputs: Nest, length: int) -> Any:
        """Starts the model, and with `coverage_penalty` its coverage."""
        if not self.coverage_penalty:
            return super().start_decoding(model, inputs, length)
        for name in ("attend_step", "source_mask"):
            if not hasattr(model, name):
                raise ValueError(
                    "`coverage_penalty` needs a model with the methods "
                    "`attend_step` and `source_mask`, such as `Transformer`. "
                    f"Received: a model without `{name}`"
                )
        return start_with_coverage(model, inputs, length)

    def decode_step(self, model: Any, state: Any) -> Any:
        """Runs a step, and with `coverage_penalty` adds up its attention."""
        if not self.coverage_penalty:
            return super().decode_step(model, state)
        logits, state, coverage = step_with_coverage(model, state)
        return logits, state, {"coverage": coverage}

    def init_state(
        self, batch_size: int, length: int, spec: "SearchSpec"
    ) -> Any:
        """Returns a search state with one empty hypothesis per source."""
        # A single one: k equal ones would have equal continuations.
        scores = np.full((1, self.num_beams), -np.inf, "float32")
        scores[:, 0] = 0
        parents = np.arange(self.num_beams, dtype="int32")[None]
        return _Beams(
            full(
                (batch_size, self.num_beams, length), spec.pad_id, dtype="int32"
            ),
            ops.tile(ops.convert_to_tensor(scores), (batch_size, 1)),
            ops.tile(ops.convert_to_tensor(parents), (batch_size, 1)),
            none_finished(
                batch_size, self.num_return_sequences, length, spec.pad_id
            ),
        )

    def grow_state(
        self, search_state: Nest, length: int, spec: "SearchSpec"
    ) -> Any:
        """Returns the search state with `length` slots for tokens."""
        finished = search_state.finished
        tokens, of_finished = (
            lengthened(part.tokens, length, spec.pad_id)
            for part in (search_state, finished)
        )
        return search_state._replace(
            tokens=tokens, finished=finished._replace(tokens=of_finished)
        )

    def is_active(self, search_state: Nest) -> Tensor:
        """Returns which hypotheses are still extended, bool (B, k)."""
        return search_state.scores > -float("inf")

    def choose(
        self,
        search_state: Nest,
        step: TensorLike,
        log_probs: TensorLike,
        uniforms: TensorLike,
        spec: "SearchSpec",
        scores: TensorLike | None = None,
        ends: TensorLike | None = None,
        coverage: TensorLike | None = None,
    ) -> Choice:
        """Finishes or extends hypotheses; see the class docstring.

        `coverage` is c(x, y) of each hypothesis, float32 (B, k), if there is a
        `coverage_penalty`. Of the other arguments see `Strategy`.
        """
        return self.advance(
            search_state,
            step,
            log_probs if scores is None else scores,
            spec,
            ends,
            coverage,
        ).choice

    def advance(
        self,
        search_state: Nest,
        step: TensorLike,
        log_probs: TensorLike,
        spec: "SearchSpec",
        ends: TensorLike | None,
        coverage: TensorLike | None,
    ) -> Advance:
        """Finishes or extends hypotheses by given scores.

        Args:
            search_state: nest of tensors.
            step: int32 scalar.
            log_probs: float32 (B, k, V), what each token adds to the score of
                each hypothesis.
            spec: `SearchSpec`.
            ends: bool (B, k, V), the tokens that complete a stop string, or
                None.
            coverage: as in `choose`.

        Returns:
            `Advance`.
        """
        width, length = self.num_beams, spec.max_new_tokens
        penalties = divisors(
            length, self.length_penalty, self.length_penalty_type
        )
        # The largest divisor that a hypothesis can still reach. Scores are not
        # positive and only fall, so it gives the best attainable score.
        best_penalties = np.maximum.accumulate(penalties[::-1])[::-1]
        best_penalties = np.append(best_penalties[1:], penalties[-1:])
        end_count = len(spec.end_ids)
        tokens, scores, chosen, parents = _candidates(
            search_state, step, log_probs, end_count
        )
        first = chosen, scores
        last = ops.equal(step + 1, length)
        ended = ops.logical_or(is_any_of(chosen, spec.end_ids), last)
        if ends is not None:
            flat = ops.reshape(ends, (ends.shape[0], -1))
            found = take_along_axis(flat, parents * ends.shape[2] + chosen)
            ended = ops.logical_or(ended, found)
        normalized = scores / _at(penalties, step)
        if coverage is not None:
            # At most 0, so the best attainable score is still a bound.
            covered = take_along_axis(coverage, parents)
            normalized = normalized + self.coverage_penalty * covered
        finished = merged(
            search_state.finished,
            tokens[:, :width],
            ops.where(ended, normalized, -float("inf"))[:, :width],
            step + 1,
        )
        if ends is not None:
            # More than the best candidates may end: the others are chosen
            # separately.
            tokens, scores, chosen, parents = _candidates(
                search_state,
                step,
                ops.where(ends, -float("inf"), log_probs),
                end_count,
            )
            ended = ops.logical_or(is_any_of(chosen, spec.end_ids), last)
        scores, indices = top_k(ops.where(ended, -float("inf"), scores), width)
        extended = scores
        best_attainable_score = scores[:, 0] / _at(best_penalties, step)
        scores = ops.where(
            self._done(finished, best_attainable_score)[:, None],
            -float("inf"),
            scores,
        )
        chosen = take_along_axis(chosen, indices)
        parents = take_along_axis(parents, indices)
        search_state = _Beams(
            picked(tokens, indices), scores, parents, finished
        )
        choice = Choice(search_state, chosen, parents if width > 1 else None)
        return Advance(choice, first, (chosen, extended))

    def finalize(self, search_state: Nest, spec: "SearchSpec") -> "Decoded":
        """Returns the t best finished hypotheses as `Decoded` of tensors."""
        return decoded(*search_state.finished, spec.pad_id)

    def active_hypotheses(
        self, search_state: Nest, step: TensorLike, spec: "SearchSpec"
    ) -> ActiveHypotheses:
        """Returns the hypotheses that are still extended."""
        lengths = ops.zeros_like(search_state.parents) + step
        found = decoded(
            search_state.tokens, search_state.scores, lengths, spec.pad_id
        )
        return ActiveHypotheses(*found[:3], search_state.parents)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return super().get_config() | {
            "num_beams": self.num_beams,
            "num_return_sequences": self.num_return_sequences,
            "length_penalty": self.length_penalty,
            "length_penalty_type": self.length_penalty_type,
            "early_stopping": self.early_stopping,
            "coverage_penalty": self.coverage_penalty,
        }

    def _done(self, finished, best_attainable_score):
        """Returns which sources are done, bool (B,)."""
        if self.num_beams == 1:
            return finished.scores[:, -1] > -float("inf")
        return self._cannot_improve(finished, best_attainable_score)

    def _cannot_improve(self, finished, best_attainable_score):
        """Returns which sources are done with some hypotheses, bool (B,)."""
        worst = finished.scores[:, -1]
        if self.early_stopping:
            return worst > -float("inf")
        if any(rule.can_be_positive for rule in self.rules):
            # Nothing bounds the score that is still attainable.
            return ops.zeros_like(worst, dtype="bool")
        return best_attainable_score <= worst


def check_penalty(name: str, value: Any) -> float:
    """Returns a penalty, a number >= 0 that float32 can hold, or raises."""
    if float32_number(name, value) < 0:
        raise ValueError(
            f"`{name}` must be a number >= 0. "
            f"Received: {name}={checks.shown(value)}"
        )
    return float(value)


def _candidates(beams, step, log_probs, ends):
    """Returns the most likely continuations of each source, best first.

    There are n = (1 + e) k of them, with e end tokens, at least one.

    Returns:
        Tokens, int32 (B, n, L); scores, float32 (B, n); the new tokens and
        the indices of the hypotheses that they extend, int32 (B, n).
    """
    sources, width, size = log_probs.shape
    totals = beams.scores[..., None] + log_probs
    totals = ops.reshape(totals, (sources, width * size))
    # A hypothesis can end in e ways, so at least k of these do not end, if that
    # many exist.
    count = (1 + max(1, ends)) * width
    scores, indices = top_k(totals, min(count, width * size))
    parents, chosen = indices // size, indices % size
    tokens = put(picked(beams.tokens, parents), step, chosen)
    return tokens, scores, chosen, parents


def _at(table, step):
    return gather_rows(ops.convert_to_tensor(table), step)
