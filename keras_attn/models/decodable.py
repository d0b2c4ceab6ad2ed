"""What every model that can decode shares: `generate` and `stream`."""

import keras
from keras import ops

from keras_attn import checks
from keras_attn.decoding import generate, stream
from keras_attn.decoding.prefix import forced_prefix
from keras_attn.decoding.row_batches import fitted
from keras_attn.decoding.token_rows import token_rows
from keras_attn.models.doors import CheckedModel, check_ids


class Decodable(CheckedModel):
    """Offers `generate` and `stream` on top of the decoding protocol.

    Abstract: a model adds `start_decoding`, `decode_step`, `pad_id`,
    `start_id`, `end_id`, `max_length` (rows of its learned position tables, or
    None), `source_vocabulary_size`, in which the ids of `generate` lie, and
    `target_vocabulary_size`, in which those that are generated do, where it is
    another one. A model whose sources are not token ids defines `read_sources`
    anew.
    """

    def generate(
        self,
        inputs,
        max_length=64,
        strategy="greedy",
        batch_size=32,
        prefix=None,
        return_weights=False,
        verbose="auto",
    ):
        """Generates a sequence for every row.

        A large set is decoded in batches of like length, the longest first,
        each padded to one of few lengths; the answers stand in the order of the
        rows, and are those that each row gets alone.

        Args:
            inputs: B rows of ids: int (B, S), padded, or a list of lists or of
                1-D arrays, of any lengths; S is then the longest.
            max_length: int. The most tokens generated, end token included.
            strategy: a strategy of `keras_attn.decoding`, or `"greedy"`,
                `"beam"` or `"sample"`.
            batch_size: int. Rows decoded together.
            prefix: token ids that the sequences begin with: a list for all
                rows, or one list for each row; default None. They count in
                tokens, scores, lengths and `max_length`.
            return_weights: bool. Whether to return the cross-attention of each
                sequence. Default False.
            verbose: `"auto"`, 0 or 1. Whether to show a progress bar: on a
                terminal where there are several batches, never, or always.

        Returns:
            `Decoded`: tokens (B, t, L), scores (B, t), lengths (B, t), and
            weights (B, t, M, N, L, S) of M layers where they are asked for.

        Raises:
            ValueError: bad ids, a row without a token, or lengths past a
                learned position table.
        """
        rows, prefix = self._sources_and_prefix(inputs, max_length, prefix)
        decoded = generate(
            self,
            rows,
            max_length,
            strategy,
            batch_size,
            prefix=prefix,
            return_weights=return_weights,
            verbose=verbose,
        )
        if return_weights and _are_ragged(rows):
            padded = hasattr(inputs, "shape")
            width = inputs.shape[1] if padded else max(map(len, inputs))
            decoded = decoded._replace(weights=fitted(decoded.weights, width))
        return decoded

    def stream(self, inputs, max_length=64, strategy="greedy", prefix=None):
        """Generates a sequence for every row, and shows every step.

        All rows are decoded together, padded like a batch of `generate`.

        Args:
            inputs: rows of ids, as for `generate`.
            max_length: int. The most tokens generated, end token included.
            strategy: as for `generate`.
            prefix: as for `generate`. Default None.

        Returns:
            Iterator that gives a `keras_attn.decoding.Streamed` after every
            step, when it is asked for it: the sequences of each row so far, and
            in `live` those that are continued. The last one holds the tokens,
            scores and lengths that `generate` returns.

        Raises:
            ValueError: what `generate` raises, at once.

        Examples:
            >>> model = keras_attn.models.Transformer(
            ...     12, num_layers=1, num_heads=1, hidden_dim=4,
            ...     intermediate_dim=4)
            >>> for item in model.stream([[5, 6, 2]], max_length=3):
            ...     token = item.tokens[0, 0, item.step - 1]
            >>> item.tokens.shape
            (1, 1, 3)
        """
        rows, prefix = self._sources_and_prefix(inputs, max_length, prefix)
        return stream(self, rows, max_length, strategy, prefix)

    def read_sources(self, inputs):
        """Reads and checks what `generate` and `stream` are to decode.

        Args:
            inputs: as for `generate`.

        Returns:
            Rows of token ids, an object array (B,) of int32 arrays. Where
            sources are something else: a nest of NumPy arrays with B rows each,
            from which `start_decoding` gets its inputs.

        Raises:
            ValueError: bad ids, a row without a token, or a row longer than a
                learned position table.
        """
        if not isinstance(inputs, (list, tuple)):
            inputs = check_ids("inputs", inputs, self.source_vocabulary_size)
            inputs = ops.convert_to_numpy(inputs)
        rows = token_rows(inputs, self.pad_id, self.source_vocabulary_size)
        self._check_length("inputs", max(map(len, rows)))
        return rows

    @property
    def _sizes(self):
        source = self.source_vocabulary_size
        target = getattr(self, "target_vocabulary_size", None)
        return source, source if target is None else target

    def _check_special_ids(self, optional=()):
        """Padding stands on both sides, start and end in the target only."""
        source, target = self._sizes
        for name, size in (
            ("pad_id", target if source is None else min(source, target)),
            ("start_id", target),
            ("end_id", target),
        ):
            value = getattr(self, name)
            if value is None and name in optional:
                continue
            if value not in range(size):
                raise ValueError(
                    f"`{name}` must lie in [0, {size}). "
                    f"Received: {name}={value!r}"
                )

    def _sources_and_prefix(self, inputs, max_length, prefix):
        """Returns what `read_sources` does, and the prefix as an array."""
        checks.positive_int("max_length", max_length)
        sources = self.read_sources(inputs)
        self._check_room(sources, max_length)
        count = len(keras.tree.flatten(sources)[0])
        prefix = forced_prefix(prefix, count, max_length, self, self._sizes[1])
        return sources, prefix

    def _check_room(self, sources, max_length):
        """Refuses what the position table has no rows for."""
        self._check_length("max_length", max_length)

    def _check_length(self, name, length):
        if self.max_length is not None and length > self.max_length:
            raise ValueError(
                f"`{name}` must not exceed the position table of "
                f"max_length={self.max_length} rows. "
                f"Received: {length} tokens"
            )


def _are_ragged(sources):
    return hasattr(sources, "dtype") and sources.dtype.hasobject
