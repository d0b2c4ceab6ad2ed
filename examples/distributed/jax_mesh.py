"""Train a translator on a mesh of devices, with JAX.

    python examples/distributed/jax_mesh.py
    python examples/distributed/jax_mesh.py --mesh 1x8 --data pairs.tsv
    python examples/distributed/jax_mesh.py --mesh data --steps 1000

`--mesh 2x4` splits the rows of a batch between 2 groups of 4 devices, and the
weights between the devices of a group; `--mesh data` splits the rows only. With
fewer devices, the program runs on virtual ones, which share the processor.
`--data` is a file with a source and its translation in each line, separated by
a tab. Without it, the program makes synthetic pairs.
"""

import argparse
import os
import pathlib
import sys

os.environ["KERAS_BACKEND"] = "jax"


def parse_arguments():
    """Returns the arguments of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--mesh", default="2x4", help="groups x devices of a group, or data")
    add("--devices", type=int, default=8, help="for --mesh data")
    add("--data", metavar="FILE", help="pairs of texts")
    add("--pairs", type=int, default=2000, help="synthetic pairs")
    add("--steps", type=int, default=300, help="steps, rounded up to passes")
    add("--tokens", type=int, default=4096, help="tokens of a batch")
    add("--heads", type=int, default=8, help="attention heads")
    add("--width", type=int, default=64, help="features of a token")
    add("--layers", type=int, default=2, help="blocks on each side")
    add("--accumulate", type=int, help="batches per update of the weights")
    add("--remat", action="store_true", help="rematerialize activations")
    add("--out", type=pathlib.Path, help="file for the model, with .keras")
    return parser.parse_args()


def mesh_shape(text, devices):
    """Returns the numbers of groups and of devices of a group.

    Args:
        text: str, such as "2x4", or "data".
        devices: int, for "data".
    """
    if text == "data":
        return devices, 1
    sizes = text.split("x")
    if len(sizes) != 2 or not all(size.isdecimal() for size in sizes):
        sys.exit(f"`--mesh` must be like 2x4, or data. Received: {text}")
    return tuple(map(int, sizes))


def devices_for(count):
    """Returns devices, virtual ones if there are fewer."""
    # Read when JAX starts; has no effect on GPUs.
    flags = os.environ.get("XLA_FLAGS", "")
    os.environ["XLA_FLAGS"] = (
        f"{flags} --xla_force_host_platform_device_count={count}"
    )
    import keras

    devices = keras.distribution.list_devices()
    if len(devices) < count:
        devices = keras.distribution.list_devices("cpu")
    if len(devices) < count:
        sys.exit(
            f"The mesh must have at most {len(devices)} devices. Received: "
            f"{count}"
        )
    return devices[:count]


def set_distribution(arguments):
    """Makes a mesh of devices the one that models and batches are split over.

    Returns:
        The numbers of groups and of devices of a group.
    """
    groups, split = mesh_shape(arguments.mesh, arguments.devices)
    if groups < 1 or split < 1:
        sys.exit(f"`--mesh` must have devices. Received: {arguments.mesh}")
    devices = devices_for(groups * split)
    import keras

    from keras_attn.models import Transformer

    if arguments.mesh == "data":
        distribution = keras.distribution.DataParallel(devices=devices)
    else:
        mesh = keras.distribution.DeviceMesh(
            (groups, split), ("batch", "model"), devices
        )
        try:
            layout_map = Transformer.get_layout_map(
                mesh, num_heads=arguments.heads
            )
        except ValueError as error:
            sys.exit(str(error))
        distribution = keras.distribution.ModelParallel(layout_map=layout_map)
    keras.distribution.set_distribution(distribution)
    print(f"{groups} x {split} devices: {devices[0]} ... {devices[-1]}")
    return groups, split


def read_pairs(arguments):
    """Returns sources and targets, two lists of texts."""
    from keras_attn import datasets

    if arguments.data:
        pairs = datasets.read_tsv_pairs(arguments.data)
    else:
        pairs = datasets.make_translation_pairs(arguments.pairs)
    source, target = zip(*(pair[:2] for pair in pairs), strict=True)
    return list(source), list(target)


def on_first_device(variables):
    """Returns the bytes that the first device has of variables."""
    shards = [variable.value.addressable_shards[0] for variable in variables]
    return sum(shard.data.nbytes for shard in shards)


def main():
    """Trains, translates and saves."""
    arguments = parse_arguments()
    groups, split = set_distribution(arguments)
    import keras

    from keras_attn.models import Transformer
    from keras_attn.text import CharacterTokenizer, token_batches
    from keras_attn.training import SequenceCrossentropy

    keras.utils.set_random_seed(1)
    source, target = read_pairs(arguments)
    tokenizer = CharacterTokenizer.train_from_lines(source + target)
    batches = token_batches(
        source,
        target,
        tokenizer,
        tokens_per_batch=arguments.tokens,
        buckets=2,
        rows_multiple_of=groups,
    )
    # The devices of a group share the vocabulary; the last ids are unused.
    vocabulary_size = -(-tokenizer.vocabulary_size // split) * split
    blocks = [
        f"{side}_block_{i}"
        for side in ("encoder", "decoder")
        for i in range(arguments.layers if arguments.remat else 0)
    ]
    with keras.RematScope("list_of_layers", layer_names=blocks):
        try:
            model = Transformer(
                vocabulary_size,
                num_layers=arguments.layers,
                num_heads=arguments.heads,
                hidden_dim=arguments.width,
                intermediate_dim=4 * arguments.width,
            )
        except ValueError as error:
            sys.exit(str(error))
    optimizer = keras.optimizers.Adam(
        2e-3, gradient_accumulation_steps=arguments.accumulate
    )
    model.compile(optimizer, SequenceCrossentropy())
    optimizer.build(model.trainable_variables)
    print(
        f"{model.count_params():,} parameters; on each device "
        f"{on_first_device(model.variables):,} bytes of weights, "
        f"{on_first_device(optimizer.variables):,} bytes of the optimizer"
    )
    epochs, steps = -(-arguments.steps // len(batches)), len(batches)
    model.fit(
        batches,
        epochs=epochs,
        steps_per_epoch=min(steps, arguments.steps),
        shuffle=False,
        verbose=2,
    )
    ids = [[*tokenizer.encode(text), tokenizer.end_id] for text in source[:3]]
    decoded = model.generate(ids, max_new_tokens=60, strategy="beam")
    for text, tokens in zip(source, decoded.tokens[:, 0], strict=False):
        print(f"{text} -> {tokenizer.decode(tokens)}")
    if arguments.out:
        model.save(arguments.out)
        print(f"saved {arguments.out}; it loads on any mesh and on one device")


if __name__ == "__main__":
    main()
