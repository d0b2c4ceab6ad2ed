"""Live and finished hypotheses of the bare PyTorch loop."""

import math

import numpy as np
import torch

from benchmarks.decoding import task


class Hypotheses:
    """The tokens chosen at each step, with back-pointers.

    Tokens are not moved when hypotheses are reordered: the best sequence is
    traced back once, from its end.

    Args:
        rows: int. B, sources.
        beams: int. k, hypotheses per source.
        new: int. Maximum number of tokens.
        device: `torch.device`.
    """

    def __init__(self, rows, beams, new, device):
        self.beams, self.new = beams, new
        self.steps = []
        # The best finished hypothesis: its score, last step and beam.
        self.score = torch.full((rows,), -math.inf, device=device)
        self.last = torch.zeros(rows, dtype=torch.long, device=device)
        self.beam = torch.zeros(rows, dtype=torch.long, device=device)

    def append(self, chosen, origins):
        """Records a step, int64 (B, k)."""
        self.steps.append((chosen, origins))

    def end(self, slot, totals, chosen, origins, ended):
        """Records finished hypotheses and returns the best live ones.

        Args:
            slot: int. The step.
            totals: float (B, 2k), most likely first.
            chosen: int64 (B, 2k).
            origins: int64 (B, 2k), the hypotheses that they continue.
            ended: bool (B, 2k).

        Returns:
            `totals`, `chosen` and `origins` of the live hypotheses: float and
            int64 (B, k).
        """
        beams = self.beams
        finished = totals[:, :beams].masked_fill(~ended[:, :beams], -math.inf)
        score, index = finished.max(1)
        better = score > self.score
        self.score[better] = score[better]
        self.last[better] = slot
        self.beam[better] = origins.gather(1, index[:, None])[better, 0]
        alive = torch.argsort(ended.int(), dim=1, stable=True)[:, :beams]
        return tuple(x.gather(1, alive) for x in (totals, chosen, origins))

    def done(self, scores):
        """Returns whether no live hypothesis, float (B, k), can still win."""
        return bool((scores[:, 0] <= self.score).all())

    def best(self, scores):
        """Returns the best sequences, int64 (B, new), padded.

        Args:
            scores: float (B, k), of the live hypotheses.
        """
        ended, live, last, beam = (
            x.cpu().numpy()
            for x in (self.score, scores[:, 0], self.last, self.beam)
        )
        count = len(self.steps)
        # A finished winner has the end token after its last choice.
        last = np.where(ended >= live, last, count)
        beam = np.where(ended >= live, beam, 0)
        found = np.full((len(live), self.new), task.PAD)
        short = last < count
        found[short, last[short]] = task.END
        all_chosen, all_origins = (
            torch.stack(parts).cpu().numpy()
            for parts in zip(*self.steps, strict=True)
        )
        for slot in reversed(range(count)):
            chosen, origins = all_chosen[slot], all_origins[slot]
            here = np.flatnonzero(slot < last)
            found[here, slot] = chosen[here, beam[here]]
            beam[here] = origins[here, beam[here]]
        return found
