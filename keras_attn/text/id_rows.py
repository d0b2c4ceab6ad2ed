"""IdRows: the ids of many texts in two flat arrays, padded on demand."""

from typing import Any, NamedTuple, Self

import numpy as np

from keras_attn.typing import Tensor, TensorLike

_TEXTS_AT_ONCE = 65536  # as lists of Python integers, before they are packed


class IdRows(NamedTuple):
    """The concatenated ids of many texts.

    Args:
        ids: int32 (total,).
        lengths: int64 (N,). Number of ids of each text.
    """

    ids: np.ndarray
    lengths: np.ndarray

    @classmethod
    def of(cls, texts: Any, tokenizer: Any) -> Self:
        """Encodes a list of texts with `tokenizer.encode`."""
        ids, lengths = [], []
        for begin in range(0, len(texts), _TEXTS_AT_ONCE):
            part = texts[begin : begin + _TEXTS_AT_ONCE]
            rows = tokenizer.encode(part)
            if len(rows) != len(part):
                raise ValueError(
                    "`tokenizer` must encode a list of texts, each as a list "
                    f"of ids. Received: {len(rows)} lists for {len(part)} texts"
                )
            lengths.append(np.array([len(row) for row in rows], "int64"))
            total = int(lengths[-1].sum())
            flat = (i for row in rows for i in row)
            ids.append(np.fromiter(flat, "int32", total))
        return cls(np.concatenate(ids), np.concatenate(lengths))

    def padded(
        self,
        texts: TensorLike,
        width: int,
        pad_id: int,
        first: int | None = None,
        last: int | None = None,
    ) -> Tensor:
        """Returns some texts as padded rows, and a row of padding.

        Args:
            texts: int (n,). Indices of the texts.
            width: int. Ids per row: enough for `first`, the text and `last`.
            pad_id: int.
            first: int. An id before each text. Default None: none.
            last: int. An id after each text. Default None: none.

        Returns:
            int32 (n + 1, width). Row n, which is also row -1, is all padding.
        """
        out = np.full((len(texts) + 1, width), pad_id, "int32")
        rows, begin = out[:-1], 0
        if first is not None:
            rows[:, 0], begin = first, 1
        lengths = self.lengths[texts]
        inside = np.arange(width - begin) < lengths[:, None]
        # Where each text starts in `ids`, minus where it starts in the result.
        starts = (np.cumsum(self.lengths) - self.lengths)[texts]
        shift = starts - (np.cumsum(lengths) - lengths)
        index = np.arange(lengths.sum()) + np.repeat(shift, lengths)
        rows[:, begin:][inside] = self.ids[index]
        if last is not None:
            rows[np.arange(len(texts)), lengths + begin] = last
        return out
