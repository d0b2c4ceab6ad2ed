"""Shared parts of `TransformerXL` and `XLNet`, which carry a memory."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops, tree

from keras_attn import checks
from keras_attn.models import segment_memory
from keras_attn.models.input_checks import check_mask
from keras_attn.models.segment_memory import SegmentMemory
from keras_attn.models.stateful_memory import StatefulMemory
from keras_attn.typing import Tensor, TensorLike

_CARRIED = "carried_memory"


def check_memory_arguments(
    memory_length: int, stateful_batch_size: int | None
) -> None:
    """Raises ValueError if an argument of the constructor is out of range."""
    checks.integer("memory_length", memory_length)
    if memory_length != 0:
        checks.positive_int("memory_length", memory_length)
    if stateful_batch_size is not None:
        checks.positive_int("stateful_batch_size", stateful_batch_size)


def make_carried_memory(model: Any) -> StatefulMemory | None:
    """Returns the `StatefulMemory` of a model, or None if it carries none."""
    if not model.memory_length or model.stateful_batch_size is None:
        return None
    return StatefulMemory(
        model.stateful_batch_size,
        model.memory_length,
        model.num_layers,
        model.hidden_dim,
        dtype=model.dtype_policy,
        name=_CARRIED,
    )


def split_inputs(
    inputs: dict[str, Any],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Separates the inputs that concern the memory from the others.

    Args:
        inputs: dict, the inputs of a model.

    Returns:
        Dict of the other inputs; dict of `"document_starts"` and `"memory"`,
        where given. The memory () that `advance` returns for M = 0 is dropped.
    """
    names = "document_starts", "memory"
    own = {name: inputs[name] for name in names if name in inputs}
    if isinstance(own.get("memory"), tuple) and not own["memory"]:
        del own["memory"]
    return {n: x for n, x in inputs.items() if n not in names}, own


def check_segment_inputs(
    model: Any, own: dict[str, Any], shape: tuple[Any, ...]
) -> dict[str, Any]:
    """Checks the inputs that concern the memory.

    Args:
        model: `TransformerXL` or `XLNet`.
        own: dict, from `split_inputs`.
        shape: tuple, that of the token ids.

    Returns:
        The dict, with arrays in place of lists.

    Raises:
        ValueError: shapes that do not match the tokens or the model.
    """
    if "document_starts" in own:
        own["document_starts"] = check_mask(
            own["document_starts"],
            shape,
            "document_starts",
            "where a document starts",
        )
        if model.stateful_batch_size is not None and not checks.fits(
            shape[:1], (model.stateful_batch_size,)
        ):
            raise ValueError(
                "`token_ids` must have `stateful_batch_size` rows if "
                "`document_starts` is given, because the memory is carried. "
                f"Received: stateful_batch_size={model.stateful_batch_size}, "
                f"{shape[0]} rows"
            )
    if "memory" in own:
        _check_memory(model, own["memory"], shape[0])
    return own


def as_tensors(parts: dict[str, Any]) -> dict[str, Tensor]:
    """Returns checked inputs as a dict of tensors."""
    parts = parts if isinstance(parts, dict) else {"token_ids": parts}
    return tree.map_structure(ops.convert_to_tensor, parts)


def memory_and_carrier(
    carried: StatefulMemory | None, parts: dict[str, Any]
) -> tuple[Any, StatefulMemory | None]:
    """Returns the memory of a call, and the layer that carries it forward.

    Args:
        carried: `StatefulMemory` of the model, or None.
        parts: dict of tensors, the inputs.

    Returns:
        `SegmentMemory`, or () if there is none; and `carried`, or None if the
        caller passes the memory or there are no `"document_starts"`.
    """
    if "memory" in parts or "document_starts" not in parts:
        carried = None
    if carried is None:
        return parts.get("memory", ()), None
    return carried.read(), carried


