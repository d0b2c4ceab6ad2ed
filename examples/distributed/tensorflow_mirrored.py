"""Train with `fit` on several devices of one machine with TensorFlow.

    python examples/distributed/tensorflow_mirrored.py

It uses all GPUs, or else divides the CPU into two devices. Each device has a
copy of the model and an equal part of every batch. An interrupted training
resumes.
"""

import os

import shared


def make_strategy(count):
    """Returns a strategy for all GPUs, or for `count` parts of the CPU."""
    import tensorflow as tf

    if tf.config.list_physical_devices("GPU"):
        return tf.distribute.MirroredStrategy()
    # Only possible before TensorFlow is first used.
    cpu = tf.config.list_physical_devices("CPU")[0]
    parts = [tf.config.LogicalDeviceConfiguration()] * count
    tf.config.set_logical_device_configuration(cpu, parts)
    return tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(count)])


def train(arguments):
    """Trains on all devices."""
    os.environ["KERAS_BACKEND"] = "tensorflow"
    from keras_attn.training import SequenceCrossentropy

    strategy = make_strategy(arguments.devices)
    count = strategy.num_replicas_in_sync
    print(f"{count} devices")
    data = shared.make_data(arguments, devices=count)
    with strategy.scope():
        model = shared.make_model(arguments)
        model.compile(
            shared.make_optimizer(arguments),
            SequenceCrossentropy(pad_id=shared.pad_id(arguments)),
        )
    losses, backup = shared.fit(model, data, arguments)
    shared.finish(model, losses, arguments)
    backup.remove()


if __name__ == "__main__":
    train(shared.parse_arguments(__doc__, devices=2))
