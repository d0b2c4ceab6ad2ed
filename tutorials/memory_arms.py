"""Transformer-XL and GPT of as many parameters."""

import keras

from keras_attn.layers import RotaryPosition
from keras_attn.models import GPT, TransformerXL


def build_xl(vocabulary, run, memory, stateful_batch_size=None):
    """Returns an untrained Transformer-XL.

    Args:
        vocabulary: int. V.
        run: settings, with `layers`, `heads`, `width`, `dropout`.
        memory: int. M, characters.
        stateful_batch_size: int. Rows of the batches that it is trained on.

    Returns:
        A `TransformerXL`.
    """
    return TransformerXL(
        vocabulary,
        run.layers,
        run.heads,
        run.width,
        memory_length=memory,
        stateful_batch_size=stateful_batch_size,
        **_shared(run),
    )


def build_gpt(vocabulary, run, parameters):
    """Returns an untrained GPT of nearly as many parameters.

    Positions are rotary and have no weights. What Transformer-XL has in those
    of its distances stands in the feed-forward networks here.

    Args:
        vocabulary: int. V.
        run: settings, with `layers`, `heads`, `width`, `dropout`.
        parameters: int. How many weights it shall have.

    Returns:
        A `GPT`.
    """
    width = run.width
    # Embeddings and the last norm; of a block norms, attention with its biases,
    # the outer bias; then 2 D + 1 for each unit inside the network.
    fixed = vocabulary * width + 2 * width
    block = 4 * width + 4 * width * (width + 1) + width
    inner = (parameters - fixed - run.layers * block) / run.layers
    return GPT(
        vocabulary,
        run.layers,
        run.heads,
        width,
        round(inner / (2 * width + 1)),
        position_embedding=None,
        attention_position=RotaryPosition(),
        max_sequence_length=None,
        **_shared(run),
    )


def reach(layers, memory, segment):
    """Returns how far the last character of a segment looks back at most.

    Each block sees `memory` characters in front of the segment that it is in;
    the block below was in the segment in which the first of them stands.

    Args:
        layers: int. L.
        memory: int. M.
        segment: int. T.

    Returns:
        Int, characters: L M + T - 1 where T divides M.

    Examples:
    >>> reach(3, 32, 8), reach(2, 20, 8)
    (103, 51)
    """
    begin = 0
    for _ in range(layers):
        # The beginning of the segment, and from there the memory.
        begin = -(-begin // segment) * segment + memory
    return begin + segment - 1


def _shared(run):
    return {
        "dropout": run.dropout,
        "attention_dropout": 0.0,
        "activation": keras.activations.gelu,
        "normalize_first": True,
        # Every id is a character: none is padding, none begins or ends a text.
        "pad_id": None,
        "start_id": None,
        "end_id": None,
    }