def empty_memory(model: Any, rows: int) -> Any:
    """Returns a memory without tokens, or () if M is 0."""
    if not model.memory_length:
        return ()
    return segment_memory.empty(
        rows,
        model.memory_length,
        model.num_layers,
        model.hidden_dim,
        model.compute_dtype,
    )


def document_ids(
    parts: dict[str, Any], memory: SegmentMemory
) -> tuple[Tensor | None, Tensor | None]:
    """Returns the document ids of the tokens and of the memory.

    Args:
        parts: dict of tensors, the inputs.
        memory: `SegmentMemory`, or ().

    Returns:
        int32 (B, T) and int32 (B, M), each None if there are none.
    """
    if "document_starts" not in parts:
        return None, None
    ids = ops.cumsum(ops.cast(parts["document_starts"], "int32"), axis=1)
    if not memory:
        return ids, None
    return ids, ops.zeros_like(memory.token_mask, dtype="int32")


def next_memory(
    memory: SegmentMemory,
    states: Sequence[TensorLike],
    token_ids: TensorLike,
    token_mask: TensorLike | None,
    documents: tuple[Any, Any],
) -> SegmentMemory:
    """Returns the memory after a segment.

    Args:
        memory: `SegmentMemory` before it, or ().
        states: list of float (B, T, D), the inputs of each block.
        token_ids: int32 (B, T).
        token_mask: bool (B, T), or None.
        documents: pair that `document_ids` returned.

    Returns:
        `SegmentMemory`, or ().
    """
    if not memory:
        return ()
    visible = token_mask
    if token_mask is None:
        visible = ops.ones_like(token_ids, dtype="bool")
    visible = ops.concatenate([memory.token_mask, visible], axis=1)
    ids, memory_ids = documents
    if ids is not None:
        # Later segments do not attend past the last document start.
        all_ids = ops.concatenate([memory_ids, ids], axis=1)
        visible = ops.logical_and(visible, ops.equal(all_ids, all_ids[:, -1:]))
    return segment_memory.update(
        memory, states, visible, padded=token_mask is not None
    )


def copy_with_memory(
    model: Any, memory_length: int, stateful_batch_size: int | None
) -> keras.Model:
    """Returns a copy of a model with another memory length.

    Args:
        model: `TransformerXL` or `XLNet`.
        memory_length: int >= 0. M.
        stateful_batch_size: int. B, or None.

    Raises:
        ValueError: an argument is out of range, or the model has weights that
            its constructor does not create.
    """
    config = model.get_config() | {
        "memory_length": memory_length,
        "stateful_batch_size": stateful_batch_size,
    }
    copy = type(model).from_config(config)
    copied, own = (
        {
            weight.path: weight
            for weight in one.weights
            if not weight.path.startswith(f"{_CARRIED}/")
        }
        for one in (copy, model)
    )
    if copied.keys() != own.keys():
        other = sorted(copied.keys() ^ own.keys())
        raise ValueError(
            "`with_memory` needs a model with only the weights that its "
            f"constructor creates. Received: {', '.join(other[:3])}"
        )
    for path, weight in own.items():
        # On JAX the models would share the array, and the next `predict` of one
        # would delete it (as of Keras 3.15.1).
        copied[path].assign(ops.copy(weight.value))
    return copy


def _check_memory(model, memory, rows):
    fits = isinstance(memory, SegmentMemory) and (
        len(memory.states) == model.num_layers
    )
    if fits:
        slots = tuple(memory.token_mask.shape)
        fits = checks.fits(slots[:1], (rows,)) and all(
            checks.fits(tuple(x.shape), (*slots, model.hidden_dim))
            for x in memory.states
        )
    if not fits:
        raise ValueError(
            "`memory` must be returned by `advance` for the same number of "
            f"rows, with {model.num_layers} states of width "
            f"{model.hidden_dim}. "
            f"Received: {type(memory).__name__} for {rows} rows"
        )
