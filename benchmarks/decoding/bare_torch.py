"""Greedy and beam search in plain PyTorch, with a cache."""

import math

import torch

from benchmarks.decoding import task, weights
from benchmarks.decoding.bare_torch_beams import Hypotheses
from benchmarks.decoding.bare_torch_model import Model
from benchmarks.harness.device import torch_device


def prepare(case):
    """Returns a callable that decodes batches."""
    return task.runner(decoder(case, weights.draw(case)), task.sources(case))


def decoder(case, drawn):
    """Returns a callable that decodes int32 (B, S) to int (B, new)."""
    model = Model(case, drawn)
    search = _greedy if case["beams"] == 1 else _beams

    @torch.inference_mode()
    def decode(sources):
        ids = torch.from_numpy(sources).long().to(torch_device())
        return search(model, ids, case)

    return decode


def _greedy(model, sources, case):
    model.start(sources, beams=1)
    on = {"device": sources.device}
    ids = torch.full((len(sources),), task.START, **on)
    ended = torch.zeros(len(sources), dtype=torch.bool, **on)
    found = torch.full((case["new"], len(sources)), task.PAD, **on)
    for slot in range(case["new"]):
        ids = model.step(ids, slot).argmax(1)
        ids.masked_fill_(ended, task.PAD)
        found[slot] = ids
        ended |= ids == task.END
        if ended.all():
            break
    return found.T.cpu().numpy()


def _beams(model, sources, case):
    rows, beams = len(sources), case["beams"]
    model.start(sources, beams)
    on = {"device": sources.device}
    first = torch.arange(0, rows * beams, beams, **on)[:, None]
    ids = torch.full((rows * beams,), task.START, **on)
    # Start with one hypothesis: equal ones would have equal continuations.
    scores = torch.full((rows, beams), -math.inf, **on)
    scores[:, 0] = 0
    hypotheses = Hypotheses(rows, beams, case["new"], sources.device)
    for slot in range(case["new"]):
        logits = model.step(ids, slot)
        # The top 2k of a source are among the top 2k of each hypothesis.
        best, chosen = logits.topk(2 * beams, dim=1)
        totals = (scores.reshape(-1) - logits.logsumexp(1))[:, None] + best
        totals, indices = totals.view(rows, -1).topk(2 * beams, dim=1)
        origins = indices // (2 * beams)
        chosen = chosen.view(rows, -1).gather(1, indices)
        ended = chosen == task.END
        if ended.any():
            totals, chosen, origins = hypotheses.end(
                slot, totals, chosen, origins, ended
            )
        scores = totals[:, :beams]
        chosen, origins = chosen[:, :beams], origins[:, :beams]
        hypotheses.append(chosen, origins)
        if hypotheses.done(scores):
            break
        ids = chosen.reshape(-1)
        if slot + 1 < case["new"]:
            model.reorder((first + origins).view(-1), slot + 1)
    return hypotheses.best(scores)
