"""Computes memory and communication of a training step per device.

The weights are split as by `get_layout_map`, over `model` devices; `data`
groups of these devices share the rows of a batch. Prints the tables of the guide
on many devices:

    python docs/guides/distributed_memory.py
"""

import dataclasses

# Bytes of a float32 number, and of a bfloat16 one.
FLOAT, HALF = 4, 2


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sizes:
    """Sizes of a model.

    Args:
        num_heads: int. N.
        hidden_dim: int. D.
        intermediate_dim: int. F.
        vocabulary_size: int. V of each matrix of a vocabulary.
        num_layers: int. Blocks with self-attention only.
        num_decoder_layers: int. Blocks with cross-attention too.
        num_key_value_heads: int. K. Default None: N.
        vocabularies: int. Matrices V x D.
        vocabulary_uses: int. Lookups and logits that use these matrices.
        positions: int. Rows of learned position tables.
        final_norms: int. Norms after the stacks.
    """

    num_heads: int
    hidden_dim: int
    intermediate_dim: int
    vocabulary_size: int
    num_layers: int
    num_decoder_layers: int = 0
    num_key_value_heads: int | None = None
    vocabularies: int = 1
    vocabulary_uses: int = 1
    positions: int = 0
    final_norms: int = 0


def parameters(sizes, model=1):
    """Returns the number of parameters on each device.

    Args:
        sizes: `Sizes`.
        model: int. Devices that the weights are split over.
    """
    width, inner = sizes.hidden_dim, sizes.intermediate_dim
    head = width // sizes.num_heads
    keys = (sizes.num_key_value_heads or sizes.num_heads) * head
    # With fewer key and value heads than devices, each device has all of them.
    key_devices = model if keys >= model * head else 1
    attention = (
        (2 * width * width + width) // model  # queries and output
        + 2 * (width * keys + keys) // key_devices
        + width  # bias of the output
    )
    feed_forward = (2 * width * inner + inner) // model + width
    norm = 2 * width
    block = attention + feed_forward + 2 * norm
    return (
        sizes.num_layers * block
        + sizes.num_decoder_layers * (block + attention + norm)
        + sizes.vocabularies * sizes.vocabulary_size * width // model
        + sizes.positions * width
        + sizes.final_norms * norm
    )


def training_bytes(sizes, model=1, moments=2):
    """Returns the bytes of weights, gradients and optimizer on each device.

    All are float32, in mixed precision too.

    Args:
        sizes: `Sizes`.
        model: int. Devices that the weights are split over.
        moments: int. Numbers that the optimizer keeps per parameter: 2 for
            Adam, 1 for SGD with momentum.

    Returns:
        Dict of int: `"weights"`, `"gradients"`, `"optimizer"`.
    """
    weights = FLOAT * parameters(sizes, model)
    return {
        "weights": weights,
        "gradients": weights,
        "optimizer": moments * weights,
    }


def cache_bytes(sizes, rows, length, data=1, model=1, number=HALF):
    """Returns the bytes of cached keys and values on each device.

    Args:
        sizes: `Sizes`; the blocks of a decoder if it has any, else all.
        rows: int. Sequences, of all devices together; with beam search, beams.
        length: int. Slots per sequence.
        data: int. Groups of devices that share the rows.
        model: int. Devices in each group.
        number: int. Bytes per number.
    """
    heads = sizes.num_key_value_heads or sizes.num_heads
    heads = heads // model if heads >= model else heads
    head = sizes.hidden_dim // sizes.num_heads
    layers = sizes.num_decoder_layers or sizes.num_layers
    return rows // data * length * 2 * layers * heads * head * number


def sums(sizes):
    """Returns how often a step sums activations (rows, T, D) over `model`.

    Forward, each attention and each feed-forward network sums its output, and
    a lookup in a split vocabulary is a sum. Backward, the gradient of each
    input of a split matrix is a sum; XLA on a CPU sums those of queries, keys
    and values separately, where Megatron-LM sums once.
    """
    attentions = sizes.num_layers + 2 * sizes.num_decoder_layers
    feed_forward = sizes.num_layers + sizes.num_decoder_layers
    lookups = 2 if sizes.num_decoder_layers else 1
    return 4 * attentions + 2 * feed_forward + lookups + 1


