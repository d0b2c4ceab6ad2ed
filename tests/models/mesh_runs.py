"""Training and generation on eight virtual devices, in a process of its own."""

import contextlib
import io
import os
import pathlib
import pickle
import re
import tempfile

import keras
import numpy as np

from keras_attn import decoding, models, pretrained, training
from keras_attn.backend import programs_of
from keras_attn.decoding import loop
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
    **TRANSFORMER,
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

    def __init__(self, shapes=2):
        super().__init__()
        self.batches = [self._batch(i, shapes) for i in range(10)]

    def _batch(self, i, shapes):
        random = np.random.default_rng(i)
        rows, length = ((16, 5), (8, 9))[i % shapes]
        source, target = random.integers(
            3, VOCABULARY, (2, rows, length), dtype="int32"
        )
        source[::3, length - 2 :] = 0
        labels = np.roll(target, -1, axis=1)
        target[:, 0] = 1
        labels[::2, length - 3 :] = 0
        # Rows that make the batch divisible.
        source[rows - 3 :], target[rows - 3 :], labels[rows - 3 :] = 0, 0, 0
        return (source, target), labels

    def __len__(self):
        return len(self.batches)

    def __getitem__(self, i):
        return self.batches[i]


def transformer():
    """Returns a model with the same weights on every mesh."""
    keras.utils.set_random_seed(0)
    return models.Transformer(VOCABULARY, dropout=0.0, **TRANSFORMER)


def trained(optimizer, shapes=2, backup=None):
    """Trains a model for 20 steps; returns it and the losses of two epochs."""
    model = transformer()
    model.compile(optimizer, training.SequenceCrossentropy())
    batches = Batches(shapes)
    callbacks = [] if backup is None else [backup]
    history = model.fit(
        batches, epochs=2, shuffle=False, callbacks=callbacks, verbose=0
    )
    return model, history.history["loss"]


def sgd(**kwargs):
    return keras.optimizers.SGD(0.1, momentum=0.9, **kwargs)


def logits_of(model):
    return model.predict(Batches()[0][0], batch_size=16, verbose=0)


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
    state, memory = start(sources)
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


def file_runs():
    """Writes files on one mesh, and reads them on others."""
    found = {}
    folder = pathlib.Path(tempfile.mkdtemp())
    with scope(distribution_of(models.Transformer, (2, 4))):
        backup = training.TrainingBackup(folder / "backup")
        model, _ = trained(sgd(), backup=backup)
        model.save(folder / "model.keras")
        found["written"] = arrays(model.weights)
    _, last = sorted(
        (folder / "backup").glob("after-*"),
        key=lambda path: path.stat().st_mtime_ns,
    )
    last.unlink()
    with scope(distribution_of(models.Transformer, (4, 2))):
        backup = training.TrainingBackup(folder / "backup")
        model, losses = trained(sgd(), backup=backup)
        found["resumed"] = losses, arrays(model.weights)
        found["resumed", "bytes"] = state_bytes(model)
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


def other_runs():
    """Trains with Adam, accumulated gradients, and rematerialization."""
    found = {}
    for mesh in None, (2, 4):
        with scope(distribution_of(models.Transformer, mesh)):
            adam = keras.optimizers.Adam(1e-3, gradient_accumulation_steps=2)
            model, losses = trained(adam, shapes=1)
            found["adam", mesh] = losses, logits_of(model)
            if mesh is not None:
                found["adam", "bytes"] = state_bytes(model)
    with scope(distribution_of(models.GPT, (2, 4))):
        for names in (), [f"block_{i}" for i in range(4)]:
            with keras.RematScope("list_of_layers", layer_names=names):
                keras.utils.set_random_seed(0)
                sizes = {**TRANSFORMER, "hidden_dim": 64, "num_layers": 4}
                sizes["intermediate_dim"] = 256
                model = models.GPT(VOCABULARY, **sizes, dropout=0.2)
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
    sources = Batches().batches[1][0][0][:5]
    for mesh in None, (2, 4), "data":
        with scope(distribution_of(models.Transformer, mesh)):
            model = transformer()
            found["transformer", mesh] = generated(model, sources, STRATEGIES)
            if mesh:
                rows = np.repeat(sources[:4], 4, axis=0)
                found["cache", mesh] = cache_bytes(
                    model, rows, STRATEGIES["beam"]
                )
    for mesh in None, (1, 8):
        kwargs = {"num_key_value_heads": 2} if mesh else {}
        with scope(distribution_of(models.GPT, mesh, **kwargs)):
            keras.utils.set_random_seed(1)
            model = models.GPT(VOCABULARY, **GPT)
            found["gpt", mesh] = generated(model, sources, ["greedy", "beam"])
            if mesh:
                found["gpt cache"] = cache_bytes(
                    model, sources, STRATEGIES["greedy"]
                )
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
        messages["iterations"] = int(model.optimizer.iterations)
    layout_map = keras.distribution.LayoutMap(mesh_of(4, 2))
    layout_map["dense/kernel"] = (None, "model")
    with keras.distribution.ModelParallel(layout_map=layout_map).scope():
        message("no rule", transformer)
    layout_map[".*feed_forward/inner/kernel"] = (None, "model")
    with keras.distribution.ModelParallel(layout_map=layout_map).scope():
        transformer()
    return messages


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


def write(path, *functions):
    """Writes what functions of this module return, by name."""
    use_eight_devices()
    results = {name: globals()[name]() for name in functions}
    with open(path, "wb") as file:
        pickle.dump(results, file)


def run_guide(path):
    """Runs the code of a guide; prints documented and printed lines."""
    use_eight_devices()
    names = {"__name__": "__main__"}
    for code in examples.blocks("python", path.read_text("utf-8")):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(path), "exec"), names)
        assert printed.getvalue().splitlines() == examples.said(code), code
