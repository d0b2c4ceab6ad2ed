"""Base class of models with segment recurrence."""

from keras import ops, tree

from keras_attn import checks
from keras_attn.models import segment_memory
from keras_attn.models.block_options import block_options
from keras_attn.models.causal_lm import CausalLM
from keras_attn.models.input_checks import check_mask
from keras_attn.models.segment_memory import SegmentMemory
from keras_attn.models.stateful_memory import StatefulMemory


class SegmentRecurrentLM(CausalLM):
    """Causal language model with a memory of earlier segments.

    The caller passes the memory, or the model carries it between batches.
    Abstract: `TransformerXL` and `XLNet` define the forward pass in `_read`,
    their block and position classes, and document the arguments.
    """

    _fixed = "position_embedding", "attention_position", "max_sequence_length"

    def __init__(self, *, memory_length, stateful_batch_size, **kwargs):
        if memory_length != 0:
            checks.positive_int("memory_length", memory_length)
        if stateful_batch_size is not None:
            checks.positive_int("stateful_batch_size", stateful_batch_size)
        self.memory_length = memory_length
        self.stateful_batch_size = stateful_batch_size
        super().__init__(**{name: None for name in self._fixed}, **kwargs)
        self._carried = None
        if memory_length and stateful_batch_size is not None:
            self._carried = StatefulMemory(
                stateful_batch_size,
                memory_length,
                self.num_layers,
                self.hidden_dim,
                dtype=self.dtype_policy,
                name="carried_memory",
            )

    def call(self, inputs, training=None):
        """Applies the model; the class docstring lists the arguments."""
        parts = self._as_parts(inputs)
        memory = parts.get("memory", ())
        carries = self._carries(parts)
        if carries:
            memory = self._carried.read()
        logits, memory = self._read(parts, memory, training)
        if carries:
            self._carried.write(memory)
        return logits

    def advance(self, inputs, training=None):
        """Applies the model, and returns the memory after the segment.

        Args:
            inputs: as in a call.
            training: bool. Whether to apply dropout.

        Returns:
            The result of a call, and a `SegmentMemory` for the `"memory"` of
            the next call, () if M is 0.
        """
        parts = self._as_parts(inputs)
        memory = parts.get("memory", ())
        if self._carries(parts):
            memory = self._carried.read()
        elif self.memory_length and not memory:
            memory = segment_memory.empty(
                ops.shape(parts["token_ids"])[0],
                self.memory_length,
                self.num_layers,
                self.hidden_dim,
                self.compute_dtype,
            )
        return self._read(parts, memory, training)

    def with_memory(self, memory_length, stateful_batch_size=None):
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
        config = self.get_config() | {
            "memory_length": memory_length,
            "stateful_batch_size": stateful_batch_size,
        }
        copy = type(self).from_config(config)
        copied, own = (
            {w.path: w for w in model.weights if not _is_carried(w)}
            for model in (copy, self)
        )
        if copied.keys() != own.keys():
            other = sorted(copied.keys() ^ own.keys())
            raise ValueError(
                "`with_memory` needs a model with only the weights that its "
                f"constructor creates. Received: {', '.join(other[:3])}"
            )
        for path, weight in own.items():
            # JAX would share the array and delete it in the next `predict`.
            copied[path].assign(ops.copy(weight.value))
        return copy

    def check_inputs(self, inputs):
        """Returns the inputs, or raises ValueError."""
        if not isinstance(inputs, dict):
            return super().check_inputs(inputs)
        own = {
            n: inputs[n] for n in ("document_starts", "memory") if n in inputs
        }
        inputs = {n: x for n, x in inputs.items() if n not in own}
        if isinstance(own.get("memory"), tuple) and not own["memory"]:
            del own["memory"]  # returned by `advance` if M is 0
        checked = super().check_inputs(inputs)
        shape = tuple(checked["token_ids"].shape)
        if "document_starts" in own:
            own["document_starts"] = check_mask(
                own["document_starts"],
                shape,
                "document_starts",
                "where a document starts",
            )
            if self.stateful_batch_size is not None and not checks.fits(
                shape[:1], (self.stateful_batch_size,)
            ):
                raise ValueError(
                    "`token_ids` must have `stateful_batch_size` rows if "
                    "`document_starts` is given, because the memory is "
                    "carried. Received: "
                    f"stateful_batch_size={self.stateful_batch_size}, "
                    f"{shape[0]} rows"
                )
        if "memory" in own:
            self._check_memory(own["memory"], shape[0])
        return checked | own

    def get_config(self):
        """Returns the constructor's arguments."""
        config = super().get_config()
        for name in self._fixed:
            del config[name]
        return config | {
            "memory_length": self.memory_length,
            "stateful_batch_size": self.stateful_batch_size,
        }

    def _documents(self, parts, memory):
        """Returns the document ids of the tokens and of the memory."""
        if "document_starts" not in parts:
            return None, None
        document_ids = ops.cumsum(
            ops.cast(parts["document_starts"], "int32"), axis=1
        )
        if not memory:
            return document_ids, None
        return document_ids, ops.zeros_like(memory.token_mask, dtype="int32")

    def _remembered(self, memory, states, token_ids, token_mask, documents):
        """Returns the memory after a segment.

        Args:
            memory: `SegmentMemory` before it, or ().
            states: list, the inputs of each block.
            token_ids: int32 (B, T).
            token_mask: bool (B, T), or None.
            documents: pair that `_documents` returned.
        """
        if not memory:
            return ()
        visible = (
            ops.ones_like(token_ids, dtype="bool")
            if token_mask is None
            else token_mask
        )
        visible = ops.concatenate([memory.token_mask, visible], axis=1)
        document_ids, memory_ids = documents
        if document_ids is not None:
            # Later segments do not attend past the last document start.
            all_ids = ops.concatenate([memory_ids, document_ids], axis=1)
            visible = ops.logical_and(
                visible, ops.equal(all_ids, all_ids[:, -1:])
            )
        return segment_memory.update(
            memory, states, visible, padded=token_mask is not None
        )

    def _as_parts(self, inputs):
        parts = self.check_inputs(inputs)
        parts = parts if isinstance(parts, dict) else {"token_ids": parts}
        return tree.map_structure(ops.convert_to_tensor, parts)

    def _make_blocks(self):
        heads = self.num_heads, self.hidden_dim // self.num_heads
        self._blocks = [
            self._block_class(
                name=f"block_{i}",
                attention_position=self._position_class(
                    *heads,
                    self.hidden_dim,
                    initializer=self._first_weights(),
                    bias_initializer=self._first_weights(),
                    dtype=self.dtype_policy,
                    name=f"block_{i}_position",
                ),
                kernel_initializer=self._first_weights(),
                **block_options(self),
            )
            for i in range(self.num_layers)
        ]
        for block in self._blocks:
            block.build((None, None, self.hidden_dim))

    def _carries(self, parts):
        return (
            self._carried is not None
            and "document_starts" in parts
            and "memory" not in parts
        )

    def _check_memory(self, memory, rows):
        fits = isinstance(memory, SegmentMemory) and (
            len(memory.states) == self.num_layers
        )
        if fits:
            slots = tuple(memory.token_mask.shape)
            fits = checks.fits(slots[:1], (rows,)) and all(
                checks.fits(tuple(x.shape), (*slots, self.hidden_dim))
                for x in memory.states
            )
        if not fits:
            raise ValueError(
                "`memory` must be returned by `advance` for the same number "
                f"of rows, with {self.num_layers} states of width "
                f"{self.hidden_dim}. "
                f"Received: {type(memory).__name__} for {rows} rows"
            )


def _is_carried(weight):
    return weight.path.startswith("carried_memory/")
