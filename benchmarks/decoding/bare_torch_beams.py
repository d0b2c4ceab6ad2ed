"""Which hypotheses the bare PyTorch loop has, and which of them ended."""

import math

import numpy as np
import torch

from benchmarks.decoding import task


class Hypotheses:
    """Keeps what was chosen at each step, and what each choice went on from.

    Tokens are not moved when hypotheses change places: the best sequence is
    followed back from its end, once.

    Args:
        rows: int. B, sources.
        beams: int. k, hypotheses of each.
        new: int. The most tokens.
    """

    def __init__(self, rows, beams, new):
        self.beams, self.new = beams, new
        self.steps = []
        # Of the best that ended: its score, its last step, and where it was.
        self.score = torch.full((rows,), -math.inf)
        self.last = torch.zeros(rows, dtype=torch.long)
        self.place = torch.zeros(rows, dtype=torch.long)

    def append(self, chosen, origins):
        """Keeps a step, int64 (B, k)."""
        self.steps.append((chosen, origins))

    def end(self, slot, totals, chosen, origins, ended):
        """Takes note of what ended, and brings what goes on to the front.

        Args:
            slot: int. The step.
            totals: float (B, 2k), likeliest first.
            chosen: int64 (B, 2k).
            origins: int64 (B, k), the hypotheses they go on from.
            ended: bool (B, 2k).

        Returns:
            The three, of those that go on: float and int64 (B, k).
        """
        beams = self.beams
        finished = totals[:, :beams].masked_fill(~ended[:, :beams], -math.inf)
        score, place = finished.max(1)
        better = score > self.score
        self.score[better] = score[better]
        self.last[better] = slot
        self.place[better] = origins.gather(1, place[:, None])[better, 0]
        alive = torch.argsort(ended.int(), dim=1, stable=True)[:, :beams]
        return tuple(x.gather(1, alive) for x in (totals, chosen, origins))

    def done(self, scores):
        """Says whether no live one, float (B, k), can win any more."""
        return bool((scores[:, 0] <= self.score).all())

    def best(self, scores):
        """Returns the best sequences, int64 (B, new), padded.

        Args:
            scores: float (B, k), of those that were not ended.
        """
        ended, live = self.score.numpy(), scores[:, 0].numpy()
        count = len(self.steps)
        # What won by ending has the end token behind its last choice.
        last = np.where(ended >= live, self.last.numpy(), count)
        place = np.where(ended >= live, self.place.numpy(), 0)
        found = np.full((len(live), self.new), task.PAD)
        short = last < count
        found[short, last[short]] = task.END
        for slot in reversed(range(count)):
            chosen, origins = (x.numpy() for x in self.steps[slot])
            here = np.flatnonzero(slot < last)
            found[here, slot] = chosen[here, place[here]]
            place[here] = origins[here, place[here]]
        return found
