"""Training and generation on eight virtual devices, in a process of its own."""

import contextlib
import io
import os
import pathlib
import pickle
import re
import signal
import tempfile
from unittest import mock

import keras
import numpy as np

from keras_attn import decoding, models, pretrained, training
from keras_attn.backend import programs_of
from keras_attn.decoding import loop
from keras_attn.models import chunked_loss
from tests.helpers import examples

MESHES = (8, 1), (4, 2), (2, 4), (1, 8)
VOCABULARY = 64
TRANSFORMER = {
    "num_layers": 1,
    "num_heads": 8,
    "hidden_dim": 16,
    "intermediate_dim": 32,
}
GPT = {
    "num_layers": 2,
    "num_key_value_heads": 2,
    "max_sequence_length": 96,
}
# Sizes that the checkpoints of Hugging Face have.
CHECKPOINT = {**TRANSFORMER, "max_sequence_length": 8, "pad_id": None}
STRATEGIES = {
    "greedy": decoding.GreedySearch(),
    "beam": decoding.BeamSearch(num_beams=4),
    "sample": decoding.Sampling(temperature=0.7, seed=3),
}
NEW_TOKENS = 8


def mesh_of(rows, split):
    """Returns a mesh of virtual devices."""
    devices = keras.distribution.list_devices()
    return keras.distribution.DeviceMesh(
        (rows, split), ("batch", "model"), devices[: rows * split]
    )


def distribution_of(model_class, mesh, **kwargs):
    """Returns the distribution over a mesh, or None for one device."""
    if mesh is None:
        return None
    if mesh == "data":
        return keras.distribution.DataParallel(
            devices=keras.distribution.list_devices()
        )
    layout_map = model_class.get_layout_map(mesh_of(*mesh), **kwargs)
    return keras.distribution.ModelParallel(layout_map=layout_map)


class Batches(keras.utils.PyDataset):
    """Ten batches of pairs, with padding and rows of padding only."""

    def __init__(self):
        super().__init__()
        self.batches = [self._batch(i) for i in range(10)]

    def _batch(self, i):
        # One shape: each would be compiled for every mesh.
        random = np.random.default_rng(i)
        source, target = random.integers(
            3, VOCABULARY, (2, 16, 5), dtype="int32"
        )
        source[::3, 3:] = 0
        labels = np.roll(target, -1, axis=1)
        target[:, 0] = 1
        labels[::2, 2:] = 0
        # Rows that make the batch divisible.
        source[13:], target[13:], labels[13:] = 0, 0, 0
        return (source, target), labels

    def __len__(self):
        return len(self.batches)

    def __getitem__(self, i):
        return self.batches[i]


def padded_rows():
    """Returns five rows of ids with padding."""
    random = np.random.default_rng(1)
    ids = random.integers(3, VOCABULARY, (5, 9), dtype="int32")
    ids[::3, 7:] = 0
    return ids


class LastBatch(Batches):
    """The last batch has fewer rows."""

    def __getitem__(self, i):
        batch = self.batches[i]
        return keras.tree.map_structure(lambda x: x[:7] if i == 9 else x, batch)


def transformer():
    """Returns a model with the same weights on every mesh."""
    keras.utils.set_random_seed(0)
    return models.Transformer(VOCABULARY, dropout=0.0, **TRANSFORMER)


def gpt(**sizes):
    """Returns a model with the same weights on every mesh."""
    keras.utils.set_random_seed(0)
    return models.GPT(VOCABULARY, **{**TRANSFORMER, **sizes})


def fitted(model, batches, *callbacks, epochs=2):
    """Trains for ten steps an epoch; returns the loss of each epoch."""
    history = model.fit(
        batches, epochs=epochs, shuffle=False, callbacks=callbacks, verbose=0
    )
    return history.history["loss"]


def trained(optimizer, *callbacks):
    """Trains a Transformer; returns it and the losses of two epochs."""
    model = transformer()
    model.compile(optimizer, training.SequenceCrossentropy())
    return model, fitted(model, Batches(), *callbacks)


