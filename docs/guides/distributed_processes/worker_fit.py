"""`fit` under MultiWorkerMirroredStrategy, with Keras alone.

    python docs/guides/distributed_processes/worker_fit.py

It starts two processes, which print the error that Keras raises.
"""

import json
import os
import socket
import subprocess
import sys

os.environ["KERAS_BACKEND"] = "tensorflow"


def environments():
    """Returns the environment variables of two workers on this machine."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    names = [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]
    for one in sockets:
        one.close()
    tasks = [{"type": "worker", "index": index} for index in range(2)]
    return [
        {
            "TF_CONFIG": json.dumps(
                {"cluster": {"worker": names}, "task": task}
            )
        }
        for task in tasks
    ]


def fit():
    """Fits a dense layer in one of two workers; prints the error."""
    import tensorflow as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    import keras
    import numpy as np

    x, y = np.ones((8, 4), "float32"), np.ones((8, 1), "float32")
    with strategy.scope():
        model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
        model.compile("sgd", "mse")
    try:
        model.fit(x, y, batch_size=4, verbose=0)
    except ValueError as error:
        print(f"fit: {str(error).split(':')[0]}", flush=True)
    else:
        print("fit: no error", flush=True)
    # The other half of the defect, after a build by hand.
    try:
        model.test_on_batch(x, y)
    except ValueError as error:
        print(f"test_on_batch: {str(error).split(' for ')[0]}", flush=True)
    else:
        print("test_on_batch: no error", flush=True)


def main():
    """Starts two workers, or is one of them."""
    if "TF_CONFIG" in os.environ:
        fit()
        return
    workers = [
        subprocess.Popen([sys.executable, __file__], env=os.environ | more)
        for more in environments()
    ]
    for worker in workers:
        worker.wait(timeout=120)


if __name__ == "__main__":
    main()
