"""Beam search for sequences that contain given words."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import keras
from keras import ops

from keras_attn.backend import full
from keras_attn.decoding.allowed_tokens import ForcedWords
from keras_attn.decoding.apply_rules import tokens_so_far
from keras_attn.decoding.beam_search import BeamSearch
from keras_attn.decoding.logits_rule import LogitsRule
from keras_attn.decoding.loop import Choice
from keras_attn.typing import Nest, TensorLike

if TYPE_CHECKING:
    from keras_attn.decoding.loop import SearchSpec


@keras.saving.register_keras_serializable(package="keras_attn")
class ConstrainedBeamSearch(BeamSearch):
    """Beam search for sequences that contain all given words.

    The hypotheses compete within C + 1 banks, for the C tokens of all words:
    in bank m are those after which m of these tokens are missing. Each bank
    keeps its k most likely hypotheses, from whichever bank they come, so those
    that contain words already do not have to be as likely as those that do not.
    This is the grid of Hokamp & Liu 2017, https://arxiv.org/abs/1704.07138,
    except that a word that has begun can be given up. `ForcedWords` says how
    missing tokens are counted, and which tokens leave too little room for them.

    Everything else is as in `BeamSearch`: only sequences without missing tokens
    finish, all banks stop when none of their hypotheses could score better than
    the t-th finished one, and with enough beams the result is the optimum. A
    step costs as much as that of a beam search with (C + 1) k beams.

    Args:
        words: list of lists of token ids, of one word each.
        num_beams: int >= 1. k, active hypotheses per source and bank.
            Default 4.
        num_return_sequences: int in [1, `num_beams`]. t, sequences returned,
            best first. Default 1.
        length_penalty: float. As in `BeamSearch`. Default 0.6.
        length_penalty_type: `"gnmt"` or `"power"`. As in `BeamSearch`.
        early_stopping: bool. As in `BeamSearch`. Default False.
        suppress_tokens: iterable of int. Ids that are never generated.
        min_new_tokens: int >= 0. Minimum number of generated tokens, end token
            included.
        rules: list of `LogitsRule`, applied to the log-probabilities in their
            order. Default ().
        coverage_penalty: float >= 0. As in `BeamSearch`. Default 0.0.

    Raises:
        ValueError: arguments out of range; in the first step, as for
            `ForcedWords`.

    Examples:
        >>> model = keras_attn.models.GPT(
        ...     12, num_layers=1, num_heads=1, hidden_dim=4, end_id=2,
        ...     max_sequence_length=16)
        >>> strategy = keras_attn.decoding.ConstrainedBeamSearch(
        ...     [[5, 6], [7]], num_beams=2)
        >>> tokens = model.generate([[3, 4]], 8, strategy).tokens[0, 0].tolist()
        >>> 7 in tokens and (5, 6) in zip(tokens, tokens[1:])
        True
    """

    def __init__(
        self,
        words: Sequence[Sequence[int]],
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
        self.words: tuple[tuple[int, ...], ...] = ForcedWords(words).words

    @property
    def num_hypotheses(self) -> int:
        """Number of hypotheses per source, in all banks."""
        return (1 + sum(map(len, self.words))) * self.num_beams

    def init_state(
        self, batch_size: int, length: int, spec: "SearchSpec"
    ) -> Any:
        """Returns a search state with one empty hypothesis per source."""
        all_banks = BeamSearch(self.num_hypotheses, self.num_return_sequences)
        return all_banks.init_state(batch_size, length, spec)

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
        """Finishes or extends the hypotheses of each bank."""
        if scores is not None:
            log_probs = scores
        rule = ForcedWords(self.words)
        live = self.active_hypotheses(search_state, step, spec)
        prompt = full((log_probs.shape[0], 1), -1, dtype="int32")
        tokens = tokens_so_far(prompt, live.tokens, step)
        missing, _ = rule.missing(log_probs, tokens, step)
        log_probs = rule.apply(log_probs, tokens, step, spec)
        if ends is not None:
            early = ops.logical_and(ends, missing > 0)
            log_probs = ops.where(early, -float("inf"), log_probs)
        states, chosen = [], []
        # Those of the first bank can finish; the others stop by their scores.
        finished = search_state.finished
        for count in range(1 + sum(map(len, self.words))):
            choice = self.advance(
                search_state._replace(finished=finished),
                step,
                ops.where(missing == count, log_probs, -float("inf")),
                spec,
                ends,
                coverage,
            ).choice
            finished = choice.search_state.finished
            states.append(choice.search_state)
            chosen.append(choice.tokens)
        tokens, scores, parents = (
            ops.concatenate([getattr(state, name) for state in states], axis=1)
            for name in ("tokens", "scores", "parents")
        )
        joined = search_state._replace(
            tokens=tokens, scores=scores, parents=parents, finished=finished
        )
        return Choice(joined, ops.concatenate(chosen, axis=1), parents)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        words = [list(ids) for ids in self.words]
        return {"words": words} | super().get_config()

    def _done(self, finished, best_attainable_score):
        """Returns which sources are done with a bank, bool (B,)."""
        # A single beam per bank is no greedy search.
        return self._cannot_improve(finished, best_attainable_score)
