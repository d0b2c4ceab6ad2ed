"""Reads and replaces the states between the blocks of a model."""

import contextlib
from collections.abc import Iterator
from typing import Any

import keras

from keras_attn import checks
from keras_attn.backend import no_gradients
from keras_attn.explain.layer_watch import Watcher, watched
from keras_attn.models import (
    GPT,
    BertPretrainer,
    Encoder,
    TokenClassifier,
    Transformer,
    TransformerXL,
    VisionTransformer,
)
from keras_attn.models.block_stack import BlockStack
from keras_attn.typing import Nest, Tensor

_STACKS = "encoder", "decoder"
# A subclass of `VisionTransformer` or `Encoder` is one of them.
_ONE_STACK = GPT, TransformerXL, Encoder, VisionTransformer


def find_stack(model: keras.Model, stack: str | None) -> BlockStack:
    """Returns the blocks whose states are of interest.

    Args:
        model: a model with one stack, a model with a head on one, or a
            `Transformer`.
        stack: `"encoder"`, `"decoder"`, or None: the decoder, or the only one.

    Returns:
        `BlockStack`.

    Raises:
        ValueError: another model, or a stack that it does not have.
    """
    if stack is not None:
        checks.choice("stack", stack, _STACKS)
    if isinstance(model, Transformer):
        return model.block_stack(stack or "decoder")
    with_head = getattr(model, "encoder", None)
    owner = model if with_head is None else with_head
    if not isinstance(owner, _ONE_STACK):
        raise ValueError(
            "`model` must be a `GPT`, `TransformerXL`, `Encoder`, `Bert`, "
            "`VisionTransformer` or `Transformer`, or have one as `encoder`. "
            f"Received: {type(model).__name__}"
        )
    if stack is not None:
        raise ValueError(
            "`stack` must be None for a model with one stack of blocks. "
            f"Received: stack={stack!r} for {type(model).__name__}"
        )
    # Other heads have no logits for each token.
    per_token = isinstance(model, (TokenClassifier, BertPretrainer))
    return (model if per_token else owner).block_stack()


class Recorder(Watcher):
    """Records the input of the first block and the output of each.

    Args:
        stack: `BlockStack`. Subclasses override `at` to replace its states.
    """

    def __init__(self, stack: BlockStack) -> None:
        super().__init__()
        self._ids = {id(block) for block in stack.blocks}
        self.states: list[Tensor] = []

    def at(self, layer: int, state: Any) -> Any:
        """Returns the state that the next block reads.

        Args:
            layer: int. 0: the input of the first block.
            state: float (B, T, D).
        """
        return state

    def entered(
        self, key: Any, layer: Any, args: Any, kwargs: dict[str, Any]
    ) -> tuple[Any, Any]:
        """Sees the embeddings."""
        if id(layer) in self._ids and not self.states:
            args = (self._next(args[0]), *args[1:])
        return args, kwargs

    def left(self, key: Any, layer: Any, outputs: Any) -> Any:
        """Sees the output of a block."""
        return self._next(outputs) if id(layer) in self._ids else outputs

    def _next(self, state):
        # All layers may share one block: states are counted, not blocks.
        state = self.at(len(self.states), state)
        self.states.append(state)
        return state


def recorded(model: keras.Model, inputs: Nest, recorder: Recorder) -> Any:
    """Calls a model with a recorder and returns its outputs."""
    with undisturbed(), watched(recorder):
        return model(inputs, training=False)


def states_of(
    model: keras.Model, inputs: Nest, stack: BlockStack
) -> list[Tensor]:
    """Returns L + 1 states (B, T, D), none of them after the final norm."""
    if inputs is None:
        raise ValueError(
            "`inputs` must be the inputs of the model. Received: inputs=None"
        )
    recorder = Recorder(stack)
    recorded(model, inputs, recorder)
    return recorder.states


def to_numpy(tensor: Any) -> Tensor:
    """Returns a float32 NumPy array."""
    return keras.ops.convert_to_numpy(keras.ops.cast(tensor, "float32"))


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Context without gradients, in which no variable changes."""
    with keras.StatelessScope(), no_gradients():
        yield
