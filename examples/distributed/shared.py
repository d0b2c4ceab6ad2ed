"""What the programs of this folder share: options, task, processes.

The task is to reverse numbers, with a small Transformer, or to continue them,
with a GPT. All programs train on the same batches, so that their results can be
compared.
"""

import argparse
import os
import pathlib
import socket
import subprocess
import sys
import time

VOCABULARY_SIZE = 13  # 3 special tokens and 10 digits
BATCH_ROWS, EPOCHS = 16, 8


class Digits:
    """A tokenizer of numbers."""

    pad_id, start_id, end_id, vocabulary_size = 0, 1, 2, VOCABULARY_SIZE

    def encode(self, texts):
        """Returns the ids of texts of digits."""
        return [[int(digit) + 3 for digit in text] for text in texts]


def parse_arguments(description, **defaults):
    """Returns the arguments of the command line.

    Args:
        description: str. The docstring of the program.
        **defaults: further options, all int, and their default values.
    """
    style = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        description=description, formatter_class=style
    )
    add = parser.add_argument
    for name, value in defaults.items():
        add(f"--{name}", type=int, default=value, help=f"default {value}")
    add("--model", choices=["transformer", "gpt"], default="transformer")
    add("--optimizer", choices=["adam", "sgd"], default="adam")
    add("--epochs", type=int, default=EPOCHS, help=f"default {EPOCHS}")
    add("--seed", type=int, default=1, help="random seed")
    text = "seconds after which a process that waits for others stops"
    add("--timeout", type=int, default=120, help=text)
    out = pathlib.Path("runs/distributed")
    add("--out", type=pathlib.Path, default=out, help="model folder")
    return parser.parse_args()


def make_data(arguments, shard=(0, 1), devices=1):
    """Returns the batches of a process: equally many for each device.

    Args:
        arguments: of the command line.
        shard: tuple (index, count) of this process.
        devices: int. Devices of each process.
    """
    import numpy as np

    from keras_attn import text

    random = np.random.default_rng(arguments.seed)
    lengths = random.integers(2, 9, 150)
    numbers = ["".join(map(str, random.integers(0, 10, n))) for n in lengths]
    if arguments.model == "gpt":
        ids = Digits().encode(["".join(numbers)])[0]
        return text.token_blocks(
            ids, 8, BATCH_ROWS, seed=arguments.seed, shard=shard
        )
    # The batches are the same for 1, 2 and 4 devices in all.
    rows = max(1, 4 // shard[1])
    return text.token_batches(
        numbers,
        [number[::-1] for number in numbers],
        Digits(),
        tokens_per_batch=9 * BATCH_ROWS,
        buckets=2,
        rows_multiple_of=max(rows, devices),
        seed=arguments.seed,
        shard=shard,
    )


def make_model(arguments):
    """Returns a Transformer or a GPT."""
    import keras

    from keras_attn import models

    keras.utils.set_random_seed(arguments.seed)
    size = {"num_layers": 1, "num_heads": 2, "hidden_dim": 32}
    size |= {"intermediate_dim": 64, "max_sequence_length": 16, "dropout": 0.0}
    if arguments.model == "gpt":
        return models.GPT(
            VOCABULARY_SIZE, pad_id=None, attention_dropout=0.0, **size
        )
    return models.Transformer(VOCABULARY_SIZE, **size)


def make_optimizer(arguments):
    """Returns Adam, or SGD with momentum."""
    import keras

    if arguments.optimizer == "sgd":
        return keras.optimizers.SGD(0.1, momentum=0.9)
    return keras.optimizers.Adam(5e-3)


def pad_id(arguments):
    """Returns the label of padding."""
    return -1 if arguments.model == "gpt" else 0


def settings(arguments):
    """Returns the options in which all processes must agree."""
    return {
        name: value
        for name, value in vars(arguments).items()
        if isinstance(value, (int, str)) and name != "timeout"
    }


def fit(model, data, arguments, verbose=2):
    """Trains a compiled model with `fit`, or resumes its training.

    Args:
        model: compiled `keras.Model`.
        data: of `make_data`.
        arguments: of the command line.
        verbose: int, as in `fit`.

    Returns:
        The mean loss of each epoch, and the `TrainingBackup` to remove once
        the model is saved.
    """
    from keras_attn.training import TrainingBackup

    # It also checks that the processes agree.
    backup = TrainingBackup(
        arguments.out / "backup",
        save_freq=10,
        data=data,
        settings=settings(arguments),
    )
    history = model.fit(
        data,
        epochs=arguments.epochs,
        shuffle=False,  # `data` shuffles itself.
        callbacks=[backup],
        verbose=verbose,
    )
    return history.history["loss"], backup


def finish(model, losses, arguments):
    """Prints the losses, saves the model, and prints the next step.

    Args:
        model: the trained model.
        losses: list of float, one per epoch.
        arguments: of the command line.
    """
    print("losses", " ".join(f"{loss:.6f}" for loss in losses))
    arguments.out.mkdir(parents=True, exist_ok=True)
    path = arguments.out / "model.keras"
    model.save(path)
    print(f"The model is in {path}. Next, on one device and any backend:")
    print("  import keras, keras_attn.models")
    call = "generate([[4, 5, 6, 2]])"
    print(f"  keras.saving.load_model({str(path)!r}, compile=False).{call}")


def run(train, environments, variable, arguments):
    """Starts the processes of a program, or is one of them.

    Args:
        train: function that trains in one of the processes, with `arguments`.
        environments: function that returns the environment variables of a
            number of processes on this machine.
        variable: str. The environment variable that each process has.
        arguments: of the command line, with the number of `processes`.
    """
    if variable in os.environ:
        train(arguments)
    else:
        start_processes(environments(arguments.processes))


def start_processes(environments):
    """Runs this program in several processes, until all of them have ended.

    If one fails, the others are stopped: they would wait for it.

    Args:
        environments: list of dict. Environment variables of each process.
    """
    processes = [
        subprocess.Popen(
            [sys.executable, *sys.argv], env=os.environ | environment
        )
        for environment in environments
    ]
    try:
        while any(process.poll() is None for process in processes):
            failed = [p for p in processes if p.poll()]
            if failed:
                # The others may be about to print why they fail, too.
                time.sleep(2)
                break
            time.sleep(0.05)
    finally:
        for process in processes:
            process.kill()
            process.wait()
    codes = [process.returncode for process in processes]
    if any(codes):
        sys.exit(f"{sys.argv[0]}: the processes ended with status {codes}")


def free_ports(count):
    """Returns ports of this machine that no program uses."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports
