"""Beam search: the k likeliest beginnings, until no other can win."""

from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from keras_attn import checks
from keras_attn.backend import largest, take_along, take_rows
from keras_attn.decoding.finished import merged, none_finished, picked
from keras_attn.decoding.length_penalty import PENALTIES, divisors
from keras_attn.decoding.loop import Choice
from keras_attn.decoding.sequences import decoded, lengthened, put
from keras_attn.decoding.strategy import Live, Strategy, real


class _Beams(NamedTuple):
    tokens: Any  # int32 (B, k, L), of the live hypotheses
    scores: Any  # float32 (B, k), their log-probabilities; -inf: not alive
    origins: Any  # int32 (B, k), the hypothesis of the step before
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
    apart, and compared by their own score. The first k that do not end live
    on. A source is done when none of them, however it went on, could get a
    better score than the t-th finished one. Hypotheses of `max_length` tokens
    count as they are: among the last k, they are ranked with the finished ones
    by the same score. Of equal ones the lower id, the likelier beginning and
    the earlier end come first. With a width of at least V^L nothing is ever
    cut off, and the result is the optimum.

    A search of width 1 has one hypothesis, and is done when it ends: it is
    greedy search, whatever the length penalty.

    Where fewer than t sequences are possible, what is left has score -inf and
    length 0.

    Args:
        width: int >= 1. k, hypotheses alive of each source. Default 4.
        top: int in [1, `width`]. t, sequences returned, best first. Default 1.
        length_penalty: float. alpha; above 0 long sequences gain, with 0 the
            score is the log-probability. Default 0.6, that of Vaswani et al.
            2017, sec. 6.1, https://arxiv.org/abs/1706.03762.
        penalty: `"gnmt"`: lp(n) = ((5 + n) / 6)^alpha, the default, or
            `"power"`: lp(n) = n^alpha.
        early_stopping: bool. Whether a source is done as soon as t hypotheses
            have ended, though a live one might still win. Default False.
        banned_tokens: iterable of int. Ids that are never generated.
        min_length: int >= 0. The fewest tokens of a sequence, its end token
            included.

    Raises:
        ValueError: arguments out of range.

    Examples:
        >>> model = keras_attn.models.Transformer(
        ...     12, num_layers=1, num_heads=1, hidden_dim=4, intermediate_dim=4)
        >>> decoded = model.generate(
        ...     [[5, 6, 2]], max_length=4,
        ...     strategy=keras_attn.decoding.BeamSearch(width=4, top=2))
        >>> decoded.tokens.shape, decoded.scores.shape
        ((1, 2, 4), (1, 2))
    """

    reorders = True

    def __init__(
        self,
        width=4,
        top=1,
        length_penalty=0.6,
        penalty="gnmt",
        early_stopping=False,
        banned_tokens=(),
        min_length=0,
    ):
        super().__init__(banned_tokens, min_length)
        checks.positive_int("width", width)
        checks.positive_int("top", top)
        if top > width:
            raise ValueError(
                "`top` must not exceed `width`. "
                f"Received: top={top}, width={width}"
            )
        if not real(length_penalty) or not np.isfinite(length_penalty):
            raise ValueError(
                "`length_penalty` must be a finite number. "
                f"Received: length_penalty={length_penalty!r}"
            )
        checks.choice("penalty", penalty, PENALTIES)
        checks.choice("early_stopping", early_stopping, (False, True))
        self.width = width
        self.top = top
        self.length_penalty = float(length_penalty)
        self.penalty = penalty
        self.early_stopping = bool(early_stopping)

    def begin(self, sources, length, task):
        """Opens a book with one empty hypothesis of each source."""
        # One only: k equal ones would have equal continuations.
        scores = np.full((1, self.width), -np.inf, "float32")
        scores[:, 0] = 0
        origins = np.arange(self.width, dtype="int32")[None]
        return _Beams(
            ops.full((sources, self.width, length), task.pad_id, dtype="int32"),
            ops.tile(ops.convert_to_tensor(scores), (sources, 1)),
            ops.tile(ops.convert_to_tensor(origins), (sources, 1)),
            none_finished(sources, self.top, length, task.pad_id),
        )

    def lengthened(self, book, length, task):
        """Returns the book, its sequences with `length` slots."""
        finished = book.finished
        tokens, of_finished = (
            lengthened(part.tokens, length, task.pad_id)
            for part in (book, finished)
        )
        return book._replace(
            tokens=tokens, finished=finished._replace(tokens=of_finished)
        )

    def alive(self, book):
        """Says which hypotheses are continued, bool (B, k)."""
        return book.scores > -float("inf")

    def choose(self, book, step, log_probs, draws, task):
        """Ends and continues hypotheses, as the class says."""
        width, length = self.width, task.max_length
        of_length = divisors(length, self.length_penalty, self.penalty)
        # The largest divisor that is still ahead of a hypothesis: since scores
        # are not positive and only fall, the best it can hope for.
        ahead = np.maximum.accumulate(of_length[::-1])[::-1]
        ahead = np.append(ahead[1:], of_length[-1:])
        tokens, scores, chosen, origins = _candidates(book, step, log_probs)
        last = ops.equal(step + 1, length)
        ended = ops.logical_or(ops.equal(chosen, task.end_id), last)
        normalised = scores / _at(of_length, step)
        finished = merged(
            book.finished,
            tokens[:, :width],
            ops.where(ended, normalised, -float("inf"))[:, :width],
            step + 1,
        )
        scores, places = largest(ops.where(ended, -float("inf"), scores), width)
        hope = scores[:, 0] / _at(ahead, step)
        scores = ops.where(
            self._done(finished, hope)[:, None], -float("inf"), scores
        )
        chosen = take_along(chosen, places)
        origins = take_along(origins, places)
        book = _Beams(picked(tokens, places), scores, origins, finished)
        return Choice(book, chosen, origins if width > 1 else None)

    def decoded(self, book, task):
        """Returns the t best that have ended, as `Decoded` of tensors."""
        return decoded(*book.finished, task.pad_id)

    def live(self, book, step, task):
        """Returns the hypotheses that are continued, as `Live`."""
        lengths = ops.zeros_like(book.origins) + step
        tokens, scores, lengths, _ = decoded(
            book.tokens, book.scores, lengths, task.pad_id
        )
        return Live(tokens, scores, lengths, book.origins)

    def get_config(self):
        """Returns the constructor's arguments."""
        return super().get_config() | {
            "width": self.width,
            "top": self.top,
            "length_penalty": self.length_penalty,
            "penalty": self.penalty,
            "early_stopping": self.early_stopping,
        }

    def _done(self, finished, hope):
        """Says of which sources no live hypothesis matters, bool (B,)."""
        worst = finished.scores[:, -1]
        if self.early_stopping or self.width == 1:
            return worst > -float("inf")
        return hope <= worst


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
    scores, places = largest(totals, min(2 * width, width * size))
    origins, chosen = places // size, places % size
    tokens = put(picked(beams.tokens, origins), step, chosen)
    return tokens, scores, chosen, origins


def _at(table, step):
    return take_rows(ops.convert_to_tensor(table), step)