def sgd(**kwargs):
    return keras.optimizers.SGD(0.1, momentum=0.9, **kwargs)


def arrays(variables):
    return [keras.ops.convert_to_numpy(variable) for variable in variables]


def generated(model, inputs, names):
    """Returns the tokens and scores of strategies."""
    return {
        name: model.generate(inputs, NEW_TOKENS, STRATEGIES[name])[:2]
        for name in names
    }


def device_bytes(tensors):
    """Returns the bytes on the first device, of tensors or variables."""
    first = 0
    for tensor in tensors:
        value = getattr(tensor, "value", tensor)
        for shard in value.addressable_shards:
            if shard.device.id == 0:
                first += shard.data.nbytes
    return first


def state_bytes(model):
    """Returns the bytes of weights and of moments on the first device."""
    moments = [
        variable
        for variable in model.optimizer.variables
        if variable.shape and "learning_rate" not in variable.path
    ]
    return device_bytes(model.weights), device_bytes(moments)


def cache_bytes(model, inputs, strategy):
    """Returns the bytes of keys and values on the first device."""
    import jax

    from keras_attn.decoding.row_batches import taken

    programs = programs_of(model, model.variables)
    search = loop.Search(strategy, model, NEW_TOKENS, programs)
    sources = model.read_sources(inputs)
    count = len(keras.tree.flatten(sources)[0])
    sources = taken(sources, np.arange(count), model.pad_id)
    start = jax.jit(search.start)
    state, memory, _ = start(sources)
    caches = state.state.hypothesis, memory
    return device_bytes(
        leaf
        for leaf in jax.tree_util.tree_leaves(caches)
        if len(leaf.shape) == 4 and leaf.dtype.kind == "f"
    )


def train_step(model, batch):
    """Returns the compiled training step of a model, and its arguments."""
    import jax

    # The arguments that `fit` passes (as of Keras 3.15.1).
    state = model._get_jax_state(
        trainable_variables=True,
        non_trainable_variables=True,
        optimizer_variables=True,
        metrics_variables=True,
    )
    model._symbolic_build(data_batch=batch)
    batch = keras.tree.map_structure(_sharded, batch)
    arguments = state, (*batch, None)
    return jax.jit(model.train_step).lower(*arguments).compile(), arguments


def _sharded(array):
    distribution = keras.distribution.distribution()
    return keras.distribution.distribute_tensor(
        array, distribution.get_data_layout(array.shape)
    )


def all_reduced(text, group_size):
    """Returns the floats that a program sums over groups of devices."""
    total = 0
    for line in text.splitlines():
        found = re.search(r"= (.*?) all-reduce(?:-start)?\(", line)
        if found and _group_size(line) == group_size:
            for shape in re.findall(r"f32\[([\d,]*)\]", found[1]):
                total += int(np.prod([int(n) for n in shape.split(",") if n]))
    return total


def _group_size(line):
    found = re.search(r"replica_groups=\[(\d+),(\d+)\]", line)
    if found:
        return int(found[2])
    found = re.search(r"replica_groups=\{\{([\d,]*)\}", line)
    if found:
        return found[1].count(",") + 1
    # mesh['a'=2,'b'=4] {'b'}
    sizes = dict(re.findall(r"'(\w+)'=(\d+)", line))
    names = re.search(r"replica_groups=mesh\[.*? \{('[^}]*)\}", line)[1]
    sizes = [int(sizes[name]) for name in re.findall(r"'(\w+)'", names)]
    return int(np.prod(sizes))


def sgd_runs():
    """Trains on one device and on every mesh; returns losses and weights."""
    found = {}
    for mesh in (None, *MESHES):
        with scope(distribution_of(models.Transformer, mesh)):
            model, losses = trained(sgd())
            if mesh == (2, 4):
                step, _ = train_step(model, Batches()[0])
                found["program"] = step.as_text()
        found[mesh] = losses, arrays(model.weights)
        if mesh:
            found[mesh, "bytes"] = state_bytes(model)
    return found


