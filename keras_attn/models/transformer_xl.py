"""Transformer-XL, a causal language model with segment recurrence."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import keras
from keras import ops

from keras_attn import checks
from keras_attn.blocks import SegmentBlock
from keras_attn.blocks.block_config import BlockConfig
from keras_attn.layers import TransformerXLPosition
from keras_attn.models.causal_lm import CausalLM
from keras_attn.models.layout import check_rules
from keras_attn.models.segment_recurrence import (
    as_tensors,
    check_memory_arguments,
    check_segment_inputs,
    copy_with_memory,
    document_ids,
    empty_memory,
    make_carried_memory,
    memory_and_carrier,
    next_memory,
    split_inputs,
)
from keras_attn.typing import Activation, Nest, Tensor

if TYPE_CHECKING:
    from keras_attn.models.segment_memory import SegmentMemory


@keras.saving.register_keras_serializable(package="keras_attn")
class TransformerXL(CausalLM):
    """Transformer-XL causal language model with segment recurrence.

        h^n = Block([stop_gradient(m^n); h^(n-1)], h^(n-1)),
        m^n = the last M vectors h^(n-1) of earlier segments
        logits = h^L E^T

    Dai et al. 2019, https://arxiv.org/abs/1901.02860. The receptive field grows
    by M tokens per block, and no gradient flows into the memory. Each block has
    a `TransformerXLPosition`, which uses relative distances, so the memory may
    be longer at inference than in training.

    The memory is carried by the caller, with `advance`, or by the model, from
    one batch of `fit` or `evaluate` to the next. The model carries it if it has
    a `stateful_batch_size` and the inputs include `"document_starts"`
    (`keras_attn.text.token_streams`). The carried memory is not saved.

    `generate` treats the prompt and its continuation as one segment.

    Args:
        vocabulary_size: int. V.
        num_layers: int. Blocks.
        num_heads: int. N, dividing `hidden_dim`.
        hidden_dim: int, even. D.
        intermediate_dim: int. Width inside the feed-forward networks; default
            4 D.
        memory_length: int >= 0. M, in tokens.
        stateful_batch_size: int. B, the batch size for which the model carries
            a memory. Default None: it carries none.
        dropout: float in [0, 1). On embeddings and on sublayer outputs.
        attention_dropout: float in [0, 1). On attention weights.
        activation_dropout: float in [0, 1). Inside feed-forward networks.
        activation: name or callable. Default `"relu"`.
        gated: bool. Gated feed-forward networks. Default False.
        normalize_first: bool. Pre-norm blocks, and a layer norm after them.
            Default False.
        epsilon: float. Added to the variance in layer norms.
        tie_word_embeddings: bool. Whether the output uses the embedding's
            matrix. Default True.
        pad_id: int. The id of padding tokens, unlike `start_id` and `end_id`.
            None: there is none.
        start_id: int. Never generated. None: there is none.
        end_id: int, or a list of int, each of which ends a sequence. None:
            sequences never end.
        **kwargs: other options of `SegmentBlock` (`key_dim`,
            `num_key_value_heads`, `use_bias`, `sliding_window`, one value
            or a list with one for each layer, `normalization`,
            `normalize_output`, `use_parallel_residual`, `qk_norm`,
            `attention_soft_cap`, `use_sinks`, `layer_scale`,
            `stochastic_depth`, `gate_limit`, `use_qkv_bias`,
            `skip_first_norm`, `num_experts`, `num_experts_per_tok`,
            `router_aux_loss_coef`) and arguments of `keras.Model` (`name`,
            `dtype`, ...).

    Call arguments:
        inputs: int32 (B, T) token ids, or a dict with them as `"token_ids"` and
            any of

            * `"padding_mask"`, bool (B, T), True at tokens. Default: True
              except at `pad_id`;
            * `"document_starts"`, bool (B, T), True where a document starts;
              a document does not attend to earlier ones;
            * `"memory"`, a `SegmentMemory` from `advance`.

            Padding may be on either side; with a memory, only after the tokens.
        training: bool. Whether to apply dropout.

    Returns:
        Float (B, T, V): logits of the next token at each position.

    Raises:
        ValueError: arguments out of range; ids of the wrong rank, not integers,
            or out of range; a mask, document starts or a memory of the wrong
            shape; or document starts with a batch size other than
            `stateful_batch_size`.

    Examples:
        >>> model = keras_attn.models.TransformerXL(
        ...     100, num_layers=2, num_heads=2, hidden_dim=16, memory_length=4)
        >>> ids = np.array([[7, 8, 9, 10, 11, 12]])
        >>> logits, memory = model.advance(ids[:, :3])
        >>> more, memory = model.advance(
        ...     {"token_ids": ids[:, 3:], "memory": memory})
        >>> tuple(more.shape), tuple(memory.token_mask.shape)
        ((1, 3, 100), (1, 4))
    """

    _chunks_loss = True

    def __init__(
        self,
        vocabulary_size: int,
        num_layers: int = 12,
        num_heads: int = 8,
        hidden_dim: int = 512,
        intermediate_dim: int | None = None,
        memory_length: int = 512,
        stateful_batch_size: int | None = None,
        dropout: float = 0.1,
        attention_dropout: float = 0.1,
        activation_dropout: float = 0.0,
        activation: Activation = "relu",
        gated: bool = False,
        normalize_first: bool = False,
        epsilon: float = 1e-5,
        tie_word_embeddings: bool = True,
        pad_id: int | None = 0,
        start_id: int | None = 1,
        end_id: int | Sequence[int] | None = 2,
        **kwargs: Any,
    ) -> None:
        check_memory_arguments(memory_length, stateful_batch_size)
        checks.positive_int("hidden_dim", hidden_dim)
        if intermediate_dim is None:
            intermediate_dim = 4 * hidden_dim
        config = BlockConfig.with_options(
            kwargs,
            num_heads=num_heads,
            intermediate_dim=intermediate_dim,
            dropout=dropout,
            attention_dropout=attention_dropout,
            activation_dropout=activation_dropout,
            activation=activation,
            gated=gated,
            normalize_first=normalize_first,
            epsilon=epsilon,
        )
        super().__init__(
            config,
            vocabulary_size=vocabulary_size,
            num_layers=num_layers,
            hidden_dim=hidden_dim,
            tie_word_embeddings=tie_word_embeddings,
            pad_id=pad_id,
            start_id=start_id,
            end_id=end_id,
            **kwargs,
        )
        self.memory_length = memory_length
        self.stateful_batch_size = stateful_batch_size
        self._blocks = [
            SegmentBlock(
                attention_position=TransformerXLPosition(
                    num_heads,
                    config.head_dim(hidden_dim),
                    hidden_dim,
                    initializer=self._initial_weights(),
                    bias_initializer=self._initial_weights(),
                    dtype=self.dtype_policy,
                    name=f"block_{i}_position",
                ),
                kernel_initializer=self._initial_weights(),
                dtype=self.dtype_policy,
                name=f"block_{i}",
                **config.of_layer(i),
            )
            for i in range(num_layers)
        ]
        for block in self._blocks:
            block.build((None, None, hidden_dim))
        self._carried = make_carried_memory(self)
        self.built = True
        check_rules(self)

    def call(self, inputs: Nest, training: bool | None = None) -> Tensor:
        """Applies the model; the class docstring lists the arguments."""
        parts = as_tensors(self.check_inputs(inputs))
        memory, carrier = memory_and_carrier(self._carried, parts)
        logits, memory = self._read_segment(parts, memory, training)
        if carrier is not None:
            carrier.write(memory)
        return logits

    if TYPE_CHECKING:
        __call__ = call

    def advance(
        self, inputs: Nest, training: bool | None = None
    ) -> "tuple[Tensor, SegmentMemory]":
        """Applies the model, and returns the memory after the segment.

        Args:
            inputs: as in a call.
            training: bool. Whether to apply dropout.

        Returns:
            The result of a call, and a `SegmentMemory` for the `"memory"` of
            the next call, () if M is 0.
        """
        parts = as_tensors(self.check_inputs(inputs))
        memory, _ = memory_and_carrier(self._carried, parts)
        if not memory:
            memory = empty_memory(self, ops.shape(parts["token_ids"])[0])
        return self._read_segment(parts, memory, training)

    def with_memory(
        self, memory_length: int, stateful_batch_size: int | None = None
    ) -> Self:
        """Returns a copy of the model with another memory length.

        Args:
            memory_length: int >= 0. M.
            stateful_batch_size: int. B, or None.

        Returns:
            A model of the same class with copies of the weights.

        Raises:
            ValueError: an invalid memory length, or weights that the
                constructor does not create, such as adapters or quantized
                weights.
        """
        return copy_with_memory(self, memory_length, stateful_batch_size)

    def _read_segment(self, parts, memory, training):
        token_ids, token_mask = self._ids_and_mask(parts)
        documents = document_ids(parts, memory)
        x = self._dropout_layer(
            self._token_embedding(token_ids), training=training
        )
        past, past_mask = [None] * self.num_layers, None
        if memory:
            past, past_mask = memory
        states = []
        for block, before in zip(self._blocks, past, strict=True):
            states.append(x)
            x = block(
                x,
                past=before,
                mask=token_mask,
                past_mask=past_mask,
                segment_ids=documents[0],
                past_segment_ids=documents[1],
                training=training,
            )
        logits = self._logits(self._normalized(x))
        return logits, next_memory(
            memory, states, token_ids, token_mask, documents
        )

    def check_inputs(self, inputs: Nest) -> Any:
        """Returns the inputs, or raises ValueError."""
        if not isinstance(inputs, dict):
            return super().check_inputs(inputs)
        others, own = split_inputs(inputs)
        checked = super().check_inputs(others)
        shape = tuple(checked["token_ids"].shape)
        return checked | check_segment_inputs(self, own, shape)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return super().get_config() | {
            "memory_length": self.memory_length,
            "stateful_batch_size": self.stateful_batch_size,
        }
