"""What every model that can decode shares: `generate`."""

import numpy as np
from keras import ops

from keras_attn.decoding import generate
from keras_attn.models.doors import CheckedModel, check_ids

_BUCKET = 16


class Decodable(CheckedModel):
    """Offers `generate` on top of the decoding protocol.

    Abstract: a model adds `start_decoding`, `decode_step`, `pad_id`,
    `start_id`, `end_id`, `max_length` (rows of its learned position tables, or
    None) and `source_vocabulary_size`, in which the ids of `generate` lie.
    """

    def generate(self, inputs, max_length=64, strategy="greedy", batch_size=32):
        """Generates a sequence for every row.

        Args:
            inputs: int (B, S) ids, array or lists of equal length.
            max_length: int. The most tokens generated, end token included.
            strategy: `"greedy"` or a strategy of `keras_attn.decoding`.
            batch_size: int. Rows decoded together.

        Returns:
            `Decoded`: tokens (B, t, L), scores (B, t), lengths (B, t).

        Raises:
            ValueError: bad ids, or lengths past a learned position table.
        """
        ids = check_ids("inputs", inputs, self.source_vocabulary_size)
        ids = np.asarray(ops.convert_to_numpy(ids), "int32")
        length = ids.shape[1]
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
        return generate(self, ids, max_length, strategy, batch_size)