class Recorder(keras.callbacks.Callback):
    """Records the batches of the last epoch, and may kill its process."""

    def __init__(self, kill_after=None):
        super().__init__()
        self.kill_after, self.epoch, self.batches = kill_after, None, None

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch, self.batches = epoch, []

    def on_train_batch_end(self, batch, logs=None):
        self.batches.append(batch)
        if self.kill_after == (self.epoch, batch):
            os.kill(os.getpid(), signal.SIGKILL)


def resumable(folder, recorder):
    """Trains with a backup."""
    return trained(
        sgd(), training.TrainingBackup(folder, [recorder], save_freq=7)
    )


def killed_run(folder):
    """Trains on 2 x 4 devices, and is killed after batch 5 of epoch 1."""
    use_eight_devices()
    with scope(distribution_of(models.Transformer, (2, 4))):
        resumable(folder, Recorder(kill_after=(1, 5)))


def file_runs(backup):
    """Resumes on another mesh; writes files and reads them on others."""
    found = {}
    folder = pathlib.Path(tempfile.mkdtemp())
    with scope(distribution_of(models.Transformer, (4, 2))):
        recorder = Recorder()
        model, losses = resumable(backup, recorder)
        found["resumed"] = losses, arrays(model.weights)
        found["batches"] = recorder.batches
        found["resumed", "bytes"] = state_bytes(model)
        model.save(folder / "model.keras")
    for mesh in None, (1, 8):
        with scope(distribution_of(models.Transformer, mesh)):
            model = keras.models.load_model(folder / "model.keras")
            found["loaded", mesh] = arrays(model.weights)
            if mesh:
                found["loaded", "bytes"] = device_bytes(model.weights)
    with scope(distribution_of(models.GPT, (2, 4))):
        model = models.GPT(VOCABULARY, **CHECKPOINT)
        found["gpt"] = arrays(model.weights)
        pretrained.save(model, folder / "gpt")
    for mesh in None, (4, 2):
        with scope(distribution_of(models.GPT, mesh)):
            model = pretrained.load(folder / "gpt")
            found["gpt", mesh] = arrays(model.weights)
    return found


class Rows(keras.utils.PyDataset):
    """Ten batches for a GPT, with padding."""

    def __len__(self):
        return 10

    def __getitem__(self, i):
        random = np.random.default_rng(i)
        ids = random.integers(3, VOCABULARY, (17, 6), dtype="int32")
        ids[::3, 4:] = 0
        return ids[1:], ids[:-1]


def adam_runs():
    """Trains with Adam and dropout: on one device once, on each mesh twice."""
    found = {}
    for mesh in (None, *MESHES):
        with scope(distribution_of(models.GPT, mesh)):
            model = gpt(dropout=0.2)
            model.compile(
                keras.optimizers.Adam(1e-3), training.SequenceCrossentropy()
            )
            model.optimizer.build(model.trainable_variables)
            # With the state of the seeds of dropout.
            variables = model.variables + model.optimizer.variables
            start = arrays(variables)
            for run in range(2 if mesh else 1):
                for variable, value in zip(variables, start, strict=True):
                    variable.assign(value)
                losses = fitted(model, Rows())
                found[mesh, run] = losses, arrays(model.weights)
            logits = model.predict(Rows()[0][0], batch_size=16, verbose=0)
            found[mesh, "logits"] = losses, logits
    return found


def chunked_runs():
    """Trains with a loss that never holds all logits, and accumulates."""
    found = {}
    loss, name = training.SequenceCrossentropy, "of_hidden_states"
    chunked = mock.patch.object(
        loss, name, autospec=True, side_effect=getattr(loss, name)
    )
    for mesh in None, (2, 4):
        chunked_loss.LEAST_VOCABULARY = 1 if mesh else VOCABULARY + 1
        with scope(distribution_of(models.GPT, mesh)), chunked as calls:
            model = gpt()
            optimizer = sgd(gradient_accumulation_steps=2)
            model.compile(optimizer, loss(0.1))
            found[mesh] = fitted(model, Rows()), arrays(model.weights)
            found[mesh, "is chunked"] = calls.called
    found["bytes"] = state_bytes(model)
    return found


