"""The base class of models that generate token sequences."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
from keras import ops

from keras_attn import checks
from keras_attn.decoding import DecodingState, generate, stream
from keras_attn.decoding.arguments import check_length
from keras_attn.decoding.prefix import forced_prefix
from keras_attn.decoding.protocol import end_ids
from keras_attn.decoding.row_batches import fitted
from keras_attn.decoding.token_rows import check_form, token_rows
from keras_attn.models.input_checks import CheckedModel, check_ids
from keras_attn.typing import Nest, Tensor

if TYPE_CHECKING:
    from keras_attn.decoding.protocol import Decoded
    from keras_attn.decoding.speculative import Speculation
    from keras_attn.decoding.strategy import Strategy
    from keras_attn.decoding.stream import StreamedToken


@keras.saving.register_keras_serializable(package="keras_attn")
class GenerativeModel(CheckedModel):
    """Base class of models that generate token sequences.

    It adds `generate` and `stream` to a model that implements the decoding
    protocol of `keras_attn.decoding.DecodingState`:

        start_decoding(inputs, max_new_tokens) -> state
        decode_step(tokens, state) -> (logits, state)

    A subclass sets `source_vocabulary_size`, the number of ids that the inputs
    of `generate` may have, and, where they differ from the defaults, the
    attributes below. Without token ids as inputs it also overrides
    `read_sources`. All weights must exist before `generate` is called.

    Class attributes:
        source_vocabulary_size: int, or None if sources are not token ids.
        target_vocabulary_size: int, or None if it is the same. Default None.
        pad_id: int. Default 0.
        start_id: int. Default 1.
        end_id: int. Default 2.
        max_sequence_length: int, rows of the learned position table; None if
            there is none. Default None.

    Args:
        **kwargs: arguments of `keras.Model`: `name`, `dtype`, ...

    Examples:
        A custom language model with beam search:

        >>> class LSTMLanguageModel(keras_attn.models.GenerativeModel):
        ...     def __init__(self, vocabulary_size, hidden_dim, **kwargs):
        ...         super().__init__(**kwargs)
        ...         self.source_vocabulary_size = vocabulary_size
        ...         self.embedding = keras.layers.Embedding(
        ...             vocabulary_size, hidden_dim)
        ...         self.lstm = keras.layers.LSTM(
        ...             hidden_dim, return_sequences=True, return_state=True)
        ...         self.output_dense = keras.layers.Dense(vocabulary_size)
        ...     def call(self, token_ids):
        ...         x, _, _ = self.lstm(self.embedding(token_ids))
        ...         return self.output_dense(x)
        ...     def start_decoding(self, inputs, max_new_tokens):
        ...         mask = keras.ops.not_equal(inputs, self.pad_id)
        ...         _, h, c = self.lstm(self.embedding(inputs), mask=mask)
        ...         start = keras.ops.full_like(inputs[:, :1], self.start_id)
        ...         return keras_attn.decoding.DecodingState((), (h, c), start)
        ...     def decode_step(self, tokens, state):
        ...         x, h, c = self.lstm(
        ...             self.embedding(tokens),
        ...             initial_state=list(state.hypothesis))
        ...         state = state._replace(hypothesis=(h, c))
        ...         return self.output_dense(x), state
        >>> model = LSTMLanguageModel(20, hidden_dim=8)
        >>> logits = model(np.array([[5, 6, 7]]))  # creates the weights
        >>> strategy = keras_attn.decoding.BeamSearch(num_beams=3)
        >>> model.generate([[5, 6, 7], [8]], 4, strategy).tokens.shape
        (2, 1, 4)
    """

    source_vocabulary_size: int | None = None
    target_vocabulary_size: int | None = None
    pad_id: int | None = 0
    start_id: int | None = 1
    end_id: int | Sequence[int] | None = 2
    max_sequence_length: int | None = None

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)

    def generate(
        self,
        inputs: Nest | None = None,
        max_new_tokens: int = 64,
        strategy: "Strategy | Speculation | str" = "greedy",
        batch_size: int = 32,
        prefix: Any = None,
        return_weights: bool = False,
        verbose: str | int = "auto",
        stop_strings: str | Sequence[str] | None = None,
        tokenizer: Any = None,
        state: Any = None,
        cache_dtype: str | None = None,
    ) -> "Decoded":
        """Generates a sequence for every row.

        Large inputs are decoded in batches of similar length, the longest
        first, each padded to one of a few lengths. The results are in the order
        of the rows and equal those of decoding each row alone.

        Args:
            inputs: B rows of ids: int (B, S), padded, or a list of lists or of
                1-D arrays, of any length; S is then the longest.
            max_new_tokens: int. The maximum number of generated tokens,
                including the end token.
            strategy: a strategy of `keras_attn.decoding`, or `"greedy"`,
                `"beam"` or `"sample"`; with a `GPT` also
                `SpeculativeDecoding` or `PromptLookup`.
            batch_size: int. Rows decoded together.
            prefix: token ids that the sequences begin with: a list for all
                rows, or one list per row; default None. The prefix counts in
                tokens, scores, lengths and `max_new_tokens`.
            return_weights: bool. Whether to return the cross-attention of each
                sequence. Default False.
            verbose: `"auto"`, 0 or 1. Whether to show a progress bar. `"auto"`
                shows one on a terminal if there are several batches.
            stop_strings: str or list of str. A sequence ends with the token
                that completes one of them in the generated text, in which the
                prefix counts and the prompt does not. Default None.
            tokenizer: tokenizer of `keras_attn.text`, needed by `stop_strings`.
                Default None.
            state: `PromptState` that the inputs continue, of a model with
                `read`, such as `GPT`; the inputs may then be None. The result
                equals that of one prompt, and has the next state as `state`.
                Default None.
            cache_dtype: `"int8"` keeps the keys and values of previous tokens,
                and those of the source, in 8 bits, with a scale per token and
                head. Default None: in the dtype of the model.

        Returns:
            `Decoded`: tokens (B, t, L), scores (B, t), lengths (B, t), and
            with `return_weights`, weights (B, t, M, N, L, S) of M layers.

        Raises:
            ValueError: invalid ids, a row without tokens, lengths past the
                learned position table, a `cache_dtype` for a model without a
                key-value cache, or NaN or infinite logits in a step.
        """
        checks.boolean("return_weights", return_weights)
        state = self._read_on(inputs, state)
        rows, prefix = self._sources_and_prefix(
            inputs, max_new_tokens, prefix, state
        )
        decoded = generate(
            self,
            rows,
            max_new_tokens,
            strategy,
            batch_size,
            prefix=prefix,
            return_weights=return_weights,
            verbose=verbose,
            stop_strings=stop_strings,
            tokenizer=tokenizer,
            cache_dtype=cache_dtype,
        )
        if state is not None:
            decoded = decoded._replace(state=_continued(state, decoded))
        if return_weights and _are_ragged(rows):
            padded = hasattr(inputs, "shape")
            width = inputs.shape[1] if padded else max(map(len, inputs))
            decoded = decoded._replace(weights=fitted(decoded.weights, width))
        return decoded

    def stream(
        self,
        inputs: Nest | None = None,
        max_new_tokens: int = 64,
        strategy: "Strategy | str" = "greedy",
        prefix: Any = None,
        stop_strings: str | Sequence[str] | None = None,
        tokenizer: Any = None,
        state: Any = None,
        cache_dtype: str | None = None,
    ) -> "Iterator[StreamedToken]":
        """Generates a sequence for every row, and yields every step.

        All rows are decoded together, padded like a batch of `generate`.

        Args:
            inputs: rows of ids, as for `generate`.
            max_new_tokens: int. The maximum number of generated tokens,
                including the end token.
            strategy: as for `generate`.
            prefix: as for `generate`. Default None.
            stop_strings: as for `generate`. Default None.
            tokenizer: as for `generate`. The items then also have `texts`, the
                new text of each sequence. Default None.
            state: as for `generate`. Default None.
            cache_dtype: as for `generate`. Default None.

        Returns:
            Iterator that yields a `keras_attn.decoding.StreamedToken` after
            every step, computed on demand: the sequences of each row so far,
            and in `active` those that are continued. The last one has the
            tokens, scores and lengths that `generate` returns.

        Raises:
            ValueError: as for `generate`, before the first step; for NaN or
                infinite logits, in that step.

        Examples:
            >>> model = keras_attn.models.Transformer(
            ...     12, num_layers=1, num_heads=1, hidden_dim=4,
            ...     intermediate_dim=4)
            >>> for item in model.stream([[5, 6, 2]], max_new_tokens=3):
            ...     token = item.tokens[0, 0, item.step - 1]
            >>> item.tokens.shape
            (1, 1, 3)
        """
        state = self._read_on(inputs, state)
        rows, prefix = self._sources_and_prefix(
            inputs, max_new_tokens, prefix, state
        )
        return stream(
            self,
            rows,
            max_new_tokens,
            strategy,
            prefix,
            stop_strings,
            tokenizer,
            cache_dtype,
        )

    def read_sources(self, inputs: Nest) -> Tensor:
        """Reads and checks the inputs of `generate` and `stream`.

        Args:
            inputs: as for `generate`.

        Returns:
            Rows of token ids, an object array (B,) of int32 arrays. For
            sources that are not token ids: a nest of NumPy arrays with B rows
            each, from which `start_decoding` gets its inputs.

        Raises:
            ValueError: invalid ids, a row without tokens, or a row longer than
                the learned position table.
        """
        check_form("inputs", inputs)
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

    def _check_special_ids(
        self, optional=(), never_padding=("end_id",), several=()
    ):
        """Checks the special ids.

        Both sides have padding, only the target has start and end tokens.

        Args:
            optional: tuple of str. Ids that may be None.
            never_padding: tuple of str. Ids that may not equal `pad_id`. A
                target may start with it, as in Marian, because the model knows
                where targets start; it does not know this of prompts.
            several: tuple of str. Ids that may be tuples of ids.
        """
        source, target = self._sizes
        for name, size in (
            ("pad_id", target if source is None else min(source, target)),
            ("start_id", target),
            ("end_id", target),
        ):
            value = getattr(self, name)
            if value is None and name in optional:
                continue
            numbers = value if name in several else (value,)
            if not numbers:
                raise ValueError(
                    f"`{name}` must be None or have an id. "
                    f"Received: {name}={value!r}"
                )
            for number in numbers:
                checks.token_id(name, number)
                if number not in range(size):
                    raise ValueError(
                        f"`{name}` must lie in [0, {size}). "
                        f"Received: {name}={value!r}"
                    )
        for name in never_padding:
            if self.pad_id in end_ids(getattr(self, name)):
                raise ValueError(
                    f"`pad_id` must differ from `{name}`, which would count as "
                    f"padding. Received: {self.pad_id} for both"
                )

    def _read_on(self, inputs, state):
        """Returns the state after the inputs, or None without a state."""
        if state is None:
            return None
        if not hasattr(self, "read"):
            raise ValueError(
                "`state` needs a model with `read`, such as `GPT`. "
                f"Received: {type(self).__name__}"
            )
        return self.read(inputs, state)

    def _sources_and_prefix(self, inputs, max_new_tokens, prefix, state=None):
        """Returns the result of `read_sources`, and the prefix as an array."""
        check_length(max_new_tokens)
        if state is None:
            sources = self.read_sources(inputs)
        else:
            sources = self._sources_of_state(state)
        self._check_room(sources, max_new_tokens)
        count = len(keras.tree.flatten(sources)[0])
        prefix = forced_prefix(
            prefix, count, max_new_tokens, self, self._sizes[1]
        )
        return sources, prefix

    def _check_start(self, inputs, max_new_tokens):
        """Checks what is known of the arguments of `start_decoding`.

        Returns:
            The inputs, token ids as an array or a tensor.
        """
        # Not only int: PyTorch and TensorFlow may know lengths as symbols.
        checks.count("max_new_tokens", max_new_tokens, 1)
        if isinstance(max_new_tokens, int):
            check_length(max_new_tokens)
        if type(self).read_sources is not GenerativeModel.read_sources:
            return inputs  # not token ids
        check_form("inputs", inputs)
        return check_ids("inputs", inputs, self.source_vocabulary_size)

    def _check_step(self, tokens, state):
        """Checks what is known of the arguments of `decode_step`."""
        check_form("tokens", tokens)
        checks.rank("tokens", checks.tensor("tokens", tokens), 2)
        checks.integers("tokens", tokens)
        if 0 in tuple(tokens.shape):
            raise ValueError(
                "`tokens` must hold at least one row and one token. "
                f"Received: shape {tuple(tokens.shape)}"
            )
        checks.instance("state", state, DecodingState, "a `DecodingState`")

    def _check_room(self, sources, max_new_tokens):
        """Raises ValueError for lengths past the position table."""
        self._check_length("max_new_tokens", max_new_tokens)

    def _check_length(self, name, length):
        if (
            self.max_sequence_length is not None
            and length > self.max_sequence_length
        ):
            raise ValueError(
                f"`{name}` must not exceed the position table of "
                f"max_sequence_length={self.max_sequence_length} rows. "
                f"Received: {length} tokens"
            )


def _continued(state, decoded):
    """Returns a state with the tokens of the first sequence of each row."""
    tokens = state.tokens.copy()
    for row, before in enumerate(tokens):
        found = decoded.tokens[row, 0, : decoded.lengths[row, 0]]
        tokens[row] = np.concatenate([before, found])
    return state._replace(tokens=tokens)


def _are_ragged(sources):
    return hasattr(sources, "dtype") and sources.dtype.hasobject
