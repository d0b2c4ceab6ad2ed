"""What every model that can decode shares: `generate`."""

import numpy as np
from keras import ops

from keras_attn import checks
from keras_attn.decoding import generate
from keras_attn.decoding.prefix import forced_prefix
from keras_attn.models.doors import CheckedModel, check_ids

_BUCKET = 16


class Decodable(CheckedModel):
    """Offers `generate` on top of the decoding protocol.

    Abstract: a model adds `start_decoding`, `decode_step`, `pad_id`,
    `start_id`, `end_id`, `max_length` (rows of its learned position tables, or
    None), `source_vocabulary_size`, in which the ids of `generate` lie, and
    `target_vocabulary_size`, in which those that are generated do, where it is
    another one.
    """

    def generate(
        self,
        inputs,
        max_length=64,
        strategy="greedy",
        batch_size=32,
        prefix=None,
        return_weights=False,
    ):
        """Generates a sequence for every row.

        Args:
            inputs: int (B, S) ids, array or lists of equal length.
            max_length: int. The most tokens generated, end token included.
            strategy: a strategy of `keras_attn.decoding`, or `"greedy"`,
                `"beam"` or `"sample"`.
            batch_size: int. Rows decoded together.
            prefix: token ids that the sequences begin with: a list for all
                rows, or one list for each row; default None. They count in
                tokens, scores, lengths and `max_length`.
            return_weights: bool. Whether to return the cross-attention of each
                sequence. Default False.

        Returns:
            `Decoded`: tokens (B, t, L), scores (B, t), lengths (B, t), and
            weights (B, t, M, N, L, S) of M layers where they are asked for.

        Raises:
            ValueError: bad ids, a row without a token, or lengths past a
                learned position table.
        """
        checks.positive_int("max_length", max_length)
        ids = check_ids("inputs", inputs, self.source_vocabulary_size)
        ids = np.asarray(ops.convert_to_numpy(ids), "int32")
        empty = np.flatnonzero((ids == self.pad_id).all(axis=1))
        if empty.size:
            raise ValueError(
                "`inputs` must hold a token in every row. "
                f"Received: nothing but padding in row {empty[0]}"
            )
        rows, length = ids.shape
        # A few lengths only, so that few programs are compiled; padding never
        # changes an answer.
        padded = -(-length // _BUCKET) * _BUCKET
        if self.max_length is not None:
            for name, value in (("max_length", max_length), ("inputs", length)):
                if value > self.max_length:
                    raise ValueError(
                        f"`{name}` must not exceed the position table of "
                        f"max_length={self.max_length} rows. "
                        f"Received: {value} tokens"
                    )
            padded = min(padded, self.max_length)
        extra = ((0, 0), (0, padded - length))
        ids = np.pad(ids, extra, constant_values=self.pad_id)
        size = getattr(self, "target_vocabulary_size", None)
        prefix = forced_prefix(
            prefix, rows, max_length, self, size or self.source_vocabulary_size
        )
        decoded = generate(
            self,
            ids,
            max_length,
            strategy,
            batch_size,
            prefix=prefix,
            return_weights=return_weights,
        )
        if return_weights:
            return decoded._replace(weights=decoded.weights[..., :length])
        return decoded
