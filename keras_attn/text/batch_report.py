"""BatchReport: statistics of the batches of `token_batches`."""

from typing import NamedTuple


class BatchReport(NamedTuple):
    """Statistics of the batches of `token_batches`.

    `str(report)` is a one-line summary.

    Args:
        pairs: int. Pairs per epoch.
        dropped: int. Pairs with a side longer than `max_length`.
        batches: int. Batches per epoch.
        source_tokens: int. Source ids per epoch, end ids included.
        target_tokens: int. Target ids per epoch, start ids included; equal to
            the number of labels.
        padding_fraction: float in [0, 1). Fraction of padding among all source
            and target ids of an epoch.
        shapes: tuple of (rows, source length, target length), one per bucket.

    Examples:
        >>> from keras_attn.text.batch_report import BatchReport
        >>> print(BatchReport(90, 10, 3, 450, 550, 0.1, ((40, 6, 7),)))
        90 pairs (10 too long, dropped) in 3 batches an epoch: 450 source and \
550 target tokens, 10.0 % padding; shapes 40 x (6, 7)
    """

    pairs: int
    dropped: int
    batches: int
    source_tokens: int
    target_tokens: int
    padding_fraction: float
    shapes: tuple[tuple[int, int], ...]

    def __str__(self) -> str:
        dropped = f" ({self.dropped:,} too long, dropped)" * bool(self.dropped)
        shapes = ", ".join(f"{n} x ({s}, {t})" for n, s, t in self.shapes)
        return (
            f"{self.pairs:,} pairs{dropped} in {self.batches:,} batches an "
            f"epoch: {self.source_tokens:,} source and "
            f"{self.target_tokens:,} target tokens, "
            f"{100 * self.padding_fraction:.1f} % padding; shapes {shapes}"
        )
