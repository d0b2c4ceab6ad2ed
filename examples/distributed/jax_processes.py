"""Train with `fit` in several processes of JAX.

    python examples/distributed/jax_processes.py

It starts two processes on this machine, each with half of every batch. On
several machines, start the program on each of them, with JAX_PROCESS_ID from 0,
JAX_NUM_PROCESSES, and JAX_COORDINATOR_ADDRESS, a host and port of process 0. A
process uses all its devices. An interrupted training resumes.
"""

import os

import shared


def environments(count):
    """Returns the environment variables of processes on this machine."""
    common = {
        "JAX_COORDINATOR_ADDRESS": f"127.0.0.1:{shared.free_ports(1)[0]}",
        "JAX_NUM_PROCESSES": str(count),
    }
    return [common | {"JAX_PROCESS_ID": str(i)} for i in range(count)]


def train(arguments):
    """Trains in one of the processes."""
    os.environ["KERAS_BACKEND"] = "jax"
    # The time limit of an exchange between CPUs.
    limit = f"--xla_cpu_collective_timeout_seconds={arguments.timeout}"
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {limit}"
    import jax

    # Before anything else uses JAX. A service ends all processes if one of them
    # is not heard of for this time.
    jax.distributed.initialize(
        os.environ["JAX_COORDINATOR_ADDRESS"],
        int(os.environ["JAX_NUM_PROCESSES"]),
        int(os.environ["JAX_PROCESS_ID"]),
        initialization_timeout=arguments.timeout,
        heartbeat_timeout_seconds=arguments.timeout,
        shutdown_timeout_seconds=arguments.timeout,
    )
    import keras

    from keras_attn.training import SequenceCrossentropy, check_processes_agree

    index = jax.process_index()
    shard = index, jax.process_count()
    data = shared.make_data(arguments, shard, jax.local_device_count())
    # First, because the creation of a model waits for that of the others.
    check_processes_agree(data=data, settings=shared.settings(arguments))
    # Each process passes its own part of a batch to `fit`.
    keras.distribution.set_distribution(
        keras.distribution.DataParallel(auto_shard_dataset=False)
    )
    model = shared.make_model(arguments)
    model.compile(
        shared.make_optimizer(arguments),
        SequenceCrossentropy(pad_id=shared.pad_id(arguments)),
    )
    losses, backup = shared.fit(model, data, arguments, 0 if index else 2)
    # With it, Keras creates variables on all processes when it saves.
    keras.distribution.set_distribution(None)
    if index == 0:
        shared.finish(model, losses, arguments)
    backup.remove()
    jax.distributed.shutdown()


if __name__ == "__main__":
    arguments = shared.parse_arguments(__doc__, processes=2)
    shared.run(train, environments, "JAX_PROCESS_ID", arguments)
