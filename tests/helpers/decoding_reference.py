"""Reference implementations of beam search and of the optimum, with lists.

`log_probs` takes the list of previous tokens, without the start token, and
returns log p of the next one, float64 (V,). `allowed` takes the same list and
returns the allowed next ids. A result is a list of (score, tokens), best first.
"""

import numpy as np


def gnmt(length, alpha):
    return ((5 + length) ** alpha) / (6**alpha)


def power(length, alpha):
    return length**alpha


def several(end_id):
    """Returns one or several end tokens as a tuple."""
    return end_id if isinstance(end_id, tuple) else (end_id,)


def may_follow(model, banned=(), min_new_tokens=0, prefix=()):
    """Returns `allowed` for a model and constraints."""

    def allowed(tokens):
        size = model.variables[0].shape[-1]
        if len(tokens) < len(prefix):
            return [prefix[len(tokens)]]
        ids = set(range(size)) - {model.pad_id, model.start_id}
        ids.update(several(model.end_id))
        if len(tokens) + 1 < min_new_tokens:
            ids.difference_update(several(model.end_id))
        return sorted(ids - set(banned))

    return allowed


def everything(
    log_probs, allowed, max_new_tokens, end_id, penalty=lambda n: 1.0
):
    """Scores every possible sequence."""
    found, growing = [], [(0.0, [])]
    while growing:
        score, tokens = growing.pop()
        following = log_probs(tokens)
        for token in allowed(tokens):
            longer = score + following[token], [*tokens, token]
            if longer[0] == -np.inf:
                continue
            over = len(longer[1]) == max_new_tokens
            if over or token in several(end_id):
                found.append((longer[0] / penalty(len(longer[1])), longer[1]))
            else:
                growing.append(longer)
    return sorted(found, key=lambda pair: -pair[0])


def beam_search(
    log_probs,
    allowed,
    max_new_tokens,
    end_id,
    width,
    top,
    penalty=lambda n: 1.0,
    early_stopping=False,
    can_rise=False,
    stops=None,
    bonus=lambda tokens: 0.0,
):
    """Implements `BeamSearch`, one hypothesis at a time.

    With `can_rise`, a step can raise a score, and nothing bounds it. `stops`
    says of a list of tokens whether its text contains a stop string, and
    `bonus`, at most 0, is added to the score of one that has finished.
    """
    live, finished = [(0.0, [])], []
    for length in range(1, max_new_tokens + 1):
        candidates = [
            (score + log_probs(tokens)[token], [*tokens, token])
            for score, tokens in live
            for token in allowed(tokens)
        ]
        candidates = [pair for pair in candidates if pair[0] > -np.inf]
        # Stable: ties go to the more likely prefix, then to the lower id.
        candidates.sort(key=lambda pair: -pair[0])
        if stops is None:
            candidates = candidates[: (1 + len(several(end_id))) * width]
        live = []
        for rank, (score, tokens) in enumerate(candidates):
            ended = tokens[-1] in several(end_id) or (stops and stops(tokens))
            if length == max_new_tokens or ended:
                if rank < width:
                    value = score / penalty(length) + bonus(tokens)
                    finished.append((value, tokens))
            elif len(live) < width:
                live.append((score, tokens))
        finished.sort(key=lambda pair: -pair[0])
        finished = finished[:top]
        if len(finished) == top and live:
            best_attainable = max(
                score / penalty(later)
                for score, _ in live
                for later in range(length + 1, max_new_tokens + 1)
            )
            stop = early_stopping or width == 1
            reached = not can_rise and best_attainable <= finished[-1][0]
            if stop or reached:
                break
    return finished


def assert_equals(decoded, expected, pad_id=0):
    """Asserts that a `Decoded` equals one list of (score, tokens) per row."""
    rows, top, length = decoded.tokens.shape
    assert decoded.tokens.dtype == decoded.lengths.dtype == "int32"
    assert decoded.scores.dtype == "float32"
    assert rows == len(expected)
    for row in range(rows):
        found = expected[row][:top]
        missing = top - len(found)
        np.testing.assert_array_equal(
            decoded.tokens[row],
            [
                *(
                    tokens + [pad_id] * (length - len(tokens))
                    for _, tokens in found
                ),
                *[[pad_id] * length] * missing,
            ],
        )
        np.testing.assert_allclose(
            decoded.scores[row],
            [*(score for score, _ in found), *[-np.inf] * missing],
            rtol=1e-5,
            atol=1e-5,
        )
        np.testing.assert_array_equal(
            decoded.lengths[row],
            [*(len(tokens) for _, tokens in found), *[0] * missing],
        )
