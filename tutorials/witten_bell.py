"""A language model that counts: n-grams, the longer smoothed by the shorter."""

import numpy as np


class WittenBell:
    """Says the next character by what came after the same few before.

        p_n(c | h) = (count(h c) + f(h) p_{n-1}(c | h')) / (count(h) + f(h))

    with h the n - 1 characters before, h' all but the first of them, f(h) how
    many different characters came after h, and p_0 = 1 / V (Witten and Bell
    1991, method C, interpolated).

    Args:
        ids: int (characters,), the training text.
        size: int. V, how many ids there are; V to the power `order` must be
            below 2^63.
        order: int. The longest n.
    """

    def __init__(self, ids, size, order):
        if size**order >= 2**63:
            raise ValueError(
                "`order` must be so small that size**order is below 2**63. "
                f"Received: size={size}, order={order}"
            )
        self.size, self.order = size, order
        self._counts = []
        for n in range(1, order + 1):
            grams, counts = np.unique(
                self._codes(np.asarray(ids), n), return_counts=True
            )
            before = grams // size
            contexts, starts = np.unique(before, return_index=True)
            self._counts.append(
                _Counts(
                    grams,
                    counts,
                    contexts,
                    np.add.reduceat(counts, starts),
                    np.diff(np.append(starts, len(grams))),
                )
            )

    def losses(self, ids):
        """Returns what each character of a text costs under each order.

        Args:
            ids: int (characters,). At its beginning the orders use as many
                characters as there are.

        Returns:
            Float (order, characters), nats.
        """
        ids = np.asarray(ids)
        p = np.full(len(ids), 1 / self.size)
        rows = []
        for n, table in enumerate(self._counts, 1):
            codes = self._codes(ids, n)
            p = p.copy()
            p[n - 1 :] = table.smoothed(codes, self.size, p[n - 1 :])
            rows.append(-np.log(p))
        return np.array(rows)

    def _codes(self, ids, n):
        """Returns the number of each n-gram of a text, in order."""
        codes = np.zeros(max(0, len(ids) - n + 1), "int64")
        for place in range(n):
            codes = codes * self.size + ids[place : place + len(codes)]
        return codes


class _Counts:
    """Holds how often n-grams occur, and what comes behind their beginnings."""

    def __init__(self, grams, counts, contexts, totals, followers):
        self.grams, self.counts = grams, counts
        self.contexts, self.totals = contexts, totals
        self.followers = followers

    def smoothed(self, codes, size, shorter):
        """Returns the probabilities of n-grams, given those of order n - 1."""
        count = _found(self.grams, self.counts, codes)
        total = _found(self.contexts, self.totals, codes // size)
        followers = _found(self.contexts, self.followers, codes // size)
        # Where the beginning never occurred, the shorter one decides.
        mixed = (count + followers * shorter) / np.maximum(total + followers, 1)
        return np.where(total > 0, mixed, shorter)


def _found(keys, values, wanted):
    """Looks numbers up in a sorted list; what is not there counts 0."""
    if not len(keys):
        return np.zeros(len(wanted), int)
    places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[places] == wanted, values[places], 0)
