"""Brute-force greedy search: one row, one step, one argmax."""

import numpy as np


def greedy(log_probs, max_new_tokens, pad_id, start_id, end_id):
    """Chooses the most likely allowed token until the end token.

    Args:
        log_probs: callable that takes the list of previous tokens, without the
            start token, and returns log p of the next one, float64 (V,).
        max_new_tokens: int.
        pad_id: int. Never chosen, like `start_id`.
        start_id: int.
        end_id: int.

    Returns:
        Tokens, a list padded to `max_new_tokens`; their total log-probability;
        and their number.
    """
    tokens, score = [], 0.0
    while len(tokens) < max_new_tokens and end_id not in tokens:
        scores = np.array(log_probs(tokens))
        allowed = scores.copy()
        allowed[pad_id] = -np.inf
        if start_id != end_id:
            allowed[start_id] = -np.inf
        tokens.append(int(allowed.argmax()))
        score += scores[tokens[-1]]
    padding = [pad_id] * (max_new_tokens - len(tokens))
    return tokens + padding, score, len(tokens)


def assert_same(decoded, expected):
    """Asserts that a `Decoded` with t = 1 equals a list of `greedy` results."""
    tokens, scores, lengths = zip(*expected, strict=True)
    assert decoded.tokens.dtype == decoded.lengths.dtype == "int32"
    assert decoded.scores.dtype == "float32"
    np.testing.assert_array_equal(decoded.tokens[:, 0], tokens)
    np.testing.assert_array_equal(decoded.lengths[:, 0], lengths)
    np.testing.assert_allclose(
        decoded.scores[:, 0], scores, rtol=1e-5, atol=1e-5
    )
    assert decoded.tokens.shape[1] == decoded.scores.shape[1] == 1
    assert decoded.weights is None