def communication_bytes(sizes, tokens, data=1, model=1, number=HALF):
    """Returns the bytes that each device sends in a training step.

    A sum over n devices in a ring sends 2 (n - 1) / n times its size.

    Args:
        sizes: `Sizes`.
        tokens: int. Tokens of the batch, of all devices together; for an
            encoder-decoder, of each side.
        data: int. Groups of devices that share the rows.
        model: int. Devices in each group.
        number: int. Bytes per number of an activation.

    Returns:
        Dict of int: `"activations"`, summed over `model`; `"gradients"`, summed
        over `data`.
    """
    activation = tokens // data * sizes.hidden_dim * number
    return {
        "activations": _ring(model, sums(sizes) * activation),
        "gradients": _ring(data, FLOAT * summed_gradients(sizes, model)),
    }


def summed_gradients(sizes, model=1):
    """Returns the number of gradients that each device sums over `data`.

    XLA on a CPU sums those of each use of a matrix separately.
    """
    uses = sizes.vocabulary_uses - sizes.vocabularies
    matrix = sizes.vocabulary_size * sizes.hidden_dim // model
    return parameters(sizes, model) + uses * matrix


def _ring(devices, size):
    return 2 * (devices - 1) * size // devices


TRANSFORMER_BIG = Sizes(
    num_heads=16,
    hidden_dim=1024,
    intermediate_dim=4096,
    vocabulary_size=37_000,
    num_layers=6,
    num_decoder_layers=6,
    vocabulary_uses=3,
)
GPT_1B = Sizes(
    num_heads=16,
    hidden_dim=2048,
    intermediate_dim=8192,
    vocabulary_size=50_304,
    num_layers=24,
    positions=2048,
    final_norms=1,
    vocabulary_uses=2,
)
GPT_7B = dataclasses.replace(
    GPT_1B,
    num_heads=32,
    hidden_dim=4096,
    intermediate_dim=16_384,
    num_layers=32,
)
MODELS = {
    "Transformer big": TRANSFORMER_BIG,
    "GPT, 1.3 billion": GPT_1B,
    "GPT, 6.7 billion": GPT_7B,
}
MESHES = (1, 1), (8, 1), (4, 2), (2, 4), (1, 8), (8, 8)
TOKENS = 8 * 8 * 1024
# A batch of 32 sources with 4 beams.
BEAMS = 4
ROWS, SLOTS = 32 * BEAMS, 1024


def table():
    """Returns the lines of a Markdown table."""
    lines = [
        "| model | mesh | weights | gradients | Adam | sum | sent for "
        "activations | sent for gradients |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, sizes in MODELS.items():
        for data, model in MESHES:
            memory = training_bytes(sizes, model)
            sent = communication_bytes(sizes, TOKENS, data, model)
            numbers = [*memory.values(), sum(memory.values()), *sent.values()]
            cells = [f"{number / 1e9:.2f}" for number in numbers]
            row = " | ".join([name, f"{data} x {model}", *cells])
            lines.append(f"| {row} |")
    return lines


def cache_table():
    """Returns the lines of a Markdown table of caches."""
    meshes = [f"{data} x {model}" for data, model in MESHES]
    lines = [
        f"| model | {' | '.join(meshes)} |",
        f"| --- |{' --- |' * len(meshes)}",
    ]
    for name, sizes in MODELS.items():
        cells = []
        for data, model in MESHES:
            number = cache_bytes(sizes, ROWS, SLOTS, data, model)
            if sizes.num_decoder_layers:
                # The projected source, once for all beams.
                rows = ROWS // BEAMS
                number += cache_bytes(sizes, rows, SLOTS, data, model)
            cells.append(f"{number / 1e9:.2f}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


if __name__ == "__main__":
    print(*table(), "", *cache_table(), sep="\n")
