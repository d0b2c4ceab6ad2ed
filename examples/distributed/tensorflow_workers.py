"""Train in several processes with TensorFlow's MultiWorkerMirroredStrategy.

    python examples/distributed/tensorflow_workers.py

It starts two processes on this machine, each with half of every batch. On
several machines, start one process per device with TF_CONFIG set. A short loop
trains the model, because `fit` cannot. An interrupted training resumes after
the last epoch.
"""

import faulthandler
import json
import os

import shared


def environments(count):
    """Returns the environment variables of processes on this machine."""
    ports = shared.free_ports(count)
    workers = {"worker": [f"127.0.0.1:{port}" for port in ports]}
    return [
        {
            "TF_CONFIG": json.dumps(
                {"cluster": workers, "task": {"type": "worker", "index": i}}
            )
        }
        for i in range(count)
    ]


def make_strategy(timeout):
    """Returns the strategy of this process."""
    import tensorflow as tf

    options = tf.distribute.experimental.CommunicationOptions(
        timeout_seconds=timeout
    )
    strategy = tf.distribute.MultiWorkerMirroredStrategy(
        communication_options=options
    )
    workers = strategy.cluster_resolver.cluster_spec().num_tasks("worker")
    if strategy.num_replicas_in_sync != workers:
        raise ValueError("Each process must see one device.")
    return strategy


def make_step(strategy, model, loss, signature):
    """Returns a function that trains on a batch and returns its loss.

    Args:
        strategy: the strategy of this process.
        model: compiled `keras.Model`, made in the scope of the strategy.
        loss: `SequenceCrossentropy`.
        signature: tuple, the specs of inputs and labels.
    """
    import tensorflow as tf

    def step(x, labels):
        with tf.GradientTape() as tape:
            # The mean over the tokens of all processes, divided by their
            # number. The optimizer adds up the gradients.
            value = loss(labels, model(x, training=True))
        weights = model.trainable_weights
        gradients = tape.gradient(value, [weight.value for weight in weights])
        model.optimizer.apply(gradients, weights)
        return value

    # For all lengths, so that TensorFlow traces the model once.
    @tf.function(input_signature=signature)
    def run(x, labels):
        losses = strategy.run(step, (x, labels))
        return strategy.reduce("SUM", losses, axis=None)

    return run


def last_checkpoint(folder):
    """Returns the newest checkpoint and its number of epochs."""
    paths = sorted(folder.glob("after-*-epochs.keras"))
    if not paths:
        return None, 0
    return paths[-1], int(paths[-1].name.split("-")[1])


def save_checkpoint(model, folder, epochs):
    """Saves the model and its optimizer, and removes older checkpoints."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"after-{epochs:06d}-epochs.keras"
    # A process that dies while it writes leaves no incomplete checkpoint.
    partial = folder / "partial.keras"
    model.save(partial)
    os.replace(partial, path)
    for other in folder.glob("after-*-epochs.keras"):
        if other != path:
            other.unlink()


def train(arguments):
    """Trains in one of the processes."""
    os.environ["KERAS_BACKEND"] = "tensorflow"
    # TensorFlow itself waits for missing processes without a limit.
    faulthandler.dump_traceback_later(arguments.timeout, exit=True)
    strategy = make_strategy(arguments.timeout)
    import keras

    from keras_attn.training import SequenceCrossentropy, check_processes_agree

    index = strategy.cluster_resolver.task_id
    shard = index, strategy.num_replicas_in_sync
    folder = arguments.out / "backup"
    path, first_epoch = last_checkpoint(folder)
    data = shared.make_data(arguments, shard)
    data.set_epoch(first_epoch)
    loss = SequenceCrossentropy(pad_id=shared.pad_id(arguments))
    with strategy.scope():
        # First, because the creation of a model waits for that of the others.
        check_processes_agree(data=data, settings=shared.settings(arguments))
        if path is None:
            model = shared.make_model(arguments)
            model.compile(shared.make_optimizer(arguments), loss)
        else:
            print(f"resuming after {first_epoch} epochs ({path})", flush=True)
            model = keras.saving.load_model(path)
        model.optimizer.build(model.trainable_weights)
        check_processes_agree(model)
    batches = data.to_tf_dataset()
    run = make_step(strategy, model, loss, batches.element_spec)
    losses = []
    for epoch in range(first_epoch, arguments.epochs):
        total, rows = 0.0, 0
        for x, labels in batches:
            value = run(x, labels)
            faulthandler.cancel_dump_traceback_later()
            # As in `fit`: the mean of the steps, weighted by rows.
            total, rows = total + value * len(labels), rows + len(labels)
        losses.append(float(total / rows))
        # Outside of the scope: in it, Keras creates variables when it saves,
        # which the other processes would have to create, too.
        if index == 0:
            print(f"epoch {epoch + 1}: loss {losses[-1]:.4f}", flush=True)
            save_checkpoint(model, folder, epoch + 1)
    if index == 0:
        shared.finish(model, losses, arguments)
        for path in folder.glob("*.keras"):
            path.unlink()
    with strategy.scope():
        # The first process serves the others, and ends last.
        check_processes_agree(model)


if __name__ == "__main__":
    arguments = shared.parse_arguments(__doc__, processes=2)
    shared.run(train, environments, "TF_CONFIG", arguments)
