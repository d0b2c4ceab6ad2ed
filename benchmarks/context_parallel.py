"""Memory and communication of a training step whose sequences are split.

    python -m benchmarks.context_parallel [--length T] [--devices N ...]

A GPT with rotary positions takes a step of SGD on one long row. XLA compiles
the step for 1, 2, 4 and 8 virtual devices of a CPU and reports the temporary
memory of each device; nothing runs. A device sends what the program passes on
in its rings, in each of as many steps as there are devices.
"""

import argparse
import os
import re

FLAGS = (
    "--xla_force_host_platform_device_count=8",
    # The scheduler would keep more tensors to run more at once
    # (as of JAX 0.10.2).
    "--xla_cpu_enable_concurrency_optimized_scheduler=false",
)
_FLOAT = 4


def main(arguments=None):
    """Prints a table with a row for each number of devices."""
    parser = argparse.ArgumentParser(
        description="Compiles steps of sequences split over devices."
    )
    parser.add_argument("--length", type=int, default=65_536)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--devices", type=int, nargs="+", default=[1, 2, 4, 8])
    options = parser.parse_args(arguments)
    os.environ["KERAS_BACKEND"] = "jax"
    given = os.environ.get("XLA_FLAGS", "")
    os.environ["XLA_FLAGS"] = " ".join((given, *FLAGS))
    print("| devices | temporary memory, MB | times devices | sent, MB |")
    print("| ---: | ---: | ---: | ---: |")
    for devices in options.devices:
        memory, sent = measure(
            devices,
            options.length,
            options.width,
            options.heads,
            options.layers,
        )
        numbers = memory / 1e6, devices * memory / 1e6, sent / 1e6
        cells = " | ".join(f"{number:,.0f}" for number in numbers)
        print(f"| {devices} | {cells} |", flush=True)


def measure(devices, length, width, heads, layers, rows=1):
    """Compiles the training step of a GPT.

    Args:
        devices: int. Devices that split the sequence.
        length: int. T, tokens of the row.
        width: int. D.
        heads: int. N.
        layers: int. Blocks.
        rows: int. B. Default 1.

    Returns:
        Int, bytes of temporary memory per device, and int, bytes that each
        device sends to its neighbor.
    """
    import keras

    import keras_attn

    mesh = keras.distribution.DeviceMesh(
        (1, 1, devices),
        ("batch", "model", "context"),
        keras.distribution.list_devices()[:devices],
    )
    layout_map = keras_attn.models.GPT.get_layout_map(
        mesh, context_parallel_dim_name="context"
    )
    with keras.distribution.ModelParallel(layout_map=layout_map).scope():
        model = keras_attn.models.GPT(
            256,
            num_layers=layers,
            num_heads=heads,
            hidden_dim=width,
            dropout=0.0,
            attention_dropout=0.0,
            position_embedding=None,
            attention_position=keras_attn.layers.RotaryPosition(),
            max_sequence_length=None,
        )
        model.compile(
            keras.optimizers.SGD(), keras_attn.training.SequenceCrossentropy()
        )
        model.optimizer.build(model.trainable_variables)
        program = _training_step(model, rows, length)
    sent = _passed_on(program.as_text()) * devices
    return program.memory_analysis().temp_size_in_bytes, sent


def _training_step(model, rows, length):
    import jax
    import keras
    import numpy as np

    ids = np.ones((rows, length), "int32")
    # The arguments that `fit` passes (as of Keras 3.15.1).
    state = model._get_jax_state(
        trainable_variables=True,
        non_trainable_variables=True,
        optimizer_variables=True,
        metrics_variables=True,
    )
    model._symbolic_build(data_batch=(ids, ids))
    distribution = keras.distribution.distribution()
    ids = keras.distribution.distribute_tensor(
        ids, distribution.get_data_layout(ids.shape)
    )
    step = jax.jit(model.train_step)
    return step.lower(state, (ids, ids, None)).compile()


def _passed_on(text):
    """Returns the bytes that one step of all rings of a program sends."""
    total = 0
    for line in text.splitlines():
        found = re.search(r"= (.*?) collective-permute(?:-start)?\(", line)
        for shape in re.findall(r"\[([\d,]*)\]", found[1]) if found else ():
            size = _FLOAT
            for number in filter(None, shape.split(",")):
                size *= int(number)
            total += size
    return total


if __name__ == "__main__":
    main()
