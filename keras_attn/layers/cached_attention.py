"""Incremental attention to a key-value cache or an encoder output."""

from keras import ops

from keras_attn import cache as kv
from keras_attn.backend import apply_dense
from keras_attn.layers.attention_inputs import clean
from keras_attn.layers.projected_attention import ProjectedAttention
from keras_attn.ops import Visibility


class CachedAttention(ProjectedAttention):
    """Attends from new tokens to cached keys and values.

    Abstract: `MultiHeadAttention` implements `_attend` and documents the
    arguments.
    """

    def project_memory(self, memory, positions):
        """Projects keys and values once for all steps of a decoder.

        Args:
            memory: float (B, S, D').
            positions: int32 (B, S), -1 = no token.

        Returns:
            Keys (B, S, K, H) and values (B, S, K, W).
        """
        memory = clean(memory, positions)
        return self._keys_and_values(memory, memory, positions)

    def decode_step(self, inputs, positions, cache, layer, weights=()):
        """Attends from new tokens to all cached ones, including themselves.

        Args:
            inputs: float (R, T, D), the new tokens.
            positions: int32 (R, T), from `keras_attn.cache.open_slots`.
            cache: `KVCache`, consumed.
            layer: int. Index of the layer in the cache.
            weights: result of `prepare_weights`, or ().

        Returns:
            Float (R, T, D) and the cache.
        """
        rows, length, _ = ops.shape(inputs)
        inputs, positions = self._by_source(cache, inputs, positions)
        query, *added = self._own_heads(inputs, positions, weights)
        cache = kv.append(cache, layer, *added)
        output = self._attend_cache(
            inputs, query, positions, cache, layer, length
        )
        output = ops.reshape(output, (rows, length, *ops.shape(output)[2:]))
        return output, cache

    def attend_to_cache(self, inputs, positions, order, cache, layer):
        """Attends to cached tokens without appending to the cache.

        Args:
            inputs: float (R, T, D).
            positions: int32 (R, T), positions of the queries.
            order: int32 (R, T). A query sees the tokens up to this position.
            cache: `KVCache`, read only.
            layer: int. Index of the layer in the cache.

        Returns:
            Float (R, T, D).
        """
        rows, length, _ = ops.shape(inputs)
        _, order = self._by_source(cache, inputs, order)
        inputs, positions = self._by_source(cache, inputs, positions)
        query = apply_dense(self._query_dense, inputs)
        query = self._rotated(query, positions)
        output = self._attend_cache(
            inputs, query, positions, cache, layer, length, order
        )
        return ops.reshape(output, (rows, length, *ops.shape(output)[2:]))

    def attend_memory(self, inputs, memory, layer, positions=None):
        """Attends from new tokens to a projected memory.

        The memory has one row per source. If the inputs have several rows per
        source (its beams), these become queries of that row: the memory is not
        copied.

        Args:
            inputs: float (R, T, D), R a multiple of the memory's rows B.
            memory: `KVCache` of the memory, read only.
            layer: int. Index of the layer in the memory.
            positions: int32 (R, T), positions of the new tokens. Required if
                the layer has an `attention_position`.

        Returns:
            Float (R, T, D).

        Raises:
            ValueError: the layer has an `attention_position` and `positions`
                is None.
        """
        if self.attention_position is not None and positions is None:
            raise ValueError(
                "`positions` must be given if the attention layer has an "
                "`attention_position`. Received: positions=None"
            )
        keys, values, key_positions = kv.read(
            memory, layer, self.num_key_value_heads
        )
        rows, length, _ = ops.shape(inputs)
        queries, positions = self._by_source(memory, inputs, positions)
        visibility = Visibility(
            query_positions=positions,
            key_positions=key_positions,
            padding="any",
        )
        heads = apply_dense(self._query_dense, queries)
        heads = self._rotated(heads, positions), keys, values
        output, _ = self._attend(queries, heads, visibility)
        return ops.reshape(output, (rows, length, *ops.shape(output)[2:]))

    def _attend_cache(
        self, inputs, query, positions, cache, layer, length, order=None
    ):
        """Attends to cached tokens, up to a position per query."""
        keys, values, key_positions = kv.read(
            cache, layer, self.num_key_value_heads
        )
        visibility = Visibility(
            query_positions=positions,
            key_positions=key_positions,
            query_order=order,
            key_order=None if order is None else key_positions,
            attention_mask=kv.beam_mask(cache, length),
            causal=True,
            window=self.sliding_window,
            padding="any",
        )
        output, _ = self._attend(inputs, (query, keys, values), visibility)
        return output

    def _by_source(self, cache, inputs, positions):
        """Folds the hypotheses of each source into one row of queries."""
        sources = kv.sources(cache)
        rows, length, width = ops.shape(inputs)
        queries = rows // sources * length
        if positions is not None:
            positions = ops.reshape(positions, (sources, queries))
        return ops.reshape(inputs, (sources, queries, width)), positions
