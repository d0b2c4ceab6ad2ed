"""Train on several processes with PyTorch's DistributedDataParallel.

    python examples/distributed/torch_ddp.py

It starts two processes on this machine, each with half of every batch. On
several machines, start one process per device with `torchrun` instead, which
sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT.

With `--fit 1`, Keras's `fit` trains the model, and an interrupted training
resumes; otherwise a short loop does. `--zero 1` splits the state of PyTorch's
Adam between the processes.
"""

import datetime
import os

import shared


def environments(count):
    """Returns the environment variables of processes on this machine."""
    port = str(shared.free_ports(1)[0])
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    common |= {"WORLD_SIZE": str(count), "OMP_NUM_THREADS": "1"}
    return [common | {"RANK": str(rank)} for rank in range(count)]


def whole_loss(total, tokens):
    """Returns the loss of a whole batch, with the gradient of this part of it.

    Args:
        total: float scalar. The sum of the losses of the tokens of this part.
        tokens: int scalar. Its number of tokens; those of the processes differ.
    """
    import torch

    whole = torch.stack([total.detach(), tokens])
    torch.distributed.all_reduce(whole)
    # The gradients are averaged over the processes, not added up.
    own = total * torch.distributed.get_world_size() / whole[1]
    return own + (whole[0] / whole[1] - own).detach()


def train_with_loop(model, data, arguments):
    """Trains with a loop; returns the mean loss of each epoch."""
    import torch
    from torch.distributed.optim import ZeroRedundancyOptimizer

    from keras_attn.training import SequenceCrossentropy

    pad_id = shared.pad_id(arguments)
    loss = SequenceCrossentropy(pad_id=pad_id, reduction="sum")
    parallel = torch.nn.parallel.DistributedDataParallel(model)
    weights = model.trainable_weights
    if arguments.zero:
        optimizer = ZeroRedundancyOptimizer(
            [weight.value for weight in weights], torch.optim.Adam, lr=5e-3
        )
    else:
        optimizer = shared.make_optimizer(arguments)
        optimizer.build(weights)
    losses = []
    for epoch in range(arguments.epochs):
        total, rows = 0.0, 0
        for x, labels in data.to_torch_loader():
            parallel.zero_grad()
            value = loss(labels, parallel(x))
            value = whole_loss(value, (labels != pad_id).sum())
            value.backward()
            with torch.no_grad():
                if arguments.zero:
                    optimizer.step()
                else:
                    gradients = [weight.value.grad for weight in weights]
                    optimizer.apply(gradients, weights)
            # As in `fit`: the mean of the steps, weighted by rows.
            total, rows = total + float(value) * len(labels), rows + len(labels)
        losses.append(total / rows)
        if torch.distributed.get_rank() == 0:
            print(f"epoch {epoch + 1}: loss {losses[-1]:.4f}", flush=True)
    return losses


def train_with_fit(model, data, arguments):
    """Trains with `fit`; returns the mean loss of each epoch."""
    import keras
    import torch

    from keras_attn.training import SequenceCrossentropy

    pad_id = shared.pad_id(arguments)
    # Not an attribute of the Keras model, which would then count, and update,
    # each weight twice.
    module = torch.nn.parallel.DistributedDataParallel(model)

    class Parallel(keras.Model):
        """A model whose gradients are the means over the processes."""

        def __init__(self):
            super().__init__()
            self.model = model
            self.built = True

        def call(self, x):
            return module(x)

        def compute_loss(self, x, y, y_pred, sample_weight=None, training=True):
            value = self.loss(y, y_pred, sample_weight)
            return whole_loss(value, (y != pad_id).sum())

    parallel = Parallel()
    parallel.compile(
        shared.make_optimizer(arguments),
        SequenceCrossentropy(pad_id=pad_id, reduction="sum"),
        jit_compile=False,
    )
    verbose = 2 if torch.distributed.get_rank() == 0 else 0
    losses, backup = shared.fit(parallel, data, arguments, verbose)
    backup.remove()
    return losses


def train(arguments):
    """Trains in one of the processes."""
    os.environ["KERAS_BACKEND"] = "torch"
    import torch

    from keras_attn.training import check_processes_agree

    torch.distributed.init_process_group(
        "nccl" if torch.cuda.is_available() else "gloo",
        timeout=datetime.timedelta(seconds=arguments.timeout),
    )
    group = torch.distributed
    try:
        shard = group.get_rank(), group.get_world_size()
        data = shared.make_data(arguments, shard)
        model = shared.make_model(arguments)
        check_processes_agree(model, data, shared.settings(arguments))
        run = train_with_fit if arguments.fit else train_with_loop
        losses = run(model, data, arguments)
        if group.get_rank() == 0:
            shared.finish(model, losses, arguments)
        group.barrier()
    finally:
        group.destroy_process_group()


if __name__ == "__main__":
    arguments = shared.parse_arguments(__doc__, processes=2, fit=0, zero=0)
    shared.run(train, environments, "RANK", arguments)