def remat_runs():
    """Takes a step without rematerialization, and with it."""
    found = {}
    with scope(distribution_of(models.GPT, (2, 4))):
        for names in (), ["block_0", "block_1"]:
            with keras.RematScope("list_of_layers", layer_names=names):
                model = gpt(
                    num_layers=2,
                    hidden_dim=64,
                    intermediate_dim=256,
                    dropout=0.2,
                )
            model.compile(sgd(), training.SequenceCrossentropy())
            model.optimizer.build(model.trainable_variables)
            ids = np.random.default_rng(0).integers(3, 64, (33, 64), "int32")
            step, arguments = train_step(model, (ids[1:], ids[:-1]))
            logs, variables = step(*arguments)
            found["remat", bool(names)] = (
                [float(logs["loss"])],
                [np.asarray(variable) for variable in variables[0]],
                step.memory_analysis().temp_size_in_bytes,
            )
    return found


def decoding_runs():
    """Generates on one device and under both kinds of distribution."""
    found = {}
    inputs = padded_rows()
    for mesh in None, (2, 4), "data":
        with scope(distribution_of(models.Transformer, mesh)):
            model = transformer()
            names = ["beam"] if mesh == "data" else STRATEGIES
            found["transformer", mesh] = generated(model, inputs, names)
            if mesh:
                rows = np.repeat(inputs[:4], 4, axis=0)
                found["cache", mesh] = cache_bytes(
                    model, rows, STRATEGIES["beam"]
                )
    model = gpt(dropout=0.0, max_sequence_length=32)
    found["two processes"] = model.generate(inputs, NEW_TOKENS, "beam")[:2]
    for mesh in None, (1, 8):
        kwargs = {"num_key_value_heads": 2} if mesh else {}
        with scope(distribution_of(models.GPT, mesh, **kwargs)):
            model = gpt(**GPT)
            found["gpt", mesh] = generated(model, inputs, ["greedy"])
            if mesh:
                found["gpt cache"] = cache_bytes(
                    model, inputs, STRATEGIES["greedy"]
                )
    return found


def two_process_runs(address, index):
    """Generates in one of two processes, which share the rows.

    Args:
        address: str. Host and port of the first process.
        index: int. Of this process.
    """
    import jax

    limit = "--xla_cpu_collective_timeout_seconds=100"
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {limit}"
    # Nothing waits longer than this.
    limits = ("initialization_timeout", "heartbeat_timeout_seconds")
    jax.distributed.initialize(address, 2, index, **dict.fromkeys(limits, 100))
    inputs = padded_rows()
    found = {}
    with keras.distribution.DataParallel(auto_shard_dataset=False).scope():
        model = gpt(dropout=0.0, max_sequence_length=32)
        found["tokens"] = model.generate(inputs, NEW_TOKENS, "beam")[:2]
        # The devices cannot share one row.
        *_, last = model.stream(inputs[:1], NEW_TOKENS, "beam")
        found["streamed"] = last.tokens
        try:
            model.generate(inputs + index, NEW_TOKENS)
        except ValueError as error:
            found["error"] = str(error)
    jax.distributed.shutdown()
    return found


def errors():
    """Returns the messages of errors of a mesh that does not fit."""
    messages = {}

    def message(name, function, *arguments, **kwargs):
        try:
            function(*arguments, **kwargs)
        except ValueError as error:
            messages[name] = str(error)

    with scope(distribution_of(models.GPT, (2, 4))):
        message("other model", transformer)
    with scope(distribution_of(models.Transformer, (4, 2))):
        model = transformer()
        model.compile(sgd(), training.SequenceCrossentropy())
        (source, target), labels = Batches().batches[0]
        pair = source[:10], target[:10]
        message("last batch", model.fit, pair, labels[:10], batch_size=8)
        message("batch size", model.evaluate, pair, labels[:10], batch_size=5)
        message("predict", model.predict, pair)
        message("one batch", model.train_on_batch, pair, labels[:10])
        message(
            "validation",
            model.fit,
            (source, target),
            labels,
            batch_size=8,
            validation_data=(pair, labels[:10]),
        )
        message("data set", model.fit, LastBatch())
        message("later", model.fit, Batches(), validation_data=LastBatch())
        messages["iterations"] = int(model.optimizer.iterations)
    layout_map = keras.distribution.LayoutMap(mesh_of(4, 2))
    layout_map["dense/kernel"] = (None, "model")
    with keras.distribution.ModelParallel(layout_map=layout_map).scope():
        message("no rule", transformer)
    layout_map[".*feed_forward/inner/kernel"] = (None, "model")
    with keras.distribution.ModelParallel(layout_map=layout_map).scope():
        transformer()
    return messages


