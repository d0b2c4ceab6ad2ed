"""Guessing a hidden piece by counting: what stood between these two?"""

import collections


class NeighbourCounts:
    """Guesses a piece from the two beside it.

    The piece that stood most often between the same two; if none did, the one
    that stood most often behind the left one; if none did, the most frequent.

    Args:
        rows: iterable of lists of ids.
    """

    def __init__(self, rows):
        between, behind, alone = (
            collections.defaultdict(collections.Counter) for _ in range(3)
        )
        for row in rows:
            for left, piece, right in zip(row, row[1:], row[2:], strict=False):
                between[left, right][piece] += 1
                behind[left][piece] += 1
                alone[None][piece] += 1
        self._tables = [
            {key: counts.most_common(1)[0][0] for key, counts in table.items()}
            for table in (between, behind, alone)
        ]

    def guess(self, left, right):
        """Returns an id.

        Args:
            left: int, the id before.
            right: int, the id behind.

        Examples:
        >>> counts = NeighbourCounts([[1, 5, 2], [1, 5, 2], [1, 6, 3]])
        >>> counts.guess(1, 2), counts.guess(1, 3), counts.guess(1, 9)
        (5, 6, 5)
        """
        between, behind, alone = self._tables
        return between.get((left, right), behind.get(left, alone[None]))
