"""Beam search: the k likeliest beginnings, until no other can win."""

from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from keras_attn import checks
from keras_attn.backend import gather_rows, take_along_axis, top_k
from keras_attn.decoding.finished_hypotheses import (
    merged,
    none_finished,
    picked,
)
from keras_attn.decoding.length_penalty import PENALTIES, divisors
from keras_attn.decoding.loop import Choice
from keras_attn.decoding.sequences import decoded, lengthened, put
from keras_attn.decoding.strategy import ActiveHypotheses, Strategy, real


class _Beams(NamedTuple):
    tokens: Any  # int32 (B, k, L), of the live hypotheses
    scores: Any  # float32 (B, k), their log-probabilities; -inf: not alive
    parents: Any  # int32 (B, k), the hypothesis of the step before
    finished: Any  # Finished


@keras.saving.register_keras_serializable(package="keras_attn")
class BeamSearch(Strategy):
    """Keeps the k likeliest beginnings, and returns the t best sequences.

        score(y) = log p(y | x) / lp(|y|)

    with lp of Wu et al. 2016, eq. 14, https://arxiv.org/abs/1609.08144, without
    the coverage penalty cp that is added there, and |y| in tokens, the end
    token included. The log-probability is the one under the model, not
    renormalised over the tokens that are allowed.

    Each step looks at the 2k likeliest continuations of the live hypotheses of
    a source. Those among the first k that end are finished: they are kept
    apart, and compared by their own score. The first k that do not end live on.
    A source is done when none of them, however it went on, could get a better
    score than the t-th finished one. Hypotheses of `max_new_tokens` tokens
    count as they are: among the last k, they are ranked with the finished ones
    by the same score. Of equal ones the lower id, the likelier beginning and
    the earlier end come first. With a width of at least V^L nothing is ever cut
    off, and the result is the optimum.

    A search of width 1 has one hypothesis, and is done when it ends: it is
    greedy search, whatever the length penalty.

    Where fewer than t sequences are possible, what is left has score -inf and
    length 0.

    Args:
        num_beams: int >= 1. k, hypotheses alive of each source. Default 4.
        num_return_sequences: int in [1, `num_beams`]. t, sequences returned,
            best first. Default 1.
        length_penalty: float. alpha; above 0 long sequences gain, with 0 the
            score is the log-probability. Default 0.6, that of Vaswani et al.
            2017, sec. 6.1, https://arxiv.org/abs/1706.03762.
        length_penalty_type: `"gnmt"`: lp(n) = ((5 + n) / 6)^alpha, the default,
            or `"power"`: lp(n) = n^alpha.
        early_stopping: bool. Whether a source is done as soon as t hypotheses
            have ended, though a live one might still win. Default False.
        suppress_tokens: iterable of int. Ids that are never generated.
        min_new_tokens: int >= 0. The fewest tokens of a sequence, its end token
            included.

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
        num_beams=4,
        num_return_sequences=1,
        length_penalty=0.6,
        length_penalty_type="gnmt",
        early_stopping=False,
        suppress_tokens=(),
        min_new_tokens=0,
    ):
        super().__init__(suppress_tokens, min_new_tokens)
        checks.positive_int("num_beams", num_beams)
        checks.positive_int("num_return_sequences", num_return_sequences)
        if num_return_sequences > num_beams:
            raise ValueError(
                "`num_return_sequences` must not exceed `num_beams`. "
                f"Received: num_return_sequences={num_return_sequences}, "
                f"num_beams={num_beams}"
            )
        if not real(length_penalty) or not np.isfinite(length_penalty):
            raise ValueError(
                "`length_penalty` must be a finite number. "
                f"Received: length_penalty={length_penalty!r}"
            )
        checks.choice("length_penalty_type", length_penalty_type, PENALTIES)
        checks.choice("early_stopping", early_stopping, (False, True))
        self.num_beams = self.num_hypotheses = num_beams
        self.num_return_sequences = num_return_sequences
        self.length_penalty = float(length_penalty)
        self.length_penalty_type = length_penalty_type
        self.early_stopping = bool(early_stopping)

    def init_state(self, batch_size, length, spec):
        """Returns a search state with one empty hypothesis per source."""
        # One only: k equal ones would have equal continuations.
        scores = np.full((1, self.num_beams), -np.inf, "float32")
        scores[:, 0] = 0
        parents = np.arange(self.num_beams, dtype="int32")[None]
        return _Beams(
            ops.full(
                (batch_size, self.num_beams, length), spec.pad_id, dtype="int32"
            ),
            ops.tile(ops.convert_to_tensor(scores), (batch_size, 1)),
            ops.tile(ops.convert_to_tensor(parents), (batch_size, 1)),
            none_finished(
                batch_size, self.num_return_sequences, length, spec.pad_id
            ),
        )

    def grow_state(self, search_state, length, spec):
        """Returns the search state with `length` slots for tokens."""
        finished = search_state.finished
        tokens, of_finished = (
            lengthened(part.tokens, length, spec.pad_id)
            for part in (search_state, finished)
        )
        return search_state._replace(
            tokens=tokens, finished=finished._replace(tokens=of_finished)
        )

    def is_active(self, search_state):
        """Returns which hypotheses are still extended, bool (B, k)."""
        return search_state.scores > -float("inf")

    def choose(self, search_state, step, log_probs, uniforms, spec):
        """Ends and continues hypotheses, as the class says."""
        width, length = self.num_beams, spec.max_new_tokens
        of_length = divisors(
            length, self.length_penalty, self.length_penalty_type
        )
        # The largest divisor that is still ahead of a hypothesis: since scores
        # are not positive and only fall, the best it can hope for.
        ahead = np.maximum.accumulate(of_length[::-1])[::-1]
        ahead = np.append(ahead[1:], of_length[-1:])
        tokens, scores, chosen, parents = _candidates(
            search_state, step, log_probs
        )
        last = ops.equal(step + 1, length)
        ended = ops.logical_or(ops.equal(chosen, spec.end_id), last)
        normalised = scores / _at(of_length, step)
        finished = merged(
            search_state.finished,
            tokens[:, :width],
            ops.where(ended, normalised, -float("inf"))[:, :width],
            step + 1,
        )
        scores, places = top_k(ops.where(ended, -float("inf"), scores), width)
        best_attainable_score = scores[:, 0] / _at(ahead, step)
        scores = ops.where(
            self._done(finished, best_attainable_score)[:, None],
            -float("inf"),
            scores,
        )
        chosen = take_along_axis(chosen, places)
        parents = take_along_axis(parents, places)
        search_state = _Beams(picked(tokens, places), scores, parents, finished)
        return Choice(search_state, chosen, parents if width > 1 else None)

    def finalize(self, search_state, spec):
        """Returns the t best that have ended, as `Decoded` of tensors."""
        return decoded(*search_state.finished, spec.pad_id)

    def active_hypotheses(self, search_state, step, spec):
        """Returns the hypotheses that are continued, as `ActiveHypotheses`."""
        lengths = ops.zeros_like(search_state.parents) + step
        tokens, scores, lengths, _ = decoded(
            search_state.tokens, search_state.scores, lengths, spec.pad_id
        )
        return ActiveHypotheses(tokens, scores, lengths, search_state.parents)

    def get_config(self):
        """Returns the constructor's arguments."""
        return super().get_config() | {
            "num_beams": self.num_beams,
            "num_return_sequences": self.num_return_sequences,
            "length_penalty": self.length_penalty,
            "length_penalty_type": self.length_penalty_type,
            "early_stopping": self.early_stopping,
        }

    def _done(self, finished, best_attainable_score):
        """Says of which sources no live hypothesis matters, bool (B,)."""
        worst = finished.scores[:, -1]
        if self.early_stopping or self.num_beams == 1:
            return worst > -float("inf")
        return best_attainable_score <= worst


def _candidates(beams, step, log_probs):
    """Returns the 2k likeliest continuations of each source, likeliest first.

    Returns:
        Tokens, int32 (B, 2k, L); scores, float32 (B, 2k); the new tokens and
        the hypotheses that they continue, int32 (B, 2k).
    """
    sources, width, size = log_probs.shape
    totals = beams.scores[..., None] + log_probs
    totals = ops.reshape(totals, (sources, width * size))
    # Each hypothesis has one end, so at least k of them go on, where so many
    # exist.
    scores, places = top_k(totals, min(2 * width, width * size))
    parents, chosen = places // size, places % size
    tokens = put(picked(beams.tokens, parents), step, chosen)
    return tokens, scores, chosen, parents


def _at(table, step):
    return gather_rows(ops.convert_to_tensor(table), step)
