"""Diverse beam search: groups of beams that avoid each other's tokens."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import keras
from keras import ops

from keras_attn.backend import count_ids, take_along_axis, top_k
from keras_attn.decoding.beam_search import BeamSearch, check_penalty
from keras_attn.decoding.finished_hypotheses import picked
from keras_attn.decoding.logits_rule import LogitsRule
from keras_attn.decoding.loop import Choice
from keras_attn.decoding.protocol import Decoded
from keras_attn.decoding.strategy import ActiveHypotheses, check_width
from keras_attn.typing import Nest, Tensor, TensorLike

if TYPE_CHECKING:
    from keras_attn.decoding.loop import SearchSpec


@keras.saving.register_keras_serializable(package="keras_attn")
class DiverseBeamSearch(BeamSearch):
    """Beam search in groups that avoid each other's tokens.

    Each of the G groups is a beam search with k / G beams. In a step, the
    groups of a source choose one after the other, by

        log p(v | y, x) - diversity_penalty * n(v)

    with n(v) the number of hypotheses of the earlier groups that the step
    extends with v and does not end; in the last step, that it ranks.
    Vijayakumar et al. 2016, algorithm 1, https://arxiv.org/abs/1610.02424, with
    their Hamming diversity. As in Hugging Face, the penalties count in the
    scores, so hypotheses are compared, ranked and returned with them. The t
    best sequences of all groups are returned. With one group it is
    `BeamSearch`.

    Args:
        num_beams: int >= 1. k, active hypotheses per source in all groups.
            Default 4.
        num_return_sequences: int in [1, `num_beams`]. t, sequences returned,
            best first; with k of them, each group returns all of its own.
            Default 1.
        length_penalty: float. As in `BeamSearch`. Default 0.6.
        length_penalty_type: `"gnmt"` or `"power"`. As in `BeamSearch`.
        early_stopping: bool. As in `BeamSearch`, of each group. Default False.
        suppress_tokens: iterable of int. Ids that are never generated.
        min_new_tokens: int >= 0. Minimum number of generated tokens, end token
            included.
        rules: list of `LogitsRule`, applied to the log-probabilities in their
            order, before the penalty. Default ().
        coverage_penalty: float >= 0. As in `BeamSearch`. Default 0.0.
        num_beam_groups: int that divides `num_beams`. G. Default 2.
        diversity_penalty: float >= 0. Values from 0.2 to 0.8 work for most of
            the tasks in the paper. Default 0.5.

    Raises:
        ValueError: arguments out of range.

    Examples:
        Three sequences that begin with different tokens:

        >>> model = keras_attn.models.Transformer(
        ...     12, num_layers=1, num_heads=1, hidden_dim=4, intermediate_dim=4)
        >>> strategy = keras_attn.decoding.DiverseBeamSearch(
        ...     3, 3, min_new_tokens=2, num_beam_groups=3,
        ...     diversity_penalty=100.0)
        >>> tokens = model.generate([[5, 6, 2]], 4, strategy).tokens
        >>> len({*tokens[0, :, 0].tolist()})
        3
    """

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
        num_beam_groups: int = 2,
        diversity_penalty: float = 0.5,
    ) -> None:
        super().__init__(
            num_beams,
            num_return_sequences,
            length_penalty,
            length_penalty_type,
            early_stopping,
            suppress_tokens,
            min_new_tokens,
            rules,
            coverage_penalty,
        )
        check_width("num_beam_groups", num_beam_groups)
        if num_beams % num_beam_groups:
            raise ValueError(
                "`num_beam_groups` must divide `num_beams`. Received: "
                f"num_beam_groups={num_beam_groups}, num_beams={num_beams}"
            )
        self.num_beam_groups = num_beam_groups
        self.diversity_penalty: float = check_penalty(
            "diversity_penalty", diversity_penalty
        )

    def init_state(
        self, batch_size: int, length: int, spec: "SearchSpec"
    ) -> Any:
        """Returns a tuple with the search state of each group."""
        group = self._group()
        return tuple(
            group.init_state(batch_size, length, spec)
            for _ in range(self.num_beam_groups)
        )

    def grow_state(
        self, search_state: Nest, length: int, spec: "SearchSpec"
    ) -> Any:
        """Returns the search state with `length` slots for tokens."""
        group = self._group()
        return tuple(
            group.grow_state(state, length, spec) for state in search_state
        )

    def is_active(self, search_state: Nest) -> Tensor:
        """Returns which hypotheses are still extended, bool (B, k)."""
        group = self._group()
        return _joined([group.is_active(state) for state in search_state])

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
        """Lets the groups choose, one after the other."""
        if scores is not None:
            log_probs = scores
        group, count = self._group(), self.num_beam_groups
        size = log_probs.shape[-1]
        last = ops.equal(step + 1, spec.max_new_tokens)
        choices, kept = [], []
        for state, own, own_ends, own_coverage in zip(
            search_state,
            *(
                [None] * count if part is None else ops.split(part, count, 1)
                for part in (log_probs, ends, coverage)
            ),
            strict=True,
        ):
            if kept:
                frequency = count_ids(_joined(kept), size)[:, None]
                own = own - self.diversity_penalty * frequency
            choice, candidates, extended = group.advance(
                state, step, own, spec, own_ends, own_coverage
            )
            choices.append(choice)
            kept.append(
                ops.where(
                    last,
                    _tokens(*candidates)[:, : group.num_beams],
                    _tokens(*extended),
                )
            )
        tokens = _joined([choice.tokens for choice in choices])
        states = tuple(choice.search_state for choice in choices)
        if choices[0].parents is None:
            return Choice(states, tokens)
        return Choice(
            states,
            tokens,
            self._of_source([choice.parents for choice in choices]),
        )

    def finalize(self, search_state: Nest, spec: "SearchSpec") -> Decoded:
        """Returns the t best of the groups as `Decoded` of tensors."""
        group = self._group()
        found = [group.finalize(state, spec)[:3] for state in search_state]
        if len(found) == 1:
            return Decoded(*found[0])
        tokens, scores, lengths = map(_joined, zip(*found, strict=True))
        scores, indices = top_k(scores, self.num_return_sequences)
        return Decoded(
            picked(tokens, indices), scores, take_along_axis(lengths, indices)
        )

    def active_hypotheses(
        self, search_state: Nest, step: TensorLike, spec: "SearchSpec"
    ) -> ActiveHypotheses:
        """Returns the hypotheses of all groups that are still extended."""
        group = self._group()
        tokens, scores, lengths, parents = zip(
            *(
                group.active_hypotheses(state, step, spec)
                for state in search_state
            ),
            strict=True,
        )
        return ActiveHypotheses(
            _joined(tokens),
            _joined(scores),
            _joined(lengths),
            self._of_source(parents),
        )

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return super().get_config() | {
            "num_beam_groups": self.num_beam_groups,
            "diversity_penalty": self.diversity_penalty,
        }

    def _group(self):
        """Returns the search of one group."""
        width = self.num_beams // self.num_beam_groups
        # Not an attribute: `rules` can be replaced.
        return BeamSearch(
            width,
            min(self.num_return_sequences, width),
            self.length_penalty,
            self.length_penalty_type,
            self.early_stopping,
            rules=self.rules,
            coverage_penalty=self.coverage_penalty,
        )

    def _of_source(self, parents):
        """Joins indices within groups, as indices of all hypotheses."""
        width = self.num_beams // self.num_beam_groups
        return _joined(
            [part + index * width for index, part in enumerate(parents)]
        )


def _joined(parts):
    parts = list(parts)
    return parts[0] if len(parts) == 1 else ops.concatenate(parts, axis=1)


def _tokens(tokens, scores):
    """Returns tokens, -1 where there is no hypothesis."""
    return ops.where(scores > -float("inf"), tokens, -1)