def context_runs():
    """Trains and generates with sequences split over devices, and without."""
    found = {}
    # The GPT computes its loss in chunks.
    chunked_loss.LEAST_VOCABULARY = VOCABULARY
    ids = np.random.default_rng(0).integers(3, VOCABULARY, (4, 18), "int32")
    ids[0, 12:], ids[1, :4] = 0, 0
    devices = keras.distribution.list_devices()
    mesh = keras.distribution.DeviceMesh(
        (2, 2, 2), ("batch", "context", "model"), devices
    )
    layout_map = models.GPT.get_layout_map(
        mesh, num_key_value_heads=2, context_parallel_dim_name="context"
    )
    split = keras.distribution.ModelParallel(layout_map=layout_map)
    for name, make in (("gpt", windowed_gpt), ("encoder", tagger)):
        for distribution in (None, split):
            with scope(distribution):
                keras.utils.set_random_seed(0)
                model = make()
                model.compile(sgd(), training.SequenceCrossentropy())
                history = model.fit(
                    ids[:, :16], ids[:, 1:17], epochs=2, verbose=0
                )
                key = name, distribution is not None
                found[key] = history.history["loss"], arrays(model.weights)
                if name == "gpt":
                    # 3 tokens, and one at a time: not split.
                    found["tokens", key[1]] = generated(
                        model, ids[2:, :3], ["greedy"]
                    )["greedy"]
                if key == ("gpt", True):
                    before = int(model.optimizer.iterations)
                    try:
                        model.fit(ids[:, :17], ids[:, 1:], verbose=0)
                    except ValueError as error:
                        found["error"] = str(error)
                    found["steps"] = int(model.optimizer.iterations) - before
                    found["after"] = arrays(model.weights)
    return found


def windowed_gpt():
    return models.GPT(
        VOCABULARY,
        **GPT | {"num_layers": 1},
        dropout=0.0,
        attention_dropout=0.0,
        sliding_window=5,
    )


def tagger():
    inputs = keras.Input((None,), dtype="int32")
    encoder = models.Encoder(VOCABULARY, dropout=0.0, **TRANSFORMER)
    outputs = keras.layers.Dense(VOCABULARY)(encoder(inputs))
    return keras.Model(inputs, outputs)


def scope(distribution):
    """Returns a context with a distribution, or without one."""
    return distribution.scope() if distribution else contextlib.nullcontext()


def use_eight_devices():
    """Makes JAX start with eight virtual devices.

    Its scheduler for processors keeps more tensors to run more at once, unless
    that is turned off (as of JAX 0.10.2).
    """
    os.environ["XLA_FLAGS"] = " ".join(
        (
            os.environ.get("XLA_FLAGS", ""),
            "--xla_force_host_platform_device_count=8",
            "--xla_cpu_enable_concurrency_optimized_scheduler=false",
        )
    )


def write(path, function, *arguments):
    """Writes what a function of this module returns."""
    # Two processes have a device each.
    if function is not two_process_runs:
        use_eight_devices()
    with open(path, "wb") as file:
        pickle.dump(function(*arguments), file)


def run_guide(path):
    """Runs the code of a guide; prints documented and printed lines."""
    use_eight_devices()
    names = {"__name__": "__main__"}
    for code in examples.blocks("python", path.read_text("utf-8")):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(path), "exec"), names)
        assert printed.getvalue().splitlines() == examples.said(code), code
